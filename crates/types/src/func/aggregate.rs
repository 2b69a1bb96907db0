//! Aggregates: one accumulator a way of accumulating, found by name and argument types.

use std::cmp::Ordering;

use base::{Error, Oid, Result};
use num_bigint::BigInt;

use super::Accumulator;
use super::int::out_of_range;
use super::json::Gather;
use crate::batch::{Column, Vector};
use crate::bulk;
use crate::datum::{Bits, Datum, Numeric};
use crate::numeric::{POW10, pow10};
use crate::oids;
use crate::order::compare;

/// Makes a fresh state.
pub type Start = fn() -> Box<dyn Accumulator>;

/// Whether the aggregate skips NULLs, and its start.
pub(super) fn find(name: &str, args: &[Oid]) -> Option<(bool, Start)> {
    use oids::{FLOAT4, FLOAT8, INT2, INT4, INT8, NUMERIC};
    let start: Start = match (name, args) {
        ("count", []) => return Some((false, || Box::new(Count(0)))),
        ("count", [_]) => || Box::new(Count(0)),
        ("sum", [INT2 | INT4]) => || Box::new(SumInt::default()),
        ("sum", [INT8]) => || Box::new(WideInt::<false>::default()),
        ("avg", [INT2 | INT4 | INT8]) => || Box::new(WideInt::<true>::default()),
        ("sum", [NUMERIC]) => || Box::new(SumNumeric::<false>::default()),
        ("avg", [NUMERIC]) => || Box::new(SumNumeric::<true>::default()),
        ("sum", [FLOAT4]) => || Box::new(SumFloat4::default()),
        ("sum", [FLOAT8]) => || Box::new(SumFloat8::default()),
        ("avg", [FLOAT4 | FLOAT8]) => || Box::new(MeanFloat::default()),
        ("min", [crate::oids::XID8 | crate::oids::PG_LSN]) => {
            || Box::new(Extreme::<false, true>::default())
        }
        ("max", [crate::oids::XID8 | crate::oids::PG_LSN]) => {
            || Box::new(Extreme::<true, true>::default())
        }
        ("min", [_]) => || Box::new(Extreme::<false, false>::default()),
        ("max", [_]) => || Box::new(Extreme::<true, false>::default()),
        ("bool_and" | "every", _) => || Box::new(Fold::<And>::default()),
        ("bool_or", _) => || Box::new(Fold::<Or>::default()),
        ("bit_and", [INT2 | INT4 | INT8]) => || Box::new(Fold::<And>::default()),
        ("bit_or", [INT2 | INT4 | INT8]) => || Box::new(Fold::<Or>::default()),
        ("bit_xor", [INT2 | INT4 | INT8]) => || Box::new(Fold::<Xor>::default()),
        ("bit_and", [oids::BIT]) => || Box::new(FoldBits::<0>::default()),
        ("bit_or", [oids::BIT]) => || Box::new(FoldBits::<1>::default()),
        ("bit_xor", [oids::BIT]) => || Box::new(FoldBits::<2>::default()),
        ("sum", [oids::MONEY]) => || Box::new(super::money::SumMoney::default()),
        ("range_agg", _) => || Box::new(super::range::RangeAgg::default()),
        ("range_intersect_agg", _) => || Box::new(super::range::IntersectAgg::default()),
        ("json_agg" | "jsonb_agg" | "json_object_agg" | "jsonb_object_agg", _) => {
            let start: Start = match name {
                "json_agg" => Gather::start::<false, false>,
                "jsonb_agg" => Gather::start::<true, false>,
                "json_object_agg" => Gather::start::<false, true>,
                _ => Gather::start::<true, true>,
            };
            return Some((false, start));
        }
        ("string_agg", [oids::TEXT, _]) => {
            return Some((false, || Box::new(StringAgg::default())));
        }
        // The executor computes these from all rows in order.
        _ if is_ordered_set(name) => return Some((false, || Box::new(Count(0)))),
        _ => return super::statistics::find(name, args),
    };
    Some((true, start))
}

