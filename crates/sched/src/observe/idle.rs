//! Times that a session has waited for its client: sums that it keeps itself.
//!
//! That wait comes once for each statement, so it is the one whose cost counts most. It has always
//! the same row of the profile (the session's, no statement, no object), which therefore lies in the
//! task, written by nobody else, without a lock or a search. [`super::profile()`] puts these rows beside its
//! own; when the session ends its sums become a row there.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::profile::{CLASSES, WaitSums, class_of};
use super::under_way::since_reset;

/// Counts calls of [`forget_idle_sums`]: sums of an earlier count are void.
static RESETS: AtomicU32 = AtomicU32::new(0);

/// A task's sums. Written by the task itself only; a reader may see a wait in one of them and not yet in
/// another.
pub(crate) struct IdleSums {
    resets: AtomicU32,
    count: AtomicU64,
    total_ns: AtomicU64,
    longest_ns: AtomicU64,
    classes: [AtomicU64; CLASSES],
}

impl IdleSums {
    pub const fn new() -> IdleSums {
        IdleSums {
            resets: AtomicU32::new(0),
            count: AtomicU64::new(0),
            total_ns: AtomicU64::new(0),
            longest_ns: AtomicU64::new(0),
            classes: [const { AtomicU64::new(0) }; CLASSES],
        }
    }

    /// A wait is over, which began then and took so long.
    #[inline]
    pub fn add(&self, [began_ns, mut ns]: [u64; 2]) {
        if self.resets.load(Ordering::Relaxed) != RESETS.load(Ordering::Relaxed) {
            self.clear();
            ns = since_reset(began_ns, ns);
        }
        grow(&self.count, 1);
        grow(&self.total_ns, ns);
        if ns > self.longest_ns.load(Ordering::Relaxed) {
            self.longest_ns.store(ns, Ordering::Relaxed);
        }
        grow(&self.classes[class_of(ns)], 1);
    }

    /// The sums since the last reset.
    pub fn read(&self) -> WaitSums {
        let mut sums = WaitSums::default();
        if self.resets.load(Ordering::Acquire) == RESETS.load(Ordering::Relaxed) {
            sums.count = self.count.load(Ordering::Relaxed);
            sums.total_ns = self.total_ns.load(Ordering::Relaxed);
            sums.longest_ns = self.longest_ns.load(Ordering::Relaxed);
            let classes = self.classes.each_ref();
            sums.classes = classes.map(|class| class.load(Ordering::Relaxed));
        }
        sums
    }

    #[cold]
    fn clear(&self) {
        let all = [&self.count, &self.total_ns, &self.longest_ns].into_iter().chain(&self.classes);
        all.for_each(|sum| sum.store(0, Ordering::Relaxed));
        self.resets.store(RESETS.load(Ordering::Relaxed), Ordering::Release);
    }
}

/// Only one thread at a time adds.
fn grow(sum: &AtomicU64, by: u64) {
    sum.store(sum.load(Ordering::Relaxed) + by, Ordering::Relaxed);
}

/// Makes all tasks' sums nothing.
pub(super) fn forget_idle_sums() {
    RESETS.fetch_add(1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use base::WaitEvent;

    use super::super::profile::sums_by_event;
    use super::*;

    #[test]
    fn sums_are_those_since_the_last_reset() {
        let sums = IdleSums::new();
        [5, 1000, 7].into_iter().for_each(|ns| sums.add([u64::MAX, ns]));
        let read = sums.read();
        assert_eq!((read.count, read.total_ns, read.longest_ns), (3, 1012, 1000));
        assert_eq!((read.classes[2], read.classes[9]), (2, 1));
        forget_idle_sums();
        assert_eq!(sums.read(), WaitSums::default());
        sums.add([u64::MAX, 9]);
        let read = sums.read();
        assert_eq!((read.count, read.total_ns, read.classes[9]), (1, 9, 0));
        let task = crate::Task::new("test");
        task.idle_sums().add([u64::MAX, 5]);
        let of_event = &sums_by_event()[WaitEvent::ClientClientRead as usize];
        assert!(of_event.count >= 1 && of_event.total_ns >= 5, "{of_event:?}");
    }
}
