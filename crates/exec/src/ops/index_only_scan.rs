//! Reads columns that an index has, in its order. The rows' visibility comes from the visibility map
//! (`access::visibility_map`); only rows of pages that it doesn't vouch for are looked up in the table.

use std::sync::Arc;

use access::btree::Cursor;
use access::{BTree, Heap, KeyRange};
use base::{Error, Oid, RelId, Result, TupleId};
use catalog::{Index, Table};
use sql::Plan;
use sql::plan::{Node, Scan, ScanColumn};
use types::batch::BATCH_ROWS;
use types::key::{self, KeyOrder};
use types::{Batch, Datum};

use super::{Operator, index_bounds, wrong_node};
use crate::run::Run;
use crate::table::{KeyCodec, scan_column_type};
use crate::tally::{Pages, RelationCounts};
use crate::{rows, vector};

/// EXPLAIN's name for the rows that were looked up in the table.
pub const HEAP_FETCHES: &str = "Heap Fetches";

const FIRST_TARGET: usize = 16;

/// See the module's documentation. Batches grow from a few rows, so that a LIMIT costs little.
pub struct IndexOnlyScan {
    heap: Heap,
    tree: BTree,
    keys: KeyReader,
    types: Vec<Oid>,
    /// Ranges to seek, last one first; None before the bounds are known.
    ranges: Option<Vec<KeyRange>>,
    cursor: Option<Cursor>,
    target: usize,
}

/// Reads the columns that are asked for out of key bytes.
struct KeyReader {
    /// Type and order of each key column up to the last one that is wanted.
    parts: Vec<(Oid, KeyOrder)>,
    /// Key column of each column of the scan.
    places: Vec<usize>,
    values: Vec<Datum>,
}

impl KeyReader {
    fn new(table: &Table, index: &Index, columns: &[ScanColumn]) -> Result<KeyReader> {
        let place = |column: &ScanColumn| match column {
            ScanColumn::Attr(n) => index.columns.iter().position(|k| k.column == *n),
            _ => None,
        };
        let places: Option<Vec<usize>> = columns.iter().map(place).collect();
        let places = places.ok_or_else(|| Error::internal("index lacks a column of its scan"))?;
        let wanted = places.iter().max().map_or(0, |last| last + 1);
        let parts = KeyCodec::new(table, index)
            .columns
            .iter()
            .take(wanted)
            .map(|(_, ty, order)| (*ty, *order))
            .collect();
        Ok(KeyReader { parts, places, values: Vec::new() })
    }

    /// Adds a key's columns as a row.
    fn push(&mut self, mut bytes: &[u8], batch: &mut Batch) -> Result<()> {
        self.values.clear();
        for (ty, order) in &self.parts {
            let (value, used) = key::decode(*ty, bytes, *order)
                .ok_or_else(|| base::err!(INDEX_CORRUPTED, "key of an index can't be read"))?;
            self.values.push(value);
            bytes = &bytes[used..];
        }
        for (column, place) in batch.columns.iter_mut().zip(&self.places) {
            column.push(self.values[*place].clone());
        }
        batch.rows += 1;
        Ok(())
    }
}

/// What a batch did.
#[derive(Default)]
struct Counts {
    index: RelationCounts,
    table: RelationCounts,
    fetches: u64,
    /// The page that was asked for last.
    block: Option<u32>,
}

impl IndexOnlyScan {
    /// Before the first row.
    pub fn new(scan: &Scan, index: &Arc<Index>, run: &mut Run<'_, '_>) -> Result<IndexOnlyScan> {
        let storage = &run.cx.engine.storage;
        Ok(IndexOnlyScan {
            heap: Heap::open(storage, RelId(scan.table.rel)),
            tree: BTree::open(storage, RelId(index.rel)),
            keys: KeyReader::new(&scan.table, index, &scan.columns)?,
            types: scan.columns.iter().map(|c| scan_column_type(&scan.table, *c)).collect(),
            ranges: None,
            cursor: None,
            target: FIRST_TARGET,
        })
    }

    /// Begins with the next range; false when there is none.
    fn next_range(&mut self, backward: bool, counts: &mut Counts) -> bool {
        let Some(range) = self.ranges.as_mut().and_then(Vec::pop) else { return false };
        counts.index.scans += 1;
        self.cursor = Some(self.tree.scan_only(range, backward, &self.heap));
        true
    }

    /// Adds rows until the batch is full enough; false at the end.
    fn fill(
        &mut self,
        backward: bool,
        batch: &mut Batch,
        counts: &mut Counts,
        run: &mut Run<'_, '_>,
    ) -> Result<bool> {
        let tx = run.cx.tx;
        let task = tx.locks().task();
        let mut pages = Pages::now(task);
        while batch.rows < self.target {
            let Some(cursor) = &mut self.cursor else {
                if !self.next_range(backward, counts) {
                    return Ok(false);
                }
                continue;
            };
            let Some((_, root)) = cursor.next(tx)? else {
                self.cursor = None;
                continue;
            };
            counts.index.returned += 1;
            // Who notes reads visits each row.
            if !cursor.is_visible() || tx.tracks_reads() {
                pages = pages.count(task, &mut counts.index);
                let seen = look(&self.heap, root, counts, run)?;
                pages = pages.count(task, &mut counts.table);
                if !seen {
                    continue;
                }
            }
            self.keys.push(cursor.last_key(), batch)?;
        }
        pages.count(task, &mut counts.index);
        Ok(true)
    }
}

/// Whether the snapshot sees a row, by a visit to the table.
fn look(heap: &Heap, root: TupleId, counts: &mut Counts, run: &mut Run<'_, '_>) -> Result<bool> {
    sched::check_interrupts()?;
    counts.fetches += 1;
    // Rows that come in the order of their pages: one look at each page is enough.
    let learn = counts.block.replace(root.block) != Some(root.block);
    let seen = heap.check(run.cx.tx, &run.snapshot, root, learn)?;
    counts.table.fetched += u64::from(seen);
    Ok(seen)
}

impl Operator for IndexOnlyScan {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::IndexOnlyScan { scan, index, bounds, backward } = &plan.node else {
            return Err(wrong_node());
        };
        if self.ranges.is_none() {
            let mut ranges =
                index_bounds::ranges(&KeyCodec::new(&scan.table, index), bounds, *backward, run)?;
            ranges.reverse();
            self.ranges = Some(ranges);
        }
        loop {
            sched::check_interrupts()?;
            let mut batch = rows::empty(&self.types);
            let mut counts = Counts::default();
            let more = self.fill(*backward, &mut batch, &mut counts, run)?;
            counts.index.fetched += counts.table.fetched;
            counts.table.fetched = 0;
            run.cx.tally.of(index.oid).add(&counts.index);
            run.cx.tally.of(scan.table.oid).add(&counts.table);
            super::count(plan, HEAP_FETCHES, counts.fetches, run);
            self.target = (self.target * 4).min(BATCH_ROWS);
            let before = batch.rows as u64;
            let batch = vector::filter(scan.filter.as_ref(), batch, run)?;
            super::count(plan, super::REMOVED_BY_FILTER, before - batch.rows as u64, run);
            if batch.rows > 0 {
                return Ok(Some(batch));
            }
            if !more {
                return Ok(None);
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
