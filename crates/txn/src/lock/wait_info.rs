//! A wait as others see it.

use std::time::SystemTime;

use crate::lock::{LockMode, LockTag};

/// The wait of a session, in its slot of the registry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitInfo {
    pub(super) tag: LockTag,
    pub(super) mode: LockMode,
    pub(super) since: SystemTime,
    /// No two waits have the same.
    pub(super) serial: u64,
}
