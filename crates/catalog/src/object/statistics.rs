//! Statistics: what ANALYZE finds about tables, columns and expressions, and extended statistics over several of them.

use serde::{Deserialize, Serialize};

use super::KeyExpression;
use crate::object::id::Id;

/// Statistics over several columns or expressions of a table (CREATE STATISTICS). What ANALYZE finds for them is
/// kept with the table's ([`ExtendedData`]).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExtendedStatistics {
    /// Oid.
    pub oid: Id,
    /// Name.
    pub name: String,
    /// Schema's oid.
    pub schema: Id,
    /// Owner's oid.
    pub owner: Id,
    /// The table.
    pub table: Id,
    /// Its columns, ascending, from 1.
    pub columns: Vec<u16>,
    /// Expressions over its rows, in the statement's order.
    pub expressions: Vec<KeyExpression>,
    /// Letters of the kinds: `d` ndistinct, `f` dependencies, `m` common values, `e` expressions.
    pub kinds: String,
    /// Statistics target; -1: the largest of the columns'.
    pub target: i32,
    /// Sequences, types, functions and collations that the expressions name.
    pub uses: Vec<Id>,
}

impl ExtendedStatistics {
    /// Whether they are about a column.
    pub fn uses_column(&self, n: u16) -> bool {
        self.columns.contains(&n) || self.expressions.iter().any(|e| e.columns.contains(&n))
    }

    /// The number by which data names a column (its own) or expression (-1, -2, …), by its place in the list of columns
    /// and then expressions.
    pub fn attribute(&self, place: usize) -> i16 {
        match self.columns.get(place) {
            Some(n) => *n as i16,
            None => -((place - self.columns.len()) as i16) - 1,
        }
    }

    /// Number of columns and expressions.
    pub fn len(&self) -> usize {
        self.columns.len() + self.expressions.len()
    }

    /// Whether they are about nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The findings of ANALYZE for extended statistics.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExtendedData {
    /// The statistics object.
    pub statistics: Id,
    /// Numbers of distinct combinations.
    pub distinct: Vec<DistinctItem>,
    /// Functional dependencies.
    pub dependencies: Vec<Dependency>,
    /// Most common combinations.
    pub common: Vec<CommonItem>,
    /// Of the expressions, in order.
    pub expressions: Vec<ColumnStats>,
}

/// The number of distinct combinations of some attributes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DistinctItem {
    /// Attributes; see [`ExtendedStatistics::attribute`].
    pub attributes: Vec<i16>,
    /// How many.
    pub count: f64,
}

/// How far some attributes decide another one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Dependency {
    /// Those that decide.
    pub from: Vec<i16>,
    /// The one that is decided.
    pub to: i16,
    /// Share of the rows, 0 to 1.
    pub degree: f64,
}

/// A common combination.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CommonItem {
    /// Values as text, in the order of columns and expressions; None: NULL.
    pub values: Vec<Option<String>>,
    /// Share of the rows.
    pub frequency: f64,
    /// The share that independent columns would give it.
    pub base_frequency: f64,
}

/// The findings of ANALYZE about a column or expression. Values are text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ColumnStats {
    /// Share of NULLs.
    pub null_fraction: f64,
    /// Average width in bytes.
    pub width: i32,
    /// Distinct values; negative: a share of the rows, as `pg_stats.n_distinct`.
    pub distinct: f64,
    /// Most common values with their shares.
    pub common: Vec<(String, f64)>,
    /// Bounds of buckets of equal size over the rest.
    pub histogram: Vec<String>,
    /// Physical against logical order, -1 to 1.
    pub correlation: f64,
}

/// The findings of ANALYZE about an expression of an index.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KeyStats {
    /// The index.
    pub index: Id,
    /// Place of the key in it, from 0.
    pub place: u16,
    /// The findings.
    pub stats: ColumnStats,
}
