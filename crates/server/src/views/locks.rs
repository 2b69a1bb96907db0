//! `pg_locks`: heavyweight locks, held and waited for, and what serializable transactions have read.
//! A transaction's virtual id is its session's number and a count of its transactions; as in
//! PostgreSQL each holds a lock on its own.

use std::collections::HashMap;

use catalog::object::ids::PG_CATALOG;
use catalog::system::row::row;
use txn::LockTag;
use txn::lock::LockRow;
use txn::serial::ReadRow;
use types::Datum;

use crate::server::Server;
use crate::views::text::text;

/// The lock class of databases, which belong to none.
const DATABASE_CLASS: u32 = 1262;

/// From files to the databases and oids of what they belong to.
type Owners = HashMap<u32, (u32, u32)>;

/// A file as its database and relation.
fn owner(rel: u32, of: u32, owners: &Owners) -> (Datum, Datum) {
    let (database, oid) = owners.get(&rel).copied().unwrap_or((of, rel));
    (Datum::Oid(database), Datum::Oid(oid))
}

/// A predicate lock.
fn read(row: &ReadRow, owners: &Owners, virtual_ids: &HashMap<i32, String>) -> Vec<Datum> {
    let (block, offset) = row.target.place();
    let kind = match (block, offset) {
        (_, Some(_)) => "tuple",
        (Some(_), None) => "page",
        (None, None) => "relation",
    };
    let (database, relation) = owner(row.target.rel.0, catalog::SHARED, owners);
    let mut out = vec![
        text(kind),
        database,
        relation,
        block.map_or(Datum::Null, |block| Datum::Int4(block as i32)),
        offset.map_or(Datum::Null, |offset| Datum::Int2(offset as i16)),
    ];
    out.extend([const { Datum::Null }; 5]);
    out.extend([
        virtual_id(row.pid, virtual_ids),
        Datum::Int4(row.pid),
        text("SIReadLock"),
        Datum::Bool(true),
        Datum::Bool(false),
        Datum::Null,
    ]);
    out
}

fn virtual_id(pid: i32, virtual_ids: &HashMap<i32, String>) -> Datum {
    virtual_ids.get(&pid).map_or_else(|| text(&format!("{pid}/0")), |v| text(v))
}

/// One lock as `pg_locks` shows it.
fn lock(held: &LockRow, owners: &Owners, virtual_ids: &HashMap<i32, String>) -> Vec<Datum> {
    let mut what: [Datum; 10] = Default::default();
    let kind = match held.tag {
        LockTag::Relation(database, oid) => {
            (what[0], what[1]) = (Datum::Oid(database.0), Datum::Oid(oid.0));
            "relation"
        }
        LockTag::Extend(rel) => {
            (what[0], what[1]) = owner(rel.0, held.database.0, owners);
            "extend"
        }
        LockTag::Tuple(rel, tid) => {
            (what[0], what[1]) = owner(rel.0, held.database.0, owners);
            (what[2], what[3]) = (Datum::Int4(tid.block as i32), Datum::Int2(tid.offset as i16));
            "tuple"
        }
        LockTag::Xid(xid) => {
            what[5] = Datum::Oid(xid.0 as u32);
            "transactionid"
        }
        LockTag::Object(class, object) => {
            let database =
                if class.0 == DATABASE_CLASS { catalog::SHARED } else { held.database.0 };
            (what[0], what[6], what[7]) =
                (Datum::Oid(database), Datum::Oid(class.0), Datum::Oid(object as u32));
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
    let (transaction, pid) = match held.prepared {
        Some(xid) => (text(&format!("-1/{}", xid.0)), Datum::Null),
        None => (virtual_id(held.pid, virtual_ids), Datum::Int4(held.pid)),
    };
    out.extend([
        transaction,
        pid,
        text(held.mode.name()),
        Datum::Bool(held.granted),
        Datum::Bool(held.fastpath),
        held.wait_start.map_or(Datum::Null, |t| Datum::Timestamptz(crate::server::micros(t))),
    ]);
    out
}

/// A transaction's lock on its virtual id.
fn virtual_lock(pid: i32, id: &str) -> Vec<Datum> {
    row(PG_CATALOG, "pg_locks")
        .set("locktype", "virtualxid")
        .set("virtualxid", id)
        .set("virtualtransaction", id)
        .set("pid", pid)
        .set("mode", "ExclusiveLock")
        .fill(&["granted", "fastpath"], Datum::Bool(true))
        .done()
}

/// All rows.
pub(super) fn locks(server: &Server) -> Vec<Vec<Datum>> {
    let transactions = server.sessions.all().into_iter().filter_map(|entry| {
        let (number, begun) = entry.transaction();
        begun.then(|| (entry.pid, format!("{}/{number}", entry.pid)))
    });
    let ids: HashMap<i32, String> = transactions.collect();
    let held = server.engine.txn.locks.snapshot();
    let reads = server.engine.txn.serial.rows();
    let by_file = |one: &LockRow| matches!(one.tag, LockTag::Extend(_) | LockTag::Tuple(..));
    let owners = match held.iter().any(by_file) || !reads.is_empty() {
        true => super::owners_of_files(server),
        false => Owners::new(),
    };
    let mut rows: Vec<_> = held.iter().map(|one| lock(one, &owners, &ids)).collect();
    rows.extend(ids.iter().map(|(pid, id)| virtual_lock(*pid, id)));
    rows.extend(reads.iter().map(|one| read(one, &owners, &ids)));
    rows
}
