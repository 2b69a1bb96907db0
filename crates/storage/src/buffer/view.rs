//! A page's bytes as somebody sees them who has no latch: they may change at any moment.
//!
//! All reads are volatile loads of one number, so each value that a method returns was read once and
//! stays what it is, whatever a writer does meanwhile; no reference to the bytes is ever handed out.
//! A number may be half old and half new, and two numbers may belong to different states of the
//! page. So offsets and lengths that come from the page are checked here against its bounds, and the
//! reader's result counts only when the frame's version has not moved (see
//! [`super::Pinned::optimistic`] and [`super::BufferPool::read_optimistic`]).
//!
//! Writers change the same bytes by plain stores under the exclusive latch. That is outside Rust's
//! memory model (a seqlock over plain bytes always is) and sound where it matters: the compiler may
//! not repeat or invent a volatile load, nor conclude anything from its result. Aligned atomic words
//! would be no more inside the model, since the stores are plain, and a key begins at any offset: they
//! cost two loads and three operations for each eight bytes.

use std::cmp::Ordering;
use std::marker::PhantomData;
use std::ptr::NonNull;

use crate::memory;
use crate::page::{PAGE_SIZE, Page};

/// See the module.
#[derive(Clone, Copy)]
pub struct PageView<'a>(NonNull<u8>, PhantomData<&'a Page>);

/// A number at any offset.
#[repr(C, packed)]
struct Unaligned<T>(T);

impl PageView<'_> {
    /// # Safety
    /// The page is in a frame whose memory lives as long as the view.
    #[inline]
    pub(super) unsafe fn of<'a>(page: NonNull<Page>) -> PageView<'a> {
        PageView(page.cast(), PhantomData)
    }

    /// # Safety
    /// The number lies in the page, and any bytes make one.
    #[inline]
    unsafe fn load<T: Copy>(self, at: usize) -> T {
        debug_assert!(at + size_of::<T>() <= PAGE_SIZE);
        // SAFETY: in the page's memory, which lives as long as the view; a packed type has no
        // alignment; the caller vouches for the rest.
        unsafe { self.0.add(at).cast::<Unaligned<T>>().read_volatile().0 }
    }

    /// Prefetches so many bytes from `at` on.
    #[inline]
    pub fn prefetch(self, at: usize, len: usize) {
        memory::prefetch_bytes(
            self.0.as_ptr().wrapping_add(at),
            len.min(PAGE_SIZE.saturating_sub(at)),
        );
    }

    /// The little-endian u16 at `at`; 0 where the page ends before.
    #[inline]
    pub fn u16(self, at: usize) -> u16 {
        // SAFETY: bounds checked.
        if at + 2 <= PAGE_SIZE { u16::from_le(unsafe { self.load(at) }) } else { 0 }
    }

    /// The little-endian u32 at `at`; 0 where the page ends before.
    #[inline]
    pub fn u32(self, at: usize) -> u32 {
        // SAFETY: bounds checked.
        if at + 4 <= PAGE_SIZE { u32::from_le(unsafe { self.load(at) }) } else { 0 }
    }

    /// Compares `len` bytes from `at` on with `other`, as `memcmp` does, a shorter string before its
    /// continuations; None when they reach beyond the page.
    #[inline]
    pub fn compare(self, at: usize, len: usize, other: &[u8]) -> Option<Ordering> {
        if at + len > PAGE_SIZE {
            return None;
        }
        // SAFETY: checked just now.
        let order = unsafe { self.compare_same(at, &other[..len.min(other.len())]) };
        Some(order.then(len.cmp(&other.len())))
    }

    /// Compares as many bytes as `other` has. The last eight (or four) overlap those before, so that
    /// there is no remainder.
    ///
    /// # Safety
    /// That many bytes lie in the page.
    #[inline]
    unsafe fn compare_same(self, at: usize, other: &[u8]) -> Ordering {
        // SAFETY: below `other`'s length, in all cases.
        let eight = |from: usize| u64::from_be(unsafe { self.load(at + from) });
        // SAFETY: likewise.
        let four = |from: usize| u32::from_be(unsafe { self.load(at + from) });
        let len = other.len();
        let mut done = 0;
        while let Some(chunk) = other[done..].first_chunk() {
            match eight(done).cmp(&u64::from_be_bytes(*chunk)) {
                Ordering::Equal => done += 8,
                unequal => return unequal,
            }
        }
        if done == len {
            return Ordering::Equal;
        }
        if let Some(last) = other.last_chunk() {
            return eight(len - 8).cmp(&u64::from_be_bytes(*last));
        }
        if let (Some(first), Some(last)) = (other.first_chunk(), other.last_chunk()) {
            let order = four(0).cmp(&u32::from_be_bytes(*first));
            return order.then_with(|| four(len - 4).cmp(&u32::from_be_bytes(*last)));
        }
        // SAFETY: below `other`'s length.
        let own = |i: usize| unsafe { self.load::<u8>(at + i) };
        (0..len).map(own).cmp(other.iter().copied())
    }

    /// Copies bytes from `at` on; None when they reach beyond the page.
    #[inline]
    pub fn copy<const N: usize>(self, at: usize) -> Option<[u8; N]> {
        // SAFETY: bounds checked.
        (at + N <= PAGE_SIZE).then(|| unsafe { self.load(at) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Few different bytes, so that strings have beginnings in common.
    fn page(seed: u64) -> Box<Page> {
        let mut x = seed;
        let bytes: Vec<u8> = (0..PAGE_SIZE)
            .map(|_| {
                x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (x >> 60) as u8 & 1
            })
            .collect();
        bytes.into_boxed_slice().try_into().unwrap()
    }

    fn view(page: &mut Page) -> PageView<'_> {
        // SAFETY: the page is borrowed for as long as the view.
        unsafe { PageView::of(NonNull::from(page)) }
    }

    #[test]
    fn values_at_any_offset_are_those_of_the_bytes() {
        let mut page = page(7);
        let plain = page.clone();
        let view = view(&mut page);
        for at in (0..64).chain(PAGE_SIZE - 24..PAGE_SIZE - 13) {
            assert_eq!(view.u16(at), u16::from_le_bytes(plain[at..at + 2].try_into().unwrap()));
            assert_eq!(view.u32(at), u32::from_le_bytes(plain[at..at + 4].try_into().unwrap()));
            assert_eq!(view.copy::<13>(at).unwrap(), plain[at..at + 13]);
        }
    }

    #[test]
    fn strings_compare_as_slices_do() {
        let mut page = page(11);
        let plain = page.clone();
        let view = view(&mut page);
        for at in 0..40 {
            for len in 0..20 {
                for other in 0..40 {
                    for other_len in [0, 1, 7, 8, 9, 15, 16, 17] {
                        let other = &plain[other..other + other_len];
                        let expected = plain[at..at + len].cmp(other);
                        assert_eq!(view.compare(at, len, other), Some(expected));
                    }
                }
            }
        }
    }

    #[test]
    fn what_reaches_beyond_the_page_is_refused() {
        let mut page = page(3);
        let view = view(&mut page);
        assert_eq!(view.compare(PAGE_SIZE - 4, 5, b"abcde"), None);
        assert!(view.compare(PAGE_SIZE - 5, 5, b"abcde").is_some());
        assert_eq!(view.copy::<6>(PAGE_SIZE - 5), None);
        assert_eq!(view.u32(PAGE_SIZE), 0);
        assert_eq!(view.u16(usize::from(u16::MAX)), 0);
    }
}
