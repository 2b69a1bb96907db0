//! IVFFlat: vectors in lists, each with a centre; a search reads the lists whose centres are nearest.
//!
//! ```text
//!  block 0    meta    | first page of lists |
//!  lists      | first page | page with room | centre | …                   pages in a chain
//!  rows       | row (6) | vector | …                                        of each list a chain, new pages first
//! ```
//!
//! * Centres are found once, when the index is built (`build`: k-means over a sample), and stay; an index that was
//!   built over nothing has one list, whose centre is the first vector.
//! * One writer at a time. An insert is one mini-transaction: the page that takes the row, and if it is new its list.
//! * Readers hold one page's latch at a time. Pages never become free: those that vacuum has emptied take new rows.
//! * Serializable transactions lock the whole index.

mod build;
mod scan;

use std::collections::HashSet;
use std::sync::Arc;

use base::faults::{self, Fault};
use base::{AccessMethod, PageId, RelId, Result, TupleId, err};
use storage::Storage;
use txn::Transaction;

use crate::btree::{Inserted, Unique};
use crate::cells::{self, CELL_MAX, CellFile, CellState, Cells, Place, Room};
use crate::method::{IndexMethod, NextEntry, Report};
use crate::registry::{self, RelState};
use crate::vector::{VectorOps, ops_of};

pub use scan::IvfScan;

/// Lists, by default.
pub const LISTS: u32 = 100;

const KIND_META: u16 = 0x494D;
const KIND_LISTS: u16 = 0x494C;
const KIND_ROWS: u16 = 0x4952;

/// Bytes before a list's centre.
const LIST_HEAD: usize = 8;
/// Where the page with room is among them.
const LIST_OPEN: usize = 4;
/// Bytes before a row's vector.
const ROW_HEAD: usize = 6;
/// The longest vector.
const VECTOR_MAX: usize = CELL_MAX - LIST_HEAD;

/// One IVFFlat index.
#[derive(Clone)]
pub struct IvfIndex {
    /// The files.
    pub rel: RelId,
    /// The distances.
    pub ops: Option<Arc<dyn VectorOps>>,
    /// Lists, for a new index.
    pub lists: u32,
    /// Bytes that a build may use for its sample, and helpers that it may start.
    pub build_with: (usize, usize),
    file: CellFile,
    state: Arc<RelState>,
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// A list: its first page, its page with room, its centre.
fn list_of(cell: &[u8]) -> Option<(u32, u32, &[u8])> {
    Some((u32_at(cell, 0)?, u32_at(cell, LIST_OPEN)?, cell.get(LIST_HEAD..)?))
}

fn row_of(cell: &[u8]) -> Option<(TupleId, &[u8])> {
    let (row, vector) = cell.split_first_chunk::<ROW_HEAD>()?;
    Some((TupleId::from_bytes(*row), vector))
}

impl IvfIndex {
    /// Names an index; no I/O.
    pub fn open(storage: &Arc<Storage>, rel: RelId) -> IvfIndex {
        let state = registry::state_of(storage, rel);
        let file = CellFile { rel, storage: storage.clone() };
        IvfIndex { rel, ops: None, lists: LISTS, build_with: (usize::MAX, 0), file, state }
    }

    fn shared(&self) -> &CellState {
        self.state.index.cells()
    }

    fn ops(&self) -> Result<&dyn VectorOps> {
        ops_of(self.ops.as_ref())
    }

    /// Calls `each` with the place, the first page, the page with room and the centre of every list.
    fn each_list(&self, each: &mut dyn FnMut(Place, u32, u32, &[u8]) -> Result<()>) -> Result<()> {
        let mut block = self.file.meta(KIND_META, |cell| u32_at(cell, 0))?;
        while block != 0 {
            sched::check_interrupts()?;
            let pinned = self.file.pin(block)?;
            let guard = pinned.read();
            let cells = Cells(guard.page());
            if cells.kind() != KIND_LISTS {
                return Err(self.file.corrupted(block));
            }
            for number in 0..cells.count() as u16 {
                let list = cells.cell(number.into()).and_then(list_of);
                let (first, open, centre) = list.ok_or_else(|| self.file.corrupted(block))?;
                each(Place { block, number }, first, open, centre)?;
            }
            block = cells.next();
        }
        Ok(())
    }

