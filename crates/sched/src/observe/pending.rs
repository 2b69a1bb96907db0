//! Finished waits on their way to the history and the profile.
//!
//! A wait is put down in plain stores to memory that only its thread writes: no lock, and always the same
//! few cache lines. When there are [`ROOM`] of them they are added to history and profile, with code and locks
//! that are touched once for all. Whoever reads either has every thread's added before ([`drain`]), so nobody
//! finds a wait later than it ended. A background thread that others wait for chooses the moment itself
//! ([`drain_waits`]).
//!
//! The thread alone puts, and who holds `taking` takes, in the order in which they were put.

use std::sync::atomic::{AtomicU64, Ordering};

use super::kept::PackedWait;
use super::thread::{every, own};
use super::under_way::since_reset;
use super::{history, profile};
use crate::local::local;
use crate::spin::SpinLock;

/// More are not kept.
const ROOM: usize = 32;

/// A thread's finished waits that are in neither yet.
#[repr(align(64))]
pub(crate) struct Pending {
    slots: [[AtomicU64; 8]; ROOM],
    /// How many the thread has put here, ever.
    put: AtomicU64,
    /// How many of them were taken. Changed by the holder of `taking`.
    taken: AtomicU64,
    taking: SpinLock<()>,
}

impl Pending {
    pub const fn new() -> Pending {
        Pending {
            slots: [const { [const { AtomicU64::new(0) }; 8] }; ROOM],
            put: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            taking: SpinLock::new(()),
        }
    }

    /// By the thread itself, which may write the slot: it is not among those that may be taken. True: that
    /// was the last one for which there was room.
    #[inline]
    fn put(&self, kept: PackedWait) -> bool {
        let put = self.put.load(Ordering::Relaxed);
        for (word, value) in self.slots[put as usize % ROOM].iter().zip(kept.words()) {
            word.store(value, Ordering::Relaxed);
        }
        self.put.store(put + 1, Ordering::Release);
        put + 1 - self.taken.load(Ordering::Acquire) == ROOM as u64
    }

    /// Adds all to the history (a ring of it) and the profile.
    #[cold]
    pub fn drain(&self, ring: usize) {
        let _taking = self.taking.lock();
        let (taken, put) = (self.taken.load(Ordering::Relaxed), self.put.load(Ordering::Acquire));
        if taken == put {
            return;
        }
        let mut all = [PackedWait::EMPTY; ROOM];
        let all = &mut all[..(put - taken) as usize];
        for (kept, at) in all.iter_mut().zip(taken..) {
            let words = self.slots[at as usize % ROOM].each_ref();
            *kept = PackedWait::of_words(words.map(|word| word.load(Ordering::Relaxed)));
        }
        history::append(ring, all);
        sum(all);
        // Only now: who has the lock next finds them all added.
        self.taken.store(put, Ordering::Release);
    }
}

/// Adds waits to the profile, those that belong to one row of it together. Sorts them for that.
fn sum(waits: &mut [PackedWait]) {
    let mut left = gather(waits, |kept| !kept.is_to_be_summed()).1;
    while let Some(first) = left.first().copied() {
        let (same, others) = gather(left, |kept| kept.is_like(&first));
        let durations = same.iter().map(|kept| since_reset(kept.began_ns(), kept.duration_ns()));
        profile::add(&first.record(), durations);
        left = others;
    }
}

/// Brings those that are `wanted` to the front; they and the rest.
fn gather(
    waits: &mut [PackedWait],
    wanted: impl Fn(&PackedWait) -> bool,
) -> (&mut [PackedWait], &mut [PackedWait]) {
    let mut count = 0;
    for at in 0..waits.len() {
        if wanted(&waits[at]) {
            waits.swap(count, at);
            count += 1;
        }
    }
    waits.split_at_mut(count)
}

/// Puts a wait down that is over.
#[inline]
pub(super) fn put(kept: PackedWait) {
    let own = own(local());
    if own.pending.put(kept) {
        own.drain();
    }
}

/// Adds all threads' finished waits to history and profile.
pub(super) fn drain() {
    every().iter().for_each(|thread| thread.drain());
}

