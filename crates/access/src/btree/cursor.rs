//! Range scans, forwards and backwards. A cursor copies the entries of one leaf at a time and holds
//! neither latch nor pin in between.
//!
//! Forwards it goes on with the right neighbour that the leaf had when it was copied: whatever a
//! split moves out of that leaf afterwards is in the copy. Backwards it goes to the left neighbour,
//! and from there right again if that was split, to the page just before the one it comes from.

use base::{Result, TupleId};
use storage::{Page, ReadGuard};
use txn::Transaction;

use super::node::{LOWEST, Node, Probe};
use super::search::MAX_LEVELS;
use super::{BTree, KeyRange};
use crate::heap::Heap;

/// A scan in progress: holds copies of one leaf's entries, no latch and no pin.
pub struct Cursor {
    tree: BTree,
    range: KeyRange,
    backward: bool,
    keys: Vec<u8>,
    /// Begin and end of the key in `keys`, and row id, of each entry in the order of the scan.
    entries: Vec<(u32, u32, TupleId)>,
    at: usize,
    place: Place,
    /// The heap whose visibility map is asked, and its answer for each of the entries.
    heap: Option<Heap>,
    visible: Vec<bool>,
}

/// Some entries of one leaf, in the order of the scan.
pub struct Entries<'c> {
    /// Bytes that the keys are in.
    pub keys: &'c [u8],
    /// Begin and end of each one's key, and its row id.
    pub entries: &'c [(u32, u32, TupleId)],
    /// Whether everybody sees each one's row, so that the heap need not be visited; empty but with
    /// [`BTree::scan_only`].
    pub visible: &'c [bool],
}

/// Where the next leaf is.
enum Place {
    Start,
    Right(u32),
    /// The page to the left, and the one that was read.
    Left(u32, u32),
    End,
}

impl BTree {
    /// Begins a scan. `backward`: from the range's end to its beginning.
    pub fn scan(&self, range: KeyRange, backward: bool) -> Cursor {
        Cursor {
            tree: self.clone(),
            range,
            backward,
            keys: Vec::new(),
            entries: Vec::new(),
            at: 0,
            place: Place::Start,
            heap: None,
            visible: Vec::new(),
        }
    }

    /// The same for a scan that has its values from the index: [`Entries::visible`] says which rows need no look.
    pub fn scan_only(&self, range: KeyRange, backward: bool, heap: &Heap) -> Cursor {
        Cursor { heap: Some(heap.clone()), ..self.scan(range, backward) }
    }
}

impl Cursor {
    /// Begins again with another range, in the memory that it has.
    pub fn restart(&mut self, range: KeyRange, backward: bool) {
        self.end();
        (self.range, self.backward, self.place) = (range, backward, Place::Start);
    }

    /// Leaves out entries whose keys are below `from`, of a scan forwards: what lies behind the leaf at hand is
    /// looked for from the root.
    pub fn skip_to(&mut self, from: &[u8]) {
        if self.backward || self.range.from.as_slice() >= from {
            return;
        }
        self.range.from.clear();
        self.range.from.extend_from_slice(from);
        let keys = &self.keys;
        let below =
            |(begin, end, _): &(u32, u32, TupleId)| keys[*begin as usize..*end as usize] < *from;
        self.at += self.entries[self.at..].partition_point(below);
        if self.at == self.entries.len() && !matches!(self.place, Place::End) {
            self.place = Place::Start;
        }
    }

    /// Goes to the end: no entry is left.
    pub fn end(&mut self) {
        self.keys.clear();
        self.entries.clear();
        self.visible.clear();
        (self.at, self.place) = (0, Place::End);
    }

