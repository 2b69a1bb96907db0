//! Stored queries, bound again to be printed: those of views, and conditions that are stored as queries of one
//! column (policies).

use base::{Error, Result};
use catalog::Snapshot;
use pg_query::NodeEnum;

use super::{Here, Printer};
use crate::bind::Binder;
use crate::bind::record::{Record, address};
use crate::parse::parse;
use crate::prepare::PrepareContext;

/// What can be done to the rows of a relation: 4 (UPDATE), 8 (INSERT), 16 (DELETE). `triggers`: INSTEAD OF triggers
/// count; `column`: only this one counts.
///
/// # Errors
/// Those of a view that can't be bound any more.
pub fn changes_of(
    cx: &PrepareContext<'_>,
    table: &catalog::Table,
    triggers: bool,
    column: Option<u16>,
) -> Result<i32> {
    let binder = Binder::new(cx, "", &[]);
    binder.changes_of(table, triggers, column.as_ref().map(std::slice::from_ref))
}

/// A query as it is stored, under the names of `naming`, with what it uses.
///
/// # Errors
/// Those of binding it.
pub(crate) fn recorded(
    cx: &PrepareContext<'_>,
    sql: &str,
    naming: &Snapshot,
) -> Result<(String, Vec<(u32, u16)>)> {
    let (binder, record, node) = bound_again(cx, sql)?;
    let printer = Printer { naming, ..Printer::stored(&binder, &record, &node) };
    let text = printer.statement(&node, None)?;
    Ok((text, record.uses))
}

/// The first column of a stored query as PostgreSQL prints it, the columns of its one table by their bare names.
///
/// # Errors
/// Those of binding it.
pub(crate) fn print_target(cx: &PrepareContext<'_>, sql: &str, pretty: bool) -> Result<String> {
    let (binder, record, node) = bound_again(cx, sql)?;
    let NodeEnum::SelectStmt(stmt) = &*node else {
        return Err(Error::internal("a condition without a query"));
    };
    let (Some(select), path) = (record.selects.get(&address(&**stmt)), Some(cx.search_path)) else {
        return Err(Error::internal("a query that was not recorded"));
    };
    let printer = Printer { path, pretty, bare: true, ..Printer::stored(&binder, &record, &node) };
    printer.enter(select.clone(), Vec::new());
    let names = Here { printer: &printer, indent: 0 };
    let text = select.targets.first().map(|(_, e)| printer.printer(&names, 0).outer(e));
    text.ok_or_else(|| Error::internal("a condition without a column"))
}

/// Binds a stored query again, with what binding it knew.
fn bound_again<'c>(
    cx: &'c PrepareContext<'c>,
    sql: &'c str,
) -> Result<(Binder<'c>, Record, crate::parse::Tree)> {
    let Some(one) = parse(sql)?.pop() else {
        return Err(Error::internal("a condition without a query"));
    };
    let NodeEnum::SelectStmt(select) = &*one.node else {
        return Err(Error::internal("a condition's query is not a SELECT"));
    };
    let mut binder = Binder::new(cx, sql, &[]);
    binder.record = Some(Record::default());
    binder.unfolded = true;
    binder.bypassing = true;
    binder.holding(|b| b.select(select, None, true))?;
    binder.note_columns();
    let record = binder.record.take().unwrap_or_default();
    Ok((binder, record, one.node))
}

/// Binds a stored query again, recording it.
pub(super) fn again<R>(
    cx: &PrepareContext<'_>,
    sql: &str,
    f: impl FnOnce(&Binder<'_>, &Record, &NodeEnum) -> Result<R>,
) -> Result<R> {
    let statements = parse(sql)?;
    let Some(node) = statements.first().map(|s| &*s.node) else {
        return Err(Error::internal("a view without a query"));
    };
    let NodeEnum::SelectStmt(select) = node else {
        return Err(Error::internal("a view's query is not a SELECT"));
    };
    let mut binder = Binder::new(cx, sql, &[]);
    binder.record = Some(Record::default());
    binder.unfolded = true;
    binder.bypassing = true;
    binder.holding(|b| b.select(select, None, true))?;
    let record = binder.record.take().unwrap_or_default();
    f(&binder, &record, node)
}
