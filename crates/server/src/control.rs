//! Control of a data directory from the command line: init, stop, status, reload.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use base::settings::{Settings, setting};
use base::{Error, Result, err};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use storage::RestoreTarget;
use storage::Storage;

use crate::config;
use crate::signals::Stop;
use crate::user_types::SessionTypes;

/// Whether the directory is missing or empty.
///
/// # Errors
/// `55000` when it is something else, or holds something that isn't ours.
pub fn is_new(dir: &Path) -> Result<bool> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(true),
        Err(e) => return Err(Error::io(format_args!("open directory \"{}\"", dir.display()), &e)),
    };
    // Left by a file system that keeps its own things at the top.
    let foreign = |name: &std::ffi::OsStr| name != "lost+found";
    if !entries.flatten().any(|e| foreign(&e.file_name())) {
        return Ok(true);
    }
    Storage::status(dir).map(|_| false)
}

/// Reads the whole directory (as recovery would leave it, if the last server did not stop cleanly), every page
/// of every file, every table and index, and returns what is wrong. Changes nothing in it.
///
/// # Errors
/// `55006` when a server has it; `55000` not ours; what is missing or damaged and keeps the rest from being
/// read; I/O errors.
pub fn check(dir: &Path) -> Result<Vec<String>> {
    check_free(dir)?;
    crate::directory::follow_mode(dir);
    let txn = txn::TxnManager::new(dir);
    let storage = Storage::look(dir, txn.participant(None))?;
    txn.attach(&storage);
    let catalog = catalog::Catalog::look(&storage, &txn)?;
    let engine = exec::Engine {
        storage,
        txn,
        catalog,
        languages: Default::default(),
        plans: Default::default(),
        routines: Default::default(),
        stored_plans: Default::default(),
        calls: &exec::CALLS,
        utilities: &ddl::Statements,
    };
    let types = Arc::new(SessionTypes::default());
    types::user::install(&sched::current(), types.clone());
    ddl::check::check(&engine, &|catalog| types.see(catalog, &[]))
}

/// Makes a directory that an earlier version left one of this version's format. (So does its first start.)
///
/// # Errors
/// As [`check`]; `55000` for a directory of a later version.
pub fn upgrade(dir: &Path) -> Result<()> {
    check_free(dir)?;
    crate::directory::follow_mode(dir);
    let txn = txn::TxnManager::new(dir);
    let storage =
        Storage::recover_with(dir, txn.participant(None), storage::Options::from_settings())?;
    txn.attach(&storage);
    let catalog = catalog::Catalog::open(&storage, &txn)?;
    catalog.sequences.flush()?;
    storage.shutdown()
}

/// A restore: where the log comes from, and how far it goes (without a target, to its end).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Restore {
    /// A folder, or a shell command with `%f` and `%p`; None: the log that came with the copy.
    pub source: Option<String>,
    /// To this position.
    pub position: Option<base::Lsn>,
    /// To this time.
    pub time: Option<String>,
    /// To this named point.
    pub name: Option<String>,
    /// As soon as the copy is whole.
    pub immediate: bool,
}

/// Brings a copy of a directory to a moment: fetches the log, and cuts it at the target. Where that is.
///
/// # Errors
/// As [`storage::restore`]; `22007` for a time that is none.
pub fn restore(dir: &Path, restore: &Restore) -> Result<base::Lsn> {
    check_free(dir)?;
    crate::directory::follow_mode(dir);
    let target = match restore {
        Restore { position: Some(position), .. } => RestoreTarget::Position(*position),
        Restore { time: Some(text), .. } => {
            let cx = types::FormatContext::default();
            match types::io::input(types::oids::TIMESTAMPTZ, -1, text, &cx)? {
                types::Datum::Timestamptz(time) => RestoreTarget::Time(time),
                _ => return Err(Error::internal("a time that is none")),
            }
        }
        Restore { name: Some(name), .. } => RestoreTarget::Name(name.clone()),
        Restore { immediate: true, .. } => RestoreTarget::Immediate,
        _ => RestoreTarget::End,
    };
    let source = restore.source.as_deref();
    let mut get = |name: &str, to: &Path| match source {
        None => Ok(false),
        Some(source) => fetch(source, name, to),
    };
    let name_of = |code: u8, payload: &[u8]| txn::name_of(code, payload).map(str::to_owned);
    let marks = storage::Marks { time_of: &txn::time_of, name_of: &name_of };
    storage::restore(dir, &target, &mut get, marks)
}

fn fetch(source: &str, name: &str, to: &Path) -> Result<bool> {
    if source.contains("%f") {
        let text = crate::archiver::command_of(source, &to.to_string_lossy(), name);
        let status = std::process::Command::new("/bin/sh").args(["-c", &text]).status();
        let status = status.map_err(|e| Error::io("run the restore command", &e))?;
        return Ok(status.success() && to.exists());
    }
    match std::fs::copy(Path::new(source).join(name), to) {
        Ok(_) => Ok(true),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(Error::io(format_args!("copy \"{name}\" from the archive"), &e)),
    }
}

/// `55006` when a server has the directory.
///
/// # Errors
/// See above; `55000` not ours.
pub fn check_free(dir: &Path) -> Result<()> {
    match Storage::status(dir)?.running {
        Some(pid) => {
            Err(err!(OBJECT_IN_USE, "directory \"{}\" is in use by process {pid}", dir.display())
                .hint(format!("stop it with: threadgres stop -D {}", dir.display())))
        }
        None => Ok(()),
    }
}

