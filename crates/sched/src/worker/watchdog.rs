//! The watchdog: a worker that a run holds is given to another thread.
//!
//! Code looks for interrupts, and with that lets others have their turns, in every loop that may be long. Where it does
//! not (a loop of a library, a call that blocks in the system), all sessions of the worker would wait for one. So a
//! thread of each pool looks at the workers several times in each `worker_hold_limit`:
//!
//! ```text
//!   thread A    worker 0: run of x ───────── no visit ─────────────────┐ suspended, or done ─▶ stands by
//!   watchdog                          sees it for worker_hold_limit     │ order Back
//!   thread B    stands by ──────────────────────▶ takes worker 0: epoll set, queues, timers, ready and
//!                                                 suspended runs of all others … takes x in, too
//! ```
//! * What is handed over is the [`Worker`] as a whole: others know it by its [`Shared`] part, which stays the same, so
//!   that no connection, timer or wake-up learns of the change. Only the run at hand stays with the thread that is
//!   held, on that one's processor time: it is away ([`Away`]), with its coroutine, and all that it holds (latches, pins).
//! * Who has the worker is decided by [`Tenure::take`]. The thread that is held learns of it when it next wants to touch
//!   the worker, and then goes on with the run until that suspends (at once, if it holds no latch) or ends. It
//!   sends the run back by an order and stands by for the next worker that is held.
//! * A run that is away may be woken before it is back: the wake-up is noted, and takes effect then.
//! * Threads that were held never end, so that an address of one of their thread-locals, which compiled code might still
//!   have, stays one of memory that is there.
//! * While nothing runs the watchdog sleeps: a worker that comes out of its own sleep rouses it.
//!
//! The list of all that moves between threads, and why it may: `docs/decisions/0039-held-workers-are-replaced.md`.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use base::WaitEvent;
use base::settings::{live_int, setting};

use super::conn::Conn;
use super::pool::Pool;
use super::queue::Shared;
use super::run::Worker;
use crate::clock::now_ns;
use crate::spin::SpinLock;
use crate::sys;
use crate::task::{self, TaskRef};
use crate::tenure::Tenure;

/// Looks in each `worker_hold_limit`.
const LOOKS: u64 = 10;
/// After so many looks at which all workers slept the watchdog sleeps, too.
const QUIET_LOOKS: u32 = 100;
/// The watchdog looks at least so often whether it has been switched on.
const OFF: Duration = Duration::from_secs(1);

/// The thread has lost its worker to another: it touches nothing of it any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lost;

/// A worker that has just been taken from the thread that a run held.
pub struct Held {
    /// The worker's position.
    pub worker: usize,
    /// The task whose run holds the thread.
    pub task: TaskRef,
    /// For how long it had been seen to do so.
    pub time: Duration,
}

/// Is told of each worker that was held, on the watchdog's thread.
pub type OnHeld = Box<dyn Fn(&Held) + Send + Sync>;

/// A worker as others may see it.
#[derive(Clone, Copy, Debug)]
pub struct WorkerState {
    /// Its position.
    pub index: usize,
    /// Connections in its epoll set.
    pub connections: usize,
    /// Connections that wait to start.
    pub ready: usize,
    /// It has nothing to do.
    pub sleeps: bool,
    /// Runs that hold threads which had the worker before.
    pub away: usize,
    /// How often it was given to another thread.
    pub replacements: u64,
    /// The longest that a run was away from it.
    pub longest: Duration,
}

/// How often a worker was held, and for how long.
#[derive(Default)]
pub(crate) struct HeldCounts {
    away: AtomicUsize,
    replacements: AtomicU64,
    longest_ns: AtomicU64,
}

impl HeldCounts {
    /// For a new worker.
    pub fn reset(&self) {
        self.replacements.store(0, Ordering::Relaxed);
        self.longest_ns.store(0, Ordering::Relaxed);
    }
}

impl WorkerState {
    pub(super) fn of(worker: &Shared) -> WorkerState {
        WorkerState {
            index: worker.index.load(Ordering::Relaxed),
            connections: worker.sources.load(Ordering::Relaxed),
            ready: worker.ready_len(),
            sleeps: worker.sleeping.load(Ordering::Relaxed),
            away: worker.held.away.load(Ordering::Relaxed),
            replacements: worker.held.replacements.load(Ordering::Relaxed),
            longest: Duration::from_nanos(worker.held.longest_ns.load(Ordering::Relaxed)),
        }
    }
}

/// A worker's runs that are away.
#[derive(Default)]
pub(super) struct Aways(RefCell<Vec<Away>>);

/// A run that is with a thread which has lost its worker.
struct Away {
    conn: &'static Conn,
    /// When it began to hold that thread.
    since_ns: u64,
    /// Its park, which the worker has yet to hear of, is over.
    woken: bool,
}

