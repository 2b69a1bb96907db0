//! Acquisitions of latches by tranche, counted by thread.

use std::sync::atomic::{AtomicU64, Ordering};

use base::WaitEvent;
use base::waits::WAITS;

use super::thread::{every, own};
use crate::local::Local;

/// One thread's counts by wait event; only that thread writes.
pub(crate) struct Counts([AtomicU64; WAITS.len()]);

impl Counts {
    pub const fn new() -> Counts {
        Counts([const { AtomicU64::new(0) }; _])
    }
}

/// The running thread took a latch of this tranche (the wait event's number).
#[inline]
pub(crate) fn count_acquisition(local: &Local, tranche: usize) {
    if let Some(cell) = own(local).counts.0.get(tranche) {
        cell.store(cell.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

/// How often latches of this tranche were taken since the start, by anybody.
pub fn lwlock_acquisitions(tranche: WaitEvent) -> u64 {
    every().iter().map(|thread| thread.counts.0[tranche as usize].load(Ordering::Relaxed)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::local;

    #[test]
    fn counts_outlive_their_thread() {
        let event = WaitEvent::LWLockStatistics;
        let before = lwlock_acquisitions(event);
        for _ in 0..3 {
            let count = move || (0..100).for_each(|_| count_acquisition(local(), event as usize));
            std::thread::spawn(count).join().unwrap();
        }
        assert_eq!(lwlock_acquisitions(event) - before, 300);
    }
}
