//! The keys of a new index, sorted: in memory up to `maintenance_work_mem`, beyond it as sorted runs in
//! one temporary file that are merged while the index is written (Knuth, The Art of Computer
//! Programming 3, 5.4.1).
//!
//! ```text
//! key length u32 | row id, 6 bytes | key | …
//! ```
//!
//! Keys that many rows share are kept, written and merged with all their rows ([`super::key_groups`]).
//!
//! Short keys of equal length are packed with their row id into one 128-bit number, so that ten
//! million of them sort without touching memory elsewhere.

use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::usage::Use;
use base::{AccessMethod, Result, TupleId};

use exec::ops::spill::{TemporaryFile, failed};

use super::key_groups::KeyGroups;
use super::merged_groups::{MergedGroups, Run};
use super::run_bytes::RunBytes;

/// Key bytes that fit beside a row id.
const PACKED: usize = 10;
/// Most bytes of a run that are written or read at a time.
const CHUNK: usize = 256 * 1024;
/// Fewest of them.
const SMALLEST_CHUNK: usize = 8 * 1024;
/// Bytes before a key in a run.
const HEADER: usize = 10;
/// Set in a row id's line number, which is never that high, when the key has a NULL in it.
const HAS_NULL: u16 = 0x8000;

/// An entry's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// The root of its chain.
    pub(super) root: TupleId,
    /// Whether a column of the key is NULL.
    pub(super) null: bool,
}

impl Place {
    fn to_bytes(self) -> [u8; 6] {
        let TupleId { block, offset } = self.root;
        debug_assert!(offset < HAS_NULL);
        let bit = if self.null { HAS_NULL } else { 0 };
        TupleId { block, offset: offset | bit }.to_bytes()
    }

    fn from_bytes(bytes: [u8; 6]) -> Place {
        let TupleId { block, offset } = TupleId::from_bytes(bytes);
        let root = TupleId { block, offset: offset & !HAS_NULL };
        Place { root, null: offset & HAS_NULL != 0 }
    }
}

/// Keys with their rows.
pub(super) enum Keys {
    /// All keys have this length: key, zeros, place, as one big-endian number.
    Packed(usize, Vec<u128>),
    /// Keys one after the other: (begin, length, place).
    Long(Vec<u8>, Vec<(usize, u32, Place)>),
    /// Keys that many rows share. Whether one is NULL is not told of them.
    Shared(KeyGroups),
}

fn pack(key: &[u8], place: Place) -> u128 {
    let mut bytes = [0; 16];
    bytes[..key.len()].copy_from_slice(key);
    bytes[PACKED..].copy_from_slice(&place.to_bytes());
    u128::from_be_bytes(bytes)
}

fn unpack(number: u128, length: usize, key: &mut Vec<u8>) -> Place {
    let bytes = number.to_be_bytes();
    key.clear();
    key.extend_from_slice(&bytes[..length]);
    let mut place = [0; 6];
    place.copy_from_slice(&bytes[PACKED..]);
    Place::from_bytes(place)
}

impl Keys {
    fn push(&mut self, key: &[u8], place: Place) {
        match self {
            Keys::Packed(length, all) if all.is_empty() && key.len() <= PACKED => {
                *length = key.len();
                all.push(pack(key, place));
            }
            Keys::Packed(length, all) if !all.is_empty() && key.len() == *length => {
                all.push(pack(key, place));
            }
            Keys::Packed(length, all) => {
                let (mut bytes, mut entries) = (Vec::new(), Vec::with_capacity(all.len() + 1));
                let mut key_before = Vec::new();
                for number in all.iter() {
                    let place = unpack(*number, *length, &mut key_before);
                    entries.push((bytes.len(), key_before.len() as u32, place));
                    bytes.extend_from_slice(&key_before);
                }
                *self = Keys::Long(bytes, entries);
                self.push(key, place);
            }
            Keys::Long(bytes, entries) => {
                entries.push((bytes.len(), key.len() as u32, place));
                bytes.extend_from_slice(key);
            }
            Keys::Shared(groups) => groups.push(key, place.root),
        }
    }

