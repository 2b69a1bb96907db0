//! `lab tpcc`: TPC-C's nine tables, five transactions and mix on one or several servers, which take turns, and the
//! standard's twelve consistency conditions afterwards.
//!
//! ```text
//!   load ─► for each number of clients: turn of the first server, turn of the second, … ─► check
//! ```
//! What differs from the standard: no think times unless asked for, so more than ten terminals to a warehouse; a
//! terminal's transactions go through one connection; Delivery is run at once, not queued; the response times that the
//! standard demands are reported, not required. So figures compare servers in one run, nothing else.

mod check;
mod load;
mod random;
mod schema;
mod session;
mod transactions;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::arguments::{Argument, Arguments};
use crate::driver::{Address, Connection, Failure, Tally};
use crate::environment::environment;
use crate::error::Exit;
use crate::servers::{self, Folder, Server, Size};
use crate::{Error, Result, stop};
use random::Random;
use session::Session;
use transactions::{End, Kind, Terminal};

/// What `threadgres lab tpcc --help` prints.
pub const HELP: &str = "\
Runs TPC-C's transactions on servers that take turns, and checks its twelve consistency conditions. Prints
New-Order transactions a minute (tpmC), ratios to the first server, and latencies.

Usage: threadgres lab tpcc [OPTION]… [NAME=postgres://USER:PASSWORD@HOST:PORT/DATABASE]…

  -w, --warehouses LIST   sizes of the tables (4,20)
  -c, --clients LIST      numbers of terminals (8,64)
  -M, --mode MODE         simple, prepared, procedures (prepared)
  -T, --time SECONDS      measured time of each turn (20)
      --warm-up SECONDS   before each turn (3)
  -r, --rounds N          turns of each server at each point (1)
      --think FACTOR      keying and think times, times this factor (0: none)
      --small             a hundredth of the standard's items and a fiftieth of its customers
      --foreign-keys      with the standard's foreign keys
      --keep              take the tables as they are, made by an earlier run with the same sizes
      --seed N            where random numbers begin (1)
  -o, --output FILE       the table is written there, too

Tables of these names in the database are dropped. Without an address it starts PostgreSQL 15 and Threadgres in
temporary folders on loopback with the same durability. Orders that are rolled back, one in a hundred, don't count.
";

/// How statements travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Query messages with the values in their text.
    Simple,
    /// Each statement is prepared once by each terminal.
    Prepared,
    /// One call of a procedure in PL/pgSQL for each transaction.
    Procedures,
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Mode::Simple => "simple",
            Mode::Prepared => "prepared",
            Mode::Procedures => "procedures",
        }
    }
}

impl std::str::FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Mode, String> {
        let all = [Mode::Simple, Mode::Prepared, Mode::Procedures];
        let found = all.into_iter().find(|mode| mode.name() == text);
        found.ok_or_else(|| "none of simple, prepared, procedures".to_owned())
    }
}

/// How large the tables are.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    warehouses: i64,
    /// Of each warehouse.
    districts: i64,
    /// Of each district; as many orders are loaded.
    customers: i64,
    items: i64,
}

impl Sizes {
    fn new(warehouses: i64, small: bool) -> Sizes {
        let (customers, items) = if small { (60, 1000) } else { (3000, 100_000) };
        Sizes { warehouses, districts: 10, customers, items }
    }

    /// How many of a district's loaded orders are delivered.
    fn delivered(&self) -> i64 {
        self.customers * 7 / 10
    }
}

/// What is to be done.
struct Plan {
    targets: Vec<(String, Address)>,
    warehouses: Vec<i64>,
    clients: Vec<u32>,
    mode: Mode,
    time: Duration,
    warm_up: Duration,
    rounds: u32,
    think: f64,
    small: bool,
    foreign_keys: bool,
    keep: bool,
    seed: u64,
    output: Option<PathBuf>,
}

