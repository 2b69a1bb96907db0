//! Loads of many clients: throughput and latency at one point.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::driver::{self, Address, Load, Outcome, Protocol};
use crate::environment::cores;
use crate::error::Exit;
use crate::script::{Program, Value};
use crate::workload::Workload;
use crate::{Error, Result};

/// Before a load's first turn; every client prepares its statements in it.
const WARM_UP: Duration = Duration::from_secs(1);
/// Before its other turns.
const WARM_UP_AGAIN: Duration = Duration::from_millis(50);
/// More for each client, in any case.
const WARM_UP_EACH: Duration = Duration::from_micros(100);
/// Clients that are connected at the same time.
const MOST_TOGETHER: u32 = 12_000;
/// The measured time of a turn.
const TURN: Duration = Duration::from_millis(500);

/// What came of a point.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// Transactions a second.
    pub tps: f64,
    /// Latency that 99 of 100 transactions kept, milliseconds.
    pub p99_ms: f64,
}

/// One workload at one scale.
pub struct Points {
    name: String,
    program: Program,
    scale: u32,
    time: Duration,
    stop: Arc<AtomicBool>,
}

impl Points {
    /// Compiles the workload.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn new(
        workload: &str,
        scale: u32,
        time: Duration,
        stop: Arc<AtomicBool>,
    ) -> Result<Points> {
        let program = Workload::find(workload)?.compile()?;
        Ok(Points { name: workload.to_owned(), program, scale, time, stop })
    }

    /// Measures servers with so many clients, all of which take turns, each for the whole time.
    ///
    /// # Errors
    /// Clients can't connect, statements fail, Ctrl-C.
    pub fn together(&self, all: &[(Address, u32)]) -> Result<Vec<Figures>> {
        if all.len() > 1 && all.iter().map(|(_, clients)| clients).sum::<u32>() > MOST_TOGETHER {
            // They would need more open files than most systems allow: one after the other.
            let each = all.iter().map(|one| self.together(std::slice::from_ref(one)));
            return Ok(each.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect());
        }
        let variables = [("scale", Value::Int(self.scale.into()))];
        let loads: Vec<Load<'_>> = all
            .iter()
            .map(|(address, clients)| Load {
                address,
                program: &self.program,
                protocol: Protocol::Prepared,
                clients: *clients,
                threads: cores(),
                warm_up: WARM_UP + WARM_UP_EACH * *clients,
                time: TURN,
                seed: 1,
                variables: &variables,
            })
            .collect();
        let most = all.iter().map(|(_, clients)| *clients).max().unwrap_or(0);
        let warm_up = WARM_UP_AGAIN + WARM_UP_EACH * most;
        let outcomes = driver::take_turns(&loads, rounds(self.time), warm_up, &self.stop)?;
        let outcomes = outcomes.ok_or_else(|| Error::new("interrupted").exit(Exit::Interrupted))?;
        outcomes.iter().zip(all).map(|(o, (a, clients))| self.figures(o, a, *clients)).collect()
    }

    fn figures(&self, outcome: &Outcome, address: &Address, clients: u32) -> Result<Figures> {
        let (tally, shown, name) = (&outcome.tally, address.shown(), &self.name);
        if let Some((code, count)) = tally.errors.first_key_value() {
            let what = format!("{name} with {clients} clients at {shown}: {count} times {code}");
            return Err(Error::new(what));
        }
        Ok(Figures {
            tps: tally.transactions as f64 / outcome.seconds,
            p99_ms: tally.latency.value_at_quantile(0.99) as f64 / 1000.0,
        })
    }
}

/// In how many rounds of turns servers are measured for this time each.
pub fn rounds(time: Duration) -> u32 {
    time.div_duration_f64(TURN).round().max(1.0) as u32
}
