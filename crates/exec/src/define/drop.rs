//! DROP TABLE, INDEX, SCHEMA.

use std::sync::Arc;

use base::{Error, RelId, Result, err};
use catalog::snapshot::Relation;
use catalog::{ConstraintKind, Object, Table};
use sql::utility::Name;
use txn::LockMode;

use super::{lock, notice, refresh};
use crate::context::ExecContext;

/// DROP.
pub fn run(
    kind: &str,
    names: &[Name],
    if_exists: bool,
    cascade: bool,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    match kind {
        "TABLE" => drop_tables(names, if_exists, cascade, cx),
        "INDEX" => names.iter().try_for_each(|n| drop_index(n, if_exists, cascade, cx)),
        "SCHEMA" => names.iter().try_for_each(|n| drop_schema(n, if_exists, cascade, cx)),
        other if if_exists => {
            // There are no objects of other kinds, so none of these exists.
            let word = other.to_lowercase();
            for name in names {
                let message = format!("{word} \"{}\" does not exist, skipping", name.name);
                notice(cx, base::sqlstate::SUCCESSFUL_COMPLETION, message);
            }
            Ok(())
        }
        other => {
            let Some(name) = names.first() else {
                return Ok(());
            };
            let word = other.to_lowercase();
            Err(err!(UNDEFINED_OBJECT, "{word} \"{}\" does not exist", name.name))
        }
    }
}

/// Finds and locks what a name stands for.
fn find(cx: &mut ExecContext<'_>, name: &Name) -> Result<Option<Relation>> {
    loop {
        let found = |cx: &mut ExecContext<'_>| {
            let view = cx.catalog_tx.view();
            view.relation(cx.search_path, name.schema.as_deref(), &name.name)
        };
        let (id, table) = match found(cx) {
            None => return Ok(None),
            Some(Relation::Table(table)) => (table.oid, table.oid),
            Some(Relation::Index(index)) => (index.oid, index.table),
        };
        lock(cx, table, LockMode::AccessExclusive)?;
        if id != table {
            lock(cx, id, LockMode::AccessExclusive)?;
        }
        let again = found(cx);
        let same = match &again {
            Some(Relation::Table(table)) => table.oid == id,
            Some(Relation::Index(index)) => index.oid == id,
            None => false,
        };
        if same {
            return Ok(again);
        }
    }
}

fn shown(name: &Name) -> String {
    match &name.schema {
        Some(schema) => format!("{schema}.{}", name.name),
        None => name.name.clone(),
    }
}

fn missing(cx: &mut ExecContext<'_>, word: &str, name: &Name, if_exists: bool) -> Result<()> {
    if let Some(schema) = &name.schema
        && cx.catalog_tx.view().schema_named(schema).is_none()
    {
        let message = format!("schema \"{schema}\" does not exist");
        if if_exists {
            notice(cx, base::sqlstate::SUCCESSFUL_COMPLETION, format!("{message}, skipping"));
            return Ok(());
        }
        return Err(Error::new(base::sqlstate::UNDEFINED_SCHEMA, message));
    }
    let message = format!("{word} \"{}\" does not exist", name.name);
    let code = if word == "index" {
        base::sqlstate::UNDEFINED_OBJECT
    } else {
        base::sqlstate::UNDEFINED_TABLE
    };
    if if_exists {
        notice(cx, base::sqlstate::SUCCESSFUL_COMPLETION, format!("{message}, skipping"));
        return Ok(());
    }
    Err(Error::new(code, message))
}

fn drop_tables(
    names: &[Name],
    if_exists: bool,
    cascade: bool,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    let mut tables: Vec<Arc<Table>> = Vec::new();
    for name in names {
        match find(cx, name)? {
            None if catalog::system::find(name.schema.as_deref(), &name.name).is_some() => {
                base::bail!(
                    INSUFFICIENT_PRIVILEGE,
                    "permission denied: \"{}\" is a system catalog",
                    name.name
                );
            }
            None => missing(cx, "table", name, if_exists)?,
            Some(Relation::Index(_)) => {
                return Err(err!(WRONG_OBJECT_TYPE, "\"{}\" is not a table", shown(name))
                    .hint("Use DROP INDEX to remove an index."));
            }
            Some(Relation::Table(table)) => {
                if !tables.iter().any(|t| t.oid == table.oid) {
                    tables.push(table);
                }
            }
        }
    }
    drop_all(&tables, cascade, cx)
}

/// Drops tables together with what belongs to them.
fn drop_all(tables: &[Arc<Table>], cascade: bool, cx: &mut ExecContext<'_>) -> Result<()> {
    let dropped: Vec<u32> = tables.iter().map(|t| t.oid).collect();
    for table in tables {
        for other in table.referenced_by.iter().filter(|o| !dropped.contains(o)) {
            drop_references(cx, *other, table, cascade)?;
        }
    }
    for table in tables {
        drop_table(cx, table.oid, &dropped)?;
    }
    Ok(())
}

