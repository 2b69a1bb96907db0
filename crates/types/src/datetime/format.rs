//! Text forms of dates, times and timestamps in the four `DateStyle`s.

use super::{
    DATE_INFINITY, DATE_MINUS_INFINITY, HOUR, INFINITY, MINUS_INFINITY, MINUTE, SECOND, civil_of,
    split, weekday,
};
use crate::datum::Datum;
use crate::io::{DateOrder, DateStyle, FormatContext};

/// English names, as PostgreSQL prints them.
pub(crate) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
/// English names, from Sunday.
pub(crate) const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// Appends a number with at least `width` digits.
pub(super) fn put(v: i64, width: usize, out: &mut Vec<u8>) {
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(v);
    out.resize(out.len() + width.saturating_sub(digits.len()), b'0');
    out.extend_from_slice(digits.as_bytes());
}

/// Appends `.5`, `.123456`, or nothing.
pub(super) fn put_fraction(micros: i64, out: &mut Vec<u8>) {
    if micros == 0 {
        return;
    }
    out.push(b'.');
    put(micros, 6, out);
    while out.last() == Some(&b'0') {
        out.pop();
    }
}

/// Appends `hh:mm:ss[.ffffff]`.
pub(super) fn put_clock(micros: i64, out: &mut Vec<u8>) {
    put(micros / HOUR, 2, out);
    out.push(b':');
    put(micros / MINUTE % 60, 2, out);
    out.push(b':');
    put(micros / SECOND % 60, 2, out);
    put_fraction(micros % SECOND, out);
}

/// Appends `+03`, `-03:30`, `+01:02:03`.
pub(super) fn put_zone(seconds: i32, out: &mut Vec<u8>) {
    out.push(if seconds < 0 { b'-' } else { b'+' });
    let s = i64::from(seconds.abs());
    put(s / 3600, 2, out);
    if s % 3600 != 0 {
        out.push(b':');
        put(s / 60 % 60, 2, out);
        if s % 60 != 0 {
            out.push(b':');
            put(s % 60, 2, out);
        }
    }
}

/// Year as people count, and whether it is BC.
fn people_year(year: i64) -> (i64, bool) {
    if year > 0 { (year, false) } else { (1 - year, true) }
}

/// Appends a date without its era.
fn put_date(year: i64, month: i64, day: i64, cx: &FormatContext, out: &mut Vec<u8>) {
    let parts = match (cx.date_style, cx.date_order) {
        (DateStyle::Iso, _) => [(year, 4), (month, 2), (day, 2)],
        (DateStyle::German, _) => [(day, 2), (month, 2), (year, 4)],
        (_, DateOrder::Dmy) => [(day, 2), (month, 2), (year, 4)],
        _ => [(month, 2), (day, 2), (year, 4)],
    };
    let separator = match cx.date_style {
        DateStyle::Iso | DateStyle::Postgres => b'-',
        DateStyle::Sql => b'/',
        DateStyle::German => b'.',
    };
    for (i, (v, width)) in parts.into_iter().enumerate() {
        if i > 0 {
            out.push(separator);
        }
        put(v, width, out);
    }
}

/// Appends a date.
pub(crate) fn write_date(d: i32, cx: &FormatContext, out: &mut Vec<u8>) {
    match d {
        DATE_INFINITY => out.extend_from_slice(b"infinity"),
        DATE_MINUS_INFINITY => out.extend_from_slice(b"-infinity"),
        _ => {
            let (year, month, day) = civil_of(i64::from(d));
            let (year, bc) = people_year(year);
            put_date(year, month, day, cx, out);
            if bc {
                out.extend_from_slice(b" BC");
            }
        }
    }
}

/// Appends a time and its zone.
pub(crate) fn write_timetz(t: i64, west: i32, out: &mut Vec<u8>) {
    put_clock(t, out);
    put_zone(-west, out);
}

