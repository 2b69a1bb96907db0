//! A session: what a client's connection is to the server.
//!
//! [`Session`] is what the scheduler runs; [`SessionState`] is everything the session knows. A run takes
//! the state out, serves what has come, and puts it back: only one run goes on at a time, so nothing
//! in the state is locked.
//!
//! ```text
//!   run ─▶ fill the input ─▶ message, message, … ─▶ send the output ─▶ fill … ─▶ nothing more
//!                              │ simple:   Query
//!                              │ extended: Parse Bind Describe Execute Close Flush Sync
//!                              └ each statement: plan, lock, snapshot, run
//! ```
//!
//! Errors travel as [`Result`]: those of severity ERROR end the statement and are told to the client
//! where the message was dispatched; fatal ones leave the loop and end the connection.

mod account;
mod auth;
mod autonomous;
mod base_backup;
mod blocking;
pub mod checks;
mod client_text;
mod control;
mod copy;
mod cursor;
pub mod execute;
mod extended;
mod fastpath;
pub mod headless;
pub mod hooks;
pub mod identity;
mod known;
mod logging;
mod logical_sender;
mod names;
mod physical;
pub mod portal;
mod prepare;
pub mod recode;
mod replication;
mod rewind;
mod rows;
pub mod settings;
mod simple;
mod startup;
pub mod statement_run;
mod stream;
mod transaction;

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use account::Account;
use base::error::Severity;
use base::settings::{live_int, setting};
use base::{Error, Result, err};
use catalog::{Attachment, CatalogTx, OpenDatabase, Snapshot};
use portal::{Portals, PreparedStatement, Statements};
use replication::Replication;
use sched::{Interrupt, Lines, PriorityClass, Readiness, Source, SpinLock, TaskRef, clock};
use settings::SessionSettings;
use transaction::{Block, TransactionState};
use txn::LockOwner;
use wire::response::{self, TransactionStatus};

use crate::connection::{Fill, Input, Output, Peer, Socket};
use crate::log;
use crate::notify::Pending;
use crate::registry::{self, Entry};
use crate::server::{self, Server};

/// Where the conversation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Before the start-up packet.
    Starting,
    /// The client is to show who it is.
    Authenticating,
    /// It could not; it will be told when its time has come.
    Refused,
    /// The protocol proper.
    Serving,
}

/// The scheduler's handle.
pub struct Session {
    server: Arc<Server>,
    entry: Arc<Entry>,
    state: SpinLock<Stage>,
    /// When the client must have shown who it is.
    deadline: Instant,
    /// Keeps the descriptor open until the worker has taken it out of its epoll set: the state goes
    /// before that, and the number of a closed descriptor is a new connection's at once.
    socket: Arc<Socket>,
}

/// A connection's life.
enum Stage {
    /// Accepted; nothing has come yet.
    New,
    /// Between two runs.
    Resting(Box<SessionState>),
    /// Runs, or has ended.
    Away,
}

