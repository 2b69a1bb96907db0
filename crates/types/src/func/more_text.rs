//! Functions of text and bytea that need a library or a little parser: digests, Unicode normal
//! forms, `unistr`, `parse_ident`, conversions of encoding, options of foreign data.

use base::{Result, err};
use sha2::Digest;
use unicode_normalization::UnicodeNormalization;

use super::{NamedBody, S};
use crate::bulk::{self, Pace};
use crate::datum::Datum;
use crate::encodings::{Encoding, ascii};
use crate::oids;

/// The digest of what may be many bytes.
fn digest<D: Digest>(bytes: &[u8]) -> Result<Datum> {
    let mut digest = D::new();
    for piece in bulk::byte_pieces(bytes) {
        digest.update(piece?);
    }
    Ok(Datum::bytea(&digest.finalize()))
}

fn normalized(text: &str, form: &str) -> Result<String> {
    match form.to_ascii_uppercase().as_str() {
        "NFC" => at_leisure(text.nfc()),
        "NFD" => at_leisure(text.nfd()),
        "NFKC" => at_leisure(text.nfkc()),
        "NFKD" => at_leisure(text.nfkd()),
        _ => Err(err!(INVALID_PARAMETER_VALUE, "invalid normalization form: {form}")),
    }
}

/// A text of characters, of which there may be many.
fn at_leisure(chars: impl Iterator<Item = char>) -> Result<String> {
    let (mut out, mut pace) = (String::new(), Pace::default());
    for c in chars {
        pace.step()?;
        out.push(c);
    }
    Ok(out)
}

/// `unistr`: `\XXXX`, `\+XXXXXX`, `\uXXXX`, `\UXXXXXXXX`, `\\`.
fn unistr(text: &str) -> Result<String> {
    let bad = || {
        err!(SYNTAX_ERROR, "invalid Unicode escape")
            .hint("Unicode escapes must be \\XXXX, \\+XXXXXX, \\uXXXX, or \\UXXXXXXXX.")
    };
    let pair = || err!(SYNTAX_ERROR, "invalid Unicode surrogate pair");
    let mut out = String::with_capacity(text.len());
    let mut high: Option<u32> = None;
    let (mut rest, mut pace) = (text, Pace::default());
    while let Some(c) = rest.chars().next() {
        pace.step()?;
        if c != '\\' || rest.starts_with("\\\\") {
            if high.is_some() {
                return Err(pair());
            }
            out.push(c);
            rest = &rest[if c == '\\' { 2 } else { c.len_utf8() }..];
            continue;
        }
        let (skip, len) = match rest.as_bytes().get(1) {
            Some(b'u') => (2, 4),
            Some(b'U') => (2, 8),
            Some(b'+') => (2, 6),
            _ => (1, 4),
        };
        let digits = rest.get(skip..skip + len).ok_or_else(bad)?;
        let plain = digits.bytes().all(|b| b.is_ascii_hexdigit());
        let unit = u32::from_str_radix(digits, 16).ok().filter(|_| plain).ok_or_else(bad)?;
        rest = &rest[skip + len..];
        let code = match (unit, high.take()) {
            (0xd800..=0xdbff, None) => {
                high = Some(unit);
                continue;
            }
            (0xdc00..=0xdfff, Some(first)) => 0x10000 + ((first & 0x3ff) << 10) + (unit & 0x3ff),
            (0xdc00..=0xdfff, None) | (_, Some(_)) => return Err(pair()),
            (unit, None) => unit,
        };
        out.push(char::from_u32(code).filter(|c| *c != '\0').ok_or_else(|| {
            err!(INVALID_PARAMETER_VALUE, "invalid Unicode code point: {code:04X}")
        })?);
    }
    if high.is_some() {
        return Err(pair());
    }
    Ok(out)
}

