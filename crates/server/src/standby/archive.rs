//! The log from an archive, for a standby whose primary is away or does not have what is next any more.
//!
//! Segments are fetched one by one (`restore_command`: `%f` is the name, `%p` a file to be made), from the newest
//! timeline of the standby's history on; of a timeline that has ended only what lies before its end counts. What is fetched goes
//! the way of what is streamed: it is durable before it is applied.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use base::settings::setting;
use base::{Error, Result, WaitEvent, err};
use storage::{History, LogReceiver};

use crate::archiver::command_of;
use crate::log;
use crate::server::Server;

/// The file that a command is to make, in the data directory.
const FETCHED: &str = "restored.tmp";

/// The outcome of a look into the archive for what follows the end of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fetched {
    /// Segments.
    Some,
    /// Not the next segment.
    Nothing,
    /// `restore_command` is not set.
    NoArchive,
}

/// Takes in what the archive has behind the end of the log.
///
/// # Errors
/// `XX001` for a file of another length; I/O.
pub(super) fn fetch(server: &Arc<Server>, receiver: &mut LogReceiver) -> Result<Fetched> {
    let (values, _) = server.values();
    let template = values.settings.str(setting::RESTORE_COMMAND).to_owned();
    if template.is_empty() {
        return Ok(Fetched::NoArchive);
    }
    let storage = &server.engine.storage;
    let history = History::read(storage.dir())?;
    let size = storage.segment_size();
    let begun = receiver.position();
    while !server.standby.is_promoted() && !server.stopping() {
        let at = receiver.position();
        if !segment(&template, storage.dir(), &history, size, receiver)? {
            break;
        }
        receiver.flush();
        if receiver.position() == at {
            break;
        }
    }
    let end = receiver.position();
    if end == begun {
        return Ok(Fetched::Nothing);
    }
    log::info(format_args!("restored log from the archive, from {begun} to {end}"));
    Ok(Fetched::Some)
}

/// The error of a primary that has let go what comes next, with what is to be done about it.
pub(super) fn advised(error: Error, fetched: Fetched) -> Error {
    if error.code() != base::sqlstate::UNDEFINED_FILE {
        return error;
    }
    error.hint(match fetched {
        Fetched::NoArchive => {
            "Set restore_command if an archive has the segment, or make the standby anew \
             (threadgres serve --standby-of), with a slot in the primary (primary_slot_name)."
        }
        _ => "The archive does not have the segment yet; it is asked again and again.",
    })
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
        let hint = |error: Error, fetched| advised(error, fetched).fields().hint.clone();
        assert!(
            hint(gone, Fetched::NoArchive).is_some_and(|hint| hint.contains("restore_command"))
        );
        assert_eq!(hint(Error::internal("x"), Fetched::Nothing), None);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
