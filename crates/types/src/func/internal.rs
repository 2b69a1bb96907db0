//! Functions that no one can name: what the binder makes of syntax (slices, rows with column names).
//! They run as all others do.

use std::sync::Arc;

use base::{Oid, Result, err};

use super::{Body, CallTypes, FunctionRow, InHelpers, SessionFunction, Volatility};
use crate::collation::{Case, Slot};
use crate::datum::{Array, Datum, Shape};
use crate::io::FormatContext;
use crate::oids;

const fn row(
    oid: u32,
    name: &'static str,
    strict: bool,
    returns_set: bool,
    body: Body,
) -> FunctionRow {
    FunctionRow {
        oid: Oid(oid),
        name,
        args: &[],
        defaults: &[],
        variadic: false,
        result: oids::RECORD,
        columns: &[],
        returns_set,
        strict,
        volatility: Volatility::Immutable,
        body,
        operator: Oid::INVALID,
        helpers: InHelpers::Never,
    }
}

/// `(sequence)`: the next value for an identity column, which nobody needs a right for.
pub static NEXT_VALUE: FunctionRow = FunctionRow {
    result: oids::INT8,
    volatility: Volatility::Volatile,
    ..row(9915, "nextval", true, false, Body::Session(SessionFunction::NextValue))
};

/// `()`: the transaction that wrote what the catalog shows, for `xmin` of its tables.
pub static CATALOG_XMIN: FunctionRow = FunctionRow {
    result: oids::XID,
    volatility: Volatility::Stable,
    ..row(9951, "pg_catalog_xmin", true, false, Body::Session(SessionFunction::PgCatalogXmin))
};

/// `(row, template)`: the row's values under the template's column names and type.
pub static SHAPED_ROW: FunctionRow =
    row(9901, "row", true, false, Body::Scalar(|a, _| Ok(shaped(a))));

/// `(value, subscript)`: an item of a value whose type another crate defines.
pub static OPEN_ITEM: FunctionRow = row(
    9933,
    "item",
    true,
    false,
    Body::Scalar(|a, _| {
        Ok(match &a[0] {
            Datum::Open(v) => v.0.item(a[1].as_int4()).unwrap_or(Datum::Null),
            _ => Datum::Null,
        })
    }),
);

/// `(row, template)`: the row, whose columns are known to be the template's.
pub static RECORD_OF: FunctionRow =
    row(9931, "record", true, false, Body::Scalar(|a, _| Ok(a[0].clone())));

/// `(value)`: an argument that its default fills. In expressions that are to be printed only: the call is written without it.
pub static DEFAULTED: FunctionRow =
    row(9952, "default", false, false, Body::Scalar(|a, _| Ok(a[0].clone())));

/// `(value, name)`: an argument that was given by its parameter's name. In expressions that are to be printed only.
pub static NAMED: FunctionRow =
    row(9953, "named", false, false, Body::Scalar(|a, _| Ok(a[0].clone())));

/// `(value)`: a cast that was written, where a bare one was implied. In expressions that are to be printed only.
pub static WRITTEN_CAST: FunctionRow =
    row(9954, "cast", false, false, Body::Scalar(|a, _| Ok(a[0].clone())));

/// `(call)`: the function of an operator or of a cast that was called by its name. In expressions that are to be
/// printed only.
pub static WRITTEN_CALL: FunctionRow =
    row(9955, "call", false, false, Body::Scalar(|a, _| Ok(a[0].clone())));

/// `(array)`: VARIADIC before a call's last argument. In expressions that are to be printed only.
pub static SPREAD: FunctionRow =
    row(9956, "variadic", false, false, Body::Scalar(|a, _| Ok(a[0].clone())));

/// `(value, form, bound …, form, bound …)`: subscripts as they were written, each with a letter: `i` a single one; a slice
/// with both bounds `b`, the lower `l`, the upper `u`, none `n`. In expressions that are to be printed only.
pub static WRITTEN_SUBSCRIPTS: FunctionRow =
    row(9957, "subscripts", false, false, Body::Scalar(|a, _| Ok(a[0].clone())));