    fn len(&self) -> usize {
        match self {
            Keys::Packed(_, all) => all.len(),
            Keys::Long(_, entries) => entries.len(),
            Keys::Shared(groups) => groups.len(),
        }
    }

    /// Bytes that they take.
    fn memory(&self) -> usize {
        match self {
            Keys::Packed(_, all) => size_of_val(all.as_slice()),
            Keys::Long(bytes, entries) => bytes.len() + size_of_val(entries.as_slice()),
            Keys::Shared(groups) => groups.memory(),
        }
    }

    fn clear(&mut self) {
        match self {
            Keys::Packed(_, all) => all.clear(),
            Keys::Long(bytes, entries) => {
                bytes.clear();
                entries.clear();
            }
            Keys::Shared(groups) => *groups = KeyGroups::default(),
        }
    }

    fn sort(&mut self) {
        match self {
            Keys::Packed(_, all) => all.sort_unstable_by(sched::unhurried(Ord::cmp)),
            Keys::Long(bytes, entries) => {
                let key = |e: &(usize, u32, Place)| &bytes[e.0..e.0 + e.1 as usize];
                type Entry = (usize, u32, Place);
                entries.sort_unstable_by(sched::unhurried(|a: &Entry, b: &Entry| {
                    key(a).cmp(key(b)).then(a.2.cmp(&b.2))
                }));
            }
            Keys::Shared(groups) => groups.sort(),
        }
    }

    /// Copies a key of sorted ones and returns its row; None past the end, and of those that rows share.
    fn get(&self, number: usize, key: &mut Vec<u8>) -> Option<Place> {
        match self {
            Keys::Packed(length, all) => Some(unpack(*all.get(number)?, *length, key)),
            Keys::Long(bytes, entries) => {
                let (begin, length, place) = *entries.get(number)?;
                key.clear();
                key.extend_from_slice(&bytes[begin..begin + length as usize]);
                Some(place)
            }
            Keys::Shared(_) => None,
        }
    }
}

/// Takes keys in any order.
pub(super) struct KeySorter {
    held: Keys,
    /// Bytes to hold at most.
    limit: usize,
    /// The data directory.
    dir: PathBuf,
    spilled: Option<(TemporaryFile, Vec<Range<u64>>)>,
    count: u64,
}

impl KeySorter {
    /// Holds up to `limit` bytes in memory; `dir` is the data directory.
    pub(super) fn new(dir: &Path, limit: usize) -> KeySorter {
        let held = Keys::Packed(0, Vec::new());
        KeySorter { held, limit, dir: dir.to_owned(), spilled: None, count: 0 }
    }

    /// As [`KeySorter::new`], for an index of this method.
    pub(super) fn of(method: AccessMethod, dir: &Path, limit: usize) -> KeySorter {
        let sorter = KeySorter::new(dir, limit);
        match method {
            AccessMethod::Gin => KeySorter { held: Keys::Shared(KeyGroups::default()), ..sorter },
            _ => sorter,
        }
    }

    /// Adds an entry; never waits.
    pub(super) fn push(&mut self, key: &[u8], place: Place) {
        self.held.push(key, place);
        self.count += 1;
    }

    /// How many there are.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Writes what is held to the disk if it is too much; may wait, so no latch is held.
    ///
    /// # Errors
    /// I/O, a full disk, interrupts.
    pub(super) fn make_room(&mut self) -> Result<()> {
        if self.held.memory() >= self.limit { self.spill() } else { Ok(()) }
    }

    fn spill(&mut self) -> Result<()> {
        self.held.sort();
        let (file, runs) = match &mut self.spilled {
            Some(spilled) => spilled,
            none => none.insert((TemporaryFile::under(&self.dir)?, Vec::new())),
        };
        let begin = file.position();
        let mut out = BufWriter::with_capacity(CHUNK, &mut *file);
        if let Keys::Shared(groups) = &self.held {
            groups.write(&mut out)?;
        }
        let (mut key, mut number) = (Vec::new(), 0);
        while let Some(place) = self.held.get(number, &mut key) {
            number += 1;
            if number % 1024 == 0 {
                sched::check_interrupts()?;
            }
            let write = out
                .write_all(&(key.len() as u32).to_le_bytes())
                .and_then(|()| out.write_all(&place.to_bytes()))
                .and_then(|()| out.write_all(&key));
            write.map_err(|e| failed("write", &e))?;
        }
        out.flush().map_err(|e| failed("write", &e))?;
        drop(out);
        sched::used(Use::TempWritten, file.position() - begin);
        runs.push(begin..file.position());
        self.held.clear();
        Ok(())
    }

