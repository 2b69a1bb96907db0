//! The name of a type as SQL writes it, for `regtype` at run time, where no parser of SQL can be asked.
//!
//! The words of the standard (`double precision`, `timestamp (3) with time zone`) stand for types of
//! `pg_catalog`; anything else is a name, perhaps qualified. Lengths and precisions are read over.

use base::{Error, Result, err};

use super::reg::quoted_part;

/// The parts of a type name that [`parse`] found.
#[derive(Debug, PartialEq)]
pub(super) struct TypeText {
    /// The name's parts.
    pub parts: Vec<String>,
    /// Brackets or ARRAY follow.
    pub array: bool,
    /// Words of the standard: the name is one of `pg_catalog`, whatever the search path says.
    pub standard: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Word(String),
    Quoted(String),
    Sign(char),
    Number(String),
}

struct Tokens<'a> {
    text: &'a str,
    all: Vec<(usize, Token)>,
    at: usize,
}

/// Words of the standard that are types by themselves, with their names in `pg_catalog`.
const WORDS: [(&str, &str); 16] = [
    ("bigint", "int8"),
    ("bit", "bit"),
    ("boolean", "bool"),
    ("char", "bpchar"),
    ("character", "bpchar"),
    ("dec", "numeric"),
    ("decimal", "numeric"),
    ("float", "float8"),
    ("int", "int4"),
    ("integer", "int4"),
    ("interval", "interval"),
    ("nchar", "bpchar"),
    ("numeric", "numeric"),
    ("real", "float4"),
    ("smallint", "int2"),
    ("varchar", "varchar"),
];

/// Reads the name of a type.
///
/// # Errors
/// `42601`.
pub(super) fn parse(text: &str) -> Result<TypeText> {
    if text.trim().is_empty() {
        return Err(err!(SYNTAX_ERROR, "invalid type name \"{text}\""));
    }
    let mut tokens = Tokens { text, all: tokens(text)?, at: 0 };
    let (parts, standard) = match tokens.standard()? {
        Some(name) => (vec![name.to_owned()], true),
        None => (tokens.name()?, false),
    };
    let array = tokens.array()?;
    match tokens.all.get(tokens.at) {
        None => Ok(TypeText { parts, array, standard }),
        Some(_) => Err(tokens.error()),
    }
}

fn tokens(text: &str) -> Result<Vec<(usize, Token)>> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let at = text.len() - rest.len();
        if c.is_whitespace() {
            rest = &rest[c.len_utf8()..];
        } else if c == '"' {
            let (name, after) = quoted_part(&rest[1..]).ok_or_else(|| {
                err!(SYNTAX_ERROR, "unterminated quoted identifier at or near \"{rest}\"")
                    .context(format!("invalid type name \"{text}\""))
            })?;
            out.push((at, Token::Quoted(name)));
            rest = after;
        } else {
            let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
            let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            let token = match end {
                0 => Token::Sign(c),
                _ if c.is_ascii_digit() => Token::Number(rest[..end].to_owned()),
                _ => Token::Word(rest[..end].to_lowercase()),
            };
            out.push((at, token));
            rest = &rest[end.max(if end == 0 { c.len_utf8() } else { 0 })..];
        }
    }
    Ok(out)
}

