//! Statements that take longer since they run by another plan.

use super::facts::{Facts, Measure};
use super::finding::{Finding, short, time};
use super::stale_statistics::stale_table;
use crate::history::plans::{PlanNote, difference};
use crate::history::slice::Event;

/// So many times as long, on a processor.
const TIMES: u64 = 2;
/// Executions on both sides.
const CALLS: u64 = 3;

/// The last change of a statement's plan in the range or the time before it.
pub(super) fn changed<'f>(facts: &'f Facts, statement: u64) -> Option<&'f PlanNote> {
    let all = facts.before.plans.iter().chain(&facts.total.plans);
    all.filter(|note| note.statement == statement && !note.before.is_empty()).last()
}

pub(super) fn find(facts: &Facts, found: &mut Vec<Finding>) {
    for statement in &facts.statements {
        let Some(note) = changed(facts, statement.id) else { continue };
        let (mut earlier, parts) = facts.executions(statement.id);
        let mut later = Measure::default();
        for (beat, part) in facts.beats.iter().zip(parts) {
            let side = if beat.at <= note.at { &mut earlier } else { &mut later };
            *side = side.plus(part);
        }
        if earlier.count.min(later.count) < CALLS {
            continue;
        }
        let (was, now) = (earlier.mean_ns(), later.mean_ns());
        if now < was * TIMES || stale_table(facts, &statement.text).is_some() {
            continue;
        }
        let lost_ns = (now - was) * later.count;
        let (old, new) = difference(&note.before, &note.plan).unwrap_or_default();
        let after = definition(facts, note)
            .map_or_else(String::new, |event| format!(", right after {}", short(&event.text)));
        let sentence = format!(
            "{} takes {} instead of {} since its plan changed from {} to {}{after}.",
            short(&statement.text),
            time(now),
            time(was),
            short(&old),
            short(&new),
        );
        let evidence = format!(
            "{} calls, {} more on a processor than before; {} pages each instead of {}",
            statement.calls,
            time(lost_ns),
            later.mean_pages(),
            earlier.mean_pages()
        );
        let advice = if after.is_empty() {
            "pg_plan_changes has both plans; ANALYZE its tables, or give the planner the index that the old \
             one used."
        } else {
            "pg_plan_changes has both plans; see whether the change took away an index that the old one used."
        };
        let finding = Finding::by("plan_change", statement, lost_ns);
        found.push(finding.suffered_by(Some(statement)).saying(sentence, evidence, advice));
    }
}

/// The last definition or setting that changed in the minute before a plan did.
fn definition<'f>(facts: &'f Facts, note: &PlanNote) -> Option<&'f Event> {
    /// Microseconds.
    const RIGHT_BEFORE: i64 = 60_000_000;
    let events = facts.before.events.iter().chain(&facts.total.events);
    let is_suspect = |event: &&Event| {
        matches!(&*event.kind, "definition" | "setting" | "analyze")
            && (note.at - RIGHT_BEFORE..=note.at).contains(&event.at)
    };
    events.filter(is_suspect).last()
}

#[cfg(test)]
mod tests {
    use base::usage::Use;

    use super::super::explain;
    use super::super::facts::tests::{healthy, statement, ten_seconds, used};
    use super::*;

    fn with(s: f64, before_plan: &str) -> Vec<Finding> {
        let before = ten_seconds(|slice| {
            healthy(slice);
            statement(slice, 9, "SELECT * FROM orders WHERE a = $1", 100, 0.01, 0.0);
            used(slice, Use::BufferHit, 400);
        });
        let now = ten_seconds(|slice| {
            healthy(slice);
            statement(slice, 9, "SELECT * FROM orders WHERE a = $1", 100, s, 0.0);
            used(slice, Use::BufferHit, 900);
            if slice.at == 100_000_000 {
                slice.plans.push(PlanNote {
                    at: slice.at - 500_000,
                    database: 5,
                    statement: 9,
                    query: "SELECT * FROM orders WHERE a = $1".into(),
                    plan: "Seq Scan on orders  (cost=0.00..9.00 rows=1 width=4)".into(),
                    before: before_plan.into(),
                });
                let text = "DROP INDEX orders_a".into();
                let at = slice.at - 500_009;
                slice.events.push(Event { at, kind: "definition".into(), pid: 3, text });
            }
        });
        explain(&Facts::of(&now, &before))
    }

    const OLD: &str = "Index Scan using orders_a on orders  (cost=0.00..8.00 rows=1 width=4)";

    #[test]
    fn both_plans_are_named_with_what_changed_them() {
        let found = with(0.9, OLD);
        assert_eq!((found[0].kind, found[0].statement), ("plan_change", 9));
        for part in [
            "from `Index Scan using orders_a on orders` to `Seq Scan on orders`",
            "right after `DROP INDEX orders_a`",
            "takes 9.0 ms instead of 100 µs",
        ] {
            assert!(found[0].sentence.contains(part), "{}", found[0].sentence);
        }
    }

    #[test]
    fn a_plan_that_is_as_good_or_the_first_is_no_finding() {
        assert!(with(0.01, OLD).is_empty());
        assert!(with(0.9, "").iter().all(|finding| finding.kind != "plan_change"));
    }
}
