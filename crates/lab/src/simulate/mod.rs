//! `lab simulate`: where lock algorithms collapse on machines that are not at hand.
//!
//! ```text
//!   presets.rs ─► machine.rs      who sits where, what a line costs over which distance
//!                    │
//!   events.rs ─► coherence.rs     lines, owners, sharers, queues at the directory
//!                    │
//!                 engine.rs       programs on processors: async functions, steps, parking
//!                    │
//!   locks/*.rs ─► scenarios/*.rs  the algorithms, and who uses them how
//!                    │
//!   calibrate.rs, published.rs, table.rs      is it true, and what does it say
//! ```
//!
//! A run is determined by its machine, scenario, variant, number of processors, seed and length.
//! `docs/internals/simulator.md` says what is modelled, what is not, and where the costs come from.

mod calibrate;
mod coherence;
mod engine;
mod events;
mod locks;
mod machine;
mod presets;
mod published;
mod scenarios;
mod table;

use std::path::{Path, PathBuf};

pub use calibrate::{Calibration, Ranking, Row, calibrate};
pub use engine::{Outcome, Simulation};
pub use machine::{CPUS_MAX, Costs, Machine};
pub use presets::{all as machines, named};
pub use scenarios::{SCENARIOS, Scenario, Variant};

use crate::arguments::Argument::{Long, Short};
use crate::arguments::Arguments;
use crate::fit::series::read_records;
use crate::output::{Output, print};
use crate::results::{Record, SimulatedPoint};
use crate::{Error, Result};

/// What `threadgres lab simulate --help` prints.
pub const HELP: &str = "\
Simulates lock algorithms on machines with many cores: cache lines, their transfers and queues.

Usage: threadgres lab simulate [OPTION]…

  --machine LIST      of: laptop, four-socket, eight-blade, eight-socket, power8 (default: all)
  --scenario LIST     only these scenarios; see --list
  --cores LIST        numbers of processors (default: fifteen from 1 to the machine's, at most 512)
  --seed NUMBER       another run of chance (default: 1)
  --operations NUMBER length of a run: operations for each processor (default: 10)
  --near-first PART   the part of all hand-overs of a line in which the nearest who waits is served
                      and not the first (0 to 1; default: 0)
  --spin-sleep NS     the sleep in PostgreSQL's spin locks (default: 1000000)
  --quick             fewer numbers of processors and shorter runs
  --calibrate FILE    results of lab locks: derives the costs of the machine at hand from them,
                      reports what the model leaves unexplained, and simulates that machine, too
  --list              name machines and scenarios and stop
  -o, --output FILE   add the results as JSON lines to a file, too
";

/// How long runs are, and which.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Machines.
    pub machines: Vec<Machine>,
    /// Names of scenarios; empty: all.
    pub scenarios: Vec<String>,
    /// Numbers of processors; empty: as the machine has.
    pub cores: Vec<usize>,
    /// Seed of all runs.
    pub seed: u64,
    /// Operations of a run for each processor.
    pub operations: u64,
    /// Fewer numbers of processors.
    pub quick: bool,
}

/// Numbers of processors that are simulated, besides all that the machine has.
const STEPS: [usize; 14] = [1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384];
/// The same for a sketch.
const QUICK: [usize; 6] = [1, 2, 4, 16, 48, 192];

/// A run is at least as long as it would be with so many processors.
const CPUS_LEAST: u64 = 100;

impl Plan {
    /// All machines and scenarios.
    pub fn new() -> Plan {
        Plan {
            machines: presets::all(),
            scenarios: Vec::new(),
            cores: Vec::new(),
            seed: 1,
            operations: 10,
            quick: false,
        }
    }

    /// A sketch of the same.
    pub fn quick() -> Plan {
        Plan { operations: 5, quick: true, ..Plan::new() }
    }

    fn cores(&self, machine: &Machine) -> Vec<usize> {
        let most = machine.cpus().min(CPUS_MAX);
        if !self.cores.is_empty() {
            return self.cores.iter().copied().filter(|n| (1..=most).contains(n)).collect();
        }
        let steps: &[usize] = if self.quick { &QUICK } else { &STEPS };
        let mut cores: Vec<usize> = steps.iter().copied().filter(|n| *n < most).collect();
        cores.push(most);
        cores
    }

    fn wants(&self, scenario: &Scenario) -> bool {
        self.scenarios.is_empty() || self.scenarios.iter().any(|name| name == scenario.name)
    }
}

impl Default for Plan {
    fn default() -> Plan {
        Plan::new()
    }
}

/// One run.
pub fn outcome(
    machine: &Machine,
    variant: &Variant,
    cores: usize,
    seed: u64,
    operations: u64,
) -> Outcome {
    let mut simulation = Simulation::new(machine, cores, seed);
    (variant.start)(&mut simulation);
    simulation.run(operations * CPUS_LEAST.max(cores as u64))
}

