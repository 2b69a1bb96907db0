//! The seam at which loom and shuttle are put under the locks: everything that their state machine
//! uses and that a checker must see.
//!
//! * `--cfg loom` builds the lock's state machine and the parking, and walks through every
//!   interleaving of a few steps: tests/loom_lwlock.rs, tests/loom_parking.rs.
//! * `--cfg shuttle` builds these and the mutex, the condition variable and the spin lock, and tries
//!   many random schedules of longer stories with cancellation and timeouts: tests/shuttle.rs.
//! * The handshake by which a held worker changes threads: tests/loom_tenure.rs.

#[cfg(not(any(loom, shuttle)))]
mod real {
    pub use std::cell::Cell;
    pub use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

    pub(crate) use crate::local::spin_held;
    use crate::local::{Local, local};
    use crate::observe::{TAG_MASK, count_acquisition};
    pub use crate::spin::Backoff;
    pub(crate) use crate::sys::{heavy_fence, light_fence};
    pub use crate::task::{TaskRef, Wake, current, park, park_uninterruptible};

    /// Panics where nothing may wait.
    pub fn assert_may_wait() {
        crate::local::local().assert_may_wait();
    }

    /// The running task as a holder of latches. Not to be kept across a wait.
    #[derive(Clone, Copy)]
    pub struct Me(&'static Local);

    impl Me {
        /// Whoever calls.
        #[inline]
        pub fn now() -> Me {
            Me(local())
        }

        /// The exclusive holder as the lock's word tells it.
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

    /// Both halves of the real one's pair are whole barriers.
    pub fn light_fence() {
        loom::sync::atomic::fence(Ordering::SeqCst);
    }

    pub fn heavy_fence() {
        loom::sync::atomic::fence(Ordering::SeqCst);
    }

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

/// Tasks that are shuttle's threads: the real parking over shuttle's atomics, with a deadline that
/// may come at any time.
#[cfg(shuttle)]
pub mod scheduled {
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64 as Number;
    use std::time::Instant;

    pub use shuttle::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
    use shuttle::thread::Thread;
    pub use std::cell::Cell;

    use crate::Waiting;
    use crate::parking::{Begin, DEAF, PARKED, Parking};
    pub use crate::spin::Backoff;

    /// See the module.
    pub struct Task {
        id: u64,
        parking: Parking,
        thread: Thread,
    }

    /// Shared handle.
    pub type TaskRef = Arc<Task>;

    /// As the real one.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Wake {
        /// By unpark.
        Unparked,
        /// By the deadline.
        TimedOut,
        /// By an interrupt, which stays.
        Interrupted,
    }

    static IDS: Number = Number::new(1);

    shuttle::thread_local! {
        static CURRENT: TaskRef = Arc::new(Task {
            id: IDS.fetch_add(1, Ordering::Relaxed),
            parking: Parking::new(),
            thread: shuttle::thread::current(),
        });
    }

    /// The running thread's task.
    pub fn current() -> TaskRef {
        CURRENT.with(Arc::clone)
    }

    impl Task {
        /// As the real one.
        pub fn unpark(&self) {
            if self.parking.unpark().is_some() {
                self.thread.unpark();
            }
        }

        /// Cancels.
        pub fn interrupt(&self) {
            self.parking.raise(1);
            if self.parking.wake_unless(DEAF).is_some() {
                self.thread.unpark();
            }
        }

        /// Takes the interrupt.
        pub fn take_interrupt(&self) {
            self.parking.clear(1);
        }

        /// As the real one.
        pub fn id(&self) -> u64 {
            self.id
        }

        fn park(&self, how: u32, deadline: Option<Instant>) -> Wake {
            match self.parking.begin(how) {
                Begin::Token => return Wake::Unparked,
                Begin::Interrupted => return Wake::Interrupted,
                Begin::Parked => {}
            }
            while self.parking.is_parked() {
                match deadline {
                    // The clock is one more thread that shuttle runs when it likes.
                    Some(_) => {
                        shuttle::thread::yield_now();
                        self.parking.give_up(how);
                    }
                    None => shuttle::thread::park(),
                }
            }
            match self.parking.end() {
                true => Wake::Unparked,
                false if how & DEAF == 0 && self.parking.pending() != 0 => Wake::Interrupted,
                false if deadline.is_some() => Wake::TimedOut,
                false => Wake::Unparked,
            }
        }
    }

    /// As the real one.
    pub fn park(_waiting: impl Into<Waiting>, deadline: Option<Instant>) -> Wake {
        current().park(PARKED, deadline)
    }

    /// As the real one.
    pub fn park_uninterruptible(_waiting: impl Into<Waiting>, deadline: Option<Instant>) -> Wake {
        current().park(PARKED | DEAF, deadline)
    }

    pub(crate) fn assert_may_wait() {}
    pub(crate) fn spin_held(_change: i32) {}

    /// As the real one, but for the counts.
    #[derive(Clone, Copy)]
    pub(crate) struct Me;

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
}

#[cfg(loom)]
pub(crate) use model::*;
#[cfg(not(any(loom, shuttle)))]
pub(crate) use real::*;
#[cfg(shuttle)]
pub(crate) use scheduled::*;