/// `parse_ident`: the names of a dotted identifier.
fn parse_ident(text: &str, strict: bool) -> Result<Datum> {
    let fail = || err!(INVALID_PARAMETER_VALUE, "string is not a valid identifier: \"{text}\"");
    let mut names = Vec::new();
    let mut rest = text.trim_start();
    loop {
        let missing = |detail: &str| fail().detail(detail.to_owned());
        if let Some(inner) = rest.strip_prefix('"') {
            let mut name = String::new();
            let mut after = inner;
            loop {
                let end = after.find('"').ok_or_else(|| {
                    err!(INVALID_PARAMETER_VALUE, "string is not a valid identifier: \"{text}\"")
                        .detail("String has unclosed double quotes.")
                })?;
                name.push_str(&after[..end]);
                after = &after[end + 1..];
                match after.strip_prefix('"') {
                    Some(more) => {
                        name.push('"');
                        after = more;
                    }
                    None => break,
                }
            }
            if name.is_empty() {
                return Err(missing("Quoted identifier must not be empty."));
            }
            names.push(Datum::text(&name));
            rest = after;
        } else {
            let is_part = |c: char| c == '_' || c.is_alphanumeric() || c == '$' || !c.is_ascii();
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            let starts =
                rest.chars().next().is_some_and(|c| is_part(c) && c != '$' && !c.is_ascii_digit());
            if end == 0 || !starts {
                return Err(match rest.chars().next() {
                    Some('.') => missing("No valid identifier before \".\"."),
                    _ if !names.is_empty() => missing("No valid identifier after \".\"."),
                    _ => fail(),
                });
            }
            names.push(Datum::from(super::text::lower(&rest[..end])));
            rest = &rest[end..];
        }
        rest = rest.trim_start();
        match rest.strip_prefix('.') {
            Some(after) => rest = after.trim_start(),
            None if rest.is_empty() || !strict => break,
            None => return Err(fail()),
        }
    }
    Ok(Datum::array(oids::TEXT, names))
}

fn to_ascii(text: &str, encoding: Encoding) -> Result<Datum> {
    ascii::to_ascii(encoding, text.as_bytes()).map(Into::into)
}

/// The bodies of this family.
/// A validator's arguments: options by name, and the catalog of what has them.
pub fn validated(args: &[Datum]) -> (Vec<(String, String)>, u32) {
    let of = match args.get(1) {
        Some(Datum::Oid(id)) => *id,
        _ => 0,
    };
    let pair = |item: &Datum| match item {
        Datum::Text(text) => {
            let (name, value) = text.split_once('=').unwrap_or((text, ""));
            Some((name.to_owned(), value.to_owned()))
        }
        _ => None,
    };
    let list = match args.first() {
        Some(Datum::Array(array)) => array.items.iter().filter_map(pair).collect(),
        _ => Vec::new(),
    };
    (list, of)
}

pub(super) fn bodies() -> Vec<NamedBody> {
    vec![
        (
            "postgresql_fdw_validator",
            S(|a, _| {
                let (options, of) = validated(a);
                crate::foreign::validate(&options, of)?;
                Ok(Datum::Bool(true))
            }),
        ),
        ("sha224_bytea", S(|a, _| digest::<sha2::Sha224>(a[0].as_bytea()))),
        ("sha256_bytea", S(|a, _| digest::<sha2::Sha256>(a[0].as_bytea()))),
        ("sha384_bytea", S(|a, _| digest::<sha2::Sha384>(a[0].as_bytea()))),
        ("sha512_bytea", S(|a, _| digest::<sha2::Sha512>(a[0].as_bytea()))),
        (
            "unicode_normalize_func",
            S(|a, _| normalized(a[0].as_str(), a[1].as_str()).map(Into::into)),
        ),
        (
            "unicode_is_normalized",
            S(|a, _| Ok((normalized(a[0].as_str(), a[1].as_str())? == a[0].as_str()).into())),
        ),
        ("unistr", S(|a, _| unistr(a[0].as_str()).map(Into::into))),
        ("parse_ident", S(|a, _| parse_ident(a[0].as_str(), a[1].as_bool()))),
        ("to_ascii_default", S(|a, _| to_ascii(a[0].as_str(), Encoding::UTF8))),
        ("to_ascii_enc", S(|a, _| to_ascii(a[0].as_str(), ascii::of_code(a[1].as_int4())?))),
        ("to_ascii_encname", S(|a, _| to_ascii(a[0].as_str(), ascii::named(a[1].as_str())?))),
    ]
}
