//! `lab compare`: the servers that are installed here, side by side.
//!
//! The table is that of the thread on pgsql-hackers that showed the first prototype of PostgreSQL with
//! threads: 10, 100 and 1000 connections, simple and prepared, processes against threads.

use std::path::PathBuf;
use std::time::Duration;

use crate::arguments::{Argument, Arguments};
use crate::driver::Protocol;
use crate::environment::cores;
use crate::output::Output;
use crate::servers::{self, Folder, Server, Size};
use crate::sweep::process::Processes;
use crate::sweep::run::{Sweep, Target, measure};
use crate::sweep::{conclude, find_workloads, set, shared_option};
use crate::{Error, Result, installed, stop, table};

/// What `threadgres lab compare --help` prints.
pub const HELP: &str = "\
Measures the servers that are installed here, side by side: PostgreSQL 15, PostgreSQL 15 behind
PgBouncer, MariaDB with its pool of threads, Threadgres with pooled sessions and with a thread for each session.

Usage: threadgres lab compare [OPTION]…

  -c, --clients LIST      numbers of connections (10,100,1000)
  -M, --protocols LIST    simple, extended, prepared (simple,prepared)
  -w, --workloads LIST    as for lab sweep (select-only)
  -T, --time SECONDS      measured time of each point (5)
  -r, --repetitions N     of all points (1)
  -s, --scale N           of the tables (10)
      --quick             short points over small tables
  -o, --output FILE       results are added to it (compare.jsonl)

It starts what it finds in temporary folders on loopback, installs nothing, says what it lacks, and
ends everything it started.
";

/// PgBouncer follows prepared statements through its pools from this version on.
const BOUNCER_PREPARES: (u32, u32) = (1, 21);

/// Runs it.
///
/// # Errors
/// A wrong command line, no server that starts, results that can't be written; points that failed, when
/// the others are kept.
pub fn run(mut args: Arguments) -> Result<()> {
    let (mut sweep, path) = read(&mut args)?;
    let stop = stop::flag()?;
    let mut out = Output::begin(&path, args.all())?;
    let clients = sweep.clients.iter().copied().max().unwrap_or(1);
    let dir = Folder::new()?;
    let started = start(&dir, Size { clients, buffers_mb: 512 });
    for line in &started.lacking {
        eprintln!("{line}");
    }
    sweep.targets = started.targets;
    if sweep.targets.is_empty() {
        return Err(Error::new("none of the servers could be started"));
    }
    let result = measure(&sweep, &mut out, &stop);
    drop(started.servers);
    let summary = result?;
    print!("{}", table::throughput(&summary.points, Some(POSTGRESQL)));
    for line in &started.lacking {
        println!("{line}");
    }
    conclude(&summary, &out)
}

const POSTGRESQL: &str = "PostgreSQL 15";

struct Started {
    targets: Vec<Target>,
    servers: Vec<Server>,
    /// What could not be started, or not be measured, and why.
    lacking: Vec<String>,
}

fn start(dir: &Folder, size: Size) -> Started {
    let mut started = Started { targets: Vec::new(), servers: Vec::new(), lacking: Vec::new() };
    match servers::postgresql(dir.path(), size) {
        Ok(server) => {
            let connections = cores() * 4;
            let bouncer = servers::pgbouncer(dir.path(), &server, connections, size);
            let processes = Processes::new(vec![server.pid()]);
            started.add(POSTGRESQL, server, Processes::default());
            match bouncer {
                Ok(bouncer) => started.add_bouncer(bouncer, processes),
                Err(error) => started.lacking.push(format!("left out: {error}")),
            }
        }
        Err(error) => started.lacking.push(format!("left out: {error}")),
    }
    match servers::mariadb(dir.path(), size) {
        Ok(server) => {
            started.add("MariaDB", server, Processes::default());
            if let Some(target) = started.targets.last_mut() {
                target.without.push(Protocol::Extended);
            }
        }
        Err(error) => started.lacking.push(format!("left out: {error}")),
    }
    for model in ["pooled", "thread"] {
        match servers::threadgres(dir.path(), model, size) {
            Ok(server) => started.add(&format!("Threadgres {model}"), server, Processes::default()),
            Err(error) => started.lacking.push(format!("left out: {error}")),
        }
    }
    started
}

impl Started {
    fn add(&mut self, name: &str, server: Server, more: Processes) {
        self.targets.push(Target { more, ..Target::new(name, server.address()) });
        self.servers.push(server);
    }

    fn add_bouncer(&mut self, server: Server, behind: Processes) {
        self.add("with PgBouncer", server, behind);
        let version = installed::version("pgbouncer");
        if version.is_none_or(|v| v < BOUNCER_PREPARES) {
            let (major, minor) = BOUNCER_PREPARES;
            let why = format!(
                "left out: prepared statements through PgBouncer, which needs {major}.{minor} for them"
            );
            self.lacking.push(why);
            if let Some(target) = self.targets.last_mut() {
                target.without.push(Protocol::Prepared);
            }
        }
    }
}

fn read(args: &mut Arguments) -> Result<(Sweep, PathBuf)> {
    let mut sweep = Sweep {
        clients: vec![10, 100, 1000],
        protocols: vec![Protocol::Simple, Protocol::Prepared],
        scale: Some(10),
        init: true,
        ..Sweep::new()
    };
    let mut path = PathBuf::from("compare.jsonl");
    let mut workloads = vec!["select-only".to_owned()];
    while let Some(argument) = args.option()? {
        if let Some(letter) = shared_option(&argument) {
            set(&mut sweep, &mut workloads, letter, args)?;
            continue;
        }
        match argument {
            Argument::Long("quick") => {
                sweep.time = Duration::from_secs(1);
                sweep.warm_up = Duration::from_millis(300);
                sweep.scale = Some(1);
            }
            Argument::Long("output") | Argument::Short('o') => path = args.path()?,
            other => return Err(other.unknown()),
        }
    }
    find_workloads(&mut sweep, &workloads)?;
    sweep.check()?;
    Ok((sweep, path))
}
