//! Subqueries in expressions and materialised subplans.

use std::sync::Arc;

use base::{Result, bail};
use sql::Expr;
use sql::expr::{SubqueryExpr, SubqueryKind};
use types::datum::Array;
use types::{Batch, Datum, TypeIo};

use crate::eval;
use crate::ops::grouping::RowSet;
use crate::ops::hashed_rows::{HashedRows, Projections};
use crate::ops::kept::StoredBatches;
use crate::ops::operator::{Operator, build, collect, types};
use crate::rows::{self, Row};
use crate::run::Run;

/// Results that are remembered of one subquery; then it begins anew.
const MEMO_MAX: usize = 16_384;

/// What an execution keeps of a subplan.
#[derive(Default)]
pub struct SubqueryState {
    /// The operators, kept to be run again.
    tree: Option<Box<dyn Operator>>,
    /// The result, when it is computed once.
    value: Option<Datum>,
    /// Results by the values of the slots.
    memo: Option<(RowSet, Vec<Datum>)>,
    /// All rows, when they are read several times.
    rows: Option<Arc<Vec<Batch>>>,
    /// Rows of a WITH query as far as they were asked for, and whether that is all.
    kept: StoredBatches,
    ended: bool,
    /// Outer values with which those rows were computed.
    outer: Option<Vec<Datum>>,
    /// The rows, to be looked up.
    table: Option<Arc<HashedRows>>,
    /// Lookups of rows with NULLs, answered by projections of the table.
    projections: Projections,
}

/// The result of an uncorrelated subquery, which one thread computes for all.
#[derive(Clone)]
pub enum Known {
    /// The value.
    Value(Datum),
    /// The rows, to be looked up.
    Table(Arc<HashedRows>),
}

impl SubqueryState {
    /// The result, once it is there.
    pub fn known(&self) -> Option<Known> {
        let table = || self.table.clone().map(Known::Table);
        self.value.clone().map(Known::Value).or_else(table)
    }

    /// Sets what another thread has computed.
    pub fn know(&mut self, known: Known) {
        match known {
            Known::Value(value) => self.value = Some(value),
            Known::Table(table) => self.table = Some(table),
        }
    }
}

/// The subquery's value for a row of the outer query.
///
/// # Errors
/// Those of the subquery; `21000`.
pub fn eval(query: &SubqueryExpr, row: Row<'_>, run: &mut Run<'_, '_>) -> Result<Datum> {
    for (slot, expr) in &query.slots {
        run.state.slots[usize::from(*slot)] = eval::eval(expr, row, run)?;
    }
    if let SubqueryKind::Compare { test, first_slot, all, hash_left } = &query.kind {
        let Some(left) = hash_left.as_ref().filter(|_| query.is_hashed()) else {
            return compare(query, test, *first_slot, *all, row, run);
        };
        let left = left.iter().map(|e| eval::eval(e, row, run));
        let left = left.collect::<Result<Vec<_>>>()?;
        return hashed(query, &left, run);
    }
    if query.once
        && let Some(value) = &run.state.subqueries[query.plan].value
    {
        return Ok(value.clone());
    }
    let known = query.memo.then(|| slot_values(query, run));
    if let Some(key) = &known
        && let Some((rows, values)) = &run.state.subqueries[query.plan].memo
        && let Some(n) = rows.find(key)
    {
        return Ok(values[n].clone());
    }
    let stops = matches!(query.kind, SubqueryKind::Scalar | SubqueryKind::Exists);
    let value = with_tree(query.plan, stops, run, |tree, run| match &query.kind {
        SubqueryKind::Scalar => scalar(query.plan, tree, run),
        SubqueryKind::Exists => exists(query.plan, tree, run),
        _ => array(query, tree, run),
    })?;
    if query.once {
        run.state.subqueries[query.plan].value = Some(value.clone());
    }
    if let Some(key) = known {
        let memo = &mut run.state.subqueries[query.plan].memo;
        let (rows, values) = memo.get_or_insert_default();
        if rows.len() == MEMO_MAX {
            (*rows, *values) = (RowSet::default(), Vec::new());
        }
        rows.insert(&key);
        values.push(value.clone());
    }
    Ok(value)
}

fn slot_values(query: &SubqueryExpr, run: &Run<'_, '_>) -> Vec<Datum> {
    query.slots.iter().map(|(slot, _)| run.state.slots[usize::from(*slot)].clone()).collect()
}

