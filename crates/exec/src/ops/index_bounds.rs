//! From the values of an index scan's bounds to ranges of key bytes.

use access::KeyRange;
use base::{Oid, Result};
use catalog::{Index, Table};
use sql::plan::IndexBounds;
use types::key::{self, KeyOrder};
use types::{Datum, oids};

use crate::eval;
use crate::rows::Row;
use crate::run::Run;
use crate::table::KeyCodec;

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

/// The ranges to seek, in the order of the scan; none when no row can match.
///
/// # Errors
/// Those of the bounds' expressions.
pub fn ranges(
    table: &Table,
    index: &Index,
    bounds: &IndexBounds,
    backward: bool,
    run: &mut Run<'_, '_>,
) -> Result<Vec<KeyRange>> {
    let codec = KeyCodec::new(table, index);
    let mut prefix = Vec::with_capacity(32);
    for (expr, (_, ty, order)) in bounds.equal.iter().zip(&codec.columns) {
        match fit(*ty, eval::eval(expr, Row::Empty, run)?) {
            Fit::Value(value) => key::encode(*ty, &value, *order, &mut prefix)?,
            _ => return Ok(vec![]),
        }
    }
    let Some((_, ty, order)) = codec.columns.get(bounds.equal.len()).copied() else {
        return Ok(vec![KeyRange::prefix(&prefix)]);
    };
    if let Some(list) = &bounds.any {
        let values = eval::eval(list, Row::Empty, run)?;
        return any_of(&prefix, values, ty, order, backward);
    }
    if bounds.lower.is_none() && bounds.upper.is_none() {
        return Ok(vec![KeyRange::prefix(&prefix)]);
    }
    let mut range = not_null(&prefix, ty, order)?;
    for (bound, is_lower) in [(&bounds.lower, true), (&bounds.upper, false)] {
        let Some((expr, included)) = bound else {
            continue;
        };
        let value = match fit(ty, eval::eval(expr, Row::Empty, run)?) {
            Fit::Value(value) => value,
            Fit::Null => return Ok(vec![]),
            Fit::Below if is_lower => continue,
            Fit::Above if !is_lower => continue,
            Fit::Below | Fit::Above => return Ok(vec![]),
        };
        let mut bytes = prefix.clone();
        key::encode(ty, &value, order, &mut bytes)?;
        narrow(&mut range, &bytes, is_lower != order.descending, *included);
    }
    Ok(if is_empty(&range) { vec![] } else { vec![range] })
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

/// One range for each distinct value of an array.
fn any_of(
    prefix: &[u8],
    values: Datum,
    ty: Oid,
    order: KeyOrder,
    backward: bool,
) -> Result<Vec<KeyRange>> {
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
    if backward {
        keys.reverse();
    }
    Ok(keys.iter().map(|k| KeyRange::prefix(k)).collect())
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