/// Whether an aggregate of this name takes WITHIN GROUP.
pub fn is_ordered_set(name: &str) -> bool {
    matches!(
        name,
        "percentile_cont"
            | "percentile_disc"
            | "mode"
            | "rank"
            | "dense_rank"
            | "percent_rank"
            | "cume_dist"
    )
}

/// Downcasts the other half of a merge.
///
/// # Errors
/// Internal, when the executor mixes states.
pub(super) fn same<T: 'static>(other: Box<dyn Accumulator>) -> Result<Box<T>> {
    other.as_any().downcast().map_err(|_| Error::internal("merge of different aggregates"))
}

/// `as_any` for an accumulator.
macro_rules! as_any {
    () => {
        fn as_any(self: Box<Self>) -> Box<dyn std::any::Any> {
            self
        }
    };
}
pub(super) use as_any;

/// Row by row, where a column isn't stored as the faster way expects it.
fn add_rows(
    to: &mut dyn Accumulator,
    columns: &[&Column],
    types: &[Oid],
    rows: usize,
) -> Result<()> {
    for row in 0..rows {
        to.add(&[columns[0].get(row, types[0])])?;
    }
    Ok(())
}

/// Sum and number of a column's integers; None when it has something else.
fn sum_integers(column: &Column) -> Option<(i128, i64)> {
    fn sum<T: Copy + Into<i64>>(values: &[T], nulls: &[bool]) -> (i128, i64) {
        if nulls.is_empty() {
            // 2^31 values of 32 bits fit 64; wider ones are summed in 128.
            let total = if size_of::<T>() < 8 {
                i128::from(values.iter().map(|v| (*v).into()).sum::<i64>())
            } else {
                values.iter().map(|v| i128::from((*v).into())).sum()
            };
            return (total, values.len() as i64);
        }
        let counted = values.iter().zip(nulls).filter(|(_, null)| !**null);
        counted.fold((0, 0), |(sum, n), (v, _)| (sum + i128::from((*v).into()), n + 1))
    }
    match &column.data {
        Vector::Int2(v) => Some(sum(v, &column.nulls)),
        Vector::Int4(v) => Some(sum(v, &column.nulls)),
        Vector::Int8(v) => Some(sum(v, &column.nulls)),
        _ => None,
    }
}

/// `count`.
struct Count(i64);

impl Accumulator for Count {
    fn add(&mut self, _args: &[Datum]) -> Result<()> {
        self.0 += 1;
        Ok(())
    }
    fn add_columns(&mut self, columns: &[&Column], _types: &[Oid], rows: usize) -> Result<()> {
        // `count(x)` counts what isn't NULL.
        let nulls = columns.first().map_or(0, |c| c.nulls.iter().filter(|n| **n).count());
        self.0 += (rows - nulls) as i64;
        Ok(())
    }
    fn merge(&mut self, other: Box<dyn Accumulator>) -> Result<()> {
        self.0 += same::<Count>(other)?.0;
        Ok(())
    }
    fn finish(&self) -> Result<Datum> {
        Ok(Datum::Int8(self.0))
    }
    as_any!();
}

/// `sum(int2)`, `sum(int4)` → int8.
#[derive(Default)]
struct SumInt(Option<i64>);

impl SumInt {
    fn plus(&mut self, v: i64) -> Result<()> {
        let sum = self.0.unwrap_or(0).checked_add(v).ok_or_else(|| out_of_range("bigint"))?;
        self.0 = Some(sum);
        Ok(())
    }
}

impl Accumulator for SumInt {
    #[inline]
    fn add(&mut self, args: &[Datum]) -> Result<()> {
        match args[0].to_i64() {
            Some(v) => self.plus(v),
            None => Ok(()),
        }
    }
    fn add_columns(&mut self, columns: &[&Column], types: &[Oid], rows: usize) -> Result<()> {
        match sum_integers(columns[0]) {
            Some((_, 0)) => Ok(()),
            Some((sum, _)) => {
                let sum = sum + i128::from(self.0.unwrap_or(0));
                self.0 = Some(i64::try_from(sum).map_err(|_| out_of_range("bigint"))?);
                Ok(())
            }
            None => add_rows(self, columns, types, rows),
        }
    }
    fn merge(&mut self, other: Box<dyn Accumulator>) -> Result<()> {
        same::<SumInt>(other)?.0.map_or(Ok(()), |v| self.plus(v))
    }
    fn finish(&self) -> Result<Datum> {
        Ok(self.0.into())
    }
    as_any!();
}

