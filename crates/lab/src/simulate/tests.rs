//! Cases that can be computed by hand, and what must hold for all runs.

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
            near_first: 0.0,
            spin_sleep: 1e6,
        },
    }
}

/// All add to one word, with so much work between.
fn counter(simulation: &mut Simulation, work: f64) -> Word {
    let word = simulation.word();
    simulation.each_core(|_| {
        async move |core: &Core| {
            core.add(word, 1).await;
            if work > 0.0 {
                core.work(work).await;
            }
        }
    });
    word
}

#[test]
fn alone_an_atomic_costs_itself() {
    let mut simulation = Simulation::new(&simple(1), 1, 1).checked();
    counter(&mut simulation, 0.0);
    let outcome = simulation.run(1000);
    assert_eq!((outcome.time, outcome.all.longest), (1000 * ps(5.0), ps(5.0)));
    assert_eq!(outcome.transfers, 0);
}

#[test]
fn the_first_touch_comes_from_memory() {
    let mut simulation = Simulation::new(&simple(1), 1, 1).checked();
    counter(&mut simulation, 0.0);
    // Without a warm-up: three operations are no four.
    let outcome = simulation.run(3);
    assert_eq!(outcome.time, ps(100.0 + 3.0 * 5.0));
    assert_eq!(outcome.transfers, 1);
}

#[test]
fn two_cores_on_one_line_take_turns() {
    let mut simulation = Simulation::new(&simple(2), 2, 1).checked();
    counter(&mut simulation, 0.0);
    let outcome = simulation.run(1000);
    // Each operation waits for the line (50) and runs (5); the other's does so meanwhile.
    assert_eq!(outcome.time, 1000 * ps(55.0));
    assert_eq!((outcome.all.mean_ns(), outcome.all.longest), (110.0, ps(110.0)));
    assert_eq!(outcome.transfers, 1000);
}

#[test]
fn a_contended_line_is_handed_over_once_an_operation_at_any_number() {
    for cores in [2, 3, 8, 64] {
        let mut simulation = Simulation::new(&simple(cores), cores, 1).checked();
        counter(&mut simulation, 0.0);
        let outcome = simulation.run(1000);
        assert_eq!(outcome.time, 1000 * ps(55.0), "{cores} cores");
        assert_eq!(outcome.all.longest, cores as u64 * ps(55.0), "first come, first served");
    }
}

#[test]
fn an_owner_stays_for_its_residency() {
    let mut machine = simple(2);
    machine.costs.residency = 20.0;
    let mut simulation = Simulation::new(&machine, 2, 1).checked();
    counter(&mut simulation, 0.0);
    let outcome = simulation.run(20_000);
    // Evenly 0 to 40 with operations of 5 is 1 to 8 of them, 4.5 in the mean, then a transfer of 50.
    let expected = (4.5 * 5.0 + 50.0) / 4.5;
    let found = outcome.time as f64 / 1e3 / 20_000.0;
    assert!((found / expected - 1.0).abs() < 0.03, "{found} ns, not {expected}");
}

#[test]
fn uncontended_work_scales_without_transfers() {
    let mut simulation = Simulation::new(&simple(16), 16, 1).checked();
    let words: Vec<Word> = (0..16).map(|_| simulation.word()).collect();
    simulation.each_core(|id| {
        let word = words[id];
        async move |core: &Core| {
            core.add(word, 1).await;
            core.load(word).await;
            core.store(word, 7).await;
            core.work(13.0).await;
        }
    });
    let outcome = simulation.run(1600);
    assert_eq!(outcome.time, 100 * ps(20.0));
    assert_eq!(outcome.transfers, 0);
    assert_eq!(outcome.throughput(), 16.0 / 20e-9);
}

#[test]
fn readers_share_and_a_writer_takes_it_from_all() {
    let mut simulation = Simulation::new(&simple(3), 3, 1).checked();
    let word = simulation.word();
    simulation.each_core(|id| {
        async move |core: &Core| {
            if id == 0 {
                core.store(word, 1).await;
                core.work(100_000.0).await;
            } else {
                core.load(word).await;
                core.work(99.0).await;
            }
        }
    });
    let outcome = simulation.run(4004);
    // Two readers at a hit and 99 each; a write costs one invalidation, and each reader one miss.
    let writes = outcome.time / ps(100_000.0);
    assert!(outcome.transfers.abs_diff(3 * writes) <= 3, "{outcome:?}");
}

#[test]
fn a_woken_thread_runs_after_the_kernels_time() {
    let mut simulation = Simulation::new(&simple(2), 2, 1).checked();
    simulation.each_core(|id| {
        async move |core: &Core| {
            if id == 0 {
                core.park().await;
            } else {
                core.work(10_000.0).await;
                core.unpark(0).await;
            }
        }
    });
    let outcome = simulation.run(400);
    // A cycle is the waker's: 10 µs of work, 2 µs of the call; the sleeper wakes once in each.
    assert_eq!(outcome.time, 200 * ps(12_000.0));
}

