//! The files by which PostgreSQL's tools find a running server: `postmaster.pid` and `postmaster.opts`, and the file
//! `PG_VERSION`, by which they know a data directory.
//!
//! ```text
//!   postmaster.pid   1 process id      of the supervisor, where there is one: who signals it stops and reloads the server
//!                    2 data directory
//!                    3 start           seconds since 1970
//!                    4 port
//!                    5 folder of the Unix socket, or nothing
//!                    6 first listen address, or nothing
//!                    7 key of shared memory: there is none, two numbers stand there
//!                    8 starting, ready, standby, stopping
//! ```
//! The directory's lock is another file (`threadgres.lock`): nothing here is relied on.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use base::settings::{Settings, setting};
use base::{Error, Result};

use crate::{log, supervisor};

/// The main file.
pub const PID_FILE: &str = "postmaster.pid";
const OPTIONS_FILE: &str = "postmaster.opts";
const VERSION_FILE: &str = "PG_VERSION";
/// In the environment: the command line that started the server, for the file of options.
pub const OPTIONS: &str = "THREADGRES_POSTMASTER_OPTIONS";
/// In the environment: when the supervisor was started.
pub(crate) const STARTED: &str = "THREADGRES_STARTED";
/// The line that has the status.
const STATUS_LINE: usize = 7;

/// The last line of the main file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Recovery, or what comes before it.
    Starting,
    /// Clients are served.
    Ready,
    /// A standby that does not let clients in yet.
    Standby,
    /// Nobody comes in any more.
    Stopping,
}

impl Status {
    /// The word with the blanks that readers expect.
    fn word(self) -> &'static str {
        match self {
            Status::Starting => "starting",
            Status::Ready => "ready   ",
            Status::Standby => "standby ",
            Status::Stopping => "stopping",
        }
    }
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

/// The process that tools are to signal.
fn top() -> u32 {
    supervisor::supervising().unwrap_or_else(std::process::id)
}

/// The settings that a standby must not have less of than its primary, in the form of a configuration file. A copy of the
/// directory has them, too.
const PARAMETERS_FILE: &str = "threadgres.parameters";

fn parameters(settings: &Settings) -> String {
    let mut text = String::new();
    for id in [
        setting::WAL_LEVEL,
        setting::WAL_LOG_HINTS,
        setting::MAX_CONNECTIONS,
        setting::MAX_WORKER_PROCESSES,
        setting::MAX_WAL_SENDERS,
        setting::MAX_PREPARED_TRANSACTIONS,
        setting::MAX_LOCKS_PER_TRANSACTION,
        setting::TRACK_COMMIT_TIMESTAMP,
    ] {
        text += &format!("{} = {}\n", id.def().name, base::settings::show(id, settings.get(id)));
    }
    text
}

/// Writes the files of a server that starts.
///
/// # Errors
/// I/O.
pub fn begin(dir: &Path, settings: &Settings) -> Result<()> {
    let failed = |name: &str, e| Error::io(format_args!("write file \"{name}\""), &e);
    write_version(dir)?;
    std::fs::write(dir.join(PARAMETERS_FILE), parameters(settings))
        .map_err(|e| failed(PARAMETERS_FILE, e))?;
    let text = text(dir, settings, Status::Starting);
    std::fs::write(dir.join(PID_FILE), &text).map_err(|e| failed(PID_FILE, e))?;
    let options = std::env::var(OPTIONS).unwrap_or_else(|_| own_options());
    std::fs::write(dir.join(OPTIONS_FILE), options + "\n").map_err(|e| failed(OPTIONS_FILE, e))?;
    if let Some(path) = external(settings) {
        let line = format!("{}\n", top());
        // As PostgreSQL, the server works without it.
        if let Err(e) = std::fs::write(&path, line) {
            let name = path.display();
            log::info(format_args!("could not write external PID file \"{name}\": {e}"));
        }
    }
    Ok(())
}