/// Everything that a session knows.
pub struct SessionState {
    server: Arc<Server>,
    entry: Arc<Entry>,
    socket: Arc<Socket>,
    phase: Phase,
    /// While the client shows who it is.
    conversation: Option<Box<auth::Conversation>>,
    /// The error that a refused client will be told.
    refusal: Option<Error>,
    input: Input,
    /// Input that a COPY left behind, which replaces the buffer it began in.
    copy_input: Option<Input>,
    out: RefCell<Output>,
    settings: SessionSettings,
    database: (Arc<str>, u32),
    /// Whether it takes commands of replication.
    replication: Replication,
    /// The open transaction is there for the snapshot of a slot that was made.
    exports_slot: bool,
    /// A backup for a directory that has most of it.
    rewinding: Option<storage::Backup>,
    /// The same as all its sessions share it; before the session is in one, what all databases share.
    open: Arc<OpenDatabase>,
    /// Its place there; a session that works for another one has none of its own.
    attachment: Option<Attachment>,
    owner: Arc<LockOwner>,
    /// How many sessions it works for, one inside another; 0: for a client.
    nesting: u32,
    /// The origin that the session's transactions come from, and the position of the one that is being applied.
    origin: Option<(String, u64)>,
    /// Its maintenance is the server's own ([`headless::Headless::make_automatic`]).
    automatic: bool,
    transaction: TransactionState,
    catalog_tx: CatalogTx,
    catalog: Option<Arc<Snapshot>>,
    statements: Statements,
    portals: Portals,
    /// The channels that it listens to and its notifications to come, if it ever had any.
    notify: Option<Box<Pending>>,
    sequences: exec::SessionSequences,
    /// Checks that wait for the transaction's end.
    deferred: exec::Deferred,
    /// The session's knowledge of functions.
    routines: exec::compiled::SessionRoutines,
    /// Its open large objects.
    large_objects: exec::LargeObjects,
    /// The origin that the session has set up.
    own_origin: exec::session_origin::SessionOrigin,
    /// The state that foreign-data wrappers keep.
    foreign: exec::foreign::SessionParts,
    account: Account,
    /// A COMMIT that is to be counted when it is durable.
    committing: Option<(u64, portal::PlanOf)>,
    /// An error ended the message sequence: everything up to Sync is ignored.
    skip_to_sync: bool,
    /// The output begins with what the worker could not send.
    unsent: bool,
    /// The client waits for what is in the output.
    flush: bool,
    /// The statement is over; others are told when its commit is durable.
    ready: bool,
    idle_deadline: Option<Instant>,
    /// When the running statement will be ended.
    deadline: Option<Instant>,
}

/// Why a connection ends.
enum End {
    /// The client said goodbye, or never was a session's.
    Quiet,
    /// It went away without a word.
    Gone,
    /// And the client is told why.
    Error(Error),
    /// The same; the log knows already.
    Refused(Error),
}

/// When the statement at hand began, microseconds; the clock is not read again for what follows at once.
fn statement_time() -> i64 {
    let ns = clock::recent_ns();
    clock::keep_recent(ns);
    server::at(ns)
}

impl From<Error> for End {
    fn from(error: Error) -> End {
        End::Error(error)
    }
}

impl Session {
    /// Takes an accepted connection and gives it to the workers. What a session needs is made when its
    /// client's first bytes are there. On a worker's own stack: nothing here waits.
    ///
    /// # Errors
    /// When the socket can't be watched.
    pub fn start(server: &Arc<Server>, socket: Socket, peer: Peer) -> Result<()> {
        let fd = socket.fd();
        let task = sched::Task::new("client backend");
        task.set_priority_class(PriorityClass::Connecting);
        let entry = server.sessions.add(server.secret(), task, peer, server::now());
        types::user::install(&entry.task, entry.types.clone());
        let timeout = live_int(setting::AUTHENTICATION_TIMEOUT).max(1) as u64;
        let deadline = Instant::now() + Duration::from_secs(timeout);
        let session = Arc::new(Session {
            server: server.clone(),
            entry,
            state: SpinLock::new(Stage::New),
            deadline,
            socket: Arc::new(socket),
        });
        server.workers.add_until(fd, session, Some(deadline))
    }

    /// Takes the state out for a run; None when the session has ended.
    fn take(&self) -> Option<Box<SessionState>> {
        let stage = std::mem::replace(&mut *self.state.lock(), Stage::Away);
        match stage {
            Stage::Resting(state) => Some(state),
            Stage::Away => None,
            Stage::New => {
                let state = Box::new(SessionState::begin(self));
                let entry = &*self.entry;
                let [owner, slot] = state.owner.lines();
                let objects = [
                    Lines::of(&*state),
                    Lines::of(entry),
                    Lines::of(&*entry.task),
                    Lines::of(self),
                    Lines::of(&*self.socket),
                    owner,
                    slot,
                ];
                sched::uses(&entry.task, objects);
                Some(state)
            }
        }
    }
}

