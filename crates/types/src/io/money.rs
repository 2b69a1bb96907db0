//! Text of money, in the conventions of the C locale: `-$1,234.56`.

use base::{Result, err};

use super::invalid_syntax;

/// Reads money: an optional sign or parentheses, `$`, digits with commas, two decimals.
///
/// # Errors
/// `22P02`, `22003`.
pub(super) fn parse(text: &str) -> Result<i64> {
    let fail = || invalid_syntax("money", text);
    let range =
        || err!(NUMERIC_VALUE_OUT_OF_RANGE, "value \"{text}\" is out of range for type money");
    let (mut negative, mut rest) = (false, text.trim());
    loop {
        rest = match rest.as_bytes().first() {
            Some(b'(' | b'-') => {
                negative = true;
                &rest[1..]
            }
            Some(b'$' | b'+' | b' ') => &rest[1..],
            _ => break,
        };
    }
    let mut value: i64 = 0;
    let mut decimals = None;
    let mut chars = rest.chars().peekable();
    while let Some(c) = chars.next_if(|c| c.is_ascii_digit() || matches!(c, ',' | '.')) {
        let digit = match (c, decimals) {
            ('.', None) => {
                decimals = Some(0);
                continue;
            }
            ('.', Some(_)) => return Err(fail()),
            (',', _) => continue,
            (c, _) => i64::from(c.to_digit(10).unwrap_or(0)),
        };
        match &mut decimals {
            Some(2) => {
                // Rounded by the third decimal; the others don't count.
                if digit >= 5 {
                    value = value.checked_sub(1).ok_or_else(range)?;
                }
                decimals = Some(3);
                continue;
            }
            Some(3) => continue,
            Some(n) => *n += 1,
            None => {}
        }
        value = value.checked_mul(10).and_then(|v| v.checked_sub(digit)).ok_or_else(range)?;
    }
    for _ in decimals.unwrap_or(0).min(2)..2 {
        value = value.checked_mul(10).ok_or_else(range)?;
    }
    if chars.any(|c| !matches!(c, ' ' | ')' | '-' | '+' | '$')) {
        return Err(fail());
    }
    if rest.ends_with('-') {
        negative = true;
    }
    if negative { Ok(value) } else { value.checked_neg().ok_or_else(range) }
}

/// Appends money.
pub(super) fn write(value: i64, out: &mut Vec<u8>) {
    if value < 0 {
        out.push(b'-');
    }
    out.push(b'$');
    let cents = value.unsigned_abs();
    let whole = (cents / 100).to_string();
    for (i, digit) in whole.bytes().enumerate() {
        if i > 0 && (whole.len() - i) % 3 == 0 {
            out.push(b',');
        }
        out.push(digit);
    }
    out.extend_from_slice(format!(".{:02}", cents % 100).as_bytes());
}
