//! Order-preserving key bytes: `memcmp` on them is SQL order. One marker byte a column (NULLs last
//! by default), then the value; a prefix of columns is a prefix of the bytes.
//!
//! ```text
//! marker   00 NULL (first)   01 a value   02 NULL (last)
//! int4     sign bit flipped, big-endian          (int2, int8, date, time, timestamps alike)
//! float8   sign bit flipped, or all bits of a negative; -0 as 0; NaN above infinity
//! text     bytes with 00 as 00 FF, then 00 00    (bpchar without trailing blanks; bytea alike)
//! numeric  class, position of the first digit, pairs of digits, 00
//! array    per item a marker and its value, 00, then the dimensions
//! under a collation of ICU: a text's key there, as bytea ([`crate::collation`])
//! ```
//!
//! A descending column has its value's bytes inverted, not its marker: where NULLs go is asked
//! separately.

mod columns;

use base::{Oid, Result, TupleId};

use crate::collation::Slot;
use crate::datum::{Array, Bits, Datum, Inet};
use crate::oids;
use crate::order::{interval_span, is_unsigned, trim_bpchar};

pub use columns::decode_column;

/// Order of one key column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct KeyOrder {
    /// DESC.
    pub descending: bool,
    /// NULLS FIRST.
    pub nulls_first: bool,
    /// The collation of texts.
    pub collation: Slot,
}

const NULL_FIRST: u8 = 0;
const VALUE: u8 = 1;
const NULL_LAST: u8 = 2;
/// Ends the items of an array or record: below both markers of an item.
const END: u8 = 0;

/// Positions and transaction numbers below this one are encoded as integers are, others as the greatest of those and
/// then themselves: what has no sign was once ordered as if it had one, and the keys of such values stay.
const HALF: u64 = i64::MAX as u64;

/// Appends one column. Integers of another width than the column's are widened or narrowed first;
/// one that doesn't fit has no key, which is an internal error (the planner must not ask).
///
/// # Errors
/// Internal: a value that isn't of the column's type.
pub fn encode(ty: Oid, value: &Datum, order: KeyOrder, out: &mut Vec<u8>) -> Result<()> {
    if value.is_null() {
        out.push(if order.nulls_first { NULL_FIRST } else { NULL_LAST });
        return Ok(());
    }
    out.push(VALUE);
    let start = out.len();
    match order.collation {
        Slot::BYTES => encode_as(ty, value, out)?,
        collation => encode_natural(&collation.key(value), out),
    }
    if order.descending {
        out[start..].iter_mut().for_each(|b| *b = !*b);
    }
    Ok(())
}

fn encode_as(ty: Oid, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    let misfit = || base::Error::internal(format!("{value:?} is no key of type {ty}"));
    match ty {
        oids::INT4 => {
            let v = match value {
                Datum::Int4(v) => *v,
                _ => value.to_i64().and_then(|v| i32::try_from(v).ok()).ok_or_else(misfit)?,
            };
            out.extend_from_slice(&(v ^ i32::MIN).to_be_bytes());
        }
        oids::INT8 => {
            let v = value.to_i64().ok_or_else(misfit)?;
            out.extend_from_slice(&(v ^ i64::MIN).to_be_bytes());
        }
        oids::XID8 | oids::PG_LSN => {
            encode_unsigned(value.to_i64().ok_or_else(misfit)? as u64, out);
        }
        oids::INT2 => {
            let v = value.to_i64().and_then(|v| i16::try_from(v).ok()).ok_or_else(misfit)?;
            out.extend_from_slice(&(v ^ i16::MIN).to_be_bytes());
        }
        oids::BPCHAR => escape(trim_bpchar(value.as_str()).as_bytes(), out),
        _ => encode_natural(value, out),
    }
    Ok(())
}

