//! `lab locks`: what the primitives cost, over 1 to N threads.
//!
//! ```text
//!   counters.rs, pins.rs, spins.rs, rwlocks.rs   the primitives, each an Operation
//!        └─► catalogue.rs                        which of them, with which parameters
//!              └─► bench.rs                      threads behind a barrier, slices of time
//!                    └─► mod.rs, table.rs        rounds, medians, records, the table
//!   handover.rs                                  two threads that take turns
//! ```
//!
//! # How it measures
//! A *slice* is one primitive, one set of parameters, one number of threads, for some milliseconds.
//! A *round* is one slice of each; rounds are repeated, so that a disturbance of the machine hits
//! all primitives alike, and the median of the rounds is reported, with the quartiles. Each slice
//! has two halves: one without clocks, which gives the throughput, and one that times each
//! operation's wait, which gives the longest and the mean wait. (The clock's own cost, some tens of
//! nanoseconds, is in the waits but not in the throughput.)
//!
//! With more threads than cores the longest wait is the kernel's time slice: a thread that is
//! preempted while it holds a lock. That is what such a lock costs there.

mod bench;
mod catalogue;
mod counters;
mod handover;
mod pins;
mod rwlocks;
mod spins;
mod table;

use std::path::PathBuf;
use std::time::Duration;

use crate::arguments::Argument::{Long, Short};
use crate::arguments::Arguments;
use crate::environment::cores;
use crate::output::{Output, print};
use crate::results::{LockPoint, Record};
use crate::{Error, Result};

pub use table::time;

/// What `threadgres lab locks --help` prints.
pub const HELP: &str = "\
Measures lock primitives over threads: atomic counters, buffer pins, spin locks, reader-writer
locks, hand-overs.

Usage: threadgres lab locks [OPTION]…

  --threads LIST      numbers of threads (default: 1, 2, 4, … to twice the cores)
  --slice SECONDS     time for each half of a slice (default: 0.04)
  --rounds NUMBER     repetitions, interleaved over all primitives (default: 5)
  --only LIST         only primitives whose names begin with one of these
  --pin               keep each thread on one core
  --quick             fewer mixes and shorter slices: some seconds in all
  --list              name the primitives and stop
  -o, --output FILE   add the results as JSON lines to a file, too
";

/// What to measure and how.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Numbers of threads.
    pub threads: Vec<u32>,
    /// Time for each half of a slice.
    pub slice: Duration,
    /// Repetitions.
    pub rounds: u32,
    /// Prefixes of the primitives' names; empty: all.
    pub only: Vec<String>,
    /// Whether thread i stays on core i.
    pub pin: bool,
    /// Fewer mixes of readers and writers, no hold times.
    pub quick: bool,
}

impl Plan {
    /// What is measured when nothing is said.
    pub fn new() -> Plan {
        Plan {
            threads: default_threads(cores()),
            slice: Duration::from_millis(40),
            rounds: 5,
            only: Vec::new(),
            pin: false,
            quick: false,
        }
    }

    /// Enough for a table that is right to a few per cent, in seconds.
    pub fn quick() -> Plan {
        Plan { slice: Duration::from_millis(8), rounds: 5, quick: true, ..Plan::new() }
    }

    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|prefix| name.starts_with(prefix.as_str()))
    }
}

impl Default for Plan {
    fn default() -> Plan {
        Plan::new()
    }
}

/// Powers of two to twice the cores, and twice the cores.
fn default_threads(cores: u32) -> Vec<u32> {
    let most = 2 * cores;
    let mut threads: Vec<u32> =
        std::iter::successors(Some(1), |n| Some(n * 2)).take_while(|n| *n < most).collect();
    threads.push(most);
    threads
}

/// Runs it.
///
/// # Errors
/// A wrong command line, a result file that can't be written.
pub fn run(mut args: Arguments) -> Result<()> {
    let (plan, output, list) = read_options(&mut args)?;
    if list {
        return print(&(catalogue::names(&plan).join("\n") + "\n"));
    }
    let mut file = output.map(|path| Output::begin(&path, args.all())).transpose()?;
    let points = measure(&plan, &mut |done, all| {
        if done % 25 == 0 || done == all {
            eprint!("\r{done} of {all} slices");
        }
    })?;
    eprintln!();
    if let Some(file) = &mut file {
        for point in &points {
            file.write(&Record::Lock(point.clone()))?;
        }
    }
    print(&table::render(&points))
}

