//! The registry of sessions: one slot for each, with what others must see of it: the snapshot that it
//! needs, its locks, what it waits for. See [`crate::horizon`] for what is made of the snapshots.
//!
//! Slots live in segments that double in size and never move, so that a slot is found by its number
//! without a lock; a slot of a session that ended is used again. Each slot starts its own cache line:
//! taking a snapshot or a weak lock touches nothing that other sessions write.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

use base::{WaitEvent, Xid};
use crossbeam_utils::CachePadded;
use sched::{Mutex, SpinLock};

use crate::lock::Local;
use crate::lock::wait_info::WaitInfo;

/// One session, as the others see it. It shares no cache line with another.
#[repr(align(64))]
pub(crate) struct Slot {
    /// The oldest snapshot in use; 0: none.
    pub(crate) snapshot: AtomicU64,
    /// Snapshots from here on may be in use, too; 0: none but the oldest and the held ones.
    pub(crate) newer: AtomicU64,
    /// The snapshot that all statements of the transaction share; 0: none.
    pub(crate) lasting: AtomicU64,
    /// How many snapshots are held.
    held_count: AtomicU32,
    /// Snapshots that are kept beyond their statement: those of cursors.
    held: SpinLock<Vec<u64>>,
    /// The top transaction's id; 0: none.
    pub(crate) xid: AtomicU64,
    /// The session's process id; 0: the slot is free.
    pub(crate) pid: AtomicI32,
    /// The session's task, by its id.
    pub(crate) task: AtomicU64,
    /// The session's database, by its oid; 0: none yet.
    pub(crate) database: AtomicU32,
    /// The locks that the session holds.
    pub(crate) local: SpinLock<Local>,
    /// The session's wait.
    pub(crate) waiting: SpinLock<Option<WaitInfo>>,
    /// The session that works for this one now, while this one waits for it; [`NOBODY`].
    pub(crate) inner: AtomicU32,
    /// The session that this one works for; [`NOBODY`].
    pub(crate) outer: AtomicU32,
}

/// No slot's number.
pub(crate) const NOBODY: u32 = u32::MAX;

impl Slot {
    fn new() -> Slot {
        Slot {
            snapshot: AtomicU64::new(0),
            newer: AtomicU64::new(0),
            lasting: AtomicU64::new(0),
            held_count: AtomicU32::new(0),
            held: SpinLock::new(Vec::new()),
            xid: AtomicU64::new(0),
            pid: AtomicI32::new(0),
            task: AtomicU64::new(0),
            database: AtomicU32::new(0),
            local: SpinLock::new(Local::default()),
            waiting: SpinLock::new(None),
            inner: AtomicU32::new(NOBODY),
            outer: AtomicU32::new(NOBODY),
        }
    }

    /// Holds a snapshot that is in use already.
    pub(crate) fn hold(&self, csn: u64) {
        let mut held = self.held.lock();
        held.push(csn);
        self.held_count.store(held.len() as u32, Ordering::SeqCst);
    }

    /// From now on exactly these are held.
    pub(crate) fn set_held(&self, csns: impl Iterator<Item = u64>) {
        let mut held = self.held.lock();
        held.clear();
        held.extend(csns);
        self.held_count.store(held.len() as u32, Ordering::SeqCst);
    }

    /// Calls `f` for each that is held.
    #[inline]
    pub(crate) fn for_held(&self, f: impl FnMut(u64)) {
        if self.held_count.load(Ordering::SeqCst) != 0 {
            self.held.lock().iter().copied().for_each(f);
        }
    }

    /// Uses no snapshot any more.
    #[inline]
    pub(crate) fn release_snapshots(&self) {
        if self.held_count.load(Ordering::Relaxed) != 0 {
            self.set_held(std::iter::empty());
        }
        for cell in [&self.newer, &self.lasting] {
            if cell.load(Ordering::Relaxed) != 0 {
                cell.store(0, Ordering::Release);
            }
        }
        self.snapshot.store(0, Ordering::Release);
    }

