//! Operators: one small file each, all of one shape.
//!
//! An operator is the state of one plan node while it runs. It gets its node with every call, hands
//! batches up, and forgets everything when it is told to begin again.

use std::sync::Arc;
use std::time::Instant;

use base::usage::Usage;
use base::{Error, Oid, Result};
use sched::observe::{self, Metered};
use sql::plan::Node;
use sql::{Expr, Plan, Prepared};
use types::Batch;

use self::before_error::Postponed;
use self::key_filter::KeyFilter;
use crate::modify::ModifyOp;
use crate::parallel::Pieces;
use crate::rows;
use crate::run::Run;
use crate::vector;

mod accumulate;
pub mod aggregate;
mod append;
mod before_error;
mod bitmap;
pub mod bitmap_heap_scan;
mod cte;
mod distinct;
mod filter;
mod function_scan;
mod gather;
mod group_sorted;
pub mod grouping;
pub mod hash_join;
mod incremental_sort;
pub mod index_bounds;
pub mod index_only_scan;
mod index_scan;
pub mod kept;
mod key_filter;
mod limit;
mod lock_rows;
pub mod memoize;
mod merge_join;
mod nearest_scan;
mod nested_loop;
mod ordered_set;
mod own_aggregate;
mod partition;
pub mod partition_scan;
mod project;
mod project_set;
mod recursive;
mod rewritten;
mod sample_scan;
mod seq_scan;
mod set_op;
pub mod sort;
pub mod spill;
mod system_scan;
mod unordered_index_scan;
mod values;
mod window;

/// The state of a plan node while it runs.
pub trait Operator: Send {
    /// The next rows; None at the end. A batch may be empty.
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>>;

