//! Order, hash, keys and containment of jsonb values.
//!
//! Object > array > boolean > number > string > null. Of two arrays or objects the one with more
//! items is greater; then their items decide, in storage order. A scalar document compares as an
//! array of one item that is below any true array of one item.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use super::Json;

fn rank(value: &Json) -> u8 {
    match value {
        Json::Null => 1,
        Json::String(_) => 2,
        Json::Number(_) => 3,
        Json::Bool(_) => 4,
        Json::Array(_) => 5,
        Json::Object(_) => 6,
    }
}

fn compare_inner(a: &Json, b: &Json) -> Ordering {
    match (a, b) {
        (Json::Bool(x), Json::Bool(y)) => x.cmp(y),
        (Json::Number(x), Json::Number(y)) => x.compare(y),
        (Json::String(x), Json::String(y)) => x.as_bytes().cmp(y.as_bytes()),
        (Json::Array(x), Json::Array(y)) => x.len().cmp(&y.len()).then_with(|| {
            let pairs = x.iter().zip(y.iter());
            pairs.map(|(i, j)| compare_inner(i, j)).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
        }),
        (Json::Object(x), Json::Object(y)) => x.len().cmp(&y.len()).then_with(|| {
            let order = |((k, v), (l, w)): (&(_, Json), &(_, Json))| {
                let (k, l): (&crate::Text, &crate::Text) = (k, l);
                k.as_bytes().cmp(l.as_bytes()).then_with(|| compare_inner(v, w))
            };
            x.iter().zip(y.iter()).map(order).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
        }),
        _ => rank(a).cmp(&rank(b)),
    }
}

/// B-tree order of two documents.
pub(crate) fn compare(a: &Json, b: &Json) -> Ordering {
    match (a.is_scalar(), b.is_scalar(), a, b) {
        (true, false, _, Json::Array(items)) => 1.cmp(&items.len()).then(Ordering::Less),
        (false, true, Json::Array(items), _) => items.len().cmp(&1).then(Ordering::Greater),
        _ => compare_inner(a, b),
    }
}

/// Hash that agrees with [`compare`].
pub(crate) fn hash(value: &Json, state: &mut impl Hasher) {
    state.write_u8(rank(value));
    match value {
        Json::Null => {}
        Json::Bool(b) => state.write_u8(u8::from(*b)),
        Json::Number(n) => n.hash_value(state),
        Json::String(s) => s.as_bytes().hash(state),
        Json::Array(items) => items.iter().for_each(|i| hash(i, state)),
        Json::Object(members) => members.iter().for_each(|(k, v)| {
            k.as_bytes().hash(state);
            hash(v, state);
        }),
    }
}

/// Appends order-preserving bytes of a document; `text` appends a string's.
pub(crate) fn key(value: &Json, text: fn(&[u8], &mut Vec<u8>), out: &mut Vec<u8>) {
    if value.is_scalar() {
        out.push(5);
        out.extend_from_slice(&1u32.to_be_bytes());
        out.push(0);
        return key_inner(value, text, out);
    }
    if let Json::Array(items) = value {
        out.push(5);
        out.extend_from_slice(&(items.len() as u32).to_be_bytes());
        out.push(1);
        items.iter().for_each(|i| key_inner(i, text, out));
    } else {
        key_inner(value, text, out);
    }
}

fn key_inner(value: &Json, text: fn(&[u8], &mut Vec<u8>), out: &mut Vec<u8>) {
    out.push(rank(value));
    match value {
        Json::Null => {}
        Json::Bool(b) => out.push(u8::from(*b)),
        Json::Number(n) => n.key(out),
        Json::String(s) => text(s.as_bytes(), out),
        Json::Array(items) => {
            out.extend_from_slice(&(items.len() as u32).to_be_bytes());
            items.iter().for_each(|i| key_inner(i, text, out));
        }
        Json::Object(members) => {
            out.extend_from_slice(&(members.len() as u32).to_be_bytes());
            members.iter().for_each(|(k, v)| {
                text(k.as_bytes(), out);
                key_inner(v, text, out);
            });
        }
    }
}

impl Json {
    /// Equality of values (1 equals 1.0).
    pub fn same(&self, other: &Json) -> bool {
        compare(self, other).is_eq()
    }

    /// `@>`: whether everything in `part` is here, at the same place; an array also contains a
    /// scalar that is one of its items.
    pub fn contains(&self, part: &Json) -> bool {
        match (self, part) {
            (Json::Array(items), scalar) if scalar.is_scalar() => {
                items.iter().any(|i| i.is_scalar() && i.same(scalar))
            }
            _ => contains_inner(self, part),
        }
    }

    /// `?`: whether a string is a key of the object, an item of the array, or the value itself.
    pub fn has_key(&self, key: &str) -> bool {
        match self {
            Json::Object(_) => self.member(key).is_some(),
            Json::Array(items) => items.iter().any(|i| matches!(i, Json::String(s) if s == key)),
            Json::String(s) => s == key,
            _ => false,
        }
    }
}

fn contains_inner(whole: &Json, part: &Json) -> bool {
    match (whole, part) {
        (Json::Object(_), Json::Object(members)) => members
            .iter()
            .all(|(k, v)| whole.member(k).is_some_and(|found| contains_inner(found, v))),
        (Json::Array(items), Json::Array(parts)) => {
            parts.iter().all(|p| items.iter().any(|i| contains_inner(i, p)))
        }
        (a, b) if a.is_scalar() && b.is_scalar() => a.same(b),
        _ => false,
    }
}
