//! Expressions, one row at a time. Three-valued logic; strict functions answer NULL for NULL.
//!
//! Every recursion checks the stack. Batches are the business of [`crate::vector`], which comes
//! back here for whatever has no kernel.

use std::cmp::Ordering;
use std::sync::Arc;

use base::{Error, Oid, Result, err};
use sql::Expr;
use sql::expr::RowOp;
use types::datum::{Array, Shape};
use types::func::internal::ARRAY_SLICE;
use types::func::{Body, CallTypes, SessionFunction, TypedBody};
use types::{Datum, FunctionRow, oids};

use crate::members::RowList;
use crate::rows::Row;
use crate::run::Run;
use crate::subquery;

/// From so many arms on, AND and OR are searched for long lists, which takes about as long as evaluating some of them.
const LONG_ARMS: usize = 64;

/// The value of an expression over a row.
///
/// # Errors
/// Whatever the functions in it raise.
pub fn eval(expr: &Expr, row: Row<'_>, run: &mut Run<'_, '_>) -> Result<Datum> {
    match expr {
        Expr::Const(value, _) => Ok(value.clone()),
        Expr::Param(n, _) => Ok(run.params[*n as usize].clone()),
        Expr::Column(n, ty) => Ok(row.column(*n, *ty)),
        Expr::Slot(n, _) => Ok(run.state.slots[usize::from(*n)].clone()),
        Expr::Call { function, args, ty, .. } => match function.body {
            Body::Typed(body) => call_typed(function, body, args, *ty, row, run),
            Body::User => (run.cx.engine.calls.routine)(function, args, *ty, row, run),
            _ => call(function, args, row, run),
        },
        _ => nested(expr, row, run),
    }
}

/// The kinds of expression that are not leaves or calls.
fn nested(expr: &Expr, row: Row<'_>, run: &mut Run<'_, '_>) -> Result<Datum> {
    sched::check_stack()?;
    match expr {
        Expr::InOutCast { arg, ty, typmod } => {
            let value = eval(arg, row, run)?;
            (run.cx.engine.calls.cast_through_text)(value, arg.ty(), *ty, *typmod, run)
        }
        Expr::Typmod { arg, ty, typmod, explicit } => match eval(arg, row, run)? {
            Datum::Null => Ok(Datum::Null),
            value => types::io::apply_typmod(*ty, *typmod, value, *explicit),
        },
        Expr::Relabel(arg, ty) => Ok(relabel(eval(arg, row, run)?, *ty)),
        Expr::Collate(arg, ..) => eval(arg, row, run),
        Expr::And(args) => long_and_or(args, false, row, run),
        Expr::Or(args) => long_and_or(args, true, row, run),
        Expr::Not(arg) => Ok(match truth(eval(arg, row, run)?) {
            Some(value) => Datum::Bool(!value),
            None => Datum::Null,
        }),
        Expr::IsNull { arg, negated } => {
            Ok(Datum::Bool(is_null(&eval(arg, row, run)?, *negated) != *negated))
        }
        Expr::BooleanTest { arg, is, negated } => {
            Ok(Datum::Bool((truth(eval(arg, row, run)?) == *is) != *negated))
        }
        Expr::Distinct { equal, args, negated } => {
            let (a, b) = (eval(&args[0], row, run)?, eval(&args[1], row, run)?);
            Ok(Datum::Bool(distinct(equal, a, b, run)? != *negated))
        }
        Expr::Case { operand: None, arms, default, .. } => {
            let chosen = first_true(arms, row, run)?;
            eval(chosen.unwrap_or(default), row, run)
        }
        Expr::Case { operand: Some(operand), arms, default, .. } => {
            let value = eval(operand, row, run)?;
            run.state.held.push(value);
            let chosen = first_true(arms, row, run);
            // The results are outside of the operand's scope, whether a test has failed or not.
            run.state.held.pop();
            eval(chosen?.unwrap_or(default), row, run)
        }
        Expr::Held(_) => {
            let held = run.state.held.last().cloned();
            held.ok_or_else(|| Error::internal("CASE without the value of its operand"))
        }
        Expr::Coalesce(args, _) => {
            for arg in args {
                let value = eval(arg, row, run)?;
                if !value.is_null() {
                    return Ok(value);
                }
            }
            Ok(Datum::Null)
        }
        Expr::NullIf { equal, args } => {
            let (a, b) = (eval(&args[0], row, run)?, eval(&args[1], row, run)?);
            if a.is_null() || b.is_null() {
                return Ok(a);
            }
            match truth(apply(equal, &[a.clone(), b], run)?) {
                Some(true) => Ok(Datum::Null),
                _ => Ok(a),
            }
        }
        Expr::MinMax { greatest, args, ty } => min_max(*greatest, args, *ty, row, run),
        Expr::ArrayOp { function, left, array, all } => {
            let ty = left.ty();
            let left = eval(left, row, run)?;
            let array = eval(array, row, run)?;
            array_op(function, (left, ty), array, *all, run)
        }
        Expr::Array { items, element, nested, .. } => {
            let known = run.state.members.written(items, *element, run.params);
            match known.filter(|_| !nested) {
                Some(known) => Ok(Datum::Array(known)),
                None => array(items, *element, *nested, row, run),
            }
        }
        Expr::Subscript { array, indexes, .. } => subscript(array, indexes, row, run),
        Expr::Row(items) => {
            let values: Result<Vec<Datum>> = items.iter().map(|i| eval(i, row, run)).collect();
            let shape = Shape::anonymous(items.iter().map(Expr::ty));
            Ok(Datum::record(Arc::new(shape), values?))
        }
        Expr::RowCompare { op, fields } => row_compare(*op, fields, row, run),
        Expr::Subquery(query) => subquery::eval(query, row, run),
        Expr::SessionValue(name, ty) => (run.cx.engine.calls.session_value)(name, *ty, run),
        _ => Err(Error::internal("expression kind without a body")),
    }
}

