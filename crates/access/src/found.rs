//! The findings of searches: rows, and rows by their distances.

use base::TupleId;
use smallvec::SmallVec;

/// Distances by which rows are ordered, mostly one. None is NULL, which comes last, behind NaN.
pub type Distances = SmallVec<[Option<f64>; 1]>;

/// A row that a search found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The root of its chain; with the line 0, any row of the page.
    pub root: TupleId,
    /// The index doesn't know for sure that it matches: the condition must be asked.
    pub recheck: bool,
}

/// A row by its distance.
#[derive(Debug)]
pub struct Near {
    /// The row, and whether its condition must be asked.
    pub found: Found,
    /// Its distances.
    pub distances: Distances,
    /// They may be less than the row's own.
    pub recheck_distance: bool,
    /// Its key, if keys were asked for ([`crate::gist::Nearest::with_keys`]).
    pub key: Vec<u8>,
}
