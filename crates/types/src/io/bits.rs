//! Text and binary forms of bit and bit varying.

use base::{Result, err};

use crate::datum::Bits;
use crate::oids;

/// Bits after which others get their turn.
const STEP: u32 = 1 << 14;

impl Bits {
    /// `len` bits, all 0.
    pub fn zeros(len: u32) -> Bits {
        Bits { len, bytes: vec![0; (len as usize).div_ceil(8)] }
    }

    /// The bits of an iterator.
    pub fn collect(bits: impl Iterator<Item = bool>) -> Bits {
        let mut out = Bits { len: 0, bytes: Vec::new() };
        for bit in bits {
            if out.len % 8 == 0 {
                out.bytes.push(0);
            }
            if bit {
                let last = out.bytes.len() - 1;
                out.bytes[last] |= 0x80 >> (out.len % 8);
            }
            out.len += 1;
            if out.len & (STEP - 1) == 0 {
                sched::give_way();
            }
        }
        out
    }

    /// The bit at a place from 0.
    pub fn get(&self, at: u32) -> bool {
        self.bytes[(at / 8) as usize] & (0x80 >> (at % 8)) != 0
    }

    /// All bits, in order.
    pub fn iter(&self) -> impl Iterator<Item = bool> + '_ {
        (0..self.len).map(|i| self.get(i))
    }

    /// B-tree order: by bytes, then by length.
    pub fn compare(&self, other: &Bits) -> std::cmp::Ordering {
        self.bytes.cmp(&other.bytes).then(self.len.cmp(&other.len))
    }

    /// Cut, or filled with zeros, to a length.
    pub fn resized(&self, len: u32) -> Bits {
        Bits::collect(self.iter().chain(std::iter::repeat(false)).take(len as usize))
    }
}

/// Reads `101`, `b101` or `x5`.
///
/// # Errors
/// `22P02`.
pub(super) fn parse(text: &str) -> Result<Bits> {
    let digit = |c: char, kind: &str| {
        err!(INVALID_TEXT_REPRESENTATION, "\"{c}\" is not a valid {kind} digit")
    };
    if let Some(hex) = text.strip_prefix(['x', 'X']) {
        let mut values = Vec::with_capacity(hex.len());
        for c in hex.chars() {
            values.push(c.to_digit(16).ok_or_else(|| digit(c, "hexadecimal"))?);
        }
        return Ok(Bits::collect(
            values.iter().flat_map(|v| (0..4).map(move |i| v & (8 >> i) != 0)),
        ));
    }
    let binary = text.strip_prefix(['b', 'B']).unwrap_or(text);
    let mut pieces = crate::bulk::unhurried(binary);
    if let Some(c) = pieces.find_map(|p| p.chars().find(|c| !matches!(c, '0' | '1'))) {
        return Err(digit(c, "binary"));
    }
    Ok(Bits::collect(binary.bytes().map(|b| b == b'1')))
}

/// Makes a bit string fit `bit(n)` or `varbit(n)`.
///
/// # Errors
/// `22026`, `22001`, unless `explicit`.
pub(crate) fn fit(ty: base::Oid, typmod: i32, bits: &Bits, explicit: bool) -> Result<Option<Bits>> {
    let Ok(limit) = u32::try_from(typmod) else { return Ok(None) };
    if limit == 0 {
        return Ok(None);
    }
    if ty == oids::BIT {
        return match bits.len == limit {
            true => Ok(None),
            false if explicit => Ok(Some(bits.resized(limit))),
            false => Err(err!(
                STRING_DATA_LENGTH_MISMATCH,
                "bit string length {} does not match type bit({limit})",
                bits.len
            )),
        };
    }
    match bits.len <= limit {
        true => Ok(None),
        false if explicit => Ok(Some(bits.resized(limit))),
        false => Err(err!(
            STRING_DATA_RIGHT_TRUNCATION,
            "bit string too long for type bit varying({limit})"
        )),
    }
}

/// Appends `101`.
pub(super) fn write(bits: &Bits, out: &mut Vec<u8>) {
    for from in (0..bits.len).step_by(STEP as usize) {
        if from > 0 {
            sched::give_way();
        }
        let to = bits.len.min(from + STEP);
        out.extend((from..to).map(|i| if bits.get(i) { b'1' } else { b'0' }));
    }
}

/// Appends the binary form: length in bits, bytes.
pub(super) fn send(bits: &Bits, out: &mut Vec<u8>) {
    out.extend_from_slice(&bits.len.to_be_bytes());
    out.extend_from_slice(&bits.bytes);
}

/// Reads the binary form; None when it is damaged.
pub(super) fn receive(bytes: &[u8]) -> Option<Bits> {
    let (len, rest) = bytes.split_first_chunk::<4>()?;
    let len = u32::from_be_bytes(*len);
    if rest.len() != (len as usize).div_ceil(8) || i32::try_from(len).is_err() {
        return None;
    }
    let mut bits = Bits { len, bytes: rest.to_vec() };
    if let (Some(last), 1..) = (bits.bytes.last_mut(), len % 8) {
        *last &= !(0xff_u8 >> (len % 8));
    }
    Some(bits)
}
