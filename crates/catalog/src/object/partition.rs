//! Declarative partitioning: how a partitioned table spreads its rows, and which of them a partition holds.

use serde::{Deserialize, Serialize};

use super::KeyCollation;
use crate::object::id::Id;

/// How rows are spread over partitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Strategy {
    /// BY LIST: a partition names the values that it holds.
    List,
    /// BY RANGE: a partition holds the keys from one bound up to another.
    #[default]
    Range,
    /// BY HASH: a partition holds the keys whose hash has a remainder.
    Hash,
}

impl Strategy {
    /// `pg_partitioned_table.partstrat`.
    pub fn letter(self) -> char {
        match self {
            Strategy::List => 'l',
            Strategy::Range => 'r',
            Strategy::Hash => 'h',
        }
    }

    /// Its word in PARTITION BY.
    pub fn word(self) -> &'static str {
        match self {
            Strategy::List => "LIST",
            Strategy::Range => "RANGE",
            Strategy::Hash => "HASH",
        }
    }
}

/// PARTITION BY of a table.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Partitioning {
    /// How.
    pub strategy: Strategy,
    /// The key.
    pub keys: Vec<PartitionKey>,
    /// Functions, types and collations that the key's expressions name.
    #[serde(default)]
    pub uses: Vec<Id>,
}

/// A part of a partition key.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PartitionKey {
    /// The table's column, from 1; 0 when it is an expression.
    pub column: u16,
    /// An expression over the row, as SQL.
    #[serde(default)]
    pub expression: Option<String>,
    /// The columns that the expression uses, from 1.
    #[serde(default)]
    pub columns: Vec<u16>,
    /// Its type.
    pub ty: Id,
    /// The type's modifier.
    #[serde(default)]
    pub typmod: i32,
    /// The oid of its collation; 0: it has none.
    #[serde(default)]
    pub collation: Id,
    /// How texts are compared, when not by the default collation.
    #[serde(default)]
    pub slot: Option<Box<KeyCollation>>,
    /// The collation that an expression has of itself; 0: the type's.
    #[serde(default)]
    pub own_collation: Id,
    /// An operator class that was named.
    #[serde(default)]
    pub class: Option<String>,
    /// The function that hashes it, of a user's operator class; 0: the type's own.
    #[serde(default)]
    pub hash_function: Id,
}

/// FOR VALUES of a partition. Values are texts as the default formats print them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum PartitionBound {
    /// The rows that no other partition holds.
    Default,
    /// IN: these values; None is NULL.
    List(Vec<Option<String>>),
    /// FROM (included) … TO (excluded).
    Range {
        /// FROM.
        from: Vec<Edge<String>>,
        /// TO.
        to: Vec<Edge<String>>,
    },
    /// WITH.
    Hash {
        /// MODULUS.
        modulus: u32,
        /// REMAINDER.
        remainder: u32,
    },
}

/// One value of a range's bound.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Edge<T> {
    /// MINVALUE.
    Min,
    /// A value.
    Value(T),
    /// MAXVALUE.
    Max,
}
