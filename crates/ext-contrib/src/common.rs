//! Helpers that several extensions need.

use std::sync::Arc;

use base::ternary::{Mode, Ternary};
use base::{Error, Oid, Result};
use types::func::{Body, CallTypes};
use types::gin::{GinClass, QueryKey};
use types::gist::{GistClass, KeyCheck, signature};
use types::open::OpenType;
use types::{Datum, FormatContext};

/// Bodies of functions.
pub type Bodies = Vec<(&'static str, Body)>;

/// `n` random bytes of the system.
///
/// # Errors
/// When the system has none.
pub fn random(bytes: &mut [u8]) -> Result<()> {
    getrandom::fill(bytes)
        .map_err(|e| base::err!(INTERNAL_ERROR, "could not generate random values: {e}"))
}

/// Calls one of the server's functions by the key of its body's row and its arguments' number.
///
/// # Errors
/// The function's.
pub fn built_in(source: &str, args: &[Datum], cx: &FormatContext) -> Result<Datum> {
    let missing = || Error::internal(format!("there is no function {source}"));
    let row = catalog::system::facts::runs_with_source(source).ok_or_else(missing)?;
    let types = CallTypes { args: row.args, result: row.result };
    row.body.run(args, types, cx).unwrap_or_else(|| Err(missing()))
}

/// A value's text.
///
/// # Errors
/// Those of printing.
pub fn text_of(ty: Oid, value: &Datum, cx: &FormatContext) -> Result<String> {
    let mut out = Vec::new();
    types::io::output(ty, value, cx, &mut out)?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// The type of the keys of an index, of which there are no values.
pub struct KeyType;

impl OpenType for KeyType {
    fn input(&self, ty: Oid, _typmod: i32, _text: &str, _cx: &FormatContext) -> Result<Datum> {
        let name = types::io::format_type(ty, -1);
        Err(base::err!(FEATURE_NOT_SUPPORTED, "cannot accept a value of type {name}"))
    }

    fn load(&self, _ty: Oid, _bytes: &[u8]) -> Option<Datum> {
        None
    }
}

/// A class of GiST whose keys are signatures of the keys that a class of GIN takes from a value: it serves the same
/// operators. The row is always asked.
pub struct Signatures(pub Arc<dyn GinClass>);

impl Signatures {
    /// The codes of a value's keys.
    ///
    /// # Errors
    /// Those of the class.
    pub fn codes(&self, value: &Datum) -> Result<Vec<u32>> {
        let mut keys = Vec::new();
        self.0.value_keys(value, &mut keys)?;
        let codes = keys.iter().map(|k| signature::code(k.as_deref().unwrap_or_default()));
        Ok(codes.collect())
    }
}

impl GistClass for Signatures {
    fn key(&self, value: &Datum) -> Result<Vec<u8>> {
        Ok(signature::key_of(self.codes(value)?))
    }

    fn union(&self, keys: &[&[u8]]) -> Vec<u8> {
        signature::union(keys)
    }

    fn penalty(&self, cover: &[u8], new: &[u8]) -> f64 {
        signature::penalty(cover, new)
    }

    fn split(&self, keys: &[&[u8]]) -> Vec<bool> {
        signature::split(keys)
    }

    fn check(&self, strategy: u16, value: &Datum) -> Result<KeyCheck> {
        let query = self.0.query(strategy, value)?;
        if query.mode != Mode::Default {
            return Ok(Arc::new(|_, _| Ternary::Maybe));
        }
        let code = |key: &QueryKey| match key {
            QueryKey::Key(key) => Some(signature::code(key)),
            QueryKey::Null => Some(signature::code(&[])),
            QueryKey::Beginning(_) | QueryKey::Range(..) => None,
        };
        let codes: Vec<Option<u32>> = query.keys.iter().map(code).collect();
        let check = query.check;
        Ok(Arc::new(move |key, _| {
            let has = |code: &Option<u32>| match code {
                Some(code) if !signature::may_have(key, *code) => Ternary::False,
                _ => Ternary::Maybe,
            };
            let present: Vec<Ternary> = codes.iter().map(has).collect();
            check(&present).min(Ternary::Maybe)
        }))
    }
}
