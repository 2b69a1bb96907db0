//! Reading dates, times and timestamps: ISO 8601, the forms that PostgreSQL accepts besides, and
//! words such as `now` and `epoch`.
//!
//! The text is cut into tokens (numbers, dates with separators, times, signed offsets, words); the
//! numbers and month names that belong to a date are collected and given their meaning at the end,
//! when it is known how many there are.

use base::{Result, err};

use super::{
    DATE_INFINITY, DATE_MINUS_INFINITY, DAY, EPOCH_DAYS, EPOCH_JULIAN, HOUR, INFINITY,
    MINUS_INFINITY, MINUTE, SECOND, TimeZone, check_timestamp, days_of, month_days, split,
};
use crate::io::{DateOrder, FormatContext};

/// Why a text can't be read; the message is made where the type is known.
enum Fault {
    Syntax,
    /// A field has a value that it can't have.
    Range,
    /// The same, where another `DateStyle` might have read it.
    RangeByOrder,
    Zone(String),
    Displacement,
}

type Read<T> = std::result::Result<T, Fault>;

#[cold]
fn report(fault: Fault, kind: &str, text: &str) -> base::Error {
    match fault {
        Fault::Syntax => {
            err!(INVALID_DATETIME_FORMAT, "invalid input syntax for type {kind}: \"{text}\"")
        }
        Fault::Range => {
            err!(DATETIME_FIELD_OVERFLOW, "date/time field value out of range: \"{text}\"")
        }
        Fault::RangeByOrder => {
            err!(DATETIME_FIELD_OVERFLOW, "date/time field value out of range: \"{text}\"")
                .hint("Perhaps you need a different \"datestyle\" setting.")
        }
        Fault::Zone(name) => {
            err!(INVALID_PARAMETER_VALUE, "time zone \"{name}\" not recognized")
        }
        Fault::Displacement => err!(
            INVALID_TIME_ZONE_DISPLACEMENT_VALUE,
            "time zone displacement out of range: \"{text}\""
        ),
    }
}

/// A piece of a date.
#[derive(Clone, Copy)]
enum Part {
    /// A number and how many digits it was written with.
    Number(i64, usize),
    Month(i64),
}

#[derive(Default)]
struct Reader {
    parts: Vec<Part>,
    /// Days since 2000-01-01, from a word or a Julian day.
    day: Option<i64>,
    time: Option<i64>,
    zone: Option<TimeZone>,
    bc: bool,
    /// 12-hour clock: false is AM.
    afternoon: Option<bool>,
    special: Option<i64>,
    epoch: bool,
    now: bool,
}

/// The reading of a text.
enum Parsed {
    Infinity,
    MinusInfinity,
    /// An instant: `now`, `epoch`.
    Instant(i64),
    /// Date, time of day, zone: what there was of them.
    Fields {
        day: Option<i64>,
        time: Option<i64>,
        zone: Option<TimeZone>,
    },
}

fn read(text: &str, cx: &FormatContext) -> Read<Parsed> {
    let bytes = text.as_bytes();
    let mut r = Reader::default();
    let mut at = 0;
    let mut any = false;
    while at < bytes.len() {
        let b = bytes[at];
        // Punctuation without a meaning of its own only separates.
        let separates = b.is_ascii_punctuation() && !matches!(b, b'.' | b'+' | b'-');
        if b.is_ascii_whitespace() || separates {
            at += 1;
            continue;
        }
        any = true;
        let end = match b {
            b'0'..=b'9' => r.digits(bytes, at)?,
            b'a'..=b'z' | b'A'..=b'Z' => r.word(text, at, cx)?,
            b'+' | b'-' => r.signed(text, at)?,
            _ => return Err(Fault::Syntax),
        };
        at = end;
    }
    if !any {
        return Err(Fault::Syntax);
    }
    r.finish(cx)
}

fn number(bytes: &[u8]) -> Read<i64> {
    std::str::from_utf8(bytes).ok().and_then(|s| s.parse().ok()).ok_or(Fault::Range)
}

fn span(bytes: &[u8], from: usize, accept: impl Fn(u8) -> bool) -> usize {
    from + bytes[from..].iter().take_while(|b| accept(**b)).count()
}

impl Reader {
    fn has_date(&self) -> bool {
        self.day.is_some() || !self.parts.is_empty()
    }

