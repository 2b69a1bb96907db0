//! Snapshots: who is visible to whom.
//!
//! * *process array*: PostgreSQL from 9.2 to 13. A snapshot takes the array's lock, shared, and reads
//!   every session's entry (twelve bytes, five on a line); it writes its own xmin there, which takes
//!   the line from four others. A commit takes the lock exclusively.
//! * *CSN*: the server. A snapshot reads one number; a commit raises it.

use std::rc::Rc;

use super::super::coherence::Word;
use super::super::engine::{Core, Simulation};
use super::super::locks::{Kind, Lock};

/// Entries of the process array on one line.
pub const ENTRIES: usize = 5;
const REST_NS: f64 = 5000.0;
/// One of so many transactions has something to commit.
const COMMITS: u64 = 10;

/// The process array.
pub struct ProcessArray {
    lock: Lock,
    entries: Vec<Word>,
    /// One of each line: reading it brings the others.
    lines: Vec<Word>,
}

impl ProcessArray {
    /// An entry for each processor, so many on a line.
    pub fn new(simulation: &mut Simulation, kind: Kind, on_line: usize) -> ProcessArray {
        let lock = Lock::new(simulation, kind);
        let (mut entries, mut lines) = (Vec::new(), Vec::new());
        let mut line = simulation.line();
        for i in 0..simulation.cpus() {
            if i > 0 && i % on_line == 0 {
                line = simulation.line();
            }
            let word = simulation.word_on(line);
            entries.push(word);
            if i % on_line == 0 {
                lines.push(word);
            }
        }
        ProcessArray { lock, entries, lines }
    }

    /// Reads who runs, notes the own xmin.
    pub async fn snapshot(&self, core: &Core) {
        self.lock.acquire(core, false).await;
        core.scan(&self.lines).await;
        core.store(self.entries[core.id], 1).await;
        self.lock.release(core, false).await;
    }

    /// Takes the own entry back: a reader's xmin, without the lock.
    pub async fn end(&self, core: &Core) {
        core.store(self.entries[core.id], 0).await;
    }

    async fn commit(&self, core: &Core) {
        self.lock.acquire(core, true).await;
        core.store(self.entries[core.id], 0).await;
        self.lock.release(core, true).await;
    }
}

/// Snapshots by the process array.
pub fn process_array(simulation: &mut Simulation) {
    let array = Rc::new(ProcessArray::new(simulation, Kind::Atomic, ENTRIES));
    simulation.each_core(|_| {
        let array = Rc::clone(&array);
        async move |core: &Core| {
            array.snapshot(core).await;
            core.work_about(REST_NS).await;
            if core.random(COMMITS) == 0 {
                core.exclusive();
                array.commit(core).await;
            } else {
                array.end(core).await;
            }
        }
    });
}

/// Snapshots by a commit sequence number.
pub fn csn(simulation: &mut Simulation) {
    let (latest, own) = (simulation.word(), own_words(simulation));
    simulation.each_core(|id| {
        let own = own[id];
        async move |core: &Core| {
            core.load(latest).await;
            // The oldest snapshot is known by what each worker says of itself.
            core.store(own, 1).await;
            core.work_about(REST_NS).await;
            if core.random(COMMITS) == 0 {
                core.exclusive();
                core.add(latest, 1).await;
            }
            core.store(own, 0).await;
        }
    });
}

/// A word on a line of its own for each processor.
pub fn own_words(simulation: &mut Simulation) -> Vec<Word> {
    (0..simulation.cpus()).map(|_| simulation.word()).collect()
}
