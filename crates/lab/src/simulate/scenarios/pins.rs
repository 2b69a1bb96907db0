//! Pinning a buffer: the frame's state word as in `storage::buffer` and `lab locks`.

use std::rc::Rc;

use super::super::coherence::{LineId, Word};
use super::super::engine::{Core, Simulation};
use super::super::locks::PostgresSpin;

/// How a pin is taken and given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pin {
    /// Under a spin lock in the header: PostgreSQL to 9.5.
    Spin,
    /// Compare-and-swap until it works, both ways: PostgreSQL since 9.6.
    Cas,
    /// Pin by compare-and-swap, unpin by subtract.
    Both,
    /// By add, both ways: the server.
    Add,
}

/// A buffer's header.
pub struct Header {
    how: Pin,
    state: Word,
    name: Word,
    spin: PostgresSpin,
}

impl Header {
    /// On this line.
    pub fn on(simulation: &mut Simulation, line: LineId, how: Pin) -> Header {
        Header {
            how,
            state: simulation.word_on(line),
            name: simulation.word_on(line),
            spin: PostgresSpin::on(simulation, line),
        }
    }

    /// Takes a pin and looks whether it is the page that was meant.
    pub async fn pin(&self, core: &Core) {
        match self.how {
            Pin::Spin => {
                self.spin.acquire(core).await;
                let pins = core.load(self.state).await;
                core.store(self.state, pins + 1).await;
                self.spin.release(core).await;
                return;
            }
            Pin::Add => {
                // The usage is looked at first, and raised by the same add.
                core.load(self.state).await;
                core.add(self.state, 1).await;
            }
            Pin::Cas | Pin::Both => change_by_cas(core, self.state, 1).await,
        }
        core.load(self.name).await;
    }

    /// Gives it back.
    pub async fn unpin(&self, core: &Core) {
        match self.how {
            Pin::Spin => {
                self.spin.acquire(core).await;
                let pins = core.load(self.state).await;
                core.store(self.state, pins - 1).await;
                self.spin.release(core).await;
            }
            Pin::Add | Pin::Both => {
                core.add(self.state, -1).await;
            }
            Pin::Cas => change_by_cas(core, self.state, -1).await,
        }
    }
}

async fn change_by_cas(core: &Core, word: Word, by: i64) {
    let mut seen = core.load(word).await;
    while let Err(now) = core.cas(word, seen, seen.wrapping_add_signed(by)).await {
        seen = now;
    }
}

/// All pin and unpin one buffer, with `rest` nanoseconds of other work between.
pub fn start(simulation: &mut Simulation, how: Pin, rest: f64) {
    let line = simulation.line();
    let header = Rc::new(Header::on(simulation, line, how));
    simulation.each_core(|_| {
        let header = Rc::clone(&header);
        async move |core: &Core| {
            header.pin(core).await;
            header.unpin(core).await;
            if rest > 0.0 {
                core.work_about(rest).await;
            }
        }
    });
}
