//! Running functions that users wrote in SQL.
//!
//! ```text
//!   Expr::Call ──► SessionRoutines ──► Routines: compiled once for all sessions, by version and types
//!                    │
//!                    ▼
//!                  Routine::call ── SQL: statement after statement, parameters as $1, $2, …;
//!                                   the rows of the last one are what the function returns
//! ```
//!
//! * A VOLATILE function's statements each see everything that the transaction has done and all that is
//!   committed by then; those of other functions see what the calling statement sees.
//! * The body's statements are planned in the name of whoever calls, or of the owner (SECURITY DEFINER):
//!   rights are checked there.
//! * Calls that the binder could replace by what the body says ([`sql`]'s `bind::inline`) don't come here.
//!
//! Source: PostgreSQL's manual, "Query Language (SQL) Functions".

use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::settings::setting;
use base::{Oid, Result, err};
use catalog::Function;
use sql::routine::{RoutineBody, prepare_body};
use sql::{Expr, PrepareContext, Prepared};
use types::datum::Shape;
use types::oids::RECORD;
use types::{Batch, Column, Datum, FunctionRow, Text};

use crate::compiled::{Acting, Compiled, KNOWN_MAX, Known, SessionRoutines, TimedCall};
use crate::context::{ExecContext, Guard, RowSink, Values};
use crate::eval;
use crate::language::{CallSignature, Language, Routine, TriggerCall, TriggerResult};
use crate::nested::{self, ATTEMPTS};
use crate::plan_slot::{PlanKey, PlanSlot};
use crate::rows::{self, Row};
use crate::run::{ExecState, Run};
use crate::vector;

/// The value of a call.
///
/// # Errors
/// The body's.
pub fn call(
    function: &'static FunctionRow,
    args: &[Expr],
    ty: Oid,
    row: Row<'_>,
    run: &mut Run<'_, '_>,
) -> Result<Datum> {
    if function.returns_set {
        return Err(err!(
            FEATURE_NOT_SUPPORTED,
            "set-valued function called in context that cannot accept a set"
        ));
    }
    let (given, template) = args.split_at(args.len().min(function.args.len()));
    if !template.is_empty() {
        let rows = rows_of(function, args, ty, row, run)?;
        return Ok(rows.into_iter().next().unwrap_or_default());
    }
    sched::check_stack()?;
    let values = eval::eval_all(given, row, run)?;
    if function.strict && values.iter().any(Datum::is_null) {
        return Ok(Datum::Null);
    }
    let known = known(function, given, ty, run.cx)?;
    let snapshot = run.snapshot;
    in_force(&known, snapshot, run.cx, |cx| match &known.inputs {
        Some(inputs) => {
            let values: Vec<Datum> = inputs.iter().map(|n| values[*n].clone()).collect();
            known.routine.call_procedure(&values, cx)
        }
        None => known.routine.call(&values, cx),
    })
}

/// The values of a call for all rows of a batch; None when the function takes no batches.
///
/// # Errors
/// The body's.
pub fn call_batch(
    function: &'static FunctionRow,
    args: &[Expr],
    ty: Oid,
    batch: &Batch,
    run: &mut Run<'_, '_>,
) -> Result<Option<Column>> {
    if function.returns_set || args.len() != function.args.len() {
        return Ok(None);
    }
    let known = known(function, args, ty, run.cx)?;
    if !known.routine.takes_batches() || known.inputs.is_some() {
        return Ok(None);
    }
    sched::check_stack()?;
    let mut columns = Vec::with_capacity(args.len());
    for arg in args {
        columns.push(vector::column(arg, batch, run)?);
    }
    let snapshot = run.snapshot;
    let call = |cx: &mut ExecContext<'_>| known.routine.call_batch(&columns, batch.rows, cx);
    in_force(&known, snapshot, run.cx, call).map(Some)
}

/// The value of a call with values: of an operator that stands in no call.
///
/// # Errors
/// The body's.
pub fn call_values(
    function: &'static FunctionRow,
    values: &[Datum],
    run: &mut Run<'_, '_>,
) -> Result<Datum> {
    sched::check_stack()?;
    let real = |(declared, value): (&Oid, &Datum)| match types::TypeIo::get(*declared) {
        Some(io) if io.category != b'P' => *declared,
        _ => types::io::natural_type(value),
    };
    let args: Vec<Oid> = function.args.iter().zip(values).map(real).collect();
    let known = known_by(function, &args, function.result, run.cx)?;
    let snapshot = run.snapshot;
    in_force(&known, snapshot, run.cx, |cx| known.routine.call(values, cx))
}

