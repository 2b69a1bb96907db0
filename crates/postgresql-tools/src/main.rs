//! PostgreSQL's server programs by their names, on data directories of Threadgres: what cluster managers call.
//!
//! One program, named by the link through which it is called (`pg_ctl`, `initdb`, …) or by its first argument. It is small:
//! what needs the server is done by `threadgres`, which lies beside it. `--install DIR` makes the links.
//!
//! Options, exit codes and output are PostgreSQL 15's (manual, part VI, "PostgreSQL Server Applications"), as far as tools
//! read them.
#![forbid(unsafe_code)]

mod archivecleanup;
mod checksums;
mod controldata;
mod initdb;
mod install;
mod isready;
mod options;
mod pg_ctl;
mod postgres;
mod program;
mod rewind;
mod running;
mod verifybackup;
mod waldump;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use options::Failure;

/// A program: its name, what it does, and its text for `--help`.
type Tool = (&'static str, fn(Vec<OsString>) -> Result<ExitCode, Failure>, &'static str);

/// The programs by their names.
const TOOLS: [Tool; 13] = [
    ("initdb", initdb::run, initdb::HELP),
    ("pg_archivecleanup", archivecleanup::run, archivecleanup::HELP),
    ("pg_checksums", checksums::run, checksums::HELP),
    ("pg_controldata", controldata::run, controldata::HELP),
    ("pg_ctl", pg_ctl::run, pg_ctl::HELP),
    ("pg_isready", isready::run, isready::HELP),
    (
        "pg_resetwal",
        refuse_resetwal,
        "pg_resetwal is refused: see threadgres check, and serve --accept-loss-from.",
    ),
    ("pg_rewind", rewind::run, rewind::HELP),
    (
        "pg_upgrade",
        refuse_upgrade,
        "pg_upgrade is refused: a start upgrades a directory of Threadgres.",
    ),
    ("pg_verifybackup", verifybackup::run, verifybackup::HELP),
    ("pg_waldump", waldump::run, waldump::HELP),
    ("postgres", postgres::run, postgres::HELP),
    ("postmaster", postgres::run, postgres::HELP),
];

fn main() -> ExitCode {
    let mut args = std::env::args_os();
    let called = args.next().unwrap_or_default();
    let name = Path::new(&called).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut args: Vec<OsString> = args.collect();
    if let Some(tool) = find(&name) {
        return run(tool, args);
    }
    let first = match args.is_empty() {
        true => String::new(),
        false => args.remove(0).to_string_lossy().into_owned(),
    };
    match (first.as_str(), find(&first)) {
        (_, Some(tool)) => run(tool, args),
        ("--install", None) => report("threadgres-postgresql-tools", install::run(args)),
        _ => {
            eprintln!(
                "usage: threadgres-postgresql-tools --install DIR, or one of these with its options:"
            );
            TOOLS.iter().for_each(|(name, ..)| eprintln!("  {name}"));
            ExitCode::FAILURE
        }
    }
}

fn find(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|(tool, ..)| *tool == name)
}

fn run((name, work, help): &Tool, args: Vec<OsString>) -> ExitCode {
    match args.first().map(|first| first.to_string_lossy().into_owned()).as_deref() {
        Some("-V" | "--version") => {
            println!("{name} (PostgreSQL) {}", program::version());
            ExitCode::SUCCESS
        }
        Some("-?" | "--help") => {
            println!("{}", help.trim());
            ExitCode::SUCCESS
        }
        _ => report(name, work(args)),
    }
}

fn report(name: &str, result: Result<ExitCode, Failure>) -> ExitCode {
    match result {
        Ok(code) => code,
        Err(Failure { text, code }) => {
            eprintln!("{name}: {text}");
            ExitCode::from(code)
        }
    }
}

fn refuse_resetwal(_: Vec<OsString>) -> Result<ExitCode, Failure> {
    Err(Failure::from(
        "error: the write-ahead log of Threadgres is not reset\n\
         pg_resetwal: hint: \"threadgres check -D DIR\" says what is damaged; \"threadgres serve -D DIR --accept-loss-from \
         POSITION\" gives up what was committed after a damaged place of the log.",
    ))
}

fn refuse_upgrade(_: Vec<OsString>) -> Result<ExitCode, Failure> {
    Err(Failure::from(
        "error: directories of Threadgres are not upgraded by pg_upgrade\n\
         pg_upgrade: hint: A start of the new version, or \"threadgres upgrade -D DIR\", does it; from PostgreSQL: pg_dump.",
    ))
}
