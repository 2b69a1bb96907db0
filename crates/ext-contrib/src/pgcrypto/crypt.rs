//! Hashes of passwords: `crypt` and `gen_salt`.
//!
//! Sources: N. Provos and D. Mazières, "A Future-Adaptable Password Scheme" (1999; `$2a$`, and `$2x$` with the widely
//! used mistake of extending signs); P.-H. Kamp's MD5 scheme (`$1$`); crypt(3) of UNIX, and its extended form (`_`).

use base::{Result, bail, err};
use blowfish::Blowfish;
use md5::{Digest, Md5};

use super::des;
use crate::common::random;

const DIGITS: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const BF_DIGITS: &[u8; 64] = b"./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

fn invalid_salt() -> base::Error {
    err!(INVALID_PARAMETER_VALUE, "invalid salt")
}

/// Appends digits of a number, the lowest first.
fn digits(mut value: u32, count: usize, out: &mut String) {
    for _ in 0..count {
        out.push(char::from(DIGITS[value as usize & 63]));
        value >>= 6;
    }
}

/// A digit's value; other characters are zero.
fn value(digit: u8) -> u32 {
    DIGITS.iter().position(|d| *d == digit).unwrap_or(0) as u32
}

/// The hash of a password.
///
/// # Errors
/// `22023` for a salt that is none; `38000` for a scheme that isn't there.
pub fn crypt(password: &str, salt: &str) -> Result<String> {
    let upto = |text: &str| text.as_bytes().split(|b| *b == 0).next().unwrap_or_default().to_vec();
    let (password, salt) = (upto(password), upto(salt));
    match salt.as_slice() {
        [b'$', b'2', b'a' | b'x', b'$', ..] => with_blowfish(&password, &salt),
        [b'$', b'2', b'$', ..] => {
            bail!(EXTERNAL_ROUTINE_INVOCATION_EXCEPTION, "crypt(3) returned NULL")
        }
        [b'$', b'1', b'$', ..] => Ok(with_md5(&password, &salt)),
        _ => with_des(&password, &salt),
    }
}

fn with_des(password: &[u8], salt: &[u8]) -> Result<String> {
    let mut out = Vec::new();
    let mut rest = password;
    let mut part = [0; 8];
    take(&mut rest, &mut part);
    let (salt_bits, count) = match salt {
        [b'_', ..] => {
            let setting = salt.get(1..9).ok_or_else(invalid_salt)?;
            let number =
                |d: &[u8]| d.iter().enumerate().fold(0, |n, (at, d)| n | value(*d) << (6 * at));
            while !rest.is_empty() {
                part = des::Key::new(part).encrypt(part, 0, 1);
                take(&mut rest, &mut part);
            }
            out.extend_from_slice(&salt[..9]);
            (number(&setting[4..]), number(&setting[..4]))
        }
        [a, b, ..] => {
            out.extend([*a, *b]);
            (value(*b) << 6 | value(*a), 25)
        }
        _ => return Err(invalid_salt()),
    };
    let key = des::Key::new(part);
    let mut block = [0; 8];
    let mut left = count;
    // In steps, so that a count of millions can be stopped.
    block = match count {
        0..=100_000 => key.encrypt(block, salt_bits, count),
        _ => {
            while left > 0 {
                sched::check_interrupts_now()?;
                let step = left.min(100_000);
                block = key.encrypt(block, salt_bits, step);
                left -= step;
            }
            block
        }
    };
    let bits = u64::from_be_bytes(block);
    let digit = |n: u32| DIGITS[((u128::from(bits) << 2) >> (60 - 6 * n) & 63) as usize];
    out.extend((0..11).map(digit));
    String::from_utf8(out).map_err(|_| invalid_salt())
}

/// Adds eight bytes of a password to a block, each in the upper seven bits.
fn take(rest: &mut &[u8], block: &mut [u8; 8]) {
    let (now, later) = rest.split_at(rest.len().min(8));
    block.iter_mut().zip(now).for_each(|(b, c)| *b ^= c << 1);
    *rest = later;
}

fn with_md5(password: &[u8], salt: &[u8]) -> String {
    let salt = &salt[3..];
    let salt = salt.split(|b| *b == b'$').next().unwrap_or_default();
    let salt = &salt[..salt.len().min(8)];
    let inner = Md5::new().chain_update(password).chain_update(salt).chain_update(password);
    let inner = inner.finalize();
    let mut hash = Md5::new().chain_update(password).chain_update(b"$1$").chain_update(salt);
    for from in (0..password.len()).step_by(16) {
        hash.update(&inner[..(password.len() - from).min(16)]);
    }
    let mut length = password.len();
    while length > 0 {
        let first = password.first().copied().unwrap_or_default();
        hash.update([if length & 1 == 1 { 0 } else { first }]);
        length >>= 1;
    }
    let mut now = hash.finalize();
    for round in 0..1000 {
        let mut hash = Md5::new();
        let odd = round & 1 == 1;
        hash.update(if odd { password } else { &now[..] });
        if round % 3 != 0 {
            hash.update(salt);
        }
        if round % 7 != 0 {
            hash.update(password);
        }
        hash.update(if odd { &now[..] } else { password });
        now = hash.finalize();
    }
    let mut out = format!("$1${}$", String::from_utf8_lossy(salt));
    let byte = |n: usize| u32::from(now[n]);
    for (a, b, c) in [(0, 6, 12), (1, 7, 13), (2, 8, 14), (3, 9, 15), (4, 10, 5)] {
        digits(byte(a) << 16 | byte(b) << 8 | byte(c), 4, &mut out);
    }
    digits(byte(11), 2, &mut out);
    out
}

