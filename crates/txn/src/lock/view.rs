//! Rows of `pg_locks` and results of `pg_blocking_pids`.

use std::sync::atomic::Ordering;
use std::time::SystemTime;

use base::{Oid, Xid};

use super::table::Entry;
use super::{LockManager, LockMode, LockTag};
use crate::commit_log::XidState;
use crate::prepared::PREPARED_PID;

/// One line of `pg_locks`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LockRow {
    /// The thing that is locked.
    pub tag: LockTag,
    /// In which mode.
    pub mode: LockMode,
    /// Held, or waited for.
    pub granted: bool,
    /// Held by the fast path.
    pub fastpath: bool,
    /// The session's process id; [`crate::PREPARED_PID`].
    pub pid: i32,
    /// The id of the transaction that holds it, when that is prepared.
    pub prepared: Option<Xid>,
    /// Its database.
    pub database: Oid,
    /// When the wait began.
    pub wait_start: Option<SystemTime>,
}

impl LockManager {
    /// Every lock held or waited for. Sessions are looked at one after the other, so the picture may
    /// be a little blurred.
    pub fn snapshot(&self) -> Vec<LockRow> {
        let mut rows = Vec::new();
        for (_, slot) in self.core.registry.slots() {
            let pid = slot.pid.load(Ordering::Acquire);
            if pid == 0 {
                continue;
            }
            let database = Oid(slot.database.load(Ordering::Relaxed));
            let row = |tag, mode, fastpath| LockRow {
                tag,
                mode,
                granted: true,
                fastpath,
                pid,
                prepared: slot.top_xid().filter(|_| pid == PREPARED_PID),
                database,
                wait_start: None,
            };
            if let Some(xid) = slot.top_xid() {
                rows.push(row(LockTag::Xid(xid), LockMode::Exclusive, false));
            }
            rows.extend(slot.local.lock().held().iter().map(|h| row(h.tag, h.mode, h.fast)));
            if let Some(wait) = *slot.waiting.lock() {
                let row = row(wait.tag, wait.mode, false);
                rows.push(LockRow { granted: false, wait_start: Some(wait.since), ..row });
            }
        }
        rows
    }

    /// Whether somebody waits for a lock.
    pub fn has_waiters(&self, tag: LockTag) -> bool {
        let partition = self.partition(tag);
        partition.get(tag).is_some_and(|entry| !entry.queue().is_empty())
    }

    /// The process ids of the sessions for which a session waits: those that hold what it wants, and
    /// those ahead of it in the queue. 0 stands for a prepared transaction.
    pub fn blocking_pids(&self, pid: i32) -> Vec<i32> {
        let Some(number) = self.core.registry.find(pid) else { return Vec::new() };
        let Some(wait) = *self.core.registry.get(number).waiting.lock() else { return Vec::new() };
        let pid = |number: u32| self.core.registry.get(number).pid.load(Ordering::Acquire);
        let blockers = self.blockers(wait.tag, number, wait.mode);
        blockers.into_iter().map(pid).filter(|&pid| pid != 0).map(|pid| pid.max(0)).collect()
    }

    /// The same without those for whom one of the others waits, too: those that hold what it wants, and
    /// of those ahead in the queue the next ones.
    pub fn next_blocking_pids(&self, pid: i32) -> Vec<i32> {
        let Some(number) = self.core.registry.find(pid) else { return Vec::new() };
        let Some(wait) = *self.core.registry.get(number).waiting.lock() else { return Vec::new() };
        let blockers = match wait.tag {
            LockTag::Xid(_) => self.blockers(wait.tag, number, wait.mode),
            tag => {
                let partition = self.partition(tag);
                let entry = partition.get(tag);
                entry.map_or_else(Vec::new, |e| next_blockers(e, number, wait.mode))
            }
        };
        let pid = |number: u32| self.core.registry.get(number).pid.load(Ordering::Acquire);
        blockers.into_iter().map(pid).filter(|&pid| pid != 0).map(|pid| pid.max(0)).collect()
    }

    /// The task for which a session waits, by its id: the first of those above; 0: none any more.
    pub(super) fn blocking_task(&self, tag: LockTag, waiter: u32, mode: LockMode) -> u64 {
        let first = match tag {
            LockTag::Xid(_) => self.blockers(tag, waiter, mode).first().copied(),
            tag => self.first_blocker(tag, waiter, mode),
        };
        first.map_or(0, |number| self.core.registry.get(number).task.load(Ordering::Relaxed))
    }

