//! Dates, times, timestamps, intervals: the calendar, time zones, text forms, arithmetic.
//!
//! Dates count days and timestamps microseconds from 2000-01-01, in the proleptic Gregorian
//! calendar, year 0 being 1 BC. Only the rules of time zones come from a library (jiff); its range
//! of years is smaller than PostgreSQL's, so years outside it borrow the rules of one that lies a
//! multiple of 400 years away (the calendar repeats then).

mod arith;
mod fields;
mod format;
mod interval;
mod parse;
mod zone;

use base::{Result, err};

pub(crate) use arith::{
    add_interval, add_interval_to_date, age, bin, date_to_timestamp, interval_to_time,
    justify_days, justify_hours, justify_interval, local_to_utc, scale_interval, subtract_times,
    time_plus_interval, timestamp_to_date, utc_to_local, wall_clock,
};
pub(crate) use fields::{
    date_trunc, extract, extract_date, extract_interval, extract_time, iso_week, trunc_interval,
};
pub(crate) use format::{
    DAYS, MONTHS, write_date, write_time, write_timestamp, write_timestamptz, write_timetz,
    write_xsd,
};
pub(crate) use interval::{fit_interval, interval_typmod_name, parse_interval, write_interval};
pub(crate) use parse::{parse_date, parse_time, parse_timestamp, parse_timestamptz, parse_timetz};
pub use zone::{ListedZone, TimeZone, listed_abbreviations, listed_zones};

/// Microseconds of a second, and so on.
pub(crate) const SECOND: i64 = 1_000_000;
pub(crate) const MINUTE: i64 = 60 * SECOND;
pub(crate) const HOUR: i64 = 60 * MINUTE;
pub(crate) const DAY: i64 = 24 * HOUR;

/// Days from 1970-01-01 to 2000-01-01.
pub(crate) const EPOCH_DAYS: i64 = 10_957;
/// Julian day of 2000-01-01.
pub(crate) const EPOCH_JULIAN: i64 = 2_451_545;
/// First date: Julian day 0 (4714-11-24 BC).
const MIN_DATE: i64 = -EPOCH_JULIAN;
/// Day after the last date (5874897-12-31).
const END_DATE: i64 = 2_147_483_494 - EPOCH_JULIAN;
/// First timestamp.
const MIN_TIMESTAMP: i64 = -211_813_488_000_000_000;
/// After the last timestamp (294276-12-31).
const END_TIMESTAMP: i64 = 9_223_371_331_200_000_000;

/// `'infinity'` of dates and timestamps.
pub(crate) const DATE_INFINITY: i32 = i32::MAX;
pub(crate) const DATE_MINUS_INFINITY: i32 = i32::MIN;
pub(crate) const INFINITY: i64 = i64::MAX;
pub(crate) const MINUS_INFINITY: i64 = i64::MIN;

pub(crate) fn is_finite(t: i64) -> bool {
    t != INFINITY && t != MINUS_INFINITY
}

pub(crate) fn is_finite_date(d: i32) -> bool {
    d != DATE_INFINITY && d != DATE_MINUS_INFINITY
}

/// Days since 2000-01-01 of a date (month and day must exist; year 0 is 1 BC).
pub(crate) fn days_of(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March, so that the leap day is the last; 400 years have 146097 days.
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let year_of_era = y.rem_euclid(400);
    let shifted = (month + 9) % 12;
    let day_of_year = (153 * shifted + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 730_425
}

/// Year (0 is 1 BC), month, day of a day since 2000-01-01.
pub(crate) fn civil_of(days: i64) -> (i64, i64, i64) {
    let z = days + 730_425;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

pub(crate) fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// Days of a month.
pub(crate) fn month_days(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// 0 is Sunday.
pub(crate) fn weekday(days: i64) -> i64 {
    (days + 6).rem_euclid(7)
}

/// Date and time of day of a timestamp.
pub(crate) fn split(t: i64) -> (i64, i64) {
    (t.div_euclid(DAY), t.rem_euclid(DAY))
}

#[cold]
pub(crate) fn timestamp_out_of_range() -> base::Error {
    err!(DATETIME_VALUE_OUT_OF_RANGE, "timestamp out of range")
}

#[cold]
pub(crate) fn date_out_of_range() -> base::Error {
    err!(DATETIME_VALUE_OUT_OF_RANGE, "date out of range")
}

#[cold]
pub(crate) fn interval_out_of_range() -> base::Error {
    err!(DATETIME_VALUE_OUT_OF_RANGE, "interval out of range")
}

/// A timestamp of wide arithmetic, if it is one.
pub(crate) fn check_timestamp(t: i128) -> Result<i64> {
    match i64::try_from(t) {
        Ok(t) if (MIN_TIMESTAMP..END_TIMESTAMP).contains(&t) => Ok(t),
        _ => Err(timestamp_out_of_range()),
    }
}

/// A date of wide arithmetic, if it is one.
pub(crate) fn check_date(days: i64) -> Result<i32> {
    if (MIN_DATE..END_DATE).contains(&days) { Ok(days as i32) } else { Err(date_out_of_range()) }
}

/// Rounds microseconds to a precision of 0 to 6 digits; others leave it.
fn round_micros(t: i64, typmod: i32) -> i64 {
    let Some(unit) =
        usize::try_from(typmod).ok().filter(|p| *p < 6).map(|p| crate::numeric::POW10[6 - p])
    else {
        return t;
    };
    let half = unit / 2;
    // Half a unit goes away from zero.
    if t >= 0 {
        t.saturating_add(half) / unit * unit
    } else {
        -(t.saturating_neg().saturating_add(half) / unit * unit)
    }
}

/// Applies `time(p)`.
pub(crate) fn round_time(t: i64, typmod: i32) -> i64 {
    round_micros(t, typmod)
}

/// Applies `timestamp(p)`.
pub(crate) fn round_timestamp(t: i64, typmod: i32) -> i64 {
    if is_finite(t) { round_micros(t, typmod) } else { t }
}

#[cfg(test)]
mod tests;
