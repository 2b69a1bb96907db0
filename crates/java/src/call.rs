//! A call: what a session does while a thread of the JVM works for it.
//!
//! ```text
//!   run ──► a lane (or the one that the session has: a call inside a call) ──► begin
//!     parked ◄─► news: a question ──► answered on the session's coroutine (SQL, cursors, notices, rows)
//!            └─► an interrupt ──► Thread.interrupt, and time to end in ──► no end: abandoned
//! ```
//!
//! The worker is free while Java works, and Java's thread waits while the session works.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use base::settings::{live_int, setting};
use base::{Error, Oid, Result, SqlState, WaitEvent, err, sqlstate};
use exec::ExecContext;
use exec::context::TransactionEnd;
use exec::language::{ResultForm, admit_request};
use exec::nested::{self, RowList, Savepoint};
use sched::Wake;
use sql::utility::FetchHow;
use sql::{Prepared, Statement, Utility};
use types::Datum;

use crate::jvm::{self, Jvm, Options};
use crate::lane::{Holder, Lane, Message, Next, Pool, ended};
use crate::locate;
use crate::value::{self, Reader, put_text, put_texts};

/// The key of the session's lane.
const KEY: &str = "java";

/// The server's errors that one call keeps for the case that Java throws them on.
const FAILURES_MAX: usize = 64;

/// Of an error's message, for Java.
const MESSAGE_MAX_BYTES: usize = 64 << 10;

static JVM: OnceLock<Jvm> = OnceLock::new();
static POOL: OnceLock<Pool> = OnceLock::new();
static MAKING: Mutex<()> = Mutex::new(());

fn all_ended() {
    if let Some(pool) = POOL.get() {
        pool.end();
    }
}

/// The pool of the JVM, which is started at the first use.
///
/// # Errors
/// Those of [`locate::library`] and [`jvm::start`].
pub fn pool(cx: &ExecContext<'_>) -> Result<&'static Pool> {
    if let Some(pool) = POOL.get() {
        return Ok(pool);
    }
    let (home, more) =
        (cx.settings.str(setting::JAVA_HOME), cx.settings.str(setting::JAVA_OPTIONS));
    let (home, more) = (home.to_owned(), more.to_owned());
    sched::blocking(WaitEvent::IPCJavaStart, move || {
        let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = POOL.get() {
            return Ok(pool);
        }
        if JVM.get().is_none() {
            let found = locate::library(&home)?;
            let heap_mb = live_int(setting::JAVA_HEAP_SIZE);
            let made = jvm::start(Options { found, heap_mb, more, on_end: all_ended })?;
            let _ = JVM.set(made);
        }
        let jvm = JVM.get().ok_or_else(|| Error::internal("no JVM"))?;
        let pool = Pool::new(jvm)?;
        Ok(POOL.get_or_init(|| pool))
    })
}

/// A thread of Java, as `pg_java_threads` shows it.
pub struct ThreadInfo {
    /// The number in the name of the JVM's thread.
    pub number: i64,
    /// `idle`, `active`, or `abandoned`: its statement has ended, but it does not.
    pub state: &'static str,
    /// The session's process number, its role, and when the call began; None when it is idle.
    pub holder: Option<Holder>,
}

/// The threads of Java.
pub fn threads() -> Vec<ThreadInfo> {
    let info = |(number, abandoned, holder): (i64, bool, Option<Holder>)| {
        let state = match (abandoned, holder) {
            (true, _) => "abandoned",
            (false, Some(_)) => "active",
            (false, None) => "idle",
        };
        ThreadInfo { number, state, holder }
    };
    POOL.get().map(|pool| pool.all().into_iter().map(info).collect()).unwrap_or_default()
}

/// Drops a routine or loader, if there is a JVM.
pub fn forget(number: i32) {
    if let Some(pool) = POOL.get().filter(|_| number != 0) {
        pool.forget(number);
    }
}

/// A lane, and the number of the call that it is at.
type LaneAtCall = (Arc<Lane>, i64);

/// The lane that a session has while it is in a call.
#[derive(Clone, Default)]
struct Active(Arc<Mutex<Option<LaneAtCall>>>);

impl Active {
    fn of(cx: &mut ExecContext<'_>) -> Active {
        let kept = cx.routines.kept_at_work(KEY, || Box::new(Active::default()));
        kept.downcast_ref::<Active>().cloned().unwrap_or_default()
    }

    fn set(&self, lane: Option<LaneAtCall>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = lane;
    }

    fn get(&self) -> Option<LaneAtCall> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A lane until it is given back, also when the session's coroutine unwinds.
struct Held {
    pool: &'static Pool,
    lane: Arc<Lane>,
    active: Active,
    done: bool,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.active.set(None);
        self.pool.give(self.lane.clone(), self.done);
    }
}

/// An answer to a job: a status of 0 and what was asked for.
pub struct Done(Message);

impl Done {
    /// The bytes after the status.
    pub fn payload(&self) -> &[u8] {
        &self.0[1..]
    }
}

/// The answerer of what Java asks in one call.
pub struct Host<'r> {
    /// Whether statements see what was committed meanwhile, and may write.
    pub volatile: bool,
    /// The form of the rows of a set-returning function.
    pub set: Option<&'r ResultForm>,
    /// The rows so far.
    pub rows: Vec<Datum>,
    /// Errors of statements, by number.
    failures: Vec<Error>,
    savepoints: Savepoints,
}

