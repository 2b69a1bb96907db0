//! Mini-transactions: changes to latched pages that reach the log as one record. (After InnoDB's
//! term: Gray & Reuter's "physiological logging", one level lower.)

use base::{Lsn, PageId, Result};

use crate::buffer::{Page, WriteGuard};

/// A page inside a mini-transaction: its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRef(pub usize);

/// Changes in the making. From the first change to the commit it is a critical section: a panic or
/// a drop in between stops the server for recovery.
pub struct Mtr<'s>(std::marker::PhantomData<&'s ()>);

impl Mtr<'_> {
    /// Pins and latches a page exclusively.
    pub fn latch(&mut self, _id: PageId) -> Result<PageRef> {
        todo!()
    }
    /// Takes a latched page in.
    pub fn add(&mut self, _guard: WriteGuard) -> PageRef {
        todo!()
    }
    /// Gives a page back that was not changed.
    pub fn remove_unchanged(&mut self, _page: PageRef) -> WriteGuard {
        todo!()
    }
    /// The page as it is now, changes included.
    pub fn page(&self, _page: PageRef) -> &Page {
        todo!()
    }
    /// Which page.
    pub fn id(&self, _page: PageRef) -> PageId {
        todo!()
    }
    /// Makes the page all zero after the header; redo need not read it. First change to a new page.
    pub fn init(&mut self, _page: PageRef) {
        todo!()
    }
    /// Writes bytes at an offset (>= `PAGE_HEADER`).
    pub fn put(&mut self, _page: PageRef, _offset: usize, _bytes: &[u8]) {
        todo!()
    }
    /// Little-endian shorthand.
    pub fn put_u16(&mut self, page: PageRef, offset: usize, value: u16) {
        self.put(page, offset, &value.to_le_bytes());
    }
    /// Little-endian shorthand.
    pub fn put_u32(&mut self, page: PageRef, offset: usize, value: u32) {
        self.put(page, offset, &value.to_le_bytes());
    }
    /// Little-endian shorthand.
    pub fn put_u64(&mut self, page: PageRef, offset: usize, value: u64) {
        self.put(page, offset, &value.to_le_bytes());
    }
    /// Copies `len` bytes inside the page (may overlap), logged as a move.
    pub fn shift(&mut self, _page: PageRef, _from: usize, _to: usize, _len: usize) {
        todo!()
    }
    /// Replaces everything after the header (page rebuilds, compaction): logged as a full image.
    pub fn replace(&mut self, _page: PageRef, _body: &[u8]) {
        todo!()
    }
    /// Adds a payload for the [`crate::Participant`], under its code (1..=255).
    pub fn payload(&mut self, _code: u8, _bytes: &[u8]) {
        todo!()
    }
    /// Writes the record (not durable yet), stamps the pages, makes them dirty, releases the
    /// latches and pins. Returns the record's end. Without any change: does nothing, `Lsn::ZERO`.
    pub fn commit(self) -> Lsn {
        todo!()
    }
    /// As [`Mtr::commit`], and gives the guards back, in order, still latched.
    pub fn commit_keep(self) -> (Lsn, Vec<WriteGuard>) {
        todo!()
    }
}
