//! Bytes and text: `encode`, `decode`, `md5`, `convert_*`, single bits and bytes; and sizes for
//! people.

use base::{Result, err};

use super::{NamedBody, S};
use crate::bulk::{self, Pace};
use crate::datum::{Datum, Numeric};
use crate::encodings::{self, Encoding};
use crate::io;

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Base64 with a line break after 76 characters, as MIME has it.
fn to_base64(bytes: &[u8]) -> Result<Datum> {
    let (mut out, mut column, mut pace) = (String::new(), 0, Pace::default());
    bulk::ask(bytes.len().div_ceil(57) * 77)?;
    for chunk in bytes.chunks(3) {
        pace.step()?;
        if column == 76 {
            out.push('\n');
            column = 0;
        }
        let word =
            chunk.iter().fold(0u32, |w, b| w << 8 | u32::from(*b)) << (8 * (3 - chunk.len()));
        for i in 0..4 {
            let digit = BASE64[(word >> (18 - 6 * i) & 63) as usize];
            out.push(if i <= chunk.len() { digit as char } else { '=' });
        }
        column += 4;
    }
    bulk::text(out).map(Datum::Text)
}

fn from_base64(text: &str) -> Result<Vec<u8>> {
    let bad = |m: String| err!(INVALID_PARAMETER_VALUE, "{m}");
    let (mut out, mut word, mut count, mut end) = (Vec::new(), 0u32, 0, 0);
    let mut pace = Pace::default();
    for c in text.bytes() {
        pace.step()?;
        let digit = match c {
            b' ' | b'\t' | b'\n' | b'\r' => continue,
            b'=' => {
                if end == 0 {
                    match count {
                        2 => end = 1,
                        3 => end = 2,
                        _ => {
                            return Err(bad(
                                "unexpected \"=\" while decoding base64 sequence".into()
                            ));
                        }
                    }
                }
                0
            }
            c => match BASE64.iter().position(|b| *b == c) {
                Some(d) => d as u32,
                None => {
                    return Err(bad(format!(
                        "invalid symbol \"{}\" found while decoding base64 sequence",
                        c as char
                    )));
                }
            },
        };
        word = word << 6 | digit;
        count += 1;
        if count == 4 {
            out.push((word >> 16) as u8);
            if end == 0 || end > 1 {
                out.push((word >> 8) as u8);
            }
            if end == 0 {
                out.push(word as u8);
            }
            (word, count) = (0, 0);
        }
    }
    if count != 0 {
        return Err(bad("invalid base64 end sequence".into())
            .hint("Input data is missing padding, is truncated, or is otherwise corrupted."));
    }
    Ok(out)
}

#[cold]
fn unknown_encoding(name: &str) -> base::Error {
    err!(INVALID_PARAMETER_VALUE, "unrecognized encoding: \"{name}\"")
}

fn encode(bytes: &[u8], format: &str) -> Result<Datum> {
    let mut out = Vec::new();
    match format.to_ascii_lowercase().as_str() {
        "base64" => return to_base64(bytes),
        "hex" => {
            bulk::ask(2 * bytes.len())?;
            out.reserve_exact(2 * bytes.len());
            for piece in bulk::byte_pieces(bytes) {
                io::write_hex(piece?, &mut out);
            }
        }
        "escape" => {
            let mut pace = Pace::default();
            for b in bytes {
                pace.step()?;
                match b {
                    b'\\' => out.extend_from_slice(b"\\\\"),
                    0 | 0x80.. => out.extend_from_slice(format!("\\{b:03o}").as_bytes()),
                    b => out.push(*b),
                }
            }
        }
        _ => return Err(unknown_encoding(format)),
    }
    bulk::text(out).map(Datum::Text)
}

/// The digest of what may be many bytes.
fn md5(bytes: &[u8]) -> Result<Datum> {
    let mut digest = md5::Context::new();
    for piece in bulk::byte_pieces(bytes) {
        digest.consume(piece?);
    }
    Ok(Datum::from(format!("{:x}", digest.finalize())))
}