/// The savepoints of one call, each inside the one before. What is left of them ends with the call.
#[derive(Default)]
struct Savepoints {
    open: Vec<(i32, Savepoint)>,
    made: i32,
}

impl Savepoints {
    fn add(&mut self, cx: &mut ExecContext<'_>) -> i32 {
        self.made += 1;
        self.open.push((self.made, Savepoint::new(cx)));
        self.made
    }

    fn find(&self, number: i32) -> Result<usize> {
        self.open.iter().position(|(n, _)| *n == number).ok_or_else(|| {
            err!(S_E_INVALID_SPECIFICATION, "the savepoint does not exist in this call")
        })
    }

    fn roll_back(&mut self, number: i32, cx: &mut ExecContext<'_>) -> Result<()> {
        let at = self.find(number)?;
        self.open.truncate(at + 1);
        self.open[at].1.roll_back(cx);
        Ok(())
    }

    fn release(&mut self, number: i32, cx: &mut ExecContext<'_>) -> Result<()> {
        let at = self.find(number)?;
        if let Some((_, savepoint)) = self.open.drain(at..).next() {
            savepoint.release(cx);
        }
        Ok(())
    }

    /// The call has ended; `failed`: what was done since the first is undone.
    fn end(&mut self, failed: bool, cx: &mut ExecContext<'_>) {
        if let Some((_, first)) = self.open.drain(..).next() {
            if failed {
                first.roll_back(cx);
            }
            first.release(cx);
        }
    }
}

