//! The tokens of SQL, of texts with mistakes in them as well, and of SQL between other words.

use std::ops::Range;

/// A token's kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A word or a number.
    Word,
    /// A word in quotes.
    Name,
    /// A string; inside of it so many apostrophes stand for one that delimits a literal there.
    Literal {
        quotes: usize,
    },
    /// Any other character.
    Punct(u8),
    Comment,
}

/// A token: its kind, and its place without what delimits it.
#[derive(Clone, Debug)]
pub(super) struct Token {
    pub kind: Kind,
    pub range: Range<usize>,
}

/// The tokens of a part of a text. What is cut off ends with the part.
pub(super) struct Tokens<'t> {
    bytes: &'t [u8],
    at: usize,
    /// How many apostrophes delimit a literal: two inside another, four inside that.
    quotes: usize,
    /// Whether SQL stands between other words, in quotes: these delimit nothing then, and an apostrophe inside
    /// of a word is a part of it.
    prose: bool,
}

impl<'t> Tokens<'t> {
    pub fn new(text: &'t [u8], range: Range<usize>, quotes: usize, prose: bool) -> Tokens<'t> {
        Tokens { bytes: &text[..range.end], at: range.start, quotes, prose }
    }

    fn rest(&self) -> &'t [u8] {
        &self.bytes[self.at..]
    }

    /// How many apostrophes are there.
    fn run(&self, at: usize) -> usize {
        self.bytes[at..].iter().take_while(|b| **b == b'\'').count()
    }

    /// Moves behind the next bytes: a token of them, without so many at its ends.
    fn take(&mut self, kind: Kind, length: usize, (before, behind): (usize, usize)) -> Token {
        let start = self.at;
        self.at = (start + length).min(self.bytes.len());
        let from = (start + before).min(self.at);
        Token { kind, range: from..self.at.saturating_sub(behind).max(from) }
    }

    /// The length of what stands before the apostrophes of a literal that begins here (E'', U&''), and whether
    /// backslashes escape in it; None: none does.
    fn prefix(&self) -> Option<(usize, bool)> {
        let rest = self.rest();
        let length = match rest {
            [b'\'', ..] => 0,
            [b'u' | b'U', b'&', ..] => 2,
            [b'e' | b'E' | b'n' | b'N' | b'b' | b'B' | b'x' | b'X', ..] => 1,
            _ => return None,
        };
        let run = self.run(self.at + length);
        (run >= self.quotes).then(|| (length, rest[0].eq_ignore_ascii_case(&b'e')))
    }

    /// A literal in apostrophes.
    fn quoted(&mut self, prefix: usize, escapes: bool) -> Token {
        let from = self.at + prefix + self.quotes;
        let mut to = from;
        while to < self.bytes.len() {
            match self.bytes[to] {
                b'\\' if escapes => to += 2,
                b'\'' => {
                    let (run, pair) = (self.run(to), 2 * self.quotes);
                    // Doubled ones are part of what is quoted.
                    let doubled = run / pair * pair;
                    if run - doubled >= self.quotes {
                        to += doubled;
                        self.at = to + self.quotes;
                        return Token { kind: Kind::Literal { quotes: pair }, range: from..to };
                    }
                    to += run;
                }
                _ => to += 1,
            }
        }
        self.at = self.bytes.len();
        Token { kind: Kind::Literal { quotes: 2 * self.quotes }, range: from.min(self.at)..self.at }
    }

    /// A literal in dollars, if one begins here.
    fn dollars(&mut self) -> Option<Token> {
        let rest = self.rest();
        let tag = rest.iter().skip(1).position(|b| !is_word(*b) || *b == b'$')? + 2;
        if rest[tag - 1] != b'$' || rest[1].is_ascii_digit() {
            return None;
        }
        let mark = &rest[..tag];
        let inside = &rest[tag..];
        let kind = Kind::Literal { quotes: self.quotes };
        Some(match inside.windows(tag).position(|w| w == mark) {
            Some(end) => self.take(kind, tag + end + tag, (tag, tag)),
            None => self.take(kind, rest.len(), (tag, 0)),
        })
    }

    fn word(&mut self) -> Token {
        let rest = self.rest();
        let ends = |(at, b): (usize, &u8)| match b {
            b'\'' if self.prose => {
                !rest.get(at + 1).is_some_and(u8::is_ascii_alphabetic)
                    || !rest[at - 1].is_ascii_alphabetic()
            }
            b => !is_word(*b),
        };
        let length = (1..rest.len()).find(|at| ends((*at, &rest[*at]))).unwrap_or(rest.len());
        self.take(Kind::Word, length, (0, 0))
    }
}

impl Iterator for Tokens<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        let blanks = self.rest().iter().take_while(|b| b.is_ascii_whitespace()).count();
        self.at += blanks;
        let rest = self.rest();
        let first = *rest.first()?;
        let until = |end: &[u8]| rest.windows(end.len()).position(|w| w == end);
        Some(match first {
            b'-' if rest.starts_with(b"--") && !self.prose => {
                let length = until(b"\n").unwrap_or(rest.len());
                self.take(Kind::Comment, length, (2, 0))
            }
            b'/' if rest.starts_with(b"/*") && !self.prose => {
                let length = until(b"*/").map_or(rest.len(), |end| end + 2);
                self.take(Kind::Comment, length, (2, 0))
            }
            b'"' if !self.prose => {
                let inside = rest[1..].iter().position(|b| *b == b'"');
                let length = inside.map_or(rest.len(), |at| at + 2);
                self.take(Kind::Name, length, (1, usize::from(inside.is_some())))
            }
            b'$' => match self.dollars() {
                Some(literal) => literal,
                None => self.take(Kind::Punct(first), 1, (0, 0)),
            },
            _ => match self.prefix() {
                Some((prefix, escapes)) => self.quoted(prefix, escapes),
                None if is_word(first) => self.word(),
                None => self.take(Kind::Punct(first), 1, (0, 0)),
            },
        })
    }
}

pub(super) fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b == b'$' || b >= 0x80
}
