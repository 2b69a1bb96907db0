//! The frames and the memory of their pages: addresses for as many as there may ever be are reserved
//! once, and used as far as `shared_buffers` says at the moment.
//!
//! ```text
//!  frames   0 ......... active ......... made ............ most
//!           in use    |  retired      |  not made yet    |
//! ```
//!
//! A frame that was made stays for good, so that a reference to it never dangles; when the pool
//! shrinks the frames at the end are emptied, marked RETIRED, and the memory of their pages is given
//! back. They come back first when it grows.

use std::io;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::frame::Frame;
use crate::memory::Region;
use crate::page::{PAGE_SIZE, Page};

/// Bytes of a page that are prefetched: a heap page's line pointers and half of a full B-tree page's slots.
const FIRST_BYTES: usize = 6 * 64;
const HUGE_FROM: usize = 64 << 20;
/// Frames for each run that may wait for the disk: what it has pinned, what is read for it, and as many again
/// that stay in the pool.
const FRAMES_OF_A_WAIT: usize = 8;

/// See the module.
pub(super) struct Arena {
    headers: ManuallyDrop<Region>,
    pages: ManuallyDrop<Region>,
    active: AtomicUsize,
    made: AtomicUsize,
    /// Frames below this number may have memory.
    held: AtomicUsize,
    most: usize,
}

impl Arena {
    /// `count` frames, and room for `most`.
    pub(super) fn new(count: usize, most: usize) -> io::Result<Arena> {
        let arena = Arena {
            headers: ManuallyDrop::new(Region::reserve(most * size_of::<Frame>())?),
            pages: ManuallyDrop::new(Region::reserve(most * PAGE_SIZE)?),
            active: AtomicUsize::new(0),
            made: AtomicUsize::new(0),
            held: AtomicUsize::new(0),
            most,
        };
        arena.make(count)?;
        arena.set_active(count);
        Ok(arena)
    }

    /// All frames that were ever made.
    #[inline]
    pub(super) fn frames(&self) -> &[Frame] {
        // SAFETY: that many were written before the count was published, at an aligned address that
        // lives as long as the arena.
        unsafe {
            let base = self.headers.at(0).cast::<Frame>().as_ptr();
            std::slice::from_raw_parts(base, self.made.load(Ordering::Acquire))
        }
    }

    /// Prefetches the beginning of a frame's page.
    #[inline]
    pub(super) fn prefetch(&self, index: usize) {
        self.pages.prefetch(index * PAGE_SIZE, FIRST_BYTES);
    }

    /// Prefetches a frame, too, and of its page what a heap page's line pointers take.
    #[inline]
    pub(super) fn prefetch_with_frame(&self, index: usize) {
        self.headers.prefetch(index * size_of::<Frame>(), size_of::<Frame>());
        self.pages.prefetch(index * PAGE_SIZE, FIRST_BYTES / 2);
    }

    /// How many of them are in use.
    pub(super) fn active(&self) -> usize {
        self.active.load(Ordering::Acquire)
    }

    pub(super) fn set_active(&self, count: usize) {
        debug_assert!(count <= self.made.load(Ordering::Acquire));
        self.held.fetch_max(count, Ordering::AcqRel);
        self.active.store(count, Ordering::Release);
        sched::limit_disk_waits((count / FRAMES_OF_A_WAIT).max(2));
    }

    /// How many frames may have memory for their pages.
    pub(super) fn held(&self) -> usize {
        self.held.load(Ordering::Acquire)
    }

    /// The largest number of frames.
    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// Makes frames, claimed, until there are `count`. One caller at a time.
    pub(super) fn make(&self, count: usize) -> io::Result<()> {
        let made = self.made.load(Ordering::Acquire);
        if count <= made {
            return Ok(());
        }
        assert!(count <= self.most, "the arena has room for {} frames", self.most);
        self.headers.commit(made * size_of::<Frame>(), count * size_of::<Frame>())?;
        self.pages.commit(made * PAGE_SIZE, count * PAGE_SIZE)?;
        if (count - made) * PAGE_SIZE >= HUGE_FROM {
            self.headers.prefer_huge_pages(made * size_of::<Frame>(), count * size_of::<Frame>());
            self.pages.prefer_huge_pages(made * PAGE_SIZE, count * PAGE_SIZE);
        }
        for index in made..count {
            let page = self.pages.at(index * PAGE_SIZE).cast::<Page>();
            let place = self.headers.at(index * size_of::<Frame>()).cast::<Frame>();
            // SAFETY: committed above, aligned, and beyond what anybody looks at so far.
            unsafe { place.write(Frame::new(index as u32, page)) };
        }
        self.made.store(count, Ordering::Release);
        Ok(())
    }

    /// Gives back the memory of retired frames' pages.
    pub(super) fn release_retired(&self) {
        let (from, to) = (self.active(), self.made.load(Ordering::Acquire));
        if from < to {
            // SAFETY: their frames are claimed and hold no page: a pinner takes its pin back before it
            // looks at bytes, and an optimistic reader finds that the version is odd or has moved.
            unsafe { self.pages.release(from * PAGE_SIZE, to * PAGE_SIZE) };
        }
        self.held.store(from, Ordering::Release);
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // A pin that outlives the pool keeps its page: then nothing is freed.
        if self.frames().iter().any(Frame::is_pinned) {
            return;
        }
        // SAFETY: no pin, and without the pool none can come; each is dropped once.
        unsafe {
            ManuallyDrop::drop(&mut self.headers);
            ManuallyDrop::drop(&mut self.pages);
        }
    }
}
