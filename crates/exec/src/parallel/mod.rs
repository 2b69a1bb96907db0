//! Execution contexts of a statement's helpers ([`sched::helpers`]): the part of an execution context that all threads of
//! one statement share, and the part that each has of its own. What the threads that run one part of a plan have in
//! common, the pieces of its scans and the tables of its joins, is a team ([`crate::ops::team`]).

use std::sync::atomic::{AtomicUsize, Ordering};

use base::settings::{SettingId, Settings, setting};
use base::{Error, Oid, Result, err};
use catalog::HelperView;
use catalog::system::ServerInfo;
use sched::SpinLock;
use sql::{Plan, Prepared};
use txn::{Isolation, Snapshot, Transaction};
use types::func::SessionFunction;
use types::{Datum, FormatContext, TypeIo, oids};

use crate::compiled::SessionRoutines;
use crate::context::{Acting, Engine, ExecContext, Guard, OpenCursor, SessionHooks};
use crate::modify::deferred::Deferred;
use crate::ops::measure::Measure;
use crate::ops::operator::{self, Operator};
use crate::ops::team::Member;
use crate::run::{ExecState, Run};
use crate::session::sequence_values::SessionSequences;
use crate::subquery::{Known, SubqueryState};
use crate::tally::Tally;

/// What all threads of one statement share.
#[derive(Clone)]
pub struct Shared<'a> {
    engine: &'a Engine,
    tx: &'a Transaction,
    snapshot: Snapshot,
    settings: &'a Settings,
    format: &'a FormatContext,
    server: &'a dyn ServerInfo,
    search_path: &'a [u32],
    user: &'a str,
    role: u32,
    guard: Guard,
    session_user: (&'a str, u32),
    database: (&'a str, u32),
    catalog: HelperView,
    environment: u64,
    prepared: &'a Prepared,
    params: &'a [Datum],
    slots: Vec<Datum>,
    /// Results of uncorrelated subqueries, by the numbers of their plans.
    subqueries: Vec<(usize, Known)>,
    started: Option<i64>,
    measured: bool,
}

const _: () = {
    const fn all_threads_may_have<T: Send + Sync>() {}
    all_threads_may_have::<Shared<'static>>();
};

impl<'a> Shared<'a> {
    /// Of a running statement.
    pub fn of<'c: 'a>(run: &mut Run<'a, 'c>) -> Shared<'a> {
        let catalog = run.cx.catalog_tx.for_helper();
        let cx: &ExecContext<'c> = run.cx;
        let known = |(n, state): (usize, &SubqueryState)| Some((n, state.known()?));
        Shared {
            engine: cx.engine,
            tx: cx.tx,
            snapshot: run.snapshot,
            settings: cx.settings,
            format: cx.format,
            server: cx.server,
            search_path: cx.search_path,
            user: cx.user,
            role: cx.role,
            guard: cx.guard,
            session_user: cx.session_user,
            database: cx.database,
            catalog,
            environment: cx.environment,
            prepared: run.prepared,
            params: run.params,
            slots: run.state.slots.clone(),
            subqueries: run.state.subqueries.iter().enumerate().filter_map(known).collect(),
            started: run.state.started,
            measured: run.state.measure.is_some(),
        }
    }

    /// Calls `help` with an execution of the same statement, of the running thread's own; returns what
    /// that counted.
    ///
    /// # Errors
    /// The function's.
    pub fn with_run<R>(
        &self,
        help: impl FnOnce(&mut Run<'_, '_>) -> Result<R>,
    ) -> Result<(R, Counted)> {
        let mut state = self.state();
        let mut counted = Counted::default();
        let made = self.with_state(&mut state, &mut counted, help)?;
        counted.measures = state.measure.unwrap_or_default();
        Ok((made, counted))
    }

    /// Calls `work` with operators that the running thread goes on with.
    ///
    /// # Errors
    /// The function's.
    pub fn with_part<R>(
        &self,
        part: &mut Part,
        work: impl FnOnce(&mut dyn Operator, &mut Run<'_, '_>) -> Result<R>,
    ) -> Result<R> {
        let Part { op, state, counted, .. } = part;
        self.with_state(state, counted, |run| work(op.as_mut(), run))
    }

    /// The state with which a thread begins.
    fn state(&self) -> ExecState {
        let mut state = ExecState::new(self.prepared);
        state.slots.clone_from(&self.slots);
        for (n, value) in &self.subqueries {
            state.subqueries[*n].know(value.clone());
        }
        state.started = self.started;
        state.measure = self.measured.then(Vec::new);
        state
    }

    fn with_state<R>(
        &self,
        state: &mut ExecState,
        counted: &mut Counted,
        help: impl FnOnce(&mut Run<'_, '_>) -> Result<R>,
    ) -> Result<R> {
        let mut catalog_tx = self.catalog.open();
        let Counted { tally, notices, .. } = counted;
        let mut hooks = NoSession::new(self.settings, notices);
        let mut routines = SessionRoutines::default();
        let mut cx = ExecContext {
            engine: self.engine,
            tx: self.tx,
            catalog_tx: &mut catalog_tx,
            snapshot: self.snapshot,
            settings: self.settings,
            settings_version: 0,
            format: self.format,
            server: self.server,
            hooks: &mut hooks,
            search_path: self.search_path,
            user: self.user,
            role: self.role,
            guard: self.guard,
            session_user: self.session_user,
            database: self.database,
            params: self.params,
            tally,
            environment: self.environment,
            nonatomic: false,
            routines: &mut routines,
        };
        let mut run = Run {
            cx: &mut cx,
            prepared: self.prepared,
            params: self.params,
            snapshot: self.snapshot,
            state,
        };
        help(&mut run)
    }
}

