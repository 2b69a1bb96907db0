//! Whether the workers have more to do than they can do at once, and waiting for the end of that.
//!
//! Work that can be done once for many, as a sync of the log can, is best done late while there is no lack of
//! other work: more of it comes together, and nobody's processor stands idle meanwhile. As soon as a worker runs
//! out of work its time has come.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use base::WaitEvent;

use super::queue::Shared;
use crate::spin::SpinLock;
use crate::task::{TaskRef, current, park_uninterruptible};

/// The shared parts of all workers that there ever were.
static WORKERS: SpinLock<Vec<&'static Shared>> = SpinLock::new(Vec::new());
/// Who waits in [`wait_while_crowded`], and how many they are.
static WAITING: SpinLock<Vec<TaskRef>> = SpinLock::new(Vec::new());
static WAITING_COUNT: AtomicUsize = AtomicUsize::new(0);

/// A worker more.
pub(super) fn know(worker: &'static Shared) {
    WORKERS.lock().push(worker);
}

/// No worker sleeps, and sessions wait for one.
pub fn is_crowded() -> bool {
    let workers = WORKERS.lock();
    workers.iter().all(|w| !w.sleeping.load(Ordering::SeqCst))
        && workers.iter().any(|w| w.ready_len() > 0)
}

/// Waits until a worker runs out of work, or until that time; not at all while none lacks it, or nobody waits
/// for one. For background threads.
pub fn wait_while_crowded(event: WaitEvent, until: Instant) {
    if !is_crowded() {
        return;
    }
    let me = current();
    WAITING.lock().push(me.clone());
    WAITING_COUNT.fetch_add(1, Ordering::SeqCst);
    // A worker says that it sleeps before it looks who waits: one sees the other.
    if is_crowded() {
        park_uninterruptible(event, Some(until));
    }
    WAITING_COUNT.fetch_sub(1, Ordering::SeqCst);
    WAITING.lock().retain(|task| !std::ptr::eq(&raw const **task, &raw const *me));
}

/// A worker has said that it sleeps.
#[inline]
pub(super) fn eases() {
    if WAITING_COUNT.load(Ordering::SeqCst) > 0 {
        let waiting = WAITING.lock().clone();
        waiting.iter().for_each(|task| task.unpark());
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::task::Task;
    use crate::worker::Conn;

    /// Other tests' workers come and go meanwhile: only what holds in any case is asserted.
    #[test]
    fn who_waits_is_woken_when_a_worker_has_nothing_left() {
        let worker = Shared::open(0).unwrap();
        worker.push_ready(&mut vec![Conn::of_task(Task::new("test"))]);
        let far = Instant::now() + Duration::from_secs(3600);
        let waiter = std::thread::spawn(move || {
            wait_while_crowded(WaitEvent::ActivityWalWriterMain, far);
        });
        while !waiter.is_finished() {
            worker.sleeping.store(true, Ordering::SeqCst);
            eases();
            std::thread::yield_now();
        }
        waiter.join().unwrap();
        assert!(!is_crowded(), "a worker sleeps");
        assert!(WAITING.lock().is_empty());
        worker.pop_ready();
        worker.close();
        worker.sleeping.store(false, Ordering::SeqCst);
        worker.reuse();
    }
}
