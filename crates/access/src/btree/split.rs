//! Splits: a page without room gives its upper part to a new right neighbour, whose lower bound
//! goes into the parent, which may have to split in turn; a root that splits gets a new root above.
//!
//! All of it is one mini-transaction. First every page that will change is latched, upwards and to
//! the right, and new pages are taken from the reserve; then everything is written. If the reserve
//! is short, nothing has happened yet: the latches go, the file is extended, the insert starts anew.

use base::{Fork, PageId, Result, WaitEvent};
use storage::{Page, WriteGuard};
use txn::{Transaction, TxnManager};

use super::insert::Attempt;
use super::node::{self, Body, CAPACITY, Entry, LOWEST, Node, Probe, Tid};
use super::search::{MAX_LEVELS, Path};
use super::{BTree, Inserted, Separator};
use crate::extension::{Extension, Searched, timed};

/// Pages at the file's end that are looked at for leftovers of a crash.
const SEARCH_PAGES: u32 = 64;
/// Part of a page that stays in the left half when the rightmost page of a level splits at its end.
const ASCENDING_FILL: usize = CAPACITY * 9 / 10;

/// An entry that has to go into a page.
pub(super) struct Pending {
    key: Vec<u8>,
    tid: Tid,
    child: u32,
}

/// One page's split, decided but not written.
struct Split {
    page: WriteGuard,
    new: WriteGuard,
    neighbour: Option<WriteGuard>,
    left: Body,
    right: Body,
}

/// Where the splits end.
enum Top {
    /// A page with room for the last bound.
    Fits(WriteGuard, usize),
    /// The root split: new root and meta page.
    Root(WriteGuard, WriteGuard),
}

/// Blocks taken from the reserve; unused ones go back.
struct Reserve<'a> {
    tree: &'a BTree,
    blocks: Vec<u32>,
    used: usize,
}

impl Reserve<'_> {
    fn next(&mut self) -> Result<WriteGuard> {
        let block = *self
            .blocks
            .get(self.used)
            .ok_or_else(|| base::Error::internal("a split needs more pages than levels"))?;
        let id = PageId::main(self.tree.rel, block);
        let guard = self.tree.storage.pool.pin_new(id)?.write();
        self.used += 1;
        Ok(guard)
    }
}

impl Drop for Reserve<'_> {
    fn drop(&mut self) {
        self.tree.shared().spare.lock().extend(self.blocks.drain(self.used..));
    }
}

