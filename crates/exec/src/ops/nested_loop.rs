//! Nested loop: for each left row runs the right side again, with values of the left row in slots.
//! A right side that uses no slots is kept in memory after the first run; what the runs of one that
//! does give is gathered for many left rows, and joined with them at once; what a single one gives may
//! come in parts.

use std::sync::Arc;

use base::{Oid, Result};
use sql::plan::{JoinKind, Node};
use sql::{Expr, Plan, walk};
use types::{Batch, Datum};

use super::before_error::Postponed;
use super::key_filter::KeyFilter;
use crate::ops::measure::{REMOVED_BY_JOIN, count};
use crate::ops::operator::{Operator, collect, types, wrong_node};
use crate::rows::{self, Row};
use crate::run::Run;
use crate::{eval, vector};

/// See the module's documentation.
pub struct NestedLoop {
    left: Box<dyn Operator>,
    right: Box<dyn Operator>,
    /// The left batch being worked on and its next row.
    current: Option<(Batch, usize)>,
    /// How far that row has been joined with the kept right side.
    at: Progress,
    /// The whole right side, when it uses no slots.
    kept: Option<Vec<Batch>>,
    /// Which kept rows had a match (FULL).
    matched: Vec<Vec<bool>>,
    /// The right side has run at least once.
    ran: bool,
    left_done: bool,
    /// Other threads read the left side, too: it may go on after its end.
    shared: bool,
    /// The kept batch whose rows without a match are handed up next (FULL).
    tail_at: usize,
    is_full: bool,
    /// Rows of output to gather before handing them up.
    target: usize,
    /// What that may grow to.
    most: usize,
    /// It never grows: rows are handed up one by one.
    by_row: bool,
    /// Rows handed up.
    handed: usize,
    /// Types of the output and of the left side.
    types: Vec<Oid>,
    left_types: Vec<Oid>,
    postponed: Postponed,
}

/// How far a left row has been joined.
#[derive(Clone, Copy, Default)]
struct Progress {
    /// The number of the next right batch.
    number: usize,
    /// A right row has matched.
    found: bool,
    /// With a right side that is run for each left row: it has more for this one.
    draining: bool,
}

/// Rows of output to gather at most before handing them up.
const TARGET: usize = types::batch::BATCH_ROWS;

impl NestedLoop {
    /// Over two inputs.
    pub fn new(
        left: Box<dyn Operator>,
        right: Box<dyn Operator>,
        types: Vec<Oid>,
        left_types: Vec<Oid>,
        kind: JoinKind,
    ) -> NestedLoop {
        NestedLoop {
            is_full: kind == JoinKind::Full,
            target: TARGET,
            most: TARGET,
            by_row: false,
            handed: 0,
            left,
            right,
            current: None,
            at: Progress::default(),
            kept: None,
            matched: vec![],
            ran: false,
            left_done: false,
            shared: false,
            tail_at: 0,
            types,
            left_types,
            postponed: Postponed::default(),
        }
    }

    /// The same for a reader that sees how far it goes.
    pub fn by_row(self) -> NestedLoop {
        NestedLoop { by_row: true, target: 1, most: 1, ..self }
    }

    /// The same for a thread that has others beside it.
    pub fn shared(self) -> NestedLoop {
        NestedLoop { shared: true, ..self }
    }

    /// Keeps the right side, which uses no slots.
    fn keep(&mut self, right: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        if self.kept.is_none() {
            let all = collect(self.right.as_mut(), right, run)?;
            self.matched = all.iter().map(|b| vec![false; b.rows]).collect();
            self.kept = Some(all);
        }
        Ok(())
    }