/// The foreign keys of another table that refer to one which goes away: an error, or with CASCADE
/// they go too.
fn drop_references(
    cx: &mut ExecContext<'_>,
    other: u32,
    table: &Table,
    cascade: bool,
) -> Result<()> {
    lock(cx, other, LockMode::AccessExclusive)?;
    let Ok(mut child) = refresh(cx, other) else {
        return Ok(());
    };
    let refers = |c: &catalog::Constraint| matches!(&c.kind, ConstraintKind::ForeignKey(key) if key.table == table.oid);
    let names: Vec<String> =
        child.constraints.iter().filter(|c| refers(c)).map(|c| c.name.clone()).collect();
    if names.is_empty() {
        return Ok(());
    }
    if !cascade {
        let lines: Vec<String> = names
            .iter()
            .map(|n| {
                format!("constraint {n} on table {} depends on table {}", child.name, table.name)
            })
            .collect();
        return Err(err!(
            DEPENDENT_OBJECTS_STILL_EXIST,
            "cannot drop table {} because other objects depend on it",
            table.name
        )
        .detail(lines.join("\n"))
        .hint("Use DROP ... CASCADE to drop the dependent objects too."));
    }
    for name in names {
        let message = format!("drop cascades to constraint {name} on table {}", child.name);
        notice(cx, base::sqlstate::SUCCESSFUL_COMPLETION, message);
    }
    child.constraints.retain(|c| !refers(c));
    cx.catalog_tx.put(cx.tx, Object::Table(Box::new(child)))
}

fn drop_table(cx: &mut ExecContext<'_>, id: u32, together: &[u32]) -> Result<()> {
    let table = refresh(cx, id)?;
    // Tables that this one refers to forget it.
    let parents: std::collections::BTreeSet<u32> =
        table.foreign_keys().map(|(_, key)| key.table).collect();
    for parent in parents.into_iter().filter(|p| *p != id && !together.contains(p)) {
        lock(cx, parent, LockMode::AccessExclusive)?;
        forget_reference(cx, parent, id)?;
    }
    for index in &table.indexes {
        remove_index(cx, *index)?;
    }
    remove_comments(cx, id)?;
    let view = cx.catalog_tx.view();
    if let Some(stats) = view.stats(id) {
        cx.catalog_tx.remove(cx.tx, Object::Stats(Box::new((**stats).clone())).oid())?;
    }
    cx.tx.replaces_relation(RelId(table.rel))?;
    cx.catalog_tx.drop_files_at_commit(RelId(table.rel));
    cx.catalog_tx.remove(cx.tx, id)
}

/// A table that is referred to no longer by another.
///
/// # Errors
/// Those of the catalog.
pub fn forget_reference(cx: &mut ExecContext<'_>, parent: u32, child: u32) -> Result<()> {
    let mut parent = refresh(cx, parent)?;
    if parent.referenced_by.contains(&child) {
        parent.referenced_by.retain(|id| *id != child);
        cx.catalog_tx.put(cx.tx, Object::Table(Box::new(parent)))?;
    }
    Ok(())
}

/// Takes an index and its files out of the catalog (not out of its table's list).
///
/// # Errors
/// Those of the catalog.
pub fn remove_index(cx: &mut ExecContext<'_>, id: u32) -> Result<()> {
    let view = cx.catalog_tx.view();
    if let Some(index) = view.index(id) {
        if let Some(table) = view.table(index.table) {
            cx.engine.txn.serial.transfer(RelId(index.rel), RelId(table.rel));
        }
        cx.catalog_tx.drop_files_at_commit(RelId(index.rel));
        remove_comments(cx, id)?;
        cx.catalog_tx.remove(cx.tx, id)?;
    }
    Ok(())
}

fn remove_comments(cx: &mut ExecContext<'_>, object: u32) -> Result<()> {
    let view = cx.catalog_tx.view();
    let ids: Vec<u32> = view.comments().filter(|c| c.object == object).map(|c| c.oid).collect();
    ids.into_iter().try_for_each(|id| cx.catalog_tx.remove(cx.tx, id))
}

