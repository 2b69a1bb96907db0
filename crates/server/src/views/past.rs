//! The server's past: `pg_why`, `pg_wait_history`, `pg_top_statements`, `pg_events`.

use base::usage::Use;
use base::{Result, err};
use types::Datum;
use types::func::SessionFunction as F;

use super::waits::ms;
use super::{shares, time};
use crate::history;
use crate::history::slice::{Slice, StatementSum, Sum};
use crate::log;
use crate::server::{self, Server};
use crate::views::text::text;
use crate::why::{self, Finding};

/// The rows of a function.
///
/// # Errors
/// `22023` for a range that ends before it begins; those of reading the history.
pub fn history(server: &Server, function: F, args: &[Datum]) -> Result<Vec<Vec<Datum>>> {
    match function {
        F::PgWaitHistory => waits(server, range(args)?),
        F::PgTopStatements => statements(server, range(args)?),
        F::PgTopClients => shares::clients(server, range(args)?),
        F::PgTopRelations => shares::relations(server, range(args)?),
        F::PgCompareStatements => {
            shares::compare(server, range(args)?, args.get(2).unwrap_or(&Datum::Null))
        }
        _ => findings(server, args),
    }
}

/// Microseconds since 2000.
fn range(args: &[Datum]) -> Result<(i64, i64)> {
    let (Some(Datum::Timestamptz(from)), Some(Datum::Timestamptz(to))) =
        (args.first(), args.get(1))
    else {
        return Ok((server::now() - why::LATELY_US, server::now()));
    };
    if from > to {
        return Err(err!(INVALID_PARAMETER_VALUE, "the range ends before it begins"));
    }
    // A slice's end can be reached.
    Ok(((*from).max(i64::MIN / 4), (*to).min(i64::MAX / 4)))
}

fn waits(server: &Server, (from, to): (i64, i64)) -> Result<Vec<Vec<Datum>>> {
    let mut rows = Vec::new();
    history::each_between(server, from, to, &mut |slice: &Slice| {
        for wait in &slice.waits {
            let info = wait.event.info();
            rows.push(vec![
                Datum::Timestamptz(slice.from()),
                Datum::Float8(slice.span_us as f64 / 1e6),
                text(info.kind),
                text(info.name),
                optional(wait.statement as i64),
                words(&wait.object),
                Datum::Int8(wait.count as i64),
                ms(wait.ns),
                ms(wait.longest_ns),
                oid(wait.client.user),
                oid(wait.client.database),
                words(&wait.client.application),
            ]);
        }
    })?;
    Ok(rows)
}

fn statements(server: &Server, (from, to): (i64, i64)) -> Result<Vec<Vec<Datum>>> {
    let mut sum = Sum::default();
    history::each_between(server, from, to, &mut |slice| sum.add(slice))?;
    let mut all = sum.done().statements;
    all.sort_by_key(|statement| std::cmp::Reverse(statement.ns));
    let row = |s: &StatementSum| {
        let used = |what| Datum::Int8(s.get(what) as i64);
        vec![
            Datum::Int8(s.id as i64),
            text(&s.text),
            Datum::Oid(s.user),
            Datum::Oid(s.database),
            Datum::Int8(s.calls as i64),
            ms(s.ns),
            ms(s.busy_ns()),
            ms(s.waited_ns),
            ms(s.caused_ns),
            Datum::Int8(s.rows as i64),
            used(Use::WalBytes),
            used(Use::WalRecords),
            used(Use::WalImages),
            used(Use::BufferHit),
            used(Use::BufferRead),
            used(Use::BufferDirtied),
            used(Use::BufferWritten),
            used(Use::Evicted),
            used(Use::Extended),
            used(Use::TempWritten),
            words(&s.application),
        ]
    };
    Ok(all.iter().map(row).collect())
}

fn findings(server: &Server, args: &[Datum]) -> Result<Vec<Vec<Datum>>> {
    let facts = {
        let (from, to) = range(args)?;
        why::facts(server, from, to)?
    };
    let mut found = why::explain(&facts);
    match args {
        [Datum::Int4(pid)] => found.retain(|finding| concerns_session(server, *pid, finding)),
        [Datum::Int8(id)] => found.retain(|finding| concerns_statement(*id as u64, finding)),
        _ => {}
    }
    let row = |finding: &Finding| {
        vec![
            text(finding.kind),
            Datum::Float8(finding.lost_ns as f64 / 1e9),
            Datum::Float8(finding.share(&facts)),
            optional(finding.sessions as i64),
            words(&finding.victim),
            text(finding.cause.word()),
            text(&finding.name),
            if finding.pid == 0 { Datum::Null } else { Datum::Int4(finding.pid) },
            optional(finding.statement as i64),
            text(&finding.evidence),
            text(&finding.advice),
            text(&finding.sentence),
        ]
    };
    Ok(found.iter().map(row).collect())
}

fn concerns_statement(id: u64, finding: &Finding) -> bool {
    finding.statement == id || finding.victims.contains(&id)
}

/// Whether it is the session's doing, or costs the statement that it runs.
fn concerns_session(server: &Server, pid: i32, finding: &Finding) -> bool {
    let running = server.sessions.get(pid).map_or(0, |entry| entry.task.statement());
    finding.pid == pid || (running != 0 && concerns_statement(running, finding))
}

/// `pg_events`.
pub(super) fn events(server: &Server) -> Vec<Vec<Datum>> {
    let mut rows = Vec::new();
    let read = history::each_between(server, i64::MIN / 4, i64::MAX / 4, &mut |slice| {
        for event in &slice.events {
            let pid = if event.pid == 0 { Datum::Null } else { Datum::Int4(event.pid) };
            rows.push(vec![
                Datum::Timestamptz(event.at),
                text(&event.kind),
                pid,
                text(&event.text),
            ]);
        }
    });
    if let Err(error) = read {
        log::error(0, &error, None);
    }
    rows
}

/// `pg_alerts`.
pub(super) fn alerts(server: &Server) -> Vec<Vec<Datum>> {
    let row = |alert: crate::alerts::board::Alert| {
        vec![
            text(&alert.rule),
            words(&alert.name),
            Datum::Timestamptz(alert.since),
            time(alert.until),
            text(&alert.text),
        ]
    };
    server.alerts.all().into_iter().map(row).collect()
}

/// `pg_alert_rules`.
pub(super) fn alert_rules(server: &Server) -> Vec<Vec<Datum>> {
    let row = |checked: crate::alerts::board::Checked| {
        vec![
            text(&checked.rule.name),
            Datum::Int4((checked.rule.lasting_us / 1_000_000) as i32),
            words(&checked.rule.condition),
            time(checked.at),
            time(checked.holds_since),
            words(&checked.error),
        ]
    };
    server.alerts.rules().into_iter().map(row).collect()
}

fn oid(value: u32) -> Datum {
    if value == 0 { Datum::Null } else { Datum::Oid(value) }
}

/// NULL for none.
fn optional(value: i64) -> Datum {
    if value == 0 { Datum::Null } else { Datum::Int8(value) }
}

fn words(value: &str) -> Datum {
    if value.is_empty() { Datum::Null } else { text(value) }
}
