//! Lightweight locks: shared only, mixed, and the stream of shared lockers that starves an
//! exclusive one.

use std::rc::Rc;

use super::super::engine::{Core, Simulation};
use super::super::locks::{Kind, Lock};

const HOLD_NS: f64 = 100.0;

/// One lock; `writers` of a hundred take it exclusively; `rest` nanoseconds of other work.
pub fn mixed(simulation: &mut Simulation, kind: Kind, writers: u64, rest: f64) {
    let lock = Rc::new(Lock::new(simulation, kind));
    simulation.each_core(|_| {
        let lock = Rc::clone(&lock);
        async move |core: &Core| {
            let exclusive = writers > 0 && core.random(100) < writers;
            if exclusive {
                core.exclusive();
            }
            lock.acquire(core, exclusive).await;
            core.work_about(HOLD_NS).await;
            lock.release(core, exclusive).await;
            if rest > 0.0 {
                core.work_about(rest).await;
            }
        }
    });
}

/// Acquire and release, as `lab locks` does it without a hold time.
pub fn tight(simulation: &mut Simulation, kind: Kind, writers: u64) {
    let lock = Rc::new(Lock::new(simulation, kind));
    simulation.each_core(|_| {
        let lock = Rc::clone(&lock);
        async move |core: &Core| {
            let exclusive = writers > 0 && core.random(100) < writers;
            lock.acquire(core, exclusive).await;
            lock.release(core, exclusive).await;
        }
    });
}

/// Core 0 wants it exclusively, again and again; the others keep it shared for two thirds of their
/// time, so that with a few of them it is hardly ever free.
pub fn starvation(simulation: &mut Simulation, kind: Kind) {
    let lock = Rc::new(Lock::new(simulation, kind));
    simulation.each_core(|id| {
        let lock = Rc::clone(&lock);
        async move |core: &Core| {
            if id == 0 {
                core.exclusive();
                lock.acquire(core, true).await;
                core.work_about(HOLD_NS).await;
                lock.release(core, true).await;
            } else {
                lock.acquire(core, false).await;
                core.work_about(40_000.0).await;
                lock.release(core, false).await;
            }
            core.work_about(20_000.0).await;
        }
    });
}
