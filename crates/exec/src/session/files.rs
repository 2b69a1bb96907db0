//! Files of the server: `pg_read_file`, `pg_stat_file`, `pg_ls_dir` and kin. Who may call them is a right of
//! theirs; what lies outside the data directory is for superusers and `pg_read_server_files`.

use std::fs::Metadata;
use std::io::{Error as IoError, ErrorKind, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

use base::{Error, Result, WaitEvent, err, sqlstate};
use catalog::object::ids;
use types::func::SessionFunction as F;
use types::{Datum, FunctionRow, oids};

use super::objects::record;
use crate::rights;
use crate::run::Run;
use crate::server_file;
use crate::session::args::{oid_at, text, text_at};

/// Seconds between 1970 and 2000.
const EPOCH_SECONDS: i64 = 946_684_800;

/// Functions of this file.
///
/// # Errors
/// `42501` for a place that is not the role's to read, `58P01` and kin, `22023`, `22021`.
pub fn call(
    name: F,
    function: &'static FunctionRow,
    args: &[Datum],
    run: &mut Run<'_, '_>,
) -> Result<Option<Datum>> {
    let flag = |n: usize| matches!(args.get(n), Some(Datum::Bool(true)));
    Ok(Some(match name {
        F::PgReadFile | F::PgReadFileOld | F::PgReadBinaryFile => {
            let part = match args {
                [_, Datum::Int8(from), Datum::Int8(count), ..] => Some((*from, *count)),
                _ => None,
            };
            let path = allowed(text_at(args, 0), run)?;
            match read(&path, text_at(args, 0), part, flag(3))? {
                None => Datum::Null,
                Some(bytes) if function.result == oids::BYTEA => Datum::Bytea(bytes.into()),
                Some(bytes) => types::bulk::text(bytes).map(Datum::Text)?,
            }
        }
        F::PgStatFile => {
            let path = allowed(text_at(args, 0), run)?;
            match sched::blocking(WaitEvent::IOCopyFileRead, || path.metadata()) {
                Ok(meta) => record(function, described(&meta)),
                Err(e) if e.kind() == ErrorKind::NotFound && flag(1) => {
                    record(function, vec![Datum::Null; 6])
                }
                Err(e) => return Err(failed("stat file", text_at(args, 0), &e)),
            }
        }
        F::PgLsDir => {
            let path = allowed(text_at(args, 0), run)?;
            let dots = if flag(2) { &[".", ".."][..] } else { &[] };
            let mut names: Vec<Datum> = dots.iter().map(|n| text(*n)).collect();
            match list(&path) {
                Ok(found) => names.extend(found.into_iter().map(|(name, _)| text(name))),
                Err(e) if e.kind() == ErrorKind::NotFound && flag(1) => {}
                Err(e) => return Err(failed("open directory", text_at(args, 0), &e)),
            }
            Datum::array(oids::TEXT, names)
        }
        F::PgLsTmpdir if args.len() == 1 => {
            if !matches!(args[0], Datum::Oid(1663 | 1664)) {
                let id = oid_at(args, 0);
                return Err(err!(UNDEFINED_OBJECT, "tablespace with OID {id} does not exist"));
            }
            let found = list(&run.cx.engine.storage.dir().join("tmp")).unwrap_or_default();
            files(function, found)
        }
        F::PgLsLogdir => {
            let folder = run.cx.engine.storage.dir().join("log");
            let found = list(&folder).map_err(|e| failed("open directory", "log", &e))?;
            files(function, found)
        }
        // There is no archive, and there are no slots.
        F::PgLsArchiveStatusdir | F::PgLsLogicalsnapdir | F::PgLsLogicalmapdir => {
            files(function, Vec::new())
        }
        _ => return Ok(None),
    }))
}

/// Rows of name, size and time of what are plain files.
fn files(function: &'static FunctionRow, found: Vec<(String, Metadata)>) -> Datum {
    let one = |(name, meta): (String, Metadata)| {
        let size = Datum::Int8(meta.len() as i64);
        record(function, vec![text(name), size, time(meta.modified())])
    };
    let plain = found.into_iter().filter(|(name, meta)| meta.is_file() && !name.starts_with('.'));
    Datum::array(oids::RECORD, plain.map(one).collect())
}

fn list(path: &Path) -> std::result::Result<Vec<(String, Metadata)>, IoError> {
    sched::blocking(WaitEvent::IOCopyFileRead, || {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(path)? {
            let entry = entry?;
            // One that went away meanwhile is none.
            if let Ok(meta) = entry.metadata() {
                found.push((entry.file_name().to_string_lossy().into_owned(), meta));
            }
        }
        Ok(found)
    })
}

/// The columns of `pg_stat_file`.
fn described(meta: &Metadata) -> Vec<Datum> {
    use std::os::unix::fs::MetadataExt;
    let changed = (meta.ctime() - EPOCH_SECONDS) * 1_000_000;
    vec![
        Datum::Int8(meta.len() as i64),
        time(meta.accessed()),
        time(meta.modified()),
        Datum::Timestamptz(changed),
        Datum::Null,
        Datum::Bool(meta.is_dir()),
    ]
}

fn time(at: std::io::Result<SystemTime>) -> Datum {
    let since = at.ok().and_then(|t| t.duration_since(SystemTime::UNIX_EPOCH).ok());
    // Whole seconds, as PostgreSQL has them.
    since.map_or(Datum::Null, |d| {
        Datum::Timestamptz((d.as_secs() as i64 - EPOCH_SECONDS) * 1_000_000)
    })
}

/// The path that a name means, if the session's role may read there.
fn allowed(name: &str, run: &mut Run<'_, '_>) -> Result<PathBuf> {
    let home = run.cx.engine.storage.dir().to_owned();
    let view = run.cx.catalog_tx.view();
    let known = rights::of(run.cx, &view);
    let role = run.cx.role;
    if known.is_superuser(role) || known.has_rights_of(role, ids::READ_SERVER_FILES) {
        return Ok(home.join(name));
    }
    let path = Path::new(name);
    if path.components().any(|c| c == Component::ParentDir) {
        let what = if path.is_absolute() {
            "reference to parent directory (\"..\")"
        } else {
            "path must be in or below the data directory"
        };
        return Err(err!(INSUFFICIENT_PRIVILEGE, "{what} not allowed"));
    }
    if path.is_absolute() && !path.starts_with(&home) {
        return Err(err!(INSUFFICIENT_PRIVILEGE, "absolute path not allowed"));
    }
    Ok(home.join(path))
}

/// A file's bytes, or `count` of them from a place (from the end if it is negative).
fn read(
    path: &Path,
    name: &str,
    part: Option<(i64, i64)>,
    missing_ok: bool,
) -> Result<Option<Vec<u8>>> {
    if part.is_some_and(|(_, count)| count < 0) {
        return Err(err!(INVALID_PARAMETER_VALUE, "requested length cannot be negative"));
    }
    let mut file = match server_file::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == ErrorKind::NotFound && missing_ok => return Ok(None),
        Err(e) => {
            return Err(failed_for("open file", name, " for reading", &e));
        }
    };
    let unread = |e: IoError| failed("read file", name, &e);
    let length = file.metadata().map_err(unread)?.len();
    let (from, count) = match part {
        None => (SeekFrom::Start(0), u64::MAX),
        Some((from, count)) if from < 0 => {
            (SeekFrom::End(from.max(-(length.min(i64::MAX as u64) as i64))), count as u64)
        }
        Some((from, count)) => (SeekFrom::Start(from as u64), count as u64),
    };
    file.seek(from).map_err(unread)?;
    let mut bytes = Vec::new();
    let mut take = |piece: &[u8]| {
        if piece.len() > types::bulk::BYTES_MAX - bytes.len() {
            return Err(err!(PROGRAM_LIMIT_EXCEEDED, "file length too large"));
        }
        types::bulk::push_bytes(&mut bytes, piece)
    };
    server_file::read(&mut file, count, &unread, &mut take)?;
    Ok(Some(bytes))
}

fn failed(what: &str, name: &str, error: &IoError) -> Error {
    failed_for(what, name, "", error)
}

fn failed_for(what: &str, name: &str, purpose: &str, error: &IoError) -> Error {
    let code = match error.kind() {
        ErrorKind::NotFound => sqlstate::UNDEFINED_FILE,
        ErrorKind::PermissionDenied => sqlstate::INSUFFICIENT_PRIVILEGE,
        ErrorKind::IsADirectory => sqlstate::WRONG_OBJECT_TYPE,
        ErrorKind::NotADirectory | ErrorKind::InvalidInput => sqlstate::WRONG_OBJECT_TYPE,
        _ => sqlstate::IO_ERROR,
    };
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    Error::new(code, format!("could not {what} \"{name}\"{purpose}: {text}"))
}
