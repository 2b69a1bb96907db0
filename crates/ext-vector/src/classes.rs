//! Operator classes of `hnsw` and `ivfflat`. An index keeps of each value
//!
//! ```text
//!   vector, halfvec   its numbers, as the type is stored (cosine: divided by its length)
//!   sparsevec         dimensions, then place and number of each that isn't zero
//!   bit               how many bits (4), the bits
//! ```
//!
//! Distances are what orders as the operator does: squares for `<->`, products with the sign turned for `<#>` and `<=>`.

use std::cmp::Ordering;

use base::{AccessMethod, Result, bail, err};
use types::Datum;
use types::open::OpenValue;
use types::vectors::VectorClass;

use crate::dense::{Dense, word};
use crate::half;
use crate::sparse::Sparse;

/// Numbers that are added up side by side, so that the compiler makes vector instructions of it.
const LANES: usize = 16;
/// Most numbers that aren't zero of a sparsevec in an index.
const SPARSE_MAX: usize = 1000;

/// The measure of how far values are from each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// `<->`, as its square.
    Euclidean,
    /// `<#>`.
    Inner,
    /// `<=>`, by values of length one.
    Cosine,
    /// `<+>`.
    Taxicab,
}

/// A distance that can be compared.
fn number(distance: f32) -> f32 {
    if distance.is_nan() { f32::INFINITY } else { distance }
}

/// Goes through the pairs of numbers of some bytes each, and adds up what `step` makes of them.
fn sum<const BYTES: usize>(
    a: &[u8],
    b: &[u8],
    read: impl Fn([u8; BYTES]) -> f32,
    step: impl Fn(f32, f32) -> f32,
) -> f32 {
    let (a, b) = (a.as_chunks::<BYTES>().0, b.as_chunks::<BYTES>().0);
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut sums = [0.0_f32; LANES];
    for (a, b) in a.iter().zip(b) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += step(read(*a), read(*b));
        }
    }
    let rest = a_rest.iter().zip(b_rest).map(|(a, b)| step(read(*a), read(*b)));
    sums.iter().copied().chain(rest).sum()
}

fn far<const BYTES: usize>(
    measure: Measure,
    a: &[u8],
    b: &[u8],
    read: impl Fn([u8; BYTES]) -> f32,
) -> f32 {
    number(match measure {
        Measure::Euclidean => sum(a, b, read, |a, b| (a - b) * (a - b)),
        Measure::Inner | Measure::Cosine => -sum(a, b, read, |a, b| a * b),
        Measure::Taxicab => sum(a, b, read, |a, b| (a - b).abs()),
    })
}

/// Numbers divided by their length; None: there is none.
fn of_length_one(numbers: &[f32]) -> Option<Vec<f32>> {
    let square = |n: &f32| f64::from(*n) * f64::from(*n);
    let length = numbers.iter().map(square).sum::<f64>().sqrt();
    (length > 0.0).then(|| numbers.iter().map(|n| (f64::from(*n) / length) as f32).collect())
}

/// Classes of `vector` and `halfvec`.
pub struct DenseOps {
    pub half: bool,
    pub measure: Measure,
}

impl DenseOps {
    fn bytes(&self, numbers: &[f32]) -> Vec<u8> {
        match self.half {
            true => numbers.iter().flat_map(|n| half::from_float(*n).to_le_bytes()).collect(),
            false => numbers.iter().flat_map(|n| n.to_le_bytes()).collect(),
        }
    }

    fn numbers(&self, bytes: &[u8]) -> Vec<f32> {
        match self.half {
            true => {
                let all = bytes.as_chunks::<2>().0.iter();
                all.map(|b| half::to_float(u16::from_le_bytes(*b))).collect()
            }
            false => bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect(),
        }
    }

    fn width(&self) -> usize {
        if self.half { 2 } else { 4 }
    }
}

fn other_type() -> base::Error {
    base::Error::internal("a value of another type than its operator class's")
}

