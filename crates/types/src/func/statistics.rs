//! Aggregates of statistics: variance and standard deviation, covariance and regression; and the
//! aggregates that collect values.

use base::{Oid, Result};

use super::Accumulator;
use super::aggregate::{NumericSum, Start, as_any, same};
use crate::bulk;
use crate::datum::{Array, Datum, Interval, Numeric};
use crate::{io, oids};

/// Whether the aggregate skips NULLs, and its start.
pub(super) fn find(name: &str, args: &[Oid]) -> Option<(bool, Start)> {
    use oids::{FLOAT4, FLOAT8, INT2, INT4, INT8, INTERVAL, NUMERIC};
    // Which of the four, by name: population or sample, variance or its root.
    let start: Start = match (name, args) {
        ("var_pop", [FLOAT4 | FLOAT8]) => || Box::new(Spread::<true, false>::default()),
        ("var_samp" | "variance", [FLOAT4 | FLOAT8]) => {
            || Box::new(Spread::<false, false>::default())
        }
        ("stddev_pop", [FLOAT4 | FLOAT8]) => || Box::new(Spread::<true, true>::default()),
        ("stddev_samp" | "stddev", [FLOAT4 | FLOAT8]) => {
            || Box::new(Spread::<false, true>::default())
        }
        ("var_pop", [INT2 | INT4 | INT8 | NUMERIC]) => {
            || Box::new(NumericSpread::<true, false>::default())
        }
        ("var_samp" | "variance", [INT2 | INT4 | INT8 | NUMERIC]) => {
            || Box::new(NumericSpread::<false, false>::default())
        }
        ("stddev_pop", [INT2 | INT4 | INT8 | NUMERIC]) => {
            || Box::new(NumericSpread::<true, true>::default())
        }
        ("stddev_samp" | "stddev", [INT2 | INT4 | INT8 | NUMERIC]) => {
            || Box::new(NumericSpread::<false, true>::default())
        }
        ("sum", [INTERVAL]) => || Box::new(IntervalSum::<false>::default()),
        ("avg", [INTERVAL]) => || Box::new(IntervalSum::<true>::default()),
        ("array_agg", [oids::ANYNONARRAY]) => {
            return Some((false, || Box::new(Collect(Vec::new()))));
        }
        ("array_agg", [oids::ANYARRAY]) => return Some((false, || Box::new(Stack::default()))),
        ("string_agg", [oids::BYTEA, _]) => {
            return Some((false, || Box::new(BytesAgg::default())));
        }
        (_, [FLOAT8, FLOAT8]) => return Some((true, pair(name)?)),
        _ => return None,
    };
    Some((true, start))
}

fn pair(name: &str) -> Option<Start> {
    Some(match name {
        "covar_pop" => || Box::new(Pairs::new(Pairs::covar_pop)),
        "covar_samp" => || Box::new(Pairs::new(Pairs::covar_samp)),
        "corr" => || Box::new(Pairs::new(Pairs::corr)),
        "regr_count" => || Box::new(Pairs::new(|p| Some(Datum::Int8(p.n as i64)))),
        "regr_sxx" => || Box::new(Pairs::new(|p| (p.n >= 1.0).then(|| p.sxx.into()))),
        "regr_syy" => || Box::new(Pairs::new(|p| (p.n >= 1.0).then(|| p.syy.into()))),
        "regr_sxy" => || Box::new(Pairs::new(|p| (p.n >= 1.0).then(|| p.sxy.into()))),
        "regr_avgx" => || Box::new(Pairs::new(|p| (p.n >= 1.0).then(|| (p.sx / p.n).into()))),
        "regr_avgy" => || Box::new(Pairs::new(|p| (p.n >= 1.0).then(|| (p.sy / p.n).into()))),
        "regr_slope" => || Box::new(Pairs::new(Pairs::slope)),
        "regr_intercept" => || Box::new(Pairs::new(Pairs::intercept)),
        "regr_r2" => || Box::new(Pairs::new(Pairs::r2)),
        _ => return None,
    })
}

/// Variance of floats: count, sum, and sum of squared differences (Youngs and Cramer, 1971).
#[derive(Default)]
struct Spread<const POPULATION: bool, const ROOT: bool> {
    n: f64,
    sum: f64,
    squares: f64,
}

