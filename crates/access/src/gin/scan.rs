//! Searches: the posting lists of several entries are read side by side, and a condition over which of them
//! have a row decides. A list of which the condition needs every row leads; the others are only asked
//! for the rows that it has.

use std::fmt;

use base::ternary::{Check, Mode, Ternary};
use base::{Result, TupleId};
use txn::Transaction;

use super::{Category, GinIndex, entries_of, pending, posting};
use crate::btree::{Cursor, KeyRange};
use crate::method::Found;

/// Which entries one of a search's places stands for.
#[derive(Clone, Debug)]
pub enum EntrySearch {
    /// This one.
    Exact(Vec<u8>),
    /// All within a range.
    Range(KeyRange),
}

/// A condition of a search.
#[derive(Clone)]
pub struct GinKey {
    /// Which of the index's columns.
    pub column: u8,
    /// The entries that are asked for.
    pub entries: Vec<EntrySearch>,
    /// Which rows come into question.
    pub mode: Mode,
    /// The rule that decides.
    pub check: Check,
}

impl fmt::Debug for GinKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {} {:?} {:?}", self.column, self.mode, self.entries)
    }
}

/// The conditions that rows must satisfy: all of the keys.
#[derive(Clone, Debug, Default)]
pub struct GinSearch {
    /// The conditions.
    pub keys: Vec<GinKey>,
}

impl EntrySearch {
    fn has(&self, entry: &[u8]) -> bool {
        match self {
            EntrySearch::Exact(exact) => exact == entry,
            EntrySearch::Range(range) => {
                entry >= &range.from[..] && range.to.as_ref().is_none_or(|to| entry < &to[..])
            }
        }
    }
}

impl GinIndex {
    /// Calls `found` with all rows that a search finds.
    pub(super) fn find(
        &self,
        tx: &Transaction,
        search: &GinSearch,
        found: &mut dyn FnMut(Found),
    ) -> Result<()> {
        self.find_pending(tx, search, found)?;
        let mut streams = Vec::new();
        for key in search.keys.iter().filter(|key| key.mode != Mode::All) {
            streams.push(KeyStream::open(self, tx, key)?);
        }
        if streams.is_empty() {
            return match search.keys.first() {
                Some(key) => self.find_all(tx, key.column, found),
                None => Ok(()),
            };
        }
        // A condition that all rows satisfy by the index is asked of the rows.
        let doubt = streams.len() < search.keys.len();
        let mut at = 0;
        'rows: loop {
            sched::check_interrupts()?;
            let (mut recheck, first) = (doubt, at);
            for stream in &mut streams {
                let Some((row, held)) = stream.seek(at, tx)? else { return Ok(()) };
                recheck |= held == Ternary::Maybe;
                if row > at {
                    at = row;
                }
            }
            if at > first && streams.len() > 1 {
                continue 'rows;
            }
            found(Found { root: posting::row(at), recheck });
            at += 1;
        }
    }

    fn find_pending(
        &self,
        tx: &Transaction,
        search: &GinSearch,
        found: &mut dyn FnMut(Found),
    ) -> Result<()> {
        tx.reads_page(self.rel, super::PENDING_LIST);
        let mut cursor = self.tree.scan(pending::range(), false).untracked();
        while let Some((bytes, _)) = cursor.next(tx)? {
            let Some((root, key)) = pending::read(bytes) else { continue };
            let mut recheck = false;
            let holds = search.keys.iter().all(|k| match k.of_row(key) {
                Ternary::False => false,
                held => {
                    recheck |= held == Ternary::Maybe;
                    true
                }
            });
            if holds {
                found(Found { root, recheck });
            }
        }
        Ok(())
    }

    /// Whether an entry has more than one segment of rows.
    fn is_long(&self, entry: &[u8]) -> Result<bool> {
        let mut segments = 0;
        self.tree.read_range(&KeyRange::prefix(entry), &mut |_| {
            segments += 1;
            segments < 2
        })?;
        Ok(segments > 1)
    }

    /// All rows whose value in a column is not NULL.
    fn find_all(&self, tx: &Transaction, column: u8, found: &mut dyn FnMut(Found)) -> Result<()> {
        let range = KeyRange {
            from: vec![column, Category::Key as u8],
            to: Some(vec![column, Category::NullValue as u8]),
        };
        self.rows_of(tx, range, &mut |row| found(Found { root: row, recheck: true }))
    }

    /// The rows of all entries within a range.
    fn rows_of(
        &self,
        tx: &Transaction,
        range: KeyRange,
        each: &mut dyn FnMut(TupleId),
    ) -> Result<()> {
        let mut cursor = self.tree.scan(range, false);
        let mut rows = Vec::new();
        while let Some((key, _)) = cursor.next(tx)? {
            rows.clear();
            let len = posting::entry_len(key);
            len.and_then(|len| posting::decode(key, len, &mut rows))
                .ok_or_else(|| self.corrupted("a posting list makes no sense"))?;
            rows.iter().for_each(|row| each(posting::row(*row)));
        }
        Ok(())
    }
}