fn decode(text: &str, format: &str) -> Result<Datum> {
    let bytes = match format.to_ascii_lowercase().as_str() {
        "base64" => from_base64(text)?,
        "hex" => io::parse_hex(text)?,
        "escape" => io::parse_escaped(text)?,
        _ => return Err(unknown_encoding(format)),
    };
    Ok(Datum::bytea(&bytes))
}

/// `convert` and its kin; `way`: "source" or "destination".
fn named(name: &str, way: &str) -> Result<Encoding> {
    Encoding::find(name)
        .ok_or_else(|| err!(INVALID_PARAMETER_VALUE, "invalid {way} encoding name \"{name}\""))
}

fn convert(bytes: &[u8], from: &str, to: &str) -> Result<Datum> {
    let (from, to) = (named(from, "source")?, named(to, "destination")?);
    Ok(Datum::bytea(&encodings::between(from, to, bytes)?))
}

fn convert_from(bytes: &[u8], from: &str) -> Result<Datum> {
    let bytes = encodings::between(named(from, "source")?, Encoding::UTF8, bytes)?;
    bulk::text(bytes.into_owned()).map(Datum::Text)
}

fn convert_to(text: &str, to: &str) -> Result<Datum> {
    let to = named(to, "destination")?;
    Ok(Datum::bytea(&encodings::between(Encoding::UTF8, to, text.as_bytes())?))
}

/// `length(bytea, name)`: in characters.
fn characters(bytes: &[u8], name: &str) -> Result<Datum> {
    let encoding = Encoding::find(name)
        .ok_or_else(|| err!(INVALID_PARAMETER_VALUE, "invalid encoding name \"{name}\""))?;
    Ok((encodings::count(encoding, bytes)? as i32).into())
}

fn bad_index(n: i64, len: i64) -> base::Error {
    err!(ARRAY_SUBSCRIPT_ERROR, "index {n} out of valid range, 0..{}", len - 1)
}

fn byte_index(bytes: &[u8], n: i64) -> Result<usize> {
    usize::try_from(n)
        .ok()
        .filter(|i| *i < bytes.len())
        .ok_or_else(|| bad_index(n, bytes.len() as i64))
}

fn bit_index(bytes: &[u8], n: i64) -> Result<(usize, u32)> {
    let bits = bytes.len() as i64 * 8;
    if !(0..bits).contains(&n) {
        return Err(bad_index(n, bits));
    }
    Ok(((n / 8) as usize, (n % 8) as u32))
}

fn set_bit(a: &[Datum]) -> Result<Datum> {
    let mut bytes = a[0].as_bytea().to_vec();
    let (at, bit) = bit_index(&bytes, a[1].as_int8())?;
    match a[2].as_int4() {
        0 => bytes[at] &= !(1 << bit),
        1 => bytes[at] |= 1 << bit,
        _ => return Err(err!(INVALID_PARAMETER_VALUE, "new bit must be 0 or 1")),
    }
    Ok(Datum::bytea(&bytes))
}

/// `pg_size_pretty`: the largest unit in which the size is 10240 or more of the next smaller one.
fn pretty(size: i64) -> String {
    const UNITS: [&str; 6] = ["bytes", "kB", "MB", "GB", "TB", "PB"];
    let (negative, mut size) = (size < 0, u128::from(size.unsigned_abs()));
    let mut unit = 0;
    // Half units are kept in the lowest bit until the last rounding.
    let mut halves = false;
    loop {
        let limit = if unit == 0 { 10 * 1024 } else { 20 * 1024 - 1 };
        if size < limit || unit == UNITS.len() - 1 {
            break;
        }
        size >>= if unit == 0 { 9 } else { 10 };
        halves = true;
        unit += 1;
    }
    if halves {
        size = size.div_ceil(2);
    }
    format!("{}{size} {}", if negative { "-" } else { "" }, UNITS[unit])
}

