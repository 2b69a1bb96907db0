//! Takes the points one after the other.
//!
//! Repetitions are the outermost loop and targets the innermost, so that whatever disturbs the machine
//! for a while falls on all targets and on some repetitions only. Each point is written when it is
//! measured. A target that goes away loses its remaining points, the others go on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Serializer as _, V2Serializer};

use super::observe::Observer;
use super::pgbench;
use super::process::Processes;
use super::progress::Progress;
use super::stacks;
use crate::driver::{self, Address, Connection, Dialect, Load, Outcome, Protocol};
use crate::environment::cores;
use crate::output::Output;
use crate::results::{self, Latency, Point, Record};
use crate::script::{Program, Value};
use crate::workload::{self, Workload};
use crate::{Error, Result};

/// For how long stacks are taken: as long as a point, but within these bounds.
const STACKS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(2)];

/// The load driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// The laboratory's own driver.
    Lab,
    /// The real pgbench.
    Pgbench,
}

impl Driver {
    fn name(self) -> &'static str {
        match self {
            Driver::Lab => "lab",
            Driver::Pgbench => "pgbench",
        }
    }
}

impl std::str::FromStr for Driver {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Driver, &'static str> {
        let found = [Driver::Lab, Driver::Pgbench].into_iter().find(|d| d.name() == text);
        found.ok_or("neither lab nor pgbench")
    }
}

/// A server to measure.
#[derive(Clone, Debug)]
pub struct Target {
    /// Its name in results.
    pub name: String,
    /// Where it is.
    pub address: Address,
    /// Processes that belong to it, besides the listener's.
    pub more: Processes,
    /// Protocols that it can't be measured with.
    pub without: Vec<Protocol>,
}

impl Target {
    /// A server alone, with all protocols.
    pub fn new(name: &str, address: Address) -> Target {
        Target { name: name.to_owned(), address, more: Processes::default(), without: Vec::new() }
    }
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// Servers.
    pub targets: Vec<Target>,
    /// Numbers of connections.
    pub clients: Vec<u32>,
    /// Ways of sending statements.
    pub protocols: Vec<Protocol>,
    /// Workloads.
    pub workloads: Vec<Workload>,
    /// How often each point is taken.
    pub repetitions: u32,
    /// Before each point.
    pub warm_up: Duration,
    /// Of each point.
    pub time: Duration,
    /// The driver's threads, at most one for each client.
    pub threads: u32,
    /// The load driver.
    pub driver: Driver,
    /// Scale of tables that are made; none: as found, or 1.
    pub scale: Option<u32>,
    /// Whether missing tables are made.
    pub init: bool,
    /// Whether whole histograms are kept.
    pub histograms: bool,
    /// Whether stacks are taken of servers that have them.
    pub stacks: bool,
    /// Where random numbers begin.
    pub seed: u64,
}

impl Sweep {
    /// Select-only loads of five seconds, one repetition of each point, no targets.
    pub fn new() -> Sweep {
        Sweep {
            targets: Vec::new(),
            clients: vec![1, 2, 4, 8, 16, 32, 64],
            protocols: vec![Protocol::Prepared],
            workloads: Vec::new(),
            repetitions: 1,
            warm_up: Duration::from_secs(1),
            time: Duration::from_secs(5),
            threads: cores(),
            driver: Driver::Lab,
            scale: None,
            init: false,
            histograms: false,
            stacks: true,
            seed: 1,
        }
    }

    /// Whether it makes sense.
    ///
    /// # Errors
    /// What doesn't, as an error of the command line.
    pub fn check(&self) -> Result<()> {
        let wrong = match () {
            () if self.clients.contains(&0) => "--clients: there must be at least one",
            () if self.threads == 0 => "--threads: there must be at least one",
            () if self.repetitions == 0 => "--repetitions: there must be at least one",
            () if self.scale == Some(0) => "--scale: it must be at least 1",
            () if self.time.is_zero() => "--time: it must be more than nothing",
            () => return Ok(()),
        };
        Err(Error::usage(wrong))
    }
}

impl Default for Sweep {
    fn default() -> Sweep {
        Sweep::new()
    }
}

/// How it went.
#[derive(Debug, Default)]
pub struct Summary {
    /// What was measured, in order.
    pub points: Vec<Point>,
    /// What could not be, in words.
    pub failures: Vec<String>,
    /// Whether Ctrl-C ended it.
    pub interrupted: bool,
}

/// Settings of a server that bear on its throughput; those that it doesn't have are left out.
const SETTINGS: [&str; 22] = [
    "server_version",
    "shared_buffers",
    "max_connections",
    "fsync",
    "synchronous_commit",
    "wal_sync_method",
    "full_page_writes",
    "max_wal_size",
    "checkpoint_timeout",
    "autovacuum",
    "jit",
    "huge_pages",
    "work_mem",
    "default_transaction_isolation",
    "session_model",
    "workers",
    "buffer_partitions",
    "lwlock_shared_limit",
    "track_io_timing",
    "wal_buffers",
    "commit_delay",
    "shared_preload_libraries",
];

