//! JavaScript: functions, procedures, triggers and DO blocks that QuickJS runs.
//!
//! ```text
//!   a call ──► Engine: the session's context for its role ──► the body as a function of the context
//!                 │ lends the statement for the call                  │ plv8.execute, …
//!                 └────────────── Host: SQL inside the statement ◄────┘
//! ```
//!
//! * The language is trusted: a context has no file, no network and no clock but `Date`.
//! * A context belongs to a session and a role. It is made at the first call and ends with the session, so that
//!   what functions keep in `globalThis` is seen by later calls of the session in that role, and by nobody else.
//! * A call runs on a stack of its own size on the worker; a query that waits yields the worker as any does.
//! * QuickJS asks for interrupts as it runs, its allocator does, and so do the built-ins that replace those which go over
//!   something long ([`guard`]): cancels and time-outs end a body that never calls the server, and one that uses up its
//!   time slice yields.
//! * Memory is taken from the server's allocator, so that it counts as the session's and ends at its limit.
//! * A function of the server that JavaScript may call looks at what is left of the stack first (`engine::native`).
//! * `plv8.execute` runs in a subtransaction: an exception that the body catches has undone what the statement did.
//!
//! The names are plv8's (<https://plv8.github.io>), so that its functions run unchanged as far as they need no more
//! than [`api`] has; window functions are missing.
#![warn(missing_docs)]

mod api;
mod engine;
mod failure;
mod guard;
mod lend;
mod value;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::{Oid, Result, err};
use catalog::Function;
use exec::ExecContext;
use exec::language::{
    CallSignature, Language, ResultForm, Routine, TriggerCall, TriggerResult,
    check_trigger_parameters, only_as_trigger, signature_text,
};
use rquickjs::context::EvalOptions;
use rquickjs::function::Args;
use rquickjs::{Ctx, IntoJs, Object, Value};
use types::oids::{RECORD, TRIGGER, VOID};
use types::{Datum, Text};

use api::Call;
use engine::Engine;
use failure::{Failure, uncaught};
use lend::Functions;
use value::{from_js, record, to_js};

/// The language.
pub struct JavaScript;

/// The parameters of a trigger's function.
const TRIGGER_PARAMS: &str = "NEW, OLD, TG_NAME, TG_WHEN, TG_LEVEL, TG_OP, TG_RELID, TG_TABLE_NAME, \
                              TG_TABLE_SCHEMA, TG_ARGV";

/// A body as a function expression.
fn wrapped(name: &str, params: &str, body: &str) -> String {
    let plain = !name.is_empty()
        && name
            .chars()
            .enumerate()
            .all(|(n, c)| c == '_' || c.is_ascii_alphabetic() || n > 0 && c.is_ascii_digit());
    // A reserved word is no name of a function.
    let name = if plain { format!("_{name}") } else { String::new() };
    format!("(function {name}({params}) {{\n{body}\n}})")
}

/// The source of a function.
pub(crate) fn source(function: &Function) -> String {
    if Oid(function.result) == TRIGGER {
        return wrapped(&function.name, TRIGGER_PARAMS, &function.body);
    }
    let params: Vec<String> = function
        .inputs()
        .enumerate()
        .map(|(n, arg)| match arg.name.is_empty() {
            true => format!("${}", n + 1),
            false => arg.name.clone(),
        })
        .collect();
    wrapped(&function.name, &params.join(", "), &function.body)
}

impl Language for JavaScript {
    fn name(&self) -> &'static str {
        "javascript"
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
        let text = source(function);
        with_engine(cx, |engine, _| {
            engine.context.with(|ctx| {
                let compiled = JavaScriptRoutine::compiled(&ctx, &text).map(drop);
                compiled.map_err(|failure| uncaught(&ctx, failure, &function.name))
            })
        })
    }

    fn compile(
        &self,
        function: &Arc<Function>,
        signature: &CallSignature,
        cx: &mut ExecContext<'_>,
    ) -> Result<Arc<dyn Routine>> {
        check_trigger_parameters(function, signature)?;
        let result = ResultForm::of(function, signature, signature.result, cx);
        Ok(Arc::new(JavaScriptRoutine {
            number: next_number(),
            signature: signature_text(function),
            source: source(function),
            args: signature.args.clone(),
            result,
            set: function.set,
            volatile: function.volatility == 'v',
        }))
    }

    fn run_block(&self, body: &str, cx: &mut ExecContext<'_>) -> Result<()> {
        let routine = JavaScriptRoutine {
            number: next_number(),
            signature: "inline_code_block".to_owned(),
            source: wrapped("", "", body),
            args: Vec::new(),
            result: ResultForm { ty: VOID, shape: None },
            set: false,
            volatile: true,
        };
        routine.run(cx, &[], None, |_, _, _, _| Ok(()))
    }
}

fn next_number() -> u64 {
    static ROUTINES: AtomicU64 = AtomicU64::new(0);
    ROUTINES.fetch_add(1, Ordering::Relaxed)
}

