//! Reads rows through an index, in its order.

use std::sync::Arc;

use access::btree::Cursor;
use access::{BTree, KeyRange};
use base::{Oid, RelId, Result, TupleId};
use catalog::Index;
use sql::Plan;
use sql::plan::{Node, Scan};
use txn::Transaction;
use types::Batch;
use types::batch::BATCH_ROWS;

use super::{Operator, index_bounds, wrong_node};
use crate::run::Run;
use crate::table::{Projection, TableHandle, Version, scan_column_type};
use crate::tally::{Pages, RelationCounts};
use crate::{rows, vector};

/// See the module's documentation. Batches grow from a few rows, so that a LIMIT costs little.
pub struct IndexScan {
    table: TableHandle,
    tree: BTree,
    projection: Projection,
    types: Vec<Oid>,
    /// Ranges to seek, last one first; None before the bounds are known.
    ranges: Option<Vec<KeyRange>>,
    cursor: Option<Cursor>,
    target: usize,
}

const FIRST_TARGET: usize = 16;

impl IndexScan {
    /// Before the first row.
    pub fn new(scan: &Scan, index: &Arc<Index>, run: &mut Run<'_, '_>) -> Result<IndexScan> {
        Ok(IndexScan {
            table: TableHandle::open(run.cx.engine, &scan.table, run.cx.format)?,
            tree: BTree::open(&run.cx.engine.storage, RelId(index.rel)),
            projection: Projection::new(&scan.table, &scan.columns),
            types: scan.columns.iter().map(|c| scan_column_type(&scan.table, *c)).collect(),
            ranges: None,
            cursor: None,
            target: FIRST_TARGET,
        })
    }

    /// The next entry's row id.
    fn next_root(
        &mut self,
        backward: bool,
        tx: &Transaction,
        counts: &mut RelationCounts,
    ) -> Result<Option<TupleId>> {
        loop {
            if let Some(cursor) = &mut self.cursor {
                if let Some((_, root)) = cursor.next(tx)? {
                    counts.returned += 1;
                    return Ok(Some(root));
                }
                self.cursor = None;
            }
            match self.ranges.as_mut().and_then(Vec::pop) {
                Some(range) => {
                    counts.scans += 1;
                    self.cursor = Some(self.tree.scan(range, backward));
                }
                None => return Ok(None),
            }
        }
    }

    /// Adds the row's visible version, if there is one, to the batch.
    fn fetch(&self, root: TupleId, batch: &mut Batch, run: &Run<'_, '_>) -> Result<()> {
        let (table, projection) = (&self.table, &self.projection);
        let found = table.heap.fetch(run.cx.tx, &run.snapshot, root, |tid, bytes| {
            if projection.system {
                return Ok(Some(tid));
            }
            projection.push(&table.columns, Version::new(tid, root), bytes, batch)?;
            Ok::<_, base::Error>(None)
        })?;
        if let Some(tid) = found.transpose()?.flatten()
            && let Some(tuple) = table.heap.fetch_version(tid)?
        {
            let at = Version { tid, root, system: tuple.system };
            projection.push(&table.columns, at, &tuple.data, batch)?;
        }
        Ok(())
    }
}

impl Operator for IndexScan {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::IndexScan { scan, index, bounds, backward } = &plan.node else {
            return Err(wrong_node());
        };
        if self.ranges.is_none() {
            let mut ranges = index_bounds::ranges(&scan.table, index, bounds, *backward, run)?;
            ranges.reverse();
            self.ranges = Some(ranges);
        }
        loop {
            let mut batch = rows::empty(&self.types);
            let mut ended = false;
            let (mut of_index, mut of_table) = (RelationCounts::default(), Default::default());
            let task = run.cx.tx.locks().task();
            let mut pages = Pages::now(task);
            while batch.rows < self.target && !ended {
                let root = self.next_root(*backward, run.cx.tx, &mut of_index)?;
                pages = pages.count(task, &mut of_index);
                match root {
                    Some(root) => self.fetch(root, &mut batch, run)?,
                    None => ended = true,
                }
                pages = pages.count(task, &mut of_table);
                sched::check_interrupts()?;
            }
            of_index.fetched += batch.rows as u64;
            run.cx.tally.of(index.oid).add(&of_index);
            run.cx.tally.of(scan.table.oid).add(&of_table);
            self.target = (self.target * 4).min(BATCH_ROWS);
            if batch.rows == 0 {
                return Ok(None);
            }
            let batch = vector::filter(scan.filter.as_ref(), batch, run)?;
            if batch.rows > 0 {
                return Ok(Some(batch));
            }
        }
    }

    fn rescan(&mut self, _plan: &Plan, _run: &mut Run<'_, '_>) -> Result<()> {
        self.ranges = None;
        self.cursor = None;
        self.target = FIRST_TARGET;
        Ok(())
    }
}
