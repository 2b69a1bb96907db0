//! The functions that a module may import, from `threadgres`.
//!
//! Those that ask the server (SQL, cursors, notices, ends of transactions) only leave a [`Request`] and suspend: the
//! call's driver ([`crate::call`]), outside of the module's stack, answers it and goes on. So a query may wait for as
//! long as it likes without a frame of the module on the worker's stack.
//!
//! `A` is an address, `N` a length or number, both `i32`. `text` stands for two parameters: address and length.
//! Functions that write to (`into`: address and room, both `i32`) give the length that there is, whatever the room;
//! -1 is NULL.
//!
//! | function | meaning |
//! |---|---|
//! | `is_null(N) -> i32` | whether argument N (from 0) is NULL |
//! | `set_null()` | the result is NULL |
//! | `emit(value)`, `emit_i64(i64)`, `emit_f64(f64)`, `emit_null()` | a row of a set-returning function |
//! | `notice(level, text)` | a message to the client: 14 debug, 15 log, 17 info, 18 notice, 19 warning |
//! | `raise(A of five letters, text)` | ends the call with this SQLSTATE and message |
//! | `execute(text, parameters) -> N` | runs SQL in a subtransaction: a result, or -1 (see `error_*`) |
//! | `open(text, parameters) -> N` | a cursor over a query, or -1 |
//! | `fetch(cursor, count) -> N` | the next rows as a result, or -1 |
//! | `close(cursor)` | |
//! | `rows(result)`, `columns(result) -> i32`, `changed(result) -> i64` | its numbers |
//! | `cell(result, row, column, into) -> i32` | a value as bytes |
//! | `cell_i64`, `cell_f64` `(result, row, column)` | a number (0 for NULL and what is none) |
//! | `release(result)` | gives its memory back before the call ends |
//! | `error_code(A)`, `error_message(into) -> i32` | of what failed last: five letters; text |
//! | `rethrow()` | ends the call with that error |
//! | `commit() -> i32`, `rollback() -> i32` | in procedures: 0, or -1 |
//! | `trigger(what, into) -> i32` | 0 name, 1 when, 2 level, 3 operation, 4 table, 5 schema, 6… arguments |
//! | `old(column name, into)`, `new(column name, into) -> i32` | a field; -2: there is no such column or row |
//! | `set(column name, value) -> i32` | changes the new row; length -1: NULL; gives -2 as `new` |
//!
//! Parameters are fields, one after the other: an `i32` length (-1: NULL) and the bytes of the parameter's type.
//! `env.abort`, by which AssemblyScript ends, raises `38000`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::{Error, SqlState, err};
use exec::ExecContext;
use sched::memory::Mapped;
use types::Datum;
use wasmtime::{Caller, Engine, Linker, Memory, ResourceLimiter};

use crate::value;

/// Bytes of a parameter's or an answer's text that are taken at most.
const TEXT_MAX: usize = 64 << 20;
/// Elements of a table.
const TABLE_MAX: usize = 1 << 20;

/// A request to the server.
pub enum Request {
    Notice { level: i32, text: String },
    Execute { text: String, params: Vec<u8> },
    Open { text: String, params: Vec<u8> },
    Fetch { cursor: i32, count: i32 },
    Close { cursor: i32 },
    End { commit: bool },
}

/// A value that WebAssembly gave, or may ask for.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    Null,
    /// A number, and the bytes that its type has.
    Int(i64, usize),
    Float(f64, usize),
    Bytes(Vec<u8>),
}

/// The rows of a query.
#[derive(Default)]
pub struct Rows {
    pub columns: usize,
    /// Row by row.
    pub cells: Vec<Cell>,
    pub changed: i64,
}

impl Rows {
    fn cell(&self, row: i32, column: i32) -> Option<&Cell> {
        let (row, column) = (usize::try_from(row).ok()?, usize::try_from(column).ok()?);
        let at = row.checked_mul(self.columns)?.checked_add(column)?;
        if column < self.columns { self.cells.get(at) } else { None }
    }
}

