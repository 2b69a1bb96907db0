//! ANALYZE: statistics from a sample of rows.
//!
//! Distinct values are estimated after Haas and Stokes (Duj1), as PostgreSQL does.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use base::{Oid, Result};
use catalog::object::ColumnStats;
use catalog::{Object, Table, TableStats};
use sched::SpinLock;
use sched::observe::progress::{Count, Kind, Progress, Reporting};
use types::{Datum, FormatContext};

use exec::context::ExecContext;
use exec::parallel;
use exec::rows::width;
use exec::session::random;
use exec::table::TableHandle;

use super::elements;
use super::extended::{self, Sample};

/// Rows to sample for each unit of the statistics target.
const ROWS_A_TARGET: usize = 300;
/// Longer values make no common values or bounds.
const VALUE_MAX: usize = 256;

/// Rows decoded at a time by one thread.
const ROWS_A_PIECE: usize = 1000;
/// Blocks that a thread takes at a time.
const BLOCKS_A_PIECE: usize = 32;

/// Rows to look at.
struct Drawn {
    /// In the order of the table.
    rows: Vec<Vec<Datum>>,
    /// How many there are in all (about).
    total: f64,
    /// Helpers that are worth starting for as much work.
    helpers: usize,
}

/// Draws as many rows as are wanted from those that are offered: each is given a number by chance, and those with the
/// least numbers are kept. What several threads have drawn, each from rows of its own, is put together in the same way.
struct Draw {
    wanted: usize,
    /// Numbers, places in the table, and rows.
    kept: BinaryHeap<(u64, u64, Vec<u8>)>,
    offered: usize,
}

impl Draw {
    fn new(wanted: usize) -> Draw {
        Draw { wanted, kept: BinaryHeap::new(), offered: 0 }
    }

    fn offer(&mut self, place: u64, row: &[u8]) {
        self.offered += 1;
        let number = (random() * (1_u64 << 53) as f64) as u64;
        if self.kept.len() < self.wanted {
            self.kept.push((number, place, row.to_vec()));
        } else if let Some(mut last) = self.kept.peek_mut()
            && number < last.0
        {
            (last.0, last.1) = (number, place);
            last.2.clear();
            last.2.extend_from_slice(row);
        }
    }

    fn add(&mut self, other: Draw) {
        self.offered += other.offered;
        self.kept.extend(other.kept);
        while self.kept.len() > self.wanted {
            self.kept.pop();
        }
    }

    /// In the order of their places.
    fn finish(self) -> Vec<Vec<u8>> {
        let mut kept = self.kept.into_vec();
        kept.sort_unstable_by_key(|(_, place, _)| *place);
        kept.into_iter().map(|(_, _, row)| row).collect()
    }
}

/// Two-stage sampling (Cochran, "Sampling Techniques", 1977, chapter 11): of each block that is drawn one row, or two
/// where single draws from the whole table would have hit the block twice. Rows of one block are often alike; a sample
/// with more of them makes values seem to be fewer than they are.
#[derive(Default)]
struct BlockDraw {
    /// Share of the blocks of which two rows are taken.
    twice: f64,
    blocks: Vec<DrawnBlock>,
}

#[derive(Default)]
struct DrawnBlock {
    /// Rows that the block has.
    rows: usize,
    wanted: usize,
    /// Rows that were drawn, and their places.
    drawn: Vec<(u64, Vec<u8>)>,
}

impl BlockDraw {
    /// `share`: of the table's blocks that are read.
    fn new(share: f64) -> BlockDraw {
        // Of a Poisson distribution, the share of two and more in one and more.
        let twice = 1.0 - share / share.exp_m1().max(f64::MIN_POSITIVE);
        BlockDraw { twice, blocks: Vec::new() }
    }

    fn begin_block(&mut self) {
        let wanted = if random() < self.twice { 2 } else { 1 };
        self.blocks.push(DrawnBlock { wanted, ..DrawnBlock::default() });
    }

    fn offer(&mut self, place: u64, row: &[u8]) {
        let Some(block) = self.blocks.last_mut() else { return };
        block.rows += 1;
        if block.drawn.len() < block.wanted {
            block.drawn.push((place, row.to_vec()));
            return;
        }
        let number = (random() * block.rows as f64) as usize;
        if let Some(drawn) = block.drawn.get_mut(number) {
            drawn.0 = place;
            drawn.1.clear();
            drawn.1.extend_from_slice(row);
        }
    }

    /// The sample, in which each row of the table had the same chance to be, in the order of places. A block is accepted
    /// with a chance by its number of rows; None when few would be, as some have many more rows than most.
    fn finish(self) -> Option<Vec<Vec<u8>>> {
        let most = self.blocks.iter().map(|block| block.rows).max()? as f64;
        let all: usize = self.blocks.iter().map(|block| block.rows).sum();
        if (all as f64) < 0.5 * most * self.blocks.len() as f64 {
            return None;
        }
        let accepted = self.blocks.into_iter().filter(|b| random() * most < b.rows as f64);
        let mut rows: Vec<(u64, Vec<u8>)> = accepted.flat_map(|block| block.drawn).collect();
        rows.sort_unstable_by_key(|(place, _)| *place);
        Some(rows.into_iter().map(|(_, row)| row).collect())
    }
}

