//! COPY with a file of the server.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;

use base::{Error, Result, WaitEvent, err, sqlstate};
use catalog::object::ids;
use types::Batch;
use types::Datum;

use crate::context::{ExecContext, RowSink};
use crate::rights;

/// Bytes that are read at once, and gathered before they are written.
const PIECE: usize = 64 << 10;

/// `42501` unless the session's role may use the server's files. `way`: `from` or `to`.
fn permit(cx: &mut ExecContext<'_>, role: u32, name: &str, way: &str) -> Result<()> {
    let view = cx.catalog_tx.view();
    let known = rights::of(cx, &view);
    if known.is_superuser(cx.role) || known.has_rights_of(cx.role, role) {
        return Ok(());
    }
    Err(err!(
        INSUFFICIENT_PRIVILEGE,
        "must be superuser or have privileges of the {name} role to COPY {way} a file"
    )
    .hint("Anyone can COPY to stdout or from stdin. psql's \\copy command also works for anyone."))
}

fn failed(path: &str, purpose: &str, error: &std::io::Error) -> Error {
    let code = match error.kind() {
        std::io::ErrorKind::NotFound => sqlstate::UNDEFINED_FILE,
        std::io::ErrorKind::PermissionDenied => sqlstate::INSUFFICIENT_PRIVILEGE,
        std::io::ErrorKind::IsADirectory => sqlstate::WRONG_OBJECT_TYPE,
        _ => sqlstate::IO_ERROR,
    };
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let error = Error::new(code, format!("could not open file \"{path}\" for {purpose}: {text}"));
    if code == sqlstate::IO_ERROR || code == sqlstate::WRONG_OBJECT_TYPE {
        return error;
    }
    let (way, word) = if purpose == "reading" { ("FROM", "read") } else { ("TO", "write") };
    error.hint(format!(
        "COPY {way} instructs the PostgreSQL server process to {word} a file. You may want a client-side facility such as psql's \\copy."
    ))
}

/// Opens a file to load.
///
/// # Errors
/// `42501`, `58P01`, `42809`.
pub fn open(path: &str, cx: &mut ExecContext<'_>) -> Result<File> {
    permit(cx, ids::READ_SERVER_FILES, "pg_read_server_files", "from")?;
    open_unasked(path)
}

/// The same for whoever may know what is in it.
///
/// # Errors
/// `58P01`, `42809`.
pub fn open_unasked(path: &str) -> Result<File> {
    let opened = sched::blocking(WaitEvent::IOCopyFileRead, || File::open(path));
    let file = opened.map_err(|e| failed(path, "reading", &e))?;
    if file.metadata().is_ok_and(|m| m.is_dir()) {
        base::bail!(WRONG_OBJECT_TYPE, "\"{path}\" is a directory");
    }
    Ok(file)
}

/// The next bytes of a file; None at its end.
///
/// # Errors
/// I/O.
pub fn read(file: &mut File) -> Result<Option<Vec<u8>>> {
    let mut piece = vec![0; PIECE];
    let count = sched::blocking(WaitEvent::IOCopyFileRead, || file.read(&mut piece));
    let count = count.map_err(|e| Error::io("read from COPY file", &e))?;
    piece.truncate(count);
    Ok((count > 0).then_some(piece))
}

/// A file in place of the client.
pub struct FileSink {
    file: File,
    pending: Vec<u8>,
}

impl FileSink {
    /// Makes the file, or empties the one that is there.
    ///
    /// # Errors
    /// `42602` for a relative path; `42501`, `42809`; I/O.
    pub fn create(path: &str, cx: &mut ExecContext<'_>) -> Result<FileSink> {
        permit(cx, ids::WRITE_SERVER_FILES, "pg_write_server_files", "to")?;
        if !path.starts_with('/') {
            base::bail!(INVALID_NAME, "relative path not allowed for COPY to file");
        }
        let made = sched::blocking(WaitEvent::IOCopyFileWrite, || make(path));
        let file = made.map_err(|e| failed(path, "writing", &e))?;
        Ok(FileSink { file, pending: Vec::with_capacity(PIECE) })
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// I/O.
    pub fn flush(&mut self) -> Result<()> {
        let (file, pending) = (&mut self.file, &self.pending);
        sched::blocking(WaitEvent::IOCopyFileWrite, || file.write_all(pending))
            .map_err(|e| Error::io("write to COPY file", &e))?;
        self.pending.clear();
        Ok(())
    }
}

/// Makes a file that everybody may read, unlike those of the data directory, or empties one.
///
/// # Errors
/// I/O errors.
pub fn make(path: &str) -> std::io::Result<File> {
    match File::options().write(true).create_new(true).open(path) {
        Ok(file) => {
            file.set_permissions(std::fs::Permissions::from_mode(0o644))?;
            Ok(file)
        }
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => File::create(path),
        Err(e) => Err(e),
    }
}

impl RowSink for FileSink {
    fn batch(&mut self, _batch: &Batch) -> Result<()> {
        Err(Error::internal("rows for a COPY file"))
    }

    fn row(&mut self, _row: &[Datum]) -> Result<()> {
        Err(Error::internal("a row for a COPY file"))
    }

    fn copy_data(&mut self, bytes: &[u8]) -> Result<()> {
        self.pending.extend_from_slice(bytes);
        if self.pending.len() >= PIECE {
            self.flush()?;
        }
        Ok(())
    }
}
