//! Square root, exponential, logarithm and powers of numerics.
//!
//! Computed in fixed point with some digits to spare, then rounded to the scale that PostgreSQL
//! chooses: at least 16 significant digits, and not fewer after the point than the arguments show.

use base::{Result, err};
use num_bigint::BigInt;
use num_traits::{One, Signed, ToPrimitive, Zero};

use super::Numeric::{Infinity, NaN, NegInfinity};
use super::{Numeric, digits_of, overflow, pow10, shrink};

const MIN_SIGNIFICANT: i64 = 16;
const MAX_RESULT_SCALE: i64 = 1000;
/// Decimal digits that the largest result may have before the point, for estimates.
const MAX_EXPONENT: f64 = 131_072.0;
/// e to this power and more is too large, as in PostgreSQL; its reciprocal is zero.
const MAX_NATURAL: f64 = 6000.0;
/// Digits beyond the result's, against rounding errors.
const GUARD: u32 = 12;
/// With the digits that PostgreSQL takes, since scales go by it.
const LOG10_E: f64 = 0.434294481903252;

fn clamp_scale(wanted: i64, shown: &[u32]) -> u32 {
    let least = shown.iter().copied().max().unwrap_or(0);
    wanted.max(i64::from(least)).clamp(0, MAX_RESULT_SCALE) as u32
}

/// `value / 10^from` as an integer over `10^to`, cut.
fn fixed(value: &BigInt, from: u32, to: u32) -> BigInt {
    if to >= from { value * pow10(to - from) } else { value / pow10(from - to) }
}

impl Numeric {
    /// Square root.
    ///
    /// # Errors
    /// `2201F` for negative numbers.
    pub fn sqrt(&self) -> Result<Numeric> {
        let negative = || {
            err!(
                INVALID_ARGUMENT_FOR_POWER_FUNCTION,
                "cannot take square root of a negative number"
            )
        };
        match self {
            NaN | Infinity => return Ok(self.clone()),
            NegInfinity => return Err(negative()),
            _ if self.signum() < 0 => return Err(negative()),
            _ => {}
        }
        // Groups of four digits have two before the point of the root.
        let weight = self.magnitude().unwrap_or(0).div_euclid(4);
        let scale = clamp_scale(MIN_SIGNIFICANT - (weight * 2 + 1), &[self.scale().unwrap_or(0)]);
        self.sqrt_to(scale)
    }

    /// Square root with `scale` digits after the point.
    pub(crate) fn sqrt_to(&self, scale: u32) -> Result<Numeric> {
        let Some((value, from)) = self.parts() else { return Ok(self.clone()) };
        // One digit more than wanted decides the rounding.
        let root = fixed(&value, from, 2 * (scale + 1)).sqrt();
        Numeric::from_big(shrink(&root, 1), scale)
    }

    /// e to this power.
    ///
    /// # Errors
    /// `22003` when the result is too large.
    pub fn exp(&self) -> Result<Numeric> {
        match self {
            NaN | Infinity => return Ok(self.clone()),
            NegInfinity => return Ok(Numeric::ZERO),
            _ => {}
        }
        let digits = self.to_f64() * LOG10_E;
        let limited = digits.clamp(-2000.0, 2000.0);
        let scale = clamp_scale(MIN_SIGNIFICANT - limited as i64, &[self.scale().unwrap_or(0)]);
        let (value, from) = self.parts().unwrap_or_default();
        exp_to(&value, from, self.to_f64(), scale)
    }

    /// Natural logarithm.
    ///
    /// # Errors
    /// `2201E` for zero and negative numbers.
    pub fn ln(&self) -> Result<Numeric> {
        check_log(self)?;
        if !self.is_finite() {
            return Ok(self.clone());
        }
        let scale = clamp_scale(MIN_SIGNIFICANT - ln_weight(self), &[self.scale().unwrap_or(0)]);
        ln_to(self, scale)
    }

