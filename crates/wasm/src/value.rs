//! Values of SQL as WebAssembly sees them, and back.
//!
//! A value of a plain number type travels as a number; every other one as bytes in the module's memory:
//!
//! | SQL | number | as bytes (little endian) |
//! |---|---|---|
//! | boolean, int2, int4, date, oid | `i32` | 1, 2, 4, 4, 4 bytes |
//! | int8, time, timestamp, timestamptz, money | `i64` | 8 bytes |
//! | float4 | `f32` | 4 bytes |
//! | float8 | `f64` | 8 bytes |
//! | text, varchar, char(n), name, json, jsonb, numeric, xml | | UTF-8 |
//! | bytea | | the bytes |
//! | uuid | | 16 bytes |
//! | arrays | | `u32` dimensions, `u32` 0, each one's `i32` length and `i32` lower bound, then a column |
//! | rows | | `u32` fields, each an `i32` length (-1: NULL) and its bytes |
//! | all else | | UTF-8, as the type prints |
//!
//! A column (see [`crate::column`]) holds many values of one type. A domain is its base type.

use std::sync::Arc;

use base::{Oid, Result, err};
use exec::{ExecContext, nested};
use types::datum::{Array, Shape};
use types::oids::*;
use types::{Datum, TypeIo};

use crate::column;

/// The core type by which a value travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `i32`.
    I32,
    /// `i64`.
    I64,
    /// `f32`.
    F32,
    /// `f64`.
    F64,
    /// Address and length, both `i32`; as a result `i64`: address << 32 | length.
    Bytes,
}

/// A type without the domains over it.
pub fn plain_type(ty: Oid) -> Oid {
    if types::user::is_user(ty) { types::user::base_type(ty, -1).0 } else { ty }
}

impl Form {
    /// Of a type without domains.
    pub fn of(ty: Oid) -> Form {
        match ty {
            BOOL | INT2 | INT4 | DATE | OID => Form::I32,
            INT8 | TIME | TIMESTAMP | TIMESTAMPTZ | MONEY => Form::I64,
            FLOAT4 => Form::F32,
            FLOAT8 => Form::F64,
            _ => Form::Bytes,
        }
    }
}

/// Bytes of a value of a type that has equally many for all; None for others.
pub fn width(ty: Oid) -> Option<usize> {
    Some(match ty {
        BOOL => 1,
        INT2 => 2,
        INT4 | DATE | OID | FLOAT4 => 4,
        INT8 | TIME | TIMESTAMP | TIMESTAMPTZ | MONEY | FLOAT8 => 8,
        UUID => 16,
        _ => return None,
    })
}

/// A number as its 64 bits.
pub fn number(value: &Datum) -> Option<u64> {
    Some(match value {
        Datum::Bool(v) => u64::from(*v),
        Datum::Int2(v) => i64::from(*v) as u64,
        Datum::Int4(v) | Datum::Date(v) => i64::from(*v) as u64,
        Datum::Oid(v) => u64::from(*v),
        Datum::Int8(v)
        | Datum::Time(v)
        | Datum::Timestamp(v)
        | Datum::Timestamptz(v)
        | Datum::Money(v) => *v as u64,
        Datum::Float4(v) => u64::from(v.to_bits()),
        Datum::Float8(v) => v.to_bits(),
        _ => return None,
    })
}

/// The value of a number type whose bits these are.
///
/// # Errors
/// `22003` when the type has no such number.
pub fn from_number(bits: u64, ty: Oid) -> Result<Datum> {
    let out_of = |name: &str| err!(NUMERIC_VALUE_OUT_OF_RANGE, "{name} out of range");
    Ok(match ty {
        BOOL => Datum::Bool(bits as u32 != 0),
        INT2 => {
            let value = i16::try_from(bits as u32 as i32).map_err(|_| out_of("smallint"))?;
            Datum::Int2(value)
        }
        INT4 => Datum::Int4(bits as u32 as i32),
        DATE => Datum::Date(date_in_range(bits as u32 as i32)?),
        OID => Datum::Oid(bits as u32),
        INT8 => Datum::Int8(bits as i64),
        TIME => match bits as i64 {
            value @ 0..=86_400_000_000 => Datum::Time(value),
            _ => return Err(err!(DATETIME_FIELD_OVERFLOW, "time out of range")),
        },
        TIMESTAMP => Datum::Timestamp(timestamp_in_range(bits as i64)?),
        TIMESTAMPTZ => Datum::Timestamptz(timestamp_in_range(bits as i64)?),
        MONEY => Datum::Money(bits as i64),
        FLOAT4 => Datum::Float4(f32::from_bits(bits as u32)),
        FLOAT8 => Datum::Float8(f64::from_bits(bits)),
        _ => return Err(base::Error::internal("a number of a type that has none")),
    })
}

