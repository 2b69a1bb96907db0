//! CREATE TABLE AS.

use std::sync::Arc;

use base::{Error, Result};
use catalog::{Column, Object, Table, TableKind, ViewQuery};
use exec::context::{ExecContext, Outcome};
use exec::execution::query_plan;
use exec::modify::Writer;
use exec::rows;
use exec::run::{ExecState, Run};
use sql::Prepared;
use sql::utility::{Name, Utility};
use types::{Batch, Datum, oids};

use super::create_table;
use crate::column::check_column_name;
use crate::defined::method;

/// Names and types of the new table's columns.
fn columns(query: &Prepared, names: &[String]) -> Result<Vec<Column>> {
    if names.len() > query.columns.len() {
        base::bail!(SYNTAX_ERROR, "too many column names were specified");
    }
    let mut columns: Vec<Column> = Vec::new();
    for (n, output) in query.columns.iter().enumerate() {
        let name = names.get(n).unwrap_or(&output.name).clone();
        check_column_name(&name)?;
        if columns.iter().any(|c| c.name == name) {
            base::bail!(DUPLICATE_COLUMN, "column \"{name}\" specified more than once");
        }
        let ty = if output.ty == oids::UNKNOWN { oids::TEXT } else { output.ty };
        if output.collation == sql::plan::NO_COLLATION {
            return Err(base::err!(
                INDETERMINATE_COLLATION,
                "no collation was derived for column \"{name}\" with collatable type {}",
                types::io::format_type(ty, -1)
            )
            .hint("Use the COLLATE clause to set the collation explicitly."));
        }
        let column = Column::new(&name, ty.0, output.typmod);
        columns.push(Column { collation: output.collation, ..column });
    }
    Ok(columns)
}

/// REFRESH MATERIALIZED VIEW: the query's rows in new files. CONCURRENTLY: others read the old ones while these are made, and
/// wait from then on until the transaction ends.
///
/// # Errors
/// `42809` for other relations; `55000` when CONCURRENTLY can't be; the query's.
pub fn refresh(
    cx: &mut ExecContext<'_>,
    name: &Name,
    concurrently: bool,
    no_data: bool,
) -> Result<()> {
    use txn::LockMode::{AccessExclusive, Exclusive};
    let mode = if concurrently { Exclusive } else { AccessExclusive };
    let table = super::open_owned(cx, name, mode)?;
    let Some(query) = table.query.as_ref().filter(|_| table.kind == TableKind::Materialized) else {
        base::bail!(FEATURE_NOT_SUPPORTED, "\"{}\" is not a materialized view", table.name);
    };
    if concurrently {
        check_concurrently(cx, &table, query, no_data)?;
    }
    let sql = query.sql.clone();
    let mut table = Table::clone(&table);
    if let Some(query) = &mut table.query {
        query.unpopulated = no_data;
    }
    let owner = table.owner;
    if no_data {
        let sql = format!("SELECT * FROM ({sql}) q LIMIT 0");
        return super::rewrite(cx, table, &sql, Some(owner)).map(drop);
    }
    let id = table.oid;
    super::rewrite(cx, table, &sql, Some(owner))?;
    // The old files go with the end of the transaction.
    super::lock(cx, id, AccessExclusive)
}

fn check_concurrently(
    cx: &mut ExecContext<'_>,
    table: &Table,
    query: &ViewQuery,
    no_data: bool,
) -> Result<()> {
    if no_data {
        base::bail!(
            SYNTAX_ERROR,
            "REFRESH options CONCURRENTLY and WITH NO DATA cannot be used together"
        );
    }
    if query.unpopulated {
        base::bail!(
            FEATURE_NOT_SUPPORTED,
            "CONCURRENTLY cannot be used when the materialized view is not populated"
        );
    }
    let view = cx.catalog_tx.view();
    let any = view.indexes_of(table).iter().any(|i| i.unique && i.is_plain());
    if any {
        return Ok(());
    }
    Err(base::err!(
        OBJECT_NOT_IN_PREREQUISITE_STATE,
        "cannot refresh materialized view \"{}\" concurrently",
        exec::spi::qualified(&view, table)
    )
    .hint(
        "Create a unique index with no WHERE clause on one or more columns of the materialized view.",
    ))
}

/// CREATE TABLE AS.
pub fn run(utility: &Utility, cx: &mut ExecContext<'_>) -> Result<Outcome> {
    let Utility::CreateTableAs {
        name,
        columns: names,
        query,
        no_data,
        if_not_exists,
        view,
        persistence,
        method,
        options,
    } = utility
    else {
        return Err(Error::internal("not a CREATE TABLE AS"));
    };
    let made = columns(query, names)?;
    let name = &name.unplaced();
    let stored = method::of_table(&cx.catalog_tx.view(), method.as_deref(), cx)?;
    let tag = if view.is_some() { "CREATE MATERIALIZED VIEW" } else { "CREATE TABLE AS" };
    let Some(table) = create_table::create(cx, name, made, options, *persistence, *if_not_exists)?
    else {
        return Ok(Outcome { rows: 0, tag: Some(tag) });
    };
    if view.is_some() || stored != 0 {
        let mut made = Table { method: stored, ..table.clone() };
        if let Some(view) = view {
            made.kind = TableKind::Materialized;
            made.query = Some(Box::new(ViewQuery { unpopulated: *no_data, ..(**view).clone() }));
        }
        cx.catalog_tx.put(cx.tx, Object::Table(Box::new(made)))?;
    }
    if *no_data {
        return Ok(Outcome { rows: 0, tag: Some(tag) });
    }
    let table = Arc::new(table);
    let rows = match view {
        Some(_) => exec::security::restricted(cx, table.owner, |cx| fill(cx, &table, query))?,
        None => fill(cx, &table, query)?,
    };
    Ok(Outcome { rows, tag: Some("SELECT") })
}

/// Puts the query's rows in; how many there are.
fn fill(cx: &mut ExecContext<'_>, table: &Arc<Table>, query: &Prepared) -> Result<u64> {
    let mut writer = Writer::open(table, &[], cx)?;
    let plan = query_plan(query)?;
    let types: Vec<base::Oid> = query.columns.iter().map(|c| c.ty).collect();
    let mut state = ExecState::new(query);
    let (params, snapshot) = (cx.params, cx.snapshot);
    let mut run = Run { cx, prepared: query, params, snapshot, state: &mut state };
    let mut root = exec::ops::operator::build(plan, &mut run)?;
    let mut count = 0;
    while let Some(batch) = root.next(plan, &mut run)? {
        sched::check_interrupts()?;
        count += batch.rows as u64;
        insert(&mut writer, &batch, &types, &mut run)?;
    }
    Ok(count)
}

fn insert(
    writer: &mut Writer,
    batch: &Batch,
    types: &[base::Oid],
    run: &mut Run<'_, '_>,
) -> Result<()> {
    let all: Vec<Vec<Datum>> = (0..batch.rows).map(|n| rows::get(batch, n, types)).collect();
    writer.insert_many(&all, run)
}