/// Runs `f` in the session's context, on a stack that is large enough.
fn with_engine<R>(
    cx: &mut ExecContext<'_>,
    f: impl FnOnce(&Engine, &mut ExecContext<'_>) -> Result<R>,
) -> Result<R> {
    sched::with_stack(engine::CALL_STACK_BYTES, || {
        sched::check_stack()?;
        let engine = Engine::take(cx)?;
        let result = f(&engine, cx);
        match engine.guard.end() {
            // The values that the body had built go with its context.
            Some(error) => Err(error),
            None => {
                engine.give(cx);
                result
            }
        }
    })?
}

/// A result of a function from a value.
fn result_of<'js>(
    form: &ResultForm,
    ctx: &Ctx<'js>,
    value: Value<'js>,
    cx: &mut ExecContext<'_>,
) -> std::result::Result<Datum, Failure> {
    if form.ty == VOID {
        return Ok(Datum::text(""));
    }
    let Some(shape) = &form.shape else {
        if form.ty == RECORD {
            return Err(err!(
                FEATURE_NOT_SUPPORTED,
                "function returning record called in context that cannot accept type record"
            )
            .into());
        }
        return from_js(ctx, value, form.ty, cx);
    };
    if value.is_null() || value.is_undefined() {
        return Ok(Datum::Null);
    }
    match value.as_object() {
        Some(object) if !object.is_array() => record(ctx, object, shape, cx),
        _ if shape.columns.len() == 1 => {
            let field = from_js(ctx, value, shape.columns[0].1, cx)?;
            Ok(Datum::record(shape.clone(), vec![field]))
        }
        _ => Err(err!(DATATYPE_MISMATCH, "result of a row type must be an object").into()),
    }
}

/// A function that is ready to be called.
pub(crate) struct JavaScriptRoutine {
    /// Under which contexts keep its compiled body.
    number: u64,
    /// As CONTEXT lines name it.
    signature: String,
    source: String,
    args: Vec<Oid>,
    result: ResultForm,
    set: bool,
    volatile: bool,
}

/// Bodies that a context keeps.
const FUNCTIONS_MAX: usize = 1000;

impl JavaScriptRoutine {
    /// Compiles a source in a context.
    fn compiled<'js>(
        ctx: &Ctx<'js>,
        source: &str,
    ) -> std::result::Result<rquickjs::Function<'js>, Failure> {
        let mut options = EvalOptions::default();
        options.strict = false;
        options.filename = Some("body".to_owned());
        Ok(ctx.eval_with_options(source, options)?)
    }

    /// The body in a context.
    fn function<'js>(
        &self,
        ctx: &Ctx<'js>,
    ) -> std::result::Result<rquickjs::Function<'js>, Failure> {
        let known = ctx.userdata::<Functions<'js>>();
        if let Some(function) = known.as_ref().and_then(|k| k.0.borrow().get(&self.number).cloned())
        {
            return Ok(function);
        }
        let function = JavaScriptRoutine::compiled(ctx, &self.source)?;
        if let Some(known) = known {
            let mut known = known.0.borrow_mut();
            if known.len() >= FUNCTIONS_MAX {
                known.clear();
            }
            known.insert(self.number, function.clone());
        }
        Ok(function)
    }

    /// Calls the body with these arguments and types; `finish` gets its value and what `return_next` took.
    fn run<R>(
        &self,
        cx: &mut ExecContext<'_>,
        args: &[(&Datum, Oid)],
        rows: Option<ResultForm>,
        finish: impl for<'js> FnOnce(
            &Ctx<'js>,
            Value<'js>,
            Vec<Datum>,
            &mut ExecContext<'_>,
        ) -> std::result::Result<R, Failure>,
    ) -> Result<R> {
        self.run_with(
            cx,
            rows,
            |ctx, list, cx| {
                for (value, ty) in args {
                    let value = to_js(ctx, value, *ty, cx)?;
                    list.push_arg(value)?;
                }
                Ok(())
            },
            args.len(),
            finish,
        )
    }

    fn run_with<R>(
        &self,
        cx: &mut ExecContext<'_>,
        shape: Option<ResultForm>,
        arguments: impl for<'js> FnOnce(
            &Ctx<'js>,
            &mut Args<'js>,
            &mut ExecContext<'_>,
        ) -> std::result::Result<(), Failure>,
        count: usize,
        finish: impl for<'js> FnOnce(
            &Ctx<'js>,
            Value<'js>,
            Vec<Datum>,
            &mut ExecContext<'_>,
        ) -> std::result::Result<R, Failure>,
    ) -> Result<R> {
        with_engine(cx, |engine, cx| {
            engine.context.with(|ctx| {
                let result = (|| {
                    let function = self.function(&ctx)?;
                    let mut list = Args::new(ctx.clone(), count);
                    arguments(&ctx, &mut list, cx)?;
                    let mut host = Call {
                        cx: &mut *cx,
                        lent: engine.lent.clone(),
                        guard: engine.guard.clone(),
                        shape,
                        rows: Vec::new(),
                        volatile: self.volatile,
                    };
                    let value = engine.lent.scope(&mut host, || {
                        let value = list.apply::<Value<'_>>(&function)?;
                        match value.as_promise() {
                            Some(promise) => promise.clone().finish::<Value<'_>>(),
                            None => Ok(value),
                        }
                    })?;
                    let rows = std::mem::take(&mut host.rows);
                    finish(&ctx, value, rows, cx)
                })();
                result.map_err(|failure| uncaught(&ctx, failure, &self.signature))
            })
        })
    }

    fn inputs<'a>(&self, args: &'a [Datum]) -> Vec<(&'a Datum, Oid)> {
        args.iter().zip(self.args.iter().copied()).collect()
    }
}

