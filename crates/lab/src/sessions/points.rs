//! Loads of many clients: throughput and latency at one point.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::driver::{self, Address, Load, Protocol};
use crate::environment::cores;
use crate::error::Exit;
use crate::script::{Program, Value};
use crate::workload::Workload;
use crate::{Error, Result};

/// Before measuring; every client prepares its statements in it.
const WARM_UP: Duration = Duration::from_secs(1);
/// More for each client.
const WARM_UP_EACH: Duration = Duration::from_micros(100);

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

    /// Measures one server once.
    ///
    /// # Errors
    /// Clients can't connect, statements fail, Ctrl-C.
    pub fn take(&self, address: &Address, clients: u32) -> Result<Figures> {
        let load = Load {
            address,
            program: &self.program,
            protocol: Protocol::Prepared,
            clients,
            threads: cores(),
            warm_up: WARM_UP + WARM_UP_EACH * clients,
            time: self.time,
            seed: 1,
            variables: &[("scale", Value::Int(self.scale.into()))],
        };
        let outcome = driver::run(&load, &self.stop, |_| Ok(()))?;
        let outcome = outcome.ok_or_else(|| Error::new("interrupted").exit(Exit::Interrupted))?;
        let (tally, shown) = (&outcome.tally, address.shown());
        if let Some((code, count)) = tally.errors.first_key_value() {
            let name = &self.name;
            let what = format!("{name} with {clients} clients at {shown}: {count} times {code}");
            return Err(Error::new(what));
        }
        Ok(Figures {
            tps: tally.transactions as f64 / outcome.seconds,
            p99_ms: tally.latency.value_at_quantile(0.99) as f64 / 1000.0,
        })
    }

    /// The medians of some rounds in which these servers take turns.
    ///
    /// # Errors
    /// As [`Points::take`].
    pub fn median_of<const N: usize>(
        &self,
        addresses: &[Option<Address>; N],
        clients: u32,
        rounds: u32,
    ) -> Result<[Option<Figures>; N]> {
        let mut taken: [Vec<Figures>; N] = [const { Vec::new() }; N];
        for round in 0..rounds as usize {
            for turn in 0..N {
                let at = (turn + round) % N;
                if let Some(address) = &addresses[at] {
                    taken[at].push(self.take(address, clients)?);
                }
            }
        }
        Ok(taken.map(|figures| {
            let (tps, p99) = figures.iter().map(|f| (f.tps, f.p99_ms)).unzip();
            (!figures.is_empty()).then(|| Figures { tps: median(tps), p99_ms: median(p99) })
        }))
    }
}

/// The middle value (of an even number: the upper one of the two in the middle); 0 of none.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
