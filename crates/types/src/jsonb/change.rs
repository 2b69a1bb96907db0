//! New documents from old ones: `||`, `-`, `#-`, `jsonb_set`, `jsonb_insert`.

use base::{Result, err};

use super::Json;
use crate::datum::{Datum, Text};

/// The change made where a path ends.
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

/// The document with what a path of subscripts leads to replaced (`j['a'][1] = value`). What is missing
/// on the way is made: an array where the next step is a number, else an object; an array that is too
/// short is filled with nulls.
///
/// # Errors
/// `22023` where a scalar is in the way, or a negative number leads to before an array's beginning;
/// `22P02` where an array is entered by a word; `22004` for a NULL in the path.
pub fn assign_path(target: Option<&Json>, path: &[Datum], value: &Json) -> Result<Json> {
    if path.iter().any(Datum::is_null) {
        return Err(err!(NULL_VALUE_NOT_ALLOWED, "jsonb subscript in assignment must not be null"));
    }
    match target {
        None => made_path(path, 0, value),
        Some(target) => assign_step(target, path, 0, value),
    }
}

fn out_of_range(level: usize, index: i64) -> base::Error {
    err!(INVALID_PARAMETER_VALUE, "path element at position {} is out of range: {index}", level + 1)
}

/// The value made for a path that leads to nothing yet.
fn made_path(path: &[Datum], level: usize, value: &Json) -> Result<Json> {
    sched::check_stack()?;
    let Some(step) = path.get(level) else { return Ok(value.clone()) };
    let Ok(index) = step.as_str().parse::<i32>() else {
        let inner = made_path(path, level + 1, value)?;
        return Ok(Json::object(vec![(step.as_str().into(), inner)]));
    };
    let Ok(index) = usize::try_from(index) else {
        return Err(out_of_range(level, index.into()));
    };
    let mut items = vec![Json::Null; index];
    items.push(made_path(path, level + 1, value)?);
    Ok(Json::array(items))
}

fn assign_step(here: &Json, path: &[Datum], level: usize, value: &Json) -> Result<Json> {
    sched::check_stack()?;
    let Some(step) = path.get(level) else { return Ok(value.clone()) };
    match here {
        Json::Object(members) => {
            let key = step.as_str();
            let mut out = members.to_vec();
            match members.iter().position(|(k, _)| k == key) {
                Some(at) => out[at].1 = assign_step(&members[at].1, path, level + 1, value)?,
                None => out.push((key.into(), made_path(path, level + 1, value)?)),
            }
            Ok(Json::object(out))
        }
        Json::Array(items) => {
            let word = step.as_str();
            let index = word.parse::<i32>().map_err(|_| {
                err!(
                    INVALID_TEXT_REPRESENTATION,
                    "path element at position {} is not an integer: \"{word}\"",
                    level + 1
                )
            })?;
            let from_end = if index < 0 { items.len() as i64 } else { 0 };
            let at = usize::try_from(from_end + i64::from(index))
                .map_err(|_| out_of_range(level, index.into()))?;
            let mut out = items.to_vec();
            match items.get(at) {
                Some(item) => out[at] = assign_step(item, path, level + 1, value)?,
                None => {
                    out.resize(at, Json::Null);
                    out.push(made_path(path, level + 1, value)?);
                }
            }
            Ok(Json::array(out))
        }
        _ => Err(err!(INVALID_PARAMETER_VALUE, "cannot replace existing key")
            .detail("The path assumes key is a composite object, but it is a scalar value.")),
    }
}
