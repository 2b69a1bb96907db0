//! UNION ALL: one input after the other.

use base::Result;
use sql::Plan;
use sql::plan::Node;
use types::Batch;

use crate::ops::operator::{Operator, wrong_node};
use crate::run::Run;

/// See the module's documentation.
pub struct Append {
    /// Inputs.
    pub inputs: Vec<Box<dyn Operator>>,
    /// Which one is being read.
    pub current: usize,
}

impl Operator for Append {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::Append(plans) = &plan.node else {
            return Err(wrong_node());
        };
        while let Some(input) = self.inputs.get_mut(self.current) {
            if let Some(batch) = input.next(&plans[self.current], run)? {
                return Ok(Some(batch));
            }
            self.current += 1;
        }
        Ok(None)
    }

    fn hasten(&mut self) {
        self.inputs.iter_mut().for_each(|input| input.hasten());
    }

    fn rescan(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let Node::Append(plans) = &plan.node else {
            return Err(wrong_node());
        };
        self.current = 0;
        self.inputs.iter_mut().zip(plans).try_for_each(|(input, plan)| input.rescan(plan, run))
    }
}
