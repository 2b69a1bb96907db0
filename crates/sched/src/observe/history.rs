//! The latest finished waits: rings, one for each core, of the worker that waited.
//!
//! A ring is under a spin lock that its worker finds free but for the moments in which somebody
//! reads, takes for many records at once (`pending.rs`), and readers copy a few at a time. Waits for work (idle sessions, background
//! threads' main loops) have rings of their own, so that they don't push out the others.
//! `pg_wait_sampling.history_size` records are kept of either kind; it may change at any time.

use std::sync::OnceLock;

use base::settings::{live_int, setting};

use super::kept::PackedWait;
use super::{WaitRecord, is_idle, pending};
use crate::spin::{SpinLock, SpinLockGuard};

/// Records copied under one hold of a ring's lock.
const CHUNK: usize = 32;
const RINGS_MAX: usize = 64;

/// Record number `n` is in slot `n % slots.len()`.
struct Slots {
    slots: Vec<PackedWait>,
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
    fn of(slots: Vec<PackedWait>) -> Slots {
        Slots { slots, made_for: 0, at: 0, next: 0, oldest: 0 }
    }

    /// The oldest record that is kept.
    fn first(&self) -> u64 {
        self.oldest.max(self.next.saturating_sub(self.slots.len() as u64))
    }

    fn push(&mut self, record: PackedWait) {
        self.slots[self.at] = record;
        self.at = if self.at + 1 == self.slots.len() { 0 } else { self.at + 1 };
        self.next += 1;
    }

    /// Moves what fits into `slots`; returns the old ones, to be freed outside of the lock.
    fn resize(&mut self, mut slots: Vec<PackedWait>) -> Vec<PackedWait> {
        let (old, new) = (self.slots.len() as u64, slots.len() as u64);
        self.oldest = self.first().max(self.next.saturating_sub(new));
        for number in self.oldest..self.next {
            slots[(number % new) as usize] = self.slots[(number % old) as usize];
        }
        self.at = self.next.checked_rem(new).unwrap_or(0) as usize;
        std::mem::replace(&mut self.slots, slots)
    }
}

/// Appends records to ring `index`, modulo the number of rings.
pub(super) fn append(index: usize, records: &[PackedWait]) {
    let rings = rings();
    let pair = &rings[index % rings.len()];
    for (kind, ring) in pair.iter().enumerate() {
        let mut of_kind =
            records.iter().filter(|r| usize::from(is_idle(r.event())) == kind).peekable();
        if of_kind.peek().is_none() {
            continue;
        }
        let wanted = live_int(setting::PG_WAIT_SAMPLING_HISTORY_SIZE) as usize;
        let mut slots = ring.0.lock();
        if slots.made_for != wanted {
            drop(slots);
            slots = resized(&ring.0, wanted);
        }
        // Another thread of this ring may have changed the size again.
        if !slots.slots.is_empty() {
            of_kind.for_each(|record| slots.push(*record));
        }
    }
}

/// Gives a ring its part of `wanted` records. Memory is asked for and given back outside of the lock.
#[cold]
fn resized(ring: &SpinLock<Slots>, wanted: usize) -> SpinLockGuard<'_, Slots> {
    let fresh = vec![PackedWait::EMPTY; wanted.div_ceil(rings().len())];
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
    pending::drain();
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
        let mut chunk = [PackedWait::EMPTY; CHUNK];
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
        Slots::of(vec![PackedWait::EMPTY; len])
    }

    fn record(n: u64) -> PackedWait {
        PackedWait { event_began: n, ..PackedWait::EMPTY }
    }

    fn all(ring: &SpinLock<Slots>, from: u64) -> (Vec<u64>, u64) {
        let (mut next, mut records) = (from, Vec::new());
        let missed = read(ring, &mut next, &mut records);
        (records.iter().map(|r| r.began_ns).collect(), missed)
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
        ring.lock().resize(vec![PackedWait::EMPTY; 40]);
        assert_eq!(all(&ring, 0).0, (15..25).collect::<Vec<_>>());
        (25..60).for_each(|n| ring.lock().push(record(n)));
        assert_eq!(all(&ring, 0).0, (20..60).collect::<Vec<_>>());
        ring.lock().resize(vec![PackedWait::EMPTY; 3]);
        assert_eq!(all(&ring, 0), ((57..60).collect(), 57));
        ring.lock().resize(Vec::new());
        assert_eq!(all(&ring, 0), (vec![], 60));
    }
}
