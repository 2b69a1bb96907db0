//! Reads rows through an index, in its order. As the right side of a nested loop it begins anew for
//! each left row, with what it has in memory; a whole key is looked up without a cursor then.

use std::sync::Arc;

use access::btree::Cursor;
use access::{BTree, KeyRange};
use base::{Oid, RelId, Result, TupleId};
use catalog::Index;
use sql::Plan;
use sql::expr::SortKey;
use sql::plan::{IndexBounds, Node, Scan};
use txn::Transaction;
use types::batch::BATCH_ROWS;
use types::{Batch, Datum};

use super::before_error::Postponed;
use super::index_bounds;
use super::index_pieces::{IndexPieces, Taken};
use crate::ops::before_error::filtered;
use crate::ops::measure::{REMOVED_BY_FILTER, count};
use crate::ops::operator::{Operator, wrong_node};
use crate::run::Run;
use crate::table::{KeyCodec, Projection, TableHandle, Version};
use crate::tally::{Pages, RelationCounts};
use crate::{rows, vector};

/// See the module's documentation. Batches grow from a few rows, so that a LIMIT costs little.
pub struct IndexScan {
    table: TableHandle,
    tree: BTree,
    codec: KeyCodec,
    projection: Projection,
    types: Vec<Oid>,
    /// Ranges to seek, last one first; None before the bounds are known.
    ranges: Option<Vec<KeyRange>>,
    cursor: Option<Cursor>,
    target: usize,
    /// Rows that it takes, lately, until one passes the filter.
    usual: usize,
    postponed: Postponed,
    /// Rows before the filter, the key and what it leads to: their memory serves again.
    unfiltered: Batch,
    key: Vec<u8>,
    roots: Vec<TupleId>,
    /// The first row of each page that is to be read next.
    ahead: Vec<TupleId>,
    /// Where entries come from, if other threads scan the index, too, and those that this one has taken.
    pieces: Option<IndexPieces>,
    taken: Taken,
}

const FIRST_TARGET: usize = 16;
/// The same for a reader who may want no more.
const HASTY_TARGET: usize = 4;
/// Pages that are prefetched together.
const PAGES_AHEAD: usize = 16;
/// Rows with one key that are fetched without looking for interrupts.
const LOOK_UP_MAX: usize = 4 * BATCH_ROWS;

impl IndexScan {
    /// Before the first row.
    pub fn new(scan: &Scan, index: &Arc<Index>, run: &mut Run<'_, '_>) -> Result<IndexScan> {
        let types: Vec<Oid> = scan.types();
        Ok(IndexScan {
            table: TableHandle::open(run.cx.engine, &scan.table, run.cx.format)?,
            tree: BTree::open(&run.cx.engine.storage, RelId(index.rel)),
            codec: KeyCodec::new(&scan.table, index),
            projection: Projection::new(&scan.table, &scan.columns),
            unfiltered: rows::empty(&types),
            types,
            ranges: None,
            cursor: None,
            target: FIRST_TARGET,
            usual: 1,
            postponed: Postponed::default(),
            key: Vec::new(),
            roots: Vec::new(),
            ahead: Vec::new(),
            pieces: IndexPieces::of(scan, run),
            taken: Taken::default(),
        })
    }

    /// The next entry's row id.
    fn next_root(
        &mut self,
        backward: bool,
        tx: &Transaction,
        counts: &mut RelationCounts,
    ) -> Result<Option<TupleId>> {
        if let Some(pieces) = &self.pieces {
            let (tree, taken) = (&self.tree, &mut self.taken);
            if taken.used == taken.entries.len() {
                let open = |range| tree.scan(range, backward);
                if !pieces.take(&mut self.ranges, open, (tx, false), taken, counts)? {
                    return Ok(None);
                }
            }
            taken.used += 1;
            return Ok(taken.entries.get(taken.used - 1).map(|(_, _, root)| *root));
        }
        loop {
            if let Some(cursor) = &mut self.cursor {
                if let Some((_, root)) = cursor.next(tx)? {
                    counts.returned += 1;
                    return Ok(Some(root));
                }
            }
            let Some(range) = self.ranges.as_mut().and_then(Vec::pop) else { return Ok(None) };
            counts.scans += 1;
            match &mut self.cursor {
                Some(cursor) => cursor.restart(range, backward),
                None => self.cursor = Some(self.tree.scan(range, backward)),
            }
        }
    }
}

