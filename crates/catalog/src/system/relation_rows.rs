//! Rows of pg_class and pg_attribute that relations and types have in common.

use types::{Datum, TypeIo};

use crate::object::Id;
use crate::object::ids::{self, PG_CATALOG};
use crate::system::SystemCx;
use crate::system::names::storage_of;
use crate::system::row::{Row, oid, row};

pub(super) fn class_row(cx: &SystemCx<'_>, id: Id, name: &str, schema: Id, rel: u32) -> Row {
    let pages = if rel == 0 { 0 } else { cx.server.pages(rel) };
    row(PG_CATALOG, "pg_class")
        .set("oid", oid(id))
        .set("relname", name)
        .set("relnamespace", oid(schema))
        .fill(&["reltype", "reloftype", "reltablespace", "reltoastrelid", "relrewrite"], oid(0))
        .set("relowner", oid(ids::SUPERUSER))
        .set("relfilenode", oid(rel))
        .set("relpages", pages as i32)
        .set("reltuples", -1f32)
        .set("relallvisible", 0)
        .fill(
            &[
                "relhasindex",
                "relisshared",
                "relhasrules",
                "relhastriggers",
                "relhassubclass",
                "relrowsecurity",
                "relforcerowsecurity",
                "relispartition",
            ],
            Datum::Bool(false),
        )
        .set("relpersistence", if base::Oid(id).is_temporary() { 't' } else { 'p' })
        .set("relreplident", 'n')
        .set("relchecks", 0i16)
        .set("relispopulated", true)
        .set("relfrozenxid", oid(0))
        .set("relminmxid", oid(0))
}

pub(super) fn attribute(rel: Id, number: i16, name: &str, ty: Id, typmod: i32) -> Row {
    let io = TypeIo::get(base::Oid(ty));
    let io = io.as_deref();
    let collation = io.map_or(0, crate::collation::of_built_in);
    row(PG_CATALOG, "pg_attribute")
        .set("attrelid", oid(rel))
        .set("attname", name)
        .set("atttypid", oid(ty))
        .set("attstattarget", -1)
        .set("attlen", io.map_or(-1, |t| t.len))
        .set("attnum", number)
        .set("attndims", i32::from(io.is_some_and(|t| t.element.0 != 0 && t.category == b'A')))
        .set("attcacheoff", -1)
        .set("atttypmod", typmod)
        .set("attbyval", io.is_some_and(|t| t.by_value))
        .set("attalign", io.map_or('i', |t| t.align as char))
        .set("attstorage", io.map_or('p', storage_of))
        .set("attcompression", Datum::Char(0))
        .fill(&["attnotnull", "atthasdef", "atthasmissing", "attisdropped"], Datum::Bool(false))
        .fill(&["attidentity", "attgenerated"], Datum::Char(0))
        .set("attislocal", true)
        .set("attinhcount", 0)
        .set("attcollation", oid(collation))
}
