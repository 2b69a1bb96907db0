//! Reads the whole table, page by page.

use access::HeapScan;
use base::{Oid, Result};
use sql::Plan;
use sql::plan::{Node, Scan};
use types::Batch;
use types::batch::BATCH_ROWS;

use super::{Operator, wrong_node};
use crate::run::Run;
use crate::table::{Projection, TableHandle, Version, scan_column_type};
use crate::tally::Pages;
use crate::{rows, vector};

/// See the module's documentation. The first batch is one page's rows, later ones are larger, so
/// that a LIMIT costs little.
pub struct SeqScan {
    table: TableHandle,
    projection: Projection,
    types: Vec<Oid>,
    scan: Option<HeapScan>,
    ended: bool,
    target: usize,
}

impl SeqScan {
    /// Before the first row.
    pub fn new(scan: &Scan, run: &mut Run<'_, '_>) -> Result<SeqScan> {
        let table = TableHandle::open(run.cx.engine, &scan.table, run.cx.format)?;
        let types = scan.columns.iter().map(|c| scan_column_type(&scan.table, *c)).collect();
        let projection = Projection::new(&scan.table, &scan.columns);
        Ok(SeqScan { table, projection, types, scan: None, ended: false, target: 1 })
    }

    /// The next rows, unfiltered; None at the end.
    ///
    /// # Errors
    /// I/O.
    pub fn next_batch(&mut self, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        if self.ended { Ok(None) } else { self.fill(run).map(Some) }
    }

    /// Reads pages until the batch is full enough.
    fn fill(&mut self, run: &mut Run<'_, '_>) -> Result<Batch> {
        let mut batch = rows::empty(&self.types);
        if self.target == BATCH_ROWS {
            // And the rest of the last page.
            batch.reserve(BATCH_ROWS + BATCH_ROWS / 8);
        }
        let mut failed = None;
        let (table, projection) = (&self.table, &self.projection);
        let before = Pages::now(run.cx.task());
        let begins = self.scan.is_none();
        let scan = self.scan.get_or_insert_with(|| table.heap.scan(&run.snapshot, None));
        let mut versions = Vec::new();
        while batch.rows < self.target {
            sched::check_interrupts()?;
            let more = scan.next_page(run.cx.tx, |tid, root, bytes| {
                if projection.system {
                    versions.push((tid, root));
                } else if failed.is_none() {
                    let at = Version::new(tid, root);
                    failed = projection.push(&table.columns, at, bytes, &mut batch).err();
                }
            })?;
            if let Some(error) = failed.take() {
                return Err(error);
            }
            for (tid, root) in versions.drain(..) {
                if let Some(tuple) = table.heap.fetch_version(tid)? {
                    let at = Version { tid, root, system: tuple.system };
                    projection.push(&table.columns, at, &tuple.data, &mut batch)?;
                }
            }
            if !more {
                self.ended = true;
                break;
            }
        }
        self.target = (self.target * 8).min(BATCH_ROWS);
        let counts = run.cx.tally.of(table.table.oid);
        counts.scans += u64::from(begins);
        counts.returned += batch.rows as u64;
        before.count(run.cx.tx.locks().task(), counts);
        Ok(batch)
    }
}

impl Operator for SeqScan {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::SeqScan(scan) = &plan.node else {
            return Err(wrong_node());
        };
        while !self.ended {
            let batch = self.fill(run)?;
            let batch = vector::filter(scan.filter.as_ref(), batch, run)?;
            if batch.rows > 0 {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }

    fn rescan(&mut self, _plan: &Plan, _run: &mut Run<'_, '_>) -> Result<()> {
        self.scan = None;
        self.ended = false;
        self.target = 1;
        Ok(())
    }
}
