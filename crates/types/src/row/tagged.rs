//! Values with a tag each: the items of arrays and rows, whose types a row's layout doesn't know,
//! ranges, and all values of types that users made.

use std::sync::Arc;

use base::{Error, Oid, Result};

use super::{Kind, RowLayout, Walk, corrupt, encode_value, put_length};
use crate::datum::{Array, Bound, Datum, Multirange, Range, Record, Shape, Text};
use crate::user::UserKind;

macro_rules! tags { ($($name:ident = $n:literal;)*) => { $(const $name: u8 = $n;)* }; }
tags! {
    T_NULL = 0; T_BOOL = 1; T_INT2 = 2; T_INT4 = 3; T_INT8 = 4; T_FLOAT4 = 5; T_FLOAT8 = 6;
    T_NUMERIC = 7; T_TEXT = 8; T_BPCHAR = 9; T_BYTEA = 10; T_CHAR = 11; T_DATE = 12; T_TIME = 13;
    T_TIMESTAMP = 14; T_TIMESTAMPTZ = 15; T_INTERVAL = 16; T_OID = 17; T_TID = 18; T_UUID = 19;
    T_ARRAY = 20; T_RECORD = 21; T_TIMETZ = 22; T_MONEY = 23; T_INET = 24; T_MACADDR = 25;
    T_MACADDR8 = 26; T_BITS = 27; T_JSONB = 28; T_JSONPATH = 29; T_RANGE = 30; T_MULTIRANGE = 31;
    T_ENUM = 32; T_COMPOSITE = 33; T_OPEN = 34;
}

/// Each tag's form, for all but the composite ones.
const TAG_KINDS: [Kind; 30] = [
    Kind::Tagged,
    Kind::Bool,
    Kind::Int2,
    Kind::Int4,
    Kind::Int8,
    Kind::Float4,
    Kind::Float8,
    Kind::Numeric,
    Kind::Text,
    Kind::Bpchar,
    Kind::Bytea,
    Kind::Char,
    Kind::Date,
    Kind::Time,
    Kind::Timestamp,
    Kind::Timestamptz,
    Kind::Interval,
    Kind::Oid,
    Kind::Tid,
    Kind::Uuid,
    Kind::Tagged,
    Kind::Tagged,
    Kind::Timetz,
    Kind::Money,
    Kind::Inet,
    Kind::Macaddr,
    Kind::Macaddr8,
    Kind::Bits,
    Kind::Jsonb,
    Kind::Jsonpath,
];

fn tag_of(value: &Datum) -> u8 {
    match value {
        Datum::Null => T_NULL,
        Datum::Bool(_) => T_BOOL,
        Datum::Int2(_) => T_INT2,
        Datum::Int4(_) => T_INT4,
        Datum::Int8(_) => T_INT8,
        Datum::Float4(_) => T_FLOAT4,
        Datum::Float8(_) => T_FLOAT8,
        Datum::Numeric(_) => T_NUMERIC,
        Datum::Text(_) => T_TEXT,
        Datum::Bpchar(_) => T_BPCHAR,
        Datum::Bytea(_) => T_BYTEA,
        Datum::Char(_) => T_CHAR,
        Datum::Date(_) => T_DATE,
        Datum::Time(_) => T_TIME,
        Datum::Timestamp(_) => T_TIMESTAMP,
        Datum::Timestamptz(_) => T_TIMESTAMPTZ,
        Datum::Interval(_) => T_INTERVAL,
        Datum::Oid(_) => T_OID,
        Datum::Tid(_) => T_TID,
        Datum::Uuid(_) => T_UUID,
        Datum::Array(_) => T_ARRAY,
        Datum::Record(r) if crate::user::is_user(r.shape.ty) => T_COMPOSITE,
        Datum::Record(_) => T_RECORD,
        Datum::Timetz(..) => T_TIMETZ,
        Datum::Money(_) => T_MONEY,
        Datum::Inet(_) => T_INET,
        Datum::Macaddr(_) => T_MACADDR,
        Datum::Macaddr8(_) => T_MACADDR8,
        Datum::Bits(_) => T_BITS,
        Datum::Jsonb(_) => T_JSONB,
        Datum::Jsonpath(_) => T_JSONPATH,
        Datum::Range(_) => T_RANGE,
        Datum::Multirange(_) => T_MULTIRANGE,
        Datum::Enum(..) => T_ENUM,
        Datum::Open(_) => T_OPEN,
    }
}

