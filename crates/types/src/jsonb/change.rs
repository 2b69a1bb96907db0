//! New documents from old ones: `||`, `-`, `#-`, `jsonb_set`, `jsonb_insert`.

use base::{Result, err};

use super::Json;
use crate::datum::{Datum, Text};

/// What to do where a path ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Replace what is there; add it when `create`.
    Set {
        /// Add a member or item that is missing.
        create: bool,
    },
    /// Insert before or after an item, or as a new member.
    Insert {
        /// After the item.
        after: bool,
    },
    /// Remove.
    Delete,
}

impl Json {
    /// `||`.
    pub fn concat(&self, other: &Json) -> Json {
        let items = |j: &Json| match j {
            Json::Array(items) => items.to_vec(),
            other => vec![other.clone()],
        };
        match (self, other) {
            (Json::Object(a), Json::Object(b)) => {
                Json::object(a.iter().chain(b.iter()).cloned().collect())
            }
            _ => Json::array([items(self), items(other)].concat()),
        }
    }

    /// `- key` for several keys: members with these keys, or strings among an array's items.
    ///
    /// # Errors
    /// `22023` for a scalar.
    pub fn without_keys(&self, keys: &[&str]) -> Result<Json> {
        Ok(match self {
            Json::Object(members) => Json::Object(
                members.iter().filter(|(k, _)| !keys.contains(&k.as_str())).cloned().collect(),
            ),
            Json::Array(items) => {
                let gone = |i: &Json| matches!(i, Json::String(s) if keys.contains(&s.as_str()));
                Json::Array(items.iter().filter(|i| !gone(i)).cloned().collect())
            }
            _ => return Err(err!(INVALID_PARAMETER_VALUE, "cannot delete from scalar")),
        })
    }

    /// `- index`.
    ///
    /// # Errors
    /// `22023` for a scalar or an object.
    pub fn without_item(&self, index: i32) -> Result<Json> {
        match self {
            Json::Array(items) => {
                let at = if index < 0 { index as i64 + items.len() as i64 } else { index.into() };
                let keep = |(i, _): &(usize, &Json)| *i as i64 != at;
                Ok(Json::Array(
                    items.iter().enumerate().filter(keep).map(|(_, v)| v.clone()).collect(),
                ))
            }
            Json::Object(_) => {
                Err(err!(INVALID_PARAMETER_VALUE, "cannot delete from object using integer index"))
            }
            _ => Err(err!(INVALID_PARAMETER_VALUE, "cannot delete from scalar")),
        }
    }
}

/// `#-`.
///
/// # Errors
/// `22023` for a scalar; `22P02` where an array is entered by a word.
pub fn delete_path(target: &Json, path: &[Datum]) -> Result<Json> {
    if target.is_scalar() {
        return Err(err!(INVALID_PARAMETER_VALUE, "cannot delete path in scalar"));
    }
    if path.is_empty() || is_empty(target) {
        return Ok(target.clone());
    }
    step(target, path, 0, &Json::Null, Change::Delete)
}

/// `jsonb_set` and `jsonb_insert`.
///
/// # Errors
/// `22023` for a scalar or a key that exists already; `22P02` where an array is entered by a word;
/// `22004` for a NULL in the path.
pub fn set_path(target: &Json, path: &[Datum], value: &Json, change: Change) -> Result<Json> {
    if target.is_scalar() {
        return Err(err!(INVALID_PARAMETER_VALUE, "cannot set path in scalar"));
    }
    if path.is_empty() || (is_empty(target) && change == (Change::Set { create: false })) {
        return Ok(target.clone());
    }
    step(target, path, 0, value, change)
}

fn is_empty(j: &Json) -> bool {
    match j {
        Json::Array(items) => items.is_empty(),
        Json::Object(members) => members.is_empty(),
        _ => false,
    }
}

fn step(here: &Json, path: &[Datum], level: usize, value: &Json, change: Change) -> Result<Json> {
    if path[level].is_null() {
        return Err(err!(NULL_VALUE_NOT_ALLOWED, "path element at position {} is null", level + 1));
    }
    match here {
        Json::Object(members) => in_object(members, path, level, value, change),
        Json::Array(items) => in_array(items, path, level, value, change),
        scalar => Ok(scalar.clone()),
    }
}

fn in_object(
    members: &[(Text, Json)],
    path: &[Datum],
    level: usize,
    value: &Json,
    change: Change,
) -> Result<Json> {
    let key = path[level].as_str();
    let last = level + 1 == path.len();
    let mut out = members.to_vec();
    match members.iter().position(|(k, _)| k == key) {
        Some(at) if !last => out[at].1 = step(&members[at].1, path, level + 1, value, change)?,
        Some(at) => match change {
            Change::Set { .. } => out[at].1 = value.clone(),
            Change::Delete => {
                out.remove(at);
            }
            Change::Insert { .. } => {
                return Err(err!(INVALID_PARAMETER_VALUE, "cannot replace existing key")
                    .hint("Try using the function jsonb_set to replace key value."));
            }
        },
        None if last && creates(change) => {
            out.push((Text::from(key), value.clone()));
            return Ok(Json::object(out));
        }
        None => {}
    }
    Ok(Json::Object(out.into()))
}

fn creates(change: Change) -> bool {
    matches!(change, Change::Set { create: true } | Change::Insert { .. })
}

fn in_array(
    items: &[Json],
    path: &[Datum],
    level: usize,
    value: &Json,
    change: Change,
) -> Result<Json> {
    let word = path[level].as_str();
    let index = word.trim().parse::<i32>().map_err(|_| {
        err!(
            INVALID_TEXT_REPRESENTATION,
            "path element at position {} is not an integer: \"{word}\"",
            level + 1
        )
    })?;
    let len = items.len() as i64;
    let index = i64::from(index);
    let at = if index < 0 { index + len } else { index };
    let last = level + 1 == path.len();
    let mut out = items.to_vec();
    if (0..len).contains(&at) {
        let at = at as usize;
        match change {
            _ if !last => out[at] = step(&items[at], path, level + 1, value, change)?,
            Change::Set { .. } => out[at] = value.clone(),
            Change::Delete => {
                out.remove(at);
            }
            Change::Insert { after } => out.insert(at + usize::from(after), value.clone()),
        }
    } else if last && creates(change) {
        out.insert(if at < 0 { 0 } else { items.len() }, value.clone());
    }
    Ok(Json::Array(out.into()))
}
