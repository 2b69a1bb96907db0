//! Binary forms of values, as the protocol carries them (all big-endian).

use base::{Oid, Result, TupleId, err};

use super::{FormatContext, TypeIo, TypeRef, apply_typmod, is_reg, record};
use crate::datum::{Array, Bound, Datum, Interval, Multirange, Numeric, Range, Shape};
use crate::encodings::utf8;
use crate::user::{self, UserKind, UserType};
use crate::{oids, range};

const RANGE_EMPTY: u8 = 1;
const RANGE_LOWER_INCLUSIVE: u8 = 2;
const RANGE_UPPER_INCLUSIVE: u8 = 4;
const RANGE_LOWER_INFINITE: u8 = 8;
const RANGE_UPPER_INFINITE: u8 = 16;

#[cold]
fn bad_format() -> base::Error {
    err!(INVALID_BINARY_REPRESENTATION, "incorrect binary data format")
}

fn fixed<const N: usize>(bytes: &[u8]) -> Result<[u8; N]> {
    bytes.try_into().map_err(|_| bad_format())
}

#[cold]
pub(crate) fn bad_character(bytes: &[u8]) -> base::Error {
    let shown: Vec<String> = bytes.iter().map(|b| format!("0x{b:02x}")).collect();
    err!(
        CHARACTER_NOT_IN_REPERTOIRE,
        "invalid byte sequence for encoding \"UTF8\": {}",
        shown.join(" ")
    )
}

/// Reads a value from its binary form.
///
/// # Errors
/// `22P03`.
pub fn receive(ty: Oid, typmod: i32, bytes: &[u8], cx: &FormatContext) -> Result<Datum> {
    let value = receive_plain(ty, bytes, cx)?;
    if typmod >= 0 || ty == oids::BPCHAR {
        apply_typmod(ty, typmod, value, false)
    } else {
        Ok(value)
    }
}

fn receive_plain(ty: Oid, bytes: &[u8], cx: &FormatContext) -> Result<Datum> {
    Ok(match ty {
        oids::BOOL => Datum::Bool(fixed::<1>(bytes)?[0] != 0),
        oids::INT2 => Datum::Int2(i16::from_be_bytes(fixed(bytes)?)),
        oids::INT4 => Datum::Int4(i32::from_be_bytes(fixed(bytes)?)),
        oids::INT8 | oids::XID8 | oids::PG_LSN => Datum::Int8(i64::from_be_bytes(fixed(bytes)?)),
        oids::FLOAT4 => Datum::Float4(f32::from_be_bytes(fixed(bytes)?)),
        oids::FLOAT8 => Datum::Float8(f64::from_be_bytes(fixed(bytes)?)),
        oids::NUMERIC => Datum::Numeric(Numeric::receive(bytes)?),
        oids::CHAR => Datum::Char(fixed::<1>(bytes)?[0]),
        oids::BYTEA => Datum::bytea(bytes),
        oids::DATE => Datum::Date(i32::from_be_bytes(fixed(bytes)?)),
        oids::TIME => Datum::Time(i64::from_be_bytes(fixed(bytes)?)),
        oids::TIMESTAMP => Datum::Timestamp(i64::from_be_bytes(fixed(bytes)?)),
        oids::TIMESTAMPTZ => Datum::Timestamptz(i64::from_be_bytes(fixed(bytes)?)),
        oids::INTERVAL => {
            let b: [u8; 16] = fixed(bytes)?;
            Datum::Interval(
                Interval {
                    micros: i64::from_be_bytes(fixed(&b[..8])?),
                    days: i32::from_be_bytes(fixed(&b[8..12])?),
                    months: i32::from_be_bytes(fixed(&b[12..])?),
                }
                .into(),
            )
        }
        oids::UUID => Datum::Uuid(fixed::<16>(bytes)?.into()),
        oids::TID => Datum::Tid(TupleId::from_bytes(fixed(bytes)?)),
        oids::OID | oids::XID | oids::CID => Datum::Oid(u32::from_be_bytes(fixed(bytes)?)),
        oids::VOID => Datum::text(""),
        oids::JSONB | oids::JSONPATH => {
            let name = if ty == oids::JSONB { "jsonb" } else { "jsonpath" };
            let (version, text) = bytes.split_first().ok_or_else(bad_format)?;
            if *version != 1 {
                return Err(err!(INTERNAL_ERROR, "unsupported {name} version number {version}"));
            }
            super::input(ty, -1, utf8(text)?, cx)?
        }
        oids::TIMETZ => {
            let b: [u8; 12] = fixed(bytes)?;
            Datum::Timetz(i64::from_be_bytes(fixed(&b[..8])?), i32::from_be_bytes(fixed(&b[8..])?))
        }
        oids::BIT | oids::VARBIT => {
            Datum::Bits(super::bits::receive(bytes).ok_or_else(bad_format)?.into())
        }
        oids::INET | oids::CIDR => {
            Datum::Inet(super::network::receive_inet(bytes, ty == oids::CIDR)?)
        }
        oids::MACADDR => Datum::Macaddr(fixed(bytes)?),
        oids::MACADDR8 => match <[u8; 6]>::try_from(bytes) {
            Ok(six) => Datum::Macaddr8(super::widen(six)),
            Err(_) => Datum::Macaddr8(fixed(bytes)?),
        },
        oids::MONEY => Datum::Money(i64::from_be_bytes(fixed(bytes)?)),
        oids::REFCURSOR => Datum::text(utf8(bytes)?),
        oids::PG_SNAPSHOT | oids::TXID_SNAPSHOT => {
            let read = super::snapshot::XidSnapshot::receive(bytes).ok_or_else(|| {
                err!(INVALID_BINARY_REPRESENTATION, "invalid external pg_snapshot data")
            })?;
            Datum::from(read.text())
        }
        oids::RECORD => receive_record(bytes, cx)?,
        _ if range::subtype(ty).is_some() => receive_range(ty, bytes, cx)?.into(),
        _ if range::range_of(ty).is_some() => receive_multirange(ty, bytes, cx)?.into(),
        oids::JSON => {
            let text = utf8(bytes)?;
            crate::json::check(text)?;
            Datum::text(text)
        }
        oids::NAME => Datum::text(super::cut_name(utf8(bytes)?)),
        oids::TEXT | oids::VARCHAR | oids::BPCHAR | oids::UNKNOWN | oids::CSTRING => {
            Datum::text(utf8(bytes)?)
        }
        _ if is_reg(ty) => Datum::Oid(u32::from_be_bytes(fixed(bytes)?)),
        _ if crate::open::built_in(ty).is_some() => {
            return super::open_type(ty)?.receive(ty, -1, bytes, cx);
        }
        _ => match TypeIo::get(ty) {
            Some(t) if t.element != Oid::INVALID => receive_array(t.element, bytes, cx)?,
            Some(TypeRef::User(user)) => return receive_user(&user, bytes, cx),
            Some(t) => {
                return Err(base::Error::unsupported(format!("binary input of {}", t.sql_name)));
            }
            None => return Err(base::Error::unsupported(format!("binary input of type {ty}"))),
        },
    })
}

struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(n).ok_or_else(|| {
            err!(INVALID_BINARY_REPRESENTATION, "insufficient data left in message")
        })?;
        self.0 = rest;
        Ok(head)
    }

    fn int4(&mut self) -> Result<i32> {
        Ok(i32::from_be_bytes(fixed(self.take(4)?)?))
    }
}

/// Flags, then each bound that is there with its length.
fn receive_range(ty: Oid, bytes: &[u8], cx: &FormatContext) -> Result<Range> {
    let (flags, rest) = bytes.split_first().ok_or_else(bad_format)?;
    if flags & RANGE_EMPTY != 0 {
        return Ok(Range::empty(ty));
    }
    let element = range::subtype(ty).unwrap_or(oids::TEXT);
    let mut c = Cursor(rest);
    let mut bound = |infinite: u8, inclusive: u8| {
        if flags & infinite != 0 {
            return Ok(Bound::infinite());
        }
        let len = usize::try_from(c.int4()?).map_err(|_| bad_format())?;
        let value = receive(element, -1, c.take(len)?, cx)?;
        Ok::<_, base::Error>(Bound::new(value, flags & inclusive != 0))
    };
    let lower = bound(RANGE_LOWER_INFINITE, RANGE_LOWER_INCLUSIVE)?;
    let upper = bound(RANGE_UPPER_INFINITE, RANGE_UPPER_INCLUSIVE)?;
    Range::new(ty, lower, upper)
}

fn receive_multirange(ty: Oid, bytes: &[u8], cx: &FormatContext) -> Result<Multirange> {
    let inner = range::range_of(ty).unwrap_or(ty);
    let mut c = Cursor(bytes);
    let mut ranges = Vec::new();
    for _ in 0..c.int4()? {
        let len = usize::try_from(c.int4()?).map_err(|_| bad_format())?;
        ranges.push(receive_range(inner, c.take(len)?, cx)?);
    }
    Ok(Multirange::new(ty, ranges))
}

