//! seg: intervals of measurements, with how exactly their ends are known.
//!
//! ```text
//!   text      1.50 .. ~2        ends keep their digits, and the marks < > ~
//!   stored    lower, upper (4 bytes each), digits of both, marks of both
//! ```

use std::any::Any;
use std::cmp::Ordering;
use std::sync::Arc;

use base::ternary::Ternary;
use base::{Oid, Result, bail, err};
use types::extension::Library;
use types::func::Body;
use types::gist::{GistClass, KeyCheck, possible};
use types::oids::FLOAT4;
use types::open::{OpenType, OpenValue};
use types::{Datum, FormatContext};

use crate::common::Bodies;
use crate::spans;

/// The extension's code.
pub static LIBRARY: Library = Library {
    name: "seg",
    bodies,
    types: &[("seg_in", &SegType)],
    gist: &[("gseg_consistent", |ty| Arc::new(SegOps { ty }))],
    silent: &["seg_in", "seg_out"],
    ..Library::EMPTY
};

/// Digits that are kept.
const DIGITS_MAX: usize = 6;
/// The mark of an end that isn't there.
const OPEN: u8 = b'-';

/// An end: its place, its digits and its mark (0: none).
#[derive(Clone, Copy, Debug, PartialEq)]
struct End {
    at: f32,
    digits: u8,
    mark: u8,
}

#[derive(Clone, Copy, Debug)]
struct Seg {
    ty: Oid,
    lower: End,
    upper: End,
}

/// C's `%.*e`, without the zeros of short exponents where that reads well.
fn shown(end: End) -> String {
    if !end.at.is_finite() {
        return format!("{}", end.at).to_lowercase();
    }
    let digits = usize::from(end.digits).clamp(1, DIGITS_MAX);
    let text = format!("{:.*e}", digits - 1, end.at.abs());
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if end.at < 0.0 { "-" } else { "" };
    let plain = mantissa.replace('.', "");
    let body = match exponent {
        0 => mantissa.to_owned(),
        1..=4 if exponent as usize + 1 >= digits => format!("{mantissa}e{exponent}"),
        1..=4 => {
            let (whole, rest) = plain.split_at(exponent as usize + 1);
            format!("{whole}.{rest}")
        }
        -4..=-1 => format!("0.{}{plain}", "0".repeat(-exponent as usize - 1)),
        _ => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{mantissa}e{sign}{:02}", exponent.abs())
        }
    };
    let mark = if matches!(end.mark, b'<' | b'>' | b'~') { char::from(end.mark) } else { ' ' };
    format!("{}{sign}{body}", if mark == ' ' { String::new() } else { mark.to_string() })
}

impl Seg {
    fn is_single(&self) -> bool {
        self.lower.at == self.upper.at && self.lower.mark == self.upper.mark
    }

    fn bytes(&self) -> Vec<u8> {
        let [a, b] = [self.lower.at.to_le_bytes(), self.upper.at.to_le_bytes()];
        let rest = [self.lower.digits, self.upper.digits, self.lower.mark, self.upper.mark];
        [a, b, rest].concat()
    }

    fn read(ty: Oid, bytes: &[u8]) -> Option<Seg> {
        let (numbers, rest) = bytes.split_first_chunk::<8>()?;
        let [l0, l1, l2, l3, u0, u1, u2, u3] = *numbers;
        let [lower_digits, upper_digits, lower_mark, upper_mark] = *rest else { return None };
        let end = |at: [u8; 4], digits, mark| End { at: f32::from_le_bytes(at), digits, mark };
        Some(Seg {
            ty,
            lower: end([l0, l1, l2, l3], lower_digits, lower_mark),
            upper: end([u0, u1, u2, u3], upper_digits, upper_mark),
        })
    }

    fn contains(&self, other: &Seg) -> bool {
        self.lower.at <= other.lower.at && self.upper.at >= other.upper.at
    }

    fn overlaps(&self, other: &Seg) -> bool {
        self.lower.at <= other.upper.at && other.lower.at <= self.upper.at
    }

    fn union(&self, other: &Seg) -> Seg {
        let lower = if self.lower.at < other.lower.at { self.lower } else { other.lower };
        let upper = if self.upper.at > other.upper.at { self.upper } else { other.upper };
        Seg { ty: self.ty, lower, upper }
    }

    fn inter(&self, other: &Seg) -> Seg {
        let upper = if self.upper.at < other.upper.at { self.upper } else { other.upper };
        let lower = if self.lower.at > other.lower.at { self.lower } else { other.lower };
        Seg { ty: self.ty, lower, upper }
    }
}

impl OpenValue for Seg {
    fn ty(&self) -> Oid {
        self.ty
    }

    fn write(&self, _cx: &FormatContext, out: &mut Vec<u8>) -> Result<()> {
        if self.is_single() {
            out.extend_from_slice(shown(self.lower).as_bytes());
            return Ok(());
        }
        if self.lower.mark != OPEN {
            out.extend_from_slice(shown(self.lower).as_bytes());
            out.push(b' ');
        }
        out.extend_from_slice(b"..");
        if self.upper.mark != OPEN {
            out.push(b' ');
            out.extend_from_slice(shown(self.upper).as_bytes());
        }
        Ok(())
    }

