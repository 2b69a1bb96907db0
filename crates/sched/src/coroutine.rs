//! Coroutines: their stacks, and the loop that each runs.
//!
//! A coroutine is made once and then runs one connection after the other; between two it waits in
//! its worker's pool, suspended at the top of its loop with an all but empty stack.
//!
//! ```text
//!                | never touched: the stack's colour               |
//!   base (high)  | loop frame | Source::run ... statement ... park |
//!                |   grows down                                    |
//!   limit        | first usable byte                               |
//!                | guard page: a touch kills the server            |
//! ```
//! Mappings of one size lie at distances at which their lines share the sets of a cache: eight waiting
//! statements would fill them. So stacks begin at different distances from their mappings' ends.
//!
//! `check_stack` turns an approaching end into an error long before the guard page.

use std::io;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};

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
        /// Whether `run` left the coroutine suspended, not ended.
        open: bool,
    },
}

/// The way out of a running coroutine. None goes in only once, when the coroutine is made.
pub(crate) type Yielder = corosensei::Yielder<Option<&'static Conn>, Step>;

/// Virtual size of a coroutine's stack, guard page included, without its colour.
const STACK_BYTES: usize = 1 << 20;
/// Different distances of a stack's base from its mapping's end.
const COLOURS: usize = 120;
/// Between two of them: an odd number of cache lines, so that all sets have their turn.
const COLOUR_BYTES: usize = 17 * 64;
const MAPPED_BYTES: usize = STACK_BYTES + (128 << 10);
/// The part nearest the base that a returned stack keeps; the rest goes back to the system.
const KEPT_BYTES: usize = 64 << 10;
/// How many runs may pass between two returns of a stack's unused part.
const RUNS_BETWEEN_TRIMS: u32 = 1024;
const PAGE: usize = 4096;

const _: () = assert!(STACK_BYTES + COLOURS * COLOUR_BYTES <= MAPPED_BYTES);

/// A private mapping with a guard page at its low end.
struct CoroStack {
    low: *mut libc::c_void,
    colour: usize,
}

impl CoroStack {
    fn new() -> io::Result<CoroStack> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        // SAFETY: a fresh anonymous mapping; its lowest page is then made inaccessible.
        unsafe {
            let low = libc::mmap(
                std::ptr::null_mut(),
                MAPPED_BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK,
                -1,
                0,
            );
            if low == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            let colour = NEXT.fetch_add(1, Ordering::Relaxed) % COLOURS;
            let stack = CoroStack { low, colour };
            if libc::mprotect(low, PAGE, libc::PROT_NONE) != 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(stack)
        }
    }

    /// The highest address.
    fn top(&self) -> usize {
        self.low as usize + MAPPED_BYTES - self.colour * COLOUR_BYTES
    }

    /// The lowest address that is used: all stacks have one length.
    fn first(&self) -> usize {
        self.top() - STACK_BYTES + PAGE
    }
}

impl Drop for CoroStack {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and nothing runs on it any more.
        unsafe { libc::munmap(self.low, MAPPED_BYTES) };
    }
}

// SAFETY: the mapping has a guard page, is larger than the minimum, and both ends are aligned as a stack
// pointer has to be.
unsafe impl Stack for CoroStack {
    fn base(&self) -> StackPointer {
        // A mapping never ends at address 0.
        NonZeroUsize::new(self.top()).unwrap_or(NonZeroUsize::MAX)
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
        let from = self.stack_limit.next_multiple_of(PAGE);
        let bytes = STACK_BYTES - 2 * PAGE - KEPT_BYTES;
        // SAFETY: the range lies inside the coroutine's own mapping, below everything that the
        // suspended loop frame uses (it is within KEPT_BYTES of the base).
        unsafe { libc::madvise(from as *mut _, bytes, libc::MADV_DONTNEED) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_are_of_one_length_and_share_no_cache_sets() {
        let stacks: Vec<CoroStack> = (0..COLOURS).map(|_| CoroStack::new().unwrap()).collect();
        let set = |stack: &CoroStack| stack.top() / 64 % 2048;
        let sets: std::collections::HashSet<usize> = stacks.iter().map(set).collect();
        assert!(sets.len() > COLOURS / 2, "{}", sets.len());
        for stack in &stacks {
            assert_eq!(stack.top() - stack.first(), STACK_BYTES - PAGE);
            assert!(stack.first() >= stack.low as usize + PAGE, "the guard page is below");
        }
    }
}