/// `sum(int8)` and `avg` of integers → numeric. 128 bits hold 2^64 int8 values.
#[derive(Default)]
struct WideInt<const MEAN: bool> {
    sum: i128,
    count: i64,
}

impl<const MEAN: bool> Accumulator for WideInt<MEAN> {
    #[inline]
    fn add(&mut self, args: &[Datum]) -> Result<()> {
        if let Some(v) = args[0].to_i64() {
            self.sum += i128::from(v);
            self.count += 1;
        }
        Ok(())
    }
    fn add_columns(&mut self, columns: &[&Column], types: &[Oid], rows: usize) -> Result<()> {
        let Some((sum, count)) = sum_integers(columns[0]) else {
            return add_rows(self, columns, types, rows);
        };
        self.sum += sum;
        self.count += count;
        Ok(())
    }
    fn merge(&mut self, other: Box<dyn Accumulator>) -> Result<()> {
        let other = same::<WideInt<MEAN>>(other)?;
        self.sum += other.sum;
        self.count += other.count;
        Ok(())
    }
    fn finish(&self) -> Result<Datum> {
        if self.count == 0 {
            return Ok(Datum::Null);
        }
        let sum = Numeric::from_i128(self.sum, 0);
        if MEAN { sum.div(&Numeric::from(self.count)).map(Into::into) } else { Ok(sum.into()) }
    }
    as_any!();
}

/// Sum of numerics: 128 bits at the largest scale seen, the rest in a big integer when they
/// overflow. NaNs and infinities are counted.
#[derive(Default, Clone)]
pub struct NumericSum {
    small: Wide,
    scale: u32,
    count: i64,
    rare: Option<Box<Rare>>,
}

/// 128 bits in two halves, so that a sum has the alignment and with it the size of its other parts:
/// there may be one for each of millions of groups.
#[derive(Clone, Copy, Default)]
struct Wide {
    low: u64,
    high: i64,
}

impl Wide {
    #[inline]
    fn get(self) -> i128 {
        i128::from(self.high) << 64 | i128::from(self.low)
    }
}

impl From<i128> for Wide {
    #[inline]
    fn from(value: i128) -> Wide {
        Wide { low: value as u64, high: (value >> 64) as i64 }
    }
}

/// State that most sums don't have.
#[derive(Default, Clone)]
struct Rare {
    /// The sum of values that overflowed 128 bits.
    big: BigInt,
    nan: u64,
    plus: u64,
    minus: u64,
}

impl NumericSum {
    /// Adds `value / 10^scale`.
    #[inline]
    pub fn add_digits(&mut self, value: i64, scale: u16) {
        if u32::from(scale) == self.scale
            && let Some(sum) = self.small.get().checked_add(i128::from(value))
        {
            self.small = sum.into();
            self.count += 1;
        } else {
            self.add(&Numeric::new(value, scale));
        }
    }

    /// Adds a column's numbers.
    pub fn add_column(&mut self, column: &Column) {
        match &column.data {
            Vector::Numeric(values, scale) if column.nulls.is_empty() && !values.is_empty() => {
                // A batch of 64-bit values can't overflow 128 bits.
                let sum: i128 = values.iter().map(|v| i128::from(*v)).sum();
                match self.small.get().checked_add(sum) {
                    Some(total) if u32::from(*scale) == self.scale => self.small = total.into(),
                    _ => self.add_scaled(BigInt::from(sum), u32::from(*scale)),
                }
                self.count += values.len() as i64;
            }
            Vector::Numeric(values, scale) => {
                for (row, value) in values.iter().enumerate() {
                    if !column.is_null(row) {
                        self.add_digits(*value, *scale);
                    }
                }
            }
            Vector::Datum(values) => {
                for (row, value) in values.iter().enumerate() {
                    if let (Datum::Numeric(n), false) = (value, column.is_null(row)) {
                        self.add(n);
                    }
                }
            }
            _ => {}
        }
    }

