//! A worker's own side: its loop, and the switches into and out of coroutines.
//!
//! The loop is a thread's for as long as that has the worker. When a run was held for so long that another thread has taken
//! the worker ([`super::watchdog`]), the switch into that run is where the thread learns of it: it sends the run
//! back and touches nothing of the worker any more. So whatever may switch answers [`Lost`] then.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::settings::{live_enum, live_int, setting};

use super::conn::{Conn, HANGUP, READABLE, WOKEN, WRITABLE};
use super::follow;
use super::listen::{ListenerSet, Listening};
use super::outbox::Outbox;
use super::pool::Pool;
use super::queue::{Item, Order, Shared};
use super::threads;
use super::timers::Timers;
use super::watchdog::{Aways, Lost};
use crate::blocking;
use crate::clock::{NEVER, now_ns, shared_ns};
use crate::coroutine::{Coro, Step};
use crate::local::{CHECKS_BETWEEN_CLOCKS, Local, local};
use crate::observe::turns;
use crate::sys;
use crate::tenure::Tenure;

/// Events taken by one epoll_wait.
const BATCH: usize = 256;
/// Switches into coroutines between two looks at epoll while there is work.
const SWITCHES_BETWEEN_POLLS: usize = 32;
/// Coroutines that a worker keeps for ever.
const KEPT_COROUTINES: usize = 16;
/// How often a worker gives back half of the coroutines that it did not need since the last time.
const TRIM_NS: u64 = 1_000_000_000;
/// Suspended runs for which a worker looks for work for one `worker_spin_time` more before it sleeps.
const SUSPENDED_A_LOOK: usize = 8;
/// Most of these.
const MOST_LOOKS: u64 = 4;
/// Ready connections beyond the next one from which on an idle worker is woken to take some.
const READY_TO_SHARE: usize = 4;

/// A worker. Everything in cells belongs to the thread that serves it, while that is inside (see [`Tenure`]).
pub(crate) struct Worker {
    pub(super) shared: &'static Shared,
    pub(super) pool: Arc<Pool>,
    /// Coroutines whose park is over.
    resumable: RefCell<VecDeque<&'static Conn>>,
    /// Coroutines whose slice is over.
    yielded: RefCell<VecDeque<&'static Conn>>,
    /// When one of these last gave the worker back.
    background_ended: Cell<u64>,
    idle: RefCell<Vec<Coro>>,
    /// The fewest coroutines that were idle since the last trim, which was at `trimmed_ns`.
    least_idle: Cell<usize>,
    trimmed_ns: Cell<u64>,
    timers: Timers,
    /// Ended connections of this home, freed between two batches of events.
    ended: RefCell<Vec<&'static Conn>>,
    /// Answers to be sent.
    pub(super) outbox: Outbox,
    /// The connection whose run is at hand, or was the last.
    pub(super) running: Cell<Option<&'static Conn>>,
    /// Runs that other threads have, which lost the worker while they ran them.
    pub(super) away: Aways,
    /// The system's number of the thread that serves it.
    pub(super) thread: Cell<i32>,
    /// Scratch space, kept for its memory.
    items: RefCell<Vec<Item>>,
    claimed: RefCell<Vec<&'static Conn>>,
    events: RefCell<Vec<libc::epoll_event>>,
    /// Suspended coroutines, and runs that are away.
    pub(super) suspended: Cell<usize>,
    listeners: ListenerSet,
    /// The pool's changes that this worker knows of.
    changes: Cell<usize>,
    /// The processor that it is bound to.
    bound: Cell<Option<usize>>,
}

// SAFETY: the cells are used by one thread at a time: by the one that serves the worker, which is handed over with a
// release and an acquire (see `Tenure`). What they hold belongs to no thread: sockets, connections, and coroutines,
// which are `Send` as `Conn` says; but for the ring, which each thread makes anew.
unsafe impl Send for Worker {}
// SAFETY: as above; others than that thread use `shared` and `pool` only, which are Sync.
unsafe impl Sync for Worker {}

