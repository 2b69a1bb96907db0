//! Reads the whole table, page by page.
//!
//! Rows are copied out of their pages first and decoded without a latch, column by column, in stages:
//! what the first conditions need, then what the next ones need of the rows that are left, at last the
//! other columns.

use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use access::{HeapScan, Keep, RowBatch};
use base::{Oid, Result};
use sql::plan::{Node, Scan, ScanColumn};
use sql::tid::Tids;
use sql::{Expr, Plan, walk};
use types::batch::BATCH_ROWS;
use types::{Batch, Column, Datum};

use super::before_error::Postponed;
use super::grouping::hash_columns;
use super::key_filter::KeyFilter;
use crate::ops::measure::{REMOVED_BY_FILTER, count};
use crate::ops::operator::{Operator, wrong_node};
use crate::ops::team::Pieces;
use crate::rows::{self, Row};
use crate::run::Run;
use crate::table::{TableHandle, Version, system_value};
use crate::tally::Pages;
use crate::{eval, vector};

/// Fewer rows than this are not worth a look at a join's keys.
const WORTHWHILE: usize = 256;
/// Bytes of rows to hold at a time, about: they should stay in the processor's cache.
const BYTES: usize = 256 * 1024;

/// See the module's documentation. The first batch is one page's rows, later ones are larger, so
/// that a LIMIT costs little.
pub struct SeqScan {
    table: TableHandle,
    types: Vec<Oid>,
    stages: Vec<Stage>,
    keep: Keep,
    /// The rows being decoded.
    rows: RowBatch,
    scan: Option<HeapScan>,
    /// Where its pages come from, if other threads read the table, too.
    pieces: Option<Pieces>,
    begun: bool,
    ended: bool,
    target: usize,
    /// Rows for which a condition did not hold, not yet told of.
    removed: u64,
    postponed: Postponed,
    /// Where its rows may be, if a condition says so; and the pages with them that have not been read, once they are known.
    tids: Option<Tids>,
    named: Option<VecDeque<Range<u32>>>,
}

/// Some columns, and what can be tested once they are there.
#[derive(Default)]
struct Stage {
    /// Columns of the table's rows (from 0, ascending), and their places in the batch.
    stored: Vec<(u16, usize)>,
    /// Others.
    system: Vec<(ScanColumn, usize)>,
    test: Test,
}

#[derive(Default)]
enum Test {
    #[default]
    None,
    Condition(Expr),
    Keys(Restriction),
}

/// Columns (by place) whose hashes a join above may have.
struct Restriction {
    places: Vec<usize>,
    filter: Arc<KeyFilter>,
    tried: usize,
    passed: usize,
}

impl Restriction {
    /// The rows that pass, if some don't.
    fn select(&mut self, batch: &Batch) -> Option<Vec<u32>> {
        if batch.rows < WORTHWHILE || self.passed > self.tried / 4 * 3 {
            return None;
        }
        let key: Vec<_> = self.places.iter().map(|n| Cow::Borrowed(&batch.columns[*n])).collect();
        let passed = self.filter.select(&hash_columns(&key, batch.rows));
        self.tried += batch.rows;
        self.passed += passed.len();
        (passed.len() < batch.rows).then_some(passed)
    }
}

impl Stage {
    /// The columns at these places.
    fn new(scan: &Scan, places: &[usize]) -> Stage {
        let mut stage = Stage::default();
        for place in places {
            match scan.columns[*place] {
                ScanColumn::Attr(n) => stage.stored.push((n - 1, *place)),
                other => stage.system.push((other, *place)),
            }
        }
        stage.stored.sort_unstable();
        stage
    }
}

/// The stages of a scan: quick conditions first, if the order is of no account.
fn stages(scan: &Scan) -> Vec<Stage> {
    let mut conditions = Vec::new();
    if let Some(filter) = &scan.filter {
        walk::conjuncts(filter.clone(), &mut conditions);
    }
    if !conditions.iter().any(walk::is_volatile) {
        conditions.sort_by_key(|e| !vector::is_quick(e));
    }
    let mut all: Vec<Stage> = Vec::new();
    let mut open: Vec<usize> = (0..scan.columns.len()).collect();
    for condition in conditions {
        let mut used = Vec::new();
        walk::columns_of(&condition, &mut used);
        let fresh: Vec<usize> =
            open.iter().copied().filter(|n| used.contains(&(*n as u16))).collect();
        open.retain(|n| !fresh.contains(n));
        match all.last_mut().map(|last| &mut last.test) {
            Some(Test::Condition(Expr::And(list))) if fresh.is_empty() => list.push(condition),
            _ => {
                let test = Test::Condition(Expr::And(vec![condition]));
                all.push(Stage { test, ..Stage::new(scan, &fresh) });
            }
        }
    }
    if !open.is_empty() {
        all.push(Stage::new(scan, &open));
    }
    all
}

