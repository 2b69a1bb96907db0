//! Removes duplicates; keeps the first of the rows with the same keys.

use base::{Oid, Result};
use sched::memory::Use;
use sql::Plan;
use sql::plan::Node;
use types::{Batch, Datum};

use super::grouping::{RowSet, same};
use crate::eval;
use crate::ops::operator::{Operator, types, wrong_node};
use crate::rows::{self, Row};
use crate::run::Run;

/// See the module's documentation.
pub struct Distinct {
    input: Box<dyn Operator>,
    seen: RowSet,
    last: Option<Vec<Datum>>,
}

impl Distinct {
    /// Over an input.
    pub fn new(input: Box<dyn Operator>) -> Distinct {
        Distinct { input, seen: RowSet::default(), last: None }
    }

    fn is_first(&mut self, key: Vec<Datum>, sorted: bool) -> bool {
        if !sorted {
            return self.seen.insert(&key).1;
        }
        let first = self.last.as_ref().is_none_or(|last| !same(last, &key));
        self.last = Some(key);
        first
    }
}

impl Operator for Distinct {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::Distinct { input, keys, sorted } = &plan.node else {
            return Err(wrong_node());
        };
        let _memory = sched::memory::for_use(Use::Hash);
        let types: Vec<Oid> = types(input, run.prepared);
        while let Some(batch) = self.input.next(input, run)? {
            sched::check_interrupts()?;
            let mut kept = Vec::new();
            for row in 0..batch.rows {
                let key = if keys.is_empty() {
                    rows::get(&batch, row, &types)
                } else {
                    eval::eval_all(keys, Row::Batch(&batch, row), run)?
                };
                if self.is_first(key, *sorted) {
                    kept.push(row as u32);
                }
            }
            if !kept.is_empty() {
                return Ok(Some(rows::take(&batch, &kept)));
            }
        }
        Ok(None)
    }

    fn prepare(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let Node::Distinct { input, .. } = &plan.node else { return Err(wrong_node()) };
        self.input.prepare(input, run)
    }

    fn hasten(&mut self) {
        self.input.hasten();
    }

    fn rescan(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let Node::Distinct { input, .. } = &plan.node else {
            return Err(wrong_node());
        };
        self.seen = RowSet::default();
        self.last = None;
        self.input.rescan(input, run)
    }
}
