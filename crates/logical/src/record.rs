//! Records for those who follow the log: payloads of the log with codes of their own, which recovery passes over.
//!
//! | code | record | payload (little-endian) |
//! | --- | --- | --- |
//! | 48 | table | top id (8), number (8), JSON of a [`TableShape`] |
//! | 49 | row | id (8), top id (8), number of its table (8), operation (1), kind of old row (1), bytes of it (4), it, new row |
//! | 50 | commit is next | top id (8), database (4), microseconds since 2000 (8), changes definitions (1), origin's position (8), origin |
//! | 51 | message | id or 0 (8), top id (8), database (4), bytes of the prefix (4), it, content |
//! | 52 | truncate | id (8), top id (8), flags (1), numbers of the tables (8 each) |
//!
//! * Ids are of the subtransaction; the top id is its transaction's. A commit record says which ids live.
//! * A table is told of once in a transaction, and again when its definition has changed since; numbers are unique
//!   within a transaction. So the stream needs no catalog of the past.
//! * Rows are in the heap's form ([`types::row`]), whole: nothing of them is kept elsewhere.
//! * Records 48 to 52 are written only with `wal_level = logical`, but for messages, which are written on demand.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use base::{Oid, Result, err};
use serde::{Deserialize, Serialize};
use types::Datum;
use types::row::{self, RowColumn, RowLayout};

/// A table.
pub const TABLE: u8 = 48;
/// A row.
pub const ROW: u8 = 49;
/// A commit is next.
pub const COMMITTING: u8 = 50;
/// A message.
pub const MESSAGE: u8 = 51;
/// TRUNCATE.
pub const TRUNCATE: u8 = 52;

static ENABLED: AtomicBool = AtomicBool::new(false);

/// Whether changes are told of: `wal_level = logical`.
#[inline]
pub fn is_enabled() -> bool {
    ENABLED.load(Ordering::Relaxed)
}

/// Sets that, before the server serves.
pub fn enable(on: bool) {
    ENABLED.store(on, Ordering::Relaxed);
}

/// A number for a table's definition that nobody else has.
pub fn new_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The definition of a table as far as its rows need it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TableShape {
    /// Its database.
    pub database: u32,
    /// Its oid.
    pub oid: u32,
    /// Its schema's name.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// As in `pg_class.relreplident`.
    pub identity: char,
    /// All columns ever, in order of their number.
    pub columns: Vec<ColumnShape>,
}

/// A column of a [`TableShape`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ColumnShape {
    /// Name.
    pub name: String,
    /// Type's oid.
    pub ty: u32,
    /// Length or precision as PostgreSQL encodes it; -1: none.
    pub typmod: i32,
    /// No longer there.
    pub dropped: bool,
    /// A stored generated column.
    pub generated: bool,
    /// It identifies rows.
    pub key: bool,
}

impl TableShape {
    /// The columns that are there, with their number from 0.
    pub fn live(&self) -> impl Iterator<Item = (usize, &ColumnShape)> {
        self.columns.iter().enumerate().filter(|(_, c)| !c.dropped)
    }

    /// How its rows are encoded.
    pub fn layout(&self) -> RowLayout {
        let column = |c: &ColumnShape| RowColumn { ty: Oid(c.ty), missing: Datum::Null };
        RowLayout::new(self.columns.iter().map(column).collect())
    }
}

/// The kind of a row's change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// It is new.
    Insert,
    /// It has other values.
    Update,
    /// It is gone.
    Delete,
}

/// The old row that a change tells of.
#[derive(Clone, Debug, PartialEq)]
pub enum OldRow<T> {
    /// Nothing.
    None,
    /// The columns that identify it; the others are NULL.
    Key(T),
    /// All of it.
    Full(T),
}

impl<T> OldRow<T> {
    /// Its values.
    pub fn values(&self) -> Option<&T> {
        match self {
            OldRow::None => None,
            OldRow::Key(row) | OldRow::Full(row) => Some(row),
        }
    }
}

/// Bytes of a record that are read from the front.
pub struct Reader<'a>(pub &'a [u8]);

fn damaged() -> base::Error {
    err!(DATA_CORRUPTED, "a record of a change in the write-ahead log is damaged")
}

impl<'a> Reader<'a> {
    /// The next `n` bytes.
    ///
    /// # Errors
    /// `XX001` when there are fewer.
    pub fn bytes(&mut self, n: usize) -> Result<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(n).ok_or_else(damaged)?;
        self.0 = rest;
        Ok(head)
    }

    /// The next byte.
    ///
    /// # Errors
    /// As [`Reader::bytes`].
    pub fn u8(&mut self) -> Result<u8> {
        Ok(self.bytes(1)?[0])
    }

    /// The next four bytes.
    ///
    /// # Errors
    /// As [`Reader::bytes`].
    pub fn u32(&mut self) -> Result<u32> {
        let bytes = self.bytes(4)?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    /// The next eight bytes.
    ///
    /// # Errors
    /// As [`Reader::bytes`].
    pub fn u64(&mut self) -> Result<u64> {
        Ok(u64::from(self.u32()?) | u64::from(self.u32()?) << 32)
    }
}

