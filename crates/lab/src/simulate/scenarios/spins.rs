//! Spin locks.

use std::rc::Rc;

use super::super::engine::{Core, Simulation};
use super::super::locks::{BackoffSpin, PlainSpin, PostgresSpin};

/// Which one.
#[derive(Clone, Copy)]
pub enum Kind {
    /// Exchange until it works.
    Plain,
    /// The server's.
    Backoff,
    /// PostgreSQL's.
    Postgres,
}

/// All take one and give it back, with `rest` nanoseconds of other work between.
pub fn start(simulation: &mut Simulation, kind: Kind, rest: f64) {
    match kind {
        Kind::Plain => {
            let lock = Rc::new(PlainSpin::new(simulation));
            simulation.each_core(|_| {
                let lock = Rc::clone(&lock);
                async move |core: &Core| {
                    lock.acquire(core).await;
                    lock.release(core).await;
                    if rest > 0.0 {
                        core.work_about(rest).await;
                    }
                }
            });
        }
        Kind::Backoff => {
            let lock = Rc::new(BackoffSpin::new(simulation));
            simulation.each_core(|_| {
                let lock = Rc::clone(&lock);
                async move |core: &Core| {
                    lock.acquire(core).await;
                    lock.release(core).await;
                    if rest > 0.0 {
                        core.work_about(rest).await;
                    }
                }
            });
        }
        Kind::Postgres => {
            let line = simulation.line();
            let lock = Rc::new(PostgresSpin::on(simulation, line));
            simulation.each_core(|_| {
                let lock = Rc::clone(&lock);
                async move |core: &Core| {
                    lock.acquire(core).await;
                    lock.release(core).await;
                    if rest > 0.0 {
                        core.work_about(rest).await;
                    }
                }
            });
        }
    }
}
