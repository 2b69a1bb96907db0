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

/// What all workers share.
struct Shared<'a> {
    /// Ctrl-C.
    stop: &'a AtomicBool,
    /// A worker has failed: all end.
    failed: AtomicBool,
    failure: Mutex<Option<Error>>,
}

impl Shared<'_> {
    fn fail(&self, error: Error) {
        let mut first = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(error);
        self.failed.store(true, Ordering::Relaxed);
    }
}

/// What the workers of a load share.
struct Control<'a> {
    load: &'a Load<'a>,
    shared: &'a Shared<'a>,
}

impl Control<'_> {
    /// Whether to end before the time.
    fn ended(&self) -> bool {
        self.shared.stop.load(Ordering::Relaxed) || self.shared.failed.load(Ordering::Relaxed)
    }

    fn fail(&self, error: Error) {
        self.shared.fail(error);
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
    let lead = |crews: &[Crew], control: &Control<'_>| {
        crews.iter().map(|crew| lead(load, crew, control, &mut observe)).collect()
    };
    Ok(with_crews(std::slice::from_ref(load), stop, lead)?.and_then(|mut all| all.pop()))
}

/// Runs loads in turns, so that a machine that slows down or speeds up does it to all: each load's
/// clients stay connected and rest while the others have theirs. In each of its turns a load has a
/// warm-up and its measured time; only the first warm-up is as long as the load says, the others are
/// `warm_up`. The order is turned round with each round.
///
/// # Errors
/// As [`run`].
pub fn take_turns(
    loads: &[Load<'_>],
    rounds: u32,
    warm_up: Duration,
    stop: &AtomicBool,
) -> Result<Option<Vec<Outcome>>> {
    with_crews(loads, stop, |crews, control| {
        let mut measured = vec![(0.0, 0.0); crews.len()];
        if !crews.iter().all(|crew| crew.all_say(control)) {
            return Ok(measured);
        }
        for round in 0..rounds {
            for turn in 0..crews.len() {
                let at = if round % 2 == 0 { turn } else { crews.len() - 1 - turn };
                let load = &loads[at];
                let warm_up = if round == 0 { load.warm_up } else { warm_up };
                crews[at].begin(warm_up, load.time);
                if !crews[at].all_say(control) {
                    return Ok(measured);
                }
                measured[at].0 += load.time.as_secs_f64();
            }
        }
        Ok(measured)
    })
}

/// The threads of one load.
struct Crew<'scope> {
    /// A worker that is gone has left its error.
    orders: Vec<mpsc::Sender<Window>>,
    /// What each says once when its clients are connected and then at the end of each window.
    said: mpsc::Receiver<()>,
    threads: Vec<std::thread::ScopedJoinHandle<'scope, Tally>>,
}

impl Crew<'_> {
    /// Waits until every worker has said that it is done; false: the run has ended before.
    fn all_say(&self, control: &Control<'_>) -> bool {
        let mut left = self.orders.len();
        while left > 0 && !control.ended() {
            left -= usize::from(self.said.recv_timeout(Duration::from_millis(50)).is_ok());
        }
        !control.ended()
    }

    /// Orders a window that begins after the warm-up.
    fn begin(&self, warm_up: Duration, time: Duration) -> Window {
        let from = Instant::now() + warm_up;
        let window = Window { from, until: from + time };
        for orders in &self.orders {
            let _ = orders.send(window);
        }
        window
    }
}

/// Of each load the measured time and the CPU time in it, seconds.
type Measured = Vec<(f64, f64)>;

/// Starts the workers of each load, has them led, and adds up what they counted. `lead` answers each
/// load's measured time and the CPU time in it.
fn with_crews(
    loads: &[Load<'_>],
    stop: &AtomicBool,
    lead: impl FnOnce(&[Crew<'_>], &Control<'_>) -> Result<Measured>,
) -> Result<Option<Vec<Outcome>>> {
    allow_descriptors(loads.iter().map(|load| load.clients).sum())?;
    let shared = Shared { stop, failed: AtomicBool::new(false), failure: Mutex::new(None) };
    let controls: Vec<Control<'_>> =
        loads.iter().map(|load| Control { load, shared: &shared }).collect();
    let outcomes = std::thread::scope(|scope| {
        let crews: Vec<Crew<'_>> = controls
            .iter()
            .map(|control| {
                let load = control.load;
                let threads = load.threads.clamp(1, load.clients.max(1));
                let (say, said) = mpsc::channel::<()>();
                let mut crew = Crew { orders: Vec::new(), said, threads: Vec::new() };
                for number in 0..threads {
                    let (orders, order) = mpsc::channel::<Window>();
                    let say = say.clone();
                    let ids = (number..load.clients).step_by(threads as usize);
                    crew.orders.push(orders);
                    crew.threads.push(scope.spawn(move || worker::run(control, ids, &say, &order)));
                }
                crew
            })
            .collect();
        let measured = controls.first().map_or(Ok(Vec::new()), |control| lead(&crews, control));
        let measured = measured.unwrap_or_else(|error| {
            shared.fail(error);
            Vec::new()
        });
        let mut outcomes = Vec::new();
        for (at, crew) in crews.into_iter().enumerate() {
            drop(crew.orders);
            let mut tally = Tally::new();
            for thread in crew.threads {
                match thread.join() {
                    Ok(part) => tally.merge(&part),
                    Err(_) => shared.fail(Error::new("a thread of the driver panicked")),
                }
            }
            let (seconds, cpu) = measured.get(at).copied().unwrap_or_default();
            outcomes.push(Outcome { seconds, cpu, tally });
        }
        outcomes
    });
    let failure = shared.failure.into_inner().unwrap_or_else(PoisonError::into_inner);
    match failure {
        _ if stop.load(Ordering::Relaxed) => Ok(None),
        Some(error) => Err(error),
        None => Ok(Some(outcomes)),
    }
}

/// Takes the workers through the phases; the measured time and the CPU time in it.
fn lead(
    load: &Load<'_>,
    crew: &Crew<'_>,
    control: &Control<'_>,
    observe: &mut impl FnMut(Edge) -> Result<()>,
) -> Result<(f64, f64)> {
    if !crew.all_say(control) {
        return Ok((0.0, 0.0));
    }
    let window = crew.begin(load.warm_up, load.time);
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
