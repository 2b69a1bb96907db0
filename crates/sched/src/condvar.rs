//! A condition variable: a FIFO of waiters on their own stacks.
//!
//! A waiter is in the queue from before it releases the mutex until it is popped by a notification
//! or has taken itself out. So a notification under (or after) the mutex finds every waiter that
//! saw the old state; and a waiter that ends for another reason while it is being popped reports
//! the notification, which therefore is never lost.

use std::cell::Cell;
use std::ptr;
use std::time::Instant;

use base::WaitEvent;

use crate::mutex::{Mutex, MutexGuard};
use crate::seam::{AtomicBool, Ordering, TaskRef, Wake, assert_may_wait, current, park};
use crate::spin::SpinLock;

/// Waiters for a condition on data under a [`Mutex`].
pub struct Condvar {
    queue: SpinLock<Queue>,
}

/// One waiter, on its stack. `prev`, `next` and `queued` belong to the queue's lock.
struct Node {
    task: TaskRef,
    notified: AtomicBool,
    /// Numbers ascend along the queue.
    number: Cell<u64>,
    queued: Cell<bool>,
    prev: Cell<*const Node>,
    next: Cell<*const Node>,
}

struct Queue {
    /// The number of the next waiter.
    next_number: u64,
    head: *const Node,
    tail: *const Node,
}

// SAFETY: the pointers are followed only under the queue's lock, and a node leaves the queue
// before its waiter's stack frame ends.
unsafe impl Send for Queue {}

impl Queue {
    /// # Safety
    /// `node` stays in place until it is removed or popped.
    unsafe fn push(&mut self, node: &Node) {
        node.queued.set(true);
        node.number.set(self.next_number);
        self.next_number += 1;
        node.prev.set(self.tail);
        if self.tail.is_null() {
            self.head = node;
        } else {
            // SAFETY: queued nodes are alive.
            unsafe { (*self.tail).next.set(node) };
        }
        self.tail = node;
    }

    fn remove(&mut self, node: &Node) {
        if !node.queued.replace(false) {
            return;
        }
        let (prev, next) = (node.prev.get(), node.next.get());
        // SAFETY: the neighbours of a queued node are queued, so they are alive.
        unsafe {
            match prev.as_ref() {
                Some(p) => p.next.set(next),
                None => self.head = next,
            }
            match next.as_ref() {
                Some(n) => n.prev.set(prev),
                None => self.tail = prev,
            }
        }
    }

    /// Takes the first waiter out, if its number is below `bound`, and marks it notified.
    fn pop(&mut self, bound: u64) -> Option<TaskRef> {
        // SAFETY: queued nodes are alive; this one may go once `notified` is set.
        let node = unsafe { self.head.as_ref() }.filter(|n| n.number.get() < bound)?;
        let task = TaskRef::clone(&node.task);
        self.remove(node);
        node.notified.store(true, Ordering::Release);
        Some(task)
    }
}

impl Condvar {
    /// Nobody waits.
    pub const fn new() -> Condvar {
        Condvar {
            queue: SpinLock::new(Queue { next_number: 0, head: ptr::null(), tail: ptr::null() }),
        }
    }

    /// Releases the mutex, parks with `event`, takes the mutex again. Spurious wake-ups happen.
    pub fn wait<'a, T>(
        &self,
        mutex: &'a Mutex<T>,
        guard: MutexGuard<'a, T>,
        event: WaitEvent,
        deadline: Option<Instant>,
    ) -> (MutexGuard<'a, T>, Wake) {
        assert_may_wait();
        debug_assert!(guard.is_of(mutex), "the guard is of another mutex");
        let node = Node {
            task: current(),
            notified: AtomicBool::new(false),
            number: Cell::new(0),
            queued: Cell::new(false),
            prev: Cell::new(ptr::null()),
            next: Cell::new(ptr::null()),
        };
        // SAFETY: `node` stays here until `leave` has taken it out, which happens before this
        // function ends in any way.
        unsafe { self.queue.lock().push(&node) };
        let leave = Leave(&self.queue, &node);
        drop(guard);
        let wake = park(event, deadline);
        drop(leave);
        let wake = if node.notified.load(Ordering::Acquire) { Wake::Unparked } else { wake };
        (mutex.lock(), wake)
    }

    /// Wakes the first waiter.
    pub fn notify_one(&self) {
        let task = self.queue.lock().pop(u64::MAX);
        if let Some(task) = task {
            task.unpark();
        }
    }

    /// Wakes all that wait now.
    pub fn notify_all(&self) {
        let bound = self.queue.lock().next_number;
        loop {
            // One at a time: nothing is woken, and no memory is asked for, under the spin lock.
            let task = self.queue.lock().pop(bound);
            match task {
                Some(task) => task.unpark(),
                None => return,
            }
        }
    }
}

impl Default for Condvar {
    fn default() -> Condvar {
        Condvar::new()
    }
}

/// Takes the node out of the queue, also when the park unwinds.
struct Leave<'a>(&'a SpinLock<Queue>, &'a Node);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.0.lock().remove(self.1);
    }
}
