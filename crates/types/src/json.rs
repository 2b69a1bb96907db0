//! The syntax of JSON (RFC 8259), and parts of JSON text that are taken without reading the rest.
//! A value of type json is stored as the text itself; type jsonb has [`crate::jsonb`].

use std::borrow::Cow;

use base::{Result, err};

use crate::bulk::{self, Pace};
use crate::datum::Text;

/// Nesting of arrays and objects, at most; deeper ones would need a deep stack.
const MAX_DEPTH: usize = 6400;

/// Checks that a text is one JSON value.
///
/// # Errors
/// `22P02` with what was expected, `54001` when it is nested too deep.
pub fn check(text: &str) -> Result<()> {
    let mut checker = Checker { text, bytes: text.as_bytes(), at: 0 };
    checker.document()
}

struct Checker<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
}

/// The tokens that may come next, where a value has ended or is to begin.
#[derive(Clone, Copy, PartialEq)]
enum Open {
    Array,
    Object,
}

impl Checker<'_> {
    /// Without recursion: a stack of what is open.
    fn document(&mut self) -> Result<()> {
        let mut open: Vec<Open> = Vec::new();
        let mut pace = Pace::default();
        loop {
            pace.step()?;
            self.skip_blanks();
            if let Some(inner) = self.begin_value()? {
                if open.len() == MAX_DEPTH {
                    return Err(err!(STATEMENT_TOO_COMPLEX, "stack depth limit exceeded"));
                }
                open.push(inner);
                if inner == Open::Object {
                    self.key("string or \"}\"")?;
                }
                continue;
            }
            // A value has ended: close what ends with it, or go on to the next one.
            loop {
                self.skip_blanks();
                match (open.last(), self.peek()) {
                    (None, None) => return Ok(()),
                    (None, Some(_)) => return Err(self.expected("end of input")),
                    (Some(Open::Array), Some(b']')) | (Some(Open::Object), Some(b'}')) => {
                        self.at += 1;
                        open.pop();
                    }
                    (Some(Open::Array), Some(b',')) => {
                        self.at += 1;
                        break;
                    }
                    (Some(Open::Object), Some(b',')) => {
                        self.at += 1;
                        self.key("string")?;
                        break;
                    }
                    (Some(Open::Array), _) => return Err(self.expected("\",\" or \"]\"")),
                    (Some(Open::Object), _) => return Err(self.expected("\",\" or \"}\"")),
                }
            }
        }
    }

    /// Reads a value, or opens an array or object that isn't empty.
    fn begin_value(&mut self) -> Result<Option<Open>> {
        match self.peek() {
            Some(b'[') => {
                self.at += 1;
                self.skip_blanks();
                if self.peek() != Some(b']') {
                    return Ok(Some(Open::Array));
                }
                self.at += 1;
            }
            Some(b'{') => {
                self.at += 1;
                self.skip_blanks();
                if self.peek() != Some(b'}') {
                    return Ok(Some(Open::Object));
                }
                self.at += 1;
            }
            Some(b'"') => self.string()?,
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') => self.word("true")?,
            Some(b'f') => self.word("false")?,
            Some(b'n') => self.word("null")?,
            _ => return Err(self.expected("JSON value")),
        }
        Ok(None)
    }

    /// `"key":`
    fn key(&mut self, expected: &str) -> Result<()> {
        self.skip_blanks();
        if self.peek() != Some(b'"') {
            return Err(self.expected(expected));
        }
        self.string()?;
        self.skip_blanks();
        if self.peek() != Some(b':') {
            return Err(self.expected("\":\""));
        }
        self.at += 1;
        Ok(())
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn word(&mut self, word: &str) -> Result<()> {
        let end = self.at + self.word_length();
        if &self.bytes[self.at..end] != word.as_bytes() {
            return Err(self.invalid(self.at, end));
        }
        self.at = end;
        Ok(())
    }

    fn word_length(&self) -> usize {
        let rest = &self.bytes[self.at..];
        rest.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_' || **b >= 0x80).count()
    }

    fn digits(&mut self) -> Result<()> {
        let from = self.at;
        while self.peek().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == from { Err(self.not_a_number()) } else { Ok(()) }
    }

    /// The error of a number whose rest, up to what can't belong to it, follows.
    #[cold]
    fn not_a_number(&self) -> base::Error {
        let digit = |b: &u8| b.is_ascii_digit() || matches!(b, b'.' | b'+' | b'-' | b'e' | b'E');
        let before = self.bytes[..self.at].iter().rev().take_while(|b| digit(b)).count();
        self.invalid(self.at - before, self.at + self.word_length())
    }

    fn number(&mut self) -> Result<()> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        if self.word_length() > 0 { Err(self.not_a_number()) } else { Ok(()) }
    }

    fn string(&mut self) -> Result<()> {
        let from = self.at;
        self.at += 1;
        loop {
            match self.peek() {
                None => return Err(self.invalid(from, self.bytes.len())),
                Some(b'"') => break,
                Some(b'\\') => {
                    self.at += 1;
                    match self.peek() {
                        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {}
                        Some(b'u') => {
                            let rest = &self.bytes[self.at + 1..];
                            let hex = rest.iter().take(4).take_while(|b| b.is_ascii_hexdigit());
                            let hex = hex.count();
                            if hex < 4 && hex == rest.len() {
                                return Err(self.invalid(from, self.bytes.len()));
                            }
                            if hex < 4 {
                                let detail = "\"\\u\" must be followed by four hexadecimal digits.";
                                return Err(self.failed(self.at + 2 + hex, detail));
                            }
                            self.at += 4;
                        }
                        None => return Err(self.invalid(from, self.bytes.len())),
                        Some(_) => {
                            let c = self.text[self.at..].chars().next().unwrap_or(' ');
                            let detail = format!("Escape sequence \"\\{c}\" is invalid.");
                            return Err(self.failed(self.at + c.len_utf8(), &detail));
                        }
                    }
                }
                Some(b) if b < 0x20 => {
                    let detail = format!("Character with value 0x{b:02x} must be escaped.");
                    return Err(self.failed(self.at, &detail));
                }
                Some(_) => {}
            }
            self.at += 1;
        }
        self.at += 1;
        Ok(())
    }

    /// The error of what ends at a place.
    #[cold]
    fn failed(&self, end: usize, detail: &str) -> base::Error {
        located(bad_syntax(detail), self.text, end)
    }

    /// That of a token that is none.
    #[cold]
    fn invalid(&self, from: usize, to: usize) -> base::Error {
        let token = String::from_utf8_lossy(&self.bytes[from..to]);
        self.failed(to, &format!("Token \"{token}\" is invalid."))
    }

    /// That of a token, maybe none at all, where another had to be.
    #[cold]
    fn expected(&mut self, what: &str) -> base::Error {
        let from = self.at;
        let read = match self.peek() {
            None => return self.failed(from, "The input string ended unexpectedly."),
            Some(b'"') => self.string(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'[' | b']' | b'{' | b'}' | b',' | b':') => {
                self.at += 1;
                Ok(())
            }
            Some(_) => {
                let len = self.text[from..].chars().next().map_or(1, char::len_utf8);
                self.at += self.word_length().max(len);
                match &self.text[from..self.at] {
                    "true" | "false" | "null" => Ok(()),
                    _ => Err(self.invalid(from, self.at)),
                }
            }
        };
        match read {
            Err(error) => error,
            Ok(()) => {
                let token = String::from_utf8_lossy(&self.bytes[from..self.at]);
                let detail = format!("Expected {what}, but found \"{token}\".");
                self.failed(self.at, &detail)
            }
        }
    }
}

