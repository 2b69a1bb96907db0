//! PostgreSQL's binary form: groups of four digits, their weight, sign, scale; and the
//! order-preserving form for keys.

use base::{Result, err};
use num_bigint::BigInt;

use super::{MAX_SCALE, Numeric, pow10};

const NEGATIVE: u16 = 0x4000;
const NAN: u16 = 0xC000;
const PLUS_INFINITY: u16 = 0xD000;
const MINUS_INFINITY: u16 = 0xF000;

impl Numeric {
    /// Appends the binary form.
    pub fn send(&self, out: &mut Vec<u8>) {
        let special = match self {
            Numeric::NaN => Some(NAN),
            Numeric::Infinity => Some(PLUS_INFINITY),
            Numeric::NegInfinity => Some(MINUS_INFINITY),
            _ => None,
        };
        let mut put = |v: u16| out.extend_from_slice(&v.to_be_bytes());
        if let Some(sign) = special {
            [0, 0, sign, 0].into_iter().for_each(put);
            return;
        }
        let (groups, weight) = self.groups();
        put(groups.len() as u16);
        put(weight as u16);
        put(if self.signum() < 0 { NEGATIVE } else { 0 });
        put(self.scale().unwrap_or(0) as u16);
        groups.into_iter().for_each(put);
    }

    /// The same of a number; None for NaN and the infinities.
    pub(crate) fn base_10000(&self) -> Option<(Vec<u16>, i32)> {
        self.parts().map(|_| self.groups())
    }

    /// Digits in base 10000 without leading and trailing zeros, and the first one's weight.
    fn groups(&self) -> (Vec<u16>, i32) {
        let (value, scale) = self.parts().unwrap_or_default();
        let text = value.magnitude().to_str_radix(10);
        let mut digits = text.into_bytes();
        let mut after = scale as usize;
        while !after.is_multiple_of(4) {
            digits.push(b'0');
            after += 1;
        }
        let lead = (4 - digits.len() % 4) % 4;
        let mut padded = vec![b'0'; lead];
        padded.append(&mut digits);
        let mut groups: Vec<u16> = padded
            .chunks_exact(4)
            .map(|c| c.iter().fold(0u16, |v, b| v * 10 + u16::from(b - b'0')))
            .collect();
        let mut weight = groups.len() as i32 - 1 - (after / 4) as i32;
        let zeros = groups.iter().take_while(|g| **g == 0).count();
        groups.drain(..zeros);
        weight -= zeros as i32;
        while groups.last() == Some(&0) {
            groups.pop();
        }
        if groups.is_empty() { (groups, 0) } else { (groups, weight) }
    }

    /// Reads the binary form.
    ///
    /// # Errors
    /// `22P03`.
    pub fn receive(bytes: &[u8]) -> Result<Numeric> {
        let short = || err!(INVALID_BINARY_REPRESENTATION, "insufficient data left in message");
        let word = |i: usize| {
            bytes.get(i * 2..i * 2 + 2).map(|b| u16::from_be_bytes([b[0], b[1]])).ok_or_else(short)
        };
        let (count, weight, sign, scale) =
            (usize::from(word(0)?), i32::from(word(1)? as i16), word(2)?, u32::from(word(3)?));
        match sign {
            NAN => return Ok(Numeric::NaN),
            PLUS_INFINITY => return Ok(Numeric::Infinity),
            MINUS_INFINITY => return Ok(Numeric::NegInfinity),
            0 | NEGATIVE => {}
            _ => {
                return Err(err!(
                    INVALID_BINARY_REPRESENTATION,
                    "invalid sign in external \"numeric\" value"
                ));
            }
        }
        if scale > MAX_SCALE {
            return Err(err!(
                INVALID_BINARY_REPRESENTATION,
                "invalid scale in external \"numeric\" value"
            ));
        }
        let mut value = BigInt::default();
        for i in 0..count {
            let digit = word(4 + i)?;
            if digit >= 10000 {
                return Err(err!(
                    INVALID_BINARY_REPRESENTATION,
                    "invalid digit in external \"numeric\" value"
                ));
            }
            value = value * 10000u16 + digit;
        }
        // The last group's unit is 10^(4 * (weight - count + 1)); what `scale` doesn't show is cut.
        let shift = i64::from(weight - count as i32 + 1) * 4 + i64::from(scale);
        value = if shift >= 0 { value * pow10(shift as u32) } else { value / pow10(-shift as u32) };
        if sign == NEGATIVE {
            value = -value;
        }
        Numeric::from_big(value, scale)
    }

