//! `lab sweep`: measures servers over client counts, protocols and workloads.

pub mod observe;
mod pgbench;
pub mod process;
mod progress;
pub mod run;
pub mod stacks;

use std::path::PathBuf;

use crate::arguments::{Argument, Arguments};
use crate::error::Exit;
use crate::output::Output;
use crate::workload::Workload;
use crate::{Error, Result, stop, table};
use run::{Summary, Sweep, Target, measure};

/// What `threadgres lab sweep --help` prints.
pub const HELP: &str = "\
Measures servers over client counts, protocols and workloads.

Usage: threadgres lab sweep [OPTION]… [NAME=]postgres://USER:PASSWORD@HOST:PORT/DATABASE…

  -c, --clients LIST      numbers of connections (1,2,4,8,16,32,64)
  -M, --protocols LIST    simple, extended, prepared (prepared)
  -w, --workloads LIST    select-only, tpcb-like, simple-update, insert-extend, hot-row,
                          ycsb-a, ycsb-b, ycsb-c, ycsb-f, or files with scripts in
                          pgbench's syntax (select-only)
  -T, --time SECONDS      measured time of each point (5)
      --warm-up SECONDS   before each point (1)
  -r, --repetitions N     of all points (1)
  -s, --scale N           scale of tables that are made (as found, or 1)
  -i, --init              make the tables where they are missing or of another scale
  -j, --threads N         threads of the driver (one for each processor)
  -d, --driver NAME       lab or pgbench (lab)
      --seed N            where random numbers begin (1)
      --histograms        keep whole latency histograms
      --no-stacks         take no stacks of servers that offer them (1 to 2 s for each
                          workload and protocol)
  -o, --output FILE       results are added to it (results.jsonl)

Targets take turns at every point. Results are JSON lines and written point by point; Ctrl-C
keeps them. Exit code 0: all measured; 1: nothing; 2: wrong command line; 3: some points failed;
130: Ctrl-C. An address of a Unix socket: postgres://USER@/DATABASE?host=/tmp&port=5432.
";

/// Runs it.
///
/// # Errors
/// A wrong command line or script, no target that answers, results that can't be written; points that
/// failed, when the others are kept.
pub fn run(mut args: Arguments) -> Result<()> {
    let (sweep, path) = read(&mut args)?;
    let stop = stop::flag()?;
    let mut out = Output::begin(&path, args.all())?;
    let summary = measure(&sweep, &mut out, &stop)?;
    let base = sweep.targets.first().filter(|_| sweep.targets.len() > 1);
    print!("{}", table::throughput(&summary.points, base.map(|t| t.name.as_str())));
    conclude(&summary, &out)
}

/// Says how a measurement went, for the exit code.
///
/// # Errors
/// Ctrl-C, failed points.
pub fn conclude(summary: &Summary, out: &Output) -> Result<()> {
    let (count, path) = (summary.points.len(), out.path().display());
    if summary.interrupted {
        let message = format!("interrupted; {count} points are kept in {path}");
        return Err(Error::new(message).exit(Exit::Interrupted));
    }
    if !summary.failures.is_empty() {
        let exit = if count > 0 { Exit::Partly } else { Exit::Failed };
        let failures = summary.failures.join("\n  ");
        let message = format!("{count} points are kept in {path}, these failed:\n  {failures}");
        return Err(Error::new(message).exit(exit));
    }
    eprintln!("{count} points are in {path}");
    Ok(())
}

fn read(args: &mut Arguments) -> Result<(Sweep, PathBuf)> {
    let mut sweep = Sweep::new();
    let mut path = PathBuf::from("results.jsonl");
    let mut workloads = vec!["select-only".to_owned()];
    while let Some(argument) = args.option()? {
        if let Some(letter) = shared_option(&argument) {
            set(&mut sweep, &mut workloads, letter, args)?;
            continue;
        }
        match argument {
            Argument::Long("warm-up") => sweep.warm_up = args.seconds()?,
            Argument::Long("init") | Argument::Short('i') => sweep.init = true,
            Argument::Long("threads") | Argument::Short('j') => sweep.threads = args.value()?,
            Argument::Long("driver") | Argument::Short('d') => sweep.driver = args.value()?,
            Argument::Long("seed") => sweep.seed = args.value()?,
            Argument::Long("histograms") => sweep.histograms = true,
            Argument::Long("no-stacks") => sweep.stacks = false,
            Argument::Long("output") | Argument::Short('o') => path = args.path()?,
            Argument::Operand(text) => {
                let count = sweep.targets.len() + 1;
                sweep.targets.push(target(&text.to_string_lossy(), count)?);
            }
            other => return Err(other.unknown()),
        }
    }
    find_workloads(&mut sweep, &workloads)?;
    check(&sweep)?;
    Ok((sweep, path))
}

