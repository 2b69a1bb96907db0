//! Functions of numeric.

use base::{Result, err};

use super::{NamedBody, S};
use crate::datum::{Datum, Numeric};

fn two(a: &[Datum], f: fn(&Numeric, &Numeric) -> Result<Numeric>) -> Result<Datum> {
    f(a[0].as_numeric(), a[1].as_numeric()).map(Into::into)
}

fn one(a: &[Datum], f: fn(&Numeric) -> Numeric) -> Result<Datum> {
    Ok(f(a[0].as_numeric()).into())
}

/// Digits after the point asked for, within what a numeric can have.
fn digits(d: &Datum) -> i32 {
    // No numeric has a digit beyond either.
    d.as_int4().clamp(-131_072, crate::numeric::MAX_SCALE as i32)
}

/// How many of the thresholds, which ascend, are not above the value.
fn width_bucket_array(a: &[Datum]) -> Result<Datum> {
    let thresholds = a[1].as_array();
    if thresholds.dims.len() > 1 {
        return Err(base::err!(ARRAY_SUBSCRIPT_ERROR, "thresholds must be one-dimensional array"));
    }
    if thresholds.items.iter().any(Datum::is_null) {
        return Err(base::err!(NULL_VALUE_NOT_ALLOWED, "thresholds array must not contain NULLs"));
    }
    let below = |t: &Datum| match crate::order::is_unsigned(thresholds.element) {
        true => crate::order::compare_unsigned(t, &a[0]).is_le(),
        false => crate::order::compare(t, &a[0]).is_le(),
    };
    Ok((thresholds.items.partition_point(below) as i32).into())
}

/// A number rounded to so many digits behind the point.
fn rounded(n: &Numeric, wanted: &Datum) -> Result<Numeric> {
    let result = n.round(digits(wanted));
    match result.is_nan() && !n.is_nan() {
        // Left of all digits that a number can have.
        true if wanted.as_int4() < -131_072 => Ok(Numeric::ZERO),
        true => Err(err!(NUMERIC_VALUE_OUT_OF_RANGE, "value overflows numeric format")),
        false => Ok(result),
    }
}

/// The bodies of this family.
pub(super) fn bodies() -> Vec<NamedBody> {
    vec![
        ("numeric_add", S(|a, _| two(a, Numeric::add))),
        ("numeric_sub", S(|a, _| two(a, Numeric::sub))),
        ("numeric_mul", S(|a, _| two(a, Numeric::mul))),
        ("numeric_div", S(|a, _| two(a, Numeric::div))),
        ("numeric_div_trunc", S(|a, _| two(a, Numeric::div_trunc))),
        ("numeric_mod", S(|a, _| two(a, Numeric::rem))),
        ("numeric_gcd", S(|a, _| two(a, Numeric::gcd))),
        ("numeric_lcm", S(|a, _| two(a, Numeric::lcm))),
        ("numeric_uminus", S(|a, _| one(a, Numeric::neg))),
        ("numeric_uplus", S(|a, _| Ok(a[0].clone()))),
        ("numeric_inc", S(|a, _| a[0].as_numeric().add(&Numeric::ONE).map(Into::into))),
        ("numeric_abs", S(|a, _| one(a, Numeric::abs))),
        ("numeric_sign", S(|a, _| one(a, Numeric::sign))),
        ("numeric_ceil", S(|a, _| one(a, Numeric::ceil))),
        ("numeric_floor", S(|a, _| one(a, Numeric::floor))),
        ("numeric_round", S(|a, _| rounded(a[0].as_numeric(), &a[1]).map(Into::into))),
        ("numeric_trunc", S(|a, _| Ok(a[0].as_numeric().trunc(digits(&a[1])).into()))),
        ("sql_round", S(|a, _| Ok(a[0].as_numeric().round(0).into()))),
        ("sql_trunc", S(|a, _| Ok(a[0].as_numeric().trunc(0).into()))),
        ("numeric_sqrt", S(|a, _| a[0].as_numeric().sqrt().map(Into::into))),
        ("numeric_exp", S(|a, _| a[0].as_numeric().exp().map(Into::into))),
        ("numeric_ln", S(|a, _| a[0].as_numeric().ln().map(Into::into))),
        ("numeric_power", S(|a, _| two(a, Numeric::pow))),
        // The base comes first.
        ("numeric_log", S(|a, _| a[1].as_numeric().log(a[0].as_numeric()).map(Into::into))),
        ("sql_log", S(|a, _| a[0].as_numeric().log(&Numeric::from(10)).map(Into::into))),
        ("sql_log10", S(|a, _| a[0].as_numeric().log(&Numeric::from(10)).map(Into::into))),
        ("width_bucket_array", S(|a, _| width_bucket_array(a))),
        ("numeric_fac", S(|a, _| Numeric::factorial(a[0].as_int8()).map(Into::into))),
        ("numeric_scale", S(|a, _| Ok(a[0].as_numeric().scale().map(|s| s as i32).into()))),
        ("numeric_min_scale", S(|a, _| Ok(a[0].as_numeric().min_scale().map(|s| s as i32).into()))),
        (
            "numeric_trim_scale",
            S(|a, _| {
                let n = a[0].as_numeric();
                Ok(n.min_scale().map_or_else(|| n.clone(), |s| n.trunc(s as i32)).into())
            }),
        ),
    ]
}
