//! CREATE TABLE.

use base::{RelId, Result, err};
use catalog::{AclKind, Column, Object, Table, TableKind};
use exec::context::ExecContext;
use sql::utility::{ColumnDef, Persistence, Utility};

use super::{constraint, name, notice};
use crate::column::{check_column_name, check_count, column, new_files};
use crate::defined::method;

fn check_columns(columns: &[ColumnDef]) -> Result<()> {
    check_count(columns.len())?;
    let mut seen = std::collections::HashSet::new();
    for column in columns {
        check_column_name(&column.name)?;
        if !seen.insert(&column.name) {
            base::bail!(DUPLICATE_COLUMN, "column \"{}\" specified more than once", column.name);
        }
    }
    Ok(())
}

/// Makes an empty table's files and its object. None: it exists already, and that is fine.
///
/// # Errors
/// `42P07`, `42701`, `3F000`.
pub fn create(
    cx: &mut ExecContext<'_>,
    table_name: &sql::utility::Name,
    columns: Vec<Column>,
    options: &[(String, String)],
    persistence: Persistence,
    if_not_exists: bool,
) -> Result<Option<Table>> {
    let how = (options, persistence, if_not_exists);
    let made = create_as(cx, table_name, columns, how, None, TableKind::Table)?;
    Ok(made.map(|(table, _)| table))
}

/// As [`create`]; partitioned and foreign tables have no files. Second: how many partitions it gets at once.
fn create_as(
    cx: &mut ExecContext<'_>,
    table_name: &sql::utility::Name,
    columns: Vec<Column>,
    (options, persistence, if_not_exists): (&[(String, String)], Persistence, bool),
    by: Option<catalog::Partitioning>,
    kind: TableKind,
) -> Result<Option<(Table, u32)>> {
    let mut options = options.to_vec();
    let parts = exec::interval::take_partitions(&mut options, by.as_ref())?;
    let schema = name::creation_schema(cx, table_name, persistence)?;
    name::reserve(cx, schema, &table_name.name)?;
    if cx.catalog_tx.view().relation_in(schema, &table_name.name).is_some() {
        let message = format!("relation \"{}\" already exists", table_name.name);
        if !if_not_exists {
            return Err(err!(DUPLICATE_TABLE, "{message}"));
        }
        notice(cx, base::sqlstate::DUPLICATE_TABLE, format!("{message}, skipping"));
        return Ok(None);
    }
    super::user_types::check_row_type(cx, schema, &table_name.name)?;
    let oid = super::new_oid(cx, schema)?;
    let row_type = super::user_types::row_type(cx, schema)?;
    super::lock(cx, oid, txn::LockMode::AccessExclusive)?;
    let rel = match by {
        None if kind != TableKind::Foreign => new_files(cx, oid)?,
        _ => RelId(0),
    };
    let table = Table {
        partitioning: by.map(Box::new),
        oid,
        name: table_name.name.clone(),
        schema,
        owner: cx.role,
        kind,
        rel: rel.0,
        columns,
        options,
        unlogged: persistence == Persistence::Unlogged,
        on_commit: match persistence {
            Persistence::Temporary(on_commit) => on_commit,
            _ => Default::default(),
        },
        row_type,
        ..Table::default()
    };
    exec::interval::check(&table, cx)?;
    cx.catalog_tx.put(cx.tx, Object::Table(Box::new(table.clone())))?;
    exec::rights::begin(cx, AclKind::Table, oid, cx.role, schema)?;
    Ok(Some((table, parts)))
}

/// CREATE TABLE.
pub fn run(utility: &Utility, cx: &mut ExecContext<'_>) -> Result<()> {
    let Utility::CreateTable {
        name,
        columns,
        constraints,
        indexes,
        if_not_exists,
        options,
        persistence,
        inherits,
        partition,
        of_type,
        foreign,
        method,
    } = utility
    else {
        return Err(base::Error::internal("not a CREATE TABLE"));
    };
    for (message, detail) in &inherits.notices {
        let merged = base::Error::new(base::sqlstate::SUCCESSFUL_COMPLETION, message.clone());
        let merged = detail.iter().fold(merged, |e, detail| e.detail(*detail));
        cx.hooks.notice("NOTICE", merged);
    }
    if let Some(failure) = &inherits.failure {
        return Err(failure.clone());
    }
    check_columns(columns)?;
    if method.is_some() && partition.by.is_some() {
        base::bail!(
            FEATURE_NOT_SUPPORTED,
            "specifying a table access method is not supported on a partitioned table"
        );
    }
    let stored = match (&partition.by, foreign) {
        (None, None) => method::of_table(&cx.catalog_tx.view(), method.as_deref(), cx)?,
        _ => 0,
    };
    let made = columns.iter().map(column).collect();
    let how = (options.as_slice(), *persistence, *if_not_exists);
    let kind = if foreign.is_some() { TableKind::Foreign } else { TableKind::Table };
    let made = create_as(cx, name, made, how, partition.by.clone(), kind)?;
    let Some((mut table, parts)) = made else {
        return Ok(());
    };
    if let Some(clause) = foreign {
        super::foreign::table::begin(clause, columns, &mut table, cx)?;
        cx.catalog_tx.put(cx.tx, Object::Table(Box::new(table.clone())))?;
    }
    if *of_type != 0 || stored != 0 {
        (table.of_type, table.method) = (*of_type, stored);
        cx.catalog_tx.put(cx.tx, Object::Table(Box::new(table.clone())))?;
    }
    if columns.iter().any(|c| c.sequence.is_some()) {
        for (n, def) in columns.iter().enumerate() {
            if let Some(def) = &def.sequence {
                super::sequence::add_to_column(cx, &mut table, n as u16 + 1, def)?;
            }
        }
        cx.catalog_tx.put(cx.tx, Object::Table(Box::new(table.clone())))?;
    }
    if let (Some(bound), Some(parent)) = (&partition.bound, inherits.parents.first()) {
        super::partition::begin(cx, table.oid, *parent, bound)?;
    } else if !inherits.parents.is_empty() {
        super::inherit::link(cx, table.oid, &inherits.parents)?;
    }
    // Keys that foreign keys refer to come first.
    let (foreign, own): (Vec<_>, Vec<_>) = constraints
        .iter()
        .partition(|c| matches!(c.kind, sql::utility::ConstraintDefKind::ForeignKey { .. }));
    for def in own.into_iter().chain(foreign) {
        constraint::add(cx, table.oid, def, true)?;
    }
    indexes.iter().try_for_each(|index| super::create_index::copy(cx, table.oid, index))?;
    if partition.bound.is_some() {
        super::partition::take_over(cx, table.oid)?;
    }
    exec::interval::make_hash(table.oid, parts, cx)
}
