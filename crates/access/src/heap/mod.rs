//! The heap: row versions in pages, chained in the page where an update touches no indexed column.
//!
//! Index entries point at the root of a chain. A reader goes from the root to the version its
//! snapshot sees. The queue for a contended row is the heavyweight lock on its root.
//!
//! ```text
//! index entry → root line pointer → v1 (xmax = T2) → v2 (xmax = T5) → v3      same page, one chain
//!                                                                      ↓ no room, or an indexed
//! index entry → root line pointer of another page → v4                   column changed
//! ```
//!
//! * [`page`]: the bytes. [`visible`]: what a snapshot sees. [`prune`]: taking out the dead.
//! * `bridge`: leading old versions past those between chains that nobody sees.
//! * `insert`, `scan`, `write`: what the layers above call.
//!
//! Order of latches: index leaf before heap page; two heap pages only one after the other in
//! ascending order, or by trying. No latch is held while waiting for a lock or a transaction.

pub(crate) mod bridge;
mod index_only;
mod insert;
pub mod inspect;
mod lines;
pub mod page;
pub mod prune;
mod scan;
pub mod visible;
mod write;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use base::{Fork, RelId, Result, TupleId, Xid, err};
use page::{LOCK_ONLY, Line, NEXT_IN_CHAIN, STUB, XMAX_ABORTED, XMIN_ABORTED};
use prune::{Scope, VisibilityHorizon};
use storage::{Pinned, Storage};
use txn::{Snapshot, Transaction, XidStatus};
use visible::View;

use crate::btree::Rival;
use crate::registry::{self, RelState};

pub use scan::{HeapScan, Keep, RowBatch};

/// A reader that passed this many versions of one row looks whether pruning helps.
const LONG_CHAIN: usize = 12;
/// A reader prunes a page with less free space than this.
const SHORT_OF_SPACE: usize = storage::PAGE_SIZE / 10;

/// One table's rows.
#[derive(Clone)]
pub struct Heap {
    /// The files.
    pub rel: RelId,
    pub(crate) storage: Arc<Storage>,
    pub(crate) state: Arc<RelState>,
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

/// The result of an attempt to update or delete the version that a scan found.
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
    /// Somebody else holds the row, and the caller did not want to wait ([`RowWait::Try`]).
    Busy,
}

/// The result of an attempt to lock a row.
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

/// The behaviour when another transaction holds the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowWait {
    /// Wait.
    Block,
    /// [`WriteResult::Busy`] or [`LockResult::WouldBlock`] (the caller raises `55P03` for NOWAIT or skips).
    Try,
}

/// How large a heap is, for the planner and for vacuum's launcher.
#[derive(Clone, Copy, Debug, Default)]
pub struct Estimate {
    /// Pages.
    pub pages: u32,
    /// Rows, roughly.
    pub rows: u64,
    /// Versions ended since vacuum last ran (since the start, at most).
    pub ended: u64,
}

impl Heap {
    /// Names the heap; no I/O.
    pub fn open(storage: &Arc<Storage>, rel: RelId) -> Heap {
        Heap { rel, storage: storage.clone(), state: registry::state_of(storage, rel) }
    }

    /// Pages of the file.
    pub fn pages(&self) -> Result<u32> {
        self.storage.block_count(self.rel, Fork::Main)
    }

    /// The version that the snapshot sees of the row whose chain begins at `root`; `f` gets its
    /// place and bytes under the page's shared latch (it must not wait).
    pub fn fetch<R>(
        &self,
        tx: &Transaction,
        snapshot: &Snapshot,
        root: TupleId,
        f: impl FnOnce(TupleId, &[u8]) -> R,
    ) -> Result<Option<R>> {
        let pinned = self.pin(root.block)?;
        let mut view = View::new(tx, snapshot, pinned.id());
        let (found, look) = {
            let guard = pinned.read();
            self.check_used(root.block, guard.page())?;
            let (seen, passed) = view.visible_in_chain(&guard, root.offset);
            let found = seen.map(|seen| {
                let tid = TupleId { block: root.block, offset: seen.line };
                f(tid, page::row(guard.page(), seen.offset, seen.len))
            });
            (found, passed >= LONG_CHAIN || wants_pruning(guard.page()))
        };
        if look {
            self.prune_if_useful(tx, pinned, root.offset);
        }
        view.record_conflicts()?;
        Ok(found)
    }

    /// An error if a page is one of zeros that was in use: damage. Under its latch.
    #[inline]
    pub(crate) fn check_used(&self, block: u32, page: &storage::Page) -> Result<()> {
        if page::is_new(page) && self.state.visible.has(block) {
            return Err(self.lost_page(block));
        }
        Ok(())
    }

    #[cold]
    fn lost_page(&self, block: u32) -> base::Error {
        err!(DATA_CORRUPTED, "invalid page in block {block} of relation {}", self.rel.0)
            .detail("The page has nothing but zeros, though it was in use.")
    }

