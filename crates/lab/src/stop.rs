//! Ctrl-C: the first one asks to stop and keep what there is, the second one ends the process.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::{Error, Result};

/// A flag that SIGINT and SIGTERM set from now on.
///
/// # Errors
/// The system refuses handlers.
pub fn flag() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let failed = |e| Error::new(format!("no handler for Ctrl-C: {e}"));
    for signal in [SIGINT, SIGTERM] {
        // In this order: the first signal finds the flag down and raises it.
        flag::register_conditional_shutdown(signal, 130, stop.clone()).map_err(failed)?;
        flag::register(signal, stop.clone()).map_err(failed)?;
    }
    Ok(stop)
}
