//! Listening sockets. Every worker has each of them in its epoll set, so whoever has time accepts.
//!
//! ```text
//!   backlog ──► epoll sets of all workers ──► at most so many accepts a turn ──► Acceptor::accepted
//!               (one that sleeps is woken)
//! ```
//! * Sockets are level-triggered: what a worker leaves in the backlog is reported again, to it and to
//!   others. After [`ACCEPTS_A_TURN`] connections what is ready runs, then the worker looks at epoll
//!   again: a burst of clients does not starve statements, nor statements a burst.
//! * A connection that comes wakes one worker that sleeps (`EPOLLEXCLUSIVE`). One that is busy finds
//!   the socket at its next look at epoll; a long statement looks whenever its slice is over.
//! * When the system has no descriptor or memory left, nobody can be let in, and a socket that stays
//!   readable would keep the workers from sleeping: it leaves the worker's set for [`PAUSE_NS`].
//!   Clients wait in the backlog meanwhile, and the socket's task waits for `ListenerPause`.
//! * A worker that retires takes the sockets out of its set. They themselves stay open for as long as
//!   the process lives.

use std::cell::{Cell, RefCell};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::{OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};

use base::WaitEvent;

use crate::clock::{NEVER, now_ns};
use crate::sys;
use crate::task::{Task, TaskRef, list_background, next_pid};

/// Connections that a worker takes before it lets others run.
const ACCEPTS_A_TURN: usize = 16;
/// How long a worker does not accept after the system refused.
const PAUSE_NS: u64 = 100_000_000;

/// The receiver of the connections that come to a listening socket. Called on a worker's own stack:
/// neither of these may wait.
pub trait Acceptor: Send + Sync + 'static {
    /// One has come: its socket does not block and is closed in programs that are started; over TCP,
    /// with the client's address.
    fn accepted(&self, socket: OwnedFd, from: Option<SocketAddr>);

    /// The system has no descriptors or memory for one; after a pause it is tried again.
    fn refused(&self, error: &io::Error);
}

/// A listening socket of a pool; lives as long as the process. Aligned so that the lowest bit of its
/// address is free for a tag.
#[repr(align(64))]
pub(super) struct Listening {
    fd: RawFd,
    acceptor: Box<dyn Acceptor>,
    /// Shows what the socket waits for.
    task: TaskRef,
}

/// Tells a listening socket's address from a connection's in an event.
const TAG: u64 = 1;

impl Listening {
    pub fn open(fd: RawFd, acceptor: Box<dyn Acceptor>) -> &'static Listening {
        let task = Task::new("listener");
        task.set_pid(next_pid());
        task.begin_wait(WaitEvent::ActivityListenerMain.into());
        list_background(&task);
        Box::leak(Box::new(Listening { fd, acceptor, task }))
    }

    /// The socket that an event's word names, if it is one.
    pub fn at(word: u64) -> Option<&'static Listening> {
        // SAFETY: only `ListenerSet::watch` hands tagged words to epoll: addresses of these, never freed.
        (word & TAG != 0).then(|| unsafe { &*((word & !TAG) as *const Listening) })
    }

    fn word(&'static self) -> u64 {
        std::ptr::from_ref(self) as u64 | TAG
    }

    /// Takes one connection; false when there is none, or an error when the system refuses.
    fn accept(&self) -> io::Result<bool> {
        match sys::accept(self.fd) {
            Ok((socket, from)) => {
                let accepted = || self.acceptor.accepted(socket, from);
                // The panic hook has told of it; the connection is closed.
                let _ = catch_unwind(AssertUnwindSafe(accepted));
                Ok(true)
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(e) if is_of_the_connection(&e) => Ok(true),
            Err(e) => Err(e),
        }
    }
}

/// Whether an accept failed because of what has become of the one connection (accept(2)): the next
/// one may go well.
fn is_of_the_connection(error: &io::Error) -> bool {
    let of_network = [
        libc::EINTR,
        libc::ECONNABORTED,
        libc::EPROTO,
        libc::ENETDOWN,
        libc::ENOPROTOOPT,
        libc::EHOSTDOWN,
        libc::ENONET,
        libc::EHOSTUNREACH,
        libc::ENETUNREACH,
        libc::EPERM,
    ];
    error.raw_os_error().is_some_and(|code| of_network.contains(&code))
}

/// A worker's side of the listening sockets.
pub(super) struct ListenerSet {
    epoll: RawFd,
    /// Those in its epoll set.
    watched: RefCell<Vec<&'static Listening>>,
    /// Those of which epoll said that somebody waits.
    due: RefCell<Vec<&'static Listening>>,
    /// Until when nobody is let in; [`NEVER`]: no pause.
    pause_until: Cell<u64>,
}

impl ListenerSet {
    pub fn new(epoll: RawFd) -> ListenerSet {
        ListenerSet {
            epoll,
            watched: RefCell::default(),
            due: RefCell::default(),
            pause_until: Cell::new(NEVER),
        }
    }

    /// Watches these sockets and no others, or during a pause none.
    pub fn watch(&self, wanted: &[&'static Listening]) {
        let pause = self.pause_until.get();
        if pause != NEVER && now_ns() < pause {
            return self.watch_none();
        }
        self.pause_until.set(NEVER);
        if wanted.len() < self.watched.borrow().len() {
            self.watch_none();
        }
        let mut watched = self.watched.borrow_mut();
        let events = (libc::EPOLLIN | libc::EPOLLEXCLUSIVE) as u32;
        for &socket in &wanted[watched.len()..] {
            let add = libc::EPOLL_CTL_ADD;
            if let Err(error) = sys::epoll_ctl(self.epoll, add, socket.fd, events, socket.word()) {
                drop(watched);
                return self.pause(socket, &error);
            }
            socket.task.begin_wait(WaitEvent::ActivityListenerMain.into());
            watched.push(socket);
        }
    }

    fn watch_none(&self) {
        for socket in self.watched.borrow_mut().drain(..) {
            // It is in the set, and open.
            let _ = sys::epoll_ctl(self.epoll, libc::EPOLL_CTL_DEL, socket.fd, 0, 0);
        }
        self.due.borrow_mut().clear();
    }

    /// Epoll says that somebody waits there.
    pub fn note(&self, socket: &'static Listening) {
        let mut due = self.due.borrow_mut();
        if !due.iter().any(|known| std::ptr::eq(*known, socket)) {
            due.push(socket);
        }
    }

    /// Whether somebody waits to be let in.
    pub fn is_due(&self) -> bool {
        !self.due.borrow().is_empty()
    }

    /// Lets in some of those who wait.
    pub fn let_in(&self) {
        loop {
            let Some(socket) = self.due.borrow_mut().pop() else { return };
            for _ in 0..ACCEPTS_A_TURN {
                match socket.accept() {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(error) => return self.pause(socket, &error),
                }
            }
        }
    }

    fn pause(&self, socket: &'static Listening, error: &io::Error) {
        socket.acceptor.refused(error);
        self.watch_none();
        socket.task.begin_wait(WaitEvent::ActivityListenerPause.into());
        self.pause_until.set(now_ns() + PAUSE_NS);
    }

    /// When a pause is over; [`NEVER`]: there is none.
    pub fn pause_until(&self) -> u64 {
        self.pause_until.get()
    }

    /// Whether a pause is over and [`ListenerSet::watch`] is to be called.
    pub fn has_paused(&self) -> bool {
        let pause = self.pause_until.get();
        pause != NEVER && now_ns() >= pause
    }
}
