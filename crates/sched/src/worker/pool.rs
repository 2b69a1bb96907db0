//! The pool of workers: who is in it, where a connection goes, and how it grows and shrinks.
//!
//! A worker whose position is not below the wanted number is retired: it hands its idle
//! connections to others, finishes what it has begun, and ends.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use base::settings::{live_enum, setting};
use base::{Error, Result, err};

use super::conn::{self, Conn};
use super::listen::{Acceptor, Listening};
use super::queue::{Item, Shared};
use super::run::Worker;
use super::watchdog::{self, OnHeld, Watchdog, WorkerState};
use super::{Source, follow, register, threads};
use crate::clock::{self, NEVER};
use crate::local::local;
use crate::spin::SpinLock;
use crate::sys;
use crate::task::{TaskRef, with_current};

/// The workers' own, large stacks: virtual size.
pub(super) const NATIVE_STACK_BYTES: usize = 64 << 20;
/// The most workers that a pool can have.
const MOST_WORKERS: usize = 1024;

/// The state that the workers of one pool share.
pub(super) struct Pool {
    /// The workers by position; null where there is none.
    workers: [AtomicPtr<Shared>; MOST_WORKERS],
    /// No worker is at this position or above.
    bound: AtomicUsize,
    /// Workers at this position or above are retired.
    wanted: AtomicUsize,
    /// Connections of the pool, in both session models.
    sources: AtomicUsize,
    list: SpinLock<Vec<&'static Conn>>,
    shutdown: AtomicBool,
    listening: SpinLock<Vec<&'static Listening>>,
    /// Those that this process may use.
    processors: &'static [usize],
    /// Counts changes of `wanted` and `listening`.
    changes: AtomicUsize,
    /// Held while workers come and go and while a connection gets its first home: a worker that
    /// has been chosen does not leave. Nothing parks under it.
    membership: Mutex<Vec<JoinHandle<()>>>,
    /// Gives workers that are held to other threads.
    pub watchdog: Watchdog,
    /// Workers that have not ended.
    living: Mutex<usize>,
    /// The last one has.
    none_lives: Condvar,
}

impl Pool {
    fn new() -> Pool {
        Pool {
            workers: [const { AtomicPtr::new(std::ptr::null_mut()) }; MOST_WORKERS],
            bound: AtomicUsize::new(0),
            wanted: AtomicUsize::new(0),
            sources: AtomicUsize::new(0),
            list: SpinLock::default(),
            shutdown: AtomicBool::new(false),
            listening: SpinLock::default(),
            processors: sys::processors(),
            changes: AtomicUsize::new(1),
            membership: Mutex::default(),
            watchdog: Watchdog::default(),
            living: Mutex::new(0),
            none_lives: Condvar::new(),
        }
    }

    fn membership(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.membership.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn workers(&self) -> impl Iterator<Item = &'static Shared> {
        let slots = &self.workers[..self.bound.load(Ordering::SeqCst)];
        // SAFETY: the shared parts of workers are never freed.
        slots.iter().filter_map(|slot| unsafe { slot.load(Ordering::SeqCst).as_ref() })
    }

    /// Changes so far of what workers take notice of.
    pub fn changes(&self) -> usize {
        self.changes.load(Ordering::SeqCst)
    }

    /// The workers are to take notice.
    fn changed(&self) {
        self.changes.fetch_add(1, Ordering::SeqCst);
        self.workers().for_each(Shared::wake);
    }

