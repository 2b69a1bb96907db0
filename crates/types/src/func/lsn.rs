//! Arithmetic of positions in the log (`pg_lsn`), in numerics so that nothing overflows on the way; parts of
//! snapshots (`pg_snapshot`).

use base::{Result, err};

use super::{Body, NamedBody, S};
use crate::datum::{Datum, Numeric};
use crate::io::snapshot::XidSnapshot;

fn number(position: i64) -> Numeric {
    Numeric::from_i128(i128::from(position as u64), 0)
}

/// # Errors
/// `0A000`, `22023`
fn position(n: &Numeric) -> Result<Datum> {
    if !n.is_finite() {
        let what = if n.is_nan() { "NaN" } else { "infinity" };
        return Err(err!(FEATURE_NOT_SUPPORTED, "cannot convert {what} to pg_lsn"));
    }
    let whole = n.round(0).to_i128().and_then(|v| u64::try_from(v).ok());
    whole
        .map(|v| Datum::Int8(v as i64))
        .ok_or_else(|| err!(INVALID_PARAMETER_VALUE, "pg_lsn out of range"))
}

fn add(lsn: &Datum, bytes: &Datum) -> Result<Datum> {
    if bytes.as_numeric().is_nan() {
        return Err(err!(FEATURE_NOT_SUPPORTED, "cannot add NaN to pg_lsn"));
    }
    position(&number(lsn.as_int8()).add(bytes.as_numeric())?)
}

fn subtract(lsn: &Datum, bytes: &Datum) -> Result<Datum> {
    if bytes.as_numeric().is_nan() {
        return Err(err!(FEATURE_NOT_SUPPORTED, "cannot subtract NaN from pg_lsn"));
    }
    position(&number(lsn.as_int8()).sub(bytes.as_numeric())?)
}

fn snapshot(value: &Datum) -> Result<XidSnapshot> {
    XidSnapshot::parse(value.as_str())
}

/// The bodies of this family.
pub(super) fn bodies() -> Vec<NamedBody> {
    vec![
        ("pg_lsn_mi", S(|a, _| Ok(number(a[0].as_int8()).sub(&number(a[1].as_int8()))?.into()))),
        ("pg_lsn_pli", S(|a, _| add(&a[0], &a[1]))),
        ("sql_numeric_pl_pg_lsn", S(|a, _| add(&a[1], &a[0]))),
        ("pg_lsn_mii", S(|a, _| subtract(&a[0], &a[1]))),
        ("pg_snapshot_xmin", S(|a, _| Ok(Datum::Int8(snapshot(&a[0])?.xmin as i64)))),
        ("pg_snapshot_xmax", S(|a, _| Ok(Datum::Int8(snapshot(&a[0])?.xmax as i64)))),
        (
            "pg_snapshot_xip",
            Body::Set(|a, _| {
                let running = snapshot(&a[0])?.running;
                Ok(running.into_iter().map(|xid| Datum::Int8(xid as i64)).collect())
            }),
        ),
        (
            "pg_visible_in_snapshot",
            S(|a, _| Ok(snapshot(&a[1])?.sees(a[0].as_int8() as u64).into())),
        ),
        ("numeric_pg_lsn", S(|a, _| position(a[0].as_numeric()))),
    ]
}
