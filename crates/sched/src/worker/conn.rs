//! A connection as the workers see it: flags, the source, and (while it waits inside a run) its
//! coroutine.
//!
//! Connections are allocated once and used again, never freed: a stale pointer to one (an old
//! timer, a task's link read just before the end) finds valid memory, and what it then does is at
//! worst a needless run.

use std::any::Any;
use std::cell::UnsafeCell;
use std::os::fd::RawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};

use super::ahead::Ahead;
use super::follow::Trail;
use super::pool::Pool;
use super::queue::{Item, Shared};
use super::{Readiness, Source};
use crate::clock::NEVER;
use crate::coroutine::{Coro, Step};
use crate::spin::SpinLock;
use crate::sys;
use crate::task::{Interrupt, Task, TaskRef};

/// The socket has something to read.
pub(super) const READABLE: u32 = 1;
/// The socket takes output.
pub(super) const WRITABLE: u32 = 2;
/// The peer hung up; stays set.
pub(super) const HANGUP: u32 = 4;
/// Somebody wants the source to run.
pub(super) const WOKEN: u32 = 8;
/// Queued, running or waiting inside a run.
pub(super) const ACTIVE: u32 = 16;
/// `run` has begun (with ACTIVE).
pub(super) const STARTED: u32 = 32;
/// Inside `wait_readable`.
pub(super) const WANT_READ: u32 = 64;
/// Inside `wait_writable`.
pub(super) const WANT_WRITE: u32 = 128;

/// Runs that a source which was told of a hang-up may take to end by itself.
const RUNS_AFTER_HANGUP: u32 = 10_000;

/// See the module. Aligned so that the low bits of its address are free for tags.
#[repr(align(64))]
pub(crate) struct Conn {
    pub(super) flags: AtomicU32,
    fd: AtomicI32,
    pooled: AtomicBool,
    /// The worker whose epoll set has the socket.
    pub(super) home: AtomicPtr<Shared>,
    /// The worker that runs it now; null when none has started it.
    pub(super) owner: AtomicPtr<Shared>,
    /// When the source wants to run without an event.
    pub(super) wake_at: AtomicU64,
    /// When the park in progress times out.
    pub(super) park_deadline: AtomicU64,
    /// The earliest time at which some worker's timers look at this connection.
    pub(super) timer_at: AtomicU64,
    /// Counts the connections that this memory served.
    pub(super) generation: AtomicU32,
    hangup_runs: AtomicU32,
    pub(super) trail: Trail,
    /// The memory that its runs use.
    pub(super) ahead: Ahead,
    /// Its place in the pool's list of connections.
    pub(super) place: AtomicUsize,
    /// Written by `open` and `free`, when nobody else knows the connection; read in between.
    body: UnsafeCell<Body>,
    /// The suspended coroutine; only the owning worker touches it.
    pub(super) coro: UnsafeCell<Option<Coro>>,
    /// How a run ended that is on its way back to its worker ([`super::watchdog`]), with its coroutine.
    pub(super) back: UnsafeCell<Option<Step>>,
}

#[derive(Default)]
struct Body {
    source: Option<Arc<dyn Source>>,
    task: Option<TaskRef>,
    pool: Option<Arc<Pool>>,
}

// SAFETY: `body` is written only while the connection is in nobody's hands (invariant 4 of the
// module above) or, for `source`, by the one that holds ACTIVE; `coro` and `back` belong to the owner, or to the thread
// on which the run is away from it until that has sent the run back.
unsafe impl Sync for Conn {}
// SAFETY: a coroutine changes threads only between two switches, and nothing on its stack belongs to a thread: see the
// decision record 0039. The rest is Send.
unsafe impl Send for Conn {}

static FREE: SpinLock<Vec<&'static Conn>> = SpinLock::new(Vec::new());

