//! The state in memory that the handles of one relation share: the free space of a heap, what an index's method
//! keeps ([`IndexState`]). Handles are cheap to make and to clone; they find their common state here.
//!
//! The table is keyed by the storage's address and the relation. Each state holds a weak reference
//! to its storage, so the address can't be taken by another storage while the state is there. In
//! front of the table each thread has a small cache, since handles are made for every statement.
//!
//! `RelId`s are never reused, so a forgotten entry is a small leak, not an error.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Weak};

use base::{RelId, WaitEvent};
use sched::LwLock;
use storage::{PageMaps, Storage};

use crate::extension::Counters;
use crate::space::Space;
use crate::state::IndexState;
use crate::visibility_map::VisibilityMap;

/// The shared state of one relation.
pub struct RelState {
    rel: RelId,
    storage: Weak<Storage>,
    /// Heap: where new rows go.
    pub space: Space,
    /// Heap: pages that everybody sees all of.
    pub visible: VisibilityMap,
    /// Index: what its method keeps.
    pub index: IndexState,
    /// How it grew.
    pub extension: Counters,
}

const SHARDS: usize = 64;
/// Entries of a thread's cache.
const CACHED: usize = 256;

type Key = (usize, RelId);
type Shard = LwLock<HashMap<Key, Arc<RelState>>>;
type Cache = [Option<Arc<RelState>>; CACHED];

static TABLE: LazyLock<[Shard; SHARDS]> = LazyLock::new(|| {
    std::array::from_fn(|_| LwLock::new(WaitEvent::LWLockFreeSpaceMap, HashMap::new()))
});

thread_local! {
    static CACHE: RefCell<Cache> = const { RefCell::new([const { None }; CACHED]) };
}

fn key(storage: &Arc<Storage>, rel: RelId) -> Key {
    (Arc::as_ptr(storage) as usize, rel)
}

/// A table and its indexes have numbers in a row: neighbours, and every second or fourth one, spread alike.
fn spread(rel: RelId) -> usize {
    (u64::from(rel.0).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize
}

fn shard(rel: RelId) -> &'static Shard {
    &TABLE[spread(rel) % SHARDS]
}

impl RelState {
    /// Which relation.
    pub fn rel(&self) -> RelId {
        self.rel
    }

    fn is(&self, storage: &Arc<Storage>, rel: RelId) -> bool {
        self.rel == rel && std::ptr::eq(self.storage.as_ptr(), Arc::as_ptr(storage))
    }
}

/// The state of a relation; made when it isn't there.
pub fn state_of(storage: &Arc<Storage>, rel: RelId) -> Arc<RelState> {
    if let Some(state) = cached(storage, rel) {
        return state;
    }
    let known = shard(rel).read().get(&key(storage, rel)).cloned();
    let state = known.unwrap_or_else(|| make(storage, rel));
    cache(&state);
    state
}

#[cold]
fn make(storage: &Arc<Storage>, rel: RelId) -> Arc<RelState> {
    let mut table = shard(rel).write();
    if let Some(state) = table.get(&key(storage, rel)) {
        return state.clone();
    }
    table.retain(|_, state| state.storage.strong_count() > 0);
    let (space, visible) = (Space::default(), VisibilityMap::default());
    if let Ok(Some(maps)) = storage.take_maps(rel) {
        visible.fill(&maps.visible);
        space.fill(&maps.room);
    }
    let address = Arc::as_ptr(storage) as usize;
    storage.keep_maps(move || maps_of(address));
    let state = Arc::new(RelState {
        rel,
        storage: Arc::downgrade(storage),
        space,
        visible,
        index: IndexState::default(),
        extension: Counters::default(),
    });
    table.insert(key(storage, rel), state.clone());
    state
}

/// The maps of a storage's relations, by its address.
fn maps_of(storage: usize) -> Vec<(RelId, PageMaps)> {
    let mut all = Vec::new();
    for shard in TABLE.iter() {
        let table = shard.read();
        let own = table.values().filter(|state| state.storage.as_ptr() as usize == storage);
        all.extend(own.map(|state| {
            let maps = PageMaps { visible: state.visible.words(), room: state.space.classes() };
            (state.rel, maps)
        }));
    }
    all
}

/// The states of all relations of a storage that have been used.
pub fn states(storage: &Arc<Storage>) -> Vec<Arc<RelState>> {
    let mut states = Vec::new();
    for shard in TABLE.iter() {
        let table = shard.read();
        states.extend(table.values().filter(|s| s.is(storage, s.rel)).cloned());
    }
    states
}

/// Not inlined, so that no address of a thread-local is kept while a task moves.
#[inline(never)]
fn cached(storage: &Arc<Storage>, rel: RelId) -> Option<Arc<RelState>> {
    CACHE.with_borrow(|cache| {
        cache[spread(rel) % CACHED].as_ref().filter(|s| s.is(storage, rel)).cloned()
    })
}

#[inline(never)]
fn cache(state: &Arc<RelState>) {
    let old =
        CACHE.with_borrow_mut(|cache| cache[spread(state.rel) % CACHED].replace(state.clone()));
    drop(old);
}

/// A temporary relation is empty again, or its id belongs to another: whoever holds its state begins
/// anew.
pub fn reset(storage: &Arc<Storage>, rel: RelId) {
    let state = shard(rel).read().get(&key(storage, rel)).cloned();
    if let Some(state) = state {
        state.space.reset();
        state.visible.reset();
        state.index.reset();
    }
}

/// Drops the state of a relation whose files are gone.
pub fn forget(storage: &Arc<Storage>, rel: RelId) {
    shard(rel).write().remove(&key(storage, rel));
}