    /// All entries in order.
    ///
    /// # Errors
    /// As [`KeySorter::make_room`].
    pub(super) fn finish(mut self) -> Result<SortedKeys> {
        if self.spilled.is_some() && self.held.len() > 0 {
            self.spill()?;
        }
        self.held.sort();
        sched::check_interrupts()?;
        Ok(match (self.spilled, self.held) {
            (None, Keys::Shared(groups)) => SortedKeys::Shared(MergedGroups::held(groups)),
            (None, held) => SortedKeys::Held(held, 0),
            (Some((file, runs)), Keys::Shared(_)) => {
                let chunk = chunk(self.limit, runs.len());
                let file = Arc::new(file);
                let runs = runs.into_iter().map(|run| Run::new(run, file.clone(), chunk));
                SortedKeys::Shared(MergedGroups::of_runs(runs)?)
            }
            (Some((file, runs)), _) => SortedKeys::Spilled(Merge::new(file, runs, self.limit)?),
        })
    }
}

/// Gives entries in the order of (key, row).
pub(super) enum SortedKeys {
    /// All in memory, and the number of the next one.
    Held(Keys, usize),
    /// From runs.
    Spilled(Merge),
    /// Those that rows share.
    Shared(MergedGroups),
    /// The keys that several threads have sorted, each with its next entry.
    Several(Vec<(SortedKeys, Vec<u8>, Place)>),
}

impl SortedKeys {
    /// The entries of all of them in order.
    ///
    /// # Errors
    /// I/O, interrupts.
    pub(super) fn of_all(mut all: Vec<SortedKeys>) -> Result<SortedKeys> {
        if all.len() == 1
            && let Some(only) = all.pop()
        {
            return Ok(only);
        }
        let mut shared: Option<MergedGroups> = None;
        let mut fronts = Vec::with_capacity(all.len());
        for mut keys in all {
            if let SortedKeys::Shared(groups) = keys {
                match &mut shared {
                    Some(before) => before.join(groups),
                    none => *none = Some(groups),
                }
                continue;
            }
            let mut key = Vec::new();
            if let Some(place) = keys.next(&mut key)? {
                fronts.push((keys, key, place));
            }
        }
        Ok(shared.map_or(SortedKeys::Several(fronts), SortedKeys::Shared))
    }

    /// Copies the next key and returns its row; None at the end.
    ///
    /// # Errors
    /// I/O, interrupts.
    pub(super) fn next(&mut self, key: &mut Vec<u8>) -> Result<Option<Place>> {
        match self {
            SortedKeys::Held(keys, number) => {
                *number += 1;
                Ok(keys.get(*number - 1, key))
            }
            SortedKeys::Spilled(merge) => merge.next(key),
            SortedKeys::Shared(groups) => {
                Ok(groups.next(key)?.map(|root| Place { root, null: false }))
            }
            SortedKeys::Several(fronts) => {
                // They are no more than there are threads.
                let entries = fronts.iter().map(|(_, key, place)| (key, *place)).enumerate();
                let least = entries.min_by(|(_, a), (_, b)| a.cmp(b)).map(|(n, _)| n);
                let Some(least) = least else { return Ok(None) };
                let (keys, front, place) = &mut fronts[least];
                std::mem::swap(key, front);
                let given = *place;
                match keys.next(front)? {
                    Some(next) => *place = next,
                    None => drop(fronts.swap_remove(least)),
                }
                Ok(Some(given))
            }
        }
    }
}

/// A run being read.
struct Front {
    bytes: RunBytes,
    /// The front entry: its key's place among the bytes, and its row.
    key: Range<usize>,
    place: Place,
}

impl Front {
    fn new(rest: Range<u64>) -> Front {
        let place = Place { root: TupleId::INVALID, null: false };
        Front { bytes: RunBytes::new(rest), key: 0..0, place }
    }

