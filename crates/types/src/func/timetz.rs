//! Functions of time with time zone.

use base::{Result, err};

use super::{Body, NamedBody, S};
use crate::datetime::{self, DAY, SECOND, TimeZone};
use crate::datum::{Datum, Numeric};
use crate::io::FormatContext;
use crate::order::timetz_utc;

fn timetz((micros, west): (i64, i32)) -> Datum {
    Datum::Timetz(micros.rem_euclid(DAY), west)
}

/// The same moment of the day, elsewhere.
fn moved((micros, west): (i64, i32), to: i32) -> Datum {
    timetz((timetz_utc(micros, west) - i64::from(to) * SECOND, to))
}

fn at_zone(name: &str, value: (i64, i32), cx: &FormatContext) -> Result<Datum> {
    let zone = TimeZone::parse_any(name)
        .ok_or_else(|| err!(INVALID_PARAMETER_VALUE, "time zone \"{name}\" not recognized"))?;
    Ok(moved(value, -zone.seconds_at(cx.now)))
}

/// A field of the value, exactly.
fn extract(a: &[Datum]) -> Result<Numeric> {
    let (micros, west) = a[1].as_timetz();
    let word = a[0].as_str().to_ascii_lowercase();
    let number = |v: i64| Ok(Numeric::from(v));
    match word.as_str() {
        "timezone" => number(-i64::from(west)),
        "timezone_h" | "timezone_hour" => number(-i64::from(west) / 3600),
        "timezone_m" | "timezone_minute" => number(-i64::from(west) / 60 % 60),
        "epoch" => Ok(Numeric::from_i128(timetz_utc(micros, west).into(), 6)),
        _ => match datetime::extract_time(&word, micros) {
            Ok(Some(n)) => Ok(n),
            Ok(None) => number(0),
            Err(e) => Err(base::Error::new(
                e.code(),
                e.message().replace("time without time zone", "time with time zone"),
            )),
        },
    }
}

fn date_plus(date: i32, (micros, west): (i64, i32)) -> Result<Datum> {
    let local = datetime::date_to_timestamp(date)?;
    if !datetime::is_finite(local) {
        return Ok(Datum::Timestamptz(local));
    }
    datetime::check_timestamp(i128::from(local) + i128::from(timetz_utc(micros, west)))
        .map(Datum::Timestamptz)
}

/// The bodies of this family.
pub(super) fn bodies() -> Vec<NamedBody> {
    const PLUS: Body = S(|a, _| {
        let (t, west) = a[0].as_timetz();
        Ok(timetz((t + a[1].as_interval().micros % DAY, west)))
    });
    vec![
        ("timetz_pl_interval", PLUS),
        (
            "timetz_mi_interval",
            S(|a, _| {
                let (t, west) = a[0].as_timetz();
                Ok(timetz((t - a[1].as_interval().micros % DAY, west)))
            }),
        ),
        (
            "sql_interval_pl_timetz",
            S(|a, _| {
                let (t, west) = a[1].as_timetz();
                Ok(timetz((t + a[0].as_interval().micros % DAY, west)))
            }),
        ),
        ("datetimetz_timestamptz", S(|a, _| date_plus(a[0].as_date(), a[1].as_timetz()))),
        ("sql_timetzdate_pl", S(|a, _| date_plus(a[1].as_date(), a[0].as_timetz()))),
        ("timetz_time", S(|a, _| Ok(Datum::Time(a[0].as_timetz().0)))),
        (
            "time_timetz",
            S(|a, cx| Ok(Datum::Timetz(a[0].as_time(), -cx.time_zone.seconds_at(cx.now)))),
        ),
        (
            "timestamptz_timetz",
            S(|a, cx| {
                let t = a[0].as_timestamptz();
                if !datetime::is_finite(t) {
                    return Ok(Datum::Null);
                }
                let local = datetime::wall_clock(t, &cx.time_zone);
                Ok(Datum::Timetz(datetime::split(local).1, -cx.time_zone.seconds_at(t)))
            }),
        ),
        (
            "timetz_scale",
            S(|a, _| {
                let (t, west) = a[0].as_timetz();
                Ok(Datum::Timetz(datetime::round_time(t, a[1].as_int4()), west))
            }),
        ),
        ("timetz_zone", S(|a, cx| at_zone(a[0].as_str(), a[1].as_timetz(), cx))),
        (
            "timetz_izone",
            S(|a, _| {
                super::datetime::zone_of_interval(&a[0])?;
                Ok(moved(a[1].as_timetz(), -(a[0].as_interval().micros / SECOND) as i32))
            }),
        ),
        ("extract_timetz", S(|a, _| extract(a).map(Into::into))),
        ("timetz_part", S(|a, _| Ok(extract(a)?.to_f64().into()))),
    ]
}
