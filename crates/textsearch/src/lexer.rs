//! Words as `tsvector` and `tsquery` literals have them: bare up to a blank, a colon or (in queries) an
//! operator; in quotes with doubled quotes; a backslash takes the next character as it is.

use base::{Error, err};

/// Blanks between words.
pub fn is_blank(c: char) -> bool {
    c.is_whitespace()
}

/// Characters that end a bare word of a query.
fn is_operator(c: char) -> bool {
    matches!(c, '!' | '&' | '|' | '(' | ')')
}

/// The fault of a word.
pub enum WordError {
    /// It isn't complete, or there is none.
    Syntax,
    /// A backslash at the end.
    NoEscaped,
}

impl WordError {
    /// The error as users see it.
    pub fn error(&self, ty: &str, text: &str) -> Error {
        match self {
            WordError::Syntax => err!(SYNTAX_ERROR, "syntax error in {ty}: \"{text}\""),
            WordError::NoEscaped => {
                err!(SYNTAX_ERROR, "there is no escaped character: \"{text}\"")
            }
        }
    }
}

/// Reads a literal from its start.
pub struct Lexer<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
}

impl<'a> Lexer<'a> {
    /// Over a text.
    pub fn new(text: &'a str) -> Lexer<'a> {
        Lexer { rest: text.chars().peekable() }
    }

    /// The next character.
    pub fn peek(&mut self) -> Option<char> {
        self.rest.peek().copied()
    }

    /// Takes the next character.
    pub fn next(&mut self) -> Option<char> {
        self.rest.next()
    }

    /// Takes a character if it is the next.
    pub fn eat(&mut self, c: char) -> bool {
        self.rest.next_if_eq(&c).is_some()
    }

    /// Takes digits.
    pub fn digits(&mut self) -> String {
        let mut out = String::new();
        while let Some(c) = self.rest.next_if(char::is_ascii_digit) {
            out.push(c);
        }
        out
    }

    /// Passes blanks.
    pub fn skip_blanks(&mut self) {
        while self.rest.next_if(|c| is_blank(*c)).is_some() {}
    }

    /// The next word; None at the end.
    ///
    /// # Errors
    /// See [`WordError`].
    pub fn word(&mut self, query: bool) -> Result<Option<String>, WordError> {
        self.skip_blanks();
        let Some(first) = self.peek() else { return Ok(None) };
        if first == '\'' {
            self.next();
            return self.quoted().map(Some);
        }
        if query && is_operator(first) {
            return Err(WordError::Syntax);
        }
        let mut word = String::new();
        while let Some(c) = self.peek() {
            match c {
                '\\' => {
                    self.next();
                    word.push(self.next().ok_or(WordError::NoEscaped)?);
                    continue;
                }
                // The first character belongs to the word, whatever it is.
                ':' if !word.is_empty() => break,
                _ if is_blank(c) => break,
                _ if query && (is_operator(c) || c == '<') => break,
                _ => word.push(c),
            }
            self.next();
        }
        if word.is_empty() { Err(WordError::Syntax) } else { Ok(Some(word)) }
    }

    fn quoted(&mut self) -> Result<String, WordError> {
        let mut word = String::new();
        loop {
            match self.next() {
                None => return Err(WordError::Syntax),
                Some('\'') if self.eat('\'') => word.push('\''),
                Some('\'') if word.is_empty() => return Err(WordError::Syntax),
                Some('\'') => return Ok(word),
                Some('\\') => word.push(self.next().ok_or(WordError::NoEscaped)?),
                Some(c) => word.push(c),
            }
        }
    }
}