impl BTree {
    /// Takes enough new pages for a split that goes through to a new root.
    fn reserve(&self, height: u16) -> Option<Reserve<'_>> {
        let wanted = usize::from(height) + 3;
        let mut spare = self.shared().spare.lock();
        let rest = spare.len().checked_sub(wanted)?;
        let blocks = spare.split_off(rest);
        Some(Reserve { tree: self, blocks, used: 0 })
    }

    /// Fills the reserve: with pages that a crash left unused at the file's end, else by extending. Pages that vacuum freed
    /// are in it already.
    pub(super) fn refill(&self) -> Result<()> {
        let mut extension = Extension::default();
        let mut searched = match self.shared().extending.try_lock() {
            Some(guard) => guard,
            None => {
                extension.waited = true;
                timed(&mut extension.lock, || Ok(self.shared().extending.lock()))?
            }
        };
        let refilled = self.refill_locked(&mut searched, &mut extension);
        self.state.extension.add(&extension);
        refilled
    }

    fn refill_locked(&self, searched: &mut Searched, extension: &mut Extension) -> Result<()> {
        if self.shared().spare.lock().len() >= MAX_LEVELS {
            return Ok(());
        }
        let blocks = self.storage.block_count(self.rel, Fork::Main)?;
        if searched.from == 0 {
            let search = || self.search_end(blocks);
            searched.from = sched::at_work(WaitEvent::IORelationExtendSearch, search)?;
        }
        let count = (blocks / 8).clamp(MAX_LEVELS as u32, 128);
        let extend = || self.storage.extend(self.rel, Fork::Main, count);
        let first = timed(&mut extension.io, extend)?;
        extension.pages = count;
        self.shared().spare.lock().extend((first..first + count).rev());
        Ok(())
    }

    /// Takes zero pages at the end of a file of so many into the reserve, unless the tree leads to one, which was damaged.
    /// Nobody has had a page from there yet, so they are nobody's. Returns the first of them.
    fn search_end(&self, blocks: u32) -> Result<u32> {
        let mut from = blocks;
        while from > blocks.saturating_sub(SEARCH_PAGES).max(1) {
            let pinned = self.pin(from - 1)?;
            if !Node(pinned.read().page()).is_new() {
                break;
            }
            from -= 1;
        }
        if from < blocks {
            let used = self.pages_with_parents()?;
            if let Some(damaged) = (from..blocks).find(|block| used.contains(block)) {
                return Err(self.corrupted(damaged));
            }
            self.shared().spare.lock().extend((from..blocks).rev());
        }
        Ok(from)
    }

    /// Inserts an entry at `index` of a leaf that lacks room.
    pub(super) fn insert_with_split(
        &self,
        tx: &Transaction,
        leaf: WriteGuard,
        index: usize,
        (key, tid): (&[u8], &Tid),
        path: &Path,
    ) -> Result<Attempt> {
        let pending = Pending { key: key.to_vec(), tid: *tid, child: 0 };
        if fits(Node(leaf.page()), &pending) {
            self.write_splits(Vec::new(), Top::Fits(leaf, index), &pending);
            return Ok(Attempt::Done(Inserted::Done));
        }
        self.split(tx.manager(), leaf, index, Some(pending), path)
    }

    /// Splits a leaf, and puts an entry into it at `index` if there is one.
    pub(super) fn split(
        &self,
        manager: &TxnManager,
        leaf: WriteGuard,
        index: usize,
        added: Option<Pending>,
        path: &Path,
    ) -> Result<Attempt> {
        let (_, height) = self.root()?;
        let Some(mut reserve) = self.reserve(height + 1) else { return Ok(Attempt::NeedPages) };
        let ascending = Node(leaf.page()).right() == 0 && index == Node(leaf.page()).count();
        let (mut page, mut index) = (leaf, index);
        let (mut splits, mut pending) = (Vec::new(), added);
        let top = loop {
            let node = Node(page.page());
            if !splits.is_empty() && pending.as_ref().is_some_and(|p| fits(node, p)) {
                break Top::Fits(page, index);
            }
            let (level, is_root, right) = (node.level(), node.is_root(), node.right());
            let (mut left_body, mut right_body, key, tid) =
                divide(node, index, pending.as_ref(), self.separator)
                    .ok_or_else(|| self.corrupted(page.id().block))?;
            let neighbour = if right == 0 { None } else { Some(self.pin(right)?.write()) };
            let new = reserve.next()?;
            let new_block = new.id().block;
            if level == 0 {
                manager.serial.page_split(self.rel, page.id().block, new_block);
            }
            left_body.right = new_block;
            (left_body.root, right_body.root) = (false, false);
            right_body.left = page.id().block;
            let bound = Pending { key, tid, child: new_block };
            splits.push(Split { page, new, neighbour, left: left_body, right: right_body });
            if is_root {
                pending = Some(bound);
                break Top::Root(reserve.next()?, self.pin(0)?.write());
            }
            page = self.latch_above(&bound.key, &bound.tid, level + 1, path)?;
            index = Node(page.page())
                .lower_bound(&Probe::new(&bound.key, &bound.tid))
                .ok_or_else(|| self.corrupted(page.id().block))?;
            pending = Some(bound);
        };
        let new_leaf = splits[0].new.id().block;
        let Some(pending) = pending else {
            return Err(base::Error::internal("a split without a bound"));
        };
        self.write_splits(splits, top, &pending);
        self.note_rightmost(ascending, new_leaf);
        Ok(Attempt::Done(Inserted::Done))
    }

    /// Writes everything in one mini-transaction; nothing in here can fail.
    fn write_splits(&self, splits: Vec<Split>, top: Top, pending: &Pending) {
        let mut mtr = self.storage.mtr();
        let mut left_block = 0;
        let mut level = 0;
        for split in splits {
            left_block = split.page.id().block;
            level = Node(split.page.page()).level();
            let new_block = split.new.id().block;
            let (page, new) = (mtr.add(split.page), mtr.add(split.new));
            split.left.write(&mut mtr, page, false);
            split.right.write(&mut mtr, new, true);
            if let Some(neighbour) = split.neighbour {
                let neighbour = mtr.add(neighbour);
                node::put_left(&mut mtr, neighbour, new_block);
            }
        }
        match top {
            Top::Fits(guard, index) => {
                let page = mtr.add(guard);
                let inner = Node(mtr.page(page)).level() > 0;
                if Node(mtr.page(page)).room() < node::entry_size(pending.key.len(), inner) {
                    compact(Node(mtr.page(page))).write(&mut mtr, page, false);
                }
                let child = inner.then_some(pending.child);
                let cell = node::cell_bytes(&pending.key, &pending.tid, child);
                node::insert_cell(&mut mtr, page, index, &cell);
                mtr.commit();
            }
            Top::Root(root, meta) => {
                let block = root.id().block;
                let (root, meta) = (mtr.add(root), mtr.add(meta));
                let mut body = Body::new(level + 1);
                body.root = true;
                body.push(Entry { key: &[], tid: &LOWEST, child: left_block });
                body.push(Entry { key: &pending.key, tid: &pending.tid, child: pending.child });
                body.write(&mut mtr, root, true);
                node::put_meta(&mut mtr, meta, block, level + 1);
                self.cache_root(block, level + 1);
                mtr.commit();
            }
        }
    }
}

