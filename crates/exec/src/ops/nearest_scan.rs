//! Reads rows through an index by their distances from a value, the nearest first. Where the index knows only that a row
//! is not nearer than it says, the row waits until all that may be nearer have been seen.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use access::gist::{Distances, by_distance};
use access::vector::ByDistance;
use base::{Oid, Result, TupleId};
use sql::Plan;
use sql::plan::{IndexBounds, Node, Scan};
use types::batch::BATCH_ROWS;
use types::{Batch, Datum};

use super::before_error::{Postponed, filtered};
use super::bitmap_heap_scan::REMOVED_BY_RECHECK;
use super::index_scan;
use crate::ops::measure::count;
use crate::ops::operator::{Operator, wrong_node};
use crate::rows::Row;
use crate::run::Run;
use crate::table::{KeyCodec, Projection, TableHandle};
use crate::{eval, index_search, neighbors, rows, vector};

const FIRST_TARGET: usize = 4;
/// Rows that are fetched together.
const READY_MAX: usize = 16;

/// See the module's documentation. Batches grow from a few rows, so that a LIMIT costs little.
pub struct NearestScan {
    table: TableHandle,
    projection: Projection,
    types: Vec<Oid>,
    /// None before the first row.
    search: Option<Option<Box<dyn ByDistance>>>,
    /// Rows whose distance was computed.
    waiting: BinaryHeap<Waiting>,
    ended: bool,
    /// Rows of the first batch.
    first: usize,
    /// How many are wanted, as far as is known.
    expected: Option<usize>,
    target: usize,
    /// The next rows, found but not fetched.
    ready: Vec<TupleId>,
    postponed: Postponed,
}

struct Waiting {
    distances: Distances,
    row: Batch,
}

impl Ord for Waiting {
    /// The heap gives its greatest: the nearest.
    fn cmp(&self, other: &Waiting) -> Ordering {
        by_distance(&other.distances, &self.distances)
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Waiting) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Waiting) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Waiting {}

impl NearestScan {
    /// Before the first row.
    pub fn new(scan: &Scan, run: &mut Run<'_, '_>) -> Result<NearestScan> {
        Ok(NearestScan {
            table: TableHandle::open(run.cx.engine, &scan.table, run.cx.format)?,
            projection: Projection::new(&scan.table, &scan.columns),
            types: scan.types(),
            search: None,
            waiting: BinaryHeap::new(),
            ended: false,
            first: FIRST_TARGET,
            expected: None,
            target: FIRST_TARGET,
            ready: Vec::new(),
            postponed: Postponed::default(),
        })
    }

    /// Fetches the rows that are ready.
    fn fetch_ready(&mut self, batch: &mut Batch, run: &mut Run<'_, '_>) -> Result<()> {
        if self.ready.len() > 1 {
            self.table.heap.prefetch(&self.ready);
        }
        for root in self.ready.drain(..) {
            index_scan::fetch(&self.table, &self.projection, root, batch, run)?;
        }
        Ok(())
    }

    /// Adds rows that satisfy the conditions until the batch is full enough; false at the end.
    fn fill(
        &mut self,
        plan: &Plan,
        bounds: &IndexBounds,
        batch: &mut Batch,
        run: &mut Run<'_, '_>,
    ) -> Result<bool> {
        let mut removed = 0;
        while batch.rows < self.target {
            sched::check_interrupts()?;
            if self.ready.len() >= (self.target - batch.rows).min(READY_MAX) {
                self.fetch_ready(batch, run)?;
                continue;
            }
            let next = match &mut self.search {
                Some(Some(search)) if !self.ended => search.next(run.cx.tx)?,
                _ => None,
            };
            let is_plain = bounds.recheck.is_none() && self.waiting.is_empty();
            if let Some(near) = &next
                && is_plain
                && !near.recheck_distance
            {
                self.ready.push(near.found.root);
                continue;
            }
            self.fetch_ready(batch, run)?;
            let Some(near) = next else {
                self.ended = true;
                if batch.rows >= self.target {
                    break;
                }
                let Some(Waiting { row, .. }) = self.waiting.pop() else { break };
                rows::append(batch, &row)?;
                continue;
            };
            // A row not farther than anything to come may go.
            let nearer = |w: &Waiting| by_distance(&w.distances, &near.distances).is_le();
            while self.waiting.peek().is_some_and(nearer) {
                if let Some(Waiting { row, .. }) = self.waiting.pop() {
                    rows::append(batch, &row)?;
                }
            }
            let mut row = rows::empty(&self.types);
            index_scan::fetch(&self.table, &self.projection, near.found.root, &mut row, run)?;
            let before = row.rows;
            let row = vector::filter(bounds.recheck.as_ref(), row, run)?;
            removed += (before - row.rows) as u64;
            if row.rows == 0 {
                continue;
            }
            if !near.recheck_distance && self.waiting.is_empty() {
                rows::append(batch, &row)?;
                continue;
            }
            let mut distances = near.distances;
            if near.recheck_distance {
                for (distance, expr) in distances.iter_mut().zip(&bounds.distances) {
                    *distance = match eval::eval(expr, Row::Batch(&row, 0), run)? {
                        Datum::Float8(d) => Some(d),
                        Datum::Float4(d) => Some(f64::from(d)),
                        Datum::Null => None,
                        _ => *distance,
                    };
                }
            }
            self.waiting.push(Waiting { distances, row });
        }
        count(plan, REMOVED_BY_RECHECK, removed, run);
        self.target = (self.target * 4).min(BATCH_ROWS);
        Ok(!self.ended || !self.waiting.is_empty() || !self.ready.is_empty())
    }
}

impl Operator for NearestScan {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::IndexScan { scan, index, bounds, .. } = &plan.node else {
            return Err(wrong_node());
        };
        if self.search.is_none() {
            let codec = KeyCodec::new(&scan.table, index);
            let files = index_search::open(index, &run.cx.engine.storage);
            self.search = Some(match files.as_covering() {
                Some(tree) => {
                    let search = index_search::tree(&codec, bounds, run)?;
                    let mut search =
                        search.map(|search| Box::new(tree.nearest(search)) as Box<dyn ByDistance>);
                    if let (Some(search), Some(rows)) = (&mut search, self.expected) {
                        search.expect(rows);
                    }
                    search
                }
                None => {
                    let search = neighbors::search(index, bounds, run)?;
                    Some(files.nearest_vectors(search).ok_or_else(wrong_node)?)
                }
            });
            run.cx.tally.of(index.oid).scans += 1;
        }
        self.postponed.raise()?;
        loop {
            let mut batch = rows::empty(&self.types);
            let more = self.fill(plan, bounds, &mut batch, run)?;
            run.cx.tally.of(index.oid).returned += batch.rows as u64;
            run.cx.tally.of(index.oid).fetched += batch.rows as u64;
            let batch = filtered(plan, scan.filter.as_ref(), batch, &mut self.postponed, run)?;
            if batch.rows > 0 {
                return Ok(Some(batch));
            }
            if !more {
                return Ok(None);
            }
        }
    }

    fn rescan(&mut self, _plan: &Plan, _run: &mut Run<'_, '_>) -> Result<()> {
        self.postponed = Postponed::default();
        self.search = None;
        self.waiting.clear();
        self.ready.clear();
        self.ended = false;
        self.target = self.first;
        Ok(())
    }

    fn bound(&mut self, rows: u64) {
        self.expected = usize::try_from(rows).ok();
        self.first = usize::try_from(rows).unwrap_or(BATCH_ROWS).clamp(1, BATCH_ROWS);
        self.target = self.first;
    }
}
