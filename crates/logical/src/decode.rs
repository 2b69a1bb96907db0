//! Transactions out of the log, in the order of their commits.
//!
//! ```text
//! log:   row(7) table(9) row(9) row(7) commit(9) row(7) commit(7)
//! out:                                 9: row    …      7: row row row
//! ```
//! * Changes wait in memory until their transaction commits. A transaction that never does is not in the log: whoever
//!   feeds the decoder says which have ended ([`Decoder::forget`]).
//! * [`Decoder::oldest`] is where the decoder would have to begin anew to see all of what is still open.

use std::collections::HashMap;
use std::sync::Arc;

use base::{Lsn, Result, err};
use types::Datum;
use types::row::{self, RowLayout};

use crate::record::{
    COMMITTING, Committing, MESSAGE, Message, OldRow, Operation, ROW, Reader, TABLE, TRUNCATE,
    TableShape,
};

/// Codes of the transaction layer: a commit, and one with more.
const COMMIT: u8 = 1;
const COMMIT_MORE: u8 = 2;

/// A table that changes are about.
#[derive(Debug)]
pub struct StreamTable {
    /// Its definition.
    pub shape: TableShape,
    layout: RowLayout,
}

/// A change.
#[derive(Clone, Debug)]
pub enum Change {
    /// Of a row.
    Row {
        /// Its table.
        table: Arc<StreamTable>,
        /// The kind of change.
        operation: Operation,
        /// The row before, as far as it is known; all columns ever.
        old: OldRow<Vec<Datum>>,
        /// The row afterwards.
        new: Option<Vec<Datum>>,
    },
    /// TRUNCATE.
    Truncate {
        /// The tables.
        tables: Vec<Arc<StreamTable>>,
        /// CASCADE.
        cascade: bool,
        /// RESTART IDENTITY.
        restart: bool,
    },
    /// A message of the transaction.
    Message(Message),
}

/// A transaction that has committed.
#[derive(Clone, Debug)]
pub struct Committed {
    /// Its id.
    pub xid: u64,
    /// Where its first change is.
    pub begin: Lsn,
    /// Where its commit record begins.
    pub commit: Lsn,
    /// Where its commit record ends.
    pub end: Lsn,
    /// Time, database, origin.
    pub info: Committing,
    /// Its changes with the end of each one's record.
    pub changes: Vec<(Lsn, Change)>,
}

/// Something that comes out of the stream.
#[derive(Clone, Debug)]
pub enum Decoded {
    /// A transaction.
    Transaction(Committed),
    /// A message that waits for nothing, and where its record ends.
    Message(Lsn, Message),
}

/// A transaction that is open.
struct Open {
    first: Lsn,
    tables: HashMap<u64, Arc<StreamTable>>,
    /// Changes with their ids.
    changes: Vec<(u64, Lsn, Change)>,
    info: Option<Committing>,
}

/// See the module's documentation.
pub struct Decoder {
    database: u32,
    open: HashMap<u64, Open>,
}

impl Decoder {
    /// Of one database's changes.
    pub fn new(database: u32) -> Decoder {
        Decoder { database, open: HashMap::new() }
    }

    /// Whether payloads with this code are for the decoder.
    pub fn wants(code: u8) -> bool {
        matches!(code, COMMIT | COMMIT_MORE | TABLE..=TRUNCATE)
    }

    /// The position of the first change of a transaction that is open.
    pub fn oldest(&self) -> Option<Lsn> {
        self.open.values().map(|open| open.first).min()
    }

    /// Forgets transactions that have ended without a commit.
    pub fn forget(&mut self, has_ended: impl Fn(u64) -> bool) {
        self.open.retain(|top, _| !has_ended(*top));
    }

    fn of(&mut self, top: u64, begin: Lsn) -> &mut Open {
        self.open.entry(top).or_insert_with(|| Open {
            first: begin,
            tables: HashMap::new(),
            changes: Vec::new(),
            info: None,
        })
    }