    /// The sum, or the mean; NULL of no numbers.
    ///
    /// # Errors
    /// `22003`.
    pub fn finish(&self, mean: bool) -> Result<Datum> {
        if self.count == 0 {
            return Ok(Datum::Null);
        }
        let total = self.total()?;
        if mean { total.div(&Numeric::from(self.count)).map(Into::into) } else { Ok(total.into()) }
    }

    /// Adds a number.
    #[inline]
    pub fn add(&mut self, n: &Numeric) {
        if let (0, None, Numeric::Small { scale, .. }) = (self.count, &self.rare, n) {
            self.scale = u32::from(*scale);
        }
        self.count += 1;
        match n {
            Numeric::Small { value, scale } if u32::from(*scale) == self.scale => {
                match self.small.get().checked_add(i128::from(*value)) {
                    Some(sum) => self.small = sum.into(),
                    None => self.add_big(BigInt::from(*value), self.scale),
                }
            }
            Numeric::Small { value, scale } if self.is_near(*scale) => {
                let factor = POW10[self.scale as usize - usize::from(*scale)];
                match self.small.get().checked_add(i128::from(*value) * i128::from(factor)) {
                    Some(sum) => self.small = sum.into(),
                    None => self.add_scaled(BigInt::from(*value), u32::from(*scale)),
                }
            }
            Numeric::NaN => self.rare().nan += 1,
            Numeric::Infinity => self.rare().plus += 1,
            Numeric::NegInfinity => self.rare().minus += 1,
            other => {
                if let Some((value, scale)) = other.parts() {
                    self.add_scaled(value, scale);
                }
            }
        }
    }

    /// Whether a value of this scale only needs a factor that fits 64 bits.
    fn is_near(&self, scale: u16) -> bool {
        let scale = u32::from(scale);
        scale < self.scale && self.scale - scale <= 18
    }

    /// Adds a value of another scale: the sum takes on the larger one.
    fn add_scaled(&mut self, value: BigInt, scale: u32) {
        if scale > self.scale {
            let factor = pow10(scale - self.scale);
            if let Some(rare) = &mut self.rare {
                rare.big *= &factor;
            }
            let times = |f: i128| self.small.get().checked_mul(f);
            match i128::try_from(factor.clone()).ok().and_then(times) {
                Some(small) => self.small = small.into(),
                None => {
                    let moved = BigInt::from(std::mem::take(&mut self.small).get()) * factor;
                    self.rare().big += moved;
                }
            }
            self.scale = scale;
        }
        let value = value * pow10(self.scale - scale);
        match i128::try_from(value.clone()).ok().and_then(|v| self.small.get().checked_add(v)) {
            Some(sum) => self.small = sum.into(),
            None => self.add_big(value, self.scale),
        }
    }

    #[cold]
    fn add_big(&mut self, value: BigInt, scale: u32) {
        debug_assert_eq!(scale, self.scale);
        self.rare().big += value;
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: &NumericSum) {
        let total = other.integer();
        self.add_scaled(total, other.scale);
        self.count += other.count;
        if let Some(other) = &other.rare {
            let rare = self.rare();
            rare.nan += other.nan;
            rare.plus += other.plus;
            rare.minus += other.minus;
        }
    }

    fn integer(&self) -> BigInt {
        let small = BigInt::from(self.small.get());
        self.rare.as_ref().map_or(small.clone(), |rare| small + &rare.big)
    }

    #[cold]
    fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    pub(super) fn count(&self) -> i64 {
        self.count
    }

    /// NaN or an infinity, if one of the numbers was.
    pub(super) fn special(&self) -> Option<Numeric> {
        let rare = self.rare.as_ref()?;
        match (rare.nan, rare.plus, rare.minus) {
            (0, 0, 0) => None,
            (0, 0, _) => Some(Numeric::NegInfinity),
            (0, _, 0) => Some(Numeric::Infinity),
            _ => Some(Numeric::NaN),
        }
    }

    pub(super) fn total(&self) -> Result<Numeric> {
        match (self.special(), &self.rare) {
            (Some(special), _) => Ok(special),
            (None, None) => Ok(Numeric::from_i128(self.small.get(), self.scale as u16)),
            (None, Some(_)) => Numeric::from_big(self.integer(), self.scale),
        }
    }
}