    /// The listening sockets, in the order in which they came.
    pub fn listening(&self) -> Vec<&'static Listening> {
        self.listening.lock().clone()
    }

    /// After shutdown, when the last connection has ended.
    pub fn is_over(&self) -> bool {
        self.shutdown.load(Ordering::SeqCst) && self.sources.load(Ordering::SeqCst) == 0
    }

    /// Whether it is over and no worker is left.
    pub fn has_ended(&self) -> bool {
        self.is_over() && *self.living() == 0
    }

    fn living(&self) -> MutexGuard<'_, usize> {
        self.living.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A worker has ended.
    pub fn worker_ended(&self) {
        let mut living = self.living();
        *living -= 1;
        if *living == 0 {
            self.none_lives.notify_all();
            drop(living);
            self.watchdog.tell();
        }
    }

    /// Whether this worker is one too many.
    pub fn is_retired(&self, worker: &Shared) -> bool {
        worker.index.load(Ordering::Relaxed) >= self.wanted.load(Ordering::SeqCst)
    }

    /// Whether no connection has its home there.
    pub fn is_deserted(&self, worker: &Shared) -> bool {
        worker.sources.load(Ordering::SeqCst) == 0
    }

    /// A worker that may end leaves, unless it got something to do meanwhile: then false.
    pub fn leave(&self, worker: &Shared) -> bool {
        let _membership = self.membership();
        let over = self.is_over() || (self.is_retired(worker) && self.is_deserted(worker));
        if !over || !worker.close() {
            return false;
        }
        let index = worker.index.load(Ordering::Relaxed);
        self.workers[index].store(std::ptr::null_mut(), Ordering::SeqCst);
        true
    }

    /// One connection more.
    pub fn list(&self, conn: &'static Conn) {
        let mut list = self.list.lock();
        conn.place.store(list.len(), Ordering::Relaxed);
        list.push(conn);
    }

    /// One connection less, for the list.
    pub fn forget(&self, conn: &Conn) {
        let mut list = self.list.lock();
        let place = conn.place.load(Ordering::Relaxed);
        list.swap_remove(place);
        if let Some(moved) = list.get(place) {
            moved.place.store(place, Ordering::Relaxed);
        }
    }

    /// One connection less, for the count.
    pub fn source_ended(&self) {
        self.sources.fetch_sub(1, Ordering::SeqCst);
        if self.is_over() {
            self.workers().for_each(Shared::wake);
        }
    }

    /// Wakes one sleeping worker other than `but`.
    pub fn wake_idle(&self, but: &Shared) {
        let sleeps = |w: &&'static Shared| {
            !std::ptr::eq(*w, but) && w.sleeping.load(Ordering::SeqCst) && !self.is_retired(w)
        };
        if let Some(worker) = self.workers().find(sleeps) {
            worker.wake();
        }
    }

    /// A ready connection of another worker than `thief`.
    pub fn steal(&self, thief: &Shared) -> Option<&'static Conn> {
        // Thieves begin with different victims.
        let own = thief.index.load(Ordering::Relaxed);
        let before = self.workers().take(own);
        let mut others = self.workers().skip(own).chain(before);
        others.find_map(|w| if std::ptr::eq(w, thief) { None } else { w.pop_ready() })
    }

    /// The worker with the fewest connections, which then has one more; of several with as few, `near`.
    fn choose_home(&self, near: Option<&Shared>) -> Option<&'static Shared> {
        let _membership = self.membership();
        let is_near = |w: &Shared| near.is_some_and(|near| std::ptr::eq(near, w));
        let home = self
            .workers()
            .filter(|w| !self.is_retired(w))
            .min_by_key(|w| (w.sources.load(Ordering::Relaxed), !is_near(w)))?;
        home.sources.fetch_add(1, Ordering::SeqCst);
        Some(home)
    }

    /// A retired worker gives its idle connections away; called by that worker between two batches
    /// of events, so that no event that it has yet to look at names one of them.
    pub fn move_connections(&self, from: &'static Shared) {
        let here = |conn: &Conn| conn.home().is_some_and(|h| std::ptr::eq(h, from));
        let mut conns = self.list.lock().clone();
        conns.retain(|conn| here(conn) && conn.hold());
        for conn in conns {
            // Only the home changes a home, so it is still here.
            if let Some(to) = self.choose_home(None) {
                self.move_connection(conn, from, to);
            }
            if conn.release()
                && let Some(home) = conn.home()
            {
                home.inject(Item::start(conn));
            }
        }
    }

    /// The worker on this processor, if it may have a connection of `from`, and then has one more.
    pub fn adopt(&self, processor: usize, from: &Shared, era: u32) -> Option<&'static Shared> {
        let fits = |w: &&Shared| w.place.is(processor) && w.place.may_take(&from.place, era);
        self.workers().find(fits)?;
        let _membership = self.membership(); // it may have retired
        let to = self.workers().find(|w| fits(w) && !self.is_retired(w))?;
        to.sources.fetch_add(1, Ordering::SeqCst);
        to.place.take(&from.place);
        Some(to)
    }

    /// The worker where a connection's packets arrive, else the one that calls.
    fn near(&self, fd: RawFd) -> Option<&'static Shared> {
        let processor = match live_enum(setting::WORKER_AFFINITY) {
            follow::OFF => None,
            _ => sys::incoming_processor(fd),
        };
        let there = processor.and_then(|p| self.workers().find(|w| w.place.is(p)));
        there.or_else(|| local().worker_shared())
    }

    /// The processor that the worker at this position is to be bound to: there are as many workers as
    /// processors, or none has one of its own.
    pub fn processor_of(&self, index: usize) -> Option<usize> {
        let bound = live_enum(setting::WORKER_AFFINITY) == follow::BOUND
            && self.wanted.load(Ordering::Relaxed) == self.processors.len();
        if bound { self.processors.get(index).copied() } else { None }
    }

    /// If the new home can't take it, the old one keeps it.
    pub fn move_connection(&self, conn: &'static Conn, from: &'static Shared, to: &'static Shared) {
        // It fails only when the source has closed the socket: then there is nothing to poll.
        let _ = sys::epoll_ctl(from.epoll, libc::EPOLL_CTL_DEL, conn.fd(), 0, 0);
        conn.home.store(std::ptr::from_ref(to).cast_mut(), Ordering::SeqCst);
        let lost = if register(to.epoll, conn).is_ok() {
            from
        } else {
            conn.home.store(std::ptr::from_ref(from).cast_mut(), Ordering::SeqCst);
            let _ = register(from.epoll, conn);
            to
        };
        lost.sources.fetch_sub(1, Ordering::SeqCst);
    }

    /// Another worker looks after the deadlines that an ended one had noted.
    pub fn inherit_timers(&self, conns: Vec<&'static Conn>) {
        for conn in conns {
            self.look_at_deadlines(conn);
        }
    }

    /// Sees to it that some worker looks at the connection's deadlines then.
    fn arm(&self, conn: &'static Conn, at: u64) {
        match local().worker() {
            Some(worker) => worker.arm(conn, at),
            None => self.look_at_deadlines(conn),
        }
    }

    /// Has some worker look at the connection's deadlines.
    fn look_at_deadlines(&self, conn: &'static Conn) {
        let mut candidates = conn.home().into_iter().chain(self.workers());
        // When all have ended, so has the connection.
        let _ = candidates.find(|w| w.inject(Item::timer(conn)));
    }

    /// Starts a worker at each of these free positions.
    fn start(self: &Arc<Pool>, threads: &mut Vec<JoinHandle<()>>, index: usize) -> Result<()> {
        let io = |doing: &'static str| move |e: std::io::Error| Error::io(doing, &e);
        let shared = Shared::open(index).map_err(io("create an epoll set"))?;
        let builder = std::thread::Builder::new().name(format!("worker {index}"));
        let pool = Arc::clone(self);
        *self.living() += 1;
        let mut living = Living(Some(pool.clone()));
        let thread = builder
            .stack_size(NATIVE_STACK_BYTES)
            .spawn(move || {
                if Worker::main(shared, pool).is_err() {
                    // The worker lives on, with another thread.
                    living.0 = None;
                    drop(living);
                    watchdog::stand_by();
                }
            })
            .map_err(io("start a worker thread"))?;
        threads.push(thread);
        self.workers[index].store(std::ptr::from_ref(shared).cast_mut(), Ordering::SeqCst);
        Ok(())
    }

    fn resize(self: &Arc<Pool>, count: usize) -> Result<()> {
        let mut threads = self.membership();
        // Those that retire and those that were about to.
        self.wanted.store(count, Ordering::SeqCst);
        self.bound.fetch_max(count, Ordering::SeqCst);
        for index in 0..count {
            if self.workers[index].load(Ordering::SeqCst).is_null()
                && let Err(error) = self.start(&mut threads, index)
            {
                self.wanted.store(index, Ordering::SeqCst);
                self.changed();
                return Err(error);
            }
        }
        self.changed();
        Ok(())
    }
}

