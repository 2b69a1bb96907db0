//! Merge join: both inputs come sorted by the keys and are read side by side.
//!
//! ```text
//! left batch    … a b b b c …        one row after the other
//! right window      b b | c d …      from the group that the left row is compared with on
//! ```
//!
//! The right side's rows stand in a window that begins with the current *group* (rows of one key); it
//! grows until the group is complete. Each left row meets all rows of the group with its key. Pairs
//! are gathered and worked on together; before one of the sides moves on they are *flushed*, with the
//! rows that found nothing where the kind of join wants them. Reading ends as soon as nothing more
//! can come of it.
//!
//! A batch in which nothing found a partner lies in a gap of the other side. Before the next one is read, that input
//! is told which key comes next ([`Operator::skip_to`]): an index is asked anew from there, so that
//! `ORDER BY key LIMIT 1` over a join whose first row comes late reads few rows.
//!
//! Keys are compared as bytes ([`super::sort::encode`]). One with a NULL equals nothing. Left rows
//! keep their order in the output (RIGHT and FULL put rows of the right side between them).

use base::{Error, Oid, Result};
use sched::memory::Use;
use sql::Plan;
use sql::expr::SortKey;
use sql::plan::{JoinKind, MergeKey, Node};
use types::Batch;
use types::batch::BATCH_ROWS;

use super::before_error::Postponed;
use super::sort::encode;
use crate::ops::measure::{REMOVED_BY_JOIN, count};
use crate::ops::operator::{Operator, types, wrong_node};
use crate::rows::Row;
use crate::run::Run;
use crate::{eval, rows, vector};

/// Rows with the bytes of their keys.
struct Keyed {
    rows: Batch,
    bytes: Vec<u8>,
    /// Where each row's key ends in the bytes.
    ends: Vec<usize>,
    /// Whether there is a NULL in it.
    nulls: Vec<bool>,
    /// The input has no more.
    ended: bool,
}

impl Keyed {
    fn new(types: &[Oid]) -> Keyed {
        Keyed { rows: rows::empty(types), bytes: vec![], ends: vec![], nulls: vec![], ended: false }
    }

    fn len(&self) -> usize {
        self.rows.rows
    }

    fn key(&self, row: usize) -> &[u8] {
        let begin = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.bytes[begin..self.ends[row]]
    }

    fn add(&mut self, batch: &Batch, keys: &[SortKey], run: &mut Run<'_, '_>) -> Result<()> {
        let mut columns = Vec::with_capacity(keys.len());
        for key in keys {
            columns.push(vector::values(&key.expr, batch, run)?.filled(key.expr.ty(), batch.rows)?);
        }
        for row in 0..batch.rows {
            let mut null = false;
            for (key, column) in keys.iter().zip(&columns) {
                let value = column.get(row, key.expr.ty());
                null |= value.is_null();
                encode(key, &value, &mut self.bytes)?;
            }
            self.ends.push(self.bytes.len());
            self.nulls.push(null);
        }
        rows::append(&mut self.rows, batch)?;
        Ok(())
    }

    /// Forgets the rows before this one.
    fn drop_before(&mut self, row: usize) {
        if row == 0 {
            return;
        }
        let begin = self.ends[row - 1];
        self.bytes.drain(..begin);
        self.ends.drain(..row);
        self.ends.iter_mut().for_each(|end| *end -= begin);
        self.nulls.drain(..row);
        self.rows = rows::slice(&self.rows, row, self.rows.rows - row);
    }
}

/// See the module's documentation.
pub struct MergeJoin {
    left: Box<dyn Operator>,
    right: Box<dyn Operator>,
    state: Option<MergeState>,
}

