//! Arguments of session functions by position, and results.

use types::Datum;

/// A text datum.
pub fn text(value: impl Into<types::Text>) -> Datum {
    Datum::Text(value.into())
}

pub(super) fn oid_at(args: &[Datum], n: usize) -> u32 {
    match args.get(n) {
        Some(Datum::Oid(v)) => *v,
        Some(Datum::Int4(v)) => *v as u32,
        Some(Datum::Int8(v)) => *v as u32,
        _ => 0,
    }
}

pub(super) fn text_at(args: &[Datum], n: usize) -> &str {
    match args.get(n) {
        Some(Datum::Text(v)) => v,
        _ => "",
    }
}

pub(super) fn int_at(args: &[Datum], n: usize) -> i64 {
    match args.get(n) {
        Some(Datum::Int2(v)) => i64::from(*v),
        Some(Datum::Int4(v)) => i64::from(*v),
        Some(Datum::Int8(v)) => *v,
        _ => 0,
    }
}
