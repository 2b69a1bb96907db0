//! From the values of an index scan's bounds to ranges of key bytes.

use access::{BTree, KeyRange};
use base::{Oid, Result};
use catalog::Index;
use sql::Expr;
use sql::expr::SortKey;
use sql::plan::{IndexBounds, KeyStep, Scan, ScanColumn};
use types::Datum;
use types::cross::{self, Place};
use types::key::{self, KeyOrder};

use crate::eval;
use crate::rows::Row;
use crate::run::Run;
use crate::table::{KeyCodec, KeyColumn};

/// A value's place among those of the column.
fn place(expr: &Expr, ty: Oid, run: &mut Run<'_, '_>) -> Result<Place> {
    let value = eval::eval(expr, Row::Empty, run)?;
    cross::place(ty, value, run.cx.format)
}

/// Appends the key bytes of values; false when nothing equals one of them.
fn append<'c>(
    exprs: &[Expr],
    columns: impl Iterator<Item = &'c KeyColumn>,
    run: &mut Run<'_, '_>,
    key: &mut Vec<u8>,
) -> Result<bool> {
    for (expr, (_, ty, order)) in exprs.iter().zip(columns) {
        match place(expr, *ty, run)? {
            Place::At(value) => key::encode(*ty, &value, *order, key)?,
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

/// The end of a range that a row of values makes, over so many columns of one direction. Behind a value
/// that is none of its column's, the further ones say nothing.
fn end(
    bound: Option<&(Vec<Expr>, bool)>,
    is_lower: bool,
    columns: &[KeyColumn],
    run: &mut Run<'_, '_>,
) -> Result<End> {
    let Some((row, included)) = bound else { return Ok(End::Open) };
    let mut bytes = Vec::with_capacity(16);
    for (n, (expr, (_, ty, order))) in row.iter().zip(columns).enumerate() {
        let (value, included) = match (place(expr, *ty, run)?, is_lower) {
            (Place::At(value), _) => {
                key::encode(*ty, &value, *order, &mut bytes)?;
                continue;
            }
            (Place::Behind(value), _) => (value, !is_lower),
            (Place::Near(low, _), true) => (low, true),
            (Place::Near(_, high), false) => (high, true),
            // What is equal so far is within, or is not.
            (Place::Below, true) | (Place::Above, false) if n == 0 => return Ok(End::Open),
            (Place::Below, true) | (Place::Above, false) => return Ok(End::At(bytes, true)),
            (Place::Null, _) if n > 0 => return Ok(End::At(bytes, true)),
            (Place::Null | Place::Below | Place::Above, _) if n == 0 => return Ok(End::Never),
            (Place::Null | Place::Below | Place::Above, _) => return Ok(End::At(bytes, false)),
        };
        key::encode(*ty, &value, *order, &mut bytes)?;
        return Ok(End::At(bytes, included));
    }
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
    let mut out = Vec::new();
    match bounds.either.is_empty() {
        true => add_ranges(codec, bounds, run, &mut out)?,
        false => {
            for arm in &bounds.either {
                sched::check_interrupts()?;
                add_ranges(codec, arm, run, &mut out)?;
            }
            out = united(out);
        }
    }
    if backward {
        out.reverse();
    }
    Ok(out)
}

/// Ranges in order, those that meet as one.
fn united(mut ranges: Vec<KeyRange>) -> Vec<KeyRange> {
    ranges.sort_unstable_by(|a, b| a.from.cmp(&b.from));
    let mut out: Vec<KeyRange> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match out.last_mut() {
            Some(last) if last.to.as_ref().is_none_or(|to| *to >= range.from) => {
                let further = match (&last.to, &range.to) {
                    (Some(a), Some(b)) => a < b,
                    (to, _) => to.is_some(),
                };
                if further {
                    last.to = range.to;
                }
            }
            _ => out.push(range),
        }
    }
    out
}

/// Adds the ranges of bounds that are no union, in the index's order.
fn add_ranges(
    codec: &KeyCodec,
    bounds: &IndexBounds,
    run: &mut Run<'_, '_>,
    out: &mut Vec<KeyRange>,
) -> Result<()> {
    let mut prefix = Vec::with_capacity(32);
    if !append(&bounds.equal, codec.columns.iter(), run, &mut prefix)? {
        return Ok(());
    }
    let mut prefixes = vec![prefix];
    for (step, (_, ty, order)) in bounds.steps.iter().zip(&codec.columns[bounds.equal.len()..]) {
        let tails = match step {
            KeyStep::Equal(e) => match place(e, *ty, run)? {
                Place::At(value) => vec![encoded(*ty, &value, *order)?],
                _ => return Ok(()),
            },
            KeyStep::Any(list) => any_of(list, *ty, *order, run)?,
            KeyStep::Null => vec![encoded(*ty, &Datum::Null, *order)?],
            KeyStep::Each(_) => {
                prefixes = each(codec, &prefixes, *ty, *order, run)?;
                continue;
            }
        };
        prefixes = prefixes
            .iter()
            .flat_map(|prefix| tails.iter().map(|tail| [&prefix[..], &tail[..]].concat()))
            .collect();
    }
    let columns = &codec.columns[bounds.fixed()..];
    let unbounded = bounds.lower.is_none()
        && bounds.upper.is_none()
        && bounds.begins.is_none()
        && !bounds.not_null;
    let (Some((_, ty, order)), false) = (columns.first(), unbounded) else {
        out.extend(prefixes.iter().map(|key| KeyRange::prefix(key)));
        return Ok(());
    };
    let ends = [
        (end(bounds.lower.as_ref(), true, columns, run)?, true),
        (end(bounds.upper.as_ref(), false, columns, run)?, false),
    ];
    let begins = bounds.begins.as_ref().map(|b| beginning(b, *order, run)).transpose()?;
    for prefix in prefixes {
        let mut range = not_null(&prefix, *ty, *order)?;
        for (end, is_lower) in &ends {
            match end {
                End::Open => {}
                End::Never => return Ok(()),
                End::At(value, included) => {
                    let bytes = [&prefix[..], &value[..]].concat();
                    narrow(&mut range, &bytes, *is_lower != order.descending, *included);
                }
            }
        }
        match &begins {
            None => {}
            Some(None) => return Ok(()),
            Some(Some(text)) => {
                let with = KeyRange::prefix(&[&prefix[..], &text[..]].concat());
                narrow(&mut range, &with.from, true, true);
                range.to = match (range.to, with.to) {
                    (Some(a), Some(b)) => Some(a.min(b)),
                    (a, b) => a.or(b),
                };
            }
        }
        if !is_empty(&range) {
            out.push(range);
        }
    }
    Ok(())
}

/// The prefixes with each value that the index has behind them, by a jump from one to the next.
fn each(
    codec: &KeyCodec,
    prefixes: &[Vec<u8>],
    ty: Oid,
    order: KeyOrder,
    run: &mut Run<'_, '_>,
) -> Result<Vec<Vec<u8>>> {
    let tree = BTree::open(&run.cx.engine.storage, codec.rel);
    let mut out = Vec::new();
    for prefix in prefixes {
        let mut cursor = tree.scan(KeyRange::prefix(prefix), false);
        while let Some((bytes, _)) = cursor.next(run.cx.tx)? {
            sched::check_interrupts()?;
            let read = key::decode(ty, &bytes[prefix.len()..], order);
            let (_, len) =
                read.ok_or_else(|| base::err!(INDEX_CORRUPTED, "key of an index can't be read"))?;
            let found = bytes[..prefix.len() + len].to_vec();
            let after = KeyRange::prefix(&found).to;
            out.push(found);
            match after {
                Some(after) => cursor.skip_to(&after),
                None => break,
            }
        }
    }
    Ok(out)
}

fn encoded(ty: Oid, value: &Datum, order: KeyOrder) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(16);
    key::encode(ty, value, order, &mut bytes)?;
    Ok(bytes)
}

/// The key bytes that all texts have which begin so; None: nothing does.
fn beginning(
    (text, is_pattern): &(Expr, bool),
    order: KeyOrder,
    run: &mut Run<'_, '_>,
) -> Result<Option<Vec<u8>>> {
    let Datum::Text(text) = eval::eval(text, Row::Empty, run)? else { return Ok(None) };
    Ok(Some(match is_pattern {
        true => key::text_beginning(&types::func::like_beginning(&text), order),
        false => key::text_beginning(text.as_bytes(), order),
    }))
}

fn is_empty(range: &KeyRange) -> bool {
    range.to.as_ref().is_some_and(|to| *to <= range.from)
}

/// Moves one end of the range inwards: `from_below` is the end with the smaller bytes.
fn narrow(range: &mut KeyRange, bytes: &[u8], from_below: bool, included: bool) {
    let after = || KeyRange::prefix(bytes).to;
    if from_below {
        let from = match included {
            true => bytes.to_vec(),
            false => match after() {
                Some(after) => after,
                None => {
                    range.to = Some(range.from.clone());
                    return;
                }
            },
        };
        if from > range.from {
            range.from = from;
        }
    } else {
        let to = if included { after() } else { Some(bytes.to_vec()) };
        range.to = match (range.to.take(), to) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
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

/// The keys of an array's distinct values, in order.
///
/// # Errors
/// Those of the expression.
pub fn any_of(
    list: &Expr,
    ty: Oid,
    order: KeyOrder,
    run: &mut Run<'_, '_>,
) -> Result<Vec<Vec<u8>>> {
    let Datum::Array(array) = eval::eval(list, Row::Empty, run)? else {
        return Ok(vec![]);
    };
    let mut keys = Vec::with_capacity(array.items.len());
    for item in &array.items {
        if let Place::At(value) = cross::place(ty, item.clone(), run.cx.format)? {
            keys.push(encoded(ty, &value, order)?);
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
    equal: &[Expr],
    run: &mut Run<'_, '_>,
    key: &mut Vec<u8>,
) -> Result<bool> {
    append(equal, codec.columns.iter(), run, key)
}

/// The key bytes from which a scan without bounds has rows whose `key` is no less than a value; None unless the
/// index is in that order.
///
/// # Errors
/// Those of the value's form as a key.
pub fn beginning_at(
    codec: &KeyCodec,
    (scan, index, bounds): (&Scan, &Index, &IndexBounds),
    key: &SortKey,
    value: &Datum,
) -> Result<Option<Vec<u8>>> {
    let (Some((_, ty, order)), Some(first)) = (codec.columns.first(), index.columns.first()) else {
        return Ok(None);
    };
    let Expr::Column(column, of_key) = &key.expr else { return Ok(None) };
    let read = scan.columns.get(usize::from(*column));
    let ordered = matches!(read, Some(ScanColumn::Attr(n)) if *n == first.column)
        && bounds.fixed() == 0
        && bounds.either.is_empty()
        && of_key == ty
        && key.descending == order.descending;
    Ok(if ordered && !value.is_null() { Some(encoded(*ty, value, *order)?) } else { None })
}
