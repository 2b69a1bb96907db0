//! Text forms of bytea and uuid.

use base::{Result, err};

use super::{invalid_syntax, write_unsigned};
use crate::bulk::{PIECE_BYTES, Pace};

fn nibble(b: u8) -> Option<u8> {
    (b as char).to_digit(16).map(|v| v as u8)
}

/// Reads `\x0102` or the older form with `\\` and `\ooo`.
///
/// # Errors
/// `22023` for bad hexadecimal digits, `22P02` for bad escapes.
pub(crate) fn parse_bytea(text: &str) -> Result<Vec<u8>> {
    match text.strip_prefix("\\x") {
        Some(hex) => parse_hex(hex),
        None => parse_escaped(text),
    }
}

/// Reads pairs of hexadecimal digits, blanks between pairs.
pub(crate) fn parse_hex(hex: &str) -> Result<Vec<u8>> {
    let bad = |rest: &[u8]| {
        let shown = String::from_utf8_lossy(rest).chars().next().unwrap_or(' ');
        err!(INVALID_PARAMETER_VALUE, "invalid hexadecimal digit: \"{shown}\"")
    };
    let bytes = hex.as_bytes();
    let (mut out, mut i) = (Vec::with_capacity(bytes.len() / 2), 0);
    let mut pace = Pace::default();
    while i < bytes.len() {
        pace.step()?;
        if matches!(bytes[i], b' ' | b'\n' | b'\t' | b'\r') {
            i += 1;
            continue;
        }
        let high = nibble(bytes[i]).ok_or_else(|| bad(&bytes[i..]))?;
        let Some(low) = bytes.get(i + 1) else {
            return Err(err!(
                INVALID_PARAMETER_VALUE,
                "invalid hexadecimal data: odd number of digits"
            ));
        };
        out.push(high << 4 | nibble(*low).ok_or_else(|| bad(&bytes[i + 1..]))?);
        i += 2;
    }
    Ok(out)
}

pub(crate) fn parse_escaped(text: &str) -> Result<Vec<u8>> {
    let octal =
        |b: Option<&u8>, most: u8| b.filter(|b| (b'0'..=most).contains(*b)).map(|b| b - b'0');
    let bytes = text.as_bytes();
    let (mut out, mut i) = (Vec::with_capacity(bytes.len()), 0);
    let mut pace = Pace::default();
    while i < bytes.len() {
        pace.step()?;
        if bytes[i] != b'\\' {
            // All that stands for itself.
            let rest = &bytes[i..bytes.len().min(i + PIECE_BYTES)];
            let plain = rest.iter().position(|b| *b == b'\\').unwrap_or(rest.len());
            out.extend_from_slice(&rest[..plain]);
            i += plain;
        } else if bytes.get(i + 1) == Some(&b'\\') {
            out.push(b'\\');
            i += 2;
        } else {
            let digits = (
                octal(bytes.get(i + 1), b'3'),
                octal(bytes.get(i + 2), b'7'),
                octal(bytes.get(i + 3), b'7'),
            );
            let (Some(a), Some(b), Some(c)) = digits else {
                return Err(err!(
                    INVALID_TEXT_REPRESENTATION,
                    "invalid input syntax for type bytea"
                ));
            };
            out.push(a << 6 | b << 3 | c);
            i += 4;
        }
    }
    Ok(out)
}

pub(crate) fn write_hex(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.reserve(bytes.len() * 2);
    for piece in bytes.chunks(PIECE_BYTES) {
        if bytes.len() > PIECE_BYTES {
            sched::give_way();
        }
        for b in piece {
            out.push(DIGITS[usize::from(b >> 4)]);
            out.push(DIGITS[usize::from(b & 15)]);
        }
    }
}

pub(super) fn write_bytea(bytes: &[u8], hex: bool, out: &mut Vec<u8>) {
    if hex {
        out.extend_from_slice(b"\\x");
        write_hex(bytes, out);
    } else {
        write_escaped(bytes, out);
    }
}

pub(crate) fn write_escaped(bytes: &[u8], out: &mut Vec<u8>) {
    for b in bytes {
        match b {
            b'\\' => out.extend_from_slice(b"\\\\"),
            0x20..=0x7e => out.push(*b),
            _ => {
                out.push(b'\\');
                [b >> 6, b >> 3 & 7, b & 7].iter().for_each(|d| write_unsigned(u64::from(*d), out));
            }
        }
    }
}

/// Reads 32 hexadecimal digits, a hyphen allowed after each group of four, braces around allowed.
pub(super) fn parse_uuid(text: &str) -> Result<[u8; 16]> {
    let fail = || invalid_syntax("uuid", text);
    let inner = match text.strip_prefix('{') {
        Some(rest) => rest.strip_suffix('}').ok_or_else(fail)?,
        None => text,
    };
    let (bytes, mut at, mut out) = (inner.as_bytes(), 0, [0u8; 16]);
    for (i, byte) in out.iter_mut().enumerate() {
        if i > 0 && i % 2 == 0 && bytes.get(at) == Some(&b'-') {
            at += 1;
        }
        let pair =
            (bytes.get(at).copied().and_then(nibble), bytes.get(at + 1).copied().and_then(nibble));
        let (Some(high), Some(low)) = pair else { return Err(fail()) };
        *byte = high << 4 | low;
        at += 2;
    }
    if at == bytes.len() { Ok(out) } else { Err(fail()) }
}

pub(super) fn write_uuid(uuid: &[u8; 16], out: &mut Vec<u8>) {
    for (i, part) in [0..4, 4..6, 6..8, 8..10, 10..16].into_iter().enumerate() {
        if i > 0 {
            out.push(b'-');
        }
        write_hex(&uuid[part], out);
    }
}

/// A `"char"`: the first byte, or `\ooo`.
pub(crate) fn parse_char(text: &str) -> u8 {
    match text.as_bytes() {
        [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7'] => {
            (a - b'0') << 6 | (b - b'0') << 3 | (c - b'0')
        }
        bytes => bytes.first().copied().unwrap_or(0),
    }
}

/// A `"char"` as text: nothing for 0, `\ooo` for what is not ASCII.
pub(crate) fn write_char(c: u8, out: &mut Vec<u8>) {
    match c {
        0 => {}
        0x80.. => out.extend_from_slice(format!("\\{c:03o}").as_bytes()),
        _ => out.push(c),
    }
}
