//! Functions of date, time, timestamp, timestamptz and interval.

use std::cmp::Ordering;

use base::{Result, err};

use super::{NamedBody, S};
use crate::datetime::{self, DAY, HOUR, MINUTE, SECOND, TimeZone};
use crate::datum::{Datum, Interval, Numeric};
use crate::io::FormatContext;

fn timestamp(t: i64) -> Datum {
    Datum::Timestamp(t)
}

fn timestamptz(t: i64) -> Datum {
    Datum::Timestamptz(t)
}

fn interval(i: Interval) -> Datum {
    Datum::Interval(i.into())
}

/// Microseconds of a timestamp or timestamptz.
fn micros(d: &Datum) -> i64 {
    match d {
        Datum::Timestamp(t) | Datum::Timestamptz(t) => *t,
        other => other.as_timestamp(),
    }
}

fn negate(i: Interval) -> Result<Interval> {
    let fields = (i.months.checked_neg(), i.days.checked_neg(), i.micros.checked_neg());
    match fields {
        (Some(months), Some(days), Some(micros)) => Ok(Interval { months, days, micros }),
        _ => Err(datetime::interval_out_of_range()),
    }
}

fn add(a: Interval, b: Interval) -> Result<Interval> {
    let fields = (
        a.months.checked_add(b.months),
        a.days.checked_add(b.days),
        a.micros.checked_add(b.micros),
    );
    match fields {
        (Some(months), Some(days), Some(micros)) => Ok(Interval { months, days, micros }),
        _ => Err(datetime::interval_out_of_range()),
    }
}

/// Sum of intervals, for aggregates.
pub(super) fn add_intervals(a: Interval, b: Interval) -> Result<Interval> {
    add(a, b)
}

/// An interval over a number, for aggregates.
pub(super) fn divide_interval(i: &Interval, by: f64) -> Result<Interval> {
    if by == 0.0 {
        return Err(super::int::division_by_zero());
    }
    datetime::scale_interval(i, |v| v / by)
}

/// Timestamp, timestamptz or date plus interval.
fn plus(t: &Datum, i: Interval, cx: &FormatContext) -> Result<Datum> {
    match t {
        Datum::Timestamptz(t) => {
            datetime::add_interval(*t, &i, Some(&cx.time_zone)).map(timestamptz)
        }
        Datum::Timestamp(t) => datetime::add_interval(*t, &i, None).map(timestamp),
        Datum::Date(d) => datetime::add_interval_to_date(*d, &i).map(timestamp),
        Datum::Time(t) => Ok(Datum::Time(datetime::time_plus_interval(*t, i.micros))),
        other => Ok(timestamp(other.as_timestamp())),
    }
}

fn date_plus(d: i32, days: i64) -> Result<Datum> {
    if !datetime::is_finite_date(d) {
        return Ok(Datum::Date(d));
    }
    datetime::check_date(i64::from(d) + days).map(Datum::Date)
}

/// The zone that an argument names.
fn zone(name: &Datum) -> Result<TimeZone> {
    let name = name.as_str();
    TimeZone::parse_any(name)
        .ok_or_else(|| err!(INVALID_PARAMETER_VALUE, "time zone \"{name}\" not recognized"))
}

/// AT TIME ZONE; infinity is the same everywhere, and no zone is looked for.
fn moved(
    value: &Datum,
    zone: impl FnOnce() -> Result<TimeZone>,
    to: fn(i64, &TimeZone) -> Result<i64>,
) -> Result<i64> {
    let t = micros(value);
    if datetime::is_finite(t) { to(t, &zone()?) } else { Ok(t) }
}

/// A typmod that a call gives, not a type.
fn checked_precision(value: &Datum, typmod: i32) -> Result<i32> {
    if (-1..=6).contains(&typmod) || !datetime::is_finite(micros(value)) {
        return Ok(typmod);
    }
    Err(err!(INVALID_PARAMETER_VALUE, "timestamp({typmod}) precision must be between 0 and 6"))
}

