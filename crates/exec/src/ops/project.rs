//! Computes the output columns.

use base::Result;
use sql::Plan;
use sql::plan::Node;
use types::Batch;

use super::{Operator, wrong_node};
use crate::run::Run;
use crate::vector;

/// See the module's documentation.
pub struct Project {
    /// Rows.
    pub input: Box<dyn Operator>,
}

impl Operator for Project {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::Project { input, exprs } = &plan.node else {
            return Err(wrong_node());
        };
        let Some(batch) = self.input.next(input, run)? else {
            return Ok(None);
        };
        let columns: Result<Vec<_>> =
            exprs.iter().map(|e| vector::column(e, &batch, run)).collect();
        Ok(Some(Batch { columns: columns?, rows: batch.rows }))
    }

    fn rescan(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let Node::Project { input, .. } = &plan.node else {
            return Err(wrong_node());
        };
        self.input.rescan(input, run)
    }

    fn bound(&mut self, rows: u64) {
        self.input.bound(rows);
    }
}
