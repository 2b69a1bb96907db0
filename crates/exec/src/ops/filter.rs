//! Keeps rows for which the condition is true.

use std::sync::Arc;

use base::Result;
use sql::plan::Node;
use sql::{Expr, Plan};
use types::Batch;

use super::key_filter::KeyFilter;
use super::{Operator, wrong_node};
use crate::run::Run;

/// See the module's documentation.
pub struct Filter {
    /// Rows.
    pub input: Box<dyn Operator>,
}

impl Operator for Filter {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::Filter { input, condition } = &plan.node else {
            return Err(wrong_node());
        };
        while let Some(batch) = self.input.next(input, run)? {
            sched::check_interrupts()?;
            let batch = super::filtered(plan, Some(condition), batch, run)?;
            if batch.rows > 0 {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }

    fn restrict(&mut self, keys: &[Expr], filter: &Arc<KeyFilter>) {
        self.input.restrict(keys, filter);
    }

    fn hasten(&mut self) {
        self.input.hasten();
    }

    fn rescan(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let Node::Filter { input, .. } = &plan.node else {
            return Err(wrong_node());
        };
        self.input.rescan(input, run)
    }
}
