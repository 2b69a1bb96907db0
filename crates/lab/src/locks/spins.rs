//! Spin locks: the server's, which backs off, and the plainest, which does not.

use std::sync::atomic::{AtomicBool, Ordering};

use crossbeam_utils::CachePadded;
use sched::SpinLock;

use super::bench::{Me, Operation};

/// `sched::SpinLock`: tests before it sets, pauses twice as long each time, at last yields.
pub struct SpinBackoff(CachePadded<SpinLock<u64>>);

impl SpinBackoff {
    /// Unlocked.
    pub fn new() -> SpinBackoff {
        SpinBackoff(CachePadded::new(SpinLock::new(0)))
    }
}

impl Operation for SpinBackoff {
    #[inline]
    fn once(&self, me: &mut Me, entered: impl FnOnce()) {
        let mut held = self.0.lock();
        entered();
        *held += 1;
        me.hold();
    }
}

/// Sets until it was free, at once and again.
#[derive(Default)]
pub struct SpinPlain(CachePadded<AtomicBool>);

impl Operation for SpinPlain {
    #[inline]
    fn once(&self, me: &mut Me, entered: impl FnOnce()) {
        while self.0.swap(true, Ordering::Acquire) {}
        entered();
        me.hold();
        self.0.store(false, Ordering::Release);
    }
}
