//! Taking and releasing heavyweight locks.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use base::{Result, WaitEvent};
use crossbeam_utils::CachePadded;
use sched::{Mutex, MutexGuard, TaskRef};

use super::deadlock::Checks;
use super::local::Held;
use super::rows::SharedRows;
use super::table::{Admission, Entry, Request};
use super::{FastMap, LockMode, LockOwner, LockTag, LockWait};
use crate::manager::Core;
use crate::prepared::PreparedRow;

const PARTITIONS: usize = 128;
/// Counters of strong lockers, by the relation's hash.
const STRONG_COUNTERS: usize = 1024;
/// Unused entries that a partition keeps for the next locks.
const SPARE_ENTRIES: usize = 16;

/// Some of the locks.
#[derive(Default)]
pub(super) struct Partition {
    entries: FastMap<LockTag, Entry>,
    spare: Vec<Entry>,
}

impl Partition {
    pub(super) fn get(&self, tag: LockTag) -> Option<&Entry> {
        self.entries.get(&tag)
    }

    pub(super) fn get_mut(&mut self, tag: LockTag) -> Option<&mut Entry> {
        self.entries.get_mut(&tag)
    }

    fn entry(&mut self, tag: LockTag) -> &mut Entry {
        let spare = &mut self.spare;
        self.entries.entry(tag).or_insert_with(|| spare.pop().unwrap_or_default())
    }

    fn forget_if_unused(&mut self, tag: LockTag) {
        if self.entries.get(&tag).is_some_and(Entry::is_unused)
            && let Some(entry) = self.entries.remove(&tag)
            && self.spare.len() < SPARE_ENTRIES
        {
            self.spare.push(entry);
        }
    }
}

/// The table of all locks.
pub struct LockManager {
    pub(super) core: Arc<Core>,
    partitions: Box<[CachePadded<Mutex<Partition>>]>,
    strong: Box<[AtomicU32]>,
    pub(super) detector: Mutex<()>,
    pub(super) checks: Checks,
    pub(super) wait_serial: AtomicU64,
    pub(super) rows: SharedRows,
    /// Writes long waits to the log.
    pub(super) log: OnceLock<LockLog>,
}

/// Gets a line for the log about a session's long wait: its process id, the message, the detail.
pub type LockLog = fn(i32, &str, Option<&str>);

fn wake(tasks: Vec<TaskRef>) {
    for task in tasks {
        task.unpark();
    }
}

impl LockManager {
    pub(crate) fn new(core: Arc<Core>) -> LockManager {
        let partition =
            || CachePadded::new(Mutex::new(WaitEvent::LWLockLockManager, Partition::default()));
        LockManager {
            core,
            partitions: (0..PARTITIONS).map(|_| partition()).collect(),
            strong: (0..STRONG_COUNTERS).map(|_| AtomicU32::new(0)).collect(),
            detector: Mutex::new(WaitEvent::LWLockLockManager, ()),
            checks: Checks::default(),
            wait_serial: AtomicU64::new(1),
            rows: SharedRows::new(),
            log: OnceLock::new(),
        }
    }

    /// Says who writes to the log for sessions with `log_lock_waits`; the first one counts.
    pub fn set_log(&self, log: LockLog) {
        let _ = self.log.set(log);
    }

    /// Takes a lock until the (sub)transaction ends. Weak relation locks take the fast path.
    /// Returns false only with [`LockWait::Try`]. A [`LockTag::Xid`] is waited for and not held.
    ///
    /// # Errors
    /// `40P01` deadlock; `55P03` lock_timeout; interrupts.
    pub fn lock(
        &self,
        owner: &LockOwner,
        tag: LockTag,
        mode: LockMode,
        wait: LockWait,
    ) -> Result<bool> {
        self.acquire(owner, tag, mode, wait, false)
    }

    /// Takes a lock that outlives transactions (advisory, by session). Counted.
    ///
    /// # Errors
    /// As [`LockManager::lock`].
    pub fn lock_session(
        &self,
        owner: &LockOwner,
        tag: LockTag,
        mode: LockMode,
        wait: LockWait,
    ) -> Result<bool> {
        self.acquire(owner, tag, mode, wait, true)
    }