    /// Takes the next payload, whose record begins and ends at these positions.
    ///
    /// # Errors
    /// `XX001`.
    pub fn feed(
        &mut self,
        code: u8,
        bytes: &[u8],
        (begin, end): (Lsn, Lsn),
    ) -> Result<Option<Decoded>> {
        let mut from = Reader(bytes);
        match code {
            COMMIT | COMMIT_MORE => {
                let top = from.u64()?;
                let mut ids = vec![top];
                if code == COMMIT_MORE {
                    for _ in 0..from.u32()? {
                        ids.push(from.u64()?);
                    }
                }
                let Some(open) = self.open.remove(&top) else { return Ok(None) };
                let info = open.info.unwrap_or_default();
                if info.database != self.database {
                    return Ok(None);
                }
                let lives = |(xid, lsn, change)| ids.contains(&xid).then_some((lsn, change));
                return Ok(Some(Decoded::Transaction(Committed {
                    xid: top,
                    begin: open.first,
                    commit: begin,
                    end,
                    info,
                    changes: open.changes.into_iter().filter_map(lives).collect(),
                })));
            }
            TABLE => {
                let (top, number) = (from.u64()?, from.u64()?);
                let shape: TableShape = serde_json::from_slice(from.0)
                    .map_err(|e| err!(DATA_CORRUPTED, "a table in the log can't be read: {e}"))?;
                let layout = shape.layout();
                let table = Arc::new(StreamTable { shape, layout });
                self.of(top, begin).tables.insert(number, table);
            }
            ROW => {
                let (xid, top, number) = (from.u64()?, from.u64()?, from.u64()?);
                let operation = match from.u8()? {
                    b'I' => Operation::Insert,
                    b'U' => Operation::Update,
                    _ => Operation::Delete,
                };
                let (kind, len) = (from.u8()?, from.u32()? as usize);
                let old = from.bytes(len)?;
                // Its beginning is before the stream's: it is left out as a whole.
                let Some(open) = self.open.get_mut(&top) else { return Ok(None) };
                let Some(table) = open.tables.get(&number).cloned() else { return Ok(None) };
                if table.shape.database != self.database {
                    return Ok(None);
                }
                let old = match kind {
                    b'N' => OldRow::None,
                    b'K' => OldRow::Key(values(&table, old)?),
                    _ => OldRow::Full(values(&table, old)?),
                };
                let new = match operation {
                    Operation::Delete => None,
                    _ => Some(values(&table, from.0)?),
                };
                let change = Change::Row { table, operation, old, new };
                open.changes.push((xid, end, change));
            }
            TRUNCATE => {
                let (xid, top, flags) = (from.u64()?, from.u64()?, from.u8()?);
                let Some(open) = self.open.get_mut(&top) else { return Ok(None) };
                let mut tables = Vec::new();
                while !from.0.is_empty() {
                    tables.extend(open.tables.get(&from.u64()?).cloned());
                }
                let (cascade, restart) = (flags & 1 != 0, flags & 2 != 0);
                open.changes.push((xid, end, Change::Truncate { tables, cascade, restart }));
            }
            COMMITTING => {
                let info = Committing::decode(bytes)?;
                if info.defines || self.open.contains_key(&info.top) {
                    let top = info.top;
                    self.of(top, begin).info = Some(info);
                }
            }
            MESSAGE => {
                let message = Message::decode(bytes)?;
                if message.database != self.database {
                    return Ok(None);
                }
                if message.top == 0 {
                    return Ok(Some(Decoded::Message(end, message)));
                }
                let (xid, top) = (message.xid, message.top);
                self.of(top, begin).changes.push((xid, end, Change::Message(message)));
            }
            _ => {}
        }
        Ok(None)
    }
}

/// The values of a row, dropped columns as NULL.
fn values(table: &StreamTable, bytes: &[u8]) -> Result<Vec<Datum>> {
    let wanted: Vec<u16> = table.shape.live().map(|(n, _)| n as u16).collect();
    let mut out = vec![Datum::Null; table.shape.columns.len()];
    let mut found = Vec::with_capacity(wanted.len());
    row::decode(&table.layout, bytes, &wanted, &mut found)?;
    for (n, value) in wanted.iter().zip(found) {
        out[usize::from(*n)] = value;
    }
    Ok(out)
}