fn encode_natural(value: &Datum, out: &mut Vec<u8>) {
    match value {
        Datum::Null => {}
        Datum::Bool(v) => out.push(u8::from(*v)),
        Datum::Int2(v) => out.extend_from_slice(&(v ^ i16::MIN).to_be_bytes()),
        Datum::Int4(v) | Datum::Date(v) => out.extend_from_slice(&(v ^ i32::MIN).to_be_bytes()),
        Datum::Int8(v) | Datum::Time(v) | Datum::Timestamp(v) | Datum::Timestamptz(v) => {
            out.extend_from_slice(&(v ^ i64::MIN).to_be_bytes());
        }
        Datum::Float4(v) => {
            let bits = if v.is_nan() { f32::NAN } else { *v + 0.0 }.to_bits();
            let key = if bits >> 31 == 1 { !bits } else { bits ^ 1 << 31 };
            out.extend_from_slice(&key.to_be_bytes());
        }
        Datum::Float8(v) => {
            let bits = if v.is_nan() { f64::NAN } else { *v + 0.0 }.to_bits();
            let key = if bits >> 63 == 1 { !bits } else { bits ^ 1 << 63 };
            out.extend_from_slice(&key.to_be_bytes());
        }
        Datum::Numeric(n) => n.key(out),
        Datum::Text(s) => escape(s.as_bytes(), out),
        Datum::Bpchar(s) => escape(trim_bpchar(s).as_bytes(), out),
        Datum::Bytea(b) => escape(b, out),
        Datum::Char(c) => out.push(*c),
        Datum::Interval(i) => {
            out.extend_from_slice(&(interval_span(i) ^ i128::MIN).to_be_bytes());
        }
        Datum::Oid(v) => out.extend_from_slice(&v.to_be_bytes()),
        Datum::Tid(t) => out.extend_from_slice(&t.to_bytes()),
        Datum::Uuid(u) => out.extend_from_slice(&**u),
        Datum::Array(a) => encode_array(a, out),
        Datum::Record(r) => {
            let unsigned = |at: usize| r.shape.columns.get(at).is_some_and(|c| is_unsigned(c.1));
            encode_items(&r.fields, unsigned, out);
        }
        Datum::Timetz(t, west) => {
            let utc = crate::order::timetz_utc(*t, *west);
            out.extend_from_slice(&(utc ^ i64::MIN).to_be_bytes());
            out.extend_from_slice(&(west ^ i32::MIN).to_be_bytes());
        }
        Datum::Money(v) => out.extend_from_slice(&(v ^ i64::MIN).to_be_bytes()),
        Datum::Inet(i) => encode_inet(i, out),
        Datum::Macaddr(m) => out.extend_from_slice(m),
        Datum::Macaddr8(m) => out.extend_from_slice(m),
        Datum::Bits(b) => {
            escape(&b.bytes, out);
            out.extend_from_slice(&b.len.to_be_bytes());
        }
        Datum::Jsonb(j) => crate::jsonb::key(j, escape, out),
        Datum::Jsonpath(p) => escape(p.text().as_bytes(), out),
        Datum::Range(r) => crate::range::key(r, encode_natural, out),
        Datum::Enum(_, rank) => out.extend_from_slice(&rank.to_be_bytes()),
        Datum::Open(v) => {
            let mut key = Vec::new();
            v.0.key(&mut key);
            escape(&key, out);
        }
        Datum::Multirange(m) => {
            for range in &m.ranges {
                out.push(VALUE);
                crate::range::key(range, encode_natural, out);
            }
            out.push(END);
        }
    }
}

/// Family, then the network's bits one by one, each after a 1, and a 0 at their end: a network
/// comes before all that it contains. Then the whole address.
fn encode_inet(i: &Inet, out: &mut Vec<u8>) {
    out.push(u8::from(i.v6));
    let bit = |n: u8| i.addr[usize::from(n / 8)] & (0x80 >> (n % 8)) != 0;
    let marked = (0..i.bits).flat_map(|n| [true, bit(n)]);
    out.extend_from_slice(&Bits::collect(marked.chain(std::iter::once(false))).bytes);
    out.extend_from_slice(&i.addr);
}

/// `unsigned`: whether the values of a place have no sign.
fn encode_items(items: &[Datum], unsigned: impl Fn(usize) -> bool, out: &mut Vec<u8>) {
    for (at, item) in items.iter().enumerate() {
        out.push(if item.is_null() { NULL_LAST } else { VALUE });
        match item {
            Datum::Int8(value) if unsigned(at) => encode_unsigned(*value as u64, out),
            item => encode_natural(item, out),
        }
    }
    out.push(END);
}

