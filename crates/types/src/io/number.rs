//! Text forms of integers, floats, oids and the like.

use base::{Oid, Result, TupleId, err};

use super::{invalid_syntax, trim_blanks};

/// Digits with an optional sign, blanks around; -1 < |value| fits i128 by length.
fn parse_integer(kind: &str, text: &str, min: i64, max: i64) -> Result<i64> {
    let s = trim_blanks(text);
    let (negative, digits) = match s.as_bytes().first() {
        Some(b'-') => (true, &s.as_bytes()[1..]),
        Some(b'+') => (false, &s.as_bytes()[1..]),
        _ => (false, s.as_bytes()),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(invalid_syntax(kind, text));
    }
    let mut value = 0i64;
    for d in digits {
        // Negative, because there are more negative numbers than positive ones.
        let step = value.checked_mul(10).and_then(|v| v.checked_sub(i64::from(d - b'0')));
        value = step.ok_or_else(|| out_of_range(kind, text))?;
    }
    let value = if negative { Some(value) } else { value.checked_neg() };
    value.filter(|v| (min..=max).contains(v)).ok_or_else(|| out_of_range(kind, text))
}

#[cold]
fn out_of_range(kind: &str, text: &str) -> base::Error {
    err!(NUMERIC_VALUE_OUT_OF_RANGE, "value \"{text}\" is out of range for type {kind}")
}

/// Reads an int2.
///
/// # Errors
/// `22P02`, `22003`; so for the others here.
pub fn parse_int2(text: &str) -> Result<i16> {
    parse_integer("smallint", text, i64::from(i16::MIN), i64::from(i16::MAX)).map(|v| v as i16)
}

/// Reads an int4.
///
/// # Errors
/// See [`parse_int2`].
pub fn parse_int4(text: &str) -> Result<i32> {
    parse_integer("integer", text, i64::from(i32::MIN), i64::from(i32::MAX)).map(|v| v as i32)
}

/// Reads an int8.
///
/// # Errors
/// See [`parse_int2`].
pub fn parse_int8(text: &str) -> Result<i64> {
    parse_integer("bigint", text, i64::MIN, i64::MAX)
}

/// Reads an oid; a negative number stands for its two's complement.
pub(super) fn parse_oid(kind: &str, text: &str) -> Result<u32> {
    parse_integer(kind, text, i64::from(i32::MIN), i64::from(u32::MAX)).map(|v| v as u32)
}

/// Reads regclass and kin from a number or `-`; names are the catalog's.
pub(super) fn parse_reg(ty: Oid, text: &str) -> Result<u32> {
    if text == "-" {
        return Ok(0);
    }
    if text.bytes().all(|b| b.is_ascii_digit()) && !text.is_empty() {
        return parse_oid("oid", text);
    }
    crate::user::object_named(ty, text)
}

/// A transaction id as C's `strtoul` reads it: decimal, octal or hexadecimal by its prefix, as far as there are
/// digits; what is no number is 0.
pub(super) fn parse_xid(text: &str) -> u64 {
    let text = text.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b');
    let (negative, digits) = match text.as_bytes().first() {
        Some(sign @ (b'+' | b'-')) => (*sign == b'-', &text[1..]),
        _ => (false, text),
    };
    let hexadecimal = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
    let hexadecimal = hexadecimal.filter(|d| d.starts_with(|c: char| c.is_ascii_hexdigit()));
    let (radix, digits) = match hexadecimal {
        Some(digits) => (16, digits),
        None if digits.starts_with('0') => (8, digits),
        None => (10, digits),
    };
    let mut value = 0u64;
    for digit in digits.chars().map_while(|c| c.to_digit(radix)) {
        let more = value.checked_mul(radix.into()).and_then(|v| v.checked_add(digit.into()));
        let Some(more) = more else { return u64::MAX };
        value = more;
    }
    if negative { value.wrapping_neg() } else { value }
}

pub(super) fn parse_lsn(text: &str) -> Result<i64> {
    let half = |s: &str| {
        let fits = (1..=8).contains(&s.len()) && s.bytes().all(|b| b.is_ascii_hexdigit());
        fits.then(|| u64::from_str_radix(s, 16).ok()).flatten()
    };
    let parsed = text.split_once('/').and_then(|(hi, lo)| Some((half(hi)? << 32) | half(lo)?));
    parsed.map(|v| v as i64).ok_or_else(|| invalid_syntax("pg_lsn", text))
}

pub(super) fn parse_tid(text: &str) -> Result<TupleId> {
    // Blanks and a sign may stand before a number, anything before and after the parentheses; -1 is the last block.
    let number = |s: &str| s.trim_start().parse::<i64>().ok();
    let parse = || {
        let inner = text.split_once('(')?.1.split_once(')')?.0;
        let (block, offset) = inner.split_once(',')?;
        let block = match number(block)? {
            block @ 0.. => u32::try_from(block).ok()?,
            block => i32::try_from(block).ok()? as u32,
        };
        Some(TupleId { block, offset: u16::try_from(number(offset)?).ok()? })
    };
    parse().ok_or_else(|| invalid_syntax("tid", text))
}

