//! Statements inside a statement: what bodies of functions and programs run.
//!
//! * Each is prepared with real statistics, under the settings and in the name that its [`ExecContext`]
//!   says. A program keeps its plans in [`PlanSlot`]s, which all sessions share.
//! * A VOLATILE routine's statements each see everything that the transaction has done and all that is
//!   committed by then; those of others see what the calling statement sees.
//! * A subtransaction undoes everything that its statements did when they fail.

use std::sync::Arc;

use base::{Error, Fork, Oid, RelId, Result, err};
use catalog::store::CatalogMark;
use catalog::{Snapshot as Catalog, Table};
use sql::embedded::Variables;
use sql::{PrepareContext, Prepared, Statement, Utility};
use txn::{Isolation, LockTag, LockWait, SavepointLevel, Snapshot};
use types::func::SessionFunction;
use types::oids::TEXT;
use types::{Batch, Datum, TypeIo};

use crate::context::{
    Engine, ExecContext, OpenCursor, Outcome, RowSink, SessionMark, TransactionEnd,
};
use crate::execution::{Execution, run_utility};
use crate::modify::fire::fire_all;
use crate::parallel;
use crate::plan_slot::PlanKey;
use crate::run::{ExecState, Run};

/// Times that a statement is planned anew because definitions change under it.
pub const ATTEMPTS: usize = 8;

/// Pages and rows of a table now, as the planner wants to know them.
pub fn table_size(engine: &Engine, catalog: &Catalog, table: &Table) -> (u32, f64) {
    let pages = engine.storage.block_count(RelId(table.rel), Fork::Main).unwrap_or(0);
    if let Some(stats) = catalog.stats(table.oid).filter(|s| s.pages > 0) {
        return (pages, (stats.rows / f64::from(stats.pages) * f64::from(pages)).max(0.0));
    }
    let width = |c: &catalog::Column| match TypeIo::get(Oid(c.ty)).map_or(-1, |t| t.len) {
        len if len > 0 => f64::from(len),
        _ => 32.0,
    };
    let row: f64 = table.live_columns().map(|(_, c)| width(c)).sum::<f64>() + 28.0;
    // A table that was never analysed may be about to grow.
    let pages = pages.max(10);
    (pages, f64::from(pages) * 8168.0 / row)
}

/// Calls `f` with what binding and planning a statement here depend on.
pub fn preparing<R>(
    cx: &mut ExecContext<'_>,
    variables: Option<&dyn Variables>,
    f: impl FnOnce(&sql::PlanCache, &PrepareContext<'_>) -> R,
) -> R {
    let view = cx.catalog_tx.view();
    cx.hooks.see_types(&view, cx.search_path);
    let engine = cx.engine;
    let size = |table: &Table| table_size(engine, &view, table);
    let context = PrepareContext {
        catalog: &view,
        settings: cx.settings,
        search_path: cx.search_path,
        format: cx.format,
        user: cx.user,
        role: cx.role,
        trusted: false,
        database: cx.database.0,
        environment: cx.environment,
        arguments: None,
        variables,
        values: &[],
        table_size: &size,
    };
    f(&engine.plans, &context)
}

/// Takes the locks that a plan needs.
///
/// # Errors
/// Deadlocks, time-outs, interrupts.
pub fn lock(prepared: &Prepared, cx: &ExecContext<'_>) -> Result<()> {
    let locks = &cx.tx.manager().locks;
    for (table, mode) in &prepared.locks {
        let tag = LockTag::Relation(Oid(cx.database.1), *table);
        locks.lock(cx.tx.locks(), tag, *mode, LockWait::Block)?;
    }
    Ok(())
}

/// Prepares a statement that a body gives as text, with parameters of these types (those beyond: as the statement has
/// them), and takes its locks.
///
/// # Errors
/// Those of the statement, with its text as context; `55006` when definitions change too fast.
pub fn prepare(text: &str, types: &[Oid], cx: &mut ExecContext<'_>) -> Result<Arc<Prepared>> {
    for _ in 0..ATTEMPTS {
        let key = PlanKey::now(cx);
        let prepared = preparing(cx, None, |plans, cx| plans.prepare(text, types, cx));
        let prepared = prepared.map_err(|e| match e.fields().position {
            0 => e.context(format!("SQL statement \"{text}\"")),
            _ => e.inside(text),
        })?;
        lock(&prepared, cx)?;
        if PlanKey::now(cx) == key {
            return Ok(prepared);
        }
    }
    Err(err!(OBJECT_IN_USE, "definitions change too fast for this statement"))
}

/// Opens a cursor for a body's query under a name that is made up, and says it. `volatile`: see [`snapshot`].
///
/// # Errors
/// `42P11` for a statement without rows; those of the query's start.
pub fn open_cursor(
    prepared: Arc<Prepared>,
    text: &str,
    params: Vec<Datum>,
    volatile: bool,
    cx: &mut ExecContext<'_>,
) -> Result<String> {
    if !sql::embedded::returns_rows(&prepared) {
        return Err(err!(
            INVALID_CURSOR_DEFINITION,
            "cannot open {} query as cursor",
            prepared.tag
        ));
    }
    let snapshot = snapshot(volatile, cx);
    let (execution, pin) = start(&prepared, &params, snapshot, cx)?;
    let opened = cx.hooks.open_cursor(OpenCursor {
        name: None,
        prepared,
        text: text.to_owned(),
        params,
        execution: Box::new(execution),
        snapshot,
        pin,
        scroll: None,
        tables: Vec::new(),
    });
    if opened.is_err() {
        cx.tx.unpin_snapshot(pin);
    }
    opened
}

/// A sink that keeps all rows.
pub struct RowList<'t> {
    types: &'t [Oid],
    /// The rows.
    pub rows: Vec<Vec<Datum>>,
}

