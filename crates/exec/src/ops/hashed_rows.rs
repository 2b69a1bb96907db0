//! Rows of a subquery, to be looked up by `(a, b) IN (SELECT …)`: whether a row is among them in three-valued logic.
//!
//! A row is found where all fields are equal, and it is unknown whether it is there where some row differs in no field
//! that is known of both. Rows are kept by which of their fields are NULL. Those of one such *mask* are looked up by
//! the fields that neither they nor the row looked for lack, in a projection on these fields. Projections for rows
//! without NULLs are made with the table; others when first asked for, by each thread.

use std::collections::{BTreeMap, HashMap, hash_map::Entry};

use base::Result;
use types::Datum;

use super::grouping::RowSet;

/// Which fields are NULL, a bit for each.
type Mask = u64;

/// Rows without duplicates by the masks of their NULLs, of at most 64 fields.
#[derive(Default)]
pub struct HashedRows {
    /// Rows without NULLs.
    whole: RowSet,
    /// Those with some.
    partial: BTreeMap<Mask, Partial>,
}

struct Partial {
    rows: RowSet,
    /// The rows' fields that aren't NULL.
    known: RowSet,
}

/// Projections of rows with one mask on the fields outside of another.
pub type Projections = HashMap<(Mask, Mask), RowSet>;

impl HashedRows {
    /// Adds a row.
    pub fn add(&mut self, row: &[Datum]) {
        let mask = mask(row);
        if mask == 0 {
            self.whole.insert(row);
            return;
        }
        let empty = || Partial { rows: RowSet::default(), known: RowSet::default() };
        let partial = self.partial.entry(mask).or_insert_with(empty);
        if partial.rows.insert(row).1 {
            partial.known.insert(&outside(row, mask));
        }
    }

    /// Whether a row is there; None when that is unknown.
    ///
    /// # Errors
    /// `57014` while it makes a projection.
    pub fn find(&self, row: &[Datum], projections: &mut Projections) -> Result<Option<bool>> {
        let nulls = mask(row);
        if nulls == 0 && self.whole.len() > 0 && self.whole.find(row).is_some() {
            return Ok(Some(true));
        }
        if nulls != 0 && self.may_match(0, &self.whole, row, nulls, projections)? {
            return Ok(None);
        }
        for (mask, partial) in &self.partial {
            let found = if nulls & !mask == 0 {
                partial.known.find(&outside(row, *mask)).is_some()
            } else {
                self.may_match(*mask, &partial.rows, row, nulls, projections)?
            };
            if found {
                return Ok(None);
            }
        }
        Ok(Some(false))
    }

    /// Whether one of the rows with a mask differs in no known field from a row with NULLs.
    fn may_match(
        &self,
        mask: Mask,
        rows: &RowSet,
        row: &[Datum],
        nulls: Mask,
        projections: &mut Projections,
    ) -> Result<bool> {
        if rows.len() == 0 {
            return Ok(false);
        }
        let unknown = mask | nulls;
        if unknown.count_ones() as usize == row.len() {
            return Ok(true);
        }
        let projection = match projections.entry((mask, unknown)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(none) => none.insert(project(rows, unknown)?),
        };
        Ok(projection.find(&outside(row, unknown)).is_some())
    }
}

/// The rows' fields that a mask leaves.
fn project(rows: &RowSet, mask: Mask) -> Result<RowSet> {
    let mut projection = RowSet::default();
    for n in 0..rows.len() {
        if n % 1024 == 0 {
            sched::check_interrupts()?;
        }
        projection.insert(&outside(rows.row(n), mask));
    }
    Ok(projection)
}

fn mask(row: &[Datum]) -> Mask {
    let bits = row.iter().enumerate().filter(|(_, value)| value.is_null());
    bits.fold(0, |mask, (n, _)| mask | 1 << n)
}

/// The fields that a mask leaves.
fn outside(row: &[Datum], mask: Mask) -> Vec<Datum> {
    let left = row.iter().enumerate().filter(|(n, _)| mask & 1 << n == 0);
    left.map(|(_, value)| value.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three-valued `row IN rows` as it is defined.
    fn defined(rows: &[Vec<Datum>], row: &[Datum]) -> Option<bool> {
        let one = |other: &Vec<Datum>| {
            let differ = |(a, b): (&Datum, &Datum)| !a.is_null() && !b.is_null() && a != b;
            let unknown = |(a, b): (&Datum, &Datum)| a.is_null() || b.is_null();
            if row.iter().zip(other).any(differ) {
                Some(false)
            } else if row.iter().zip(other).any(unknown) {
                None
            } else {
                Some(true)
            }
        };
        let all: Vec<Option<bool>> = rows.iter().map(one).collect();
        if all.contains(&Some(true)) {
            Some(true)
        } else if all.contains(&None) {
            None
        } else {
            Some(false)
        }
    }

    #[test]
    fn a_row_is_found_as_three_valued_logic_says() {
        let value = |n: usize| if n == 0 { Datum::Null } else { Datum::Int4(n as i32) };
        let every: Vec<Vec<Datum>> =
            (0..27).map(|n| vec![value(n % 3), value(n / 3 % 3), value(n / 9)]).collect();
        // Sets of every third to thirteenth row from each beginning.
        for step in 3..14 {
            for begin in 0..27 {
                let rows: Vec<_> = every.iter().skip(begin).step_by(step).cloned().collect();
                let mut table = HashedRows::default();
                rows.iter().chain(&rows).for_each(|row| table.add(row));
                let mut projections = Projections::default();
                for row in &every {
                    let found = table.find(row, &mut projections).unwrap();
                    assert_eq!(found, defined(&rows, row), "{row:?} in {rows:?}");
                }
            }
        }
        let found = HashedRows::default().find(&every[0], &mut Projections::default());
        assert_eq!(found.unwrap(), Some(false));
    }
}
