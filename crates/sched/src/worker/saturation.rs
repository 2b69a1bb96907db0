//! Whether the workers have more to do than they can do at once, and waiting for the end of that.
//!
//! Work that can be done once for many, as a sync of the log can, is best done late while there is no lack of
//! other work: more of it comes together, and nobody's processor stands idle meanwhile. As soon as a worker runs
//! out of work its time has come. Why, and what it gains: `docs/decisions/0017-gathered-while-busy.md`.
//!
//! Invariant: a worker says that it sleeps (`Shared::sleeping`) before it looks who waits here, and who waits
//! says so before looking at the workers. So nobody waits on while a worker sleeps.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use base::WaitEvent;

use super::queue::Shared;
use crate::spin::SpinLock;
use crate::task::{TaskRef, Wake, current, park_uninterruptible};

struct Saturation {
    /// The shared parts of all workers that there ever were.
    workers: SpinLock<Vec<&'static Shared>>,
    /// The waiters, and how many they are.
    waiting: SpinLock<Vec<TaskRef>>,
    waiting_count: AtomicUsize,
}

static SATURATION: Saturation = Saturation::new();

impl Saturation {
    const fn new() -> Saturation {
        Saturation {
            workers: SpinLock::new(Vec::new()),
            waiting: SpinLock::new(Vec::new()),
            waiting_count: AtomicUsize::new(0),
        }
    }

    fn exists(&self) -> bool {
        let workers = self.workers.lock();
        workers.iter().all(|w| !w.sleeping.load(Ordering::SeqCst))
            && workers.iter().any(|w| w.ready_len() > 0)
    }

    /// How the wait ended; None: there was none.
    fn wait(&self, event: WaitEvent, until: Instant) -> Option<Wake> {
        if !self.exists() {
            return None;
        }
        let me = current();
        self.waiting.lock().push(me.clone());
        self.waiting_count.fetch_add(1, Ordering::SeqCst);
        // A worker says that it sleeps before it looks who waits: one sees the other.
        let wake = self.exists().then(|| park_uninterruptible(event, Some(until)));
        self.waiting_count.fetch_sub(1, Ordering::SeqCst);
        self.waiting.lock().retain(|task| !std::ptr::eq(&raw const **task, &raw const *me));
        wake
    }

    fn on_worker_idle(&self) {
        if self.waiting_count.load(Ordering::SeqCst) > 0 {
            let waiting = self.waiting.lock().clone();
            waiting.iter().for_each(|task| task.unpark());
        }
    }
}

/// A worker more.
pub(super) fn register_worker(worker: &'static Shared) {
    SATURATION.workers.lock().push(worker);
}

/// How many workers have nothing to do.
pub(crate) fn idle_workers() -> usize {
    let workers = SATURATION.workers.lock();
    workers.iter().filter(|w| w.sleeping.load(Ordering::SeqCst)).count()
}

/// Whether somebody waits for a worker, and none has nothing to do.
pub(crate) fn is_saturated() -> bool {
    SATURATION.exists()
}

/// Waits until a worker runs out of work, or until that time; not at all while none lacks it, or nobody waits
/// for one. For background threads.
pub fn wait_while_saturated(event: WaitEvent, until: Instant) {
    let _ = SATURATION.wait(event, until);
}

/// A worker has said that it sleeps.
#[inline]
pub(super) fn on_worker_idle() {
    SATURATION.on_worker_idle();
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::task::Task;
    use crate::worker::Conn;

    #[test]
    fn who_waits_is_woken_when_a_worker_has_nothing_left() {
        static OWN: Saturation = Saturation::new();
        let worker = Shared::open(0).unwrap();
        let soon = || Instant::now() + Duration::from_secs(5);
        let wait = move || OWN.wait(WaitEvent::TimeoutCommitDelay, soon());
        OWN.workers.lock().push(worker);
        assert_eq!(wait(), None, "nobody waits for the worker");
        worker.push_ready(&mut vec![Conn::of_task(Task::new("test"))]);
        let waiter = std::thread::spawn(wait);
        while OWN.waiting_count.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        worker.sleeping.store(true, Ordering::SeqCst);
        OWN.on_worker_idle();
        assert_ne!(waiter.join().unwrap(), Some(Wake::TimedOut), "it was not woken");
        assert!(OWN.waiting.lock().is_empty());
        assert_eq!(wait(), None, "a worker sleeps");
        worker.pop_ready();
        worker.sleeping.store(false, Ordering::SeqCst);
    }
}
