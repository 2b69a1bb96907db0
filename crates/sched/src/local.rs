//! The thread-local state of each pthread: its running task, and (on workers) its worker and the running
//! coroutine.
//!
//! A task that has started never changes threads, and pooled coroutines stay with their worker, so
//! an address of a thread-local that a compiler keeps across a suspension stays right. To not
//! depend on that alone, [`local`] is never inlined.

use std::cell::{Cell, RefCell};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::coroutine::Yielder;
use crate::observe::OfThread;
use crate::task::{Task, TaskRef};
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
    /// The worker of this thread; null elsewhere.
    pub worker: Cell<*const Worker>,
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

/// This thread's cells.
#[inline(never)]
pub(crate) fn local() -> &'static Local {
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

    /// The worker of this thread.
    #[inline]
    pub fn worker(&self) -> Option<&Worker> {
        // SAFETY: a worker clears the field before it goes.
        unsafe { self.worker.get().as_ref() }
    }

    /// Whether the running code is on a coroutine's stack.
    #[inline]
    pub fn on_coroutine(&self) -> bool {
        !self.yielder.get().is_null()
    }

    /// Which ring of the history the thread writes, on a scale without bound: workers count from
    /// their own numbers, so that they don't meet.
    pub fn ring_index(&self) -> usize {
        if let Some(worker) = self.worker() {
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
        assert!(
            self.on_coroutine() || self.worker.get().is_null(),
            "a worker's own stack must not park"
        );
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
