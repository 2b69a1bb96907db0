//! What other threads see of a worker: its injection queue, the ready connections that an idle
//! worker may take, and how to get it out of its sleep.

use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::conn::Conn;
use crate::local::local;
use crate::spin::SpinLock;
use crate::sys;

/// A message to a worker: a connection's address with a tag in its low bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Item(usize);

/// What an [`Item`] asks for.
pub(super) enum Order {
    /// Switch back to its coroutine.
    Resume(&'static Conn),
    /// Start it; ACTIVE is set.
    Start(&'static Conn),
    /// Look at its deadlines.
    Timer(&'static Conn),
    /// It has ended elsewhere; use its memory again.
    Free(&'static Conn),
}

impl Item {
    const MASK: usize = 3;

    pub fn resume(conn: &'static Conn) -> Item {
        Item(conn.address())
    }
    pub fn start(conn: &'static Conn) -> Item {
        Item(conn.address() | 1)
    }
    pub fn timer(conn: &'static Conn) -> Item {
        Item(conn.address() | 2)
    }
    pub fn free(conn: &'static Conn) -> Item {
        Item(conn.address() | 3)
    }

    pub fn order(self) -> Order {
        let conn = Conn::at(self.0 & !Item::MASK);
        match self.0 & Item::MASK {
            0 => Order::Resume(conn),
            1 => Order::Start(conn),
            2 => Order::Timer(conn),
            _ => Order::Free(conn),
        }
    }
}

/// The part of a worker that outlives its thread, so that a late wake-up finds a valid descriptor.
#[repr(align(64))]
pub(super) struct Shared {
    /// Its epoll set.
    pub epoll: RawFd,
    /// Gets it out of epoll_wait; edge-triggered, never read.
    pub bell: RawFd,
    /// Its position in the pool.
    pub index: AtomicUsize,
    /// It is, or is about to be, blocked in epoll_wait.
    pub sleeping: AtomicBool,
    /// Connections whose socket is in its epoll set.
    pub sources: AtomicUsize,
    /// None once the worker has ended.
    injected: SpinLock<Option<Vec<Item>>>,
    injected_len: AtomicUsize,
    ready: SpinLock<VecDeque<&'static Conn>>,
    ready_len: AtomicUsize,
}

static USED: SpinLock<Vec<&'static Shared>> = SpinLock::new(Vec::new());

impl Shared {
    /// One for a new worker, from a worker that has ended when there is one.
    pub fn open(index: usize) -> std::io::Result<&'static Shared> {
        if let Some(used) = USED.lock().pop() {
            used.index.store(index, Ordering::Relaxed);
            *used.injected.lock() = Some(Vec::new());
            return Ok(used);
        }
        let epoll = sys::epoll_create()?;
        let bell = sys::eventfd()?;
        let events = (libc::EPOLLIN | libc::EPOLLET) as u32;
        sys::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, bell, events, 0)?;
        Ok(Box::leak(Box::new(Shared {
            epoll,
            bell,
            index: AtomicUsize::new(index),
            sleeping: AtomicBool::new(false),
            sources: AtomicUsize::new(0),
            injected: SpinLock::new(Some(Vec::with_capacity(64))),
            injected_len: AtomicUsize::new(0),
            ready: SpinLock::new(VecDeque::with_capacity(256)),
            ready_len: AtomicUsize::new(0),
        })))
    }

    /// The worker ends, unless a message has come: then false.
    pub fn close(&self) -> bool {
        let mut injected = self.injected.lock();
        let empty = injected.as_ref().is_none_or(Vec::is_empty);
        if empty {
            *injected = None;
        }
        empty
    }

    /// The worker's thread has ended: another may have this.
    pub fn reuse(&'static self) {
        USED.lock().push(self);
    }

    /// Hands the worker a message; false when it has ended. Any thread.
    pub fn inject(&self, item: Item) -> bool {
        {
            let mut injected = self.injected.lock();
            let Some(items) = injected.as_mut() else { return false };
            items.push(item);
            self.injected_len.store(items.len(), Ordering::SeqCst);
        }
        self.wake();
        true
    }

    /// Whether messages are there.
    pub fn has_injected(&self) -> bool {
        self.injected_len.load(Ordering::SeqCst) != 0
    }

    /// Takes all messages; `into` is empty and keeps its memory.
    pub fn drain(&self, into: &mut Vec<Item>) {
        let mut injected = self.injected.lock();
        if let Some(items) = injected.as_mut() {
            std::mem::swap(items, into);
        }
        self.injected_len.store(0, Ordering::SeqCst);
    }

    /// Gets the worker out of its sleep; a system call only when it sleeps.
    pub fn wake(&self) {
        if self.sleeping.load(Ordering::SeqCst) && self.sleeping.swap(false, Ordering::SeqCst) {
            sys::eventfd_write(self.bell);
        }
    }

    /// Queues connections that are to start.
    pub fn push_ready(&self, conns: &mut Vec<&'static Conn>) {
        let mut ready = self.ready.lock();
        ready.extend(conns.drain(..));
        self.ready_len.store(ready.len(), Ordering::SeqCst);
    }

    /// The connection that has been ready longest. Any worker.
    pub fn pop_ready(&self) -> Option<&'static Conn> {
        if self.ready_len.load(Ordering::SeqCst) == 0 {
            return None;
        }
        let mut ready = self.ready.lock();
        let conn = ready.pop_front();
        self.ready_len.store(ready.len(), Ordering::SeqCst);
        conn
    }

    /// How many connections wait to start.
    pub fn ready_len(&self) -> usize {
        self.ready_len.load(Ordering::SeqCst)
    }
}

/// Queues a suspended coroutine whose park is over. For the one who cleared its PARKED bit.
pub(crate) fn make_runnable(conn: &'static Conn) {
    let Some(owner) = conn.owner() else {
        unreachable!("a parked connection has an owner");
    };
    match local().worker() {
        Some(worker) if std::ptr::eq(worker.shared, owner) => worker.resume_soon(conn),
        // It has not ended: it has a suspended coroutine.
        _ => drop(owner.inject(Item::resume(conn))),
    }
}
