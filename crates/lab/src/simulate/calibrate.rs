//! The costs of the machine at hand, from what `lab locks` measured on it.
//!
//! | cost | from |
//! | --- | --- |
//! | `hit` | `load-one` with one thread |
//! | `rmw` | `add-padded` with one thread |
//! | `pause` | `pause` with one thread |
//! | `socket`, `residency` | so that `turn-line` and `add-one` with two threads come out right |
//! | `park`, `unpark`, `wake` | so that `turn-park` comes out right, in the proportion of the preset |
//!
//! Everything else that was measured is then predicted; what the prediction misses is reported.

use super::engine::Outcome;
use super::machine::Machine;
use super::scenarios::{CALIBRATION, SCENARIOS, Variant};
use super::{outcome, presets};
use crate::results::LockPoint;
use crate::{Error, Result};

/// What came out.
#[derive(Clone, Debug)]
pub struct Calibration {
    /// The machine at hand.
    pub machine: Machine,
    /// Measured against simulated.
    pub rows: Vec<Row>,
    /// The order of the pin variants, wherever it was measured clearly.
    pub rankings: Vec<Ranking>,
}

/// Two ways to pin of which one was measured to be faster.
#[derive(Clone, Debug)]
pub struct Ranking {
    /// The faster one, measured.
    pub faster: &'static str,
    /// The slower one.
    pub slower: &'static str,
    /// Threads.
    pub threads: u32,
    /// Whether the simulator does not say the opposite.
    pub agrees: bool,
}

/// One measured point and its simulation.
#[derive(Clone, Debug)]
pub struct Row {
    /// The primitive, with its share of writers when it has some.
    pub name: String,
    /// Threads.
    pub threads: u32,
    /// Nanoseconds of one operation as its thread sees it, measured.
    pub measured_ns: f64,
    /// Likewise, simulated.
    pub simulated_ns: f64,
    /// Whether a cost was derived from this point, so that it agrees by construction.
    pub fitted: bool,
}

impl Row {
    /// Simulated over measured, less one.
    pub fn error(&self) -> f64 {
        self.simulated_ns / self.measured_ns - 1.0
    }
}

impl Calibration {
    /// The median of the absolute errors of what was predicted.
    pub fn residual(&self) -> f64 {
        let mut errors: Vec<f64> =
            self.rows.iter().filter(|r| !r.fitted).map(|r| r.error().abs()).collect();
        errors.sort_by(f64::total_cmp);
        errors.get(errors.len() / 2).copied().unwrap_or(0.0)
    }
}

const OPERATIONS: u64 = 50;
const SEED: u64 = 1;

/// The points from which costs are derived.
const FITTED: [(&str, u32); 6] = [
    ("load-one", 1),
    ("add-padded", 1),
    ("pause", 1),
    ("turn-line", 2),
    ("add-one", 2),
    ("turn-park", 2),
];

/// The simulation of what a primitive of `lab locks` does.
fn similar(primitive: &str, writers: f64) -> Option<&'static Variant> {
    let (scenario, name) = match (primitive, writers as u64) {
        ("load-one", _) => ("tight", "load-one"),
        ("pause", _) => ("tight", "pause"),
        ("turn-line" | "turn-park", _) => ("turns", primitive),
        ("add-one" | "add-padded" | "add-falsely-shared", _) => ("counter", primitive),
        ("pin-add" | "pin-cas" | "pin-both", _) => ("tight", primitive),
        ("spin-plain" | "spin-backoff", _) => ("tight", primitive),
        ("lwlock-fair", 0) => ("tight", "lwlock-fair-0"),
        ("lwlock-fair", 10) => ("tight", "lwlock-fair-10"),
        ("lwlock-bounded", 0) => ("tight", "lwlock-bounded-0"),
        ("lwlock-bounded", 10) => ("tight", "lwlock-bounded-10"),
        ("lwlock-unfair", 0) => ("tight", "lwlock-unfair-0"),
        ("lwlock-unfair", 10) => ("tight", "lwlock-unfair-10"),
        _ => return None,
    };
    let all = SCENARIOS.iter().chain(CALIBRATION);
    all.filter(|s| s.name == scenario).flat_map(|s| s.variants).find(|v| v.name == name)
}

