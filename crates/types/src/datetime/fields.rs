//! `extract`, `date_part` and `date_trunc`.

use base::{Result, err};

use super::{
    DAY, EPOCH_DAYS, EPOCH_JULIAN, HOUR, INFINITY, MINUTE, SECOND, TimeZone, check_timestamp,
    civil_of, days_of, is_finite, local_to_utc, split, weekday,
};
use crate::datum::{Interval, Numeric};

/// A field that can be asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Field {
    Micro,
    Milli,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    Decade,
    Century,
    Millennium,
    IsoYear,
    Dow,
    IsoDow,
    Doy,
    Julian,
    Epoch,
    Zone,
    ZoneHour,
    ZoneMinute,
}

fn field(word: &str) -> Option<Field> {
    Some(match word.trim().to_ascii_lowercase().as_str() {
        "microseconds" | "microsecond" | "us" | "usec" | "usecs" | "useconds" | "microsecon" => {
            Field::Micro
        }
        "milliseconds" | "millisecond" | "ms" | "msec" | "msecs" | "mseconds" | "millisecon" => {
            Field::Milli
        }
        "second" | "seconds" | "s" | "sec" | "secs" => Field::Second,
        "minute" | "minutes" | "m" | "min" | "mins" => Field::Minute,
        "hour" | "hours" | "h" | "hr" | "hrs" => Field::Hour,
        "day" | "days" | "d" => Field::Day,
        "week" | "weeks" | "w" => Field::Week,
        "month" | "months" | "mon" | "mons" => Field::Month,
        "quarter" | "qtr" => Field::Quarter,
        "year" | "years" | "y" | "yr" | "yrs" => Field::Year,
        "decade" | "decades" | "dec" | "decs" => Field::Decade,
        "century" | "centuries" | "c" | "cent" => Field::Century,
        "millennium" | "millennia" | "mil" | "mils" => Field::Millennium,
        "isoyear" => Field::IsoYear,
        "dow" => Field::Dow,
        "isodow" => Field::IsoDow,
        "doy" => Field::Doy,
        "julian" | "jd" | "j" => Field::Julian,
        "epoch" => Field::Epoch,
        "timezone" => Field::Zone,
        "timezone_hour" | "timezone_h" => Field::ZoneHour,
        "timezone_minute" | "timezone_m" => Field::ZoneMinute,
        _ => return None,
    })
}

fn known(word: &str, kind: &str) -> Result<Field> {
    field(word).ok_or_else(|| unknown(word, kind))
}

#[cold]
fn unknown(word: &str, kind: &str) -> base::Error {
    err!(INVALID_PARAMETER_VALUE, "unit \"{word}\" not recognized for type {kind}")
}

/// Fields that `extract` knows and `date_trunc` has never heard of.
fn is_calendar_only(f: Field) -> bool {
    use Field::{Dow, Doy, Epoch, IsoDow, IsoYear, Julian};
    matches!(f, Dow | Doy | Epoch | IsoDow | IsoYear | Julian)
}

#[cold]
fn unsupported(word: &str, kind: &str) -> base::Error {
    err!(FEATURE_NOT_SUPPORTED, "unit \"{word}\" not supported for type {kind}")
}

fn decade(year: i64) -> i64 {
    if year >= 0 { year / 10 } else { -((8 - (year - 1)) / 10) }
}

fn century(year: i64) -> i64 {
    if year > 0 { (year + 99) / 100 } else { -((99 - (year - 1)) / 100) }
}

fn millennium(year: i64) -> i64 {
    if year > 0 { (year + 999) / 1000 } else { -((999 - (year - 1)) / 1000) }
}

/// ISO year and week of a day: the week has the year that its Thursday lies in.
pub(crate) fn iso_week(days: i64) -> (i64, i64) {
    let thursday = days - (weekday(days) + 6) % 7 + 3;
    let (year, _, _) = civil_of(thursday);
    (year, (thursday - days_of(year, 1, 1)) / 7 + 1)
}

