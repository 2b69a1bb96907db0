//! Counters of all locks with one wait event, how long spinning for them pays, and how often their
//! waiters may be passed.

use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};

use base::settings::{live_int, setting};
use base::waits::WAITS;
use base::{Result, WaitEvent, err};

/// No spinning beyond this; none at all where loom walks through every step, and a little, always
/// the same, for shuttle.
pub(super) const MOST_SPINS: u32 = if cfg!(loom) {
    0
} else if cfg!(shuttle) {
    2
} else {
    200
};
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
    /// Its own limit of passes, or FOLLOW.
    limit: AtomicI64,
}

/// The tranche has the limit of `lwlock_shared_limit`.
const FOLLOW: i64 = i64::MIN;
/// The range of both settings.
const LIMITS: std::ops::RangeInclusive<i64> = -1..=1_000_000;

static COUNTERS: [Tranche; TRANCHES] = [const {
    Tranche {
        waits: AtomicU64::new(0),
        waited_ns: AtomicU64::new(0),
        longest_ns: AtomicU64::new(0),
        passes: AtomicU64::new(0),
        spins: AtomicU32::new(50),
        limit: AtomicI64::new(FOLLOW),
    }
}; TRANCHES];

impl Tranche {
    /// By the wait event's number.
    pub fn at(index: usize) -> &'static Tranche {
        &COUNTERS[index]
    }

    /// How many newcomers may pass who waits; below 0: any number.
    pub fn limit(&self) -> i64 {
        match self.limit.load(Ordering::Relaxed) {
            FOLLOW => live_int(setting::LWLOCK_SHARED_LIMIT),
            own => own,
        }
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

/// Counts of acquisitions and waits of one tranche's locks since the start.
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
    /// The limit of passes now; below 0: none.
    pub shared_limit: i64,
}

/// The counters of one tranche.
pub fn tranche_counters(event: WaitEvent) -> TrancheCounters {
    let t = &COUNTERS[event as usize];
    TrancheCounters {
        event,
        #[cfg(not(any(loom, shuttle)))]
        acquisitions: crate::observe::lwlock_acquisitions(event),
        #[cfg(any(loom, shuttle))]
        acquisitions: 0,
        waits: t.waits.load(Ordering::Relaxed),
        waited_ns: t.waited_ns.load(Ordering::Relaxed),
        longest_ns: t.longest_ns.load(Ordering::Relaxed),
        passes: t.passes.load(Ordering::Relaxed),
        shared_limit: t.limit(),
    }
}

/// All tranches: the wait events of type LWLock.
pub fn tranches() -> impl Iterator<Item = WaitEvent> {
    WAITS.iter().filter(|wait| wait.kind == "LWLock").map(|wait| wait.event)
}

/// Reads the value of `lwlock_shared_limits`: `buffer_content=0, BufferMapping=-1`.
///
/// # Errors
/// `22023` for what is no list of known tranches with limits in range.
pub fn parse_shared_limits(text: &str) -> Result<Vec<(WaitEvent, i64)>> {
    let plain = |name: &str| name.trim().replace('_', "").to_ascii_lowercase();
    let read = |entry: &str| {
        let (name, limit) = entry.split_once('=')?;
        let tranche = tranches().find(|t| plain(t.info().name) == plain(name))?;
        let limit = limit.trim().parse().ok().filter(|limit| LIMITS.contains(limit))?;
        Some((tranche, limit))
    };
    let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    entries
        .map(|entry| {
            read(entry).ok_or_else(|| {
                err!(
                    INVALID_PARAMETER_VALUE,
                    "invalid value for parameter \"lwlock_shared_limits\": \"{text}\""
                )
                .detail(format!("\"{entry}\" is not a tranche with a limit from -1 to 1000000."))
            })
        })
        .collect()
}

/// Gives these tranches limits of their own, and all others that of `lwlock_shared_limit`; at once,
/// for locks that are held, too.
pub fn set_shared_limits(limits: &[(WaitEvent, i64)]) {
    for tranche in tranches() {
        let own = limits.iter().rev().find(|(t, _)| *t == tranche);
        let limit = own.map_or(FOLLOW, |(_, limit)| *limit);
        COUNTERS[tranche as usize].limit.store(limit, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_by_tranche() {
        use WaitEvent::{LWLockBufferContent as Content, LWLockWALInsert as Insert};
        let read = |text| parse_shared_limits(text).ok();
        assert_eq!(
            read(" buffer_content = 0,WALInsert=-1, "),
            Some(vec![(Content, 0), (Insert, -1)])
        );
        assert_eq!(read(""), Some(vec![]));
        for wrong in ["buffer_content", "nonsense=1", "buffer_content=-2", "relation=1"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_tranche_without_its_own_limit_follows_the_setting() {
        let free_space = WaitEvent::LWLockFreeSpaceMap;
        let common = live_int(setting::LWLOCK_SHARED_LIMIT);
        set_shared_limits(&[(free_space, 3)]);
        assert_eq!(tranche_counters(free_space).shared_limit, 3);
        assert_eq!(tranche_counters(WaitEvent::LWLockStatistics).shared_limit, common);
        set_shared_limits(&[]);
        assert_eq!(tranche_counters(free_space).shared_limit, common);
    }
}
