//! Dates and times of paths: `.datetime()` reads them, comparisons order them.

use std::cmp::Ordering;

use base::{Error, Result, err};

use crate::datetime::{self, SECOND};
use crate::datum::Datum;
use crate::func::template::standard::{self, Standard};
use crate::io::{DateStyle, FormatContext};
use crate::order::timetz_utc;

/// A date or time.
pub(super) struct Moment(Standard);

/// What `.datetime()` without a template tries, in this order: ISO 8601 with a blank or a T between date and time.
fn templates() -> impl Iterator<Item = String> {
    const CLOCKS: [&str; 6] = [
        "HH24:MI:SS.USTZH:TZM",
        "HH24:MI:SS.USTZH",
        "HH24:MI:SSTZH:TZM",
        "HH24:MI:SSTZH",
        "HH24:MI:SS.US",
        "HH24:MI:SS",
    ];
    let with_time = ["", "yyyy-mm-dd ", "yyyy-mm-dd\"T\""]
        .into_iter()
        .flat_map(|date| CLOCKS.iter().map(move |clock| format!("{date}{clock}")));
    std::iter::once("yyyy-mm-dd".to_owned()).chain(with_time)
}

fn needs_zone(from: &str, to: &str) -> Error {
    err!(FEATURE_NOT_SUPPORTED, "cannot convert value from {from} to {to} without time zone usage")
        .hint("Use *_tz() function for time zone support.")
}

impl Moment {
    /// Reads a text, by a template if there is one.
    ///
    /// # Errors
    /// `22031` when no template fits; those of [`standard::read`].
    pub fn read(text: &str, template: Option<&str>) -> Result<Moment> {
        if let Some(template) = template {
            return standard::read(text, template).map(Moment);
        }
        let found = templates().find_map(|template| standard::read(text, &template).ok());
        found.map(Moment).ok_or_else(|| {
            err!(
                INVALID_ARGUMENT_FOR_SQL_JSON_DATETIME_FUNCTION,
                "datetime format is not recognized: \"{text}\""
            )
            .hint("Use a datetime template argument to specify the input data format.")
        })
    }

    /// The name that `.type()` gives.
    pub fn type_name(&self) -> &'static str {
        match self.0.value {
            Datum::Date(_) => "date",
            Datum::Time(_) => "time without time zone",
            Datum::Timetz(..) => "time with time zone",
            Datum::Timestamp(_) => "timestamp without time zone",
            _ => "timestamp with time zone",
        }
    }

    /// ISO 8601, in the zone that was written.
    pub fn text(&self) -> String {
        let mut out = Vec::new();
        let iso = FormatContext { date_style: DateStyle::Iso, ..FormatContext::default() };
        match self.0.value {
            Datum::Date(d) => datetime::write_date(d, &iso, &mut out),
            Datum::Time(t) | Datum::Timetz(t, _) => datetime::write_time(t, &mut out),
            Datum::Timestamp(t) => datetime::write_timestamp(t, &iso, &mut out),
            Datum::Timestamptz(t) => {
                let east = i64::from(self.0.east.unwrap_or(0));
                datetime::write_timestamp(t.saturating_add(east * SECOND), &iso, &mut out);
            }
            _ => {}
        }
        if matches!(self.0.value, Datum::Timestamp(_) | Datum::Timestamptz(_))
            && let Some(blank) = out.iter().position(|b| *b == b' ')
        {
            out[blank] = b'T';
        }
        let mut text = String::from_utf8_lossy(&out).into_owned();
        if let Some(east) = self.0.east {
            let (sign, east) = (if east < 0 { '-' } else { '+' }, east.abs());
            text += &format!("{sign}{:02}:{:02}", east / 3600, east / 60 % 60);
        }
        text
    }

    /// The order of two; None when one has a date and the other has none. `zone`: the session's, for values without one.
    ///
    /// # Errors
    /// `0A000` when a zone is wanted and not given.
    pub fn order(&self, other: &Moment, zone: Option<&FormatContext>) -> Result<Option<Ordering>> {
        let (a, b) = (&self.0.value, &other.0.value);
        Ok(match (a, b) {
            (Datum::Time(_) | Datum::Timetz(..), Datum::Time(_) | Datum::Timetz(..)) => {
                match (a, b) {
                    (Datum::Time(x), Datum::Time(y)) => Some(x.cmp(y)),
                    _ => {
                        let (x, v) = with_zone(a, zone)?;
                        let (y, w) = with_zone(b, zone)?;
                        Some(timetz_utc(x, v).cmp(&timetz_utc(y, w)).then(v.cmp(&w)))
                    }
                }
            }
            (Datum::Time(_) | Datum::Timetz(..), _) | (_, Datum::Time(_) | Datum::Timetz(..)) => {
                None
            }
            (Datum::Timestamptz(_), _) | (_, Datum::Timestamptz(_)) => {
                Some(instant(a, zone)?.cmp(&instant(b, zone)?))
            }
            _ => Some(local(a)?.cmp(&local(b)?)),
        })
    }
}

/// Time of day and zone in seconds west.
fn with_zone(value: &Datum, zone: Option<&FormatContext>) -> Result<(i64, i32)> {
    match value {
        Datum::Timetz(t, west) => Ok((*t, *west)),
        Datum::Time(t) => {
            let zone = zone.ok_or_else(|| needs_zone("time", "timetz"))?;
            Ok((*t, -zone.time_zone.seconds_at(zone.now)))
        }
        _ => Ok((0, 0)),
    }
}

fn local(value: &Datum) -> Result<i64> {
    match value {
        Datum::Date(d) => datetime::date_to_timestamp(*d),
        Datum::Timestamp(t) => Ok(*t),
        _ => Ok(0),
    }
}

fn instant(value: &Datum, zone: Option<&FormatContext>) -> Result<i64> {
    let from = match value {
        Datum::Timestamptz(t) => return Ok(*t),
        Datum::Date(_) => "date",
        _ => "timestamp",
    };
    let zone = zone.ok_or_else(|| needs_zone(from, "timestamptz"))?;
    datetime::local_to_utc(local(value)?, &zone.time_zone)
}
