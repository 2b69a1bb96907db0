//! Tasks, workers and the one waiting room; the locks built on it.
//!
//! * A **worker** is a pthread with its own epoll set and run queue. When a socket becomes readable
//!   the worker takes a pooled coroutine and calls [`Source::run`] on it, right there, to its end.
//! * A **task** is what can wait: a session (on a coroutine or, with `session_model = thread`, on its
//!   own pthread) or a background thread. Every wait goes through [`park`], which takes the wait
//!   event; [`Task::unpark`] before `park` is remembered.
//! * A task that has started stays with its worker. The thread that serves the worker may change: a task that holds its
//!   thread for long is left alone with it, and another thread goes on with the worker ([`worker`]).
//! * A call that may wait for a disk goes to an **I/O worker** meanwhile ([`blocking`]).
//!
//! ```text
//!   park, interrupts, wait slot          task.rs
//!        |                 \
//!   a coroutine on a worker  a futex (background thread, test, thread model)
//!   worker/*.rs, coroutine.rs  sys.rs
//!        |                    blocking.rs: a system call on another thread, its caller parked
//!   LwLock, Mutex, Condvar               lwlock/*.rs, mutex.rs, condvar.rs: only use park and unpark
//! ```
//!
//! # Order of locking
//! A [`SpinLock`] is innermost: nothing is waited for while one is held (debug builds assert it).
//! Whoever holds an [`LwLock`] or [`Mutex`] does not wait for a heavyweight lock or for the client
//! (debug builds assert that too, by the type of the wait event).

#[cfg(not(any(loom, shuttle)))]
pub mod clock;
#[cfg(any(loom, shuttle))]
#[path = "clock_model.rs"]
pub mod clock;
pub mod lwlock;
#[cfg(not(loom))]
mod parking;
#[cfg(loom)]
pub mod parking;
mod seam;

// Under loom only the locks' state machine is built, under shuttle what is made of it, too.
#[cfg(not(any(loom, shuttle)))]
mod blocking;
#[cfg(not(loom))]
pub mod condvar;
#[cfg(not(any(loom, shuttle)))]
mod coroutine;
#[cfg(not(loom))]
pub mod exchange;
#[cfg(not(any(loom, shuttle)))]
pub mod fault_signals;
#[cfg(not(any(loom, shuttle)))]
pub mod helpers;
#[cfg(not(loom))]
pub mod joint;
#[cfg(not(any(loom, shuttle)))]
mod large;
#[cfg(not(any(loom, shuttle)))]
mod local;
#[cfg(not(any(loom, shuttle)))]
mod long_wait;
#[cfg(not(any(loom, shuttle)))]
pub mod memory;
#[cfg(not(loom))]
pub mod mutex;
#[cfg(not(any(loom, shuttle)))]
pub mod observe;
#[cfg(any(loom, shuttle))]
#[path = "observe/object.rs"]
mod observe;
#[cfg(not(loom))]
pub mod spin;
#[cfg(not(any(loom, shuttle)))]
pub mod stack;
#[cfg(not(any(loom, shuttle)))]
mod sys;
#[cfg(not(any(loom, shuttle)))]
pub mod task;
#[cfg(not(any(loom, shuttle)))]
mod tenure;
#[cfg(loom)]
pub mod tenure;
#[cfg(not(any(loom, shuttle)))]
pub mod worker;
#[cfg(not(any(loom, shuttle)))]
pub mod yardstick;

pub use lwlock::{LwLock, LwLockReadGuard, LwLockWriteGuard, RawLwLock};
pub use observe::{WaitObject, Waiting};
#[cfg(shuttle)]
pub use seam::scheduled::{Task, TaskRef, Wake, current, park};
#[cfg(not(any(loom, shuttle)))]
pub use {
    blocking::{
        DiskWait, blocking, blocking_on_disk, blocking_unless, elsewhere, limit_disk_waits,
        read_at, read_exact_at,
    },
    local::{Running, running},
    long_wait::LongWait,
    observe::tasks,
    stack::{check_stack, on_native_stack, stack_bytes, with_stack},
    sys::prefetch_line,
    task::{
        Interrupt, PriorityClass, Task, TaskRef, Wake, at_work, background_tasks, check_interrupts,
        check_interrupts_now, current, give_way, io_wait, next_pid, park, park_uninterruptible,
        spawn_task, spawn_thread, timed, unhurried, used, with_current, yield_now,
    },
    worker::{
        Acceptor, Held, Lines, OnHeld, Readiness, Source, WorkerState, Workers, leave, uses,
        wait_readable, wait_readable_or, wait_while_saturated, wait_writable, will_use,
    },
};
#[cfg(not(loom))]
pub use {
    condvar::Condvar,
    mutex::{Mutex, MutexGuard},
    spin::{SpinLock, SpinLockGuard},
};
