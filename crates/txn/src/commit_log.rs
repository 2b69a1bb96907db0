//! The commit log: transaction id to outcome.

use base::Csn;

/// What became of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XidStatus {
    /// Not finished.
    Running,
    /// Committed at this point; `Csn(0)` when it was so long ago that every snapshot sees it.
    Committed(Csn),
    /// Rolled back, or lost in a crash.
    Aborted,
}
