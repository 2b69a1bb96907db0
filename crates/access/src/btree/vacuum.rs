//! Taking entries out in bulk, and pages that became empty out of the tree, for new use.
//!
//! ```text
//!  parent:   … A │ L │ R …           … A │ R …
//!  level:    A ⇄ L ⇄ R        →      A ⇄ R        L (deleted) → R        →      L: free
//! ```
//!
//! 1. [`BTree::bulk_delete`] walks the leaves and notes those without entries.
//! 2. *Unlinking* (after Lehman and Yao, and Lanin and Shasha 1986, but in one step): the neighbours lead past the page,
//!    its entry in the parent goes, and the right neighbour takes over its range: keys only ever move to the right. The page
//!    keeps its right link, and its upper bound is below everything, so that whoever had its number goes on to the
//!    right. A parent whose only child goes is unlinked with it. All of it is one mini-transaction.
//! 3. *Freeing*: the page becomes one of zeros, and is taken for the next split.
//!
//! Why nobody misses anything:
//!
//! * Whoever has the number of an unlinked page finds there the way to the pages that have its range. No page of the tree
//!   leads to an unlinked one.
//! * Freed pages are counted ([`BTree::freed`]), in memory before and in the meta page together with the pages. A number
//!   of a page that was read before is of no use if the count has changed once the page has been read: then the
//!   reader begins anew, from the root, behind the entries that it has. If the count has not changed, the page was not freed
//!   since its number was read, however long ago that is. So pages are freed at once, whichever snapshots and cursors
//!   there are.
//! * On a standby the count is that of the meta page: replay latches all pages of a record before it changes the first.
//! * A crash leaves a page in the tree, unlinked or free; what is unlinked or free is found by the first vacuum after the start
//!   ([`BTree::find_unknown`]), and free pages at the file's end by the first split.
//! * The leftmost and the rightmost page of each level stay. So do therefore all pages that were the root, where descents
//!   may begin, and the page that ascending keys go to.
//! * Predicate locks on the page are copied to the right neighbour.
//! * Latches are taken from the leaves upwards and from left to right, as everywhere in the tree. Pages are unlinked and freed
//!   by vacuum only, of which a table has one at a time.

use std::collections::HashSet;
use std::sync::atomic::Ordering::AcqRel;

use base::{Fork, PageId, Result, TupleId};
use storage::{Pinned, WriteGuard};
use txn::TxnManager;

use super::BTree;
use super::node::{self, Body, LOWEST, Node};
use super::search::Path;

/// Pages freed at a time: readers look at the tree anew each time.
const FREED_AT_ONCE: usize = 128;

/// A page with its neighbours, latched.
struct Gap {
    left: WriteGuard,
    page: WriteGuard,
    right: WriteGuard,
}

impl BTree {
    /// Removes all entries whose row id `dead` accepts; returns how many. Emptied pages are noted for
    /// [`BTree::reclaim`].
    pub fn bulk_delete(&self, dead: &dyn Fn(TupleId) -> bool) -> Result<u64> {
        let mut removed = 0;
        let mut pinned = self.first_leaf()?;
        loop {
            sched::check_interrupts()?;
            let (any, is_empty, right) = {
                let guard = pinned.read();
                let node = Node(guard.page());
                if !node.is_node() {
                    return Err(self.corrupted(pinned.id().block));
                }
                (node.entries().any(|e| dead(e.row())), node.count() == 0, node.right())
            };
            let mut next = right;
            if is_empty {
                self.note_emptied(pinned.id().block);
            }
            if any {
                let mut mtr = self.storage.mtr();
                let page = mtr.add(pinned.write());
                let node = Node(mtr.page(page));
                next = node.right();
                let gone: Vec<bool> = node.entries().map(|e| dead(e.row())).collect();
                removed += node::retain(&mut mtr, page, |i| !gone[i]) as u64;
                if Node(mtr.page(page)).count() == 0 {
                    self.note_emptied(mtr.id(page).block);
                }
                mtr.commit();
            }
            if next == 0 {
                return Ok(removed);
            }
            pinned = self.storage.pool.pin_scan(PageId::main(self.rel, next))?;
        }
    }

