//! Rows of system tables that a statement has computed, and indexes over them.
//!
//! A correlated subquery, a LATERAL item or the inner side of a nested loop reads its tables once for each outer row.
//! The first scans that ask for one object compute its rows alone, where the table can do that
//! ([`rows::by_key`]); after [`ALONE_MAX`] of them, and at once for all other tables, all rows are computed and kept to the
//! statement's end, and what is asked for is found by hashing the columns that are compared. So a statement sees one
//! state of a system table, whatever the functions that it calls define.
//!
//! Only tables made of the catalog are kept: what the running server counts is read anew each time.

use std::collections::HashMap;
use std::sync::Arc;

use base::{Oid, Result};
use catalog::system::{SystemCx, SystemTable, rows};
use types::{Datum, Text};

/// So many scans compute the rows of single objects before all are kept.
const ALONE_MAX: u32 = 4;

/// Rows by the values of some columns.
type Places = HashMap<Vec<Key>, Vec<u32>>;

/// See the module's documentation.
#[derive(Default)]
pub struct SystemTables {
    tables: HashMap<Oid, Kept>,
}

#[derive(Default)]
struct Kept {
    alone: u32,
    rows: Option<Arc<Vec<Vec<Datum>>>>,
    indexes: HashMap<Vec<u16>, Arc<Places>>,
}

/// Rows of a kept table.
pub enum Found {
    /// They were computed for this scan.
    Own(Vec<Vec<Datum>>),
    /// All rows.
    All(Arc<Vec<Vec<Datum>>>),
    /// Those at these places: places by key, and the key.
    Some(Arc<Vec<Vec<Datum>>>, Arc<Places>, Vec<Key>),
    /// None.
    Nothing,
}

impl Found {
    /// Calls a function with each row.
    pub fn each(&self, mut f: impl FnMut(&[Datum]) -> Result<()>) -> Result<()> {
        match self {
            Found::Own(rows) => rows.iter().try_for_each(|row| f(row)),
            Found::All(rows) => rows.iter().try_for_each(|row| f(row)),
            Found::Some(rows, places, key) => {
                let places = places.get(key).map_or(&[][..], Vec::as_slice);
                places.iter().try_for_each(|at| f(&rows[*at as usize]))
            }
            Found::Nothing => Ok(()),
        }
    }
}

/// A value by which rows are found. Integers of all sizes are one kind: `=` compares them with each other.
#[derive(PartialEq, Eq, Hash)]
pub enum Key {
    /// Numbers, oids, letters, flags.
    Number(i64),
    /// Texts and names.
    Text(Text),
}

fn key_of(value: &Datum) -> Option<Key> {
    Some(match value {
        Datum::Oid(id) => Key::Number(i64::from(*id)),
        Datum::Int2(n) => Key::Number(i64::from(*n)),
        Datum::Int4(n) => Key::Number(i64::from(*n)),
        Datum::Int8(n) => Key::Number(*n),
        Datum::Char(c) => Key::Number(i64::from(*c)),
        Datum::Bool(flag) => Key::Number(i64::from(*flag)),
        Datum::Text(text) => Key::Text(text.clone()),
        _ => return None,
    })
}

impl SystemTables {
    /// The rows of a table made of the catalog; `cx.equal` says which are asked for, rows beside those may be
    /// among them.
    ///
    /// # Errors
    /// Those of computing them.
    pub fn find(&mut self, table: &'static SystemTable, cx: &SystemCx<'_>) -> Result<Found> {
        if cx.equal.iter().any(|(_, value)| value.is_null()) {
            return Ok(Found::Nothing);
        }
        let kept = self.tables.entry(table.oid).or_default();
        let all = match &kept.rows {
            Some(all) => all.clone(),
            None if kept.alone < ALONE_MAX && rows::by_key(table, cx.equal) => {
                kept.alone += 1;
                return rows::rows(table, cx).map(Found::Own);
            }
            None => {
                let all = Arc::new(rows::rows(table, &SystemCx { equal: &[], ..*cx })?);
                kept.rows.insert(all).clone()
            }
        };
        let (columns, key) = asked(cx.equal);
        if columns.is_empty() {
            return Ok(Found::All(all));
        }
        let index = kept.indexes.entry(columns);
        let index = index.or_insert_with_key(|columns| Arc::new(places(&all, columns))).clone();
        Ok(Found::Some(all, index, key))
    }
}

/// The columns whose values are known, each once, and those values.
fn asked(equal: &[(u16, Datum)]) -> (Vec<u16>, Vec<Key>) {
    let mut found: Vec<(u16, Key)> = Vec::with_capacity(equal.len());
    for (column, value) in equal {
        if found.iter().all(|(other, _)| other != column)
            && let Some(key) = key_of(value)
        {
            found.push((*column, key));
        }
    }
    found.sort_by_key(|(column, _)| *column);
    found.into_iter().unzip()
}

/// An index over some columns. A row with another kind of value in one of them equals no key.
fn places(all: &[Vec<Datum>], columns: &[u16]) -> Places {
    let mut out = Places::new();
    for (at, row) in all.iter().enumerate() {
        let key = columns.iter().map(|c| row.get(usize::from(*c)).and_then(key_of));
        if let Some(key) = key.collect::<Option<Vec<Key>>>() {
            out.entry(key).or_default().push(at as u32);
        }
    }
    out
}