/// Adds a row's visible version, if there is one, to the batch.
///
/// # Errors
/// I/O; a row that can't be read.
pub(super) fn fetch(
    table: &TableHandle,
    projection: &Projection,
    root: TupleId,
    batch: &mut Batch,
    run: &Run<'_, '_>,
) -> Result<()> {
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

/// [`fetch`] of rows that one page has.
fn fetch_some(
    table: &TableHandle,
    projection: &Projection,
    roots: &[TupleId],
    batch: &mut Batch,
    run: &Run<'_, '_>,
) -> Result<()> {
    let [first, _, ..] = roots else {
        return roots.iter().try_for_each(|root| fetch(table, projection, *root, batch, run));
    };
    if projection.system {
        return roots.iter().try_for_each(|root| fetch(table, projection, *root, batch, run));
    }
    let mut failed = None;
    let mut lines = roots.iter().map(|root| root.offset);
    let (tx, snapshot) = (run.cx.tx, &run.snapshot);
    table.heap.fetch_lines(tx, snapshot, first.block, Some(&mut lines), |tid, root, bytes| {
        if failed.is_none() {
            let at = Version::new(tid, root);
            failed = projection.push(&table.columns, at, bytes, batch).err();
        }
    })?;
    failed.map_or(Ok(()), Err)
}

/// The parts of an index scan's node.
struct Parts<'p> {
    scan: &'p Scan,
    index: &'p Index,
    bounds: &'p IndexBounds,
    backward: bool,
}

fn parts(plan: &Plan) -> Result<Parts<'_>> {
    match &plan.node {
        Node::IndexScan { scan, index, bounds, backward } => {
            Ok(Parts { scan, index, bounds, backward: *backward })
        }
        _ => Err(wrong_node()),
    }
}

impl IndexScan {
    /// Adds rows to a batch until it is as large as wanted, without filtering them; false at the end.
    fn fill(&mut self, of: &Parts<'_>, batch: &mut Batch, run: &mut Run<'_, '_>) -> Result<bool> {
        if self.ranges.is_none() {
            let mut ranges = index_bounds::ranges(&self.codec, of.bounds, of.backward, run)?;
            ranges.reverse();
            self.ranges = Some(ranges);
        }
        let (mut more, before) = (true, batch.rows);
        let (mut of_index, mut of_table) = (RelationCounts::default(), Default::default());
        let task = run.cx.tx.locks().task();
        let mut pages = Pages::now(task);
        let mut roots = std::mem::take(&mut self.roots);
        while batch.rows < self.target && more {
            roots.clear();
            while more && roots.len() < self.target - batch.rows {
                match self.next_root(of.backward, run.cx.tx, &mut of_index)? {
                    Some(root) => roots.push(root),
                    None => more = false,
                }
            }
            pages = pages.count(task, &mut of_index);
            let mut rest = roots.chunk_by(|a, b| a.block == b.block);
            loop {
                self.ahead.clear();
                let next = rest.clone().take(PAGES_AHEAD);
                self.ahead.extend(next.map(|of_page| of_page[0]));
                if self.ahead.is_empty() {
                    break;
                }
                if self.ahead.len() > 1 {
                    self.table.heap.prefetch(&self.ahead);
                }
                for of_page in rest.by_ref().take(PAGES_AHEAD) {
                    fetch_some(&self.table, &self.projection, of_page, batch, run)?;
                    sched::check_interrupts()?;
                }
            }
            pages = pages.count(task, &mut of_table);
        }
        self.roots = roots;
        of_index.fetched += (batch.rows - before) as u64;
        run.cx.tally.of(of.index.oid).add(&of_index);
        run.cx.tally.of(of.scan.table.oid).add(&of_table);
        self.target = self.target.saturating_mul(2).min(BATCH_ROWS);
        Ok(more)
    }

    /// Adds all rows with the one key that the bounds give, without filtering them; false, and nothing is
    /// added, when there are too many to do so at once.
    fn look_up(
        &mut self,
        of: &Parts<'_>,
        batch: &mut Batch,
        run: &mut Run<'_, '_>,
    ) -> Result<bool> {
        self.key.clear();
        if !index_bounds::point(&self.codec, &of.bounds.equal, run, &mut self.key)? {
            return Ok(true);
        }
        let mut roots = std::mem::take(&mut self.roots);
        roots.clear();
        let tx = run.cx.tx;
        let task = tx.locks().task();
        let pages = Pages::now(task);
        self.tree.lookup(tx, &self.key, |root| {
            roots.push(root);
            roots.len() <= LOOK_UP_MAX
        })?;
        if roots.len() > LOOK_UP_MAX {
            self.roots = roots;
            return Ok(false);
        }
        let counts = run.cx.tally.of(of.index.oid);
        counts.scans += 1;
        counts.returned += roots.len() as u64;
        let pages = pages.count(task, counts);
        let before = batch.rows;
        for root in &roots {
            fetch(&self.table, &self.projection, *root, batch, run)?;
        }
        self.roots = roots;
        pages.count(task, run.cx.tally.of(of.scan.table.oid));
        run.cx.tally.of(of.index.oid).fetched += (batch.rows - before) as u64;
        Ok(true)
    }
}