    /// The first holder in the way, else the first in the queue.
    fn first_blocker(&self, tag: LockTag, waiter: u32, mode: LockMode) -> Option<u32> {
        let partition = self.partition(tag);
        let entry = partition.get(tag)?;
        if let Some(watched) = entry.watched_by(waiter) {
            return watched.first().copied();
        }
        let conflicts = mode.conflict_set();
        let mut holders = entry.holders();
        let holder = holders.find(|&(owner, modes)| owner != waiter && modes & conflicts != 0);
        let ahead = || {
            let first = entry.queue().iter().find(|r| r.mode.bit() & conflicts != 0)?;
            (first.owner != waiter).then_some(first.owner)
        };
        holder.map(|(owner, _)| owner).or_else(ahead)
    }

    /// Process ids of the holders of a lock that a session waits for, and of its waiters.
    pub(super) fn around(&self, tag: LockTag, waiter: u32, mode: LockMode) -> (Vec<i32>, Vec<i32>) {
        let pid = |number: u32| self.core.registry.get(number).pid.load(Ordering::Acquire).max(0);
        if let LockTag::Xid(_) = tag {
            let holders = self.blockers(tag, waiter, mode).into_iter().map(pid).collect();
            let waits_too = |(_, slot): &(u32, &crate::registry::Slot)| {
                slot.waiting.lock().is_some_and(|wait| wait.tag == tag)
            };
            let queue = self.core.registry.slots().filter(waits_too).map(|(n, _)| pid(n));
            return (holders, queue.collect());
        }
        let partition = self.partition(tag);
        let Some(entry) = partition.get(tag) else { return Default::default() };
        let holders = entry.holders().filter(|(_, modes)| *modes != 0).map(|(n, _)| pid(n));
        (holders.collect(), entry.queue().iter().map(|request| pid(request.owner)).collect())
    }

    fn blockers(&self, tag: LockTag, waiter: u32, mode: LockMode) -> Vec<u32> {
        match tag {
            LockTag::Xid(xid) => match self.core.commits.get(xid) {
                XidState::Running(owner) | XidState::Committing(owner) => vec![owner],
                _ => Vec::new(),
            },
            tag => self.lock_blockers(tag, waiter, mode),
        }
    }

    fn lock_blockers(&self, tag: LockTag, waiter: u32, mode: LockMode) -> Vec<u32> {
        let partition = self.partition(tag);
        let Some(entry) = partition.get(tag) else { return Vec::new() };
        if let Some(watched) = entry.watched_by(waiter) {
            return watched.to_vec();
        }
        if !entry.queue().iter().any(|request| request.owner == waiter) {
            return Vec::new();
        }
        let conflicts = mode.conflict_set();
        let holders =
            entry.holders().filter(|&(owner, modes)| owner != waiter && modes & conflicts != 0);
        let mut blockers: Vec<u32> = holders.map(|(owner, _)| owner).collect();
        let held = blockers.len();
        for ahead in entry.queue().iter().take_while(|request| request.owner != waiter) {
            // Nobody stands in a queue twice.
            if ahead.mode.bit() & conflicts != 0 && !blockers[..held].contains(&ahead.owner) {
                blockers.push(ahead.owner);
            }
        }
        blockers
    }
}

/// Holders of what the waiter wants, and waiters ahead of it, back to the first one whose conflicts
/// include all of the waiter's own: what lies further ahead, that one waits for.
fn next_blockers(entry: &Entry, waiter: u32, mode: LockMode) -> Vec<u32> {
    if let Some(watched) = entry.watched_by(waiter) {
        return watched.to_vec();
    }
    let Some(place) = entry.queue().iter().position(|r| r.owner == waiter) else {
        return Vec::new();
    };
    let conflicts = mode.conflict_set();
    let holders =
        entry.holders().filter(|&(owner, modes)| owner != waiter && modes & conflicts != 0);
    let mut blockers: Vec<u32> = holders.map(|(owner, _)| owner).collect();
    for ahead in entry.queue().iter().take(place).rev() {
        if ahead.mode.bit() & conflicts != 0 {
            if !blockers.contains(&ahead.owner) {
                blockers.push(ahead.owner);
            }
            if conflicts & !ahead.mode.conflict_set() == 0 {
                break;
            }
        }
    }
    blockers
}
