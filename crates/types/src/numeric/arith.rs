//! Addition, multiplication, division, remainder of numerics, with PostgreSQL's rules for the
//! number of digits after the point.

use base::{Result, err};
use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{Signed, Zero};

use super::Numeric::{Infinity, NaN, NegInfinity, Small};
use super::{MAX_SCALE, Numeric, POW10, overflow, pow10, shrink};

/// A quotient has at least this many significant digits.
const MIN_SIGNIFICANT: i64 = 16;
/// A computed result has at most this many digits after the point.
const MAX_RESULT_SCALE: i64 = 1000;

#[cold]
pub(crate) fn division_by_zero() -> base::Error {
    err!(DIVISION_BY_ZERO, "division by zero")
}

impl Numeric {
    /// Sum.
    ///
    /// # Errors
    /// `22003` when the result has too many digits; so for all operations here.
    pub fn add(&self, other: &Numeric) -> Result<Numeric> {
        match (self, other) {
            (Small { value: a, scale: s }, Small { value: b, scale: t }) if s == t => {
                return Ok(match a.checked_add(*b) {
                    Some(v) => Small { value: v, scale: *s },
                    None => Numeric::from_i128(i128::from(*a) + i128::from(*b), *s),
                });
            }
            (Small { value: a, scale: s }, Small { value: b, scale: t })
                if s.abs_diff(*t) <= 18 =>
            {
                let p = i128::from(POW10[usize::from(s.abs_diff(*t))]);
                let (a, b) = (i128::from(*a), i128::from(*b));
                let sum = if s < t { a * p + b } else { a + b * p };
                return Ok(Numeric::from_i128(sum, *s.max(t)));
            }
            (NaN, _) | (_, NaN) => return Ok(NaN),
            (Infinity, NegInfinity) | (NegInfinity, Infinity) => return Ok(NaN),
            (Infinity, _) | (_, Infinity) => return Ok(Infinity),
            (NegInfinity, _) | (_, NegInfinity) => return Ok(NegInfinity),
            _ => {}
        }
        let (Some((a, s)), Some((b, t))) = (self.parts(), other.parts()) else { return Ok(NaN) };
        let (a, b, scale) = align(a, s, b, t);
        Numeric::from_big(a + b, scale)
    }

    /// Difference.
    ///
    /// # Errors
    /// See [`Numeric::add`].
    pub fn sub(&self, other: &Numeric) -> Result<Numeric> {
        self.add(&other.neg())
    }

    /// The number with its sign turned.
    pub fn neg(&self) -> Numeric {
        match self {
            Small { value, scale } => match value.checked_neg() {
                Some(value) => Small { value, scale: *scale },
                None => Numeric::from_i128(-i128::from(*value), *scale),
            },
            // Canonical again: -(2^63) fits 64 bits though 2^63 doesn't.
            Numeric::Big(b) => Numeric::from_big(-&b.value, u32::from(b.scale)).unwrap_or(NaN),
            NaN => NaN,
            Infinity => NegInfinity,
            NegInfinity => Infinity,
        }
    }

    /// The number without its sign.
    pub fn abs(&self) -> Numeric {
        if self.signum() < 0 { self.neg() } else { self.clone() }
    }

    /// Product.
    ///
    /// # Errors
    /// See [`Numeric::add`].
    pub fn mul(&self, other: &Numeric) -> Result<Numeric> {
        if let (Small { value: a, scale: s }, Small { value: b, scale: t }) = (self, other)
            && u32::from(*s) + u32::from(*t) <= MAX_SCALE
        {
            return Ok(match a.checked_mul(*b) {
                Some(value) => Small { value, scale: s + t },
                None => Numeric::from_i128(i128::from(*a) * i128::from(*b), s + t),
            });
        }
        let (Some((a, s)), Some((b, t))) = (self.parts(), other.parts()) else {
            return Ok(special_product(self, other));
        };
        let (product, scale) = (a * b, s + t);
        if scale > MAX_SCALE {
            return Numeric::from_big(shrink(&product, scale - MAX_SCALE), MAX_SCALE);
        }
        Numeric::from_big(product, scale)
    }

