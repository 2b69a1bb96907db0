//! Schemas, databases, roles and the other small tables.

use base::{Oid, Result};
use types::Datum;

use super::SystemCx;
use super::roles::stored_acl;
use super::row::{oid, row};
use crate::object::AclKind;
use crate::object::ids::{BTREE_AM, HEAP_AM, PG_CATALOG, PG_DEFAULT, SUPERUSER};

type Rows = Result<Vec<Vec<Datum>>>;

pub(super) fn pg_namespace(cx: &SystemCx<'_>) -> Rows {
    let one = |s: &crate::object::Schema| {
        row(PG_CATALOG, "pg_namespace")
            .set("oid", oid(s.oid))
            .set("nspname", s.name.as_str())
            .set("nspowner", oid(s.owner))
            .set("nspacl", stored_acl(cx, AclKind::Schema, s.oid, 0))
            .done()
    };
    Ok(cx.catalog.schemas().map(|s| one(s)).collect())
}

pub(super) fn pg_database(cx: &SystemCx<'_>) -> Rows {
    let one = |d: &crate::object::Database| {
        row(PG_CATALOG, "pg_database")
            .set("oid", oid(d.oid))
            .set("datname", d.name.as_str())
            .set("datdba", oid(d.owner))
            .set("encoding", 6)
            .set("datlocprovider", 'c')
            .set("datistemplate", d.template)
            .set("datallowconn", d.connect)
            .set("datconnlimit", -1)
            .set("datfrozenxid", oid(3))
            .set("datminmxid", oid(1))
            .set("dattablespace", oid(PG_DEFAULT))
            .set("datcollate", "C.UTF-8")
            .set("datctype", "C.UTF-8")
            .set("datacl", stored_acl(cx, AclKind::Database, d.oid, 0))
            .done()
    };
    Ok(cx.catalog.databases().map(|d| one(d)).collect())
}

pub(super) fn pg_tablespace(_cx: &SystemCx<'_>) -> Rows {
    let one = |(id, name): &(u32, &str)| {
        row(PG_CATALOG, "pg_tablespace")
            .set("oid", oid(*id))
            .set("spcname", *name)
            .set("spcowner", oid(SUPERUSER))
            .done()
    };
    Ok([(PG_DEFAULT, "pg_default"), (1664, "pg_global")].iter().map(one).collect())
}

pub(super) fn pg_am(_cx: &SystemCx<'_>) -> Rows {
    let one = |(id, name, handler, kind): &(u32, &str, u32, char)| {
        row(PG_CATALOG, "pg_am")
            .set("oid", oid(*id))
            .set("amname", *name)
            .set("amhandler", oid(*handler))
            .set("amtype", *kind)
            .done()
    };
    Ok([(HEAP_AM, "heap", 3, 't'), (BTREE_AM, "btree", 330, 'i')].iter().map(one).collect())
}

pub(super) fn pg_language(_cx: &SystemCx<'_>) -> Rows {
    let one = |(id, name, trusted): &(u32, &str, bool)| {
        row(PG_CATALOG, "pg_language")
            .set("oid", oid(*id))
            .set("lanname", *name)
            .set("lanowner", oid(SUPERUSER))
            .set("lanispl", false)
            .set("lanpltrusted", *trusted)
            .fill(&["lanplcallfoid", "laninline", "lanvalidator"], oid(0))
            .done()
    };
    Ok([(12, "internal", false), (14, "sql", true)].iter().map(one).collect())
}

pub(super) fn pg_collation(_cx: &SystemCx<'_>) -> Rows {
    let one = |(id, name): &(u32, &str)| {
        row(PG_CATALOG, "pg_collation")
            .set("oid", oid(*id))
            .set("collname", *name)
            .set("collnamespace", oid(PG_CATALOG))
            .set("collowner", oid(SUPERUSER))
            .set("collprovider", if *id == 100 { 'd' } else { 'c' })
            .set("collisdeterministic", true)
            .set("collencoding", -1)
            .fill(&["collcollate", "collctype"], Datum::Text((*name).into()))
            .done()
    };
    Ok([(100, "default"), (950, "C"), (951, "POSIX")].iter().map(one).collect())
}

/// What PostgreSQL says about its own objects: class, object, text.
pub fn descriptions() -> impl Iterator<Item = (u32, u32, &'static str)> {
    include_str!("descriptions.txt").lines().filter(|l| !l.starts_with('#')).filter_map(|line| {
        let mut parts = line.splitn(3, " | ");
        let class = parts.next()?.parse().ok()?;
        Some((class, parts.next()?.parse().ok()?, parts.next()?))
    })
}

pub(super) fn pg_description(cx: &SystemCx<'_>) -> Rows {
    let class_of = |id| {
        if cx.catalog.schema(id).is_some() { 2615 } else { 1259 }
    };
    let one = |c: &crate::object::Comment| {
        row(PG_CATALOG, "pg_description")
            .set("objoid", oid(c.object))
            .set("classoid", oid(class_of(c.object)))
            .set("objsubid", i32::from(c.column))
            .set("description", c.text.as_str())
            .done()
    };
    debug_assert!(Oid(1259) < Oid::FIRST_USER);
    let builtin = |(class, object, text): (u32, u32, &'static str)| {
        row(PG_CATALOG, "pg_description")
            .set("objoid", oid(object))
            .set("classoid", oid(class))
            .set("objsubid", 0)
            .set("description", text)
            .done()
    };
    Ok(cx.catalog.comments().map(|c| one(c)).chain(descriptions().map(builtin)).collect())
}
