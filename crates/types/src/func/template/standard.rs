//! Reading by a template as SQL:2016 wants it (section 9.46): separators are taken literally, every field must be there,
//! and nothing may be left. The template says what comes out: a date, a time, or a timestamp, with a zone or without.

use base::{Result, err};

use super::date::{Node, parse};
use super::read::{Reader, is_numeric};
use crate::datetime::{self, DAY, SECOND};
use crate::datum::Datum;

/// A value and, where it has one, the zone that was written, in seconds east of Greenwich.
pub(crate) struct Standard {
    /// Of date, time, timetz, timestamp or timestamptz.
    pub value: Datum,
    /// The zone.
    pub east: Option<i32>,
}

enum Piece {
    Separator(char),
    /// Of a quoted text.
    Character(char),
    Field(&'static str, bool),
}

fn bad(text: &str) -> base::Error {
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
        for node in parse(plain) {
            match node {
                Node::Field { key, fill, .. } => out.push(Piece::Field(key, fill)),
                Node::Text(text) => {
                    for c in text.chars() {
                        if !"-./,':; ".contains(c) {
                            let text = format!("invalid datetime format separator: \"{c}\"");
                            return Err(bad(&text));
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

/// Reads a text.
///
/// # Errors
/// `22007` where it does not fit the template, `22008` for values out of range.
pub(crate) fn read(text: &str, template: &str) -> Result<Standard> {
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
                    return Err(bad(&format!("unmatched format {what} \"{c}\"")));
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
        return Err(bad("input string is too short for datetime format"));
    }
    if !reader.rest.trim_start().is_empty() {
        return Err(bad("trailing characters remain in input string after datetime format"));
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
        (_, false) if zoned => return Err(bad("datetime format is zoned but not timed")),
        (true, false) => Datum::Date(datetime::check_date(found.days(text)?)?),
        (false, true) if zoned => Datum::Timetz(found.time(text)?, -east),
        (false, true) => Datum::Time(found.time(text)?),
        (false, false) => return Err(bad("datetime format is not dated and not timed")),
    };
    Ok(Standard { value, east: zone })
}
