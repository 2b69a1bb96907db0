//! Locks and condition variables, on plain threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use base::WaitEvent;
use sched::{Condvar, Interrupt, LwLock, Mutex, RawLwLock, Wake, current};

const EVENT: WaitEvent = WaitEvent::LWLockOther;

#[test]
fn a_raw_lock_fits_sixteen_bytes() {
    assert_eq!(size_of::<RawLwLock>(), 16);
}

#[test]
fn writers_exclude_everybody_and_no_wakeup_is_lost() {
    let lock = LwLock::new(EVENT, (0u64, 0u64));
    let readers = AtomicUsize::new(0);
    thread::scope(|s| {
        for i in 0..8 {
            let (lock, readers) = (&lock, &readers);
            s.spawn(move || {
                for n in 0..20_000 {
                    if (n + i) % 3 == 0 {
                        let mut pair = lock.write();
                        assert_eq!(readers.load(Ordering::SeqCst), 0);
                        pair.0 += 1;
                        if n % 64 == 0 {
                            thread::yield_now();
                        }
                        pair.1 += 1;
                    } else {
                        let pair = lock.read();
                        readers.fetch_add(1, Ordering::SeqCst);
                        assert_eq!(pair.0, pair.1);
                        readers.fetch_sub(1, Ordering::SeqCst);
                    }
                }
            });
        }
    });
    let pair = lock.into_inner();
    assert_eq!(pair.0, pair.1);
}

#[test]
fn a_mutex_counts_right() {
    let mutex = Mutex::new(EVENT, 0u64);
    thread::scope(|s| {
        for _ in 0..8 {
            s.spawn(|| (0..20_000).for_each(|_| *mutex.lock() += 1));
        }
    });
    assert_eq!(mutex.into_inner(), 160_000);
}

#[test]
fn guards_release_when_unwound() {
    let lock = LwLock::new(EVENT, ());
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _held = lock.write();
        panic!("under the lock");
    }));
    assert!(result.is_err());
    assert!(lock.try_write().is_some());
}

/// Waits (without assuming how long it takes) until the condition holds.
fn until(condition: impl Fn() -> bool) {
    while !condition() {
        thread::yield_now();
    }
}

/// One reader holds the lock, a writer queues, then readers pass it one after the other: exactly
/// `lwlock_shared_limit` (16 by default) succeed.
#[test]
fn only_so_many_readers_pass_a_writer() {
    let lock = Arc::new(LwLock::new(EVENT, ()));
    let first = lock.read();
    let writer = {
        let lock = Arc::clone(&lock);
        thread::spawn(move || drop(lock.write()))
    };
    let raw_has_waiter = || lock.try_read().is_none();
    until(raw_has_waiter);
    let passed = Arc::new(AtomicUsize::new(0));
    let readers: Vec<_> = (0..40)
        .map(|_| {
            let (lock, passed) = (Arc::clone(&lock), Arc::clone(&passed));
            let task = Arc::new(std::sync::OnceLock::new());
            let (set, done) = (Arc::clone(&task), Arc::new(AtomicBool::new(false)));
            let over = Arc::clone(&done);
            let handle = thread::spawn(move || {
                let _ = set.set(current());
                let held = lock.read();
                passed.fetch_add(1, Ordering::SeqCst);
                drop(held);
                over.store(true, Ordering::SeqCst);
            });
            let waits = || task.get().is_some_and(|t| t.wait().is_some());
            until(|| done.load(Ordering::SeqCst) || waits());
            handle
        })
        .collect();
    assert_eq!(passed.load(Ordering::SeqCst), 16);
    drop(first);
    writer.join().unwrap();
    readers.into_iter().for_each(|r| r.join().unwrap());
    assert_eq!(passed.load(Ordering::SeqCst), 40);
}

#[test]
fn a_condvar_hands_over_every_item() {
    let queue = Mutex::new(EVENT, Vec::new());
    let (filled, emptied) = (Condvar::new(), Condvar::new());
    let received = AtomicUsize::new(0);
    const ITEMS: usize = 20_000;
    thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| {
                for i in 0..ITEMS / 4 {
                    let mut q = queue.lock();
                    while q.len() >= 4 {
                        q = emptied.wait(&queue, q, EVENT, None).0;
                    }
                    q.push(i);
                    filled.notify_one();
                }
            });
            s.spawn(|| {
                for _ in 0..ITEMS / 4 {
                    let mut q = queue.lock();
                    while q.pop().is_none() {
                        q = filled.wait(&queue, q, EVENT, None).0;
                    }
                    received.fetch_add(1, Ordering::SeqCst);
                    emptied.notify_one();
                }
            });
        }
    });
    assert_eq!(received.load(Ordering::SeqCst), ITEMS);
}

#[test]
fn a_condvar_wait_times_out_and_is_interrupted() {
    let (mutex, condvar) = (Mutex::new(EVENT, ()), Condvar::new());
    let soon = Instant::now() + Duration::from_millis(5);
    let (guard, wake) = condvar.wait(&mutex, mutex.lock(), EVENT, Some(soon));
    assert_eq!(wake, Wake::TimedOut);
    assert!(Instant::now() >= soon);
    current().interrupt(Interrupt::Cancel);
    let (_guard, wake) = condvar.wait(&mutex, guard, EVENT, None);
    assert_eq!(wake, Wake::Interrupted);
    // Nobody is queued any more: this must find no stale node.
    condvar.notify_all();
}
