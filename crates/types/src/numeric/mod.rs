//! Exact decimal numbers with PostgreSQL's semantics: NaN, the infinities, and a display scale that
//! every result carries (so `1.0 + 2.00` is `3.00`).
//!
//! A finite number is an integer of any size over a power of ten: `value / 10^scale`. While the
//! integer fits 64 bits it stands in place and arithmetic is a few machine instructions; that
//! covers money and counters. Larger ones are big integers behind a pointer. The form is canonical:
//! a number is `Big` only when it doesn't fit `Small`.
//!
//! Limits as in PostgreSQL: 131072 digits before the point, 16383 after it.

mod arith;
mod math;
mod text;
mod wire;

pub use text::{pack_typmod, unpack_typmod};

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use base::{Result, err};
use num_bigint::{BigInt, Sign};
use num_traits::{Signed, ToPrimitive, Zero};

/// Digits after the point, at most.
pub const MAX_SCALE: u32 = 16383;
/// Digits before the point, at most.
const MAX_WHOLE_DIGITS: i64 = 131_072;

/// A numeric value.
#[derive(Clone, Debug, PartialEq)]
pub enum Numeric {
    /// `value / 10^scale`.
    Small {
        /// All digits.
        value: i64,
        /// How many of them stand after the point.
        scale: u16,
    },
    /// The same, when the digits don't fit 64 bits.
    Big(Arc<BigDecimal>),
    /// Not a number; equal to itself and above everything.
    NaN,
    /// Above every finite number.
    Infinity,
    /// Below every finite number.
    NegInfinity,
}

/// See [`Numeric::Big`].
#[derive(Debug, PartialEq)]
pub struct BigDecimal {
    value: BigInt,
    scale: u16,
}

/// 10^n for n up to 18 fits 64 bits.
pub(crate) const POW10: [i64; 19] = {
    let mut table = [1i64; 19];
    let mut i = 1;
    while i < 19 {
        table[i] = table[i - 1] * 10;
        i += 1;
    }
    table
};

/// 10^n.
pub(crate) fn pow10(n: u32) -> BigInt {
    match POW10.get(n as usize) {
        Some(p) => BigInt::from(*p),
        None => BigInt::from(10u8).pow(n),
    }
}

#[cold]
pub(crate) fn overflow() -> base::Error {
    err!(NUMERIC_VALUE_OUT_OF_RANGE, "value overflows numeric format")
}

impl Numeric {
    /// Zero, scale 0.
    pub const ZERO: Numeric = Numeric::Small { value: 0, scale: 0 };
    /// One, scale 0.
    pub const ONE: Numeric = Numeric::Small { value: 1, scale: 0 };

    /// `value / 10^scale`; `scale` is at most [`MAX_SCALE`].
    pub fn new(value: i64, scale: u16) -> Numeric {
        debug_assert!(u32::from(scale) <= MAX_SCALE);
        Numeric::Small { value, scale }
    }

    /// `value / 10^scale`.
    pub fn from_i128(value: i128, scale: u16) -> Numeric {
        match i64::try_from(value) {
            Ok(value) => Numeric::Small { value, scale },
            Err(_) => Numeric::Big(Arc::new(BigDecimal { value: BigInt::from(value), scale })),
        }
    }

    /// `value / 10^scale`, in canonical form.
    ///
    /// # Errors
    /// `22003` when it has too many digits before the point.
    pub fn from_big(value: BigInt, scale: u32) -> Result<Numeric> {
        debug_assert!(scale <= MAX_SCALE);
        let scale = scale as u16;
        if let Some(value) = value.to_i64() {
            return Ok(Numeric::Small { value, scale });
        }
        // 0.30103 digits a bit: only numbers near the limit are counted exactly.
        let bits = value.bits() as i64;
        if bits * 302 / 1000 + 1 > MAX_WHOLE_DIGITS + i64::from(scale)
            && digits_of(&value) - i64::from(scale) > MAX_WHOLE_DIGITS
        {
            return Err(overflow());
        }
        Ok(Numeric::Big(Arc::new(BigDecimal { value, scale })))
    }

    /// The integer and the scale of a finite number.
    pub(crate) fn parts(&self) -> Option<(BigInt, u32)> {
        match self {
            Numeric::Small { value, scale } => Some((BigInt::from(*value), u32::from(*scale))),
            Numeric::Big(b) => Some((b.value.clone(), u32::from(b.scale))),
            _ => None,
        }
    }

    /// Digits shown after the point; None unless finite.
    pub fn scale(&self) -> Option<u32> {
        match self {
            Numeric::Small { scale, .. } => Some(u32::from(*scale)),
            Numeric::Big(b) => Some(u32::from(b.scale)),
            _ => None,
        }
    }

    /// Whether it is a number at all, and not infinite.
    pub fn is_finite(&self) -> bool {
        matches!(self, Numeric::Small { .. } | Numeric::Big(_))
    }

