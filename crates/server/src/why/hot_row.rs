//! Rows that many short transactions want to change at once.

use base::WaitEvent;

use super::facts::Facts;
use super::finding::{Cause, Finding, short, time};
use super::lock_queue::is_long;

const EVENTS: &[WaitEvent] = &[WaitEvent::LockTuple, WaitEvent::LockTransactionid];

pub(super) fn find(facts: &Facts, found: &mut Vec<Finding>) {
    // Waits behind one that held on for long are put down to that one.
    let long = facts.total.blocks.iter().filter(|b| is_long(b) && EVENTS.contains(&b.event));
    let long_ns: u64 = long.map(|block| block.ns).sum();
    let lost_ns = facts.waited_ns(EVENTS).saturating_sub(long_ns);
    let Some(victim) = facts.main_victim(EVENTS).filter(|_| lost_ns > 0) else { return };
    let waits: u64 = facts.waits().filter(|w| EVENTS.contains(&w.event)).map(|w| w.count).sum();
    let mean = time(lost_ns / waits.max(1));
    let (name, rows) = match facts.main_object(EVENTS) {
        Some((row, _)) => (row.to_string(), format!("the same row ({row})")),
        None => (victim.text.to_string(), "the same rows".to_owned()),
    };
    let sentence =
        format!("Sessions of {} wait for each other to change {rows}.", short(&victim.text));
    let evidence = format!("{} in {waits} waits for rows, {mean} each", time(lost_ns));
    let advice = "Change such a row last in its transaction, spread it over several rows, or sum its \
                  changes up before they are written.";
    let finding = Finding::new("hot_row", Cause::Object, name, lost_ns);
    let mut finding = finding.suffered_by(Some(victim)).saying(sentence, evidence, advice);
    finding.statement = victim.id;
    found.push(finding);
}

#[cfg(test)]
mod tests {
    use super::super::facts::tests::{healthy, ten_seconds, wait};
    use super::super::{explain, facts::Facts};
    use super::EVENTS;

    #[test]
    fn the_row_and_its_statement_are_named() {
        let facts = Facts::of(
            &ten_seconds(|slice| {
                healthy(slice);
                wait(slice, EVENTS[0], 1, "tuple (0,1) of accounts", 3.0);
                wait(slice, EVENTS[1], 1, "", 1.0);
            }),
            &[],
        );
        let found = explain(&facts);
        assert_eq!((found[0].kind, &*found[0].name), ("hot_row", "tuple (0,1) of accounts"));
        assert!(found[0].sentence.contains("`UPDATE accounts"), "{}", found[0].sentence);
        assert_eq!(found[0].lost_ns, 40_000_000_000);
    }

    #[test]
    fn a_few_short_waits_are_no_finding() {
        let facts = Facts::of(
            &ten_seconds(|slice| {
                healthy(slice);
                wait(slice, EVENTS[0], 1, "tuple (0,1) of accounts", 0.02);
            }),
            &[],
        );
        assert!(explain(&facts).is_empty());
    }
}
