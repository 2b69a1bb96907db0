//! Window functions. The input comes sorted by partition, then by order; one partition at a time is
//! kept in memory, each call's values are computed as a column, and the rows go on with them.
//!
//! ```text
//! rows    0 1 2 3 4 5 6        rows with equal ORDER BY values are peers,
//! groups  0 0 1 2 2 2 3        groups of peers are numbered;
//! frame        [s … e)         a frame is a range of rows, less what EXCLUDE takes out
//! ```
//!
//! An aggregate over frames that only grow is computed as they grow; over frames that move, sums and
//! counts of integers also give back what falls out ([`Moving`]); others begin anew when the
//! frame's beginning moves, as PostgreSQL does for what can't be taken back exactly (floats).

mod together;

use std::collections::VecDeque;

use base::{Error, Result, err};
use sched::memory::Use;
use sql::expr::{OwnSteps, SortKey};
use sql::plan::Node;
use sql::window::{Exclude, Frame, FrameBound, FrameMode, WindowCall, WindowFunction, WindowKind};
use sql::{AggCall, Expr, Plan};
use types::batch::BATCH_ROWS;
use types::{Batch, Column, Datum, oids};

use super::accumulate::AggState;
use super::before_error::Postponed;
use super::grouping::same;
use super::own_aggregate::OwnState;
use crate::eval;
use crate::ops::operator::{Operator, types, wrong_node};
use crate::rows::{self, Row};
use crate::run::Run;

/// See the module's documentation.
pub struct Window {
    input: Box<dyn Operator>,
    /// Input rows of the next partition.
    pending: Option<(Batch, usize)>,
    ended: bool,
    /// Each call's frame offsets.
    offsets: Option<Vec<Offsets>>,
    /// A partition with its computed columns, and its next row.
    ready: Option<(Batch, usize)>,
    /// The error of the row behind those that are ready.
    postponed: Postponed,
    /// Partitions whose values several threads have computed, in order; whether any has been read for that, and the
    /// error that came with the next one.
    computed: VecDeque<Valued>,
    began: bool,
    read_failed: Postponed,
}

/// A partition's rows with the calls' values, up to the first that can't be computed, and its error.
type Valued = (Batch, Option<Error>);

/// Values of a frame's offsets.
#[derive(Default)]
struct Offsets {
    start: Datum,
    end: Datum,
}

/// One partition's rows and peers.
struct Partition {
    rows: Batch,
    /// Group of each row.
    group: Vec<u32>,
    /// First row of each group; the number of rows at the end.
    starts: Vec<u32>,
}

impl Partition {
    fn len(&self) -> usize {
        self.rows.rows
    }

    /// First row of a group, or the end.
    fn start_of(&self, group: usize) -> usize {
        self.starts.get(group).map_or(self.len(), |n| *n as usize)
    }

    fn peers(&self, row: usize) -> (usize, usize) {
        let group = self.group[row] as usize;
        (self.start_of(group), self.start_of(group + 1))
    }

    fn row(&self, at: usize) -> Row<'_> {
        Row::Batch(&self.rows, at)
    }
}

impl Window {
    /// Over a sorted input.
    pub fn new(input: Box<dyn Operator>) -> Window {
        Window {
            input,
            pending: None,
            ended: false,
            offsets: None,
            ready: None,
            postponed: Postponed::default(),
            computed: VecDeque::new(),
            began: false,
            read_failed: Postponed::default(),
        }
    }