    /// A token that starts with a digit; answers where it ends.
    fn digits(&mut self, bytes: &[u8], at: usize) -> Read<usize> {
        let end = span(bytes, at, |b| b.is_ascii_digit());
        match bytes.get(end) {
            Some(b':') => self.clock(bytes, at),
            Some(b'-' | b'/' | b'.') if self.is_date_ahead(bytes, end) => self.date(bytes, at),
            // hhmmss.fff after a date
            Some(b'.') => self.run_together(bytes, at, end),
            _ => {
                let len = end - at;
                let full_date = self.parts.len() >= 3 || self.day.is_some();
                if full_date && self.time.is_none() && matches!(len, 4 | 6) {
                    return self.run_together(bytes, at, end);
                }
                let meridian = bytes[end..].trim_ascii_start();
                let short = len <= 2 && self.time.is_none();
                if short && is_meridian(meridian) {
                    self.time = Some(number(&bytes[at..end])? * HOUR);
                    return Ok(end);
                }
                if len >= 6 && self.parts.is_empty() && self.day.is_none() {
                    // yymmdd, yyyymmdd and longer years
                    let (y, m, d) = (at..end - 4, end - 4..end - 2, end - 2..end);
                    self.parts.push(Part::Number(number(&bytes[y.clone()])?, y.len()));
                    self.parts.push(Part::Number(number(&bytes[m])?, 2));
                    self.parts.push(Part::Number(number(&bytes[d])?, 2));
                    // The order is fixed in this form.
                    let Part::Number(year, digits) = self.parts[0] else {
                        return Err(Fault::Syntax);
                    };
                    let year = if digits == 2 { short_year(year) } else { year };
                    self.parts[0] = Part::Number(year, digits.max(4));
                    return Ok(end);
                }
                if self.parts.len() >= 3 {
                    return Err(Fault::Syntax);
                }
                self.parts.push(Part::Number(number(&bytes[at..end])?, len));
                Ok(end)
            }
        }
    }

    /// Whether what follows a number's separator continues a date.
    fn is_date_ahead(&self, bytes: &[u8], separator: usize) -> bool {
        if self.has_date() && !matches!(self.parts.as_slice(), [Part::Month(_)]) {
            return false;
        }
        bytes.get(separator + 1).is_some_and(u8::is_ascii_alphanumeric)
    }

    /// `2000-01-31`, `1/31/2000`, `31-Jan-2000`, `2000.031`.
    fn date(&mut self, bytes: &[u8], at: usize) -> Read<usize> {
        let separator = |b: u8| matches!(b, b'-' | b'/' | b'.');
        let mut at = at;
        loop {
            let digits = span(bytes, at, |b| b.is_ascii_digit());
            if digits > at {
                self.parts.push(Part::Number(number(&bytes[at..digits])?, digits - at));
                at = digits;
            } else {
                let letters = span(bytes, at, |b| b.is_ascii_alphabetic());
                self.parts.push(Part::Month(month(&bytes[at..letters]).ok_or(Fault::Syntax)?));
                at = letters;
            }
            let more = bytes.get(at).copied().is_some_and(separator)
                && bytes.get(at + 1).is_some_and(u8::is_ascii_alphanumeric)
                && self.parts.len() < 3;
            if !more {
                break;
            }
            at += 1;
        }
        if let Some(b'T' | b't') = bytes.get(at)
            && bytes.get(at + 1).is_some_and(u8::is_ascii_digit)
        {
            at += 1;
        }
        Ok(at)
    }

    /// `hhmm`, `hhmmss`, `hhmmss.fff`.
    fn run_together(&mut self, bytes: &[u8], at: usize, end: usize) -> Read<usize> {
        let len = end - at;
        if self.time.is_some() || !matches!(len, 4 | 6) {
            return Err(Fault::Syntax);
        }
        let pair = |i: usize| number(&bytes[at + i..at + i + 2]);
        let mut time = pair(0)? * HOUR + pair(2)? * MINUTE;
        if len == 6 {
            time += pair(4)? * SECOND;
        }
        let (fraction, end) = fraction(bytes, end);
        self.time = Some(time + fraction);
        Ok(end)
    }

