//! The monotonic clock as nanoseconds since the first use of it in this process: fits 56 bits for
//! two years, so that a wait's event and its beginning share one atomic word.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// A deadline that never comes.
pub const NEVER: u64 = u64::MAX;

static EPOCH: OnceLock<Instant> = OnceLock::new();

fn epoch() -> Instant {
    *EPOCH.get_or_init(Instant::now)
}

/// Nanoseconds since the process's epoch.
pub fn now_ns() -> u64 {
    // The epoch is made first: an instant taken before it would count as 0 forever.
    let epoch = epoch();
    Instant::now().saturating_duration_since(epoch).as_nanos() as u64
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
