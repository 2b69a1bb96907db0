//! The log from an archive, for a standby whose primary is away or does not have what is next any more.
//!
//! Segments are fetched one by one (`restore_command`: `%f` is the name, `%p` a file to be made), from the newest
//! timeline of the standby's history on; of a timeline that has ended only what lies before its end counts. What is fetched goes
//! the way of what is streamed: it is durable before it is applied.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use base::settings::setting;
use base::{Error, Lsn, Result, WaitEvent, err};
use storage::{History, LogReceiver};

use crate::archiver::command_of;
use crate::log;
use crate::server::Server;

/// The file that a command is to make, in the data directory.
const FETCHED: &str = "restored.tmp";

/// Takes in what the archive has behind the end of the log; up to where, if there was anything.
///
/// # Errors
/// `XX001` for a file of another length; I/O.
pub(super) fn fetch(server: &Arc<Server>) -> Result<Option<Lsn>> {
    let (values, _) = server.values();
    let template = values.settings.str(setting::RESTORE_COMMAND).to_owned();
    if template.is_empty() {
        return Ok(None);
    }
    let storage = &server.engine.storage;
    let history = History::read(storage.dir())?;
    let size = storage.segment_size();
    let mut receiver = storage.receiver();
    let begun = receiver.position();
    while !server.standby.is_promoted() && !server.stopping() {
        let at = receiver.position();
        if !segment(&template, storage.dir(), &history, size, &mut receiver)? {
            break;
        }
        receiver.flush();
        if receiver.position() == at {
            break;
        }
    }
    let end = receiver.position();
    if end > begun {
        log::info(format_args!("restored log from the archive, from {begun} to {end}"));
    }
    Ok((end > begun).then_some(end))
}

/// Takes in the segment in which the log goes on; whether the archive has it.
fn segment(
    template: &str,
    dir: &Path,
    history: &History,
    size: u64,
    receiver: &mut LogReceiver,
) -> Result<bool> {
    let at = receiver.position();
    let (number, in_each) = (at.0 / size, (1 << 32) / size);
    for timeline in (1..=history.current()).rev() {
        let Some(until) = history.end_of(timeline).filter(|until| *until > at) else { continue };
        let name = format!("{timeline:08X}{:08X}{:08X}", number / in_each, number % in_each);
        let Some(bytes) = run(template, dir, &name)? else { continue };
        if bytes.len() as u64 != size {
            return Err(err!(
                DATA_CORRUPTED,
                "archive file \"{name}\" has wrong size: {} instead of {size}",
                bytes.len()
            ));
        }
        let end = size.min(until.0.saturating_sub(number * size)) as usize;
        receiver.write(at, &bytes[(at.0 % size) as usize..end])?;
        return Ok(true);
    }
    Ok(false)
}

/// Runs the command; the file's content, if it has made one.
fn run(template: &str, dir: &Path, name: &str) -> Result<Option<Vec<u8>>> {
    let path = dir.join(FETCHED);
    let _ = std::fs::remove_file(&path);
    let text = command_of(template, FETCHED, name);
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &text]).current_dir(dir).stdin(std::process::Stdio::null());
    let status = sched::io_wait(WaitEvent::IOWALRead, || command.status())
        .map_err(|e| Error::io("run the restore command", &e))?;
    if !status.success() {
        return Ok(None);
    }
    let bytes = match std::fs::read(&path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        bytes => bytes.map_err(|e| Error::io("read what the restore command made", &e))?,
    };
    let _ = std::fs::remove_file(&path);
    Ok(Some(bytes))
}

/// Whether the log that is next is not to be had from the primary, now or ever.
pub(super) fn may_help(error: &Error) -> bool {
    use base::sqlstate::{
        CONNECTION_FAILURE, SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION, UNDEFINED_FILE,
    };
    [CONNECTION_FAILURE, SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION, UNDEFINED_FILE]
        .contains(&error.code())
        || error.code() == base::sqlstate::OBJECT_NOT_IN_PREREQUISITE_STATE
            && error.message().contains("primary_conninfo")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_makes_a_file_or_has_none() {
        let dir = std::env::temp_dir().join(format!("tg-restore-command-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        assert_eq!(run("printf %f > %p", &dir, "0A").unwrap().unwrap(), b"0A");
        assert!(run("false", &dir, "0A").unwrap().is_none());
        assert!(run("true", &dir, "0A").unwrap().is_none());
        let gone = err!(UNDEFINED_FILE, "requested WAL segment x has already been removed");
        assert!(may_help(&gone) && !may_help(&Error::internal("x")));
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