    /// The rows of the next partition; None at the end.
    fn read(
        &mut self,
        input: &Plan,
        partition: &[Expr],
        run: &mut Run<'_, '_>,
    ) -> Result<Option<Batch>> {
        let mut out = rows::empty(&types(input, run.prepared));
        let mut key: Option<Vec<Datum>> = None;
        loop {
            sched::check_interrupts_now()?;
            let (batch, first) = match self.pending.take() {
                Some(pending) => pending,
                None if self.ended => break,
                None => match self.input.next(input, run)? {
                    Some(batch) => (batch, 0),
                    None => {
                        self.ended = true;
                        break;
                    }
                },
            };
            if partition.is_empty() && first == 0 {
                rows::append(&mut out, &batch)?;
                continue;
            }
            for row in first..batch.rows {
                let values = eval::eval_all(partition, Row::Batch(&batch, row), run)?;
                match &key {
                    Some(key) if !same(key, &values) => {
                        self.pending = Some((batch, row));
                        return Ok(Some(out));
                    }
                    Some(_) => {}
                    None => key = Some(values),
                }
                for (to, from) in out.columns.iter_mut().zip(&batch.columns) {
                    to.push_from(from, row)?;
                }
                out.rows += 1;
            }
        }
        Ok((out.rows > 0).then_some(out))
    }

    /// The next partition with the calls' values beside its rows; of one with a row whose values can't be
    /// computed, the rows before that.
    fn compute(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::Window { input, partition, calls, workers, .. } = &plan.node else {
            return Err(wrong_node());
        };
        if self.offsets.is_none() {
            let all: Result<Vec<Offsets>> = calls.iter().map(|c| offsets(&c.frame, run)).collect();
            self.offsets = Some(all?);
        }
        let next = match workers {
            0 => match self.read(input, partition, run)? {
                Some(rows) => {
                    Some(valued(rows, plan, self.offsets.as_deref().unwrap_or_default(), run)?)
                }
                None => None,
            },
            _ => self.next_together(plan, run)?,
        };
        let Some((rows, failed)) = next else { return Ok(None) };
        if let Some(error) = failed {
            self.postponed.keep(error, rows.rows)?;
        }
        Ok(Some(rows))
    }
}

/// A partition with the calls' values beside its rows.
fn valued(rows: Batch, plan: &Plan, offsets: &[Offsets], run: &mut Run<'_, '_>) -> Result<Valued> {
    let Node::Window { order, calls, .. } = &plan.node else { return Err(wrong_node()) };
    let part = peers(rows, order, run)?;
    let mut columns = Vec::with_capacity(calls.len());
    let mut failed: Option<(usize, Error)> = None;
    for (call, offsets) in calls.iter().zip(offsets) {
        let bounds = Bounds::new(&call.frame, offsets, order, &part, run)?;
        let mut out = Column::new(call.ty);
        if let Err(error) = column(call, &part, &bounds, &mut out, run)
            && failed.as_ref().is_none_or(|(rows, _)| out.len() < *rows)
        {
            failed = Some((out.len(), error));
        }
        columns.push(out);
    }
    let mut rows = part.rows;
    if let Some((count, _)) = &failed {
        let cut = |column: Column| {
            let column = Batch { rows: column.len(), columns: vec![column] };
            rows::slice(&column, 0, *count).columns
        };
        columns = columns.into_iter().flat_map(cut).collect();
        rows = rows::slice(&rows, 0, *count);
    }
    rows.columns.extend(columns);
    Ok((rows, failed.map(|(_, error)| error)))
}

impl Operator for Window {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let _memory = sched::memory::for_use(Use::Sort);
        let mut out: Option<Batch> = None;
        loop {
            if let Some((batch, at)) = self.ready.take() {
                let room = BATCH_ROWS - out.as_ref().map_or(0, |o| o.rows);
                let count = room.min(batch.rows - at);
                let whole = at == 0 && count == batch.rows;
                match &mut out {
                    None if whole => out = Some(batch),
                    None => {
                        out = Some(rows::slice(&batch, at, count));
                        if at + count < batch.rows {
                            self.ready = Some((batch, at + count));
                        }
                    }
                    Some(out) => {
                        if whole {
                            rows::append(out, &batch)?;
                        } else {
                            rows::append(out, &rows::slice(&batch, at, count))?;
                            self.ready = Some((batch, at + count));
                        }
                    }
                }
            }
            if out.as_ref().is_some_and(|o| o.rows >= BATCH_ROWS) {
                return Ok(out);
            }
            if self.postponed.is_some() && out.is_some() {
                return Ok(out);
            }
            self.postponed.raise()?;
            match self.compute(plan, run) {
                Ok(Some(batch)) => self.ready = Some((batch, 0)),
                Ok(None) => return Ok(out),
                Err(error) => self.postponed.keep(error, out.as_ref().map_or(0, |o| o.rows))?,
            }
        }
    }

    fn rescan(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let Node::Window { input, .. } = &plan.node else {
            return Err(wrong_node());
        };
        (self.pending, self.ready, self.offsets) = (None, None, None);
        self.computed.clear();
        self.read_failed = Postponed::default();
        (self.ended, self.began) = (false, false);
        self.postponed = Postponed::default();
        self.input.rescan(input, run)
    }
}

