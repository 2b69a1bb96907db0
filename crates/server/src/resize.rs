//! Makes the server the size that the settings say while it runs: `shared_buffers`,
//! `buffer_partitions`, `wal_buffers`, `workers` and `server_memory_limit`.
//!
//! A reload only notes what is wanted; this background thread does it, so that nobody who reloads
//! waits for pages to be written. A pool whose last pages stay pinned is tried again until it has the
//! size that is wanted, which may have changed meanwhile.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base::settings::{live_int, setting};
use base::{Result, WaitEvent};

use crate::log;
use crate::server::Server;

/// How long a shrinking pool waits for pinned pages before it tries again from the beginning.
const PATIENCE: Duration = Duration::from_secs(5);
/// After a failure.
const PAUSE: Duration = Duration::from_secs(1);

/// The thread's work.
pub fn work(server: &Arc<Server>) {
    let mut workers = live_int(setting::WORKERS);
    loop {
        let pool = fit_pool(server);
        limit_memory();
        fit_log(server);
        let again = say("shared_buffers", pool)
            | say("buffer_partitions", fit_partitions(server))
            | say("workers", fit_workers(server, &mut workers));
        let until = again.then(|| Instant::now() + PAUSE);
        server.resizer.await_work(WaitEvent::ActivityThreadMain, until);
        if sched::check_interrupts().is_err() {
            return;
        }
    }
}

/// `server_memory_limit`.
fn limit_memory() {
    let bytes = match live_int(setting::SERVER_MEMORY_LIMIT) {
        0 => storage::memory_of_machine() as i64 / 4 * 3,
        kib => (kib << 10).max(0),
    };
    sched::memory::set_server_limit(bytes);
}

/// Whether it has to be tried again.
fn say(setting: &str, outcome: Result<Option<String>>) -> bool {
    match outcome {
        Ok(None) => false,
        Ok(Some(line)) => {
            log::info(line);
            false
        }
        Err(error) => {
            log::error(0, &error.context(format!("change of {setting}")), None);
            true
        }
    }
}

fn fit_pool(server: &Server) -> Result<Option<String>> {
    let pool = &server.engine.storage.pool;
    let (before, wanted) = (pool.frames(), live_int(setting::SHARED_BUFFERS) as usize);
    if wanted == before {
        return Ok(None);
    }
    pool.resize(wanted, PATIENCE)?;
    Ok(Some(format!("shared buffers resized from {before} to {wanted} pages")))
}

/// `wal_buffers`: done by the WAL writer.
fn fit_log(server: &Server) {
    server.engine.storage.wal.set_buffers(storage::Options::from_settings().wal_buffers);
}

fn fit_partitions(server: &Server) -> Result<Option<String>> {
    let pool = &server.engine.storage.pool;
    let before = pool.partitions();
    pool.set_partitions(live_int(setting::BUFFER_PARTITIONS) as usize)?;
    let now = pool.partitions();
    Ok((now != before).then(|| format!("buffer partitions changed from {before} to {now}")))
}

fn fit_workers(server: &Server, have: &mut i64) -> Result<Option<String>> {
    let wanted = live_int(setting::WORKERS);
    if wanted == *have {
        return Ok(None);
    }
    let before = server.workers.count();
    server.workers.resize(wanted as usize)?;
    *have = wanted;
    Ok(Some(format!("workers changed from {before} to {}", server.workers.count())))
}
