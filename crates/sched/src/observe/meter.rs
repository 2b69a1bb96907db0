//! Waits of one task summed up by event while somebody measures it (`EXPLAIN (ANALYZE, WAITS)`).

use std::sync::atomic::{AtomicBool, Ordering};

use base::WaitEvent;

use super::PackedWait;
use crate::spin::SpinLock;
use crate::task::with_current;

/// Count and nanoseconds of a task's waits for one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metered {
    /// The event.
    pub event: WaitEvent,
    /// Finished waits.
    pub count: u64,
    /// Their time.
    pub total_ns: u64,
}

/// A task's meter, which only the task itself uses.
#[derive(Default)]
pub(crate) struct Meter {
    on: AtomicBool,
    sums: SpinLock<Vec<Metered>>,
}

impl Meter {
    /// A wait of the task is over.
    #[inline]
    pub fn add(&self, kept: &PackedWait) {
        if self.on.load(Ordering::Relaxed) {
            add(&mut self.sums.lock(), kept.event(), 1, kept.duration);
        }
    }
}

fn add(sums: &mut Vec<Metered>, event: WaitEvent, count: u64, total_ns: u64) {
    match sums.iter_mut().find(|s| s.event == event) {
        Some(sum) => {
            sum.count += count;
            sum.total_ns += total_ns;
        }
        None => sums.push(Metered { event, count, total_ns }),
    }
}

/// Sums up the running task's waits from now on, beginning at nothing, or no more.
pub fn meter(on: bool) {
    with_current(|task| {
        task.meter().sums.lock().clear();
        task.meter().on.store(on, Ordering::Relaxed);
    });
}

/// The running task's waits since [`meter`].
pub fn metered() -> Vec<Metered> {
    with_current(|task| task.meter().sums.lock().clone())
}

/// Adds to `sums` what the running task waited since it read `before`.
pub fn add_metered(sums: &mut Vec<Metered>, before: &[Metered]) {
    for now in metered() {
        let then = before.iter().find(|b| b.event == now.event);
        let (count, ns) = then.map_or((0, 0), |b| (b.count, b.total_ns));
        if now.count > count {
            add(sums, now.event, now.count - count, now.total_ns - ns);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::task::park;

    #[test]
    fn waits_between_two_readings_are_summed_by_event() {
        let wait = |event: WaitEvent| park(event, Some(Instant::now()));
        let mut sums = Vec::new();
        meter(true);
        wait(WaitEvent::TimeoutPgSleep);
        let before = metered();
        wait(WaitEvent::TimeoutPgSleep);
        wait(WaitEvent::IPCTaskJoin);
        wait(WaitEvent::IPCTaskJoin);
        add_metered(&mut sums, &before);
        meter(false);
        wait(WaitEvent::IPCTaskJoin);
        let counts: Vec<_> = sums.iter().map(|s| (s.event, s.count)).collect();
        assert_eq!(counts, [(WaitEvent::TimeoutPgSleep, 1), (WaitEvent::IPCTaskJoin, 2)]);
        assert!(metered().is_empty());
    }
}