/// `(rows, template)`: the rows of an array of rows, whose columns are the template's.
pub static RECORDS_OF: FunctionRow =
    row(9932, "records", true, true, Body::Set(|a, _| Ok(a[0].as_array().items.clone())));

/// `(row, template)`: the row, which must have the template's columns.
pub static FITTING_ROW: FunctionRow = row(9925, "row", true, false, Body::Scalar(|a, _| fitted(a)));

/// `(array, lower, upper, lower, upper, …)`: a slice; a bound that is a text was left out.
pub static ARRAY_SLICE: FunctionRow =
    row(9902, "array_slice", true, false, Body::Scalar(|a, _| slice(a)));

/// `(array, value, subscript, …)`: the array with one item replaced or added.
pub static ARRAY_SET: FunctionRow =
    row(9903, "array_set", false, false, Body::Typed(|a, t, _| set_item(a, t.args)));

/// `(value)`: arguments of the JSON aggregates as JSON, made while their types are known.
pub static JSON_ITEM: FunctionRow =
    row(9905, "to_json", false, false, Body::Typed(super::json::json_item));
/// See [`JSON_ITEM`].
pub static JSONB_ITEM: FunctionRow =
    row(9906, "to_jsonb", false, false, Body::Typed(super::json::jsonb_item));
/// See [`JSON_ITEM`].
pub static JSON_KEY: FunctionRow =
    row(9907, "json_key", true, false, Body::Typed(super::json::json_key));

/// `(array, oid of a cast's function)`: the array with each item cast.
pub static ARRAY_CAST: FunctionRow =
    row(9908, "array_cast", true, false, Body::Typed(|a, t, cx| cast_items(a, t, cx)));

/// `(value, oid of a type)`: the value, once the constraints of the domains in that type are checked.
pub static DOMAIN_CHECK: FunctionRow =
    row(9909, "domain_check", false, false, Body::Session(SessionFunction::DomainCheck));

/// `(row, number)`: a field of a row, from 0.
pub static FIELD: FunctionRow = row(9910, "field", true, false, Body::Scalar(|a, _| Ok(field(a))));

/// `(row, number, value, template)`: the row with one field replaced. Without a row: the template.
pub static FIELD_SET: FunctionRow =
    row(9911, "field_set", false, false, Body::Scalar(|a, _| Ok(set_field(a))));

/// `(array, values, low, high, low, high, …)`: the array with a slice replaced; see [`ARRAY_SLICE`].
pub static ARRAY_SET_SLICE: FunctionRow = row(
    9912,
    "array_set_slice",
    false,
    false,
    Body::Typed(|a, t, _| super::array_slice::set(a, t.args)),
);

/// `(jsonb, value, step, …)`: the document with what the steps lead to replaced.
pub static JSONB_ASSIGN: FunctionRow =
    row(9913, "jsonb_assign", false, false, Body::Scalar(|a, _| jsonb_assign(a)));

/// `(arguments, array, oid of a variadic function of "any")`: the call with the array's items as further
/// arguments.
pub static VARIADIC_CALL: FunctionRow =
    row(9914, "variadic", false, false, Body::Typed(|a, t, cx| variadic_call(a, t, cx)));

/// `(text, slot, name of the collation)`: what the text is compared by under a collation of ICU
/// ([`Slot::key`]); bytea, or an array of bytea for one of texts.
pub static SORT_KEY: FunctionRow = row(
    9916,
    "sort_key",
    true,
    false,
    Body::Scalar(|a, _| Ok(Slot(a[1].as_oid() as u16).key(&a[0]))),
);

/// `(text, slot, name of the collation)`: `lower` by a collation of ICU.
pub static LOWER: FunctionRow = cased(9917, "lower", |a, _| in_case(a, Case::Lower));

/// `(text, slot, name of the collation)`: `upper` by a collation of ICU.
pub static UPPER: FunctionRow = cased(9918, "upper", |a, _| in_case(a, Case::Upper));

/// `(text, slot, name of the collation)`: `initcap` by a collation of ICU.
pub static INITCAP: FunctionRow = cased(9919, "initcap", |a, _| in_case(a, Case::Title));

