//! Spin locks: PostgreSQL's, the server's, the plainest.

use std::cell::Cell;

use super::super::coherence::{LineId, Word};
use super::super::engine::{Core, Simulation};

/// Tests and sets, spins on its copy of the line, and sleeps for about a millisecond when that has
/// lasted too long (PostgreSQL: `s_lock.c`, up to 1000 delays, then sleeps that grow).
pub struct PostgresSpin {
    word: Word,
}

/// Spins before a sleep, once the lock has learnt that spinning pays.
const DELAYS: f64 = 1000.0;

impl PostgresSpin {
    /// On a line that others may use, too.
    pub fn on(simulation: &mut Simulation, line: LineId) -> PostgresSpin {
        PostgresSpin { word: simulation.word_on(line) }
    }

    /// Waits until it has it.
    pub async fn acquire(&self, core: &Core) {
        if core.swap(self.word, 1).await == 0 {
            return;
        }
        // From here on it is in `s_lock()`.
        let patience = DELAYS * core.machine(|m| m.costs.pause + m.costs.hit);
        let mut since = core.now();
        loop {
            if core.until(self.word, |v| v == 0, Some(patience)).await.is_none() {
                core.spun_since(since);
                core.sleep(core.machine(|m| m.costs.spin_sleep)).await;
                since = core.now();
            }
            if core.swap(self.word, 1).await == 0 {
                return core.spun_since(since);
            }
        }
    }

    /// Gives it back.
    pub async fn release(&self, core: &Core) {
        core.store(self.word, 0).await;
    }
}

/// `sched::SpinLock`: compare-and-swap, then pauses that double to 64, then yields to the kernel.
pub struct BackoffSpin {
    word: Word,
}

/// A yield that finds nobody else to run.
const YIELD_NS: f64 = 300.0;

impl BackoffSpin {
    /// On a line of its own.
    pub fn new(simulation: &mut Simulation) -> BackoffSpin {
        BackoffSpin { word: simulation.word() }
    }

    /// Waits until it has it.
    pub async fn acquire(&self, core: &Core) {
        let pauses = Cell::new(1u32);
        while core.cas(self.word, 0, 1).await.is_err() {
            while core.load(self.word).await != 0 {
                if pauses.get() > 64 {
                    core.sleep(YIELD_NS).await;
                } else {
                    core.pause(pauses.get()).await;
                    pauses.set(pauses.get() * 2);
                }
            }
        }
    }

    /// Gives it back.
    pub async fn release(&self, core: &Core) {
        core.store(self.word, 0).await;
    }
}

/// Exchanges until it was free.
pub struct PlainSpin {
    word: Word,
}

impl PlainSpin {
    /// On a line of its own.
    pub fn new(simulation: &mut Simulation) -> PlainSpin {
        PlainSpin { word: simulation.word() }
    }

    /// Waits until it has it.
    pub async fn acquire(&self, core: &Core) {
        while core.swap(self.word, 1).await != 0 {}
    }

    /// Gives it back.
    pub async fn release(&self, core: &Core) {
        core.store(self.word, 0).await;
    }
}
