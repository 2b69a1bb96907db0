//! The thread-local state of each pthread: its running task, and (on workers) its worker and the running
//! coroutine.
//!
//! A suspended task may go on on another thread, when its worker's was held (`worker/watchdog.rs`). So nobody keeps a
//! [`Local`] across a call that may suspend, and [`local`] is neither inlined nor taken by the compiler for a
//! function whose second call answers as the first.

use std::cell::{Cell, RefCell};
use std::ops::Deref;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::coroutine::Yielder;
use crate::observe::OfThread;
use crate::task::{Task, TaskRef};
use crate::tenure::Tenure;
use crate::worker::Worker;

/// See the module. All fields are plain cells: only this thread reads them.
pub(crate) struct Local {
    /// The running task; null until the thread first needs one. PackedWait alive by [`OWN`] on plain
    /// threads, by the connection on workers.
    pub task: Cell<*const Task>,
    /// Calls of `check_interrupts` until it looks at the clock.
    pub countdown: Cell<u32>,
    /// When the running coroutine's slice ends; 0: not begun to count.
    pub slice_end: Cell<u64>,
    /// The thread's processor time when the running turn began; 0: it isn't measured.
    pub turn_began: Cell<u64>,
    /// The running coroutine's way out; null on a plain stack.
    pub yielder: Cell<*const Yielder>,
    /// The lowest usable address of the running stack; 0: not known yet.
    pub stack_limit: Cell<usize>,
    /// See [`crate::stack::stack_bytes`].
    pub stack_bytes: Cell<usize>,
    /// The same for the thread's own stack.
    pub native_limit: Cell<usize>,
    /// The worker of this thread; null elsewhere. It may have been taken from the thread.
    pub worker: Cell<*const Worker>,
    /// The thread's tenure of it.
    pub tenure: Cell<*const Tenure>,
    /// When that happened which the running task has just noted; 0: too long ago, or nothing. See
    /// [`crate::clock::recent_ns`].
    pub reading: Cell<u64>,
    /// See [`crate::clock::note_idle`]; 0: nothing.
    pub idle_since: Cell<u64>,
    /// The thread's own counts and notes; null until it makes some.
    pub own: Cell<*const OfThread>,
    /// A number for each thread that waits, given out at its first wait; 0: none yet.
    number: Cell<usize>,
    /// Spin locks held (debug builds).
    spins: Cell<i32>,
}

static NUMBERS: AtomicUsize = AtomicUsize::new(1);

thread_local! {
    static LOCAL: Local = const {
        Local {
            task: Cell::new(ptr::null()),
            countdown: Cell::new(CHECKS_BETWEEN_CLOCKS),
            slice_end: Cell::new(0),
            turn_began: Cell::new(0),
            yielder: Cell::new(ptr::null()),
            stack_limit: Cell::new(0),
            stack_bytes: Cell::new(0),
            native_limit: Cell::new(0),
            worker: Cell::new(ptr::null()),
            tenure: Cell::new(ptr::null()),
            reading: Cell::new(0),
            idle_since: Cell::new(0),
            own: Cell::new(ptr::null()),
            number: Cell::new(0),
            spins: Cell::new(0),
        }
    };
    /// The task of a plain thread.
    static OWN: RefCell<Own> = const { RefCell::new(Own(None)) };
}

/// Keeps a plain thread's task until the thread ends.
struct Own(Option<TaskRef>);

impl Drop for Own {
    fn drop(&mut self) {
        local().task.set(ptr::null());
    }
}

/// How many calls of `check_interrupts` may pass between two looks at the clock.
pub(crate) const CHECKS_BETWEEN_CLOCKS: u32 = 16;

/// This thread's cells. Not to be kept across a suspension.
#[inline(never)]
pub(crate) fn local() -> &'static Local {
    // Without a side effect two calls could become one, also across a suspension.
    // SAFETY: no instruction at all.
    unsafe { std::arch::asm!("", options(nostack, preserves_flags)) };
    // SAFETY: LOCAL has no destructor and lives as long as its thread; the reference is used by
    // this thread only (Local is not Sync, so it can't be sent away).
    LOCAL.with(|l| unsafe { &*ptr::from_ref(l) })
}