impl Aways {
    pub fn begin(&self, conn: &'static Conn, since_ns: u64, counts: &HeldCounts) {
        self.0.borrow_mut().push(Away { conn, since_ns, woken: false });
        counts.away.fetch_add(1, Ordering::Relaxed);
        counts.replacements.fetch_add(1, Ordering::Relaxed);
    }

    /// If the run of this connection is away: notes that it may go on.
    #[inline]
    pub fn note_wake_up(&self, conn: &Conn) -> bool {
        !self.0.borrow().is_empty() && self.wake(conn)
    }

    #[cold]
    fn wake(&self, conn: &Conn) -> bool {
        let mut all = self.0.borrow_mut();
        let away = all.iter_mut().find(|away| std::ptr::eq(away.conn, conn));
        away.map(|away| away.woken = true).is_some()
    }

    /// It is back; whether it has been woken.
    pub fn end(&self, conn: &Conn, counts: &HeldCounts) -> bool {
        let mut all = self.0.borrow_mut();
        let Some(at) = all.iter().position(|away| std::ptr::eq(away.conn, conn)) else {
            unreachable!("a run that comes back was away")
        };
        let away = all.swap_remove(at);
        counts.away.fetch_sub(1, Ordering::Relaxed);
        counts.longest_ns.fetch_max(now_ns().saturating_sub(away.since_ns), Ordering::Relaxed);
        away.woken
    }
}

/// A pool's.
#[derive(Default)]
pub(super) struct Watchdog {
    watched: SpinLock<Vec<Watched>>,
    held: SpinLock<Vec<Held>>,
    on_held: OnceLock<OnHeld>,
    task: OnceLock<TaskRef>,
    /// It sleeps until it is roused.
    sleeps: AtomicBool,
}

/// A worker, who has it, and where that thread was seen last.
struct Watched {
    worker: Arc<Worker>,
    tenure: Arc<Tenure>,
    /// The answer of [`Tenure::outside`]; None: the thread was inside.
    seen: Option<u64>,
    /// When it first said that.
    since_ns: u64,
    /// A thread is about to take it.
    asked: bool,
}

impl Watched {
    /// Looks where the thread is; the order to take its worker, if it has been there for so long.
    fn look(&mut self, now: u64, limit_ns: u64) -> Option<Order> {
        let at = self.tenure.outside();
        if at.is_none() || at != self.seen {
            (self.seen, self.since_ns) = (at, now);
            return None;
        }
        if self.asked || now - self.since_ns < limit_ns {
            return None;
        }
        self.asked = true;
        let (worker, tenure) = (self.worker.clone(), self.tenure.clone());
        Some(Order { worker, tenure, seen: at?, since_ns: self.since_ns })
    }
}

impl Watchdog {
    /// Has an eye on a worker from now on.
    pub fn watch(&self, worker: &Arc<Worker>, tenure: &Arc<Tenure>) {
        let (worker, tenure) = (worker.clone(), tenure.clone());
        self.watched.lock().push(Watched { worker, tenure, seen: None, since_ns: 0, asked: false });
        self.rouse();
    }

    /// The worker has ended.
    pub fn forget(&self, worker: &Arc<Worker>) {
        let gone = {
            let mut watched = self.watched.lock();
            let at = watched.iter().position(|w| Arc::ptr_eq(&w.worker, worker));
            at.map(|at| watched.swap_remove(at))
        };
        drop(gone);
        self.tell();
    }

    /// Says who is to hear of workers that are held.
    pub fn on_held(&self, hear: OnHeld) {
        let _ = self.on_held.set(hear); // the first one counts
    }

    /// Somebody has come out of its sleep.
    #[inline]
    pub fn rouse(&self) {
        if self.sleeps.load(Ordering::SeqCst) {
            self.tell();
        }
    }

    /// There is something to see.
    #[cold]
    pub fn tell(&self) {
        if let Some(task) = self.task.get() {
            task.unpark();
        }
    }

    /// An order has been carried out, or could not be.
    fn answered(&self, order: &Order, taken: Option<&Arc<Tenure>>) {
        let mut watched = self.watched.lock();
        if let Some(w) = watched.iter_mut().find(|w| Arc::ptr_eq(&w.worker, &order.worker)) {
            w.asked = false;
            if let Some(tenure) = taken {
                (w.tenure, w.seen) = (tenure.clone(), None);
            }
        }
    }

    /// Looks at all workers; whether all of them sleep.
    fn look(&self, limit_ns: u64) -> bool {
        let now = now_ns();
        let mut quiet = true;
        let orders: Vec<Order> = {
            let mut watched = self.watched.lock();
            quiet &= watched.iter().all(|w| w.worker.shared.sleeping.load(Ordering::SeqCst));
            watched.iter_mut().filter_map(|w| w.look(now, limit_ns)).collect()
        };
        for order in orders {
            if let Err(order) = order.send() {
                self.answered(&order, None); // the next look tries again
            }
        }
        quiet
    }

    fn report(&self) {
        let held = std::mem::take(&mut *self.held.lock());
        if let Some(hear) = self.on_held.get() {
            held.iter().for_each(hear);
        }
    }

