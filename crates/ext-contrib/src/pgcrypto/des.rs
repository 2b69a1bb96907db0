//! DES as `crypt` has it: the salt exchanges bits of the expanded half. Sources: FIPS 46-3; D. Burren's description
//! of the extended form (a count of rounds and a salt of 24 bits, keys of any length).

/// The S-boxes, by all six bits of a group.
#[rustfmt::skip]
const S: [[u8; 64]; 8] = [
    [
        14,  0,  4, 15, 13,  7,  1,  4,  2, 14, 15,  2, 11, 13,  8,  1,
         3, 10, 10,  6,  6, 12, 12, 11,  5,  9,  9,  5,  0,  3,  7,  8,
         4, 15,  1, 12, 14,  8,  8,  2, 13,  4,  6,  9,  2,  1, 11,  7,
        15,  5, 12, 11,  9,  3,  7, 14,  3, 10, 10,  0,  5,  6,  0, 13,
    ],
    [
        15,  3,  1, 13,  8,  4, 14,  7,  6, 15, 11,  2,  3,  8,  4, 14,
         9, 12,  7,  0,  2,  1, 13, 10, 12,  6,  0,  9,  5, 11, 10,  5,
         0, 13, 14,  8,  7, 10, 11,  1, 10,  3,  4, 15, 13,  4,  1,  2,
         5, 11,  8,  6, 12,  7,  6, 12,  9,  0,  3,  5,  2, 14, 15,  9,
    ],
    [
        10, 13,  0,  7,  9,  0, 14,  9,  6,  3,  3,  4, 15,  6,  5, 10,
         1,  2, 13,  8, 12,  5,  7, 14, 11, 12,  4, 11,  2, 15,  8,  1,
        13,  1,  6, 10,  4, 13,  9,  0,  8,  6, 15,  9,  3,  8,  0,  7,
        11,  4,  1, 15,  2, 14, 12,  3,  5, 11, 10,  5, 14,  2,  7, 12,
    ],
    [
         7, 13, 13,  8, 14, 11,  3,  5,  0,  6,  6, 15,  9,  0, 10,  3,
         1,  4,  2,  7,  8,  2,  5, 12, 11,  1, 12, 10,  4, 14, 15,  9,
        10,  3,  6, 15,  9,  0,  0,  6, 12, 10, 11,  1,  7, 13, 13,  8,
        15,  9,  1,  4,  3,  5, 14, 11,  5, 12,  2,  7,  8,  2,  4, 14,
    ],
    [
         2, 14, 12, 11,  4,  2,  1, 12,  7,  4, 10,  7, 11, 13,  6,  1,
         8,  5,  5,  0,  3, 15, 15, 10, 13,  3,  0,  9, 14,  8,  9,  6,
         4, 11,  2,  8,  1, 12, 11,  7, 10,  1, 13, 14,  7,  2,  8, 13,
        15,  6,  9, 15, 12,  0,  5,  9,  6, 10,  3,  4,  0,  5, 14,  3,
    ],
    [
        12, 10,  1, 15, 10,  4, 15,  2,  9,  7,  2, 12,  6,  9,  8,  5,
         0,  6, 13,  1,  3, 13,  4, 14, 14,  0,  7, 11,  5,  3, 11,  8,
         9,  4, 14,  3, 15,  2,  5, 12,  2,  9,  8,  5, 12, 15,  3, 10,
         7, 11,  0, 14,  4,  1, 10,  7,  1,  6, 13,  0, 11,  8,  6, 13,
    ],
    [
         4, 13, 11,  0,  2, 11, 14,  7, 15,  4,  0,  9,  8,  1, 13, 10,
         3, 14, 12,  3,  9,  5,  7, 12,  5,  2, 10, 15,  6,  8,  1,  6,
         1,  6,  4, 11, 11, 13, 13,  8, 12,  1,  3,  4,  7, 10, 14,  7,
        10,  9, 15,  5,  6,  0,  8, 15,  0, 14,  5,  2,  9,  3,  2, 12,
    ],
    [
        13,  1,  2, 15,  8, 13,  4,  8,  6, 10, 15,  3, 11,  7,  1,  4,
        10, 12,  9,  5,  3,  6, 14, 11,  5,  0,  0, 14, 12,  9,  7,  2,
         7,  2, 11,  1,  4, 14,  1,  7,  9,  4, 12, 10, 14,  8,  2, 13,
         0, 15,  6, 12, 10,  9, 13,  0, 15,  3,  3,  5,  5,  6,  8, 11,
    ],
];

