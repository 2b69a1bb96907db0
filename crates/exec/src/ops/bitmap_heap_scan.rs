//! Reads the rows of a bitmap page by page. The bitmap's nodes have no operators of their own: they
//! make no rows, and this one runs them to their end before the first row.
//!
//! Columns that only the recheck asks for are not read where the bitmap is sure; when there are no others, a page of which
//! everybody sees all rows isn't read at all.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use access::VacuumEpoch;
use base::settings::setting;
use base::{Oid, Result, TupleId};
use sched::SpinLock;
use sql::plan::{Node, Scan};
use sql::{Expr, Plan};
use types::Batch;
use types::batch::BATCH_ROWS;

use super::before_error::Postponed;
use super::bitmap::{Bitmap, Pages};
use crate::ops::before_error::filtered;
use crate::ops::measure::{Measuring, count};
use crate::ops::operator::{Operator, not_prepared, wrong_node};
use crate::ops::team::Member;
use crate::run::Run;
use crate::table::{Projection, TableHandle, Version};
use crate::{index_search, rows, tally, vector};

/// EXPLAIN's names for the pages that were read.
pub const EXACT_PAGES: &str = "Exact Heap Blocks";
/// See [`EXACT_PAGES`].
pub const LOSSY_PAGES: &str = "Lossy Heap Blocks";
/// EXPLAIN's name for the rows that are not the bitmap's.
pub const REMOVED_BY_RECHECK: &str = "Rows Removed by Index Recheck";

const FIRST_TARGET: usize = 32;

/// See the module's documentation.
pub struct BitmapHeapScan {
    table: TableHandle,
    projection: Projection,
    /// For rows that need no recheck.
    sure: Projection,
    types: Vec<Oid>,
    pages: Option<Pages>,
    /// Several threads read the pages of one bitmap.
    team: Option<(Member, Arc<Shelf>)>,
    /// Pages that this thread has taken of them.
    taken: VecDeque<TakenPage>,
    /// Whether the bitmap may hold rows that don't match.
    doubtful: bool,
    /// The vacuum epoch when the bitmap was begun.
    epoch: VacuumEpoch,
    target: usize,
    postponed: Postponed,
}

/// A page and its rows, unless they are not known.
type TakenPage = (u32, Option<Vec<u16>>);

/// Pages to take at once.
const PIECE_PAGES: usize = 16;

/// A bitmap whose pages several threads take; the leader makes it before there are helpers.
#[derive(Default)]
pub struct Shelf {
    pages: SpinLock<Option<(Pages, VacuumEpoch)>>,
    doubtful: AtomicBool,
}

/// Makes a bitmap.
fn make(plan: &Plan, run: &mut Run<'_, '_>) -> Result<Bitmap> {
    sched::check_stack()?;
    let begin = Measuring::begin(plan, run);
    let (bitmap, rows) = match &plan.node {
        Node::BitmapIndexScan { table, index, bounds } => {
            let memory = run.cx.settings.int(setting::WORK_MEM) as usize * 1024;
            let mut bitmap = Bitmap::new(memory);
            let entries = index_search::collect(table, index, bounds, run, &mut |root, again| {
                if root.offset == 0 {
                    bitmap.add_page(root.block);
                    return;
                }
                bitmap.add(root);
                if again {
                    bitmap.doubt();
                }
            })?;
            bitmap.finish();
            (bitmap, entries)
        }
        Node::BitmapAnd(inputs) => {
            let mut all: Option<Bitmap> = None;
            for input in inputs {
                let one = make(input, run)?;
                all = Some(match all {
                    None => one,
                    Some(mut all) => {
                        all.meet(&one);
                        all
                    }
                });
            }
            (all.unwrap_or_default(), 0)
        }
        Node::BitmapOr(inputs) => {
            let memory = run.cx.settings.int(setting::WORK_MEM) as usize * 1024;
            let mut all = Bitmap::new(memory);
            for input in inputs {
                all.unite(make(input, run)?);
            }
            (all, 0)
        }
        _ => return Err(wrong_node()),
    };
    begin.end(plan, rows, run);
    Ok(bitmap)
}

impl BitmapHeapScan {
    /// Before the first row.
    pub fn new(scan: &Scan, rechecked: &[usize], run: &mut Run<'_, '_>) -> Result<BitmapHeapScan> {
        Ok(BitmapHeapScan {
            table: TableHandle::open(run.cx.engine, &scan.table, run.cx.format)?,
            projection: Projection::new(&scan.table, &scan.columns),
            sure: Projection::without(&scan.table, &scan.columns, rechecked),
            types: scan.types(),
            pages: None,
            team: run.state.member.clone().map(|member| {
                let shelf = member.shared(std::ptr::from_ref(scan) as usize);
                (member, shelf)
            }),
            taken: VecDeque::new(),
            doubtful: false,
            epoch: VacuumEpoch::default(),
            target: FIRST_TARGET,
            postponed: Postponed::default(),
        })
    }

    /// The next page for this thread.
    fn next_page(&mut self) -> Result<Option<TakenPage>> {
        if self.taken.is_empty() {
            let own = |pages: &mut Pages| {
                let (block, lines) = pages.next_page()?;
                Some((block, lines.map(Iterator::collect)))
            };
            match (&self.team, &mut self.pages) {
                (None, Some(pages)) => {
                    self.taken.extend(std::iter::from_fn(|| own(pages)).take(PIECE_PAGES));
                }
                (Some((member, shelf)), _) if member.may_take() => {
                    let mut pages = shelf.pages.lock();
                    let (pages, epoch) = pages.as_mut().ok_or_else(|| not_prepared("a bitmap"))?;
                    self.epoch = *epoch;
                    self.doubtful = shelf.doubtful.load(Ordering::Relaxed);
                    self.taken.extend(std::iter::from_fn(|| own(pages)).take(PIECE_PAGES));
                }
                _ => {}
            }
            if self.doubtful || !self.sure.reads_nothing() {
                let first = |(block, lines): &TakenPage| {
                    let offset = *lines.as_ref()?.first()?;
                    Some(TupleId { block: *block, offset })
                };
                let ahead: Vec<TupleId> = self.taken.iter().filter_map(first).collect();
                self.table.heap.prefetch(&ahead);
            }
        }
        Ok(self.taken.pop_front())
    }

