//! Sorts. Keys become order-preserving bytes that are compared with `memcmp`; equal keys keep the
//! order of their coming. With a bound from a LIMIT above, only that many rows are kept. Rows beyond
//! `work_mem` go into sorted runs in temporary files, which are merged at the end. Over a Gather several threads
//! sort, each the rows of its own pieces ([`together`]).

mod together;

use std::cmp::Ordering;

use base::faults::{self, Fault};
use base::settings::setting;
use base::{Oid, Result};
use sched::memory::Use;
use sql::Plan;
use sql::expr::SortKey;
use sql::plan::Node;
use storage::Storage;
use types::batch::BATCH_ROWS;
use types::key::KeyOrder;
use types::{Batch, Datum};

use super::spill::{self, Merge, RunWriter};
use crate::eval;
use crate::ops::measure::note_most;
use crate::ops::operator::{Operator, types, wrong_node};
use crate::rows::{self, Row};
use crate::run::Run;

/// How rows were sorted, as EXPLAIN has it; the kilobytes that it took are counted under these names.
pub const METHODS: [&str; 3] = ["quicksort", "top-N heapsort", "external merge"];
/// A bound up to this keeps a top list in memory.
const TOP_MAX: u64 = 100_000;

/// See the module's documentation.
pub struct Sort {
    input: Box<dyn Operator>,
    bound: Option<u64>,
    sorted: Option<Sorted>,
    next: usize,
}

/// What a sort ends in.
pub(super) enum Sorted {
    /// All rows, and the order in which to return them.
    Memory(Batch, Vec<u32>),
    /// Runs in files.
    Files(Merge),
}

/// A row to sort: the key's first bytes, then where all of them are.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    head: u64,
    begin: u32,
    end: u32,
    row: u32,
}

/// Rows and keys in the order of their coming.
pub(super) struct Sorter {
    pub(super) rows: Batch,
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    /// Bytes that the rows hold, about.
    held: usize,
    runs: Vec<spill::Run>,
    /// Bytes that are in files, about.
    spilled: usize,
    /// Rows that came, and the most bytes that were held.
    all: u64,
    most: usize,
    /// The entries are a few sorted lists, one after the other.
    merged: bool,
}

/// How much a sort keeps.
#[derive(Clone, Copy)]
struct Bounds {
    /// Only the first rows.
    rows: Option<u64>,
    /// Bytes in memory.
    bytes: usize,
}

fn head(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    let n = bytes.len().min(8);
    word[..n].copy_from_slice(&bytes[..n]);
    u64::from_be_bytes(word)
}

impl Sorter {
    /// Without rows yet, of these types.
    pub(super) fn new(types: &[Oid]) -> Sorter {
        let rows = rows::empty(types);
        let (bytes, entries, runs) = (vec![], vec![], vec![]);
        Sorter { rows, bytes, entries, held: 0, runs, spilled: 0, all: 0, most: 0, merged: false }
    }

    /// Adds all rows of an input.
    fn fill(
        &mut self,
        op: &mut dyn Operator,
        (input, keys): (&Plan, &[SortKey]),
        bounds: Bounds,
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        while let Some(batch) = op.next(input, run)? {
            sched::check_interrupts_now()?;
            self.add(&batch, keys, run)?;
            (self.all, self.most) = (self.all + batch.rows as u64, self.memory().max(self.most));
            if let Some(bound) = bounds.rows {
                if self.rows.rows as u64 > (bound * 2).max(4 * BATCH_ROWS as u64) {
                    self.cut(bound as usize);
                }
            } else if self.memory() > bounds.bytes {
                let types = types(input, run.prepared);
                self.spill(&types, &run.cx.engine.storage)?;
            }
        }
        Ok(())
    }

    /// Notes what EXPLAIN says of it.
    fn tell(&self, plan: &Plan, bounds: Bounds, run: &mut Run<'_, '_>) {
        let (method, most) = match self.spilled {
            0 => {
                let bounded = bounds.rows.is_some_and(|bound| self.all > bound);
                (METHODS[usize::from(bounded)], self.most)
            }
            bytes => (METHODS[2], bytes + self.memory()),
        };
        note_most(plan, method, most.div_ceil(1024) as u64, run);
    }

    /// All rows in order.
    pub(super) fn finish(mut self, types: &[Oid], storage: &Storage) -> Result<Sorted> {
        if self.runs.is_empty() {
            let order = self.order();
            return Ok(Sorted::Memory(self.rows, order));
        }
        self.spill(types, storage)?;
        Ok(Sorted::Files(Merge::new(self.runs, types)?))
    }

    fn compare(&self, a: &Entry, b: &Entry) -> Ordering {
        let key = |e: &Entry| &self.bytes[e.begin as usize..e.end as usize];
        a.head.cmp(&b.head).then_with(|| key(a).cmp(key(b))).then(a.row.cmp(&b.row))
    }

    pub(super) fn add(
        &mut self,
        batch: &Batch,
        keys: &[SortKey],
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        for row in 0..batch.rows {
            let begin = self.bytes.len();
            for key in keys {
                let value = eval::eval(&key.expr, Row::Batch(batch, row), run)?;
                encode(key, &value, &mut self.bytes)?;
            }
            let (begin, end) = (begin as u32, self.bytes.len() as u32);
            if self.bytes.len() > u32::MAX as usize {
                return Err(base::err!(OUT_OF_MEMORY, "sort keys exceed 4 GB"));
            }
            let number = (self.rows.rows + row) as u32;
            let head = head(&self.bytes[begin as usize..]);
            self.entries.push(Entry { head, begin, end, row: number });
        }
        self.held += rows::batch_bytes(batch);
        rows::append(&mut self.rows, batch)?;
        Ok(())
    }

