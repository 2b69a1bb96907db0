//! The server's one transaction manager.

use std::sync::Arc;

use base::{Csn, Result, WaitEvent, Xid};
use sched::TaskRef;
use storage::{Participant, Storage};

use crate::commit_log::XidStatus;
use crate::lock::{LockManager, LockOwner};
use crate::transaction::{Isolation, Transaction};

/// Hands out ids and snapshots, keeps the commit log, and is storage's [`Participant`].
pub struct TxnManager {
    /// Heavyweight locks.
    pub locks: LockManager,
}

impl TxnManager {
    /// Before storage is opened: pass [`TxnManager::participant`] to [`Storage::open`], then call
    /// [`TxnManager::attach`]. `dir` is the data directory (the commit log has its own files there).
    pub fn new(_dir: &std::path::Path) -> Arc<TxnManager> {
        todo!()
    }

    /// What recovery talks to. `upper` receives the codes >= 32 (the layers above; may be None).
    pub fn participant(
        self: &Arc<Self>,
        _upper: Option<Arc<dyn Participant>>,
    ) -> Arc<dyn Participant> {
        todo!()
    }

    /// Recovery is done.
    pub fn attach(&self, _storage: &Arc<Storage>) {
        todo!()
    }

    /// A session's lock owner; lives as long as the session. Dropping it releases what is left.
    pub fn new_owner(self: &Arc<Self>, _task: &TaskRef) -> Arc<LockOwner> {
        todo!()
    }

    /// Starts a transaction for a session; costs next to nothing until it writes.
    pub fn begin(
        self: &Arc<Self>,
        _owner: &Arc<LockOwner>,
        _isolation: Isolation,
        _read_only: bool,
    ) -> Transaction {
        todo!()
    }

    /// What became of a transaction. Resolves `committing` first.
    pub fn status(&self, _xid: Xid) -> XidStatus {
        todo!()
    }

    /// Whether a commit with this CSN is durable (so a hint may say so).
    pub fn is_durable(&self, _csn: Csn) -> bool {
        todo!()
    }

    /// Row versions deleted by a transaction with a CSN at or below this are dead for everyone.
    /// Cheap; may lag.
    pub fn horizon(&self) -> Csn {
        todo!()
    }

    /// The next transaction id (for statistics).
    pub fn next_xid(&self) -> Xid {
        todo!()
    }

    /// A new number for a relation's files or a catalog object, logged so that it is never given
    /// out twice. (Oids and RelIds share one sequence, from 16384.)
    pub fn next_oid(&self) -> Result<u32> {
        todo!()
    }

    /// The event under which waits for a transaction's end are reported.
    pub const XID_WAIT: WaitEvent = WaitEvent::LockTransactionid;
}
