//! Reads a partitioned table: which partitions, is decided when it begins, by the values that are known then;
//! one after the other is opened when its turn comes.

use std::sync::Arc;

use base::Result;
use catalog::Table;
use sql::Plan;
use sql::plan::Node;
use txn::LockMode;
use types::{Batch, Datum};

use super::{Operator, build, wrong_node};
use crate::eval;
use crate::partition;
use crate::rows::Row;
use crate::run::Run;

/// Scans of partitions that are kept open for the next run.
const KEPT: usize = 32;

/// A partition's scan.
struct Part {
    table: u32,
    /// Its own plan: the operator is given it with every call.
    plan: Box<Plan>,
    scan: Box<dyn Operator>,
}

/// See the module's documentation.
#[derive(Default)]
pub struct PartitionScan {
    /// The partitions to read; None before it has begun.
    parts: Option<Vec<Arc<Table>>>,
    current: usize,
    /// The scan that is being read.
    open: Option<Part>,
    /// Scans of earlier partitions and runs.
    kept: Vec<Part>,
    hasty: bool,
}

impl PartitionScan {
    fn begin(&mut self, plan: &sql::plan::PartitionScan, run: &mut Run<'_, '_>) -> Result<()> {
        let view = run.cx.catalog_tx.view();
        let mut value = |e: &sql::Expr| eval::eval(e, Row::Empty, run).map(Some);
        let parts = sql::prune::leaves(&view, &plan.table, &plan.prune, &mut value)?;
        self.parts = Some(parts);
        self.current = 0;
        Ok(())
    }

    fn open(
        &mut self,
        plan: &sql::plan::PartitionScan,
        id: u32,
        run: &mut Run<'_, '_>,
    ) -> Result<Part> {
        if let Some(at) = self.kept.iter().position(|part| part.table == id) {
            let mut part = self.kept.swap_remove(at);
            part.scan.rescan(&part.plan, run)?;
            return Ok(part);
        }
        let table = partition::open(run.cx, id, LockMode::AccessShare)?;
        let view = run.cx.catalog_tx.view();
        let own = Box::new(partition::instantiate(&plan.scan, &plan.table, &table, &view)?);
        let mut scan = build(&own, run)?;
        if self.hasty {
            scan.hasten();
        }
        Ok(Part { table: id, plan: own, scan })
    }

    fn keep(&mut self, part: Part) {
        if self.kept.len() < KEPT {
            self.kept.push(part);
        }
    }
}

impl Operator for PartitionScan {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::PartitionScan(plan) = &plan.node else { return Err(wrong_node()) };
        if self.parts.is_none() {
            self.begin(plan, run)?;
        }
        loop {
            sched::check_interrupts()?;
            if let Some(part) = &mut self.open {
                if let Some(batch) = part.scan.next(&part.plan, run)? {
                    return Ok(Some(batch));
                }
                self.current += 1;
                if let Some(part) = self.open.take() {
                    self.keep(part);
                }
            }
            let next = self.parts.as_ref().and_then(|parts| parts.get(self.current));
            let Some(id) = next.map(|table| table.oid) else { return Ok(None) };
            self.open = Some(self.open(plan, id, run)?);
        }
    }

    fn rescan(&mut self, _plan: &Plan, _run: &mut Run<'_, '_>) -> Result<()> {
        self.parts = None;
        if let Some(part) = self.open.take() {
            self.keep(part);
        }
        Ok(())
    }

    fn hasten(&mut self) {
        self.hasty = true;
    }
}

/// The partitions that a scan would read, with their plans, for EXPLAIN: `value` says what is known.
///
/// # Errors
/// As [`partition::instantiate`].
pub fn expanded(
    plan: &sql::plan::PartitionScan,
    view: &catalog::Snapshot,
    value: &mut dyn FnMut(&sql::Expr) -> Result<Option<Datum>>,
) -> Result<Vec<Plan>> {
    let parts = sql::prune::leaves(view, &plan.table, &plan.prune, value)?;
    parts.iter().map(|part| partition::instantiate(&plan.scan, &plan.table, part, view)).collect()
}
