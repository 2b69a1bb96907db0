//! ANALYZE for extended statistics and for expressions of indexes, from the sample that it has drawn.
//!
//! * *ndistinct*: the number of combinations of each two or more attributes, estimated as a column's is (Haas and
//!   Stokes, Duj1).
//! * *dependencies*: `a, b => c` holds for a row when all rows with its `a` and `b` have its `c`; the degree is the share
//!   of such rows.
//! * *mcv*: the most common combinations of all attributes with their shares, and the shares that they would have if
//!   columns knew nothing of each other.

use std::cmp::Ordering;

use base::{Oid, Result};
use catalog::object::{
    ColumnStats, CommonItem, Dependency, DistinctItem, ExtendedData, ExtendedStatistics, KeyStats,
};
use catalog::{Snapshot, Table};
use exec::context::ExecContext;
use exec::eval;
use exec::rows::Row;
use exec::spi::{with_context, with_run};
use types::{Datum, FormatContext};

use super::analyze::{column_stats, distinct_of};

/// The sample: rows in table order, and how many rows the table has.
#[derive(Clone, Copy)]
pub(super) struct Sample<'a> {
    pub rows: &'a [Vec<Datum>],
    pub total: f64,
    /// The statistics target.
    pub target: usize,
}

/// Values of expressions by row.
fn computed(
    cx: &mut ExecContext<'_>,
    table: &Table,
    texts: &[&str],
    sample: Sample<'_>,
) -> Result<Vec<Vec<Datum>>> {
    if texts.is_empty() {
        return Ok(vec![Vec::new(); sample.rows.len()]);
    }
    let exprs = with_context(cx, |c| sql::stored::row_expressions(c, table, texts))?;
    exec::security::restricted(cx, table.owner, |cx| {
        with_run(cx, |run| {
            let mut out = Vec::with_capacity(sample.rows.len());
            for row in sample.rows {
                sched::check_interrupts()?;
                let one = exprs.iter().map(|e| eval::eval(e, Row::Values(row), run));
                out.push(one.collect::<Result<Vec<Datum>>>()?);
            }
            Ok(out)
        })
    })
}

/// Statistics of the expressions of a table's indexes.
///
/// # Errors
/// Errors that the expressions raise; interrupts.
pub(super) fn of_indexes(
    cx: &mut ExecContext<'_>,
    table: &Table,
    sample: Sample<'_>,
) -> Result<Vec<KeyStats>> {
    let mut out = Vec::new();
    let view = cx.catalog_tx.view();
    for index in view.indexes_of(table) {
        let keys = index.columns.iter().enumerate();
        let keys: Vec<(usize, &catalog::KeyExpression)> =
            keys.filter_map(|(n, c)| Some((n, &**c.expression.as_ref()?))).collect();
        if keys.is_empty() {
            continue;
        }
        let texts: Vec<&str> = keys.iter().map(|(_, e)| e.sql.as_str()).collect();
        let values = computed(cx, table, &texts, sample)?;
        for (at, (place, e)) in keys.iter().enumerate() {
            let stats = expression_stats(Oid(e.ty), &values, at, sample, cx.format)?;
            out.push(KeyStats { index: index.oid, place: *place as u16, stats });
        }
    }
    Ok(out)
}

fn expression_stats(
    ty: Oid,
    values: &[Vec<Datum>],
    at: usize,
    sample: Sample<'_>,
    format: &FormatContext,
) -> Result<ColumnStats> {
    let values: Vec<&Datum> = values.iter().map(|row| &row[at]).collect();
    column_stats(ty, &values, sample.total, sample.target, format)
}

/// The findings for each of a table's extended statistics.
///
/// # Errors
/// Errors that the expressions raise; interrupts.
pub(super) fn of_table(
    cx: &mut ExecContext<'_>,
    table: &Table,
    sample: Sample<'_>,
) -> Result<Vec<ExtendedData>> {
    let view = cx.catalog_tx.view();
    let mut all: Vec<&ExtendedStatistics> =
        view.extended_statistics().filter(|s| s.table == table.oid && s.target != 0).collect();
    all.sort_by_key(|s| s.oid);
    let mut out = Vec::with_capacity(all.len());
    for wanted in all {
        let skipped = |n: &u16| table.columns[usize::from(*n) - 1].statistics == Some(0);
        if wanted.columns.iter().any(skipped) {
            let place = |id: u32| view.schema(id).map_or("", |s| s.name.as_str());
            let message = format!(
                "statistics object \"{}.{}\" could not be computed for relation \"{}.{}\"",
                place(wanted.schema),
                wanted.name,
                place(table.schema),
                table.name
            );
            cx.hooks.notice("WARNING", base::err!(INVALID_OBJECT_DEFINITION, "{message}"));
            continue;
        }
        let target = usize::try_from(wanted.target).unwrap_or(sample.target);
        out.push(one(cx, &view, table, wanted, Sample { target, ..sample })?);
    }
    Ok(out)
}