    /// Joins left rows from `row` on, running the right side for each, until the output is large
    /// enough. Returns the first row that is not done.
    fn join_rows(
        &mut self,
        plan: &Plan,
        batch: &Batch,
        mut row: usize,
        out: &mut Batch,
        run: &mut Run<'_, '_>,
    ) -> Result<usize> {
        let Node::NestedLoop { right, kind, slots, condition, .. } = &plan.node else {
            return Err(wrong_node());
        };
        let first = row;
        let tests = matches!(kind, JoinKind::Semi | JoinKind::Anti);
        let mut gathered = rows::empty(&types(right, run.prepared));
        // The left row of each gathered one.
        let mut owners: Vec<u32> = Vec::new();
        let mut failed = false;
        while row < batch.rows && out.rows + gathered.rows < self.target {
            sched::check_interrupts()?;
            if !self.at.draining {
                for (slot, expr) in slots {
                    let value = eval::eval(expr, Row::Batch(batch, row), run)?;
                    run.state.slots[usize::from(*slot)] = value;
                }
                if std::mem::replace(&mut self.ran, true) {
                    self.right.rescan(right, run)?;
                }
            }
            let before = gathered.rows;
            let how = (tests && condition.is_none(), self.target);
            match self.right.drain(right, how, &mut gathered, run) {
                Ok(done) => self.at.draining = !done,
                Err(error) => {
                    // The left rows before this one are joined, and this one as far as it got.
                    self.postponed
                        .keep(error, out.rows + (row - first) + (gathered.rows - before))?;
                    self.at.draining = false;
                    failed = true;
                }
            }
            owners.extend(std::iter::repeat_n(row as u32, gathered.rows - before));
            if self.at.draining || failed {
                break;
            }
            row += 1;
        }
        let mut joined = if tests && condition.is_none() {
            Batch::default()
        } else {
            rows::beside(rows::take(batch, &owners), gathered)
        };
        let kept = match condition.as_ref().map(|c| (c, vector::select(c, &joined, run))) {
            None => None,
            Some((_, Ok(kept))) => kept,
            Some((condition, Err(error))) => {
                let (kept, at) = self.postponed.before(condition, &joined, error, run)?;
                row = owners.get(at).map_or(row, |owner| *owner as usize);
                self.at.draining = false;
                Some(kept)
            }
        };
        if let Some(kept) = kept {
            count(plan, REMOVED_BY_JOIN, (joined.rows - kept.len()) as u64, run);
            joined = rows::take(&joined, &kept);
            owners = kept.iter().map(|n| owners[*n as usize]).collect();
        }
        let mut matched = vec![false; row + 1 - first];
        let last = row - first;
        owners.iter().for_each(|n| matched[(*n as usize - first).min(last)] = true);
        matched[0] |= std::mem::take(&mut self.at.found);
        if self.at.draining {
            // One partner is all that a test asks for.
            (self.at.found, self.at.draining) = match matched[row - first] {
                true if tests => (false, false),
                found => (found, true),
            };
            row += usize::from(!self.at.draining);
        }
        let with = |wanted: bool| -> Vec<u32> {
            (first as u32..row as u32).filter(|n| matched[*n as usize - first] == wanted).collect()
        };
        match kind {
            JoinKind::Inner => rows::append(out, &joined)?,
            JoinKind::Semi => rows::append(out, &rows::take(batch, &with(true)))?,
            JoinKind::Anti => rows::append(out, &rows::take(batch, &with(false)))?,
            JoinKind::Left => {
                let lonely = with(false);
                if !lonely.is_empty() {
                    let right_types = &self.types[self.left_types.len()..];
                    let padding = rows::nulls(right_types, lonely.len());
                    rows::append(&mut joined, &rows::beside(rows::take(batch, &lonely), padding))?;
                    // Each left row at its place.
                    owners.extend(lonely);
                    let mut order: Vec<u32> = (0..joined.rows as u32).collect();
                    order.sort_by_key(|n| owners[*n as usize]);
                    joined = rows::take(&joined, &order);
                }
                rows::append(out, &joined)?;
            }
            JoinKind::Right | JoinKind::Full | JoinKind::RightSemi | JoinKind::RightAnti => {
                return Err(base::Error::unsupported("RIGHT JOIN by nested loop"));
            }
        }
        Ok(row)
    }

