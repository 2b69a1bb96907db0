//! GIN: an index of what values consist of (the elements of arrays, the keys and values of documents, the
//! words of texts). It leads from an *entry* to the rows that have it; a search asks for several
//! entries and decides by which of them a row has.
//!
//! ```text
//!  one B-tree (`btree`, with `rewrite`), by entry and then by row:
//!  | column, category, key, terminator | anchor | rows … |      a segment of a posting list (`posting`)
//!  | 0xff | row | entries of the row … |                        a row of the pending list (`pending`)
//! ```
//!
//! * Where others have a tree of entries with a list or a tree of rows below each, here the posting lists lie
//!   in the entries' own tree, cut into segments. So splits, crashes and checks are the B-tree's, and a
//!   list that grows needs no change of form (decision 0024).
//! * An *entry* is a column's number, a category (a key, NULL, an empty value, no value), and a key, escaped so that none
//!   is the beginning of another. Keys are in order of their bytes; a class that matches parts of
//!   keys asks for a range of them.
//! * A row's *key*, which `exec::table::KeyCodec` makes, is its entries, each after its length.
//! * With `fastupdate` a new row goes whole to the pending list, at the tree's right end, and its entries to their
//!   places when the list has grown, or by vacuum. Whoever searches reads the list first: a row that is moved
//!   meanwhile is found twice, never missed.
//! * Serializable transactions note the pages of entries with few rows, an entry with many rows as a whole
//!   ([`read_of_entry`]), and always the pending list ([`PENDING_LIST`]), to which a row may go with any entries. Who
//!   adds to an entry's place asks for its page and for the entry.

mod pending;
mod posting;
mod scan;

use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use base::{AccessMethod, RelId, Result, TupleId, err};
use storage::Storage;
use txn::{Transaction, TxnManager};

use crate::btree::node::{self, Entry};
use crate::btree::{BTree, Inserted, Rewritten, TreeState, Unique, nobody};
use crate::method::{Found, IndexMethod, NextEntry, Report, Search, wrong_search};

pub use base::ternary::{Mode, Ternary};
pub use posting::{number as row_number, row as row_of_number};
pub use scan::{EntrySearch, GinKey, GinSearch};

/// The longest entry, escaped: a segment with some rows must fit beside two others.
pub const ENTRY_MAX: usize = node::MAX_KEY - posting::ANCHOR - posting::MAX;

/// Entries from this length on get few rows at a time.
const LONG: usize = 250;

/// Numbers from here on, which no page of the tree has, stand for what serializable transactions read instead of
/// pages. The first: the pending list.
const PENDING_LIST: u32 = 0x7000_0000;

/// The number that stands for all rows of an entry.
fn read_of_entry(entry: &[u8]) -> u32 {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let mut hasher = DefaultHasher::new();
    entry.hash(&mut hasher);
    PENDING_LIST + 1 + (hasher.finish() >> 40) as u32
}

/// Kind of thing that an entry stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Category {
    /// A key.
    Key = 0,
    /// A NULL among the value's keys.
    NullKey = 1,
    /// A value without keys.
    Empty = 2,
    /// NULL in place of a value.
    NullValue = 3,
}

/// The first byte of what is in the pending list.
const PENDING: u8 = 0xff;

/// One GIN index.
#[derive(Clone)]
pub struct GinIndex {
    /// The files.
    pub rel: RelId,
    tree: BTree,
    state: Arc<crate::registry::RelState>,
    /// With `fastupdate`: how many bytes the pending list may have.
    pub pending_limit: Option<u64>,
}

/// State that all handles of one index share.
pub struct GinState {
    pub(crate) tree: TreeState,
    /// About how many bytes the pending list has; below 0: not known yet.
    pending: AtomicI64,
    /// Held while the pending list is emptied.
    flushing: sched::Mutex<()>,
}

impl Default for GinState {
    fn default() -> GinState {
        let flushing = sched::Mutex::new(base::WaitEvent::LWLockRelationExtensionLatch, ());
        GinState { tree: TreeState::default(), pending: AtomicI64::new(-1), flushing }
    }
}

