//! From the values of an index scan's bounds to ranges of key bytes.

use access::KeyRange;
use base::{Oid, Result};
use sql::plan::IndexBounds;
use types::key::{self, KeyOrder};
use types::{Datum, oids};

use crate::eval;
use crate::rows::Row;
use crate::run::Run;
use crate::table::{KeyCodec, KeyColumn};

/// Whether a value fits the column's type.
enum Fit {
    Value(Datum),
    /// Beyond the type's smallest or largest value.
    Below,
    Above,
    /// Nothing equals or bounds it.
    Null,
}

/// Brings an integer to the column's width; other values are of the column's type already.
fn fit(ty: Oid, value: Datum) -> Fit {
    let wide = match value {
        Datum::Null => return Fit::Null,
        Datum::Int2(v) => i64::from(v),
        Datum::Int4(v) => i64::from(v),
        Datum::Int8(v) => v,
        value => return Fit::Value(value),
    };
    let below = |min: i64| if wide < min { Fit::Below } else { Fit::Above };
    match ty {
        oids::INT2 => i16::try_from(wide)
            .map_or_else(|_| below(i64::from(i16::MIN)), |v| Fit::Value(Datum::Int2(v))),
        oids::INT4 => i32::try_from(wide)
            .map_or_else(|_| below(i64::from(i32::MIN)), |v| Fit::Value(Datum::Int4(v))),
        oids::OID => u32::try_from(wide).map_or_else(|_| below(0), |v| Fit::Value(Datum::Oid(v))),
        _ => Fit::Value(Datum::Int8(wide)),
    }
}

