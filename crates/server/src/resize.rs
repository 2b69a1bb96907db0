//! Makes the server the size that the settings say while it runs: `shared_buffers`, `workers` and
//! `server_memory_limit`.
//!
//! A reload only notes what is wanted; this background thread does it, so that nobody who reloads
//! waits for pages to be written. A pool whose last pages stay pinned is tried again until it has the
//! size that is wanted, which may have changed meanwhile.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use base::settings::{live_int, setting};
use base::{Result, WaitEvent};
use sched::{SpinLock, TaskRef};

use crate::log;
use crate::server::Server;

/// How long a shrinking pool waits for pinned pages before it tries again from the beginning.
const PATIENCE: Duration = Duration::from_secs(5);
/// After a failure.
const PAUSE: Duration = Duration::from_secs(1);

/// How to reach the thread.
#[derive(Default)]
pub struct Resizer {
    thread: SpinLock<Option<(TaskRef, JoinHandle<()>)>>,
}

impl Resizer {
    /// The settings may have changed.
    pub fn wake(&self) {
        if let Some((task, _)) = &*self.thread.lock() {
            task.unpark();
        }
    }

    /// Ends the thread and waits for it.
    pub fn stop(&self) {
        let thread = self.thread.lock().take();
        if let Some((task, thread)) = thread {
            task.interrupt(sched::Interrupt::Terminate);
            // One that panicked has said so in the log.
            let _ = thread.join();
        }
    }
}

/// Starts the thread.
pub fn start(server: &Arc<Server>) {
    let task = sched::Task::new("resizer");
    let shared = server.clone();
    let thread = sched::spawn_task(task.clone(), move || work(&shared));
    *server.resizer.thread.lock() = Some((task, thread));
}

fn work(server: &Server) {
    let mut workers = live_int(setting::WORKERS);
    loop {
        let pool = fit_pool(server);
        limit_memory();
        let again = say("shared_buffers", pool) | say("workers", fit_workers(server, &mut workers));
        let until = again.then(|| Instant::now() + PAUSE);
        sched::park(WaitEvent::ActivityThreadMain, until);
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
