//! `postmaster.pid`: the server that runs on a directory.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::options::Failure;

/// The file's name.
pub const PID_FILE: &str = "postmaster.pid";

/// The file's lines.
#[derive(Clone, Debug, Default)]
pub struct Running {
    pub pid: i32,
    /// `starting`, `ready`, `standby`, `stopping`; empty when the file has fewer lines.
    pub status: String,
}

impl Running {
    /// The content of a directory's file; None: there is none, or nothing in it.
    pub fn read(dir: &Path) -> Option<Running> {
        let text = std::fs::read_to_string(dir.join(PID_FILE)).ok()?;
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let pid: i32 = lines.first()?.parse().ok()?;
        let status = lines.get(7).copied().unwrap_or_default().to_owned();
        Some(Running { pid: pid.abs(), status })
    }

    /// The server, if its process is there.
    pub fn alive(dir: &Path) -> Option<Running> {
        Running::read(dir).filter(|running| is_alive(running.pid))
    }

    /// Whether clients can be served, or would be if the standby let them in.
    pub fn is_up(&self) -> bool {
        matches!(self.status.as_str(), "ready" | "standby")
    }

    /// Signals the process.
    pub fn signal(&self, signal: Signal) -> Result<(), Failure> {
        kill(Pid::from_raw(self.pid), signal).map_err(|e| {
            Failure::from(format!("could not send {} (PID: {}): {e}", signal, self.pid))
        })
    }
}

/// Whether there is a process of this number that has not ended.
pub fn is_alive(pid: i32) -> bool {
    if kill(Pid::from_raw(pid), None).is_err() {
        return false;
    }
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, rest)| !rest.starts_with('Z'))
}

/// Looks again and again until something has happened; false: not in that time.
pub fn wait(patience: Duration, mut has_happened: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + patience;
    while !has_happened() {
        if Instant::now() >= until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

/// Checks that a directory can be asked about: PostgreSQL's code for one that can't be is 4.
pub fn check(dir: &Path) -> Result<PathBuf, Failure> {
    let name = dir.display();
    if !dir.is_dir() {
        return Err(Failure::with_code(format!("directory \"{name}\" does not exist"), 4));
    }
    if !dir.join("PG_VERSION").exists() && !dir.join("threadgres.control").exists() {
        let text = format!("directory \"{name}\" is not a database cluster directory");
        return Err(Failure::with_code(text, 4));
    }
    Ok(dir.to_owned())
}