/// The same of MySQL's.
const MYSQL_SETTINGS: [&str; 8] = [
    "version",
    "thread_handling",
    "thread_pool_size",
    "max_connections",
    "innodb_buffer_pool_size",
    "innodb_flush_log_at_trx_commit",
    "innodb_log_file_size",
    "transaction_isolation",
];

type Variables = Vec<(&'static str, Value)>;

/// Measures everything and writes it to `out`; failures of single points are in the summary.
///
/// # Errors
/// Scripts that don't compile, results that can't be written, no target that can be measured.
pub fn measure(sweep: &Sweep, out: &mut Output, stop: &AtomicBool) -> Result<Summary> {
    let mut programs = Vec::new();
    for workload in &sweep.workloads {
        programs.push(workload.compile()?);
    }
    let mut run = Run {
        sweep,
        programs,
        stop,
        summary: Summary::default(),
        ready: BTreeMap::new(),
        gone: BTreeSet::new(),
    };
    run.set_up(out)?;
    if run.ready.is_empty() {
        return Err(Error::new(run.summary.failures.join("\n")));
    }
    let progress = Progress::new(run.count());
    let result = run.points(out, &progress);
    progress.finish();
    run.summary.interrupted = stop.load(Ordering::Relaxed);
    result.map(|()| run.summary)
}

struct Run<'a> {
    sweep: &'a Sweep,
    programs: Vec<Program>,
    stop: &'a AtomicBool,
    summary: Summary,
    /// Variables by target and workload, where the tables are there.
    ready: BTreeMap<(usize, usize), Variables>,
    /// Targets that went away.
    gone: BTreeSet<usize>,
}

