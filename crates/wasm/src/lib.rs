//! WebAssembly: functions, procedures and triggers that wasmtime runs.
//!
//! ```text
//!   CREATE FUNCTION ──► module: compiled once for all sessions ──► export: its types are checked
//!   a call ──► Running: an instance of the session's ──► arguments as numbers or bytes in its memory
//!                 │ driven by the session's coroutine     │ threadgres.execute, …
//!                 └────────── SQL inside the statement ◄──┘
//! ```
//!
//! * The language is trusted: a module reaches its own memory and the imports of [`host`], which have no file, no
//!   network and no clock. Naming a file of the server as a module is for superusers.
//! * A function's export takes its arguments as [`value`] says: plain numbers as such, everything else as address and
//!   length of bytes, for which the module exports `memory` and `alloc(i32) -> i32`. What is passed belongs to the
//!   host and may change after the call. A result that is no number is `address << 32 | length`; -1 is NULL. The
//!   module may use its memory again at the next call.
//! * A set-returning function's export has no result and emits rows; a trigger's takes nothing and gives 0, or 1 to skip
//!   the row. A procedure is as a function.
//! * A function declared by `AS 'module', 'export BATCH'` takes the number of rows and the address of as many `u32`
//!   offsets from there as there are arguments, each of a [`column`]; it gives one column. Calls of it that are not
//!   volatile come with as many rows as the executor has at hand.
//! * A function of plain numbers that is not volatile is called for as many rows at once by a loop made for it ([`each`]).
//! * Interrupts and time slices come by epochs ([`engine`]); memory counts as the session's and ends at its limit.
#![warn(missing_docs)]
#![forbid(unsafe_code)]

mod call;
mod column;
mod each;
mod engine;
mod host;
mod source;
mod value;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::{Error, Oid, Result, err};
use catalog::Function;
use exec::ExecContext;
use exec::language::{
    CallSignature, Language, ResultForm, Routine, TriggerCall, TriggerResult,
    check_trigger_parameters, only_as_trigger, signature_text, types_when_made,
};
use types::datum::Shape;
use types::oids::{EVENT_TRIGGER, RECORD, TRIGGER, VOID};
use types::{Column, Datum, Text};
use wasmtime::{ExternType, FuncType, Module, Val, ValType};

use call::{Host, Running, drive, failure};
use engine::{Code, runtime};
use host::{Cell, Firing, cell};
use value::{Form, plain_type};

/// The language.
pub struct Wasm;

/// The export that a function names, and whether it takes batches.
fn export_of(function: &Function) -> (&str, bool) {
    let body = function.body.trim();
    match body.rsplit_once(char::is_whitespace) {
        Some((name, word)) if word.eq_ignore_ascii_case("batch") => (name.trim_end(), true),
        _ => (body, false),
    }
}

/// A function that is ready to be called.
struct WasmRoutine {
    number: u64,
    /// As CONTEXT lines name it.
    signature: String,
    export: String,
    code: Arc<Code>,
    /// Types of the arguments without domains.
    args: Vec<(Oid, Form)>,
    result: ResultForm,
    set: bool,
    batch: bool,
    /// The loop that calls it for many rows; see [`each`].
    each: Option<Module>,
    strict: bool,
    host: Host,
}

/// The type that an export must have.
fn wanted(routine: &WasmRoutine) -> (Vec<ValType>, Vec<ValType>) {
    if routine.batch {
        return (vec![ValType::I32, ValType::I32], vec![ValType::I64]);
    }
    let mut params = Vec::new();
    for (_, form) in &routine.args {
        match form {
            Form::I32 => params.push(ValType::I32),
            Form::I64 => params.push(ValType::I64),
            Form::F32 => params.push(ValType::F32),
            Form::F64 => params.push(ValType::F64),
            Form::Bytes => params.extend([ValType::I32, ValType::I32]),
        }
    }
    let result = match routine.result.ty {
        _ if routine.set => None,
        VOID => None,
        TRIGGER => Some(ValType::I32),
        _ if routine.result.shape.is_some() => Some(ValType::I64),
        ty => Some(match Form::of(plain_type(ty)) {
            Form::I32 => ValType::I32,
            Form::I64 | Form::Bytes => ValType::I64,
            Form::F32 => ValType::F32,
            Form::F64 => ValType::F64,
        }),
    };
    (params, result.into_iter().collect())
}