/// One firing of a trigger.
#[derive(Default)]
pub struct Firing {
    /// The answers of the import `trigger`, by number.
    pub facts: Vec<String>,
    pub columns: Vec<String>,
    pub old: Option<Vec<Cell>>,
    pub new: Option<Vec<Cell>>,
    /// Columns of the new row that the function has set.
    pub set: Vec<(usize, Option<Vec<u8>>)>,
}

/// The state that a call shares with the functions that its module imports.
#[derive(Default)]
pub struct Exchange {
    pub request: Option<Request>,
    pub answer: Option<i32>,
    pub nulls: Vec<bool>,
    pub result_null: bool,
    /// Whether rows may be emitted.
    pub set: bool,
    pub emitted: Vec<Cell>,
    pub results: Vec<Option<Rows>>,
    pub cursors: Vec<Option<String>>,
    pub failed: Option<Error>,
    pub raised: Option<Error>,
    pub firing: Option<Box<Firing>>,
    /// Memory was refused.
    pub refused: bool,
}

impl Exchange {
    /// Forgets a call.
    pub fn clear(&mut self) {
        self.request = None;
        self.answer = None;
        self.result_null = false;
        self.set = false;
        self.failed = None;
        self.refused = false;
        self.emitted.clear();
        self.results.clear();
        self.cursors.clear();
        self.firing = None;
    }
}

/// An exchange, between the driver and the module; neither holds it for longer than a look.
#[derive(Clone, Default)]
pub struct Shared(Arc<Mutex<Exchange>>);

impl Shared {
    pub fn lock(&self) -> MutexGuard<'_, Exchange> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The data of an instance's store.
pub struct Guest {
    pub shared: Shared,
    pub memory: Option<Memory>,
    /// The memory that it has.
    pub mapped: Mapped,
}

impl ResourceLimiter for Guest {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let more = desired.saturating_sub(current);
        let fits = maximum.is_none_or(|most| desired <= most)
            && sched::memory::left().is_none_or(|left| more <= left);
        match fits {
            true => self.mapped.set(self.mapped.bytes() + more),
            false => self.shared.lock().refused = true,
        }
        Ok(fits)
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(desired <= TABLE_MAX && maximum.is_none_or(|most| desired <= most))
    }
}

type At<'a> = Caller<'a, Guest>;

fn trap(message: &'static str) -> wasmtime::Error {
    wasmtime::Error::msg(message)
}

fn memory(caller: &mut At<'_>) -> wasmtime::Result<Memory> {
    if let Some(memory) = caller.data().memory {
        return Ok(memory);
    }
    let memory = caller.get_export("memory").and_then(wasmtime::Extern::into_memory);
    memory.ok_or_else(|| trap("the module exports no memory"))
}

fn place(at: i32, length: i32) -> Option<std::ops::Range<usize>> {
    let from = at as u32 as usize;
    Some(from..from.checked_add(usize::try_from(length).ok()?)?)
}

fn bytes(caller: &mut At<'_>, at: i32, length: i32) -> wasmtime::Result<Vec<u8>> {
    let memory = memory(caller)?;
    let place = place(at, length).filter(|place| place.len() <= TEXT_MAX);
    let found = place.and_then(|place| memory.data(&*caller).get(place));
    found.map(<[u8]>::to_vec).ok_or_else(|| trap("an address outside of the memory"))
}

fn text(caller: &mut At<'_>, at: i32, length: i32) -> wasmtime::Result<String> {
    String::from_utf8(bytes(caller, at, length)?).map_err(|_| trap("a text that is not UTF-8"))
}

/// Writes as much as there is room for, and gives the whole length.
fn put(caller: &mut At<'_>, value: &[u8], at: i32, room: i32) -> wasmtime::Result<i32> {
    let memory = memory(caller)?;
    let place = place(at, room).ok_or_else(|| trap("a negative length"))?;
    let length = value.len().min(place.len());
    if length > 0 {
        let into = memory.data_mut(&mut *caller).get_mut(place.start..place.start + length);
        into.ok_or_else(|| trap("an address outside of the memory"))?
            .copy_from_slice(&value[..length]);
    }
    i32::try_from(value.len()).map_err(|_| trap("a value of more than 2 GB"))
}

