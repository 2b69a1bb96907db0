//! Stored queries, bound again to be printed: those of views, and conditions that are stored as queries of one
//! column (policies).
//!
//! Below, the proof that definitions survive, in builds with debug assertions: what is kept of a query or an expression is
//! printed, parsed and bound again, and must come out as it was. All tests run with it, so that a form that can't be
//! read again, or that loses something, is an internal error of the statement that defines it, long before a dump stops
//! at it.
//!
//! ```text
//!   tree ─ bind ─► expression ─ print ─► text ─ parse, bind ─► expression ─ print ─► text
//!                       └───────────── of the same type ─────────────┘              the same text
//! ```

use base::{Error, Oid, Result};
use catalog::Snapshot;
use pg_query::NodeEnum;

use super::{Here, Printer, print};
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
    let names = Here::new(&printer, 0);
    let text = select.targets.first().map(|(_, e)| printer.printer(&names, 0).outer(e));
    text.ok_or_else(|| Error::internal("a condition without a column"))
}

/// A query's stored form, printed again, and what its columns are: type, typmod, collation.
///
/// # Errors
/// Those of binding it.
fn stored_again(
    cx: &PrepareContext<'_>,
    sql: &str,
    columns: &[crate::utility::ColumnDef],
) -> Result<(String, Vec<(base::Oid, i32, u32)>)> {
    let names: Vec<String> = columns.iter().map(|c| c.name.clone()).collect();
    let statements = parse(sql)?;
    let Some(NodeEnum::SelectStmt(select)) = statements.first().map(|s| &*s.node) else {
        return Err(Error::internal("a view's query is not a SELECT"));
    };
    let mut binder = Binder::new(cx, sql, &[]);
    binder.record = Some(Record::default());
    binder.unfolded = true;
    binder.bypassing = true;
    let query = binder.holding(|b| b.select(select, None, true))?;
    let record = binder.record.take().unwrap_or_default();
    let Some(node) = statements.first().map(|s| &*s.node) else {
        return Err(Error::internal("a view without a query"));
    };
    let text = Printer::stored(&binder, &record, node).statement(node, Some(&names))?;
    let types = query.output.iter().map(|o| (o.ty, o.typmod, o.collation)).collect();
    Ok((text, types))
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

fn lost(what: &str, before: &str, after: &str) -> Error {
    Error::internal(format!("{what} does not survive: {before} became {after}"))
}

/// An expression that is kept, bound by `bind`.
///
/// # Errors
/// `XX000` when it does not survive; those of binding it.
pub(crate) fn expression_survives<'b>(
    binder: &mut Binder<'b>,
    node: &NodeEnum,
    names: Option<&dyn print::Names>,
    bind: impl Fn(&mut Binder<'b>, &NodeEnum) -> Result<crate::expr::Expr>,
) -> Result<()> {
    let printed = |binder: &mut Binder<'b>, node: &NodeEnum| -> Result<(String, Oid)> {
        let bound = binder.unfolding(|b| bind(b, node))?;
        let printer =
            print::Printer { binder: &*binder, pretty: false, by_oid: true, names, indent: 0 };
        Ok((printer.outer(&bound), bound.ty()))
    };
    let (first, ty) = printed(binder, node)?;
    settles("an expression", first, |text| {
        let (again, of) = printed(binder, &*crate::parse::parse_expr(text)?)?;
        match of == ty {
            true => Ok(again),
            false => {
                Err(Error::internal(format!("a value of type {}", types::io::format_type(of, -1))))
            }
        }
    })
}

/// A text that is printed again as it is, or settles after once: a cast of ARRAY[…] becomes one of each of its elements.
fn settles(what: &str, first: String, mut again: impl FnMut(&str) -> Result<String>) -> Result<()> {
    let mut print = |text: &str| again(text).map_err(|e| lost(what, text, &e.to_string()));
    let second = print(&first)?;
    if second == first {
        return Ok(());
    }
    let third = print(&second)?;
    if third == second { Ok(()) } else { Err(lost(what, &second, &third)) }
}

/// A default that is kept.
///
/// # Errors
/// `XX000` when it does not survive; those of binding it.
pub(crate) fn default_survives(
    cx: &PrepareContext<'_>,
    node: &NodeEnum,
    of: (Oid, i32),
) -> Result<()> {
    if !cfg!(debug_assertions) {
        return Ok(());
    }
    let first = print::stored_default(cx, node, of)?;
    settles("a default", first, |text| {
        print::stored_default(cx, &*crate::parse::parse_expr(text)?, of)
    })
}

/// A query that is kept, and the columns that it gives.
///
/// # Errors
/// `XX000` when it does not survive.
pub(crate) fn query_survives(
    cx: &PrepareContext<'_>,
    sql: &str,
    columns: &[crate::utility::ColumnDef],
) -> Result<()> {
    if !cfg!(debug_assertions) {
        return Ok(());
    }
    settles("a query", sql.to_owned(), |text| Ok(stored_again(cx, text, columns)?.0))?;
    let (_, types) = stored_again(cx, sql, columns)?;
    for (column, (ty, typmod, collation)) in columns.iter().zip(types) {
        if (column.ty, column.typmod, column.collation) != (ty, typmod, collation) {
            let shown = |ty: Oid, typmod| types::io::format_type(ty, typmod);
            let before = format!("{} {}", column.name, shown(column.ty, column.typmod));
            return Err(lost("a column", &before, &shown(ty, typmod)));
        }
    }
    Ok(())
}
