//! Removing tables and indexes that nothing uses any more.

use std::collections::HashSet;

use base::{RelId, Result};
use catalog::{Object, TableKind};
use exec::context::ExecContext;
use txn::LockMode;

use crate::adopt::unlink;
use crate::forget::{drop_files, remove_comments};
use crate::item::Item;
use crate::lock;
use crate::refresh;

/// Takes a table or view out of the catalog, with its indexes and constraints. `gone`: what goes
/// with it.
///
/// # Errors
/// Those of the catalog.
pub fn remove_table(cx: &mut ExecContext<'_>, id: u32, gone: &HashSet<Item>) -> Result<()> {
    let table = refresh(cx, id)?;
    super::expect_checked(cx, &table, "DROP TABLE")?;
    // Tables that this one refers to forget it.
    let parents: std::collections::BTreeSet<u32> =
        table.foreign_keys().map(|(_, key)| key.table).collect();
    for parent in parents {
        if parent != id && !gone.contains(&Item::Relation(parent)) {
            lock(cx, parent, LockMode::AccessExclusive)?;
            forget_reference(cx, parent, id)?;
        }
    }
    unlink(cx, &table, |parent| gone.contains(&Item::Relation(parent)))?;
    // Also one that a DROP INDEX CONCURRENTLY which failed has taken off the table's list.
    let view = cx.catalog_tx.view();
    let indexes: Vec<u32> = view.all_indexes_of(id).collect();
    indexes.into_iter().try_for_each(|index| remove_index(cx, index))?;
    remove_comments(cx, id)?;
    crate::publication::forget(cx, id)?;
    if table.kind == TableKind::View {
        remove_comments(cx, catalog::system::rule_id(id))?;
    }
    let parts = table.constraints.iter().map(|c| c.oid);
    let parts = parts.chain(table.triggers.iter().map(|t| t.oid));
    let parts = parts.chain(table.policies.iter().map(|p| p.oid));
    for part in parts.chain(table.rules.iter().map(|r| r.oid)) {
        remove_comments(cx, part)?;
    }
    let view = cx.catalog_tx.view();
    if let Some(stats) = view.stats(id) {
        cx.catalog_tx.remove(cx.tx, Object::Stats(Box::new((**stats).clone())).oid())?;
    }
    drop_files(cx, table.rel)?;
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
        if let Some(table) = view.table(index.table).filter(|t| !t.is_partitioned()) {
            cx.engine.txn.serial.transfer(RelId(index.rel), RelId(table.rel));
        }
        if index.rel != 0 {
            cx.catalog_tx.drop_files_at_commit(RelId(index.rel));
        }
        remove_comments(cx, id)?;
        cx.catalog_tx.remove(cx.tx, id)?;
    }
    Ok(())
}
