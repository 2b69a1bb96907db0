//! A spin lock for critical sections of a few instructions: it never parks, and nothing that parks
//! or calls the system runs under it.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
#[cfg(not(shuttle))]
use std::thread::yield_now;

#[cfg(shuttle)]
use shuttle::thread::yield_now;

use crate::seam::{AtomicBool, Ordering, spin_held};

/// Spins with bounded exponential back-off; never held across a park or a system call.
pub struct SpinLock<T> {
    held: AtomicBool,
    value: UnsafeCell<T>,
}

/// A held [`SpinLock`].
pub struct SpinLockGuard<'a, T>(&'a SpinLock<T>);

// SAFETY: only the holder of the flag reaches the value.
unsafe impl<T: Send> Sync for SpinLock<T> {}
// SAFETY: as any owner of a T.
unsafe impl<T: Send> Send for SpinLock<T> {}
// SAFETY: a shared guard hands out &T only.
unsafe impl<T: Sync> Sync for SpinLockGuard<'_, T> {}

impl<T> SpinLock<T> {
    /// Unlocked.
    pub const fn new(value: T) -> SpinLock<T> {
        SpinLock { held: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Spins until it is free.
    #[inline]
    pub fn lock(&self) -> SpinLockGuard<'_, T> {
        if self.held.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
            self.lock_slow();
        }
        spin_held(1);
        SpinLockGuard(self)
    }

    /// Without waiting.
    pub fn try_lock(&self) -> Option<SpinLockGuard<'_, T>> {
        self.held.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).ok()?;
        spin_held(1);
        Some(SpinLockGuard(self))
    }

    /// The value, when nobody else can have it.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }

    #[cold]
    fn lock_slow(&self) {
        let mut backoff = Backoff::new();
        loop {
            while self.held.load(Ordering::Relaxed) {
                backoff.wait();
            }
            let taken =
                self.held.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
            if taken.is_ok() {
                return;
            }
        }
    }
}

impl<T: Default> Default for SpinLock<T> {
    fn default() -> SpinLock<T> {
        SpinLock::new(T::default())
    }
}

impl<T> Deref for SpinLockGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: this guard holds the lock.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for SpinLockGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this guard holds the lock.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for SpinLockGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        spin_held(-1);
        self.0.held.store(false, Ordering::Release);
    }
}

/// Pauses whose bound doubles up to a limit, each of a random length between half of its bound and
/// the whole of it, so that spinners who began together don't try together for ever; then gives the
/// processor away: the holder may have been descheduled by the kernel.
pub struct Backoff {
    bound: u32,
    /// State of a xorshift generator (Marsaglia 2003).
    random: u32,
}

impl Backoff {
    /// Begins with one pause.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Backoff {
        // Each spinner is on a stack of its own.
        let here = 0u8;
        // Shuttle sees no pauses, only the other threads' steps.
        Backoff {
            bound: if cfg!(shuttle) { u32::MAX } else { 1 },
            random: std::ptr::from_ref(&here).addr() as u32 >> 4 | 1,
        }
    }

    /// Waits about twice as long as before, up to a bound.
    pub fn wait(&mut self) {
        const LONGEST: u32 = 64;
        if self.bound > LONGEST {
            yield_now();
            return;
        }
        for _ in 0..self.pauses() {
            std::hint::spin_loop();
        }
        self.bound *= 2;
    }

    /// From half of the bound to all of it.
    fn pauses(&mut self) -> u32 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
        self.bound - self.random % (self.bound / 2 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn increments_are_not_lost() {
        let lock = SpinLock::new(0u64);
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| (0..10_000).for_each(|_| *lock.lock() += 1));
            }
        });
        assert_eq!(lock.into_inner(), 40_000);
    }

    #[test]
    fn pauses_vary_within_their_bound() {
        let mut backoff = Backoff { bound: 64, random: 1 };
        let pauses: Vec<u32> = (0..1000).map(|_| backoff.pauses()).collect();
        assert_eq!((pauses.iter().min(), pauses.iter().max()), (Some(&32), Some(&64)));
    }

    #[test]
    fn a_panic_releases_it() {
        let lock = SpinLock::new(());
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _held = lock.lock();
            panic!("under the lock");
        }));
        assert!(lock.try_lock().is_some());
    }
}