/// The zone at an interval's distance.
pub(super) fn zone_of_interval(i: &Datum) -> Result<TimeZone> {
    let i = i.as_interval();
    if i.months != 0 || i.days != 0 {
        let mut shown = Vec::new();
        datetime::write_interval(&i, crate::io::IntervalStyle::Postgres, &mut shown);
        return Err(err!(
            INVALID_PARAMETER_VALUE,
            "interval time zone \"{}\" must not include months or days",
            String::from_utf8_lossy(&shown)
        ));
    }
    Ok(TimeZone::fixed((i.micros / SECOND) as i32))
}

/// An instant of anything that has one: timestamptz, or a local time in the session's zone.
fn instant(d: &Datum, cx: &FormatContext) -> Result<i64> {
    match d {
        Datum::Timestamptz(t) => Ok(*t),
        Datum::Timestamp(t) => datetime::local_to_utc(*t, &cx.time_zone),
        Datum::Date(d) => datetime::local_to_utc(datetime::date_to_timestamp(*d)?, &cx.time_zone),
        other => Ok(other.as_timestamptz()),
    }
}

/// Order of values of different types: as local times, or as instants when one of them is.
fn order(a: &Datum, b: &Datum, cx: &FormatContext) -> Result<Ordering> {
    let instants = matches!((a, b), (Datum::Timestamptz(_), _) | (_, Datum::Timestamptz(_)));
    let wide = |d: &Datum| match d {
        Datum::Date(d) if !datetime::is_finite_date(*d) => i128::from(d.signum()) << 120,
        // A date that no timestamp can be is outside all finite ones.
        Datum::Date(day) if instants => match instant(d, cx) {
            Ok(t) => i128::from(t),
            Err(_) => i128::from(day.signum()) << 100,
        },
        Datum::Date(d) => i128::from(*d) * i128::from(DAY),
        other if !datetime::is_finite(micros(other)) => i128::from(micros(other).signum()) << 120,
        Datum::Timestamp(t) if instants => match instant(d, cx) {
            Ok(t) => i128::from(t),
            Err(_) => i128::from(t.signum()) << 100,
        },
        other => i128::from(micros(other)),
    };
    Ok(wide(a).cmp(&wide(b)))
}

fn number(v: Option<Numeric>) -> Result<Datum> {
    Ok(v.into())
}

fn float(v: Option<Numeric>) -> Result<Datum> {
    Ok(v.map(|n| n.to_f64()).into())
}

fn extract(a: &[Datum], cx: &FormatContext) -> Result<Option<Numeric>> {
    let word = a[0].as_str();
    match &a[1] {
        Datum::Timestamp(t) => datetime::extract(word, *t, *t, None, "timestamp without time zone"),
        Datum::Timestamptz(t) => {
            let seconds = if datetime::is_finite(*t) { cx.time_zone.seconds_at(*t) } else { 0 };
            let local = t.saturating_add(i64::from(seconds) * SECOND);
            datetime::extract(word, local, *t, Some(seconds), "timestamp with time zone")
        }
        Datum::Date(d) => datetime::extract_date(word, *d),
        Datum::Time(t) => datetime::extract_time(word, *t),
        other => datetime::extract_interval(word, &other.as_interval()),
    }
}

/// The zone of `make_timestamptz`: a distance with its sign as ISO 8601 has it (`+2`, `+02:30`, `-0230`), or as
/// elsewhere.
fn made_zone(value: &Datum) -> Result<datetime::TimeZone> {
    let name = value.as_str();
    let (sign, rest) = match name.as_bytes().first() {
        Some(b'+') => (1, &name[1..]),
        Some(b'-') => (-1, &name[1..]),
        Some(b) if b.is_ascii_digit() => {
            return Err(err!(
                INVALID_PARAMETER_VALUE,
                "invalid input syntax for type numeric time zone: \"{name}\""
            )
            .hint("Numeric time zones must have \"-\" or \"+\" as first character."));
        }
        _ => return zone(value),
    };
    let mut parts = rest.split(':').map(|part| match part {
        "" => Some(0),
        part => part.bytes().all(|b| b.is_ascii_digit()).then(|| part.parse().ok()).flatten(),
    });
    let fields: Option<Vec<i32>> = parts.by_ref().collect();
    let Some(fields) = fields.filter(|f| f.len() <= 3 && !rest.is_empty()) else {
        return zone(value);
    };
    let (hours, minutes, seconds) = match fields[..] {
        [together] if rest.len() > 2 => (together / 100, together % 100, 0),
        [hours, ref more @ ..] => {
            (hours, more.first().copied().unwrap_or(0), more.get(1).copied().unwrap_or(0))
        }
        [] => (0, 0, 0),
    };
    if hours > 15 || minutes > 59 || seconds > 59 {
        return Err(err!(INVALID_PARAMETER_VALUE, "numeric time zone \"{name}\" out of range"));
    }
    Ok(datetime::TimeZone::fixed(sign * (hours * 3600 + minutes * 60 + seconds)))
}

