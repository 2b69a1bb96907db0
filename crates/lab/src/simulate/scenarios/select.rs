//! A whole select by key, put together from the other scenarios' parts: what each release did at
//! each place where sessions meet. What the session does on its own (parsing, executing, talking to
//! the client, the client on the same machine) is 50 µs of local work, about what one client of
//! `pgbench -S` takes for a transaction on a server of 2015.
//!
//! | release | lightweight locks | partitions | pins |
//! | --- | --- | --- | --- |
//! | 9.4 | under a spin lock | 16 | under a spin lock |
//! | 9.5 | atomic | 128 | under a spin lock |
//! | 9.5 patched | atomic | 128 | compare-and-swap; an entry of the process array has a line of its own |
//! | 9.6 | atomic | 128 | compare-and-swap |
//!
//! Each of them pins and latches all pages of the descent and locks relations by the fast path.
//! The server takes a CSN, looks buffers up without locks, pins by add, and reads inner pages by
//! their version.

use std::rc::Rc;

use super::super::engine::{Core, Simulation};
use super::super::locks::{BOUNDED, Kind, Lock};
use super::btree::{Descent, Tree};
use super::partitions::Pool;
use super::pins::Pin;
use super::relations::{LockPath, Relations};
use super::snapshots::{ENTRIES, ProcessArray, own_words};

const REST_NS: f64 = 50_000.0;

/// How a release does it.
#[derive(Clone, Copy)]
pub struct Release {
    kind: Kind,
    partitions: usize,
    pin: Pin,
    /// Entries of the process array on a line.
    on_line: usize,
}

/// PostgreSQL 9.4.
pub const V9_4: Release =
    Release { kind: Kind::Mutex, partitions: 16, pin: Pin::Spin, on_line: ENTRIES };
/// PostgreSQL 9.5.
pub const V9_5: Release =
    Release { kind: Kind::Atomic, partitions: 128, pin: Pin::Spin, on_line: ENTRIES };
/// PostgreSQL 9.6.
pub const V9_6: Release =
    Release { kind: Kind::Atomic, partitions: 128, pin: Pin::Cas, on_line: ENTRIES };
/// PostgreSQL 9.5 with the patches of 2016: pins by compare-and-swap, entries of the process array aligned to lines.
pub const V9_5_PATCHED: Release =
    Release { kind: Kind::Atomic, partitions: 128, pin: Pin::Cas, on_line: 1 };

/// A release of PostgreSQL.
pub fn postgres(simulation: &mut Simulation, release: Release) {
    let Release { kind, partitions, pin, on_line } = release;
    let array = Rc::new(ProcessArray::new(simulation, kind, on_line));
    let relations = Rc::new(Relations::new(simulation, LockPath::FastPath, kind));
    let pool = Rc::new(Pool::new(simulation, kind, partitions, pin, true));
    // The root's and the inner pages' content locks are the ones that are shared widely.
    let latches: Rc<Vec<Lock>> = Rc::new((0..=64).map(|_| Lock::new(simulation, kind)).collect());
    simulation.each_core(|_| {
        let (array, relations, pool, latches) =
            (array.clone(), relations.clone(), pool.clone(), latches.clone());
        async move |core: &Core| {
            core.work_about(REST_NS).await;
            array.snapshot(core).await;
            relations.lock(core).await;
            for page in Pool::path(core) {
                let header = pool.pin(core, page).await;
                let latch = latches.get(page);
                if let Some(latch) = latch {
                    latch.acquire(core, false).await;
                }
                core.work_about(150.0).await;
                if let Some(latch) = latch {
                    latch.release(core, false).await;
                }
                header.unpin(core).await;
            }
            relations.unlock(core).await;
            array.end(core).await;
        }
    });
}

/// The server, on the same machine and with the same local work.
pub fn threadgres(simulation: &mut Simulation) {
    let (latest, own) = (simulation.word(), Rc::new(own_words(simulation)));
    let relations = Rc::new(Relations::new(simulation, LockPath::PerWorker, Kind::Ours(BOUNDED)));
    let tree = Rc::new(Tree::new(simulation, Descent::Optimistic, Kind::Ours(BOUNDED), Pin::Add));
    let pool = Rc::new(Pool::new(simulation, Kind::Ours(BOUNDED), 512, Pin::Add, false));
    simulation.each_core(|_| {
        let (own, relations, tree, pool) =
            (own.clone(), relations.clone(), tree.clone(), pool.clone());
        async move |core: &Core| {
            core.work_about(REST_NS).await;
            core.load(latest).await;
            core.store(own[core.id], 1).await;
            relations.lock(core).await;
            let (_, leaf) = tree.descend(core).await;
            leaf.read_latched(core).await;
            let [.., heap] = Pool::path(core);
            let header = pool.pin(core, heap).await;
            core.work_about(150.0).await;
            header.unpin(core).await;
            relations.unlock(core).await;
            core.store(own[core.id], 0).await;
        }
    });
}
