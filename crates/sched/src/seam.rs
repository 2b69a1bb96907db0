//! The seam at which loom is put under the locks: everything that their state machine uses and that
//! loom must see. `RUSTFLAGS="--cfg loom" cargo test -p sched --release --test loom_lwlock` walks through
//! the interleavings; see tests/loom_lwlock.rs.

#[cfg(not(loom))]
mod real {
    pub use std::cell::Cell;
    pub use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

    use crate::local::{Local, local};
    use crate::observe::{TAG_MASK, count_acquisition};
    pub use crate::spin::Backoff;
    pub use crate::task::{TaskRef, current, park_uninterruptible};

    /// Panics where nothing may wait.
    pub fn assert_may_wait() {
        crate::local::local().assert_may_wait();
    }

    /// The running task as a holder of latches.
    #[derive(Clone, Copy)]
    pub struct Me(&'static Local);

    impl Me {
        /// Whoever calls.
        #[inline]
        pub fn now() -> Me {
            Me(local())
        }

        /// What the lock's word says of its exclusive holder.
        #[inline]
        pub fn tag(self) -> u64 {
            self.0.current().id() & TAG_MASK
        }

        /// It took a latch of this tranche.
        #[inline]
        pub fn took(self, tranche: usize) {
            self.0.current().latch_held(1);
            count_acquisition(self.0, tranche);
        }

        /// It gave one back.
        #[inline]
        pub fn released(self) {
            self.0.current().latch_held(-1);
        }
    }
}

#[cfg(loom)]
mod model {
    use std::sync::Arc;
    use std::time::Instant;

    pub use loom::cell::Cell;
    pub use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

    /// A task that is a loom thread.
    pub struct Task(loom::thread::Thread);
    pub type TaskRef = Arc<Task>;

    impl Task {
        pub fn unpark(&self) {
            self.0.unpark();
        }
        pub fn id(&self) -> u64 {
            1
        }
    }

    pub fn current() -> TaskRef {
        Arc::new(Task(loom::thread::current()))
    }

    pub fn park_uninterruptible(_waiting: crate::Waiting, _deadline: Option<Instant>) {
        loom::thread::park();
    }

    pub fn assert_may_wait() {}

    /// As the real one, but for the counts.
    #[derive(Clone, Copy)]
    pub struct Me;

    impl Me {
        pub fn now() -> Me {
            Me
        }
        pub fn tag(self) -> u64 {
            1
        }
        pub fn took(self, _tranche: usize) {}
        pub fn released(self) {}
    }

    /// Lets another loom thread run.
    pub struct Backoff;

    impl Backoff {
        pub fn new() -> Backoff {
            Backoff
        }
        pub fn wait(&mut self) {
            loom::thread::yield_now();
        }
    }
}

#[cfg(loom)]
pub(crate) use model::*;
#[cfg(not(loom))]
pub(crate) use real::*;
