//! The lock algorithms as programs: the same steps on the same words as the real ones take. What
//! lies in queues is kept outside of the simulated memory (it is only touched by whoever holds the
//! queue's lock); the words that all fight for are in it.

mod ours;
mod postgres;
mod spin;

pub use ours::OurLock;
pub use postgres::{AtomicLock, MutexLock};
pub use spin::{BackoffSpin, PlainSpin, PostgresSpin};

use super::coherence::LineId;
use super::engine::{Core, Simulation};

/// A reader-writer lock of some kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A spin lock over counts: PostgreSQL to 9.4.
    Mutex,
    /// One atomic word: PostgreSQL since 9.5.
    Atomic,
    /// The server's, with so many shared lockers that may pass an exclusive one (-1: all).
    Ours(i64),
}

/// The server's default of `lwlock_shared_limit`.
pub const BOUNDED: i64 = 16;

/// A reader-writer lock.
pub enum Lock {
    /// See [`Kind::Mutex`].
    Mutex(MutexLock),
    /// See [`Kind::Atomic`].
    Atomic(AtomicLock),
    /// See [`Kind::Ours`].
    Ours(OurLock),
}

impl Lock {
    /// On a line of its own.
    pub fn new(simulation: &mut Simulation, kind: Kind) -> Lock {
        let line = simulation.line();
        Lock::on(simulation, line, kind)
    }

    /// On a line that others use, too.
    pub fn on(simulation: &mut Simulation, line: LineId, kind: Kind) -> Lock {
        match kind {
            Kind::Mutex => Lock::Mutex(MutexLock::on(simulation, line)),
            Kind::Atomic => Lock::Atomic(AtomicLock::on(simulation, line)),
            Kind::Ours(limit) => Lock::Ours(OurLock::on(simulation, line, limit)),
        }
    }

    /// Waits until it has it.
    pub async fn acquire(&self, core: &Core, exclusive: bool) {
        match self {
            Lock::Mutex(lock) => lock.acquire(core, exclusive).await,
            Lock::Atomic(lock) => lock.acquire(core, exclusive).await,
            Lock::Ours(lock) => lock.acquire(core, exclusive).await,
        }
    }

    /// Gives it back.
    pub async fn release(&self, core: &Core, exclusive: bool) {
        match self {
            Lock::Mutex(lock) => lock.release(core, exclusive).await,
            Lock::Atomic(lock) => lock.release(core, exclusive).await,
            Lock::Ours(lock) => lock.release(core, exclusive).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;

    use super::super::presets;
    use super::*;

    /// Random readers and writers: nobody is in beside a writer, everybody gets on, the lines'
    /// invariants hold all along.
    fn excludes(kind: Kind, cpus: usize, seed: u64) {
        let machine = presets::named("four-socket").unwrap();
        let mut simulation = Simulation::new(&machine, cpus, seed).checked();
        let lock = Rc::new(Lock::new(&mut simulation, kind));
        let (readers, writers) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        simulation.each_core(|_| {
            let (lock, readers, writers) = (lock.clone(), readers.clone(), writers.clone());
            async move |core: &Core| {
                let exclusive = core.random(4) == 0;
                lock.acquire(core, exclusive).await;
                let inside = if exclusive { &writers } else { &readers };
                inside.set(inside.get() + 1);
                let (r, w) = (readers.get(), writers.get());
                assert!(w == 0 || (w == 1 && r == 0), "{kind:?}: {w} writers, {r} readers");
                core.work_about(100.0).await;
                inside.set(inside.get() - 1);
                lock.release(core, exclusive).await;
                core.work_about(300.0).await;
            }
        });
        let outcome = simulation.run(2000);
        assert_eq!(outcome.all.operations, 2000, "{kind:?}: {outcome:?}");
    }

    #[test]
    fn all_kinds_exclude_and_nobody_hangs() {
        let kinds = [Kind::Mutex, Kind::Atomic, Kind::Ours(0), Kind::Ours(2), Kind::Ours(-1)];
        for kind in kinds {
            for (cpus, seed) in [(1, 1), (2, 2), (5, 3), (24, 4)] {
                excludes(kind, cpus, seed);
            }
        }
    }
}
