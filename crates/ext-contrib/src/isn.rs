//! isn: numbers of products (EAN13, UPC), books (ISBN), music (ISMN) and serials (ISSN).
//!
//! ```text
//!   text      978-0-393-04002-9   0-393-04002-X   M-2600-0043-8   0317-8471   220356483481   a ! behind most: not checked
//!   stored    thirteen digits as a number, times two, plus one where the number was not checked (8 bytes)
//! ```
//!
//! * All types have the thirteen digits inside: a short form is written only when it is printed.
//! * `isn_weak(true)`, or the setting `isn.weak`, lets numbers with a wrong check digit in, with the mark.

use std::any::Any;
use std::sync::OnceLock;

use base::{Oid, Result, bail};
use exec::context::ExecContext;
use exec::native::{Native, Symbols};
use types::extension::Library;
use types::func::{Body, SessionFunction};
use types::oids::INT8;
use types::open::{OpenType, OpenValue};
use types::{Datum, FormatContext};

use crate::common::{Bodies, built_in};

/// The extension's code.
pub static LIBRARY: Library = Library {
    name: "isn",
    bodies,
    types: &[
        ("ean13_in", &IsnType(Kind::Ean13, false)),
        ("isbn13_in", &IsnType(Kind::Isbn, false)),
        ("isbn_in", &IsnType(Kind::Isbn, true)),
        ("ismn13_in", &IsnType(Kind::Ismn, false)),
        ("ismn_in", &IsnType(Kind::Ismn, true)),
        ("issn13_in", &IsnType(Kind::Issn, false)),
        ("issn_in", &IsnType(Kind::Issn, true)),
        ("upc_in", &IsnType(Kind::Upc, true)),
    ],
    silent: &[
        "ean13_in",
        "isbn13_in",
        "isbn_in",
        "ismn13_in",
        "ismn_in",
        "issn13_in",
        "issn_in",
        "upc_in",
        "ean13_out",
        "isn_out",
    ],
    ..Library::EMPTY
};

/// The functions that need the session.
pub const SYMBOLS: Symbols = &[
    ("accept_weak_input", Native::Scalar(set_weak)),
    ("weak_input_status", Native::Scalar(|_, cx| Ok(Datum::Bool(cx.format.isn_weak)))),
];

const SETTING: &str = "isn.weak";

fn set_weak(args: &[Datum], cx: &mut ExecContext<'_>) -> Result<Datum> {
    let Datum::Bool(weak) = args[0] else { return Ok(Datum::Null) };
    let set = [Datum::text(SETTING), Datum::text(if weak { "on" } else { "off" }), false.into()];
    let acting = cx.acting();
    cx.hooks.call(SessionFunction::SetConfig, &set, acting)?;
    Ok(Datum::Bool(weak))
}

/// The kinds of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Ean13,
    Isbn,
    Ismn,
    Issn,
    Upc,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Ean13 => "EAN13",
            Kind::Isbn => "ISBN",
            Kind::Ismn => "ISMN",
            Kind::Issn => "ISSN",
            Kind::Upc => "UPC",
        }
    }

    /// The kind that a number belongs to by its prefix.
    fn of(number: u64) -> Kind {
        match number / 10_000_000_000 {
            978 => Kind::Isbn,
            977 => Kind::Issn,
            979 if number / 1_000_000_000 % 10 == 0 => Kind::Ismn,
            979 => Kind::Isbn,
            0..=99 => Kind::Upc,
            _ => Kind::Ean13,
        }
    }

    /// Whether a number of this kind may be read as one of another.
    fn fits(self, wanted: Kind) -> bool {
        self == wanted || wanted == Kind::Ean13
    }
}

/// The thirteenth digit that belongs to twelve.
fn check_digit(twelve: u64) -> u64 {
    let digit = |place: u32| twelve / 10u64.pow(place) % 10;
    let sum: u64 = (0..12).map(|place| digit(place) * if place % 2 == 0 { 3 } else { 1 }).sum();
    (10 - sum % 10) % 10
}

