//! The parser `default`: text into tokens.
//!
//! At each place every kind of token is tried; the longest one wins, and of equally long ones the first in the
//! order below. What is no token is blank. A hyphenated word is followed by its parts, a URL by its host and
//! path.

use crate::chars::{self, Cursor};

macro_rules! kinds { ($($name:ident = $id:literal, $alias:literal, $description:literal;)*) => {
    $(#[doc = $description] pub const $name: i32 = $id;)*
    /// Number, name and description of each type of token.
    pub const KINDS: &[(i32, &str, &str)] = &[$(($id, $alias, $description)),*];
} }

kinds! {
    ASCIIWORD = 1, "asciiword", "Word, all ASCII";
    WORD = 2, "word", "Word, all letters";
    NUMWORD = 3, "numword", "Word, letters and digits";
    EMAIL = 4, "email", "Email address";
    URL = 5, "url", "URL";
    HOST = 6, "host", "Host";
    SFLOAT = 7, "sfloat", "Scientific notation";
    VERSION = 8, "version", "Version number";
    HWORD_NUMPART = 9, "hword_numpart", "Hyphenated word part, letters and digits";
    HWORD_PART = 10, "hword_part", "Hyphenated word part, all letters";
    HWORD_ASCIIPART = 11, "hword_asciipart", "Hyphenated word part, all ASCII";
    BLANK = 12, "blank", "Space symbols";
    TAG = 13, "tag", "XML tag";
    PROTOCOL = 14, "protocol", "Protocol head";
    NUMHWORD = 15, "numhword", "Hyphenated word, letters and digits";
    ASCIIHWORD = 16, "asciihword", "Hyphenated word, all ASCII";
    HWORD = 17, "hword", "Hyphenated word, all letters";
    URL_PATH = 18, "url_path", "URL path";
    FILE = 19, "file", "File or path name";
    FLOAT = 20, "float", "Decimal notation";
    INT = 21, "int", "Signed integer";
    UINT = 22, "uint", "Unsigned integer";
    ENTITY = 23, "entity", "XML entity";
}

/// A token: its type and text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    /// One of [`KINDS`].
    pub kind: i32,
    /// Its characters.
    pub text: &'a str,
}

/// The tokens of a text.
pub struct Parser<'a> {
    text: &'a str,
    at: usize,
    /// The tokens inside the one that was given last, in order.
    inside: std::collections::VecDeque<Token<'a>>,
    /// Behind a protocol whatever looks like a host is one.
    protocol: bool,
}

impl<'a> Parser<'a> {
    /// Over a text.
    pub fn new(text: &'a str) -> Parser<'a> {
        Parser { text, at: 0, inside: Default::default(), protocol: false }
    }

    fn token(&mut self, kind: i32, len: usize) -> Token<'a> {
        let text = &self.text[self.at..self.at + len];
        self.at += len;
        Token { kind, text }
    }

    /// A run of characters that begin nothing.
    fn blank(&mut self) -> Token<'a> {
        let rest = &self.text[self.at..];
        let ends = |(at, c): &(usize, char)| *at > 0 && chars::may_begin(*c);
        let len = rest.char_indices().find(ends).map_or(rest.len(), |(at, _)| at);
        self.token(BLANK, len)
    }

    fn split_hyphenated(&mut self, word: &'a str) {
        for (n, part) in word.split('-').enumerate() {
            if n > 0 {
                let at = part.as_ptr() as usize - word.as_ptr() as usize;
                self.inside.push_back(Token { kind: BLANK, text: &word[at - 1..at] });
            }
            let kind = match chars::word_kind(part) {
                ASCIIWORD => HWORD_ASCIIPART,
                WORD => HWORD_PART,
                _ => HWORD_NUMPART,
            };
            self.inside.push_back(Token { kind, text: part });
        }
    }
}

impl<'a> Iterator for Parser<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        if let Some(token) = self.inside.pop_front() {
            return Some(token);
        }
        if self.at >= self.text.len() {
            return None;
        }
        let cursor = Cursor::new(self.text, self.at);
        let protocol = std::mem::take(&mut self.protocol);
        let Some((kind, len)) = longest(&cursor, protocol) else { return Some(self.blank()) };
        let token = self.token(kind, len);
        match kind {
            ASCIIHWORD | HWORD | NUMHWORD => self.split_hyphenated(token.text),
            URL => {
                let slash = chars::host_len(token.text);
                let (host, path) = token.text.split_at(slash);
                self.inside.push_back(Token { kind: HOST, text: host });
                self.inside.push_back(Token { kind: URL_PATH, text: path });
            }
            PROTOCOL => self.protocol = true,
            _ => {}
        }
        Some(token)
    }
}

/// The longest token here.
fn longest(c: &Cursor<'_>, protocol: bool) -> Option<(i32, usize)> {
    let mut best: Option<(i32, usize)> = None;
    let mut offer = |found: Option<(i32, usize)>| {
        if let Some((kind, len)) = found
            && len > best.map_or(0, |b| b.1)
        {
            best = Some((kind, len));
        }
    };
    let first = c.peek(0)?;
    if chars::is_letter(first) || first.is_ascii_digit() {
        let host = c.host(protocol);
        let number = c.number();
        if number.is_some_and(|(kind, _)| kind == SFLOAT) && host.is_none() {
            return number;
        }
        offer(number);
        offer(c.word());
        offer(c.hyphenated());
        offer(c.protocol());
        offer(c.email());
        offer(host);
        // A token that begins as a host ends as one.
        if host.is_none() {
            offer(c.file());
        }
    } else {
        match first {
            '-' | '+' => offer(c.number()),
            '<' => offer(c.tag()),
            '&' => offer(c.entity()),
            '/' | '~' | '.' => offer(c.file()),
            _ => {}
        }
        if protocol && first == '/' {
            offer(c.url_path().map(|len| (URL_PATH, len)));
        }
        if chars::is_digit(first) {
            offer(c.word());
        }
    }
    best
}