impl Worker {
    fn new(shared: &'static Shared, pool: Arc<Pool>) -> Worker {
        Worker {
            shared,
            pool,
            resumable: RefCell::default(),
            yielded: RefCell::default(),
            background_ended: Cell::new(0),
            idle: RefCell::default(),
            least_idle: Cell::new(0),
            trimmed_ns: Cell::new(0),
            timers: Timers::new(),
            ended: RefCell::default(),
            outbox: Outbox::new(),
            running: Cell::new(None),
            away: Aways::default(),
            thread: Cell::new(0),
            items: RefCell::default(),
            claimed: RefCell::default(),
            events: RefCell::new(vec![libc::epoll_event { events: 0, u64: 0 }; BATCH]),
            suspended: Cell::new(0),
            listeners: ListenerSet::new(shared.epoll),
            changes: Cell::new(0),
            bound: Cell::new(None),
        }
    }

    /// Its position among the workers.
    pub(crate) fn index(&self) -> usize {
        self.shared.index()
    }

    /// Its part that anybody may look at.
    pub(crate) fn shared(&self) -> &'static Shared {
        self.shared
    }

    /// A new worker, for the thread that calls; until it ends or is lost.
    pub(super) fn main(shared: &'static Shared, pool: Arc<Pool>) -> Result<(), Lost> {
        let worker = Arc::new(Worker::new(shared, pool));
        let tenure = Arc::new(Tenure::new());
        worker.pool.watchdog.watch(&worker, &tenure);
        Worker::serve(&worker, &tenure)
    }

    /// Serves the worker, which the thread has, until it ends or is lost.
    pub(super) fn serve(worker: &Arc<Worker>, tenure: &Arc<Tenure>) -> Result<(), Lost> {
        let local = local();
        local.worker.set(Arc::as_ptr(worker));
        local.tenure.set(Arc::as_ptr(tenure));
        sys::unbind();
        worker.bound.set(None);
        worker.thread.set(sys::thread_id());
        let ended = worker.work();
        local.worker.set(std::ptr::null());
        local.tenure.set(std::ptr::null());
        if ended.is_ok() {
            worker.pool.watchdog.forget(worker);
            worker.shared.reuse();
        }
        ended
    }

    /// The worker's life as far as this thread leads it.
    fn work(&self) -> Result<(), Lost> {
        while !(self.may_end() && self.pool.leave(self.shared)) {
            self.take_injected();
            self.attend();
            let busy = self.run_some()?;
            let retired = self.pool.is_retired(self.shared);
            if retired {
                self.pool.move_connections(self.shared);
            }
            if busy {
                self.poll(0);
            } else if retired || !(self.steal()? || self.look_again()?) {
                self.sleep();
            }
        }
        self.listeners.watch(&[]);
        self.ended.take().into_iter().for_each(Conn::free);
        self.pool.inherit_timers(self.timers.take_all());
        Ok(())
    }

    /// After shutdown, when no connection is left anywhere; or when there are to be fewer workers
    /// and this one has nothing left.
    fn may_end(&self) -> bool {
        let retired = self.pool.is_retired(self.shared) && self.pool.is_deserted(self.shared);
        (self.pool.is_over() || retired)
            && self.suspended.get() == 0
            && self.shared.ready_len() == 0
            && !self.shared.has_injected()
    }

    /// Lets connections in, and takes notice of what has changed in the pool.
    fn attend(&self) {
        if self.pool.changes() != self.changes.get() || self.listeners.has_paused() {
            self.changes.set(self.pool.changes());
            match self.pool.is_retired(self.shared) {
                true => self.listeners.watch(&[]),
                false => self.listeners.watch(&self.pool.listening()),
            }
        }
        if self.listeners.is_due() {
            self.listeners.let_in();
        }
        let processor = self.pool.processor_of(self.index());
        if self.bound.replace(processor) != processor {
            // Where the system forbids it, the worker runs as before.
            let _ = sys::bind(processor.as_ref().map_or(sys::processors(), std::slice::from_ref));
        }
    }

    /// Runs what is runnable until nothing is or it is time to look at epoll. True: there is more.
    ///
    /// New runs and those whose park is over are the foreground. One that has used up a slice is
    /// background from then on: it runs when epoll has just shown that there is no foreground, and
    /// otherwise in turn with it, the same short time each. So a long statement neither delays
    /// short ones by whole slices nor is starved by a stream of them.
    fn run_some(&self) -> Result<bool, Lost> {
        let mut ran = 0;
        while ran < SWITCHES_BETWEEN_POLLS && !self.background_is_due() {
            let resumed = self.next_resumable();
            if let Some(conn) = resumed {
                self.resume(conn, 0)?;
            } else if let Some(conn) = self.next_ready() {
                if self.outbox.goes_before(conn, self.shared.ready_len()) {
                    self.post();
                }
                self.start(conn)?;
            } else if self.shared.has_injected() {
                self.take_injected();
            } else {
                break;
            }
            ran += 1;
        }
        self.post();
        if ran == 0 || self.background_is_due() {
            self.run_background()?;
        }
        Ok(self.has_work())
    }

    /// Takes a connection that is to begin a run, unless no more may begin.
    fn next_ready(&self) -> Option<&'static Conn> {
        if blocking::is_full() { None } else { self.shared.pop_ready() }
    }

    /// Takes the coroutine whose turn it is; the one after it is made ready.
    fn next_resumable(&self) -> Option<&'static Conn> {
        let mut resumable = self.resumable.borrow_mut();
        let conn = resumable.pop_front()?;
        if let Some(next) = resumable.front() {
            next.ahead.fetch_suspended();
        }
        Some(conn)
    }

    /// Whether something is runnable here.
    fn has_work(&self) -> bool {
        (self.shared.ready_len() > 0 && !blocking::is_full())
            || !self.resumable.borrow().is_empty()
            || !self.yielded.borrow().is_empty()
            || self.listeners.is_due()
    }

    /// Looks for work for a while before it sleeps, if runs are suspended here: what they wait for ends soon,
    /// and to be woken takes longer than most of these waits. The processor is anybody's who wants it. Where
    /// many wait, behind one row say, each wait that ends lets the next begin to end, and it looks for longer.
    fn look_again(&self) -> Result<bool, Lost> {
        let longest = live_int(setting::WORKER_SPIN_TIME).unsigned_abs() * 1000;
        let longest = longest * looks(self.suspended.get());
        if longest == 0 {
            return Ok(false);
        }
        let until = now_ns() + longest;
        loop {
            self.poll(0);
            self.take_injected();
            if self.has_work() || self.steal()? {
                return Ok(true);
            }
            if now_ns() >= until {
                return Ok(false);
            }
            std::thread::yield_now();
        }
    }

    fn background_is_due(&self) -> bool {
        !self.yielded.borrow().is_empty()
            && now_ns() >= self.background_ended.get() + background_ns()
    }

    fn run_background(&self) -> Result<(), Lost> {
        let yielded = self.yielded.borrow_mut().pop_front();
        if let Some(conn) = yielded {
            self.resume(conn, now_ns() + background_ns())?;
            self.post(); // what it may have left; others may take all that is ready
            self.background_ended.set(now_ns());
        }
        Ok(())
    }

    /// Blocks in epoll until an event, a message or a timer comes.
    fn sleep(&self) {
        debug_assert!(self.outbox.is_empty(), "answers would wait for the next event");
        self.shared.sleeping.store(true, Ordering::SeqCst);
        super::saturation::on_worker_idle();
        let deadline = self.timers.next().min(self.next_trim()).min(self.listeners.pause_until());
        let now = if deadline == NEVER { 0 } else { now_ns() };
        let mut timeout = sys::timeout_ms(now, deadline);
        let changed = self.pool.changes() != self.changes.get();
        if self.shared.has_injected() || changed || self.may_end() {
            timeout = 0;
        }
        self.poll(timeout);
        self.pool.watchdog.rouse();
        if self.next_trim() != NEVER {
            self.trim();
        }
    }

    /// When idle coroutines are to be given back. Their number follows the load: a server that
    /// had a thousand waiting statements does not keep a thousand stacks, and while it has, it
    /// does not map and unmap them over and over.
    fn next_trim(&self) -> u64 {
        let many = self.idle.borrow().len() > KEPT_COROUTINES;
        if many { self.trimmed_ns.get() + TRIM_NS } else { NEVER }
    }

    fn trim(&self) {
        let now = now_ns();
        if now < self.next_trim() {
            return;
        }
        let mut idle = self.idle.borrow_mut();
        let unused = self.least_idle.get().min(idle.len() - KEPT_COROUTINES);
        // The oldest lie at the bottom.
        idle.drain(..unused.div_ceil(2));
        self.least_idle.set(idle.len());
        self.trimmed_ns.set(now);
    }

    /// Takes events (waiting at most this long) and timers, and queues what they make runnable.
    fn poll(&self, timeout_ms: i32) {
        for conn in self.ended.borrow_mut().drain(..) {
            conn.free();
        }
        let mut events = self.events.borrow_mut();
        crate::clock::keep_recent(0);
        self.shared.place.note(sys::processor()); // it may sleep there for long
        let n = sys::epoll_wait(self.shared.epoll, &mut events, timeout_ms);
        if timeout_ms != 0 || self.shared.sleeping.load(Ordering::Relaxed) {
            self.shared.sleeping.store(false, Ordering::SeqCst);
        }
        let mut claimed = self.claimed.borrow_mut();
        for event in &events[..n] {
            let (word, bits) = (event.u64, event.events);
            if let Some(door) = Listening::at(word) {
                self.listeners.note(door);
                continue;
            }
            let address = word as usize;
            // Address 0 is the bell, which only ends the sleep.
            if address != 0 && Conn::at(address).claim(flags_of(bits)) {
                claimed.push(Conn::at(address));
            }
        }
        if !claimed.is_empty() {
            self.shared.push_ready(&mut claimed);
        }
        drop((events, claimed));
        self.fire_timers();
        self.share();
    }

    /// Asks an idle worker to take some of what is ready, when that is a lot.
    fn share(&self) {
        if self.shared.ready_len() > READY_TO_SHARE {
            self.pool.wake_idle(self.shared);
        }
    }

    /// Takes a ready connection from another worker.
    fn steal(&self) -> Result<bool, Lost> {
        let stolen = if blocking::is_full() { None } else { self.pool.steal(self.shared) };
        if let Some(conn) = stolen {
            self.start(conn)?;
        }
        Ok(stolen.is_some())
    }

    fn take_injected(&self) {
        if !self.shared.has_injected() {
            return;
        }
        let mut items = self.items.take();
        self.shared.drain(&mut items);
        for item in items.drain(..) {
            match item.order() {
                Order::Resume(conn) => self.resumable.borrow_mut().push_back(conn),
                Order::Start(conn) => self.ready_soon(conn),
                Order::Timer(conn) => self.look_at_deadlines(conn),
                Order::Free(conn) => self.ended.borrow_mut().push(conn),
                Order::Back(conn) => self.take_back(conn),
            }
        }
        *self.items.borrow_mut() = items;
    }

    /// Queues a coroutine of this worker whose park is over.
    pub(super) fn resume_soon(&self, conn: &'static Conn) {
        self.resumable.borrow_mut().push_back(conn);
    }

    /// Queues a connection that is to start.
    pub(super) fn ready_soon(&self, conn: &'static Conn) {
        let mut claimed = self.claimed.borrow_mut();
        claimed.push(conn);
        self.shared.push_ready(&mut claimed);
    }

    fn fire_timers(&self) {
        if self.timers.next() == NEVER {
            return;
        }
        let now = now_ns();
        while let Some(conn) = self.timers.pop_due(now) {
            if let Some(conn) = conn {
                self.look_at_deadlines(conn);
            }
        }
    }

    /// Ends what is due on the connection and arms a timer for the rest.
    pub(super) fn look_at_deadlines(&self, conn: &'static Conn) {
        let now = now_ns();
        if conn.wake_at.load(Ordering::SeqCst) <= now {
            conn.wake_at.store(NEVER, Ordering::SeqCst);
            if conn.claim(WOKEN) {
                self.ready_soon(conn);
            }
        }
        let park = conn.park_deadline.load(Ordering::SeqCst);
        match conn.owner() {
            // Only the owner may touch the task of a suspended connection: it alone can end it.
            Some(owner) if std::ptr::eq(owner, self.shared) => {
                if park <= now {
                    conn.task().time_out();
                } else {
                    self.timers.arm(conn, park);
                }
            }
            // If that one has ended, so has the park.
            Some(owner) if park != NEVER => drop(owner.inject(Item::timer(conn))),
            _ => {}
        }
        self.timers.arm(conn, conn.wake_at.load(Ordering::SeqCst));
    }

    /// Sees to it that this worker looks at the connection's deadlines then.
    pub(super) fn arm(&self, conn: &'static Conn, at: u64) {
        self.timers.arm(conn, at);
    }

    /// Starts a run on a coroutine from the pool.
    fn start(&self, conn: &'static Conn) -> Result<(), Lost> {
        let coro = match self.coroutine() {
            Ok(coro) => coro,
            Err(_) => {
                // No memory for a stack: try again when others may have given some back.
                std::thread::sleep(std::time::Duration::from_millis(1));
                self.ready_soon(conn);
                return Ok(());
            }
        };
        conn.owner.store(std::ptr::from_ref(self.shared).cast_mut(), Ordering::SeqCst);
        self.switch(conn, coro, 0)
    }

    fn coroutine(&self) -> std::io::Result<Coro> {
        let mut idle = self.idle.borrow_mut();
        let pooled = idle.pop();
        self.least_idle.set(self.least_idle.get().min(idle.len()));
        pooled.map_or_else(Coro::new, Ok)
    }

    /// Goes on with a suspended run. `slice_end` as in [`Local`].
    fn resume(&self, conn: &'static Conn, slice_end: u64) -> Result<(), Lost> {
        if self.away.note_wake_up(conn) {
            return Ok(()); // it goes on when its coroutine is here
        }
        // SAFETY: this worker owns the suspended connection.
        let coro = unsafe { (*conn.coro.get()).take() };
        let Some(coro) = coro else { unreachable!("a runnable connection has a coroutine") };
        self.suspended.set(self.suspended.get() - 1);
        crate::clock::keep_recent(0);
        self.switch(conn, coro, slice_end)
    }

    fn switch(&self, conn: &'static Conn, mut coro: Coro, slice_end: u64) -> Result<(), Lost> {
        let local = local();
        // SAFETY: `serve` keeps it for as long as it works.
        let tenure = unsafe { &*local.tenure.get() };
        local.task.set(conn.task());
        local.yielder.set(coro.yielder);
        local.slice_end.set(slice_end);
        local.countdown.set(CHECKS_BETWEEN_CLOCKS);
        local.stack_limit.set(coro.stack_limit);
        local.stack_bytes.set(0);
        turns::begin(local);
        self.running.set(Some(conn));
        tenure.begin_run();
        let step = coro.resume(Some(conn));
        turns::end(local);
        local.stack_limit.set(0);
        local.stack_bytes.set(0);
        local.yielder.set(std::ptr::null());
        local.task.set(std::ptr::null());
        if !tenure.enter() {
            return self.send_back(conn, coro, step);
        }
        match step {
            Step::Done { open } => self.done(conn, coro, open),
            Step::Parked => self.keep(conn, coro),
            Step::Yielded => {
                self.keep(conn, coro);
                self.yielded.borrow_mut().push_back(conn);
            }
            Step::Idle => unreachable!("a run ends with Done"),
        }
        Ok(())
    }

    /// The thread has lost the worker while it ran this, which goes on, or ends, on the thread that has the worker now.
    #[cold]
    fn send_back(&self, conn: &'static Conn, coro: Coro, step: Step) -> Result<(), Lost> {
        // SAFETY: nobody looks at either before the order has come, not even who wakes the run up meanwhile.
        unsafe {
            *conn.coro.get() = Some(coro);
            *conn.back.get() = Some(step);
        }
        // The worker has not ended: it waits for this.
        self.shared.inject(Item::back(conn));
        Err(Lost)
    }

    /// A run that was away is back: as at the end of a switch, but that it has left no answer.
    fn take_back(&self, conn: &'static Conn) {
        let woken = self.away.end(conn, &self.shared.held);
        // SAFETY: the thread that sent it has done with it, and this worker owns the connection.
        match unsafe { (*conn.back.get()).take() } {
            Some(Step::Done { open }) => {
                self.suspended.set(self.suspended.get() - 1);
                // SAFETY: as above.
                let coro = unsafe { (*conn.coro.get()).take() };
                if let Some(mut coro) = coro {
                    coro.finished();
                    self.idle.borrow_mut().push(coro);
                }
                conn.owner.store(std::ptr::null_mut(), Ordering::SeqCst);
                if open { self.release(conn) } else { self.bury(conn) }
            }
            // Its park may be over already; else it could not note when that ends.
            Some(Step::Parked) if woken => self.resume_soon(conn),
            Some(Step::Parked) => self.arm(conn, conn.park_deadline.load(Ordering::SeqCst)),
            Some(Step::Yielded) => self.yielded.borrow_mut().push_back(conn),
            Some(Step::Idle) | None => unreachable!("a run comes back with its last step"),
        }
    }

    /// The thread that calls has just taken the worker from another, whose run is away now, as it has been for a while.
    pub(super) fn take_over(&self, since_ns: u64) -> Option<&'static Conn> {
        let conn = self.running.get()?;
        self.away.begin(conn, since_ns, &self.shared.held);
        self.suspended.set(self.suspended.get() + 1);
        self.outbox.change_thread();
        // It has no processor of its own any more, and is not to take turns with its worker's new thread.
        sys::unbind_thread(self.thread.get());
        Some(conn)
    }

    fn keep(&self, conn: &'static Conn, coro: Coro) {
        self.suspended.set(self.suspended.get() + 1);
        // SAFETY: this worker owns the connection; nobody else resumes it.
        unsafe { *conn.coro.get() = Some(coro) };
    }

    fn done(&self, conn: &'static Conn, mut coro: Coro, open: bool) {
        coro.finished();
        self.idle.borrow_mut().push(coro);
        conn.owner.store(std::ptr::null_mut(), Ordering::SeqCst);
        if open {
            self.follow(conn);
        }
        if !open {
            self.outbox.drop_left();
            self.bury(conn);
        } else if self.outbox.take_in(conn) {
            if self.outbox.is_due() {
                self.post();
            }
        } else {
            self.release(conn);
        }
    }

    /// Moves a connection whose run is over to where its packets are, if it is time for that.
    fn follow(&self, conn: &'static Conn) {
        let off = live_enum(setting::WORKER_AFFINITY) == follow::OFF;
        let Some(home) = conn.home().filter(|_| !off) else { return };
        let era = follow::era(shared_ns());
        if conn.trail.ran(&home.place, era) && std::ptr::eq(home, self.shared) {
            let processor = sys::incoming_processor(conn.fd());
            let stray = processor.filter(|p| !home.place.is(*p));
            if conn.trail.looked(stray.is_none())
                && let Some(to) = stray.and_then(|p| self.pool.adopt(p, home, era))
            {
                self.pool.move_connection(conn, home, to);
            }
        }
    }

    /// Sends the answers that were left, after which their connections may run again.
    fn post(&self) {
        if !self.outbox.is_empty() {
            self.outbox.post(|conn| self.release(conn));
        }
    }

    /// A connection has nothing more to do until its next event, which may have come.
    fn release(&self, conn: &'static Conn) {
        if conn.release() {
            self.ready_soon(conn);
        } else if let Some(home) = conn.home().filter(|h| self.pool.is_retired(h)) {
            home.wake(); // it waits for its connections to become idle
        }
    }

    /// An ended connection goes back to its home; nobody names it after that.
    fn bury(&self, conn: &'static Conn) {
        let Some(home) = conn.home() else { unreachable!("a pooled connection has a home") };
        self.pool.forget(conn);
        if std::ptr::eq(home, self.shared) {
            self.ended.borrow_mut().push(conn);
        } else {
            // It has not ended: it still counts this connection.
            home.inject(Item::free(conn));
        }
        home.sources.fetch_sub(1, Ordering::SeqCst);
        self.pool.source_ended();
    }

    /// Whether anything but the running task wants this worker; looks at epoll, too.
    fn others_wait(&self) -> bool {
        self.take_injected();
        self.poll(0);
        if self.shared.ready_len() > 0 {
            self.pool.wake_idle(self.shared);
        }
        self.has_work()
    }
}

