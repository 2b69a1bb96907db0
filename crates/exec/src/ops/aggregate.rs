//! Groups and aggregates: output is group values, then aggregates.

use base::Result;
use sched::memory::Use;
use sql::plan::Node;
use sql::{AggCall, Plan};
use types::batch::{BATCH_ROWS, Vector};
use types::func::Accumulator;
use types::{Batch, Datum, oids};

use super::grouping::{RowSet, same};
use super::sort::encode;
use super::{Operator, wrong_node};
use crate::eval;
use crate::rows::{self, Row};
use crate::run::Run;

/// See the module's documentation.
pub struct Aggregate {
    input: Box<dyn Operator>,
    /// Groups in the order of their coming.
    groups: RowSet,
    /// States, one for each aggregate of each group.
    states: Vec<AggState>,
    /// Sorted input: the group in the making.
    current: Option<(Vec<Datum>, Vec<AggState>)>,
    loaded: bool,
    next: usize,
}

/// One aggregate's state in one group.
enum AggState {
    /// `count(*)` and `count(x)` without more.
    Count(i64),
    /// `sum` of int2 and int4: an int8, NULL before the first value.
    Sum(Option<i64>),
    /// `min` and `max` of integers.
    Extreme {
        /// `max`.
        max: bool,
        /// So far.
        best: Option<i64>,
    },
    /// Anything else.
    Plain(Box<dyn Accumulator>),
    /// DISTINCT or ORDER BY: the arguments are kept until the end.
    Kept {
        /// Distinct arguments.
        seen: Option<RowSet>,
        /// (sort key, arguments).
        rows: Vec<(Vec<u8>, Vec<Datum>)>,
    },
}

impl AggState {
    fn new(call: &AggCall) -> AggState {
        if call.distinct || !call.order.is_empty() {
            return AggState::Kept { seen: call.distinct.then(RowSet::default), rows: vec![] };
        }
        if call.aggregate.name == "count" {
            return AggState::Count(0);
        }
        let integer = match call.aggregate.args {
            [oids::INT2 | oids::INT4] => 4,
            [oids::INT8] => 8,
            _ => 0,
        };
        match call.aggregate.name {
            "sum" if integer == 4 => AggState::Sum(None),
            "min" | "max" if integer > 0 => {
                AggState::Extreme { max: call.aggregate.name == "max", best: None }
            }
            _ => AggState::Plain((call.aggregate.start)()),
        }
    }

    /// Adds an integer to a state that is about integers.
    #[inline]
    fn add_integer(&mut self, value: i64) -> Result<()> {
        match self {
            AggState::Sum(sum) => {
                let total = sum.unwrap_or(0).checked_add(value);
                *sum = Some(total.ok_or_else(|| {
                    base::err!(NUMERIC_VALUE_OUT_OF_RANGE, "bigint out of range")
                })?);
            }
            AggState::Extreme { max, best } => {
                *best = Some(match *best {
                    Some(b) if *max => b.max(value),
                    Some(b) => b.min(value),
                    None => value,
                });
            }
            _ => {}
        }
        Ok(())
    }

    fn add(&mut self, call: &AggCall, row: Row<'_>, run: &mut Run<'_, '_>) -> Result<()> {
        if let Some(filter) = &call.filter
            && !eval::holds(filter, row, run)?
        {
            return Ok(());
        }
        match (self, &call.args[..]) {
            (AggState::Count(n), []) => *n += 1,
            (AggState::Count(n), [arg]) => *n += i64::from(!eval::eval(arg, row, run)?.is_null()),
            (state @ (AggState::Sum(_) | AggState::Extreme { .. }), [arg]) => {
                match eval::eval(arg, row, run)? {
                    Datum::Int2(v) => state.add_integer(i64::from(v))?,
                    Datum::Int4(v) => state.add_integer(i64::from(v))?,
                    Datum::Int8(v) => state.add_integer(v)?,
                    _ => {}
                }
            }
            (AggState::Plain(state), [arg]) => {
                let value = eval::eval(arg, row, run)?;
                if !(call.aggregate.strict && value.is_null()) {
                    state.add(&[value])?;
                }
            }
            (state, args) => {
                let values = eval::eval_all(args, row, run)?;
                if call.aggregate.strict && values.iter().any(Datum::is_null) {
                    return Ok(());
                }
                match state {
                    AggState::Count(n) => *n += 1,
                    AggState::Sum(_) | AggState::Extreme { .. } => {}
                    AggState::Plain(state) => state.add(&values)?,
                    AggState::Kept { seen, rows } => {
                        if seen.as_mut().is_some_and(|s| !s.insert(&values).1) {
                            return Ok(());
                        }
                        let mut key = Vec::new();
                        for sort in &call.order {
                            let value = eval::eval(&sort.expr, row, run)?;
                            encode(sort, &value, &mut key)?;
                        }
                        rows.push((key, values));
                    }
                }
            }
        }
        Ok(())
    }

