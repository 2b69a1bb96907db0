//! Text and binary forms of bit and bit varying.

use base::{Result, err};

use crate::datum::Bits;
use crate::oids;

/// The longest bit string, as PostgreSQL has it.
const LEN_MAX: u32 = i32::MAX as u32 - 8 + 1;
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
    let (digits, kind, radix) = match text.strip_prefix(['x', 'X']) {
        Some(hex) => (hex, "hexadecimal", 16),
        None => (text.strip_prefix(['b', 'B']).unwrap_or(text), "binary", 2),
    };
    // How many bits a digit has, and how many digits a byte.
    let (width, per_byte) = if radix == 16 { (4, 2) } else { (1, 8) };
    let too_long = || {
        err!(PROGRAM_LIMIT_EXCEEDED, "bit string length exceeds the maximum allowed ({})", LEN_MAX)
    };
    let len = u32::try_from(digits.len()).ok().and_then(|count| count.checked_mul(width));
    let len = len.filter(|len| *len <= LEN_MAX);
    let mut bytes = Vec::new();
    if digits.len() > crate::bulk::PIECE_BYTES {
        crate::bulk::ask(digits.len() / per_byte)?;
        bytes.reserve_exact(digits.len().div_ceil(per_byte));
    }
    for piece in crate::bulk::byte_pieces(digits.as_bytes()) {
        for of_byte in piece?.chunks(per_byte) {
            let mut byte = 0;
            for (n, c) in of_byte.iter().enumerate() {
                let Some(value) = char::from(*c).to_digit(radix) else {
                    // The digits before it are ASCII, so that it begins a character.
                    let at = bytes.len() * per_byte + n;
                    return Err(digit(digits[at..].chars().next().unwrap_or('?'), kind));
                };
                byte |= (value as u8) << (8 - width as usize * (n + 1));
            }
            bytes.push(byte);
        }
    }
    let len = len.ok_or_else(too_long)?;
    Ok(Bits { len, bytes })
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
