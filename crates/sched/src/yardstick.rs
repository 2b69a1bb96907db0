//! The system's own reader-writer lock behind a safe face: nothing in the server uses it, `lab
//! locks` measures ours against it.

use std::cell::UnsafeCell;
use std::marker::PhantomData;

/// A `pthread_rwlock_t` with default attributes (glibc: readers pass waiting writers), without data.
pub struct PthreadRwLock {
    /// On the heap, since it must not move once it was used.
    lock: Box<UnsafeCell<libc::pthread_rwlock_t>>,
}

/// A held [`PthreadRwLock`], shared or exclusive. Stays with its thread, which must unlock it.
pub struct PthreadGuard<'a>(&'a PthreadRwLock, PhantomData<*const ()>);

// SAFETY: the C library's lock is made to be used by many threads at once.
unsafe impl Sync for PthreadRwLock {}
// SAFETY: the box moves, the lock in it does not; a lock that moves is not held, since guards borrow.
unsafe impl Send for PthreadRwLock {}

impl PthreadRwLock {
    /// Unlocked.
    pub fn new() -> PthreadRwLock {
        PthreadRwLock { lock: Box::new(UnsafeCell::new(libc::PTHREAD_RWLOCK_INITIALIZER)) }
    }

    /// Waits for shared access.
    ///
    /// # Panics
    /// The calling thread holds it exclusively.
    #[inline]
    pub fn read(&self) -> PthreadGuard<'_> {
        // SAFETY: the lock is initialised and in its place for as long as `self` lives.
        let result = unsafe { libc::pthread_rwlock_rdlock(self.lock.get()) };
        assert_eq!(result, 0, "a lock that this thread holds");
        PthreadGuard(self, PhantomData)
    }

    /// Waits for exclusive access.
    ///
    /// # Panics
    /// The calling thread holds it.
    #[inline]
    pub fn write(&self) -> PthreadGuard<'_> {
        // SAFETY: as in `read`.
        let result = unsafe { libc::pthread_rwlock_wrlock(self.lock.get()) };
        assert_eq!(result, 0, "a lock that this thread holds");
        PthreadGuard(self, PhantomData)
    }
}

impl Default for PthreadRwLock {
    fn default() -> PthreadRwLock {
        PthreadRwLock::new()
    }
}

impl Drop for PthreadGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the guard says that this thread holds the lock.
        unsafe { libc::pthread_rwlock_unlock(self.0.lock.get()) };
    }
}

impl Drop for PthreadRwLock {
    fn drop(&mut self) {
        // SAFETY: nobody holds it, since guards borrow it.
        unsafe { libc::pthread_rwlock_destroy(self.lock.get()) };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn writers_are_alone() {
        let (lock, value) = (PthreadRwLock::new(), AtomicU64::new(0));
        std::thread::scope(|s| {
            for _ in 0..3 {
                s.spawn(|| {
                    for _ in 0..5_000 {
                        let _held = lock.write();
                        // Not one atomic step: only the lock keeps increments from being lost.
                        value.store(value.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                    }
                });
            }
            drop(lock.read());
        });
        assert_eq!(value.into_inner(), 15_000);
    }
}