    /// Logarithm of `self` to a base.
    ///
    /// # Errors
    /// `2201E` for zero and negative numbers, `22012` for base 1.
    pub fn log(&self, base: &Numeric) -> Result<Numeric> {
        if base.is_nan() || self.is_nan() {
            return Ok(NaN);
        }
        check_log(base)?;
        check_log(self)?;
        match (base, self) {
            (Infinity, Infinity) => return Ok(NaN),
            (Infinity, _) => return Ok(Numeric::ZERO),
            (_, Infinity) => return Ok(Infinity),
            _ => {}
        }
        let weight = ln_weight(self) - ln_weight(base);
        let shown = [base.scale().unwrap_or(0), self.scale().unwrap_or(0)];
        let scale = clamp_scale(MIN_SIGNIFICANT - weight, &shown);
        let extra = |n: &Numeric| (i64::from(scale) + 8 - ln_weight(n).min(0)).max(16) as u32;
        let (top, bottom) = (ln_to(self, extra(self))?, ln_to(base, extra(base))?);
        top.div_to(&bottom, scale)
    }

    /// `self ^ exponent`.
    ///
    /// # Errors
    /// `2201F` for zero to a negative power and negative numbers to a broken one, `22003`.
    pub fn pow(&self, exponent: &Numeric) -> Result<Numeric> {
        if let Some(special) = special_power(self, exponent)? {
            return Ok(special);
        }
        let shown = [self.scale().unwrap_or(0), exponent.scale().unwrap_or(0)];
        let whole = exponent.min_scale() == Some(0);
        if whole && let Some(n) = exponent.to_i64().and_then(|n| i32::try_from(n).ok()) {
            let scale = clamp_scale(MIN_SIGNIFICANT, &shown[..1]);
            return int_power(self, n, scale);
        }
        if self.is_zero() {
            return Numeric::from_big(BigInt::zero(), MIN_SIGNIFICANT as u32);
        }
        let negative = self.signum() < 0;
        let base = self.abs();
        // Rounded as PostgreSQL does, since the result's scale goes by it.
        let rough = (8 - ln_weight(&base)).clamp(0, 1000);
        let natural = ln_to(&base, rough as u32)?.mul(exponent)?.round(rough as i32).to_f64();
        let digits = (natural * LOG10_E).clamp(-2.0 * MAX_NATURAL, 2.0 * MAX_NATURAL);
        let scale = clamp_scale(MIN_SIGNIFICANT - digits as i64, &shown);
        let (power, places) = exponent.parts().unwrap_or_default();
        if natural.abs() >= MAX_NATURAL {
            return exp_to(&power, places, natural, scale);
        }
        // The exponential magnifies the logarithm's error by the result's size.
        let whole_digits = digits_of(&power) - i64::from(places);
        let room = digits.max(0.0) as u32 + whole_digits.max(0) as u32 + scale + GUARD;
        let (value, from) = base.parts().unwrap_or_default();
        let log = ln_fixed(&base, &value, from, room);
        let result = exp_to(&(log * power), room + places, natural, scale)?;
        Ok(if negative && is_odd(exponent) { result.neg() } else { result })
    }
}

fn is_odd(n: &Numeric) -> bool {
    n.parts().is_some_and(|(v, s)| (v / pow10(s)).bit(0))
}

fn check_log(n: &Numeric) -> Result<()> {
    if n.is_zero() {
        return Err(err!(INVALID_ARGUMENT_FOR_LOG, "cannot take logarithm of zero"));
    }
    if n.signum() < 0 {
        return Err(err!(INVALID_ARGUMENT_FOR_LOG, "cannot take logarithm of a negative number"));
    }
    Ok(())
}

