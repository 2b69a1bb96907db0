//! The part of a crate above in the log: what it writes, and what recovery tells it.

use base::{Lsn, Result};

/// A layer above that has state to recover: it is told of its own log records in order, and its
/// state is kept with each checkpoint.
pub trait Participant: Send + Sync {
    /// Recovery begins, and nothing is changed on disk yet: the state that [`Participant::checkpoint`] returned for the checkpoint
    /// from which redo starts (empty for a new directory).
    fn restore(&self, state: &[u8]) -> Result<()>;
    /// A record with a payload, in log order; `lsn` is the record's end.
    fn redo(&self, code: u8, payload: &[u8], lsn: Lsn) -> Result<()>;
    /// A payload of a record of which no page has been changed yet, in a server that follows another one: what the
    /// change would take away from readers is waited for.
    ///
    /// # Errors
    /// Those that keep the record from being applied now; it comes again.
    fn before(&self, _code: u8, _payload: &[u8]) -> Result<()> {
        Ok(())
    }
    /// Part of the log was given up: ids may have been handed out that it does not tell of. Comes before
    /// [`Participant::recovered`].
    fn lost(&self) {}
    /// Redo is at its end; `lsn` is the end of the log.
    fn recovered(&self, lsn: Lsn) -> Result<()>;
    /// A checkpoint: make everything up to `redo` durable in own files, and return the small state
    /// that goes with it. When this is called the log is durable up to `redo`, and the `on_reserved`
    /// of every record before it ([`Wal::append`]) has returned.
    fn checkpoint(&self, redo: Lsn) -> Result<Vec<u8>>;
}
