//! Range scans, forwards and backwards. A cursor copies the entries of one leaf at a time and holds
//! neither latch nor pin in between.
//!
//! Forwards it goes on with the right neighbour that the leaf had when it was copied: whatever a
//! split moves out of that leaf afterwards is in the copy. Backwards it goes to the left neighbour,
//! and from there right again if that was split, to the page just before the one it comes from. When pages were freed
//! since, or the neighbours do not fit, it looks from the root for the place behind the last entry that it copied
//! (`vacuum` says why no more is needed).

use base::{Result, TupleId};
use storage::{Page, ReadGuard};
use txn::Transaction;

use super::node::{LOWEST, Node, Probe, Tid};
use super::search::{Freed, Path};
use super::{BTree, KeyRange};
use crate::heap::Heap;

/// How far a scan backwards looks to the right for the page before the one that it comes from.
const STEPS_RIGHT: usize = 4;

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
    /// The state of the tree when the way to `place` was begun.
    freed: Freed,
    /// Row ids at which the range begins and ends, on top of its keys.
    tids: [Tid; 2],
    /// The last entry that was copied, if any.
    last: Option<Tid>,
    last_key: Vec<u8>,
    /// The heap whose visibility map is asked, and its answer for each of the entries.
    heap: Option<Heap>,
    visible: Vec<bool>,
    /// Serializable transactions do not note the pages.
    untracked: bool,
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
            freed: Freed::default(),
            tids: [LOWEST; 2],
            last: None,
            last_key: Vec::new(),
            heap: None,
            visible: Vec::new(),
            untracked: false,
        }
    }

    /// The same for a scan that has its values from the index: [`Entries::visible`] says which rows need no look.
    pub fn scan_only(&self, range: KeyRange, backward: bool, heap: &Heap) -> Cursor {
        Cursor { heap: Some(heap.clone()), ..self.scan(range, backward) }
    }
}

impl Cursor {
    /// Reads pages without noting it for serializable transactions: what the caller has noted says what is read.
    pub(crate) fn untracked(mut self) -> Cursor {
        self.untracked = true;
        self
    }

    /// Begins again with another range, in the memory that it has.
    pub fn restart(&mut self, range: KeyRange, backward: bool) {
        self.end();
        (self.range, self.backward, self.place) = (range, backward, Place::Start);
        (self.tids, self.last) = ([LOWEST; 2], None);
    }

    /// Leaves out entries whose keys are below `from`, of a scan forwards: what lies behind the leaf at hand is
    /// looked for from the root.
    pub fn skip_to(&mut self, from: &[u8]) {
        if self.backward || self.range.from.as_slice() >= from {
            return;
        }
        self.range.from.clear();
        self.range.from.extend_from_slice(from);
        self.tids[0] = LOWEST;
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
        if let Some((from, to, tid)) = self.entries.last() {
            self.last = Some(tid.to_bytes());
            self.last_key.clear();
            self.last_key.extend_from_slice(&self.keys[*from as usize..*to as usize]);
        }
        self.entries.clear();
        self.keys.clear();
        self.visible.clear();
        self.at = 0;
        loop {
            match self.try_leaf(tx) {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error) if self.tree.is_still(self.freed)? => return Err(error),
                Err(_) => {}
            }
            self.resume();
            sched::check_interrupts()?;
        }
    }

    /// The place behind what was copied is to be looked for from the root.
    fn resume(&mut self) {
        self.place = Place::Start;
        let Some(last) = self.last.take() else { return };
        if self.backward {
            self.range.to = Some(self.last_key.clone());
            self.tids[1] = last;
            return;
        }
        // Unless the scan has been told to begin further on.
        if self.last_key >= self.range.from {
            self.range.from.clone_from(&self.last_key);
            let row = TupleId::from_bytes(last);
            self.tids[0] = match row.offset.checked_add(1) {
                Some(offset) => TupleId { offset, ..row }.to_bytes(),
                None => TupleId { block: row.block + 1, offset: 0 }.to_bytes(),
            };
        }
    }

    /// Reads the leaf at the place. False: it is not the one that it was when its number was read.
    fn try_leaf(&mut self, tx: &Transaction) -> Result<bool> {
        let tree = &self.tree;
        let (from, to) = (&self.range.from[..], self.range.to.as_deref());
        let [from_tid, to_tid] = &self.tids;
        let mut from_page = None;
        let mut path = Path { freed: self.freed, ..Path::default() };
        let pinned = match self.place {
            Place::Start if self.backward => match to {
                Some(to) => tree.descend(to, to_tid, 0, &mut path),
                None => tree.descend(&[0xff; 64], &[0xff; 6], 0, &mut path),
            },
            Place::Start => tree.descend(from, from_tid, 0, &mut path),
            Place::Right(right) => tree.pin(right),
            Place::Left(left, came_from) => {
                from_page = Some((came_from, STEPS_RIGHT));
                tree.pin(left)
            }
            Place::End => return Ok(true),
        };
        self.freed = path.freed;
        let mut pinned = pinned?;
        loop {
            if !self.untracked {
                tx.reads_page(self.tree.rel, pinned.id().block);
            }
            let guard = pinned.read();
            let node = Node(guard.page());
            if !self.tree.is_still(self.freed)? {
                return Ok(false);
            }
            if !node.is_node() {
                return Err(self.tree.corrupted(pinned.id().block));
            }
            let right = match &mut from_page {
                Some((came_from, _)) if node.right() == *came_from && !node.is_deleted() => None,
                // Where it came from may be gone, or another page's neighbour now.
                Some((_, 0)) => return Ok(false),
                Some(_) if node.is_deleted() || node.right() == 0 => return Ok(false),
                Some((_, steps)) => {
                    *steps -= 1;
                    Some(node.right())
                }
                None => self.too_far_left(node),
            };
            match right {
                Some(right) => {
                    drop(guard);
                    pinned = self.tree.pin(right)?;
                }
                None => {
                    self.copy(&guard, pinned.id().block);
                    return Ok(true);
                }
            }
        }
    }

    /// The page to go to first when this one is left of where the scan is to begin.
    fn too_far_left(&self, node: Node<&Page>) -> Option<u32> {
        if !matches!(self.place, Place::Start) {
            return None;
        }
        let right = node.right();
        let [from_tid, to_tid] = &self.tids;
        let beyond = match (&self.range.to, self.backward) {
            (Some(to), true) => node.is_beyond(&Probe::new(to, to_tid)),
            (None, true) => right != 0,
            (_, false) => node.is_beyond(&Probe::new(&self.range.from, from_tid)),
        };
        beyond.then_some(right)
    }

    /// Copies the leaf's entries that are in the range, and notes where to go on.
    fn copy(&mut self, guard: &ReadGuard<'_>, block: u32) {
        let node = Node(guard.page());
        let [from_tid, to_tid] = &self.tids;
        let first = node.lower_bound(&Probe::new(&self.range.from, from_tid)).unwrap_or(0);
        let end = match &self.range.to {
            Some(to) => node.lower_bound(&Probe::new(to, to_tid)).unwrap_or(0),
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