fn send_range(r: &Range, out: &mut Vec<u8>) -> Result<()> {
    let Some((lower, upper)) = &r.bounds else {
        out.push(RANGE_EMPTY);
        return Ok(());
    };
    let flag = |on: bool, bit: u8| if on { bit } else { 0 };
    out.push(
        flag(lower.inclusive, RANGE_LOWER_INCLUSIVE)
            | flag(upper.inclusive, RANGE_UPPER_INCLUSIVE)
            | flag(lower.value.is_null(), RANGE_LOWER_INFINITE)
            | flag(upper.value.is_null(), RANGE_UPPER_INFINITE),
    );
    let element = range::subtype(r.ty).unwrap_or(oids::TEXT);
    for bound in [lower, upper].iter().filter(|b| !b.value.is_null()) {
        send_sized(element, &bound.value, out)?;
    }
    Ok(())
}

fn receive_user(ty: &UserType, bytes: &[u8], cx: &FormatContext) -> Result<Datum> {
    match &ty.kind {
        UserKind::Enum(labels) => user::enum_input(ty, labels, utf8(bytes)?),
        UserKind::Domain { base, typmod } => receive(*base, *typmod, bytes, cx),
        UserKind::Composite { shape, typmods, .. } => {
            let mut c = Cursor(bytes);
            record::check_columns(shape, c.int4()?)?;
            let mut fields = Vec::with_capacity(typmods.len());
            for (at, (_, ty)) in shape.columns.iter().enumerate() {
                record::check_column(shape, at, Oid(c.int4()? as u32))?;
                let typmod = typmods.get(at).copied().unwrap_or(-1);
                fields.push(match usize::try_from(c.int4()?) {
                    Ok(len) => receive(*ty, typmod, c.take(len)?, cx)?,
                    Err(_) => Datum::Null,
                });
            }
            if !c.0.is_empty() {
                return Err(bad_format());
            }
            Ok(Datum::record(shape.clone(), fields))
        }
        UserKind::Base { form } => receive(*form, -1, bytes, cx),
        UserKind::Shell => {
            Err(err!(FEATURE_NOT_SUPPORTED, "cannot accept a value of a shell type"))
        }
        UserKind::Array | UserKind::Range { .. } | UserKind::Multirange { .. } => {
            Err(base::Error::internal("a type of another family"))
        }
        UserKind::Open(class) => class.0.receive(ty.io.oid, -1, bytes, cx),
    }
}

fn receive_record(bytes: &[u8], cx: &FormatContext) -> Result<Datum> {
    let mut c = Cursor(bytes);
    let (mut types, mut fields) = (Vec::new(), Vec::new());
    for _ in 0..c.int4()? {
        let ty = Oid(c.int4()? as u32);
        types.push(ty);
        fields.push(match usize::try_from(c.int4()?) {
            Ok(len) => receive(ty, -1, c.take(len)?, cx)?,
            Err(_) => Datum::Null,
        });
    }
    Ok(Datum::record(Shape::anonymous(types.into_iter()).into(), fields))
}

fn receive_array(element: Oid, bytes: &[u8], cx: &FormatContext) -> Result<Datum> {
    let mut c = Cursor(bytes);
    let (ndim, flags, found) = (c.int4()?, c.int4()?, c.int4()? as u32);
    if !(0..=6).contains(&ndim) {
        return Err(err!(INVALID_BINARY_REPRESENTATION, "invalid number of dimensions: {ndim}"));
    }
    if !(0..=1).contains(&flags) {
        return Err(err!(INVALID_BINARY_REPRESENTATION, "invalid array flags"));
    }
    if found != element.0 {
        return Err(err!(
            DATATYPE_MISMATCH,
            "binary data has array element type {found} ({}) instead of expected {} ({})",
            super::format_type(Oid(found), -1),
            element,
            super::format_type(element, -1)
        ));
    }
    let mut dims = Vec::new();
    for _ in 0..ndim {
        dims.push((c.int4()?, c.int4()?));
    }
    let count = dims.iter().try_fold(1usize, |n, (len, _)| {
        n.checked_mul(usize::try_from(*len).ok()?).filter(|n| *n <= super::array::MAX_ITEMS)
    });
    let count = if ndim == 0 { 0 } else { count.ok_or_else(bad_format)? };
    let mut items = Vec::new();
    for _ in 0..count {
        let len = c.int4()?;
        items.push(match usize::try_from(len) {
            Ok(len) => receive(element, -1, c.take(len)?, cx)?,
            Err(_) if len == -1 => Datum::Null,
            Err(_) => return Err(bad_format()),
        });
    }
    if !c.0.is_empty() {
        return Err(bad_format());
    }
    if items.is_empty() {
        dims.clear();
    }
    Ok(Datum::Array(Array { element, dims, items }.into()))
}

