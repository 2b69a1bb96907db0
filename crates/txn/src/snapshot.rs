//! Snapshots.

use base::{Csn, Xid};

/// The view of a statement or transaction: commits with a CSN up to `csn`, and its own changes with a
/// command id below `command`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The highest CSN seen.
    pub csn: Csn,
    /// Every transaction below this had ended when the snapshot was taken, and is seen if it
    /// committed (a hint that skips look-ups; may be lower than the truth).
    pub xmin: Xid,
    /// Own changes by commands below this are seen.
    pub command: u32,
}