    /// Calls `each` with the rows of a chain of pages.
    fn each_row(&self, first: u32, each: &mut dyn FnMut(TupleId, &[u8])) -> Result<()> {
        let mut block = first;
        while block != 0 {
            sched::check_interrupts()?;
            let pinned = self.file.pin(block)?;
            let guard = pinned.read();
            let cells = Cells(guard.page());
            if cells.kind() != KIND_ROWS {
                return Err(self.file.corrupted(block));
            }
            for n in 0..cells.count() {
                let row = cells.cell(n).and_then(row_of);
                let (row, vector) = row.ok_or_else(|| self.file.corrupted(block))?;
                each(row, vector);
            }
            block = cells.next();
        }
        Ok(())
    }

    /// The list whose centre is nearest, and its first page.
    fn nearest_list(&self, vector: &[u8]) -> Result<Option<(Place, u32)>> {
        let ops = self.ops()?;
        let mut best: Option<(f32, Place, u32)> = None;
        self.each_list(&mut |place, first, _, centre| {
            if best.is_none() {
                ops.check(vector, centre)?;
            }
            let distance = ops.distance(vector, centre);
            if best.is_none_or(|(known, ..)| distance < known) {
                best = Some((distance, place, first));
            }
            Ok(())
        })?;
        Ok(best.map(|(_, place, first)| (place, first)))
    }

    /// Adds a row. `unless_known`: it may be there.
    fn add(&self, vector: &[u8], row: TupleId, unless_known: bool) -> Result<()> {
        check_len(vector)?;
        loop {
            let list = self.nearest_list(vector)?;
            if let Some((_, first)) = list
                && unless_known
            {
                let mut known = false;
                self.each_row(first, &mut |other, _| known |= other == row)?;
                if known {
                    return Ok(());
                }
            }
            let mut room = self.shared().writing.lock();
            faults::reach(Fault::IndexInsert)?;
            match list {
                Some((list, _)) => return self.put_row(&mut room, list, vector, row),
                None => self.first_list(&mut room, vector)?,
            }
        }
    }

    /// Makes the first list, unless somebody has.
    fn first_list(&self, room: &mut Room, vector: &[u8]) -> Result<()> {
        if self.file.meta(KIND_META, |cell| u32_at(cell, 0))? != 0 {
            return Ok(());
        }
        let ops = self.ops()?;
        let centre = ops.mean(&[&ops.sample(vector)]);
        let block = self.file.allocate(room)?;
        let list = [&[0; LIST_HEAD][..], &centre].concat();
        self.file.write_new(block, KIND_LISTS, 0, &[&list])?;
        self.file.put_meta(0, &block.to_le_bytes())
    }

    /// Puts a row into a list's page with room, or a new one.
    fn put_row(&self, room: &mut Room, list: Place, vector: &[u8], row: TupleId) -> Result<()> {
        let (first, open) = {
            let pinned = self.file.pin(list.block)?;
            let guard = pinned.read();
            let cell = Cells(guard.page()).cell(list.number.into()).and_then(list_of);
            let (first, open, _) = cell.ok_or_else(|| self.file.corrupted(list.block))?;
            (first, open)
        };
        let row = row.to_bytes();
        if open != 0 {
            let mut mtr = self.file.storage.mtr();
            let page = mtr.latch(PageId::main(self.rel, open))?;
            if cells::add(&mut mtr, page, &[&row, vector]).is_some() {
                mtr.commit();
                return Ok(());
            }
        }
        let block = self.file.allocate(room)?;
        let new = self.file.storage.pool.pin_new(PageId::main(self.rel, block))?.write();
        let mut mtr = self.file.storage.mtr();
        let lists = mtr.latch(PageId::main(self.rel, list.block))?;
        let page = mtr.add(new);
        self.file.begin_page(&mut mtr, (page, block), KIND_ROWS, first)?;
        let put = cells::add(&mut mtr, page, &[&row, vector]).is_some();
        assert!(put, "an empty page takes what was measured");
        let both = [block.to_le_bytes(), block.to_le_bytes()].concat();
        cells::put(&mut mtr, lists, list.number, 0, &both);
        mtr.commit();
        Ok(())
    }

    /// Takes the dead rows of a page away: how many, and the next page.
    fn clean_page(&self, block: u32, dead: &dyn Fn(TupleId) -> bool) -> Result<(u64, u32)> {
        let _turn = self.shared().writing.lock();
        let mut mtr = self.file.storage.mtr();
        let guard = self.file.storage.pool.pin_scan(PageId::main(self.rel, block))?.write();
        let page = mtr.add(guard);
        let cells = Cells(mtr.page(page));
        if cells.kind() != KIND_ROWS {
            return Err(self.file.corrupted(block));
        }
        let all: Vec<Vec<u8>> =
            (0..cells.count()).filter_map(|n| cells.cell(n)).map(<[u8]>::to_vec).collect();
        let next = cells.next();
        let lives = |cell: &&[u8]| row_of(cell).is_some_and(|(row, _)| !dead(row));
        let left: Vec<&[u8]> = all.iter().map(Vec::as_slice).filter(lives).collect();
        let removed = all.len() - left.len();
        if removed > 0 {
            cells::write(&mut mtr, page, KIND_ROWS, next, &left);
            mtr.commit();
        }
        Ok((removed as u64, next))
    }