/// Finds the groups of peers.
fn peers(rows: Batch, order: &[SortKey], run: &mut Run<'_, '_>) -> Result<Partition> {
    let count = rows.rows;
    let mut group = Vec::with_capacity(count);
    let mut starts = vec![0];
    let mut last: Option<Vec<Datum>> = None;
    for n in 0..count {
        now_and_then(n)?;
        if !order.is_empty() {
            let mut values = Vec::with_capacity(order.len());
            for key in order {
                values.push(eval::eval(&key.expr, Row::Batch(&rows, n), run)?);
            }
            if last.as_ref().is_some_and(|last| !same(last, &values)) {
                starts.push(n as u32);
            }
            last = Some(values);
        }
        group.push(starts.len() as u32 - 1);
    }
    starts.push(count as u32);
    Ok(Partition { rows, group, starts })
}

/// The offsets of a frame: not NULL, not negative.
fn offsets(frame: &Frame, run: &mut Run<'_, '_>) -> Result<Offsets> {
    let mut one = |bound: &FrameBound, word: &str| {
        let Some(expr) = bound.offset() else { return Ok(Datum::Null) };
        let value = eval::eval(expr, Row::Empty, run)?;
        if value.is_null() {
            return Err(err!(NULL_VALUE_NOT_ALLOWED, "frame {word} offset must not be null"));
        }
        let negative = match &value {
            Datum::Int8(v) => *v < 0,
            Datum::Float8(v) => v.is_nan() || *v < 0.0,
            Datum::Numeric(v) => v.signum() < 0 || matches!(v, types::Numeric::NaN),
            Datum::Interval(_) => {
                types::io::compare(&value, &Datum::interval(0, 0, 0)) == std::cmp::Ordering::Less
            }
            _ => false,
        };
        if negative && frame.mode == FrameMode::Range {
            return Err(err!(
                INVALID_PRECEDING_OR_FOLLOWING_SIZE,
                "invalid preceding or following size in window function"
            ));
        }
        if negative {
            return Err(err!(
                INVALID_PRECEDING_OR_FOLLOWING_SIZE,
                "frame {word} offset must not be negative"
            ));
        }
        Ok(value)
    };
    Ok(Offsets { start: one(&frame.start, "starting")?, end: one(&frame.end, "ending")? })
}

/// Where each row's frame begins and ends.
struct Bounds {
    first: Vec<u32>,
    end: Vec<u32>,
    exclude: Exclude,
}

impl Bounds {
    fn new(
        frame: &Frame,
        offsets: &Offsets,
        order: &[SortKey],
        part: &Partition,
        run: &mut Run<'_, '_>,
    ) -> Result<Bounds> {
        let keys = RangeKeys::new(frame, order, part, run)?;
        let mut bounds = Bounds {
            first: Vec::with_capacity(part.len()),
            end: Vec::with_capacity(part.len()),
            exclude: frame.exclude,
        };
        for row in 0..part.len() {
            let first = edge(frame, &frame.start, &offsets.start, false, row, part, &keys, run)?;
            let end = edge(frame, &frame.end, &offsets.end, true, row, part, &keys, run)?;
            bounds.first.push(first as u32);
            bounds.end.push(end.max(first) as u32);
        }
        Ok(bounds)
    }

    fn of(&self, row: usize) -> (usize, usize) {
        (self.first[row] as usize, self.end[row] as usize)
    }

