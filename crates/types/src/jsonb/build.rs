//! SQL values as JSON: `to_json`, `to_jsonb`, `row_to_json` and the aggregates.
//!
//! Numbers and booleans stay what they are, dates take ISO form with a `T`, arrays and rows become
//! arrays and objects, json stays as it is; anything else is a string of its text.

use base::{Oid, Result};

use super::Json;
use crate::bulk;
use crate::datetime;
use crate::datum::{Array, Datum, Record, Text};
use crate::io::{self, FormatContext};
use crate::{json, oids};

/// The form that a value takes.
enum Form {
    Null,
    Bool(bool),
    /// A number's text, or that of NaN and the infinities, which is a string.
    Number(Vec<u8>),
    /// JSON text.
    Json(Text),
    Text(Vec<u8>),
}

fn is_number(text: &[u8]) -> bool {
    !text.iter().any(|b| matches!(b, b'N' | b'I'))
}

fn form(ty: Oid, value: &Datum, cx: &FormatContext) -> Result<Form> {
    let mut out = Vec::new();
    Ok(match value {
        Datum::Null => Form::Null,
        Datum::Bool(b) => Form::Bool(*b),
        Datum::Int2(_)
        | Datum::Int4(_)
        | Datum::Float4(_)
        | Datum::Float8(_)
        | Datum::Numeric(_) => {
            io::output(ty, value, cx, &mut out)?;
            Form::Number(out)
        }
        Datum::Int8(_) if ty != oids::XID8 && ty != oids::PG_LSN => {
            io::output(ty, value, cx, &mut out)?;
            Form::Number(out)
        }
        Datum::Date(_) | Datum::Timestamp(_) | Datum::Timestamptz(_) => {
            datetime::write_xsd(value, cx, &mut out);
            Form::Text(out)
        }
        Datum::Text(s) if ty == oids::JSON => Form::Json(s.clone()),
        Datum::Jsonb(j) => Form::Json(j.to_text()?),
        _ => {
            io::output(ty, value, cx, &mut out)?;
            Form::Text(out)
        }
    })
}

fn put_newline(pretty: bool, out: &mut Vec<u8>) {
    if pretty {
        out.extend_from_slice(b"\n ");
    }
}

/// Appends a value's JSON text, as `to_json` does; `pretty` puts the items of the outermost array
/// or row on lines of their own.
///
/// # Errors
/// `54001`; those of output.
pub fn write_datum(
    ty: Oid,
    value: &Datum,
    pretty: bool,
    cx: &FormatContext,
    out: &mut Vec<u8>,
) -> Result<()> {
    match value {
        Datum::Array(a) => write_array(a, pretty, cx, out),
        Datum::Record(r) => write_record(r, pretty, cx, out),
        _ => {
            match form(ty, value, cx)? {
                Form::Null => out.extend_from_slice(b"null"),
                Form::Bool(true) => out.extend_from_slice(b"true"),
                Form::Bool(false) => out.extend_from_slice(b"false"),
                Form::Number(text) if is_number(&text) => out.extend_from_slice(&text),
                Form::Number(text) | Form::Text(text) => {
                    json::put_string(&String::from_utf8_lossy(&text), out)?;
                }
                Form::Json(text) => bulk::push_bytes(out, text.as_bytes())?,
            }
            Ok(())
        }
    }
}

fn write_array(a: &Array, pretty: bool, cx: &FormatContext, out: &mut Vec<u8>) -> Result<()> {
    let mut items = a.items.iter();
    write_level(a.element, &a.dims, &mut items, pretty, cx, out)
}

fn write_level(
    element: Oid,
    dims: &[(i32, i32)],
    items: &mut std::slice::Iter<'_, Datum>,
    pretty: bool,
    cx: &FormatContext,
    out: &mut Vec<u8>,
) -> Result<()> {
    let (len, inner) = dims.split_first().map_or((0, dims), |(d, rest)| (d.0, rest));
    out.push(b'[');
    for i in 0..len {
        sched::check_interrupts()?;
        if i > 0 {
            out.push(b',');
            put_newline(pretty, out);
        }
        if inner.is_empty() {
            write_datum(element, items.next().unwrap_or(&Datum::Null), false, cx, out)?;
        } else {
            write_level(element, inner, items, false, cx, out)?;
        }
    }
    out.push(b']');
    Ok(())
}

fn write_record(r: &Record, pretty: bool, cx: &FormatContext, out: &mut Vec<u8>) -> Result<()> {
    out.push(b'{');
    for (i, (value, (name, ty))) in r.fields.iter().zip(&r.shape.columns).enumerate() {
        if i > 0 {
            out.push(b',');
            put_newline(pretty, out);
        }
        json::write_string(name, out);
        out.push(b':');
        write_datum(*ty, value, false, cx, out)?;
    }
    out.push(b'}');
    Ok(())
}

/// A value as `to_jsonb` makes it.
///
/// # Errors
/// As [`write_datum`]; `22P02` for a damaged json text.
pub fn from_datum(ty: Oid, value: &Datum, cx: &FormatContext) -> Result<Json> {
    match value {
        Datum::Jsonb(j) => Ok((**j).clone()),
        Datum::Array(a) => {
            let mut items = a.items.iter();
            from_level(a.element, &a.dims, &mut items, cx)
        }
        Datum::Record(r) => {
            let mut members = Vec::with_capacity(r.fields.len());
            for (value, (name, ty)) in r.fields.iter().zip(&r.shape.columns) {
                members.push((name.clone(), from_datum(*ty, value, cx)?));
            }
            Ok(Json::object(members))
        }
        _ => Ok(match form(ty, value, cx)? {
            Form::Null => Json::Null,
            Form::Bool(b) => Json::Bool(b),
            Form::Number(text) if is_number(&text) => {
                Json::Number(crate::Numeric::parse(&String::from_utf8_lossy(&text))?)
            }
            Form::Number(text) | Form::Text(text) => Json::string(&String::from_utf8_lossy(&text)),
            Form::Json(text) => Json::parse(&text)?,
        }),
    }
}

fn from_level(
    element: Oid,
    dims: &[(i32, i32)],
    items: &mut std::slice::Iter<'_, Datum>,
    cx: &FormatContext,
) -> Result<Json> {
    let (len, inner) = dims.split_first().map_or((0, dims), |(d, rest)| (d.0, rest));
    // Copied once more into the array.
    bulk::ask(2 * len as usize * size_of::<Json>())?;
    let mut out = Vec::with_capacity(len as usize);
    for _ in 0..len {
        sched::check_interrupts()?;
        out.push(if inner.is_empty() {
            from_datum(element, items.next().unwrap_or(&Datum::Null), cx)?
        } else {
            from_level(element, inner, items, cx)?
        });
    }
    Ok(Json::array(out))
}