/// `(greatest, slot, values)`: GREATEST or LEAST by a collation of ICU.
pub static EXTREME: FunctionRow =
    row(9921, "extreme", false, false, Body::Scalar(|a, _| Ok(extreme(a))));

fn extreme(a: &[Datum]) -> Datum {
    let slot = Slot(a[1].as_oid() as u16);
    let known = a[2..].iter().filter(|v| !v.is_null()).map(|v| (slot.key(v), v));
    let order = |x: &(Datum, &Datum), y: &(Datum, &Datum)| crate::order::compare(&x.0, &y.0);
    let best = match a[0] {
        // Of equal values the first one.
        Datum::Bool(true) => known.rev().max_by(order),
        _ => known.min_by(order),
    };
    best.map_or(Datum::Null, |(_, v)| v.clone())
}

const fn aggregate(
    oid: u32,
    name: &'static str,
    start: fn() -> Box<dyn super::Accumulator>,
) -> super::AggregateRow {
    super::AggregateRow {
        oid: Oid(oid),
        name,
        args: &[oids::ANY, oids::BYTEA],
        result: oids::ANY,
        strict: true,
        start,
    }
}

/// `(value, key)`: the value with the least key; the last of several.
pub static MIN_BY: super::AggregateRow =
    aggregate(9922, "min", || Box::new(super::aggregate::ExtremeBy::<false>::default()));

/// `(value, key)`: the value with the greatest key; the last of several.
pub static MAX_BY: super::AggregateRow =
    aggregate(9923, "max", || Box::new(super::aggregate::ExtremeBy::<true>::default()));

/// The first value: what a group shows whose values are equal without being the same.
pub static FIRST: super::AggregateRow = super::AggregateRow {
    args: &[oids::ANY],
    ..aggregate(9924, "first", || Box::new(super::aggregate::First::default()))
};

/// In place of an aggregate whose steps are in its call.
pub static OWN_AGGREGATE: super::AggregateRow = super::AggregateRow {
    args: &[oids::ANY],
    ..aggregate(9927, "", || Box::new(super::aggregate::First::default()))
};

/// `(arguments, what for)`: the error of a call whose collation nobody knows.
pub static INDETERMINATE: FunctionRow = FunctionRow {
    volatility: Volatility::Volatile,
    ..row(9920, "indeterminate", true, false, Body::Scalar(|a, _| Err(indeterminate(a))))
};

const fn cased(oid: u32, name: &'static str, body: super::ScalarBody) -> FunctionRow {
    FunctionRow { result: oids::TEXT, ..row(oid, name, true, false, Body::Scalar(body)) }
}

fn in_case(a: &[Datum], case: Case) -> Result<Datum> {
    Ok(Datum::from(Slot(a[1].as_oid() as u16).in_case(case, a[0].as_str())))
}

fn indeterminate(a: &[Datum]) -> base::Error {
    let what = a.last().map(|w| w.as_str().to_owned()).unwrap_or_default();
    err!(INDETERMINATE_COLLATION, "could not determine which collation to use for {what}")
        .hint("Use the COLLATE clause to set the collation explicitly.")
}

fn jsonb_assign(a: &[Datum]) -> Result<Datum> {
    let target = match &a[0] {
        Datum::Jsonb(j) => Some(&**j),
        _ => None,
    };
    let null = crate::jsonb::Json::Null;
    let value = match &a[1] {
        Datum::Jsonb(j) => &**j,
        _ => &null,
    };
    crate::jsonb::assign_path(target, &a[2..], value).map(Datum::jsonb)
}