fn written(params: &[ValType], results: &[ValType]) -> String {
    let list =
        |types: &[ValType]| types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    match results.is_empty() {
        true => format!("({})", list(params)),
        false => format!("({}) -> {}", list(params), list(results)),
    }
}

/// `42883` and `42P13` for an export that isn't there or has another type.
fn check_export(routine: &WasmRoutine) -> Result<()> {
    let module = &routine.code.module;
    let name = &routine.export;
    let Some(ExternType::Func(found)) = module.get_export(name) else {
        return Err(err!(UNDEFINED_FUNCTION, "the module exports no function \"{name}\""));
    };
    let (params, results) = wanted(routine);
    let same = |wanted: &[ValType], found: Vec<ValType>| {
        wanted.len() == found.len() && wanted.iter().zip(&found).all(|(a, b)| ValType::eq(a, b))
    };
    let of = |found: &FuncType| {
        (found.params().collect::<Vec<_>>(), found.results().collect::<Vec<_>>())
    };
    let (has_params, has_results) = of(&found);
    if same(&params, has_params.clone()) && same(&results, has_results.clone()) {
        return Ok(());
    }
    Err(err!(
        INVALID_FUNCTION_DEFINITION,
        "export \"{name}\" of the module has another type than the function"
    )
    .detail(format!(
        "It is {}, the function needs {}.",
        written(&has_params, &has_results),
        written(&params, &results)
    )))
}

impl Language for Wasm {
    fn name(&self) -> &'static str {
        "wasm"
    }

    fn validate(
        &self,
        function: &Arc<Function>,
        _body_at: Option<u32>,
        cx: &mut ExecContext<'_>,
    ) -> Result<()> {
        if !cx.settings.bool(base::settings::setting::CHECK_FUNCTION_BODIES) {
            return Ok(());
        }
        match types_when_made(function) {
            None => runtime()?.module(&function.library).map(drop),
            Some(signature) => self.compile(function, &signature, cx).map(drop),
        }
    }

    fn compile(
        &self,
        function: &Arc<Function>,
        signature: &CallSignature,
        cx: &mut ExecContext<'_>,
    ) -> Result<Arc<dyn Routine>> {
        check_trigger_parameters(function, signature)?;
        if signature.result == EVENT_TRIGGER {
            return Err(Error::unsupported("an event trigger function in this language"));
        }
        let mut result = ResultForm::of(function, signature, plain_type(signature.result), cx);
        let (export, batch) = export_of(function);
        if batch && (function.set || function.procedure || signature.result == TRIGGER) {
            return Err(err!(
                INVALID_FUNCTION_DEFINITION,
                "only a function of one value can take batches"
            ));
        }
        let code = runtime()?.module(&function.library)?;
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let form = |ty: &Oid| {
            let ty = plain_type(*ty);
            (ty, Form::of(ty))
        };
        if function.procedure && result.shape.is_none() {
            result.ty = VOID;
        }
        let mut routine = WasmRoutine {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            signature: signature_text(function),
            export: export.to_owned(),
            code,
            args: signature.args.iter().map(form).collect(),
            result,
            set: function.set,
            batch,
            each: None,
            strict: function.strict,
            host: Host { volatile: function.volatility == 'v' },
        };
        check_export(&routine)?;
        let plain = |form: &Form| *form != Form::Bytes;
        let (params, results) = wanted(&routine);
        let one = !batch && !function.set && !function.procedure && !routine.host.volatile;
        if let ([result], true) = (&results[..], one && signature.result != TRIGGER)
            && routine.result.shape.is_none()
            && plain(&Form::of(plain_type(routine.result.ty)))
            && routine.args.iter().all(|(_, form)| plain(form))
            && !each::asks_for_nulls(&routine.code.module)
        {
            routine.each = Some(runtime()?.loop_of(each::text(&params, result))?);
        }
        Ok(Arc::new(routine))
    }

    fn run_block(&self, _body: &str, _cx: &mut ExecContext<'_>) -> Result<()> {
        Err(err!(FEATURE_NOT_SUPPORTED, "language \"wasm\" does not support inline code execution"))
    }
}