/// The process that serves the directory.
///
/// # Errors
/// `55000` when none does.
fn running(dir: &Path) -> Result<Pid> {
    let missing = || {
        err!(
            OBJECT_NOT_IN_PREREQUISITE_STATE,
            "no server is running in directory \"{}\"",
            dir.display()
        )
    };
    if !dir.exists() {
        return Err(missing());
    }
    Storage::status(dir)?.running.map(|pid| Pid::from_raw(pid as i32)).ok_or_else(missing)
}

fn send(pid: Pid, signal: Signal) -> Result<()> {
    kill(pid, signal).map_err(|e| Error::io(format_args!("signal process {pid}"), &e.into()))
}

/// Where a running server says how it can be reached.
const ADDRESS: &str = "threadgres.address";

/// Notes how the server can be reached: `host:port`, or the path of its Unix socket.
pub(crate) fn write_address(dir: &Path, settings: &Settings) {
    let first = |id| settings.str(id).split(',').next().unwrap_or("").trim().to_owned();
    let port = settings.int(setting::PORT);
    let url = match first(setting::LISTEN_ADDRESSES).as_str() {
        "" => {
            let sockets = crate::listener::socket_directories(settings);
            let sockets = sockets.first().cloned().unwrap_or_default();
            let path = crate::listener::socket_path(Path::new(&sockets), port as u16);
            format!("unix:{}", path.display())
        }
        host if host.contains(':') => format!("postgres://[{host}]:{port}"),
        host => format!("postgres://{host}:{port}"),
    };
    // Only `threadgres top -D` misses it.
    if let Err(e) = std::fs::write(dir.join(ADDRESS), url + "\n") {
        crate::log::info(format_args!("could not write file \"{ADDRESS}\": {e}"));
    }
}

/// How the directory's server can be reached, as a URL.
///
/// # Errors
/// When none is running, or it has not come up yet.
pub fn address(dir: &Path) -> Result<String> {
    running(dir)?;
    let path = dir.join(ADDRESS);
    let text = std::fs::read_to_string(&path);
    let text = text.map_err(|e| Error::io(format_args!("read file \"{}\"", path.display()), &e))?;
    Ok(text.trim().to_owned())
}

/// Stops the directory's server and waits until its process has gone.
///
/// # Errors
/// When none is running, it can't be signalled, or it hasn't stopped in time.
pub fn stop(dir: &Path, how: Stop, timeout: Duration) -> Result<()> {
    let pid = running(dir)?;
    send(pid, how.signal())?;
    let deadline = Instant::now() + timeout;
    while kill(pid, None).is_ok() && Storage::status(dir).is_ok_and(|s| s.running.is_some()) {
        if Instant::now() > deadline {
            return Err(err!(
                OBJECT_IN_USE,
                "the server (process {pid}) did not stop within {} seconds",
                timeout.as_secs()
            )
            .hint("clients may still be connected: use -m fast"));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    // The lock is released a moment before the process ends.
    while kill(pid, None).is_ok() && Instant::now() < deadline && !is_zombie(pid) {
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// Whether the process has ended, all of its threads (the last one closes its sockets), and only
/// waits for its parent to ask.
fn is_zombie(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    threads <= 1 && stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('Z'))
}

/// Tells the directory's server to read its settings again.
///
/// # Errors
/// When none is running, or the files hold an error (which is put in force no more than the server can).
pub fn reload(dir: &Path) -> Result<()> {
    let pid = running(dir)?;
    // What is sound of the files is put in force all the same.
    let checked = config::Config::load(dir, Vec::new());
    send(pid, Signal::SIGHUP)?;
    checked.map(drop)
}

/// Makes the directory's server, which follows another one, a primary, and waits until it is.
///
/// # Errors
/// `55000` when none is running, or it is a primary; when it has not become one in time.
pub fn promote(dir: &Path, timeout: Duration) -> Result<()> {
    let pid = running(dir)?;
    if !crate::standby::is_standby(dir) {
        return Err(err!(
            OBJECT_NOT_IN_PREREQUISITE_STATE,
            "cannot promote server; server is not in standby mode"
        ));
    }
    let deadline = Instant::now() + timeout;
    // The server removes the request when it is a primary, which is later than it ceases to be a standby; a server that
    // starts removes it, too, and is asked again.
    loop {
        if !crate::standby::is_promotion_requested(dir) {
            if !crate::standby::is_standby(dir) {
                return Ok(());
            }
            crate::standby::request_promotion(dir)?;
            send(pid, Signal::SIGHUP)?;
        }
        if Instant::now() > deadline {
            return Err(err!(
                OBJECT_IN_USE,
                "the server (process {pid}) was not promoted within {} seconds",
                timeout.as_secs()
            ));
        }
        running(dir)?;
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The directory's account of itself: one line, and whether a server is running.
///
/// # Errors
/// When it isn't a data directory.
pub fn status(dir: &Path) -> Result<(String, bool)> {
    let status = Storage::status(dir)?;
    let state = match (status.running, status.clean) {
        (Some(pid), _) => format!("running (process {pid})"),
        (None, true) => "stopped cleanly".to_owned(),
        (None, false) => "stopped without a clean shutdown; the next start recovers it".to_owned(),
    };
    let line = format!("{}: {state}, system identifier {}", dir.display(), status.system_id);
    Ok((line, status.running.is_some()))
}
