//! The points as a table for the terminal.

use std::fmt::Write;

use crate::results::LockPoint;

/// A number of nanoseconds in three digits or so, with its unit.
pub fn time(ns: f64) -> String {
    match ns {
        n if n < 1e3 => format!("{n:.1} ns"),
        n if n < 1e6 => format!("{:.1} µs", n / 1e3),
        n if n < 1e9 => format!("{:.1} ms", n / 1e6),
        n => format!("{:.1} s", n / 1e9),
    }
}

/// A block for each number of threads, then the hand-overs.
pub fn render(points: &[LockPoint]) -> String {
    let mut out = String::new();
    let mut threads: Vec<u32> =
        points.iter().filter(|p| p.hand_over_ns.is_none()).map(|p| p.threads).collect();
    threads.sort_unstable();
    threads.dedup();
    for n in threads {
        // Writing to a string does not fail, here and below.
        let _ = writeln!(
            out,
            "\n{:<20}{:>8}{:>8}{:>12}{:>12}{:>11}{:>13}{:>9}",
            format!("{n} thread{}", if n == 1 { "" } else { "s" }),
            "writers",
            "hold",
            "M ops/s",
            "ns/op",
            "wait",
            "longest",
            "evenness",
        );
        for p in points.iter().filter(|p| p.threads == n && p.hand_over_ns.is_none()) {
            line(&mut out, p);
        }
    }
    let _ = writeln!(out, "\n{:<28}{:>12}", "one hand-over", "time");
    for p in points {
        if let Some(ns) = p.hand_over_ns {
            let _ = writeln!(out, "{:<28}{:>12}", p.primitive, time(ns));
        }
    }
    out.push_str(
        "\nns/op: time of one operation as its thread sees it; a million operations take as many \
         milliseconds.\nwait, longest: from asking to having, clock included. evenness: slowest \
         thread over fastest.\n",
    );
    out
}

fn line(out: &mut String, p: &LockPoint) {
    let parameter = |name| p.parameters.get(name).copied().unwrap_or(0.0);
    let _ = writeln!(
        out,
        "{:<20}{:>7}%{:>8}{:>12.2}{:>12.1}{:>11}{:>13}{:>8.0}%",
        p.primitive,
        parameter("writers"),
        parameter("hold_ns"),
        p.operations as f64 / p.seconds / 1e6,
        p.mean_ns,
        time(p.wait_mean_ns.unwrap_or(f64::NAN)),
        time(p.longest_ns as f64),
        p.evenness.unwrap_or(f64::NAN) * 100.0,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_point_has_a_line() {
        let point = |primitive: &str, hand_over_ns| LockPoint {
            primitive: primitive.to_owned(),
            threads: 2,
            operations: 3_000_000,
            seconds: 1.5,
            mean_ns: 12.34,
            longest_ns: 1_500_000,
            hand_over_ns,
            ..LockPoint::default()
        };
        let table = render(&[point("add-one", None), point("turn-line", Some(61.2))]);
        let add = table.lines().find(|l| l.starts_with("add-one")).unwrap();
        assert!(add.contains("2.00") && add.contains("12.3") && add.contains("1.5 ms"), "{add}");
        assert!(table.lines().any(|l| l.starts_with("turn-line") && l.contains("61.2 ns")));
    }
}