const LONE_SURROGATE: &str = "Unicode low surrogate must follow a high surrogate.";

/// Bytes of a line that an error shows before its place.
const SHOWN: usize = 50;

/// An error with the line of a document in which it was found, up to its place.
#[cold]
fn located(error: base::Error, text: &str, end: usize) -> base::Error {
    let line = text[..end].rfind('\n').map_or(0, |at| at + 1);
    let number = text[..line].matches('\n').count() + 1;
    let mut from = line;
    while end - from >= SHOWN {
        from += text[from..].chars().next().map_or(1, char::len_utf8);
    }
    // An ellipsis is no shorter than what it would stand for.
    if from - line <= 3 {
        from = line;
    }
    let before = if from > line { "..." } else { "" };
    let goes_on = !matches!(text.as_bytes().get(end), None | Some(b'\n' | b'\r'));
    let after = if goes_on { "..." } else { "" };
    error.context(format!("JSON data, line {number}: {before}{}{after}", &text[from..end]))
}

/// Appends a string with its quotes and escapes.
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    write_escaped(text, out);
    out.push(b'"');
}

/// The same for a string that may be long.
///
/// # Errors
/// `53200`, interrupts.
pub fn put_string(text: &str, out: &mut Vec<u8>) -> Result<()> {
    if text.len() <= bulk::PIECE_BYTES {
        write_string(text, out);
        return Ok(());
    }
    bulk::ask(text.len())?;
    out.push(b'"');
    for piece in bulk::pieces(text) {
        write_escaped(piece?, out);
    }
    out.push(b'"');
    Ok(())
}

