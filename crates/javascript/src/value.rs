//! Values of SQL as values of JavaScript, and back.
//!
//! | SQL | JavaScript |
//! |---|---|
//! | NULL | `null` (and `undefined`, back) |
//! | boolean | boolean |
//! | int2, int4, oid, float4, float8, numeric | number |
//! | int8 | number up to 2^53 - 1, else BigInt |
//! | json, jsonb | what `JSON.parse` makes of it |
//! | bytea | `Uint8Array` |
//! | date, timestamp, timestamptz | `Date` (a timestamp as UTC); infinities as text |
//! | arrays | arrays, nested by dimension; typed arrays, back |
//! | rows | objects by column |
//! | all else | string, as the type prints |

use std::sync::Arc;

use base::{Error, Oid, Result, err};
use exec::ExecContext;
use exec::nested::{convert, text_of};
use rquickjs::convert::Coerced;
use rquickjs::{Array, BigInt, Ctx, Function, IntoJs, Object, TypedArray, Value};
use types::datum::{Array as SqlArray, Shape};
use types::oids::*;
use types::{Datum, TypeIo};

use crate::failure::Failure;
use crate::lend::copied_bytes;

const SAFE_INTEGER: i64 = (1 << 53) - 1;
/// Milliseconds from 1970 to 2000.
const EPOCH_MS: f64 = 946_684_800_000.0;

type Js<'js> = std::result::Result<Value<'js>, Failure>;

/// A value for JavaScript.
///
/// # Errors
/// Those of printing it; of memory.
pub fn to_js<'js>(ctx: &Ctx<'js>, value: &Datum, ty: Oid, cx: &mut ExecContext<'_>) -> Js<'js> {
    sched::check_stack()?;
    Ok(match value {
        Datum::Null => Value::new_null(ctx.clone()),
        Datum::Bool(b) => Value::new_bool(ctx.clone(), *b),
        Datum::Int2(n) => Value::new_int(ctx.clone(), i32::from(*n)),
        Datum::Int4(n) => Value::new_int(ctx.clone(), *n),
        Datum::Int8(n) if ty == INT8 => match n.unsigned_abs() <= SAFE_INTEGER as u64 {
            true => Value::new_number(ctx.clone(), *n as f64),
            false => BigInt::from_i64(ctx.clone(), *n)?.into_value(),
        },
        Datum::Oid(n) if ty == OID => Value::new_number(ctx.clone(), f64::from(*n)),
        Datum::Float4(f) => Value::new_number(ctx.clone(), f64::from(*f)),
        Datum::Float8(f) => Value::new_number(ctx.clone(), *f),
        Datum::Numeric(_) => {
            let text = types::io::to_text(ty, value, cx.format)?;
            Value::new_number(ctx.clone(), text.parse().unwrap_or(f64::NAN))
        }
        Datum::Bytea(bytes) => TypedArray::<u8>::new_copy(ctx.clone(), &bytes[..])?.into_value(),
        Datum::Date(days) if !matches!(*days, i32::MIN | i32::MAX) => {
            date(ctx, EPOCH_MS + f64::from(*days) * 86_400_000.0)?
        }
        Datum::Timestamp(us) | Datum::Timestamptz(us) if !matches!(*us, i64::MIN | i64::MAX) => {
            date(ctx, EPOCH_MS + (*us as f64 / 1000.0).floor())?
        }
        Datum::Array(array) => {
            let mut at = 0;
            array_to_js(ctx, array, 0, &mut at, cx)?
        }
        Datum::Record(row) => {
            let object = Object::new(ctx.clone())?;
            for ((name, ty), field) in row.shape.columns.iter().zip(row.fields.iter()) {
                object.set(&**name, to_js(ctx, field, *ty, cx)?)?;
            }
            object.into_value()
        }
        Datum::Jsonb(_) => ctx.json_parse(text_of(value, ty, cx)?)?,
        Datum::Text(text) if ty == JSON => ctx.json_parse(text.to_string())?,
        Datum::Text(text) | Datum::Bpchar(text) => (&**text).into_js(ctx)?,
        _ => text_of(value, ty, cx)?.into_js(ctx)?,
    })
}