/// `date_part` of a date: as of its midnight.
fn date_part_of_date(a: &[Datum]) -> Result<Datum> {
    let t = datetime::date_to_timestamp(a[1].as_date())?;
    let word = a[0].as_str();
    float(datetime::extract(word, t, t, None, "timestamp without time zone")?)
}

/// Today at midnight, in the session's zone.
fn today(cx: &FormatContext) -> i64 {
    let local = cx.now.saturating_add(i64::from(cx.time_zone.seconds_at(cx.now)) * SECOND);
    datetime::split(local).0 * DAY
}

fn make_clock(hour: i32, minute: i32, second: f64) -> Result<i64> {
    let valid =
        (0..=24).contains(&hour) && (0..60).contains(&minute) && (0.0..=60.0).contains(&second);
    let micros = (second * SECOND as f64).round_ties_even() as i64;
    let t = if valid { i64::from(hour) * HOUR + i64::from(minute) * MINUTE + micros } else { 0 };
    if !valid || t > DAY {
        return Err(err!(
            DATETIME_FIELD_OVERFLOW,
            "time field value out of range: {hour}:{minute:02}:{second:02}"
        ));
    }
    Ok(t)
}

fn make_date(year: i32, month: i32, day: i32) -> Result<i64> {
    // Years before Christ are counted from 0, and shown so where they are refused.
    let bc = if year < 0 { year + 1 } else { year };
    let fail =
        || err!(DATETIME_FIELD_OVERFLOW, "date field value out of range: {bc}-{month:02}-{day:02}");
    if year == 0 {
        return Err(fail());
    }
    if !(1..=12).contains(&month)
        || day < 1
        || i64::from(day) > datetime::month_days(bc.into(), month.into())
    {
        return Err(fail());
    }
    let days = datetime::days_of(bc.into(), month.into(), day.into());
    datetime::check_date(days).map_err(|_| {
        err!(DATETIME_VALUE_OUT_OF_RANGE, "date out of range: {year}-{month:02}-{day:02}")
    })?;
    Ok(days)
}

fn make_timestamp(a: &[Datum]) -> Result<i64> {
    let i = |n: usize| a[n].as_int4();
    let days = make_date(i(0), i(1), i(2))?;
    let clock = make_clock(i(3), i(4), a[5].as_float8())?;
    datetime::check_timestamp(i128::from(days) * i128::from(DAY) + i128::from(clock))
}

fn make_interval(a: &[Datum]) -> Result<Interval> {
    let i = |n: usize| i64::from(a[n].as_int4());
    let fit = |v: i64| i32::try_from(v).map_err(|_| datetime::interval_out_of_range());
    let seconds = a[6].as_float8();
    if !seconds.is_finite() {
        return Err(datetime::interval_out_of_range());
    }
    Ok(Interval {
        months: fit(i(0) * 12 + i(1))?,
        days: fit(i(2) * 7 + i(3))?,
        micros: i(4) * HOUR + i(5) * MINUTE + (seconds * 1e6).round_ties_even() as i64,
    })
}

