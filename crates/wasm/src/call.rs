//! Instances of modules, and the driver of a call.
//!
//! ```text
//!   the session's coroutine                          the instance's own stack (wasmtime's fiber)
//!   poll ──────────────────────────────────────────► the module runs
//!     ◄── pending: the epoch went on ───────────────── (looked at in each loop and call)
//!   looks for interrupts, perhaps yields the worker
//!   poll ──────────────────────────────────────────► goes on
//!     ◄── pending: a request ───────────────────────── execute, fetch, …
//!   answers it: the query may wait, the worker goes on with others
//!   poll ──────────────────────────────────────────► goes on with the answer
//! ```
//!
//! * An instance belongs to a session, and to a role in it. It lives from the first call until the session has
//!   nothing more to do for now: what lies in its memory is never seen by another statement, role or session.
//! * A function that is called while its module's instance is at work (by a query of the first) gets another.
//! * After an error the instance is dropped: nobody knows what state a trap has left. Dropping a call that is under
//!   way unwinds its stack.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use base::{Error, Result, err, sqlstate};
use exec::ExecContext;
use exec::context::TransactionEnd;
use exec::language::admit_request;
use exec::nested::{self, RowList};
use sql::utility::FetchHow;
use sql::{Prepared, Statement, Utility};
use types::Datum;
use wasmtime::{Func, Instance, Memory, Module, Store, Trap, WasmBacktrace};

use crate::each::Each;
use crate::engine::{Code, runtime};
use crate::host::{Guest, Request, Rows, Shared, cell};
use crate::value::{self, Reader, plain_type};

/// The key of the session's instances.
const KEY: &str = "wasm";
/// Instances of one module and role that rest in a session.
const RESTING_MAX: usize = 4;
/// The unit in which memories grow.
const PAGE_BYTES: usize = 64 << 10;
/// The least room for arguments.
const ROOM_MIN: usize = 4 << 10;

/// A module with a memory and a stack of its own.
pub struct Running {
    role: u32,
    pub store: Store<Guest>,
    pub instance: Instance,
    pub shared: Shared,
    pub memory: Option<Memory>,
    /// Where arguments are put, and how many bytes there are.
    room: (u32, usize),
    /// Exports that were looked up, by the number of the routine.
    functions: Vec<(u64, Func)>,
    /// Loops over them, in the same way.
    loops: Vec<(u64, Each)>,
}

/// A session's instances that rest, by module.
#[derive(Default)]
struct Resting(Mutex<Vec<(u64, Box<Running>)>>);

/// How the statement that calls answers requests.
pub struct Host {
    /// Whether statements see what was committed meanwhile, and may write.
    pub volatile: bool,
}

/// Whether no module may go on after it: the statement ends.
fn ends_statement(error: &Error) -> bool {
    let code = error.code();
    code == sqlstate::OUT_OF_MEMORY || code.0.starts_with(b"57")
}

/// Runs code of a module to its end. The outer error ends the statement; the inner one is the module's.
///
/// # Errors
/// Interrupts; errors of requests that end the statement.
pub fn drive<R>(
    future: impl Future<Output = wasmtime::Result<R>>,
    shared: &Shared,
    host: &Host,
    cx: &mut ExecContext<'_>,
) -> Result<wasmtime::Result<R>> {
    let clock = runtime()?;
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        clock.note_running();
        if let Poll::Ready(done) = future.as_mut().poll(&mut context) {
            return Ok(done);
        }
        let request = shared.lock().request.take();
        match request {
            None => sched::check_interrupts_now()?,
            Some(request) => {
                sched::check_interrupts()?;
                let answer = admit_request().and_then(|()| host.answer(request, shared, cx));
                let answer = match answer {
                    Ok(answer) => answer,
                    Err(error) if ends_statement(&error) => return Err(error),
                    Err(error) => {
                        shared.lock().failed = Some(error);
                        -1
                    }
                };
                shared.lock().answer = Some(answer);
            }
        }
    }
}

impl Running {
    /// An instance that the session has, or a new one.
    ///
    /// # Errors
    /// `38000` and others of the module's start; `53200`.
    pub fn take(code: &Arc<Code>, host: &Host, cx: &mut ExecContext<'_>) -> Result<Box<Running>> {
        let kept = cx.routines.kept_at_work(KEY, || Box::new(Resting::default()));
        if let Some(resting) = kept.downcast_ref::<Resting>() {
            let mut resting = resting.0.lock().unwrap_or_else(PoisonError::into_inner);
            let fits = |(number, running): &(u64, Box<Running>)| {
                *number == code.number && running.role == cx.role
            };
            if let Some(at) = resting.iter().rposition(fits) {
                return Ok(resting.swap_remove(at).1);
            }
        }
        Running::new(code, host, cx).map(Box::new)
    }

