//! Shapes of the tokens of the parser `default`.

use crate::parser::*;

/// Letters of any script.
pub fn is_letter(c: char) -> bool {
    c.is_alphabetic()
}

/// Digits of any script.
pub fn is_digit(c: char) -> bool {
    c.is_numeric()
}

fn is_word(c: char) -> bool {
    is_letter(c) || is_digit(c) || is_mark(c)
}

/// Marks that belong to the letter before.
fn is_mark(c: char) -> bool {
    matches!(c as u32,
        0x300..=0x36f | 0x483..=0x489 | 0x591..=0x5c7 | 0x610..=0x61a | 0x64b..=0x65f
        | 0x900..=0x903 | 0x93a..=0x94f | 0x951..=0x957 | 0x962..=0x963
        | 0xb82 | 0xbbe..=0xbcd | 0x1ab0..=0x1aff | 0x1dc0..=0x1dff | 0x20d0..=0x20ff | 0xfe20..=0xfe2f)
}

/// Whether a token may begin with a character.
pub fn may_begin(c: char) -> bool {
    is_letter(c) || is_digit(c) || matches!(c, '-' | '+' | '<' | '&' | '/')
}

/// The kind of a word.
pub fn word_kind(word: &str) -> i32 {
    if word.bytes().all(|b| b.is_ascii_alphabetic()) {
        ASCIIWORD
    } else if word.chars().all(|c| is_letter(c) || is_mark(c)) {
        WORD
    } else {
        NUMWORD
    }
}

/// Bytes of the host in front of a URL's path.
pub fn host_len(url: &str) -> usize {
    url.find(['/', '?', '#']).unwrap_or(url.len())
}

/// A place in a text; lengths are in bytes from there on.
pub struct Cursor<'a> {
    rest: &'a str,
}

type Found = Option<(i32, usize)>;

impl<'a> Cursor<'a> {
    /// At a place.
    pub fn new(text: &'a str, at: usize) -> Cursor<'a> {
        Cursor { rest: &text[at..] }
    }

    /// The character at an offset.
    pub fn peek(&self, at: usize) -> Option<char> {
        self.rest.get(at..)?.chars().next()
    }

    /// Bytes of the characters from `at` on that all are so.
    fn run(&self, at: usize, is: impl Fn(char) -> bool) -> usize {
        let rest = &self.rest[at..];
        rest.find(|c| !is(c)).unwrap_or(rest.len())
    }

    fn digits(&self, at: usize) -> usize {
        self.run(at, |c| c.is_ascii_digit())
    }

    /// Letters, or letters and digits.
    pub fn word(&self) -> Found {
        let len = self.run(0, is_word);
        let word = &self.rest[..len];
        let plain = word.chars().all(|c| c.is_ascii_digit());
        (len > 0 && !plain).then(|| (word_kind(word), len))
    }

    /// Integers, decimals, versions.
    pub fn number(&self) -> Found {
        let sign = usize::from(self.rest.starts_with(['-', '+']));
        let whole = self.digits(sign);
        if whole == 0 {
            return None;
        }
        let mut at = sign + whole;
        let mut parts = 1;
        while self.peek(at) == Some('.') && self.digits(at + 1) > 0 {
            if sign == 1 && parts == 2 {
                break;
            }
            at += 1 + self.digits(at + 1);
            parts += 1;
        }
        let kind = match parts {
            1 if sign == 1 => INT,
            1 => UINT,
            2 => FLOAT,
            _ => VERSION,
        };
        if parts <= 2 && matches!(self.peek(at), Some('e' | 'E')) {
            let signed = usize::from(matches!(self.peek(at + 1), Some('-' | '+')));
            let exponent = self.digits(at + 1 + signed);
            let end = at + 1 + signed + exponent;
            if exponent > 0 {
                return Some((SFLOAT, end));
            }
        }
        Some((kind, at))
    }

    /// Words with hyphens between them.
    pub fn hyphenated(&self) -> Found {
        let mut at = 0;
        let mut end = 0;
        let mut parts = 0;
        loop {
            let len = self.run(at, is_word);
            let part = &self.rest[at..at + len];
            if len == 0 || part.chars().all(|c| c.is_ascii_digit()) {
                break;
            }
            parts += 1;
            at += len;
            end = at;
            if self.peek(at) != Some('-') {
                break;
            }
            at += 1;
        }
        if parts < 2 {
            return None;
        }
        let kinds: Vec<i32> = self.rest[..end].split('-').map(word_kind).collect();
        let kind = if kinds.iter().all(|k| *k == ASCIIWORD) {
            ASCIIHWORD
        } else if kinds.contains(&NUMWORD) {
            NUMHWORD
        } else {
            HWORD
        };
        Some((kind, end))
    }

    /// `http://`.
    pub fn protocol(&self) -> Found {
        let len = self.run(0, |c| c.is_ascii_alphabetic());
        (len > 0 && self.rest[len..].starts_with("://")).then_some((PROTOCOL, len + 3))
    }

    /// Bytes of a host's name from `at` on, without its port: labels with dots between them, of which the last
    /// has letters only, two at least.
    fn host_name(&self, at: usize) -> Option<usize> {
        let mut end = at;
        let mut good = None;
        let mut labels = 0;
        loop {
            let letters = self.run(end, |c| c.is_ascii_alphabetic());
            let behind = self.peek(end + letters);
            if labels > 0 && letters >= 2 && !behind.is_some_and(|c| c.is_ascii_digit()) {
                good = Some(end + letters);
            }
            let len = self.label(end);
            end += len;
            if len == 0 || self.peek(end) != Some('.') {
                break;
            }
            labels += 1;
            end += 1;
        }
        good.map(|g| g - at)
    }

    /// Bytes of a label: letters and digits, with single hyphens and underscores between them.
    fn label(&self, at: usize) -> usize {
        let mut end = at;
        loop {
            let len = self.run(end, |c| c.is_ascii_alphanumeric());
            if len == 0 {
                // A character that joins nothing does not belong to it.
                return end.saturating_sub(at + 1);
            }
            end += len;
            if !matches!(self.peek(end), Some('-' | '_')) {
                return end - at;
            }
            end += 1;
        }
    }

    fn port(&self, at: usize) -> usize {
        match self.peek(at) {
            Some(':') => match self.digits(at + 1) {
                0 => 0,
                n => 1 + n,
            },
            _ => 0,
        }
    }

    /// Bytes of what may stand behind a host.
    fn path_at(&self, at: usize) -> usize {
        let path = |c: char| {
            c.is_ascii_alphanumeric() || "-_/.~%?=&#:;,+!$'()*@[]".contains(c) && c != '\''
        };
        match self.peek(at) {
            Some('/') if self.peek(at + 1) != Some('/') && self.run(at + 1, path) > 0 => {
                1 + self.run(at + 1, path)
            }
            _ => 0,
        }
    }

    /// A path behind a protocol.
    pub fn url_path(&self) -> Option<usize> {
        Some(self.path_at(0)).filter(|n| *n > 0)
    }

    /// A host, or a URL without its protocol.
    pub fn host(&self, _protocol: bool) -> Found {
        let name = self.host_name(0)?;
        let host = name + self.port(name);
        match self.path_at(host) {
            0 => Some((HOST, host)),
            path => Some((URL, host + path)),
        }
    }

    /// `a.b@example.com`.
    pub fn email(&self) -> Found {
        let local =
            self.run(0, |c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '+'));
        if self.peek(local) != Some('@') || self.rest[..local].contains("..") {
            return None;
        }
        let host = self.host_name(local + 1)?;
        Some((EMAIL, local + 1 + host))
    }

