//! Rows in and out of batches.

use base::{Oid, Result};
use types::{Batch, Column, Datum};

/// An input row of an expression.
#[derive(Clone, Copy)]
pub enum Row<'a> {
    /// No columns.
    Empty,
    /// Values of their own.
    Values(&'a [Datum]),
    /// A row of a batch.
    Batch(&'a Batch, usize),
}

impl Row<'_> {
    /// The value of a column (from 0).
    #[inline]
    pub fn column(self, column: u16, ty: Oid) -> Datum {
        match self {
            Row::Values(values) => values[usize::from(column)].clone(),
            Row::Batch(batch, row) => batch.columns[usize::from(column)].get(row, ty),
            Row::Empty => Datum::Null,
        }
    }
}

/// An empty batch with columns of these types.
pub fn empty(types: &[Oid]) -> Batch {
    Batch { columns: types.iter().map(|t| Column::new(*t)).collect(), rows: 0 }
}

/// Adds a row.
///
/// # Errors
/// As [`Column::push`].
pub fn push(batch: &mut Batch, values: impl IntoIterator<Item = Datum>) -> Result<()> {
    for (column, value) in batch.columns.iter_mut().zip(values) {
        column.push(value)?;
    }
    batch.rows += 1;
    Ok(())
}

/// Adds rows of NULLs.
pub fn push_nulls(batch: &mut Batch, rows: usize) {
    for column in &mut batch.columns {
        (0..rows).for_each(|_| column.push_null());
    }
    batch.rows += rows;
}

/// A row's values.
pub fn get(batch: &Batch, row: usize, types: &[Oid]) -> Vec<Datum> {
    batch.columns.iter().zip(types).map(|(column, ty)| column.get(row, *ty)).collect()
}

/// The rows with these numbers, in this order.
pub fn take(batch: &Batch, rows: &[u32]) -> Batch {
    Batch { columns: batch.columns.iter().map(|c| c.take(rows)).collect(), rows: rows.len() }
}

/// `count` rows from `first` on.
pub fn slice(batch: &Batch, first: usize, count: usize) -> Batch {
    let rows: Vec<u32> = (first as u32..(first + count) as u32).collect();
    take(batch, &rows)
}

/// The columns of both, side by side.
pub fn beside(mut left: Batch, right: Batch) -> Batch {
    left.columns.extend(right.columns);
    left
}

/// Adds the rows of `from` (of the same types) to `to`.
///
/// # Errors
/// As [`Column::append`].
pub fn append(to: &mut Batch, from: &Batch) -> Result<()> {
    for (to, from) in to.columns.iter_mut().zip(&from.columns) {
        to.append(from)?;
    }
    to.rows += from.rows;
    Ok(())
}

/// Adds those of the rows of `from` (of the same types) to `to` that have these numbers.
///
/// # Errors
/// As [`Column::push_from`].
pub fn append_some(to: &mut Batch, from: &Batch, rows: &[u32]) -> Result<()> {
    for (to, from) in to.columns.iter_mut().zip(&from.columns) {
        rows.iter().try_for_each(|row| to.push_from(from, *row as usize))?;
    }
    to.rows += rows.len();
    Ok(())
}

/// Rows of NULLs.
pub fn nulls(types: &[Oid], rows: usize) -> Batch {
    let column = |ty: &Oid| {
        let mut column = Column::new(*ty);
        (0..rows).for_each(|_| column.push_null());
        column
    };
    Batch { columns: types.iter().map(column).collect(), rows }
}

/// About how many bytes a value holds.
pub fn width(value: &Datum) -> usize {
    size_of::<Datum>()
        + match value {
            Datum::Text(text) | Datum::Bpchar(text) if text.len() > 15 => text.len() + 16,
            Datum::Bytea(bytes) => bytes.len() + 16,
            Datum::Array(array) => array.items.iter().map(width).sum::<usize>() + 48,
            Datum::Record(r) => r.fields.iter().map(width).sum::<usize>() + 40,
            Datum::Numeric(_) | Datum::Interval(_) | Datum::Uuid(_) => 48,
            other => other.heap_bytes(),
        }
}

/// About how many bytes a value in a column holds.
pub fn value_bytes(column: &Column, row: usize) -> usize {
    use types::batch::Vector;
    match &column.data {
        Vector::Bool(_) => 1,
        Vector::Int2(_) => 2,
        Vector::Int4(_) => 4,
        Vector::Int8(_) | Vector::Float8(_) | Vector::Numeric(..) => 8,
        Vector::Text(v) | Vector::Bpchar(v) => {
            let len = v[row].len();
            16 + if len > 15 { len } else { 0 }
        }
        Vector::Datum(v) => width(&v[row]),
    }
}

/// About how many bytes a batch holds.
pub fn batch_bytes(batch: &Batch) -> usize {
    use types::batch::Vector;
    let bytes = |column: &Column| match &column.data {
        Vector::Text(_) | Vector::Bpchar(_) | Vector::Datum(_) => {
            (0..column.len()).map(|row| value_bytes(column, row)).sum()
        }
        _ if column.is_empty() => 0,
        _ => column.len() * value_bytes(column, 0),
    };
    batch.columns.iter().map(bytes).sum()
}
