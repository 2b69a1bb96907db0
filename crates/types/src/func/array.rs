//! Functions of arrays.
//!
//! An array built from bare values has their natural element type; where the declared one matters
//! the executor sets it ([`super::with_element`]).

use std::sync::Arc;

use base::{Oid, Result, err};

use super::{Body, CallTypes, NamedBody, S};
use crate::bulk::{self, Pace};
use crate::datum::{Array, Datum, Shape, Text};
use crate::io::{self, FormatContext};
use crate::oids;
use crate::order::compare;

fn array_or_none(d: &Datum) -> Option<&Array> {
    if d.is_null() { None } else { Some(d.as_array()) }
}

fn build(array: Array) -> Datum {
    Datum::Array(Arc::new(array))
}

fn element_type(array: Option<&Array>, item: &Datum) -> Oid {
    match array {
        Some(a) => a.element,
        None => io::natural_type(item),
    }
}

#[cold]
fn not_one_dimension(what: &str) -> base::Error {
    err!(FEATURE_NOT_SUPPORTED, "{what}")
}

/// The most items of an array, as PostgreSQL has it.
const ITEMS_MAX: usize = 134_217_727;

fn too_many_items() -> base::Error {
    err!(PROGRAM_LIMIT_EXCEEDED, "array size exceeds the maximum allowed ({ITEMS_MAX})")
}

/// Room for so many items.
fn room_for(count: usize) -> Result<Vec<Datum>> {
    if count > ITEMS_MAX {
        return Err(too_many_items());
    }
    bulk::ask(count.saturating_mul(size_of::<Datum>()))?;
    Ok(Vec::with_capacity(count))
}

/// Adds an item at one end; the lower bound stays.
fn extend(array: &Datum, item: &Datum, front: bool) -> Result<Datum> {
    let array = array_or_none(array);
    let element = element_type(array, item);
    let Some(a) = array.filter(|a| !a.dims.is_empty()) else {
        return Ok(Datum::array(element, vec![item.clone()]));
    };
    if a.dims.len() != 1 {
        return Err(err!(DATA_EXCEPTION, "argument must be empty or one-dimensional array"));
    }
    let (len, low) = a.dims[0];
    let mut items = room_for(a.items.len() + 1)?;
    if front {
        items.push(item.clone());
    }
    bulk::push_values(&mut items, &a.items)?;
    if !front {
        items.push(item.clone());
    }
    Ok(build(Array { element, dims: vec![(len + 1, low)], items }))
}

/// `a || b`: of equal dimensions, or one has one dimension less and becomes an item.
fn concat(a: &Datum, b: &Datum) -> Result<Datum> {
    let (x, y) = match (array_or_none(a), array_or_none(b)) {
        (None, None) => return Ok(Datum::Null),
        (None, Some(_)) => return Ok(b.clone()),
        (Some(_), None) => return Ok(a.clone()),
        (Some(x), Some(_)) if x.dims.is_empty() => return Ok(b.clone()),
        (Some(_), Some(y)) if y.dims.is_empty() => return Ok(a.clone()),
        (Some(x), Some(y)) => (x, y),
    };
    let lens = |dims: &[(i32, i32)]| dims.iter().map(|(len, _)| *len).collect::<Vec<_>>();
    let same = |p: &[(i32, i32)], q: &[(i32, i32)]| lens(p) == lens(q);
    let mismatch = |detail: &str| {
        err!(ARRAY_SUBSCRIPT_ERROR, "cannot concatenate incompatible arrays").detail(detail)
    };
    let dims = if x.dims.len() == y.dims.len() {
        if !same(&x.dims[1..], &y.dims[1..]) {
            return Err(mismatch(
                "Arrays with differing element dimensions are not compatible for concatenation.",
            ));
        }
        let mut dims = x.dims.clone();
        dims[0].0 += y.dims[0].0;
        dims
    } else if x.dims.len() + 1 == y.dims.len() && same(&x.dims, &y.dims[1..]) {
        let mut dims = y.dims.clone();
        dims[0].0 += 1;
        dims
    } else if x.dims.len() == y.dims.len() + 1 && same(&x.dims[1..], &y.dims) {
        let mut dims = x.dims.clone();
        dims[0].0 += 1;
        dims
    } else {
        return Err(mismatch(&format!(
            "Arrays of {} and {} dimensions are not compatible for concatenation.",
            x.dims.len(),
            y.dims.len()
        )));
    };
    let mut items = room_for(x.items.len() + y.items.len())?;
    bulk::push_values(&mut items, &x.items)?;
    bulk::push_values(&mut items, &y.items)?;
    Ok(build(Array { element: x.element, dims, items }))
}

/// The dimension that an argument names, from 1.
fn dimension<'a>(a: &'a [Datum]) -> Option<&'a (i32, i32)> {
    let n = usize::try_from(a[1].as_int4()).ok()?.checked_sub(1)?;
    a[0].as_array().dims.get(n)
}

