//! Tasks that wait for the log's writer or for replicas: [`crate::follow`].

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};

use sched::{SpinLock, TaskRef};

/// See [`crate::follow`].
#[derive(Default)]
pub(crate) struct Followers {
    pub(crate) count: AtomicUsize,
    pub(crate) watching: SpinLock<Vec<TaskRef>>,
    pub(crate) quorum: AtomicBool,
    pub(crate) acknowledged: AtomicU64,
    pub(crate) waiting: SpinLock<Vec<(u64, TaskRef)>>,
    /// The same for what replicas have applied.
    pub(crate) applied: AtomicU64,
    pub(crate) awaiting_applied: SpinLock<Vec<(u64, TaskRef)>>,
}

impl Followers {
    /// The log is durable further than before.
    pub(crate) fn wake(&self) {
        fence(Ordering::SeqCst);
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let tasks = {
            let mut watching = self.watching.lock();
            self.count.store(0, Ordering::SeqCst);
            std::mem::take(&mut *watching)
        };
        tasks.iter().for_each(|task| task.unpark());
    }

    /// Enough replicas have applied more, or nothing has to be.
    pub(crate) fn wake_applied(&self) {
        let upto = match self.quorum.load(Ordering::SeqCst) {
            true => self.applied.load(Ordering::SeqCst),
            false => u64::MAX,
        };
        let woken: Vec<_> =
            self.awaiting_applied.lock().extract_if(.., |one| one.0 <= upto).collect();
        woken.iter().for_each(|(_, task)| task.unpark());
    }

    /// More is acknowledged, or nothing has to be.
    pub(crate) fn wake_acknowledged(&self) {
        let upto = match self.quorum.load(Ordering::SeqCst) {
            true => self.acknowledged.load(Ordering::SeqCst),
            false => u64::MAX,
        };
        let woken: Vec<_> = self.waiting.lock().extract_if(.., |one| one.0 <= upto).collect();
        woken.iter().for_each(|(_, task)| task.unpark());
    }
}