    /// Whether EXCLUDE leaves row `at` in the frame of `row`.
    fn keeps(&self, part: &Partition, row: usize, at: usize) -> bool {
        match self.exclude {
            Exclude::Nothing => true,
            Exclude::Current => at != row,
            Exclude::Group => part.group[at] != part.group[row],
            Exclude::Ties => at == row || part.group[at] != part.group[row],
        }
    }
}

/// One edge of a row's frame: its first row, or the row behind its last one.
#[allow(clippy::too_many_arguments)]
fn edge(
    frame: &Frame,
    bound: &FrameBound,
    offset: &Datum,
    end: bool,
    row: usize,
    part: &Partition,
    keys: &RangeKeys,
    run: &mut Run<'_, '_>,
) -> Result<usize> {
    let count = part.len();
    let size = match offset {
        Datum::Int8(v) => usize::try_from(*v).unwrap_or(usize::MAX),
        _ => 0,
    };
    let group = part.group[row] as usize;
    let after = usize::from(end);
    Ok(match (bound, frame.mode) {
        (FrameBound::First, _) => 0,
        (FrameBound::Last, _) => count,
        (FrameBound::Current, FrameMode::Rows) => row + after,
        (FrameBound::Current, _) => part.start_of(group + after),
        (FrameBound::Preceding(_), FrameMode::Rows) => (row + after).saturating_sub(size),
        (FrameBound::Following(_), FrameMode::Rows) => {
            row.saturating_add(size).saturating_add(after).min(count)
        }
        (FrameBound::Preceding(_), FrameMode::Groups) => match (group + after).checked_sub(size) {
            Some(group) => part.start_of(group),
            None => 0,
        },
        (FrameBound::Following(_), FrameMode::Groups) => {
            part.start_of(group.saturating_add(size).saturating_add(after))
        }
        (FrameBound::Preceding(_), FrameMode::Range) => {
            keys.seek(frame, offset, true, end, row, part, run)?
        }
        (FrameBound::Following(_), FrameMode::Range) => {
            keys.seek(frame, offset, false, end, row, part, run)?
        }
    })
}

/// The ORDER BY values for RANGE with an offset; NULLs stand at one end.
struct RangeKeys {
    values: Vec<Datum>,
    /// Rows that aren't NULL.
    first: usize,
    end: usize,
    descending: bool,
}

impl RangeKeys {
    fn new(
        frame: &Frame,
        order: &[SortKey],
        part: &Partition,
        run: &mut Run<'_, '_>,
    ) -> Result<RangeKeys> {
        let mut values = Vec::new();
        if let Some(range) = &frame.range {
            for row in 0..part.len() {
                values.push(eval::eval(&range.key, part.row(row), run)?);
            }
        }
        let first = values.iter().position(|v| !v.is_null()).unwrap_or(values.len());
        let end = values.iter().rposition(|v| !v.is_null()).map_or(first, |n| n + 1);
        let descending = order.first().is_some_and(|k| k.descending);
        Ok(RangeKeys { values, first, end, descending })
    }

    /// The edge of the rows whose value is at most `offset` away.
    #[allow(clippy::too_many_arguments)]
    fn seek(
        &self,
        frame: &Frame,
        offset: &Datum,
        preceding: bool,
        end: bool,
        row: usize,
        part: &Partition,
        run: &mut Run<'_, '_>,
    ) -> Result<usize> {
        let own = &self.values[row];
        if own.is_null() {
            let (first, last) = part.peers(row);
            return Ok(if end { last } else { first });
        }
        let minus = preceding != self.descending;
        let limit = shifted(frame, own, offset, minus, run)?;
        let among = &self.values[self.first..self.end];
        let before = |value: &Datum| {
            let order = types::io::compare(value, &limit);
            let order = if self.descending { order.reverse() } else { order };
            if end { order.is_le() } else { order.is_lt() }
        };
        Ok(self.first + among.partition_point(before))
    }
}

