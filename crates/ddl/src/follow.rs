//! Stored texts that follow when an object gets another name or place.

mod expressions;

use base::Result;
use catalog::{Column, Object, Snapshot, Table};
use exec::context::ExecContext;
use exec::spi::with_context;
use txn::LockMode;

use crate::function_body::{renamed_bodies, store_bodies, with_body_over};
use crate::lock;
use crate::view::users;

/// Before a column is added: views in which its name would get into a USING, or its place among the columns of a
/// join, say which columns they mean.
///
/// # Errors
/// Those of the catalog.
pub fn make_room(cx: &mut ExecContext<'_>, table: &Table, column: &Column) -> Result<()> {
    let mut wider = table.clone();
    wider.columns.push(column.clone());
    keep_meaning(cx, wider, |query| query.sql.contains(" JOIN "))
}

/// Before a column is gone, from 1, which `table` has as dropped: lists of names for the table's columns lose one.
///
/// # Errors
/// Those of the catalog.
pub fn close_up(cx: &mut ExecContext<'_>, table: &Table, column: u16) -> Result<()> {
    let used = (table.oid, column);
    keep_meaning(cx, table.clone(), |query| !query.uses.contains(&used))
}

/// Gives views over a table whose columns change such texts that they mean the same; those that `may` differ.
fn keep_meaning(
    cx: &mut ExecContext<'_>,
    changed: Table,
    may: impl Fn(&catalog::ViewQuery) -> bool,
) -> Result<()> {
    let old = cx.catalog_tx.view();
    let affected = users(&old, &[changed.oid]);
    if affected.is_empty() {
        return Ok(());
    }
    let mut naming = Snapshot::clone(&old);
    naming.put(Object::Table(Box::new(changed)));
    for view in affected {
        let Some(known) = old.table(view) else { continue };
        if !known.query.as_ref().is_some_and(|query| may(query)) {
            continue;
        }
        let sql = with_context(cx, |context| sql::view::renamed(context, known, &naming))?;
        let before = with_context(cx, |context| sql::view::renamed(context, known, &old))?;
        if sql == before {
            continue;
        }
        lock(cx, view, LockMode::AccessExclusive)?;
        let mut known = super::refresh(cx, view)?;
        if let Some(query) = &mut known.query {
            query.sql = sql;
        }
        cx.catalog_tx.put(cx.tx, Object::Table(Box::new(known)))?;
    }
    Ok(())
}

/// After a change of names: views, policies, rules and standard bodies that use one of the objects get their text under the new names.
/// `changed` is the object with the new name.
///
/// # Errors
/// Those of the catalog.
pub fn follow(cx: &mut ExecContext<'_>, ids: &[u32], changed: Object) -> Result<()> {
    let old = cx.catalog_tx.view();
    let affected = users(&old, ids);
    let bodies = with_body_over(&old, ids);
    let others = expressions::renamed(cx, ids, &changed)?;
    if affected.is_empty()
        && bodies.is_empty()
        && old.tables().all(|t| t.policies.is_empty() && t.rules.is_empty())
    {
        cx.catalog_tx.put(cx.tx, changed)?;
        return others.into_iter().try_for_each(|object| cx.catalog_tx.put(cx.tx, object));
    }
    let mut naming = Snapshot::clone(&old);
    naming.put(changed.clone());
    let mut texts = Vec::with_capacity(affected.len());
    for view in affected {
        lock(cx, view, LockMode::AccessExclusive)?;
        let Some(table) = old.table(view) else { continue };
        texts
            .push((view, with_context(cx, |context| sql::view::renamed(context, table, &naming))?));
    }
    let policies = super::policy::renamed(cx, ids, &naming)?;
    let rules = super::rule::renamed(cx, ids, &naming)?;
    let bodies = renamed_bodies(cx, bodies, &naming)?;
    cx.catalog_tx.put(cx.tx, changed)?;
    others.into_iter().try_for_each(|object| cx.catalog_tx.put(cx.tx, object))?;
    store_bodies(cx, bodies)?;
    super::policy::store_renamed(cx, policies)?;
    super::rule::store_renamed(cx, rules)?;
    for (view, sql) in texts {
        let mut table = super::refresh(cx, view)?;
        if let Some(query) = &mut table.query {
            query.sql = sql;
        }
        cx.catalog_tx.put(cx.tx, Object::Table(Box::new(table)))?;
    }
    Ok(())
}