    /// `/usr/lib`, `a/b.c`, `~/x`, `e.g`, `..`.
    pub fn file(&self) -> Found {
        let name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let mut at = match self.rest.as_bytes() {
            [b'~', b'/', ..] => 1,
            [b'~', c, ..] if c.is_ascii_alphanumeric() => 1 + self.run(1, name),
            [b'.', b'.', ..] => 2,
            [b'.', b'/', ..] => 1,
            [b'/', ..] => 0,
            [b'.' | b'~', ..] => return None,
            _ => match self.run(0, is_word) {
                len if self.rest[..len].is_ascii() => len,
                _ => return None,
            },
        };
        // Two dots are one by themselves.
        let mut end = if self.rest.starts_with("..") { 2 } else { 0 };
        if end == 2 {
            match self.peek(2) {
                None => return Some((FILE, 2)),
                Some('/') => {}
                Some(_) => return None,
            }
        }
        if self.rest.starts_with('~') && at > 1 {
            end = at;
        }
        let number = at > 0 && self.rest[..at].bytes().all(|b| b.is_ascii_digit());
        while let Some(separator @ ('/' | '.')) = self.peek(at) {
            if number && end == 0 && separator == '.' {
                break;
            }
            let len = self.run(at + 1, name);
            if len == 0 || self.peek(at + 1) == Some('-') {
                break;
            }
            at += 1 + len;
            end = at;
        }
        (end > 0).then_some((FILE, end))
    }

    /// `<b>`, `</b>`, `<a href="x">`, `<!-- -->`, `<?xml ?>`.
    pub fn tag(&self) -> Found {
        let rest = self.rest;
        if rest.starts_with("<!--") {
            return rest.find("-->").map(|end| (TAG, end + 3));
        }
        let start = match rest.as_bytes().get(1)? {
            b'/' | b'!' | b'?' => 2,
            _ => 1,
        };
        let first = self.peek(start)?;
        if !(first.is_ascii_alphabetic() || first == '_' || first == ':') {
            return None;
        }
        let mut quote = None;
        for (at, c) in rest.char_indices().skip(start) {
            match quote {
                Some(q) if c == q => quote = None,
                Some(_) => {}
                None => match c {
                    '"' | '\'' => quote = Some(c),
                    '>' => return Some((TAG, at + 1)),
                    '<' => return None,
                    _ => {}
                },
            }
        }
        None
    }

    /// `&amp;`, `&#38;`, `&#x26;`.
    pub fn entity(&self) -> Found {
        let rest = self.rest;
        let (start, len) = if rest.starts_with("&#x") || rest.starts_with("&#X") {
            (3, self.run(3, |c| c.is_ascii_hexdigit()))
        } else if rest.starts_with("&#") {
            (2, self.digits(2))
        } else {
            let first = self.peek(1)?;
            if !(first.is_ascii_alphabetic() || first == '_' || first == ':') {
                return None;
            }
            (1, self.run(1, |c| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '-' | '.')))
        };
        (len > 0 && self.peek(start + len) == Some(';')).then_some((ENTITY, start + len + 1))
    }
}
