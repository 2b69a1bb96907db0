//! Tables that changed much since ANALYZE, and a statement on them that has become slower since.

use super::facts::Facts;
use super::finding::{Cause, Finding, short, time};
use super::slower::{Slower, slower};
use crate::history::slice::TableNote;

/// Rows changed since ANALYZE, beside those that live.
const PART: f64 = 0.5;
/// And at least.
const ROWS: u64 = 1000;

/// Whether what is known of a table's rows says little of those it has.
pub(super) fn is_stale(table: &TableNote) -> bool {
    table.modified >= ROWS && table.modified as f64 >= table.live as f64 * PART
}

/// The table with stale statistics that a statement names.
pub(super) fn stale_table<'f>(facts: &'f Facts, text: &str) -> Option<&'f TableNote> {
    let known = facts.total.tables.iter().chain(&facts.before.tables);
    let mut stale = known.filter(|t| is_stale(t) && super::facts::names(text, &t.name));
    stale.find(|table| {
        // A later note that is not stale counts.
        let mut later = facts.total.tables.iter();
        later.all(|t| (t.database, t.oid) != (table.database, table.oid) || is_stale(t))
    })
}

pub(super) fn find(facts: &Facts, found: &mut Vec<Finding>) {
    for Slower { statement, before_ns, now_ns, lost_ns, .. } in slower(facts) {
        let Some(table) = stale_table(facts, &statement.text) else { continue };
        let sentence = format!(
            "{} takes {} instead of {}: {} of {} rows of {} changed since its last ANALYZE.",
            short(&statement.text),
            time(now_ns),
            time(before_ns),
            table.modified,
            table.live,
            table.name
        );
        let evidence = format!(
            "{} changed rows since ANALYZE, {} calls, {} more than before",
            table.modified,
            statement.calls,
            time(lost_ns)
        );
        let advice = format!("ANALYZE {};", table.name);
        let mut finding = Finding::new("stale_statistics", Cause::Object, &*table.name, lost_ns)
            .suffered_by(Some(statement))
            .saying(sentence, evidence, advice);
        finding.statement = statement.id;
        found.push(finding);
    }
}

#[cfg(test)]
mod tests {
    use base::usage::Use;

    use super::super::explain;
    use super::super::facts::tests::{healthy, statement, ten_seconds, used};
    use super::*;

    fn with(modified: u64) -> Vec<Finding> {
        let second = |slice: &mut crate::history::slice::Slice, ms: f64, pages| {
            healthy(slice);
            statement(slice, 9, "SELECT * FROM orders WHERE a = $1", 10, ms / 100.0, 0.0);
            used(slice, Use::BufferHit, pages);
        };
        let before = ten_seconds(|slice| second(slice, 1.0, 100));
        let now = ten_seconds(|slice| {
            second(slice, 80.0, 50_000);
            slice.tables.push(TableNote {
                name: "orders".into(),
                live: 10_000,
                modified,
                ..TableNote::new(5, 6)
            });
        });
        explain(&Facts::of(&now, &before))
    }

    #[test]
    fn the_table_is_named_once() {
        let found = with(9000);
        assert_eq!(
            (found.len(), found[0].kind, &*found[0].name),
            (1, "stale_statistics", "orders")
        );
    }

    #[test]
    fn a_statement_that_is_slower_for_another_reason_is_found_as_such() {
        let found = with(10);
        assert_eq!((found.len(), found[0].kind), (1, "slower_plan"));
    }
}
