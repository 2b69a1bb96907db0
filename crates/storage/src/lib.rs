//! Files, pages, the buffer pool, the write-ahead log, checkpoints and recovery. Knows nothing of
//! rows. (Interface agreed first; bodies follow.)
//!
//! All changes to pages go through a [`Mtr`] (mini-transaction): it holds the exclusive latches of
//! the pages it changes, applies each change at once and notes it as bytes, and its commit writes
//! ONE log record with the changes of all its pages. So redo is generic: it lives here and needs no
//! code from the access methods. The layers above add records with a payload of their own
//! (commits), which recovery hands to their [`Participant`].
//!
//! Hints (changes that may be lost) are written into a page under a shared latch and never make it
//! dirty, so they can't tear a page that the log would not repair.

pub mod buffer;
pub mod mtr;
pub mod wal;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::{Fork, Lsn, RelId, Result};

pub use buffer::{BufferPool, PAGE_SIZE, Page, Pinned, ReadGuard, WriteGuard};
pub use mtr::{Mtr, PageRef};
pub use wal::Wal;

/// Bytes at the start of each page that belong to storage: LSN (8), CRC-32C (4), flags (4). The
/// rest is the access method's.
pub const PAGE_HEADER: usize = 16;

/// A layer above that has state to recover: it is told of its own log records in order, and its
/// state is kept with each checkpoint.
pub trait Participant: Send + Sync {
    /// Recovery begins: the state that [`Participant::checkpoint`] returned for the checkpoint
    /// from which redo starts (empty for a new directory).
    fn restore(&self, state: &[u8]) -> Result<()>;
    /// A record with a payload, in log order; `lsn` is the record's end.
    fn redo(&self, code: u8, payload: &[u8], lsn: Lsn) -> Result<()>;
    /// Redo is at its end; `lsn` is the end of the log.
    fn recovered(&self, lsn: Lsn) -> Result<()>;
    /// A checkpoint: make everything up to `redo` durable in own files, and return the small state
    /// that goes with it.
    fn checkpoint(&self, redo: Lsn) -> Result<Vec<u8>>;
}

/// Everything on disk.
pub struct Storage {
    /// The buffer pool.
    pub pool: BufferPool,
    /// The write-ahead log.
    pub wal: Wal,
    dir: PathBuf,
}

/// What a data directory says about itself without being opened.
#[derive(Clone, Debug)]
pub struct Status {
    /// Whether a server holds the directory's lock, and its process id.
    pub running: Option<u32>,
    /// Whether the last server stopped cleanly.
    pub clean: bool,
    /// The directory's random id.
    pub system_id: u64,
}

impl Storage {
    /// Makes the directory's files (control file, empty log). The directory is missing or empty.
    ///
    /// # Errors
    /// `55000` when it holds something else.
    pub fn create(_dir: &Path) -> Result<()> {
        todo!()
    }

    /// Locks and opens the directory, recovers it if it was not shut down cleanly, and starts the
    /// WAL writer, background writer and checkpointer threads.
    ///
    /// # Errors
    /// `55006` in use; `55000` not ours or another version; I/O errors.
    pub fn open(_dir: &Path, _participant: Arc<dyn Participant>) -> Result<Arc<Storage>> {
        todo!()
    }

    /// Reads the control file and the lock.
    ///
    /// # Errors
    /// As [`Storage::open`].
    pub fn status(_dir: &Path) -> Result<Status> {
        todo!()
    }

    /// The data directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Makes the (empty) main fork of a new relation. Other forks come to be when extended.
    pub fn create_relation(&self, _rel: RelId) -> Result<()> {
        todo!()
    }

    /// Forgets the relation's pages and removes its files. The caller knows that no one uses it
    /// and that the transaction which dropped it is durable.
    pub fn drop_relation(&self, _rel: RelId) -> Result<()> {
        todo!()
    }

    /// Relations that have files (for the sweep of orphans after recovery).
    pub fn relations(&self) -> Result<Vec<RelId>> {
        todo!()
    }

    /// Pages in the fork; 0 if it has no file. One atomic load.
    pub fn block_count(&self, _rel: RelId, _fork: Fork) -> Result<u32> {
        todo!()
    }

    /// Adds `count` zero pages at the end of the fork's file and returns the first one's number.
    /// Not logged: a page comes to life with [`Mtr::init`]. The caller holds the extension lock.
    pub fn extend(&self, _rel: RelId, _fork: Fork, _count: u32) -> Result<u32> {
        todo!()
    }

    /// Cuts the fork to `blocks` pages (logged). The caller holds the relation exclusively.
    pub fn truncate(&self, _rel: RelId, _fork: Fork, _blocks: u32) -> Result<()> {
        todo!()
    }

    /// Starts a mini-transaction.
    pub fn mtr(&self) -> Mtr<'_> {
        todo!()
    }

    /// Makes a checkpoint now and waits for it.
    pub fn checkpoint(&self) -> Result<()> {
        todo!()
    }

    /// Last checkpoint, marks the directory clean, ends the threads. Nothing else may be running.
    pub fn shutdown(&self) -> Result<()> {
        todo!()
    }

    /// Ends the threads without a checkpoint, as after a kill (for tests and `stop -m immediate`).
    pub fn abandon(&self) {
        todo!()
    }
}
