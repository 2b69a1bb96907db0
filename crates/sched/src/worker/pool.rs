//! The pool of workers.

use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use base::settings::{live_enum, setting};
use base::{Error, Result};

use super::conn::{self, Conn};
use super::queue::{Item, Shared};
use super::run::Worker;
use super::{Source, register, threads};
use crate::clock::{self, NEVER};
use crate::local::local;
use crate::spin::SpinLock;
use crate::sys;
use crate::task::{TaskRef, with_current};

/// The workers' own, large stacks: virtual size.
const NATIVE_STACK_BYTES: usize = 64 << 20;

/// What the workers of one pool share.
pub(super) struct Pool {
    workers: Vec<&'static Shared>,
    /// Connections of the pool, in both session models.
    sources: AtomicUsize,
    shutdown: AtomicBool,
}

impl Pool {
    /// After shutdown, when the last connection has ended.
    pub fn is_over(&self) -> bool {
        self.shutdown.load(Ordering::SeqCst) && self.sources.load(Ordering::SeqCst) == 0
    }

    /// One connection less.
    pub fn source_ended(&self) {
        self.sources.fetch_sub(1, Ordering::SeqCst);
        if self.is_over() {
            self.workers.iter().for_each(|w| w.wake());
        }
    }

    /// Wakes one sleeping worker other than `but`.
    pub fn wake_idle(&self, but: &Shared) {
        let sleeps =
            |w: &&&'static Shared| !std::ptr::eq(**w, but) && w.sleeping.load(Ordering::SeqCst);
        if let Some(worker) = self.workers.iter().find(sleeps) {
            worker.wake();
        }
    }

    /// A ready connection of another worker than `thief`.
    pub fn steal(&self, thief: &Shared) -> Option<&'static Conn> {
        let n = self.workers.len();
        let own = thief.index.load(Ordering::Relaxed);
        (1..n).find_map(|i| self.workers[(own + i) % n].pop_ready())
    }

    /// The worker with the fewest connections.
    fn least_loaded(&self) -> Option<&'static Shared> {
        self.workers.iter().copied().min_by_key(|w| w.sources.load(Ordering::Relaxed))
    }
}

/// The pool of workers.
pub struct Workers {
    pool: Arc<Pool>,
    threads: SpinLock<Vec<JoinHandle<()>>>,
}

impl Workers {
    /// Starts `count` workers (0: one a core).
    ///
    /// # Errors
    /// When the system has no more descriptors or threads.
    pub fn start(count: usize) -> Result<Arc<Workers>> {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let count = if count == 0 { cores } else { count };
        let shared: std::io::Result<Vec<_>> = (0..count).map(Shared::open).collect();
        let pool = Arc::new(Pool {
            workers: shared.map_err(|e| Error::io("create an epoll set", &e))?,
            sources: AtomicUsize::new(0),
            shutdown: AtomicBool::new(false),
        });
        let workers = Arc::new(Workers { pool, threads: SpinLock::default() });
        for shared in &workers.pool.workers {
            let handle = start_thread(shared, Arc::clone(&workers.pool));
            match handle {
                Ok(handle) => workers.threads.lock().push(handle),
                Err(e) => {
                    workers.shutdown();
                    return Err(Error::io("start a worker thread", &e));
                }
            }
        }
        Ok(workers)
    }

    /// How many workers there are.
    pub fn count(&self) -> usize {
        self.pool.workers.len()
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
        self.pool.sources.fetch_add(1, Ordering::SeqCst);
        let result = if live_enum(setting::SESSION_MODEL) == 1 {
            threads::start(fd, source, &self.pool)
        } else {
            self.add_pooled(fd, source)
        };
        if result.is_err() {
            self.pool.source_ended();
        }
        result
    }

    fn add_pooled(&self, fd: RawFd, source: Arc<dyn Source>) -> Result<()> {
        let Some(home) = self.pool.least_loaded() else {
            return Err(Error::internal("there is no worker"));
        };
        home.sources.fetch_add(1, Ordering::Relaxed);
        let conn = Conn::open(fd, source, Arc::clone(&self.pool), Some(home));
        register(home.epoll, conn).map_err(|e| {
            home.sources.fetch_sub(1, Ordering::Relaxed);
            conn.task().set_link(None);
            conn.free();
            Error::io("poll a connection", &e)
        })
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
        match (local().worker(), conn.home()) {
            (Some(worker), _) => worker.arm(conn, at),
            (None, Some(home)) => home.inject(Item::timer(conn)),
            (None, None) => {}
        }
    }

    /// Ends the workers once their sources have ended. Does not wait for that; see
    /// [`Workers::join`].
    pub fn shutdown(&self) {
        self.pool.shutdown.store(true, Ordering::SeqCst);
        self.pool.workers.iter().for_each(|w| w.wake());
    }

    /// Waits for the workers' end; after [`Workers::shutdown`], outside of workers only.
    pub fn join(&self) {
        let threads = std::mem::take(&mut *self.threads.lock());
        for thread in threads {
            // A worker's panic has been printed; there is nothing left to wait for.
            let _ = thread.join();
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.shutdown();
    }
}

fn start_thread(shared: &'static Shared, pool: Arc<Pool>) -> std::io::Result<JoinHandle<()>> {
    let name = format!("worker {}", shared.index.load(Ordering::Relaxed));
    let builder = std::thread::Builder::new().name(name).stack_size(NATIVE_STACK_BYTES);
    builder.spawn(move || Worker::main(shared, pool))
}
