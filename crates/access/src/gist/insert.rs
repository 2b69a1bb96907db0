//! Adding an entry: down to the leaf whose key must grow least, and up again with keys that grow and pages
//! that are split, in one mini-transaction.

use std::sync::atomic::Ordering;

use base::faults::{self, Fault};
use base::{Fork, PageId, Result, TupleId};
use storage::{Mtr, PageRef};
use txn::Transaction;

use super::page::{self, Cell, Head, Node, Target};
use super::{CHUNK, GistIndex, LEVELS_MAX, RESERVE, ROOT, SEARCH_PAGES};

/// An inner page on the way down.
struct Step {
    block: u32,
    /// The cell that was chosen.
    slot: usize,
    child: u32,
    /// Its key with the new entry, if it must grow.
    grown: Option<Vec<u8>>,
}

/// What a level asks of the one above it.
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
        self.refill(&mut searched)?;
        let (path, leaf) = self.descend(key)?;
        if let Some(tx) = tx {
            tx.writes_page(self.rel, leaf)?;
            for step in path.iter().filter(|step| step.grown.is_some()) {
                tx.writes_page(self.rel, step.block)?;
            }
        }
        faults::reach(Fault::IndexInsert)?;
        self.apply(tx, path, leaf, Cell { target: Target::Row(root), key: key.to_vec() })
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

    /// Writes all changes.
    fn apply(
        &self,
        tx: Option<&Transaction>,
        path: Vec<Step>,
        leaf: u32,
        cell: Cell,
    ) -> Result<()> {
        // Everything that can fail comes before the first page is changed.
        let mut plan: Vec<(u32, Plan)> = Vec::new();
        let (first, mut upward) = self.plan(leaf, None, vec![cell])?;
        plan.push((leaf, first));
        for step in path.into_iter().rev() {
            let key = upward.key.take().or(step.grown);
            if key.is_none() && upward.new.is_empty() {
                continue;
            }
            let own = key.map(|key| (step.slot, Cell { target: Target::Child(step.child), key }));
            let (one, up) = self.plan(step.block, own, std::mem::take(&mut upward.new))?;
            plan.push((step.block, one));
            upward = up;
        }
        self.write(tx, plan)
    }

    /// What becomes of a page that is to have a cell in the place of another, and further ones.
    fn plan(
        &self,
        block: u32,
        own: Option<(usize, Cell)>,
        more: Vec<Cell>,
    ) -> Result<(Plan, Upward)> {
        let pinned = self.pin(block)?;
        let guard = pinned.read();
        let node = Node(guard.page());
        let mut cells = node.owned().ok_or_else(|| self.corrupted(block))?;
        if let Some((slot, cell)) = &own {
            cells[*slot] = cell.clone();
        }
        cells.extend(more.iter().cloned());
        if page::fit(&cells) {
            return Ok((Plan::Put { own, more, whole: cells }, Upward::default()));
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
            return Ok((Plan::Root { covered: self.with_blocks(covered)? }, Upward::default()));
        }
        let rest = covered.split_off(1);
        let rest = self.with_blocks(rest)?;
        let (key, stays) = covered.pop().unwrap_or_default();
        let new = rest
            .iter()
            .map(|(block, key, _)| Cell { target: Target::Child(*block), key: key.clone() });
        let upward = Upward { key: Some(key), new: new.collect() };
        Ok((Plan::Split { stays, rest }, upward))
    }

    fn with_blocks(
        &self,
        covered: Vec<(Vec<u8>, Vec<Cell>)>,
    ) -> Result<Vec<(u32, Vec<u8>, Vec<Cell>)>> {
        let take = |(key, cells)| {
            let block = self.shared().spare.lock().pop();
            let block = block.ok_or_else(|| base::Error::internal("an index lacks new pages"))?;
            Ok((block, key, cells))
        };
        covered.into_iter().map(take).collect()
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

    fn write(&self, tx: Option<&Transaction>, plan: Vec<(u32, Plan)>) -> Result<()> {
        let splits = plan.iter().any(|(_, one)| !matches!(one, Plan::Put { .. }));
        // Latches first, so that nothing fails once a page is changed.
        let mut mtr = self.storage.mtr();
        let mut pages = Vec::with_capacity(plan.len());
        let mut fresh = Vec::new();
        for (block, one) in &plan {
            pages.push(mtr.latch(PageId::main(self.rel, *block))?);
            let new: &[(u32, Vec<u8>, Vec<Cell>)] = match one {
                Plan::Put { .. } => &[],
                Plan::Split { rest, .. } => rest,
                Plan::Root { covered } => covered,
            };
            for (new, ..) in new {
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
    pub(super) fn refill(&self, searched: &mut bool) -> Result<()> {
        let state = self.shared();
        if state.spare.lock().len() >= RESERVE {
            return Ok(());
        }
        let blocks = self.storage.block_count(self.rel, Fork::Main)?;
        if !std::mem::replace(searched, true) {
            for block in (blocks.saturating_sub(SEARCH_PAGES).max(2)..blocks).rev() {
                if page::kind(self.pin(block)?.read().page()) != 0 {
                    break;
                }
                state.spare.lock().push(block);
            }
            if state.spare.lock().len() >= RESERVE {
                return Ok(());
            }
        }
        let count = (blocks / 8).clamp(RESERVE as u32, CHUNK);
        let first = self.storage.extend(self.rel, Fork::Main, count)?;
        let mut spare = state.spare.lock();
        let known = std::mem::take(&mut *spare);
        spare.extend((first..first + count).rev());
        spare.extend(known);
        Ok(())
    }
}

/// What becomes of a page.
enum Plan {
    /// A cell in the place of another, and further ones; `whole`: all of the page's cells then.
    Put { own: Option<(usize, Cell)>, more: Vec<Cell>, whole: Vec<Cell> },
    /// Some cells stay, the others go to new pages.
    Split { stays: Vec<Cell>, rest: Vec<(u32, Vec<u8>, Vec<Cell>)> },
    /// All cells go to new pages, and the root is one level higher.
    Root { covered: Vec<(u32, Vec<u8>, Vec<Cell>)> },
}

impl Plan {
    fn write(
        self,
        mtr: &mut Mtr<'_>,
        page: PageRef,
        number: u64,
        fresh: &mut dyn Iterator<Item = PageRef>,
    ) {
        let head = Head::of(Node(mtr.page(page)));
        match self {
            Plan::Put { own, more, whole } => {
                let own = own.iter().all(|(n, cell)| page::put(mtr, page, Some(*n), cell));
                if !own || !more.iter().all(|cell| page::put(mtr, page, None, cell)) {
                    page::write(mtr, page, head, &whole);
                }
            }
            Plan::Split { stays, rest } => {
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
            Plan::Root { covered } => {
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
