//! `pg_rewind`: makes an old primary's directory that of a standby of the new one, by `threadgres rewind`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use lexopt::prelude::*;

use crate::options::{Failure, parser, text};
use crate::program;

pub const HELP: &str = "
pg_rewind resynchronizes a PostgreSQL cluster with another copy of the cluster.

Usage:
  pg_rewind [OPTION]...

Options:
  -D, --target-pgdata=DIRECTORY  existing data directory to modify
      --source-server=CONNSTR    source server to synchronize with
  -R, --write-recovery-conf      write configuration for replication (requires --source-server)
  -n, --dry-run, -N, --no-sync, -P, --progress, -c, --restore-target-wal, --config-file, --debug,
  --no-ensure-shutdown           are accepted";

pub fn run(args: Vec<OsString>) -> Result<ExitCode, Failure> {
    let (mut dir, mut source, mut writes, mut only_tries) = (None, None, false, false);
    let mut parser = parser(args);
    while let Some(arg) = parser.next()? {
        match arg {
            Short('D') | Long("target-pgdata") => dir = Some(PathBuf::from(parser.value()?)),
            Long("source-server") => source = Some(text(&mut parser)?),
            Long("source-pgdata") => {
                return Err(Failure::from(
                    "error: --source-pgdata is refused: the source must be a running server (--source-server)",
                ));
            }
            Short('R') | Long("write-recovery-conf") => writes = true,
            Short('n') | Long("dry-run") => only_tries = true,
            Short('N' | 'P' | 'c')
            | Long(
                "no-sync" | "progress" | "restore-target-wal" | "debug" | "no-ensure-shutdown",
            ) => {}
            Long("config-file") => drop(parser.value()?),
            other => return Err(other.unexpected().into()),
        }
    }
    let Some(source) = source else {
        return Err(Failure::from(
            "error: no source specified (--source-pgdata or --source-server)",
        ));
    };
    let Some(dir) = dir else {
        return Err(Failure::from("error: no target data directory specified (--target-pgdata)"));
    };
    if only_tries {
        return Err(Failure::from(
            "error: --dry-run is refused: threadgres rewind has no such mode",
        ));
    }
    let mut args: Vec<OsString> =
        vec!["rewind".into(), "-D".into(), dir.into(), "--from".into(), source.into()];
    if !writes {
        args.push("--no-follow".into());
    }
    let done = program::ask_server(&args)?;
    let (said, wrong) =
        (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    if !done.status.success() {
        let wrong = wrong.trim().trim_start_matches("threadgres: ");
        return Err(Failure::from(format!("error: {wrong}")));
    }
    for line in said.lines().filter(|line| !line.starts_with("serve it with")) {
        eprintln!("pg_rewind: {line}");
    }
    if !said.starts_with("no rewind required") {
        eprintln!("pg_rewind: Done!");
    }
    Ok(ExitCode::SUCCESS)
}
