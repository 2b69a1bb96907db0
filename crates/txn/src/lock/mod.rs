//! Heavyweight locks: PostgreSQL's eight modes (manual, section 13.3), strictly fair queues, a
//! deadlock detector; and the in-memory shared row locks.
//!
//! * `manager` takes and releases; `table` is the queue of one lock, without any synchronisation;
//!   `local` is what one session holds; `wait` is the only place that parks; `deadlock` looks for
//!   cycles; `rows` holds the shared row locks; `view` tells what is going on.
//! * The table is split into partitions by the tag's hash, each under a short mutex.
//!
//! # The fast path
//!
//! AccessShare, RowShare and RowExclusive on relations do not conflict with each other. Such a weak
//! lock is noted with the session only, under the session's own spin lock, which nobody else wants.
//! A counter for the hash of the relation says how many sessions hold or want a strong mode (Share
//! and up; ShareUpdateExclusive conflicts with no weak mode and takes the ordinary way).
//!
//! * A weak locker, under its spin lock: if the counter is 0, it notes the lock; else it goes to the
//!   shared table.
//! * A strong locker raises the counter, then visits each session under that session's spin lock, and
//!   moves weak locks on the relation into the shared table; then it queues there.
//!
//! The spin lock orders the two: either the weak locker came first, and the strong one finds its note;
//! or it came later, and sees the counter. The counter falls when the strong lock is released or not
//! obtained.
//!
//! # Order of locking
//!
//! detector, partitions (ascending), a session's spin lock. Row shards, then a session's spin lock.
//! The shards of transaction waits are taken alone.

mod deadlock;
mod local;
mod manager;
mod owner;
mod rows;
mod table;
mod view;
mod wait;
pub(crate) mod wait_info;

#[cfg(test)]
mod tests;

use base::{Oid, RelId, TupleId, WaitEvent, Xid};
use sched::WaitObject;

pub(crate) use local::Local;
pub use manager::{LockLog, LockManager};
pub use owner::LockOwner;
pub use view::LockRow;

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

/// The thing that is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockTag {
    /// A table or index, by database and oid.
    Relation(Oid, Oid),
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

/// A set of lock modes; bit n is the mode with number n.
pub(crate) type ModeSet = u16;

/// For each mode (by number) the modes that it conflicts with: the manual's table 13.2.
const CONFLICTS: [ModeSet; 9] = {
    use LockMode::*;
    const fn set(modes: &[LockMode]) -> ModeSet {
        let (mut bits, mut i) = (0, 0);
        while i < modes.len() {
            bits |= 1 << modes[i] as u16;
            i += 1;
        }
        bits
    }
    [
        0,
        set(&[AccessExclusive]),
        set(&[Exclusive, AccessExclusive]),
        set(&[Share, ShareRowExclusive, Exclusive, AccessExclusive]),
        set(&[ShareUpdateExclusive, Share, ShareRowExclusive, Exclusive, AccessExclusive]),
        set(&[RowExclusive, ShareUpdateExclusive, ShareRowExclusive, Exclusive, AccessExclusive]),
        set(&[
            RowExclusive,
            ShareUpdateExclusive,
            Share,
            ShareRowExclusive,
            Exclusive,
            AccessExclusive,
        ]),
        set(&[
            RowShare,
            RowExclusive,
            ShareUpdateExclusive,
            Share,
            ShareRowExclusive,
            Exclusive,
            AccessExclusive,
        ]),
        0b1_1111_1110,
    ]
};

impl LockMode {
    /// All modes, weakest first.
    pub const ALL: [LockMode; 8] = [
        LockMode::AccessShare,
        LockMode::RowShare,
        LockMode::RowExclusive,
        LockMode::ShareUpdateExclusive,
        LockMode::Share,
        LockMode::ShareRowExclusive,
        LockMode::Exclusive,
        LockMode::AccessExclusive,
    ];

    /// PostgreSQL's conflict table.
    pub fn conflicts(self, other: LockMode) -> bool {
        self.conflict_set() & other.bit() != 0
    }

    /// As `pg_locks.mode` shows it.
    pub fn name(self) -> &'static str {
        match self {
            LockMode::AccessShare => "AccessShareLock",
            LockMode::RowShare => "RowShareLock",
            LockMode::RowExclusive => "RowExclusiveLock",
            LockMode::ShareUpdateExclusive => "ShareUpdateExclusiveLock",
            LockMode::Share => "ShareLock",
            LockMode::ShareRowExclusive => "ShareRowExclusiveLock",
            LockMode::Exclusive => "ExclusiveLock",
            LockMode::AccessExclusive => "AccessExclusiveLock",
        }
    }

    pub(crate) fn conflict_set(self) -> ModeSet {
        CONFLICTS[self as usize]
    }

    pub(crate) fn bit(self) -> ModeSet {
        1 << self as u16
    }

    /// Conflicts with no other weak mode: may take the fast path on relations.
    fn is_weak(self) -> bool {
        self <= LockMode::RowExclusive
    }

    /// Conflicts with weak modes.
    fn is_strong(self) -> bool {
        self >= LockMode::Share
    }
}

