//! btree_gist: classes of GiST that answer what a B-tree answers, for columns beside those that only GiST can index,
//! and for exclusion constraints; distances between scalars.

use std::sync::Arc;

use base::{Oid, Result, err};
use types::datum::Interval;
use types::extension::Library;
use types::func::Body;
use types::gist::Maker;
use types::gist::interval::ScalarOps;
use types::open::OpenType;
use types::{Datum, FormatContext};

use crate::common::{Bodies, built_in};

const MAKE: Maker = |ty| Arc::new(ScalarOps { ty });

macro_rules! classes { ($($symbol:literal)*) => { &[$(($symbol, MAKE)),*] } }

/// The extension's code.
pub static LIBRARY: Library = Library {
    name: "btree_gist",
    bodies,
    types: &[("gbtreekey_in", &KeyType)],
    gist: classes! {
        "gbt_bit_consistent" "gbt_bool_consistent" "gbt_bpchar_consistent" "gbt_bytea_consistent"
        "gbt_cash_consistent" "gbt_date_consistent" "gbt_enum_consistent" "gbt_float4_consistent"
        "gbt_float8_consistent" "gbt_inet_consistent" "gbt_int2_consistent" "gbt_int4_consistent"
        "gbt_int8_consistent" "gbt_intv_consistent" "gbt_macad8_consistent" "gbt_macad_consistent"
        "gbt_numeric_consistent" "gbt_oid_consistent" "gbt_text_consistent" "gbt_time_consistent"
        "gbt_timetz_consistent" "gbt_ts_consistent" "gbt_tstz_consistent" "gbt_uuid_consistent"
    },
    silent: &[
        "gbt_bit_compress",
        "gbt_bit_penalty",
        "gbt_bit_picksplit",
        "gbt_bit_same",
        "gbt_bit_union",
        "gbt_bool_compress",
        "gbt_bool_fetch",
        "gbt_bool_penalty",
        "gbt_bool_picksplit",
        "gbt_bool_same",
        "gbt_bool_union",
        "gbt_bpchar_compress",
        "gbt_bytea_compress",
        "gbt_bytea_penalty",
        "gbt_bytea_picksplit",
        "gbt_bytea_same",
        "gbt_bytea_union",
        "gbt_cash_compress",
        "gbt_cash_distance",
        "gbt_cash_fetch",
        "gbt_cash_penalty",
        "gbt_cash_picksplit",
        "gbt_cash_same",
        "gbt_cash_union",
        "gbt_date_compress",
        "gbt_date_distance",
        "gbt_date_fetch",
        "gbt_date_penalty",
        "gbt_date_picksplit",
        "gbt_date_same",
        "gbt_date_union",
        "gbt_decompress",
        "gbt_enum_compress",
        "gbt_enum_fetch",
        "gbt_enum_penalty",
        "gbt_enum_picksplit",
        "gbt_enum_same",
        "gbt_enum_union",
        "gbt_float4_compress",
        "gbt_float4_distance",
        "gbt_float4_fetch",
        "gbt_float4_penalty",
        "gbt_float4_picksplit",
        "gbt_float4_same",
        "gbt_float4_union",
        "gbt_float8_compress",
        "gbt_float8_distance",
        "gbt_float8_fetch",
        "gbt_float8_penalty",
        "gbt_float8_picksplit",
        "gbt_float8_same",
        "gbt_float8_union",
        "gbt_inet_compress",
        "gbt_inet_penalty",
        "gbt_inet_picksplit",
        "gbt_inet_same",
        "gbt_inet_union",
        "gbt_int2_compress",
        "gbt_int2_distance",
        "gbt_int2_fetch",
        "gbt_int2_penalty",
        "gbt_int2_picksplit",
        "gbt_int2_same",
        "gbt_int2_union",
        "gbt_int4_compress",
        "gbt_int4_distance",
        "gbt_int4_fetch",
        "gbt_int4_penalty",
        "gbt_int4_picksplit",
        "gbt_int4_same",
        "gbt_int4_union",
        "gbt_int8_compress",
        "gbt_int8_distance",
        "gbt_int8_fetch",
        "gbt_int8_penalty",
        "gbt_int8_picksplit",
        "gbt_int8_same",
        "gbt_int8_union",
        "gbt_intv_compress",
        "gbt_intv_decompress",
        "gbt_intv_distance",
        "gbt_intv_fetch",
        "gbt_intv_penalty",
        "gbt_intv_picksplit",
        "gbt_intv_same",
        "gbt_intv_union",
        "gbt_macad8_compress",
        "gbt_macad8_fetch",
        "gbt_macad8_penalty",
        "gbt_macad8_picksplit",
        "gbt_macad8_same",
        "gbt_macad8_union",
        "gbt_macad_compress",
        "gbt_macad_fetch",
        "gbt_macad_penalty",
        "gbt_macad_picksplit",
        "gbt_macad_same",
        "gbt_macad_union",
        "gbt_numeric_compress",
        "gbt_numeric_penalty",
        "gbt_numeric_picksplit",
        "gbt_numeric_same",
        "gbt_numeric_union",
        "gbt_oid_compress",
        "gbt_oid_distance",
        "gbt_oid_fetch",
        "gbt_oid_penalty",
        "gbt_oid_picksplit",
        "gbt_oid_same",
        "gbt_oid_union",
        "gbt_text_compress",
        "gbt_text_penalty",
        "gbt_text_picksplit",
        "gbt_text_same",
        "gbt_text_union",
        "gbt_time_compress",
        "gbt_time_distance",
        "gbt_time_fetch",
        "gbt_time_penalty",
        "gbt_time_picksplit",
        "gbt_time_same",
        "gbt_time_union",
        "gbt_timetz_compress",
        "gbt_ts_compress",
        "gbt_ts_distance",
        "gbt_ts_fetch",
        "gbt_ts_penalty",
        "gbt_ts_picksplit",
        "gbt_ts_same",
        "gbt_ts_union",
        "gbt_tstz_compress",
        "gbt_tstz_distance",
        "gbt_uuid_compress",
        "gbt_uuid_fetch",
        "gbt_uuid_penalty",
        "gbt_uuid_picksplit",
        "gbt_uuid_same",
        "gbt_uuid_union",
        "gbt_var_decompress",
        "gbt_var_fetch",
        "gbtreekey_in",
        "gbtreekey_out",
    ],
    ..Library::EMPTY
};

