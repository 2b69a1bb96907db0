//! Transactions of another server, whose log is followed.
//!
//! * A commit becomes visible when its record is applied, and records are applied in the order of the log. Its CSN is its
//!   place there. So each snapshot here is one of the primary's: what had committed up to a position.
//! * Rollbacks are in no log. A transaction that has not committed counts as *unassigned*, which readers take for running,
//!   until the primary says that everything below some id has ended ([`TxnManager::settle`]): only then may a page be
//!   marked with "aborted".
//! * A commit that publishes a version of the catalog is given to the layers above after its words are written and before
//!   anybody sees it ([`Following::publishes`]).
//! * No id is handed out here.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use base::{Csn, Lsn, Result, Xid};
use sched::TaskRef;
use storage::Storage;

use crate::commit_log::{CHUNK, XidState};
use crate::log::Log;
use crate::manager::{Core, TxnManager};
use crate::snapshot::Snapshot;
use crate::transaction::Transaction;

/// The layers above in a server that follows another one.
pub trait Following: Send + Sync {
    /// Row versions are about to go that ended at or before this: waits until no snapshot before it is left.
    ///
    /// # Errors
    /// Those that keep the record from being applied now.
    fn removes(&self, ended: Csn) -> Result<()>;
    /// A commit publishes a version of the catalog, which this snapshot sees; nobody else sees the commit yet.
    ///
    /// # Errors
    /// As [`Following::removes`].
    fn publishes(&self, snapshot: &Snapshot) -> Result<()>;
    /// The commit is visible.
    fn published(&self);
}

/// The state of following.
#[derive(Default)]
pub(crate) struct State {
    follows: AtomicBool,
    above: OnceLock<Arc<dyn Following>>,
}

impl State {
    #[inline]
    pub(crate) fn follows(&self) -> bool {
        self.follows.load(Ordering::Relaxed)
    }
}

impl Core {
    /// Row versions are about to go that ended at or before this, a position of the log that has been applied.
    pub(crate) fn follow_removal(&self, ended: Csn) -> Result<()> {
        // A snapshot that is taken at this moment is a later one, or is seen below.
        self.horizon.raise_bound(ended);
        self.standby.above.get().map_or(Ok(()), |above| above.removes(ended))
    }

    /// Ids below this may be in the log from here on.
    pub(crate) fn follow_xids(&self, limit: u64) {
        self.commits.extend_to(limit);
        for cell in [&self.next_xid, &self.xid_limit, &self.xid_announced] {
            cell.fetch_max(limit, Ordering::SeqCst);
        }
    }

    /// Makes a commit of the primary visible.
    pub(crate) fn follow_commit(
        &self,
        subs: &[Xid],
        top: Xid,
        publishes: bool,
        csn: Csn,
    ) -> Result<()> {
        for &xid in subs.iter().chain([&top]) {
            self.follow_xids(xid.0 + 1);
            self.commits.follow(xid, XidState::Committed(csn));
        }
        let above = self.standby.above.get().filter(|_| publishes);
        if let Some(above) = above {
            above.publishes(&Snapshot { csn, xmin: self.oldest(), command: 0 })?;
        }
        self.horizon.publish(csn);
        if let Some(above) = above {
            above.published();
        }
        self.advance_oldest(64);
        Ok(())
    }
}

/// The snapshots of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its process id.
    pub pid: i32,
    /// The oldest snapshot.
    pub oldest: Csn,
}

impl TxnManager {
    /// As [`TxnManager::attach`], for a server that follows another one: everything below `oldest` has ended. What was
    /// prepared stays in the log's hands.
    pub fn attach_following(self: &Arc<Self>, storage: &Arc<Storage>, oldest: Option<Xid>) {
        self.core.standby.follows.store(true, Ordering::SeqCst);
        self.attach_log(Log::Storage(storage.clone()), storage.wal.insert_position());
        self.reopen(oldest.unwrap_or(self.core.next_xid()));
    }