fn date<'js>(ctx: &Ctx<'js>, ms: f64) -> rquickjs::Result<Value<'js>> {
    let class: rquickjs::function::Constructor<'js> = ctx.globals().get("Date")?;
    class.construct((ms,))
}

fn array_to_js<'js>(
    ctx: &Ctx<'js>,
    array: &SqlArray,
    level: usize,
    at: &mut usize,
    cx: &mut ExecContext<'_>,
) -> Js<'js> {
    let out = Array::new(ctx.clone())?;
    let length = array.dims.get(level).map_or(0, |dim| dim.0 as usize);
    for n in 0..length {
        sched::check_interrupts()?;
        let item = if level + 1 < array.dims.len() {
            array_to_js(ctx, array, level + 1, at, cx)?
        } else {
            let item = array.items.get(*at).unwrap_or(&Datum::Null);
            *at += 1;
            to_js(ctx, item, array.element, cx)?
        };
        out.set(n, item)?;
    }
    Ok(out.into_value())
}

/// A value of a type.
///
/// # Errors
/// When it is none; an exception of the value's own methods.
pub fn from_js<'js>(
    ctx: &Ctx<'js>,
    value: Value<'js>,
    ty: Oid,
    cx: &mut ExecContext<'_>,
) -> std::result::Result<Datum, Failure> {
    sched::check_stack()?;
    if value.is_null() || value.is_undefined() {
        return match types::user::has_domains(ty) {
            true => Ok(convert(Datum::Null, TEXT, ty, cx)?),
            false => Ok(Datum::Null),
        };
    }
    let number = value.as_number();
    let datum = match (ty, number) {
        (BOOL, _) if value.is_bool() => value.as_bool().map(Datum::Bool),
        (INT4, Some(n)) => in_range(n, f64::from(i32::MIN), f64::from(i32::MAX), "integer")
            .map(|n| Some(Datum::Int4(n as i32)))?,
        (INT2, Some(n)) => in_range(n, f64::from(i16::MIN), f64::from(i16::MAX), "smallint")
            .map(|n| Some(Datum::Int2(n as i16)))?,
        (INT8, Some(n)) => in_range(n, i64::MIN as f64, (i64::MAX - 1023) as f64, "bigint")
            .map(|n| Some(Datum::Int8(n as i64)))?,
        (FLOAT8, Some(n)) => Some(Datum::Float8(n)),
        (FLOAT4, Some(n)) => Some(Datum::Float4(n as f32)),
        (TEXT | VARCHAR, _) if value.is_string() => Some(Datum::text(&value.get::<String>()?)),
        (JSON | JSONB, _) => {
            let text = ctx.json_stringify(value.clone())?;
            let text = match text {
                Some(text) => text.to_string()?,
                None => return Ok(Datum::Null),
            };
            Some(types::io::input(ty, -1, &text, cx.format)?)
        }
        (BYTEA, _) => copied_bytes(&value).map(|b| Datum::Bytea(b.into())),
        _ => None,
    };
    if let Some(datum) = datum {
        return Ok(datum);
    }
    if let Some(element) = TypeIo::array_element(ty)
        && let Some(object) = value.as_object()
        && let Some(array) = array_from_js(ctx, object, element, cx)?
    {
        return Ok(array);
    }
    if let (Some(shape), Some(object)) = (types::user::shape(ty), value.as_object()) {
        return record(ctx, object, &shape, cx);
    }
    let text = string(ctx, value)?;
    if types::io::is_reg(ty) || types::user::is_user(ty) {
        return Ok(convert(Datum::text(&text), TEXT, ty, cx)?);
    }
    Ok(types::io::input(ty, -1, &text, cx.format)?)
}

/// `22003` for a number that the type has not.
fn in_range(n: f64, least: f64, most: f64, ty: &str) -> Result<f64> {
    match n.trunc() {
        n if n >= least && n <= most => Ok(n),
        _ => Err(err!(NUMERIC_VALUE_OUT_OF_RANGE, "{ty} out of range")),
    }
}

