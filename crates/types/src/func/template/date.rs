//! Templates of dates and times.

use base::{Result, err};

use super::{ordinal, roman};
use crate::bulk::{Pace, push_str};
use crate::datetime::{self, DAYS, HOUR, MINUTE, MONTHS, SECOND};
use crate::datum::Interval;

/// The moment that a template shows.
pub(super) struct Moment {
    year: i64,
    month: i64,
    day: i64,
    /// Days since 2000-01-01; None for intervals.
    days: Option<i64>,
    day_of_year: i64,
    hour: i64,
    minute: i64,
    second: i64,
    micros: i64,
    zone: Option<(i32, String)>,
}

impl Moment {
    pub(super) fn of_local(local: i64, zone: Option<(i32, String)>) -> Moment {
        let (days, t) = datetime::split(local);
        let (year, month, day) = datetime::civil_of(days);
        Moment {
            year,
            month,
            day,
            days: Some(days),
            day_of_year: days - datetime::days_of(year, 1, 1) + 1,
            hour: t / HOUR,
            minute: t / MINUTE % 60,
            second: t / SECOND % 60,
            micros: t % SECOND,
            zone,
        }
    }

    pub(super) fn of_interval(i: &Interval) -> Moment {
        let t = i.micros;
        Moment {
            year: i64::from(i.months / 12),
            month: i64::from(i.months % 12),
            day: i64::from(i.days),
            days: None,
            day_of_year: i64::from(i.months) * 30 + i64::from(i.days),
            hour: t / HOUR,
            minute: t / MINUTE % 60,
            second: t / SECOND % 60,
            micros: t % SECOND,
            zone: None,
        }
    }

    fn people_year(&self) -> i64 {
        if self.days.is_some() && self.year <= 0 { 1 - self.year } else { self.year }
    }

    /// Year and week of ISO 8601.
    fn iso(&self) -> (i64, i64) {
        let (year, week) = datetime::iso_week(self.date());
        (if self.days.is_some() && year <= 0 { 1 - year } else { year }, week)
    }

    /// Days since 2000-01-01. An interval's fields are read as a date: months before the first are those of the year
    /// before.
    fn date(&self) -> i64 {
        let months = self.year * 12 + self.month - 1;
        let first = || datetime::days_of(months.div_euclid(12), months.rem_euclid(12) + 1, 1);
        self.days.unwrap_or_else(|| first() + self.day - 1)
    }

    fn weekday(&self) -> i64 {
        datetime::weekday(self.date())
    }
}

/// A piece of a template.
#[derive(Debug, PartialEq)]
pub(super) enum Node {
    /// Copied.
    Text(String),
    /// A field, in the spelling of the template; `fill` is false under FM, `th` is its ordinal.
    Field { key: &'static str, upper: bool, capital: bool, fill: bool, th: Option<bool> },
}

/// Longer keys first where one begins another.
const KEYS: &[&str] = &[
    "A.D.", "A.M.", "AD", "AM", "B.C.", "BC", "CC", "DAY", "DDD", "DD", "DY", "D", "FF1", "FF2",
    "FF3", "FF4", "FF5", "FF6", "HH24", "HH12", "HH", "IDDD", "ID", "IW", "IYYY", "IYY", "IY", "I",
    "J", "MI", "MM", "MONTH", "MON", "MS", "OF", "P.M.", "PM", "Q", "RM", "SSSSS", "SSSS", "SS",
    "TZH", "TZM", "TZ", "US", "WW", "W", "Y,YYY", "YYYY", "YYY", "YY", "Y",
];

fn starts_with(s: &str, key: &str) -> bool {
    s.len() >= key.len()
        && s.is_char_boundary(key.len())
        && s[..key.len()].eq_ignore_ascii_case(key)
}

/// A key is spelled in upper case or in lower case; names of months and days with a capital, too.
fn spells(s: &str, key: &str) -> bool {
    if !starts_with(s, key) {
        return false;
    }
    let spelled = &s[..key.len()];
    let named = matches!(key, "MONTH" | "MON" | "DAY" | "DY");
    spelled == key
        || spelled == key.to_lowercase()
        || named && spelled.starts_with(&key[..1]) && spelled[1..] == key[1..].to_lowercase()
}

/// Cuts a template into its pieces.
///
/// # Errors
/// Interrupts; `53200`.
pub(super) fn parse(template: &str) -> Result<Vec<Node>> {
    let mut nodes: Vec<Node> = Vec::new();
    let mut pace = Pace::default();
    let text = |nodes: &mut Vec<Node>, s: &str| match nodes.last_mut() {
        Some(Node::Text(t)) => t.push_str(s),
        _ => nodes.push(Node::Text(s.to_owned())),
    };
    let mut rest = template;
    'next: while !rest.is_empty() {
        pace.step()?;
        if let Some(quoted) = rest.strip_prefix('"') {
            let mut chars = quoted.char_indices();
            let mut end = quoted.len();
            let mut inner = String::new();
            while let Some((i, c)) = chars.next() {
                pace.step()?;
                match c {
                    '"' => {
                        end = i + 1;
                        break;
                    }
                    '\\' => inner.extend(chars.next().map(|(_, c)| c)),
                    c => inner.push(c),
                }
            }
            text(&mut nodes, &inner);
            rest = &quoted[end..];
            continue;
        }
        let mut body = rest;
        // FX, then one of FM and TM.
        if spells(body, "FX") {
            body = &body[2..];
        }
        let prefix = ["FM", "TM"].into_iter().find(|p| spells(body, p));
        if prefix.is_some() {
            body = &body[2..];
        }
        for key in KEYS {
            if !spells(body, key) {
                continue;
            }
            // TM: names in the language of the session, which aren't padded.
            let fill = match prefix {
                Some("TM") => !matches!(*key, "MONTH" | "DAY"),
                prefix => prefix.is_none(),
            };
            let spelled = &body[..key.len()];
            body = &body[key.len()..];
            let th = ["TH", "th"].iter().position(|s| body.starts_with(s)).map(|i| i == 0);
            if th.is_some() || body.starts_with("SP") {
                body = &body[2..];
            }
            let mut letters = spelled.chars().filter(char::is_ascii_alphabetic);
            let upper = letters.next().is_some_and(|c| c.is_ascii_uppercase());
            let capital = upper && letters.next().is_some_and(|c| c.is_ascii_lowercase());
            nodes.push(Node::Field { key, upper, capital, fill, th });
            rest = body;
            continue 'next;
        }
        let mut c = body.chars().next();
        if body.starts_with("\\\"") {
            body = &body[1..];
            c = body.chars().next();
        }
        match c {
            Some(c) => {
                text(&mut nodes, c.encode_utf8(&mut [0; 4]));
                rest = &body[c.len_utf8()..];
            }
            None => rest = "",
        }
    }
    Ok(nodes)
}