    fn finish(&mut self, call: &AggCall) -> Result<Datum> {
        match self {
            AggState::Count(n) => Ok(Datum::Int8(*n)),
            AggState::Sum(sum) => Ok(sum.map_or(Datum::Null, Datum::Int8)),
            AggState::Extreme { best, .. } => Ok(match (*best, call.ty) {
                (None, _) => Datum::Null,
                (Some(v), oids::INT2) => Datum::Int2(v as i16),
                (Some(v), oids::INT4) => Datum::Int4(v as i32),
                (Some(v), _) => Datum::Int8(v),
            }),
            AggState::Plain(state) => state.finish(),
            AggState::Kept { rows, .. } => {
                rows.sort_by(|a, b| a.0.cmp(&b.0));
                let mut state = (call.aggregate.start)();
                rows.iter().try_for_each(|(_, values)| state.add(values))?;
                state.finish()
            }
        }
    }
}

/// `count(*)`, and `count`, over whole batches without looking at rows.
fn add_whole(
    states: &mut [AggState],
    aggs: &[AggCall],
    batch: &Batch,
    run: &mut Run<'_, '_>,
) -> Result<()> {
    for (state, call) in states.iter_mut().zip(aggs) {
        if let AggState::Count(n) = state
            && call.filter.is_none()
        {
            match &call.args[..] {
                [] => {
                    *n += batch.rows as i64;
                    continue;
                }
                [sql::Expr::Column(c, _)] => {
                    let column = &batch.columns[usize::from(*c)];
                    let nulls = column.nulls.iter().filter(|null| **null).count();
                    *n += (batch.rows - nulls) as i64;
                    continue;
                }
                _ => {}
            }
        }
        if add_integers(state, call, batch)? {
            continue;
        }
        for row in 0..batch.rows {
            state.add(call, Row::Batch(batch, row), run)?;
        }
    }
    Ok(())
}

/// A whole column of integers at once; false when that isn't the case at hand.
fn add_integers(state: &mut AggState, call: &AggCall, batch: &Batch) -> Result<bool> {
    if !matches!(state, AggState::Sum(_) | AggState::Extreme { .. }) || call.filter.is_some() {
        return Ok(false);
    }
    let [sql::Expr::Column(c, _)] = &call.args[..] else {
        return Ok(false);
    };
    let column = &batch.columns[usize::from(*c)];
    fn each<T: Copy + Into<i64>>(state: &mut AggState, values: &[T], nulls: &[bool]) -> Result<()> {
        for (n, value) in values.iter().enumerate() {
            if nulls.is_empty() || !nulls[n] {
                state.add_integer((*value).into())?;
            }
        }
        Ok(())
    }
    match &column.data {
        Vector::Int2(v) => each(state, v, &column.nulls)?,
        Vector::Int4(v) => each(state, v, &column.nulls)?,
        Vector::Int8(v) => each(state, v, &column.nulls)?,
        _ => return Ok(false),
    }
    Ok(true)
}

fn start(aggs: &[AggCall]) -> impl Iterator<Item = AggState> + '_ {
    aggs.iter().map(AggState::new)
}

