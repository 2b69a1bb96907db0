//! The last minutes in memory, and the events that the next second will have.

use std::collections::VecDeque;
use std::sync::Arc;

use base::Error;
use sched::SpinLock;
use sql::secrets::in_message;

use super::plans::Plans;
use super::slice::{Event, Slice};

/// Seconds that are kept in memory.
const KEPT: usize = 300;
/// Events between two seconds; more are not kept.
const EVENTS_MAX: usize = 200;
/// Length of an event's text.
const EVENT_BYTES: usize = 500;
/// Errors are noted up to so many events.
const ERRORS_MAX: usize = 10;
/// The server's memory of its past.
#[derive(Default)]
pub struct History {
    recent: SpinLock<VecDeque<Arc<Slice>>>,
    events: SpinLock<Vec<Event>>,
    /// The plans of statements.
    pub plans: Plans,
}

impl History {
    /// Notes that something happened now. `pid`: the session; 0: the server.
    pub fn note(&self, kind: &str, pid: i32, text: &str) {
        let text = in_message(text);
        let text: Arc<str> = text[..text.floor_char_boundary(EVENT_BYTES)].into();
        let event = Event { at: crate::server::now(), kind: kind.into(), pid, text };
        let mut events = self.events.lock();
        if events.len() < EVENTS_MAX {
            events.push(event);
        }
    }

    /// Notes an error, unless there have been many since a second ago.
    pub fn note_error(&self, pid: i32, error: &Error) {
        if self.events.lock().len() < ERRORS_MAX {
            let text = format!("{}: {}", error.code().as_str(), error.message());
            self.note("error", pid, &text);
        }
    }

    pub(super) fn take_events(&self) -> Vec<Event> {
        std::mem::take(&mut *self.events.lock())
    }

    pub(super) fn keep(&self, slice: Slice) {
        let slice = Arc::new(slice);
        let mut recent = self.recent.lock();
        recent.push_back(slice);
        let gone = if recent.len() > KEPT { recent.pop_front() } else { None };
        drop(recent);
        drop(gone);
    }

    /// The slices of a range (microseconds since 2000) that are in memory, and from when on all are.
    pub fn recent(&self, from: i64, to: i64) -> (Vec<Arc<Slice>>, i64) {
        let recent = self.recent.lock();
        let begins = recent.front().map_or(i64::MAX, |slice| slice.from());
        let wanted = |slice: &&Arc<Slice>| slice.at > from && slice.from() < to;
        (recent.iter().filter(wanted).cloned().collect(), begins)
    }
}