    /// `hh:mm[:ss[.fff]]`.
    fn clock(&mut self, bytes: &[u8], at: usize) -> Read<usize> {
        if self.time.is_some() {
            return Err(Fault::Syntax);
        }
        let mut values = [0i64; 3];
        let (mut count, mut at) = (0, at);
        loop {
            let end = span(bytes, at, |b| b.is_ascii_digit());
            if count == 3 || (end == at && count < 2) {
                return Err(Fault::Syntax);
            }
            values[count] = if end == at { 0 } else { number(&bytes[at..end])? };
            count += 1;
            at = end;
            if bytes.get(at) != Some(&b':') {
                break;
            }
            at += 1;
        }
        let (fraction, end) = fraction(bytes, at);
        let [hour, minute, second] = values;
        if hour > 24 || minute > 59 || second > 60 {
            return Err(Fault::Range);
        }
        let time = hour * HOUR + minute * MINUTE + second * SECOND + fraction;
        if time > DAY {
            return Err(Fault::Range);
        }
        self.time = Some(time);
        Ok(end)
    }

    /// `+hh[[:]mm[:ss]]`, `-infinity`.
    fn signed(&mut self, text: &str, at: usize) -> Read<usize> {
        let bytes = text.as_bytes();
        let negative = bytes[at] == b'-';
        let start = span(bytes, at + 1, |b| b == b' ');
        let word_end = span(bytes, start, |b| b.is_ascii_alphabetic());
        if word_end > start {
            if !text[start..word_end].eq_ignore_ascii_case("infinity") {
                return Err(Fault::Syntax);
            }
            self.special = Some(if negative { MINUS_INFINITY } else { INFINITY });
            return Ok(word_end);
        }
        if self.zone.is_some() || (self.time.is_none() && !self.has_date()) {
            return Err(Fault::Syntax);
        }
        let (seconds, end) = offset(bytes, start)?;
        self.zone = Some(TimeZone::fixed(if negative { -seconds } else { seconds }));
        Ok(end)
    }

    /// A word: month, day of the week, era, meridian, zone, or one with a meaning of its own.
    fn word(&mut self, text: &str, at: usize, cx: &FormatContext) -> Read<usize> {
        let bytes = text.as_bytes();
        let end = span(bytes, at, |b| b.is_ascii_alphabetic());
        let word = text[at..end].to_ascii_lowercase();
        let next = bytes.get(end).copied();
        let digit_next = next.is_some_and(|b| b.is_ascii_digit());
        if word == "t" && digit_next {
            return Ok(end);
        }
        if (word == "j" || word == "julian" || word == "jd") && digit_next {
            let stop = span(bytes, end, |b| b.is_ascii_digit());
            self.day = Some(number(&bytes[end..stop])? - EPOCH_JULIAN);
            return Ok(stop);
        }
        if let Some(m) = month(word.as_bytes()) {
            if matches!(next, Some(b'-' | b'/' | b'.'))
                && bytes.get(end + 1).is_some_and(u8::is_ascii_digit)
            {
                return self.date(bytes, at);
            }
            if self.parts.len() >= 3 || self.parts.iter().any(|p| matches!(p, Part::Month(_))) {
                return Err(Fault::Syntax);
            }
            self.parts.push(Part::Month(m));
            return Ok(end);
        }
        let continues = matches!(next, Some(b'/' | b'_' | b'+' | b'-')) || digit_next;
        if !continues {
            if self.known_word(&word, cx)? {
                return Ok(end);
            }
            if let Some(seconds) = TimeZone::abbreviation(&word) {
                self.set_zone(TimeZone::fixed(seconds))?;
                return Ok(end);
            }
        }
        let name_byte =
            |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'_' | b'+' | b'-' | b':');
        let stop = span(bytes, at, name_byte);
        let name = &text[at..stop];
        // Rules of POSIX begin with three letters here: `PM+1` is none.
        let ruled = name.bytes().any(|b| b.is_ascii_digit());
        let short = name.bytes().take_while(u8::is_ascii_alphabetic).count() < 3;
        match TimeZone::parse(name).filter(|_| !(ruled && short)) {
            Some(zone) => self.set_zone(zone)?,
            None if name.contains('/') => return Err(Fault::Zone(name.to_ascii_lowercase())),
            None => return Err(Fault::Syntax),
        }
        Ok(stop)
    }

    fn set_zone(&mut self, zone: TimeZone) -> Read<()> {
        if self.zone.is_some() {
            return Err(Fault::Syntax);
        }
        self.zone = Some(zone);
        Ok(())
    }

    fn known_word(&mut self, word: &str, cx: &FormatContext) -> Read<bool> {
        let today = || {
            let local = cx.now + i64::from(cx.time_zone.seconds_at(cx.now)) * SECOND;
            split(local).0
        };
        match word {
            "now" => self.now = true,
            "today" => self.day = Some(today()),
            "tomorrow" => self.day = Some(today() + 1),
            "yesterday" => self.day = Some(today() - 1),
            "epoch" => self.epoch = true,
            "infinity" => self.special = Some(INFINITY),
            "allballs" => {
                self.time = Some(0);
                self.zone = Some(TimeZone::fixed(0));
            }
            "zulu" | "z" => self.set_zone(TimeZone::fixed(0))?,
            "bc" | "ad" => self.bc = word == "bc",
            "am" | "pm" => self.afternoon = Some(word == "pm"),
            "at" | "on" => {}
            _ => return Ok(is_weekday(word)),
        }
        Ok(true)
    }

    fn finish(mut self, cx: &FormatContext) -> Read<Parsed> {
        if let Some(special) = self.special {
            if self.has_date() || self.time.is_some() {
                return Err(Fault::Syntax);
            }
            return Ok(if special == INFINITY { Parsed::Infinity } else { Parsed::MinusInfinity });
        }
        if self.now {
            return Ok(Parsed::Instant(cx.now));
        }
        if self.epoch {
            return Ok(Parsed::Instant(-EPOCH_DAYS * DAY));
        }
        if let (Some(pm), Some(time)) = (self.afternoon, self.time) {
            if time >= 13 * HOUR {
                return Err(Fault::Range);
            }
            let in_twelve = if time >= 12 * HOUR { time - 12 * HOUR } else { time };
            self.time = Some(if pm { in_twelve + 12 * HOUR } else { in_twelve });
        } else if self.afternoon.is_some() {
            return Err(Fault::Syntax);
        }
        let day = match (self.day, self.parts.is_empty()) {
            (Some(_), false) => return Err(Fault::Syntax),
            (day, true) => day,
            (None, false) => Some(resolve(&self.parts, self.bc, cx.date_order)?),
        };
        Ok(Parsed::Fields { day, time: self.time, zone: self.zone })
    }
}

