//! jsonb: JSON as a value. Keys of an object are sorted (shorter ones first, then by bytes) and
//! occur once; numbers are numerics and keep their scale; blanks are not kept.
//!
//! Arrays and objects are shared by reference count, so that taking a part of a document copies
//! nothing. In a row a document stands in a form of its own (see [`Json::store`]), which is read
//! without parsing numbers or escapes.

mod build;
mod change;
mod order;
pub mod path;
mod stored;

pub use build::{from_datum, write_datum};
pub use change::{Change, assign_path, delete_path, set_path};
pub(crate) use order::{compare, hash, key};

use std::sync::Arc;

use base::{Result, err};

use crate::bulk;
use crate::datum::{Numeric, Text};
use crate::json;

/// Nesting of arrays and objects, at most: what walks a document is recursive, and a statement's
/// stack has one megabyte.
pub const MAX_DEPTH: usize = 1000;

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    /// null.
    Null,
    /// true, false.
    Bool(bool),
    /// A number.
    Number(Numeric),
    /// A string.
    String(Text),
    /// An array.
    Array(Arc<[Json]>),
    /// An object, in the order of [`key_order`].
    Object(Arc<[(Text, Json)]>),
}

/// The order of an object's keys.
pub fn key_order(a: &str, b: &str) -> std::cmp::Ordering {
    a.len().cmp(&b.len()).then_with(|| a.as_bytes().cmp(b.as_bytes()))
}

#[cold]
pub(crate) fn too_deep() -> base::Error {
    err!(STATEMENT_TOO_COMPLEX, "stack depth limit exceeded")
}

impl Json {
    /// Reads JSON text.
    ///
    /// # Errors
    /// `22P02`, `22P05`, and `54001` for what is nested too deeply.
    pub fn parse(text: &str) -> Result<Json> {
        json::check(text)?;
        let mut reader = Reader { text, at: 0 };
        reader.value(0)
    }

    /// An object of these members; of members with one key the last counts.
    pub fn object(mut members: Vec<(Text, Json)>) -> Json {
        members
            .sort_by(sched::unhurried(|a: &(Text, Json), b: &(Text, Json)| key_order(&a.0, &b.0)));
        let mut kept: Vec<(Text, Json)> = Vec::with_capacity(members.len());
        for member in members {
            match kept.last_mut() {
                Some(last) if last.0 == member.0 => *last = member,
                _ => kept.push(member),
            }
        }
        Json::Object(kept.into())
    }

    /// An array of these values.
    pub fn array(items: Vec<Json>) -> Json {
        Json::Array(items.into())
    }

    /// A string.
    pub fn string(text: &str) -> Json {
        Json::String(Text::from(text))
    }

    /// Whether it is neither array nor object.
    pub fn is_scalar(&self) -> bool {
        !matches!(self, Json::Array(_) | Json::Object(_))
    }

    /// An object's member.
    pub fn member(&self, key: &str) -> Option<&Json> {
        let Json::Object(members) = self else { return None };
        let at = members.binary_search_by(|(k, _)| key_order(k, key)).ok()?;
        Some(&members[at].1)
    }

    /// An array's item, counted from its end when negative.
    pub fn item(&self, index: i64) -> Option<&Json> {
        let Json::Array(items) = self else { return None };
        let at = if index < 0 { index + items.len() as i64 } else { index };
        items.get(usize::try_from(at).ok()?)
    }