#[derive(Default)]
struct SumNumeric<const MEAN: bool>(NumericSum);

impl<const MEAN: bool> Accumulator for SumNumeric<MEAN> {
    #[inline]
    fn add(&mut self, args: &[Datum]) -> Result<()> {
        if let Datum::Numeric(n) = &args[0] {
            self.0.add(n);
        }
        Ok(())
    }
    fn add_columns(&mut self, columns: &[&Column], _types: &[Oid], _rows: usize) -> Result<()> {
        self.0.add_column(columns[0]);
        Ok(())
    }
    fn merge(&mut self, other: Box<dyn Accumulator>) -> Result<()> {
        self.0.merge(&same::<SumNumeric<MEAN>>(other)?.0);
        Ok(())
    }
    fn finish(&self) -> Result<Datum> {
        self.0.finish(MEAN)
    }
    as_any!();
}

macro_rules! float_sum {
    ($name:ident, $t:ty, $get:ident) => {
        #[derive(Default)]
        struct $name(Option<$t>);

        impl $name {
            fn plus(&mut self, v: $t) -> Result<()> {
                let old = self.0.unwrap_or(0.0);
                let sum = old + v;
                if sum.is_infinite() && !old.is_infinite() && !v.is_infinite() {
                    return Err(super::float::overflow());
                }
                self.0 = Some(sum);
                Ok(())
            }
        }

        impl Accumulator for $name {
            fn add(&mut self, args: &[Datum]) -> Result<()> {
                if args[0].is_null() { Ok(()) } else { self.plus(args[0].$get()) }
            }
            fn merge(&mut self, other: Box<dyn Accumulator>) -> Result<()> {
                same::<$name>(other)?.0.map_or(Ok(()), |v| self.plus(v))
            }
            fn finish(&self) -> Result<Datum> {
                Ok(self.0.into())
            }
            as_any!();
        }
    };
}
float_sum!(SumFloat4, f32, as_float4);
float_sum!(SumFloat8, f64, as_float8);

/// `avg` of floats.
#[derive(Default)]
struct MeanFloat {
    count: f64,
    sum: f64,
}

impl MeanFloat {
    fn plus(&mut self, count: f64, v: f64) -> Result<()> {
        let sum = self.sum + v;
        if sum.is_infinite() && !self.sum.is_infinite() && !v.is_infinite() {
            return Err(super::float::overflow());
        }
        self.sum = sum;
        self.count += count;
        Ok(())
    }
}

impl Accumulator for MeanFloat {
    fn add(&mut self, args: &[Datum]) -> Result<()> {
        if args[0].is_null() { Ok(()) } else { self.plus(1.0, super::float::wide(&args[0])) }
    }
    fn merge(&mut self, other: Box<dyn Accumulator>) -> Result<()> {
        let other = same::<MeanFloat>(other)?;
        self.plus(other.count, other.sum)
    }
    fn finish(&self) -> Result<Datum> {
        Ok((self.count > 0.0).then(|| self.sum / self.count).into())
    }
    as_any!();
}

/// `min` and `max`, of some types whose integers have no sign.
#[derive(Default)]
struct Extreme<const MAX: bool, const UNSIGNED: bool>(Datum);

impl<const MAX: bool, const UNSIGNED: bool> Extreme<MAX, UNSIGNED> {
    fn take(&mut self, v: &Datum) {
        if v.is_null() {
            return;
        }
        let order =
            if UNSIGNED { crate::order::compare_unsigned(v, &self.0) } else { compare(v, &self.0) };
        let better = match (&self.0, order) {
            (Datum::Null, _) => true,
            // Of equal values that look different the last one stays, of char(n) the first.
            (old, Ordering::Equal) => !matches!(old, Datum::Bpchar(_)),
            (_, order) => (order == Ordering::Greater) == MAX,
        };
        if better {
            self.0 = v.clone();
        }
    }
}

