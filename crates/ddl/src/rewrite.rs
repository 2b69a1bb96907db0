//! Writing a table anew: all live rows go through a function into new files, then every index is
//! built again. The caller holds the table exclusively.

use std::sync::Arc;

use base::{Oid, RelId, Result};
use catalog::{Index, Object, Table};
use exec::context::ExecContext;
use exec::spi::{query_as, query_of};
use exec::table::{self, TableHandle};
use types::row;

use super::index_build;
use crate::column::new_files;

const PART: usize = 1000;

/// Rewrites the table: `select` gives, for each of its rows, the new row in `table`'s order (dropped
/// columns as NULL); as a role's own query, or as part of a statement that has been checked. `table` is the definition to be, whose files are replaced.
///
/// # Errors
/// The query's; `23505`; I/O.
pub fn rewrite(
    cx: &mut ExecContext<'_>,
    table: Table,
    select: &str,
    role: Option<u32>,
) -> Result<u64> {
    rewrite_with(cx, table, select, role, Vec::new())
}

/// As [`rewrite`], and how many rows there are; `indexes` are those whose definitions change with the table's. Until the query is done
/// they are what they were: it may read them.
///
/// # Errors
/// As there.
pub fn rewrite_with(
    cx: &mut ExecContext<'_>,
    mut table: Table,
    select: &str,
    role: Option<u32>,
    indexes: Vec<Index>,
) -> Result<u64> {
    if table.is_partitioned() {
        // Its partitions have the rows.
        for index in indexes {
            cx.catalog_tx.put(cx.tx, Object::Index(index))?;
        }
        cx.catalog_tx.put(cx.tx, Object::Table(Box::new(table)))?;
        return Ok(0);
    }
    let old = RelId(table.rel);
    table.rel = new_files(cx, table.oid)?.0;
    for column in &mut table.columns {
        column.missing = None;
    }
    let shared = Arc::new(table.clone());
    let handle = TableHandle::open(cx.engine, &shared, cx.format)?;
    let tx = cx.tx;
    let mut part: Vec<Vec<u8>> = Vec::with_capacity(PART);
    let mut rows = 0;
    let mut each = |values: &[types::Datum]| {
        rows += 1;
        let mut bytes = Vec::new();
        let fitted = values.iter().zip(&shared.columns).map(|(value, column)| {
            if column.typmod < 0 || value.is_null() {
                return Ok(value.clone());
            }
            types::io::apply_typmod(Oid(column.ty), column.typmod, value.clone(), false)
        });
        let fitted = fitted.collect::<Result<Vec<_>>>()?;
        row::encode(&handle.columns, &fitted, &mut bytes)?;
        part.push(bytes);
        if part.len() == PART {
            flush(&handle, tx, &mut part)?;
        }
        sched::check_interrupts()
    };
    match role {
        Some(role) => query_as(role, select, cx, &mut each)?,
        None => query_of(table.owner, select, cx, &mut each)?,
    }
    flush(&handle, tx, &mut part)?;
    let serial = &cx.engine.txn.serial;
    serial.transfer(old, RelId(table.rel));
    cx.catalog_tx.drop_files_at_commit(old);
    for index in indexes {
        cx.catalog_tx.put(cx.tx, Object::Index(index))?;
    }
    let view = cx.catalog_tx.view();
    let indexes = view.indexes_of(&table);
    cx.catalog_tx.put(cx.tx, Object::Table(Box::new(table.clone())))?;
    for index in &indexes {
        match index.invalid {
            true => empty_index(cx, &table, index)?,
            false => rebuild_index(cx, &table, index)?,
        }
    }
    Ok(rows)
}

/// Gives an index that is not valid new files, with no entries: it is kept up to date from now on, and not read.
fn empty_index(cx: &mut ExecContext<'_>, table: &Table, index: &Index) -> Result<()> {
    let old = RelId(index.rel);
    cx.engine.txn.serial.transfer(old, RelId(table.rel));
    cx.catalog_tx.drop_files_at_commit(old);
    let rel = new_files(cx, table.oid)?;
    access::AnyIndex::create(index.method, &cx.engine.storage, rel)?;
    cx.catalog_tx.put(cx.tx, Object::Index(Index { rel: rel.0, ..index.clone() }))
}

/// Builds an index again, in new files.
///
/// # Errors
/// `23505`; I/O.
pub fn rebuild_index(cx: &mut ExecContext<'_>, table: &Table, index: &Index) -> Result<()> {
    if table.is_partitioned() {
        return Ok(());
    }
    let old = RelId(index.rel);
    cx.engine.txn.serial.transfer(old, RelId(table.rel));
    cx.catalog_tx.drop_files_at_commit(old);
    let rel = new_files(cx, table.oid)?.0;
    let index = Index { rel, invalid: false, ..index.clone() };
    index_build::fill(cx, table, &index)?;
    if !table.indexes.contains(&index.oid) {
        // DROP INDEX CONCURRENTLY has begun, and failed.
        let mut table = super::refresh(cx, table.oid)?;
        table.indexes.push(index.oid);
        cx.catalog_tx.put(cx.tx, Object::Table(Box::new(table)))?;
    }
    cx.catalog_tx.put(cx.tx, Object::Index(index))
}

fn flush(handle: &TableHandle, tx: &txn::Transaction, part: &mut Vec<Vec<u8>>) -> Result<()> {
    if part.is_empty() {
        return Ok(());
    }
    let rows: Vec<&[u8]> = part.iter().map(Vec::as_slice).collect();
    let mut hint = table::insert_hint(handle.heap.rel);
    handle.heap.insert_many(tx, &rows, &mut hint)?;
    table::keep_insert_hint(handle.heap.rel, hint);
    part.clear();
    Ok(())
}
