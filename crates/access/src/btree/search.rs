//! The way from the root down to a leaf, and point look-ups.
//!
//! A look-up writes to no inner page's frame: it reads the page where it lies, without pin and
//! latch, and does it again when the page changed or left meanwhile. Only when that fails some times
//! running, or the page isn't in memory, or the clock has found it unused, it is pinned. The leaf is
//! pinned, and read without a latch in the same way. `btree_descent = latched` pins and latches all.

use std::sync::atomic::Ordering::{Acquire, Release};

use base::settings::{live_enum, setting};
use base::{PageId, Result, TupleId, err};
use storage::{PageView, Pinned, WriteGuard};
use txn::Transaction;

use super::BTree;
use super::node::{self, Bytes, InnerStep, LOWEST, Node, Probe};

/// Tries to read a page without a latch before taking the shared one.
const OPTIMISTIC_TRIES: usize = 4;
/// Row ids that a look-up takes from a leaf at a time.
const BATCH: usize = 16;
/// More levels than any tree can have.
pub(super) const MAX_LEVELS: usize = 16;

/// The page visited at each level on the way down, by level; 0: none.
pub(super) type Path = [u32; MAX_LEVELS];

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
    /// splits overtake. The probe then has that page's bounds.
    fn find(&self, probe: &mut Probe<'_>, level: u16, path: &mut Path) -> Result<Pinned> {
        let (mut block, mut at) = self.root()?;
        if at < level {
            (block, at) = self.read_root()?;
        }
        let mut unseen = 0;
        loop {
            path[usize::from(at) % MAX_LEVELS] = block;
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

    /// Latches a page exclusively and moves right to the one where (key, tid) belongs.
    pub(super) fn latch_for(&self, pinned: Pinned, key: &[u8], tid: &[u8]) -> Result<WriteGuard> {
        let mut guard = pinned.write();
        let probe = Probe::new(key, tid);
        loop {
            let node = Node(guard.page());
            if !node.is_node() {
                return Err(self.corrupted(guard.id().block));
            }
            if !node.is_beyond(&probe) {
                return Ok(guard);
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
        let mut probe = Probe::new(key, &LOWEST);
        let mut pinned = self.find(&mut probe, 0, &mut [0; MAX_LEVELS])?;
        let mut from;
        loop {
            tx.reads_page(self.rel, pinned.id().block);
            let found = self.peek(&pinned, |page| read_equal(Node(page), &probe))?;
            for row in &found.rows[..found.count] {
                if !f(*row) {
                    return Ok(());
                }
            }
            match found.next {
                Next::End => return Ok(()),
                Next::Right(right) => {
                    pinned = self.pin(right)?;
                    probe = probe.within(None);
                }
                Next::More => {
                    let last = found.rows[found.count - 1];
                    from = TupleId { offset: last.offset + 1, ..last }.to_bytes();
                    probe = Probe::new(key, &from);
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
