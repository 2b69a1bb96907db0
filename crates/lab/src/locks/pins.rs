//! Pinning and unpinning a buffer. The frame's state word is laid out as in `storage::buffer`, and
//! what is done to it is what is done there: look at the usage, add a pin (and usage below its
//! bound), look whether the frame is the one that was meant, take the pin back.
//!
//! | primitive  | pin | unpin |
//! | --- | --- | --- |
//! | `pin-add`  | one add before it is known what lives in the frame | one subtract |
//! | `pin-cas`  | compare-and-swap until it works | likewise |
//! | `pin-both` | compare-and-swap | one subtract: the server's `buffer_pin_mode = cas` |

use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;

use super::bench::{Me, Operation};

const PIN: u64 = 1;
const USAGE: u64 = 1 << 24;
const USAGES: u64 = 0xffff << 24;
const USAGE_MAX: u64 = 5 * USAGE;
const CLAIMED: u64 = 1 << 40;
const NAME: u64 = 42;

/// State and name, on one line as in a frame.
struct Frame {
    state: AtomicU64,
    name: AtomicU64,
}

/// How the word is changed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Add,
    Cas,
}

/// Frames that threads pin: one for all, or one each.
pub struct Pins<const PIN_BY_CAS: bool, const UNPIN_BY_CAS: bool> {
    frames: Box<[CachePadded<Frame>]>,
}

/// By add and by subtract.
pub type PinAdd = Pins<false, false>;
/// Both by compare-and-swap.
pub type PinCas = Pins<true, true>;
/// Pin by compare-and-swap, unpin by subtract.
pub type PinBoth = Pins<true, false>;

impl<const PIN_BY_CAS: bool, const UNPIN_BY_CAS: bool> Pins<PIN_BY_CAS, UNPIN_BY_CAS> {
    /// Thread i pins frame i modulo `frames`.
    pub fn new(frames: u32) -> Self {
        let frame =
            |_| CachePadded::new(Frame { state: AtomicU64::new(0), name: AtomicU64::new(NAME) });
        Pins { frames: (0..frames).map(frame).collect() }
    }
}

impl Frame {
    #[inline]
    fn pin(&self, by: By) -> bool {
        let mut seen = self.state.load(Ordering::Relaxed);
        let step = |s: u64| if s & USAGES < USAGE_MAX { PIN + USAGE } else { PIN };
        let before = if by == By::Add {
            self.state.fetch_add(step(seen), Ordering::AcqRel)
        } else {
            loop {
                let (done, failed) = (Ordering::AcqRel, Ordering::Relaxed);
                let new = seen + step(seen);
                match self.state.compare_exchange_weak(seen, new, done, failed) {
                    Ok(before) => break before,
                    Err(now) => seen = now,
                }
            }
        };
        before & CLAIMED == 0 && self.name.load(Ordering::Relaxed) == NAME
    }

    #[inline]
    fn unpin(&self, by: By) {
        if by == By::Add {
            self.state.fetch_sub(PIN, Ordering::Release);
            return;
        }
        let mut seen = self.state.load(Ordering::Relaxed);
        while let Err(now) =
            self.state.compare_exchange_weak(seen, seen - PIN, Ordering::Release, Ordering::Relaxed)
        {
            seen = now;
        }
    }
}

impl<const PIN_BY_CAS: bool, const UNPIN_BY_CAS: bool> Operation
    for Pins<PIN_BY_CAS, UNPIN_BY_CAS>
{
    #[inline]
    fn once(&self, me: &mut Me, entered: impl FnOnce()) {
        let by = |cas| if cas { By::Cas } else { By::Add };
        let frame = &self.frames[me.thread % self.frames.len()];
        let found = frame.pin(by(PIN_BY_CAS));
        debug_assert!(found, "nobody claims these frames");
        entered();
        me.hold();
        frame.unpin(by(UNPIN_BY_CAS));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_pins_are_taken_back() {
        for by in [By::Add, By::Cas] {
            let frame = Frame { state: AtomicU64::new(0), name: AtomicU64::new(NAME) };
            for _ in 0..10 {
                assert!(frame.pin(by));
            }
            assert_eq!(frame.state.load(Ordering::Relaxed), 10 * PIN + USAGE_MAX);
            (0..10).for_each(|_| frame.unpin(by));
            assert_eq!(frame.state.load(Ordering::Relaxed), USAGE_MAX);
        }
        let claimed = Frame { state: AtomicU64::new(CLAIMED), name: AtomicU64::new(NAME) };
        assert!(!claimed.pin(By::Add));
    }
}
