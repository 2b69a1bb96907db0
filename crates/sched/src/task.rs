//! Tasks: who can wait, for what, and who may disturb it.
//!
//! Wake-ups are `parking`'s business; here is what a wait is for and how long it may last.
//! The waiting itself is a futex on the parking's word (plain threads) or a suspended coroutine
//! (sessions on workers); see `Task::block`.

use std::any::Any;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering, fence};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;

use base::settings::{live_bool, setting};
use base::usage::{USES, Usage, Use};
use base::{Error, Result, WaitEvent, err};

use crate::clock::{self, NEVER, now_ns};
use crate::local::{self, local};
use crate::memory::Account;
use crate::observe::{self, PackedWait, WaitObject, Waiting};
use crate::parking::{Begin, DEAF, PARKED, POLLING, Parking};
use crate::spin::SpinLock;
use crate::sys;
use crate::worker::{self, Conn};

/// A session or a background thread, as the scheduler sees it: its wait slot (event, since when),
/// its pending interrupts, and how to wake it. Lives as long as the session.
pub struct Task {
    id: u64,
    kind: &'static str,
    parking: Parking,
    /// The wait in progress: event + 1 in the top byte, its beginning in the rest (0: no clock was
    /// read); 0: none.
    wait: AtomicU64,
    /// Its object ([`WaitObject::encode`]) and blocker; valid while `wait` stays the same.
    wait_object: [AtomicU64; 2],
    wait_blocker: AtomicU64,
    meter: observe::Meter,
    /// Waits for its client.
    idle_sums: observe::IdleSums,
    /// Tasks that wait for it in a [`crate::LongWait`].
    awaited: AtomicI32,
    /// A [`PriorityClass`].
    priority_class: AtomicU8,
    /// The piece of work within which waits are of interest only as part of it: event + 1; 0: nothing.
    work: AtomicU8,
    /// When the running statement must end.
    statement_deadline: AtomicU64,
    waits: AtomicU64,
    waited_ns: AtomicU64,
    /// Its number to users; 0: it has none.
    pid: AtomicI32,
    /// See [`observe::turns`].
    pub(crate) longest_turn: AtomicU64,
    /// The statement that it runs: its query identifier; 0: none.
    statement: AtomicU64,
    /// The resources that it has used: see [`used`].
    usage: [AtomicU64; USES],
    /// Bits of the counts that changed since [`Task::usage_since`].
    used: AtomicU32,
    /// The connection that this task runs; null for a plain thread.
    link: AtomicPtr<Conn>,
    /// Gets a plain thread out of poll(2); -1 until it first polls.
    eventfd: AtomicI32,
    /// LwLocks and Mutexes held. Written by the task itself only.
    latches: AtomicI32,
    memory: Account,
    context: OnceLock<Arc<dyn Any + Send + Sync>>,
}

/// The class of a task that is ready: the earlier here go before the later (`worker/queue.rs`). Before
/// all of them go those that others wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PriorityClass {
    /// Between its runs it holds what others may come to want, as a session inside a transaction does: the
    /// fewer do so at a time, the less they wait for each other.
    InTransaction = 1,
    /// All others.
    Ordinary,
    /// Nobody has been let in yet.
    Connecting,
}

/// Ranks among those that are ready: the standings, and being waited for.
pub(crate) const RANKS: usize = 1 + PriorityClass::Connecting as usize;

/// Shared handle.
pub type TaskRef = Arc<Task>;

/// Why a [`park`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// Somebody called [`Task::unpark`].
    Unparked,
    /// The deadline passed.
    TimedOut,
    /// An interrupt is pending; the caller undoes its registration and calls [`check_interrupts`].
    Interrupted,
}

/// A request to a task from outside. Raised by [`check_interrupts`] as an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Interrupt {
    /// `57014 canceling statement due to user request`.
    Cancel = 1,
    /// `57P01 terminating connection due to administrator command`, fatal.
    Terminate = 2,
    /// `57014 canceling statement due to statement timeout`.
    StatementTimeout = 4,
    /// The client is gone; `08006`, fatal.
    ClientGone = 8,
    /// `25P03`, fatal.
    IdleInTransactionTimeout = 16,
    /// `57P05`, fatal.
    IdleSessionTimeout = 32,
    /// `53200`: the server holds too much, and this session most of it.
    OutOfMemory = 64,
    /// `40001`: what the statement reads is about to go, since the primary has let it go.
    RecoveryConflict = 128,
    /// The same for a session that runs no statement; fatal.
    RecoveryConflictIdle = 256,
}

