//! Workers: epoll, run queues, coroutine pool, timers.

use std::os::fd::RawFd;
use std::sync::Arc;

use base::{Result, WaitEvent};

use crate::task::TaskRef;

/// Why a source runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readiness {
    /// The socket has something to read (or ended).
    pub readable: bool,
    /// Somebody called [`Workers::wake`], or an interrupt is pending.
    pub woken: bool,
    /// The peer hung up.
    pub hangup: bool,
}

/// What a worker polls: a connection with its session.
pub trait Source: Send + Sync + 'static {
    /// The task that `run` runs as.
    fn task(&self) -> &TaskRef;

    /// Runs until there is nothing more to do now: reads, decodes, executes, writes. Called on a
    /// coroutine (or the session's thread), never twice at once. Sockets are edge-triggered: read
    /// until EAGAIN or a short read. Returns false when the connection has ended; the source is
    /// then dropped (its fd is the source's to close).
    fn run(&self, ready: Readiness) -> bool;
}

/// The pool of workers.
pub struct Workers {}

impl Workers {
    /// Starts `count` workers (0: one a core).
    pub fn start(_count: usize) -> Result<Arc<Workers>> {
        todo!()
    }

    /// Gives a connected, non-blocking socket to the least loaded worker, or, when
    /// `session_model = thread`, to a thread of its own.
    pub fn add(&self, _fd: RawFd, _source: Arc<dyn Source>) -> Result<()> {
        todo!()
    }

    /// Runs the source soon, though its socket may not be ready (terminate, time-outs, notifies).
    pub fn wake(&self, _task: &TaskRef) {
        todo!()
    }

    /// Runs the source at this time unless it ran before (idle time-outs); None cancels.
    pub fn wake_at(&self, _task: &TaskRef, _at: Option<std::time::Instant>) {
        todo!()
    }

    /// Ends the workers once their sources have ended.
    pub fn shutdown(&self) {
        todo!()
    }
}

/// Parks the running source until its socket has more to read. Inside [`Source::run`] only.
///
/// # Errors
/// A pending interrupt's error.
pub fn wait_readable(_fd: RawFd, _event: WaitEvent) -> Result<()> {
    todo!()
}

/// Parks the running source until its socket takes more output. Inside [`Source::run`] only.
///
/// # Errors
/// A pending interrupt's error.
pub fn wait_writable(_fd: RawFd, _event: WaitEvent) -> Result<()> {
    todo!()
}
