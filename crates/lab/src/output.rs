//! The output of results: a file of JSON lines that is whole after every line.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::environment::environment;
use crate::error::Exit;
use crate::results::{self, Record};
use crate::{Error, Result};

/// An open file of results.
#[derive(Debug)]
pub struct Output {
    path: PathBuf,
    file: File,
    written: usize,
}

impl Output {
    /// Opens or makes the file; what it holds stays, but for a last line that was cut off.
    ///
    /// # Errors
    /// It can't be written.
    pub fn append(path: &Path) -> Result<Output> {
        let failed = |e| Error::file(path, e);
        let open = OpenOptions::new().read(true).append(true).create(true).open(path);
        let mut file = open.map_err(failed)?;
        if file.metadata().map_err(failed)?.is_file() {
            let mut text = Vec::new();
            file.read_to_end(&mut text).map_err(failed)?;
            let whole = text.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
            if whole < text.len() {
                file.set_len(whole as u64).map_err(failed)?;
            }
            file.seek(SeekFrom::End(0)).map_err(failed)?;
        }
        Ok(Output { path: path.to_owned(), file, written: 0 })
    }

    /// Opens the file as [`Output::append`] and begins a run: its first record is the environment, with
    /// the command's arguments.
    ///
    /// # Errors
    /// It can't be written.
    pub fn begin(path: &Path, arguments: &[String]) -> Result<Output> {
        let mut output = Output::append(path)?;
        output.write(&Record::Environment(environment(arguments)))?;
        Ok(output)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a record. If the file does not take it, it goes to standard output, so that nothing measured
    /// is lost, and the error says so.
    ///
    /// # Errors
    /// A full disk and the like.
    pub fn write(&mut self, record: &Record) -> Result<()> {
        let mut line = Vec::new();
        results::write(&mut line, record)?;
        if let Err(error) = self.file.write_all(&line).and_then(|()| self.file.flush()) {
            let shown = std::io::stdout().write_all(&line).is_ok();
            let rest = if shown { "; the record at hand went to standard output" } else { "" };
            let kept = self.written;
            return Err(Error::file(&self.path, format!("{error}; {kept} records are kept{rest}"))
                .exit(if kept > 0 { Exit::Partly } else { Exit::Failed }));
        }
        self.written += 1;
        Ok(())
    }
}

/// Prints; a reader that went away (`| head`) is no error.
///
/// # Errors
/// Standard output takes nothing.
pub fn print(text: &str) -> Result<()> {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Point;

    #[test]
    fn a_cut_line_is_replaced_by_what_comes_next() {
        let path = std::env::temp_dir().join(format!("lab-output-{}.jsonl", std::process::id()));
        let point = Record::Point(Point { clients: 3, ..Point::default() });
        for _ in 0..2 {
            let mut output = Output::append(&path).unwrap();
            output.write(&point).unwrap();
            output.file.write_all(b"{\"record\":\"po").unwrap();
        }
        let text = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(results::read(text.as_slice()).unwrap(), [point.clone(), point]);
    }

    #[test]
    fn a_full_disk_is_said() {
        let mut output = Output::append(Path::new("/dev/full")).unwrap();
        let error = output.write(&Record::Point(Point::default())).unwrap_err();
        assert!(error.to_string().starts_with("/dev/full: No space left"), "{error}");
    }
}