/// A value moved by an offset. Integers stop at their limits.
fn shifted(
    frame: &Frame,
    value: &Datum,
    offset: &Datum,
    minus: bool,
    run: &mut Run<'_, '_>,
) -> Result<Datum> {
    match (value, offset) {
        (Datum::Int8(v), Datum::Int8(o)) if minus => Ok(Datum::Int8(v.saturating_sub(*o))),
        (Datum::Int8(v), Datum::Int8(o)) => Ok(Datum::Int8(v.saturating_add(*o))),
        (Datum::Float8(v), Datum::Float8(o)) => {
            Ok(Datum::Float8(if minus { v - o } else { v + o }))
        }
        _ => {
            let range = frame.range.as_ref();
            let function = range.and_then(|r| if minus { r.minus } else { r.plus });
            let function =
                function.ok_or_else(|| base::Error::internal("RANGE has no arithmetic"))?;
            eval::apply(function, &[value.clone(), offset.clone()], run)
        }
    }
}

/// A call's values for all rows of a partition, one after the other: an error is the one of the row behind those
/// whose values are there.
fn column(
    call: &WindowCall,
    part: &Partition,
    bounds: &Bounds,
    out: &mut Column,
    run: &mut Run<'_, '_>,
) -> Result<()> {
    let kind = match &call.function {
        WindowFunction::Aggregate(agg) => {
            return aggregate(agg, &call.frame, part, bounds, out, run);
        }
        WindowFunction::Own(row) => row.kind,
    };
    let count = part.len();
    if kind == WindowKind::Ntile {
        return ntile(call, part, out, run);
    }
    for row in 0..count {
        now_and_then(row)?;
        let (first, end) = part.peers(row);
        out.push(match kind {
            WindowKind::RowNumber => Datum::Int8(row as i64 + 1),
            WindowKind::Rank => Datum::Int8(first as i64 + 1),
            WindowKind::DenseRank => Datum::Int8(i64::from(part.group[row]) + 1),
            WindowKind::PercentRank if count <= 1 => Datum::Float8(0.0),
            WindowKind::PercentRank => Datum::Float8(first as f64 / (count - 1) as f64),
            WindowKind::CumeDist => Datum::Float8(end as f64 / count as f64),
            WindowKind::Lag | WindowKind::Lead => {
                neighbour(call, kind == WindowKind::Lead, row, part, run)?
            }
            _ => of_frame(call, kind, row, part, bounds, run)?,
        })?;
    }
    Ok(())
}

fn ntile(
    call: &WindowCall,
    part: &Partition,
    out: &mut Column,
    run: &mut Run<'_, '_>,
) -> Result<()> {
    let buckets = match eval::eval(&call.args[0], part.row(0), run)? {
        Datum::Int4(n) if n > 0 => n as usize,
        Datum::Int4(_) => {
            return Err(err!(
                INVALID_ARGUMENT_FOR_NTILE,
                "argument of ntile must be greater than zero"
            ));
        }
        _ => {
            (0..part.len()).for_each(|_| out.push_null());
            return Ok(());
        }
    };
    let (size, larger) = (part.len() / buckets, part.len() % buckets);
    let border = larger * (size + 1);
    for row in 0..part.len() {
        let bucket = match row.checked_sub(border) {
            None => row / (size + 1),
            Some(beyond) => larger + beyond / size.max(1),
        };
        out.push(Datum::Int4(bucket as i32 + 1))?;
    }
    Ok(())
}

/// `lag` and `lead`.
fn neighbour(
    call: &WindowCall,
    lead: bool,
    row: usize,
    part: &Partition,
    run: &mut Run<'_, '_>,
) -> Result<Datum> {
    let offset = match call.args.get(1) {
        None => 1,
        Some(expr) => match eval::eval(expr, part.row(row), run)? {
            Datum::Int4(n) => i64::from(n),
            _ => return Ok(Datum::Null),
        },
    };
    let at = if lead { row as i64 + offset } else { row as i64 - offset };
    match usize::try_from(at).ok().filter(|at| *at < part.len()) {
        Some(at) => eval::eval(&call.args[0], part.row(at), run),
        None => match call.args.get(2) {
            Some(default) => eval::eval(default, part.row(row), run),
            None => Ok(Datum::Null),
        },
    }
}

