//! Functions, operators and aggregates of ranges and multiranges.

use base::{Result, err};

use super::aggregate::{as_any, same};
use super::{Accumulator, Body, CallTypes, NamedBody, S};
use crate::bulk;
use crate::datum::{Bound, Datum, Multirange, Range};
use crate::range;

/// `int4range(1, 5)`, `int4range(1, 5, '[]')`.
fn construct(a: &[Datum], types: CallTypes<'_>) -> Result<Datum> {
    let ty = types.result;
    let flags = match a.get(2) {
        None => "[)",
        Some(Datum::Null) => {
            return Err(err!(DATA_EXCEPTION, "range constructor flags argument must not be null"));
        }
        Some(flags) => flags.as_str(),
    };
    if !matches!(flags, "[)" | "[]" | "(]" | "()") {
        return Err(err!(SYNTAX_ERROR, "invalid range bound flags")
            .hint("Valid values are \"[]\", \"[)\", \"(]\", and \"()\"."));
    }
    let lower = Bound::new(a[0].clone(), flags.starts_with('['));
    let upper = Bound::new(a[1].clone(), flags.ends_with(']'));
    Range::new(ty, lower, upper).map(Into::into)
}

/// Several ranges, or an array of them, as a multirange.
fn construct_multirange(a: &[Datum], types: CallTypes<'_>) -> Result<Datum> {
    let mut ranges = Vec::with_capacity(a.len());
    for value in a {
        match value {
            Datum::Range(r) => ranges.push((**r).clone()),
            Datum::Array(items) => {
                if items.dims.len() > 1 {
                    return Err(err!(
                        CARDINALITY_VIOLATION,
                        "multiranges cannot be constructed from multidimensional arrays"
                    ));
                }
                for item in &items.items {
                    match item {
                        Datum::Range(r) => ranges.push((**r).clone()),
                        _ => return Err(null_member()),
                    }
                }
            }
            _ => return Err(null_member()),
        }
    }
    let ty = match ranges.first() {
        Some(r) => range::multirange_of(r.ty).unwrap_or(types.result),
        None => types.result,
    };
    Ok(Multirange::new(ty, ranges).into())
}

#[cold]
fn null_member() -> base::Error {
    err!(NULL_VALUE_NOT_ALLOWED, "multirange values cannot contain null members")
}

/// The ranges of either.
fn ranges(d: &Datum) -> &[Range] {
    match d {
        Datum::Range(r) if r.is_empty() => &[],
        Datum::Range(r) => std::slice::from_ref(r),
        other => &other.as_multirange().ranges,
    }
}

/// The smallest range with all of it.
fn span(d: &Datum) -> Range {
    match d {
        Datum::Range(r) => (**r).clone(),
        other => other.as_multirange().span(),
    }
}

fn bound(d: &Datum, lower: bool) -> Option<Bound> {
    let (l, u) = span(d).bounds?;
    Some(if lower { l } else { u })
}

fn contains(a: &Datum, b: &Datum) -> bool {
    let (outer, inner) = (ranges(a), ranges(b));
    inner.iter().all(|i| outer.iter().any(|o| o.contains(i)))
}

fn overlaps(a: &Datum, b: &Datum) -> bool {
    ranges(a).iter().any(|x| ranges(b).iter().any(|y| x.overlaps(y)))
}

fn before(a: &Datum, b: &Datum) -> bool {
    span(a).before(&span(b))
}

/// Whether they touch from outside: the end of one and the start of the other.
fn adjacent(a: &Datum, b: &Datum) -> bool {
    let (x, y) = (ranges(a), ranges(b));
    let touch = |l: Option<&Range>, r: Option<&Range>| match (l, r) {
        (Some(l), Some(r)) => l.before(r) && l.adjacent(r),
        _ => false,
    };
    touch(x.last(), y.first()) || touch(y.last(), x.first())
}

fn contains_value(a: &Datum, value: &Datum) -> bool {
    ranges(a).iter().any(|r| r.contains_value(value))
}

fn two(a: &[Datum], f: fn(&Range, &Range) -> Result<Range>) -> Result<Datum> {
    f(a[0].as_range(), a[1].as_range()).map(Into::into)
}

fn union(a: &Multirange, b: &Multirange) -> Multirange {
    Multirange::new(a.ty, [a.ranges.as_slice(), b.ranges.as_slice()].concat())
}

/// The number of values between, for statistics.
fn distance(a: &Datum, b: &Datum) -> Datum {
    let seconds = |t: i64| t as f64 / 1e6;
    Datum::Float8(match (a, b) {
        // A difference that no numeric can hold is infinitely far.
        (Datum::Numeric(x), Datum::Numeric(y)) => match x.sub(y) {
            Ok(difference) => difference.to_f64(),
            Err(_) if x.compare(y).is_lt() => f64::NEG_INFINITY,
            Err(_) => f64::INFINITY,
        },
        (Datum::Date(x), Datum::Date(y)) => f64::from(*x) - f64::from(*y),
        (Datum::Timestamp(x), Datum::Timestamp(y))
        | (Datum::Timestamptz(x), Datum::Timestamptz(y)) => seconds(*x) - seconds(*y),
        (x, y) => x.to_i64().unwrap_or(0) as f64 - y.to_i64().unwrap_or(0) as f64,
    })
}

