//! The rows of a scan that several threads may read: each takes the next pages. An aggregate right above has helpers
//! ([`super::aggregate`]); without them the statement's own thread takes all pieces.

use base::Result;
use sql::Plan;
use sql::plan::Node;
use types::Batch;

use crate::ops::operator::{Operator, build, wrong_node};
use crate::ops::pieces::Pieces;
use crate::run::Run;

/// See the module's documentation.
pub struct Gather {
    input: Box<dyn Operator>,
    pieces: Pieces,
}

impl Gather {
    /// Over the node's input.
    pub fn new(input: &Plan, run: &mut Run<'_, '_>) -> Result<Gather> {
        let pieces = Pieces::new();
        let outer = run.state.pieces.replace(pieces.clone());
        let built = build(input, run);
        run.state.pieces = outer;
        Ok(Gather { input: built?, pieces })
    }
}

impl Operator for Gather {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::Gather { input, .. } = &plan.node else { return Err(wrong_node()) };
        self.input.next(input, run)
    }

    fn rescan(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let Node::Gather { input, .. } = &plan.node else { return Err(wrong_node()) };
        self.pieces.rewind();
        self.input.rescan(input, run)
    }

    fn pieces(&self) -> Option<&Pieces> {
        Some(&self.pieces)
    }
}