    /// Quotient, with at least 16 significant digits.
    ///
    /// # Errors
    /// `22012` division by zero.
    pub fn div(&self, other: &Numeric) -> Result<Numeric> {
        if let Some(special) = special_quotient(self, other)? {
            return Ok(special);
        }
        self.div_to(other, quotient_scale(self, other) as u32)
    }

    /// Quotient of finite numbers with `scale` digits after the point, rounded.
    pub(crate) fn div_to(&self, other: &Numeric, scale: u32) -> Result<Numeric> {
        let (Some((a, s)), Some((b, t))) = (self.parts(), other.parts()) else { return Ok(NaN) };
        if b.is_zero() {
            return Err(division_by_zero());
        }
        Numeric::from_big(divide(&a, s, &b, t, scale), scale)
    }

    /// Quotient cut to an integer.
    ///
    /// # Errors
    /// `22012` division by zero.
    pub fn div_trunc(&self, other: &Numeric) -> Result<Numeric> {
        if let Some(special) = special_quotient(self, other)? {
            return Ok(special);
        }
        let (Some((a, s)), Some((b, t))) = (self.parts(), other.parts()) else { return Ok(NaN) };
        let (a, b, _) = align(a, s, b, t);
        Numeric::from_big(a / b, 0)
    }

    /// Remainder, with the sign of the left.
    ///
    /// # Errors
    /// `22012` division by zero.
    pub fn rem(&self, other: &Numeric) -> Result<Numeric> {
        match (self, other) {
            (NaN, _) | (_, NaN) => return Ok(NaN),
            (Infinity | NegInfinity, _) => {
                return if other.is_zero() { Err(division_by_zero()) } else { Ok(NaN) };
            }
            (_, Infinity | NegInfinity) => return Ok(self.clone()),
            _ if other.is_zero() => return Err(division_by_zero()),
            (Small { value: a, scale: s }, Small { value: b, scale: t }) if s == t => {
                return Ok(Small { value: a.checked_rem(*b).unwrap_or(0), scale: *s });
            }
            _ => {}
        }
        let (Some((a, s)), Some((b, t))) = (self.parts(), other.parts()) else { return Ok(NaN) };
        let (a, b, scale) = align(a, s, b, t);
        Numeric::from_big(a % b, scale)
    }

    /// The smallest integer that isn't below.
    pub fn ceil(&self) -> Numeric {
        self.to_integer(|v, p| Integer::div_ceil(v, p))
    }

    /// The largest integer that isn't above.
    pub fn floor(&self) -> Numeric {
        self.to_integer(|v, p| Integer::div_floor(v, p))
    }

    fn to_integer(&self, divide: fn(&BigInt, &BigInt) -> BigInt) -> Numeric {
        match self.parts() {
            Some((v, s)) => Numeric::from_big(divide(&v, &pow10(s)), 0).unwrap_or(NaN),
            None => self.clone(),
        }
    }

    /// -1, 0, 1 or NaN.
    pub fn sign(&self) -> Numeric {
        if self.is_nan() { NaN } else { Numeric::from(i64::from(self.signum())) }
    }

    /// Greatest common divisor.
    ///
    /// # Errors
    /// See [`Numeric::add`].
    pub fn gcd(&self, other: &Numeric) -> Result<Numeric> {
        let (Some((a, s)), Some((b, t))) = (self.parts(), other.parts()) else { return Ok(NaN) };
        let (a, b, scale) = align(a, s, b, t);
        Numeric::from_big(a.gcd(&b).abs(), scale)
    }

    /// Least common multiple.
    ///
    /// # Errors
    /// See [`Numeric::add`].
    pub fn lcm(&self, other: &Numeric) -> Result<Numeric> {
        let (Some((a, s)), Some((b, t))) = (self.parts(), other.parts()) else { return Ok(NaN) };
        let (a, b, scale) = align(a, s, b, t);
        if a.is_zero() || b.is_zero() {
            return Numeric::from_big(BigInt::zero(), scale);
        }
        Numeric::from_big(a.lcm(&b).abs(), scale)
    }

