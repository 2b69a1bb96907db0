//! Changes as the log tells of them to those who follow it ([`logical::record`]), with `wal_level = logical`.
//!
//! A change is told of when it has succeeded: a row with its indexes' entries. If its subtransaction rolls back later
//! the commit record does not name that, and nobody gets to see the change.

use std::sync::Arc;

use base::Result;
use catalog::{Index, ReplicaIdentity, Snapshot, Table};
use logical::record::{self, ColumnShape, Committing, Message, OldRow, Operation, TableShape};
use txn::Transaction;
use types::Datum;
use types::row::RowLayout;

use crate::context::{Engine, ExecContext};

/// A table's definition as the log tells of it.
pub struct Told {
    number: u64,
    shape: TableShape,
    layout: RowLayout,
    identity: ReplicaIdentity,
}

/// Whether changes of a table's rows are told of.
#[inline]
pub fn is_told(table: &Table) -> bool {
    record::is_enabled() && table.is_publishable()
}

impl Told {
    /// Of a table as it is now. `indexes`: all of it.
    pub fn new(view: &Snapshot, database: u32, table: &Table, indexes: &[Arc<Index>]) -> Told {
        let usable = |i: &&Arc<Index>| !i.invalid && !i.deferrable && i.predicate.is_none();
        let index = match table.replica_identity {
            ReplicaIdentity::Default => indexes.iter().filter(usable).find(|i| i.primary),
            ReplicaIdentity::Index(id) => indexes.iter().filter(usable).find(|i| i.oid == id),
            ReplicaIdentity::Full | ReplicaIdentity::Nothing => None,
        };
        let keys: Vec<u16> =
            index.map_or_else(Vec::new, |i| i.columns.iter().map(|c| c.column).collect());
        let columns = table.columns.iter().enumerate().map(|(n, c)| ColumnShape {
            name: c.name.clone(),
            ty: c.ty,
            typmod: c.typmod,
            dropped: c.dropped,
            generated: c.generated,
            key: keys.contains(&(n as u16 + 1)),
        });
        let shape = TableShape {
            database,
            oid: table.oid,
            schema: view.schema(table.schema).map_or_else(String::new, |s| s.name.clone()),
            name: table.name.clone(),
            identity: table.replica_identity.letter(),
            columns: columns.collect(),
        };
        let layout = shape.layout();
        Told { number: record::new_number(), shape, layout, identity: table.replica_identity }
    }

    /// The old row as far as it is told of: all of it, or the columns that identify it.
    fn old(&self, old: &[Datum]) -> OldRow<Vec<Datum>> {
        if self.identity == ReplicaIdentity::Full {
            return OldRow::Full(old.to_vec());
        }
        if self.shape.columns.iter().all(|c| !c.key) {
            return OldRow::None;
        }
        let keep = |(value, column): (&Datum, &ColumnShape)| match column.key {
            true => value.clone(),
            false => Datum::Null,
        };
        OldRow::Key(old.iter().zip(&self.shape.columns).map(keep).collect())
    }

    /// Whether an update changes what identifies the row.
    fn moves(&self, old: &[Datum], new: &[Datum]) -> bool {
        let keys = self.shape.columns.iter().enumerate().filter(|(_, c)| c.key);
        keys.into_iter().any(|(n, _)| old.get(n) != new.get(n))
    }

    fn announce(&self, engine: &Engine, tx: &Transaction, top: u64) {
        if tx.announce(self.number) {
            let payload = record::table(top, self.number, &self.shape);
            engine.storage.wal.append(record::TABLE, &payload, |_| {});
        }
    }

    /// Tells of a change of a row.
    ///
    /// # Errors
    /// Those of transaction ids and of values that can't be encoded.
    pub fn row(
        &self,
        operation: Operation,
        old: Option<&[Datum]>,
        new: Option<&[Datum]>,
        cx: &ExecContext<'_>,
    ) -> Result<()> {
        let old = match (operation, old, new) {
            (Operation::Insert, ..) | (_, None, _) => OldRow::None,
            (Operation::Update, Some(old), Some(new))
                if self.identity != ReplicaIdentity::Full && !self.moves(old, new) =>
            {
                OldRow::None
            }
            (_, Some(old), _) => self.old(old),
        };
        let xid = cx.tx.xid()?.0;
        let top = cx.tx.top_xid().map_or(xid, |top| top.0);
        self.announce(cx.engine, cx.tx, top);
        let ids = (xid, top);
        let payload = record::row(ids, self.number, &self.layout, operation, &old, new)?;
        cx.engine.storage.wal.append(record::ROW, &payload, |_| {});
        Ok(())
    }
}

/// Tells of TRUNCATE.
///
/// # Errors
/// Those of transaction ids.
pub fn truncated(
    tables: &[Arc<Table>],
    cascade: bool,
    restart: bool,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    let told: Vec<&Arc<Table>> = tables.iter().filter(|t| is_told(t)).collect();
    if told.is_empty() {
        return Ok(());
    }
    let (view, database) = (cx.catalog_tx.view(), cx.database.1);
    let xid = cx.tx.xid()?.0;
    let top = cx.tx.top_xid().map_or(xid, |top| top.0);
    let mut numbers = Vec::with_capacity(told.len());
    for table in told {
        let one = Told::new(&view, database, table, &view.indexes_of(table));
        one.announce(cx.engine, cx.tx, top);
        numbers.push(one.number);
    }
    let flags = u8::from(cascade) | u8::from(restart) << 1;
    let payload = record::truncate((xid, top), flags, &numbers);
    cx.engine.storage.wal.append(record::TRUNCATE, &payload, |_| {});
    Ok(())
}

/// Writes a message into the log; where its record ends.
///
/// # Errors
/// Those of transaction ids and of a flush.
pub fn message(
    transactional: bool,
    prefix: &str,
    content: &[u8],
    cx: &mut ExecContext<'_>,
) -> Result<base::Lsn> {
    let (prefix, content) = (prefix.to_owned(), content.to_vec());
    let database = cx.database.1;
    let (xid, top) = match transactional {
        true => {
            let xid = cx.tx.xid()?.0;
            cx.tx.announce(0);
            (xid, cx.tx.top_xid().map_or(xid, |top| top.0))
        }
        false => (0, 0),
    };
    let message = Message { xid, top, database, prefix, content };
    let end = cx.engine.storage.wal.append(record::MESSAGE, &message.encode(), |_| {});
    if !transactional {
        cx.engine.storage.wal.request_flush(end);
    }
    Ok(end)
}

/// Tells that a transaction is about to commit, if the log tells of it at all. `defines`: it changes definitions;
/// `time`: now, in microseconds since 2000; `origin`: the server and position that it comes from.
pub fn committing(
    engine: &Engine,
    tx: &Transaction,
    database: u32,
    defines: bool,
    (time, origin): (i64, Option<(&str, u64)>),
) {
    let defines = defines && record::is_enabled();
    if !defines && !tx.has_announced() {
        return;
    }
    let Some(top) = tx.top_xid() else { return };
    let (origin, origin_lsn) =
        origin.map_or((String::new(), 0), |(name, at)| (name.to_owned(), at));
    let committing = Committing { top: top.0, database, time, defines, origin_lsn, origin };
    engine.storage.wal.append(record::COMMITTING, &committing.encode(), |_| {});
}