/// Appends a date, timestamp or timestamptz as JSON has it: ISO form with a `T`, whatever
/// `DateStyle` says, and minutes in every zone.
pub(crate) fn write_xsd(value: &Datum, cx: &FormatContext, out: &mut Vec<u8>) {
    let iso = FormatContext { date_style: DateStyle::Iso, ..cx.clone() };
    let start = out.len();
    match value {
        Datum::Date(d) => return write_date(*d, &iso, out),
        Datum::Timestamp(t) => write_timestamp(*t, &iso, out),
        Datum::Timestamptz(t) => write_timestamptz(*t, &iso, out),
        _ => return,
    }
    let Some(blank) = out[start..].iter().position(|b| *b == b' ') else { return };
    out[start + blank] = b'T';
    if matches!(value, Datum::Timestamptz(_)) {
        let end = out[start..].iter().rposition(|b| matches!(b, b'+' | b'-')).map(|p| start + p);
        let stop = out[start..].iter().position(|b| *b == b' ').map_or(out.len(), |p| start + p);
        if end.is_some_and(|e| stop - e == 3) {
            out.splice(stop..stop, *b":00");
        }
    }
}

/// Appends `hh:mm:ss[.ffffff]`.
pub(crate) fn write_time(t: i64, out: &mut Vec<u8>) {
    put_clock(t, out);
}

/// Appends a timestamp.
pub(crate) fn write_timestamp(t: i64, cx: &FormatContext, out: &mut Vec<u8>) {
    if !write_infinity(t, out) {
        write_zoned(t, None, cx, out);
    }
}

/// Appends a timestamptz, in the session's zone.
pub(crate) fn write_timestamptz(t: i64, cx: &FormatContext, out: &mut Vec<u8>) {
    if write_infinity(t, out) {
        return;
    }
    if cx.date_style == DateStyle::Iso {
        let seconds = cx.time_zone.seconds_at(t);
        write_zoned(t.saturating_add(i64::from(seconds) * SECOND), Some((seconds, "")), cx, out);
    } else {
        let offset = cx.time_zone.at(t);
        let local = t.saturating_add(i64::from(offset.seconds) * SECOND);
        write_zoned(local, Some((offset.seconds, &offset.abbreviation)), cx, out);
    }
}

fn write_infinity(t: i64, out: &mut Vec<u8>) -> bool {
    match t {
        INFINITY => out.extend_from_slice(b"infinity"),
        MINUS_INFINITY => out.extend_from_slice(b"-infinity"),
        _ => return false,
    }
    true
}

/// Appends a local time, with its offset and the zone's abbreviation if there is one.
fn write_zoned(local: i64, zone: Option<(i32, &str)>, cx: &FormatContext, out: &mut Vec<u8>) {
    let (days, micros) = split(local);
    let (year, month, day) = civil_of(days);
    let (year, bc) = people_year(year);
    if cx.date_style == DateStyle::Postgres {
        out.extend_from_slice(&DAYS[weekday(days) as usize].as_bytes()[..3]);
        out.push(b' ');
        let name = &MONTHS[month as usize - 1].as_bytes()[..3];
        if cx.date_order == DateOrder::Dmy {
            put(day, 2, out);
            out.push(b' ');
            out.extend_from_slice(name);
        } else {
            out.extend_from_slice(name);
            out.push(b' ');
            put(day, 2, out);
        }
        out.push(b' ');
        put_clock(micros, out);
        out.push(b' ');
        put(year, 4, out);
    } else {
        put_date(year, month, day, cx, out);
        out.push(b' ');
        put_clock(micros, out);
    }
    match zone {
        None => {}
        Some((seconds, _)) if cx.date_style == DateStyle::Iso => put_zone(seconds, out),
        Some((_, abbreviation)) => {
            out.push(b' ');
            out.extend_from_slice(abbreviation.as_bytes());
        }
    }
    if bc {
        out.extend_from_slice(b" BC");
    }
}
