//! Text forms and typmods of intervals.

use base::{Result, err};

use super::format::{put, put_fraction};
use super::parse::round_fraction;
use super::{DAY, HOUR, MINUTE, SECOND};
use crate::datum::Interval;
use crate::io::{FormatContext, IntervalStyle};

const YEARS: i32 = 1 << 2;
const MONTHS: i32 = 1 << 1;
const DAYS: i32 = 1 << 3;
const HOURS: i32 = 1 << 10;
const MINUTES: i32 = 1 << 11;
const SECONDS: i32 = 1 << 12;
const FULL_RANGE: i32 = 0x7fff;
const FULL_PRECISION: i32 = 0xffff;

/// Names of the ranges that a typmod can have.
const RANGES: [(i32, &str); 13] = [
    (YEARS, " year"),
    (MONTHS, " month"),
    (DAYS, " day"),
    (HOURS, " hour"),
    (MINUTES, " minute"),
    (SECONDS, " second"),
    (YEARS | MONTHS, " year to month"),
    (DAYS | HOURS, " day to hour"),
    (DAYS | HOURS | MINUTES, " day to minute"),
    (DAYS | HOURS | MINUTES | SECONDS, " day to second"),
    (HOURS | MINUTES, " hour to minute"),
    (HOURS | MINUTES | SECONDS, " hour to second"),
    (MINUTES | SECONDS, " minute to second"),
];

fn unpack(typmod: i32) -> (i32, i32) {
    if typmod < 0 { (FULL_RANGE, FULL_PRECISION) } else { (typmod >> 16 & 0x7fff, typmod & 0xffff) }
}

/// `interval day to second(3)`.
pub(crate) fn interval_typmod_name(typmod: i32) -> String {
    let (range, precision) = unpack(typmod);
    let fields = RANGES.iter().find(|(r, _)| *r == range).map_or("", |(_, name)| name);
    if precision == FULL_PRECISION {
        format!("interval{fields}")
    } else {
        format!("interval{fields}({precision})")
    }
}

/// Cuts an interval to its typmod's fields and precision.
///
/// # Errors
/// None so far; the signature leaves room for range checks.
pub(crate) fn fit_interval(mut i: Interval, typmod: i32) -> Result<Interval> {
    if typmod < 0 {
        return Ok(i);
    }
    let (range, precision) = unpack(typmod);
    if range & FULL_RANGE != FULL_RANGE && range != 0 {
        if range & (DAYS | HOURS | MINUTES | SECONDS) == 0 {
            (i.days, i.micros) = (0, 0);
            if range & MONTHS == 0 {
                i.months -= i.months % 12;
            }
        } else if range & SECONDS == 0 {
            let unit = if range & MINUTES != 0 {
                MINUTE
            } else if range & HOURS != 0 {
                HOUR
            } else {
                i64::MAX
            };
            i.micros -= if unit == i64::MAX { i.micros } else { i.micros % unit };
        }
    }
    i.micros = super::round_micros(i.micros, precision);
    Ok(i)
}

/// The unit that an amount is counted in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Micro,
    Milli,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
    Decade,
    Century,
    Millennium,
}

fn unit(word: &str) -> Option<Unit> {
    // Ten letters count.
    Some(match word.get(..10).unwrap_or(word) {
        "us" | "usec" | "usecs" | "useconds" | "microsecon" => Unit::Micro,
        "ms" | "msec" | "msecs" | "mseconds" | "millisecon" => Unit::Milli,
        "s" | "sec" | "secs" | "second" | "seconds" => Unit::Second,
        "m" | "min" | "mins" | "minute" | "minutes" => Unit::Minute,
        "h" | "hr" | "hrs" | "hour" | "hours" => Unit::Hour,
        "d" | "day" | "days" => Unit::Day,
        "w" | "week" | "weeks" => Unit::Week,
        "mon" | "mons" | "month" | "months" => Unit::Month,
        "y" | "yr" | "yrs" | "year" | "years" => Unit::Year,
        "dec" | "decs" | "decade" | "decades" => Unit::Decade,
        "c" | "cent" | "century" | "centuries" => Unit::Century,
        "mil" | "mils" | "millennia" | "millennium" => Unit::Millennium,
        _ => return None,
    })
}

