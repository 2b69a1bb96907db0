//! Locks, condition variables, cancellation and timeouts under many random schedules.
//!
//! ```sh
//! make shuttle SCHEDULES=100000
//! ```
//! Shuttle runs each story again and again, and after each step of a thread picks the one that goes
//! on: at random, or (PCT) by random priorities that change a few times, which finds what needs few
//! but rare preemptions. A lost wake-up is a deadlock, which it reports with the schedule.
#![cfg(shuttle)]

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use base::WaitEvent;
use base::settings::{Settings, Value, publish_live, setting};
use sched::exchange::{Exchange, Running};
use sched::joint::{Joint, Turn};
use sched::{Condvar, LwLock, Mutex, SpinLock, TaskRef, Wake, current};
use shuttle::sync::atomic::{AtomicU32, Ordering};
use shuttle::thread;

const EVENT: WaitEvent = WaitEvent::LWLockOther;

/// Runs a story under many schedules of both kinds.
fn explore(story: fn()) {
    let schedules = std::env::var("SHUTTLE_SCHEDULES").ok().and_then(|n| n.parse().ok());
    let schedules: usize = schedules.unwrap_or(3000);
    shuttle::check_random(story, schedules);
    shuttle::check_pct(story, schedules, 3);
}

fn set_limit(limit: i64) {
    let mut settings = Settings::default();
    settings.set(setting::LWLOCK_SHARED_LIMIT, Value::Int(limit));
    publish_live(&settings);
}

#[test]
fn writers_exclude_all_and_readers_see_whole_writes() {
    for limit in [0, 1, -1] {
        set_limit(limit);
        explore(|| {
            let lock = Arc::new(LwLock::new(EVENT, (0, 0)));
            let threads: Vec<_> = (0..5)
                .map(|n| {
                    let lock = Arc::clone(&lock);
                    thread::spawn(move || {
                        for _ in 0..2 {
                            if n < 2 {
                                let mut pair = lock.write();
                                pair.0 += 1;
                                thread::yield_now();
                                pair.1 += 1;
                            } else {
                                let pair = lock.read();
                                let first = pair.0;
                                thread::yield_now();
                                assert_eq!((first, first), *pair);
                            }
                        }
                    })
                })
                .collect();
            threads.into_iter().for_each(|t| t.join().unwrap());
            assert_eq!(*lock.read(), (4, 4));
        });
    }
}

#[test]
fn spin_locks_exclude() {
    explore(|| {
        let lock = Arc::new(SpinLock::new(0));
        let add = |lock: Arc<SpinLock<u32>>| {
            thread::spawn(move || {
                let mut value = lock.lock();
                let read = *value;
                thread::yield_now();
                *value = read + 1;
            })
        };
        let threads: Vec<_> = (0..3).map(|_| add(Arc::clone(&lock))).collect();
        threads.into_iter().for_each(|t| t.join().unwrap());
        assert_eq!(*lock.lock(), 3);
    });
}

/// A queue of one place between producers and consumers.
struct Channel {
    items: Mutex<VecDeque<u32>>,
    full: Condvar,
    free: Condvar,
}

impl Channel {
    fn new() -> Arc<Channel> {
        let items = Mutex::new(EVENT, VecDeque::new());
        Arc::new(Channel { items, full: Condvar::new(), free: Condvar::new() })
    }

    fn put(&self, item: u32) {
        let mut items = self.items.lock();
        while !items.is_empty() {
            items = self.free.wait(&self.items, items, EVENT, None).0;
        }
        items.push_back(item);
        drop(items);
        self.full.notify_one();
    }

    /// None when the wait ended otherwise.
    fn take(&self, deadline: Option<Instant>) -> Option<u32> {
        let mut items = self.items.lock();
        loop {
            if let Some(item) = items.pop_front() {
                drop(items);
                self.free.notify_one();
                return Some(item);
            }
            let wake;
            (items, wake) = self.full.wait(&self.items, items, EVENT, deadline);
            if wake != Wake::Unparked {
                return None;
            }
        }
    }
}

