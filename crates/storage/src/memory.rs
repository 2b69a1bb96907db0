//! Memory straight from the system: zero, page-aligned, touched only when used; reserved as a
//! range of addresses first and made usable piece by piece.

use std::io;
use std::ptr::NonNull;

use crate::page::{PAGE_SIZE, Page};

/// Bytes of memory that the machine has.
pub fn memory_of_machine() -> usize {
    // SAFETY: no pointers; -1 when the system doesn't know.
    let (pages, size) =
        unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    usize::try_from(pages).unwrap_or(0) * usize::try_from(size).unwrap_or(0)
}

const LINE: usize = 64;

/// Prefetches all cache lines with these bytes, whatever the addresses are.
#[inline]
pub(crate) fn prefetch_bytes(from: *const u8, len: usize) {
    let first = from.addr() & !(LINE - 1);
    (first..from.addr() + len).step_by(LINE).for_each(sched::prefetch_line);
}

/// Prefetches a page, all of which is about to be read, and not from its beginning to its end.
#[inline]
pub fn prefetch_page(page: &Page) {
    prefetch_bytes(page.as_ptr(), PAGE_SIZE);
}

/// A mapped range of bytes.
pub(crate) struct Region {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: plain memory; who may touch which byte is the owner's business.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// A range of addresses that can't be touched yet and costs nothing.
    pub(crate) fn reserve(len: usize) -> io::Result<Region> {
        // SAFETY: a fresh anonymous mapping touches nothing that exists.
        let base = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            libc::mmap(std::ptr::null_mut(), len, libc::PROT_NONE, flags, -1, 0)
        };
        match NonNull::new(base.cast::<u8>()) {
            Some(base) if base.as_ptr().cast() != libc::MAP_FAILED => Ok(Region { base, len }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Makes bytes usable, as zeros if they weren't before.
    pub(crate) fn commit(&self, from: usize, to: usize) -> io::Result<()> {
        let (from, to) = self.whole_pages(from, to);
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: part of our own mapping.
        let failed = unsafe { libc::mprotect(self.at(from).as_ptr().cast(), to - from, access) };
        if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Gives the memory of bytes back; they are zero afterwards.
    ///
    /// # Safety
    /// Nobody looks at them meanwhile, or relies on what they held.
    pub(crate) unsafe fn release(&self, from: usize, to: usize) {
        // SAFETY: part of our own mapping; the caller gives up the content.
        unsafe { libc::madvise(self.at(from).as_ptr().cast(), to - from, libc::MADV_DONTNEED) };
    }

    /// Prefetches the first bytes from an offset on.
    #[inline]
    pub(crate) fn prefetch(&self, offset: usize, bytes: usize) {
        prefetch_bytes(self.base.as_ptr().wrapping_add(offset), bytes);
    }

    /// Asks for large memory pages, which save address translations; may be ignored.
    pub(crate) fn prefer_huge_pages(&self, from: usize, to: usize) {
        let (from, to) = self.whole_pages(from, to);
        // SAFETY: advice about our own mapping.
        unsafe { libc::madvise(self.at(from).as_ptr().cast(), to - from, libc::MADV_HUGEPAGE) };
    }

    /// The range rounded outwards to the system's pages.
    fn whole_pages(&self, from: usize, to: usize) -> (usize, usize) {
        const PAGE: usize = 4096;
        (from / PAGE * PAGE, to.next_multiple_of(PAGE).min(self.len.next_multiple_of(PAGE)))
    }

    /// The byte at an offset.
    pub(crate) fn at(&self, offset: usize) -> NonNull<u8> {
        debug_assert!(offset < self.len);
        // SAFETY: inside the mapping.
        unsafe { self.base.add(offset) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: our own mapping, which nothing refers to any more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
    }
}