fn write_escaped(text: &str, out: &mut Vec<u8>) {
    for b in text.bytes() {
        match b {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            8 => out.extend_from_slice(b"\\b"),
            12 => out.extend_from_slice(b"\\f"),
            0..0x20 => out.extend_from_slice(format!("\\u{b:04x}").as_bytes()),
            _ => out.push(b),
        }
    }
}

#[cold]
fn bad_syntax(detail: &str) -> base::Error {
    err!(INVALID_TEXT_REPRESENTATION, "invalid input syntax for type json").detail(detail)
}

/// Reads the string at a place of a checked document; answers it and the bytes it took.
///
/// # Errors
/// As [`read_string`].
pub fn string_at(document: &str, at: usize) -> Result<(Text, usize)> {
    unescaped(&document[at..]).map_err(|(error, end)| located(error, document, at + end))
}

/// Reads the string that a checked text begins with; answers it and the bytes it took.
///
/// # Errors
/// `22P05` for the character 0, `22P02` for half a surrogate pair.
pub fn read_string(text: &str) -> Result<(Text, usize)> {
    string_at(text, 0)
}

/// The same; an error with the place up to which the string was read.
fn unescaped(text: &str) -> std::result::Result<(Text, usize), (base::Error, usize)> {
    let bytes = text.as_bytes();
    let end = string_end(bytes);
    let inner = &text[1..end - 1];
    if !inner.contains('\\') {
        return Ok((Text::from(inner), end));
    }
    let mut out = String::with_capacity(inner.len());
    let mut high: Option<u32> = None;
    let mut chars = inner.char_indices();
    while let Some((_, c)) = chars.next() {
        let mut unit = None;
        let plain = if c == '\\' {
            match chars.next().map_or('"', |(_, c)| c) {
                'b' => '\u{8}',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'u' => {
                    let digits: String = chars.by_ref().take(4).map(|(_, c)| c).collect();
                    unit = u32::from_str_radix(&digits, 16).ok();
                    '?'
                }
                other => other,
            }
        } else {
            c
        };
        match (unit, high.take()) {
            (Some(0), None) => {
                let error = err!(UNTRANSLATABLE_CHARACTER, "unsupported Unicode escape sequence")
                    .detail("\\u0000 cannot be converted to text.");
                return Err((error, 1 + chars.offset()));
            }
            (Some(0xd800..=0xdbff), Some(_)) => {
                let detail = "Unicode high surrogate must not follow a high surrogate.";
                return Err((bad_syntax(detail), 1 + chars.offset()));
            }
            (Some(unit @ 0xd800..=0xdbff), None) => high = Some(unit),
            (Some(unit @ 0xdc00..=0xdfff), Some(first)) => {
                let code = 0x10000 + ((first & 0x3ff) << 10) + (unit & 0x3ff);
                out.push(char::from_u32(code).unwrap_or('?'));
            }
            (Some(0xdc00..=0xdfff), None) | (_, Some(_)) => {
                return Err((bad_syntax(LONE_SURROGATE), 1 + chars.offset()));
            }
            (Some(unit), None) => out.push(char::from_u32(unit).unwrap_or('?')),
            (None, None) => out.push(plain),
        }
    }
    if high.is_some() {
        return Err((bad_syntax(LONE_SURROGATE), end));
    }
    Ok((Text::from(out), end))
}