#[test]
fn what_producers_put_consumers_take() {
    explore(|| {
        let channel = Channel::new();
        let producers: Vec<_> = (0..2)
            .map(|n| {
                let channel = Arc::clone(&channel);
                thread::spawn(move || (0..2).for_each(|i| channel.put(n * 2 + i)))
            })
            .collect();
        let consumers: Vec<_> = (0..2)
            .map(|_| {
                let channel = Arc::clone(&channel);
                thread::spawn(move || [channel.take(None).unwrap(), channel.take(None).unwrap()])
            })
            .collect();
        producers.into_iter().for_each(|t| t.join().unwrap());
        let mut taken: Vec<u32> = consumers.into_iter().flat_map(|t| t.join().unwrap()).collect();
        taken.sort_unstable();
        assert_eq!(taken, [0, 1, 2, 3]);
    });
}

/// One who is cancelled (or whose time is up) while he is notified must take the notification or
/// leave it to the other waiter.
fn a_leaver_loses_no_notification(leaves: fn(&Channel) -> Option<u32>, cancel: bool) {
    let channel = Channel::new();
    let leaver_task: Arc<SpinLock<Option<TaskRef>>> = Arc::new(SpinLock::new(None));
    let (c, slot) = (Arc::clone(&channel), Arc::clone(&leaver_task));
    let leaver = thread::spawn(move || {
        *slot.lock() = Some(current());
        leaves(&c)
    });
    let c = Arc::clone(&channel);
    let stayer = thread::spawn(move || c.take(None));
    let c = Arc::clone(&channel);
    let producer = thread::spawn(move || c.put(1));
    if cancel {
        let task = loop {
            let task = leaver_task.lock().clone();
            match task {
                Some(task) => break task,
                None => thread::yield_now(),
            }
        };
        task.interrupt();
    }
    producer.join().unwrap();
    let left_with = leaver.join().unwrap();
    if left_with.is_some() {
        channel.put(2);
    }
    // A deadlock here is a lost notification.
    let stayed_with = stayer.join().unwrap();
    assert_eq!(stayed_with, Some(if left_with.is_some() { 2 } else { 1 }));
}

#[test]
fn cancellation_loses_no_notification() {
    explore(|| a_leaver_loses_no_notification(|c| c.take(None), true));
}

#[test]
fn timeouts_lose_no_notification() {
    explore(|| a_leaver_loses_no_notification(|c| c.take(Some(Instant::now())), false));
}

#[test]
fn one_who_is_cancelled_still_gets_the_lock_he_waits_for() {
    explore(|| {
        let lock = Arc::new(LwLock::new(EVENT, 0));
        let task: Arc<SpinLock<Option<TaskRef>>> = Arc::new(SpinLock::new(None));
        let held = lock.write();
        let (l, slot) = (Arc::clone(&lock), Arc::clone(&task));
        let waiter = thread::spawn(move || {
            *slot.lock() = Some(current());
            *l.write() += 1;
            // The interrupt has waited for the next wait that can be cancelled.
            sched::park(EVENT, Some(Instant::now()))
        });
        let other = {
            let lock = Arc::clone(&lock);
            thread::spawn(move || *lock.write() += 1)
        };
        let task = loop {
            let known = task.lock().clone();
            match known {
                Some(task) => break task,
                None => thread::yield_now(),
            }
        };
        task.interrupt();
        drop(held);
        assert_eq!(waiter.join().unwrap(), Wake::Interrupted);
        other.join().unwrap();
        assert_eq!(*lock.read(), 2);
    });
}

type Table = Joint<u32, u32>;

/// Something that may be refused: the sum of numbers that are taken one by one.
fn build(table: &Table, left: &AtomicU32, leads: bool, gives_up: bool) -> Option<u32> {
    let check = || Ok::<(), ()>(());
    let inside = match table.enter(leads, check).expect("nothing interrupts") {
        Turn::Inside(inside) => inside,
        Turn::Done(made) => return Some(*made),
        Turn::Alone(_) | Turn::Closed => return None,
    };
    let (mut part, mut taken) = (0, 0);
    while let Ok(n) = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1))
    {
        part += n;
        taken += 1;
        if gives_up && taken == 2 {
            inside.leave(part);
            return None;
        }
    }
    let join = |parts: Vec<u32>| Ok(parts.iter().sum());
    match inside.finish(part, join, check).expect("nothing interrupts") {
        Turn::Done(made) => Some(*made),
        _ => None,
    }
}

#[test]
fn a_table_made_together_is_whole_whoever_leaves() {
    explore(|| {
        let table = Arc::new(Table::new(EVENT));
        let left = Arc::new(AtomicU32::new(6));
        let helpers: Vec<_> = (0..3)
            .map(|n| {
                let (table, left) = (Arc::clone(&table), Arc::clone(&left));
                thread::spawn(move || build(&table, &left, false, n == 0))
            })
            .collect();
        assert_eq!(build(&table, &left, true, false), Some(21));
        for helper in helpers {
            assert!(matches!(helper.join().unwrap(), None | Some(21)));
        }
    });
}