/// How many times `worker_spin_time` a worker with so many suspended runs looks for work.
fn looks(suspended: usize) -> u64 {
    if suspended == 0 { 0 } else { MOST_LOOKS.min(1 + (suspended / SUSPENDED_A_LOOK) as u64) }
}

fn flags_of(events: u32) -> u32 {
    let has = |bits: libc::c_int| events & bits as u32 != 0;
    let mut flags = 0;
    if has(libc::EPOLLIN) {
        flags |= READABLE;
    }
    if has(libc::EPOLLOUT | libc::EPOLLERR | libc::EPOLLHUP) {
        flags |= WRITABLE;
    }
    if has(libc::EPOLLRDHUP | libc::EPOLLERR | libc::EPOLLHUP) {
        flags |= HANGUP;
    }
    flags
}

/// Suspends the running coroutine, whose task has set PARKED, until that is cleared.
pub(crate) fn suspend_parked(local: &Local, limit: u64) {
    let Some(conn) = local.current().link() else {
        unreachable!("a coroutine runs for a connection");
    };
    if limit != NEVER {
        conn.park_deadline.store(limit, Ordering::SeqCst);
        // One that is away has it noted when it is back.
        if let Some(worker) = local.worker() {
            worker.arm(conn, limit);
        }
    }
    conn.ahead.suspended();
    suspend(local, Step::Parked);
    if limit != NEVER {
        conn.park_deadline.store(NEVER, Ordering::SeqCst);
    }
}

