//! `--install DIR`: links with PostgreSQL's names in a folder, for tools that are told where the programs are. Programs
//! that are PostgreSQL's own here, too (psql, pg_basebackup, pg_dump, …), are linked from `--client DIR`, or from where
//! Debian has them.

use std::ffi::OsString;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use lexopt::prelude::*;

use crate::TOOLS;
use crate::options::{Failure, parser};

const CLIENT: &str = "/usr/lib/postgresql/15/bin";
/// Programs that talk to a server and need nothing of its files.
const CLIENTS: [&str; 15] = [
    "clusterdb",
    "createdb",
    "createuser",
    "dropdb",
    "dropuser",
    "pg_amcheck",
    "pg_basebackup",
    "pg_dump",
    "pg_dumpall",
    "pg_receivewal",
    "pg_recvlogical",
    "pg_restore",
    "pgbench",
    "psql",
    "vacuumdb",
];

pub fn run(args: Vec<OsString>) -> Result<ExitCode, Failure> {
    let (mut folder, mut client) = (None, PathBuf::from(CLIENT));
    let mut parser = parser(args);
    while let Some(arg) = parser.next()? {
        match arg {
            Long("client") => client = PathBuf::from(parser.value()?),
            Value(value) if folder.is_none() => folder = Some(PathBuf::from(value)),
            other => return Err(other.unexpected().into()),
        }
    }
    let Some(folder) = folder else { return Err(Failure::from("error: --install needs a folder")) };
    std::fs::create_dir_all(&folder).map_err(|e| {
        Failure::from(format!("error: could not create \"{}\": {e}", folder.display()))
    })?;
    let own = std::env::current_exe().map_err(|e| Failure::from(format!("error: {e}")))?;
    for (name, ..) in TOOLS {
        link(&own, &folder.join(name))?;
    }
    for name in CLIENTS {
        let program = client.join(name);
        match program.exists() {
            true => link(&program, &folder.join(name))?,
            false => eprintln!("not linked: {name} is not in {}", client.display()),
        }
    }
    println!("{}", folder.display());
    Ok(ExitCode::SUCCESS)
}

fn link(target: &Path, place: &Path) -> Result<(), Failure> {
    // One that is there is an older one of ours, or refuses to go.
    if place.is_symlink() {
        let _ = std::fs::remove_file(place);
    }
    symlink(target, place)
        .map_err(|e| Failure::from(format!("error: could not link \"{}\": {e}", place.display())))
}