    fn acquire(
        &self,
        owner: &LockOwner,
        tag: LockTag,
        mode: LockMode,
        wait: LockWait,
        session: bool,
    ) -> Result<bool> {
        if let LockTag::Xid(xid) = tag {
            return self.wait_for_xid(owner, xid, wait);
        }
        if self.acquire_locally(owner, tag, mode, session) {
            return Ok(true);
        }
        let strong = mode.is_strong() && matches!(tag, LockTag::Relation(..));
        if strong {
            self.strong(tag).fetch_add(1, Ordering::SeqCst);
            self.transfer_weak_locks(tag);
        }
        let result = self.acquire_shared(owner, tag, mode, wait);
        // Another thread of the same session may have taken the same lock meanwhile.
        let counted =
            result == Ok(true) && owner.slot().local.lock().hold(tag, mode, session, false);
        if strong && !counted {
            self.lower_strong(tag);
        }
        result
    }

    /// Locks held already, and the fast path.
    #[inline]
    fn acquire_locally(
        &self,
        owner: &LockOwner,
        tag: LockTag,
        mode: LockMode,
        session: bool,
    ) -> bool {
        let mut local = owner.slot().local.lock();
        if local.hold_again(tag, mode, session) {
            return true;
        }
        let fast = mode.is_weak()
            && matches!(tag, LockTag::Relation(..))
            && self.strong(tag).load(Ordering::SeqCst) == 0;
        if fast {
            local.hold(tag, mode, session, true);
        }
        fast
    }

    /// Takes the lock in the shared table.
    fn acquire_shared(
        &self,
        owner: &LockOwner,
        tag: LockTag,
        mode: LockMode,
        wait: LockWait,
    ) -> Result<bool> {
        let mut partition = self.partition(tag);
        let entry = partition.entry(tag);
        let admission = entry.admit(owner.number(), mode);
        if admission == Admission::Granted {
            return Ok(true);
        }
        if wait == LockWait::Try {
            partition.forget_if_unused(tag);
            return Ok(false);
        }
        let place = match admission {
            Admission::Queue(place) => place,
            _ => entry.queue().len(),
        };
        let request = Request::new(owner.number(), mode, sched::current());
        entry.enqueue(place, request.clone());
        drop(partition);
        let doomed = admission == Admission::Deadlock;
        let result = self.wait_until(owner, tag, mode, doomed, &|| request.granted());
        if let Err(error) = result {
            let mut partition = self.partition(tag);
            let woken = partition.entry(tag).cancel(&request);
            partition.forget_if_unused(tag);
            drop(partition);
            wake(woken);
            return Err(error);
        }
        Ok(true)
    }

    /// Waits until those who hold now what conflicts with `mode` have given it up. Others, who come
    /// meanwhile, are neither waited for nor held up.
    ///
    /// # Errors
    /// As [`LockManager::lock`].
    pub fn wait_for_holders(&self, owner: &LockOwner, tag: LockTag, mode: LockMode) -> Result<()> {
        // While the counter is up, everybody comes and goes by the shared table.
        self.strong(tag).fetch_add(1, Ordering::SeqCst);
        self.transfer_weak_locks(tag);
        let watch = {
            let mut partition = self.partition(tag);
            let over = partition.entry(tag).watch(owner.number(), mode, sched::current());
            partition.forget_if_unused(tag);
            over
        };
        let result = match watch {
            None => Ok(()),
            Some(over) => {
                let done = || over.load(Ordering::Acquire);
                let result = self.wait_until(owner, tag, mode, false, &done);
                if let Some(entry) = self.partition(tag).get_mut(tag) {
                    entry.unwatch(owner.number());
                }
                result
            }
        };
        self.lower_strong(tag);
        result
    }