impl GinKey {
    /// The conditions' truth for a row with this key.
    fn of_row(&self, key: &[u8]) -> Ternary {
        let category = |entry: &[u8]| (entry.first() == Some(&self.column)).then(|| entry[1]);
        let is = |wanted: Category| entries_of(key).any(|e| category(e) == Some(wanted as u8));
        match self.mode {
            Mode::All if is(Category::NullValue) => return Ternary::False,
            Mode::All => return Ternary::Maybe,
            Mode::IncludeEmpty if is(Category::Empty) => {}
            _ if self.entries.is_empty() => return Ternary::False,
            _ => {}
        }
        let present: Vec<Ternary> = self
            .entries
            .iter()
            .map(|wanted| match entries_of(key).any(|entry| wanted.has(entry)) {
                true => Ternary::True,
                false => Ternary::False,
            })
            .collect();
        let any = present.contains(&Ternary::True);
        if !any && !(self.mode == Mode::IncludeEmpty && is(Category::Empty)) {
            return Ternary::False;
        }
        (self.check)(&present)
    }
}

/// The rows of an entry, or of a range of them, in order.
struct EntryStream {
    /// Of an exact entry: where its segments come from, and the entry's length.
    cursor: Option<(Cursor, usize)>,
    rows: Vec<u64>,
    at: usize,
    /// A segment that was read, but not unpacked, and its anchor.
    next: Option<(Vec<u8>, u64)>,
    /// Memory for another one.
    spare: Vec<u8>,
}

impl EntryStream {
    fn open(index: &GinIndex, tx: &Transaction, entry: &EntrySearch) -> Result<EntryStream> {
        let mut stream =
            EntryStream { cursor: None, rows: Vec::new(), at: 0, next: None, spare: Vec::new() };
        match entry {
            EntrySearch::Exact(entry) => {
                let mut cursor = index.tree.scan(KeyRange::prefix(entry), false);
                if tx.tracks_reads() && index.is_long(entry)? {
                    tx.reads_page(index.rel, super::read_of_entry(entry));
                    cursor = cursor.untracked();
                }
                stream.cursor = Some((cursor, entry.len()));
                stream.pull(tx)?;
            }
            EntrySearch::Range(range) => {
                let rows = &mut stream.rows;
                index.rows_of(tx, range.clone(), &mut |row| rows.push(posting::number(row)))?;
                rows.sort_unstable();
                rows.dedup();
            }
        }
        Ok(stream)
    }

    /// Reads the next segment without unpacking it.
    fn pull(&mut self, tx: &Transaction) -> Result<()> {
        self.next = None;
        let Some((cursor, len)) = &mut self.cursor else { return Ok(()) };
        if let Some((key, _)) = cursor.next(tx)? {
            let anchor = posting::anchor(key, *len).unwrap_or_default();
            let mut kept = std::mem::take(&mut self.spare);
            kept.clear();
            kept.extend_from_slice(key);
            self.next = Some((kept, anchor));
        }
        Ok(())
    }

