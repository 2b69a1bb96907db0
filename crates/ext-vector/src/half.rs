//! Numbers of two bytes: IEEE 754's binary16.

/// The nearest half, of two equally near the even one; infinite when it is too great.
pub fn from_float(number: f32) -> u16 {
    let bits = number.to_bits();
    let sign = (bits >> 16 & 0x8000) as u16;
    let magnitude = bits & 0x7fff_ffff;
    if magnitude > 0x7f80_0000 {
        return sign | 0x7e00;
    }
    // From here on it rounds up to infinity.
    if magnitude >= 0x477f_f000 {
        return sign | 0x7c00;
    }
    let rounded = |value: u32, cut: u32| {
        let (kept, rest, middle) = (value >> cut, value & ((1 << cut) - 1), 1 << (cut - 1));
        kept + u32::from(rest > middle || rest == middle && kept & 1 == 1)
    };
    let exponent = magnitude >> 23;
    if exponent >= 113 {
        return sign | rounded(magnitude - (112 << 23), 13) as u16;
    }
    if exponent < 102 {
        return sign;
    }
    let mantissa = magnitude & 0x7f_ffff | 0x80_0000;
    sign | rounded(mantissa, 126 - exponent) as u16
}

/// The number that a half stands for.
pub fn to_float(half: u16) -> f32 {
    let sign = u32::from(half & 0x8000) << 16;
    let (exponent, mantissa) = (u32::from(half >> 10 & 31), u32::from(half & 0x3ff));
    match exponent {
        0 => {
            let small = mantissa as f32 / 16_777_216.0;
            f32::from_bits(small.to_bits() | sign)
        }
        31 => f32::from_bits(sign | 0x7f80_0000 | mantissa << 13),
        _ => f32::from_bits(sign | (exponent + 112) << 23 | mantissa << 13),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_stays_itself() {
        for half in 0..=u16::MAX {
            if to_float(half).is_nan() {
                continue;
            }
            assert_eq!(from_float(to_float(half)), half);
        }
        assert_eq!(to_float(from_float(0.1)), 0.099_975_586);
        assert!(to_float(from_float(65520.0)).is_infinite());
        assert_eq!(to_float(from_float(65519.0)), 65504.0);
    }
}
