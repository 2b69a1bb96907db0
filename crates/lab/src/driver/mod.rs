//! The load: clients that run a [`Program`] against one server, a few threads for all of them.
//!
//! ```text
//!   caller ── Load ─► worker threads, each with its epoll set and its share of the clients
//!     connected ──────────────────────────► all clients are logged in
//!     warm-up, then observe(Begin)
//!     measured time, then observe(End)      clients finish what they began, none begins more
//!     release ────────────────────────────► connections close
//! ```
//! The caller looks at the server at both ends of the measured time, while all clients are connected.
//! Counted are transactions that ended within it; the rest is only in `all_transactions`, which is what
//! the server's own counter must have grown by.

pub mod address;
mod client;
pub mod connection;
mod frames;
mod mysql;
mod worker;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage, setrlimit};

pub use address::{Address, Dialect};
pub use connection::{Connection, Failure};

use crate::script::{Program, Value};
use crate::{Error, Result};

/// How statements travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// One Query message.
    Simple,
    /// Parse, Bind, Describe, Execute, Sync each time.
    Extended,
    /// The same, but Parse only the first time.
    Prepared,
}

impl Protocol {
    /// As options and results write it.
    pub fn name(self) -> &'static str {
        match self {
            Protocol::Simple => "simple",
            Protocol::Extended => "extended",
            Protocol::Prepared => "prepared",
        }
    }
}

impl std::str::FromStr for Protocol {
    type Err = String;

    fn from_str(text: &str) -> Result<Protocol, String> {
        let all = [Protocol::Simple, Protocol::Extended, Protocol::Prepared];
        let found = all.into_iter().find(|p| p.name() == text);
        found.ok_or_else(|| "none of simple, extended, prepared".to_owned())
    }
}

/// What is to be run.
#[derive(Clone, Copy)]
pub struct Load<'a> {
    /// The server.
    pub address: &'a Address,
    /// The scripts.
    pub program: &'a Program,
    /// How statements travel.
    pub protocol: Protocol,
    /// Connections.
    pub clients: u32,
    /// Threads that drive them.
    pub threads: u32,
    /// Time before measuring begins.
    pub warm_up: Duration,
    /// Measured time.
    pub time: Duration,
    /// Where random numbers begin.
    pub seed: u64,
    /// Variables of every client, besides `client_id`, `random_seed` and `default_seed`.
    pub variables: &'a [(&'a str, Value)],
}

/// An end of the measured time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// It begins now.
    Begin,
    /// It is over; all clients are still connected.
    End,
}

/// What came of it.
#[derive(Debug)]
pub struct Outcome {
    /// Length of the measured time.
    pub seconds: f64,
    /// CPU time of this process in it.
    pub cpu: f64,
    /// The counts.
    pub tally: Tally,
}

/// Counts of transactions.
#[derive(Clone, Debug)]
pub struct Tally {
    /// Finished well within the measured time.
    pub transactions: u64,
    /// Ended in an error within the measured time, by SQLSTATE.
    pub errors: BTreeMap<String, u64>,
    /// Finished well from first to last.
    pub all_transactions: u64,
    /// Ended in an error from first to last.
    pub all_errors: u64,
    /// Latency of the former, µs.
    pub latency: Histogram<u64>,
    /// Its sum, to the nanosecond.
    pub latency_ns: u128,
}

/// Latencies up to an hour are told apart to three digits.
const LONGEST_US: u64 = 3_600_000_000;

impl Tally {
    /// Nothing counted yet.
    pub fn new() -> Tally {
        let latency = Histogram::new_with_bounds(1, LONGEST_US, 3)
            .expect("the bounds are constants that the histogram takes");
        Tally {
            transactions: 0,
            errors: BTreeMap::new(),
            all_transactions: 0,
            all_errors: 0,
            latency,
            latency_ns: 0,
        }
    }

    fn merge(&mut self, other: &Tally) {
        self.transactions += other.transactions;
        self.all_transactions += other.all_transactions;
        self.all_errors += other.all_errors;
        self.latency_ns += other.latency_ns;
        for (code, count) in &other.errors {
            *self.errors.entry(code.clone()).or_default() += count;
        }
        let added = self.latency.add(&other.latency);
        debug_assert!(added.is_ok(), "all histograms have the same bounds");
    }
}

impl Default for Tally {
    fn default() -> Tally {
        Tally::new()
    }
}

/// When measuring begins and ends.
#[derive(Clone, Copy, Debug)]
struct Window {
    from: Instant,
    until: Instant,
}

