//! adminpack: files of the server written, renamed and removed by statement, and the log's files.
//!
//! Names are relative to the data directory. Outside of it, and by absolute names elsewhere, only superusers and members of
//! `pg_write_server_files` reach anything.

use std::fs::{File, OpenOptions};
use std::io::{Error as IoError, ErrorKind, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use base::settings::setting;
use base::{Error, Result, WaitEvent, bail};
use catalog::object::ids;
use exec::context::ExecContext;
use exec::native::{Native, SetCall, Symbols};
use exec::rights;
use types::Datum;
use types::datum::Shape;
use types::extension::Library;
use types::oids::{RECORD, TEXT, TIMESTAMP};

/// The library, whose functions all need the session.
pub static LIBRARY: Library = Library { name: "adminpack", ..Library::EMPTY };

/// Its functions.
pub const SYMBOLS: Symbols = &[
    ("pg_file_write_v1_1", Native::Scalar(write)),
    ("pg_file_rename_v1_1", Native::Scalar(rename)),
    ("pg_file_unlink_v1_1", Native::Scalar(unlink)),
    ("pg_file_sync", Native::Scalar(sync)),
    ("pg_logdir_ls_v1_1", Native::Set(list_log)),
];

/// The only form of names that the log's files may have.
const LOG_NAMES: &str = "postgresql-%Y-%m-%d_%H%M%S.log";

fn on_disk<R: Send>(call: impl FnOnce() -> R + Send) -> R {
    sched::blocking(WaitEvent::IOCopyFileWrite, call)
}

/// A path without `.`, and without `..` behind a name.
fn canonical(name: &str) -> PathBuf {
    let mut path = PathBuf::new();
    for part in Path::new(name).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir
                if matches!(path.components().next_back(), Some(Component::Normal(_))) =>
            {
                path.pop();
            }
            part => path.push(part),
        }
    }
    path
}

/// The place that a name means, and the name for messages, if the session's role may write there.
fn allowed(name: &Datum, cx: &mut ExecContext<'_>) -> Result<(PathBuf, String)> {
    let path = canonical(name.as_str());
    let home = cx.engine.storage.dir();
    let shown = path.display().to_string();
    let place = home.join(&path);
    let view = cx.catalog_tx.view();
    let known = rights::of(cx, &view);
    if known.is_superuser(cx.role) || known.has_rights_of(cx.role, ids::WRITE_SERVER_FILES) {
        return Ok((place, shown));
    }
    if path.is_absolute() && !path.starts_with(home) {
        bail!(INSUFFICIENT_PRIVILEGE, "absolute path not allowed");
    }
    if path.components().next() == Some(Component::ParentDir) {
        bail!(INSUFFICIENT_PRIVILEGE, "path must be in or below the current directory");
    }
    Ok((place, shown))
}

/// An error with what the system said, without `could not`.
fn said(what: &str, error: &IoError) -> Error {
    let full = Error::io("", error);
    let text = full.message().trim_start_matches("could not : ").to_owned();
    Error::new(full.code(), format!("{what}: {text}"))
}

fn write(args: &[Datum], cx: &mut ExecContext<'_>) -> Result<Datum> {
    let (path, name) = allowed(&args[0], cx)?;
    let (bytes, append) = (args[1].as_str().as_bytes(), args[2] == Datum::Bool(true));
    on_disk(|| {
        if !append {
            match path.metadata() {
                Ok(_) => bail!(DUPLICATE_FILE, "file \"{name}\" exists"),
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                Err(e) => return Err(Error::io(format_args!("stat file \"{name}\""), &e)),
            }
        }
        let opened = OpenOptions::new().create(true).append(append).write(true).open(&path);
        let mut file =
            opened.map_err(|e| Error::io(format_args!("open file \"{name}\" for writing"), &e))?;
        file.write_all(bytes).map_err(|e| Error::io(format_args!("write file \"{name}\""), &e))?;
        Ok(Datum::Int8(bytes.len() as i64))
    })
}

/// Whether a file is there and may be written, as `access` with `W_OK` tells.
fn access(path: &Path) -> std::io::Result<()> {
    let meta = path.metadata()?;
    if meta.is_dir() {
        return Ok(());
    }
    OpenOptions::new().append(true).open(path).map(drop)
}

fn warn(error: Error, cx: &mut ExecContext<'_>) -> Datum {
    cx.hooks.notice("WARNING", error);
    Datum::Bool(false)
}