/// Runs `f` over the subplan's operators, fresh or begun again; they are kept for the next time.
fn with_tree<R>(
    number: usize,
    may_stop: bool,
    run: &mut Run<'_, '_>,
    f: impl FnOnce(&mut dyn Operator, &mut Run<'_, '_>) -> Result<R>,
) -> Result<R> {
    let plan = &run.prepared.subplans[number];
    let mut tree = match run.state.subqueries[number].tree.take() {
        Some(mut tree) => {
            tree.rescan(plan, run)?;
            tree
        }
        None => run.reading(may_stop, |run| build(plan, run))?,
    };
    let result = f(tree.as_mut(), run);
    run.state.subqueries[number].tree = Some(tree);
    result
}

fn scalar(number: usize, tree: &mut dyn Operator, run: &mut Run<'_, '_>) -> Result<Datum> {
    let plan = &run.prepared.subplans[number];
    let types = types(plan, run.prepared);
    let mut value = None;
    while let Some(batch) = tree.next(plan, run)? {
        sched::check_interrupts()?;
        if batch.rows > 1 || batch.rows == 1 && value.is_some() {
            bail!(
                CARDINALITY_VIOLATION,
                "more than one row returned by a subquery used as an expression"
            );
        }
        if batch.rows == 1 {
            value = Some(batch.columns[0].get(0, types[0]));
        }
    }
    Ok(value.unwrap_or_default())
}

fn exists(number: usize, tree: &mut dyn Operator, run: &mut Run<'_, '_>) -> Result<Datum> {
    let plan = &run.prepared.subplans[number];
    tree.bound(1);
    tree.hasten();
    while let Some(batch) = tree.next(plan, run)? {
        sched::check_interrupts()?;
        if batch.rows > 0 {
            return Ok(Datum::Bool(true));
        }
    }
    Ok(Datum::Bool(false))
}

fn array(query: &SubqueryExpr, tree: &mut dyn Operator, run: &mut Run<'_, '_>) -> Result<Datum> {
    let plan = &run.prepared.subplans[query.plan];
    let types = types(plan, run.prepared);
    let element = TypeIo::get(query.ty).map_or(types[0], |t| t.element);
    let mut items = Vec::new();
    for batch in collect(tree, plan, run)? {
        items.extend((0..batch.rows).map(|row| batch.columns[0].get(row, types[0])));
    }
    if TypeIo::get(types[0]).is_some_and(|t| t.element == element) {
        return types::func::stack_arrays(element, &items);
    }
    let dims = if items.is_empty() { vec![] } else { vec![(items.len() as i32, 1)] };
    Ok(Datum::Array(Arc::new(Array { element, dims, items })))
}

/// All rows of a subplan, computed at the first call.
///
/// # Errors
/// Those of the subplan.
pub fn materialise(number: usize, run: &mut Run<'_, '_>) -> Result<Arc<Vec<Batch>>> {
    if let Some(rows) = &run.state.subqueries[number].rows {
        return Ok(rows.clone());
    }
    let all = with_tree(number, false, run, |tree, run| {
        collect(tree, &run.prepared.subplans[number], run)
    })?;
    let all = Arc::new(all);
    run.state.subqueries[number].rows = Some(all.clone());
    Ok(all)
}

/// A batch of a WITH query's rows, computed when somebody first asks for it; None at the end.
///
/// # Errors
/// Those of the subplan.
pub fn kept_batch(number: usize, at: usize, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
    let plan = &run.prepared.subplans[number];
    loop {
        let state = &mut run.state.subqueries[number];
        if at < state.kept.len() {
            return state.kept.get(at).map(Some);
        }
        if state.ended {
            return Ok(None);
        }
        sched::check_interrupts()?;
        let mut tree = match state.tree.take() {
            Some(tree) => tree,
            None => build(plan, run)?,
        };
        let next = tree.next(plan, run);
        run.state.subqueries[number].tree = Some(tree);
        match next? {
            Some(batch) if batch.rows > 0 => {
                let mut kept = std::mem::take(&mut run.state.subqueries[number].kept);
                let pushed = kept.push(batch, &types(plan, run.prepared), run);
                run.state.subqueries[number].kept = kept;
                pushed?;
            }
            Some(_) => {}
            None => run.state.subqueries[number].ended = true,
        }
    }
}