/// See [`HALF`].
fn encode_unsigned(value: u64, out: &mut Vec<u8>) {
    if value < HALF {
        out.extend_from_slice(&(value + (1 << 63)).to_be_bytes());
    } else {
        out.extend_from_slice(&u64::MAX.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

fn encode_array(a: &Array, out: &mut Vec<u8>) {
    let unsigned = is_unsigned(a.element);
    encode_items(&a.items, |_| unsigned, out);
    out.push(a.dims.len() as u8);
    for (len, _) in &a.dims {
        out.extend_from_slice(&(len ^ i32::MIN).to_be_bytes());
    }
    for (_, low) in &a.dims {
        out.extend_from_slice(&(low ^ i32::MIN).to_be_bytes());
    }
}

fn escape(bytes: &[u8], out: &mut Vec<u8>) {
    if bytes.contains(&0) {
        for b in bytes {
            out.push(*b);
            if *b == 0 {
                out.push(0xff);
            }
        }
    } else {
        out.extend_from_slice(bytes);
    }
    out.extend_from_slice(&[0, 0]);
}

/// The beginning that the keys of all texts with these first bytes share, where texts sort by bytes.
pub fn text_beginning(bytes: &[u8], order: KeyOrder) -> Vec<u8> {
    let mut out = vec![VALUE];
    escape(bytes, &mut out);
    out.truncate(out.len() - 2);
    if order.descending {
        out[1..].iter_mut().for_each(|b| *b = !*b);
    }
    out
}

/// Reads one column back (index-only scans); returns the value and the bytes used. None for types
/// whose encoding loses something (numeric's scale, bpchar's blanks).
pub fn decode(ty: Oid, bytes: &[u8], order: KeyOrder) -> Option<(Datum, usize)> {
    if order.collation != Slot::BYTES {
        return None;
    }
    match *bytes.first()? {
        NULL_FIRST | NULL_LAST => return Some((Datum::Null, 1)),
        _ => {}
    }
    let invert = if order.descending { 0xff } else { 0 };
    let body = &bytes[1..];
    if matches!(ty, oids::XID8 | oids::PG_LSN) {
        let at = |from: usize| {
            let bytes: [u8; 8] = body.get(from..from + 8)?.try_into().ok()?;
            Some(u64::from_be_bytes(bytes.map(|b| b ^ invert)))
        };
        return Some(match at(0)? {
            u64::MAX => (Datum::Int8(at(8)? as i64), 17),
            v => (Datum::Int8(v.checked_sub(1 << 63)? as i64), 9),
        });
    }
    if let Some(width) = fixed_width(ty) {
        let mut raw = [0u8; 16];
        for (to, from) in raw.iter_mut().zip(body.get(..width)?) {
            *to = from ^ invert;
        }
        return Some((decode_fixed(ty, &raw)?, 1 + width));
    }
    match ty {
        oids::TEXT | oids::VARCHAR | oids::NAME => {
            let (text, used) = unescape(body, invert)?;
            Some((Datum::text(std::str::from_utf8(&text).ok()?), 1 + used))
        }
        oids::BYTEA => {
            let (bytes, used) = unescape(body, invert)?;
            Some((Datum::bytea(&bytes), 1 + used))
        }
        _ => None,
    }
}

/// Whether [`decode`] gives a type's values back.
pub fn is_decodable(ty: Oid) -> bool {
    fixed_width(ty).is_some()
        || matches!(
            ty,
            oids::TEXT | oids::VARCHAR | oids::NAME | oids::BYTEA | oids::XID8 | oids::PG_LSN
        )
}

/// Whether the keys of a type have one length, and values can be read back from them.
pub fn is_fixed(ty: Oid) -> bool {
    fixed_width(ty).is_some()
}

fn fixed_width(ty: Oid) -> Option<usize> {
    Some(match ty {
        oids::BOOL | oids::CHAR => 1,
        oids::INT2 => 2,
        oids::INT4 | oids::DATE | oids::OID | oids::XID | oids::CID => 4,
        oids::INT8 => 8,
        oids::TIME | oids::TIMESTAMP | oids::TIMESTAMPTZ => 8,
        oids::TID => 6,
        oids::UUID => 16,
        _ if crate::io::is_reg(ty) => 4,
        _ => return None,
    })
}

fn decode_fixed(ty: Oid, raw: &[u8; 16]) -> Option<Datum> {
    let four = u32::from_be_bytes(raw[..4].try_into().ok()?);
    let eight = i64::from_be_bytes(raw[..8].try_into().ok()?) ^ i64::MIN;
    Some(match ty {
        oids::BOOL => Datum::Bool(raw[0] != 0),
        oids::CHAR => Datum::Char(raw[0]),
        oids::INT2 => Datum::Int2(i16::from_be_bytes([raw[0], raw[1]]) ^ i16::MIN),
        oids::INT4 => Datum::Int4(four as i32 ^ i32::MIN),
        oids::DATE => Datum::Date(four as i32 ^ i32::MIN),
        oids::INT8 => Datum::Int8(eight),
        oids::TIME => Datum::Time(eight),
        oids::TIMESTAMP => Datum::Timestamp(eight),
        oids::TIMESTAMPTZ => Datum::Timestamptz(eight),
        oids::TID => Datum::Tid(TupleId::from_bytes(raw[..6].try_into().ok()?)),
        oids::UUID => Datum::Uuid((*raw).into()),
        _ => Datum::Oid(four),
    })
}

/// The bytes up to the 00 00, and how many were read.
fn unescape(bytes: &[u8], invert: u8) -> Option<(Vec<u8>, usize)> {
    let (mut out, mut i) = (Vec::new(), 0);
    loop {
        match (bytes.get(i)? ^ invert, bytes.get(i + 1).map(|b| b ^ invert)) {
            (0, Some(0)) => return Some((out, i + 2)),
            (0, Some(_)) => {
                out.push(0);
                i += 2;
            }
            (b, _) => {
                out.push(b);
                i += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests;
