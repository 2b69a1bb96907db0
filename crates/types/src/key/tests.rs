use std::cmp::Ordering;

use super::*;
use crate::datum::Numeric;
use crate::testing::{Random, random_value, types};
use crate::{io, order};

fn key(ty: Oid, value: &Datum, order: KeyOrder) -> Vec<u8> {
    let mut out = Vec::new();
    encode(ty, value, order, &mut out).unwrap();
    out
}

#[test]
fn keys_sort_as_values_do() {
    let mut random = Random::new(7);
    for &ty in types() {
        for _ in 0..400 {
            let (a, b) = (random_value(ty, &mut random), random_value(ty, &mut random));
            let wanted = order::compare(&a, &b);
            for descending in [false, true] {
                let by = KeyOrder { descending, nulls_first: false, ..Default::default() };
                let (x, y) = (key(ty, &a, by), key(ty, &b, by));
                // A longer key follows, as in an index of several columns.
                let (x, y) = ([x, vec![0x55]].concat(), [y, vec![0x55]].concat());
                let wanted = if descending { wanted.reverse() } else { wanted };
                assert_eq!(x.cmp(&y), wanted, "{a:?} {b:?} descending {descending}");
            }
        }
    }
}

#[test]
fn keys_decode_to_what_was_encoded() {
    let mut random = Random::new(8);
    for &ty in types() {
        for _ in 0..100 {
            let value = random_value(ty, &mut random);
            for descending in [false, true] {
                let by = KeyOrder { descending, nulls_first: descending, ..Default::default() };
                let mut bytes = key(ty, &value, by);
                let len = bytes.len();
                bytes.push(0x77);
                if let Some((back, used)) = decode(ty, &bytes, by) {
                    assert_eq!((back, used), (value.clone(), len));
                }
            }
        }
    }
}

#[test]
fn nulls_stand_where_they_were_asked_for() {
    let last = KeyOrder::default();
    let first = KeyOrder { nulls_first: true, ..last };
    let one = key(oids::INT4, &Datum::Int4(i32::MAX), last);
    assert_eq!(key(oids::INT4, &Datum::Null, last).cmp(&one), Ordering::Greater);
    let least = key(oids::INT4, &Datum::Int4(i32::MIN), first);
    assert_eq!(key(oids::INT4, &Datum::Null, first).cmp(&least), Ordering::Less);
    assert_eq!(decode(oids::INT4, &[NULL_LAST], last), Some((Datum::Null, 1)));
}

#[test]
fn integers_encode_by_the_columns_type() {
    let by = KeyOrder::default();
    assert_eq!(key(oids::INT8, &Datum::Int4(5), by), key(oids::INT8, &Datum::Int8(5), by));
    assert_eq!(key(oids::INT4, &Datum::Int2(-5), by), key(oids::INT4, &Datum::Int4(-5), by));
    assert!(encode(oids::INT4, &Datum::Int8(1 << 40), by, &mut Vec::new()).is_err());
}

#[test]
fn numerics_of_one_value_have_one_key() {
    let by = KeyOrder::default();
    let n = |s: &str| Datum::Numeric(Numeric::parse(s).unwrap());
    for (a, b) in [("1", "1.00"), ("0", "-0.000"), ("100", "1e2"), ("0.5", "0.50")] {
        assert_eq!(key(oids::NUMERIC, &n(a), by), key(oids::NUMERIC, &n(b), by));
    }
    let ladder = [
        "-Infinity",
        "-1e30",
        "-123.5",
        "-123.45",
        "-1",
        "-0.001",
        "0",
        "1e-20",
        "0.001",
        "0.0011",
        "0.01",
        "1",
        "9.99",
        "10",
        "123.45",
        "123.5",
        "99999999999999999999",
        "1e30",
        "Infinity",
        "NaN",
    ];
    for pair in ladder.windows(2) {
        let (x, y) = (key(oids::NUMERIC, &n(pair[0]), by), key(oids::NUMERIC, &n(pair[1]), by));
        assert!(x < y, "{pair:?}");
    }
}

#[test]
fn blanks_and_zero_bytes() {
    let by = KeyOrder::default();
    let padded = io::input(oids::BPCHAR, 9, "ab", &Default::default()).unwrap();
    assert_eq!(key(oids::BPCHAR, &padded, by), key(oids::BPCHAR, &Datum::text("ab"), by));
    let b = |bytes: &[u8]| key(oids::BYTEA, &Datum::bytea(bytes), by);
    assert!(b(&[1]) < b(&[1, 0]) && b(&[1, 0]) < b(&[1, 0, 0]) && b(&[1, 0, 5]) < b(&[1, 1]));
}