impl Source for Session {
    fn task(&self) -> &TaskRef {
        &self.entry.task
    }

    fn run(&self, ready: Readiness) -> bool {
        let Some(mut state) = self.take() else { return false };
        // The statement is the boundary for panics; this is for what lies outside of statements.
        let end = match catch_unwind(AssertUnwindSafe(|| state.serve(ready))) {
            Ok(Ok(())) => {
                *self.state.lock() = Stage::Resting(state);
                return true;
            }
            Ok(Err(end)) => end,
            Err(_) => {
                End::Error(Error::internal("internal error; the log has the details").fatal())
            }
        };
        state.end(end);
        self.server.sessions.remove(&self.entry);
        false
    }

    fn unsent(&self, answer: &[u8]) {
        if let Stage::Resting(state) = &mut *self.state.lock() {
            state.out.get_mut().take_back(answer);
            state.unsent = true;
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let stage = std::mem::replace(&mut *self.state.lock(), Stage::Away);
        if let Stage::Resting(mut state) = stage {
            state.release();
        }
        self.server.engine.storage.slots().end_session(self.entry.pid);
        self.server.sessions.remove(&self.entry);
    }
}

impl SessionState {
    /// A client's session begins.
    fn begin(session: &Session) -> SessionState {
        let (server, entry) = (session.server.clone(), session.entry.clone());
        let owner = server.engine.txn.new_owner(&entry.task, entry.pid);
        let shared = server.engine.catalog.shared().clone();
        let mut state = SessionState::new(server, entry, session.socket.clone(), owner, shared);
        state.idle_deadline = Some(session.deadline);
        state
    }

    fn new(
        server: Arc<Server>,
        entry: Arc<Entry>,
        socket: Arc<Socket>,
        owner: Arc<LockOwner>,
        open: Arc<OpenDatabase>,
    ) -> SessionState {
        let engine = &server.engine;
        SessionState {
            phase: Phase::Starting,
            conversation: None,
            refusal: None,
            input: Input::default(),
            copy_input: None,
            out: RefCell::new(Output::new(socket.clone(), Some(engine.storage.clone()))),
            settings: known::fresh(&server),
            database: (Arc::default(), catalog::SHARED),
            attachment: None,
            owner,
            nesting: 0,
            origin: None,
            automatic: false,
            replication: Replication::No,
            exports_slot: false,
            rewinding: None,
            transaction: TransactionState::default(),
            catalog_tx: CatalogTx::new(&engine.catalog, &open),
            catalog: None,
            statements: Statements::default(),
            portals: Portals::default(),
            notify: None,
            sequences: exec::SessionSequences::default(),
            deferred: exec::Deferred::default(),
            routines: Default::default(),
            large_objects: exec::LargeObjects::default(),
            own_origin: exec::session_origin::SessionOrigin::default(),
            foreign: exec::foreign::SessionParts::default(),
            account: Account::default(),
            committing: None,
            skip_to_sync: false,
            unsent: false,
            flush: false,
            ready: false,
            idle_deadline: None,
            deadline: None,
            open,
            server,
            entry,
            socket,
        }
    }

    /// One run: everything that can be done now.
    fn serve(&mut self, ready: Readiness) -> Result<(), End> {
        self.idle_interrupts()?;
        if self.phase == Phase::Refused {
            return if ready.hangup { Err(End::Gone) } else { Ok(()) };
        }
        if std::mem::take(&mut self.unsent) {
            self.out.get_mut().send()?;
        }
        if self.notify.is_some() {
            self.deliver_while_idle()?;
        }
        loop {
            let fill = self.input.fill(&self.socket)?;
            match fill {
                Fill::End => return Err(End::Gone),
                Fill::Empty => break,
                Fill::More | Fill::Drained => {
                    self.process(fill == Fill::Drained && !ready.hangup)?
                }
            }
            if self.phase == Phase::Refused || fill == Fill::Drained && !ready.hangup {
                break;
            }
            // A client that keeps sending must not starve the worker's others.
            sched::yield_now();
        }
        self.rest();
        Ok(())
    }

