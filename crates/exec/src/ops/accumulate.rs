//! One aggregate's state over one group of rows, or over a window's frame.

use std::borrow::Cow;

use base::{Oid, Result};
use sql::{AggCall, Expr, walk};
use types::batch::Vector;
use types::func::Accumulator;
use types::func::aggregate::NumericSum;
use types::{Batch, Column, Datum, oids};

use super::grouping::{Groups, RowSet, hash_columns};
use super::ordered_set;
use super::own_aggregate::{self, OwnState};
use super::sort::encode;
use crate::eval;
use crate::rows::{self, Row};
use crate::run::Run;
use crate::vector;

/// One aggregate's state in one group.
pub enum AggState {
    /// `count(*)` and `count(x)` without more.
    Count(i64),
    /// `sum` of int2 and int4: an int8, NULL before the first value.
    Sum(Option<i64>),
    /// `sum` and `avg` of numerics: which of them the call says.
    Numeric(NumericSum),
    /// `min` and `max` of integers and dates.
    Extreme {
        /// `max`.
        max: bool,
        /// So far.
        best: Option<i64>,
    },
    /// Anything else.
    Plain(Box<dyn Accumulator>),
    /// DISTINCT, where the order is nothing to the aggregate: the different values, none before the first.
    Distinct(Option<Box<Groups>>),
    /// DISTINCT or ORDER BY: the arguments are kept until the end.
    HeldArguments(Box<HeldArguments>),
    /// WITHIN GROUP.
    Ordered(Box<ordered_set::OrderedSetState>),
    /// A user's aggregate.
    Own(Box<OwnState>),
}

// There may be one for each of millions of groups.
const _: () = assert!(size_of::<AggState>() <= 48);

/// Arguments that are kept.
pub struct HeldArguments {
    /// Distinct ones.
    seen: Option<RowSet>,
    /// (sort key, arguments).
    rows: Vec<(Vec<u8>, Vec<Datum>)>,
}

