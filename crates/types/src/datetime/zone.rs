//! Time zones: names of the tz database, abbreviations, fixed offsets, POSIX rules.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use jiff::tz::AmbiguousOffset;

use super::{DAY, EPOCH_DAYS, SECOND, civil_of, days_of, split};
use crate::FormatContext;

mod posix;

/// The session's `TimeZone`: a cheap handle.
#[derive(Clone, Debug)]
pub struct TimeZone(Zone);

#[derive(Clone, Debug)]
enum Zone {
    /// Seconds east, and how the zone and its time are called if they have names of their own.
    Fixed(i32, Option<FixedName>),
    Rules(jiff::tz::TimeZone, Arc<str>),
}

#[derive(Clone, Debug)]
struct FixedName {
    zone: Arc<str>,
    abbreviation: Arc<str>,
}

impl Default for TimeZone {
    /// `Etc/UTC`.
    fn default() -> TimeZone {
        static UTC: OnceLock<FixedName> = OnceLock::new();
        let name = UTC.get_or_init(|| FixedName {
            zone: Arc::from("Etc/UTC"),
            abbreviation: Arc::from("UTC"),
        });
        TimeZone(Zone::Fixed(0, Some(name.clone())))
    }
}

impl PartialEq for TimeZone {
    fn eq(&self, other: &TimeZone) -> bool {
        self.name() == other.name()
    }
}

/// Seconds east of the abbreviations that input accepts.
fn abbreviations() -> &'static HashMap<&'static str, i32> {
    static TABLE: OnceLock<HashMap<&'static str, i32>> = OnceLock::new();
    TABLE.get_or_init(|| {
        include_str!("../table/zones.txt")
            .lines()
            .filter(|l| !l.starts_with('#'))
            .filter_map(|l| l.split_once(' '))
            .filter_map(|(name, seconds)| {
                Some((name, seconds.trim_end_matches(" D").parse().ok()?))
            })
            .collect()
    })
}

/// A time zone as `pg_timezone_names` and `pg_timezone_abbrevs` list it.
pub struct ListedZone {
    /// Name of the zone, or the abbreviation that input accepts.
    pub name: String,
    /// Abbreviation in use.
    pub abbreviation: String,
    /// Seconds east of Greenwich.
    pub seconds: i32,
    /// Whether daylight saving is in force.
    pub daylight: bool,
}

/// All zones of the tz database, as they are at an instant (microseconds since 2000-01-01 UTC).
pub fn listed_zones(utc: i64) -> Vec<ListedZone> {
    let one = |name: String| {
        let zone = TimeZone::parse(&name)?;
        let at = zone.at(utc);
        let daylight = match &zone.0 {
            Zone::Fixed(..) => false,
            Zone::Rules(zone, _) => zone.to_offset_info(instant(utc)).dst().is_dst(),
        };
        Some(ListedZone { name, abbreviation: at.abbreviation, seconds: at.seconds, daylight })
    };
    jiff::tz::db().available().filter_map(|name| one(name.to_string())).collect()
}

/// All abbreviations that input accepts.
pub fn listed_abbreviations() -> Vec<ListedZone> {
    let line = |line: &str| {
        let mut fields = line.split(' ');
        let (name, seconds) = (fields.next()?.to_owned(), fields.next()?.parse().ok()?);
        let daylight = fields.next() == Some("D");
        Some(ListedZone { abbreviation: name.clone(), name, seconds, daylight })
    };
    include_str!("../table/zones.txt")
        .lines()
        .filter(|l| !l.starts_with('#'))
        .filter_map(line)
        .collect()
}

/// The facts about a zone at an instant.
pub(crate) struct Offset {
    /// Seconds east of Greenwich.
    pub(crate) seconds: i32,
    /// `CET`, or the offset where there is no abbreviation.
    pub(crate) abbreviation: String,
}

impl TimeZone {
    /// `SET TimeZone`: a name of the tz database (in any case), or a POSIX rule (`EST5EDT`, `<+03>-3`).
    pub fn parse(name: &str) -> Option<TimeZone> {
        let name = name.trim();
        if name.eq_ignore_ascii_case("Etc/UTC") {
            return Some(TimeZone::default());
        }
        if let Ok(zone) = jiff::tz::TimeZone::get(name)
            && zone.iana_name().is_some()
        {
            let known = Arc::from(zone.iana_name().unwrap_or(name));
            return Some(TimeZone(match zone.to_fixed_offset() {
                Ok(offset) => {
                    let info = zone.to_offset_info(jiff::Timestamp::UNIX_EPOCH);
                    let abbreviation = Arc::from(info.abbreviation());
                    Zone::Fixed(offset.seconds(), Some(FixedName { zone: known, abbreviation }))
                }
                Err(_) => Zone::Rules(zone, known),
            }));
        }
        posix::parse(name).map(TimeZone)
    }