impl Local {
    /// The running task, made for the thread when it has none.
    #[inline]
    pub fn current(&self) -> &Task {
        if self.task.get().is_null() {
            adopt(Task::new("thread"));
        }
        // SAFETY: see the field: whoever set it keeps the task alive while it runs.
        unsafe { &*self.task.get() }
    }

    /// The worker of this thread, to be touched until the guard is dropped, before any suspension. None, too,
    /// when it has been taken from the thread.
    #[inline]
    pub fn worker(&self) -> Option<AtWorker<'_>> {
        // SAFETY: both live until the fields are cleared.
        let (worker, tenure) =
            unsafe { (self.worker.get().as_ref()?, self.tenure.get().as_ref()?) };
        if tenure.is_inside() {
            return Some(AtWorker { worker, entered: None });
        }
        tenure.enter().then_some(AtWorker { worker, entered: Some(tenure) })
    }

    /// Whether the thread serves a worker, or has done so when it began the task that it runs.
    #[inline]
    pub fn is_workers(&self) -> bool {
        !self.worker.get().is_null()
    }

    /// The running task has looked whether it is somebody else's turn.
    #[inline]
    pub fn note_visit(&self) {
        // SAFETY: it lives until the field is cleared.
        if let Some(tenure) = unsafe { self.tenure.get().as_ref() } {
            tenure.visit();
        }
    }

    /// The shared part of the thread's worker, of which anybody may ask.
    #[inline]
    pub fn worker_shared(&self) -> Option<&'static crate::worker::Shared> {
        // SAFETY: it lives until the field is cleared, and the part that is read never changes.
        unsafe { self.worker.get().as_ref() }.map(Worker::shared)
    }

    /// Whether the running code is on a coroutine's stack.
    #[inline]
    pub fn on_coroutine(&self) -> bool {
        !self.yielder.get().is_null()
    }

    /// Which ring of the history the thread writes, on a scale without bound: workers count from
    /// their own numbers, so that they don't meet.
    pub fn ring_index(&self) -> usize {
        if let Some(worker) = self.worker_shared() {
            return worker.index();
        }
        if self.number.get() == 0 {
            self.number.set(NUMBERS.fetch_add(1, Ordering::Relaxed));
        }
        self.number.get()
    }

    /// Panics where nothing may wait: on a worker's own stack, and (checked in debug builds) under
    /// a spin lock. Called before a waiter is known to others, since a panic would leave it there.
    pub fn assert_may_wait(&self) {
        debug_assert_eq!(self.spins.get(), 0, "a spin lock is held across a wait");
        assert!(self.on_coroutine() || !self.is_workers(), "a worker's own stack must not park");
    }
}

/// The thread is inside its worker; see [`Local::worker`].
pub(crate) struct AtWorker<'a> {
    worker: &'a Worker,
    /// To be left again.
    entered: Option<&'a Tenure>,
}

impl Deref for AtWorker<'_> {
    type Target = Worker;
    fn deref(&self) -> &Worker {
        self.worker
    }
}

impl Drop for AtWorker<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(tenure) = self.entered {
            tenure.leave();
        }
    }
}

/// The task that runs on a thread; see [`running`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Running {
    /// The task's `backend_type`.
    pub kind: &'static str,
    /// The session's number to users; 0: a background thread.
    pub pid: i32,
    /// Query identifier of its statement; 0: none.
    pub statement: u64,
}

/// The task that runs on this thread. For signal handlers too: it takes no lock and makes no task where there
/// is none.
pub fn running() -> Option<Running> {
    // SAFETY: whoever set the field keeps the task alive until it is changed, on this thread.
    let task = unsafe { local().task.get().as_ref() }?;
    Some(Running { kind: task.kind(), pid: task.pid(), statement: task.statement() })
}

/// Makes `task` the task of the calling plain thread.
pub(crate) fn adopt(task: TaskRef) {
    let pointer = Arc::as_ptr(&task);
    // A thread that is ending has no OWN any more; its task is then leaked rather than dangling.
    let mut task = Some(task);
    let kept = OWN.try_with(|own| own.borrow_mut().0 = task.take());
    if kept.is_err() {
        std::mem::forget(task);
    }
    local().task.set(pointer);
}

/// Counts spin locks in debug builds.
#[inline]
pub(crate) fn spin_held(change: i32) {
    if cfg!(debug_assertions) {
        let spins = &local().spins;
        spins.set(spins.get() + change);
    }
}