/// `pg_size_bytes`: a number and a unit.
fn size_bytes(text: &str) -> Result<i64> {
    let s = text.trim();
    let digits =
        s.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '+' | '-' | 'e' | 'E')));
    let (number, unit) = s.split_at(digits.unwrap_or(s.len()));
    // An exponent's letter may be the unit's first one.
    let (number, unit) = match number.strip_suffix(['e', 'E']) {
        Some(shorter) if !unit.is_empty() => (shorter, &s[shorter.len()..]),
        _ => (number, unit),
    };
    let invalid = || err!(INVALID_PARAMETER_VALUE, "invalid size: \"{text}\"");
    if !number.contains(|c: char| c.is_ascii_digit()) {
        return Err(invalid());
    }
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "bytes" | "b" => 0,
        "kb" => 10,
        "mb" => 20,
        "gb" => 30,
        "tb" => 40,
        "pb" => 50,
        other => {
            return Err(invalid()
                .detail(format!("Invalid size unit: \"{}\".", &unit.trim()[..other.len()]))
                .hint(
                    "Valid units are \"bytes\", \"B\", \"kB\", \"MB\", \"GB\", \"TB\", and \"PB\".",
                ));
        }
    };
    let n = Numeric::parse(number).map_err(|_| invalid())?;
    n.mul(&Numeric::from(1i64 << shift))?.to_i64().ok_or_else(|| super::int::out_of_range("bigint"))
}

fn nulls(a: &[Datum]) -> i32 {
    a.iter().filter(|d| d.is_null()).count() as i32
}

/// The bodies of this family.
pub(super) fn bodies() -> Vec<NamedBody> {
    vec![
        ("binary_encode", S(|a, _| encode(a[0].as_bytea(), a[1].as_str()))),
        ("binary_decode", S(|a, _| decode(a[0].as_str(), a[1].as_str()))),
        ("md5_text", S(|a, _| md5(a[0].as_str().as_bytes()))),
        ("md5_bytea", S(|a, _| md5(a[0].as_bytea()))),
        ("pg_convert_from", S(|a, _| convert_from(a[0].as_bytea(), a[1].as_str()))),
        ("pg_convert_to", S(|a, _| convert_to(a[0].as_str(), a[1].as_str()))),
        ("pg_convert", S(|a, _| convert(a[0].as_bytea(), a[1].as_str(), a[2].as_str()))),
        ("length_in_encoding", S(|a, _| characters(a[0].as_bytea(), a[1].as_str()))),
        (
            "byteaGetByte",
            S(|a, _| {
                let b = a[0].as_bytea();
                Ok(i32::from(b[byte_index(b, a[1].as_int4().into())?]).into())
            }),
        ),
        (
            "byteaSetByte",
            S(|a, _| {
                let mut b = a[0].as_bytea().to_vec();
                let at = byte_index(&b, a[1].as_int4().into())?;
                b[at] = a[2].as_int4() as u8;
                Ok(Datum::bytea(&b))
            }),
        ),
        (
            "byteaGetBit",
            S(|a, _| {
                let b = a[0].as_bytea();
                let (at, bit) = bit_index(b, a[1].as_int8())?;
                Ok(i32::from(b[at] >> bit & 1).into())
            }),
        ),
        ("byteaSetBit", S(|a, _| set_bit(a))),
        (
            "bytea_bit_count",
            S(|a, _| {
                Ok(a[0].as_bytea().iter().map(|b| i64::from(b.count_ones())).sum::<i64>().into())
            }),
        ),
        ("pg_size_pretty", S(|a, _| Ok(Datum::from(pretty(a[0].as_int8()))))),
        ("pg_size_bytes", S(|a, _| size_bytes(a[0].as_str()).map(Into::into))),
        ("pg_num_nulls", S(|a, _| Ok(nulls(a).into()))),
        ("pg_num_nonnulls", S(|a, _| Ok((a.len() as i32 - nulls(a)).into()))),
        (
            "PG_encoding_to_char",
            S(|a, _| Ok(Datum::text(encodings::of_number(a[0].as_int4()).map_or("", |e| e.0)))),
        ),
        (
            "PG_char_to_encoding",
            S(|a, _| Ok(encodings::number(a[0].as_str()).unwrap_or(-1).into())),
        ),
        (
            "pg_encoding_max_length_sql",
            S(|a, _| Ok(encodings::of_number(a[0].as_int4()).map(|e| e.1).into())),
        ),
    ]
}
