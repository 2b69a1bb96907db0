//! Arithmetic and bit operations of int2, int4, int8, and boolean helpers.

use base::{Result, err};

use super::{NamedBody, S};
use crate::datum::Datum;

#[cold]
pub(crate) fn out_of_range(kind: &str) -> base::Error {
    err!(NUMERIC_VALUE_OUT_OF_RANGE, "{kind} out of range")
}

#[cold]
pub(crate) fn division_by_zero() -> base::Error {
    err!(DIVISION_BY_ZERO, "division by zero")
}

/// The three widths: how to read one, wrap it, name it in messages.
pub(crate) trait Int: Copy + Into<Datum> {
    const NAME: &'static str;
    fn of(d: &Datum) -> Self;
    fn narrow(v: i64) -> Result<Self>;
}

macro_rules! int {
    ($ty:ty, $variant:ident, $name:literal) => {
        impl Int for $ty {
            const NAME: &'static str = $name;
            #[inline]
            fn of(d: &Datum) -> $ty {
                match d {
                    Datum::$variant(v) => *v,
                    other => other
                        .to_i64()
                        .and_then(|v| v.try_into().ok())
                        .unwrap_or_else(|| panic!(concat!("{:?} is no ", $name), other)),
                }
            }
            #[inline]
            fn narrow(v: i64) -> Result<$ty> {
                <$ty>::try_from(v).map_err(|_| out_of_range($name))
            }
        }
    };
}
int!(i16, Int2, "smallint");
int!(i32, Int4, "integer");
int!(i64, Int8, "bigint");

#[inline]
fn checked<T: Int>(v: Option<T>) -> Result<Datum> {
    match v {
        Some(v) => Ok(v.into()),
        None => Err(out_of_range(T::NAME)),
    }
}

/// + - * / of two widths, computed in the result's.
macro_rules! arithmetic {
    ($p:literal, $l:ty, $r:ty, $t:ty) => {
        [
            (
                concat!($p, "pl"),
                S(|a, _| {
                    checked(<$t>::from(<$l>::of(&a[0])).checked_add(<$t>::from(<$r>::of(&a[1]))))
                }),
            ),
            (
                concat!($p, "mi"),
                S(|a, _| {
                    checked(<$t>::from(<$l>::of(&a[0])).checked_sub(<$t>::from(<$r>::of(&a[1]))))
                }),
            ),
            (
                concat!($p, "mul"),
                S(|a, _| {
                    checked(<$t>::from(<$l>::of(&a[0])).checked_mul(<$t>::from(<$r>::of(&a[1]))))
                }),
            ),
            (
                concat!($p, "div"),
                S(|a, _| {
                    let d = <$t>::from(<$r>::of(&a[1]));
                    if d == 0 {
                        return Err(division_by_zero());
                    }
                    checked(<$t>::from(<$l>::of(&a[0])).checked_div(d))
                }),
            ),
        ]
    };
}

/// The functions that each width has alone.
macro_rules! single {
    ($p:literal, $t:ty) => {
        [
            (
                concat!($p, "mod"),
                S(|a, _| {
                    let d = <$t>::of(&a[1]);
                    if d == 0 {
                        return Err(division_by_zero());
                    }
                    Ok(<$t>::of(&a[0]).checked_rem(d).unwrap_or(0).into())
                }),
            ),
            (concat!($p, "um"), S(|a, _| checked(<$t>::of(&a[0]).checked_neg()))),
            (concat!($p, "up"), S(|a, _| Ok(a[0].clone()))),
            (concat!($p, "abs"), S(|a, _| checked(<$t>::of(&a[0]).checked_abs()))),
            (concat!($p, "and"), S(|a, _| Ok((<$t>::of(&a[0]) & <$t>::of(&a[1])).into()))),
            (concat!($p, "or"), S(|a, _| Ok((<$t>::of(&a[0]) | <$t>::of(&a[1])).into()))),
            (concat!($p, "xor"), S(|a, _| Ok((<$t>::of(&a[0]) ^ <$t>::of(&a[1])).into()))),
            (concat!($p, "not"), S(|a, _| Ok((!<$t>::of(&a[0])).into()))),
            // C's shifts on the machine: int2 is shifted as int4.
            (
                concat!($p, "shl"),
                S(|a, _| {
                    Ok((i64::from(<$t>::of(&a[0])).wrapping_shl(shift::<$t>(&a[1])) as $t).into())
                }),
            ),
            (
                concat!($p, "shr"),
                S(|a, _| {
                    Ok((i64::from(<$t>::of(&a[0])).wrapping_shr(shift::<$t>(&a[1])) as $t).into())
                }),
            ),
        ]
    };
}

/// Bits to shift by: the processor takes the amount modulo its width.
fn shift<T: Int>(d: &Datum) -> u32 {
    d.as_int4() as u32 % if size_of::<T>() == 8 { 64 } else { 32 }
}

macro_rules! gcd {
    ($p:literal, $t:ty) => {
        [
            (
                concat!($p, "gcd"),
                S(|a, _| {
                    let g =
                        num_integer::gcd(i128::from(<$t>::of(&a[0])), i128::from(<$t>::of(&a[1])));
                    <$t>::narrow(i64::try_from(g).map_err(|_| out_of_range(<$t>::NAME))?)
                        .map(Into::into)
                }),
            ),
            (
                concat!($p, "lcm"),
                S(|a, _| {
                    let (x, y) = (i128::from(<$t>::of(&a[0])), i128::from(<$t>::of(&a[1])));
                    if x == 0 || y == 0 {
                        return Ok(<$t>::narrow(0)?.into());
                    }
                    let l = (x / num_integer::gcd(x, y) * y).abs();
                    <$t>::narrow(i64::try_from(l).map_err(|_| out_of_range(<$t>::NAME))?)
                        .map(Into::into)
                }),
            ),
        ]
    };
}

/// The bodies of this family.
pub(super) fn bodies() -> Vec<NamedBody> {
    let mut all = Vec::new();
    all.extend(arithmetic!("int2", i16, i16, i16));
    all.extend(arithmetic!("int4", i32, i32, i32));
    all.extend(arithmetic!("int8", i64, i64, i64));
    all.extend(arithmetic!("int24", i16, i32, i32));
    all.extend(arithmetic!("int42", i32, i16, i32));
    all.extend(arithmetic!("int28", i16, i64, i64));
    all.extend(arithmetic!("int82", i64, i16, i64));
    all.extend(arithmetic!("int48", i32, i64, i64));
    all.extend(arithmetic!("int84", i64, i32, i64));
    all.extend(single!("int2", i16));
    all.extend(single!("int4", i32));
    all.extend(single!("int8", i64));
    all.extend(gcd!("int4", i32));
    all.extend(gcd!("int8", i64));
    all.extend([
        ("int8inc", S(|a, _| checked(a[0].as_int8().checked_add(1)))),
        ("int8dec", S(|a, _| checked(a[0].as_int8().checked_sub(1)))),
    ]);
    all
}