/// `to_timestamp(seconds)`.
fn from_epoch(seconds: f64) -> Result<i64> {
    if seconds.is_nan() {
        return Err(err!(DATETIME_VALUE_OUT_OF_RANGE, "timestamp cannot be NaN"));
    }
    if seconds.is_infinite() {
        return Ok(if seconds > 0.0 { datetime::INFINITY } else { datetime::MINUS_INFINITY });
    }
    let micros = ((seconds - datetime::EPOCH_DAYS as f64 * 86_400.0) * 1e6).round_ties_even();
    datetime::check_timestamp(micros as i128)
        .map_err(|_| err!(DATETIME_VALUE_OUT_OF_RANGE, "timestamp out of range: \"{seconds}\""))
}

/// `(a, b) OVERLAPS (c, d)`; an end that is an interval counts from its start.
fn overlaps(a: &[Datum], cx: &FormatContext) -> Result<Datum> {
    let period = |from: &Datum, to: &Datum| -> Result<(Datum, Datum)> {
        let (from, to) = match (from, to) {
            // An interval after no start has no end either.
            (Datum::Null, Datum::Null | Datum::Interval(_)) => {
                return Ok((Datum::Null, Datum::Null));
            }
            (from, Datum::Interval(i)) if !from.is_null() => (from.clone(), plus(from, **i, cx)?),
            (Datum::Null, to) => (to.clone(), Datum::Null),
            (from, to) => (from.clone(), to.clone()),
        };
        let swap = !to.is_null() && crate::order::compare(&from, &to).is_gt();
        Ok(if swap { (to, from) } else { (from, to) })
    };
    let ((a, b), (c, d)) = (period(&a[0], &a[1])?, period(&a[2], &a[3])?);
    if a.is_null() || c.is_null() {
        return Ok(Datum::Null);
    }
    // The later start decides: does the other period reach it?
    let (start, end, other_end) = match crate::order::compare(&a, &c) {
        Ordering::Equal => {
            return Ok(if b.is_null() || d.is_null() { Datum::Null } else { true.into() });
        }
        Ordering::Greater => (&a, &d, &b),
        Ordering::Less => (&c, &b, &d),
    };
    Ok(if end.is_null() {
        Datum::Null
    } else if crate::order::compare(start, end).is_lt() {
        true.into()
    } else if other_end.is_null() {
        Datum::Null
    } else {
        false.into()
    })
}

/// The bodies of this family.
pub(super) fn bodies() -> Vec<NamedBody> {
    let mut all = arithmetic();
    all.extend(conversions());
    all.extend(parts());
    all.extend(making());
    for (left, right) in [
        ("date", "timestamp"),
        ("date", "timestamptz"),
        ("timestamp", "date"),
        ("timestamptz", "date"),
        ("timestamp", "timestamptz"),
        ("timestamptz", "timestamp"),
    ] {
        all.extend(mixed(left, right));
    }
    all
}

/// `=` and kin of two different types.
fn mixed(left: &str, right: &str) -> Vec<NamedBody> {
    let name = |op: &str| -> &'static str { String::leak(format!("{left}_{op}_{right}")) };
    vec![
        (name("eq"), S(|a, cx| Ok(order(&a[0], &a[1], cx)?.is_eq().into()))),
        (name("ne"), S(|a, cx| Ok(order(&a[0], &a[1], cx)?.is_ne().into()))),
        (name("lt"), S(|a, cx| Ok(order(&a[0], &a[1], cx)?.is_lt().into()))),
        (name("le"), S(|a, cx| Ok(order(&a[0], &a[1], cx)?.is_le().into()))),
        (name("gt"), S(|a, cx| Ok(order(&a[0], &a[1], cx)?.is_gt().into()))),
        (name("ge"), S(|a, cx| Ok(order(&a[0], &a[1], cx)?.is_ge().into()))),
        (name("cmp"), S(|a, cx| Ok(Datum::Int4(order(&a[0], &a[1], cx)? as i32)))),
    ]
}