impl Interrupt {
    /// The most serious first: the order in which they are raised.
    const ALL: [Interrupt; 9] = [
        Interrupt::Terminate,
        Interrupt::RecoveryConflictIdle,
        Interrupt::ClientGone,
        Interrupt::IdleSessionTimeout,
        Interrupt::IdleInTransactionTimeout,
        Interrupt::StatementTimeout,
        Interrupt::RecoveryConflict,
        Interrupt::Cancel,
        Interrupt::OutOfMemory,
    ];

    /// PostgreSQL's error for it.
    pub fn error(self) -> Error {
        match self {
            Interrupt::Cancel => err!(QUERY_CANCELED, "canceling statement due to user request"),
            Interrupt::StatementTimeout => {
                err!(QUERY_CANCELED, "canceling statement due to statement timeout")
            }
            Interrupt::Terminate => {
                err!(ADMIN_SHUTDOWN, "terminating connection due to administrator command").fatal()
            }
            Interrupt::ClientGone => err!(CONNECTION_FAILURE, "connection to client lost").fatal(),
            Interrupt::IdleInTransactionTimeout => err!(
                IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
                "terminating connection due to idle-in-transaction timeout"
            )
            .fatal(),
            Interrupt::OutOfMemory => err!(OUT_OF_MEMORY, "out of memory"),
            Interrupt::RecoveryConflict => err!(
                T_R_SERIALIZATION_FAILURE,
                "canceling statement due to conflict with recovery"
            )
            .detail("User query might have needed to see row versions that must be removed."),
            Interrupt::RecoveryConflictIdle => err!(
                T_R_SERIALIZATION_FAILURE,
                "terminating connection due to conflict with recovery"
            )
            .detail("User was holding a relation lock or a snapshot for too long.")
            .hint("In a moment you should be able to reconnect to the database and repeat your command.")
            .fatal(),
            Interrupt::IdleSessionTimeout => {
                err!(IDLE_SESSION_TIMEOUT, "terminating connection due to idle-session timeout")
                    .fatal()
            }
        }
    }
}

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

impl Task {
    /// A task for a new session or thread; `kind` is its `backend_type`.
    pub fn new(kind: &'static str) -> TaskRef {
        let task = Arc::new(Task {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            kind,
            parking: Parking::new(),
            wait: AtomicU64::new(0),
            wait_object: [const { AtomicU64::new(0) }; 2],
            wait_blocker: AtomicU64::new(0),
            meter: observe::Meter::default(),
            idle_sums: observe::IdleSums::new(),
            awaited: AtomicI32::new(0),
            priority_class: AtomicU8::new(PriorityClass::Ordinary as u8),
            work: AtomicU8::new(0),
            statement_deadline: AtomicU64::new(NEVER),
            waits: AtomicU64::new(0),
            waited_ns: AtomicU64::new(0),
            pid: AtomicI32::new(0),
            longest_turn: AtomicU64::new(0),
            statement: AtomicU64::new(0),
            usage: [const { AtomicU64::new(0) }; USES],
            used: AtomicU32::new(0),
            link: AtomicPtr::new(std::ptr::null_mut()),
            eventfd: AtomicI32::new(-1),
            latches: AtomicI32::new(0),
            memory: Account::new(),
            context: OnceLock::new(),
        });
        observe::list_task(&task);
        task
    }

    /// Unique in this process, from 1.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Its `backend_type`.
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// The number by which users know the session or background thread; 0: it has none.
    pub fn pid(&self) -> i32 {
        self.pid.load(Ordering::Relaxed)
    }

    /// Says by which number users know the session.
    pub fn set_pid(&self, pid: i32) {
        self.pid.store(pid, Ordering::Relaxed);
    }

    /// Query identifier of the statement that runs, to which waits are put down; 0: none.
    pub fn statement(&self) -> u64 {
        self.statement.load(Ordering::Relaxed)
    }

    /// Says which statement runs from now on.
    pub fn set_statement(&self, query_id: u64) {
        observe::statement_changes(self, self.statement(), query_id);
        self.statement.store(query_id, Ordering::Relaxed);
    }

    /// The heap memory that it holds.
    pub fn memory(&self) -> &Account {
        &self.memory
    }

    /// The resources that it has used so far.
    pub fn usage(&self) -> Usage {
        Usage(std::array::from_fn(|i| self.usage[i].load(Ordering::Relaxed)))
    }

