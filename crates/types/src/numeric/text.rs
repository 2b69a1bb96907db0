//! Text form, typmods and conversions of numerics.

use base::{Result, err};
use num_bigint::{BigInt, Sign};
use num_traits::{ToPrimitive, Zero};

use super::{MAX_SCALE, MAX_WHOLE_DIGITS, Numeric, POW10, overflow, pow10, shrink};

#[cold]
fn invalid(text: &str) -> base::Error {
    err!(INVALID_TEXT_REPRESENTATION, "invalid input syntax for type numeric: \"{text}\"")
}

impl Numeric {
    /// Reads a number: digits with an optional point and exponent, `NaN`, `Infinity`, blanks around.
    ///
    /// # Errors
    /// `22P02`, and `22003` for too many digits.
    pub fn parse(text: &str) -> Result<Numeric> {
        let s = text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b');
        let (negative, body) = match s.as_bytes().first() {
            Some(b'-') => (true, &s[1..]),
            Some(b'+') => (false, &s[1..]),
            _ => (false, s),
        };
        if !body.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            return match body.to_ascii_lowercase().as_str() {
                "nan" if body.len() == s.len() => Ok(Numeric::NaN),
                "inf" | "infinity" if negative => Ok(Numeric::NegInfinity),
                "inf" | "infinity" => Ok(Numeric::Infinity),
                _ => Err(invalid(text)),
            };
        }
        let (mantissa, exponent) = match body.find(['e', 'E']) {
            Some(at) => (&body[..at], Some(&body[at + 1..])),
            None => (body, None),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits_only = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
        if !digits_only(whole) || !digits_only(fraction) || whole.len() + fraction.len() == 0 {
            return Err(invalid(text));
        }
        let exponent = match exponent {
            None => 0,
            Some(e) => {
                let d = e.strip_prefix(['+', '-']).unwrap_or(e);
                if d.is_empty() || !digits_only(d) {
                    return Err(invalid(text));
                }
                match e.parse::<i64>() {
                    Ok(e) if e.abs() < i64::from(i32::MAX / 2) => e,
                    _ => return Err(overflow()),
                }
            }
        };
        let scale = fraction.len() as i64 - exponent;
        if whole.len() + fraction.len() <= 18 && (0..=MAX_SCALE as i64).contains(&scale) {
            let mut value = 0i64;
            for b in whole.bytes().chain(fraction.bytes()) {
                value = value * 10 + i64::from(b - b'0');
            }
            let value = if negative { -value } else { value };
            return Ok(Numeric::new(value, scale as u16));
        }
        Numeric::parse_long(negative, whole, fraction, scale)
    }

    fn parse_long(negative: bool, whole: &str, fraction: &str, scale: i64) -> Result<Numeric> {
        let digits = [whole, fraction].concat();
        let significant = digits.trim_start_matches('0').len() as i64;
        if significant - scale > MAX_WHOLE_DIGITS && significant > 0 {
            return Err(overflow());
        }
        let magnitude = digits.parse::<BigInt>().unwrap_or_default();
        let value = if negative { -magnitude } else { magnitude };
        if scale < 0 {
            return Numeric::from_big(value * pow10((-scale).min(MAX_WHOLE_DIGITS) as u32), 0);
        }
        if scale > i64::from(MAX_SCALE) {
            let drop = u32::try_from(scale - i64::from(MAX_SCALE)).unwrap_or(u32::MAX);
            return Numeric::from_big(shrink(&value, drop), MAX_SCALE);
        }
        Numeric::from_big(value, scale as u32)
    }

