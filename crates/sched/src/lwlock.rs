//! Lightweight locks with bounded fairness.

use base::WaitEvent;

/// A reader-writer lock on one atomic word with a FIFO of parked waiters, without data.
pub struct RawLwLock {}

impl RawLwLock {
    /// `tranche` is a wait event of type LWLock.
    pub const fn new(_tranche: WaitEvent) -> RawLwLock {
        RawLwLock {}
    }
    /// Waits for shared access.
    pub fn lock_shared(&self) {
        todo!()
    }
    /// Waits for exclusive access.
    pub fn lock_exclusive(&self) {
        todo!()
    }
    /// Without waiting.
    pub fn try_lock_shared(&self) -> bool {
        todo!()
    }
    /// Without waiting.
    pub fn try_lock_exclusive(&self) -> bool {
        todo!()
    }
    /// # Safety
    /// The caller holds it shared.
    pub unsafe fn unlock_shared(&self) {
        todo!()
    }
    /// # Safety
    /// The caller holds it exclusively.
    pub unsafe fn unlock_exclusive(&self) {
        todo!()
    }
}

/// The same around a value.
pub struct LwLock<T> {
    raw: RawLwLock,
    value: std::cell::UnsafeCell<T>,
}

/// Shared access.
pub struct LwLockReadGuard<'a, T>(&'a LwLock<T>);
/// Exclusive access.
pub struct LwLockWriteGuard<'a, T>(&'a LwLock<T>);

impl<T> LwLock<T> {
    /// `tranche` is a wait event of type LWLock.
    pub const fn new(tranche: WaitEvent, value: T) -> LwLock<T> {
        LwLock { raw: RawLwLock::new(tranche), value: std::cell::UnsafeCell::new(value) }
    }
    /// Waits for shared access.
    pub fn read(&self) -> LwLockReadGuard<'_, T> {
        self.raw.lock_shared();
        LwLockReadGuard(self)
    }
    /// Waits for exclusive access.
    pub fn write(&self) -> LwLockWriteGuard<'_, T> {
        self.raw.lock_exclusive();
        LwLockWriteGuard(self)
    }
}
// Send/Sync, Deref, DerefMut, Drop: with the bodies.
// SAFETY: as std's RwLock: shared access hands out &T, exclusive access &mut T.
unsafe impl<T: Send + Sync> Sync for LwLock<T> {}
// SAFETY: as std's RwLock.
unsafe impl<T: Send> Send for LwLock<T> {}
impl<T> std::ops::Deref for LwLockReadGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        todo!()
    }
}
impl<T> std::ops::Deref for LwLockWriteGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        todo!()
    }
}
impl<T> std::ops::DerefMut for LwLockWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        todo!()
    }
}
