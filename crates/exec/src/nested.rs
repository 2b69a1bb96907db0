//! Statements inside a statement: what bodies of functions and programs run.
//!
//! * Each is prepared with real statistics, under the settings and in the name that its [`ExecContext`]
//!   says. A program keeps its plans in [`PlanSlot`]s, which all sessions share.
//! * A VOLATILE routine's statements each see everything that the transaction has done and all that is
//!   committed by then; those of others see what the calling statement sees.
//! * A subtransaction undoes everything that its statements did when they fail.

use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use base::{Error, Fork, Oid, RelId, Result};
use catalog::{Snapshot as Catalog, Table};
use sql::embedded::Variables;
use sql::{PrepareContext, Prepared, Statement, Utility};
use txn::{Isolation, LockTag, LockWait, Snapshot};
use types::func::SessionFunction;
use types::{Datum, TypeIo};

use crate::context::{Engine, ExecContext, Outcome, RowSink, TransactionEnd};
use crate::execute::Execution;
use crate::routine::SessionRoutines;
use crate::run::{ExecState, Run};

/// Times that a statement is planned anew because definitions change under it.
pub const ATTEMPTS: usize = 8;
/// Plans of one statement for different environments that are kept.
const PLANS_MAX: usize = 32;

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

/// What a plan was made under: while it is the same, the plan is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanKey {
    /// See [`catalog::CatalogTx::stamp`].
    pub stamp: (u64, u64),
    /// See [`ExecContext::environment`].
    pub environment: u64,
}

impl PlanKey {
    /// What a plan would be made under now.
    pub fn now(cx: &mut ExecContext<'_>) -> PlanKey {
        PlanKey { stamp: cx.catalog_tx.stamp(), environment: cx.environment }
    }

    /// Whether other sessions can use such a plan.
    fn is_shared(self) -> bool {
        self.stamp.1 == 0
    }
}

/// The plans of one statement of a routine, by what they were made under. All sessions share them; what
/// a session plans under definitions of its own it keeps for itself.
pub struct PlanSlot<T> {
    number: u64,
    // Held for a look at a few entries: nothing waits meanwhile.
    plans: RwLock<Vec<(PlanKey, Arc<T>)>>,
}

impl<T: Any + Send + Sync> Default for PlanSlot<T> {
    fn default() -> PlanSlot<T> {
        static SLOTS: AtomicU64 = AtomicU64::new(0);
        PlanSlot { number: SLOTS.fetch_add(1, Ordering::Relaxed), plans: RwLock::default() }
    }
}

impl<T: Any + Send + Sync> PlanSlot<T> {
    /// A plan that is good now and fits.
    pub fn get(
        &self,
        key: PlanKey,
        routines: &SessionRoutines,
        fits: impl Fn(&T) -> bool,
    ) -> Option<Arc<T>> {
        if !key.is_shared() {
            let (known, plan) = routines.private.get(&self.number)?;
            let plan = plan.clone().downcast::<T>().ok()?;
            return (*known == key && fits(&plan)).then_some(plan);
        }
        let plans = self.plans.read().unwrap_or_else(PoisonError::into_inner);
        plans.iter().find(|(k, plan)| *k == key && fits(plan)).map(|(_, plan)| plan.clone())
    }

    /// The plan that is good now; one that `plan` makes, where there is none.
    ///
    /// # Errors
    /// `plan`'s.
    pub fn get_or_plan(
        &self,
        cx: &mut ExecContext<'_>,
        plan: impl FnOnce(&mut ExecContext<'_>) -> Result<Arc<T>>,
    ) -> Result<Arc<T>> {
        let key = PlanKey::now(cx);
        if let Some(known) = self.get(key, cx.routines, |_| true) {
            return Ok(known);
        }
        let made = plan(cx)?;
        // Another version may be published by now.
        if PlanKey::now(cx) == key {
            self.put(key, cx.routines, made.clone());
        }
        Ok(made)
    }

    /// Keeps a plan.
    pub fn put(&self, key: PlanKey, routines: &mut SessionRoutines, plan: Arc<T>) {
        if !key.is_shared() {
            routines.keep_private(self.number, key, plan);
            return;
        }
        let mut plans = self.plans.write().unwrap_or_else(PoisonError::into_inner);
        // Those of older versions are of no use to anybody, but for a moment.
        plans.retain(|(k, _)| k.stamp >= key.stamp);
        if plans.len() >= PLANS_MAX {
            plans.remove(0);
        }
        plans.push((key, plan));
    }
}

/// Plans that a session made under definitions of its own, by slot.
pub type PrivatePlans = HashMap<u64, (PlanKey, Arc<dyn Any + Send + Sync>)>;

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

/// Runs a statement whose locks are taken.
///
/// # Errors
/// The statement's; `25006`; `0A000` for statements that can't stand inside another.
pub fn run(
    prepared: &Arc<Prepared>,
    params: &[Datum],
    snapshot: Snapshot,
    cx: &mut ExecContext<'_>,
    sink: &mut dyn RowSink,
) -> Result<Outcome> {
    check_read_only(prepared, cx)?;
    let nonatomic = cx.nonatomic;
    let outcome = match &prepared.statement {
        Statement::Query(_) => {
            let nonatomic = nonatomic && prepared.tag == "CALL";
            let mut inner = ExecContext { snapshot, params, nonatomic, ..cx.inner() };
            crate::execute::run(prepared, &mut inner, sink)?
        }
        Statement::Utility(Utility::Set { name, value, local }) => {
            let value = value.as_deref().map_or(Datum::Null, Datum::text);
            let acting = cx.acting();
            crate::security::check_setting(acting, name)?;
            let args = [Datum::text(name), value, Datum::Bool(*local)];
            cx.hooks.call(SessionFunction::SetConfig, &args, acting)?;
            Outcome::default()
        }
        Statement::Utility(utility) if utility.runs_in_steps().is_some() => {
            let what = utility.runs_in_steps().unwrap_or_default();
            base::bail!(ACTIVE_SQL_TRANSACTION, "{what} cannot be executed from a function");
        }
        Statement::Utility(utility) if utility.is_own() => {
            let mut inner = ExecContext { snapshot, params, nonatomic, ..cx.inner() };
            let outcome = crate::execute::run_utility(prepared, &mut inner, sink)?;
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

/// Runs `f` in a subtransaction: when it fails, everything that it did is undone.
///
/// # Errors
/// `f`'s.
pub fn subtransaction<R>(
    cx: &mut ExecContext<'_>,
    f: impl FnOnce(&mut ExecContext<'_>) -> Result<R>,
) -> Result<R> {
    let level = cx.tx.savepoint();
    let catalog = cx.catalog_tx.savepoint();
    let mark = cx.hooks.savepoint();
    let result = f(cx);
    if result.is_err() {
        cx.tx.rollback_to(level);
        cx.catalog_tx.rollback_to(&catalog);
        cx.hooks.rollback_to(&mark, cx.tx);
        let view = cx.catalog_tx.view();
        cx.hooks.see_types(&view, cx.search_path);
    }
    cx.tx.release(level);
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
        crate::modify::deferred::fire_all(cx)?;
    }
    cx.hooks.end_transaction(end, cx.tx, cx.catalog_tx)?;
    cx.snapshot = cx.tx.snapshot();
    let view = cx.catalog_tx.view();
    cx.hooks.see_types(&view, cx.search_path);
    Ok(())
}
