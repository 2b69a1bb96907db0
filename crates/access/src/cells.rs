//! Pages of cells that stay where they are: a cell's place, its page and number, is its address for good.
//!
//! ```text
//! | storage (16) | kind | count | lowest cell | … | next page | used | slots → … ← cells |
//! ```
//!
//! A slot is a cell's place in the page and its length, two bytes each. Cells are added behind the others and changed in
//! place; whoever takes cells away writes the page anew and must know that nobody has their addresses.
//!
//! `used`, on the first page only: pages from there on were never begun, and can be. Each page is begun in one step with
//! that, so that a page of zeros before it is a damaged one, or one that a crash took from its writer. 0: not known.
//!
//! Beside the pages: what the handles of an index that is made of such pages share ([`CellState`]), one writer at a
//! time, the pages with room, and new pages.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::{Fork, PageId, RelId, Result, WaitEvent, err};
use sched::Mutex;
use storage::{Mtr, PAGE_HEADER, PAGE_SIZE, Page, PageRef, Pinned, Storage};

const KIND: usize = PAGE_HEADER;
const COUNT: usize = PAGE_HEADER + 2;
const LOWEST: usize = PAGE_HEADER + 4;
const NEXT: usize = PAGE_HEADER + 8;
const USED: usize = PAGE_HEADER + 12;
const SLOTS: usize = PAGE_HEADER + 16;
/// Bytes of a slot.
pub(crate) const SLOT: usize = 4;

/// Bytes of a page that slots and cells have.
pub(crate) const CAPACITY: usize = PAGE_SIZE - SLOTS;
/// The longest cell.
pub(crate) const CELL_MAX: usize = CAPACITY - SLOT;
/// Pages at the file's end that are looked at for leftovers of a crash.
const SEARCH_PAGES: u32 = 64;
/// Fewest pages added to the file at a time.
const LEAST: u32 = 4;
/// Most pages added to the file at a time.
const CHUNK: u32 = 128;

/// The address of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    pub block: u32,
    pub number: u16,
}

impl Place {
    /// Bytes of an address.
    pub const BYTES: usize = 6;

    /// No cell has it: the first page is none of cells.
    pub const NOWHERE: Place = Place { block: 0, number: 0 };

    pub fn to_bytes(self) -> [u8; Place::BYTES] {
        let (b, n) = (self.block.to_le_bytes(), self.number.to_le_bytes());
        [b[0], b[1], b[2], b[3], n[0], n[1]]
    }

    pub fn from_bytes(b: [u8; Place::BYTES]) -> Place {
        let block = u32::from_le_bytes([b[0], b[1], b[2], b[3]]);
        Place { block, number: u16::from_le_bytes([b[4], b[5]]) }
    }
}

fn u16_at(page: &Page, at: usize) -> u16 {
    u16::from_le_bytes([page[at], page[at + 1]])
}

fn u32_at(page: &Page, at: usize) -> u32 {
    u32::from(u16_at(page, at)) | u32::from(u16_at(page, at + 2)) << 16
}

/// A page of cells, to be read.
#[derive(Clone, Copy)]
pub(crate) struct Cells<'p>(pub &'p Page);

impl<'p> Cells<'p> {
    /// The page's kind; 0: never used.
    pub fn kind(self) -> u16 {
        u16_at(self.0, KIND)
    }

    pub fn count(self) -> usize {
        usize::from(u16_at(self.0, COUNT)).min(CAPACITY / SLOT)
    }

    /// The page that follows; 0: none.
    pub fn next(self) -> u32 {
        u32_at(self.0, NEXT)
    }

    /// Where a cell begins, and its length.
    pub fn slot(self, n: usize) -> (usize, usize) {
        let at = SLOTS + n * SLOT;
        (usize::from(u16_at(self.0, at)), usize::from(u16_at(self.0, at + 2)))
    }

