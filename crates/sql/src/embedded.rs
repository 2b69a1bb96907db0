//! SQL inside procedural languages: statements and expressions whose names may be variables.
//!
//! A variable is a parameter of the statement, numbered by its slot in the program's frame, so that the
//! frame itself is what the executor takes as parameters and nothing is copied for a statement.

use std::sync::Arc;

use base::{Oid, Result, err};
use pg_query::{NodeEnum, protobuf as pb};
use types::datum::Shape;
use types::oids::RECORD;

use crate::bind::scope::Place;
use crate::bind::{Binder, Scope, ast, inner};
use crate::expr::Expr;
use crate::parse::parse;
use crate::plan::{Prepared, Statement};
use crate::prepare::PrepareContext;
use crate::statement;

/// What wins when a name is a variable's and a column's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// Neither: `42702`.
    Error,
    /// The variable.
    Variable,
    /// The column.
    Column,
}

/// A variable, or a field of one.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Its place in the frame: the parameter's number.
    pub slot: u16,
    /// The variable's type.
    pub ty: Oid,
    /// Number and type of the field that was named.
    pub field: Option<(usize, Oid)>,
    /// What is known of a record's columns.
    pub shape: Option<Arc<Shape>>,
    /// COLLATE of its declaration; 0: its type's.
    pub collation: u32,
}

/// The names of a program at one place of it.
pub trait Variables {
    /// The variable of this name: `name`, `label.name`, `row.field`, `label.row.field`.
    ///
    /// # Errors
    /// `55000` for a field of a record without a row, `42703` for one that it doesn't have.
    fn find(&self, names: &[&str]) -> Result<Option<Variable>>;
    /// `$n`.
    fn numbered(&self, number: i32) -> Option<Variable>;
    /// What wins.
    fn conflict(&self) -> Conflict;
    /// A table that is a variable: the slot of the array of its rows, and their columns.
    fn rows(&self, name: &str) -> Option<(u16, Arc<Shape>)>;
}

/// An expression of a program, ready to be computed.
pub enum Expression {
    /// Without a query around it. The rest is what its subqueries need, and whether PostgreSQL computes it when
    /// it plans ([`is_constant`]).
    Value(Expr, Prepared, bool),
    /// It is more than an expression (FROM, aggregates …): a query with one column.
    Query(Prepared),
}

/// The text that the grammar sees.
const PREFIX: &str = "SELECT ";

/// Prepares an expression. `target`: type and typmod of what it is assigned to; `apart`: that happens when it has been
/// computed, so that errors of the cast are none of the expression's.
///
/// # Errors
/// Everything that parse and bind can find, with positions in `text`.
pub fn prepare_expression(
    text: &str,
    (target, apart): (Option<(Oid, i32)>, bool),
    cx: &PrepareContext<'_>,
) -> Result<Expression> {
    let full = format!("{PREFIX}{text}");
    prepare_selected(&full, (target, apart), cx).map_err(|e| unshift(e, text))
}

fn unshift(error: base::Error, text: &str) -> base::Error {
    let mut error = error;
    let position = &mut error.fields_mut().position;
    let end = text.chars().count() as u32 + 1;
    *position = match *position {
        0 => 0,
        at => at.saturating_sub(PREFIX.len() as u32).clamp(1, end),
    };
    error
}

