//! The registry of sessions: one slot for each, with what others must see of it: the snapshot that it
//! holds, its locks, what it waits for. And the horizon, computed from the snapshots.
//!
//! Slots live in segments that double in size and never move, so that a slot is found by its number
//! without a lock; a slot of a session that ended is used again. Each slot starts its own cache line:
//! taking a snapshot or a weak lock touches nothing that other sessions write.
//!
//! # The horizon, and why it misses no snapshot
//!
//! The horizon H promises: every snapshot that is or will be in use has `csn >= H`. So a row version
//! that was deleted with a CSN at or below H is dead for everyone.
//!
//! A session registers a snapshot thus (all accesses sequentially consistent):
//!
//! 1. `c = last_csn`; 2. `slot = c`; 3. if `bound > c` go back to 1.
//!
//! The horizon is computed thus:
//!
//! 1. `h = last_csn`; 2. raise `bound` to `h`; 3. read all slots; 4. H = the least of `h` and the
//!    slots that are not empty; raise the published horizon to H.
//!
//! Take a registered snapshot `c` and a computed H. If the scan (3) read the session's slot after it
//! was stored, it saw `c`, or a value that the session had stored before in the same loop, which is
//! smaller still; so `H <= c`. If the scan read the slot before it was stored, then `bound >= h`
//! preceded the store, and therefore preceded the session's check; since the check passed,
//! `c >= bound >= h >= H`. Either way `H <= c`. Raising the published value keeps the promise, because
//! each H alone keeps it for all later registrations too.
//!
//! A slot holds one number, the oldest that its session needs. While the slot holds a smaller number
//! already, a newer snapshot needs no registration. When the older one is given up, the slot is
//! raised to the next older one in use, which was protected all the time.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use base::{Csn, WaitEvent, Xid};
use crossbeam_utils::CachePadded;
use sched::{Mutex, SpinLock};

use crate::lock::{Local, WaitInfo};

/// One session, as the others see it. It shares no cache line with another.
#[repr(align(64))]
pub(crate) struct Slot {
    /// The oldest snapshot in use; 0: none.
    pub(crate) snapshot: AtomicU64,
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
    /// What it waits for.
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
        slot.snapshot.store(0, Ordering::Release);
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

/// See the module's head.
pub(crate) struct Horizon {
    last_csn: CachePadded<AtomicU64>,
    bound: CachePadded<AtomicU64>,
    published: CachePadded<AtomicU64>,
    computing: AtomicBool,
    /// Computations under way.
    running: AtomicU32,
    /// Nanoseconds since `epoch` before which it is not computed again.
    due_ns: AtomicU64,
    epoch: Instant,
}

/// The horizon is computed again after this time at the earliest.
const INTERVAL_NS: u64 = 1_000_000;
/// With many sessions it takes longer; then it may take this share of one processor.
const COST_SHARE: u64 = 50;

impl Horizon {
    pub(crate) fn new() -> Horizon {
        Horizon {
            last_csn: CachePadded::new(AtomicU64::new(1)),
            bound: CachePadded::new(AtomicU64::new(0)),
            published: CachePadded::new(AtomicU64::new(0)),
            computing: AtomicBool::new(false),
            running: AtomicU32::new(0),
            due_ns: AtomicU64::new(0),
            epoch: Instant::now(),
        }
    }

    /// The newest commit that is visible.
    #[inline]
    pub(crate) fn last_csn(&self) -> Csn {
        Csn(self.last_csn.load(Ordering::SeqCst))
    }

    /// Makes commits up to here visible.
    pub(crate) fn publish(&self, csn: Csn) {
        self.last_csn.fetch_max(csn.0, Ordering::SeqCst);
    }

