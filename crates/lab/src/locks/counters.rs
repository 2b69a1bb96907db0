//! Atomic counters: one for all threads, one each on a line of its own, one each side by side on
//! the same line. What agreement between cores costs, without any lock.

use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;

use super::bench::{Me, Operation};

/// All threads add to one.
#[derive(Default)]
pub struct AddOne(CachePadded<AtomicU64>);

impl Operation for AddOne {
    #[inline]
    fn once(&self, _me: &mut Me, entered: impl FnOnce()) {
        self.0.fetch_add(1, Ordering::Relaxed);
        entered();
    }
}

/// Each thread adds to its own, on a line of its own.
pub struct AddPadded(Box<[CachePadded<AtomicU64>]>);

impl AddPadded {
    /// For so many threads.
    pub fn new(threads: u32) -> AddPadded {
        AddPadded((0..threads).map(|_| CachePadded::default()).collect())
    }
}

impl Operation for AddPadded {
    #[inline]
    fn once(&self, me: &mut Me, entered: impl FnOnce()) {
        self.0[me.thread].fetch_add(1, Ordering::Relaxed);
        entered();
    }
}

/// Each thread adds to its own, but they share lines.
pub struct AddFalselyShared(CachePadded<[AtomicU64; 8]>);

impl AddFalselyShared {
    /// Eight counters on one line of 64 bytes.
    pub fn new() -> AddFalselyShared {
        AddFalselyShared(CachePadded::new([const { AtomicU64::new(0) }; 8]))
    }
}

impl Operation for AddFalselyShared {
    #[inline]
    fn once(&self, me: &mut Me, entered: impl FnOnce()) {
        self.0[me.thread % 8].fetch_add(1, Ordering::Relaxed);
        entered();
    }
}

/// All threads read one that nobody writes.
#[derive(Default)]
pub struct LoadOne(CachePadded<AtomicU64>);

impl Operation for LoadOne {
    #[inline]
    fn once(&self, _me: &mut Me, entered: impl FnOnce()) {
        std::hint::black_box(self.0.load(Ordering::Acquire));
        entered();
    }
}

/// One pause of a spin loop.
pub struct Pause;

impl Operation for Pause {
    #[inline]
    fn once(&self, _me: &mut Me, entered: impl FnOnce()) {
        std::hint::spin_loop();
        entered();
    }
}
