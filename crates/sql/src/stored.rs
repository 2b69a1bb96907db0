//! Stored expressions over a table's row (of indexes), bound for the executor, and under new names.

use std::sync::Arc;

use base::{Oid, Result};
use catalog::{Snapshot, Table};
use types::func::CastContext;
use types::oids::UNKNOWN;

use crate::bind::Binder;
use crate::expr::Expr;
use crate::parse::parse_expr;
use crate::prepare::PrepareContext;
use crate::print::{Names, Printer};
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

/// An expression's text over a table whose columns (`changed`, by number) have got other types, with the casts that the
/// old types implied; None: it names none of them.
///
/// # Errors
/// One that can't be bound over the new types.
pub fn over(
    cx: &PrepareContext<'_>,
    old: &Table,
    new: &Table,
    sql: &str,
    changed: &[u16],
) -> Result<Option<String>> {
    let node = parse_expr(sql)?;
    let mut binder = Binder::new(cx, sql, &[]);
    binder.unfolded = true;
    let rel = binder.table_rel(Arc::new(old.clone()), &old.name)?;
    let expr = binder.row_expr(&rel, &node)?;
    let mut used = Vec::new();
    walk::columns_of(&expr, &mut used);
    if !changed.iter().any(|number| used.contains(&(rel.base + number - 1))) {
        return Ok(None);
    }
    let printer = Printer { binder: &binder, pretty: false, by_oid: true, names: None, indent: 0 };
    let text = printer.outer(&expr);
    let text = match row_expressions(cx, old, &[text.as_str()]) {
        Ok(_) => text,
        // A form that can't be read again stands as it was.
        Err(_) => sql.to_owned(),
    };
    let mut binder = Binder::new(cx, "", &[]);
    let rel = binder.table_rel(Arc::new(new.clone()), &new.name)?;
    let node = parse_expr(&text)?;
    binder.row_expr(&rel, &node).map_err(base::Error::without_position)?;
    Ok(Some(text))
}

/// The values that a stored expression is over.
pub enum Over<'t> {
    /// A table's row.
    Row(&'t Table),
    /// The rows before and after a change, of a trigger.
    Rows(&'t Table),
    /// VALUE, of this type.
    Value(Oid, i32),
    /// Nothing: a default for a value of this type.
    Nothing(Oid, i32),
}

/// Names of a catalog for what an expression uses.
struct Named<'s> {
    naming: &'s Snapshot,
    is_value: bool,
}

impl Names for Named<'_> {
    fn column(&self, _: u16) -> Option<String> {
        self.is_value.then(|| "VALUE".to_owned())
    }

    fn subquery(&self, _: &crate::expr::SubqueryExpr) -> Option<String> {
        None
    }

    fn naming(&self) -> Option<&Snapshot> {
        Some(self.naming)
    }
}

/// An expression's text with the names that its functions, operators and types have in another version of the catalog.
///
/// # Errors
/// One that can't be bound any more.
pub fn under_names(
    cx: &PrepareContext<'_>,
    over: &Over<'_>,
    sql: &str,
    naming: &Snapshot,
) -> Result<String> {
    let node = parse_expr(sql)?;
    let mut binder = Binder::new(cx, sql, &[]);
    binder.unfolded = true;
    let expr = match over {
        Over::Row(table) => {
            let rel = binder.table_rel(Arc::new((*table).clone()), &table.name)?;
            binder.row_expr(&rel, &node)?
        }
        Over::Rows(table) => return crate::trigger::under_names(cx, table, sql, naming),
        Over::Value(ty, typmod) => binder.domain_condition(&node, *ty, *typmod)?,
        Over::Nothing(ty, typmod) => binder.default_expr(&node, *ty, *typmod, "")?,
    };
    let names = Named { naming, is_value: matches!(over, Over::Value(..)) };
    let (binder, names) = (&binder, Some(&names as &dyn Names));
    Ok(Printer { binder, pretty: false, by_oid: true, names, indent: 0 }.outer(&expr))
}

/// Whether values of a type may be assigned to a column of another one.
pub fn is_assignable(cx: &PrepareContext<'_>, from: Oid, to: Oid) -> bool {
    let mut binder = Binder::new(cx, "", &[from]);
    let cast = binder.coerce(Expr::Param(0, from), to, CastContext::Assignment, 0);
    from == UNKNOWN || matches!(cast, Ok(Some(_)))
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