impl<const MAX: bool, const UNSIGNED: bool> Accumulator for Extreme<MAX, UNSIGNED> {
    fn add(&mut self, args: &[Datum]) -> Result<()> {
        self.take(&args[0]);
        Ok(())
    }
    fn merge(&mut self, other: Box<dyn Accumulator>) -> Result<()> {
        self.take(&same::<Extreme<MAX, UNSIGNED>>(other)?.0);
        Ok(())
    }
    fn finish(&self) -> Result<Datum> {
        Ok(self.0.clone())
    }
    fn memory(&self) -> usize {
        self.0.heap_bytes()
    }
    as_any!();
}

/// `min` and `max` of values by their keys, the second argument.
#[derive(Default)]
pub(super) struct ExtremeBy<const MAX: bool>(Option<(Datum, Datum)>);

impl<const MAX: bool> Accumulator for ExtremeBy<MAX> {
    fn add(&mut self, args: &[Datum]) -> Result<()> {
        let [value, key] = args else { return Err(Error::internal("min and max without a key")) };
        let better = match &self.0 {
            None => true,
            Some((_, old)) => match compare(key, old) {
                Ordering::Equal => true,
                order => (order == Ordering::Greater) == MAX,
            },
        };
        if better {
            self.0 = Some((value.clone(), key.clone()));
        }
        Ok(())
    }
    fn merge(&mut self, other: Box<dyn Accumulator>) -> Result<()> {
        match same::<ExtremeBy<MAX>>(other)?.0 {
            Some((value, key)) => self.add(&[value, key]),
            None => Ok(()),
        }
    }
    fn finish(&self) -> Result<Datum> {
        Ok(self.0.as_ref().map_or(Datum::Null, |(value, _)| value.clone()))
    }
    fn memory(&self) -> usize {
        self.0.as_ref().map_or(0, |(value, key)| value.heap_bytes() + key.heap_bytes())
    }
    as_any!();
}

/// The first value.
#[derive(Default)]
pub(super) struct First(Datum);

impl Accumulator for First {
    fn add(&mut self, args: &[Datum]) -> Result<()> {
        if self.0.is_null() {
            self.0 = args[0].clone();
        }
        Ok(())
    }
    fn merge(&mut self, other: Box<dyn Accumulator>) -> Result<()> {
        self.add(&[same::<First>(other)?.0])
    }
    fn finish(&self) -> Result<Datum> {
        Ok(self.0.clone())
    }
    fn memory(&self) -> usize {
        self.0.heap_bytes()
    }
    as_any!();
}

/// A bitwise operation, on booleans and integers.
trait Bitwise: Default + Send + 'static {
    fn apply(a: i64, b: i64) -> i64;
}
#[derive(Default)]
struct And;
#[derive(Default)]
struct Or;
#[derive(Default)]
struct Xor;
impl Bitwise for And {
    fn apply(a: i64, b: i64) -> i64 {
        a & b
    }
}
impl Bitwise for Or {
    fn apply(a: i64, b: i64) -> i64 {
        a | b
    }
}
impl Bitwise for Xor {
    fn apply(a: i64, b: i64) -> i64 {
        a ^ b
    }
}

/// `bool_and`, `bit_or` and kin.
#[derive(Default)]
struct Fold<B> {
    value: Datum,
    operation: std::marker::PhantomData<B>,
}

impl<B: Bitwise> Fold<B> {
    fn take(&mut self, v: &Datum) {
        self.value = match (&self.value, v) {
            (_, Datum::Null) => return,
            (Datum::Null, v) => v.clone(),
            (Datum::Bool(a), Datum::Bool(b)) => {
                Datum::Bool(B::apply(i64::from(*a), i64::from(*b)) != 0)
            }
            (Datum::Int2(a), Datum::Int2(b)) => {
                Datum::Int2(B::apply(i64::from(*a), i64::from(*b)) as i16)
            }
            (Datum::Int4(a), Datum::Int4(b)) => {
                Datum::Int4(B::apply(i64::from(*a), i64::from(*b)) as i32)
            }
            (a, b) => Datum::Int8(B::apply(a.as_int8(), b.as_int8())),
        };
    }
}

