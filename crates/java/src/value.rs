//! Values of SQL as messages have them for Java, and back.
//!
//! A value is a tag and what the tag says; numbers are big endian:
//!
//! | tag | bytes | from SQL | in Java |
//! |---|---|---|---|
//! | 0 | | NULL | null |
//! | `b` | 1 | boolean | `boolean` |
//! | `s`, `i`, `l` | 2, 4, 8 | int2, int4, int8 and oid | `short`, `int`, `long` |
//! | `f`, `d` | 4, 8 | float4, float8 | `float`, `double` |
//! | `n` | text | numeric | `BigDecimal` |
//! | `t` | text: `i32` length, UTF-8 | text and everything that has no row here | `String` |
//! | `B` | `i32` length, bytes | bytea | `byte[]` |
//! | `D` | 4: days from 2000 | date | `LocalDate`, `java.sql.Date` |
//! | `T` | 8: µs | time | `LocalTime`, `java.sql.Time` |
//! | `S`, `Z` | 8: µs from 2000 | timestamp, timestamptz | `LocalDateTime`, `OffsetDateTime`, `Timestamp` |
//! | `P` | 16: local µs, µs of UTC | (back only) | `Timestamp`, which may stand for either |
//! | `U` | 16 | uuid | `UUID` |
//! | `V` | tag, `i32` count, numbers | arrays of numbers of one dimension without NULL | `int[]`, … |
//! | `A` | tag, `u8` dimensions, `i32` lengths, values with tags | other arrays | arrays of arrays |
//! | `R` | `i16` count, names and values | rows | `ResultSet` |
//! | `r` | `i16` count, values | (back only) | columns by place |
//!
//! A domain is its base type.

use std::sync::Arc;

use base::{Error, Oid, Result, err};
use exec::language::ResultForm;
use exec::{ExecContext, nested};
use types::datum::{Array, Shape};
use types::oids::*;
use types::{Datum, TypeIo};

/// A type without the domains over it.
pub fn plain_type(ty: Oid) -> Oid {
    if types::user::is_user(ty) { types::user::base_type(ty, -1).0 } else { ty }
}

/// The tag of a type's values, and the tag of their elements.
pub fn tags(ty: Oid) -> (u8, u8) {
    let tag = match plain_type(ty) {
        BOOL => b'b',
        INT2 => b's',
        INT4 => b'i',
        INT8 | OID => b'l',
        FLOAT4 => b'f',
        FLOAT8 => b'd',
        NUMERIC => b'n',
        BYTEA => b'B',
        DATE => b'D',
        TIME => b'T',
        TIMESTAMP => b'S',
        TIMESTAMPTZ => b'Z',
        UUID => b'U',
        RECORD => b'R',
        ty => {
            if let Some(element) = TypeIo::array_element(ty) {
                return (b'A', tags(element).0);
            }
            if types::user::shape(ty).is_some() { b'R' } else { b't' }
        }
    };
    (tag, 0)
}

/// Appends a text with its length.
pub fn put_text(text: &str, out: &mut Vec<u8>) -> Result<()> {
    put_bytes(text.as_bytes(), out)
}

fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let length = i32::try_from(bytes.len()).map_err(|_| too_long())?;
    sched::memory::ask(bytes.len())?;
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(bytes);
    Ok(())
}

/// Appends how many follow.
pub fn put_count(count: usize, out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(&i32::try_from(count).map_err(|_| too_long())?.to_be_bytes());
    Ok(())
}

/// Appends texts.
pub fn put_texts<'a>(
    texts: impl ExactSizeIterator<Item = &'a str>,
    out: &mut Vec<u8>,
) -> Result<()> {
    put_count(texts.len(), out)?;
    for text in texts {
        put_text(text, out)?;
    }
    Ok(())
}

/// `54000`.
pub fn too_long() -> Error {
    err!(PROGRAM_LIMIT_EXCEEDED, "a value is too long for Java")
}

