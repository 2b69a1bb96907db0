//! The lock's state machine under loom: every interleaving of a few threads, up to a bound on
//! preemptions.
//!
//! ```sh
//! RUSTFLAGS="--cfg loom" cargo test -p sched --release --test loom_lwlock
//! ```
//! Loom reports a lost wake-up as a deadlock, and two who are in at once as a race on the cell.
#![cfg(loom)]

use base::WaitEvent;
use base::settings::{Settings, Value, publish_live, setting};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use sched::RawLwLock;

/// A counter under the lock, which loom watches.
struct Guarded {
    lock: RawLwLock,
    value: UnsafeCell<u32>,
}

// SAFETY: the lock; whether it works is what loom finds out.
unsafe impl Sync for Guarded {}
// SAFETY: as above.
unsafe impl Send for Guarded {}

impl Guarded {
    fn new() -> Arc<Guarded> {
        let lock = RawLwLock::new(WaitEvent::LWLockOther);
        Arc::new(Guarded { lock, value: UnsafeCell::new(0) })
    }

    fn write(&self) {
        self.lock.lock_exclusive();
        // SAFETY: held exclusively.
        self.value.with_mut(|v| unsafe { *v += 1 });
        // SAFETY: held exclusively.
        unsafe { self.lock.unlock_exclusive() };
    }

    fn read(&self) -> u32 {
        self.lock.lock_shared();
        // SAFETY: held shared.
        let value = self.value.with(|v| unsafe { *v });
        // SAFETY: held shared.
        unsafe { self.lock.unlock_shared() };
        value
    }
}

/// Runs the threads' scripts (`r` and `w`) in all interleavings, with this `lwlock_shared_limit`.
fn check(limit: i64, preemptions: usize, scripts: &'static [&'static str]) {
    let mut settings = Settings::default();
    settings.set(setting::LWLOCK_SHARED_LIMIT, Value::Int(limit));
    publish_live(&settings);
    let began = std::time::Instant::now();
    let mut model = loom::model::Builder::new();
    // LOOM_MAX_PREEMPTIONS walks further.
    model.preemption_bound = model.preemption_bound.or(Some(preemptions));
    model.check(move || {
        let guarded = Guarded::new();
        let play = |guarded: &Guarded, script: &str| {
            script.chars().for_each(|step| match step {
                'w' => guarded.write(),
                _ => drop(guarded.read()),
            });
        };
        let threads: Vec<_> = scripts[1..]
            .iter()
            .map(|script| {
                let guarded = Arc::clone(&guarded);
                thread::spawn(move || play(&guarded, script))
            })
            .collect();
        play(&guarded, scripts[0]);
        threads.into_iter().for_each(|t| t.join().expect("no thread panics"));
        let writes = scripts.iter().flat_map(|s| s.chars()).filter(|c| *c == 'w').count();
        assert_eq!(guarded.read() as usize, writes);
        assert!(!guarded.lock.is_locked() && !guarded.lock.has_waiters());
    });
    println!("{scripts:?}, limit {limit}: {:?}", began.elapsed());
}

// One test: the limit is the process's.
#[test]
fn no_wakeup_is_lost_and_nobody_is_in_with_a_writer() {
    for limit in [0, 1, -1] {
        check(limit, 3, &["ww", "w"]);
        check(limit, 3, &["w", "rr"]);
        check(limit, 1, &["w", "w", "w"]);
        check(limit, 1, &["w", "r", "r"]);
        check(limit, 1, &["ww", "r", "w"]);
        check(limit, 1, &["wr", "rw", "r"]);
    }
}