impl Cell {
    fn bytes(&self) -> Option<Vec<u8>> {
        match self {
            Cell::Null => None,
            Cell::Int(n, width) => Some(n.to_le_bytes()[..(*width).min(8)].to_vec()),
            Cell::Float(n, 4) => Some((*n as f32).to_le_bytes().to_vec()),
            Cell::Float(n, _) => Some(n.to_le_bytes().to_vec()),
            Cell::Bytes(bytes) => Some(bytes.clone()),
        }
    }
}

fn put_cell(caller: &mut At<'_>, cell: Option<Cell>, at: i32, room: i32) -> wasmtime::Result<i32> {
    match cell.map(|cell| cell.bytes()) {
        None => Ok(-2),
        Some(None) => Ok(-1),
        Some(Some(bytes)) => put(caller, &bytes, at, room),
    }
}

/// Leaves a request and suspends until the driver has answered it.
async fn ask(shared: Shared, request: Request) -> i32 {
    shared.lock().request = Some(request);
    std::future::poll_fn(|_| match shared.lock().answer.take() {
        Some(answer) => std::task::Poll::Ready(answer),
        None => std::task::Poll::Pending,
    })
    .await
}

fn result<R>(caller: &At<'_>, number: i32, look: impl FnOnce(&Rows) -> R) -> wasmtime::Result<R> {
    let exchange = caller.data().shared.lock();
    let found = usize::try_from(number).ok().and_then(|n| exchange.results.get(n)?.as_ref());
    found.map(look).ok_or_else(|| trap("no such result"))
}

fn emit(caller: &At<'_>, cell: Cell) -> wasmtime::Result<()> {
    let mut exchange = caller.data().shared.lock();
    if !exchange.set {
        return Err(trap("rows are emitted only by a set-returning function"));
    }
    exchange.emitted.push(cell);
    Ok(())
}

fn field(caller: &mut At<'_>, new: bool, name: (i32, i32)) -> wasmtime::Result<Option<Cell>> {
    let name = text(caller, name.0, name.1)?;
    let exchange = caller.data().shared.lock();
    let Some(firing) = &exchange.firing else { return Ok(None) };
    let row = if new { &firing.new } else { &firing.old };
    let at = firing.columns.iter().position(|column| *column == name);
    let Some((row, at)) = row.as_ref().zip(at) else { return Ok(None) };
    let set = firing.set.iter().rev().find(|(n, _)| new && *n == at);
    Ok(match set {
        Some((_, value)) => Some(value.clone().map_or(Cell::Null, Cell::Bytes)),
        None => row.get(at).cloned(),
    })
}

/// The SQLSTATE of five letters or digits; `38000` for anything else.
fn state(code: &[u8]) -> SqlState {
    match <[u8; 5]>::try_from(code) {
        Ok(code) if code.iter().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase()) => {
            SqlState(code)
        }
        _ => base::sqlstate::EXTERNAL_ROUTINE_EXCEPTION,
    }
}

fn raise(caller: &At<'_>, error: Error) -> wasmtime::Error {
    caller.data().shared.lock().raised = Some(error);
    trap("raised")
}

/// A text of AssemblyScript: UTF-16, with its length in bytes before it.
fn assembly_script(caller: &mut At<'_>, at: i32) -> Option<String> {
    let length = bytes(caller, at.checked_sub(4).filter(|at| *at > 0)?, 4).ok()?;
    let length = i32::from_le_bytes(length.try_into().ok()?).min(2000);
    let units = bytes(caller, at, length).ok()?;
    let units: Vec<u16> = units.chunks_exact(2).map(|b| u16::from_le_bytes([b[0], b[1]])).collect();
    Some(String::from_utf16_lossy(&units))
}

