//! A thread's tenure of a worker: when it may touch the worker, and how another thread takes the worker from it.
//!
//! ```text
//!            begin_run                    take, seen outside
//!   inside ────────────▶ outside ──ASKED──────────────────────▶ LOST: the worker is the other thread's
//!          ◀────────────                  │
//!             enter                       └─ seen inside, or moved: KEPT, nothing has happened
//! ```
//! The thread is inside while it runs the worker's own code, and outside while it runs a task, from which it may
//! enter for a moment. Who has the worker is decided by one store of the taker, `LOST`, and the thread learns of it
//! at its next `enter`, which is also its first step towards any of the worker's cells. So a worker is touched by one
//! thread at a time, whenever the thread that was held comes back.
//!
//! This is Dekker's handshake: the thread says that it is inside and then looks whether somebody asks, the taker asks
//! and then looks whether the thread is inside. One of them sees the other. The thread's half runs several times in each
//! run, the taker's almost never, so that the taker pays for the order of both: a barrier that the kernel executes on all
//! processors that run this process (membarrier(2)), where the thread only keeps the compiler from changing the order.
//!
//! The thread leaves with a release store and the taker looks with an acquire load: the taker finds the worker's cells as
//! the thread left them. While the thread is outside, the taker may read them before it decides; the thread
//! acquires that decision when it enters.

use crate::seam::{AtomicU32, AtomicU64, Backoff, Ordering, heavy_fence, light_fence};

/// Set while the thread may touch the worker.
const INSIDE: u64 = 1;
/// One visit of the scheduler more.
const VISIT: u64 = 2;

/// Nobody asks for the worker.
const KEPT: u32 = 0;
/// Somebody does, and has not decided.
const ASKED: u32 = 1;
/// The worker is another thread's; for good.
const LOST: u32 = 2;

/// See the module. Made anew for each thread and worker.
#[repr(align(128))]
pub struct Tenure {
    /// Visits so far, and [`INSIDE`]. The thread alone writes it.
    at: AtomicU64,
    claim: AtomicU32,
}

impl Default for Tenure {
    fn default() -> Tenure {
        Tenure::new()
    }
}

impl Tenure {
    /// One of a thread that is inside.
    pub fn new() -> Tenure {
        Tenure { at: AtomicU64::new(INSIDE), claim: AtomicU32::new(KEPT) }
    }

    /// Whether the thread, which calls, is inside.
    #[inline]
    pub fn is_inside(&self) -> bool {
        self.at.load(Ordering::Relaxed) & INSIDE != 0
    }

    /// The thread goes on with a task, which counts as a visit: from now on the worker may be taken.
    #[inline]
    pub fn begin_run(&self) {
        self.at.store((self.at.load(Ordering::Relaxed) & !INSIDE) + VISIT, Ordering::Release);
    }

    /// The task has come by, and others had their turn or could have had it.
    #[inline]
    pub fn visit(&self) {
        self.at.store(self.at.load(Ordering::Relaxed) + VISIT, Ordering::Release);
    }

    /// The thread, which is outside, wants to touch the worker. False: it is another thread's.
    #[inline]
    pub fn enter(&self) -> bool {
        self.at.store(self.at.load(Ordering::Relaxed) | INSIDE, Ordering::Relaxed);
        light_fence();
        self.claim.load(Ordering::Acquire) == KEPT || self.await_decision()
    }

    /// Ends what `enter` began.
    #[inline]
    pub fn leave(&self) {
        self.at.store(self.at.load(Ordering::Relaxed) & !INSIDE, Ordering::Release);
    }

    #[cold]
    fn await_decision(&self) -> bool {
        let mut backoff = Backoff::new();
        loop {
            match self.claim.load(Ordering::Acquire) {
                KEPT => return true,
                ASKED => backoff.wait(),
                _ => {
                    self.leave();
                    return false;
                }
            }
        }
    }

    /// A reading of the thread's place; None while it is inside. The same twice: it has not come by in between.
    pub fn outside(&self) -> Option<u64> {
        let at = self.at.load(Ordering::Relaxed);
        (at & INSIDE == 0).then_some(at)
    }

    /// Takes the worker from the thread, if that is outside as it was seen, and if the worker, which may be read
    /// meanwhile, `can` change hands. True: the caller has it. One caller at a time.
    pub fn take(&self, seen: u64, can: impl FnOnce() -> bool) -> bool {
        if self.claim.load(Ordering::Relaxed) != KEPT {
            return false;
        }
        self.claim.store(ASKED, Ordering::Relaxed);
        heavy_fence();
        let taken = self.at.load(Ordering::Acquire) == seen && can();
        self.claim.store(if taken { LOST } else { KEPT }, Ordering::Release);
        taken
    }
}
