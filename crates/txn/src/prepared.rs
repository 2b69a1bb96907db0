//! Two-phase commit: transactions that are prepared, and wait for the word that ends them.
//!
//! ```text
//!   running ─ prepare ─▶ prepared ─ commit_prepared ─▶ committed
//!            record 5       │                record 1 or 2
//!                           ├── rollback_prepared ──▶ aborted      record 6
//!                           └── restart, crash ─▶ prepared
//! ```
//!
//! * A prepared transaction keeps its ids (running, for everybody who meets them) and the slot in the registry that
//!   holds its locks; the session that prepared it goes on with a new slot. So nobody who waits for it, and nothing
//!   that names the slot, has to know. The slot's process id is [`PREPARED_PID`].
//! * Its record in the log says all that a start needs to make it anew: ids, locks, shared row locks, what a
//!   serializable one has read, and the upper layers' part. The state of a checkpoint has the same bytes for each
//!   that was prepared and not ended at its redo position.
//! * The table's mutex is held from before a record's place is reserved until the table agrees with it. A checkpoint
//!   takes its list under the mutex: every record before its redo position is in the list's past. One that was
//!   ended later may be missing, too: before the list counts, the log is made durable up to that end
//!   ([`Table::ended`]).
//! * Of a serializable one the reads come back, pages and relations as relations; its conflicts do not. It is taken to
//!   have had one out and one in: who meets a row of it after a restart fails, rather than an anomaly passes.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::{Lsn, Oid, RelId, Result, TupleId, Xid, err};

use crate::lock::{LockMode, LockTag, RowLockMode};
use crate::log::{take_u32, take_u64};
use crate::serial::ReadTarget;

/// The process id under which a prepared transaction holds its locks: no session's.
pub const PREPARED_PID: i32 = -1;

const VERSION: u8 = 1;

/// The name of a prepared transaction, with what is shown of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedName {
    /// The name that the client gave it.
    pub gid: String,
    /// When it was prepared, in microseconds since 2000-01-01 UTC.
    pub at: i64,
    /// The role that prepared it.
    pub role: Oid,
    /// Its database.
    pub database: Oid,
}

/// A shared lock on a row version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PreparedRow {
    pub(crate) rel: RelId,
    pub(crate) tid: TupleId,
    pub(crate) mode: RowLockMode,
    pub(crate) xid: Xid,
}

/// A prepared transaction as its record describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Prepared {
    /// Its name.
    pub name: PreparedName,
    /// Its ids, the top one first.
    pub xids: Vec<Xid>,
    /// The upper layers' part.
    pub upper: Vec<u8>,
    pub(crate) locks: Vec<(LockTag, LockMode)>,
    pub(crate) rows: Vec<PreparedRow>,
    /// The targets that it has read, if it is serializable and watched.
    pub(crate) reads: Option<Vec<ReadTarget>>,
}

/// All that are prepared, by their top ids.
#[derive(Default)]
pub(crate) struct Table {
    pub(crate) all: BTreeMap<Xid, Arc<Prepared>>,
    /// The end of the last record that ended one.
    pub(crate) ended: Lsn,
}

impl Table {
    /// The lowest id; None without any.
    pub(crate) fn lowest(&self) -> Option<Xid> {
        self.all.values().flat_map(|p| p.xids.iter().copied()).min()
    }
}

fn damaged() -> base::Error {
    err!(DATA_CORRUPTED, "the record of a prepared transaction is damaged")
}

fn take_u8(bytes: &mut &[u8]) -> Result<u8> {
    let (first, rest) = bytes.split_first().ok_or_else(damaged)?;
    *bytes = rest;
    Ok(*first)
}

fn push_u32(out: &mut Vec<u8>, value: u32) {
    out.extend(value.to_le_bytes());
}

