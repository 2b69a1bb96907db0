//! Transactions out of the log, in the order of their commits.
//!
//! ```text
//! log:   row(7) table(9) row(9) row(7) commit(9) row(7) commit(7)
//! out:                                 9: row    …      7: row row row
//! ```
//! * Changes wait in memory until their transaction commits. A transaction that never does is not in the log: whoever
//!   feeds the decoder says which have ended ([`Decoder::forget`]).
//! * A large transaction may be taken in parts before it ends ([`Decoder::take_part`]): as far as nothing of it can be taken back
//!   alone, which is up to the first change within a savepoint. (A rollback to a savepoint is not in the log.)
//! * One that is prepared comes out when it is, for those who want that ([`Decoder::prepare`]), and its end by itself.
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
    /// Its changes with the end of each one's record; those that were taken before are not among them.
    pub changes: Vec<(Lsn, Change)>,
    /// It was prepared under this name.
    pub gid: String,
}

/// The end of a transaction that came out when it was prepared.
#[derive(Clone, Debug, Default)]
pub struct Finished {
    /// Its id and name.
    pub xid: u64,
    /// See [`Finished::xid`].
    pub gid: String,
    /// When it was prepared, and where the record of that ends.
    pub prepared: (i64, Lsn),
    /// When it was ended, if that is known.
    pub time: i64,
    /// Where the record of its end begins and ends.
    pub at: (Lsn, Lsn),
    /// It was committed.
    pub commits: bool,
}

/// Something that comes out of the stream.
#[derive(Clone, Debug)]
pub enum Decoded {
    /// A transaction.
    Transaction(Committed),
    /// One that is prepared, if that was asked for.
    Prepared(Committed),
    /// The end of one of those.
    Finished(Finished),
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
    /// About as many bytes as its changes have.
    bytes: usize,
    /// It is prepared, and has come out: its name, and when and where it was.
    prepared: Option<(String, i64, Lsn)>,
}

/// Bytes of a change beside those of its record.
const OVERHEAD: usize = 100;

/// See the module's documentation.
pub struct Decoder {
    database: u32,
    open: HashMap<u64, Open>,
    /// The sum of the open transactions' bytes.
    bytes: usize,
}

impl Decoder {
    /// Of one database's changes.
    pub fn new(database: u32) -> Decoder {
        Decoder { database, open: HashMap::new(), bytes: 0 }
    }

    /// Whether payloads with this code are for the decoder.
    pub fn wants(code: u8) -> bool {
        matches!(code, COMMIT | COMMIT_MORE | TABLE..=TRUNCATE)
    }

    /// The position of the first change of a transaction that is open.
    pub fn oldest(&self) -> Option<Lsn> {
        self.open.values().map(|open| open.first).min()
    }

    /// Forgets transactions that have ended without a commit; their ids.
    pub fn forget(&mut self, has_ended: impl Fn(u64) -> bool) -> Vec<u64> {
        let ended: Vec<u64> = self.open.keys().copied().filter(|top| has_ended(*top)).collect();
        for top in &ended {
            self.close(*top);
        }
        ended
    }

    fn close(&mut self, top: u64) -> Option<Open> {
        let open = self.open.remove(&top)?;
        self.bytes -= open.bytes;
        Some(open)
    }

    /// About as many bytes as all changes have that wait for the end of their transactions.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes the first changes of the transaction with the most of them, as far as they stay if it commits; `is_aborted`
    /// tells which subtransactions have been rolled back. None: no transaction has such.
    pub fn take_part(
        &mut self,
        is_aborted: impl Fn(u64) -> bool,
    ) -> Option<(u64, Vec<(Lsn, Change)>)> {
        let streamable = |(top, open): &(&u64, &mut Open)| {
            let first = open.changes.first();
            open.prepared.is_none() && first.is_some_and(|c| c.0 == **top || is_aborted(c.0))
        };
        let largest = self.open.iter_mut().filter(streamable).max_by_key(|(_, open)| open.bytes);
        let (top, open) = largest?;
        let count = open.changes.iter().take_while(|c| c.0 == *top || is_aborted(c.0)).count();
        let rest = open.changes.split_off(count);
        let part = std::mem::replace(&mut open.changes, rest);
        // Sizes of single changes are not kept: the rest counts by its number.
        let left = match open.changes.len() {
            0 => 0,
            left => open.bytes * left / (left + count),
        };
        self.bytes -= open.bytes - left;
        open.bytes = left;
        let own = part.into_iter().filter(|change| change.0 == *top);
        Some((*top, own.map(|(_, lsn, change)| (lsn, change)).collect()))
    }