    /// Looks for interrupts of a session that waits for its client.
    fn idle_interrupts(&mut self) -> Result<(), End> {
        if let Some(deadline) = self.idle_deadline.take() {
            if Instant::now() >= deadline {
                return Err(self.idle_timeout());
            }
            self.idle_deadline = Some(deadline);
            if self.phase != Phase::Serving {
                // A run for another reason has cancelled it; `rest` does this for those that are in.
                self.server.workers.wake_at(&self.entry.task, Some(deadline));
            }
        }
        if self.entry.task.interrupted() {
            self.entry.task.clear_statement_interrupts();
            sched::check_interrupts()?;
        }
        Ok(())
    }

    fn idle_timeout(&mut self) -> End {
        match (self.phase, self.refusal.take()) {
            (Phase::Starting, _) => return End::Quiet,
            (Phase::Authenticating, _) => {
                let message = "canceling authentication due to timeout";
                return End::Error(err!(QUERY_CANCELED, "{message}").fatal());
            }
            (_, Some(error)) => return End::Refused(error),
            _ => {}
        }
        if self.transaction.deadline.is_some_and(|at| Instant::now() >= at) {
            return End::Error(transaction_timed_out());
        }
        let interrupt = match self.transaction.block {
            Block::None => Interrupt::IdleSessionTimeout,
            _ => Interrupt::IdleInTransactionTimeout,
        };
        End::Error(interrupt.error())
    }

    /// Handles the complete messages of the input; `last`: the run ends with them.
    fn process(&mut self, last: bool) -> Result<(), End> {
        clock::note_idle(0);
        let mut input = std::mem::take(&mut self.input);
        let result = self.process_input(&mut input);
        self.input = input;
        result?;
        if self.flush {
            self.flush = false;
            self.out.get_mut().wait_durable()?;
            self.note_idle();
            let out = self.out.get_mut();
            if last { out.leave()? } else { out.send()? }
        }
        Ok(())
    }

    fn process_input(&mut self, input: &mut Input) -> Result<(), End> {
        self.out.get_mut().open();
        while self.phase == Phase::Starting {
            let Some((startup, size)) = wire::startup::next_startup(input.bytes())? else {
                return Ok(());
            };
            let more = input.bytes().len() > size;
            self.startup(startup, more)?;
            input.consume(size);
        }
        while self.phase == Phase::Authenticating {
            let Some(frame) = wire::next_frame(input.bytes())? else { return Ok(()) };
            let size = frame.size();
            self.authenticate(frame)?;
            input.consume(size);
        }
        if self.phase == Phase::Refused {
            return Ok(());
        }
        while let Some(frame) = wire::next_frame(input.bytes())? {
            let size = frame.size();
            let result = self.frame(frame, &input.bytes()[size..]);
            match self.copy_input.take() {
                Some(after_copy) => {
                    input.rest();
                    *input = after_copy;
                }
                None => input.consume(size),
            }
            result?;
        }
        Ok(())
    }

    /// One message as it came; `rest` is what came after it.
    fn frame(&mut self, frame: wire::Frame<'_>, rest: &[u8]) -> Result<(), End> {
        if self.skip_to_sync && !matches!(frame.tag, b'S' | b'X') {
            return Ok(());
        }
        match wire::frontend::decode(frame) {
            Ok(message) => self.message(message, rest),
            Err(error) => self.malformed(frame.tag, error),
        }
    }

    /// A message whose content can't be read fails as if it had been run.
    fn malformed(&mut self, tag: u8, error: Error) -> Result<(), End> {
        match tag {
            b'c' | b'd' | b'f' => {} // what is left of a COPY that failed
            b'P' | b'B' | b'D' | b'E' | b'C' | b'H' => self.extended(|_| Err(error))?,
            _ => {
                self.skip_to_sync = false;
                self.failed(error, None)?;
                self.ready()?;
            }
        }
        Ok(())
    }

