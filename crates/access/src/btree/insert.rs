//! Inserting an entry, with the unique check.
//!
//! The leaf is latched exclusively from the start, so nothing is done twice. A unique insert goes
//! to the leftmost leaf that can hold its key and keeps that latch until the entry is in: two
//! inserts of one key meet there, and the second sees the first's entry.

use std::sync::atomic::Ordering::Relaxed;

use base::faults::{self, Fault};
use base::{Result, TupleId, Xid, err};
use storage::{Page, WriteGuard};
use txn::{LockWait, Transaction};

use super::node::{self, LOWEST, MAX_KEY, Node, Probe, Tid};
use super::search::Path;
use super::{BTree, Inserted, Rival, Unique};

/// How an attempt ended.
pub(super) enum Attempt {
    Done(Inserted),
    /// Another transaction may be about to remove or keep an equal key.
    Wait(Xid),
    /// A split needs pages that nobody has made yet.
    NeedPages,
    /// Pages were freed meanwhile.
    Again,
}

/// The result of the unique check.
enum Check {
    /// Nothing live; the entries at these places in the leaf can go.
    Clear(Vec<usize>),
    Conflict(TupleId),
    Wait(Xid),
    /// A page further right may have been another one.
    Again,
}

impl BTree {
    /// Adds an entry for the row whose chain begins at `root`.
    ///
    /// # Errors
    /// `54000` when the key is longer than a third of a page.
    pub fn insert(
        &self,
        tx: &Transaction,
        key: &[u8],
        root: TupleId,
        mut unique: Unique<'_>,
    ) -> Result<Inserted> {
        check_key(key)?;
        loop {
            match self.attempt(tx, key, &root.to_bytes(), &mut unique)? {
                Attempt::Done(inserted) => return Ok(inserted),
                Attempt::Wait(xid) => {
                    tx.manager().locks.wait_for_xid(tx.locks(), xid, LockWait::Block)?;
                }
                Attempt::NeedPages => self.refill()?,
                Attempt::Again => sched::check_interrupts()?,
            }
        }
    }

    fn attempt(
        &self,
        tx: &Transaction,
        key: &[u8],
        tid: &Tid,
        unique: &mut Unique<'_>,
    ) -> Result<Attempt> {
        let mut path = Path::default();
        let from = if matches!(unique, Unique::Yes(_)) { &LOWEST } else { tid };
        let mut leaf = match self.rightmost_leaf(key)? {
            Some(leaf) => leaf,
            None => self.latch_at(key, from, 0, &mut path)?,
        };
        if let Unique::Yes(check) = unique {
            match self.check_unique(&leaf, key, *check)? {
                Check::Clear(gone) => leaf = self.take_out(leaf, &gone)?,
                Check::Conflict(tid) => {
                    // A serialization failure that the error would hide is the better answer.
                    tx.writes_page(self.rel, leaf.id().block)?;
                    return Ok(Attempt::Done(Inserted::Conflict(tid)));
                }
                Check::Wait(xid) => return Ok(Attempt::Wait(xid)),
                Check::Again => return Ok(Attempt::Again),
            }
        }
        // The first leaf stays latched while the entry's place is looked for further right.
        let mut first = None;
        while Node(leaf.page()).is_beyond(&Probe::new(key, tid)) {
            let right = self.pin(Node(leaf.page()).right())?.write();
            let left = std::mem::replace(&mut leaf, right);
            first.get_or_insert(left);
        }
        tx.writes_page(self.rel, leaf.id().block)?;
        self.insert_into_leaf(tx, leaf, key, tid, &path)
    }

    /// The rightmost leaf, latched, when keys come in ascending order and `key` surely belongs
    /// there: above its first entry's.
    fn rightmost_leaf(&self, key: &[u8]) -> Result<Option<WriteGuard>> {
        let cached = &self.shared().rightmost;
        let block = match cached.load(Relaxed) {
            0 => return Ok(None),
            block => (block - 1) as u32,
        };
        let leaf = self.pin(block)?.write();
        let node = Node(leaf.page());
        let fits = node.is_node()
            && node.level() == 0
            && node.right() == 0
            && node.entry(0).is_some_and(|e| node.count() > 0 && e.key < key);
        if !fits {
            cached.store(0, Relaxed);
            return Ok(None);
        }
        Ok(Some(leaf))
    }

