//! Waiting for a socket inside a run.

use std::os::fd::RawFd;
use std::sync::atomic::Ordering;
use std::time::Instant;

use base::{Error, Result, WaitEvent};

use super::conn::{Conn, HANGUP, READABLE, WANT_READ, WANT_WRITE, WRITABLE};
use super::{READ_EVENTS, WRITE_EVENTS};
use crate::local::local;
use crate::sys;
use crate::task::{check_interrupts, park};

/// Parks the running source until its socket has more to read (or has ended). Inside
/// [`super::Source::run`] only; on a plain thread it waits for any descriptor. Call it after a
/// read found nothing; it may return early.
///
/// # Errors
/// A pending interrupt's error.
pub fn wait_readable(fd: RawFd, event: WaitEvent) -> Result<()> {
    match running()? {
        Some(conn) => wait_flag(conn, READABLE | HANGUP, READABLE, WANT_READ, event),
        None => local().current().poll_fd(fd, libc::POLLIN | libc::POLLRDHUP, event),
    }
}

/// As [`wait_readable`], and returns when `done` says so after a wake-up, and at the deadline.
///
/// # Errors
/// A pending interrupt's error.
pub fn wait_readable_or(
    fd: RawFd,
    event: WaitEvent,
    deadline: Option<Instant>,
    done: &dyn Fn() -> bool,
) -> Result<()> {
    let Some(conn) = running()? else {
        return local().current().poll_fd(fd, libc::POLLIN | libc::POLLRDHUP, event);
    };
    conn.flags.fetch_or(WANT_READ, Ordering::SeqCst);
    let result = loop {
        let flags = conn.flags.fetch_and(!READABLE, Ordering::SeqCst);
        let due = deadline.is_some_and(|deadline| Instant::now() >= deadline);
        if flags & (READABLE | HANGUP) != 0 || due || done() {
            break Ok(());
        }
        if let Err(error) = check_interrupts() {
            break Err(error);
        }
        park(event, deadline);
    };
    conn.flags.fetch_and(!WANT_READ, Ordering::SeqCst);
    result
}

/// Parks the running source until its socket takes more output. Inside [`super::Source::run`]
/// only; on a plain thread it waits for any descriptor. Call it after a write found no room; it
/// may return early.
///
/// # Errors
/// A pending interrupt's error.
pub fn wait_writable(fd: RawFd, event: WaitEvent) -> Result<()> {
    let Some(conn) = running()? else {
        return local().current().poll_fd(fd, libc::POLLOUT, event);
    };
    conn.flags.fetch_and(!WRITABLE, Ordering::SeqCst);
    watch(conn, WRITE_EVENTS)?;
    let result = wait_flag(conn, WRITABLE, WRITABLE, WANT_WRITE, event);
    watch(conn, READ_EVENTS)?;
    result
}

/// The connection whose coroutine runs; None on a plain thread.
fn running() -> Result<Option<&'static Conn>> {
    let local = local();
    if !local.on_coroutine() {
        return Ok(None);
    }
    match local.current().link() {
        Some(conn) => Ok(Some(conn)),
        None => Err(Error::internal("a connection that has ended waits for its socket")),
    }
}

fn watch(conn: &'static Conn, events: u32) -> Result<()> {
    let Some(home) = conn.home() else { return Ok(()) };
    sys::epoll_ctl(home.epoll, libc::EPOLL_CTL_MOD, conn.fd(), events, conn.address() as u64)
        .map_err(|e| Error::io("poll a connection", &e))
}

/// Waits until one of `flags` is set and takes those of them in `taken`. `want` tells the one who
/// sets flags that somebody waits; flags are looked at again after it is set.
fn wait_flag(
    conn: &'static Conn,
    flags: u32,
    taken: u32,
    want: u32,
    event: WaitEvent,
) -> Result<()> {
    conn.flags.fetch_or(want, Ordering::SeqCst);
    let result = loop {
        if conn.flags.fetch_and(!taken, Ordering::SeqCst) & flags != 0 {
            break Ok(());
        }
        if let Err(error) = check_interrupts() {
            break Err(error);
        }
        park(event, None);
    };
    conn.flags.fetch_and(!want, Ordering::SeqCst);
    result
}
