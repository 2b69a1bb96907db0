//! The write-ahead log as this crate uses it, and its records there.
//!
//! | code | record | payload (little-endian) |
//! | --- | --- | --- |
//! | 1 | commit | top id (8) |
//! | 2 | commit with more | top id (8), number of subtransactions (4), their ids (8 each), the upper layers' payload |
//! | 3 | ids handed out | no transaction id at or above this has been handed out before (8) |
//! | 4 | oids handed out | the same for oids (4) |
//! | 5 | prepared | see [`crate::prepared`] |
//! | 6 | prepared one rolled back | top id (8) |
//! | 7 | time | microseconds since 2000-01-01 UTC (8): a mark for restores |
//! | 8 | padding | any bytes |
//!
//! A commit that publishes a version of the catalog says so to those who follow the log: its payload for the upper layers
//! is then [`PUBLISHES`], unless they have one of their own. Code 40 stands in records that take row versions away: see
//! [`REMOVED`].
//!
//! There is no other abort record: a transaction that has neither a commit record nor one that it is prepared has aborted. Codes from 32 on
//! belong to the upper layers; their part of a commit is given to them under code 32.

use std::sync::Arc;

use base::{Error, Lsn, Result, Xid};
use storage::Storage;

pub(crate) const COMMIT: u8 = 1;
pub(crate) const COMMIT_MORE: u8 = 2;
pub(crate) const XIDS: u8 = 3;
pub(crate) const OIDS: u8 = 4;
/// A transaction is prepared: [`crate::Prepared`].
pub const PREPARED: u8 = 5;
/// A prepared transaction is rolled back: its top id (8).
pub const ROLLED_BACK: u8 = 6;
pub(crate) const TIME: u8 = 7;
pub(crate) const PADDING: u8 = 8;
/// The first code of the upper layers, and the one under which they get their part of a commit.
pub(crate) const UPPER: u8 = 32;

/// The upper layers' part of a commit that publishes a version of the catalog.
pub(crate) const PUBLISHES: &[u8] = b"C";
/// Row versions are taken away that snapshots before this CSN (8) may see. Recovery passes it by; who follows the log
/// waits for such snapshots before the record's pages change.
pub const REMOVED: u8 = 40;

/// A named point for restores: the name's bytes. Recovery passes it by.
pub(crate) const NAMED: u8 = 41;

/// The name of the point that a payload with this code marks.
pub fn name_of(code: u8, payload: &[u8]) -> Option<&str> {
    std::str::from_utf8(payload).ok().filter(|_| code == NAMED)
}

/// The word for a payload with this code, and the transaction that it is about.
pub fn describe(code: u8, payload: &[u8]) -> (&'static str, Option<Xid>) {
    let top = || Some(Xid(u64::from_le_bytes(payload.get(..8)?.try_into().ok()?)));
    match code {
        COMMIT | COMMIT_MORE => ("COMMIT", top()),
        XIDS => ("NEXTXID", None),
        OIDS => ("NEXTOID", None),
        PREPARED => ("PREPARE", None),
        ROLLED_BACK => ("ABORT_PREPARED", top()),
        TIME => ("TIME", None),
        PADDING => ("NOOP", None),
        REMOVED => ("PRUNE", None),
        NAMED => ("RESTORE_POINT", None),
        UPPER.. => ("LOGICAL", None),
        _ => ("UNKNOWN", None),
    }
}

/// Whether a payload with this code is a commit's.
pub fn is_commit(code: u8) -> bool {
    matches!(code, COMMIT | COMMIT_MORE)
}

/// The time that a payload with this code marks.
pub fn time_of(code: u8, payload: &[u8]) -> Option<i64> {
    let bytes = payload.try_into().ok().filter(|_| code == TIME)?;
    Some(i64::from_le_bytes(bytes))
}

/// Where records go.
pub(crate) enum Log {
    /// The server's log.
    Storage(Arc<Storage>),
    /// A log that forgets everything.
    #[cfg(test)]
    Memory(tests::MemoryLog),
}

impl Log {
    pub(crate) fn append(&self, code: u8, payload: &[u8], on_reserved: impl FnOnce(Lsn)) -> Lsn {
        match self {
            Log::Storage(storage) => storage.wal.append(code, payload, on_reserved),
            #[cfg(test)]
            Log::Memory(log) => log.append(code, payload, on_reserved),
        }
    }

