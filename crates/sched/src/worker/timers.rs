//! Timers: one heap a worker, at most a few entries a connection.
//!
//! An entry says "look at this connection then". What is due (the end of a park, a `wake_at`) is
//! read from the connection when the entry fires, so cancelling and postponing cost one store. A
//! connection gets a new entry only when its earliest one (`timer_at`) is later than what it needs.
//!
//! Entries of connections that have ended are dropped when they come up, or when so many have been
//! added that half may be such: the heap stays in proportion to the connections.
//!
//! The one who arms stores the deadline and then looks at `timer_at`; the one who fires clears
//! `timer_at` and then looks at the deadlines (all sequentially consistent). Either the firing sees
//! the new deadline, or the arming sees that no entry is left.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::Ordering;

use super::conn::Conn;
use crate::clock::NEVER;

/// Entries below this number are not worth a clean-up.
const FEW: usize = 1024;

/// When to look at which connection, and which use of its memory is meant.
type Entry = Reverse<(u64, usize, u32)>;

/// See the module.
pub(super) struct Timers {
    heap: RefCell<BinaryHeap<Entry>>,
    /// The number of entries at which the next clean-up comes.
    clean_at: Cell<usize>,
}

/// The connection, if the entry is still its earliest.
fn meant(Reverse((at, address, generation)): &Entry) -> Option<&'static Conn> {
    let conn = Conn::at(*address);
    let current = conn.generation.load(Ordering::SeqCst) == *generation
        && conn.timer_at.load(Ordering::SeqCst) == *at;
    current.then_some(conn)
}

impl Timers {
    pub fn new() -> Timers {
        Timers { heap: RefCell::default(), clean_at: Cell::new(FEW) }
    }

    /// Sees to it that some worker looks at `conn` at `at` or before.
    pub fn arm(&self, conn: &'static Conn, at: u64) {
        // Two workers may arm at once: the earlier time must win.
        if at == NEVER || conn.timer_at.fetch_min(at, Ordering::SeqCst) <= at {
            return;
        }
        let generation = conn.generation.load(Ordering::SeqCst);
        let mut heap = self.heap.borrow_mut();
        heap.push(Reverse((at, conn.address(), generation)));
        if heap.len() >= self.clean_at.get() {
            heap.retain(|entry| meant(entry).is_some());
            self.clean_at.set(FEW.max(2 * heap.len()));
        }
    }

    /// Takes all connections that have an entry here, for another worker to look at.
    pub fn take_all(&self) -> Vec<&'static Conn> {
        let mut conns = Vec::new();
        while let Some(conn) = self.pop_due(NEVER) {
            conns.extend(conn);
        }
        conns
    }

    /// When the next entry fires.
    pub fn next(&self) -> u64 {
        self.heap.borrow().peek().map_or(NEVER, |Reverse((at, _, _))| *at)
    }

    /// Takes the next entry that is due; the connection is None when the entry is out of date.
    pub fn pop_due(&self, now: u64) -> Option<Option<&'static Conn>> {
        let mut heap = self.heap.borrow_mut();
        if heap.peek().is_none_or(|Reverse((at, _, _))| *at > now) {
            return None;
        }
        let entry = heap.pop()?;
        let fires = meant(&entry).filter(|conn| {
            let at = entry.0.0;
            conn.timer_at.compare_exchange(at, NEVER, Ordering::SeqCst, Ordering::SeqCst).is_ok()
        });
        Some(fires)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conns(n: usize) -> Vec<&'static Conn> {
        (0..n).map(|_| Conn::unused()).collect()
    }

    #[test]
    fn entries_come_up_in_order_and_postponed_ones_once() {
        let timers = Timers::new();
        let [a, b] = conns(2)[..] else { unreachable!() };
        timers.arm(a, 30);
        timers.arm(b, 20);
        timers.arm(a, 10);
        timers.arm(a, 40); // there is an earlier one
        assert_eq!(timers.next(), 10);
        assert!(timers.pop_due(10).flatten().is_some_and(|c| std::ptr::eq(c, a)));
        assert!(timers.pop_due(19).is_none());
        assert!(timers.pop_due(25).flatten().is_some_and(|c| std::ptr::eq(c, b)));
        assert!(timers.pop_due(30).is_some_and(|c| c.is_none())); // was replaced by 10
        assert_eq!(timers.next(), NEVER);
    }

    #[test]
    fn ended_connections_do_not_fill_the_heap() {
        let timers = Timers::new();
        let live = conns(10);
        for conn in &live {
            timers.arm(conn, 1_000_000);
        }
        let gone = conns(1)[0];
        for round in 0..100_000 {
            timers.arm(gone, 2_000_000 + round);
            gone.timer_at.store(NEVER, Ordering::SeqCst);
            gone.generation.fetch_add(1, Ordering::SeqCst);
            assert!(timers.heap.borrow().len() <= FEW);
        }
        assert_eq!(timers.take_all().len(), live.len());
    }
}