/// Appends a value of a type.
///
/// # Errors
/// Those of printing it; `54000`.
pub fn encode(value: &Datum, ty: Oid, out: &mut Vec<u8>, cx: &mut ExecContext<'_>) -> Result<()> {
    macro_rules! number {
        ($tag:literal, $value:expr) => {{
            out.push($tag);
            out.extend_from_slice(&$value.to_be_bytes());
        }};
    }
    match value {
        Datum::Null => out.push(0),
        Datum::Bool(v) => out.extend_from_slice(&[b'b', u8::from(*v)]),
        Datum::Int2(v) => number!(b's', v),
        Datum::Int4(v) => number!(b'i', v),
        Datum::Int8(v) if plain_type(ty) == INT8 => number!(b'l', v),
        Datum::Oid(v) if plain_type(ty) == OID => number!(b'l', i64::from(*v)),
        Datum::Float4(v) => number!(b'f', v),
        Datum::Float8(v) => number!(b'd', v),
        Datum::Date(v) => number!(b'D', v),
        Datum::Time(v) => number!(b'T', v),
        Datum::Timestamp(v) => number!(b'S', v),
        Datum::Timestamptz(v) => number!(b'Z', v),
        Datum::Numeric(_) => {
            out.push(b'n');
            let text = types::io::to_text(NUMERIC, value, cx.format)?;
            put_text(&text, out)?;
        }
        Datum::Text(text) if !types::io::is_reg(ty) => {
            out.push(b't');
            put_text(text, out)?;
        }
        Datum::Bpchar(text) => {
            out.push(b't');
            put_text(text, out)?;
        }
        Datum::Bytea(bytes) => {
            out.push(b'B');
            put_bytes(bytes, out)?;
        }
        Datum::Uuid(bytes) => {
            out.push(b'U');
            out.extend_from_slice(&bytes[..]);
        }
        Datum::Array(array) if TypeIo::array_element(plain_type(ty)).is_some() => {
            encode_array(array, out, cx)?;
        }
        Datum::Record(row) => {
            sched::check_stack()?;
            out.push(b'R');
            out.extend_from_slice(&(row.fields.len() as u16).to_be_bytes());
            for ((name, ty), field) in row.shape.columns.iter().zip(row.fields.iter()) {
                put_text(name, out)?;
                encode(field, *ty, out, cx)?;
            }
        }
        _ => {
            out.push(b't');
            put_text(&nested::text_of(value, ty, cx)?, out)?;
        }
    }
    Ok(())
}

fn encode_array(array: &Array, out: &mut Vec<u8>, cx: &mut ExecContext<'_>) -> Result<()> {
    sched::check_stack()?;
    let element = plain_type(array.element);
    let tag = tags(element).0;
    let plain = matches!(tag, b'b' | b's' | b'i' | b'l' | b'f' | b'd') && element != OID;
    if plain && array.dims.len() <= 1 && !array.items.iter().any(Datum::is_null) {
        out.extend_from_slice(&[b'V', tag]);
        put_count(array.items.len(), out)?;
        for item in &array.items {
            sched::check_interrupts()?;
            match item {
                Datum::Bool(v) => out.push(u8::from(*v)),
                Datum::Int2(v) => out.extend_from_slice(&v.to_be_bytes()),
                Datum::Int4(v) => out.extend_from_slice(&v.to_be_bytes()),
                Datum::Int8(v) => out.extend_from_slice(&v.to_be_bytes()),
                Datum::Float4(v) => out.extend_from_slice(&v.to_be_bytes()),
                Datum::Float8(v) => out.extend_from_slice(&v.to_be_bytes()),
                _ => return Err(Error::internal("an element of another type")),
            }
        }
        return Ok(());
    }
    out.extend_from_slice(&[b'A', tag, array.dims.len() as u8]);
    for (length, _) in &array.dims {
        out.extend_from_slice(&length.to_be_bytes());
    }
    for item in &array.items {
        sched::check_interrupts()?;
        encode(item, element, out, cx)?;
    }
    Ok(())
}

/// `XX000`: the classes of `java/` and this file say different things.
fn malformed() -> Error {
    Error::internal("a malformed message of Java")
}

/// A message that is read from its beginning.
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.take(N)?.try_into().map_err(|_| malformed())
    }

    /// The next byte.
    pub fn u8(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    /// The next `i16`.
    pub fn i16(&mut self) -> Result<i16> {
        Ok(i16::from_be_bytes(self.array()?))
    }

    /// The next `i32`.
    pub fn i32(&mut self) -> Result<i32> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    /// The next `i64`.
    pub fn i64(&mut self) -> Result<i64> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    /// The next count.
    pub fn count(&mut self) -> Result<usize> {
        usize::try_from(self.i32()?).map_err(|_| malformed())
    }

    fn bytes(&mut self) -> Result<&'a [u8]> {
        let length = self.count()?;
        self.take(length)
    }

    /// The next text.
    pub fn text(&mut self) -> Result<&'a str> {
        let bytes = self.bytes()?;
        std::str::from_utf8(bytes)
            .map_err(|error| types::io::invalid_utf8(bytes, error.valid_up_to()))
    }
}

/// NULL as a value of a type: a domain may refuse it.
fn null(ty: Oid, cx: &mut ExecContext<'_>) -> Result<Datum> {
    match types::user::has_domains(ty) {
        true => nested::convert(Datum::Null, TEXT, ty, cx),
        false => Ok(Datum::Null),
    }
}