    fn delete_dead(&self, dead: &dyn Fn(TupleId) -> bool) -> Result<u64> {
        let mut lists = Vec::new();
        self.each_list(&mut |place, first, _, _| {
            lists.push((place, first));
            Ok(())
        })?;
        let mut removed = 0;
        for (list, first) in lists {
            let (mut block, mut with_room) = (first, 0);
            while block != 0 {
                sched::check_interrupts()?;
                let (gone, next) = self.clean_page(block, dead)?;
                removed += gone;
                if gone > 0 {
                    with_room = block;
                }
                block = next;
            }
            if with_room != 0 {
                let _turn = self.shared().writing.lock();
                let mut mtr = self.file.storage.mtr();
                let page = mtr.latch(PageId::main(self.rel, list.block))?;
                cells::put(&mut mtr, page, list.number, LIST_OPEN, &with_room.to_le_bytes());
                mtr.commit();
            }
        }
        Ok(removed)
    }

    fn verify(&self) -> Result<Report> {
        let mut report = Report::default();
        if self.file.meta(KIND_META, |cell| u32_at(cell, 0)).is_err() {
            report.findings.push("block 0 is no meta page".to_owned());
            return Ok(report);
        }
        let blocks = self.file.blocks()?;
        let mut lists = Vec::new();
        self.each_list(&mut |place, first, open, _| {
            lists.push((place, first, open));
            Ok(())
        })?;
        let mut seen: HashSet<u32> = lists.iter().map(|(place, ..)| place.block).collect();
        for (list, first, open) in lists {
            let mut say = |what: &str| {
                report.findings.push(format!("list {}.{} {what}", list.block, list.number));
            };
            let (mut block, mut met_open) = (first, open == 0);
            while block != 0 {
                sched::check_interrupts()?;
                if block >= blocks || !seen.insert(block) {
                    say(&format!("leads to block {block}, which is out of the file or in use"));
                    break;
                }
                met_open |= block == open;
                let pinned = self.file.pin(block)?;
                let guard = pinned.read();
                let cells = Cells(guard.page());
                if cells.kind() != KIND_ROWS || !cells.is_sound() {
                    say(&format!("leads to block {block}, which is no page of rows"));
                    break;
                }
                let rows = (0..cells.count()).filter_map(|n| row_of(cells.cell(n)?));
                report.entries.extend(rows.map(|(row, vector)| (vector.to_vec(), row)));
                block = cells.next();
            }
            if !met_open {
                report.findings.push(format!("a list's page {open} with room is not in its chain"));
            }
        }
        for block in 1..blocks {
            sched::check_interrupts()?;
            if !seen.contains(&block)
                && Cells(self.file.pin(block)?.read().page()).kind() == KIND_ROWS
            {
                report.findings.push(format!("block {block} is in no list"));
            }
        }
        Ok(report)
    }
}

fn check_len(vector: &[u8]) -> Result<()> {
    if vector.len() > VECTOR_MAX {
        return Err(err!(
            PROGRAM_LIMIT_EXCEEDED,
            "index row size {} exceeds maximum {VECTOR_MAX} for an IVFFlat index",
            vector.len()
        ));
    }
    Ok(())
}

impl IndexMethod for IvfIndex {
    const METHOD: AccessMethod = AccessMethod::IvfFlat;

    fn fill(&self, _rows: u64, next: &mut NextEntry<'_>) -> Result<()> {
        IvfIndex::fill(self, next)
    }

    fn insert(
        &self,
        tx: &Transaction,
        key: &[u8],
        root: TupleId,
        _unique: Unique<'_>,
    ) -> Result<Inserted> {
        tx.writes_page(self.rel, 0)?;
        self.add(key, root, false)?;
        Ok(Inserted::Done)
    }

    fn insert_entry(&self, tx: &Transaction, entry: &[u8], root: TupleId) -> Result<()> {
        tx.writes_page(self.rel, 0)?;
        self.add(entry, root, true)
    }

    fn bulk_delete(&self, dead: &dyn Fn(TupleId) -> bool) -> Result<u64> {
        self.delete_dead(dead)
    }

    fn check(&self) -> Result<Report> {
        self.verify()
    }
}
