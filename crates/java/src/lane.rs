//! The pool's threads, and the exchange of messages with each.
//!
//! ```text
//!   a session (parked meanwhile)                    a lane: a thread of the JVM
//!   begin(job) ───────────── Call ────────────────► Bridge.call
//!   next() ◄──────────────── Asked(question) ────── Bridge.request   waits
//!   answer(bytes) ────────── Answer ──────────────► goes on
//!      or begin(job) ─────── Call ────────────────► runs it on top of what waits
//!   next() ◄──────────────── Done(result) ───────── ends
//! ```
//!
//! * One side speaks at a time. The lock is held for a look: nobody waits while holding it.
//! * Both sides look for the other's word for a moment before they rest: most words come at once, and to be woken takes
//!   longer. A side that does not rest is not woken. `worker_spin_time = 0` switches the lane's looking off.
//! * A message belongs to the side that made it and goes back there to be freed, so that the session's account of
//!   memory is right.
//! * There are as many lanes as `java_max_threads` says. A lane that does not end its call in time after an interrupt
//!   is abandoned: it counts no more, what it asks is not answered, its thread runs when no other wants the processor, and
//!   ends with the call. A role may leave as many as the limit so; beyond that none of its calls begins. Other roles' do.
//!   `pg_java_threads` shows them.
//! * A call from inside a call runs on its lane: sessions that hold a lane need no second one.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime};

use base::settings::{live_int, setting};
use base::{Error, Result, WaitEvent, err};
use sched::{TaskRef, Wake};

use crate::jvm::{Asks, Jvm, OnThread, has_ended};

/// A message that is larger is freed at once, not with the next one.
const LARGE_BYTES: usize = 64 << 10;

/// A lane without a call for so long ends.
const IDLE: Duration = Duration::from_secs(60);

/// For how long a lane looks for the session's word at most.
const LONGEST: Duration = Duration::from_micros(20);

/// For how long a session looks for Java's word before it gives its worker away.
const MOMENT: Duration = Duration::from_micros(10);

/// How long a call waits for abandoned lanes to end, when there are too many.
const PATIENCE: Duration = Duration::from_secs(2);

enum ToJava {
    Call(Vec<u8>),
    Answer(Vec<u8>),
}

enum FromJava {
    Asked(Vec<u8>),
    Done(Option<Vec<u8>>),
}

#[derive(Default)]
struct Exchange {
    to: Option<ToJava>,
    from: Option<FromJava>,
    waiter: Option<TaskRef>,
    serial: i64,
    abandoned: bool,
    ended: bool,
    /// The lane's thread, or the session, is to be woken.
    lane_rests: bool,
    session_rests: bool,
    /// Messages that the other side has read: the session's, and the lane's.
    read_by_lane: Vec<Vec<u8>>,
    read_by_session: Vec<Vec<u8>>,
}

/// The session for which a lane works.
#[derive(Clone, Copy)]
pub struct Holder {
    /// The process number that its client knows.
    pub pid: i32,
    /// The role in whose name it calls.
    pub role: u32,
    /// When its call began.
    pub since: SystemTime,
}

/// A thread of the JVM that runs calls.
pub struct Lane {
    /// No other has it.
    pub number: i64,
    /// The session that has it, or has left it.
    holder: Mutex<Option<Holder>>,
    /// The thread's number in the system; 0: not known yet.
    thread: AtomicI32,
    exchange: Mutex<Exchange>,
    turn: Condvar,
    /// Hints, set once the exchange has it: there is a word for the lane, and one for the session.
    to_lane: AtomicBool,
    to_session: AtomicBool,
}

/// Looks for a word for so long.
fn look(hint: &AtomicBool, longest: Duration) {
    if longest.is_zero() || hint.load(Ordering::Acquire) {
        return;
    }
    let until = Instant::now() + longest;
    loop {
        for _ in 0..64 {
            std::hint::spin_loop();
            if hint.load(Ordering::Acquire) {
                return;
            }
        }
        // A processor that is given away here comes back late where many want one; a sleeper is woken soon.
        if Instant::now() >= until {
            return;
        }
    }
}

