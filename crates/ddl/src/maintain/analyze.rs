//! ANALYZE: statistics from a sample of rows.
//!
//! Distinct values are estimated after Haas and Stokes (Duj1), as PostgreSQL does.

use std::cmp::Ordering;
use std::sync::Arc;

use base::{Oid, Result};
use catalog::object::ColumnStats;
use catalog::{Object, Table, TableStats};
use sched::observe::progress::{Count, Kind, Progress, Reporting};
use types::{Datum, FormatContext};

use exec::context::ExecContext;
use exec::rows::width;
use exec::session::random;
use exec::table::TableHandle;

use super::extended::{self, Sample};

/// Rows to sample for each unit of the statistics target.
const ROWS_A_TARGET: usize = 300;
/// Longer values make no common values or bounds.
const VALUE_MAX: usize = 256;

/// Rows to look at, and how many there are in all (about).
///
/// Blocks are visited at random, in order; of their rows a reservoir keeps as many as are wanted,
/// undecoded (Vitter 1985, algorithm R).
fn sample(
    cx: &ExecContext<'_>,
    handle: &TableHandle,
    pages: u32,
    wanted: usize,
    progress: &Progress,
) -> Result<(Vec<Vec<Datum>>, f64)> {
    let snapshot = cx.tx.latest_snapshot();
    let mut kept: Vec<(usize, Vec<u8>)> = Vec::new();
    let (mut seen, mut read) = (0usize, 0u32);
    let mut left = (pages as usize).min(wanted);
    progress.set(Count::BlocksTotal, left as u64);
    for block in 0..pages {
        if random() * f64::from(pages - block) >= left as f64 {
            continue;
        }
        sched::check_interrupts()?;
        left -= 1;
        read += 1;
        let mut scan = handle.heap.scan(&snapshot, Some(block..block + 1));
        while scan.next_page(cx.tx, |_, _, data| {
            if kept.len() < wanted {
                kept.push((seen, data.to_vec()));
            } else {
                let place = (random() * (seen + 1) as f64) as usize;
                if let Some((position, bytes)) = kept.get_mut(place) {
                    *position = seen;
                    bytes.clear();
                    bytes.extend_from_slice(data);
                }
            }
            seen += 1;
        })? {}
        progress.set(Count::BlocksDone, u64::from(read));
    }
    kept.sort_unstable_by_key(|(position, _)| *position);
    let rows: Result<Vec<Vec<Datum>>> =
        kept.iter().map(|(_, bytes)| handle.decode_all(bytes)).collect();
    let total = if read == 0 { 0.0 } else { seen as f64 * f64::from(pages) / f64::from(read) };
    Ok((rows?, total.round()))
}

/// Runs of equal values of a sorted column: (index of the first, length).
fn runs(sorted: &[(usize, &Datum)]) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (n, (_, value)) in sorted.iter().enumerate() {
        match runs.last_mut() {
            Some((first, count))
                if types::io::compare(sorted[*first].1, value) == Ordering::Equal =>
            {
                *count += 1;
            }
            _ => runs.push((n, 1)),
        }
    }
    runs
}

/// Distinct values of the whole table, of `d` in the sample of which `once` occur once (Duj1).
pub(super) fn distinct_of(d: f64, once: f64, sampled: f64, total: f64) -> f64 {
    let denominator = sampled - once + once * sampled / total.max(1.0);
    let estimate = if denominator > 0.0 { sampled * d / denominator } else { d };
    estimate.clamp(d, total.max(d)).round()
}

/// The same of a column with these runs of equal values; negative: as a share of all rows. `present`, `total`: rows
/// of the sample and of the table without NULLs; `all`: with them.
fn distinct(runs: &[(usize, usize)], present: f64, total: f64, all: f64) -> f64 {
    let (d, once) = (runs.len() as f64, runs.iter().filter(|r| r.1 == 1).count() as f64);
    if d == 0.0 {
        return 0.0;
    }
    if once >= d {
        return -(total / all.max(1.0)).min(1.0);
    }
    let estimate = if once == 0.0 { d } else { distinct_of(d, once, present, total) };
    if estimate > 0.1 * all { -(estimate / all) } else { estimate }
}