/// Suspends the running coroutine behind all others.
pub(crate) fn suspend_yielded(local: &Local) {
    suspend(local, Step::Yielded);
}

fn suspend(local: &Local, step: Step) {
    // The coroutine may be on a stack other than its own (`stack::with_stack`).
    let (limit, bytes) = (local.stack_limit.get(), local.stack_bytes.get());
    // SAFETY: on_coroutine was checked by the caller: the pointer is the running coroutine's, and
    // lies on its stack.
    unsafe { (*local.yielder.get()).suspend(step) };
    let local = crate::local::local(); // it may be another thread's now
    local.stack_limit.set(limit);
    local.stack_bytes.set(bytes);
}

/// Whether the running coroutine's worker has nobody else to run and no other connection that could have
/// something to run soon.
pub(crate) fn is_alone(local: &Local) -> bool {
    if !local.is_workers() {
        return true;
    }
    // A run that has lost its worker frees its thread at its next wait.
    local.worker().is_some_and(|worker| {
        worker.shared.sources.load(Ordering::Relaxed) <= 1
            && worker.suspended.get() == 0
            && !worker.has_work()
    })
}

/// The worker is about to block in a system call: what waits to be sent leaves, and what is ready here
/// another may take.
pub(crate) fn before_blocking(local: &Local) {
    let Some(worker) = local.worker() else { return };
    worker.post();
    if worker.shared.ready_len() > 0 {
        worker.pool.wake_idle(worker.shared);
    }
}