    fn store(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes());
    }

    /// By the lower end: its place, what its mark makes of it, less exact ends first; then by the upper end, the
    /// other way round.
    fn key(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&spans::ordered(f64::from(self.lower.at) + 0.0));
        out.push(match self.lower.mark {
            OPEN => 0,
            b'<' => 1,
            b'>' => 3,
            _ => 2,
        });
        out.push(self.lower.digits);
        out.push(u8::from(self.lower.mark != b'~'));
        out.extend_from_slice(&spans::ordered(f64::from(self.upper.at) + 0.0));
        out.push(match self.upper.mark {
            b'<' => 0,
            b'>' => 2,
            OPEN => 3,
            _ => 1,
        });
        out.push(u8::MAX - self.upper.digits);
        out.push(u8::from(self.upper.mark == b'~'));
    }

    fn heap_bytes(&self) -> usize {
        size_of::<Seg>()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

struct SegType;

/// Reads the text form.
struct Reader<'a> {
    rest: &'a str,
    cx: &'a FormatContext,
}

/// Digits from the first that isn't zero on; of a zero, all.
fn digits_of(text: &str) -> usize {
    let rest = text.trim_start_matches(['0', '+', '-']);
    let after = rest.trim_start_matches(['0', '.']);
    let zeros = 1 + rest[..rest.len() - after.len()].matches('0').count();
    let mantissa = after.split(['e', 'E']).next().unwrap_or_default();
    match mantissa.bytes().filter(u8::is_ascii_digit).count() {
        0 => zeros,
        n => n,
    }
}

