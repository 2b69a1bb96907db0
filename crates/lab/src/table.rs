//! Points as a table in text: a row for each number of clients, a column for each target.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::results::Point;

/// Tables of transactions a second, one for each workload and protocol in their order of appearance;
/// each cell is the median of its repetitions, `-` where a point is missing, `n/a` where a target has
/// none at all. With `base`, ratios to that target stand beside.
pub fn throughput(points: &[Point], base: Option<&str>) -> String {
    let mut groups: Vec<(&str, &str)> = Vec::new();
    let mut targets: Vec<&str> = Vec::new();
    for point in points {
        let group = (point.workload.as_str(), point.protocol.as_str());
        if !groups.contains(&group) {
            groups.push(group);
        }
        if !targets.contains(&point.target.as_str()) {
            targets.push(&point.target);
        }
    }
    let mut out = String::new();
    for group in groups {
        let chosen = points.iter().filter(|p| (p.workload.as_str(), p.protocol.as_str()) == group);
        let mut cells: BTreeMap<(u32, &str), Vec<f64>> = BTreeMap::new();
        for point in chosen {
            cells.entry((point.clients, &point.target)).or_default().push(point.tps);
        }
        let _ = writeln!(out, "\n{}, {}: transactions a second", group.0, group.1);
        grid(&mut out, &targets, &cells, base);
    }
    out
}

fn grid(
    out: &mut String,
    targets: &[&str],
    cells: &BTreeMap<(u32, &str), Vec<f64>>,
    base: Option<&str>,
) {
    let width = targets.iter().map(|t| t.chars().count()).max().unwrap_or(0).max(9) + 2;
    let ratio = base.filter(|b| targets.contains(b));
    let _ = write!(out, "{:>8}", "clients");
    for target in targets {
        let _ = write!(out, "{target:>width$}");
        if ratio.is_some_and(|b| b != *target) {
            let _ = write!(out, "{:>8}", "ratio");
        }
    }
    out.push('\n');
    let mut clients: Vec<u32> = cells.keys().map(|(clients, _)| *clients).collect();
    clients.dedup();
    for clients in clients {
        let tps = |target: &str| cells.get(&(clients, target)).map(|values| median(values));
        let of_base = ratio.and_then(tps);
        let _ = write!(out, "{clients:>8}");
        for target in targets {
            let value = tps(target);
            let none = if cells.keys().any(|(_, t)| t == target) { "-" } else { "n/a" };
            let _ = write!(out, "{:>width$}", value.map_or(none.to_owned(), |v| format!("{v:.0}")));
            if ratio.is_some_and(|b| b != *target) {
                let ratio = value.zip(of_base).map(|(v, b)| format!("{:.2}", v / b));
                let _ = write!(out, "{:>8}", ratio.unwrap_or_else(|| "-".to_owned()));
            }
        }
        out.push('\n');
    }
}

/// The middle value, or the mean of the two in the middle; 0 of none.
fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        n if n % 2 == 1 => values[n / 2],
        n => f64::midpoint(values[n / 2 - 1], values[n / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_ratios() {
        let point = |target: &str, clients, tps| Point {
            target: target.to_owned(),
            workload: "w".to_owned(),
            protocol: "simple".to_owned(),
            clients,
            tps,
            ..Point::default()
        };
        let points =
            [point("a", 1, 10.0), point("a", 1, 30.0), point("b", 1, 50.0), point("b", 10, 7.0)];
        let expected = "\nw, simple: transactions a second\n clients          a          b   ratio\n       1         20         50    2.50\n      10          -          7       -\n";
        assert_eq!(throughput(&points, Some("a")), expected);
        let mut other = point("b", 1, 3.0);
        other.protocol = "prepared".to_owned();
        let text = throughput(&[&points[..], &[other]].concat(), None);
        let expected = "\nw, prepared: transactions a second\n clients          a          b\n       1        n/a          3\n";
        assert!(text.ends_with(expected), "{text}");
    }
}
