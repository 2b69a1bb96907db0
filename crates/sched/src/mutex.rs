//! Short internal critical sections: a spin lock that never parks, a spin-then-park mutex, and a
//! condition variable.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::time::Instant;

use base::WaitEvent;

use crate::task::Wake;

/// Spins with bounded exponential back-off; never held across a park or a system call.
pub struct SpinLock<T>(UnsafeCell<T>);
/// Spins a little, then parks with its wait event.
pub struct Mutex<T>(WaitEvent, UnsafeCell<T>);
/// Held lock (of either kind).
pub struct MutexGuard<'a, T>(&'a T);
/// Waiters for a condition on data under a [`Mutex`].
pub struct Condvar {}

// SAFETY: mutual exclusion.
unsafe impl<T: Send> Sync for SpinLock<T> {}
// SAFETY: mutual exclusion.
unsafe impl<T: Send> Sync for Mutex<T> {}

impl<T> SpinLock<T> {
    /// Unlocked.
    pub const fn new(value: T) -> SpinLock<T> {
        SpinLock(UnsafeCell::new(value))
    }
    /// Spins until it is free.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        todo!()
    }
}
impl<T> Mutex<T> {
    /// Unlocked; `event` labels the wait.
    pub const fn new(event: WaitEvent, value: T) -> Mutex<T> {
        Mutex(event, UnsafeCell::new(value))
    }
    /// Waits until it is free.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        todo!()
    }
}
impl Condvar {
    /// Nobody waits.
    pub const fn new() -> Condvar {
        Condvar {}
    }
    /// Releases the mutex, parks with `event`, takes the mutex again. Spurious wake-ups happen.
    pub fn wait<'a, T>(
        &self,
        _mutex: &'a Mutex<T>,
        _guard: MutexGuard<'a, T>,
        _event: WaitEvent,
        _deadline: Option<Instant>,
    ) -> (MutexGuard<'a, T>, Wake) {
        todo!()
    }
    /// Wakes the first waiter.
    pub fn notify_one(&self) {
        todo!()
    }
    /// Wakes all.
    pub fn notify_all(&self) {
        todo!()
    }
}
impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        todo!()
    }
}
impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        todo!()
    }
}