fn arithmetic() -> Vec<NamedBody> {
    vec![
        ("date_pli", S(|a, _| date_plus(a[0].as_date(), a[1].as_int4().into()))),
        ("date_mii", S(|a, _| date_plus(a[0].as_date(), -i64::from(a[1].as_int4())))),
        ("sql_integer_pl_date", S(|a, _| date_plus(a[1].as_date(), a[0].as_int4().into()))),
        (
            "date_mi",
            S(|a, _| {
                let (x, y) = (a[0].as_date(), a[1].as_date());
                if !datetime::is_finite_date(x) || !datetime::is_finite_date(y) {
                    return Err(err!(
                        DATETIME_VALUE_OUT_OF_RANGE,
                        "cannot subtract infinite dates"
                    ));
                }
                Ok((x - y).into())
            }),
        ),
        ("date_pl_interval", S(|a, cx| plus(&a[0], a[1].as_interval(), cx))),
        ("date_mi_interval", S(|a, cx| plus(&a[0], negate(a[1].as_interval())?, cx))),
        ("timestamp_pl_interval", S(|a, cx| plus(&a[0], a[1].as_interval(), cx))),
        ("timestamp_mi_interval", S(|a, cx| plus(&a[0], negate(a[1].as_interval())?, cx))),
        ("timestamptz_pl_interval", S(|a, cx| plus(&a[0], a[1].as_interval(), cx))),
        ("timestamptz_mi_interval", S(|a, cx| plus(&a[0], negate(a[1].as_interval())?, cx))),
        ("time_pl_interval", S(|a, cx| plus(&a[0], a[1].as_interval(), cx))),
        (
            "time_mi_interval",
            S(|a, _| {
                let i = a[1].as_interval().micros;
                let t = i128::from(a[0].as_time()) - i128::from(i);
                Ok(Datum::Time(t.rem_euclid(i128::from(DAY)) as i64))
            }),
        ),
        ("sql_interval_pl_date", S(|a, cx| plus(&a[1], a[0].as_interval(), cx))),
        ("sql_interval_pl_time", S(|a, cx| plus(&a[1], a[0].as_interval(), cx))),
        ("sql_interval_pl_timestamp", S(|a, cx| plus(&a[1], a[0].as_interval(), cx))),
        ("sql_interval_pl_timestamptz", S(|a, cx| plus(&a[1], a[0].as_interval(), cx))),
        (
            "sql_timedate_pl",
            S(|a, cx| plus(&a[1], Interval { micros: a[0].as_time(), ..Interval::default() }, cx)),
        ),
        ("time_mi_time", S(|a, _| Ok(Datum::interval(0, 0, a[0].as_time() - a[1].as_time())))),
        (
            "timestamp_mi",
            S(|a, _| datetime::subtract_times(micros(&a[0]), micros(&a[1])).map(interval)),
        ),
        ("interval_pl", S(|a, _| add(a[0].as_interval(), a[1].as_interval()).map(interval))),
        (
            "interval_mi",
            S(|a, _| add(a[0].as_interval(), negate(a[1].as_interval())?).map(interval)),
        ),
        ("interval_um", S(|a, _| negate(a[0].as_interval()).map(interval))),
        (
            "interval_mul",
            S(|a, _| {
                let factor = a[1].as_float8();
                datetime::scale_interval(&a[0].as_interval(), |v| v * factor).map(interval)
            }),
        ),
        (
            "mul_d_interval",
            S(|a, _| {
                let factor = a[0].as_float8();
                datetime::scale_interval(&a[1].as_interval(), |v| v * factor).map(interval)
            }),
        ),
        (
            "interval_div",
            S(|a, _| divide_interval(&a[0].as_interval(), a[1].as_float8()).map(interval)),
        ),
        (
            "interval_justify_days",
            S(|a, _| datetime::justify_days(a[0].as_interval()).map(interval)),
        ),
        (
            "interval_justify_hours",
            S(|a, _| datetime::justify_hours(a[0].as_interval()).map(interval)),
        ),
        (
            "interval_justify_interval",
            S(|a, _| datetime::justify_interval(a[0].as_interval()).map(interval)),
        ),
        ("timestamp_age", S(|a, _| datetime::age(micros(&a[0]), micros(&a[1])).map(interval))),
        (
            "timestamptz_age",
            S(|a, cx| {
                let local = |d: &Datum| datetime::wall_clock(micros(d), &cx.time_zone);
                datetime::age(local(&a[0]), local(&a[1])).map(interval)
            }),
        ),
        (
            "sql_age",
            S(|a, cx| match &a[0] {
                Datum::Timestamptz(t) => {
                    datetime::age(today(cx), datetime::wall_clock(*t, &cx.time_zone)).map(interval)
                }
                t => datetime::age(today(cx), micros(t)).map(interval),
            }),
        ),
        ("overlaps_timestamp", S(overlaps)),
        ("overlaps_time", S(overlaps)),
        ("sql_overlaps", S(overlaps)),
        ("overlaps_timetz", S(overlaps)),
    ]
}

