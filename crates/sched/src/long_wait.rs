//! Waits for locks: long, watched as one, and of interest to whoever is waited for.

use std::time::Instant;

use base::settings::{live_bool, setting};

use crate::clock::{self, NEVER, now_ns};
use crate::local::local;
use crate::observe::{Waiting, task_by_id};
use crate::task::{TaskRef, Wake};

/// A wait that takes several parks, because the waiter looks after something else in between (for
/// deadlocks, say). Others see one wait, and one is recorded, when it is over.
pub struct LongWait {
    waiting: Waiting,
    began_ns: u64,
    parked: bool,
}

impl LongWait {
    /// Begins with the first park.
    pub fn new(waiting: impl Into<Waiting>) -> LongWait {
        let began_ns = if live_bool(setting::TRACK_WAIT_TIMING) { now_ns() } else { 0 };
        LongWait { waiting: waiting.into(), began_ns, parked: false }
    }

    /// As [`crate::park`], behind this task (0: not known).
    pub fn park(&mut self, blocker: u64, deadline: Option<Instant>) -> Wake {
        self.parked = true;
        self.waiting = self.waiting.behind(blocker);
        let _awaited = Awaited::new(blocker);
        let deadline = deadline.map_or(NEVER, clock::to_ns);
        local().current().park(self.waiting, deadline, true, Some(self.began_ns))
    }
}

/// While it lives, somebody waits for the task: its session runs before others (see `worker::queue`).
struct Awaited(Option<TaskRef>);

impl Awaited {
    /// For the task with this id, if it is there.
    fn new(id: u64) -> Awaited {
        let task = if id == 0 { None } else { task_by_id(id) };
        if let Some(task) = &task {
            task.count_awaiting(1);
        }
        Awaited(task)
    }
}

impl Drop for Awaited {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.count_awaiting(-1);
        }
    }
}

impl Drop for LongWait {
    fn drop(&mut self) {
        if self.parked {
            let local = local();
            let task = local.current();
            task.show_wait(self.waiting, self.began_ns);
            task.end_wait();
        }
    }
}