/// Gives the worker away when the running coroutine's slice is over and others are ready, and goes back to it when the
/// run was away.
pub(crate) fn slice_check(local: &Local) {
    let session = local.current().link();
    if session.is_none() {
        return; // a background thread
    }
    turns::end(local);
    // The holder of a latch is soon done with it, and others may be waiting for just that.
    if local.current().latches_held() > 0 {
        if local.slice_end.get() == 0 {
            local.slice_end.set(now_ns() + slice_ns());
        }
        return;
    }
    match local.worker() {
        // This run is not a short one.
        Some(worker) => worker.post(),
        None if local.on_coroutine() => return crate::task::yield_now(),
        None => {}
    }
    let now = now_ns();
    let end = local.slice_end.get();
    let over = end != 0 && now >= end;
    if local.is_workers() && local.on_coroutine() {
        local.note_visit();
        if over && local.worker().is_none_or(|worker| worker.others_wait()) {
            return crate::task::yield_now();
        }
    } else if over {
        threads::look_for_hangup(local.current());
    }
    if end == 0 || over {
        local.slice_end.set(now + slice_ns());
    }
}

/// How long a run may go on before others are let in.
fn slice_ns() -> u64 {
    live_int(setting::WORKER_SLICE).max(1) as u64 * 1_000_000
}

/// How long foreground and background run in turn.
fn background_ns() -> u64 {
    slice_ns() / 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_look_longer_the_more_runs_wait() {
        assert_eq!([0, 1, 7, 8, 23, 24, 1000].map(looks), [0, 1, 1, 2, 3, 4, 4]);
    }
}