fn conversions() -> Vec<NamedBody> {
    vec![
        ("date_timestamp", S(|a, _| datetime::date_to_timestamp(a[0].as_date()).map(timestamp))),
        ("date_timestamptz", S(|a, cx| instant(&a[0], cx).map(timestamptz))),
        (
            "datetime_timestamp",
            S(|a, _| {
                let midnight = datetime::date_to_timestamp(a[0].as_date())?;
                if !datetime::is_finite(midnight) {
                    return Ok(timestamp(midnight));
                }
                datetime::check_timestamp(i128::from(midnight) + i128::from(a[1].as_time()))
                    .map(timestamp)
            }),
        ),
        ("timestamp_date", S(|a, _| Ok(Datum::Date(datetime::timestamp_to_date(micros(&a[0])))))),
        (
            "timestamptz_date",
            S(|a, cx| {
                let local = datetime::wall_clock(micros(&a[0]), &cx.time_zone);
                Ok(Datum::Date(datetime::timestamp_to_date(local)))
            }),
        ),
        (
            "timestamp_time",
            S(|a, _| {
                let t = micros(&a[0]);
                Ok(if datetime::is_finite(t) {
                    Datum::Time(datetime::split(t).1)
                } else {
                    Datum::Null
                })
            }),
        ),
        (
            "timestamptz_time",
            S(|a, cx| {
                let t = datetime::wall_clock(micros(&a[0]), &cx.time_zone);
                Ok(if datetime::is_finite(t) {
                    Datum::Time(datetime::split(t).1)
                } else {
                    Datum::Null
                })
            }),
        ),
        ("timestamp_timestamptz", S(|a, cx| instant(&a[0], cx).map(timestamptz))),
        (
            "sql_timestamptz",
            S(|a, cx| {
                let midnight = datetime::date_to_timestamp(a[0].as_date())?;
                if !datetime::is_finite(midnight) {
                    return Ok(timestamptz(midnight));
                }
                let local = i128::from(midnight) + i128::from(a[1].as_time());
                let local = datetime::check_timestamp(local)?;
                datetime::local_to_utc(local, &cx.time_zone).map(timestamptz)
            }),
        ),
        (
            "timestamptz_timestamp",
            S(|a, cx| datetime::utc_to_local(micros(&a[0]), &cx.time_zone).map(timestamp)),
        ),
        (
            "interval_time",
            S(|a, _| Ok(Datum::Time(datetime::interval_to_time(&a[0].as_interval())))),
        ),
        ("time_interval", S(|a, _| Ok(Datum::interval(0, 0, a[0].as_time())))),
        (
            "interval_scale",
            S(|a, _| datetime::fit_interval(a[0].as_interval(), a[1].as_int4()).map(interval)),
        ),
        (
            "time_scale",
            S(|a, _| Ok(Datum::Time(datetime::round_time(a[0].as_time(), a[1].as_int4())))),
        ),
        (
            "timestamp_scale",
            S(|a, _| {
                let precision = checked_precision(&a[0], a[1].as_int4())?;
                Ok(timestamp(datetime::round_timestamp(micros(&a[0]), precision)))
            }),
        ),
        (
            "timestamptz_scale",
            S(|a, _| {
                let precision = checked_precision(&a[0], a[1].as_int4())?;
                Ok(timestamptz(datetime::round_timestamp(micros(&a[0]), precision)))
            }),
        ),
        (
            "timestamp_zone",
            S(|a, _| moved(&a[1], || zone(&a[0]), datetime::local_to_utc).map(timestamptz)),
        ),
        (
            "timestamptz_zone",
            S(|a, _| moved(&a[1], || zone(&a[0]), datetime::utc_to_local).map(timestamp)),
        ),
        (
            "timestamp_izone",
            S(|a, _| {
                moved(&a[1], || zone_of_interval(&a[0]), datetime::local_to_utc).map(timestamptz)
            }),
        ),
        (
            "timestamptz_izone",
            S(|a, _| {
                moved(&a[1], || zone_of_interval(&a[0]), datetime::utc_to_local).map(timestamp)
            }),
        ),
        ("float8_timestamptz", S(|a, _| from_epoch(a[0].as_float8()).map(timestamptz))),
    ]
}

