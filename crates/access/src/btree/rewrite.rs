//! Changing entries of a leaf in place, for trees whose entries stand for several rows (`gin`): their keys
//! are unique and hold what would otherwise be many entries.

use base::{PageId, Result};
use storage::{Pinned, WriteGuard};
use txn::TxnManager;

use super::insert::Attempt;
use super::node::{self, Body, CAPACITY, Entry, LOWEST, Node, Probe};
use super::search::{Freed, Path};
use super::{BTree, KeyRange};

/// The row id that all entries of such a tree have.
const NOBODY: node::Tid = [0, 0, 0, 0, 0, 1];

/// Replacement of an entry and its neighbours.
pub(crate) struct Rewritten {
    /// The entry before the place goes.
    pub before: bool,
    /// The entry behind it goes.
    pub behind: bool,
    /// Keys that come in their place, in order.
    pub keys: Vec<Vec<u8>>,
}

/// Neighbours of a place in a leaf.
pub(crate) struct Around<'p> {
    /// The last entry below it.
    pub before: Option<&'p [u8]>,
    /// The first that is not.
    pub behind: Option<&'p [u8]>,
    /// The leaf's upper bound; what comes into it lies below.
    pub high: Option<&'p [u8]>,
}

impl BTree {
    /// Changes the entries around the place of a key as `change` says; it is asked again when the leaf had to
    /// be split first. None: nothing is changed. Returns the leaf's block. `before_write` is called with
    /// the leaf's block before it is changed.
    pub(crate) fn rewrite(
        &self,
        manager: &TxnManager,
        key: &[u8],
        before_write: &dyn Fn(u32) -> Result<()>,
        change: &mut dyn FnMut(Around<'_>) -> Result<Option<Rewritten>>,
    ) -> Result<()> {
        loop {
            sched::check_interrupts()?;
            let mut path = Path::default();
            let leaf = self.latch_at(key, &LOWEST, 0, &mut path)?;
            before_write(leaf.id().block)?;
            let block = leaf.id().block;
            let node = Node(leaf.page());
            let at = node.lower_bound(&Probe::new(key, &LOWEST));
            let at = at.ok_or_else(|| self.corrupted(block))?;
            let around = Around {
                before: at.checked_sub(1).and_then(|n| node.entry(n)).map(|e| e.key),
                behind: if at < node.count() { node.entry(at).map(|e| e.key) } else { None },
                high: node.high().map(|high| high.key),
            };
            let Some(rewritten) = change(around)? else { return Ok(()) };
            match self.apply(manager, leaf, at, &rewritten, &path)? {
                Some(Attempt::NeedPages) => self.refill()?,
                Some(_) => {}
                None => return Ok(()),
            }
        }
    }

    /// Writes a change; or splits the leaf, if it lacks room, and says how that went.
    fn apply(
        &self,
        manager: &TxnManager,
        leaf: WriteGuard,
        at: usize,
        rewritten: &Rewritten,
        path: &Path,
    ) -> Result<Option<Attempt>> {
        let node = Node(leaf.page());
        let size = |key: &[u8]| node::entry_size(key.len(), false);
        let (first, end) = (at - usize::from(rewritten.before), at + usize::from(rewritten.behind));
        let freed: usize = (first..end).filter_map(|n| node.entry(n)).map(|e| size(e.key)).sum();
        let needed: usize = rewritten.keys.iter().map(|key| size(key)).sum();
        if node.room() + node.garbage() + freed < needed {
            return self.split(manager, leaf, at, None, path).map(Some);
        }
        if node.room() >= needed {
            let mut mtr = self.storage.mtr();
            let target = mtr.add(leaf);
            if first < end {
                node::retain(&mut mtr, target, |n| n < first || n >= end);
            }
            for (n, key) in rewritten.keys.iter().enumerate() {
                let cell = node::cell_bytes(key, &NOBODY, None);
                node::insert_cell(&mut mtr, target, first + n, &cell);
            }
            mtr.commit();
            return Ok(None);
        }
        let mut body = Body::like(node);
        (0..first).filter_map(|n| node.entry(n)).for_each(|e| body.push(e));
        let fresh = rewritten.keys.iter().map(|key| Entry { key, tid: &NOBODY, child: 0 });
        fresh.for_each(|e| body.push(e));
        (end..node.count()).filter_map(|n| node.entry(n)).for_each(|e| body.push(e));
        if let Some(high) = node.high() {
            body.set_high(high.key, high.tid);
        }
        debug_assert!(body.size() <= CAPACITY);
        let mut mtr = self.storage.mtr();
        let target = mtr.add(leaf);
        body.write(&mut mtr, target, false);
        mtr.commit();
        Ok(None)
    }

    /// Calls `each` with the keys within a range, in order, until it returns false.
    pub(crate) fn read_range(
        &self,
        range: &KeyRange,
        each: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<()> {
        // The last key that was given.
        let mut given: Option<Vec<u8>> = None;
        loop {
            sched::check_interrupts()?;
            let from = given.as_ref().unwrap_or(&range.from);
            let mut path = Path::default();
            let pinned = self.descend(from, &LOWEST, 0, &mut path)?;
            if self.read_from(pinned, path.freed, range, &mut given, each)? {
                return Ok(());
            }
        }
    }

    /// Reads on from a leaf; false: pages were freed meanwhile.
    fn read_from(
        &self,
        mut pinned: Pinned,
        freed: Freed,
        range: &KeyRange,
        given: &mut Option<Vec<u8>>,
        each: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<bool> {
        loop {
            sched::check_interrupts()?;
            let guard = pinned.read();
            if !self.is_still(freed)? {
                return Ok(false);
            }
            let node = Node(guard.page());
            if !node.is_node() {
                return Err(self.corrupted(pinned.id().block));
            }
            let mut last = None;
            let is_passed = |key: &[u8]| match &*given {
                Some(given) => key <= &given[..],
                None => key < &range.from[..],
            };
            for entry in node.entries().skip_while(|e| is_passed(e.key)) {
                let ends = range.to.as_ref().is_some_and(|to| entry.key >= &to[..]);
                if ends || !each(entry.key) {
                    return Ok(true);
                }
                last = Some(entry.key);
            }
            if let Some(last) = last {
                *given = Some(last.to_vec());
            }
            let next = node.right();
            if next == 0 {
                return Ok(true);
            }
            drop(guard);
            pinned = self.pin(next)?;
        }
    }

    /// Replaces leaf entries: `change` gives what an entry becomes, which lies between its neighbours as it
    /// does and is not longer; Some(None): it goes; None: it stays as it is.
    pub(crate) fn rewrite_all(
        &self,
        change: &mut dyn FnMut(&[u8]) -> Option<Option<Vec<u8>>>,
    ) -> Result<()> {
        let mut pinned = self.first_leaf()?;
        loop {
            sched::check_interrupts()?;
            let leaf = pinned.write();
            let node = Node(leaf.page());
            if !node.is_node() {
                return Err(self.corrupted(leaf.id().block));
            }
            let (block, next) = (leaf.id().block, node.right());
            let changes: Vec<_> = node.entries().map(|e| change(e.key)).collect();
            if changes.iter().any(Option::is_some) {
                let mut body = Body::like(node);
                for (entry, change) in node.entries().zip(&changes) {
                    match change {
                        None => body.push(entry),
                        Some(None) => {}
                        Some(Some(key)) => body.push(Entry { key, ..entry }),
                    }
                }
                if let Some(high) = node.high() {
                    body.set_high(high.key, high.tid);
                }
                let mut mtr = self.storage.mtr();
                let target = mtr.add(leaf);
                let is_empty = body.is_empty();
                body.write(&mut mtr, target, false);
                mtr.commit();
                if is_empty {
                    self.note_emptied(block);
                }
            } else if node.count() == 0 {
                self.note_emptied(block);
            }
            if next == 0 {
                return Ok(());
            }
            pinned = self.storage.pool.pin_scan(PageId::main(self.rel, next))?;
        }
    }
}

/// The row id of an entry that stands for several rows.
pub(crate) fn nobody() -> base::TupleId {
    base::TupleId::from_bytes(NOBODY)
}