impl GinState {
    /// As new: the file is empty.
    pub(crate) fn reset(&self) {
        self.tree.reset();
        self.pending.store(-1, std::sync::atomic::Ordering::Relaxed);
    }
}

/// Appends the beginning of the entries of a column and category whose keys begin with these bytes.
pub fn put_beginning(out: &mut Vec<u8>, column: u8, category: Category, key: &[u8]) {
    out.extend_from_slice(&[column, category as u8]);
    for byte in key {
        out.push(*byte);
        if *byte == 0 {
            out.push(0xff);
        }
    }
}

/// An entry.
pub fn entry(column: u8, category: Category, key: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(key.len() + 4);
    put_beginning(&mut out, column, category, key);
    out.extend_from_slice(&[0, 1]);
    out
}

/// Appends an entry to a row's key.
pub fn put_entry(out: &mut Vec<u8>, entry: &[u8]) {
    out.extend_from_slice(&(entry.len() as u32).to_le_bytes());
    out.extend_from_slice(entry);
}

/// The entries of a row's key.
fn entries_of(key: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = key;
    std::iter::from_fn(move || {
        let (length, behind) = rest.split_first_chunk::<4>()?;
        let (entry, behind) = behind.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        rest = behind;
        Some(entry)
    })
}

/// A bound between two leaf entries: of one posting list it is the right segment's anchor, above which all its
/// rows are, and below which all those of the left one.
fn separator<'a>(left: Entry<'_>, right: Entry<'a>) -> (&'a [u8], node::Tid) {
    let common = left.key.iter().zip(right.key).take_while(|(a, b)| a == b).count();
    let whole = match right.key.first() {
        Some(&PENDING) => right.key.len().min(1 + posting::ANCHOR),
        _ => posting::entry_len(right.key).map_or(right.key.len(), |len| len + posting::ANCHOR),
    };
    let cut = if common + 1 + posting::ANCHOR <= whole { common + 1 } else { whole };
    (&right.key[..cut.min(right.key.len())], node::LOWEST)
}

impl GinIndex {
    fn shared(&self) -> &GinState {
        self.state.index.gin()
    }

    /// Adds rows, in order, to the posting list of an entry.
    fn add(
        &self,
        manager: &TxnManager,
        entry: &[u8],
        rows: &[u64],
        before_write: &dyn Fn(u32) -> Result<()>,
    ) -> Result<()> {
        let mut rest = rows;
        while let Some(first) = rest.first() {
            let place = posting::place(entry, *first);
            let mut taken = 0;
            self.tree.rewrite(manager, &place, before_write, &mut |around| {
                let of_entry = |key: &[u8]| {
                    key.strip_prefix(entry).is_some()
                        && posting::entry_len(key) == Some(entry.len())
                };
                let before = around.before.filter(|key| of_entry(key));
                let behind = around.behind.filter(|key| of_entry(key));
                let limit = behind.and_then(|key| posting::anchor(key, entry.len()));
                // The part that belongs before the next segment, and into this page.
                let fits = |row: &u64| {
                    limit.is_none_or(|limit| *row < limit)
                        && around.high.is_none_or(|high| *posting::place(entry, *row) < *high)
                };
                let mut held = Vec::new();
                let mut segment = |key: &[u8]| {
                    let sound = posting::decode(key, entry.len(), &mut held);
                    sound.ok_or_else(|| self.corrupted("a posting list makes no sense"))
                };
                let (mut anchor, mut replaced) = (*first, (false, false));
                if limit == Some(*first) {
                    // It belongs to the segment whose anchor it is.
                    behind.map_or(Ok(()), &mut segment)?;
                    replaced = (false, true);
                    if held.first() == Some(first) {
                        taken = 1;
                        return Ok(None);
                    }
                    taken = 1;
                    held.insert(0, *first);
                } else {
                    if let Some(key) = before {
                        segment(key)?;
                        anchor = posting::anchor(key, entry.len()).unwrap_or(anchor);
                        replaced = (true, false);
                    } else if let Some(key) = behind {
                        segment(key)?;
                        replaced = (false, true);
                    }
                    // The segment that is written must fit a page beside a neighbour.
                    let most = if entry.len() > LONG { 16 } else { posting::MAX / 2 };
                    let most = rest.iter().take(most).take_while(|row| fits(row));
                    taken = most.count().max(1);
                    let count = held.len();
                    held.extend_from_slice(&rest[..taken]);
                    held.sort_unstable();
                    held.dedup();
                    if held.len() == count {
                        return Ok(None);
                    }
                }
                let keys = posting::segments(entry, anchor, &held);
                Ok(Some(Rewritten { before: replaced.0, behind: replaced.1, keys }))
            })?;
            rest = &rest[taken..];
        }
        Ok(())
    }

