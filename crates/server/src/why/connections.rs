//! Sessions that begin for a statement or two each: logging in costs more than the statements.

use super::facts::Facts;
use super::finding::{Cause, Finding, percent, time};
use crate::history::slice::Count;

/// A second.
const RATE: f64 = 10.0;
/// Transactions of a session.
const TRANSACTIONS: u64 = 3;

pub(super) fn find(facts: &Facts, found: &mut Vec<Finding>) {
    let begun = facts.count(Count::Connections);
    let done = facts.count(Count::Commits) + facts.count(Count::Rollbacks);
    if (begun as f64) < RATE * facts.seconds() || done > begun * TRANSACTIONS {
        return;
    }
    let busy: u64 = facts.statements.iter().map(|s| s.busy_ns()).sum();
    let cpu = facts.count(Count::CpuUs) * 1000;
    let lost_ns = cpu.saturating_sub(busy);
    let rate = begun as f64 / facts.seconds();
    let sentence = format!(
        "{rate:.0} sessions begin a second and run {:.1} transactions each; {} of the processor time go \
         into beginning them.",
        done as f64 / begun as f64,
        percent(lost_ns as f64 / cpu.max(1) as f64)
    );
    let evidence = format!(
        "{begun} sessions, {done} transactions, {} of processor time beside {} in statements",
        time(cpu),
        time(busy)
    );
    let advice = "Keep connections in the application, or put a pooler in front of the server.";
    let finding = Finding::new("connection_storm", Cause::Client, "connections", lost_ns);
    let mut finding = finding.saying(sentence, evidence, advice);
    finding.risk_ns = lost_ns.max(facts.span_ns() / 10);
    found.push(finding);
}

#[cfg(test)]
mod tests {
    use super::super::explain;
    use super::super::facts::tests::{healthy, ten_seconds};
    use super::*;

    fn with(connections: u64) -> Vec<Finding> {
        explain(&Facts::of(
            &ten_seconds(|slice| {
                healthy(slice);
                slice.set(Count::Connections, connections);
                slice.set(Count::CpuUs, 1_900_000);
            }),
            &[],
        ))
    }

    #[test]
    fn a_session_for_each_transaction_is_found() {
        assert_eq!(with(900)[0].kind, "connection_storm");
    }

    #[test]
    fn sessions_that_stay_are_not() {
        assert!(with(2).is_empty());
    }
}
