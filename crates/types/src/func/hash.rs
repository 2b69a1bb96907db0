//! PostgreSQL's hash functions (`hashtext`, `hashint4`, …): applications use them to choose
//! advisory locks and partitions, so their values are PostgreSQL's. (Source: Bob Jenkins' lookup3,
//! public domain; what is hashed for each type is a fact of PostgreSQL 15.)
//!
//! The server's own hash tables use [`crate::order::hash`].

use super::{Body, NamedBody, S};
use crate::datum::Datum;
use crate::order::trim_bpchar;

const START: u32 = 0x9e37_79b9;

fn mix(s: &mut [u32; 3]) {
    for (x, y, z, r) in
        [(0, 2, 1, 4), (1, 0, 2, 6), (2, 1, 0, 8), (0, 2, 1, 16), (1, 0, 2, 19), (2, 1, 0, 4)]
    {
        s[x] = s[x].wrapping_sub(s[y]) ^ s[y].rotate_left(r);
        s[y] = s[y].wrapping_add(s[z]);
    }
}

fn finish(s: &mut [u32; 3]) {
    for (x, y, r) in
        [(2, 1, 14), (0, 2, 11), (1, 0, 25), (2, 1, 16), (0, 2, 4), (1, 0, 14), (2, 1, 24)]
    {
        s[x] = (s[x] ^ s[y]).wrapping_sub(s[y].rotate_left(r));
    }
}

/// State of a hash of `len` bytes, mixed with a seed.
fn begin(len: usize, seed: u64) -> [u32; 3] {
    let mut s = [START.wrapping_add(len as u32).wrapping_add(3_923_095); 3];
    if seed != 0 {
        s[0] = s[0].wrapping_add((seed >> 32) as u32);
        s[1] = s[1].wrapping_add(seed as u32);
        mix(&mut s);
    }
    s
}

fn word(b: &[u8]) -> u32 {
    b.iter().rev().fold(0, |w, b| w << 8 | u32::from(*b))
}

/// Hash of bytes: its high and low half.
fn hash_bytes(bytes: &[u8], seed: u64) -> (u32, u32) {
    let mut s = begin(bytes.len(), seed);
    let mut chunks = bytes.chunks_exact(12);
    for (n, chunk) in (&mut chunks).enumerate() {
        if n & 0xfff == 0xfff {
            sched::give_way();
        }
        for (x, part) in s.iter_mut().zip(chunk.chunks(4)) {
            *x = x.wrapping_add(word(part));
        }
        mix(&mut s);
    }
    let rest = chunks.remainder();
    for (i, part) in rest.chunks(4).enumerate() {
        // The lowest byte of the last word is the length's.
        let part = if i == 2 { word(part) << 8 } else { word(part) };
        s[i] = s[i].wrapping_add(part);
    }
    finish(&mut s);
    (s[1], s[2])
}

/// Hash of one word.
fn hash_word(k: u32, seed: u64) -> (u32, u32) {
    let mut s = begin(4, seed);
    s[0] = s[0].wrapping_add(k);
    finish(&mut s);
    (s[1], s[2])
}

/// A 64-bit integer hashes as the 32-bit one of its value.
fn hash_int8(v: i64, seed: u64) -> (u32, u32) {
    let (low, high) = (v as u32, (v >> 32) as u32);
    hash_word(low ^ if v >= 0 { high } else { !high }, seed)
}

fn hash_float(v: f64, seed: u64) -> (u32, u32) {
    if v == 0.0 {
        return (0, if seed == 0 { 0 } else { seed as u32 });
    }
    let v = if v.is_nan() { f64::NAN } else { v };
    hash_bytes(&v.to_le_bytes(), seed)
}

fn hash_datum(d: &Datum, seed: u64) -> (u32, u32) {
    match d {
        Datum::Text(s) => hash_bytes(s.as_bytes(), seed),
        Datum::Bpchar(s) => hash_bytes(trim_bpchar(s).as_bytes(), seed),
        Datum::Int2(v) => hash_word(i32::from(*v) as u32, seed),
        Datum::Int4(v) | Datum::Date(v) => hash_word(*v as u32, seed),
        Datum::Int8(v) | Datum::Time(v) | Datum::Timestamp(v) | Datum::Timestamptz(v) => {
            hash_int8(*v, seed)
        }
        Datum::Char(c) => hash_word(i32::from(*c as i8) as u32, seed),
        Datum::Bool(b) => hash_word(u32::from(*b), seed),
        Datum::Oid(v) => hash_word(*v, seed),
        Datum::Float4(v) => hash_float(f64::from(*v), seed),
        Datum::Float8(v) => hash_float(*v, seed),
        Datum::Uuid(u) => hash_bytes(&**u, seed),
        Datum::Bytea(b) => hash_bytes(b, seed),
        Datum::Macaddr(m) => hash_bytes(m, seed),
        Datum::Macaddr8(m) => hash_bytes(m, seed),
        Datum::Enum(_, rank) => hash_bytes(&rank.to_le_bytes(), seed),
        // The rest never comes here: their functions have no body.
        _ => (0, 0),
    }
}

