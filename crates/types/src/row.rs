//! Row bytes in the heap: number of columns (u16), null bitmap if any NULL, then values without
//! padding: fixed width as they are (little-endian), others with a length of 1 or 4 bytes.
//! A row with fewer columns than the table (column added later) reads the missing ones' default.

use base::{Oid, Result};

use crate::datum::Datum;

/// A column as the codec needs it.
#[derive(Clone, Debug, PartialEq)]
pub struct RowColumn {
    /// Type.
    pub ty: Oid,
    /// Value for rows older than the column.
    pub missing: Datum,
}

/// Appends a row's bytes.
pub fn encode(_columns: &[RowColumn], _values: &[Datum], _out: &mut Vec<u8>) -> Result<()> {
    todo!()
}

/// Reads the columns with the given indexes (ascending) into `out` (pushed in that order).
pub fn decode(
    _columns: &[RowColumn],
    _bytes: &[u8],
    _wanted: &[u16],
    _out: &mut Vec<Datum>,
) -> Result<()> {
    todo!()
}

/// As [`decode`], into column vectors of a batch.
pub fn decode_into(
    _columns: &[RowColumn],
    _bytes: &[u8],
    _wanted: &[u16],
    _out: &mut [crate::batch::Column],
) -> Result<()> {
    todo!()
}
