//! Atomic counters.

use super::super::engine::{Core, Simulation};

/// Where the counters are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// One for all.
    One,
    /// One each, eight on a line.
    Crowded,
    /// One each on a line of its own.
    Padded,
}

/// Each core adds to its counter.
pub fn start(simulation: &mut Simulation, layout: Layout) {
    let per_line = match layout {
        Layout::One => usize::MAX,
        Layout::Crowded => 8,
        Layout::Padded => 1,
    };
    let mut line = simulation.line();
    let mut words = Vec::new();
    for i in 0..simulation.cpus() {
        if i > 0 && i % per_line == 0 {
            line = simulation.line();
        }
        words.push(simulation.word_on(line));
    }
    simulation.each_core(|id| {
        let word = words[if layout == Layout::One { 0 } else { id }];
        async move |core: &Core| {
            core.add(word, 1).await;
        }
    });
}

/// Each core reads one word that nobody writes.
pub fn load(simulation: &mut Simulation) {
    let word = simulation.word();
    simulation.each_core(|_| {
        async move |core: &Core| {
            core.load(word).await;
        }
    });
}

/// Each core pauses.
pub fn pause(simulation: &mut Simulation) {
    simulation.each_core(|_| {
        async move |core: &Core| {
            core.pause(1).await;
        }
    });
}
