//! Functions of bit and bit varying.

use base::{Result, err};

use super::{NamedBody, S};
use crate::bulk::{self, Pace};
use crate::datum::{Bits, Datum};
use crate::io;
use crate::oids;

fn bits(b: Bits) -> Datum {
    Datum::Bits(b.into())
}

/// Byte by byte; the bits behind the last are 0 in all of them.
fn by_bytes(len: u32, all: impl Iterator<Item = u8>) -> Result<Datum> {
    let room = (len as usize).div_ceil(8);
    bulk::ask(room)?;
    let mut bytes = Vec::with_capacity(room);
    for (n, byte) in all.enumerate() {
        if n % bulk::PIECE_BYTES == 0 {
            sched::check_interrupts_now()?;
        }
        bytes.push(byte);
    }
    if let (Some(last), 1..) = (bytes.last_mut(), len % 8) {
        *last &= !(0xff_u8 >> (len % 8));
    }
    Ok(bits(Bits { len, bytes }))
}

fn combine(a: &[Datum], what: &str, f: fn(u8, u8) -> u8) -> Result<Datum> {
    let (x, y) = (a[0].as_bits(), a[1].as_bits());
    if x.len != y.len {
        return Err(err!(
            STRING_DATA_LENGTH_MISMATCH,
            "cannot {what} bit strings of different sizes"
        ));
    }
    by_bytes(x.len, x.bytes.iter().zip(&y.bytes).map(|(p, q)| f(*p, *q)))
}

fn shift(b: &Bits, left: i64) -> Datum {
    let at = |i: i64| u32::try_from(i).ok().filter(|i| *i < b.len).is_some_and(|i| b.get(i));
    bits(Bits::collect((0..i64::from(b.len)).map(|i| at(i + left))))
}

/// The bits from a place (from 1), `len` of them or all.
fn substring(b: &Bits, from: i32, len: Option<i32>) -> Result<Bits> {
    let start = i64::from(from) - 1;
    let end = match len {
        Some(len) if len < 0 => {
            return Err(err!(SUBSTRING_ERROR, "negative substring length not allowed"));
        }
        Some(len) => start + i64::from(len),
        None => i64::from(b.len),
    };
    let (start, end) = (start.max(0), end.min(i64::from(b.len)));
    Ok(Bits::collect((start..end).map(|i| b.get(i as u32))))
}

fn concat(parts: &[&Bits]) -> Bits {
    Bits::collect(parts.iter().flat_map(|p| p.iter()))
}

fn overlay(b: &Bits, new: &Bits, from: i32, len: i32) -> Result<Datum> {
    if from <= 0 {
        return Err(err!(SUBSTRING_ERROR, "negative substring length not allowed"));
    }
    let head = substring(b, 1, Some(from - 1))?;
    let tail = substring(
        b,
        from.checked_add(len).ok_or_else(|| super::int::out_of_range("integer"))?,
        None,
    )?;
    Ok(bits(concat(&[&head, new, &tail])))
}

fn position(b: &Bits, part: &Bits) -> Result<i32> {
    if part.len > b.len || b.len == 0 {
        return Ok(0);
    }
    let mut pace = Pace::default();
    for at in 0..=b.len - part.len {
        pace.step()?;
        let mut same = 0;
        while same < part.len && b.get(at + same) == part.get(same) {
            pace.step()?;
            same += 1;
        }
        if same == part.len {
            return Ok(at as i32 + 1);
        }
    }
    Ok(0)
}

fn count(b: &Bits) -> Result<i64> {
    let pieces = bulk::byte_pieces(&b.bytes);
    let ones = |piece: &[u8]| piece.iter().map(|byte| i64::from(byte.count_ones())).sum::<i64>();
    pieces.map(|piece| piece.map(ones)).sum()
}

fn index(b: &Bits, at: i32) -> Result<u32> {
    u32::try_from(at).ok().filter(|i| *i < b.len).ok_or_else(|| {
        err!(
            ARRAY_SUBSCRIPT_ERROR,
            "bit index {at} out of valid range (0..{})",
            i64::from(b.len) - 1
        )
    })
}

fn set(b: &Bits, at: i32, to: i32) -> Result<Datum> {
    let at = index(b, at)?;
    if !matches!(to, 0 | 1) {
        return Err(err!(INVALID_PARAMETER_VALUE, "new bit must be 0 or 1"));
    }
    let (place, bit) = ((at / 8) as usize, 0x80 >> (at % 8));
    let changed = |(n, byte): (usize, &u8)| match (n == place, to) {
        (true, 1) => byte | bit,
        (true, _) => byte & !bit,
        _ => *byte,
    };
    by_bytes(b.len, b.bytes.iter().enumerate().map(changed))
}

