//! The log buffers: a ring of bytes between those who insert and the WAL writer.
//!
//! Byte `p` of the log lives at `p mod size`. Who may touch it:
//!
//! ```text
//!        written                 complete             position          written + size
//!  free  |  complete records     |  being copied in   |  reserved by none   |
//!        |  the writer's         |  their inserters'  |  zero               |
//! ```
//!
//! * Invariant Z: every byte from `complete` on that has not been copied in yet is zero. The writer
//!   clears what it has written before it gives the space away (moves `written`).
//! * A record's inserter copies everything but the first four bytes, the length, and then stores
//!   the length with Release. Records begin at multiples of 8, so the length is one aligned word
//!   and never wraps round.
//! * The writer walks from `complete`: a zero length (Acquire) is a record that isn't there yet;
//!   any other moves `complete` over the whole record. So it needs no slots, no locks, and costs
//!   inserters nothing but their own bytes.
//! * An inserter waits until `end <= limit` before it copies. The writer keeps `limit` at `written +
//!   size`, so nobody touches bytes that are not its own.
//! * The size changes while the ring is in use ([`Ring::resize`]), by the writer alone and at a moment
//!   when nobody copies and everything in it is zero; [`super::writer`] says how it finds one.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::record;
use crate::memory::Region;

/// See the module.
pub(crate) struct Ring {
    /// Addresses for the largest ring; as much as `size` is usable.
    memory: Region,
    size: AtomicU64,
}

/// Bytes of the largest ring.
const SIZE_MAX: usize = 2 << 30;

/// The size made for a wish for so many bytes: a power of two, at least 1 MiB.
pub(crate) fn fitting(size: usize) -> u64 {
    size.clamp(1 << 20, SIZE_MAX).next_power_of_two() as u64
}

impl Ring {
    /// A ring of zeros, of [`fitting`] size (the largest record, a mini-transaction with images of many
    /// pages, has to fit twice).
    pub(crate) fn new(size: usize) -> std::io::Result<Ring> {
        let size = fitting(size);
        let memory = Region::reserve(SIZE_MAX)?;
        memory.commit(0, size as usize)?;
        Ok(Ring { memory, size: AtomicU64::new(size) })
    }

    /// Bytes in the ring. For those whose space is theirs it stays the same: they have read `limit`,
    /// which was written after the size.
    #[inline]
    pub(crate) fn size(&self) -> u64 {
        self.size.load(Ordering::Relaxed)
    }

    /// Changes the size, to one that [`fitting`] answered.
    ///
    /// # Safety
    /// The caller is the writer, all bytes of the ring are zero, and nobody copies until the caller
    /// has moved `limit`.
    pub(crate) unsafe fn resize(&self, size: u64) -> std::io::Result<()> {
        let before = self.size() as usize;
        self.memory.commit(0, before.max(size as usize))?;
        self.size.store(size, Ordering::Release);
        if (size as usize) < before {
            // SAFETY: by the caller's word nobody looks at the ring, and zeros stay zeros.
            unsafe { self.memory.release(size as usize, before) };
        }
        Ok(())
    }

    fn at(&self, position: u64) -> NonNull<u8> {
        self.memory.at((position & (self.size() - 1)) as usize)
    }

    fn length_word(&self, position: u64) -> &AtomicU32 {
        debug_assert!(position.is_multiple_of(8));
        // SAFETY: in bounds and aligned, since position is a multiple of 8 and the region begins on
        // a page; all accesses to a first word that race are through this atomic.
        unsafe { self.at(position).cast::<AtomicU32>().as_ref() }
    }

    /// Length of the record at `position`; 0 while it isn't complete.
    pub(crate) fn complete_len(&self, position: u64) -> u32 {
        record::len_of(u32::from_le(self.length_word(position).load(Ordering::Acquire)))
    }

