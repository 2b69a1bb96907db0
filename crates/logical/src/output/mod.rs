//! Output plugins, which turn transactions into text and messages: `test_decoding`, `wal2json`, `pgoutput`.

pub mod json;
pub mod pgoutput;
pub mod text;

use base::{Lsn, Result, err};

/// A piece of output: a row of `pg_logical_slot_get_changes`, or a message of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// The position that it is about.
    pub lsn: Lsn,
    /// The transaction.
    pub xid: u64,
    /// The output.
    pub data: Vec<u8>,
}

/// A plugin's option that is on or off; without a value it is on.
///
/// # Errors
/// `22023`.
pub(crate) fn boolean(name: &str, value: Option<&str>) -> Result<bool> {
    match value {
        None => Ok(true),
        Some(text) => types::io::parse_bool(text).map_err(|_| {
            err!(
                INVALID_PARAMETER_VALUE,
                "could not parse value \"{text}\" for parameter \"{name}\""
            )
        }),
    }
}
