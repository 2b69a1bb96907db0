//! Reads columns that an index has, in its order. The rows' visibility comes from the visibility map
//! (`access::visibility_map`); only rows of pages that it doesn't vouch for are looked up in the table.

use std::sync::Arc;

use access::btree::{Cursor, Entries};
use access::{BTree, Heap, KeyRange};
use base::{Error, Oid, RelId, Result, TupleId};
use catalog::{Index, Table};
use sql::Plan;
use sql::expr::SortKey;
use sql::plan::{Node, Scan, ScanColumn};
use types::batch::BATCH_ROWS;
use types::key::{self, KeyOrder};
use types::{Batch, Column, Datum};

use super::before_error::Postponed;
use super::index_bounds;
use super::index_pieces::{IndexPieces, Taken};
use crate::ops::before_error::filtered;
use crate::ops::measure::count;
use crate::ops::operator::{Operator, wrong_node};
use crate::rows;
use crate::run::Run;
use crate::table::KeyCodec;
use crate::tally::{Pages, RelationCounts};

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
    postponed: Postponed,
    /// Where entries come from, if other threads scan the index, too, and those that this one has taken.
    pieces: Option<IndexPieces>,
    taken: Taken,
}

/// Reads the columns that are asked for out of key bytes.
struct KeyReader {
    /// Type and order of each key column up to the last one that is wanted, and the column of the scan
    /// that it is.
    parts: Vec<(Oid, KeyOrder, Option<usize>)>,
    /// Where the rest of each key begins.
    at: Vec<u32>,
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
            .enumerate()
            .map(|(n, (_, ty, order))| (*ty, *order, places.iter().position(|place| *place == n)))
            .collect();
        Ok(KeyReader { parts, at: Vec::new() })
    }

    /// Adds the columns of keys, which begin at `self.at`, as rows.
    fn push(&mut self, bytes: &[u8], batch: &mut Batch) -> Result<()> {
        let corrupted = || base::err!(INDEX_CORRUPTED, "key of an index can't be read");
        for (ty, order, to) in &self.parts {
            let (mut unwanted, at) = (Column::new(*ty), &mut self.at);
            let to = to.map_or(&mut unwanted, |n| &mut batch.columns[n]);
            key::decode_column(*ty, *order, bytes, at, to).ok_or_else(corrupted)?;
        }
        batch.rows += self.at.len();
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
            types: scan.types(),
            ranges: None,
            cursor: None,
            target: FIRST_TARGET,
            postponed: Postponed::default(),
            pieces: IndexPieces::of(scan, run),
            taken: Taken::default(),
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
        if let Some(pieces) = &self.pieces {
            let (tree, heap, taken) = (&self.tree, &self.heap, &mut self.taken);
            let open = |range| tree.scan_only(range, backward, heap);
            while batch.rows < self.target {
                if !pieces.take(&mut self.ranges, open, (tx, true), taken, &mut counts.index)? {
                    return Ok(false);
                }
                let found = taken.entries();
                pages = push_visible((heap, &mut self.keys), found, (batch, counts), pages, run)?;
            }
            pages.count(task, &mut counts.index);
            return Ok(true);
        }
        while batch.rows < self.target {
            let Some(cursor) = &mut self.cursor else {
                if !self.next_range(backward, counts) {
                    return Ok(false);
                }
                continue;
            };
            let Some(found) = cursor.next_run(tx, self.target - batch.rows)? else {
                self.cursor = None;
                continue;
            };
            counts.index.returned += found.entries.len() as u64;
            let to = (&self.heap, &mut self.keys);
            pages = push_visible(to, found, (batch, counts), pages, run)?;
        }
        pages.count(task, &mut counts.index);
        Ok(true)
    }
}

/// Adds the rows of some entries, as far as the snapshot sees them.
fn push_visible(
    (heap, keys): (&Heap, &mut KeyReader),
    found: Entries<'_>,
    (batch, counts): (&mut Batch, &mut Counts),
    mut pages: Pages,
    run: &mut Run<'_, '_>,
) -> Result<Pages> {
    let tx = run.cx.tx;
    let task = tx.locks().task();
    keys.at.clear();
    for (n, (begin, _, root)) in found.entries.iter().enumerate() {
        // A transaction whose reads are noted visits each row.
        if tx.tracks_reads() || found.visible.get(n) != Some(&true) {
            pages = pages.count(task, &mut counts.index);
            let seen = look(heap, *root, counts, run)?;
            pages = pages.count(task, &mut counts.table);
            if !seen {
                continue;
            }
        }
        keys.at.push(*begin);
    }
    keys.push(found.keys, batch)?;
    Ok(pages)
}

/// Whether the snapshot sees a row, by a visit to the table.
fn look(heap: &Heap, root: TupleId, counts: &mut Counts, run: &mut Run<'_, '_>) -> Result<bool> {
    sched::check_interrupts()?;
    counts.fetches += 1;
    // Rows that come in the order of their pages: one look at each page is enough.
    let set_all_visible = counts.block.replace(root.block) != Some(root.block);
    let seen = heap.is_visible(run.cx.tx, &run.snapshot, root, set_all_visible)?;
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
        self.postponed.raise()?;
        loop {
            sched::check_interrupts()?;
            let mut batch = rows::empty(&self.types);
            let mut counts = Counts::default();
            let more = self.fill(*backward, &mut batch, &mut counts, run)?;
            counts.index.fetched += counts.table.fetched;
            counts.table.fetched = 0;
            run.cx.tally.of(index.oid).add(&counts.index);
            run.cx.tally.of(scan.table.oid).add(&counts.table);
            count(plan, HEAP_FETCHES, counts.fetches, run);
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

    fn skip_to(&mut self, plan: &Plan, key: &SortKey, value: &Datum) -> Result<()> {
        let Node::IndexOnlyScan { scan, index, bounds, backward } = &plan.node else {
            return Err(wrong_node());
        };
        let Some(cursor) = self.cursor.as_mut().filter(|_| !*backward) else { return Ok(()) };
        let codec = KeyCodec::new(&scan.table, index);
        if let Some(from) = index_bounds::beginning_at(&codec, (scan, index, bounds), key, value)? {
            cursor.skip_to(&from);
        }
        Ok(())
    }

    fn rescan(&mut self, _plan: &Plan, _run: &mut Run<'_, '_>) -> Result<()> {
        self.postponed = Postponed::default();
        self.ranges = None;
        self.cursor = None;
        if let Some(pieces) = &self.pieces {
            pieces.rewind();
            self.taken = Taken::default();
        }
        self.target = FIRST_TARGET;
        Ok(())
    }
}
