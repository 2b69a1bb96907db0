//! `standard_conforming_strings = off`: ordinary literals whose backslashes escape. The grammar knows the standard's
//! literals only, so a statement's text is rewritten before anybody reads it:
//!
//! ```text
//!   SELECT 'a\nb', 'it''s'   ──►   SELECT E'a\nb', 'it''s'
//! ```
//!
//! Positions in the new text are those of the old one but for the letters before them ([`Rewritten::before`]).

use base::{Error, Result, err};

/// Whether `\'` may stand in a literal (`backslash_quote`), and whether backslashes are warned of
/// (`escape_string_warning`).
#[derive(Clone, Copy)]
pub struct Escapes {
    /// See above.
    pub quotes: bool,
    /// See above.
    pub warns: bool,
}

/// A text with the standard's literals.
pub struct Rewritten {
    /// The text.
    pub text: String,
    /// Warnings, with their positions in the old text.
    pub warnings: Vec<Error>,
    /// Where letters were put in: characters of the new text, from 1.
    inserted: Vec<u32>,
}

impl Rewritten {
    /// How many letters were put in before a place of the new text.
    pub fn before(&self, position: u32) -> u32 {
        self.inserted.iter().filter(|at| **at < position).count() as u32
    }
}

/// Rewrites a text; None: it says the same under the standard's rules.
///
/// # Errors
/// `0A000` for a literal with Unicode escapes, `22P06` for a quote after a backslash where that is not allowed.
pub fn rewritten(text: &str, escapes: Escapes) -> Result<Option<Rewritten>> {
    if !text.contains('\'') {
        return Ok(None);
    }
    let mut scan =
        Scan { bytes: text.as_bytes(), at: 0, escapes, starts: Vec::new(), found: vec![] };
    scan.run().map_err(|(error, at)| error.at(position(text, at)))?;
    if scan.starts.is_empty() {
        return Ok(None);
    }
    let mut out = Rewritten {
        text: String::with_capacity(text.len() + scan.starts.len()),
        warnings: Vec::new(),
        inserted: Vec::new(),
    };
    let mut from = 0;
    for start in &scan.starts {
        out.text.push_str(&text[from..*start]);
        out.inserted.push(position(text, *start) + out.inserted.len() as u32);
        out.text.push('E');
        from = *start;
    }
    out.text.push_str(&text[from..]);
    out.warnings = scan.found.into_iter().map(|(e, at)| e.at(position(text, at))).collect();
    Ok(Some(out))
}

/// Characters from 1.
fn position(text: &str, at: usize) -> u32 {
    text.get(..at).map_or(0, |before| before.chars().count() as u32 + 1)
}

struct Scan<'t> {
    bytes: &'t [u8],
    at: usize,
    escapes: Escapes,
    /// Where literals with backslashes begin.
    starts: Vec<usize>,
    /// Warnings and their places.
    found: Vec<(Error, usize)>,
}

type Step = std::result::Result<(), (Error, usize)>;