/// The least and greatest days that PostgreSQL's dates hold (4713 BC and 5874897), from 2000-01-01.
const DATES: std::ops::Range<i32> = -2_451_545..2_145_031_949;
/// The same of timestamps (4713 BC and 294276), in microseconds.
const TIMESTAMPS: std::ops::Range<i64> = -211_813_488_000_000_000..9_223_371_331_200_000_000;

fn date_in_range(days: i32) -> Result<i32> {
    match DATES.contains(&days) || matches!(days, i32::MIN | i32::MAX) {
        true => Ok(days),
        false => Err(err!(DATETIME_FIELD_OVERFLOW, "date out of range")),
    }
}

fn timestamp_in_range(us: i64) -> Result<i64> {
    match TIMESTAMPS.contains(&us) || matches!(us, i64::MIN | i64::MAX) {
        true => Ok(us),
        false => Err(err!(DATETIME_FIELD_OVERFLOW, "timestamp out of range")),
    }
}

/// Appends a value (not NULL) of a type as bytes.
///
/// # Errors
/// Those of printing it.
pub fn encode(value: &Datum, ty: Oid, out: &mut Vec<u8>, cx: &mut ExecContext<'_>) -> Result<()> {
    sched::check_stack()?;
    if let (Some(bits), Some(width)) = (number(value), width(ty)) {
        out.extend_from_slice(&bits.to_le_bytes()[..width]);
        return Ok(());
    }
    match value {
        Datum::Bytea(bytes) => out.extend_from_slice(bytes),
        Datum::Uuid(bytes) => out.extend_from_slice(&bytes[..]),
        Datum::Text(text) if !types::io::is_reg(ty) => out.extend_from_slice(text.as_bytes()),
        Datum::Bpchar(text) => out.extend_from_slice(text.as_bytes()),
        Datum::Array(array) if TypeIo::array_element(ty).is_some() => {
            out.extend_from_slice(&(array.dims.len() as u32).to_le_bytes());
            out.extend_from_slice(&[0; 4]);
            for (length, lower) in &array.dims {
                out.extend_from_slice(&length.to_le_bytes());
                out.extend_from_slice(&lower.to_le_bytes());
            }
            let element = plain_type(array.element);
            column::encode_values(&array.items, element, out, cx)?;
        }
        Datum::Record(row) => {
            out.extend_from_slice(&(row.fields.len() as u32).to_le_bytes());
            for ((_, ty), field) in row.shape.columns.iter().zip(row.fields.iter()) {
                encode_field(field, plain_type(*ty), out, cx)?;
            }
        }
        _ => out.extend_from_slice(nested::text_of(value, ty, cx)?.as_bytes()),
    }
    Ok(())
}

/// Appends a value with its length, -1 for NULL.
///
/// # Errors
/// As [`encode`].
pub fn encode_field(
    value: &Datum,
    ty: Oid,
    out: &mut Vec<u8>,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    let at = out.len();
    out.extend_from_slice(&(-1i32).to_le_bytes());
    if !value.is_null() {
        encode(value, ty, out, cx)?;
        let length = i32::try_from(out.len() - at - 4).map_err(|_| too_long())?;
        out[at..at + 4].copy_from_slice(&length.to_le_bytes());
    }
    Ok(())
}

/// `54000`.
pub fn too_long() -> base::Error {
    err!(PROGRAM_LIMIT_EXCEEDED, "a value is too long for WebAssembly")
}

/// `22P03`.
pub fn malformed(ty: Oid) -> base::Error {
    let name = types::io::format_type(ty, -1);
    err!(INVALID_BINARY_REPRESENTATION, "WebAssembly function gave malformed bytes for type {name}")
}