fn one(
    cx: &mut ExecContext<'_>,
    _view: &Snapshot,
    table: &Table,
    wanted: &ExtendedStatistics,
    sample: Sample<'_>,
) -> Result<ExtendedData> {
    let texts: Vec<&str> = wanted.expressions.iter().map(|e| e.sql.as_str()).collect();
    let values = computed(cx, table, &texts, sample)?;
    let mut data = ExtendedData { statistics: wanted.oid, ..ExtendedData::default() };
    for (at, e) in wanted.expressions.iter().enumerate() {
        data.expressions.push(expression_stats(Oid(e.ty), &values, at, sample, cx.format)?);
    }
    let of_table = |row: &[Datum]| -> Vec<Datum> {
        wanted.columns.iter().map(|n| row[usize::from(*n) - 1].clone()).collect()
    };
    let rows: Vec<Vec<Datum>> = sample
        .rows
        .iter()
        .zip(values)
        .map(|(row, values)| of_table(row).into_iter().chain(values).collect())
        .collect();
    let ranks = ranked(&rows, wanted.len())?;
    if wanted.kinds.contains('d') {
        data.distinct = distinct(wanted, &ranks, sample.total)?;
    }
    if wanted.kinds.contains('f') {
        data.dependencies = dependencies(wanted, &ranks)?;
    }
    if wanted.kinds.contains('m') {
        let types = wanted.columns.iter().map(|n| Oid(table.columns[usize::from(*n) - 1].ty));
        let types: Vec<Oid> = types.chain(wanted.expressions.iter().map(|e| Oid(e.ty))).collect();
        data.common = common(&types, &rows, &ranks, sample, cx.format)?;
    }
    Ok(data)
}

/// Each value's place among the different values of its column, by column: what is left of a value for counting. NULL is
/// the last.
fn ranked(rows: &[Vec<Datum>], columns: usize) -> Result<Vec<Vec<u32>>> {
    let mut out = Vec::with_capacity(columns);
    for column in 0..columns {
        sched::check_interrupts()?;
        let mut order: Vec<u32> = (0..rows.len() as u32).collect();
        let value = |n: u32| &rows[n as usize][column];
        let compare = |a: &u32, b: &u32| match (value(*a).is_null(), value(*b).is_null()) {
            (false, false) => types::io::compare(value(*a), value(*b)),
            (a, b) => a.cmp(&b),
        };
        order.sort_by(compare);
        let mut ranks = vec![0; rows.len()];
        let mut rank = 0;
        for (n, at) in order.iter().enumerate() {
            if n > 0 && compare(&order[n - 1], at) != Ordering::Equal {
                rank += 1;
            }
            ranks[*at as usize] = rank;
        }
        out.push(ranks);
    }
    Ok(out)
}

/// Row numbers sorted by some columns.
fn sorted(ranks: &[Vec<u32>], by: &[usize]) -> Result<Vec<u32>> {
    sched::check_interrupts()?;
    let mut order: Vec<u32> = (0..ranks.first().map_or(0, Vec::len) as u32).collect();
    order.sort_by(|a, b| compare_rows(ranks, by, *a, *b));
    Ok(order)
}

fn compare_rows(ranks: &[Vec<u32>], by: &[usize], a: u32, b: u32) -> Ordering {
    let one = |c: &usize| ranks[*c][a as usize].cmp(&ranks[*c][b as usize]);
    by.iter().map(one).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
}

/// Runs of rows that are equal in some columns, of rows sorted by them.
fn groups<'a>(
    ranks: &'a [Vec<u32>],
    by: &'a [usize],
    order: &'a [u32],
) -> impl Iterator<Item = &'a [u32]> {
    order.chunk_by(move |a, b| compare_rows(ranks, by, *a, *b).is_eq())
}

/// All choices of `size` of `count` places, each ascending, in order.
fn choices(count: usize, size: usize) -> Vec<Vec<usize>> {
    let mut out = Vec::new();
    let mut at: Vec<usize> = (0..size).collect();
    loop {
        out.push(at.clone());
        let Some(last) = (0..size).rev().find(|n| at[*n] < count - size + n) else { return out };
        at[last] += 1;
        for n in last + 1..size {
            at[n] = at[n - 1] + 1;
        }
    }
}