/// How long one may look; not at all while sessions wait for workers.
fn unless_busy(longest: Duration) -> Duration {
    if sched::helpers::should_yield() { Duration::ZERO } else { longest }
}

/// A message of a lane's, which gets it back.
pub struct Message {
    bytes: Vec<u8>,
    lane: Arc<Lane>,
}

impl std::ops::Deref for Message {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        let is_large = bytes.len() > LARGE_BYTES;
        let mut exchange = self.lane.lock();
        exchange.read_by_session.push(bytes);
        if is_large && exchange.lane_rests {
            self.lane.turn.notify_one();
        }
    }
}

/// News of a lane.
pub enum Next {
    /// None yet.
    Nothing,
    /// Java asks.
    Asked(Message),
    /// The call has ended; None: Java has no memory.
    Done(Option<Message>),
    /// The JVM has ended.
    Ended,
}

impl Lane {
    fn lock(&self) -> MutexGuard<'_, Exchange> {
        self.exchange.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands over a job, for the running task. `serial`: the number of the outermost call.
    pub fn begin(&self, job: Vec<u8>, serial: i64) {
        let mut exchange = self.lock();
        exchange.waiter = Some(sched::current());
        exchange.serial = serial;
        exchange.to = Some(ToJava::Call(job));
        self.spoken(exchange);
    }

    /// Answers what Java asked.
    pub fn answer(&self, bytes: Vec<u8>) {
        let mut exchange = self.lock();
        exchange.to = Some(ToJava::Answer(bytes));
        self.spoken(exchange);
    }

    /// Tells the lane that there is a word for it.
    fn spoken(&self, exchange: MutexGuard<'_, Exchange>) {
        let rests = exchange.lane_rests;
        drop(exchange);
        self.to_lane.store(true, Ordering::Release);
        if rests {
            self.turn.notify_one();
        }
    }

    /// The news, for which the session looks for a moment. After [`Next::Nothing`] it is woken when there are any.
    pub fn next(self: &Arc<Self>) -> Next {
        look(&self.to_session, unless_busy(MOMENT));
        let mut exchange = self.lock();
        self.to_session.store(false, Ordering::Relaxed);
        exchange.session_rests = exchange.from.is_none();
        let read = std::mem::take(&mut exchange.read_by_lane);
        let from = exchange.from.take();
        let ended = exchange.ended;
        drop(exchange);
        drop(read);
        let message = |bytes| Message { bytes, lane: self.clone() };
        match from {
            Some(FromJava::Asked(bytes)) => Next::Asked(message(bytes)),
            Some(FromJava::Done(bytes)) => Next::Done(bytes.map(message)),
            None if ended => Next::Ended,
            None => Next::Nothing,
        }
    }

    /// Nobody waits for the call any more.
    pub fn abandon(&self) {
        let mut exchange = self.lock();
        exchange.abandoned = true;
        exchange.waiter = None;
        self.spoken(exchange);
        let thread = self.thread.load(Ordering::Relaxed);
        if thread != 0 {
            // SAFETY: a call of the system without pointers. It only slows down the lane's own thread, which is there
            // until its call has ended; that it fails does no harm.
            unsafe { libc::setpriority(libc::PRIO_PROCESS, thread as libc::id_t, 19) };
        }
    }

    fn holder(&self) -> MutexGuard<'_, Option<Holder>> {
        self.holder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// See [`Lane::abandon`].
    pub fn is_abandoned(&self) -> bool {
        self.lock().abandoned
    }

    /// Tells the session; false when it is gone.
    fn post(&self, news: FromJava) -> bool {
        let mut exchange = self.lock();
        let read = std::mem::take(&mut exchange.read_by_session);
        let abandoned = exchange.abandoned;
        let rests = std::mem::take(&mut exchange.session_rests);
        let waiter = exchange.waiter.clone().filter(|_| rests && !abandoned);
        if !abandoned {
            exchange.from = Some(news);
        }
        drop(exchange);
        self.to_session.store(true, Ordering::Release);
        drop(read);
        if let Some(waiter) = waiter {
            waiter.unpark();
        }
        !abandoned
    }

