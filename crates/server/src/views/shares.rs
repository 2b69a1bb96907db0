//! The server's past by client, table, index and plan: `pg_top_clients`, `pg_top_relations`,
//! `pg_compare_statements`, `pg_plans`, `pg_plan_changes`.

use std::collections::HashMap;
use std::sync::Arc;

use base::usage::Use;
use base::{Result, err};
use types::Datum;

use super::waits::ms;
use crate::history;
use crate::history::plans::PlanNote;
use crate::history::slice::{Slice, StatementSum, Sum};
use crate::log;
use crate::server::Server;
use crate::views::text::text;

/// A statement's executions this long before and after a change of its plan are compared, microseconds.
const AROUND_US: i64 = 600_000_000;

/// The sum of the slices that lie in a range (microseconds since 2000) with most of their length.
pub(crate) fn sum_of(server: &Server, (from, to): (i64, i64)) -> Result<Slice> {
    let mut sum = Sum::default();
    history::each_between(server, from, to, &mut |slice| {
        let middle = slice.at - (slice.span_us / 2) as i64;
        if from <= middle && middle <= to {
            sum.add(slice);
        }
    })?;
    Ok(sum.done())
}

/// Names of roles and databases.
pub(crate) struct OfAll(Arc<catalog::Snapshot>);

impl OfAll {
    /// As they are committed now.
    pub(crate) fn now(server: &Server) -> OfAll {
        OfAll(server.engine.catalog.shared().current())
    }

    /// A role's; None: it is gone, or it is nobody.
    pub(crate) fn role(&self, oid: u32) -> Option<&str> {
        self.0.role(oid).map(|role| role.name.as_str())
    }

    /// A database's.
    pub(crate) fn database(&self, oid: u32) -> Option<&str> {
        self.0.database(oid).map(|database| database.name.as_str())
    }
}

fn name(known: Option<&str>) -> Datum {
    known.map_or(Datum::Null, text)
}

fn count(value: u64) -> Datum {
    Datum::Int8(value as i64)
}

/// `pg_top_clients`.
pub(super) fn clients(server: &Server, range: (i64, i64)) -> Result<Vec<Vec<Datum>>> {
    let mut all = sum_of(server, range)?.clients;
    all.sort_by_key(|sum| std::cmp::Reverse(sum.active_ns));
    let names = OfAll::now(server);
    let row = |sum: &history::clients::ClientSum| {
        let client = &sum.client;
        let used = |what| count(sum.get(what));
        vec![
            Datum::Oid(client.user),
            name(names.role(client.user)),
            Datum::Oid(client.database),
            name(names.database(client.database)),
            text(&client.application),
            count(sum.sessions),
            count(sum.began),
            count(sum.transactions),
            ms(sum.active_ns),
            ms(sum.busy_ns()),
            ms(sum.waited_ns),
            used(Use::WalBytes),
            used(Use::BufferHit),
            used(Use::BufferRead),
            used(Use::BufferDirtied),
            used(Use::BufferWritten),
            used(Use::Evicted),
            used(Use::Extended),
            used(Use::TempWritten),
        ]
    };
    Ok(all.iter().map(row).collect())
}

/// `pg_top_relations`.
pub(super) fn relations(server: &Server, range: (i64, i64)) -> Result<Vec<Vec<Datum>>> {
    let mut all = sum_of(server, range)?.relations;
    all.sort_by_key(|sum| std::cmp::Reverse(sum.weight()));
    let names = OfAll::now(server);
    let row = |sum: &history::relations::RelationSum| {
        let is_index = !sum.table.is_empty();
        vec![
            Datum::Oid(sum.database),
            name(names.database(sum.database)),
            Datum::Oid(sum.oid),
            text(&sum.name),
            text(if is_index { "index" } else { "table" }),
            text(if is_index { &sum.table } else { &sum.name }),
            count(sum.scans),
            count(sum.returned),
            count(sum.fetched),
            count(sum.inserted),
            count(sum.updated),
            count(sum.hot_updated),
            count(sum.deleted),
            count(sum.blocks_hit),
            count(sum.blocks_read),
            ms(sum.waited_ns),
        ]
    };
    Ok(all.iter().map(row).collect())
}

/// A statement's sums in two ranges.
pub(crate) struct Compared {
    /// In the range; nothing if it did not run.
    pub now: StatementSum,
    /// In that before.
    pub before: StatementSum,
}

impl Compared {
    /// By how much more time it took, nanoseconds.
    pub fn change_ns(&self) -> i64 {
        self.now.ns as i64 - self.before.ns as i64
    }
}

/// Statements of a range beside themselves in another, those that take more time first.
pub(crate) fn compared(now: &Slice, before: &Slice) -> Vec<Compared> {
    let mut all: Vec<Compared> = Vec::new();
    let mut places: HashMap<(u64, u32), usize> = HashMap::new();
    let sides = [(&now.statements, true), (&before.statements, false)];
    for (statement, is_now) in sides.iter().flat_map(|(all, n)| all.iter().map(move |s| (s, *n))) {
        let key = (statement.id, statement.database);
        let at = *places.entry(key).or_insert_with(|| {
            let none = || StatementSum::new(key.0, 0, key.1, statement.text.clone());
            all.push(Compared { now: none(), before: none() });
            all.len() - 1
        });
        let side = if is_now { &mut all[at].now } else { &mut all[at].before };
        side.add(statement);
    }
    all.sort_by_key(|one| std::cmp::Reverse(one.change_ns()));
    all
}

