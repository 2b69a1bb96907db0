//! Memory straight from the system: zero, page-aligned, touched only when used.

use std::io;
use std::ptr::NonNull;

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
    /// `len` zero bytes.
    pub(crate) fn new(len: usize) -> io::Result<Region> {
        // SAFETY: a fresh anonymous mapping touches nothing that exists.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        match NonNull::new(base.cast::<u8>()) {
            Some(base) if base.as_ptr().cast() != libc::MAP_FAILED => Ok(Region { base, len }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Asks for large memory pages, which save address translations; may be ignored.
    pub(crate) fn prefer_huge_pages(&self) {
        // SAFETY: advice about our own mapping.
        unsafe { libc::madvise(self.base.as_ptr().cast(), self.len, libc::MADV_HUGEPAGE) };
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