/// Results as modules give them.
trait Results: Sized {
    /// The value of a row's or a value's bytes.
    fn decode(&self, bytes: &[u8], cx: &mut ExecContext<'_>) -> Result<Datum>;

    /// The value of what was emitted.
    fn emitted(&self, cell: Cell, cx: &mut ExecContext<'_>) -> Result<Datum>;

    fn number(&self, n: i64, cx: &mut ExecContext<'_>) -> Result<Datum>;
}

impl Results for ResultForm {
    fn decode(&self, bytes: &[u8], cx: &mut ExecContext<'_>) -> Result<Datum> {
        match &self.shape {
            Some(shape) if self.ty == RECORD => value::record(bytes, shape, cx),
            None if self.ty == RECORD => Err(err!(
                FEATURE_NOT_SUPPORTED,
                "function returning record called in context that cannot accept type record"
            )),
            _ => value::decode(bytes, self.ty, cx),
        }
    }

    fn emitted(&self, cell: Cell, cx: &mut ExecContext<'_>) -> Result<Datum> {
        let one = |shape: &Arc<Shape>, value| Datum::record(shape.clone(), vec![value]);
        if let (Some(shape), Cell::Int(..) | Cell::Float(..)) = (&self.shape, &cell) {
            let [(_, ty)] = &shape.columns[..] else {
                return Err(err!(DATATYPE_MISMATCH, "a row is emitted as bytes"));
            };
            let column = ResultForm { ty: *ty, shape: None };
            return Ok(one(shape, column.emitted(cell, cx)?));
        }
        match cell {
            Cell::Null => value::null(self.ty, cx),
            Cell::Bytes(bytes) => self.decode(&bytes, cx),
            Cell::Int(n, _) => self.number(n, cx),
            Cell::Float(n, _) => {
                exec::nested::convert(Datum::Float8(n), types::oids::FLOAT8, self.ty, cx)
            }
        }
    }

    fn number(&self, n: i64, cx: &mut ExecContext<'_>) -> Result<Datum> {
        let base = plain_type(self.ty);
        let narrow = |fits: bool, name: &str| match fits {
            true => Ok(()),
            false => Err(err!(NUMERIC_VALUE_OUT_OF_RANGE, "{name} out of range")),
        };
        let value = match Form::of(base) {
            Form::I64 => value::from_number(n as u64, base)?,
            Form::I32 => {
                let fits = i32::try_from(n).is_ok()
                    || base == types::oids::OID && u32::try_from(n).is_ok();
                narrow(fits, &types::io::format_type(base, -1))?;
                value::from_number(n as u64, base)?
            }
            _ => return exec::nested::convert(Datum::Int8(n), types::oids::INT8, self.ty, cx),
        };
        exec::nested::convert(value, base, self.ty, cx)
    }
}

/// The bits of a plain number that an export gave.
fn bits(value: &Val) -> u64 {
    match value {
        Val::I32(n) => i64::from(*n) as u64,
        Val::I64(n) => *n as u64,
        Val::F32(n) => u64::from(*n),
        Val::F64(n) => *n,
        _ => 0,
    }
}

impl WasmRoutine {
    fn failed(&self, error: Error) -> Error {
        error.context(format!("WebAssembly function {}", self.signature))
    }

    /// Runs the export with an instance; `before` gives its parameters, `finish` takes its result.
    fn run<R>(
        &self,
        cx: &mut ExecContext<'_>,
        before: impl FnOnce(&mut Running, &mut Vec<Val>, &mut ExecContext<'_>) -> Result<()>,
        finish: impl FnOnce(Option<&Val>, &mut Running, &mut ExecContext<'_>) -> Result<R>,
    ) -> Result<R> {
        let mut running =
            Running::take(&self.code, &self.host, cx).map_err(|error| self.failed(error))?;
        running.shared.lock().clear();
        let step = || {
            let mut params = Vec::with_capacity(2 * self.args.len());
            before(&mut running, &mut params, cx)?;
            let function = running.function(self.number, &self.export)?;
            let mut results = [Val::I32(0)];
            let count = usize::from(!wanted_none(self));
            let shared = running.shared.clone();
            let call = function.call_async(&mut running.store, &params, &mut results[..count]);
            let done = drive(call, &shared, &self.host, cx)?;
            done.map_err(|error| failure(error, &shared))?;
            finish(results[..count].first(), &mut running, cx)
        };
        match step() {
            Ok(value) => {
                running.give(&self.code, cx);
                Ok(value)
            }
            // The instance goes: nobody knows in what state it is.
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Numbers as they are; everything else into the module's memory, one after the other.
    fn arguments(
        &self,
        args: &[Datum],
        running: &mut Running,
        params: &mut Vec<Val>,
        cx: &mut ExecContext<'_>,
    ) -> Result<()> {
        let mut bytes = Vec::new();
        // The places of those parameters that are addresses.
        let mut addresses = Vec::new();
        let nulls = args.iter().any(Datum::is_null);
        for (value, (ty, form)) in args.iter().zip(&self.args) {
            let number = || value::number(value).unwrap_or(0);
            match form {
                Form::I32 => params.push(Val::I32(number() as i32)),
                Form::I64 => params.push(Val::I64(number() as i64)),
                Form::F32 => params.push(Val::F32(number() as u32)),
                Form::F64 => params.push(Val::F64(number())),
                Form::Bytes if value.is_null() => params.extend([Val::I32(0), Val::I32(-1)]),
                Form::Bytes => {
                    bytes.resize(bytes.len().next_multiple_of(8), 0);
                    let at = bytes.len();
                    value::encode(value, *ty, &mut bytes, cx)?;
                    let length = i32::try_from(bytes.len() - at).map_err(|_| value::too_long())?;
                    addresses.push(params.len());
                    params.extend([Val::I32(at as i32), Val::I32(length)]);
                }
            }
        }
        if !addresses.is_empty() {
            let base = running.put(&bytes, &self.host, cx)?;
            for at in addresses {
                if let Val::I32(offset) = &mut params[at] {
                    *offset = offset.wrapping_add(base as i32);
                }
            }
        }
        let mut exchange = running.shared.lock();
        exchange.nulls.clear();
        match nulls {
            true => exchange.nulls.extend(args.iter().map(Datum::is_null)),
            false => exchange.nulls.resize(args.len(), false),
        }
        Ok(())
    }

    /// The value that an export's result stands for.
    fn value(
        &self,
        result: Option<&Val>,
        running: &mut Running,
        cx: &mut ExecContext<'_>,
    ) -> Result<Datum> {
        let ty = self.result.ty;
        let Some(result) = result else {
            return Ok(if ty == VOID { Datum::text("") } else { Datum::Null });
        };
        let base = plain_type(ty);
        let bytes = self.result.shape.is_some() || Form::of(base) == Form::Bytes;
        let is_null = std::mem::take(&mut running.shared.lock().result_null);
        if is_null || bytes && matches!(result, Val::I64(-1)) {
            return value::null(ty, cx);
        }
        if !bytes {
            let value = value::from_number(bits(result), base)?;
            return exec::nested::convert(value, base, ty, cx);
        }
        let taken = running.bytes(bits(result) as i64)?;
        self.result.decode(taken, cx)
    }

    /// The column of the results of calls with plain numbers, one for each row.
    fn looped(
        &self,
        module: &Module,
        args: &[Column],
        rows: usize,
        cx: &mut ExecContext<'_>,
    ) -> Result<Column> {
        let is_null = |row: usize| args.iter().any(|column| column.is_null(row));
        let nulls: Vec<bool> = match args.iter().any(|column| !column.nulls.is_empty()) {
            true => (0..rows).map(is_null).collect(),
            false => Vec::new(),
        };
        if !self.strict && nulls.contains(&true) {
            return self.one_by_one(args, rows, cx);
        }
        let stride = each::stride(args.len());
        let mut bytes = Vec::with_capacity(rows * stride);
        let mut called = 0usize;
        for row in (0..rows).filter(|row| !nulls.get(*row).copied().unwrap_or(false)) {
            for (column, (ty, _)) in args.iter().zip(&self.args) {
                let number = value::number(&column.get(row, *ty)).unwrap_or(0);
                bytes.extend_from_slice(&number.to_le_bytes());
            }
            called += 1;
            bytes.resize(called * stride, 0);
        }
        let mut running =
            Running::take(&self.code, &self.host, cx).map_err(|error| self.failed(error))?;
        running.shared.lock().clear();
        let mut step = || {
            let length = bytes.len();
            let (number, export) = (self.number, &self.export);
            let (run, memory) = running.each(number, export, module, length, &self.host, cx)?;
            memory.data_mut(&mut running.store)[..length].copy_from_slice(&bytes);
            let shared = running.shared.clone();
            shared.lock().nulls.clear();
            shared.lock().nulls.resize(args.len(), false);
            let params = [Val::I32(called as i32)];
            let call = run.call_async(&mut running.store, &params, &mut []);
            let done = drive(call, &shared, &self.host, cx)?;
            done.map_err(|error| failure(error, &shared))?;
            let ty = self.result.ty;
            let base = plain_type(ty);
            let wide = matches!(Form::of(base), Form::I64 | Form::F64);
            let mut out = Column::new(ty);
            let mut results = memory.data(&running.store)[..length].chunks_exact(stride);
            for row in 0..rows {
                if nulls.get(row).copied().unwrap_or(false) {
                    out.push_null();
                    continue;
                }
                let result: Option<[u8; 8]> = results.next().and_then(|r| r[..8].try_into().ok());
                let bits = u64::from_le_bytes(result.unwrap_or_default());
                let bits = if wide { bits } else { u64::from(bits as u32) };
                let value = value::from_number(bits, base)?;
                out.push(match base == ty {
                    true => value,
                    false => exec::nested::convert(value, base, ty, cx)?,
                })?;
            }
            Ok(out)
        };
        match step() {
            Ok(column) => {
                running.give(&self.code, cx);
                Ok(column)
            }
            Err(error) => Err(self.failed(error)),
        }
    }

    fn one_by_one(&self, args: &[Column], rows: usize, cx: &mut ExecContext<'_>) -> Result<Column> {
        let mut out = Column::new(self.result.ty);
        for row in 0..rows {
            sched::check_interrupts()?;
            let values: Vec<Datum> =
                args.iter().zip(&self.args).map(|(column, (ty, _))| column.get(row, *ty)).collect();
            out.push(self.call(&values, cx)?)?;
        }
        Ok(out)
    }

    /// The column that a BATCH export gives for these columns; `values` are the columns' types.
    fn column(&self, args: &[Column], rows: usize, cx: &mut ExecContext<'_>) -> Result<Column> {
        let mut nulls = Vec::new();
        if self.strict && args.iter().any(|column| !column.nulls.is_empty()) {
            nulls = (0..rows).map(|row| args.iter().any(|column| column.is_null(row))).collect();
        }
        let before = |running: &mut Running, params: &mut Vec<Val>, cx: &mut ExecContext<'_>| {
            let mut bytes = vec![0; args.len() * 4];
            for (n, (column, (ty, _))) in args.iter().zip(&self.args).enumerate() {
                bytes.resize(bytes.len().next_multiple_of(8), 0);
                let at = u32::try_from(bytes.len()).map_err(|_| value::too_long())?;
                bytes[n * 4..n * 4 + 4].copy_from_slice(&at.to_le_bytes());
                column::encode(column, *ty, &mut bytes, cx)?;
            }
            sched::memory::ask(bytes.len())?;
            let at = running.put(&bytes, &self.host, cx)?;
            params.extend([Val::I32(rows as i32), Val::I32(at as i32)]);
            Ok(())
        };
        self.run(cx, before, |result, running, cx| {
            let packed = result.map_or(0, |v| bits(v) as i64);
            let bytes = running.bytes(packed)?;
            column::decode(bytes, self.result.ty, rows, &nulls, cx)
        })
    }
}

/// Whether the export has no result.
fn wanted_none(routine: &WasmRoutine) -> bool {
    !routine.batch && (routine.set || routine.result.ty == VOID)
}

impl Routine for WasmRoutine {
    fn call(&self, args: &[Datum], cx: &mut ExecContext<'_>) -> Result<Datum> {
        if self.result.ty == TRIGGER {
            return Err(only_as_trigger());
        }
        if self.batch {
            let mut columns = Vec::with_capacity(args.len());
            for (value, (ty, _)) in args.iter().zip(&self.args) {
                let mut column = Column::new(*ty);
                column.push(value.clone())?;
                columns.push(column);
            }
            return Ok(self.column(&columns, 1, cx)?.get(0, self.result.ty));
        }
        self.run(
            cx,
            |running, params, cx| self.arguments(args, running, params, cx),
            |result, running, cx| self.value(result, running, cx),
        )
    }

    fn takes_batches(&self) -> bool {
        self.batch || self.each.is_some()
    }

    fn call_batch(&self, args: &[Column], rows: usize, cx: &mut ExecContext<'_>) -> Result<Column> {
        match &self.each {
            Some(module) => self.looped(module, args, rows, cx),
            None => self.column(args, rows, cx),
        }
    }

    fn call_set(
        &self,
        args: &[Datum],
        wanted: Option<&[(Text, Oid)]>,
        cx: &mut ExecContext<'_>,
    ) -> Result<Vec<Datum>> {
        let shape = self.result.wanted(wanted);
        if !self.set {
            let value = self.run(
                cx,
                |running, params, cx| self.arguments(args, running, params, cx),
                |result, running, cx| match (result, &shape.shape) {
                    (Some(Val::I64(packed)), Some(_)) if *packed != -1 => {
                        let bytes = running.bytes(*packed)?;
                        shape.decode(bytes, cx)
                    }
                    _ => self.value(result, running, cx),
                },
            )?;
            return Ok(vec![value]);
        }
        self.run(
            cx,
            |running, params, cx| {
                running.shared.lock().set = true;
                self.arguments(args, running, params, cx)
            },
            |_, running, cx| {
                let emitted = std::mem::take(&mut running.shared.lock().emitted);
                let mut rows = Vec::with_capacity(emitted.len());
                for cell in emitted {
                    sched::check_interrupts()?;
                    rows.push(shape.emitted(cell, cx)?);
                }
                Ok(rows)
            },
        )
    }

    fn call_procedure(&self, args: &[Datum], cx: &mut ExecContext<'_>) -> Result<Datum> {
        Ok(self.result.outputs(self.call(args, cx)?))
    }

    fn call_trigger(
        &self,
        call: &TriggerCall<'_>,
        cx: &mut ExecContext<'_>,
    ) -> Result<TriggerResult> {
        let schema = call.schema(cx);
        let firing = firing(call, schema, cx)?;
        self.run(
            cx,
            |running, _, _| {
                running.shared.lock().firing = Some(Box::new(firing));
                Ok(())
            },
            |result, running, cx| {
                let set = running.shared.lock().firing.take().map(|f| f.set).unwrap_or_default();
                trigger_result(result, set, call, cx)
            },
        )
    }
}

/// The facts and rows that a trigger's function may ask for.
fn firing(call: &TriggerCall<'_>, schema: String, cx: &mut ExecContext<'_>) -> Result<Firing> {
    let level = if call.row_level { "ROW" } else { "STATEMENT" };
    let mut facts: Vec<String> =
        [call.name, call.timing.word(), level, call.event.word(), &call.table.name]
            .map(str::to_owned)
            .to_vec();
    facts.push(schema);
    facts.extend(call.args.iter().cloned());
    let mut row = |values: Option<&[Datum]>| {
        let Some(values) = values else { return Ok(None) };
        let mut cells = Vec::new();
        for (at, ty, _) in call.columns() {
            let value = values.get(at).unwrap_or(&Datum::Null);
            cells.push(cell(value, plain_type(ty), cx)?);
        }
        Result::Ok(Some(cells))
    };
    let (old, new) = (row(call.old)?, row(call.new)?);
    let columns = call.columns().map(|(.., name)| name.to_owned()).collect();
    Ok(Firing { facts, columns, old, new, set: Vec::new() })
}

/// The row that a trigger's function leaves.
fn trigger_result(
    result: Option<&Val>,
    set: Vec<(usize, Option<Vec<u8>>)>,
    call: &TriggerCall<'_>,
    cx: &mut ExecContext<'_>,
) -> Result<TriggerResult> {
    if result.is_some_and(|value| bits(value) != 0) {
        return Ok(TriggerResult::Skip);
    }
    let Some(base) = call.changeable().filter(|_| !set.is_empty()) else {
        return Ok(TriggerResult::Unchanged);
    };
    let columns: Vec<(usize, Oid, &str)> = call.columns().collect();
    let mut row = base.to_vec();
    for (at, bytes) in set {
        let Some((slot, ty, _)) = columns.get(at).copied() else { continue };
        let value = match bytes {
            Some(bytes) => value::decode(&bytes, ty, cx)?,
            None => value::null(ty, cx)?,
        };
        if let Some(slot) = row.get_mut(slot) {
            *slot = value;
        }
    }
    Ok(TriggerResult::Row(row))
}
