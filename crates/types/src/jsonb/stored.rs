//! jsonb in a row: a tag, then the value; counts and lengths are four bytes, little-endian.
//!
//! ```text
//! 0 null   1 false   2 true   3 number: length, numeric's bytes   4 string: length, bytes
//! 5 array: count, items       6 object: count, (length, key, value)…
//! ```

use super::Json;
use crate::datum::{Numeric, Text};

fn put_u32(v: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&(v as u32).to_le_bytes());
}

fn take<'a>(bytes: &mut &'a [u8], n: usize) -> Option<&'a [u8]> {
    let (head, rest) = bytes.split_at_checked(n)?;
    *bytes = rest;
    Some(head)
}

fn take_u32(bytes: &mut &[u8]) -> Option<usize> {
    Some(u32::from_le_bytes(take(bytes, 4)?.try_into().ok()?) as usize)
}

fn take_text(bytes: &mut &[u8]) -> Option<Text> {
    let len = take_u32(bytes)?;
    Some(Text::from(std::str::from_utf8(take(bytes, len)?).ok()?))
}

impl Json {
    /// Appends the bytes that stand in a row.
    pub(crate) fn store(&self, out: &mut Vec<u8>) {
        match self {
            Json::Null => out.push(0),
            Json::Bool(b) => out.push(1 + u8::from(*b)),
            Json::Number(n) => {
                out.push(3);
                let start = out.len();
                put_u32(0, out);
                n.store(out);
                let len = (out.len() - start - 4) as u32;
                out[start..start + 4].copy_from_slice(&len.to_le_bytes());
            }
            Json::String(s) => {
                out.push(4);
                put_u32(s.len(), out);
                out.extend_from_slice(s.as_bytes());
            }
            Json::Array(items) => {
                out.push(5);
                put_u32(items.len(), out);
                items.iter().for_each(|i| i.store(out));
            }
            Json::Object(members) => {
                out.push(6);
                put_u32(members.len(), out);
                for (key, value) in members.iter() {
                    put_u32(key.len(), out);
                    out.extend_from_slice(key.as_bytes());
                    value.store(out);
                }
            }
        }
    }

    /// Reads a value off the front of a row's bytes; None when they are damaged.
    pub(crate) fn load(bytes: &mut &[u8]) -> Option<Json> {
        Json::load_at(bytes, 0)
    }

    fn load_at(bytes: &mut &[u8], depth: usize) -> Option<Json> {
        if depth > super::MAX_DEPTH + 1 {
            return None;
        }
        Some(match take(bytes, 1)?[0] {
            0 => Json::Null,
            1 => Json::Bool(false),
            2 => Json::Bool(true),
            3 => {
                let len = take_u32(bytes)?;
                Json::Number(Numeric::load(take(bytes, len)?)?)
            }
            4 => Json::String(take_text(bytes)?),
            5 => {
                let count = take_u32(bytes)?;
                let mut items = Vec::with_capacity(count.min(bytes.len()));
                for _ in 0..count {
                    items.push(Json::load_at(bytes, depth + 1)?);
                }
                Json::Array(items.into())
            }
            6 => {
                let count = take_u32(bytes)?;
                let mut members = Vec::with_capacity(count.min(bytes.len()));
                for _ in 0..count {
                    members.push((take_text(bytes)?, Json::load_at(bytes, depth + 1)?));
                }
                Json::Object(members.into())
            }
            _ => return None,
        })
    }
}