    fn key(&self) -> &[u8] {
        self.bytes.get(self.key.clone())
    }

    /// Goes to the next entry; false at the end.
    fn advance(&mut self, file: &TemporaryFile, chunk: usize) -> Result<bool> {
        if self.bytes.is_at_end() {
            return Ok(false);
        }
        let header = self.bytes.take(HEADER, file, chunk)?;
        let header = self.bytes.get(header);
        let (mut length, mut place) = ([0; 4], [0; 6]);
        length.copy_from_slice(&header[..4]);
        place.copy_from_slice(&header[4..]);
        self.place = Place::from_bytes(place);
        self.key = self.bytes.take(u32::from_le_bytes(length) as usize, file, chunk)?;
        Ok(true)
    }
}

/// Bytes of a run to read at a time, when so many are read.
fn chunk(memory: usize, runs: usize) -> usize {
    (memory / runs.max(1)).clamp(SMALLEST_CHUNK, CHUNK)
}

/// Runs being merged: a heap whose first one has the smallest front entry.
pub(super) struct Merge {
    file: TemporaryFile,
    fronts: Vec<Front>,
    chunk: usize,
}

impl Merge {
    fn new(file: TemporaryFile, runs: Vec<Range<u64>>, memory: usize) -> Result<Merge> {
        let chunk = chunk(memory, runs.len());
        let mut merge = Merge { file, fronts: Vec::with_capacity(runs.len()), chunk };
        for run in runs {
            let mut front = Front::new(run);
            if front.advance(&merge.file, chunk)? {
                merge.fronts.push(front);
            }
        }
        for n in (0..merge.fronts.len() / 2).rev() {
            merge.sift_down(n);
        }
        Ok(merge)
    }

    fn less(&self, a: usize, b: usize) -> bool {
        let (a, b) = (&self.fronts[a], &self.fronts[b]);
        (a.key(), a.place) < (b.key(), b.place)
    }

    fn sift_down(&mut self, mut n: usize) {
        loop {
            let (left, right) = (2 * n + 1, 2 * n + 2);
            let mut least = n;
            for child in [left, right] {
                if child < self.fronts.len() && self.less(child, least) {
                    least = child;
                }
            }
            if least == n {
                return;
            }
            self.fronts.swap(n, least);
            n = least;
        }
    }

