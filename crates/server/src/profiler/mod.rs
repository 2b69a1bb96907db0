//! The profiler: waits of each second, blocking between sessions, and where
//! stacks are.
//!
//! * [`timeline`]: the last minutes, second by second: how many sessions waited for what.
//!   [`blocking`]: who blocked whom. One thread, the wait sampler ([`crate::wait_sampler`]),
//!   wakes up once a second and feeds them.
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

use crate::background::Background;
use crate::server::Server;

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

impl Profiler {
    /// The server that this is part of, once it is there.
    pub fn belong_to(&self, server: &Arc<Server>) {
        // Set once: a process has one server.
        let _ = self.server.set(Arc::downgrade(server));
    }
}
