//! Keys that many rows share, of several threads and runs, merged: the keys are compared once each, and of those that are
//! equal only the rows.

use std::ops::Range;
use std::sync::Arc;

use access::gin::row_of_number;
use base::{Result, TupleId};
use exec::ops::spill::TemporaryFile;

use super::key_groups::{HEADER, KeyGroups, next_row};
use super::run_bytes::RunBytes;

/// See [`KeyGroups::write`].
pub(super) struct Run {
    bytes: RunBytes,
    file: Arc<TemporaryFile>,
    chunk: usize,
    /// The next piece's key, row before and distances' length; the bytes go on with the distances. None at the end.
    ahead: Option<(Vec<u8>, u64, usize)>,
    /// The distances of the current piece.
    piece: Vec<u8>,
}

impl Run {
    /// A part of the file, of which so many bytes are read at a time.
    pub(super) fn new(part: Range<u64>, file: Arc<TemporaryFile>, chunk: usize) -> Run {
        Run { bytes: RunBytes::new(part), file, chunk, ahead: None, piece: Vec::new() }
    }

    fn take(&mut self, count: usize) -> Result<&[u8]> {
        let place = self.bytes.take(count, &self.file, self.chunk)?;
        Ok(self.bytes.get(place))
    }

    /// Reads what stands in front of the next piece.
    fn look_ahead(&mut self) -> Result<()> {
        if self.bytes.is_at_end() {
            self.ahead = None;
            return Ok(());
        }
        let header = self.take(HEADER)?;
        let (mut key, mut len, mut before) = ([0; 4], [0; 4], [0; 8]);
        key.copy_from_slice(&header[..4]);
        len.copy_from_slice(&header[4..8]);
        before.copy_from_slice(&header[8..]);
        let key = self.take(u32::from_le_bytes(key) as usize)?.to_vec();
        self.ahead = Some((key, u64::from_le_bytes(before), u32::from_le_bytes(len) as usize));
        Ok(())
    }

    /// Goes to the next piece if it has this key; its row before.
    fn next_piece(&mut self, key: &[u8]) -> Result<Option<u64>> {
        let Some((_, before, len)) = self.ahead.take_if(|(next, ..)| next == key) else {
            return Ok(None);
        };
        let place = self.bytes.take(len, &self.file, self.chunk)?;
        self.piece.clear();
        self.piece.extend_from_slice(self.bytes.get(place));
        self.look_ahead()?;
        Ok(Some(before))
    }
}

/// Where the groups of a front are.
enum Groups {
    Held(KeyGroups),
    Run(Run),
}

/// Sorted groups, of which those before the current one have been given.
struct Front {
    groups: Groups,
    /// Held: the number of the next key's group.
    number: usize,
    /// The current key's next row, and where its distance ends.
    head: u64,
    at: usize,
}

impl Front {
    /// The key of the group that has not been begun yet.
    fn next_key(&self) -> Option<&[u8]> {
        match &self.groups {
            Groups::Held(groups) => Some(groups.get(self.number)?.0),
            Groups::Run(run) => Some(&run.ahead.as_ref()?.0),
        }
    }

    /// Begins the group with this key, if it is the next one.
    fn begin(&mut self, key: &[u8]) -> Result<bool> {
        if self.next_key().is_none_or(|next| next != key) {
            return Ok(false);
        }
        (self.head, self.at) = (0, 0);
        match &mut self.groups {
            Groups::Held(_) => self.number += 1,
            Groups::Run(run) => self.head = run.next_piece(key)?.unwrap_or(0),
        }
        self.advance(key)
    }

    /// Goes to the next row of the group with this key, which has been begun; false at its end.
    #[inline]
    fn advance(&mut self, key: &[u8]) -> Result<bool> {
        let distances = match &self.groups {
            Groups::Held(groups) => groups.get(self.number - 1).map_or(&[][..], |(_, rows)| rows),
            Groups::Run(run) => &run.piece,
        };
        if let Some(row) = next_row(distances, &mut self.at, self.head) {
            self.head = row;
            return Ok(true);
        }
        let Groups::Run(run) = &mut self.groups else { return Ok(false) };
        let Some(before) = run.next_piece(key)? else { return Ok(false) };
        (self.head, self.at) = (before, 0);
        self.advance(key)
    }
}

/// See the module's documentation.
#[derive(Default)]
pub(super) struct MergedGroups {
    fronts: Vec<Front>,
    /// The current key, and the numbers of the fronts that have further rows of it: first the one whose row is the least.
    key: Vec<u8>,
    with_key: Vec<usize>,
    /// The next row of the second of them.
    bound: u64,
}

impl MergedGroups {
    fn of(groups: Groups) -> MergedGroups {
        let front = Front { groups, number: 0, head: 0, at: 0 };
        MergedGroups { fronts: vec![front], ..MergedGroups::default() }
    }

    /// Those in memory, sorted.
    pub(super) fn held(groups: KeyGroups) -> MergedGroups {
        MergedGroups::of(Groups::Held(groups))
    }

    /// Those of several runs.
    ///
    /// # Errors
    /// I/O, interrupts.
    pub(super) fn of_runs(runs: impl Iterator<Item = Run>) -> Result<MergedGroups> {
        let mut all = MergedGroups::default();
        for mut run in runs {
            run.look_ahead()?;
            all.join(MergedGroups::of(Groups::Run(run)));
        }
        Ok(all)
    }

    /// Adds others, of which none have been given yet.
    pub(super) fn join(&mut self, others: MergedGroups) {
        self.fronts.extend(others.fronts);
    }

    /// The next entry: its row, and its key into `key` (which may be there already).
    ///
    /// # Errors
    /// I/O, interrupts.
    pub(super) fn next(&mut self, key: &mut Vec<u8>) -> Result<Option<TupleId>> {
        let Some(&first) = self.with_key.first() else {
            if !self.next_key()? {
                return Ok(None);
            }
            return self.next(key);
        };
        let front = &mut self.fronts[first];
        let row = front.head;
        if !front.advance(&self.key)? {
            self.with_key.swap_remove(0);
            self.choose();
        } else if front.head > self.bound {
            self.choose();
        }
        if *key != self.key {
            key.clone_from(&self.key);
        }
        Ok(Some(row_of_number(row)))
    }

    /// Goes to the least key of all that are left.
    fn next_key(&mut self) -> Result<bool> {
        let Some(least) = self.fronts.iter().filter_map(Front::next_key).min() else {
            return Ok(false);
        };
        self.key.clear();
        self.key.extend_from_slice(least);
        for (number, front) in self.fronts.iter_mut().enumerate() {
            if front.begin(&self.key)? {
                self.with_key.push(number);
            }
        }
        self.choose();
        Ok(!self.with_key.is_empty())
    }

    /// Puts the front with the least row first.
    fn choose(&mut self) {
        let head = |n: &usize| self.fronts[*n].head;
        let least = (0..self.with_key.len()).min_by_key(|at| head(&self.with_key[*at]));
        if let Some(least) = least {
            self.with_key.swap(0, least);
        }
        self.bound = self.with_key.iter().skip(1).map(head).min().unwrap_or(u64::MAX);
    }
}
