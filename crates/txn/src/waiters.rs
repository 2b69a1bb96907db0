//! Waiters for a transaction's end.
//!
//! Transactions for which nobody waits pay one load. No wake-up is lost, by Dekker's argument: a
//! waiter counts itself, then looks at the transaction's state; an ender publishes the state, then
//! looks at the count; both with a sequentially consistent fence in between, so at least one of them
//! sees the other. Waiters of one transaction are woken in the order in which they came.

use std::sync::atomic::{AtomicUsize, Ordering, fence};

use base::{WaitEvent, Xid};
use crossbeam_utils::CachePadded;
use sched::{Mutex, TaskRef};

const SHARDS: usize = 64;

struct Waiter {
    xid: Xid,
    task: TaskRef,
}

/// All waiters, by the transaction waited for.
pub(crate) struct XidWaiters {
    count: CachePadded<AtomicUsize>,
    shards: Box<[CachePadded<Mutex<Vec<Waiter>>>]>,
}

impl XidWaiters {
    pub(crate) fn new() -> XidWaiters {
        let shard = || CachePadded::new(Mutex::new(WaitEvent::LWLockLockManager, Vec::new()));
        XidWaiters {
            count: CachePadded::new(AtomicUsize::new(0)),
            shards: (0..SHARDS).map(|_| shard()).collect(),
        }
    }

    fn shard(&self, xid: Xid) -> &Mutex<Vec<Waiter>> {
        &self.shards[xid.0 as usize % SHARDS]
    }

    /// How many wait just now.
    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// Registers a waiter. It must look at the transaction's state afterwards, before it parks, and
    /// [`XidWaiters::remove`] itself in the end.
    pub(crate) fn add(&self, xid: Xid, task: &TaskRef) {
        self.count.fetch_add(1, Ordering::SeqCst);
        self.shard(xid).lock().push(Waiter { xid, task: task.clone() });
        fence(Ordering::SeqCst);
    }

    /// Takes the waiter out again.
    pub(crate) fn remove(&self, xid: Xid, task: &TaskRef) {
        let mut shard = self.shard(xid).lock();
        let same = |w: &Waiter| w.xid == xid && std::sync::Arc::ptr_eq(&w.task, task);
        if let Some(at) = shard.iter().position(same) {
            shard.remove(at);
            self.count.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Wakes everyone who waits for this transaction, whose outcome has been published, if anyone.
    #[inline]
    pub(crate) fn wake(&self, xids: impl Iterator<Item = Xid>) {
        fence(Ordering::SeqCst);
        if self.count.load(Ordering::SeqCst) == 0 {
            return;
        }
        for xid in xids {
            self.wake_one(xid);
        }
    }

    #[cold]
    fn wake_one(&self, xid: Xid) {
        let woken: Vec<TaskRef> = self
            .shard(xid)
            .lock()
            .iter()
            .filter(|w| w.xid == xid)
            .map(|w| w.task.clone())
            .collect();
        for task in woken {
            task.unpark();
        }
    }
}