/// The unit of a number that has none.
fn default_unit(range: i32) -> Unit {
    if range == FULL_RANGE || range & SECONDS != 0 || range == 0 {
        Unit::Second
    } else if range & MINUTES != 0 {
        Unit::Minute
    } else if range & HOURS != 0 {
        Unit::Hour
    } else if range & DAYS != 0 {
        Unit::Day
    } else if range & MONTHS != 0 {
        Unit::Month
    } else {
        Unit::Year
    }
}

enum Fault {
    Syntax,
    /// Of a field.
    Range,
    /// Of all months together.
    Whole,
}

type Read<T> = std::result::Result<T, Fault>;

/// An interval under construction: wide, checked at the end.
#[derive(Default)]
struct Sum {
    years: i64,
    months: i64,
    days: i64,
    micros: i128,
}

impl Sum {
    fn add_micros(&mut self, amount: i64, fraction: f64, unit: i64) {
        self.micros += i128::from(amount) * i128::from(unit);
        self.micros += (fraction * unit as f64).round_ties_even() as i128;
    }

    fn add_days(&mut self, amount: i64, fraction: f64, unit: i64) -> Read<()> {
        let whole = amount.checked_mul(unit).and_then(|d| self.days.checked_add(d));
        self.days = whole.ok_or(Fault::Range)?;
        let days = fraction * unit as f64;
        self.days += days.trunc() as i64;
        self.add_micros(0, days.fract(), DAY);
        Ok(())
    }

    fn add_months(&mut self, amount: i64, fraction: f64, unit: i64) -> Read<()> {
        let (count, sum) = match unit % 12 {
            0 => (unit / 12, &mut self.years),
            _ => (unit, &mut self.months),
        };
        let whole = amount.checked_mul(count).and_then(|m| sum.checked_add(m));
        *sum = whole.filter(|v| i32::try_from(*v).is_ok()).ok_or(Fault::Range)?;
        self.months += (fraction * unit as f64).round_ties_even() as i64;
        Ok(())
    }

    fn add(&mut self, unit: Unit, amount: i64, fraction: f64) -> Read<()> {
        match unit {
            Unit::Micro => self.add_micros(amount, fraction, 1),
            Unit::Milli => self.add_micros(amount, fraction, 1000),
            Unit::Second => self.add_micros(amount, fraction, SECOND),
            Unit::Minute => self.add_micros(amount, fraction, MINUTE),
            Unit::Hour => self.add_micros(amount, fraction, HOUR),
            Unit::Day => self.add_days(amount, fraction, 1)?,
            Unit::Week => self.add_days(amount, fraction, 7)?,
            Unit::Month => {
                self.add_months(amount, 0.0, 1)?;
                self.add_days(0, fraction, 30)?;
            }
            Unit::Year => self.add_months(amount, fraction, 12)?,
            Unit::Decade => self.add_months(amount, fraction, 120)?,
            Unit::Century => self.add_months(amount, fraction, 1200)?,
            Unit::Millennium => self.add_months(amount, fraction, 12_000)?,
        }
        Ok(())
    }

    fn finish(self) -> Read<Interval> {
        Ok(Interval {
            months: i32::try_from(self.years * 12 + self.months).map_err(|_| Fault::Whole)?,
            days: i32::try_from(self.days).map_err(|_| Fault::Range)?,
            micros: i64::try_from(self.micros).map_err(|_| Fault::Range)?,
        })
    }
}

/// Reads an interval; `typmod` gives bare numbers their unit and cuts the result.
///
/// # Errors
/// `22007`, `22015`.
pub(crate) fn parse_interval(text: &str, typmod: i32, cx: &FormatContext) -> Result<Interval> {
    let trimmed = text.trim();
    let read = if trimmed.starts_with('P') {
        read_iso(trimmed)
    } else {
        read_words(trimmed, unpack(typmod).0, cx.interval_style)
    };
    match read {
        Ok(i) => fit_interval(i, typmod),
        Err(Fault::Syntax) => {
            Err(err!(INVALID_DATETIME_FORMAT, "invalid input syntax for type interval: \"{text}\""))
        }
        Err(Fault::Whole) => Err(super::interval_out_of_range()),
        Err(Fault::Range) => {
            Err(err!(INTERVAL_FIELD_OVERFLOW, "interval field value out of range: \"{text}\""))
        }
    }
}