    /// Whether it is NaN.
    pub fn is_nan(&self) -> bool {
        matches!(self, Numeric::NaN)
    }

    /// Whether it is zero of any scale.
    pub fn is_zero(&self) -> bool {
        matches!(self, Numeric::Small { value: 0, .. })
    }

    /// -1, 0, 1; NaN counts as 1.
    pub fn signum(&self) -> i32 {
        match self {
            Numeric::Small { value, .. } => value.signum() as i32,
            Numeric::Big(b) if b.value.is_negative() => -1,
            Numeric::NegInfinity => -1,
            _ => 1,
        }
    }

    /// Bytes held beyond the value itself.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Numeric::Big(b) => 48 + b.value.bits() as usize / 8,
            _ => 0,
        }
    }

    /// Value order: -Infinity, numbers, Infinity, NaN.
    pub fn compare(&self, other: &Numeric) -> Ordering {
        use Numeric::{Big, Infinity, NaN, NegInfinity, Small};
        fn rank(n: &Numeric) -> u8 {
            match n {
                NegInfinity => 0,
                Small { .. } | Big(_) => 1,
                Infinity => 2,
                NaN => 3,
            }
        }
        match (self, other) {
            (Small { value: a, scale: s }, Small { value: b, scale: t }) if s == t => a.cmp(b),
            (Small { value: a, scale: s }, Small { value: b, scale: t })
                if s.abs_diff(*t) <= 18 =>
            {
                let p = i128::from(POW10[usize::from(s.abs_diff(*t))]);
                if s < t {
                    (i128::from(*a) * p).cmp(&i128::from(*b))
                } else {
                    i128::from(*a).cmp(&(i128::from(*b) * p))
                }
            }
            _ => match (self.parts(), other.parts()) {
                (Some((a, s)), Some((b, t))) if s < t => (a * pow10(t - s)).cmp(&b),
                (Some((a, s)), Some((b, t))) => a.cmp(&(b * pow10(s - t))),
                _ => rank(self).cmp(&rank(other)),
            },
        }
    }

    /// Hashes numbers of the same value alike, whatever their scale.
    pub fn hash_value<H: Hasher>(&self, state: &mut H) {
        match self {
            Numeric::Small { value: 0, .. } => state.write_u8(0),
            Numeric::Small { value, scale } => {
                let (mut v, mut s) = (*value, i32::from(*scale));
                while v % 10 == 0 {
                    v /= 10;
                    s -= 1;
                }
                state.write_i64(v);
                state.write_i32(s);
            }
            Numeric::Big(b) => {
                let text = b.value.to_str_radix(10);
                let digits = text.trim_end_matches('0');
                let scale = i32::from(b.scale) - (text.len() - digits.len()) as i32;
                match digits.parse::<i64>() {
                    Ok(v) => state.write_i64(v),
                    Err(_) => digits.hash(state),
                }
                state.write_i32(scale);
            }
            Numeric::NaN => state.write_u8(1),
            Numeric::Infinity => state.write_u8(2),
            Numeric::NegInfinity => state.write_u8(3),
        }
    }

    /// Decimal position of the first digit: 0 for 1 to 9, -1 for 0.1, 2 for 100. None for zero and
    /// for what isn't finite.
    pub(crate) fn magnitude(&self) -> Option<i64> {
        match self {
            Numeric::Small { value: 0, .. } => None,
            Numeric::Small { value, scale } => {
                Some(i64::from(value.unsigned_abs().ilog10()) - i64::from(*scale))
            }
            Numeric::Big(b) => Some(digits_of(&b.value) - 1 - i64::from(b.scale)),
            _ => None,
        }
    }
}

/// Number of decimal digits of a number's absolute value (1 for zero).
pub(crate) fn digits_of(value: &BigInt) -> i64 {
    if value.is_zero() {
        return 1;
    }
    let bits = value.bits();
    // log10(2) = 0.30103; the estimate is exact or one too small.
    let low = (bits - 1) as f64 * std::f64::consts::LOG10_2;
    let estimate = low as i64;
    let next = pow10(estimate as u32 + 1);
    if value.magnitude() >= next.magnitude() {
        estimate + 2
    } else if value.magnitude() >= pow10(estimate as u32).magnitude() {
        estimate + 1
    } else {
        estimate
    }
}

/// `value / 10^drop`, rounded half away from zero.
pub(crate) fn shrink(value: &BigInt, drop: u32) -> BigInt {
    if drop == 0 {
        return value.clone();
    }
    if i64::from(drop) > digits_of(value) {
        return BigInt::zero();
    }
    let power = pow10(drop);
    let half = BigInt::from_biguint(Sign::Plus, power.magnitude() >> 1u32);
    let magnitude = BigInt::from_biguint(Sign::Plus, value.magnitude().clone());
    let rounded: BigInt = (magnitude + half) / power;
    if value.is_negative() { -rounded } else { rounded }
}

#[cfg(test)]
mod tests;