/// Where each bit comes from, counted from 1 at the highest.
const IP: [u8; 64] = [
    58, 50, 42, 34, 26, 18, 10, 2, 60, 52, 44, 36, 28, 20, 12, 4, 62, 54, 46, 38, 30, 22, 14, 6,
    64, 56, 48, 40, 32, 24, 16, 8, 57, 49, 41, 33, 25, 17, 9, 1, 59, 51, 43, 35, 27, 19, 11, 3, 61,
    53, 45, 37, 29, 21, 13, 5, 63, 55, 47, 39, 31, 23, 15, 7,
];
const P: [u8; 32] = [
    16, 7, 20, 21, 29, 12, 28, 17, 1, 15, 23, 26, 5, 18, 31, 10, 2, 8, 24, 14, 32, 27, 3, 9, 19,
    13, 30, 6, 22, 11, 4, 25,
];
const PC1: [u8; 56] = [
    57, 49, 41, 33, 25, 17, 9, 1, 58, 50, 42, 34, 26, 18, 10, 2, 59, 51, 43, 35, 27, 19, 11, 3, 60,
    52, 44, 36, 63, 55, 47, 39, 31, 23, 15, 7, 62, 54, 46, 38, 30, 22, 14, 6, 61, 53, 45, 37, 29,
    21, 13, 5, 28, 20, 12, 4,
];
const PC2: [u8; 48] = [
    14, 17, 11, 24, 1, 5, 3, 28, 15, 6, 21, 10, 23, 19, 12, 4, 26, 8, 16, 7, 27, 20, 13, 2, 41, 52,
    31, 37, 47, 55, 30, 40, 51, 45, 33, 48, 44, 49, 39, 56, 34, 53, 46, 42, 50, 36, 29, 32,
];

/// Bits of a number of `width` bits, rearranged.
const fn permuted(value: u64, width: u32, from: &[u8]) -> u64 {
    let (mut out, mut n) = (0, 0);
    while n < from.len() {
        out = out << 1 | value >> (width - from[n] as u32) & 1;
        n += 1;
    }
    out
}

/// The boxes with the permutation behind them.
static BOXES: [[u32; 64]; 8] = {
    let mut out = [[0; 64]; 8];
    let mut n = 0;
    while n < 8 {
        let mut six = 0;
        while six < 64 {
            let raw = (S[n][six] as u64) << (28 - 4 * n);
            out[n][six] = permuted(raw, 32, &P) as u32;
            six += 1;
        }
        n += 1;
    }
    out
};

/// The keys of the sixteen rounds, in halves of 24 bits.
pub struct Key([(u32, u32); 16]);

impl Key {
    /// Of eight bytes, whose lowest bits don't count.
    pub fn new(bytes: [u8; 8]) -> Key {
        const SHIFTS: [u8; 16] = [1, 1, 2, 2, 2, 2, 2, 2, 1, 2, 2, 2, 2, 2, 2, 1];
        let both = permuted(u64::from_be_bytes(bytes), 64, &PC1);
        let (mut c, mut d) = (both >> 28, both & 0x0fff_ffff);
        let turn = |half: u64, by: u8| (half << by | half >> (28 - by)) & 0x0fff_ffff;
        Key(SHIFTS.map(|by| {
            (c, d) = (turn(c, by), turn(d, by));
            let key = permuted(c << 28 | d, 56, &PC2);
            ((key >> 24) as u32, key as u32 & 0xff_ffff)
        }))
    }

    /// Encrypts a block `count` times. `salt`: which of the 24 bits, from the lowest, are exchanged with the other half's.
    pub fn encrypt(&self, block: [u8; 8], salt: u32, count: u32) -> [u8; 8] {
        let swapped = salt.reverse_bits() >> 8;
        let start = permuted(u64::from_be_bytes(block), 64, &IP);
        let (mut l, mut r) = ((start >> 32) as u32, start as u32);
        for _ in 0..count {
            for (k0, k1) in self.0 {
                let (a, b) = expanded(r);
                let differ = (a ^ b) & swapped;
                let (a, b) = (a ^ differ ^ k0, b ^ differ ^ k1);
                let six = |half: u32, n: u32| (half >> (18 - 6 * n) & 63) as usize;
                let mut f = 0;
                for n in 0..4 {
                    f ^= BOXES[n as usize][six(a, n)] ^ BOXES[n as usize + 4][six(b, n)];
                }
                (l, r) = (r, l ^ f);
            }
            (l, r) = (r, l);
        }
        let last = u64::from(l) << 32 | u64::from(r);
        let mut out = 0u64;
        for (n, from) in IP.iter().enumerate() {
            out |= (last >> (63 - n) & 1) << (64 - u32::from(*from));
        }
        out.to_be_bytes()
    }
}

/// A half of 32 bits as eight groups of six, four each.
fn expanded(half: u32) -> (u32, u32) {
    let group = |n: u32| half.rotate_left(4 * n + 5) & 63;
    let four = |from: u32| (from..from + 4).fold(0, |out, n| out << 6 | group(n));
    (four(0), four(4))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_salt_it_is_des() {
        let key = Key::new([0x13, 0x34, 0x57, 0x79, 0x9b, 0xbc, 0xdf, 0xf1]);
        let block = [0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef];
        let wanted = [0x85, 0xe8, 0x13, 0x54, 0x0f, 0x0a, 0xb4, 0x05];
        assert_eq!(key.encrypt(block, 0, 1), wanted);
    }
}
