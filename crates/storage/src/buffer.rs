//! The buffer pool.

use base::{Lsn, PageId, Result};

/// Bytes in a page.
pub const PAGE_SIZE: usize = 8192;
/// One page's bytes.
pub type Page = [u8; PAGE_SIZE];

/// Frames, mapping partitions, clock sweep.
pub struct BufferPool {}

/// A pinned page: it stays in its frame. Dropping it unpins.
pub struct Pinned {}

/// Shared content latch.
pub struct ReadGuard<'a>(&'a Pinned);

/// Exclusive content latch together with the pin.
pub struct WriteGuard {}

impl BufferPool {
    /// Finds or reads the page and pins it.
    ///
    /// # Errors
    /// `XX001` when its checksum is wrong; I/O errors; `53200` when every frame is pinned.
    pub fn pin(&self, _id: PageId) -> Result<Pinned> {
        todo!()
    }

    /// As [`BufferPool::pin`] for a page just extended: a zero page without reading the file.
    pub fn pin_new(&self, _id: PageId) -> Result<Pinned> {
        todo!()
    }
}

impl Pinned {
    /// Which page this is.
    pub fn id(&self) -> PageId {
        todo!()
    }
    /// Waits for the shared latch.
    pub fn read(&self) -> ReadGuard<'_> {
        todo!()
    }
    /// Waits for the exclusive latch; the guard keeps the pin.
    pub fn write(self) -> WriteGuard {
        todo!()
    }
    /// Without waiting; gives the pin back when the latch is taken.
    pub fn try_write(self) -> Result<WriteGuard, Pinned> {
        todo!()
    }
    /// Reads without latching: runs `f` on the page's bytes, which may change meanwhile, and
    /// returns its result only if no writer held or took the latch. `f` must survive torn bytes.
    pub fn optimistic<R>(&self, _f: impl FnOnce(&Page) -> R) -> Option<R> {
        todo!()
    }
    /// A second pin on the same page.
    pub fn again(&self) -> Pinned {
        todo!()
    }
}

impl ReadGuard<'_> {
    /// The page.
    pub fn page(&self) -> &Page {
        todo!()
    }
    /// Sets bits of a little-endian u16 at an even offset, atomically, as a hint: not logged, not
    /// made dirty, may be lost.
    pub fn hint_or_u16(&self, _offset: usize, _bits: u16) {
        todo!()
    }
    /// The page's LSN.
    pub fn lsn(&self) -> Lsn {
        todo!()
    }
}

impl WriteGuard {
    /// Which page this is.
    pub fn id(&self) -> PageId {
        todo!()
    }
    /// The page.
    pub fn page(&self) -> &Page {
        todo!()
    }
    /// As [`ReadGuard::hint_or_u16`].
    pub fn hint_or_u16(&self, _offset: usize, _bits: u16) {
        todo!()
    }
    /// Releases the latch, keeps the pin.
    pub fn unlatch(self) -> Pinned {
        todo!()
    }
}