    fn new(code: &Arc<Code>, host: &Host, cx: &mut ExecContext<'_>) -> Result<Running> {
        let shared = Shared::default();
        let guest = Guest { shared: shared.clone(), memory: None, mapped: Default::default() };
        let mut store = Store::new(code.module.engine(), guest);
        store.limiter(|guest| guest);
        store.set_epoch_deadline(1);
        store.epoch_deadline_async_yield_and_update(1);
        let made = drive(code.linked.instantiate_async(&mut store), &shared, host, cx)?;
        let instance = made.map_err(|error| failure(error, &shared))?;
        let memory = instance.get_memory(&mut store, "memory");
        store.data_mut().memory = memory;
        let (functions, loops) = (Vec::new(), Vec::new());
        let role = cx.role;
        let mut running =
            Running { role, store, instance, shared, memory, room: (0, 0), functions, loops };
        if let Some(begin) = running.instance.get_func(&mut running.store, "_initialize") {
            let shared = running.shared.clone();
            let done =
                drive(begin.call_async(&mut running.store, &[], &mut []), &shared, host, cx)?;
            done.map_err(|error| failure(error, &shared))?;
        }
        Ok(running)
    }

    /// Gives it back to the session.
    pub fn give(self: Box<Self>, code: &Code, cx: &mut ExecContext<'_>) {
        let kept = cx.routines.kept_at_work(KEY, || Box::new(Resting::default()));
        let Some(resting) = kept.downcast_ref::<Resting>() else { return };
        let mut resting = resting.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = resting.iter().filter(|(number, _)| *number == code.number).count();
        if own < RESTING_MAX {
            resting.push((code.number, self));
        }
    }

    /// An export by the number of the routine that calls it.
    ///
    /// # Errors
    /// `42883`.
    pub fn function(&mut self, routine: u64, name: &str) -> Result<Func> {
        if let Some((_, function)) = self.functions.iter().find(|(number, _)| *number == routine) {
            return Ok(*function);
        }
        let found = self.instance.get_func(&mut self.store, name);
        let function = found
            .ok_or_else(|| err!(UNDEFINED_FUNCTION, "the module exports no function \"{name}\""))?;
        self.functions.push((routine, function));
        Ok(function)
    }

    /// The loop over rows that calls an export, with memory for so many bytes of them.
    ///
    /// # Errors
    /// `42883`, `53200`.
    pub fn each(
        &mut self,
        routine: u64,
        name: &str,
        module: &Module,
        bytes: usize,
        host: &Host,
        cx: &mut ExecContext<'_>,
    ) -> Result<(Func, Memory)> {
        if !self.loops.iter().any(|(number, _)| *number == routine) {
            let function = self.function(routine, name)?;
            let imports = [function.into()];
            let shared = self.shared.clone();
            let made = Instance::new_async(&mut self.store, module, &imports);
            let made = drive(made, &shared, host, cx)?;
            let instance = made.map_err(|error| failure(error, &shared))?;
            let run = instance.get_func(&mut self.store, "run");
            let memory = instance.get_memory(&mut self.store, "memory");
            let Some((run, memory)) = run.zip(memory) else {
                return Err(Error::internal("a loop without its exports"));
            };
            self.loops.push((routine, Each { run, memory }));
        }
        let found = self.loops.iter().find(|(number, _)| *number == routine);
        let each = &found.ok_or_else(|| Error::internal("a loop that is gone"))?.1;
        let (run, memory) = (each.run, each.memory);
        let missing = bytes.saturating_sub(memory.data_size(&self.store));
        if missing > 0 {
            let pages = missing.div_ceil(PAGE_BYTES) as u64;
            memory.grow(&mut self.store, pages).map_err(|error| failure(error, &self.shared))?;
        }
        Ok((run, memory))
    }