fn fits(node: Node<&Page>, pending: &Pending) -> bool {
    let size = node::entry_size(pending.key.len(), node.level() > 0);
    node.room() + node.garbage() >= size
}

/// The page without its garbage.
pub(super) fn compact(node: Node<&Page>) -> Body {
    let mut body = Body::like(node);
    node.entries().for_each(|e| body.push(e));
    if let Some(high) = node.high() {
        body.set_high(high.key, high.tid);
    }
    body
}

/// Both halves of a page with the pending entry at `index`, and the bound between them.
fn divide(
    node: Node<&Page>,
    index: usize,
    pending: Option<&Pending>,
    separator: Separator,
) -> Option<(Body, Body, Vec<u8>, Tid)> {
    let inner = node.level() > 0;
    let mut entries: Vec<Entry<'_>> = node.entries().collect();
    let at_end = node.right() == 0 && index == entries.len();
    if let Some(pending) = pending {
        let added = Entry { key: &pending.key, tid: &pending.tid, child: pending.child };
        entries.insert(index, added);
    }
    let sizes: Vec<usize> = entries.iter().map(|e| node::entry_size(e.key.len(), inner)).collect();
    let high = node.high().map_or(0, |h| node::entry_size(h.key.len(), false));
    let cut = choose_cut(&sizes, high, at_end)?;
    let (bound, tid) = if inner {
        let mut tid = LOWEST;
        tid.copy_from_slice(entries[cut].tid);
        (entries[cut].key, tid)
    } else {
        separator(entries[cut - 1], entries[cut])
    };
    let (mut left, mut right) = (Body::like(node), Body::like(node));
    entries[..cut].iter().for_each(|e| left.push(*e));
    left.set_high(bound, &tid);
    for (i, entry) in entries[cut..].iter().enumerate() {
        if inner && i == 0 {
            right.push(Entry { key: &[], tid: &LOWEST, child: entry.child });
        } else {
            right.push(*entry);
        }
    }
    if let Some(high) = node.high() {
        right.set_high(high.key, high.tid);
    }
    Some((left, right, bound.to_vec(), tid))
}

/// How many entries stay in the left page: about half of the bytes, or nine tenths of the page when
/// it grows at the end; always such that both pages hold theirs with their upper bounds.
fn choose_cut(sizes: &[usize], high: usize, at_end: bool) -> Option<usize> {
    let total: usize = sizes.iter().sum();
    let goal = if at_end { ASCENDING_FILL } else { total / 2 };
    let mut best = None;
    let mut left = 0;
    for cut in 1..sizes.len() {
        left += sizes[cut - 1];
        let fits = left + sizes[cut] <= CAPACITY && total - left + high <= CAPACITY;
        let distance = left.abs_diff(goal);
        if fits && best.is_none_or(|(_, d)| distance < d) {
            best = Some((cut, distance));
        }
    }
    best.map(|(cut, _)| cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_cut_in_the_middle_or_near_its_end() {
        assert_eq!(choose_cut(&[20; 408], 20, false), Some(204));
        let cut = choose_cut(&[20; 408], 0, true).unwrap();
        assert!((cut * 20).abs_diff(ASCENDING_FILL) <= 10);
    }

    #[test]
    fn the_largest_entries_can_be_cut_anywhere() {
        let big = node::entry_size(node::MAX_KEY, false);
        for sizes in [vec![big, big, big], vec![18, big, big, big], vec![big, 18, big, 18, big]] {
            assert!(choose_cut(&sizes, big, false).is_some(), "{sizes:?}");
            assert!(choose_cut(&sizes, big, true).is_some(), "{sizes:?}");
        }
    }
}
