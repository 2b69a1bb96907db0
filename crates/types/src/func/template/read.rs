//! `to_date` and `to_timestamp`: reading by a template.

use base::{Result, err};

use super::date::{Node, parse};
use crate::bulk::Pace;
use crate::datetime::{self, DAY, DAYS, HOUR, MINUTE, MONTHS, SECOND, TimeZone};
use crate::datum::Datum;
use crate::io::FormatContext;
use crate::jsonb::path::eval::Moment;

/// The values that were read.
#[derive(Default)]
pub(super) struct Found {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    julian: Option<i64>,
    century: Option<i64>,
    week: Option<i64>,
    week_of_month: Option<i64>,
    /// Whether its fields are those of ISO weeks or the calendar's.
    by_iso_weeks: Option<bool>,
    iso_year: Option<i64>,
    iso_week: Option<i64>,
    iso_day: Option<i64>,
    bc: bool,
    /// The year was given by two digits or fewer.
    short_year: bool,
    hour: Option<i64>,
    twelve: bool,
    afternoon: Option<bool>,
    minute: Option<i64>,
    second: Option<i64>,
    seconds_of_day: Option<i64>,
    micros: i64,
    zone_hours: Option<i64>,
    zone_minutes: i64,
    zone_west: bool,
}

#[cold]
fn bad_value(text: &str, key: &str) -> base::Error {
    err!(INVALID_DATETIME_FORMAT, "invalid value \"{text}\" for \"{key}\"")
}

/// Digits that a field takes when another number follows at once.
fn width(key: &str) -> usize {
    match key {
        "YYYY" | "IYYY" | "SSSS" => 4,
        "YYY" | "IYY" | "DDD" | "IDDD" | "MS" => 3,
        "SSSSS" | "Y,YYY" => 5,
        "US" => 6,
        "J" => 10,
        "Y" | "I" | "Q" | "D" | "ID" | "W" => 1,
        _ => 2,
    }
}

/// Whether a field begins with a digit.
pub(super) fn is_numeric(key: &str) -> bool {
    const NAMES: [&str; 16] = [
        "MONTH", "MON", "DAY", "DY", "AM", "PM", "A.M.", "P.M.", "AD", "BC", "A.D.", "B.C.", "RM",
        "TZ", "OF", "TZH",
    ];
    !NAMES.contains(&key)
}

/// A text that is being read.
pub(super) struct Reader<'a> {
    /// The text that has not been read.
    pub rest: &'a str,
    /// The values that have.
    pub found: Found,
}

