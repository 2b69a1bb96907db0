//! Log that one bulk statement writes, and those who wait for room in it or for its sync.

use base::WaitEvent;
use base::usage::Use;

use super::facts::Facts;
use super::finding::{Finding, bytes, percent, short, time};
use crate::history::slice::Count;

const EVENTS: &[WaitEvent] = &[
    WaitEvent::IPCWalFlush,
    WaitEvent::IOWALSync,
    WaitEvent::IOWALWrite,
    WaitEvent::IOWALInitWrite,
    WaitEvent::LWLockWALInsert,
    WaitEvent::LWLockWALFlushLock,
];
/// An execution that writes less is no bulk statement.
const BULK_BYTES: u64 = 1 << 20;
/// Part of all log.
const PART: f64 = 0.5;

pub(super) fn find(facts: &Facts, found: &mut Vec<Finding>) {
    let Some((statement, part)) = facts.main_user(Use::WalBytes) else { return };
    let written = statement.get(Use::WalBytes);
    if part < PART || written / statement.calls.max(1) < BULK_BYTES {
        return;
    }
    // At other times the log is others'.
    let during = facts.beats.iter().filter(|beat| beat.part_of_log(statement.id) >= PART);
    let lost_ns: u64 = during.map(|beat| beat.waited_ns(EVENTS)).sum();
    let rate = (written as f64 / facts.seconds()) as u64;
    let sentence = format!(
        "{} of the log, {} a second, come from {}; all who commit wait for it.",
        percent(part),
        bytes(rate),
        short(&statement.text)
    );
    let evidence = format!(
        "{} of {} of log, {} records, {} waited for the log meanwhile by all statements",
        bytes(written),
        bytes(facts.count(Count::WalBytes)),
        statement.get(Use::WalRecords),
        time(lost_ns)
    );
    let advice = "Write in smaller portions, at a quieter time, or into an unlogged or new table (COPY, CREATE \
                  TABLE AS).";
    let mut finding = Finding::by("wal_volume", statement, lost_ns)
        .suffered_by(facts.main_victim(EVENTS))
        .saying(sentence, evidence, advice);
    // Whoever replays or copies the log suffers as well.
    if rate >= 4 << 20 {
        finding.risk_ns = lost_ns.max(facts.span_ns() / 10);
    }
    found.push(finding);
}

#[cfg(test)]
mod tests {
    use super::super::explain;
    use super::super::facts::tests::{healthy, statement, ten_seconds, used};
    use super::*;

    fn with(calls: u64, wal: u64) -> Vec<Finding> {
        explain(&Facts::of(
            &ten_seconds(|slice| {
                healthy(slice);
                statement(slice, 9, "UPDATE big SET n = n + 1", calls, 1.0, 0.5);
                used(slice, Use::WalBytes, wal);
            }),
            &[],
        ))
    }

    #[test]
    fn a_bulk_statement_is_named() {
        let found = with(0, 20 << 20);
        assert_eq!((found[0].kind, found[0].statement), ("wal_volume", 9));
    }

    #[test]
    fn waits_at_other_times_are_not_put_down_to_it() {
        let second = |slice: &mut crate::history::slice::Slice| {
            healthy(slice);
            used(slice, Use::WalBytes, 1000);
            if slice.at == 100_000_000 {
                statement(slice, 9, "COPY big FROM stdin", 0, 1.0, 0.5);
                used(slice, Use::WalBytes, 20 << 20);
            }
        };
        let mut found = Vec::new();
        find(&Facts::of(&ten_seconds(second), &[]), &mut found);
        assert_eq!((found.len(), found[0].lost_ns), (1, 1_000_000_000));
    }

    #[test]
    fn many_short_ones_are_not() {
        assert!(with(1000, 2 << 20).is_empty());
    }
}
