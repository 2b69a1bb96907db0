//! The state machine under `park` and `unpark`: two words, and who must wake whom.
//!
//! ```text
//!              begin                     unpark, wake_unless, give_up
//!   RUNNING ---------->  PARKED  ----------------------------------> RUNNING
//!      |  ^                                                           (queued or woken by
//!      |  | begin or end takes it                                      whoever cleared PARKED)
//!      v  |
//!   NOTIFIED (unpark while running)
//! ```
//!
//! * Whoever clears `PARKED` wakes the task: exactly one wake-up for each park, whatever comes at
//!   once.
//! * `unpark` leaves `NOTIFIED`, which the end of that park, or the next park, takes.
//! * An interrupt's bit is set before the state is looked at, and `begin` looks at the bits after it
//!   has set `PARKED` (both sequentially consistent): one of the two sees the other.
//!
//! tests/loom_parking.rs walks through the interleavings.

use crate::seam::{AtomicU32, Ordering};

/// A token from `unpark` that nobody has taken.
const NOTIFIED: u32 = 1;
/// The task waits or is about to.
pub const PARKED: u32 = 2;
/// With PARKED: interrupts don't end the wait.
pub const DEAF: u32 = 4;
/// With PARKED: the thread waits in poll(2), its eventfd in the set, not on the futex.
pub const POLLING: u32 = 8;

/// See the module.
pub struct Parking {
    state: AtomicU32,
    interrupts: AtomicU32,
}

/// How a park begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// A token was there: no wait.
    Token,
    /// An interrupt is pending: no wait.
    Interrupted,
    /// Wait until PARKED is clear, then call `end`.
    Parked,
}

impl Parking {
    /// Running; no token, no interrupt.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Parking {
        Parking { state: AtomicU32::new(0), interrupts: AtomicU32::new(0) }
    }

    /// Takes the token, if there is one.
    #[inline]
    pub fn take_token(&self) -> bool {
        self.state.load(Ordering::Relaxed) & NOTIFIED != 0 && self.end()
    }

    /// The task is about to wait; `how` is PARKED with DEAF or POLLING.
    pub fn begin(&self, how: u32) -> Begin {
        if self.state.compare_exchange(0, how, Ordering::SeqCst, Ordering::SeqCst).is_err() {
            self.state.swap(0, Ordering::SeqCst);
            return Begin::Token;
        }
        if how & DEAF == 0 && self.pending() != 0 && self.give_up(how) {
            return Begin::Interrupted;
        }
        Begin::Parked
    }

    /// The task waits no more: PARKED is clear. True: it has a token, now taken.
    pub fn end(&self) -> bool {
        self.state.swap(0, Ordering::SeqCst) & NOTIFIED != 0
    }

    /// Whether the wait goes on.
    pub fn is_parked(&self) -> bool {
        self.state.load(Ordering::SeqCst) & PARKED != 0
    }

    /// Leaves a token. Some: the caller must wake the task, which waited like this.
    pub fn unpark(&self) -> Option<u32> {
        let before = self.state.swap(NOTIFIED, Ordering::SeqCst);
        (before & PARKED != 0).then_some(before)
    }

    /// Ends a wait without a token, unless the state has one of `masks`. Some: the caller must
    /// wake the task, which waited like this.
    pub fn wake_unless(&self, masks: u32) -> Option<u32> {
        let mut state = self.state.load(Ordering::SeqCst);
        while state & PARKED != 0 && state & masks == 0 {
            match self.state.compare_exchange(state, 0, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(before) => return Some(before),
                Err(now) => state = now,
            }
        }
        None
    }

    /// The waiter itself ends its wait. False: somebody else does, just now.
    pub fn give_up(&self, how: u32) -> bool {
        self.state.compare_exchange(how, 0, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Sets interrupt bits; `wake_unless(DEAF)` must follow unless the task does it itself.
    pub fn raise(&self, bits: u32) {
        self.interrupts.fetch_or(bits, Ordering::SeqCst);
    }

    /// Clears interrupt bits.
    pub fn clear(&self, bits: u32) {
        self.interrupts.fetch_and(!bits, Ordering::SeqCst);
    }

    /// The interrupt bits, in order with `begin`.
    pub fn pending(&self) -> u32 {
        self.interrupts.load(Ordering::SeqCst)
    }

    /// The interrupt bits, soon.
    #[inline]
    pub fn glimpse(&self) -> u32 {
        self.interrupts.load(Ordering::Relaxed)
    }

    /// The word to sleep on.
    #[cfg(not(any(loom, shuttle)))]
    pub fn word(&self) -> &AtomicU32 {
        &self.state
    }
}
