//! Stored expressions over a table's row (of indexes), bound for the executor, and under new names.

use std::sync::Arc;

use base::Result;
use catalog::Table;

use crate::bind::Binder;
use crate::expr::Expr;
use crate::parse::parse_expr;
use crate::prepare::PrepareContext;
use crate::print::Printer;
use crate::walk;

/// Expressions over a row in table order.
///
/// # Errors
/// One that can't be bound any more.
pub fn row_expressions(
    cx: &PrepareContext<'_>,
    table: &Table,
    texts: &[&str],
) -> Result<Vec<Expr>> {
    let mut binder = Binder::new(cx, "", &[]);
    let rel = binder.table_rel(Arc::new(table.clone()), &table.name)?;
    let mut out = Vec::with_capacity(texts.len());
    for sql in texts {
        let node = parse_expr(sql)?;
        let bound = binder.row_expr(&rel, &node)?;
        let place = |col: u16| {
            let at = col.checked_sub(rel.base)?;
            Some(Expr::Column(at, binder.vars[usize::from(col)].ty))
        };
        out.push(walk::substitute(bound, &place));
    }
    Ok(out)
}

/// An expression's text after a column has got another name.
///
/// # Errors
/// One that can't be bound any more.
pub fn renamed(
    cx: &PrepareContext<'_>,
    table: &Table,
    sql: &str,
    column: u16,
    to: &str,
) -> Result<String> {
    let node = parse_expr(sql)?;
    let mut binder = Binder::new(cx, sql, &[]);
    binder.unfolded = true;
    let rel = binder.table_rel(Arc::new(table.clone()), &table.name)?;
    let expr = binder.row_expr(&rel, &node)?;
    to.clone_into(&mut binder.vars[usize::from(rel.base + column - 1)].name);
    let printer = Printer { binder: &binder, pretty: false, by_oid: true, names: None, indent: 0 };
    Ok(printer.outer(&expr))
}

/// EXCLUDE, bound to its table.
///
/// # Errors
/// Those of its definition.
pub fn exclusion(
    cx: &PrepareContext<'_>,
    table: &Table,
    def: &crate::utility::ExcludeDef,
) -> Result<crate::utility::Exclusion> {
    Binder::new(cx, "", &[]).exclusion(table, def)
}
