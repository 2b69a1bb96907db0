//! Waiting sessions by wait event, second by second.
//!
//! Nothing is sampled by chance: for each wait event the time waited so far is the total of the
//! finished waits plus what those under way have lasted. Its growth over a second, divided by
//! that second, is the mean number of tasks that waited for it; a wait of a microsecond and one of
//! an hour both count with the time they took.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use base::WaitEvent;
use base::waits::WAITS;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use sched::SpinLock;
use sched::observe::{is_idle, sums_by_event};

use crate::server::Server;

/// Seconds that are kept.
pub const KEPT: usize = 300;

/// One second.
#[derive(Clone, Debug)]
pub struct Second {
    /// Its end, in microseconds since 2000.
    pub at: i64,
    /// Processors busy with this process.
    pub cpu: f32,
    /// Tasks that waited, by event; those for which nobody did are left out.
    pub waiting: Vec<(WaitEvent, f32)>,
}

/// See the module's documentation.
#[derive(Default)]
pub struct Timeline {
    seconds: SpinLock<VecDeque<Second>>,
}

impl Timeline {
    /// The seconds that are kept, oldest first.
    pub fn seconds(&self) -> Vec<Second> {
        self.seconds.lock().iter().cloned().collect()
    }

    fn push(&self, second: Second) {
        let mut seconds = self.seconds.lock();
        if seconds.len() == KEPT {
            seconds.pop_front();
        }
        seconds.push_back(second);
    }
}

/// Whether waiting for it means that a statement does not get on: not the idling of background
/// threads, not a client that says nothing, and not who takes a profile.
pub fn counts(event: WaitEvent) -> bool {
    !is_idle(event) && event != WaitEvent::TimeoutProfileSampling
}

/// Nanoseconds waited so far.
type Totals = Vec<u64>;

/// The readings that the timeline's next second is compared with.
pub struct Sampler {
    at: Instant,
    cpu: Duration,
    totals: Totals,
}

impl Sampler {
    /// Begins now.
    pub fn new() -> Sampler {
        Sampler { at: Instant::now(), cpu: cpu_time(), totals: totals() }
    }

    /// Adds the time since the last call to the timeline.
    pub fn sample(&mut self, server: &Server) {
        let now = Sampler::new();
        let passed = now.at.duration_since(self.at).as_secs_f64().max(1e-3);
        let cpu = now.cpu.saturating_sub(self.cpu).as_secs_f64() / passed;
        let grown = |w: &base::waits::WaitInfo| {
            let i = w.event as usize;
            let ns = now.totals[i].saturating_sub(self.totals[i]);
            (w.event, (ns as f64 / 1e9 / passed) as f32)
        };
        let waiting = WAITS.iter().filter(|w| counts(w.event)).map(grown);
        server.profiler.timeline.push(Second {
            at: crate::server::now(),
            cpu: cpu as f32,
            waiting: waiting.filter(|(_, n)| *n > 0.0005).collect(),
        });
        *self = now;
    }
}

fn totals() -> Totals {
    sums_by_event().iter().map(|s| s.total_ns).collect()
}

/// Processor time of this process so far.
fn cpu_time() -> Duration {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else { return Duration::ZERO };
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Duration::from_micros(micros.max(0) as u64)
}
