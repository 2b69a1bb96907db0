//! Ranges and multiranges: their text, their normal form, and set arithmetic on them.
//!
//! Ranges of integers and dates are discrete: they are kept as `[a,b)`, so that equal sets are
//! equal values. A bound without a value is infinite and never inclusive. A multirange keeps its
//! ranges sorted, apart from each other, and none of them empty.

use std::cmp::Ordering;
use std::sync::Arc;

use base::{Oid, Result, err};

use crate::datetime;
use crate::datum::{Bound, Datum, Multirange, Range};
use crate::io::{self, FormatContext};
use crate::oids::*;
use crate::order;
use crate::user::{self, UserKind};

/// (range, multirange, subtype) of each built-in range type.
pub const ALL: [(Oid, Oid, Oid); 6] = [
    (INT4RANGE, INT4MULTIRANGE, INT4),
    (INT8RANGE, INT8MULTIRANGE, INT8),
    (NUMRANGE, NUMMULTIRANGE, NUMERIC),
    (TSRANGE, TSMULTIRANGE, TIMESTAMP),
    (TSTZRANGE, TSTZMULTIRANGE, TIMESTAMPTZ),
    (DATERANGE, DATEMULTIRANGE, DATE),
];

fn row(find: impl Fn(&(Oid, Oid, Oid)) -> bool) -> Option<(Oid, Oid, Oid)> {
    ALL.iter().copied().find(|r| find(r))
}

/// The type of a range's bounds; None when it is no range type.
pub fn subtype(range: Oid) -> Option<Oid> {
    if user::is_user(range) {
        return match user::get(range)?.kind {
            UserKind::Range { subtype, .. } => Some(subtype),
            _ => None,
        };
    }
    row(|r| r.0 == range).map(|r| r.2)
}

/// The multirange type over a range type.
pub fn multirange_of(range: Oid) -> Option<Oid> {
    if user::is_user(range) {
        return match user::get(range)?.kind {
            UserKind::Range { multirange, .. } => Some(multirange),
            _ => None,
        };
    }
    row(|r| r.0 == range).map(|r| r.1)
}

/// The range type under a multirange type; None when it is none.
pub fn range_of(multirange: Oid) -> Option<Oid> {
    if user::is_user(multirange) {
        return match user::get(multirange)?.kind {
            UserKind::Multirange { range } => Some(range),
            _ => None,
        };
    }
    row(|r| r.1 == multirange).map(|r| r.0)
}

/// The range type over a subtype.
pub fn over(subtype: Oid) -> Option<Oid> {
    row(|r| r.2 == subtype).map(|r| r.0)
}

impl Bound {
    /// No bound.
    pub fn infinite() -> Bound {
        Bound { value: Datum::Null, inclusive: false }
    }

    /// A bound; NULL is infinity, which is never inclusive.
    pub fn new(value: Datum, inclusive: bool) -> Bound {
        let inclusive = inclusive && !value.is_null();
        Bound { value, inclusive }
    }
}

/// Order of bounds as places on the line; `lower` says which end each one is.
fn compare_bounds(a: &Bound, a_lower: bool, b: &Bound, b_lower: bool) -> Ordering {
    let end = |lower: bool| if lower { Ordering::Less } else { Ordering::Greater };
    match (a.value.is_null(), b.value.is_null()) {
        (true, true) if a_lower == b_lower => return Ordering::Equal,
        (true, _) => return end(a_lower),
        (_, true) => return end(b_lower).reverse(),
        _ => {}
    }
    order::compare(&a.value, &b.value).then_with(|| {
        // How far a bound stands from its value: an open lower one just after, an open upper one
        // just before.
        let place = |bound: &Bound, lower: bool| match (bound.inclusive, lower) {
            (true, _) => 0,
            (false, true) => 1,
            (false, false) => -1,
        };
        place(a, a_lower).cmp(&place(b, b_lower))
    })
}