/// How many of the most common values (their counts, descending) are so much more common than the others that they
/// are worth keeping: by more than twice the standard deviation that the sample's count has if the count of a
/// value in the table is as the sample says (hypergeometric).
fn worth_keeping(counts: &[f64], distinct: f64, null: f64, sampled: f64, total: f64) -> usize {
    if sampled >= total || total <= 1.0 {
        return counts.len();
    }
    let mut kept = counts.len();
    let mut before: f64 = counts.iter().take(kept.saturating_sub(1)).sum();
    while kept > 0 {
        let last = counts[kept - 1];
        let rest = (1.0 - before / sampled - null).clamp(0.0, 1.0);
        let others = distinct - (kept as f64 - 1.0);
        let usual = if others > 1.0 { rest / others } else { rest };
        let of_table = total * last / sampled;
        let variance = sampled * of_table * (total - of_table) * (total - sampled)
            / (total * total * (total - 1.0));
        if last > usual * sampled + 2.0 * variance.max(0.0).sqrt() + 0.5 {
            break;
        }
        kept -= 1;
        before -= counts.get(kept.wrapping_sub(1)).copied().unwrap_or(0.0);
    }
    kept
}

/// Physical against logical order.
fn correlation(sorted: &[(usize, &Datum)]) -> f64 {
    let n = sorted.len() as f64;
    if sorted.len() < 2 {
        return 0.0;
    }
    let mean = (n - 1.0) / 2.0;
    let (mut both, mut square, mut places) = (0.0, 0.0, 0.0);
    for (rank, (place, _)) in sorted.iter().enumerate() {
        let (x, y) = (rank as f64 - mean, *place as f64 - mean);
        both += x * y;
        square += x * x;
        places += y * y;
    }
    if square == 0.0 || places == 0.0 { 0.0 } else { both / (square * places).sqrt() }
}

/// The statistics that a sample of a column's values gives; `total`: rows of the table.
pub(super) fn column_stats(
    ty: Oid,
    values: &[&Datum],
    total: f64,
    target: usize,
    format: &FormatContext,
) -> Result<ColumnStats> {
    let mut sorted: Vec<(usize, &Datum)> =
        values.iter().filter(|v| !v.is_null()).enumerate().map(|(n, v)| (n, *v)).collect();
    let mut stats = ColumnStats::default();
    if values.is_empty() {
        return Ok(stats);
    }
    let present = sorted.len() as f64;
    stats.null_fraction = 1.0 - present / values.len() as f64;
    if sorted.is_empty() {
        return Ok(stats);
    }
    stats.width = column_width(ty, &sorted);
    sorted.sort_by(|a, b| types::io::compare(a.1, b.1).then(a.0.cmp(&b.0)));
    let runs = runs(&sorted);
    let share = present / values.len() as f64;
    stats.distinct = distinct(&runs, present, (total * share).max(present), total);
    stats.correlation = correlation(&sorted);
    let text = |n: usize| types::io::to_text(ty, sorted[n].1, format).map(|t| t.to_string());
    let mut common: Vec<(usize, usize)> = runs.iter().copied().filter(|r| r.1 > 1).collect();
    common.sort_by_key(|r| std::cmp::Reverse(r.1));
    let all_fit = common.len() == runs.len() && stats.distinct > 0.0 && runs.len() <= target;
    common.truncate(target);
    if !all_fit {
        let counts: Vec<f64> = common.iter().map(|r| r.1 as f64).collect();
        let count = match stats.distinct {
            share if share < 0.0 => -share * total,
            count => count,
        };
        let sampled = values.len() as f64;
        common.truncate(worth_keeping(&counts, count, stats.null_fraction, sampled, total));
    }
    for (first, count) in &common {
        let value = text(*first)?;
        if value.len() <= VALUE_MAX {
            stats.common.push((value, *count as f64 / values.len() as f64));
        }
    }
    let is_common: std::collections::HashSet<usize> = common.iter().map(|r| r.0).collect();
    let rest: Vec<usize> = runs
        .iter()
        .filter(|r| !is_common.contains(&r.0))
        .flat_map(|(first, count)| *first..*first + *count)
        .collect();
    let bounds = (target + 1).min(runs.len() - common.len());
    if bounds >= 2 {
        for n in 0..bounds {
            let value = text(rest[n * (rest.len() - 1) / (bounds - 1)])?;
            if value.len() <= VALUE_MAX {
                stats.histogram.push(value);
            }
        }
    }
    Ok(stats)
}

