//! Hashing and comparing rows of values: groups, join keys, duplicates. NULL equals NULL here. Rows
//! come as datums, or by column: the same value has the same hash in every form of column.

use std::hash::{BuildHasher, Hasher};

use std::borrow::Cow;

use base::{Oid, Result};
use hashbrown::HashTable;
use types::batch::Vector;
use types::{Column, Datum, Numeric, oids};

/// A fast hasher for short inputs (multiply and rotate by word; after Firefox's FxHash).
#[derive(Clone, Copy, Default)]
pub struct Fx(u64);

const SEED: u64 = 0x517c_c1b7_2722_0a95;

impl Hasher for Fx {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.write_u64(u64::from_le_bytes(*word)));
        // Two halves that may overlap, or three bytes that may be the same.
        let rest = match (rest.first_chunk::<4>(), rest.last_chunk::<4>(), rest) {
            (_, _, []) => return,
            (Some(first), Some(last), _) => {
                u64::from(u32::from_le_bytes(*first)) << 32 | u64::from(u32::from_le_bytes(*last))
            }
            (_, _, few) => {
                let at = |n: usize| u64::from(few[n]);
                at(0) << 16 | at(few.len() / 2) << 8 | at(few.len() - 1)
            }
        };
        self.write_u64(rest);
    }
    fn write_u8(&mut self, v: u8) {
        self.write_u64(u64::from(v));
    }
    fn write_u32(&mut self, v: u32) {
        self.write_u64(u64::from(v));
    }
    fn write_u64(&mut self, v: u64) {
        self.0 = (self.0.rotate_left(5) ^ v).wrapping_mul(SEED);
    }
    fn write_i64(&mut self, v: i64) {
        self.write_u64(v as u64);
    }
    fn write_i32(&mut self, v: i32) {
        self.write_u64(v as u64);
    }
    fn write_usize(&mut self, v: usize) {
        self.write_u64(v as u64);
    }
    fn finish(&self) -> u64 {
        // The table takes its tag from the top bits and the place from the low ones.
        self.0 ^ (self.0 >> 32)
    }
}

impl BuildHasher for Fx {
    type Hasher = Fx;
    fn build_hasher(&self) -> Fx {
        Fx(0)
    }
}

/// A row's hash.
pub fn hash(values: &[Datum]) -> u64 {
    let mut state = Fx(0);
    for value in values {
        if value.is_null() {
            state.write_u8(0);
        } else {
            types::io::hash(value, &mut state);
        }
    }
    state.finish()
}

/// Equal, or both NULL.
pub fn same_value(a: &Datum, b: &Datum) -> bool {
    match (a, b) {
        (Datum::Null, Datum::Null) => true,
        (Datum::Null, _) | (_, Datum::Null) => false,
        _ => types::io::compare(a, b).is_eq(),
    }
}

/// Whether two rows are the same.
pub fn same(a: &[Datum], b: &[Datum]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_value(a, b))
}

/// Distinct rows, numbered in the order of their coming.
#[derive(Default)]
pub struct RowSet {
    /// The rows, `width` values each, one after the other.
    values: Vec<Datum>,
    width: usize,
    table: HashTable<(u64, u32)>,
}

impl RowSet {
    /// The row's number and whether it is new.
    pub fn insert(&mut self, row: &[Datum]) -> (usize, bool) {
        let hash = hash(row);
        self.width = row.len();
        let (values, width) = (&self.values, self.width);
        let found = self
            .table
            .find(hash, |(h, n)| *h == hash && same(&values[*n as usize * width..][..width], row));
        if let Some((_, n)) = found {
            return (*n as usize, false);
        }
        let number = self.table.len() as u32;
        self.values.extend_from_slice(row);
        self.table.insert_unique(hash, (hash, number), |(h, _)| *h);
        (number as usize, true)
    }

