//! `format(…)`: `%s`, `%I`, `%L`, `%%`, with `n$` positions, width and `-`.

use base::{Error, Result, err};

use super::text::{char_count, quote_ident, quote_literal, shown};
use crate::bulk::{self, Pace};
use crate::datum::Datum;
use crate::io;

/// `format(…)`.
///
/// # Errors
/// `22023` for a bad specifier, `22003` for a number that is no int4, `22004`; `54000` beyond 1 GB.
pub(super) fn format(template: &Datum, args: &[Datum], cx: &io::FormatContext) -> Result<Datum> {
    if template.is_null() {
        return Ok(Datum::Null);
    }
    let (mut out, mut next, mut pace) = (String::new(), 0usize, Pace::default());
    let mut rest = template.as_str();
    while let Some(at) = rest.find('%') {
        pace.step()?;
        bulk::push_str(&mut out, &rest[..at])?;
        let mut chars = Reader(&rest[at + 1..]);
        let spec = Spec::read(&mut chars, args, &mut next, cx)?;
        let letter = chars.next().ok_or_else(unterminated)?;
        rest = chars.0;
        if letter == '%' {
            bulk::push_str(&mut out, "%")?;
            continue;
        }
        if !matches!(letter, 's' | 'I' | 'L') {
            return Err(err!(
                INVALID_PARAMETER_VALUE,
                "unrecognized format() type specifier \"{letter}\""
            )
            .hint("For a single \"%\" use \"%%\"."));
        }
        let place = spec.position.unwrap_or(next);
        next = place + 1;
        let arg = args.get(place).ok_or_else(too_few)?;
        spec.put(&formatted(letter, arg, cx)?, &mut out)?;
    }
    bulk::push_str(&mut out, rest)?;
    bulk::text(out).map(Datum::Text)
}

#[cold]
fn unterminated() -> Error {
    err!(INVALID_PARAMETER_VALUE, "unterminated format() type specifier")
        .hint("For a single \"%\" use \"%%\".")
}

#[cold]
fn too_few() -> Error {
    err!(INVALID_PARAMETER_VALUE, "too few arguments for format()")
}

#[cold]
fn out_of_range() -> Error {
    err!(NUMERIC_VALUE_OUT_OF_RANGE, "number is out of range")
}

#[cold]
fn argument_zero() -> Error {
    err!(INVALID_PARAMETER_VALUE, "format specifies argument 0, but arguments are numbered from 1")
}

fn formatted(letter: char, arg: &Datum, cx: &io::FormatContext) -> Result<String> {
    Ok(match (letter, arg) {
        ('s', Datum::Null) => String::new(),
        ('L', Datum::Null) => "NULL".to_owned(),
        (_, Datum::Null) => {
            return Err(err!(
                NULL_VALUE_NOT_ALLOWED,
                "null values cannot be formatted as an SQL identifier"
            ));
        }
        ('s', arg) => shown(arg, cx)?.to_string(),
        ('L', arg) => quote_literal(&shown(arg, cx)?),
        (_, arg) => quote_ident(&shown(arg, cx)?),
    })
}

/// The template from a specifier on.
struct Reader<'a>(&'a str);

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.0.chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let mut chars = self.0.chars();
        let c = chars.next();
        self.0 = chars.as_str();
        c
    }
}

/// The text between `%` and the letter.
#[derive(Default)]
struct Spec {
    position: Option<usize>,
    left: bool,
    width: usize,
}

/// The digits here as a number.
fn number(chars: &mut Reader<'_>) -> Result<Option<i32>> {
    let mut n = None;
    while let Some(digit) = chars.peek().and_then(|c| c.to_digit(10)) {
        let more = n.unwrap_or(0i32).checked_mul(10).and_then(|n| n.checked_add(digit as i32));
        n = Some(more.ok_or_else(out_of_range)?);
        chars.next();
    }
    match (n, chars.peek()) {
        (Some(_), None) => Err(unterminated()),
        (n, _) => Ok(n),
    }
}

/// The place of an argument that is named by its number.
fn place(n: i32) -> Result<usize> {
    usize::try_from(n).ok().and_then(|n| n.checked_sub(1)).ok_or_else(argument_zero)
}

impl Spec {
    fn read(
        chars: &mut Reader<'_>,
        args: &[Datum],
        next: &mut usize,
        cx: &io::FormatContext,
    ) -> Result<Spec> {
        let mut spec = Spec::default();
        if let Some(n) = number(chars)? {
            if chars.peek() != Some('$') {
                spec.width = n as usize;
                return Ok(spec);
            }
            chars.next();
            spec.position = Some(place(n)?);
        }
        while chars.peek() == Some('-') {
            chars.next();
            spec.left = true;
        }
        if chars.peek() == Some('*') {
            chars.next();
            let at = match number(chars)? {
                Some(n) => {
                    let at = place(n)?;
                    if chars.next() != Some('$') {
                        return Err(err!(
                            INVALID_PARAMETER_VALUE,
                            "width argument position must be ended by \"$\""
                        ));
                    }
                    at
                }
                None => {
                    *next += 1;
                    *next - 1
                }
            };
            let width = width(args.get(at).ok_or_else(too_few)?, cx)?;
            spec.left |= width < 0;
            spec.width = width.checked_abs().ok_or_else(out_of_range)? as usize;
        } else if let Some(n) = number(chars)? {
            spec.width = n as usize;
        }
        Ok(spec)
    }

    /// Appends a text, filled up to the width with blanks.
    fn put(&self, text: &str, out: &mut String) -> Result<()> {
        let missing = self.width.saturating_sub(char_count(text));
        if self.left {
            bulk::push_str(out, text)?;
        }
        bulk::push_blanks(out, missing)?;
        if self.left { Ok(()) } else { bulk::push_str(out, text) }
    }
}

/// The value of an argument that is a width.
fn width(arg: &Datum, cx: &io::FormatContext) -> Result<i32> {
    match arg {
        Datum::Null => Ok(0),
        Datum::Int4(n) => Ok(*n),
        Datum::Int2(n) => Ok((*n).into()),
        other => match io::input(crate::oids::INT4, -1, &shown(other, cx)?, cx)? {
            Datum::Int4(n) => Ok(n),
            _ => Ok(0),
        },
    }
}
