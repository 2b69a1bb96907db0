//! `array[low:high] = values`.

use base::{Result, err};

use crate::datum::{Array, Datum};
use crate::oids;

/// Items of an array, at most.
const MAX_ITEMS: i64 = 134_217_727;

/// (low, high) of a dimension; None where the statement leaves it out.
type Bounds = (Option<i32>, Option<i32>);

/// `(array, values, low, high, low, high, …)`; a bound that is a text was left out. An array of one
/// dimension grows, with NULLs in between; NULL instead of values changes nothing.
///
/// # Errors
/// `2202E`, `22004`, `54000`.
pub(super) fn set(a: &[Datum], types: &[base::Oid]) -> Result<Datum> {
    let Datum::Array(values) = &a[1] else { return Ok(a[0].clone()) };
    let mut bounds: Vec<Bounds> = Vec::with_capacity(a.len() / 2);
    for pair in a[2..].chunks(2) {
        bounds.push((bound(&pair[0])?, bound(&pair[1])?));
    }
    match &a[0] {
        Datum::Array(array) if !array.dims.is_empty() => change((**array).clone(), values, &bounds),
        _ => {
            let element = crate::TypeIo::get(types[0]).map_or(oids::TEXT, |t| t.element);
            fresh(element, values, &bounds)
        }
    }
}

fn bound(d: &Datum) -> Result<Option<i32>> {
    match d {
        Datum::Null => {
            Err(err!(NULL_VALUE_NOT_ALLOWED, "array subscript in assignment must not be null"))
        }
        Datum::Int4(v) => Ok(Some(*v)),
        _ => Ok(None),
    }
}

fn too_small() -> base::Error {
    err!(ARRAY_SUBSCRIPT_ERROR, "source array too small")
}

fn check_order(low: i32, high: i32) -> Result<()> {
    if low > high {
        return Err(err!(ARRAY_SUBSCRIPT_ERROR, "upper bound cannot be less than lower bound"));
    }
    Ok(())
}

fn check_size(items: i64) -> Result<()> {
    if items > MAX_ITEMS {
        return Err(err!(
            PROGRAM_LIMIT_EXCEEDED,
            "array size exceeds the maximum allowed ({MAX_ITEMS})"
        ));
    }
    Ok(())
}

/// Where there was no array: the bounds are its dimensions.
fn fresh(element: base::Oid, values: &Array, bounds: &[Bounds]) -> Result<Datum> {
    let (mut dims, mut count) = (Vec::with_capacity(bounds.len()), 1i64);
    for bounds in bounds {
        let (Some(low), Some(high)) = *bounds else {
            return Err(err!(
                ARRAY_SUBSCRIPT_ERROR,
                "array slice subscript must provide both boundaries"
            )
            .detail(
                "When assigning to a slice of an empty array value, slice boundaries must be \
                 fully specified.",
            ));
        };
        check_order(low, high)?;
        let len = i64::from(high) - i64::from(low) + 1;
        count = count.saturating_mul(len);
        check_size(count)?;
        dims.push((len as i32, low));
    }
    let items = values.items.get(..count as usize).ok_or_else(too_small)?.to_vec();
    Ok(Datum::Array(Array { element, dims, items }.into()))
}

fn change(mut array: Array, values: &Array, bounds: &[Bounds]) -> Result<Datum> {
    if bounds.len() > array.dims.len() {
        return Err(err!(ARRAY_SUBSCRIPT_ERROR, "wrong number of array subscripts"));
    }
    // First and last of each dimension, from 0.
    let mut parts = Vec::with_capacity(array.dims.len());
    let single = array.dims.len() == 1;
    for n in 0..array.dims.len() {
        let (len, lower) = array.dims[n];
        let end = lower + len - 1;
        let (low, high) = bounds.get(n).copied().unwrap_or((None, None));
        let (low, high) = (low.unwrap_or(lower), high.unwrap_or(end));
        check_order(low, high)?;
        if single {
            check_size(i64::from(high.max(end)) - i64::from(low.min(lower)) + 1)?;
            grow(&mut array, low, high);
        } else if low < lower || high > end {
            return Err(err!(ARRAY_SUBSCRIPT_ERROR, "array subscript out of range"));
        }
        let lower = array.dims[n].1;
        parts.push(((low - lower) as usize, (high - lower) as usize));
    }
    let count: usize = parts.iter().map(|(from, to)| to - from + 1).product();
    let given = values.items.get(..count).ok_or_else(too_small)?;
    let mut given = given.iter();
    let dims = array.dims.clone();
    place(&mut array.items, &dims, &parts, 0, &mut given);
    Ok(Datum::Array(array.into()))
}

/// One dimension reaches from `low` to `high` at least.
fn grow(array: &mut Array, low: i32, high: i32) {
    let (len, lower) = array.dims[0];
    let before = (i64::from(lower) - i64::from(low)).max(0) as usize;
    let after = (i64::from(high) - i64::from(lower) - i64::from(len) + 1).max(0) as usize;
    let mut items = vec![Datum::Null; before];
    items.append(&mut array.items);
    items.resize(items.len() + after, Datum::Null);
    array.dims[0] = (items.len() as i32, lower.min(low));
    array.items = items;
}

fn place(
    items: &mut [Datum],
    dims: &[(i32, i32)],
    parts: &[(usize, usize)],
    base: usize,
    given: &mut std::slice::Iter<'_, Datum>,
) {
    let (Some(((len, _), dims)), Some(((from, to), parts))) =
        (dims.split_first(), parts.split_first())
    else {
        return;
    };
    for i in *from..=*to {
        let at = base * *len as usize + i;
        if dims.is_empty() {
            if let Some(value) = given.next() {
                items[at] = value.clone();
            }
        } else {
            place(items, dims, parts, at, given);
        }
    }
}
