//! The server's past: what was waited for, run, written and blocked, second by second.
//!
//! ```text
//!   counters, waits, tasks ──collect.rs──► a slice a second ─► the last minutes in memory
//!          (read once a second)             (slice.rs)        └► history/ (file.rs): survives crashes, rolled up
//!                                                                  │
//!   pg_why, pg_wait_history, pg_top_*, pg_events, pg_plans ◄── History::between
//! ```
//! * The wait sampler's thread writes a slice to the directory's `history/` every second; whoever asks for a range that
//!   memory does not hold reads the files. A server that starts reads nothing.
//! * Nothing is counted for it on the way of a statement. Events come from where they happen ([`History::note`]).

pub mod clients;
mod codec;
mod collect;
mod disk;
mod file;
pub mod plans;
pub mod relations;
mod running;
mod sessions;
pub mod slice;
mod store;
mod tables;

use base::settings::{live_int, setting};
use base::{Error, Result, WaitEvent};

pub use collect::Collector;
use file::Grain;
pub use file::{Limits, Writer};
use slice::Slice;
pub use store::History;

use crate::log;
use crate::server::Server;

/// The folder in the data directory.
pub const FOLDER: &str = "history";

/// The slices of a range (microseconds since 2000), oldest first, handed to `each` one by one: a range may be
/// days long.
///
/// # Errors
/// Those of reading the files, and interrupts.
pub fn each_between(
    server: &Server,
    from: i64,
    to: i64,
    each: &mut dyn FnMut(&Slice),
) -> Result<()> {
    each_of(server, (from, to), Grain::Second, each)
}

/// As [`each_between`], for who divides the range in so many parts at most: in a range of hours minutes are as good as
/// seconds.
///
/// # Errors
/// As [`each_between`].
pub fn each_part(
    server: &Server,
    (from, to): (i64, i64),
    parts: i64,
    each: &mut dyn FnMut(&Slice),
) -> Result<()> {
    let grain = Grain::within(to.saturating_sub(from) / parts.max(1));
    each_of(server, (from, to), grain, each)
}

fn each_of(
    server: &Server,
    (from, to): (i64, i64),
    grain: Grain,
    each: &mut dyn FnMut(&Slice),
) -> Result<()> {
    let (recent, begins) = server.history.recent(from, to);
    if from < begins && live_int(setting::PG_HISTORY_RETENTION) > 0 {
        let until = to.min(begins);
        let dir = server.engine.storage.dir().join(FOLDER);
        let mut on_disk = |slice: Slice| {
            // Slices that are in memory, too, were written before they were kept there.
            if slice.at <= begins {
                each(&slice);
            }
            !sched::current().interrupted()
        };
        let read = || file::read(&dir, from, until, grain, &mut on_disk);
        sched::io_wait(WaitEvent::IOHistoryRead, read)
            .map_err(|e| Error::io("read the history", &e))?;
        sched::check_interrupts()?;
    }
    recent.iter().for_each(|slice| each(slice));
    Ok(())
}

/// Collects and writes, second by second.
pub struct Recorder {
    collector: Collector,
    writer: Writer,
    /// A failure was logged; the next is when writing has worked again.
    failed: bool,
}

impl Recorder {
    /// Begins now, with the event that says how the server before ended.
    pub fn new(server: &Server) -> Recorder {
        let dir = server.engine.storage.dir().join(FOLDER);
        note_start(server, &dir);
        Recorder { collector: Collector::new(server), writer: Writer::new(dir), failed: false }
    }

    /// Adds the second that has passed.
    pub fn record(
        &mut self,
        server: &Server,
        edges: &[crate::profiler::blocking::Edge],
        finished: &[sched::observe::WaitRecord],
    ) {
        let slice = self.collector.collect(server, edges, finished);
        self.write(&slice);
        server.history.keep(slice);
    }

    /// The last second of a server that stops.
    pub fn stop(&mut self, server: &Server) {
        server.history.note("stop", 0, "the server was stopped");
        self.record(server, &[], &[]);
    }

    fn write(&mut self, slice: &Slice) {
        let age_us = live_int(setting::PG_HISTORY_RETENTION) * 60_000_000;
        if age_us <= 0 {
            return;
        }
        let bytes = live_int(setting::PG_HISTORY_SIZE).max(1024) as u64 * 1024;
        let write = || self.writer.append(slice, Limits { age_us, bytes });
        match sched::io_wait(WaitEvent::IOHistoryWrite, write) {
            Ok(()) => self.failed = false,
            Err(error) if !self.failed => {
                self.failed = true;
                log::info(format_args!("could not write the history: {error}"));
            }
            Err(_) => {}
        }
    }
}

/// Notes the start, and whether the server before was stopped or ended otherwise.
fn note_start(server: &Server, dir: &std::path::Path) {
    let now = crate::server::now();
    let mut last: Option<(i64, bool)> = None;
    // A damaged history is none.
    let _ = file::read(dir, now - 3_600_000_000, i64::MAX, Grain::Second, &mut |slice| {
        last = Some((slice.at, slice.events.iter().any(|event| &*event.kind == "stop")));
        true
    });
    if let Some((at, false)) = last {
        let ago = (now - at).max(0) as f64 / 1e6;
        let text = format!("the server had not been stopped; it was last seen {ago:.0} s before");
        server.history.note("crash", 0, &text);
    }
    server.history.note("start", 0, "the server started");
}
