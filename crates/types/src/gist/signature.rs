//! Keys that are signatures: a set's elements, each as one bit of a row of bits. What a union covers has its bits.
//!
//! Sets with few elements keep the elements' codes themselves in leaves, so that the row is asked seldom:
//!
//! ```text
//!  | 0 | codes (4 bytes each), in order |      | 1 | bits |
//! ```

/// Bytes of a row of bits by default, as PostgreSQL's classes have it.
pub const BYTES: usize = 124;
/// Codes that a leaf keeps at most.
const CODES_MAX: usize = 64;

const CODES: u8 = 0;
const BITS: u8 = 1;

/// A hash code that stays what it is: it is on disk (FNV-1a, mixed).
pub fn code(bytes: &[u8]) -> u32 {
    let mut hash = 0x811c_9dc5u32;
    for byte in bytes {
        hash = (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    }
    hash ^= hash >> 16;
    hash = hash.wrapping_mul(0x85eb_ca6b);
    hash ^ hash >> 13
}

/// The key of a set, by the codes of its elements.
pub fn key_of(mut codes: Vec<u32>) -> Vec<u8> {
    codes.sort_unstable();
    codes.dedup();
    if codes.len() > CODES_MAX {
        let mut out = vec![0; 1 + BYTES];
        out[0] = BITS;
        codes.iter().for_each(|code| set(&mut out[1..], *code));
        return out;
    }
    let mut out = vec![CODES];
    codes.iter().for_each(|code| out.extend_from_slice(&code.to_le_bytes()));
    out
}

fn set(bits: &mut [u8], code: u32) {
    let bit = code as usize % (bits.len() * 8).max(1);
    bits[bit / 8] |= 1 << (bit % 8);
}

fn codes(key: &[u8]) -> Option<impl Iterator<Item = u32> + Clone + '_> {
    let [CODES, rest @ ..] = key else { return None };
    let (codes, _) = rest.as_chunks::<4>();
    Some(codes.iter().map(|c| u32::from_le_bytes(*c)))
}

/// A key's bits.
fn bits(key: &[u8]) -> Vec<u8> {
    match codes(key) {
        Some(codes) => {
            let mut out = vec![0; BYTES];
            codes.for_each(|code| set(&mut out, code));
            out
        }
        None => {
            let mut out = key.get(1..).unwrap_or_default().to_vec();
            out.resize(BYTES, 0);
            out
        }
    }
}

/// Whether an element with this code may be in a set with this key.
pub fn may_have(key: &[u8], code: u32) -> bool {
    if let Some(mut codes) = codes(key) {
        return codes.any(|own| own == code);
    }
    let bits = key.get(1..).unwrap_or_default();
    let bit = code as usize % (BYTES * 8);
    bits.get(bit / 8).is_none_or(|byte| byte & (1 << (bit % 8)) != 0)
}

/// The codes that a leaf keeps; None: bits only.
pub fn exact_codes(key: &[u8]) -> Option<Vec<u32>> {
    codes(key).map(Iterator::collect)
}

/// How many elements a set with this key has, at least as far as bits tell.
pub fn size(key: &[u8]) -> usize {
    match codes(key) {
        Some(codes) => codes.count(),
        None => bits(key).iter().map(|b| b.count_ones() as usize).sum(),
    }
}

/// The key that covers these; of a single one, its bits.
pub fn union(keys: &[&[u8]]) -> Vec<u8> {
    let mut out = vec![0; 1 + BYTES];
    out[0] = BITS;
    for key in keys {
        out[1..].iter_mut().zip(bits(key)).for_each(|(a, b)| *a |= b);
    }
    out
}

/// How many bits a key lacks of another.
pub fn penalty(cover: &[u8], new: &[u8]) -> f64 {
    let (cover, new) = (bits(cover), bits(new));
    cover.iter().zip(&new).map(|(a, b)| f64::from((b & !a).count_ones())).sum()
}

/// Parts keys by two of them that differ most, as far as can be seen from one (Guttman's linear way).
pub fn split(keys: &[&[u8]]) -> Vec<bool> {
    let all: Vec<Vec<u8>> = keys.iter().map(|key| bits(key)).collect();
    let apart =
        |a: &[u8], b: &[u8]| -> u32 { a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum() };
    let farthest = |from: usize| {
        (0..all.len()).max_by_key(|n| apart(&all[from], &all[*n])).unwrap_or_default()
    };
    let first = farthest(0);
    let second = farthest(first);
    if first == second {
        return (0..keys.len()).map(|n| n >= keys.len() / 2).collect();
    }
    let most = keys.len() * 2 / 3;
    let (mut left, mut right) = (all[first].clone(), all[second].clone());
    let (mut in_left, mut in_right) = (1, 1);
    let mut out = vec![false; keys.len()];
    for (n, own) in all.iter().enumerate() {
        if n == first || n == second {
            out[n] = n == second;
            continue;
        }
        let to_right = match (in_left >= most, in_right >= most) {
            (true, _) => true,
            (_, true) => false,
            _ => apart(own, &right) < apart(own, &left),
        };
        out[n] = to_right;
        let (side, count) =
            if to_right { (&mut right, &mut in_right) } else { (&mut left, &mut in_left) };
        side.iter_mut().zip(own).for_each(|(a, b)| *a |= b);
        *count += 1;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_a_set_is_in_its_key_and_in_what_covers_that() {
        let words: Vec<u32> = (0..200u32).map(|n| code(&n.to_le_bytes())).collect();
        let (few, many) = (key_of(words[..10].to_vec()), key_of(words.clone()));
        let both = union(&[&few, &many]);
        assert!(words[..10].iter().all(|w| may_have(&few, *w)));
        assert!(words.iter().all(|w| may_have(&many, *w) && may_have(&both, *w)));
        assert!(!may_have(&few, words[50]));
        assert_eq!(union(&[&both, &few]), both);
        assert_eq!(penalty(&both, &few), 0.0);
    }
}