    /// A transaction with these ids is prepared: it comes out.
    pub fn prepare(
        &mut self,
        ids: &[u64],
        (gid, time): (&str, i64),
        (begin, end): (Lsn, Lsn),
    ) -> Option<Decoded> {
        let top = *ids.first()?;
        let open = self.open.get_mut(&top)?;
        let info = open.info.clone().unwrap_or_default();
        if info.database != self.database {
            return None;
        }
        open.prepared = Some((gid.to_owned(), time, end));
        self.bytes -= std::mem::take(&mut open.bytes);
        let changes = std::mem::take(&mut open.changes);
        let lives = |(xid, lsn, change)| ids.contains(&xid).then_some((lsn, change));
        Some(Decoded::Prepared(Committed {
            xid: top,
            begin: open.first,
            commit: begin,
            end,
            info: Committing { time, ..info },
            changes: changes.into_iter().filter_map(lives).collect(),
            gid: gid.to_owned(),
        }))
    }

    /// A prepared transaction is rolled back.
    pub fn rolled_back(&mut self, top: u64, at: (Lsn, Lsn)) -> Option<Decoded> {
        let (gid, time, end) = self.close(top)?.prepared?;
        let prepared = (time, end);
        // When it was rolled back is not in the log.
        let finished = Finished { xid: top, gid, prepared, time, at, commits: false };
        Some(Decoded::Finished(finished))
    }

    fn of(&mut self, top: u64, begin: Lsn) -> &mut Open {
        self.open.entry(top).or_insert_with(|| Open {
            first: begin,
            tables: HashMap::new(),
            changes: Vec::new(),
            info: None,
            bytes: 0,
            prepared: None,
        })
    }

    fn add(&mut self, top: u64, (xid, lsn, change): (u64, Lsn, Change), bytes: usize) {
        let Some(open) = self.open.get_mut(&top) else { return };
        open.changes.push((xid, lsn, change));
        open.bytes += bytes + OVERHEAD;
        self.bytes += bytes + OVERHEAD;
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
                let Some(open) = self.close(top) else { return Ok(None) };
                let info = open.info.unwrap_or_default();
                if info.database != self.database {
                    return Ok(None);
                }
                if let Some((gid, prepared_at, prepared_end)) = open.prepared {
                    return Ok(Some(Decoded::Finished(Finished {
                        xid: top,
                        gid,
                        prepared: (prepared_at, prepared_end),
                        time: info.time,
                        at: (begin, end),
                        commits: true,
                    })));
                }
                let lives = |(xid, lsn, change)| ids.contains(&xid).then_some((lsn, change));
                return Ok(Some(Decoded::Transaction(Committed {
                    xid: top,
                    begin: open.first,
                    commit: begin,
                    end,
                    info,
                    changes: open.changes.into_iter().filter_map(lives).collect(),
                    gid: String::new(),
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
                let Some(open) = self.open.get(&top) else { return Ok(None) };
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
                self.add(top, (xid, end, change), bytes.len());
            }
            TRUNCATE => {
                let (xid, top, flags) = (from.u64()?, from.u64()?, from.u8()?);
                let Some(open) = self.open.get(&top) else { return Ok(None) };
                let mut tables = Vec::new();
                while !from.0.is_empty() {
                    tables.extend(open.tables.get(&from.u64()?).cloned());
                }
                let (cascade, restart) = (flags & 1 != 0, flags & 2 != 0);
                let change = Change::Truncate { tables, cascade, restart };
                self.add(top, (xid, end, change), bytes.len());
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
                self.of(top, begin);
                self.add(top, (xid, end, Change::Message(message)), bytes.len());
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
