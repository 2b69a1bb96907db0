//! The heap: row versions in pages, chained in the page where an update touches no indexed column.
//!
//! Index entries point at the root of a chain. A reader goes from the root to the version its
//! snapshot sees. The queue for a contended row is the heavyweight lock on its root.

use std::sync::Arc;

use base::{RelId, Result, TupleId};
use storage::Storage;
use txn::{RowLockMode, Snapshot, Transaction};

/// One table's rows.
#[derive(Clone)]
pub struct Heap {
    /// The files.
    pub rel: RelId,
    storage: Arc<Storage>,
}

/// A row version read from the heap.
#[derive(Clone, Debug)]
pub struct HeapTuple {
    /// Where this version is.
    pub tid: TupleId,
    /// Where its chain begins: what index entries hold.
    pub root: TupleId,
    /// The row's bytes.
    pub data: Vec<u8>,
    /// `xmin`, `xmax`, `cmin`, `cmax` for the system columns.
    pub system: SystemColumns,
}

/// See [`HeapTuple`].
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemColumns {
    /// Inserting transaction.
    pub xmin: u64,
    /// Deleting or locking transaction.
    pub xmax: u64,
    /// Inserting command.
    pub cmin: u32,
    /// Deleting command.
    pub cmax: u32,
}

/// What became of an attempt to update or delete the version that a scan found.
#[derive(Clone, Debug)]
pub enum WriteResult {
    /// Done. For an update: the new version, and whether it stayed in the chain (no new index
    /// entries needed).
    Done {
        /// The new version (the deleted one for a delete).
        tid: TupleId,
        /// No index entries needed.
        in_chain: bool,
    },
    /// Another transaction changed the row and committed; `newest` is its newest version, already
    /// locked for the caller with the strength asked for (READ COMMITTED: re-check the condition on
    /// it and try again with its tid and root). Above READ COMMITTED this is raised as `40001`.
    Changed {
        /// The newest version.
        newest: Box<HeapTuple>,
    },
    /// Another transaction deleted the row and committed.
    Gone,
    /// The row was changed by an earlier part of this very statement; nothing was done.
    SelfChanged,
}

/// What became of an attempt to lock a row.
#[derive(Clone, Debug)]
pub enum LockResult {
    /// Locked as it was found.
    Locked,
    /// Locked, in a newer version.
    Changed {
        /// The newest version.
        newest: Box<HeapTuple>,
    },
    /// Deleted.
    Gone,
    /// Somebody holds it (SKIP LOCKED, NOWAIT).
    WouldBlock,
}

/// Where a new row may go: kept by a session for a table between inserts.
#[derive(Clone, Copy, Debug, Default)]
pub struct InsertHint {
    /// The page that took the last row.
    pub block: Option<u32>,
}

impl Heap {
    /// Names the heap; no I/O.
    pub fn open(_storage: &Arc<Storage>, _rel: RelId) -> Heap {
        todo!()
    }

    /// Adds a row.
    ///
    /// # Errors
    /// `54000` when the row is larger than a page.
    pub fn insert(
        &self,
        _tx: &Transaction,
        _data: &[u8],
        _hint: &mut InsertHint,
    ) -> Result<TupleId> {
        todo!()
    }

    /// Adds many rows, filling each page with one log record. Returns their places in order.
    pub fn insert_many(
        &self,
        _tx: &Transaction,
        _rows: &[&[u8]],
        _hint: &mut InsertHint,
    ) -> Result<Vec<TupleId>> {
        todo!()
    }

    /// The version that the snapshot sees of the row whose chain begins at `root`; `f` gets its
    /// place and bytes under the page's shared latch (it must not wait).
    pub fn fetch<R>(
        &self,
        _tx: &Transaction,
        _snapshot: &Snapshot,
        _root: TupleId,
        _f: impl FnOnce(TupleId, &[u8]) -> R,
    ) -> Result<Option<R>> {
        todo!()
    }

    /// Exactly this version, whatever its visibility (RETURNING, re-checks).
    pub fn fetch_version(&self, _tid: TupleId) -> Result<Option<HeapTuple>> {
        todo!()
    }

    /// All rows that the snapshot sees, page by page, in `blocks` (all pages when None).
    pub fn scan(&self, _snapshot: &Snapshot, _blocks: Option<std::ops::Range<u32>>) -> HeapScan {
        todo!()
    }

    /// Replaces the version `tid` (of the chain at `root`), found by a scan with `snapshot`, by
    /// `data`. `key_changed`: a unique key's column changes (lock strength Update instead of
    /// NoKeyUpdate). `indexed_changed`: some index needs a new entry, so the new version starts a
    /// chain of its own. Waits for other transactions through the row's queue.
    ///
    /// # Errors
    /// `40001` above READ COMMITTED; deadlocks, time-outs, interrupts.
    #[allow(clippy::too_many_arguments)]
    pub fn update(
        &self,
        _tx: &Transaction,
        _snapshot: &Snapshot,
        _tid: TupleId,
        _root: TupleId,
        _data: &[u8],
        _key_changed: bool,
        _indexed_changed: bool,
    ) -> Result<WriteResult> {
        todo!()
    }

    /// Deletes the version, as [`Heap::update`].
    pub fn delete(
        &self,
        _tx: &Transaction,
        _snapshot: &Snapshot,
        _tid: TupleId,
        _root: TupleId,
    ) -> Result<WriteResult> {
        todo!()
    }

    /// What the row whose chain begins at `root` is for a unique check by `tx`, judged by its newest
    /// version and not by a snapshot: dead (deleted, or ended in this chain by an update that began
    /// a new one, by a committed transaction or by `tx` itself; or never committed), live, or in the
    /// hands of another running transaction (which inserted, deleted or moved it).
    pub fn rival(&self, _tx: &Transaction, _root: TupleId) -> Result<crate::btree::Rival> {
        todo!()
    }

    /// Locks the row.
    pub fn lock(
        &self,
        _tx: &Transaction,
        _snapshot: &Snapshot,
        _tid: TupleId,
        _root: TupleId,
        _mode: RowLockMode,
        _wait: RowWait,
    ) -> Result<LockResult> {
        todo!()
    }
}

/// What to do when somebody else holds the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowWait {
    /// Wait.
    Block,
    /// [`LockResult::WouldBlock`] (the caller raises `55P03` for NOWAIT or skips).
    Try,
}

/// A scan in progress: pins one page at a time between calls, latches none.
pub struct HeapScan {}

impl HeapScan {
    /// Reads the next page that has visible rows and calls `f(tid, root, row bytes)` for each, under
    /// the page's shared latch (it must not wait). Returns false at the end.
    pub fn next_page(
        &mut self,
        _tx: &Transaction,
        _f: impl FnMut(TupleId, TupleId, &[u8]),
    ) -> Result<bool> {
        todo!()
    }
}
