//! `to_char`, `to_date`, `to_timestamp`, `to_number`: text by a template.

mod date;
mod number;
pub(super) mod read;

use base::Result;

use super::{NamedBody, S};
use crate::datetime;
use crate::datum::{Datum, Numeric};
use crate::io::FormatContext;

/// Roman numerals of 1 to 3999.
fn roman(n: i64) -> String {
    const DIGITS: [(i64, &str); 13] = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    let (mut rest, mut out) = (n, String::new());
    for (value, digit) in DIGITS {
        while rest >= value {
            out.push_str(digit);
            rest -= value;
        }
    }
    out
}

/// `st`, `nd`, `rd`, `th` for a number's text.
fn ordinal(number: &str) -> &'static str {
    let digits = number.as_bytes();
    let last = digits.last().copied().unwrap_or(b'0');
    if digits.len() > 1 && digits[digits.len() - 2] == b'1' {
        return "th";
    }
    match last {
        b'1' => "st",
        b'2' => "nd",
        b'3' => "rd",
        _ => "th",
    }
}

fn shown(a: &[Datum], cx: &FormatContext) -> Result<Datum> {
    let template = a[1].as_str();
    if template.is_empty() {
        return Ok(Datum::Null);
    }
    let moment = match &a[0] {
        Datum::Timestamp(t) if datetime::is_finite(*t) => date::Moment::of_local(*t, None),
        Datum::Timestamptz(t) if datetime::is_finite(*t) => {
            let offset = cx.time_zone.at(*t);
            let local = t.saturating_add(i64::from(offset.seconds) * datetime::SECOND);
            date::Moment::of_local(local, Some((offset.seconds, offset.abbreviation)))
        }
        Datum::Interval(i) => date::Moment::of_interval(i),
        // Infinities have no fields.
        _ => return Ok(Datum::Null),
    };
    date::format(template, &moment).map(Datum::from)
}

fn shown_number(a: &[Datum]) -> Result<Datum> {
    let n = match &a[0] {
        Datum::Numeric(n) => n.clone(),
        Datum::Float8(v) => Numeric::from_f64(*v),
        Datum::Float4(v) => Numeric::from_f32(*v),
        other => Numeric::from(other.to_i64().unwrap_or_default()),
    };
    let precision = match &a[0] {
        Datum::Float8(_) => number::Precision { digits: Some(15), ..Default::default() },
        Datum::Float4(_) => number::Precision { digits: Some(6), ..Default::default() },
        Datum::Numeric(_) => number::Precision { exact: true, ..Default::default() },
        Datum::Int8(_) => {
            number::Precision { integer: Some((i64::MAX, "bigint")), ..Default::default() }
        }
        _ => number::Precision {
            integer: Some((i64::from(i32::MAX), "integer")),
            ..Default::default()
        },
    };
    number::format(a[1].as_str(), &n, precision).map(Datum::from)
}

/// The bodies of this family.
pub(super) fn bodies() -> Vec<NamedBody> {
    vec![
        ("timestamp_to_char", S(shown)),
        ("timestamptz_to_char", S(shown)),
        ("interval_to_char", S(shown)),
        ("numeric_to_char", S(|a, _| shown_number(a))),
        ("int4_to_char", S(|a, _| shown_number(a))),
        ("int8_to_char", S(|a, _| shown_number(a))),
        ("float4_to_char", S(|a, _| shown_number(a))),
        ("float8_to_char", S(|a, _| shown_number(a))),
        ("numeric_to_number", S(|a, _| number::read(a[0].as_str(), a[1].as_str()))),
        ("to_date", S(|a, _| read::date(a[0].as_str(), a[1].as_str()))),
        ("to_timestamp", S(|a, cx| read::timestamp(a[0].as_str(), a[1].as_str(), cx))),
    ]
}
