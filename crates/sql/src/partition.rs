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

/// FOR VALUES, with the places of its parts in the statement, for errors.
#[derive(Clone, Debug)]
pub struct BoundSpec {
    /// The values.
    pub values: BoundValues,
    /// The place of the whole.
    pub at: u32,
    /// The places of the values of a list, or of a range's lower bound.
    pub lower_at: Vec<u32>,
    /// The places of the values of a range's upper bound.
    pub upper_at: Vec<u32>,
}

impl BoundSpec {
    /// The place of a value of the list or lower bound; that of the whole when there is none.
    pub fn lower_place(&self, at: usize) -> u32 {
        self.lower_at.get(at).or(self.lower_at.first()).copied().unwrap_or(self.at)
    }

    /// The place of a value of the upper bound.
    pub fn upper_place(&self, at: usize) -> u32 {
        self.upper_at.get(at).or(self.upper_at.first()).copied().unwrap_or(self.at)
    }
}

/// What FOR VALUES says.
#[derive(Clone, Debug)]
pub enum BoundValues {
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
