//! Scans of whole tables for a few rows, which an index would find.

use super::facts::Facts;
use super::finding::{Finding, percent, short, time};
use crate::history::slice::{StatementSum, TableNote};

/// Rows read a scan.
const ROWS: u64 = 1000;
/// Rows read a second.
const RATE: f64 = 10_000.0;
/// Of the rows read, so many are returned at most.
const RETURNED: f64 = 0.05;
/// Executions, so that one report is none of these.
const CALLS: u64 = 3;

/// Whether it looks for some of a table's rows.
fn looks_for(statement: &StatementSum, read: u64) -> bool {
    let text = statement.text.to_ascii_lowercase();
    let returned = statement.rows as f64 / statement.calls.max(1) as f64;
    statement.calls >= CALLS && text.contains("where") && returned <= read as f64 * RETURNED
}

pub(super) fn find(facts: &Facts, found: &mut Vec<Finding>) {
    let scanned = |t: &&TableNote| {
        t.scans > 0 && t.scanned / t.scans >= ROWS && t.scanned as f64 >= RATE * facts.seconds()
    };
    for table in facts.total.tables.iter().filter(scanned) {
        let (scans, each) = (table.scans, table.scanned / table.scans);
        let of_table = facts.statements_of(table);
        let mut guilty = of_table.into_iter().filter(|s| looks_for(s, each));
        let Some(statement) = guilty.find(|s| s.calls <= scans * 3) else { continue };
        let returned = statement.rows as f64 / statement.calls.max(1) as f64;
        let lost_ns = statement.busy_ns();
        let sentence = format!(
            "{} reads all of {} ({each} rows) to find {returned:.0}, {} times.",
            short(&statement.text),
            table.name,
            statement.calls
        );
        let evidence = format!(
            "{scans} scans of {} read {} rows; the statement took {} on a processor, {} of all statements' time",
            table.name,
            table.scanned,
            time(lost_ns),
            percent(lost_ns as f64 / facts.work_ns().max(1) as f64)
        );
        let advice =
            format!("Create an index on the columns of {} in its WHERE clause.", table.name);
        let finding = Finding::by("sequential_scan", statement, lost_ns);
        found.push(finding.suffered_by(Some(statement)).saying(sentence, evidence, advice));
    }
}

#[cfg(test)]
mod tests {
    use super::super::explain;
    use super::super::facts::tests::{healthy, statement, ten_seconds};
    use super::*;

    fn with(text: &str, scanned: u64) -> Vec<Finding> {
        explain(&Facts::of(
            &ten_seconds(|slice| {
                healthy(slice);
                statement(slice, 9, text, 50, 0.9, 0.0);
                slice.tables.push(TableNote {
                    name: "orders".into(),
                    scans: 50,
                    scanned,
                    ..TableNote::new(5, 6)
                });
            }),
            &[],
        ))
    }

    #[test]
    fn the_statement_that_wants_an_index_is_named() {
        let found = with("SELECT * FROM orders WHERE customer = $1", 5_000_000);
        assert_eq!((found[0].kind, found[0].statement), ("sequential_scan", 9));
        assert!(found[0].sentence.contains("(100000 rows) to find 1"), "{}", found[0].sentence);
    }

    #[test]
    fn small_tables_and_whole_ones_are_no_findings() {
        assert!(with("SELECT * FROM orders WHERE customer = $1", 5000).is_empty());
        assert!(with("SELECT * FROM others WHERE customer = $1", 5_000_000).is_empty());
    }
}