    /// Hands each count that has grown since `reading` over, with its number and by how much, and makes it
    /// the reading of now. Few counts change from one reading to the next, so it is for one reader that
    /// looks often, the task itself: others miss what that one has seen.
    #[inline]
    pub fn usage_since(&self, reading: &mut Usage, mut grown: impl FnMut(usize, u64)) {
        let mut changed = self.used.load(Ordering::Relaxed);
        self.used.store(0, Ordering::Relaxed);
        while changed != 0 {
            let i = changed.trailing_zeros() as usize;
            changed &= changed - 1;
            if let (Some(count), Some(then)) = (self.usage.get(i), reading.0.get_mut(i)) {
                let now = count.load(Ordering::Relaxed);
                grown(i, now - *then);
                *then = now;
            }
        }
    }

    /// As [`Task::usage_since`] when none but the first `N` counts have grown: adds by how much to `sums`. Else
    /// false, and the reading stays.
    #[inline]
    pub fn add_first_usage<const N: usize>(
        &self,
        reading: &mut Usage,
        sums: &mut [u64; N],
    ) -> bool {
        const { assert!(N <= USES) };
        let first = self.used.load(Ordering::Relaxed) >> N == 0;
        if first {
            self.used.store(0, Ordering::Relaxed);
            for (i, sum) in sums.iter_mut().enumerate() {
                let now = self.usage[i].load(Ordering::Relaxed);
                *sum += now - std::mem::replace(&mut reading.0[i], now);
            }
        }
        first
    }

    /// One of these counts.
    #[inline]
    pub fn used(&self, what: Use) -> u64 {
        self.usage[what as usize].load(Ordering::Relaxed)
    }

    /// For the task itself.
    #[inline]
    fn count_use(&self, what: usize, amount: u64) {
        // Only the task itself writes them.
        let count = &self.usage[what];
        count.store(count.load(Ordering::Relaxed) + amount, Ordering::Relaxed);
        self.used.store(self.used.load(Ordering::Relaxed) | 1 << what, Ordering::Relaxed);
    }

    /// Counts what another has used for it. For the task itself.
    pub(crate) fn add_usage(&self, used: &[u64; USES]) {
        for (what, amount) in used.iter().enumerate().filter(|(_, amount)| **amount > 0) {
            self.count_use(what, *amount);
        }
    }

    /// Makes the task runnable; if it isn't parked its next `park` returns at once. Any thread.
    pub fn unpark(&self) {
        if let Some(how) = self.parking.unpark() {
            self.wake_up(how);
        }
    }

    /// The value that crates above keep with the task for their own use; None when nothing was given.
    pub fn context(&self) -> Option<&Arc<dyn Any + Send + Sync>> {
        self.context.get()
    }

    /// Gives the task its context, which it keeps until it ends; answers the one that counts:
    /// the first.
    pub fn set_context(&self, context: Arc<dyn Any + Send + Sync>) -> &Arc<dyn Any + Send + Sync> {
        self.context.get_or_init(|| context)
    }

    /// Sets an interrupt and wakes the task if it waits interruptibly.
    pub fn interrupt(&self, what: Interrupt) {
        self.parking.raise(what as u32);
        self.wake_unless(DEAF);
        worker::nudge(self);
    }

    /// Forgets an interrupt (a cancel that came between statements).
    pub fn clear_interrupt(&self, what: Interrupt) {
        self.parking.clear(what as u32);
    }

    /// Forgets what was meant for a statement that has ended.
    pub fn clear_statement_interrupts(&self) {
        for what in [
            Interrupt::Cancel,
            Interrupt::StatementTimeout,
            Interrupt::OutOfMemory,
            Interrupt::RecoveryConflict,
        ] {
            self.clear_interrupt(what);
        }
    }

    /// Whether this interrupt is pending.
    pub fn has_interrupt(&self, what: Interrupt) -> bool {
        self.parking.glimpse() & what as u32 != 0
    }

    /// Whether any interrupt is pending.
    pub fn interrupted(&self) -> bool {
        self.parking.pending() != 0
    }

    /// The wait in progress and when it began.
    pub fn wait(&self) -> Option<(WaitEvent, Instant)> {
        let word = self.wait.load(Ordering::Acquire);
        let event = WaitEvent::from_u8(((word >> clock::BITS) as u8).checked_sub(1)?)?;
        Some((event, clock::to_instant(word & CLOCK_MASK)))
    }