    /// `n!`
    ///
    /// # Errors
    /// `22003` for negative or huge `n`.
    pub fn factorial(n: i64) -> Result<Numeric> {
        if n < 0 {
            return Err(err!(
                NUMERIC_VALUE_OUT_OF_RANGE,
                "factorial of a negative number is undefined"
            ));
        }
        if n > 32177 {
            return Err(overflow());
        }
        let (mut product, mut pace) = (BigInt::from(1), crate::bulk::Pace::default());
        for i in 2..=n {
            pace.step()?;
            product *= i;
        }
        Numeric::from_big(product, 0)
    }
}

/// Both over the same power of ten.
pub(crate) fn align(a: BigInt, s: u32, b: BigInt, t: u32) -> (BigInt, BigInt, u32) {
    match s.cmp(&t) {
        std::cmp::Ordering::Equal => (a, b, s),
        std::cmp::Ordering::Less => (a * pow10(t - s), b, t),
        std::cmp::Ordering::Greater => (a, b * pow10(s - t), s),
    }
}

/// `(a / 10^s) / (b / 10^t)` as an integer over `10^scale`, rounded half away from zero.
pub(crate) fn divide(a: &BigInt, s: u32, b: &BigInt, t: u32, scale: u32) -> BigInt {
    let shift = i64::from(scale) + i64::from(t) - i64::from(s);
    let (n, d) = if shift >= 0 {
        (a * pow10(shift as u32), b.clone())
    } else {
        (a.clone(), b * pow10(-shift as u32))
    };
    let (q, r) = n.div_rem(&d);
    if r.magnitude() * 2u8 >= *d.magnitude() {
        if n.is_negative() == d.is_negative() { q + 1 } else { q - 1 }
    } else {
        q
    }
}

/// Group of four digits that the number starts with (PostgreSQL's base is 10000), and its position.
fn leading_group(n: &Numeric) -> (i64, i64) {
    let Some(magnitude) = n.magnitude() else { return (0, 0) };
    let weight = magnitude.div_euclid(4);
    let keep = magnitude.rem_euclid(4) + 1;
    let (value, scale) = n.parts().unwrap_or_default();
    let count = magnitude + i64::from(scale) + 1;
    let group = if count >= keep {
        value.magnitude() / pow10((count - keep) as u32).magnitude()
    } else {
        value.magnitude() * pow10((keep - count) as u32).magnitude()
    };
    (weight, i64::try_from(group).unwrap_or(0))
}

/// Digits after the point of a quotient: enough for 16 significant ones, and not fewer than either
/// side shows.
pub(crate) fn quotient_scale(a: &Numeric, b: &Numeric) -> i64 {
    let ((wa, ga), (wb, gb)) = (leading_group(a), leading_group(b));
    let weight = wa - wb - i64::from(ga <= gb);
    let shown = i64::from(a.scale().unwrap_or(0).max(b.scale().unwrap_or(0)));
    (MIN_SIGNIFICANT - weight * 4).max(shown).min(MAX_RESULT_SCALE)
}

fn special_product(a: &Numeric, b: &Numeric) -> Numeric {
    if a.is_nan() || b.is_nan() || a.is_zero() || b.is_zero() {
        NaN
    } else if a.signum() * b.signum() > 0 {
        Infinity
    } else {
        NegInfinity
    }
}

fn special_quotient(a: &Numeric, b: &Numeric) -> Result<Option<Numeric>> {
    Ok(match (a, b) {
        (NaN, _) | (_, NaN) => Some(NaN),
        (Infinity | NegInfinity, Infinity | NegInfinity) => Some(NaN),
        _ if b.is_zero() => return Err(division_by_zero()),
        (Infinity | NegInfinity, _) => Some(special_product(a, b)),
        (_, Infinity | NegInfinity) => Some(Numeric::ZERO),
        _ => None,
    })
}