/// As `String(value)` has it; a Date in ISO 8601.
fn string<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> std::result::Result<String, Failure> {
    if let Some(object) = value.as_object() {
        let class: Object<'js> = ctx.globals().get("Date")?;
        if object.is_instance_of(&class) {
            let iso: Function<'js> = object.get("toISOString")?;
            return Ok(iso.call((rquickjs::function::This(object.clone()),))?);
        }
    }
    Ok(value.get::<Coerced<String>>()?.0)
}

/// A row of the columns that the shape names.
///
/// # Errors
/// Those of its values.
pub fn record<'js>(
    ctx: &Ctx<'js>,
    object: &Object<'js>,
    shape: &Arc<Shape>,
    cx: &mut ExecContext<'_>,
) -> std::result::Result<Datum, Failure> {
    let mut fields = Vec::with_capacity(shape.columns.len());
    for (name, ty) in &shape.columns {
        let field: Value<'js> = object.get(&**name)?;
        fields.push(from_js(ctx, field, *ty, cx)?);
    }
    Ok(Datum::record(shape.clone(), fields))
}

/// None when the object is nothing like an array.
fn array_from_js<'js>(
    ctx: &Ctx<'js>,
    object: &Object<'js>,
    element: Oid,
    cx: &mut ExecContext<'_>,
) -> std::result::Result<Option<Datum>, Failure> {
    let Some(length) = length_of(object)? else { return Ok(None) };
    let mut dims = vec![length];
    let mut first: Option<Object<'js>> = object.get::<_, Value<'js>>(0)?.into_object();
    while let Some(inner) = first.take() {
        if TypeIo::array_element(element).is_some() || dims.len() == 6 {
            break;
        }
        let nested = element != JSON && element != JSONB && types::user::shape(element).is_none();
        match length_of(&inner)? {
            Some(length) if nested => {
                dims.push(length);
                first = inner.get::<_, Value<'js>>(0)?.into_object();
            }
            _ => break,
        }
    }
    let mut items = Vec::new();
    collect(ctx, object, element, &dims, &mut items, cx)?;
    if items.is_empty() {
        dims.clear();
    }
    let dims = dims.iter().map(|n| (*n as i32, 1)).collect();
    Ok(Some(Datum::Array(Arc::new(SqlArray { element, dims, items }))))
}

/// The length of an array or typed array.
fn length_of(object: &Object<'_>) -> std::result::Result<Option<usize>, Failure> {
    if let Some(array) = object.as_array() {
        return Ok(Some(array.len()));
    }
    let typed = object.is_typed_array::<i8>()
        || object.is_typed_array::<u8>()
        || object.is_typed_array::<i16>()
        || object.is_typed_array::<u16>()
        || object.is_typed_array::<i32>()
        || object.is_typed_array::<u32>()
        || object.is_typed_array::<i64>()
        || object.is_typed_array::<u64>()
        || object.is_typed_array::<f32>()
        || object.is_typed_array::<f64>();
    if !typed {
        return Ok(None);
    }
    Ok(Some(object.get("length")?))
}

fn collect<'js>(
    ctx: &Ctx<'js>,
    object: &Object<'js>,
    element: Oid,
    dims: &[usize],
    items: &mut Vec<Datum>,
    cx: &mut ExecContext<'_>,
) -> std::result::Result<(), Failure> {
    if length_of(object)? != Some(dims[0]) {
        return Err(ragged().into());
    }
    for n in 0..dims[0] {
        sched::check_interrupts()?;
        let item: Value<'js> = object.get(n as u32)?;
        if dims.len() == 1 {
            items.push(from_js(ctx, item, element, cx)?);
        } else {
            let inner = item.as_object().ok_or_else(ragged)?;
            collect(ctx, inner, element, &dims[1..], items, cx)?;
        }
    }
    Ok(())
}

fn ragged() -> Error {
    err!(
        ARRAY_SUBSCRIPT_ERROR,
        "multidimensional arrays must have array expressions with matching dimensions"
    )
}