/// Options that `lab compare` has, too: long name and letter.
const SHARED: [(&str, char); 6] = [
    ("clients", 'c'),
    ("protocols", 'M'),
    ("workloads", 'w'),
    ("time", 'T'),
    ("repetitions", 'r'),
    ("scale", 's'),
];

/// The letter of one of these options.
pub fn shared_option(argument: &Argument<'_>) -> Option<char> {
    let fits = |(name, letter): &&(&str, char)| match argument {
        Argument::Long(long) => long == name,
        Argument::Short(short) => short == letter,
        Argument::Operand(_) => false,
    };
    SHARED.iter().find(fits).map(|(_, letter)| *letter)
}

/// Takes the value of the option with this letter.
///
/// # Errors
/// It does not read.
pub fn set(
    sweep: &mut Sweep,
    workloads: &mut Vec<String>,
    letter: char,
    args: &mut Arguments,
) -> Result<()> {
    match letter {
        'c' => sweep.clients = args.list()?,
        'M' => sweep.protocols = args.list()?,
        'w' => *workloads = args.list()?,
        'T' => sweep.time = args.seconds()?,
        'r' => sweep.repetitions = args.value()?,
        _ => sweep.scale = Some(args.value()?),
    }
    Ok(())
}

/// Finds workloads by name or file, before any file of results is touched.
///
/// # Errors
/// There is none; a script that does not compile.
pub fn find_workloads(sweep: &mut Sweep, names: &[String]) -> Result<()> {
    for name in names {
        let workload = Workload::find(name)?;
        workload.compile().map_err(|e| e.exit(Exit::Usage))?;
        sweep.workloads.push(workload);
    }
    Ok(())
}

fn check(sweep: &Sweep) -> Result<()> {
    let mut names: Vec<&str> = sweep.targets.iter().map(|t| t.name.as_str()).collect();
    names.sort_unstable();
    if names.is_empty() {
        return Err(Error::usage("no target; see threadgres lab sweep --help"));
    }
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(Error::usage("two targets have the same name"));
    }
    sweep.check()
}

/// `name=postgres://…`; without a name the target is called by its number.
fn target(text: &str, number: usize) -> Result<Target> {
    let scheme = text.find("://").unwrap_or(text.len());
    let (name, url) = match text[..scheme].rfind('=') {
        Some(at) => (text[..at].to_owned(), &text[at + 1..]),
        None => (format!("target{number}"), text),
    };
    let address = url.parse().map_err(|e| Error::usage(format!("target {name:?}: {e}")))?;
    Ok(Target::new(&name, address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_read_and_checked() {
        let words =
            ["-c", "1,8", "-M", "simple,prepared", "-w", "tpcb-like", "pg=postgres://u@h/d"];
        let (sweep, path) = read(&mut Arguments::new(words)).unwrap();
        assert_eq!((sweep.clients.as_slice(), sweep.protocols.len()), ([1, 8].as_slice(), 2));
        assert_eq!((sweep.targets[0].name.as_str(), path.to_str()), ("pg", Some("results.jsonl")));
        for (words, expected) in [
            (["-c", "0"], "no target"),
            (["-M", "fast"], "-M: \"fast\": none of simple"),
            (["-w", "nosuch"], "\"nosuch\" is none of select-only"),
            (["x=mysql://h", "--init"], "target \"x\": an address looks like"),
            (["a=postgres://h/", "a=postgres://h/"], "two targets have the same name"),
        ] {
            let error = read(&mut Arguments::new(words)).unwrap_err();
            assert!(error.to_string().starts_with(expected), "{error}");
        }
    }
}