/// The result of the first arm of CASE whose test is true.
fn first_true<'e>(
    arms: &'e [(Expr, Expr)],
    row: Row<'_>,
    run: &mut Run<'_, '_>,
) -> Result<Option<&'e Expr>> {
    for (test, result) in arms {
        if truth(eval(test, row, run)?) == Some(true) {
            return Ok(Some(result));
        }
    }
    Ok(None)
}

/// Whether a condition holds (NULL does not).
///
/// # Errors
/// As [`eval`].
pub fn holds(expr: &Expr, row: Row<'_>, run: &mut Run<'_, '_>) -> Result<bool> {
    Ok(matches!(eval(expr, row, run)?, Datum::Bool(true)))
}

/// The values of several expressions over a row.
///
/// # Errors
/// As [`eval`].
pub fn eval_all(exprs: &[Expr], row: Row<'_>, run: &mut Run<'_, '_>) -> Result<Vec<Datum>> {
    exprs.iter().map(|e| eval(e, row, run)).collect()
}

/// A boolean as three-valued logic has it.
pub fn truth(value: Datum) -> Option<bool> {
    match value {
        Datum::Bool(value) => Some(value),
        _ => None,
    }
}

/// Calls a function: arguments of up to three in place, without allocating.
fn call(
    function: &'static FunctionRow,
    args: &[Expr],
    row: Row<'_>,
    run: &mut Run<'_, '_>,
) -> Result<Datum> {
    sched::check_stack()?;
    match args {
        [a] if matches!(function.body, Body::Session(SessionFunction::PgTypeof)) => {
            Ok(Datum::Oid(a.ty().0))
        }
        [a] => {
            let a = eval(a, row, run)?;
            apply(function, &[a], run)
        }
        [a, b] => {
            // A NULL does not spare the other argument its errors.
            let values = [eval(a, row, run)?, eval(b, row, run)?];
            apply(function, &values, run)
        }
        [array, bounds @ ..] if std::ptr::eq(function, &ARRAY_SLICE) => {
            let mut values = vec![eval(array, row, run)?];
            if values[0].is_null() {
                return Ok(Datum::Null);
            }
            values.extend(eval_all(bounds, row, run)?);
            apply(function, &values, run)
        }
        [a, b, c] => {
            let values = [eval(a, row, run)?, eval(b, row, run)?, eval(c, row, run)?];
            apply(function, &values, run)
        }
        _ => {
            let values = eval_all(args, row, run)?;
            apply(function, &values, run)
        }
    }
}

/// Calls a function to which its arguments' types matter.
fn call_typed(
    function: &'static FunctionRow,
    body: TypedBody,
    args: &[Expr],
    result: Oid,
    row: Row<'_>,
    run: &mut Run<'_, '_>,
) -> Result<Datum> {
    sched::check_stack()?;
    let values = eval_all(args, row, run)?;
    if function.strict && values.iter().any(Datum::is_null) {
        return Ok(Datum::Null);
    }
    types::bulk::ask_for_call(function, &values)?;
    let types: Vec<Oid> = args.iter().map(Expr::ty).collect();
    body(&values, CallTypes { args: &types, result }, run.cx.format)
}

