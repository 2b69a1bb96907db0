//! `lab sessions`: what a session costs, idle and at work. Threadgres beside a server that does nothing
//! (the limit that client, protocol and kernel set) and PostgreSQL 15, in one run with the same durability.
//!
//! ```text
//!   idle sessions ─► memory of each         connect, query, disconnect ─► rate
//!   select-only, 10 … 10,000 clients        tpcb-like, two scales, 10 … 1,000 clients
//!   100 active clients, with and without 10,000 idle ones beside them
//! ```
//! Servers take turns at every point, each point is taken some times, and its median counts. PostgreSQL is
//! left out where it would need a process for each of ten thousand clients.

mod connects;
mod idle;
mod points;
mod table;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::arguments::{Argument, Arguments};
use crate::driver::{Address, Connection};
use crate::environment::environment;
use crate::error::Exit;
use crate::servers::{self, Folder, Server, Size};
use crate::sweep::process::Processes;
use crate::workload::{self, Tables};
use crate::{Error, Result, stop};
use idle::Idle;
use points::Points;
use table::{Row, Table};

/// What `threadgres lab sessions --help` prints.
pub const HELP: &str = "\
Measures what sessions cost: memory of idle ones, connecting, select-only and tpcb-like with up to
10,000 clients, and what 10,000 idle sessions cost active ones. Threadgres beside a server that does
nothing and PostgreSQL 15; prints one table. About ten minutes.

Usage: threadgres lab sessions [OPTION]…

  -T, --time SECONDS   measured time of each server at each point, in turns of half a second (9)
      --quick          short points, smaller tables, at most 1,000 clients
  -o, --output FILE    the table is written there, too
";

/// PostgreSQL has a process for each client: beyond this number it can't follow.
const POSTGRES_MOST: u32 = 1000;
/// Clients that connect, ask and leave at the same time.
const CONNECTING: u32 = 10;
/// Active clients beside idle ones.
const ACTIVE: u32 = 100;
/// Time for a server to give back what it no longer needs.
const SETTLE: Duration = Duration::from_secs(3);

/// What is measured.
struct Plan {
    time: Duration,
    /// Numbers of idle sessions.
    idle: Vec<u32>,
    /// Numbers of clients of select-only.
    selects: Vec<u32>,
    /// Numbers of clients of tpcb-like.
    updates: Vec<u32>,
    /// Scales, small to large; select-only uses the last one.
    scales: [u32; 2],
}

/// Runs it.
///
/// # Errors
/// A wrong command line, too few open files, a server that does not start or fails a statement, Ctrl-C.
pub fn run(mut args: Arguments) -> Result<()> {
    let (plan, path) = read(&mut args)?;
    let stop = stop::flag()?;
    let most = plan.idle.iter().chain(&plan.selects).copied().max().unwrap_or(0) + ACTIVE;
    crate::driver::allow_descriptors(most + 100)?;
    let dir = Folder::new()?;
    let mut bench = Bench::start(dir.path(), &plan, most, stop)?;
    bench.run(dir.path())?;
    let text = format!("{}\n{}", header(&plan, args.all()), bench.table.markdown());
    println!("{text}");
    match path {
        Some(path) => std::fs::write(&path, text).map_err(|e| Error::file(&path, e)),
        None => Ok(()),
    }
}

fn read(args: &mut Arguments) -> Result<(Plan, Option<PathBuf>)> {
    let mut plan = Plan {
        time: Duration::from_secs(9),
        idle: vec![1000, 10_000],
        selects: vec![10, 100, 1000, 10_000],
        updates: vec![10, 100, 1000],
        scales: [1, 100],
    };
    let mut path = None;
    while let Some(argument) = args.option()? {
        match argument {
            Argument::Long("time") | Argument::Short('T') => plan.time = args.seconds()?,
            Argument::Long("quick") => {
                plan = Plan {
                    time: Duration::from_secs(1),
                    idle: vec![1000],
                    selects: vec![10, 100, 1000],
                    updates: vec![10, 100],
                    scales: [1, 10],
                };
            }
            Argument::Long("output") | Argument::Short('o') => path = Some(args.path()?),
            other => return Err(other.unknown()),
        }
    }
    Ok((plan, path))
}

