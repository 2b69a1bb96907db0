//! Running functions that users wrote in SQL.
//!
//! ```text
//!   Expr::Call ──► body: planned once an execution of the outer statement, kept in its State
//!                    │  statement after statement, parameters as $1, $2, …
//!                    ▼
//!                  rows of the last one ──► what the function returns
//! ```
//!
//! * A VOLATILE function's statements each see everything that the transaction has done and all that is
//!   committed by then; those of other functions see what the calling statement sees.
//! * The body's statements are planned in the name of whoever calls, or of the owner (SECURITY DEFINER):
//!   rights are checked there.
//! * Nothing is inlined: a call is a call.
//!
//! Source: PostgreSQL's manual, "Query Language (SQL) Functions".

use std::sync::Arc;

use base::{Error, Oid, Result, err};
use catalog::Function;
use sql::routine::{RoutineBody, prepare_body, setting_of};
use sql::{Expr, Prepared, Statement};
use txn::{Isolation, LockTag, LockWait, Snapshot};
use types::datum::Shape;
use types::oids::RECORD;
use types::{Batch, Datum, FunctionRow};

use crate::context::{Acting, ExecContext, Guard, RowSink, Values};
use crate::eval;
use crate::rows::{self, Row};
use crate::run::Run;
use crate::spi::{As, with_context_as};

/// Times that a body is planned anew because definitions change under it.
const ATTEMPTS: usize = 8;

/// A function that can be run.
pub struct Routine {
    definition: Arc<Function>,
    body: RoutineBody,
    /// The result is a row of this shape.
    shape: Option<Arc<Shape>>,
    /// Which of a call's arguments the body gets: all but a procedure's OUT parameters.
    inputs: Vec<usize>,
    /// Who runs it, and where it looks for names, when that differs from the session.
    acting: As,
}

/// What an execution keeps: by function, types of the arguments and of the result.
pub struct Known {
    oid: Oid,
    types: Vec<Oid>,
    result: Oid,
    routine: Arc<Routine>,
}

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
    let rows = rows_of(function, args, ty, row, run)?;
    Ok(rows.into_iter().next().unwrap_or_default())
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
    let types: Vec<Oid> = given.iter().map(Expr::ty).collect();
    let routine = routine(function, types, ty, run)?;
    let wanted = match template.first() {
        Some(Expr::Const(Datum::Record(r), _)) => Some(&r.shape.columns[..]),
        _ => None,
    };
    let values: Vec<Datum> = routine.inputs.iter().map(|n| values[*n].clone()).collect();
    let rows = routine.run(&values, run.cx)?;
    routine.results(rows, wanted, run)
}

fn routine(
    function: &'static FunctionRow,
    types: Vec<Oid>,
    result: Oid,
    run: &mut Run<'_, '_>,
) -> Result<Arc<Routine>> {
    let fits = |k: &&Known| k.oid == function.oid && k.types == types && k.result == result;
    if let Some(known) = run.state.routines.iter().find(fits) {
        return Ok(known.routine.clone());
    }
    let routine = Arc::new(Routine::plan(function, &types, result, run.cx)?);
    let known = Known { oid: function.oid, types, result, routine: routine.clone() };
    run.state.routines.push(known);
    Ok(routine)
}

impl Routine {
    fn plan(
        function: &'static FunctionRow,
        types: &[Oid],
        result: Oid,
        cx: &mut ExecContext<'_>,
    ) -> Result<Routine> {
        let context = format!("SQL function \"{}\" during startup", function.name);
        let inner = |e: Error| e.without_position().context(context.clone());
        for _ in 0..ATTEMPTS {
            let view = cx.catalog_tx.view();
            let Some(definition) = view.function(function.oid.0).cloned() else {
                return Err(err!(UNDEFINED_FUNCTION, "function {} does not exist", function.name));
            };
            let modes = definition.called_with().enumerate();
            let inputs: Vec<usize> = modes.filter(|(_, a)| a.mode != 'o').map(|(n, _)| n).collect();
            let types: Vec<Oid> = inputs.iter().filter_map(|n| types.get(*n).copied()).collect();
            let entered = enter(&definition, cx)?;
            let acting = acting(&definition, cx);
            let (values, mark) = entered.unzip();
            let acting = As { values, ..acting };
            let body = with_context_as(cx, &acting, |context| {
                prepare_body(&definition, &types, result, true, context)
            });
            leave(&definition, mark, cx);
            let body = body.map_err(inner)?;
            lock(&body, cx)?;
            if cx.catalog_tx.view().version != view.version {
                continue;
            }
            let shape = (result == RECORD)
                .then(|| Arc::new(Shape { ty: RECORD, columns: body.columns.clone() }));
            return Ok(Routine { definition, body, shape, inputs, acting });
        }
        Err(err!(OBJECT_IN_USE, "definitions change too fast for function {}", function.name))
    }

    /// Runs the statements; the rows of the last one.
    fn run(&self, args: &[Datum], cx: &mut ExecContext<'_>) -> Result<Vec<Vec<Datum>>> {
        let mark = enter(&self.definition, cx)?.map(|e| e.1);
        let rows = self.run_body(args, cx);
        leave(&self.definition, mark, cx);
        rows
    }