/// Cuts at blanks, between numbers and letters, and before signs.
fn tokens(text: &str) -> Read<Vec<String>> {
    let mut out: Vec<String> = Vec::new();
    let mut chars = text.chars().peekable();
    while let Some(&c) = chars.peek() {
        let mut token = String::new();
        // Punctuation without a meaning is skipped.
        let has_meaning = c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        if c.is_ascii_whitespace() || (c.is_ascii_punctuation() && !has_meaning) {
            chars.next();
            continue;
        } else if c.is_ascii_alphabetic() {
            while let Some(c) = chars.next_if(char::is_ascii_alphabetic) {
                token.push(c.to_ascii_lowercase());
            }
        } else if c.is_ascii_digit() || matches!(c, '+' | '-' | '.') {
            token.push(c);
            chars.next();
            if matches!(c, '+' | '-') {
                while chars.next_if(|c| *c == ' ').is_some() {}
            }
            while let Some(c) =
                chars.next_if(|c| c.is_ascii_digit() || matches!(c, '.' | ':' | '-'))
            {
                token.push(c);
            }
        } else {
            return Err(Fault::Syntax);
        }
        out.push(token);
    }
    if out.is_empty() { Err(Fault::Syntax) } else { Ok(out) }
}

/// Whole part and fraction of a decimal number without sign.
fn decimal(s: &str) -> Read<(i64, f64)> {
    let (whole, fraction) = s.split_once('.').unwrap_or((s, ""));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || whole.len() + fraction.len() == 0 {
        return Err(Fault::Syntax);
    }
    let amount = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| Fault::Range)? };
    let fraction =
        if fraction.is_empty() { 0.0 } else { format!("0.{fraction}").parse().unwrap_or(0.0) };
    Ok((amount, fraction))
}

/// Microseconds of `hh:mm`, `hh:mm:ss.fff`, or `mm:ss.fff` where a point says so.
fn clock(s: &str, range: i32) -> Read<i128> {
    let mut parts: Vec<&str> = s.split(':').collect();
    let minutes_first = range == MINUTES | SECONDS && parts.len() == 2;
    if minutes_first || (parts.len() == 2 && parts[1].contains('.')) {
        parts.insert(0, "0");
    }
    let seconds = parts.get(2).copied().unwrap_or("0");
    let (second, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
    // An absent number counts as zero (`1:`); a long one is out of range, not misspelt.
    let number = |s: &str| match s.parse::<i64>() {
        Ok(n) if n >= 0 => Ok(n),
        _ if s.is_empty() => Ok(0),
        _ if s.bytes().all(|b| b.is_ascii_digit()) => Err(Fault::Range),
        _ => Err(Fault::Syntax),
    };
    if parts.len() > 3 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return Err(Fault::Syntax);
    }
    let (h, m, s) = (number(parts[0])?, number(parts[1])?, number(second)?);
    if m > 59 || s > 60 {
        return Err(Fault::Range);
    }
    let micros = i128::from(h) * i128::from(HOUR)
        + i128::from(m * MINUTE + s * SECOND + round_fraction(fraction.as_bytes()));
    if micros > i128::from(i64::MAX) { Err(Fault::Range) } else { Ok(micros) }
}