    /// The newest snapshot, registered in the session's slot unless an older one holds the slot.
    #[inline]
    pub(crate) fn register(&self, slot: &Slot) -> Csn {
        if slot.snapshot.load(Ordering::Relaxed) != 0 {
            return self.last_csn();
        }
        loop {
            let csn = self.last_csn.load(Ordering::SeqCst);
            slot.snapshot.store(csn, Ordering::SeqCst);
            if self.bound.load(Ordering::SeqCst) <= csn {
                return Csn(csn);
            }
        }
    }

    /// The horizon, at most about a millisecond old while anyone asks.
    pub(crate) fn get(&self, registry: &Registry) -> Csn {
        let now = self.epoch.elapsed().as_nanos() as u64;
        if now >= self.due_ns.load(Ordering::Relaxed)
            && !self.computing.swap(true, Ordering::Acquire)
        {
            self.compute(registry);
            let after = self.epoch.elapsed().as_nanos() as u64;
            let pause = INTERVAL_NS.max((after - now) * COST_SHARE);
            self.due_ns.store(after + pause, Ordering::Relaxed);
            self.computing.store(false, Ordering::Release);
        }
        Csn(self.published.load(Ordering::SeqCst))
    }

    /// Computes the horizon now. Any number of threads may do so at once.
    pub(crate) fn compute(&self, registry: &Registry) -> Csn {
        self.running.fetch_add(1, Ordering::SeqCst);
        let newest = self.last_csn.load(Ordering::SeqCst);
        self.bound.fetch_max(newest, Ordering::SeqCst);
        let oldest = registry
            .slots()
            .map(|(_, slot)| slot.snapshot.load(Ordering::SeqCst))
            .filter(|&csn| csn != 0)
            .fold(newest, u64::min);
        let horizon = self.published.fetch_max(oldest, Ordering::SeqCst).max(oldest);
        self.running.fetch_sub(1, Ordering::SeqCst);
        Csn(horizon)
    }

    /// Waits until no computation is under way: those that begin later see what stands in the slots now.
    /// (One takes microseconds.)
    pub(crate) fn settle(&self) {
        while self.running.load(Ordering::SeqCst) != 0 {
            std::thread::yield_now();
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

    #[test]
    fn the_horizon_is_the_oldest_snapshot_and_never_falls() {
        let (registry, horizon) = (Registry::new(), Horizon::new());
        let (a, b) = (registry.add(1, 0), registry.add(2, 0));
        horizon.publish(Csn(10));
        assert_eq!(horizon.register(registry.get(a)), Csn(10));
        horizon.publish(Csn(20));
        assert_eq!(horizon.register(registry.get(b)), Csn(20));
        assert_eq!(horizon.register(registry.get(a)), Csn(20), "the older one stays registered");
        assert_eq!(horizon.compute(&registry), Csn(10));
        registry.get(a).snapshot.store(0, Ordering::Release);
        assert_eq!(horizon.compute(&registry), Csn(20));
        registry.get(a).snapshot.store(15, Ordering::Release);
        assert_eq!(horizon.compute(&registry), Csn(20));
    }

    #[test]
    fn no_registration_is_missed_by_a_horizon_computed_meanwhile() {
        let (registry, horizon) = (Registry::new(), Horizon::new());
        let done = AtomicBool::new(false);
        std::thread::scope(|s| {
            for _ in 0..3 {
                let (number, horizon, registry, done) =
                    (registry.add(1, 0), &horizon, &registry, &done);
                s.spawn(move || {
                    let slot = registry.get(number);
                    while !done.load(Ordering::Relaxed) {
                        let csn = horizon.register(slot);
                        for _ in 0..20 {
                            let published = horizon.published.load(Ordering::SeqCst);
                            assert!(published <= csn.0, "{published} > {csn:?}");
                        }
                        slot.snapshot.store(0, Ordering::Release);
                    }
                });
            }
            for csn in 2..200_000 {
                horizon.publish(Csn(csn));
                horizon.compute(&registry);
            }
            done.store(true, Ordering::Relaxed);
        });
    }
}
