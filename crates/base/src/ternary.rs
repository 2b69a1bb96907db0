//! Three-valued conditions of an index of entries (GIN): the words that classes of values and the index
//! share.

use std::sync::Arc;

/// The truth of a condition as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ternary {
    /// It doesn't hold.
    False,
    /// It may: the row must be asked.
    Maybe,
    /// It holds.
    True,
}

/// Which rows come into question.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Those that have any of the entries.
    #[default]
    Default,
    /// Those, and those whose value is empty.
    IncludeEmpty,
    /// All whose value is not NULL.
    All,
}

/// Decides by which of the entries a row has, in the order in which they were asked for.
pub type Check = Arc<dyn Fn(&[Ternary]) -> Ternary + Send + Sync>;