/// Nanoseconds of one operation, or of one hand-over.
fn simulated(machine: &Machine, primitive: &str, writers: f64, threads: u32) -> Option<f64> {
    let variant = similar(primitive, writers)?;
    let outcome: Outcome = outcome(machine, variant, threads as usize, SEED, OPERATIONS);
    Some(if primitive.starts_with("turn-") {
        outcome.time as f64 / 1e3 / outcome.all.operations.max(1) as f64
    } else {
        outcome.all.mean_ns()
    })
}

/// What a point says of its primitive's cost: processor time where that was measured, since it
/// leaves out what other programs took.
fn measured(point: &LockPoint) -> f64 {
    point.hand_over_ns.or(point.cpu_ns).unwrap_or(point.mean_ns)
}

/// Derives the costs.
///
/// # Errors
/// A point that is needed is missing.
pub fn calibrate(points: &[LockPoint]) -> Result<Calibration> {
    let of = |name: &str, threads: u32| {
        let found = points.iter().find(|p| p.primitive == name && p.threads == threads);
        found
            .map(measured)
            .ok_or_else(|| Error::new(format!("no measurement of {name} with {threads} threads")))
    };
    let threads = points.iter().map(|p| p.threads).max().unwrap_or(2);
    let mut machine = presets::named("laptop").ok_or("no preset")?;
    machine.name = "here".to_owned();
    machine.about = "costs derived from measurements by lab locks".to_owned();
    machine.cores = (crate::environment::cores().max(2) as usize).min(threads.max(2) as usize);
    machine.costs.hit = of("load-one", 1)?;
    machine.costs.rmw = of("add-padded", 1)?;
    machine.costs.pause = of("pause", 1)?;
    let (line, add, park) = (of("turn-line", 2)?, of("add-one", 2)?, of("turn-park", 2)?);
    // Each depends on the other a little: three rounds settle both.
    for _ in 0..3 {
        solve(&mut machine, (1.0, 2000.0), |c, v| c.socket = v, "turn-line", line);
        // A longer stay means fewer transfers: the cost falls.
        solve(&mut machine, (200.0, 0.0), |c, v| c.residency = v, "add-one", add);
    }
    let share = |part: f64| {
        move |c: &mut super::Costs, v: f64| {
            c.park = part * 1500.0 / 8500.0 * v;
            c.unpark = part * 2000.0 / 8500.0 * v;
            c.wake = part * 5000.0 / 8500.0 * v;
        }
    };
    solve(&mut machine, (0.0, 1e6), share(1.0), "turn-park", park);
    let rows = points.iter().filter(|p| p.threads as usize <= machine.cores);
    let rows = rows.filter_map(|p| row(&machine, p)).collect();
    let rankings = [1, 2].iter().flat_map(|n| rankings(&machine, points, *n)).collect();
    Ok(Calibration { machine, rows, rankings })
}

/// Bisects one cost between two bounds, so that the primitive with two threads costs `wanted`; the
/// cost of the primitive rises from the first bound to the second.
fn solve(
    machine: &mut Machine,
    (mut low, mut high): (f64, f64),
    set: impl Fn(&mut super::Costs, f64),
    primitive: &str,
    wanted: f64,
) {
    for _ in 0..24 {
        let middle = (low + high) / 2.0;
        set(&mut machine.costs, middle);
        if simulated(machine, primitive, 0.0, 2).is_some_and(|ns| ns < wanted) {
            low = middle;
        } else {
            high = middle;
        }
    }
}

