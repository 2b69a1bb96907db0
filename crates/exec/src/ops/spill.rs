//! Runs of rows in temporary files, sorted by a key (or, with empty keys, as they came).
//!
//! ```text
//! | key length u32 | key | row length u32 | row (types::row) | …
//! ```
//!
//! A file has no name any more once it is open, so that nothing is left whatever happens. The data
//! is as short-lived as the statement: it is not synced and not checksummed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use base::usage::Use;
use base::{Error, Oid, Result, WaitEvent};
use storage::Storage;
use types::row::{self, RowLayout};
use types::{Batch, Datum};

use crate::rows;

const BUFFER: usize = 256 * 1024;

/// An I/O error of a temporary file.
pub fn failed(doing: &str, error: &io::Error) -> Error {
    Error::io(format!("{doing} temporary file"), error)
}

/// A file without a name in the data directory, and where it is read or written next. The worker runs
/// others while it waits for the disk.
pub struct TemporaryFile {
    file: File,
    at: u64,
}

impl TemporaryFile {
    /// In the data directory of this storage.
    pub fn new(storage: &Storage) -> Result<TemporaryFile> {
        TemporaryFile::under(storage.dir())
    }

    /// In this data directory.
    pub fn under(dir: &Path) -> Result<TemporaryFile> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let dir = dir.join("tmp");
        std::fs::create_dir_all(&dir).map_err(|e| failed("create directory of", &e))?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = dir.join(format!("sort.{}.{number}", std::process::id()));
        let mut options = File::options();
        let file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)
            .map_err(|e| failed("create", &e))?;
        std::fs::remove_file(&path).map_err(|e| failed("unlink", &e))?;
        sched::used(Use::TempFiles, 1);
        Ok(TemporaryFile { file, at: 0 })
    }

    /// Where it is written next.
    pub fn position(&self) -> u64 {
        self.at
    }

    /// Fills `into` from this place.
    pub fn read_exact_at(&self, into: &mut [u8], at: u64) -> Result<()> {
        let waiting = WaitEvent::IOBufFileRead;
        sched::timed(Use::TempReadNs, || sched::read_exact_at(waiting, &self.file, into, at))
            .map_err(|e| failed("read", &e))
    }
}

impl Write for TemporaryFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let waiting = WaitEvent::IOBufFileWrite;
        let write = || self.file.write_at(bytes, self.at);
        let written = sched::timed(Use::TempWriteNs, || sched::blocking_on_disk(waiting, write))?;
        self.at += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for TemporaryFile {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let waiting = WaitEvent::IOBufFileRead;
        let read =
            sched::timed(Use::TempReadNs, || sched::read_at(waiting, &self.file, into, self.at))?;
        self.at += read as u64;
        Ok(read)
    }
}

/// A run in the making.
pub struct RunWriter {
    file: BufWriter<TemporaryFile>,
    layout: RowLayout,
    row: Vec<u8>,
    buffer: usize,
}

impl RunWriter {
    /// A new file for rows of these types.
    ///
    /// # Errors
    /// I/O.
    pub fn new(storage: &Storage, types: &[Oid]) -> Result<RunWriter> {
        RunWriter::one_of_many(storage, types, BUFFER)
    }

    /// The same with a buffer of this many bytes, for one of many files that are written together.
    ///
    /// # Errors
    /// I/O.
    pub fn one_of_many(storage: &Storage, types: &[Oid], buffer: usize) -> Result<RunWriter> {
        let file = BufWriter::with_capacity(buffer, TemporaryFile::new(storage)?);
        Ok(RunWriter { file, layout: RowLayout::of_types(types), row: Vec::new(), buffer })
    }

    /// Adds a row; keys come in order.
    ///
    /// # Errors
    /// I/O, a full disk.
    pub fn add(&mut self, key: &[u8], values: &[Datum]) -> Result<()> {
        self.row.clear();
        row::encode(&self.layout, values, &mut self.row)?;
        let (file, row) = (&mut self.file, &self.row);
        sched::used(Use::TempWritten, (8 + key.len() + row.len()) as u64);
        let mut write = || {
            file.write_all(&(key.len() as u32).to_le_bytes())?;
            file.write_all(key)?;
            file.write_all(&(row.len() as u32).to_le_bytes())?;
            file.write_all(row)
        };
        write().map_err(|e| failed("write", &e))
    }

    /// The run, to be read from its beginning.
    ///
    /// # Errors
    /// I/O.
    pub fn finish(self) -> Result<Run> {
        let buffer = self.buffer;
        let mut file = self.file.into_inner().map_err(|e| failed("write", e.error()))?;
        file.at = 0;
        Ok(Run { file: BufReader::with_capacity(buffer, file), row: Vec::new() })
    }
}

/// A run being read; `row` is the front row's bytes.
pub struct Run {
    file: BufReader<TemporaryFile>,
    row: Vec<u8>,
}

impl Run {
    /// Reads the next row; its key, or None at the end.
    fn advance(&mut self) -> Result<Option<Vec<u8>>> {
        let mut length = [0; 4];
        let (file, row) = (&mut self.file, &mut self.row);
        let mut read = || {
            match file.read_exact(&mut length) {
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
                other => other?,
            }
            let mut key = vec![0; u32::from_le_bytes(length) as usize];
            file.read_exact(&mut key)?;
            file.read_exact(&mut length)?;
            row.resize(u32::from_le_bytes(length) as usize, 0);
            file.read_exact(row)?;
            sched::used(Use::TempRead, (8 + key.len() + row.len()) as u64);
            Ok(Some(key))
        };
        read().map_err(|e| failed("read", &e))
    }
}

/// Merges runs; of equal keys the earlier run's come first.
pub struct Merge {
    runs: Vec<Run>,
    fronts: BinaryHeap<Reverse<(Vec<u8>, usize)>>,
    layout: RowLayout,
    wanted: Vec<u16>,
}

impl Merge {
    /// Begins to read all runs.
    ///
    /// # Errors
    /// I/O.
    pub fn new(mut runs: Vec<Run>, types: &[Oid]) -> Result<Merge> {
        let mut fronts = BinaryHeap::new();
        for (n, run) in runs.iter_mut().enumerate() {
            if let Some(key) = run.advance()? {
                fronts.push(Reverse((key, n)));
            }
        }
        let wanted = (0..types.len() as u16).collect();
        Ok(Merge { runs, fronts, layout: RowLayout::of_types(types), wanted })
    }

    /// The next rows, at most `count`.
    ///
    /// # Errors
    /// I/O.
    pub fn next(&mut self, types: &[Oid], count: usize) -> Result<Batch> {
        let mut batch = rows::empty(types);
        while batch.rows < count {
            let Some(Reverse((_, n))) = self.fronts.pop() else {
                break;
            };
            let run = &mut self.runs[n];
            row::decode_into(&self.layout, &run.row, &self.wanted, &mut batch.columns)?;
            batch.rows += 1;
            if let Some(key) = run.advance()? {
                self.fronts.push(Reverse((key, n)));
            }
        }
        Ok(batch)
    }
}