/// Runs it.
///
/// # Errors
/// A wrong command line, a server that fails a statement, a condition that does not hold, Ctrl-C.
pub fn run(mut args: Arguments) -> Result<()> {
    let mut plan = read(&mut args)?;
    let stop = stop::flag()?;
    let most = plan.clients.iter().copied().max().unwrap_or(1);
    crate::driver::allow_descriptors(most * 2 + 100)?;
    let started = match plan.targets.is_empty() {
        true => Some(start(&mut plan, most)?),
        false => None,
    };
    let mut text = header(&plan, args.all());
    print!("{text}");
    for warehouses in plan.warehouses.clone() {
        let sizes = Sizes::new(warehouses, plan.small);
        measure(&plan, &sizes, &stop, &mut text)?;
    }
    drop(started);
    match &plan.output {
        Some(path) => std::fs::write(path, text).map_err(|e| Error::file(path, e)),
        None => Ok(()),
    }
}

fn read(args: &mut Arguments) -> Result<Plan> {
    let mut plan = Plan {
        targets: Vec::new(),
        warehouses: vec![4, 20],
        clients: vec![8, 64],
        mode: Mode::Prepared,
        time: Duration::from_secs(20),
        warm_up: Duration::from_secs(3),
        rounds: 1,
        think: 0.0,
        small: false,
        foreign_keys: false,
        keep: false,
        seed: 1,
        output: None,
    };
    while let Some(argument) = args.option()? {
        match argument {
            Argument::Long("warehouses") | Argument::Short('w') => plan.warehouses = args.list()?,
            Argument::Long("clients") | Argument::Short('c') => plan.clients = args.list()?,
            Argument::Long("mode") | Argument::Short('M') => plan.mode = args.value()?,
            Argument::Long("time") | Argument::Short('T') => plan.time = args.seconds()?,
            Argument::Long("warm-up") => plan.warm_up = args.seconds()?,
            Argument::Long("rounds") | Argument::Short('r') => plan.rounds = args.value()?,
            Argument::Long("think") => plan.think = args.value()?,
            Argument::Long("small") => plan.small = true,
            Argument::Long("foreign-keys") => plan.foreign_keys = true,
            Argument::Long("keep") => plan.keep = true,
            Argument::Long("seed") => plan.seed = args.value()?,
            Argument::Long("output") | Argument::Short('o') => plan.output = Some(args.path()?),
            Argument::Operand(text) => {
                plan.targets.push(target(&text.to_string_lossy())?);
            }
            other => return Err(other.unknown()),
        }
    }
    if plan.warehouses.iter().any(|w| !(1..=10_000).contains(w)) {
        return Err(Error::usage("warehouses: from 1 to 10000"));
    }
    if plan.clients.iter().any(|c| !(1..=10_000).contains(c)) || plan.rounds == 0 {
        return Err(Error::usage("clients: from 1 to 10000; rounds: at least 1"));
    }
    if !(0.0..=100.0).contains(&plan.think) {
        return Err(Error::usage("think: from 0 to 100"));
    }
    Ok(plan)
}

fn target(text: &str) -> Result<(String, Address)> {
    let (name, url) = match text.find("://").and_then(|end| text[..end].rfind('=')) {
        Some(at) => (text[..at].to_owned(), &text[at + 1..]),
        None => (text.to_owned(), text),
    };
    let address: Address = url.parse().map_err(|e| Error::usage(format!("{name:?}: {e}")))?;
    let name = if name == url { address.shown() } else { name };
    Ok((name, address))
}

/// Starts PostgreSQL and this server.
fn start(plan: &mut Plan, clients: u32) -> Result<(Server, Server, Folder)> {
    let dir = Folder::new()?;
    let size = Size { clients, buffers_mb: 2048 };
    let postgresql = servers::postgresql(dir.path(), size)?;
    let ours = servers::threadgres(dir.path(), "pooled", size)?;
    plan.targets.push(("PostgreSQL 15".to_owned(), postgresql.address()));
    plan.targets.push(("Threadgres".to_owned(), ours.address()));
    Ok((postgresql, ours, dir))
}