/// Gives a date's pieces their meaning.
fn resolve(parts: &[Part], bc: bool, order: DateOrder) -> Read<i64> {
    use Part::{Month, Number};
    let (year, month, day) = match *parts {
        [Number(y, n), Number(doy, 3)] if n >= 3 => return day_of_year(y, doy, bc),
        [Number(y, n), Number(m, _), Number(d, _)] if n >= 3 => ((y, n), m, d),
        [Number(a, n), Number(b, _), Number(c, k)] => match order {
            DateOrder::Ymd => ((a, n), b, c),
            DateOrder::Dmy => ((c, k), b, a),
            DateOrder::Mdy => ((c, k), a, b),
        },
        [Number(a, n), Month(m), Number(b, k)]
        | [Month(m), Number(a, n), Number(b, k)]
        | [Number(a, n), Number(b, k), Month(m)] => {
            if n >= 3 || (order == DateOrder::Ymd && k < 3) {
                ((a, n), m, b)
            } else {
                ((b, k), m, a)
            }
        }
        _ => return Err(Fault::Syntax),
    };
    let (year, digits) = year;
    let year = match (bc, digits) {
        (true, _) if year <= 0 => return Err(Fault::Range),
        (true, _) => 1 - year,
        (false, 1 | 2) => short_year(year),
        (false, _) if year == 0 => return Err(Fault::Range),
        _ => year,
    };
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return Err(Fault::RangeByOrder);
    }
    if year > 6_000_000 || day > month_days(year, month) {
        return Err(Fault::Range);
    }
    Ok(days_of(year, month, day))
}

fn day_of_year(year: i64, day: i64, bc: bool) -> Read<i64> {
    let year = if bc { 1 - year } else { year };
    let days = 365 + i64::from(super::is_leap(year));
    if year > 6_000_000 || !(1..=days).contains(&day) {
        return Err(Fault::Range);
    }
    Ok(days_of(year, 1, 1) + day - 1)
}

/// Two digits stand for 1970 to 2069.
fn short_year(year: i64) -> i64 {
    match year {
        0..70 => year + 2000,
        70..100 => year + 1900,
        _ => year,
    }
}

