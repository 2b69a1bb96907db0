//! Functions of text, bytea and name.

use base::{Result, err};

use super::{NamedBody, S};
use crate::bulk;
use crate::datum::{Datum, Text};
use crate::io;
use crate::order::trim_bpchar;

/// `a || b`.
fn concat(a: &str, b: &str) -> Datum {
    let mut out = Text::with_capacity(a.len() + b.len());
    bulk::unhurried(a).chain(bulk::unhurried(b)).for_each(|piece| out.push_str(piece));
    Datum::Text(out)
}

pub(crate) fn char_count(s: &str) -> usize {
    let count = |s: &str| if s.is_ascii() { s.len() } else { s.chars().count() };
    bulk::unhurried(s).map(count).sum()
}

/// Where a character begins, by its number from 0; the end when there are no more than that.
fn byte_of(s: &str, mut number: usize) -> usize {
    let mut before = 0;
    for piece in bulk::unhurried(s) {
        let chars = char_count(piece);
        if number < chars {
            return before + piece.char_indices().nth(number).map_or(0, |(at, _)| at);
        }
        (number, before) = (number - chars, before + piece.len());
    }
    before
}

fn length(n: usize) -> Result<Datum> {
    Ok(Datum::Int4(n as i32))
}

/// Byte range of `count` characters from position `start` (from 1; may lie before the text).
fn substring_range(s: &str, start: i64, count: Option<i64>) -> Result<std::ops::Range<usize>> {
    let end = match count {
        None => i64::MAX,
        Some(n) if n < 0 => {
            return Err(err!(SUBSTRING_ERROR, "negative substring length not allowed"));
        }
        Some(n) => start + n,
    };
    let (from, to) = ((start.max(1) - 1) as usize, (end.max(1) - 1) as usize);
    if s.len() <= bulk::PIECE_BYTES && s.is_ascii() {
        let from = from.min(s.len());
        return Ok(from..to.clamp(from, s.len()));
    }
    let from_byte = byte_of(s, from);
    Ok(from_byte..if to <= from {
        from_byte
    } else {
        from_byte + byte_of(&s[from_byte..], to - from)
    })
}

/// Text of an argument of any type.
pub(super) fn shown(d: &Datum, cx: &io::FormatContext) -> Result<Text> {
    match d {
        Datum::Text(s) | Datum::Bpchar(s) => Ok(s.clone()),
        other => io::to_text(io::natural_type(other), other, cx),
    }
}

/// The result of a cast to text; booleans are words there.
fn as_text(d: &Datum, cx: &io::FormatContext) -> Result<Text> {
    match d {
        Datum::Bool(b) => Ok(Text::from(if *b { "true" } else { "false" })),
        Datum::Bpchar(s) => Ok(Text::from(trim_bpchar(s))),
        other => shown(other, cx),
    }
}

/// `lpad` and `rpad`: cut to `len` characters or filled up with `fill`.
fn pad(s: &str, len: i32, fill: &str, left: bool) -> Result<Datum> {
    let len = len.max(0) as usize;
    let have = char_count(s);
    if have >= len || fill.is_empty() {
        return Ok(Datum::text(&s[substring_range(s, 1, Some(len as i64))?]));
    }
    if len.saturating_mul(4) > bulk::BYTES_MAX {
        return Err(err!(PROGRAM_LIMIT_EXCEEDED, "requested length too large"));
    }
    let (missing, chars) = (len - have, char_count(fill));
    let mut padding = bulk::repeated(fill, missing / chars)?;
    padding.extend(fill.chars().take(missing % chars));
    bulk::ask(padding.len() + s.len())?;
    Ok(if left { concat(&padding, s) } else { concat(s, &padding) })
}

