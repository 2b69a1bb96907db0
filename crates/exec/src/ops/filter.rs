//! Keeps rows for which the condition is true.

use std::sync::Arc;

use base::Result;
use sql::expr::SortKey;
use sql::plan::Node;
use sql::{Expr, Plan, walk};
use types::{Batch, Datum};

use super::before_error::Postponed;
use super::key_filter::KeyFilter;
use crate::ops::measure::{REMOVED_BY_FILTER, count};
use crate::ops::operator::{Operator, wrong_node};
use crate::rows::{self, Row};
use crate::run::Run;
use crate::{eval, vector};

/// See the module's documentation.
pub struct Filter {
    /// Rows.
    pub input: Box<dyn Operator>,
    /// The condition is about no column: it is asked once, before the input is.
    once: bool,
    /// Then: what it has said.
    holds: Option<bool>,
    postponed: Postponed,
}

impl Filter {
    /// Over these rows.
    pub fn new(input: Box<dyn Operator>, condition: &Expr) -> Filter {
        let once = !walk::has_columns(condition) && !walk::is_volatile(condition);
        Filter { input, once, holds: None, postponed: Postponed::default() }
    }
}

impl Operator for Filter {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::Filter { input, condition } = &plan.node else {
            return Err(wrong_node());
        };
        self.postponed.raise()?;
        if self.once {
            let holds = match self.holds {
                Some(holds) => holds,
                None => eval::holds(condition, Row::Empty, run)?,
            };
            self.holds = Some(holds);
            return if holds { self.input.next(input, run) } else { Ok(None) };
        }
        while let Some(batch) = self.input.next(input, run)? {
            sched::check_interrupts()?;
            let before = batch.rows;
            let batch = match vector::select(condition, &batch, run) {
                Ok(None) => batch,
                Ok(Some(kept)) => rows::take(&batch, &kept),
                Err(error) => self.postponed.filter(condition, &batch, error, run)?,
            };
            count(plan, REMOVED_BY_FILTER, (before - batch.rows) as u64, run);
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

    fn skip_to(&mut self, plan: &Plan, key: &SortKey, value: &Datum) -> Result<()> {
        let Node::Filter { input, .. } = &plan.node else { return Err(wrong_node()) };
        self.input.skip_to(input, key, value)
    }

    fn prepare(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let Node::Filter { input, .. } = &plan.node else { return Err(wrong_node()) };
        self.input.prepare(input, run)
    }

    fn rescan(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let Node::Filter { input, .. } = &plan.node else {
            return Err(wrong_node());
        };
        (self.postponed, self.holds) = (Postponed::default(), None);
        self.input.rescan(input, run)
    }
}