/// Appends the key bytes of values; false when nothing equals one of them.
fn append<'c>(
    exprs: &[sql::Expr],
    columns: &mut impl Iterator<Item = &'c KeyColumn>,
    run: &mut Run<'_, '_>,
    key: &mut Vec<u8>,
) -> Result<bool> {
    for (expr, (_, ty, order)) in exprs.iter().zip(columns) {
        match fit(*ty, eval::eval(expr, Row::Empty, run)?) {
            Fit::Value(value) => key::encode(*ty, &value, *order, key)?,
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// One end of a range.
enum End {
    Open,
    /// Key bytes, and whether they are included.
    At(Vec<u8>, bool),
    /// No row is within.
    Never,
}

fn end(
    bound: Option<&(sql::Expr, bool)>,
    is_lower: bool,
    (_, ty, order): &KeyColumn,
    run: &mut Run<'_, '_>,
) -> Result<End> {
    let Some((expr, included)) = bound else { return Ok(End::Open) };
    let value = match fit(*ty, eval::eval(expr, Row::Empty, run)?) {
        Fit::Value(value) => value,
        Fit::Below if is_lower => return Ok(End::Open),
        Fit::Above if !is_lower => return Ok(End::Open),
        Fit::Null | Fit::Below | Fit::Above => return Ok(End::Never),
    };
    let mut bytes = Vec::with_capacity(16);
    key::encode(*ty, &value, *order, &mut bytes)?;
    Ok(End::At(bytes, *included))
}

/// The ranges to seek, in the order of the scan; none when no row can match.
///
/// # Errors
/// Those of the bounds' expressions.
pub fn ranges(
    codec: &KeyCodec,
    bounds: &IndexBounds,
    backward: bool,
    run: &mut Run<'_, '_>,
) -> Result<Vec<KeyRange>> {
    let mut columns = codec.columns.iter();
    let mut prefix = Vec::with_capacity(32);
    if !append(&bounds.equal, &mut columns.by_ref().take(bounds.equal.len()), run, &mut prefix)? {
        return Ok(vec![]);
    }
    let mut prefixes = vec![prefix];
    if let Some(list) = &bounds.any
        && let Some((_, ty, order)) = columns.next()
    {
        let values = eval::eval(list, Row::Empty, run)?;
        let mut tail = Vec::new();
        if !append(&bounds.after, &mut columns.by_ref().take(bounds.after.len()), run, &mut tail)? {
            return Ok(vec![]);
        }
        prefixes = any_of(&prefixes[0], values, *ty, *order)?;
        prefixes.iter_mut().for_each(|key| key.extend_from_slice(&tail));
        if backward {
            prefixes.reverse();
        }
    }
    let Some(column) = columns.next() else {
        return Ok(prefixes.iter().map(|key| KeyRange::prefix(key)).collect());
    };
    if bounds.lower.is_none() && bounds.upper.is_none() {
        return Ok(prefixes.iter().map(|key| KeyRange::prefix(key)).collect());
    }
    let ends = [
        (end(bounds.lower.as_ref(), true, column, run)?, true),
        (end(bounds.upper.as_ref(), false, column, run)?, false),
    ];
    let (_, ty, order) = column;
    let mut out = Vec::with_capacity(prefixes.len());
    for prefix in prefixes {
        let mut range = not_null(&prefix, *ty, *order)?;
        for (end, is_lower) in &ends {
            match end {
                End::Open => {}
                End::Never => return Ok(vec![]),
                End::At(value, included) => {
                    let mut bytes = prefix.clone();
                    bytes.extend_from_slice(value);
                    narrow(&mut range, &bytes, *is_lower != order.descending, *included);
                }
            }
        }
        if !is_empty(&range) {
            out.push(range);
        }
    }
    Ok(out)
}

fn is_empty(range: &KeyRange) -> bool {
    range.to.as_ref().is_some_and(|to| *to <= range.from)
}

/// Moves one end of the range: `from_below` is the end with the smaller bytes.
fn narrow(range: &mut KeyRange, bytes: &[u8], from_below: bool, included: bool) {
    let after = || KeyRange::prefix(bytes).to;
    match (from_below, included) {
        (true, true) => range.from = bytes.to_vec(),
        (true, false) => match after() {
            Some(after) => range.from = after,
            None => range.to = Some(range.from.clone()),
        },
        (false, true) => range.to = after(),
        (false, false) => range.to = Some(bytes.to_vec()),
    }
}

/// All keys with the prefix whose next column is not NULL.
fn not_null(prefix: &[u8], ty: Oid, order: KeyOrder) -> Result<KeyRange> {
    let mut range = KeyRange::prefix(prefix);
    let mut null = prefix.to_vec();
    key::encode(ty, &Datum::Null, order, &mut null)?;
    if order.nulls_first {
        if let Some(after) = KeyRange::prefix(&null).to {
            range.from = after;
        }
    } else {
        range.to = Some(null);
    }
    Ok(range)
}

/// The prefix with each distinct value of an array, in order.
fn any_of(prefix: &[u8], values: Datum, ty: Oid, order: KeyOrder) -> Result<Vec<Vec<u8>>> {
    let Datum::Array(array) = values else {
        return Ok(vec![]);
    };
    let mut keys = Vec::with_capacity(array.items.len());
    for item in &array.items {
        if let Fit::Value(value) = fit(ty, item.clone()) {
            let mut bytes = prefix.to_vec();
            key::encode(ty, &value, order, &mut bytes)?;
            keys.push(bytes);
        }
    }
    keys.sort_unstable();
    keys.dedup();
    Ok(keys)
}

/// The exact key when every column of the index is given by equality; None when no row matches.
///
/// # Errors
/// Those of the expressions.
pub fn point(
    codec: &KeyCodec,
    equal: &[sql::Expr],
    run: &mut Run<'_, '_>,
    key: &mut Vec<u8>,
) -> Result<bool> {
    for (expr, (_, ty, order)) in equal.iter().zip(&codec.columns) {
        match fit(*ty, eval::eval(expr, Row::Empty, run)?) {
            Fit::Value(value) => key::encode(*ty, &value, *order, key)?,
            _ => return Ok(false),
        }
    }
    Ok(true)
}
