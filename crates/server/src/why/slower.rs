//! Statements that read many more pages an execution than they did: their plan changed, or their data.

use super::facts::{Facts, change};
use super::finding::{Finding, short, time};
use super::plan_change::changed;
use super::stale_statistics::stale_table;
use crate::history::slice::{Event, StatementSum};

/// So many times longer, and so many times the pages.
const TIMES: u64 = 3;
/// Executions on both sides.
const CALLS: u64 = 3;

/// A statement that has become slower; times are nanoseconds on a processor an execution.
pub(super) struct Slower<'f> {
    pub statement: &'f StatementSum,
    pub before_ns: u64,
    pub now_ns: u64,
    pub pages_before: u64,
    pub pages: u64,
    pub lost_ns: u64,
}

/// Those that were faster earlier in the range, or before it.
pub(super) fn slower<'f>(facts: &'f Facts) -> Vec<Slower<'f>> {
    let one = |statement: &'f StatementSum| {
        let (before, parts) = facts.executions(statement.id);
        let (earlier, later) = change(before, &parts, CALLS)?;
        let (before_ns, now_ns) = (earlier.mean_ns(), later.mean_ns());
        let (pages_before, pages) = (earlier.mean_pages(), later.mean_pages());
        let is_slower = now_ns > before_ns * TIMES && pages > (pages_before + 1) * TIMES;
        let lost_ns = (now_ns - before_ns.min(now_ns)) * later.count;
        is_slower.then_some(Slower { statement, before_ns, now_ns, pages_before, pages, lost_ns })
    };
    facts.statements.iter().filter_map(one).collect()
}

pub(super) fn find(facts: &Facts, found: &mut Vec<Finding>) {
    for one in slower(facts) {
        if stale_table(facts, &one.statement.text).is_some()
            || changed(facts, one.statement.id).is_some()
        {
            continue;
        }
        let Slower { statement, before_ns, now_ns, pages_before, pages, lost_ns } = one;
        let is_suspect =
            |event: &&Event| matches!(&*event.kind, "definition" | "analyze" | "setting");
        let events = facts.before.events.iter().chain(&facts.total.events);
        let suspect = events.filter(is_suspect).last();
        let since = suspect.map_or_else(String::new, |e| format!(", since {}", short(&e.text)));
        let sentence = format!(
            "{} takes {} instead of {}, and reads {pages} pages instead of {pages_before}{since}.",
            short(&statement.text),
            time(now_ns),
            time(before_ns)
        );
        let evidence =
            format!("{} calls, {} more on a processor than before", statement.calls, time(lost_ns));
        let advice = match suspect {
            Some(event) if &*event.kind == "definition" => {
                "See whether the change took away an index that it used; EXPLAIN shows its plan now."
            }
            _ => {
                "EXPLAIN shows its plan now; ANALYZE its tables, or create the index that it lacks."
            }
        };
        let finding = Finding::by("slower_plan", statement, lost_ns);
        found.push(finding.suffered_by(Some(statement)).saying(sentence, evidence, advice));
    }
}

#[cfg(test)]
mod tests {
    use base::usage::Use;

    use super::super::explain;
    use super::super::facts::tests::{healthy, statement, ten_seconds, used};
    use super::*;

    fn with(pages: u64) -> Vec<Finding> {
        let before = ten_seconds(|slice| {
            healthy(slice);
            statement(slice, 9, "SELECT * FROM orders WHERE a = $1", 100, 0.01, 0.0);
            used(slice, Use::BufferHit, 400);
        });
        let now = ten_seconds(|slice| {
            healthy(slice);
            statement(slice, 9, "SELECT * FROM orders WHERE a = $1", 100, 0.9, 0.0);
            used(slice, Use::BufferHit, pages);
            if slice.at == 101_000_000 {
                let text = "DROP INDEX orders_a".into();
                slice.events.push(Event { at: slice.at, kind: "definition".into(), pid: 3, text });
            }
        });
        explain(&Facts::of(&now, &before))
    }

    #[test]
    fn a_statement_that_lost_its_index_is_named_with_the_change() {
        let found = with(50_000);
        assert_eq!((found[0].kind, found[0].statement), ("slower_plan", 9));
        assert!(found[0].sentence.contains("since `DROP INDEX orders_a`"), "{}", found[0].sentence);
    }

    #[test]
    fn one_that_only_gets_less_of_the_processor_is_not() {
        assert!(with(400).is_empty());
    }
}