struct MergeState {
    /// The left batch, and its next row.
    batch: Keyed,
    at: usize,
    /// The first left row that has not been flushed.
    flushed: usize,
    /// The right side from the current group on.
    window: Keyed,
    /// The current group: its first row, and the row after it once it is complete.
    first: usize,
    end: Option<usize>,
    /// Some left row of the batch found a partner.
    partnered: bool,
    /// Right rows that found a partner, and how many of them have been dealt with.
    matched: Vec<bool>,
    told: usize,
    pairs: (Vec<u32>, Vec<u32>),
    /// The input that is to be read before pairing goes on: not before somebody asks for more.
    stopped: Option<Stop>,
    done: bool,
    postponed: Postponed,
}

/// Why pairing has stopped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// There are enough pairs for a batch.
    Full,
    /// The left batch is at its end.
    Left,
    /// The right window is.
    Right,
    /// Nothing more can come.
    Done,
}

/// Which input's expression a key is read from.
fn sort_keys(keys: &[MergeKey], left: bool) -> Vec<SortKey> {
    let one = |key: &MergeKey| SortKey {
        expr: if left { key.left.clone() } else { key.right.clone() },
        descending: key.descending,
        nulls_first: key.nulls_first,
    };
    keys.iter().map(one).collect()
}

/// Whether left rows without a partner are of use.
fn keeps_left(kind: JoinKind) -> bool {
    matches!(kind, JoinKind::Left | JoinKind::Full | JoinKind::Anti)
}

fn keeps_right(kind: JoinKind) -> bool {
    matches!(kind, JoinKind::Right | JoinKind::Full)
}

impl MergeState {
    fn new(left: &[Oid], right: &[Oid]) -> MergeState {
        MergeState {
            batch: Keyed::new(left),
            at: 0,
            flushed: 0,
            window: Keyed::new(right),
            first: 0,
            end: Some(0),
            partnered: false,
            matched: vec![],
            told: 0,
            pairs: Default::default(),
            stopped: None,
            postponed: Postponed::default(),
            done: false,
        }
    }

    /// Whether all of the left batch comes before the right side's group.
    fn is_before_right(&self) -> bool {
        let (batch, window) = (&self.batch, &self.window);
        let known = batch.len() > 0 && self.first < window.len() && !window.nulls[self.first];
        known && batch.key(batch.len() - 1) < window.key(self.first)
    }

    /// Whether all of the window comes before the left row.
    fn is_before_left(&self) -> bool {
        let (batch, window) = (&self.batch, &self.window);
        let known = window.len() > 0 && self.at < batch.len() && !batch.nulls[self.at];
        known && window.key(window.len() - 1) < batch.key(self.at)
    }

    /// Goes on to the next group of the right side. False: the window must grow first, or there is no
    /// further group.
    fn next_group(&mut self, one: bool) -> bool {
        if let Some(end) = self.end.take() {
            self.first = end;
        }
        self.complete_group(one)
    }

    /// Finds the group's end, which is where the window ends if `one` row of it is enough.
    fn complete_group(&mut self, one: bool) -> bool {
        let window = &self.window;
        while self.first < window.len() && window.nulls[self.first] {
            self.first += 1;
        }
        if self.first == window.len() {
            return false;
        }
        let key = window.key(self.first);
        let mut end = self.first + 1;
        while end < window.len() && window.key(end) == key {
            end += 1;
        }
        if end == window.len() && !window.ended && !one {
            return false;
        }
        self.end = Some(end);
        true
    }