/// The last digit of a short form of ISBN or ISSN (10: `X`), by the digits before it.
fn short_digit(digits: &str) -> u64 {
    let weights = 2..=digits.len() as u64 + 1;
    let sum: u64 = digits.bytes().rev().zip(weights).map(|(d, w)| u64::from(d - b'0') * w).sum();
    (11 - sum % 11) % 11
}

fn digit_char(digit: u64) -> char {
    if digit == 10 { 'X' } else { char::from(b'0' + digit as u8) }
}

/// The places of the hyphens behind the first three digits: digits of group and publisher.
fn parts(twelve: u64) -> Option<(usize, usize)> {
    type Range = (u64, usize, usize);
    static RANGES: OnceLock<Vec<Range>> = OnceLock::new();
    let ranges = RANGES.get_or_init(|| {
        let lines = include_str!("isn_ranges.txt").lines().filter(|line| !line.starts_with('#'));
        let range = |line: &str| {
            let mut words = line.split(' ');
            let prefix = words.next()?;
            let from = prefix.parse::<u64>().ok()? * 10u64.pow(12 - prefix.len() as u32);
            Some((from, words.next()?.parse().ok()?, words.next()?.parse().ok()?))
        };
        lines.filter_map(range).collect()
    });
    let after = ranges.partition_point(|range| range.0 <= twelve);
    let (_, group, publisher) = *ranges.get(after.checked_sub(1)?)?;
    (group > 0).then_some((group, publisher))
}

#[derive(Clone, Copy, Debug)]
struct Isn {
    ty: Oid,
    kind: Kind,
    short: bool,
    stored: u64,
}

impl Isn {
    fn number(&self) -> u64 {
        self.stored >> 1
    }

    fn is_unchecked(&self) -> bool {
        self.stored & 1 == 1
    }

    fn plain(&self) -> Datum {
        Datum::Int8(self.stored as i64)
    }
}

/// All thirteen digits, with hyphens.
fn long_text(number: u64) -> String {
    let digits = format!("{number:013}");
    let (prefix, rest) = digits.split_at(3);
    let (middle, check) = rest.split_at(9);
    if Kind::of(number) == Kind::Issn {
        return format!("{prefix}-{}-{}-{}-{check}", &middle[..4], &middle[4..7], &middle[7..]);
    }
    match parts(number / 10).filter(|_| number >= 9_780_000_000_000) {
        Some((group, publisher)) => {
            let (group, rest) = middle.split_at(group);
            let (publisher, title) = rest.split_at(publisher);
            format!("{prefix}-{group}-{publisher}-{title}-{check}")
        }
        None => format!("{prefix}-{middle}-{check}"),
    }
}

/// The short form; the long one of a number that has none.
fn short_text(kind: Kind, number: u64) -> String {
    let long = long_text(number);
    match kind {
        Kind::Isbn if long.starts_with("978") => {
            let body = &long[4..long.len() - 1];
            let digits: String = body.chars().filter(char::is_ascii_digit).collect();
            format!("{body}{}", digit_char(short_digit(&digits)))
        }
        Kind::Ismn => format!("M{}", &long[5..]),
        Kind::Issn => {
            let digits = &format!("{number:013}")[3..10];
            format!("{}-{}{}", &digits[..4], &digits[4..], digit_char(short_digit(digits)))
        }
        Kind::Upc => format!("{number:012}"),
        Kind::Isbn | Kind::Ean13 => long,
    }
}

impl OpenValue for Isn {
    fn ty(&self) -> Oid {
        self.ty
    }

    fn write(&self, _cx: &FormatContext, out: &mut Vec<u8>) -> Result<()> {
        let text = match self.short {
            true => short_text(self.kind, self.number()),
            false => long_text(self.number()),
        };
        out.extend_from_slice(text.as_bytes());
        // As PostgreSQL's, these two have no mark.
        let unmarked = self.short && matches!(self.kind, Kind::Issn | Kind::Upc);
        if self.is_unchecked() && !unmarked {
            out.push(b'!');
        }
        Ok(())
    }

