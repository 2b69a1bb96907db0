//! Keys that are intervals of bytes: from the least to the greatest of what they cover.
//!
//! ```text
//!  | flags | length of the lower end (2 bytes) | lower end | upper end |
//! ```
//!
//! Ends are keys of a B-tree's kind, whose order is the values'. A long end is cut: a lower one to a beginning, an
//! upper one to what lies above all that begin so. So an interval may be too wide, never too narrow.

use std::sync::Arc;

use base::ternary::Ternary;
use base::{Error, Oid, Result};

use super::{GistClass, KeyCheck, KeyDistance, possible};
use crate::datum::{Bound, Datum, Inet, Range};
use crate::key::{self, KeyOrder};
use crate::oids;

/// Flag: empty ranges are below.
const EMPTY: u8 = 1;
/// Flag: there is an interval.
const VALUES: u8 = 2;
/// The longest end.
const END_MAX: usize = 240;

/// A key, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval<'k> {
    flags: u8,
    lower: &'k [u8],
    upper: &'k [u8],
}

/// A lower end, cut.
fn lower_end(mut end: Vec<u8>) -> Vec<u8> {
    end.truncate(END_MAX);
    end
}

/// An upper end, cut.
fn upper_end(mut end: Vec<u8>) -> Vec<u8> {
    if end.len() <= END_MAX {
        return end;
    }
    end.truncate(END_MAX);
    while let Some(last) = end.last_mut() {
        if *last < u8::MAX {
            *last += 1;
            return end;
        }
        end.pop();
    }
    vec![u8::MAX; END_MAX]
}

fn put(flags: u8, lower: &[u8], upper: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(3 + lower.len() + upper.len());
    out.push(flags);
    out.extend_from_slice(&(lower.len() as u16).to_le_bytes());
    out.extend_from_slice(lower);
    out.extend_from_slice(upper);
    out
}

/// The key from one end to another.
pub fn key_of(lower: Vec<u8>, upper: Vec<u8>) -> Vec<u8> {
    put(VALUES, &lower_end(lower), &upper_end(upper))
}

/// The key of nothing but empty ranges.
fn empty_key() -> Vec<u8> {
    put(EMPTY, &[], &[])
}

/// Reads a key; one that makes no sense covers everything.
pub fn read(key: &[u8]) -> Interval<'_> {
    const ALL: Interval<'static> =
        Interval { flags: EMPTY | VALUES, lower: &[], upper: &[u8::MAX; END_MAX] };
    let [flags, a, b, rest @ ..] = key else { return ALL };
    match rest.split_at_checked(usize::from(u16::from_le_bytes([*a, *b]))) {
        Some((lower, upper)) => Interval { flags: *flags, lower, upper },
        None => ALL,
    }
}

impl<'k> Interval<'k> {
    /// Its ends; None: it has only empty ranges.
    pub fn ends(self) -> Option<(&'k [u8], &'k [u8])> {
        (self.flags & VALUES != 0).then_some((self.lower, self.upper))
    }

    fn has_empty(self) -> bool {
        self.flags & EMPTY != 0
    }

    fn overlaps(self, lower: &[u8], upper: &[u8]) -> bool {
        self.ends().is_some_and(|(from, to)| from <= upper && lower <= to)
    }

    fn contains(self, lower: &[u8], upper: &[u8]) -> bool {
        self.ends().is_some_and(|(from, to)| from <= lower && upper <= to)
    }

    fn within(self, lower: &[u8], upper: &[u8]) -> bool {
        self.ends().is_some_and(|(from, to)| lower <= from && to <= upper)
    }
}

/// The interval that covers these.
pub fn union(keys: &[&[u8]]) -> Vec<u8> {
    let mut flags = 0;
    let mut ends: Option<(&[u8], &[u8])> = None;
    for key in keys {
        let one = read(key);
        flags |= one.flags;
        if let Some((lower, upper)) = one.ends() {
            ends = Some(match ends {
                None => (lower, upper),
                Some((from, to)) => (from.min(lower), to.max(upper)),
            });
        }
    }
    let (lower, upper) = ends.unwrap_or_default();
    put(flags, lower, upper)
}