/// From the first name to the second; with a third one, what has the second name gets that one before.
fn rename(args: &[Datum], cx: &mut ExecContext<'_>) -> Result<Datum> {
    if args[0].is_null() || args[1].is_null() {
        return Ok(Datum::Null);
    }
    let (from, to) = (allowed(&args[0], cx)?, allowed(&args[1], cx)?);
    let archive = match &args[2] {
        Datum::Null => None,
        name => Some(allowed(name, cx)?),
    };
    let sources = [Some(&from), archive.as_ref().map(|_| &to)];
    for (path, name) in sources.into_iter().flatten() {
        if let Err(error) = on_disk(|| access(path)) {
            return Ok(warn(said(&format!("file \"{name}\" is not accessible"), &error), cx));
        }
    }
    let (target, name) = archive.as_ref().unwrap_or(&to);
    if !on_disk(|| access(target)).is_err_and(|e| e.kind() == ErrorKind::NotFound) {
        bail!(DUPLICATE_FILE, "cannot rename to target file \"{name}\"");
    }
    let moved = |from: &(PathBuf, String), to: &(PathBuf, String)| {
        on_disk(|| std::fs::rename(&from.0, &to.0))
            .map_err(|e| Error::io(format_args!("rename \"{}\" to \"{}\"", from.1, to.1), &e))
    };
    let Some(archive) = archive else {
        moved(&from, &to)?;
        return Ok(Datum::Bool(true));
    };
    moved(&to, &archive)?;
    if let Err(error) = moved(&from, &to) {
        cx.hooks.notice("WARNING", error);
        moved(&archive, &to)?;
        bail!(UNDEFINED_FILE, "renaming \"{}\" to \"{}\" was reverted", to.1, archive.1);
    }
    Ok(Datum::Bool(true))
}

fn unlink(args: &[Datum], cx: &mut ExecContext<'_>) -> Result<Datum> {
    let (path, name) = allowed(&args[0], cx)?;
    match on_disk(|| access(&path)) {
        Ok(()) => {}
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Datum::Bool(false)),
        Err(e) => return Err(said(&format!("file \"{name}\" is not accessible"), &e)),
    }
    match on_disk(|| std::fs::remove_file(&path)) {
        Ok(()) => Ok(Datum::Bool(true)),
        Err(e) => Ok(warn(Error::io(format_args!("unlink file \"{name}\""), &e), cx)),
    }
}

fn sync(args: &[Datum], cx: &mut ExecContext<'_>) -> Result<Datum> {
    let (path, name) = allowed(&args[0], cx)?;
    on_disk(|| {
        path.metadata().map_err(|e| Error::io(format_args!("stat file \"{name}\""), &e))?;
        let synced = File::open(&path).and_then(|file| file.sync_all());
        synced.map_err(|e| Error::io(format_args!("fsync file \"{name}\""), &e))
    })?;
    Ok(Datum::text(""))
}

/// The moment that stands in the name of a file of the log.
fn moment(name: &str) -> Option<String> {
    let digits = name.strip_prefix("postgresql-")?.strip_suffix(".log")?;
    let bytes = digits.as_bytes();
    let fits = bytes.iter().zip("dddd-dd-dd_dddddd".bytes()).all(|(b, form)| match form {
        b'd' => b.is_ascii_digit(),
        form => *b == form,
    });
    (fits && bytes.len() == 17).then(|| {
        let (day, time) = (&digits[..10], &digits[11..]);
        format!("{day} {}:{}:{}", &time[..2], &time[2..4], &time[4..])
    })
}

fn list_log(call: &SetCall<'_>, cx: &mut ExecContext<'_>) -> Result<Vec<Datum>> {
    if cx.settings.str(setting::LOG_FILENAME) != LOG_NAMES {
        bail!(
            INVALID_PARAMETER_VALUE,
            "the log_filename parameter must equal 'postgresql-%Y-%m-%d_%H%M%S.log'"
        );
    }
    let folder = cx.settings.str(setting::LOG_DIRECTORY).to_owned();
    let path = cx.engine.storage.dir().join(&folder);
    let names = on_disk(|| -> std::io::Result<Vec<String>> {
        let entries = std::fs::read_dir(&path)?;
        entries.map(|e| Ok(e?.file_name().to_string_lossy().into_owned())).collect()
    });
    let mut names =
        names.map_err(|e| Error::io(format_args!("open directory \"{folder}\""), &e))?;
    names.sort_unstable();
    let columns = call.wanted.map_or_else(
        || vec![("column1".into(), TIMESTAMP), ("column2".into(), TEXT)],
        <[_]>::to_vec,
    );
    let shape = Arc::new(Shape { ty: RECORD, columns });
    let mut rows = Vec::new();
    for name in &names {
        let Some(moment) = moment(name) else { continue };
        let Ok(at) = types::io::input(TIMESTAMP, -1, &moment, cx.format) else { continue };
        let shown = format!("{folder}/{name}");
        rows.push(Datum::record(shape.clone(), vec![at, Datum::text(&shown)]));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_log_have_a_moment() {
        let found = moment("postgresql-2024-02-29_123456.log");
        assert_eq!(found.as_deref(), Some("2024-02-29 12:34:56"));
        for other in
            ["postgresql-2024-02-29_12345.log", "postgresql-2024-02-29_123456.csv", "x.log"]
        {
            assert_eq!(moment(other), None, "{other}");
        }
    }

    #[test]
    fn paths_lose_what_leads_nowhere() {
        assert_eq!(canonical("./a/../b"), PathBuf::from("b"));
        assert_eq!(canonical("a/../../b"), PathBuf::from("../b"));
        assert_eq!(canonical("/a/./b/../c"), PathBuf::from("/a/c"));
    }
}