/// The imports of every module.
///
/// # Errors
/// None that the table below could make: names are different.
pub fn linker(engine: &Engine) -> wasmtime::Result<Linker<Guest>> {
    const M: &str = "threadgres";
    let mut linker = Linker::new(engine);
    let l = &mut linker;
    l.func_wrap(M, "is_null", |caller: At<'_>, n: i32| -> i32 {
        let exchange = caller.data().shared.lock();
        let null = usize::try_from(n).ok().and_then(|n| exchange.nulls.get(n).copied());
        i32::from(null.unwrap_or(true))
    })?;
    l.func_wrap(M, "set_null", |caller: At<'_>| caller.data().shared.lock().result_null = true)?;
    l.func_wrap(M, "emit", |mut caller: At<'_>, at: i32, length: i32| {
        let value = bytes(&mut caller, at, length)?;
        emit(&caller, Cell::Bytes(value))
    })?;
    l.func_wrap(M, "emit_i64", |caller: At<'_>, n: i64| emit(&caller, Cell::Int(n, 8)))?;
    l.func_wrap(M, "emit_f64", |caller: At<'_>, n: f64| emit(&caller, Cell::Float(n, 8)))?;
    l.func_wrap(M, "emit_null", |caller: At<'_>| emit(&caller, Cell::Null))?;
    l.func_wrap(M, "raise", |mut caller: At<'_>, code: i32, at: i32, length: i32| {
        let code = bytes(&mut caller, code, 5)?;
        let message = text(&mut caller, at, length)?;
        Err::<(), _>(raise(&caller, Error::new(state(&code), message)))
    })?;
    l.func_wrap(M, "rethrow", |caller: At<'_>| {
        let failed = caller.data().shared.lock().failed.take();
        let failed = failed.unwrap_or_else(|| err!(EXTERNAL_ROUTINE_EXCEPTION, "no error"));
        Err::<(), _>(raise(&caller, failed))
    })?;
    l.func_wrap(M, "rows", |caller: At<'_>, n: i32| {
        result(&caller, n, |rows| (rows.cells.len() / rows.columns.max(1)) as i32)
    })?;
    l.func_wrap(M, "columns", |caller: At<'_>, n: i32| result(&caller, n, |r| r.columns as i32))?;
    l.func_wrap(M, "changed", |caller: At<'_>, n: i32| result(&caller, n, |r| r.changed))?;
    l.func_wrap(
        M,
        "cell",
        |mut caller: At<'_>, n: i32, row: i32, column: i32, at: i32, room: i32| {
            let cell = result(&caller, n, |rows| rows.cell(row, column).cloned())?;
            put_cell(&mut caller, cell, at, room)
        },
    )?;
    l.func_wrap(M, "cell_i64", |caller: At<'_>, n: i32, row: i32, column: i32| {
        result(&caller, n, |rows| match rows.cell(row, column) {
            Some(Cell::Int(n, _)) => *n,
            Some(Cell::Float(n, _)) => *n as i64,
            _ => 0,
        })
    })?;
    l.func_wrap(M, "cell_f64", |caller: At<'_>, n: i32, row: i32, column: i32| {
        result(&caller, n, |rows| match rows.cell(row, column) {
            Some(Cell::Int(n, _)) => *n as f64,
            Some(Cell::Float(n, _)) => *n,
            _ => 0.0,
        })
    })?;
    l.func_wrap(M, "release", |caller: At<'_>, n: i32| {
        let mut exchange = caller.data().shared.lock();
        if let Some(slot) = usize::try_from(n).ok().and_then(|n| exchange.results.get_mut(n)) {
            *slot = None;
        }
    })?;
    l.func_wrap(M, "error_code", |mut caller: At<'_>, at: i32| {
        let code = caller.data().shared.lock().failed.as_ref().map_or(*b"00000", |e| e.code().0);
        put(&mut caller, &code, at, 5).map(drop)
    })?;
    l.func_wrap(M, "error_message", |mut caller: At<'_>, at: i32, room: i32| {
        let failed = caller.data().shared.lock().failed.as_ref().map(|e| e.message().to_owned());
        put(&mut caller, failed.unwrap_or_default().as_bytes(), at, room)
    })?;
    l.func_wrap(M, "trigger", |mut caller: At<'_>, fact: i32, at: i32, room: i32| {
        let exchange = caller.data().shared.lock();
        let facts = exchange.firing.as_ref().map(|firing| &firing.facts[..]).unwrap_or_default();
        let found = usize::try_from(fact).ok().and_then(|n| facts.get(n)).cloned();
        drop(exchange);
        put_cell(&mut caller, found.map(|text| Cell::Bytes(text.into_bytes())), at, room)
    })?;
    for (name, new) in [("old", false), ("new", true)] {
        l.func_wrap(
            M,
            name,
            move |mut caller: At<'_>, name: i32, length: i32, at: i32, room: i32| {
                let cell = field(&mut caller, new, (name, length))?;
                put_cell(&mut caller, cell, at, room)
            },
        )?;
    }
    l.func_wrap(
        M,
        "set",
        |mut caller: At<'_>,
         name: i32,
         length: i32,
         at: i32,
         value: i32|
         -> wasmtime::Result<i32> {
            let name = text(&mut caller, name, length)?;
            let value = if value < 0 { None } else { Some(bytes(&mut caller, at, value)?) };
            let mut exchange = caller.data().shared.lock();
            let Some(firing) = exchange.firing.as_mut().filter(|f| f.new.is_some()) else {
                return Ok(-2);
            };
            let Some(column) = firing.columns.iter().position(|column| *column == name) else {
                return Ok(-2);
            };
            firing.set.push((column, value));
            Ok(0)
        },
    )?;
    l.func_wrap(
        "env",
        "abort",
        |mut caller: At<'_>, message: i32, file: i32, line: i32, column: i32| {
            let text = assembly_script(&mut caller, message).unwrap_or_else(|| "abort".to_owned());
            let file = assembly_script(&mut caller, file).unwrap_or_default();
            let error = err!(EXTERNAL_ROUTINE_EXCEPTION, "{text}");
            let error = error.context(format!("{file} line {line} column {column}"));
            Err::<(), _>(raise(&caller, error))
        },
    )?;
    requests(l)?;
    Ok(linker)
}

