//! POSIX rules for time zones, as far as PostgreSQL takes them: `EST5EDT,M3.2.0,M11.1.0`, `<+03>-3`, `FOO-3`,
//! and without a name, `+02:00`. Distances are westward. A zone with a name for its summer time and no rule
//! for it has the rule of the United States.

use std::sync::Arc;

use super::{FixedName, Zone};

/// Distances in seconds stay below this.
pub(super) const OFFSET_LIMIT: i32 = 168 * 3600;

/// The rule of zones that have none.
const DEFAULT_RULE: &str = ",M3.2.0,M11.1.0";

/// The zone that a rule describes.
pub(super) fn parse(text: &str) -> Option<Zone> {
    let (abbreviation, rest) = name(text)?;
    let (west, rest) = offset(rest)?;
    let zone: Arc<str> = Arc::from(text);
    if rest.is_empty() {
        let name = FixedName { zone, abbreviation: Arc::from(abbreviation) };
        return Some(Zone::Fixed(-west, Some(name)));
    }
    let (daylight, rest) = name(rest)?;
    if daylight.is_empty() {
        return None;
    }
    let (distance, rule) = match offset(rest) {
        Some((west, rule)) => (format_offset(west), rule),
        None => (String::new(), rest),
    };
    let rule = match rule.as_bytes().first() {
        None => DEFAULT_RULE.to_owned(),
        Some(b',' | b';') => format!(",{}", &rule[1..]),
        Some(_) => return None,
    };
    let west = format_offset(west);
    let (standard, summer) = (plain_name(abbreviation), plain_name(daylight));
    let whole = format!("<{standard}>{west}<{summer}>{distance}{rule}");
    let rules = jiff::tz::TimeZone::posix(&whole).ok()?;
    Some(Zone::Rules(rules, zone))
}

/// The name that a rule begins with: in angle brackets, or up to a number.
fn name(text: &str) -> Option<(&str, &str)> {
    if let Some(quoted) = text.strip_prefix('<') {
        return quoted.split_once('>');
    }
    let ends = |b: u8| b.is_ascii_digit() || matches!(b, b',' | b'+' | b'-');
    let at = text.bytes().position(ends).unwrap_or(text.len());
    Some(text.split_at(at))
}

/// The name, or a stand-in for one that the library would not take.
fn plain_name(name: &str) -> &str {
    let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-');
    if (3..=30).contains(&name.len()) && name.bytes().all(fits) { name } else { "---" }
}

/// A distance `[+|-]hh[:mm[:ss]]` in seconds.
fn offset(text: &str) -> Option<(i32, &str)> {
    let (sign, mut rest) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    let mut seconds = 0;
    for (unit, limit) in [(3600, 167), (60, 59), (1, 60)] {
        if unit < 3600 {
            match rest.strip_prefix(':') {
                Some(after) => rest = after,
                None => break,
            }
        }
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let value: i32 = rest[..digits].parse().ok().filter(|value| *value <= limit)?;
        seconds += unit * value;
        rest = &rest[digits..];
    }
    Some((sign * seconds, rest))
}

fn format_offset(west: i32) -> String {
    let sign = if west < 0 { "-" } else { "" };
    let west = west.abs();
    format!("{sign}{:02}:{:02}:{:02}", west / 3600, west / 60 % 60, west % 60)
}