    fn run_body(&self, args: &[Datum], cx: &mut ExecContext<'_>) -> Result<Vec<Vec<Datum>>> {
        let mut rows = Vec::new();
        for (n, prepared) in self.body.statements.iter().enumerate() {
            sched::check_interrupts()?;
            let mut sink = Collect {
                types: prepared.columns.iter().map(|c| c.ty).collect(),
                wanted: n + 1 == self.body.statements.len() && self.body.result.is_some(),
                first_only: !self.definition.set,
                rows: Vec::new(),
            };
            self.run_statement(prepared, args, cx, &mut sink).map_err(|e| {
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
        if prepared.writes && cx.tx.read_only() {
            base::bail!(
                READ_ONLY_SQL_TRANSACTION,
                "cannot execute {} in a read-only transaction",
                prepared.tag
            );
        }
        if let Some((name, value, local)) = setting_of(prepared) {
            let value = value.map_or(Datum::Null, |v| Datum::Text(v.into()));
            let args = [Datum::Text((*name).into()), value, Datum::Bool(local)];
            let acting = Acting { role: self.role(cx), guard: self.guard(cx) };
            crate::security::check_setting(acting, name)?;
            return cx.hooks.call("set_config", &args, acting).map(drop);
        }
        let snapshot = self.snapshot(cx);
        let outer = (cx.user, cx.search_path);
        let (role, guard) = (self.role(cx), self.guard(cx));
        let values = self.acting.values.as_ref();
        let (settings, format) = (cx.settings, cx.format);
        let mut inner = ExecContext {
            snapshot,
            settings: values.map_or(settings, |v| &v.settings),
            format: values.map_or(format, |v| &v.format),
            search_path: self.acting.path.as_deref().unwrap_or(outer.1),
            user: self.acting.role.as_ref().map_or(outer.0, |r| r.1.as_str()),
            role,
            guard,
            params: args,
            ..cx.inner()
        };
        match &prepared.statement {
            Statement::Query(_) => drop(crate::execute::run(prepared, &mut inner, sink)?),
            Statement::Utility(utility) if utility.is_own() => {
                crate::execute::run_utility(prepared, &mut inner, sink)?;
            }
            Statement::Utility(_) => {
                return Err(Error::unsupported(format!("{} in a function", prepared.tag)));
            }
            Statement::Empty => {}
        }
        if prepared.writes {
            cx.tx.next_command();
        }
        Ok(())
    }

    /// In whose name it runs.
    fn role(&self, cx: &ExecContext<'_>) -> u32 {
        self.acting.role.as_ref().map_or(cx.role, |r| r.0)
    }

    fn guard(&self, cx: &ExecContext<'_>) -> Guard {
        match self.acting.role {
            Some(_) => cx.guard.max(Guard::Definer),
            None => cx.guard,
        }
    }

    fn snapshot(&self, cx: &ExecContext<'_>) -> Snapshot {
        if self.definition.volatility != 'v' {
            return cx.snapshot;
        }
        cx.tx.next_command();
        let mut snapshot = match cx.tx.isolation() {
            Isolation::ReadCommitted => cx.tx.latest_snapshot(),
            _ => cx.tx.snapshot(),
        };
        snapshot.command = cx.tx.command();
        snapshot
    }

    /// What the function returns for the rows of its last statement. `wanted`: the columns that a
    /// column definition list names.
    fn results(
        &self,
        rows: Vec<Vec<Datum>>,
        wanted: Option<&[(types::Text, Oid)]>,
        run: &mut Run<'_, '_>,
    ) -> Result<Vec<Datum>> {
        let Some(exprs) = &self.body.result else {
            return Ok(vec![]);
        };
        if let Some(wanted) = wanted {
            self.check_columns(wanted)?;
        }
        let mut out = Vec::with_capacity(rows.len());
        for row in rows {
            let mut values = eval::eval_all(exprs, Row::Values(&row), run)?;
            out.push(match &self.shape {
                Some(_) if matches!(&values[..], [Datum::Record(_)]) => values.remove(0),
                Some(shape) => Datum::record(shape.clone(), values),
                None => values.swap_remove(0),
            });
        }
        Ok(out)
    }

    /// `42P13` unless the rows are those that the caller named.
    fn check_columns(&self, wanted: &[(types::Text, Oid)]) -> Result<()> {
        let given = &self.body.columns;
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

/// In whose name a function runs, and where it looks for names.
fn acting(definition: &Function, cx: &mut ExecContext<'_>) -> As {
    let view = cx.catalog_tx.view();
    let owner = definition.owner;
    let role = definition
        .security_definer
        .then(|| (owner, view.role(owner).map_or_else(String::new, |r| r.name.clone())));
    let set = definition.settings.iter().find(|(name, _)| name == "search_path");
    let path = match set {
        Some((_, names)) => {
            Some(path_of(&view, names, role.as_ref().map_or(cx.user, |r| r.1.as_str())))
        }
        None if definition.standard_body => Some(definition.path.clone()),
        None => None,
    };
    As { path, role, ..As::default() }
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

/// The schemas of a search_path, `pg_catalog` first unless it is named.
fn path_of(view: &catalog::Snapshot, names: &str, user: &str) -> Vec<u32> {
    let mut path = Vec::new();
    for name in names.split(',').map(|n| n.trim().trim_matches('"')) {
        let name = if name == "$user" { user } else { name };
        path.extend(view.schema_named(name).map(|s| s.oid));
    }
    if !path.contains(&catalog::object::ids::PG_CATALOG) {
        path.insert(0, catalog::object::ids::PG_CATALOG);
    }
    path
}

/// Takes the locks that the body needs.
fn lock(body: &RoutineBody, cx: &ExecContext<'_>) -> Result<()> {
    let locks = &cx.tx.manager().locks;
    for (table, mode) in body.statements.iter().flat_map(|s| &s.locks) {
        let tag = LockTag::Relation(Oid(cx.database.1), *table);
        locks.lock(cx.tx.locks(), tag, *mode, LockWait::Block)?;
    }
    Ok(())
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