/// Appends any value with its tag.
pub(super) fn tagged(value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    let tag = tag_of(value);
    out.push(tag);
    match value {
        Datum::Null => Ok(()),
        Datum::Array(a) => {
            out.extend_from_slice(&a.element.0.to_le_bytes());
            out.push(a.dims.len() as u8);
            for (len, low) in &a.dims {
                out.extend_from_slice(&len.to_le_bytes());
                out.extend_from_slice(&low.to_le_bytes());
            }
            out.extend_from_slice(&(a.items.len() as u32).to_le_bytes());
            a.items.iter().try_for_each(|item| tagged(item, out))
        }
        Datum::Enum(ty, rank) => {
            out.extend_from_slice(&ty.0.to_le_bytes());
            out.extend_from_slice(&rank.to_le_bytes());
            Ok(())
        }
        Datum::Record(r) if tag == T_COMPOSITE => {
            out.extend_from_slice(&r.shape.ty.0.to_le_bytes());
            tag_fields(r, out)
        }
        Datum::Record(r) => {
            out.extend_from_slice(&r.shape.ty.0.to_le_bytes());
            out.extend_from_slice(&(r.shape.columns.len() as u32).to_le_bytes());
            for (name, ty) in &r.shape.columns {
                out.extend_from_slice(&ty.0.to_le_bytes());
                put_length(name.len(), out);
                out.extend_from_slice(name.as_bytes());
            }
            out.extend_from_slice(&(r.fields.len() as u32).to_le_bytes());
            r.fields.iter().try_for_each(|field| tagged(field, out))
        }
        Datum::Open(v) => {
            out.extend_from_slice(&v.0.ty().0.to_le_bytes());
            let start = out.len();
            out.extend_from_slice(&[0; 4]);
            v.0.store(out);
            let len = (out.len() - start - 4) as u32;
            out[start..start + 4].copy_from_slice(&len.to_le_bytes());
            Ok(())
        }
        Datum::Range(r) => tag_range(r, out),
        Datum::Multirange(m) => {
            out.extend_from_slice(&m.ty.0.to_le_bytes());
            out.extend_from_slice(&(m.ranges.len() as u32).to_le_bytes());
            m.ranges.iter().try_for_each(|r| tag_range(r, out))
        }
        _ => encode_value(TAG_KINDS[usize::from(tag)], value, out),
    }
}

/// Type; 0 for empty, else 1 and both bounds, each with whether it is inclusive.
fn tag_range(r: &Range, out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(&r.ty.0.to_le_bytes());
    out.push(u8::from(r.bounds.is_some()));
    let Some((lower, upper)) = &r.bounds else { return Ok(()) };
    for bound in [lower, upper] {
        out.push(u8::from(bound.inclusive));
        tagged(&bound.value, out)?;
    }
    Ok(())
}

fn untag_range(bytes: &mut &[u8]) -> Result<Range> {
    let ty = Oid(take_u32(bytes)?);
    if take(bytes, 1)?[0] == 0 {
        return Ok(Range { ty, bounds: None });
    }
    let mut bound = || {
        let inclusive = take(bytes, 1)?[0] != 0;
        Ok::<_, Error>(Bound { inclusive, value: untag(bytes)? })
    };
    Ok(Range { ty, bounds: Some((bound()?, bound()?)) })
}

fn untag_record(bytes: &mut &[u8]) -> Result<Record> {
    let ty = Oid(take_u32(bytes)?);
    let mut columns = Vec::new();
    for _ in 0..take_u32(bytes)? {
        let ty = Oid(take_u32(bytes)?);
        let mut len = usize::from(take(bytes, 1)?[0]);
        if len >= 128 {
            let rest = take(bytes, 3)?;
            len = (len & 127) << 24
                | usize::from(rest[0]) << 16
                | usize::from(rest[1]) << 8
                | usize::from(rest[2]);
        }
        let name = std::str::from_utf8(take(bytes, len)?).map_err(|_| corrupt())?;
        columns.push((Text::from(name), ty));
    }
    let fields = untag_list(bytes)?.into();
    Ok(Record { shape: Arc::new(Shape { ty, columns }), fields })
}

