//! Taking entries out in bulk, and leaves that became empty out of the tree, for new use.
//!
//! 1. A walk over the file takes entries out, and notes empty leaves and who is whose parent.
//! 2. *Unlinking*: the parent loses its cell for the leaf; a parent whose only child goes is unlinked with it, a root
//!    without children becomes a leaf. The page is of level [`page::DELETED`] then and keeps its right link, for searches that
//!    come to it.
//! 3. *Freeing*: the page becomes one of zeros, and is taken for the next split.
//!
//! Why nobody misses anything:
//!
//! * A search that has an unlinked page's number finds no cell there, and the pages that took cells of it before.
//! * Freed pages are counted, in memory before and in the meta page together with the pages. A search that finds the count
//!   changed once it has latched a page begins anew ([`GistIndex::freed`]): what it found before it may find again,
//!   which searches allow for. A right link leads to a page that was freed only if the link is older, and whoever follows it
//!   began before the split that made it.
//! * On a standby the count is that of the meta page: replay latches all pages of a record before it changes the first.
//! * A crash leaves a page in the tree, unlinked or free; the first walk after a start finds what is not in it.
//! * Predicate locks need not move: an insert that would have come to the page makes a key grow in a page which the search
//!   has read, or comes to a page that it has read.
//! * Pages are unlinked and freed by vacuum, of which a table has one at a time, as the tree's only writer.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;

use base::{Fork, PageId, Result, TupleId};

use super::page::{self, Head, Node, Target};
use super::{Emptied, GistIndex, ROOT};

/// Pages freed at a time: searches begin anew each time.
const FREED_AT_ONCE: usize = 128;

/// A page as a walk found it.
struct Visited {
    /// Entries that went.
    gone: u64,
    /// The page that took cells of it since the walk began.
    right: u32,
}

impl GistIndex {
    /// How often pages were freed. On a standby that is in the meta page, which replay changes together with the pages.
    pub(super) fn freed(&self) -> Result<u64> {
        if self.storage.follows() {
            let meta = self.pin(0)?;
            let freed = page::freed(meta.read().page());
            return freed.ok_or_else(|| self.corrupted(0));
        }
        // Beyond all numbers of meta pages: a search may go on while the server is promoted.
        Ok(1 << 63 | self.shared().freed.load(Ordering::Acquire))
    }

    /// Takes entries out page by page. One that moves to a page that was passed already is met there, since
    /// pages that were split since the beginning say where to.
    pub(super) fn delete_dead(&self, dead: &dyn Fn(TupleId) -> bool) -> Result<u64> {
        let begin = self.last_split()?;
        let unknown_below = self.begin_walk()?;
        let mut removed = 0;
        let mut block = ROOT;
        while block < self.storage.block_count(self.rel, Fork::Main)? {
            let mut at = block;
            loop {
                sched::check_interrupts()?;
                let visited = self.clean_page(at, begin, unknown_below, dead)?;
                removed += visited.gone;
                if visited.right == 0 || visited.right > block {
                    break;
                }
                at = visited.right;
            }
            block += 1;
        }
        Ok(removed)
    }

    /// Forgets the findings of the last walk. Returns the end of the pages that have not been looked at since the start:
    /// unused ones among them are not in the reserve.
    fn begin_walk(&self) -> Result<u32> {
        let mut searched = self.shared().writing.lock();
        let deleted = std::mem::take(&mut self.shared().emptied.lock().deleted);
        *self.shared().emptied.lock() = Emptied { deleted, ..Emptied::default() };
        if std::mem::replace(&mut searched.everywhere, true) {
            return Ok(0);
        }
        if searched.from == 0 {
            searched.from = self.storage.block_count(self.rel, Fork::Main)?;
        }
        Ok(searched.from)
    }

    /// Cleans one page.
    fn clean_page(
        &self,
        block: u32,
        begin: u64,
        unknown_below: u32,
        dead: &dyn Fn(TupleId) -> bool,
    ) -> Result<Visited> {
        let state = self.shared();
        let _turn = state.writing.lock();
        let guard = self.storage.pool.pin_scan(PageId::main(self.rel, block))?.write();
        let node = Node(guard.page());
        if page::kind(guard.page()) == 0 {
            if block < unknown_below {
                state.emptied.lock().unknown.push(block);
            }
            return Ok(Visited { gone: 0, right: 0 });
        }
        if !node.is_node() {
            return Err(self.corrupted(block));
        }
        let right = if node.split() > begin { node.right() } else { 0 };
        if node.is_deleted() {
            if block < unknown_below {
                state.emptied.lock().deleted.push(block);
            }
            return Ok(Visited { gone: 0, right });
        }
        let mut cells = node.owned().ok_or_else(|| self.corrupted(block))?;
        if !node.is_leaf() {
            let parents = &mut state.emptied.lock().parents;
            for cell in cells {
                if let Target::Child(child) = cell.target {
                    parents.insert(child, block);
                }
            }
            return Ok(Visited { gone: 0, right });
        }
        let before = cells.len();
        cells.retain(|cell| !matches!(cell.target, Target::Row(row) if dead(row)));
        let gone = before - cells.len();
        if cells.is_empty() && block != ROOT {
            state.emptied.lock().leaves.push(block);
        }
        if gone > 0 {
            let head = Head::of(node);
            let mut mtr = self.storage.mtr();
            let target = mtr.add(guard);
            page::write(&mut mtr, target, head, &cells);
            mtr.commit();
        }
        Ok(Visited { gone: gone as u64, right })
    }