/// A field of a date and time; None where an infinity has no such field. `offset` is the zone's,
/// for timestamptz; `date_only` refuses times of day; `kind` names the type in messages.
pub(crate) fn extract(
    word: &str,
    local: i64,
    utc: i64,
    offset: Option<i32>,
    kind: &str,
) -> Result<Option<Numeric>> {
    let f = known(word, kind)?;
    if !is_finite(utc) {
        return Ok(infinite(f, utc));
    }
    let (days, micros) = split(local);
    let (year, month, day) = civil_of(days);
    let whole = |v: i64| Ok(Some(Numeric::from(v)));
    match f {
        Field::Micro => whole(micros % MINUTE),
        Field::Milli => Ok(Some(Numeric::new(micros % MINUTE, 3))),
        Field::Second => Ok(Some(Numeric::new(micros % MINUTE, 6))),
        Field::Minute => whole(micros / MINUTE % 60),
        Field::Hour => whole(micros / HOUR),
        Field::Day => whole(day),
        Field::Week => whole(iso_week(days).1),
        Field::Month => whole(month),
        Field::Quarter => whole((month - 1) / 3 + 1),
        Field::Year => whole(people(year)),
        Field::Decade => whole(decade(year)),
        Field::Century => whole(century(year)),
        Field::Millennium => whole(millennium(year)),
        Field::IsoYear => whole(people(iso_week(days).0)),
        Field::Dow => whole(weekday(days)),
        Field::IsoDow => whole((weekday(days) + 6) % 7 + 1),
        Field::Doy => whole(days - days_of(year, 1, 1) + 1),
        Field::Julian if kind == "date" => whole(days + EPOCH_JULIAN),
        Field::Julian => {
            let part = Numeric::from(micros).div(&Numeric::from(DAY))?;
            Numeric::from(days + EPOCH_JULIAN).add(&part).map(Some)
        }
        Field::Epoch if kind == "date" => whole((days + EPOCH_DAYS) * 86_400),
        Field::Epoch => {
            let micros = i128::from(utc) + i128::from(EPOCH_DAYS) * i128::from(DAY);
            Ok(Some(Numeric::from_i128(micros, 6)))
        }
        Field::Zone | Field::ZoneHour | Field::ZoneMinute => match offset {
            None => Err(unsupported(word, kind)),
            Some(seconds) => whole(i64::from(match f {
                Field::Zone => seconds,
                Field::ZoneHour => seconds / 3600,
                _ => seconds / 60 % 60,
            })),
        },
    }
}

/// A year as people count: there is none between 1 BC and 1 AD.
fn people(year: i64) -> i64 {
    if year > 0 { year } else { year - 1 }
}

fn infinite(f: Field, t: i64) -> Option<Numeric> {
    let limitless = matches!(
        f,
        Field::Year
            | Field::Decade
            | Field::Century
            | Field::Millennium
            | Field::Julian
            | Field::IsoYear
            | Field::Epoch
    );
    limitless.then_some(if t == INFINITY { Numeric::Infinity } else { Numeric::NegInfinity })
}

/// A field of a date; it has no time of day.
pub(crate) fn extract_date(word: &str, d: i32) -> Result<Option<Numeric>> {
    let t = if super::is_finite_date(d) {
        i64::from(d).saturating_mul(DAY)
    } else {
        super::date_to_timestamp(d)?
    };
    match known(word, "date")? {
        Field::Micro | Field::Milli | Field::Second | Field::Minute | Field::Hour => {
            Err(unsupported(word, "date"))
        }
        _ => extract(word, t, t, None, "date"),
    }
}

/// A field of a time of day.
pub(crate) fn extract_time(word: &str, t: i64) -> Result<Option<Numeric>> {
    const KIND: &str = "time without time zone";
    Ok(Some(match known(word, KIND)? {
        Field::Micro => Numeric::from(t % MINUTE),
        Field::Milli => Numeric::new(t % MINUTE, 3),
        Field::Second => Numeric::new(t % MINUTE, 6),
        Field::Minute => Numeric::from(t / MINUTE % 60),
        Field::Hour => Numeric::from(t / HOUR),
        Field::Epoch => Numeric::new(t, 6),
        _ => return Err(unsupported(word, KIND)),
    }))
}

