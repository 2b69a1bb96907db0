//! Calls that block in the kernel for as long as a disk takes, made without keeping a worker from
//! others.
//!
//! ```text
//!   session's coroutine, on its worker        an I/O worker
//!   job on its stack ------ jobs -----------> makes the call
//!   parked, with the call's wait event        leaves the result in the job, says that it is done
//!   goes on, on the same worker <-- unpark --
//! ```
//!
//! * There are as many I/O workers as calls are blocked at a time, up to `io_max_workers`; beyond that
//!   calls queue. Calls that may take for ever ([`blocking`]) find or get one besides these, and so delay no
//!   others. A worker that has had nothing to do for a while ends. The last to become idle is the first to be
//!   used, so that few stay warm.
//! * While as many runs wait for pages ([`DiskWait`]) as [`limit_disk_waits`] allows, workers go on with runs that
//!   have begun and begin no others: each may hold pages, and more would leave no room for what is read.
//! * A job may be several calls ([`elsewhere`]): their waits are the I/O worker's, the wait for all of them the
//!   session's, and what they use counts as the session's.
//! * A job belongs to the I/O worker from when it is queued until `done`; the coroutine does not
//!   touch it between, nor go on before.
//! * On a thread that is not a worker's nothing is gained: the call is made right there. So it is while a
//!   panic unwinds, when nothing may park, and when the system has no thread left.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use base::WaitEvent;
use base::settings::{live_bool, live_int, setting};

use crate::clock::now_ns;
use crate::local::{Local, local};
use crate::observe::Waiting;
use crate::spin::SpinLock;
use crate::task::{self, Task, TaskRef, Wake};
use crate::{sys, worker};

/// Makes a call that may block for long, as on a pipe or a file that is cut; the worker runs others
/// meanwhile. The wait is not interruptible.
pub fn blocking<R: Send>(waiting: impl Into<Waiting>, call: impl FnOnce() -> R + Send) -> R {
    let local = local();
    if !may_park(local) {
        return task::io_wait(waiting, call);
    }
    let waiting = waiting.into();
    local.current().within_wait(waiting, |task| hand_over(waiting, task, Length::Any, call))
}

/// Makes a call that blocks for about as long as a disk takes to write a page: mostly not at all, but for
/// seconds while the system holds back those who write. The worker runs others meanwhile, if it has any.
pub fn blocking_on_disk<R: Send>(
    waiting: impl Into<Waiting>,
    call: impl FnOnce() -> R + Send,
) -> R {
    blocking_unless(waiting, &mut (), |()| None, |()| call())
}

/// Makes a call that consists of some that block as [`blocking_on_disk`] says, and are waits of their own: all
/// together elsewhere, which takes two wake-ups and not two for each. What it uses counts as the caller's.
pub fn elsewhere<R: Send>(waiting: impl Into<Waiting>, call: impl FnOnce() -> R + Send) -> R {
    let local = local();
    if !frees_worker(local) {
        return call();
    }
    let waiting = waiting.into();
    local.current().within_wait(waiting, |task| hand_over(waiting, task, Length::Disk, call))
}

/// Makes a call that blocks for about as long as a disk takes to read a page, or not at all: `attempt` is what
/// can be had at once. Both put into `place` what they read. The worker runs others meanwhile, if it has any.
pub fn blocking_unless<R: Send, T: Send + ?Sized>(
    waiting: impl Into<Waiting>,
    place: &mut T,
    attempt: impl FnOnce(&mut T) -> Option<R>,
    call: impl FnOnce(&mut T) -> R + Send,
) -> R {
    let local = local();
    if !frees_worker(local) {
        return task::io_wait(waiting, || call(place));
    }
    let waiting = waiting.into();
    local.current().within_wait(waiting, |task| {
        // In tests each read gives its worker away.
        let had = if live_bool(setting::DEBUG_TINY) { None } else { attempt(place) };
        had.unwrap_or_else(|| hand_over(waiting, task, Length::Disk, || call(place)))
    })
}