fn variadic_call(a: &[Datum], types: CallTypes<'_>, cx: &FormatContext) -> Result<Datum> {
    let [fixed @ .., array, function] = a else {
        return Err(base::Error::internal("a variadic call without an array"));
    };
    let function = super::function(Oid(function.as_oid()))
        .ok_or_else(|| base::Error::internal("a variadic call without a function"))?;
    let mut args = fixed.to_vec();
    let mut arg_types = types.args[..fixed.len()].to_vec();
    match array {
        Datum::Array(array) => {
            // As arguments, and once more as what the function makes of them.
            crate::bulk::ask(3 * size_of_val(array.items.as_slice()))?;
            arg_types.resize(args.len() + array.items.len(), array.element);
            args.extend_from_slice(&array.items);
        }
        // Only format() does without.
        _ if function.name == "format" => {}
        _ => return Ok(Datum::Null),
    }
    let inner = CallTypes { args: &arg_types, result: types.result };
    function
        .body
        .run(&args, inner, cx)
        .ok_or_else(|| base::Error::unsupported("VARIADIC for this function"))?
}

fn field(a: &[Datum]) -> Datum {
    match &a[0] {
        Datum::Record(r) => r.fields.get(a[1].as_int4() as usize).cloned().unwrap_or_default(),
        _ => Datum::Null,
    }
}

fn set_field(a: &[Datum]) -> Datum {
    let row = if a[0].is_null() { &a[3] } else { &a[0] };
    let Datum::Record(r) = row else { return Datum::Null };
    let mut fields = r.fields.to_vec();
    if let Some(field) = fields.get_mut(a[1].as_int4() as usize) {
        *field = a[2].clone();
    }
    Datum::record(r.shape.clone(), fields)
}

fn cast_items(a: &[Datum], types: CallTypes<'_>, cx: &FormatContext) -> Result<Datum> {
    let array = a[0].as_array();
    let element = crate::TypeIo::get(types.result).map_or(oids::TEXT, |t| t.element);
    let function = super::function(Oid(a[1].as_oid()))
        .ok_or_else(|| base::Error::internal("a cast without a function"))?;
    let extra = [Datum::Int4(-1), Datum::Bool(false)];
    let inner = CallTypes { args: &[array.element], result: element };
    let mut items = Vec::with_capacity(array.items.len());
    for item in &array.items {
        if item.is_null() && function.strict {
            items.push(Datum::Null);
            continue;
        }
        let mut args = vec![item.clone()];
        args.extend_from_slice(&extra[..function.args.len().saturating_sub(1).min(2)]);
        let done = function.body.run(&args, inner, cx);
        items.push(done.ok_or_else(|| base::Error::unsupported("this cast of an array"))??);
    }
    Ok(Datum::Array(Array { element, dims: array.dims.clone(), items }.into()))
}

fn shaped(a: &[Datum]) -> Datum {
    match (&a[0], &a[1]) {
        (Datum::Record(r), Datum::Record(template)) => {
            Datum::record(template.shape.clone(), r.fields.to_vec())
        }
        (value, _) => value.clone(),
    }
}

fn fitted(a: &[Datum]) -> Result<Datum> {
    if let (Datum::Record(r), Datum::Record(template)) = (&a[0], &a[1]) {
        check_fit(&r.shape, &template.shape)?;
    }
    Ok(a[0].clone())
}

/// Whether a row that a function gives has the columns that the query expects.
///
/// # Errors
/// `42804`.
pub fn check_fit(given: &Arc<Shape>, expected: &Arc<Shape>) -> Result<()> {
    if Arc::ptr_eq(given, expected) {
        return Ok(());
    }
    let differ = |detail: String| {
        err!(DATATYPE_MISMATCH, "function return row and query-specified return row do not match")
            .detail(detail)
    };
    let (have, want) = (given.columns.len(), expected.columns.len());
    if have != want {
        let s = if have == 1 { "" } else { "s" };
        return Err(differ(format!(
            "Returned row contains {have} attribute{s}, but query expects {want}."
        )));
    }
    for (n, ((_, have), (_, want))) in given.columns.iter().zip(&expected.columns).enumerate() {
        if !same_form(*have, *want) {
            return Err(differ(format!(
                "Returned type {} at ordinal position {}, but query expects {}.",
                crate::io::format_type(*have, -1),
                n + 1,
                crate::io::format_type(*want, -1)
            )));
        }
    }
    Ok(())
}

