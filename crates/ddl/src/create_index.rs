//! CREATE INDEX.

use base::Result;
use catalog::{Index, IndexColumn, KeyExpression, Object, Table};
use exec::context::ExecContext;
use exec::rights;
use sql::utility::{IndexKey, Utility};
use txn::LockMode;

use super::{index_build, name, notice, open_owned, refresh};
use crate::column::new_files;

/// Columns of a key, at most.
const MAX_KEYS: usize = 32;

/// CREATE INDEX.
pub fn run(utility: &Utility, cx: &mut ExecContext<'_>) -> Result<()> {
    let Some((table, index)) = definition(utility, LockMode::Share, cx)? else { return Ok(()) };
    let only = matches!(utility, Utility::CreateIndex { table, .. } if table.only);
    let index = build(cx, &table, index)?;
    let id = index.oid;
    add_to_table(cx, index)?;
    match only {
        true => super::partition::await_parts(cx, id),
        false => super::partition::spread_index(cx, id),
    }
}

/// CREATE INDEX CONCURRENTLY, its first transaction: the index is there, empty, to be kept up to date and
/// not to be read. Returns its oid; None when there is nothing more to do.
///
/// # Errors
/// As [`run`].
pub fn begin_concurrently(utility: &Utility, cx: &mut ExecContext<'_>) -> Result<Option<u32>> {
    let mode = LockMode::ShareUpdateExclusive;
    let Some((table, index)) = definition(utility, mode, cx)? else { return Ok(None) };
    if table.is_temporary() {
        // Nobody else works with it.
        let index = build(cx, &table, index)?;
        return add_to_table(cx, index).map(|()| None);
    }
    make_empty(cx, &table, index).map(Some)
}

/// Makes an index that is kept up to date from now on, but not valid. Returns its oid.
///
/// # Errors
/// I/O.
pub fn make_empty(cx: &mut ExecContext<'_>, table: &Table, mut index: Index) -> Result<u32> {
    index.oid = super::new_oid(cx, table.oid)?;
    let rel = new_files(cx, table.oid)?;
    index.rel = rel.0;
    index.schema = table.schema;
    index.table = table.oid;
    index.invalid = true;
    access::AnyIndex::create(index.method, &cx.engine.storage, rel)?;
    let oid = index.oid;
    add_to_table(cx, index)?;
    Ok(oid)
}

/// Notes an index with its table, to which others may add theirs at the same time.
fn add_to_table(cx: &mut ExecContext<'_>, index: Index) -> Result<()> {
    cx.catalog_tx.hold(cx.tx, index.table)?;
    let mut table = refresh(cx, index.table)?;
    table.indexes.push(index.oid);
    cx.catalog_tx.put(cx.tx, Object::Index(index))?;
    cx.catalog_tx.put(cx.tx, Object::Table(Box::new(table)))
}

/// The index that a CREATE INDEX asks for, and its table, locked; nothing is made yet. None: there is one
/// with its name, and that is fine.
fn definition(
    utility: &Utility,
    mode: LockMode,
    cx: &mut ExecContext<'_>,
) -> Result<Option<(Table, Index)>> {
    let Utility::CreateIndex {
        name,
        table,
        columns,
        include,
        predicate,
        nulls_equal,
        concurrently,
        unique,
        if_not_exists,
        options,
        method,
        named_method,
    } = utility
    else {
        return Err(base::Error::internal("not a CREATE INDEX"));
    };
    let table = open_owned(cx, table, mode)?;
    super::expect_checked(cx, &table, "CREATE INDEX")?;
    if *concurrently && table.is_partitioned() {
        base::bail!(
            FEATURE_NOT_SUPPORTED,
            "cannot create index on partitioned table \"{}\" concurrently",
            table.name
        );
    }
    rights::require_creation(cx, cx.role, table.schema)?;
    if matches!(table.kind, catalog::TableKind::View | catalog::TableKind::Foreign) {
        return Err(base::err!(
            WRONG_OBJECT_TYPE,
            "cannot create index on relation \"{}\"",
            table.name
        )
        .detail(format!(
            "This operation is not supported for {}s.",
            exec::relation_lock::kind_word(&table)
        )));
    }
    if columns.len() + include.len() > MAX_KEYS {
        base::bail!(TOO_MANY_COLUMNS, "cannot use more than {MAX_KEYS} columns in an index");
    }
    let keys = {
        let view = cx.catalog_tx.view();
        columns.iter().map(|key| index_column(&view, &table, key)).collect::<Result<Vec<_>>>()?
    };
    let view = cx.catalog_tx.view();
    let names = columns.iter().map(|c| &c.name).chain(include).cloned().collect::<Vec<_>>();
    let names = name::distinct(&names);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
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
        return Ok(None);
    }
    let index = Index {
        name,
        columns: keys,
        include: super::constraint::include_numbers(&table, include)?,
        predicate: predicate.as_ref().map(|p| p.0.clone()),
        nulls_equal: *nulls_equal,
        unique: *unique,
        options: options.clone(),
        method: *method,
        named_method: *named_method,
        ..Index::default()
    };
    Ok(Some((Table::clone(&table), index)))
}

