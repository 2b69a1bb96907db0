//! Computes the output columns, of no more rows than will be asked for.

use base::Result;
use sql::plan::Node;
use sql::{Expr, Plan, walk};
use types::Batch;

use super::before_error::Postponed;
use crate::ops::operator::{Operator, wrong_node};
use crate::rows::{self, Row};
use crate::run::Run;
use crate::{eval, vector};

/// See the module's documentation.
pub struct Project {
    input: Box<dyn Operator>,
    /// Rows that may still be asked for.
    left: u64,
    /// Several columns have values that depend on when they are computed: row by row, from left to right.
    in_turns: bool,
    postponed: Postponed,
}

impl Project {
    /// Over an input.
    pub fn new(input: Box<dyn Operator>, exprs: &[Expr]) -> Project {
        let in_turns = exprs.iter().filter(|e| walk::is_volatile(e)).count() > 1;
        Project { input, left: u64::MAX, in_turns, postponed: Postponed::default() }
    }
}

/// The output rows of a batch, computed one after the other.
fn by_rows(exprs: &[Expr], batch: &Batch, run: &mut Run<'_, '_>) -> Result<Batch> {
    let types: Vec<_> = exprs.iter().map(Expr::ty).collect();
    let mut out = rows::empty(&types);
    for row in 0..batch.rows {
        sched::check_interrupts()?;
        rows::push(&mut out, eval::eval_all(exprs, Row::Batch(batch, row), run)?)?;
    }
    Ok(out)
}

impl Operator for Project {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::Project { input, exprs } = &plan.node else {
            return Err(wrong_node());
        };
        self.postponed.raise()?;
        let Some(mut batch) = self.input.next(input, run)? else {
            return Ok(None);
        };
        if batch.rows as u64 > self.left {
            batch = rows::slice(&batch, 0, self.left as usize);
        }
        self.left -= batch.rows as u64;
        if self.in_turns {
            return by_rows(exprs, &batch, run).map(Some);
        }
        let columns: Result<Vec<_>> =
            exprs.iter().map(|e| vector::column(e, &batch, run)).collect();
        match columns {
            Ok(columns) => Ok(Some(Batch { columns, rows: batch.rows })),
            // PostgreSQL computes below a sort, so no row comes before the error.
            Err(error) if matches!(input.node, Node::Sort { .. }) => Err(error),
            Err(error) => self.postponed.project(exprs, &batch, error, run).map(Some),
        }
    }

    fn prepare(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let Node::Project { input, .. } = &plan.node else { return Err(wrong_node()) };
        self.input.prepare(input, run)
    }

    fn rescan(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let Node::Project { input, .. } = &plan.node else {
            return Err(wrong_node());
        };
        self.left = u64::MAX;
        self.postponed = Postponed::default();
        self.input.rescan(input, run)
    }

    fn bound(&mut self, rows: u64) {
        self.left = rows;
        self.input.bound(rows);
    }

    fn hasten(&mut self) {
        self.input.hasten();
    }
}
