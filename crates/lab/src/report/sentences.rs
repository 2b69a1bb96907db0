//! Findings in plain sentences.

use crate::fit::analysis::Analysis;
use crate::fit::text::number;

use super::axis::Measure;
use super::chart::Dot;
use super::gather::{Count, Curve, Load, Results};
use super::others::{IncidentPart, incident_parts, lock_points};
use super::sweeps::ratios;
use crate::results::{IncidentSecond, Record};

/// A server's name as one writes it.
#[must_use]
pub fn title(name: &str) -> String {
    match name.to_lowercase().as_str() {
        "threadgres" => "Threadgres".into(),
        "postgres" | "postgresql" | "pg" => "PostgreSQL".into(),
        "mariadb" => "MariaDB".into(),
        "pgbouncer" => "PgBouncer".into(),
        "null" | "null-server" => "do-nothing server".into(),
        _ => name.to_owned(),
    }
}

/// The sentence on top, and those below it.
#[must_use]
pub fn all(results: &Results) -> (String, Vec<String>) {
    let mut out: Vec<String> = results.loads.iter().filter_map(|l| load(results, l)).collect();
    out.extend(incident(&results.records));
    out.extend(simulated(&results.records));
    out.extend(locks(&results.records));
    if out.is_empty() {
        return ("Nothing was measured.".into(), out);
    }
    let first = out.remove(0);
    (first, out)
}

/// What one load showed: the main server against the base, else the best of all.
fn load(results: &Results, load: &Load) -> Option<String> {
    let compared = results.base().and_then(|base| against(load, base));
    let name = load.name();
    if let Some(sentence) = compared {
        return Some(format!("{sentence} ({name})."));
    }
    let counts = load.curves.iter().flat_map(|c| c.counts.iter().map(move |n| (c, n)));
    let (curve, best) = counts.max_by(|a, b| a.1.mean().total_cmp(&b.1.mean()))?;
    Some(format!(
        "{} does most at {}: {} transactions a second ({name}).",
        title(&curve.target),
        clients(best.clients),
        Measure::Rate.show(best.mean())
    ))
}

fn clients(n: u32) -> String {
    if n == 1 { "1 client".into() } else { format!("{n} clients") }
}

fn against(load: &Load, base: &str) -> Option<String> {
    let all = ratios(load, base);
    let named = |word: &str| all.iter().find(|(c, _)| c.target.to_lowercase().contains(word));
    let serious = all.iter().find(|(c, _)| !c.target.to_lowercase().contains("null"));
    let (curve, dots) = named("threadgres").or(serious).or(all.first())?;
    let (first, last) = (dots.first()?, dots.last()?);
    let (name, base) = (title(&curve.target), title(base));
    let mut sentence =
        format!("{name} reaches {} {base}’s throughput at {}", times(last), clients(last.x as u32));
    if first.x < last.x {
        sentence.push_str(&format!(", {} at {}", times(first), clients(first.x as u32)));
    }
    Some(sentence)
}

/// A ratio in words; one that the repetitions' scatter could explain is given as its range.
fn times(dot: &Dot) -> String {
    let text = if dot.y >= 10.0 { format!("{:.0}", dot.y) } else { format!("{:.1}", dot.y) };
    match dot.range {
        Some((low, high)) if low <= 1.0 && high >= 1.0 => {
            format!("between {low:.1} and {high:.1} times")
        }
        _ => format!("{text} times"),
    }
}

fn incident(records: &[Record]) -> Option<String> {
    let say = |part: &IncidentPart<'_>| {
        let value = |s: &&IncidentSecond| s.values.get("longest_insert_ms").copied().unwrap_or(0.0);
        let ms = part.seconds.iter().map(value).fold(0.0, f64::max);
        format!("{} with the limit “{}”", Measure::Microseconds.show(ms * 1e3), part.name)
    };
    let parts = incident_parts(records);
    (!parts.is_empty()).then(|| {
        let parts: Vec<String> = parts.iter().map(say).collect();
        format!("In the incident an insert took at most {}.", parts.join(", "))
    })
}