/// A field of an interval.
pub(crate) fn extract_interval(word: &str, i: &Interval) -> Result<Option<Numeric>> {
    let (years, months) = (i64::from(i.months / 12), i64::from(i.months % 12));
    let t = i.micros;
    Ok(Some(match known(word, "interval")? {
        Field::Micro => Numeric::from(t % MINUTE),
        Field::Milli => Numeric::new(t % MINUTE, 3),
        Field::Second => Numeric::new(t % MINUTE, 6),
        Field::Minute => Numeric::from(t % HOUR / MINUTE),
        Field::Hour => Numeric::from(t / HOUR),
        Field::Day => Numeric::from(i64::from(i.days)),
        Field::Month => Numeric::from(months),
        Field::Quarter => Numeric::from(months / 3 + 1),
        Field::Year => Numeric::from(years),
        Field::Decade => Numeric::from(years / 10),
        Field::Century => Numeric::from(years / 100),
        Field::Millennium => Numeric::from(years / 1000),
        Field::Epoch => {
            // A year has 365.25 days here.
            let quarter_days =
                i128::from(years) * 1461 + i128::from(months) * 120 + i128::from(i.days) * 4;
            Numeric::from_i128(quarter_days * i128::from(DAY / 4) + i128::from(t), 6)
        }
        _ => return Err(unsupported(word, "interval")),
    }))
}

/// First day of the period that a day lies in; None for units below a day.
fn trunc_day(f: Field, days: i64) -> Option<i64> {
    let (year, month, _) = civil_of(days);
    let first = |year| Some(days_of(year, 1, 1));
    match f {
        Field::Day => Some(days),
        Field::Week => Some(days - (weekday(days) + 6) % 7),
        Field::Month => Some(days_of(year, month, 1)),
        Field::Quarter => Some(days_of(year, (month - 1) / 3 * 3 + 1, 1)),
        Field::Year => first(year),
        Field::Decade => first(decade(year) * 10),
        Field::Century if year > 0 => first(century(year) * 100 - 99),
        Field::Century => first(century(year) * 100 + 1),
        Field::Millennium if year > 0 => first(millennium(year) * 1000 - 999),
        Field::Millennium => first(millennium(year) * 1000 + 1),
        _ => None,
    }
}

fn trunc_unit(f: Field) -> Option<i64> {
    match f {
        Field::Micro => Some(1),
        Field::Milli => Some(1000),
        Field::Second => Some(SECOND),
        Field::Minute => Some(MINUTE),
        Field::Hour => Some(HOUR),
        _ => None,
    }
}

/// `date_trunc` of a timestamp, or with a zone of a timestamptz.
pub(crate) fn date_trunc(word: &str, t: i64, zone: Option<&TimeZone>) -> Result<i64> {
    if !is_finite(t) {
        return Ok(t);
    }
    let kind =
        if zone.is_some() { "timestamp with time zone" } else { "timestamp without time zone" };
    let f = known(word, kind)?;
    if is_calendar_only(f) {
        return Err(unknown(word, kind));
    }
    if trunc_unit(f).is_none() && trunc_day(f, 0).is_none() {
        return Err(unsupported(word, kind));
    }
    let offset = zone.map_or(0, |z| i64::from(z.seconds_at(t)) * SECOND);
    let local = t.saturating_add(offset);
    if let Some(unit) = trunc_unit(f) {
        return check_timestamp(i128::from(local - local.rem_euclid(unit)) - i128::from(offset));
    }
    let days = trunc_day(f, split(local).0).unwrap_or_default();
    let start = check_timestamp(i128::from(days) * i128::from(DAY))?;
    zone.map_or(Ok(start), |z| local_to_utc(start, z))
}

/// `date_trunc` of an interval.
pub(crate) fn trunc_interval(word: &str, i: &Interval) -> Result<Interval> {
    let f = known(word, "interval")?;
    if is_calendar_only(f) {
        return Err(unknown(word, "interval"));
    }
    let mut i = *i;
    if let Some(unit) = trunc_unit(f) {
        i.micros -= i.micros % unit;
        return Ok(i);
    }
    i.micros = 0;
    let months = match f {
        Field::Day => return Ok(i),
        Field::Month => 1,
        Field::Quarter => 3,
        Field::Year => 12,
        Field::Decade => 120,
        Field::Century => 1200,
        Field::Millennium => 12_000,
        Field::Week => {
            return Err(
                unsupported(word, "interval").detail("Months usually have fractional weeks.")
            );
        }
        _ => return Err(unsupported(word, "interval")),
    };
    i.days = 0;
    i.months -= i.months % months;
    Ok(i)
}
