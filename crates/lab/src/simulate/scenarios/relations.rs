//! Weak locks on relations, taken by every statement: a table and its two indexes.
//!
//! * *shared table*: PostgreSQL to 9.1. Each lock goes through the lock table, under the exclusive
//!   lock of its partition (of 16), and changes the counts of the lock, which all share.
//! * *fast path*: PostgreSQL since 9.2. Each session notes it in its own array under a lock of its
//!   own, after a look at a shared counter that hardly changes.
//! * *per worker*: the server. A plain store into the worker's own slot and a look at that counter.

use std::rc::Rc;

use super::super::coherence::Word;
use super::super::engine::{Core, Simulation};
use super::super::locks::{Kind, Lock};

const RELATIONS: usize = 3;
const PARTITIONS: usize = 16;
/// Finding the entry in the hash table.
const SEARCH_NS: f64 = 60.0;
const REST_NS: f64 = 5000.0;

/// Which way.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum LockPath {
    /// All through the lock table.
    SharedTable,
    /// An array each, with a lock each.
    FastPath,
    /// A slot each, without.
    PerWorker,
}

/// What the relation locks are made of.
pub struct Relations {
    way: LockPath,
    partitions: Vec<Lock>,
    counts: Vec<Word>,
    own_locks: Vec<Lock>,
    own: Vec<Word>,
    /// Whether somebody has a strong lock.
    strong: Word,
}

impl Relations {
    /// For all processors.
    pub fn new(simulation: &mut Simulation, way: LockPath, kind: Kind) -> Relations {
        let cpus = simulation.cpus();
        Relations {
            way,
            partitions: (0..PARTITIONS).map(|_| Lock::new(simulation, kind)).collect(),
            counts: (0..RELATIONS).map(|_| simulation.word()).collect(),
            own_locks: (0..cpus).map(|_| Lock::new(simulation, kind)).collect(),
            own: (0..cpus).map(|_| simulation.word()).collect(),
            strong: simulation.word(),
        }
    }

    async fn change(&self, core: &Core, relation: usize, by: i64) {
        match self.way {
            LockPath::SharedTable => {
                let partition = &self.partitions[relation * 5 % PARTITIONS];
                partition.acquire(core, true).await;
                core.work(SEARCH_NS).await;
                let count = core.load(self.counts[relation]).await;
                core.store(self.counts[relation], count.wrapping_add_signed(by)).await;
                partition.release(core, true).await;
            }
            LockPath::FastPath => {
                let lock = &self.own_locks[core.id];
                lock.acquire(core, true).await;
                core.load(self.strong).await;
                core.store(self.own[core.id], 1).await;
                lock.release(core, true).await;
            }
            LockPath::PerWorker => {
                core.store(self.own[core.id], 1).await;
                core.load(self.strong).await;
            }
        }
    }

    /// Locks them all weakly.
    pub async fn lock(&self, core: &Core) {
        for relation in 0..RELATIONS {
            self.change(core, relation, 1).await;
        }
    }

    /// Gives them back.
    pub async fn unlock(&self, core: &Core) {
        for relation in 0..RELATIONS {
            self.change(core, relation, -1).await;
        }
    }
}

/// Statements that do little else.
pub fn start(simulation: &mut Simulation, way: LockPath) {
    let relations = Rc::new(Relations::new(simulation, way, Kind::Atomic));
    simulation.each_core(|_| {
        let relations = Rc::clone(&relations);
        async move |core: &Core| {
            relations.lock(core).await;
            core.work_about(REST_NS).await;
            relations.unlock(core).await;
        }
    });
}
