//! Which page is in which frame: a hash table of chains that run through the frames themselves.
//!
//! A bucket holds the number of its chain's first frame, a frame that of the next one. Whoever
//! changes a chain holds the exclusive lock of the bucket's partition. Readers take no lock: they
//! walk, and a pin on the frame decides whether they found it ([`Frame::pin_as`]). A reader that
//! meets a change can miss an entry or stray into another chain (all numbers are frames, so that is
//! harmless; the number of steps is bounded). Who found nothing looks again under the lock.

use std::sync::atomic::{AtomicU32, Ordering};

use base::{PageId, WaitEvent};
use crossbeam_utils::CachePadded;
use sched::RawLwLock;

use super::frame::Frame;

const STEPS_MAX: usize = 64;

/// See the module.
pub(super) struct Mapping {
    buckets: Box<[AtomicU32]>,
    locks: Box<[CachePadded<RawLwLock>]>,
}

/// A page's bucket.
#[derive(Clone, Copy)]
pub(super) struct Bucket(usize);

/// A partition's exclusive lock, held.
pub(super) struct Partition<'a> {
    mapping: &'a Mapping,
    lock: &'a RawLwLock,
}

impl Drop for Partition<'_> {
    fn drop(&mut self) {
        // SAFETY: `Mapping::lock` took it exclusively.
        unsafe { self.lock.unlock_exclusive() };
    }
}

impl Mapping {
    pub(super) fn new(frames: usize, partitions: usize) -> Mapping {
        let partitions = partitions.clamp(1, 1 << 16).next_power_of_two();
        let buckets = (frames * 2).next_power_of_two().max(partitions);
        let lock = |_| CachePadded::new(RawLwLock::new(WaitEvent::LWLockBufferMapping));
        Mapping {
            buckets: (0..buckets).map(|_| AtomicU32::new(0)).collect(),
            locks: (0..partitions).map(lock).collect(),
        }
    }

    /// Where a page belongs.
    #[inline]
    pub(super) fn bucket(&self, id: PageId) -> Bucket {
        let name = u64::from(id.rel.0) << 32 | u64::from(id.block);
        let mixed = (name ^ (id.fork as u64) << 61).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Bucket((mixed ^ mixed >> 32) as usize & (self.buckets.len() - 1))
    }

    /// Pins the page's frame if it is found without a lock; returns the state before, too.
    #[inline]
    pub(super) fn pin<'f>(
        &self,
        frames: &'f [Frame],
        bucket: Bucket,
        id: PageId,
        raise: bool,
    ) -> Option<(&'f Frame, u64)> {
        let mut at = self.buckets[bucket.0].load(Ordering::Acquire);
        for _ in 0..STEPS_MAX {
            let frame = frames.get((at as usize).wrapping_sub(1))?;
            if frame.is(id) {
                return frame.pin_as(id, raise).map(|state| (frame, state));
            }
            at = frame.next.load(Ordering::Acquire);
        }
        None
    }

    /// Locks the bucket's partition for changes.
    pub(super) fn lock(&self, bucket: Bucket) -> Partition<'_> {
        let lock = &self.locks[bucket.0 & (self.locks.len() - 1)];
        lock.lock_exclusive();
        Partition { mapping: self, lock }
    }
}

impl Partition<'_> {
    /// The frame with this name, claimed or not.
    pub(super) fn find<'f>(
        &self,
        frames: &'f [Frame],
        bucket: Bucket,
        id: PageId,
    ) -> Option<&'f Frame> {
        let mut at = self.mapping.buckets[bucket.0].load(Ordering::Relaxed);
        while at != 0 {
            let frame = &frames[at as usize - 1];
            if frame.is(id) {
                return Some(frame);
            }
            at = frame.next.load(Ordering::Relaxed);
        }
        None
    }

    /// Puts a frame at the chain's front.
    pub(super) fn link(&self, bucket: Bucket, frame: &Frame) {
        let head = &self.mapping.buckets[bucket.0];
        frame.next.store(head.load(Ordering::Relaxed), Ordering::Release);
        head.store(frame.index + 1, Ordering::Release);
    }

    /// Takes a frame out of the chain. Its own `next` stays, for readers that are on it.
    pub(super) fn unlink(&self, frames: &[Frame], bucket: Bucket, frame: &Frame) {
        let mut place = &self.mapping.buckets[bucket.0];
        loop {
            let at = place.load(Ordering::Relaxed);
            assert!(at != 0, "a mapped frame is in its bucket's chain");
            if at == frame.index + 1 {
                place.store(frame.next.load(Ordering::Relaxed), Ordering::Release);
                return;
            }
            place = &frames[at as usize - 1].next;
        }
    }
}