/// Whether an upper bound and a lower one leave nothing between them, and don't overlap.
fn touches(upper: &Bound, lower: &Bound) -> bool {
    !upper.value.is_null()
        && !lower.value.is_null()
        && order::compare(&upper.value, &lower.value).is_eq()
        && upper.inclusive != lower.inclusive
}

/// The next value of a discrete type.
fn successor(value: &Datum) -> Result<Option<Datum>> {
    Ok(Some(match value {
        Datum::Int4(v) => Datum::Int4(
            v.checked_add(1)
                .ok_or_else(|| err!(NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range"))?,
        ),
        Datum::Int8(v) => Datum::Int8(
            v.checked_add(1)
                .ok_or_else(|| err!(NUMERIC_VALUE_OUT_OF_RANGE, "bigint out of range"))?,
        ),
        Datum::Date(d) if datetime::is_finite_date(*d) => {
            Datum::Date(datetime::check_date(i64::from(*d) + 1)?)
        }
        _ => return Ok(None),
    }))
}

impl Range {
    /// The empty range.
    pub fn empty(ty: Oid) -> Range {
        Range { ty, bounds: None }
    }

    /// A range in normal form.
    ///
    /// # Errors
    /// `22000` when the lower bound is above the upper one; `22003`.
    pub fn new(ty: Oid, lower: Bound, upper: Bound) -> Result<Range> {
        if !lower.value.is_null() && !upper.value.is_null() {
            let order = order::compare(&lower.value, &upper.value);
            if order.is_gt() {
                return Err(err!(
                    DATA_EXCEPTION,
                    "range lower bound must be less than or equal to range upper bound"
                ));
            }
            if order.is_eq() && !(lower.inclusive && upper.inclusive) {
                return Ok(Range::empty(ty));
            }
        }
        let (mut lower, mut upper) = (lower, upper);
        if matches!(ty, INT4RANGE | INT8RANGE | DATERANGE) {
            if !lower.value.is_null()
                && !lower.inclusive
                && let Some(next) = successor(&lower.value)?
            {
                lower = Bound::new(next, true);
            }
            if !upper.value.is_null()
                && upper.inclusive
                && let Some(next) = successor(&upper.value)?
            {
                upper = Bound::new(next, false);
            }
            if !lower.value.is_null()
                && !upper.value.is_null()
                && order::compare(&lower.value, &upper.value).is_ge()
                && !(lower.inclusive && upper.inclusive)
            {
                return Ok(Range::empty(ty));
            }
        }
        Ok(Range { ty, bounds: Some((lower, upper)) })
    }

    /// From bounds that are known to be in order and normal.
    fn of(ty: Oid, lower: &Bound, upper: &Bound) -> Range {
        Range { ty, bounds: Some((lower.clone(), upper.clone())) }
    }

    /// Whether it has no values.
    pub fn is_empty(&self) -> bool {
        self.bounds.is_none()
    }

    /// Bytes held beyond the struct.
    pub fn heap_bytes(&self) -> usize {
        let each = |b: &Bound| b.value.heap_bytes();
        self.bounds.as_ref().map_or(0, |(l, u)| each(l) + each(u))
    }

    /// B-tree order: the empty range first, then by lower and upper bound.
    pub fn compare(&self, other: &Range) -> Ordering {
        match (&self.bounds, &other.bounds) {
            (None, None) => Ordering::Equal,
            (None, _) => Ordering::Less,
            (_, None) => Ordering::Greater,
            (Some((l, u)), Some((m, v))) => {
                compare_bounds(l, true, m, true).then_with(|| compare_bounds(u, false, v, false))
            }
        }
    }

    /// Whether a value lies in it.
    pub fn contains_value(&self, value: &Datum) -> bool {
        let point = Bound::new(value.clone(), true);
        self.bounds.as_ref().is_some_and(|(l, u)| {
            compare_bounds(l, true, &point, true).is_le()
                && compare_bounds(&point, false, u, false).is_le()
        })
    }

    /// `@>`.
    pub fn contains(&self, other: &Range) -> bool {
        match (&self.bounds, &other.bounds) {
            (_, None) => true,
            (None, _) => false,
            (Some((l, u)), Some((m, v))) => {
                compare_bounds(l, true, m, true).is_le()
                    && compare_bounds(u, false, v, false).is_ge()
            }
        }
    }

    /// `<<`.
    pub fn before(&self, other: &Range) -> bool {
        matches!((&self.bounds, &other.bounds), (Some((_, u)), Some((l, _)))
            if compare_bounds(u, false, l, true).is_lt())
    }

    /// `&&`.
    pub fn overlaps(&self, other: &Range) -> bool {
        !self.is_empty() && !other.is_empty() && !self.before(other) && !other.before(self)
    }

    /// `-|-`.
    pub fn adjacent(&self, other: &Range) -> bool {
        matches!((&self.bounds, &other.bounds), (Some((l, u)), Some((m, v)))
            if touches(u, m) || touches(v, l))
    }

    /// `&<`: doesn't reach beyond the other's upper bound.
    pub fn over_left(&self, other: &Range) -> bool {
        matches!((&self.bounds, &other.bounds), (Some((_, u)), Some((_, v)))
            if compare_bounds(u, false, v, false).is_le())
    }

    /// `&>`: doesn't reach below the other's lower bound.
    pub fn over_right(&self, other: &Range) -> bool {
        matches!((&self.bounds, &other.bounds), (Some((l, _)), Some((m, _)))
            if compare_bounds(l, true, m, true).is_ge())
    }

    /// The smallest range with both.
    pub fn merge(&self, other: &Range) -> Range {
        let (Some((l, u)), Some((m, v))) = (&self.bounds, &other.bounds) else {
            return if self.is_empty() { other.clone() } else { self.clone() };
        };
        let lower = if compare_bounds(l, true, m, true).is_le() { l } else { m };
        let upper = if compare_bounds(u, false, v, false).is_ge() { u } else { v };
        Range::of(self.ty, lower, upper)
    }

    /// `+`.
    ///
    /// # Errors
    /// `22000` when there is a gap between them.
    pub fn union(&self, other: &Range) -> Result<Range> {
        if !self.is_empty() && !other.is_empty() && !self.overlaps(other) && !self.adjacent(other) {
            return Err(err!(DATA_EXCEPTION, "result of range union would not be contiguous"));
        }
        Ok(self.merge(other))
    }

    /// `*`.
    pub fn intersect(&self, other: &Range) -> Range {
        if !self.overlaps(other) {
            return Range::empty(self.ty);
        }
        let (Some((l, u)), Some((m, v))) = (&self.bounds, &other.bounds) else {
            return Range::empty(self.ty);
        };
        let lower = if compare_bounds(l, true, m, true).is_ge() { l } else { m };
        let upper = if compare_bounds(u, false, v, false).is_le() { u } else { v };
        Range::of(self.ty, lower, upper)
    }

    /// The rest of it without the other: none, one or two ranges.
    fn without(&self, other: &Range) -> Vec<Range> {
        let (Some((l, u)), Some((m, v))) = (&self.bounds, &other.bounds) else {
            return if self.is_empty() { Vec::new() } else { vec![self.clone()] };
        };
        if !self.overlaps(other) {
            return vec![self.clone()];
        }
        let mut out = Vec::new();
        if compare_bounds(l, true, m, true).is_lt() {
            let end = Bound { value: m.value.clone(), inclusive: !m.inclusive };
            out.push(Range::of(self.ty, l, &end));
        }
        if compare_bounds(u, false, v, false).is_gt() {
            let start = Bound { value: v.value.clone(), inclusive: !v.inclusive };
            out.push(Range::of(self.ty, &start, u));
        }
        out
    }

    /// `-`.
    ///
    /// # Errors
    /// `22000` when it would fall into two pieces.
    pub fn minus(&self, other: &Range) -> Result<Range> {
        let mut rest = self.without(other);
        match rest.len() {
            0 => Ok(Range::empty(self.ty)),
            1 => Ok(rest.remove(0)),
            _ => Err(err!(DATA_EXCEPTION, "result of range difference would not be contiguous")),
        }
    }

    /// Appends its text.
    ///
    /// # Errors
    /// Those of the bounds' output.
    pub fn write(&self, cx: &FormatContext, out: &mut Vec<u8>) -> Result<()> {
        let Some((lower, upper)) = &self.bounds else {
            out.extend_from_slice(b"empty");
            return Ok(());
        };
        let ty = subtype(self.ty).unwrap_or(TEXT);
        out.push(if lower.inclusive { b'[' } else { b'(' });
        write_bound(ty, lower, cx, out)?;
        out.push(b',');
        write_bound(ty, upper, cx, out)?;
        out.push(if upper.inclusive { b']' } else { b')' });
        Ok(())
    }
}

fn write_bound(ty: Oid, bound: &Bound, cx: &FormatContext, out: &mut Vec<u8>) -> Result<()> {
    if bound.value.is_null() {
        return Ok(());
    }
    let start = out.len();
    io::output(ty, &bound.value, cx, out)?;
    let special = |b: &u8| {
        matches!(b, b'"' | b'\\' | b'(' | b')' | b'[' | b']' | b',' | b' ' | b'\t'..=b'\r')
    };
    if out.len() == start || out[start..].iter().any(special) {
        let word = out.split_off(start);
        out.push(b'"');
        for b in word {
            if matches!(b, b'"' | b'\\') {
                out.push(b);
            }
            out.push(b);
        }
        out.push(b'"');
    }
    Ok(())
}

#[cold]
fn malformed(what: &str, text: &str, detail: &str) -> base::Error {
    err!(INVALID_TEXT_REPRESENTATION, "malformed {what} literal: \"{text}\"").detail(detail)
}

/// Reads a range's text.
///
/// # Errors
/// `22P02` and those of the bounds' input.
pub fn parse(ty: Oid, typmod: i32, text: &str, cx: &FormatContext) -> Result<Range> {
    let mut at = 0;
    let range = parse_at(ty, typmod, text, &mut at, cx)?;
    if !text[at..].trim().is_empty() {
        let detail = if range.is_empty() {
            "Junk after \"empty\" key word."
        } else {
            "Junk after right parenthesis or bracket."
        };
        return Err(malformed("range", text, detail));
    }
    Ok(range)
}

fn skip_blanks(text: &str, at: &mut usize) {
    let rest = &text[*at..];
    *at += rest.len() - rest.trim_start().len();
}

fn parse_at(ty: Oid, typmod: i32, text: &str, at: &mut usize, cx: &FormatContext) -> Result<Range> {
    let fail = |detail: &str| malformed("range", text, detail);
    skip_blanks(text, at);
    let rest = &text[*at..];
    if rest.get(..5).is_some_and(|w| w.eq_ignore_ascii_case("empty")) {
        *at += 5;
        return Ok(Range::empty(ty));
    }
    let lower_inclusive = match rest.as_bytes().first() {
        Some(b'[') => true,
        Some(b'(') => false,
        _ => return Err(fail("Missing left parenthesis or bracket.")),
    };
    *at += 1;
    let lower = bound_text(text, at)?;
    if text.as_bytes().get(*at) != Some(&b',') {
        return Err(fail("Missing comma after lower bound."));
    }
    *at += 1;
    let upper = bound_text(text, at)?;
    let upper_inclusive = match text.as_bytes().get(*at) {
        Some(b']') => true,
        Some(b')') => false,
        _ => return Err(fail("Too many commas.")),
    };
    *at += 1;
    let element = subtype(ty).unwrap_or(TEXT);
    let read = |word: Option<String>| match word {
        None => Ok(Datum::Null),
        Some(word) => io::input(element, typmod, &word, cx),
    };
    Range::new(
        ty,
        Bound::new(read(lower)?, lower_inclusive),
        Bound::new(read(upper)?, upper_inclusive),
    )
}

/// A bound's word, up to the comma or bracket; None when there is nothing.
fn bound_text(text: &str, at: &mut usize) -> Result<Option<String>> {
    let bytes = text.as_bytes();
    if matches!(bytes.get(*at), Some(b',' | b')' | b']')) {
        return Ok(None);
    }
    let mut word = Vec::new();
    let mut quoted = false;
    loop {
        let end = || malformed("range", text, "Unexpected end of input.");
        let b = *bytes.get(*at).ok_or_else(end)?;
        match b {
            b',' | b'(' | b')' | b'[' | b']' if !quoted => break,
            b'\\' => {
                *at += 1;
                word.push(*bytes.get(*at).ok_or_else(end)?);
            }
            b'"' if quoted && bytes.get(*at + 1) == Some(&b'"') => {
                *at += 1;
                word.push(b'"');
            }
            b'"' => quoted = !quoted,
            b => word.push(b),
        }
        *at += 1;
    }
    Ok(Some(String::from_utf8_lossy(&word).into_owned()))
}

impl Multirange {
    /// A multirange of any ranges: sorted, joined where they overlap or touch.
    pub fn new(ty: Oid, mut ranges: Vec<Range>) -> Multirange {
        ranges.retain(|r| !r.is_empty());
        ranges.sort_by(Range::compare);
        let mut kept: Vec<Range> = Vec::with_capacity(ranges.len());
        for range in ranges {
            match kept.last_mut() {
                Some(last) if last.overlaps(&range) || last.adjacent(&range) => {
                    *last = last.merge(&range);
                }
                _ => kept.push(range),
            }
        }
        Multirange { ty, ranges: kept }
    }

    /// B-tree order.
    pub fn compare(&self, other: &Multirange) -> Ordering {
        let pairs = self.ranges.iter().zip(&other.ranges);
        pairs
            .map(|(a, b)| a.compare(b))
            .find(|o| o.is_ne())
            .unwrap_or_else(|| self.ranges.len().cmp(&other.ranges.len()))
    }

    /// The smallest range with all of it.
    pub fn span(&self) -> Range {
        match (self.ranges.first(), self.ranges.last()) {
            (Some(first), Some(last)) => first.merge(last),
            _ => Range::empty(range_of(self.ty).unwrap_or(self.ty)),
        }
    }

    /// Whether a value lies in it.
    pub fn contains_value(&self, value: &Datum) -> bool {
        self.ranges.iter().any(|r| r.contains_value(value))
    }

    /// `@>` of a range.
    pub fn contains(&self, other: &Range) -> bool {
        other.is_empty() || self.ranges.iter().any(|r| r.contains(other))
    }

    /// `&&` with a range.
    pub fn overlaps(&self, other: &Range) -> bool {
        self.ranges.iter().any(|r| r.overlaps(other))
    }

    /// `*`.
    pub fn intersect(&self, other: &Multirange) -> Multirange {
        let mut out = Vec::new();
        let (mut i, mut j) = (0, 0);
        while let (Some(a), Some(b)) = (self.ranges.get(i), other.ranges.get(j)) {
            let both = a.intersect(b);
            if !both.is_empty() {
                out.push(both);
            }
            match (&a.bounds, &b.bounds) {
                (Some((_, u)), Some((_, v))) if compare_bounds(u, false, v, false).is_le() => {
                    i += 1
                }
                _ => j += 1,
            }
        }
        Multirange::new(self.ty, out)
    }

    /// `-`.
    pub fn minus(&self, other: &Multirange) -> Multirange {
        let mut rest = self.ranges.clone();
        for gone in &other.ranges {
            rest = rest.iter().flat_map(|r| r.without(gone)).collect();
        }
        Multirange::new(self.ty, rest)
    }

    /// Appends its text.
    ///
    /// # Errors
    /// As [`Range::write`].
    pub fn write(&self, cx: &FormatContext, out: &mut Vec<u8>) -> Result<()> {
        out.push(b'{');
        for (i, range) in self.ranges.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            range.write(cx, out)?;
        }
        out.push(b'}');
        Ok(())
    }
}

/// Reads a multirange's text.
///
/// # Errors
/// As [`parse`].
pub fn parse_multirange(
    ty: Oid,
    typmod: i32,
    text: &str,
    cx: &FormatContext,
) -> Result<Multirange> {
    let fail = |detail: &str| malformed("multirange", text, detail);
    let range_type = range_of(ty).unwrap_or(ty);
    let mut at = 0;
    skip_blanks(text, &mut at);
    if !text[at..].starts_with('{') {
        return Err(fail("Missing left brace."));
    }
    at += 1;
    let mut ranges = Vec::new();
    skip_blanks(text, &mut at);
    if text[at..].starts_with('}') {
        at += 1;
    } else {
        loop {
            skip_blanks(text, &mut at);
            let rest = &text[at..];
            let empty = rest.get(..5).is_some_and(|w| w.eq_ignore_ascii_case("empty"));
            match rest.as_bytes().first() {
                None => return Err(fail("Unexpected end of input.")),
                Some(b'[' | b'(') => {}
                Some(_) if empty => {}
                Some(_) => return Err(fail("Expected range start.")),
            }
            let start = at;
            // A range's own errors name its text only.
            let end = range_end(text, start).ok_or_else(|| fail("Unexpected end of input."))?;
            let part = &text[start..end];
            let mut inner = 0;
            ranges.push(parse_at(range_type, typmod, part, &mut inner, cx)?);
            at = end;
            skip_blanks(text, &mut at);
            match text.as_bytes().get(at) {
                None => return Err(fail("Unexpected end of input.")),
                Some(b',') => at += 1,
                Some(b'}') => {
                    at += 1;
                    break;
                }
                Some(_) => return Err(fail("Expected comma or end of multirange.")),
            }
        }
    }
    if !text[at..].trim().is_empty() {
        return Err(fail("Junk after closing right brace."));
    }
    Ok(Multirange::new(ty, ranges))
}

/// Where the range that starts here ends.
fn range_end(text: &str, start: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    if !matches!(bytes[start], b'[' | b'(') {
        return Some(start + 5);
    }
    let (mut at, mut quoted) = (start + 1, false);
    loop {
        match bytes.get(at)? {
            b'\\' => at += 1,
            b'"' => quoted = !quoted,
            b')' | b']' if !quoted => return Some(at + 1),
            _ => {}
        }
        at += 1;
    }
}

impl From<Range> for Datum {
    fn from(r: Range) -> Datum {
        Datum::Range(Arc::new(r))
    }
}

impl From<Multirange> for Datum {
    fn from(m: Multirange) -> Datum {
        Datum::Multirange(Arc::new(m))
    }
}

/// Order-preserving bytes; `value` appends those of a bound's value.
pub(crate) fn key(range: &Range, value: fn(&Datum, &mut Vec<u8>), out: &mut Vec<u8>) {
    let Some((lower, upper)) = &range.bounds else {
        out.push(0);
        return;
    };
    out.push(1);
    for (bound, is_lower) in [(lower, true), (upper, false)] {
        if bound.value.is_null() {
            out.push(if is_lower { 0 } else { 2 });
            continue;
        }
        out.push(1);
        value(&bound.value, out);
        out.push(match (bound.inclusive, is_lower) {
            (true, _) => 1,
            (false, true) => 2,
            (false, false) => 0,
        });
    }
}
