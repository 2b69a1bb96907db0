//! `lab all`: the whole way from load to explanation, on this machine, in one command.
//!
//! PostgreSQL 15 and Threadgres under load, models of their growth, the lock primitives, the simulator
//! calibrated by them, and one report of it all. A part that fails is named at the end; the others go on.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::arguments::{Argument, Arguments};
use crate::error::Exit;
use crate::output::Output;
use crate::servers::{self, Folder, Server, Size};
use crate::sweep::conclude;
use crate::sweep::run::{Sweep, Target, measure};
use crate::workload::Workload;
use crate::{Error, Result, fit, locks, report, simulate, stop, table};

/// What `threadgres lab all --help` prints.
pub const HELP: &str = "\
Measures PostgreSQL 15 and Threadgres, fits models, measures locks, simulates machines with many
cores, and writes one report. Some minutes on two cores.

Usage: threadgres lab all [OPTION]…

  -T, --time SECONDS   measured time of each point (3)
  -r, --repetitions N  of all points (3)
      --quick          short points, one repetition
  -o, --output DIR     where results and report go (lab)
";

/// Runs it.
///
/// # Errors
/// A wrong command line, a folder that can't be written, Ctrl-C; parts that failed, when the others are
/// kept.
pub fn run(mut args: Arguments) -> Result<()> {
    let (mut sweep, dir, quick) = read(&mut args)?;
    std::fs::create_dir_all(&dir).map_err(|e| Error::file(&dir, e))?;
    let files = ["sweep", "locks", "simulate"].map(|name| dir.join(format!("{name}.jsonl")));
    for file in &files {
        // Results of an earlier run would be mixed with these.
        if file.exists() {
            std::fs::remove_file(file).map_err(|e| Error::file(file, e))?;
        }
    }
    let [sweep_file, locks_file, simulate_file] = &files;
    let mut failed = Vec::new();
    let mut note = |part: &str, result: Result<()>| match result {
        Err(error) if error.is(Exit::Interrupted) => Err(error),
        Err(error) => {
            eprintln!("{part}: {error}");
            failed.push(part.to_owned());
            Ok(())
        }
        Ok(()) => Ok(()),
    };
    note("sweep", loads(&mut sweep, sweep_file, args.all()))?;
    note("fit", fit::run(words(&[], &[sweep_file])))?;
    let fast: &[&str] = if quick { &["--quick"] } else { &[] };
    note("locks", locks::run(output(fast, locks_file)))?;
    note("simulate", simulate::run(calibrated(locks_file, simulate_file)))?;
    let existing: Vec<&Path> = files.iter().filter(|f| f.exists()).map(PathBuf::as_path).collect();
    let target = dir.join("report");
    let mut arguments = vec!["--output".into(), target.clone().into_os_string()];
    arguments.extend(existing.iter().map(|f| f.as_os_str().to_owned()));
    note("report", report::run(Arguments::new(arguments)))?;
    if !failed.is_empty() {
        let parts = failed.join(", ");
        return Err(Error::new(format!("failed: {parts}; the rest is in {}", dir.display()))
            .exit(Exit::Partly));
    }
    eprintln!("the report is {}", target.join("index.html").display());
    Ok(())
}

fn words(options: &[&str], files: &[&PathBuf]) -> Arguments {
    let options = options.iter().map(Into::into);
    Arguments::new(options.chain(files.iter().map(|f| f.as_os_str().to_owned())))
}

fn output(options: &[&str], file: &PathBuf) -> Arguments {
    words(&[options, &["--output"]].concat(), &[file])
}

/// Calibrated by the locks, where these could be measured.
fn calibrated(locks: &Path, file: &PathBuf) -> Arguments {
    let mut arguments = vec!["--quick".into(), "--output".into(), file.as_os_str().to_owned()];
    if locks.exists() {
        arguments.extend(["--calibrate".into(), locks.as_os_str().to_owned()]);
    }
    Arguments::new(arguments)
}

/// Starts both servers, measures them, ends them.
fn loads(sweep: &mut Sweep, file: &Path, arguments: &[String]) -> Result<()> {
    let stop = stop::flag()?;
    let mut out = Output::begin(file, arguments)?;
    let dir = Folder::new()?;
    let clients = sweep.clients.iter().copied().max().unwrap_or(1);
    let size = Size { clients, buffers_mb: 512 };
    let servers: Vec<(&str, Server)> = vec![
        ("PostgreSQL 15", servers::postgresql(dir.path(), size)?),
        ("Threadgres", servers::threadgres(dir.path(), "pooled", size)?),
    ];
    for (name, server) in &servers {
        sweep.targets.push(Target::new(name, server.address()));
    }
    let summary = measure(sweep, &mut out, &stop);
    drop(servers);
    let summary = summary?;
    print!("{}", table::throughput(&summary.points, Some("PostgreSQL 15")));
    conclude(&summary, &out)
}

fn read(args: &mut Arguments) -> Result<(Sweep, PathBuf, bool)> {
    let mut sweep = Sweep {
        workloads: vec![Workload::find("select-only")?, Workload::find("tpcb-like")?],
        repetitions: 3,
        warm_up: Duration::from_millis(500),
        time: Duration::from_secs(3),
        scale: Some(10),
        init: true,
        histograms: true,
        ..Sweep::new()
    };
    let (mut dir, mut quick) = (PathBuf::from("lab"), false);
    while let Some(argument) = args.option()? {
        match argument {
            Argument::Long("time") | Argument::Short('T') => sweep.time = args.seconds()?,
            Argument::Long("repetitions") | Argument::Short('r') => {
                sweep.repetitions = args.value()?
            }
            Argument::Long("output") | Argument::Short('o') => dir = args.path()?,
            Argument::Long("quick") => {
                quick = true;
                (sweep.repetitions, sweep.scale) = (1, Some(1));
                (sweep.time, sweep.warm_up) = (Duration::from_secs(1), Duration::from_millis(200));
            }
            other => return Err(other.unknown()),
        }
    }
    sweep.check()?;
    Ok((sweep, dir, quick))
}
