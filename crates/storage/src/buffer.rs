//! The buffer pool: pages in memory, pinned and latched.
//!
//! ```text
//!  pin(id) -> Pinned -> read()  -> ReadGuard    shared latch
//!                    -> write() -> WriteGuard   exclusive latch, keeps the pin
//!                    -> optimistic(f)           no latch; the result counts only if nothing changed
//!  read_optimistic(id, f)                        no pin either: nothing that others see is touched
//! ```
//!
//! * A pin keeps a page in its frame; a latch keeps its bytes. Pins are one atomic add and one
//!   subtract on the frame's state ([`frame`]), look-ups take no lock ([`mapping`]), and what
//!   happens to pages that aren't there or have to go is in [`pool`]. The number of frames can
//!   change while they are in use ([`arena`], [`resize`]).
//! * Bytes change only through [`crate::Mtr`], under the exclusive latch, and as hints.
//! * Pages are read by other threads while hints are set under the shared latch, and by optimistic
//!   readers while a writer changes them: such readers see the page through a [`PageView`], which
//!   reads words and hands out no references, and their result is thrown away when the frame's
//!   version moved. The version is odd while somebody changes the page and while the frame has none.

mod arena;
mod frame;
mod mapping;
pub(crate) mod pool;
mod resize;
mod view;

pub use frame::FrameInfo;

use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use base::{Lsn, PageId, Result};
use frame::{DIRTY, Frame};
use pool::{Load, Pool};

use crate::page::{self, PAGE_HEADER, PAGE_SIZE, Page};

pub use view::PageView;

/// Frames, mapping partitions, clock sweep.
pub struct BufferPool {
    pub(crate) pool: Arc<Pool>,
}

/// A pinned page: it stays in its frame. Dropping it unpins.
pub struct Pinned {
    frame: NonNull<Frame>,
}

// SAFETY: a pin is a count in an atomic word and may be given back by any thread; the frame lives
// as long as it is pinned.
unsafe impl Send for Pinned {}
// SAFETY: all access through a shared pin is by latch or atomics.
unsafe impl Sync for Pinned {}

/// Shared content latch.
pub struct ReadGuard<'a>(&'a Pinned);

/// Exclusive content latch together with the pin.
pub struct WriteGuard {
    pinned: ManuallyDrop<Pinned>,
}

impl BufferPool {
    /// Finds or reads the page and pins it.
    ///
    /// # Errors
    /// `XX001` when its checksum is wrong; I/O errors; `53200` when every frame is pinned.
    #[inline]
    pub fn pin(&self, id: PageId) -> Result<Pinned> {
        self.pool.pin(id, Load::Read, true)
    }

    /// As [`BufferPool::pin`] for a scan of many pages: doesn't count as a use, so that the scan's
    /// pages are the first to go and push out few others.
    ///
    /// # Errors
    /// As [`BufferPool::pin`].
    pub fn pin_scan(&self, id: PageId) -> Result<Pinned> {
        self.pool.pin(id, Load::Read, false)
    }

    /// As [`BufferPool::pin`] for a page just extended: a zero page without reading the file.
    ///
    /// # Errors
    /// As [`BufferPool::pin`], but nothing is read.
    pub fn pin_new(&self, id: PageId) -> Result<Pinned> {
        self.pool.pin(id, Load::Zero, true)
    }