/// The least and greatest days that PostgreSQL's dates hold (4713 BC and 5874897), from 2000-01-01.
const DATES: std::ops::Range<i32> = -2_451_545..2_145_031_949;
/// The same of timestamps (4713 BC and 294276), in microseconds.
const TIMESTAMPS: std::ops::Range<i64> = -211_813_488_000_000_000..9_223_371_331_200_000_000;

fn in_range<T: PartialOrd>(
    value: T,
    range: std::ops::Range<T>,
    ends: [T; 2],
    name: &str,
) -> Result<T> {
    match range.contains(&value) || ends.contains(&value) {
        true => Ok(value),
        false => Err(err!(DATETIME_FIELD_OVERFLOW, "{name} out of range")),
    }
}

fn timestamp(us: i64) -> Result<i64> {
    in_range(us, TIMESTAMPS, [i64::MIN, i64::MAX], "timestamp")
}

/// The next value, of a type.
///
/// # Errors
/// Those of the conversion to the type.
pub fn decode(from: &mut Reader<'_>, ty: Oid, cx: &mut ExecContext<'_>) -> Result<Datum> {
    sched::check_stack()?;
    let tag = from.u8()?;
    let base = plain_type(ty);
    let natural = match tag {
        0 => return null(ty, cx),
        b'b' => Datum::Bool(from.u8()? != 0),
        b's' => Datum::Int2(from.i16()?),
        b'i' => Datum::Int4(from.i32()?),
        b'l' => Datum::Int8(from.i64()?),
        b'f' => Datum::Float4(f32::from_bits(from.i32()? as u32)),
        b'd' => Datum::Float8(f64::from_bits(from.i64()? as u64)),
        b'n' => {
            let text = from.text()?;
            types::io::input(NUMERIC, -1, text, cx.format)?
        }
        b't' => {
            let text = from.text()?;
            return of_text(text, ty, base, cx);
        }
        b'B' => Datum::Bytea(from.bytes()?.into()),
        b'D' => Datum::Date(in_range(from.i32()?, DATES, [i32::MIN, i32::MAX], "date")?),
        b'T' => Datum::Time(from.i64()?.clamp(0, 86_400_000_000)),
        b'S' => Datum::Timestamp(timestamp(from.i64()?)?),
        b'Z' => Datum::Timestamptz(timestamp(from.i64()?)?),
        b'P' => {
            let (local, instant) = (from.i64()?, from.i64()?);
            match base {
                TIMESTAMPTZ => Datum::Timestamptz(timestamp(instant)?),
                _ => Datum::Timestamp(timestamp(local)?),
            }
        }
        b'U' => Datum::Uuid(Arc::new(from.array()?)),
        b'V' | b'A' => return array(from, tag, ty, base, cx),
        b'R' | b'r' => {
            let Some(shape) = types::user::shape(base) else {
                return Err(err!(
                    DATATYPE_MISMATCH,
                    "Java gave a row for a value of type {}",
                    types::io::format_type(ty, -1)
                ));
            };
            let row = fields(from, tag, &shape, cx)?;
            return domain(row, base, ty, cx);
        }
        _ => return Err(malformed()),
    };
    let natural_type = types::io::natural_type(&natural);
    if let Some(number) = whole(&natural, base)? {
        return domain(number, base, ty, cx);
    }
    match natural_type == base {
        true => domain(natural, base, ty, cx),
        false => nested::convert(natural, natural_type, ty, cx),
    }
}

fn domain(value: Datum, base: Oid, ty: Oid, cx: &mut ExecContext<'_>) -> Result<Datum> {
    if base == ty { Ok(value) } else { nested::convert(value, base, ty, cx) }
}

/// A whole number as another type of numbers, which is what happens most; None for all else.
fn whole(value: &Datum, ty: Oid) -> Result<Option<Datum>> {
    let n = match value {
        Datum::Int2(n) => i64::from(*n),
        Datum::Int4(n) => i64::from(*n),
        Datum::Int8(n) => *n,
        _ => return Ok(None),
    };
    let out_of = |name: &str| err!(NUMERIC_VALUE_OUT_OF_RANGE, "{name} out of range");
    Ok(Some(match ty {
        INT2 => Datum::Int2(i16::try_from(n).map_err(|_| out_of("smallint"))?),
        INT4 => Datum::Int4(i32::try_from(n).map_err(|_| out_of("integer"))?),
        INT8 => Datum::Int8(n),
        OID => Datum::Oid(u32::try_from(n).map_err(|_| out_of("OID"))?),
        FLOAT8 => Datum::Float8(n as f64),
        _ => return Ok(None),
    }))
}

fn of_text(text: &str, ty: Oid, base: Oid, cx: &mut ExecContext<'_>) -> Result<Datum> {
    if let Some(at) = text.find('\0') {
        return Err(types::io::invalid_utf8(text.as_bytes(), at));
    }
    if matches!(ty, TEXT | VARCHAR) {
        return Ok(Datum::text(text));
    }
    if types::io::is_reg(base) || types::user::is_user(ty) {
        return nested::convert(Datum::text(text), TEXT, ty, cx);
    }
    types::io::input(ty, -1, text, cx.format)
}

