//! Reads of serializable transactions: SIREAD locks, which block nobody.
//!
//! ```text
//! shard of a target -> target (relation | page | row) -> readers
//! transaction       -> its targets                       (to find them at the end)
//! ```
//!
//! * A row's lock is on the version that was seen. An index page stands for the range of keys that
//!   belongs there, also those that do not exist yet; a split copies the locks to the new page.
//! * More than `max_pred_locks_per_page` rows of a page become the page, more than
//!   `max_pred_locks_per_relation` pages and rows of a relation the relation. So a transaction holds a
//!   bounded number for each relation that it reads. A coarser lock is there before the finer ones
//!   go, and writers ask from the finest to the coarsest: they miss none.
//! * A reader enters its lock before it looks at the page, or under the page's latch; a writer asks
//!   while it holds the page's latch exclusively, until its change is there. So either the writer finds
//!   the lock, or the reader finds the change.
//!
//! Order of locking: a shard (two at once only ascending), then a transaction's own list.

use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering, fence};

use base::settings::{live_int, setting};
use base::{RelId, TupleId, WaitEvent};
use crossbeam_utils::CachePadded;
use sched::{Mutex, MutexGuard};

use super::Sxact;
use crate::lock::FastMap;

const SHARDS: usize = 64;
/// Targets of one relation that are kept in summary before they become the relation.
const OLD_TARGETS: usize = 4096;

/// The thing that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReadTarget {
    /// The files of a table or index.
    pub rel: RelId,
    block: u32,
    offset: u16,
}

/// No page in particular.
const ALL: u32 = u32::MAX;

impl ReadTarget {
    /// The whole relation.
    pub fn relation(rel: RelId) -> ReadTarget {
        ReadTarget { rel, block: ALL, offset: 0 }
    }

    /// A page.
    pub fn page(rel: RelId, block: u32) -> ReadTarget {
        ReadTarget { rel, block, offset: 0 }
    }

    /// A row version.
    pub fn row(rel: RelId, tid: TupleId) -> ReadTarget {
        ReadTarget { rel, block: tid.block, offset: tid.offset }
    }

    /// Page and row, where it names them.
    pub fn place(self) -> (Option<u32>, Option<u16>) {
        let block = Some(self.block).filter(|&block| block != ALL);
        (block, Some(self.offset).filter(|&offset| offset != 0))
    }

    /// The next coarser target, of which it is a part.
    fn parent(self) -> Option<ReadTarget> {
        match self.place() {
            (_, Some(_)) => Some(ReadTarget::page(self.rel, self.block)),
            (Some(_), None) => Some(ReadTarget::relation(self.rel)),
            (None, None) => None,
        }
    }

    fn parents(self) -> impl Iterator<Item = ReadTarget> {
        std::iter::successors(self.parent(), |target| target.parent())
    }

    fn covers(self, other: ReadTarget) -> bool {
        other.parents().any(|parent| parent == self)
    }

    /// How many parts may be locked one by one.
    fn parts_max(self) -> i64 {
        if self.block != ALL {
            return live_int(setting::MAX_PRED_LOCKS_PER_PAGE);
        }
        match live_int(setting::MAX_PRED_LOCKS_PER_RELATION) {
            max if max >= 0 => max,
            share => live_int(setting::MAX_PRED_LOCKS_PER_TRANSACTION) / -share - 1,
        }
    }

    fn shard(self) -> usize {
        let key = u64::from(self.rel.0) << 32 | u64::from(self.block);
        let mixed = (key ^ u64::from(self.offset) << 20).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> 40) as usize % SHARDS
    }
}

/// Readers of a target.
#[derive(Clone)]
pub(super) enum Reader {
    /// A transaction that is known.
    Known(Arc<Sxact>),
    /// Transactions known only in summary; the last of them committed then.
    Old(u64),
}

impl Reader {
    fn is(&self, id: u64) -> bool {
        matches!(self, Reader::Known(xact) if xact.id == id)
    }
}

/// The targets of one transaction.
#[derive(Default)]
pub(super) struct Targets {
    /// Whether it is locked itself, and how many of its parts are.
    held: FastMap<ReadTarget, (bool, i64)>,
    /// Its locks have been taken away for good.
    released: bool,
}

impl Targets {
    fn holds(&self, target: ReadTarget) -> bool {
        self.held.get(&target).is_some_and(|entry| entry.0)
    }

    fn covered(&self, target: ReadTarget) -> bool {
        self.holds(target) || target.parents().any(|parent| self.holds(parent))
    }