    fn reopen(&self, oldest: Xid) {
        let core = &self.core;
        let oldest = Xid(oldest.0.clamp(Xid::FIRST.0, core.next_xid().0));
        core.commits.extend_to(core.next_xid().0 + 1);
        core.commits.reopen(oldest);
        core.oldest.store(oldest.0, Ordering::SeqCst);
    }

    /// Says who is asked before records are applied, once.
    pub fn set_following(&self, above: Arc<dyn Following>) {
        let _ = self.core.standby.above.set(above);
    }

    /// Whether the server follows another one.
    #[inline]
    pub fn follows(&self) -> bool {
        self.core.standby.follows()
    }

    /// The first word of the primary, before anybody reads: ids from `oldest` on may still be running there.
    pub fn open_from(&self, oldest: Xid) {
        self.reopen(oldest);
    }

    /// Everything below `oldest` has ended in the primary, and the log has been applied up to where it had: what has not
    /// committed has aborted.
    pub fn settle(&self, oldest: Xid) {
        let core = &self.core;
        let end = oldest.0.min(core.next_xid().0);
        for xid in core.oldest().0..end {
            if !core.commits.is_reduced(xid / CHUNK)
                && core.commits.get(Xid(xid)) == XidState::Unassigned
                && !core.is_prepared(Xid(xid))
            {
                core.commits.follow(Xid(xid), XidState::Aborted);
            }
        }
        while core.advance_oldest(CHUNK) {}
        core.reduce_commit_log();
    }

    /// Sessions with a snapshot before this.
    pub fn holders_before(&self, csn: Csn) -> Vec<Holder> {
        let mut all = Vec::new();
        for (_, slot) in self.core.registry.slots() {
            let (oldest, pid) =
                (slot.snapshot.load(Ordering::SeqCst), slot.pid.load(Ordering::Acquire));
            if oldest != 0 && oldest < csn.0 && pid != 0 {
                all.push(Holder { pid, oldest: Csn(oldest) });
            }
        }
        all
    }

    /// A transaction that reads by this snapshot only, for the thread that applies the log.
    pub fn reader_at(self: &Arc<Self>, task: &TaskRef, snapshot: &Snapshot) -> Transaction {
        let owner = self.new_owner(task, std::process::id() as i32);
        let tx = self.begin(&owner, crate::Isolation::RepeatableRead, true);
        tx.keep_snapshot(snapshot);
        tx
    }

    /// Following has ended at this position: what has not committed and is not prepared has aborted, and ids are handed
    /// out from here on. The log does not take records yet.
    pub fn end_following(self: &Arc<Self>, end: Lsn) {
        let core = &self.core;
        let next = core.next_xid();
        for xid in core.oldest().0..next.0 {
            if !core.commits.is_reduced(xid / CHUNK)
                && core.commits.get(Xid(xid)) == XidState::Unassigned
                && !core.is_prepared(Xid(xid))
            {
                core.commits.follow(Xid(xid), XidState::Aborted);
            }
        }
        core.xid_limit.store(next.0, Ordering::SeqCst);
        core.xid_announced.store(next.0, Ordering::SeqCst);
        let oid = core.oid_announced.load(Ordering::SeqCst);
        *core.oids.lock() = crate::manager::Oids { next: oid, limit: oid };
        core.horizon.publish(Csn(end.0));
        while core.advance_oldest(CHUNK) {}
        self.revive_prepared();
        core.standby.follows.store(false, Ordering::SeqCst);
    }

    /// For a standby of this server: every transaction below this has ended, with its commit before the position.
    pub fn ended_below(&self) -> Xid {
        match self.follows() {
            true => self.core.oldest(),
            false => self.oldest_running(),
        }
    }
}

impl crate::LockOwner {
    /// Keeps everything that snapshots from this one on see, for readers elsewhere; 0: nothing any more. The owner's session
    /// runs no transaction meanwhile.
    pub fn hold_from(&self, csn: Csn) {
        let slot = self.slot();
        slot.newer.store(csn.0, Ordering::SeqCst);
        slot.snapshot.store(csn.0, Ordering::SeqCst);
    }
}