    fn corrupted(&self, what: &str) -> base::Error {
        err!(INDEX_CORRUPTED, "index {}: {what}", self.rel.0).hint("Please REINDEX it.")
    }

    /// The check under the latch of a page before an entry is added to it.
    fn before_write<'a>(
        &'a self,
        tx: &'a Transaction,
        entry: &[u8],
    ) -> impl Fn(u32) -> Result<()> + 'a {
        let whole = tx.tracks_reads().then(|| read_of_entry(entry));
        move |block| match whole {
            Some(whole) => {
                tx.writes_page(self.rel, block)?;
                tx.writes_page(self.rel, whole)
            }
            None => Ok(()),
        }
    }

    /// Adds the entries of a row at their places.
    fn add_all(&self, tx: &Transaction, key: &[u8], root: TupleId) -> Result<()> {
        let rows = [posting::number(root)];
        for entry in entries_of(key) {
            self.add(tx.manager(), entry, &rows, &self.before_write(tx, entry))?;
        }
        Ok(())
    }
}

fn check_entry(entry: &[u8]) -> Result<()> {
    if entry.len() > ENTRY_MAX {
        return Err(err!(
            PROGRAM_LIMIT_EXCEEDED,
            "index row size {} exceeds maximum {ENTRY_MAX} for a GIN index",
            entry.len()
        ));
    }
    Ok(())
}

impl GinIndex {
    /// Names an index; no I/O.
    pub fn open(storage: &Arc<Storage>, rel: RelId) -> GinIndex {
        let state = crate::registry::state_of(storage, rel);
        state.index.gin();
        let tree = BTree::with_separator(storage, rel, separator);
        GinIndex { rel, tree, state, pending_limit: None }
    }
}

impl IndexMethod for GinIndex {
    const METHOD: AccessMethod = AccessMethod::Gin;

    fn fill(&self, _rows: u64, next: &mut NextEntry<'_>) -> Result<()> {
        let mut builder = Builder { next, ahead: None, ended: false, rows: Vec::new() };
        BTree::fill(self.tree.clone(), &mut |key| builder.segment(key))?;
        self.shared().pending.store(0, std::sync::atomic::Ordering::Relaxed);
        Ok(())
    }

    fn entries(key: &[u8], each: &mut dyn FnMut(&[u8])) {
        entries_of(key).for_each(each);
    }

    fn insert(
        &self,
        tx: &Transaction,
        key: &[u8],
        root: TupleId,
        _unique: Unique<'_>,
    ) -> Result<Inserted> {
        entries_of(key).try_for_each(check_entry)?;
        match self.pending_limit {
            None => self.add_all(tx, key, root)?,
            Some(limit) => self.add_later(tx, key, root, limit)?,
        }
        Ok(Inserted::Done)
    }

    fn insert_entry(&self, tx: &Transaction, entry: &[u8], root: TupleId) -> Result<()> {
        check_entry(entry)?;
        let before = self.before_write(tx, entry);
        self.add(tx.manager(), entry, &[posting::number(root)], &before)
    }

    fn collect(
        &self,
        tx: &Transaction,
        search: &Search,
        found: &mut dyn FnMut(Found),
    ) -> Result<()> {
        let Search::Entries(search) = search else { return Err(wrong_search(Self::METHOD)) };
        self.find(tx, search, found)
    }

