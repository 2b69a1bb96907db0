//! Arithmetic and mathematics of float4 and float8. Results that overflow or vanish are errors, as
//! in PostgreSQL.

use base::{Result, err};

use super::int::division_by_zero;
use super::{NamedBody, S, degrees};
use crate::datum::Datum;

#[cold]
pub(crate) fn overflow() -> base::Error {
    err!(NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: overflow")
}

#[cold]
pub(crate) fn underflow() -> base::Error {
    err!(NUMERIC_VALUE_OUT_OF_RANGE, "value out of range: underflow")
}

#[cold]
fn out_of_input_range() -> base::Error {
    err!(NUMERIC_VALUE_OUT_OF_RANGE, "input is out of range")
}

/// A float4 or float8 as f64.
#[inline]
pub(super) fn wide(d: &Datum) -> f64 {
    match d {
        Datum::Float8(v) => *v,
        Datum::Float4(v) => f64::from(*v),
        other => panic!("{other:?} is no float"),
    }
}

/// Answers a result unless it became infinite or zero out of arguments that weren't.
fn ranged(result: f64, infinite_ok: bool, zero_ok: bool) -> Result<Datum> {
    if result.is_infinite() && !infinite_ok {
        return Err(overflow());
    }
    if result == 0.0 && !zero_ok {
        return Err(underflow());
    }
    Ok(Datum::Float8(result))
}

macro_rules! arithmetic {
    ($p:literal, $l:ident, $r:ident, $t:ty) => {
        [
            (
                concat!($p, "pl"),
                S(|a, _| {
                    let (x, y) = (a[0].$l() as $t, a[1].$r() as $t);
                    let v = x + y;
                    if v.is_infinite() && !x.is_infinite() && !y.is_infinite() {
                        return Err(overflow());
                    }
                    Ok(v.into())
                }),
            ),
            (
                concat!($p, "mi"),
                S(|a, _| {
                    let (x, y) = (a[0].$l() as $t, a[1].$r() as $t);
                    let v = x - y;
                    if v.is_infinite() && !x.is_infinite() && !y.is_infinite() {
                        return Err(overflow());
                    }
                    Ok(v.into())
                }),
            ),
            (
                concat!($p, "mul"),
                S(|a, _| {
                    let (x, y) = (a[0].$l() as $t, a[1].$r() as $t);
                    let v = x * y;
                    if v.is_infinite() && !x.is_infinite() && !y.is_infinite() {
                        return Err(overflow());
                    }
                    if v == 0.0 && x != 0.0 && y != 0.0 {
                        return Err(underflow());
                    }
                    Ok(v.into())
                }),
            ),
            (
                concat!($p, "div"),
                S(|a, _| {
                    let (x, y) = (a[0].$l() as $t, a[1].$r() as $t);
                    if y == 0.0 && !x.is_nan() {
                        return Err(division_by_zero());
                    }
                    let v = x / y;
                    if v.is_infinite() && !x.is_infinite() {
                        return Err(overflow());
                    }
                    if v == 0.0 && x != 0.0 && !y.is_infinite() {
                        return Err(underflow());
                    }
                    Ok(v.into())
                }),
            ),
        ]
    };
}

/// `x ^ y` with PostgreSQL's answers at the edges.
pub(crate) fn power(x: f64, y: f64) -> Result<f64> {
    if x.is_nan() {
        return Ok(if y == 0.0 { 1.0 } else { x });
    }
    if y.is_nan() {
        return Ok(if x == 1.0 { 1.0 } else { y });
    }
    if x == 0.0 && y < 0.0 {
        return Err(err!(
            INVALID_ARGUMENT_FOR_POWER_FUNCTION,
            "zero raised to a negative power is undefined"
        ));
    }
    if x < 0.0 && y.floor() != y {
        return Err(err!(
            INVALID_ARGUMENT_FOR_POWER_FUNCTION,
            "a negative number raised to a non-integer power yields a complex result"
        ));
    }
    let v = x.powf(y);
    if x.is_infinite() || y.is_infinite() {
        return Ok(v);
    }
    if v.is_infinite() {
        return Err(overflow());
    }
    if v == 0.0 && x != 0.0 {
        return Err(underflow());
    }
    Ok(v)
}

fn logarithm(x: f64, f: fn(f64) -> f64) -> Result<Datum> {
    if x == 0.0 {
        return Err(err!(INVALID_ARGUMENT_FOR_LOG, "cannot take logarithm of zero"));
    }
    if x < 0.0 {
        return Err(err!(INVALID_ARGUMENT_FOR_LOG, "cannot take logarithm of a negative number"));
    }
    Ok(Datum::Float8(f(x)))
}

/// A function that is defined between two bounds only.
fn bounded(x: f64, low: f64, high: f64, f: fn(f64) -> f64) -> Result<Datum> {
    if x.is_nan() {
        return Ok(Datum::Float8(x));
    }
    if x < low || x > high {
        return Err(out_of_input_range());
    }
    ranged(f(x), true, true)
}

/// Trigonometry of an angle: infinities have none.
fn angle(x: f64, f: fn(f64) -> f64) -> Result<Datum> {
    if x.is_infinite() {
        return Err(out_of_input_range());
    }
    Ok(Datum::Float8(f(x)))
}

/// Above this, a square overflows or nothing but the double counts: the logarithm of it is the answer.
const LARGE: f64 = 1e150;

fn asinh(x: f64) -> f64 {
    match x.abs() {
        large if large > LARGE => (large.ln() + std::f64::consts::LN_2).copysign(x),
        _ => x.asinh(),
    }
}

fn acosh(x: f64) -> f64 {
    if x > LARGE { x.ln() + std::f64::consts::LN_2 } else { x.acosh() }
}

/// The bodies of this family.
pub(super) fn bodies() -> Vec<NamedBody> {
    let mut all: Vec<NamedBody> = Vec::new();
    all.extend(arithmetic!("float4", as_float4, as_float4, f32));
    all.extend(arithmetic!("float8", as_float8, as_float8, f64));
    all.extend(arithmetic!("float48", as_float4, as_float8, f64));
    all.extend(arithmetic!("float84", as_float8, as_float4, f64));
    all.extend([
        ("float4um", S(|a, _| Ok((-a[0].as_float4()).into()))),
        ("float8um", S(|a, _| Ok((-a[0].as_float8()).into()))),
        ("float4up", S(|a, _| Ok(a[0].clone()))),
        ("float8up", S(|a, _| Ok(a[0].clone()))),
        ("float4abs", S(|a, _| Ok(a[0].as_float4().abs().into()))),
        ("float8abs", S(|a, _| Ok(a[0].as_float8().abs().into()))),
        ("dceil", S(|a, _| Ok(a[0].as_float8().ceil().into()))),
        ("dfloor", S(|a, _| Ok(a[0].as_float8().floor().into()))),
        ("dround", S(|a, _| Ok(a[0].as_float8().round_ties_even().into()))),
        ("dtrunc", S(|a, _| Ok(a[0].as_float8().trunc().into()))),
        (
            "dsign",
            S(|a, _| {
                let x = a[0].as_float8();
                Ok(if x > 0.0 {
                    1.0
                } else if x < 0.0 {
                    -1.0
                } else {
                    0.0
                }
                .into())
            }),
        ),
        (
            "dsqrt",
            S(|a, _| {
                let x = a[0].as_float8();
                if x < 0.0 {
                    return Err(err!(
                        INVALID_ARGUMENT_FOR_POWER_FUNCTION,
                        "cannot take square root of a negative number"
                    ));
                }
                Ok(x.sqrt().into())
            }),
        ),
        ("dcbrt", S(|a, _| Ok(a[0].as_float8().cbrt().into()))),
        ("dpow", S(|a, _| power(a[0].as_float8(), a[1].as_float8()).map(Into::into))),
        (
            "dexp",
            S(|a, _| {
                let x = a[0].as_float8();
                ranged(x.exp(), x.is_infinite() || x.is_nan(), x == f64::NEG_INFINITY)
            }),
        ),
        ("dlog1", S(|a, _| logarithm(a[0].as_float8(), f64::ln))),
        ("dlog10", S(|a, _| logarithm(a[0].as_float8(), f64::log10))),
        ("dpi", S(|_, _| Ok(std::f64::consts::PI.into()))),
        (
            "degrees",
            S(|a, _| ranged(a[0].as_float8().to_degrees(), a[0].as_float8().is_infinite(), true)),
        ),
        ("radians", S(|a, _| Ok((a[0].as_float8() * (std::f64::consts::PI / 180.0)).into()))),
        ("dsin", S(|a, _| angle(a[0].as_float8(), f64::sin))),
        ("dcos", S(|a, _| angle(a[0].as_float8(), f64::cos))),
        ("dtan", S(|a, _| angle(a[0].as_float8(), f64::tan))),
        ("dcot", S(|a, _| angle(a[0].as_float8(), |x| 1.0 / x.tan()))),
        ("dsind", S(|a, _| angle(a[0].as_float8(), degrees::sine))),
        ("dcosd", S(|a, _| angle(a[0].as_float8(), degrees::cosine))),
        ("dtand", S(|a, _| angle(a[0].as_float8(), degrees::tangent))),
        ("dcotd", S(|a, _| angle(a[0].as_float8(), degrees::cotangent))),
        ("dasin", S(|a, _| bounded(a[0].as_float8(), -1.0, 1.0, f64::asin))),
        ("dacos", S(|a, _| bounded(a[0].as_float8(), -1.0, 1.0, f64::acos))),
        ("datan", S(|a, _| Ok(a[0].as_float8().atan().into()))),
        ("datan2", S(|a, _| Ok(a[0].as_float8().atan2(a[1].as_float8()).into()))),
        ("dasind", S(|a, _| bounded(a[0].as_float8(), -1.0, 1.0, degrees::arc_sine))),
        ("dacosd", S(|a, _| bounded(a[0].as_float8(), -1.0, 1.0, degrees::arc_cosine))),
        ("datand", S(|a, _| Ok(degrees::of_arc_tangent(a[0].as_float8().atan()).into()))),
        (
            "datan2d",
            S(|a, _| Ok(degrees::of_arc_tangent(a[0].as_float8().atan2(a[1].as_float8())).into())),
        ),
        ("dsinh", S(|a, _| Ok(a[0].as_float8().sinh().into()))),
        ("dcosh", S(|a, _| Ok(a[0].as_float8().cosh().into()))),
        ("dtanh", S(|a, _| Ok(a[0].as_float8().tanh().into()))),
        ("dasinh", S(|a, _| Ok(asinh(a[0].as_float8()).into()))),
        ("dacosh", S(|a, _| bounded(a[0].as_float8(), 1.0, f64::INFINITY, acosh))),
        ("datanh", S(|a, _| bounded(a[0].as_float8(), -1.0, 1.0, f64::atanh))),
        (
            "width_bucket_float8",
            S(|a, _| {
                let v: Vec<f64> = a[..3].iter().map(Datum::as_float8).collect();
                width_bucket(v[0], v[1], v[2], a[3].as_int4()).map(Into::into)
            }),
        ),
    ]);
    all
}

/// Number of the bucket, of `count` equal ones between two bounds, that a value falls in.
fn width_bucket(x: f64, low: f64, high: f64, count: i32) -> Result<i32> {
    let fail = |m: &str| err!(INVALID_ARGUMENT_FOR_WIDTH_BUCKET_FUNCTION, "{m}");
    if count <= 0 {
        return Err(fail("count must be greater than zero"));
    }
    if x.is_nan() || low.is_nan() || high.is_nan() {
        return Err(fail("operand, lower bound, and upper bound cannot be NaN"));
    }
    if low.is_infinite() || high.is_infinite() {
        return Err(fail("lower and upper bounds must be finite"));
    }
    if low == high {
        return Err(fail("lower bound cannot equal upper bound"));
    }
    let (before, after) = if low < high { (x < low, x >= high) } else { (x > low, x <= high) };
    if before {
        return Ok(0);
    }
    if after {
        return count.checked_add(1).ok_or_else(|| super::int::out_of_range("integer"));
    }
    let bucket = (f64::from(count) * ((x - low) / (high - low))) as i32;
    Ok(bucket.min(count - 1) + 1)
}
