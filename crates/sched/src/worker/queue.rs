//! What other threads see of a worker: its injection queue, the ready connections that an idle
//! worker may take, and how to get it out of its sleep.
//!
//! Of the ready connections those go first that hold what others wait for, a row above all: the sooner
//! they end their transaction the sooner the others run, and a queue behind one row moves as fast as its
//! holders are served, however many sessions there are.

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
    ready: SpinLock<Ready>,
    ready_len: AtomicUsize,
}

/// Connections that are to start, the longest ready of either kind in front.
struct Ready {
    awaited: VecDeque<&'static Conn>,
    others: VecDeque<&'static Conn>,
    /// Awaited ones taken in a row.
    streak: u32,
}

/// After so many awaited connections another one has its turn, if one is ready.
const AWAITED_IN_A_ROW: u32 = 8;

impl Ready {
    fn new() -> Ready {
        let others = VecDeque::with_capacity(256);
        Ready { awaited: VecDeque::with_capacity(16), others, streak: 0 }
    }

    fn len(&self) -> usize {
        self.awaited.len() + self.others.len()
    }

    fn push(&mut self, conn: &'static Conn) {
        match conn.task().is_awaited() {
            true => self.awaited.push_back(conn),
            false => self.others.push_back(conn),
        }
    }

    fn pop(&mut self) -> Option<&'static Conn> {
        let turn = self.streak >= AWAITED_IN_A_ROW && !self.others.is_empty();
        if !turn && let Some(conn) = self.awaited.pop_front() {
            self.streak += 1;
            return Some(conn);
        }
        self.streak = 0;
        self.others.pop_front()
    }

    /// The one after the next, as long as no others come.
    fn second(&self) -> Option<&'static Conn> {
        self.others.get(1).copied()
    }
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
            ready: SpinLock::new(Ready::new()),
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
        conns.drain(..).for_each(|conn| ready.push(conn));
        self.ready_len.store(ready.len(), Ordering::SeqCst);
    }

    /// The connection whose turn it is. Any worker.
    pub fn pop_ready(&self) -> Option<&'static Conn> {
        if self.ready_len.load(Ordering::SeqCst) == 0 {
            return None;
        }
        let (conn, second) = {
            let mut ready = self.ready.lock();
            let conn = ready.pop();
            self.ready_len.store(ready.len(), Ordering::SeqCst);
            (conn, ready.second())
        };
        if let Some(second) = second {
            second.ahead.fetch();
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::Task;

    #[test]
    fn awaited_connections_go_first_but_not_for_ever() {
        let conn = |number: i32| {
            let task = Task::new("test");
            task.set_pid(number);
            Conn::of_task(task)
        };
        let mut ready = Ready::new();
        ready.push(conn(-1));
        ready.push(conn(-2));
        for number in 0..10 {
            let conn = conn(number);
            conn.task().count_awaiting(1);
            ready.push(conn);
        }
        assert_eq!(ready.len(), 12);
        let order: Vec<i32> = std::iter::from_fn(|| ready.pop()).map(|c| c.task().pid()).collect();
        assert_eq!(order, [0, 1, 2, 3, 4, 5, 6, 7, -1, 8, 9, -2]);
    }
}