/// The place of bytes between 0 and 1, behind what they have in common with others, as long as that is not too far
/// down for a float.
fn fraction(bytes: &[u8], common: usize) -> f64 {
    let mut word = [0; 8];
    let rest = bytes.get(common..).unwrap_or_default();
    let len = rest.len().min(8);
    word[..len].copy_from_slice(&rest[..len]);
    u64::from_be_bytes(word) as f64 * (-8.0 * (common.min(100) as f64 + 8.0)).exp2()
}

/// How much longer an interval becomes.
pub fn penalty(cover: &[u8], new: &[u8]) -> f64 {
    let (cover, new) = (read(cover), read(new));
    // A page of empty ranges, or of others, had better stay one.
    let flags = f64::from((new.flags & !cover.flags).count_ones());
    let (Some((from, to)), Some((lower, upper))) = (cover.ends(), new.ends()) else {
        return flags;
    };
    let (least, most) = (from.min(lower), to.max(upper));
    let common = least.iter().zip(most).take_while(|(a, b)| a == b).count();
    let at = |end: &[u8]| fraction(end, common);
    flags + (at(from) - at(least)) + (at(most) - at(to))
}

/// Cuts intervals in the middle of their order.
pub fn split(keys: &[&[u8]]) -> Vec<bool> {
    let mut order: Vec<usize> = (0..keys.len()).collect();
    let place = |n: usize| {
        let one = read(keys[n]);
        (one.flags, one.lower, one.upper)
    };
    order.sort_by(|a, b| place(*a).cmp(&place(*b)));
    let mut right = vec![false; keys.len()];
    order[keys.len() / 2..].iter().for_each(|n| right[*n] = true);
    right
}

/// Whether two intervals, the first of which begins first, overlap.
pub fn touch(a: &[u8], b: &[u8]) -> bool {
    match (read(a).ends(), read(b).ends()) {
        (Some((_, upper)), Some((lower, _))) => lower <= upper,
        _ => true,
    }
}

/// How far the second interval is from the first, which lies before it.
pub fn gap(a: &[u8], b: &[u8]) -> f64 {
    let (Some((least, upper)), Some((lower, most))) = (read(a).ends(), read(b).ends()) else {
        return 0.0;
    };
    let common = least.iter().zip(most).take_while(|(a, b)| a == b).count();
    fraction(lower, common) - fraction(upper, common)
}

/// The operations that intervals have in common as keys of classes.
macro_rules! as_intervals {
    () => {
        fn union(&self, keys: &[&[u8]]) -> Vec<u8> {
            union(keys)
        }

        fn penalty(&self, cover: &[u8], new: &[u8]) -> f64 {
            penalty(cover, new)
        }

        fn split(&self, keys: &[&[u8]]) -> Vec<bool> {
            split(keys)
        }

        fn place(&self, key: &[u8]) -> Option<Vec<u8>> {
            let one = read(key);
            Some([&[one.flags], one.lower].concat())
        }

        fn is_sortable(&self) -> bool {
            true
        }
    };
}

/// `range_ops` and `multirange_ops`. An end is its value's key and a byte for where it stands from the value.
pub struct RangeOps;

/// The end of a range; `shift`: to one side or the other, as far as it goes beside the same value.
fn end(bound: &Bound, is_lower: bool, shift: Option<bool>) -> Result<Vec<u8>> {
    if bound.value.is_null() {
        return Ok(vec![if is_lower { 0 } else { 3 }]);
    }
    let mut out = Vec::with_capacity(16);
    key::encode(Oid(0), &bound.value, KeyOrder::default(), &mut out)?;
    out.push(match (shift, bound.inclusive, is_lower) {
        (Some(up), ..) => u8::from(up) * 2,
        (None, true, _) => 1,
        (None, false, true) => 2,
        (None, false, false) => 0,
    });
    Ok(out)
}

fn span(value: &Datum) -> Result<Range> {
    match value {
        Datum::Range(range) => Ok((**range).clone()),
        Datum::Multirange(m) => Ok(m.span()),
        Datum::Null => Err(Error::internal("NULL as a range")),
        element => {
            let bound = Bound::new(element.clone(), true);
            Ok(Range { ty: Oid(0), bounds: Some((bound.clone(), bound)) })
        }
    }
}

