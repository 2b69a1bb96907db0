//! Functions: distances, arithmetic, casts, the states of aggregates.

use std::cmp::Ordering;

use base::{Oid, Result, bail, err};
use types::func::{Body, CallTypes};
use types::oids::{BIT, FLOAT4, FLOAT8};
use types::{Datum, FormatContext};

use crate::dense::{self, Dense, word};
use crate::sparse::Sparse;

type Bodies = Vec<(&'static str, Body)>;

fn own(value: &Datum) -> &Dense {
    value.as_open()
}

fn sparse(value: &Datum) -> Option<&Sparse> {
    match value {
        Datum::Open(open) => open.get(),
        _ => None,
    }
}

fn different(name: &str, a: usize, b: usize) -> base::Error {
    err!(DATA_EXCEPTION, "different {name} dimensions {a} and {b}")
}

/// Goes through the pairs of numbers at the same places of two values of one type, at least those of which one isn't
/// zero.
fn fold<T>(args: &[Datum], first: T, step: impl Fn(T, f32, f32) -> T) -> Result<T> {
    if let (Some(a), Some(b)) = (sparse(&args[0]), sparse(&args[1])) {
        if a.dims != b.dims {
            return Err(different("sparsevec", a.dims, b.dims));
        }
        let mut out = first;
        let (mut left, mut right) = (a.items.iter().peekable(), b.items.iter().peekable());
        loop {
            let order = match (left.peek(), right.peek()) {
                (Some(a), Some(b)) => a.0.cmp(&b.0),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => return Ok(out),
            };
            let from_left = if order.is_le() { left.next().map_or(0.0, |i| i.1) } else { 0.0 };
            let from_right = if order.is_ge() { right.next().map_or(0.0, |i| i.1) } else { 0.0 };
            out = step(out, from_left, from_right);
        }
    }
    let (a, b) = (own(&args[0]), own(&args[1]));
    if a.values.len() != b.values.len() {
        return Err(different(word(a.half), a.values.len(), b.values.len()));
    }
    Ok(a.values.iter().zip(&b.values).fold(first, |out, (a, b)| step(out, *a, *b)))
}

fn squared(args: &[Datum]) -> Result<f64> {
    fold(args, 0.0_f32, |sum, a, b| sum + (a - b) * (a - b)).map(f64::from)
}

fn inner(args: &[Datum]) -> Result<f64> {
    fold(args, 0.0_f32, |sum, a, b| sum + a * b).map(f64::from)
}

fn similarity(args: &[Datum]) -> Result<f64> {
    let (product, a, b) = fold(args, (0.0_f32, 0.0_f32, 0.0_f32), |(p, x, y), a, b| {
        (p + a * b, x + a * a, y + b * b)
    })?;
    Ok(f64::from(product) / (f64::from(a) * f64::from(b)).sqrt())
}

fn cosine(args: &[Datum]) -> Result<f64> {
    Ok(1.0 - similarity(args)?.clamp(-1.0, 1.0))
}

fn taxicab(args: &[Datum]) -> Result<f64> {
    fold(args, 0.0_f32, |sum, a, b| sum + (a - b).abs()).map(f64::from)
}

/// For vectors of length one.
fn spherical(args: &[Datum]) -> Result<f64> {
    Ok(inner(args)?.clamp(-1.0, 1.0).acos() / std::f64::consts::PI)
}

fn norm(value: &Datum) -> f64 {
    let square = |n: &f32| f64::from(*n) * f64::from(*n);
    let sum: f64 = match sparse(value) {
        Some(own) => own.items.iter().map(|(_, n)| square(n)).sum(),
        None => own(value).values.iter().map(square).sum(),
    };
    sum.sqrt()
}

fn normalized(value: &Datum) -> Result<Datum> {
    let norm = norm(value);
    let one = |n: f32| if norm > 0.0 { (f64::from(n) / norm) as f32 } else { 0.0 };
    match sparse(value) {
        Some(own) => {
            let items = own.items.iter().map(|(at, n)| (*at, one(*n))).collect();
            Sparse::new(own.ty, own.dims, items)
        }
        None => own(value).computed(own(value).values.iter().map(|n| one(*n)).collect()),
    }
}

fn elementwise(args: &[Datum], step: fn(f32, f32) -> f32) -> Result<Datum> {
    let (a, b) = (own(&args[0]), own(&args[1]));
    if a.values.len() != b.values.len() {
        return Err(different(word(a.half), a.values.len(), b.values.len()));
    }
    a.computed(a.values.iter().zip(&b.values).map(|(a, b)| step(*a, *b)).collect())
}

fn integer(value: &Datum) -> i64 {
    value.to_i64().unwrap_or_default()
}

fn part(args: &[Datum]) -> Result<Datum> {
    let own = own(&args[0]);
    let (start, count) = (integer(&args[1]), integer(&args[2]));
    let name = word(own.half);
    if count < 1 {
        bail!(DATA_EXCEPTION, "{name} must have at least 1 dimension");
    }
    let end = (start + count).min(own.values.len() as i64 + 1);
    let start = start.max(1);
    if start >= end {
        bail!(DATA_EXCEPTION, "{name} must have at least 1 dimension");
    }
    Dense::new(own.ty, own.half, own.values[start as usize - 1..end as usize - 1].to_vec())
}

fn quantized(value: &Datum, cx: &FormatContext) -> Result<Datum> {
    let bits: String = own(value).values.iter().map(|n| if *n > 0.0 { '1' } else { '0' }).collect();
    types::io::input(BIT, -1, &bits, cx)
}

/// How often bits of two rows differ, are both set, and are set in one.
fn bits(args: &[Datum], cx: &FormatContext) -> Result<(f64, f64, f64)> {
    let text = |value: &Datum| {
        let mut out = Vec::new();
        types::io::output(BIT, value, cx, &mut out).map(|()| out)
    };
    let (a, b) = (text(&args[0])?, text(&args[1])?);
    if a.len() != b.len() {
        bail!(DATA_EXCEPTION, "different bit lengths {} and {}", a.len(), b.len());
    }
    let count = |test: fn(bool, bool) -> bool| {
        a.iter().zip(&b).filter(|(a, b)| test(**a == b'1', **b == b'1')).count() as f64
    };
    Ok((count(|a, b| a != b), count(|a, b| a && b), count(|a, b| a || b)))
}

fn jaccard(args: &[Datum], cx: &FormatContext) -> Result<Datum> {
    let (_, both, any) = bits(args, cx)?;
    Ok(Datum::Float8(if both == 0.0 { 1.0 } else { 1.0 - both / any }))
}

/// Whether a cast's target is `halfvec`.
fn is_half(ty: Oid) -> bool {
    types::io::format_type(ty, -1).ends_with("halfvec")
}

/// The typmod that a cast's second argument gives.
fn typmod(args: &[Datum]) -> i32 {
    args.get(1).map_or(-1, |n| n.to_i64().unwrap_or(-1) as i32)
}

fn of_array(args: &[Datum], types: CallTypes<'_>, cx: &FormatContext) -> Result<Datum> {
    let array = args[0].as_array();
    if array.dims.len() > 1 {
        bail!(DATA_EXCEPTION, "array must be 1-D");
    }
    let mut values = Vec::with_capacity(array.items.len());
    for item in &array.items {
        values.push(match item {
            Datum::Null => bail!(NULL_VALUE_NOT_ALLOWED, "array must not contain nulls"),
            Datum::Float4(n) => *n,
            Datum::Float8(n) => *n as f32,
            Datum::Int4(n) => *n as f32,
            other => {
                let mut text = Vec::new();
                types::io::output(array.element, other, cx, &mut text)?;
                String::from_utf8_lossy(&text).parse().unwrap_or(f32::NAN)
            }
        });
    }
    dense::expect(typmod(args), values.len())?;
    if types::io::format_type(types.result, -1).ends_with("sparsevec") {
        return of_numbers(types.result, &values);
    }
    Dense::new(types.result, is_half(types.result), values)
}

fn of_numbers(ty: Oid, values: &[f32]) -> Result<Datum> {
    let items = values.iter().enumerate().map(|(at, n)| (at as u32, *n)).collect();
    Sparse::new(ty, values.len(), items)
}

fn to_array(value: &Datum) -> Datum {
    Datum::array(FLOAT4, own(value).values.iter().map(|n| Datum::Float4(*n)).collect())
}

/// The numbers of a value of any of the types.
fn all(value: &Datum) -> Result<Vec<f32>> {
    match sparse(value) {
        Some(own) if own.dims > dense::DIMENSIONS_MAX => bail!(
            PROGRAM_LIMIT_EXCEEDED,
            "vector cannot have more than {} dimensions",
            dense::DIMENSIONS_MAX
        ),
        Some(own) => {
            let mut out = vec![0.0; own.dims];
            own.items.iter().for_each(|(at, n)| out[*at as usize] = *n);
            Ok(out)
        }
        None => Ok(own(value).values.clone()),
    }
}

fn converted(args: &[Datum], types: CallTypes<'_>) -> Result<Datum> {
    let values = all(&args[0])?;
    dense::expect(typmod(args), values.len())?;
    if types::io::format_type(types.result, -1).ends_with("sparsevec") {
        return of_numbers(types.result, &values);
    }
    Dense::new(types.result, is_half(types.result), values)
}

/// A value of its own type, checked against a typmod.
fn checked(args: &[Datum]) -> Result<Datum> {
    let dims = match sparse(&args[0]) {
        Some(own) => own.dims,
        None => own(&args[0]).values.len(),
    };
    dense::expect(typmod(args), dims)?;
    Ok(args[0].clone())
}

fn state(value: &Datum) -> Result<Vec<f64>> {
    let one = |item: &Datum| match item {
        Datum::Float8(n) => Ok(*n),
        _ => Err(err!(DATA_EXCEPTION, "expected state array")),
    };
    let out: Vec<f64> = value.as_array().items.iter().map(one).collect::<Result<_>>()?;
    if out.is_empty() {
        bail!(DATA_EXCEPTION, "expected state array");
    }
    Ok(out)
}

fn state_of(numbers: Vec<f64>) -> Datum {
    Datum::array(FLOAT8, numbers.into_iter().map(Datum::Float8).collect())
}

/// Adds a vector to a state: how many there were, then the sums.
fn accumulate(args: &[Datum]) -> Result<Datum> {
    let mut sums = state(&args[0])?;
    let own = own(&args[1]);
    if sums.len() == 1 {
        sums.resize(own.values.len() + 1, 0.0);
    } else if sums.len() != own.values.len() + 1 {
        bail!(DATA_EXCEPTION, "expected {} dimensions, not {}", sums.len() - 1, own.values.len());
    }
    sums[0] += 1.0;
    sums[1..].iter_mut().zip(&own.values).for_each(|(sum, n)| *sum += f64::from(*n));
    Ok(state_of(sums))
}

fn combine(args: &[Datum]) -> Result<Datum> {
    let (a, b) = (state(&args[0])?, state(&args[1])?);
    if a[0] == 0.0 {
        return Ok(state_of(b));
    }
    if b[0] == 0.0 {
        return Ok(state_of(a));
    }
    if a.len() != b.len() {
        bail!(DATA_EXCEPTION, "expected {} dimensions, not {}", a.len() - 1, b.len() - 1);
    }
    Ok(state_of(a.iter().zip(&b).map(|(a, b)| a + b).collect()))
}

fn average(args: &[Datum], types: CallTypes<'_>) -> Result<Datum> {
    let sums = state(&args[0])?;
    if sums[0] == 0.0 {
        return Ok(Datum::Null);
    }
    let values = sums[1..].iter().map(|sum| (sum / sums[0]) as f32).collect();
    Dense::new(types.result, is_half(types.result), values)
}

fn order(args: &[Datum]) -> Ordering {
    match (&args[0], &args[1]) {
        (Datum::Open(a), Datum::Open(b)) => a.0.compare(&*b.0),
        _ => Ordering::Equal,
    }
}

fn sent(value: &Datum) -> Result<Datum> {
    let mut out = Vec::new();
    if let Datum::Open(open) = value {
        open.0.send(&mut out)?;
    }
    Ok(Datum::bytea(&out))
}

macro_rules! floats { ($($($name:literal)+ => $body:expr;)*) => {
    vec![$($(($name, Body::Scalar(|a, _| {
        let number: Result<f64> = $body(a);
        Ok(Datum::Float8(number?))
    })),)+)*]
} }

macro_rules! values { ($($($name:literal)+ => $body:expr;)*) => {
    [$($(($name, Body::Scalar($body)),)+)*]
} }

macro_rules! typed { ($($($name:literal)+ => $body:expr;)*) => {
    [$($(($name, Body::Typed($body)),)+)*]
} }

macro_rules! comparisons { ($($name:literal $test:ident)*) => {
    [$(($name, Body::Scalar(|a, _| Ok(Datum::Bool(order(a).$test()))))),*]
} }

/// The bodies by symbol.
pub fn bodies() -> Bodies {
    let mut out: Bodies = floats! {
        "l2_distance" "halfvec_l2_distance" "sparsevec_l2_distance" => |a| squared(a).map(f64::sqrt);
        "vector_l2_squared_distance" "halfvec_l2_squared_distance" "sparsevec_l2_squared_distance"
            => squared;
        "inner_product" "halfvec_inner_product" "sparsevec_inner_product" => inner;
        "vector_negative_inner_product" "halfvec_negative_inner_product"
        "sparsevec_negative_inner_product" => |a| inner(a).map(|n| -n);
        "cosine_distance" "halfvec_cosine_distance" "sparsevec_cosine_distance" => cosine;
        "l1_distance" "halfvec_l1_distance" "sparsevec_l1_distance" => taxicab;
        "vector_spherical_distance" "halfvec_spherical_distance" => spherical;
        "vector_norm" "halfvec_l2_norm" "sparsevec_l2_norm" => |a: &[Datum]| Ok(norm(&a[0]));
    };
    out.extend(values! {
        "vector_send" "halfvec_send" "sparsevec_send" => |a, _| sent(&a[0]);
        "vector_dims" "halfvec_vector_dims" => |a, _| {
            Ok(Datum::Int4(own(&a[0]).values.len() as i32))
        };
        "l2_normalize" "halfvec_l2_normalize" "sparsevec_l2_normalize" => |a, _| normalized(&a[0]);
        "binary_quantize" "halfvec_binary_quantize" => |a, cx| quantized(&a[0], cx);
        "subvector" "halfvec_subvector" => |a, _| part(a);
        "vector_add" "halfvec_add" => |a, _| elementwise(a, |a, b| a + b);
        "vector_sub" "halfvec_sub" => |a, _| elementwise(a, |a, b| a - b);
        "vector_mul" "halfvec_mul" => |a, _| elementwise(a, |a, b| a * b);
        "vector_concat" "halfvec_concat" => |a, _| {
            let (a, b) = (own(&a[0]), own(&a[1]));
            Dense::new(a.ty, a.half, [&a.values[..], &b.values[..]].concat())
        };
        "vector" "halfvec" "sparsevec" => |a, _| checked(a);
        "vector_to_float4" "halfvec_to_float4" => |a, _| Ok(to_array(&a[0]));
        "vector_accum" "halfvec_accum" => |a, _| accumulate(a);
        "vector_combine" "halfvec_combine" => |a, _| combine(a);
        "vector_cmp" "halfvec_cmp" "sparsevec_cmp" => |a, _| Ok(Datum::Int4(order(a) as i32));
        "hamming_distance" => |a, cx| Ok(Datum::Float8(bits(a, cx)?.0));
        "jaccard_distance" => jaccard;
    });
    out.extend(typed! {
        "array_to_vector" "array_to_halfvec" "array_to_sparsevec" => of_array;
        "vector_to_halfvec" "halfvec_to_vector" "vector_to_sparsevec" "sparsevec_to_vector"
        "halfvec_to_sparsevec" "sparsevec_to_halfvec" => |a, types, _| converted(a, types);
        "vector_avg" "halfvec_avg" => |a, types, _| average(a, types);
    });
    out.extend(comparisons! {
        "vector_eq" is_eq "vector_ne" is_ne "vector_lt" is_lt "vector_le" is_le "vector_gt" is_gt
        "vector_ge" is_ge "halfvec_eq" is_eq "halfvec_ne" is_ne "halfvec_lt" is_lt
        "halfvec_le" is_le "halfvec_gt" is_gt "halfvec_ge" is_ge "sparsevec_eq" is_eq
        "sparsevec_ne" is_ne "sparsevec_lt" is_lt "sparsevec_le" is_le "sparsevec_gt" is_gt
        "sparsevec_ge" is_ge
    });
    out
}