/// Whether a float's text has a digit other than 0 before its exponent.
fn is_nonzero(s: &str) -> bool {
    s.bytes().take_while(|b| !matches!(b, b'e' | b'E')).any(|b| (b'1'..=b'9').contains(&b))
}

macro_rules! parse_float {
    ($(#[$doc:meta])* $name:ident, $ty:ty, $kind:literal) => {
        $(#[$doc])*
        pub fn $name(text: &str) -> Result<$ty> {
            let s = trim_blanks(text);
            let v: $ty = s.parse().map_err(|_| invalid_syntax($kind, text))?;
            let digits = s.bytes().any(|b| b.is_ascii_digit());
            if digits && (v.is_infinite() || (v == 0.0 && is_nonzero(s))) {
                return Err(err!(
                    NUMERIC_VALUE_OUT_OF_RANGE,
                    concat!("\"{}\" is out of range for type ", $kind),
                    s
                ));
            }
            Ok(v)
        }
    };
}
parse_float! {
    /// Reads a float8.
    ///
    /// # Errors
    /// See [`parse_int2`].
    parse_float8, f64, "double precision"
}
parse_float! {
    /// Reads a float4.
    ///
    /// # Errors
    /// See [`parse_int2`].
    parse_float4, f32, "real"
}

/// Appends the shortest text that reads back as the same number (or, when `extra` is 0 or less,
/// 15 + `extra` digits).
pub(crate) fn write_float8(v: f64, extra: i32, out: &mut Vec<u8>) {
    if write_special(v, out) {
        return;
    }
    if extra > 0 {
        write_shortest(ryu::Buffer::new().format_finite(v), 15, out);
    } else {
        write_rounded(v, (15 + extra).max(1), out);
    }
}

/// As [`write_float8`], with 6 digits in place of 15.
pub(crate) fn write_float4(v: f32, extra: i32, out: &mut Vec<u8>) {
    if write_special(f64::from(v), out) {
        return;
    }
    if extra > 0 {
        write_shortest(ryu::Buffer::new().format_finite(v), 6, out);
    } else {
        write_rounded(f64::from(v), (6 + extra).max(1), out);
    }
}

fn write_special(v: f64, out: &mut Vec<u8>) -> bool {
    let word: &[u8] = if v.is_nan() {
        b"NaN"
    } else if v == f64::INFINITY {
        b"Infinity"
    } else if v == f64::NEG_INFINITY {
        b"-Infinity"
    } else {
        return false;
    };
    out.extend_from_slice(word);
    true
}

/// Lays out the digits of `text` (any decimal form) as PostgreSQL does: plain from 0.0001 up to
/// `plain_digits` digits before the point, else with an exponent.
fn write_shortest(text: &str, plain_digits: i32, out: &mut Vec<u8>) {
    let (sign, body) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (mantissa, exponent) = match body.split_once('e') {
        Some((m, e)) => (m, e.parse::<i32>().unwrap_or(0)),
        None => (body, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut digits = [0u8; 40];
    let mut count = 0;
    for b in whole.bytes().chain(fraction.bytes()) {
        digits[count] = b;
        count += 1;
    }
    let mut first = 0;
    while first + 1 < count && digits[first] == b'0' {
        first += 1;
    }
    // Position of the first digit: 0 for units.
    let position = exponent + whole.len() as i32 - 1 - first as i32;
    while count > first + 1 && digits[count - 1] == b'0' {
        count -= 1;
    }
    if sign {
        out.push(b'-');
    }
    lay_out(&digits[first..count], position, plain_digits, out);
}

fn lay_out(digits: &[u8], position: i32, plain_digits: i32, out: &mut Vec<u8>) {
    if digits == b"0" {
        out.push(b'0');
    } else if position < -4 || position >= plain_digits {
        out.push(digits[0]);
        if digits.len() > 1 {
            out.push(b'.');
            out.extend_from_slice(&digits[1..]);
        }
        out.extend_from_slice(if position < 0 { b"e-" } else { b"e+" });
        let e = position.unsigned_abs();
        if e < 10 {
            out.push(b'0');
        }
        super::write_unsigned(u64::from(e), out);
    } else if position < 0 {
        out.extend_from_slice(b"0.");
        out.resize(out.len() + (-position - 1) as usize, b'0');
        out.extend_from_slice(digits);
    } else {
        let whole = position as usize + 1;
        if digits.len() <= whole {
            out.extend_from_slice(digits);
            out.resize(out.len() + whole - digits.len(), b'0');
        } else {
            out.extend_from_slice(&digits[..whole]);
            out.push(b'.');
            out.extend_from_slice(&digits[whole..]);
        }
    }
}

/// C's `%.*g`.
fn write_rounded(v: f64, digits: i32, out: &mut Vec<u8>) {
    let text = format!("{:.*e}", digits as usize - 1, v);
    write_shortest(&text, digits, out);
}
