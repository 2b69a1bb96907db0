//! The queue of events in order of time, and of arrival within one moment, so that a run
//! depends on its seed alone.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::coherence::{LineId, Request};
use super::machine::Time;

/// Something that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// A processor's operation is done: its program goes on.
    Resume(usize),
    /// A line's directory entry takes up its next request.
    Serve(LineId),
    /// A line arrives at the one who asked for it.
    Grant(LineId, Request),
    /// A processor has watched a line long enough; the number says which time.
    Alarm(usize, u64),
}

/// The events to come.
#[derive(Default)]
pub struct Queue {
    now: Time,
    pushed: u64,
    heap: BinaryHeap<Reverse<(Time, u64, Event)>>,
}

impl Queue {
    /// The present.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Lets something happen `after` the present.
    pub fn push(&mut self, after: Time, event: Event) {
        self.pushed += 1;
        self.heap.push(Reverse((self.now + after, self.pushed, event)));
    }

    /// Goes on to the next event.
    pub fn pop(&mut self) -> Option<Event> {
        let Reverse((at, _, event)) = self.heap.pop()?;
        debug_assert!(at >= self.now);
        self.now = at;
        Some(event)
    }
}
