//! Counts and notes of each thread, in memory that only it writes: watching must make no
//! cache line hot that what is watched doesn't. Readers go through all threads' memory. A thread that ends
//! leaves its own, counts and all, to the next one.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::counts::Counts;
use super::pending::Pending;
use crate::local::{Local, local};
use crate::spin::SpinLock;

/// One thread's.
#[repr(align(128))]
pub(crate) struct OfThread {
    pub counts: Counts,
    pub pending: Pending,
    /// Which ring of the history its waits go to, on a scale without bound.
    pub ring: AtomicUsize,
}

/// Everything there ever was, and what no thread has now.
struct All {
    all: Vec<&'static OfThread>,
    free: Vec<&'static OfThread>,
}

static ALL: SpinLock<All> = SpinLock::new(All { all: Vec::new(), free: Vec::new() });

thread_local! {
    static OWN: Own = const { Own(Cell::new(None)) };
}

/// Gives the thread's memory back when the thread ends.
struct Own(Cell<Option<&'static OfThread>>);

impl Drop for Own {
    fn drop(&mut self) {
        if let Some(own) = self.0.take() {
            own.drain();
            local().own.set(std::ptr::null());
            ALL.lock().free.push(own);
        }
    }
}

impl OfThread {
    /// Adds its finished waits to history and profile.
    pub fn drain(&self) {
        self.pending.drain(self.ring.load(Ordering::Relaxed));
    }
}

/// The running thread's.
#[inline]
pub(super) fn own(local: &Local) -> &'static OfThread {
    // SAFETY: they are never freed.
    unsafe { local.own.get().as_ref() }.unwrap_or_else(|| attach(local))
}

/// All threads'.
pub(super) fn every() -> Vec<&'static OfThread> {
    ALL.lock().all.clone()
}

#[cold]
fn attach(local: &Local) -> &'static OfThread {
    let used = ALL.lock().free.pop();
    let own = used.unwrap_or_else(|| {
        let new =
            OfThread { counts: Counts::new(), pending: Pending::new(), ring: AtomicUsize::new(0) };
        let own: &'static OfThread = Box::leak(Box::new(new));
        ALL.lock().all.push(own);
        own
    });
    own.ring.store(local.ring_index(), Ordering::Relaxed);
    local.own.set(own);
    // A thread that is ending has no OWN any more: this memory is then not used again.
    let _ = OWN.try_with(|kept| kept.0.set(Some(own)));
    own
}