impl Tokens<'_> {
    fn error(&self) -> Error {
        let error = match self.all.get(self.at) {
            Some((at, token)) => {
                let near = match token {
                    Token::Word(w) => w.clone(),
                    Token::Quoted(w) => format!("\"{w}\""),
                    Token::Sign(c) => c.to_string(),
                    Token::Number(n) => n.clone(),
                };
                let _ = at;
                err!(SYNTAX_ERROR, "syntax error at or near \"{near}\"")
            }
            None => err!(SYNTAX_ERROR, "syntax error at end of input"),
        };
        error.context(format!("invalid type name \"{}\"", self.text))
    }

    fn peek(&self) -> Option<&Token> {
        self.all.get(self.at).map(|(_, token)| token)
    }

    fn word(&mut self, wanted: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Word(w)) if w == wanted);
        self.at += usize::from(found);
        found
    }

    fn sign(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(&Token::Sign(wanted));
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, found: bool) -> Result<()> {
        if found { Ok(()) } else { Err(self.error()) }
    }

    /// `(3)`, `(10, 2)`: the first number.
    fn modifiers(&mut self) -> Result<Option<u32>> {
        if !self.sign('(') {
            return Ok(None);
        }
        let mut first = None;
        loop {
            let _ = self.sign('-');
            match self.peek() {
                Some(Token::Number(n)) => first = first.or(Some(n.parse().unwrap_or(u32::MAX))),
                Some(Token::Word(_) | Token::Quoted(_)) => {}
                _ => return Err(self.error()),
            }
            self.at += 1;
            if !self.sign(',') {
                break;
            }
        }
        let closed = self.sign(')');
        self.expect(closed)?;
        Ok(first)
    }

    /// A type in words of the standard: its name in `pg_catalog`.
    fn standard(&mut self) -> Result<Option<&'static str>> {
        let Some(Token::Word(word)) = self.peek().cloned() else { return Ok(None) };
        // A qualified name is none of the standard.
        if self.all.get(self.at + 1).is_some_and(|(_, t)| *t == Token::Sign('.')) {
            return Ok(None);
        }
        let begin = self.at;
        self.at += 1;
        Ok(Some(match word.as_str() {
            "double" => {
                let found = self.word("precision");
                self.expect(found)?;
                "float8"
            }
            "time" | "timestamp" => {
                self.modifiers()?;
                let with = self.word("with");
                if with || self.word("without") {
                    let found = self.word("time") && self.word("zone");
                    self.expect(found)?;
                }
                match (word.as_str(), with) {
                    ("time", true) => "timetz",
                    ("time", false) => "time",
                    (_, true) => "timestamptz",
                    (_, false) => "timestamp",
                }
            }
            "interval" => {
                self.modifiers()?;
                self.fields();
                self.modifiers()?;
                "interval"
            }
            "national" => {
                let found = self.word("character") || self.word("char");
                self.expect(found)?;
                self.varying("bpchar", "varchar")?
            }
            "character" | "char" | "nchar" => self.varying("bpchar", "varchar")?,
            "bit" => self.varying("bit", "varbit")?,
            "float" => match self.modifiers()? {
                Some(0) => {
                    return Err(err!(
                        INVALID_PARAMETER_VALUE,
                        "precision for type float must be at least 1 bit"
                    ));
                }
                Some(..=24) => "float4",
                Some(54..) => {
                    return Err(err!(
                        INVALID_PARAMETER_VALUE,
                        "precision for type float must be less than 54 bits"
                    ));
                }
                _ => "float8",
            },
            word => match WORDS.iter().find(|(w, _)| *w == word) {
                Some((_, name)) => {
                    self.modifiers()?;
                    name
                }
                None => {
                    self.at = begin;
                    return Ok(None);
                }
            },
        }))
    }

    fn varying(&mut self, plain: &'static str, varying: &'static str) -> Result<&'static str> {
        let name = if self.word("varying") { varying } else { plain };
        self.modifiers()?;
        Ok(name)
    }

    /// `DAY TO SECOND` and the like.
    fn fields(&mut self) {
        let unit = |t: &mut Self| {
            ["year", "month", "day", "hour", "minute", "second"].iter().any(|u| t.word(u))
        };
        if unit(self) && self.word("to") {
            unit(self);
        }
    }

    /// A name, perhaps qualified, perhaps with modifiers.
    fn name(&mut self) -> Result<Vec<String>> {
        let mut parts = Vec::new();
        loop {
            match self.peek().cloned() {
                Some(Token::Word(w) | Token::Quoted(w)) => parts.push(w),
                _ => return Err(self.error()),
            }
            self.at += 1;
            if !self.sign('.') {
                break;
            }
        }
        self.modifiers()?;
        Ok(parts)
    }

    /// `[]`, `[3][4]`, `ARRAY`, `ARRAY[3]`.
    fn array(&mut self) -> Result<bool> {
        let mut found = self.word("array");
        while self.sign('[') {
            if let Some(Token::Number(_)) = self.peek() {
                self.at += 1;
            }
            let closed = self.sign(']');
            self.expect(closed)?;
            found = true;
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_types_are_read_as_the_grammar_reads_them() {
        let name = |text: &str| {
            let found = parse(text).unwrap();
            format!("{}{}", found.parts.join("."), if found.array { "[]" } else { "" })
        };
        for (text, wanted) in [
            ("Timestamp (3) with time zone", "timestamptz"),
            ("time without time zone[]", "time[]"),
            ("character varying(10)[3][]", "varchar[]"),
            ("national char", "bpchar"),
            ("\"char\"", "char"),
            ("float(24)", "float4"),
            ("interval day to second(3)", "interval"),
            ("pg_catalog.\"Int4\" ARRAY", "pg_catalog.Int4[]"),
            ("dec(10, -2)", "numeric"),
        ] {
            assert_eq!(name(text), wanted, "{text}");
        }
        for text in ["int4 int4", "", "double", "a.", "int4[", "(", "\"a"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
