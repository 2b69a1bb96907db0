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
//!   in order of distance; `vacuum`; `verify`.
//! * One writer at a time changes the tree (`GistState::writing`). An insert is one mini-transaction: the leaf, the
//!   keys above that must grow, pages that are split with their new neighbours, the meta page.
//! * Readers hold one page's latch at a time. They note the number of the last split before they read a page,
//!   and when a child's number is higher, it was split since: what was moved is at its right. So nothing
//!   is missed; an entry is met twice only by those who come by both ways, which searches allow for.
//! * Searches read-lock every page that they visit; an insert looks for the locks of all pages whose keys it
//!   changes, since a key that grows may lead into a subtree that a search has left out.
//! * Leaves that vacuum has emptied are taken out of the tree and used again; searches that were on their way to one begin
//!   anew (`vacuum`).
//! * SP-GiST's classes live in this tree, too (decision 0030): keys of theirs cover each other as well.

mod build;
mod insert;
mod page;
mod scan;
mod vacuum;
mod verify;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use base::{AccessMethod, Fork, PageId, RelId, Result, TupleId, WaitEvent, err};
use sched::{Mutex, SpinLock};
use storage::{Pinned, Storage};
use txn::{Transaction, TxnManager};

use crate::btree::{Inserted, Unique};
use crate::extension::Searched;
use crate::method::{Found, IndexContents, IndexMethod, NextEntry, Report, Search, wrong_search};
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
    /// Held by whoever changes the tree; where the file has been searched for pages that are in no tree.
    writing: Mutex<Searched>,
    /// Pages of the file that are not in use.
    spare: SpinLock<Vec<u32>>,
    /// How often pages were freed since the start.
    freed: AtomicU64,
    /// Findings of the last walk of vacuum.
    emptied: SpinLock<Emptied>,
}

/// Findings of vacuum's last walk.
#[derive(Default)]
struct Emptied {
    /// Leaves without cells.
    leaves: Vec<u32>,
    /// Each page's parent, as it was when the parent was read.
    parents: HashMap<u32, u32>,
    /// Pages that are out of the tree and not free.
    deleted: Vec<u32>,
    /// Pages of zeros that nobody has looked at since the start.
    unknown: Vec<u32>,
}

impl Default for GistState {
    fn default() -> GistState {
        GistState {
            last_split: AtomicI64::new(-1),
            writing: Mutex::new(WaitEvent::LWLockIndexTreeWriter, Searched::default()),
            spare: SpinLock::new(Vec::new()),
            freed: AtomicU64::new(0),
            emptied: SpinLock::new(Emptied::default()),
        }
    }
}

impl GistState {
    /// As new: the file is empty.
    pub(crate) fn reset(&self) {
        self.last_split.store(-1, Ordering::Release);
        *self.spare.lock() = Vec::new();
        *self.writing.lock() = Searched::default();
        self.freed.fetch_add(1, Ordering::Release);
        *self.emptied.lock() = Emptied::default();
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

    /// Counts its entries and what is free.
    ///
    /// # Errors
    /// I/O, checksums, interrupts.
    pub fn contents(&self) -> Result<IndexContents> {
        let blocks = self.storage.block_count(self.rel, Fork::Main)?;
        let mut all = IndexContents { pages: u64::from(blocks), ..IndexContents::default() };
        for block in ROOT..blocks {
            sched::check_interrupts()?;
            let pinned = self.pin(block)?;
            let guard = pinned.read();
            let node = page::Node(guard.page());
            if !node.is_node() || node.is_deleted() {
                all.free_bytes += storage::PAGE_SIZE as u64;
            } else if node.is_leaf() {
                let cells = node.owned().ok_or_else(|| self.corrupted(block))?;
                let bytes = cells.iter().map(|cell| cell.size() as u64).sum::<u64>();
                all.entries += cells.len() as u64;
                all.entry_bytes += bytes;
                all.free_bytes += page::CAPACITY as u64 - bytes;
            }
        }
        Ok(all)
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

    fn clean_up(&self, _manager: &TxnManager) -> Result<()> {
        self.reclaim()
    }

    fn check(&self) -> Result<Report> {
        self.verify()
    }
}