fn parts() -> Vec<NamedBody> {
    vec![
        ("extract_date", S(|a, cx| number(extract(a, cx)?))),
        ("extract_time", S(|a, cx| number(extract(a, cx)?))),
        ("extract_timestamp", S(|a, cx| number(extract(a, cx)?))),
        ("extract_timestamptz", S(|a, cx| number(extract(a, cx)?))),
        ("extract_interval", S(|a, cx| number(extract(a, cx)?))),
        ("sql_date_part", S(|a, _| date_part_of_date(a))),
        ("time_part", S(|a, cx| float(extract(a, cx)?))),
        ("timestamp_part", S(|a, cx| float(extract(a, cx)?))),
        ("timestamptz_part", S(|a, cx| float(extract(a, cx)?))),
        ("interval_part", S(|a, cx| float(extract(a, cx)?))),
        (
            "timestamp_trunc",
            S(|a, _| datetime::date_trunc(a[0].as_str(), micros(&a[1]), None).map(timestamp)),
        ),
        (
            "timestamptz_trunc",
            S(|a, cx| {
                datetime::date_trunc(a[0].as_str(), micros(&a[1]), Some(&cx.time_zone))
                    .map(timestamptz)
            }),
        ),
        (
            "timestamptz_trunc_zone",
            S(|a, _| {
                if !datetime::is_finite(micros(&a[1])) {
                    return Ok(a[1].clone());
                }
                datetime::date_trunc(a[0].as_str(), micros(&a[1]), Some(&zone(&a[2])?))
                    .map(timestamptz)
            }),
        ),
        (
            "interval_trunc",
            S(|a, _| datetime::trunc_interval(a[0].as_str(), &a[1].as_interval()).map(interval)),
        ),
        (
            "timestamp_bin",
            S(|a, _| {
                datetime::bin(&a[0].as_interval(), micros(&a[1]), micros(&a[2])).map(timestamp)
            }),
        ),
        (
            "timestamptz_bin",
            S(|a, _| {
                datetime::bin(&a[0].as_interval(), micros(&a[1]), micros(&a[2])).map(timestamptz)
            }),
        ),
        ("date_finite", S(|a, _| Ok(datetime::is_finite_date(a[0].as_date()).into()))),
        ("timestamp_finite", S(|a, _| Ok(datetime::is_finite(micros(&a[0])).into()))),
        ("interval_finite", S(|_, _| Ok(true.into()))),
    ]
}

fn making() -> Vec<NamedBody> {
    vec![
        (
            "make_date",
            S(|a, _| {
                make_date(a[0].as_int4(), a[1].as_int4(), a[2].as_int4())
                    .map(|d| Datum::Date(d as i32))
            }),
        ),
        (
            "make_time",
            S(|a, _| make_clock(a[0].as_int4(), a[1].as_int4(), a[2].as_float8()).map(Datum::Time)),
        ),
        ("make_timestamp", S(|a, _| make_timestamp(a).map(timestamp))),
        (
            "make_timestamptz",
            S(|a, cx| datetime::local_to_utc(make_timestamp(a)?, &cx.time_zone).map(timestamptz)),
        ),
        (
            "make_timestamptz_at_timezone",
            S(|a, _| {
                datetime::local_to_utc(make_timestamp(a)?, &made_zone(&a[6])?).map(timestamptz)
            }),
        ),
        ("make_interval", S(|a, _| make_interval(a).map(interval))),
    ]
}
