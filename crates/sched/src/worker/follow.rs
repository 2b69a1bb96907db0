//! Connections follow their packets: to the worker on the processor that the system handles them on.
//!
//! ```text
//!   client's thread or network card ──► packet, handled on processor p ──► the socket knows p
//!                                              worker on p  ◄── the connection moves there
//! ```
//! Where a client's thread and the worker that answers it share a processor, to wake each other costs a switch.
//! Else each message is an interrupt for another processor, which may have to come out of its sleep first, and its
//! bytes lie in that one's caches. (Steering packets to the thread that reads them is as old as networks on several
//! processors; networking/scaling.rst in Linux's documentation. Here the reader comes to the packets, since it is the
//! one that we have.) What it brings: `docs/decisions/0019-connections-follow-packets.md`.
//!
//! * With `worker_affinity = bound` each worker stays on a processor of its own, if there are as many workers as
//!   processors that this process may use; with `follow` the system moves workers as it likes, and each says
//!   where it was last.
//! * Each [`RUNS_A_LOOK`] runs a connection looks where its packets were last. When it was elsewhere
//!   [`LOOKS_ASTRAY`] times in a row it moves, unless the worker there has more to do already: of its connections
//!   those count that have run of late ([`Active`]). So the connections of one busy thread, or of one interrupt
//!   of a network card, stay with all workers.
//! * A connection moves at the end of a run that its own worker has made: it is active then, and no event of a
//!   batch at hand names it.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// Runs of a connection between two looks.
const RUNS_A_LOOK: u32 = 8;
/// Looks in a row that must find the packets on the same other processor.
const LOOKS_ASTRAY: u32 = 2;
/// A connection that has run within so many nanoseconds, as a power of two, is active: 67 ms.
const ERA_BITS: u32 = 26;
/// A worker may have one active connection in so many more than the one that gives one away.
const SLACK: u32 = 8;

/// Of no processor.
const NOWHERE: usize = usize::MAX;

/// `worker_affinity`'s words, by position.
pub(super) const OFF: usize = 0;
pub(super) const BOUND: usize = 2;

/// The time in which connections are counted, of a reading of the clock. It wraps round.
pub(super) fn era(ns: u64) -> u32 {
    (ns >> ERA_BITS) as u32
}

/// How many connections have run of late. Counts by many threads at once; a count that is lost when an era
/// begins costs at worst a needless move.
#[derive(Default)]
pub(super) struct Active {
    era: AtomicU32,
    now: AtomicU32,
    before: AtomicU32,
}

impl Active {
    fn begin(&self, era: u32) {
        let seen = self.era.load(Ordering::Relaxed);
        let swap = |s, e| self.era.compare_exchange(s, e, Ordering::Relaxed, Ordering::Relaxed);
        if seen != era && swap(seen, era).is_ok() {
            let last = self.now.swap(0, Ordering::Relaxed);
            let before = if seen.wrapping_add(1) == era { last } else { 0 };
            self.before.store(before, Ordering::Relaxed);
        }
    }

    fn count(&self, era: u32) -> u32 {
        self.begin(era);
        self.now.load(Ordering::Relaxed).max(self.before.load(Ordering::Relaxed))
    }

    fn more(&self, era: u32) {
        self.begin(era);
        self.now.fetch_add(1, Ordering::Relaxed);
    }
}

/// Where a worker is, and with how much to do.
pub(super) struct Place {
    processor: AtomicUsize,
    active: Active,
}

impl Place {
    pub fn new() -> Place {
        Place { processor: AtomicUsize::new(NOWHERE), active: Active::default() }
    }

    /// The worker is there now.
    pub fn note(&self, processor: Option<usize>) {
        let processor = processor.unwrap_or(NOWHERE);
        if self.processor.load(Ordering::Relaxed) != processor {
            self.processor.store(processor, Ordering::Relaxed);
        }
    }

    /// Whether the worker is, or was of late, on this processor.
    pub fn is(&self, processor: usize) -> bool {
        self.processor.load(Ordering::Relaxed) == processor
    }

    /// Whether it may have a connection of `from`.
    pub fn may_take(&self, from: &Place, era: u32) -> bool {
        let has = from.active.count(era);
        self.active.count(era) <= has + has / SLACK
    }

    /// A connection that has run in this era came from there.
    pub fn take(&self, from: &Place) {
        let one_less = |count: u32| count.checked_sub(1);
        let pairs =
            [(&from.active.now, &self.active.now), (&from.active.before, &self.active.before)];
        for (from, to) in pairs {
            if from.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok() {
                to.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// A connection's own part. Written by who runs it.
#[derive(Default)]
pub(super) struct Trail {
    /// The last era in which it ran.
    era: AtomicU32,
    runs: AtomicU32,
    astray: AtomicU32,
}

impl Trail {
    /// A run is over, of a connection whose home is there. True: it is time to look where its packets are.
    pub fn ran(&self, home: &Place, era: u32) -> bool {
        if self.era.load(Ordering::Relaxed) != era {
            self.era.store(era, Ordering::Relaxed);
            home.active.more(era);
        }
        let runs = self.runs.load(Ordering::Relaxed) + 1;
        self.runs.store(runs % RUNS_A_LOOK, Ordering::Relaxed);
        runs == RUNS_A_LOOK
    }

    /// Notes the result of a look; true: the connection was astray often enough.
    pub fn looked(&self, at_home: bool) -> bool {
        let astray = if at_home { 0 } else { self.astray.load(Ordering::Relaxed) + 1 };
        self.astray.store(astray % LOOKS_ASTRAY, Ordering::Relaxed);
        astray == LOOKS_ASTRAY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_looks_now_and_then_and_strays_twice() {
        let (trail, home) = (Trail::default(), Place::new());
        let looks = (0..4 * RUNS_A_LOOK).filter(|_| trail.ran(&home, 1)).count();
        assert_eq!((looks, home.active.count(1)), (4, 1));
        let finds = [false, true, false, false, false].map(|at_home| trail.looked(at_home));
        assert_eq!(finds, [false, false, false, true, false]);
    }

    #[test]
    fn those_that_rest_do_not_count() {
        let (trail, home) = (Trail::default(), Place::new());
        let counts = [(7, true), (8, false), (9, false), (40, true)].map(|(era, runs)| {
            if runs {
                trail.ran(&home, era);
            }
            home.active.count(era)
        });
        assert_eq!(counts, [1, 1, 0, 1]);
    }

    /// Moves from one to the other until no more may.
    fn all_move(from: &Place, to: &Place) {
        while to.may_take(from, 1) {
            to.take(from);
        }
    }

    #[test]
    fn not_all_go_where_one_thread_is() {
        let [a, b] = [Place::new(), Place::new()];
        for place in [&a, &b] {
            (0..40).for_each(|_| _ = Trail::default().ran(place, 1));
        }
        all_move(&a, &b);
        let counts = (a.active.count(1), b.active.count(1));
        assert_eq!(counts, (37, 43));
        all_move(&b, &a);
        assert_eq!((a.active.count(1), b.active.count(1)), (43, 37));
        let (few, none) = (Place::new(), Place::new());
        Trail::default().ran(&few, 1);
        all_move(&few, &none);
        assert_eq!((few.active.count(1), none.active.count(1)), (0, 1), "a single one may go");
    }
}