/// Nanoseconds a call.
pub(crate) fn mean_ns(statement: &StatementSum) -> u64 {
    statement.ns / statement.calls.max(1)
}

/// `pg_compare_statements`: a range beside the same time so long before.
pub(super) fn compare(
    server: &Server,
    (from, to): (i64, i64),
    back: &Datum,
) -> Result<Vec<Vec<Datum>>> {
    let back = back.as_interval();
    let days = i64::from(back.months) * 30 + i64::from(back.days);
    let back_us = days.saturating_mul(86_400_000_000).saturating_add(back.micros);
    if back_us <= 0 {
        return Err(err!(INVALID_PARAMETER_VALUE, "the time to go back must be positive"));
    }
    let now = sum_of(server, (from, to))?;
    let before = sum_of(server, (from.saturating_sub(back_us), to.saturating_sub(back_us)))?;
    let row = |one: &Compared| {
        let (now, before) = (&one.now, &one.before);
        let used = |what| [count(now.get(what)), count(before.get(what))];
        let [read, read_before] = used(Use::BufferRead);
        let [log, log_before] = used(Use::WalBytes);
        vec![
            Datum::Int8(now.id as i64),
            text(&now.text),
            Datum::Oid(now.database),
            count(now.calls),
            count(before.calls),
            ms(now.ns),
            ms(before.ns),
            ms(mean_ns(now)),
            ms(mean_ns(before)),
            ms(now.busy_ns()),
            ms(before.busy_ns()),
            ms(now.waited_ns),
            ms(before.waited_ns),
            read,
            read_before,
            log,
            log_before,
            Datum::Float8(one.change_ns() as f64 / 1e6),
        ]
    };
    Ok(compared(&now, &before).iter().map(row).collect())
}

/// The plans that were noted in a range.
fn plan_notes(server: &Server, (from, to): (i64, i64)) -> Result<Vec<PlanNote>> {
    let mut all = Vec::new();
    history::each_between(server, from, to, &mut |slice| {
        all.extend(slice.plans.iter().filter(|plan| from <= plan.at && plan.at <= to).cloned());
    })?;
    Ok(all)
}

/// All that is kept.
const EVER: (i64, i64) = (i64::MIN / 4, i64::MAX / 4);

/// `pg_plans`.
pub(super) fn plans(server: &Server) -> Vec<Vec<Datum>> {
    let row = |note: PlanNote| {
        vec![
            Datum::Timestamptz(note.at),
            Datum::Int8(note.statement as i64),
            text(&note.query),
            Datum::Oid(note.database),
            text(&note.plan),
        ]
    };
    match plan_notes(server, EVER) {
        Ok(all) => all.into_iter().map(row).collect(),
        Err(error) => {
            log::error(0, &error, None);
            Vec::new()
        }
    }
}

/// A plan that took another's place, and the statement's executions by both.
pub(crate) struct PlanChange {
    /// The later plan, with the one before.
    pub note: PlanNote,
    /// Executions in the ten minutes before, at most from the change before that on.
    pub before: StatementSum,
    /// Executions in the ten minutes after, at most to the next change.
    pub after: StatementSum,
}

/// Every plan that is not the one that the statement had before, a restart between them or not.
fn changes_of(notes: Vec<PlanNote>) -> Vec<PlanChange> {
    let mut last: HashMap<(u32, u64), Arc<str>> = HashMap::new();
    let mut changes = Vec::new();
    for mut note in notes {
        let key = (note.database, note.statement);
        let known = last.insert(key, note.plan.clone());
        if note.before.is_empty() {
            note.before = known.unwrap_or_default();
        }
        let plain = |plan: &str| history::plans::difference(plan, &note.plan).is_some();
        if note.before.is_empty() || !plain(&note.before) {
            continue;
        }
        let none = || StatementSum::new(note.statement, 0, note.database, note.query.clone());
        let (before, after) = (none(), none());
        changes.push(PlanChange { note, before, after });
    }
    changes
}

/// The changes of plans in a range.
///
/// # Errors
/// Those of reading the history.
fn plan_changes(server: &Server, (from, to): (i64, i64)) -> Result<Vec<PlanChange>> {
    changes_among(server, plan_notes(server, (EVER.0, to))?, from)
}