/// Cuts characters of a set off one or both ends.
fn trim<'a>(s: &'a str, set: &str, left: bool, right: bool) -> &'a str {
    let in_set = |c: char| set.contains(c);
    let mut s = s;
    while left && !s.is_empty() {
        let (piece, rest) = s.split_at(s.floor_char_boundary(bulk::PIECE_BYTES));
        let kept = piece.trim_start_matches(in_set);
        if !kept.is_empty() || rest.is_empty() {
            s = &s[piece.len() - kept.len()..];
            break;
        }
        sched::give_way();
        s = rest;
    }
    while right && !s.is_empty() {
        let from = s.ceil_char_boundary(s.len().saturating_sub(bulk::PIECE_BYTES));
        let kept = s[from..].trim_end_matches(in_set).len();
        s = &s[..from + kept];
        if kept > 0 || from == 0 {
            break;
        }
        sched::give_way();
    }
    s
}

fn trim_bytes(b: &[u8], set: &[u8], left: bool, right: bool) -> Datum {
    let kept = |b: &u8| !set.contains(b);
    let from = if left { b.iter().position(kept).unwrap_or(b.len()) } else { 0 };
    let to = if right { b.iter().rposition(kept).map_or(from, |i| i + 1) } else { b.len() };
    Datum::bytea(&b[from..to.max(from)])
}

/// Position of a part, in characters from 1; 0 when it isn't there.
fn position(s: &str, part: &str) -> i32 {
    find(s, part).map_or(0, |at| char_count(&s[..at]) as i32 + 1)
}

/// Where a part begins, in bytes; a long text is searched piece by piece.
fn find(s: &str, part: &str) -> Option<usize> {
    if s.len() <= bulk::PIECE_BYTES || part.len() > bulk::PIECE_BYTES {
        return s.find(part);
    }
    let mut from = 0;
    while from < s.len() {
        let to = s.ceil_char_boundary(from + bulk::PIECE_BYTES + part.len());
        if let Some(at) = s[from..to].find(part) {
            return Some(from + at);
        }
        sched::give_way();
        from = s.ceil_char_boundary(from + bulk::PIECE_BYTES);
    }
    None
}

/// One character for one, as C's `towupper`: those that would become several stay.
fn upper_char(c: char) -> char {
    let mut all = c.to_uppercase();
    match (all.next(), all.next()) {
        (Some(u), None) => u,
        _ => c,
    }
}

/// See [`upper_char`].
fn lower_char(c: char) -> char {
    let mut all = c.to_lowercase();
    match (all.next(), all.next()) {
        (Some(l), None) => l,
        _ => c,
    }
}

/// A text in lower case.
pub(super) fn lower(s: &str) -> String {
    if s.is_ascii() { s.to_ascii_lowercase() } else { s.chars().map(lower_char).collect() }
}

/// A text in upper case.
fn upper(s: &str) -> String {
    if s.is_ascii() { s.to_ascii_uppercase() } else { s.chars().map(upper_char).collect() }
}

/// First letters of words in upper case, the rest in lower case.
fn initcap(s: &str) -> Result<Datum> {
    let mut inside = false;
    bulk::map_text(s, |piece, out| {
        for c in piece.chars() {
            out.push(if inside { lower_char(c) } else { upper_char(c) });
            inside = c.is_alphanumeric();
        }
    })
}

/// The characters from the last to the first.
fn reversed(s: &str) -> Result<Datum> {
    let mut out = Text::with_capacity(s.len());
    let mut rest = s;
    while !rest.is_empty() {
        sched::check_interrupts_now()?;
        let at = rest.ceil_char_boundary(rest.len().saturating_sub(bulk::PIECE_BYTES));
        let (head, piece) =
            rest.split_at(at.min(rest.char_indices().next_back().map_or(0, |c| c.0)));
        out.extend(piece.chars().rev());
        rest = head;
    }
    Ok(Datum::Text(out))
}

/// All occurrences of `from` replaced.
fn replace(s: &str, from: &str, to: &str) -> Result<Datum> {
    let (mut out, mut last, mut pace) = (String::new(), 0, bulk::Pace::default());
    for (at, _) in s.match_indices(from) {
        pace.step()?;
        bulk::push_str(&mut out, &s[last..at])?;
        bulk::push_str(&mut out, to)?;
        last = at + from.len();
    }
    bulk::push_str(&mut out, &s[last..])?;
    bulk::text(out).map(Datum::Text)
}

