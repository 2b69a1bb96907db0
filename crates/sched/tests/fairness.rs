//! `lwlock_shared_limit` at its ends. Alone in its binary: the setting is the process's.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

use base::WaitEvent;
use base::settings::{Settings, Value, publish_live, setting};
use sched::lwlock::tranche_counters;
use sched::{LwLock, TaskRef, current};

const EVENT: WaitEvent = WaitEvent::LWLockStatistics;

fn set_limit(limit: i64) {
    let mut settings = Settings::default();
    settings.set(setting::LWLOCK_SHARED_LIMIT, Value::Int(limit));
    publish_live(&settings);
}

/// A thread that takes the lock once.
struct Locker {
    task: Arc<OnceLock<TaskRef>>,
    done: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Locker {
    fn start(f: impl FnOnce() + Send + 'static) -> Locker {
        let (task, done) = (Arc::new(OnceLock::new()), Arc::new(AtomicBool::new(false)));
        let (set, over) = (Arc::clone(&task), Arc::clone(&done));
        let thread = thread::spawn(move || {
            let _ = set.set(current());
            f();
            over.store(true, Ordering::SeqCst);
        });
        let locker = Locker { task, done, thread };
        while !locker.done.load(Ordering::SeqCst) && !locker.waits() {
            thread::yield_now();
        }
        locker
    }

    fn waits(&self) -> bool {
        self.task.get().is_some_and(|t| t.wait().is_some())
    }
}

/// While a reader holds the lock and a writer queues, how many of ten readers get in?
fn readers_that_pass(limit: i64) -> usize {
    set_limit(limit);
    let lock = Arc::new(LwLock::new(EVENT, ()));
    let first = lock.read();
    let l = Arc::clone(&lock);
    let writer = Locker::start(move || drop(l.write()));
    assert!(writer.waits());
    let passed = Arc::new(AtomicUsize::new(0));
    let readers: Vec<_> = (0..10)
        .map(|_| {
            let (lock, passed) = (Arc::clone(&lock), Arc::clone(&passed));
            Locker::start(move || {
                let _held = lock.read();
                passed.fetch_add(1, Ordering::SeqCst);
            })
        })
        .collect();
    let result = passed.load(Ordering::SeqCst);
    assert!(!writer.done.load(Ordering::SeqCst));
    drop(first);
    writer.thread.join().unwrap();
    readers.into_iter().for_each(|r| r.thread.join().unwrap());
    result
}

// One test, since all of it is about the one setting.
#[test]
fn the_limit_is_kept() {
    at_both_ends_and_between();
    [0, 16].into_iter().for_each(a_writer_is_not_starved);
}

fn at_both_ends_and_between() {
    let before = tranche_counters(EVENT);
    assert_eq!(readers_that_pass(0), 0);
    assert_eq!(readers_that_pass(3), 3);
    assert_eq!(readers_that_pass(-1), 10);
    let after = tranche_counters(EVENT);
    assert_eq!(after.passes - before.passes, 13);
    assert!(after.waits > before.waits && after.longest_ns > 0);
}

/// A writer among readers that never leave the lock free by themselves gets its turn.
fn a_writer_is_not_starved(limit: i64) {
    set_limit(limit);
    let lock = Arc::new(LwLock::new(EVENT, 0));
    let stop = Arc::new(AtomicBool::new(false));
    // Two readers that always overlap: each waits for the other to be in before it leaves.
    let inside = Arc::new(AtomicUsize::new(0));
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let (lock, stop, inside) = (Arc::clone(&lock), Arc::clone(&stop), Arc::clone(&inside));
            thread::spawn(move || {
                while !stop.load(Ordering::SeqCst) {
                    let held = lock.read();
                    inside.fetch_add(1, Ordering::SeqCst);
                    for _ in 0..100 {
                        if inside.load(Ordering::SeqCst) == 2 {
                            break;
                        }
                        thread::yield_now();
                    }
                    inside.fetch_sub(1, Ordering::SeqCst);
                    drop(held);
                }
            })
        })
        .collect();
    for _ in 0..50 {
        *lock.write() += 1;
    }
    stop.store(true, Ordering::SeqCst);
    readers.into_iter().for_each(|r| r.join().unwrap());
    assert_eq!(*lock.read(), 50);
}