/// Base 64 in bcrypt's digits, without padding.
fn bf_encode(bytes: &[u8], out: &mut String) {
    for three in bytes.chunks(3) {
        let all = three.iter().fold(0u32, |n, b| n << 8 | u32::from(*b)) << (8 * (3 - three.len()));
        for n in 0..=three.len() {
            out.push(char::from(BF_DIGITS[(all >> (18 - 6 * n)) as usize & 63]));
        }
    }
}

fn with_blowfish(password: &[u8], setting: &[u8]) -> Result<String> {
    let [_, _, minor, _, tens, ones, b'$', rest @ ..] = setting else { return Err(invalid_salt()) };
    let cost = match (tens, ones) {
        (b'0'..=b'2', b'0'..=b'9') | (b'3', b'0' | b'1') => {
            u32::from(tens - b'0') * 10 + u32::from(ones - b'0')
        }
        _ => return Err(invalid_salt()),
    };
    let text = rest.get(..22).ok_or_else(invalid_salt)?;
    let mut bits = 0u128;
    for (n, digit) in text.iter().enumerate() {
        let value = BF_DIGITS.iter().position(|d| d == digit).ok_or_else(invalid_salt)? as u128;
        bits = if n < 21 { bits << 6 | value } else { bits << 2 | value >> 4 };
    }
    if cost < 4 {
        return Err(invalid_salt());
    }
    let salt = bits.to_be_bytes();
    // The eighteen words that the key is repeated over, with the byte of zero at its end.
    let mut key = Vec::with_capacity(72);
    let mut bytes = password.iter().chain([&0]).cycle();
    for _ in 0..18 {
        let word = (0..4).fold(0u32, |word, _| {
            let byte = bytes.next().copied().unwrap_or_default();
            let wide = if *minor == b'x' { byte as i8 as u32 } else { u32::from(byte) };
            word << 8 | wide
        });
        key.extend_from_slice(&word.to_be_bytes());
    }
    let mut state = Blowfish::bc_init_state();
    state.salted_expand_key(&salt, &key);
    for round in 0..1u32 << cost {
        if round % 64 == 0 {
            sched::check_interrupts_now()?;
        }
        state.bc_expand_key(&key);
        state.bc_expand_key(&salt);
    }
    let mut out = String::from_utf8_lossy(&setting[..7]).into_owned();
    bf_encode(&salt, &mut out);
    let mut hash = Vec::with_capacity(24);
    for two in b"OrpheanBeholderScryDoubt".chunks_exact(8) {
        let word = |n: usize| u32::from_be_bytes([two[n], two[n + 1], two[n + 2], two[n + 3]]);
        let block = (0..64).fold([word(0), word(4)], |block, _| state.bc_encrypt(block));
        hash.extend(block.iter().flat_map(|w| w.to_be_bytes()));
    }
    bf_encode(&hash[..23], &mut out);
    Ok(out)
}

/// A salt of a scheme; `rounds`: as many, or the scheme's own number for 0.
///
/// # Errors
/// `22023`.
pub fn gen_salt(scheme: &str, rounds: i32) -> Result<String> {
    let (usual, least, most, random_bytes) = match scheme {
        "des" | "md5" => (0, i32::MIN, i32::MAX, 6),
        "xdes" => (725, 1, 0xff_ffff, 3),
        "bf" => (6, 4, 31, 16),
        _ => bail!(INVALID_PARAMETER_VALUE, "gen_salt: Unknown salt algorithm"),
    };
    let wrong = || err!(INVALID_PARAMETER_VALUE, "gen_salt: Incorrect number of rounds");
    let rounds = if rounds == 0 { usual } else { rounds };
    let fits = match scheme {
        "des" => matches!(rounds, 0 | 25),
        "md5" => matches!(rounds, 0 | 1000),
        _ => (least..=most).contains(&rounds),
    };
    if !fits || scheme == "xdes" && rounds % 2 == 0 {
        return Err(wrong());
    }
    let mut bytes = vec![0; random_bytes];
    random(&mut bytes)?;
    let number = |three: &[u8]| three.iter().rev().fold(0u32, |n, b| n << 8 | u32::from(*b));
    let mut out = String::new();
    match scheme {
        "des" => digits(number(&bytes[..2]), 2, &mut out),
        "md5" => {
            out.push_str("$1$");
            digits(number(&bytes[..3]), 4, &mut out);
            digits(number(&bytes[3..]), 4, &mut out);
        }
        "xdes" => {
            out.push('_');
            digits(rounds as u32, 4, &mut out);
            digits(number(&bytes), 4, &mut out);
        }
        _ => {
            out = format!("$2a${rounds:02}$");
            bf_encode(&bytes, &mut out);
        }
    }
    Ok(out)
}