    /// Moves the weak locks on a relation that sessions hold by the fast path into the shared table.
    fn transfer_weak_locks(&self, tag: LockTag) {
        for (number, slot) in self.core.registry.slots() {
            if !slot.local.lock().has_fast(tag) {
                continue;
            }
            let mut partition = self.partition(tag);
            let entry = partition.entry(tag);
            slot.local.lock().transfer(tag, |mode| entry.grant(number, mode));
            partition.forget_if_unused(tag);
        }
    }

    /// Releases one transaction-level hold early.
    pub fn unlock(&self, owner: &LockOwner, tag: LockTag, mode: LockMode) -> bool {
        self.release_one(owner, tag, mode, false)
    }

    /// Releases one session-level hold; false when there is none.
    pub fn unlock_session(&self, owner: &LockOwner, tag: LockTag, mode: LockMode) -> bool {
        self.release_one(owner, tag, mode, true)
    }

    fn release_one(&self, owner: &LockOwner, tag: LockTag, mode: LockMode, session: bool) -> bool {
        let released = owner.slot().local.lock().unhold(tag, mode, session);
        if let Some(Some(held)) = released
            && !held.fast
        {
            self.release_shared(owner, tag, mode);
        }
        released.is_some()
    }

    /// Releases all session-level advisory locks.
    pub fn unlock_session_all(&self, owner: &LockOwner) {
        let mut gone = Vec::new();
        owner.slot().local.lock().end_session_locks(&mut gone);
        self.release_list(owner, &gone);
    }

    /// The end of the session's transaction: releases its locks.
    pub(crate) fn release_transaction(&self, owner: &LockOwner) {
        let mut gone = Vec::new();
        let rows = {
            let mut local = owner.slot().local.lock();
            local.end_transaction(&mut gone);
            std::mem::take(&mut local.rows)
        };
        self.release_list(owner, &gone);
        self.rows.remove(owner.number(), &rows);
    }

    /// The end of the session.
    pub(super) fn release_all(&self, owner: &LockOwner) {
        self.release_transaction(owner);
        let mut gone = Vec::new();
        owner.slot().local.lock().end(&mut gone);
        self.release_list(owner, &gone);
    }

    /// New locks belong to this savepoint level.
    pub(crate) fn enter_level(&self, owner: &LockOwner, level: u32) {
        owner.slot().local.lock().enter_level(level);
    }

    /// Releases what was taken at this savepoint level or inside it. Shared row locks go if they
    /// belong to one of these transaction ids (ascending), which have been marked aborted.
    pub(crate) fn rollback_to(&self, owner: &LockOwner, level: u32, aborted: &[base::Xid]) {
        let (mut gone, mut rows) = (Vec::new(), Vec::new());
        {
            let mut local = owner.slot().local.lock();
            local.rollback_to(level, &mut gone);
            if !aborted.is_empty() && !local.rows.is_empty() {
                let dead =
                    |row: &mut super::local::SharedRow| aborted.binary_search(&row.xid).is_ok();
                rows.extend(local.rows.extract_if(.., dead));
            }
        }
        self.release_list(owner, &gone);
        self.rows.remove(owner.number(), &rows);
    }

    /// Gives the locks of this savepoint level to the one around it.
    pub(crate) fn release_level(&self, owner: &LockOwner, level: u32) {
        owner.slot().local.lock().release_level(level);
    }

    /// The locks that a transaction keeps to its end, and its shared row locks.
    pub(crate) fn kept_by(
        &self,
        owner: &LockOwner,
    ) -> (Vec<(LockTag, LockMode)>, Vec<PreparedRow>) {
        let local = owner.slot().local.lock();
        let held = local.held().iter().filter(|held| held.count > 0);
        let locks = held.map(|held| (held.tag, held.mode)).collect();
        let rows = local.rows.clone();
        drop(local);
        (locks, self.rows.strengths(owner.number(), &rows))
    }

    /// Whether the session holds something both for itself and for its transaction.
    pub fn mixes_levels(&self, owner: &LockOwner) -> bool {
        let local = owner.slot().local.lock();
        let held = local.held();
        let for_session = held.iter().filter(|held| held.session > 0);
        for_session.into_iter().any(|a| held.iter().any(|b| b.tag == a.tag && b.count > 0))
    }