    /// The number of a row that is in the set.
    pub fn find(&self, row: &[Datum]) -> Option<usize> {
        let hash = hash(row);
        let found = self.table.find(hash, |(h, n)| {
            *h == hash && same(&self.values[*n as usize * self.width..][..self.width], row)
        });
        found.map(|(_, n)| *n as usize)
    }

    /// A row by its number.
    pub fn row(&self, number: usize) -> &[Datum] {
        &self.values[number * self.width..][..self.width]
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.table.len()
    }
}

/// A bpchar's bytes without the blanks at its end, which don't count.
#[inline]
fn without_blanks(mut bytes: &[u8]) -> &[u8] {
    while let [rest @ .., b' '] = bytes {
        bytes = rest;
    }
    bytes
}

/// Adds a column's values to the rows' hashes.
fn hash_column(column: &Column, states: &mut [Fx]) {
    let mut each = |write: &dyn Fn(usize, &mut Fx)| {
        for (row, state) in states.iter_mut().enumerate() {
            if column.is_null(row) { state.write_u8(0) } else { write(row, state) }
        }
    };
    match &column.data {
        Vector::Bool(v) => each(&|row, state| state.write_u8(u8::from(v[row]))),
        Vector::Int2(v) => each(&|row, state| state.write_i64(v[row].into())),
        Vector::Int4(v) => {
            for (row, state) in states.iter_mut().enumerate() {
                if column.is_null(row) { state.write_u8(0) } else { state.write_i64(v[row].into()) }
            }
        }
        Vector::Int8(v) => {
            for (row, state) in states.iter_mut().enumerate() {
                if column.is_null(row) { state.write_u8(0) } else { state.write_i64(v[row]) }
            }
        }
        Vector::Float8(v) => {
            each(&|row, state| types::io::hash(&Datum::Float8(v[row]), state));
        }
        Vector::Text(v) => each(&|row, state| state.write(v[row].as_bytes())),
        Vector::Bpchar(v) => {
            each(&|row, state| state.write(without_blanks(v[row].as_bytes())));
        }
        Vector::Numeric(v, scale) => {
            each(&|row, state| Numeric::new(v[row], *scale).hash_value(state));
        }
        Vector::Datum(v) => each(&|row, state| types::io::hash(&v[row], state)),
    }
}