/// Count, sum and squares of two parts together.
fn join(a: (f64, f64, f64), b: (f64, f64, f64)) -> (f64, f64, f64) {
    match (a.0 == 0.0, b.0 == 0.0) {
        (true, _) => b,
        (_, true) => a,
        _ => {
            let n = a.0 + b.0;
            let between = a.1 / a.0 - b.1 / b.0;
            (n, a.1 + b.1, a.2 + b.2 + a.0 * b.0 * between * between / n)
        }
    }
}

impl<const POPULATION: bool, const ROOT: bool> Accumulator for Spread<POPULATION, ROOT> {
    fn add(&mut self, args: &[Datum]) -> Result<()> {
        if args[0].is_null() {
            return Ok(());
        }
        let x = super::float::wide(&args[0]);
        self.n += 1.0;
        self.sum += x;
        if self.n > 1.0 {
            let t = x * self.n - self.sum;
            self.squares += t * t / (self.n * (self.n - 1.0));
            if self.squares.is_infinite() && !x.is_infinite() && !self.sum.is_infinite() {
                return Err(super::float::overflow());
            }
        } else if !x.is_finite() {
            self.squares = f64::NAN;
        }
        Ok(())
    }
    fn merge(&mut self, other: Box<dyn Accumulator>) -> Result<()> {
        let o = same::<Self>(other)?;
        (self.n, self.sum, self.squares) =
            join((self.n, self.sum, self.squares), (o.n, o.sum, o.squares));
        Ok(())
    }
    fn finish(&self) -> Result<Datum> {
        let divisor = if POPULATION { self.n } else { self.n - 1.0 };
        if divisor <= 0.0 {
            return Ok(Datum::Null);
        }
        let variance = self.squares / divisor;
        Ok(if ROOT { variance.sqrt() } else { variance }.into())
    }
    as_any!();
}

/// Variance of integers and numerics: exact sums of the values and their squares.
#[derive(Default)]
struct NumericSpread<const POPULATION: bool, const ROOT: bool> {
    sum: NumericSum,
    squares: NumericSum,
}

fn as_numeric(d: &Datum) -> Numeric {
    match d {
        Datum::Numeric(n) => n.clone(),
        other => Numeric::from(other.to_i64().unwrap_or_default()),
    }
}

impl<const POPULATION: bool, const ROOT: bool> Accumulator for NumericSpread<POPULATION, ROOT> {
    fn add(&mut self, args: &[Datum]) -> Result<()> {
        if args[0].is_null() {
            return Ok(());
        }
        let x = as_numeric(&args[0]);
        self.squares.add(&x.mul(&x)?);
        self.sum.add(&x);
        Ok(())
    }
    fn merge(&mut self, other: Box<dyn Accumulator>) -> Result<()> {
        let o = same::<Self>(other)?;
        self.sum.merge(&o.sum);
        self.squares.merge(&o.squares);
        Ok(())
    }
    fn finish(&self) -> Result<Datum> {
        let n = self.sum.count();
        if n == 0 || (n == 1 && !POPULATION) {
            return Ok(Datum::Null);
        }
        if self.sum.special().is_some() {
            return Ok(Numeric::NaN.into());
        }
        let count = Numeric::from(n);
        let sum = self.sum.total()?;
        // n * sum(x^2) - sum(x)^2, over n * n or n * (n - 1)
        let top = count.mul(&self.squares.total()?)?.sub(&sum.mul(&sum)?)?;
        if top.signum() <= 0 {
            return Ok(Numeric::ZERO.into());
        }
        let divisor = count.mul(&Numeric::from(if POPULATION { n } else { n - 1 }))?;
        let variance = top.div(&divisor)?;
        let root = |v: &Numeric| v.sqrt_to(v.scale().unwrap_or(0));
        if ROOT { root(&variance).map(Into::into) } else { Ok(variance.into()) }
    }
    as_any!();
}

/// Sums of pairs (y, x), for covariance and linear regression.
struct Pairs {
    n: f64,
    sx: f64,
    sxx: f64,
    sy: f64,
    syy: f64,
    sxy: f64,
    result: fn(&Pairs) -> Option<Datum>,
}

