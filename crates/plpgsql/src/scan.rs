//! The scanner: a body's text as tokens with their places, by the lexical rules of SQL (manual, section
//! 4.1) and the operators that the language adds: `:=`, `..`, `<<`, `>>`.

use base::{Result, err};

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A keyword or an identifier without quotes; folded to lower case.
    Word,
    /// An identifier in quotes.
    Quoted,
    /// A string of any form.
    String,
    /// A number.
    Number,
    /// `$1`.
    Param,
    /// An operator or a single character.
    Sign,
    /// The text's end.
    End,
}

/// A piece of the text.
#[derive(Clone, Debug)]
pub struct Token {
    /// The token's kind.
    pub kind: Kind,
    /// A word folded, an identifier without its quotes, a sign; empty for others.
    pub text: String,
    /// Where it begins, in bytes.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// Its line, from 1.
    pub line: u32,
}

impl Token {
    /// Whether it is this keyword.
    pub fn is(&self, word: &str) -> bool {
        self.kind == Kind::Word && self.text == word
    }

    /// Whether it is this sign.
    pub fn is_sign(&self, sign: &str) -> bool {
        self.kind == Kind::Sign && self.text == sign
    }

    /// Whether it can name something.
    pub fn is_name(&self) -> bool {
        matches!(self.kind, Kind::Word | Kind::Quoted)
    }
}

struct Scanner<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    line: u32,
    tokens: Vec<Token>,
}

/// All tokens of a text, an [`Kind::End`] last.
///
/// # Errors
/// `42601` for quotes and comments without an end, with the position in the text.
pub fn scan(text: &str) -> Result<Vec<Token>> {
    let mut scanner = Scanner { text, bytes: text.as_bytes(), at: 0, line: 1, tokens: Vec::new() };
    scanner.run()?;
    Ok(scanner.tokens)
}

/// Position in characters, from 1, of a place in bytes.
pub fn position(text: &str, at: usize) -> u32 {
    text.as_bytes()[..at.min(text.len())].iter().filter(|b| (**b & 0xC0) != 0x80).count() as u32 + 1
}

fn is_word_start(b: u8) -> bool {
    b.is_ascii_alphabetic() || b == b'_' || b >= 0x80
}

fn is_word(b: u8) -> bool {
    is_word_start(b) || b.is_ascii_digit() || b == b'$'
}

const OPERATOR: &[u8] = b"+-*/<>=~!@#%^&|`?";