/// Calls a function with values.
///
/// # Errors
/// The function's.
pub fn apply(
    function: &'static FunctionRow,
    args: &[Datum],
    run: &mut Run<'_, '_>,
) -> Result<Datum> {
    if function.strict && args.iter().any(Datum::is_null) {
        return Ok(Datum::Null);
    }
    types::bulk::ask_for_call(function, args)?;
    match function.body {
        Body::Scalar(body) => body(args, run.cx.format),
        Body::Typed(body) => {
            let types: Vec<Oid> = args.iter().map(types::io::natural_type).collect();
            body(args, CallTypes { args: &types, result: function.result }, run.cx.format)
        }
        Body::Session(number) => {
            (run.cx.engine.calls.session_function)(number, function, args, run)
        }
        Body::User => (run.cx.engine.calls.routine_of_values)(function, args, run),
        Body::Set(_) => Err(err!(
            FEATURE_NOT_SUPPORTED,
            "set-valued function called in context that cannot accept a set"
        )),
    }
}

/// The same value under another type: only oids and integers differ in form.
fn relabel(value: Datum, ty: Oid) -> Datum {
    let oid_like = types::io::is_reg(ty) || matches!(ty, oids::OID | oids::XID);
    match (value, ty) {
        (Datum::Int4(v), _) if oid_like => Datum::Oid(v as u32),
        (Datum::Oid(v), oids::INT4) => Datum::Int4(v as i32),
        (Datum::Oid(v), oids::INT8) => Datum::Int8(i64::from(v)),
        (value @ (Datum::Open(_) | Datum::Array(_)), _) => types::open::relabel(value, ty),
        (value, _) if types::user::is_user(ty) => types::open::relabel(value, ty),
        (value, _) => value,
    }
}

/// Row values are NULL when all fields are, and NOT NULL when none is.
fn is_null(value: &Datum, negated: bool) -> bool {
    match value {
        Datum::Null => true,
        Datum::Record(r) if negated => r.fields.iter().any(Datum::is_null),
        Datum::Record(r) => r.fields.iter().all(Datum::is_null),
        _ => false,
    }
}

/// AND (`until` false) or OR (`until` true): ends at the first value that decides.
/// The same; a long list of rows that the arms spell out is looked up.
fn long_and_or(args: &[Expr], until: bool, row: Row<'_>, run: &mut Run<'_, '_>) -> Result<Datum> {
    let list = match args.len() {
        LONG_ARMS.. => RowList::among(args, !until, LONG_ARMS),
        _ => None,
    };
    let Some(list) = list else { return and_or(args, until, row, run) };
    let values = list.left.iter().map(|e| eval(e, row, run)).collect::<Result<Vec<_>>>()?;
    let found = run.state.members.of_list(&list, run.params)?.find(&values)?;
    let found = found.map(|found| found == until);
    if found == Some(until) {
        return Ok(Datum::Bool(until));
    }
    match (and_or(list.rest, until, row, run)?, found) {
        (Datum::Bool(value), None) if value != until => Ok(Datum::Null),
        (rest, _) => Ok(rest),
    }
}

fn and_or<'e>(
    args: impl IntoIterator<Item = &'e Expr>,
    until: bool,
    row: Row<'_>,
    run: &mut Run<'_, '_>,
) -> Result<Datum> {
    let mut unknown = false;
    for arg in args {
        match truth(eval(arg, row, run)?) {
            Some(value) if value == until => return Ok(Datum::Bool(until)),
            Some(_) => {}
            None => unknown = true,
        }
    }
    Ok(if unknown { Datum::Null } else { Datum::Bool(!until) })
}

fn distinct(
    equal: &'static FunctionRow,
    a: Datum,
    b: Datum,
    run: &mut Run<'_, '_>,
) -> Result<bool> {
    match (a.is_null(), b.is_null()) {
        (true, true) => Ok(false),
        (false, false) => Ok(truth(apply(equal, &[a, b], run)?) != Some(true)),
        _ => Ok(true),
    }
}

fn min_max(
    greatest: bool,
    args: &[Expr],
    ty: Oid,
    row: Row<'_>,
    run: &mut Run<'_, '_>,
) -> Result<Datum> {
    let compare = match ty {
        oids::XID8 | oids::PG_LSN => types::order::compare_unsigned,
        _ => types::io::compare,
    };
    let wanted = if greatest { Ordering::Greater } else { Ordering::Less };
    let mut best = Datum::Null;
    for arg in args {
        let value = eval(arg, row, run)?;
        if value.is_null() {
            continue;
        }
        if best.is_null() || compare(&value, &best) == wanted {
            best = value;
        }
    }
    Ok(best)
}

