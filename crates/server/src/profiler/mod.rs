//! The profiler: waits of each second, blocking between sessions, and where
//! stacks are.
//!
//! * [`timeline`]: the last minutes, second by second: how many sessions waited for what.
//!   [`blocking`]: who blocked whom. One thread, the wait sampler, wakes up once a second and feeds
//!   them.
//! * [`profile`]: stacks with weights, taken on demand, as text or as a flame graph: [`cpu`]'s by
//!   processor time ([`sampler`] takes samples, [`unwind`] walks them), [`waits`]' by time waited.
//!
//! Nothing here is on the way of a statement but while a profile is being taken.

pub mod blocking;
mod cpu;
mod folded;
pub mod names;
pub mod object;
pub mod profile;
mod sampler;
pub mod timeline;
mod unwind;
mod waits;

pub use folded::Folded;
pub use profile::Kind;

use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use base::WaitEvent;

use crate::background::Background;
use crate::server::Server;

/// Between two looks.
const PERIOD: Duration = Duration::from_secs(1);

/// The samples that were gathered, and the sampler's thread.
pub struct Profiler {
    /// The last minutes.
    pub timeline: timeline::Timeline,
    /// Blocking between sessions.
    pub blocking: blocking::History,
    /// The server that this is part of, for threads that work for a statement.
    server: OnceLock<Weak<Server>>,
    /// The wait sampler.
    pub thread: Background,
}

impl Default for Profiler {
    fn default() -> Profiler {
        Profiler {
            timeline: timeline::Timeline::default(),
            blocking: blocking::History::default(),
            server: OnceLock::new(),
            thread: Background::new("wait sampler"),
        }
    }
}

/// Starts the thread.
pub fn start(server: &Arc<Server>) {
    // Set once: a process has one server.
    let _ = server.profiler.server.set(Arc::downgrade(server));
    server.profiler.thread.start(server, work);
}

fn work(server: &Arc<Server>) {
    let mut sampler = timeline::Sampler::new();
    let mut watcher = blocking::Watcher::default();
    let mut generation = server.generation();
    let mut next = Instant::now() + PERIOD;
    loop {
        while Instant::now() < next {
            sched::park(WaitEvent::ActivityWaitSamplerMain, Some(next));
            if sched::check_interrupts().is_err() {
                return;
            }
        }
        // After a stop (a suspended machine) the lost seconds are not made up for.
        next = (next + PERIOD).max(Instant::now());
        sampler.sample(server);
        watcher.look(server);
        if generation != server.generation() {
            generation = server.generation();
            server.http.follow_settings(server);
        }
    }
}