    /// Where a walk over all leaves begins.
    pub(super) fn first_leaf(&self) -> Result<Pinned> {
        self.find_unknown()?;
        self.shared().emptied.lock().clear();
        self.descend(&[], &LOWEST, 0, &mut Path::default())
    }

    /// A leaf has no entries.
    pub(super) fn note_emptied(&self, block: u32) {
        self.shared().emptied.lock().push(block);
    }

    /// Takes the pages that a walk found empty out of the tree, for new use.
    ///
    /// # Errors
    /// I/O, interrupts.
    pub(crate) fn reclaim(&self, manager: &TxnManager) -> Result<()> {
        let emptied = std::mem::take(&mut *self.shared().emptied.lock());
        for leaf in emptied {
            sched::check_interrupts()?;
            self.unlink(manager, leaf)?;
        }
        self.free()
    }

    /// Takes an empty leaf out of the tree, if that is possible: others may use it again, and the last child of a parent that
    /// has others stays until they are gone.
    fn unlink(&self, manager: &TxnManager, leaf: u32) -> Result<()> {
        let Some(gap) = self.latch_gap(leaf, |node| node.level() == 0 && node.count() == 0)? else {
            return Ok(());
        };
        let mut gaps = vec![gap];
        let mut below = 0;
        let (parent, index) = loop {
            let gap = &gaps[below];
            let child = gap.page.id().block;
            // The page's range begins where that of its left neighbour ends.
            let low = Node(gap.left.page()).high();
            let low = low.ok_or_else(|| self.corrupted(gap.left.id().block))?;
            let (key, tid) = (low.key.to_vec(), low.tid.to_vec());
            let level = Node(gap.page.page()).level() + 1;
            let parent = self.latch_at(&key, &tid, level, &mut Path::default())?;
            let block = parent.id().block;
            let node = Node(parent.page());
            let index = node.index_of_child(child).ok_or_else(|| self.corrupted(block))?;
            if index + 1 < node.count() {
                let next = node.entry(index + 1).map(|entry| entry.child);
                if next != Some(gap.right.id().block) {
                    return Err(self.corrupted(block));
                }
                break (parent, index);
            }
            if index > 0 {
                return Ok(());
            }
            drop(parent);
            match self.latch_gap(block, |node| node.count() == 1)? {
                Some(gap) => gaps.push(gap),
                None => return Ok(()),
            }
            below += 1;
        };
        self.write_unlinked(manager, gaps, parent, index);
        Ok(())
    }

    /// Latches a page and its neighbours if it has two and is as `fits` says.
    fn latch_gap(
        &self,
        block: u32,
        fits: impl Fn(Node<&storage::Page>) -> bool,
    ) -> Result<Option<Gap>> {
        let left = {
            let pinned = self.pin(block)?;
            let guard = pinned.read();
            let node = Node(guard.page());
            if !node.is_node() {
                return Err(self.corrupted(block));
            }
            if node.is_deleted() || node.left() == 0 || node.right() == 0 || !fits(node) {
                return Ok(None);
            }
            node.left()
        };
        let left = self.pin(left)?.write();
        if Node(left.page()).right() != block {
            // It was split meanwhile. The next vacuum comes by again.
            return Ok(None);
        }
        let page = self.pin(block)?.write();
        let right = self.pin(Node(page.page()).right())?.write();
        Ok(fits(Node(page.page())).then_some(Gap { left, page, right }))
    }

    /// Writes everything in one mini-transaction; nothing in here can fail. `index`: of the parent's entry for the last page.
    fn write_unlinked(
        &self,
        manager: &TxnManager,
        gaps: Vec<Gap>,
        parent: WriteGuard,
        index: usize,
    ) {
        let mut mtr = self.storage.mtr();
        let mut deleted = Vec::with_capacity(gaps.len());
        let mut heir = 0;
        for Gap { left, page, right } in gaps {
            let [before, block, behind] = [&left, &page, &right].map(|guard| guard.id().block);
            if Node(page.page()).level() == 0 {
                manager.serial.page_split(self.rel, block, behind);
            }
            let (left, page, right) = (mtr.add(left), mtr.add(page), mtr.add(right));
            node::put_right(&mut mtr, left, behind);
            node::put_left(&mut mtr, right, before);
            Body::deleted(Node(mtr.page(page))).write(&mut mtr, page, true);
            deleted.push(block);
            heir = behind;
        }
        let parent = mtr.add(parent);
        node::put_child(&mut mtr, parent, index, heir);
        node::retain(&mut mtr, parent, |n| n != index + 1);
        mtr.commit();
        self.shared().deleted.lock().extend(deleted);
    }