/// The rows of a call.
///
/// # Errors
/// The body's.
pub fn rows_of(
    function: &'static FunctionRow,
    args: &[Expr],
    ty: Oid,
    row: Row<'_>,
    run: &mut Run<'_, '_>,
) -> Result<Vec<Datum>> {
    sched::check_stack()?;
    // Behind the arguments there may be the row that a column definition list asks for.
    let (given, template) = args.split_at(args.len().min(function.args.len()));
    let values = eval::eval_all(given, row, run)?;
    if function.strict && values.iter().any(Datum::is_null) {
        return Ok(vec![]);
    }
    let known = known(function, given, ty, run.cx)?;
    let wanted = match template.first() {
        Some(Expr::Const(Datum::Record(r), _)) => Some(&r.shape.columns[..]),
        _ => None,
    };
    let snapshot = run.snapshot;
    in_force(&known, snapshot, run.cx, |cx| match &known.inputs {
        Some(inputs) => {
            let values: Vec<Datum> = inputs.iter().map(|n| values[*n].clone()).collect();
            Ok(vec![known.routine.call_procedure(&values, cx)?])
        }
        None => known.routine.call_set(&values, wanted, cx),
    })
}

/// Fires a function as an event trigger.
///
/// # Errors
/// The body's.
pub fn fire_event(function: u32, event: &str, tag: &str, cx: &mut ExecContext<'_>) -> Result<()> {
    sched::check_stack()?;
    let signature = CallSignature { args: vec![], result: types::oids::EVENT_TRIGGER };
    let key = PlanKey::now(cx);
    let known = match find(cx.routines, function, key, |s| *s == signature) {
        Some(known) => known,
        None => learn(function, "event trigger", signature, key, cx)?,
    };
    let snapshot = cx.tx.snapshot();
    in_force(&known, snapshot, cx, |cx| known.routine.call_event_trigger(event, tag, cx))
}

/// Fires a trigger function.
///
/// # Errors
/// The body's.
pub fn fire(
    function: u32,
    call: &TriggerCall<'_>,
    cx: &mut ExecContext<'_>,
) -> Result<TriggerResult> {
    sched::check_stack()?;
    let signature = CallSignature { args: vec![], result: types::oids::TRIGGER };
    let key = PlanKey::now(cx);
    let known = match find(cx.routines, function, key, |s| *s == signature) {
        Some(known) => known,
        None => learn(function, "trigger", signature, key, cx)?,
    };
    let snapshot = cx.snapshot;
    in_force(&known, snapshot, cx, |cx| known.routine.call_trigger(call, cx))
}

fn find(
    routines: &SessionRoutines,
    function: u32,
    key: PlanKey,
    fits: impl Fn(&CallSignature) -> bool,
) -> Option<Arc<Known>> {
    let list = routines.known.get(&function)?;
    list.iter().find(|k| k.key == key && fits(&k.signature)).cloned()
}

fn known(
    function: &'static FunctionRow,
    args: &[Expr],
    result: Oid,
    cx: &mut ExecContext<'_>,
) -> Result<Arc<Known>> {
    let key = PlanKey::now(cx);
    let fits = |s: &CallSignature| {
        s.result == result
            && s.args.len() == args.len()
            && s.args.iter().zip(args).all(|(t, a)| *t == a.ty())
    };
    if let Some(known) = find(cx.routines, function.oid.0, key, fits) {
        return Ok(known);
    }
    let signature = CallSignature { args: args.iter().map(Expr::ty).collect(), result };
    learn(function.oid.0, function.name, signature, key, cx)
}

/// The same by types.
fn known_by(
    function: &'static FunctionRow,
    args: &[Oid],
    result: Oid,
    cx: &mut ExecContext<'_>,
) -> Result<Arc<Known>> {
    let key = PlanKey::now(cx);
    let fits = |s: &CallSignature| s.result == result && s.args == args;
    if let Some(known) = find(cx.routines, function.oid.0, key, fits) {
        return Ok(known);
    }
    let signature = CallSignature { args: args.to_vec(), result };
    learn(function.oid.0, function.name, signature, key, cx)
}