/// The types of keys, which have no values outside of PostgreSQL's own indexes.
struct KeyType;

impl OpenType for KeyType {
    fn input(&self, _ty: Oid, _typmod: i32, _text: &str, _cx: &FormatContext) -> Result<Datum> {
        Err(err!(FEATURE_NOT_SUPPORTED, "<datatype>key_in() not implemented"))
    }

    fn load(&self, _ty: Oid, _bytes: &[u8]) -> Option<Datum> {
        None
    }
}

fn bodies() -> Bodies {
    vec![
        ("int2_dist", Body::Scalar(|args, _| integer(args, "smallint", i64::from(i16::MAX)))),
        ("int4_dist", Body::Scalar(|args, _| integer(args, "integer", i64::from(i32::MAX)))),
        ("int8_dist", Body::Scalar(|args, _| integer(args, "bigint", i64::MAX))),
        ("cash_dist", Body::Scalar(|args, _| integer(args, "money", i64::MAX))),
        ("oid_dist", Body::Scalar(|args, _| oid(args))),
        ("date_dist", Body::Scalar(|args, cx| apart("date_mi", args, cx))),
        ("float4_dist", Body::Scalar(|args, cx| apart("float4mi", args, cx))),
        ("float8_dist", Body::Scalar(|args, cx| apart("float8mi", args, cx))),
        ("time_dist", Body::Scalar(|args, cx| apart("time_mi_time", args, cx))),
        ("interval_dist", Body::Scalar(|args, cx| apart("interval_mi", args, cx))),
        ("ts_dist", Body::Scalar(|args, cx| moments("timestamp_mi", args, cx))),
        ("tstz_dist", Body::Scalar(|args, cx| moments("timestamptz_mi", args, cx))),
    ]
}

fn integer(args: &[Datum], name: &str, most: i64) -> Result<Datum> {
    let number = |d: &Datum| match d {
        Datum::Money(v) => i128::from(*v),
        other => other.to_i64().map_or(0, i128::from),
    };
    let off = (number(&args[0]) - number(&args[1])).abs();
    let off = i64::try_from(off).ok().filter(|off| *off <= most);
    let off = off.ok_or_else(|| err!(NUMERIC_VALUE_OUT_OF_RANGE, "{name} out of range"))?;
    Ok(match args[0] {
        Datum::Int2(_) => Datum::Int2(off as i16),
        Datum::Int4(_) => Datum::Int4(off as i32),
        Datum::Money(_) => Datum::Money(off),
        _ => Datum::Int8(off),
    })
}

fn oid(args: &[Datum]) -> Result<Datum> {
    match (&args[0], &args[1]) {
        (Datum::Oid(a), Datum::Oid(b)) => Ok(Datum::Oid(a.abs_diff(*b))),
        _ => Err(base::Error::internal("a distance of oids over others")),
    }
}

/// The difference without its sign.
fn apart(minus: &str, args: &[Datum], cx: &FormatContext) -> Result<Datum> {
    Ok(match built_in(minus, args, cx)? {
        Datum::Int4(v) => Datum::Int4(v.abs()),
        Datum::Float4(v) => Datum::Float4(v.abs()),
        Datum::Float8(v) => Datum::Float8(v.abs()),
        Datum::Interval(v) => {
            let zero = Datum::Interval(Arc::new(Interval::default()));
            let value = Datum::Interval(v);
            match types::order::compare(&value, &zero).is_lt() {
                true => built_in("interval_um", &[value], cx)?,
                false => value,
            }
        }
        other => other,
    })
}

/// The same of moments; to an infinite one it is as far as can be said.
fn moments(minus: &str, args: &[Datum], cx: &FormatContext) -> Result<Datum> {
    let infinite = |d: &Datum| {
        matches!(d, Datum::Timestamp(i64::MIN | i64::MAX) | Datum::Timestamptz(i64::MIN | i64::MAX))
    };
    if args.iter().any(infinite) {
        let most = Interval { months: i32::MAX, days: i32::MAX, micros: i64::MAX };
        return Ok(Datum::Interval(Arc::new(most)));
    }
    apart(minus, args, cx)
}