fn special_power(base: &Numeric, exponent: &Numeric) -> Result<Option<Numeric>> {
    let one = || Some(Numeric::ONE);
    let broken = exponent.is_finite() && exponent.min_scale() != Some(0);
    let fail = |m: &str| Err(err!(INVALID_ARGUMENT_FOR_POWER_FUNCTION, "{m}"));
    if base.is_nan() {
        return Ok(if exponent.is_zero() { one() } else { Some(NaN) });
    }
    if exponent.is_nan() {
        return Ok(if base.compare(&Numeric::ONE).is_eq() { one() } else { Some(NaN) });
    }
    if base.is_zero() && exponent.signum() < 0 {
        return fail("zero raised to a negative power is undefined");
    }
    if base.signum() < 0 && broken {
        return fail("a negative number raised to a non-integer power yields a complex result");
    }
    if base.is_finite() && exponent.is_finite() {
        return Ok(None);
    }
    if base.compare(&Numeric::ONE).is_eq() || exponent.is_zero() {
        return Ok(one());
    }
    let up = exponent.signum() > 0;
    if exponent.is_finite() {
        // An infinity to a finite power.
        let sign = if base.signum() < 0 && is_odd(exponent) { NegInfinity } else { Infinity };
        return Ok(Some(if up { sign } else { Numeric::ZERO }));
    }
    let large = base.abs().compare(&Numeric::ONE);
    Ok(Some(match (large, up) {
        (std::cmp::Ordering::Equal, _) => Numeric::ONE,
        (std::cmp::Ordering::Greater, true) | (std::cmp::Ordering::Less, false) => Infinity,
        _ => Numeric::ZERO,
    }))
}

/// A whole power, rounded to `scale`; products keep as many digits as the result needs.
fn int_power(base: &Numeric, n: i32, scale: u32) -> Result<Numeric> {
    let (value, from) = base.parts().unwrap_or_default();
    if n == 0 {
        return Numeric::from_big(pow10(scale), scale);
    }
    if value.is_zero() {
        return Numeric::from_big(value, scale);
    }
    let log = leading_log10(&value) - f64::from(from);
    let digits = log * f64::from(n);
    if digits > MAX_EXPONENT {
        return Err(overflow());
    }
    if digits + 1.0 < -f64::from(scale) {
        return Numeric::from_big(BigInt::zero(), scale);
    }
    let keep = (f64::from(scale) + digits.abs() + f64::from(GUARD) * 2.0) as i64;
    // mantissa * 10^exponent
    let (mut square, mut square_exp) = (value, -i64::from(from));
    let (mut product, mut product_exp) = (BigInt::one(), 0i64);
    let trim = |m: &mut BigInt, e: &mut i64| {
        let drop = digits_of(m) - keep;
        if drop > 0 {
            *m = shrink(m, drop as u32);
            *e += drop;
        }
    };
    let mut bits = n.unsigned_abs();
    loop {
        if bits & 1 == 1 {
            product *= &square;
            product_exp += square_exp;
            trim(&mut product, &mut product_exp);
        }
        bits >>= 1;
        if bits == 0 {
            break;
        }
        square = &square * &square;
        square_exp *= 2;
        trim(&mut square, &mut square_exp);
    }
    if n < 0 {
        let places = (keep + digits_of(&product)) as u32;
        product = super::arith::divide(&BigInt::one(), 0, &product, 0, places);
        product_exp = -product_exp - i64::from(places);
    }
    let shift = product_exp + i64::from(scale);
    if shift >= 0 {
        Numeric::from_big(product * pow10(shift as u32), scale)
    } else {
        Numeric::from_big(shrink(&product, -shift as u32), scale)
    }
}

/// log10 of an integer's absolute value, nearly.
fn leading_log10(value: &BigInt) -> f64 {
    let digits = digits_of(value);
    let drop = (digits - 17).max(0) as u32;
    let lead = (value.abs() / pow10(drop)).to_f64().unwrap_or(1.0);
    lead.log10() + f64::from(drop)
}

