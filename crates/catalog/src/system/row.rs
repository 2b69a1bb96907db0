//! Making rows by column name.

use types::datum::Array;
use types::{Datum, oids};

use crate::object::Id;
use crate::system::tables::{SystemTable, registry};

/// A row under construction; columns that are not set are NULL.
pub struct Row {
    table: &'static SystemTable,
    values: Vec<Datum>,
    /// The column after the one that was set last: most are set in their order.
    next: usize,
}

/// A new row of `schema`'s table, which there is.
pub fn row(schema: Id, name: &'static str) -> Row {
    let table = registry().by_name[&(schema, name)].0;
    Row { table, values: vec![Datum::Null; table.columns.len()], next: 0 }
}

impl Row {
    /// Sets a column.
    pub fn set(mut self, column: &str, value: impl Into<Cell>) -> Row {
        let columns = self.table.columns;
        let is_it = |at: &usize| columns[*at].0 == column;
        let at = (self.next..columns.len()).find(is_it).or_else(|| (0..self.next).find(is_it));
        debug_assert!(at.is_some(), "{} has no column {column}", self.table.name);
        if let Some(at) = at {
            self.values[at] = value.into().0;
            self.next = at + 1;
        }
        self
    }

    /// Sets a column if there is a letter for it.
    pub fn set_some(self, column: &str, letter: Option<char>) -> Row {
        match letter {
            Some(letter) => self.set(column, letter),
            None => self,
        }
    }

    /// Sets several columns to one value.
    pub fn fill(mut self, columns: &[&str], value: Datum) -> Row {
        for column in columns {
            self = self.set(column, value.clone());
        }
        self
    }

    /// The values.
    pub fn done(self) -> Vec<Datum> {
        self.values
    }
}

/// A value on its way into a row.
pub struct Cell(Datum);

impl From<Datum> for Cell {
    fn from(value: Datum) -> Cell {
        Cell(value)
    }
}
impl From<&str> for Cell {
    fn from(value: &str) -> Cell {
        Cell(Datum::Text(value.into()))
    }
}
impl From<bool> for Cell {
    fn from(value: bool) -> Cell {
        Cell(Datum::Bool(value))
    }
}
impl From<i32> for Cell {
    fn from(value: i32) -> Cell {
        Cell(Datum::Int4(value))
    }
}
impl From<i64> for Cell {
    fn from(value: i64) -> Cell {
        Cell(Datum::Int8(value))
    }
}
impl From<u64> for Cell {
    fn from(value: u64) -> Cell {
        Cell(Datum::Int8(value as i64))
    }
}
impl From<f64> for Cell {
    fn from(value: f64) -> Cell {
        Cell(Datum::Float8(value))
    }
}
impl From<i16> for Cell {
    fn from(value: i16) -> Cell {
        Cell(Datum::Int2(value))
    }
}
impl From<f32> for Cell {
    fn from(value: f32) -> Cell {
        Cell(Datum::Float4(value))
    }
}
impl From<char> for Cell {
    fn from(value: char) -> Cell {
        Cell(Datum::Char(value as u8))
    }
}

/// A text.
pub(super) fn text(value: &str) -> Datum {
    Datum::Text(value.into())
}

/// An object id.
pub(super) fn oid(id: Id) -> Datum {
    Datum::Oid(id)
}

/// An array of one dimension; vectors (`int2vector`, `oidvector`) begin at 0.
pub(super) fn array(element: base::Oid, lower: i32, items: Vec<Datum>) -> Datum {
    let dims = if items.is_empty() { Vec::new() } else { vec![(items.len() as i32, lower)] };
    Datum::Array(std::sync::Arc::new(Array { element, dims, items }))
}

pub(super) fn vector(numbers: impl Iterator<Item = i16>) -> Datum {
    array(oids::INT2, 0, numbers.map(Datum::Int2).collect())
}

pub(crate) fn numbers(columns: &[u16]) -> Datum {
    array(oids::INT2, 1, columns.iter().map(|c| Datum::Int2(*c as i16)).collect())
}