fn simulated(records: &[Record]) -> Option<String> {
    let points =
        records.iter().filter_map(|r| if let Record::Simulated(p) = r { Some(p) } else { None });
    let mut machines: Vec<&str> = Vec::new();
    let (mut count, mut cores) = (0, 0);
    for point in points {
        count += 1;
        cores = cores.max(point.cores);
        if !machines.contains(&point.machine.as_str()) {
            machines.push(&point.machine);
        }
    }
    (count > 0).then(|| {
        format!(
            "{count} points were simulated on {} with up to {cores} cores.",
            machines.join(", ")
        )
    })
}

fn locks(records: &[Record]) -> Option<String> {
    let hand_over = lock_points(records)
        .filter_map(|p| p.hand_over_ns.map(|ns| (p.primitive.trim_start_matches("turn-"), ns)));
    let fastest = hand_over.min_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(format!(
        "The cheapest hand-over between two threads, {}, takes {} ns.",
        fastest.0,
        number(fastest.1.round())
    ))
}

/// What the fits of a load say and can't say; warnings that all its curves share come once.
#[must_use]
pub fn warnings(analyses: &[(&Curve, Analysis)]) -> Vec<String> {
    let mut out: Vec<(String, Vec<String>)> = Vec::new();
    for (curve, analysis) in analyses {
        for warning in &analysis.warnings {
            match out.iter_mut().find(|(text, _)| *text == warning.text) {
                Some((_, names)) => names.push(title(&curve.target)),
                None => out.push((warning.text.clone(), vec![title(&curve.target)])),
            }
        }
    }
    let all = analyses.len();
    out.into_iter()
        .map(
            |(text, names)| {
                if names.len() == all { text } else { format!("{}: {text}", names.join(", ")) }
            },
        )
        .collect()
}

/// Whether and where transactions failed.
#[must_use]
pub fn errors(load: &Load) -> Vec<String> {
    let failed = |curve: &Curve| {
        let sum: u64 = curve.counts.iter().map(|c: &Count| c.errors).sum();
        (sum > 0).then(|| format!("{}: {sum} transactions failed.", title(&curve.target)))
    };
    load.curves.iter().filter_map(failed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Point;

    fn point(target: &str, clients: u32, tps: f64) -> Record {
        Record::Point(Point {
            target: target.into(),
            workload: "select-only".into(),
            protocol: "prepared".into(),
            driver: "lab".into(),
            clients,
            tps,
            ..Point::default()
        })
    }

    #[test]
    fn the_top_sentence_compares_with_postgresql() {
        let results = Results::new(vec![
            point("threadgres", 1, 110.0),
            point("threadgres", 100, 340.0),
            point("postgres", 1, 100.0),
            point("postgres", 100, 100.0),
            point("null", 100, 900.0),
        ]);
        let (top, rest) = all(&results);
        assert_eq!(
            top,
            "Threadgres reaches 3.4 times PostgreSQL’s throughput at 100 clients, 1.1 times at \
             1 client (select-only, prepared)."
        );
        assert!(rest.is_empty());
    }

    #[test]
    fn scatter_is_no_finding() {
        let results = Results::new(vec![
            point("a", 1, 90.0),
            point("a", 1, 120.0),
            point("postgres", 1, 100.0),
            point("postgres", 1, 101.0),
        ]);
        assert!(all(&results).0.contains("between 0.9 and 1.2 times"), "{}", all(&results).0);
        let alone = Results::new(vec![point("a", 1, 90.0), point("a", 2, 170.0)]);
        assert!(all(&alone).0.starts_with("a does most at 2 clients: 170 transactions"));
        assert_eq!(all(&Results::new(vec![])).0, "Nothing was measured.");
    }
}