fn same_value(a: &Datum, b: &Datum) -> bool {
    a.is_null() == b.is_null() && (a.is_null() || compare(a, b).is_eq())
}

fn position(a: &[Datum]) -> Result<Datum> {
    let Some(array) = array_or_none(&a[0]) else { return Ok(Datum::Null) };
    if array.dims.len() > 1 {
        return Err(not_one_dimension(
            "searching for elements in multidimensional arrays is not supported",
        ));
    }
    let Some((_, low)) = array.dims.first() else { return Ok(Datum::Null) };
    let from = match a.get(2) {
        None => 0,
        Some(Datum::Null) => {
            return Err(err!(NULL_VALUE_NOT_ALLOWED, "initial position must not be null"));
        }
        Some(start) => (i64::from(start.as_int4()) - i64::from(*low)).max(0) as usize,
    };
    let mut pace = Pace::default();
    for (i, item) in array.items.iter().enumerate().skip(from) {
        pace.step()?;
        if same_value(item, &a[1]) {
            return Ok((i as i32 + low).into());
        }
    }
    Ok(Datum::Null)
}

/// Rows of names and values from a list of `name=value`.
fn options(list: &Datum) -> Vec<Datum> {
    let columns = ["option_name", "option_value"].map(|c| (Text::from(c), oids::TEXT)).to_vec();
    let shape = Arc::new(Shape { ty: oids::RECORD, columns });
    let row = |item: &Datum| {
        let Datum::Text(item) = item else { return Datum::Null };
        let fields = match item.split_once('=') {
            Some((name, value)) => vec![Datum::text(name), Datum::text(value)],
            None => vec![Datum::Text(item.clone()), Datum::Null],
        };
        Datum::record(shape.clone(), fields)
    };
    array_or_none(list).map(|a| a.items.iter().map(row).collect()).unwrap_or_default()
}

/// The names of types by their oids.
fn type_names(oids: &Datum) -> Result<Datum> {
    let Some(array) = array_or_none(oids) else { return Ok(Datum::text("")) };
    let name = |item: &Datum| match item {
        Datum::Oid(id) => io::format_type(Oid(*id), -1),
        _ => String::new(),
    };
    let names: Vec<String> = array.items.iter().map(name).collect();
    Ok(Datum::text(&names.join(", ")))
}

fn positions(a: &[Datum]) -> Result<Datum> {
    let Some(array) = array_or_none(&a[0]) else { return Ok(Datum::Null) };
    if array.dims.len() > 1 {
        return Err(not_one_dimension(
            "searching for elements in multidimensional arrays is not supported",
        ));
    }
    let low = array.dims.first().map_or(1, |d| d.1);
    let (mut found, mut pace) = (Vec::new(), Pace::default());
    for (i, item) in array.items.iter().enumerate() {
        pace.step()?;
        if same_value(item, &a[1]) {
            found.push(Datum::Int4(i as i32 + low));
        }
    }
    Ok(Datum::array(oids::INT4, found))
}

fn remove(a: &[Datum]) -> Result<Datum> {
    let Some(array) = array_or_none(&a[0]) else { return Ok(Datum::Null) };
    if array.dims.len() > 1 {
        return Err(not_one_dimension(
            "removing elements from multidimensional arrays is not supported",
        ));
    }
    let (mut items, mut pace) = (Vec::new(), Pace::default());
    for item in &array.items {
        pace.step()?;
        if !same_value(item, &a[1]) {
            items.push(item.clone());
        }
    }
    let low = array.dims.first().map_or(1, |d| d.1);
    let dims = if items.is_empty() { Vec::new() } else { vec![(items.len() as i32, low)] };
    Ok(build(Array { element: array.element, dims, items }))
}

fn replace(a: &[Datum]) -> Result<Datum> {
    let Some(array) = array_or_none(&a[0]) else { return Ok(Datum::Null) };
    let (items, mut pace) = (bulk::copied(&array.items)?, Pace::default());
    let mut array = Array { element: array.element, dims: array.dims.clone(), items };
    for item in &mut array.items {
        pace.step()?;
        if same_value(item, &a[1]) {
            *item = a[2].clone();
        }
    }
    Ok(build(array))
}

/// An array with the element type that the call's result has: values only know their natural one.
fn typed(array: Datum, types: CallTypes<'_>) -> Result<Datum> {
    Ok(match crate::TypeIo::array_element(types.result) {
        Some(element) => super::with_element(array, element),
        None => array,
    })
}

