//! The cost of a hand-over between threads: two threads take turns, each waits
//! until it is its turn. The time of one turn is the cost of one hand-over.
//!
//! | primitive | how the other learns that it is its turn |
//! | --- | --- |
//! | `turn-line` | it reads a word until it changes: one line goes there and back |
//! | `turn-<lock>` | it takes the lock exclusively and looks, again and again |
//! | `turn-park` | `sched::Task::unpark` of a thread that has parked |
//! | `turn-std-park` | the standard library's `unpark` of one |

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Barrier, OnceLock};
use std::time::{Duration, Instant};

use base::WaitEvent;
use crossbeam_utils::CachePadded;
use sched::{SpinLock, TaskRef, current, park_uninterruptible};

use super::bench::{pin, quantile};
use super::rwlocks::Shareable;
use super::{Plan, rwlocks};
use crate::Result;
use crate::results::LockPoint;

/// Two threads that take turns: thread 0 in the even ones, thread 1 in the odd ones.
pub trait Turns: Send + Sync {
    /// By thread `me`: waits for turn number `turn` and ends it.
    fn take(&self, me: usize, turn: u64);
    /// By each thread before the first turn.
    fn join(&self, _me: usize) {}
}

/// A way to hand over.
pub struct Turn {
    /// Its name in the results.
    pub name: &'static str,
    /// The server's `lwlock_shared_limit` while it runs.
    pub shared_limit: Option<i64>,
    /// A new pair.
    pub make: fn() -> Box<dyn Turns>,
}

/// By one word.
#[derive(Default)]
pub struct Line(CachePadded<AtomicU64>);

impl Turns for Line {
    fn take(&self, _me: usize, turn: u64) {
        let mut spins = 0u32;
        while self.0.load(Ordering::Acquire) != turn {
            std::hint::spin_loop();
            spins += 1;
            // The other one may have no core.
            if spins.is_multiple_of(1 << 14) {
                std::thread::yield_now();
            }
        }
        self.0.store(turn + 1, Ordering::Release);
    }
}

/// By looking under a lock.
pub struct Locked<L>(CachePadded<L>, CachePadded<AtomicU64>);

impl<L: Shareable> Locked<L> {
    /// Nobody's turn yet but thread 0's.
    pub fn new() -> Locked<L> {
        Locked(CachePadded::new(L::new()), CachePadded::default())
    }
}

impl<L: Shareable> Turns for Locked<L> {
    fn take(&self, _me: usize, turn: u64) {
        let look = || {
            let mine = self.1.load(Ordering::Relaxed) == turn;
            if mine {
                self.1.store(turn + 1, Ordering::Relaxed);
            }
            mine
        };
        until(|| self.0.exclusive(look));
    }
}

/// By looking under the server's spin lock.
pub struct SpinLocked(CachePadded<SpinLock<u64>>);

impl SpinLocked {
    /// Thread 0 begins.
    pub fn new() -> SpinLocked {
        SpinLocked(CachePadded::new(SpinLock::new(0)))
    }
}

impl Turns for SpinLocked {
    fn take(&self, _me: usize, turn: u64) {
        until(|| {
            let mut at = self.0.lock();
            let mine = *at == turn;
            *at += u64::from(mine);
            mine
        });
    }
}

/// Looks again until it was its turn; gives the core away now and then.
fn until(mut look: impl FnMut() -> bool) {
    let mut tries = 0u32;
    while !look() {
        tries += 1;
        if tries.is_multiple_of(1 << 10) {
            std::thread::yield_now();
        }
    }
}

/// By parking, the server's way.
#[derive(Default)]
pub struct Parked {
    tasks: [OnceLock<TaskRef>; 2],
    turn: CachePadded<AtomicU64>,
}

impl Turns for Parked {
    fn join(&self, me: usize) {
        self.tasks[me].get_or_init(current);
    }
    fn take(&self, me: usize, turn: u64) {
        while self.turn.load(Ordering::Acquire) != turn {
            park_uninterruptible(WaitEvent::LWLockOther, None);
        }
        self.turn.store(turn + 1, Ordering::Release);
        if let Some(other) = self.tasks[1 - me].get() {
            other.unpark();
        }
    }
}

/// By parking, the standard library's way.
#[derive(Default)]
pub struct StdParked {
    threads: [OnceLock<std::thread::Thread>; 2],
    turn: CachePadded<AtomicU64>,
}

impl Turns for StdParked {
    fn join(&self, me: usize) {
        self.threads[me].get_or_init(std::thread::current);
    }
    fn take(&self, me: usize, turn: u64) {
        while self.turn.load(Ordering::Acquire) != turn {
            std::thread::park();
        }
        self.turn.store(turn + 1, Ordering::Release);
        if let Some(other) = self.threads[1 - me].get() {
            other.unpark();
        }
    }
}

/// One run of turns.
#[derive(Clone, Debug)]
pub struct HandOver {
    turns: u64,
    time: Duration,
}

/// Hands over for about one slice.
///
/// # Errors
/// A thread can't be pinned.
pub fn run(turn: &Turn, plan: &Plan) -> Result<HandOver> {
    if let Some(limit) = turn.shared_limit {
        rwlocks::set_shared_limit(limit);
    }
    let turns = (turn.make)();
    let barrier = Barrier::new(2);
    // Turns up to which both go; set by thread 0 alone, in its own turn, before it hands over.
    let last = AtomicU64::new(u64::MAX);
    let one = |me: usize| {
        let pinned = if plan.pin { pin(me) } else { Ok(()) };
        turns.join(me);
        barrier.wait();
        let began = Instant::now();
        let mut at = me as u64;
        while at <= last.load(Ordering::Acquire) {
            if me == 0 && at.is_multiple_of(32) && began.elapsed() >= plan.slice {
                last.store(at + 1, Ordering::Release);
            }
            turns.take(me, at);
            at += 2;
        }
        pinned.map(|()| HandOver { turns: at - 2, time: began.elapsed() })
    };
    std::thread::scope(|scope| {
        let second = scope.spawn(|| one(1));
        let first = one(0);
        second.join().expect("taking turns does not panic")?;
        first
    })
}

/// The rounds of one way as one point.
pub fn point(turn: &Turn, runs: &[HandOver]) -> LockPoint {
    let cost = |r: &HandOver| r.time.as_nanos() as f64 / r.turns.max(1) as f64;
    let by = |part| quantile(&mut runs.iter().map(cost).collect::<Vec<_>>(), part);
    LockPoint {
        primitive: turn.name.to_owned(),
        parameters: BTreeMap::new(),
        threads: 2,
        operations: runs.iter().map(|r| r.turns).sum(),
        seconds: runs.iter().map(|r| r.time.as_secs_f64()).sum(),
        mean_ns: by(0.5),
        quartiles_ns: (by(0.25), by(0.75)),
        hand_over_ns: Some(by(0.5)),
        ..LockPoint::default()
    }
}
