//! Operators: one small file each, all of one shape.
//!
//! An operator is the state of one plan node while it runs. It gets its node with every call, hands
//! batches up, and forgets everything when it is told to begin again.

use std::time::Instant;

use base::{Error, Oid, Result};
use sched::observe::{self, Metered};
use sql::plan::Node;
use sql::{Plan, Prepared};
use types::{Batch, oids};

use crate::modify::ModifyOp;
use crate::run::Run;
use crate::table::scan_column_type;

mod accumulate;
mod aggregate;
mod append;
mod cte;
mod distinct;
mod filter;
mod function_scan;
pub mod grouping;
mod hash_join;
pub mod index_bounds;
mod index_scan;
mod limit;
mod lock_rows;
mod nested_loop;
mod ordered_set;
mod partition;
mod project;
mod project_set;
mod recursive;
mod sample_scan;
mod seq_scan;
mod set_op;
pub mod sort;
mod spill;
mod system_scan;
mod values;
mod window;

/// The state of a plan node while it runs.
pub trait Operator: Send {
    /// The next rows; None at the end. A batch may be empty.
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>>;

    /// Begins again, with what slots hold now.
    fn rescan(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()>;

    /// No more than the first `rows` rows will be asked for.
    fn bound(&mut self, _rows: u64) {}

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
        Node::IndexScan { scan, index, .. } => {
            Box::new(index_scan::IndexScan::new(scan, index, run)?)
        }
        Node::SystemScan { .. } => Box::new(system_scan::SystemScan::default()),
        Node::SampleScan { scan, .. } => Box::new(sample_scan::SampleScan::new(scan, run)?),
        Node::FunctionScan { .. } => Box::new(function_scan::FunctionScan::default()),
        Node::Filter { input, .. } => Box::new(filter::Filter { input: build(input, run)? }),
        Node::Project { input, .. } => Box::new(project::Project { input: build(input, run)? }),
        Node::ProjectSet { input, .. } => {
            Box::new(project_set::ProjectSet { input: build(input, run)? })
        }
        Node::NestedLoop { left, right, .. } => {
            let left_types = types(left, run.prepared);
            let (left, right) = (build(left, run)?, build(right, run)?);
            let types = types(plan, run.prepared);
            Box::new(nested_loop::NestedLoop::new(left, right, types, left_types))
        }
        Node::HashJoin { left, right, .. } => {
            let (left, right) = (build(left, run)?, build(right, run)?);
            Box::new(hash_join::HashJoin::new(left, right))
        }
        Node::Aggregate { input, .. } => Box::new(aggregate::Aggregate::new(build(input, run)?)),
        Node::Window { input, .. } => Box::new(window::Window::new(build(input, run)?)),
        Node::Sort { input, .. } => Box::new(sort::Sort::new(build(input, run)?)),
        Node::Limit { input, .. } => Box::new(limit::Limit::new(build(input, run)?)),
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

impl Operator for Measured {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let waits = run.state.measure_waits.then(observe::metered);
        let begin = Instant::now();
        let result = self.inner.next(plan, run)?;
        let seconds = begin.elapsed().as_secs_f64();
        if let Some(measure) = run.state.measure.as_mut().and_then(|m| m.get_mut(self.place)) {
            measure.total += seconds;
            if std::mem::take(&mut self.first) {
                measure.startup += seconds;
            }
            measure.rows += result.as_ref().map_or(0, |b| b.rows as u64);
            if let Some(before) = waits {
                observe::add_metered(&mut measure.waits, &before);
            }
        }
        Ok(result)
    }

    fn rescan(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        self.first = true;
        if let Some(measure) = run.state.measure.as_mut().and_then(|m| m.get_mut(self.place)) {
            measure.loops += 1;
        }
        self.inner.rescan(plan, run)
    }

    fn bound(&mut self, rows: u64) {
        self.inner.bound(rows);
    }

    fn changed(&self) -> Option<u64> {
        self.inner.changed()
    }
}

/// The types of a node's output columns.
pub fn types(plan: &Plan, prepared: &Prepared) -> Vec<Oid> {
    match &plan.node {
        Node::OneRow | Node::Nothing => vec![],
        Node::Values(rows) => match rows.first() {
            Some(row) => row.iter().map(|e| e.ty()).collect(),
            None => vec![],
        },
        Node::SeqScan(scan) | Node::IndexScan { scan, .. } | Node::SampleScan { scan, .. } => {
            scan.columns.iter().map(|c| scan_column_type(&scan.table, *c)).collect()
        }
        Node::SystemScan { table, columns, .. } => {
            columns.iter().map(|c| table.columns[usize::from(*c)].1).collect()
        }
        Node::FunctionScan { calls, ordinality, .. } => {
            let columns = |call: &sql::Expr| match sql::record_columns(call) {
                list if list.is_empty() => vec![call.ty()],
                _ if call.ty() != oids::RECORD && types::user::shape(call.ty()).is_none() => {
                    vec![call.ty()]
                }
                list => list.into_iter().map(|c| c.1).collect(),
            };
            let all = calls.iter().flat_map(columns);
            all.chain(ordinality.then_some(oids::INT8)).collect()
        }
        Node::Window { input, calls, .. } => {
            let mut all = types(input, prepared);
            all.extend(calls.iter().map(|c| c.ty));
            all
        }
        Node::RecursiveUnion { base, .. } => types(base, prepared),
        Node::WorkTable { columns, .. } => columns.iter().map(|c| c.1).collect(),
        Node::Project { exprs, .. } | Node::ProjectSet { exprs, .. } => {
            exprs.iter().map(|e| e.ty()).collect()
        }
        Node::NestedLoop { left, right, kind, .. } | Node::HashJoin { left, right, kind, .. } => {
            let mut all = types(left, prepared);
            if !matches!(kind, sql::plan::JoinKind::Semi | sql::plan::JoinKind::Anti) {
                all.extend(types(right, prepared));
            }
            all
        }
        Node::Aggregate { groups, aggs, sets, .. } => {
            let masks = sets.iter().flat_map(|s| s.masks.iter().map(|_| oids::INT4));
            let values = aggs.iter().map(|a| a.ty);
            groups.iter().map(|g| g.ty()).chain(values).chain(masks).collect()
        }
        Node::Filter { input, .. }
        | Node::Sort { input, .. }
        | Node::Limit { input, .. }
        | Node::Distinct { input, .. }
        | Node::LockRows { input, .. }
        | Node::SetOp { left: input, .. } => types(input, prepared),
        Node::Append(inputs) => match inputs.first() {
            Some(first) => types(first, prepared),
            None => vec![],
        },
        Node::Modify(modify) => match &modify.returning {
            Some(exprs) => exprs.iter().map(|e| e.ty()).collect(),
            None => vec![],
        },
        Node::Cte { plan, .. } => types(&prepared.subplans[*plan], prepared),
    }
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