    /// Appends bytes that `memcmp` orders as the numbers: class, position of the first digit, pairs
    /// of digits (1 to 100, so that the closing 0 sorts first); negative numbers inverted.
    pub(crate) fn key(&self, out: &mut Vec<u8>) {
        let class = match self {
            Numeric::NegInfinity => 0,
            n if n.is_finite() && n.signum() < 0 => 1,
            n if n.is_zero() => 2,
            n if n.is_finite() => 3,
            Numeric::Infinity => 4,
            _ => 5,
        };
        out.push(class);
        let Some(magnitude) = self.magnitude() else { return };
        let start = out.len();
        out.extend_from_slice(&(magnitude as i32 ^ i32::MIN).to_be_bytes());
        let (value, _) = self.parts().unwrap_or_default();
        let text = match self {
            Numeric::Small { value, .. } => value.unsigned_abs().to_string(),
            _ => value.magnitude().to_str_radix(10),
        };
        for pair in text.trim_end_matches('0').as_bytes().chunks(2) {
            let second = pair.get(1).map_or(0, |b| b - b'0');
            out.push((pair[0] - b'0') * 10 + second + 1);
        }
        out.push(0);
        if class == 1 {
            out[start..].iter_mut().for_each(|b| *b = !*b);
        }
    }

    /// Appends the form for rows: scale, flags, then the integer's bytes.
    pub(crate) fn store(&self, out: &mut Vec<u8>) {
        match self {
            Numeric::Small { value, scale } => {
                out.extend_from_slice(&scale.to_le_bytes());
                // As few bytes as hold the sign.
                let bits = 65 - (value ^ (value >> 63)).leading_zeros() as usize;
                out.extend_from_slice(&value.to_le_bytes()[..bits.div_ceil(8)]);
            }
            Numeric::Big(b) => {
                out.extend_from_slice(&b.scale.to_le_bytes());
                out.extend_from_slice(&b.value.to_signed_bytes_le());
            }
            Numeric::NaN => out.extend_from_slice(&NAN.to_le_bytes()),
            Numeric::Infinity => out.extend_from_slice(&PLUS_INFINITY.to_le_bytes()),
            Numeric::NegInfinity => out.extend_from_slice(&MINUS_INFINITY.to_le_bytes()),
        }
    }

    /// Reads a number of up to 64 bits that stands with its length (one byte) in front at an offset
    /// and ends before `end`: all digits, and how many of them stand after the point. None when it is
    /// of another kind, or too near to the end of the bytes for a quick look.
    #[inline]
    pub(crate) fn load_small(bytes: &[u8], at: usize, end: u32) -> Option<(i64, u16)> {
        let window: &[u8; 11] = bytes.get(at..at + 11)?.first_chunk()?;
        let [len, low, high, word @ ..] = *window;
        let (digits, scale) = (u32::from(len).wrapping_sub(2), u16::from_le_bytes([low, high]));
        let fits = at + usize::from(len) < end as usize;
        if !(1..=8).contains(&digits) || u32::from(scale) > MAX_SCALE || !fits {
            return None;
        }
        let unused = 64 - 8 * digits;
        Some((((u64::from_le_bytes(word) << unused) as i64) >> unused, scale))
    }

    /// Reads what [`Numeric::store`] wrote; None if it can't be.
    pub(crate) fn load(bytes: &[u8]) -> Option<Numeric> {
        let (head, digits) = bytes.split_at_checked(2)?;
        let scale = u16::from_le_bytes([head[0], head[1]]);
        match scale {
            NAN => return Some(Numeric::NaN),
            PLUS_INFINITY => return Some(Numeric::Infinity),
            MINUS_INFINITY => return Some(Numeric::NegInfinity),
            _ => {}
        }
        if u32::from(scale) > MAX_SCALE {
            return None;
        }
        if digits.len() <= 8 {
            // The first byte to the lowest place, the sign from the last one.
            let word = digits.iter().rev().fold(0u64, |word, byte| word << 8 | u64::from(*byte));
            let unused = 64 - 8 * digits.len() as u32;
            let value = (word.checked_shl(unused)? as i64) >> unused;
            return Some(Numeric::new(value, scale));
        }
        Numeric::from_big(BigInt::from_signed_bytes_le(digits), u32::from(scale)).ok()
    }
}
