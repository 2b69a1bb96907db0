//! Heavyweight locks: PostgreSQL's eight modes (manual, section 13.3), strictly fair queues, a
//! deadlock detector; and the in-memory shared row locks.

use base::{Oid, RelId, Result, TupleId, Xid};

/// Table-level lock modes, weakest first; the numbers are PostgreSQL's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum LockMode {
    /// SELECT.
    AccessShare = 1,
    /// SELECT FOR UPDATE and kin.
    RowShare = 2,
    /// INSERT, UPDATE, DELETE.
    RowExclusive = 3,
    /// VACUUM, ANALYZE, CREATE INDEX CONCURRENTLY.
    ShareUpdateExclusive = 4,
    /// CREATE INDEX.
    Share = 5,
    /// CREATE TRIGGER and kin.
    ShareRowExclusive = 6,
    /// REFRESH MATERIALIZED VIEW CONCURRENTLY.
    Exclusive = 7,
    /// DROP, TRUNCATE, most of ALTER TABLE.
    AccessExclusive = 8,
}

/// What is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockTag {
    /// A table or index, by oid.
    Relation(Oid),
    /// The right to extend a relation's file.
    Extend(RelId),
    /// The queue for one row, by the root of its version chain.
    Tuple(RelId, TupleId),
    /// A transaction's end: held exclusively by the transaction itself.
    Xid(Xid),
    /// Any other catalog object: class and object id (a schema, a name's hash).
    Object(Oid, u64),
    /// Advisory lock with one 64-bit key, in a database.
    Advisory(Oid, i64),
    /// Advisory lock with two 32-bit keys, in a database.
    Advisory2(Oid, i32, i32),
}

/// How long to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockWait {
    /// Until granted, an interrupt, `lock_timeout` or a deadlock.
    Block,
    /// Not at all: false when it isn't free.
    Try,
}

/// Row lock strengths, weakest first (manual, section 13.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum RowLockMode {
    /// FOR KEY SHARE.
    KeyShare = 0,
    /// FOR SHARE.
    Share = 1,
    /// FOR NO KEY UPDATE, and UPDATE that changes no key.
    NoKeyUpdate = 2,
    /// FOR UPDATE, DELETE, and UPDATE of a key.
    Update = 3,
}

/// One session's locks.
pub struct LockOwner {}

/// The table of all locks.
pub struct LockManager {}

impl LockMode {
    /// PostgreSQL's conflict table.
    pub fn conflicts(self, _other: LockMode) -> bool {
        todo!()
    }
    /// As `pg_locks.mode` shows it.
    pub fn name(self) -> &'static str {
        todo!()
    }
}

impl LockManager {
    /// Takes a lock until the (sub)transaction ends. Weak relation locks take the fast path.
    /// Returns false only with [`LockWait::Try`].
    ///
    /// # Errors
    /// `40P01` deadlock; `55P03` lock_timeout; interrupts.
    pub fn lock(
        &self,
        _owner: &LockOwner,
        _tag: LockTag,
        _mode: LockMode,
        _wait: LockWait,
    ) -> Result<bool> {
        todo!()
    }
    /// Takes a lock that outlives transactions (advisory, by session). Counted.
    pub fn lock_session(
        &self,
        _owner: &LockOwner,
        _tag: LockTag,
        _mode: LockMode,
        _wait: LockWait,
    ) -> Result<bool> {
        todo!()
    }
    /// Releases one transaction-level hold early.
    pub fn unlock(&self, _owner: &LockOwner, _tag: LockTag, _mode: LockMode) -> bool {
        todo!()
    }
    /// Releases one session-level hold; false when there is none.
    pub fn unlock_session(&self, _owner: &LockOwner, _tag: LockTag, _mode: LockMode) -> bool {
        todo!()
    }
    /// Releases all session-level advisory locks.
    pub fn unlock_session_all(&self, _owner: &LockOwner) {
        todo!()
    }
    /// Waits until the transaction has ended (queued, deadlock-checked).
    pub fn wait_for_xid(&self, _owner: &LockOwner, _xid: Xid, _wait: LockWait) -> Result<bool> {
        todo!()
    }
    /// Notes a FOR SHARE / FOR KEY SHARE lock on a row version, held in memory until the
    /// transaction ends. The caller holds the page's latch (shared suffices).
    pub fn share_row(
        &self,
        _owner: &LockOwner,
        _xid: Xid,
        _rel: RelId,
        _tid: TupleId,
        _mode: RowLockMode,
    ) {
        todo!()
    }
    /// Transactions (not `me`) that hold a shared lock on the row version which conflicts with
    /// `mode`. The caller holds the page's latch exclusively. One atomic load when there are none.
    pub fn row_sharers(
        &self,
        _rel: RelId,
        _tid: TupleId,
        _mode: RowLockMode,
        _me: &LockOwner,
    ) -> Vec<Xid> {
        todo!()
    }
    /// Carries shared row locks over to the next version of the row.
    pub fn copy_row_sharers(&self, _rel: RelId, _from: TupleId, _to: TupleId) {
        todo!()
    }
}
