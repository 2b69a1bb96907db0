//! Which row versions nobody needs: the horizon and the list of live snapshots, both made of what
//! the sessions have in their slots ([`crate::registry`]).
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
//! # The list of live snapshots
//!
//! A long snapshot holds the horizon back, but it sees one version of each row. The list (B, S)
//! promises more: every snapshot that is or will be in use is in S, or has `csn >= B`. So a version
//! that was made at CSN `b` and ended at `e <= B` is garbage if no member of S lies in `[b, e)`,
//! however old the oldest is (Böttcher et al., *Scalable Garbage Collection for In-Memory MVCC
//! Systems*, VLDB 2019).
//!
//! The same scan makes it, with B = `h` and S = what stands in the slots. The argument is the same:
//! the *last* store of a snapshot `c` came before the scan read the slot, and then the scan saw
//! exactly `c`; or after, and then `c >= bound >= B`.
//!
//! A session may use several snapshots. Its slot says so in three parts:
//!
//! * `snapshot`: the oldest;
//! * `held`: those that cursors keep beyond their statement;
//! * `newer`: any number of snapshots from this one on (statements inside a statement, constraint
//!   checks). It counts as "all from here on": B is at most the least `newer`. A serializable
//!   transaction that is watched says the same of its only snapshot, since the reads that it has done
//!   are settled with *whoever ended* the version, which must not be forgotten
//!   ([`crate::serial`]).
//!
//! The scan reads `newer`, then `held`, then `snapshot`. A snapshot comes into `held` while one of the
//! other two covers it, and leaves it only when it is not used any more; `newer` is cleared after that.
//! So a scan that finds `newer` cleared finds in `held` what was held before. A scan that read `newer`
//! before it was set may miss what was held since, but that is at or above `newer`, and that is at or
//! above B by the check of the bound. `snapshot` changes from one value to another only if that other
//! one has been in `held` all the time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use base::Csn;
use crossbeam_utils::CachePadded;
use sched::SpinLock;

use crate::registry::{Registry, Slot};

/// The snapshots that may be in use: see the module's head.
#[derive(Debug, Default)]
pub struct LiveSnapshots {
    bound: u64,
    /// Ascending, below `bound`.
    held: Box<[u64]>,
}

impl LiveSnapshots {
    /// Whether no snapshot sees what a commit at `made` made and one at `ended` ended.
    #[inline]
    pub fn none_sees(&self, made: Csn, ended: Csn) -> bool {
        if ended.0 > self.bound {
            return false;
        }
        let next = self.held.partition_point(|&csn| csn < made.0);
        self.held.get(next).is_none_or(|&csn| csn >= ended.0)
    }

    /// The oldest snapshot that sees what was made at `made` and ended at `ended`; the bound if only one
    /// from there on may.
    pub fn holder(&self, made: Csn, ended: Csn) -> Csn {
        let next = self.held.partition_point(|&csn| csn < made.0);
        let listed = self.held.get(next).copied().filter(|&csn| csn < ended.0);
        Csn(listed.unwrap_or(self.bound))
    }

    /// Any snapshot from here on may be in use.
    pub fn bound(&self) -> Csn {
        Csn(self.bound)
    }

    /// Those in use below the bound, ascending.
    pub fn held(&self) -> impl Iterator<Item = Csn> + '_ {
        self.held.iter().map(|&csn| Csn(csn))
    }
}

/// See the module's head.
pub(crate) struct Horizon {
    last_csn: CachePadded<AtomicU64>,
    bound: CachePadded<AtomicU64>,
    published: CachePadded<AtomicU64>,
    /// The newest list, and the newest commit when it was made.
    live: SpinLock<(u64, Arc<LiveSnapshots>)>,
    /// The bound of that list.
    live_bound: AtomicU64,
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
            live: SpinLock::new((0, Arc::default())),
            live_bound: AtomicU64::new(0),
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

    /// Snapshots taken from here on are at least this, which is visible already. (As when the horizon is computed: a look at
    /// the slots after the bound is raised misses no snapshot below it.)
    pub(crate) fn raise_bound(&self, csn: Csn) {
        self.publish(csn);
        self.bound.fetch_max(csn.0, Ordering::SeqCst);
    }