impl<'r> Host<'r> {
    /// For a call.
    pub fn new(volatile: bool, set: Option<&'r ResultForm>) -> Host<'r> {
        Host {
            volatile,
            set,
            rows: Vec::new(),
            failures: Vec::new(),
            savepoints: Savepoints::default(),
        }
    }
}

/// Whether Java may not go on after it: the statement ends.
fn ends_statement(error: &Error) -> bool {
    let code = error.code();
    code == sqlstate::OUT_OF_MEMORY
        || code.0.starts_with(b"57")
        || code.0.starts_with(b"08")
        || code.0 == *b"25P03"
}

/// Runs a job that asks for nothing.
///
/// # Errors
/// As [`run`].
pub fn plain(job: Vec<u8>, cx: &mut ExecContext<'_>) -> Result<Done> {
    run(job, &mut Host::new(false, None), cx)
}

/// Runs a job to its end.
///
/// # Errors
/// Java's exceptions; interrupts; those of questions that end the statement; of the pool.
pub fn run(job: Vec<u8>, host: &mut Host<'_>, cx: &mut ExecContext<'_>) -> Result<Done> {
    let pool = pool(cx)?;
    let active = Active::of(cx);
    if let Some((lane, serial)) = active.get() {
        let done = drive(pool, &lane, serial, job, host, cx);
        return ended_with(done, host, cx);
    }
    let (lane, serial) = pool.take(cx.role)?;
    active.set(Some((lane.clone(), serial)));
    let mut held = Held { pool, lane: lane.clone(), active, done: false };
    let done = drive(pool, &lane, serial, job, host, cx);
    held.done = !lane.is_abandoned() && !jvm::has_ended();
    drop(held);
    ended_with(done, host, cx)
}

/// A call's answer; its savepoints end with it.
fn ended_with(
    done: Result<Option<Message>>,
    host: &mut Host<'_>,
    cx: &mut ExecContext<'_>,
) -> Result<Done> {
    let result = done.and_then(|done| answered(done, host));
    host.savepoints.end(result.is_err(), cx);
    result
}

/// Drives a call until its end, or until it is abandoned.
fn drive(
    pool: &'static Pool,
    lane: &Arc<Lane>,
    serial: i64,
    job: Vec<u8>,
    host: &mut Host<'_>,
    cx: &mut ExecContext<'_>,
) -> Result<Option<Message>> {
    lane.begin(job, serial);
    let mut pending: Option<Error> = None;
    let mut deadline = None;
    let grace = Duration::from_millis(live_int(setting::JAVA_INTERRUPT_TIMEOUT).max(0) as u64);
    loop {
        match lane.next() {
            Next::Done(done) => return pending.map_or(Ok(done), Err),
            Next::Ended => return Err(ended()),
            Next::Asked(question) => {
                let given = match &pending {
                    Some(error) => Err(error.clone()),
                    None => host.answer(Reader(&question), cx),
                };
                drop(question);
                if lane.is_abandoned() {
                    return Err(given.err().unwrap_or_else(ended));
                }
                let answer = match given {
                    Ok(answer) => answer,
                    Err(error) => {
                        let answer = host.failure(&error);
                        if pending.is_none() && ends_statement(&error) {
                            pending = Some(error);
                            deadline = Some(Instant::now() + grace);
                            pool.interrupt(lane, serial);
                        }
                        answer
                    }
                };
                lane.answer(answer);
            }
            Next::Nothing => {
                if deadline.is_some_and(|at| Instant::now() >= at)
                    && let Some(error) = pending
                {
                    lane.abandon();
                    return Err(error);
                }
                if sched::park(WaitEvent::IPCJavaCall, deadline) == Wake::Interrupted
                    && let Err(error) = sched::check_interrupts_now()
                {
                    if pending.is_none() {
                        deadline = Some(Instant::now() + grace);
                        pool.interrupt(lane, serial);
                    }
                    // The later one is the more serious: a session that is to end.
                    pending = Some(error);
                }
            }
        }
    }
}

/// The result of a job, or the error that it is.
fn answered(done: Option<Message>, host: &mut Host<'_>) -> Result<Done> {
    let Some(message) = done else {
        return Err(err!(OUT_OF_MEMORY, "out of memory")
            .detail("Java has reached the limit of its heap (java_heap_size)."));
    };
    match Reader(&message).u8()? {
        0 => Ok(Done(message)),
        _ => Err(host.thrown(Reader(&message[1..]))?),
    }
}

fn state(code: &str) -> SqlState {
    match <[u8; 5]>::try_from(code.as_bytes()) {
        Ok(code) if code.iter().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase()) => {
            SqlState(code)
        }
        _ => sqlstate::EXTERNAL_ROUTINE_EXCEPTION,
    }
}

