//! Plots of lock primitives, of the simulator and of the incident.

use std::collections::BTreeMap;

use crate::fit::text::number;
use crate::results::{IncidentSecond, LockPoint, Record, SimulatedPoint};

use super::Plot;
use super::axis::{Axis, Measure};
use super::chart::{Chart, Dot, Line};
use super::gather::{mean, range, slug};
use super::theme::COLOURS;

fn axis(label: &str, measure: Measure, log: bool) -> Axis {
    Axis { label: label.to_owned(), measure, log }
}

/// Lines in the order in which their names first come.
fn group<'a, T: 'a>(
    all: impl IntoIterator<Item = &'a T>,
    name: impl Fn(&T) -> String,
) -> Vec<(String, Vec<&'a T>)> {
    let mut out: Vec<(String, Vec<&T>)> = Vec::new();
    for one in all {
        let name = name(one);
        match out.iter_mut().find(|(other, _)| *other == name) {
            Some((_, list)) => list.push(one),
            None => out.push((name, vec![one])),
        }
    }
    out
}

fn lines<'a, T: 'a>(
    all: &[&'a T],
    name: impl Fn(&T) -> String,
    dot: impl Fn(&T) -> Dot,
) -> Vec<Line> {
    let groups = group(all.iter().copied(), name);
    let line = |(i, (name, list)): (usize, (String, Vec<&'a T>))| {
        let dots = merged(list.into_iter().map(&dot).collect());
        Line {
            name,
            colour: i % COLOURS,
            dashed: i >= COLOURS,
            marked: true,
            joined: true,
            dots,
            ..Line::default()
        }
    };
    groups.into_iter().enumerate().map(line).collect()
}

/// One dot for each place, by rising place: several runs of the same are averaged.
fn merged(mut dots: Vec<Dot>) -> Vec<Dot> {
    dots.sort_by(|a, b| a.x.total_cmp(&b.x));
    let same = dots.chunk_by(|a, b| a.x == b.x);
    same.map(|all| {
        let ends: Vec<f64> =
            all.iter().flat_map(|d| d.range.map_or([d.y, d.y], |r| [r.0, r.1])).collect();
        let ys: Vec<f64> = all.iter().map(|d| d.y).collect();
        let several = all.len() > 1 || all[0].range.is_some();
        Dot { x: all[0].x, y: mean(&ys), range: range(&ends).filter(|_| several) }
    })
    .collect()
}

/// Whether values lie so far apart that small ones would not be seen on an even axis.
fn far_apart(lines: &[Line]) -> bool {
    let ys = || lines.iter().flat_map(|l| &l.dots).map(|d| d.y).filter(|y| *y > 0.0);
    ys().fold(0.0, f64::max) > 20.0 * ys().fold(f64::INFINITY, f64::min)
}

/// The lock points of the records.
pub fn lock_points(records: &[Record]) -> impl Iterator<Item = &LockPoint> {
    records.iter().filter_map(|r| if let Record::Lock(point) = r { Some(point) } else { None })
}

/// One plot for each family of primitives that can be compared.
#[must_use]
pub fn locks(records: &[Record]) -> Vec<Plot> {
    let measured = lock_points(records).filter(|p| p.hand_over_ns.is_none() && p.mean_ns > 0.0);
    let plot = |(family, points): (String, Vec<&LockPoint>)| {
        let dot = |p: &LockPoint| {
            let rate = |ns: f64| f64::from(p.threads) * 1e9 / ns;
            let (low, high) = p.quartiles_ns;
            let range = (low > 0.0 && high > low).then(|| (rate(high), rate(low)));
            Dot { x: f64::from(p.threads), y: rate(p.mean_ns), range }
        };
        let lines = lines(&points, |p| p.primitive.clone(), dot);
        Plot {
            id: format!("locks-{}", slug(&family)),
            title: family,
            caption: "Operations of all threads together; bars reach over the quartiles of the \
                      rounds. Threads beyond the machine's processors share them."
                .into(),
            drawing: Box::new(Chart {
                x: axis("threads", Measure::Count, true),
                y: axis("operations a second", Measure::Rate, far_apart(&lines)),
                lines,
                rule: None,
                beyond: None,
                ceiling: None,
            }),
        }
    };
    group(measured, family).into_iter().map(plot).collect()
}

fn family(p: &LockPoint) -> String {
    let prefix = p.primitive.split('-').next().unwrap_or_default();
    match prefix {
        "add" | "load" => return "Counters".into(),
        "pin" => return "Pinning and unpinning a buffer".into(),
        _ => (),
    }
    let says: Vec<String> = p
        .parameters
        .iter()
        .map(|(name, value)| match name.as_str() {
            "writers" => format!("{} % writers", number(*value)),
            "hold_ns" if *value == 0.0 => "released at once".into(),
            "hold_ns" => format!("held for {} ns", number(*value)),
            other => format!("{other} {}", number(*value)),
        })
        .rev()
        .collect();
    if says.is_empty() { "Locks".into() } else { format!("Locks, {}", says.join(", ")) }
}

/// One plot for each machine and scenario.
#[must_use]
pub fn simulated(records: &[Record]) -> Vec<Plot> {
    let points = records
        .iter()
        .filter_map(|r| if let Record::Simulated(point) = r { Some(point) } else { None });
    let plot = |(name, points): (String, Vec<&SimulatedPoint>)| {
        let dot = |p: &SimulatedPoint| Dot { x: f64::from(p.cores), y: p.throughput, range: None };
        let lines = lines(&points, |p| p.variant.clone(), dot);
        Plot {
            id: format!("simulated-{}", slug(&name)),
            title: name,
            caption:
                "A model's output, not a measurement: cache line transfers and lock algorithms \
                      on a machine that is described by its costs. Both axes are logarithmic."
                    .into(),
            drawing: Box::new(Chart {
                x: axis("cores", Measure::Count, true),
                y: axis("operations a second", Measure::Rate, true),
                lines,
                rule: None,
                beyond: None,
                ceiling: None,
            }),
        }
    };
    let name = |p: &SimulatedPoint| format!("{} on {}", p.scenario, p.machine);
    group(points, name).into_iter().map(plot).collect()
}

/// What the incident's plots show, how it is called, and of what kind it is.
const INCIDENT: [(&str, &str, Measure); 10] = [
    ("transactions", "transactions in the second", Measure::Rate),
    ("longest_insert_ms", "longest insert, ms", Measure::Count),
    ("inserts_over_1s", "inserts that have waited over 1 s", Measure::Count),
    ("inserts_over_30s", "inserts that have waited over 30 s", Measure::Count),
    ("waits_buffer_content", "sessions that wait for a buffer's content", Measure::Count),
    ("waits_buffer_mapping", "sessions that wait for the buffer mapping", Measure::Count),
    ("waits_relation_extension", "sessions that wait to extend the table", Measure::Count),
    ("longest_latch_wait_ms", "longest wait for a latch, ms", Measure::Count),
    ("active_sessions", "active sessions", Measure::Count),
    ("locks_count", "heavyweight locks", Measure::Count),
];

/// How a limit is called.
#[must_use]
pub fn limit_name(limit: i64) -> String {
    match limit {
        i64::MIN..=-1 => "never queue (-1)".into(),
        0 => "strictly fair (0)".into(),
        n => format!("at most {n} pass"),
    }
}

/// One plot for each value that changes.
#[must_use]
pub fn incident(records: &[Record]) -> Vec<Plot> {
    let seconds: Vec<&IncidentSecond> = records
        .iter()
        .filter_map(|r| if let Record::Second(second) = r { Some(second) } else { None })
        .collect();
    let mut parts: BTreeMap<i64, Vec<&IncidentSecond>> = BTreeMap::new();
    for second in seconds {
        parts.entry(second.limit).or_default().push(second);
    }
    let colour = |limit: i64, i: usize| match limit {
        -1 => 1,
        0 => 2,
        _ if i < 3 => 0,
        _ => i % COLOURS,
    };
    let mut out = Vec::new();
    for (name, title, measure) in INCIDENT {
        let line = |(i, (limit, seconds)): (usize, (&i64, &Vec<&IncidentSecond>))| {
            let value = |s: &&IncidentSecond| {
                let y = *s.values.get(name)?;
                Some(Dot { x: f64::from(s.second), y, range: None })
            };
            let dots = seconds.iter().filter_map(value).collect();
            let colour = colour(*limit, i);
            Line { name: limit_name(*limit), colour, joined: true, dots, ..Line::default() }
        };
        let lines: Vec<Line> = parts.iter().enumerate().map(line).collect();
        if lines.iter().flat_map(|l| &l.dots).all(|d| d.y == 0.0) {
            continue;
        }
        out.push(Plot {
            id: format!("incident-{}", slug(name)),
            title: title[..1].to_uppercase() + &title[1..],
            caption: String::new(),
            drawing: Box::new(Chart {
                x: axis("seconds", Measure::Seconds, false),
                y: axis(title, measure, false),
                lines,
                rule: None,
                beyond: None,
                ceiling: None,
            }),
        });
    }
    out
}