    /// Pairs left rows with the groups of their keys. `one`: only whether there is a partner counts.
    fn pair(&mut self, kind: JoinKind, one: bool) -> Stop {
        while self.at < self.batch.len() {
            if self.pairs.0.len() >= BATCH_ROWS {
                return Stop::Full;
            }
            if self.batch.nulls[self.at] {
                self.at += 1;
                continue;
            }
            let Some(end) = self.end.filter(|end| *end > self.first) else {
                if self.next_group(one) {
                    continue;
                }
                if !self.window.ended {
                    return Stop::Right;
                }
                if !keeps_left(kind) {
                    return Stop::Done;
                }
                // What is left finds nothing.
                self.at = self.batch.len();
                return Stop::Left;
            };
            match self.batch.key(self.at).cmp(self.window.key(self.first)) {
                std::cmp::Ordering::Less => self.at += 1,
                std::cmp::Ordering::Greater => self.first = end,
                std::cmp::Ordering::Equal => {
                    let end = if one { self.first + 1 } else { end };
                    self.pairs.0.extend(std::iter::repeat_n(self.at as u32, end - self.first));
                    self.pairs.1.extend(self.first as u32..end as u32);
                    self.at += 1;
                }
            }
        }
        match self.batch.ended {
            true if !keeps_right(kind) => Stop::Done,
            true => {
                // Right rows that are left find nothing.
                (self.first, self.end) = (self.window.len(), None);
                if self.window.ended { Stop::Done } else { Stop::Right }
            }
            false => Stop::Left,
        }
    }

    /// The output for the pairs gathered and for the rows that have been passed.
    fn flush(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Batch> {
        let Node::MergeJoin { left, right, kind, condition, .. } = &plan.node else {
            return Err(wrong_node());
        };
        let (mut of_left, mut of_right) = std::mem::take(&mut self.pairs);
        let mut passed = self.flushed as u32..self.at as u32;
        self.flushed = self.at;
        let tests = matches!(kind, JoinKind::Semi | JoinKind::Anti);
        let mut joined = match tests && condition.is_none() {
            true => Batch::default(),
            false => rows::beside(
                rows::take(&self.batch.rows, &of_left),
                rows::take(&self.window.rows, &of_right),
            ),
        };
        let kept = match condition.as_ref().map(|c| (c, vector::select(c, &joined, run))) {
            None => None,
            Some((_, Ok(kept))) => kept,
            Some((condition, Err(error))) => {
                if keeps_right(*kind) {
                    return Err(error);
                }
                let (kept, at) = self.postponed.before(condition, &joined, error, run)?;
                passed.end = of_left.get(at).copied().unwrap_or(passed.end);
                Some(kept)
            }
        };
        if let Some(kept) = kept {
            count(plan, REMOVED_BY_JOIN, (joined.rows - kept.len()) as u64, run);
            joined = rows::take(&joined, &kept);
            of_left = kept.iter().map(|n| of_left[*n as usize]).collect();
            of_right = kept.iter().map(|n| of_right[*n as usize]).collect();
        }
        of_right.iter().for_each(|n| self.matched[*n as usize] = true);
        self.partnered |= !of_left.is_empty();
        let mut found = of_left.iter().copied().peekable();
        let mut lonely = Vec::new();
        let mut partnered = Vec::new();
        for row in passed {
            let mut any = false;
            while found.next_if_eq(&row).is_some() {
                any = true;
            }
            if any { partnered.push(row) } else { lonely.push(row) }
        }
        match kind {
            JoinKind::Semi => return Ok(rows::take(&self.batch.rows, &partnered)),
            JoinKind::Anti => return Ok(rows::take(&self.batch.rows, &lonely)),
            JoinKind::Left | JoinKind::Full if !lonely.is_empty() => {
                let padding = rows::nulls(&types(right, run.prepared), lonely.len());
                let alone = rows::beside(rows::take(&self.batch.rows, &lonely), padding);
                rows::append(&mut joined, &alone)?;
                // Each left row at its place.
                of_left.extend(lonely);
                let mut order: Vec<u32> = (0..joined.rows as u32).collect();
                order.sort_by_key(|n| of_left[*n as usize]);
                joined = rows::take(&joined, &order);
            }
            _ => {}
        }
        if keeps_right(*kind) {
            let alone: Vec<u32> =
                (self.told..self.first).filter(|n| !self.matched[*n]).map(|n| n as u32).collect();
            self.told = self.told.max(self.first);
            if !alone.is_empty() {
                let padding = rows::nulls(&types(left, run.prepared), alone.len());
                let alone = rows::take(&self.window.rows, &alone);
                rows::append(&mut joined, &rows::beside(padding, alone))?;
            }
        }
        Ok(joined)
    }
}

impl MergeJoin {
    /// Over two inputs.
    pub fn new(left: Box<dyn Operator>, right: Box<dyn Operator>) -> MergeJoin {
        MergeJoin { left, right, state: None }
    }

