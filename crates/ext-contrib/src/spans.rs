//! Helpers of classes over numbers.

/// Eight bytes in whose order numbers are; NaN comes last.
pub fn ordered(number: f64) -> [u8; 8] {
    let bits = if number.is_nan() { f64::NAN.to_bits() & !(1 << 63) } else { number.to_bits() };
    let bits = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
    bits.to_be_bytes()
}

/// Which of some values belong to the greater half.
pub fn halves(values: &[f64]) -> Vec<bool> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut out = vec![false; values.len()];
    order[values.len() / 2..].iter().for_each(|n| out[*n] = true);
    out
}
