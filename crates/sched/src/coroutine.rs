//! Coroutines: their stacks, and the loop that each runs.
//!
//! A coroutine is made once and then runs one connection after the other; between two it waits in
//! its worker's pool, suspended at the top of its loop with an all but empty stack.
//!
//! ```text
//!   base (high)  | loop frame | Source::run ... statement ... park |
//!                |   grows down                                    |
//!   limit        | first usable byte                               |
//!                | guard page: a touch kills the server            |
//! ```
//! `check_stack` turns an approaching end into an error long before the guard page.

use std::io;
use std::num::NonZeroUsize;

use corosensei::stack::{Stack, StackPointer};
use corosensei::{Coroutine, CoroutineResult};

use crate::local::local;
use crate::worker::Conn;

/// Why a coroutine gave its worker back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Made, or ready for the next connection.
    Idle,
    /// Its task waits; whoever clears the task's parked bit queues it.
    Parked,
    /// Its slice is over; it wants to go on.
    Yielded,
    /// `Source::run` returned: whether the connection goes on.
    Done {
        /// What `run` said.
        open: bool,
    },
}

/// The way out of a running coroutine. None goes in only once, when the coroutine is made.
pub(crate) type Yielder = corosensei::Yielder<Option<&'static Conn>, Step>;

/// Virtual size of a coroutine's stack, guard page included.
const STACK_BYTES: usize = 1 << 20;
/// The part nearest the base that a returned stack keeps; the rest goes back to the system.
const KEPT_BYTES: usize = 64 << 10;
/// How many runs may pass between two returns of a stack's unused part.
const RUNS_BETWEEN_TRIMS: u32 = 1024;
const PAGE: usize = 4096;

/// A private mapping with a guard page at its low end.
struct CoroStack {
    low: *mut libc::c_void,
}

impl CoroStack {
    fn new() -> io::Result<CoroStack> {
        // SAFETY: a fresh anonymous mapping; its lowest page is then made inaccessible.
        unsafe {
            let low = libc::mmap(
                std::ptr::null_mut(),
                STACK_BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK,
                -1,
                0,
            );
            if low == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            let stack = CoroStack { low };
            if libc::mprotect(low, PAGE, libc::PROT_NONE) != 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(stack)
        }
    }

    /// The lowest usable address.
    fn first(&self) -> usize {
        self.low as usize + PAGE
    }
}

impl Drop for CoroStack {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and nothing runs on it any more.
        unsafe { libc::munmap(self.low, STACK_BYTES) };
    }
}

// SAFETY: the mapping has a guard page, is larger than the minimum, and both ends are page aligned.
unsafe impl Stack for CoroStack {
    fn base(&self) -> StackPointer {
        // A mapping never ends at address 0.
        NonZeroUsize::new(self.low as usize + STACK_BYTES).unwrap_or(NonZeroUsize::MAX)
    }
    fn limit(&self) -> StackPointer {
        NonZeroUsize::new(self.low as usize).unwrap_or(NonZeroUsize::MIN)
    }
}

/// A coroutine with what its worker must know to switch to it.
pub(crate) struct Coro {
    routine: Coroutine<Option<&'static Conn>, Step, (), CoroStack>,
    /// Its way out, which lies at the base of its stack.
    pub yielder: *const Yielder,
    /// The lowest usable address of its stack.
    pub stack_limit: usize,
    runs: u32,
}

impl Coro {
    /// A coroutine ready for its first connection.
    ///
    /// # Errors
    /// No memory, or too many mappings.
    pub fn new() -> io::Result<Coro> {
        let stack = CoroStack::new()?;
        let stack_limit = stack.first();
        let routine = Coroutine::with_stack(stack, |yielder: &Yielder, _| {
            // The maker reads this right after the first switch below.
            local().yielder.set(yielder);
            let mut next = yielder.suspend(Step::Idle);
            while let Some(conn) = next {
                let open = conn.run_source();
                next = yielder.suspend(Step::Done { open });
            }
        });
        let mut coro = Coro { routine, yielder: std::ptr::null(), stack_limit, runs: 0 };
        coro.resume(None);
        coro.yielder = local().yielder.replace(std::ptr::null());
        Ok(coro)
    }

    /// Runs the coroutine until it suspends.
    pub fn resume(&mut self, conn: Option<&'static Conn>) -> Step {
        match self.routine.resume(conn) {
            CoroutineResult::Yield(step) => step,
            // The loop ends only when None comes in, which happens at no later resume.
            CoroutineResult::Return(()) => unreachable!("a coroutine left its loop"),
        }
    }

    /// Called when a run is over: now and then the part of the stack that a deep statement may
    /// have touched goes back to the system.
    pub fn finished(&mut self) {
        self.runs += 1;
        if self.runs < RUNS_BETWEEN_TRIMS {
            return;
        }
        self.runs = 0;
        let bytes = STACK_BYTES - PAGE - KEPT_BYTES;
        // SAFETY: the range lies inside the coroutine's own mapping, below everything that the
        // suspended loop frame uses (it is within KEPT_BYTES of the base).
        unsafe { libc::madvise(self.stack_limit as *mut _, bytes, libc::MADV_DONTNEED) };
    }
}
