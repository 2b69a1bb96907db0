//! The programs beside this one.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use base::settings::{Settings, setting};

use crate::options::Failure;

/// The server's program.
const SERVER: &str = "threadgres";
/// In the environment: where it is, if it does not lie beside this one.
const SERVER_PATH: &str = "THREADGRES";

/// The version as PostgreSQL's programs print it.
pub fn version() -> String {
    Settings::default().str(setting::SERVER_VERSION).to_owned()
}

/// The folder of the file that runs, links followed.
fn folder() -> PathBuf {
    let own = std::env::current_exe().unwrap_or_default();
    own.parent().map(Path::to_owned).unwrap_or_default()
}

/// The server's program: beside this one, or on the path.
pub fn server() -> PathBuf {
    if let Some(path) = std::env::var_os(SERVER_PATH) {
        return path.into();
    }
    let beside = folder().join(SERVER);
    if beside.exists() { beside } else { SERVER.into() }
}

/// One of these programs under its own name, as a path for other processes: the link beside the one that was called, else
/// this file with the name as first argument.
pub fn named(name: &str) -> Vec<PathBuf> {
    let called = std::env::args_os().next().map(PathBuf::from).unwrap_or_default();
    let link = called.parent().map(|folder| folder.join(name));
    let on_path = || {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let called_plainly = called.components().count() == 1;
        std::env::split_paths(&path)
            .filter(|_| called_plainly)
            .map(|folder| folder.join(name))
            .find(|file| file.exists())
    };
    let link = link.filter(|link| link.exists() && link.components().count() > 1).or_else(on_path);
    match link {
        Some(link) => vec![std::path::absolute(&link).unwrap_or(link)],
        None => vec![std::env::current_exe().unwrap_or_default(), name.into()],
    }
}

/// Runs the server's program and waits; its output is this program's.
pub fn run_server<S: AsRef<OsStr>>(args: &[S]) -> Result<ExitCode, Failure> {
    let program = server();
    let status = Command::new(&program).args(args).status();
    let status = status.map_err(|e| failed(&program, &e))?;
    Ok(ExitCode::from(status.code().map_or(1, |code| code as u8)))
}

/// Runs the server's program and takes what it prints.
pub fn ask_server<S: AsRef<OsStr>>(args: &[S]) -> Result<std::process::Output, Failure> {
    let program = server();
    Command::new(&program).args(args).output().map_err(|e| failed(&program, &e))
}

pub fn failed(program: &Path, error: &std::io::Error) -> Failure {
    Failure::from(format!("error: could not run \"{}\": {error}", program.display()))
}

/// A word of a shell's command line.
pub fn shell_word(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
