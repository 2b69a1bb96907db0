//! Lightweight locks with bounded fairness. `raw` holds the state machine and the proof;
//! here is the lock around a value.

mod raw;
mod tranche;

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};

#[cfg(not(loom))]
use base::WaitEvent;

pub use raw::RawLwLock;
pub use tranche::{
    TrancheCounters, parse_shared_limits, set_shared_limits, tranche_counters, tranches,
};

/// A reader-writer lock around a value.
pub struct LwLock<T> {
    raw: RawLwLock,
    value: UnsafeCell<T>,
}

/// Shared access.
pub struct LwLockReadGuard<'a, T>(&'a LwLock<T>);
/// Exclusive access.
pub struct LwLockWriteGuard<'a, T>(&'a LwLock<T>);

impl<T> LwLock<T> {
    /// `tranche` is a wait event of type LWLock.
    #[cfg(not(loom))]
    pub const fn new(tranche: WaitEvent, value: T) -> LwLock<T> {
        LwLock { raw: RawLwLock::new(tranche), value: UnsafeCell::new(value) }
    }

    /// Waits for shared access.
    #[inline]
    pub fn read(&self) -> LwLockReadGuard<'_, T> {
        self.raw.lock_shared();
        LwLockReadGuard(self)
    }

    /// Waits for exclusive access.
    #[inline]
    pub fn write(&self) -> LwLockWriteGuard<'_, T> {
        self.raw.lock_exclusive();
        LwLockWriteGuard(self)
    }

    /// The task that holds it exclusively just now; see [`RawLwLock::holder`].
    pub fn holder(&self) -> Option<u64> {
        self.raw.holder()
    }

    /// Shared access without waiting.
    pub fn try_read(&self) -> Option<LwLockReadGuard<'_, T>> {
        self.raw.try_lock_shared().then(|| LwLockReadGuard(self))
    }

    /// Exclusive access without waiting.
    pub fn try_write(&self) -> Option<LwLockWriteGuard<'_, T>> {
        self.raw.try_lock_exclusive().then(|| LwLockWriteGuard(self))
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

// SAFETY: as std's RwLock: shared access hands out &T, exclusive access &mut T.
unsafe impl<T: Send + Sync> Sync for LwLock<T> {}
// SAFETY: as std's RwLock.
unsafe impl<T: Send> Send for LwLock<T> {}

impl<T> Deref for LwLockReadGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: this guard holds the lock, shared.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> Deref for LwLockWriteGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: this guard holds the lock, exclusively.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for LwLockWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard holds the lock, exclusively.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for LwLockReadGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: this guard holds the lock, shared.
        unsafe { self.0.raw.unlock_shared() }
    }
}

impl<T> Drop for LwLockWriteGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: this guard holds the lock, exclusively.
        unsafe { self.0.raw.unlock_exclusive() }
    }
}