/// Fills `into` from this place of the file.
///
/// # Errors
/// As `FileExt::read_exact_at`.
pub fn read_exact_at(
    waiting: impl Into<Waiting>,
    file: &File,
    into: &mut [u8],
    at: u64,
) -> io::Result<()> {
    let cached = |into: &mut [u8]| match sys::read_cached(file, into, at) {
        Ok(count) if count == into.len() => Some(Ok(())),
        _ => None,
    };
    blocking_unless(waiting, into, cached, |into| file.read_exact_at(into, at))
}

/// Reads some bytes from this place of the file; 0 at its end.
///
/// # Errors
/// As `FileExt::read_at`.
pub fn read_at(
    waiting: impl Into<Waiting>,
    file: &File,
    into: &mut [u8],
    at: u64,
) -> io::Result<usize> {
    let cached = |into: &mut [u8]| sys::read_cached(file, into, at).ok().map(Ok);
    blocking_unless(waiting, into, cached, |into| file.read_at(into, at))
}

/// While it lives a run wants a page that is not in memory: waits for room, for the file, for the disk, for another
/// run that reads the same.
pub struct DiskWait(());

impl DiskWait {
    /// Begins to want.
    pub fn begin() -> DiskWait {
        DISK_WAITS.now.fetch_add(1, Ordering::Relaxed);
        DiskWait(())
    }

    /// Whether others than the caller, which waits itself, do so.
    pub fn are_others() -> bool {
        DISK_WAITS.now.load(Ordering::Relaxed) > 1
    }
}