impl GistClass for RangeOps {
    as_intervals!();

    fn key(&self, value: &Datum) -> Result<Vec<u8>> {
        match span(value)?.bounds {
            Some((lower, upper)) => Ok(key_of(end(&lower, true, None)?, end(&upper, false, None)?)),
            None => Ok(empty_key()),
        }
    }

    fn check(&self, strategy: u16, value: &Datum) -> Result<KeyCheck> {
        let Some((lower, upper)) = span(value)?.bounds else {
            // An empty range: within all, and equal to those like it.
            return Ok(Arc::new(move |key, _| {
                possible(match strategy {
                    7 => true,
                    8 | 18 => read(key).has_empty(),
                    _ => false,
                })
            }));
        };
        // As far apart as rounding of ends allows for: neighbours stand at the same value.
        let beside = (end(&lower, true, Some(false))?, end(&upper, false, Some(true))?);
        let beside = (lower_end(beside.0), upper_end(beside.1));
        let (from, to) = (end(&lower, true, None)?, end(&upper, false, None)?);
        let (least, most) = (lower_end(from.clone()), upper_end(to.clone()));
        Ok(Arc::new(move |key, leaf| {
            let one = read(key);
            let Some((lower, upper)) = one.ends() else {
                return possible(strategy == 8 && one.has_empty());
            };
            let own = |own: bool, below: bool| if leaf { own } else { below };
            possible(match strategy {
                1 => own(upper <= &most[..], lower < &from[..]) && lower < &from[..],
                2 => lower <= &most[..],
                3 => one.overlaps(&from, &most),
                4 => upper >= &least[..],
                5 => upper > &least[..],
                6 => one.overlaps(&beside.0, &beside.1),
                7 | 16 | 18 => {
                    lower <= &from[..]
                        && upper >= &least[..]
                        && upper >= &to[..to.len().min(END_MAX)]
                }
                8 => one.has_empty() || one.overlaps(&from, &most),
                _ => true,
            })
        }))
    }
}

/// `inet_ops`: from a network's first address to its last.
pub struct InetOps;

fn network(inet: &Inet) -> (Vec<u8>, Vec<u8>) {
    let len = if inet.v6 { 16 } else { 4 };
    let (mut first, mut last) = (vec![u8::from(inet.v6)], vec![u8::from(inet.v6)]);
    for n in 0..len {
        let own = usize::from(inet.bits).saturating_sub(n * 8).min(8);
        let mask = (0xff00u16 >> own) as u8;
        first.push(inet.addr[n] & mask);
        last.push(inet.addr[n] | !mask);
    }
    (first, last)
}

fn inet(value: &Datum) -> Result<&Inet> {
    match value {
        Datum::Inet(inet) => Ok(inet),
        _ => Err(Error::internal("inet_ops over another type")),
    }
}

impl GistClass for InetOps {
    as_intervals!();

    fn key(&self, value: &Datum) -> Result<Vec<u8>> {
        let (first, last) = network(inet(value)?);
        Ok(key_of(first, last))
    }

    fn check(&self, strategy: u16, value: &Datum) -> Result<KeyCheck> {
        let (first, last) = network(inet(value)?);
        Ok(Arc::new(move |key, leaf| {
            let one = read(key);
            let Some((lower, upper)) = one.ends() else { return Ternary::False };
            possible(match strategy {
                // Networks overlap only when one is within the other.
                3 => one.overlaps(&first, &last),
                18 | 26 | 27 => one.contains(&first, &last),
                19 => true,
                20 | 21 => lower <= &last[..],
                22 | 23 => upper >= &first[..],
                24 | 25 if leaf => one.within(&first, &last),
                24 | 25 => one.overlaps(&first, &last),
                _ => true,
            })
        }))
    }
}

/// `text_ops` of SP-GiST: texts by their bytes.
pub struct TextOps;

impl GistClass for TextOps {
    as_intervals!();

    fn key(&self, value: &Datum) -> Result<Vec<u8>> {
        let bytes = value.as_str().as_bytes().to_vec();
        Ok(key_of(bytes.clone(), bytes))
    }