/// The `n`th part between delimiters; negative `n` counts from the end.
fn split_part(s: &str, delimiter: &str, n: i32) -> Result<Datum> {
    if n == 0 {
        return Err(err!(INVALID_PARAMETER_VALUE, "field position must not be zero"));
    }
    if delimiter.is_empty() {
        return Ok(Datum::text(if n == 1 || n == -1 { s } else { "" }));
    }
    let part = if n > 0 {
        s.split(delimiter).nth(n as usize - 1)
    } else {
        s.rsplit(delimiter).nth(n.unsigned_abs() as usize - 1)
    };
    Ok(Datum::text(part.unwrap_or("")))
}

/// Replaces characters of `from` by those at the same place in `to`, or drops them.
fn translate(s: &str, from: &str, to: &str) -> Result<Datum> {
    let mut to = to.chars();
    let mut pairs: Vec<(char, Option<char>)> = from.chars().map(|c| (c, to.next())).collect();
    pairs.sort_by_key(|pair| pair.0);
    pairs.dedup_by_key(|pair| pair.0);
    let one = |c: char| match pairs.binary_search_by_key(&c, |pair| pair.0) {
        Ok(at) => pairs[at].1,
        Err(_) => Some(c),
    };
    bulk::map_text(s, |piece, out| out.extend(piece.chars().filter_map(one)))
}