    /// One message; `rest` is what came after it.
    fn message(&mut self, message: wire::Frontend<'_>, rest: &[u8]) -> Result<(), End> {
        use wire::Frontend as F;
        self.ready = false;
        match message {
            F::Query(text) => self.simple_query(text, rest)?,
            F::Parse(parse) => self.extended(|s| s.parse(parse))?,
            F::Bind(bind) => self.extended(|s| s.bind(&bind))?,
            F::Describe(target, name) => self.extended(|s| s.describe(target, name))?,
            F::Execute(portal, limit) => self.extended(|s| s.execute(portal, limit, rest))?,
            F::Close(target, name) => self.extended(|s| s.close(target, name))?,
            F::Flush => self.flush = true,
            F::Sync => self.sync()?,
            // The rest of a COPY that failed.
            F::CopyData(_) | F::CopyDone | F::CopyFail(_) => {}
            F::FunctionCall(call) => self.function_call(&call)?,
            F::Password => return Err(wire::violation("unexpected password message").into()),
            F::Terminate => return Err(End::Quiet),
        }
        Ok(())
    }

    /// Before a statement: what came for an earlier one is forgotten, a reload is noticed.
    fn prologue(&mut self) {
        if self.entry.task.interrupted() {
            self.entry.task.clear_statement_interrupts();
        }
        self.out.get_mut().forget_deferred();
        self.reload_if_stale();
    }

    /// Takes over settings of the server that have changed, between transactions.
    fn reload_if_stale(&mut self) {
        let generation = self.server.generation();
        if self.settings.stale(generation) && !self.transaction.begun() {
            let (values, generation) = self.server.values();
            self.settings.reload(&values, generation);
        }
    }

    /// A statement begins: its limits of memory and time.
    fn arm_timeout(&mut self) {
        let timeout = self.settings.statement_timeout;
        self.entry.task.memory().begin_statement(self.settings.memory_limit);
        self.owner.lock_timeout_ms.store(self.settings.lock_timeout, Ordering::Relaxed);
        self.owner.deadlock_timeout_ms.store(self.settings.deadlock_timeout, Ordering::Relaxed);
        self.owner.log_lock_waits.store(self.settings.log_lock_waits, Ordering::Relaxed);
        if self.deadline.is_none() && (timeout > 0 || self.transaction.deadline.is_some()) {
            let statement = (timeout > 0).then(|| Instant::now() + Duration::from_millis(timeout));
            let deadlines = [statement, self.transaction.deadline];
            deadlines.into_iter().flatten().for_each(|at| self.end_statement_at(at));
        }
    }

    /// The running statement ends at this time, if not before.
    fn end_statement_at(&mut self, at: Instant) {
        let at = self.deadline.map_or(at, |deadline| deadline.min(at));
        self.deadline = Some(at);
        self.entry.task.set_statement_deadline(Some(at));
    }

    /// A statement that ended because its transaction's time was up ends the session.
    fn transaction_timeout(&self, error: Error) -> Error {
        let late = self.transaction.deadline.is_some_and(|at| Instant::now() >= at);
        if late && error.code() == base::sqlstate::QUERY_CANCELED {
            return transaction_timed_out();
        }
        error
    }

    fn disarm_timeout(&mut self) {
        if self.deadline.take().is_some() {
            self.entry.task.set_statement_deadline(None);
            self.entry.task.clear_interrupt(Interrupt::StatementTimeout);
        }
    }

    /// Runs a part of a statement behind the panic boundary.
    fn guarded<R>(&mut self, f: impl FnOnce(&mut SessionState) -> Result<R>) -> Result<R> {
        catch_unwind(AssertUnwindSafe(|| f(self)))
            .unwrap_or_else(|_| Err(Error::internal("internal error; the log has the details")))
    }

