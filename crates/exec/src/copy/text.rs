//! The text format: a line a row, fields between delimiters, backslash escapes.

use base::Result;
use types::bulk::PIECE_BYTES;
use types::encodings::utf8;

use super::input::Input;
use crate::context::SessionHooks;

/// The next line without its end, as a range of `input.rest()`, and the bytes to consume with it.
/// None at the end of the data.
///
/// # Errors
/// The connection's.
pub fn next_line(
    input: &mut Input,
    hooks: &mut dyn SessionHooks,
) -> Result<Option<(usize, usize)>> {
    let mut searched = 0;
    loop {
        let rest = input.rest();
        while let Some(at) = memchr::memchr(b'\n', &rest[searched..]) {
            let end = searched + at;
            // A backslash before the line's end makes it part of the field.
            let slashes = rest[..end].iter().rev().take_while(|b| **b == b'\\').count();
            if slashes % 2 == 0 {
                let line = if end > 0 && rest[end - 1] == b'\r' { end - 1 } else { end };
                return Ok(Some((line, end + 1)));
            }
            searched = end + 1;
        }
        searched = rest.len();
        if !input.more(hooks)? {
            let left = input.rest().len();
            return Ok((left > 0).then_some((left, left)));
        }
    }
}

/// Calls `f` with each field of a line: its number and its text, None for NULL.
///
/// # Errors
/// `f`'s; `22021` when a field that is written with bytes' numbers is no UTF-8.
pub fn fields(
    line: &str,
    delimiter: u8,
    null: &[u8],
    mut f: impl FnMut(usize, Option<&str>) -> Result<()>,
) -> Result<usize> {
    if memchr::memchr(b'\\', line.as_bytes()).is_none() {
        let mut number = 0;
        let mut begin = 0;
        for end in memchr::memchr_iter(delimiter, line.as_bytes()).chain([line.len()]) {
            let field = &line[begin..end];
            f(number, (field.as_bytes() != null).then_some(field))?;
            number += 1;
            begin = end + 1;
        }
        return Ok(number);
    }
    let bytes = line.as_bytes();
    let (mut number, mut begin) = (0, 0);
    loop {
        let mut end = begin;
        while end < bytes.len() && bytes[end] != delimiter {
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        let end = end.min(bytes.len());
        let raw = &bytes[begin..end];
        if raw == null {
            f(number, None)?;
        } else {
            let plain = unescape(raw);
            f(number, Some(utf8(&plain)?))?;
        }
        number += 1;
        if end >= bytes.len() {
            return Ok(number);
        }
        begin = end + 1;
    }
}

/// Whether a line has a carriage return that no backslash makes part of a field.
pub fn has_return(line: &[u8]) -> bool {
    let slashes = |at: usize| line[..at].iter().rev().take_while(|b| **b == b'\\').count();
    memchr::memchr_iter(b'\r', line).any(|at| slashes(at) % 2 == 0)
}

/// A field without its backslash escapes. Digits give a byte, of which the low eight bits count.
fn unescape(raw: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(raw.len());
    let mut at = 0;
    while at < raw.len() {
        let byte = raw[at];
        at += 1;
        if byte != b'\\' || at >= raw.len() {
            out.push(byte);
            continue;
        }
        let code = raw[at];
        at += 1;
        match code {
            b'b' => out.push(8),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'v' => out.push(11),
            b'0'..=b'7' => {
                let mut value = u32::from(code - b'0');
                let digits = raw[at..].iter().take(2).take_while(|b| (b'0'..=b'7').contains(b));
                for digit in digits {
                    value = value * 8 + u32::from(digit - b'0');
                    at += 1;
                }
                out.push(value as u8);
            }
            b'x' if raw.get(at).is_some_and(u8::is_ascii_hexdigit) => {
                let mut value = 0;
                let digits = raw[at..].iter().take(2).take_while(|b| b.is_ascii_hexdigit());
                for digit in digits {
                    value = value * 16 + (*digit as char).to_digit(16).unwrap_or(0);
                    at += 1;
                }
                out.push(value as u8);
            }
            other => out.push(other),
        }
    }
    out
}

/// Appends a value's text with escapes.
pub fn escape(text: &[u8], delimiter: u8, out: &mut Vec<u8>) {
    let special = |byte: &u8| matches!(byte, 8..=13 | b'\\') || *byte == delimiter;
    for piece in text.chunks(PIECE_BYTES) {
        if text.len() > PIECE_BYTES {
            sched::give_way();
        }
        let mut rest = piece;
        while let Some(at) = rest.iter().position(special) {
            out.extend_from_slice(&rest[..at]);
            match rest[at] {
                8 => out.extend_from_slice(b"\\b"),
                12 => out.extend_from_slice(b"\\f"),
                b'\n' => out.extend_from_slice(b"\\n"),
                b'\r' => out.extend_from_slice(b"\\r"),
                b'\t' => out.extend_from_slice(b"\\t"),
                11 => out.extend_from_slice(b"\\v"),
                byte => out.extend_from_slice(&[b'\\', byte]),
            }
            rest = &rest[at + 1..];
        }
        out.extend_from_slice(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &str) -> Vec<Option<String>> {
        let mut all = Vec::new();
        let result = fields(line, b'\t', b"\\N", |_, field| {
            all.push(field.map(str::to_owned));
            Ok(())
        });
        assert_eq!(result.ok(), Some(all.len()));
        all
    }

    #[test]
    fn lines_split_into_fields_with_nulls_and_escapes() {
        let some = |s: &str| Some(s.to_owned());
        assert_eq!(split("1\tab\t"), [some("1"), some("ab"), some("")]);
        assert_eq!(split("\\N\t\\\\N\tx\\ty"), [None, some("\\N"), some("x\ty")]);
        assert_eq!(split("a\\\tb\t\\101\\x41"), [some("a\tb"), some("AA")]);
    }

    #[test]
    fn what_is_escaped_comes_back() {
        let value = "a\tb\\c\nd\u{b}é";
        let mut out = Vec::new();
        escape(value.as_bytes(), b'\t', &mut out);
        assert_eq!(unescape(&out), value.as_bytes());
    }
}
