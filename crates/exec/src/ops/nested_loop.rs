//! Nested loop: for each left row runs the right side again, with values of the left row in slots.
//! A right side that uses no slots is kept in memory after the first run.

use base::{Oid, Result};
use sql::Plan;
use sql::plan::{JoinKind, Node};
use types::{Batch, Datum};

use super::{Operator, wrong_node};
use crate::eval;
use crate::rows::{self, Row};
use crate::run::Run;
use crate::vector;

/// See the module's documentation.
pub struct NestedLoop {
    left: Box<dyn Operator>,
    right: Box<dyn Operator>,
    /// The left batch being worked on and its next row.
    current: Option<(Batch, usize)>,
    /// The whole right side, when it uses no slots.
    kept: Option<Vec<Batch>>,
    /// Which kept rows had a match (FULL).
    matched: Vec<Vec<bool>>,
    /// The right side has run at least once.
    ran: bool,
    left_done: bool,
    tail_done: bool,
    /// Types of the output and of the left side.
    types: Vec<Oid>,
    left_types: Vec<Oid>,
}

/// Rows of output to gather before handing them up.
const TARGET: usize = types::batch::BATCH_ROWS;

impl NestedLoop {
    /// Over two inputs.
    pub fn new(
        left: Box<dyn Operator>,
        right: Box<dyn Operator>,
        types: Vec<Oid>,
        left_types: Vec<Oid>,
    ) -> NestedLoop {
        NestedLoop {
            left,
            right,
            current: None,
            kept: None,
            matched: vec![],
            ran: false,
            left_done: false,
            tail_done: false,
            types,
            left_types,
        }
    }

    /// The right side's batches for one left row.
    fn right_side(
        &mut self,
        plan: &Plan,
        left: Row<'_>,
        run: &mut Run<'_, '_>,
    ) -> Result<Option<Vec<Batch>>> {
        let Node::NestedLoop { right, slots, .. } = &plan.node else {
            return Err(wrong_node());
        };
        if slots.is_empty() {
            if self.kept.is_none() {
                let all = super::collect(self.right.as_mut(), right, run)?;
                self.matched = all.iter().map(|b| vec![false; b.rows]).collect();
                self.kept = Some(all);
            }
            return Ok(None);
        }
        for (slot, expr) in slots {
            run.state.slots[usize::from(*slot)] = eval::eval(expr, left, run)?;
        }
        if std::mem::replace(&mut self.ran, true) {
            self.right.rescan(right, run)?;
        }
        super::collect(self.right.as_mut(), right, run).map(Some)
    }

    /// Joins one left row, appending to `out`.
    fn join_row(
        &mut self,
        plan: &Plan,
        batch: &Batch,
        row: usize,
        out: &mut Batch,
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        let Node::NestedLoop { kind, condition, .. } = &plan.node else {
            return Err(wrong_node());
        };
        let own = self.right_side(plan, Row::Batch(batch, row), run)?;
        let none = Vec::new();
        let all = own.as_ref().or(self.kept.as_ref()).unwrap_or(&none);
        let semi = matches!(kind, JoinKind::Semi | JoinKind::Anti);
        let mut found = false;
        for (number, right_batch) in all.iter().enumerate() {
            sched::check_interrupts()?;
            let repeated = rows::take(batch, &vec![row as u32; right_batch.rows]);
            let joined = rows::beside(repeated, right_batch.clone());
            let kept = match condition {
                Some(condition) => vector::select(condition, &joined, run)?,
                None => None,
            };
            found |= kept.as_ref().map_or(joined.rows > 0, |k| !k.is_empty());
            if *kind == JoinKind::Full {
                let marks = &mut self.matched[number];
                match &kept {
                    Some(kept) => kept.iter().for_each(|n| marks[*n as usize] = true),
                    None => marks.fill(true),
                }
            }
            if semi {
                if found {
                    break;
                }
                continue;
            }
            match kept {
                Some(kept) => rows::append(out, &rows::take(&joined, &kept)),
                None => rows::append(out, &joined),
            }
        }
        match kind {
            JoinKind::Semi if found => rows::push(out, rows::get(batch, row, &self.left_types)),
            JoinKind::Anti if !found => rows::push(out, rows::get(batch, row, &self.left_types)),
            JoinKind::Left | JoinKind::Full if !found => {
                let mut values = rows::get(batch, row, &self.left_types);
                values.resize(self.types.len(), Datum::Null);
                rows::push(out, values);
            }
            JoinKind::Right => {
                return Err(base::Error::unsupported("RIGHT JOIN by nested loop"));
            }
            _ => {}
        }
        Ok(())
    }

    /// Right rows without a match (FULL).
    fn tail(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::NestedLoop { right, kind, .. } = &plan.node else {
            return Err(wrong_node());
        };
        if std::mem::replace(&mut self.tail_done, true) || *kind != JoinKind::Full {
            return Ok(None);
        }
        if self.kept.is_none() {
            self.right_side(plan, Row::Empty, run)?;
        }
        let mut out = rows::empty(&self.types);
        let left_width = self.left_types.len();
        let right_types = super::types(right, run.prepared);
        for (batch, marks) in self.kept.iter().flatten().zip(&self.matched) {
            for row in (0..batch.rows).filter(|n| !marks[*n]) {
                let mut values = vec![Datum::Null; left_width];
                values.extend(rows::get(batch, row, &right_types));
                rows::push(&mut out, values);
            }
        }
        Ok((out.rows > 0).then_some(out))
    }
}

impl Operator for NestedLoop {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::NestedLoop { left, .. } = &plan.node else {
            return Err(wrong_node());
        };
        let mut out = rows::empty(&self.types);
        while !self.left_done && out.rows < TARGET {
            sched::check_interrupts()?;
            let (batch, row) = match self.current.take() {
                Some(current) => current,
                None => match self.left.next(left, run)? {
                    Some(batch) => (batch, 0),
                    None => {
                        self.left_done = true;
                        break;
                    }
                },
            };
            if row < batch.rows {
                self.join_row(plan, &batch, row, &mut out, run)?;
                self.current = Some((batch, row + 1));
            }
        }
        if out.rows > 0 { Ok(Some(out)) } else { self.tail(plan, run) }
    }

    fn rescan(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let Node::NestedLoop { left, right, slots, .. } = &plan.node else {
            return Err(wrong_node());
        };
        self.current = None;
        self.left_done = false;
        self.tail_done = false;
        if slots.is_empty() && self.kept.take().is_some() {
            // It may depend on slots of an outer level.
            self.right.rescan(right, run)?;
        }
        self.left.rescan(left, run)
    }
}
