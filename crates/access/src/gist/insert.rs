//! Adding an entry: down to the leaf whose key must grow least, and up again with keys that grow and pages
//! that are split, in one mini-transaction.

use std::sync::atomic::Ordering;

use base::faults::{self, Fault};
use base::{Fork, PageId, Result, TupleId};
use storage::{Mtr, PageRef};
use txn::Transaction;

use super::page::{self, Cell, Head, Node, Target};
use super::{CHUNK, GistIndex, LEAST, LEVELS_MAX, ROOT, SEARCH_PAGES};
use crate::extension::Searched;

/// An inner page on the way down.
struct Step {
    block: u32,
    /// The cell that was chosen.
    slot: usize,
    child: u32,
    /// Its key with the new entry, if it must grow.
    grown: Option<Vec<u8>>,
}

/// The request of a level to the one above it.
#[derive(Default)]
struct Upward {
    /// The key of the page, if it changes.
    key: Option<Vec<u8>>,
    /// Pages that were split off it.
    new: Vec<Cell>,
}

impl GistIndex {
    /// Adds an entry. None: nobody else knows of the index yet.
    pub(super) fn add(&self, tx: Option<&Transaction>, key: &[u8], root: TupleId) -> Result<()> {
        self.check_key(key)?;
        let mut searched = self.shared().writing.lock();
        let (path, leaf) = self.descend(key)?;
        faults::reach(Fault::IndexInsert)?;
        let cell = Cell { target: Target::Row(root), key: key.to_vec() };
        while !self.apply(tx, &path, leaf, &cell)? {
            self.refill(&mut searched)?;
        }
        Ok(())
    }

    /// The way to the leaf that is to take a key.
    fn descend(&self, key: &[u8]) -> Result<(Vec<Step>, u32)> {
        let ops = self.ops()?;
        let mut path = Vec::new();
        let mut block = ROOT;
        loop {
            sched::check_interrupts()?;
            let pinned = self.pin(block)?;
            let guard = pinned.read();
            let node = Node(guard.page());
            if !node.is_node() || path.len() > LEVELS_MAX {
                return Err(self.corrupted(block));
            }
            if node.is_leaf() {
                return Ok((path, block));
            }
            let cells = node.cells().ok_or_else(|| self.corrupted(block))?;
            let covers: Vec<&[u8]> = cells.iter().map(|(_, key)| *key).collect();
            let slot = ops.choose(&covers, key)?.min(cells.len().saturating_sub(1));
            let Some((Target::Child(child), held)) = cells.get(slot).copied() else {
                return Err(self.corrupted(block));
            };
            let grown = ops.union(&[held, key])?;
            let grown = (grown != held).then_some(grown);
            path.push(Step { block, slot, child, grown });
            block = child;
        }
    }

    /// Writes all changes; false, and nothing is done, when the reserve must be filled first.
    fn apply(
        &self,
        tx: Option<&Transaction>,
        path: &[Step],
        leaf: u32,
        cell: &Cell,
    ) -> Result<bool> {
        // Everything that can fail comes before the first page is changed.
        let mut changes: Vec<(u32, Change)> = Vec::new();
        let Some((first, mut upward)) = self.plan(leaf, None, vec![cell.clone()])? else {
            return Ok(false);
        };
        changes.push((leaf, first));
        for step in path.iter().rev() {
            let key = upward.key.take().or_else(|| step.grown.clone());
            if key.is_none() && upward.new.is_empty() {
                continue;
            }
            let own = key.map(|key| (step.slot, Cell { target: Target::Child(step.child), key }));
            match self.plan(step.block, own, std::mem::take(&mut upward.new))? {
                Some((one, up)) => {
                    changes.push((step.block, one));
                    upward = up;
                }
                None => {
                    let taken = changes.iter().flat_map(|(_, one)| one.fresh());
                    self.shared().spare.lock().extend(taken.map(|(block, ..)| *block));
                    return Ok(false);
                }
            }
        }
        // Those who would have found the entry have read one of these: the leaf, or a page whose keys led past it.
        let grown = path.iter().filter(|step| step.grown.is_some()).map(|step| step.block);
        let read: Vec<u32> = grown.chain([leaf]).collect();
        let fresh: Vec<u32> =
            changes.iter().flat_map(|(_, one)| one.fresh()).map(|(block, ..)| *block).collect();
        let written = self.write(tx, changes, &read);
        if written.is_err() {
            self.shared().spare.lock().extend(fresh.into_iter().rev());
        }
        written.map(|()| true)
    }

