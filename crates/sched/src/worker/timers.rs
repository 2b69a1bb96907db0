//! Timers: one heap a worker, at most a few entries a connection.
//!
//! An entry says "look at this connection then". What is due (the end of a park, a `wake_at`) is
//! read from the connection when the entry fires, so cancelling and postponing cost one store. A
//! connection gets a new entry only when its earliest one (`timer_at`) is later than what it needs.
//!
//! The one who arms stores the deadline and then looks at `timer_at`; the one who fires clears
//! `timer_at` and then looks at the deadlines (all sequentially consistent). Either the firing sees
//! the new deadline, or the arming sees that no entry is left.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::Ordering;

use super::conn::Conn;
use crate::clock::NEVER;

/// See the module.
#[derive(Default)]
pub(super) struct Timers(RefCell<BinaryHeap<Reverse<(u64, usize, u32)>>>);

impl Timers {
    /// Sees to it that some worker looks at `conn` at `at` or before.
    pub fn arm(&self, conn: &'static Conn, at: u64) {
        if at == NEVER || conn.timer_at.load(Ordering::SeqCst) <= at {
            return;
        }
        conn.timer_at.store(at, Ordering::SeqCst);
        let generation = conn.generation.load(Ordering::SeqCst);
        self.0.borrow_mut().push(Reverse((at, conn.address(), generation)));
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
        self.0.borrow().peek().map_or(NEVER, |Reverse((at, _, _))| *at)
    }

    /// Takes the next entry that is due; the connection is None when the entry is out of date.
    pub fn pop_due(&self, now: u64) -> Option<Option<&'static Conn>> {
        let mut heap = self.0.borrow_mut();
        if heap.peek().is_none_or(|Reverse((at, _, _))| *at > now) {
            return None;
        }
        let Reverse((at, address, generation)) = heap.pop()?;
        let conn = Conn::at(address);
        let current = conn.generation.load(Ordering::SeqCst) == generation
            && conn
                .timer_at
                .compare_exchange(at, NEVER, Ordering::SeqCst, Ordering::SeqCst)
                .is_ok();
        Some(current.then_some(conn))
    }
}
