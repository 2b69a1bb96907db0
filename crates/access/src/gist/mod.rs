//! GiST: a balanced tree of keys that *cover* those below them (Hellerstein, Naughton, Pfeffer, "Generalized
//! Search Trees for Database Systems", 1995; splits beside readers as in Kornacker, Mohan, Hellerstein,
//! "Concurrency and Recovery in Generalized Search Trees", 1997). What keys are is known to [`TreeOps`] only.
//!
//! ```text
//!  block 0: meta        block 1: the root, always
//!  inner page: | child | key that covers all keys of the child | …
//!  leaf:       | row   | key of the row                        | …
//! ```
//!
//! * [`page`]: the pages. `insert`: descent, splits; `build`: from sorted entries; `scan`: searches, also
//!   in order of distance; `verify`.
//! * One writer at a time changes the tree (`GistState::writing`). An insert is one mini-transaction: the leaf, the
//!   keys above that must grow, pages that are split with their new neighbours, the meta page.
//! * Readers hold one page's latch at a time. They note the number of the last split before they read a page,
//!   and when a child's number is higher, it was split since: what was moved is at its right. So nothing
//!   is missed; an entry is met twice only by those who come by both ways, which searches allow for.
//! * Searches read-lock every page that they visit; an insert looks for the locks of all pages whose keys it
//!   changes, since a key that grows may lead into a subtree that a search has left out.
//! * Pages never become free: a leaf that vacuum has emptied takes new entries.
//! * SP-GiST's classes live in this tree, too (decision 0030): keys of theirs cover each other as well.

mod build;
mod insert;
mod page;
mod scan;
mod verify;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use base::{AccessMethod, Fork, PageId, RelId, Result, TupleId, WaitEvent, err};
use page::Node;
use sched::{Mutex, SpinLock};
use storage::{Pinned, Storage};
use txn::Transaction;

use crate::btree::{Inserted, Unique};
use crate::method::{Found, IndexMethod, NextEntry, Report, Search, wrong_search};
use crate::registry::{self, RelState};

pub use crate::found::{Distances, Near};
pub use page::KEY_MAX;
pub use scan::{KeyCheck, KeyDistance, Nearest, TreeSearch, by_distance};

/// The root's block.
const ROOT: u32 = 1;
/// Pages at the file's end that are looked at for leftovers of a crash.
const SEARCH_PAGES: u32 = 64;
/// Fewest pages added to the file at a time.
const LEAST: u32 = 4;
/// Most pages added to the file at a time.
const CHUNK: u32 = 128;
/// More levels than any tree has.
const LEVELS_MAX: usize = 32;

/// The tree's knowledge of its keys, which are bytes to it: leaf keys as [`IndexMethod::entries`] gives them, and
/// what [`TreeOps::union`] makes of keys.
pub trait TreeOps: Send + Sync {
    /// The place, among some keys that cover pages, of the one that is to cover a new leaf key, too.
    ///
    /// # Errors
    /// Keys that make no sense; limits.
    fn choose(&self, covers: &[&[u8]], new: &[u8]) -> Result<usize>;

    /// The key that covers these. It is the same bytes as `keys[0]` when that covers the others.
    ///
    /// # Errors
    /// As [`TreeOps::choose`].
    fn union(&self, keys: &[&[u8]]) -> Result<Vec<u8>>;

    /// For each of at least two keys, whether it belongs to the second of two pages.
    ///
    /// # Errors
    /// As [`TreeOps::choose`].
    fn split(&self, keys: &[&[u8]]) -> Result<Vec<bool>>;

    /// Leaf keys that follow each other by their bytes are neighbours: sorted, they fill page after page.
    fn is_sortable(&self) -> bool;
}

/// One index.
#[derive(Clone)]
pub struct GistIndex {
    /// The files.
    pub rel: RelId,
    /// GiST or SP-GiST.
    pub method: AccessMethod,
    /// The operations that writers and the checker need.
    pub ops: Option<Arc<dyn TreeOps>>,
    storage: Arc<Storage>,
    state: Arc<RelState>,
}

/// State that all handles of one index share.
pub struct GistState {
    /// The number of the last split; below 0: not read yet.
    last_split: AtomicI64,
    /// Held by whoever changes the tree; whether the file's end has been searched for pages that a crash left.
    writing: Mutex<bool>,
    /// Pages of the file that are not in use yet.
    spare: SpinLock<Vec<u32>>,
}

impl Default for GistState {
    fn default() -> GistState {
        GistState {
            last_split: AtomicI64::new(-1),
            writing: Mutex::new(WaitEvent::LWLockIndexTreeWriter, false),
            spare: SpinLock::new(Vec::new()),
        }
    }
}

impl GistState {
    /// As new: the file is empty.
    pub(crate) fn reset(&self) {
        self.last_split.store(-1, Ordering::Release);
        *self.spare.lock() = Vec::new();
        *self.writing.lock() = false;
    }
}

impl GistIndex {
    /// Names an index; no I/O.
    pub fn open(storage: &Arc<Storage>, rel: RelId, method: AccessMethod) -> GistIndex {
        let state = registry::state_of(storage, rel);
        GistIndex { rel, method, ops: None, storage: storage.clone(), state }
    }

    fn shared(&self) -> &GistState {
        self.state.index.gist()
    }

