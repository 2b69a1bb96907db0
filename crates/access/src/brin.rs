//! BRIN: a summary of the rows of each range of pages. A search asks the summaries and gives whole pages.
//!
//! ```text
//!  one B-tree, by range:  | range's number (4 bytes, big-endian) | state | summary |
//! ```
//!
//! * Summaries lie in a B-tree of their own, whose splits, crashes and checks are the B-tree's. What a summary says is
//!   known to [`SummaryOps`] only.
//! * A range without a summary may hold anything: so are those behind the last one that was summarized. An
//!   insert widens the summary of its range, or leaves the range without one.
//! * A range is summarized beside writers: an empty summary *in the making* comes first, which they widen from then
//!   on, and which searches take for none; then all versions of its pages are read, those of transactions that
//!   still run, too, and widen it; then it counts. What a crash leaves in the making is begun again.
//! * Vacuum takes nothing out: a summary that is too wide costs time only, and `brin_desummarize_range` is there.

use std::sync::Arc;

use base::{AccessMethod, RelId, Result, TupleId};
use storage::Storage;
use txn::{Transaction, TxnManager};

use crate::btree::node::{self, Entry};
use crate::btree::{BTree, Inserted, KeyRange, Rewritten, Unique};
pub use crate::method::{BrinSearch, SummaryCheck};
use crate::method::{Found, IndexMethod, NextEntry, Report, Search, wrong_search};

/// Pages of a range by default.
pub const PAGES_PER_RANGE: u32 = 128;
/// The longest summary.
pub const SUMMARY_MAX: usize = node::MAX_KEY - RANGE - 1;
/// Bytes of a range's number.
const RANGE: usize = 4;

/// State of a summary: it counts.
const READY: u8 = 0;
/// State of a summary: not all rows are in it.
const IN_THE_MAKING: u8 = 1;

/// The maker of summaries, which are bytes to the index.
pub trait SummaryOps: Send + Sync {
    /// The summary of no rows.
    fn empty(&self) -> Vec<u8>;

    /// A summary with one more row, by the row's key; None: it says so already.
    ///
    /// # Errors
    /// Bytes that make no sense; limits.
    fn add(&self, summary: &[u8], key: &[u8]) -> Result<Option<Vec<u8>>>;

    /// The summary of the rows of both.
    ///
    /// # Errors
    /// As [`SummaryOps::add`].
    fn union(&self, a: &[u8], b: &[u8]) -> Result<Vec<u8>>;
}

/// One BRIN index.
#[derive(Clone)]
pub struct BrinIndex {
    /// The files.
    pub rel: RelId,
    /// Pages of a range.
    pub pages_per_range: u32,
    /// The operations that writers need.
    pub ops: Option<Arc<dyn SummaryOps>>,
    tree: BTree,
}

fn place(range: u32) -> [u8; RANGE] {
    range.to_be_bytes()
}

/// A bound between two entries: the right one's range.
fn separator<'a>(_: Entry<'_>, right: Entry<'a>) -> (&'a [u8], node::Tid) {
    (&right.key[..RANGE.min(right.key.len())], node::LOWEST)
}

/// A range's number, its summary's state, and the summary.
fn read(key: &[u8]) -> Option<(u32, u8, &[u8])> {
    let (range, rest) = key.split_first_chunk::<RANGE>()?;
    let (state, summary) = rest.split_first()?;
    Some((u32::from_be_bytes(*range), *state, summary))
}

impl BrinIndex {
    /// Names an index; no I/O.
    pub fn open(storage: &Arc<Storage>, rel: RelId) -> BrinIndex {
        let tree = BTree::with_separator(storage, rel, separator);
        BrinIndex { rel, pages_per_range: PAGES_PER_RANGE, ops: None, tree }
    }

    fn ops(&self) -> Result<&dyn SummaryOps> {
        let none = || base::Error::internal("a BRIN index without operator classes");
        self.ops.as_deref().ok_or_else(none)
    }

    /// The range of a page.
    pub fn range_of(&self, block: u32) -> u32 {
        block / self.pages_per_range.max(1)
    }

    /// The pages of a range.
    pub fn pages_of(&self, range: u32) -> std::ops::Range<u32> {
        let first = range.saturating_mul(self.pages_per_range);
        first..first.saturating_add(self.pages_per_range)
    }

