//! Keeps rows for which the condition is true.

use base::Result;
use sql::Plan;
use sql::plan::Node;
use types::Batch;

use super::{Operator, wrong_node};
use crate::run::Run;
use crate::vector;

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
            let batch = vector::filter(Some(condition), batch, run)?;
            if batch.rows > 0 {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }

    fn rescan(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let Node::Filter { input, .. } = &plan.node else {
            return Err(wrong_node());
        };
        self.input.rescan(input, run)
    }
}
