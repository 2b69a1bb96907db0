//! Plots of sweeps: throughput, latency, ratios, fits, waits.

use crate::fit::analysis::{Analysis, PREDICTED};

use super::Plot;
use super::axis::{Axis, Measure};
use super::bars::{Bars, Group, Key, Row};
use super::chart::{Chart, Dot, Line};
use super::gather::{Count, Curve, Load, mean, range};
use super::sentences::title;
use super::theme::GREY;

fn clients(x: &[&Curve]) -> Axis {
    let many = x.iter().flat_map(|c| &c.counts).any(|c| c.clients > 1);
    Axis { label: "clients".into(), measure: Measure::Count, log: many }
}

fn axis(label: &str, measure: Measure, log: bool) -> Axis {
    Axis { label: label.to_owned(), measure, log }
}

fn line(curve: &Curve, dots: Vec<Dot>) -> Line {
    Line {
        name: title(&curve.target),
        colour: curve.colour,
        marked: true,
        joined: true,
        dots,
        ..Line::default()
    }
}

/// What the bars at the points are.
const RANGES: &str =
    "Points are means of the repetitions, bars reach from the lowest to the highest.";

fn ranges(load: &Load) -> String {
    let several = load.curves.iter().flat_map(|c| &c.counts).any(|c| c.tps.len() > 1);
    if several { RANGES.to_owned() } else { "Each point was measured once.".to_owned() }
}

/// Transactions a second over clients.
#[must_use]
pub fn throughput(load: &Load) -> Plot {
    let dots = |curve: &Curve| {
        let dot = |c: &Count| Dot { x: f64::from(c.clients), y: c.mean(), range: c.range() };
        curve.counts.iter().map(dot).collect()
    };
    let lines = load.curves.iter().map(|c| line(c, dots(c))).collect();
    Plot {
        id: format!("throughput-{}", load.slug()),
        title: format!("Throughput, {}", load.name()),
        caption: ranges(load),
        drawing: Box::new(Chart {
            x: clients(&load.curves.iter().collect::<Vec<_>>()),
            y: axis("transactions a second", Measure::Rate, false),
            lines,
            rule: None,
            beyond: None,
            ceiling: None,
        }),
    }
}

/// Half and 99 % of transactions' latency over clients; none where it wasn't measured.
#[must_use]
pub fn latency(load: &Load) -> Option<Plot> {
    let mut lines = Vec::new();
    for curve in &load.curves {
        for (percentile, name) in [(50.0, "p50"), (99.0, "p99")] {
            let dot = |c: &Count| {
                let all = c.percentile(percentile)?;
                Some(Dot { x: f64::from(c.clients), y: mean(all).max(0.5), range: range(all) })
            };
            let dots: Vec<Dot> = curve.counts.iter().filter_map(dot).collect();
            if !dots.is_empty() {
                let name = format!("{} {name}", title(&curve.target));
                lines.push(Line { name, dashed: percentile > 50.0, ..line(curve, dots) });
            }
        }
    }
    (!lines.is_empty()).then(|| Plot {
        id: format!("latency-{}", load.slug()),
        title: format!("Latency, {}", load.name()),
        caption: format!(
            "Half of the transactions took no longer than p50 (whole lines), 99 of 100 no longer \
             than p99 (broken). The vertical axis is logarithmic. {}",
            ranges(load)
        ),
        drawing: Box::new(Chart {
            x: clients(&load.curves.iter().collect::<Vec<_>>()),
            y: axis("latency", Measure::Microseconds, true),
            lines,
            rule: None,
            beyond: None,
            ceiling: None,
        }),
    })
}

/// The quotient of two means, and its range by the extremes of both.
fn quotient(above: &Count, below: &Count) -> Dot {
    let range = match (above.range(), below.range()) {
        (Some(a), Some(b)) if b.0 > 0.0 && b.1 > 0.0 => Some((a.0 / b.1, a.1 / b.0)),
        _ => None,
    };
    Dot { x: f64::from(above.clients), y: above.mean() / below.mean(), range }
}

/// By how much each target's mean throughput exceeds the base's, where both were measured.
#[must_use]
pub fn ratios<'a>(load: &'a Load, base: &str) -> Vec<(&'a Curve, Vec<Dot>)> {
    let Some(below) = load.curve(base) else { return Vec::new() };
    let others = load.curves.iter().filter(|c| c.target != base);
    let dots = |curve: &'a Curve| {
        let dot = |c: &Count| {
            let other = below.counts.iter().find(|b| b.clients == c.clients)?;
            (other.mean() > 0.0).then(|| quotient(c, other))
        };
        (curve, curve.counts.iter().filter_map(dot).collect::<Vec<_>>())
    };
    others.map(dots).filter(|(_, dots)| !dots.is_empty()).collect()
}