    fn pin(&self, block: u32) -> Result<Pinned> {
        self.storage.pool.pin(PageId::main(self.rel, block))
    }

    fn ops(&self) -> Result<&dyn TreeOps> {
        self.ops.as_deref().ok_or_else(|| base::Error::internal("a tree without operator classes"))
    }

    fn corrupted(&self, block: u32) -> base::Error {
        err!(INDEX_CORRUPTED, "index {} has an invalid page at block {block}", self.rel.0)
            .hint("Please REINDEX it.")
    }

    /// The number of the last split that this task must know of.
    fn last_split(&self) -> Result<u64> {
        let known = self.shared().last_split.load(Ordering::Acquire);
        if known >= 0 {
            return Ok(known as u64);
        }
        let pinned = self.pin(0)?;
        let number = page::last_split(pinned.read().page()).ok_or_else(|| self.corrupted(0))?;
        if self.storage.follows() {
            // The pages change without this handle's knowledge.
            return Ok(number);
        }
        let own = &self.shared().last_split;
        match own.compare_exchange(known, number as i64, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => Ok(number),
            Err(now) => Ok(now.max(0) as u64),
        }
    }

    fn check_key(&self, key: &[u8]) -> Result<()> {
        if key.len() > KEY_MAX {
            return Err(err!(
                PROGRAM_LIMIT_EXCEEDED,
                "index row size {} exceeds maximum {KEY_MAX} for a {} index",
                key.len(),
                self.method.title()
            ));
        }
        Ok(())
    }

    /// Takes entries out page by page. One that moves to a page that was passed already is met there, since
    /// pages that were split since the beginning say where to.
    fn delete_dead(&self, dead: &dyn Fn(TupleId) -> bool) -> Result<u64> {
        let begin = self.last_split()?;
        let mut removed = 0;
        let mut block = ROOT;
        while block < self.storage.block_count(self.rel, Fork::Main)? {
            let mut at = block;
            loop {
                sched::check_interrupts()?;
                let (gone, right) = self.clean_page(at, begin, dead)?;
                removed += gone;
                if right == 0 || right > block {
                    break;
                }
                at = right;
            }
            block += 1;
        }
        Ok(removed)
    }

    /// Cleans one page; returns how many entries went, and the page that took cells of it since split `begin`.
    fn clean_page(
        &self,
        block: u32,
        begin: u64,
        dead: &dyn Fn(TupleId) -> bool,
    ) -> Result<(u64, u32)> {
        let _turn = self.shared().writing.lock();
        let guard = self.storage.pool.pin_scan(PageId::main(self.rel, block))?.write();
        let node = Node(guard.page());
        if page::kind(guard.page()) == 0 {
            return Ok((0, 0));
        }
        if !node.is_node() {
            return Err(self.corrupted(block));
        }
        let right = if node.split() > begin { node.right() } else { 0 };
        if !node.is_leaf() {
            return Ok((0, right));
        }
        let mut cells = node.owned().ok_or_else(|| self.corrupted(block))?;
        let before = cells.len();
        cells.retain(|cell| !matches!(cell.target, page::Target::Row(row) if dead(row)));
        let gone = before - cells.len();
        if gone > 0 {
            let head = page::Head::of(node);
            let mut mtr = self.storage.mtr();
            let target = mtr.add(guard);
            page::write(&mut mtr, target, head, &cells);
            mtr.commit();
        }
        Ok((gone as u64, right))
    }

    /// Whether a row has an entry with this key.
    fn has(&self, tx: &Transaction, entry: &[u8], root: TupleId) -> Result<bool> {
        let ops = self.ops.clone();
        let wanted = entry.to_vec();
        let check = move |key: &[u8], leaf: bool| {
            let fits = match &ops {
                _ if leaf => *key == *wanted,
                Some(ops) => ops.union(&[key, &wanted])? == key,
                None => true,
            };
            Ok(if fits { base::ternary::Ternary::True } else { base::ternary::Ternary::False })
        };
        let search = TreeSearch { check: Arc::new(check), distance: None };
        let mut known = false;
        self.find(tx, &search, &mut |found, _| known |= found.root == root)?;
        Ok(known)
    }
}

impl IndexMethod for GistIndex {
    const METHOD: AccessMethod = AccessMethod::Gist;

    fn fill(&self, _rows: u64, next: &mut NextEntry<'_>) -> Result<()> {
        GistIndex::fill(self, next)
    }

    fn insert(
        &self,
        tx: &Transaction,
        key: &[u8],
        root: TupleId,
        _unique: Unique<'_>,
    ) -> Result<Inserted> {
        self.add(Some(tx), key, root)?;
        Ok(Inserted::Done)
    }

    fn insert_entry(&self, tx: &Transaction, entry: &[u8], root: TupleId) -> Result<()> {
        if self.has(tx, entry, root)? { Ok(()) } else { self.add(Some(tx), entry, root) }
    }

    fn collect(
        &self,
        tx: &Transaction,
        search: &Search,
        found: &mut dyn FnMut(Found),
    ) -> Result<()> {
        let Search::Tree(search) = search else { return Err(wrong_search(self.method)) };
        self.find(tx, search, &mut |one, _| found(one))
    }

    fn bulk_delete(&self, dead: &dyn Fn(TupleId) -> bool) -> Result<u64> {
        self.delete_dead(dead)
    }

    fn check(&self) -> Result<Report> {
        self.verify()
    }
}