/// Compares each pair of pin variants whose quartiles over the rounds do not overlap. (Results without
/// quartiles count as known to 2.5 per cent.)
fn rankings(machine: &Machine, points: &[LockPoint], threads: u32) -> Vec<Ranking> {
    const PINS: [&str; 3] = ["pin-add", "pin-both", "pin-cas"];
    let quartiles = |name: &str| {
        let point = points.iter().find(|p| p.primitive == name && p.threads == threads)?;
        let about = |ns: f64| (0.975 * ns, 1.025 * ns);
        point.cpu_quartiles_ns.or(point.cpu_ns.map(about))
    };
    let ns = |name| simulated(machine, name, 0.0, threads).unwrap_or(f64::NAN);
    let compare = |faster: &'static str, slower: &'static str| {
        let clear = quartiles(faster)?.1 < quartiles(slower)?.0;
        // What the simulator can't tell apart is no disagreement.
        clear.then(|| Ranking { faster, slower, threads, agrees: ns(faster) < 1.05 * ns(slower) })
    };
    let pairs = PINS.iter().flat_map(|a| PINS.iter().map(move |b| (*a, *b)));
    pairs.filter_map(|(a, b)| compare(a, b)).collect()
}

fn row(machine: &Machine, point: &LockPoint) -> Option<Row> {
    let parameter = |name| point.parameters.get(name).copied().unwrap_or(0.0);
    if parameter("hold_ns") > 0.0 {
        return None;
    }
    let writers = parameter("writers");
    let simulated_ns = simulated(machine, &point.primitive, writers, point.threads)?;
    let mixed = writers > 0.0 && writers < 100.0;
    Some(Row {
        name: if mixed {
            format!("{} {writers} %", point.primitive)
        } else {
            point.primitive.clone()
        },
        threads: point.threads,
        measured_ns: measured(point),
        simulated_ns,
        fitted: FITTED.contains(&(point.primitive.as_str(), point.threads)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locks;
    use crate::results::{Record, read};

    /// Some points of `lab locks` on two cores of an EPYC 9004, while other programs ran.
    fn recorded() -> Vec<LockPoint> {
        let file = include_str!("recorded.jsonl");
        let points = read(file.as_bytes()).unwrap().into_iter();
        points.filter_map(|r| if let Record::Lock(p) = r { Some(p) } else { None }).collect()
    }

    #[test]
    fn costs_are_derived_and_the_ranking_of_the_pins_agrees() {
        let calibration = calibrate(&recorded()).unwrap();
        // With one thread the costs are the measurements.
        for row in calibration.rows.iter().filter(|r| r.fitted && r.threads == 1) {
            assert!(row.error().abs() < 0.02, "{row:?}");
        }
        let park = calibration.rows.iter().find(|r| r.name == "turn-park").unwrap();
        assert!(park.error().abs() < 0.05, "{park:?}");
        assert!(calibration.rankings.len() >= 3, "{:?}", calibration.rankings);
        for ranking in &calibration.rankings {
            assert!(ranking.agrees, "{ranking:?}");
        }
    }

    #[test]
    fn a_missing_point_is_named() {
        let mut points = recorded();
        points.retain(|p| p.primitive != "turn-park");
        let error = calibrate(&points).unwrap_err();
        assert!(error.to_string().contains("turn-park with 2 threads"), "{error}");
    }

    /// Measures here and now: run by hand on a quiet machine, as `make lab` prints the same.
    #[test]
    #[ignore = "measures this machine for some seconds"]
    fn the_ranking_of_the_pins_agrees_with_this_machine() {
        let only = ["load", "add", "pause", "turn-line", "turn-park", "pin"];
        let plan = locks::Plan {
            threads: vec![1, 2],
            only: only.map(str::to_owned).to_vec(),
            rounds: 15,
            ..locks::Plan::quick()
        };
        let points = locks::measure(&plan, &mut |_, _| ()).unwrap();
        for ranking in calibrate(&points).unwrap().rankings {
            assert!(ranking.agrees, "{ranking:?}");
        }
    }
}