fn text(dir: &Path, settings: &Settings, status: Status) -> String {
    let full = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
    let started = std::env::var(STARTED).ok().and_then(|text| text.parse().ok());
    let started: u64 = started.filter(|_| supervisor::is_supervised()).unwrap_or_else(now);
    let sockets = crate::listener::socket_directories(settings);
    let addresses = settings.str(setting::LISTEN_ADDRESSES);
    let address = addresses.split(',').next().unwrap_or_default().trim();
    // Where the directory lies stands for the key that a segment of shared memory would have.
    let key = std::fs::metadata(dir).map_or(0, |about| about.ino());
    format!(
        "{}\n{}\n{started}\n{}\n{}\n{address}\n{key:9} {:9}\n{}\n",
        top(),
        full.display(),
        settings.int(setting::PORT),
        sockets.first().map_or("", String::as_str),
        0,
        status.word()
    )
}

/// The command line of a server that no tool started.
fn own_options() -> String {
    let mut line = String::new();
    for (index, argument) in std::env::args().enumerate() {
        match index {
            0 => line += &argument,
            _ => line += &format!(" \"{argument}\""),
        }
    }
    line
}

fn external(settings: &Settings) -> Option<PathBuf> {
    let path = settings.str(setting::EXTERNAL_PID_FILE);
    (!path.is_empty()).then(|| PathBuf::from(path))
}

/// Says in the file what the server does now.
pub fn tell(dir: &Path, status: Status) {
    let path = dir.join(PID_FILE);
    let Ok(text) = std::fs::read_to_string(&path) else { return };
    let mut lines: Vec<&str> = text.lines().take(STATUS_LINE).collect();
    lines.push(status.word());
    let _ = std::fs::write(&path, lines.join("\n") + "\n");
}

/// Removes the files that only a running server has, by the process that they name.
pub fn end(dir: &Path, settings: &Settings) {
    let path = dir.join(PID_FILE);
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let named: Option<u32> = text.lines().next().and_then(|line| line.trim().parse().ok());
    if named != Some(std::process::id()) {
        return;
    }
    let _ = std::fs::remove_file(&path);
    if let Some(path) = external(settings) {
        let _ = std::fs::remove_file(path);
    }
}

/// Writes `PG_VERSION`: the major version of PostgreSQL that is followed.
///
/// # Errors
/// I/O.
pub fn write_version(dir: &Path) -> Result<()> {
    let path = dir.join(VERSION_FILE);
    if path.exists() {
        return Ok(());
    }
    let defaults = Settings::default();
    let version = defaults.str(setting::SERVER_VERSION);
    let major = version.split('.').next().unwrap_or_default();
    std::fs::write(&path, format!("{major}\n"))
        .map_err(|e| Error::io(format_args!("write file \"{VERSION_FILE}\""), &e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_has_eight_lines_and_goes_with_its_process() {
        let dir = std::env::temp_dir().join(format!("tg-postmaster-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let settings = Settings::default();
        begin(&dir, &settings).unwrap();
        let read = || std::fs::read_to_string(dir.join(PID_FILE)).unwrap();
        let lines: Vec<String> = read().lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), 8);
        assert_eq!(lines[0], std::process::id().to_string());
        assert_eq!(lines[1], dir.display().to_string());
        assert!(now() - lines[2].parse::<u64>().unwrap() < 60);
        assert_eq!(lines[3], settings.int(setting::PORT).to_string());
        assert_eq!(lines[7], "starting");
        tell(&dir, Status::Ready);
        assert_eq!(read().lines().last(), Some("ready   "));
        assert_eq!(std::fs::read_to_string(dir.join(VERSION_FILE)).unwrap(), "15\n");
        end(&dir, &settings);
        assert!(!dir.join(PID_FILE).exists());
        std::fs::write(dir.join(PID_FILE), "1\n").unwrap();
        end(&dir, &settings);
        assert!(dir.join(PID_FILE).exists(), "another process's");
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