fn open<T: OpenValue + 'static>(value: &Datum) -> Result<&T> {
    match value {
        Datum::Open(open) => open.get().ok_or_else(other_type),
        _ => Err(other_type()),
    }
}

impl VectorClass for DenseOps {
    fn key(&self, value: &Datum, _: AccessMethod) -> Result<Option<Vec<u8>>> {
        let own: &Dense = open(value)?;
        Ok(match self.measure {
            Measure::Cosine => of_length_one(&own.values).map(|numbers| self.bytes(&numbers)),
            _ => Some(self.bytes(&own.values)),
        })
    }

    fn query(&self, value: &Datum) -> Result<Vec<u8>> {
        let own: &Dense = open(value)?;
        let one = (self.measure == Measure::Cosine).then(|| of_length_one(&own.values)).flatten();
        Ok(self.bytes(one.as_deref().unwrap_or(&own.values)))
    }

    fn distance(&self, a: &[u8], b: &[u8]) -> f32 {
        match self.half {
            true => far::<2>(self.measure, a, b, |b| half::to_float(u16::from_le_bytes(b))),
            false => far::<4>(self.measure, a, b, f32::from_le_bytes),
        }
    }

    fn check(&self, a: &[u8], b: &[u8]) -> Result<()> {
        if a.len() != b.len() {
            let (a, b) = (a.len() / self.width(), b.len() / self.width());
            bail!(DATA_EXCEPTION, "different {} dimensions {a} and {b}", word(self.half));
        }
        Ok(())
    }

    fn sample(&self, vector: &[u8]) -> Vec<u8> {
        match self.measure {
            Measure::Inner => {
                let one = of_length_one(&self.numbers(vector));
                one.map_or_else(|| vector.to_vec(), |numbers| self.bytes(&numbers))
            }
            _ => vector.to_vec(),
        }
    }

    fn mean(&self, samples: &[&[u8]]) -> Vec<u8> {
        let mut sums: Vec<f64> = Vec::new();
        for sample in samples {
            let numbers = self.numbers(sample);
            sums.resize(numbers.len(), 0.0);
            sums.iter_mut().zip(numbers).for_each(|(sum, n)| *sum += f64::from(n));
        }
        let count = samples.len() as f64;
        let numbers: Vec<f32> = sums.into_iter().map(|sum| (sum / count) as f32).collect();
        match self.measure {
            Measure::Inner | Measure::Cosine => {
                self.bytes(&of_length_one(&numbers).unwrap_or(numbers))
            }
            _ => self.bytes(&numbers),
        }
    }

    fn dimensions_max(&self, _: AccessMethod) -> Option<i32> {
        Some(if self.half { 4000 } else { 2000 })
    }
}

/// Classes of `sparsevec`.
pub struct SparseOps {
    pub measure: Measure,
}

/// The numbers of a sparsevec's bytes.
fn items(bytes: &[u8]) -> impl Iterator<Item = (u32, f32)> + '_ {
    let all = bytes.get(4..).unwrap_or_default().as_chunks::<8>().0.iter();
    all.map(|b| {
        let at = u32::from_le_bytes([b[0], b[1], b[2], b[3]]);
        (at, f32::from_le_bytes([b[4], b[5], b[6], b[7]]))
    })
}

fn dimensions(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |b| u32::from_le_bytes(*b))
}

impl SparseOps {
    fn bytes(&self, own: &Sparse) -> Option<Vec<u8>> {
        let mut out = (own.dims as u32).to_le_bytes().to_vec();
        let numbers: Vec<f32> = own.items.iter().map(|(_, n)| *n).collect();
        let numbers = match self.measure {
            Measure::Cosine => of_length_one(&numbers)?,
            _ => numbers,
        };
        for ((at, _), number) in own.items.iter().zip(numbers) {
            out.extend_from_slice(&at.to_le_bytes());
            out.extend_from_slice(&number.to_le_bytes());
        }
        Some(out)
    }
}

