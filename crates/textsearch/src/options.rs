//! Options of dictionaries and of headlines: `name = value, name = 'value'`.

use base::{Result, err};

/// Names in lower case with their values, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options(Vec<(String, String)>);

impl Options {
    /// Reads a list.
    ///
    /// # Errors
    /// `42601`.
    pub fn parse(text: &str) -> Result<Options> {
        let invalid = || err!(SYNTAX_ERROR, "invalid parameter list format: \"{text}\"");
        let chars: Vec<char> = text.chars().collect();
        let mut at = 0;
        let mut out = Vec::new();
        let blanks = |at: &mut usize| {
            while chars.get(*at).is_some_and(|c| c.is_whitespace()) {
                *at += 1;
            }
        };
        loop {
            while chars.get(at).is_some_and(|c| c.is_whitespace() || *c == ',') {
                at += 1;
            }
            let Some(first) = chars.get(at) else { return Ok(Options(out)) };
            let name = if *first == '"' {
                quoted(&chars, &mut at, '"').ok_or_else(invalid)?
            } else {
                let start = at;
                while chars.get(at).is_some_and(|c| !c.is_whitespace() && *c != '=') {
                    at += 1;
                }
                chars[start..at].iter().collect::<String>().to_lowercase()
            };
            blanks(&mut at);
            if name.is_empty() || chars.get(at) != Some(&'=') {
                return Err(invalid());
            }
            at += 1;
            blanks(&mut at);
            let value = match chars.get(at) {
                Some('\'') => quoted(&chars, &mut at, '\'').ok_or_else(invalid)?,
                Some('E' | 'e') if chars.get(at + 1) == Some(&'\'') => {
                    at += 1;
                    quoted(&chars, &mut at, '\'').ok_or_else(invalid)?
                }
                Some('"') => quoted(&chars, &mut at, '"').ok_or_else(invalid)?,
                Some(_) => {
                    let start = at;
                    while chars.get(at).is_some_and(|c| !c.is_whitespace() && *c != ',') {
                        at += 1;
                    }
                    chars[start..at].iter().collect()
                }
                None => return Err(invalid()),
            };
            out.push((name, value));
        }
    }

    /// Of names and values.
    pub fn of(list: Vec<(String, String)>) -> Options {
        Options(list)
    }

    /// In order; names are in lower case.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(n, v)| (n.as_str(), v.as_str()))
    }
}

/// A text in quotes; doubled ones stand for one, and a backslash takes the next character as it is.
fn quoted(chars: &[char], at: &mut usize, quote: char) -> Option<String> {
    let mut out = String::new();
    *at += 1;
    loop {
        let c = *chars.get(*at)?;
        *at += 1;
        if c == quote {
            if chars.get(*at) != Some(&quote) {
                return Some(out);
            }
            *at += 1;
        } else if c == '\\' && chars.get(*at) == Some(&'\\') {
            *at += 1;
        }
        out.push(c);
    }
}

/// A truth value of an option.
///
/// # Errors
/// `42601`.
pub fn flag(name: &str, value: &str) -> Result<bool> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "on" | "1" | "t" | "yes" | "y" => Ok(true),
        "false" | "off" | "0" | "f" | "no" | "n" => Ok(false),
        _ => Err(err!(SYNTAX_ERROR, "{name} requires a Boolean value")),
    }
}
