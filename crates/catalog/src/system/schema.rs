//! Schemas, databases, roles and the other small tables.

use base::{Oid, Result};
use types::Datum;

use super::SystemCx;
use super::row::{Row, array, oid, row};
use crate::object::ids::{BTREE_AM, HEAP_AM, PG_CATALOG, PG_DEFAULT, SUPERUSER};

type Rows = Result<Vec<Vec<Datum>>>;

pub(super) fn pg_namespace(cx: &SystemCx<'_>) -> Rows {
    let one = |s: &crate::object::Schema| {
        row(PG_CATALOG, "pg_namespace")
            .set("oid", oid(s.oid))
            .set("nspname", s.name.as_str())
            .set("nspowner", oid(s.owner))
            .done()
    };
    Ok(cx.catalog.schemas().map(|s| one(s)).collect())
}

/// The rights that PostgreSQL's initdb gives on templates.
fn template_acl() -> Datum {
    let items = ["=c/postgres", "postgres=CTc/postgres"].map(|t| Datum::Text(t.into()));
    array(types::oids::ACLITEM, 1, items.to_vec())
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
            .set("datacl", if d.template { template_acl() } else { Datum::Null })
            .done()
    };
    Ok(cx.catalog.databases().map(|d| one(d)).collect())
}

fn role(table: &'static str, prefix: &str, r: &crate::object::Role) -> Row {
    let name = |suffix: &str| format!("{prefix}{suffix}");
    let mut out = row(PG_CATALOG, table).set("oid", oid(r.oid));
    for (suffix, value) in [
        ("super", r.superuser),
        ("inherit", true),
        ("createrole", r.superuser),
        ("createdb", r.superuser),
        ("canlogin", r.login),
        ("replication", r.superuser),
        ("bypassrls", r.superuser),
    ] {
        out = out.set(&name(suffix), value);
    }
    out.set(&name("name"), r.name.as_str()).set(&name("connlimit"), -1)
}

pub(super) fn pg_authid(cx: &SystemCx<'_>) -> Rows {
    Ok(cx.catalog.roles().map(|r| role("pg_authid", "rol", r).done()).collect())
}

pub(super) fn pg_roles(cx: &SystemCx<'_>) -> Rows {
    let one = |r: &crate::object::Role| role("pg_roles", "rol", r).set("rolpassword", "********");
    Ok(cx.catalog.roles().map(|r| one(r).done()).collect())
}

pub(super) fn pg_user(cx: &SystemCx<'_>) -> Rows {
    let one = |r: &crate::object::Role| {
        row(PG_CATALOG, "pg_user")
            .set("usename", r.name.as_str())
            .set("usesysid", oid(r.oid))
            .fill(&["usecreatedb", "usesuper", "userepl", "usebypassrls"], Datum::Bool(r.superuser))
            .set("passwd", "********")
            .done()
    };
    Ok(cx.catalog.roles().map(|r| one(r)).collect())
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
