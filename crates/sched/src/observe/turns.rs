//! Turns: for how much processor time a run holds its worker before it lets others in, or could have.
//!
//! ```text
//!   resumed      look     look           suspended, or done
//!      |----------|--------|------ … ---------|          a look: check_interrupts reads the clock
//!          turn      turn          turn
//! ```
//!
//! A turn counts to its end though nobody waited: the longest is what a bystander waits for on this worker.
//! Processor time, not the clock's, so that a busy machine makes no turn longer. Measured only while
//! `log_worker_slice` is on: the thread's clock costs a system call.

use std::sync::atomic::Ordering;

use base::settings::{live_int, setting};

use crate::local::Local;
use crate::sys::thread_cpu_ns;

fn is_measured() -> bool {
    live_int(setting::LOG_WORKER_SLICE) >= 0
}

/// A run begins or goes on.
#[inline]
pub(crate) fn begin(local: &Local) {
    if is_measured() {
        local.turn_began.set(thread_cpu_ns());
    }
}

/// The running task's turn ends here, and another begins.
#[inline]
pub(crate) fn end(local: &Local) {
    if is_measured() {
        let (began, now) = (local.turn_began.get(), thread_cpu_ns());
        local.turn_began.set(now);
        if began != 0 && local.is_workers() {
            local.current().longest_turn.fetch_max(now.saturating_sub(began), Ordering::Relaxed);
        }
    }
}

/// The longest turn of the running task since this was last asked, in nanoseconds of processor time; 0 when
/// they are not measured.
pub fn take_longest() -> u64 {
    let local = crate::local::local();
    end(local);
    local.current().longest_turn.swap(0, Ordering::Relaxed)
}
