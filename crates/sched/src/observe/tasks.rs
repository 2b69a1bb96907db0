//! All live tasks, so that an id (of a blocker, of a latch's holder) leads to its task.

use std::sync::{Arc, Weak};

use crate::spin::SpinLock;
use crate::task::{Task, TaskRef};

const SHARDS: usize = 64;

/// A latch notes as many bits of its holder's id. Ids are told apart by them for the first 268
/// million sessions; after that an old session could be taken for a new one.
pub const TAG_MASK: u64 = (1 << 28) - 1;

type Shard = Vec<(u64, Weak<Task>)>;

static TASKS: [SpinLock<Shard>; SHARDS] = [const { SpinLock::new(Vec::new()) }; SHARDS];

fn shard(id: u64) -> &'static SpinLock<Shard> {
    &TASKS[id as usize % SHARDS]
}

/// A task begins.
pub(crate) fn list_task(task: &TaskRef) {
    shard(task.id()).lock().push((task.id(), Arc::downgrade(task)));
}

/// A task ends.
pub(crate) fn forget_task(id: u64) {
    let mut shard = shard(id).lock();
    if let Some(at) = shard.iter().position(|(other, _)| *other == id) {
        shard.swap_remove(at);
    }
}

/// The live task with this id, of which the low 28 bits ([`TAG_MASK`]) are enough.
pub fn task_by_id(id: u64) -> Option<TaskRef> {
    let shard = shard(id).lock();
    shard.iter().find(|(other, _)| (other ^ id) & TAG_MASK == 0)?.1.upgrade()
}

/// All live tasks, oldest first: sessions, background threads, and threads that happened to wait.
pub fn tasks() -> Vec<TaskRef> {
    let mut all = Vec::new();
    for shard in &TASKS {
        // Upgraded handles are dropped outside of the lock: the last one's drop takes it again.
        let weak: Shard = shard.lock().clone();
        all.extend(weak.iter().filter_map(|(_, task)| task.upgrade()));
    }
    all.sort_by_key(|task| task.id());
    all
}