    /// The wait in progress with its object and who stood in its way when it began, and when that
    /// was.
    pub fn waiting(&self) -> Option<(Waiting, Instant)> {
        loop {
            let word = self.wait.load(Ordering::Acquire);
            let object = [0, 1].map(|i| self.wait_object[i].load(Ordering::Relaxed));
            let blocker = self.wait_blocker.load(Ordering::Relaxed);
            fence(Ordering::Acquire);
            if self.wait.load(Ordering::Relaxed) == word {
                let event = WaitEvent::from_u8(((word >> clock::BITS) as u8).checked_sub(1)?)?;
                let object = WaitObject::decode(object);
                let since = clock::to_instant(word & CLOCK_MASK);
                return Some((Waiting { event, object, blocker }, since));
            }
        }
    }

    /// Whether others wait for something that it holds.
    #[inline]
    pub(crate) fn is_awaited(&self) -> bool {
        self.awaited.load(Ordering::Relaxed) != 0
    }

    /// Says how it stands between its runs. Its first ones are ordinary.
    pub fn set_priority_class(&self, priority_class: PriorityClass) {
        self.priority_class.store(priority_class as u8, Ordering::Relaxed);
    }

    /// Which of those that are ready go before it: 0 for none, up to [`RANKS`].
    #[inline]
    pub(crate) fn rank(&self) -> usize {
        match self.is_awaited() {
            true => 0,
            false => self.priority_class.load(Ordering::Relaxed).into(),
        }
    }

    /// One more waits for it, or (-1) one less.
    pub(crate) fn count_awaiting(&self, change: i32) {
        self.awaited.fetch_add(change, Ordering::Relaxed);
    }

    /// The piece of work that it announced with [`at_work`].
    pub fn work(&self) -> Option<WaitEvent> {
        WaitEvent::from_u8(self.work.load(Ordering::Relaxed).checked_sub(1)?)
    }

    /// Arms or (None) disarms the statement timeout, which raises [`Interrupt::StatementTimeout`].
    pub fn set_statement_deadline(&self, at: Option<Instant>) {
        self.statement_deadline.store(at.map_or(NEVER, clock::to_ns), Ordering::Relaxed);
        if at.is_none() && self.has_interrupt(Interrupt::StatementTimeout) {
            self.clear_interrupt(Interrupt::StatementTimeout);
        }
    }

    /// Number of waits so far and their total in nanoseconds.
    pub fn wait_totals(&self) -> (u64, u64) {
        (self.waits.load(Ordering::Relaxed), self.waited_ns.load(Ordering::Relaxed))
    }