    #[inline]
    pub(crate) fn flushed(&self) -> Lsn {
        match self {
            Log::Storage(storage) => storage.wal.acknowledged(),
            #[cfg(test)]
            Log::Memory(log) => log.flushed(),
        }
    }

    pub(crate) fn flush(&self, upto: Lsn) -> Result<()> {
        match self {
            Log::Storage(storage) => storage.wal.flush(upto),
            #[cfg(test)]
            Log::Memory(log) => log.flush(upto),
        }
    }
}

/// A commit record.
#[derive(Debug, PartialEq)]
pub(crate) struct Commit<'a> {
    pub(crate) top: Xid,
    pub(crate) subs: Vec<Xid>,
    pub(crate) upper: &'a [u8],
}

impl<'a> Commit<'a> {
    /// Payload of [`COMMIT_MORE`].
    pub(crate) fn encode(top: Xid, subs: &[Xid], upper: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(12 + 8 * subs.len() + upper.len());
        bytes.extend(top.0.to_le_bytes());
        bytes.extend((subs.len() as u32).to_le_bytes());
        bytes.extend(subs.iter().flat_map(|xid| xid.0.to_le_bytes()));
        bytes.extend(upper);
        bytes
    }

    /// The inverse, for both codes.
    pub(crate) fn decode(code: u8, mut bytes: &'a [u8]) -> Result<Commit<'a>> {
        let top = Xid(take_u64(&mut bytes)?);
        let mut subs = Vec::new();
        if code == COMMIT_MORE {
            for _ in 0..take_u32(&mut bytes)? {
                subs.push(Xid(take_u64(&mut bytes)?));
            }
        }
        Ok(Commit { top, subs, upper: bytes })
    }
}

fn damaged() -> Error {
    base::err!(DATA_CORRUPTED, "a transaction record in the write-ahead log is damaged")
}

/// The next eight bytes.
pub(crate) fn take_u64(bytes: &mut &[u8]) -> Result<u64> {
    let (head, rest) = bytes.split_first_chunk().ok_or_else(damaged)?;
    *bytes = rest;
    Ok(u64::from_le_bytes(*head))
}

/// The next four bytes.
pub(crate) fn take_u32(bytes: &mut &[u8]) -> Result<u32> {
    let (head, rest) = bytes.split_first_chunk().ok_or_else(damaged)?;
    *bytes = rest;
    Ok(u32::from_le_bytes(*head))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// Keeps its records in memory. Durable is what was flushed.
    pub(crate) struct MemoryLog {
        position: AtomicU64,
        flushed: AtomicU64,
        pub(crate) records: Mutex<Vec<(Lsn, u8, Vec<u8>)>>,
    }

    impl MemoryLog {
        pub(crate) fn new(start: Lsn) -> MemoryLog {
            MemoryLog {
                position: AtomicU64::new(start.0),
                flushed: AtomicU64::new(start.0),
                records: Mutex::new(Vec::new()),
            }
        }
        pub(crate) fn append(
            &self,
            code: u8,
            payload: &[u8],
            on_reserved: impl FnOnce(Lsn),
        ) -> Lsn {
            let size = payload.len() as u64 + 16;
            let end = Lsn(self.position.fetch_add(size, Ordering::Relaxed) + size);
            on_reserved(end);
            let mut records = self.records.lock().unwrap();
            records.push((end, code, payload.to_vec()));
            end
        }
        pub(crate) fn flushed(&self) -> Lsn {
            Lsn(self.flushed.load(Ordering::Acquire))
        }
        pub(crate) fn flush(&self, upto: Lsn) -> Result<()> {
            self.flushed.fetch_max(upto.0, Ordering::AcqRel);
            Ok(())
        }
        pub(crate) fn position(&self) -> Lsn {
            Lsn(self.position.load(Ordering::Acquire))
        }
    }

    #[test]
    fn a_commit_record_survives_encoding_and_refuses_to_be_cut() {
        let bytes = Commit::encode(Xid(7), &[Xid(8), Xid(9)], b"upper");
        let commit = Commit { top: Xid(7), subs: vec![Xid(8), Xid(9)], upper: b"upper" };
        assert_eq!(Commit::decode(COMMIT_MORE, &bytes).unwrap(), commit);
        for cut in 0..28 {
            assert!(Commit::decode(COMMIT_MORE, &bytes[..cut]).is_err());
        }
        let plain = Commit::decode(COMMIT, &bytes[..8]).unwrap();
        assert_eq!((plain.top, plain.subs.len(), plain.upper.len()), (Xid(7), 0, 0));
    }
}