impl Drop for DiskWait {
    fn drop(&mut self) {
        DISK_WAITS.now.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Says how many runs may wait for the disk before workers begin no more.
pub fn limit_disk_waits(most: usize) {
    DISK_WAITS.most.store(most, Ordering::Relaxed);
}

/// Whether as many wait as may.
pub(crate) fn is_full() -> bool {
    DISK_WAITS.now.load(Ordering::Relaxed) >= DISK_WAITS.most.load(Ordering::Relaxed)
}

/// Runs that wait for the disk. Workers look at it before each run: a line of its own.
#[repr(align(128))]
struct DiskWaits {
    now: AtomicUsize,
    most: AtomicUsize,
}

static DISK_WAITS: DiskWaits =
    DiskWaits { now: AtomicUsize::new(0), most: AtomicUsize::new(usize::MAX) };

/// Whether a call that is handed over frees a worker for somebody; in tests it always counts as so.
fn frees_worker(local: &Local) -> bool {
    may_park(local) && (!worker::is_alone(local) || live_bool(setting::DEBUG_TINY))
}

fn may_park(local: &Local) -> bool {
    local.on_coroutine() && !std::thread::panicking()
}

/// Has an I/O worker make the call; `task`, the running one, waits for it.
fn hand_over<R: Send>(
    waiting: Waiting,
    task: &Task,
    length: Length,
    call: impl FnOnce() -> R + Send,
) -> R {
    local().assert_may_wait();
    let (mut call, mut result) = (Some(call), None);
    let mut used = None;
    let mut run = || {
        result = call.take().map(|call| catch_unwind(AssertUnwindSafe(call)));
        used = task::take_usage();
    };
    let run: &mut (dyn FnMut() + Send) = &mut run;
    let done = AtomicBool::new(false);
    // SAFETY: a lifetime is all that changes. The job is used before it says that it is done, and this
    // function does not go on, not even by a panic, before that.
    let run = unsafe { std::mem::transmute::<_, &'static mut (dyn FnMut() + Send)>(run) };
    JOBS.add(Job { run, done: &raw const done, length, waiting, task: task::current() });
    task.sleep_until(|| done.load(Ordering::Acquire));
    if let Some(used) = used {
        task.add_usage(&used);
    }
    match result {
        Some(Ok(result)) => result,
        Some(Err(panic)) => resume_unwind(panic),
        None => unreachable!("a job that is done has been run"),
    }
}

/// How long a call may take.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Length {
    /// As long as a disk takes.
    Disk,
    /// As long as somebody wants.
    Any,
}

/// A call to be made for a parked task.
struct Job {
    run: &'static mut (dyn FnMut() + Send),
    done: *const AtomicBool,
    length: Length,
    waiting: Waiting,
    task: TaskRef,
}

// SAFETY: what `done` points to outlives the job (see `hand_over`), and is an atomic.
unsafe impl Send for Job {}

impl Job {
    /// The I/O worker is seen to wait for the same; the wait is the session's.
    fn make(self) {
        let Job { run, done, waiting, task, .. } = self;
        task::with_current(|worker| {
            worker.show_wait(waiting, now_ns());
            run();
            worker.hide_wait();
        });
        // SAFETY: see the field. After this store nothing of the job is used: it may be gone.
        unsafe { (*done).store(true, Ordering::Release) };
        task.unpark();
    }
}

static JOBS: Jobs = Jobs {
    state: SpinLock::new(JobQueue { waiting: VecDeque::new(), idle: Vec::new(), workers: 0 }),
};

/// Calls to be made, and who makes them.
struct Jobs {
    state: SpinLock<JobQueue>,
}

struct JobQueue {
    waiting: VecDeque<Job>,
    /// I/O workers that sleep and have not been chosen to wake.
    idle: Vec<TaskRef>,
    /// I/O workers, without those that make a call of any length.
    workers: usize,
}

/// The thread that is to make a job that has been added.
enum By {
    Idle(TaskRef),
    Another,
    WhoIsDoneFirst,
}

impl Jobs {
    fn add(&'static self, job: Job) {
        let most = if job.length == Length::Any { usize::MAX } else { most_workers() };
        let by = {
            let mut state = self.state.lock();
            state.waiting.push_back(job);
            match state.idle.pop() {
                Some(idle) => By::Idle(idle),
                None if state.workers < most => {
                    state.workers += 1;
                    By::Another
                }
                None => By::WhoIsDoneFirst,
            }
        };
        match by {
            By::Idle(worker) => worker.unpark(),
            By::Another => self.start(),
            By::WhoIsDoneFirst => {}
        }
    }

    /// Starts an I/O worker, which has been counted.
    fn start(&'static self) {
        let started = task::start_thread(Task::new("io worker"), STACK_BYTES, || self.work());
        if started.is_ok() {
            return;
        }
        let alone = {
            let mut state = self.state.lock();
            state.workers -= 1;
            state.workers == 0
        };
        while alone && let Some(job) = self.take() {
            job.make();
        }
    }

    fn take(&self) -> Option<Job> {
        self.state.lock().waiting.pop_front()
    }

    /// An I/O worker's whole life.
    fn work(&self) {
        while let Some(job) = self.next() {
            let counts = job.length == Length::Disk;
            job.make();
            if !counts {
                self.state.lock().workers += 1;
            }
        }
    }

    /// Waits for a job; None: this worker is one too many, and no longer counted.
    fn next(&self) -> Option<Job> {
        let this = task::current();
        loop {
            {
                let mut state = self.state.lock();
                if let Some(job) = state.waiting.pop_front() {
                    state.workers -= usize::from(job.length == Length::Any);
                    return Some(job);
                }
                state.idle.push(this.clone());
            }
            let until = Instant::now() + KEPT_IDLE;
            loop {
                let wake = task::park_uninterruptible(WaitEvent::ActivityIoWorkerMain, Some(until));
                let mut state = self.state.lock();
                let Some(place) = state.idle.iter().position(|t| t.id() == this.id()) else {
                    break; // chosen
                };
                if wake == Wake::TimedOut {
                    state.idle.remove(place);
                    state.workers -= 1;
                    return None;
                }
            }
        }
    }
}

/// How many calls may block at a time.
fn most_workers() -> usize {
    live_int(setting::IO_MAX_WORKERS).max(1) as usize
}

/// How long an I/O worker without work stays.
const KEPT_IDLE: Duration = Duration::from_secs(5);
/// Virtual size of its stack.
const STACK_BYTES: usize = 256 << 10;