    fn next(&mut self, key: &mut Vec<u8>) -> Result<Option<Place>> {
        let Some(first) = self.fronts.first_mut() else { return Ok(None) };
        key.clear();
        key.extend_from_slice(first.key());
        let place = first.place;
        if !first.advance(&self.file, self.chunk)? {
            self.fronts.swap_remove(0);
        }
        if !self.fronts.is_empty() {
            self.sift_down(0);
        }
        Ok(Some(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(block: u32) -> Place {
        Place { root: TupleId { block, offset: 1 }, null: block.is_multiple_of(5) }
    }

    fn all(mut sorted: SortedKeys) -> Vec<(Vec<u8>, Place)> {
        let (mut key, mut out) = (Vec::new(), Vec::new());
        while let Some(place) = sorted.next(&mut key).unwrap_or_else(|e| panic!("{e}")) {
            out.push((key.clone(), place));
        }
        out
    }

    /// The entries of keys with their blocks, in order, when `limit` bytes are held.
    fn sorted(keys: &[(&[u8], u32)], limit: usize) -> Vec<(Vec<u8>, Place)> {
        sorted_by(KeySorter::new(&std::env::temp_dir(), limit), keys)
    }

    fn sorted_by(mut sorter: KeySorter, keys: &[(&[u8], u32)]) -> Vec<(Vec<u8>, Place)> {
        for (key, block) in keys {
            sorter.push(key, place(*block));
            sorter.make_room().unwrap_or_else(|e| panic!("{e}"));
        }
        assert_eq!(sorter.count(), keys.len() as u64);
        all(sorter.finish().unwrap_or_else(|e| panic!("{e}")))
    }

    fn blocks(keys: &[(&[u8], u32)], limit: usize) -> Vec<u32> {
        sorted(keys, limit).iter().map(|(_, p)| p.root.block).collect()
    }

    #[test]
    fn packed_and_long_keys_sort_alike_in_memory_and_in_files() {
        let short: [(&[u8], u32); 3] = [(&[2, 1], 1), (&[1, 9], 2), (&[2, 1], 0)];
        let mut mixed = short.to_vec();
        mixed.push((&[1, 9, 0], 3));
        for limit in [1 << 20, 1, 33] {
            assert_eq!(blocks(&short, limit), [2, 0, 1], "{limit}");
            assert_eq!(blocks(&mixed, limit), [2, 3, 0, 1], "{limit}");
        }
    }

    #[test]
    fn keys_that_rows_share_come_as_if_each_had_its_own() {
        // Rows out of order and twice, short and long keys, few and many rows of one.
        let keys: Vec<(Vec<u8>, u32)> = (0..40_000_u32)
            .map(|n| {
                let mixed = n.wrapping_mul(2_654_435_761);
                let key = vec![(mixed >> 20) as u8; (mixed >> 8) as usize % 40];
                (if n % 3 == 0 { vec![7] } else { key }, if n % 50 == 0 { n / 2 } else { n })
            })
            .collect();
        let keys: Vec<(&[u8], u32)> = keys.iter().map(|(k, n)| (k.as_slice(), *n)).collect();
        let mut expected = sorted(&keys, usize::MAX);
        expected.iter_mut().for_each(|(_, place)| place.null = false);
        expected.sort();
        for limit in [usize::MAX, 200_000, 50_000, 3000] {
            let sorter = || KeySorter::of(AccessMethod::Gin, &std::env::temp_dir(), limit);
            assert!(sorted_by(sorter(), &keys) == expected, "{limit}");
            // Threads take rows in turns.
            let mut parts: Vec<KeySorter> = (0..3).map(|_| sorter()).collect();
            for (n, (key, block)) in keys.iter().enumerate() {
                let part = &mut parts[n / 500 % 3];
                part.push(key, place(*block));
                part.make_room().unwrap_or_else(|e| panic!("{e}"));
            }
            let parts =
                parts.into_iter().map(|part| part.finish().unwrap_or_else(|e| panic!("{e}")));
            let merged = SortedKeys::of_all(parts.collect()).unwrap_or_else(|e| panic!("{e}"));
            assert!(all(merged) == expected, "{limit}, by three threads");
        }
    }

    #[test]
    fn what_several_threads_have_sorted_is_merged() {
        let keys: Vec<([u8; 4], u32)> =
            (0..1000_u32).map(|n| ((n * 7 % 100).to_be_bytes(), n)).collect();
        let keys: Vec<(&[u8], u32)> = keys.iter().map(|(k, n)| (k.as_slice(), *n)).collect();
        for limit in [1 << 20, 1000] {
            let mut parts = Vec::new();
            for part in keys.chunks(300) {
                let mut sorter = KeySorter::new(&std::env::temp_dir(), limit);
                for (key, block) in part {
                    sorter.push(key, place(*block));
                    sorter.make_room().unwrap_or_else(|e| panic!("{e}"));
                }
                parts.push(sorter.finish().unwrap_or_else(|e| panic!("{e}")));
            }
            let merged = SortedKeys::of_all(parts).unwrap_or_else(|e| panic!("{e}"));
            assert!(all(merged) == sorted(&keys, 1 << 20));
        }
    }

    #[test]
    fn many_runs_give_what_memory_gives() {
        let keys: Vec<(Vec<u8>, u32)> = (0..50_000_u32)
            .map(|n| {
                let mixed = n.wrapping_mul(2_654_435_761);
                (vec![(mixed >> 24) as u8; (mixed >> 8) as usize % 300], n)
            })
            .collect();
        let keys: Vec<(&[u8], u32)> = keys.iter().map(|(k, n)| (k.as_slice(), *n)).collect();
        let expected = sorted(&keys, usize::MAX);
        let mut by_hand: Vec<_> = keys.iter().map(|(k, n)| (k.to_vec(), place(*n))).collect();
        by_hand.sort();
        assert!(expected == by_hand, "in memory");
        assert!(sorted(&keys, 60_000) == expected, "runs of less than a chunk");
        assert!(sorted(&keys, 2_000_000) == expected, "runs of several chunks");
    }
}
