//! The scenarios. A scenario is a question; its variants are the answers that are compared. A
//! new variant is a row here and a `start` beside the others of its kind.

mod btree;
mod counters;
mod lwlocks;
mod morsels;
mod partitions;
mod pins;
mod relations;
mod select;
mod snapshots;
mod spins;
mod turns;

use super::engine::Simulation;
use super::locks::{BOUNDED, Kind};

use pins::Pin;

/// One way to do it.
pub struct Variant {
    /// Its name in the results.
    pub name: &'static str,
    /// Lays out memory and starts the programs.
    pub start: fn(&mut Simulation),
}

/// A question.
pub struct Scenario {
    /// Its name in the results.
    pub name: &'static str,
    /// What one operation is.
    pub about: &'static str,
    /// How many times as long as others it runs, so that what is rare in it happens.
    pub length: u64,
    /// The ways that are compared.
    pub variants: &'static [Variant],
}

const fn variant(name: &'static str, start: fn(&mut Simulation)) -> Variant {
    Variant { name, start }
}

/// All of them.
pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "counter",
        about: "an atomic add: one counter for all, one each, one each on shared lines",
        length: 1,
        variants: &[
            variant("add-one", |s| counters::start(s, counters::Layout::One)),
            variant("add-falsely-shared", |s| counters::start(s, counters::Layout::Crowded)),
            variant("add-padded", |s| counters::start(s, counters::Layout::Padded)),
        ],
    },
    Scenario {
        name: "pin",
        about: "pin and unpin of one hot buffer, 1 µs of other work",
        length: 1,
        variants: &[
            variant("pin-spin", |s| pins::start(s, Pin::Spin, 1000.0)),
            variant("pin-cas", |s| pins::start(s, Pin::Cas, 1000.0)),
            variant("pin-both", |s| pins::start(s, Pin::Both, 1000.0)),
            variant("pin-add", |s| pins::start(s, Pin::Add, 1000.0)),
        ],
    },
    Scenario {
        name: "spin",
        about: "a spin lock around a few instructions, 1 µs of other work",
        length: 1,
        variants: &[
            variant("spin-plain", |s| spins::start(s, spins::Kind::Plain, 1000.0)),
            variant("spin-backoff", |s| spins::start(s, spins::Kind::Backoff, 1000.0)),
            variant("spin-postgres", |s| spins::start(s, spins::Kind::Postgres, 1000.0)),
        ],
    },
    Scenario {
        name: "lwlock-shared",
        about: "one lightweight lock, shared only",
        length: 1,
        variants: &[
            variant("lwlock-9.4", |s| lwlocks::mixed(s, Kind::Mutex, 0, 0.0)),
            variant("lwlock-9.5", |s| lwlocks::mixed(s, Kind::Atomic, 0, 0.0)),
            variant("lwlock-bounded", |s| lwlocks::mixed(s, Kind::Ours(BOUNDED), 0, 0.0)),
        ],
    },
    Scenario {
        name: "lwlock-mixed",
        about: "one lightweight lock, 5 of 100 exclusive, held 100 ns, 1 µs of other work",
        length: 1,
        variants: &[
            variant("lwlock-9.4", |s| lwlocks::mixed(s, Kind::Mutex, 5, 1000.0)),
            variant("lwlock-9.5", |s| lwlocks::mixed(s, Kind::Atomic, 5, 1000.0)),
            variant("lwlock-fair", |s| lwlocks::mixed(s, Kind::Ours(0), 5, 1000.0)),
            variant("lwlock-bounded", |s| lwlocks::mixed(s, Kind::Ours(BOUNDED), 5, 1000.0)),
            variant("lwlock-unfair", |s| lwlocks::mixed(s, Kind::Ours(-1), 5, 1000.0)),
        ],
    },
    Scenario {
        name: "starvation",
        about: "one exclusive locker among shared ones that keep the lock most of their time",
        length: 10,
        variants: &[
            variant("lwlock-9.5", |s| lwlocks::starvation(s, Kind::Atomic)),
            variant("lwlock-unfair", |s| lwlocks::starvation(s, Kind::Ours(-1))),
            variant("lwlock-bounded", |s| lwlocks::starvation(s, Kind::Ours(BOUNDED))),
            variant("lwlock-fair", |s| lwlocks::starvation(s, Kind::Ours(0))),
        ],
    },
    Scenario {
        name: "partitions",
        about: "looking up four buffers, 1 of 5 replaced, over so many mapping partitions",
        length: 1,
        variants: &[
            variant("9.4-16", |s| partitions::locked(s, Kind::Mutex, 16)),
            variant("9.4-128", |s| partitions::locked(s, Kind::Mutex, 128)),
            variant("9.5-16", |s| partitions::locked(s, Kind::Atomic, 16)),
            variant("9.5-128", |s| partitions::locked(s, Kind::Atomic, 128)),
            variant("9.5-512", |s| partitions::locked(s, Kind::Atomic, 512)),
            variant("9.5-4096", |s| partitions::locked(s, Kind::Atomic, 4096)),
            variant("unlocked-16", |s| partitions::unlocked(s, 16)),
            variant("unlocked-512", |s| partitions::unlocked(s, 512)),
        ],
    },
    Scenario {
        name: "btree",
        about: "a descent over root, inner page and leaf, 1 of 20 an insert",
        length: 1,
        variants: &[
            variant("latched", |s| btree::start(s, btree::Descent::Latched)),
            variant("pinned", |s| btree::start(s, btree::Descent::Pinned)),
            variant("optimistic", |s| btree::start(s, btree::Descent::Optimistic)),
        ],
    },
    Scenario {
        name: "relation-locks",
        about: "locking and unlocking the same three relations weakly, 5 µs of other work",
        length: 1,
        variants: &[
            variant("shared-table", |s| relations::start(s, relations::LockPath::SharedTable)),
            variant("fast-path", |s| relations::start(s, relations::LockPath::FastPath)),
            variant("per-worker", |s| relations::start(s, relations::LockPath::PerWorker)),
        ],
    },
    Scenario {
        name: "snapshots",
        about: "taking a snapshot, 1 of 10 transactions commits, 5 µs of other work",
        length: 1,
        variants: &[
            variant("process-array", snapshots::process_array),
            variant("csn", snapshots::csn),
        ],
    },
    Scenario {
        name: "morsels",
        about: "one page of a scan with an aggregate, by many threads of one query",
        length: 1,
        variants: &[
            variant("page-each", |s| morsels::start(s, 1, morsels::Groups::Own)),
            variant("32-pages", |s| morsels::start(s, 32, morsels::Groups::Own)),
            variant("shared-groups", |s| morsels::start(s, 32, morsels::Groups::Shared)),
        ],
    },
    Scenario {
        name: "select",
        about: "a select by key: snapshot, relation locks, four buffers, 50 µs of other work",
        length: 1,
        variants: &[
            variant("9.4", |s| select::postgres(s, select::V9_4)),
            variant("9.5", |s| select::postgres(s, select::V9_5)),
            variant("9.5-patched", |s| select::postgres(s, select::V9_5_PATCHED)),
            variant("9.6", |s| select::postgres(s, select::V9_6)),
            variant("threadgres", select::threadgres),
        ],
    },
];