impl RowLockMode {
    /// The manual's table 13.3.
    pub fn conflicts(self, other: RowLockMode) -> bool {
        // The numbers of the modes add up to 3 or more for exactly the pairs that conflict.
        self as u8 + other as u8 >= 3
    }
}

impl LockTag {
    /// The wait event of a wait for this kind of lock.
    pub fn wait_event(self) -> WaitEvent {
        match self {
            LockTag::Relation(..) => WaitEvent::LockRelation,
            LockTag::Extend(_) => WaitEvent::LockExtend,
            LockTag::Tuple(..) => WaitEvent::LockTuple,
            LockTag::Xid(_) => WaitEvent::LockTransactionid,
            LockTag::Object(..) => WaitEvent::LockObject,
            LockTag::Advisory(..) | LockTag::Advisory2(..) => WaitEvent::LockAdvisory,
        }
    }

    /// The same as the object of a wait.
    pub fn wait_object(self) -> WaitObject {
        match self {
            LockTag::Relation(database, oid) => WaitObject::Relation(database, oid),
            LockTag::Extend(rel) => WaitObject::Extension(rel),
            LockTag::Tuple(rel, tid) => WaitObject::Tuple(rel, tid),
            LockTag::Xid(xid) => WaitObject::Transaction(xid),
            LockTag::Object(class, id) => WaitObject::Object(class, id),
            LockTag::Advisory(database, key) => WaitObject::Advisory(database, key),
            LockTag::Advisory2(database, a, b) => WaitObject::AdvisoryPair(database, a, b),
        }
    }

    /// As a deadlock's DETAIL names it, for a session in this database.
    pub fn describe(self, database: Oid) -> String {
        match self {
            LockTag::Relation(database, oid) => format!("relation {oid} of database {database}"),
            LockTag::Extend(rel) => {
                format!("extension of relation {} of database {database}", rel.0)
            }
            LockTag::Tuple(rel, tid) => {
                format!("tuple {tid} of relation {} of database {database}", rel.0)
            }
            LockTag::Xid(xid) => format!("transaction {}", xid.0),
            LockTag::Object(class, id) => {
                format!("object {id} of class {class} of database {database}")
            }
            LockTag::Advisory(db, key) => {
                format!("advisory lock [{db},{},{},1]", (key >> 32) as u32, key as u32)
            }
            LockTag::Advisory2(db, a, b) => {
                format!("advisory lock [{db},{},{},2]", a as u32, b as u32)
            }
        }
    }

    fn is_advisory(self) -> bool {
        matches!(self, LockTag::Advisory(..) | LockTag::Advisory2(..))
    }

    /// Well mixed in all bits: picks partition and counter.
    fn hash(self) -> u64 {
        let pair = |a: u64, b: u64| a.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29) ^ b;
        let (kind, value) = match self {
            LockTag::Relation(database, oid) => (1, u64::from(database.0) << 32 | u64::from(oid.0)),
            LockTag::Extend(rel) => (2, u64::from(rel.0)),
            LockTag::Tuple(rel, tid) => {
                (3, pair(u64::from(rel.0), u64::from(tid.block) << 16 | u64::from(tid.offset)))
            }
            LockTag::Xid(xid) => (4, xid.0),
            LockTag::Object(class, id) => (5, pair(u64::from(class.0), id)),
            LockTag::Advisory(db, key) => (6, pair(u64::from(db.0), key as u64)),
            LockTag::Advisory2(db, a, b) => {
                (7, pair(u64::from(db.0), (a as u64) << 32 | u64::from(b as u32)))
            }
        };
        let mixed = pair(value, kind).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
        mixed ^ mixed >> 32
    }
}

/// Hashes one lock tag: the tag's own hash is good enough for a hash map.
#[derive(Default)]
pub(crate) struct TagHasher(u64);

impl std::hash::Hasher for TagHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }
    fn write_u64(&mut self, value: u64) {
        let mixed = (self.0.rotate_left(23) ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = mixed ^ mixed >> 29;
    }
    fn write_u8(&mut self, value: u8) {
        self.write_u64(u64::from(value));
    }
    fn write_u16(&mut self, value: u16) {
        self.write_u64(u64::from(value));
    }
    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }
    fn write_i32(&mut self, value: i32) {
        self.write_u64(value as u64);
    }
    fn write_i64(&mut self, value: i64) {
        self.write_u64(value as u64);
    }
    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }
    fn write_isize(&mut self, value: isize) {
        self.write_u64(value as u64);
    }
}

/// A hash map with that hasher.
pub(crate) type FastMap<K, V> =
    std::collections::HashMap<K, V, std::hash::BuildHasherDefault<TagHasher>>;