/// One run as a point.
pub fn point(
    machine: &Machine,
    scenario: &Scenario,
    variant: &Variant,
    cores: usize,
    plan: &Plan,
) -> SimulatedPoint {
    let outcome = outcome(machine, variant, cores, plan.seed, plan.operations * scenario.length);
    let exclusive = (outcome.exclusive.longest > 0).then_some(outcome.exclusive);
    SimulatedPoint {
        machine: machine.name.clone(),
        scenario: scenario.name.to_owned(),
        variant: variant.name.to_owned(),
        cores: cores as u32,
        throughput: outcome.throughput(),
        mean_ns: outcome.all.mean_ns(),
        longest_ns: outcome.all.longest as f64 / 1e3,
        exclusive_mean_ns: exclusive.map(|t| t.mean_ns()),
        exclusive_longest_ns: exclusive.map(|t| t.longest as f64 / 1e3),
        transfers: outcome.transfers as f64 / outcome.all.operations.max(1) as f64,
        spinning: outcome.spinning,
        seed: plan.seed,
    }
}

/// Simulates what the plan says; `each` gets the points as they come.
///
/// # Errors
/// Those of `each`.
pub fn simulate(plan: &Plan, each: &mut dyn FnMut(SimulatedPoint) -> Result<()>) -> Result<()> {
    for machine in &plan.machines {
        for scenario in SCENARIOS.iter().filter(|s| plan.wants(s)) {
            for variant in scenario.variants {
                for cores in plan.cores(machine) {
                    each(point(machine, scenario, variant, cores, plan))?;
                }
            }
        }
    }
    Ok(())
}

struct Options {
    plan: Plan,
    calibrate: Option<PathBuf>,
    output: Option<PathBuf>,
    list: bool,
}

/// Runs it.
///
/// # Errors
/// A wrong command line; a file that can't be read or written, or lacks what calibration needs.
pub fn run(mut args: Arguments) -> Result<()> {
    let Options { mut plan, calibrate, output, list } = read_options(&mut args)?;
    if list {
        return print(&table::list());
    }
    if let Some(path) = &calibrate {
        let calibration = read_calibration(path)?;
        print(&table::calibration(&calibration))?;
        plan.machines.insert(0, calibration.machine);
    }
    let mut file = output.map(|path| Output::begin(&path, args.all())).transpose()?;
    let mut points = Vec::new();
    simulate(&plan, &mut |point| {
        if let Some(file) = &mut file {
            file.write(&Record::Simulated(point.clone()))?;
        }
        points.push(point);
        Ok(())
    })?;
    print(&table::curves(&points))?;
    print(&table::claims(&published::compare(&points)))
}

fn read_calibration(path: &Path) -> Result<Calibration> {
    let points: Vec<_> = read_records(path)?
        .into_iter()
        .filter_map(|record| match record {
            Record::Lock(point) => Some(point),
            _ => None,
        })
        .collect();
    calibrate(&points).map_err(|e| Error::file(path, e))
}

fn read_options(args: &mut Arguments) -> Result<Options> {
    let quick = args.all().iter().any(|a| a == "--quick");
    let plan = if quick { Plan::quick() } else { Plan::new() };
    let mut options = Options { plan, calibrate: None, output: None, list: false };
    let (mut near_first, mut spin_sleep): (Option<f64>, Option<f64>) = (None, None);
    while let Some(option) = args.option()? {
        match option {
            Long("quick") => {}
            Long("near-first") => near_first = Some(args.value()?),
            Long("spin-sleep") => spin_sleep = Some(args.value()?),
            Long("machine") => {
                let names: Vec<String> = args.list()?;
                let machine = |name: &String| {
                    presets::named(name).ok_or_else(|| args.wrong(name, "no such machine"))
                };
                options.plan.machines = names.iter().map(machine).collect::<Result<_>>()?;
            }
            Long("scenario") => {
                options.plan.scenarios = args.list()?;
                for name in &options.plan.scenarios {
                    if !SCENARIOS.iter().any(|s| s.name == name) {
                        return Err(args.wrong(name, "no such scenario; see --list"));
                    }
                }
            }
            Long("cores") => options.plan.cores = args.list()?,
            Long("seed") => options.plan.seed = args.value()?,
            Long("operations") => options.plan.operations = args.value()?,
            Long("calibrate") => options.calibrate = Some(args.path()?),
            Long("list") => options.list = true,
            Long("output") | Short('o') => options.output = Some(args.path()?),
            other => return Err(other.unknown()),
        }
    }
    if near_first.is_some_and(|part| !(0.0..=1.0).contains(&part)) {
        return Err(Error::usage("--near-first: from 0 to 1"));
    }
    if spin_sleep.is_some_and(|ns| !(1.0..=1e9).contains(&ns)) {
        return Err(Error::usage("--spin-sleep: from 1 to 1000000000"));
    }
    for machine in &mut options.plan.machines {
        let costs = &mut machine.costs;
        costs.near_first = near_first.unwrap_or(costs.near_first);
        costs.spin_sleep = spin_sleep.unwrap_or(costs.spin_sleep);
    }
    if !(1..=1_000_000).contains(&options.plan.operations) {
        return Err(Error::usage("--operations: from 1 to 1000000"));
    }
    if options.plan.cores.iter().any(|n| !(1..=CPUS_MAX).contains(n)) {
        return Err(Error::usage("--cores: from 1 to 512"));
    }
    Ok(options)
}

#[cfg(test)]
mod tests;