    fn store(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.stored.to_le_bytes());
    }

    /// The same for equal numbers of all types.
    fn key(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.stored.to_be_bytes());
    }

    fn plain(&self) -> Option<Datum> {
        Some(Isn::plain(self))
    }

    fn heap_bytes(&self) -> usize {
        size_of::<Isn>()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A type: what it counts, and whether it prints the short form.
struct IsnType(Kind, bool);

/// A number as it was written.
struct Written {
    kind: Kind,
    /// Thirteen digits, the last of which is right.
    number: u64,
    /// The last digit as it was written, and as it had to be; None: a question mark.
    check: Option<(char, char)>,
    unchecked: bool,
}

enum Unread {
    Syntax,
    Range,
}

/// Reads a number without regard to what it is wanted for.
fn read(text: &str) -> std::result::Result<Written, Unread> {
    let body = text.trim_end_matches(' ');
    let (body, unchecked) = match body.strip_suffix('!') {
        Some(body) => (body, true),
        None => (body, false),
    };
    let mut written = String::new();
    for c in body.chars() {
        // A check digit of a short form, or one to be found, is the last.
        let ended = written.ends_with(['X', '?']);
        match c {
            ' ' | '-' if !ended => {}
            '0'..='9' if !ended => written.push(c),
            'X' | 'x' if matches!(written.len(), 7 | 9) && !written.starts_with('M') && !ended => {
                written.push('X');
            }
            'M' | 'm' if written.is_empty() => written.push('M'),
            '?' if !ended && !written.is_empty() => written.push('?'),
            _ => return Err(Unread::Syntax),
        }
        if written.len() > 13 {
            return Err(Unread::Range);
        }
    }
    let Some(last) = written.pop() else { return Err(Unread::Syntax) };
    let digits = written.trim_start_matches('M');
    let value = || digits.parse::<u64>().map_err(|_| Unread::Syntax);
    let long = |twelve: u64| twelve * 10 + check_digit(twelve);
    let (kind, number, right) = match written.len() {
        7 if digits.len() == 7 => {
            (Kind::Issn, long(977_000_000_000 + value()? * 100), short_digit(digits))
        }
        9 if digits.len() == 9 => {
            (Kind::Isbn, long(978_000_000_000 + value()?), short_digit(digits))
        }
        9 => {
            let number = long(979_000_000_000 + value()?);
            (Kind::Ismn, number, number % 10)
        }
        11 if digits.len() == 11 => {
            let number = long(value()?);
            (Kind::Upc, number, number % 10)
        }
        12 if digits.len() == 12 => {
            let number = long(value()?);
            (Kind::of(number), number, number % 10)
        }
        _ => return Err(Unread::Syntax),
    };
    let check = (last != '?').then(|| (last, digit_char(right)));
    Ok(Written { kind, number, check, unchecked })
}

impl OpenType for IsnType {
    fn input(&self, ty: Oid, _typmod: i32, text: &str, cx: &FormatContext) -> Result<Datum> {
        let IsnType(kind, short) = *self;
        let wanted = kind.name();
        let read = match read(text) {
            Ok(read) => read,
            Err(Unread::Syntax) => bail!(
                INVALID_TEXT_REPRESENTATION,
                "invalid input syntax for {wanted} number: \"{text}\""
            ),
            Err(Unread::Range) => bail!(
                NUMERIC_VALUE_OUT_OF_RANGE,
                "value \"{text}\" is out of range for {wanted} type"
            ),
        };
        // Only the long forms are an EAN13.
        let is_long = text.bytes().filter(|b| b.is_ascii_digit() || *b == b'?').count() == 13;
        if !read.kind.fits(kind) || kind == Kind::Ean13 && !is_long {
            bail!(
                INVALID_TEXT_REPRESENTATION,
                "cannot cast {} to {wanted} for number: \"{text}\"",
                read.kind.name()
            );
        }
        let wrong = read.check.filter(|(written, right)| written != right);
        if let Some((_, right)) = wrong.filter(|_| !read.unchecked && !cx.isn_weak) {
            bail!(
                INVALID_TEXT_REPRESENTATION,
                "invalid check digit for {wanted} number: \"{text}\", should be {right}"
            );
        }
        let unchecked = read.unchecked || wrong.is_some();
        Ok(Datum::open(Isn { ty, kind, short, stored: read.number << 1 | u64::from(unchecked) }))
    }

    fn load(&self, ty: Oid, bytes: &[u8]) -> Option<Datum> {
        let stored = u64::from_le_bytes(bytes.try_into().ok()?);
        Some(Datum::open(Isn { ty, kind: self.0, short: self.1, stored }))
    }

    fn plain_type(&self) -> Option<Oid> {
        Some(INT8)
    }

    fn from_plain(&self, ty: Oid, value: Datum) -> Datum {
        match value {
            Datum::Int8(n) => {
                Datum::open(Isn { ty, kind: self.0, short: self.1, stored: n as u64 })
            }
            value => value,
        }
    }
}

fn own(value: &Datum) -> &Isn {
    value.as_open()
}

/// An EAN13 as a number of a kind.
fn cast(value: &Isn, wanted: Kind, ty: Oid) -> Result<Datum> {
    let number = value.number();
    let kind = Kind::of(number);
    if !kind.fits(wanted) {
        let from = match kind {
            Kind::Ean13 => "EAN13".to_owned(),
            kind => format!("EAN13({})", kind.name()),
        };
        bail!(
            INVALID_TEXT_REPRESENTATION,
            "cannot cast {from} to {} for number: \"{number:013}\"",
            wanted.name()
        );
    }
    Ok(types::open::relabel(Isn::plain(value), ty))
}

macro_rules! comparisons { ($($name:literal $test:ident)*) => {
    vec![$(($name, Body::Scalar(|args, _| {
        Ok(Datum::Bool(own(&args[0]).stored.cmp(&own(&args[1]).stored).$test()))
    }))),*]
} }

macro_rules! casts { ($($name:literal $kind:ident)*) => {
    [$(($name, Body::Typed(|args, types, _| cast(own(&args[0]), Kind::$kind, types.result)))),*]
} }

fn bodies() -> Bodies {
    let mut out: Bodies = comparisons! {
        "isn_lt" is_lt "isn_le" is_le "isn_eq" is_eq "isn_ge" is_ge "isn_gt" is_gt "isn_ne" is_ne
    };
    out.extend(casts! {
        "isbn_cast_from_ean13" Isbn "ismn_cast_from_ean13" Ismn
        "issn_cast_from_ean13" Issn "upc_cast_from_ean13" Upc
    });
    out.push((
        "isn_cmp",
        Body::Scalar(|args, _| {
            Ok(Datum::Int4(own(&args[0]).stored.cmp(&own(&args[1]).stored) as i32))
        }),
    ));
    out.push((
        "isn_hash",
        Body::Scalar(|args, cx| built_in("hashint8", &[Isn::plain(own(&args[0]))], cx)),
    ));
    out.push(("is_valid", Body::Scalar(|args, _| Ok(Datum::Bool(!own(&args[0]).is_unchecked())))));
    out.push((
        "make_valid",
        Body::Scalar(|args, _| {
            let value = own(&args[0]);
            Ok(Datum::open(Isn { stored: value.stored & !1, ..*value }))
        }),
    ));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_digits_are_those_of_known_numbers() {
        assert_eq!(check_digit(978_039_304_002), 9);
        assert_eq!(digit_char(short_digit("039304002")), 'X');
        assert_eq!(digit_char(short_digit("0317847")), '1');
    }

    #[test]
    fn forms_have_their_hyphens() {
        assert_eq!(long_text(9_780_393_040_029), "978-0-393-04002-9");
        assert_eq!(long_text(9_770_317_847_001), "977-0317-847-00-1");
        assert_eq!(long_text(4_006_381_333_931), "400-638133393-1");
        assert_eq!(short_text(Kind::Isbn, 9_780_393_040_029), "0-393-04002-X");
        assert_eq!(short_text(Kind::Ismn, 9_790_260_000_438), "M-2600-0043-8");
        assert_eq!(short_text(Kind::Isbn, 9_791_020_304_056), "979-10-203-0405-6");
    }
}