/// The pages in which rows may be, in order.
fn pages_of(tids: &Tids, run: &mut Run<'_, '_>) -> Result<VecDeque<Range<u32>>> {
    let mut block = |e: &Expr| {
        Ok(match eval::eval(e, Row::Empty, run)? {
            Datum::Tid(tid) => Some(tid.block),
            _ => None,
        })
    };
    let mut pages = VecDeque::new();
    match tids {
        Tids::Is(place) => pages.extend(block(place)?.map(|n| n..n.saturating_add(1))),
        Tids::AnyOf(array) => {
            if let Datum::Array(array) = eval::eval(array, Row::Empty, run)? {
                let tids = array.items.iter().filter_map(|value| match value {
                    Datum::Tid(tid) => Some(tid.block),
                    _ => None,
                });
                let blocks: BTreeSet<u32> = tids.collect();
                pages.extend(blocks.into_iter().map(|n| n..n.saturating_add(1)));
            }
        }
        Tids::Between { lower, upper } => {
            let (mut first, mut last) = (0, u32::MAX);
            for bound in lower {
                let Some(block) = block(bound)? else { return Ok(pages) };
                first = first.max(block);
            }
            for bound in upper {
                let Some(block) = block(bound)? else { return Ok(pages) };
                last = last.min(block.saturating_add(1));
            }
            pages.extend((first < last).then_some(first..last));
        }
    }
    Ok(pages)
}

impl SeqScan {
    /// Before the first row.
    pub fn new(scan: &Scan, run: &mut Run<'_, '_>) -> Result<SeqScan> {
        let table = TableHandle::open(run.cx.engine, &scan.table, run.cx.format)?;
        let types = scan.types();
        let stages = stages(scan);
        let keep = Keep {
            bytes: stages.iter().any(|s| !s.stored.is_empty()),
            ids: stages.iter().any(|s| !s.system.is_empty()),
        };
        let rows = RowBatch::default();
        let at = std::ptr::from_ref(scan) as usize;
        let pieces = run.state.member.as_ref().map(|member| member.pieces(at));
        Ok(SeqScan {
            table,
            types,
            stages,
            keep,
            rows,
            scan: None,
            pieces,
            begun: false,
            ended: false,
            target: 1,
            removed: 0,
            postponed: Postponed::default(),
            tids: scan.tids(),
            named: None,
        })
    }

    /// Begins to read the table, or the next pages of it that may have rows; None when there are no more pages for this
    /// thread.
    fn begin(&mut self, run: &mut Run<'_, '_>) -> Result<Option<HeapScan>> {
        let pages = match (&self.pieces, &self.tids) {
            (Some(pieces), _) => match pieces.take(|| self.table.heap.pages())? {
                Some(pages) => Some(pages),
                None => return Ok(None),
            },
            (None, Some(tids)) => {
                let named = match &mut self.named {
                    Some(named) => named,
                    none => none.insert(pages_of(tids, run)?),
                };
                Some(named.pop_front().unwrap_or(0..0))
            }
            (None, None) => None,
        };
        Ok(Some(self.table.heap.scan(&run.snapshot, pages)))
    }

    /// The next rows for which the conditions hold, maybe none; None at the end.
    ///
    /// # Errors
    /// I/O; the conditions'.
    pub fn next_batch(&mut self, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        self.postponed.raise()?;
        if self.ended {
            return Ok(None);
        }
        self.read(run)?;
        if self.scan.is_none() && self.rows.rows == 0 {
            // Others have the rest; or this thread takes no more for now.
            return Ok(None);
        }
        self.decode(run).map(Some)
    }

    /// Reads pages until there are rows enough.
    fn read(&mut self, run: &mut Run<'_, '_>) -> Result<()> {
        let before = sched::with_current(Pages::now);
        self.rows.clear();
        while self.rows.rows < self.target && self.rows.bytes.len() < BYTES {
            if self.scan.is_none() {
                self.scan = self.begin(run)?;
            }
            let Some(scan) = &mut self.scan else { break };
            if scan.next_rows(run.cx.tx, self.keep, &mut self.rows)? {
                continue;
            }
            if self.pieces.is_none() && self.named.as_ref().is_none_or(VecDeque::is_empty) {
                self.ended = true;
                break;
            }
            self.scan = None;
        }
        self.target = (self.target * 8).min(BATCH_ROWS);
        let counts = run.cx.tally.of(self.table.table.oid);
        counts.scans += u64::from(!std::mem::replace(&mut self.begun, true));
        counts.returned += self.rows.rows as u64;
        sched::with_current(|task| before.count(task, counts));
        Ok(())
    }