    /// Adds the rows that are left to `out`, until it has `most` or some more; with `one` it may leave off
    /// after the first. False when there may be more of them, which are asked for in the same way.
    fn drain(
        &mut self,
        plan: &Plan,
        (one, most): (bool, usize),
        out: &mut Batch,
        run: &mut Run<'_, '_>,
    ) -> Result<bool> {
        while let Some(batch) = self.next(plan, run)? {
            rows::append(out, &batch)?;
            if one && batch.rows > 0 {
                break;
            }
            if out.rows >= most {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Begins again, with what slots hold now.
    fn rescan(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()>;

    /// Rows need not be handed up for whose keys (over the output columns) the filter has no hash; until
    /// it begins again.
    fn restrict(&mut self, _keys: &[Expr], _filter: &Arc<KeyFilter>) {}

    /// No more than the first `rows` rows will be asked for.
    fn bound(&mut self, _rows: u64) {}

    /// The first rows are wanted soon, and perhaps no others: they are not kept back until there are more.
    fn hasten(&mut self) {}

    /// The pieces of the scan below, where several threads may read it.
    fn pieces(&self) -> Option<&Pieces> {
        None
    }

    /// Rows that a data-changing operator has changed.
    fn changed(&self) -> Option<u64> {
        None
    }
}

/// What EXPLAIN ANALYZE measures of a node.
#[derive(Clone, Debug, Default)]
pub struct Measure {
    /// Address of the plan node.
    pub node: usize,
    /// Times that it began.
    pub loops: u64,
    /// Rows in all.
    pub rows: u64,
    /// Seconds until the first row, in all.
    pub startup: f64,
    /// Seconds, in all.
    pub total: f64,
    /// Waits of the node and those below it, if they are wanted.
    pub waits: Vec<Metered>,
    /// What the node and those below it have used, if that is wanted.
    pub used: Usage,
    /// What the node itself counted, under EXPLAIN's names.
    pub counts: Vec<(&'static str, u64)>,
}

impl Measure {
    /// Adds what another thread measured of the same node.
    pub fn add(&mut self, other: Measure) {
        self.loops += other.loops;
        self.rows += other.rows;
        self.startup += other.startup;
        self.total += other.total;
        self.used.add(&other.used);
        observe::add_metered(&mut self.waits, &other.waits);
        for (name, amount) in other.counts {
            match self.counts.iter_mut().find(|(known, _)| *known == name) {
                Some((_, sum)) => *sum += amount,
                None => self.counts.push((name, amount)),
            }
        }
    }
}

/// EXPLAIN's name for rows that a filter kept out.
pub const REMOVED_BY_FILTER: &str = "Rows Removed by Filter";

/// Adds to what a node counts of its own, if it is measured.
#[inline]
pub fn count(plan: &Plan, name: &'static str, amount: u64, run: &mut Run<'_, '_>) {
    let Some(measures) = run.state.measure.as_mut() else { return };
    let node = std::ptr::from_ref(plan) as usize;
    let Some(measure) = measures.iter_mut().rev().find(|m| m.node == node) else { return };
    match measure.counts.iter_mut().find(|(known, _)| *known == name) {
        Some((_, sum)) => *sum += amount,
        None => measure.counts.push((name, amount)),
    }
}

/// Keeps the most of what a node tells of its own under a name, if it is measured.
pub fn note_most(plan: &Plan, name: &'static str, amount: u64, run: &mut Run<'_, '_>) {
    let Some(measures) = run.state.measure.as_mut() else { return };
    let node = std::ptr::from_ref(plan) as usize;
    let Some(measure) = measures.iter_mut().rev().find(|m| m.node == node) else { return };
    match measure.counts.iter_mut().find(|(known, _)| *known == name) {
        Some((_, most)) => *most = amount.max(*most),
        None => measure.counts.push((name, amount)),
    }
}

/// The rows of a batch for which a node's condition holds, up to one for which it fails; counts the others.
///
/// # Errors
/// The condition's, when no row comes before it.
pub fn filtered(
    plan: &Plan,
    condition: Option<&Expr>,
    batch: Batch,
    postponed: &mut Postponed,
    run: &mut Run<'_, '_>,
) -> Result<Batch> {
    let before = batch.rows;
    let Some(condition) = condition else { return Ok(batch) };
    let batch = match vector::select(condition, &batch, run) {
        Ok(None) => batch,
        Ok(Some(kept)) => rows::take(&batch, &kept),
        Err(error) => postponed.filter(condition, &batch, error, run)?,
    };
    count(plan, REMOVED_BY_FILTER, (before - batch.rows) as u64, run);
    Ok(batch)
}

/// Measures a node that has no operator.
pub struct Measuring(Option<Instant>);

impl Measuring {
    /// Begins, once more perhaps.
    pub fn begin(plan: &Plan, run: &mut Run<'_, '_>) -> Measuring {
        let Some(measures) = run.state.measure.as_mut() else { return Measuring(None) };
        let node = std::ptr::from_ref(plan) as usize;
        match measures.iter_mut().find(|m| m.node == node) {
            Some(measure) => measure.loops += 1,
            None => measures.push(Measure { node, loops: 1, ..Measure::default() }),
        }
        Measuring(Some(Instant::now()))
    }

    /// It is done and made so many rows.
    pub fn end(self, plan: &Plan, rows: u64, run: &mut Run<'_, '_>) {
        let node = std::ptr::from_ref(plan) as usize;
        let measures = run.state.measure.iter_mut().flatten();
        if let (Some(begin), Some(measure)) =
            (self.0, measures.into_iter().find(|m| m.node == node))
        {
            let seconds = begin.elapsed().as_secs_f64();
            measure.startup += seconds;
            measure.total += seconds;
            measure.rows += rows;
        }
    }
}

/// Makes the operator of a node and of those below it.
pub fn build(plan: &Plan, run: &mut Run<'_, '_>) -> Result<Box<dyn Operator>> {
    let place = run.state.measure.as_mut().map(|all| {
        let node = std::ptr::from_ref(plan) as usize;
        all.push(Measure { node, loops: 1, ..Measure::default() });
        all.len() - 1
    });
    let inner = build_plain(plan, run)?;
    Ok(match place {
        Some(place) => Box::new(Measured { inner, place, first: true }),
        None => inner,
    })
}

fn build_plain(plan: &Plan, run: &mut Run<'_, '_>) -> Result<Box<dyn Operator>> {
    sched::check_stack()?;
    Ok(match &plan.node {
        Node::OneRow => Box::new(values::OneRow::default()),
        Node::Nothing => Box::new(values::Nothing),
        Node::Values(_) => Box::new(values::Values::default()),
        Node::SeqScan(scan) => Box::new(seq_scan::SeqScan::new(scan, run)?),
        Node::IndexScan { scan, bounds, .. } if !bounds.nearest.is_empty() => {
            Box::new(nearest_scan::NearestScan::new(scan, run)?)
        }
        Node::IndexScan { scan, index, .. } if !index.method.properties().ordered => {
            Box::new(unordered_index_scan::UnorderedIndexScan::new(scan, run)?)
        }
        Node::IndexScan { scan, index, .. } => {
            Box::new(index_scan::IndexScan::new(scan, index, run)?)
        }
        Node::IndexOnlyScan { scan, index, .. } => {
            Box::new(index_only_scan::IndexOnlyScan::new(scan, index, run)?)
        }
        Node::BitmapHeapScan { scan, .. } => {
            Box::new(bitmap_heap_scan::BitmapHeapScan::new(scan, run)?)
        }
        // They make no rows: the scan runs them.
        Node::BitmapIndexScan { .. } | Node::BitmapAnd(_) | Node::BitmapOr(_) => {
            return Err(wrong_node());
        }
        Node::PartitionScan(_) => Box::new(partition_scan::PartitionScan::default()),
        Node::SystemScan { .. } => Box::new(system_scan::SystemScan::default()),
        Node::SampleScan { scan, .. } => Box::new(sample_scan::SampleScan::new(scan, run)?),
        Node::FunctionScan { .. } => Box::new(function_scan::FunctionScan::default()),
        Node::Filter { input, .. } => Box::new(filter::Filter::new(build(input, run)?)),
        Node::Project { input, .. } => Box::new(project::Project::new(build(input, run)?)),
        Node::ProjectSet { input, .. } => {
            Box::new(project_set::ProjectSet::new(build(input, run)?))
        }
        Node::NestedLoop { left, right, kind, .. } => {
            let left_types = types(left, run.prepared);
            let (left, right) = (build(left, run)?, build(right, run)?);
            let types = types(plan, run.prepared);
            Box::new(nested_loop::NestedLoop::new(left, right, types, left_types, *kind))
        }
        Node::HashJoin { left, right, kind, .. } => {
            let width = types(left, run.prepared).len();
            let (left, right) = (build(left, run)?, build(right, run)?);
            Box::new(hash_join::HashJoin::new(left, right, *kind, width))
        }
        Node::MergeJoin { left, right, .. } => {
            let (left, right) = (build(left, run)?, build(right, run)?);
            Box::new(merge_join::MergeJoin::new(left, right))
        }
        Node::Aggregate { input, sorted: true, plain: false, .. } => {
            Box::new(group_sorted::GroupSorted::new(build(input, run)?))
        }
        Node::Aggregate { input, .. } => Box::new(aggregate::Aggregate::new(build(input, run)?)),
        Node::Window { input, .. } => Box::new(window::Window::new(build(input, run)?)),
        Node::Sort { input, .. } => Box::new(sort::Sort::new(build(input, run)?)),
        Node::IncrementalSort { input, .. } => {
            Box::new(incremental_sort::IncrementalSort::new(build(input, run)?))
        }
        Node::Gather { input, .. } => Box::new(gather::Gather::new(input, run)?),
        Node::Limit { input, .. } => Box::new(limit::Limit::new(build(input, run)?)),
        Node::Memoize { input, .. } => {
            let types = types(input, run.prepared);
            Box::new(memoize::Memoize::new(build(input, run)?, types))
        }
        Node::Distinct { input, .. } => Box::new(distinct::Distinct::new(build(input, run)?)),
        Node::Append(inputs) => {
            let inputs: Result<Vec<_>> = inputs.iter().map(|i| build(i, run)).collect();
            Box::new(append::Append { inputs: inputs?, current: 0 })
        }
        Node::SetOp { left, right, .. } => {
            let (left, right) = (build(left, run)?, build(right, run)?);
            Box::new(set_op::SetOp::new(left, right))
        }
        Node::LockRows { input, targets } => {
            let input = build(input, run)?;
            Box::new(lock_rows::LockRows::new(input, targets, run)?)
        }
        Node::Modify(modify) => Box::new(ModifyOp::new(modify, run)?),
        Node::Rewritten(_) => Box::new(rewritten::Rewritten::default()),
        Node::Cte { .. } => Box::new(cte::Cte::default()),
        Node::RecursiveUnion { base, step, .. } => {
            let (base, step) = (build(base, run)?, build(step, run)?);
            Box::new(recursive::RecursiveUnion::new(base, step))
        }
        Node::WorkTable { .. } => Box::new(recursive::WorkTable::default()),
    })
}

/// Counts and times around an operator.
struct Measured {
    inner: Box<dyn Operator>,
    place: usize,
    first: bool,
}

impl Measured {
    /// Does some of the operator's work, which ends in something and a number of rows.
    fn measure<R>(
        &mut self,
        run: &mut Run<'_, '_>,
        work: impl FnOnce(&mut dyn Operator, &mut Run<'_, '_>) -> Result<(R, usize)>,
    ) -> Result<R> {
        let waits = run.state.measure_waits.then(observe::metered);
        let usage = || sched::with_current(|task| task.usage());
        let used = run.state.measure_usage.then(usage);
        let begin = Instant::now();
        let (result, rows) = work(self.inner.as_mut(), run)?;
        let seconds = begin.elapsed().as_secs_f64();
        if let Some(measure) = run.state.measure.as_mut().and_then(|m| m.get_mut(self.place)) {
            measure.total += seconds;
            if std::mem::take(&mut self.first) {
                measure.startup += seconds;
            }
            measure.rows += rows as u64;
            if let Some(before) = used {
                measure.used.add(&usage().since(&before));
            }
            if let Some(before) = waits {
                observe::add_metered(&mut measure.waits, &before);
            }
        }
        Ok(result)
    }
}

impl Operator for Measured {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        self.measure(run, |inner, run| {
            let batch = inner.next(plan, run)?;
            let rows = batch.as_ref().map_or(0, |b| b.rows);
            Ok((batch, rows))
        })
    }

    fn drain(
        &mut self,
        plan: &Plan,
        how: (bool, usize),
        out: &mut Batch,
        run: &mut Run<'_, '_>,
    ) -> Result<bool> {
        let before = out.rows;
        self.measure(run, |inner, run| {
            let done = inner.drain(plan, how, out, run)?;
            Ok((done, out.rows - before))
        })
    }

    fn rescan(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        self.first = true;
        if let Some(measure) = run.state.measure.as_mut().and_then(|m| m.get_mut(self.place)) {
            measure.loops += 1;
        }
        self.inner.rescan(plan, run)
    }

    fn restrict(&mut self, keys: &[Expr], filter: &Arc<KeyFilter>) {
        self.inner.restrict(keys, filter);
    }

    fn bound(&mut self, rows: u64) {
        self.inner.bound(rows);
    }

    fn hasten(&mut self) {
        self.inner.hasten();
    }

    fn changed(&self) -> Option<u64> {
        self.inner.changed()
    }

    fn pieces(&self) -> Option<&Pieces> {
        self.inner.pieces()
    }
}

/// The types of a node's output columns.
pub fn types(plan: &Plan, prepared: &Prepared) -> Vec<Oid> {
    plan.output_types(&prepared.subplans)
}

/// All rows of an input.
pub fn collect(input: &mut dyn Operator, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Vec<Batch>> {
    let mut all = Vec::new();
    while let Some(batch) = input.next(plan, run)? {
        sched::check_interrupts()?;
        if batch.rows > 0 {
            all.push(batch);
        }
    }
    Ok(all)
}

/// An operator was given a node of another kind.
#[cold]
pub fn wrong_node() -> Error {
    Error::internal("operator does not fit its plan node")
}
