//! CREATE INDEX.

use base::Result;
use catalog::{Index, IndexColumn, Object, Table};
use sql::utility::Utility;
use txn::LockMode;

use super::{index_build, name, notice, open_table, refresh};
use crate::context::ExecContext;

/// Columns of a key, at most.
const MAX_KEYS: usize = 32;

/// CREATE INDEX.
pub fn run(utility: &Utility, cx: &mut ExecContext<'_>) -> Result<()> {
    let Utility::CreateIndex { name, table, columns, unique, if_not_exists, options } = utility
    else {
        return Err(base::Error::internal("not a CREATE INDEX"));
    };
    let table = open_table(cx, table, LockMode::Share)?;
    if columns.len() > MAX_KEYS {
        base::bail!(TOO_MANY_COLUMNS, "cannot use more than {MAX_KEYS} columns in an index");
    }
    let mut keys = Vec::new();
    for (column, descending, nulls_first) in columns {
        let (number, _) = table
            .column(column)
            .ok_or_else(|| base::err!(UNDEFINED_COLUMN, "column \"{column}\" does not exist"))?;
        keys.push(IndexColumn {
            column: number,
            descending: *descending,
            nulls_first: *nulls_first,
        });
    }
    let view = cx.catalog_tx.view();
    let names: Vec<&str> = columns.iter().map(|(c, _, _)| c.as_str()).collect();
    let name = match name {
        Some(name) => name.clone(),
        None => name::index_name(&view, &table, &names, "idx"),
    };
    name::reserve(cx, table.schema, &name)?;
    if cx.catalog_tx.view().relation_in(table.schema, &name).is_some() {
        let message = format!("relation \"{name}\" already exists");
        if !*if_not_exists {
            base::bail!(DUPLICATE_TABLE, "{message}");
        }
        notice(cx, base::sqlstate::DUPLICATE_TABLE, format!("{message}, skipping"));
        return Ok(());
    }
    let index = build(cx, &table, name, keys, *unique, false, options)?;
    let mut table = refresh(cx, table.oid)?;
    table.indexes.push(index.oid);
    cx.catalog_tx.put(cx.tx, Object::Table(Box::new(table)))
}

/// Makes an index with its files from the table's rows; the table doesn't list it yet.
///
/// # Errors
/// `23505`; I/O.
pub fn build(
    cx: &mut ExecContext<'_>,
    table: &Table,
    name: String,
    columns: Vec<IndexColumn>,
    unique: bool,
    primary: bool,
    options: &[(String, String)],
) -> Result<Index> {
    let oid = super::new_oid(cx, table.oid)?;
    let rel = super::create_table::new_files(cx, table.oid)?;
    let index = Index {
        oid,
        name,
        schema: table.schema,
        table: table.oid,
        rel: rel.0,
        columns,
        unique,
        primary,
        options: options.to_vec(),
        since: 0,
        hidden: false,
    };
    index_build::fill(cx, table, &index)?;
    cx.catalog_tx.put(cx.tx, Object::Index(index.clone()))?;
    Ok(index)
}
