//! The handshake by which a held worker changes threads, under loom: every interleaving of a thread that runs tasks on its
//! worker with one that takes it away.
//! `RUSTFLAGS="--cfg loom" cargo test -p sched --release --test loom_tenure`
//!
//! The worker's cells are one of loom's: two threads that touch it without an order between them fail the test.
#![cfg(loom)]

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::Mutex;
use loom::thread;
use sched::tenure::Tenure;

/// A worker: its cells, who serves it, and what was sent back to it.
struct Worker {
    /// How often somebody has touched it.
    touched: UnsafeCell<u32>,
    /// The run at hand has left something that no other thread may find.
    left: UnsafeCell<bool>,
    back: Mutex<Vec<u32>>,
}

// SAFETY: that this holds is what is tested; loom's cells find who breaks it.
unsafe impl Sync for Worker {}
// SAFETY: as above.
unsafe impl Send for Worker {}

impl Worker {
    fn new() -> Arc<Worker> {
        Arc::new(Worker {
            touched: UnsafeCell::new(0),
            left: UnsafeCell::new(false),
            back: Mutex::new(Vec::new()),
        })
    }

    fn touch(&self) -> u32 {
        self.touched.with_mut(|count| {
            // SAFETY: see the struct.
            unsafe {
                *count += 1;
                *count
            }
        })
    }

    fn leave_something(&self, left: bool) {
        // SAFETY: see the struct.
        self.left.with_mut(|cell| unsafe { *cell = left });
    }

    fn has_left(&self) -> bool {
        // SAFETY: see the struct.
        self.left.with(|cell| unsafe { *cell })
    }
}

/// One run, which comes by `visits` times in between, and the end of the thread's tenure if it has lost its worker.
fn run(worker: &Worker, tenure: &Tenure, visits: u32) -> bool {
    worker.touch();
    tenure.begin_run();
    for _ in 0..visits {
        // As `Local::worker`: a look at the worker from inside a run.
        if tenure.enter() {
            worker.touch();
            tenure.leave();
        }
        tenure.visit();
    }
    if tenure.enter() {
        worker.touch();
        return true;
    }
    worker.back.lock().expect("no panic").push(1);
    assert!(!tenure.enter(), "what is lost stays lost");
    false
}

/// One look of the watchdog after another, and the order.
fn take(worker: &Worker, tenure: &Tenure) -> bool {
    let Some(seen) = tenure.outside() else { return false };
    let taken = tenure.take(seen, || !worker.has_left());
    if taken {
        // The new thread's life begins.
        worker.touch();
    }
    taken
}

fn with_both(visits: u32, runs: u32) {
    loom::model(move || {
        let (worker, tenure) = (Worker::new(), Arc::new(Tenure::new()));
        let theirs = (worker.clone(), tenure.clone());
        let taker = thread::spawn(move || take(&theirs.0, &theirs.1));
        let mut has = true;
        for _ in 0..runs {
            has = has && run(&worker, &tenure, visits);
        }
        let taken = taker.join().expect("no panic");
        assert_eq!(taken, !has, "one of them has the worker");
        let back = worker.back.lock().expect("no panic").len();
        assert_eq!(back, usize::from(taken), "a run that is away comes back, once");
    });
}

#[test]
fn one_thread_has_the_worker() {
    with_both(0, 1);
    with_both(0, 2);
}

#[test]
fn a_run_may_look_at_its_worker_while_it_is_taken() {
    with_both(1, 1);
}

#[test]
fn a_thread_that_has_come_by_keeps_its_worker() {
    loom::model(|| {
        let (worker, tenure) = (Worker::new(), Arc::new(Tenure::new()));
        worker.touch();
        tenure.begin_run();
        let seen = tenure.outside().expect("a task runs");
        let theirs = (worker.clone(), tenure.clone());
        let taker = thread::spawn(move || theirs.1.take(seen, || true));
        tenure.visit();
        let has = tenure.enter();
        if has {
            worker.touch();
            tenure.begin_run();
        }
        let taken = taker.join().expect("no panic");
        assert_eq!(taken, !has);
        assert!(!has || !tenure.take(seen, || true), "it has moved since it was seen");
    });
}

#[test]
fn what_a_run_has_left_is_not_handed_over() {
    loom::model(|| {
        let (worker, tenure) = (Worker::new(), Arc::new(Tenure::new()));
        let theirs = (worker.clone(), tenure.clone());
        let taker = thread::spawn(move || {
            let taken = take(&theirs.0, &theirs.1);
            assert!(!taken || !theirs.0.has_left(), "another run's answer was handed over");
            taken
        });
        tenure.begin_run();
        let left = tenure.enter();
        if left {
            worker.leave_something(true);
            tenure.leave();
        }
        let has = tenure.enter();
        if has && left {
            worker.leave_something(false);
        }
        assert!(has || !left, "the run that has left something keeps its worker");
        assert_eq!(taker.join().expect("no panic"), !has);
    });
}
