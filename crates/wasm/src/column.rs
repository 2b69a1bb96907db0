//! Columns: many values of one type in a module's memory, for arrays and for BATCH functions.
//!
//! ```text
//!   u32 count │ u32 flags │ [validity: one byte a value, 1 = present; zeroes up to a multiple of 8]
//!   a type of one width:   the values, without gaps
//!   any other:             u32 offsets[count + 1] into the bytes that follow │ bytes
//! ```
//!
//! Flag 1 says that there is a validity; a missing value's place holds zeroes or no bytes. Numbers are little endian.

use base::{Oid, Result};
use exec::ExecContext;
use types::batch::Vector;
use types::oids;
use types::{Column, Datum, Text};

use crate::value::{self, Reader, malformed, plain_type, too_long, width};

const HAS_VALIDITY: u32 = 1;

fn pad(out: &mut Vec<u8>, from: usize) {
    let length = (out.len() - from).next_multiple_of(8);
    out.resize(from + length, 0);
}

/// Count, flags and validity of a column that begins here.
fn begin(out: &mut Vec<u8>, count: usize, present: Option<impl Iterator<Item = bool>>) {
    let from = out.len();
    out.extend_from_slice(&(count as u32).to_le_bytes());
    out.extend_from_slice(&(if present.is_some() { HAS_VALIDITY } else { 0 }).to_le_bytes());
    if let Some(present) = present {
        out.extend(present.map(u8::from));
        pad(out, from);
    }
}

/// The offsets of values that are appended one by one.
struct Offsets {
    at: usize,
    bytes: usize,
}

impl Offsets {
    fn begin(out: &mut Vec<u8>, count: usize) -> Offsets {
        let at = out.len();
        out.resize(at + (count + 1) * 4, 0);
        Offsets { at, bytes: out.len() }
    }

    /// A value ends here.
    fn next(&mut self, out: &mut [u8]) -> Result<()> {
        self.at += 4;
        let end = u32::try_from(out.len() - self.bytes).map_err(|_| too_long())?;
        out[self.at..self.at + 4].copy_from_slice(&end.to_le_bytes());
        Ok(())
    }
}

/// Appends values as a column.
///
/// # Errors
/// Those of a value; interrupts.
pub fn encode_values(
    items: &[Datum],
    ty: Oid,
    out: &mut Vec<u8>,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    let nulls = items.iter().any(Datum::is_null);
    begin(out, items.len(), nulls.then(|| items.iter().map(|v| !v.is_null())));
    if let Some(width) = width(ty) {
        for item in items {
            sched::check_interrupts()?;
            match item.is_null() {
                true => out.resize(out.len() + width, 0),
                false => value::encode(item, ty, out, cx)?,
            }
        }
        return Ok(());
    }
    let mut offsets = Offsets::begin(out, items.len());
    for item in items {
        sched::check_interrupts()?;
        if !item.is_null() {
            value::encode(item, ty, out, cx)?;
        }
        offsets.next(out)?;
    }
    Ok(())
}

/// Appends a column of the executor.
///
/// # Errors
/// As [`encode_values`].
pub fn encode(column: &Column, ty: Oid, out: &mut Vec<u8>, cx: &mut ExecContext<'_>) -> Result<()> {
    let count = column.len();
    let has_nulls = column.nulls.iter().any(|null| *null);
    let start = |out: &mut Vec<u8>| {
        begin(out, count, has_nulls.then(|| column.nulls.iter().map(|null| !null)));
    };
    macro_rules! numbers {
        ($values:expr) => {{
            start(out);
            out.extend($values.iter().flat_map(|v| v.to_le_bytes()));
        }};
    }
    match (&column.data, ty) {
        (Vector::Bool(values), _) => {
            start(out);
            out.extend(values.iter().map(|v| u8::from(*v)));
        }
        (Vector::Int2(values), _) => numbers!(values),
        (Vector::Int4(values), _) => numbers!(values),
        (Vector::Int8(values), _) => numbers!(values),
        (Vector::Float8(values), _) => numbers!(values),
        (Vector::Text(values) | Vector::Bpchar(values), _) if !types::io::is_reg(ty) => {
            start(out);
            let mut offsets = Offsets::begin(out, count);
            for (row, text) in values.iter().enumerate() {
                if !column.is_null(row) {
                    out.extend_from_slice(text.as_bytes());
                }
                offsets.next(out)?;
            }
        }
        _ => {
            let items: Vec<Datum> = (0..count).map(|row| column.get(row, ty)).collect();
            encode_values(&items, ty, out, cx)?;
        }
    }
    Ok(())
}

/// A column as its parts.
struct Parts<'a> {
    count: usize,
    validity: Option<&'a [u8]>,
    data: &'a [u8],
    width: Option<usize>,
}