impl<B: Bitwise> Accumulator for Fold<B> {
    fn add(&mut self, args: &[Datum]) -> Result<()> {
        self.take(&args[0]);
        Ok(())
    }
    fn merge(&mut self, other: Box<dyn Accumulator>) -> Result<()> {
        self.take(&same::<Fold<B>>(other)?.value);
        Ok(())
    }
    fn finish(&self) -> Result<Datum> {
        Ok(self.value.clone())
    }
    as_any!();
}

/// `string_agg(text, text)`: each value but the first has its own delimiter before it.
#[derive(Default)]
struct StringAgg {
    text: String,
    /// Length of the first delimiter, which the result leaves out but a merge needs.
    head: usize,
    any: bool,
}

impl Accumulator for StringAgg {
    fn add(&mut self, args: &[Datum]) -> Result<()> {
        if args[0].is_null() {
            return Ok(());
        }
        let delimiter = if args[1].is_null() { "" } else { args[1].as_str() };
        if !self.any {
            self.head = delimiter.len();
        }
        bulk::push_str(&mut self.text, delimiter)?;
        bulk::push_str(&mut self.text, args[0].as_str())?;
        self.any = true;
        Ok(())
    }
    fn merge(&mut self, other: Box<dyn Accumulator>) -> Result<()> {
        let other = same::<StringAgg>(other)?;
        if !self.any {
            *self = *other;
        } else {
            bulk::push_str(&mut self.text, &other.text)?;
        }
        Ok(())
    }
    fn finish(&self) -> Result<Datum> {
        if self.any { bulk::text(&self.text[self.head..]).map(Into::into) } else { Ok(Datum::Null) }
    }
    fn memory(&self) -> usize {
        self.text.capacity()
    }
    as_any!();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Random, random_value};

    #[test]
    fn columns_add_up_as_their_rows_do() {
        let mut random = Random::new(5);
        for name in ["count", "sum", "avg", "min", "max", "bit_or", "stddev"] {
            for ty in [oids::INT2, oids::INT4, oids::INT8, oids::NUMERIC, oids::FLOAT8] {
                let Some((_, start)) = find(name, &[ty]) else { continue };
                let mut column = Column::new(ty);
                let (mut by_rows, mut by_column) = (start(), start());
                for _ in 0..200 {
                    let value = if random.below(4) == 0 {
                        Datum::Null
                    } else {
                        random_value(ty, &mut random)
                    };
                    column.push(value.clone()).unwrap();
                    if !value.is_null() {
                        let _ = by_rows.add(&[value]);
                    }
                }
                let added = by_column.add_columns(&[&column], &[ty], column.len());
                if added.is_ok() {
                    let (a, b) = (by_rows.finish(), by_column.finish());
                    assert_eq!(format!("{a:?}"), format!("{b:?}"), "{name} of {ty}");
                }
            }
        }
    }
}

/// `bit_and` (0), `bit_or` (1) and `bit_xor` (2) of bit strings.
#[derive(Default)]
struct FoldBits<const OP: u8>(Option<Bits>);

impl<const OP: u8> Accumulator for FoldBits<OP> {
    fn add(&mut self, args: &[Datum]) -> Result<()> {
        let new = args[0].as_bits();
        let Some(old) = &self.0 else {
            self.0 = Some(new.clone());
            return Ok(());
        };
        if old.len != new.len {
            let word = ["AND", "OR", "XOR"][usize::from(OP)];
            return Err(base::err!(
                STRING_DATA_LENGTH_MISMATCH,
                "cannot {word} bit strings of different sizes"
            ));
        }
        let fold = |x: bool, y: bool| match OP {
            0 => x & y,
            1 => x | y,
            _ => x ^ y,
        };
        self.0 = Some(Bits::collect(old.iter().zip(new.iter()).map(|(x, y)| fold(x, y))));
        Ok(())
    }
    fn merge(&mut self, other: Box<dyn Accumulator>) -> Result<()> {
        same::<Self>(other)?.0.map_or(Ok(()), |b| self.add(&[Datum::Bits(b.into())]))
    }
    fn finish(&self) -> Result<Datum> {
        Ok(self.0.clone().map_or(Datum::Null, |b| Datum::Bits(b.into())))
    }
    as_any!();
}
