//! The unit that operators exchange: batches of typed column vectors.

use base::{Error, Oid, Result};

use crate::datum::{Datum, Numeric, Text};
use crate::oids;

/// Rows that a batch holds when full. Tiny under `debug_tiny`.
pub const BATCH_ROWS: usize = 1024;

/// Calls `$body` with `$v` bound to the vector inside, whatever its type.
macro_rules! each_vector {
    ($data:expr, $v:ident => $body:expr) => {
        match $data {
            Vector::Bool($v) => $body,
            Vector::Int2($v) => $body,
            Vector::Int4($v) => $body,
            Vector::Int8($v) => $body,
            Vector::Float8($v) => $body,
            Vector::Text($v) | Vector::Bpchar($v) => $body,
            Vector::Numeric($v, _) => $body,
            Vector::Datum($v) => $body,
        }
    };
}

/// Some rows, by column. All columns have `rows` entries.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// The columns.
    pub columns: Vec<Column>,
    /// Number of rows (columns may be none).
    pub rows: usize,
}

impl Batch {
    /// An empty batch of columns of these types.
    pub fn new(types: &[Oid]) -> Batch {
        Batch { columns: types.iter().map(|ty| Column::new(*ty)).collect(), rows: 0 }
    }

    /// Makes room for so many more rows.
    pub fn reserve(&mut self, rows: usize) {
        for column in &mut self.columns {
            each_vector!(&mut column.data, v => v.reserve(rows));
        }
    }

    /// The rows with these numbers, in this order.
    pub fn take(&self, rows: &[u32]) -> Batch {
        let columns = self.columns.iter().map(|c| c.take(rows)).collect();
        Batch { columns, rows: rows.len() }
    }

    /// Removes all rows, keeps the memory.
    pub fn clear(&mut self) {
        self.columns.iter_mut().for_each(Column::clear);
        self.rows = 0;
    }
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
    /// text, varchar, name.
    Text(Vec<Text>),
    /// bpchar, which compares without trailing blanks.
    Bpchar(Vec<Text>),
    /// numeric, while all values fit 64 bits and show equally many digits after the point. The first
    /// one that doesn't turns the whole vector into datums.
    Numeric(Vec<i64>, u16),
    /// Anything else.
    Datum(Vec<Datum>),
}

#[cold]
fn wrong_type(column: &Vector, value: &Datum) -> Error {
    let column = match column {
        Vector::Bool(_) => "bool",
        Vector::Int2(_) => "int2",
        Vector::Int4(_) => "int4",
        Vector::Int8(_) => "int8",
        Vector::Float8(_) => "float8",
        Vector::Text(_) => "text",
        Vector::Bpchar(_) => "bpchar",
        Vector::Numeric(..) => "numeric",
        Vector::Datum(_) => "any value",
    };
    let value = crate::io::format_type(crate::io::natural_type(value), -1);
    Error::internal(format!("a value of type {value} in a column of {column}"))
}

impl Column {
    /// An empty column for a type.
    pub fn new(ty: Oid) -> Column {
        let data = match ty {
            oids::BOOL => Vector::Bool(Vec::new()),
            oids::INT2 => Vector::Int2(Vec::new()),
            oids::INT4 | oids::DATE => Vector::Int4(Vec::new()),
            oids::INT8 | oids::TIMESTAMP | oids::TIMESTAMPTZ | oids::TIME => {
                Vector::Int8(Vec::new())
            }
            oids::FLOAT8 => Vector::Float8(Vec::new()),
            oids::TEXT | oids::VARCHAR | oids::NAME => Vector::Text(Vec::new()),
            oids::BPCHAR => Vector::Bpchar(Vec::new()),
            oids::NUMERIC => Vector::Numeric(Vec::new(), 0),
            _ => Vector::Datum(Vec::new()),
        };
        Column { data, nulls: Vec::new() }
    }

    /// Adds a value of the column's type.
    ///
    /// # Errors
    /// Internal, when it is of another type: the plan is wrong.
    #[inline]
    pub fn push(&mut self, value: Datum) -> Result<()> {
        if value.is_null() {
            self.push_null();
            return Ok(());
        }
        match (&mut self.data, value) {
            (Vector::Int4(v), Datum::Int4(x) | Datum::Date(x)) => v.push(x),
            (
                Vector::Int8(v),
                Datum::Int8(x) | Datum::Timestamp(x) | Datum::Timestamptz(x) | Datum::Time(x),
            ) => v.push(x),
            (Vector::Bool(v), Datum::Bool(x)) => v.push(x),
            (Vector::Int2(v), Datum::Int2(x)) => v.push(x),
            (Vector::Float8(v), Datum::Float8(x)) => v.push(x),
            (Vector::Text(v) | Vector::Bpchar(v), Datum::Text(x) | Datum::Bpchar(x)) => v.push(x),
            (Vector::Datum(v), x) => v.push(x),
            (Vector::Numeric(..), Datum::Numeric(x)) => {
                self.push_numeric(x);
                return Ok(());
            }
            (data, x) => return Err(wrong_type(data, &x)),
        }
        self.pushed();
        Ok(())
    }