/// Only for calibration: two cores that take turns, as `lab locks` lets two threads do.
pub const CALIBRATION: &[Scenario] = &[
    Scenario {
        name: "turns",
        about: "one hand-over between two cores",
        length: 1,
        variants: &[variant("turn-line", turns::line), variant("turn-park", turns::parked)],
    },
    Scenario {
        name: "tight",
        about: "a lock and nothing else, as `lab locks` takes it",
        length: 1,
        variants: &[
            variant("load-one", counters::load),
            variant("pause", counters::pause),
            variant("pin-cas", |s| pins::start(s, Pin::Cas, 0.0)),
            variant("pin-both", |s| pins::start(s, Pin::Both, 0.0)),
            variant("pin-add", |s| pins::start(s, Pin::Add, 0.0)),
            variant("spin-plain", |s| spins::start(s, spins::Kind::Plain, 0.0)),
            variant("spin-backoff", |s| spins::start(s, spins::Kind::Backoff, 0.0)),
            variant("lwlock-fair-0", |s| lwlocks::tight(s, Kind::Ours(0), 0)),
            variant("lwlock-fair-10", |s| lwlocks::tight(s, Kind::Ours(0), 10)),
            variant("lwlock-bounded-0", |s| lwlocks::tight(s, Kind::Ours(BOUNDED), 0)),
            variant("lwlock-bounded-10", |s| lwlocks::tight(s, Kind::Ours(BOUNDED), 10)),
            variant("lwlock-unfair-0", |s| lwlocks::tight(s, Kind::Ours(-1), 0)),
            variant("lwlock-unfair-10", |s| lwlocks::tight(s, Kind::Ours(-1), 10)),
        ],
    },
];
