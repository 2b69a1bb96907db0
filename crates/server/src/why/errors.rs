//! Transactions that are rolled back: work for nothing.

use super::facts::Facts;
use super::finding::{Cause, Finding, percent, short};
use crate::history::slice::Count;

/// Part of all transactions.
const PART: f64 = 0.3;
/// A second.
const RATE: f64 = 2.0;

pub(super) fn find(facts: &Facts, found: &mut Vec<Finding>) {
    let (undone, done) = (facts.count(Count::Rollbacks), facts.count(Count::Commits));
    let part = undone as f64 / (undone + done).max(1) as f64;
    if part < PART || (undone as f64) < RATE * facts.seconds() {
        return;
    }
    let errors = facts.total.events.iter().filter(|event| &*event.kind == "error");
    let last = errors.last();
    let about =
        last.map_or_else(String::new, |event| format!(", the last after {}", short(&event.text)));
    let sentence = format!("{} of the transactions are rolled back{about}.", percent(part));
    let evidence = format!("{undone} rolled back, {done} committed");
    let advice = "See the errors in the server's log and in pg_events; let the application ask before it fails \
                  (ON CONFLICT), and retry later, not at once.";
    let lost_ns = (facts.work_ns() as f64 * part) as u64;
    let finding = Finding::new("errors", Cause::Client, "errors", lost_ns);
    let mut finding = finding.saying(sentence, evidence, advice);
    finding.pid = last.map_or(0, |event| event.pid);
    found.push(finding);
}

#[cfg(test)]
mod tests {
    use super::super::explain;
    use super::super::facts::tests::{healthy, ten_seconds};
    use super::*;

    fn with(rollbacks: u64) -> Vec<Finding> {
        explain(&Facts::of(
            &ten_seconds(|slice| {
                healthy(slice);
                slice.set(Count::Rollbacks, rollbacks);
            }),
            &[],
        ))
    }

    #[test]
    fn many_rollbacks_are_found() {
        assert_eq!(with(1000)[0].kind, "errors");
    }

    #[test]
    fn a_few_are_not() {
        assert!(with(10).is_empty());
    }
}
