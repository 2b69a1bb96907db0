//! The seam at which loom is put under the locks: everything that their state machine uses and that
//! loom must see. `RUSTFLAGS="--cfg loom" cargo test -p sched --release --test loom_lwlock` walks through
//! the interleavings; see tests/loom_lwlock.rs.

#[cfg(not(loom))]
mod real {
    pub use std::cell::Cell;
    pub use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

    pub use crate::spin::Backoff;
    pub use crate::task::{TaskRef, current, park_uninterruptible};

    /// Panics where nothing may wait.
    pub fn assert_may_wait() {
        crate::local::local().assert_may_wait();
    }

    /// Counts latches held by the running task, in debug builds.
    #[inline]
    pub fn latch_held(change: i32) {
        if cfg!(debug_assertions) && change != 0 {
            crate::task::with_current(|task| task.latch_held(change));
        }
    }
}

#[cfg(loom)]
mod model {
    use std::sync::Arc;
    use std::time::Instant;

    use base::WaitEvent;
    pub use loom::cell::Cell;
    pub use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

    /// A task that is a loom thread.
    pub struct Task(loom::thread::Thread);
    pub type TaskRef = Arc<Task>;

    impl Task {
        pub fn unpark(&self) {
            self.0.unpark();
        }
    }

    pub fn current() -> TaskRef {
        Arc::new(Task(loom::thread::current()))
    }

    pub fn park_uninterruptible(_event: WaitEvent, _deadline: Option<Instant>) {
        loom::thread::park();
    }

    pub fn assert_may_wait() {}
    pub fn latch_held(_change: i32) {}

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
