//! Workers: epoll, run queues, coroutine pool, timers, answers to be sent.
//!
//! ```text
//!   epoll event --> Conn.flags --claimed--> ready queue --> coroutine --> Source::run
//!                       |                   (others may steal)   |
//!                       | already active                         | park: suspended, kept in Conn
//!                       v                                        v
//!                  flags stay, waiter unparked <---------- resume queue
//! ```
//!
//! Invariants
//! 1. A connection's `ACTIVE` flag is set by whoever makes it runnable and cleared by the worker
//!    that ran it when no event is left: it is in at most one queue, and `run` never runs twice at
//!    once.
//! 2. A suspended coroutine is resumed only by the worker that started it. One thread at a time serves a worker and
//!    touches its cells ([`crate::tenure`]); a thread that a task holds for long loses the worker to another, and keeps
//!    that task's run until it can send it back to the worker (`watchdog.rs`).
//! 3. A worker that sleeps in epoll has said so (`sleeping`) before it looked at its injection
//!    queue a last time; whoever pushes looks at `sleeping` after the push. One sees the other.
//! 4. A connection's memory is used again only after its home worker has finished the batch of
//!    events that could name it.
//! 5. A connection whose answer the worker is yet to send is active, and in no queue; before a worker
//!    sleeps it has sent all.
//! 6. Who changes the number of workers or the listening sockets counts the change before waking the
//!    workers; a worker looks at the count after it has said that it sleeps. So none sleeps through one.

mod ahead;
mod conn;
mod follow;
mod io;
mod listen;
mod outbox;
mod pool;
mod queue;
mod ring;
mod run;
pub(crate) mod saturation;
mod threads;
mod timers;
mod watchdog;

use std::os::fd::RawFd;

use crate::task::TaskRef;

pub use ahead::{Lines, uses, will_use};
pub use io::{wait_readable, wait_readable_or, wait_writable};
pub use listen::Acceptor;
pub use outbox::leave;
pub use pool::Workers;
pub use saturation::wait_while_saturated;
pub use watchdog::{Held, OnHeld, WorkerState};

pub(crate) use conn::{Conn, nudge};
pub(crate) use queue::{Shared, make_runnable};
pub(crate) use run::{
    Worker, before_blocking, is_alone, slice_check, suspend_parked, suspend_yielded,
};
pub(crate) use threads::look_for_hangup;

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

/// A thing that a worker polls: a connection with its session.
pub trait Source: Send + Sync + 'static {
    /// The task that `run` runs as.
    fn task(&self) -> &TaskRef;

    /// Runs until there is nothing more to do now: reads, decodes, executes, writes. Called on a
    /// coroutine (or the session's thread), never twice at once. Sockets are edge-triggered: read
    /// until EAGAIN or a short read. Returns false when the connection has ended; the source is
    /// then dropped. Its fd is the source's to close, but not before that: the socket is taken out of
    /// the epoll set by its number, which after a close may be another connection's. After a run that was told of a hang-up,
    /// `run` is called again until it returns false.
    fn run(&self, ready: Readiness) -> bool;

    /// Takes back what the socket did not take of an answer that the last run had left ([`leave`]); it is
    /// run again soon, to send that first. On a worker's own stack: nothing here waits.
    ///
    /// # Panics
    /// Unless it is implemented; sources that leave nothing need not.
    fn unsent(&self, _answer: &[u8]) {
        unreachable!("a source that leaves answers takes them back");
    }
}

/// The events that epoll watches a socket for. Writability is added only while somebody waits for it:
/// a Unix socket would otherwise report it after every answer that the client reads.
const READ_EVENTS: u32 = (libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLET) as u32;
const WRITE_EVENTS: u32 = READ_EVENTS | libc::EPOLLOUT as u32;

/// Adds a socket to a worker's epoll set.
fn register(set: RawFd, conn: &'static Conn) -> std::io::Result<()> {
    crate::sys::epoll_ctl(set, libc::EPOLL_CTL_ADD, conn.fd(), READ_EVENTS, conn.address() as u64)
}