    fn bulk_delete(&self, dead: &dyn Fn(TupleId) -> bool) -> Result<u64> {
        let mut removed = 0;
        let mut rows = Vec::new();
        self.tree.rewrite_all(&mut |key| {
            if let Some((row, _)) = pending::read(key) {
                let gone = dead(row);
                removed += u64::from(gone);
                return gone.then_some(None);
            }
            rows.clear();
            let len = posting::entry_len(key)?;
            posting::decode(key, len, &mut rows)?;
            let before = rows.len();
            rows.retain(|row| !dead(posting::row(*row)));
            removed += (before - rows.len()) as u64;
            match rows.len() {
                0 => Some(None),
                left if left == before => None,
                _ => Some(Some(posting::encode(&key[..len], posting::anchor(key, len)?, &rows))),
            }
        })?;
        Ok(removed)
    }

    fn clean_up(&self, manager: &TxnManager) -> Result<()> {
        self.flush(manager, u64::MAX)?;
        self.tree.reclaim(manager)
    }

    fn check(&self) -> Result<Report> {
        let tree = self.tree.verify()?;
        let mut report = Report { findings: tree.findings, entries: Vec::new() };
        let (mut rows, mut last): (Vec<u64>, Option<(Vec<u8>, u64)>) = (Vec::new(), None);
        for (key, _) in &tree.entries {
            if let Some((row, key)) = pending::read(key) {
                report.entries.extend(entries_of(key).map(|e| (e.to_vec(), row)));
                continue;
            }
            rows.clear();
            let len =
                posting::entry_len(key).filter(|l| posting::decode(key, *l, &mut rows).is_some());
            let Some(len) = len else {
                report.findings.push("an entry makes no sense".to_owned());
                continue;
            };
            let entry = &key[..len];
            let anchor = posting::anchor(key, len).unwrap_or_default();
            let overlaps = last.as_ref().is_some_and(|(e, row)| *e == entry && *row >= anchor);
            if overlaps || !rows.is_sorted_by(|a, b| a < b) || rows.is_empty() {
                report.findings.push("the rows of an entry are out of order".to_owned());
            }
            last = rows.last().map(|row| (entry.to_vec(), *row));
            report.entries.extend(rows.iter().map(|row| (entry.to_vec(), posting::row(*row))));
        }
        // A crash may have left a row in the pending list that is at its places, too.
        report.entries.sort_unstable();
        report.entries.dedup();
        Ok(report)
    }
}

/// Makes segments of sorted entries.
struct Builder<'a, 'b> {
    next: &'a mut NextEntry<'b>,
    /// The entry that the next segment begins with, and its row.
    ahead: Option<(Vec<u8>, u64)>,
    ended: bool,
    rows: Vec<u64>,
}

impl Builder<'_, '_> {
    fn pull(&mut self, key: &mut Vec<u8>) -> Result<Option<(Vec<u8>, u64)>> {
        match (self.next)(key)? {
            Some(row) => {
                check_entry(key)?;
                Ok(Some((key.clone(), posting::number(row))))
            }
            None => {
                self.ended = true;
                Ok(None)
            }
        }
    }

    fn segment(&mut self, key: &mut Vec<u8>) -> Result<Option<TupleId>> {
        if self.ahead.is_none() && !self.ended {
            self.ahead = self.pull(key)?;
        }
        let Some((entry, first)) = self.ahead.take() else { return Ok(None) };
        self.rows.clear();
        self.rows.push(first);
        let mut size = 1;
        while !self.ended {
            let Some(row) = (self.next)(key)? else {
                self.ended = true;
                break;
            };
            let (row, last) = (posting::number(row), self.rows[self.rows.len() - 1]);
            if *key != entry || size >= posting::TARGET {
                check_entry(key)?;
                self.ahead = Some((std::mem::take(key), row));
                break;
            }
            if row != last {
                size += posting::bytes(last, &[row]);
                self.rows.push(row);
            }
        }
        *key = posting::encode(&entry, first, &self.rows);
        Ok(Some(nobody()))
    }
}