/// The hashes of rows whose values stand in these columns.
pub fn hash_columns(key: &[Cow<'_, Column>], rows: usize) -> Vec<u64> {
    let mut states = vec![Fx(0); rows];
    key.iter().for_each(|column| hash_column(column, &mut states));
    states.into_iter().map(|state| state.finish()).collect()
}

/// Whether two values of one type are the same; NULL equals NULL.
#[inline]
pub fn same_at(a: &Column, i: usize, b: &Column, j: usize) -> bool {
    match (a.is_null(i), b.is_null(j)) {
        (false, false) => {}
        (x, y) => return x && y,
    }
    match (&a.data, &b.data) {
        (Vector::Int4(x), Vector::Int4(y)) => x[i] == y[j],
        (Vector::Int8(x), Vector::Int8(y)) => x[i] == y[j],
        (Vector::Int2(x), Vector::Int2(y)) => x[i] == y[j],
        (Vector::Bool(x), Vector::Bool(y)) => x[i] == y[j],
        (Vector::Text(x), Vector::Text(y)) => x[i] == y[j],
        (Vector::Bpchar(x), Vector::Bpchar(y)) => {
            let (x, y) = (x[i].as_bytes(), y[j].as_bytes());
            x == y || without_blanks(x) == without_blanks(y)
        }
        (Vector::Numeric(x, s), Vector::Numeric(y, t)) if s == t => x[i] == y[j],
        (Vector::Float8(x), Vector::Float8(y)) => {
            types::io::compare(&Datum::Float8(x[i]), &Datum::Float8(y[j])).is_eq()
        }
        // Numerics of several scales, and what has no vector of its own.
        _ => types::io::compare(&a.get(i, oids::NUMERIC), &b.get(j, oids::NUMERIC)).is_eq(),
    }
}

/// Distinct rows by column, numbered in the order of their coming.
pub struct Groups {
    /// Their values.
    pub columns: Vec<Column>,
    table: HashTable<(u64, u32)>,
}

impl Groups {
    /// None yet, of values of these types.
    pub fn new(types: impl Iterator<Item = Oid>) -> Groups {
        Groups { columns: types.map(Column::new).collect(), table: HashTable::new() }
    }

    /// Rows of which no two are the same, with their hashes.
    pub fn of(columns: Vec<Column>, hashes: &[u64]) -> Groups {
        let mut table = HashTable::with_capacity(hashes.len());
        for (number, hash) in hashes.iter().enumerate() {
            table.insert_unique(*hash, (*hash, number as u32), |(h, _): &(u64, u32)| *h);
        }
        Groups { columns, table }
    }

    /// Makes room for so many more.
    pub fn reserve(&mut self, more: usize) {
        self.table.reserve(more, |(h, _)| *h);
    }

    /// The rows' hashes, by their numbers.
    pub fn hashes(&self) -> Vec<u64> {
        let mut hashes = vec![0; self.table.len()];
        self.table.iter().for_each(|(hash, number)| hashes[*number as usize] = *hash);
        hashes
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// The number of a row that is there.
    pub fn find(&self, hash: u64, key: &[Cow<'_, Column>], row: usize) -> Option<u32> {
        let same = |n: u32| {
            self.columns.iter().zip(key).all(|(own, key)| same_at(own, n as usize, key, row))
        };
        self.table.find(hash, |(h, n)| *h == hash && same(*n)).map(|(_, n)| *n)
    }

    /// Adds a row that isn't there; its number.
    ///
    /// # Errors
    /// As [`Column::push_from`].
    pub fn add(&mut self, hash: u64, key: &[Cow<'_, Column>], row: usize) -> Result<u32> {
        let number = self.table.len() as u32;
        for (own, key) in self.columns.iter_mut().zip(key) {
            own.push_from(key, row)?;
        }
        self.table.insert_unique(hash, (hash, number), |(h, _)| *h);
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_one_type_hash_alike_in_every_form() {
        let number = |text: &str| Datum::Numeric(Numeric::parse(text).unwrap());
        let (mut small, mut mixed) = (Column::new(oids::NUMERIC), Column::new(oids::NUMERIC));
        for text in ["1.50", "100.00"] {
            small.push(number(text)).unwrap();
        }
        for text in ["1.5", "100", "7.000"] {
            mixed.push(number(text)).unwrap();
        }
        assert!(matches!(small.data, Vector::Numeric(..)));
        assert!(matches!(mixed.data, Vector::Datum(_)));
        let (a, b) = ([Cow::Borrowed(&small)], [Cow::Borrowed(&mixed)]);
        let (x, y) = (hash_columns(&a, 2), hash_columns(&b, 3));
        assert_eq!(x, y[..2]);
        assert!(same_at(&small, 0, &mixed, 0) && !same_at(&small, 0, &mixed, 1));
        let mut groups = Groups::new([oids::NUMERIC].into_iter());
        assert_eq!(groups.add(x[0], &a, 0).unwrap(), 0);
        assert_eq!(groups.find(y[0], &b, 0), Some(0));
        assert_eq!(groups.find(y[2], &b, 2), None);
    }

    #[test]
    fn a_row_set_numbers_rows_and_nulls_are_equal() {
        let mut set = RowSet::default();
        let row = |n| [Datum::Int4(n), Datum::Null];
        assert_eq!(set.insert(&row(1)), (0, true));
        assert_eq!(set.insert(&row(2)), (1, true));
        assert_eq!(set.insert(&row(1)), (0, false));
        assert_eq!((set.len(), set.find(&row(2)), set.find(&row(3))), (2, Some(1), None));
    }
}