impl Host<'_> {
    /// The error of an exception: the server's own where it went through Java.
    fn thrown(&mut self, mut from: Reader<'_>) -> Result<Error> {
        let (code, message, causes) = (from.text()?, from.text()?, from.text()?);
        let number = from.i32()?;
        let own = usize::try_from(number).ok().and_then(|n| self.failures.get(n).cloned());
        let mut error = own.unwrap_or_else(|| {
            let error = Error::new(state(code), message);
            match causes.is_empty() {
                true => error,
                false => error.detail(causes),
            }
        });
        for _ in 0..from.count()? {
            error = error.context(format!("Java {}", from.text()?));
        }
        Ok(error)
    }

    /// An error as the answer to a question.
    fn failure(&mut self, error: &Error) -> Vec<u8> {
        if self.failures.len() >= FAILURES_MAX {
            self.failures.clear();
        }
        self.failures.push(error.clone());
        let mut out = vec![1];
        out.extend_from_slice(&(self.failures.len() as i32 - 1).to_be_bytes());
        let message = error.message();
        let message = &message[..message.floor_char_boundary(MESSAGE_MAX_BYTES)];
        for text in [error.code().as_str(), message] {
            out.extend_from_slice(&(text.len() as i32).to_be_bytes());
            out.extend_from_slice(text.as_bytes());
        }
        out
    }

    fn answer(&mut self, mut from: Reader<'_>, cx: &mut ExecContext<'_>) -> Result<Vec<u8>> {
        admit_request()?;
        let mut out = vec![0];
        match from.u8()? {
            1 => self.execute(from, &mut out, cx)?,
            3 => {
                let (name, count) = (from.text()?, from.i32()?);
                fetch(name, count, &mut out, cx)?;
            }
            4 => {
                cx.hooks.close_cursor(from.text()?);
            }
            5 => {
                let level = from.u8()?;
                notice(level, from.text()?, cx);
            }
            6 => {
                let commit = from.u8()? != 0;
                if !self.savepoints.open.is_empty() {
                    let what = if commit { "commit" } else { "roll back" };
                    return Err(err!(
                        INVALID_TRANSACTION_TERMINATION,
                        "cannot {what} while a subtransaction is active"
                    ));
                }
                nested::end_transaction(TransactionEnd { commit, chain: false }, cx)?;
            }
            7 => {
                let Some(form) = self.set else {
                    return Err(Error::internal("rows of a function that gives no set"));
                };
                for _ in 0..from.count()? {
                    sched::check_interrupts()?;
                    let row = value::result(&mut from, form, cx)?;
                    self.rows.push(row);
                }
            }
            8 => {
                let number = self.savepoints.add(cx);
                out.extend_from_slice(&number.to_be_bytes());
            }
            9 => self.savepoints.roll_back(from.i32()?, cx)?,
            10 => self.savepoints.release(from.i32()?, cx)?,
            _ => return Err(Error::internal("an unknown question of Java")),
        }
        Ok(out)
    }

    /// Runs statements, and answers with the last one's rows or count.
    fn execute(
        &mut self,
        mut from: Reader<'_>,
        out: &mut Vec<u8>,
        cx: &mut ExecContext<'_>,
    ) -> Result<()> {
        let text = from.text()?;
        let (fetch_size, given) = (from.i32()?, from.count()?);
        let parts = match given == 0 && text.contains(';') {
            true => sql::split_statements(text).map_err(|e| e.inside(text))?,
            false => vec![0..text.len()],
        };
        let count = parts.len();
        for part in parts {
            let whole = if count == 1 { text } else { &text[part] };
            let prepared = nested::prepare(whole, &[], cx)?;
            check_kind(&prepared)?;
            if prepared.writes && !self.volatile {
                return Err(err!(
                    FEATURE_NOT_SUPPORTED,
                    "{} is not allowed in a non-volatile function",
                    prepared.tag
                ));
            }
            if given < prepared.params.len() {
                return Err(err!(
                    UNDEFINED_PARAMETER,
                    "the statement has {} parameters, {given} were given",
                    prepared.params.len()
                ));
            }
            let mut params = Vec::with_capacity(prepared.params.len());
            for ty in &prepared.params {
                params.push(value::decode(&mut from, *ty, cx)?);
            }
            out.truncate(1);
            let rows = sql::embedded::returns_rows(&prepared);
            if fetch_size > 0 && rows && count == 1 {
                let name = nested::open_cursor(prepared.clone(), whole, params, self.volatile, cx)?;
                heading(&name, &prepared, out)?;
                return fetch(&name, fetch_size, out, cx);
            }
            let types: Vec<Oid> = prepared.columns.iter().map(|c| c.ty).collect();
            let mut list = RowList::of(&types);
            let volatile = self.volatile;
            let done = nested::subtransaction(cx, |cx| {
                let snapshot = nested::snapshot(volatile, cx);
                nested::run(&prepared, &params, snapshot, cx, &mut list)
            });
            let done = done
                .map_err(|e| e.without_position().context(format!("SQL statement \"{whole}\"")))?;
            if rows {
                heading("", &prepared, out)?;
                put_rows(&types, list.rows, out, cx)?;
            } else {
                out.push(0);
                out.extend_from_slice(&done.rows.to_be_bytes());
            }
        }
        Ok(())
    }
}