    /// Reads a page without pin and latch: runs `f` on its bytes, which may change meanwhile, and
    /// returns its result only if the page was there all the time and nobody changed it. Writes to
    /// nothing that other threads see. None as well when the clock has taken the page's usage away:
    /// it needs a pin now and then to stay in memory.
    #[inline]
    pub fn read_optimistic<R>(&self, id: PageId, f: impl FnOnce(PageView<'_>) -> R) -> Option<R> {
        self.pool.read_optimistic(id, f)
    }

    /// Prefetches the beginnings of pages that are about to be pinned, and calls `missing` for those that are not in
    /// memory.
    pub fn prefetch(&self, ids: &[PageId], missing: &mut dyn FnMut(PageId)) {
        self.pool.prefetch(ids, missing);
    }

    /// Runs `f` on the bytes of a page if it is in memory. Its frame may change hands meanwhile: for hints only, such as
    /// [`PageView::prefetch`].
    #[inline]
    pub fn peek<R>(&self, id: PageId, f: impl FnOnce(PageView<'_>) -> R) -> Option<R> {
        self.pool.peek(id, f)
    }

    /// Adds so many successful [`BufferPool::read_optimistic`]s to the counters; callers who read
    /// several pages in a row say so once.
    #[inline]
    pub fn count_optimistic(&self, pages: u64) {
        self.pool.count_optimistic(pages);
    }

    /// The words of a page's frame that look-ups could touch, if it is in memory: state (pins, usage,
    /// flags), version and latch. For tests that show that they don't.
    pub fn shared_words(&self, id: PageId) -> Option<[u64; 3]> {
        self.pool.shared_words(id)
    }

    /// Evicts pages until so many frames are free, or a quarter of the pool: for somebody who is
    /// about to need that many at a time when it would hold up others.
    ///
    /// # Errors
    /// I/O errors.
    pub fn make_room(&self, frames: usize) -> Result<()> {
        self.pool.make_room(frames)
    }

    /// The content of each frame. Locks nothing; each item is of a moment of its own.
    pub fn contents(&self) -> impl Iterator<Item = FrameInfo> {
        self.pool.contents()
    }

    /// Makes the pool larger or smaller while it is in use; smaller once the pages that have to go
    /// are unpinned and written. The caller holds no latch.
    ///
    /// # Errors
    /// `22023` beyond what was reserved at the start; `55006` when pages stay pinned for as long as
    /// `patience` (the pool is as before); I/O errors.
    pub fn resize(&self, frames: usize, patience: Duration) -> Result<()> {
        self.pool.resize(frames, patience)
    }

    /// Changes the number of partitions of the mapping table while it is in use; rounded up to a power
    /// of two.
    ///
    /// # Errors
    /// When there is no memory for a larger table.
    pub fn set_partitions(&self, partitions: usize) -> Result<()> {
        self.pool.set_partitions(partitions)
    }

    /// Number of partitions of the mapping table.
    pub fn partitions(&self) -> usize {
        self.pool.mapping.partitions()
    }

    /// Number of frames that may be used.
    pub fn frames(&self) -> usize {
        self.pool.len()
    }

    /// Number of frames that have memory: more than [`BufferPool::frames`] while the pool shrinks.
    pub fn frames_held(&self) -> usize {
        self.pool.arena.held()
    }
}

impl Pinned {
    /// # Safety
    /// The caller took a pin on the frame and gives it to the new value.
    unsafe fn from_pinned(frame: &Frame) -> Pinned {
        Pinned { frame: NonNull::from(frame) }
    }

    #[inline]
    fn frame(&self) -> &Frame {
        // SAFETY: the pool keeps its frames while one of them is pinned.
        unsafe { self.frame.as_ref() }
    }

    /// The bytes, whoever changes them.
    fn bytes(&self) -> &Page {
        // SAFETY: the page's memory lives as long as the frame. That nobody writes, or that the
        // reader copes, is the business of the callers: guards and `optimistic`.
        unsafe { self.frame().page().as_ref() }
    }

    fn view(&self) -> PageView<'_> {
        // SAFETY: the page's memory lives as long as the frame, which is pinned.
        unsafe { PageView::of(self.frame().page()) }
    }

    /// Which page this is.
    pub fn id(&self) -> PageId {
        self.frame().id()
    }
    /// Waits for the shared latch.
    #[inline]
    pub fn read(&self) -> ReadGuard<'_> {
        let frame = self.frame();
        frame.latch.lock_shared_on(|| frame.wait_object());
        ReadGuard(self)
    }
    /// Waits for the exclusive latch; the guard keeps the pin.
    #[inline]
    pub fn write(self) -> WriteGuard {
        let frame = self.frame();
        frame.latch.lock_exclusive_on(|| frame.wait_object());
        self.into_guard()
    }
    /// Without waiting; gives the pin back when the latch is taken.
    ///
    /// # Errors
    /// The pin.
    pub fn try_write(self) -> Result<WriteGuard, Pinned> {
        if self.frame().latch.try_lock_exclusive() { Ok(self.into_guard()) } else { Err(self) }
    }

