//! Contexts: QuickJS run-times of a session, one for each role that it acts as.
//!
//! A context is taken out while a function runs in it. A function that is called meanwhile (by a query of the first)
//! gets one of its own, since a run-time runs one call at a time.

use std::sync::{Arc, Mutex, PoisonError};

use base::settings::setting;
use base::{Error, Result, err};
use exec::ExecContext;
use rquickjs::function::Rest;
use rquickjs::{Context, Ctx, Function, Runtime, Value};

use crate::failure::throw;
use crate::guard::{Guard, Memory};
use crate::lend::{Functions, Lent};

/// Bytes of stack that a call may use.
const STACK_BYTES: usize = 2 << 20;
/// The stack that a call gets, of which half is for what the server does beneath.
pub const CALL_STACK_BYTES: usize = 8 << 20;
/// Contexts that a session keeps.
const ENGINES_MAX: usize = 8;
/// Key of what the session keeps of this language.
const KEY: &str = "javascript";

/// A context with what belongs to it.
pub struct Engine {
    role: u32,
    /// Where JavaScript finds the running statement.
    pub lent: Arc<Lent>,
    /// Ends a body that must end.
    pub guard: Arc<Guard>,
    /// The context; its run-time ends with it.
    pub context: Context,
}

/// A session's contexts that rest.
#[derive(Default)]
struct Engines(Mutex<Vec<Engine>>);

/// `53200` or what else the library says when it can't make something.
pub fn no_engine(error: &rquickjs::Error) -> Error {
    err!(OUT_OF_MEMORY, "could not start JavaScript: {error}")
}

impl Engine {
    fn new(role: u32) -> rquickjs::Result<Engine> {
        let guard = Arc::new(Guard::default());
        let runtime = Runtime::new_with_alloc(Memory(guard.clone()))?;
        runtime.set_max_stack_size(STACK_BYTES);
        let asked = guard.clone();
        runtime.set_interrupt_handler(Some(Box::new(move || asked.ends())));
        let context = Context::full(&runtime)?;
        let lent = Arc::new(Lent::default());
        context.with(|ctx| {
            let _ = ctx.store_userdata(Functions::default());
            let request = request(&ctx, lent.clone())?;
            let prelude: Function<'_> = ctx.eval(crate::api::PRELUDE)?;
            prelude.call::<_, ()>((request,))?;
            let builtins: Function<'_> = ctx.eval(crate::api::BUILTINS)?;
            builtins.call::<_, ()>((look(&ctx, guard.clone())?,))
        })?;
        Ok(Engine { role, lent, guard, context })
    }

    /// The session's context for the role that it acts as, or a new one.
    ///
    /// # Errors
    /// `53200`.
    pub fn take(cx: &mut ExecContext<'_>) -> Result<Engine> {
        let kept = cx.routines.kept_by(KEY, || Box::new(Engines::default()));
        let kept = kept.downcast_ref::<Engines>().and_then(|engines| {
            let mut engines = engines.0.lock().unwrap_or_else(PoisonError::into_inner);
            let at = engines.iter().position(|engine| engine.role == cx.role)?;
            Some(engines.swap_remove(at))
        });
        let engine = match kept {
            Some(engine) => engine,
            None => Engine::new(cx.role).map_err(|e| no_engine(&e))?,
        };
        let limit = cx.settings.int(setting::SESSION_MEMORY_LIMIT);
        // Kilobytes; 0 and less: as much as there is.
        let limit = usize::try_from(limit).map_or(0, |limit| limit.saturating_mul(1024));
        engine.guard.begin(limit);
        Ok(engine)
    }

    /// Gives it back to the session.
    pub fn give(self, cx: &mut ExecContext<'_>) {
        let kept = cx.routines.kept_by(KEY, || Box::new(Engines::default()));
        let Some(engines) = kept.downcast_ref::<Engines>() else { return };
        let mut engines = engines.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = engines.iter().any(|engine| engine.role == self.role);
        if !known && engines.len() < ENGINES_MAX {
            engines.push(self);
        }
    }
}

/// The one function through which JavaScript reaches the server.
fn request<'js>(ctx: &Ctx<'js>, lent: Arc<Lent>) -> rquickjs::Result<Function<'js>> {
    native(ctx, move |ctx, args| {
        let answer = lent.call(|host| host.call(ctx, args));
        answer.unwrap_or_else(|| {
            Err(rquickjs::Exception::throw_message(ctx, "no statement runs this function"))
        })
    })
}

/// The function by which built-ins that go over something long look for interrupts.
fn look<'js>(ctx: &Ctx<'js>, guard: Arc<Guard>) -> rquickjs::Result<Function<'js>> {
    native(ctx, move |ctx, _| match guard.ends() {
        false => Ok(Value::new_undefined(ctx.clone())),
        true => {
            let error = guard.error().unwrap_or_else(|| Error::internal("no error"));
            Err(throw(ctx, error.into()))
        }
    })
}

/// A function of the server that JavaScript may call. All are made here: the library counts the stack of each call
/// from the server anew, so that only what is left of the whole stack bounds calls within calls.
fn native<'js>(
    ctx: &Ctx<'js>,
    body: impl for<'a> Fn(&'a Ctx<'js>, Vec<Value<'js>>) -> rquickjs::Result<Value<'js>> + 'js,
) -> rquickjs::Result<Function<'js>> {
    Function::new(
        ctx.clone(),
        move |ctx: Ctx<'js>, args: Rest<Value<'js>>| match sched::check_stack() {
            Ok(()) => body(&ctx, args.0),
            Err(error) => Err(throw(&ctx, error.into())),
        },
    )
}
