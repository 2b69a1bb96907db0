//! Operators of plan nodes. Code below calls it through [`crate::context::Calls`].

use std::sync::Arc;
use std::time::Instant;

use base::Result;
use sched::observe;
use sql::expr::SortKey;
use sql::plan::Node;
use sql::{Expr, Plan};
use types::{Batch, Datum};

use super::one_by_one::OneByOne;
use super::{
    aggregate, append, bitmap_heap_scan, covering_only_scan, cte, distinct, filter, foreign_scan,
    function_scan, gather, group_sorted, hash_join, incremental_sort, index_only_scan, index_scan,
    limit, lock_rows, memoize, merge_join, nearest_scan, nested_loop, partition_scan,
    partition_wise, project, project_set, recursive, rewritten, sample_scan, seq_scan, set_op,
    sort, system_scan, unordered_index_scan, values, window,
};
use crate::modify::ModifyOp;
use crate::ops::key_filter::KeyFilter;
use crate::ops::measure::Measure;
use crate::ops::operator::{Operator, types, wrong_node};
use crate::ops::team::Member;
use crate::run::Run;

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

/// Makes the operator of the input of a node, which is read row by row if the node has effects that can be seen.
fn build_input(plan: &Plan, input: &Plan, run: &mut Run<'_, '_>) -> Result<Box<dyn Operator>> {
    let by_row = run.goes_by_row() && plan.acts(&run.prepared.subplans);
    let input = build(input, run)?;
    Ok(if by_row { Box::new(OneByOne::new(input)) } else { input })
}

/// The same for a node that reads all of its input before it hands anything up.
fn build_whole(input: &Plan, run: &mut Run<'_, '_>) -> Result<Box<dyn Operator>> {
    run.reading(false, |run| build(input, run))
}

fn build_plain(plan: &Plan, run: &mut Run<'_, '_>) -> Result<Box<dyn Operator>> {
    sched::check_stack()?;
    Ok(match &plan.node {
        Node::OneRow => Box::new(values::OneRow::default()),
        Node::Nothing => Box::new(values::Nothing),
        Node::Values(_) => {
            Box::new(values::Values::new(run.goes_by_row() && plan.acts(&run.prepared.subplans)))
        }
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
        Node::IndexOnlyScan { scan, index, .. } if index.method.is_covering() => {
            Box::new(covering_only_scan::CoveringOnlyScan::new(scan, index, run)?)
        }
        Node::IndexOnlyScan { scan, index, .. } => {
            Box::new(index_only_scan::IndexOnlyScan::new(scan, index, run)?)
        }
        Node::BitmapHeapScan { scan, rechecked, .. } => {
            Box::new(bitmap_heap_scan::BitmapHeapScan::new(scan, rechecked, run)?)
        }
        // They make no rows: the scan runs them.
        Node::BitmapIndexScan { .. } | Node::BitmapAnd(_) | Node::BitmapOr(_) => {
            return Err(wrong_node());
        }
        Node::PartitionScan(_) => Box::new(partition_scan::PartitionScan::new(plan, run)),
        Node::PartitionWise { .. } => Box::new(partition_wise::PartitionWise::default()),
        Node::SystemScan { .. } => Box::new(system_scan::SystemScan::default()),
        Node::SampleScan { scan, .. } => Box::new(sample_scan::SampleScan::new(scan, run)?),
        Node::ForeignScan(foreign) => Box::new(foreign_scan::ForeignScanOp::new(&foreign.code)?),
        Node::ForeignQuery(query) => Box::new(foreign_scan::ForeignScanOp::new(&query.code)?),
        Node::FunctionScan { .. } => Box::new(function_scan::FunctionScan::default()),
        Node::Filter { input, condition } => {
            Box::new(filter::Filter::new(build_input(plan, input, run)?, condition))
        }
        Node::Project { input, exprs } => {
            let input = build_input(plan, input, run)?;
            Box::new(project::Project::new(input, exprs))
        }
        Node::ProjectSet { input, .. } => {
            Box::new(project_set::ProjectSet::new(build_input(plan, input, run)?))
        }
        Node::NestedLoop { left, right, kind, .. } => {
            let left_types = types(left, run.prepared);
            let left = build_input(plan, left, run)?;
            // Each of the threads that share the left side runs the right side for its own rows.
            let member = run.state.member.take();
            // A test stops at the first partner.
            let stops = run.state.may_stop || !kind.gives_right();
            let right = run.reading(stops, |run| build(right, run));
            let shared = member.is_some();
            run.state.member = member;
            let (right, types) = (right?, types(plan, run.prepared));
            let join = nested_loop::NestedLoop::new(left, right, types, left_types, *kind);
            let join = if run.goes_by_row() { join.by_row() } else { join };
            Box::new(if shared { join.shared() } else { join })
        }
        Node::HashJoin { .. } => Box::new(hash_join::HashJoin::of(plan, run)?),
        Node::MergeJoin { left, right, .. } => {
            let (left, right) = (build(left, run)?, build(right, run)?);
            Box::new(merge_join::MergeJoin::new(left, right))
        }
        Node::Aggregate { input, sorted: true, plain: false, .. } => {
            Box::new(group_sorted::GroupSorted::new(build(input, run)?))
        }
        Node::Aggregate { input, .. } => {
            Box::new(aggregate::Aggregate::new(build_whole(input, run)?))
        }
        Node::Window { input, .. } => Box::new(window::Window::new(build(input, run)?)),
        Node::Sort { input, .. } => Box::new(sort::Sort::new(build_whole(input, run)?)),
        Node::IncrementalSort { input, .. } => {
            Box::new(incremental_sort::IncrementalSort::new(build(input, run)?))
        }
        Node::Gather { input, workers, .. } => Box::new(gather::Gather::new(input, *workers, run)?),
        Node::Limit { input, .. } => {
            Box::new(limit::Limit::new(run.reading(true, |run| build(input, run))?))
        }
        Node::Memoize { input, .. } => {
            let types = types(input, run.prepared);
            Box::new(memoize::Memoize::new(build(input, run)?, types))
        }
        Node::Distinct { input, .. } => Box::new(distinct::Distinct::new(build(input, run)?)),
        Node::Append(inputs) => {
            let inputs: Result<Vec<_>> = inputs.iter().map(|i| build(i, run)).collect();
            let member = run.state.member.clone();
            Box::new(append::Append { inputs: inputs?, current: 0, member, again: false })
        }
        Node::SetOp { left, right, .. } => {
            let (left, right) = (build_whole(left, run)?, build_whole(right, run)?);
            Box::new(set_op::SetOp::new(left, right))
        }
        Node::LockRows { input, targets } => {
            let input = build_input(plan, input, run)?;
            Box::new(lock_rows::LockRows::new(input, targets, run)?)
        }
        Node::Modify(modify) => Box::new(ModifyOp::new(modify, run)?),
        Node::Rewritten(_) => Box::new(rewritten::Rewritten::default()),
        Node::Cte { .. } => Box::new(cte::Cte::new(run.state.may_stop)),
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

    fn skip_to(&mut self, plan: &Plan, key: &SortKey, value: &Datum) -> Result<()> {
        self.inner.skip_to(plan, key, value)
    }

    fn changed(&self) -> Option<u64> {
        self.inner.changed()
    }

    fn prepare(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        self.measure(run, |inner, run| Ok((inner.prepare(plan, run)?, 0)))
    }

    fn absorb(&mut self) -> Option<Member> {
        self.inner.absorb()
    }
}