/// A worker that has not ended, on the thread that it was started with.
struct Living(Option<Arc<Pool>>);

impl Drop for Living {
    fn drop(&mut self) {
        if let Some(pool) = self.0.take() {
            pool.worker_ended();
        }
    }
}

/// The pool of workers.
pub struct Workers {
    pool: Arc<Pool>,
}

impl Workers {
    /// Starts `count` workers (0: one a core).
    ///
    /// # Errors
    /// When the system has no more descriptors or threads.
    pub fn start(count: usize) -> Result<Arc<Workers>> {
        let workers = Arc::new(Workers { pool: Arc::new(Pool::new()) });
        let started = workers.resize(count);
        watchdog::start(&workers.pool);
        if started.is_err() {
            workers.shutdown();
        }
        started.map(|()| workers)
    }

    /// How many workers there are to be.
    pub fn count(&self) -> usize {
        self.pool.wanted.load(Ordering::Relaxed)
    }

    /// How many workers there are just now, with those that are about to end.
    pub fn running(&self) -> usize {
        self.pool.workers().count()
    }

    /// Changes the number of workers (0: one a core). A worker that is one too many gives its
    /// connections to others as they become idle, and then ends.
    ///
    /// # Errors
    /// When the system has no more descriptors or threads; there are then as many as could be.
    pub fn resize(&self, count: usize) -> Result<()> {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let count = if count == 0 { cores } else { count };
        if count > MOST_WORKERS {
            return Err(err!(INVALID_PARAMETER_VALUE, "there can be {MOST_WORKERS} workers"));
        }
        self.pool.resize(count)
    }

