//! CREATE TABLE AS.

use std::sync::Arc;

use base::{Error, Result};
use catalog::Column;
use sql::Prepared;
use sql::utility::Utility;
use types::{Batch, Datum, oids};

use super::create_table;
use crate::context::{ExecContext, Outcome};
use crate::modify::Writer;
use crate::rows;
use crate::run::{Run, State, query_plan};

/// Names and types of the new table's columns.
fn columns(query: &Prepared, names: &[String]) -> Result<Vec<Column>> {
    if names.len() > query.columns.len() {
        base::bail!(SYNTAX_ERROR, "too many column names were specified");
    }
    let mut columns: Vec<Column> = Vec::new();
    for (n, output) in query.columns.iter().enumerate() {
        let name = names.get(n).unwrap_or(&output.name).clone();
        create_table::check_column_name(&name)?;
        if columns.iter().any(|c| c.name == name) {
            base::bail!(DUPLICATE_COLUMN, "column \"{name}\" specified more than once");
        }
        let ty = if output.ty == oids::UNKNOWN { oids::TEXT } else { output.ty };
        columns.push(Column::new(&name, ty.0, output.typmod));
    }
    Ok(columns)
}

/// CREATE TABLE AS.
pub fn run(utility: &Utility, cx: &mut ExecContext<'_>) -> Result<Outcome> {
    let Utility::CreateTableAs { name, columns: names, query, no_data, if_not_exists, persistence } =
        utility
    else {
        return Err(Error::internal("not a CREATE TABLE AS"));
    };
    let made = columns(query, names)?;
    let Some(table) = create_table::create(cx, name, made, &[], *persistence, *if_not_exists)?
    else {
        return Ok(Outcome::default());
    };
    if *no_data {
        return Ok(Outcome { rows: 0, tag: Some("CREATE TABLE AS") });
    }
    let mut writer = Writer::open(&Arc::new(table), &[], cx)?;
    let plan = query_plan(query)?;
    let types: Vec<base::Oid> = query.columns.iter().map(|c| c.ty).collect();
    let mut state = State::new(query);
    let (params, snapshot) = (cx.params, cx.snapshot);
    let mut run = Run { cx, prepared: query, params, snapshot, state: &mut state };
    let mut root = crate::ops::build(plan, &mut run)?;
    let mut count = 0;
    while let Some(batch) = root.next(plan, &mut run)? {
        sched::check_interrupts()?;
        count += batch.rows as u64;
        insert(&mut writer, &batch, &types, &mut run)?;
    }
    Ok(Outcome { rows: count, tag: Some("SELECT") })
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