    /// Appends the text form.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Numeric::NaN => out.extend_from_slice(b"NaN"),
            Numeric::Infinity => out.extend_from_slice(b"Infinity"),
            Numeric::NegInfinity => out.extend_from_slice(b"-Infinity"),
            Numeric::Small { value, scale } => {
                let mut buffer = [0u8; 20];
                let mut at = buffer.len();
                let mut rest = value.unsigned_abs();
                loop {
                    at -= 1;
                    buffer[at] = b'0' + (rest % 10) as u8;
                    rest /= 10;
                    if rest == 0 {
                        break;
                    }
                }
                write_digits(*value < 0, &buffer[at..], usize::from(*scale), out);
            }
            Numeric::Big(b) => {
                let text = b.value.magnitude().to_str_radix(10);
                let negative = b.value.sign() == Sign::Minus;
                write_digits(negative, text.as_bytes(), usize::from(b.scale), out);
            }
        }
    }

    /// Rounds to a scale (negative: to tens, hundreds …), half away from zero.
    pub fn round(&self, scale: i32) -> Numeric {
        self.rescale(scale, true)
    }

    /// Cuts to a scale (negative: to tens, hundreds …).
    pub fn trunc(&self, scale: i32) -> Numeric {
        self.rescale(scale, false)
    }

    fn rescale(&self, wanted: i32, round: bool) -> Numeric {
        let wanted = wanted.clamp(-(MAX_WHOLE_DIGITS as i32), MAX_SCALE as i32);
        let Some(scale) = self.scale() else { return self.clone() };
        let (shown, scale) = (wanted.max(0) as u32, scale as i32);
        if scale == wanted {
            return self.clone();
        }
        if let Numeric::Small { value, .. } = self {
            let (value, diff) = (*value, wanted - scale);
            if (0..=18).contains(&diff) {
                let grown = i128::from(value) * i128::from(POW10[diff as usize]);
                return Numeric::from_i128(grown, shown as u16);
            }
            if (-18..0).contains(&diff) && wanted >= 0 {
                let p = POW10[-diff as usize];
                let (q, r) = (value / p, value % p);
                let up = i64::from(round && r.unsigned_abs() >= p.unsigned_abs().div_ceil(2));
                return Numeric::new(q + up * value.signum(), shown as u16);
            }
        }
        let Some((value, _)) = self.parts() else { return self.clone() };
        let result = if wanted >= scale {
            value * pow10((wanted - scale) as u32)
        } else {
            let drop = (scale - wanted) as u32;
            let cut = if round { shrink(&value, drop) } else { value / pow10(drop) };
            if wanted < 0 { cut * pow10(-wanted as u32) } else { cut }
        };
        Numeric::from_big(result, shown).unwrap_or(Numeric::NaN)
    }

    /// Applies `numeric(precision, scale)`.
    ///
    /// # Errors
    /// `22003` numeric field overflow.
    pub fn apply_typmod(&self, typmod: i32) -> Result<Numeric> {
        let Some((precision, scale)) = unpack_typmod(typmod) else { return Ok(self.clone()) };
        if !self.is_finite() {
            if self.is_nan() {
                return Ok(Numeric::NaN);
            }
            return Err(err!(NUMERIC_VALUE_OUT_OF_RANGE, "numeric field overflow").detail(format!(
                "A field with precision {precision}, scale {scale} cannot hold an infinite value."
            )));
        }
        let rounded = self.round(scale);
        let room = precision - scale;
        match rounded.magnitude() {
            Some(m) if m >= i64::from(room) => {
                let bound = if room == 0 { "1".to_owned() } else { format!("10^{room}") };
                Err(err!(NUMERIC_VALUE_OUT_OF_RANGE, "numeric field overflow").detail(format!(
                    "A field with precision {precision}, scale {scale} must round to an absolute value less than {bound}."
                )))
            }
            _ => Ok(rounded),
        }
    }

    /// The nearest float8.
    pub fn to_f64(&self) -> f64 {
        match self {
            Numeric::NaN => f64::NAN,
            Numeric::Infinity => f64::INFINITY,
            Numeric::NegInfinity => f64::NEG_INFINITY,
            Numeric::Small { value, scale: 0 } => *value as f64,
            Numeric::Small { value, scale } if value.unsigned_abs() < 1 << 53 && *scale <= 18 => {
                // Both are exact in a float8 (10^18 has 42 bits without its twos), so one
                // correctly rounded division is the nearest.
                *value as f64 / POW10[usize::from(*scale)] as f64
            }
            _ => self.to_string().parse().unwrap_or(f64::NAN),
        }
    }

    /// A float8 with 15 significant digits, as PostgreSQL converts.
    pub fn from_f64(v: f64) -> Numeric {
        Numeric::from_float(v, format!("{v:.14e}"))
    }

    /// A float4 with 6 significant digits, as PostgreSQL converts.
    pub fn from_f32(v: f32) -> Numeric {
        Numeric::from_float(f64::from(v), format!("{v:.5e}"))
    }

    fn from_float(v: f64, text: String) -> Numeric {
        if v.is_nan() {
            return Numeric::NaN;
        }
        if v.is_infinite() {
            return if v > 0.0 { Numeric::Infinity } else { Numeric::NegInfinity };
        }
        // %g: trailing zeros go before the exponent applies.
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let mantissa = match mantissa.contains('.') {
            true => mantissa.trim_end_matches('0').trim_end_matches('.'),
            false => mantissa,
        };
        Numeric::parse(&format!("{mantissa}e{exponent}")).unwrap_or(Numeric::NaN)
    }

    /// The nearest integer, half away from zero; None when it isn't finite or doesn't fit.
    pub fn to_i64(&self) -> Option<i64> {
        match self.round(0) {
            Numeric::Small { value, .. } => Some(value),
            _ => None,
        }
    }

    /// The nearest integer of 128 bits.
    pub fn to_i128(&self) -> Option<i128> {
        match self.round(0) {
            Numeric::Small { value, .. } => Some(i128::from(value)),
            Numeric::Big(b) => b.value.to_i128(),
            _ => None,
        }
    }

    /// Digits after the point that are needed.
    pub fn min_scale(&self) -> Option<u32> {
        let (mut value, mut scale) = self.parts()?;
        if value.is_zero() {
            return Some(0);
        }
        while scale > 0 && (&value % 10u8).is_zero() {
            value /= 10u8;
            scale -= 1;
        }
        Some(scale)
    }
}

impl std::fmt::Display for Numeric {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = Vec::new();
        self.write(&mut out);
        f.write_str(std::str::from_utf8(&out).unwrap_or_default())
    }
}

impl From<i64> for Numeric {
    fn from(v: i64) -> Numeric {
        Numeric::new(v, 0)
    }
}

fn write_digits(negative: bool, digits: &[u8], scale: usize, out: &mut Vec<u8>) {
    if negative {
        out.push(b'-');
    }
    if digits.len() > scale {
        out.extend_from_slice(&digits[..digits.len() - scale]);
    } else {
        out.push(b'0');
    }
    if scale > 0 {
        out.push(b'.');
        let missing = scale.saturating_sub(digits.len());
        out.resize(out.len() + missing, b'0');
        out.extend_from_slice(&digits[digits.len().saturating_sub(scale)..]);
    }
}

/// Precision and scale of a typmod; None for -1.
pub fn unpack_typmod(typmod: i32) -> Option<(i32, i32)> {
    if typmod < 4 {
        return None;
    }
    let packed = typmod - 4;
    // The scale is an 11-bit signed number.
    Some(((packed >> 16) & 0xffff, ((packed & 0x7ff) ^ 1024) - 1024))
}

/// The typmod of `numeric(precision, scale)`.
pub fn pack_typmod(precision: i32, scale: i32) -> i32 {
    ((precision << 16) | (scale & 0x7ff)) + 4
}