impl Routine for JavaScriptRoutine {
    fn call(&self, args: &[Datum], cx: &mut ExecContext<'_>) -> Result<Datum> {
        if self.result.ty == TRIGGER {
            return Err(only_as_trigger());
        }
        let inputs = self.inputs(args);
        self.run(cx, &inputs, None, |ctx, value, _, cx| result_of(&self.result, ctx, value, cx))
    }

    fn call_set(
        &self,
        args: &[Datum],
        wanted: Option<&[(Text, Oid)]>,
        cx: &mut ExecContext<'_>,
    ) -> Result<Vec<Datum>> {
        let shape = self.result.wanted(wanted);
        let inputs = self.inputs(args);
        if !self.set {
            return self.run(cx, &inputs, None, |ctx, value, _, cx| {
                Ok(vec![result_of(&shape, ctx, value, cx)?])
            });
        }
        self.run(cx, &inputs, Some(shape.clone()), |ctx, value, mut rows, cx| {
            if value.is_null() || value.is_undefined() {
                return Ok(rows);
            }
            let Some(array) = value.as_array() else {
                rows.push(result_of(&shape, ctx, value, cx)?);
                return Ok(rows);
            };
            for item in array.iter::<Value<'_>>() {
                sched::check_interrupts()?;
                rows.push(result_of(&shape, ctx, item?, cx)?);
            }
            Ok(rows)
        })
    }

    fn call_procedure(&self, args: &[Datum], cx: &mut ExecContext<'_>) -> Result<Datum> {
        let inputs = self.inputs(args);
        self.run(cx, &inputs, None, |ctx, value, _, cx| match self.result.shape {
            Some(_) => result_of(&self.result, ctx, value, cx),
            None => Ok(Datum::Null),
        })
    }

    fn call_trigger(
        &self,
        call: &TriggerCall<'_>,
        cx: &mut ExecContext<'_>,
    ) -> Result<TriggerResult> {
        let schema = call.schema(cx);
        // The compiler needs the lifetimes of a function here.
        fn typed<F>(f: F) -> F
        where
            F: for<'js> FnOnce(
                &Ctx<'js>,
                &mut Args<'js>,
                &mut ExecContext<'_>,
            ) -> std::result::Result<(), Failure>,
        {
            f
        }
        let arguments = typed(|ctx, list, cx| trigger_arguments(ctx, list, call, &schema, cx));
        self.run_with(cx, None, arguments, 10, |ctx, value, _, cx| {
            trigger_result(ctx, value, call, cx)
        })
    }
}

/// A trigger's arguments, in the order of [`TRIGGER_PARAMS`].
fn trigger_arguments<'js>(
    ctx: &Ctx<'js>,
    list: &mut Args<'js>,
    call: &TriggerCall<'_>,
    schema: &str,
    cx: &mut ExecContext<'_>,
) -> std::result::Result<(), Failure> {
    for row in [call.new, call.old] {
        let Some(row) = row else {
            list.push_arg(Value::new_undefined(ctx.clone()))?;
            continue;
        };
        let object = Object::new(ctx.clone())?;
        for (at, ty, name) in call.columns() {
            let value = row.get(at).unwrap_or(&Datum::Null);
            object.set(name, to_js(ctx, value, ty, cx)?)?;
        }
        list.push_arg(object)?;
    }
    list.push_arg(call.name)?;
    list.push_arg(call.timing.word())?;
    list.push_arg(if call.row_level { "ROW" } else { "STATEMENT" })?;
    list.push_arg(call.event.word())?;
    list.push_arg(f64::from(call.table.oid))?;
    list.push_arg(call.table.name.as_str())?;
    list.push_arg(schema)?;
    list.push_arg(call.args.to_vec().into_js(ctx)?)?;
    Ok(())
}

/// The row that a trigger's value stands for: `null` skips the row, nothing leaves it as it is.
fn trigger_result<'js>(
    ctx: &Ctx<'js>,
    value: Value<'js>,
    call: &TriggerCall<'_>,
    cx: &mut ExecContext<'_>,
) -> std::result::Result<TriggerResult, Failure> {
    if value.is_null() {
        return Ok(TriggerResult::Skip);
    }
    let (Some(object), Some(base)) = (value.as_object(), call.changeable()) else {
        return Ok(TriggerResult::Unchanged);
    };
    let mut row = base.to_vec();
    for (at, ty, name) in call.columns() {
        let field: Value<'js> = object.get(name)?;
        if let Some(slot) = row.get_mut(at) {
            *slot = from_js(ctx, field, ty, cx)?;
        }
    }
    Ok(TriggerResult::Row(row))
}
