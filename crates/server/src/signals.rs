//! Signals: SIGTERM, SIGINT and SIGQUIT stop the server as in PostgreSQL, SIGHUP reads the settings
//! again. They are blocked in every thread and taken by one, so no code runs in a handler.

use std::sync::Arc;

use base::{Error, Result};
use nix::sys::signal::{SigSet, Signal};
use sched::fault_signals::SentSignal;

use crate::log;
use crate::server::Server;

/// How to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    /// When the last client has gone.
    Smart,
    /// After ending all sessions.
    Fast,
    /// At once, without a checkpoint: the next start recovers.
    Immediate,
}

impl Stop {
    /// The signal that asks for it.
    pub fn signal(self) -> Signal {
        match self {
            Stop::Smart => Signal::SIGTERM,
            Stop::Fast => Signal::SIGINT,
            Stop::Immediate => Signal::SIGQUIT,
        }
    }
}

pub(crate) fn signals() -> SigSet {
    [Signal::SIGTERM, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGHUP].into_iter().collect()
}

/// Blocks them in this thread and those that it will start. Before any other thread.
///
/// # Errors
/// When the system refuses.
pub fn block() -> Result<()> {
    signals().thread_block().map_err(|e| Error::io("block signals", &e.into()))
}

/// A SIGSEGV or SIGBUS that somebody sends ends the process as any signal would, with a line in the log that says who
/// sent it.
///
/// # Errors
/// When the system refuses.
pub fn report_sent_faults() -> Result<()> {
    let report = |sent: SentSignal| {
        let name = if sent.signal == Signal::SIGSEGV as i32 { "SIGSEGV" } else { "SIGBUS" };
        log::from_signal_handler(format_args!(
            "received {name} from process {} of user {}; this process ends",
            sent.pid, sent.uid
        ));
    };
    sched::fault_signals::report_sent_faults(report)
        .map_err(|e| Error::io("install the handler of signals", &e))
}

/// Waits for signals on this thread until one asks to stop; reloads meanwhile.
pub fn wait(server: &Arc<Server>) -> Stop {
    loop {
        match signals().wait() {
            Ok(Signal::SIGTERM) => return Stop::Smart,
            Ok(Signal::SIGINT) => return Stop::Fast,
            Ok(Signal::SIGQUIT) => return Stop::Immediate,
            Ok(Signal::SIGHUP) => match server.reload() {
                Ok(()) => log::info("received SIGHUP, settings were read again"),
                Err(error) => {
                    log::error(0, &error, None);
                    log::info("settings stay as they were");
                }
            },
            Ok(_) | Err(_) => {}
        }
    }
}
