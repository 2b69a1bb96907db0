//! What the handles of one relation share in memory: the free space of a heap, the cached root of a
//! B-tree. Handles are cheap to make and to clone; they find their common state here.
//!
//! The table is keyed by the storage's address and the relation. Each entry holds a weak reference
//! to its storage, so the address can't be taken by another storage while the entry is there.
//! `RelId`s are never reused, so a forgotten entry is a small leak, not an error.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Weak};

use base::{RelId, WaitEvent};
use sched::Mutex;
use storage::Storage;

use crate::btree::TreeState;
use crate::space::Space;

/// The shared state of one relation.
#[derive(Default)]
pub struct RelState {
    /// Heap: where new rows go.
    pub space: Space,
    /// B-tree: root, rightmost leaf, spare pages.
    pub tree: TreeState,
}

struct Entry {
    storage: Weak<Storage>,
    state: Arc<RelState>,
}

const SHARDS: usize = 16;
type Shard = Mutex<HashMap<(usize, RelId), Entry>>;

static TABLE: LazyLock<[Shard; SHARDS]> = LazyLock::new(|| {
    std::array::from_fn(|_| Mutex::new(WaitEvent::LWLockFreeSpaceMap, HashMap::new()))
});

fn key(storage: &Arc<Storage>, rel: RelId) -> (usize, RelId) {
    (Arc::as_ptr(storage) as usize, rel)
}

fn shard(rel: RelId) -> &'static Shard {
    &TABLE[rel.0 as usize % SHARDS]
}

/// The state of a relation; made when it isn't there.
pub fn state_of(storage: &Arc<Storage>, rel: RelId) -> Arc<RelState> {
    let mut table = shard(rel).lock();
    if let Some(entry) = table.get(&key(storage, rel)) {
        return entry.state.clone();
    }
    table.retain(|_, entry| entry.storage.strong_count() > 0);
    let entry = Entry { storage: Arc::downgrade(storage), state: Arc::default() };
    let state = entry.state.clone();
    table.insert(key(storage, rel), entry);
    state
}

/// Drops the state of a relation whose files are gone.
pub fn forget(storage: &Arc<Storage>, rel: RelId) {
    shard(rel).lock().remove(&key(storage, rel));
}
