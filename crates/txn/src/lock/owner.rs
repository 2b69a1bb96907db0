//! A session as the holder of locks.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use base::Oid;
use base::settings::{live_int, setting};
use sched::{Lines, TaskRef};

use crate::manager::TxnManager;
use crate::registry::{NOBODY, Slot};

/// One session's locks. Dropping it releases what is left.
pub struct LockOwner {
    /// `lock_timeout` of the session in milliseconds; 0: none.
    pub lock_timeout_ms: AtomicU64,
    /// `deadlock_timeout` of the session in milliseconds; 0: the server's.
    pub deadlock_timeout_ms: AtomicU64,
    /// `log_lock_waits` of the session.
    pub log_lock_waits: AtomicBool,
    manager: Arc<TxnManager>,
    number: u32,
    task: TaskRef,
    pid: i32,
}

impl LockOwner {
    pub(crate) fn new(manager: &Arc<TxnManager>, task: &TaskRef, pid: i32) -> LockOwner {
        LockOwner {
            lock_timeout_ms: AtomicU64::new(0),
            deadlock_timeout_ms: AtomicU64::new(0),
            log_lock_waits: AtomicBool::new(false),
            manager: manager.clone(),
            number: manager.core.registry.add(pid, task.id()),
            task: task.clone(),
            pid,
        }
    }

    /// A session that works for another one, which waits for it: their locks are each one's own. For
    /// the same task; ends before the other one goes on.
    pub(crate) fn new_inner(outer: &LockOwner) -> LockOwner {
        let inner = LockOwner::new(&outer.manager, &outer.task, outer.pid);
        for (of, from) in [
            (&inner.lock_timeout_ms, &outer.lock_timeout_ms),
            (&inner.deadlock_timeout_ms, &outer.deadlock_timeout_ms),
        ] {
            of.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        let logs = outer.log_lock_waits.load(Ordering::Relaxed);
        inner.log_lock_waits.store(logs, Ordering::Relaxed);
        inner.set_database(outer.database());
        inner.slot().outer.store(outer.number, Ordering::Release);
        outer.slot().inner.store(inner.number, Ordering::Release);
        inner
    }

    /// Whether it works for another session.
    pub(super) fn is_inner(&self) -> bool {
        self.slot().outer.load(Ordering::Acquire) != NOBODY
    }

    /// The session's database: messages and `pg_locks` name it.
    pub fn set_database(&self, database: Oid) {
        self.slot().database.store(database.0, Ordering::Relaxed);
    }

    /// See [`LockOwner::set_database`].
    pub(super) fn database(&self) -> Oid {
        Oid(self.slot().database.load(Ordering::Relaxed))
    }

    /// The manager.
    pub fn manager(&self) -> &Arc<TxnManager> {
        &self.manager
    }

    /// The session's process id, as `pg_stat_activity` shows it.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// The session's task.
    pub fn task(&self) -> &TaskRef {
        &self.task
    }

    /// The number of the session's slot in the registry.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// The memory of its own that each transaction uses.
    pub fn lines(&self) -> [Lines; 2] {
        [Lines::of(self), Lines::of(self.slot())]
    }

    /// The session's slot in the registry.
    #[inline]
    pub(crate) fn slot(&self) -> &Slot {
        self.manager.core.registry.get(self.number)
    }

    pub(super) fn lock_timeout(&self) -> Option<Duration> {
        match self.lock_timeout_ms.load(Ordering::Relaxed) {
            0 => None,
            ms => Some(Duration::from_millis(ms)),
        }
    }

    pub(super) fn deadlock_timeout(&self) -> Duration {
        let ms = match self.deadlock_timeout_ms.load(Ordering::Relaxed) {
            0 => live_int(setting::DEADLOCK_TIMEOUT).max(1) as u64,
            ms => ms,
        };
        Duration::from_millis(ms)
    }
}

impl Drop for LockOwner {
    fn drop(&mut self) {
        self.manager.locks.release_all(self);
        let outer = self.slot().outer.swap(NOBODY, Ordering::AcqRel);
        if outer != NOBODY {
            self.manager.core.registry.get(outer).inner.store(NOBODY, Ordering::Release);
        }
        self.manager.core.registry.remove(self.number);
    }
}

impl fmt::Debug for LockOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LockOwner(process {})", self.pid)
    }
}
