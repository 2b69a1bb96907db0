//! Profiles on demand, for `pg_stacks`, `pg_flamegraph` and the page.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use base::{Result, WaitEvent, err};
use sched::{SpinLock, TaskRef};

use super::{Folded, cpu, waits};
use crate::server::Server;

/// Longest profile, in seconds.
const SECONDS_MAX: f64 = 600.0;

/// The kind of samples that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Processor time, by what ran.
    Cpu,
    /// Time waited, by statement.
    Waits,
    /// Time waited, by session and statement.
    SessionWaits,
}

/// A profile that is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request {
    /// The kind of samples that are counted.
    pub kind: Kind,
    /// For how long, in seconds.
    pub seconds: f64,
}

impl Request {
    /// Checks what a user asks for.
    ///
    /// # Errors
    /// `22023`.
    pub fn new(seconds: f64, kind: &str) -> Result<Request> {
        let kind = match kind {
            "cpu" => Kind::Cpu,
            "waits" => Kind::Waits,
            "session_waits" => Kind::SessionWaits,
            other => {
                return Err(err!(INVALID_PARAMETER_VALUE, "invalid kind of profile: \"{other}\"")
                    .hint("Available kinds: cpu, waits, session_waits."));
            }
        };
        if !(seconds > 0.0 && seconds <= SECONDS_MAX) {
            return Err(err!(
                INVALID_PARAMETER_VALUE,
                "a profile takes more than 0 and at most {SECONDS_MAX} seconds"
            ));
        }
        Ok(Request { kind, seconds })
    }

    /// Takes it on this thread, which has nothing else to do meanwhile.
    ///
    /// # Errors
    /// As [`cpu::take`].
    pub fn take(&self, server: &Server, cancelled: &AtomicBool) -> Result<Folded> {
        let length = Duration::from_secs_f64(self.seconds);
        match self.kind {
            Kind::Cpu => cpu::take(server, length, cancelled),
            Kind::Waits | Kind::SessionWaits => waits::take(server, self.kind, length, cancelled),
        }
    }

    /// Takes it on a thread of its own (names of functions are looked up in the program's file, which
    /// takes a while and a large stack), for a statement that waits for it and can be cancelled.
    ///
    /// # Errors
    /// As [`Request::take`]; interrupts.
    pub fn take_for_statement(self, server: &Server) -> Result<Folded> {
        let ending = || base::Error::internal("a profile of a server that is not running");
        let server = server.profiler.server.get().and_then(Weak::upgrade).ok_or_else(ending)?;
        let shared = Arc::new(Shared {
            waiter: sched::current(),
            cancelled: AtomicBool::new(false),
            result: SpinLock::new(None),
        });
        let worker = shared.clone();
        sched::spawn_thread("profiler", move || worker.run(&server, self));
        let _cancel = CancelOnDrop(&shared);
        loop {
            if let Some(result) = shared.result.lock().take() {
                return result;
            }
            sched::check_interrupts()?;
            sched::park(WaitEvent::TimeoutProfileSampling, None);
        }
    }
}

/// Between a statement and the thread that works for it.
struct Shared {
    waiter: TaskRef,
    cancelled: AtomicBool,
    result: SpinLock<Option<Result<Folded>>>,
}

impl Shared {
    fn run(&self, server: &Server, request: Request) {
        // Wakes the statement up also when this panics; it then finds no result and says so.
        let _wake = WakeOnDrop(self);
        let result = request.take(server, &self.cancelled);
        *self.result.lock() = Some(result);
    }
}

struct CancelOnDrop<'a>(&'a Shared);

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        self.0.cancelled.store(true, Ordering::Release);
    }
}

struct WakeOnDrop<'a>(&'a Shared);

impl Drop for WakeOnDrop<'_> {
    fn drop(&mut self) {
        let mut result = self.0.result.lock();
        // Taken already: the statement is further on.
        if std::thread::panicking() && result.is_none() {
            *result = Some(Err(base::Error::internal("the profiler failed; see the log")));
        }
        drop(result);
        self.0.waiter.unpark();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_refused() {
        for (seconds, kind) in
            [(0.0, "cpu"), (-1.0, "cpu"), (f64::NAN, "cpu"), (1e9, "cpu"), (1.0, "x")]
        {
            assert_eq!(Request::new(seconds, kind).unwrap_err().code().as_str(), "22023");
        }
        let request = Request { kind: Kind::Waits, seconds: 0.5 };
        assert_eq!(Request::new(0.5, "waits").unwrap(), request);
    }
}