fn drop_index(name: &Name, if_exists: bool, cascade: bool, cx: &mut ExecContext<'_>) -> Result<()> {
    let index = match find(cx, name)? {
        None => return missing(cx, "index", name, if_exists),
        Some(Relation::Table(_)) => {
            return Err(err!(WRONG_OBJECT_TYPE, "\"{}\" is not an index", shown(name))
                .hint("Use DROP TABLE to remove a table."));
        }
        Some(Relation::Index(index)) => index,
    };
    let mut table = refresh(cx, index.table)?;
    let backed = table.constraints.iter().find(|c| match c.kind {
        ConstraintKind::PrimaryKey { index: i } | ConstraintKind::Unique { index: i } => {
            i == index.oid
        }
        _ => false,
    });
    if let Some(constraint) = backed {
        let (c, t) = (&constraint.name, &table.name);
        return Err(err!(
            DEPENDENT_OBJECTS_STILL_EXIST,
            "cannot drop index {} because constraint {c} on table {t} requires it",
            index.name
        )
        .hint(format!("You can drop constraint {c} on table {t} instead.")));
    }
    drop_keys_on(cx, &table, index.oid, cascade, &format!("index {}", index.name))?;
    table = refresh(cx, index.table)?;
    table.indexes.retain(|i| *i != index.oid);
    remove_index(cx, index.oid)?;
    cx.catalog_tx.put(cx.tx, Object::Table(Box::new(table)))
}

/// Foreign keys that rest on a unique index which goes away.
///
/// # Errors
/// `2BP01` without CASCADE.
pub fn drop_keys_on(
    cx: &mut ExecContext<'_>,
    table: &Table,
    index: u32,
    cascade: bool,
    what: &str,
) -> Result<()> {
    for other in table.referenced_by.clone() {
        lock(cx, other, LockMode::AccessExclusive)?;
        let mut child = refresh(cx, other)?;
        let rests = |c: &catalog::Constraint| matches!(&c.kind, ConstraintKind::ForeignKey(key) if key.index == index);
        let names: Vec<String> =
            child.constraints.iter().filter(|c| rests(c)).map(|c| c.name.clone()).collect();
        if names.is_empty() {
            continue;
        }
        if !cascade {
            let lines: Vec<String> = names
                .iter()
                .map(|n| format!("constraint {n} on table {} depends on {what}", child.name))
                .collect();
            return Err(err!(
                DEPENDENT_OBJECTS_STILL_EXIST,
                "cannot drop {what} because other objects depend on it"
            )
            .detail(lines.join("\n"))
            .hint("Use DROP ... CASCADE to drop the dependent objects too."));
        }
        for name in names {
            let message = format!("drop cascades to constraint {name} on table {}", child.name);
            notice(cx, base::sqlstate::SUCCESSFUL_COMPLETION, message);
        }
        child.constraints.retain(|c| !rests(c));
        let still = child.foreign_keys().any(|(_, key)| key.table == table.oid);
        cx.catalog_tx.put(cx.tx, Object::Table(Box::new(child)))?;
        if !still {
            forget_reference(cx, table.oid, other)?;
        }
    }
    Ok(())
}

fn drop_schema(
    name: &Name,
    if_exists: bool,
    cascade: bool,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    use catalog::object::ids;
    let view = cx.catalog_tx.view();
    let Some(schema) = view.schema_named(&name.name).cloned() else {
        let message = format!("schema \"{}\" does not exist", name.name);
        if if_exists {
            notice(cx, base::sqlstate::SUCCESSFUL_COMPLETION, format!("{message}, skipping"));
            return Ok(());
        }
        return Err(Error::new(base::sqlstate::UNDEFINED_SCHEMA, message));
    };
    if [ids::PG_CATALOG, ids::INFORMATION_SCHEMA, ids::PG_TOAST].contains(&schema.oid) {
        base::bail!(
            DEPENDENT_OBJECTS_STILL_EXIST,
            "cannot drop schema {} because it is required by the database system",
            schema.name
        );
    }
    super::name::reserve(cx, 0, &name.name)?;
    let tables: Vec<Arc<Table>> =
        view.tables().filter(|t| t.schema == schema.oid).cloned().collect();
    if !tables.is_empty() && !cascade {
        let lines: Vec<String> = tables
            .iter()
            .map(|t| format!("table {}.{} depends on schema {}", schema.name, t.name, schema.name))
            .collect();
        return Err(err!(
            DEPENDENT_OBJECTS_STILL_EXIST,
            "cannot drop schema {} because other objects depend on it",
            schema.name
        )
        .detail(lines.join("\n"))
        .hint("Use DROP ... CASCADE to drop the dependent objects too."));
    }
    for table in &tables {
        lock(cx, table.oid, LockMode::AccessExclusive)?;
        let message = format!("drop cascades to table {}.{}", schema.name, table.name);
        notice(cx, base::sqlstate::SUCCESSFUL_COMPLETION, message);
    }
    drop_all(&tables, true, cx)?;
    remove_comments(cx, schema.oid)?;
    cx.catalog_tx.remove(cx.tx, schema.oid)
}
