//! Results for the terminal.

use std::fmt::Write;

use super::calibrate::Calibration;
use super::machine::Machine;
use super::presets;
use super::published::Verdict;
use super::scenarios::SCENARIOS;
use crate::fit::analysis::{Model, analyse};
use crate::fit::series::{Series, Unit};
use crate::locks::time;
use crate::results::SimulatedPoint;

// Writing to a string does not fail: the results of all `write!`s in this file are dropped.

/// Machines and scenarios.
pub fn list() -> String {
    let mut out = String::from("machines\n");
    for Machine { name, about, .. } in presets::all() {
        let _ = writeln!(out, "  {name:<16}{about}");
    }
    out.push_str("scenarios\n");
    for scenario in SCENARIOS {
        let _ = writeln!(out, "  {:<16}{}", scenario.name, scenario.about);
        let names: Vec<_> = scenario.variants.iter().map(|v| v.name).collect();
        let _ = writeln!(out, "  {:<16}  {}", "", names.join(", "));
    }
    out
}

/// A block for each machine and scenario: throughput over processors, where it collapses; transfers, the longest operation
/// and the share of time in PostgreSQL's spin loops with all processors; the serial part of the curve.
pub fn curves(points: &[SimulatedPoint]) -> String {
    let mut out = String::new();
    let mut rest = points;
    while let Some(first) = rest.first() {
        let same = |p: &SimulatedPoint| p.machine == first.machine && p.scenario == first.scenario;
        let (block, others) = rest.split_at(rest.iter().take_while(|p| same(p)).count());
        rest = others;
        scenario(&mut out, block);
    }
    out
}

fn scenario(out: &mut String, block: &[SimulatedPoint]) {
    let Some(first) = block.first() else { return };
    let title = format!("{}: {}", first.machine, first.scenario);
    let _ = write!(out, "\n{title:<34}");
    let variants = block.chunk_by(|a, b| a.variant == b.variant);
    for point in block.iter().take_while(|p| p.variant == first.variant) {
        let _ = write!(out, "{:>9}", point.cores);
    }
    let _ = writeln!(
        out,
        "{:>9}{:>10}{:>10}{:>12}{:>8}{:>8}",
        "peak at", "of peak", "transfers", "longest", "s_lock", "serial"
    );
    for curve in variants {
        let (Some(last), Some(peak)) =
            (curve.last(), curve.iter().max_by(|a, b| a.throughput.total_cmp(&b.throughput)))
        else {
            continue;
        };
        let _ = write!(out, "  {:<32}", last.variant);
        for point in curve {
            let _ = write!(out, "{:>9}", rate(point.throughput));
        }
        let _ = writeln!(
            out,
            "{:>9}{:>9.0}%{:>10.1}{:>12}{:>8}{:>8}",
            peak.cores,
            last.throughput / peak.throughput * 100.0,
            last.transfers,
            time(last.exclusive_longest_ns.unwrap_or(last.longest_ns)),
            percent(last.spinning),
            serial(curve).map_or_else(String::new, percent),
        );
    }
}

fn percent(part: f64) -> String {
    format!("{:.1}%", part * 100.0)
}

/// The serial part by Amdahl's law; None: too few points for a fit.
pub fn serial(curve: &[SimulatedPoint]) -> Option<f64> {
    let measured: Vec<(f64, f64)> =
        curve.iter().map(|point| (f64::from(point.cores), point.throughput)).collect();
    let analysis = analyse(Series::new(String::new(), Unit::Cores, &measured));
    let amdahl = analysis.fits.iter().find(|fit| fit.model == Model::Amdahl)?;
    Some(amdahl.serial.as_ref()?.estimate)
}

/// Operations a second in four characters or so.
fn rate(per_second: f64) -> String {
    match per_second {
        n if n < 1e3 => format!("{n:.0}"),
        n if n < 1e6 => format!("{:.1}k", n / 1e3),
        n => format!("{:.1}M", n / 1e6),
    }
}

/// Costs and what they leave unexplained.
pub fn calibration(calibration: &Calibration) -> String {
    let costs = &calibration.machine.costs;
    let mut out = format!(
        "costs here: hit {:.1} ns, atomic {:.1} ns, transfer {:.1} ns, stay {:.1} ns, pause {:.1} \
         ns, park {}, unpark {}, wake {}\n\n{:<28}{:>8}{:>12}{:>12}{:>9}\n",
        costs.hit,
        costs.rmw,
        costs.socket,
        costs.residency,
        costs.pause,
        time(costs.park),
        time(costs.unpark),
        time(costs.wake),
        "calibration",
        "threads",
        "measured",
        "simulated",
        "error",
    );
    for row in &calibration.rows {
        let _ = writeln!(
            out,
            "{:<28}{:>8}{:>12}{:>12}{:>8.0}%{}",
            row.name,
            row.threads,
            time(row.measured_ns),
            time(row.simulated_ns),
            row.error() * 100.0,
            if row.fitted { "  (derived from it)" } else { "" },
        );
    }
    let _ = writeln!(
        out,
        "median error of what was not derived: {:.0} %",
        calibration.residual() * 100.0
    );
    for ranking in &calibration.rankings {
        let _ = writeln!(
            out,
            "{} thread(s): {} is measured to be faster than {}; the simulator {}",
            ranking.threads,
            ranking.faster,
            ranking.slower,
            if ranking.agrees { "agrees" } else { "disagrees" },
        );
    }
    out
}

/// What others measured, and what was simulated.
pub fn claims(verdicts: &[Verdict]) -> String {
    if verdicts.is_empty() {
        return String::new();
    }
    let mut out = format!("\n{:<76}{:>10}{:>11}\n", "published changes", "published", "simulated");
    for verdict in verdicts {
        let claim = verdict.claim;
        let published = claim.published.map_or("better".to_owned(), |gain| format!("x {gain:.2}"));
        let _ = writeln!(
            out,
            "{:<76}{:>10}{:>11}{}",
            claim.change,
            published,
            format!("x {:.2}", verdict.simulated),
            if verdict.agrees() { "" } else { "  disagrees" },
        );
        let _ = writeln!(out, "    on {}; {}", claim.machine, claim.source);
    }
    out
}