/// A lock's tag as kind, number and key; None for those that no transaction keeps to its end.
fn tag_parts(tag: LockTag) -> Option<(u8, u32, u64)> {
    Some(match tag {
        LockTag::Relation(database, oid) => (1, database.0, u64::from(oid.0)),
        LockTag::Object(class, id) => (2, class.0, id),
        LockTag::Advisory(database, key) => (3, database.0, key as u64),
        LockTag::Advisory2(database, a, b) => {
            (4, database.0, u64::from(a as u32) << 32 | u64::from(b as u32))
        }
        LockTag::Extend(_) | LockTag::Tuple(..) | LockTag::Xid(_) => return None,
    })
}

fn tag_of(kind: u8, number: u32, key: u64) -> Result<LockTag> {
    Ok(match kind {
        1 => LockTag::Relation(Oid(number), Oid(key as u32)),
        2 => LockTag::Object(Oid(number), key),
        3 => LockTag::Advisory(Oid(number), key as i64),
        4 => LockTag::Advisory2(Oid(number), (key >> 32) as i32, key as i32),
        _ => return Err(damaged()),
    })
}

/// The locks among these that a record keeps.
pub(crate) fn kept(locks: impl Iterator<Item = (LockTag, LockMode)>) -> Vec<(LockTag, LockMode)> {
    locks.filter(|(tag, _)| tag_parts(*tag).is_some()).collect()
}

impl Prepared {
    /// The top id.
    pub fn top(&self) -> Xid {
        self.xids[0]
    }

    /// ```text
    /// [1 u8][at u64][role u32][database u32][gid: length u32, bytes]
    /// [count u32][id u64]…
    /// [count u32]([mode u8][kind u8][number u32][key u64])…
    /// [count u32]([rel u32][block u32][offset u32][mode u8][id u64])…
    /// [serializable u8] and then [count u32]([rel u32][block u32][offset u32])…
    /// the upper layers' part
    /// ```
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        out.extend(self.name.at.to_le_bytes());
        push_u32(&mut out, self.name.role.0);
        push_u32(&mut out, self.name.database.0);
        push_u32(&mut out, self.name.gid.len() as u32);
        out.extend(self.name.gid.as_bytes());
        push_u32(&mut out, self.xids.len() as u32);
        out.extend(self.xids.iter().flat_map(|xid| xid.0.to_le_bytes()));
        push_u32(&mut out, self.locks.len() as u32);
        for &(tag, mode) in &self.locks {
            let (kind, number, key) = tag_parts(tag).unwrap_or_default();
            out.extend([mode as u8, kind]);
            push_u32(&mut out, number);
            out.extend(key.to_le_bytes());
        }
        push_u32(&mut out, self.rows.len() as u32);
        for row in &self.rows {
            push_u32(&mut out, row.rel.0);
            push_u32(&mut out, row.tid.block);
            push_u32(&mut out, u32::from(row.tid.offset));
            out.push(row.mode as u8);
            out.extend(row.xid.0.to_le_bytes());
        }
        out.push(u8::from(self.reads.is_some()));
        if let Some(reads) = &self.reads {
            push_u32(&mut out, reads.len() as u32);
            for read in reads {
                let (block, offset) = read.place();
                push_u32(&mut out, read.rel.0);
                push_u32(&mut out, block.unwrap_or_default());
                push_u32(&mut out, u32::from(offset.unwrap_or_default()));
            }
        }
        out.extend(&self.upper);
        out
    }

    /// The inverse; what was read as a page comes back as the relation, since pages may have been split since.
    /// The inverse of its record.
    ///
    /// # Errors
    /// `XX001`.
    pub fn decode(mut bytes: &[u8]) -> Result<Prepared> {
        let bytes = &mut bytes;
        if take_u8(bytes)? != VERSION {
            return Err(damaged());
        }
        let at = take_u64(bytes)? as i64;
        let (role, database) = (Oid(take_u32(bytes)?), Oid(take_u32(bytes)?));
        let length = take_u32(bytes)? as usize;
        let (gid, rest) = bytes.split_at_checked(length).ok_or_else(damaged)?;
        *bytes = rest;
        let gid = String::from_utf8(gid.to_vec()).map_err(|_| damaged())?;
        let mut xids = Vec::new();
        for _ in 0..take_u32(bytes)? {
            xids.push(Xid(take_u64(bytes)?));
        }
        if xids.is_empty() {
            return Err(damaged());
        }
        let mut locks = Vec::new();
        for _ in 0..take_u32(bytes)? {
            let (mode, kind) = (take_u8(bytes)?, take_u8(bytes)?);
            let mode = LockMode::ALL.into_iter().find(|m| *m as u8 == mode).ok_or_else(damaged)?;
            locks.push((tag_of(kind, take_u32(bytes)?, take_u64(bytes)?)?, mode));
        }
        let mut rows = Vec::new();
        for _ in 0..take_u32(bytes)? {
            let rel = RelId(take_u32(bytes)?);
            let (block, offset) = (take_u32(bytes)?, take_u32(bytes)? as u16);
            let mode = match take_u8(bytes)? {
                0 => RowLockMode::KeyShare,
                1 => RowLockMode::Share,
                2 => RowLockMode::NoKeyUpdate,
                _ => RowLockMode::Update,
            };
            let tid = TupleId { block, offset };
            rows.push(PreparedRow { rel, tid, mode, xid: Xid(take_u64(bytes)?) });
        }
        let reads = match take_u8(bytes)? {
            0 => None,
            _ => Some(decode_reads(bytes)?),
        };
        let name = PreparedName { gid, at, role, database };
        Ok(Prepared { name, xids, upper: bytes.to_vec(), locks, rows, reads })
    }
}