/// Bytes of the string at the front of checked text, quotes included.
fn string_end(bytes: &[u8]) -> usize {
    let mut at = 1;
    while bytes.get(at).is_some_and(|b| *b != b'"') {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

/// Bytes of the value at the front of checked text.
fn value_end(bytes: &[u8]) -> usize {
    let (mut at, mut depth) = (0, 0);
    while let Some(b) = bytes.get(at) {
        match b {
            b'"' => at += string_end(&bytes[at..]) - 1,
            b'[' | b'{' => depth += 1,
            b']' | b'}' if depth == 0 => return at,
            b']' | b'}' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' if depth == 0 => return at,
            _ => {}
        }
        at += 1;
        if depth == 0 && bytes[at - 1] == b'"' {
            return at;
        }
    }
    at
}

/// A value's kind, by its first character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// null.
    Null,
    /// true, false.
    Bool,
    /// A number.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

/// The kind of a checked text's value.
pub fn kind(text: &str) -> Kind {
    match text.trim_start().as_bytes().first() {
        Some(b'n') => Kind::Null,
        Some(b't' | b'f') => Kind::Bool,
        Some(b'"') => Kind::String,
        Some(b'[') => Kind::Array,
        Some(b'{') => Kind::Object,
        _ => Kind::Number,
    }
}

fn after_blanks(text: &str) -> &str {
    text.trim_start_matches([' ', '\t', '\n', '\r'])
}

/// The texts of an array's items; none when it is no array.
///
/// # Errors
/// Interrupts.
pub fn items(text: &str) -> Result<Vec<&str>> {
    let (mut out, mut pace) = (Vec::new(), Pace::default());
    let Some(mut rest) = after_blanks(text).strip_prefix('[').map(after_blanks) else {
        return Ok(out);
    };
    while !rest.is_empty() && !rest.starts_with(']') {
        pace.step()?;
        let end = value_end(rest.as_bytes());
        out.push(&rest[..end]);
        rest = after_blanks(&rest[end..]);
        rest = after_blanks(rest.strip_prefix(',').unwrap_or(rest));
    }
    Ok(out)
}

/// Keys and texts of an object's members, in the order of the text; none when it is no object.
///
/// # Errors
/// As [`read_string`].
pub fn members(text: &str) -> Result<Vec<(Text, &str)>> {
    let (mut out, mut pace) = (Vec::new(), Pace::default());
    let Some(mut rest) = after_blanks(text).strip_prefix('{').map(after_blanks) else {
        return Ok(out);
    };
    while !rest.is_empty() && !rest.starts_with('}') {
        pace.step()?;
        let (key, used) = read_string(rest)?;
        rest = after_blanks(&rest[used..]);
        rest = after_blanks(rest.strip_prefix(':').unwrap_or(rest));
        let end = value_end(rest.as_bytes());
        out.push((key, &rest[..end]));
        rest = after_blanks(&rest[end..]);
        rest = after_blanks(rest.strip_prefix(',').unwrap_or(rest));
    }
    Ok(out)
}

/// The result of `->>` for a value's text: a string's own text, None for null, else the JSON text.
///
/// # Errors
/// As [`read_string`].
pub fn plain_text(text: &str) -> Result<Option<Cow<'_, str>>> {
    let text = text.trim();
    Ok(match kind(text) {
        Kind::Null => None,
        Kind::String => Some(Cow::Owned(read_string(text)?.0.to_string())),
        _ => Some(Cow::Borrowed(text)),
    })
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn values_are_told_from_what_is_none() {
        for good in [
            "1",
            " null ",
            "[]",
            "{}",
            "[1, 2.5e-3, \"a\\u00e4\\n\"]",
            "{\"a\": {\"b\": [true, false]}}",
            "\"\"",
            "-0.1",
            "[[[]]]",
        ] {
            assert!(check(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "[",
            "[1,]",
            "{\"a\"}",
            "{a: 1}",
            "01",
            "1.",
            "tru",
            "nullx",
            "\"a",
            "\"\\x\"",
            "1 2",
            "{\"a\":1,}",
            "[1}",
            "\"\n\"",
            "]",
        ] {
            let e = check(bad).expect_err(bad);
            assert_eq!(e.code(), base::sqlstate::INVALID_TEXT_REPRESENTATION, "{bad}");
        }
        assert!(check(&"[".repeat(100_000)).is_err());
    }
}