/// A cursor's name (none: all rows follow), and the columns' names and types.
fn heading(cursor: &str, prepared: &Prepared, out: &mut Vec<u8>) -> Result<()> {
    out.push(1);
    put_text(cursor, out)?;
    put_texts(prepared.columns.iter().map(|c| c.name.as_str()), out)?;
    let types: Vec<_> = prepared.columns.iter().map(|c| types::io::format_type(c.ty, -1)).collect();
    put_texts(types.iter().map(|name| &name[..]), out)
}

fn put_rows(
    types: &[Oid],
    rows: Vec<Vec<Datum>>,
    out: &mut Vec<u8>,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    value::put_count(rows.len(), out)?;
    for row in rows {
        sched::check_interrupts()?;
        for (field, ty) in row.iter().zip(types) {
            value::encode(field, *ty, out, cx)?;
        }
    }
    Ok(())
}

fn fetch(name: &str, count: i32, out: &mut Vec<u8>, cx: &mut ExecContext<'_>) -> Result<()> {
    let Some(mut cursor) = cx.hooks.take_cursor(name) else {
        return Err(err!(UNDEFINED_CURSOR, "cursor \"{name}\" does not exist"));
    };
    let types: Vec<Oid> = cursor.columns().iter().map(|c| c.ty).collect();
    let mut list = RowList::of(&types);
    let fetched = cursor.fetch(FetchHow::Forward(Some(i64::from(count))), false, cx, &mut list);
    cx.hooks.put_cursor(name, cursor);
    fetched?;
    put_rows(&types, list.rows, out, cx)
}

fn notice(level: u8, text: &str, cx: &mut ExecContext<'_>) {
    let severity = match level {
        0..=14 => "DEBUG1",
        15..=18 => "NOTICE",
        _ => "WARNING",
    };
    let code = match severity {
        "WARNING" => sqlstate::WARNING,
        _ => sqlstate::SUCCESSFUL_COMPLETION,
    };
    cx.hooks.notice(severity, Error::new(code, text));
}

/// `0A000` for statements that can't stand here.
fn check_kind(prepared: &Prepared) -> Result<()> {
    if let Statement::Utility(
        Utility::Begin(_)
        | Utility::Commit { .. }
        | Utility::Rollback { .. }
        | Utility::Savepoint(_)
        | Utility::Release(_)
        | Utility::RollbackTo(_)
        | Utility::TwoPhase(..),
    ) = &prepared.statement
    {
        return Err(err!(
            FEATURE_NOT_SUPPORTED,
            "{} cannot be executed from a function",
            prepared.tag
        )
        .hint("Use Connection.setSavepoint(), and commit() and rollback() in procedures."));
    }
    Ok(())
}