impl Run<'_> {
    /// Looks at every target and sees to its tables.
    fn set_up(&mut self, out: &mut Output) -> Result<()> {
        for (t, target) in self.sweep.targets.iter().enumerate() {
            let mut server = match Connection::open(&target.address) {
                Ok(server) => server,
                Err(failure) => {
                    let shown = target.address.shown();
                    self.fail(format!("{}: no connection to {shown}: {failure}", target.name));
                    continue;
                }
            };
            out.write(&Record::Target(describe(target, &mut server)))?;
            for (w, workload) in self.sweep.workloads.iter().enumerate() {
                if self.stop.load(Ordering::Relaxed) {
                    return Ok(());
                }
                let (scale, init) = (self.sweep.scale, self.sweep.init);
                match workload::prepare(&mut server, workload.tables, scale, init) {
                    Ok(variables) => drop(self.ready.insert((t, w), variables)),
                    Err(error) => self.fail(format!("{}, {}: {error}", target.name, workload.name)),
                }
            }
        }
        Ok(())
    }

    fn fail(&mut self, message: String) {
        if !self.summary.failures.contains(&message) {
            self.summary.failures.push(message);
        }
    }

    fn count(&self) -> usize {
        let sweep = self.sweep;
        let each = sweep.protocols.len() * sweep.clients.len() * sweep.repetitions as usize;
        self.ready.len() * each
    }

    fn points(&mut self, out: &mut Output, progress: &Progress) -> Result<()> {
        let sweep = self.sweep;
        for repetition in 0..sweep.repetitions {
            for w in 0..sweep.workloads.len() {
                for &protocol in &sweep.protocols {
                    for &clients in &sweep.clients {
                        for i in 0..sweep.targets.len() {
                            if self.stop.load(Ordering::Relaxed) {
                                return Ok(());
                            }
                            let t = (i + repetition as usize) % sweep.targets.len();
                            let at = At { t, w, protocol, clients, repetition };
                            self.point(&at, out, progress)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn point(&mut self, at: &At, out: &mut Output, progress: &Progress) -> Result<()> {
        let Some(variables) = self.ready.get(&(at.t, at.w)).cloned() else { return Ok(()) };
        if self.sweep.targets[at.t].without.contains(&at.protocol) {
            progress.skip();
            return Ok(());
        }
        if self.gone.contains(&at.t) {
            progress.skip();
            return Ok(());
        }
        let target = &self.sweep.targets[at.t];
        let label = format!(
            "{}, {}, {}, {} clients",
            target.name,
            self.sweep.workloads[at.w].name,
            at.protocol.name(),
            at.clients
        );
        progress.begin(&label);
        match self.take(at, &variables) {
            Ok(None) => {}
            Ok(Some(point)) => {
                progress.done(&label, &point);
                out.write(&Record::Point(point.clone()))?;
                self.summary.points.push(point);
            }
            Err(error) => {
                progress.failed(&label, &error);
                self.fail(format!("{label}: {error}"));
                if Connection::open(&target.address).is_err_and(|f| f.code.starts_with("08")) {
                    self.gone.insert(at.t);
                    let name = &target.name;
                    self.fail(format!("{name} is gone; its remaining points are left out"));
                }
            }
        }
        Ok(())
    }

    /// Whether this point gets stacks: the last of those with the most clients.
    fn gets_stacks(&self, at: &At) -> bool {
        let most = self.sweep.clients.iter().max();
        self.sweep.stacks
            && at.repetition + 1 == self.sweep.repetitions
            && Some(&at.clients) == most
    }

    /// One point; none if Ctrl-C came.
    fn take(&self, at: &At, variables: &Variables) -> Result<Option<Point>> {
        let (sweep, target) = (self.sweep, &self.sweep.targets[at.t]);
        let workload = &sweep.workloads[at.w];
        if let Some(sql) = workload.before {
            Connection::open(&target.address)?.query(sql)?;
        }
        let threads = sweep.threads.min(at.clients);
        let seed = sweep.seed.wrapping_add(u64::from(at.repetition));
        let load = Load {
            address: &target.address,
            program: &self.programs[at.w],
            protocol: at.protocol,
            clients: at.clients,
            threads,
            warm_up: sweep.warm_up,
            time: sweep.time,
            seed,
            variables,
        };
        let stacks = if self.gets_stacks(at) {
            let short = Load { time: sweep.time.clamp(STACKS[0], STACKS[1]), ..load };
            stacks::take(&short, self.stop)?
        } else {
            None
        };
        let mut observer = Observer::new(&target.address, target.more.clone())?;
        observer.before();
        let mut point = match sweep.driver {
            Driver::Lab => {
                let outcome = driver::run(&load, self.stop, |edge| observer.edge(edge))?;
                let Some(outcome) = outcome else { return Ok(None) };
                from_outcome(&outcome, sweep.histograms)?
            }
            Driver::Pgbench => {
                let run = pgbench::Run {
                    address: &target.address,
                    workload,
                    variables,
                    protocol: at.protocol,
                    clients: at.clients,
                    threads,
                    warm_up: sweep.warm_up,
                    time: sweep.time,
                };
                let printed = pgbench::run(&run, self.stop, |edge| observer.edge(edge))?;
                let Some(printed) = printed else { return Ok(None) };
                from_pgbench(&printed, sweep.time)
            }
        };
        observer.into_point(&mut point);
        point.stacks = stacks;
        point.target.clone_from(&target.name);
        point.workload.clone_from(&workload.name);
        point.protocol = at.protocol.name().to_owned();
        point.driver = sweep.driver.name().to_owned();
        (point.clients, point.repetition) = (at.clients, at.repetition);
        Ok(Some(point))
    }
}

/// Which point.
struct At {
    t: usize,
    w: usize,
    protocol: Protocol,
    clients: u32,
    repetition: u32,
}

fn describe(target: &Target, server: &mut Connection) -> results::Target {
    let mut settings = BTreeMap::new();
    let (names, ask) = match server.dialect() {
        Dialect::PostgreSql => (&SETTINGS[..], "SHOW "),
        Dialect::MySql => (&MYSQL_SETTINGS[..], "SELECT @@"),
    };
    for &name in names {
        if let Ok(Some(value)) = server.value(&format!("{ask}{name}")) {
            settings.insert(name.to_owned(), value);
        }
    }
    let version = server.value("SELECT version()").ok().flatten();
    let reported = server.parameters.get("server_version").cloned();
    results::Target {
        name: target.name.clone(),
        url: target.address.shown(),
        version: version.or(reported).unwrap_or_default(),
        settings,
    }
}

fn from_outcome(outcome: &Outcome, whole: bool) -> Result<Point> {
    let tally = &outcome.tally;
    let latency = &tally.latency;
    let percentiles = [50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99, 100.0];
    let mut histogram = String::new();
    if whole {
        let mut bytes = Vec::new();
        let written = V2Serializer::new().serialize(latency, &mut bytes);
        written.map_err(|e| Error::new(format!("the histogram can't be written: {e:?}")))?;
        histogram = STANDARD.encode(bytes);
    }
    Ok(Point {
        seconds: outcome.seconds,
        transactions: tally.transactions,
        all_transactions: tally.all_transactions,
        errors: tally.errors.clone(),
        tps: tally.transactions as f64 / outcome.seconds,
        latency: Latency {
            mean: tally.latency_ns as f64 / 1000.0 / tally.transactions.max(1) as f64,
            percentiles: percentiles.map(|p| (p, latency.value_at_percentile(p))).to_vec(),
            histogram,
        },
        driver_cpu: Some(outcome.cpu),
        ..Point::default()
    })
}

fn from_pgbench(printed: &pgbench::Printed, time: Duration) -> Point {
    Point {
        seconds: time.as_secs_f64(),
        transactions: printed.transactions,
        all_transactions: printed.transactions,
        errors: printed.errors(),
        tps: printed.tps,
        latency: Latency { mean: printed.latency_ms * 1000.0, ..Latency::default() },
        driver_cpu: Some(printed.cpu),
        ..Point::default()
    }
}
