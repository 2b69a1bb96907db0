//! Nearest neighbours among vectors: what the methods `hnsw` and `ivfflat` know of them, and how they are asked.
//!
//! Vectors are bytes here. [`VectorOps`] says how far two are from each other; what is nearer has the lesser number, and
//! nothing else is asked of the numbers (squares of distances will do).

use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use base::Result;
use txn::Transaction;

use crate::found::Near;

/// The methods' knowledge of vectors.
pub trait VectorOps: Send + Sync {
    /// How far two vectors are from each other; never NaN.
    fn distance(&self, a: &[u8], b: &[u8]) -> f32;

    /// Whether two vectors can be compared.
    ///
    /// # Errors
    /// `22000` for different dimensions.
    fn check(&self, a: &[u8], b: &[u8]) -> Result<()>;

    /// A vector in the form in which it is grouped with others.
    fn sample(&self, vector: &[u8]) -> Vec<u8>;

    /// The middle of samples, of which there is one at least.
    fn mean(&self, samples: &[&[u8]]) -> Vec<u8>;
}

/// Whether a search goes on when what was asked for at first isn't enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Iterative {
    /// No.
    #[default]
    Off,
    /// Rows come by their distances: those that are found too late are left out.
    Strict,
    /// Rows that are found later come later.
    Relaxed,
}

/// A search for the nearest rows.
#[derive(Clone)]
pub struct VectorSearch {
    /// From where; None: all rows are equally far.
    pub query: Option<Vec<u8>>,
    /// Of `hnsw`: how many rows are looked for at a time; of `ivfflat`: how many lists.
    pub breadth: usize,
    /// Whether it goes on.
    pub iterative: Iterative,
    /// When it ends at the latest: after so many rows (`hnsw`) or lists (`ivfflat`).
    pub most: u64,
}

impl fmt::Debug for VectorSearch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "nearest vectors, {} at a time, {:?}", self.breadth, self.iterative)
    }
}

impl VectorSearch {
    pub(crate) fn distance(&self, ops: &dyn VectorOps, vector: &[u8]) -> f32 {
        self.query.as_ref().map_or(0.0, |query| ops.distance(query, vector))
    }

    pub(crate) fn check(&self, ops: &dyn VectorOps, vector: &[u8]) -> Result<()> {
        self.query.as_ref().map_or(Ok(()), |query| ops.check(query, vector))
    }
}

/// Rows in the order of their distances.
pub trait ByDistance: Send {
    /// So many rows are likely to be enough. Before the first one.
    fn expect(&mut self, rows: usize) {
        let _ = rows;
    }

    /// The next row.
    ///
    /// # Errors
    /// I/O, interrupts, those of the search.
    fn next(&mut self, tx: &Transaction) -> Result<Option<Near>>;
}

/// The error for an index whose class isn't known.
pub(crate) fn ops_of(ops: Option<&Arc<dyn VectorOps>>) -> Result<&dyn VectorOps> {
    let none = || base::Error::internal("an index of vectors without an operator class");
    ops.map(|ops| &**ops).ok_or_else(none)
}

/// Chance that is the same every time: the finalizer of MurmurHash3 over a number.
pub(crate) fn scrambled(number: u64) -> u64 {
    let mut x = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    x = (x ^ x >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    x ^ x >> 33
}

/// A hash of addresses, which nobody chooses.
#[derive(Default)]
pub(crate) struct PlaceHasher(u64);

impl Hasher for PlaceHasher {
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|b| self.write_u64(u64::from(*b)));
    }

    fn write_u16(&mut self, n: u16) {
        self.write_u64(u64::from(n));
    }

    fn write_u32(&mut self, n: u32) {
        self.write_u64(u64::from(n));
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0.rotate_left(5) ^ n).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

pub(crate) type PlaceHash = BuildHasherDefault<PlaceHasher>;