    /// An error ended a statement: tells the client, and the transaction fails. Fatal ones are
    /// passed on.
    fn failed(&mut self, error: Error, statement: Option<&str>) -> Result<()> {
        let error = self.transaction_timeout(error);
        self.disarm_timeout();
        self.out.get_mut().drop_incomplete();
        self.committing = None;
        if error.code() == base::sqlstate::T_R_DEADLOCK_DETECTED {
            self.account.report.database.deadlocks += 1;
        }
        self.fail_transaction();
        if error.severity() != Severity::Error {
            return Err(error);
        }
        if self.server.spans.are_wanted() {
            let began = self.entry.look(|activity| activity.query_start).0;
            self.trace(began, None, (0, 0), Some(&error));
        }
        let (history, pid) = (&self.server.history, self.entry.pid);
        if error.code() == base::sqlstate::T_R_DEADLOCK_DETECTED {
            let error = self.with_statements(&error);
            history.note("deadlock", pid, &deadlocked(&error));
            log::error(pid, &error, statement);
        } else {
            history.note_error(pid, &error);
            log::error(pid, &error, statement);
        }
        self.send_notices();
        let encoding = self.encoding();
        let out = self.out.get_mut();
        recode::error(&mut out.buffer, &error, encoding);
        out.pace()
    }

    /// A deadlock's error as the log has it: with the statements of those who are part of it.
    fn with_statements(&self, error: &Error) -> Error {
        let detail = error.fields().detail.clone().unwrap_or_default();
        let pid = |line: &str| line.strip_prefix("Process ")?.split(' ').next()?.parse().ok();
        let statements: Vec<String> = detail
            .lines()
            .filter_map(pid)
            .filter_map(|pid| self.server.sessions.get(pid))
            .map(|entry| format!("\nProcess {}: {}", entry.pid, entry.activity().query.text()))
            .collect();
        error.clone().detail(detail + &statements.concat())
    }

    /// ReadyForQuery, after the parameters that changed.
    fn ready(&mut self) -> Result<()> {
        self.disarm_timeout();
        self.deliver();
        let out = self.out.get_mut();
        self.settings.report(&mut out.buffer);
        response::ready(&mut out.buffer, self.transaction.block.status());
        out.complete = out.buffer.len();
        (self.flush, self.ready) = (true, true);
        Ok(())
    }

    /// Puts notifications that have come into the output, between transactions; whether there were.
    fn deliver(&mut self) -> bool {
        let Some(notify) = &self.notify else { return false };
        if self.transaction.begun() {
            return false;
        }
        let come = notify.receive(&self.server.channels);
        let encoding = self.encoding();
        let out = self.out.get_mut();
        for n in &come {
            let start = out.buffer.len();
            response::notification(&mut out.buffer, n.pid, &n.channel, &n.payload);
            recode::lossy(&mut out.buffer, start, encoding);
            out.complete = out.buffer.len();
            out.need_durable(n.durable);
        }
        !come.is_empty()
    }

    /// The same while the client says nothing.
    fn deliver_while_idle(&mut self) -> Result<()> {
        if self.phase != Phase::Serving || self.skip_to_sync {
            return Ok(());
        }
        self.out.get_mut().open();
        if self.deliver() {
            let out = self.out.get_mut();
            out.wait_durable()?;
            out.send()?;
        }
        Ok(())
    }

    /// The session's part of LISTEN and NOTIFY, made when it is first needed.
    fn notify_mut(&mut self) -> &mut Pending {
        let (task, database) = (&self.entry.task, self.database.1);
        self.notify.get_or_insert_with(|| Box::new(Pending::new(task, database)))
    }

    /// Says that a statement's plan is known, and so which statement it is.
    fn identify_statement(&self, prepared: &sql::Prepared) {
        self.entry.set_writes(takes_locks(prepared));
        if self.settings.compute_query_id {
            self.entry.identify(prepared.identity.id);
        }
    }

