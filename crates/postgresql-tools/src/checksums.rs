//! `pg_checksums`: `--check` reads every page by `threadgres check`; the other two modes have nothing to do here.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use lexopt::prelude::*;

use crate::options::{Failure, need_data_directory, parser};
use crate::program;

pub const HELP: &str = "
pg_checksums verifies data checksums in a PostgreSQL database cluster.

Usage:
  pg_checksums [OPTION]... [DATADIR]

Options:
 [-D, --pgdata=]DATADIR    data directory
  -c, --check              check data checksums (default)
  -e, --enable             checksums are always enabled
  -d, --disable            is refused";

pub fn run(args: Vec<OsString>) -> Result<ExitCode, Failure> {
    let (mut dir, mut mode) = (None, 'c');
    let mut parser = parser(args);
    while let Some(arg) = parser.next()? {
        match arg {
            Short('D') | Long("pgdata") => dir = Some(PathBuf::from(parser.value()?)),
            Short('c') | Long("check") => mode = 'c',
            Short('e') | Long("enable") => mode = 'e',
            Short('d') | Long("disable") => mode = 'd',
            Short('f') | Long("filenode") => drop(parser.value()?),
            Short('N' | 'P' | 'v') | Long("no-sync" | "progress" | "verbose") => {}
            Value(value) if dir.is_none() => dir = Some(PathBuf::from(value)),
            other => return Err(other.unexpected().into()),
        }
    }
    let dir = need_data_directory(dir)?;
    match mode {
        'e' => Err(Failure::from("error: data checksums are already enabled in cluster")),
        'd' => Err(Failure::from("error: pages of Threadgres always have checksums")),
        _ => check(dir),
    }
}

fn check(dir: PathBuf) -> Result<ExitCode, Failure> {
    let files = std::fs::read_dir(dir.join("base")).map_or(0, Iterator::count);
    let args: [OsString; 3] = ["check".into(), "-D".into(), dir.into()];
    let done = program::ask_server(&args)?;
    let (said, wrong) =
        (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    if !wrong.is_empty() {
        let wrong = wrong.trim().trim_start_matches("threadgres: ");
        return Err(Failure::from(format!("error: {wrong}")));
    }
    let findings: Vec<&str> = match done.status.success() {
        true => Vec::new(),
        false => said.lines().collect(),
    };
    for finding in &findings {
        eprintln!("pg_checksums: error: {finding}");
    }
    println!("Checksum operation completed");
    println!("Files scanned:   {files}");
    println!("Bad checksums:   {}", findings.len());
    println!("Data checksum version: 1");
    Ok(if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
