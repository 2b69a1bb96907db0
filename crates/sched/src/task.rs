//! Tasks: who can wait, for what, and who may disturb it.

use std::sync::Arc;
use std::time::Instant;

use base::{Result, WaitEvent};

/// A session or a background thread, as the scheduler sees it: its wait slot (event, since when,
/// object), its pending interrupts, and how to wake it. Lives as long as the session.
pub struct Task {}

/// Shared handle.
pub type TaskRef = Arc<Task>;

/// Why a [`park`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// Somebody called [`Task::unpark`].
    Unparked,
    /// The deadline passed.
    TimedOut,
    /// An interrupt is pending; the caller undoes its registration and calls [`check_interrupts`].
    Interrupted,
}

/// What can be asked of a task from outside. Raised by [`check_interrupts`] as an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Interrupt {
    /// `57014 canceling statement due to user request`.
    Cancel = 1,
    /// `57P01 terminating connection due to administrator command`, fatal.
    Terminate = 2,
    /// `57014 canceling statement due to statement timeout`.
    StatementTimeout = 4,
    /// The client is gone; `08006`, fatal.
    ClientGone = 8,
    /// `25P03`, fatal.
    IdleInTransactionTimeout = 16,
    /// `57P05`, fatal.
    IdleSessionTimeout = 32,
}

impl Task {
    /// A task for a new session or thread; `kind` is its `backend_type`.
    pub fn new(_kind: &'static str) -> TaskRef {
        todo!()
    }

    /// Makes the task runnable; if it isn't parked its next `park` returns at once. Any thread.
    pub fn unpark(&self) {
        todo!()
    }

    /// Sets an interrupt and wakes the task if it waits interruptibly.
    pub fn interrupt(&self, _what: Interrupt) {
        todo!()
    }

    /// Forgets an interrupt (a cancel that came between statements).
    pub fn clear_interrupt(&self, _what: Interrupt) {
        todo!()
    }

    /// The wait in progress and when it began.
    pub fn wait(&self) -> Option<(WaitEvent, Instant)> {
        todo!()
    }

    /// Arms or (None) disarms the statement timeout, which raises [`Interrupt::StatementTimeout`].
    pub fn set_statement_deadline(&self, _at: Option<Instant>) {
        todo!()
    }

    /// Number of waits so far and their total in nanoseconds.
    pub fn wait_totals(&self) -> (u64, u64) {
        todo!()
    }
}

/// The running task. Outside any task (a test's thread) one is made for the thread.
pub fn current() -> TaskRef {
    todo!()
}

/// Waits until unparked, the deadline, or an interrupt. The caller has registered itself where its
/// waker looks, and checks its condition again afterwards: wake-ups may be spurious.
pub fn park(_event: WaitEvent, _deadline: Option<Instant>) -> Wake {
    todo!()
}

/// As [`park`], but interrupts stay pending and do not end the wait.
pub fn park_uninterruptible(_event: WaitEvent, _deadline: Option<Instant>) -> Wake {
    todo!()
}

/// Labels a blocking system call (page read, file sync) with its wait event; blocks the thread.
pub fn io_wait<R>(_event: WaitEvent, _f: impl FnOnce() -> R) -> R {
    todo!()
}

/// Raises a pending interrupt as an error, and yields the worker when the time slice is used up
/// and others are ready. Called in every loop that may be long; costs about a nanosecond.
///
/// # Errors
/// See [`Interrupt`].
#[inline]
pub fn check_interrupts() -> Result<()> {
    todo!()
}

/// Lets the worker run others first.
pub fn yield_now() {
    todo!()
}

/// Starts a background thread with its own task. `kind` is its `backend_type` and thread name.
pub fn spawn_thread(
    _kind: &'static str,
    _f: impl FnOnce() + Send + 'static,
) -> std::thread::JoinHandle<()> {
    todo!()
}