    /// Adds a page's rows.
    fn read_page(
        &mut self,
        (block, lines): TakenPage,
        sure: bool,
        batch: &mut Batch,
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        let table = &self.table;
        if let Some(lines) = &lines
            && sure
            && self.sure.reads_nothing()
            && !run.cx.tx.tracks_reads()
            && table.heap.is_known_visible(block, self.epoch)
        {
            rows::push_nulls(batch, lines.len());
            return Ok(());
        }
        let projection = if sure { &self.sure } else { &self.projection };
        let mut lines = lines.map(Vec::into_iter);
        let (mut failed, mut versions) = (None, Vec::new());
        let lines = lines.as_mut().map(|lines| lines as &mut dyn Iterator<Item = u16>);
        table.heap.fetch_lines(run.cx.tx, &run.snapshot, block, lines, |tid, root, bytes| {
            if projection.system {
                versions.push((tid, root));
            } else if failed.is_none() {
                let at = Version::new(tid, root);
                failed = projection.push(&table.columns, at, bytes, batch).err();
            }
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        for (tid, root) in versions {
            if let Some(tuple) = table.heap.fetch_version(tid)? {
                let at = Version { tid, root, system: tuple.system };
                projection.push(&table.columns, at, &tuple.data, batch)?;
            }
        }
        Ok(())
    }

    /// Reads pages until the batch is full enough; false at the end.
    fn fill(
        &mut self,
        plan: &Plan,
        recheck: Option<&Expr>,
        batch: &mut Batch,
        run: &mut Run<'_, '_>,
    ) -> Result<bool> {
        let [mut exact, mut lossy, mut removed] = [0u64; 3];
        let mut more = true;
        // Rows that the condition must be asked about.
        let types = self.types.clone();
        let mut doubtful = rows::empty(&types);
        let mut ask = |doubtful: &mut Batch, batch: &mut Batch, run: &mut Run<'_, '_>| {
            let asked = std::mem::replace(doubtful, rows::empty(&types));
            let before = asked.rows;
            let held = vector::filter(recheck, asked, run)?;
            removed += (before - held.rows) as u64;
            match batch.rows {
                0 => *batch = held,
                _ => rows::append(batch, &held)?,
            }
            Ok::<(), base::Error>(())
        };
        while batch.rows + doubtful.rows < self.target {
            sched::check_interrupts()?;
            let Some(page) = self.next_page()? else {
                more = false;
                break;
            };
            let is_exact = page.1.is_some();
            exact += u64::from(is_exact);
            lossy += u64::from(!is_exact);
            if !is_exact || self.doubtful {
                self.read_page(page, false, &mut doubtful, run)?;
                continue;
            }
            if doubtful.rows > 0 {
                ask(&mut doubtful, batch, run)?;
            }
            self.read_page(page, true, batch, run)?;
        }
        if doubtful.rows > 0 {
            ask(&mut doubtful, batch, run)?;
        }
        count(plan, EXACT_PAGES, exact, run);
        count(plan, LOSSY_PAGES, lossy, run);
        count(plan, REMOVED_BY_RECHECK, removed, run);
        Ok(more)
    }
}

impl Operator for BitmapHeapScan {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::BitmapHeapScan { scan, recheck, input, .. } = &plan.node else {
            return Err(wrong_node());
        };
        if self.pages.is_none() && self.team.is_none() {
            self.epoch = self.table.heap.vacuum_epoch();
            let bitmap = make(input, run)?;
            self.doubtful = bitmap.is_doubtful();
            self.pages = Some(bitmap.into_pages());
        }
        self.postponed.raise()?;
        loop {
            let mut batch = rows::empty(&self.types);
            let before = tally::Pages::now(run.cx.task());
            let more = self.fill(plan, recheck.as_ref(), &mut batch, run)?;
            let tx = run.cx.tx;
            let counts = run.cx.tally.of(scan.table.oid);
            counts.fetched += batch.rows as u64;
            before.count(tx.locks().task(), counts);
            self.target = (self.target * 4).min(BATCH_ROWS);
            let batch = filtered(plan, scan.filter.as_ref(), batch, &mut self.postponed, run)?;
            if batch.rows > 0 {
                return Ok(Some(batch));
            }
            if !more {
                return Ok(None);
            }
        }
    }

    fn prepare(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let Node::BitmapHeapScan { input, .. } = &plan.node else { return Err(wrong_node()) };
        let Some((_, shelf)) = &self.team else { return Ok(()) };
        let epoch = self.table.heap.vacuum_epoch();
        let bitmap = make(input, run)?;
        shelf.doubtful.store(bitmap.is_doubtful(), Ordering::Relaxed);
        *shelf.pages.lock() = Some((bitmap.into_pages(), epoch));
        Ok(())
    }

    fn rescan(&mut self, _plan: &Plan, _run: &mut Run<'_, '_>) -> Result<()> {
        self.postponed = Postponed::default();
        self.pages = None;
        self.taken.clear();
        self.target = FIRST_TARGET;
        Ok(())
    }
}
