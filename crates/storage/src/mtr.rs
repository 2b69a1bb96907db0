//! Mini-transactions: changes to latched pages that reach the log as one record. (After InnoDB's
//! term: Gray & Reuter's "physiological logging", one level lower.)
//!
//! A change is applied to the page at once and noted as bytes behind the space for the record's
//! header ([`crate::wal::record`] draws it). Commit then
//!
//! 1. marks the changed pages dirty,
//! 2. decides by the newest redo position which pages' operations give way to full images: those
//!    that have not been changed since (`page LSN <= redo`), unless they start from zero,
//! 3. reserves space in the log; if a checkpoint began in between, back to 2,
//! 4. stamps the pages with the record's end, and releases them.
//!
//! Step 1 comes before 3 so that a checkpoint whose redo position lies behind the record finds the
//! page dirty and waits for its latch.

pub(crate) mod scratch;

use base::faults::{self, Fault};
use base::{Lsn, PageId, Result};
use scratch::{Scratch, Slot};

use crate::Storage;
use crate::buffer::WriteGuard;
use crate::fatal;
use crate::page::{self, PAGE_HEADER, PAGE_SIZE, Page};
use crate::wal::cursor::Cursor;
use crate::wal::record::{self, HEADER, IMAGE, INIT, PUT, SHIFT};
use crate::wal::{EpochChanged, Redo, image};

/// A page inside a mini-transaction: its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRef(pub usize);

/// Pages in one mini-transaction.
const PAGES_MAX: usize = 255;

/// Changes in the making. From the first change to the commit it is a critical section: a panic or
/// a drop in between stops the server for recovery.
pub struct Mtr<'s> {
    storage: &'s Storage,
    /// None only after the commit.
    scratch: Option<Box<Scratch>>,
    changed: bool,
    /// Where the last operation's length is if it was a put: for merging.
    last_put: Option<LastPut>,
}

struct LastPut {
    page: usize,
    end: usize,
    len_at: usize,
}