    /// Joins one left row with the kept right side, appending to `out` until that is large enough; true
    /// when the row is done.
    fn join_row(
        &mut self,
        plan: &Plan,
        batch: &Batch,
        row: usize,
        out: &mut Batch,
        run: &mut Run<'_, '_>,
    ) -> Result<bool> {
        let Node::NestedLoop { right, kind, condition, .. } = &plan.node else {
            return Err(wrong_node());
        };
        self.keep(right, run)?;
        let none = Vec::new();
        let all = self.kept.as_ref().unwrap_or(&none);
        let semi = matches!(kind, JoinKind::Semi | JoinKind::Anti);
        let Progress { number, mut found, .. } = self.at;
        for (number, right_batch) in all.iter().enumerate().skip(number) {
            sched::check_interrupts()?;
            if out.rows >= self.target {
                self.at = Progress { number, found, draining: false };
                return Ok(false);
            }
            let repeated = rows::take(batch, &vec![row as u32; right_batch.rows]);
            let joined = rows::beside(repeated, right_batch.clone());
            let kept = match condition {
                Some(condition) => match vector::select(condition, &joined, run) {
                    Ok(kept) => kept,
                    Err(error) => {
                        if *kind == JoinKind::Inner {
                            let (kept, _) =
                                self.postponed.before(condition, &joined, error, run)?;
                            rows::append(out, &rows::take(&joined, &kept))?;
                        } else {
                            self.postponed.keep(error, out.rows)?;
                        }
                        return Ok(true);
                    }
                },
                None => None,
            };
            found |= kept.as_ref().map_or(joined.rows > 0, |k| !k.is_empty());
            if let Some(kept) = &kept {
                count(plan, REMOVED_BY_JOIN, (joined.rows - kept.len()) as u64, run);
            }
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
                Some(kept) => rows::append(out, &rows::take(&joined, &kept))?,
                None => rows::append(out, &joined)?,
            }
        }
        self.at = Progress::default();
        match kind {
            JoinKind::Semi if found => rows::push(out, rows::get(batch, row, &self.left_types))?,
            JoinKind::Anti if !found => rows::push(out, rows::get(batch, row, &self.left_types))?,
            JoinKind::Left | JoinKind::Full if !found => {
                let mut values = rows::get(batch, row, &self.left_types);
                values.resize(self.types.len(), Datum::Null);
                rows::push(out, values)?;
            }
            JoinKind::Right | JoinKind::RightSemi | JoinKind::RightAnti => {
                return Err(base::Error::unsupported("RIGHT JOIN by nested loop"));
            }
            _ => {}
        }
        Ok(true)
    }

    /// Right rows without a match (FULL).
    fn tail(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::NestedLoop { right, kind, .. } = &plan.node else {
            return Err(wrong_node());
        };
        if *kind != JoinKind::Full {
            return Ok(None);
        }
        self.keep(right, run)?;
        let left_types = &self.types[..self.left_types.len()];
        for (batch, marks) in self.kept.iter().flatten().zip(&self.matched).skip(self.tail_at) {
            sched::check_interrupts()?;
            self.tail_at += 1;
            let lonely: Vec<u32> = (0..batch.rows as u32).filter(|n| !marks[*n as usize]).collect();
            if !lonely.is_empty() {
                let padding = rows::nulls(left_types, lonely.len());
                return Ok(Some(rows::beside(padding, rows::take(batch, &lonely))));
            }
        }
        Ok(None)
    }
}

impl Operator for NestedLoop {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::NestedLoop { left, slots, .. } = &plan.node else {
            return Err(wrong_node());
        };
        self.postponed.raise()?;
        let mut out = rows::empty(&self.types);
        while !self.left_done && out.rows < self.target && !self.postponed.is_some() {
            sched::check_interrupts()?;
            let (batch, row) = match self.current.take() {
                Some(current) => current,
                None => match self.left.next(left, run)? {
                    Some(batch) => (batch, 0),
                    None => {
                        self.left_done = !self.shared;
                        break;
                    }
                },
            };
            if row >= batch.rows {
                continue;
            }
            let next = if slots.is_empty() {
                row + usize::from(self.join_row(plan, &batch, row, &mut out, run)?)
            } else {
                self.join_rows(plan, &batch, row, &mut out, run)?
            };
            self.current = Some((batch, next));
        }
        if out.rows == 0 {
            self.postponed.raise()?;
        }
        // A reader of the first rows is not kept waiting for many more than there were.
        self.handed = self.handed.saturating_add(out.rows);
        self.target = self.target.max(1 + self.handed / 4).min(self.most);
        if out.rows > 0 { Ok(Some(out)) } else { self.tail(plan, run) }
    }

    fn bound(&mut self, rows: u64) {
        if !self.by_row {
            self.most = usize::try_from(rows).map_or(TARGET, |rows| rows.clamp(1, TARGET));
        }
        self.target = self.target.min(self.most);
    }

    fn prepare(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let Node::NestedLoop { left, .. } = &plan.node else { return Err(wrong_node()) };
        self.left.prepare(left, run)
    }

    fn hasten(&mut self) {
        (self.target, self.handed) = (1, 0);
        self.left.hasten();
    }

    fn restrict(&mut self, keys: &[Expr], filter: &Arc<KeyFilter>) {
        let mut used = Vec::new();
        keys.iter().for_each(|key| walk::columns_of(key, &mut used));
        if !self.is_full && used.iter().all(|n| usize::from(*n) < self.left_types.len()) {
            self.left.restrict(keys, filter);
        }
    }

    fn rescan(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let Node::NestedLoop { left, right, slots, .. } = &plan.node else {
            return Err(wrong_node());
        };
        self.current = None;
        self.postponed = Postponed::default();
        self.at = Progress::default();
        self.left_done = false;
        self.tail_at = 0;
        let target = if self.by_row { 1 } else { TARGET };
        (self.target, self.most) = (target, target);
        if slots.is_empty() && self.kept.take().is_some() {
            // It may depend on slots of an outer level.
            self.right.rescan(right, run)?;
        }
        self.left.rescan(left, run)
    }
}
