//! The way from the root down to a leaf, and point look-ups.
//!
//! A look-up writes to no inner page's frame: it reads the page where it lies, without pin and
//! latch, and does it again when the page changed or left meanwhile. Only when that fails some times
//! running, or the page isn't in memory, or the clock has found it unused, it is pinned. The leaf is
//! pinned, and read without a latch in the same way. `btree_descent = latched` pins and latches all.
//!
//! A reader that follows block numbers notes how many pages had been freed ([`BTree::freed`]) and compares the count
//! after it has read a page. If the count has changed, the block may have been reused, and the reader descends from the
//! root again. `vacuum` says why that is enough.

use std::sync::atomic::Ordering::{Acquire, Release};

use base::settings::{live_enum, setting};
use base::{PageId, Result, TupleId, err};
use storage::{PageView, Pinned, WriteGuard};
use txn::Transaction;

use super::BTree;
use super::node::{self, Bytes, InnerStep, LOWEST, Node, Probe, Tid};

/// Tries to read a page without a latch before taking the shared one.
const OPTIMISTIC_TRIES: usize = 4;
/// Row ids that a look-up takes from a leaf at a time.
const BATCH: usize = 16;
/// More levels than any tree can have.
pub(super) const MAX_LEVELS: usize = 16;

/// The way down to a page.
#[derive(Default)]
pub(super) struct Path {
    /// The page visited at each level, by level; 0: none.
    pub blocks: [u32; MAX_LEVELS],
    /// How often pages had been freed when it was begun.
    pub freed: Freed,
}

/// A state of [`BTree::freed`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Freed(u64);

/// Set in the numbers of a server that changes the tree itself: those of a standby lie in the meta page.
const OWN: u64 = 1 << 63;