    /// The connection that runs as this task.
    pub(crate) fn link(&self) -> Option<&'static Conn> {
        // SAFETY: connections are never freed, only used again (see worker::conn).
        unsafe { self.link.load(Ordering::Acquire).as_ref() }
    }

    pub(crate) fn set_link(&self, conn: Option<&'static Conn>) {
        let pointer = conn.map_or(std::ptr::null_mut(), |c| std::ptr::from_ref(c).cast_mut());
        self.link.store(pointer, Ordering::Release);
    }

    /// Ends a wait without leaving a token, unless it is of one of these kinds.
    fn wake_unless(&self, masks: u32) {
        if let Some(how) = self.parking.wake_unless(masks) {
            self.wake_up(how);
        }
    }

    /// Ends a wait whose deadline has come.
    pub(crate) fn time_out(&self) {
        self.wake_unless(0);
    }

    /// For the one who cleared PARKED.
    fn wake_up(&self, how: u32) {
        if how & POLLING != 0 {
            sys::eventfd_write(self.eventfd.load(Ordering::Acquire));
        } else if let Some(conn) = self.link().filter(|c| c.is_pooled()) {
            worker::make_runnable(conn);
        } else {
            sys::futex_wake(self.parking.word());
        }
    }

    /// Marks a wait's beginning for observers. Called by the running task.
    pub(crate) fn begin_wait(&self, waiting: Waiting) {
        let began = if live_bool(setting::TRACK_WAIT_TIMING) { now_ns() } else { 0 };
        self.show_wait(waiting, began);
        let local = local();
        local.reading.set(0);
        local.idle_since.set(0);
    }

    /// A wait that is seen as going on since `began_ns` (0: no clock was read).
    pub(crate) fn show_wait(&self, waiting: Waiting, began_ns: u64) {
        // A reader that sees one of these sees that the wait before is over.
        fence(Ordering::Release);
        let [first, second] = waiting.object.encode();
        self.wait_object[0].store(first, Ordering::Relaxed);
        self.wait_object[1].store(second, Ordering::Relaxed);
        self.wait_blocker.store(waiting.blocker, Ordering::Relaxed);
        self.wait.store(
            (u64::from(waiting.event as u8) + 1) << clock::BITS | began_ns,
            Ordering::Release,
        );
    }

    /// Ends what [`Task::show_wait`] showed; nothing is recorded.
    pub(crate) fn hide_wait(&self) {
        self.wait.store(0, Ordering::Release);
    }

    /// Adds to the sums of its waits, which only the task itself writes.
    #[inline]
    fn add_wait(&self, duration_ns: u64) {
        self.waits.store(self.waits.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        let total = self.waited_ns.load(Ordering::Relaxed) + duration_ns;
        self.waited_ns.store(total, Ordering::Relaxed);
    }

    /// Sums of its waits while it is measured.
    pub(crate) fn meter(&self) -> &observe::Meter {
        &self.meter
    }

    /// Sums of its waits for its client.
    pub(crate) fn idle_sums(&self) -> &observe::IdleSums {
        &self.idle_sums
    }

    /// Ends what `begin_wait` began.
    pub(crate) fn end_wait(&self) {
        let word = self.wait.load(Ordering::Relaxed);
        self.wait.store(0, Ordering::Release);
        let began_ns = word & CLOCK_MASK;
        if began_ns == 0 {
            return;
        }
        let duration = now_ns().saturating_sub(began_ns);
        self.add_wait(duration);
        let kept = PackedWait {
            event_began: word - (1 << clock::BITS),
            duration,
            task: self.id,
            blocker: self.wait_blocker.load(Ordering::Relaxed),
            statement: self.statement(),
            object: [0, 1].map(|i| self.wait_object[i].load(Ordering::Relaxed)),
            pids: u64::from(self.pid() as u32),
        };
        self.meter.add(&kept);
        observe::finished(kept);
    }

    /// The session has nothing to run: it waits for its client until it is run again. If its worker
    /// at once runs another session, that one's wait ends at this moment.
    pub(crate) fn begin_idle(&self) {
        let noted = clock::idle_since();
        let timed = live_bool(setting::TRACK_WAIT_TIMING);
        let began = if timed { noted.unwrap_or_else(now_ns) } else { 0 };
        self.show_wait(WaitEvent::ClientClientRead.into(), began);
        clock::keep_recent(began);
    }

    /// The session is run again, because of what its client sent.
    pub(crate) fn end_idle(&self) {
        let began_ns = self.wait.load(Ordering::Relaxed) & CLOCK_MASK;
        self.wait.store(0, Ordering::Release);
        if began_ns == 0 {
            return;
        }
        let duration_ns = clock::shared_ns().saturating_sub(began_ns);
        self.add_wait(duration_ns);
        observe::idle_finished(self.id, self.pid(), &self.idle_sums, [began_ns, duration_ns]);
    }

    /// Runs `f` as one wait of this task, the running one.
    pub(crate) fn within_wait<R>(&self, waiting: Waiting, f: impl FnOnce(&Task) -> R) -> R {
        struct End<'a>(&'a Task);
        impl Drop for End<'_> {
            fn drop(&mut self) {
                self.0.end_wait();
            }
        }
        self.begin_wait(waiting);
        let _end = End(self);
        f(self)
    }

    /// Parks, whatever interrupts are pending, until whoever unparks it has made this true. Inside a wait.
    pub(crate) fn sleep_until(&self, is_done: impl Fn() -> bool) {
        while !is_done() {
            self.sleep(PARKED | DEAF, NEVER);
        }
    }

    /// [`park`] and its kin; called by the running task only. With `part_of`, the beginning of a
    /// longer wait, that one is shown, and nothing is recorded.
    pub(crate) fn park(
        &self,
        waiting: Waiting,
        deadline: u64,
        interruptible: bool,
        part_of: Option<u64>,
    ) -> Wake {
        if self.parking.take_token() {
            return Wake::Unparked;
        }
        if interruptible {
            self.note_lost_client(waiting);
            if self.interrupted() {
                return Wake::Interrupted;
            }
        }
        local().assert_may_wait();
        debug_assert!(
            self.latches_held() <= 0 || !matches!(waiting.event.info().kind, "Lock" | "Client"),
            "a latch is held across a wait for {}",
            waiting.event.info().name
        );
        let statement = if interruptible { self.statement_deadline() } else { NEVER };
        match part_of {
            None => self.begin_wait(waiting),
            Some(began) => self.show_wait(waiting, began),
        }
        let how = if interruptible { PARKED } else { PARKED | DEAF };
        let wake = self.sleep(how, deadline.min(statement));
        match part_of {
            None => self.end_wait(),
            Some(_) => self.hide_wait(),
        }
        wake.unwrap_or_else(|| self.explain(deadline, interruptible))
    }

    /// A statement whose client had gone before it began is run all the same, but waits for nobody. (One
    /// that loses its client later is told at once.)
    fn note_lost_client(&self, waiting: Waiting) {
        let gone = self.link().is_some_and(Conn::is_hung_up);
        if gone && waiting.event.info().kind != "Client" {
            self.parking.raise(Interrupt::ClientGone as u32);
        }
    }

    /// Waits; None when the wait ended without a token.
    fn sleep(&self, how: u32, limit: u64) -> Option<Wake> {
        match self.parking.begin(how) {
            Begin::Token => Some(Wake::Unparked),
            Begin::Interrupted => Some(Wake::Interrupted),
            Begin::Parked => {
                self.block(how, limit);
                self.parking.end().then_some(Wake::Unparked)
            }
        }
    }

    /// Why a wait without a token ended.
    fn explain(&self, deadline: u64, interruptible: bool) -> Wake {
        if interruptible {
            self.note_statement_deadline();
            if self.interrupted() {
                return Wake::Interrupted;
            }
        }
        if deadline != NEVER && now_ns() >= deadline { Wake::TimedOut } else { Wake::Unparked }
    }

    fn statement_deadline(&self) -> u64 {
        self.statement_deadline.load(Ordering::Relaxed)
    }

    /// Raises the statement timeout if its time has come.
    fn note_statement_deadline(&self) {
        let deadline = self.statement_deadline();
        if deadline != NEVER && now_ns() >= deadline {
            self.statement_deadline.store(NEVER, Ordering::Relaxed);
            self.parking.raise(Interrupt::StatementTimeout as u32);
        }
    }

    /// Waits until PARKED is clear or the time has come (then PARKED is cleared).
    fn block(&self, how: u32, limit: u64) {
        let local = local();
        if local.on_coroutine() {
            worker::suspend_parked(local, limit);
        } else {
            self.block_thread(how, limit);
        }
    }

    fn block_thread(&self, how: u32, limit: u64) {
        // A session's thread looks after its client while it waits.
        let session = how & DEAF == 0 && self.link().is_some();
        while self.parking.is_parked() {
            let mut timeout = (limit != NEVER).then(|| limit.saturating_sub(now_ns()));
            if session {
                worker::look_for_hangup(self);
                timeout = Some(timeout.unwrap_or(NEVER).min(HANGUP_CHECK_NS));
            }
            if timeout == Some(0) {
                // When this fails the waker has cleared PARKED, and the loop ends, too.
                self.parking.give_up(how);
                continue;
            }
            sys::futex_wait(self.parking.word(), how, timeout);
        }
    }

    /// Waits in poll(2) for `events` on `fd`; unpark and interrupts end it. Plain threads only.
    pub(crate) fn poll_fd(&self, fd: i32, events: libc::c_short, event: WaitEvent) -> Result<()> {
        loop {
            check_interrupts()?;
            let wakeup = self.eventfd()?;
            let began = now_ns();
            let mut fds = [
                libc::pollfd { fd, events, revents: 0 },
                libc::pollfd { fd: wakeup, events: libc::POLLIN, revents: 0 },
            ];
            self.begin_wait(event.into());
            let limit = self.statement_deadline();
            if self.parking.begin(PARKED | POLLING) == Begin::Parked {
                sys::poll(&mut fds, sys::timeout_ms(began, limit));
                self.parking.end();
            }
            if fds[1].revents != 0 {
                sys::eventfd_drain(wakeup);
            }
            self.end_wait();
            if fds[0].revents != 0 {
                return Ok(());
            }
            self.note_statement_deadline();
        }
    }

    /// The counter that gets this task's thread out of poll(2).
    pub(crate) fn eventfd(&self) -> Result<i32> {
        let fd = self.eventfd.load(Ordering::Acquire);
        if fd >= 0 {
            return Ok(fd);
        }
        let fd = sys::eventfd().map_err(|e| Error::io("create an event descriptor", &e))?;
        self.eventfd.store(fd, Ordering::Release);
        Ok(fd)
    }

    /// Counts latches held; by the task itself.
    #[inline]
    pub(crate) fn latch_held(&self, change: i32) {
        self.latches.store(self.latches.load(Ordering::Relaxed) + change, Ordering::Relaxed);
    }

    /// How many LwLocks and Mutexes this task holds.
    pub fn latches_held(&self) -> i32 {
        self.latches.load(Ordering::Relaxed)
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        observe::session_ends(self.pid(), &self.idle_sums);
        observe::forget_task(self.id);
        let fd = *self.eventfd.get_mut();
        if fd >= 0 {
            sys::close(fd);
        }
    }
}