/// The same as a plot, without what only sets a limit and would flatten all others.
#[must_use]
pub fn ratio(load: &Load, base: &str) -> Option<Plot> {
    let mut all = ratios(load, base);
    if all.iter().any(|(c, _)| c.colour != GREY) {
        all.retain(|(c, _)| c.colour != GREY);
    }
    if all.is_empty() {
        return None;
    }
    let name = title(base);
    let curves: Vec<&Curve> = all.iter().map(|(c, _)| *c).collect();
    Some(Plot {
        id: format!("ratio-{}", load.slug()),
        title: format!("Throughput against {name}, {}", load.name()),
        caption: format!(
            "Mean throughput divided by that of {name} at the same number of clients; the bars \
             divide the extremes of the repetitions."
        ),
        drawing: Box::new(Chart {
            x: clients(&curves),
            y: axis(&format!("times {name}"), Measure::Times, false),
            lines: all.into_iter().map(|(c, dots)| line(c, dots)).collect(),
            rule: Some(1.0),
            beyond: None,
            ceiling: None,
        }),
    })
}

/// Places in which a fitted curve is drawn.
const PLACES: u32 = 60;

/// The chosen models with their bands, over the points.
#[must_use]
pub fn fits(load: &Load, analyses: &[(&Curve, Analysis)]) -> Option<Plot> {
    let mut lines = Vec::new();
    let mut last = 1.0f64;
    let mut highest = 0.0f64;
    for (curve, analysis) in analyses {
        let Some(fit) = analysis.best() else { continue };
        let observations = &analysis.series.observations;
        last = observations.iter().map(|o| o.n).fold(last, f64::max);
        highest = observations.iter().map(|o| o.throughput).fold(highest, f64::max);
        let from = observations.first().map_or(1.0, |o| o.n);
        let to = last.max(PREDICTED[3]);
        let step = (to / from).powf(1.0 / f64::from(PLACES - 1));
        let places: Vec<f64> =
            (0..PLACES).map(|i| from * step.powi(i32::try_from(i).unwrap_or(0))).collect();
        let band = places.iter().map(|n| (*n, fit.profile.throughput(*n)));
        let known = |(n, q): (f64, crate::fit::interval::Quantity)| {
            q.is_known().then_some((n, q.low, q.high))
        };
        let dots = places.iter().map(|n| Dot { x: *n, y: fit.at(*n), range: None }).collect();
        lines.push(Line {
            name: format!("{} ({})", title(&curve.target), fit.model.name()),
            colour: curve.colour,
            joined: true,
            dots,
            band: band.filter_map(known).collect(),
            ..Line::default()
        });
        let dot =
            |o: &crate::fit::series::Observation| Dot { x: o.n, y: o.throughput, range: None };
        let dots = observations.iter().map(dot).collect();
        lines.push(Line { name: String::new(), marked: true, joined: false, ..line(curve, dots) });
    }
    if lines.is_empty() {
        return None;
    }
    Some(Plot {
        id: format!("fit-{}", load.slug()),
        title: format!("Fitted laws, {}", load.name()),
        caption: "Points are measured means, lines the law that the data speak for, shades the 95 % \
                  interval of the line. In the grey part nothing was measured: there the lines only \
                  continue the law."
            .into(),
        drawing: Box::new(Chart {
            x: axis("clients", Measure::Count, true),
            y: axis("transactions a second", Measure::Rate, false),
            lines,
            rule: None,
            beyond: (last < PREDICTED[3]).then_some(last),
            ceiling: Some(1.35 * highest),
        }),
    })
}

/// Events with bars of their own; the rest are added up.
const EVENTS: usize = 7;