    /// The next word of the session's; None when it is gone, or after [`IDLE`] without any where `may_end`.
    fn hear(&self, may_end: bool) -> Option<(ToJava, i64)> {
        let longest = Duration::from_micros(live_int(setting::WORKER_SPIN_TIME).unsigned_abs());
        look(&self.to_lane, unless_busy(longest.min(LONGEST)));
        let mut exchange = self.lock();
        loop {
            exchange.lane_rests = false;
            exchange.read_by_session.clear();
            if exchange.abandoned {
                return None;
            }
            if let Some(word) = exchange.to.take() {
                self.to_lane.store(false, Ordering::Relaxed);
                return Some((word, exchange.serial));
            }
            exchange.lane_rests = true;
            if !may_end {
                exchange = self.turn.wait(exchange).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let waited = self.turn.wait_timeout(exchange, IDLE);
            let (back, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            exchange = back;
            if timeout.timed_out() && exchange.to.is_none() {
                exchange.lane_rests = false;
                return None;
            }
        }
    }

    fn give_back(&self, bytes: Vec<u8>) {
        self.lock().read_by_lane.push(bytes);
    }

    fn run(&self, job: Vec<u8>, serial: i64, thread: OnThread) -> bool {
        let done = thread.call(self.number, serial, &job);
        self.give_back(job);
        self.post(FromJava::Done(done))
    }
}

/// The answerer on a lane: the session.
struct Asker(Arc<Lane>);

impl Asks for Asker {
    fn ask(&self, question: Vec<u8>, thread: OnThread, answered: &mut dyn FnMut(&[u8])) {
        if !self.0.post(FromJava::Asked(question)) {
            return;
        }
        while let Some((word, serial)) = self.0.hear(false) {
            match word {
                ToJava::Call(job) => {
                    if !self.0.run(job, serial, thread) {
                        return;
                    }
                }
                ToJava::Answer(bytes) => {
                    answered(&bytes);
                    self.0.give_back(bytes);
                    return;
                }
            }
        }
    }
}

/// An order to the thread that acts on others.
enum Order {
    Interrupt { lane: Weak<Lane>, serial: i64 },
    Forget(i32),
}

#[derive(Default)]
struct Lanes {
    idle: Vec<Arc<Lane>>,
    all: Vec<Weak<Lane>>,
    /// Lanes that are not abandoned.
    count: usize,
    /// Those that are, by the role that left them. A lane may end its call before it is counted.
    abandoned: HashMap<u32, isize>,
    waiting: VecDeque<TaskRef>,
    numbers: i64,
}

/// All lanes.
pub struct Pool {
    jvm: &'static Jvm,
    lanes: Mutex<Lanes>,
    orders: Mutex<Sender<Order>>,
}

fn limit() -> usize {
    usize::try_from(live_int(setting::JAVA_MAX_THREADS)).unwrap_or(1).max(1)
}

impl Pool {
    /// Without lanes yet, but with the thread that interrupts them.
    ///
    /// # Errors
    /// When the system has no thread.
    pub fn new(jvm: &'static Jvm) -> Result<Pool> {
        let (orders, listened) = channel();
        let keeper = std::thread::Builder::new().name("java keeper".to_owned());
        let keeper = keeper.spawn(move || keep(jvm, &listened));
        keeper.map_err(|error| Error::io("could not start a thread for Java", &error))?;
        Ok(Pool { jvm, lanes: Mutex::default(), orders: Mutex::new(orders) })
    }

    fn lock(&self) -> MutexGuard<'_, Lanes> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn order(&self, order: Order) {
        // The keeper ends with the process.
        let _ = self.orders.lock().unwrap_or_else(PoisonError::into_inner).send(order);
    }

    /// Interrupts a lane's thread at this call, also when it has not come to it yet.
    pub fn interrupt(&self, lane: &Arc<Lane>, serial: i64) {
        self.order(Order::Interrupt { lane: Arc::downgrade(lane), serial });
    }

    /// Drops a routine or loader of Java's.
    pub fn forget(&self, number: i32) {
        self.order(Order::Forget(number));
    }

    /// A lane for the running task, which calls in the name of this role, and the number of its call.
    ///
    /// # Errors
    /// Interrupts; `53400` when the role has left too many lanes and none has ended in [`PATIENCE`]; `58000` when the
    /// JVM has ended.
    pub fn take(&'static self, role: u32) -> Result<(Arc<Lane>, i64)> {
        let task = sched::current();
        let holder = || Some(Holder { pid: task.pid(), role, since: SystemTime::now() });
        let mut patience = None;
        loop {
            if has_ended() {
                return Err(ended());
            }
            let mut lanes = self.lock();
            lanes.numbers += 1;
            let serial = lanes.numbers;
            let left = lanes.abandoned.get(&role).copied().unwrap_or(0);
            let crowded = left >= limit().cast_signed();
            if !crowded && let Some(lane) = lanes.idle.pop() {
                *lane.holder() = holder();
                return Ok((lane, serial));
            }
            let until = crowded.then(|| *patience.get_or_insert_with(|| Instant::now() + PATIENCE));
            if until.is_some_and(|until| Instant::now() >= until) {
                return Err(err!(
                    CONFIGURATION_LIMIT_EXCEEDED,
                    "too many calls of Java do not end"
                )
                .detail(format!(
                    "{left} threads go on although the role's statements were canceled."
                ))
                .hint("Raise java_max_threads, or restart the server."));
            }
            if !crowded && lanes.count < limit() {
                lanes.count += 1;
                drop(lanes);
                let started = self.start(serial, holder());
                return started.map(|lane| (lane, serial)).inspect_err(|_| {
                    self.lock().count -= 1;
                });
            }
            lanes.waiting.push_back(task.clone());
            drop(lanes);
            let wake = sched::park(WaitEvent::IPCJavaThread, until);
            self.lock().waiting.retain(|waiter| !Arc::ptr_eq(waiter, &task));
            if wake == Wake::Interrupted
                && let Err(error) = sched::check_interrupts_now()
            {
                // The wake-up was for a task that takes a lane: it is passed on.
                self.wake_one(&mut self.lock());
                return Err(error);
            }
        }
    }

    fn start(&'static self, number: i64, holder: Option<Holder>) -> Result<Arc<Lane>> {
        let lane = Arc::new(Lane {
            number,
            holder: Mutex::new(holder),
            thread: AtomicI32::new(0),
            exchange: Mutex::default(),
            turn: Condvar::new(),
            to_lane: AtomicBool::new(false),
            to_session: AtomicBool::new(false),
        });
        let mut lanes = self.lock();
        lanes.all.retain(|lane| lane.strong_count() > 0);
        lanes.all.push(Arc::downgrade(&lane));
        drop(lanes);
        let stack = usize::try_from(live_int(setting::JAVA_STACK_SIZE)).unwrap_or(1024) << 10;
        let own = lane.clone();
        let thread = std::thread::Builder::new().name(format!("java {number}")).stack_size(stack);
        let thread = thread.spawn(move || self.serve(&own));
        thread.map_err(|error| Error::io("could not start a thread for Java", &error))?;
        Ok(lane)
    }

    /// A lane's thread.
    fn serve(&'static self, lane: &Arc<Lane>) {
        // SAFETY: a call of the system without pointers.
        lane.thread.store(unsafe { libc::gettid() }, Ordering::Relaxed);
        let name = format!("threadgres {}", lane.number);
        match self.jvm.attach(&name, Some(Box::new(Asker(lane.clone())))) {
            Ok(attached) => {
                loop {
                    let goes_on = match lane.hear(true) {
                        Some((ToJava::Call(job), serial)) => lane.run(job, serial, attached.0),
                        Some((ToJava::Answer(bytes), _)) => {
                            lane.give_back(bytes);
                            true
                        }
                        None => !self.retires(lane),
                    };
                    if !goes_on {
                        break;
                    }
                }
                attached.0.ended(lane.number);
            }
            Err(_) => {
                lane.lock().ended = true;
                let waiter = lane.lock().waiter.clone();
                if let Some(waiter) = waiter {
                    waiter.unpark();
                }
                while let Some((ToJava::Call(bytes) | ToJava::Answer(bytes), _)) = lane.hear(false)
                {
                    lane.give_back(bytes);
                }
            }
        }
        let waiter = lane.lock().waiter.take();
        if let Some(waiter) = waiter {
            waiter.unpark();
        }
        if lane.is_abandoned() {
            let role = lane.holder().map_or(0, |holder| holder.role);
            let mut lanes = self.lock();
            *lanes.abandoned.entry(role).or_default() -= 1;
            lanes.abandoned.retain(|_, left| *left != 0);
            self.wake_one(&mut lanes);
        }
    }

    /// Whether a lane that has nothing to do ends.
    fn retires(&self, lane: &Arc<Lane>) -> bool {
        if lane.is_abandoned() {
            return true;
        }
        let mut lanes = self.lock();
        let found = lanes.idle.iter().position(|idle| Arc::ptr_eq(idle, lane));
        if let Some(at) = found {
            lanes.idle.remove(at);
            lanes.count -= 1;
        }
        found.is_some()
    }

    /// The lanes: each with whether it was abandoned and the session that has or had it.
    pub fn all(&self) -> Vec<(i64, bool, Option<Holder>)> {
        let all = self.lock().all.clone();
        let lanes = all.iter().filter_map(Weak::upgrade);
        lanes.map(|lane| (lane.number, lane.is_abandoned(), *lane.holder())).collect()
    }

    fn wake_one(&self, lanes: &mut Lanes) {
        if let Some(waiter) = lanes.waiting.pop_front() {
            waiter.unpark();
        }
    }

    /// Gives a lane back: one that has ended its call, or one that is left with it.
    pub fn give(&self, lane: Arc<Lane>, has_ended: bool) {
        if !has_ended {
            lane.abandon();
        }
        let mut lanes = self.lock();
        match has_ended {
            true => {
                lane.lock().waiter = None;
                *lane.holder() = None;
                lanes.idle.push(lane);
            }
            false => {
                let role = lane.holder().map_or(0, |holder| holder.role);
                lanes.count -= 1;
                let left = lanes.abandoned.entry(role).or_default();
                *left += 1;
                if *left >= limit().cast_signed() {
                    // Each waits only so long from now on.
                    lanes.waiting.drain(..).for_each(|waiter| waiter.unpark());
                }
            }
        }
        self.wake_one(&mut lanes);
    }

    /// The JVM has ended: nobody needs to wait for it.
    pub fn end(&self) {
        let lanes = self.lock();
        for lane in lanes.all.iter().filter_map(Weak::upgrade) {
            let mut exchange = lane.lock();
            exchange.ended = true;
            if let Some(waiter) = exchange.waiter.clone() {
                waiter.unpark();
            }
        }
        for waiter in &lanes.waiting {
            waiter.unpark();
        }
    }
}

/// `58000`.
pub fn ended() -> Error {
    err!(SYSTEM_ERROR, "the Java virtual machine has ended")
        .hint("Java code has ended it. It begins again with the server.")
}

fn keep(jvm: &'static Jvm, orders: &Receiver<Order>) {
    let Ok(attached) = jvm.attach("threadgres keeper", None) else { return };
    while let Ok(order) = orders.recv() {
        match order {
            Order::Interrupt { lane, serial } => {
                if let Some(lane) = lane.upgrade() {
                    attached.0.interrupt(lane.number, serial);
                }
            }
            Order::Forget(number) => attached.0.forget(number),
        }
    }
}
