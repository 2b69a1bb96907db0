//! `pg_locks`: heavyweight locks, held and waited for, and what serializable transactions have read.

use std::collections::HashMap;

use catalog::object::ids;
use txn::LockTag;
use txn::lock::LockRow;
use txn::serial::ReadRow;
use types::Datum;

use super::text;
use crate::server::Server;

/// All rows.
pub(super) fn locks(server: &Server) -> Vec<Vec<Datum>> {
    let mut rows: Vec<Vec<Datum>> = server.engine.txn.locks.snapshot().iter().map(lock).collect();
    let reads = server.engine.txn.serial.rows();
    if !reads.is_empty() {
        let catalog = server.engine.catalog.current();
        let tables = catalog.tables().map(|table| (table.rel, table.oid));
        let indexes = catalog.indexes().map(|index| (index.rel, index.oid));
        let oids: HashMap<u32, u32> = tables.chain(indexes).collect();
        rows.extend(reads.iter().map(|row| read(row, &oids)));
    }
    rows
}

/// A predicate lock. `oids` leads from files to what they belong to.
fn read(row: &ReadRow, oids: &HashMap<u32, u32>) -> Vec<Datum> {
    let (block, offset) = row.target.place();
    let kind = match (block, offset) {
        (_, Some(_)) => "tuple",
        (Some(_), None) => "page",
        (None, None) => "relation",
    };
    let rel = row.target.rel.0;
    let mut out = vec![
        text(kind),
        Datum::Oid(ids::POSTGRES_DB),
        Datum::Oid(oids.get(&rel).copied().unwrap_or(rel)),
        block.map_or(Datum::Null, |block| Datum::Int4(block as i32)),
        offset.map_or(Datum::Null, |offset| Datum::Int2(offset as i16)),
    ];
    out.extend([const { Datum::Null }; 5]);
    out.extend([
        text(&format!("{}/0", row.pid)),
        Datum::Int4(row.pid),
        text("SIReadLock"),
        Datum::Bool(true),
        Datum::Bool(false),
        Datum::Null,
    ]);
    out
}

/// One heavyweight lock.
fn lock(row: &LockRow) -> Vec<Datum> {
    let mut what: [Datum; 10] = Default::default();
    let database = Datum::Oid(ids::POSTGRES_DB);
    let kind = match row.tag {
        LockTag::Relation(oid) => {
            (what[0], what[1]) = (database, Datum::Oid(oid.0));
            "relation"
        }
        LockTag::Extend(rel) => {
            (what[0], what[1]) = (database, Datum::Oid(rel.0));
            "extend"
        }
        LockTag::Tuple(rel, tid) => {
            (what[0], what[1]) = (database, Datum::Oid(rel.0));
            (what[2], what[3]) = (Datum::Int4(tid.block as i32), Datum::Int2(tid.offset as i16));
            "tuple"
        }
        LockTag::Xid(xid) => {
            what[5] = Datum::Oid(xid.0 as u32);
            "transactionid"
        }
        LockTag::Object(class, object) => {
            (what[0], what[6], what[7]) =
                (database, Datum::Oid(class.0), Datum::Oid(object as u32));
            what[8] = Datum::Int2(0);
            "object"
        }
        LockTag::Advisory(oid, key) => {
            (what[0], what[6]) = (Datum::Oid(oid.0), Datum::Oid((key >> 32) as u32));
            (what[7], what[8]) = (Datum::Oid(key as u32), Datum::Int2(1));
            "advisory"
        }
        LockTag::Advisory2(oid, one, two) => {
            (what[0], what[6]) = (Datum::Oid(oid.0), Datum::Oid(one as u32));
            (what[7], what[8]) = (Datum::Oid(two as u32), Datum::Int2(2));
            "advisory"
        }
    };
    let mut out = vec![text(kind)];
    out.extend(what.into_iter().take(9));
    out.extend([
        text(&format!("{}/0", row.pid)),
        Datum::Int4(row.pid),
        text(row.mode.name()),
        Datum::Bool(row.granted),
        Datum::Bool(row.fastpath),
        row.wait_start.map_or(Datum::Null, |t| Datum::Timestamptz(crate::server::micros(t))),
    ]);
    out
}
