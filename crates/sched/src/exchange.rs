//! Two things that the threads of a parallel plan share, and all that they wait for there: a buffer that they fill in a
//! round, and the end of the helpers.
//!
//! ```text
//!   leader   begin ─ put, put, … ─ wait ───────────────────────────▶ the buffer is handed up, then the next round
//!   helper   (begin) ─ put, put, … until it is full, or at the end ─ end
//! ```
//!
//! * Nobody waits for room: a thread that finds the buffer full ends its part of the round. So a buffer holds at most one
//!   item of each thread more than it should.
//! * The leader waits for helpers, helpers for nobody. An interrupt of the leader doesn't end its wait, but tells it
//!   to end the helpers.

use base::WaitEvent;

use crate::seam::{AtomicU64, Ordering, TaskRef, Wake, current, park, park_uninterruptible};
use crate::spin::SpinLock;

/// A buffer for a round: items until they weigh enough.
pub struct Exchange<T> {
    items: SpinLock<Vec<T>>,
    held: AtomicU64,
    most: u64,
}

impl<T> Exchange<T> {
    /// Empty; full when the items weigh so much.
    pub fn new(most: u64) -> Exchange<T> {
        Exchange { items: SpinLock::new(Vec::new()), held: AtomicU64::new(0), most }
    }

    /// Adds an item of this weight, even if that is too much.
    pub fn put(&self, item: T, weight: u64) {
        self.held.fetch_add(weight.max(1), Ordering::Relaxed);
        self.items.lock().push(item);
    }

    /// Whether the round is over.
    pub fn is_full(&self) -> bool {
        self.held.load(Ordering::Relaxed) >= self.most
    }

    /// The items.
    pub fn into_items(self) -> Vec<T> {
        self.items.into_inner()
    }
}

/// The helpers that run for a leader.
pub struct Running {
    leader: TaskRef,
    count: AtomicU64,
}

impl Running {
    /// None yet, for the task that calls.
    pub fn new() -> Running {
        Running { leader: current(), count: AtomicU64::new(0) }
    }

    /// One more is about to start.
    pub fn begin(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// One ends, or was not to be had. What it has borrowed from the leader may be gone afterwards.
    pub fn end(&self) {
        let leader = self.leader.clone();
        self.count.fetch_sub(1, Ordering::Release);
        leader.unpark();
    }

    /// Whether none runs.
    pub fn is_over(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// Waits until none runs. At an interrupt asks `interrupted` whether the helpers are to go on; when not, that is the
    /// outcome, and nothing is asked any more.
    ///
    /// # Errors
    /// The function's.
    pub fn wait<E>(
        &self,
        event: WaitEvent,
        mut interrupted: impl FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        let mut outcome = Ok(());
        while !self.is_over() {
            if outcome.is_err() {
                park_uninterruptible(event, None);
            } else if park(event, None) == Wake::Interrupted {
                outcome = interrupted();
            }
        }
        outcome
    }
}

impl Default for Running {
    fn default() -> Running {
        Running::new()
    }
}
