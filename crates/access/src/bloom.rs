//! Bloom: of each row a few bits that its values set, page after page (Bloom, "Space/time trade-offs in hash coding with
//! allowable errors", 1970). A search reads them all and gives the rows that have the bits of what is looked for.
//!
//! ```text
//!  block 0    meta    | zero |
//!  rows       | row (6) | bits | …
//! ```
//!
//! * A row's *key*, which `exec::signatures` makes, is its bits.
//! * One writer at a time. Pages never become free: those from which vacuum has taken rows take new ones.
//! * Serializable transactions lock the whole index.

use std::sync::Arc;

use base::faults::{self, Fault};
use base::{AccessMethod, PageId, RelId, Result, TupleId};
use storage::Storage;
use txn::Transaction;

use crate::btree::{Inserted, Unique};
use crate::cells::{self, CellFile, CellState, Cells, Place};
use crate::method::{Found, IndexMethod, NextEntry, Report, Search, wrong_search};
use crate::registry::{self, RelState};

const KIND_META: u16 = 0x424D;
const KIND_ROWS: u16 = 0x4252;
/// Bytes before a row's bits.
const ROW_HEAD: usize = 6;
/// Where pages with room are among the free places.
const PAGES: (usize, u8) = (0, 0);

/// One bloom index.
#[derive(Clone)]
pub struct BloomIndex {
    /// The files.
    pub rel: RelId,
    file: CellFile,
    state: Arc<RelState>,
}

fn row_of(cell: &[u8]) -> Option<(TupleId, &[u8])> {
    let (row, bits) = cell.split_first_chunk::<ROW_HEAD>()?;
    Some((TupleId::from_bytes(*row), bits))
}

impl BloomIndex {
    /// Names an index; no I/O.
    pub fn open(storage: &Arc<Storage>, rel: RelId) -> BloomIndex {
        let state = registry::state_of(storage, rel);
        BloomIndex { rel, file: CellFile { rel, storage: storage.clone() }, state }
    }

    fn shared(&self) -> &CellState {
        self.state.index.cells()
    }

    /// Fills an index whose file is empty.
    ///
    /// # Errors
    /// As [`IndexMethod::fill`].
    pub fn fill(&self, next: &mut NextEntry<'_>) -> Result<()> {
        self.file.begin(KIND_META, &[0; 8])?;
        let mut room = self.shared().writing.lock();
        let (mut cells, mut size): (Vec<Vec<u8>>, usize) = (Vec::new(), 0);
        let mut bits = Vec::new();
        loop {
            sched::check_interrupts()?;
            let row = next(&mut bits)?;
            let needed = ROW_HEAD + bits.len() + cells::SLOT;
            if !cells.is_empty() && (row.is_none() || size + needed > cells::CAPACITY) {
                let block = self.file.allocate(&mut room)?;
                let all: Vec<&[u8]> = cells.iter().map(Vec::as_slice).collect();
                self.file.write_new(block, KIND_ROWS, 0, &all)?;
                room.open[0] = block;
                (cells, size) = (Vec::new(), 0);
            }
            let Some(row) = row else { return Ok(()) };
            size += needed;
            cells.push([&row.to_bytes()[..], &bits].concat());
        }
    }

    /// See [`CellFile::used`].
    fn used(&self) -> Result<u32> {
        self.file.meta(KIND_META, |_| Some(()))?;
        self.file.used()
    }

    /// Calls `each` with every row and its bits.
    fn each_row(&self, each: &mut dyn FnMut(TupleId, &[u8])) -> Result<()> {
        // One writer begins one page after the other.
        let used = self.used()?;
        for block in 1..self.file.blocks()? {
            sched::check_interrupts()?;
            let pinned = self.file.storage.pool.pin_scan(PageId::main(self.rel, block))?;
            let guard = pinned.read();
            let cells = Cells(guard.page());
            match cells.kind() {
                0 if block >= used => continue,
                KIND_ROWS => {}
                _ => return Err(self.file.corrupted(block)),
            }
            for n in 0..cells.count() {
                let row = cells.cell(n).and_then(row_of);
                let (row, bits) = row.ok_or_else(|| self.file.corrupted(block))?;
                each(row, bits);
            }
        }
        Ok(())
    }

