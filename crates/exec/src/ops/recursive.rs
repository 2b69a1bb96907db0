//! Recursive WITH queries: the base's rows, then the step's, each round over the rows of the one
//! before, until a round gives none. UNION (without ALL) leaves out rows that have come before.

use std::sync::Arc;

use base::{Oid, Result};
use sql::Plan;
use sql::plan::Node;
use types::Batch;

use super::grouping::RowSet;
use crate::ops::operator::{Operator, types, wrong_node};
use crate::run::Run;
use crate::{rows, subquery};

/// See the module's documentation.
pub struct RecursiveUnion {
    base: Box<dyn Operator>,
    step: Box<dyn Operator>,
    /// The rows of the round that is running, which the next one reads.
    next_round: Vec<Batch>,
    /// All rows so far, when duplicates are left out.
    seen: RowSet,
    phase: Phase,
    /// The step has run before.
    stepped: bool,
}

#[derive(PartialEq)]
enum Phase {
    Base,
    Between,
    Step,
    Ended,
}

impl RecursiveUnion {
    /// Over its two parts.
    pub fn new(base: Box<dyn Operator>, step: Box<dyn Operator>) -> RecursiveUnion {
        RecursiveUnion {
            base,
            step,
            next_round: Vec::new(),
            seen: RowSet::default(),
            phase: Phase::Base,
            stepped: false,
        }
    }

    /// The rows of a batch that have not come before.
    fn fresh(&mut self, batch: Batch, types: &[Oid]) -> Batch {
        let new: Vec<u32> = (0..batch.rows)
            .filter(|n| self.seen.insert(&rows::get(&batch, *n, types)).1)
            .map(|n| n as u32)
            .collect();
        if new.len() == batch.rows { batch } else { rows::take(&batch, &new) }
    }
}

impl Operator for RecursiveUnion {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::RecursiveUnion { base, step, all, table, anew } = &plan.node else {
            return Err(wrong_node());
        };
        loop {
            sched::check_interrupts()?;
            let batch = match self.phase {
                Phase::Base => self.base.next(base, run)?,
                Phase::Step => self.step.next(step, run)?,
                Phase::Between if !self.next_round.is_empty() => {
                    let round = Arc::new(std::mem::take(&mut self.next_round));
                    if run.state.work_tables.len() <= *table {
                        run.state.work_tables.resize_with(*table + 1, Default::default);
                    }
                    run.state.work_tables[*table] = round;
                    if std::mem::replace(&mut self.stepped, true) {
                        for number in anew {
                            subquery::begin_again(*number, run)?;
                        }
                        self.step.rescan(step, run)?;
                    }
                    self.phase = Phase::Step;
                    continue;
                }
                Phase::Between | Phase::Ended => {
                    self.phase = Phase::Ended;
                    return Ok(None);
                }
            };
            let Some(mut batch) = batch else {
                self.phase = Phase::Between;
                continue;
            };
            if !all {
                batch = self.fresh(batch, &types(base, run.prepared));
            }
            if batch.rows > 0 {
                self.next_round.push(batch.clone());
                return Ok(Some(batch));
            }
        }
    }

    fn rescan(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let Node::RecursiveUnion { base, .. } = &plan.node else {
            return Err(wrong_node());
        };
        self.next_round.clear();
        self.seen = RowSet::default();
        self.phase = Phase::Base;
        self.base.rescan(base, run)
    }
}

/// The rows of the last round.
#[derive(Default)]
pub struct WorkTable {
    next: usize,
}

impl Operator for WorkTable {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::WorkTable { table, .. } = &plan.node else {
            return Err(wrong_node());
        };
        let batch = run.state.work_tables.get(*table).and_then(|t| t.get(self.next)).cloned();
        self.next += 1;
        Ok(batch)
    }

    fn rescan(&mut self, _plan: &Plan, _run: &mut Run<'_, '_>) -> Result<()> {
        self.next = 0;
        Ok(())
    }
}
