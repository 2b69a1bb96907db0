//! Reads a WITH query whose rows are kept for all who read it. They are computed as far as somebody
//! has asked for them.

use base::Result;
use sql::Plan;
use sql::plan::Node;
use types::Batch;

use crate::ops::operator::{Operator, wrong_node};
use crate::run::Run;
use crate::subquery;

/// See the module's documentation.
pub struct Cte {
    next: usize,
    begun: bool,
    /// Its reader may stop before the last row.
    may_stop: bool,
}

impl Cte {
    /// For such a reader, or another one.
    pub fn new(may_stop: bool) -> Cte {
        Cte { next: 0, begun: false, may_stop }
    }
}

impl Operator for Cte {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::Cte { plan: number, slots, .. } = &plan.node else {
            return Err(wrong_node());
        };
        if !std::mem::replace(&mut self.begun, true) {
            subquery::refresh_kept(*number, slots, run)?;
        }
        let (next, may_stop) = (self.next, self.may_stop);
        let batch = run.reading(may_stop, |run| subquery::kept_batch(*number, next, run))?;
        self.next += 1;
        Ok(batch)
    }

    fn rescan(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let Node::Cte { plan: number, slots, .. } = &plan.node else {
            return Err(wrong_node());
        };
        subquery::refresh_kept(*number, slots, run)?;
        self.next = 0;
        Ok(())
    }
}
