//! Operator classes of `hnsw` and `ivfflat`: the bytes that an index keeps of a value, how far two are from each other,
//! and the middle of several. An extension adds its classes in its `Library`.

use base::{AccessMethod, Result};

use crate::datum::Datum;
use crate::opclass;

/// An operator class of `hnsw` or `ivfflat`.
pub trait VectorClass: Send + Sync {
    /// The bytes that the index keeps of a value that is not NULL; None: it has no entry (a value without a
    /// direction, where directions are compared).
    ///
    /// # Errors
    /// For values that the index can't keep.
    fn key(&self, value: &Datum, method: AccessMethod) -> Result<Option<Vec<u8>>>;

    /// The bytes of a value that is looked for.
    ///
    /// # Errors
    /// For values of another type.
    fn query(&self, value: &Datum) -> Result<Vec<u8>>;

    /// How far two are from each other, in the order of the class's operator; never NaN.
    fn distance(&self, a: &[u8], b: &[u8]) -> f32;

    /// Whether two can be compared.
    ///
    /// # Errors
    /// `22000` for different dimensions.
    fn check(&self, a: &[u8], b: &[u8]) -> Result<()>;

    /// The form in which values are grouped.
    fn sample(&self, vector: &[u8]) -> Vec<u8>;

    /// The middle of samples, of which there is one at least.
    fn mean(&self, samples: &[&[u8]]) -> Vec<u8>;

    /// Whether a column's dimensions (its type modifier) must be known, and the most that an index of the method
    /// takes.
    fn dimensions_max(&self, method: AccessMethod) -> Option<i32>;
}

/// The class with an oid, if it is one of `hnsw` or `ivfflat`.
pub fn class(oid: u32) -> Option<&'static dyn VectorClass> {
    crate::extension::vector_class(&opclass::code(oid)?)
}