    /// Sleeps until a worker does not.
    fn sleep(&self) {
        self.sleeps.store(true, Ordering::SeqCst);
        // A worker says that it does not sleep and then looks whether the watchdog does: one sees the other.
        let quiet = {
            let watched = self.watched.lock();
            watched.iter().all(|w| w.worker.shared.sleeping.load(Ordering::SeqCst))
        };
        if quiet {
            task::park_uninterruptible(WaitEvent::ActivityWorkerWatchdogMain, None);
        }
        self.sleeps.store(false, Ordering::SeqCst);
    }
}

/// Starts a pool's watchdog, which ends with the pool.
pub(super) fn start(pool: &Arc<Pool>) {
    sys::prepare_fences();
    let own = Arc::clone(pool);
    task::spawn_thread("worker watchdog", move || main(&own));
}

fn main(pool: &Pool) {
    let dog = &pool.watchdog;
    dog.task.get_or_init(task::current);
    let mut quiet_looks = 0;
    while !pool.has_ended() {
        let limit_ms = live_int(setting::WORKER_HOLD_LIMIT).unsigned_abs();
        let mut pause = OFF;
        if limit_ms > 0 {
            let limit_ns = limit_ms.saturating_mul(1_000_000);
            quiet_looks = if dog.look(limit_ns) { quiet_looks + 1 } else { 0 };
            pause = pause.min(Duration::from_nanos(limit_ns / LOOKS));
        }
        dog.report();
        if quiet_looks >= QUIET_LOOKS {
            dog.sleep();
            quiet_looks = 0;
        } else {
            let until = Instant::now() + pause;
            task::park_uninterruptible(WaitEvent::ActivityWorkerWatchdogMain, Some(until));
        }
    }
}

/// To take a worker from a thread that was seen in one place for too long.
struct Order {
    worker: Arc<Worker>,
    tenure: Arc<Tenure>,
    seen: u64,
    since_ns: u64,
}

/// A thread that waits for an order.
struct StandIn {
    order: SpinLock<Option<Order>>,
    /// Counts orders.
    orders: AtomicU32,
}

/// Those without one; the last to come is the first to go.
static STAND_INS: SpinLock<Vec<&'static StandIn>> = SpinLock::new(Vec::new());

impl Order {
    /// Gives it to a thread; back, if the system has none.
    fn send(self) -> Result<(), Order> {
        let idle = STAND_INS.lock().pop();
        let Some(stand_in) = idle.or_else(StandIn::start) else { return Err(self) };
        *stand_in.order.lock() = Some(self);
        stand_in.orders.fetch_add(1, Ordering::SeqCst);
        sys::futex_wake(&stand_in.orders);
        Ok(())
    }

    /// Takes the worker and serves it, unless its thread has come by meanwhile.
    fn carry_out(self) {
        let dog = &self.worker.pool.watchdog;
        // An answer that was left, and no run has ended yet, would be taken for the next run's.
        let can = || !self.worker.outbox.is_being_filled();
        if !self.tenure.take(self.seen, can) {
            return dog.answered(&self, None);
        }
        let tenure = Arc::new(Tenure::new());
        dog.answered(&self, Some(&tenure));
        if let Some(conn) = self.worker.take_over(self.since_ns) {
            let time = Duration::from_nanos(now_ns().saturating_sub(self.since_ns));
            dog.held.lock().push(Held { worker: self.worker.index(), task: conn.task_ref(), time });
            dog.tell();
        }
        let pool = self.worker.pool.clone();
        if Worker::serve(&self.worker, &tenure).is_ok() {
            drop(self);
            pool.worker_ended();
        }
    }
}

impl StandIn {
    fn new() -> &'static StandIn {
        // They are never freed: their threads do not end.
        Box::leak(Box::new(StandIn { order: SpinLock::new(None), orders: AtomicU32::new(0) }))
    }

    /// A new one, which has a thread, and is not among those without an order.
    fn start() -> Option<&'static StandIn> {
        let stand_in = StandIn::new();
        let builder = std::thread::Builder::new().name("worker stand-in".to_owned());
        let builder = builder.stack_size(super::pool::NATIVE_STACK_BYTES);
        builder.spawn(|| stand_in.serve()).ok().map(|_| stand_in)
    }

    fn serve(&'static self) -> ! {
        let mut orders = 0;
        loop {
            while self.orders.load(Ordering::SeqCst) == orders {
                sys::futex_wait(&self.orders, orders, None);
            }
            orders = orders.wrapping_add(1);
            let order = self.order.lock().take();
            if let Some(order) = order {
                order.carry_out();
            }
            STAND_INS.lock().push(self);
        }
    }
}

/// A thread that has lost its worker waits for others.
pub(super) fn stand_by() -> ! {
    let stand_in = StandIn::new();
    STAND_INS.lock().push(stand_in);
    stand_in.serve()
}
