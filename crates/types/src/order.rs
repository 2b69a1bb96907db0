//! SQL order and equality of values: what B-trees, sorts, hashes and `=` agree on.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use base::Oid;

use crate::datum::{Array, Datum, Inet, Interval, Range};
use crate::oids;

/// bpchar without the blanks that don't count.
pub(crate) fn trim_bpchar(s: &str) -> &str {
    let blanks = s.as_bytes().iter().rev().take_while(|b| **b == b' ').count();
    &s[..s.len() - blanks]
}

/// Total order of floats: -0 equals 0, NaN equals itself and is above all.
#[inline]
pub(crate) fn compare_floats(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// Length of an interval when a month has 30 days and a day 24 hours.
pub(crate) fn interval_span(i: &Interval) -> i128 {
    const DAY: i128 = 86_400_000_000;
    (i128::from(i.months) * 30 + i128::from(i.days)) * DAY + i128::from(i.micros)
}

/// As [`compare`], of types whose integers have no sign (xid8, pg_lsn).
pub fn compare_unsigned(a: &Datum, b: &Datum) -> Ordering {
    match (a, b) {
        (Datum::Int8(x), Datum::Int8(y)) => (*x as u64).cmp(&(*y as u64)),
        _ => compare(a, b),
    }
}

/// SQL comparison of two values of the same type (B-tree order). NULLs, where a composite value
/// has them, are equal to each other and above the rest.
#[inline]
pub fn compare(a: &Datum, b: &Datum) -> Ordering {
    match (a, b) {
        (Datum::Int4(x), Datum::Int4(y)) | (Datum::Date(x), Datum::Date(y)) => x.cmp(y),
        (Datum::Int8(x), Datum::Int8(y))
        | (Datum::Time(x), Datum::Time(y))
        | (Datum::Timestamp(x), Datum::Timestamp(y))
        | (Datum::Timestamptz(x), Datum::Timestamptz(y)) => x.cmp(y),
        (Datum::Text(x), Datum::Text(y)) => x.as_bytes().cmp(y.as_bytes()),
        _ => compare_rest(a, b),
    }
}

fn compare_rest(a: &Datum, b: &Datum) -> Ordering {
    match (a, b) {
        (Datum::Bool(x), Datum::Bool(y)) => x.cmp(y),
        (Datum::Int2(x), Datum::Int2(y)) => x.cmp(y),
        (Datum::Float4(x), Datum::Float4(y)) => compare_floats(f64::from(*x), f64::from(*y)),
        (Datum::Float8(x), Datum::Float8(y)) => compare_floats(*x, *y),
        (Datum::Numeric(x), Datum::Numeric(y)) => x.compare(y),
        (Datum::Bpchar(x), Datum::Bpchar(y) | Datum::Text(y))
        | (Datum::Text(x), Datum::Bpchar(y)) => {
            trim_bpchar(x).as_bytes().cmp(trim_bpchar(y).as_bytes())
        }
        (Datum::Bytea(x), Datum::Bytea(y)) => x.cmp(y),
        (Datum::Char(x), Datum::Char(y)) => x.cmp(y),
        (Datum::Interval(x), Datum::Interval(y)) => interval_span(x).cmp(&interval_span(y)),
        (Datum::Oid(x), Datum::Oid(y)) => x.cmp(y),
        (Datum::Tid(x), Datum::Tid(y)) => x.cmp(y),
        (Datum::Uuid(x), Datum::Uuid(y)) => x.cmp(y),
        (Datum::Array(x), Datum::Array(y)) => compare_arrays(x, y),
        (Datum::Record(x), Datum::Record(y)) => {
            let unsigned = |at: usize| x.shape.columns.get(at).is_some_and(|c| is_unsigned(c.1));
            compare_lists(&x.fields, &y.fields, unsigned).then(x.fields.len().cmp(&y.fields.len()))
        }
        (Datum::Timetz(x, v), Datum::Timetz(y, w)) => {
            timetz_utc(*x, *v).cmp(&timetz_utc(*y, *w)).then(v.cmp(w))
        }
        (Datum::Money(x), Datum::Money(y)) => x.cmp(y),
        (Datum::Inet(x), Datum::Inet(y)) => compare_inet(x, y),
        (Datum::Macaddr(x), Datum::Macaddr(y)) => x.cmp(y),
        (Datum::Macaddr8(x), Datum::Macaddr8(y)) => x.cmp(y),
        (Datum::Bits(x), Datum::Bits(y)) => x.compare(y),
        (Datum::Jsonb(x), Datum::Jsonb(y)) => crate::jsonb::compare(x, y),
        (Datum::Jsonpath(x), Datum::Jsonpath(y)) => x.text().cmp(y.text()),
        (Datum::Range(x), Datum::Range(y)) => x.compare(y),
        (Datum::Multirange(x), Datum::Multirange(y)) => x.compare(y),
        (Datum::Enum(_, x), Datum::Enum(_, y)) => x.cmp(y),
        (Datum::Open(x), Datum::Open(y)) => x.0.compare(&*y.0),
        (Datum::Null, Datum::Null) => Ordering::Equal,
        (Datum::Null, _) => Ordering::Greater,
        (_, Datum::Null) => Ordering::Less,
        _ => mixed(a, b),
    }
}

/// Integers of different widths may meet (`int4` column and `int8` key); anything else is a bug.
fn mixed(a: &Datum, b: &Datum) -> Ordering {
    match (a.to_i64(), b.to_i64()) {
        (Some(x), Some(y)) => x.cmp(&y),
        _ => panic!("comparison of {a:?} with {b:?}"),
    }
}

/// Microseconds of a time with time zone in Greenwich.
pub(crate) fn timetz_utc(micros: i64, west: i32) -> i64 {
    micros + i64::from(west) * 1_000_000
}

/// Family, network bits, length of the mask, address.
fn compare_inet(a: &Inet, b: &Inet) -> Ordering {
    let network = |i: &Inet, bits: u8| {
        let mut cut = Inet { bits, ..*i };
        crate::io::clear_host(&mut cut);
        cut.addr
    };
    let common = a.bits.min(b.bits);
    a.v6.cmp(&b.v6)
        .then_with(|| network(a, common).cmp(&network(b, common)))
        .then_with(|| a.bits.cmp(&b.bits))
        .then_with(|| a.addr.cmp(&b.addr))
}

/// Types from this number on were made by users; some are domains.
const FIRST_MADE: u32 = 16_384;

/// Whether a type's integers have no sign.
pub(crate) fn is_unsigned(ty: Oid) -> bool {
    let is_one = |ty: Oid| matches!(ty, oids::XID8 | oids::PG_LSN);
    is_one(ty) || ty.0 >= FIRST_MADE && is_one(crate::user::base_type(ty, -1).0)
}

/// `unsigned`: whether the values of a place have no sign.
fn compare_lists(a: &[Datum], b: &[Datum], unsigned: impl Fn(usize) -> bool) -> Ordering {
    for (at, (x, y)) in a.iter().zip(b).enumerate() {
        let order = match (x, y) {
            (Datum::Int8(_), Datum::Int8(_)) if unsigned(at) => compare_unsigned(x, y),
            _ => compare(x, y),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
    Ordering::Equal
}

fn compare_arrays(a: &Array, b: &Array) -> Ordering {
    let lens = |x: &Array| x.dims.iter().map(|(len, _)| *len).collect::<Vec<_>>();
    let lows = |x: &Array| x.dims.iter().map(|(_, low)| *low).collect::<Vec<_>>();
    let unsigned = is_unsigned(a.element);
    compare_lists(&a.items, &b.items, |_| unsigned)
        .then_with(|| a.items.len().cmp(&b.items.len()))
        .then_with(|| a.dims.len().cmp(&b.dims.len()))
        .then_with(|| lens(a).cmp(&lens(b)))
        .then_with(|| lows(a).cmp(&lows(b)))
}

/// Hash consistent with [`compare`] (1 and 1.0 of different numeric scales hash alike).
pub fn hash(value: &Datum, state: &mut impl Hasher) {
    match value {
        Datum::Null => state.write_u8(0xff),
        Datum::Bool(v) => state.write_u8(u8::from(*v)),
        Datum::Int2(v) => state.write_i64(i64::from(*v)),
        Datum::Int4(v) | Datum::Date(v) => state.write_i64(i64::from(*v)),
        Datum::Int8(v) | Datum::Time(v) | Datum::Timestamp(v) | Datum::Timestamptz(v) => {
            state.write_i64(*v);
        }
        Datum::Float4(v) => hash_float(f64::from(*v), state),
        Datum::Float8(v) => hash_float(*v, state),
        Datum::Numeric(n) => n.hash_value(state),
        Datum::Text(s) => hash_text(s, state),
        Datum::Bpchar(s) => hash_text(trim_bpchar(s), state),
        Datum::Bytea(b) => b.hash(state),
        Datum::Char(c) => state.write_u8(*c),
        Datum::Interval(i) => state.write_i128(interval_span(i)),
        Datum::Oid(v) => state.write_i64(i64::from(*v)),
        Datum::Tid(t) => t.hash(state),
        Datum::Uuid(u) => u.hash(state),
        Datum::Array(a) => {
            state.write_usize(a.items.len());
            a.items.iter().for_each(|item| hash(item, state));
        }
        Datum::Record(r) => {
            state.write_usize(r.fields.len());
            r.fields.iter().for_each(|item| hash(item, state));
        }
        Datum::Timetz(t, west) => {
            state.write_i64(timetz_utc(*t, *west));
            state.write_i32(*west);
        }
        Datum::Money(v) => state.write_i64(*v),
        Datum::Inet(i) => {
            state.write_u8(i.bits);
            i.addr.hash(state);
        }
        Datum::Macaddr(m) => m.hash(state),
        Datum::Macaddr8(m) => m.hash(state),
        Datum::Bits(b) => {
            state.write_u32(b.len);
            b.bytes.hash(state);
        }
        Datum::Jsonb(j) => crate::jsonb::hash(j, state),
        Datum::Jsonpath(p) => p.text().hash(state),
        Datum::Range(r) => hash_range(r, state),
        Datum::Multirange(m) => m.ranges.iter().for_each(|r| hash_range(r, state)),
        Datum::Enum(_, rank) => state.write_u64(*rank),
        Datum::Open(v) => v.0.hash(state),
    }
}

fn hash_range(r: &Range, state: &mut impl Hasher) {
    let Some((lower, upper)) = &r.bounds else { return state.write_u8(0) };
    for bound in [lower, upper] {
        state.write_u8(1 + u8::from(bound.inclusive));
        hash(&bound.value, state);
    }
}

fn hash_text(s: &str, state: &mut impl Hasher) {
    state.write(s.as_bytes());
    state.write_u8(0xff);
}

fn hash_float(v: f64, state: &mut impl Hasher) {
    let canonical = if v.is_nan() {
        f64::NAN
    } else if v == 0.0 {
        0.0
    } else {
        v
    };
    state.write_u64(canonical.to_bits());
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::hash_map::DefaultHasher;

    fn hashed(d: &Datum) -> u64 {
        let mut h = DefaultHasher::new();
        hash(d, &mut h);
        h.finish()
    }

    #[test]
    fn what_compares_equal_hashes_alike() {
        let numeric = |s: &str| Datum::Numeric(crate::Numeric::parse(s).unwrap());
        for (a, b) in [
            (numeric("1"), numeric("1.000")),
            (numeric("0"), numeric("0.00")),
            (numeric("100000000000000000000"), numeric("100000000000000000000.0000")),
            (numeric("1000000000000000000"), numeric("1000000000000000000.0000")),
            (Datum::Float8(0.0), Datum::Float8(-0.0)),
            (Datum::Float8(f64::NAN), Datum::Float8(-f64::NAN)),
            (Datum::Bpchar("a ".into()), Datum::Bpchar("a".into())),
            (Datum::interval(1, 0, 0), Datum::interval(0, 30, 0)),
        ] {
            assert_eq!(compare(&a, &b), Ordering::Equal, "{a:?} {b:?}");
            assert_eq!(hashed(&a), hashed(&b), "{a:?} {b:?}");
        }
    }

    #[test]
    fn nan_is_above_infinity() {
        let f = Datum::Float8;
        assert_eq!(compare(&f(f64::NAN), &f(f64::INFINITY)), Ordering::Greater);
        assert_eq!(compare(&f(f64::NAN), &f(f64::NAN)), Ordering::Equal);
    }
}