    /// Gives the unlinked pages to the reserve.
    fn free(&self) -> Result<()> {
        loop {
            let some: Vec<u32> = {
                let mut deleted = self.shared().deleted.lock();
                let rest = deleted.len().saturating_sub(FREED_AT_ONCE);
                deleted.split_off(rest)
            };
            if some.is_empty() {
                break;
            }
            let freed = self.free_some(&some);
            if freed.is_err() {
                self.shared().deleted.lock().extend(&some);
                return freed;
            }
            self.shared().spare.lock().extend(&some);
            sched::check_interrupts()?;
        }
        // The first pages of the file are taken first.
        self.shared().spare.lock().sort_unstable_by(|a, b| b.cmp(a));
        Ok(())
    }

    fn free_some(&self, blocks: &[u32]) -> Result<()> {
        let mut mtr = self.storage.mtr();
        let mut pages = Vec::with_capacity(blocks.len());
        for block in blocks {
            let page = mtr.latch(PageId::main(self.rel, *block))?;
            if !Node(mtr.page(page)).is_deleted() {
                return Err(self.corrupted(*block));
            }
            pages.push(page);
        }
        let meta = mtr.latch(PageId::main(self.rel, 0))?;
        let freed = node::freed(mtr.page(meta)).ok_or_else(|| self.corrupted(0))?;
        // Before anybody can see the pages.
        self.shared().freed.fetch_add(1, AcqRel);
        node::put_freed(&mut mtr, meta, freed + 1);
        pages.into_iter().for_each(|page| mtr.init(page));
        mtr.commit();
        Ok(())
    }

    /// Once after a start: finds the pages of the file that are in no level. Whoever had them is gone.
    fn find_unknown(&self) -> Result<()> {
        let state = self.shared();
        let known_from = {
            let mut searched = state.extending.lock();
            if searched.everywhere {
                return Ok(());
            }
            searched.everywhere = true;
            if searched.from == 0 {
                searched.from = self.storage.block_count(self.rel, Fork::Main)?;
            }
            searched.from
        };
        // Pages from there on have been found or made since the start, and may be on their way into the tree.
        let found = self.find_unknown_below(known_from);
        if found.is_err() {
            state.extending.lock().everywhere = false;
        }
        found
    }

    fn find_unknown_below(&self, end: u32) -> Result<()> {
        let (mut spare, mut deleted) = (Vec::new(), Vec::new());
        let used = self.pages_with_parents()?;
        for block in 1..end {
            sched::check_interrupts()?;
            let pinned = self.storage.pool.pin_scan(PageId::main(self.rel, block))?;
            let guard = pinned.read();
            let node = Node(guard.page());
            if !node.is_new() && !node.is_deleted() {
                continue;
            }
            // A page of zeros that the tree leads to was damaged. It must not get a second place in the tree.
            if used.contains(&block) {
                return Err(self.corrupted(block));
            }
            if node.is_new() { spare.push(block) } else { deleted.push(block) }
        }
        let state = self.shared();
        spare.reverse();
        state.deleted.lock().extend(deleted);
        state.spare.lock().extend(spare);
        Ok(())
    }

    /// The pages that the tree consists of, by the pages above the leaves. What splits add meanwhile may be missing.
    pub(super) fn pages_with_parents(&self) -> Result<HashSet<u32>> {
        let (root, height) = self.root()?;
        let mut used = HashSet::from([0, root]);
        let mut leftmost = root;
        for level in (1..=height).rev() {
            let mut block = leftmost;
            let mut first_child = None;
            while block != 0 {
                sched::check_interrupts()?;
                let pinned = self.pin(block)?;
                let guard = pinned.read();
                let node = Node(guard.page());
                if !node.is_node() || node.level() != level {
                    return Err(self.corrupted(block));
                }
                used.extend(node.entries().map(|entry| entry.child));
                first_child = first_child.or(node.entry(0).map(|entry| entry.child));
                block = node.right();
            }
            leftmost = first_child.ok_or_else(|| self.corrupted(leftmost))?;
        }
        Ok(used)
    }
}