/// A number, with zeros in front unless under FM.
fn number(v: i64, width: usize, fill: bool) -> String {
    let width = match (fill, v < 0) {
        (false, _) => 0,
        (true, true) => width + 1,
        (true, false) => width,
    };
    format!("{v:0width$}")
}

/// A number of at least `width` places, its sign included.
fn places(v: i64, width: usize, fill: bool) -> String {
    let width = if fill { width } else { 0 };
    format!("{v:0width$}")
}

/// A name in the spelling of its key, with blanks behind up to `width`.
fn name(word: &str, upper: bool, capital: bool, width: usize) -> String {
    let word = match (upper, capital) {
        (true, false) => word.to_uppercase(),
        (false, _) => word.to_lowercase(),
        (true, true) => word.to_owned(),
    };
    format!("{word:<width$}")
}

fn era(word: &str, upper: bool, dots: bool) -> String {
    let word = if dots { format!("{}.{}.", &word[..1], &word[1..]) } else { word.to_owned() };
    if upper { word } else { word.to_lowercase() }
}

/// Shows a moment by a template.
///
/// # Errors
/// `22007` for a field that an interval doesn't have.
pub(super) fn format(template: &str, m: &Moment) -> Result<String> {
    let mut out = String::new();
    let mut pace = Pace::default();
    for node in parse(template)? {
        pace.step()?;
        match node {
            Node::Text(t) => push_str(&mut out, &t)?,
            Node::Field { key, upper, capital, fill, th } => {
                let shown = field(key, upper, capital, fill, m)?;
                push_str(&mut out, &shown)?;
                let counts = shown.bytes().last().is_some_and(|b| b.is_ascii_digit());
                match th {
                    Some(true) if counts => push_str(&mut out, &ordinal(&shown).to_uppercase())?,
                    Some(false) if counts => push_str(&mut out, ordinal(&shown))?,
                    _ => {}
                }
            }
        }
    }
    Ok(out)
}