fn prepare_selected(
    full: &str,
    (target, apart): (Option<(Oid, i32)>, bool),
    cx: &PrepareContext<'_>,
) -> Result<Expression> {
    let mut statements = parse(full)?;
    let (Some(one), true) = (statements.pop(), statements.is_empty()) else {
        return Err(err!(SYNTAX_ERROR, "an expression was expected"));
    };
    if let Some(node) = plain_value(&one.node) {
        let mut binder = Binder::new(cx, full, &[]);
        binder.variables = cx.variables;
        let scope = Scope::new(None);
        scope.place.set(Place::Target);
        let value = binder.expr(&scope, node)?;
        let more = scope.sets.get().0 > 0
            || !scope.aggs.borrow().is_empty()
            || !scope.windows.borrow().is_empty()
            || !scope.groupings.borrow().is_empty();
        if !more {
            let alone = is_constant(&value);
            let value = match target {
                // A literal that can't be cast is a text until it is assigned.
                Some((ty, typmod)) if apart => {
                    match binder.for_variable(value.clone(), ty, typmod, 0) {
                        Ok(value) => value,
                        Err(_) if value.ty() == types::oids::UNKNOWN => {
                            binder.resolve_unknown(value)?
                        }
                        Err(error) => return Err(error),
                    }
                }
                Some((ty, typmod)) => binder.for_variable(value, ty, typmod, 0)?,
                None => binder.resolve_unknown(value)?,
            };
            let constant = if apart { alone } else { is_constant(&value) };
            binder.finish_params()?;
            let (value, prepared) =
                statement::plan_with(binder, &mut [], |p| p.resolve(value, &[]))?;
            return Ok(Expression::Value(value, prepared, constant));
        }
    }
    let (prepared, _) = statement::prepare(&one.node, full, &[], cx, None)?;
    Ok(Expression::Query(prepared))
}

/// The expression of a SELECT that is nothing but one.
fn plain_value(node: &NodeEnum) -> Option<&NodeEnum> {
    let NodeEnum::SelectStmt(select) = node else { return None };
    let plain = select.from_clause.is_empty()
        && select.where_clause.is_none()
        && select.group_clause.is_empty()
        && select.having_clause.is_none()
        && select.window_clause.is_empty()
        && select.values_lists.is_empty()
        && select.sort_clause.is_empty()
        && select.limit_count.is_none()
        && select.limit_offset.is_none()
        && select.locking_clause.is_empty()
        && select.with_clause.is_none()
        && select.distinct_clause.is_empty()
        && select.into_clause.is_none()
        && select.op <= pb::SetOperation::SetopNone as i32;
    let [one] = &select.target_list[..] else { return None };
    let Some(NodeEnum::ResTarget(target)) = &one.node else { return None };
    let value = inner(&target.val)?;
    let star = match value {
        NodeEnum::ColumnRef(c) => {
            matches!(c.fields.last().and_then(|f| f.node.as_ref()), Some(NodeEnum::AStar(_)))
        }
        NodeEnum::AIndirection(i) => {
            matches!(i.indirection.last().and_then(|n| n.node.as_ref()), Some(NodeEnum::AStar(_)))
        }
        _ => false,
    };
    (plain && !star).then_some(value)
}

/// Prepares a cursor's query: with the places of its rows behind its columns where WHERE CURRENT OF can
/// use it, and the tables that these are of.
///
/// # Errors
/// Everything that parse and bind can find.
pub fn prepare_cursor(
    text: &str,
    types: &[Oid],
    cx: &PrepareContext<'_>,
) -> Result<(Prepared, Vec<Vec<u32>>)> {
    let statements = parse(text)?;
    match &statements[..] {
        [one] => statement::cursor_query(&one.node, text, types, cx),
        _ => Err(err!(SYNTAX_ERROR, "a cursor has one query")),
    }
}

/// Whether an expression depends on nothing: PostgreSQL computes such a one when it plans.
fn is_constant(expr: &Expr) -> bool {
    !matches!(expr, Expr::Const(..))
        && !crate::walk::any(expr, &|e| {
            matches!(e, Expr::Param(..) | Expr::Subquery(_) | Expr::SessionValue(..))
                || matches!(e, Expr::Call { function, .. }
                    if function.volatility != types::func::Volatility::Immutable
                        || function.oid == types::func::internal::DOMAIN_CHECK.oid)
        })
}

/// Whether a statement or expression is well formed.
///
/// # Errors
/// `42601` with the position in `text`.
pub fn check_statement(text: &str) -> Result<()> {
    parse(text).map(drop)
}

/// As [`check_statement`], for an expression.
///
/// # Errors
/// `42601` with the position in `text`.
pub fn check_expression(text: &str) -> Result<()> {
    let full = format!("{PREFIX}{text}");
    parse(&full).map(drop).map_err(|e| unshift(e, text))
}