impl VectorClass for SparseOps {
    fn key(&self, value: &Datum, method: AccessMethod) -> Result<Option<Vec<u8>>> {
        let own: &Sparse = open(value)?;
        if own.items.len() > SPARSE_MAX {
            bail!(
                PROGRAM_LIMIT_EXCEEDED,
                "sparsevec cannot have more than {SPARSE_MAX} non-zero elements for {} index",
                method.name()
            );
        }
        Ok(self.bytes(own))
    }

    fn query(&self, value: &Datum) -> Result<Vec<u8>> {
        let own: &Sparse = open(value)?;
        Ok(self.bytes(own).unwrap_or_else(|| (own.dims as u32).to_le_bytes().to_vec()))
    }

    fn distance(&self, a: &[u8], b: &[u8]) -> f32 {
        let (mut left, mut right) = (items(a).peekable(), items(b).peekable());
        let mut out = 0.0;
        loop {
            let order = match (left.peek(), right.peek()) {
                (Some(a), Some(b)) => a.0.cmp(&b.0),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => return number(out),
            };
            let a = if order.is_le() { left.next().map_or(0.0, |i| i.1) } else { 0.0 };
            let b = if order.is_ge() { right.next().map_or(0.0, |i| i.1) } else { 0.0 };
            out += match self.measure {
                Measure::Euclidean => (a - b) * (a - b),
                Measure::Inner | Measure::Cosine => -(a * b),
                Measure::Taxicab => (a - b).abs(),
            };
        }
    }

    fn check(&self, a: &[u8], b: &[u8]) -> Result<()> {
        let (a, b) = (dimensions(a), dimensions(b));
        if a == b {
            return Ok(());
        }
        Err(err!(DATA_EXCEPTION, "different sparsevec dimensions {a} and {b}"))
    }

    fn sample(&self, vector: &[u8]) -> Vec<u8> {
        vector.to_vec()
    }

    /// No method with centres has a class of this type.
    fn mean(&self, samples: &[&[u8]]) -> Vec<u8> {
        samples.first().map_or_else(Vec::new, |sample| sample.to_vec())
    }

    fn dimensions_max(&self, _: AccessMethod) -> Option<i32> {
        None
    }
}

/// Classes of `bit`.
pub struct BitOps {
    pub jaccard: bool,
}

fn bits(value: &Datum) -> Result<Vec<u8>> {
    match value {
        Datum::Bits(own) => Ok([&own.len.to_le_bytes()[..], &own.bytes].concat()),
        _ => Err(other_type()),
    }
}

impl VectorClass for BitOps {
    fn key(&self, value: &Datum, _: AccessMethod) -> Result<Option<Vec<u8>>> {
        bits(value).map(Some)
    }

    fn query(&self, value: &Datum) -> Result<Vec<u8>> {
        bits(value)
    }

    fn distance(&self, a: &[u8], b: &[u8]) -> f32 {
        let (a, b) = (a.get(4..).unwrap_or_default(), b.get(4..).unwrap_or_default());
        let count = |of: fn(u8, u8) -> u8| {
            a.iter().zip(b).map(|(a, b)| of(*a, *b).count_ones()).sum::<u32>() as f32
        };
        if !self.jaccard {
            return count(|a, b| a ^ b);
        }
        let both = count(|a, b| a & b);
        if both == 0.0 { 1.0 } else { 1.0 - both / count(|a, b| a | b) }
    }

    fn check(&self, a: &[u8], b: &[u8]) -> Result<()> {
        let (a, b) = (dimensions(a), dimensions(b));
        if a == b {
            return Ok(());
        }
        Err(err!(DATA_EXCEPTION, "different bit lengths {a} and {b}"))
    }

    fn sample(&self, vector: &[u8]) -> Vec<u8> {
        vector.to_vec()
    }

    /// Of each bit what most of the samples have.
    fn mean(&self, samples: &[&[u8]]) -> Vec<u8> {
        let mut out = samples.first().map_or_else(Vec::new, |sample| sample.to_vec());
        for at in 4..out.len() {
            let set = |bit: u8| samples.iter().filter(|s| s[at] & bit != 0).count();
            let most = |bit: &u8| 2 * set(*bit) > samples.len();
            out[at] = (0..8).map(|n| 1 << n).filter(most).fold(0, |all, bit| all | bit);
        }
        out
    }