const HASH: Body = S(|a, _| Ok((hash_datum(&a[0], 0).1 as i32).into()));

const EXTENDED: Body = S(|a, _| {
    let seed = a[1].as_int8() as u64;
    if matches!(&a[0], Datum::Float4(v) if *v == 0.0)
        || matches!(&a[0], Datum::Float8(v) if *v == 0.0)
    {
        return Ok(Datum::Int8(seed as i64));
    }
    let (high, low) = hash_datum(&a[0], seed);
    Ok(((u64::from(high) << 32 | u64::from(low)) as i64).into())
});

/// The hash of a key by which PostgreSQL chooses hash partitions; NULLs don't count.
pub fn partition_hash(key: &[Datum]) -> u64 {
    let values = key.iter().filter(|value| !value.is_null());
    values.fold(0, |sum, value| add_partition_hash(sum, extended_hash(value, PARTITION_SEED)))
}

/// The seed with which the parts of a partition key are hashed.
pub const PARTITION_SEED: u64 = 0x7a5b_2236_7996_dcfd;

/// The hash of a partition key with one part more, whose hash is `hash`.
pub fn add_partition_hash(sum: u64, hash: u64) -> u64 {
    const STEP: u64 = 0x49a0_f4dd_15e5_a8e3;
    sum ^ hash.wrapping_add(STEP).wrapping_add(sum << 54).wrapping_add(sum >> 7)
}

/// The hash of one part of a partition key.
pub fn partition_hash_of(value: &Datum) -> u64 {
    extended_hash(value, PARTITION_SEED)
}

/// Whether keys of a type have such a hash.
pub fn is_partition_hashable(ty: base::Oid) -> bool {
    use crate::oids::*;
    const ALL: [base::Oid; 21] = [
        TEXT,
        VARCHAR,
        BPCHAR,
        NAME,
        INT2,
        INT4,
        INT8,
        DATE,
        TIME,
        TIMESTAMP,
        TIMESTAMPTZ,
        CHAR,
        BOOL,
        OID,
        FLOAT4,
        FLOAT8,
        UUID,
        BYTEA,
        MACADDR,
        MACADDR8,
        NUMERIC,
    ];
    ALL.contains(&ty) || crate::user::is_user(ty)
}

/// Digits in base 10000, without zeros at the ends, and the first one's weight.
fn hash_numeric(value: &crate::numeric::Numeric, seed: u64) -> u64 {
    let Some((digits, weight)) = value.base_10000() else { return seed };
    if digits.is_empty() {
        return seed.wrapping_sub(1);
    }
    let bytes: Vec<u8> = digits.iter().flat_map(|d| d.to_le_bytes()).collect();
    let (high, low) = hash_bytes(&bytes, seed);
    (u64::from(high) << 32 | u64::from(low)) ^ i64::from(weight) as u64
}

fn extended_hash(value: &Datum, seed: u64) -> u64 {
    match value {
        Datum::Numeric(v) => hash_numeric(v, seed),
        Datum::Float4(v) if *v == 0.0 => seed,
        Datum::Float8(v) if *v == 0.0 => seed,
        other => {
            let (high, low) = hash_datum(other, seed);
            u64::from(high) << 32 | u64::from(low)
        }
    }
}

/// The bodies of this family.
pub(super) fn bodies() -> Vec<NamedBody> {
    let plain = [
        "hashtext",
        "hashbpchar",
        "hashname",
        "hashint2",
        "hashint4",
        "hashint8",
        "hashchar",
        "hashoid",
        "hashfloat4",
        "hashfloat8",
        "hashmacaddr",
        "hashmacaddr8",
        "hashenum",
        "uuid_hash",
        "time_hash",
        "timestamp_hash",
        "pg_lsn_hash",
    ];
    let extended = [
        "hashtextextended",
        "hashbpcharextended",
        "hashnameextended",
        "hashint2extended",
        "hashint4extended",
        "hashint8extended",
        "hashcharextended",
        "hashoidextended",
        "hashfloat4extended",
        "hashfloat8extended",
        "hashmacaddrextended",
        "hashmacaddr8extended",
        "hashenumextended",
        "uuid_hash_extended",
        "time_hash_extended",
        "timestamp_hash_extended",
        "pg_lsn_hash_extended",
    ];
    let all = plain.map(|name| (name, HASH)).into_iter();
    all.chain(extended.map(|name| (name, EXTENDED))).collect()
}