fn column_width(ty: Oid, values: &[(usize, &Datum)]) -> i32 {
    if let Some(io) = types::TypeIo::get(ty)
        && io.len > 0
    {
        return i32::from(io.len);
    }
    let bytes = |v: &Datum| match v {
        Datum::Text(t) | Datum::Bpchar(t) => t.len() + 1,
        other => width(other),
    };
    (values.iter().map(|(_, v)| bytes(v)).sum::<usize>() / values.len().max(1)) as i32
}

/// Units of the statistics target.
fn target(cx: &ExecContext<'_>) -> usize {
    match base::settings::SettingId::find("default_statistics_target") {
        Some(id) => cx.settings.int(id).max(1) as usize,
        None => 100,
    }
}

/// The largest statistics target of a table's columns, by which the sample is drawn.
fn largest_target(cx: &ExecContext<'_>, table: &Table) -> usize {
    let own = |(_, c): (u16, &catalog::Column)| c.statistics.map_or(0, usize::from);
    table.live_columns().map(own).max().unwrap_or(0).max(target(cx))
}

/// Statistics of the columns from a sample.
fn columns(
    cx: &ExecContext<'_>,
    table: &Table,
    rows: &[Vec<Datum>],
    total: f64,
) -> Result<Vec<ColumnStats>> {
    let mut columns = Vec::with_capacity(table.columns.len());
    for (n, column) in table.columns.iter().enumerate() {
        sched::check_interrupts()?;
        let target = column.statistics.map_or_else(|| target(cx), usize::from);
        if column.dropped || target == 0 {
            columns.push(ColumnStats::default());
            continue;
        }
        let values: Vec<&Datum> = rows.iter().map(|row| &row[n]).collect();
        columns.push(column_stats(Oid(column.ty), &values, total, target, cx.format)?);
    }
    Ok(columns)
}

/// Stores what the sample says; of an empty table, what was known before stays.
fn put(
    cx: &mut ExecContext<'_>,
    table: &Table,
    mut stats: TableStats,
    rows: &[Vec<Datum>],
) -> Result<()> {
    let before = cx.catalog_tx.view().stats(table.oid).cloned();
    match before.filter(|_| rows.is_empty()) {
        Some(before) => {
            stats.columns.clone_from(&before.columns);
            stats.keys.clone_from(&before.keys);
            stats.extended.clone_from(&before.extended);
        }
        None => {
            stats.columns = columns(cx, table, rows, stats.rows)?;
            let sample = Sample { rows, total: stats.rows, target: target(cx) };
            stats.keys = extended::of_indexes(cx, table, sample)?;
            stats.extended = extended::of_table(cx, table, sample)?;
        }
    }
    cx.catalog_tx.put(cx.tx, Object::Stats(Box::new(stats)))
}

