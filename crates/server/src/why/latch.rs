//! Latches that sessions wait for, by tranche.

use base::WaitEvent;
use base::waits::WAITS;

use super::facts::Facts;
use super::finding::{Cause, Finding, short, time};

pub(super) fn find(facts: &Facts, found: &mut Vec<Finding>) {
    // Counted by the log's and the files' detectors.
    let theirs = [
        WaitEvent::LWLockWALInsert,
        WaitEvent::LWLockWALFlushLock,
        WaitEvent::LWLockRelationExtensionLatch,
        WaitEvent::LWLockFreeSpaceMap,
    ];
    for wait in WAITS.iter().filter(|w| w.kind == "LWLock" && !theirs.contains(&w.event)) {
        let events = &[wait.event];
        let lost_ns = facts.waited_ns(events);
        let Some(victim) = facts.main_victim(events) else { continue };
        let object = facts.main_object(events).map_or_else(String::new, |(o, _)| format!(" ({o})"));
        let waits: u64 = facts.waits().filter(|w| w.event == wait.event).map(|w| w.count).sum();
        let sentence =
            format!("Sessions of {} wait for latches {}{object}.", short(&victim.text), wait.name);
        let evidence =
            format!("{} in {waits} waits, {} each", time(lost_ns), time(lost_ns / waits.max(1)));
        let advice = format!(
            "pg_stat_lwlock and pg_flamegraph(10, 'waits') show who holds them; spread what {} guards.",
            wait.name
        );
        let finding = Finding::new("latch", Cause::Object, wait.name, lost_ns);
        let mut finding = finding.suffered_by(Some(victim)).saying(sentence, evidence, advice);
        finding.statement = victim.id;
        found.push(finding);
    }
}

#[cfg(test)]
mod tests {
    use super::super::explain;
    use super::super::facts::tests::{healthy, ten_seconds, wait};
    use super::*;

    fn with(seconds: f64) -> Vec<Finding> {
        explain(&Facts::of(
            &ten_seconds(|slice| {
                healthy(slice);
                wait(slice, WaitEvent::LWLockBufferContent, 1, "page 1 of accounts", seconds);
            }),
            &[],
        ))
    }

    #[test]
    fn a_contended_tranche_is_named_with_the_page() {
        let found = with(0.9);
        assert_eq!((found[0].kind, &*found[0].name), ("latch", "BufferContent"));
        assert!(found[0].sentence.contains("(page 1 of accounts)"), "{}", found[0].sentence);
    }

    #[test]
    fn a_little_waiting_is_no_finding() {
        assert!(with(0.01).is_empty());
    }
}