/// The bodies of this family.
pub(super) fn bodies() -> Vec<NamedBody> {
    let mut all = parts();
    all.extend(relations());
    all.extend(sets());
    all
}

fn parts() -> Vec<NamedBody> {
    const LOWER: Body = S(|a, _| Ok(bound(&a[0], true).map_or(Datum::Null, |b| b.value)));
    const UPPER: Body = S(|a, _| Ok(bound(&a[0], false).map_or(Datum::Null, |b| b.value)));
    const LOWER_INC: Body = S(|a, _| Ok(bound(&a[0], true).is_some_and(|b| b.inclusive).into()));
    const UPPER_INC: Body = S(|a, _| Ok(bound(&a[0], false).is_some_and(|b| b.inclusive).into()));
    const LOWER_INF: Body =
        S(|a, _| Ok(bound(&a[0], true).is_some_and(|b| b.value.is_null()).into()));
    const UPPER_INF: Body =
        S(|a, _| Ok(bound(&a[0], false).is_some_and(|b| b.value.is_null()).into()));
    const EMPTY: Body = S(|a, _| Ok(ranges(&a[0]).is_empty().into()));
    vec![
        ("range_constructor2", Body::Typed(|a, t, _| construct(a, t))),
        ("range_constructor3", Body::Typed(|a, t, _| construct(a, t))),
        ("multirange_constructor0", Body::Typed(|a, t, _| construct_multirange(a, t))),
        ("multirange_constructor1", Body::Typed(|a, t, _| construct_multirange(a, t))),
        ("multirange_constructor2", Body::Typed(|a, t, _| construct_multirange(a, t))),
        ("range_lower", LOWER),
        ("range_upper", UPPER),
        ("range_lower_inc", LOWER_INC),
        ("range_upper_inc", UPPER_INC),
        ("range_lower_inf", LOWER_INF),
        ("range_upper_inf", UPPER_INF),
        ("range_empty", EMPTY),
        ("multirange_lower", LOWER),
        ("multirange_upper", UPPER),
        ("multirange_lower_inc", LOWER_INC),
        ("multirange_upper_inc", UPPER_INC),
        ("multirange_lower_inf", LOWER_INF),
        ("multirange_upper_inf", UPPER_INF),
        ("multirange_empty", EMPTY),
        (
            "multirange_unnest",
            Body::Set(|a, _| Ok(ranges(&a[0]).iter().cloned().map(Into::into).collect())),
        ),
        ("int4range_canonical", S(|a, _| Ok(a[0].clone()))),
        ("int8range_canonical", S(|a, _| Ok(a[0].clone()))),
        ("daterange_canonical", S(|a, _| Ok(a[0].clone()))),
        ("int4range_subdiff", S(|a, _| Ok(distance(&a[0], &a[1])))),
        ("int8range_subdiff", S(|a, _| Ok(distance(&a[0], &a[1])))),
        ("numrange_subdiff", S(|a, _| Ok(distance(&a[0], &a[1])))),
        ("daterange_subdiff", S(|a, _| Ok(distance(&a[0], &a[1])))),
        ("tsrange_subdiff", S(|a, _| Ok(distance(&a[0], &a[1])))),
        ("tstzrange_subdiff", S(|a, _| Ok(distance(&a[0], &a[1])))),
    ]
}

