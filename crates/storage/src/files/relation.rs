//! The files of one relation.

use std::sync::atomic::{AtomicBool, AtomicU32};

use base::{Fork, RelId};

/// All forks.
pub(crate) const FORKS: [Fork; 3] = [Fork::Main, Fork::Fsm, Fork::Vm];

/// The facts known about one relation's files.
pub(crate) struct Relation {
    pub(crate) rel: RelId,
    pub(crate) dropped: AtomicBool,
    pub(crate) forks: [ForkState; 3],
}

impl Relation {
    pub(crate) fn fork(&self, fork: Fork) -> &ForkState {
        &self.forks[fork as usize]
    }
}

pub(crate) struct ForkState {
    pub(crate) blocks: AtomicU32,
    pub(crate) exists: AtomicBool,
    pub(crate) needs_sync: AtomicBool,
}