fn array(
    from: &mut Reader<'_>,
    tag: u8,
    ty: Oid,
    base: Oid,
    cx: &mut ExecContext<'_>,
) -> Result<Datum> {
    let Some(element) = TypeIo::array_element(base) else {
        return Err(err!(
            DATATYPE_MISMATCH,
            "Java gave an array for a value of type {}",
            types::io::format_type(ty, -1)
        ));
    };
    let own = from.u8()?;
    let mut dims = Vec::new();
    let mut count = 1usize;
    if tag == b'V' {
        count = from.count()?;
        dims.push((count as i32, 1));
    } else {
        for _ in 0..from.u8()? {
            let length = from.i32()?;
            count = count
                .checked_mul(usize::try_from(length).map_err(|_| malformed())?)
                .filter(|n| *n <= i32::MAX as usize)
                .ok_or_else(too_long)?;
            dims.push((length, 1));
        }
    }
    sched::memory::ask(count.saturating_mul(size_of::<Datum>()))?;
    let mut items = Vec::with_capacity(count);
    for _ in 0..count {
        sched::check_interrupts()?;
        items.push(match tag {
            b'V' => number(from, own, element, cx)?,
            _ => decode(from, element, cx)?,
        });
    }
    if items.is_empty() {
        dims.clear();
    }
    domain(Datum::Array(Arc::new(Array { element, dims, items })), base, ty, cx)
}

/// The next number of a vector whose numbers have this tag.
fn number(from: &mut Reader<'_>, tag: u8, ty: Oid, cx: &mut ExecContext<'_>) -> Result<Datum> {
    let value = match tag {
        b'b' => Datum::Bool(from.u8()? != 0),
        b's' => Datum::Int2(from.i16()?),
        b'i' => Datum::Int4(from.i32()?),
        b'l' => Datum::Int8(from.i64()?),
        b'f' => Datum::Float4(f32::from_bits(from.i32()? as u32)),
        b'd' => Datum::Float8(f64::from_bits(from.i64()? as u64)),
        _ => return Err(malformed()),
    };
    if let Some(number) = whole(&value, ty)? {
        return Ok(number);
    }
    let natural = types::io::natural_type(&value);
    nested::convert(value, natural, ty, cx)
}

/// The columns of a row: by name, where those that are missing are NULL, or by place.
fn fields(
    from: &mut Reader<'_>,
    tag: u8,
    shape: &Arc<Shape>,
    cx: &mut ExecContext<'_>,
) -> Result<Datum> {
    let count = usize::from(from.i16()? as u16);
    let mut values: Vec<Option<Datum>> = vec![None; shape.columns.len()];
    if tag == b'r' && count != shape.columns.len() {
        return Err(err!(
            DATATYPE_MISMATCH,
            "Java gave a row of {count} columns, {} are needed",
            shape.columns.len()
        ));
    }
    for n in 0..count {
        let at = match tag {
            b'r' => n,
            _ => {
                let name = from.text()?;
                let found = shape.columns.iter().position(|(column, _)| **column == *name);
                found.ok_or_else(|| {
                    err!(UNDEFINED_COLUMN, "Java gave column \"{name}\", which the row has not")
                })?
            }
        };
        values[at] = Some(decode(from, shape.columns[at].1, cx)?);
    }
    let mut row = Vec::with_capacity(values.len());
    for (value, (_, ty)) in values.into_iter().zip(&shape.columns) {
        row.push(match value {
            Some(value) => value,
            None => null(*ty, cx)?,
        });
    }
    Ok(Datum::record(shape.clone(), row))
}

/// The next result of a function.
///
/// # Errors
/// As [`decode`]; `0A000` for rows of columns that nobody names.
pub fn result(from: &mut Reader<'_>, form: &ResultForm, cx: &mut ExecContext<'_>) -> Result<Datum> {
    let Some(shape) = form.shape.as_ref().filter(|_| form.ty == RECORD) else {
        if form.ty == RECORD && from.0.first() != Some(&0) {
            return Err(err!(
                FEATURE_NOT_SUPPORTED,
                "function returning record called in context that cannot accept type record"
            ));
        }
        return decode(from, form.ty, cx);
    };
    match from.u8()? {
        0 => Ok(Datum::Null),
        tag @ (b'R' | b'r') => fields(from, tag, shape, cx),
        _ => Err(err!(DATATYPE_MISMATCH, "Java gave no row, but a single value")
            .hint("A row is an array of objects, a Map, a ResultSet or a record.")),
    }
}