    /// Puts bytes into the module's memory, at an address that is a multiple of 8; they may lie there until the next
    /// call.
    ///
    /// # Errors
    /// `42P13` when the module exports neither memory nor `alloc`; those of `alloc`.
    pub fn put(&mut self, bytes: &[u8], host: &Host, cx: &mut ExecContext<'_>) -> Result<u32> {
        if bytes.len() > self.room.1 {
            let wanted = bytes.len().next_power_of_two().max(ROOM_MIN);
            let size = i32::try_from(wanted).map_err(|_| value::too_long())?;
            let alloc = self.instance.get_typed_func::<i32, i32>(&mut self.store, "alloc");
            let alloc = alloc.map_err(|_| {
                err!(
                    INVALID_FUNCTION_DEFINITION,
                    "the module exports no function alloc(i32) -> i32"
                )
                .hint(
                    "Values that are no plain numbers are passed in memory that the module gives.",
                )
            })?;
            let shared = self.shared.clone();
            let at = drive(alloc.call_async(&mut self.store, size), &shared, host, cx)?;
            let at = at.map_err(|error| failure(error, &shared))?;
            self.room = (at as u32, wanted);
        }
        let Some(memory) = self.memory else {
            return Err(err!(INVALID_FUNCTION_DEFINITION, "the module exports no memory"));
        };
        let from = self.room.0 as usize;
        let into = memory.data_mut(&mut self.store).get_mut(from..from + bytes.len());
        let into = into.ok_or_else(outside)?;
        into.copy_from_slice(bytes);
        Ok(self.room.0)
    }

    /// The bytes at `packed`'s upper half, as many as the lower half says.
    ///
    /// # Errors
    /// `38000`.
    pub fn bytes(&self, packed: i64) -> Result<&[u8]> {
        let (at, length) = ((packed as u64 >> 32) as usize, packed as u32 as usize);
        let memory = self.memory.ok_or_else(outside)?;
        memory.data(&self.store).get(at..at + length).ok_or_else(outside)
    }
}

fn outside() -> Error {
    err!(EXTERNAL_ROUTINE_EXCEPTION, "an address outside of the module's memory")
}

/// The server's error for one of a module.
pub fn failure(error: wasmtime::Error, shared: &Shared) -> Error {
    let mut exchange = shared.lock();
    let (raised, refused) = (exchange.raised.take(), exchange.refused);
    drop(exchange);
    let trap = error.downcast_ref::<Trap>().copied();
    let mut out = match (raised, trap) {
        (Some(error), _) => error,
        (None, Some(Trap::StackOverflow)) => {
            err!(STATEMENT_TOO_COMPLEX, "stack depth limit exceeded")
        }
        (None, _) if refused => err!(OUT_OF_MEMORY, "out of memory")
            .detail("WebAssembly reached the session's limit of memory."),
        (None, Some(trap)) => err!(EXTERNAL_ROUTINE_EXCEPTION, "{trap}"),
        (None, None) => err!(EXTERNAL_ROUTINE_EXCEPTION, "{}", error.root_cause()),
    };
    if let Some(trace) = error.downcast_ref::<WasmBacktrace>() {
        for frame in trace.frames() {
            let name = match frame.func_name() {
                Some(name) => name.to_owned(),
                None => format!("function {}", frame.func_index()),
            };
            let place = frame.module_offset().map_or(String::new(), |at| format!(" at 0x{at:x}"));
            out = out.context(format!("WebAssembly {name}{place}"));
        }
    }
    out
}

impl Host {
    fn answer(&self, request: Request, shared: &Shared, cx: &mut ExecContext<'_>) -> Result<i32> {
        match request {
            Request::Notice { level, text } => notice(level, text, cx),
            Request::Execute { text, params } => self.execute(&text, &params, shared, cx),
            Request::Open { text, params } => self.open(&text, &params, shared, cx),
            Request::Fetch { cursor, count } => fetch(cursor, count, shared, cx),
            Request::Close { cursor } => {
                let name = cursor_name(cursor, shared)?;
                cx.hooks.close_cursor(&name);
                Ok(0)
            }
            Request::End { commit } => {
                nested::end_transaction(TransactionEnd { commit, chain: false }, cx)?;
                Ok(0)
            }
        }
    }

    fn execute(
        &self,
        text: &str,
        params: &[u8],
        shared: &Shared,
        cx: &mut ExecContext<'_>,
    ) -> Result<i32> {
        let prepared = nested::prepare(text, &[], cx)?;
        check_kind(&prepared)?;
        if prepared.writes && !self.volatile {
            return Err(err!(
                FEATURE_NOT_SUPPORTED,
                "{} is not allowed in a non-volatile function",
                prepared.tag
            ));
        }
        let params = parameters(&prepared, params, cx)?;
        let types: Vec<base::Oid> = prepared.columns.iter().map(|c| c.ty).collect();
        let mut list = RowList::of(&types);
        let done = nested::subtransaction(cx, |cx| {
            let snapshot = nested::snapshot(self.volatile, cx);
            nested::run(&prepared, &params, snapshot, cx, &mut list)
        });
        let done =
            done.map_err(|e| e.without_position().context(format!("SQL statement \"{text}\"")))?;
        let changed = done.rows as i64;
        keep(&types, list.rows, changed, shared, cx)
    }

