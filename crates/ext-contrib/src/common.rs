//! Helpers that several extensions need.

use base::{Error, Result};
use types::func::{Body, CallTypes};
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