/// An index as another table has it (LIKE … INCLUDING INDEXES), under a name of its own.
///
/// # Errors
/// As [`build`].
pub fn copy(cx: &mut ExecContext<'_>, table: u32, index: &Index) -> Result<()> {
    let mut table = refresh(cx, table)?;
    let view = cx.catalog_tx.view();
    let named = |key: &IndexColumn| match &key.expression {
        Some(e) => e.name.clone(),
        None => table.columns[usize::from(key.column) - 1].name.clone(),
    };
    let names: Vec<String> = index.columns.iter().map(named).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let name = name::index_name(&view, &table, &names, "idx");
    name::reserve_relation(cx, table.schema, &name)?;
    let index = build(cx, &table, Index { name, ..index.clone() })?;
    table.indexes.push(index.oid);
    cx.catalog_tx.put(cx.tx, Object::Table(Box::new(table)))
}

/// A key as the catalog has it.
///
/// # Errors
/// `42703`.
pub fn index_column(
    view: &catalog::Snapshot,
    table: &Table,
    key: &IndexKey,
) -> Result<IndexColumn> {
    let (descending, nulls_first) = (key.descending, key.nulls_first);
    if let Some((sql, ty, columns, collation)) = &key.expression {
        let expression = KeyExpression {
            sql: sql.clone(),
            name: key.name.clone(),
            ty: ty.0,
            columns: columns.clone(),
            collation: *collation,
        };
        let expression = Some(Box::new(expression));
        let collation = view.key_collation(key.collation, ty.0);
        let class = key.class;
        let class_options = key.class_options.clone();
        return Ok(IndexColumn {
            column: 0,
            descending,
            nulls_first,
            expression,
            collation,
            class,
            class_options,
            statistics: None,
        });
    }
    let (column, of_table) = table
        .column(&key.name)
        .ok_or_else(|| base::err!(UNDEFINED_COLUMN, "column \"{}\" does not exist", key.name))?;
    let collation = view.key_collation(key.collation, of_table.ty);
    let (class, class_options) = (key.class, key.class_options.clone());
    Ok(IndexColumn {
        column,
        descending,
        nulls_first,
        expression: None,
        collation,
        class,
        class_options,
        statistics: None,
    })
}

/// Makes an index with its files from the table's rows; the table doesn't list it yet. `index` says
/// all but where it is.
///
/// # Errors
/// `23505`; I/O.
pub fn build(cx: &mut ExecContext<'_>, table: &Table, mut index: Index) -> Result<Index> {
    index.oid = super::new_oid(cx, table.oid)?;
    if !table.is_partitioned() {
        index.rel = new_files(cx, table.oid)?.0;
    }
    index.schema = table.schema;
    index.table = table.oid;
    if !index.is_plain() {
        let all: Vec<&str> = index.expressions().collect();
        index.uses = exec::spi::with_context(cx, |cx| sql::print::objects_in(cx, table, all))?;
    }
    if index.unique {
        super::partition::check_unique(
            table,
            &index.columns,
            if index.primary { "PRIMARY KEY" } else { "UNIQUE" },
        )?;
    }
    if !table.is_partitioned() {
        index_build::fill(cx, table, &index)?;
    }
    cx.catalog_tx.put(cx.tx, Object::Index(index.clone()))?;
    Ok(index)
}