impl Scan<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn run(&mut self) -> Step {
        while self.at < self.bytes.len() {
            match self.peek(0) {
                b'\'' => self.literal()?,
                b'"' => self.skip_quoted(b'"'),
                b'-' if self.peek(1) == b'-' => {
                    let rest = &self.bytes[self.at..];
                    self.at += rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
                }
                b'/' if self.peek(1) == b'*' => self.skip_comment(),
                b'$' => self.skip_dollars(),
                b if is_letter(b) => self.word()?,
                b if b.is_ascii_digit() => {
                    while is_letter(self.peek(0)) || self.peek(0).is_ascii_digit() {
                        self.at += 1;
                    }
                }
                _ => self.at += 1,
            }
        }
        Ok(())
    }

    /// A name, or the letter before a literal of another kind.
    fn word(&mut self) -> Step {
        let start = self.at;
        while is_letter(self.peek(0)) || self.peek(0).is_ascii_digit() || self.peek(0) == b'$' {
            self.at += 1;
        }
        let word = &self.bytes[start..self.at];
        match (word, self.peek(0), self.peek(1)) {
            (b"e" | b"E", b'\'', _) => self.escaped(None),
            (b"b" | b"B" | b"x" | b"X", b'\'', _) => {
                self.skip_quoted(b'\'');
                Ok(())
            }
            (b"u" | b"U", b'&', b'\'') => Err((
                err!(FEATURE_NOT_SUPPORTED, "unsafe use of string constant with Unicode escapes")
                    .detail(
                        "String constants with Unicode escapes cannot be used when \
                         standard_conforming_strings is off.",
                    ),
                start,
            )),
            _ => Ok(()),
        }
    }

    /// An ordinary literal, with those that continue it on further lines.
    fn literal(&mut self) -> Step {
        let start = self.at;
        let mut backslashes = false;
        loop {
            let first = (!backslashes).then_some(start);
            let known = self.found.len();
            let before = self.starts.len();
            self.escaped(first)?;
            backslashes |= self.starts.len() > before || self.found.len() > known;
            if !self.continues() {
                return Ok(());
            }
        }
    }

    /// What stands between quotes, backslashes escaping. `ordinary`: the start of a literal that has had none yet.
    fn escaped(&mut self, mut ordinary: Option<usize>) -> Step {
        self.at += 1;
        while self.at < self.bytes.len() {
            match (self.peek(0), self.peek(1)) {
                (b'\'', b'\'') => self.at += 2,
                (b'\'', _) => {
                    self.at += 1;
                    return Ok(());
                }
                (b'\\', next) => {
                    if next == b'\'' && !self.escapes.quotes {
                        return Err((unsafe_quote(), self.at));
                    }
                    if let Some(start) = ordinary.take() {
                        self.starts.push(start);
                        if self.escapes.warns {
                            self.found.push((nonstandard(next), start));
                        }
                    }
                    self.at += 2;
                }
                _ => self.at += 1,
            }
        }
        Ok(())
    }

    /// Whether a literal goes on after blanks with a line feed in them.
    fn continues(&mut self) -> bool {
        let rest = &self.bytes[self.at..];
        let blanks = rest.iter().take_while(|b| b.is_ascii_whitespace()).count();
        let goes_on = rest[..blanks].contains(&b'\n') && rest.get(blanks) == Some(&b'\'');
        if goes_on {
            self.at += blanks;
        }
        goes_on
    }

    fn skip_quoted(&mut self, quote: u8) {
        self.at += 1;
        while self.at < self.bytes.len() {
            self.at += 1;
            if self.bytes[self.at - 1] == quote {
                if self.peek(0) != quote {
                    return;
                }
                self.at += 1;
            }
        }
    }

    fn skip_comment(&mut self) {
        let mut depth = 0;
        while self.at < self.bytes.len() {
            match (self.peek(0), self.peek(1)) {
                (b'/', b'*') => (depth, self.at) = (depth + 1, self.at + 2),
                (b'*', b'/') => {
                    (depth, self.at) = (depth - 1, self.at + 2);
                    if depth == 0 {
                        return;
                    }
                }
                _ => self.at += 1,
            }
        }
    }

    /// `$tag$ … $tag$`, or a parameter.
    fn skip_dollars(&mut self) {
        let rest = &self.bytes[self.at..];
        let tag = rest[1..].iter().take_while(|b| is_letter(**b) || b.is_ascii_digit()).count();
        let is_tag = rest.get(tag + 1) == Some(&b'$') && !rest[1].is_ascii_digit();
        if !is_tag {
            self.at += 1;
            return;
        }
        let mark = &rest[..tag + 2];
        let end = rest[mark.len()..].windows(mark.len()).position(|w| w == mark);
        self.at += end.map_or(rest.len(), |end| end + 2 * mark.len());
    }
}

fn is_letter(b: u8) -> bool {
    b.is_ascii_alphabetic() || b == b'_' || b >= 0x80
}

fn unsafe_quote() -> Error {
    err!(NONSTANDARD_USE_OF_ESCAPE_CHARACTER, "unsafe use of \\' in a string literal")
        .hint("Use '' to write quotes in strings. \\' is insecure in client-only encodings.")
}

/// The warning of a literal's first backslash.
fn nonstandard(next: u8) -> Error {
    let (what, hint) = match next {
        b'\'' => {
            ("\\'", "Use '' to write quotes in strings, or use the escape string syntax (E'...').")
        }
        b'\\' => ("\\\\", "Use the escape string syntax for backslashes, e.g., E'\\\\'."),
        _ => ("escape", "Use the escape string syntax for escapes, e.g., E'\\r\\n'."),
    };
    err!(NONSTANDARD_USE_OF_ESCAPE_CHARACTER, "nonstandard use of {what} in a string literal")
        .hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<String> {
        let escapes = Escapes { quotes: true, warns: true };
        rewritten(text, escapes).expect("allowed").map(|r| r.text)
    }

    #[test]
    fn literals_with_backslashes_get_their_letter() {
        assert_eq!(of(r"select 'a\\b\'c', 'd'").as_deref(), Some(r"select E'a\\b\'c', 'd'"));
        assert_eq!(of(r"select 'it''s', e'\n', x'1f', $$ '\' $$"), None);
        assert_eq!(of("select 'a'\n '\\n'").as_deref(), Some("select E'a'\n '\\n'"));
        assert_eq!(
            of(r"-- 'it\'s
            select '\t'")
            .as_deref(),
            Some(
                r"-- 'it\'s
            select E'\t'"
            )
        );
        assert_eq!(of(r#"select "a\'b", 'c'"#), None);
    }

    #[test]
    fn positions_go_back_by_the_letters_before_them() {
        let escapes = Escapes { quotes: true, warns: false };
        let made = rewritten(r"select '\n', '\t', x", escapes).expect("allowed").expect("changed");
        assert_eq!(made.before(8), 0);
        assert_eq!(made.before(12), 1);
        assert_eq!(made.before(21), 2);
    }
}
