//! Comparison functions behind `=`, `<>`, `<`, `<=`, `>`, `>=`, and the `larger`/`smaller` pairs.
//!
//! Types of one form share the bodies (`timestamp_eq` serves timestamptz too); the commonest have
//! bodies of their own.

use std::cmp::Ordering;

use base::{Result, err};

use super::{Body, NamedBody, S, ScalarBody};
use crate::datum::Datum;
use crate::order::{compare, compare_floats, is_unsigned};

macro_rules! six {
    ($order:expr) => {
        [
            |a, _| Ok(Datum::Bool($order(&a[0], &a[1]) == Ordering::Equal)),
            |a, _| Ok(Datum::Bool($order(&a[0], &a[1]) != Ordering::Equal)),
            |a, _| Ok(Datum::Bool($order(&a[0], &a[1]) == Ordering::Less)),
            |a, _| Ok(Datum::Bool($order(&a[0], &a[1]) != Ordering::Greater)),
            |a, _| Ok(Datum::Bool($order(&a[0], &a[1]) == Ordering::Greater)),
            |a, _| Ok(Datum::Bool($order(&a[0], &a[1]) != Ordering::Less)),
        ]
    };
}

const GENERIC: [ScalarBody; 6] = six!(compare);
const INT4: [ScalarBody; 6] = six!(|a: &Datum, b: &Datum| a.as_int4().cmp(&b.as_int4()));
const INT8: [ScalarBody; 6] = six!(|a: &Datum, b: &Datum| a.as_int8().cmp(&b.as_int8()));
const TEXT: [ScalarBody; 6] =
    six!(|a: &Datum, b: &Datum| a.as_str().as_bytes().cmp(b.as_str().as_bytes()));
const WIDE: [ScalarBody; 6] = six!(|a: &Datum, b: &Datum| a.to_i64().cmp(&b.to_i64()));
/// `xid8` and `pg_lsn` have no sign.
const UNSIGNED: [ScalarBody; 6] = six!(unsigned);
/// Integers beside transaction ids are such by their bits.
const XID: [ScalarBody; 6] = six!(|a: &Datum, b: &Datum| {
    let bits = |d: &Datum| match d {
        Datum::Int4(v) => *v as u32,
        other => other.as_oid(),
    };
    bits(a).cmp(&bits(b))
});
const FLOAT: [ScalarBody; 6] =
    six!(|a: &Datum, b: &Datum| compare_floats(super::float::wide(a), super::float::wide(b)));

/// Of equal values that look different the second one counts, of char(n) the first.
fn first_counts(a: &[Datum], wanted: Ordering) -> bool {
    let order = compare(&a[0], &a[1]);
    order == wanted || (order == Ordering::Equal && matches!(a[0], Datum::Bpchar(_)))
}

const LARGER: Body = S(|a, _| Ok(a[usize::from(!first_counts(a, Ordering::Greater))].clone()));
const SMALLER: Body = S(|a, _| Ok(a[usize::from(!first_counts(a, Ordering::Less))].clone()));
const CMP: Body = S(|a, _| {
    let order = match (&a[0], &a[1]) {
        (Datum::Float4(_) | Datum::Float8(_), _) => {
            compare_floats(super::float::wide(&a[0]), super::float::wide(&a[1]))
        }
        (x, y) => compare(x, y),
    };
    Ok(Datum::Int4(order as i32))
});

fn unsigned(a: &Datum, b: &Datum) -> Ordering {
    (a.as_int8() as u64).cmp(&(b.as_int8() as u64))
}