/// An integer's lowest bits, sign extended to the left.
fn from_integer(v: i64, width: u32, len: i32) -> Datum {
    // As in PostgreSQL, a length that can't be is none, and then it is 1.
    let len = if (1..=i32::MAX - 7).contains(&len) { len as u32 } else { 1 };
    let bit = |i: u32| v >> i.min(width - 1).min(63) & 1 == 1;
    bits(Bits::collect((0..len).rev().map(bit)))
}

fn to_integer(b: &Bits, width: u32, name: &str) -> Result<u64> {
    if b.len > width {
        return Err(err!(NUMERIC_VALUE_OUT_OF_RANGE, "{name} out of range"));
    }
    Ok(b.iter().fold(0, |v, bit| v << 1 | u64::from(bit)))
}

/// `bit(value, typmod, explicit)`, the function behind casts with a length.
fn resize(a: &[Datum], ty: base::Oid) -> Result<Datum> {
    io::apply_typmod(ty, a[1].as_int4(), a[0].clone(), a[2].as_bool())
}

/// The bodies of this family.
pub(super) fn bodies() -> Vec<NamedBody> {
    vec![
        ("bit_and", S(|a, _| combine(a, "AND", |x, y| x & y))),
        ("bit_or", S(|a, _| combine(a, "OR", |x, y| x | y))),
        ("bitxor", S(|a, _| combine(a, "XOR", |x, y| x ^ y))),
        (
            "bitnot",
            S(|a, _| {
                let b = a[0].as_bits();
                by_bytes(b.len, b.bytes.iter().map(|byte| !byte))
            }),
        ),
        ("bitshiftleft", S(|a, _| Ok(shift(a[0].as_bits(), a[1].as_int4().into())))),
        ("bitshiftright", S(|a, _| Ok(shift(a[0].as_bits(), -i64::from(a[1].as_int4()))))),
        ("bitcat", S(|a, _| Ok(bits(concat(&[a[0].as_bits(), a[1].as_bits()]))))),
        (
            "bitsubstr",
            S(|a, _| substring(a[0].as_bits(), a[1].as_int4(), Some(a[2].as_int4())).map(bits)),
        ),
        ("bitsubstr_no_len", S(|a, _| substring(a[0].as_bits(), a[1].as_int4(), None).map(bits))),
        (
            "bitoverlay",
            S(|a, _| overlay(a[0].as_bits(), a[1].as_bits(), a[2].as_int4(), a[3].as_int4())),
        ),
        (
            "bitoverlay_no_len",
            S(|a, _| {
                let new = a[1].as_bits();
                overlay(a[0].as_bits(), new, a[2].as_int4(), new.len as i32)
            }),
        ),
        ("bitposition", S(|a, _| position(a[0].as_bits(), a[1].as_bits()).map(Into::into))),
        (
            "bitgetbit",
            S(|a, _| {
                let b = a[0].as_bits();
                Ok(i32::from(b.get(index(b, a[1].as_int4())?)).into())
            }),
        ),
        ("bitsetbit", S(|a, _| set(a[0].as_bits(), a[1].as_int4(), a[2].as_int4()))),
        ("bitlength", S(|a, _| Ok((a[0].as_bits().len as i32).into()))),
        ("bitoctetlength", S(|a, _| Ok((a[0].as_bits().bytes.len() as i32).into()))),
        ("bit_bit_count", S(|a, _| count(a[0].as_bits()).map(Into::into))),
        ("bitfromint4", S(|a, _| Ok(from_integer(a[0].as_int4().into(), 32, a[1].as_int4())))),
        ("bitfromint8", S(|a, _| Ok(from_integer(a[0].as_int8(), 64, a[1].as_int4())))),
        (
            "bittoint4",
            S(|a, _| to_integer(a[0].as_bits(), 32, "integer").map(|v| (v as u32 as i32).into())),
        ),
        (
            "bittoint8",
            S(|a, _| to_integer(a[0].as_bits(), 64, "bigint").map(|v| (v as i64).into())),
        ),
        ("bit", S(|a, _| resize(a, oids::BIT))),
        ("varbit", S(|a, _| resize(a, oids::VARBIT))),
    ]
}