/// Analyzes a partitioned table as a whole: of each partition as large a part of the sample as it has of the pages.
///
/// # Errors
/// I/O, interrupts.
pub fn run_whole(cx: &mut ExecContext<'_>, table: &Arc<Table>) -> Result<String> {
    let wanted = largest_target(cx, table) * ROWS_A_TARGET;
    let progress = Reporting::begin(Kind::Analyze, "ANALYZE", (cx.database.1, table.oid));
    progress.set_phase("acquiring inherited sample rows");
    let mut parts = Vec::new();
    for id in crate::inherit::descendants(cx, table.oid, txn::LockMode::AccessShare)? {
        let part = Arc::new(super::super::refresh(cx, id)?);
        if !part.is_partitioned() && part.foreign.is_none() {
            let pages = super::pages(cx, &part)?;
            parts.push((part, pages));
        }
    }
    let pages: u32 = parts.iter().map(|(_, pages)| *pages).sum();
    let (mut rows, mut total) = (Vec::new(), 0.0);
    for (part, own) in parts.iter().filter(|(_, pages)| *pages > 0) {
        sched::check_interrupts()?;
        let share = f64::from(*own) / f64::from(pages.max(1));
        let handle = TableHandle::open(cx.engine, part, cx.format)?;
        let count = (wanted as f64 * share).ceil() as usize;
        let (some, all) = sample(cx, &handle, *own, count.max(1), &progress)?;
        total += all;
        let numbers = exec::partition::numbers(table, part);
        rows.extend(some.iter().map(|row| {
            let value = |n: &u16| match n {
                0 => Datum::Null,
                n => row[usize::from(*n) - 1].clone(),
            };
            numbers.iter().map(value).collect::<Vec<Datum>>()
        }));
    }
    progress.set_phase("computing statistics");
    let stats = TableStats { table: table.oid, rows: total, ..TableStats::default() };
    put(cx, table, stats, &rows)?;
    Ok(format!(
        "\"{}\": {} rows in sample, {total:.0} estimated total rows",
        table.name,
        rows.len()
    ))
}

/// Analyzes one table; says what it read.
///
/// # Errors
/// I/O, interrupts.
pub fn run(cx: &mut ExecContext<'_>, table: &Arc<Table>) -> Result<String> {
    let wanted = largest_target(cx, table) * ROWS_A_TARGET;
    let handle = TableHandle::open(cx.engine, table, cx.format)?;
    let pages = super::pages(cx, table)?;
    let progress = Reporting::begin(Kind::Analyze, "ANALYZE", (cx.database.1, table.oid));
    progress.set_phase("acquiring sample rows");
    let (rows, total) = sample(cx, &handle, pages, wanted, &progress)?;
    progress.set_phase("computing statistics");
    let visible = handle.heap.visible_pages();
    let stats =
        TableStats { table: table.oid, rows: total, pages, visible, ..TableStats::default() };
    put(cx, table, stats, &rows)?;
    progress.set_phase("finalizing analyze");
    let scanned = (pages as usize).min(wanted);
    let live = if pages == 0 { 0.0 } else { total * scanned as f64 / f64::from(pages) };
    Ok(format!(
        "\"{}\": scanned {scanned} of {pages} pages, containing {live:.0} live rows and 0 dead rows; \
         {} rows in sample, {total:.0} estimated total rows",
        table.name,
        rows.len()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinct_values_are_estimated_from_runs() {
        // Every value once: a key.
        assert_eq!(distinct(&[(0, 1), (1, 1)], 2.0, 100.0, 100.0), -1.0);
        // The same, half of the rows without one.
        assert_eq!(distinct(&[(0, 1), (1, 1)], 2.0, 50.0, 100.0), -0.5);
        // Every value often: all have been seen.
        assert_eq!(distinct(&[(0, 50), (50, 50)], 100.0, 10_000.0, 10_000.0), 2.0);
        assert_eq!(distinct(&[], 0.0, 0.0, 0.0), 0.0);
    }

    #[test]
    fn only_values_that_are_much_more_common_are_kept() {
        // Of a table that was read whole, all are.
        assert_eq!(worth_keeping(&[3.0, 2.0], 500.0, 0.0, 1000.0, 1000.0), 2);
        let of_sample = |counts: &[f64]| worth_keeping(counts, 500.0, 0.0, 1000.0, 100_000.0);
        assert_eq!(of_sample(&[300.0, 3.0, 2.0]), 1);
    }

    #[test]
    fn correlation_is_one_for_ascending_and_minus_one_for_descending() {
        let one = Datum::Int4(1);
        let up: Vec<(usize, &Datum)> = (0..10).map(|n| (n, &one)).collect();
        let down: Vec<(usize, &Datum)> = (0..10).rev().map(|n| (n, &one)).collect();
        assert!((correlation(&up) - 1.0).abs() < 1e-9);
        assert!((correlation(&down) + 1.0).abs() < 1e-9);
    }
}