/// The conversion of a value, which is the first parameter, to what a variable holds.
///
/// # Errors
/// When there is none.
pub fn conversion(from: Oid, (ty, typmod): (Oid, i32), cx: &PrepareContext<'_>) -> Result<Expr> {
    let mut binder = Binder::new(cx, "", &[from]);
    let value = binder.for_variable(Expr::Param(0, from), ty, typmod, 0)?;
    Ok(value)
}

/// A type's oid and typmod by its name in SQL.
///
/// # Errors
/// `42704`, `42601`.
pub fn type_by_name(text: &str, cx: &PrepareContext<'_>) -> Result<(Oid, i32)> {
    let full = format!("SELECT NULL::{text}");
    let statements = parse(&full)
        .map_err(|e| err!(SYNTAX_ERROR, "invalid type name \"{text}\"").at(e.fields().position))?;
    let binder = Binder::new(cx, &full, &[]);
    if let [one] = &statements[..]
        && let Some(NodeEnum::TypeCast(cast)) = plain_value(&one.node)
        && matches!(inner(&cast.arg), Some(NodeEnum::AConst(_)))
        && let Some(name) = &cast.type_name
    {
        return binder.type_name(name);
    }
    Err(err!(SYNTAX_ERROR, "invalid type name \"{text}\""))
}

/// The type of a table's column: `[schema.]table.column`.
pub fn column_type(names: &[&str], cx: &PrepareContext<'_>) -> Option<(Oid, i32)> {
    let (column, table) = names.split_last()?;
    let table = table_named(table, cx)?;
    let (_, column) = table.column(column)?;
    Some((Oid(column.ty), column.typmod))
}

/// The type of a table's rows: `[schema.]table`.
pub fn row_type(names: &[&str], cx: &PrepareContext<'_>) -> Option<Oid> {
    let table = table_named(names, cx)?;
    Some(Oid(table.row_type[0])).filter(|ty| ty.0 != 0)
}

fn table_named(names: &[&str], cx: &PrepareContext<'_>) -> Option<Arc<catalog::Table>> {
    let (schema, plain) = ast::qualified(names);
    match Binder::new(cx, "", &[]).find_relation(schema, plain)? {
        catalog::snapshot::Relation::Table(table) => Some(table),
        _ => None,
    }
}

/// The columns of a type's values; None for types that have none.
pub fn shape_of(ty: Oid) -> Option<Arc<Shape>> {
    if ty == RECORD { None } else { types::user::shape(ty) }
}

/// The collation of this name, for a type.
///
/// # Errors
/// `42704`; `42804` for a type that has none.
pub fn collation(names: &[&str], ty: Oid, cx: &PrepareContext<'_>) -> Result<u32> {
    let binder = Binder::new(cx, "", &[]);
    binder.check_collatable(ty, -1)?;
    binder.collation_named(names).map(|c| c.oid)
}

/// The function that a CALL's plan calls.
pub fn called(prepared: &Prepared) -> Option<Oid> {
    fn of(plan: &crate::plan::Plan) -> Option<Oid> {
        use crate::plan::Node;
        let call = |e: &Expr| match e {
            Expr::Call { function, .. } => Some(function.oid),
            _ => None,
        };
        match &plan.node {
            Node::FunctionScan { calls, .. } => calls.first().and_then(call),
            Node::Project { input, exprs } => of(input).or_else(|| exprs.iter().find_map(call)),
            Node::Values(rows) => rows.first()?.iter().find_map(call),
            _ => None,
        }
    }
    match &prepared.statement {
        Statement::Query(plan) => of(plan),
        _ => None,
    }
}

/// Whether an expression calls a function that a user made.
pub fn calls_users(expr: &Expr) -> bool {
    crate::walk::any(
        expr,
        &|e| matches!(e, Expr::Call { function, .. } if matches!(function.body, types::func::Body::User)),
    )
}

/// Whether a statement returns rows to whoever runs it.
pub fn returns_rows(prepared: &Prepared) -> bool {
    matches!(prepared.statement, Statement::Query(_)) && !prepared.columns.is_empty()
}
