//! Large blocks of the heap, each a mapping of its own: no memory stands behind an address before it is written,
//! growing moves addresses and copies nothing, and what is given back is the system's at once.
//!
//! An allocator that copies a block into one twice as large has both in memory for that long; with these a vector that grows
//! never takes more than what has been pushed to it, and whoever pushes looks for interrupts.

use std::alloc::Layout;
use std::ptr;

/// From this size on a block is a mapping. Smaller ones are copied faster than the system makes new pages.
const LEAST_BYTES: usize = 32 << 20;

/// No mapping is aligned to more than a page.
const PAGE: usize = 4096;

/// Whether such a block is a mapping.
#[inline]
pub(crate) fn is(layout: Layout) -> bool {
    layout.size() >= LEAST_BYTES && layout.align() <= PAGE
}

/// A block of zeros; null when there is no room.
#[cold]
pub(crate) fn map(bytes: usize) -> *mut u8 {
    // SAFETY: a fresh anonymous mapping touches nothing that exists.
    let place = unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        libc::mmap(ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
    };
    if place == libc::MAP_FAILED { ptr::null_mut() } else { place.cast() }
}

/// Gives a block of [`map`] back.
///
/// # Safety
/// It has this size, and nobody looks at it any more.
#[cold]
pub(crate) unsafe fn unmap(place: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { libc::munmap(place.cast(), bytes) };
}

/// Gives a block of [`map`] another size, maybe at another address; null, and it stays as it was, when there is no room.
///
/// # Safety
/// It has this size, and nobody keeps its address.
#[cold]
pub(crate) unsafe fn remap(place: *mut u8, bytes: usize, new_bytes: usize) -> *mut u8 {
    // SAFETY: the caller's promise.
    let place = unsafe { libc::mremap(place.cast(), bytes, new_bytes, libc::MREMAP_MAYMOVE) };
    if place == libc::MAP_FAILED { ptr::null_mut() } else { place.cast() }
}