fn fill(a: &[Datum]) -> Result<Datum> {
    let null = || err!(NULL_VALUE_NOT_ALLOWED, "dimension array or low bound array cannot be null");
    if a[1].is_null() || a.get(2).is_some_and(Datum::is_null) {
        return Err(null());
    }
    let ints = |d: &Datum| -> Result<Vec<i32>> {
        d.as_array()
            .items
            .iter()
            .map(|i| {
                if i.is_null() {
                    Err(err!(NULL_VALUE_NOT_ALLOWED, "dimension values cannot be null"))
                } else {
                    Ok(i.as_int4())
                }
            })
            .collect()
    };
    let lens = ints(&a[1])?;
    let lows = a.get(2).map_or_else(|| Ok(vec![1; lens.len()]), ints)?;
    if lows.len() != lens.len() {
        return Err(err!(ARRAY_SUBSCRIPT_ERROR, "wrong number of array subscripts")
            .detail("Low bound array has different size than dimensions array."));
    }
    let count = lens.iter().try_fold(1usize, |n, len| {
        let len = usize::try_from(*len).ok()?;
        n.checked_mul(len).filter(|n| *n <= ITEMS_MAX)
    });
    let count = count.ok_or_else(too_many_items)?;
    let element = io::natural_type(&a[0]);
    if lens.is_empty() || count == 0 {
        return Ok(Datum::array(element, Vec::new()));
    }
    let dims = lens.into_iter().zip(lows).collect();
    Ok(build(Array { element, dims, items: bulk::filled(&a[0], count)? }))
}

/// `array_to_string`: NULLs are left out, or shown as a word.
fn to_string(a: &[Datum], cx: &FormatContext) -> Result<Datum> {
    if a[0].is_null() || a[1].is_null() {
        return Ok(Datum::Null);
    }
    let (array, separator) = (a[0].as_array(), a[1].as_str());
    let null = a.get(2).filter(|d| !d.is_null()).map(Datum::as_str);
    let (mut out, mut first) = (Vec::new(), true);
    for item in &array.items {
        sched::check_interrupts()?;
        if item.is_null() && null.is_none() {
            continue;
        }
        if !first {
            bulk::push_bytes(&mut out, separator.as_bytes())?;
        }
        first = false;
        match (item, null) {
            (Datum::Null, Some(word)) => bulk::push_bytes(&mut out, word.as_bytes())?,
            _ => io::output(array.element, item, cx, &mut out)?,
        }
    }
    bulk::text(out).map(Datum::Text)
}

/// Parts of a text: between separators, its characters when the separator is NULL.
fn text_parts(a: &[Datum]) -> Result<Option<Vec<Datum>>> {
    if a[0].is_null() {
        return Ok(None);
    }
    let s = a[0].as_str();
    let null = a.get(2).filter(|d| !d.is_null()).map(Datum::as_str);
    let item = |part: &str| if null == Some(part) { Datum::Null } else { Datum::text(part) };
    let (mut parts, mut pace) = (Vec::new(), Pace::default());
    let mut add = |part: &str| {
        parts.push(item(part));
        pace.step()
    };
    match &a[1] {
        _ if s.is_empty() => {}
        Datum::Null => s.chars().try_for_each(|c| add(c.encode_utf8(&mut [0; 4])))?,
        sep if sep.as_str().is_empty() => add(s)?,
        sep => s.split(sep.as_str()).try_for_each(add)?,
    }
    Ok(Some(parts))
}

fn string_to_array(a: &[Datum]) -> Result<Datum> {
    Ok(text_parts(a)?.map_or(Datum::Null, |parts| Datum::array(oids::TEXT, parts)))
}