fn field(key: &str, upper: bool, capital: bool, fill: bool, m: &Moment) -> Result<String> {
    let interval_only_date = || {
        if m.days.is_none() {
            return Err(err!(
                INVALID_DATETIME_FORMAT,
                "invalid format specification for an interval value"
            )
            .hint("Intervals are not tied to specific calendar dates."));
        }
        Ok(())
    };
    let year = m.people_year();
    let fraction = |digits: u32| m.micros / 10i64.pow(6 - digits);
    let twelve = if m.hour % 12 == 0 { 12 } else { m.hour % 12 };
    let pad = |width| if fill { width } else { 0 };
    Ok(match key {
        "HH" | "HH12" => places(twelve, if m.hour < 0 { 3 } else { 2 }, fill),
        "HH24" => number(m.hour, 2, fill),
        "MI" => number(m.minute, 2, fill),
        "SS" => number(m.second, 2, fill),
        "MS" => places(fraction(3), 3, true),
        "US" => places(fraction(6), 6, true),
        "SSSS" | "SSSSS" => (m.hour * 3600 + m.minute * 60 + m.second).to_string(),
        _ if key.starts_with("FF") => {
            let digits = u32::from(key.as_bytes()[2] - b'0');
            places(fraction(digits), digits as usize, true)
        }
        "AM" | "PM" | "A.M." | "P.M." => {
            let word = if m.hour % 24 >= 12 { "PM" } else { "AM" };
            era(word, upper, key.contains('.'))
        }
        "AD" | "BC" | "A.D." | "B.C." => {
            interval_only_date()?;
            era(if m.year <= 0 { "BC" } else { "AD" }, upper, key.contains('.'))
        }
        "Y,YYY" => format!("{},{:03}", year / 1000, year % 1000),
        "YYYY" | "YYY" | "YY" | "Y" | "IYYY" | "IYY" | "IY" | "I" => {
            let shown = if key.starts_with('I') { m.iso().0 } else { year };
            let digits = key.len();
            // The year's sign takes a place, whichever year is shown.
            let width = digits + usize::from(year < 0);
            let shown = if digits < 4 { shown % 10i64.pow(digits as u32) } else { shown };
            places(shown, width, fill)
        }
        "MONTH" | "MON" => {
            interval_only_date()?;
            let month = MONTHS[m.month as usize - 1];
            if key == "MON" {
                name(&month[..3], upper, capital, 0)
            } else {
                name(month, upper, capital, pad(9))
            }
        }
        "MM" => number(m.month, 2, fill),
        "DAY" | "DY" => {
            interval_only_date()?;
            let day = DAYS[m.weekday() as usize];
            if key == "DY" {
                name(&day[..3], upper, capital, 0)
            } else {
                name(day, upper, capital, pad(9))
            }
        }
        "DDD" => places(m.day_of_year, 3, fill),
        "IDDD" => {
            let monday = m.weekday();
            let day = if monday == 0 { 7 } else { monday };
            number((m.iso().1 - 1) * 7 + day, 3, fill)
        }
        "DD" => places(m.day, 2, fill),
        "D" => {
            interval_only_date()?;
            (m.weekday() + 1).to_string()
        }
        "ID" => {
            interval_only_date()?;
            (if m.weekday() == 0 { 7 } else { m.weekday() }).to_string()
        }
        "W" => ((m.day - 1) / 7 + 1).to_string(),
        "WW" => places((m.day_of_year - 1) / 7 + 1, 2, fill),
        "IW" => places(m.iso().1, 2, fill),
        "CC" => {
            let century = match (m.days.is_some(), m.year) {
                (false, y) => y / 100,
                (true, y) if y > 0 => (y - 1) / 100 + 1,
                (true, y) => y / 100 - 1,
            };
            number(century, 2, fill)
        }
        "J" => (m.date() + datetime::EPOCH_JULIAN).to_string(),
        "Q" => {
            if m.month == 0 {
                String::new()
            } else {
                ((m.month - 1) / 3 + 1).to_string()
            }
        }
        "RM" => {
            let month = match (m.month, m.year) {
                (0, 0) => return Ok(String::new()),
                (0, 1..) => 12,
                (0, _) => 1,
                (1.., _) => m.month,
                _ => m.month + 13,
            };
            let width = pad(4);
            name(&roman(month), upper, false, width)
        }
        "TZ" => {
            interval_only_date()?;
            let zone = m.zone.as_ref().map_or("", |z| z.1.as_str());
            if upper { zone.to_owned() } else { zone.to_lowercase() }
        }
        "OF" | "TZH" | "TZM" => {
            interval_only_date()?;
            offset(key, m.zone.as_ref().map_or(0, |z| z.0), fill)
        }
        _ => String::new(),
    })
}

fn offset(key: &str, seconds: i32, fill: bool) -> String {
    let sign = if seconds < 0 { '-' } else { '+' };
    let (h, m) = (seconds.abs() / 3600, seconds.abs() / 60 % 60);
    match key {
        "TZH" => format!("{sign}{h:02}"),
        "TZM" => format!("{m:02}"),
        _ if m != 0 && fill => format!("{sign}{h:02}:{m:02}"),
        _ if m != 0 => format!("{sign}{h}:{m:02}"),
        _ if fill => format!("{sign}{h:02}"),
        _ => format!("{sign}{h}"),
    }
}