    /// The first row that is not below `from`; such come in ascending order.
    fn seek(&mut self, from: u64, tx: &Transaction) -> Result<Option<u64>> {
        loop {
            if self.rows.last().is_some_and(|last| *last >= from) {
                if self.rows[self.at] < from {
                    self.at += self.rows[self.at..].partition_point(|row| *row < from);
                }
                return Ok(Some(self.rows[self.at]));
            }
            let Some((key, _)) = self.next.take() else { return Ok(None) };
            self.pull(tx)?;
            // All of this segment's rows are below the next one's anchor.
            if self.next.as_ref().is_some_and(|(_, anchor)| *anchor <= from) {
                self.spare = key;
                continue;
            }
            let len = self.cursor.as_ref().map_or(0, |(_, len)| *len);
            self.rows.clear();
            self.at = 0;
            posting::decode(&key, len, &mut self.rows)
                .ok_or_else(|| base::err!(INDEX_CORRUPTED, "a posting list makes no sense"))?;
            self.spare = key;
        }
    }
}

/// The rows that satisfy one of a search's keys, in order.
struct KeyStream {
    entries: Vec<EntryStream>,
    /// Entries that every row must have.
    required: Vec<usize>,
    check: Check,
    present: Vec<Ternary>,
}

impl KeyStream {
    fn open(index: &GinIndex, tx: &Transaction, key: &GinKey) -> Result<KeyStream> {
        let mut entries = Vec::with_capacity(key.entries.len() + 1);
        for entry in &key.entries {
            sched::check_interrupts()?;
            entries.push(EntryStream::open(index, tx, entry)?);
        }
        let mut required = Vec::new();
        let asked = key.entries.len();
        if key.mode == Mode::IncludeEmpty {
            let empty = super::entry(key.column, Category::Empty, &[]);
            entries.push(EntryStream::open(index, tx, &EntrySearch::Exact(empty))?);
        } else if asked <= 64 {
            let mut without = vec![Ternary::Maybe; asked];
            for n in 0..asked {
                without[n] = Ternary::False;
                if (key.check)(&without) == Ternary::False {
                    required.push(n);
                }
                without[n] = Ternary::Maybe;
            }
        }
        let present = vec![Ternary::False; asked];
        Ok(KeyStream { entries, required, check: key.check.clone(), present })
    }

    /// The next row that all required entries have, or any entry.
    fn candidate(&mut self, from: u64, tx: &Transaction) -> Result<Option<u64>> {
        if self.required.is_empty() {
            let mut least: Option<u64> = None;
            for entry in &mut self.entries {
                if let Some(row) = entry.seek(from, tx)? {
                    least = Some(least.map_or(row, |l| l.min(row)));
                }
            }
            return Ok(least);
        }
        let mut at = from;
        loop {
            let begin = at;
            for n in &self.required {
                let Some(row) = self.entries[*n].seek(at, tx)? else { return Ok(None) };
                at = row;
            }
            if at == begin && self.required.len() > 1 || self.required.len() == 1 {
                return Ok(Some(at));
            }
            sched::check_interrupts()?;
        }
    }

    /// The first row from `from` on that satisfies the key.
    fn seek(&mut self, from: u64, tx: &Transaction) -> Result<Option<(u64, Ternary)>> {
        let mut at = from;
        loop {
            let Some(row) = self.candidate(at, tx)? else { return Ok(None) };
            for (n, present) in self.present.iter_mut().enumerate() {
                let has = self.entries[n].seek(row, tx)? == Some(row);
                *present = if has { Ternary::True } else { Ternary::False };
            }
            match (self.check)(&self.present) {
                Ternary::False => at = row + 1,
                held => return Ok(Some((row, held))),
            }
            sched::check_interrupts()?;
        }
    }
}