    fn dimensions_max(&self, _: AccessMethod) -> Option<i32> {
        Some(64_000)
    }
}

/// The classes, by the symbols of their distances; `+norm`: with a function of the length beside it.
pub const CLASSES: &[(&str, &dyn VectorClass)] = &[
    ("vector_l2_squared_distance", &DenseOps { half: false, measure: Measure::Euclidean }),
    ("vector_negative_inner_product", &DenseOps { half: false, measure: Measure::Inner }),
    ("vector_negative_inner_product+norm", &DenseOps { half: false, measure: Measure::Cosine }),
    ("l1_distance", &DenseOps { half: false, measure: Measure::Taxicab }),
    ("halfvec_l2_squared_distance", &DenseOps { half: true, measure: Measure::Euclidean }),
    ("halfvec_negative_inner_product", &DenseOps { half: true, measure: Measure::Inner }),
    ("halfvec_negative_inner_product+norm", &DenseOps { half: true, measure: Measure::Cosine }),
    ("halfvec_l1_distance", &DenseOps { half: true, measure: Measure::Taxicab }),
    ("sparsevec_l2_squared_distance", &SparseOps { measure: Measure::Euclidean }),
    ("sparsevec_negative_inner_product", &SparseOps { measure: Measure::Inner }),
    ("sparsevec_negative_inner_product+norm", &SparseOps { measure: Measure::Cosine }),
    ("sparsevec_l1_distance", &SparseOps { measure: Measure::Taxicab }),
    ("hamming_distance", &BitOps { jaccard: false }),
    ("jaccard_distance", &BitOps { jaccard: true }),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(numbers: &[f32]) -> Vec<u8> {
        numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
    }

    #[test]
    fn distances_of_all_lengths_are_those_of_the_definition() {
        for count in [1, 3, 16, 17, 100] {
            let a: Vec<f32> = (0..count).map(|n| n as f32 * 0.5 - 3.0).collect();
            let b: Vec<f32> = (0..count).map(|n| 2.0 - n as f32 * 0.25).collect();
            let pairs = || a.iter().zip(&b);
            let is = |measure, wanted: f32| {
                let own = DenseOps { half: false, measure }.distance(&bytes(&a), &bytes(&b));
                assert!((own - wanted).abs() <= wanted.abs() * 1e-4, "{measure:?} {own} {wanted}");
            };
            is(Measure::Euclidean, pairs().map(|(a, b)| (a - b) * (a - b)).sum());
            is(Measure::Inner, -pairs().map(|(a, b)| a * b).sum::<f32>());
            is(Measure::Taxicab, pairs().map(|(a, b)| (a - b).abs()).sum());
        }
    }

    #[test]
    fn the_middle_of_directions_is_a_direction() {
        let class = DenseOps { half: false, measure: Measure::Cosine };
        let middle = class.mean(&[&bytes(&[1.0, 0.0]), &bytes(&[0.0, 1.0])]);
        let half = std::f32::consts::FRAC_1_SQRT_2;
        let off = class.numbers(&middle).iter().map(|n| (n - half).abs()).fold(0.0, f32::max);
        assert!(off < 1e-6);
    }

    #[test]
    fn bits_differ_by_how_many_are_not_the_same() {
        let of = |byte: u8| [&8_u32.to_le_bytes()[..], &[byte]].concat();
        let (a, b) = (of(0b1100_0000), of(0b1010_0000));
        assert_eq!(BitOps { jaccard: false }.distance(&a, &b), 2.0);
        assert_eq!(BitOps { jaccard: true }.distance(&a, &b), 1.0 - 1.0 / 3.0);
        assert_eq!(BitOps { jaccard: false }.mean(&[&a, &a, &b]), a);
    }
}