/// Payload of [`TABLE`].
pub fn table(top: u64, number: u64, shape: &TableShape) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    out.extend(top.to_le_bytes());
    out.extend(number.to_le_bytes());
    out.extend(serde_json::to_vec(shape).unwrap_or_default());
    out
}

/// Payload of [`ROW`].
///
/// # Errors
/// Values that can't be encoded.
pub fn row(
    (xid, top): (u64, u64),
    number: u64,
    layout: &RowLayout,
    operation: Operation,
    old: &OldRow<Vec<Datum>>,
    new: Option<&[Datum]>,
) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(128);
    out.extend(xid.to_le_bytes());
    out.extend(top.to_le_bytes());
    out.extend(number.to_le_bytes());
    out.push(match operation {
        Operation::Insert => b'I',
        Operation::Update => b'U',
        Operation::Delete => b'D',
    });
    let mut bytes = Vec::new();
    let kind = match old {
        OldRow::None => b'N',
        OldRow::Key(values) => {
            row::encode(layout, values, &mut bytes)?;
            b'K'
        }
        OldRow::Full(values) => {
            row::encode(layout, values, &mut bytes)?;
            b'O'
        }
    };
    out.push(kind);
    out.extend((bytes.len() as u32).to_le_bytes());
    out.append(&mut bytes);
    if let Some(new) = new {
        row::encode(layout, new, &mut out)?;
    }
    Ok(out)
}

/// A commit that is next.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Committing {
    /// The transaction.
    pub top: u64,
    /// Its database.
    pub database: u32,
    /// Microseconds since 2000.
    pub time: i64,
    /// It changes definitions.
    pub defines: bool,
    /// Where the transaction ended on the server that it comes from; 0: it is from here.
    pub origin_lsn: u64,
    /// The name of that origin.
    pub origin: String,
}

impl Committing {
    /// Payload of [`COMMITTING`].
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(32);
        out.extend(self.top.to_le_bytes());
        out.extend(self.database.to_le_bytes());
        out.extend(self.time.to_le_bytes());
        out.push(u8::from(self.defines));
        out.extend(self.origin_lsn.to_le_bytes());
        out.extend(self.origin.as_bytes());
        out
    }

    /// The inverse.
    ///
    /// # Errors
    /// `XX001`.
    pub fn decode(bytes: &[u8]) -> Result<Committing> {
        let mut from = Reader(bytes);
        Ok(Committing {
            top: from.u64()?,
            database: from.u32()?,
            time: from.u64()? as i64,
            defines: from.u8()? != 0,
            origin_lsn: from.u64()?,
            origin: String::from_utf8_lossy(from.0).into_owned(),
        })
    }
}

/// A message that `pg_logical_emit_message` wrote.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Message {
    /// The subtransaction; 0: it does not wait for a commit.
    pub xid: u64,
    /// The transaction; 0 likewise.
    pub top: u64,
    /// The database.
    pub database: u32,
    /// Its prefix.
    pub prefix: String,
    /// Its content.
    pub content: Vec<u8>,
}

impl Message {
    /// Payload of [`MESSAGE`].
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(32 + self.prefix.len() + self.content.len());
        out.extend(self.xid.to_le_bytes());
        out.extend(self.top.to_le_bytes());
        out.extend(self.database.to_le_bytes());
        out.extend((self.prefix.len() as u32).to_le_bytes());
        out.extend(self.prefix.as_bytes());
        out.extend(&self.content);
        out
    }

    /// The inverse.
    ///
    /// # Errors
    /// `XX001`.
    pub fn decode(bytes: &[u8]) -> Result<Message> {
        let mut from = Reader(bytes);
        let (xid, top, database) = (from.u64()?, from.u64()?, from.u32()?);
        let len = from.u32()? as usize;
        let prefix = String::from_utf8_lossy(from.bytes(len)?).into_owned();
        Ok(Message { xid, top, database, prefix, content: from.0.to_vec() })
    }
}

/// Payload of [`TRUNCATE`]. `flags`: 1, CASCADE; 2, RESTART IDENTITY.
pub fn truncate((xid, top): (u64, u64), flags: u8, numbers: &[u64]) -> Vec<u8> {
    let mut out = Vec::with_capacity(17 + 8 * numbers.len());
    out.extend(xid.to_le_bytes());
    out.extend(top.to_le_bytes());
    out.push(flags);
    out.extend(numbers.iter().flat_map(|n| n.to_le_bytes()));
    out
}