impl Operator for IndexScan {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let of = parts(plan)?;
        self.postponed.raise()?;
        loop {
            let mut batch = rows::empty(&self.types);
            self.fill(&of, &mut batch, run)?;
            if batch.rows == 0 {
                return Ok(None);
            }
            let batch = filtered(plan, of.scan.filter.as_ref(), batch, &mut self.postponed, run)?;
            if batch.rows > 0 {
                return Ok(Some(batch));
            }
        }
    }

    fn drain(
        &mut self,
        plan: &Plan,
        (one, most): (bool, usize),
        out: &mut Batch,
        run: &mut Run<'_, '_>,
    ) -> Result<bool> {
        let of = parts(plan)?;
        self.postponed.raise()?;
        let whole_key = of.bounds.equal.len() == of.index.columns.len()
            && self.ranges.is_none()
            && self.pieces.is_none();
        let Some(filter) = &of.scan.filter else {
            if whole_key && (of.index.unique || !one) && self.look_up(&of, out, run)? {
                return Ok(true);
            }
            self.target = if one { out.rows + 1 } else { most.max(out.rows + 1) };
            let more = self.fill(&of, out, run)?;
            return Ok(one || !more);
        };
        let mut rows = std::mem::take(&mut self.unfiltered);
        let mut more = true;
        let at_once = whole_key && (of.index.unique || !one);
        let mut fresh = one && self.ranges.is_none();
        if fresh {
            self.target = self.usual;
        }
        while more {
            rows.clear();
            more = !(at_once && self.ranges.is_none() && self.look_up(&of, &mut rows, run)?)
                && self.fill(&of, &mut rows, run)?;
            let before = out.rows;
            let kept = match vector::select(filter, &rows, run) {
                Err(error) => {
                    let kept = self.postponed.kept(filter, &rows, error, run)?;
                    rows::append_some(out, &rows, &kept)?;
                    self.unfiltered = rows;
                    if one {
                        self.postponed = Postponed::default();
                    }
                    return Ok(one);
                }
                Ok(kept) => kept,
            };
            if std::mem::take(&mut fresh) {
                self.usual = match kept.as_ref().map_or(Some(&0), |kept| kept.first()) {
                    Some(first) if (*first as usize) < self.usual / 2 => self.usual / 2,
                    Some(_) => self.usual,
                    None => (self.usual * 2).min(FIRST_TARGET),
                };
            }
            match kept {
                None => rows::append(out, &rows)?,
                Some(kept) => {
                    let removed = (rows.rows - kept.len()) as u64;
                    count(plan, REMOVED_BY_FILTER, removed, run);
                    rows::append_some(out, &rows, &kept)?;
                }
            }
            if one && out.rows > before {
                more = false;
            }
            if out.rows >= most {
                break;
            }
        }
        self.unfiltered = rows;
        Ok(!more)
    }

    fn skip_to(&mut self, plan: &Plan, key: &SortKey, value: &Datum) -> Result<()> {
        let of = parts(plan)?;
        let of_scan = (of.scan, of.index, of.bounds);
        if !of.backward
            && let Some(cursor) = &mut self.cursor
            && let Some(from) = index_bounds::beginning_at(&self.codec, of_scan, key, value)?
        {
            cursor.skip_to(&from);
        }
        Ok(())
    }

    fn hasten(&mut self) {
        self.target = self.target.min(HASTY_TARGET);
    }

    fn rescan(&mut self, _plan: &Plan, _run: &mut Run<'_, '_>) -> Result<()> {
        self.postponed = Postponed::default();
        self.ranges = None;
        if let Some(cursor) = &mut self.cursor {
            cursor.end();
        }
        if let Some(pieces) = &self.pieces {
            pieces.rewind();
            self.taken = Taken::default();
        }
        self.target = FIRST_TARGET;
        Ok(())
    }
}