/// The running task. Outside any task (a test's thread) one is made for the thread.
pub fn current() -> TaskRef {
    let task = std::ptr::from_ref(local().current());
    // SAFETY: every task comes from Task::new, so it lives in an Arc, which whoever set the
    // thread's task keeps; one more count is taken for the caller.
    unsafe {
        Arc::increment_strong_count(task);
        Arc::from_raw(task)
    }
}

/// The running task, without counting a reference.
#[inline]
pub fn with_current<R>(f: impl FnOnce(&Task) -> R) -> R {
    f(local().current())
}

/// Counts what the running task uses.
#[inline]
pub fn used(what: Use, amount: u64) {
    local().current().count_use(what as usize, amount);
}

/// The running task's usage so far, if any, which then counts as another's ([`Task::add_usage`]).
pub(crate) fn take_usage() -> Option<[u64; USES]> {
    let task = local().current();
    if task.used.load(Ordering::Relaxed) == 0 {
        return None;
    }
    task.used.store(0, Ordering::Relaxed);
    Some(std::array::from_fn(|at| task.usage[at].swap(0, Ordering::Relaxed)))
}

/// Makes a call and counts the time that it takes, in nanoseconds.
pub fn timed<R>(time: Use, call: impl FnOnce() -> R) -> R {
    let began = Instant::now();
    let result = call();
    used(time, began.elapsed().as_nanos() as u64);
    result
}

