//! One aggregate's state over one group of rows, or over a window's frame.

use base::Result;
use sql::AggCall;
use types::func::Accumulator;
use types::{Datum, oids};

use super::grouping::RowSet;
use super::ordered_set;
use super::sort::encode;
use crate::eval;
use crate::rows::Row;
use crate::run::Run;

/// One aggregate's state in one group.
pub enum AggState {
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
    /// WITHIN GROUP.
    Ordered(ordered_set::State),
}

impl AggState {
    /// Before the first row.
    pub fn new(call: &AggCall) -> AggState {
        if call.direct.is_some() {
            return AggState::Ordered(ordered_set::State::default());
        }
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
    pub fn add_integer(&mut self, value: i64) -> Result<()> {
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

    /// Adds a row.
    ///
    /// # Errors
    /// The arguments', the aggregate's.
    pub fn add(&mut self, call: &AggCall, row: Row<'_>, run: &mut Run<'_, '_>) -> Result<()> {
        if let Some(filter) = &call.filter
            && !eval::holds(filter, row, run)?
        {
            return Ok(());
        }
        match (self, &call.args[..]) {
            (AggState::Ordered(state), _) => state.add(call, row, run)?,
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
                    AggState::Sum(_) | AggState::Extreme { .. } | AggState::Ordered(_) => {}
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

    /// The result so far.
    ///
    /// # Errors
    /// The aggregate's.
    pub fn finish(&mut self, call: &AggCall) -> Result<Datum> {
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
            AggState::Ordered(state) => state.finish(call),
            AggState::Kept { rows, .. } => {
                rows.sort_by(|a, b| a.0.cmp(&b.0));
                let mut state = (call.aggregate.start)();
                rows.iter().try_for_each(|(_, values)| state.add(values))?;
                state.finish()
            }
        }
    }
}