    fn check(&self, strategy: u16, value: &Datum) -> Result<KeyCheck> {
        let text = value.as_str().as_bytes().to_vec();
        let (least, most) = (lower_end(text.clone()), upper_end(text.clone()));
        Ok(Arc::new(move |key, _| {
            let one = read(key);
            let Some((lower, upper)) = one.ends() else { return Ternary::False };
            possible(match strategy {
                1 | 2 | 11 | 12 => lower <= &most[..],
                3 => lower <= &text[..] && upper >= &least[..],
                4 | 5 | 14 | 15 => upper >= &least[..],
                28 => {
                    let beginning = &lower[..lower.len().min(least.len())];
                    beginning <= &least[..] && upper >= &least[..]
                }
                _ => true,
            })
        }))
    }
}

/// Scalars by their order: btree_gist's classes.
pub struct ScalarOps {
    /// The type.
    pub ty: Oid,
}

impl ScalarOps {
    fn bytes(&self, value: &Datum) -> Result<Vec<u8>> {
        let mut out = Vec::with_capacity(16);
        key::encode(self.ty, value, KeyOrder::default(), &mut out)?;
        Ok(out)
    }
}

impl GistClass for ScalarOps {
    as_intervals!();

    fn key(&self, value: &Datum) -> Result<Vec<u8>> {
        let bytes = self.bytes(value)?;
        Ok(key_of(bytes.clone(), bytes))
    }

    fn check(&self, strategy: u16, value: &Datum) -> Result<KeyCheck> {
        // A value of another type that the family compares: its place is not known.
        let bytes = match is_of(self.ty, value) {
            true => self.bytes(value).ok(),
            false => None,
        };
        let Some(bytes) = bytes else { return Ok(Arc::new(|_, _| Ternary::Maybe)) };
        let (least, most) = (lower_end(bytes.clone()), upper_end(bytes));
        // Comparisons by a collation are other expressions, which no index like this serves.
        Ok(Arc::new(move |key, _| {
            let Some((lower, upper)) = read(key).ends() else { return Ternary::False };
            possible(match strategy {
                1 | 2 => lower <= &most[..],
                3 => lower <= &most[..] && upper >= &least[..],
                4 | 5 => upper >= &least[..],
                _ => true,
            })
        }))
    }

    fn distance(&self, _strategy: u16, value: &Datum) -> Result<Option<KeyDistance>> {
        let bytes = self.bytes(value)?;
        let Some(to) = number(self.ty, &bytes) else { return Ok(None) };
        let ty = self.ty;
        Ok(Some(Arc::new(move |key, leaf| {
            let Some((lower, upper)) = read(key).ends() else { return (f64::INFINITY, leaf) };
            let at = |end| number(ty, end).unwrap_or(to);
            (to.distance(at(lower), at(upper)), false)
        })))
    }

    fn returns_values(&self) -> bool {
        key::is_fixed(self.ty)
    }

    fn value(&self, key: &[u8]) -> Option<Datum> {
        let (bytes, _) = read(key).ends()?;
        let mut column = crate::Column::new(self.ty);
        key::decode_column(self.ty, KeyOrder::default(), bytes, &mut [0], &mut column)?;
        Some(column.get(0, self.ty))
    }
}

/// The number that a key of a fixed width stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Number {
    Whole(i128),
    Float(f64),
}

impl Number {
    /// How far it is from an interval.
    fn distance(self, from: Number, until: Number) -> f64 {
        match (self, from, until) {
            (Number::Whole(own), Number::Whole(from), Number::Whole(until)) => {
                // Exact, then rounded: large numbers that are near each other stay apart.
                from.saturating_sub(own).max(own.saturating_sub(until)).max(0) as f64
            }
            (Number::Float(own), Number::Float(from), Number::Float(until)) => {
                if own < from {
                    from - own
                } else if own > until {
                    own - until
                } else if own.is_nan() {
                    f64::NAN
                } else {
                    0.0
                }
            }
            _ => f64::NAN,
        }
    }
}

