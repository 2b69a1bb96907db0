//! B-tree (Lehman and Yao 1981, with right links and high keys). Keys are bytes whose order is
//! `memcmp`'s; duplicates are ordered by row id. Inserts take the leaf exclusively from the start;
//! inner pages are read optimistically.
//!
//! * [`node`]: the page. `search`: the way down. `insert`: into a leaf, with the unique check.
//!   `split`: when there is no room. `cursor`: scans. `build`: from sorted entries. `vacuum`: entries and pages that go.
//! * A split of any height is one mini-transaction, so no crash leaves half of one behind and every
//!   page except the root always has its entry in its parent.
//! * Latches are taken upwards (leaf, then parent, ..., meta page) and, within a level, to the right.
//!   Descents hold no latch while they go from page to page: the right links make up for splits
//!   that overtake them.
//! * Pages that vacuum emptied are taken out and used again. A block number that was read before is good as long as no
//!   page was freed since: see `vacuum`.

mod build;
mod cursor;
mod insert;
pub mod node;
mod rewrite;
mod search;
mod split;
mod vacuum;
mod verify;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use base::{PageId, RelId, Result, TupleId, WaitEvent};
use sched::{Mutex, SpinLock};
use storage::{Pinned, Storage};

use crate::extension::Searched;
use crate::registry::{self, RelState};

pub use cursor::{Cursor, Entries};
pub(crate) use rewrite::{Rewritten, nobody};

/// One index.
#[derive(Clone)]
pub struct BTree {
    /// The files.
    pub rel: RelId,
    pub(crate) storage: Arc<Storage>,
    state: Arc<RelState>,
    /// The shortest bound between two leaf entries.
    separator: Separator,
}

/// See [`node::separator`].
type Separator = for<'a> fn(node::Entry<'_>, node::Entry<'a>) -> (&'a [u8], node::Tid);

/// State that all handles of one index share.
pub struct TreeState {
    /// Root's block and level (`block << 16 | level`); 0: not known yet. An outdated root is still
    /// a good place to begin: everything is reachable by right links.
    root: AtomicU64,
    /// The rightmost leaf plus 1 while entries come in ascending order; else 0.
    rightmost: AtomicU64,
    /// Pages of the file that are not in the tree yet.
    spare: SpinLock<Vec<u32>>,
    /// Held while extending.
    extending: Mutex<Searched>,
    /// How often pages were freed since the start.
    freed: AtomicU64,
    /// Leaves that the last walk found empty.
    emptied: SpinLock<Vec<u32>>,
    /// Pages that are in no level and not free yet.
    deleted: SpinLock<Vec<u32>>,
}

impl Default for TreeState {
    fn default() -> TreeState {
        TreeState {
            root: AtomicU64::new(0),
            rightmost: AtomicU64::new(0),
            spare: SpinLock::new(Vec::new()),
            extending: Mutex::new(WaitEvent::LWLockRelationExtensionLatch, Searched::default()),
            freed: AtomicU64::new(0),
            emptied: SpinLock::new(Vec::new()),
            deleted: SpinLock::new(Vec::new()),
        }
    }
}

impl TreeState {
    /// As new: the file is empty.
    pub(crate) fn reset(&self) {
        self.root.store(0, Relaxed);
        self.rightmost.store(0, Relaxed);
        *self.spare.lock() = Vec::new();
        *self.extending.lock() = Searched::default();
        self.freed.fetch_add(1, Relaxed);
        *self.emptied.lock() = Vec::new();
        *self.deleted.lock() = Vec::new();
    }
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
    pub fn prefix(bytes: &[u8]) -> KeyRange {
        let mut to = bytes.to_vec();
        while let Some(last) = to.last_mut() {
            if *last < u8::MAX {
                *last += 1;
                return KeyRange { from: bytes.to_vec(), to: Some(to) };
            }
            to.pop();
        }
        KeyRange { from: bytes.to_vec(), to: None }
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

/// The state of the row behind an equal key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rival {
    /// Dead or aborted: no conflict.
    Dead,
    /// Gone for everybody: no conflict, and its index entry may go as well.
    Removed,
    /// A live, committed (or own) row: conflict.
    Live,
    /// Another transaction is at it: wait for it, then check again.
    InProgress(base::Xid),
}

/// The result of an insert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// The entry is in.
    Done,
    /// A live row has the key; nothing was inserted.
    Conflict(TupleId),
}

impl BTree {
    /// Names the index; no I/O.
    pub fn open(storage: &Arc<Storage>, rel: RelId) -> BTree {
        BTree::with_separator(storage, rel, node::separator)
    }

    /// A tree whose leaf entries stand for more than their keys, so that bounds between them must not be
    /// just any.
    pub(crate) fn with_separator(
        storage: &Arc<Storage>,
        rel: RelId,
        separator: Separator,
    ) -> BTree {
        let state = registry::state_of(storage, rel);
        BTree { rel, storage: storage.clone(), state, separator }
    }

    pub(crate) fn pin(&self, block: u32) -> Result<Pinned> {
        self.storage.pool.pin(PageId::main(self.rel, block))
    }

    /// State that all handles of this index share.
    #[inline]
    fn shared(&self) -> &TreeState {
        self.state.index.tree()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_range_ends_after_all_keys_that_begin_with_it() {
        let range = KeyRange::prefix(&[1, 2, 0xff, 0xff]);
        assert_eq!(range.to.as_deref(), Some(&[1, 3][..]));
        assert_eq!(KeyRange::prefix(&[0xff]).to, None);
        assert_eq!(KeyRange::prefix(&[]).to, None);
    }
}