    /// The fate of a page that is to have a cell in the place of another, and further ones. None: the
    /// reserve is too small.
    fn plan(
        &self,
        block: u32,
        own: Option<(usize, Cell)>,
        more: Vec<Cell>,
    ) -> Result<Option<(Change, Upward)>> {
        let pinned = self.pin(block)?;
        let guard = pinned.read();
        let node = Node(guard.page());
        if node.takes(own.as_ref(), &more) {
            let change = Change::Put { own, more, whole: None };
            return Ok(Some((change, Upward::default())));
        }
        let mut cells = node.owned().ok_or_else(|| self.corrupted(block))?;
        if let Some((slot, cell)) = &own {
            cells[*slot] = cell.clone();
        }
        cells.extend(more.iter().cloned());
        if page::fit(&cells) {
            return Ok(Some((Change::Put { own, more, whole: Some(cells) }, Upward::default())));
        }
        let mut groups = Vec::new();
        self.divide(cells, &mut groups)?;
        let ops = self.ops()?;
        let mut covered = Vec::with_capacity(groups.len());
        for group in groups {
            let keys: Vec<&[u8]> = group.iter().map(|cell| &cell.key[..]).collect();
            let key = ops.union(&keys)?;
            self.check_key(&key)?;
            covered.push((key, group));
        }
        if block == ROOT {
            let covered = self.with_blocks(covered);
            return Ok(covered.map(|covered| (Change::Root { covered }, Upward::default())));
        }
        let rest = covered.split_off(1);
        let Some(rest) = self.with_blocks(rest) else { return Ok(None) };
        let (key, stays) = covered.pop().unwrap_or_default();
        let new = rest
            .iter()
            .map(|(block, key, _)| Cell { target: Target::Child(*block), key: key.clone() });
        let upward = Upward { key: Some(key), new: new.collect() };
        Ok(Some((Change::Split { stays, rest }, upward)))
    }

    /// Gives groups pages from the reserve, if it has as many.
    fn with_blocks(&self, covered: Vec<(Vec<u8>, Vec<Cell>)>) -> Option<Vec<Fresh>> {
        let mut spare = self.shared().spare.lock();
        let left = spare.len().checked_sub(covered.len())?;
        let blocks = spare.split_off(left).into_iter().rev();
        let groups = covered.into_iter().zip(blocks);
        Some(groups.map(|((key, cells), block)| (block, key, cells)).collect())
    }

    /// Divides cells into groups that fit a page each.
    fn divide(&self, cells: Vec<Cell>, groups: &mut Vec<Vec<Cell>>) -> Result<()> {
        if page::fit(&cells) {
            groups.push(cells);
            return Ok(());
        }
        sched::check_interrupts()?;
        let keys: Vec<&[u8]> = cells.iter().map(|cell| &cell.key[..]).collect();
        let mut right = self.ops()?.split(&keys)?;
        let moved = right.iter().filter(|r| **r).count();
        if moved == 0 || moved == cells.len() || right.len() != cells.len() {
            right = (0..cells.len()).map(|n| n >= cells.len() / 2).collect();
        }
        let (mut stay, mut go) = (Vec::new(), Vec::new());
        for (cell, right) in cells.into_iter().zip(right) {
            if right { go.push(cell) } else { stay.push(cell) }
        }
        self.divide(stay, groups)?;
        self.divide(go, groups)
    }

    /// Writes the pages of a plan, unless a serializable transaction that has read one of `read` forbids it.
    fn write(
        &self,
        tx: Option<&Transaction>,
        plan: Vec<(u32, Change)>,
        read: &[u32],
    ) -> Result<()> {
        let splits = plan.iter().any(|(_, one)| !matches!(one, Change::Put { .. }));
        // Latches first, so that nothing fails once a page is changed.
        let mut mtr = self.storage.mtr();
        let mut pages = Vec::with_capacity(plan.len());
        let mut fresh = Vec::new();
        for (block, one) in &plan {
            pages.push(mtr.latch(PageId::main(self.rel, *block))?);
            if let (Some(tx), true) = (tx, read.contains(block)) {
                // Under the latch: who reads the page later finds the entry.
                tx.writes_page(self.rel, *block)?;
            }
            for (new, ..) in one.fresh() {
                let page = self.storage.pool.pin_new(PageId::main(self.rel, *new))?.write();
                fresh.push(mtr.add(page));
                if let Some(tx) = tx {
                    tx.manager().serial.page_split(self.rel, *block, *new);
                }
            }
        }
        let mut number = 0;
        let mut meta = None;
        if splits {
            number = self.last_split()? + 1;
            meta = Some(mtr.latch(PageId::main(self.rel, 0))?);
            // Before anybody can see the pages.
            self.shared().last_split.store(number as i64, Ordering::Release);
        }
        let mut fresh = fresh.into_iter();
        for ((_, one), page) in plan.into_iter().zip(pages) {
            one.write(&mut mtr, page, number, &mut fresh);
        }
        if let Some(meta) = meta {
            page::put_last_split(&mut mtr, meta, number);
        }
        mtr.commit();
        Ok(())
    }