    /// Tells others that the session waits for its client, if a statement has ended: before the
    /// client can know it, and not while its commit still waits for the log.
    fn note_idle(&mut self) {
        if !std::mem::take(&mut self.ready) {
            return;
        }
        let state = match self.transaction.block.status() {
            TransactionStatus::Idle => registry::SessionActivity::Idle,
            TransactionStatus::InBlock => registry::SessionActivity::IdleInTransaction,
            TransactionStatus::Failed => registry::SessionActivity::IdleInFailed,
        };
        self.entry.task.set_priority_class(match state {
            registry::SessionActivity::IdleInTransaction => PriorityClass::InTransaction,
            _ => PriorityClass::Ordinary,
        });
        if let Some((began, plan)) = self.committing.take() {
            self.count_statement(began, &plan.prepared, 0, true);
        }
        let ns = clock::recent_ns();
        clock::note_idle(ns);
        let now = server::at(ns);
        self.account.begin_waiting(now);
        if state != registry::SessionActivity::IdleInTransaction || self.account.is_due(now) {
            self.pass_on_counts(now);
        }
        self.entry.end_statement(state, now);
    }

    /// Nothing more to do now: gives the buffers back and sets the clock that ends idle sessions.
    fn rest(&mut self) {
        self.input.rest();
        self.out.get_mut().rest();
        self.routines.rest();
        self.entry.task.memory().rest();
        let [place, next, last] = self.statements.likely();
        sched::will_use(&self.entry.task, [place, next, last, self.portals.likely()]);
        if self.phase != Phase::Serving {
            return;
        }
        let settings = self.settings.get();
        let timeout = match self.transaction.block {
            Block::None => settings.int(setting::IDLE_SESSION_TIMEOUT),
            _ => settings.int(setting::IDLE_IN_TRANSACTION_SESSION_TIMEOUT),
        };
        let idle = (timeout > 0).then(|| Instant::now() + Duration::from_millis(timeout as u64));
        let deadline = [idle, self.transaction.deadline].into_iter().flatten().min();
        if deadline.is_some() || self.idle_deadline.is_some() {
            self.idle_deadline = deadline;
            self.server.workers.wake_at(&self.entry.task, deadline);
        }
    }

    /// The connection ends.
    fn end(&mut self, end: End) {
        self.release();
        self.count_end(&end);
        let encoding = self.encoding();
        let out = self.out.get_mut();
        out.drop_incomplete();
        if let End::Error(error) | End::Refused(error) = &end {
            match &end {
                End::Error(error) if self.phase == Phase::Serving => {
                    log::error(self.entry.pid, error, None);
                }
                End::Error(error) => log::refusal(self.entry.pid, error, None),
                _ => {}
            }
            if error.code() != base::sqlstate::CONNECTION_FAILURE {
                out.open();
                recode::error(&mut out.buffer, error, encoding);
            }
        }
        out.send_last();
        out.rest();
        // The next session uses the buffer again: a new one would have to be cleared.
        self.input.rest();
    }

    /// Counts how the session ended, if it was one.
    fn count_end(&mut self, end: &End) {
        if self.phase != Phase::Serving {
            return;
        }
        let counts = &mut self.account.report.database;
        match end {
            End::Quiet | End::Refused(_) => {}
            End::Gone => counts.abandoned += 1,
            End::Error(error) if error.code() == base::sqlstate::CONNECTION_FAILURE => {
                counts.abandoned += 1;
            }
            End::Error(error) if error.code() == base::sqlstate::ADMIN_SHUTDOWN => {
                counts.killed += 1;
            }
            End::Error(_) => counts.fatal += 1,
        }
        self.pass_on_counts(server::now());
    }

    /// Passes the counts on: others know of them from here on.
    fn pass_on_counts(&mut self, now: i64) {
        let database = self.database.1;
        if self.account.pass_on(&self.server.counters, database, &self.entry.task, now) {
            self.server.autovacuum.wake();
        }
    }

