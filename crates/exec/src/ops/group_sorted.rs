//! Groups and aggregates over rows that come sorted by the groups: only one group is open at a time,
//! and each is returned as soon as another begins.
//!
//! A batch's rows are numbered by the group that they fall in, the open one first; then the aggregates
//! take them column by column.

use std::borrow::Cow;

use base::Result;
use sched::memory::Use;
use sql::Plan;
use sql::expr::AggCall;
use sql::plan::Node;
use types::{Batch, Column, Datum};

use super::accumulate::{self, AggState};
use super::grouping::{same, same_at};
use crate::ops::operator::{Operator, types, wrong_node};
use crate::rows::{self, Row};
use crate::run::Run;
use crate::vector;

/// A group's key and the states of its aggregates.
type Group = (Vec<Datum>, Vec<AggState>);

/// See the module's documentation.
pub struct GroupSorted {
    input: Box<dyn Operator>,
    open: Option<Group>,
    ended: bool,
}

/// The rows of a batch by group.
struct Numbered {
    /// Each row's group.
    numbers: Vec<u32>,
    /// The first row of each group.
    firsts: Vec<usize>,
}

fn number(key: &[Cow<'_, Column>], rows: usize) -> Numbered {
    let mut out = Numbered { numbers: Vec::with_capacity(rows), firsts: Vec::new() };
    for row in 0..rows {
        if row == 0 || !key.iter().all(|c| same_at(c, row, c, row - 1)) {
            out.firsts.push(row);
        }
        out.numbers.push(out.firsts.len() as u32 - 1);
    }
    out
}

fn push(
    out: &mut Batch,
    (key, mut states): Group,
    aggs: &[AggCall],
    run: &mut Run<'_, '_>,
) -> Result<()> {
    let mut values = key;
    for (state, call) in states.iter_mut().zip(aggs) {
        values.push(state.finish(call, run)?);
    }
    rows::push(out, values)?;
    Ok(())
}

impl GroupSorted {
    /// Over an input.
    pub fn new(input: Box<dyn Operator>) -> GroupSorted {
        GroupSorted { input, open: None, ended: false }
    }

    /// Adds a batch; groups that end go to `out`.
    fn add(
        &mut self,
        plan: &Plan,
        batch: &Batch,
        out: &mut Batch,
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        let Node::Aggregate { groups, aggs, .. } = &plan.node else {
            return Err(wrong_node());
        };
        let key = vector::columns(groups, batch, run)?;
        let value = |row: usize| -> Vec<Datum> {
            key.iter().zip(groups).map(|(c, group)| c.get(row, group.ty())).collect()
        };
        let Numbered { numbers, firsts } = number(&key, batch.rows);
        let width = aggs.len();
        let mut states: Vec<AggState> = Vec::with_capacity(firsts.len() * width);
        let mut keys: Vec<Vec<Datum>> = Vec::with_capacity(firsts.len());
        if let Some(open) = self.open.take() {
            if same(&open.0, &value(0)) {
                keys.push(open.0);
                states.extend(open.1);
            } else {
                push(out, open, aggs, run)?;
            }
        }
        for first in &firsts[keys.len()..] {
            keys.push(value(*first));
            states.extend(aggs.iter().map(AggState::new));
        }
        if accumulate::by_column(aggs) {
            for (n, call) in aggs.iter().enumerate() {
                accumulate::add_batch(&mut states, (width, n), &numbers, call, batch, run)?;
            }
        } else {
            for (row, group) in numbers.iter().enumerate() {
                let states = &mut states[*group as usize * width..][..width];
                for (state, call) in states.iter_mut().zip(aggs) {
                    state.add(call, Row::Batch(batch, row), run)?;
                }
            }
        }
        let mut states = states.into_iter();
        let last = keys.len() - 1;
        for (n, key) in keys.into_iter().enumerate() {
            let group = (key, states.by_ref().take(width).collect());
            match n == last {
                true => self.open = Some(group),
                false => push(out, group, aggs, run)?,
            }
        }
        Ok(())
    }
}

impl Operator for GroupSorted {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::Aggregate { input, aggs, .. } = &plan.node else {
            return Err(wrong_node());
        };
        let _memory = sched::memory::for_use(Use::Aggregate);
        let mut out = rows::empty(&types(plan, run.prepared));
        while out.rows == 0 && !self.ended {
            sched::check_interrupts()?;
            match self.input.next(input, run)? {
                Some(batch) if batch.rows == 0 => {}
                Some(batch) => self.add(plan, &batch, &mut out, run)?,
                None => {
                    self.ended = true;
                    if let Some(open) = self.open.take() {
                        push(&mut out, open, aggs, run)?;
                    }
                }
            }
        }
        Ok((out.rows > 0).then_some(out))
    }

    fn hasten(&mut self) {
        self.input.hasten();
    }

    fn rescan(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let Node::Aggregate { input, .. } = &plan.node else {
            return Err(wrong_node());
        };
        (self.open, self.ended) = (None, false);
        self.input.rescan(input, run)
    }
}