    /// The next left batch. Everything has been flushed.
    fn read_left(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let (Node::MergeJoin { left, keys, kind, .. }, Some(state)) = (&plan.node, &mut self.state)
        else {
            return Err(wrong_node());
        };
        // None of the rows just passed found a partner: those before the right side's group find none, either.
        if matches!(kind, JoinKind::Inner | JoinKind::Semi)
            && !state.partnered
            && state.is_before_right()
        {
            let own = sort_keys(keys, true).swap_remove(0);
            let row = Row::Batch(&state.window.rows, state.first);
            let value = eval::eval(&keys[0].right, row, run)?;
            self.left.skip_to(left, &own, &value)?;
        }
        state.partnered = false;
        let mut next = Keyed::new(&types(left, run.prepared));
        match self.left.next(left, run)? {
            Some(batch) => next.add(&batch, &sort_keys(keys, true), run)?,
            None => next.ended = true,
        }
        (state.batch, state.at, state.flushed) = (next, 0, 0);
        Ok(())
    }

    /// Lets the window begin with the current group and adds the next right batch.
    fn read_right(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let (Node::MergeJoin { right, keys, kind, .. }, Some(state)) =
            (&plan.node, &mut self.state)
        else {
            return Err(wrong_node());
        };
        let gone = state.first;
        if matches!(kind, JoinKind::Inner | JoinKind::Left | JoinKind::Semi | JoinKind::Anti)
            && state.is_before_left()
            && !state.matched.contains(&true)
        {
            let own = sort_keys(keys, false).swap_remove(0);
            let row = Row::Batch(&state.batch.rows, state.at);
            let value = eval::eval(&keys[0].left, row, run)?;
            self.right.skip_to(right, &own, &value)?;
        }
        state.window.drop_before(gone);
        state.matched.drain(..gone);
        (state.first, state.end, state.told) = (0, None, state.told.saturating_sub(gone));
        match self.right.next(right, run)? {
            Some(batch) => state.window.add(&batch, &sort_keys(keys, false), run)?,
            None => state.window.ended = true,
        }
        state.matched.resize(state.window.len(), false);
        Ok(())
    }
}

impl Operator for MergeJoin {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::MergeJoin { left, right, kind, condition, .. } = &plan.node else {
            return Err(wrong_node());
        };
        let _memory = sched::memory::for_use(Use::Sort);
        if self.state.is_none() {
            let (left, right) = (types(left, run.prepared), types(right, run.prepared));
            self.state = Some(MergeState::new(&left, &right));
        }
        let one = matches!(kind, JoinKind::Semi | JoinKind::Anti) && condition.is_none();
        loop {
            sched::check_interrupts()?;
            let Some(state) = &mut self.state else {
                return Err(Error::internal("a merge join lost its state"));
            };
            state.postponed.raise()?;
            if state.done {
                return Ok(None);
            }
            match state.stopped.take() {
                Some(Stop::Left) => self.read_left(plan, run)?,
                Some(Stop::Right) => self.read_right(plan, run)?,
                _ => {}
            }
            let Some(state) = &mut self.state else {
                return Err(Error::internal("a merge join lost its state"));
            };
            let stop = state.pair(*kind, one);
            let joined = state.flush(plan, run)?;
            state.done = stop == Stop::Done;
            state.stopped = Some(stop);
            if joined.rows > 0 {
                return Ok(Some(joined));
            }
        }
    }

    fn hasten(&mut self) {
        self.left.hasten();
        self.right.hasten();
    }

    fn rescan(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let Node::MergeJoin { left, right, .. } = &plan.node else {
            return Err(wrong_node());
        };
        self.state = None;
        self.left.rescan(left, run)?;
        self.right.rescan(right, run)
    }
}