fn header(plan: &Plan, arguments: &[String]) -> String {
    let e = environment(arguments);
    format!(
        "# What sessions cost\n\n{}; {} cores ({}), Linux {}; clients and servers on one machine, fsync on, \
         prepared statements, {} s for each server at each point, in turns of half a second. Absolute \
         figures are this machine's; the ratios are what counts.\n",
        e.started,
        e.cores,
        e.processor,
        e.kernel,
        plan.time.as_secs_f64()
    )
}

/// The servers, and what was found so far.
struct Bench<'a> {
    plan: &'a Plan,
    stop: Arc<AtomicBool>,
    ours: Server,
    null: Server,
    postgres: Server,
    table: Table,
}

impl<'a> Bench<'a> {
    fn start(dir: &Path, plan: &'a Plan, most: u32, stop: Arc<AtomicBool>) -> Result<Bench<'a>> {
        Ok(Bench {
            plan,
            stop,
            ours: servers::threadgres(dir, "pooled", size(most))?,
            null: servers::does_nothing(dir)?,
            postgres: servers::postgresql(dir, size(POSTGRES_MOST))?,
            table: Table::default(),
        })
    }

    fn run(&mut self, dir: &Path) -> Result<()> {
        let [small, large] = self.plan.scales;
        self.load(small)?;
        self.memory()?;
        self.connects()?;
        self.updates(small)?;
        self.load(large)?;
        self.updates(large)?;
        self.selects(large)?;
        self.beside_idle(dir, large)
    }

    fn check_stop(&self) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(Error::new("interrupted").exit(Exit::Interrupted));
        }
        Ok(())
    }

    /// Makes pgbench's tables.
    fn load(&self, scale: u32) -> Result<()> {
        for server in [&self.ours, &self.postgres] {
            self.check_stop()?;
            load(server, scale)?;
        }
        Ok(())
    }

    fn memory(&mut self) -> Result<()> {
        for count in self.plan.idle.clone() {
            self.check_stop()?;
            let ours = memory_of_each(&self.ours, count)?;
            let null = memory_of_each(&self.null, count)?;
            let postgres = match count {
                0..=POSTGRES_MOST => Some(memory_of_each(&self.postgres, count)?),
                _ => None,
            };
            self.table.add(Row {
                what: format!("memory of each of {} idle sessions", table::thousands(count)),
                ours: table::kilobytes(ours),
                null: table::kilobytes(null),
                postgres: postgres.map_or_else(|| "-".to_owned(), table::kilobytes),
                aim: "at most 16 kB".to_owned(),
                met: Some(ours <= 16.0 * 1024.0),
            });
        }
        Ok(())
    }

    fn connects(&mut self) -> Result<()> {
        let mut rates = [0.0; 3];
        let rounds = points::rounds(self.plan.time);
        for _ in 0..rounds {
            for (server, rate) in
                [&self.ours, &self.null, &self.postgres].into_iter().zip(&mut rates)
            {
                self.check_stop()?;
                let turn = self.plan.time / rounds;
                *rate += connects::rate(&server.address(), CONNECTING, turn)? / f64::from(rounds);
            }
        }
        let [ours, null, postgres] = rates;
        self.table.add(Row {
            what: format!("connect, one query, disconnect ({CONNECTING} at a time), a second"),
            ours: format!("{ours:.0}: {}", table::ratios(ours, Some(null), Some(postgres))),
            null: format!("{null:.0}"),
            postgres: format!("{postgres:.0}"),
            aim: "0.5 of nothing, 20 x PostgreSQL".to_owned(),
            met: Some(ours >= 0.5 * null && ours >= 20.0 * postgres),
        });
        Ok(())
    }

    fn points(&self, workload: &str, scale: u32) -> Result<Points> {
        Points::new(workload, scale, self.plan.time, self.stop.clone())
    }

    /// Each server at one number of clients.
    fn point(&self, points: &Points, clients: u32) -> Result<[Option<points::Figures>; 3]> {
        let follows = clients <= POSTGRES_MOST;
        let servers = [Some(&self.ours), Some(&self.null), follows.then_some(&self.postgres)];
        let all = servers.into_iter().flatten().map(|server| (server.address(), clients));
        let mut figures = points.together(&all.collect::<Vec<_>>())?.into_iter();
        Ok(std::array::from_fn(|_| figures.next()))
    }

    fn selects(&mut self, scale: u32) -> Result<()> {
        let points = self.points("select-only", scale)?;
        for clients in self.plan.selects.clone() {
            let [ours, null, postgres] = self.point(&points, clients)?;
            let met = ours.as_ref().zip(null.as_ref()).map(|(o, n)| o.tps >= 0.65 * n.tps);
            self.table.add(Row::throughput(
                format!("select-only, {} clients, a second", table::thousands(clients)),
                [ours, null, postgres],
                "0.65 of nothing",
                met,
            ));
        }
        Ok(())
    }

    fn updates(&mut self, scale: u32) -> Result<()> {
        let points = self.points("tpcb-like", scale)?;
        for clients in self.plan.updates.clone() {
            let figures = self.point(&points, clients)?;
            let what = format!(
                "tpcb-like, scale {scale}, {} clients, a second",
                table::thousands(clients)
            );
            self.table.add(Row::throughput(what, figures, "", None));
        }
        // Once more, the numbers of clients in turns: minutes apart they would compare the machine.
        let crowds = self.plan.updates.iter().map(|clients| (self.ours.address(), *clients));
        let all = points.together(&crowds.collect::<Vec<_>>())?;
        let least = all.iter().map(|f| f.tps).fold(f64::INFINITY, f64::min);
        let most = all.iter().map(|f| f.tps).fold(0.0, f64::max);
        self.table.add(Row {
            what: format!("tpcb-like, scale {scale}: lowest of these over highest, in turns"),
            ours: format!("{:.2}", least / most),
            null: String::new(),
            postgres: String::new(),
            aim: "flat: at least 0.8".to_owned(),
            met: Some(least >= 0.8 * most),
        });
        Ok(())
    }

    /// What idle sessions cost active ones: two servers, one of which has them. Half of the time it is
    /// the one, then the other.
    fn beside_idle(&mut self, dir: &Path, scale: u32) -> Result<()> {
        let points = self.points("select-only", scale)?;
        let count = self.plan.idle.iter().copied().max().unwrap_or(0);
        let folder = dir.join("second");
        std::fs::create_dir(&folder)?;
        let second = servers::threadgres(&folder, "pooled", size(count + ACTIVE))?;
        let servers = [&self.ours, &second];
        load(&second, scale)?;
        let (mut alone, mut beside) = (0.0, 0.0);
        for crowded in 0..2 {
            let _idle = Idle::open(&servers[crowded].address(), count)?;
            std::thread::sleep(SETTLE);
            let figures = points.together(&servers.map(|s| (s.address(), ACTIVE)))?;
            beside += figures[crowded].tps / 2.0;
            alone += figures[1 - crowded].tps / 2.0;
        }
        let cost = (1.0 - beside / alone) * 100.0;
        let idle = table::thousands(count);
        self.table.add(Row {
            what: format!("select-only, {ACTIVE} clients, beside {idle} idle sessions, a second"),
            ours: format!("{beside:.0}; alone {alone:.0}: cost {cost:.1} %"),
            null: String::new(),
            postgres: String::new(),
            aim: "cost under 3 %".to_owned(),
            met: Some(cost < 3.0),
        });
        Ok(())
    }
}

/// Makes pgbench's tables.
fn load(server: &Server, scale: u32) -> Result<()> {
    let mut connection = Connection::open(&server.address())?;
    workload::prepare(&mut connection, Tables::Pgbench, Some(scale), true)?;
    connection.query("CHECKPOINT")?;
    Ok(())
}

fn size(clients: u32) -> Size {
    Size { clients, buffers_mb: 2048 }
}

/// What each of so many idle sessions adds to the server's memory, bytes.
fn memory_of_each(server: &Server, count: u32) -> Result<f64> {
    let processes = Processes::new(vec![server.pid()]);
    let memory = || processes.memory().ok_or("a server's memory can't be read");
    let address: Address = server.address();
    // What the first sessions of all bring into memory is not theirs.
    drop(Idle::open(&address, 10)?);
    std::thread::sleep(SETTLE);
    let before = memory()?;
    let idle = Idle::open(&address, count)?;
    std::thread::sleep(SETTLE);
    let after = memory()?;
    drop(idle);
    Ok(after.saturating_sub(before) as f64 / f64::from(count))
}
