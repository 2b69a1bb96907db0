//! Counters of all locks with one wait event, and how long spinning for them pays.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use base::WaitEvent;

/// No spinning beyond this; none at all where loom walks through every step.
pub(super) const MOST_SPINS: u32 = if cfg!(loom) { 0 } else { 200 };
const TRANCHES: usize = base::waits::WAITS.len();

/// Counters of all locks with one wait event. Written on the slow path only.
#[repr(align(128))]
pub(super) struct Tranche {
    waits: AtomicU64,
    waited_ns: AtomicU64,
    longest_ns: AtomicU64,
    passes: AtomicU64,
    /// The running mean of spins that ended well.
    spins: AtomicU32,
}

static COUNTERS: [Tranche; TRANCHES] = [const {
    Tranche {
        waits: AtomicU64::new(0),
        waited_ns: AtomicU64::new(0),
        longest_ns: AtomicU64::new(0),
        passes: AtomicU64::new(0),
        spins: AtomicU32::new(50),
    }
}; TRANCHES];

impl Tranche {
    /// By the wait event's number.
    pub fn at(index: usize) -> &'static Tranche {
        &COUNTERS[index]
    }

    /// Somebody parked for so long.
    pub fn waited(&self, ns: u64) {
        self.waits.fetch_add(1, Ordering::Relaxed);
        self.waited_ns.fetch_add(ns, Ordering::Relaxed);
        self.longest_ns.fetch_max(ns, Ordering::Relaxed);
    }

    /// A newcomer passed somebody who queues.
    pub fn passed(&self) {
        self.passes.fetch_add(1, Ordering::Relaxed);
    }

    /// How long spinning took when it helped; less after it did not.
    pub fn usual_spins(&self) -> u32 {
        self.spins.load(Ordering::Relaxed)
    }

    /// Spinning ended: well after `spins`, or (0) in vain.
    pub fn spun(&self, usual: u32, spins: u32) {
        // A lost update between two spinners does no harm.
        let next = if spins >= usual {
            usual + (spins - usual) / 8
        } else {
            usual - (usual - spins).div_ceil(8)
        };
        self.spins.store(next, Ordering::Relaxed);
    }
}

/// What the locks of one tranche went through since the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrancheCounters {
    /// The tranche.
    pub event: WaitEvent,
    /// How often they were taken, in either mode (0 under loom).
    pub acquisitions: u64,
    /// Times that somebody parked.
    pub waits: u64,
    /// How long they waited in all, in nanoseconds.
    pub waited_ns: u64,
    /// The longest of these waits, in nanoseconds.
    pub longest_ns: u64,
    /// Acquisitions that passed somebody who queued.
    pub passes: u64,
}

/// The counters of one tranche.
pub fn tranche_counters(event: WaitEvent) -> TrancheCounters {
    let t = &COUNTERS[event as usize];
    TrancheCounters {
        event,
        #[cfg(not(loom))]
        acquisitions: crate::observe::lwlock_acquisitions(event),
        #[cfg(loom)]
        acquisitions: 0,
        waits: t.waits.load(Ordering::Relaxed),
        waited_ns: t.waited_ns.load(Ordering::Relaxed),
        longest_ns: t.longest_ns.load(Ordering::Relaxed),
        passes: t.passes.load(Ordering::Relaxed),
    }
}