    /// Connections that have not ended.
    pub fn sources(&self) -> usize {
        self.pool.sources.load(Ordering::Relaxed)
    }

    /// Gives a connected, non-blocking socket to the least loaded worker, or, when
    /// `session_model = thread`, to a thread of its own.
    ///
    /// # Errors
    /// When the system has no more descriptors or threads.
    pub fn add(&self, fd: RawFd, source: Arc<dyn Source>) -> Result<()> {
        self.add_until(fd, source, None)
    }

    /// The same; the source runs at this time unless it ran before, as after [`Workers::wake_at`].
    ///
    /// # Errors
    /// As [`Workers::add`].
    pub fn add_until(
        &self,
        fd: RawFd,
        source: Arc<dyn Source>,
        wake_at: Option<Instant>,
    ) -> Result<()> {
        self.pool.sources.fetch_add(1, Ordering::SeqCst);
        let wake_at = wake_at.map_or(NEVER, clock::to_ns);
        let result = if live_enum(setting::SESSION_MODEL) == 1 {
            threads::start(fd, source, &self.pool, wake_at)
        } else {
            self.add_pooled(fd, source, wake_at)
        };
        if result.is_err() {
            self.pool.source_ended();
        }
        result
    }

    fn add_pooled(&self, fd: RawFd, source: Arc<dyn Source>, wake_at: u64) -> Result<()> {
        let near = self.pool.near(fd);
        let Some(home) = self.pool.choose_home(near) else {
            return Err(Error::internal("there is no worker"));
        };
        let conn = Conn::open(fd, source, Arc::clone(&self.pool), Some(home));
        self.pool.list(conn);
        if let Err(error) = register(home.epoll, conn) {
            self.pool.forget(conn);
            conn.task().set_link(None);
            conn.free();
            home.sources.fetch_sub(1, Ordering::SeqCst);
            return Err(Error::io("poll a connection", &error));
        }
        if wake_at != NEVER {
            // Before anybody runs it and perhaps wants another time.
            conn.wake_at.store(wake_at, Ordering::SeqCst);
            self.pool.arm(conn, wake_at);
        }
        if conn.release() {
            home.inject(Item::start(conn));
        } else if self.pool.is_retired(home) {
            home.wake(); // it retired while this one came
        }
        Ok(())
    }

    /// Has the workers accept from a listening socket that does not block. Its descriptor stays open for
    /// as long as the process lives.
    pub fn listen(&self, fd: RawFd, acceptor: Box<dyn Acceptor>) {
        self.pool.listening.lock().push(Listening::open(fd, acceptor));
        self.pool.changed();
    }

    /// Runs the source soon, though its socket may not be ready (terminate, time-outs, notifies).
    pub fn wake(&self, task: &TaskRef) {
        conn::nudge(task);
    }

    /// Runs the source at this time unless it ran before (idle time-outs); None cancels.
    pub fn wake_at(&self, task: &TaskRef, at: Option<Instant>) {
        let Some(conn) = task.link() else { return };
        let at = at.map_or(NEVER, clock::to_ns);
        conn.wake_at.store(at, Ordering::SeqCst);
        if at == NEVER {
            return;
        }
        if !conn.is_pooled() {
            // The session's own thread reads wake_at before it polls.
            if let Ok(wakeup) = task.eventfd()
                && !with_current(|t| std::ptr::eq(t, &raw const **task))
            {
                sys::eventfd_write(wakeup);
            }
            return;
        }
        self.pool.arm(conn, at);
    }

    /// Ends the workers once their sources have ended. Does not wait for that; see
    /// [`Workers::join`].
    pub fn shutdown(&self) {
        self.pool.shutdown.store(true, Ordering::SeqCst);
        self.pool.workers().for_each(Shared::wake);
    }

    /// Says who is to hear of workers that are held; once.
    pub fn on_held(&self, hear: OnHeld) {
        self.pool.watchdog.on_held(hear);
    }

    /// The state of each worker.
    pub fn states(&self) -> Vec<WorkerState> {
        self.pool.workers().map(WorkerState::of).collect()
    }

    /// Waits for the workers' end; after [`Workers::shutdown`], outside of workers only.
    pub fn join(&self) {
        let mut living = self.pool.living();
        while *living > 0 {
            let waited = self.pool.none_lives.wait(living);
            living = waited.unwrap_or_else(PoisonError::into_inner);
        }
        drop(living);
        let threads = std::mem::take(&mut *self.pool.membership());
        // Threads that were held do not end. A worker's panic has been printed; there is nothing left to wait for.
        threads.into_iter().filter(JoinHandle::is_finished).for_each(|thread| _ = thread.join());
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.shutdown();
    }
}