/// As many of `0..pages` as are wanted, by chance, in order.
fn draw_blocks(pages: u32, wanted: usize) -> Vec<u32> {
    let mut left = (pages as usize).min(wanted);
    let mut drawn = Vec::with_capacity(left);
    for block in 0..pages {
        if random() * f64::from(pages - block) < left as f64 {
            drawn.push(block);
            left -= 1;
        }
    }
    drawn
}

/// Draws the rows to look at: all rows of blocks that are drawn take part; when there are more blocks than rows are
/// wanted, one or two of each are taken. Helpers read blocks, too, and decode rows.
fn sample(
    cx: &ExecContext<'_>,
    handle: &TableHandle,
    pages: u32,
    wanted: usize,
    progress: &Progress,
) -> Result<Drawn> {
    let (tx, snapshot) = (cx.tx, cx.tx.latest_snapshot());
    let blocks = draw_blocks(pages, wanted);
    progress.set(Count::BlocksTotal, blocks.len() as u64);
    let helpers = match Oid(handle.table.oid).is_temporary() {
        true => 0,
        false => parallel::wanted_for(blocks.len() as u32, cx),
    };
    let many = blocks.len() < pages as usize;
    let share = if many { blocks.len() as f64 / f64::from(pages) } else { 1.0 };
    let (next, drawn) = (AtomicUsize::new(0), SpinLock::new(Vec::new()));
    let read = |leads: bool| -> Result<()> {
        let (mut own, mut of_blocks) = (Draw::new(wanted), BlockDraw::new(share));
        while leads || !sched::helpers::should_yield() {
            let from = next.fetch_add(BLOCKS_A_PIECE, Relaxed);
            let Some(piece) = blocks.get(from..(from + BLOCKS_A_PIECE).min(blocks.len())) else {
                break;
            };
            for block in piece {
                sched::check_interrupts()?;
                let mut place = u64::from(*block) << 16;
                if many {
                    of_blocks.begin_block();
                }
                let mut scan = handle.heap.scan(&snapshot, Some(*block..block + 1));
                while scan.next_page(tx, |_, _, data| {
                    own.offer(place, data);
                    if many {
                        of_blocks.offer(place, data);
                    }
                    place += 1;
                })? {}
            }
            if leads {
                progress.set(Count::BlocksDone, (from + piece.len()) as u64);
            }
        }
        drawn.lock().push((own, of_blocks));
        Ok(())
    };
    parallel::on_all(helpers, cx, &read)?;
    progress.set(Count::BlocksDone, blocks.len() as u64);
    let mut all = Draw::new(wanted);
    let mut of_blocks = BlockDraw::new(share);
    for (own, one) in drawn.into_inner() {
        all.add(own);
        of_blocks.blocks.extend(one.blocks);
    }
    let total = (all.offered as f64 / share).round();
    let rows = of_blocks.finish().unwrap_or_else(|| all.finish());
    let pieces: Vec<&[Vec<u8>]> = rows.chunks(ROWS_A_PIECE).collect();
    let decode = |n: usize| -> Result<Vec<Vec<Datum>>> {
        pieces[n].iter().map(|bytes| handle.decode_all(bytes)).collect()
    };
    let rows: Vec<Vec<Vec<Datum>>> = parallel::each(pieces.len(), helpers, cx, &decode)?;
    Ok(Drawn { rows: rows.into_iter().flatten().collect(), total, helpers })
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
    stats.elements = elements::of_values(&sorted, target, format)?;
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
fn columns(cx: &ExecContext<'_>, table: &Table, drawn: &Drawn) -> Result<Vec<ColumnStats>> {
    let (usual, format) = (target(cx), cx.format);
    let one = |n: usize| -> Result<ColumnStats> {
        let column = &table.columns[n];
        let target = column.statistics.map_or(usual, usize::from);
        if column.dropped || target == 0 {
            return Ok(ColumnStats::default());
        }
        let values: Vec<&Datum> = drawn.rows.iter().map(|row| &row[n]).collect();
        column_stats(Oid(column.ty), &values, drawn.total, target, format)
    };
    // Texts of names and of users' types are looked up, which helpers can't.
    let looked_up = |n: usize| !parallel::reads_values_of(Oid(table.columns[n].ty));
    let any = |n: usize| if looked_up(n) { Ok(ColumnStats::default()) } else { one(n) };
    let mut columns = parallel::each(table.columns.len(), drawn.helpers, cx, &any)?;
    for n in (0..columns.len()).filter(|n| looked_up(*n)) {
        sched::check_interrupts()?;
        columns[n] = one(n)?;
    }
    Ok(columns)
}

/// Stores what the sample says; of an empty table, what was known before stays.
fn put(
    cx: &mut ExecContext<'_>,
    table: &Table,
    mut stats: TableStats,
    drawn: &Drawn,
) -> Result<()> {
    let rows = &drawn.rows[..];
    let before = cx.catalog_tx.view().stats(table.oid).cloned();
    match before.filter(|_| rows.is_empty()) {
        Some(before) => {
            stats.columns.clone_from(&before.columns);
            stats.keys.clone_from(&before.keys);
            stats.extended.clone_from(&before.extended);
        }
        None => {
            stats.columns = columns(cx, table, drawn)?;
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
    let mut drawn =
        Drawn { rows: Vec::new(), total: 0.0, helpers: parallel::wanted_for(pages, cx) };
    for (part, own) in parts.iter().filter(|(_, pages)| *pages > 0) {
        sched::check_interrupts()?;
        let share = f64::from(*own) / f64::from(pages.max(1));
        let handle = TableHandle::open(cx.engine, part, cx.format)?;
        let count = (wanted as f64 * share).ceil() as usize;
        let some = sample(cx, &handle, *own, count.max(1), &progress)?;
        drawn.total += some.total;
        let numbers = exec::partition::numbers(table, part);
        drawn.rows.extend(some.rows.iter().map(|row| {
            let value = |n: &u16| match n {
                0 => Datum::Null,
                n => row[usize::from(*n) - 1].clone(),
            };
            numbers.iter().map(value).collect::<Vec<Datum>>()
        }));
    }
    progress.set_phase("computing statistics");
    let total = drawn.total;
    let stats = TableStats { table: table.oid, rows: total, ..TableStats::default() };
    put(cx, table, stats, &drawn)?;
    Ok(format!(
        "\"{}\": {} rows in sample, {total:.0} estimated total rows",
        table.name,
        drawn.rows.len()
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
    let drawn = sample(cx, &handle, pages, wanted, &progress)?;
    let total = drawn.total;
    progress.set_phase("computing statistics");
    let visible = handle.heap.visible_pages();
    let stats =
        TableStats { table: table.oid, rows: total, pages, visible, ..TableStats::default() };
    put(cx, table, stats, &drawn)?;
    progress.set_phase("finalizing analyze");
    let scanned = (pages as usize).min(wanted);
    let live = if pages == 0 { 0.0 } else { total * scanned as f64 / f64::from(pages) };
    Ok(format!(
        "\"{}\": scanned {scanned} of {pages} pages, containing {live:.0} live rows and 0 dead rows; \
         {} rows in sample, {total:.0} estimated total rows",
        table.name,
        drawn.rows.len()
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
    fn what_threads_draw_is_one_draw() {
        let (mut all, mut other) = (Draw::new(50), Draw::new(50));
        for place in 0..1000_u64 {
            let draw = if place % 3 == 0 { &mut all } else { &mut other };
            draw.offer(place, &place.to_be_bytes());
        }
        all.add(other);
        assert_eq!(all.offered, 1000);
        let rows = all.finish();
        assert_eq!(rows.len(), 50);
        assert!(rows.is_sorted(), "rows keep the order of their places");
        let few = draw_blocks(7, 100);
        assert_eq!(few, [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!(draw_blocks(1000, 30).len(), 30);
    }

    #[test]
    fn of_many_blocks_few_rows_each_are_drawn() {
        let draw = |rows_of: &dyn Fn(u64) -> u64, share: f64| {
            let mut draw = BlockDraw::new(share);
            for block in 0..1000_u64 {
                draw.begin_block();
                for line in 0..rows_of(block) {
                    draw.offer(block << 16 | line, &[block as u8 % 2, line as u8]);
                }
            }
            draw.finish()
        };
        let rows = draw(&|_| 20, 1e-9).expect("blocks are alike");
        assert_eq!(rows.len(), 1000);
        let lines: std::collections::HashSet<u8> = rows.iter().map(|row| row[1]).collect();
        assert_eq!(lines.len(), 20);
        // With half of the blocks read, about a fifth would be hit twice.
        let rows = draw(&|_| 20, 0.5).expect("blocks are alike");
        assert!((1130..1330).contains(&rows.len()), "{}", rows.len());
        // Half as many rows in every other block: these are drawn half as often.
        let rows = draw(&|block| 10 + 10 * (block % 2), 1e-9).expect("blocks are alike enough");
        let fuller = rows.iter().filter(|row| row[0] == 1).count();
        assert_eq!(fuller, 500);
        assert!((150..350).contains(&(rows.len() - fuller)), "{}", rows.len());
        assert!(draw(&|block| 1 + 99 * u64::from(block % 10 == 0), 0.1).is_none());
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
