//! `generate_series`. The executor streams the integer ones itself; these bodies are for all others
//! who ask.

use base::{Result, err};

use super::{Body, NamedBody};
use crate::datetime;
use crate::datum::{Datum, Numeric};
use crate::io::FormatContext;

#[cold]
fn zero_step() -> base::Error {
    err!(INVALID_PARAMETER_VALUE, "step size cannot equal zero")
}

/// The integers of a series, in order.
///
/// # Errors
/// `22023` for a step of zero.
pub fn integers(start: i64, stop: i64, step: i64) -> Result<impl Iterator<Item = i64>> {
    if step == 0 {
        return Err(zero_step());
    }
    let mut next = Some(start);
    Ok(std::iter::from_fn(move || {
        let v = next.filter(|v| if step > 0 { *v <= stop } else { *v >= stop })?;
        next = v.checked_add(step);
        Some(v)
    }))
}

/// Most room that is made at once, in values.
const STEP: usize = 1 << 20;

/// A series as a whole: it may be long, so whoever asked can be cancelled, and its memory is looked at.
#[derive(Default)]
struct Series(Vec<Datum>);

impl Series {
    fn push(&mut self, value: Datum) -> Result<()> {
        sched::check_interrupts()?;
        if self.0.len() == self.0.capacity() {
            self.0.reserve_exact(self.0.len().clamp(16, STEP));
        }
        self.0.push(value);
        Ok(())
    }

    fn of(values: impl Iterator<Item = Datum>) -> Result<Vec<Datum>> {
        let mut series = Series::default();
        for value in values {
            series.push(value)?;
        }
        Ok(series.0)
    }
}

fn int4(a: &[Datum]) -> Result<Vec<Datum>> {
    let step = a.get(2).map_or(1, Datum::as_int4);
    let all = integers(a[0].as_int4().into(), a[1].as_int4().into(), step.into())?;
    Series::of(all.map(|v| Datum::Int4(v as i32)))
}

fn int8(a: &[Datum]) -> Result<Vec<Datum>> {
    let step = a.get(2).map_or(1, Datum::as_int8);
    Series::of(integers(a[0].as_int8(), a[1].as_int8(), step)?.map(Datum::Int8))
}

fn numeric(a: &[Datum]) -> Result<Vec<Datum>> {
    let step = a.get(2).map_or(Numeric::ONE, |d| d.as_numeric().clone());
    for (n, what) in [
        (a[0].as_numeric(), "start value"),
        (a[1].as_numeric(), "stop value"),
        (&step, "step size"),
    ] {
        if !n.is_finite() {
            let kind = if n.is_nan() { "NaN" } else { "infinity" };
            return Err(err!(INVALID_PARAMETER_VALUE, "{what} cannot be {kind}"));
        }
    }
    if step.is_zero() {
        return Err(zero_step());
    }
    let (mut v, stop) = (a[0].as_numeric().clone(), a[1].as_numeric());
    let mut all = Series::default();
    while if step.signum() > 0 { v.compare(stop).is_le() } else { v.compare(stop).is_ge() } {
        all.push(Datum::Numeric(v.clone()))?;
        v = v.add(&step)?;
    }
    Ok(all.0)
}

fn times(a: &[Datum], cx: &FormatContext) -> Result<Vec<Datum>> {
    let (zoned, mut t, stop) = match (&a[0], &a[1]) {
        (Datum::Timestamptz(t), Datum::Timestamptz(stop)) => (true, *t, *stop),
        (t, stop) => (false, t.as_timestamp(), stop.as_timestamp()),
    };
    let step = a[2].as_interval();
    let span = crate::order::interval_span(&step);
    if span == 0 {
        return Err(zero_step());
    }
    let zone = zoned.then_some(&cx.time_zone);
    let mut all = Series::default();
    while datetime::is_finite(t) && if span > 0 { t <= stop } else { t >= stop } {
        all.push(if zoned { Datum::Timestamptz(t) } else { Datum::Timestamp(t) })?;
        t = datetime::add_interval(t, &step, zone)?;
    }
    Ok(all.0)
}

/// The bodies of this family.
pub(super) fn bodies() -> Vec<NamedBody> {
    vec![
        ("generate_series_int4", Body::Set(|a, _| int4(a))),
        ("generate_series_step_int4", Body::Set(|a, _| int4(a))),
        ("generate_series_int8", Body::Set(|a, _| int8(a))),
        ("generate_series_step_int8", Body::Set(|a, _| int8(a))),
        ("generate_series_numeric", Body::Set(|a, _| numeric(a))),
        ("generate_series_step_numeric", Body::Set(|a, _| numeric(a))),
        ("generate_series_timestamp", Body::Set(times)),
        ("generate_series_timestamptz", Body::Set(times)),
    ]
}
