//! Functions behind casts.

use base::{Result, err};

use super::int::{Int, out_of_range};
use super::{NamedBody, S};
use crate::datum::{Datum, Numeric};
use crate::order::trim_bpchar;
use crate::{io, oids};

/// A float rounded to the nearest integer (ties to even) of a width.
fn round_float<T: Int>(v: f64) -> Result<Datum> {
    let v = v.round_ties_even();
    // 2^63 itself is too large; -2^63 is not.
    if v.is_nan() || !(-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&v) {
        return Err(out_of_range(T::NAME));
    }
    T::narrow(v as i64).map(Into::into)
}

fn round_numeric<T: Int>(n: &Numeric) -> Result<Datum> {
    if !n.is_finite() {
        let what = if n.is_nan() { "NaN" } else { "infinity" };
        return Err(err!(FEATURE_NOT_SUPPORTED, "cannot convert {what} to {}", T::NAME));
    }
    let v = n.to_i64().ok_or_else(|| out_of_range(T::NAME))?;
    T::narrow(v).map(Into::into)
}

fn to_float4(v: f64) -> Result<Datum> {
    let narrow = v as f32;
    if narrow.is_infinite() && !v.is_infinite() {
        return Err(super::float::overflow());
    }
    if narrow == 0.0 && v != 0.0 {
        return Err(super::float::underflow());
    }
    Ok(Datum::Float4(narrow))
}

fn numeric_to_float4(n: &Numeric) -> Result<Datum> {
    match n {
        Numeric::NaN => Ok(Datum::Float4(f32::NAN)),
        Numeric::Infinity => Ok(Datum::Float4(f32::INFINITY)),
        Numeric::NegInfinity => Ok(Datum::Float4(f32::NEG_INFINITY)),
        _ => io::input(oids::FLOAT4, -1, &n.to_string(), &io::FormatContext::default()),
    }
}

fn numeric_to_float8(n: &Numeric) -> Result<Datum> {
    let v = n.to_f64();
    if n.is_finite() && v.is_infinite() {
        return Err(err!(
            NUMERIC_VALUE_OUT_OF_RANGE,
            "\"{n}\" is out of range for type double precision"
        ));
    }
    Ok(Datum::Float8(v))
}

macro_rules! to_int {
    ($name:literal, $t:ty) => {
        ($name, S(|a, _| <$t>::narrow(a[0].to_i64().unwrap_or_default()).map(Into::into)))
    };
}
macro_rules! to_float {
    ($name:literal, $variant:ident, $t:ty) => {
        ($name, S(|a, _| Ok(Datum::$variant(a[0].to_i64().unwrap_or_default() as $t))))
    };
}
macro_rules! to_numeric {
    ($name:literal) => {
        ($name, S(|a, _| Ok(Datum::Numeric(Numeric::from(a[0].to_i64().unwrap_or_default())))))
    };
}
macro_rules! from_float {
    ($name:literal, $t:ty) => {
        ($name, S(|a, _| round_float::<$t>(super::float::wide(&a[0]))))
    };
}
macro_rules! from_numeric {
    ($name:literal, $t:ty) => {
        ($name, S(|a, _| round_numeric::<$t>(a[0].as_numeric())))
    };
}

/// Applies the typmod that a length-coercion function gets as its second argument.
fn coerce(ty: base::Oid, a: &[Datum]) -> Result<Datum> {
    let explicit = a.get(2).is_some_and(Datum::as_bool);
    io::apply_typmod(ty, a[1].as_int4(), a[0].clone(), explicit)
}

/// The bodies of this family.
pub(super) fn bodies() -> Vec<NamedBody> {
    let mut all = numbers();
    all.extend(strings());
    all
}

fn numbers() -> Vec<NamedBody> {
    vec![
        to_int!("i2toi4", i32),
        to_int!("i4toi2", i16),
        to_int!("int28", i64),
        to_int!("int48", i64),
        to_int!("int82", i16),
        to_int!("int84", i32),
        to_int!("oidtoi8", i64),
        (
            "i8tooid",
            S(|a, _| {
                let v = u32::try_from(a[0].as_int8()).map_err(|_| out_of_range("OID"))?;
                Ok(Datum::Oid(v))
            }),
        ),
        to_float!("i2tof", Float4, f32),
        to_float!("i4tof", Float4, f32),
        to_float!("i8tof", Float4, f32),
        to_float!("i2tod", Float8, f64),
        to_float!("i4tod", Float8, f64),
        to_float!("i8tod", Float8, f64),
        from_float!("ftoi2", i16),
        from_float!("ftoi4", i32),
        from_float!("ftoi8", i64),
        from_float!("dtoi2", i16),
        from_float!("dtoi4", i32),
        from_float!("dtoi8", i64),
        ("ftod", S(|a, _| Ok(Datum::Float8(f64::from(a[0].as_float4()))))),
        ("dtof", S(|a, _| to_float4(a[0].as_float8()))),
        to_numeric!("int2_numeric"),
        to_numeric!("int4_numeric"),
        to_numeric!("int8_numeric"),
        ("float4_numeric", S(|a, _| Ok(Numeric::from_f32(a[0].as_float4()).into()))),
        ("float8_numeric", S(|a, _| Ok(Numeric::from_f64(a[0].as_float8()).into()))),
        from_numeric!("numeric_int2", i16),
        from_numeric!("numeric_int4", i32),
        from_numeric!("numeric_int8", i64),
        ("numeric_float4", S(|a, _| numeric_to_float4(a[0].as_numeric()))),
        ("numeric_float8", S(|a, _| numeric_to_float8(a[0].as_numeric()))),
        ("numeric", S(|a, _| coerce(oids::NUMERIC, a))),
        ("int4_bool", S(|a, _| Ok((a[0].as_int4() != 0).into()))),
        ("bool_int4", S(|a, _| Ok(i32::from(a[0].as_bool()).into()))),
        ("chartoi4", S(|a, _| Ok(i32::from(a[0].as_char() as i8).into()))),
        (
            "i4tochar",
            S(|a, _| {
                let v = i8::try_from(a[0].as_int4()).map_err(|_| out_of_range("\"char\""))?;
                Ok(Datum::Char(v as u8))
            }),
        ),
        ("xid8toxid", S(|a, _| Ok(Datum::Oid(a[0].as_int8() as u32)))),
    ]
}

fn strings() -> Vec<NamedBody> {
    vec![
        ("booltext", S(|a, _| Ok(Datum::text(if a[0].as_bool() { "true" } else { "false" })))),
        ("char_text", S(|a, _| Ok(super::text::text_of_char(a[0].as_char())))),
        (
            "char_bpchar",
            S(|a, _| match super::text::text_of_char(a[0].as_char()) {
                Datum::Text(s) => Ok(Datum::Bpchar(s)),
                other => Ok(other),
            }),
        ),
        ("text_char", S(|a, _| Ok(Datum::Char(io::parse_char(a[0].as_str()))))),
        ("name_text", S(|a, _| Ok(a[0].clone()))),
        ("text_name", S(|a, _| Ok(Datum::text(io::cut_name(a[0].as_str()))))),
        ("name_bpchar", S(|a, _| Ok(Datum::Bpchar(a[0].as_str().into())))),
        ("bpchar_name", S(|a, _| Ok(Datum::text(io::cut_name(trim_bpchar(a[0].as_str())))))),
        ("varchar", S(|a, _| coerce(oids::VARCHAR, a))),
        ("bpchar", S(|a, _| coerce(oids::BPCHAR, a))),
    ]
}