fn decode_reads(bytes: &mut &[u8]) -> Result<Vec<ReadTarget>> {
    let mut reads = Vec::new();
    for _ in 0..take_u32(bytes)? {
        let rel = RelId(take_u32(bytes)?);
        let (block, offset) = (take_u32(bytes)?, take_u32(bytes)? as u16);
        reads.push(match offset {
            0 => ReadTarget::relation(rel),
            _ => ReadTarget::row(rel, TupleId { block, offset }),
        });
    }
    Ok(reads)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Prepared {
        let tid = TupleId { block: 7, offset: 3 };
        let key = -5_i64;
        Prepared {
            name: PreparedName { gid: "a name".into(), at: -9, role: Oid(10), database: Oid(5) },
            xids: vec![Xid(77), Xid(79)],
            upper: b"upper".to_vec(),
            locks: vec![
                (LockTag::Relation(Oid(5), Oid(16400)), LockMode::AccessExclusive),
                (LockTag::Object(Oid(1259), 1 << 40), LockMode::Exclusive),
                (LockTag::Advisory(Oid(5), key), LockMode::Share),
                (LockTag::Advisory2(Oid(5), -1, -2), LockMode::Exclusive),
            ],
            rows: vec![PreparedRow { rel: RelId(9), tid, mode: RowLockMode::Share, xid: Xid(79) }],
            reads: Some(vec![ReadTarget::relation(RelId(4)), ReadTarget::row(RelId(5), tid)]),
        }
    }

    #[test]
    fn a_record_comes_back_as_it_was_and_refuses_to_be_cut() {
        let prepared = sample();
        let bytes = prepared.encode();
        assert_eq!(Prepared::decode(&bytes).unwrap(), prepared);
        for cut in 0..bytes.len() - b"upper".len() {
            assert!(Prepared::decode(&bytes[..cut]).is_err(), "{cut}");
        }
    }

    #[test]
    fn what_was_read_as_a_page_comes_back_as_its_relation() {
        let reads = Some(vec![ReadTarget::page(RelId(4), 8)]);
        let back = Prepared::decode(&Prepared { reads, ..sample() }.encode()).unwrap();
        assert_eq!(back.reads, Some(vec![ReadTarget::relation(RelId(4))]));
    }

    #[test]
    fn locks_that_no_transaction_keeps_are_left_out() {
        let tuple = LockTag::Tuple(RelId(4), TupleId { block: 0, offset: 1 });
        let relation = LockTag::Relation(Oid(5), Oid(6));
        let all = [(tuple, LockMode::Exclusive), (relation, LockMode::Share)];
        assert_eq!(kept(all.into_iter()), [(relation, LockMode::Share)]);
    }
}