    /// The next entry's key and row id.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self, tx: &Transaction) -> Result<Option<(&[u8], TupleId)>> {
        while self.at == self.entries.len() {
            if matches!(self.place, Place::End) {
                return Ok(None);
            }
            sched::check_interrupts()?;
            self.read_leaf(tx)?;
        }
        let (from, to, tid) = self.entries[self.at];
        self.at += 1;
        Ok(Some((&self.keys[from as usize..to as usize], tid)))
    }

    /// The next entries, at most `limit`, as far as one leaf has them; None at the end.
    ///
    /// # Errors
    /// I/O, `57014`.
    pub fn next_run(&mut self, tx: &Transaction, limit: usize) -> Result<Option<Entries<'_>>> {
        while self.at == self.entries.len() {
            if matches!(self.place, Place::End) {
                return Ok(None);
            }
            sched::check_interrupts()?;
            self.read_leaf(tx)?;
        }
        let begin = self.at;
        self.at = self.entries.len().min(begin + limit);
        Ok(Some(Entries {
            keys: &self.keys,
            entries: &self.entries[begin..self.at],
            visible: self.visible.get(begin..self.at).unwrap_or_default(),
        }))
    }

    fn read_leaf(&mut self, tx: &Transaction) -> Result<()> {
        self.entries.clear();
        self.keys.clear();
        self.visible.clear();
        self.at = 0;
        let tree = &self.tree;
        let mut from_page = None;
        let mut pinned = match self.place {
            Place::Start if self.backward => match &self.range.to {
                Some(to) => tree.descend(to, &LOWEST, 0, &mut [0; MAX_LEVELS])?,
                None => tree.descend(&[0xff; 64], &[0xff; 6], 0, &mut [0; MAX_LEVELS])?,
            },
            Place::Start => tree.descend(&self.range.from, &LOWEST, 0, &mut [0; MAX_LEVELS])?,
            Place::Right(right) => tree.pin(right)?,
            Place::Left(left, came_from) => {
                from_page = Some(came_from);
                tree.pin(left)?
            }
            Place::End => return Ok(()),
        };
        loop {
            tx.reads_page(tree.rel, pinned.id().block);
            let guard = pinned.read();
            let node = Node(guard.page());
            if !node.is_node() {
                return Err(tree.corrupted(pinned.id().block));
            }
            match self.too_far_left(node, from_page) {
                Some(right) => {
                    drop(guard);
                    pinned = tree.pin(right)?;
                }
                None => {
                    self.copy(&guard, pinned.id().block);
                    return Ok(());
                }
            }
        }
    }

    /// The page to go to first when this one is left of where the scan is to go on.
    fn too_far_left(&self, node: Node<&Page>, from_page: Option<u32>) -> Option<u32> {
        let right = node.right();
        match (&self.place, from_page) {
            (_, Some(came_from)) => (right != came_from && right != 0).then_some(right),
            (Place::Start, None) => {
                let beyond = match (&self.range.to, self.backward) {
                    (Some(to), true) => node.is_beyond(&Probe::new(to, &LOWEST)),
                    (None, true) => right != 0,
                    (_, false) => node.is_beyond(&Probe::new(&self.range.from, &LOWEST)),
                };
                beyond.then_some(right)
            }
            _ => None,
        }
    }

    /// Copies the leaf's entries that are in the range, and notes where to go on.
    fn copy(&mut self, guard: &ReadGuard<'_>, block: u32) {
        let node = Node(guard.page());
        let first = node.lower_bound(&Probe::new(&self.range.from, &LOWEST)).unwrap_or(0);
        let end = match &self.range.to {
            Some(to) => node.lower_bound(&Probe::new(to, &LOWEST)).unwrap_or(0),
            None => node.count(),
        };
        for index in first..end {
            let Some(entry) = node.entry(index) else { break };
            let from = self.keys.len() as u32;
            self.keys.extend_from_slice(entry.key);
            self.entries.push((from, self.keys.len() as u32, entry.row()));
        }
        if let Some(heap) = &self.heap {
            // Under the leaf's latch: see `visibility_map`.
            let visible = |(_, _, row): &(u32, u32, TupleId)| heap.state.visible.has(row.block);
            self.visible.extend(self.entries.iter().map(visible));
        }
        if self.backward {
            self.entries.reverse();
            self.visible.reverse();
            // An entry below the range ends the scan; so does the leftmost page.
            self.place = match node.left() {
                0 => Place::End,
                _ if first > 0 => Place::End,
                left => Place::Left(left, block),
            };
        } else {
            let ended = self.range.to.as_ref().is_some_and(|to| {
                end < node.count() || node.high().is_some_and(|h| h.key >= to.as_slice())
            });
            self.place = match node.right() {
                0 => Place::End,
                _ if ended => Place::End,
                right => Place::Right(right),
            };
        }
    }
}
