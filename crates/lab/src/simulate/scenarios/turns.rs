//! Two cores that take turns, as two threads do in `lab locks`: what calibration compares.

use super::super::engine::{Core, Simulation};

/// The word says whose turn it is; each waits for its own.
pub fn line(simulation: &mut Simulation) {
    let word = simulation.word();
    let cpus = simulation.cpus() as u64;
    simulation.each_core(|id| {
        async move |core: &Core| {
            let mine = id as u64;
            let turn = core.until(word, |turn| turn % cpus == mine, None).await.unwrap_or(0);
            core.store(word, turn + 1).await;
        }
    });
}

/// Likewise, but the other one sleeps and is woken.
pub fn parked(simulation: &mut Simulation) {
    let word = simulation.word();
    let cpus = simulation.cpus();
    simulation.each_core(|id| {
        async move |core: &Core| {
            let turn = loop {
                let turn = core.load(word).await;
                if turn % cpus as u64 == id as u64 {
                    break turn;
                }
                core.park().await;
            };
            core.store(word, turn + 1).await;
            core.unpark((id + 1) % cpus).await;
        }
    });
}