fn relations() -> Vec<NamedBody> {
    const CONTAINS: Body = S(|a, _| Ok(contains(&a[0], &a[1]).into()));
    const CONTAINED: Body = S(|a, _| Ok(contains(&a[1], &a[0]).into()));
    const OVERLAPS: Body = S(|a, _| Ok(overlaps(&a[0], &a[1]).into()));
    const BEFORE: Body = S(|a, _| Ok(before(&a[0], &a[1]).into()));
    const AFTER: Body = S(|a, _| Ok(before(&a[1], &a[0]).into()));
    const OVER_LEFT: Body = S(|a, _| Ok(span(&a[0]).over_left(&span(&a[1])).into()));
    const OVER_RIGHT: Body = S(|a, _| Ok(span(&a[0]).over_right(&span(&a[1])).into()));
    const ADJACENT: Body = S(|a, _| Ok(adjacent(&a[0], &a[1]).into()));
    const HAS: Body = S(|a, _| Ok(contains_value(&a[0], &a[1]).into()));
    const IN: Body = S(|a, _| Ok(contains_value(&a[1], &a[0]).into()));
    vec![
        ("range_contains", CONTAINS),
        ("range_contained_by", CONTAINED),
        ("range_overlaps", OVERLAPS),
        ("range_before", BEFORE),
        ("range_after", AFTER),
        ("range_overleft", OVER_LEFT),
        ("range_overright", OVER_RIGHT),
        ("range_adjacent", ADJACENT),
        ("range_contains_elem", HAS),
        ("elem_contained_by_range", IN),
        ("range_contains_multirange", CONTAINS),
        ("range_contained_by_multirange", CONTAINED),
        ("range_overlaps_multirange", OVERLAPS),
        ("range_before_multirange", BEFORE),
        ("range_after_multirange", AFTER),
        ("range_overleft_multirange", OVER_LEFT),
        ("range_overright_multirange", OVER_RIGHT),
        ("range_adjacent_multirange", ADJACENT),
        ("multirange_contains_elem", HAS),
        ("elem_contained_by_multirange", IN),
        ("multirange_contains_range", CONTAINS),
        ("multirange_contains_multirange", CONTAINS),
        ("multirange_contained_by_range", CONTAINED),
        ("multirange_contained_by_multirange", CONTAINED),
        ("multirange_overlaps_range", OVERLAPS),
        ("multirange_overlaps_multirange", OVERLAPS),
        ("multirange_before_range", BEFORE),
        ("multirange_before_multirange", BEFORE),
        ("multirange_after_range", AFTER),
        ("multirange_after_multirange", AFTER),
        ("multirange_overleft_range", OVER_LEFT),
        ("multirange_overleft_multirange", OVER_LEFT),
        ("multirange_overright_range", OVER_RIGHT),
        ("multirange_overright_multirange", OVER_RIGHT),
        ("multirange_adjacent_range", ADJACENT),
        ("multirange_adjacent_multirange", ADJACENT),
    ]
}

fn sets() -> Vec<NamedBody> {
    vec![
        ("range_union", S(|a, _| two(a, Range::union))),
        ("range_minus", S(|a, _| two(a, Range::minus))),
        ("range_intersect", S(|a, _| two(a, |x, y| Ok(x.intersect(y))))),
        ("range_merge", S(|a, _| two(a, |x, y| Ok(x.merge(y))))),
        ("range_intersect_agg_transfn", S(|a, _| two(a, |x, y| Ok(x.intersect(y))))),
        ("range_merge_from_multirange", S(|a, _| Ok(a[0].as_multirange().span().into()))),
        (
            "multirange_union",
            S(|a, _| Ok(union(a[0].as_multirange(), a[1].as_multirange()).into())),
        ),
        ("multirange_minus", S(|a, _| Ok(a[0].as_multirange().minus(a[1].as_multirange()).into()))),
        (
            "multirange_intersect",
            S(|a, _| Ok(a[0].as_multirange().intersect(a[1].as_multirange()).into())),
        ),
        (
            "multirange_intersect_agg_transfn",
            S(|a, _| Ok(a[0].as_multirange().intersect(a[1].as_multirange()).into())),
        ),
    ]
}

/// `range_agg`: all ranges that came, joined at the end.
#[derive(Default)]
pub(super) struct RangeAgg {
    ranges: Vec<Range>,
    ty: Option<base::Oid>,
}

impl Accumulator for RangeAgg {
    fn add(&mut self, args: &[Datum]) -> Result<()> {
        self.ty = match &args[0] {
            Datum::Range(r) => range::multirange_of(r.ty),
            other => Some(other.as_multirange().ty),
        };
        self.ranges.extend_from_slice(ranges(&args[0]));
        Ok(())
    }
    fn merge(&mut self, other: Box<dyn Accumulator>) -> Result<()> {
        let mut other = same::<RangeAgg>(other)?;
        self.ranges.append(&mut other.ranges);
        self.ty = self.ty.or(other.ty);
        Ok(())
    }
    fn finish(&self) -> Result<Datum> {
        Ok(match self.ty {
            Some(ty) => Multirange::new(ty, bulk::copied(&self.ranges)?).into(),
            None => Datum::Null,
        })
    }
    fn memory(&self) -> usize {
        self.ranges.capacity() * size_of::<Range>()
    }
    as_any!();
}

/// `range_intersect_agg`.
#[derive(Default)]
pub(super) struct IntersectAgg(Option<Datum>);

impl Accumulator for IntersectAgg {
    fn add(&mut self, args: &[Datum]) -> Result<()> {
        self.0 = Some(match (self.0.take(), &args[0]) {
            (None, first) => first.clone(),
            (Some(Datum::Range(x)), Datum::Range(y)) => x.intersect(y).into(),
            (Some(x), y) => x.as_multirange().intersect(y.as_multirange()).into(),
        });
        Ok(())
    }
    fn merge(&mut self, other: Box<dyn Accumulator>) -> Result<()> {
        same::<IntersectAgg>(other)?.0.map_or(Ok(()), |value| self.add(&[value]))
    }
    fn finish(&self) -> Result<Datum> {
        Ok(self.0.clone().unwrap_or_default())
    }
    as_any!();
}