    /// Takes the pages that the walk found empty out of the tree, for new use.
    pub(super) fn reclaim(&self) -> Result<()> {
        let Emptied { leaves, parents, unknown, deleted } =
            std::mem::take(&mut *self.shared().emptied.lock());
        self.shared().emptied.lock().deleted = deleted;
        // A page of zeros that the tree leads to was damaged. It must not get a second place in the tree.
        if let Some(damaged) = unknown.iter().find(|block| parents.contains_key(block)) {
            self.shared().writing.lock().everywhere = false;
            return Err(self.corrupted(*damaged));
        }
        self.shared().spare.lock().extend(unknown);
        for leaf in leaves {
            sched::check_interrupts()?;
            self.unlink(leaf, &parents)?;
        }
        self.free()
    }

    /// Takes an empty leaf out of the tree, unless others use it again, or its parent is another one now.
    fn unlink(&self, leaf: u32, parents: &HashMap<u32, u32>) -> Result<()> {
        let _turn = self.shared().writing.lock();
        {
            let pinned = self.pin(leaf)?;
            let guard = pinned.read();
            let node = Node(guard.page());
            if !node.is_node() || !node.is_leaf() || node.count() > 0 {
                return Ok(());
            }
        }
        let mut gone = vec![leaf];
        let (parent, mut cells) = loop {
            let child = gone[gone.len() - 1];
            let Some(parent) = parents.get(&child).copied() else { return Ok(()) };
            let pinned = self.pin(parent)?;
            let guard = pinned.read();
            let node = Node(guard.page());
            if !node.is_node() || node.is_deleted() || node.is_leaf() {
                return Ok(());
            }
            let cells = node.owned().ok_or_else(|| self.corrupted(parent))?;
            if !cells.iter().any(|cell| cell.target == Target::Child(child)) {
                return Ok(());
            }
            if cells.len() > 1 || parent == ROOT {
                break (parent, cells);
            }
            gone.push(parent);
        };
        let child = Target::Child(gone[gone.len() - 1]);
        cells.retain(|cell| cell.target != child);
        let mut mtr = self.storage.mtr();
        let mut pages = Vec::with_capacity(gone.len());
        for block in &gone {
            pages.push(mtr.latch(PageId::main(self.rel, *block))?);
        }
        let parent = mtr.latch(PageId::main(self.rel, parent))?;
        for target in pages {
            let head = Head { level: page::DELETED, ..Head::of(Node(mtr.page(target))) };
            page::write(&mut mtr, target, head, &[]);
        }
        let mut head = Head::of(Node(mtr.page(parent)));
        if cells.is_empty() {
            head.level = 0;
        }
        page::write(&mut mtr, parent, head, &cells);
        mtr.commit();
        self.shared().emptied.lock().deleted.extend(gone);
        Ok(())
    }

    /// The pages that the tree consists of, by the pages above the leaves. The caller is the only writer.
    pub(super) fn pages_with_parents(&self) -> Result<HashSet<u32>> {
        let mut used = HashSet::from([0, ROOT]);
        let mut todo = vec![ROOT];
        while let Some(block) = todo.pop() {
            sched::check_interrupts()?;
            let pinned = self.pin(block)?;
            let guard = pinned.read();
            let node = Node(guard.page());
            if !node.is_node() {
                return Err(self.corrupted(block));
            }
            if node.is_leaf() {
                continue;
            }
            let level = node.level();
            for (target, _) in node.cells().ok_or_else(|| self.corrupted(block))? {
                let Target::Child(child) = target else { continue };
                if used.insert(child) && level > 1 {
                    todo.push(child);
                }
            }
        }
        Ok(used)
    }

    /// Gives the unlinked pages to the reserve.
    fn free(&self) -> Result<()> {
        let state = self.shared();
        loop {
            let some: Vec<u32> = {
                let deleted = &mut state.emptied.lock().deleted;
                let rest = deleted.len().saturating_sub(FREED_AT_ONCE);
                deleted.split_off(rest)
            };
            if some.is_empty() {
                break;
            }
            let freed = self.free_some(&some);
            if freed.is_err() {
                state.emptied.lock().deleted.extend(&some);
                return freed;
            }
            sched::check_interrupts()?;
        }
        // The first pages of the file are taken first.
        state.spare.lock().sort_unstable_by(|a, b| b.cmp(a));
        Ok(())
    }

    fn free_some(&self, blocks: &[u32]) -> Result<()> {
        let _turn = self.shared().writing.lock();
        let mut mtr = self.storage.mtr();
        let mut pages = Vec::with_capacity(blocks.len());
        for block in blocks {
            let target = mtr.latch(PageId::main(self.rel, *block))?;
            if !Node(mtr.page(target)).is_deleted() {
                return Err(self.corrupted(*block));
            }
            pages.push(target);
        }
        let meta = mtr.latch(PageId::main(self.rel, 0))?;
        let freed = page::freed(mtr.page(meta)).ok_or_else(|| self.corrupted(0))?;
        // Before anybody can see the pages.
        self.shared().freed.fetch_add(1, Ordering::AcqRel);
        page::put_freed(&mut mtr, meta, freed + 1);
        pages.into_iter().for_each(|target| mtr.init(target));
        mtr.commit();
        self.shared().spare.lock().extend(blocks);
        Ok(())
    }
}