#[test]
fn a_run_depends_on_its_seed_alone() {
    let machine = presets::named("eight-blade").unwrap();
    let run = |variant: &Variant, seed| outcome(&machine, variant, 32, seed, 3);
    for scenario in SCENARIOS {
        for variant in scenario.variants {
            let name = format!("{}: {}", scenario.name, variant.name);
            assert_eq!(run(variant, 1), run(variant, 1), "{name}");
        }
    }
    let mixed = &SCENARIOS.iter().find(|s| s.name == "lwlock-mixed").unwrap().variants[1];
    assert_ne!(run(mixed, 1), run(mixed, 2));
}

#[test]
fn lines_keep_their_invariants_in_all_scenarios() {
    let machine = presets::named("eight-blade").unwrap();
    for scenario in SCENARIOS.iter().filter(|s| s.name != "select" && s.name != "partitions") {
        for variant in scenario.variants.iter().filter(|_| scenario.name != "btree") {
            for cores in [2, 7] {
                let mut simulation = Simulation::new(&machine, cores, 5).checked();
                (variant.start)(&mut simulation);
                assert_eq!(simulation.run(300).all.operations, 300);
            }
        }
    }
}

/// Points of one scenario on one machine, as short as they say something.
fn points(machine: &str, names: &[&str], cores: &[usize], operations: u64) -> Vec<SimulatedPoint> {
    let plan = Plan {
        machines: vec![presets::named(machine).unwrap()],
        scenarios: names.iter().map(|n| (*n).to_owned()).collect(),
        cores: cores.to_vec(),
        operations,
        ..Plan::new()
    };
    let mut points = Vec::new();
    simulate(&plan, &mut |point| {
        points.push(point);
        Ok(())
    })
    .unwrap();
    points
}

#[test]
fn published_changes_are_improvements_here_too() {
    let mut all = points("four-socket", &["lwlock-shared", "pin", "partitions"], &[72], 5);
    all.extend(points("four-socket", &["select"], &[32, 48], 5));
    all.extend(points("eight-blade", &["starvation", "partitions"], &[256], 5));
    let verdicts = published::compare(&all);
    assert_eq!(verdicts.len(), published::CLAIMS.len());
    for verdict in verdicts {
        assert!(verdict.agrees(), "{}: x {}", verdict.claim.change, verdict.simulated);
    }
}

#[test]
fn lines_that_go_to_near_processors_first_let_more_be_done() {
    let of_9_6 = |near_first: f64| {
        let mut machine = presets::named("power8").unwrap();
        machine.costs.near_first = near_first;
        let scenario = SCENARIOS.iter().find(|s| s.name == "select").unwrap();
        let variant = scenario.variants.iter().find(|v| v.name == "9.6").unwrap();
        let plan = Plan { operations: 1, ..Plan::new() };
        point(&machine, scenario, variant, 256, &plan).throughput
    };
    let (fair, near) = (of_9_6(0.0), of_9_6(0.9));
    assert!(near > 1.5 * fair, "{near} {fair}");
}

#[test]
fn the_exclusive_locker_starves_without_a_limit() {
    let all = points("four-socket", &["starvation"], &[32], 5);
    let longest = |variant: &str| {
        let point = all.iter().find(|p| p.variant == variant).unwrap();
        point.exclusive_longest_ns.unwrap()
    };
    for starving in ["lwlock-9.5", "lwlock-unfair"] {
        for served in ["lwlock-bounded", "lwlock-fair"] {
            let (long, short) = (longest(starving), longest(served));
            assert!(long > 4.0 * short, "{starving} {long} ns, {served} {short} ns");
        }
    }
}

#[test]
fn what_writes_nothing_shared_scales() {
    let all = points("eight-blade", &["btree", "relation-locks", "snapshots"], &[1, 256], 5);
    let gain = |variant: &str| {
        let of: Vec<f64> =
            all.iter().filter(|p| p.variant == variant).map(|p| p.throughput).collect();
        of[1] / of[0]
    };
    for (better, worse) in
        [("optimistic", "latched"), ("per-worker", "shared-table"), ("csn", "process-array")]
    {
        assert!(
            gain(better) > 4.0 * gain(worse),
            "{better} {} {worse} {}",
            gain(better),
            gain(worse)
        );
    }
}

#[test]
fn options_are_checked() {
    for words in [
        ["--machine", "none"],
        ["--scenario", "none"],
        ["--cores", "513"],
        ["--operations", "0"],
        ["--near-first", "2"],
        ["--spin-sleep", "0"],
    ] {
        assert!(read_options(&mut Arguments::new(words)).is_err(), "{words:?}");
    }
    let near = ["--machine", "laptop", "--near-first", "0.5", "--spin-sleep", "5000"];
    let costs = &read_options(&mut Arguments::new(near)).unwrap().plan.machines[0].costs;
    assert_eq!((costs.near_first, costs.spin_sleep), (0.5, 5000.0));
    let options = read_options(&mut Arguments::new(["--machine", "laptop", "--quick"])).unwrap();
    assert_eq!(options.plan.cores(&options.plan.machines[0]), [1, 2]);
}