/// Finds out how a function is called, and compiles it if nobody has yet.
fn learn(
    function: u32,
    name: &str,
    signature: CallSignature,
    key: PlanKey,
    cx: &mut ExecContext<'_>,
) -> Result<Arc<Known>> {
    let view = cx.catalog_tx.view();
    let Some(definition) = view.function(function).cloned() else {
        return Err(err!(UNDEFINED_FUNCTION, "function {name} does not exist"));
    };
    let mut inputs = None;
    let mut own = signature.clone();
    if definition.procedure {
        let modes = definition.called_with().enumerate();
        let numbers: Vec<usize> = modes.filter(|(_, a)| a.mode != 'o').map(|(n, _)| n).collect();
        own.args = numbers.iter().filter_map(|n| signature.args.get(*n).copied()).collect();
        inputs = Some(numbers);
    }
    let place = (cx.database.1, function);
    let found = cx.engine.routines.find(place, &definition, &own);
    let current = match &found {
        Some(routine) => routine.is_current(cx)?,
        None => false,
    };
    let routine = match found.filter(|_| current) {
        Some(routine) => routine,
        None => {
            let routine = match definition.language.as_str() {
                "sql" => SqlLanguage.compile(&definition, &own, cx)?,
                language => {
                    let language = cx.engine.languages.find(language)?.clone();
                    language.compile(&definition, &own, cx)?
                }
            };
            let compiled = Compiled {
                definition: definition.clone(),
                signature: own,
                routine: routine.clone(),
            };
            cx.engine.routines.add(place, compiled);
            routine
        }
    };
    let acting = acting(&definition, cx);
    let known = Arc::new(Known { key, signature, definition, routine, inputs, acting });
    if cx.routines.known.len() >= KNOWN_MAX {
        cx.routines.known.clear();
    }
    let list = cx.routines.known.entry(function).or_default();
    list.retain(|k| k.key == key || k.key.environment != key.environment);
    if list.len() > 8 {
        list.clear();
    }
    list.push(known.clone());
    Ok(known)
}