    /// Notes that a statement came, and when.
    fn begin_statement(&mut self, text: &str) {
        let now = statement_time();
        let waited = self.entry.begin_statement(text, now);
        self.account_statement(waited, now);
    }

    /// The same for a prepared one.
    fn begin_prepared(&mut self, statement: &Arc<PreparedStatement>) {
        let now = statement_time();
        let waited = self.entry.begin_prepared(statement, now);
        self.account_statement(waited, now);
    }

    fn account_statement(&mut self, waited: bool, now: i64) {
        if waited {
            self.account.begin_statement(self.transaction.block != Block::None, now);
        }
    }

    /// Gives back everything that the session holds.
    fn release(&mut self) {
        self.portals.clear();
        self.abort();
        self.catalog_tx.end_session();
        if let Some(mut notify) = self.notify.take() {
            notify.end(&self.server.channels);
        }
        self.server.engine.txn.locks.unlock_session_all(&self.owner);
        self.attachment = None;
    }

    /// The catalog as the transaction sees it. The published version is kept until another is
    /// published.
    fn view(&mut self) -> Arc<Snapshot> {
        if self.catalog_tx.changed() || self.catalog_tx.temporary_schema().is_some() {
            return self.catalog_tx.view();
        }
        let version = self.open.version();
        match &self.catalog {
            Some(known) if known.version == version => known.clone(),
            _ => {
                let current = self.catalog_tx.view();
                self.catalog = Some(current.clone());
                current
            }
        }
    }

    /// The view that a statement is planned with, without sharing it: the caller puts it back into `catalog`.
    /// (All workers share a version's reference count; a statement that touches it costs the others
    /// time.) That is the published version, unless the statement may mean something of the
    /// session's or the transaction's own.
    fn take_view(&mut self, text: &str) -> Arc<Snapshot> {
        if self.catalog_tx.changed() || self.catalog_tx.may_mean_temporary(text) {
            return self.catalog_tx.view();
        }
        let version = self.open.version();
        match self.catalog.take() {
            Some(known) if known.version == version => known,
            _ => self.catalog_tx.published().clone(),
        }
    }

    /// Sends what functions had to tell the client.
    fn send_notices(&mut self) {
        for notice in self.entry.types.take_notices() {
            self.notice("NOTICE", &notice);
        }
    }

    /// A NOTICE, WARNING or the like.
    fn notice(&mut self, severity: &'static str, notice: &Error) {
        if settings::notice_wanted(self.settings.get(), severity) {
            let encoding = self.encoding();
            let out = self.out.get_mut();
            let start = out.buffer.len();
            response::notice(&mut out.buffer, severity, notice);
            recode::lossy(&mut out.buffer, start, encoding);
            out.complete = out.buffer.len();
        }
    }
}

/// The error of a transaction whose time is up.
fn transaction_timed_out() -> Error {
    err!(TRANSACTION_TIMEOUT, "terminating connection due to transaction timeout").fatal()
}

/// A name or text of a message as text.
fn utf8(bytes: &[u8]) -> Result<&str> {
    if bytes.is_empty() {
        return Ok(""); // as most names are
    }
    types::encodings::utf8(bytes)
}

/// The statements of those who are part of a deadlock, on one line.
fn deadlocked(error: &Error) -> String {
    let detail = error.fields().detail.as_deref().unwrap_or_default();
    let statement = |line: &str| {
        let (pid, statement) = line.strip_prefix("Process ")?.split_once(": ")?;
        pid.parse::<i32>().is_ok().then(|| statement.to_owned())
    };
    detail.lines().filter_map(statement).collect::<Vec<_>>().join(" / ")
}

/// Whether others may have to wait for what the statement changes or locks.
fn takes_locks(prepared: &sql::Prepared) -> bool {
    let locks =
        matches!(prepared.statement, sql::Statement::Utility(sql::Utility::LockTable { .. }));
    prepared.writes || locks
}