fn is_meridian(bytes: &[u8]) -> bool {
    let word = bytes.get(..2).map(<[u8]>::to_ascii_lowercase);
    let ends = bytes.get(2).is_none_or(|b| !b.is_ascii_alphanumeric());
    ends && matches!(word.as_deref(), Some(b"am" | b"pm"))
}

/// Number of a month's name or its first three letters (September's four as well).
pub(super) fn month(word: &[u8]) -> Option<i64> {
    let word = word.to_ascii_lowercase();
    let found = super::MONTHS.iter().position(|m| {
        let m = m.to_ascii_lowercase();
        m.as_bytes() == word.as_slice() || &m.as_bytes()[..3] == word.as_slice()
    });
    match found {
        None if word == b"sept" => Some(9),
        found => found.map(|i| i as i64 + 1),
    }
}

fn is_weekday(word: &str) -> bool {
    let known = super::DAYS.iter().any(|d| {
        let d = d.to_ascii_lowercase();
        d == word || d[..3] == *word
    });
    known || matches!(word, "tues" | "weds" | "thur" | "thurs")
}

/// Microseconds of `.123456789` at `at`, rounded, and where it ends.
fn fraction(bytes: &[u8], at: usize) -> (i64, usize) {
    if bytes.get(at) != Some(&b'.') {
        return (0, at);
    }
    let end = span(bytes, at + 1, |b| b.is_ascii_digit());
    (round_fraction(&bytes[at + 1..end]), end)
}

/// Digits after a point, in millionths.
pub(super) fn round_fraction(digits: &[u8]) -> i64 {
    let mut micros = 0;
    for i in 0..6 {
        micros = micros * 10 + i64::from(digits.get(i).map_or(0, |b| b - b'0'));
    }
    // Ties go to even, as a float8 of the digits would round.
    match digits.get(6..) {
        Some([d, rest @ ..]) if *d > b'5' || (*d == b'5' && rest.iter().any(|b| *b > b'0')) => {
            micros + 1
        }
        Some([b'5', ..]) => micros + micros % 2,
        _ => micros,
    }
}

/// Seconds of `hh`, `hhmm`, `hh:mm`, `hh:mm:ss`.
fn offset(bytes: &[u8], at: usize) -> Read<(i32, usize)> {
    let end = span(bytes, at, |b| b.is_ascii_digit());
    let (mut values, mut at) = match end - at {
        1 | 2 => (vec![number(&bytes[at..end])?], end),
        3 | 4 => (vec![number(&bytes[at..end - 2])?, number(&bytes[end - 2..end])?], end),
        6 => {
            let pair = |i: usize| number(&bytes[at + i..at + i + 2]);
            (vec![pair(0)?, pair(2)?, pair(4)?], end)
        }
        _ => return Err(Fault::Syntax),
    };
    while bytes.get(at) == Some(&b':') && values.len() < 3 {
        let end = span(bytes, at + 1, |b| b.is_ascii_digit());
        if end == at + 1 {
            return Err(Fault::Syntax);
        }
        values.push(number(&bytes[at + 1..end])?);
        at = end;
    }
    values.resize(3, 0);
    if values[0] > 15 || values[1] > 59 || values[2] > 59 {
        return Err(Fault::Displacement);
    }
    Ok(((values[0] * 3600 + values[1] * 60 + values[2]) as i32, at))
}

/// Reads a date.
///
/// # Errors
/// `22007`, `22008`; so for the others here.
pub(crate) fn parse_date(text: &str, cx: &FormatContext) -> Result<i32> {
    let fail = |f| report(f, "date", text);
    let day = match read(text, cx).map_err(fail)? {
        Parsed::Infinity => return Ok(DATE_INFINITY),
        Parsed::MinusInfinity => return Ok(DATE_MINUS_INFINITY),
        Parsed::Instant(t) if t == cx.now => {
            split(t + i64::from(cx.time_zone.seconds_at(t)) * SECOND).0
        }
        Parsed::Instant(t) => split(t).0,
        Parsed::Fields { day: Some(day), .. } => day,
        Parsed::Fields { .. } => return Err(fail(Fault::Syntax)),
    };
    super::check_date(day)
        .map_err(|_| err!(DATETIME_VALUE_OUT_OF_RANGE, "date out of range: \"{text}\""))
}

