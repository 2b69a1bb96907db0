//! Random values by the standard's rules (TPC-C 5.11, clauses 2.1.6 and 4.3.2).

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// The constants of the non-uniform distribution: one for the names of a load, the others for runs. The standard
/// bounds how far the first two may lie apart (65 to 119, neither 96 nor 112).
const C_LAST_LOAD: i64 = 42;
const C_LAST_RUN: i64 = 127;
const C_CUSTOMER: i64 = 519;
const C_ITEM: i64 = 4211;

const SYLLABLES: [&str; 10] =
    ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];

const LETTERS: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789xy";

/// A terminal's or a load's source of randomness; the same seed gives the same values.
pub struct Random(SmallRng);

impl Random {
    /// From a seed.
    pub fn new(seed: u64) -> Random {
        Random(SmallRng::seed_from_u64(seed))
    }

    /// Uniform in `low..=high`.
    pub fn uniform(&mut self, low: i64, high: i64) -> i64 {
        self.0.random_range(low..=high)
    }

    /// Exponential with this mean, at most ten times it.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        (-(1.0 - self.0.random::<f64>()).ln()).min(10.0) * mean
    }

    /// Whether something of this chance, in percent, happens.
    pub fn percent(&mut self, chance: i64) -> bool {
        self.uniform(1, 100) <= chance
    }

    fn non_uniform(&mut self, a: i64, c: i64, low: i64, high: i64) -> i64 {
        let mixed = self.uniform(0, a) | self.uniform(low, high);
        (mixed + c) % (high - low + 1) + low
    }

    /// A customer of a district that has so many.
    pub fn customer(&mut self, count: i64) -> i64 {
        self.non_uniform(1023, C_CUSTOMER, 1, count)
    }

    /// One of so many items.
    pub fn item(&mut self, count: i64) -> i64 {
        self.non_uniform(8191, C_ITEM, 1, count)
    }

    /// The last name that a run asks for, where a district has so many customers: one that is there.
    pub fn last_name(&mut self, customers: i64) -> String {
        last_name(self.non_uniform(255, C_LAST_RUN, 0, customers.min(1000) - 1))
    }

    /// The last name of a customer beyond the first thousand.
    pub fn last_name_of_load(&mut self) -> String {
        last_name(self.non_uniform(255, C_LAST_LOAD, 0, 999))
    }

    /// Appends letters and digits, between so many and so many.
    pub fn letters(&mut self, out: &mut Vec<u8>, low: i64, high: i64) {
        let mut left = self.uniform(low, high);
        while left > 0 {
            let mut bits: u64 = self.0.random();
            for _ in 0..left.min(10) {
                out.push(LETTERS[(bits & 63) as usize]);
                bits >>= 6;
            }
            left -= 10;
        }
    }

    /// Appends digits.
    pub fn digits(&mut self, out: &mut Vec<u8>, count: usize) {
        for _ in 0..count {
            out.push(b'0' + self.uniform(0, 9) as u8);
        }
    }

    /// Puts values into random order.
    pub fn shuffle(&mut self, values: &mut [i64]) {
        for last in (1..values.len()).rev() {
            values.swap(last, self.uniform(0, last as i64) as usize);
        }
    }
}

/// The last name with this number, 0 to 999.
pub fn last_name(number: i64) -> String {
    let syllable = |n: i64| SYLLABLES[(n % 10) as usize];
    [number / 100, number / 10, number].map(syllable).concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_standards() {
        assert_eq!(last_name(371), "PRICALLYOUGHT");
        assert_eq!(last_name(40), "BARPRESBAR");
    }

    #[test]
    fn values_stay_in_their_bounds() {
        let mut random = Random::new(1);
        for _ in 0..10_000 {
            assert!((1..=60).contains(&random.customer(60)));
            assert!((1..=1000).contains(&random.item(1000)));
            assert!(random.exponential(5.0) <= 50.0);
        }
        let mut text = Vec::new();
        random.letters(&mut text, 24, 24);
        assert!(text.len() == 24 && text.iter().all(u8::is_ascii_alphanumeric));
    }
}
