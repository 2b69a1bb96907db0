//! Reads columns that a GiST or SP-GiST index has, also in the order of distances. The rows' visibility comes from the
//! visibility map, as of any index-only scan; an index that isn't sure of a row is asked again with its values.

use access::gist::Nearest;
use access::vector::ByDistance;
use access::{Heap, VacuumEpoch};
use base::{Error, Oid, RelId, Result};
use catalog::{Index, Table};
use sql::Plan;
use sql::plan::{IndexBounds, Node, Scan, ScanColumn};
use types::Batch;
use types::batch::BATCH_ROWS;

use super::before_error::Postponed;
use super::index_only_scan::HEAP_FETCHES;
use crate::ops::before_error::filtered;
use crate::ops::measure::count;
use crate::ops::operator::{Operator, wrong_node};
use crate::run::Run;
use crate::table::KeyCodec;
use crate::{index_search, rows, vector};

const FIRST_TARGET: usize = 16;

/// See the module's documentation. Batches grow from a few rows, so that a LIMIT costs little.
pub struct CoveringOnlyScan {
    heap: Heap,
    /// The vacuum epoch when the search began.
    epoch: VacuumEpoch,
    codec: KeyCodec,
    /// The key column that each column of the scan is.
    places: Vec<usize>,
    types: Vec<Oid>,
    /// None before the first row; then None when there are no rows.
    search: Option<Option<Nearest>>,
    /// Rows of the first batch.
    first: usize,
    target: usize,
    postponed: Postponed,
}

impl CoveringOnlyScan {
    /// Before the first row.
    ///
    /// # Errors
    /// Internal: a column that the index lacks.
    pub fn new(scan: &Scan, index: &Index, run: &mut Run<'_, '_>) -> Result<CoveringOnlyScan> {
        Ok(CoveringOnlyScan {
            heap: Heap::open(&run.cx.engine.storage, RelId(scan.table.rel)),
            epoch: VacuumEpoch::default(),
            codec: KeyCodec::new(&scan.table, index),
            places: places(&scan.table, index, &scan.columns)?,
            types: scan.types(),
            search: None,
            first: FIRST_TARGET,
            target: FIRST_TARGET,
            postponed: Postponed::default(),
        })
    }

    /// Adds rows until the batch is full enough; false at the end.
    fn fill(
        &mut self,
        plan: &Plan,
        bounds: &IndexBounds,
        batch: &mut Batch,
        run: &mut Run<'_, '_>,
    ) -> Result<bool> {
        let Some(Some(search)) = &mut self.search else { return Ok(false) };
        let tree = self.codec.tree.as_ref().ok_or_else(wrong_node)?;
        let corrupted = || base::err!(INDEX_CORRUPTED, "key of an index can't be read");
        let mut fetches = 0;
        let mut more = true;
        while batch.rows < self.target {
            sched::check_interrupts()?;
            let Some(near) = search.next(run.cx.tx)? else {
                more = false;
                break;
            };
            let root = near.found.root;
            if run.cx.tx.tracks_reads() || !self.heap.is_known_visible(root.block, self.epoch) {
                fetches += 1;
                if !self.heap.is_visible(run.cx.tx, &run.snapshot, root, true)? {
                    continue;
                }
            }
            let mut row = Vec::with_capacity(self.places.len());
            for place in &self.places {
                row.push(tree.value(&near.key, *place).ok_or_else(corrupted)?);
            }
            if !near.found.recheck || bounds.recheck.is_none() {
                rows::push(batch, row)?;
                continue;
            }
            let mut one = rows::empty(&self.types);
            rows::push(&mut one, row)?;
            let one = vector::filter(bounds.recheck.as_ref(), one, run)?;
            rows::append(batch, &one)?;
        }
        count(plan, HEAP_FETCHES, fetches, run);
        self.target = (self.target * 4).min(BATCH_ROWS);
        Ok(more)
    }
}

/// The key columns that the columns of a scan are.
fn places(table: &Table, index: &Index, columns: &[ScanColumn]) -> Result<Vec<usize>> {
    let place = |column: &ScanColumn| match column {
        ScanColumn::Attr(n) => index.columns.iter().position(|k| k.column == *n),
        _ => None,
    };
    let lacks = || Error::internal(format!("index of {} lacks a column of its scan", table.name));
    columns.iter().map(|column| place(column).ok_or_else(lacks)).collect()
}

impl Operator for CoveringOnlyScan {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::IndexOnlyScan { scan, index, bounds, .. } = &plan.node else {
            return Err(wrong_node());
        };
        if self.search.is_none() {
            let files = index_search::open(index, &run.cx.engine.storage);
            let tree = files.as_covering().ok_or_else(wrong_node)?;
            let search = index_search::tree(&self.codec, bounds, run)?;
            self.epoch = self.heap.vacuum_epoch();
            self.search = Some(search.map(|search| tree.nearest(search).with_keys()));
            run.cx.tally.of(index.oid).scans += 1;
        }
        self.postponed.raise()?;
        loop {
            let mut batch = rows::empty(&self.types);
            let more = self.fill(plan, bounds, &mut batch, run)?;
            run.cx.tally.of(index.oid).returned += batch.rows as u64;
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
        self.target = self.first;
        Ok(())
    }

    fn bound(&mut self, rows: u64) {
        self.first = usize::try_from(rows).unwrap_or(BATCH_ROWS).clamp(1, BATCH_ROWS);
        self.target = self.first;
    }
}