/// The changes among notes, oldest first, from a time on.
///
/// # Errors
/// Those of reading the history.
pub(crate) fn changes_among(
    server: &Server,
    notes: Vec<PlanNote>,
    from: i64,
) -> Result<Vec<PlanChange>> {
    let mut changes = changes_of(notes);
    changes.retain(|change| change.note.at >= from);
    // From when to when executions belong to each, so that none counts for two changes.
    let bounds: Vec<(i64, i64)> = (0..changes.len())
        .map(|n| {
            let note = &changes[n].note;
            let same = |c: &&PlanChange| {
                (c.note.database, c.note.statement) == (note.database, note.statement)
            };
            let earlier = changes[..n].iter().rev().find(same).map_or(i64::MIN, |c| c.note.at);
            let later = changes[n + 1..].iter().find(same).map_or(i64::MAX, |c| c.note.at);
            ((note.at - AROUND_US).max(earlier), (note.at + AROUND_US).min(later))
        })
        .collect();
    let mut places: HashMap<(u32, u64), Vec<usize>> = HashMap::new();
    for (n, change) in changes.iter().enumerate() {
        places.entry((change.note.database, change.note.statement)).or_default().push(n);
    }
    for part in joined(&bounds) {
        history::each_between(server, part.0, part.1, &mut |slice| {
            let middle = slice.at - (slice.span_us / 2) as i64;
            if middle < part.0 || middle >= part.1 {
                return;
            }
            for statement in &slice.statements {
                let of = places.get(&(statement.database, statement.id));
                for n in of.into_iter().flatten() {
                    let (change, (from, to)) = (&mut changes[*n], bounds[*n]);
                    if from <= middle && middle < change.note.at {
                        change.before.add(statement);
                    } else if change.note.at <= middle && middle < to {
                        change.after.add(statement);
                    }
                }
            }
        })?;
    }
    Ok(changes)
}

/// Intervals in order, joined where they touch: of a day with two changes twenty minutes each are read.
fn joined(intervals: &[(i64, i64)]) -> Vec<(i64, i64)> {
    let mut sorted = intervals.to_vec();
    sorted.sort_unstable();
    let mut all: Vec<(i64, i64)> = Vec::new();
    for (from, to) in sorted {
        match all.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => all.push((from, to)),
        }
    }
    all
}

/// `pg_plan_changes`.
pub(super) fn changes(server: &Server) -> Vec<Vec<Datum>> {
    let row = |change: PlanChange| {
        let PlanChange { note, before, after } = change;
        let mean = |sum: &StatementSum, ns: u64| match sum.calls {
            0 => Datum::Null,
            calls => ms(ns / calls),
        };
        let pages = |sum: &StatementSum| match sum.calls {
            0 => Datum::Null,
            calls => {
                let pages = sum.get(Use::BufferHit) + sum.get(Use::BufferRead);
                Datum::Float8((pages as f64 / calls as f64 * 10.0).round() / 10.0)
            }
        };
        vec![
            Datum::Timestamptz(note.at),
            Datum::Int8(note.statement as i64),
            text(&note.query),
            Datum::Oid(note.database),
            text(&note.before),
            text(&note.plan),
            count(before.calls),
            count(after.calls),
            mean(&before, before.ns),
            mean(&after, after.ns),
            mean(&before, before.busy_ns()),
            mean(&after, after.busy_ns()),
            pages(&before),
            pages(&after),
        ]
    };
    match plan_changes(server, EVER) {
        Ok(all) => all.into_iter().map(row).collect(),
        Err(error) => {
            log::error(0, &error, None);
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(at: i64, statement: u64, plan: &str, before: &str) -> PlanNote {
        let query = format!("select {statement}").into();
        PlanNote { at, database: 5, statement, query, plan: plan.into(), before: before.into() }
    }

    #[test]
    fn a_plan_that_differs_from_that_before_a_restart_has_changed() {
        let notes = vec![
            note(1, 7, "Index Scan", ""),
            note(2, 8, "Seq Scan", ""),
            note(3, 7, "Index Scan  (cost=1..2)", ""),
            note(4, 7, "Seq Scan", ""),
            note(5, 8, "Sort", "Seq Scan"),
        ];
        let changes = changes_of(notes);
        let said: Vec<_> = changes.iter().map(|c| (c.note.at, &*c.note.before)).collect();
        assert_eq!(said, [(4, "Index Scan  (cost=1..2)"), (5, "Seq Scan")]);
    }

    #[test]
    fn intervals_are_joined_where_they_touch() {
        assert_eq!(joined(&[(5, 9), (1, 3), (2, 4), (9, 10)]), [(1, 4), (5, 10)]);
        assert!(joined(&[]).is_empty());
    }

    #[test]
    fn statements_are_compared_by_the_time_that_they_take_more() {
        let of = |sums: &[(u64, u64)]| {
            let mut slice = Slice::new(0, 1);
            for (id, ns) in sums {
                let mut sum = StatementSum::new(*id, 10, 5, "x".into());
                (sum.ns, sum.calls) = (*ns, 2);
                slice.statements.push(sum);
            }
            slice
        };
        let all = compared(&of(&[(1, 10), (2, 50)]), &of(&[(1, 30), (3, 5)]));
        let changes: Vec<_> = all.iter().map(|one| (one.now.id, one.change_ns())).collect();
        assert_eq!(changes, [(2, 50), (3, -5), (1, -20)]);
        assert_eq!((mean_ns(&all[0].now), all[0].before.calls), (25, 0));
    }
}