fn array_op(
    function: &'static FunctionRow,
    (left, ty): (Datum, Oid),
    array: Datum,
    all: bool,
    run: &mut Run<'_, '_>,
) -> Result<Datum> {
    let Datum::Array(array) = array else {
        return Ok(Datum::Null);
    };
    if let Some(table) = run.state.members.of_array(function, all, ty, &array, false)? {
        let found = table.find(std::slice::from_ref(&left))?;
        return Ok(found.map_or(Datum::Null, |found| Datum::Bool(found != all)));
    }
    let mut unknown = false;
    for item in &array.items {
        sched::check_interrupts()?;
        match truth(apply(function, &[left.clone(), item.clone()], run)?) {
            Some(value) if value != all => return Ok(Datum::Bool(!all)),
            Some(_) => {}
            None => unknown = true,
        }
    }
    Ok(if unknown { Datum::Null } else { Datum::Bool(all) })
}

fn array(
    items: &[Expr],
    element: Oid,
    nested: bool,
    row: Row<'_>,
    run: &mut Run<'_, '_>,
) -> Result<Datum> {
    let values = eval_all(items, row, run)?;
    if !nested {
        let dims = if values.is_empty() { vec![] } else { vec![(values.len() as i32, 1)] };
        return Ok(Datum::Array(Arc::new(Array { element, dims, items: values })));
    }
    let filled = |value: &Datum| match value {
        Datum::Array(part) if !part.dims.is_empty() => Some(part.clone()),
        _ => None,
    };
    let parts: Vec<Arc<Array>> = values.iter().filter_map(filled).collect();
    let Some(first) = parts.first() else { return Ok(Datum::array(element, Vec::new())) };
    if parts.len() < values.len() || parts.iter().any(|part| part.dims != first.dims) {
        return Err(err!(
            ARRAY_SUBSCRIPT_ERROR,
            "multidimensional arrays must have array expressions with matching dimensions"
        ));
    }
    let mut dims = vec![(values.len() as i32, 1)];
    dims.extend_from_slice(&first.dims);
    types::io::check_dimensions(dims.len())?;
    let mut items = Vec::new();
    for part in parts {
        types::bulk::push_values(&mut items, &part.items)?;
    }
    Ok(Datum::Array(Arc::new(Array { element, dims, items })))
}

fn subscript(array: &Expr, indexes: &[Expr], row: Row<'_>, run: &mut Run<'_, '_>) -> Result<Datum> {
    // Nothing is asked of the subscripts of no array.
    let Datum::Array(array) = eval(array, row, run)? else {
        return Ok(Datum::Null);
    };
    let indexes = eval_all(indexes, row, run)?;
    if indexes.len() != array.dims.len() {
        return Ok(Datum::Null);
    }
    let mut place = 0usize;
    for (index, (length, lower)) in indexes.iter().zip(&array.dims) {
        let index = match index {
            Datum::Int4(v) => i64::from(*v),
            Datum::Int2(v) => i64::from(*v),
            Datum::Int8(v) => *v,
            _ => return Ok(Datum::Null),
        };
        let from_zero = index - i64::from(*lower);
        if from_zero < 0 || from_zero >= i64::from(*length) {
            return Ok(Datum::Null);
        }
        place = place * *length as usize + from_zero as usize;
    }
    Ok(array.items.get(place).cloned().unwrap_or_default())
}

/// A pair of fields with its equality and less-than.
type Field = (Expr, Expr, &'static FunctionRow, &'static FunctionRow);

fn row_compare(op: RowOp, fields: &[Field], row: Row<'_>, run: &mut Run<'_, '_>) -> Result<Datum> {
    let mut unknown = false;
    for (left, right, equal, less) in fields {
        let pair = [eval(left, row, run)?, eval(right, row, run)?];
        match (truth(apply(equal, &pair, run)?), op) {
            (Some(true), _) => {}
            (Some(false), RowOp::Eq) => return Ok(Datum::Bool(false)),
            (Some(false), RowOp::Ne) => return Ok(Datum::Bool(true)),
            (None, RowOp::Eq | RowOp::Ne) => unknown = true,
            (None, _) => return Ok(Datum::Null),
            (Some(false), _) => {
                return Ok(match truth(apply(less, &pair, run)?) {
                    Some(is_less) => Datum::Bool(is_less == matches!(op, RowOp::Lt | RowOp::Le)),
                    None => Datum::Null,
                });
            }
        }
    }
    Ok(match op {
        _ if unknown => Datum::Null,
        RowOp::Eq | RowOp::Le | RowOp::Ge => Datum::Bool(true),
        RowOp::Ne | RowOp::Lt | RowOp::Gt => Datum::Bool(false),
    })
}