/// The fields of a value of a composite type, each in the place of its column.
fn tag_fields(r: &Record, out: &mut Vec<u8>) -> Result<()> {
    let known = crate::user::get(r.shape.ty);
    let places = match known.as_ref().map(|k| &k.kind) {
        Some(UserKind::Composite { places, .. }) if places.len() == r.fields.len() => {
            places.as_slice()
        }
        _ => &[],
    };
    let count = places.last().map_or(r.fields.len(), |last| usize::from(*last) + 1);
    out.extend_from_slice(&(count as u32).to_le_bytes());
    if count == r.fields.len() {
        return r.fields.iter().try_for_each(|field| tagged(field, out));
    }
    let mut next = 0;
    for (place, field) in places.iter().zip(&r.fields) {
        out.resize(out.len() + usize::from(*place) - next, T_NULL);
        tagged(field, out)?;
        next = usize::from(*place) + 1;
    }
    Ok(())
}

/// A value of a composite type. It has no fields for columns that were added later.
fn untag_composite(bytes: &mut &[u8]) -> Result<Datum> {
    let ty = Oid(take_u32(bytes)?);
    let mut stored = untag_list(bytes)?;
    let known = crate::user::get(ty);
    let Some(UserKind::Composite { shape, places, .. }) = known.as_ref().map(|k| &k.kind) else {
        let types = stored.iter().map(crate::io::natural_type);
        let shape = Shape { ty, ..Shape::anonymous(types) };
        return Ok(Datum::record(shape.into(), stored));
    };
    let take = |at: &u16| stored.get_mut(usize::from(*at)).map(std::mem::take).unwrap_or_default();
    let fields = places.iter().map(take).collect();
    Ok(Datum::record(shape.clone(), fields))
}

fn take<'a>(bytes: &mut &'a [u8], n: usize) -> Result<&'a [u8]> {
    let (head, rest) = bytes.split_at_checked(n).ok_or_else(corrupt)?;
    *bytes = rest;
    Ok(head)
}

fn take_u32(bytes: &mut &[u8]) -> Result<u32> {
    let b = take(bytes, 4)?;
    Ok(u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
}

/// Reads a value with its tag off the front.
pub(super) fn untag(bytes: &mut &[u8]) -> Result<Datum> {
    let tag = take(bytes, 1)?[0];
    match tag {
        T_NULL => Ok(Datum::Null),
        T_ARRAY => {
            let element = Oid(take_u32(bytes)?);
            let ndim = take(bytes, 1)?[0];
            let mut dims = Vec::new();
            for _ in 0..ndim {
                dims.push((take_u32(bytes)? as i32, take_u32(bytes)? as i32));
            }
            let items = untag_list(bytes)?;
            Ok(Datum::Array(Array { element, dims, items }.into()))
        }
        T_RECORD => Ok(Datum::Record(untag_record(bytes)?.into())),
        T_COMPOSITE => untag_composite(bytes),
        T_ENUM => {
            let ty = Oid(take_u32(bytes)?);
            let (low, high) = (take_u32(bytes)?, take_u32(bytes)?);
            Ok(Datum::Enum(ty, u64::from(high) << 32 | u64::from(low)))
        }
        T_OPEN => {
            let ty = Oid(take_u32(bytes)?);
            let len = take_u32(bytes)? as usize;
            super::load_open(ty, take(bytes, len)?)
        }
        T_RANGE => Ok(Datum::Range(untag_range(bytes)?.into())),
        T_MULTIRANGE => {
            let ty = Oid(take_u32(bytes)?);
            let count = take_u32(bytes)?;
            let ranges = (0..count).map(|_| untag_range(bytes)).collect::<Result<_>>()?;
            Ok(Datum::Multirange(Multirange { ty, ranges }.into()))
        }
        _ => {
            let kind = *TAG_KINDS.get(usize::from(tag)).ok_or_else(corrupt)?;
            untag_scalar(kind, bytes)
        }
    }
}

fn untag_list(bytes: &mut &[u8]) -> Result<Vec<Datum>> {
    let count = take_u32(bytes)? as usize;
    let mut items = Vec::with_capacity(count.min(bytes.len()));
    for _ in 0..count {
        items.push(untag(bytes)?);
    }
    Ok(items)
}

fn untag_scalar(kind: Kind, bytes: &mut &[u8]) -> Result<Datum> {
    let layout =
        RowLayout { columns: [].into(), kinds: [kind].into(), starts: [].into(), outside: None };
    let mut walk =
        Walk { layout: &layout, bytes, columns: 1, bitmap: None, first: 0, column: 0, at: 0 };
    let value = walk.value()?;
    walk.skip()?;
    let used = walk.at;
    take(bytes, used)?;
    Ok(value)
}
