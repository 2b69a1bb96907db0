//! The syntax of configuration files: one setting a line, as in the manual's section 20.1.2.
//!
//! ```text
//!   name [=] value [# comment]
//!   value:  word | number with a unit attached | 'text, with '' or \' for a quote'
//! ```
//! A file is read line by line: a line that means nothing is an error of that line, and the others still count.
//! The meaning of the names, and the files that `include` names, are the caller's.

/// One line that is neither empty nor a comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its number, from 1.
    pub number: u32,
    /// The setting and its value, or the place at which the line stops making sense.
    pub content: Result<(String, String), Near>,
}

/// The place of a syntax error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Near {
    /// Something is missing.
    End,
    /// This stands where it may not.
    Token(String),
}

impl Near {
    /// The error as the log and the clients see it.
    pub fn message(&self, file: &str, line: u32) -> String {
        match self {
            Near::End => format!("syntax error in file \"{file}\" line {line}, near end of line"),
            Near::Token(token) => {
                format!("syntax error in file \"{file}\" line {line}, near token \"{token}\"")
            }
        }
    }
}

/// Reads a file's text.
pub fn parse(text: &str) -> Vec<Line> {
    let line = |(index, line): (usize, &str)| {
        let content = parse_line(line).transpose()?;
        Some(Line { number: index as u32 + 1, content })
    };
    text.lines().enumerate().filter_map(line).collect()
}

/// The setting and the value of a line; None: it has neither.
fn parse_line(line: &str) -> Result<Option<(String, String)>, Near> {
    let mut rest = line;
    let Some(first) = token(&mut rest) else { return Ok(None) };
    let Token::Name(name) = first else { return Err(Near::Token(first.text().to_owned())) };
    let mut value = token(&mut rest).ok_or(Near::End)?;
    if matches!(value, Token::Equals) {
        value = token(&mut rest).ok_or(Near::End)?;
    }
    let text = match value {
        // A name with a dot is no value: it must stand in quotes, unless it has more letters than names have.
        Token::Name(text) if !text.contains('.') => text.to_owned(),
        Token::Word(text) | Token::Number(text) => text.to_owned(),
        Token::Quoted(text) => unquote(text),
        other => return Err(Near::Token(other.text().to_owned())),
    };
    match token(&mut rest) {
        None => Ok(Some((name.to_owned(), text))),
        Some(other) => Err(Near::Token(other.text().to_owned())),
    }
}

enum Token<'a> {
    /// An identifier, or two with a dot between them.
    Name(&'a str),
    /// Letters with signs among them that no name has.
    Word(&'a str),
    Number(&'a str),
    /// With its quotes.
    Quoted(&'a str),
    Equals,
    Other(&'a str),
}

impl<'a> Token<'a> {
    fn text(&self) -> &'a str {
        match self {
            Token::Equals => "=",
            Token::Name(text)
            | Token::Word(text)
            | Token::Number(text)
            | Token::Quoted(text)
            | Token::Other(text) => text,
        }
    }
}

/// The next token of a line; None at its end or at a comment.
fn token<'a>(rest: &mut &'a str) -> Option<Token<'a>> {
    let text = rest.trim_start();
    let first = text.chars().next().filter(|c| *c != '#')?;
    let (end, kind): (usize, fn(&'a str) -> Token<'a>) = match first {
        '\'' => match quoted_end(text) {
            Some(end) => (end, Token::Quoted),
            None => (1, Token::Other),
        },
        '=' => (1, |_| Token::Equals),
        c if is_letter(c) => {
            let word_end = text.find(|c| !is_word(c)).unwrap_or(text.len());
            let name_end = name_end(text);
            // The longer of the two readings counts; a name if they are equally long.
            match name_end >= word_end {
                true => (name_end, Token::Name),
                false => (word_end, Token::Word),
            }
        }
        _ => match number_end(text) {
            0 => (first.len_utf8(), Token::Other),
            end => (end, Token::Number),
        },
    };
    *rest = &text[end..];
    Some(kind(&text[..end]))
}

fn is_letter(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_' || !c.is_ascii()
}

/// Characters of a word without quotes.
fn is_word(c: char) -> bool {
    is_letter(c) || c.is_ascii_digit() || matches!(c, '-' | '.' | '_' | ':' | '/')
}

fn name_end(text: &str) -> usize {
    let identifier = |text: &str| {
        let part = |c: char| is_letter(c) || c.is_ascii_digit() || c == '$';
        text.find(|c| !part(c)).unwrap_or(text.len())
    };
    let end = identifier(text);
    match text[end..].strip_prefix('.') {
        Some(second) if second.starts_with(is_letter) => end + 1 + identifier(second),
        _ => end,
    }
}

/// Behind the closing quote; None: there is none.
fn quoted_end(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'\'' if bytes.get(at + 1) == Some(&b'\'') => at += 2,
            b'\'' => return Some(at + 1),
            _ => at += 1,
        }
    }
    None
}