    fn open(
        &self,
        text: &str,
        params: &[u8],
        shared: &Shared,
        cx: &mut ExecContext<'_>,
    ) -> Result<i32> {
        let prepared = nested::prepare(text, &[], cx)?;
        let params = parameters(&prepared, params, cx)?;
        let name = nested::open_cursor(prepared, text, params, self.volatile, cx)?;
        let mut exchange = shared.lock();
        exchange.cursors.push(Some(name));
        Ok(exchange.cursors.len() as i32 - 1)
    }
}

fn notice(level: i32, text: String, cx: &mut ExecContext<'_>) -> Result<i32> {
    let severity = match level {
        i32::MIN..=14 => "DEBUG1",
        15 | 16 => "LOG",
        17 => "INFO",
        18 => "NOTICE",
        _ => "WARNING",
    };
    let code = match severity {
        "WARNING" => sqlstate::WARNING,
        _ => sqlstate::SUCCESSFUL_COMPLETION,
    };
    cx.hooks.notice(severity, Error::new(code, text));
    Ok(0)
}

fn cursor_name(cursor: i32, shared: &Shared) -> Result<String> {
    let exchange = shared.lock();
    let found = usize::try_from(cursor).ok().and_then(|n| exchange.cursors.get(n)?.clone());
    found.ok_or_else(|| err!(UNDEFINED_CURSOR, "cursor {cursor} does not exist"))
}

fn fetch(cursor: i32, count: i32, shared: &Shared, cx: &mut ExecContext<'_>) -> Result<i32> {
    let name = cursor_name(cursor, shared)?;
    let Some(mut cursor) = cx.hooks.take_cursor(&name) else {
        return Err(err!(UNDEFINED_CURSOR, "cursor \"{name}\" does not exist"));
    };
    let how = match count < 0 {
        true => FetchHow::Backward(Some(i64::from(count).saturating_neg())),
        false => FetchHow::Forward(Some(i64::from(count))),
    };
    let types: Vec<base::Oid> = cursor.columns().iter().map(|c| c.ty).collect();
    let mut list = RowList::of(&types);
    let fetched = cursor.fetch(how, false, cx, &mut list);
    cx.hooks.put_cursor(&name, cursor);
    let fetched = fetched?;
    keep(&types, list.rows, fetched as i64, shared, cx)
}

/// Keeps rows for the module; gives their number.
fn keep(
    types: &[base::Oid],
    rows: Vec<Vec<Datum>>,
    changed: i64,
    shared: &Shared,
    cx: &mut ExecContext<'_>,
) -> Result<i32> {
    let types: Vec<base::Oid> = types.iter().map(|ty| plain_type(*ty)).collect();
    let mut out = Rows { columns: types.len(), cells: Vec::new(), changed };
    for row in rows {
        sched::check_interrupts()?;
        for (value, ty) in row.iter().zip(&types) {
            out.cells.push(cell(value, *ty, cx)?);
        }
    }
    let mut exchange = shared.lock();
    // The place of one that was released is used again.
    let free = exchange.results.iter().position(Option::is_none);
    let at = free.unwrap_or_else(|| {
        exchange.results.push(None);
        exchange.results.len() - 1
    });
    exchange.results[at] = Some(out);
    Ok(at as i32)
}

fn parameters(prepared: &Prepared, given: &[u8], cx: &mut ExecContext<'_>) -> Result<Vec<Datum>> {
    let mut from = Reader(given);
    let mut out = Vec::with_capacity(prepared.params.len());
    for ty in &prepared.params {
        let field = from.field().ok_or_else(|| {
            err!(
                UNDEFINED_PARAMETER,
                "the statement has {} parameters, {} were given",
                prepared.params.len(),
                out.len()
            )
        })?;
        out.push(match field {
            Some(bytes) => value::decode(bytes, *ty, cx)?,
            None => value::null(*ty, cx)?,
        });
    }
    Ok(out)
}

/// `0A000` for statements that can't stand here.
fn check_kind(prepared: &Prepared) -> Result<()> {
    if let Statement::Utility(
        Utility::Begin(_)
        | Utility::Commit { .. }
        | Utility::Rollback { .. }
        | Utility::Savepoint(_)
        | Utility::Release(_)
        | Utility::RollbackTo(_),
    ) = &prepared.statement
    {
        return Err(err!(
            FEATURE_NOT_SUPPORTED,
            "{} cannot be executed from a function",
            prepared.tag
        )
        .hint("Use the imports commit and rollback."));
    }
    Ok(())
}
