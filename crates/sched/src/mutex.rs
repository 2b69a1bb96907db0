//! A mutex that spins a little, then parks with its wait event.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};

use base::WaitEvent;

use crate::lwlock::RawLwLock;

/// Spins a little, then parks with its wait event. The exclusive half of an [`crate::LwLock`],
/// with the same bounded fairness.
pub struct Mutex<T> {
    raw: RawLwLock,
    value: UnsafeCell<T>,
}

/// A held [`Mutex`]. Released on unwinding, too: there is no poisoning, so a holder keeps the
/// value valid at every point where it can panic.
pub struct MutexGuard<'a, T>(&'a Mutex<T>);

// SAFETY: only the holder of the lock reaches the value.
unsafe impl<T: Send> Sync for Mutex<T> {}
// SAFETY: as any owner of a T.
unsafe impl<T: Send> Send for Mutex<T> {}
// SAFETY: a shared guard hands out &T only.
unsafe impl<T: Sync> Sync for MutexGuard<'_, T> {}

impl<T> Mutex<T> {
    /// Unlocked; `event` labels the wait.
    pub const fn new(event: WaitEvent, value: T) -> Mutex<T> {
        Mutex { raw: RawLwLock::new(event), value: UnsafeCell::new(value) }
    }

    /// Waits until it is free.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.raw.lock_exclusive();
        MutexGuard(self)
    }

    /// Without waiting.
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.raw.try_lock_exclusive().then(|| MutexGuard(self))
    }

    /// The value, when nobody else can have it.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T> MutexGuard<'_, T> {
    /// Whether this guard holds that mutex.
    pub(crate) fn is_of(&self, mutex: &Mutex<T>) -> bool {
        std::ptr::eq(self.0, mutex)
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: this guard holds the lock.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard holds the lock.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: this guard holds the lock.
        unsafe { self.0.raw.unlock_exclusive() }
    }
}
