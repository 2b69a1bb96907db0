//! Runs of rows in temporary files, sorted by a key (or, with empty keys, as they came).
//!
//! ```text
//! | key length u32 | key | row length u32 | row (types::row) | …
//! ```
//!
//! A file has no name any more once it is open, so that nothing is left whatever happens. The data
//! is as short-lived as the statement: it is not synced and not checksummed. Of many runs that are written together
//! those that never fill their buffer get no file.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Cursor, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
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
        TemporaryFile::create(dir).map_err(|e| failed("create", &e))
    }

    fn create(dir: &Path) -> io::Result<TemporaryFile> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let dir = dir.join("tmp");
        std::fs::create_dir_all(&dir)?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = dir.join(format!("sort.{}.{number}", std::process::id()));
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).truncate(true).open(&path)?;
        std::fs::remove_file(&path)?;
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

/// A file that may be made when its first bytes come.
enum LateFile {
    /// In this data directory.
    Unmade(PathBuf),
    Made(TemporaryFile),
}

impl Write for LateFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let LateFile::Unmade(dir) = self {
            *self = LateFile::Made(TemporaryFile::create(dir)?);
        }
        let LateFile::Made(file) = self else { return Ok(0) };
        let written = file.write(bytes)?;
        sched::used(Use::TempWritten, written as u64);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A run in the making.
pub struct RunWriter {
    file: BufWriter<LateFile>,
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
        let file = LateFile::Made(TemporaryFile::new(storage)?);
        Ok(RunWriter::with_buffer(file, types, BUFFER))
    }

    /// The same with a buffer of this many bytes, for one of many files that are written together: it is made when the
    /// buffer is full.
    pub fn one_of_many(storage: &Storage, types: &[Oid], buffer: usize) -> RunWriter {
        RunWriter::with_buffer(LateFile::Unmade(storage.dir().to_path_buf()), types, buffer)
    }

    fn with_buffer(file: LateFile, types: &[Oid], buffer: usize) -> RunWriter {
        let file = BufWriter::with_capacity(buffer, file);
        RunWriter { file, layout: RowLayout::of_types(types), row: Vec::new(), buffer }
    }

    /// Adds a row; keys come in order.
    ///
    /// # Errors
    /// I/O, a full disk.
    pub fn add(&mut self, key: &[u8], values: &[Datum]) -> Result<()> {
        self.row.clear();
        row::encode(&self.layout, values, &mut self.row)?;
        let (file, row) = (&mut self.file, &self.row);
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
        let (mut file, rest) = self.file.into_parts();
        let mut rest = rest.map_err(|_| Error::internal("a write of a temporary file panicked"))?;
        if let LateFile::Made(_) = file {
            file.write_all(&rest).map_err(|e| failed("write", &e))?;
        }
        let from = match file {
            LateFile::Unmade(_) => {
                rest.shrink_to_fit();
                Bytes::Memory(Cursor::new(rest))
            }
            LateFile::Made(mut file) => {
                file.at = 0;
                Bytes::File(BufReader::with_capacity(self.buffer, file))
            }
        };
        Ok(Run { from, row: Vec::new() })
    }
}

/// Where the bytes of a run are.
enum Bytes {
    Memory(Cursor<Vec<u8>>),
    File(BufReader<TemporaryFile>),
}

impl Bytes {
    fn read_exact(&mut self, into: &mut [u8]) -> io::Result<()> {
        match self {
            Bytes::Memory(bytes) => bytes.read_exact(into),
            Bytes::File(file) => file.read_exact(into),
        }
    }
}

/// A run being read; `row` is the front row's bytes.
pub struct Run {
    from: Bytes,
    row: Vec<u8>,
}

impl Run {
    /// Reads the next row; its key, or None at the end.
    fn advance(&mut self) -> Result<Option<Vec<u8>>> {
        let mut length = [0; 4];
        let (from, row) = (&mut self.from, &mut self.row);
        let mut read = || {
            match from.read_exact(&mut length) {
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
                other => other?,
            }
            let mut key = vec![0; u32::from_le_bytes(length) as usize];
            from.read_exact(&mut key)?;
            from.read_exact(&mut length)?;
            row.resize(u32::from_le_bytes(length) as usize, 0);
            from.read_exact(row)?;
            if let Bytes::File(_) = from {
                sched::used(Use::TempRead, (8 + key.len() + row.len()) as u64);
            }
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