/// Rows column by column, as far as they have columns; those of one place must have one type.
///
/// # Errors
/// `42804`.
fn compare_rows(a: &Datum, b: &Datum) -> Result<Ordering> {
    sched::check_stack()?;
    let (Datum::Record(a), Datum::Record(b)) = (a, b) else { return Ok(compare(a, b)) };
    for (at, (x, y)) in a.fields.iter().zip(&b.fields).enumerate() {
        let ty = |r: &crate::datum::Record| r.shape.columns.get(at).map(|c| c.1);
        if let (Some(t), Some(u)) = (ty(a), ty(b))
            && t != u
        {
            return Err(err!(
                DATATYPE_MISMATCH,
                "cannot compare dissimilar column types {} and {} at record column {}",
                crate::io::format_type(t, -1),
                crate::io::format_type(u, -1),
                at + 1
            ));
        }
        let order = match (x, y) {
            (Datum::Int8(_), Datum::Int8(_)) if ty(a).is_some_and(is_unsigned) => unsigned(x, y),
            _ => compare_rows(x, y)?,
        };
        if order != Ordering::Equal {
            return Ok(order);
        }
    }
    if a.fields.len() != b.fields.len() {
        return Err(err!(
            DATATYPE_MISMATCH,
            "cannot compare record types with different numbers of columns"
        ));
    }
    Ok(Ordering::Equal)
}

const RECORD: [ScalarBody; 6] = [
    |a, _| Ok(Datum::Bool(compare_rows(&a[0], &a[1])?.is_eq())),
    |a, _| Ok(Datum::Bool(compare_rows(&a[0], &a[1])?.is_ne())),
    |a, _| Ok(Datum::Bool(compare_rows(&a[0], &a[1])?.is_lt())),
    |a, _| Ok(Datum::Bool(compare_rows(&a[0], &a[1])?.is_le())),
    |a, _| Ok(Datum::Bool(compare_rows(&a[0], &a[1])?.is_gt())),
    |a, _| Ok(Datum::Bool(compare_rows(&a[0], &a[1])?.is_ge())),
];

/// Names in the order of [`six`].
macro_rules! names {
    ($p:literal) => {
        [
            concat!($p, "eq"),
            concat!($p, "ne"),
            concat!($p, "lt"),
            concat!($p, "le"),
            concat!($p, "gt"),
            concat!($p, "ge"),
        ]
    };
}