/// The length of a number: a whole one with its unit attached, or one with a point; 0: there is none.
fn number_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digits = |mut at: usize, is: fn(&u8) -> bool| {
        while bytes.get(at).is_some_and(is) {
            at += 1;
        }
        at
    };
    let begin = usize::from(matches!(bytes.first(), Some(b'-' | b'+')));
    let whole = digits(begin, u8::is_ascii_digit);
    if bytes.get(whole) == Some(&b'.') {
        let mut end = digits(whole + 1, u8::is_ascii_digit);
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let signed = end + 1 + usize::from(matches!(bytes.get(end + 1), Some(b'-' | b'+')));
            let exponent = digits(signed, u8::is_ascii_digit);
            end = if exponent > signed { exponent } else { end };
        }
        return end;
    }
    if whole == begin {
        return 0;
    }
    let is_hex =
        text[begin..].starts_with("0x") && bytes.get(begin + 2).is_some_and(u8::is_ascii_hexdigit);
    let whole = if is_hex { digits(begin + 2, u8::is_ascii_hexdigit) } else { whole };
    digits(whole, u8::is_ascii_alphabetic)
}

/// The text in quotes: `''` is one of them, and a backslash begins what C's strings have.
fn unquote(text: &str) -> String {
    let inner = text.get(1..text.len() - 1).unwrap_or_default();
    let mut out = Vec::new();
    let mut bytes = inner.bytes().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\'' => {
                bytes.next();
                out.push(b'\'');
            }
            b'\\' => match bytes.next() {
                Some(b'b') => out.push(8),
                Some(b'f') => out.push(12),
                Some(b'n') => out.push(b'\n'),
                Some(b'r') => out.push(b'\r'),
                Some(b't') => out.push(b'\t'),
                Some(digit @ b'0'..=b'7') => {
                    let mut code = u32::from(digit - b'0');
                    for _ in 0..2 {
                        let Some(next) = bytes.next_if(|b| (b'0'..=b'7').contains(b)) else {
                            break;
                        };
                        code = code * 8 + u32::from(next - b'0');
                    }
                    out.push(code as u8);
                }
                Some(other) => out.push(other),
                None => {}
            },
            other => out.push(other),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// A value as a file has it, in quotes.
pub fn quote(value: &str) -> String {
    format!("'{}'", value.replace('\\', "\\\\").replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Result<(String, String), Near> {
        parse(text).remove(0).content
    }

    #[test]
    fn values_are_words_numbers_and_quoted_texts() {
        for (line, value) in [
            ("a = on", "on"),
            ("a on", "on"),
            ("a=on#x", "on"),
            ("  a  =  'x # y'  # z", "x # y"),
            ("a = 64MB", "64MB"),
            ("a = -1", "-1"),
            ("a = 1.5", "1.5"),
            ("a = .5e-3", ".5e-3"),
            ("a = 0x1F", "0x1F"),
            ("a = 'it''s \\'so\\''", "it's 'so'"),
            (r"a = 'tab\tand\101'", "tab\tandA"),
            ("a = Europe/Berlin", "Europe/Berlin"),
            ("a = pg_catalog.english:x", "pg_catalog.english:x"),
            ("a = ''", ""),
            ("a.b = c", "c"),
        ] {
            assert_eq!(one(line).unwrap().1, value, "{line}");
        }
        let (name, value) = one(&format!("x = {}", quote(r"a'b\c"))).unwrap();
        assert_eq!((name.as_str(), value.as_str()), ("x", r"a'b\c"));
        assert!(parse("# c\n\n  \n").is_empty());
    }

    #[test]
    fn a_line_that_means_nothing_says_where() {
        for (line, near) in [
            ("port", Near::End),
            ("port =", Near::End),
            ("port = 1 2", Near::Token("2".into())),
            ("work_mem = 1.5MB", Near::Token("MB".into())),
            ("= 1", Near::Token("=".into())),
            ("a = 'b", Near::Token("'".into())),
            ("a = b.c", Near::Token("b.c".into())),
            ("5 = a", Near::Token("5".into())),
            ("a = (x)", Near::Token("(".into())),
        ] {
            assert_eq!(one(line), Err(near), "{line}");
        }
        let lines = parse("ok = 1\nbroken\nfine = 2\n");
        assert_eq!(
            lines.iter().map(|l| (l.number, l.content.is_ok())).collect::<Vec<_>>(),
            [(1, true), (2, false), (3, true)]
        );
        assert!(Near::End.message("f", 2).ends_with("line 2, near end of line"));
    }
}