/// `first_value`, `last_value`, `nth_value`.
fn of_frame(
    call: &WindowCall,
    kind: WindowKind,
    row: usize,
    part: &Partition,
    bounds: &Bounds,
    run: &mut Run<'_, '_>,
) -> Result<Datum> {
    let (first, end) = bounds.of(row);
    let mut kept = (first..end).filter(|at| bounds.keeps(part, row, *at));
    let at = match kind {
        WindowKind::FirstValue => kept.next(),
        WindowKind::LastValue => kept.next_back(),
        _ => match eval::eval(&call.args[1], part.row(row), run)? {
            Datum::Int4(n) if n > 0 && bounds.exclude == Exclude::Nothing => {
                Some(first + n as usize - 1).filter(|at| *at < end)
            }
            Datum::Int4(n) if n > 0 => kept.nth(n as usize - 1),
            Datum::Int4(_) => {
                return Err(err!(
                    INVALID_ARGUMENT_FOR_NTH_VALUE,
                    "argument of nth_value must be greater than zero"
                ));
            }
            _ => None,
        },
    };
    match at {
        Some(at) => eval::eval(&call.args[0], part.row(at), run),
        None => Ok(Datum::Null),
    }
}

/// Looks for interrupts at every thousandth row or so.
fn now_and_then(row: usize) -> Result<()> {
    if row.is_multiple_of(1024) { sched::check_interrupts_now() } else { Ok(()) }
}

/// An aggregate over each row's frame.
fn aggregate(
    call: &AggCall,
    frame: &Frame,
    part: &Partition,
    bounds: &Bounds,
    out: &mut Column,
    run: &mut Run<'_, '_>,
) -> Result<()> {
    if bounds.exclude != Exclude::Nothing {
        for row in 0..part.len() {
            sched::check_interrupts()?;
            let mut state = AggState::new(call);
            let (first, end) = bounds.of(row);
            for at in (first..end).filter(|at| bounds.keeps(part, row, *at)) {
                now_and_then(at)?;
                state.add(call, part.row(at), run)?;
            }
            out.push(state.finish(call, run)?)?;
        }
        return Ok(());
    }
    if let Some(steps) = moving_steps(call, frame) {
        return own_moving(call, steps, part, bounds, out, run);
    }
    let moves = bounds.first.windows(2).any(|w| w[0] != w[1]);
    if moves && call.own.is_none() && Moving::can(call) {
        return moving(call, part, bounds, out, run);
    }
    let mut state = AggState::new(call);
    let (mut begin, mut upto) = (0, 0);
    let mut value = None;
    for row in 0..part.len() {
        sched::check_interrupts()?;
        let (first, end) = bounds.of(row);
        if first != begin || end < upto || value.is_none() {
            state = AggState::new(call);
            (begin, upto, value) = (first, first, None);
        }
        if end > upto {
            for at in upto..end {
                now_and_then(at)?;
                state.add(call, part.row(at), run)?;
            }
            (upto, value) = (end, None);
        }
        let value = match &value {
            Some(value) => Datum::clone(value),
            None => value.insert(state.finish(call, run)?).clone(),
        };
        out.push(value)?;
    }
    Ok(())
}

/// How a user's aggregate gives rows back, if it can and the frame's beginning may move.
fn moving_steps<'c>(call: &'c AggCall, frame: &Frame) -> Option<&'c OwnSteps> {
    let moving = call.own.as_ref()?.moving.as_ref()?;
    let mut volatile = false;
    call.for_exprs(&mut |e| volatile |= sql::walk::is_volatile(e));
    (!volatile && !matches!(frame.start, FrameBound::First)).then_some(moving)
}

