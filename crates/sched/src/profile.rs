//! What everybody waited for since the start: for each wait event an exact count, the time, the
//! longest wait and a histogram. Written at the end of each wait, by whoever waited.

use std::sync::atomic::{AtomicU64, Ordering};

use base::WaitEvent;
use base::waits::WAITS;

/// Classes of a histogram: class `i` counts the waits of at least 2^i and less than 2^(i+1)
/// nanoseconds; the last one also the longer ones (from 9 minutes on).
pub const CLASSES: usize = 40;

#[repr(align(128))]
struct Cells {
    count: AtomicU64,
    total_ns: AtomicU64,
    longest_ns: AtomicU64,
    classes: [AtomicU64; CLASSES],
}

static PROFILE: [Cells; WAITS.len()] = [const {
    Cells {
        count: AtomicU64::new(0),
        total_ns: AtomicU64::new(0),
        longest_ns: AtomicU64::new(0),
        classes: [const { AtomicU64::new(0) }; CLASSES],
    }
}; WAITS.len()];

/// The waits for one event since the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitProfile {
    /// The event.
    pub event: WaitEvent,
    /// Finished waits.
    pub count: u64,
    /// Their time in nanoseconds.
    pub total_ns: u64,
    /// The longest of them, in nanoseconds.
    pub longest_ns: u64,
    /// See [`CLASSES`].
    pub classes: [u64; CLASSES],
}

/// The waits for one event.
pub fn wait_profile(event: WaitEvent) -> WaitProfile {
    let cells = &PROFILE[event as usize];
    WaitProfile {
        event,
        count: cells.count.load(Ordering::Relaxed),
        total_ns: cells.total_ns.load(Ordering::Relaxed),
        longest_ns: cells.longest_ns.load(Ordering::Relaxed),
        classes: std::array::from_fn(|i| cells.classes[i].load(Ordering::Relaxed)),
    }
}

/// A wait is over.
pub(crate) fn waited(code: u8, ns: u64) {
    let Some(cells) = PROFILE.get(usize::from(code)) else { return };
    cells.count.fetch_add(1, Ordering::Relaxed);
    cells.total_ns.fetch_add(ns, Ordering::Relaxed);
    // Mostly it is not the longest, and a load is cheaper.
    if cells.longest_ns.load(Ordering::Relaxed) < ns {
        cells.longest_ns.fetch_max(ns, Ordering::Relaxed);
    }
    let class = (ns.max(1).ilog2() as usize).min(CLASSES - 1);
    cells.classes[class].fetch_add(1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_fall_into_their_classes() {
        let event = WaitEvent::ExtensionExtension;
        waited(event as u8, 0);
        waited(event as u8, 1000);
        waited(event as u8, u64::MAX >> 8);
        let profile = wait_profile(event);
        assert_eq!((profile.count, profile.longest_ns), (3, u64::MAX >> 8));
        assert_eq!((profile.classes[0], profile.classes[9], profile.classes[39]), (1, 1, 1));
    }
}