impl Pairs {
    fn new(result: fn(&Pairs) -> Option<Datum>) -> Pairs {
        Pairs { n: 0.0, sx: 0.0, sxx: 0.0, sy: 0.0, syy: 0.0, sxy: 0.0, result }
    }
    fn covar_pop(&self) -> Option<Datum> {
        (self.n >= 1.0).then(|| (self.sxy / self.n).into())
    }
    fn covar_samp(&self) -> Option<Datum> {
        (self.n >= 2.0).then(|| (self.sxy / (self.n - 1.0)).into())
    }
    fn corr(&self) -> Option<Datum> {
        let defined = self.n >= 1.0 && self.sxx != 0.0 && self.syy != 0.0;
        defined.then(|| (self.sxy / (self.sxx * self.syy).sqrt()).into())
    }
    fn slope(&self) -> Option<Datum> {
        (self.n >= 1.0 && self.sxx != 0.0).then(|| (self.sxy / self.sxx).into())
    }
    fn intercept(&self) -> Option<Datum> {
        (self.n >= 1.0 && self.sxx != 0.0)
            .then(|| ((self.sy - self.sx * self.sxy / self.sxx) / self.n).into())
    }
    fn r2(&self) -> Option<Datum> {
        if self.n < 1.0 || self.sxx == 0.0 {
            return None;
        }
        // A horizontal line fits perfectly.
        if self.syy == 0.0 {
            return Some(1.0.into());
        }
        Some((self.sxy * self.sxy / (self.sxx * self.syy)).into())
    }
}

impl Accumulator for Pairs {
    fn add(&mut self, args: &[Datum]) -> Result<()> {
        if args[0].is_null() || args[1].is_null() {
            return Ok(());
        }
        let (y, x) = (args[0].as_float8(), args[1].as_float8());
        self.n += 1.0;
        self.sx += x;
        self.sy += y;
        if self.n > 1.0 {
            let (tx, ty) = (x * self.n - self.sx, y * self.n - self.sy);
            let scale = 1.0 / (self.n * (self.n - 1.0));
            self.sxx += tx * tx * scale;
            self.syy += ty * ty * scale;
            self.sxy += tx * ty * scale;
        } else {
            if !x.is_finite() {
                self.sxx = f64::NAN;
                self.sxy = f64::NAN;
            }
            if !y.is_finite() {
                self.syy = f64::NAN;
                self.sxy = f64::NAN;
            }
        }
        Ok(())
    }
    fn merge(&mut self, other: Box<dyn Accumulator>) -> Result<()> {
        let o = same::<Pairs>(other)?;
        if self.n > 0.0 && o.n > 0.0 {
            let weight = self.n * o.n / (self.n + o.n);
            let between = (self.sx / self.n - o.sx / o.n, self.sy / self.n - o.sy / o.n);
            self.sxy += weight * between.0 * between.1;
        }
        self.sxy += o.sxy;
        let (_, sy, syy) = join((self.n, self.sy, self.syy), (o.n, o.sy, o.syy));
        (self.n, self.sx, self.sxx) = join((self.n, self.sx, self.sxx), (o.n, o.sx, o.sxx));
        (self.sy, self.syy) = (sy, syy);
        Ok(())
    }
    fn finish(&self) -> Result<Datum> {
        Ok((self.result)(self).into())
    }
    as_any!();
}

/// `sum` and `avg` of intervals.
#[derive(Default)]
struct IntervalSum<const MEAN: bool> {
    sum: Interval,
    count: i64,
}

impl<const MEAN: bool> Accumulator for IntervalSum<MEAN> {
    fn add(&mut self, args: &[Datum]) -> Result<()> {
        if let Datum::Interval(i) = &args[0] {
            self.sum = super::datetime::add_intervals(self.sum, **i)?;
            self.count += 1;
        }
        Ok(())
    }
    fn merge(&mut self, other: Box<dyn Accumulator>) -> Result<()> {
        let o = same::<Self>(other)?;
        self.sum = super::datetime::add_intervals(self.sum, o.sum)?;
        self.count += o.count;
        Ok(())
    }
    fn finish(&self) -> Result<Datum> {
        if self.count == 0 {
            return Ok(Datum::Null);
        }
        let result = if MEAN {
            super::datetime::divide_interval(&self.sum, self.count as f64)?
        } else {
            self.sum
        };
        Ok(Datum::Interval(result.into()))
    }
    as_any!();
}

/// `array_agg` of values. The element type is the values' natural one; the planner knows the
/// declared one (see [`crate::func::with_element`]).
struct Collect(Vec<Datum>);