/// The functions that ask the server.
fn requests(l: &mut Linker<Guest>) -> wasmtime::Result<()> {
    const M: &str = "threadgres";
    l.func_wrap_async(M, "notice", |mut caller: At<'_>, (level, at, length): (i32, i32, i32)| {
        Box::new(async move {
            let text = text(&mut caller, at, length)?;
            ask(caller.data().shared.clone(), Request::Notice { level, text }).await;
            wasmtime::Result::Ok(())
        })
    })?;
    for (name, open) in [("execute", false), ("open", true)] {
        l.func_wrap_async(
            M,
            name,
            move |mut caller: At<'_>, (at, length, params, room): (i32, i32, i32, i32)| {
                Box::new(async move {
                    let text = text(&mut caller, at, length)?;
                    let params = bytes(&mut caller, params, room)?;
                    let request = match open {
                        true => Request::Open { text, params },
                        false => Request::Execute { text, params },
                    };
                    wasmtime::Result::Ok(ask(caller.data().shared.clone(), request).await)
                })
            },
        )?;
    }
    l.func_wrap_async(M, "fetch", |caller: At<'_>, (cursor, count): (i32, i32)| {
        let shared = caller.data().shared.clone();
        Box::new(async move { ask(shared, Request::Fetch { cursor, count }).await })
    })?;
    l.func_wrap_async(M, "close", |caller: At<'_>, (cursor,): (i32,)| {
        let shared = caller.data().shared.clone();
        Box::new(async move {
            ask(shared, Request::Close { cursor }).await;
        })
    })?;
    for (name, commit) in [("commit", true), ("rollback", false)] {
        l.func_wrap_async(M, name, move |caller: At<'_>, (): ()| {
            let shared = caller.data().shared.clone();
            Box::new(async move { ask(shared, Request::End { commit }).await })
        })?;
    }
    Ok(())
}

/// A value of SQL of a type without domains.
///
/// # Errors
/// Those of printing it.
pub fn cell(value: &Datum, ty: base::Oid, cx: &mut ExecContext<'_>) -> base::Result<Cell> {
    Ok(match value {
        Datum::Null => Cell::Null,
        Datum::Float4(v) => Cell::Float(f64::from(*v), 4),
        Datum::Float8(v) => Cell::Float(*v, 8),
        other => match (value::number(other), value::width(ty)) {
            (Some(bits), Some(width)) => Cell::Int(bits as i64, width),
            _ => {
                let mut bytes = Vec::new();
                value::encode(other, ty, &mut bytes, cx)?;
                Cell::Bytes(bytes)
            }
        },
    })
}
