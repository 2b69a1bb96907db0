//! Which page is in which frame: a hash table of chains that run through the frames themselves.
//!
//! A bucket holds the number of its chain's first frame, a frame that of the next one. Whoever
//! changes a chain holds the exclusive lock of the bucket's partition. Readers take no lock: they
//! walk, and a pin on the frame decides whether they found it ([`Frame::pin_as`]). A reader that
//! meets a change can miss an entry or stray into another chain (all numbers are frames, so that is
//! harmless; the number of steps is bounded). Who found nothing looks again under the lock.
//!
//! The table grows and shrinks with the pool: whoever holds all the partitions' locks may change the
//! number of buckets and link every chain anew ([`Mapping::resize`]); to readers that is a change
//! like any other. A bucket's partition does not depend on the number of buckets.
//!
//! The number of partitions changes in the same way. Whoever has got a lock looks whether it is still
//! the bucket's; it was not taken in vain if it is, since a change of the number needs that lock too.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use base::settings::{live_enum, live_int, setting};
use base::{PageId, WaitEvent};
use crossbeam_utils::CachePadded;
use sched::RawLwLock;

use super::arena::Arena;
use super::frame::Frame;
use crate::memory::Region;

const STEPS_MAX: usize = 64;
/// Buckets that share a cache line, as a power of two.
const NEIGHBOURS: u32 = 4;
const PARTITIONS_MAX: usize = 1 << 16;

fn buckets_for(frames: usize, partitions: usize) -> usize {
    (frames * 2).next_power_of_two().max(partitions)
}

/// Works for that long, as one does that waits for a cache line: `buffer_lookup_hold`.
fn hold(time: Duration) {
    if !time.is_zero() {
        let began = Instant::now();
        while began.elapsed() < time {
            std::hint::spin_loop();
        }
    }
}

/// See the module.
pub(super) struct Mapping {
    /// Room for the buckets of the largest pool.
    memory: Region,
    /// Number of buckets now, less one; they are a power of two, and at least the partitions.
    mask: AtomicUsize,
    /// Number of partitions now, less one.
    partition_mask: AtomicUsize,
    /// Lock `i`, in the row of its highest bit (0 in the first row), so that rows are made when they are
    /// first needed and stay where they are.
    locks: [OnceLock<Box<[CachePadded<RawLwLock>]>>; LOCK_ROWS],
}

/// Rows of locks for the most partitions.
const LOCK_ROWS: usize = PARTITIONS_MAX.trailing_zeros() as usize + 1;

/// The number of partitions made for a wish for so many.
fn fitting(partitions: usize) -> usize {
    partitions.clamp(1, PARTITIONS_MAX).next_power_of_two()
}