impl Accumulator for Collect {
    fn add(&mut self, args: &[Datum]) -> Result<()> {
        self.0.push(args[0].clone());
        Ok(())
    }
    fn merge(&mut self, other: Box<dyn Accumulator>) -> Result<()> {
        self.0.append(&mut same::<Collect>(other)?.0);
        Ok(())
    }
    fn finish(&self) -> Result<Datum> {
        if self.0.is_empty() {
            return Ok(Datum::Null);
        }
        let known = self.0.iter().find(|d| !d.is_null());
        Ok(Datum::array(known.map_or(oids::TEXT, io::natural_type), bulk::copied(&self.0)?))
    }
    fn memory(&self) -> usize {
        self.0.capacity() * size_of::<Datum>() + self.0.iter().map(Datum::heap_bytes).sum::<usize>()
    }
    as_any!();
}

/// `array_agg` of arrays: one dimension more.
#[derive(Default)]
struct Stack {
    element: Oid,
    dims: Vec<(i32, i32)>,
    items: Vec<Datum>,
    count: i32,
}

impl Stack {
    fn push(&mut self, element: Oid, dims: &[(i32, i32)], items: &[Datum], n: i32) -> Result<()> {
        if self.count == 0 {
            io::check_dimensions(dims.len() + 1)?;
            self.element = element;
            self.dims = dims.to_vec();
        } else if self.dims != dims {
            return Err(base::err!(
                ARRAY_SUBSCRIPT_ERROR,
                "cannot accumulate arrays of different dimensionality"
            ));
        }
        bulk::push_values(&mut self.items, items)?;
        self.count += n;
        Ok(())
    }
}

/// The arrays as one with a dimension more; an empty one of none.
///
/// # Errors
/// As `array_agg` of arrays.
pub fn stack_arrays(element: Oid, arrays: &[Datum]) -> Result<Datum> {
    let mut stack = Stack::default();
    for array in arrays {
        stack.add(std::slice::from_ref(array))?;
    }
    match stack.finish()? {
        Datum::Null => Ok(Datum::array(element, Vec::new())),
        array => Ok(super::with_element(array, element)),
    }
}

impl Accumulator for Stack {
    fn add(&mut self, args: &[Datum]) -> Result<()> {
        match &args[0] {
            Datum::Null => Err(base::err!(NULL_VALUE_NOT_ALLOWED, "cannot accumulate null arrays")),
            Datum::Array(a) if a.dims.is_empty() => {
                Err(base::err!(ARRAY_SUBSCRIPT_ERROR, "cannot accumulate empty arrays"))
            }
            other => {
                let a = other.as_array();
                self.push(a.element, &a.dims, &a.items, 1)
            }
        }
    }
    fn merge(&mut self, other: Box<dyn Accumulator>) -> Result<()> {
        let o = same::<Stack>(other)?;
        if o.count == 0 { Ok(()) } else { self.push(o.element, &o.dims, &o.items, o.count) }
    }
    fn finish(&self) -> Result<Datum> {
        if self.count == 0 {
            return Ok(Datum::Null);
        }
        let mut dims = vec![(self.count, 1)];
        dims.extend_from_slice(&self.dims);
        let array = Array { element: self.element, dims, items: bulk::copied(&self.items)? };
        Ok(Datum::Array(array.into()))
    }
    fn memory(&self) -> usize {
        self.items.capacity() * size_of::<Datum>()
    }
    as_any!();
}

/// `string_agg(bytea, bytea)`.
#[derive(Default)]
struct BytesAgg {
    bytes: Vec<u8>,
    head: usize,
    any: bool,
}

impl Accumulator for BytesAgg {
    fn add(&mut self, args: &[Datum]) -> Result<()> {
        if args[0].is_null() {
            return Ok(());
        }
        let delimiter: &[u8] = if args[1].is_null() { b"" } else { args[1].as_bytea() };
        if !self.any {
            self.head = delimiter.len();
        }
        bulk::push_bytes(&mut self.bytes, delimiter)?;
        bulk::push_bytes(&mut self.bytes, args[0].as_bytea())?;
        self.any = true;
        Ok(())
    }
    fn merge(&mut self, other: Box<dyn Accumulator>) -> Result<()> {
        let other = same::<BytesAgg>(other)?;
        if self.any {
            bulk::push_bytes(&mut self.bytes, &other.bytes)?;
        } else {
            *self = *other;
        }
        Ok(())
    }
    fn finish(&self) -> Result<Datum> {
        if !self.any {
            return Ok(Datum::Null);
        }
        bulk::ask(self.bytes.len())?;
        Ok(Datum::bytea(&self.bytes[self.head..]))
    }
    fn memory(&self) -> usize {
        self.bytes.capacity()
    }
    as_any!();
}
