//! The work of a plan: a measure that a loaded machine does not change.

use super::client::Client;

/// Rows that the operators of a plan handled in one run: what they gave and what their filters removed.
pub fn work_of(client: &mut Client, run: &str) -> f64 {
    let sql = format!("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) {run}");
    let plan = client.query(&sql).expect("the connection holds");
    let number = |line: &str, before: &str| -> Option<f64> {
        let (_, rest) = line.split_once(before)?;
        rest.split(|c: char| !c.is_ascii_digit() && c != '.').next()?.parse().ok()
    };
    let (mut rows, mut loops) = (0.0, 1.0);
    for line in plan.rows.iter().filter_map(|row| row.first()?.as_deref()) {
        if let (Some(given), Some(times)) = (number(line, "actual rows="), number(line, "loops=")) {
            loops = times;
            rows += given * times;
        } else if line.contains("Rows Removed by") {
            rows += number(line, ": ").unwrap_or(0.0) * loops;
        }
    }
    rows
}
