//! PARTITION BY and FOR VALUES as statements say them.

use catalog::Partitioning;
pub use catalog::object::Edge;

/// A value of a partition's bound, to be brought to the key's type.
#[derive(Clone, Debug, PartialEq)]
pub enum BoundValue {
    /// NULL.
    Null,
    /// A literal's text.
    Literal(String),
    /// An expression as SQL.
    Sql(String),
}

/// FOR VALUES.
#[derive(Clone, Debug)]
pub enum BoundSpec {
    /// DEFAULT.
    Default,
    /// IN.
    List(Vec<BoundValue>),
    /// FROM … TO.
    Range(Vec<Edge<BoundValue>>, Vec<Edge<BoundValue>>),
    /// WITH (MODULUS, REMAINDER).
    Hash(i32, i32),
}

/// What CREATE TABLE says of partitions.
#[derive(Clone, Debug, Default)]
pub struct PartitionClause {
    /// PARTITION BY.
    pub by: Option<Partitioning>,
    /// PARTITION OF … FOR VALUES.
    pub bound: Option<BoundSpec>,
}

/// ATTACH and DETACH PARTITION.
#[derive(Clone, Debug)]
pub enum PartitionCommand {
    /// ATTACH PARTITION.
    Attach(crate::utility::Name, BoundSpec),
    /// DETACH PARTITION.
    Detach {
        /// The partition.
        name: crate::utility::Name,
        /// CONCURRENTLY.
        concurrently: bool,
    },
    /// DETACH PARTITION … FINALIZE.
    Finalize(crate::utility::Name),
    /// ALTER INDEX … ATTACH PARTITION.
    AttachIndex(crate::utility::Name),
}