fn distinct(of: &ExtendedStatistics, ranks: &[Vec<u32>], total: f64) -> Result<Vec<DistinctItem>> {
    let mut out = Vec::new();
    for size in 2..=of.len() {
        for choice in choices(of.len(), size) {
            let order = sorted(ranks, &choice)?;
            let sizes: Vec<usize> = groups(ranks, &choice, &order).map(<[u32]>::len).collect();
            let once = sizes.iter().filter(|n| **n == 1).count();
            let count = distinct_of(sizes.len() as f64, once as f64, order.len() as f64, total);
            let attributes = choice.iter().map(|n| of.attribute(*n)).collect();
            out.push(DistinctItem { attributes, count });
        }
    }
    Ok(out)
}

fn dependencies(of: &ExtendedStatistics, ranks: &[Vec<u32>]) -> Result<Vec<Dependency>> {
    let mut out = Vec::new();
    for size in 1..of.len() {
        for from in choices(of.len(), size) {
            let order = sorted(ranks, &from)?;
            for to in (0..of.len()).filter(|to| !from.contains(to)) {
                let one_value = |rows: &&[u32]| {
                    let value = |n: &u32| ranks[to][*n as usize];
                    rows.iter().all(|n| value(n) == value(&rows[0]))
                };
                let held = groups(ranks, &from, &order).filter(one_value).map(<[u32]>::len);
                let degree = held.sum::<usize>() as f64 / order.len() as f64;
                if degree > 0.0 {
                    let from = from.iter().map(|n| of.attribute(*n)).collect();
                    out.push(Dependency { from, to: of.attribute(to), degree });
                }
            }
        }
    }
    Ok(out)
}

/// The least count of a combination that is worth keeping: below it, the relative error of its frequency, by the
/// hypergeometric distribution, would be above a fifth.
fn least_count(rows: f64, total: f64) -> f64 {
    let denominator = total - rows + 0.04 * rows * (total - 1.0);
    if denominator <= 0.0 { 0.0 } else { rows * (total - rows) / denominator }
}

fn common(
    types: &[Oid],
    rows: &[Vec<Datum>],
    ranks: &[Vec<u32>],
    sample: Sample<'_>,
    format: &FormatContext,
) -> Result<Vec<CommonItem>> {
    let all: Vec<usize> = (0..types.len()).collect();
    let order = sorted(ranks, &all)?;
    let mut found: Vec<&[u32]> = groups(ranks, &all, &order).collect();
    found.sort_by_key(|rows| std::cmp::Reverse(rows.len()));
    let count = rows.len() as f64;
    let least = least_count(count, sample.total);
    found.truncate(sample.target);
    let kept = found.iter().take_while(|rows| rows.len() as f64 >= least);
    let counts: Vec<Vec<u32>> = ranks.iter().map(|column| counted(column)).collect();
    let mut out = Vec::new();
    for of in kept {
        let first = of[0] as usize;
        let mut item = CommonItem {
            values: Vec::with_capacity(types.len()),
            frequency: of.len() as f64 / count,
            base_frequency: 1.0,
        };
        for (column, ty) in types.iter().enumerate() {
            let value = &rows[first][column];
            item.base_frequency *= f64::from(counts[column][ranks[column][first] as usize]) / count;
            item.values.push(match value.is_null() {
                true => None,
                false => Some(types::io::to_text(*ty, value, format)?.to_string()),
            });
        }
        out.push(item);
    }
    Ok(out)
}

/// How often each rank occurs.
fn counted(ranks: &[u32]) -> Vec<u32> {
    let mut out = vec![0; ranks.iter().max().map_or(0, |most| *most as usize + 1)];
    for rank in ranks {
        out[*rank as usize] += 1;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_come_in_order() {
        assert_eq!(choices(3, 2), [vec![0, 1], vec![0, 2], vec![1, 2]]);
        assert_eq!(choices(3, 3), [vec![0, 1, 2]]);
    }

    #[test]
    fn a_dependency_holds_for_the_rows_whose_group_has_one_value() {
        let of = ExtendedStatistics { columns: vec![1, 2], ..ExtendedStatistics::default() };
        // a: 0 0 1 1, b: 0 0 1 2: a decides b in half of the rows, b decides a in all.
        let found = dependencies(&of, &[vec![0, 0, 1, 1], vec![0, 0, 1, 2]]).expect("no waits");
        let found: Vec<(i16, f64)> = found.iter().map(|d| (d.to, d.degree)).collect();
        assert_eq!(found, [(2, 0.5), (1, 1.0)]);
    }

    #[test]
    fn all_combinations_are_kept_of_a_table_that_was_read_whole() {
        assert_eq!(least_count(1000.0, 1000.0), 0.0);
        assert!(least_count(30_000.0, 1e6) > 20.0);
    }
}
