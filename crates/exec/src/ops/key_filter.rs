//! A filter of a hash join's keys, made before it reads its left side: most rows there that have no
//! partner can be left out by the scan, before the rest of their columns is decoded.
//!
//! A Bloom filter with both bits of a key in one word (Putze, Sanders, Singler 2007), over the hashes
//! that the join has anyway.

/// Bits for each key, about: a few in a hundred others pass.
const BITS: usize = 16;

/// See the module's documentation.
pub struct KeyFilter {
    /// A power of two of them.
    words: Vec<u64>,
}

/// A hash's bits within its word.
fn bits(hash: u64) -> u64 {
    1 << (hash >> 58) | 1 << (hash >> 52 & 63)
}

impl KeyFilter {
    /// Of these hashes.
    pub fn new(hashes: impl ExactSizeIterator<Item = u64>) -> KeyFilter {
        let mut words = vec![0; (hashes.len() * BITS / 64).next_power_of_two()];
        let mask = words.len() - 1;
        hashes.for_each(|hash| words[hash as usize & mask] |= bits(hash));
        KeyFilter { words }
    }

    /// Whether the hash may be one of them.
    #[inline]
    pub fn may_have(&self, hash: u64) -> bool {
        self.words[hash as usize & (self.words.len() - 1)] & bits(hash) == bits(hash)
    }

    /// The rows whose hashes may be among them.
    pub fn select(&self, hashes: &[u64]) -> Vec<u32> {
        let mut rows = vec![0; hashes.len()];
        let mut found = 0;
        for (row, hash) in hashes.iter().enumerate() {
            rows[found] = row as u32;
            found += usize::from(self.may_have(*hash));
        }
        rows.truncate(found);
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::Hasher;

    #[test]
    fn what_is_there_passes_and_most_others_do_not() {
        let hash = |n: u64| {
            let mut state = super::super::grouping::Fx::default();
            state.write_u64(n);
            state.finish()
        };
        let known: Vec<u64> = (0..5000).map(|n| hash(n * 3)).collect();
        let filter = KeyFilter::new(known.iter().copied());
        assert_eq!(filter.select(&known).len(), known.len());
        let others: Vec<u64> = (0..5000).map(|n| hash(n * 3 + 1)).collect();
        let passed = filter.select(&others).len();
        assert!(passed < 500, "{passed} of 5000 strangers passed");
        assert!(!KeyFilter::new(std::iter::empty()).may_have(hash(1)));
    }
}