#[test]
fn nobody_waits_for_a_table_of_which_a_thread_has_failed() {
    explore(|| {
        let table = Arc::new(Table::new(EVENT));
        let left = Arc::new(AtomicU32::new(3));
        let other = Arc::clone(&table);
        let fails = thread::spawn(move || drop(other.enter(false, || Ok::<(), ()>(()))));
        let (other, more) = (Arc::clone(&table), Arc::clone(&left));
        let helper = thread::spawn(move || build(&other, &more, false, false));
        let led = build(&table, &left, true, false);
        assert!(matches!(led, None | Some(6)));
        assert!(matches!(helper.join().unwrap(), None | Some(6)));
        fails.join().unwrap();
    });
}

#[test]
fn the_leader_gets_all_parts_of_a_table_that_is_abandoned() {
    explore(|| {
        let table = Arc::new(Table::new(EVENT));
        let check = || Ok::<(), ()>(());
        let helpers: Vec<_> = (1..3)
            .map(|n| {
                let table = Arc::clone(&table);
                thread::spawn(move || {
                    if let Ok(Turn::Inside(inside)) = table.enter(false, check) {
                        let turn = inside.abandon(n, check).expect("nothing interrupts");
                        assert!(matches!(turn, Turn::Closed));
                    }
                })
            })
            .collect();
        let turn = match table.enter(true, check).expect("nothing interrupts") {
            Turn::Inside(inside) => inside.abandon(10, check).expect("nothing interrupts"),
            turn => turn,
        };
        assert!(matches!(turn, Turn::Alone(_)));
        helpers.into_iter().for_each(|helper| helper.join().unwrap());
    });
}

/// A thread's part of a round: numbers into the buffer until it is full or there are no more.
fn fill(left: &AtomicU32, round: &Exchange<u32>) {
    while !round.is_full() {
        let taken = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
        let Ok(n) = taken else { return };
        round.put(n, 1);
        thread::yield_now();
    }
}

#[test]
fn rounds_of_an_exchange_hand_over_all() {
    explore(|| {
        let left = Arc::new(AtomicU32::new(6));
        let mut seen = Vec::new();
        while seen.len() < 6 {
            let round = Arc::new(Exchange::new(2));
            let running = Arc::new(Running::new());
            let helpers: Vec<_> = (0..2)
                .map(|_| {
                    running.begin();
                    let (left, round) = (Arc::clone(&left), Arc::clone(&round));
                    let running = Arc::clone(&running);
                    thread::spawn(move || {
                        fill(&left, &round);
                        // Its borrowed values go before the leader goes on.
                        drop(round);
                        running.end();
                    })
                })
                .collect();
            fill(&left, &round);
            running.wait(EVENT, || Ok::<(), ()>(())).expect("nothing interrupts");
            let round = Arc::into_inner(round).expect("no helper has it any more");
            let items = round.into_items();
            // Two, and one more of each thread that saw room.
            assert!(items.len() <= 4, "{} items", items.len());
            seen.extend(items);
            helpers.into_iter().for_each(|helper| helper.join().unwrap());
        }
        seen.sort_unstable();
        assert_eq!(seen, [1, 2, 3, 4, 5, 6]);
    });
}

#[test]
fn an_interrupted_leader_ends_its_helpers_and_waits_for_them() {
    explore(|| {
        let running = Arc::new(Running::new());
        let cancelled = Arc::new(AtomicU32::new(0));
        let leader = current();
        let helpers: Vec<_> = (0..2)
            .map(|_| {
                running.begin();
                let (running, cancelled) = (Arc::clone(&running), Arc::clone(&cancelled));
                thread::spawn(move || {
                    while cancelled.load(Ordering::Acquire) == 0 {
                        thread::yield_now();
                    }
                    running.end();
                })
            })
            .collect();
        let own = Arc::clone(&leader);
        let client = thread::spawn(move || own.interrupt());
        let outcome = running.wait(EVENT, || {
            leader.take_interrupt();
            cancelled.store(1, Ordering::Release);
            Err("cancelled")
        });
        assert_eq!(outcome, Err("cancelled"));
        assert!(running.is_over());
        client.join().unwrap();
        helpers.into_iter().for_each(|helper| helper.join().unwrap());
    });
}
