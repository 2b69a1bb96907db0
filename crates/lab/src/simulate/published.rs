//! Published measurements before and after a change, beside the simulator's figures for the same
//! change. The orders must agree; the ratios are shown, since the model has its limits
//! (`docs/internals/simulator.md`).

use crate::results::SimulatedPoint;

/// A change that somebody published.
pub struct Claim {
    /// What was changed.
    pub change: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// The machine on which it is looked at.
    pub machine: &'static str,
    scenario: &'static str,
    before: &'static str,
    after: &'static str,
    measure: Measure,
    /// The published gain; None where only the direction is known.
    pub published: Option<f64>,
}

/// In which respect it is better.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Measure {
    /// The highest throughput at any number of processors.
    Peak,
    /// Throughput with all processors.
    AtAll,
    /// The longest exclusive operation with all processors, before over after.
    Starvation,
}

/// A claim and what the simulator says.
pub struct Verdict {
    /// The claim.
    pub claim: &'static Claim,
    /// The simulated gain.
    pub simulated: f64,
}

impl Verdict {
    /// Whether the simulator agrees on the direction.
    pub fn agrees(&self) -> bool {
        self.simulated > 1.0
    }
}

const KOROTKOV: &str = "Korotkov 2016, select-only on 4 x 18 cores";

/// All claims.
pub const CLAIMS: &[Claim] = &[
    Claim {
        change: "lightweight locks: spin lock -> atomic word (9.4 -> 9.5), shared only",
        source: "Freund 2014, commit ab5194e6f617",
        machine: "four-socket",
        scenario: "lwlock-shared",
        before: "lwlock-9.4",
        after: "lwlock-9.5",
        measure: Measure::AtAll,
        published: None,
    },
    Claim {
        change: "select: 9.4 -> 9.5",
        source: "Freund 2014, PostgreSQL 9.5 release notes",
        machine: "four-socket",
        scenario: "select",
        before: "9.4",
        after: "9.5",
        measure: Measure::Peak,
        published: None,
    },
    Claim {
        change: "pins of a hot buffer: spin lock -> compare-and-swap (9.5 -> 9.6)",
        source: "Korotkov and Freund 2016, commit 48354581a49c",
        machine: "four-socket",
        scenario: "pin",
        before: "pin-spin",
        after: "pin-cas",
        measure: Measure::AtAll,
        published: None,
    },
    Claim {
        change: "select: 9.5 -> 9.6 (pins by compare-and-swap), peaks",
        source: KOROTKOV,
        machine: "four-socket",
        scenario: "select",
        before: "9.5",
        after: "9.6",
        measure: Measure::Peak,
        published: Some(1_064.0 / 540.0),
    },
    Claim {
        change: "mapping partitions: 16 -> 128 with 9.4's locks",
        source: "Freund, Kapila and Haas 2014, commit 3acc10c997f9",
        machine: "four-socket",
        scenario: "partitions",
        before: "9.4-16",
        after: "9.4-128",
        measure: Measure::AtAll,
        published: None,
    },
    Claim {
        change: "mapping partitions: 128 -> 512",
        source: "the incident that this server was designed after",
        machine: "eight-blade",
        scenario: "partitions",
        before: "9.5-128",
        after: "9.5-512",
        measure: Measure::AtAll,
        published: None,
    },
    Claim {
        change: "exclusive locker among shared ones: no limit -> limit 16, longest wait",
        source: "the incident that this server was designed after",
        machine: "eight-blade",
        scenario: "starvation",
        before: "lwlock-9.5",
        after: "lwlock-bounded",
        measure: Measure::Starvation,
        published: None,
    },
];

/// Each claim for which the points were simulated.
pub fn compare(points: &[SimulatedPoint]) -> Vec<Verdict> {
    let verdict = |claim: &'static Claim| {
        let of = |variant: &str| {
            let mut of: Vec<&SimulatedPoint> = points
                .iter()
                .filter(|p| {
                    p.machine == claim.machine
                        && p.scenario == claim.scenario
                        && p.variant == variant
                })
                .collect();
            of.sort_by_key(|p| p.cores);
            match claim.measure {
                Measure::Peak => of.iter().map(|p| p.throughput).max_by(f64::total_cmp),
                Measure::AtAll => of.last().map(|p| p.throughput),
                Measure::Starvation => of.last()?.exclusive_longest_ns.map(|ns| 1.0 / ns),
            }
        };
        let simulated = of(claim.after)? / of(claim.before)?;
        Some(Verdict { claim, simulated })
    };
    CLAIMS.iter().filter_map(verdict).collect()
}
