//! A session's transaction.

use base::{Csn, Lsn, Result, Xid};

use crate::lock::LockOwner;
use crate::manager::TxnManager;
use crate::snapshot::Snapshot;

/// Isolation level. READ UNCOMMITTED is READ COMMITTED, as in PostgreSQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// A snapshot for each statement.
    ReadCommitted,
    /// One snapshot; `40001` on a write conflict.
    RepeatableRead,
    /// Serializable; for now as [`Isolation::RepeatableRead`] where SSI is missing.
    Serializable,
}

/// A transaction from BEGIN to COMMIT or ROLLBACK, with its savepoints. `Send + Sync`: methods take
/// `&self`. Dropping it without [`Transaction::commit`] rolls it back.
pub struct Transaction {}

/// Names a savepoint's level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SavepointLevel(pub u32);

impl Transaction {
    /// The manager.
    pub fn manager(&self) -> &TxnManager {
        todo!()
    }
    /// The isolation level.
    pub fn isolation(&self) -> Isolation {
        todo!()
    }
    /// Changes isolation or read-only before the first snapshot (SET TRANSACTION).
    pub fn set_modes(&self, _isolation: Isolation, _read_only: bool) {
        todo!()
    }
    /// Whether writes are refused (`25006` is the caller's to raise).
    pub fn read_only(&self) -> bool {
        todo!()
    }
    /// The current (sub)transaction's id, assigned at the first call.
    pub fn xid(&self) -> Result<Xid> {
        todo!()
    }
    /// The top transaction's id if it has one.
    pub fn top_xid(&self) -> Option<Xid> {
        todo!()
    }
    /// Whether this id is the transaction or one of its live subtransactions.
    pub fn is_mine(&self, _xid: Xid) -> bool {
        todo!()
    }
    /// The running command's number, from 0; rows carry it.
    pub fn command(&self) -> u32 {
        todo!()
    }
    /// Makes the changes of commands so far visible to the following ones.
    pub fn next_command(&self) {
        todo!()
    }
    /// The snapshot for a new statement: a fresh one under READ COMMITTED, else the transaction's.
    /// It is registered (holds back pruning) until [`Transaction::end_statement`], or, above READ
    /// COMMITTED, until the end.
    pub fn snapshot(&self) -> Snapshot {
        todo!()
    }
    /// A fresh snapshot whatever the isolation level (constraint checks); unregistered use is safe
    /// only while a statement's snapshot is registered.
    pub fn latest_snapshot(&self) -> Snapshot {
        todo!()
    }
    /// Keeps `snapshot` registered beyond the statement (a portal's), until the returned guard's id
    /// is given to [`Transaction::unpin_snapshot`].
    pub fn pin_snapshot(&self, _snapshot: &Snapshot) -> u64 {
        todo!()
    }
    /// See [`Transaction::pin_snapshot`].
    pub fn unpin_snapshot(&self, _id: u64) {
        todo!()
    }
    /// Unregisters the statement's snapshot.
    pub fn end_statement(&self) {
        todo!()
    }
    /// Whether a row version made or ended by `xid` counts as (made/ended) for the snapshot. Notes
    /// what must be durable before results leave the server. Not for own ids: see
    /// [`Transaction::is_mine`].
    pub fn sees(&self, _xid: Xid, _snapshot: &Snapshot) -> bool {
        todo!()
    }
    /// Notes that a result depends on this commit.
    pub fn note_seen(&self, _csn: Csn) {
        todo!()
    }
    /// Results may leave the server once the log is durable up to here (`Lsn::ZERO`: at once).
    pub fn durability_needed(&self) -> Lsn {
        todo!()
    }
    /// The owner of its heavyweight locks.
    pub fn locks(&self) -> &LockOwner {
        todo!()
    }
    /// Opens a savepoint's level.
    pub fn savepoint(&self) -> SavepointLevel {
        todo!()
    }
    /// Undoes everything since the level was opened, closes the levels inside it, and keeps it
    /// open (ROLLBACK TO) . Locks taken since are released.
    pub fn rollback_to(&self, _level: SavepointLevel) {
        todo!()
    }
    /// Merges the level into the one around it (RELEASE).
    pub fn release(&self, _level: SavepointLevel) {
        todo!()
    }
    /// Commits. `payload` (catalog changes, files to drop) goes into the record for the upper
    /// participant. `before_publish` runs when the order in the log is fixed and before any other
    /// session can see the commit (the catalog's new version is published there). Returns the
    /// position that must be durable before the client is told; the caller waits with
    /// `wal.flush` (or not, with `synchronous_commit = off`). Locks are released before the flush.
    pub fn commit(&self, _payload: &[u8], _before_publish: impl FnOnce(Csn)) -> Result<Lsn> {
        todo!()
    }
    /// Rolls back. Never waits.
    pub fn abort(&self) {
        todo!()
    }
}
