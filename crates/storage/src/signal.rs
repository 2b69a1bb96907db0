//! Requests to the checkpointer.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use base::{Error, Result, WaitEvent, err};
use sched::{Condvar, Mutex, TaskRef};

#[cold]
pub(crate) fn stopping() -> Error {
    err!(ADMIN_SHUTDOWN, "the server is being stopped")
}

/// The flags that others raise for the checkpointer; no locks, so that the WAL writer may.
pub(crate) struct Signal {
    pub(crate) task: OnceLock<TaskRef>,
    /// It waits for something to be logged.
    pub(crate) idle: AtomicBool,
    /// The log has grown by as much as triggers a checkpoint.
    pub(crate) volume: AtomicBool,
    /// A log segment to be prepared; 0: none.
    pub(crate) segment: AtomicU64,
    stop: AtomicBool,
}

impl Signal {
    pub(crate) fn new() -> Signal {
        Signal {
            task: OnceLock::new(),
            idle: AtomicBool::new(false),
            volume: AtomicBool::new(false),
            segment: AtomicU64::new(0),
            stop: AtomicBool::new(false),
        }
    }

    pub(crate) fn wake(&self) {
        if let Some(task) = self.task.get() {
            task.unpark();
        }
    }

    /// Something was logged; `much`: so much that a checkpoint is due.
    pub(crate) fn logged(&self, much: bool) {
        let due = much && !self.volume.swap(true, Ordering::AcqRel);
        if due || (self.idle.load(Ordering::Acquire) && self.idle.swap(false, Ordering::AcqRel)) {
            self.wake();
        }
    }

    /// A segment will be needed soon.
    pub(crate) fn prepare_segment(&self, number: u64) {
        self.segment.store(number, Ordering::Release);
        self.wake();
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
        self.wake();
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    /// Whether anything that was said is still to be done. Waits for nothing.
    pub(crate) fn is_told(&self) -> bool {
        self.is_stopped()
            || self.volume.load(Ordering::SeqCst)
            || self.segment.load(Ordering::SeqCst) != 0
    }
}

/// Requests for checkpoints, and how far they are.
pub(crate) struct Requests {
    pub(crate) state: Mutex<Progress>,
    done: Condvar,
}

#[derive(Default)]
pub(crate) struct Progress {
    wanted: bool,
    started: u64,
    ended: u64,
    ended_thread: bool,
    error: Option<Error>,
}

impl Requests {
    pub(crate) fn new() -> Requests {
        let state = Mutex::new(WaitEvent::LWLockOther, Progress::default());
        Requests { state, done: Condvar::new() }
    }

    /// Asks for a checkpoint that begins from now on, and waits for its end.
    pub(crate) fn ask_and_wait(&self, signal: &Signal) -> Result<()> {
        let mut progress = self.state.lock();
        let target = progress.started + 1;
        progress.wanted = true;
        signal.wake();
        while progress.ended < target {
            if progress.ended_thread {
                return Err(stopping());
            }
            (progress, _) =
                self.done.wait(&self.state, progress, WaitEvent::IPCCheckpointDone, None);
        }
        match &progress.error {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.state.lock().wanted
    }

    pub(crate) fn begin(&self) {
        let mut progress = self.state.lock();
        progress.wanted = false;
        progress.started += 1;
    }

    pub(crate) fn end(&self, result: Result<()>) {
        let mut progress = self.state.lock();
        progress.ended = progress.started;
        progress.error = result.err();
        drop(progress);
        self.done.notify_all();
    }

    pub(crate) fn thread_ended(&self) {
        self.state.lock().ended_thread = true;
        self.done.notify_all();
    }
}