/// Forgets a WITH query's rows if the outer values in `slots`, which it uses, have changed since.
///
/// # Errors
/// Those of beginning again.
pub fn refresh_kept(number: usize, slots: &[(u16, Expr)], run: &mut Run<'_, '_>) -> Result<()> {
    if slots.is_empty() {
        return Ok(());
    }
    let mut values = Vec::with_capacity(slots.len());
    for (_, e) in slots {
        values.push(eval::eval(e, Row::Empty, run)?);
    }
    for ((slot, _), value) in slots.iter().zip(&values) {
        run.state.slots[usize::from(*slot)] = value.clone();
    }
    let known = run.state.subqueries[number].outer.replace(values.clone());
    if known.is_some_and(|known| known == values) { Ok(()) } else { forget_kept(number, run) }
}

fn forget_kept(number: usize, run: &mut Run<'_, '_>) -> Result<()> {
    let state = &mut run.state.subqueries[number];
    state.kept = StoredBatches::default();
    state.ended = false;
    let Some(mut tree) = state.tree.take() else { return Ok(()) };
    let begun = tree.rescan(&run.prepared.subplans[number], run);
    run.state.subqueries[number].tree = Some(tree);
    begun
}

/// Forgets all that was computed of a subplan: what it reads has changed.
///
/// # Errors
/// Those of beginning again.
pub fn begin_again(number: usize, run: &mut Run<'_, '_>) -> Result<()> {
    let state = &mut run.state.subqueries[number];
    (state.value, state.memo, state.rows, state.table) = (None, None, None, None);
    state.projections = Projections::default();
    forget_kept(number, run)
}

/// Runs a WITH query to its end.
///
/// # Errors
/// Those of the subplan.
pub fn finish_kept(number: usize, run: &mut Run<'_, '_>) -> Result<()> {
    while !run.state.subqueries[number].ended {
        let known = run.state.subqueries[number].kept.len();
        kept_batch(number, known, run)?;
    }
    Ok(())
}

fn all_rows(query: &SubqueryExpr, run: &mut Run<'_, '_>) -> Result<Arc<Vec<Batch>>> {
    if query.once {
        return materialise(query.plan, run);
    }
    let number = query.plan;
    with_tree(number, false, run, |tree, run| collect(tree, &run.prepared.subplans[number], run))
        .map(Arc::new)
}

/// ANY and ALL (and IN, NOT IN).
fn compare(
    query: &SubqueryExpr,
    test: &sql::Expr,
    first_slot: u16,
    all: bool,
    row: Row<'_>,
    run: &mut Run<'_, '_>,
) -> Result<Datum> {
    let types = types(&run.prepared.subplans[query.plan], run.prepared);
    let batches = all_rows(query, run)?;
    let mut unknown = false;
    for batch in batches.iter() {
        sched::check_interrupts()?;
        for n in 0..batch.rows {
            for (k, value) in rows::get(batch, n, &types).into_iter().enumerate() {
                run.state.slots[usize::from(first_slot) + k] = value;
            }
            match eval::truth(eval::eval(test, row, run)?) {
                Some(value) if value != all => return Ok(Datum::Bool(!all)),
                Some(_) => {}
                None => unknown = true,
            }
        }
    }
    Ok(if unknown { Datum::Null } else { Datum::Bool(all) })
}

/// `left IN (rows)` by a hash table.
fn hashed(query: &SubqueryExpr, left: &[Datum], run: &mut Run<'_, '_>) -> Result<Datum> {
    let table = hash_table(query.plan, run)?;
    let found = table.find(left, &mut run.state.subqueries[query.plan].projections)?;
    Ok(found.map_or(Datum::Null, Datum::Bool))
}

/// The hash table of a subplan's rows, made at the first call.
fn hash_table(number: usize, run: &mut Run<'_, '_>) -> Result<Arc<HashedRows>> {
    if let Some(table) = &run.state.subqueries[number].table {
        return Ok(table.clone());
    }
    let plan = &run.prepared.subplans[number];
    let types = types(plan, run.prepared);
    let table = with_tree(number, false, run, |tree, run| {
        let mut table = HashedRows::default();
        while let Some(batch) = tree.next(plan, run)? {
            sched::check_interrupts()?;
            (0..batch.rows).for_each(|n| table.add(&rows::get(&batch, n, &types)));
        }
        Ok(table)
    })?;
    let table = Arc::new(table);
    run.state.subqueries[number].table = Some(table.clone());
    Ok(table)
}

/// Computes what is computed once of a subquery, so that other threads can be told.
///
/// # Errors
/// Those of the subquery.
pub fn prepare(query: &SubqueryExpr, run: &mut Run<'_, '_>) -> Result<()> {
    if query.is_hashed() {
        hash_table(query.plan, run)?;
    } else {
        eval(query, Row::Empty, run)?;
    }
    Ok(())
}
