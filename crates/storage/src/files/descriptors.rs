//! The descriptor cache: open files for all threads, in shards, bounded by
//! `max_files_per_process`. A file in use stays open after it has left the cache.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::sync::Arc;

use base::{Fork, RelId, WaitEvent};
use sched::Mutex;

const SHARDS: usize = 16;

/// See the module.
pub(super) struct Descriptors {
    shards: [Mutex<Shard>; SHARDS],
}

struct Shard {
    open: HashMap<(RelId, Fork), Entry>,
    clock: u64,
}

struct Entry {
    file: Arc<File>,
    used: u64,
}

impl Descriptors {
    pub(super) fn new() -> Descriptors {
        let shard =
            |_| Mutex::new(WaitEvent::LWLockFdCache, Shard { open: HashMap::new(), clock: 0 });
        Descriptors { shards: std::array::from_fn(shard) }
    }

    fn shard(&self, rel: RelId) -> &Mutex<Shard> {
        &self.shards[rel.0 as usize % SHARDS]
    }

    /// The open file, or what `open` gives; closes the one used longest ago beyond the limit.
    pub(super) fn get(
        &self,
        rel: RelId,
        fork: Fork,
        limit: usize,
        open: impl FnOnce() -> io::Result<File>,
    ) -> io::Result<Arc<File>> {
        let mut guard = self.shard(rel).lock();
        let shard = &mut *guard;
        shard.clock += 1;
        if let Some(entry) = shard.open.get_mut(&(rel, fork)) {
            entry.used = shard.clock;
            return Ok(entry.file.clone());
        }
        while shard.open.len() >= (limit / SHARDS).max(1) {
            let oldest = shard.open.iter().min_by_key(|(_, e)| e.used).map(|(k, _)| *k);
            oldest.and_then(|key| shard.open.remove(&key));
        }
        let file = Arc::new(open()?);
        shard.open.insert((rel, fork), Entry { file: file.clone(), used: shard.clock });
        Ok(file)
    }

    /// Lets go of a file that is to be removed.
    pub(super) fn forget(&self, rel: RelId, fork: Fork) {
        self.shard(rel).lock().open.remove(&(rel, fork));
    }
}
