//! ASCII armor of PGP's messages: RFC 4880, chapter 6.

use std::sync::Arc;

use base::{Result, bail, err};
use types::Datum;
use types::datum::Shape;
use types::func::Body;
use types::oids::{RECORD, TEXT};

use crate::common::Bodies;

const BEGIN: &str = "-----BEGIN PGP MESSAGE-----";
const END: &str = "-----END PGP MESSAGE-----";
/// Letters of base 64 in a line.
const LINE: usize = 76;
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

fn corrupt() -> base::Error {
    err!(EXTERNAL_ROUTINE_INVOCATION_EXCEPTION, "Corrupt ascii-armor")
}

fn crc24(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0xb7_04ce, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte) << 16, |crc: u32, _| {
            let next = crc << 1;
            if next & 0x100_0000 != 0 { next ^ 0x186_4cfb } else { next }
        }) & 0xff_ffff
    })
}

fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() / 3 * 4 + 8);
    for three in bytes.chunks(3) {
        let all = three.iter().fold(0u32, |n, b| n << 8 | u32::from(*b)) << (8 * (3 - three.len()));
        for n in 0..4 {
            let digit = char::from(DIGITS[(all >> (18 - 6 * n)) as usize & 63]);
            out.push(if n > three.len() { '=' } else { digit });
        }
    }
    out
}

fn decode(text: &str) -> Option<Vec<u8>> {
    let letters: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    let used = letters.iter().take_while(|b| **b != b'=').count();
    let padding = letters.len() - used;
    if letters.len() % 4 != 0 || padding > 2 || letters[used..].iter().any(|b| *b != b'=') {
        return None;
    }
    let mut out = Vec::with_capacity(used * 3 / 4);
    for four in letters[..used].chunks(4) {
        let mut all = 0u32;
        for letter in four {
            all = all << 6 | DIGITS.iter().position(|d| d == letter)? as u32;
        }
        all <<= 6 * (4 - four.len());
        out.extend_from_slice(&all.to_be_bytes()[1..four.len()]);
    }
    Some(out)
}

fn armor(bytes: &[u8], headers: &[(String, String)]) -> String {
    let mut out = format!("{BEGIN}\n");
    for (key, value) in headers {
        out.push_str(&format!("{key}: {value}\n"));
    }
    out.push('\n');
    let body = encode(bytes);
    let mut rest = body.as_str();
    while !rest.is_empty() {
        let (line, later) = rest.split_at(rest.len().min(LINE));
        out.push_str(line);
        out.push('\n');
        rest = later;
    }
    let crc = crc24(bytes).to_be_bytes();
    out.push_str(&format!("={}\n{END}\n", encode(&crc[1..])));
    out
}

/// The lines between the first and the last, headers apart from what follows the blank line.
fn parts(text: &str) -> Result<(Vec<&str>, Vec<&str>)> {
    let mut lines = text.lines().map(|l| l.strip_suffix('\r').unwrap_or(l));
    lines.by_ref().find(|l| l.trim_end() == BEGIN).ok_or_else(corrupt)?;
    let mut headers = Vec::new();
    loop {
        match lines.next().ok_or_else(corrupt)? {
            "" => break,
            line if line.starts_with("-----") => return Err(corrupt()),
            line => headers.push(line),
        }
    }
    let mut body = Vec::new();
    loop {
        match lines.next().ok_or_else(corrupt)? {
            line if line.starts_with("-----END PGP") => return Ok((headers, body)),
            line => body.push(line),
        }
    }
}

/// The bytes in an armor.
///
/// # Errors
/// `39000`: it is damaged.
pub fn dearmor(text: &str) -> Result<Vec<u8>> {
    let (_, body) = parts(text)?;
    let (crc, lines) = body.split_last().ok_or_else(corrupt)?;
    let crc = crc.strip_prefix('=').and_then(decode).ok_or_else(corrupt)?;
    let bytes = decode(&lines.concat()).ok_or_else(corrupt)?;
    if crc != crc24(&bytes).to_be_bytes()[1..] {
        return Err(corrupt());
    }
    Ok(bytes)
}

fn headers(text: &str) -> Result<Vec<Datum>> {
    let columns = vec![("key".into(), TEXT), ("value".into(), TEXT)];
    let shape = Arc::new(Shape { ty: RECORD, columns });
    let row = |line: &&str| {
        let (key, value) = line.split_once(": ").ok_or_else(corrupt)?;
        Ok(Datum::record(shape.clone(), vec![Datum::text(key), Datum::text(value)]))
    };
    parts(text)?.0.iter().map(row).collect()
}

fn part_of_header(value: &Datum, kind: &str) -> Result<String> {
    if value.is_null() {
        bail!(NULL_VALUE_NOT_ALLOWED, "null value not allowed for header {kind}");
    }
    let text = value.as_str();
    if !text.is_ascii() {
        bail!(INVALID_PARAMETER_VALUE, "header {kind} must not contain non-ASCII characters");
    }
    if kind == "key" && text.contains(": ") {
        bail!(INVALID_PARAMETER_VALUE, "header key must not contain \": \"");
    }
    if text.contains('\n') {
        bail!(INVALID_PARAMETER_VALUE, "header {kind} must not contain newlines");
    }
    Ok(text.to_owned())
}

fn with_headers(args: &[Datum]) -> Result<Datum> {
    let mut pairs = Vec::new();
    if let [_, keys, values] = args {
        let (keys, values) = (keys.as_array(), values.as_array());
        if keys.dims.len() > 1 || keys.dims.len() != values.dims.len() {
            bail!(ARRAY_SUBSCRIPT_ERROR, "wrong number of array subscripts");
        }
        if keys.items.len() != values.items.len() {
            bail!(ARRAY_SUBSCRIPT_ERROR, "mismatched array dimensions");
        }
        for (key, value) in keys.items.iter().zip(&values.items) {
            pairs.push((part_of_header(key, "key")?, part_of_header(value, "value")?));
        }
    }
    Ok(Datum::text(&armor(args[0].as_bytea(), &pairs)))
}

pub(super) fn bodies() -> Bodies {
    vec![
        ("pg_armor", Body::Scalar(|a, _| with_headers(a))),
        ("pg_dearmor", Body::Scalar(|a, _| Ok(Datum::bytea(&dearmor(a[0].as_str())?)))),
        ("pgp_armor_headers", Body::Set(|a, _| headers(a[0].as_str()))),
    ]
}
