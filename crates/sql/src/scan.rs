//! The scanner that finds a statement's shape: the text without its literals. It reads each byte
//! once and knows just enough of PostgreSQL's lexical rules (manual, section 4.1) to be safe: what it
//! is not sure of, it does not take.
//!
//! Two texts with equal gaps between literals of equal kinds have parse trees that differ in the
//! literals' values only. A minus sign belongs to the number behind it where the grammar would fold
//! it into the constant; where the scanner cannot tell, it stays in the gap, and the planner, which
//! compares places, then leaves the literal alone.

use crate::prepare::{Literal, LiteralKind};

/// Longest text that is a candidate, in bytes.
const TEXT_MAX: usize = 16 << 10;
/// Most literals.
const LITERALS_MAX: usize = 64;

/// Hash of the shape and the literals, or None when the text is no candidate: see
/// [`crate::prepare::normalize`].
pub(crate) fn normalize(text: &str, literals: &mut Vec<Literal>) -> Option<u64> {
    literals.clear();
    if text.len() > TEXT_MAX || !begins_like_a_candidate(text.as_bytes()) {
        return None;
    }
    Scanner { bytes: text.as_bytes(), at: 0, gap: 0, hash: Hash(SEED), literals }.run()
}

/// The part of the text that counts: without a semicolon and blanks at the end.
pub(crate) fn trimmed(text: &str) -> &str {
    let text = text.trim_ascii_end();
    text.strip_suffix(';').unwrap_or(text).trim_ascii_end()
}

/// Whether two texts with these literals have the same shape.
pub(crate) fn same_shape(a: &str, a_list: &[Literal], b: &str, b_list: &[Literal]) -> bool {
    if a_list.len() != b_list.len() {
        return false;
    }
    let (mut at_a, mut at_b) = (0, 0);
    for (x, y) in a_list.iter().zip(b_list) {
        if x.kind != y.kind || a.get(at_a..x.range.start) != b.get(at_b..y.range.start) {
            return false;
        }
        (at_a, at_b) = (x.range.end, y.range.end);
    }
    a.get(at_a..).map(trimmed) == b.get(at_b..).map(trimmed)
}

fn begins_like_a_candidate(bytes: &[u8]) -> bool {
    let start = bytes.iter().position(|b| !b.is_ascii_whitespace()).unwrap_or(0);
    let Some(word) = bytes.get(start..start + 6) else { return false };
    [b"select", b"insert", b"update", b"delete"].iter().any(|w| word.eq_ignore_ascii_case(*w))
}

const SEED: u64 = 0x51_7c_c1_b7_27_22_0a_95;

/// A multiply-rotate hash (FxHash's step); shapes are compared in full on a hit, so it need not
/// resist anybody.
struct Hash(u64);

impl Hash {
    fn word(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(SEED);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            let mut word = [0; 8];
            word.copy_from_slice(chunk);
            self.word(u64::from_le_bytes(word));
        }
        let mut word = [0; 8];
        let rest = chunks.remainder();
        word[..rest.len()].copy_from_slice(rest);
        self.word(u64::from_le_bytes(word) ^ (bytes.len() as u64) << 56);
    }
}

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Where the gap since the last literal begins.
    gap: usize,
    hash: Hash,
    literals: &'a mut Vec<Literal>,
}