    /// Adds a number to a column of numerics.
    #[inline]
    pub(crate) fn push_numeric(&mut self, number: Numeric) {
        let rows = self.len();
        match (&mut self.data, number) {
            (Vector::Numeric(v, common), Numeric::Small { value, scale })
                if scale == *common
                    || v.len() == self.nulls.len() && self.nulls.iter().all(|n| *n) =>
            {
                *common = scale;
                v.push(value);
            }
            (Vector::Datum(v), number) => v.push(Datum::Numeric(number)),
            (_, number) => {
                self.data =
                    Vector::Datum((0..rows).map(|row| self.get(row, oids::NUMERIC)).collect());
                if let Vector::Datum(v) = &mut self.data {
                    v.push(Datum::Numeric(number));
                }
            }
        }
        self.pushed();
    }

    /// Adds a NULL.
    pub fn push_null(&mut self) {
        let rows = self.len();
        match &mut self.data {
            Vector::Bool(v) => v.push(false),
            Vector::Int2(v) => v.push(0),
            Vector::Int4(v) => v.push(0),
            Vector::Int8(v) => v.push(0),
            Vector::Float8(v) => v.push(0.0),
            Vector::Text(v) | Vector::Bpchar(v) => v.push(Text::new()),
            Vector::Numeric(v, _) => v.push(0),
            Vector::Datum(v) => v.push(Datum::Null),
        }
        self.nulls.resize(rows, false);
        self.nulls.push(true);
    }

    /// Keeps `nulls` in step after a value was pushed to `data` directly.
    #[inline]
    pub(crate) fn pushed(&mut self) {
        if !self.nulls.is_empty() {
            self.nulls.push(false);
        }
    }

    /// Whether the value in a row is NULL.
    #[inline]
    pub fn is_null(&self, row: usize) -> bool {
        !self.nulls.is_empty() && self.nulls[row]
    }

    /// The value in a row; `ty` tells int4 from date.
    #[inline]
    pub fn get(&self, row: usize, ty: Oid) -> Datum {
        if self.is_null(row) {
            return Datum::Null;
        }
        match &self.data {
            Vector::Bool(v) => Datum::Bool(v[row]),
            Vector::Int2(v) => Datum::Int2(v[row]),
            Vector::Int4(v) if ty == oids::DATE => Datum::Date(v[row]),
            Vector::Int4(v) => Datum::Int4(v[row]),
            Vector::Int8(v) => match ty {
                oids::TIMESTAMP => Datum::Timestamp(v[row]),
                oids::TIMESTAMPTZ => Datum::Timestamptz(v[row]),
                oids::TIME => Datum::Time(v[row]),
                _ => Datum::Int8(v[row]),
            },
            Vector::Float8(v) => Datum::Float8(v[row]),
            Vector::Text(v) => Datum::Text(v[row].clone()),
            Vector::Bpchar(v) => Datum::Bpchar(v[row].clone()),
            Vector::Numeric(v, scale) => Datum::Numeric(Numeric::new(v[row], *scale)),
            Vector::Datum(v) => v[row].clone(),
        }
    }