/// The background threads that run and the listening sockets, in the order in which they were
/// started.
pub fn background_tasks() -> Vec<TaskRef> {
    BACKGROUND.lock().iter().filter_map(Weak::upgrade).collect()
}

/// Makes the task one of [`background_tasks`] for as long as somebody keeps it.
pub(crate) fn list_background(task: &TaskRef) {
    let mut background = BACKGROUND.lock();
    background.retain(|t| t.strong_count() > 0);
    background.push(Arc::downgrade(task));
}

/// The task is none of [`background_tasks`] any more, though its thread may need a while to end.
pub(crate) fn unlist_background(task: &Task) {
    BACKGROUND.lock().retain(|t| !std::ptr::eq(t.as_ptr(), task));
}

/// A number by which users know a session or a background thread; from 1, then round again.
pub fn next_pid() -> i32 {
    static NEXT: AtomicI32 = AtomicI32::new(0);
    loop {
        let pid = NEXT.fetch_add(1, Ordering::Relaxed).wrapping_add(1) & i32::MAX;
        if pid != 0 {
            return pid;
        }
    }
}

/// See [`background_tasks`].
static BACKGROUND: SpinLock<Vec<Weak<Task>>> = SpinLock::new(Vec::new());

/// Waits until unparked, the deadline, or an interrupt. The caller has registered itself where its
/// waker looks, and checks its condition again afterwards: wake-ups may be spurious. It checks it last
/// before, too, without a lock: a wait for one would use the wake-up up. `waiting` is a [`WaitEvent`], or a
/// [`Waiting`] where the object is known.
pub fn park(waiting: impl Into<Waiting>, deadline: Option<Instant>) -> Wake {
    local().current().park(waiting.into(), deadline.map_or(NEVER, clock::to_ns), true, None)
}

/// As [`park`], but interrupts stay pending and do not end the wait.
pub fn park_uninterruptible(waiting: impl Into<Waiting>, deadline: Option<Instant>) -> Wake {
    local().current().park(waiting.into(), deadline.map_or(NEVER, clock::to_ns), false, None)
}

/// Labels a system call that blocks (a file's sync) with its wait event and, as a [`Waiting`],
/// its object; blocks the thread. For calls that sessions make see [`crate::blocking`], too.
pub fn io_wait<R>(waiting: impl Into<Waiting>, f: impl FnOnce() -> R) -> R {
    let local = local();
    local.current().within_wait(waiting.into(), |_| {
        worker::before_blocking(local);
        f()
    })
}

/// Names a piece of work of the running task, which may wait for several things and compute in
/// between: [`Task::work`] tells it to others until `f` returns.
pub fn at_work<R>(event: WaitEvent, f: impl FnOnce() -> R) -> R {
    struct End(u8);
    impl Drop for End {
        fn drop(&mut self) {
            with_current(|task| task.work.store(self.0, Ordering::Relaxed));
        }
    }
    let _end = End(with_current(|task| task.work.swap(event as u8 + 1, Ordering::Relaxed)));
    f()
}

