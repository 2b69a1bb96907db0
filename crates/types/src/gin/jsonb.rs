//! `jsonb_ops`: documents by their object keys and their values. `jsonb_path_ops`: by their values, each with
//! the way to it.

use std::sync::Arc;

use base::ternary::Mode;
use base::{Error, Result};

use super::{GinClass, GinQuery, QueryKey, all, any, doubted, jsonpath};
use crate::datum::{Datum, Numeric};
use crate::jsonb::Json;
use crate::key::{self, KeyOrder};
use crate::oids;

/// Strategy numbers.
const CONTAINS: u16 = 7;
const EXISTS: u16 = 9;
const EXISTS_ANY: u16 = 10;
const EXISTS_ALL: u16 = 11;
pub(super) const PATH_EXISTS: u16 = 15;
pub(super) const PATH_MATCHES: u16 = 16;

/// The byte that begins a key of `jsonb_ops`.
const KEY: u8 = 1;
const NULL: u8 = 2;
const BOOL: u8 = 3;
const NUMBER: u8 = 4;
const STRING: u8 = 5;
/// Set when the rest is a hash.
const HASHED: u8 = 0x10;
/// Texts that are longer are hashed.
const LONGEST: usize = 125;

fn hash(seed: u64, bytes: &[u8]) -> u64 {
    const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut hash = seed ^ (bytes.len() as u64).wrapping_mul(MULTIPLIER);
    for byte in bytes {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
    }
    hash = (hash ^ hash >> 32).wrapping_mul(MULTIPLIER);
    hash ^ hash >> 29
}

fn text_key(kind: u8, text: &str) -> Vec<u8> {
    if text.len() > LONGEST {
        let mut key = vec![kind | HASHED];
        key.extend_from_slice(&hash(0, text.as_bytes()).to_be_bytes());
        return key;
    }
    let mut key = Vec::with_capacity(text.len() + 1);
    key.push(kind);
    key.extend_from_slice(text.as_bytes());
    key
}

fn number_key(number: &Numeric) -> Result<Vec<u8>> {
    let mut key = vec![NUMBER];
    key::encode(oids::NUMERIC, &Datum::Numeric(number.clone()), KeyOrder::default(), &mut key)?;
    if key.len() > LONGEST {
        let hashed = hash(0, &key[1..]);
        key = vec![NUMBER | HASHED];
        key.extend_from_slice(&hashed.to_be_bytes());
    }
    Ok(key)
}

/// The key of a name: of an object's member, or of a string that is an item of an array.
pub(super) fn name_key(name: &str) -> Vec<u8> {
    text_key(KEY, name)
}

/// The key of a value that is no array and no object, as an object's member.
pub(super) fn scalar_key(value: &Json) -> Result<Vec<u8>> {
    Ok(match value {
        Json::Null => vec![NULL],
        Json::Bool(b) => vec![BOOL, u8::from(*b)],
        Json::Number(n) => number_key(n)?,
        Json::String(s) => text_key(STRING, s),
        Json::Array(_) | Json::Object(_) => return Err(Error::internal("no scalar")),
    })
}

fn collect(value: &Json, is_member: bool, keys: &mut Vec<Option<Vec<u8>>>) -> Result<()> {
    sched::check_stack()?;
    match value {
        Json::Array(items) => items.iter().try_for_each(|i| collect(i, false, keys)),
        Json::Object(members) => members.iter().try_for_each(|(name, value)| {
            keys.push(Some(name_key(name)));
            collect(value, true, keys)
        }),
        // An item's string is found as a name, too.
        Json::String(s) if !is_member => {
            keys.push(Some(name_key(s)));
            Ok(())
        }
        scalar => {
            keys.push(Some(scalar_key(scalar)?));
            Ok(())
        }
    }
}

fn document(value: &Datum) -> Result<&Json> {
    match value {
        Datum::Jsonb(json) => Ok(json),
        _ => Err(Error::internal("a class of jsonb over what is none")),
    }
}