    /// Makes columns of the rows, stage by stage.
    fn decode(&mut self, run: &mut Run<'_, '_>) -> Result<Batch> {
        let mut batch = rows::empty(&self.types);
        batch.rows = self.rows.rows;
        for stage in &mut self.stages {
            if batch.rows == 0 {
                break;
            }
            let rows = &mut self.rows;
            let columns = &mut batch.columns;
            types::row::decode_rows(
                &self.table.columns,
                &rows.bytes,
                &rows.places,
                &stage.stored,
                columns,
            )?;
            for (column, place) in &stage.system {
                system_column(&self.table, &rows.ids, *column, &mut columns[*place])?;
            }
            let kept = match &mut stage.test {
                Test::None => None,
                Test::Condition(condition) => {
                    let kept = match vector::select(condition, &batch, run) {
                        Ok(kept) => kept,
                        Err(error) => Some(self.postponed.kept(condition, &batch, error, run)?),
                    };
                    let removed = kept.as_ref().map_or(0, |kept| batch.rows - kept.len());
                    self.removed += removed as u64;
                    kept
                }
                Test::Keys(restriction) => restriction.select(&batch),
            };
            if let Some(kept) = kept {
                narrow(&mut batch, rows, &kept);
            }
        }
        Ok(batch)
    }
}

impl SeqScan {
    /// Forgets what joins above said of their keys.
    fn unrestrict(&mut self) {
        if !self.stages.iter().any(|stage| matches!(stage.test, Test::Keys(_))) {
            return;
        }
        let mut rest = self.pop_rest();
        self.stages.retain_mut(|stage| {
            let stays = !matches!(stage.test, Test::Keys(_));
            if !stays {
                rest.stored.append(&mut stage.stored);
                rest.system.append(&mut stage.system);
            }
            stays
        });
        rest.stored.sort_unstable();
        self.stages.push(rest);
    }

    /// Takes out the last stage, of the columns that no test needs.
    fn pop_rest(&mut self) -> Stage {
        self.stages.pop_if(|last| matches!(last.test, Test::None)).unwrap_or_default()
    }
}

/// Adds what isn't stored in a row's bytes.
fn system_column(
    table: &TableHandle,
    ids: &[(base::TupleId, base::TupleId)],
    column: ScanColumn,
    to: &mut Column,
) -> Result<()> {
    use ScanColumn as C;
    let of_header = matches!(column, C::Xmin | C::Xmax | C::Cmin | C::Cmax);
    for (tid, root) in ids {
        let mut at = Version::new(*tid, *root);
        if of_header && let Some(tuple) = table.heap.fetch_version(*tid)? {
            at.system = tuple.system;
        }
        to.push(system_value(column, table.table.oid, at))?;
    }
    Ok(())
}

/// Keeps some of the rows, in the columns that are there already and in those to come.
fn narrow(batch: &mut Batch, rows: &mut RowBatch, kept: &[u32]) {
    for column in batch.columns.iter_mut().filter(|c| !c.is_empty()) {
        *column = column.take(kept);
    }
    for (n, row) in kept.iter().enumerate() {
        let row = *row as usize;
        if let Some(place) = rows.places.get(row) {
            rows.places[n] = *place;
        }
        if let Some(id) = rows.ids.get(row) {
            rows.ids[n] = *id;
        }
    }
    rows.places.truncate(kept.len());
    rows.ids.truncate(kept.len());
    (batch.rows, rows.rows) = (kept.len(), kept.len());
}

impl Operator for SeqScan {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::SeqScan(_) = &plan.node else {
            return Err(wrong_node());
        };
        while let Some(batch) = self.next_batch(run)? {
            count(plan, REMOVED_BY_FILTER, std::mem::take(&mut self.removed), run);
            if batch.rows > 0 {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }

    fn restrict(&mut self, keys: &[Expr], filter: &Arc<KeyFilter>) {
        let mut places = Vec::with_capacity(keys.len());
        for key in keys {
            let Expr::Column(n, _) = key else { return };
            places.push(usize::from(*n));
        }
        let mut rest = self.pop_rest();
        let mut stage = Stage::default();
        let early = |place: &usize| places.contains(place);
        (stage.stored, rest.stored) = rest.stored.into_iter().partition(|(_, p)| early(p));
        (stage.system, rest.system) = rest.system.into_iter().partition(|(_, p)| early(p));
        let filter = filter.clone();
        stage.test = Test::Keys(Restriction { places, filter, tried: 0, passed: 0 });
        self.stages.extend([stage, rest]);
    }

    fn rescan(&mut self, _plan: &Plan, _run: &mut Run<'_, '_>) -> Result<()> {
        self.unrestrict();
        self.postponed = Postponed::default();
        (self.scan, self.named) = (None, None);
        (self.begun, self.ended) = (false, false);
        self.target = 1;
        Ok(())
    }
}