/// Decimal position of the first digit of the logarithm, as PostgreSQL estimates it.
fn ln_weight(n: &Numeric) -> i64 {
    if n.signum() <= 0 || !n.is_finite() {
        return 0;
    }
    let near_one =
        n.compare(&Numeric::new(9, 1)).is_ge() && n.compare(&Numeric::new(11, 1)).is_le();
    if near_one {
        return match n.sub(&Numeric::ONE).ok().and_then(|x| x.magnitude()) {
            Some(magnitude) => magnitude,
            None => 0,
        };
    }
    let (value, scale) = n.parts().unwrap_or_default();
    let ln = (leading_log10(&value) - f64::from(scale)) / LOG10_E;
    ln.abs().log10() as i64
}

/// e^x with `scale` digits after the point; x is `value / 10^from`, and about `natural`.
fn exp_to(value: &BigInt, from: u32, natural: f64, scale: u32) -> Result<Numeric> {
    if natural >= MAX_NATURAL {
        return Err(overflow());
    }
    let digits = natural * LOG10_E;
    if natural <= -MAX_NATURAL || digits < -f64::from(scale) - 2.0 {
        return Numeric::from_big(BigInt::zero(), scale);
    }
    // x is halved until it is small; each squaring back doubles the relative error.
    let halvings = (natural.abs().max(1.0).log2() as u32) + 8;
    let work = scale + digits.max(0.0) as u32 + halvings / 3 + GUARD;
    let one = pow10(work);
    // The cut of x itself must not hurt: more digits while halving.
    let reduced = fixed(value, from, work + halvings) / pow10(halvings);
    let reduced = (reduced * pow10(halvings)) >> halvings;
    let reduced: BigInt = reduced / pow10(halvings);
    let (mut sum, mut term, mut n) = (one.clone(), one.clone(), 0u32);
    loop {
        n += 1;
        term = term * &reduced / &one / n;
        if term.is_zero() {
            break;
        }
        sum += &term;
    }
    for _ in 0..halvings {
        sum = &sum * &sum / &one;
    }
    Numeric::from_big(shrink(&sum, work - scale), scale)
}

/// ln(x) with `scale` digits after the point; x is positive and finite.
fn ln_to(x: &Numeric, scale: u32) -> Result<Numeric> {
    let Some((value, from)) = x.parts() else { return Ok(NaN) };
    Numeric::from_big(ln_fixed(x, &value, from, scale), scale)
}

/// ln(x) over `10^scale`, which may be larger than that of any numeric; x is `value / 10^from`.
fn ln_fixed(x: &Numeric, value: &BigInt, from: u32, scale: u32) -> BigInt {
    if x.compare(&Numeric::ONE).is_eq() {
        return BigInt::zero();
    }
    // Numbers near 1 have small logarithms: their first digits come late.
    let late = (-ln_weight(x)).max(0) as u32;
    let work = scale + late + GUARD + 8;
    // x = y * 10^shift, with y near 1 or between 1 and 10.
    let shift = if late > 0 { 0 } else { x.magnitude().unwrap_or(0) };
    let places = i64::from(from) + shift;
    let y = if places >= 0 {
        fixed(value, places as u32, work)
    } else {
        value * pow10(work + places.unsigned_abs() as u32)
    };
    let mut sum = ln_near(y, work);
    if shift != 0 {
        sum += ln_near(pow10(work + 1), work) * shift;
    }
    shrink(&sum, work - scale)
}

/// ln(y) over `10^work`, as y is; y is not far from 1.
fn ln_near(mut y: BigInt, work: u32) -> BigInt {
    let one = pow10(work);
    let mut roots = 0u32;
    let close = &one + &one / 50;
    while y > close {
        y = (y * &one).sqrt();
        roots += 1;
    }
    // ln y = 2 artanh((y - 1) / (y + 1))
    let z = (&y - &one) * &one / (&y + &one);
    let square = &z * &z / &one;
    let (mut sum, mut term, mut n) = (z.clone(), z, 1u32);
    loop {
        n += 2;
        term = term * &square / &one;
        let part = &term / n;
        if part.is_zero() {
            break;
        }
        sum += part;
    }
    sum << (roots + 1)
}
