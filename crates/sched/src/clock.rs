//! The monotonic clock as nanoseconds since the first use of it in this process: fits 56 bits for
//! two years, so that a wait's event and its beginning share one atomic word.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::sys::monotonic_ns;

/// A deadline that never comes.
pub const NEVER: u64 = u64::MAX;

/// The epoch, as an instant and as the kernel's clock has it.
static EPOCH: OnceLock<(Instant, u64)> = OnceLock::new();

fn epoch() -> Instant {
    EPOCH.get_or_init(|| (Instant::now(), monotonic_ns())).0
}

/// Nanoseconds since the process's epoch. Read at each wait: the clock is asked without the detour
/// over [`Instant`], whose subtraction costs several times as much as the rest.
pub fn now_ns() -> u64 {
    match EPOCH.get() {
        Some((_, epoch)) => monotonic_ns() - epoch,
        None => to_ns(epoch()),
    }
}

/// The same scale for an [`Instant`].
pub fn to_ns(at: Instant) -> u64 {
    at.saturating_duration_since(epoch()).as_nanos() as u64
}

/// The inverse of [`to_ns`].
pub fn to_instant(ns: u64) -> Instant {
    epoch() + Duration::from_nanos(ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_agree() {
        let ns = now_ns();
        assert_eq!(to_ns(to_instant(ns + 5)), ns + 5);
        assert!(now_ns() >= ns);
    }
}