/// From the right, as a unit follows its number.
fn read_words(text: &str, range: i32, style: IntervalStyle) -> Read<Interval> {
    let tokens = tokens(text)?;
    let mut sum = Sum::default();
    let (mut current, mut ago, mut any) = (None, false, false);
    let mut seen: Vec<Unit> = Vec::new();
    let mut mark = |u: Unit| {
        if seen.contains(&u) {
            return Err(Fault::Syntax);
        }
        seen.push(u);
        Ok(())
    };
    // In SQL's style a sign in front holds for all that follows, unless others have signs.
    let signs = tokens.iter().filter(|t| t.starts_with(['+', '-'])).count();
    let sql_sign = style == IntervalStyle::SqlStandard && tokens[0].starts_with('-') && signs == 1;
    for token in tokens.iter().rev() {
        let first = token.as_bytes()[0];
        if first.is_ascii_alphabetic() {
            if token == "ago" && !any && current.is_none() && !ago {
                ago = true;
            } else if token != "and" {
                current = Some(unit(token).ok_or(Fault::Syntax)?);
            }
            continue;
        }
        any = true;
        let negative = first == b'-' || sql_sign;
        let sign = if negative { -1 } else { 1 };
        let body = token.trim_start_matches(['+', '-']);
        if body.contains(':') {
            mark(Unit::Hour)?;
            mark(Unit::Minute)?;
            [Unit::Second, Unit::Milli, Unit::Micro].into_iter().try_for_each(&mut mark)?;
            // A time with a sign that cannot be read is taken for a number, which has no colons.
            let signed = token.len() > body.len();
            let micros = clock(body, range);
            let micros = if signed { micros.map_err(|_| Fault::Syntax)? } else { micros? };
            sum.micros += i128::from(sign) * micros;
            current = Some(Unit::Day);
        } else if let Some((years, months)) = body.split_once('-') {
            mark(Unit::Year)?;
            mark(Unit::Month)?;
            let (y, m) = (decimal(years)?.0, decimal(months)?.0);
            if m > 11 {
                return Err(Fault::Range);
            }
            sum.add_months(sign * y, 0.0, 12)?;
            sum.add_months(sign * m, 0.0, 1)?;
        } else {
            let unit = current.unwrap_or_else(|| default_unit(range));
            mark(unit)?;
            if unit == Unit::Second && body.contains('.') {
                [Unit::Milli, Unit::Micro].into_iter().try_for_each(&mut mark)?;
            }
            let (amount, fraction) = decimal(body)?;
            sum.add(unit, sign * amount, sign as f64 * fraction)?;
            // `1 2` with fields `day to hour`.
            if unit == Unit::Hour {
                current = Some(Unit::Day);
            }
        }
    }
    if !any {
        return Err(Fault::Syntax);
    }
    if ago {
        sum = Sum { years: -sum.years, months: -sum.months, days: -sum.days, micros: -sum.micros };
    }
    sum.finish()
}

/// ISO 8601: `P1Y2M3W4DT5H6M7.8S`, `P0001-02-03T04:05:06`, `P00010203T040506`; every part may have a sign, and
/// the second form may end after each of its parts.
fn read_iso(text: &str) -> Read<Interval> {
    let mut sum = Sum::default();
    let (date, time) = match text[1..].split_once('T') {
        Some((date, time)) => (date, Some(time)),
        None => (&text[1..], None),
    };
    if date.is_empty() && time.is_none_or(str::is_empty) {
        return Err(Fault::Syntax);
    }
    let letters = [('Y', Unit::Year), ('M', Unit::Month), ('W', Unit::Week), ('D', Unit::Day)];
    let parts = [Unit::Year, Unit::Month, Unit::Day];
    iso_half(date, &mut sum, (&letters, '-', parts), (8, [10_000, 100, 1]))?;
    let letters = [('H', Unit::Hour), ('M', Unit::Minute), ('S', Unit::Second)];
    let parts = [Unit::Hour, Unit::Minute, Unit::Second];
    iso_half(time.unwrap_or(""), &mut sum, (&letters, ':', parts), (6, [10_000, 100, 1]))?;
    sum.finish()
}

/// The half before or behind the T: numbers with letters, numbers between separators, or one number of `width`
/// digits for all.
fn iso_half(
    text: &str,
    sum: &mut Sum,
    (letters, separator, parts): (&[(char, Unit)], char, [Unit; 3]),
    (width, places): (usize, [i64; 3]),
) -> Read<()> {
    let (mut rest, mut any) = (text, false);
    while !rest.is_empty() {
        let (amount, fraction, end) = iso_number(rest)?;
        let digits = rest.trim_start_matches('-').bytes().take_while(u8::is_ascii_digit).count();
        let letter = rest[end..].chars().next();
        match letters.iter().find(|(l, _)| Some(*l) == letter) {
            Some((_, unit)) => {
                sum.add(*unit, amount, fraction)?;
                (rest, any) = (&rest[end + 1..], true);
            }
            None if any => return Err(Fault::Syntax),
            None if letter.is_none() && digits == width => {
                let mut left = amount;
                for (place, unit) in places.into_iter().zip(parts) {
                    let last = place == 1;
                    sum.add(unit, left / place, if last { fraction } else { 0.0 })?;
                    left %= place;
                }
                return Ok(());
            }
            None => return iso_parts(rest, sum, separator, parts),
        }
    }
    Ok(())
}

