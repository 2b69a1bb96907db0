//! One row without columns, no rows, VALUES lists.

use base::Result;
use sql::Plan;
use sql::plan::Node;
use types::Batch;
use types::batch::BATCH_ROWS;

use crate::eval;
use crate::ops::operator::{Operator, types, wrong_node};
use crate::rows::{self, Row};
use crate::run::Run;

/// One row without columns.
#[derive(Default)]
pub struct OneRow {
    done: bool,
}

impl Operator for OneRow {
    fn next(&mut self, _plan: &Plan, _run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        if std::mem::replace(&mut self.done, true) {
            return Ok(None);
        }
        Ok(Some(Batch { columns: vec![], rows: 1 }))
    }

    fn rescan(&mut self, _plan: &Plan, _run: &mut Run<'_, '_>) -> Result<()> {
        self.done = false;
        Ok(())
    }
}

/// No rows.
pub struct Nothing;

impl Operator for Nothing {
    fn next(&mut self, _plan: &Plan, _run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        Ok(None)
    }

    fn rescan(&mut self, _plan: &Plan, _run: &mut Run<'_, '_>) -> Result<()> {
        Ok(())
    }
}

/// VALUES lists.
pub struct Values {
    next: usize,
    /// How many lists are computed at a time.
    most: usize,
}

impl Values {
    /// Before the first list; `by_row`: they are computed one by one.
    pub fn new(by_row: bool) -> Values {
        Values { next: 0, most: if by_row { 1 } else { BATCH_ROWS } }
    }
}

impl Operator for Values {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::Values(lists) = &plan.node else {
            return Err(wrong_node());
        };
        if self.next >= lists.len() {
            return Ok(None);
        }
        let mut batch = rows::empty(&types(plan, run.prepared));
        let end = lists.len().min(self.next + self.most);
        for list in &lists[self.next..end] {
            for (column, expr) in batch.columns.iter_mut().zip(list) {
                column.push(eval::eval(expr, Row::Empty, run)?)?;
            }
            batch.rows += 1;
        }
        self.next = end;
        Ok(Some(batch))
    }

    fn rescan(&mut self, _plan: &Plan, _run: &mut Run<'_, '_>) -> Result<()> {
        self.next = 0;
        Ok(())
    }
}