    /// `SET TimeZone`: hours east (`-3.5`), `INTERVAL '…'`, or as [`TimeZone::parse`].
    ///
    /// # Errors
    /// The fault in it, where there is more to say than that no such zone is known.
    pub fn parse_setting(text: &str, cx: &FormatContext) -> Result<TimeZone, Option<&'static str>> {
        let trimmed = text.trim_start();
        let seconds = if let Some(rest) = strip_word(trimmed, "interval") {
            let quoted = rest.trim_start().strip_prefix('\'').and_then(|r| r.strip_suffix('\''));
            let interval = super::parse_interval(quoted.ok_or(None)?, -1, cx).map_err(|_| None)?;
            if interval.months != 0 {
                return Err(Some("Cannot specify months in time zone interval."));
            }
            if interval.days != 0 {
                return Err(Some("Cannot specify days in time zone interval."));
            }
            interval.micros / SECOND
        } else if let Ok(hours) = trimmed.parse::<f64>() {
            (hours * 3600.0) as i64
        } else {
            return TimeZone::parse(text).ok_or(None);
        };
        let too_far = Some("UTC timezone offset is out of range.");
        let seconds = i32::try_from(seconds).map_err(|_| too_far)?;
        if seconds.abs() < posix::OFFSET_LIMIT {
            Ok(TimeZone::fixed(seconds))
        } else {
            Err(too_far)
        }
    }

    /// A zone at a fixed distance, in seconds east of Greenwich.
    pub fn fixed(seconds: i32) -> TimeZone {
        TimeZone(Zone::Fixed(seconds, None))
    }

    /// A zone as `AT TIME ZONE` and timestamp input accept it: an abbreviation, or as [`TimeZone::parse`].
    pub fn parse_any(name: &str) -> Option<TimeZone> {
        match TimeZone::abbreviation(name) {
            Some(seconds) => Some(TimeZone::fixed(seconds)),
            None => TimeZone::parse(name),
        }
    }

    /// Seconds east of an abbreviation such as `CET`.
    pub(crate) fn abbreviation(name: &str) -> Option<i32> {
        abbreviations().get(name.to_ascii_uppercase().as_str()).copied()
    }

    /// The name, as `SHOW TimeZone` prints it.
    pub fn name(&self) -> String {
        match &self.0 {
            Zone::Fixed(_, Some(FixedName { zone: name, .. })) | Zone::Rules(_, name) => {
                name.to_string()
            }
            Zone::Fixed(seconds, None) => {
                // POSIX counts westward.
                let (east, west) = if *seconds < 0 { ('-', '+') } else { ('+', '-') };
                let text = long_offset(*seconds);
                format!("<{east}{text}>{west}{text}")
            }
        }
    }

    /// Seconds east at an instant (microseconds since 2000-01-01 UTC).
    pub(crate) fn seconds_at(&self, utc: i64) -> i32 {
        match &self.0 {
            Zone::Fixed(seconds, _) => *seconds,
            Zone::Rules(zone, _) => zone.to_offset(instant(utc)).seconds(),
        }
    }

    /// Offset and abbreviation at an instant.
    pub(crate) fn at(&self, utc: i64) -> Offset {
        match &self.0 {
            Zone::Fixed(seconds, name) => Offset {
                seconds: *seconds,
                abbreviation: match name {
                    Some(name) => name.abbreviation.to_string(),
                    None => {
                        let sign = if *seconds < 0 { '-' } else { '+' };
                        format!("{sign}{}", long_offset(*seconds))
                    }
                },
            },
            Zone::Rules(zone, _) => {
                let info = zone.to_offset_info(instant(utc));
                Offset {
                    seconds: info.offset().seconds(),
                    abbreviation: info.abbreviation().to_owned(),
                }
            }
        }
    }

    /// Seconds east at a local time: in a gap the rule before it holds, in a fold the one after.
    pub(crate) fn seconds_of_local(&self, local: i64) -> i32 {
        let zone = match &self.0 {
            Zone::Fixed(seconds, _) => return *seconds,
            Zone::Rules(zone, _) => zone,
        };
        let (days, micros) = split(local);
        let (year, month, day) = civil_of(days);
        let year = borrowed_year(year);
        let second = micros / SECOND;
        let civil = jiff::civil::DateTime::new(
            year as i16,
            month as i8,
            day as i8,
            (second / 3600) as i8,
            (second / 60 % 60) as i8,
            (second % 60) as i8,
            0,
        );
        let Ok(civil) = civil else { return 0 };
        match zone.to_ambiguous_timestamp(civil).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset.seconds(),
            AmbiguousOffset::Gap { before, .. } => before.seconds(),
            AmbiguousOffset::Fold { after, .. } => after.seconds(),
        }
    }
}

/// Hours, and minutes and seconds if there are any, without a sign: `03`, `03:30`.
fn long_offset(seconds: i32) -> String {
    let (h, m, s) = (seconds.abs() / 3600, seconds.abs() / 60 % 60, seconds.abs() % 60);
    match (m, s) {
        (0, 0) => format!("{h:02}"),
        (_, 0) => format!("{h:02}:{m:02}"),
        _ => format!("{h:02}:{m:02}:{s:02}"),
    }
}

/// The rest after a word (in any case).
fn strip_word<'t>(text: &'t str, word: &str) -> Option<&'t str> {
    let head = text.get(..word.len())?;
    head.eq_ignore_ascii_case(word).then(|| &text[word.len()..])
}

/// A year that the library knows, with the same calendar.
fn borrowed_year(year: i64) -> i64 {
    match year {
        9990.. => 9600 + (year - 9600).rem_euclid(400) - 400,
        ..=-9990 => -9600 + year.rem_euclid(400),
        _ => year,
    }
}

fn instant(utc: i64) -> jiff::Timestamp {
    let (days, micros) = split(utc);
    let (year, month, day) = civil_of(days);
    let borrowed = borrowed_year(year);
    let days = if borrowed == year { days } else { days_of(borrowed, month, day) };
    let micros = (days + EPOCH_DAYS) * DAY + micros;
    jiff::Timestamp::from_microsecond(micros).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
}