/// Operators that a helper runs, with all that belongs to them: another thread can go on with them.
pub struct Part {
    op: Box<dyn Operator>,
    member: Member,
    state: ExecState,
    counted: Counted,
}

impl Part {
    /// Those of a plan, before the first row.
    ///
    /// # Errors
    /// Those of building operators.
    pub fn new(shared: &Shared<'_>, member: Member, plan: &Plan) -> Result<Part> {
        let (mut state, mut counted) = (shared.state(), Counted::default());
        let build = |run: &mut Run<'_, '_>| operator::build_for(&member, plan, run);
        let op = shared.with_state(&mut state, &mut counted, build)?;
        Ok(Part { op, member, state, counted })
    }

    /// It takes pieces again.
    pub fn go_on(&self) {
        self.member.stop(false);
    }

    /// Whether it was refused pieces that may be there.
    pub fn was_refused(&self) -> bool {
        self.member.was_refused()
    }

    /// It is done: its counts become the statement's.
    pub fn end(self, number: usize, run: &mut Run<'_, '_>) {
        let measures = self.state.measure.unwrap_or_default();
        Counted { measures, ..self.counted }.add_to(number, run);
    }

    /// Hands over the messages so far.
    pub fn tell(&mut self, run: &mut Run<'_, '_>) {
        for (severity, message) in self.counted.notices.drain(..) {
            run.cx.hooks.notice(severity, message);
        }
    }
}

