//! Watching waits: what each task waits for now, what it waited for lately, and the sums.
//!
//! ```text
//!   park, io_wait, a latch's slow path
//!      | begins                          | ends
//!      v                                 v
//!   the task's slot                  pending.rs ──► history.rs   rings of the latest
//!   (event, object, blocker, since)      |      └► profile.rs   exact sums, bounded (idle.rs: waits for a session's client)
//!                                        ├► trace.rs     if somebody traces the task
//!      ^ read by others: Task::waiting   └► set_observer called on the waiter's stack
//! ```
//! * Only real waits are watched: a fast path that finds its lock free or its page in memory writes
//!   nothing here. What is counted there ([`lwlock_acquisitions`]) is counted by thread, in plain
//!   stores to a cache line that nobody else writes (thread.rs).
//! * A wait that ends is put down in the same way; history and profile get dozens at once, and at the
//!   latest when somebody reads them (pending.rs).
//! * Between two statements a session waits for its client: `ClientRead`, though no thread is
//!   parked for it. That wait ends when a worker begins to run the session.
//! * [`crate::at_work`] names what a task does where single waits say too little; it is not a wait and
//!   not recorded.
//! * Who reads sums counts the waits that are still under way, too, from the slots (under_way.rs).
//! * `track_wait_timing = off` ends all of it: slots still show the event, but no clock is read,
//!   and nothing is recorded.

mod counts;
mod history;
mod idle;
mod kept;
mod meter;
mod object;
mod pending;
mod profile;
pub mod progress;
mod tasks;
mod thread;
mod trace;
pub mod turns;
mod under_way;

use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::{Duration, SystemTime};

use base::WaitEvent;
use base::settings::{live_int, setting};

use crate::clock::now_ns;

pub(crate) use counts::count_acquisition;
pub use counts::lwlock_acquisitions;
pub use history::{HistoryCursor, history_since};
pub(crate) use idle::IdleSums;
pub(crate) use kept::PackedWait;
pub(crate) use meter::Meter;
pub use meter::{Metered, add_metered, meter, metered};
pub use object::{WaitObject, Waiting};
pub use pending::drain_waits;
pub use profile::{
    CLASSES, ProfileKey, ProfileRow, WaitSums, finished_by_event, profile, reset_profile,
    sums_by_event,
};
pub use tasks::{TAG_MASK, task_by_id, tasks};
pub(crate) use tasks::{forget_task, list_task};
pub(crate) use thread::OfThread;
pub(crate) use trace::statement_changes;
pub use trace::{TraceEvent, TraceLog, TraceTarget, is_traced, trace, trace_plan};

/// A wait that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitRecord {
    /// [`crate::Task::id`] of who waited.
    pub task: u64,
    /// Its number to users; see [`crate::Task::pid`].
    pub pid: i32,
    /// The kind of wait.
    pub event: WaitEvent,
    /// For what.
    pub object: WaitObject,
    /// The task that held it when the wait began; 0: nobody or not known.
    pub blocker: u64,
    /// That one's number to users; 0: not known or gone.
    pub blocker_pid: i32,
    /// The statement that waited: its query identifier; 0: none.
    pub statement: u64,
    /// When it began, in nanoseconds on [`crate::clock`]'s scale.
    pub began_ns: u64,
    /// How long it took, in nanoseconds.
    pub duration_ns: u64,
}

impl WaitRecord {
    /// Whether it was a wait for work: a background thread's main loop, or a session without a
    /// statement.
    pub fn is_idle(&self) -> bool {
        is_idle(self.event)
    }

    /// When it began, by the wall clock.
    pub fn began(&self) -> SystemTime {
        wall_time(self.began_ns)
    }
}

/// Whether waits for this event are waits for work.
pub fn is_idle(event: WaitEvent) -> bool {
    event == WaitEvent::ClientClientRead || event.info().kind == "Activity"
}

/// The wall clock's time for one of [`crate::clock`].
pub fn wall_time(ns: u64) -> SystemTime {
    let age = Duration::from_nanos(now_ns().saturating_sub(ns));
    SystemTime::now().checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Called at the end of a wait, see [`set_observer`].
pub type Observer = fn(&WaitRecord);

static OBSERVER: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());

/// Has `observer` called at the end of every wait, on the stack of who waited (None: nobody). It
/// must not wait, and be quick: the waiter may hold latches.
pub fn set_observer(observer: Option<Observer>) {
    let pointer = observer.map_or(std::ptr::null_mut(), |f| f as *mut ());
    OBSERVER.store(pointer, Ordering::Release);
}

/// A wait is over.
#[inline]
pub(crate) fn finished(mut kept: PackedWait) {
    if kept.blocker != 0 {
        name_blocker(&mut kept);
    }
    pending::put(kept);
    if is_told() {
        tell(&kept.record());
    }
}

#[inline(never)]
fn name_blocker(kept: &mut PackedWait) {
    let pid = task_by_id(kept.blocker).map_or(0, |task| task.pid());
    kept.pids = kept::pids(kept.pids as i32, pid);
}

/// A session's wait for its client is over, which began then and took so long.
#[inline]
pub(crate) fn idle_finished(task: u64, pid: i32, sums: &IdleSums, began_duration: [u64; 2]) {
    sums.add(began_duration);
    let kept = PackedWait::idle(task, pid, began_duration);
    if live_int(setting::PG_WAIT_SAMPLING_HISTORY_SIZE) != 0 {
        pending::put(kept);
    }
    if is_told() {
        tell(&kept.record());
    }
}

/// Whether somebody wants to be told of waits.
#[inline]
fn is_told() -> bool {
    trace::any() || !OBSERVER.load(Ordering::Relaxed).is_null()
}

/// A session with this number ends.
pub(crate) fn session_ends(pid: i32, sums: &IdleSums) {
    profile::add_idle(pid, &sums.read());
}

#[cold]
fn tell(record: &WaitRecord) {
    trace::waited(record);
    let observer = OBSERVER.load(Ordering::Acquire);
    if !observer.is_null() {
        // SAFETY: only `set_observer` stores here, and only such functions.
        let observer = unsafe { std::mem::transmute::<*mut (), Observer>(observer) };
        observer(record);
    }
}