impl BTree {
    /// Reads a page, without latching it if possible. `f` answers None when what it sees makes no
    /// sense.
    #[inline]
    fn peek<R>(&self, pinned: &Pinned, f: impl Fn(PageView<'_>) -> Option<R>) -> Result<R> {
        if live_enum(setting::BTREE_DESCENT) == 0 {
            for _ in 0..OPTIMISTIC_TRIES {
                if let Some(Some(result)) = pinned.optimistic(&f) {
                    return Ok(result);
                }
            }
        }
        let guard = pinned.read();
        f(guard.view()).ok_or_else(|| self.corrupted(pinned.id().block))
    }

    /// Where to go from an inner page; and whether nobody could see that it was read.
    #[inline]
    fn step(&self, block: u32, probe: &Probe<'_>) -> Result<(InnerStep, bool)> {
        if live_enum(setting::BTREE_DESCENT) == 0 {
            let id = PageId::main(self.rel, block);
            for _ in 0..OPTIMISTIC_TRIES {
                let seen = self.storage.pool.read_optimistic(id, |p| step_from(Node(p), probe));
                if let Some(Some(step)) = seen {
                    return Ok((step, true));
                }
            }
        }
        let pinned = self.pin(block)?;
        let step = self.peek(&pinned, |page| step_from(Node(page), probe))?;
        Ok((step, false))
    }

    pub(super) fn corrupted(&self, block: u32) -> base::Error {
        err!(INDEX_CORRUPTED, "index {} has an invalid page at block {block}", self.rel.0)
            .hint("Please REINDEX it.")
    }

    /// Root and level from the cache or the meta page.
    pub(super) fn root(&self) -> Result<(u32, u16)> {
        match self.shared().root.load(Acquire) {
            0 => self.read_root(),
            packed => Ok(((packed >> 16) as u32, packed as u16)),
        }
    }

    fn read_root(&self) -> Result<(u32, u16)> {
        let meta = self.pin(0)?;
        let guard = meta.read();
        let root = node::read_meta(guard.page()).ok_or_else(|| self.corrupted(0))?;
        // Under the meta page's latch, so that an older root never overwrites a newer one.
        self.cache_root(root.0, root.1);
        Ok(root)
    }

    pub(super) fn cache_root(&self, block: u32, level: u16) {
        self.shared().root.store((u64::from(block) << 16) | u64::from(level), Release);
    }

    /// How often pages were freed. On a standby that is in the meta page, which replay changes together with the pages.
    #[inline]
    pub(super) fn freed(&self) -> Result<Freed> {
        if self.storage.follows() {
            return self.freed_by_primary();
        }
        Ok(Freed(OWN | self.shared().freed.load(Acquire)))
    }

    #[cold]
    fn freed_by_primary(&self) -> Result<Freed> {
        let id = PageId::main(self.rel, 0);
        let seen = self.storage.pool.read_optimistic(id, |page| node::freed(page));
        let number = match seen.flatten() {
            Some(number) => Some(number),
            None => node::freed(self.pin(0)?.read().page()),
        };
        number.map(Freed).ok_or_else(|| self.corrupted(0))
    }

    /// Whether no page was freed since: what was read by block numbers from before is what it was taken for.
    #[inline]
    pub(super) fn is_still(&self, freed: Freed) -> Result<bool> {
        Ok(self.freed()? == freed)
    }

    /// The result of reading a page by a block number; None: it, or the error, may be another page's.
    #[inline]
    pub(super) fn if_still<R>(&self, freed: Freed, read: Result<R>) -> Result<Option<R>> {
        if self.is_still(freed)? { read.map(Some) } else { Ok(None) }
    }

    /// As [`BTree::find`] for a key and a row id.
    pub(super) fn descend(
        &self,
        key: &[u8],
        tid: &[u8],
        level: u16,
        path: &mut Path,
    ) -> Result<Pinned> {
        self.find(&mut Probe::new(key, tid), level, path)
    }

    /// Goes down to `level`, to the page where the probe belongs, or one to the left of it if
    /// splits overtake. The probe then has that page's bounds. The page is the right one if it has been read before
    /// anything is freed ([`Path::freed`]).
    fn find(&self, probe: &mut Probe<'_>, level: u16, path: &mut Path) -> Result<Pinned> {
        loop {
            path.freed = self.freed()?;
            *probe = probe.within(None);
            match self.find_once(probe, level, path) {
                Err(_) if !self.is_still(path.freed)? => sched::check_interrupts()?,
                found => return found,
            }
        }
    }

    #[inline]
    fn find_once(&self, probe: &mut Probe<'_>, level: u16, path: &mut Path) -> Result<Pinned> {
        let (mut block, mut at) = self.root()?;
        if at < level {
            (block, at) = self.read_root()?;
        }
        let mut unseen = 0;
        loop {
            path.blocks[usize::from(at) % MAX_LEVELS] = block;
            if at <= level {
                self.storage.pool.count_optimistic(unseen);
                return self.pin(block);
            }
            let (way, without_trace) = self.step(block, probe)?;
            unseen += u64::from(without_trace);
            let bounds;
            (block, at, bounds) = match way {
                InnerStep::Right(right) => (right, at, None),
                InnerStep::Child(child, bounds) => (child, at - 1, bounds),
            };
            *probe = probe.within(bounds);
        }
    }

    /// The page of a level where (key, tid) belongs, latched exclusively.
    pub(super) fn latch_at(
        &self,
        key: &[u8],
        tid: &[u8],
        level: u16,
        path: &mut Path,
    ) -> Result<WriteGuard> {
        loop {
            let pinned = self.descend(key, tid, level, path)?;
            if let Some(guard) = self.latch_for(pinned, key, tid, path.freed)? {
                return Ok(guard);
            }
            sched::check_interrupts()?;
        }
    }

    /// The page of a level above a leaf where (key, tid) belongs, by the way to the leaf.
    pub(super) fn latch_above(
        &self,
        key: &[u8],
        tid: &[u8],
        level: u16,
        path: &Path,
    ) -> Result<WriteGuard> {
        if let Some(block) = path.blocks.get(usize::from(level)).filter(|block| **block != 0)
            && let Some(guard) = self.latch_for(self.pin(*block)?, key, tid, path.freed)?
        {
            return Ok(guard);
        }
        self.latch_at(key, tid, level, &mut Path::default())
    }

    /// Latches a page exclusively and moves right to the one where (key, tid) belongs. None: pages were freed, and these
    /// may be others.
    fn latch_for(
        &self,
        pinned: Pinned,
        key: &[u8],
        tid: &[u8],
        freed: Freed,
    ) -> Result<Option<WriteGuard>> {
        let mut guard = pinned.write();
        let probe = Probe::new(key, tid);
        loop {
            if !self.is_still(freed)? {
                return Ok(None);
            }
            let node = Node(guard.page());
            if !node.is_node() {
                return Err(self.corrupted(guard.id().block));
            }
            if !node.is_beyond(&probe) {
                return Ok(Some(guard));
            }
            let right = node.right();
            drop(guard);
            guard = self.pin(right)?.write();
        }
    }

    /// Point look-up: calls `f` with the row ids of all entries with exactly these key bytes, with
    /// nothing latched; stops when `f` returns false.
    pub fn lookup(
        &self,
        tx: &Transaction,
        key: &[u8],
        mut f: impl FnMut(TupleId) -> bool,
    ) -> Result<()> {
        let mut from = LOWEST;
        while !self.lookup_from(tx, key, &mut from, &mut f)? {
            sched::check_interrupts()?;
        }
        Ok(())
    }

    /// A look-up from a row id on. False: pages were freed meanwhile, and it is to go on from the new `from`.
    #[inline]
    fn lookup_from(
        &self,
        tx: &Transaction,
        key: &[u8],
        from: &mut Tid,
        f: &mut impl FnMut(TupleId) -> bool,
    ) -> Result<bool> {
        let (mut path, mut next) = (Path::default(), *from);
        let mut probe = Probe::new(key, &next);
        let mut pinned = self.find(&mut probe, 0, &mut path)?;
        loop {
            tx.reads_page(self.rel, pinned.id().block);
            let read = self.peek(&pinned, |page| read_equal(Node(page), &probe));
            let Some(found) = self.if_still(path.freed, read)? else { return Ok(false) };
            for row in &found.rows[..found.count] {
                if !f(*row) {
                    return Ok(true);
                }
            }
            if let Some(last) = found.rows[..found.count].last() {
                *from = TupleId { offset: last.offset + 1, ..*last }.to_bytes();
            }
            match found.next {
                Next::End => return Ok(true),
                Next::Right(right) => {
                    pinned = self.pin(right)?;
                    probe = probe.within(None);
                }
                Next::More => {
                    next = *from;
                    probe = Probe::new(key, &next);
                }
            }
        }
    }
}

/// Where the probe leads from an inner page.
#[inline]
fn step_from<P: Bytes>(node: Node<P>, probe: &Probe<'_>) -> Option<InnerStep> {
    if node.is_node() { node.way_to(probe) } else { None }
}

/// Row ids with one key, from one leaf.
struct Equal {
    rows: [TupleId; BATCH],
    count: usize,
    next: Next,
}

enum Next {
    End,
    /// The batch is full: this leaf may have more.
    More,
    Right(u32),
}

/// Copies the row ids at or above the probe's that have exactly its key.
fn read_equal<P: Bytes>(node: Node<P>, probe: &Probe<'_>) -> Option<Equal> {
    if !node.is_node() {
        return None;
    }
    let mut found = Equal { rows: [TupleId::INVALID; BATCH], count: 0, next: Next::End };
    let first = node.lower_bound(probe)?;
    // An entry at or above it would be within the page's upper bound, which need not be looked at then.
    if first == node.count() && node.is_beyond(probe) {
        found.next = Next::Right(node.right());
        return Some(found);
    }
    for index in first..node.count() {
        let Some(row) = node.row_with(index, probe.key)? else { return Some(found) };
        if found.count == BATCH {
            found.next = Next::More;
            return Some(found);
        }
        found.rows[found.count] = row;
        found.count += 1;
    }
    if node.ends_within(probe.key) {
        found.next = Next::Right(node.right());
    }
    Some(found)
}