    /// Number of rows.
    #[inline]
    pub fn len(&self) -> usize {
        each_vector!(&self.data, v => v.len())
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The rows with these numbers, in this order.
    pub fn take(&self, rows: &[u32]) -> Column {
        fn pick<T: Clone>(v: &[T], rows: &[u32]) -> Vec<T> {
            rows.iter().map(|r| v[*r as usize].clone()).collect()
        }
        let data = match &self.data {
            Vector::Bool(v) => Vector::Bool(pick(v, rows)),
            Vector::Int2(v) => Vector::Int2(pick(v, rows)),
            Vector::Int4(v) => Vector::Int4(pick(v, rows)),
            Vector::Int8(v) => Vector::Int8(pick(v, rows)),
            Vector::Float8(v) => Vector::Float8(pick(v, rows)),
            Vector::Text(v) => Vector::Text(pick(v, rows)),
            Vector::Bpchar(v) => Vector::Bpchar(pick(v, rows)),
            Vector::Numeric(v, scale) => Vector::Numeric(pick(v, rows), *scale),
            Vector::Datum(v) => Vector::Datum(pick(v, rows)),
        };
        let nulls = if self.nulls.is_empty() { Vec::new() } else { pick(&self.nulls, rows) };
        Column { data, nulls }
    }

    /// Adds the row `row` of another column of the same type.
    ///
    /// # Errors
    /// Internal, when it is of another type: the plan is wrong.
    pub fn push_from(&mut self, other: &Column, row: usize) -> Result<()> {
        if other.is_null(row) {
            self.push_null();
            return Ok(());
        }
        match (&mut self.data, &other.data) {
            (Vector::Bool(v), Vector::Bool(o)) => v.push(o[row]),
            (Vector::Int2(v), Vector::Int2(o)) => v.push(o[row]),
            (Vector::Int4(v), Vector::Int4(o)) => v.push(o[row]),
            (Vector::Int8(v), Vector::Int8(o)) => v.push(o[row]),
            (Vector::Float8(v), Vector::Float8(o)) => v.push(o[row]),
            (Vector::Text(v), Vector::Text(o)) | (Vector::Bpchar(v), Vector::Bpchar(o)) => {
                v.push(o[row].clone());
            }
            (Vector::Datum(v), Vector::Datum(o)) => v.push(o[row].clone()),
            (Vector::Datum(v), Vector::Numeric(o, scale)) => {
                v.push(Datum::Numeric(Numeric::new(o[row], *scale)));
            }
            (Vector::Numeric(..), Vector::Numeric(o, scale)) => {
                self.push_numeric(Numeric::new(o[row], *scale));
                return Ok(());
            }
            (Vector::Numeric(..), Vector::Datum(o)) => return self.push(o[row].clone()),
            (data, _) => return Err(wrong_type(data, &other.get(row, Oid::INVALID))),
        }
        self.pushed();
        Ok(())
    }

    /// Adds all rows of another column of the same type.
    ///
    /// # Errors
    /// As [`Column::push_from`].
    pub fn append(&mut self, other: &Column) -> Result<()> {
        let rows = self.len();
        match (&mut self.data, &other.data) {
            (Vector::Bool(v), Vector::Bool(o)) => v.extend_from_slice(o),
            (Vector::Int2(v), Vector::Int2(o)) => v.extend_from_slice(o),
            (Vector::Int4(v), Vector::Int4(o)) => v.extend_from_slice(o),
            (Vector::Int8(v), Vector::Int8(o)) => v.extend_from_slice(o),
            (Vector::Float8(v), Vector::Float8(o)) => v.extend_from_slice(o),
            (Vector::Text(v), Vector::Text(o)) | (Vector::Bpchar(v), Vector::Bpchar(o)) => {
                v.extend_from_slice(o);
            }
            (Vector::Numeric(v, s), Vector::Numeric(o, t)) if s == t || rows == 0 => {
                *s = *t;
                v.extend_from_slice(o);
            }
            (Vector::Datum(v), Vector::Datum(o)) => v.extend_from_slice(o),
            _ => return (0..other.len()).try_for_each(|row| self.push_from(other, row)),
        }
        if !self.nulls.is_empty() || !other.nulls.is_empty() {
            self.nulls.resize(rows, false);
            self.nulls.extend_from_slice(&other.nulls);
            self.nulls.resize(rows + other.len(), false);
        }
        Ok(())
    }

    /// Removes all rows, keeps the memory.
    pub fn clear(&mut self) {
        each_vector!(&mut self.data, v => v.clear());
        self.nulls.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_several_scales_are_added_one_by_one() {
        let number = |text: &str| Numeric::parse(text).unwrap();
        let mut column = Column::new(oids::NUMERIC);
        column.push_numeric(number("1.5"));
        column.push_numeric(number("0.10000000000000000000"));
        let Vector::Datum(values) = &mut column.data else { panic!("one scale fits all") };
        values.reserve(100);
        let before = values.as_ptr();
        column.push_numeric(number("1.25"));
        column.push_null();
        // The vector has not moved: adding a number copies none before it.
        assert!(matches!(&column.data, Vector::Datum(values) if values.as_ptr() == before));
        assert_eq!((column.len(), column.is_null(2), column.is_null(3)), (4, false, true));
        let texts: Vec<String> = (0..3)
            .map(|row| match column.get(row, oids::NUMERIC) {
                Datum::Numeric(number) => number.to_string(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(texts, ["1.5", "0.10000000000000000000", "1.25"]);
    }
}