impl<'s> Mtr<'s> {
    pub(crate) fn new(storage: &'s Storage) -> Mtr<'s> {
        Mtr { storage, scratch: Some(Scratch::take()), changed: false, last_put: None }
    }

    fn scratch(&self) -> &Scratch {
        match &self.scratch {
            Some(scratch) => scratch,
            None => unreachable!("only the commit takes it, and takes the whole"),
        }
    }

    fn scratch_mut(&mut self) -> &mut Scratch {
        match &mut self.scratch {
            Some(scratch) => scratch,
            None => unreachable!("only the commit takes it, and takes the whole"),
        }
    }

    fn guard(&self, page: PageRef) -> &WriteGuard {
        match &self.scratch().pages[page.0].guard {
            Some(guard) => guard,
            None => panic!("page {} was given back", page.0),
        }
    }

    /// The page, about to be changed.
    fn change(&mut self, page: PageRef) -> (&mut Scratch, &mut Page) {
        if !self.changed {
            // Before anything is changed, so that this ends a statement and not the server.
            let own = !self.storage.follows() || self.id(page).rel.is_temporary();
            assert!(own, "a standby changes pages by its primary's log only");
        }
        self.changed = true;
        let scratch = self.scratch_mut();
        let slot = &mut scratch.pages[page.0];
        slot.changed = true;
        let Some(guard) = &mut slot.guard else { panic!("page {} was given back", page.0) };
        // SAFETY: the bytes live under the guard's latch as long as the slot keeps the guard, which
        // outlasts both borrows; the scratch's vectors are other memory.
        let bytes = unsafe { &mut *std::ptr::from_mut(guard.page_mut()) };
        (scratch, bytes)
    }

    /// Pins and latches a page exclusively.
    ///
    /// # Errors
    /// As [`crate::BufferPool::pin`].
    pub fn latch(&mut self, id: PageId) -> Result<PageRef> {
        let guard = self.storage.pool.pin(id)?.write();
        Ok(self.add(guard))
    }
    /// Takes a latched page in.
    pub fn add(&mut self, guard: WriteGuard) -> PageRef {
        let pages = &mut self.scratch_mut().pages;
        assert!(pages.len() < PAGES_MAX, "a mini-transaction has at most {PAGES_MAX} pages");
        pages.push(Slot { guard: Some(guard), changed: false, flags: 0 });
        PageRef(pages.len() - 1)
    }
    /// Gives a page back that was not changed.
    pub fn remove_unchanged(&mut self, page: PageRef) -> WriteGuard {
        let slot = &mut self.scratch_mut().pages[page.0];
        assert!(!slot.changed, "a changed page stays until the commit");
        match slot.guard.take() {
            Some(guard) => guard,
            None => panic!("page {} was given back", page.0),
        }
    }
    /// The page as it is now, changes included.
    pub fn page(&self, page: PageRef) -> &Page {
        self.guard(page).page()
    }
    /// Which page.
    pub fn id(&self, page: PageRef) -> PageId {
        self.guard(page).id()
    }
    /// Makes the page all zero after the header; redo need not read it. First change to a new page.
    pub fn init(&mut self, page: PageRef) {
        let (scratch, bytes) = self.change(page);
        bytes[PAGE_HEADER..].fill(0);
        let slot = &mut scratch.pages[page.0];
        // Operations that were noted before the page was zeroed must not come after it in redo: then
        // the whole page goes to the log.
        slot.flags |= if has_ops(&scratch.record, page.0) { IMAGE } else { INIT };
    }
    /// Writes bytes at an offset (>= `PAGE_HEADER`).
    #[inline]
    pub fn put(&mut self, page: PageRef, offset: usize, bytes: &[u8]) {
        let end = offset + bytes.len();
        assert!(offset >= PAGE_HEADER && end <= PAGE_SIZE, "put {offset}..{end}");
        if bytes.is_empty() {
            return;
        }
        let last = self.last_put.take();
        let (scratch, target) = self.change(page);
        target[offset..end].copy_from_slice(bytes);
        let ops = &mut scratch.record;
        let len_at = match last {
            Some(last) if last.page == page.0 && last.end == offset => {
                let at = last.len_at;
                let len = u16::from_le_bytes([ops[at], ops[at + 1]]) + bytes.len() as u16;
                ops[at..at + 2].copy_from_slice(&len.to_le_bytes());
                at
            }
            _ => {
                let word = (PUT << 13 | offset as u16).to_le_bytes();
                let len = (bytes.len() as u16).to_le_bytes();
                ops.extend_from_slice(&[page.0 as u8, word[0], word[1], len[0], len[1]]);
                ops.len() - 2
            }
        };
        ops.extend_from_slice(bytes);
        self.last_put = Some(LastPut { page: page.0, end, len_at });
    }
    /// Little-endian shorthand.
    #[inline]
    pub fn put_u16(&mut self, page: PageRef, offset: usize, value: u16) {
        self.put(page, offset, &value.to_le_bytes());
    }
    /// Little-endian shorthand.
    #[inline]
    pub fn put_u32(&mut self, page: PageRef, offset: usize, value: u32) {
        self.put(page, offset, &value.to_le_bytes());
    }
    /// Little-endian shorthand.
    #[inline]
    pub fn put_u64(&mut self, page: PageRef, offset: usize, value: u64) {
        self.put(page, offset, &value.to_le_bytes());
    }
    /// Copies `len` bytes inside the page (may overlap), logged as a move.
    pub fn shift(&mut self, page: PageRef, from: usize, to: usize, len: usize) {
        assert!(from >= PAGE_HEADER && to >= PAGE_HEADER, "shift {from} to {to}");
        assert!(from + len <= PAGE_SIZE && to + len <= PAGE_SIZE, "shift {from} to {to}, {len}");
        if len == 0 || from == to {
            return;
        }
        self.last_put = None;
        let (scratch, bytes) = self.change(page);
        bytes.copy_within(from..from + len, to);
        let ops = &mut scratch.record;
        ops.push(page.0 as u8);
        ops.extend_from_slice(&(SHIFT << 13 | from as u16).to_le_bytes());
        ops.extend_from_slice(&(to as u16).to_le_bytes());
        ops.extend_from_slice(&(len as u16).to_le_bytes());
    }
    /// Replaces everything after the header (page rebuilds, compaction): logged as a full image.
    /// A shorter body is followed by zeros.
    pub fn replace(&mut self, page: PageRef, body: &[u8]) {
        assert!(body.len() <= PAGE_SIZE - PAGE_HEADER, "a page's body");
        let (scratch, bytes) = self.change(page);
        bytes[PAGE_HEADER..PAGE_HEADER + body.len()].copy_from_slice(body);
        bytes[PAGE_HEADER + body.len()..].fill(0);
        scratch.pages[page.0].flags |= IMAGE;
    }
    /// Adds a payload for the [`crate::Participant`], under its code (1..=255).
    pub fn payload(&mut self, code: u8, bytes: &[u8]) {
        assert!(code != 0, "payload codes begin at 1");
        self.changed = true;
        record::push_payload(&mut self.scratch_mut().payload, code, bytes);
    }
    /// Writes the record (not durable yet), stamps the pages, makes them dirty, releases the
    /// latches and pins. Returns the record's end. Without any change: does nothing, `Lsn::ZERO`.
    pub fn commit(mut self) -> Lsn {
        let lsn = self.write_record();
        if let Some(scratch) = self.scratch.take() {
            scratch.give_back();
        }
        lsn
    }
    /// As [`Mtr::commit`], and gives the guards back, in order, still latched.
    pub fn commit_keep(mut self) -> (Lsn, Vec<WriteGuard>) {
        let lsn = self.write_record();
        let mut guards = Vec::new();
        if let Some(mut scratch) = self.scratch.take() {
            guards.extend(scratch.pages.drain(..).filter_map(|slot| slot.guard));
            scratch.give_back();
        }
        (lsn, guards)
    }

    /// Everything of the commit but the release. After it nothing is pending.
    fn write_record(&mut self) -> Lsn {
        if !self.changed {
            return Lsn::ZERO;
        }
        let storage = self.storage;
        let scratch = self.scratch_mut();
        for slot in scratch.pages.iter().filter(|s| s.changed) {
            slot.guard.iter().for_each(WriteGuard::make_dirty);
        }
        if scratch.is_temporary() {
            self.changed = false;
            return Lsn::ZERO;
        }
        faults::reach_critical(Fault::PageChanged);
        let log = &storage.wal.log;
        let full_pages = base::settings::live_bool(base::settings::setting::FULL_PAGE_WRITES);
        let ops_end = scratch.record.len();
        let end = loop {
            let redo = log.redo();
            let (record, images) = scratch.assemble(redo, full_pages, ops_end);
            let (bytes, crc) = record;
            match log.insert(bytes, crc, Some(redo), |_| ()) {
                Ok(end) => {
                    storage.count_images(images);
                    break end;
                }
                Err(EpochChanged) => scratch.record.truncate(ops_end),
            }
        };
        faults::reach_critical(Fault::PageLogged);
        for slot in scratch.pages.iter_mut().filter(|s| s.changed) {
            if let Some(guard) = &mut slot.guard {
                page::set_lsn(guard.page_mut(), end);
            }
        }
        self.changed = false;
        end
    }
}

/// Whether operations of this page are noted.
fn has_ops(record: &[u8], page: usize) -> bool {
    let mut ops = Cursor(&record[HEADER..]);
    while !ops.is_empty() {
        match record::read_op(&mut ops) {
            Ok(op) if op.page() != page => {}
            _ => return true,
        }
    }
    false
}

impl Scratch {
    /// Whether the changes are those of a temporary relation, which are not logged. A
    /// mini-transaction never mixes them with others.
    fn is_temporary(&self) -> bool {
        let mut changed = self.pages.iter().filter(|s| s.changed).filter_map(|s| s.guard.as_ref());
        let Some(first) = changed.next() else { return false };
        let temporary = first.id().rel.is_temporary();
        debug_assert!(
            changed.all(|guard| guard.id().rel.is_temporary() == temporary),
            "logged and unlogged pages in one mini-transaction"
        );
        debug_assert!(!temporary || self.payload.is_empty(), "a payload that would be lost");
        temporary
    }