    /// Fills an index whose file is empty, from rows in the table's order. Without rows the first range has an empty
    /// summary, which inserts widen.
    ///
    /// # Errors
    /// As [`IndexMethod::fill`].
    pub fn fill(&self, next: &mut NextEntry<'_>) -> Result<()> {
        let ops = self.ops.clone();
        let mut current: Option<(u32, Vec<u8>)> = None;
        let (mut ended, mut filled) = (false, false);
        let mut bytes = Vec::new();
        self.tree.clone().fill(&mut |key| {
            while !ended {
                sched::check_interrupts()?;
                let Some(row) = next(&mut bytes)? else {
                    ended = true;
                    break;
                };
                let ops = ops.as_deref();
                let ops = ops.ok_or_else(|| base::Error::internal("BRIN without classes"))?;
                filled = true;
                let range = self.range_of(row.block);
                let finished = match &mut current {
                    Some((at, summary)) if *at == range => {
                        if let Some(wider) = ops.add(summary, &bytes)? {
                            *summary = wider;
                        }
                        None
                    }
                    other => {
                        let empty = ops.empty();
                        let summary = ops.add(&empty, &bytes)?.unwrap_or(empty);
                        other.replace((range, summary))
                    }
                };
                if let Some((range, summary)) = finished {
                    put_entry(key, (range, READY), &summary)?;
                    return Ok(Some(crate::btree::nobody()));
                }
            }
            if let (false, Some(ops)) = (std::mem::replace(&mut filled, true), ops.as_deref()) {
                current = Some((0, ops.empty()));
            }
            let Some((range, summary)) = current.take() else { return Ok(None) };
            put_entry(key, (range, READY), &summary)?;
            Ok(Some(crate::btree::nobody()))
        })?;
        Ok(())
    }

    /// Changes a range's summary; None: it stays as it is, or the range stays without one.
    fn change(
        &self,
        manager: &TxnManager,
        range: u32,
        before_write: &dyn Fn(u32) -> Result<()>,
        to: &mut dyn FnMut(Option<(u8, &[u8])>) -> Result<Option<Change>>,
    ) -> Result<()> {
        let place = place(range);
        self.tree.rewrite(manager, &place, before_write, &mut |around| {
            let known = around.behind.filter(|key| key.starts_with(&place));
            let summary = known.and_then(read).map(|(_, state, summary)| (state, summary));
            let Some(change) = to(summary)? else { return Ok(None) };
            let mut keys = Vec::new();
            if let Change::To(state, summary) = change {
                let mut key = Vec::new();
                put_entry(&mut key, (range, state), &summary)?;
                keys.push(key);
            }
            Ok(Some(Rewritten { before: false, behind: known.is_some(), keys }))
        })
    }

    /// A range's summary.
    ///
    /// # Errors
    /// I/O, interrupts.
    pub fn summary(&self, range: u32) -> Result<Option<Vec<u8>>> {
        let mut found = None;
        self.tree.read_range(&KeyRange::prefix(&place(range)), &mut |key| {
            found = read(key).map(|(_, _, summary)| summary.to_vec());
            false
        })?;
        Ok(found)
    }

    /// Begins a range's summary, which writers widen from now on; false: it has one.
    ///
    /// # Errors
    /// I/O, interrupts.
    pub fn begin_summary(&self, manager: &TxnManager, range: u32) -> Result<bool> {
        let empty = self.ops()?.empty();
        let mut begun = false;
        self.change(manager, range, &|_| Ok(()), &mut |known| match known {
            Some((state, _)) => {
                // Somebody makes it, or a crash left it: to make it again hurts nobody.
                begun = state == IN_THE_MAKING;
                Ok(None)
            }
            None => {
                begun = true;
                Ok(Some(Change::To(IN_THE_MAKING, empty.clone())))
            }
        })?;
        Ok(begun)
    }

    /// All rows of a range are in its summary now.
    ///
    /// # Errors
    /// I/O, interrupts.
    pub fn finish_summary(&self, manager: &TxnManager, range: u32) -> Result<()> {
        self.change(manager, range, &|_| Ok(()), &mut |known| {
            Ok(known.map(|(_, summary)| Change::To(READY, summary.to_vec())))
        })
    }

