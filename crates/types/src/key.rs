//! Order-preserving key bytes: `memcmp` on them is SQL order. One marker byte a column (NULLs last
//! by default), then the value; text ends in 00 00 with 00 escaped as 00 FF; descending columns are
//! inverted. A prefix of columns is a prefix of the bytes.

use base::{Oid, Result};

use crate::datum::Datum;

/// Order of one key column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct KeyOrder {
    /// DESC.
    pub descending: bool,
    /// NULLS FIRST.
    pub nulls_first: bool,
}

/// Appends one column.
pub fn encode(_ty: Oid, _value: &Datum, _order: KeyOrder, _out: &mut Vec<u8>) -> Result<()> {
    todo!()
}

/// Reads one column back (index-only scans); returns the value and the bytes used. None for types
/// whose encoding loses something (numeric's scale, bpchar's blanks).
pub fn decode(_ty: Oid, _bytes: &[u8], _order: KeyOrder) -> Option<(Datum, usize)> {
    todo!()
}
