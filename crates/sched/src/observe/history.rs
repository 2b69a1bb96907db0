//! The latest finished waits: rings, one for each core, written by the worker that waited.
//!
//! A ring is under a spin lock that its worker finds free but for the moments in which somebody
//! reads, and readers copy a few records at a time. Waits for work (idle sessions, background
//! threads' main loops) have rings of their own, so that they don't push out the others.
//! `pg_wait_sampling.history_size` records are kept of either kind; it may change at any time.

use std::sync::OnceLock;

use base::WaitEvent;
use base::settings::{live_int, setting};

use super::{WaitObject, WaitRecord};
use crate::clock;
use crate::local::local;
use crate::spin::{SpinLock, SpinLockGuard};
use crate::sys;

/// Records copied under one hold of a ring's lock.
const CHUNK: usize = 32;
const RINGS_MAX: usize = 64;

/// A record as a ring keeps it: one cache line, since it is one that is in no cache.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Kept {
    /// The event above [`clock::BITS`] bits of when it began.
    event_began: u64,
    duration_ns: u64,
    task: u64,
    blocker: u64,
    statement: u64,
    object: [u64; 2],
    pid: i32,
    blocker_pid: i32,
}

const _: () = assert!(size_of::<Kept>() == 64);

impl Kept {
    const EMPTY: Kept = Kept {
        event_began: 0,
        duration_ns: 0,
        task: 0,
        blocker: 0,
        statement: 0,
        object: [0; 2],
        pid: 0,
        blocker_pid: 0,
    };

    fn of(record: &WaitRecord) -> Kept {
        Kept {
            event_began: (record.event as u64) << clock::BITS | record.began_ns,
            duration_ns: record.duration_ns,
            task: record.task,
            blocker: record.blocker,
            statement: record.statement,
            object: record.object.encode(),
            pid: record.pid,
            blocker_pid: record.blocker_pid,
        }
    }

    fn record(self) -> WaitRecord {
        let event = WaitEvent::from_u8((self.event_began >> clock::BITS) as u8);
        WaitRecord {
            task: self.task,
            pid: self.pid,
            event: event.unwrap_or(WaitEvent::ExtensionExtension),
            object: WaitObject::decode(self.object),
            blocker: self.blocker,
            blocker_pid: self.blocker_pid,
            statement: self.statement,
            began_ns: self.event_began & ((1 << clock::BITS) - 1),
            duration_ns: self.duration_ns,
        }
    }
}

/// Record number `n` is in slot `n % slots.len()`.
struct Slots {
    slots: Vec<Kept>,
    /// The setting for which it has that many.
    made_for: usize,
    /// The slot of the next record, so that nobody divides.
    at: usize,
    /// The number of the next record.
    next: u64,
    /// No older record was kept when the size last changed.
    oldest: u64,
}

#[repr(align(128))]
struct Ring(SpinLock<Slots>);

/// For each core a ring of waits and one of waits for work.
fn rings() -> &'static [[Ring; 2]] {
    static RINGS: OnceLock<Vec<[Ring; 2]>> = OnceLock::new();
    RINGS.get_or_init(|| {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let ring = || Ring(SpinLock::new(Slots::of(Vec::new())));
        (0..cores.min(RINGS_MAX)).map(|_| [ring(), ring()]).collect()
    })
}

impl Slots {
    fn of(slots: Vec<Kept>) -> Slots {
        Slots { slots, made_for: 0, at: 0, next: 0, oldest: 0 }
    }

    /// The oldest record that is kept.
    fn first(&self) -> u64 {
        self.oldest.max(self.next.saturating_sub(self.slots.len() as u64))
    }

    fn push(&mut self, record: Kept) {
        self.slots[self.at] = record;
        self.at = if self.at + 1 == self.slots.len() { 0 } else { self.at + 1 };
        self.next += 1;
        // The next record's line was written a ring's length ago and is in no cache: when it is needed a
        // lock behind the store would wait for it.
        sys::fetch_line((&raw const self.slots[self.at]).addr());
    }

    /// Moves what fits into `slots`; returns the old ones, to be freed outside of the lock.
    fn resize(&mut self, mut slots: Vec<Kept>) -> Vec<Kept> {
        let (old, new) = (self.slots.len() as u64, slots.len() as u64);
        self.oldest = self.first().max(self.next.saturating_sub(new));
        for number in self.oldest..self.next {
            slots[(number % new) as usize] = self.slots[(number % old) as usize];
        }
        self.at = self.next.checked_rem(new).unwrap_or(0) as usize;
        std::mem::replace(&mut self.slots, slots)
    }
}

/// Appends a record.
pub(super) fn push(record: &WaitRecord) {
    append(usize::from(record.is_idle()), Kept::of(record));
}

/// Appends a session's wait for its client, which began then and took so long.
#[inline]
pub(super) fn push_idle(task: u64, pid: i32, [began_ns, duration_ns]: [u64; 2]) {
    let event_began = (WaitEvent::ClientClientRead as u64) << clock::BITS | began_ns;
    append(1, Kept { event_began, duration_ns, task, pid, ..Kept::EMPTY });
}