    /// Adds a row, by its key, to a range's summary, if it has one.
    ///
    /// # Errors
    /// I/O, interrupts, limits.
    pub fn widen(&self, manager: &TxnManager, range: u32, key: &[u8]) -> Result<()> {
        let ops = self.ops()?;
        // Most rows change nothing: the summary is read without the right to write first.
        match self.summary(range)? {
            Some(summary) if ops.add(&summary, key)?.is_some() => {}
            _ => return Ok(()),
        }
        self.change(manager, range, &|_| Ok(()), &mut |known| match known {
            Some((state, summary)) => {
                Ok(ops.add(summary, key)?.map(|wider| Change::To(state, wider)))
            }
            None => Ok(None),
        })
    }

    /// Takes a range's summary away; false: it has none.
    ///
    /// # Errors
    /// I/O, interrupts.
    pub fn desummarize(&self, manager: &TxnManager, range: u32) -> Result<bool> {
        let mut had = false;
        self.change(manager, range, &|_| Ok(()), &mut |known| {
            had = known.is_some();
            Ok(had.then_some(Change::Away))
        })?;
        Ok(had)
    }
}

enum Change {
    To(u8, Vec<u8>),
    Away,
}

fn put_entry(out: &mut Vec<u8>, (range, state): (u32, u8), summary: &[u8]) -> Result<()> {
    if summary.len() > SUMMARY_MAX {
        return Err(base::err!(
            PROGRAM_LIMIT_EXCEEDED,
            "index row size {} exceeds maximum {SUMMARY_MAX} for a BRIN index",
            summary.len()
        ));
    }
    out.clear();
    out.extend_from_slice(&place(range));
    out.push(state);
    out.extend_from_slice(summary);
    Ok(())
}

impl IndexMethod for BrinIndex {
    const METHOD: AccessMethod = AccessMethod::Brin;

    fn fill(&self, _rows: u64, next: &mut NextEntry<'_>) -> Result<()> {
        BrinIndex::fill(self, next)
    }

    /// It keeps none of single rows.
    fn entries(_key: &[u8], _each: &mut dyn FnMut(&[u8])) {}

    fn insert(
        &self,
        tx: &Transaction,
        key: &[u8],
        root: TupleId,
        _unique: Unique<'_>,
    ) -> Result<Inserted> {
        // Searches read-lock the whole index.
        tx.writes_page(self.rel, 0)?;
        self.widen(tx.manager(), self.range_of(root.block), key)?;
        Ok(Inserted::Done)
    }

    fn insert_entry(&self, tx: &Transaction, entry: &[u8], root: TupleId) -> Result<()> {
        self.widen(tx.manager(), self.range_of(root.block), entry)
    }

    fn collect(
        &self,
        tx: &Transaction,
        search: &Search,
        found: &mut dyn FnMut(Found),
    ) -> Result<()> {
        let Search::Summaries(search) = search else { return Err(wrong_search(Self::METHOD)) };
        tx.reads_relation(self.rel);
        let mut next = 0;
        let mut failed = None;
        let mut give = |ranges: std::ops::Range<u32>| {
            for range in ranges {
                for block in self.pages_of(range).take_while(|block| *block < search.pages) {
                    found(Found { root: TupleId { block, offset: 0 }, recheck: true });
                }
            }
        };
        self.tree.read_range(&KeyRange::default(), &mut |key| {
            let Some((range, state, summary)) = read(key) else { return true };
            give(next..range);
            next = range + 1;
            match (search.check)(summary).map(|fits| fits || state != READY) {
                Ok(true) => give(range..next),
                Ok(false) => {}
                Err(error) => {
                    failed = Some(error);
                    return false;
                }
            }
            true
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        give(next..search.pages.div_ceil(self.pages_per_range.max(1)));
        Ok(())
    }

    fn bulk_delete(&self, _dead: &dyn Fn(TupleId) -> bool) -> Result<u64> {
        Ok(0)
    }

    fn check(&self) -> Result<Report> {
        let tree = self.tree.verify()?;
        let mut report = Report { findings: tree.findings, entries: Vec::new() };
        let mut last = None;
        for (key, _) in &tree.entries {
            let range = read(key).map(|(range, ..)| range);
            if range.is_none() || range <= last {
                report.findings.push("its ranges are out of order".to_owned());
            }
            last = range;
        }
        Ok(report)
    }
}