    /// The value that a path of keys and positions leads to.
    pub fn at_path<'a>(&self, path: impl Iterator<Item = &'a str>) -> Option<&Json> {
        let mut here = self;
        for step in path {
            here = match here {
                Json::Object(_) => here.member(step)?,
                Json::Array(_) => here.item(step.trim().parse::<i32>().ok()?.into())?,
                _ => return None,
            };
        }
        Some(here)
    }

    /// `jsonb_typeof`.
    pub fn type_name(&self) -> &'static str {
        match self {
            Json::Null => "null",
            Json::Bool(_) => "boolean",
            Json::Number(_) => "number",
            Json::String(_) => "string",
            Json::Array(_) => "array",
            Json::Object(_) => "object",
        }
    }

    /// Appends its text: `{"a": [1, 2]}`.
    ///
    /// # Errors
    /// `53200`, interrupts.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        match self {
            Json::Null => out.extend_from_slice(b"null"),
            Json::Bool(true) => out.extend_from_slice(b"true"),
            Json::Bool(false) => out.extend_from_slice(b"false"),
            Json::Number(n) => n.write(out),
            Json::String(s) => json::put_string(s, out)?,
            Json::Array(items) => {
                out.push(b'[');
                for (i, item) in items.iter().enumerate() {
                    sched::check_interrupts()?;
                    if i > 0 {
                        out.extend_from_slice(b", ");
                    }
                    item.write(out)?;
                }
                out.push(b']');
            }
            Json::Object(members) => {
                out.push(b'{');
                for (i, (key, value)) in members.iter().enumerate() {
                    sched::check_interrupts()?;
                    if i > 0 {
                        out.extend_from_slice(b", ");
                    }
                    json::put_string(key, out)?;
                    out.extend_from_slice(b": ");
                    value.write(out)?;
                }
                out.push(b'}');
            }
        }
        Ok(())
    }

    /// Its text.
    ///
    /// # Errors
    /// `53200`, interrupts.
    pub fn to_text(&self) -> Result<Text> {
        let mut out = Vec::new();
        self.write(&mut out)?;
        bulk::text(out)
    }

    /// The result of `->>`: a string's own text, NULL for null, otherwise the JSON text.
    ///
    /// # Errors
    /// `53200`, interrupts.
    pub fn to_plain_text(&self) -> Result<Option<Text>> {
        Ok(match self {
            Json::Null => None,
            Json::String(s) => Some(s.clone()),
            other => Some(other.to_text()?),
        })
    }

    /// Appends its text on several lines, indented by four blanks a level.
    ///
    /// # Errors
    /// `54000` beyond 1 GB, `53200`, interrupts.
    pub fn write_pretty(&self, level: usize, out: &mut Vec<u8>) -> Result<()> {
        let line = |level: usize, out: &mut Vec<u8>| {
            sched::check_interrupts()?;
            bulk::push_bytes(out, b"\n")?;
            out.resize(out.len() + 4 * level, b' ');
            Ok::<(), base::Error>(())
        };
        match self {
            Json::Array(items) => {
                out.push(b'[');
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        out.push(b',');
                    }
                    line(level + 1, out)?;
                    item.write_pretty(level + 1, out)?;
                }
                line(level, out)?;
                out.push(b']');
            }
            Json::Object(members) => {
                out.push(b'{');
                for (i, (key, value)) in members.iter().enumerate() {
                    if i > 0 {
                        out.push(b',');
                    }
                    line(level + 1, out)?;
                    json::put_string(key, out)?;
                    out.extend_from_slice(b": ");
                    value.write_pretty(level + 1, out)?;
                }
                line(level, out)?;
                out.push(b'}');
            }
            scalar => scalar.write(out)?,
        }
        Ok(())
    }

    /// Without the members whose value is null.
    ///
    /// # Errors
    /// Interrupts.
    pub fn strip_nulls(&self) -> Result<Json> {
        sched::check_interrupts()?;
        Ok(match self {
            Json::Array(items) => {
                Json::Array(items.iter().map(Json::strip_nulls).collect::<Result<_>>()?)
            }
            Json::Object(members) => Json::Object(
                members
                    .iter()
                    .filter(|(_, v)| *v != Json::Null)
                    .map(|(k, v)| Ok((k.clone(), v.strip_nulls()?)))
                    .collect::<Result<_>>()?,
            ),
            scalar => scalar.clone(),
        })
    }

    /// Bytes of its text or of its own items and members.
    pub fn bulk(&self) -> usize {
        match self {
            Json::String(s) => s.len(),
            Json::Array(items) => size_of_val(&**items),
            Json::Object(members) => size_of_val(&**members),
            _ => 0,
        }
    }

    /// Bytes held (about).
    pub fn heap_bytes(&self) -> usize {
        match self {
            Json::String(s) if s.len() > 15 => s.len() + 16,
            Json::Number(n) => n.heap_bytes(),
            Json::Array(items) => {
                16 + items.iter().map(|i| size_of::<Json>() + i.heap_bytes()).sum::<usize>()
            }
            Json::Object(members) => {
                let each = |(k, v): &(Text, Json)| 40 + v.heap_bytes() + k.len().saturating_sub(15);
                16 + members.iter().map(each).sum::<usize>()
            }
            _ => 0,
        }
    }
}

/// Reads text that [`json::check`] has found good.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or(0)
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\n' | b'\r') {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Result<Json> {
        if depth > MAX_DEPTH {
            return Err(too_deep());
        }
        sched::check_interrupts()?;
        self.skip_blanks();
        Ok(match self.peek() {
            b'n' => self.word(4, Json::Null),
            b't' => self.word(4, Json::Bool(true)),
            b'f' => self.word(5, Json::Bool(false)),
            b'"' => Json::String(self.string()?),
            b'[' => {
                let mut items = Vec::new();
                self.at += 1;
                self.skip_blanks();
                while self.peek() != b']' {
                    items.push(self.value(depth + 1)?);
                    self.separator();
                }
                self.at += 1;
                bulk::ask(size_of_val(items.as_slice()))?;
                Json::array(items)
            }
            b'{' => {
                let mut members = Vec::new();
                self.at += 1;
                self.skip_blanks();
                while self.peek() != b'}' {
                    let key = self.string()?;
                    self.skip_blanks();
                    self.at += 1;
                    members.push((key, self.value(depth + 1)?));
                    self.separator();
                }
                self.at += 1;
                bulk::ask(2 * size_of_val(members.as_slice()))?;
                Json::object(members)
            }
            _ => {
                let len = self.text[self.at..]
                    .bytes()
                    .take_while(|b| matches!(b, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'))
                    .count();
                let digits = &self.text[self.at..self.at + len];
                self.at += len;
                Json::Number(Numeric::parse(digits)?)
            }
        })
    }

    fn word(&mut self, len: usize, value: Json) -> Json {
        self.at += len;
        value
    }

    /// Steps over blanks and a comma, up to the next value or the closing bracket.
    fn separator(&mut self) {
        self.skip_blanks();
        if self.peek() == b',' {
            self.at += 1;
            self.skip_blanks();
        }
    }

    fn string(&mut self) -> Result<Text> {
        let (text, used) = json::string_at(self.text, self.at)?;
        self.at += used;
        Ok(text)
    }
}