/// Raises a pending interrupt as an error, and yields the worker when the time slice is used up
/// and others are ready. Called in every loop that may be long; costs about a nanosecond.
///
/// # Errors
/// See [`Interrupt`].
#[inline]
pub fn check_interrupts() -> Result<()> {
    let local = local();
    let left = local.countdown.get();
    if left != 0 && local.current().parking.glimpse() == 0 {
        local.countdown.set(left - 1);
        return Ok(());
    }
    check_interrupts_slow(local)
}

/// As [`check_interrupts`], with a look at the clock: for loops of which each round takes some microseconds.
///
/// # Errors
/// See [`Interrupt`].
pub fn check_interrupts_now() -> Result<()> {
    let local = local();
    local.countdown.set(0);
    check_interrupts_slow(local)
}

/// Yields the worker when the time slice is used up and others are ready, where an interrupt can't be raised: it
/// waits for the next [`check_interrupts`]. For loops of which each round takes some microseconds.
pub fn give_way() {
    worker::slice_check(local());
}

/// A comparison for sorting many: others get their turns meanwhile.
pub fn unhurried<T>(
    mut compare: impl FnMut(&T, &T) -> std::cmp::Ordering,
) -> impl FnMut(&T, &T) -> std::cmp::Ordering {
    let mut compared = 0u32;
    move |a, b| {
        compared = compared.wrapping_add(1);
        if compared & 0x3ff == 0 {
            give_way();
        }
        compare(a, b)
    }
}

#[cold]
fn check_interrupts_slow(local: &local::Local) -> Result<()> {
    let task = local.current();
    if local.countdown.get() == 0 {
        local.countdown.set(local::CHECKS_BETWEEN_CLOCKS);
        task.note_statement_deadline();
        worker::slice_check(local);
        task.memory.check(task.pid())?;
    }
    let pending = task.parking.pending();
    match Interrupt::ALL.into_iter().find(|i| pending & *i as u32 != 0) {
        Some(interrupt) => {
            task.clear_interrupt(interrupt);
            Err(match interrupt {
                Interrupt::OutOfMemory => task.memory.doom(),
                other => other.error(),
            })
        }
        None => Ok(()),
    }
}

/// Lets the worker run others first.
pub fn yield_now() {
    let local = local();
    if !local.on_coroutine() {
        std::thread::yield_now();
        return;
    }
    local.assert_may_wait();
    let task = local.current();
    task.begin_wait(WaitEvent::TimeoutYield.into());
    worker::suspend_yielded(local);
    task.end_wait();
}

/// Starts a background thread with its own task. `kind` is its `backend_type` and thread name.
///
/// # Panics
/// When the system has no more threads.
pub fn spawn_thread(
    kind: &'static str,
    f: impl FnOnce() + Send + 'static,
) -> std::thread::JoinHandle<()> {
    spawn_task(Task::new(kind), f)
}

/// Starts a thread that runs as `task`, which the caller keeps to wake or interrupt it.
///
/// # Panics
/// When the system has no more threads.
pub fn spawn_task(task: TaskRef, f: impl FnOnce() + Send + 'static) -> std::thread::JoinHandle<()> {
    match start_thread(task, THREAD_STACK_BYTES, f) {
        Ok(handle) => handle,
        Err(error) => panic!("could not start a thread: {error}"),
    }
}

/// The same with a stack of this (virtual) size, where a failure is no disaster.
pub(crate) fn start_thread(
    task: TaskRef,
    stack_bytes: usize,
    f: impl FnOnce() + Send + 'static,
) -> std::io::Result<std::thread::JoinHandle<()>> {
    if task.pid() == 0 {
        task.set_pid(next_pid());
    }
    list_background(&task);
    let builder = std::thread::Builder::new().name(task.kind().to_owned());
    builder.stack_size(stack_bytes).spawn(move || {
        local::adopt(task);
        crate::sys::unbind();
        f();
    })
}

/// The part of a wait's word that says when it began.
const CLOCK_MASK: u64 = (1 << clock::BITS) - 1;

/// How often a waiting session of the thread model looks whether its client is gone.
const HANGUP_CHECK_NS: u64 = 500_000_000;

/// Virtual size of a background thread's stack.
const THREAD_STACK_BYTES: usize = 8 << 20;