    /// Copies a record (whole, or a filler's header) to its place and completes it.
    ///
    /// # Safety
    /// The caller has reserved `start..` for itself, and it lies below `limit`.
    pub(crate) unsafe fn copy_in(&self, start: u64, record: &[u8]) {
        // SAFETY: the caller's space.
        unsafe { self.copy(start + 4, &record[4..]) };
        let len = u32::from_le_bytes([record[0], record[1], record[2], record[3]]);
        self.length_word(start).store(len.to_le(), Ordering::Release);
    }

    /// # Safety
    /// The bytes are the caller's.
    unsafe fn copy(&self, start: u64, bytes: &[u8]) {
        let first = bytes.len().min((self.size() - (start & (self.size() - 1))) as usize);
        let (head, tail) = bytes.split_at(first);
        // SAFETY: in bounds: the head ends at the ring's end at the latest, and the tail begins at
        // its start; nobody else touches these bytes, by the caller's word.
        unsafe {
            self.at(start).copy_from_nonoverlapping(NonNull::from(head).cast(), head.len());
            self.memory.at(0).copy_from_nonoverlapping(NonNull::from(tail).cast(), tail.len());
        }
    }

    /// Complete bytes in one or two pieces.
    ///
    /// # Safety
    /// `from..to` lies between `written` and `complete`, and the caller is the writer.
    pub(crate) unsafe fn pieces(&self, from: u64, to: u64) -> [&[u8]; 2] {
        let len = (to - from) as usize;
        let first = len.min((self.size() - (from & (self.size() - 1))) as usize);
        // SAFETY: in bounds as in `copy`; complete bytes no longer change.
        unsafe {
            [
                std::slice::from_raw_parts(self.at(from).as_ptr(), first),
                std::slice::from_raw_parts(self.memory.at(0).as_ptr(), len - first),
            ]
        }
    }

    /// Makes bytes zero that have been written.
    ///
    /// # Safety
    /// As for [`Ring::pieces`], whose slices are gone.
    pub(crate) unsafe fn clear(&self, from: u64, to: u64) {
        let len = (to - from) as usize;
        let first = len.min((self.size() - (from & (self.size() - 1))) as usize);
        // SAFETY: in bounds; the writer's bytes until it moves `written`.
        unsafe {
            self.at(from).write_bytes(0, first);
            self.memory.at(0).write_bytes(0, len - first);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_wrap_round_and_their_length_shows_them_complete() {
        let ring = Ring::new(1).unwrap();
        assert_eq!(ring.size(), 1 << 20);
        let start = ring.size() * 3 - 16;
        let mut record: Vec<u8> = (0..64).collect();
        record[..4].copy_from_slice(&64_u32.to_le_bytes());
        assert_eq!(ring.complete_len(start), 0);
        // SAFETY: nobody else uses the ring.
        unsafe {
            ring.copy_in(start, &record);
            assert_eq!(ring.complete_len(start), 64);
            let pieces = ring.pieces(start, start + 64);
            assert_eq!((pieces[0].len(), pieces[1].len()), (16, 48));
            assert_eq!(pieces.concat(), record);
            ring.clear(start, start + 64);
            assert_eq!(ring.pieces(start, start + 64).concat(), [0; 64]);
        }
    }

    #[test]
    fn a_ring_of_another_size_is_zero_and_takes_records() {
        let ring = Ring::new(1).unwrap();
        let mut record = vec![7; 64];
        record[..4].copy_from_slice(&64_u32.to_le_bytes());
        for size in [fitting(5 << 20), fitting(1)] {
            // SAFETY: nobody else uses the ring, and what was in it is cleared.
            unsafe {
                ring.resize(size).unwrap();
                assert_eq!(ring.size(), size);
                let start = size * 5 - 32;
                assert_eq!(ring.pieces(start, start + 64).concat(), [0; 64]);
                ring.copy_in(start, &record);
                assert_eq!(ring.pieces(start, start + 64).concat(), record);
                ring.clear(start, start + 64);
            }
        }
        assert_eq!(fitting(5 << 20), 8 << 20);
    }
}