impl Conn {
    /// A connection, from used memory when there is some. It is active until its opener releases
    /// it, so that nobody starts or moves it half-way.
    pub(super) fn open(
        fd: RawFd,
        source: Arc<dyn Source>,
        pool: Arc<Pool>,
        home: Option<&'static Shared>,
    ) -> &'static Conn {
        let used = FREE.lock().pop();
        let conn = used.unwrap_or_else(|| Box::leak(Box::new(Conn::empty())));
        let task = Arc::clone(source.task());
        // SAFETY: it is on no list and in no epoll set: nobody else reads the body.
        unsafe {
            *conn.body.get() =
                Body { source: Some(source), task: Some(Arc::clone(&task)), pool: Some(pool) };
        }
        conn.flags.store(ACTIVE, Ordering::Relaxed);
        conn.hangup_runs.store(0, Ordering::Relaxed);
        conn.fd.store(fd, Ordering::Relaxed);
        conn.pooled.store(home.is_some(), Ordering::Relaxed);
        let home = home.map_or(std::ptr::null_mut(), |s| std::ptr::from_ref(s).cast_mut());
        conn.home.store(home, Ordering::Release);
        task.set_link(Some(conn));
        task.begin_idle();
        conn
    }

    /// One that nobody opens, for tests.
    #[cfg(test)]
    pub(super) fn unused() -> &'static Conn {
        Box::leak(Box::new(Conn::empty()))
    }

    /// One of this task that nobody opens.
    #[cfg(test)]
    pub(super) fn of_task(task: TaskRef) -> &'static Conn {
        let conn = Conn::unused();
        // SAFETY: nobody else knows it yet.
        unsafe { (*conn.body.get()).task = Some(task) };
        conn
    }

    fn empty() -> Conn {
        Conn {
            flags: AtomicU32::new(0),
            fd: AtomicI32::new(-1),
            pooled: AtomicBool::new(false),
            home: AtomicPtr::default(),
            owner: AtomicPtr::default(),
            wake_at: AtomicU64::new(NEVER),
            park_deadline: AtomicU64::new(NEVER),
            timer_at: AtomicU64::new(NEVER),
            generation: AtomicU32::new(0),
            hangup_runs: AtomicU32::new(0),
            trail: Trail::default(),
            ahead: Ahead::default(),
            place: AtomicUsize::new(0),
            body: UnsafeCell::default(),
            coro: UnsafeCell::new(None),
            back: UnsafeCell::new(None),
        }
    }

    /// Gives the memory back; by the home worker between two batches of events, or by whoever
    /// failed to hand the connection over.
    pub(super) fn free(&'static self) {
        self.generation.fetch_add(1, Ordering::SeqCst);
        self.wake_at.store(NEVER, Ordering::SeqCst);
        self.timer_at.store(NEVER, Ordering::SeqCst);
        // SAFETY: see the caller: no event and no queue names this connection any more.
        let body = unsafe { std::mem::take(&mut *self.body.get()) };
        drop(body);
        FREE.lock().push(self);
    }

    /// Where it is, with free low bits.
    pub(super) fn address(&'static self) -> usize {
        std::ptr::from_ref(self) as usize
    }

    /// The inverse of [`Conn::address`].
    pub(super) fn at(address: usize) -> &'static Conn {
        // SAFETY: only addresses of connections are handed to epoll and to the queues, and those
        // are never freed.
        unsafe { &*(address as *const Conn) }
    }

    /// The socket.
    pub(super) fn fd(&self) -> RawFd {
        self.fd.load(Ordering::Relaxed)
    }

    /// Whether it runs on coroutines; else on a thread of its own.
    pub(crate) fn is_pooled(&self) -> bool {
        self.pooled.load(Ordering::Relaxed)
    }

    /// The task that it runs as. For its home worker, its owner and the holder of ACTIVE.
    pub(super) fn task(&self) -> &Task {
        // SAFETY: the body changes only when the connection is in nobody's hands.
        match unsafe { &(*self.body.get()).task } {
            Some(task) => task,
            None => unreachable!("a connection in use has a task"),
        }
    }

    /// Another handle of the same.
    pub(super) fn task_ref(&self) -> TaskRef {
        // SAFETY: as in `task`.
        match unsafe { &(*self.body.get()).task } {
            Some(task) => Arc::clone(task),
            None => unreachable!("a connection in use has a task"),
        }
    }

    /// The pool that it belongs to. For the same callers.
    pub(super) fn pool(&self) -> &Arc<Pool> {
        // SAFETY: as in `task`.
        match unsafe { &(*self.body.get()).pool } {
            Some(pool) => pool,
            None => unreachable!("a connection in use has a pool"),
        }
    }

    /// The worker whose epoll set has the socket.
    pub(super) fn home(&self) -> Option<&'static Shared> {
        // SAFETY: the shared parts of workers are never freed.
        unsafe { self.home.load(Ordering::Acquire).as_ref() }
    }

    /// The worker that has started it.
    pub(super) fn owner(&self) -> Option<&'static Shared> {
        // SAFETY: the shared parts of workers are never freed.
        unsafe { self.owner.load(Ordering::SeqCst).as_ref() }
    }

    /// Whether the peer has hung up.
    pub(crate) fn is_hung_up(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & HANGUP != 0
    }

    /// Records events; true when the caller must now make the connection run.
    pub(super) fn claim(&self, events: u32) -> bool {
        let before = self.flags.fetch_or(events | ACTIVE, Ordering::SeqCst);
        if before & ACTIVE == 0 {
            return true;
        }
        let wanted = (before & WANT_READ != 0 && events & (READABLE | HANGUP) != 0)
            || (before & WANT_WRITE != 0 && events & WRITABLE != 0);
        if before & STARTED != 0 {
            if events & HANGUP != 0 && before & HANGUP == 0 {
                self.task().interrupt(Interrupt::ClientGone);
            }
            if wanted {
                self.task().unpark();
            }
        }
        false
    }

    /// One call of `Source::run` and, when the connection has ended, its end. Runs on the
    /// coroutine (or the session's thread). False: ended.
    pub(crate) fn run_source(&self) -> bool {
        const TAKEN: u32 = READABLE | WRITABLE | WOKEN;
        self.task().end_idle();
        let mut flags = self.flags.load(Ordering::Relaxed);
        while let Err(now) = self.flags.compare_exchange_weak(
            flags,
            (flags & !TAKEN) | STARTED,
            Ordering::SeqCst,
            Ordering::Relaxed,
        ) {
            flags = now;
        }
        if self.wake_at.load(Ordering::Relaxed) != NEVER {
            self.wake_at.store(NEVER, Ordering::SeqCst);
        }
        let ready = Readiness {
            readable: flags & (READABLE | HANGUP) != 0,
            woken: flags & WOKEN != 0 || self.task().interrupted(),
            hangup: flags & HANGUP != 0,
        };
        // SAFETY: the holder of ACTIVE alone changes `source`, below.
        let source = unsafe { &(*self.body.get()).source };
        let open = source.as_ref().is_some_and(|s| run_caught(&**s, ready));
        if open && (flags & HANGUP == 0 || !self.too_many_hangups()) {
            self.task().begin_idle();
            return true;
        }
        self.end();
        false
    }

    fn too_many_hangups(&self) -> bool {
        self.hangup_runs.fetch_add(1, Ordering::Relaxed) >= RUNS_AFTER_HANGUP
    }

    /// Takes the socket out of its epoll set, then drops the source (which may wait).
    fn end(&self) {
        if let Some(home) = self.home() {
            let removed = sys::epoll_ctl(home.epoll, libc::EPOLL_CTL_DEL, self.fd(), 0, 0);
            debug_assert!(removed.is_ok(), "a source closed its socket before it was dropped");
        }
        // SAFETY: the caller holds ACTIVE, and no reference to the source is left.
        let source = unsafe { (*self.body.get()).source.take() };
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(source)));
        report(dropped.err());
        self.task().set_link(None);
    }

    /// The socket did not take this part of its answer: it will run, to send it. For the holder of ACTIVE.
    pub(super) fn take_back(&self, answer: &[u8]) {
        // SAFETY: as in `run_source`.
        if let Some(source) = unsafe { &(*self.body.get()).source } {
            source.unsent(answer);
        }
        self.flags.fetch_or(WOKEN, Ordering::SeqCst);
    }

    /// Makes an idle connection active, so that the caller may change its home; false when it is
    /// active already.
    pub(super) fn hold(&self) -> bool {
        self.flags.fetch_or(ACTIVE, Ordering::SeqCst) & ACTIVE == 0
    }

    /// After a run that left the connection open: gives it back to its events. True: there were
    /// new ones, so it is to run again (ACTIVE stays set).
    pub(super) fn release(&self) -> bool {
        let mut flags = self.flags.load(Ordering::Relaxed);
        loop {
            let again = flags & (READABLE | WOKEN | HANGUP) != 0;
            let rest = if again { flags & !STARTED } else { flags & !(STARTED | ACTIVE) };
            match self.flags.compare_exchange_weak(flags, rest, Ordering::SeqCst, Ordering::Relaxed)
            {
                Ok(_) => return again,
                Err(now) => flags = now,
            }
        }
    }
}

/// A panic that escapes `run` ends the connection, not the worker.
fn run_caught(source: &dyn Source, ready: Readiness) -> bool {
    match catch_unwind(AssertUnwindSafe(|| source.run(ready))) {
        Ok(open) => open,
        Err(panic) => {
            report(Some(panic));
            false
        }
    }
}

/// The panic hook has printed the message; dropping the payload must not panic again.
fn report(panic: Option<Box<dyn Any + Send>>) {
    if let Some(payload) = panic {
        let _ = catch_unwind(AssertUnwindSafe(|| drop(payload)));
    }
}

/// Makes the source of this task run soon, if it has one and is idle; else at its run's end.
pub(crate) fn nudge(task: &Task) {
    let Some(conn) = task.link() else { return };
    if !conn.claim(WOKEN) {
        return;
    }
    match conn.home() {
        // The home has not ended, and stays the home: the connection is active.
        Some(home) => drop(home.inject(Item::start(conn))),
        None => {
            if let Ok(fd) = task.eventfd() {
                sys::eventfd_write(fd);
            }
        }
    }
}