fn header(plan: &Plan, arguments: &[String]) -> String {
    let e = environment(arguments);
    format!(
        "# TPC-C\n\n{}; {} cores ({}), Linux {}; clients and servers on one machine; mode {}, {} turns of {} s, \
         think times × {}{}{}. Latencies in milliseconds, 95th percentiles.\n\n\
         | warehouses | clients | server | tpmC | ratio | New-Order | Payment | Order-Status | Delivery | Stock-Level \
         | rolled back | tried again |\n| ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
        e.started,
        e.cores,
        e.processor,
        e.kernel,
        plan.mode.name(),
        plan.rounds,
        plan.time.as_secs_f64(),
        plan.think,
        if plan.small { ", small tables" } else { "" },
        if plan.foreign_keys { ", foreign keys" } else { "" },
    )
}

/// Loads, measures each number of clients, and checks.
fn measure(plan: &Plan, sizes: &Sizes, stop: &Arc<AtomicBool>, text: &mut String) -> Result<()> {
    for (name, address) in &plan.targets {
        check_stop(stop)?;
        if plan.keep {
            continue;
        }
        let begun = Instant::now();
        let mut connection = Connection::open(address)?;
        load::load(&mut connection, sizes, plan.foreign_keys)
            .map_err(|e| Error::new(format!("{name}: {e}")))?;
        eprintln!(
            "{name}: {} warehouses loaded in {:.1} s",
            sizes.warehouses,
            begun.elapsed().as_secs_f64()
        );
    }
    for clients in &plan.clients {
        let mut counts: Vec<Count> = plan.targets.iter().map(|_| Count::new()).collect();
        let mut terminals = Vec::new();
        for (_, address) in &plan.targets {
            terminals.push(connect(plan, sizes, address, *clients)?);
        }
        for round in 0..plan.rounds {
            for turn in 0..plan.targets.len() {
                let at = if round % 2 == 0 { turn } else { plan.targets.len() - 1 - turn };
                let count = take_turn(plan, &mut terminals[at], stop)
                    .map_err(|e| Error::new(format!("{}: {e}", plan.targets[at].0)))?;
                check_stop(stop)?;
                counts[at].merge(&count);
            }
        }
        let seconds = plan.time.as_secs_f64() * f64::from(plan.rounds);
        for (count, (name, _)) in counts.iter().zip(&plan.targets) {
            let ratio = count.orders() / counts[0].orders();
            let line = count.line(sizes.warehouses, *clients, name, ratio, seconds);
            println!("{line}");
            text.push_str(&line);
            text.push('\n');
        }
    }
    for (name, address) in &plan.targets {
        check_stop(stop)?;
        check::check(&mut Connection::open(address)?, sizes, name)?;
    }
    println!("All conditions hold with {} warehouses.", sizes.warehouses);
    let _ = writeln!(text, "\nAll conditions hold with {} warehouses.\n", sizes.warehouses);
    Ok(())
}

fn check_stop(stop: &AtomicBool) -> Result<()> {
    match stop.load(Ordering::Relaxed) {
        true => Err(Error::new("interrupted").exit(Exit::Interrupted)),
        false => Ok(()),
    }
}

fn connect<'a>(
    plan: &Plan,
    sizes: &'a Sizes,
    address: &Address,
    clients: u32,
) -> Result<Vec<Terminal<'a>>> {
    let terminal = |number: u32| {
        let session = Session::new(Connection::open(address)?, plan.mode);
        let random = Random::new(plan.seed.wrapping_mul(1_000_003).wrapping_add(number.into()));
        let warehouse = i64::from(number) % sizes.warehouses + 1;
        Ok(Terminal { session, random, sizes, warehouse })
    };
    (0..clients).map(terminal).collect()
}

/// What one server has done.
struct Count {
    /// By the transactions' order in the mix.
    latency: Vec<Histogram<u64>>,
    rolled_back: u64,
    /// Ended by a deadlock or a serialization failure.
    again: BTreeMap<String, u64>,
}

impl Count {
    fn new() -> Count {
        let latency = Kind::ALL.iter().map(|_| Tally::new().latency).collect();
        Count { latency, rolled_back: 0, again: BTreeMap::new() }
    }

    fn merge(&mut self, other: &Count) {
        for (mine, others) in self.latency.iter_mut().zip(&other.latency) {
            let added = mine.add(others);
            debug_assert!(added.is_ok(), "all histograms have the same bounds");
        }
        self.rolled_back += other.rolled_back;
        for (code, count) in &other.again {
            *self.again.entry(code.clone()).or_default() += count;
        }
    }