impl AggState {
    /// Before the first row.
    pub fn new(call: &AggCall) -> AggState {
        let own = own_aggregate::steps(call);
        if call.direct.is_some() && own.is_none() {
            return AggState::Ordered(Box::default());
        }
        if is_of_a_set(call) {
            return AggState::Distinct(None);
        }
        if call.distinct || !call.order.is_empty() && call.direct.is_none() {
            let seen = call.distinct.then(RowSet::default);
            return AggState::HeldArguments(Box::new(HeldArguments { seen, rows: vec![] }));
        }
        if let Some(steps) = own {
            return AggState::Own(Box::new(OwnState::new(steps)));
        }
        if call.aggregate.name == "count" {
            return AggState::Count(0);
        }
        let integer = match call.aggregate.args {
            [oids::INT2 | oids::INT4] => 4,
            [oids::INT8 | oids::DATE] => 8,
            _ => 0,
        };
        match call.aggregate.name {
            "sum" | "avg" if *call.aggregate.args == [oids::NUMERIC] => {
                AggState::Numeric(NumericSum::default())
            }
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
            (AggState::Own(state), _) => {
                if let Some(steps) = own_aggregate::steps(call) {
                    state.add(call, steps, row, run)?;
                }
            }
            (AggState::Distinct(values), [arg]) => {
                sched::check_interrupts()?;
                let mut column = Column::new(arg.ty());
                column.push(eval::eval(arg, row, run)?)?;
                let key = [Cow::Borrowed(&column)];
                add_distinct(values, arg.ty(), hash_columns(&key, 1)[0], &key, 0)?;
            }
            (AggState::Count(n), []) => *n += 1,
            (AggState::Count(n), [arg]) => *n += i64::from(!eval::eval(arg, row, run)?.is_null()),
            (state @ (AggState::Sum(_) | AggState::Extreme { .. }), [arg]) => {
                match eval::eval(arg, row, run)? {
                    Datum::Int2(v) => state.add_integer(i64::from(v))?,
                    Datum::Int4(v) | Datum::Date(v) => state.add_integer(i64::from(v))?,
                    Datum::Int8(v) => state.add_integer(v)?,
                    _ => {}
                }
            }
            (AggState::Numeric(sum), [arg]) => {
                if let Datum::Numeric(n) = eval::eval(arg, row, run)? {
                    sum.add(&n);
                }
            }
            (AggState::Plain(state), [arg]) => {
                sched::check_interrupts()?;
                let value = eval::eval(arg, row, run)?;
                if !(call.aggregate.strict && value.is_null()) {
                    state.add(&[value])?;
                }
            }
            (state, args) => {
                sched::check_interrupts()?;
                let values = eval::eval_all(args, row, run)?;
                let strict = own_aggregate::steps(call).map_or(call.aggregate.strict, |s| s.strict);
                if strict && values.iter().any(Datum::is_null) {
                    return Ok(());
                }
                match state {
                    AggState::Count(n) => *n += 1,
                    AggState::Sum(_)
                    | AggState::Numeric(_)
                    | AggState::Extreme { .. }
                    | AggState::Distinct(_)
                    | AggState::Own(_)
                    | AggState::Ordered(_) => {}
                    AggState::Plain(state) => state.add(&values)?,
                    AggState::HeldArguments(kept) => {
                        let HeldArguments { seen, rows } = &mut **kept;
                        if seen.as_mut().is_some_and(|s| !s.insert(&values).1) {
                            return Ok(());
                        }
                        let mut key = Vec::new();
                        for sort in &call.order {
                            // A key that is an argument, too, is computed once.
                            let same = |arg: &sql::Expr| sql::walk::same(arg, &sort.expr);
                            let value = match call.args.iter().position(same) {
                                Some(n) => values[n].clone(),
                                None => eval::eval(&sort.expr, row, run)?,
                            };
                            encode(sort, &value, &mut key)?;
                        }
                        rows.push((key, values));
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds another thread's state of the same call.
    ///
    /// # Errors
    /// The aggregate's.
    pub fn merge(&mut self, other: AggState, call: &AggCall, run: &mut Run<'_, '_>) -> Result<()> {
        match (self, other) {
            (AggState::Own(state), AggState::Own(other)) => {
                if let Some(steps) = own_aggregate::steps(call) {
                    state.merge(*other, steps, run)?;
                }
            }
            (AggState::Count(n), AggState::Count(m)) => *n += m,
            (state @ AggState::Sum(_), AggState::Sum(Some(v)))
            | (state @ AggState::Extreme { .. }, AggState::Extreme { best: Some(v), .. }) => {
                state.add_integer(v)?;
            }
            (AggState::Sum(_), AggState::Sum(None))
            | (AggState::Extreme { .. }, AggState::Extreme { best: None, .. }) => {}
            (AggState::Numeric(sum), AggState::Numeric(other)) => sum.merge(&other),
            (AggState::Plain(state), AggState::Plain(other)) => state.merge(other)?,
            _ => return Err(base::Error::internal("aggregate states that can't be merged")),
        }
        Ok(())
    }

    /// The result so far.
    ///
    /// # Errors
    /// The aggregate's.
    pub fn finish(&mut self, call: &AggCall, run: &mut Run<'_, '_>) -> Result<Datum> {
        // Values know their natural type only, arrays of them have the call's.
        match self.result(call, run)? {
            array @ Datum::Array(_) => Ok(match types::TypeIo::array_element(call.ty) {
                Some(element) => types::func::with_element(array, element),
                None => array,
            }),
            value => Ok(value),
        }
    }

    fn result(&mut self, call: &AggCall, run: &mut Run<'_, '_>) -> Result<Datum> {
        match self {
            AggState::Count(n) => Ok(Datum::Int8(*n)),
            AggState::Sum(sum) => Ok(sum.map_or(Datum::Null, Datum::Int8)),
            AggState::Numeric(sum) => sum.finish(call.aggregate.name == "avg"),
            AggState::Extreme { best, .. } => Ok(match (*best, call.ty) {
                (None, _) => Datum::Null,
                (Some(v), oids::INT2) => Datum::Int2(v as i16),
                (Some(v), oids::INT4) => Datum::Int4(v as i32),
                (Some(v), oids::DATE) => Datum::Date(v as i32),
                (Some(v), _) => Datum::Int8(v),
            }),
            AggState::Distinct(None) => (call.aggregate.start)().finish(),
            AggState::Distinct(Some(values)) if call.aggregate.name == "count" => {
                Ok(Datum::Int8(values.len() as i64))
            }
            AggState::Distinct(Some(values)) => {
                let ty = call.args.first().map_or(Oid::INVALID, Expr::ty);
                let mut state = (call.aggregate.start)();
                for row in 0..values.len() {
                    state.add(&[values.columns[0].get(row, ty)])?;
                }
                state.finish()
            }
            AggState::Plain(state) => state.finish(),
            AggState::Ordered(state) => state.finish(call),
            AggState::Own(state) => match own_aggregate::steps(call) {
                Some(steps) => state.finish(call, steps, run),
                None => Ok(Datum::Null),
            },
            AggState::HeldArguments(kept) => {
                let rows = &mut kept.rows;
                rows.sort_by(sched::unhurried(|a: &(Vec<u8>, _), b: &(Vec<u8>, _)| a.0.cmp(&b.0)));
                if let Some(steps) = own_aggregate::steps(call) {
                    let mut state = OwnState::new(steps);
                    rows.iter().try_for_each(|(_, v)| state.add_values(steps, v, run))?;
                    return state.finish(call, steps, run);
                }
                let mut state = (call.aggregate.start)();
                rows.iter().try_for_each(|(_, values)| state.add(values))?;
                state.finish()
            }
        }
    }
}

/// Whether a call is about different values, in any order.
fn is_of_a_set(call: &AggCall) -> bool {
    let plain = call.own.is_none() && call.direct.is_none() && call.order.is_empty();
    call.distinct && plain && call.aggregate.strict && call.args.len() == 1
}

/// Adds the value of a row, if it is not there and not NULL.
fn add_distinct(
    values: &mut Option<Box<Groups>>,
    ty: Oid,
    hash: u64,
    key: &[Cow<'_, Column>; 1],
    row: usize,
) -> Result<()> {
    if key[0].is_null(row) {
        return Ok(());
    }
    let values = match values {
        Some(values) => values,
        none => none.insert(Box::new(Groups::new(std::iter::once(ty)))),
    };
    if values.find(hash, key, row).is_none() {
        values.add(hash, key, row)?;
    }
    Ok(())
}

/// Whether the calls may be computed one after the other, each over a whole batch: what is volatile
/// in them must be evaluated row by row.
pub fn by_column(aggs: &[AggCall]) -> bool {
    // What users' functions do may be seen: they run row by row.
    let mut plain = aggs.iter().all(|call| call.own.is_none());
    for call in aggs {
        call.for_exprs(&mut |e| plain &= !walk::is_volatile(e));
    }
    plain
}

/// Adds a batch to the states of one call: `states` holds `width` states for each group, of which
/// the call's is number `place`; `groups` says each row's group.
///
/// # Errors
/// The arguments', the aggregate's.
pub fn add_batch(
    states: &mut [AggState],
    (width, place): (usize, usize),
    groups: &[u32],
    call: &AggCall,
    batch: &Batch,
    run: &mut Run<'_, '_>,
) -> Result<()> {
    if let Some(filter) = &call.filter
        && let Some(kept) = vector::select(filter, batch, run)?
    {
        let groups: Vec<u32> = kept.iter().map(|row| groups[*row as usize]).collect();
        let (batch, call) = (rows::take(batch, &kept), AggCall { filter: None, ..call.clone() });
        return add_batch(states, (width, place), &groups, &call, &batch, run);
    }
    macro_rules! at {
        ($row:expr) => {
            &mut states[groups[$row] as usize * width + place]
        };
    }
    match (AggState::new(call), &call.args[..]) {
        (AggState::Count(_), []) => {
            for group in groups {
                if let AggState::Count(n) = &mut states[*group as usize * width + place] {
                    *n += 1;
                }
            }
        }
        (AggState::Count(_), [arg]) => {
            let column = vector::values(arg, batch, run)?.filled(arg.ty(), batch.rows)?;
            for row in 0..batch.rows {
                if let (AggState::Count(n), false) = (at!(row), column.is_null(row)) {
                    *n += 1;
                }
            }
        }
        (AggState::Sum(_) | AggState::Extreme { .. }, [arg]) => {
            let column = vector::values(arg, batch, run)?.filled(arg.ty(), batch.rows)?;
            for_integers(&column, &mut |row, value| (at!(row)).add_integer(value))?;
        }
        (AggState::Numeric(_), [arg]) => {
            let column = vector::values(arg, batch, run)?.filled(arg.ty(), batch.rows)?;
            if let (Vector::Numeric(values, scale), true) = (&column.data, column.nulls.is_empty())
            {
                for (value, group) in values.iter().zip(groups) {
                    let state = &mut states[*group as usize * width + place];
                    if let AggState::Numeric(sum) = state {
                        sum.add_digits(*value, *scale);
                    }
                }
                return Ok(());
            }
            for row in 0..batch.rows {
                let AggState::Numeric(sum) = at!(row) else { continue };
                match &column.data {
                    _ if column.is_null(row) => {}
                    Vector::Numeric(v, scale) => sum.add_digits(v[row], *scale),
                    _ => {
                        if let Datum::Numeric(n) = column.get(row, oids::NUMERIC) {
                            sum.add(&n);
                        }
                    }
                }
            }
        }
        (AggState::Distinct(_), [arg]) => {
            let column = vector::values(arg, batch, run)?.filled(arg.ty(), batch.rows)?;
            let key = [Cow::Borrowed(&*column)];
            for (row, hash) in hash_columns(&key, batch.rows).into_iter().enumerate() {
                if let AggState::Distinct(values) = at!(row) {
                    add_distinct(values, arg.ty(), hash, &key, row)?;
                }
            }
        }
        (AggState::Plain(_), [arg]) => {
            let column = vector::values(arg, batch, run)?.filled(arg.ty(), batch.rows)?;
            for row in 0..batch.rows {
                let value = column.get(row, arg.ty());
                if let (AggState::Plain(state), false) =
                    (at!(row), call.aggregate.strict && value.is_null())
                {
                    state.add(&[value])?;
                }
            }
        }
        _ => {
            for row in 0..batch.rows {
                (at!(row)).add(call, Row::Batch(batch, row), run)?;
            }
        }
    }
    Ok(())
}

/// Calls `f` with each integer (or date) of a column that isn't NULL.
fn for_integers(column: &Column, f: &mut dyn FnMut(usize, i64) -> Result<()>) -> Result<()> {
    for row in 0..column.len() {
        if column.is_null(row) {
            continue;
        }
        match &column.data {
            Vector::Int2(v) => f(row, v[row].into())?,
            Vector::Int4(v) => f(row, v[row].into())?,
            Vector::Int8(v) => f(row, v[row])?,
            _ => {}
        }
    }
    Ok(())
}

/// The smallest or largest integer of a column without NULLs; None of no rows and other columns.
fn extreme(column: &Column, max: bool) -> Option<i64> {
    fn of<T: Copy + Ord + Into<i64>>(values: &[T], max: bool) -> Option<i64> {
        let best = if max { values.iter().max() } else { values.iter().min() };
        best.map(|v| (*v).into())
    }
    match &column.data {
        _ if !column.nulls.is_empty() => None,
        Vector::Int2(v) => of(v, max),
        Vector::Int4(v) => of(v, max),
        Vector::Int8(v) => of(v, max),
        _ => None,
    }
}

/// Adds a whole batch to one state.
///
/// # Errors
/// The arguments', the aggregate's.
pub fn add_whole(
    state: &mut AggState,
    call: &AggCall,
    batch: &Batch,
    run: &mut Run<'_, '_>,
) -> Result<()> {
    match (&mut *state, &call.args[..]) {
        _ if call.filter.is_some() => {}
        (AggState::Count(n), []) => {
            *n += batch.rows as i64;
            return Ok(());
        }
        (AggState::Numeric(sum), [arg]) => {
            let column = vector::values(arg, batch, run)?.filled(arg.ty(), batch.rows)?;
            sum.add_column(&column);
            return Ok(());
        }
        (AggState::Sum(sum), [arg]) => {
            let column = vector::values(arg, batch, run)?.filled(arg.ty(), batch.rows)?;
            if let (Vector::Int4(values), true) = (&column.data, column.nulls.is_empty())
                && !values.is_empty()
            {
                // 2^31 values of 32 bits fit 64.
                let total: i64 = values.iter().map(|v| i64::from(*v)).sum();
                let total = sum.unwrap_or(0).checked_add(total);
                *sum = Some(total.ok_or_else(|| {
                    base::err!(NUMERIC_VALUE_OUT_OF_RANGE, "bigint out of range")
                })?);
                return Ok(());
            }
            return for_integers(&column, &mut |_, value| state.add_integer(value));
        }
        (AggState::Extreme { max, .. }, [arg]) => {
            let column = vector::values(arg, batch, run)?.filled(arg.ty(), batch.rows)?;
            return match extreme(&column, *max) {
                Some(best) => state.add_integer(best),
                None => for_integers(&column, &mut |_, value| state.add_integer(value)),
            };
        }
        _ => {}
    }
    let groups = vec![0; batch.rows];
    add_batch(std::slice::from_mut(state), (1, 0), &groups, call, batch, run)
}
