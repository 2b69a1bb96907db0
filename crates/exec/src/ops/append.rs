//! UNION ALL: one input after the other.

use base::Result;
use sql::Plan;
use sql::plan::Node;
use types::Batch;

use crate::ops::operator::{Operator, wrong_node};
use crate::ops::team::Member;
use crate::run::Run;

/// See the module's documentation.
pub struct Append {
    /// Inputs.
    pub inputs: Vec<Box<dyn Operator>>,
    /// Which one is being read.
    pub current: usize,
    /// Other threads run the inputs, too: the thread's place among them.
    pub member: Option<Member>,
    /// The thread went through the inputs once more when it was alone.
    pub again: bool,
}

impl Operator for Append {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::Append(plans) = &plan.node else {
            return Err(wrong_node());
        };
        if let Some(member) = &self.member
            && member.is_alone()
            && !std::mem::replace(&mut self.again, true)
        {
            self.current = 0;
        }
        while let Some(input) = self.inputs.get_mut(self.current) {
            if let Some(batch) = input.next(&plans[self.current], run)? {
                return Ok(Some(batch));
            }
            if self.member.as_ref().is_some_and(Member::was_refused) {
                // There may be more of this input later.
                return Ok(None);
            }
            self.current += 1;
        }
        Ok(None)
    }

    fn prepare(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let Node::Append(plans) = &plan.node else { return Err(wrong_node()) };
        self.inputs.iter_mut().zip(plans).try_for_each(|(input, plan)| input.prepare(plan, run))
    }

    fn hasten(&mut self) {
        self.inputs.iter_mut().for_each(|input| input.hasten());
    }

    fn rescan(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let Node::Append(plans) = &plan.node else {
            return Err(wrong_node());
        };
        (self.current, self.again) = (0, false);
        self.inputs.iter_mut().zip(plans).try_for_each(|(input, plan)| input.rescan(plan, run))
    }
}
