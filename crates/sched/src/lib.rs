//! Tasks, workers and the one waiting room; the locks built on it.
//!
//! (Interface agreed first; bodies follow.)
//!
//! * A **worker** is a pthread with its own epoll set and run queue. When a socket becomes readable
//!   the worker takes a pooled coroutine and calls [`Source::run`] on it, right there, to its end.
//! * A **task** is what can wait: a session (on a coroutine or, with `session_model = thread`, on its
//!   own pthread) or a background thread. Every wait goes through [`park`], which takes the wait
//!   event; [`Task::unpark`] before `park` is remembered.
//! * A task that has started stays with its worker.

pub mod lwlock;
pub mod mutex;
pub mod stack;
pub mod task;
pub mod worker;

pub use lwlock::{LwLock, LwLockReadGuard, LwLockWriteGuard, RawLwLock};
pub use mutex::{Condvar, Mutex, MutexGuard, SpinLock};
pub use stack::{check_stack, on_native_stack};
pub use task::{
    Interrupt, Task, TaskRef, Wake, check_interrupts, current, io_wait, park, park_uninterruptible,
    spawn_thread, yield_now,
};
pub use worker::{Readiness, Source, Workers, wait_readable, wait_writable};