/// A user's aggregate over a frame that moves.
fn own_moving(
    call: &AggCall,
    steps: &OwnSteps,
    part: &Partition,
    bounds: &Bounds,
    out: &mut Column,
    run: &mut Run<'_, '_>,
) -> Result<()> {
    // Of the rows in the frame, those that the filter keeps.
    let mut rows: Vec<Option<Vec<Datum>>> = vec![None; part.len()];
    let mut state = OwnState::new(steps);
    let (mut begin, mut upto) = (0, 0);
    for row in 0..part.len() {
        now_and_then(row)?;
        let (first, end) = bounds.of(row);
        let mut fresh = first < begin || end < upto || first >= upto;
        while !fresh && begin < first {
            if let Some(values) = &rows[begin].take() {
                fresh = !state.take_back(steps, values, run)?;
            }
            begin += 1;
        }
        if fresh {
            state = OwnState::new(steps);
            upto = first;
        }
        for at in upto..end {
            now_and_then(at)?;
            let kept = match &call.filter {
                Some(filter) => eval::holds(filter, part.row(at), run)?,
                None => true,
            };
            if kept {
                let values = rows[at].insert(eval::eval_all(&call.args, part.row(at), run)?);
                state.add_moving(steps, values, run)?;
            }
        }
        (begin, upto) = (first, end);
        out.push(state.finish(call, steps, run)?)?;
    }
    Ok(())
}

/// A sum and a count of integers, which give back what they took.
struct Moving {
    count: i64,
    sum: i128,
}

impl Moving {
    fn can(call: &AggCall) -> bool {
        let integers = matches!(call.aggregate.args, [oids::INT2 | oids::INT4 | oids::INT8]);
        match call.aggregate.name {
            "count" => true,
            "sum" | "avg" => integers,
            _ => false,
        }
    }

    /// What a row counts for; None when it doesn't.
    fn part_of(call: &AggCall, row: Row<'_>, run: &mut Run<'_, '_>) -> Result<Option<i128>> {
        if let Some(filter) = &call.filter
            && !eval::holds(filter, row, run)?
        {
            return Ok(None);
        }
        let Some(arg) = call.args.first() else { return Ok(Some(0)) };
        Ok(match eval::eval(arg, row, run)? {
            Datum::Null => None,
            value => Some(value.to_i64().map_or(0, i128::from)),
        })
    }

    fn finish(&self, call: &AggCall) -> Result<Datum> {
        use types::Numeric;
        if call.aggregate.name == "count" {
            return Ok(Datum::Int8(self.count));
        }
        if self.count == 0 {
            return Ok(Datum::Null);
        }
        if call.aggregate.name == "avg" {
            let sum = Numeric::from_i128(self.sum, 0);
            return sum.div(&Numeric::from(self.count)).map(Into::into);
        }
        if call.ty == oids::NUMERIC {
            return Ok(Numeric::from_i128(self.sum, 0).into());
        }
        let sum = i64::try_from(self.sum);
        sum.map(Datum::Int8).map_err(|_| err!(NUMERIC_VALUE_OUT_OF_RANGE, "bigint out of range"))
    }
}

fn moving(
    call: &AggCall,
    part: &Partition,
    bounds: &Bounds,
    out: &mut Column,
    run: &mut Run<'_, '_>,
) -> Result<()> {
    // Of the rows in the frame, what they count for.
    let mut parts: Vec<Option<i128>> = vec![None; part.len()];
    let mut state = Moving { count: 0, sum: 0 };
    let (mut begin, mut upto) = (0, 0);
    for row in 0..part.len() {
        let (first, end) = bounds.of(row);
        if first < begin || end < upto || first >= upto {
            state = Moving { count: 0, sum: 0 };
            (begin, upto) = (first, first);
        }
        for at in upto..end {
            now_and_then(at)?;
            parts[at] = Moving::part_of(call, part.row(at), run)?;
            if let Some(value) = parts[at] {
                state.count += 1;
                state.sum += value;
            }
        }
        for value in parts[begin..first].iter().flatten() {
            state.count -= 1;
            state.sum -= value;
        }
        (begin, upto) = (first, end);
        out.push(state.finish(call)?)?;
    }
    Ok(())
}