    /// Whether the transaction has locked a temporary relation.
    pub fn holds_temporary(&self, owner: &LockOwner) -> bool {
        let temporary = |tag| matches!(tag, LockTag::Relation(_, oid) if oid.is_temporary());
        owner.slot().local.lock().held().iter().any(|held| temporary(held.tag))
    }

    /// Gives what a session holds beyond its transactions to another owner: the first one stays with a
    /// transaction that is prepared.
    pub fn move_session_locks(&self, from: &LockOwner, to: &LockOwner) {
        let moved: Vec<Held> = {
            let local = from.slot().local.lock();
            local.held().iter().filter(|held| held.session > 0).copied().collect()
        };
        for held in moved {
            let Held { tag, mode, session, .. } = held;
            if !held.fast {
                self.partition(tag).entry(tag).grant(to.number(), mode);
            }
            {
                let mut local = to.slot().local.lock();
                local.hold(tag, mode, true, held.fast);
                for _ in 1..session {
                    local.hold_again(tag, mode, true);
                }
            }
            let mut local = from.slot().local.lock();
            for _ in 0..session {
                local.unhold(tag, mode, true);
            }
            drop(local);
            if !held.fast {
                wake(self.partition(tag).entry(tag).release(from.number(), mode));
            }
        }
    }

    /// The locks of a transaction that was prepared before the server started. Nobody else runs yet.
    pub(crate) fn take_again(
        &self,
        owner: &LockOwner,
        locks: &[(LockTag, LockMode)],
        rows: &[PreparedRow],
    ) {
        for &(tag, mode) in locks {
            let taken = self.acquire(owner, tag, mode, LockWait::Try, false);
            debug_assert_eq!(taken, Ok(true), "prepared transactions do not conflict");
        }
        for row in rows {
            self.share_row(owner, row.xid, row.rel, row.tid, row.mode);
        }
    }

    fn release_list(&self, owner: &LockOwner, gone: &[(LockTag, LockMode)]) {
        for &(tag, mode) in gone {
            self.release_shared(owner, tag, mode);
        }
    }

    fn release_shared(&self, owner: &LockOwner, tag: LockTag, mode: LockMode) {
        let mut partition = self.partition(tag);
        let woken = partition.entry(tag).release(owner.number(), mode);
        partition.forget_if_unused(tag);
        drop(partition);
        wake(woken);
        if mode.is_strong() && matches!(tag, LockTag::Relation(..)) {
            self.lower_strong(tag);
        }
    }

    fn strong(&self, tag: LockTag) -> &AtomicU32 {
        &self.strong[(tag.hash() >> 16) as usize % STRONG_COUNTERS]
    }

    fn lower_strong(&self, tag: LockTag) {
        let before = self.strong(tag).fetch_sub(1, Ordering::SeqCst);
        debug_assert!(before > 0, "a strong lock is counted once");
    }

    /// Number of the partition that a tag belongs to.
    pub(super) fn partition_number(tag: LockTag) -> usize {
        tag.hash() as usize % PARTITIONS
    }

    pub(super) fn partition(&self, tag: LockTag) -> MutexGuard<'_, Partition> {
        self.partitions[Self::partition_number(tag)].lock()
    }

    /// Asserts that nothing is left of any lock.
    #[cfg(test)]
    pub(super) fn assert_empty(&self) {
        for partition in self.partitions() {
            assert!(partition.entries.is_empty(), "an entry is left");
        }
        let strong = self.strong.iter().map(|counter| counter.load(Ordering::SeqCst)).sum::<u32>();
        assert_eq!(strong, 0, "a strong lock is still counted");
        assert_eq!((self.rows.left(), self.core.waiters.count()), (0, 0));
    }

    /// All partitions, in order.
    pub(super) fn partitions(&self) -> impl Iterator<Item = MutexGuard<'_, Partition>> {
        self.partitions.iter().map(|partition| partition.lock())
    }
}