/// Appends a non-NULL value's binary form.
///
/// # Errors
/// Internal, when the value is NULL.
pub fn send(ty: Oid, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    match value {
        Datum::Null => return Err(base::Error::internal("NULL has no binary form")),
        Datum::Bool(b) => out.push(u8::from(*b)),
        Datum::Int2(v) => out.extend_from_slice(&v.to_be_bytes()),
        Datum::Int4(v) | Datum::Date(v) => out.extend_from_slice(&v.to_be_bytes()),
        Datum::Int8(v) | Datum::Time(v) | Datum::Timestamp(v) | Datum::Timestamptz(v) => {
            out.extend_from_slice(&v.to_be_bytes());
        }
        Datum::Float4(v) => out.extend_from_slice(&v.to_be_bytes()),
        Datum::Float8(v) => out.extend_from_slice(&v.to_be_bytes()),
        Datum::Numeric(n) => n.send(out),
        Datum::Text(s) if matches!(ty, oids::PG_SNAPSHOT | oids::TXID_SNAPSHOT) => {
            super::snapshot::XidSnapshot::parse(s)?.send(out);
        }
        Datum::Text(s) | Datum::Bpchar(s) => out.extend_from_slice(s.as_bytes()),
        Datum::Bytea(b) => out.extend_from_slice(b),
        Datum::Char(c) => out.push(*c),
        Datum::Interval(i) => {
            out.extend_from_slice(&i.micros.to_be_bytes());
            out.extend_from_slice(&i.days.to_be_bytes());
            out.extend_from_slice(&i.months.to_be_bytes());
        }
        Datum::Oid(v) => out.extend_from_slice(&v.to_be_bytes()),
        Datum::Tid(t) => out.extend_from_slice(&t.to_bytes()),
        Datum::Uuid(u) => out.extend_from_slice(&**u),
        Datum::Array(a) => send_array(a, out)?,
        Datum::Record(r) => {
            out.extend_from_slice(&(r.fields.len() as i32).to_be_bytes());
            for (i, field) in r.fields.iter().enumerate() {
                let ty = super::array::column_type(r, i);
                out.extend_from_slice(&ty.0.to_be_bytes());
                send_sized(ty, field, out)?;
            }
        }
        Datum::Timetz(t, west) => {
            out.extend_from_slice(&t.to_be_bytes());
            out.extend_from_slice(&west.to_be_bytes());
        }
        Datum::Money(v) => out.extend_from_slice(&v.to_be_bytes()),
        Datum::Inet(i) => super::network::send_inet(i, out),
        Datum::Macaddr(m) => out.extend_from_slice(m),
        Datum::Macaddr8(m) => out.extend_from_slice(m),
        Datum::Bits(b) => super::bits::send(b, out),
        Datum::Jsonb(j) => {
            out.push(1);
            j.write(out)?;
        }
        Datum::Jsonpath(p) => {
            out.push(1);
            out.extend_from_slice(p.text().as_bytes());
        }
        Datum::Enum(ty, rank) => {
            out.extend_from_slice(user::enum_text(*ty, *rank)?.as_bytes());
        }
        Datum::Open(v) => v.0.send(out)?,
        Datum::Range(r) => send_range(r, out)?,
        Datum::Multirange(m) => {
            out.extend_from_slice(&(m.ranges.len() as i32).to_be_bytes());
            for range in &m.ranges {
                let start = out.len();
                out.extend_from_slice(&[0; 4]);
                send_range(range, out)?;
                let len = (out.len() - start - 4) as i32;
                out[start..start + 4].copy_from_slice(&len.to_be_bytes());
            }
        }
    }
    Ok(())
}

fn send_array(a: &Array, out: &mut Vec<u8>) -> Result<()> {
    let nulls = a.items.iter().any(Datum::is_null);
    for v in [a.dims.len() as i32, i32::from(nulls), a.element.0 as i32] {
        out.extend_from_slice(&v.to_be_bytes());
    }
    for (len, low) in &a.dims {
        out.extend_from_slice(&len.to_be_bytes());
        out.extend_from_slice(&low.to_be_bytes());
    }
    a.items.iter().try_for_each(|item| send_sized(a.element, item, out))
}

/// A value with its length in front, -1 for NULL.
fn send_sized(ty: Oid, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    if value.is_null() {
        out.extend_from_slice(&(-1i32).to_be_bytes());
        return Ok(());
    }
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    send(ty, value, out)?;
    let len = (out.len() - start - 4) as i32;
    out[start..start + 4].copy_from_slice(&len.to_be_bytes());
    Ok(())
}