/// Whether values of a type can stand for those of another as they are.
fn same_form(have: Oid, want: Oid) -> bool {
    let text = |ty: Oid| matches!(ty, oids::TEXT | oids::VARCHAR | oids::UNKNOWN);
    have == want || text(have) && text(want)
}

fn slice(a: &[Datum]) -> Result<Datum> {
    let array = a[0].as_array();
    let empty = || Ok(Datum::array(array.element, Vec::new()));
    let asked = (a.len() - 1) / 2;
    if array.dims.is_empty() || array.dims.len() < asked {
        return empty();
    }
    // (first, count) of each dimension, from 0.
    let mut parts = Vec::with_capacity(array.dims.len());
    for (i, (len, low)) in array.dims.iter().enumerate() {
        let bound = |at: usize, default: i32| match a.get(at) {
            Some(Datum::Int4(v)) if i < asked => *v,
            _ => default,
        };
        let high = low + len - 1;
        let from = bound(1 + 2 * i, *low).max(*low);
        let to = bound(2 + 2 * i, high).min(high);
        if from > to {
            return empty();
        }
        parts.push(((from - low) as usize, (to - from + 1) as usize));
    }
    let mut items = Vec::new();
    take(array, &parts, 0, 0, &mut items);
    let dims = parts.iter().map(|(_, count)| (*count as i32, 1)).collect();
    Ok(Datum::Array(Array { element: array.element, dims, items }.into()))
}

fn take(array: &Array, parts: &[(usize, usize)], level: usize, base: usize, out: &mut Vec<Datum>) {
    let (from, count) = parts[level];
    let len = array.dims[level].0 as usize;
    for i in from..from + count {
        let at = base * len + i;
        if level + 1 == parts.len() {
            out.push(array.items[at].clone());
        } else {
            take(array, parts, level + 1, at, out);
        }
    }
}

/// `array[subscripts] = value`; one dimension grows, with NULLs in between.
fn set_item(a: &[Datum], types: &[Oid]) -> Result<Datum> {
    let value = &a[1];
    let mut subscripts = Vec::with_capacity(a.len() - 2);
    for s in &a[2..] {
        if s.is_null() {
            return Err(err!(
                NULL_VALUE_NOT_ALLOWED,
                "array subscript in assignment must not be null"
            ));
        }
        subscripts.push(s.as_int4());
    }
    let wrong = || err!(ARRAY_SUBSCRIPT_ERROR, "wrong number of array subscripts");
    let mut array = match &a[0] {
        Datum::Array(x) if !x.dims.is_empty() => (**x).clone(),
        _ => {
            let element = crate::TypeIo::get(types[0]).map_or(oids::TEXT, |t| t.element);
            let dims = subscripts.iter().map(|s| (1, *s)).collect();
            let array = Array { element, dims, items: vec![value.clone()] };
            return Ok(Datum::Array(array.into()));
        }
    };
    if array.dims.len() != subscripts.len() {
        return Err(wrong());
    }
    if let [(len, low)] = array.dims.as_mut_slice() {
        let at = i64::from(subscripts[0]) - i64::from(*low);
        let size = at.unsigned_abs() as usize + array.items.len();
        if size > 134_217_727 {
            return Err(err!(
                PROGRAM_LIMIT_EXCEEDED,
                "array size exceeds the maximum allowed (134217727)"
            ));
        }
        if at < 0 {
            let mut items = vec![Datum::Null; (-at) as usize];
            items.append(&mut array.items);
            items[0] = value.clone();
            array.items = items;
            *low = subscripts[0];
        } else {
            let at = at as usize;
            if at >= array.items.len() {
                array.items.resize(at + 1, Datum::Null);
            }
            array.items[at] = value.clone();
        }
        *len = array.items.len() as i32;
        return Ok(Datum::Array(array.into()));
    }
    let mut place = 0;
    for (s, (len, low)) in subscripts.iter().zip(&array.dims) {
        if *s < *low || *s >= low + len {
            return Err(err!(ARRAY_SUBSCRIPT_ERROR, "array subscript out of range"));
        }
        place = place * *len as usize + (s - low) as usize;
    }
    array.items[place] = value.clone();
    Ok(Datum::Array(array.into()))
}