    /// After the exclusive latch was taken.
    fn into_guard(self) -> WriteGuard {
        self.frame().begin_changes();
        WriteGuard { pinned: ManuallyDrop::new(self) }
    }

    /// Reads without latching: runs `f` on the page's bytes, which may change meanwhile, and
    /// returns its result only if no writer held or took the latch. `f` must survive torn bytes.
    #[inline]
    pub fn optimistic<R>(&self, f: impl FnOnce(PageView<'_>) -> R) -> Option<R> {
        let version = self.frame().stable_version()?;
        let result = f(self.view());
        self.frame().still(version).then_some(result)
    }
    /// A second pin on the same page.
    pub fn again(&self) -> Pinned {
        self.frame().pin_again();
        Pinned { frame: self.frame }
    }

    fn hint_or_u16(&self, offset: usize, bits: u16) {
        assert!(offset.is_multiple_of(2) && offset + 2 <= PAGE_SIZE && offset >= PAGE_HEADER);
        // SAFETY: in bounds; aligned since pages are and the offset is even; the page's memory
        // lives as long as the pin.
        let word = unsafe {
            AtomicU16::from_ptr(self.frame().page().cast::<u8>().add(offset).cast().as_ptr())
        };
        let bits = bits.to_le();
        if word.load(Ordering::Relaxed) & bits != bits {
            word.fetch_or(bits, Ordering::Relaxed);
        }
    }
}

impl Drop for Pinned {
    #[inline]
    fn drop(&mut self) {
        self.frame().unpin();
    }
}

impl ReadGuard<'_> {
    /// The page.
    #[inline]
    pub fn page(&self) -> &Page {
        self.0.bytes()
    }
    /// The page as optimistic readers see it.
    #[inline]
    pub fn view(&self) -> PageView<'_> {
        self.0.view()
    }
    /// Sets bits of a little-endian u16 at an even offset, atomically, as a hint: not logged, not
    /// made dirty, may be lost.
    pub fn hint_or_u16(&self, offset: usize, bits: u16) {
        self.0.hint_or_u16(offset, bits);
    }
    /// The page's LSN.
    pub fn lsn(&self) -> Lsn {
        page::lsn(self.page())
    }
}

impl Drop for ReadGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: `Pinned::read` took it.
        unsafe { self.0.frame().latch.unlock_shared() };
    }
}

impl WriteGuard {
    /// Which page this is.
    pub fn id(&self) -> PageId {
        self.pinned.id()
    }
    /// The page.
    #[inline]
    pub fn page(&self) -> &Page {
        self.pinned.bytes()
    }
    /// As [`ReadGuard::hint_or_u16`].
    pub fn hint_or_u16(&self, offset: usize, bits: u16) {
        self.pinned.hint_or_u16(offset, bits);
    }
    /// The page's LSN.
    pub fn lsn(&self) -> Lsn {
        page::lsn(self.page())
    }
    /// Releases the latch, keeps the pin.
    pub fn unlatch(self) -> Pinned {
        let mut guard = ManuallyDrop::new(self);
        guard.release();
        // SAFETY: the guard isn't dropped, so the pin is taken out once.
        unsafe { ManuallyDrop::take(&mut guard.pinned) }
    }

    fn release(&mut self) {
        let frame = self.pinned.frame();
        frame.end_changes();
        // SAFETY: `Pinned::write` or `try_write` took it.
        unsafe { frame.latch.unlock_exclusive() };
    }

    /// The page, to be changed. Only what is also logged may be done to it.
    #[inline]
    pub(crate) fn page_mut(&mut self) -> &mut Page {
        // SAFETY: the exclusive latch is ours, and the guard is borrowed mutably.
        unsafe { self.pinned.frame().page().as_mut() }
    }

    /// The page is about to differ from its file.
    pub(crate) fn make_dirty(&self) {
        let frame = self.pinned.frame();
        if frame.state() & DIRTY == 0 {
            frame.set(DIRTY);
            sched::used(base::usage::Use::BufferDirtied, 1);
        }
    }
}

impl Drop for WriteGuard {
    #[inline]
    fn drop(&mut self) {
        self.release();
        // SAFETY: dropped once, here.
        unsafe { ManuallyDrop::drop(&mut self.pinned) };
    }
}