/// Whether each item of `b` is in `a`; NULLs are in nothing.
fn contains(a: &Array, b: &Array) -> Result<bool> {
    for y in &b.items {
        if !has(a, y)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn overlaps(a: &Array, b: &Array) -> Result<bool> {
    for y in &b.items {
        if has(a, y)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether an array has an item that equals this one.
fn has(a: &Array, y: &Datum) -> Result<bool> {
    if y.is_null() {
        return Ok(false);
    }
    let mut pace = Pace::default();
    for x in &a.items {
        pace.step()?;
        if !x.is_null() && compare(x, y).is_eq() {
            return Ok(true);
        }
    }
    sched::check_interrupts().map(|()| false)
}

fn dims_text(array: &Array) -> Datum {
    if array.dims.is_empty() {
        return Datum::Null;
    }
    let shown: Vec<String> =
        array.dims.iter().map(|(len, low)| format!("[{low}:{}]", low + len - 1)).collect();
    Datum::from(shown.concat())
}

fn trim(array: &Array, n: i32) -> Result<Datum> {
    let len = array.dims.first().map_or(0, |d| d.0);
    if n < 0 || n > len {
        return Err(err!(
            ARRAY_ELEMENT_ERROR,
            "number of elements to trim must be between 0 and {len}"
        ));
    }
    let keep = (len - n) as usize;
    let row = array.items.len() / len.max(1) as usize;
    let items = bulk::copied(&array.items[..keep * row])?;
    let mut out = Array { element: array.element, dims: array.dims.clone(), items };
    match out.dims.first_mut() {
        Some(d) if keep > 0 => *d = (keep as i32, 1),
        _ => out.dims.clear(),
    }
    Ok(build(out))
}

fn subscripts(a: &[Datum]) -> Result<Vec<Datum>> {
    let Some((len, low)) = dimension(a) else { return Ok(Vec::new()) };
    let backward = a.get(2).is_some_and(Datum::as_bool);
    let (mut all, mut pace) = (room_for(usize::try_from(*len).unwrap_or(0))?, Pace::default());
    for n in 0..*len {
        pace.step()?;
        all.push(Datum::Int4(low + if backward { len - 1 - n } else { n }));
    }
    Ok(all)
}

/// `information_schema._pg_expandarray`: each item with its number, from 1.
fn expand(array: &Datum) -> Result<Vec<Datum>> {
    let array = array.as_array();
    let columns = vec![(Text::from("x"), array.element), (Text::from("n"), oids::INT4)];
    let shape = Arc::new(Shape { ty: oids::RECORD, columns });
    let Some((len, _)) = array.dims.first() else { return Ok(Vec::new()) };
    // One subscript finds nothing in several dimensions.
    let item = |n: i32| match array.dims.len() {
        1 => array.items[n as usize].clone(),
        _ => Datum::Null,
    };
    let mut pace = Pace::default();
    let pair = |n| {
        pace.step()?;
        Ok(Datum::record(shape.clone(), vec![item(n), Datum::Int4(n + 1)]))
    };
    (0..*len).map(pair).collect()
}

/// The bodies of this family.
pub(super) fn bodies() -> Vec<NamedBody> {
    let mut all = shape();
    all.extend(content());
    all
}

fn shape() -> Vec<NamedBody> {
    vec![
        ("array_length", S(|a, _| Ok(dimension(a).map(|d| d.0).into()))),
        ("array_lower", S(|a, _| Ok(dimension(a).map(|d| d.1).into()))),
        ("array_upper", S(|a, _| Ok(dimension(a).map(|d| d.1 + d.0 - 1).into()))),
        (
            "array_ndims",
            S(|a, _| {
                let n = a[0].as_array().dims.len() as i32;
                Ok((n > 0).then_some(n).into())
            }),
        ),
        ("array_dims", S(|a, _| Ok(dims_text(a[0].as_array())))),
        ("array_cardinality", S(|a, _| Ok((a[0].as_array().items.len() as i32).into()))),
        ("trim_array", S(|a, _| trim(a[0].as_array(), a[1].as_int4()))),
        ("expand_array", Body::Set(|a, _| expand(&a[0]))),
        ("generate_subscripts", Body::Set(|a, _| subscripts(a))),
        ("generate_subscripts_nodir", Body::Set(|a, _| subscripts(a))),
        ("array_unnest", Body::Set(|a, _| bulk::copied(&a[0].as_array().items))),
    ]
}

fn content() -> Vec<NamedBody> {
    vec![
        ("array_append", Body::Typed(|a, t, _| typed(extend(&a[0], &a[1], false)?, t))),
        ("array_prepend", Body::Typed(|a, t, _| typed(extend(&a[1], &a[0], true)?, t))),
        ("array_cat", S(|a, _| concat(&a[0], &a[1]))),
        ("pg_options_to_table", Body::Set(|a, _| Ok(options(&a[0])))),
        ("oidvectortypes", S(|a, _| type_names(&a[0]))),
        ("array_position", S(|a, _| position(a))),
        ("array_position_start", S(|a, _| position(a))),
        ("array_positions", S(|a, _| positions(a))),
        ("array_remove", S(|a, _| remove(a))),
        ("array_replace", S(|a, _| replace(a))),
        ("array_fill", Body::Typed(|a, t, _| typed(fill(a)?, t))),
        ("array_fill_with_lower_bounds", Body::Typed(|a, t, _| typed(fill(a)?, t))),
        ("array_to_text", S(to_string)),
        ("array_to_text_null", S(to_string)),
        ("text_to_array", S(|a, _| string_to_array(a))),
        ("text_to_array_null", S(|a, _| string_to_array(a))),
        ("text_to_table", Body::Set(|a, _| Ok(text_parts(a)?.unwrap_or_default()))),
        ("text_to_table_null", Body::Set(|a, _| Ok(text_parts(a)?.unwrap_or_default()))),
        ("arraycontains", S(|a, _| contains(a[0].as_array(), a[1].as_array()).map(Into::into))),
        ("arraycontained", S(|a, _| contains(a[1].as_array(), a[0].as_array()).map(Into::into))),
        ("arrayoverlap", S(|a, _| overlaps(a[0].as_array(), a[1].as_array()).map(Into::into))),
    ]
}