impl<'a> Parts<'a> {
    fn of(bytes: &'a [u8], ty: Oid) -> Option<Parts<'a>> {
        let mut from = Reader(bytes);
        let (count, flags) = (from.u32()? as usize, from.u32()?);
        let validity = match flags & HAS_VALIDITY {
            0 => None,
            _ => Some(from.take(count)?),
        };
        if validity.is_some() {
            from.take(count.next_multiple_of(8) - count)?;
        }
        let width = width(ty);
        let head = match width {
            Some(width) => count.checked_mul(width)?,
            None => count.checked_add(1)?.checked_mul(4)?,
        };
        (from.0.len() >= head).then_some(Parts { count, validity, data: from.0, width })
    }

    fn is_null(&self, row: usize) -> bool {
        self.validity.is_some_and(|v| v[row] == 0)
    }

    /// A value's bytes.
    fn bytes(&self, row: usize) -> Option<&'a [u8]> {
        if let Some(width) = self.width {
            return self.data.get(row * width..(row + 1) * width);
        }
        let offset = |n: usize| {
            let bytes = self.data.get(n * 4..n * 4 + 4)?;
            Some(u32::from_le_bytes(bytes.try_into().ok()?) as usize)
        };
        let (from, to) = (offset(row)?, offset(row + 1)?);
        self.data.get((self.count + 1) * 4..)?.get(from..to)
    }
}

/// The values of a column of a type.
///
/// # Errors
/// `22P03`; those of the values; interrupts.
pub fn decode_values(bytes: &[u8], ty: Oid, cx: &mut ExecContext<'_>) -> Result<Vec<Datum>> {
    let parts = Parts::of(bytes, plain_type(ty)).ok_or_else(|| malformed(ty))?;
    let mut items = Vec::with_capacity(parts.count);
    for row in 0..parts.count {
        sched::check_interrupts()?;
        items.push(match parts.is_null(row) {
            true => value::null(ty, cx)?,
            false => value::decode(parts.bytes(row).ok_or_else(|| malformed(ty))?, ty, cx)?,
        });
    }
    Ok(items)
}

/// The column of a type with so many rows, of which those in `nulls` are NULL whatever stands there.
///
/// # Errors
/// As [`decode_values`].
pub fn decode(
    bytes: &[u8],
    ty: Oid,
    rows: usize,
    nulls: &[bool],
    cx: &mut ExecContext<'_>,
) -> Result<Column> {
    let base = plain_type(ty);
    let parts = Parts::of(bytes, base).ok_or_else(|| malformed(ty))?;
    if parts.count != rows {
        return Err(malformed(ty));
    }
    let is_null = |row: usize| nulls.get(row) == Some(&true) || parts.is_null(row);
    let mut column = Column::new(ty);
    macro_rules! numbers {
        ($values:expr, $number:ty) => {{
            let width = size_of::<$number>();
            let bytes = parts.data.get(..rows * width).ok_or_else(|| malformed(ty))?;
            let number = |b: &[u8]| <$number>::from_le_bytes(b.try_into().unwrap_or_default());
            $values.extend(bytes.chunks_exact(width).map(number));
        }};
    }
    let mut done = base == ty;
    match (&mut column.data, ty) {
        (Vector::Int2(values), oids::INT2) => numbers!(values, i16),
        (Vector::Int4(values), oids::INT4) => numbers!(values, i32),
        (Vector::Int8(values), oids::INT8) => numbers!(values, i64),
        (Vector::Float8(values), oids::FLOAT8) => numbers!(values, f64),
        (Vector::Bool(values), oids::BOOL) => {
            let bytes = parts.data.get(..rows).ok_or_else(|| malformed(ty))?;
            values.extend(bytes.iter().map(|b| *b != 0));
        }
        (Vector::Text(values), oids::TEXT | oids::VARCHAR) => {
            for row in 0..rows {
                sched::check_interrupts()?;
                values.push(match is_null(row) {
                    true => Text::new(),
                    false => {
                        let bytes = parts.bytes(row).ok_or_else(|| malformed(ty))?;
                        text(bytes)?
                    }
                });
            }
        }
        _ => done = false,
    }
    if done {
        if parts.validity.is_some() || nulls.contains(&true) {
            column.nulls = (0..rows).map(is_null).collect();
        }
        return Ok(column);
    }
    for row in 0..rows {
        sched::check_interrupts()?;
        column.push(match is_null(row) {
            true => value::null(ty, cx)?,
            false => value::decode(parts.bytes(row).ok_or_else(|| malformed(ty))?, ty, cx)?,
        })?;
    }
    Ok(column)
}

fn text(bytes: &[u8]) -> Result<Text> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| types::io::invalid_utf8(bytes, error.valid_up_to()))?;
    match text.bytes().position(|b| b == 0) {
        None => Ok(Text::from(text)),
        Some(at) => Err(types::io::invalid_utf8(bytes, at)),
    }
}
