//! Reads a WITH query whose rows are kept for all who read it. They are computed as far as somebody
//! has asked for them.

use base::Result;
use sql::Plan;
use sql::plan::Node;
use types::Batch;

use super::{Operator, wrong_node};
use crate::run::Run;
use crate::subquery;

/// See the module's documentation.
#[derive(Default)]
pub struct Cte {
    next: usize,
}

impl Operator for Cte {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::Cte { plan: number, .. } = &plan.node else {
            return Err(wrong_node());
        };
        let batch = subquery::kept_batch(*number, self.next, run)?;
        self.next += 1;
        Ok(batch)
    }

    fn rescan(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let Node::Cte { plan: number, correlated, .. } = &plan.node else {
            return Err(wrong_node());
        };
        if *correlated {
            subquery::forget_kept(*number, run)?;
        }
        self.next = 0;
        Ok(())
    }
}
