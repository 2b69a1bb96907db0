//! Names for new objects: where they go, whether they are free, and how constraints and indexes are
//! called when nobody says.

use std::hash::{Hash, Hasher};

use base::{Oid, Result, err};
use catalog::{Snapshot, Table};
use sql::utility::{Name, Persistence};
use txn::{LockMode, LockTag, LockWait};

use exec::context::ExecContext;

/// Bytes of an identifier, at most.
const MAX: usize = 63;
/// The lock class of names to be.
const NAME_CLASS: Oid = Oid(1247);

/// The schema in which an object with this name is made. What is asked for in `pg_temp` is temporary,
/// too.
///
/// # Errors
/// `3F000`, `42501` for system schemas, `42P16` for a temporary object elsewhere.
pub fn creation_schema(
    cx: &mut ExecContext<'_>,
    name: &Name,
    persistence: Persistence,
) -> Result<u32> {
    use catalog::object::ids;
    if let Some(schema) = temporary_schema(cx, name, persistence)? {
        let view = cx.catalog_tx.view();
        let (database, id) = cx.database;
        let rights = exec::rights::of(cx, &view);
        let (kind, right) = (catalog::AclKind::Database, catalog::acl::privilege::TEMPORARY);
        if !rights.may(cx.role, kind, id, right) {
            base::bail!(
                INSUFFICIENT_PRIVILEGE,
                "permission denied to create temporary tables in database \"{database}\""
            );
        }
        return Ok(schema);
    }
    let view = cx.catalog_tx.view();
    let schema = match &name.schema {
        Some(schema) => {
            view.schema_named(schema)
                .ok_or_else(|| {
                    err!(UNDEFINED_SCHEMA, "schema \"{schema}\" does not exist").at(name.position)
                })?
                .oid
        }
        None => *cx
            .search_path
            .iter()
            .find(|id| {
                let special = **id == ids::PG_CATALOG || Oid(**id).is_temporary();
                !special && view.schema(**id).is_some()
            })
            .ok_or_else(|| {
                err!(UNDEFINED_SCHEMA, "no schema has been selected to create in").at(name.position)
            })?,
    };
    if schema == ids::PG_CATALOG || schema == ids::INFORMATION_SCHEMA {
        base::bail!(
            INSUFFICIENT_PRIVILEGE,
            "permission denied to create \"{}\" in a system schema",
            name.name
        );
    }
    exec::rights::require_creation(cx, cx.role, schema).map_err(|e| e.at(name.position))?;
    Ok(schema)
}

/// The session's schema for temporary objects, if this is to be one.
fn temporary_schema(
    cx: &mut ExecContext<'_>,
    name: &Name,
    persistence: Persistence,
) -> Result<Option<u32>> {
    let temporary = matches!(persistence, Persistence::Temporary(_));
    let own = cx.catalog_tx.temporary_schema();
    let meant = match &name.schema {
        Some(schema) => {
            let view = cx.catalog_tx.view();
            let named = view.schema_named(schema).map(|s| s.oid);
            schema == "pg_temp" || (named.is_some() && named == own)
        }
        None => {
            let path = cx.settings.str(base::settings::setting::SEARCH_PATH);
            let names = base::settings::split_names(path).unwrap_or_default();
            temporary || names.first().is_some_and(|first| first == "pg_temp")
        }
    };
    if meant && persistence == Persistence::Unlogged {
        base::bail!(
            INVALID_TABLE_DEFINITION,
            "only temporary relations may be created in temporary schemas"
        );
    }
    if !meant {
        return Ok(None);
    }
    exec::security::expect_unrestricted(cx, "create temporary table")?;
    let owner = cx.role;
    cx.catalog_tx.make_temporary_schema(owner).map(Some)
}

/// In place of a schema: the names of roles.
pub const ROLES: u32 = u32::MAX;
/// In place of a schema: the names of databases.
pub const DATABASES: u32 = u32::MAX - 1;

/// Keeps others from making the same name until the transaction ends.
///
/// # Errors
/// Those of locking.
pub fn reserve(cx: &ExecContext<'_>, schema: u32, name: &str) -> Result<()> {
    let database = if schema >= DATABASES { catalog::SHARED } else { cx.database.1 };
    let mut state = exec::ops::grouping::Fx::default();
    (database, schema, name).hash(&mut state);
    let tag = LockTag::Object(NAME_CLASS, state.finish());
    let locks = &cx.tx.manager().locks;
    locks.lock(cx.tx.locks(), tag, LockMode::Exclusive, LockWait::Block)?;
    Ok(())
}

/// Reserves a relation's name; an error when it is taken.
///
/// # Errors
/// `42P07`.
pub fn reserve_relation(cx: &mut ExecContext<'_>, schema: u32, name: &str) -> Result<()> {
    reserve(cx, schema, name)?;
    if cx.catalog_tx.view().relation_in(schema, name).is_some() {
        base::bail!(DUPLICATE_TABLE, "relation \"{name}\" already exists");
    }
    Ok(())
}

/// `table_column_label`, cut so that it fits: the longer of the two names gives way first.
fn compose(table: &str, columns: &str, label: &str) -> String {
    let fixed = label.len() + 1 + usize::from(!columns.is_empty());
    let room = MAX - fixed;
    let (mut a, mut b) = (table.len(), columns.len());
    while a + b > room {
        if a > b { a -= 1 } else { b -= 1 }
    }
    let cut = |text: &str, mut end: usize| {
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text[..end].to_owned()
    };
    let (table, columns) = (cut(table, a), cut(columns, b));
    if columns.is_empty() {
        format!("{table}_{label}")
    } else {
        format!("{table}_{columns}_{label}")
    }
}

/// The first of `table_columns_label`, `…label1`, `…label2` that is free.
pub fn choose(
    table: &str,
    columns: &[&str],
    label: &str,
    is_taken: &dyn Fn(&str) -> bool,
) -> String {
    let columns = columns.join("_");
    let mut name = compose(table, &columns, label);
    let mut number = 1;
    while is_taken(&name) {
        name = compose(table, &columns, &format!("{label}{number}"));
        number += 1;
    }
    name
}

/// Names of an index's columns, those that come again with numbers.
pub fn distinct(names: &[String]) -> Vec<String> {
    let mut out: Vec<String> = Vec::with_capacity(names.len());
    for name in names {
        let mut number = 0;
        let mut one = name.clone();
        while out.contains(&one) {
            number += 1;
            one = format!("{name}{number}");
        }
        out.push(one);
    }
    out
}

/// A free name for an index of a table.
pub fn index_name(view: &Snapshot, table: &Table, columns: &[&str], label: &str) -> String {
    choose(&table.name, columns, label, &|name| {
        view.relation_in(table.schema, name).is_some()
            || table.constraints.iter().any(|c| c.name == name)
    })
}

/// A free name for a constraint of a table.
pub fn constraint_name(table: &Table, columns: &[&str], label: &str) -> String {
    choose(&table.name, columns, label, &|name| table.constraints.iter().any(|c| c.name == name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_of_table_columns_and_label() {
        assert_eq!(choose("t", &["a", "b"], "key", &|_| false), "t_a_b_key");
        assert_eq!(choose("t", &[], "pkey", &|n| n == "t_pkey"), "t_pkey1");
        let long = "x".repeat(60);
        let name = choose(&long, &["column_name"], "fkey", &|_| false);
        assert_eq!(name.len(), MAX);
        assert!(name.ends_with("_column_name_fkey"));
    }
}
