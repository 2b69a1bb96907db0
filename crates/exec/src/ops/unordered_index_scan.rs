//! Reads rows through an index that keeps no order: the rows that it leads to are collected first, then
//! fetched one after the other. Those that the index isn't sure of are asked again.

use std::sync::Arc;

use base::{Oid, Result, TupleId};
use catalog::Index;
use sql::Plan;
use sql::plan::{Node, Scan};
use types::Batch;
use types::batch::BATCH_ROWS;

use super::before_error::Postponed;
use super::bitmap_heap_scan::REMOVED_BY_RECHECK;
use super::index_scan;
use crate::ops::before_error::filtered;
use crate::ops::measure::count;
use crate::ops::operator::{Operator, wrong_node};
use crate::run::Run;
use crate::table::{Projection, TableHandle};
use crate::tally::Pages;
use crate::{index_search, rows, vector};

const FIRST_TARGET: usize = 16;

/// See the module's documentation. Batches grow from a few rows, so that a LIMIT costs little.
pub struct UnorderedIndexScan {
    table: TableHandle,
    projection: Projection,
    types: Vec<Oid>,
    /// Rows still to be fetched, the last one first; None before the index has been asked.
    roots: Option<Vec<TupleId>>,
    target: usize,
    postponed: Postponed,
}

impl UnorderedIndexScan {
    /// Before the first row.
    pub fn new(scan: &Scan, run: &mut Run<'_, '_>) -> Result<UnorderedIndexScan> {
        Ok(UnorderedIndexScan {
            table: TableHandle::open(run.cx.engine, &scan.table, run.cx.format)?,
            projection: Projection::new(&scan.table, &scan.columns),
            types: scan.types(),
            roots: None,
            target: FIRST_TARGET,
            postponed: Postponed::default(),
        })
    }

    /// Fetches rows until the batch is full enough; false at the end.
    fn fill(
        &mut self,
        index: &Arc<Index>,
        batch: &mut Batch,
        run: &mut Run<'_, '_>,
    ) -> Result<bool> {
        let Some(roots) = &mut self.roots else { return Ok(false) };
        let pages = Pages::now(run.cx.task());
        while batch.rows < self.target {
            sched::check_interrupts()?;
            let Some(root) = roots.pop() else { break };
            index_scan::fetch(&self.table, &self.projection, root, batch, run)?;
        }
        let task = run.cx.tx.locks().task();
        pages.count(task, run.cx.tally.of(self.table.table.oid));
        run.cx.tally.of(index.oid).fetched += batch.rows as u64;
        self.target = (self.target * 4).min(BATCH_ROWS);
        Ok(!roots.is_empty())
    }
}

impl Operator for UnorderedIndexScan {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::IndexScan { scan, index, bounds, .. } = &plan.node else {
            return Err(wrong_node());
        };
        if self.roots.is_none() {
            let mut roots = Vec::new();
            index_search::collect(&scan.table, index, bounds, run, &mut |root, _| {
                roots.push(root);
            })?;
            roots.sort_unstable_by(|a, b| b.cmp(a));
            roots.dedup();
            self.roots = Some(roots);
        }
        self.postponed.raise()?;
        loop {
            let mut batch = rows::empty(&self.types);
            let more = self.fill(index, &mut batch, run)?;
            let before = batch.rows;
            let batch = vector::filter(bounds.recheck.as_ref(), batch, run)?;
            count(plan, REMOVED_BY_RECHECK, (before - batch.rows) as u64, run);
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
        self.roots = None;
        self.target = FIRST_TARGET;
        Ok(())
    }
}