impl RowList<'_> {
    /// Without rows yet; of columns of these types.
    pub fn of(types: &[Oid]) -> RowList<'_> {
        RowList { types, rows: Vec::new() }
    }
}

impl RowSink for RowList<'_> {
    fn batch(&mut self, batch: &Batch) -> Result<()> {
        for row in 0..batch.rows {
            self.rows.push(crate::rows::get(batch, row, self.types));
        }
        Ok(())
    }

    fn row(&mut self, row: &[Datum]) -> Result<()> {
        self.rows.push(row.to_vec());
        Ok(())
    }

    fn copy_data(&mut self, _bytes: &[u8]) -> Result<()> {
        Ok(())
    }
}

/// What the next statement of a routine sees.
pub fn snapshot(volatile: bool, cx: &ExecContext<'_>) -> Snapshot {
    if !volatile {
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

/// `25006` for a statement that writes in a read-only transaction.
fn check_read_only(prepared: &Prepared, cx: &ExecContext<'_>) -> Result<()> {
    if prepared.writes && cx.tx.read_only() && prepared.tag != "CALL" {
        let only_temporary = matches!(prepared.statement, Statement::Query(_))
            && !prepared.locks.is_empty()
            && prepared
                .locks
                .iter()
                .filter(|(_, mode)| *mode > txn::LockMode::AccessShare)
                .all(|(table, _)| table.is_temporary());
        if !only_temporary {
            base::bail!(
                READ_ONLY_SQL_TRANSACTION,
                "cannot execute {} in a read-only transaction",
                prepared.tag
            );
        }
    }
    Ok(())
}

/// `25000` for a statement that the threads of a parallel statement may not run.
fn check_parallel(prepared: &Prepared, cx: &mut ExecContext<'_>) -> Result<()> {
    if !parallel::is_parallel(cx) {
        return Ok(());
    }
    let reads = matches!(prepared.statement, Statement::Query(_) | Statement::Empty)
        && !prepared.writes
        && prepared.locks.iter().all(|(_, mode)| *mode <= txn::LockMode::AccessShare);
    if !reads && !matches!(prepared.statement, Statement::Utility(Utility::Show(_))) {
        parallel::expect_alone(prepared.tag, cx)?;
    }
    let temporary = prepared.locks.iter().any(|(table, _)| table.is_temporary());
    if temporary && cx.hooks.deferred().parallel == parallel::Role::Helper {
        base::bail!(
            INVALID_TRANSACTION_STATE,
            "cannot access temporary tables during a parallel operation"
        );
    }
    Ok(())
}

/// Runs a statement whose locks are taken.
///
/// # Errors
/// The statement's; `25000`; `25006`; `0A000` for statements that can't stand inside another.
pub fn run(
    prepared: &Arc<Prepared>,
    params: &[Datum],
    snapshot: Snapshot,
    cx: &mut ExecContext<'_>,
    sink: &mut dyn RowSink,
) -> Result<Outcome> {
    check_read_only(prepared, cx)?;
    check_parallel(prepared, cx)?;
    let nonatomic = cx.nonatomic;
    let outcome = match &prepared.statement {
        Statement::Query(_) => {
            let nonatomic = nonatomic && prepared.tag == "CALL";
            let run = cx.engine.calls.run;
            let mut inner = ExecContext { snapshot, params, nonatomic, ..cx.inner() };
            run(prepared, &mut inner, sink)?
        }
        Statement::Utility(Utility::Set { name, value, local }) => {
            let value = value.as_deref().map_or(Datum::Null, Datum::text);
            let acting = cx.acting();
            crate::security::check_setting(acting, name)?;
            let args = [Datum::text(name), value, Datum::Bool(*local)];
            cx.hooks.call(SessionFunction::SetConfig, &args, acting)?;
            Outcome::default()
        }
        Statement::Utility(Utility::Show(Some(name))) => {
            let acting = cx.acting();
            let args = [Datum::text(name), Datum::Bool(false)];
            let value = cx.hooks.call(SessionFunction::CurrentSetting, &args, acting)?;
            sink.row(&[value])?;
            Outcome { rows: 1, ..Outcome::default() }
        }
        Statement::Utility(utility) if utility.runs_in_steps().is_some() => {
            let what = utility.runs_in_steps().unwrap_or_default();
            base::bail!(ACTIVE_SQL_TRANSACTION, "{what} cannot be executed from a function");
        }
        Statement::Utility(Utility::Subscription(statement)) if statement.alone().is_some() => {
            let what = statement.alone().unwrap_or_default();
            base::bail!(ACTIVE_SQL_TRANSACTION, "{what} cannot be executed from a function");
        }
        Statement::Utility(utility) if utility.is_own() => {
            let mut inner = ExecContext { snapshot, params, nonatomic, ..cx.inner() };
            let outcome = run_utility(prepared, &mut inner, sink)?;
            let view = cx.catalog_tx.view();
            cx.hooks.see_types(&view, cx.search_path);
            outcome
        }
        Statement::Utility(_) => {
            let acting = cx.acting();
            cx.hooks.run_own(prepared, acting)?;
            Outcome::default()
        }
        Statement::Empty => Outcome::default(),
    };
    if prepared.writes {
        cx.tx.next_command();
    }
    Ok(outcome)
}

/// Begins a query that gives its rows step by step, with its snapshot registered until the registration
/// that is returned is given to [`txn::Transaction::unpin_snapshot`].
///
/// # Errors
/// As [`run`].
pub fn start(
    prepared: &Arc<Prepared>,
    params: &[Datum],
    snapshot: Snapshot,
    cx: &mut ExecContext<'_>,
) -> Result<(Execution, u64)> {
    check_read_only(prepared, cx)?;
    check_parallel(prepared, cx)?;
    let mut inner = ExecContext { snapshot, params, ..cx.inner() };
    let execution = Execution::start(prepared, &mut inner)?;
    let pin = cx.tx.pin_snapshot(&snapshot);
    Ok((execution, pin))
}

/// Computes a bound expression.
///
/// # Errors
/// The expression's.
#[inline]
pub fn value(
    expr: &sql::Expr,
    prepared: &Prepared,
    params: &[Datum],
    snapshot: Snapshot,
    state: &mut ExecState,
    cx: &mut ExecContext<'_>,
) -> Result<Datum> {
    let mut run = Run { cx, prepared, params, snapshot, state };
    crate::eval::eval(expr, crate::rows::Row::Empty, &mut run)
}

/// A value as its type prints it.
///
/// # Errors
/// Those of the type.
pub fn text_of(value: &Datum, ty: Oid, cx: &mut ExecContext<'_>) -> Result<String> {
    if !types::io::is_reg(ty) && !types::user::is_user(ty) {
        return types::io::to_text(ty, value, cx.format).map(Into::into);
    }
    match convert(value.clone(), ty, TEXT, cx)? {
        Datum::Text(text) | Datum::Bpchar(text) => Ok(text.to_string()),
        _ => Ok(String::new()),
    }
}

/// A value as another type, as an assignment converts it.
///
/// # Errors
/// When it can't be converted.
pub fn convert(given: Datum, from: Oid, to: Oid, cx: &mut ExecContext<'_>) -> Result<Datum> {
    if from == to {
        return Ok(given);
    }
    let expr = preparing(cx, None, |_, cx| sql::embedded::conversion(from, (to, -1), cx))?;
    let nothing = Prepared::empty(0);
    let snapshot = cx.snapshot;
    let mut state = ExecState::default();
    value(&expr, &nothing, &[given], snapshot, &mut state, cx)
}

/// A place inside a statement to which everything that follows can be undone. It is released, also after it was rolled
/// back to, and before those that were made earlier.
pub struct Savepoint {
    level: SavepointLevel,
    catalog: CatalogMark,
    session: SessionMark,
}

impl Savepoint {
    /// Begins a subtransaction.
    pub fn new(cx: &mut ExecContext<'_>) -> Savepoint {
        Savepoint {
            level: cx.tx.savepoint(),
            catalog: cx.catalog_tx.savepoint(),
            session: cx.hooks.savepoint(),
        }
    }

    /// Subtransactions around this one.
    fn around(&self) -> usize {
        self.level.0 as usize - 1
    }

    /// Undoes everything since, savepoints made later included.
    pub fn roll_back(&self, cx: &mut ExecContext<'_>) {
        if let Some(foreign) = cx.hooks.foreign().filter(|parts| !parts.is_empty()) {
            foreign.rolled_back(self.around());
        }
        cx.tx.rollback_to(self.level);
        cx.catalog_tx.rollback_to(&self.catalog);
        cx.hooks.rollback_to(&self.session, cx.tx);
        let view = cx.catalog_tx.view();
        cx.hooks.see_types(&view, cx.search_path);
    }

    /// Makes what was done since a part of what is around it, with that of savepoints made later.
    pub fn release(self, cx: &mut ExecContext<'_>) {
        if let Some(foreign) = cx.hooks.foreign().filter(|parts| !parts.is_empty()) {
            foreign.released(self.around());
        }
        cx.tx.release(self.level);
    }
}

/// Runs `f` in a subtransaction: when it fails, everything that it did is undone.
///
/// # Errors
/// `f`'s.
pub fn subtransaction<R>(
    cx: &mut ExecContext<'_>,
    f: impl FnOnce(&mut ExecContext<'_>) -> Result<R>,
) -> Result<R> {
    if parallel::is_parallel(cx) {
        base::bail!(
            INVALID_TRANSACTION_STATE,
            "cannot start subtransactions during a parallel operation"
        );
    }
    let savepoint = Savepoint::new(cx);
    let result = f(cx);
    if result.is_err() {
        savepoint.roll_back(cx);
    }
    savepoint.release(cx);
    result
}

/// COMMIT and ROLLBACK in a procedure: ends the transaction and begins the next one.
///
/// # Errors
/// `2D000` where that may not be; those of a commit.
pub fn end_transaction(end: TransactionEnd, cx: &mut ExecContext<'_>) -> Result<()> {
    if !cx.nonatomic {
        return Err(Error::new(
            base::sqlstate::INVALID_TRANSACTION_TERMINATION,
            "invalid transaction termination",
        ));
    }
    if end.commit {
        fire_all(cx)?;
    }
    cx.hooks.end_transaction(end, cx.tx, cx.catalog_tx)?;
    cx.snapshot = cx.tx.snapshot();
    let view = cx.catalog_tx.view();
    cx.hooks.see_types(&view, cx.search_path);
    Ok(())
}