fn iso_parts(text: &str, sum: &mut Sum, separator: char, parts: [Unit; 3]) -> Read<()> {
    let mut rest = text;
    for (n, unit) in parts.into_iter().enumerate() {
        if n > 0 {
            rest = rest.strip_prefix(separator).ok_or(Fault::Syntax)?;
        }
        let (amount, fraction, end) = iso_number(rest)?;
        sum.add(unit, amount, fraction)?;
        rest = &rest[end..];
        if rest.is_empty() {
            return Ok(());
        }
    }
    Err(Fault::Syntax)
}

/// The number at the front, with its sign in both parts, and where it ends.
fn iso_number(text: &str) -> Read<(i64, f64, usize)> {
    let bytes = text.as_bytes();
    let digits =
        |from: usize| from + bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let start = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    let mut end = digits(start);
    if bytes.get(end) == Some(&b'.') {
        end = digits(end + 1);
    }
    if !bytes[start..end].iter().any(u8::is_ascii_digit) {
        return Err(Fault::Syntax);
    }
    let sign = if bytes[0] == b'-' { -1 } else { 1 };
    let mantissa = end;
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let behind = digits((end + 1 + sign).min(bytes.len()));
        if behind > end + 1 + sign {
            end = behind;
        }
    }
    if end > mantissa {
        let value: f64 = text[start..end].parse().map_err(|_| Fault::Syntax)?;
        if value > 1e15 {
            return Err(Fault::Range);
        }
        return Ok((sign * value.trunc() as i64, sign as f64 * value.fract(), end));
    }
    let (amount, fraction) = decimal(&text[start..end])?;
    Ok((sign * amount, sign as f64 * fraction, end))
}

/// The fields that are shown: months and microseconds in their larger units.
struct Shown {
    years: i64,
    months: i64,
    days: i64,
    hours: i64,
    minutes: i64,
    seconds: i64,
    fraction: i64,
}

impl Shown {
    fn of(i: &Interval) -> Shown {
        Shown {
            years: i64::from(i.months / 12),
            months: i64::from(i.months % 12),
            days: i64::from(i.days),
            hours: i.micros / HOUR,
            minutes: i.micros % HOUR / MINUTE,
            seconds: i.micros % MINUTE / SECOND,
            fraction: i.micros % SECOND,
        }
    }
}

/// Appends an interval.
pub(crate) fn write_interval(i: &Interval, style: IntervalStyle, out: &mut Vec<u8>) {
    let s = Shown::of(i);
    match style {
        IntervalStyle::Postgres => write_postgres(&s, i.micros, out),
        IntervalStyle::PostgresVerbose => write_verbose(&s, out),
        IntervalStyle::SqlStandard => write_sql(i, out),
        IntervalStyle::Iso8601 => write_iso(&s, i, out),
    }
}

fn put_seconds(seconds: i64, fraction: i64, width: usize, out: &mut Vec<u8>) {
    put(seconds.abs(), width, out);
    put_fraction(fraction.abs(), out);
}

fn write_postgres(s: &Shown, micros: i64, out: &mut Vec<u8>) {
    let (mut empty, mut negative) = (true, false);
    for (v, name) in [(s.years, "year"), (s.months, "mon"), (s.days, "day")] {
        if v == 0 {
            continue;
        }
        if !empty {
            out.push(b' ');
        }
        if negative && v > 0 {
            out.push(b'+');
        }
        let plural = if v == 1 { "" } else { "s" };
        out.extend_from_slice(format!("{v} {name}{plural}").as_bytes());
        (empty, negative) = (false, v < 0);
    }
    if empty || micros != 0 {
        if !empty {
            out.push(b' ');
        }
        if micros < 0 {
            out.push(b'-');
        } else if negative {
            out.push(b'+');
        }
        put(s.hours.abs(), 2, out);
        out.push(b':');
        put(s.minutes.abs(), 2, out);
        out.push(b':');
        put_seconds(s.seconds, s.fraction, 2, out);
    }
}

