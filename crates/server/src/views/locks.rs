//! `pg_locks`: heavyweight locks, held and waited for.

use catalog::object::ids;
use txn::LockTag;
use txn::lock::LockRow;
use types::Datum;

use super::text;

/// One lock as `pg_locks` shows it.
pub(super) fn lock(row: &LockRow) -> Vec<Datum> {
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
