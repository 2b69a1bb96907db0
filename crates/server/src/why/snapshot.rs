//! Statements and transactions that keep a snapshot for long while rows die that only it can see.

use super::facts::Facts;
use super::finding::{Cause, Finding, bytes, short, time};
use crate::history::slice::{SessionNote, TableNote};

/// A younger snapshot keeps nothing of weight.
const LONG_US: u64 = 3_000_000;
/// Log since the snapshot, bytes.
const LOG_BYTES: u64 = 1 << 20;
/// Dead rows of a table.
const DEAD_ROWS: u64 = 1000;

/// The tables whose dead rows a session's snapshot keeps, in words; None: of weight there is none.
pub(super) fn kept_for_it(facts: &Facts, session: &SessionNote) -> Option<String> {
    if session.snapshot_log < LOG_BYTES || session.transaction_us < LONG_US {
        return None;
    }
    let dying = |t: &&TableNote| t.dead >= DEAD_ROWS && t.dead > t.threshold && t.changed > 0;
    let mut tables: Vec<&TableNote> = facts.total.tables.iter().filter(dying).collect();
    tables.sort_by_key(|t| std::cmp::Reverse(t.dead));
    let one = |t: &&TableNote| format!("{} dead rows of {}", t.dead, t.name);
    let named: Vec<String> = tables.iter().take(3).map(one).collect();
    (!named.is_empty()).then(|| named.join(", "))
}

pub(super) fn find(facts: &Facts, found: &mut Vec<Finding>) {
    let works = facts.total.sessions.iter().filter(|s| &*s.state == "active");
    let mut keep: Vec<(&SessionNote, String)> =
        works.filter_map(|s| Some((s, kept_for_it(facts, s)?))).collect();
    keep.sort_by_key(|(s, _)| std::cmp::Reverse(s.transaction_us));
    let Some((session, kept)) = keep.first() else { return };
    let (pid, age) = (session.pid, time(session.transaction_us * 1000));
    let sentence = format!(
        "Pid {pid} has kept its snapshot for {age} with {}; vacuum can't remove rows that died since: {kept}.",
        short(&session.query)
    );
    let evidence = format!("{} of log since the snapshot; {kept}", bytes(session.snapshot_log));
    let advice = format!(
        "Run long reports when little is changed, or in pieces; SELECT pg_cancel_backend({pid}) ends it."
    );
    let finding = Finding::new("long_snapshot", Cause::Session, format!("pid {pid}"), 0);
    let mut finding = finding.saying(sentence, evidence, advice);
    (finding.pid, finding.statement) = (pid, session.statement);
    finding.risk_ns = facts.span_ns() / 4;
    found.push(finding);
}

#[cfg(test)]
mod tests {
    use super::super::explain;
    use super::super::facts::tests::{healthy, ten_seconds};
    use super::*;

    fn with(dead: u64) -> Facts {
        Facts::of(
            &ten_seconds(|slice| {
                healthy(slice);
                let transaction_us = slice.at as u64 - 90_000_000;
                slice.sessions.push(SessionNote {
                    pid: 7,
                    state: "active".into(),
                    query: "SELECT sum(n) FROM big".into(),
                    statement: 9,
                    state_us: transaction_us,
                    transaction_us,
                    snapshot_log: 50 << 20,
                    memory: 0,
                });
                slice.tables.push(TableNote {
                    name: "accounts".into(),
                    changed: 500,
                    dead,
                    threshold: 100,
                    ..TableNote::new(5, 6)
                });
            }),
            &[],
        )
    }

    #[test]
    fn who_keeps_dead_rows_is_named_with_the_table() {
        let found = explain(&with(5000));
        assert_eq!((found[0].kind, found[0].pid), ("long_snapshot", 7));
        assert!(found[0].sentence.contains("5000 dead rows of accounts"), "{}", found[0].sentence);
    }

    #[test]
    fn a_long_statement_beside_which_nothing_dies_is_not() {
        assert!(explain(&with(90)).is_empty());
    }
}
