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
    /// Elements of arrays, lexemes of documents.
    #[serde(default)]
    pub elements: Elements,
}

/// The findings of ANALYZE about the elements of a column's values. Shares are of the values that are not NULL.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Elements {
    /// The most common ones with the share of values that have them, in their order.
    pub common: Vec<(String, f64)>,
    /// The share of the least common of these.
    pub least: f64,
    /// That of the most common one.
    pub most: f64,
    /// The share of values with a NULL among the elements; None: documents have none.
    pub null: Option<f64>,
}

impl Elements {
    /// The share of values that have this element. Others than the common ones have half of the least share, or
    /// `unknown` if that is less.
    pub fn share(&self, element: &str, unknown: f64) -> f64 {
        let found = self.common.iter().find(|(known, _)| known == element);
        found.map_or_else(|| self.rest(unknown), |(_, share)| *share)
    }

    /// Times as many values have an element with a prefix as have one of which nothing is known, where few elements are
    /// known.
    pub const PREFIX: f64 = 4.0;

    /// The share of values that have an element that begins so, as if elements were independent, and as many of the others
    /// began so as of the common ones.
    pub fn share_of_prefix(&self, prefix: &str, unknown: f64) -> f64 {
        if self.common.len() < 100 {
            return unknown * Elements::PREFIX;
        }
        let (mut none, mut none_of_those, mut count) = (1.0, 1.0, 0);
        for (known, share) in &self.common {
            none *= 1.0 - share;
            if known.starts_with(prefix) {
                none_of_those *= 1.0 - share;
                count += 1;
            }
        }
        let others = none * f64::from(count) / self.common.len() as f64;
        (1.0 - none_of_those + others).clamp(unknown.min(self.least / 2.0), 1.0)
    }

    fn rest(&self, unknown: f64) -> f64 {
        if self.common.is_empty() { unknown } else { unknown.min(self.least / 2.0) }
    }
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