fn distinct(keys: &mut Vec<Option<Vec<u8>>>) {
    keys.sort_unstable();
    keys.dedup();
}

/// All of these keys, and then the document is asked.
fn containing(keys: Vec<Option<Vec<u8>>>) -> GinQuery {
    if keys.is_empty() {
        return GinQuery::everything();
    }
    let keys = keys.into_iter().flatten().map(QueryKey::Key).collect();
    GinQuery { keys, mode: Mode::Default, check: Arc::new(|p| doubted(all(p))) }
}

pub(super) struct JsonbOps;

impl GinClass for JsonbOps {
    fn value_keys(&self, value: &Datum, keys: &mut Vec<Option<Vec<u8>>>) -> Result<()> {
        collect(document(value)?, false, keys)?;
        distinct(keys);
        Ok(())
    }

    fn query(&self, strategy: u16, value: &Datum) -> Result<GinQuery> {
        match (strategy, value) {
            (CONTAINS, value) => {
                let mut keys = Vec::new();
                self.value_keys(value, &mut keys)?;
                Ok(containing(keys))
            }
            (EXISTS, Datum::Text(name)) => Ok(containing(vec![Some(name_key(name))])),
            (EXISTS_ANY | EXISTS_ALL, Datum::Array(names)) => {
                let mut keys = Vec::new();
                for name in names.items.iter().filter(|name| !name.is_null()) {
                    keys.push(Some(name_key(name.as_str())));
                }
                distinct(&mut keys);
                if strategy == EXISTS_ALL {
                    return Ok(containing(keys));
                }
                let keys = keys.into_iter().flatten().map(QueryKey::Key).collect();
                let check = Arc::new(|p: &[_]| doubted(any(p)));
                Ok(GinQuery { keys, mode: Mode::Default, check })
            }
            (PATH_EXISTS | PATH_MATCHES, Datum::Jsonpath(path)) => {
                jsonpath::query(path, strategy == PATH_EXISTS, false)
            }
            _ => Err(Error::internal("an unknown strategy of jsonb_ops")),
        }
    }
}

/// The way to a value, as a number.
#[derive(Clone, Copy)]
pub(super) struct Way(u64);

impl Way {
    /// To the whole document.
    pub(super) fn root() -> Way {
        Way(0)
    }

    /// On to an object's member.
    pub(super) fn member(self, name: &str) -> Way {
        Way(hash(self.0, name.as_bytes()))
    }

    /// The key of a value there.
    pub(super) fn key(self, scalar: &Json) -> Result<Vec<u8>> {
        Ok(hash(self.0 ^ 1, &scalar_key(scalar)?).to_be_bytes().to_vec())
    }
}

fn collect_ways(value: &Json, way: Way, keys: &mut Vec<Option<Vec<u8>>>) -> Result<()> {
    sched::check_stack()?;
    match value {
        Json::Array(items) => items.iter().try_for_each(|i| collect_ways(i, way, keys)),
        Json::Object(members) => {
            members.iter().try_for_each(|(name, value)| collect_ways(value, way.member(name), keys))
        }
        scalar => {
            keys.push(Some(way.key(scalar)?));
            Ok(())
        }
    }
}

pub(super) struct JsonbPathOps;

impl GinClass for JsonbPathOps {
    fn value_keys(&self, value: &Datum, keys: &mut Vec<Option<Vec<u8>>>) -> Result<()> {
        collect_ways(document(value)?, Way::root(), keys)?;
        distinct(keys);
        Ok(())
    }

    fn query(&self, strategy: u16, value: &Datum) -> Result<GinQuery> {
        match (strategy, value) {
            (CONTAINS, value) => {
                let mut keys = Vec::new();
                self.value_keys(value, &mut keys)?;
                Ok(containing(keys))
            }
            (PATH_EXISTS | PATH_MATCHES, Datum::Jsonpath(path)) => {
                jsonpath::query(path, strategy == PATH_EXISTS, true)
            }
            _ => Err(Error::internal("an unknown strategy of jsonb_path_ops")),
        }
    }
}