/// Adds the calling thread's finished waits to history and profile if there are many already: for a thread
/// that others wait for at most other times.
pub fn drain_waits() {
    let own = own(local());
    let [put, taken] = [&own.pending.put, &own.pending.taken].map(|n| n.load(Ordering::Relaxed));
    if put - taken >= ROOM as u64 / 2 {
        own.drain();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::observe::{HistoryCursor, WaitEvent, history_since, profile};

    #[test]
    fn a_wait_is_seen_by_others_as_soon_as_it_is_over() {
        let task = crate::Task::new("test");
        task.set_pid(-77);
        let id = task.id();
        let (tell, told) = std::sync::mpsc::channel();
        let (go_on, goes_on) = std::sync::mpsc::channel();
        let thread = crate::task::spawn_task(task, move || {
            for _ in 0..ROOM * 2 + 3 {
                crate::park(WaitEvent::TimeoutPgSleep, Some(Instant::now()));
                tell.send(()).unwrap();
                goes_on.recv().unwrap();
            }
        });
        // One cursor: the waits of other tests may have pushed the first ones out by the end.
        let (mut cursor, mut seen) = (HistoryCursor::default(), 0);
        for n in 1..=ROOM * 2 + 3 {
            told.recv().unwrap();
            let fresh = history_since(&mut cursor, true);
            seen += fresh.iter().filter(|r| r.task == id).count();
            assert_eq!(seen, n);
            let rows = profile();
            let row = rows.iter().find(|r| r.key.is_some_and(|k| k.pid == -77)).unwrap();
            assert_eq!(row.sums.count, n as u64);
            go_on.send(()).unwrap();
        }
        thread.join().unwrap();
    }

    #[test]
    fn waits_are_summed_by_their_rows_however_they_are_mixed() {
        let wait = |task: u64, statement: u64, event: WaitEvent, duration: u64| PackedWait {
            event_began: (event as u64) << crate::clock::BITS | duration,
            duration,
            task,
            statement,
            pids: task,
            ..PackedWait::EMPTY
        };
        let (one, other) = (WaitEvent::TimeoutPgSleep, WaitEvent::IPCTaskJoin);
        let mut waits = [
            wait(901, 5, one, 1),
            PackedWait::idle(901, 901, [1, 7]),
            wait(902, 5, one, 10),
            wait(901, 5, one, 2),
            wait(901, 6, one, 100),
            wait(901, 5, other, 1000),
            wait(902, 5, one, 20),
            wait(901, 5, one, 3),
        ];
        sum(&mut waits);
        let rows = profile();
        let of = |pid: i32, statement: u64, event: WaitEvent| {
            let is = |r: &&crate::observe::ProfileRow| {
                r.key.is_some_and(|k| (k.pid, k.statement, k.event) == (pid, statement, event))
            };
            rows.iter().find(is).map(|r| (r.sums.count, r.sums.total_ns, r.sums.longest_ns))
        };
        assert_eq!(of(901, 5, one), Some((3, 6, 3)));
        assert_eq!(of(901, 6, one), Some((1, 100, 100)));
        assert_eq!(of(901, 5, other), Some((1, 1000, 1000)));
        assert_eq!(of(902, 5, one), Some((2, 30, 20)));
        assert_eq!(of(901, 0, WaitEvent::ClientClientRead), None, "its session sums it");
    }

    #[test]
    fn many_at_a_time_come_in_order_whoever_takes_them() {
        let readers: Vec<_> =
            (0..2).map(|_| std::thread::spawn(|| (0..2000).for_each(|_| drain()))).collect();
        let task = crate::Task::new("test");
        task.set_pid(-78);
        let id = task.id();
        let waits = 20_000;
        crate::task::spawn_task(task, move || {
            for _ in 0..waits {
                crate::park(WaitEvent::TimeoutPgSleep, Some(Instant::now()));
            }
        })
        .join()
        .unwrap();
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        let kept = history_since(&mut HistoryCursor::default(), true);
        let began: Vec<u64> = kept.iter().filter(|r| r.task == id).map(|r| r.began_ns).collect();
        assert!(began.is_sorted() && began.len() > 1000, "{}", began.len());
        let sums: u64 = profile()
            .iter()
            .filter(|r| r.key.is_some_and(|k| k.pid == -78))
            .map(|r| r.sums.count)
            .sum();
        assert_eq!(sums, waits);
    }
}