/// A helper's counters, and the notices of its functions.
#[derive(Default)]
pub struct Counted {
    tally: Tally,
    measures: Vec<Measure>,
    notices: Vec<(&'static str, Error)>,
}

impl Counted {
    /// Adds it to the statement's own, as the work of the helper with this number.
    pub fn add_to(self, number: usize, run: &mut Run<'_, '_>) {
        for (oid, counts) in self.tally.iter() {
            run.cx.tally.of(*oid).add(counts);
        }
        for (severity, message) in self.notices {
            run.cx.hooks.notice(severity, message);
        }
        for measure in self.measures {
            let all = run.state.measure.iter_mut().flatten();
            if let Some(own) = all.into_iter().find(|m| m.node == measure.node) {
                own.add(number, measure);
            }
        }
    }
}

/// How many helpers a statement may start now, of as many as its plan asks for.
pub fn available(planned: u16, run: &mut Run<'_, '_>) -> Helpers {
    // Statements of functions that a parallel statement runs have none of their own.
    let planned = if is_parallel(run.cx) { 0 } else { usize::from(planned) };
    available_to(planned, run.cx)
}

/// How many helpers a command may start now, of as many as it would like.
pub fn available_to(planned: usize, cx: &ExecContext<'_>) -> Helpers {
    let settings = cx.settings;
    // A serializable transaction notes what it reads in one place.
    let may = cx.tx.isolation() != Isolation::Serializable;
    let planned = if may { planned } else { 0 };
    let wanted = match settings.str(setting::FORCE_PARALLEL_MODE) {
        "off" => sched::helpers::available(planned),
        _ => planned,
    };
    let most = settings.int(setting::MAX_PARALLEL_WORKERS).max(0) as usize;
    let take = |running: usize| Some(running + wanted.min(most.saturating_sub(running)));
    let before = RUNNING.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
    let before = before.unwrap_or_else(|before| before);
    let count = wanted.min(most.saturating_sub(before));
    Helpers { count, ended: AtomicUsize::new(0) }
}

/// How many helpers a command would like for so many pages: one at the least size of a table for which there are any
/// (`min_parallel_table_scan_size`), one more each time that it is three times as large.
pub fn wanted_for(pages: u32, cx: &ExecContext<'_>) -> usize {
    let most = cx.settings.int(setting::MAX_PARALLEL_MAINTENANCE_WORKERS).max(0) as usize;
    let mut size = cx.settings.int(setting::MIN_PARALLEL_TABLE_SCAN_SIZE).max(1) as u64;
    let mut wanted = 0;
    while u64::from(pages) >= size && wanted < most {
        wanted += 1;
        size *= 3;
    }
    wanted
}

/// Runs `work` here (true) and in as many helpers (false) as there may be now of those that are wanted; says how many
/// there were.
///
/// # Errors
/// The function's, of any thread.
pub fn on_all(
    wanted: usize,
    cx: &ExecContext<'_>,
    work: &(dyn Fn(bool) -> Result<()> + Sync),
) -> Result<usize> {
    let helpers = available_to(wanted, cx);
    if helpers.count() == 0 {
        return work(true).map(|()| 0);
    }
    let ((), started) = sched::helpers::together(helpers.count(), &|| work(false), || work(true))?;
    Ok(started)
}

/// The results of `work` for each number below `count`, in their order, by at most the wanted number of helpers.
///
/// # Errors
/// The function's, of any thread; interrupts.
pub fn each<T: Send>(
    count: usize,
    wanted: usize,
    cx: &ExecContext<'_>,
    work: &(dyn Fn(usize) -> Result<T> + Sync),
) -> Result<Vec<T>> {
    let (next, made) = (AtomicUsize::new(0), SpinLock::new(Vec::with_capacity(count)));
    let take = |leads: bool| -> Result<()> {
        while leads || !sched::helpers::should_yield() {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                break;
            }
            sched::check_interrupts()?;
            // After an error nobody need go on.
            let one = work(number).inspect_err(|_| next.store(count, Ordering::Relaxed))?;
            made.lock().push((number, one));
        }
        Ok(())
    };
    on_all(wanted.min(count.saturating_sub(1)), cx, &take)?;
    let mut made = made.into_inner();
    made.sort_unstable_by_key(|(number, _)| *number);
    Ok(made.into_iter().map(|(_, one)| one).collect())
}

/// Whether helpers can read and write texts of a type: that asks neither the session nor the catalog.
pub fn reads_values_of(ty: Oid) -> bool {
    let by_format = [
        oids::DATE,
        oids::TIME,
        oids::TIMETZ,
        oids::TIMESTAMP,
        oids::TIMESTAMPTZ,
        oids::INTERVAL,
        oids::MONEY,
    ];
    let element = TypeIo::array_element(ty).unwrap_or(ty);
    types::io::reads_immutably(element) || by_format.contains(&element)
}

/// The results of `work` for each number below `count`, in their order, as a part of a running statement, by its own
/// thread and these helpers.
///
/// # Errors
/// The function's, of any thread; interrupts.
pub fn each_in<T: Send>(
    count: usize,
    helpers: &Helpers,
    run: &mut Run<'_, '_>,
    work: &(dyn Fn(usize, &mut Run<'_, '_>) -> Result<T> + Sync),
) -> Result<Vec<T>> {
    let (next, made) = (AtomicUsize::new(0), SpinLock::new(Vec::with_capacity(count)));
    let take = |leads: bool, run: &mut Run<'_, '_>| -> Result<()> {
        while leads || !sched::helpers::should_yield() {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                break;
            }
            sched::check_interrupts()?;
            // After an error nobody need go on.
            let one = work(number, run).inspect_err(|_| next.store(count, Ordering::Relaxed))?;
            made.lock().push((number, one));
        }
        Ok(())
    };
    match helpers.count().min(count.saturating_sub(1)) {
        0 => take(true, run)?,
        helpers => {
            let shared = Shared::of(run);
            let counts: SpinLock<Vec<Counted>> = SpinLock::default();
            let help = || {
                let ((), counted) = shared.with_run(|run| take(false, run))?;
                counts.lock().push(counted);
                Ok(())
            };
            together(helpers, &help, |run| take(true, run), run)?;
            for (number, counted) in counts.into_inner().into_iter().enumerate() {
                counted.add_to(number, run);
            }
        }
    }
    let mut made = made.into_inner();
    made.sort_unstable_by_key(|(number, _)| *number);
    Ok(made.into_iter().map(|(_, one)| one).collect())
}

