//! Plots of lock primitives, of the simulator and of the incident.

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

/// One part of one run of the incident.
pub struct IncidentPart<'a> {
    /// Its limit, and what tells it from others with that limit: its settings, its run.
    pub name: String,
    /// Its seconds.
    pub seconds: Vec<&'a IncidentSecond>,
    limit: i64,
    part: &'a str,
    run: usize,
}

/// The parts by limit. Files of several runs are told apart by their seconds, which begin anew.
#[must_use]
pub fn incident_parts(records: &[Record]) -> Vec<IncidentPart<'_>> {
    let mut parts: Vec<IncidentPart<'_>> = Vec::new();
    for record in records {
        let Record::Second(second) = record else { continue };
        let is_like =
            |p: &&mut IncidentPart<'_>| (p.limit, p.part) == (second.limit, second.part.as_str());
        let mut before = parts.iter_mut().filter(is_like).max_by_key(|p| p.run);
        match &mut before {
            Some(part) if part.seconds.last().is_some_and(|l| l.second < second.second) => {
                part.seconds.push(second);
            }
            other => {
                let run = other.as_ref().map_or(1, |part| part.run + 1);
                let (limit, part) = (second.limit, second.part.as_str());
                let seconds = vec![second];
                parts.push(IncidentPart { name: String::new(), seconds, limit, part, run });
            }
        }
    }
    parts.sort_by_key(|p| (p.limit, p.run));
    let runs = |p: &IncidentPart<'_>| {
        parts.iter().filter(|o| (o.limit, o.part) == (p.limit, p.part)).count()
    };
    let names: Vec<String> = parts
        .iter()
        .map(|p| {
            let mut name = limit_name(p.limit);
            if !p.part.is_empty() && p.part != format!("limit {}", p.limit) {
                name = format!("{}, {name}", p.part);
            }
            if runs(p) > 1 { format!("{name}, run {}", p.run) } else { name }
        })
        .collect();
    parts.iter_mut().zip(names).for_each(|(part, name)| part.name = name);
    parts
}

/// The parts' colours: those that -1, 0 and the default have always, and others for further parts.
fn part_colours(parts: &[IncidentPart<'_>]) -> Vec<usize> {
    let mut used: Vec<usize> = Vec::new();
    for part in parts {
        let wanted = match part.limit {
            -1 => 1,
            0 => 2,
            _ => 0,
        };
        let free = |colour: &usize| !used.contains(colour);
        let other = || (3..COLOURS).find(free).unwrap_or(used.len() % COLOURS);
        let colour = if free(&wanted) { wanted } else { other() };
        used.push(colour);
    }
    used
}

/// One plot for each value that changes.
#[must_use]
pub fn incident(records: &[Record]) -> Vec<Plot> {
    let parts = incident_parts(records);
    let colours = part_colours(&parts);
    let mut out = Vec::new();
    for (name, title, measure) in INCIDENT {
        let line = |(part, colour): (&IncidentPart<'_>, &usize)| {
            let value = |s: &&IncidentSecond| {
                let y = *s.values.get(name)?;
                Some(Dot { x: f64::from(s.second), y, range: None })
            };
            let dots = part.seconds.iter().filter_map(value).collect();
            let (name, colour) = (part.name.clone(), *colour);
            Line { name, colour, joined: true, dots, ..Line::default() }
        };
        let lines: Vec<Line> = parts.iter().zip(&colours).map(line).collect();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_and_parts_with_one_limit_are_lines_of_their_own() {
        let second = |part: &str, limit, second| {
            let part = part.to_owned();
            Record::Second(IncidentSecond { part, limit, second, ..IncidentSecond::default() })
        };
        let run = || {
            [("limit -1", -1), ("limit 16", 16), ("as it is", 16)]
                .into_iter()
                .flat_map(move |(part, limit)| (1..=3).map(move |s| second(part, limit, s)))
        };
        let one: Vec<Record> = run().collect();
        let names = |records: &[Record]| -> Vec<String> {
            incident_parts(records).into_iter().map(|p| p.name).collect()
        };
        let expected = ["never queue (-1)", "at most 16 pass", "as it is, at most 16 pass"];
        assert_eq!(names(&one), expected);
        let two: Vec<Record> = run().chain(run()).collect();
        let parts = incident_parts(&two);
        assert_eq!(parts.len(), 6);
        assert!(parts.iter().all(|p| p.seconds.len() == 3));
        let names = names(&two);
        assert!(names.contains(&"as it is, at most 16 pass, run 2".to_owned()), "{names:?}");
        let mut colours = part_colours(&parts);
        colours.sort_unstable();
        colours.dedup();
        assert_eq!(colours.len(), 6.min(COLOURS));
    }
}