/// A page's bucket, whatever the number of buckets: the hash of its name.
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
    /// Buckets for `frames`, and room for those of `most`.
    pub(super) fn new(frames: usize, most: usize, partitions: usize) -> io::Result<Mapping> {
        let partitions = fitting(partitions);
        let room = buckets_for(most.max(frames), PARTITIONS_MAX);
        let count = buckets_for(frames, partitions);
        let memory = Region::reserve(room * size_of::<AtomicU32>())?;
        memory.commit(0, count * size_of::<AtomicU32>())?;
        memory.prefer_huge_pages(0, count * size_of::<AtomicU32>());
        Ok(Mapping {
            memory,
            mask: AtomicUsize::new(count - 1),
            partition_mask: AtomicUsize::new(partitions - 1),
            locks: [const { OnceLock::new() }; LOCK_ROWS],
        })
    }

    /// Number of partitions.
    pub(super) fn partitions(&self) -> usize {
        self.partition_mask.load(Ordering::Acquire) + 1
    }

    /// Makes the number of buckets fit a pool of `frames`, and changes that of partitions. Locks all
    /// partitions for the time it takes to link the pages anew. One caller at a time.
    pub(super) fn resize(&self, frames: usize, partitions: usize, all: &[Frame]) -> io::Result<()> {
        let (old_partitions, partitions) = (self.partitions(), fitting(partitions));
        let (before, count) = (self.buckets().len(), buckets_for(frames, partitions));
        if count == before && partitions == old_partitions {
            return Ok(());
        }
        let bytes = |n: usize| n * size_of::<AtomicU32>();
        self.memory.commit(0, bytes(count.max(before)))?;
        self.memory.prefer_huge_pages(0, bytes(count.max(before)));
        let locks = 0..old_partitions.max(partitions);
        let held: Vec<Partition<'_>> = locks.map(|i| self.lock_nth(i)).collect();
        self.partition_mask.store(partitions - 1, Ordering::Release);
        let mut linked = Vec::new();
        for bucket in self.buckets() {
            let mut at = bucket.swap(0, Ordering::AcqRel);
            while at != 0 {
                linked.push(at);
                at = all[at as usize - 1].next.load(Ordering::Relaxed);
            }
        }
        self.mask.store(count - 1, Ordering::Release);
        for at in linked {
            let frame = &all[at as usize - 1];
            held[0].link(self.bucket(frame.id()), frame);
        }
        drop(held);
        if count < before {
            // SAFETY: all zero, and nobody writes beyond the mask; a reader with the old one finds
            // an empty chain.
            unsafe { self.memory.release(bytes(count), bytes(before)) };
        }
        Ok(())
    }

    #[inline]
    fn buckets(&self) -> &[AtomicU32] {
        let count = self.mask.load(Ordering::Acquire) + 1;
        // SAFETY: that many were committed before the mask was published, and never less is
        // readable; zero bytes are valid; the memory lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.memory.at(0).cast().as_ptr(), count) }
    }

    /// The bucket's chain. Its place changes only while all partitions are locked.
    #[inline]
    fn chain(&self, bucket: Bucket) -> &AtomicU32 {
        let buckets = self.buckets();
        &buckets[bucket.0 & (buckets.len() - 1)]
    }

    /// Where a page belongs. Neighbours in a file have neighbouring buckets, as many as share a cache line:
    /// of a table that is all in memory one line in so many is then looked at, and those stay in the
    /// processor's cache. Their partitions are neighbours, too, so they do not share a lock.
    #[inline]
    pub(super) fn bucket(&self, id: PageId) -> Bucket {
        let group = u64::from(id.rel.0) << 32 | u64::from(id.block) >> NEIGHBOURS;
        let mixed = (group ^ (id.fork as u64) << 61).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let own = id.block as usize & ((1 << NEIGHBOURS) - 1);
        Bucket(((mixed ^ mixed >> 32) as usize) << NEIGHBOURS | own)
    }

    /// The number of the first frame in a page's chain, which is the page's in most cases; None: the page is not in memory.
    #[inline]
    pub(super) fn first_in_chain(&self, id: PageId) -> Option<usize> {
        (self.chain(self.bucket(id)).load(Ordering::Relaxed) as usize).checked_sub(1)
    }

    /// A frame that had the page's name when it was looked at, found without a lock.
    #[inline]
    pub(super) fn find<'f>(
        &self,
        arena: &'f Arena,
        bucket: Bucket,
        id: PageId,
    ) -> Option<&'f Frame> {
        let (mut at, frames) = (self.chain(bucket).load(Ordering::Acquire), arena.frames());
        // Most chains have one frame: its page and its header come from memory at the same time.
        arena.prefetch((at as usize).saturating_sub(1));
        for _ in 0..STEPS_MAX {
            let frame = frames.get((at as usize).wrapping_sub(1))?;
            if frame.is(id) {
                return Some(frame);
            }
            at = frame.next.load(Ordering::Acquire);
        }
        None
    }

    /// Pins the page's frame if it is found without waiting for those who change the chain; returns
    /// the state before, too. With `buffer_lookup = locked` under the partition's shared lock.
    #[inline]
    pub(super) fn pin<'f>(
        &self,
        arena: &'f Arena,
        bucket: Bucket,
        id: PageId,
        raise: bool,
    ) -> Option<(&'f Frame, u64)> {
        if live_enum(setting::BUFFER_LOOKUP) != 0 {
            return self.pin_locked(arena, bucket, id, raise);
        }
        let frame = self.find(arena, bucket, id)?;
        frame.pin_as(id, raise).map(|state| (frame, state))
    }

    #[cold]
    fn pin_locked<'f>(
        &self,
        arena: &'f Arena,
        bucket: Bucket,
        id: PageId,
        raise: bool,
    ) -> Option<(&'f Frame, u64)> {
        let lock = loop {
            let partition = self.partition_of(bucket);
            let lock = self.nth_lock(partition);
            lock.lock_shared();
            if self.partition_of(bucket) == partition {
                break lock;
            }
            // SAFETY: taken just now.
            unsafe { lock.unlock_shared() };
        };
        let found = self.find(arena, bucket, id);
        let pinned = found.and_then(|frame| frame.pin_as(id, raise).map(|state| (frame, state)));
        hold(Duration::from_micros(live_int(setting::BUFFER_LOOKUP_HOLD).unsigned_abs()));
        // SAFETY: taken above.
        unsafe { lock.unlock_shared() };
        pinned
    }

    fn partition_of(&self, bucket: Bucket) -> usize {
        bucket.0 & self.partition_mask.load(Ordering::Acquire)
    }

    /// Locks the bucket's partition for changes.
    pub(super) fn lock(&self, bucket: Bucket) -> Partition<'_> {
        loop {
            let partition = self.partition_of(bucket);
            let held = self.lock_nth(partition);
            if self.partition_of(bucket) == partition {
                return held;
            }
        }
    }

    fn nth_lock(&self, number: usize) -> &RawLwLock {
        let (row, first) = match number {
            0 => (0, 0),
            number => (number.ilog2() as usize + 1, 1 << number.ilog2()),
        };
        let locks = self.locks[row].get_or_init(|| {
            let lock = |_| CachePadded::new(RawLwLock::new(WaitEvent::LWLockBufferMapping));
            (0..first.max(1)).map(lock).collect()
        });
        &locks[number - first]
    }

    fn lock_nth(&self, partition: usize) -> Partition<'_> {
        let lock = self.nth_lock(partition);
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
        let mut at = self.mapping.chain(bucket).load(Ordering::Relaxed);
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
        let head = self.mapping.chain(bucket);
        frame.next.store(head.load(Ordering::Relaxed), Ordering::Release);
        head.store(frame.index + 1, Ordering::Release);
    }

    /// Takes a frame out of the chain. Its own `next` stays, for readers that are on it.
    pub(super) fn unlink(&self, frames: &[Frame], bucket: Bucket, frame: &Frame) {
        let mut place = self.mapping.chain(bucket);
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