fn read_options(args: &mut Arguments) -> Result<(Plan, Option<PathBuf>, bool)> {
    let quick = args.all().iter().any(|a| a == "--quick");
    let mut plan = if quick { Plan::quick() } else { Plan::new() };
    let (mut output, mut list) = (None, false);
    while let Some(option) = args.option()? {
        match option {
            Long("quick") => {}
            Long("threads") => plan.threads = args.list()?,
            Long("slice") => plan.slice = args.seconds()?,
            Long("rounds") => plan.rounds = args.value()?,
            Long("only") => plan.only = args.list()?,
            Long("pin") => plan.pin = true,
            Long("list") => list = true,
            Long("output") | Short('o') => output = Some(args.path()?),
            other => return Err(other.unknown()),
        }
    }
    if plan.threads.iter().any(|n| !(1..=1024).contains(n)) {
        return Err(Error::usage("--threads: numbers from 1 to 1024"));
    }
    if plan.rounds == 0 || plan.slice.is_zero() {
        return Err(Error::usage("--rounds and --slice: more than nothing"));
    }
    if catalogue::names(&plan).is_empty() {
        return Err(Error::usage("--only: no primitive has such a name; see --list"));
    }
    Ok((plan, output, list))
}

/// Measures what the plan says; `progress` hears of each slice done, of how many.
///
/// # Errors
/// Threads can't be started or pinned.
pub fn measure(plan: &Plan, progress: &mut dyn FnMut(usize, usize)) -> Result<Vec<LockPoint>> {
    let mut cases = Vec::new();
    for &threads in &plan.threads {
        cases.extend(catalogue::cases(plan, threads));
    }
    let turns = catalogue::turns(plan);
    let all = plan.rounds as usize * (cases.len() + turns.len());
    let hold = bench::Hold::calibrate();
    let mut slices: Vec<Vec<bench::Slice>> = vec![Vec::new(); cases.len()];
    let mut hand_overs: Vec<Vec<handover::HandOver>> = vec![Vec::new(); turns.len()];
    for _ in 0..plan.rounds {
        for (case, done) in cases.iter().zip(&mut slices) {
            done.push(bench::slice(case, plan, hold)?);
            progress(done.len(), all);
        }
        for (turn, done) in turns.iter().zip(&mut hand_overs) {
            done.push(handover::run(turn, plan)?);
        }
        let done = slices.iter().map(Vec::len).sum::<usize>();
        progress(done + hand_overs.iter().map(Vec::len).sum::<usize>(), all);
    }
    let points = cases.iter().zip(&slices).map(|(case, slices)| bench::point(case, slices));
    let turns = turns.iter().zip(&hand_overs).map(|(turn, done)| handover::point(turn, done));
    Ok(points.chain(turns).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_go_to_twice_the_cores() {
        assert_eq!(default_threads(1), [1, 2]);
        assert_eq!(default_threads(2), [1, 2, 4]);
        assert_eq!(default_threads(6), [1, 2, 4, 8, 12]);
    }

    #[test]
    fn wrong_options_are_usage_errors() {
        for words in [&["--threads", "0"][..], &["--rounds", "0"], &["--only", "nothing"]] {
            assert!(read_options(&mut Arguments::new(words.iter().copied())).is_err());
        }
        let (plan, ..) = read_options(&mut Arguments::new(["--only", "pin", "--quick"])).unwrap();
        assert!(plan.quick && catalogue::names(&plan).iter().all(|n| n.starts_with("pin")));
    }

    #[test]
    fn every_primitive_runs_and_gives_a_point() {
        let plan = Plan {
            threads: vec![1, 2],
            slice: Duration::from_millis(1),
            rounds: 2,
            ..Plan::quick()
        };
        let points = measure(&plan, &mut |_, _| ()).unwrap();
        for name in catalogue::names(&plan) {
            let of: Vec<_> = points.iter().filter(|p| p.primitive == name).collect();
            assert!(!of.is_empty(), "{name} was not measured");
            for point in of {
                assert!(point.operations > 0 && point.mean_ns > 0.0, "{point:?}");
            }
        }
    }
}
