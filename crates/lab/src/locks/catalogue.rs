//! Which primitives are measured, with which parameters. A new one is a row here.

use sched::LwLock;
use sched::yardstick::PthreadRwLock;

use super::Plan;
use super::bench::{Case, Primitive};
use super::counters::{AddFalselyShared, AddOne, AddPadded, LoadOne, Pause};
use super::handover::{Line, Locked, Parked, SpinLocked, StdParked, Turn};
use super::pins::{PinAdd, PinBoth, PinCas};
use super::rwlocks::Mixed;
use super::spins::{SpinBackoff, SpinPlain};

/// The server's default of `lwlock_shared_limit`.
const BOUNDED: i64 = 16;

/// A reader-writer lock's name, limit, and a new one of it.
type Row = (&'static str, Option<i64>, fn() -> Box<dyn Primitive>);

const RWLOCKS: [Row; 6] = [
    ("lwlock-fair", Some(0), || Box::new(Mixed::<LwLock<()>>::new())),
    ("lwlock-bounded", Some(BOUNDED), || Box::new(Mixed::<LwLock<()>>::new())),
    ("lwlock-unfair", Some(-1), || Box::new(Mixed::<LwLock<()>>::new())),
    ("parking-lot", None, || Box::new(Mixed::<parking_lot::RwLock<()>>::new())),
    ("std", None, || Box::new(Mixed::<std::sync::RwLock<()>>::new())),
    ("pthread", None, || Box::new(Mixed::<PthreadRwLock>::new())),
];

/// Writers of a hundred operations, and the hold times, nanoseconds.
const MIXES: [u32; 4] = [0, 1, 10, 50];
const HOLDS_NS: [u32; 2] = [0, 200];

/// The cases at one number of threads.
pub fn cases(plan: &Plan, threads: u32) -> Vec<Case> {
    let mut out = Vec::new();
    let mut add = |name, writers, hold_ns, shared_limit, primitive| {
        if plan.wants(name) {
            out.push(Case { name, primitive, threads, writers, hold_ns, shared_limit });
        }
    };
    let mut plain = |name, primitive: Box<dyn Primitive>| add(name, 0, 0, None, primitive);
    plain("pause", Box::new(Pause));
    plain("load-one", Box::<LoadOne>::default());
    plain("add-one", Box::<AddOne>::default());
    plain("add-padded", Box::new(AddPadded::new(threads)));
    plain("add-falsely-shared", Box::new(AddFalselyShared::new()));
    plain("pin-add", Box::new(PinAdd::new(1)));
    plain("pin-cas", Box::new(PinCas::new(1)));
    plain("pin-both", Box::new(PinBoth::new(1)));
    plain("pin-add-separate", Box::new(PinAdd::new(threads)));
    plain("pin-cas-separate", Box::new(PinCas::new(threads)));
    let holds = if plan.quick { &HOLDS_NS[..1] } else { &HOLDS_NS };
    for &hold in holds {
        add("spin-backoff", 100, hold, None, Box::new(SpinBackoff::new()));
        add("spin-plain", 100, hold, None, Box::<SpinPlain>::default());
        for writers in MIXES {
            if plan.quick && matches!(writers, 1 | 50) {
                continue;
            }
            for (name, limit, make) in RWLOCKS {
                add(name, writers, hold, limit, make());
            }
        }
    }
    out
}

/// The ways to hand over.
pub fn turns(plan: &Plan) -> Vec<Turn> {
    let turn = |name, shared_limit, make| Turn { name, shared_limit, make };
    let mut all = vec![
        turn("turn-line", None, || Box::new(Line::default())),
        turn("turn-spin-backoff", None, || Box::new(SpinLocked::new())),
        turn("turn-lwlock-bounded", Some(BOUNDED), || Box::new(Locked::<LwLock<()>>::new())),
        turn("turn-parking-lot", None, || Box::new(Locked::<parking_lot::RwLock<()>>::new())),
        turn("turn-std", None, || Box::new(Locked::<std::sync::RwLock<()>>::new())),
        turn("turn-pthread", None, || Box::new(Locked::<PthreadRwLock>::new())),
        turn("turn-park", None, || Box::new(Parked::default())),
        turn("turn-std-park", None, || Box::new(StdParked::default())),
    ];
    all.retain(|turn| plan.wants(turn.name));
    all
}

/// The names of all that the plan measures.
pub fn names(plan: &Plan) -> Vec<&'static str> {
    let mut names: Vec<&'static str> = Vec::new();
    let cases = cases(plan, 1);
    for name in cases.iter().map(|c| c.name).chain(turns(plan).iter().map(|t| t.name)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}
