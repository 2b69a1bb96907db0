//! Failures after which the server must not go on.

/// Stops the server at once, to be recovered from the log: what was being done failed, and no later
/// attempt could be trusted.
#[cold]
pub(crate) fn stop(doing: &str, error: &dyn std::fmt::Display) -> ! {
    eprintln!("PANIC:  could not {doing}: {error}");
    eprintln!("HINT:  The server stops here; at its next start it recovers from its log.");
    std::process::abort()
}

/// Stops the server: shared state is half-changed.
#[cold]
pub(crate) fn broken(what: &str) -> ! {
    eprintln!("PANIC:  {what}");
    eprintln!("HINT:  The server stops here; at its next start it recovers from its log.");
    std::process::abort()
}