    /// Asks about every entry with this key, from the leaf on to the right.
    fn check_unique(
        &self,
        leaf: &WriteGuard,
        key: &[u8],
        check: &mut dyn FnMut(TupleId) -> Result<Rival>,
    ) -> Result<Check> {
        let mut gone = Vec::new();
        // The leaf's right neighbour stays, since the leaf is latched; those behind it may go.
        let freed = self.freed()?;
        let node = Node(leaf.page());
        if let Some(found) = check_node(node, key, check, &mut gone)? {
            return Ok(found);
        }
        let mut right = continues(node, key);
        let mut not_here = Vec::new();
        while let Some(block) = right {
            let pinned = self.pin(block)?;
            let guard = pinned.read();
            let node = Node(guard.page());
            if !self.is_still(freed)? {
                return Ok(Check::Again);
            }
            if let Some(found) = check_node(node, key, check, &mut not_here)? {
                return Ok(found);
            }
            right = continues(node, key);
        }
        Ok(Check::Clear(gone))
    }

    /// Removes entries of rows that are gone for everybody.
    fn take_out(&self, leaf: WriteGuard, gone: &[usize]) -> Result<WriteGuard> {
        if gone.is_empty() {
            return Ok(leaf);
        }
        let mut mtr = self.storage.mtr();
        let target = mtr.add(leaf);
        node::retain(&mut mtr, target, |i| !gone.contains(&i));
        let (_, mut guards) = mtr.commit_keep();
        guards.pop().ok_or_else(|| base::Error::internal("a latch got lost"))
    }

    fn insert_into_leaf(
        &self,
        tx: &Transaction,
        leaf: WriteGuard,
        key: &[u8],
        tid: &Tid,
        path: &Path,
    ) -> Result<Attempt> {
        let block = leaf.id().block;
        let node = Node(leaf.page());
        let index = node.lower_bound(&Probe::new(key, tid)).ok_or_else(|| self.corrupted(block))?;
        if node.entry(index).is_some_and(|e| index < node.count() && (e.key, e.tid) == (key, tid)) {
            return Ok(Attempt::Done(Inserted::Done));
        }
        faults::reach(Fault::IndexInsert)?;
        let ascending = node.right() == 0 && index == node.count() && index > 0;
        if node.room() < node::entry_size(key.len(), false) {
            return self.insert_with_split(tx, leaf, index, (key, tid), path);
        }
        let mut mtr = self.storage.mtr();
        let target = mtr.add(leaf);
        node::insert_cell(&mut mtr, target, index, &node::cell_bytes(key, tid, None));
        mtr.commit();
        self.note_rightmost(ascending, block);
        Ok(Attempt::Done(Inserted::Done))
    }

    /// Remembers the rightmost leaf while entries are added at its end.
    pub(super) fn note_rightmost(&self, ascending: bool, block: u32) {
        let cached = &self.shared().rightmost;
        let value = u64::from(block) + 1;
        if ascending && cached.load(Relaxed) != value {
            cached.store(value, Relaxed);
        }
    }
}

pub(super) fn check_key(key: &[u8]) -> Result<()> {
    if key.len() > MAX_KEY {
        return Err(err!(
            PROGRAM_LIMIT_EXCEEDED,
            "index row size {} exceeds btree maximum {}",
            key.len(),
            MAX_KEY
        )
        .hint("Values larger than 1/3 of a buffer page cannot be indexed."));
    }
    Ok(())
}

/// The right neighbour when it may have entries with this key.
fn continues(node: Node<&Page>, key: &[u8]) -> Option<u32> {
    let high = node.high()?;
    (high.key <= key && node.right() != 0).then(|| node.right())
}

fn check_node(
    node: Node<&Page>,
    key: &[u8],
    check: &mut dyn FnMut(TupleId) -> Result<Rival>,
    gone: &mut Vec<usize>,
) -> Result<Option<Check>> {
    let first = node.lower_bound(&Probe::new(key, &LOWEST)).unwrap_or(node.count());
    for index in first..node.count() {
        let Some(entry) = node.entry(index).filter(|e| e.key == key) else { break };
        match check(entry.row())? {
            Rival::Dead => {}
            Rival::Removed => gone.push(index),
            Rival::Live => return Ok(Some(Check::Conflict(entry.row()))),
            Rival::InProgress(xid) => return Ok(Some(Check::Wait(xid))),
        }
    }
    Ok(None)
}
