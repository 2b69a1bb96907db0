use super::coherence::Word;
use super::engine::Core;
use super::machine::{Costs, Machine, ps};
use super::*;

/// A machine whose costs are easy to add up.
fn simple(cores: usize) -> Machine {
    Machine {
        name: "simple".to_owned(),
        about: String::new(),
        blades: 1,
        sockets: 1,
        cores,
        threads: 1,
        costs: Costs {
            hit: 1.0,
            rmw: 5.0,
            smt: 0.0,
            socket: 50.0,
            blade: 0.0,
            remote: 0.0,
            memory: 100.0,
            directory: 10.0,
            residency: 0.0,
            pause: 3.0,
            park: 1000.0,
            unpark: 2000.0,
            wake: 5000.0,
            shared_core: 1.0,
        },
    }
}

fn counter(simulation: &mut Simulation) -> Word {
    let word = simulation.word();
    simulation.each_core(|_| {
        async move |core: &Core| {
            core.add(word, 1).await;
        }
    });
    word
}

#[test]
fn alone_a_counter_costs_one_atomic() {
    let mut simulation = Simulation::new(&simple(1), 1, 1).checked();
    counter(&mut simulation);
    let outcome = simulation.run(1000);
    assert_eq!((outcome.all.mean_ns(), outcome.all.longest), (5.0, ps(5.0)));
    assert_eq!(outcome.transfers, 0);
}