/// Runs a body in the name and under the settings that its function says, and times it where `track_functions` asks
/// for that.
fn in_force<R>(
    known: &Known,
    snapshot: txn::Snapshot,
    cx: &mut ExecContext<'_>,
    body: impl FnOnce(&mut ExecContext<'_>) -> Result<R>,
) -> Result<R> {
    let procedural = !matches!(known.definition.language.as_str(), "sql" | "c" | "internal");
    let timed = match cx.settings.str(base::settings::setting::TRACK_FUNCTIONS) {
        "none" => false,
        "pl" => procedural,
        _ => true,
    };
    if !timed {
        return as_said(known, snapshot, cx, body);
    }
    let function = known.definition.oid;
    let begun = std::time::Instant::now();
    let depth = cx.routines.timed.len();
    let again = cx.routines.timed.iter().any(|call| call.function == function);
    cx.routines.timed.push(TimedCall { function, inner_us: 0 });
    let result = as_said(known, snapshot, cx, body);
    // After an error inside, calls may be left behind.
    cx.routines.timed.truncate(depth + 1);
    let inner_us = cx.routines.timed.pop().map_or(0, |call| call.inner_us);
    let all_us = begun.elapsed().as_micros() as u64;
    if let Some(outer) = cx.routines.timed.last_mut() {
        outer.inner_us += all_us;
    }
    // A recursive call is part of the outer one's time.
    let total_us = if again { 0 } else { all_us };
    cx.tally.called(function, total_us, all_us.saturating_sub(inner_us));
    result
}

fn as_said<R>(
    known: &Known,
    snapshot: txn::Snapshot,
    cx: &mut ExecContext<'_>,
    body: impl FnOnce(&mut ExecContext<'_>) -> Result<R>,
) -> Result<R> {
    let nonatomic = cx.nonatomic && known.definition.procedure && known.acting.is_none();
    let Some(acting) = &known.acting else {
        let mut inner = ExecContext { snapshot, nonatomic, ..cx.inner() };
        return body(&mut inner);
    };
    let set_role = set_role(&known.definition, cx)?;
    let entered = enter(&known.definition, cx)?;
    let settings_version = match entered {
        Some(_) => cx.hooks.settings_version(),
        None => cx.settings_version,
    };
    let (values, mark) = entered.unzip();
    let outer = (cx.user, cx.role, cx.search_path);
    let values: Option<&Values> = values.as_deref();
    let role = set_role.as_ref().or(acting.role.as_ref());
    let user = role.map_or(outer.0, |r| r.1.as_str());
    let path = acting.path.as_deref().unwrap_or(outer.2);
    let (settings, format) = (cx.settings, cx.format);
    let guard = match acting.role {
        Some(_) => cx.guard.max(Guard::Definer),
        None => cx.guard,
    };
    let environment = match values {
        None => acting.environment,
        Some(v) => sql::environment(&v.settings, path, user, cx.database.1),
    };
    let mut inner = ExecContext {
        snapshot,
        settings: values.map_or(settings, |v| &v.settings),
        settings_version,
        format: values.map_or(format, |v| &v.format),
        search_path: path,
        user,
        role: role.map_or(outer.1, |r| r.0),
        guard,
        environment,
        ..cx.inner()
    };
    let result = body(&mut inner);
    leave(&known.definition, mark, cx);
    result
}

/// Calls `f` with the settings in force, which an earlier statement of a body may have changed (SET,
/// `set_config`) since the context was made.
///
/// # Errors
/// `f`'s.
pub fn up_to_date<R>(
    cx: &mut ExecContext<'_>,
    f: impl FnOnce(&mut ExecContext<'_>) -> Result<R>,
) -> Result<R> {
    let settings_version = cx.hooks.settings_version();
    if settings_version == cx.settings_version {
        return f(cx);
    }
    let values = cx.hooks.current_values((cx.settings, cx.format));
    let (now, before) =
        (values.settings.str(setting::SEARCH_PATH), cx.settings.str(setting::SEARCH_PATH));
    let role = changed_role(&values.settings, cx)?;
    let (user, role) = match &role {
        Some((role, user)) => (user.as_str(), *role),
        None => (cx.user, cx.role),
    };
    // A role has a schema of its own in the path, and may not look into others.
    let renamed = now != before || role != cx.role;
    let path = renamed.then(|| path_of(&cx.catalog_tx.view(), now, user));
    let path = path.as_deref().unwrap_or(cx.search_path);
    let mut inner = ExecContext {
        snapshot: cx.snapshot,
        settings: &values.settings,
        settings_version,
        format: &values.format,
        search_path: path,
        user,
        role,
        environment: sql::environment(&values.settings, path, user, cx.database.1),
        params: cx.params,
        nonatomic: cx.nonatomic,
        ..cx.inner()
    };
    f(&mut inner)
}

/// The role that SET ROLE has given since a context's settings were read.
///
/// # Errors
/// `42501` for one that the session may not become.
fn changed_role(
    now: &base::settings::Settings,
    cx: &mut ExecContext<'_>,
) -> Result<Option<(u32, String)>> {
    let name = now.str(setting::ROLE);
    // Code that runs in somebody else's name does so until it ends.
    if name == cx.settings.str(setting::ROLE) || cx.guard != Guard::None {
        return Ok(None);
    }
    let (user, session) = cx.session_user;
    become_role(name, (session, user.to_owned()), cx).map(Some)
}

/// A role by its name, which the session must be a member of; `none`: the session's.
fn become_role(
    name: &str,
    session: (u32, String),
    cx: &mut ExecContext<'_>,
) -> Result<(u32, String)> {
    if name == "none" {
        return Ok(session);
    }
    let view = cx.catalog_tx.view();
    let Some(role) = view.role_named(name) else {
        base::bail!(INVALID_PARAMETER_VALUE, "role \"{name}\" does not exist");
    };
    let rights = catalog::Rights { catalog: &view, database: cx.database.1 };
    if !rights.is_member(session.0, role.oid) {
        base::bail!(INSUFFICIENT_PRIVILEGE, "permission denied to set role \"{name}\"");
    }
    Ok((role.oid, name.to_owned()))
}

/// Functions in SQL.
struct SqlLanguage;

/// One of them.
struct SqlRoutine {
    definition: Arc<Function>,
    signature: CallSignature,
    plans: PlanSlot<SqlBody>,
}

struct SqlBody {
    body: RoutineBody,
    /// The result is a row of this shape.
    shape: Option<Arc<Shape>>,
}

impl Language for SqlLanguage {
    fn name(&self) -> &'static str {
        "sql"
    }

    fn validate(
        &self,
        function: &Arc<Function>,
        body_at: Option<u32>,
        cx: &mut ExecContext<'_>,
    ) -> Result<()> {
        // Rights are asked for when it runs.
        nested::preparing(cx, None, |_, cx| {
            let cx = PrepareContext { role: catalog::object::ids::SUPERUSER, ..*cx };
            sql::routine::validate(function, body_at, &cx)
        })
    }

    fn compile(
        &self,
        function: &Arc<Function>,
        signature: &CallSignature,
        _cx: &mut ExecContext<'_>,
    ) -> Result<Arc<dyn Routine>> {
        Ok(Arc::new(SqlRoutine {
            definition: function.clone(),
            signature: signature.clone(),
            plans: PlanSlot::default(),
        }))
    }

    fn run_block(&self, _body: &str, _cx: &mut ExecContext<'_>) -> Result<()> {
        Err(err!(FEATURE_NOT_SUPPORTED, "language \"sql\" does not support inline code execution"))
    }
}

impl Routine for SqlRoutine {
    fn call(&self, args: &[Datum], cx: &mut ExecContext<'_>) -> Result<Datum> {
        Ok(self.call_set(args, None, cx)?.into_iter().next().unwrap_or_default())
    }

    fn call_set(
        &self,
        args: &[Datum],
        wanted: Option<&[(Text, Oid)]>,
        cx: &mut ExecContext<'_>,
    ) -> Result<Vec<Datum>> {
        let planned = self.planned(cx)?;
        let rows = self.run_body(&planned.body, args, cx)?;
        self.results(&planned, rows, wanted, cx)
    }
}

impl SqlRoutine {
    /// The body's plans, with their locks.
    fn planned(&self, cx: &mut ExecContext<'_>) -> Result<Arc<SqlBody>> {
        for _ in 0..ATTEMPTS {
            let key = PlanKey::now(cx);
            let planned = match self.plans.get(key, cx.routines, |_| true) {
                Some(planned) => planned,
                None => {
                    let planned = Arc::new(self.plan(cx)?);
                    self.plans.put(key, cx.routines, planned.clone());
                    planned
                }
            };
            planned.body.statements.iter().try_for_each(|s| nested::lock(s, cx))?;
            if PlanKey::now(cx) == key {
                return Ok(planned);
            }
        }
        let name = &self.definition.name;
        Err(err!(OBJECT_IN_USE, "definitions change too fast for function {name}"))
    }

    fn plan(&self, cx: &mut ExecContext<'_>) -> Result<SqlBody> {
        cx.engine.routines.planned.fetch_add(1, Ordering::Relaxed);
        let path = self.definition.standard_body.then_some(&self.definition.path);
        let (types, result) = (&self.signature.args, self.signature.result);
        let body = nested::preparing(cx, None, |_, cx| {
            let cx = PrepareContext { search_path: path.map_or(cx.search_path, |p| p), ..*cx };
            prepare_body(&self.definition, types, result, true, &cx)
        });
        let body = body.map_err(|e| {
            let name = &self.definition.name;
            e.without_position().context(format!("SQL function \"{name}\" during startup"))
        })?;
        let ty = if body.composite { result } else { RECORD };
        let shape = (result == RECORD || body.composite)
            .then(|| Arc::new(Shape { ty, columns: body.columns.clone() }));
        Ok(SqlBody { body, shape })
    }

    fn run_body(
        &self,
        body: &RoutineBody,
        args: &[Datum],
        cx: &mut ExecContext<'_>,
    ) -> Result<Vec<Vec<Datum>>> {
        let mut rows = Vec::new();
        for (n, prepared) in body.statements.iter().enumerate() {
            sched::check_interrupts()?;
            let mut sink = Collect {
                types: prepared.columns.iter().map(|c| c.ty).collect(),
                wanted: n + 1 == body.statements.len() && body.result.is_some(),
                first_only: !self.definition.set,
                rows: Vec::new(),
            };
            let run = match cx.hooks.settings_version() == cx.settings_version {
                true => self.run_statement(prepared, args, cx, &mut sink),
                false => self.run_as_set(n, args, cx, &mut sink),
            };
            run.map_err(|e| {
                let name = &self.definition.name;
                e.without_position().context(format!("SQL function \"{name}\" statement {}", n + 1))
            })?;
            rows = sink.rows;
        }
        Ok(rows)
    }

    fn run_statement(
        &self,
        prepared: &Arc<Prepared>,
        args: &[Datum],
        cx: &mut ExecContext<'_>,
        sink: &mut Collect,
    ) -> Result<()> {
        let snapshot = nested::snapshot(self.definition.volatility == 'v', cx);
        nested::run(prepared, args, snapshot, cx, sink)?;
        Ok(())
    }

    /// Runs the `n`th statement after an earlier one has changed settings: under the new ones, in the name of the
    /// role that SET ROLE gave and with its rights. Names mean what they meant when the body began.
    fn run_as_set(
        &self,
        n: usize,
        args: &[Datum],
        cx: &mut ExecContext<'_>,
        sink: &mut Collect,
    ) -> Result<()> {
        let path = cx.search_path;
        up_to_date(cx, |cx| {
            let mut inner = ExecContext {
                snapshot: cx.snapshot,
                search_path: path,
                environment: sql::environment(cx.settings, path, cx.user, cx.database.1),
                params: cx.params,
                nonatomic: cx.nonatomic,
                ..cx.inner()
            };
            let planned = self.planned(&mut inner)?;
            match planned.body.statements.get(n) {
                Some(prepared) => self.run_statement(prepared, args, &mut inner, sink),
                None => Ok(()),
            }
        })
    }

    /// What the function returns for the rows of its last statement. `wanted`: the columns that a
    /// column definition list names.
    fn results(
        &self,
        planned: &SqlBody,
        rows: Vec<Vec<Datum>>,
        wanted: Option<&[(types::Text, Oid)]>,
        cx: &mut ExecContext<'_>,
    ) -> Result<Vec<Datum>> {
        let Some(exprs) = &planned.body.result else {
            return Ok(vec![]);
        };
        if let Some(wanted) = wanted {
            self.check_columns(&planned.body.columns, wanted)?;
        }
        let nothing = Prepared::empty(0);
        let prepared = planned.body.statements.last().map_or(&nothing, |s| s);
        let snapshot = cx.snapshot;
        let mut state = ExecState::default();
        let mut run = Run { cx, prepared, params: &[], snapshot, state: &mut state };
        let mut out = Vec::with_capacity(rows.len());
        for row in rows {
            let mut values = eval::eval_all(exprs, Row::Values(&row), &mut run)?;
            out.push(match &planned.shape {
                Some(_) if matches!(&values[..], [Datum::Record(_)]) => values.remove(0),
                Some(shape) => Datum::record(shape.clone(), values),
                None => values.swap_remove(0),
            });
        }
        Ok(out)
    }

    /// `42P13` unless the rows are those that the caller named.
    fn check_columns(
        &self,
        given: &[(types::Text, Oid)],
        wanted: &[(types::Text, Oid)],
    ) -> Result<()> {
        let mismatch = |detail: String| {
            err!(
                INVALID_FUNCTION_DEFINITION,
                "return type mismatch in function declared to return record"
            )
            .detail(detail)
            .context(format!("SQL function \"{}\" during startup", self.definition.name))
        };
        if given.len() != wanted.len() {
            let what = if given.len() < wanted.len() { "few" } else { "many" };
            return Err(mismatch(format!("Final statement returns too {what} columns.")));
        }
        for (n, ((_, given), (_, wanted))) in given.iter().zip(wanted).enumerate() {
            if given != wanted {
                return Err(mismatch(format!(
                    "Final statement returns {} instead of {} at column {}.",
                    types::io::format_type(*given, -1),
                    types::io::format_type(*wanted, -1),
                    n + 1
                )));
            }
        }
        Ok(())
    }
}

/// In whose name a function runs, and where it looks for names, if that is not as the session does.
fn acting(definition: &Function, cx: &mut ExecContext<'_>) -> Option<Acting> {
    if !definition.security_definer && definition.settings.is_empty() && !definition.standard_body {
        return None;
    }
    let view = cx.catalog_tx.view();
    let owner = definition.owner;
    let role = definition
        .security_definer
        .then(|| (owner, view.role(owner).map_or_else(String::new, |r| r.name.clone())));
    let user = role.as_ref().map_or(cx.user, |r| r.1.as_str());
    let set = definition.settings.iter().find(|(name, _)| name == "search_path");
    let path = match set {
        Some((_, names)) => Some(path_of(&view, names, user)),
        None if definition.standard_body => Some(definition.path.clone()),
        None => None,
    };
    let in_path = path.as_deref().unwrap_or(cx.search_path);
    let environment = match role.is_some() || path.is_some() {
        true => sql::environment(cx.settings, in_path, user, cx.database.1),
        false => cx.environment,
    };
    Some(Acting { environment, path, role })
}

/// Puts a function's own settings in force, if it has any.
fn enter(definition: &Function, cx: &mut ExecContext<'_>) -> Result<Option<(Box<Values>, usize)>> {
    if definition.settings.is_empty() {
        return Ok(None);
    }
    cx.hooks.enter(&definition.settings, (cx.settings, cx.format)).map(Some)
}

/// Ends that.
fn leave(definition: &Function, mark: Option<usize>, cx: &mut ExecContext<'_>) {
    if let Some(mark) = mark {
        cx.hooks.leave(&definition.settings, mark);
    }
}

/// The role that a function's SET gives it; the session must be able to become that role.
fn set_role(definition: &Function, cx: &mut ExecContext<'_>) -> Result<Option<(u32, String)>> {
    let Some((_, name)) = definition.settings.iter().find(|(name, _)| name == "role") else {
        return Ok(None);
    };
    let guard = if definition.security_definer { Guard::Definer } else { cx.guard };
    crate::security::check_setting(crate::context::Acting { guard, ..cx.acting() }, "role")?;
    let (user, session) = cx.session_user;
    become_role(name, (session, user.to_owned()), cx).map(Some)
}

/// The schemas of a search_path, `pg_catalog` first unless it is named.
fn path_of(view: &catalog::Snapshot, names: &str, user: &str) -> Vec<u32> {
    let mut path = Vec::new();
    for name in base::settings::split_names(names).unwrap_or_default() {
        let name = if name == "$user" { user } else { &name };
        let found = view.schema_named(name).map(|s| s.oid);
        path.extend(found.filter(|id| !path.contains(id)));
    }
    if !path.contains(&catalog::object::ids::PG_CATALOG) {
        path.insert(0, catalog::object::ids::PG_CATALOG);
    }
    path
}

/// Keeps a statement's rows, if they are wanted.
struct Collect {
    types: Vec<Oid>,
    wanted: bool,
    first_only: bool,
    rows: Vec<Vec<Datum>>,
}

impl Collect {
    fn is_full(&self) -> bool {
        !self.wanted || self.first_only && !self.rows.is_empty()
    }
}

impl RowSink for Collect {
    fn batch(&mut self, batch: &Batch) -> Result<()> {
        for row in 0..batch.rows {
            if self.is_full() {
                return Ok(());
            }
            self.rows.push(rows::get(batch, row, &self.types));
        }
        Ok(())
    }

    fn row(&mut self, row: &[Datum]) -> Result<()> {
        if !self.is_full() {
            self.rows.push(row.to_vec());
        }
        Ok(())
    }

    fn copy_data(&mut self, _bytes: &[u8]) -> Result<()> {
        Ok(())
    }
}

/// Whether a new function's body makes sense to its language.
///
/// # Errors
/// Those of the body.
pub fn validate(
    function: &Arc<Function>,
    body_at: Option<u32>,
    cx: &mut ExecContext<'_>,
) -> Result<()> {
    match function.language.as_str() {
        "sql" => SqlLanguage.validate(function, body_at, cx),
        language => {
            let language = cx.engine.languages.find(language)?.clone();
            language.validate(function, body_at, cx)
        }
    }
}

/// DO.
///
/// # Errors
/// `42704`, `0A000`; those of the body.
pub fn run_block(language: &str, body: &str, cx: &mut ExecContext<'_>) -> Result<()> {
    match language {
        "sql" => SqlLanguage.run_block(body, cx),
        "c" | "internal" => Err(err!(
            FEATURE_NOT_SUPPORTED,
            "language \"{language}\" does not support inline code execution"
        )),
        language => {
            let language = cx.engine.languages.find(language)?.clone();
            language.run_block(body, cx)
        }
    }
}
