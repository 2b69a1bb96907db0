//! The syntax of JSON, for input of type json (RFC 8259). The text itself is what is stored.

use base::{Result, err};

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

/// What may come next, where a value has ended or is to begin.
#[derive(Clone, Copy, PartialEq)]
enum Open {
    Array,
    Object,
}

impl Checker<'_> {
    /// Without recursion: a stack of what is open.
    fn document(&mut self) -> Result<()> {
        let mut open: Vec<Open> = Vec::new();
        loop {
            self.skip_blanks();
            if let Some(inner) = self.begin_value()? {
                if open.len() == MAX_DEPTH {
                    return Err(err!(STATEMENT_TOO_COMPLEX, "stack depth limit exceeded"));
                }
                open.push(inner);
                if inner == Open::Object {
                    self.key()?;
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
                        self.key()?;
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
    fn key(&mut self) -> Result<()> {
        self.skip_blanks();
        if self.peek() != Some(b'"') {
            return Err(self.expected("string"));
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
            return Err(self.invalid());
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
        if self.at == from { Err(self.invalid()) } else { Ok(()) }
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
        if self.word_length() > 0 { Err(self.invalid()) } else { Ok(()) }
    }

    fn string(&mut self) -> Result<()> {
        self.at += 1;
        loop {
            match self.peek() {
                None => return Err(self.invalid()),
                Some(b'"') => break,
                Some(b'\\') => {
                    self.at += 1;
                    match self.peek() {
                        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {}
                        Some(b'u') => {
                            let hex = self.bytes.get(self.at + 1..self.at + 5);
                            if !hex.is_some_and(|h| h.iter().all(u8::is_ascii_hexdigit)) {
                                return Err(self.syntax().detail(
                                    "\"\\u\" must be followed by four hexadecimal digits.",
                                ));
                            }
                            self.at += 4;
                        }
                        _ => return Err(self.invalid()),
                    }
                }
                Some(b) if b < 0x20 => {
                    return Err(self
                        .syntax()
                        .detail(format!("Character with value 0x{b:02x} must be escaped.")));
                }
                Some(_) => {}
            }
            self.at += 1;
        }
        self.at += 1;
        Ok(())
    }

    #[cold]
    fn syntax(&self) -> base::Error {
        err!(INVALID_TEXT_REPRESENTATION, "invalid input syntax for type json")
    }

    /// The token here, for messages.
    fn token(&self) -> &str {
        let len = self.word_length().max(1);
        self.text.get(self.at..self.at + len).unwrap_or("")
    }

    #[cold]
    fn invalid(&self) -> base::Error {
        self.syntax().detail(format!("Token \"{}\" is invalid.", self.token()))
    }

    #[cold]
    fn expected(&self, what: &str) -> base::Error {
        if self.at >= self.bytes.len() {
            return self.syntax().detail("The input string ended unexpectedly.");
        }
        self.syntax().detail(format!("Expected {what}, but found \"{}\".", self.token()))
    }
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