    /// Notes one more target.
    fn add(&mut self, target: ReadTarget) {
        let entry = self.held.entry(target).or_default();
        if !std::mem::replace(&mut entry.0, true) {
            target.parents().for_each(|parent| self.held.entry(parent).or_default().1 += 1);
        }
    }

    fn remove(&mut self, target: ReadTarget) -> bool {
        let Some(entry) = self.held.get_mut(&target) else { return false };
        if !std::mem::replace(&mut entry.0, false) {
            return false;
        }
        for at in std::iter::once(target).chain(target.parents()) {
            if let Entry::Occupied(mut entry) = self.held.entry(at) {
                entry.get_mut().1 -= i64::from(at != target);
                if *entry.get() == (false, 0) {
                    entry.remove();
                }
            }
        }
        true
    }

    /// Notes the target, or what it is promoted to. Returns what to enter, and what that replaces.
    fn take(&mut self, target: ReadTarget) -> Option<(ReadTarget, Vec<ReadTarget>)> {
        if self.released || self.covered(target) {
            return None;
        }
        let crowded =
            |at: &ReadTarget| self.held.get(at).is_some_and(|entry| entry.1 + 1 > at.parts_max());
        let target = target.parents().filter(crowded).last().unwrap_or(target);
        let parts: Vec<ReadTarget> = match target.offset {
            0 => self.list().filter(|other| target.covers(*other)).collect(),
            _ => Vec::new(),
        };
        for part in &parts {
            self.remove(*part);
        }
        self.add(target);
        Some((target, parts))
    }

    fn list(&self) -> impl Iterator<Item = ReadTarget> {
        self.held.iter().filter(|(_, entry)| entry.0).map(|(target, _)| *target)
    }
}

type Shard = FastMap<ReadTarget, Vec<Reader>>;

/// Targets kept in summary, by relation.
#[derive(Default)]
struct Old {
    targets: FastMap<RelId, Vec<ReadTarget>>,
    last: u64,
}

/// All SIREAD locks.
pub(super) struct Reads {
    shards: Box<[CachePadded<Mutex<Shard>>]>,
    /// How many targets are locked: none, most of the time.
    count: CachePadded<AtomicUsize>,
    old: Mutex<Old>,
}

impl Reads {
    pub(super) fn new() -> Reads {
        let event = WaitEvent::LWLockPredicateLockManager;
        Reads {
            shards: (0..SHARDS)
                .map(|_| CachePadded::new(Mutex::new(event, Shard::default())))
                .collect(),
            count: CachePadded::new(AtomicUsize::new(0)),
            old: Mutex::new(event, Old::default()),
        }
    }

