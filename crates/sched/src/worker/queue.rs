//! The shared part of a worker: its injection queue, the ready connections that an idle
//! worker may take, and how to get it out of its sleep.
//!
//! Of the ready connections those go first that hold what others wait for, a row above all: the sooner
//! they end their transaction the sooner the others run, and a queue behind one row moves as fast as its
//! holders are served, however many sessions there are. After them come those inside a transaction, before
//! those that would begin one: so of a thousand sessions that all want to work no more than keep the workers
//! busy are inside one at a time, which lets them meet each other less, and their memory stay in the caches.
//! Clients that are still to be let in come last: a burst of them costs the others one run in nine.

use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::conn::Conn;
use super::follow::Place;
use super::watchdog::HeldCounts;
use crate::local::local;
use crate::spin::SpinLock;
use crate::sys;
use crate::task::RANKS;

/// A message to a worker: a connection's address with a tag in its low bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Item(usize);

/// The request of an [`Item`].
pub(super) enum Order {
    /// Switch back to its coroutine.
    Resume(&'static Conn),
    /// Start it; ACTIVE is set.
    Start(&'static Conn),
    /// Look at its deadlines.
    Timer(&'static Conn),
    /// It has ended elsewhere; use its memory again.
    Free(&'static Conn),
    /// Its run, which was away with a thread that was held, is back.
    Back(&'static Conn),
}

impl Item {
    const MASK: usize = 7;

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
    pub fn back(conn: &'static Conn) -> Item {
        Item(conn.address() | 4)
    }

    pub fn order(self) -> Order {
        let conn = Conn::at(self.0 & !Item::MASK);
        match self.0 & Item::MASK {
            0 => Order::Resume(conn),
            1 => Order::Start(conn),
            2 => Order::Timer(conn),
            3 => Order::Free(conn),
            _ => Order::Back(conn),
        }
    }
}

/// The part of a worker that outlives its thread, so that a late wake-up finds a valid descriptor.
#[repr(align(64))]
pub(crate) struct Shared {
    /// Its epoll set.
    pub epoll: RawFd,
    /// Gets it out of epoll_wait; edge-triggered, never read.
    pub bell: RawFd,
    /// Its position in the pool.
    pub index: AtomicUsize,
    /// It is, or is about to be, blocked in epoll_wait.
    pub sleeping: AtomicBool,
    /// Where it runs.
    pub(super) place: Place,
    /// Connections whose socket is in its epoll set.
    pub sources: AtomicUsize,
    /// How often it was held, and for how long.
    pub held: HeldCounts,
    /// None once the worker has ended.
    injected: SpinLock<Option<Vec<Item>>>,
    injected_len: AtomicUsize,
    ready: SpinLock<Ready>,
    ready_len: AtomicUsize,
}

/// Connections that are to start, by rank: those that are waited for, those that hold something, others, newcomers.
/// Of each rank the longest ready is in front.
struct Ready {
    ranks: [VecDeque<&'static Conn>; RANKS],
    /// How many of each rank were taken since a lower one had its turn.
    streaks: [u32; RANKS],
}

/// After so many of a rank a lower one has its turn.
const IN_A_ROW: u32 = 8;

impl Ready {
    fn new() -> Ready {
        Ready { ranks: [16, 64, 256, 16].map(VecDeque::with_capacity), streaks: [0; RANKS] }
    }

    fn len(&self) -> usize {
        self.ranks.iter().map(VecDeque::len).sum()
    }

    fn push(&mut self, conn: &'static Conn) {
        self.ranks[conn.task().rank()].push_back(conn);
    }

    fn pop(&mut self) -> Option<&'static Conn> {
        let mut last = None;
        for rank in 0..RANKS {
            if self.ranks[rank].is_empty() {
                continue;
            }
            last = Some(rank);
            if self.streaks[rank] < IN_A_ROW {
                break;
            }
            // The turn of a lower rank, if any is ready.
            self.streaks[rank] = 0;
        }
        let rank = last?;
        self.streaks[rank] += u32::from(rank + 1 < RANKS);
        self.ranks[rank].pop_front()
    }

    /// The one after the next, as long as no others come and no lower rank has its turn.
    fn second(&self) -> Option<&'static Conn> {
        let mut before = 1;
        for rank in &self.ranks {
            match rank.get(before) {
                Some(conn) => return Some(conn),
                None => before -= rank.len().min(before),
            }
        }
        None
    }
}

static USED: SpinLock<Vec<&'static Shared>> = SpinLock::new(Vec::new());

impl Shared {
    /// One for a new worker, from a worker that has ended when there is one.
    pub fn open(index: usize) -> std::io::Result<&'static Shared> {
        if let Some(used) = USED.lock().pop() {
            used.index.store(index, Ordering::Relaxed);
            used.held.reset();
            *used.injected.lock() = Some(Vec::new());
            return Ok(used);
        }
        let epoll = sys::epoll_create()?;
        let bell = sys::eventfd()?;
        let events = (libc::EPOLLIN | libc::EPOLLET) as u32;
        sys::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, bell, events, 0)?;
        let shared: &'static Shared = Box::leak(Box::new(Shared {
            epoll,
            bell,
            index: AtomicUsize::new(index),
            sleeping: AtomicBool::new(false),
            place: Place::new(),
            sources: AtomicUsize::new(0),
            held: HeldCounts::default(),
            injected: SpinLock::new(Some(Vec::with_capacity(64))),
            injected_len: AtomicUsize::new(0),
            ready: SpinLock::new(Ready::new()),
            ready_len: AtomicUsize::new(0),
        }));
        super::saturation::register_worker(shared);
        Ok(shared)
    }

    /// Its position in the pool.
    pub(crate) fn index(&self) -> usize {
        self.index.load(Ordering::Relaxed)
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
    pub(super) fn inject(&self, item: Item) -> bool {
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
    pub(super) fn drain(&self, into: &mut Vec<Item>) {
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
    let local = local();
    if local.worker_shared().is_some_and(|own| std::ptr::eq(own, owner))
        && let Some(worker) = local.worker()
    {
        return worker.resume_soon(conn);
    }
    // It has not ended: it has a suspended coroutine.
    owner.inject(Item::resume(conn));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::{PriorityClass, Task};

    #[test]
    fn higher_ranks_go_first_but_not_for_ever() {
        let mut ready = Ready::new();
        let mut push = |number: i32, awaited: i32, priority_class: PriorityClass| {
            let task = Task::new("test");
            task.set_pid(number);
            task.count_awaiting(awaited);
            task.set_priority_class(priority_class);
            ready.push(Conn::of_task(task));
        };
        let [holding, ordinary, newcomer] =
            [PriorityClass::InTransaction, PriorityClass::Ordinary, PriorityClass::Connecting];
        (-30..-28).for_each(|number| push(number, 0, newcomer));
        (-10..0).for_each(|number| push(number, 0, ordinary));
        (100..110).for_each(|number| push(number, 0, holding));
        (0..10).for_each(|number| push(number, 1, [holding, newcomer][number as usize % 2]));
        assert_eq!(ready.len(), 32);
        let order: Vec<i32> = std::iter::from_fn(|| ready.pop()).map(|c| c.task().pid()).collect();
        let expected =
            [0, 1, 2, 3, 4, 5, 6, 7, 100, 8, 9, 101, 102, 103, 104, 105, 106, 107, -10, 108, 109];
        assert_eq!(order[..21], expected);
        assert_eq!(order[21..], [-9, -8, -7, -6, -5, -4, -3, -30, -2, -1, -29]);
    }
}