/// What the workers share.
struct Control<'a> {
    load: &'a Load<'a>,
    /// Ctrl-C.
    stop: &'a AtomicBool,
    /// A worker has failed: all end.
    failed: AtomicBool,
    failure: Mutex<Option<Error>>,
}

impl Control<'_> {
    /// Whether to end before the time.
    fn ended(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.failed.load(Ordering::Relaxed)
    }

    fn fail(&self, error: Error) {
        let mut first = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(error);
        self.failed.store(true, Ordering::Relaxed);
    }
}

/// Runs a load; `stop` ends it early. None: it was ended early.
///
/// # Errors
/// A client can't log in, the server goes away for good, a script's expression has no value, what
/// `observe` answers.
pub fn run(
    load: &Load<'_>,
    stop: &AtomicBool,
    mut observe: impl FnMut(Edge) -> Result<()>,
) -> Result<Option<Outcome>> {
    allow_descriptors(load.clients)?;
    let threads = load.threads.clamp(1, load.clients.max(1));
    let control = Control { load, stop, failed: AtomicBool::new(false), failure: Mutex::new(None) };
    let (measured, tally) = std::thread::scope(|scope| {
        let (connected, all_connected) = mpsc::channel::<()>();
        let mut workers = Vec::new();
        for number in 0..threads {
            let (orders, order) = mpsc::channel::<Window>();
            let (control, connected) = (&control, connected.clone());
            let ids = (number..load.clients).step_by(threads as usize);
            let handle = scope.spawn(move || worker::run(control, ids, connected, &order));
            workers.push((orders, handle));
        }
        drop(connected);
        let measured = lead(load, &control, all_connected, &workers, &mut observe);
        let measured = measured.unwrap_or_else(|error| {
            control.fail(error);
            (0.0, 0.0)
        });
        let mut tally = Tally::new();
        for (orders, handle) in workers {
            drop(orders);
            match handle.join() {
                Ok(part) => tally.merge(&part),
                Err(_) => control.fail(Error::new("a thread of the driver panicked")),
            }
        }
        (measured, tally)
    });
    let failure = control.failure.into_inner().unwrap_or_else(PoisonError::into_inner);
    match failure {
        _ if stop.load(Ordering::Relaxed) => Ok(None),
        Some(error) => Err(error),
        None => Ok(Some(Outcome { seconds: measured.0, cpu: measured.1, tally })),
    }
}

/// Takes the workers through the phases; the measured time and the CPU time in it.
fn lead<T>(
    load: &Load<'_>,
    control: &Control<'_>,
    connected: mpsc::Receiver<()>,
    workers: &[(mpsc::Sender<Window>, T)],
    observe: &mut impl FnMut(Edge) -> Result<()>,
) -> Result<(f64, f64)> {
    // Each worker says so once; the channel closes if one has failed before.
    let count = connected.iter().take(workers.len()).count();
    if count < workers.len() || control.ended() {
        return Ok((0.0, 0.0));
    }
    let from = Instant::now() + load.warm_up;
    let window = Window { from, until: from + load.time };
    for (orders, _) in workers {
        // A worker that is gone has left its error.
        let _ = orders.send(window);
    }
    wait_until(window.from, control);
    let cpu = cpu_of(UsageWho::RUSAGE_SELF);
    observe(Edge::Begin)?;
    wait_until(window.until, control);
    let cpu = cpu_of(UsageWho::RUSAGE_SELF) - cpu;
    if !control.ended() {
        observe(Edge::End)?;
    }
    Ok((load.time.as_secs_f64(), cpu))
}

fn wait_until(time: Instant, control: &Control<'_>) {
    while !control.ended() {
        let left = time.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(Duration::from_millis(50)));
    }
}

/// CPU time so far of this process or of those that it has started and that have ended, seconds.
pub(crate) fn cpu_of(whose: UsageWho) -> f64 {
    getrusage(whose).map_or(0.0, |usage| {
        let seconds = |t: nix::sys::time::TimeVal| t.tv_sec() as f64 + t.tv_usec() as f64 / 1e6;
        seconds(usage.user_time()) + seconds(usage.system_time())
    })
}

/// Raises the soft limit on open files where it is too low for so many sockets.
///
/// # Errors
/// The system allows fewer.
pub fn allow_descriptors(clients: u32) -> Result<()> {
    let need = u64::from(clients) + 100;
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)
        .map_err(|e| Error::new(format!("the limit on open files can't be read: {e}")))?;
    if soft >= need {
        return Ok(());
    }
    if hard < need {
        return Err(Error::new(format!(
            "{clients} clients need {need} open files, and this process may have {hard}; see ulimit -Hn"
        )));
    }
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard)
        .map_err(|e| Error::new(format!("the limit on open files can't be raised: {e}")))
}