    /// Prunes a page that a reader found crowded, if nobody else has it and something is dead.
    fn prune_if_useful(&self, tx: &Transaction, pinned: Pinned, root: u16) {
        let block = pinned.id().block;
        if !self.storage.serves() {
            return;
        }
        let mut visibility = VisibilityHorizon::new(tx.manager());
        if self.state.space.prune_is_futile(block, visibility.bound().0) {
            return;
        }
        let Ok(guard) = pinned.try_write() else { return };
        if !wants_pruning(guard.page())
            && !chain_is_mostly_dead(guard.page(), root, &mut visibility)
        {
            self.state.space.note_futile_prune(block, visibility.bound().0);
            return;
        }
        let mut mtr = self.storage.mtr();
        let target = mtr.add(guard);
        let pruned = prune::prune(&mut mtr, target, &mut visibility, Scope::Visit);
        let room = page::room(mtr.page(target));
        mtr.commit();
        if pruned.removed == 0 {
            self.state.space.note_futile_prune(block, visibility.bound().0);
        } else if !self.state.space.is_target(block) {
            self.state.space.give(block, room);
        }
    }

    /// Exactly this version, whatever its visibility (RETURNING, re-checks).
    pub fn fetch_version(&self, tid: TupleId) -> Result<Option<HeapTuple>> {
        let pinned = self.pin(tid.block)?;
        let guard = pinned.read();
        Ok(copy_version(guard.page(), tid))
    }

    /// The state of the row at `root` for a unique check by `tx`: whether any of its versions is live
    /// now, whatever snapshots say. Latches the heap page, never waits otherwise; may be called
    /// with an index leaf latched.
    pub fn rival(&self, tx: &Transaction, root: TupleId) -> Result<Rival> {
        let pinned = self.pin(root.block)?;
        let guard = pinned.read();
        let page = guard.page();
        self.check_used(root.block, page)?;
        let Some((_, mut offset, _)) = page::first_of_chain(page, root.offset) else {
            return Ok(Rival::Removed);
        };
        if page::mask(page, offset) & (STUB | NEXT_IN_CHAIN) == STUB {
            return Ok(Rival::Removed);
        }
        loop {
            let mask = page::mask(page, offset);
            match self.rival_version(tx, page, offset, mask) {
                Some(verdict) => return Ok(verdict),
                None if mask & NEXT_IN_CHAIN == 0 => return Ok(Rival::Dead),
                None => match page::line(page, page::next_line(page, offset)) {
                    Line::Normal(at, _) => offset = at,
                    _ => return Ok(Rival::Dead),
                },
            }
        }
    }

    /// The version of the row at `root` for which [`Heap::rival`] says that it is live.
    pub fn live_version(&self, tx: &Transaction, root: TupleId) -> Result<Option<HeapTuple>> {
        let found = self.rival_version_of(tx, root)?;
        Ok(found.and_then(|(rival, version)| matches!(rival, Rival::Live).then_some(version)))
    }

    /// The answer of [`Heap::rival`] for the row at `root`, and the version that it is about; None: the row is dead or
    /// gone.
    pub fn rival_version_of(
        &self,
        tx: &Transaction,
        root: TupleId,
    ) -> Result<Option<(Rival, HeapTuple)>> {
        let pinned = self.pin(root.block)?;
        let guard = pinned.read();
        let page = guard.page();
        self.check_used(root.block, page)?;
        let Some((mut line, mut offset, _)) = page::first_of_chain(page, root.offset) else {
            return Ok(None);
        };
        if page::mask(page, offset) & (STUB | NEXT_IN_CHAIN) == STUB {
            return Ok(None);
        }
        loop {
            let mask = page::mask(page, offset);
            match self.rival_version(tx, page, offset, mask) {
                Some(rival @ (Rival::Live | Rival::InProgress(_))) => {
                    let version = copy_version(page, TupleId { block: root.block, offset: line });
                    return Ok(version.map(|version| (rival, version)));
                }
                Some(_) => return Ok(None),
                None if mask & NEXT_IN_CHAIN == 0 => return Ok(None),
                None => {
                    line = page::next_line(page, offset);
                    match page::line(page, line) {
                        Line::Normal(at, _) => offset = at,
                        _ => return Ok(None),
                    }
                }
            }
        }
    }

    /// All row versions of a page but those of transactions that were rolled back: for summaries, which must allow for
    /// whatever a snapshot may see.
    ///
    /// # Errors
    /// I/O.
    pub fn versions(&self, manager: &txn::TxnManager, block: u32) -> Result<Vec<Vec<u8>>> {
        let pinned = self.pin(block)?;
        let guard = pinned.read();
        let page = guard.page();
        let mut out = Vec::new();
        for (_, line) in page::lines(page) {
            let Line::Normal(at, len) = line else { continue };
            let aborted = manager.status(Xid(page::xmin(page, at))) == XidStatus::Aborted;
            if page::mask(page, at) & STUB == 0 && !aborted {
                out.push(page::row(page, at, len).to_vec());
            }
        }
        Ok(out)
    }