    /// The record's bytes with the CRC of their body, and the number of images in it.
    fn assemble(
        &mut self,
        redo: Redo,
        full_pages: bool,
        ops_end: usize,
    ) -> ((&mut [u8], u32), u64) {
        let mut images = 0;
        for slot in &mut self.pages {
            let Some(guard) = slot.guard.as_ref().filter(|_| slot.changed) else { continue };
            // An init stays one, except that an image has it all; a decision for an image stays,
            // since redo positions only grow.
            let untouched = slot.flags & INIT == 0 && guard.lsn() <= redo.lsn;
            if full_pages && untouched {
                slot.flags |= IMAGE;
            }
            images += u64::from(slot.flags & IMAGE != 0);
        }
        let record = if images > 0 {
            self.with_images.clear();
            self.with_images.resize(HEADER, 0);
            keep_ops(&self.record[HEADER..ops_end], &self.pages, &mut self.with_images);
            &mut self.with_images
        } else {
            &mut self.record
        };
        let ops = record.len() - HEADER;
        let numbers = push_pages(record, &self.pages);
        record.extend_from_slice(&self.payload);
        let crc = record::finish(record, record::CHANGES, numbers, ops);
        ((record, crc), images)
    }
}

/// Copies the operations of pages that have no image.
fn keep_ops(ops: &[u8], pages: &[Slot], to: &mut Vec<u8>) {
    let mut rest = Cursor(ops);
    while !rest.is_empty() {
        let before = rest.0;
        let Ok(op) = record::read_op(&mut rest) else {
            unreachable!("the operations were noted by this module")
        };
        if pages[op.page()].flags & IMAGE == 0 {
            to.extend_from_slice(&before[..before.len() - rest.0.len()]);
        }
    }
}

/// The page table: one entry a slot up to the last changed one, since operations name slots by
/// number. Returns their count.
fn push_pages(record: &mut Vec<u8>, pages: &[Slot]) -> u8 {
    let count = pages.iter().rposition(|s| s.changed).map_or(0, |last| last + 1);
    for slot in &pages[..count] {
        match &slot.guard {
            Some(guard) if slot.changed => {
                record::push_entry(record, guard.id(), slot.flags);
                if slot.flags & IMAGE != 0 {
                    image::push(record, guard.page());
                }
            }
            _ => record::push_unchanged(record),
        }
    }
    count as u8
}

impl Drop for Mtr<'_> {
    fn drop(&mut self) {
        if self.changed {
            fatal::broken("a mini-transaction was left between its first change and its commit");
        }
        if let Some(scratch) = self.scratch.take() {
            scratch.give_back();
        }
    }
}
