//! `pg_prewarm.autoprewarm`: a thread that reads the pages that were in memory when the server stopped, and writes
//! down from time to time which are now.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base::WaitEvent;
use base::settings::{live_bool, live_int, setting};

use crate::log;
use crate::server::Server;

/// The thread's work.
pub fn work(server: &Arc<Server>) {
    let storage = &server.engine.storage;
    if live_bool(setting::PG_PREWARM_AUTOPREWARM) {
        match exec::prewarm::load(storage) {
            Ok(0) => {}
            Ok(pages) => log::info(format_args!("autoprewarm read {pages} pages")),
            Err(_) if sched::check_interrupts().is_err() => return,
            Err(error) => log::info(format_args!("autoprewarm: {}", error.message())),
        }
    }
    loop {
        let seconds = live_int(setting::PG_PREWARM_AUTOPREWARM_INTERVAL).unsigned_abs();
        let until = (seconds > 0).then(|| Instant::now() + Duration::from_secs(seconds));
        server.prewarmer.await_work(WaitEvent::ActivityThreadMain, until);
        if sched::check_interrupts().is_err() {
            return;
        }
        save(server);
    }
}

/// Writes down the pages, if that is wanted; a failure is logged.
pub fn save(server: &Server) {
    if !live_bool(setting::PG_PREWARM_AUTOPREWARM) {
        return;
    }
    if let Err(error) = exec::prewarm::dump(&server.engine.storage) {
        log::info(format_args!("autoprewarm: {}", error.message()));
    }
}
