//! The keys of a new index that many rows share (words, elements): each key once, with the rows that have it in the order in which
//! they came, which is mostly theirs. Only the keys are sorted.

use std::hash::Hasher;
use std::io::Write;

use access::gin::row_number;
use base::{Result, TupleId};
use exec::ops::grouping::Fx;
use exec::ops::spill::failed;
use hashbrown::HashTable;
use smallvec::SmallVec;

/// Bytes of distances that are written together, about.
const PIECE: usize = if cfg!(test) { 64 } else { 4096 };
/// Bytes in front of a key in a run.
pub(super) const HEADER: usize = 16;

/// Keys with their rows.
#[derive(Default)]
pub(super) struct KeyGroups {
    find: HashTable<u32>,
    /// The keys, one after the other.
    bytes: Vec<u8>,
    groups: Vec<Group>,
    /// Bytes of the rows of keys that have many.
    long: usize,
    rows: usize,
    /// The groups in the order of their keys, once they are sorted.
    sorted: Vec<u32>,
}

/// A key's rows: the distances between their numbers, zigzag LEB128.
struct Group {
    key: (usize, u32),
    last: u64,
    in_order: bool,
    distances: SmallVec<[u8; 16]>,
}

/// The row behind the one whose distance ends at the byte `at`, which goes on.
#[inline]
pub(super) fn next_row(distances: &[u8], at: &mut usize, last: u64) -> Option<u64> {
    let (mut value, mut shift) = (0, 0);
    loop {
        let byte = *distances.get(*at)?;
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            break;
        }
    }
    let distance = (value >> 1) as i64 ^ -((value & 1) as i64);
    Some(last.wrapping_add(distance as u64))
}

impl Group {
    fn key<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        &bytes[self.key.0..self.key.0 + self.key.1 as usize]
    }

    fn push(&mut self, row: u64) {
        let distance = row.wrapping_sub(self.last) as i64;
        self.in_order &= distance >= 0;
        self.last = row;
        let mut left = (distance << 1 ^ distance >> 63) as u64;
        while left >= 0x80 {
            self.distances.push(left as u8 | 0x80);
            left >>= 7;
        }
        self.distances.push(left as u8);
    }

    fn sort(&mut self) {
        let (mut all, mut at, mut last) = (Vec::new(), 0, 0);
        while let Some(row) = next_row(&self.distances, &mut at, last) {
            all.push(row);
            last = row;
        }
        all.sort_unstable_by(sched::unhurried(Ord::cmp));
        self.distances.clear();
        (self.last, self.in_order) = (0, true);
        all.into_iter().for_each(|row| self.push(row));
    }
}

fn hash(key: &[u8]) -> u64 {
    let mut state = Fx::default();
    state.write(key);
    state.finish()
}

impl KeyGroups {
    pub(super) fn push(&mut self, key: &[u8], root: TupleId) {
        let (groups, bytes) = (&mut self.groups, &mut self.bytes);
        let hash_of = hash(key);
        let known = self.find.find(hash_of, |n| groups[*n as usize].key(bytes) == key);
        let number = match known {
            Some(number) => *number,
            None => {
                let number = groups.len() as u32;
                let at = (bytes.len(), key.len() as u32);
                bytes.extend_from_slice(key);
                let distances = SmallVec::new();
                groups.push(Group { key: at, last: 0, in_order: true, distances });
                let again = |n: &u32| hash(groups[*n as usize].key(bytes));
                self.find.insert_unique(hash_of, number, again);
                number
            }
        };
        let group = &mut groups[number as usize];
        let before = group.distances.capacity();
        group.push(row_number(root));
        self.long += group.distances.capacity() - before;
        self.rows += 1;
    }

    /// Entries.
    pub(super) fn len(&self) -> usize {
        self.rows
    }

    /// Bytes that they take.
    pub(super) fn memory(&self) -> usize {
        let each = size_of::<Group>() + size_of::<(u32, u32)>();
        self.bytes.len() + self.groups.len() * each + self.long
    }

    /// Puts keys and rows in order, for [`KeyGroups::get`] and [`KeyGroups::write`].
    pub(super) fn sort(&mut self) {
        let (groups, bytes) = (&mut self.groups, &self.bytes);
        groups.iter_mut().filter(|group| !group.in_order).for_each(Group::sort);
        self.sorted = (0..groups.len() as u32).collect();
        let key = |n: &u32| groups[*n as usize].key(bytes);
        self.sorted.sort_unstable_by(sched::unhurried(|a: &u32, b: &u32| key(a).cmp(key(b))));
    }

    /// The key with this number in their order, and the distances of its rows, the first one from 0.
    pub(super) fn get(&self, number: usize) -> Option<(&[u8], &[u8])> {
        let group = &self.groups[*self.sorted.get(number)? as usize];
        Some((group.key(&self.bytes), &group.distances))
    }

    /// Writes all in order, as a run:
    ///
    /// ```text
    /// key length u32 | distances' length u32 | row before u64 | key | distances | …
    /// ```
    ///
    /// Long lists are cut into pieces, which have the same key.
    ///
    /// # Errors
    /// I/O, a full disk, interrupts.
    pub(super) fn write(&self, out: &mut impl Write) -> Result<()> {
        for number in 0.. {
            let Some((key, distances)) = self.get(number) else { break };
            sched::check_interrupts()?;
            let (mut begin, mut at, mut before, mut last) = (0, 0, 0, 0);
            while begin < distances.len() {
                match next_row(distances, &mut at, last) {
                    Some(row) => last = row,
                    None => at = distances.len(),
                }
                if at - begin < PIECE && at < distances.len() {
                    continue;
                }
                let piece = &distances[begin..at];
                let mut write = || {
                    out.write_all(&(key.len() as u32).to_le_bytes())?;
                    out.write_all(&(piece.len() as u32).to_le_bytes())?;
                    out.write_all(&u64::to_le_bytes(before))?;
                    out.write_all(key)?;
                    out.write_all(piece)
                };
                write().map_err(|e| failed("write", &e))?;
                (begin, before) = (at, last);
            }
        }
        Ok(())
    }
}