impl Scanner<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn run(&mut self) -> Result<()> {
        loop {
            self.skip_blanks()?;
            if self.at >= self.bytes.len() {
                self.push(Kind::End, self.at, self.line, String::new());
                return Ok(());
            }
            self.token()?;
        }
    }

    fn push(&mut self, kind: Kind, start: usize, line: u32, text: String) {
        self.tokens.push(Token { kind, text, start, end: self.at, line });
    }

    fn step(&mut self) {
        self.line += u32::from(self.peek(0) == b'\n');
        self.at += 1;
    }

    fn skip_blanks(&mut self) -> Result<()> {
        loop {
            match self.peek(0) {
                b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c if self.at < self.bytes.len() => {
                    self.step();
                }
                b'-' if self.peek(1) == b'-' => {
                    while self.at < self.bytes.len() && self.peek(0) != b'\n' {
                        self.at += 1;
                    }
                }
                b'/' if self.peek(1) == b'*' => self.comment()?,
                _ => return Ok(()),
            }
        }
    }

    fn comment(&mut self) -> Result<()> {
        let start = self.at;
        let mut depth = 0;
        loop {
            match (self.peek(0), self.peek(1)) {
                (b'/', b'*') => {
                    depth += 1;
                    self.at += 2;
                }
                (b'*', b'/') => {
                    depth -= 1;
                    self.at += 2;
                    if depth == 0 {
                        return Ok(());
                    }
                }
                _ if self.at >= self.bytes.len() => {
                    return Err(self.unterminated("/* comment", start));
                }
                _ => self.step(),
            }
        }
    }

    fn unterminated(&self, what: &str, start: usize) -> base::Error {
        err!(SYNTAX_ERROR, "unterminated {what} at or near \"{}\"", &self.text[start..])
            .at(position(self.text, start))
    }

    fn token(&mut self) -> Result<()> {
        let (start, line) = (self.at, self.line);
        let b = self.peek(0);
        match b {
            b'\'' => return self.string(start, false),
            b'"' => return self.quoted(start),
            b'$' if self.peek(1).is_ascii_digit() => {
                self.at += 1;
                while self.peek(0).is_ascii_digit() {
                    self.at += 1;
                }
                self.push(Kind::Param, start, line, self.text[start + 1..self.at].to_owned());
            }
            b'$' if self.dollar_tag().is_some() => return self.dollar(start),
            b'e' | b'E' if self.peek(1) == b'\'' => {
                self.at += 1;
                return self.string(start, true);
            }
            b'b' | b'B' | b'x' | b'X' | b'n' | b'N' if self.peek(1) == b'\'' => {
                self.at += 1;
                return self.string(start, false);
            }
            b'u' | b'U' if self.peek(1) == b'&' && matches!(self.peek(2), b'\'' | b'"') => {
                self.at += 2;
                return match self.peek(0) {
                    b'\'' => self.string(start, false),
                    _ => self.quoted(start),
                };
            }
            _ if is_word_start(b) => {
                while is_word(self.peek(0)) && self.at < self.bytes.len() {
                    self.at += 1;
                }
                let word = self.text[start..self.at].to_ascii_lowercase();
                self.push(Kind::Word, start, line, word);
            }
            _ if b.is_ascii_digit() || b == b'.' && self.peek(1).is_ascii_digit() => {
                self.number(start, line);
            }
            _ => self.sign(start, line),
        }
        Ok(())
    }

    fn number(&mut self, start: usize, line: u32) {
        while self.peek(0).is_ascii_digit() {
            self.at += 1;
        }
        if self.peek(0) == b'.' && self.peek(1) != b'.' {
            self.at += 1;
            while self.peek(0).is_ascii_digit() {
                self.at += 1;
            }
        }
        if matches!(self.peek(0), b'e' | b'E') {
            let sign = usize::from(matches!(self.peek(1), b'+' | b'-'));
            if self.peek(1 + sign).is_ascii_digit() {
                self.at += 1 + sign;
                while self.peek(0).is_ascii_digit() {
                    self.at += 1;
                }
            }
        }
        self.push(Kind::Number, start, line, self.text[start..self.at].to_owned());
    }

    fn sign(&mut self, start: usize, line: u32) {
        for two in [":=", "..", "::", "<<", ">>", "=>"] {
            let lone = two == "<<" || two == ">>" || two == "=>";
            if self.bytes[self.at..].starts_with(two.as_bytes())
                && !(lone && OPERATOR.contains(&self.peek(2)))
            {
                self.at += 2;
                self.push(Kind::Sign, start, line, two.to_owned());
                return;
            }
        }
        if !OPERATOR.contains(&self.peek(0)) {
            let width = self.text[self.at..].chars().next().map_or(1, char::len_utf8);
            self.at += width;
            self.push(Kind::Sign, start, line, self.text[start..self.at].to_owned());
            return;
        }
        while OPERATOR.contains(&self.peek(0)) && self.at < self.bytes.len() {
            let comment = (self.peek(0), self.peek(1));
            if self.at > start && (comment == (b'-', b'-') || comment == (b'/', b'*')) {
                break;
            }
            self.at += 1;
        }
        // As in SQL, an operator of several characters ends with a sign only if an unusual one is in it.
        let unusual = self.bytes[start..self.at].iter().any(|b| b"~!@#%^&|`?".contains(b));
        while self.at > start + 1 && !unusual && matches!(self.bytes[self.at - 1], b'+' | b'-') {
            self.at -= 1;
        }
        self.push(Kind::Sign, start, line, self.text[start..self.at].to_owned());
    }

    fn string(&mut self, start: usize, escapes: bool) -> Result<()> {
        let line = self.line;
        self.at += 1;
        loop {
            if self.at >= self.bytes.len() {
                return Err(self.unterminated("quoted string", start));
            }
            match self.peek(0) {
                b'\\' if escapes => {
                    self.step();
                    self.step();
                }
                b'\'' if self.peek(1) == b'\'' => self.at += 2,
                b'\'' => {
                    self.at += 1;
                    self.push(Kind::String, start, line, String::new());
                    return Ok(());
                }
                _ => self.step(),
            }
        }
    }

    fn quoted(&mut self, start: usize) -> Result<()> {
        let line = self.line;
        self.at += 1;
        let mut name = String::new();
        loop {
            if self.at >= self.bytes.len() {
                return Err(self.unterminated("quoted identifier", start));
            }
            let from = self.at;
            match self.peek(0) {
                b'"' if self.peek(1) == b'"' => {
                    name.push('"');
                    self.at += 2;
                }
                b'"' => {
                    self.at += 1;
                    self.push(Kind::Quoted, start, line, name);
                    return Ok(());
                }
                _ => {
                    let width = self.text[from..].chars().next().map_or(1, char::len_utf8);
                    self.line += u32::from(self.peek(0) == b'\n');
                    self.at += width;
                    name.push_str(&self.text[from..self.at]);
                }
            }
        }
    }

    /// The length of the opening `$tag$` here.
    fn dollar_tag(&self) -> Option<usize> {
        let rest = &self.bytes[self.at + 1..];
        let end = rest.iter().position(|b| *b == b'$')?;
        let tag = &rest[..end];
        let fits = tag.iter().all(|b| is_word(*b) && *b != b'$')
            && tag.first().is_none_or(|b| is_word_start(*b));
        fits.then_some(end + 2)
    }

    fn dollar(&mut self, start: usize) -> Result<()> {
        let line = self.line;
        let Some(length) = self.dollar_tag() else { return Ok(()) };
        let tag = &self.text[start..start + length];
        let Some(found) = self.text[start + length..].find(tag) else {
            return Err(self.unterminated("dollar-quoted string", start));
        };
        let end = start + length + found + length;
        while self.at < end {
            self.step();
        }
        self.push(Kind::String, start, line, String::new());
        Ok(())
    }
}