/// Where the sessions' time went; none without any wait profile.
#[must_use]
pub fn waits(load: &Load) -> Option<Plot> {
    let events = events(load);
    let counts = |c: &Curve| c.counts.iter().any(|c| !c.waits.is_empty());
    let curves: Vec<&Curve> = load.curves.iter().filter(|c| counts(c)).collect();
    if curves.is_empty() {
        return None;
    }
    let colours = [1, 0, 4, 3, 6, 7, 5];
    let mut keys = vec![key("running", "f2")];
    for (i, (kind, event)) in events.iter().enumerate() {
        keys.push(key(&format!("{kind}: {event}"), &format!("f{}", colours[i % colours.len()])));
    }
    keys.push(key("other waits", "other"));
    keys.push(key("waiting for the client or a processor", "idle"));
    let mut group = |curve: &&Curve| {
        let sampled = curve.counts.iter().any(|c| c.sampled);
        let how = if sampled { "sampled" } else { "counted exactly" };
        let rows = curve.counts.iter().filter(|c| !c.waits.is_empty());
        let row = |c: &Count| Row {
            label: format!("{} client{}", c.clients, if c.clients == 1 { "" } else { "s" }),
            parts: parts(c, &events),
        };
        Group { name: format!("{} ({how})", title(&curve.target)), rows: rows.map(row).collect() }
    };
    let groups: Vec<Group> = curves.iter().map(&mut group).collect();
    // Parts that nobody has need no key.
    let used: Vec<bool> = (0..keys.len())
        .map(|i| groups.iter().flat_map(|g| &g.rows).any(|r| r.parts[i] > 0.0))
        .collect();
    let keep = |i: usize| used[i];
    let groups = groups
        .into_iter()
        .map(|mut g| {
            for row in &mut g.rows {
                let parts = row.parts.iter().enumerate();
                row.parts = parts.filter(|(i, _)| keep(*i)).map(|(_, p)| *p).collect();
            }
            g
        })
        .collect();
    let keys = keys.into_iter().enumerate().filter(|(i, _)| keep(*i)).map(|(_, k)| k).collect();
    Some(Plot {
        id: format!("waits-{}", load.slug()),
        title: format!("Where the sessions' time went, {}", load.name()),
        caption:
            "Shares of all sessions’ time, from the servers’ own views. Running is the server’s \
                  CPU time where waits are counted, sessions seen active without a wait where they \
                  are sampled; the grey rest is time without work, or without a processor for it."
                .into(),
        drawing: Box::new(Bars { keys, groups }),
    })
}

fn key(name: &str, class: &str) -> Key {
    Key { name: name.to_owned(), class: class.to_owned() }
}

fn is_running(kind: &str) -> bool {
    kind.eq_ignore_ascii_case("cpu") || kind.is_empty()
}

fn is_idle(kind: &str) -> bool {
    kind.eq_ignore_ascii_case("client") || kind.eq_ignore_ascii_case("activity")
}

/// The largest events of all targets.
fn events(load: &Load) -> Vec<(String, String)> {
    let mut all: Vec<((String, String), f64)> = Vec::new();
    for count in load.curves.iter().flat_map(|c| &c.counts) {
        for ((kind, event), seconds) in &count.waits {
            if is_running(kind) || is_idle(kind) {
                continue;
            }
            // As shares, so that a run with many clients does not decide alone.
            let share = seconds / count.session_seconds.max(1e-9);
            match all.iter_mut().find(|(name, _)| name.0 == *kind && name.1 == *event) {
                Some((_, sum)) => *sum += share,
                None => all.push(((kind.clone(), event.clone()), share)),
            }
        }
    }
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    all.into_iter().take(EVENTS).map(|(name, _)| name).collect()
}

/// Running, the events, other waits, and the rest of all sessions' time.
fn parts(count: &Count, events: &[(String, String)]) -> Vec<f64> {
    let mut out = vec![0.0; events.len() + 3];
    let last = out.len() - 1;
    for ((kind, event), seconds) in &count.waits {
        let at = if is_running(kind) {
            0
        } else if is_idle(kind) {
            last
        } else {
            let found = events.iter().position(|(k, e)| k == kind && e == event);
            found.map_or(last - 1, |i| i + 1)
        };
        out[at] += seconds;
    }
    let rest = |out: &[f64]| (count.session_seconds - out.iter().sum::<f64>()).max(0.0);
    if !count.sampled {
        out[0] = count.server_cpu.unwrap_or(0.0).min(rest(&out));
    }
    out[last] += rest(&out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(sampled: bool, waits: &[(&str, &str, f64)]) -> Count {
        Count {
            sampled,
            session_seconds: 10.0,
            server_cpu: Some(3.0),
            waits: waits
                .iter()
                .map(|(kind, event, s)| (((*kind).to_owned(), (*event).to_owned()), *s))
                .collect(),
            ..Count::default()
        }
    }

    #[test]
    fn all_time_of_the_sessions_is_somewhere() {
        let events = [("LWLock".to_owned(), "ProcArray".to_owned())];
        let waits = [("LWLock", "ProcArray", 2.0), ("IO", "WALSync", 1.0), ("CPU", "running", 4.0)];
        assert_eq!(parts(&count(true, &waits), &events), [4.0, 2.0, 1.0, 3.0]);
        // Counted waits know nothing of running: the server's CPU time does.
        assert_eq!(parts(&count(false, &waits[..2]), &events), [3.0, 2.0, 1.0, 4.0]);
        let all = [("LWLock", "ProcArray", 9.5)];
        assert_eq!(parts(&count(false, &all), &events), [0.5, 9.5, 0.0, 0.0]);
    }
}