/// Bytes that are read from their beginning.
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    /// The next so many bytes.
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// The next `u32`.
    pub fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    /// The next `i32`.
    pub fn i32(&mut self) -> Option<i32> {
        self.u32().map(|n| n as i32)
    }

    /// The next field: its bytes, or the inner None for NULL.
    pub fn field(&mut self) -> Option<Option<&'a [u8]>> {
        match self.i32()? {
            -1 => Some(None),
            length => Some(Some(self.take(usize::try_from(length).ok()?)?)),
        }
    }
}

/// The value of a type whose bytes these are.
///
/// # Errors
/// `22P03`, those of the type's input.
pub fn decode(bytes: &[u8], ty: Oid, cx: &mut ExecContext<'_>) -> Result<Datum> {
    sched::check_stack()?;
    let base = plain_type(ty);
    if base != ty {
        let value = decode(bytes, base, cx)?;
        return nested::convert(value, base, ty, cx);
    }
    if let Some(width) = width(ty) {
        if bytes.len() != width {
            return Err(malformed(ty));
        }
        if ty == UUID {
            let bytes: [u8; 16] = bytes.try_into().map_err(|_| malformed(ty))?;
            return Ok(Datum::Uuid(Arc::new(bytes)));
        }
        let mut bits = [0; 8];
        bits[..width].copy_from_slice(bytes);
        let bits = match ty {
            INT2 => i64::from(i16::from_le_bytes([bits[0], bits[1]])) as u64,
            _ => u64::from_le_bytes(bits),
        };
        return from_number(bits, ty);
    }
    if ty == BYTEA {
        return Ok(Datum::Bytea(bytes.into()));
    }
    if let Some(element) = TypeIo::array_element(ty) {
        return array(bytes, ty, element, cx);
    }
    if let Some(shape) = types::user::shape(ty) {
        return record(bytes, &shape, cx);
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|error| types::io::invalid_utf8(bytes, error.valid_up_to()))?;
    if text.contains('\0') {
        return Err(types::io::invalid_utf8(bytes, text.find('\0').unwrap_or(0)));
    }
    if matches!(ty, TEXT | VARCHAR) {
        return Ok(Datum::text(text));
    }
    if types::io::is_reg(ty) || types::user::is_user(ty) {
        return nested::convert(Datum::text(text), TEXT, ty, cx);
    }
    types::io::input(ty, -1, text, cx.format)
}

/// NULL as a value of a type: a domain may refuse it.
///
/// # Errors
/// The domain's.
pub fn null(ty: Oid, cx: &mut ExecContext<'_>) -> Result<Datum> {
    match types::user::has_domains(ty) {
        true => nested::convert(Datum::Null, TEXT, ty, cx),
        false => Ok(Datum::Null),
    }
}

fn array(bytes: &[u8], ty: Oid, element: Oid, cx: &mut ExecContext<'_>) -> Result<Datum> {
    let mut from = Reader(bytes);
    let mut header = || {
        let count = from.u32().filter(|n| *n <= 6)?;
        from.u32()?;
        let mut dims = Vec::new();
        let mut total = u64::from(count > 0);
        for _ in 0..count {
            let (length, lower) = (from.i32()?, from.i32()?);
            total = total.checked_mul(u64::try_from(length).ok()?)?;
            lower.checked_add(length)?;
            dims.push((length, lower));
        }
        Some((dims, total))
    };
    let (dims, total) = header().ok_or_else(|| malformed(ty))?;
    let items = column::decode_values(from.0, element, cx)?;
    if items.len() as u64 != total {
        return Err(malformed(ty));
    }
    let dims = if items.is_empty() { Vec::new() } else { dims };
    Ok(Datum::Array(Arc::new(Array { element, dims, items })))
}

/// A row of these columns.
///
/// # Errors
/// `22P03`; those of the fields.
pub fn record(bytes: &[u8], shape: &Arc<Shape>, cx: &mut ExecContext<'_>) -> Result<Datum> {
    let mut from = Reader(bytes);
    if from.u32() != Some(shape.columns.len() as u32) {
        return Err(malformed(shape.ty));
    }
    let mut fields = Vec::with_capacity(shape.columns.len());
    for (_, ty) in &shape.columns {
        fields.push(match from.field().ok_or_else(|| malformed(shape.ty))? {
            Some(bytes) => decode(bytes, *ty, cx)?,
            None => null(*ty, cx)?,
        });
    }
    Ok(Datum::record(shape.clone(), fields))
}