/// The bodies of this family.
pub(super) fn bodies() -> Vec<NamedBody> {
    let mut all: Vec<NamedBody> = Vec::new();
    let mut add = |names: &[&'static str], six: [ScalarBody; 6]| {
        all.extend(names.iter().copied().zip(six.map(S)));
    };
    add(&names!("int4"), INT4);
    add(&names!("int8"), INT8);
    add(&["texteq", "textne", "text_lt", "text_le", "text_gt", "text_ge"], TEXT);
    add(&names!("name"), TEXT);
    for (names, six) in [
        (names!("int2"), GENERIC),
        (names!("int24"), WIDE),
        (names!("int28"), WIDE),
        (names!("int42"), WIDE),
        (names!("int48"), WIDE),
        (names!("int82"), WIDE),
        (names!("int84"), WIDE),
        (names!("float4"), FLOAT),
        (names!("float8"), FLOAT),
        (names!("float48"), FLOAT),
        (names!("float84"), FLOAT),
        (names!("bool"), GENERIC),
        (names!("char"), GENERIC),
        (names!("oid"), GENERIC),
        (names!("bpchar"), GENERIC),
        (names!("bytea"), GENERIC),
        (names!("tid"), GENERIC),
        (names!("oidvector"), GENERIC),
        (names!("xid8"), UNSIGNED),
        (names!("numeric_"), GENERIC),
        (names!("date_"), GENERIC),
        (names!("time_"), GENERIC),
        (names!("timestamp_"), GENERIC),
        (names!("interval_"), GENERIC),
        (names!("uuid_"), GENERIC),
        (names!("array_"), GENERIC),
        (names!("pg_lsn_"), UNSIGNED),
        (names!("timetz_"), GENERIC),
        (names!("network_"), GENERIC),
        (names!("macaddr_"), GENERIC),
        (names!("macaddr8_"), GENERIC),
        (names!("bit"), GENERIC),
        (names!("jsonb_"), GENERIC),
        (names!("range_"), GENERIC),
        (names!("multirange_"), GENERIC),
        (names!("cash_"), GENERIC),
        (names!("record_image_"), RECORD),
        (names!("enum_"), GENERIC),
    ] {
        add(&names, six);
    }
    add(&names!("record_"), RECORD);
    let text_names = |p: [&'static str; 6]| p;
    add(
        &text_names([
            "nameeqtext",
            "namenetext",
            "namelttext",
            "nameletext",
            "namegttext",
            "namegetext",
        ]),
        TEXT,
    );
    add(
        &text_names([
            "texteqname",
            "textnename",
            "textltname",
            "textlename",
            "textgtname",
            "textgename",
        ]),
        TEXT,
    );
    for (name, i) in [
        ("text_pattern_lt", 2),
        ("text_pattern_le", 3),
        ("text_pattern_gt", 4),
        ("text_pattern_ge", 5),
    ] {
        all.push((name, S(TEXT[i])));
    }
    for (name, i) in [
        ("bpchar_pattern_lt", 2),
        ("bpchar_pattern_le", 3),
        ("bpchar_pattern_gt", 4),
        ("bpchar_pattern_ge", 5),
    ] {
        all.push((name, S(GENERIC[i])));
    }
    all.extend([("xideq", S(XID[0])), ("xidneq", S(XID[1])), ("cideq", S(GENERIC[0]))]);
    all.extend(
        [
            "int2larger",
            "int4larger",
            "int8larger",
            "float4larger",
            "float8larger",
            "numeric_larger",
            "text_larger",
            "bpchar_larger",
            "oidlarger",
            "tidlarger",
            "date_larger",
            "time_larger",
            "timestamp_larger",
            "interval_larger",
            "array_larger",
            "timetz_larger",
            "network_larger",
            "cashlarger",
            "enum_larger",
        ]
        .map(|name| (name, LARGER)),
    );
    all.extend(
        [
            "int2smaller",
            "int4smaller",
            "int8smaller",
            "float4smaller",
            "float8smaller",
            "numeric_smaller",
            "text_smaller",
            "bpchar_smaller",
            "oidsmaller",
            "tidsmaller",
            "date_smaller",
            "time_smaller",
            "timestamp_smaller",
            "interval_smaller",
            "array_smaller",
            "timetz_smaller",
            "network_smaller",
            "cashsmaller",
            "enum_smaller",
        ]
        .map(|name| (name, SMALLER)),
    );
    all.extend(
        [
            "btint2cmp",
            "btint4cmp",
            "btint8cmp",
            "btfloat4cmp",
            "btfloat8cmp",
            "btboolcmp",
            "bttextcmp",
            "btnamecmp",
            "btoidcmp",
            "btcharcmp",
            "bpcharcmp",
            "byteacmp",
            "numeric_cmp",
            "date_cmp",
            "time_cmp",
            "timestamp_cmp",
            "interval_cmp",
            "uuid_cmp",
            "btarraycmp",
            "btrecordcmp",
            "bttidcmp",
            "btoidvectorcmp",
            "timetz_cmp",
            "network_cmp",
            "macaddr_cmp",
            "macaddr8_cmp",
            "bitcmp",
            "jsonb_cmp",
            "range_cmp",
            "multirange_cmp",
            "cash_cmp",
            "btrecordimagecmp",
            "btbpchar_pattern_cmp",
            "bttext_pattern_cmp",
            "btnametextcmp",
            "bttextnamecmp",
            "btint24cmp",
            "btint28cmp",
            "btint42cmp",
            "btint48cmp",
            "btint82cmp",
            "btint84cmp",
            "btfloat48cmp",
            "btfloat84cmp",
            "enum_cmp",
        ]
        .map(|name| (name, CMP)),
    );
    for name in ["pg_lsn_larger", "xid8_larger"] {
        all.push((name, S(|a, _| Ok(a[usize::from(unsigned(&a[0], &a[1]).is_lt())].clone()))));
    }
    for name in ["pg_lsn_smaller", "xid8_smaller"] {
        all.push((name, S(|a, _| Ok(a[usize::from(unsigned(&a[0], &a[1]).is_gt())].clone()))));
    }
    for name in ["pg_lsn_cmp", "xid8cmp"] {
        all.push((name, S(|a, _| Ok(Datum::Int4(unsigned(&a[0], &a[1]) as i32)))));
    }
    all.extend([
        ("booland_statefunc", S(|a, _| Ok(Datum::Bool(a[0].as_bool() && a[1].as_bool())))),
        ("boolor_statefunc", S(|a, _| Ok(Datum::Bool(a[0].as_bool() || a[1].as_bool())))),
    ]);
    all
}
