//! The monotonic clock as nanoseconds since the first use of it in this process: fits 56 bits for
//! two years, so that a wait's event and its beginning share one atomic word.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::local::local;
use crate::sys::monotonic_ns;

/// Bits that a reading takes.
pub(crate) const BITS: u32 = 56;

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

/// When something happened that has only just happened: the reading that this thread made for it (see
/// [`keep_recent`]), else a new one. Asked twice, the second answer is a new reading.
pub fn recent_ns() -> u64 {
    match local().reading.replace(0) {
        0 => now_ns(),
        kept => kept,
    }
}

/// As [`recent_ns`], but the answer stays for the next who asks.
pub(crate) fn shared_ns() -> u64 {
    let reading = &local().reading;
    if reading.get() == 0 {
        reading.set(now_ns());
    }
    reading.get()
}

/// The running session has just noted that at `ns` it had nothing more to do. If that stays so its wait for its
/// client began then, and the clock need not be read again; 0: it does something.
pub fn note_idle(ns: u64) {
    local().idle_since.set(ns);
}

/// The moment that [`note_idle`] noted, once.
pub(crate) fn idle_since() -> Option<u64> {
    Some(local().idle_since.replace(0)).filter(|ns| *ns != 0)
}

/// Code that follows at once on the moment `ns` need not read the clock again: it is the next
/// [`recent_ns`], unless the running task waits before.
pub fn keep_recent(ns: u64) {
    local().reading.set(ns);
}

/// Nanoseconds from 1970 to the epoch, and when that was last looked at.
static WALL: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// The wall clock is looked at again after this time: so late is it noticed that somebody set it.
const WALL_AGE_NS: u64 = 100_000_000;

/// The wall clock's time in nanoseconds since 1970, of a time on this scale that is about now.
pub fn wall_ns(ns: u64) -> u64 {
    let [epoch, looked] = [0, 1].map(|i| WALL[i].load(Ordering::Relaxed));
    if epoch != 0 && ns.abs_diff(looked) < WALL_AGE_NS {
        return epoch + ns;
    }
    let now = now_ns();
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64;
    let epoch = wall.saturating_sub(now);
    WALL[0].store(epoch, Ordering::Relaxed);
    WALL[1].store(now, Ordering::Relaxed);
    epoch + ns
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

    #[test]
    fn a_kept_reading_is_used_once() {
        now_ns();
        keep_recent(1);
        assert_eq!(recent_ns(), 1);
        assert!(recent_ns() > 1);
    }

    #[test]
    fn a_wait_makes_kept_readings_old() {
        now_ns();
        note_idle(1);
        assert_eq!((idle_since(), idle_since()), (Some(1), None));
        keep_recent(1);
        note_idle(1);
        crate::task::park(base::WaitEvent::TimeoutPgSleep, Some(Instant::now()));
        assert!(recent_ns() > 1);
        assert_eq!(idle_since(), None);
    }

    #[test]
    fn the_wall_clock_is_the_systems() {
        let system = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
        let before = system();
        let wall = wall_ns(now_ns());
        // The two clocks drift apart by some parts in a million between two looks.
        assert!(wall + 100_000 > before && wall < system() + 100_000);
    }
}