fn number(ty: Oid, key: &[u8]) -> Option<Number> {
    let body = key.get(1..)?;
    let signed = |width: usize| -> Option<Number> {
        let mut value: i128 = 0;
        for byte in body.get(..width)? {
            value = value << 8 | i128::from(*byte);
        }
        Some(Number::Whole(value - (1i128 << (width * 8 - 1))))
    };
    match ty {
        oids::INT2 => signed(2),
        oids::INT4 | oids::DATE => signed(4),
        oids::INT8 | oids::TIME | oids::TIMESTAMP | oids::TIMESTAMPTZ | oids::MONEY => signed(8),
        oids::OID => {
            let value = body.first_chunk::<4>().map(|b| u32::from_be_bytes(*b));
            value.map(|value| Number::Whole(value.into()))
        }
        oids::FLOAT4 => {
            let key = u32::from_be_bytes(*body.first_chunk::<4>()?);
            let bits = if key >> 31 == 1 { key ^ 1 << 31 } else { !key };
            Some(Number::Float(f64::from(f32::from_bits(bits))))
        }
        oids::FLOAT8 => {
            let key = u64::from_be_bytes(*body.first_chunk::<8>()?);
            let bits = if key >> 63 == 1 { key ^ 1 << 63 } else { !key };
            Some(Number::Float(f64::from_bits(bits)))
        }
        oids::INTERVAL => {
            let key = u128::from_be_bytes(*body.first_chunk::<16>()?);
            Some(Number::Whole(key as i128 ^ i128::MIN))
        }
        _ => None,
    }
}

/// Whether a value's key is made as those of a type are.
pub fn is_of(ty: Oid, value: &Datum) -> bool {
    match ty {
        oids::INT2 | oids::INT4 | oids::INT8 => {
            matches!(value, Datum::Int2(_) | Datum::Int4(_) | Datum::Int8(_))
        }
        oids::FLOAT4 => matches!(value, Datum::Float4(_)),
        oids::FLOAT8 => matches!(value, Datum::Float8(_)),
        oids::DATE => matches!(value, Datum::Date(_)),
        oids::TIMESTAMP => matches!(value, Datum::Timestamp(_)),
        oids::TIMESTAMPTZ => matches!(value, Datum::Timestamptz(_)),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(lower: &str, upper: &str) -> Vec<u8> {
        key_of(lower.as_bytes().to_vec(), upper.as_bytes().to_vec())
    }

    #[test]
    fn a_union_covers_its_parts_and_is_one_of_them_when_that_covers_the_others() {
        let (a, b) = (ends("b", "f"), ends("d", "k"));
        let both = union(&[&a, &b]);
        assert_eq!(both, ends("b", "k"));
        assert_eq!(union(&[&both, &a]), both);
        assert_eq!(union(&[&a, &empty_key()]), put(EMPTY | VALUES, b"b", b"f"));
        assert!(penalty(&a, &b) > 0.0);
        assert_eq!(penalty(&both, &a), 0.0);
        assert!(
            penalty(&ends("a", "b"), &ends("z", "z")) > penalty(&ends("x", "y"), &ends("z", "z"))
        );
    }

    #[test]
    fn long_ends_are_cut_to_what_covers_them() {
        let long = "x".repeat(1000);
        let key = TextOps.key(&Datum::text(&long)).expect("key");
        assert!(key.len() < 2 * END_MAX + 8);
        for strategy in [1, 2, 3, 4, 5, 28] {
            let check = TextOps.check(strategy, &Datum::text(&long)).expect("check");
            assert_ne!(check(&key, true), Ternary::False, "{strategy}");
        }
        let other = TextOps.check(3, &Datum::text("xa")).expect("check");
        assert_eq!(other(&key, true), Ternary::False);
    }

    #[test]
    fn numbers_are_read_back_from_keys() {
        for value in [-5.5f64, 0.0, 3.25, 1e300] {
            let ops = ScalarOps { ty: oids::FLOAT8 };
            let key = ops.bytes(&Datum::Float8(value)).expect("bytes");
            assert_eq!(number(oids::FLOAT8, &key), Some(Number::Float(value)));
        }
        let ops = ScalarOps { ty: oids::INT4 };
        let key = ops.bytes(&Datum::Int4(-7)).expect("bytes");
        assert_eq!(number(oids::INT4, &key), Some(Number::Whole(-7)));
    }
}