    /// Fills the reserve: with pages that a crash left unused at the file's end, else by extending.
    pub(super) fn refill(&self, searched: &mut Searched) -> Result<()> {
        let state = self.shared();
        let had = state.spare.lock().len();
        let blocks = self.storage.block_count(self.rel, Fork::Main)?;
        if searched.from == 0 {
            searched.from = self.search_end(blocks)?;
            if state.spare.lock().len() > had {
                return Ok(());
            }
        }
        let count = (blocks / 8).clamp(LEAST, CHUNK);
        let first = self.storage.extend(self.rel, Fork::Main, count)?;
        let mut spare = state.spare.lock();
        let known = std::mem::take(&mut *spare);
        spare.extend((first..first + count).rev());
        spare.extend(known);
        Ok(())
    }
}

impl GistIndex {
    /// Takes zero pages at the end of a file of so many into the reserve, unless the tree leads to one, which was damaged.
    /// Returns the first of them.
    fn search_end(&self, blocks: u32) -> Result<u32> {
        let mut from = blocks;
        while from > blocks.saturating_sub(SEARCH_PAGES).max(2) {
            if page::kind(self.pin(from - 1)?.read().page()) != 0 {
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
}

/// A new page: its block, the key that covers its cells, the cells.
type Fresh = (u32, Vec<u8>, Vec<Cell>);

/// The fate of a page.
enum Change {
    /// A cell in the place of another, and further ones; `whole`: all of the page's cells, when it must
    /// be written anew for that.
    Put { own: Option<(usize, Cell)>, more: Vec<Cell>, whole: Option<Vec<Cell>> },
    /// Some cells stay, the others go to new pages.
    Split { stays: Vec<Cell>, rest: Vec<Fresh> },
    /// All cells go to new pages, and the root is one level higher.
    Root { covered: Vec<Fresh> },
}

impl Change {
    /// The new pages.
    fn fresh(&self) -> &[Fresh] {
        match self {
            Change::Put { .. } => &[],
            Change::Split { rest, .. } => rest,
            Change::Root { covered } => covered,
        }
    }

    fn write(
        self,
        mtr: &mut Mtr<'_>,
        page: PageRef,
        number: u64,
        fresh: &mut dyn Iterator<Item = PageRef>,
    ) {
        let head = Head::of(Node(mtr.page(page)));
        match self {
            Change::Put { whole: Some(whole), .. } => page::write(mtr, page, head, &whole),
            Change::Put { own, more, whole: None } => {
                let own = own.iter().all(|(n, cell)| page::put(mtr, page, Some(*n), cell));
                let more = more.iter().all(|cell| page::put(mtr, page, None, cell));
                assert!(own && more, "the page was asked whether it takes them");
            }
            Change::Split { stays, rest } => {
                // The chain of right links: this page, the new ones, what was at the right before.
                let mut chain = rest.iter().map(|(block, ..)| *block);
                let first = chain.next().unwrap_or(head.right);
                let mut links: Vec<(u32, u64)> = chain.map(|block| (block, number)).collect();
                links.push((head.right, head.split));
                page::write(mtr, page, Head { right: first, split: number, ..head }, &stays);
                for (((_, _, cells), (right, split)), page) in rest.iter().zip(links).zip(fresh) {
                    mtr.init(page);
                    page::write(mtr, page, Head { level: head.level, right, split }, cells);
                }
            }
            Change::Root { covered } => {
                let mut cells = Vec::with_capacity(covered.len());
                for ((block, key, own), page) in covered.into_iter().zip(fresh) {
                    mtr.init(page);
                    page::write(mtr, page, Head { level: head.level, ..Head::default() }, &own);
                    cells.push(Cell { target: Target::Child(block), key });
                }
                page::write(mtr, page, Head { level: head.level + 1, ..head }, &cells);
            }
        }
    }
}