    /// One version's part in [`Heap::rival`]; None: ended for good, ask the next one.
    fn rival_version(
        &self,
        tx: &Transaction,
        page: &storage::Page,
        offset: usize,
        mask: u16,
    ) -> Option<Rival> {
        let manager = tx.manager();
        let xmin = Xid(page::xmin(page, offset));
        if mask & XMIN_ABORTED != 0 {
            return Some(Rival::Dead);
        }
        if !tx.is_mine(xmin) {
            match manager.status(xmin) {
                XidStatus::Aborted => return Some(Rival::Dead),
                // Ended by the very transaction that made it (an INSERT … ON CONFLICT that came
                // too late): however that one ends, nothing is left of it.
                XidStatus::Running
                    if page::xmax(page, offset) == xmin.0
                        && mask & (LOCK_ONLY | XMAX_ABORTED) == 0 =>
                {
                    return None;
                }
                XidStatus::Running => return Some(Rival::InProgress(xmin)),
                XidStatus::Committed(csn) => tx.note_seen(csn),
            }
        }
        let xmax = Xid(page::xmax(page, offset));
        if !xmax.is_valid() || mask & (LOCK_ONLY | XMAX_ABORTED) != 0 {
            return Some(Rival::Live);
        }
        if tx.is_mine(xmax) {
            return None;
        }
        match manager.status(xmax) {
            XidStatus::Aborted => Some(Rival::Live),
            XidStatus::Running => Some(Rival::InProgress(xmax)),
            XidStatus::Committed(csn) => {
                tx.note_seen(csn);
                None
            }
        }
    }

    /// The versions that vacuum had to keep when it last ran, and for whom.
    pub fn held_back(&self) -> Vec<prune::HeldBack> {
        self.state.space.held_back.lock().clone()
    }

    /// Size of the heap; looks at a few pages when vacuum hasn't counted the rows yet.
    pub fn estimate(&self) -> Result<Estimate> {
        let pages = self.pages()?;
        let space = &self.state.space;
        let ended = space.ended.load(Relaxed);
        let (known, known_pages) = (space.rows.load(Relaxed), space.rows_pages.load(Relaxed));
        let rows = if known > 0 && known_pages > 0 {
            (u128::from(known - 1) * u128::from(pages) / u128::from(known_pages)) as u64
        } else {
            self.sample_rows(pages)?
        };
        Ok(Estimate { pages, rows, ended })
    }

    fn sample_rows(&self, pages: u32) -> Result<u64> {
        let mut counted = 0;
        let mut rows = 0;
        for block in [0, pages / 3, pages / 2] {
            if block >= pages || (block == 0 && counted > 0) {
                continue;
            }
            let pinned = self.pin(block)?;
            let guard = pinned.read();
            let page = guard.page();
            counted += 1;
            rows += (1..=page::line_count(page)).filter(|&n| visible::is_root(page, n)).count();
        }
        Ok((rows as u64 * u64::from(pages)).checked_div(counted).unwrap_or(0))
    }
}

/// Whether a page that is visited looks worth pruning.
fn wants_pruning(page: &storage::Page) -> bool {
    page::flags(page) & page::PRUNABLE != 0 && page::room(page) < SHORT_OF_SPACE
}

/// Whether the version half-way to [`LONG_CHAIN`] is dead: then pruning shortens the chain by a
/// good part, and its cost is spread over as many updates.
fn chain_is_mostly_dead(
    page: &storage::Page,
    root: u16,
    visibility: &mut VisibilityHorizon<'_>,
) -> bool {
    let Some((_, mut offset, _)) = page::first_of_chain(page, root) else { return false };
    for _ in 0..LONG_CHAIN / 2 {
        if page::mask(page, offset) & NEXT_IN_CHAIN == 0 {
            return false;
        }
        match page::line(page, page::next_line(page, offset)) {
            Line::Normal(at, _) => offset = at,
            _ => return false,
        }
    }
    page::mask(page, offset) & LOCK_ONLY == 0 && visibility.is_garbage(page, offset)
}

/// A version's copy.
fn copy_version(page: &storage::Page, tid: TupleId) -> Option<HeapTuple> {
    let Line::Normal(offset, len) = page::line(page, tid.offset) else { return None };
    let head = page::header(page, offset);
    if head.mask & STUB != 0 {
        return None;
    }
    Some(HeapTuple {
        tid,
        root: TupleId { block: tid.block, offset: page::root_of(page, tid.offset) },
        data: page::row(page, offset, len).to_vec(),
        system: SystemColumns {
            xmin: head.xmin,
            xmax: head.xmax,
            cmin: head.cmin,
            cmax: head.cmax,
        },
    })
}