impl<'a> Reader<'a> {
    /// Begins.
    pub fn of(text: &'a str) -> Reader<'a> {
        Reader { rest: text, found: Found::default() }
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    /// A number of at most `most` digits, with a sign allowed.
    fn number(&mut self, key: &str, most: usize) -> Result<(i64, usize)> {
        let negative = self.rest.starts_with('-');
        let body = self.rest.strip_prefix(['-', '+']).unwrap_or(self.rest);
        let len = body.bytes().take(most).take_while(u8::is_ascii_digit).count();
        if len == 0 {
            let word: String = self.rest.chars().take(width(key)).collect();
            return Err(bad_value(&word, key).detail("Value must be an integer."));
        }
        let value: i64 = body[..len].parse().map_err(|_| {
            err!(DATETIME_FIELD_OVERFLOW, "value for \"{key}\" in source string is out of range")
        })?;
        self.rest = &body[len..];
        Ok((if negative { -value } else { value }, len))
    }

    /// One of some names, whole or by its first `short` letters; answers its place from 0.
    fn name(&mut self, key: &str, names: &[&str], short: Option<usize>) -> Result<i64> {
        for (i, name) in names.iter().enumerate() {
            let name = &name[..short.unwrap_or(name.len())];
            if self.rest.len() >= name.len()
                && self.rest.is_char_boundary(name.len())
                && self.rest[..name.len()].eq_ignore_ascii_case(name)
            {
                self.rest = &self.rest[name.len()..];
                return Ok(i as i64);
            }
        }
        let word: String = self.rest.chars().take_while(|c| !c.is_whitespace()).collect();
        Err(bad_value(&word, key)
            .detail("The given value did not match any of the allowed values for this field."))
    }

    /// Reads a field.
    ///
    /// # Errors
    /// `22007` for text that is none.
    pub fn field(&mut self, key: &'static str, next_is_number: bool, fill: bool) -> Result<()> {
        self.skip_blanks();
        self.note_convention(key)?;
        let most = if next_is_number && fill { width(key) } else { 18 };
        match key {
            "MONTH" => self.found.month = Some(self.name(key, &MONTHS, None)? + 1),
            "MON" => self.found.month = Some(self.name(key, &MONTHS, Some(3))? + 1),
            "DAY" => drop(self.name(key, &DAYS, None)?),
            "DY" => drop(self.name(key, &DAYS, Some(3))?),
            "AM" | "PM" => {
                self.found.afternoon = Some(self.name(key, &["AM", "PM"], None)? == 1);
                self.found.twelve = true;
            }
            "A.M." | "P.M." => {
                self.found.afternoon = Some(self.name(key, &["A.M.", "P.M."], None)? == 1);
                self.found.twelve = true;
            }
            "AD" | "BC" => self.found.bc = self.name(key, &["AD", "BC"], None)? == 1,
            "A.D." | "B.C." => self.found.bc = self.name(key, &["A.D.", "B.C."], None)? == 1,
            "RM" => {
                const ROMAN: [&str; 12] =
                    ["XII", "XI", "X", "IX", "VIII", "VII", "VI", "V", "IV", "III", "II", "I"];
                self.found.month = Some(12 - self.name(key, &ROMAN, None)?);
            }
            "TZ" => return Err(base::Error::unsupported("formatting field \"TZ\" in to_date()")),
            "OF" => return Err(base::Error::unsupported("formatting field \"OF\" in to_date()")),
            _ => self.numeric(key, most)?,
        }
        Ok(())
    }

    fn numeric(&mut self, key: &'static str, most: usize) -> Result<()> {
        if let "MS" | "US" | "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6" = key {
            let digits = match key {
                "MS" => 3,
                "US" => 6,
                _ => usize::from(key.as_bytes()[2] - b'0'),
            };
            let (v, len) = self.number(key, digits)?;
            // The digits that are written are the first after the point.
            self.found.micros = v * 10i64.pow(6 - len as u32);
            return Ok(());
        }
        if key == "Y,YYY" {
            let (thousands, _) = self.number(key, 9)?;
            self.rest = self.rest.strip_prefix(',').unwrap_or(self.rest);
            let (rest, _) = self.number(key, 3)?;
            self.found.year = Some(thousands * 1000 + rest);
            return Ok(());
        }
        let west = self.rest.starts_with('-');
        let (v, len) = self.number(key, most)?;
        let f = &mut self.found;
        let (slot, v) = match key {
            "YYYY" => (&mut f.year, v),
            "YYY" | "YY" | "Y" => {
                f.short_year = key != "YYY";
                // A century says where a short year lies.
                (&mut f.year, short_year(v, len))
            }
            "IYYY" => (&mut f.iso_year, v),
            "IYY" | "IY" | "I" => (&mut f.iso_year, short_year(v, len)),
            "MM" => (&mut f.month, v),
            "DD" => (&mut f.day, v),
            "DDD" | "IDDD" => (&mut f.day_of_year, v),
            "ID" => (&mut f.iso_day, v),
            "W" => (&mut f.week_of_month, v),
            "WW" => (&mut f.week, v),
            "IW" => (&mut f.iso_week, v),
            "CC" => (&mut f.century, v),
            "J" => (&mut f.julian, v),
            "HH" | "HH12" => {
                f.twelve = true;
                (&mut f.hour, v)
            }
            "HH24" => (&mut f.hour, v),
            "MI" => (&mut f.minute, v),
            "SS" => (&mut f.second, v),
            "SSSS" | "SSSSS" => (&mut f.seconds_of_day, v),
            "TZH" => {
                f.zone_west = west;
                (&mut f.zone_hours, v)
            }
            "TZM" => {
                f.zone_minutes = v;
                return Ok(());
            }
            _ => return Ok(()),
        };
        if slot.is_some_and(|old| old != 0 && old != v) {
            return Err(err!(
                INVALID_DATETIME_FORMAT,
                "conflicting values for \"{key}\" field in formatting string"
            )
            .detail("This value contradicts a previous setting for the same field type."));
        }
        *slot = Some(v);
        Ok(())
    }

    /// Fields of ISO weeks and of the calendar don't go together.
    fn note_convention(&mut self, key: &str) -> Result<()> {
        let iso = match key {
            "ID" | "IDDD" | "IW" | "IYYY" | "IYY" | "IY" | "I" => true,
            "DDD" | "DD" | "D" | "MM" | "MONTH" | "MON" | "RM" | "W" | "WW" | "Y,YYY" | "YYYY"
            | "YYY" | "YY" | "Y" => false,
            _ => return Ok(()),
        };
        match self.found.by_iso_weeks.replace(iso) {
            Some(before) if before != iso => {
                Err(err!(INVALID_DATETIME_FORMAT, "invalid combination of date conventions").hint(
                    "Do not mix Gregorian and ISO week date conventions in a formatting template.",
                ))
            }
            _ => Ok(()),
        }
    }
}

/// A year of three digits or fewer lies near 2020.
fn short_year(v: i64, len: usize) -> i64 {
    match (len, v) {
        (1 | 2, 0..70) => v + 2000,
        (1 | 2, 70..100) => v + 1900,
        (3, 0..70) => v + 2000,
        (3, 70..100) => v + 1900,
        (3, 100..520) => v + 2000,
        (3, 520..1000) => v + 1000,
        _ => v,
    }
}

fn read(text: &str, template: &str) -> Result<Found> {
    let mut reader = Reader::of(text);
    let nodes = parse(template)?;
    let (mut pace, mut has_field) = (Pace::default(), false);
    for (i, node) in nodes.iter().enumerate() {
        pace.step()?;
        match node {
            Node::Field { key, fill, th, .. } => {
                // A text of blanks alone has no field where one is looked for; blanks behind a field are its end.
                let blank = reader.rest.trim_start().is_empty();
                if reader.rest.is_empty() || blank && has_field {
                    break;
                }
                has_field = true;
                let next = nodes.get(i + 1);
                let next_is_number =
                    matches!(next, Some(Node::Field { key, .. }) if is_numeric(key));
                reader.field(key, next_is_number, *fill)?;
                if th.is_some() {
                    reader.rest = reader.rest.get(2..).unwrap_or("");
                }
            }
            // A separator stands for any separators, other text for as many characters.
            Node::Text(t) => {
                for c in t.chars() {
                    pace.step()?;
                    if c.is_alphanumeric() {
                        let mut chars = reader.rest.chars();
                        chars.next();
                        reader.rest = chars.as_str();
                    } else {
                        reader.skip_blanks();
                        let mut chars = reader.rest.chars();
                        let separator = chars.next().is_some_and(|c| {
                            !c.is_alphanumeric() && !matches!(c, '+' | '-') || c == '-' && t != "+"
                        });
                        if separator && !c.is_whitespace()
                            || separator
                                && c.is_whitespace()
                                && !reader.rest.starts_with(['+', '-'])
                        {
                            reader.rest = chars.as_str();
                        }
                    }
                }
            }
        }
    }
    Ok(reader.found)
}

impl Found {
    fn out_of_range(text: &str) -> base::Error {
        err!(DATETIME_FIELD_OVERFLOW, "date/time field value out of range: \"{text}\"")
    }

    /// The year, from its own digits and the century's; before Christ they are below one.
    fn full_year(&self) -> i64 {
        let iso = self.by_iso_weeks == Some(true);
        let year = if iso { self.iso_year } else { self.year };
        let century = self.century.map(|c| if self.bc { -c } else { c });
        let short = |y: i64, c: i64| match (y % 100, c >= 0) {
            (0, true) => c * 100,
            (0, false) => c * 100 + 1,
            (rest, true) => rest + (c - 1) * 100,
            (rest, false) => (c + 1) * 100 - rest + 1,
        };
        match (year.filter(|y| *y != 0), century) {
            (Some(y), Some(c)) if self.short_year => short(y, c),
            (Some(y), _) => {
                let y = if self.bc { -y } else { y };
                if y < 0 { y + 1 } else { y }
            }
            (None, Some(c)) if c >= 0 => (c - 1) * 100 + 1,
            (None, Some(c)) => c * 100 + 1,
            (None, None) => 0,
        }
    }

    /// Days since 2000-01-01. A field that is 0 counts as not given.
    ///
    /// # Errors
    /// `22008` for a date that there isn't.
    pub fn days(&self, text: &str) -> Result<i64> {
        let fail = || Found::out_of_range(text);
        let given = |v: Option<i64>| v.filter(|v| *v != 0);
        if let Some(julian) = given(self.julian) {
            return Ok(julian - datetime::EPOCH_JULIAN);
        }
        let year = self.full_year();
        if year.abs() > 6_000_000 {
            return Err(fail());
        }
        let first_monday = || {
            let fourth = datetime::days_of(year, 1, 4);
            fourth - (datetime::weekday(fourth) + 6) % 7
        };
        if let Some(week) = given(self.iso_week) {
            return Ok(first_monday() + (week - 1) * 7 + self.iso_day.unwrap_or(1) - 1);
        }
        let month = given(self.month).unwrap_or(1);
        let day = given(self.week_of_month).map(|w| (w - 1) * 7 + 1).or(given(self.day));
        let day = day.unwrap_or(1);
        let doy = given(self.week).map(|w| (w - 1) * 7 + 1).or(given(self.day_of_year));
        if let Some(doy) = doy.filter(|_| month <= 1 || day <= 1) {
            if self.by_iso_weeks == Some(true) {
                return Ok(first_monday() + doy - 1);
            }
            let most = 365 + i64::from(datetime::is_leap(year));
            if !(1..=most).contains(&doy) {
                return Err(fail());
            }
            return Ok(datetime::days_of(year, 1, 1) + doy - 1);
        }
        if !(1..=12).contains(&month) || day < 1 || day > datetime::month_days(year, month) {
            return Err(fail());
        }
        Ok(datetime::days_of(year, month, day))
    }

    /// The zone that was read, in seconds east of Greenwich.
    ///
    /// # Errors
    /// `22009` for one further than 15 hours.
    pub fn east(&self, text: &str) -> Result<Option<i32>> {
        if self.zone_hours.is_none() && self.zone_minutes == 0 {
            return Ok(None);
        }
        let (hours, minutes) = (self.zone_hours.unwrap_or(0).abs(), self.zone_minutes);
        if hours > 15 || !(0..60).contains(&minutes) {
            return Err(err!(
                INVALID_TIME_ZONE_DISPLACEMENT_VALUE,
                "time zone displacement out of range: \"{text}\""
            ));
        }
        let seconds = (hours * 3600 + minutes * 60) as i32;
        Ok(Some(if self.zone_west { -seconds } else { seconds }))
    }

    /// Microseconds since midnight.
    ///
    /// # Errors
    /// `22008` for a time that there isn't.
    pub fn time(&self, text: &str) -> Result<i64> {
        let mut hour = self.hour.unwrap_or(0);
        let (minute, second) = (self.minute.unwrap_or(0), self.second.unwrap_or(0));
        if let Some(seconds) = self.seconds_of_day {
            if !(0..86_400).contains(&seconds) {
                return Err(Found::out_of_range(text));
            }
            return Ok(seconds * SECOND + self.micros);
        }
        if self.twelve {
            if !(1..=12).contains(&hour) {
                return Err(err!(
                    INVALID_DATETIME_FORMAT,
                    "hour \"{hour}\" is invalid for the 12-hour clock"
                )
                .hint("Use the 24-hour clock, or give an hour between 1 and 12."));
            }
            hour = hour % 12 + if self.afternoon == Some(true) { 12 } else { 0 };
        }
        if !(0..24).contains(&hour) || !(0..60).contains(&minute) || !(0..60).contains(&second) {
            return Err(Found::out_of_range(text));
        }
        Ok(hour * HOUR + minute * MINUTE + second * SECOND + self.micros)
    }
}

/// `to_date`.
pub(super) fn date(text: &str, template: &str) -> Result<Datum> {
    let found = read(text, template)?;
    let days = datetime::check_date(found.days(text)?)
        .map_err(|_| err!(DATETIME_VALUE_OUT_OF_RANGE, "date out of range: \"{text}\""))?;
    Ok(Datum::Date(days))
}

/// `to_timestamp`.
pub(super) fn timestamp(text: &str, template: &str, cx: &FormatContext) -> Result<Datum> {
    let found = read(text, template)?;
    let local = i128::from(found.days(text)?) * i128::from(DAY) + i128::from(found.time(text)?);
    let local = datetime::check_timestamp(local)?;
    let zone = found.east(text)?.map(TimeZone::fixed);
    datetime::local_to_utc(local, zone.as_ref().unwrap_or(&cx.time_zone)).map(Datum::Timestamptz)
}

enum Piece {
    Separator(char),
    /// Of a quoted text.
    Character(char),
    Field(&'static str, bool),
}

fn unfit(text: &str) -> base::Error {
    err!(INVALID_DATETIME_FORMAT, "{text}")
}

/// Cuts a template.
///
/// # Errors
/// `22007` for what is neither a field nor a separator.
fn pieces(template: &str) -> Result<Vec<Piece>> {
    let mut out = Vec::new();
    let mut rest = template;
    while !rest.is_empty() {
        if let Some(quoted) = rest.strip_prefix('"') {
            let mut chars = quoted.char_indices();
            rest = "";
            while let Some((at, c)) = chars.next() {
                match c {
                    '"' => {
                        rest = &quoted[at + 1..];
                        break;
                    }
                    '\\' => out.extend(chars.next().map(|(_, c)| Piece::Character(c))),
                    c => out.push(Piece::Character(c)),
                }
            }
            continue;
        }
        let (plain, behind) = rest.split_at(rest.find('"').unwrap_or(rest.len()));
        rest = behind;
        for node in parse(plain)? {
            match node {
                Node::Field { key, fill, .. } => out.push(Piece::Field(key, fill)),
                Node::Text(text) => {
                    for c in text.chars() {
                        if !"-./,':; ".contains(c) {
                            let text = format!("invalid datetime format separator: \"{c}\"");
                            return Err(unfit(&text));
                        }
                        out.push(Piece::Separator(c));
                    }
                }
            }
        }
    }
    Ok(out)
}

/// Whether a field belongs to a date, to a time, to a zone.
fn kind(key: &str) -> (bool, bool, bool) {
    match key {
        "TZ" | "TZH" | "TZM" | "OF" => (false, false, true),
        "AM" | "PM" | "A.M." | "P.M." | "HH" | "HH12" | "HH24" | "MI" | "SS" | "SSSS" | "SSSSS"
        | "MS" | "US" | "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6" => (false, true, false),
        _ => (true, false, false),
    }
}

/// Reads a text as SQL:2016 wants it (section 9.46): separators are taken literally, every field must be there, and
/// nothing may be left. The template says what comes out: a date, a time, or a timestamp, with a zone or without.
///
/// # Errors
/// `22007` where it does not fit the template, `22008` for values out of range.
pub(in crate::func) fn standard(text: &str, template: &str) -> Result<Moment> {
    let pieces = pieces(template)?;
    let mut reader = Reader::of(text);
    let mut whole = true;
    for (at, piece) in pieces.iter().enumerate() {
        if reader.rest.is_empty() {
            whole = false;
            break;
        }
        match piece {
            Piece::Separator(c) | Piece::Character(c) => match reader.rest.strip_prefix(*c) {
                Some(rest) => reader.rest = rest,
                None => {
                    let what = match piece {
                        Piece::Separator(_) => "separator",
                        _ => "character",
                    };
                    return Err(unfit(&format!("unmatched format {what} \"{c}\"")));
                }
            },
            Piece::Field(key, fill) => {
                let next_is_number = match pieces.get(at + 1) {
                    Some(Piece::Field(next, _)) => is_numeric(next),
                    Some(Piece::Character(c)) => c.is_ascii_digit(),
                    _ => false,
                };
                reader.field(key, next_is_number, *fill)?;
            }
        }
    }
    if !whole {
        return Err(unfit("input string is too short for datetime format"));
    }
    if !reader.rest.trim_start().is_empty() {
        return Err(unfit("trailing characters remain in input string after datetime format"));
    }
    let (mut dated, mut timed, mut zoned) = (false, false, false);
    for piece in &pieces {
        if let Piece::Field(key, _) = piece {
            let (date, time, zone) = kind(key);
            (dated, timed, zoned) = (dated | date, timed | time, zoned | zone);
        }
    }
    let found = reader.found;
    let east = found.east(text)?.unwrap_or(0);
    let zone = zoned.then_some(east);
    let value = match (dated, timed) {
        (true, true) => {
            let days = i128::from(found.days(text)?);
            let local = days * i128::from(DAY) + i128::from(found.time(text)?);
            match zoned {
                true => {
                    let utc = local - i128::from(east) * i128::from(SECOND);
                    Datum::Timestamptz(datetime::check_timestamp(utc)?)
                }
                false => Datum::Timestamp(datetime::check_timestamp(local)?),
            }
        }
        (_, false) if zoned => return Err(unfit("datetime format is zoned but not timed")),
        (true, false) => Datum::Date(datetime::check_date(found.days(text)?)?),
        (false, true) if zoned => Datum::Timetz(found.time(text)?, -east),
        (false, true) => Datum::Time(found.time(text)?),
        (false, false) => return Err(unfit("datetime format is not dated and not timed")),
    };
    Ok(Moment { value, east: zone })
}