/// Whether a word needs no quotes as an identifier.
fn is_plain_identifier(s: &str) -> bool {
    let mut chars = s.bytes();
    let first = chars.next().is_some_and(|b| b.is_ascii_lowercase() || b == b'_');
    first && chars.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

/// An identifier, in double quotes where it must be, or where the session wants them everywhere.
pub fn quote_ident(s: &str) -> String {
    if crate::user::quotes_all() { in_quotes(s) } else { quote_name(s) }
}

/// The same whatever the session wants.
pub fn quote_name(s: &str) -> String {
    if is_plain_identifier(s) && !super::keywords::is_reserved(s) {
        return s.to_owned();
    }
    in_quotes(s)
}

fn in_quotes(s: &str) -> String {
    format!("\"{}\"", s.replace('"', "\"\""))
}

/// A string constant.
pub fn quote_literal(s: &str) -> String {
    let mut out = String::with_capacity(s.len() + 2);
    if s.contains('\\') {
        out.push('E');
    }
    out.push('\'');
    for c in s.chars() {
        if matches!(c, '\'' | '\\') {
            out.push(c);
        }
        out.push(c);
    }
    out.push('\'');
    out
}

/// A string constant of a text that may be long.
fn quoted(s: &str) -> Result<Datum> {
    if s.len() <= bulk::PIECE_BYTES {
        return Ok(Datum::from(quote_literal(s)));
    }
    let escapes = s.contains('\\');
    let mut out = String::new();
    bulk::push_str(&mut out, if escapes { "E'" } else { "'" })?;
    for piece in bulk::pieces(s) {
        let literal = quote_literal(piece?);
        let from = literal.find('\'').unwrap_or(0) + 1;
        bulk::push_str(&mut out, &literal[from..literal.len() - 1])?;
    }
    bulk::push_str(&mut out, "'")?;
    bulk::text(out).map(Datum::Text)
}

/// Puts `new` in place of `count` characters from position `start`.
fn overlay(s: &str, new: &str, start: i32, count: i32) -> Result<Datum> {
    if start <= 0 {
        return Err(err!(SUBSTRING_ERROR, "negative substring length not allowed"));
    }
    let rest = start.checked_add(count).ok_or_else(|| super::int::out_of_range("integer"))?;
    let head = &s[substring_range(s, 1, Some(i64::from(start) - 1))?];
    let tail = &s[substring_range(s, i64::from(rest), None)?];
    let mut out = Text::with_capacity(head.len() + new.len() + tail.len());
    for part in [head, new, tail] {
        bulk::pieces(part).try_for_each(|piece| piece.map(|p| out.push_str(p)))?;
    }
    Ok(Datum::Text(out))
}

fn overlay_bytes(b: &[u8], new: &[u8], start: i32, count: i32) -> Result<Datum> {
    if start <= 0 {
        return Err(err!(SUBSTRING_ERROR, "negative substring length not allowed"));
    }
    let rest = start.checked_add(count).ok_or_else(|| super::int::out_of_range("integer"))?;
    let head = &b[..(start as usize - 1).min(b.len())];
    let tail = &b[(rest.max(1) as usize - 1).min(b.len())..];
    Ok(Datum::bytea(&[head, new, tail].concat()))
}

fn byte_substring(b: &[u8], start: i64, count: Option<i64>) -> Result<Datum> {
    let end = match count {
        None => i64::MAX,
        Some(n) if n < 0 => {
            return Err(err!(SUBSTRING_ERROR, "negative substring length not allowed"));
        }
        Some(n) => start + n,
    };
    let from = ((start.max(1) - 1) as usize).min(b.len());
    let to = ((end.max(1) - 1) as usize).clamp(from, b.len());
    Ok(Datum::bytea(&b[from..to]))
}

fn repeat(s: &str, n: i32) -> Result<Datum> {
    let n = n.max(0) as usize;
    if s.len().saturating_mul(n) > bulk::BYTES_MAX {
        return Err(err!(PROGRAM_LIMIT_EXCEEDED, "requested length too large"));
    }
    bulk::repeated(s, n).map(Datum::Text)
}

fn chr(code: i32) -> Result<Datum> {
    if code == 0 {
        return Err(err!(PROGRAM_LIMIT_EXCEEDED, "null character not permitted"));
    }
    if code < 0 {
        return Err(err!(INVALID_PARAMETER_VALUE, "character number must be positive"));
    }
    match char::from_u32(code as u32) {
        Some(c) => Ok(Datum::from(c.to_string())),
        None if code > 0x10ffff => {
            Err(err!(PROGRAM_LIMIT_EXCEEDED, "requested character too large for encoding: {code}"))
        }
        None => {
            Err(err!(PROGRAM_LIMIT_EXCEEDED, "requested character not valid for encoding: {code}"))
        }
    }
}

/// `left` (and `right`, by the end): `n` characters, or all but `-n`.
fn left(s: &str, n: i32) -> &str {
    let keep =
        if n >= 0 { n as usize } else { char_count(s).saturating_sub(n.unsigned_abs() as usize) };
    &s[..byte_of(s, keep)]
}

fn right(s: &str, n: i32) -> &str {
    let chars = char_count(s);
    let skip = if n >= 0 { chars.saturating_sub(n as usize) } else { n.unsigned_abs() as usize };
    &s[byte_of(s, skip)..]
}

fn concat_all(args: &[Datum], separator: &str, cx: &io::FormatContext) -> Result<Datum> {
    let (mut out, mut first, mut pace) = (String::new(), true, bulk::Pace::default());
    for arg in args.iter().filter(|a| !a.is_null()) {
        pace.step()?;
        if !first {
            bulk::push_str(&mut out, separator)?;
        }
        first = false;
        bulk::push_str(&mut out, &shown(arg, cx)?)?;
    }
    bulk::text(out).map(Datum::Text)
}

/// The bodies of this family.
pub(super) fn bodies() -> Vec<NamedBody> {
    let mut all: Vec<NamedBody> = basic();
    all.extend(pieces());
    all.extend(quoting());
    all
}

fn basic() -> Vec<NamedBody> {
    vec![
        ("textcat", S(|a, _| Ok(concat(a[0].as_str(), a[1].as_str())))),
        ("sql_textanycat", S(|a, cx| Ok(concat(a[0].as_str(), &as_text(&a[1], cx)?)))),
        ("sql_anytextcat", S(|a, cx| Ok(concat(&as_text(&a[0], cx)?, a[1].as_str())))),
        (
            "byteacat",
            S(|a, _| Ok(Datum::Bytea([a[0].as_bytea(), a[1].as_bytea()].concat().into()))),
        ),
        ("textlen", S(|a, _| length(char_count(a[0].as_str())))),
        ("bpcharlen", S(|a, _| length(char_count(trim_bpchar(a[0].as_str()))))),
        ("textoctetlen", S(|a, _| length(a[0].as_str().len()))),
        ("bpcharoctetlen", S(|a, _| length(a[0].as_str().len()))),
        ("byteaoctetlen", S(|a, _| length(a[0].as_bytea().len()))),
        (
            "sql_bit_length",
            S(|a, _| match &a[0] {
                Datum::Bytea(b) => length(b.len() * 8),
                Datum::Bits(b) => length(b.len as usize),
                other => length(other.as_str().len() * 8),
            }),
        ),
        ("upper", S(|a, _| bulk::map_text(a[0].as_str(), |s, out| out.push_str(&upper(s))))),
        ("lower", S(|a, _| bulk::map_text(a[0].as_str(), |s, out| out.push_str(&lower(s))))),
        ("initcap", S(|a, _| initcap(a[0].as_str()))),
        ("text_concat", S(|a, cx| concat_all(a, "", cx))),
        (
            "text_concat_ws",
            S(|a, cx| match &a[0] {
                Datum::Null => Ok(Datum::Null),
                separator => concat_all(&a[1..], separator.as_str(), cx),
            }),
        ),
        ("text_reverse", S(|a, _| reversed(a[0].as_str()))),
        ("ascii", S(|a, _| Ok(Datum::Int4(a[0].as_str().chars().next().map_or(0, |c| c as i32))))),
        ("chr", S(|a, _| chr(a[0].as_int4()))),
        ("repeat", S(|a, _| repeat(a[0].as_str(), a[1].as_int4()))),
        ("to_hex32", S(|a, _| Ok(Datum::from(format!("{:x}", a[0].as_int4()))))),
        ("to_hex64", S(|a, _| Ok(Datum::from(format!("{:x}", a[0].as_int8()))))),
        ("text_starts_with", S(|a, _| Ok(a[0].as_str().starts_with(a[1].as_str()).into()))),
        ("sql_substring", S(|a, _| super::regex::similar_substring(a))),
        ("textpos", S(|a, _| Ok(Datum::Int4(position(a[0].as_str(), a[1].as_str()))))),
        (
            "byteapos",
            S(|a, _| {
                let (b, part) = (a[0].as_bytea(), a[1].as_bytea());
                let mut pace = bulk::Pace::default();
                for i in 0..=b.len() {
                    pace.step()?;
                    if b[i..].starts_with(part) {
                        return Ok(Datum::Int4(i as i32 + 1));
                    }
                }
                Ok(Datum::Int4(0))
            }),
        ),
        (
            "replace_text",
            S(|a, _| {
                let (s, from, to) = (a[0].as_str(), a[1].as_str(), a[2].as_str());
                if from.is_empty() { Ok(a[0].clone()) } else { replace(s, from, to) }
            }),
        ),
        ("translate", S(|a, _| translate(a[0].as_str(), a[1].as_str(), a[2].as_str()))),
    ]
}

fn pieces() -> Vec<NamedBody> {
    vec![
        (
            "byteaoverlay",
            S(|a, _| {
                overlay_bytes(a[0].as_bytea(), a[1].as_bytea(), a[2].as_int4(), a[3].as_int4())
            }),
        ),
        (
            "byteaoverlay_no_len",
            S(|a, _| {
                let new = a[1].as_bytea();
                overlay_bytes(a[0].as_bytea(), new, a[2].as_int4(), new.len() as i32)
            }),
        ),
        (
            "text_substr",
            S(|a, _| {
                let s = a[0].as_str();
                let range = substring_range(s, a[1].as_int4().into(), Some(a[2].as_int4().into()))?;
                Ok(Datum::text(&s[range]))
            }),
        ),
        (
            "text_substr_no_len",
            S(|a, _| {
                let s = a[0].as_str();
                Ok(Datum::text(&s[substring_range(s, a[1].as_int4().into(), None)?]))
            }),
        ),
        (
            "bytea_substr",
            S(|a, _| {
                byte_substring(a[0].as_bytea(), a[1].as_int4().into(), Some(a[2].as_int4().into()))
            }),
        ),
        (
            "bytea_substr_no_len",
            S(|a, _| byte_substring(a[0].as_bytea(), a[1].as_int4().into(), None)),
        ),
        ("text_left", S(|a, _| Ok(Datum::text(left(a[0].as_str(), a[1].as_int4()))))),
        ("text_right", S(|a, _| Ok(Datum::text(right(a[0].as_str(), a[1].as_int4()))))),
        ("split_part", S(|a, _| split_part(a[0].as_str(), a[1].as_str(), a[2].as_int4()))),
        ("lpad", S(|a, _| pad(a[0].as_str(), a[1].as_int4(), a[2].as_str(), true))),
        ("rpad", S(|a, _| pad(a[0].as_str(), a[1].as_int4(), a[2].as_str(), false))),
        ("sql_lpad", S(|a, _| pad(a[0].as_str(), a[1].as_int4(), " ", true))),
        ("sql_rpad", S(|a, _| pad(a[0].as_str(), a[1].as_int4(), " ", false))),
        ("ltrim", S(|a, _| Ok(Datum::text(trim(a[0].as_str(), a[1].as_str(), true, false))))),
        ("rtrim", S(|a, _| Ok(Datum::text(trim(a[0].as_str(), a[1].as_str(), false, true))))),
        ("btrim", S(|a, _| Ok(Datum::text(trim(a[0].as_str(), a[1].as_str(), true, true))))),
        ("ltrim1", S(|a, _| Ok(Datum::text(trim(a[0].as_str(), " ", true, false))))),
        ("rtrim1", S(|a, _| Ok(Datum::text(trim(a[0].as_str(), " ", false, true))))),
        ("btrim1", S(|a, _| Ok(Datum::text(trim(a[0].as_str(), " ", true, true))))),
        ("byteatrim", S(|a, _| Ok(trim_bytes(a[0].as_bytea(), a[1].as_bytea(), true, true)))),
        ("bytealtrim", S(|a, _| Ok(trim_bytes(a[0].as_bytea(), a[1].as_bytea(), true, false)))),
        ("byteartrim", S(|a, _| Ok(trim_bytes(a[0].as_bytea(), a[1].as_bytea(), false, true)))),
        (
            "textoverlay",
            S(|a, _| overlay(a[0].as_str(), a[1].as_str(), a[2].as_int4(), a[3].as_int4())),
        ),
        (
            "textoverlay_no_len",
            S(|a, _| {
                let new = a[1].as_str();
                overlay(a[0].as_str(), new, a[2].as_int4(), char_count(new) as i32)
            }),
        ),
    ]
}

fn quoting() -> Vec<NamedBody> {
    vec![
        ("quote_ident", S(|a, _| Ok(Datum::from(quote_ident(a[0].as_str()))))),
        ("quote_literal", S(|a, _| quoted(a[0].as_str()))),
        ("sql_quote_literal", S(|a, cx| quoted(&as_text(&a[0], cx)?))),
        (
            "quote_nullable",
            S(|a, cx| match &a[0] {
                Datum::Null => Ok(Datum::text("NULL")),
                other => quoted(&as_text(other, cx)?),
            }),
        ),
        (
            "sql_quote_nullable",
            S(|a, cx| match &a[0] {
                Datum::Null => Ok(Datum::text("NULL")),
                other => quoted(&as_text(other, cx)?),
            }),
        ),
        ("text_format", S(|a, cx| super::format::format(&a[0], &a[1..], cx))),
        ("text_format_nv", S(|a, cx| super::format::format(&a[0], &[], cx))),
    ]
}

/// `"char"` to text and back stand with the casts; they share this.
pub(super) fn text_of_char(c: u8) -> Datum {
    let mut out = Vec::with_capacity(1);
    crate::io::write_char(c, &mut out);
    Datum::text(&String::from_utf8_lossy(&out))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of PostgreSQL 15's releases not all answer this for `right`, so it is not asked beside one.
    #[test]
    fn all_but_more_characters_than_there_are_is_none() {
        assert_eq!((left("abc", i32::MIN), right("abc", i32::MIN)), ("", ""));
        assert_eq!((left("abc", -2), right("abc", -2)), ("a", "c"));
    }
}