    /// New-Order transactions that were committed.
    fn orders(&self) -> f64 {
        self.latency[0].len() as f64
    }

    fn line(&self, warehouses: i64, clients: u32, name: &str, ratio: f64, seconds: f64) -> String {
        let tpmc = self.orders() * 60.0 / seconds;
        let mut line = format!("| {warehouses} | {clients} | {name} | {tpmc:.0} | {ratio:.2} |");
        for latency in &self.latency {
            let _ = write!(line, " {:.1} |", latency.value_at_quantile(0.95) as f64 / 1000.0);
        }
        let again: u64 = self.again.values().sum();
        let _ = write!(line, " {} | {again} |", self.rolled_back);
        line
    }
}

/// Runs all terminals for the warm-up and the measured time.
fn take_turn(plan: &Plan, terminals: &mut [Terminal<'_>], stop: &AtomicBool) -> Result<Count> {
    let from = Instant::now() + plan.warm_up;
    let until = from + plan.time;
    let failed = AtomicBool::new(false);
    let parts: Vec<Result<Count, Failure>> = std::thread::scope(|scope| {
        let work = |terminal| {
            let failed = &failed;
            move || {
                let result = work(plan, terminal, (from, until), &[stop, failed]);
                if result.is_err() {
                    failed.store(true, Ordering::Relaxed);
                }
                result
            }
        };
        let threads: Vec<_> = terminals.iter_mut().map(|t| scope.spawn(work(t))).collect();
        let panicked =
            || Failure { code: "XX000".to_owned(), message: "a terminal panicked".to_owned() };
        threads.into_iter().map(|t| t.join().unwrap_or_else(|_| Err(panicked()))).collect()
    });
    let mut count = Count::new();
    for part in parts {
        count.merge(&part?);
    }
    Ok(count)
}

/// One terminal's part: transactions that end within the window count.
fn work(
    plan: &Plan,
    terminal: &mut Terminal<'_>,
    (from, until): (Instant, Instant),
    ends: &[&AtomicBool],
) -> Result<Count, Failure> {
    let mut count = Count::new();
    let ended = || Instant::now() >= until || ends.iter().any(|end| end.load(Ordering::Relaxed));
    while !ended() {
        let kind = terminal.draw();
        let at = Kind::ALL.iter().position(|(k, ..)| *k == kind).unwrap_or(0);
        let (_, _, keying, think) = Kind::ALL[at];
        rest(keying * plan.think, &ended);
        let begun = Instant::now();
        let result = terminal.run(kind);
        let now = Instant::now();
        let counts = now >= from && now < until;
        match result {
            Ok(End::Committed) if counts => {
                count.latency[at].saturating_record((now - begun).as_micros() as u64);
            }
            Ok(End::RolledBack) if counts => count.rolled_back += 1,
            Ok(_) => {}
            Err(failure) if matches!(failure.code.as_str(), "40001" | "40P01") => {
                if counts {
                    *count.again.entry(failure.code).or_default() += 1;
                }
            }
            Err(failure) => return Err(failure),
        }
        let pause = terminal.random.exponential(think * plan.think);
        rest(pause, &ended);
    }
    Ok(count)
}

/// Sleeps so many seconds, or until the turn is over.
fn rest(seconds: f64, ended: &impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs_f64(seconds.max(0.0));
    while !ended() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(Duration::from_millis(50)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_read_and_checked() {
        let words = ["-w", "1", "-c", "2,3", "-M", "simple", "--small", "pg=postgres://u@h/d"];
        let plan = read(&mut Arguments::new(words)).unwrap();
        assert_eq!((plan.warehouses, plan.clients, plan.mode), (vec![1], vec![2, 3], Mode::Simple));
        assert_eq!(plan.targets[0].0, "pg");
        for (words, expected) in [
            (["-w", "0"], "warehouses: from 1"),
            (["-M", "fast"], "-M: \"fast\": none of simple"),
            (["--think", "-1"], "think: from 0"),
        ] {
            let error = read(&mut Arguments::new(words)).map(drop).unwrap_err();
            assert!(error.to_string().starts_with(expected), "{error}");
        }
    }
}