impl Aggregate {
    /// Over an input.
    pub fn new(input: Box<dyn Operator>) -> Aggregate {
        Aggregate {
            input,
            groups: RowSet::default(),
            states: vec![],
            current: None,
            loaded: false,
            next: 0,
        }
    }

    /// Reads the whole input.
    fn load(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let _memory = sched::memory::for_use(Use::Aggregate);
        let Node::Aggregate { input, groups, aggs, plain, .. } = &plan.node else {
            return Err(wrong_node());
        };
        if *plain {
            self.groups.insert(&[]);
            self.states.extend(start(aggs));
        }
        let mut key = Vec::with_capacity(groups.len());
        while let Some(batch) = self.input.next(input, run)? {
            sched::check_interrupts()?;
            if *plain {
                add_whole(&mut self.states, aggs, &batch, run)?;
                continue;
            }
            for row in 0..batch.rows {
                let row = Row::Batch(&batch, row);
                key.clear();
                for group in groups {
                    key.push(eval::eval(group, row, run)?);
                }
                let (number, new) = self.groups.insert(&key);
                if new {
                    self.states.extend(start(aggs));
                }
                let states = &mut self.states[number * aggs.len()..][..aggs.len()];
                for (state, call) in states.iter_mut().zip(aggs) {
                    state.add(call, row, run)?;
                }
            }
        }
        self.loaded = true;
        Ok(())
    }

    /// Sorted input: groups end as soon as another begins.
    fn next_sorted(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::Aggregate { input, groups, aggs, .. } = &plan.node else {
            return Err(wrong_node());
        };
        let mut out = rows::empty(&super::types(plan, run.prepared));
        while !self.loaded && out.rows == 0 {
            let Some(batch) = self.input.next(input, run)? else {
                self.loaded = true;
                break;
            };
            sched::check_interrupts()?;
            for row in 0..batch.rows {
                let row = Row::Batch(&batch, row);
                let key = eval::eval_all(groups, row, run)?;
                if self.current.as_ref().is_none_or(|(k, _)| !same(k, &key)) {
                    let fresh = (key, start(aggs).collect());
                    if let Some(done) = self.current.replace(fresh) {
                        push_group(&mut out, done, aggs)?;
                    }
                }
                if let Some((_, states)) = &mut self.current {
                    for (state, call) in states.iter_mut().zip(aggs) {
                        state.add(call, row, run)?;
                    }
                }
            }
        }
        if self.loaded
            && let Some(done) = self.current.take()
        {
            push_group(&mut out, done, aggs)?;
        }
        Ok((out.rows > 0).then_some(out))
    }
}

fn push_group(
    out: &mut Batch,
    (key, mut states): (Vec<Datum>, Vec<AggState>),
    aggs: &[AggCall],
) -> Result<()> {
    let mut values = key;
    for (state, call) in states.iter_mut().zip(aggs) {
        values.push(state.finish(call)?);
    }
    rows::push(out, values);
    Ok(())
}

impl Operator for Aggregate {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::Aggregate { aggs, plain, sorted, .. } = &plan.node else {
            return Err(wrong_node());
        };
        if *sorted && !*plain {
            return self.next_sorted(plan, run);
        }
        if !self.loaded {
            self.load(plan, run)?;
        }
        let mut out = rows::empty(&super::types(plan, run.prepared));
        let end = self.groups.len().min(self.next + BATCH_ROWS);
        for number in self.next..end {
            let mut values = self.groups.row(number).to_vec();
            for (n, call) in aggs.iter().enumerate() {
                values.push(self.states[number * aggs.len() + n].finish(call)?);
            }
            rows::push(&mut out, values);
        }
        self.next = end;
        Ok((out.rows > 0).then_some(out))
    }

    fn rescan(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let Node::Aggregate { input, .. } = &plan.node else {
            return Err(wrong_node());
        };
        self.groups = RowSet::default();
        self.states.clear();
        self.current = None;
        self.loaded = false;
        self.next = 0;
        self.input.rescan(input, run)
    }
}
