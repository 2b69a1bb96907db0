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

/// All take one, change a word beside it, and give it back.
pub fn start(simulation: &mut Simulation, kind: Kind) {
    match kind {
        Kind::Plain => {
            let lock = Rc::new(PlainSpin::new(simulation));
            simulation.each_core(|_| {
                let lock = Rc::clone(&lock);
                async move |core: &Core| {
                    lock.acquire(core).await;
                    lock.release(core).await;
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
                }
            });
        }
    }
}
