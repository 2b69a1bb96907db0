//! A client that fails to log in waits before it is told, and longer each time: guessing passwords takes time, and
//! holds nothing but a small object meanwhile.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use sched::SpinLock;

/// Addresses that are remembered.
const KEPT: usize = 4096;
/// Failures this old are forgotten.
const FORGOTTEN: Duration = Duration::from_secs(60);
/// The delay doubles at most so many times.
const DOUBLINGS: u32 = 4;

/// Failures by address; those over Unix sockets are one.
#[derive(Default)]
pub struct Failures(SpinLock<HashMap<Option<IpAddr>, (u32, Instant)>>);

impl Failures {
    /// Notes a failure; how long the client is to wait for the answer, `first` the first time.
    pub fn note(&self, from: Option<IpAddr>, first: Duration, now: Instant) -> Duration {
        let mut all = self.0.lock();
        if all.len() >= KEPT && !all.contains_key(&from) {
            all.retain(|_, (_, last)| now.duration_since(*last) < FORGOTTEN);
            if all.len() >= KEPT {
                // So many at once: everybody waits longest.
                return first * (1 << DOUBLINGS);
            }
        }
        let (count, last) = all.entry(from).or_insert((0, now));
        if now.duration_since(*last) >= FORGOTTEN {
            *count = 0;
        }
        let delay = first * (1 << (*count).min(DOUBLINGS));
        (*count, *last) = (count.saturating_add(1), now);
        delay
    }

    /// A client of this address has shown who it is.
    pub fn forget(&self, from: Option<IpAddr>) {
        let mut all = self.0.lock();
        if !all.is_empty() {
            all.remove(&from);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_a_bound_and_are_forgotten() {
        let failures = Failures::default();
        let here: Option<IpAddr> = "10.0.0.1".parse().ok();
        let (first, now) = (Duration::from_millis(10), Instant::now());
        let note = |from, now| failures.note(from, first, now).as_millis();
        let delays: Vec<u128> = (0..7).map(|_| note(here, now)).collect();
        assert_eq!(delays, [10, 20, 40, 80, 160, 160, 160]);
        assert_eq!(note(None, now), 10, "others are not made to wait");
        assert_eq!(note(here, now + FORGOTTEN), 10);
        failures.forget(here);
        assert_eq!(failures.note(here, first, now).as_millis(), 10);
    }
}
