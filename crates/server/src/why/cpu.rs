//! Processors that a few long statements use up while others wait for their turn.

use base::WaitEvent;
use base::usage::Use;

use super::facts::Facts;
use super::finding::{Finding, percent, short, time};
use super::scan;
use crate::history::slice::{Count, StatementSum};

const EVENTS: &[WaitEvent] = &[WaitEvent::TimeoutYield];
/// An execution that takes less is no report.
const LONG_NS: u64 = 200_000_000;
/// Part of the processors.
const PART: f64 = 0.4;
/// Part of the processors from which on a machine is full.
const FULL: f64 = 0.8;

/// Whether its executions are long, those under way included.
fn is_long(statement: &StatementSum) -> bool {
    statement.busy_ns() / statement.calls.max(1) >= LONG_NS
}

pub(super) fn find(facts: &Facts, found: &mut Vec<Finding>) {
    let processors = facts.count(Count::Processors).max(1);
    let capacity = facts.span_ns() * processors;
    let mut long: Vec<&StatementSum> = facts.statements.iter().filter(|s| is_long(s)).collect();
    long.sort_by_key(|s| std::cmp::Reverse(s.busy_ns()));
    let Some(most) = long.first() else { return };
    // More may be ready than there are processors.
    let busy: u64 = long.iter().map(|s| s.busy_ns()).sum::<u64>().min(capacity);
    let used = (facts.count(Count::CpuUs) * 1000).max(1);
    let part = busy as f64 / capacity as f64;
    // Where others than this server use the machine, its part is smaller and the wait for it no less.
    let machine = facts.count(Count::MachineCpuUs) * 1000;
    let is_full = used as f64 >= capacity as f64 * PART || machine as f64 >= capacity as f64 * FULL;
    if part < PART || !is_full {
        return;
    }
    let beside = match machine.saturating_sub(used) as f64 / capacity as f64 {
        share if share >= 0.3 => format!("; other programs use {} of the machine", percent(share)),
        _ => String::new(),
    };
    // Said by what it lacks, where that is known.
    let mut scans = Vec::new();
    scan::find(facts, &mut scans);
    if scans.iter().any(|f| f.statement == most.id) || most.get(Use::TempWritten) > 10 << 20 {
        return;
    }
    let queued = facts.waited_ns(EVENTS);
    let lost_ns = queued.max(busy / 4);
    let others = match long.len() {
        1 => String::new(),
        n => format!(" and {} more long statements", n - 1),
    };
    let sentence = format!(
        "{}{others} use {} of the {processors} processors; other sessions wait for their turn{beside}.",
        short(&most.text),
        percent(part)
    );
    let evidence = format!(
        "{} on processors by it, {} by the whole server; {} waited for a turn",
        time(most.busy_ns()),
        time(used),
        time(queued)
    );
    let advice = "Run fewer of them at a time, at a quieter time, or make them cheaper: EXPLAIN (ANALYZE) shows \
                  where; pg_flamegraph shows the functions.";
    let victims = facts.statements.iter().filter(|s| !is_long(s));
    let victim = victims.max_by_key(|s| s.ns);
    let finding = Finding::by("cpu", most, lost_ns);
    found.push(finding.suffered_by(victim).saying(sentence, evidence, advice));
}

#[cfg(test)]
mod tests {
    use super::super::explain;
    use super::super::facts::tests::{healthy, statement, ten_seconds};
    use super::*;

    #[test]
    fn four_reports_are_named() {
        let facts = Facts::of(
            &ten_seconds(|slice| {
                healthy(slice);
                statement(slice, 9, "SELECT count(*) FROM a, b", 0, 4.0, 2.2);
                slice.set(Count::CpuUs, 1_950_000);
            }),
            &[],
        );
        let found = explain(&facts);
        assert_eq!((found[0].kind, found[0].statement), ("cpu", 9));
        assert!(found[0].sentence.contains("90 % of the 2 processors"), "{}", found[0].sentence);
    }

    #[test]
    fn many_short_statements_are_what_processors_are_for() {
        let facts = Facts::of(
            &ten_seconds(|slice| {
                statement(slice, 9, "SELECT $1", 10_000, 1.9, 0.0);
                slice.set(Count::CpuUs, 1_950_000);
            }),
            &[],
        );
        assert!(explain(&facts).is_empty());
    }
}