/// Reads a time of day; a date and zone before or after it are ignored.
///
/// # Errors
/// See [`parse_date`].
pub(crate) fn parse_time(text: &str, cx: &FormatContext) -> Result<i64> {
    let fail = |f| report(f, "time", text);
    // 040506 alone is a time here.
    let trimmed = text.trim();
    if matches!(trimmed.len(), 4 | 6) && trimmed.bytes().all(|b| b.is_ascii_digit()) {
        let mut r = Reader::default();
        r.run_together(trimmed.as_bytes(), 0, trimmed.len()).map_err(fail)?;
        return r.time.filter(|t| *t <= DAY).ok_or_else(|| fail(Fault::Range));
    }
    match read(text, cx).map_err(fail)? {
        Parsed::Instant(t) if t == cx.now => {
            Ok(split(t + i64::from(cx.time_zone.seconds_at(t)) * SECOND).1)
        }
        Parsed::Fields { time: Some(time), .. } => Ok(time),
        _ => Err(fail(Fault::Syntax)),
    }
}

/// Reads a time of day with its zone: microseconds since midnight, seconds west of Greenwich. A
/// zone whose offset changes needs a date; without one it is today's.
///
/// # Errors
/// See [`parse_date`].
pub(crate) fn parse_timetz(text: &str, cx: &FormatContext) -> Result<(i64, i32)> {
    let fail = |f| report(f, "time with time zone", text);
    let trimmed = text.trim();
    if matches!(trimmed.len(), 4 | 6) && trimmed.bytes().all(|b| b.is_ascii_digit()) {
        let time = parse_time(text, cx)?;
        return Ok((time, -cx.time_zone.seconds_at(cx.now)));
    }
    match read(text, cx).map_err(fail)? {
        Parsed::Instant(t) if t == cx.now => {
            let east = cx.time_zone.seconds_at(t);
            Ok((split(t + i64::from(east) * SECOND).1, -east))
        }
        Parsed::Fields { day, time: Some(time), zone } => {
            let zone = zone.as_ref().unwrap_or(&cx.time_zone);
            let today = split(cx.now + i64::from(cx.time_zone.seconds_at(cx.now)) * SECOND).0;
            let local = day.unwrap_or(today).saturating_mul(DAY).saturating_add(time);
            Ok((time, -zone.seconds_of_local(local)))
        }
        _ => Err(fail(Fault::Syntax)),
    }
}

fn timestamp_range(text: &str) -> base::Error {
    err!(DATETIME_VALUE_OUT_OF_RANGE, "timestamp out of range: \"{text}\"")
}

/// Reads a timestamp; a zone is ignored.
///
/// # Errors
/// See [`parse_date`].
pub(crate) fn parse_timestamp(text: &str, cx: &FormatContext) -> Result<i64> {
    let fail = |f| report(f, "timestamp", text);
    match read(text, cx).map_err(fail)? {
        Parsed::Infinity => Ok(INFINITY),
        Parsed::MinusInfinity => Ok(MINUS_INFINITY),
        Parsed::Instant(t) if t == cx.now => Ok(t + i64::from(cx.time_zone.seconds_at(t)) * SECOND),
        Parsed::Instant(t) => Ok(t),
        Parsed::Fields { day: Some(day), time, .. } => {
            let t = i128::from(day) * i128::from(DAY) + i128::from(time.unwrap_or(0));
            check_timestamp(t).map_err(|_| timestamp_range(text))
        }
        Parsed::Fields { .. } => Err(fail(Fault::Syntax)),
    }
}

/// Reads a timestamptz, in the session's zone where none is given.
///
/// # Errors
/// See [`parse_date`].
pub(crate) fn parse_timestamptz(text: &str, cx: &FormatContext) -> Result<i64> {
    let fail = |f| report(f, "timestamp with time zone", text);
    match read(text, cx).map_err(fail)? {
        Parsed::Infinity => Ok(INFINITY),
        Parsed::MinusInfinity => Ok(MINUS_INFINITY),
        Parsed::Instant(t) => Ok(t),
        Parsed::Fields { day: Some(day), time, zone } => {
            let local = i128::from(day) * i128::from(DAY) + i128::from(time.unwrap_or(0));
            let near = check_timestamp(local).map_err(|_| timestamp_range(text))?;
            let seconds = zone.as_ref().unwrap_or(&cx.time_zone).seconds_of_local(near);
            check_timestamp(local - i128::from(seconds) * i128::from(SECOND))
                .map_err(|_| timestamp_range(text))
        }
        Parsed::Fields { .. } => Err(fail(Fault::Syntax)),
    }
}