    /// A cell; None when there is none, or the page makes no sense.
    pub fn cell(self, n: usize) -> Option<&'p [u8]> {
        if n >= self.count() {
            return None;
        }
        let (at, len) = self.slot(n);
        if at < SLOTS { None } else { self.0.get(at..at.checked_add(len)?) }
    }

    /// Whether a cell of this length goes in.
    pub fn takes(self, len: usize) -> bool {
        let lowest = usize::from(u16_at(self.0, LOWEST));
        lowest.saturating_sub(SLOTS + self.count() * SLOT) >= len + SLOT
    }

    /// Faults of the page's layout.
    pub fn is_sound(self) -> bool {
        let mut spans: Vec<(usize, usize)> = (0..self.count()).map(|n| self.slot(n)).collect();
        spans.sort_unstable();
        let lowest = usize::from(u16_at(self.0, LOWEST));
        let inside = |(at, len): &(usize, usize)| *at >= lowest && at + len <= PAGE_SIZE;
        lowest >= SLOTS + self.count() * SLOT
            && spans.iter().all(inside)
            && spans.windows(2).all(|two| two[0].0 + two[0].1 <= two[1].0)
    }
}

fn init(mtr: &mut Mtr<'_>, page: PageRef, kind: u16, next: u32) {
    mtr.init(page);
    mtr.put_u16(page, KIND, kind);
    mtr.put_u16(page, LOWEST, PAGE_SIZE as u16);
    mtr.put_u32(page, NEXT, next);
}

/// Adds a cell behind the others; its number, or None, and nothing is done, when there is no room.
pub(crate) fn add(mtr: &mut Mtr<'_>, page: PageRef, parts: &[&[u8]]) -> Option<u16> {
    let len: usize = parts.iter().map(|part| part.len()).sum();
    let cells = Cells(mtr.page(page));
    if !cells.takes(len) {
        return None;
    }
    let number = cells.count();
    let at = usize::from(u16_at(cells.0, LOWEST)) - len;
    let mut to = at;
    for part in parts {
        mtr.put(page, to, part);
        to += part.len();
    }
    let slot = SLOTS + number * SLOT;
    mtr.put_u16(page, slot, at as u16);
    mtr.put_u16(page, slot + 2, len as u16);
    mtr.put_u16(page, COUNT, number as u16 + 1);
    mtr.put_u16(page, LOWEST, at as u16);
    Some(number as u16)
}

/// Changes bytes of a cell.
pub(crate) fn put(mtr: &mut Mtr<'_>, page: PageRef, number: u16, offset: usize, bytes: &[u8]) {
    let (at, len) = Cells(mtr.page(page)).slot(usize::from(number));
    assert!(offset + bytes.len() <= len, "within the cell");
    mtr.put(page, at + offset, bytes);
}

/// Writes a page anew.
pub(crate) fn write(mtr: &mut Mtr<'_>, page: PageRef, kind: u16, next: u32, cells: &[&[u8]]) {
    let mut body = vec![0; PAGE_SIZE - PAGE_HEADER];
    let mut put = |at: usize, bytes: &[u8]| {
        body[at - PAGE_HEADER..][..bytes.len()].copy_from_slice(bytes);
    };
    let mut lowest = PAGE_SIZE;
    for (n, cell) in cells.iter().enumerate() {
        lowest -= cell.len();
        put(lowest, cell);
        put(SLOTS + n * SLOT, &(lowest as u16).to_le_bytes());
        put(SLOTS + n * SLOT + 2, &(cell.len() as u16).to_le_bytes());
    }
    put(KIND, &kind.to_le_bytes());
    put(COUNT, &(cells.len() as u16).to_le_bytes());
    put(LOWEST, &(lowest as u16).to_le_bytes());
    put(NEXT, &next.to_le_bytes());
    mtr.replace(page, &body);
}

/// State that all handles of one index share.
pub(crate) struct CellState {
    /// Held by whoever changes the index.
    pub writing: Mutex<Room>,
    /// How often cells have been marked as gone: an address that was read before is read again.
    epoch: AtomicU64,
}

/// Where a writer finds room.
#[derive(Default)]
pub(crate) struct Room {
    /// The file's end has been searched for pages that a crash left.
    searched: bool,
    /// Pages of the file that are not in use yet.
    spare: Vec<u32>,
    /// The pages that took the last cell, by what the method puts there; 0: not known.
    pub open: [u32; 2],
    /// Cells that may be used again, by their length and another number of the method's.
    pub free: HashMap<(usize, u8), Vec<Place>>,
}

impl Default for CellState {
    fn default() -> CellState {
        let writing = Mutex::new(WaitEvent::LWLockIndexTreeWriter, Room::default());
        CellState { writing, epoch: AtomicU64::new(0) }
    }
}

impl CellState {
    /// As new: the file is empty.
    pub fn reset(&self) {
        *self.writing.lock() = Room::default();
    }

    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    pub fn next_epoch(&self) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
    }
}