    fn shard(&self, target: ReadTarget) -> MutexGuard<'_, Shard> {
        self.shards[target.shard()].lock()
    }

    /// Whether nothing is locked. A writer asks while it holds the latch of what it changes: by the
    /// fences here and in [`Reads::add`] it sees the count, or the reader sees the latch.
    pub(super) fn is_empty(&self) -> bool {
        fence(Ordering::SeqCst);
        self.count.load(Ordering::SeqCst) == 0
    }

    fn enter(&self, shard: &mut Shard, target: ReadTarget, reader: Reader) {
        let readers = shard.entry(target).or_insert_with(|| {
            self.count.fetch_add(1, Ordering::SeqCst);
            Vec::new()
        });
        match (&reader, readers.iter_mut().find(|old| matches!(old, Reader::Old(_)))) {
            (Reader::Old(now), Some(Reader::Old(last))) => *last = (*last).max(*now),
            _ => readers.push(reader),
        }
    }

    fn take_out(&self, target: ReadTarget, which: impl Fn(&Reader) -> bool) {
        let mut shard = self.shard(target);
        if let Entry::Occupied(mut entry) = shard.entry(target) {
            entry.get_mut().retain(|reader| !which(reader));
            if entry.get().is_empty() {
                entry.remove();
                self.count.fetch_sub(1, Ordering::SeqCst);
            }
        }
    }

    /// Notes that `xact` reads the target.
    pub(super) fn add(&self, xact: &Arc<Sxact>, target: ReadTarget) {
        let Some((target, replaced)) = xact.targets.lock().take(target) else { return };
        self.enter(&mut self.shard(target), target, Reader::Known(xact.clone()));
        fence(Ordering::SeqCst);
        for part in replaced {
            self.take_out(part, |reader| reader.is(xact.id));
        }
    }

    /// `xact` itself changes the row: others that change it meet it there.
    pub(super) fn drop_own(&self, xact: &Sxact, target: ReadTarget) {
        if xact.targets.lock().remove(target) {
            self.take_out(target, |reader| reader.is(xact.id));
        }
    }

    /// The readers of a target, but for transaction `me`.
    pub(super) fn readers(&self, target: ReadTarget, me: u64, found: &mut Vec<Reader>) {
        let shard = self.shard(target);
        let readers = shard.get(&target).into_iter().flatten();
        found.extend(readers.filter(|reader| !reader.is(me)).cloned());
    }

    /// Everybody who has read the relation or a part of it.
    pub(super) fn readers_of_parts(&self, rel: RelId, me: u64, found: &mut Vec<Reader>) {
        for shard in &self.shards {
            let shard = shard.lock();
            let parts = shard.iter().filter(|(target, _)| target.rel == rel);
            found.extend(parts.flat_map(|part| part.1).filter(|r| !r.is(me)).cloned());
        }
    }

    /// Whoever has read one page counts as reader of another as well (it takes over a part of its
    /// keys). The caller holds the latch of the old page.
    pub(super) fn copy_page(&self, from: ReadTarget, to: ReadTarget) {
        let (first, second) = (from.shard().min(to.shard()), from.shard().max(to.shard()));
        let mut guards = [Some(self.shards[first].lock()), None];
        if first != second {
            guards[1] = Some(self.shards[second].lock());
        }
        let at = |target: ReadTarget| usize::from(target.shard() != first);
        let Some(shard) = &guards[at(from)] else { return };
        let Some(readers) = shard.get(&from).cloned() else { return };
        let Some(shard) = &mut guards[at(to)] else { return };
        for reader in readers {
            if let Reader::Known(xact) = &reader {
                let mut targets = xact.targets.lock();
                if targets.released || targets.covered(to) {
                    continue;
                }
                targets.add(to);
            }
            let old = matches!(reader, Reader::Old(_));
            self.enter(shard, to, reader);
            if old {
                self.old.lock().targets.entry(to.rel).or_default().push(to);
            }
        }
    }

    /// Whoever has read a part of `from` counts as a reader of the whole of `to`.
    pub(super) fn transfer(&self, from: RelId, to: RelId) {
        let mut found = Vec::new();
        self.readers_of_parts(from, 0, &mut found);
        for reader in found {
            match reader {
                Reader::Known(xact) => self.add(&xact, ReadTarget::relation(to)),
                Reader::Old(committed) => self.add_old(ReadTarget::relation(to), committed),
            }
        }
    }

    /// Takes away what a transaction has read, for good.
    pub(super) fn release(&self, xact: &Sxact) {
        for target in self.empty(xact) {
            self.take_out(target, |reader| reader.is(xact.id));
        }
    }

    fn empty(&self, xact: &Sxact) -> Vec<ReadTarget> {
        let mut targets = xact.targets.lock();
        targets.released = true;
        let list = targets.list().collect();
        targets.held = FastMap::default();
        list
    }

    /// Keeps what a transaction has read under nobody's name; it committed then.
    pub(super) fn summarise(&self, xact: &Sxact, committed: u64) {
        for target in self.empty(xact) {
            self.add_old(target, committed);
            self.take_out(target, |reader| reader.is(xact.id));
        }
    }

    fn add_old(&self, target: ReadTarget, committed: u64) {
        let target = {
            let mut old = self.old.lock();
            old.last = old.last.max(committed);
            let targets = old.targets.entry(target.rel).or_default();
            let crowded = targets.len() >= OLD_TARGETS;
            let target = if crowded { ReadTarget::relation(target.rel) } else { target };
            if !crowded || targets.last() != Some(&target) {
                targets.push(target);
            }
            target
        };
        self.enter(&mut self.shard(target), target, Reader::Old(committed));
    }

    /// Drops what is kept in summary when all of it was committed by then.
    pub(super) fn forget_old(&self, upto: u64) {
        let targets = {
            let mut old = self.old.lock();
            if old.last > upto || old.targets.is_empty() {
                return;
            }
            std::mem::take(&mut *old).targets
        };
        for target in targets.into_values().flatten() {
            self.take_out(target, |reader| matches!(reader, Reader::Old(at) if *at <= upto));
        }
    }

    /// A transaction's targets.
    pub(super) fn list(&self, xact: &Sxact) -> Vec<ReadTarget> {
        xact.targets.lock().list().collect()
    }

    /// How many targets are locked, by counter and by counting.
    #[cfg(test)]
    pub(super) fn left(&self) -> usize {
        let counted: usize = self.shards.iter().map(|s| s.lock().len()).sum();
        assert_eq!(counted, self.count.load(Ordering::SeqCst));
        counted
    }
}