/// Digits that a number has when it is written with six at most, and without zeros at the end of its fraction.
fn digits_shown(number: f32) -> u8 {
    let text = format!("{number:.5e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let used = mantissa.trim_end_matches('0').bytes().filter(u8::is_ascii_digit).count();
    let whole = exponent.parse::<usize>().map_or(0, |e| e + 1);
    used.max(whole).clamp(1, DIGITS_MAX) as u8
}

impl<'a> Reader<'a> {
    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start();
        self.rest.chars().next()
    }

    fn wrong(&mut self) -> base::Error {
        let detail = match self.peek() {
            None => "syntax error at end of input".to_owned(),
            Some('.') if self.rest.starts_with("..") => "syntax error at or near \"..\"".to_owned(),
            Some(c) => format!("syntax error at or near \"{c}\""),
        };
        err!(SYNTAX_ERROR, "bad seg representation").detail(detail)
    }

    fn number(&mut self) -> Result<End> {
        let mark = match self.peek() {
            Some(c @ ('<' | '>' | '~')) => {
                self.rest = &self.rest[1..];
                c as u8
            }
            _ => 0,
        };
        self.peek();
        let bytes = self.rest.as_bytes();
        let mut at = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
        let digits = |at: &mut usize| {
            let start = *at;
            while bytes.get(*at).is_some_and(u8::is_ascii_digit) {
                *at += 1;
            }
            *at > start
        };
        if !digits(&mut at) {
            return Err(self.wrong());
        }
        let mut after = at + 1;
        if bytes.get(at) == Some(&b'.') && digits(&mut after) {
            at = after;
        }
        if matches!(bytes.get(at), Some(b'e' | b'E')) {
            let mut after = at + 1;
            after += usize::from(matches!(bytes.get(after), Some(b'+' | b'-')));
            if digits(&mut after) {
                at = after;
            }
        }
        let (text, rest) = self.rest.split_at(at);
        self.rest = rest;
        let Datum::Float4(number) = types::io::input(FLOAT4, -1, text, self.cx)? else {
            return Err(self.wrong());
        };
        Ok(End { at: number, digits: digits_of(text).min(DIGITS_MAX) as u8, mark })
    }

    fn word(&mut self, word: &str) -> bool {
        self.peek();
        match self.rest.strip_prefix(word) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn range(&mut self) -> bool {
        self.word("...") || self.word("..")
    }

    fn seg(&mut self, ty: Oid) -> Result<Seg> {
        let open = |at: f32| End { at, digits: 0, mark: OPEN };
        let seg = if self.range() {
            Seg { ty, lower: open(f32::NEG_INFINITY), upper: self.number()? }
        } else {
            let lower = self.number()?;
            if self.word("(+-)") || self.word("'+-'") {
                let by = self.number()?;
                let digits = lower.digits.max(by.digits);
                let end = |at: f32| End { at, digits: digits.max(digits_shown(at)), mark: 0 };
                Seg { ty, lower: end(lower.at - by.at), upper: end(lower.at + by.at) }
            } else if self.range() {
                let upper = match self.peek() {
                    None => open(f32::INFINITY),
                    Some(_) => self.number()?,
                };
                Seg { ty, lower, upper }
            } else {
                Seg { ty, lower, upper: lower }
            }
        };
        if self.peek().is_some() {
            return Err(self.wrong());
        }
        if seg.lower.at > seg.upper.at {
            bail!(
                INVALID_PARAMETER_VALUE,
                "swapped boundaries: {} is greater than {}",
                seg.lower.at,
                seg.upper.at
            );
        }
        Ok(seg)
    }
}

impl OpenType for SegType {
    fn input(&self, ty: Oid, _typmod: i32, text: &str, cx: &FormatContext) -> Result<Datum> {
        Ok(Datum::open(Reader { rest: text, cx }.seg(ty)?))
    }

    fn load(&self, ty: Oid, bytes: &[u8]) -> Option<Datum> {
        Seg::read(ty, bytes).map(Datum::open)
    }
}

fn own(value: &Datum) -> &Seg {
    value.as_open()
}

fn order(args: &[Datum]) -> Ordering {
    own(&args[0]).compare(own(&args[1]))
}

macro_rules! tests { ($($name:literal $a:ident $b:ident $test:expr)*) => {
    vec![$(($name, Body::Scalar(|args, _| {
        let ($a, $b) = (own(&args[0]), own(&args[1]));
        Ok(Datum::Bool($test))
    }))),*]
} }

macro_rules! numbers { ($($name:literal $a:ident $number:expr)*) => {
    [$(($name, Body::Scalar(|args, _| {
        let $a = own(&args[0]);
        Ok(Datum::Float4($number))
    }))),*]
} }

fn bodies() -> Bodies {
    let mut out: Bodies = tests! {
        "seg_contains" a b a.contains(b)
        "seg_contained" a b b.contains(a)
        "seg_overlap" a b a.overlaps(b)
        "seg_left" a b a.upper.at < b.lower.at
        "seg_over_left" a b a.upper.at <= b.upper.at
        "seg_right" a b a.lower.at > b.upper.at
        "seg_over_right" a b a.lower.at >= b.lower.at
        "seg_same" a b a.compare(b).is_eq()
        "seg_different" a b a.compare(b).is_ne()
        "seg_lt" a b a.compare(b).is_lt()
        "seg_le" a b a.compare(b).is_le()
        "seg_gt" a b a.compare(b).is_gt()
        "seg_ge" a b a.compare(b).is_ge()
    };
    out.extend(numbers! {
        "seg_size" a (a.upper.at - a.lower.at).abs()
        "seg_center" a ((f64::from(a.lower.at) + f64::from(a.upper.at)) / 2.0) as f32
        "seg_upper" a a.upper.at
        "seg_lower" a a.lower.at
    });
    out.push(("seg_cmp", Body::Scalar(|a, _| Ok(Datum::Int4(order(a) as i32)))));
    out.push(("seg_union", Body::Scalar(|a, _| Ok(Datum::open(own(&a[0]).union(own(&a[1])))))));
    out.push(("seg_inter", Body::Scalar(|a, _| Ok(Datum::open(own(&a[0]).inter(own(&a[1])))))));
    out
}

/// `gist_seg_ops`: keys are intervals as rows have them.
struct SegOps {
    ty: Oid,
}

/// A key; one that makes no sense is an interval of everything.
fn read_key(ty: Oid, key: &[u8]) -> Seg {
    let end = |at| End { at, digits: 1, mark: 0 };
    let all = Seg { ty, lower: end(f32::NEG_INFINITY), upper: end(f32::INFINITY) };
    Seg::read(ty, key).unwrap_or(all)
}

impl GistClass for SegOps {
    fn key(&self, value: &Datum) -> Result<Vec<u8>> {
        Ok(own(value).bytes())
    }

    fn union(&self, keys: &[&[u8]]) -> Vec<u8> {
        let all = keys.iter().map(|key| read_key(self.ty, key));
        all.reduce(|a, b| a.union(&b)).map(|seg| seg.bytes()).unwrap_or_default()
    }

    fn penalty(&self, cover: &[u8], new: &[u8]) -> f64 {
        let size = |s: &Seg| f64::from(s.upper.at) - f64::from(s.lower.at);
        let cover = read_key(self.ty, cover);
        let grown = size(&cover.union(&read_key(self.ty, new))) - size(&cover);
        if grown.is_nan() { 0.0 } else { grown }
    }

    fn split(&self, keys: &[&[u8]]) -> Vec<bool> {
        let middle = |key: &&[u8]| {
            let seg = read_key(self.ty, key);
            f64::from(seg.lower.at) / 2.0 + f64::from(seg.upper.at) / 2.0
        };
        spans::halves(&keys.iter().map(middle).collect::<Vec<f64>>())
    }

    fn check(&self, strategy: u16, value: &Datum) -> Result<KeyCheck> {
        let (query, ty) = (*own(value), self.ty);
        Ok(Arc::new(move |key, leaf| {
            let key = read_key(ty, key);
            possible(match strategy {
                1 => key.lower.at < query.lower.at,
                2 => key.lower.at <= query.upper.at,
                3 => key.overlaps(&query),
                4 => key.upper.at >= query.lower.at,
                5 => key.upper.at > query.upper.at,
                6 | 7 => key.contains(&query),
                8 if leaf => query.contains(&key),
                8 => key.overlaps(&query),
                _ => return Ternary::Maybe,
            })
        }))
    }
}