/// The files of an index of cells.
#[derive(Clone)]
pub(crate) struct CellFile {
    pub rel: RelId,
    pub storage: Arc<Storage>,
}

impl CellFile {
    pub fn pin(&self, block: u32) -> Result<Pinned> {
        self.storage.pool.pin(PageId::main(self.rel, block))
    }

    pub fn blocks(&self) -> Result<u32> {
        self.storage.block_count(self.rel, Fork::Main)
    }

    /// The error for what makes no sense.
    pub fn corrupted(&self, block: u32) -> base::Error {
        err!(INDEX_CORRUPTED, "index {} has an invalid page at block {block}", self.rel.0)
            .hint("Please REINDEX it.")
    }

    /// Begins the first page of a file that is empty, which has these bytes in a cell.
    pub fn begin(&self, kind: u16, meta: &[u8]) -> Result<()> {
        if self.storage.extend(self.rel, Fork::Main, 1)? != 0 {
            return Err(base::Error::internal(format!("index {} is not empty", self.rel.0)));
        }
        self.write_new(0, kind, 0, &[meta])
    }

    /// Writes a page that nobody knows of.
    pub fn write_new(&self, block: u32, kind: u16, next: u32, cells: &[&[u8]]) -> Result<()> {
        let guard = self.storage.pool.pin_new(PageId::main(self.rel, block))?.write();
        let mut mtr = self.storage.mtr();
        let page = mtr.add(guard);
        if block > 0 {
            self.note_used(&mut mtr, block)?;
        }
        mtr.init(page);
        write(&mut mtr, page, kind, next, cells);
        mtr.commit();
        Ok(())
    }

    /// Begins a page of cells, which the caller has latched.
    pub fn begin_page(
        &self,
        mtr: &mut Mtr<'_>,
        (page, block): (PageRef, u32),
        kind: u16,
        next: u32,
    ) -> Result<()> {
        self.note_used(mtr, block)?;
        init(mtr, page, kind, next);
        Ok(())
    }

    /// A page is begun: those from the next one on were never.
    fn note_used(&self, mtr: &mut Mtr<'_>, block: u32) -> Result<()> {
        let meta = mtr.latch(PageId::main(self.rel, 0))?;
        if u32_at(mtr.page(meta), USED) <= block {
            mtr.put_u32(meta, USED, block + 1);
        }
        Ok(())
    }

    /// The first of the pages that were never begun; 0: not known.
    pub fn used(&self) -> Result<u32> {
        Ok(u32_at(self.pin(0)?.read().page(), USED))
    }

    /// Reads the first page's cell.
    pub fn meta<R>(&self, kind: u16, read: impl FnOnce(&[u8]) -> Option<R>) -> Result<R> {
        let pinned = self.pin(0)?;
        let guard = pinned.read();
        let cells = Cells(guard.page());
        let cell = cells.cell(0).filter(|_| cells.kind() == kind);
        cell.and_then(read).ok_or_else(|| self.corrupted(0))
    }

    /// Changes bytes of the first page's cell.
    pub fn put_meta(&self, offset: usize, bytes: &[u8]) -> Result<()> {
        let mut mtr = self.storage.mtr();
        let page = mtr.latch(PageId::main(self.rel, 0))?;
        put(&mut mtr, page, 0, offset, bytes);
        mtr.commit();
        Ok(())
    }

    /// A page that is not in use: one that a crash left at the file's end, else a new one.
    pub fn allocate(&self, room: &mut Room) -> Result<u32> {
        if let Some(block) = room.spare.pop() {
            return Ok(block);
        }
        let blocks = self.blocks()?;
        if !std::mem::replace(&mut room.searched, true) {
            let used = self.used()?;
            let least = if used > 0 { used } else { blocks.saturating_sub(SEARCH_PAGES).max(1) };
            for block in (least..blocks).rev() {
                if used == 0 && Cells(self.pin(block)?.read().page()).kind() != 0 {
                    break;
                }
                room.spare.push(block);
            }
            if let Some(block) = room.spare.pop() {
                return Ok(block);
            }
        }
        let count = (blocks / 8).clamp(LEAST, CHUNK);
        let first = self.storage.extend(self.rel, Fork::Main, count)?;
        room.spare.extend((first + 1..first + count).rev());
        Ok(first)
    }
}