/// Helpers that count as running in the server (`max_parallel_workers`) until this is dropped.
pub struct Helpers {
    count: usize,
    /// Those that have ended before.
    ended: AtomicUsize,
}

impl Helpers {
    /// No helpers.
    pub fn none() -> Helpers {
        Helpers { count: 0, ended: AtomicUsize::new(0) }
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.count
    }

    /// One has ended while the statement's own thread goes on with the others, or waits.
    pub fn give_one_back(&self) {
        self.ended.fetch_add(1, Ordering::Relaxed);
        RUNNING.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for Helpers {
    fn drop(&mut self) {
        let ended = self.ended.load(Ordering::Relaxed);
        RUNNING.fetch_sub(self.count - ended, Ordering::Relaxed);
    }
}

static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// Where helpers leave what they made.
pub type Results<T> = SpinLock<Vec<(T, Counted)>>;

/// The role of a thread in a statement that several threads run now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// The statement has no helpers at the moment.
    #[default]
    Alone,
    /// The statement's own thread.
    Leader,
    /// A helper.
    Helper,
}

/// Whether several threads run the statement now.
pub fn is_parallel(cx: &mut ExecContext<'_>) -> bool {
    cx.hooks.deferred().parallel != Role::Alone
}

/// `25000` while several threads run the statement.
///
/// # Errors
/// See above.
pub fn expect_alone(what: &str, cx: &mut ExecContext<'_>) -> Result<()> {
    match is_parallel(cx) {
        true => Err(err!(
            INVALID_TRANSACTION_STATE,
            "cannot execute {what} during a parallel operation"
        )),
        false => Ok(()),
    }
}

/// Runs a statement's helpers, its own thread as their leader. While they run, what their functions do must be what
/// any thread may do.
///
/// # Errors
/// As [`sched::helpers::together`].
pub fn together<R>(
    count: usize,
    help: &(dyn Fn() -> Result<()> + Sync),
    lead: impl FnOnce(&mut Run<'_, '_>) -> Result<R>,
    run: &mut Run<'_, '_>,
) -> Result<(R, usize)> {
    run.cx.hooks.deferred().parallel = Role::Leader;
    let done = sched::helpers::together(count, help, || lead(run));
    run.cx.hooks.deferred().parallel = Role::Alone;
    done
}

/// A helper has no session: what plans leave to it needs none. The functions of users that it runs may read settings
/// and say something to the client.
struct NoSession<'h> {
    sequences: SessionSequences,
    deferred: Deferred,
    settings: &'h Settings,
    notices: &'h mut Vec<(&'static str, Error)>,
}

impl<'h> NoSession<'h> {
    fn new(settings: &'h Settings, notices: &'h mut Vec<(&'static str, Error)>) -> NoSession<'h> {
        let deferred = Deferred::of_helper();
        NoSession { sequences: SessionSequences::default(), deferred, settings, notices }
    }
}

impl SessionHooks for NoSession<'_> {
    fn call(
        &mut self,
        function: SessionFunction,
        args: &[Datum],
        _acting: Acting,
    ) -> Result<Datum> {
        if let (SessionFunction::CurrentSetting, Some(Datum::Text(name))) = (function, args.first())
            && let Some(id) = SettingId::find(name).filter(|id| !id.is_secret())
        {
            return Ok(Datum::text(&base::settings::show(id, self.settings.get(id))));
        }
        let name = function.name();
        Err(err!(FEATURE_NOT_SUPPORTED, "function {name} in a parallel worker is not supported")
            .hint("Mark the function that calls it PARALLEL RESTRICTED."))
    }

    fn notice(&mut self, severity: &'static str, error: Error) {
        self.notices.push((severity, error));
    }

    fn open_cursor(&mut self, _cursor: OpenCursor) -> Result<String> {
        Err(err!(FEATURE_NOT_SUPPORTED, "a cursor in a parallel worker is not supported")
            .hint("Mark the function that opens it PARALLEL RESTRICTED."))
    }

    fn sequences(&mut self) -> &mut SessionSequences {
        &mut self.sequences
    }

    fn deferred(&mut self) -> &mut Deferred {
        &mut self.deferred
    }

    fn copy_read(&mut self) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }

    fn end_sessions(&mut self, _database: u32) -> Result<()> {
        Err(Error::internal("sessions end in a parallel worker"))
    }

    fn password(&mut self, _role: &str, _password: &str) -> Result<Option<String>> {
        Err(Error::internal("a password in a parallel worker"))
    }
}