    /// The newest snapshot, registered in the session's slot until it ends its statement.
    #[inline]
    pub(crate) fn register(&self, slot: &Slot) -> Csn {
        if slot.snapshot.load(Ordering::Relaxed) == 0 {
            self.register_in(&slot.snapshot)
        } else if slot.newer.load(Ordering::Relaxed) == 0 {
            self.register_in(&slot.newer)
        } else {
            self.last_csn()
        }
    }

    /// The newest snapshot, registered with all that come after it.
    pub(crate) fn register_onwards(&self, slot: &Slot) -> Csn {
        // Before the exact one can be read: whoever reads this later keeps everything.
        slot.newer.store(1, Ordering::SeqCst);
        let csn = self.register_in(&slot.snapshot);
        slot.newer.store(csn.0, Ordering::SeqCst);
        csn
    }

    #[inline]
    fn register_in(&self, cell: &AtomicU64) -> Csn {
        loop {
            let csn = self.last_csn.load(Ordering::SeqCst);
            cell.store(csn, Ordering::SeqCst);
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

    /// The list of live snapshots, as it was when the horizon was last computed.
    pub(crate) fn live(&self) -> Arc<LiveSnapshots> {
        self.live.lock().1.clone()
    }

    /// The bound of that list.
    #[inline]
    pub(crate) fn live_bound(&self) -> Csn {
        Csn(self.live_bound.load(Ordering::Acquire))
    }

    /// Computes the horizon and the list of live snapshots now. Any number of threads may do so at once.
    pub(crate) fn compute(&self, registry: &Registry) -> Csn {
        self.running.fetch_add(1, Ordering::SeqCst);
        let newest = self.last_csn.load(Ordering::SeqCst);
        self.bound.fetch_max(newest, Ordering::SeqCst);
        let mut bound = newest;
        let mut held = Vec::new();
        for (_, slot) in registry.slots() {
            let newer = slot.newer.load(Ordering::SeqCst);
            if newer != 0 {
                bound = bound.min(newer);
            }
            slot.for_held(|csn| held.push(csn));
            let csn = slot.snapshot.load(Ordering::SeqCst);
            if csn != 0 {
                held.push(csn);
            }
        }
        let oldest = held.iter().copied().fold(newest, u64::min);
        held.retain(|&csn| csn < bound);
        held.sort_unstable();
        held.dedup();
        self.publish_live(newest, LiveSnapshots { bound, held: held.into() });
        let horizon = self.published.fetch_max(oldest, Ordering::SeqCst).max(oldest);
        self.running.fetch_sub(1, Ordering::SeqCst);
        Csn(horizon)
    }

    /// Each list keeps its promise for ever; the newest lets the most go.
    fn publish_live(&self, newest: u64, list: LiveSnapshots) {
        let bound = list.bound;
        let mut list = Arc::new(list);
        let mut live = self.live.lock();
        if live.0 <= newest {
            live.0 = newest;
            std::mem::swap(&mut live.1, &mut list);
            self.live_bound.store(bound, Ordering::Release);
        }
        drop(live);
        drop(list);
    }

    /// Waits until no computation is under way: those that begin later see what stands in the slots now.
    /// (One takes microseconds.)
    pub(crate) fn await_computations(&self) {
        while self.running.load(Ordering::SeqCst) != 0 {
            std::thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    #[test]
    fn the_horizon_is_the_oldest_snapshot_and_never_falls() {
        let (registry, horizon) = (Registry::new(), Horizon::new());
        let (a, b) = (registry.add(1, 0), registry.add(2, 0));
        horizon.publish(Csn(10));
        assert_eq!(horizon.register(registry.get(a)), Csn(10));
        horizon.publish(Csn(20));
        assert_eq!(horizon.register(registry.get(b)), Csn(20));
        assert_eq!(horizon.register(registry.get(a)), Csn(20), "the older one stays registered");
        registry.get(a).newer.store(0, Ordering::Release);
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

    #[test]
    fn a_version_between_two_snapshots_is_garbage() {
        let (registry, horizon) = (Registry::new(), Horizon::new());
        let (a, b) = (registry.add(1, 0), registry.add(2, 0));
        horizon.publish(Csn(10));
        horizon.register(registry.get(a));
        horizon.publish(Csn(20));
        horizon.register(registry.get(b));
        horizon.publish(Csn(30));
        assert_eq!(horizon.compute(&registry), Csn(10));
        let live = horizon.live();
        let none_sees = |made, ended| live.none_sees(Csn(made), Csn(ended));
        assert_eq!(live.bound(), Csn(30));
        assert!(none_sees(0, 10) && none_sees(11, 20) && none_sees(21, 30) && none_sees(15, 15));
        assert!(!none_sees(0, 11), "the first sees it");
        assert!(!none_sees(10, 11), "made by the first's last commit");
        assert!(!none_sees(12, 21), "the second sees it");
        assert!(!none_sees(21, 31), "whoever comes next may see it");
    }

    #[test]
    fn newer_and_held_snapshots_of_one_session_count() {
        let (registry, horizon) = (Registry::new(), Horizon::new());
        let slot = registry.get(registry.add(1, 0));
        horizon.publish(Csn(10));
        horizon.register(slot);
        horizon.publish(Csn(20));
        assert_eq!(horizon.register(slot), Csn(20));
        horizon.publish(Csn(30));
        horizon.compute(&registry);
        assert_eq!(horizon.live().bound(), Csn(20), "those from the second on may be in use");
        slot.hold(20);
        slot.newer.store(0, Ordering::SeqCst);
        horizon.compute(&registry);
        let live = horizon.live();
        assert_eq!((live.bound(), live.held().collect()), (Csn(30), vec![Csn(10), Csn(20)]));
        slot.release_snapshots();
        horizon.compute(&registry);
        assert_eq!(horizon.live().held().count(), 0);
    }

    #[test]
    fn a_snapshot_registered_onwards_keeps_all_that_follows() {
        let (registry, horizon) = (Registry::new(), Horizon::new());
        let slot = registry.get(registry.add(1, 0));
        horizon.publish(Csn(10));
        assert_eq!(horizon.register_onwards(slot), Csn(10));
        horizon.publish(Csn(30));
        horizon.compute(&registry);
        assert!(!horizon.live().none_sees(Csn(15), Csn(20)));
        assert!(horizon.live().none_sees(Csn(5), Csn(10)));
    }

    /// Sessions with up to three snapshots at a time, while lists are made: none ever misses one.
    #[test]
    fn no_list_misses_a_snapshot() {
        let (registry, horizon) = (Registry::new(), Horizon::new());
        let done = AtomicBool::new(false);
        let clock = AtomicU64::new(1);
        std::thread::scope(|s| {
            for _ in 0..3 {
                let (number, horizon, registry, done) =
                    (registry.add(1, 0), &horizon, &registry, &done);
                s.spawn(move || {
                    let slot = registry.get(number);
                    let kept = |csn: Csn| {
                        let live = horizon.live();
                        let listed = csn >= live.bound() || live.held().any(|held| held == csn);
                        assert!(listed, "{csn:?} is not in {live:?}");
                    };
                    while !done.load(Ordering::Relaxed) {
                        let first = horizon.register(slot);
                        kept(first);
                        let second = horizon.register(slot);
                        kept(second);
                        slot.hold(second.0);
                        slot.newer.store(0, Ordering::Release);
                        for _ in 0..5 {
                            let third = horizon.register(slot);
                            [first, second, third].into_iter().for_each(kept);
                            slot.newer.store(0, Ordering::Release);
                        }
                        slot.release_snapshots();
                    }
                });
            }
            while clock.fetch_add(1, Ordering::Relaxed) < 100_000 {
                horizon.publish(Csn(clock.load(Ordering::Relaxed)));
                horizon.compute(&registry);
            }
            done.store(true, Ordering::Relaxed);
        });
    }
}
