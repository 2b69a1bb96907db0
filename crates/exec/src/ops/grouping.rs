//! Hashing and comparing rows of values: groups, join keys, duplicates. NULL equals NULL here.

use std::hash::{BuildHasher, Hasher};

use hashbrown::HashTable;
use types::Datum;

use crate::table::same_value;

/// A fast hasher for short inputs (multiply and rotate by word; after Firefox's FxHash).
#[derive(Clone, Copy, Default)]
pub struct Fx(u64);

const SEED: u64 = 0x517c_c1b7_2722_0a95;

impl Hasher for Fx {
    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.write_u64(u64::from_le_bytes(word));
        }
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

#[cfg(test)]
mod tests {
    use super::*;

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
