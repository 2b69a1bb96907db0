//! The descriptor cache: open files for all threads, in shards, bounded by
//! `max_files_per_process`. A file in use stays open after it has left the cache.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::{Fork, RelId, WaitEvent};
use sched::LwLock;

const SHARDS: usize = 16;

/// See the module.
pub(super) struct Descriptors {
    shards: [LwLock<Shard>; SHARDS],
}

struct Shard {
    open: HashMap<(RelId, Fork), Entry>,
    clock: AtomicU64,
}

struct Entry {
    file: Arc<File>,
    used: AtomicU64,
}

impl Shard {
    fn find(&self, key: &(RelId, Fork)) -> Option<Arc<File>> {
        let entry = self.open.get(key)?;
        entry.used.store(self.tick(), Ordering::Relaxed);
        Some(entry.file.clone())
    }

    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::Relaxed) + 1
    }
}

impl Descriptors {
    pub(super) fn new() -> Descriptors {
        let shard = |_| {
            let shard = Shard { open: HashMap::new(), clock: AtomicU64::new(0) };
            LwLock::new(WaitEvent::LWLockFdCache, shard)
        };
        Descriptors { shards: std::array::from_fn(shard) }
    }

    fn shard(&self, rel: RelId) -> &LwLock<Shard> {
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
        let key = (rel, fork);
        if let Some(file) = self.shard(rel).read().find(&key) {
            return Ok(file);
        }
        let mut shard = self.shard(rel).write();
        if let Some(file) = shard.find(&key) {
            return Ok(file);
        }
        while shard.open.len() >= (limit / SHARDS).max(1) {
            let used = |entry: &Entry| entry.used.load(Ordering::Relaxed);
            let oldest = shard.open.iter().min_by_key(|(_, e)| used(e)).map(|(k, _)| *k);
            oldest.and_then(|key| shard.open.remove(&key));
        }
        let file = Arc::new(open()?);
        let used = AtomicU64::new(shard.tick());
        shard.open.insert(key, Entry { file: file.clone(), used });
        Ok(file)
    }

    /// Lets go of a file that is to be removed.
    pub(super) fn forget(&self, rel: RelId, fork: Fork) {
        self.shard(rel).write().open.remove(&(rel, fork));
    }
}
