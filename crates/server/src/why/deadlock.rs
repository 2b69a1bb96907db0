//! Deadlocks: each costs its sessions the wait until it is found, and one of them its work.

use base::settings::{live_int, setting};

use super::facts::Facts;
use super::finding::{Cause, Finding, short};
use crate::history::slice::Count;

pub(super) fn find(facts: &Facts, found: &mut Vec<Finding>) {
    let deadlocks = facts.count(Count::Deadlocks);
    if deadlocks == 0 {
        return;
    }
    // Two sessions at least wait until the time is over, and one begins anew.
    let each_ns = live_int(setting::DEADLOCK_TIMEOUT).max(1) as u64 * 1_000_000 * 2;
    let event = facts.total.events.iter().rev().find(|event| &*event.kind == "deadlock");
    let about = event.map_or_else(String::new, |event| format!(", the last: {}", event.text));
    let statement = event.and_then(|event| {
        let mut known = facts.statements.iter();
        known.find(|s| s.caused_ns > 0 && event.text.contains(first_words(&s.text)))
    });
    let times =
        if deadlocks == 1 { "A deadlock".to_owned() } else { format!("{deadlocks} deadlocks") };
    let sentence = match &statement {
        Some(statement) => format!("{times} among sessions of {}.", short(&statement.text)),
        None => {
            format!("{times} among sessions that lock the same things in different orders{about}.")
        }
    };
    let evidence = format!("{deadlocks} deadlocks found{about}");
    let advice = "Lock rows and tables in the same order everywhere, for example ORDER BY the key in \
                  SELECT … FOR UPDATE; the log has each deadlock's statements.";
    let lost_ns = deadlocks * each_ns;
    let mut finding = Finding::new("deadlock", Cause::Client, "order of locks", lost_ns)
        .saying(sentence, evidence, advice);
    // Transactions that fail weigh more than the time they waited.
    finding.risk_ns = lost_ns.max(facts.span_ns() / 4);
    finding.statement = statement.map_or(0, |s| s.id);
    found.push(finding);
}

/// Enough of a statement to know it by.
fn first_words(text: &str) -> &str {
    let end = text.find(['$', '\'']).unwrap_or(text.len());
    text[..end].trim()
}

#[cfg(test)]
mod tests {
    use super::super::explain;
    use super::super::facts::tests::{healthy, ten_seconds};
    use super::*;

    #[test]
    fn deadlocks_are_found_and_their_absence_is_not() {
        let facts = Facts::of(
            &ten_seconds(|slice| {
                healthy(slice);
                slice.set(Count::Deadlocks, u64::from(slice.at == 105_000_000));
            }),
            &[],
        );
        let found = explain(&facts);
        assert_eq!((found[0].kind, found[0].cause), ("deadlock", Cause::Client));
        let mut none = Vec::new();
        find(&Facts::of(&ten_seconds(healthy), &[]), &mut none);
        assert!(none.is_empty());
    }
}
