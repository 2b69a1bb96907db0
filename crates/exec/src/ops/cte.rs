//! Reads a subplan that is materialised at its first use.

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
        let Node::Cte(number) = plan.node else {
            return Err(wrong_node());
        };
        let all = subquery::materialise(number, run)?;
        let batch = all.get(self.next).cloned();
        self.next += 1;
        Ok(batch)
    }

    fn rescan(&mut self, _plan: &Plan, _run: &mut Run<'_, '_>) -> Result<()> {
        self.next = 0;
        Ok(())
    }
}