    fn add(&self, bits: &[u8], row: TupleId) -> Result<()> {
        let mut room = self.shared().writing.lock();
        faults::reach(Fault::IndexInsert)?;
        let row = row.to_bytes();
        let mut block = room.open[0];
        loop {
            if block == 0 {
                let freed = room.free.get_mut(&PAGES).and_then(Vec::pop);
                block = match freed {
                    Some(place) => place.block,
                    None => self.file.allocate(&mut room)?,
                };
                room.open[0] = block;
            }
            let mut mtr = self.file.storage.mtr();
            let page = mtr.latch(PageId::main(self.rel, block))?;
            if Cells(mtr.page(page)).kind() == 0 {
                self.file.begin_page(&mut mtr, (page, block), KIND_ROWS, 0)?;
            }
            if cells::add(&mut mtr, page, &[&row, bits]).is_some() {
                mtr.commit();
                return Ok(());
            }
            block = 0;
        }
    }

    /// Takes the dead rows of a page away; returns how many.
    fn clean_page(&self, (block, used): (u32, u32), dead: &dyn Fn(TupleId) -> bool) -> Result<u64> {
        let mut room = self.shared().writing.lock();
        let mut mtr = self.file.storage.mtr();
        let guard = self.file.storage.pool.pin_scan(PageId::main(self.rel, block))?.write();
        let page = mtr.add(guard);
        let cells = Cells(mtr.page(page));
        match cells.kind() {
            KIND_ROWS => {}
            0 if block >= used => return Ok(0),
            _ => return Err(self.file.corrupted(block)),
        }
        let all: Vec<Vec<u8>> =
            (0..cells.count()).filter_map(|n| cells.cell(n)).map(<[u8]>::to_vec).collect();
        let lives = |cell: &&[u8]| row_of(cell).is_some_and(|(row, _)| !dead(row));
        let left: Vec<&[u8]> = all.iter().map(Vec::as_slice).filter(lives).collect();
        let removed = all.len() - left.len();
        if removed > 0 {
            cells::write(&mut mtr, page, KIND_ROWS, 0, &left);
            mtr.commit();
            let pages = room.free.entry(PAGES).or_default();
            let place = Place { block, number: 0 };
            if !pages.contains(&place) {
                pages.push(place);
            }
        }
        Ok(removed as u64)
    }
}

impl IndexMethod for BloomIndex {
    const METHOD: AccessMethod = AccessMethod::Bloom;

    fn fill(&self, _rows: u64, next: &mut NextEntry<'_>) -> Result<()> {
        BloomIndex::fill(self, next)
    }

    fn insert(
        &self,
        tx: &Transaction,
        key: &[u8],
        root: TupleId,
        _unique: Unique<'_>,
    ) -> Result<Inserted> {
        tx.writes_page(self.rel, 0)?;
        self.add(key, root)?;
        Ok(Inserted::Done)
    }

    fn insert_entry(&self, tx: &Transaction, entry: &[u8], root: TupleId) -> Result<()> {
        tx.writes_page(self.rel, 0)?;
        // Twice in the index is as good as once: searches make bitmaps.
        self.add(entry, root)
    }

    fn collect(
        &self,
        tx: &Transaction,
        search: &Search,
        found: &mut dyn FnMut(Found),
    ) -> Result<()> {
        let Search::Signature(search) = search else { return Err(wrong_search(Self::METHOD)) };
        tx.reads_relation(self.rel);
        self.each_row(&mut |root, bits| {
            if search.bits.iter().zip(bits).all(|(wanted, own)| wanted & own == *wanted) {
                found(Found { root, recheck: true });
            }
        })
    }

    fn bulk_delete(&self, dead: &dyn Fn(TupleId) -> bool) -> Result<u64> {
        let (used, mut removed) = (self.used()?, 0);
        for block in 1..self.file.blocks()? {
            sched::check_interrupts()?;
            removed += self.clean_page((block, used), dead)?;
        }
        Ok(removed)
    }

    fn check(&self) -> Result<Report> {
        let mut report = Report::default();
        if self.file.meta(KIND_META, |_| Some(())).is_err() {
            report.findings.push("block 0 is no meta page".to_owned());
        }
        let used = self.file.used()?;
        for block in 1..self.file.blocks()? {
            sched::check_interrupts()?;
            let pinned = self.file.pin(block)?;
            let guard = pinned.read();
            let cells = Cells(guard.page());
            let spare = cells.kind() == 0 && block >= used;
            if !spare && (cells.kind() != KIND_ROWS || !cells.is_sound()) {
                report.findings.push(format!("block {block} is no page of rows"));
                return Ok(report);
            }
        }
        self.each_row(&mut |row, bits| report.entries.push((bits.to_vec(), row)))?;
        report.entries.sort_unstable();
        report.entries.dedup();
        Ok(report)
    }
}
