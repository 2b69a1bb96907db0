//! The workers of subscriptions, and how far they have come.

use std::collections::HashMap;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use base::WaitEvent;
use sched::{Mutex, TaskRef};

/// Time after which a worker that failed begins anew.
const RETRY: Duration = Duration::from_secs(5);

/// A database's oid and a subscription's.
pub type Key = (u32, u32);

/// A worker that runs, or has ended.
struct Worker {
    task: TaskRef,
    thread: JoinHandle<()>,
}

/// How far a worker has come, for `pg_stat_subscription`.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Its process id.
    pub pid: i32,
    /// The last position that was received.
    pub received: u64,
    /// When the last message was sent and received.
    pub times: (i64, i64),
    /// The position up to which the publisher knows that changes were applied.
    pub reported: u64,
    /// When that was reported.
    pub reported_at: i64,
    /// Errors since the server started: of applying, of copying.
    pub errors: (u64, u64),
    /// The name of the subscription.
    pub name: String,
}

/// The server's workers.
pub struct Workers {
    running: Mutex<HashMap<Key, Worker>>,
    progress: Mutex<HashMap<Key, Progress>>,
    failed: Mutex<HashMap<Key, Instant>>,
}

impl Default for Workers {
    fn default() -> Workers {
        let event = WaitEvent::LWLockOther;
        Workers {
            running: Mutex::new(event, HashMap::new()),
            progress: Mutex::new(event, HashMap::new()),
            failed: Mutex::new(event, HashMap::new()),
        }
    }
}

impl Workers {
    /// How far all of them have come, by database and subscription.
    pub fn progress(&self) -> Vec<(Key, Progress)> {
        self.progress.lock().iter().map(|(key, progress)| (*key, progress.clone())).collect()
    }

    /// Notes something about a worker's progress.
    pub fn note(&self, key: Key, f: impl FnOnce(&mut Progress)) {
        f(self.progress.lock().entry(key).or_default());
    }

    /// Whether a worker is to be begun: none runs, and none has failed a moment ago.
    pub fn may_begin(&self, key: Key) -> bool {
        let mut running = self.running.lock();
        match running.get(&key) {
            Some(worker) if !worker.thread.is_finished() => return false,
            Some(_) => drop(running.remove(&key)),
            None => {}
        }
        drop(running);
        self.failed.lock().get(&key).is_none_or(|at| at.elapsed() >= RETRY)
    }

    /// Notes a worker that has begun.
    pub fn begun(&self, key: Key, task: TaskRef, thread: JoinHandle<()>) {
        self.running.lock().insert(key, Worker { task, thread });
    }

    /// Notes that a worker has failed.
    pub fn failed(&self, key: Key) {
        self.failed.lock().insert(key, Instant::now());
    }

    /// Ends the worker of a subscription and waits for it; it is not begun again for a moment.
    pub fn stop(&self, key: Key) {
        self.failed.lock().insert(key, Instant::now());
        let worker = self.running.lock().remove(&key);
        if let Some(worker) = worker {
            worker.task.interrupt(sched::Interrupt::Terminate);
            // A panic was logged.
            let _ = worker.thread.join();
        }
    }

    /// Ends all workers.
    pub fn stop_all(&self) {
        let keys: Vec<Key> = self.running.lock().keys().copied().collect();
        keys.into_iter().for_each(|key| self.stop(key));
    }
}