    /// The top transaction's id.
    pub(crate) fn top_xid(&self) -> Option<Xid> {
        Some(Xid(self.xid.load(Ordering::Acquire))).filter(|xid| xid.is_valid())
    }
}

/// Slots in the first segment; the next ones double.
const FIRST_SEGMENT: usize = 64;
const SEGMENTS: usize = 26;

/// Slots of one segment, each on cache lines of its own.
type Segment = Box<[CachePadded<Slot>]>;

/// All slots.
pub(crate) struct Registry {
    segments: [OnceLock<Segment>; SEGMENTS],
    /// Slots below this have been in use.
    used: AtomicU32,
    free: Mutex<Vec<u32>>,
}

/// Segment of a slot, and its place there.
fn place(number: usize) -> (usize, usize) {
    let shifted = number + FIRST_SEGMENT;
    let segment = (shifted.ilog2() - FIRST_SEGMENT.ilog2()) as usize;
    (segment, shifted - (FIRST_SEGMENT << segment))
}

impl Registry {
    pub(crate) fn new() -> Registry {
        Registry {
            segments: [const { OnceLock::new() }; SEGMENTS],
            used: AtomicU32::new(0),
            free: Mutex::new(WaitEvent::LWLockSnapshotRegistry, Vec::new()),
        }
    }

    /// A slot for a new session.
    pub(crate) fn add(&self, pid: i32, task: u64) -> u32 {
        let mut free = self.free.lock();
        let number = free.pop().unwrap_or_else(|| {
            let number = self.used.load(Ordering::Relaxed);
            let (segment, _) = place(number as usize);
            let size = FIRST_SEGMENT << segment;
            self.segments[segment]
                .get_or_init(|| (0..size).map(|_| CachePadded::new(Slot::new())).collect());
            self.used.store(number + 1, Ordering::SeqCst);
            number
        });
        let slot = self.get(number);
        slot.task.store(task, Ordering::Relaxed);
        slot.database.store(0, Ordering::Relaxed);
        slot.pid.store(pid, Ordering::Release);
        number
    }

    /// Gives back the slot of a session that has ended.
    pub(crate) fn remove(&self, number: u32) {
        let slot = self.get(number);
        slot.release_snapshots();
        slot.xid.store(0, Ordering::Release);
        slot.pid.store(0, Ordering::Release);
        *slot.local.lock() = Local::default();
        self.free.lock().push(number);
    }

    /// The slot with this number.
    #[inline]
    pub(crate) fn get(&self, number: u32) -> &Slot {
        let (segment, at) = place(number as usize);
        let segment = self.segments[segment].get();
        &segment.expect("a slot's number is given out after its segment was made")[at]
    }

    /// Slots that are or were in use, with their numbers.
    pub(crate) fn slots(&self) -> impl Iterator<Item = (u32, &Slot)> {
        (0..self.used.load(Ordering::SeqCst)).map(|number| (number, self.get(number)))
    }

    /// The session with this process id; of one with an autonomous transaction, that.
    pub(crate) fn find(&self, pid: i32) -> Option<u32> {
        let found = self.slots().find(|(_, slot)| slot.pid.load(Ordering::Acquire) == pid);
        found.map(|(number, _)| self.innermost(number))
    }

    /// The session that works for this one, or for that one …; itself without one.
    pub(crate) fn innermost(&self, number: u32) -> u32 {
        match self.get(number).inner.load(Ordering::Acquire) {
            NOBODY => number,
            inner => self.innermost(inner),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_found_by_number_across_segments_and_used_again() {
        let registry = Registry::new();
        for i in 0..300 {
            assert_eq!(registry.add(i + 1, 0), i as u32);
        }
        for (number, slot) in registry.slots() {
            assert_eq!(slot.pid.load(Ordering::Relaxed), number as i32 + 1);
        }
        assert_eq!(registry.find(130), Some(129));
        registry.remove(129);
        assert_eq!(registry.find(130), None);
        assert_eq!(registry.add(7, 0), 129);
    }
}
