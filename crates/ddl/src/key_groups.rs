//! The keys of a new index that many rows share (words, elements): each key once, with the rows that have it in the order in which
//! they came, which is mostly theirs. Only the keys are sorted.

use std::hash::Hasher;

use access::gin::{row_number, row_of_number};
use base::TupleId;
use exec::ops::grouping::Fx;
use hashbrown::HashTable;
use smallvec::SmallVec;

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

/// A place among sorted entries.
#[derive(Default)]
pub(super) struct At {
    /// The group, and in it the byte and the row before.
    group: usize,
    byte: usize,
    last: u64,
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

    /// The row behind the byte `at`, which goes on.
    fn next(&self, at: &mut usize, last: u64) -> Option<u64> {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = *self.distances.get(*at)?;
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

    fn sort(&mut self) {
        let (mut all, mut at, mut last) = (Vec::new(), 0, 0);
        while let Some(row) = self.next(&mut at, last) {
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

    /// Puts keys and rows in order, for [`KeyGroups::get`].
    pub(super) fn sort(&mut self) {
        let (groups, bytes) = (&mut self.groups, &self.bytes);
        groups.iter_mut().filter(|group| !group.in_order).for_each(Group::sort);
        self.sorted = (0..groups.len() as u32).collect();
        let key = |n: &u32| groups[*n as usize].key(bytes);
        self.sorted.sort_unstable_by(sched::unhurried(|a: &u32, b: &u32| key(a).cmp(key(b))));
    }

    /// Copies the key of the entry at `at` and returns its row; None past the end.
    pub(super) fn get(&self, at: &mut At, key: &mut Vec<u8>) -> Option<TupleId> {
        loop {
            let group = &self.groups[*self.sorted.get(at.group)? as usize];
            if let Some(row) = group.next(&mut at.byte, at.last) {
                at.last = row;
                key.clear();
                key.extend_from_slice(group.key(&self.bytes));
                return Some(row_of_number(row));
            }
            *at = At { group: at.group + 1, ..At::default() };
        }
    }
}
