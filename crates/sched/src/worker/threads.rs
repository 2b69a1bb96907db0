//! `session_model = thread`: each connection on a pthread of its own, as the historical prototype
//! did, so that the two models can be measured side by side.

use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::{Error, Result};

use super::Source;
use super::conn::{Conn, HANGUP, READABLE, WOKEN, WRITABLE};
use super::pool::Pool;
use crate::clock::now_ns;
use crate::task::Task;
use crate::{local, sys};

/// Virtual size; the grammar's recursion runs on this stack, too.
const SESSION_STACK_BYTES: usize = 16 << 20;

/// Starts the connection's thread. `wake_at`: when the source runs without an event.
pub(super) fn start(
    fd: RawFd,
    source: Arc<dyn Source>,
    pool: &Arc<Pool>,
    wake_at: u64,
) -> Result<()> {
    let wakeup = source.task().eventfd()?;
    let conn = Conn::open(fd, source, Arc::clone(pool), None);
    conn.wake_at.store(wake_at, Ordering::SeqCst);
    pool.list(conn);
    let builder = std::thread::Builder::new().name("session".to_owned());
    let started = builder.stack_size(SESSION_STACK_BYTES).spawn(move || main(conn, wakeup));
    match started {
        Ok(_) => Ok(()),
        Err(error) => {
            conn.task().set_link(None);
            pool.forget(conn);
            conn.free();
            Err(Error::io("start a session's thread", &error))
        }
    }
}

fn main(conn: &'static Conn, wakeup: RawFd) {
    local::adopt(conn.task_ref());
    sys::unbind();
    loop {
        if !conn.release() {
            wait_for_work(conn, wakeup);
        }
        if !conn.run_source() {
            break;
        }
    }
    let pool = Arc::clone(conn.pool());
    pool.forget(conn);
    conn.free();
    pool.source_ended();
}

/// Sleeps until the socket has something, somebody called `wake`, or `wake_at` has come. The
/// connection is then active.
fn wait_for_work(conn: &'static Conn, wakeup: RawFd) {
    crate::clock::keep_recent(0);
    loop {
        let mut fds = [
            libc::pollfd { fd: conn.fd(), events: libc::POLLIN | libc::POLLRDHUP, revents: 0 },
            libc::pollfd { fd: wakeup, events: libc::POLLIN, revents: 0 },
        ];
        let at = conn.wake_at.load(Ordering::SeqCst);
        sys::poll(&mut fds, sys::timeout_ms(now_ns(), at));
        let mut flags = flags_of(fds[0].revents);
        if fds[1].revents != 0 {
            sys::eventfd_drain(wakeup);
            flags |= conn.flags.load(Ordering::SeqCst) & WOKEN;
        }
        if at <= now_ns() {
            conn.wake_at.store(crate::clock::NEVER, Ordering::SeqCst);
            flags |= WOKEN;
        }
        if flags != 0 {
            conn.claim(flags);
            break;
        }
    }
}

/// A session's own thread asks now and then whether its client is still there; one on a worker
/// hears of it from epoll.
pub(crate) fn look_for_hangup(task: &Task) {
    let Some(conn) = task.link().filter(|c| !c.is_pooled()) else { return };
    let mut fds = [libc::pollfd { fd: conn.fd(), events: libc::POLLRDHUP, revents: 0 }];
    if sys::poll(&mut fds, 0) {
        conn.claim(flags_of(fds[0].revents) & HANGUP);
    }
}

fn flags_of(events: libc::c_short) -> u32 {
    let mut flags = 0;
    if events & libc::POLLIN != 0 {
        flags |= READABLE;
    }
    if events & libc::POLLOUT != 0 {
        flags |= WRITABLE;
    }
    if events & (libc::POLLRDHUP | libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0 {
        flags |= HANGUP;
    }
    flags
}
