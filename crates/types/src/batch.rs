//! What operators exchange: batches of typed column vectors.

use base::Oid;

use crate::datum::{Datum, Text};

/// Rows that a batch holds when full. Tiny under `debug_tiny`.
pub const BATCH_ROWS: usize = 1024;

/// Some rows, by column. All columns have `rows` entries.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// The columns.
    pub columns: Vec<Column>,
    /// Number of rows (columns may be none).
    pub rows: usize,
}

/// One column's values. `nulls` is empty when there is none, else one flag a row.
#[derive(Clone, Debug)]
pub struct Column {
    /// The values; what stands at a NULL's place is unspecified.
    pub data: Vector,
    /// True where NULL.
    pub nulls: Vec<bool>,
}

/// Typed vectors for the common widths, datums for the rest.
#[derive(Clone, Debug)]
pub enum Vector {
    /// bool.
    Bool(Vec<bool>),
    /// int2.
    Int2(Vec<i16>),
    /// int4, date.
    Int4(Vec<i32>),
    /// int8, timestamp, timestamptz, time.
    Int8(Vec<i64>),
    /// float8.
    Float8(Vec<f64>),
    /// text and kin.
    Text(Vec<Text>),
    /// Anything else.
    Datum(Vec<Datum>),
}

impl Column {
    /// An empty column for a type.
    pub fn new(_ty: Oid) -> Column {
        todo!()
    }
    /// Adds a value of the column's type.
    pub fn push(&mut self, _value: Datum) {
        todo!()
    }
    /// The value in a row; `ty` tells int4 from date.
    pub fn get(&self, _row: usize, _ty: Oid) -> Datum {
        todo!()
    }
    /// Number of rows.
    pub fn len(&self) -> usize {
        todo!()
    }
    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The rows with these numbers, in this order.
    pub fn take(&self, _rows: &[u32]) -> Column {
        todo!()
    }
    /// Removes all rows, keeps the memory.
    pub fn clear(&mut self) {
        todo!()
    }
}