    /// Bytes held in all.
    pub(super) fn memory(&self) -> usize {
        self.held + self.bytes.len() + self.entries.len() * size_of::<Entry>()
    }

    /// Writes what is held as a sorted run, and begins anew.
    pub(super) fn spill(&mut self, types: &[Oid], storage: &Storage) -> Result<()> {
        self.spilled += self.held + self.bytes.len();
        let mut entries = std::mem::take(&mut self.entries);
        self.arrange(&mut entries);
        let mut run = RunWriter::new(storage, types)?;
        for entry in &entries {
            sched::check_interrupts()?;
            let key = &self.bytes[entry.begin as usize..entry.end as usize];
            run.add(key, &rows::get(&self.rows, entry.row as usize, types))?;
        }
        self.runs.push(run.finish()?);
        self.rows = rows::empty(types);
        self.bytes.clear();
        self.held = 0;
        Ok(())
    }

    /// Sorts; others get their turns meanwhile.
    fn arrange(&self, entries: &mut [Entry]) {
        entries.sort_unstable_by(sched::unhurried(|a: &Entry, b: &Entry| self.compare(a, b)));
    }

    /// The row numbers in order.
    fn order(&mut self) -> Vec<u32> {
        let mut entries = std::mem::take(&mut self.entries);
        match self.merged {
            // The stable sort finds the lists and merges them.
            true => entries.sort_by(sched::unhurried(|a: &Entry, b: &Entry| self.compare(a, b))),
            false => self.arrange(&mut entries),
        }
        entries.iter().map(|e| e.row).collect()
    }

    /// Keeps only the first `bound` rows.
    fn cut(&mut self, bound: usize) {
        let mut entries = std::mem::take(&mut self.entries);
        if bound > 0 && entries.len() > bound {
            entries.select_nth_unstable_by(bound - 1, |a, b| self.compare(a, b));
        }
        entries.truncate(bound);
        // The order of coming decides between equal keys, so it must survive.
        entries.sort_unstable_by_key(|e| e.row);
        let kept: Vec<u32> = entries.iter().map(|e| e.row).collect();
        let mut bytes = Vec::with_capacity(self.bytes.len() / 2);
        for (number, entry) in entries.iter_mut().enumerate() {
            let begin = bytes.len() as u32;
            bytes.extend_from_slice(&self.bytes[entry.begin as usize..entry.end as usize]);
            (entry.begin, entry.end, entry.row) = (begin, bytes.len() as u32, number as u32);
        }
        self.rows = rows::take(&self.rows, &kept);
        self.bytes = bytes;
        self.entries = entries;
    }
}

/// Appends a sort key's bytes.
pub fn encode(key: &SortKey, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    let order = KeyOrder {
        descending: key.descending,
        nulls_first: key.nulls_first,
        ..KeyOrder::default()
    };
    types::key::encode(key.expr.ty(), value, order, out)
}

impl Sort {
    /// Over an input.
    pub fn new(input: Box<dyn Operator>) -> Sort {
        Sort { input, bound: None, sorted: None, next: 0 }
    }

    fn sort(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Sorted> {
        let Node::Sort { input, keys, .. } = &plan.node else {
            return Err(wrong_node());
        };
        let types = types(input, run.prepared);
        let bounds = Bounds {
            rows: self.bound.filter(|bound| *bound <= TOP_MAX),
            bytes: run.cx.settings.int(setting::WORK_MEM) as usize * 1024,
        };
        let mut sorter = Sorter::new(&types);
        let others = match &input.node {
            Node::Gather { absorbed: true, .. } => {
                self.fill_together(plan, &mut sorter, bounds, run)?
            }
            _ => Vec::new(),
        };
        sorter.fill(self.input.as_mut(), (input, keys), bounds, run)?;
        faults::reach(Fault::Sort)?;
        for other in others {
            sorter.merge(other, (&types, bounds), run)?;
        }
        sorter.tell(plan, bounds, run);
        sorter.finish(&types, &run.cx.engine.storage)
    }
}

impl Operator for Sort {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        if self.sorted.is_none() {
            let _memory = sched::memory::for_use(Use::Sort);
            self.sorted = Some(self.sort(plan, run)?);
        }
        let (rows, order) = match &mut self.sorted {
            Some(Sorted::Memory(rows, order)) => (rows, order),
            Some(Sorted::Files(merge)) => {
                let types = types(plan, run.prepared);
                let batch = merge.next(&types, BATCH_ROWS)?;
                return Ok((batch.rows > 0).then_some(batch));
            }
            None => return Ok(None),
        };
        let end = order.len().min(self.next + BATCH_ROWS);
        if self.next == end {
            return Ok(None);
        }
        let batch = rows::take(rows, &order[self.next..end]);
        self.next = end;
        Ok(Some(batch))
    }

    fn rescan(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let Node::Sort { input, .. } = &plan.node else {
            return Err(wrong_node());
        };
        self.sorted = None;
        self.next = 0;
        self.input.rescan(input, run)
    }

    fn bound(&mut self, rows: u64) {
        self.bound = Some(rows);
    }
}