impl Scanner<'_> {
    fn run(mut self) -> Option<u64> {
        while let Some(&byte) = self.bytes.get(self.at) {
            match byte {
                b'\'' => self.string()?,
                b'0'..=b'9' => self.number(self.at)?,
                b'.' if self.peek(1).is_some_and(|b| b.is_ascii_digit()) => self.number(self.at)?,
                b'"' => self.quoted_name()?,
                b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.. => self.word()?,
                b'$' | b'\\' | 0 => return None,
                b'-' if self.peek(1) == Some(b'-') => return None,
                b'/' if self.peek(1) == Some(b'*') => return None,
                b'-' => self.minus()?,
                b';' => return self.end(),
                _ => self.at += 1,
            }
        }
        self.end()
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    /// Blanks and at most one semicolon may be left.
    fn end(mut self) -> Option<u64> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let rest = rest.strip_prefix(b";").unwrap_or(rest);
        if !rest.iter().all(u8::is_ascii_whitespace) {
            return None;
        }
        let gap = std::str::from_utf8(&self.bytes[self.gap..]).ok().map(trimmed)?;
        self.hash.bytes(gap.as_bytes());
        Some(self.hash.0)
    }

    fn literal(&mut self, start: usize, end: usize, kind: LiteralKind) -> Option<()> {
        if self.literals.len() == LITERALS_MAX {
            return None;
        }
        self.hash.bytes(&self.bytes[self.gap..start]);
        self.hash.word(kind as u64);
        self.literals.push(Literal { range: start..end, kind });
        (self.at, self.gap) = (end, end);
        Some(())
    }

    /// `'…'` with `''` for one quote. Backslashes depend on a setting: not taken.
    fn string(&mut self) -> Option<()> {
        let start = self.at;
        self.at += 1;
        loop {
            match self.bytes.get(self.at)? {
                b'\'' if self.peek(1) == Some(b'\'') => self.at += 2,
                b'\'' => break,
                b'\\' | 0 => return None,
                _ => self.at += 1,
            }
        }
        self.literal(start, self.at + 1, LiteralKind::String)
    }

    /// A number whose text begins at `start` (at its minus sign, if it has one).
    fn number(&mut self, start: usize) -> Option<()> {
        let digits = |s: &mut Self| {
            while s.peek(0).is_some_and(|b| b.is_ascii_digit()) {
                s.at += 1;
            }
        };
        let first = self.at;
        digits(self);
        let mut whole = self.at > first;
        if self.peek(0) == Some(b'.') {
            if self.peek(1) == Some(b'.') {
                return None;
            }
            whole = false;
            self.at += 1;
            digits(self);
        }
        if matches!(self.peek(0), Some(b'e' | b'E')) {
            whole = false;
            self.at += 1 + usize::from(matches!(self.peek(1), Some(b'+' | b'-')));
            if !self.peek(0)?.is_ascii_digit() {
                return None;
            }
            digits(self);
        }
        if self.peek(0).is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80) {
            return None;
        }
        let text = std::str::from_utf8(&self.bytes[start..self.at]).ok()?;
        let kind = match (whole, text.parse::<i64>()) {
            (true, Ok(v)) if i32::try_from(v).is_ok() => LiteralKind::Int4,
            (true, Ok(_)) => LiteralKind::Int8,
            _ => LiteralKind::Numeric,
        };
        self.literal(start, self.at, kind)
    }

    /// A minus sign that begins a number, or an operator's character.
    fn minus(&mut self) -> Option<()> {
        let start = self.at;
        self.at += 1;
        if self.peek(0).is_some_and(|b| b.is_ascii_digit()) && self.sign_expected(start) {
            return self.number(start);
        }
        Some(())
    }

    /// Whether what stands before a minus sign makes it a sign: an operator, a comma or an opening
    /// parenthesis, the sign not glued to an operator that could swallow it.
    fn sign_expected(&self, start: usize) -> bool {
        let before = &self.bytes[self.gap..start];
        let glued = before.last().is_none_or(|b| !b.is_ascii_whitespace());
        let last = before.iter().rev().find(|b| !b.is_ascii_whitespace());
        match last {
            Some(b'(' | b',' | b'=' | b'<' | b'>' | b'+' | b'*' | b'/') => true,
            Some(b'-' | b'%' | b'^' | b'|' | b'&' | b'#') => !glued,
            _ => false,
        }
    }

    fn quoted_name(&mut self) -> Option<()> {
        self.at += 1;
        while *self.bytes.get(self.at)? != b'"' {
            self.at += 1;
        }
        self.at += 1;
        Some(())
    }

    /// A name or keyword. `E'…'`, `B'…'` and the like are not taken.
    fn word(&mut self) -> Option<()> {
        let part = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80;
        while self.peek(0).is_some_and(part) {
            self.at += 1;
        }
        (!matches!(self.peek(0), Some(b'\'' | b'$' | b'&'))).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str) -> Option<(u64, Vec<String>)> {
        let mut literals = Vec::new();
        let hash = normalize(text, &mut literals)?;
        Some((hash, literals.iter().map(|l| text[l.range.clone()].to_owned()).collect()))
    }

    #[test]
    fn literals_are_found_and_shapes_agree() {
        let (a, found) = shape("UPDATE t SET x = x + -1234 WHERE id = 42 AND n='it''s';").unwrap();
        assert_eq!(found, ["-1234", "42", "'it''s'"]);
        let (b, _) = shape("UPDATE t SET x = x + 7 WHERE id = 1 AND n='';  ").unwrap();
        assert_eq!(a, b);
        let (c, _) = shape("UPDATE t SET x = x - 7 WHERE id = 1 AND n=''").unwrap();
        assert_ne!(a, c);
        let (d, _) = shape("UPDATE t SET x = x + 7.5 WHERE id = 1 AND n=''").unwrap();
        assert_ne!(a, d);
    }

    #[test]
    fn kinds_follow_the_signed_value() {
        let mut list = Vec::new();
        normalize("SELECT (-2147483648), 2147483648, 9e3, .5, (9223372036854775808)", &mut list);
        let kinds: Vec<LiteralKind> = list.iter().map(|l| l.kind).collect();
        use LiteralKind::{Int4, Int8, Numeric};
        assert_eq!(kinds, [Int4, Int8, Numeric, Numeric, Numeric]);
    }

    #[test]
    fn a_minus_between_values_is_an_operator() {
        assert_eq!(shape("SELECT a-5, 3-2, a -1").unwrap().1, ["5", "3", "2", "1"]);
        assert_eq!(shape("SELECT f(-5), (1)-2").unwrap().1, ["-5", "1", "2"]);
    }

    #[test]
    fn what_is_not_safe_is_not_taken() {
        for text in [
            "SELECT $1",
            "SELECT 1 -- c",
            "SELECT 1 /* c */",
            "SELECT E'a'",
            "SELECT 'a\\b'",
            "SELECT 1; SELECT 2",
            "SELECT 'open",
            "SELECT $$x$$",
            "SELECT 1a",
            "SELECT 0x1F",
            "SELECT U&'x'",
            "CREATE TABLE t (a int)",
            "VACUUM",
            "",
        ] {
            assert!(shape(text).is_none(), "{text}");
        }
    }

    #[test]
    fn shapes_are_compared_in_full() {
        let list = |text: &str| {
            let mut out = Vec::new();
            normalize(text, &mut out).map(|_| out).unwrap()
        };
        let (a, b, c) = ("SELECT x + 1", "SELECT x + 22 ;", "SELECT y + 1");
        assert!(same_shape(a, &list(a), b, &list(b)));
        assert!(!same_shape(a, &list(a), c, &list(c)));
    }
}