/// The value of a string token.
pub fn string_value(text: &str) -> String {
    if let Some(rest) = text.strip_prefix('$') {
        let tag = rest.find('$').map_or(0, |n| n + 2);
        return text.get(tag..text.len().saturating_sub(tag)).unwrap_or_default().to_owned();
    }
    let escapes = text.starts_with(['e', 'E']);
    let from = text.find('\'').map_or(0, |n| n + 1);
    let inner = &text[from..text.len().saturating_sub(1).max(from)];
    let plain = inner.replace("''", "'");
    if !escapes {
        return plain;
    }
    let mut out = String::with_capacity(plain.len());
    let mut chars = plain.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some('r') => out.push('\r'),
            Some('b') => out.push('\u{8}'),
            Some('f') => out.push('\u{c}'),
            Some(other) => out.push(other),
            None => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let tokens = scan(text).unwrap();
        tokens.iter().map(|t| text[t.start..t.end].to_owned()).collect()
    }

    #[test]
    fn tokens_end_where_those_of_sql_do() {
        assert_eq!(words("a:=1..10"), ["a", ":=", "1", "..", "10", ""]);
        assert_eq!(words("x<-1 -- c\n<<l>>"), ["x", "<", "-", "1", "<<", "l", ">>", ""]);
        assert_eq!(words("'it''s' E'\\'' $q$ ' $q$"), ["'it''s'", "E'\\''", "$q$ ' $q$", ""]);
        assert_eq!(words("a->>'b' $1::int"), ["a", "->>", "'b'", "$1", "::", "int", ""]);
        assert_eq!(words("/* a /* b */ */ \"A\"\"b\""), ["\"A\"\"b\"", ""]);
    }

    #[test]
    fn lines_are_counted_from_one() {
        let tokens = scan("\nBEGIN\n  x := 'a\nb';\nEND").unwrap();
        let lines: Vec<u32> = tokens.iter().map(|t| t.line).collect();
        assert_eq!(lines, [2, 3, 3, 3, 4, 5, 5]);
    }

    #[test]
    fn strings_have_values() {
        assert_eq!(string_value("'it''s'"), "it's");
        assert_eq!(string_value("$x$a$b$x$"), "a$b");
        assert_eq!(string_value("E'a\\nb'"), "a\nb");
    }
}