fn write_verbose(s: &Shown, out: &mut Vec<u8>) {
    out.push(b'@');
    let (mut empty, mut ago) = (true, false);
    let fields = [
        (s.years, "year"),
        (s.months, "mon"),
        (s.days, "day"),
        (s.hours, "hour"),
        (s.minutes, "min"),
    ];
    for (v, name) in fields {
        if v == 0 {
            continue;
        }
        let shown = if empty {
            ago = v < 0;
            v.abs()
        } else if ago {
            -v
        } else {
            v
        };
        let plural = if shown == 1 { "" } else { "s" };
        out.extend_from_slice(format!(" {shown} {name}{plural}").as_bytes());
        empty = false;
    }
    if s.seconds != 0 || s.fraction != 0 {
        out.push(b' ');
        if s.seconds < 0 || s.fraction < 0 {
            if empty {
                ago = true;
            } else if !ago {
                out.push(b'-');
            }
        } else if ago {
            out.push(b'-');
        }
        put_seconds(s.seconds, s.fraction, 1, out);
        let plural = s.seconds.abs() != 1 || s.fraction != 0;
        out.extend_from_slice(if plural { b" secs" } else { b" sec" });
        empty = false;
    }
    if empty {
        out.extend_from_slice(b" 0");
    }
    if ago {
        out.extend_from_slice(b" ago");
    }
}

fn write_sql(i: &Interval, out: &mut Vec<u8>) {
    let parts = [i64::from(i.months), i64::from(i.days), i.micros];
    let negative = parts.iter().any(|v| *v < 0);
    let positive = parts.iter().any(|v| *v > 0);
    if !negative && !positive {
        out.push(b'0');
        return;
    }
    let year_month = i.months != 0;
    let day_time = i.days != 0 || i.micros != 0;
    let s = Shown::of(i);
    let clock = |out: &mut Vec<u8>| {
        put(s.hours.abs(), 1, out);
        out.push(b':');
        put(s.minutes.abs(), 2, out);
        out.push(b':');
        put_seconds(s.seconds, s.fraction, 2, out);
    };
    if (negative && positive) || (year_month && day_time) {
        let sign = |v: i64| if v < 0 { '-' } else { '+' };
        let head = format!(
            "{}{}-{} {}{} {}",
            sign(parts[0]),
            s.years.abs(),
            s.months.abs(),
            sign(parts[1]),
            s.days.abs(),
            sign(parts[2])
        );
        out.extend_from_slice(head.as_bytes());
        clock(out);
        return;
    }
    if negative {
        out.push(b'-');
    }
    if year_month {
        out.extend_from_slice(format!("{}-{}", s.years.abs(), s.months.abs()).as_bytes());
    } else {
        if i.days != 0 {
            out.extend_from_slice(format!("{} ", s.days.abs()).as_bytes());
        }
        clock(out);
    }
}

fn write_iso(s: &Shown, i: &Interval, out: &mut Vec<u8>) {
    if *i == Interval::default() {
        out.extend_from_slice(b"PT0S");
        return;
    }
    out.push(b'P');
    let field = |v: i64, letter: char, out: &mut Vec<u8>| {
        if v != 0 {
            out.extend_from_slice(format!("{v}{letter}").as_bytes());
        }
    };
    field(s.years, 'Y', out);
    field(s.months, 'M', out);
    field(s.days, 'D', out);
    if i.micros != 0 {
        out.push(b'T');
        field(s.hours, 'H', out);
        field(s.minutes, 'M', out);
        if s.seconds != 0 || s.fraction != 0 {
            if s.seconds < 0 || s.fraction < 0 {
                out.push(b'-');
            }
            put_seconds(s.seconds, s.fraction, 1, out);
            out.push(b'S');
        }
    }
}
