//! B-tree (Lehman and Yao 1981, with right links and high keys). Keys are bytes whose order is
//! `memcmp`'s; duplicates are ordered by row id. Inserts take the leaf exclusively from the start;
//! inner pages are read optimistically.

use std::sync::Arc;

use base::{RelId, Result, TupleId};
use storage::Storage;
use txn::Transaction;

/// One index.
#[derive(Clone)]
pub struct BTree {
    /// The files.
    pub rel: RelId,
    storage: Arc<Storage>,
}

/// Bounds of a scan, on key bytes; a prefix bound covers all keys that begin with it.
#[derive(Clone, Debug, Default)]
pub struct KeyRange {
    /// Keys from here (inclusive).
    pub from: Vec<u8>,
    /// Keys below this (exclusive); None: to the end. For "equal to prefix p" see [`KeyRange::prefix`].
    pub to: Option<Vec<u8>>,
}

impl KeyRange {
    /// All keys that begin with these bytes.
    pub fn prefix(_bytes: &[u8]) -> KeyRange {
        todo!()
    }
}

/// How an insert treats an equal key.
pub enum Unique<'a> {
    /// Duplicates are fine.
    No,
    /// Equal keys are checked with the callback, which is told the other entry's root and answers
    /// what that row is for us; no latch is held while the insert waits.
    Yes(&'a mut dyn FnMut(TupleId) -> Result<Rival>),
}

/// What the row behind an equal key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rival {
    /// Dead or aborted: no conflict.
    Dead,
    /// A live, committed (or own) row: conflict.
    Live,
    /// Another transaction is at it: wait for it, then check again.
    InProgress(base::Xid),
}

/// What an insert found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// The entry is in.
    Done,
    /// A live row has the key; nothing was inserted.
    Conflict(TupleId),
}

impl BTree {
    /// Names the index; no I/O.
    pub fn open(_storage: &Arc<Storage>, _rel: RelId) -> BTree {
        todo!()
    }

    /// Makes the meta page and an empty root in new files.
    pub fn create(_storage: &Arc<Storage>, _rel: RelId) -> Result<BTree> {
        todo!()
    }

    /// Fills a new index from entries sorted by (key, row id); writes full pages.
    pub fn build(
        _storage: &Arc<Storage>,
        _rel: RelId,
        _sorted: &mut dyn Iterator<Item = Result<(Vec<u8>, TupleId)>>,
    ) -> Result<BTree> {
        todo!()
    }

    /// Adds an entry for the row whose chain begins at `root`.
    ///
    /// # Errors
    /// `54000` when the key is longer than a third of a page.
    pub fn insert(
        &self,
        _tx: &Transaction,
        _key: &[u8],
        _root: TupleId,
        _unique: Unique<'_>,
    ) -> Result<Inserted> {
        todo!()
    }

    /// Begins a scan. `backward`: from the range's end to its beginning.
    pub fn scan(&self, _range: KeyRange, _backward: bool) -> Cursor {
        todo!()
    }

    /// Point look-up: calls `f` with the row ids of all entries with exactly these key bytes, at
    /// most one leaf latched at a time; stops when `f` returns false.
    pub fn lookup(&self, _key: &[u8], _f: impl FnMut(TupleId) -> bool) -> Result<()> {
        todo!()
    }

    /// Removes all entries whose row id `dead` accepts; returns how many. Empty pages are unlinked.
    pub fn bulk_delete(&self, _dead: &dyn Fn(TupleId) -> bool) -> Result<u64> {
        todo!()
    }
}

/// A scan in progress: holds copies of one leaf's entries, no latch and no pin.
pub struct Cursor {}

impl Cursor {
    /// The next entry's key and row id.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<(&[u8], TupleId)>> {
        todo!()
    }
}