#[inline]
fn append(kind: usize, record: Kept) {
    let rings = rings();
    let mut index = local().ring_index();
    if index >= rings.len() {
        index %= rings.len();
    }
    let wanted = live_int(setting::PG_WAIT_SAMPLING_HISTORY_SIZE) as usize;
    let ring = &rings[index][kind].0;
    let mut slots = ring.lock();
    if slots.made_for != wanted {
        drop(slots);
        slots = resized(ring, wanted);
    }
    // Another thread of this ring may have changed the size again.
    if !slots.slots.is_empty() {
        slots.push(record);
    }
}

/// Gives a ring its part of `wanted` records. Memory is asked for and given back outside of the lock.
#[cold]
fn resized(ring: &SpinLock<Slots>, wanted: usize) -> SpinLockGuard<'_, Slots> {
    let fresh = vec![Kept::EMPTY; wanted.div_ceil(rings().len())];
    let mut slots = ring.lock();
    let old = slots.resize(fresh);
    slots.made_for = wanted;
    drop(slots);
    drop(old);
    ring.lock()
}

/// Where a reader of the history is. A new one begins at the oldest record that is kept.
#[derive(Clone, Debug, Default)]
pub struct HistoryCursor {
    /// For each ring the number of the next record to read.
    next: Vec<[u64; 2]>,
    /// How many records were overwritten before they could be read.
    pub missed: u64,
}

/// The records that came since the cursor's last use, by the end of the wait; the cursor moves on.
/// `idle`: with waits for work.
pub fn history_since(cursor: &mut HistoryCursor, idle: bool) -> Vec<WaitRecord> {
    if live_int(setting::PG_WAIT_SAMPLING_HISTORY_SIZE) == 0 {
        return Vec::new(); // what a ring still has goes with its next record
    }
    let rings = rings();
    let fresh = cursor.next.is_empty();
    cursor.next.resize(rings.len(), [0; 2]);
    let mut records = Vec::new();
    for (pair, next) in rings.iter().zip(&mut cursor.next) {
        for kind in 0..=usize::from(idle) {
            let missed = read(&pair[kind].0, &mut next[kind], &mut records);
            cursor.missed += if fresh { 0 } else { missed };
        }
    }
    records.sort_by_key(|r| r.began_ns + r.duration_ns);
    records
}

/// Copies the ring's records from number `next` on; returns how many of them are gone.
fn read(ring: &SpinLock<Slots>, next: &mut u64, into: &mut Vec<WaitRecord>) -> u64 {
    let end = ring.lock().next;
    let mut missed = 0;
    while *next < end {
        let mut chunk = [Kept::EMPTY; CHUNK];
        let mut copied = 0;
        {
            let slots = ring.lock();
            let first = slots.first();
            if *next < first {
                missed += first - *next;
                *next = first;
            }
            let len = slots.slots.len() as u64;
            while copied < CHUNK && *next < end.min(slots.next) {
                chunk[copied] = slots.slots[(*next % len) as usize];
                copied += 1;
                *next += 1;
            }
        }
        if copied == 0 {
            break;
        }
        into.extend(chunk[..copied].iter().map(|kept| kept.record()));
    }
    missed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(len: usize) -> Slots {
        Slots::of(vec![Kept::EMPTY; len])
    }

    fn record(n: u64) -> Kept {
        Kept { event_began: n, ..Kept::EMPTY }
    }

    fn all(ring: &SpinLock<Slots>, from: u64) -> (Vec<u64>, u64) {
        let (mut next, mut records) = (from, Vec::new());
        let missed = read(ring, &mut next, &mut records);
        (records.iter().map(|r| r.began_ns).collect(), missed)
    }

    #[test]
    fn a_record_comes_back_as_it_was() {
        let record = WaitRecord {
            task: 1,
            pid: -2,
            event: WaitEvent::LockTransactionid,
            object: WaitObject::AdvisoryPair(base::Oid(3), -4, 5),
            blocker: 6,
            blocker_pid: 7,
            statement: u64::MAX,
            began_ns: (1 << clock::BITS) - 1,
            duration_ns: 8,
        };
        assert_eq!(Kept::of(&record).record(), record);
        let object = WaitObject::decode(Kept::EMPTY.object);
        assert_eq!(object, WaitObject::None, "as in the record of a wait for a client");
    }

    #[test]
    fn the_latest_are_kept_and_the_missed_are_counted() {
        let ring = SpinLock::new(slots(100));
        (0..250).for_each(|n| ring.lock().push(record(n)));
        let (kept, missed) = all(&ring, 0);
        assert_eq!((kept, missed), ((150..250).collect(), 150));
        assert_eq!(all(&ring, 249), (vec![249], 0));
        assert_eq!(all(&ring, 250), (vec![], 0));
    }

    #[test]
    fn a_ring_changes_its_size_and_keeps_what_fits() {
        let ring = SpinLock::new(slots(10));
        (0..25).for_each(|n| ring.lock().push(record(n)));
        ring.lock().resize(vec![Kept::EMPTY; 40]);
        assert_eq!(all(&ring, 0).0, (15..25).collect::<Vec<_>>());
        (25..60).for_each(|n| ring.lock().push(record(n)));
        assert_eq!(all(&ring, 0).0, (20..60).collect::<Vec<_>>());
        ring.lock().resize(vec![Kept::EMPTY; 3]);
        assert_eq!(all(&ring, 0), ((57..60).collect(), 57));
        ring.lock().resize(Vec::new());
        assert_eq!(all(&ring, 0), (vec![], 60));
    }
}
