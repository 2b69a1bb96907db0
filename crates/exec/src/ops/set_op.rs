//! INTERSECT and EXCEPT: counts each distinct row on both sides.

use base::Result;
use sched::memory::Use;
use sql::Plan;
use sql::plan::Node;
use types::Batch;
use types::batch::BATCH_ROWS;

use super::grouping::RowSet;
use crate::ops::operator::{Operator, types, wrong_node};
use crate::rows;
use crate::run::Run;

/// See the module's documentation.
pub struct SetOp {
    left: Box<dyn Operator>,
    right: Box<dyn Operator>,
    /// The distinct left rows, and how often each is to be returned.
    result: Option<(RowSet, Vec<u64>)>,
    next: usize,
}

impl SetOp {
    /// Over two inputs.
    pub fn new(left: Box<dyn Operator>, right: Box<dyn Operator>) -> SetOp {
        SetOp { left, right, result: None, next: 0 }
    }

    fn count(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<(RowSet, Vec<u64>)> {
        let _memory = sched::memory::for_use(Use::Hash);
        let Node::SetOp { left, right, except, all } = &plan.node else {
            return Err(wrong_node());
        };
        let types = types(plan, run.prepared);
        let mut set = RowSet::default();
        let mut counts: Vec<(u64, u64)> = Vec::new();
        while let Some(batch) = self.left.next(left, run)? {
            sched::check_interrupts()?;
            for row in 0..batch.rows {
                let (n, new) = set.insert(&rows::get(&batch, row, &types));
                if new {
                    counts.push((0, 0));
                }
                counts[n].0 += 1;
            }
        }
        while let Some(batch) = self.right.next(right, run)? {
            sched::check_interrupts()?;
            for row in 0..batch.rows {
                if let Some(n) = set.find(&rows::get(&batch, row, &types)) {
                    counts[n].1 += 1;
                }
            }
        }
        let returned = |(left, right): (u64, u64)| match (except, all) {
            (true, true) => left.saturating_sub(right),
            (true, false) => u64::from(right == 0),
            (false, true) => left.min(right),
            (false, false) => u64::from(right > 0),
        };
        Ok((set, counts.into_iter().map(returned).collect()))
    }
}

impl Operator for SetOp {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        if self.result.is_none() {
            self.result = Some(self.count(plan, run)?);
        }
        let mut batch = rows::empty(&types(plan, run.prepared));
        if let Some((set, counts)) = &mut self.result {
            while batch.rows < BATCH_ROWS && self.next < set.len() {
                if counts[self.next] == 0 {
                    self.next += 1;
                    continue;
                }
                counts[self.next] -= 1;
                rows::push(&mut batch, set.row(self.next).iter().cloned())?;
            }
        }
        Ok((batch.rows > 0).then_some(batch))
    }

    fn rescan(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let Node::SetOp { left, right, .. } = &plan.node else {
            return Err(wrong_node());
        };
        self.result = None;
        self.next = 0;
        self.left.rescan(left, run)?;
        self.right.rescan(right, run)
    }
}
