//! Keys of bloom indexes: of each row the bits that the values of its columns set. NULL sets none.

use base::{Error, Result};
use catalog::Index;
use types::Datum;
use types::key::{self, KeyOrder};

use crate::table::KeyColumn;

/// Bits of a key by default.
const LENGTH: usize = 80;
/// Bits that a value sets by default.
const BITS: usize = 2;

/// The parameters of an index.
pub struct Signatures {
    /// Bits of a key, whole words of 16.
    length: usize,
    /// Bits that a value sets, by columns.
    bits: Vec<usize>,
}

/// A hash of bytes (FNV-1a, with the finalizer of MurmurHash3), which is the same on every machine.
fn hash(bytes: &[u8], column: usize) -> u64 {
    let begin = 0xcbf2_9ce4_8422_2325_u64 ^ column as u64;
    let step = |h: u64, b: &u8| (h ^ u64::from(*b)).wrapping_mul(0x0000_0100_0000_01b3);
    let mut h = bytes.iter().fold(begin, step);
    h = (h ^ h >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    h ^ h >> 33
}

impl Signatures {
    /// Of an index.
    pub fn new(index: &Index) -> Signatures {
        let option = |name: &str| {
            let own = index.options.iter().find(|o| o.0 == name);
            own.and_then(|o| o.1.parse::<usize>().ok())
        };
        let length = option("length").unwrap_or(LENGTH).max(1).next_multiple_of(16);
        let of = |n: usize| option(&format!("col{}", n + 1)).unwrap_or(BITS).min(length);
        Signatures { length, bits: (0..index.columns.len()).map(of).collect() }
    }

    /// Bytes of a key.
    pub fn bytes(&self) -> usize {
        self.length / 8
    }

    /// Sets the bits of a column's value.
    ///
    /// # Errors
    /// For types without keys.
    pub fn set(
        &self,
        (column, own): (usize, &KeyColumn),
        value: &Datum,
        bits: &mut [u8],
    ) -> Result<()> {
        if value.is_null() {
            return Ok(());
        }
        let count = *self.bits.get(column).ok_or_else(|| Error::internal("a column too many"))?;
        let mut key = Vec::new();
        let order = KeyOrder { collation: own.2.collation, ..KeyOrder::default() };
        key::encode(own.1, value, order, &mut key)?;
        let mut state = hash(&key, column);
        for _ in 0..count {
            // Numbers after Marsaglia's xorshift: any but zero leads on.
            state |= 1;
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let bit = (state >> 11) as usize % self.length;
            bits[bit / 8] |= 1 << (bit % 8);
        }
        Ok(())
    }
}
