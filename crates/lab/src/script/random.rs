//! Random numbers by the distributions that scripts ask for, from a generator of each client's own.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Zipf};

/// A client's source of randomness; the same seed gives the same numbers.
pub struct Random {
    source: SmallRng,
    /// The Zipf distribution that was asked for last, ready to draw from.
    zipf: Option<(i64, f64, Zipf<f64>)>,
}

impl Random {
    /// From a seed.
    pub fn new(seed: u64) -> Random {
        Random { source: SmallRng::seed_from_u64(seed), zipf: None }
    }

    /// Uniform in `low..=high`.
    pub fn uniform(&mut self, low: i64, high: i64) -> i64 {
        self.source.random_range(low..=high)
    }

    /// In `low..=high`, falling off exponentially: `parameter` says how steeply.
    pub fn exponential(&mut self, low: i64, high: i64, parameter: f64) -> i64 {
        let cut = (-parameter).exp();
        let uniform = 1.0 - self.source.random::<f64>();
        let share = -(cut + (1.0 - cut) * uniform).ln() / parameter;
        scale(low, high, share)
    }

    /// In `low..=high`, normal around the middle, cut off at `parameter` standard deviations.
    pub fn gaussian(&mut self, low: i64, high: i64, parameter: f64) -> i64 {
        loop {
            let (a, b) = (1.0 - self.source.random::<f64>(), self.source.random::<f64>());
            let deviation = (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).sin();
            if (-parameter..parameter).contains(&deviation) {
                return scale(low, high, (deviation + parameter) / (2.0 * parameter));
            }
        }
    }

    /// In `low..=high`; the k-th value's share falls with k to the power of `parameter`.
    pub fn zipfian(&mut self, low: i64, high: i64, parameter: f64) -> i64 {
        let count = high - low + 1;
        let ready = self.zipf.filter(|(n, s, _)| *n == count && *s == parameter);
        let distribution = match ready {
            Some((_, _, distribution)) => distribution,
            None => {
                let made = Zipf::new(count as f64, parameter).expect(
                    "at least one value and a parameter above 0 were checked by the caller",
                );
                self.zipf = Some((count, parameter, made));
                made
            }
        };
        let rank = distribution.sample(&mut self.source) as i64;
        low + rank.clamp(1, count) - 1
    }
}

/// `share` in 0..1 of the range.
fn scale(low: i64, high: i64, share: f64) -> i64 {
    let width = (high - low) as f64 + 1.0;
    (low as f64 + width * share).floor().clamp(low as f64, high as f64) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(mut draw: impl FnMut(&mut Random) -> i64) -> Vec<f64> {
        let mut random = Random::new(1);
        let mut counts = vec![0.0; 10];
        for _ in 0..20_000 {
            counts[(draw(&mut random) - 1) as usize] += 1.0 / 20_000.0;
        }
        counts
    }

    /// Against each distribution's own formula for the shares of ten values.
    #[test]
    fn distributions_have_their_shares() {
        let close = |found: Vec<f64>, expected: &dyn Fn(f64) -> f64| {
            for (i, share) in found.iter().enumerate() {
                let expected = expected(i as f64);
                assert!((share - expected).abs() < 0.015, "{i}: {share} against {expected}");
            }
        };
        close(shares(|r| r.uniform(1, 10)), &|_| 0.1);
        let tail = |x: f64| (-2.5 * x / 10.0).exp();
        close(shares(|r| r.exponential(1, 10, 2.5)), &|i| {
            (tail(i) - tail(i + 1.0)) / (1.0 - (-2.5f64).exp())
        });
        let sum: f64 = (1..=10).map(|k| f64::from(k).powf(-1.2)).sum();
        close(shares(|r| r.zipfian(1, 10, 1.2)), &|i| (i + 1.0).powf(-1.2) / sum);
        let gauss = shares(|r| r.gaussian(1, 10, 2.5));
        assert!((gauss[4] - 0.2).abs() < 0.015 && (gauss[5] - 0.2).abs() < 0.015, "{gauss:?}");
        assert!((gauss[0] - 0.0168).abs() < 0.006, "{gauss:?}");
    }
}
