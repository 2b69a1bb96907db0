//! Update, delete and row locks: one way to claim a version, three things to do with it.
//!
//! **Claiming** a version means holding its page's latch while nobody else has a right to it. A
//! running transaction's `xmax`, or shared locks kept in memory, make the claimer wait:
//!
//! 1. it releases the latch and joins the row's queue, the heavyweight lock on the chain's root
//!    (first come, first served; it keeps that lock to the end of its transaction, so each commit
//!    wakes one waiter and no more);
//!    A claimer that holds a weaker lock on the row does not queue: those in the queue wait for its
//!    transaction, so behind them it would wait for itself;
//! 2. at the head of the queue it waits for the transaction that holds the row, and looks again;
//! 3. a committed update leads it along the chain to the newest version.
//!
//! Under READ COMMITTED a claimer that was led to a newer version locks that one and hands it back:
//! the caller checks its condition again and calls again with the newer version. Above it that is
//! a serialization failure.
//!
//! Following the chain without the latch: the claimer's snapshot sees the version that it began with, so
//! that one is kept, and leads to the newest one over versions that are there ([`super::prune`]). A
//! version in between may go while the claimer waits on it or is on its way to it. It notices that what
//! it comes to wasn't made by the transaction that ended the version before, and begins anew.
//!
//! **Row locks** FOR UPDATE and FOR NO KEY UPDATE are written into `xmax` with [`LOCK_ONLY`]; FOR
//! SHARE and FOR KEY SHARE are kept in memory by the lock manager. A lock by an outer subtransaction
//! whose `xmax` must give way to an inner one's update moves to memory too, so that a rollback of
//! the inner one does not lose it.

use std::sync::atomic::Ordering::Relaxed;

use base::faults::{self, Fault};
use base::{Result, TupleId, Xid, err};
use storage::{Mtr, Page, PageRef, WriteGuard};
use txn::{LockMode, LockTag, LockWait, RowLockMode, Snapshot, Transaction, TxnManager, XidStatus};

use super::page::{
    self, End, FOLLOWS, HAS_NEXT, IN_CHAIN, KEYS, LOCK_ONLY, Line, MOVED, NEXT_IN_CHAIN, PRUNABLE,
    XMAX_ABORTED, XMAX_COMMITTED,
};
use super::prune::{self, Scope, VisibilityHorizon};
use super::{Heap, HeapTuple, LockResult, RowWait, WriteResult, copy_version, insert};

/// More often no walk along a row's versions begins.
const STARTS_MAX: u32 = 100_000;

/// The strength of what is written in `xmax`.
fn strength(mask: u16) -> RowLockMode {
    if mask & KEYS != 0 { RowLockMode::Update } else { RowLockMode::NoKeyUpdate }
}

/// The obstacle to changing a version.
enum Verdict {
    Free,
    Wait(Xid),
    SelfChanged,
    Updated(TupleId),
    Deleted,
}

/// A version that may be changed now.
struct Claimed {
    guard: WriteGuard,
    tid: TupleId,
    root: TupleId,
    /// It is not the version that the claimer began with.
    moved: bool,
}

enum Claim {
    Ours(Claimed),
    Gone,
    SelfChanged,
    WouldBlock,
}

/// A place in the row's queue; left again when the row turns out to be of no use.
struct Queue<'a> {
    tx: &'a Transaction,
    tag: Option<LockTag>,
}

impl Queue<'_> {
    /// Waits to be the first in the row's queue.
    fn join(&mut self, tag: LockTag) -> Result<()> {
        if self.tag.is_none() {
            let locks = &self.tx.manager().locks;
            locks.lock(self.tx.locks(), tag, LockMode::Exclusive, LockWait::Block)?;
            self.tag = Some(tag);
        }
        Ok(())
    }

    /// The row is ours: those behind wait for our transaction.
    fn keep(&mut self) {
        self.tag = None;
    }
}

impl Drop for Queue<'_> {
    fn drop(&mut self) {
        if let Some(tag) = self.tag {
            self.tx.manager().locks.unlock(self.tx.locks(), tag, LockMode::Exclusive);
        }
    }
}

/// The change that an update makes, whatever page it ends up in.
struct Change<'a> {
    tx: &'a Transaction,
    xid: Xid,
    mode: RowLockMode,
    data: &'a [u8],
    in_chain: bool,
}

impl Heap {
    /// Replaces the version `tid` (of the chain at `root`), found by a scan with `snapshot`, by
    /// `data`. `key_changed`: a unique key's column changes (lock strength Update instead of
    /// NoKeyUpdate). `indexed_changed`: some index needs a new entry, so the new version starts a
    /// chain of its own. Unless told not to `wait`, it waits for other transactions through the row's
    /// queue.
    ///
    /// # Errors
    /// `40001` above READ COMMITTED; deadlocks, time-outs, interrupts.
    #[allow(clippy::too_many_arguments)]
    pub fn update(
        &self,
        tx: &Transaction,
        _snapshot: &Snapshot,
        tid: TupleId,
        root: TupleId,
        data: &[u8],
        key_changed: bool,
        indexed_changed: bool,
        wait: RowWait,
    ) -> Result<WriteResult> {
        insert::check_size(data.len())?;
        let mode = if key_changed { RowLockMode::Update } else { RowLockMode::NoKeyUpdate };
        let change = Change { tx, xid: tx.xid()?, mode, data, in_chain: !indexed_changed };
        let mut queue = Queue { tx, tag: None };
        loop {
            let claim = self.claim(tx, tid, root, mode, wait, &mut queue, "delete")?;
            let claimed = match self.resolve_claim(claim, &mut queue, &change)? {
                Ok(claimed) => claimed,
                Err(result) => return Ok(result),
            };
            let done = match self.update_in_page(claimed, &change)? {
                Ok(done) => Some(done),
                Err(full) => self.update_to_other_page(full, &change)?,
            };
            if let Some(done) = done {
                queue.keep();
                self.state.space.ended.fetch_add(1, Relaxed);
                return Ok(done);
            }
        }
    }

    /// For a READ COMMITTED statement that changes one row and has done nothing else yet: whether
    /// the version `tid` that it found is free for a change of strength `mode`. If not, waits for its
    /// turn in the row's queue *without holding a snapshot* and answers false: the statement begins
    /// anew with a new snapshot and looks its row up again. (As if it had begun later.)
    ///
    /// It differs from the wait in [`Heap::update`] in cost. A thousand sessions that wait for one
    /// row with a snapshot each keep a thousand versions of it from being pruned; sessions that wait
    /// here keep none, and the row stays in its page. Nor is a lock written before the change. (The change
    /// itself is tried with [`RowWait::Try`]: even one of a thousand that came too late after all, and then
    /// waited in the queue with its snapshot, would keep versions for all that time.)
    ///
    /// # Errors
    /// Deadlocks, time-outs, interrupts.
    pub fn await_row(
        &self,
        tx: &Transaction,
        tid: TupleId,
        root: TupleId,
        mode: RowLockMode,
    ) -> Result<bool> {
        if !tx.isolation().is_by_statement() {
            return Ok(true);
        }
        let rival = {
            let pinned = self.pin(tid.block)?;
            let guard = pinned.read();
            match version_at(guard.page(), tid, None) {
                Some((_, offset)) => match visibility(tx, guard.page(), offset, mode) {
                    Verdict::Free | Verdict::SelfChanged => return Ok(true),
                    Verdict::Wait(xid) => Some(xid),
                    Verdict::Deleted => {
                        refuse_moved(guard.page(), offset)?;
                        None
                    }
                    Verdict::Updated(_) => None,
                },
                None => None,
            }
        };
        tx.release_to_wait();
        if let Some(rival) = rival {
            let mut queue = Queue { tx, tag: None };
            queue.join(LockTag::Tuple(self.rel, root))?;
            tx.manager().locks.wait_for_xid(tx.locks(), rival, LockWait::Block)?;
            queue.keep();
            let pinned = self.pin(tid.block)?;
            let guard = pinned.read();
            if let Some((_, offset)) = version_at(guard.page(), tid, None)
                && matches!(visibility(tx, guard.page(), offset, mode), Verdict::Deleted)
            {
                refuse_moved(guard.page(), offset)?;
            }
        } else {
            // A commit can be known here a moment before new snapshots see it; whoever publishes it
            // may need this worker.
            sched::check_interrupts()?;
            sched::yield_now();
        }
        Ok(false)
    }

    /// Deletes the version, as [`Heap::update`].
    pub fn delete(
        &self,
        tx: &Transaction,
        _snapshot: &Snapshot,
        tid: TupleId,
        root: TupleId,
        wait: RowWait,
    ) -> Result<WriteResult> {
        self.end_row(tx, tid, root, wait, 0)
    }

    /// The same for a row that is inserted into another partition: who waits for it fails with `40001`.
    pub fn move_away(
        &self,
        tx: &Transaction,
        tid: TupleId,
        root: TupleId,
        wait: RowWait,
    ) -> Result<WriteResult> {
        self.end_row(tx, tid, root, wait, MOVED)
    }

    fn end_row(
        &self,
        tx: &Transaction,
        tid: TupleId,
        root: TupleId,
        wait: RowWait,
        bits: u16,
    ) -> Result<WriteResult> {
        let mode = RowLockMode::Update;
        let change = Change { tx, xid: tx.xid()?, mode, data: &[], in_chain: false };
        let mut queue = Queue { tx, tag: None };
        let claim = self.claim(tx, tid, root, mode, wait, &mut queue, "delete")?;
        let claimed = match self.resolve_claim(claim, &mut queue, &change)? {
            Ok(claimed) => claimed,
            Err(result) => return Ok(result),
        };
        let tid = claimed.tid;
        tx.writes_row(self.rel, tid)?;
        let mut mtr = self.storage.mtr();
        let target = mtr.add(claimed.guard);
        self.end_version(&mut mtr, target, tid, &change, None, bits);
        mtr.commit();
        queue.keep();
        self.state.space.ended.fetch_add(1, Relaxed);
        Ok(WriteResult::Done { tid, in_chain: false })
    }

    /// Deletes those of these versions, all of one page, that nothing stands in the way of: under one latch, with
    /// one record of the log. Answers of each whether that is done; the others are left to [`Heap::delete`].
    ///
    /// # Errors
    /// `40001` of serializable transactions, I/O; nothing is done then.
    pub fn delete_in_page(&self, tx: &Transaction, tids: &[TupleId]) -> Result<Vec<bool>> {
        let mut done = vec![false; tids.len()];
        let Some(block) = tids.first().map(|tid| tid.block) else { return Ok(done) };
        let mode = RowLockMode::Update;
        let change = Change { tx, xid: tx.xid()?, mode, data: &[], in_chain: false };
        let locks = &tx.manager().locks;
        let guard = self.pin(block)?.write();
        let mut free = Vec::with_capacity(tids.len());
        for (n, tid) in tids.iter().enumerate() {
            if tid.block != block {
                return Err(base::Error::internal("versions of several pages"));
            }
            let Some((line, offset)) = version_at(guard.page(), *tid, None) else { continue };
            let at = TupleId { block, offset: line };
            if matches!(visibility(tx, guard.page(), offset, mode), Verdict::Free)
                && locks.row_sharers(self.rel, at, mode, tx.locks()).is_empty()
            {
                tx.writes_row(self.rel, at)?;
                free.push((n, at));
            }
        }
        if free.is_empty() {
            return Ok(done);
        }
        let mut mtr = self.storage.mtr();
        let target = mtr.add(guard);
        for (n, at) in free {
            // Once more, since the same version can be named twice.
            let Line::Normal(offset, _) = page::line(mtr.page(target), at.offset) else { continue };
            if matches!(visibility(tx, mtr.page(target), offset, mode), Verdict::Free) {
                self.end_version(&mut mtr, target, at, &change, None, 0);
                self.state.space.ended.fetch_add(1, Relaxed);
                done[n] = true;
            }
        }
        mtr.commit();
        Ok(done)
    }

    /// Locks the row.
    pub fn lock(
        &self,
        tx: &Transaction,
        _snapshot: &Snapshot,
        tid: TupleId,
        root: TupleId,
        mode: RowLockMode,
        wait: RowWait,
    ) -> Result<LockResult> {
        let xid = tx.xid()?;
        let mut queue = Queue { tx, tag: None };
        loop {
            let claimed = match self.claim(tx, tid, root, mode, wait, &mut queue, "update")? {
                Claim::Ours(claimed) => claimed,
                Claim::Gone | Claim::SelfChanged => return Ok(LockResult::Gone),
                Claim::WouldBlock => return Ok(LockResult::WouldBlock),
            };
            let newest = if claimed.moved { Some(newest_of(&claimed)?) } else { None };
            if mode >= RowLockMode::NoKeyUpdate {
                self.lock_version(tx, xid, claimed, mode);
            } else if let Some(rival) = self.share_version(tx, xid, claimed, mode)? {
                if wait == RowWait::Try {
                    return Ok(LockResult::WouldBlock);
                }
                queue.join(LockTag::Tuple(self.rel, root))?;
                tx.manager().locks.wait_for_xid(tx.locks(), rival, LockWait::Block)?;
                continue;
            }
            queue.keep();
            return Ok(match newest {
                Some(newest) => LockResult::Changed { newest: Box::new(newest) },
                None => LockResult::Locked,
            });
        }
    }

    /// Sorts out what needs no change: gone, own, or a newer version that is locked and handed back.
    fn resolve_claim(
        &self,
        claim: Claim,
        queue: &mut Queue<'_>,
        change: &Change<'_>,
    ) -> Result<Result<Claimed, WriteResult>> {
        let claimed = match claim {
            Claim::Ours(claimed) if !claimed.moved => return Ok(Ok(claimed)),
            Claim::Ours(claimed) => claimed,
            Claim::SelfChanged => return Ok(Err(WriteResult::SelfChanged)),
            Claim::Gone => return Ok(Err(WriteResult::Gone)),
            Claim::WouldBlock => return Ok(Err(WriteResult::Busy)),
        };
        let newest = newest_of(&claimed)?;
        self.lock_version(change.tx, change.xid, claimed, change.mode);
        queue.keep();
        Ok(Err(WriteResult::Changed { newest: Box::new(newest) }))
    }

    /// Gets hold of the newest version of the row that `tid` is a version of; see the module.
    /// `deleted`: what a deletion counts as when it makes the transaction fail.
    #[allow(clippy::too_many_arguments)]
    fn claim(
        &self,
        tx: &Transaction,
        tid: TupleId,
        root: TupleId,
        mode: RowLockMode,
        wait: RowWait,
        queue: &mut Queue<'_>,
        deleted: &str,
    ) -> Result<Claim> {
        let locks = &tx.manager().locks;
        let (mut at, mut chain, mut moved) = (tid, root, false);
        let mut expected_xmin = None;
        let mut starts = 0;
        loop {
            let guard = self.pin(at.block)?.write();
            let Some((line, offset)) = version_at(guard.page(), at, expected_xmin) else {
                if expected_xmin.take().is_none() {
                    return Ok(Claim::Gone);
                }
                // It went while the latch was not held.
                drop(guard);
                sched::check_interrupts()?;
                starts = count_start(starts, tid)?;
                (at, chain, moved) = (tid, root, false);
                continue;
            };
            at.offset = line;
            let rivals = match visibility(tx, guard.page(), offset, mode) {
                Verdict::SelfChanged => return Ok(Claim::SelfChanged),
                Verdict::Deleted => {
                    let moved = page::mask(guard.page(), offset) & MOVED != 0;
                    refuse_above_read_committed(tx, if moved { "update" } else { deleted })?;
                    refuse_moved(guard.page(), offset)?;
                    return Ok(Claim::Gone);
                }
                Verdict::Updated(next) => {
                    let mask = page::mask(guard.page(), offset);
                    // FOR KEY SHARE keeps the key, and so does an update that changes other columns: the
                    // newest version is locked, the snapshot's is what the statement returns.
                    if mode != RowLockMode::KeyShare || mask & KEYS != 0 {
                        refuse_above_read_committed(tx, "update")?;
                        moved = true;
                    }
                    if mask & NEXT_IN_CHAIN == 0 {
                        chain = next;
                    }
                    expected_xmin = Some(page::xmax(guard.page(), offset));
                    at = next;
                    continue;
                }
                Verdict::Wait(xid) => vec![xid],
                Verdict::Free => {
                    let sharers = locks.row_sharers(self.rel, at, mode, tx.locks());
                    if sharers.is_empty() {
                        return Ok(Claim::Ours(Claimed { guard, tid: at, root: chain, moved }));
                    }
                    sharers
                }
            };
            let holds_lock =
                locks.shares_row(self.rel, at, tx.locks()) || locks_row(tx, guard.page(), offset);
            drop(guard);
            if wait == RowWait::Try {
                return Ok(Claim::WouldBlock);
            }
            if !holds_lock {
                queue.join(LockTag::Tuple(self.rel, chain))?;
            }
            for xid in rivals {
                locks.wait_for_xid(tx.locks(), xid, LockWait::Block)?;
            }
        }
    }

    /// Puts the new version beside the old one; gives the claim back when there is no room.
    fn update_in_page(
        &self,
        claimed: Claimed,
        change: &Change<'_>,
    ) -> Result<Result<WriteResult, Claimed>> {
        let need = page::space_for(change.data.len());
        let Claimed { guard, tid, root, moved } = claimed;
        change.tx.writes_row(self.rel, tid)?;
        faults::reach(Fault::HeapUpdate)?;
        let mut mtr = self.storage.mtr();
        let target = mtr.add(guard);
        if page::room(mtr.page(target)) < need {
            self.make_room(&mut mtr, target, need, change.tx.manager());
        }
        if page::room(mtr.page(target)) < need {
            let (_, mut guards) = mtr.commit_keep();
            let guard = guards.pop().ok_or_else(|| base::Error::internal("a latch got lost"))?;
            return Ok(Err(Claimed { guard, tid, root, moved }));
        }
        let bits = if change.in_chain { IN_CHAIN } else { FOLLOWS };
        let head = page::new_header(change.xid, change.tx.command(), bits);
        let number = page::add_version(&mut mtr, target, &head, change.data);
        let new = TupleId { block: tid.block, offset: number };
        let next_bits = if change.in_chain { NEXT_IN_CHAIN } else { 0 };
        self.end_version(&mut mtr, target, tid, change, Some(new), next_bits);
        mtr.commit();
        Ok(Ok(WriteResult::Done { tid: new, in_chain: change.in_chain }))
    }

    /// Prunes a page for a new version: with the horizon at hand, and if that isn't enough with the
    /// newest one, since the way to another page costs index entries.
    fn make_room(&self, mtr: &mut Mtr<'_>, target: PageRef, need: usize, manager: &TxnManager) {
        if page::flags(mtr.page(target)) & PRUNABLE == 0 {
            return;
        }
        let block = mtr.id(target).block;
        let mut visibility = VisibilityHorizon::new(manager);
        if !self.state.space.prune_is_futile(block, visibility.bound().0) {
            prune::prune(mtr, target, &mut visibility, Scope::Visit);
        }
        if page::room(mtr.page(target)) >= need {
            return;
        }
        let mut visibility = VisibilityHorizon::now(manager);
        if !self.state.space.prune_is_futile(block, visibility.bound().0) {
            prune::prune(mtr, target, &mut visibility, Scope::Visit);
        }
        if page::room(mtr.page(target)) < need {
            self.state.space.note_futile_prune(block, visibility.bound().0);
        }
    }

    /// Puts the new version into another page. None: the old version changed hands meanwhile.
    fn update_to_other_page(
        &self,
        claimed: Claimed,
        change: &Change<'_>,
    ) -> Result<Option<WriteResult>> {
        let tid = claimed.tid;
        drop(claimed);
        let need = page::space_for(change.data.len());
        let mut taken = self.page_with_room(change.tx, need, Some(tid.block))?;
        let old = if taken.id().block < tid.block {
            self.pin(tid.block)?.write()
        } else {
            match self.pin(tid.block)?.try_write() {
                Ok(guard) => guard,
                Err(pinned) => {
                    let released = taken.unlatch();
                    let guard = pinned.write();
                    taken = released.write();
                    guard
                }
            }
        };
        if page::room(taken.page()) < need || !self.still_free(&old, tid, change) {
            return Ok(None);
        }
        // Again, since the latch was given up.
        change.tx.writes_row(self.rel, tid)?;
        let block = taken.id().block;
        let mut mtr = self.storage.mtr();
        let (from, to) = (mtr.add(old), mtr.add(taken));
        page::init_if_new(&mut mtr, to);
        self.state.visible.clear(block);
        let head = page::new_header(change.xid, change.tx.command(), FOLLOWS);
        let number = page::add_version(&mut mtr, to, &head, change.data);
        let new = TupleId { block, offset: number };
        self.end_version(&mut mtr, from, tid, change, Some(new), 0);
        mtr.commit();
        Ok(Some(WriteResult::Done { tid: new, in_chain: false }))
    }

    fn still_free(&self, guard: &WriteGuard, tid: TupleId, change: &Change<'_>) -> bool {
        let Line::Normal(offset, _) = page::line(guard.page(), tid.offset) else { return false };
        let locks = &change.tx.manager().locks;
        matches!(visibility(change.tx, guard.page(), offset, change.mode), Verdict::Free)
            && locks.row_sharers(self.rel, tid, change.mode, change.tx.locks()).is_empty()
    }

    /// Stamps the end of a version, and carries row locks over to the next one.
    fn end_version(
        &self,
        mtr: &mut Mtr<'_>,
        target: PageRef,
        tid: TupleId,
        change: &Change<'_>,
        next: Option<TupleId>,
        bits: u16,
    ) {
        let Line::Normal(offset, _) = page::line(mtr.page(target), tid.offset) else {
            unreachable!("a claimed version has a line pointer")
        };
        let locks = &change.tx.manager().locks;
        let old = page::header(mtr.page(target), offset);
        if old.mask & LOCK_ONLY != 0 && old.xmax != change.xid.0 && change.tx.is_mine(Xid(old.xmax))
        {
            let (owner, outer) = (change.tx.locks(), Xid(old.xmax));
            locks.share_row(owner, outer, self.rel, tid, strength(old.mask));
        }
        let keys = if change.mode == RowLockMode::Update { KEYS } else { 0 };
        let has_next = if next.is_some() { HAS_NEXT } else { 0 };
        let bits = keys | has_next | bits;
        let end = End { xmax: change.xid, cmax: change.tx.command(), next, bits };
        self.state.visible.clear(tid.block);
        page::put_end(mtr, target, offset, &end);
        page::put_flags(mtr, target, PRUNABLE, 0);
        if let Some(next) = next {
            locks.copy_row_sharers(self.rel, tid, next);
        }
    }

    /// Writes an exclusive row lock; nothing when we hold one as strong.
    fn lock_version(&self, tx: &Transaction, xid: Xid, claimed: Claimed, mode: RowLockMode) {
        let page = claimed.guard.page();
        let Line::Normal(offset, _) = page::line(page, claimed.tid.offset) else { return };
        let head = page::header(page, offset);
        let held =
            head.mask & (LOCK_ONLY | XMAX_ABORTED) == LOCK_ONLY && tx.is_mine(Xid(head.xmax));
        if held && strength(head.mask) >= mode {
            return;
        }
        // A stronger lock for an inner subtransaction stays the outer one's: it lives as long.
        let xmax = if held { Xid(head.xmax) } else { xid };
        let keys = if mode == RowLockMode::Update { KEYS } else { 0 };
        let end = End { xmax, cmax: tx.command(), next: None, bits: LOCK_ONLY | keys };
        let mut mtr = self.storage.mtr();
        let target = mtr.add(claimed.guard);
        page::put_end(&mut mtr, target, offset, &end);
        mtr.commit();
    }

    /// Notes a shared row lock, on this version and on those that a running update made of it.
    /// Returns the transaction that holds one of those in a way which excludes the lock.
    fn share_version(
        &self,
        tx: &Transaction,
        xid: Xid,
        claimed: Claimed,
        mode: RowLockMode,
    ) -> Result<Option<Xid>> {
        let manager = tx.manager();
        let mut guard = claimed.guard;
        let mut at = claimed.tid;
        let mut expected_xmin = None;
        let mut starts = 0;
        loop {
            let Some((line, offset)) = version_at(guard.page(), at, expected_xmin) else {
                if expected_xmin.take().is_none() {
                    return Ok(None);
                }
                drop(guard);
                sched::check_interrupts()?;
                starts = count_start(starts, claimed.tid)?;
                at = claimed.tid;
                guard = self.pin(at.block)?.write();
                continue;
            };
            at.offset = line;
            if let Verdict::Wait(rival) = visibility(tx, guard.page(), offset, mode) {
                return Ok(Some(rival));
            }
            manager.locks.share_row(tx.locks(), xid, self.rel, at, mode);
            let head = page::header(guard.page(), offset);
            if head.mask & HAS_NEXT == 0
                || head.mask & XMAX_ABORTED != 0
                || manager.status(Xid(head.xmax)) == XidStatus::Aborted
            {
                return Ok(None);
            }
            if head.next.block != at.block {
                drop(guard);
                guard = self.pin(head.next.block)?.write();
            }
            (at, expected_xmin) = (head.next, Some(head.xmax));
        }
    }
}

/// Counts how often a walk along a row's versions has begun anew. Each time pruning has been at the row,
/// so a walk that never ends is damage.
fn count_start(starts: u32, tid: TupleId) -> Result<u32> {
    if starts >= STARTS_MAX {
        return Err(err!(DATA_CORRUPTED, "the versions after {tid} of a row lead nowhere"));
    }
    Ok(starts + 1)
}

/// Whether the version's `xmax` is a row lock of this transaction.
fn locks_row(tx: &Transaction, page: &Page, offset: usize) -> bool {
    let mask = page::mask(page, offset);
    mask & (LOCK_ONLY | XMAX_ABORTED) == LOCK_ONLY && tx.is_mine(Xid(page::xmax(page, offset)))
}

/// The obstacle between `tx` and a change of strength `mode` to the version, apart from shared
/// locks in memory.
fn visibility(tx: &Transaction, page: &Page, offset: usize, mode: RowLockMode) -> Verdict {
    let mask = page::mask(page, offset);
    let xmax = Xid(page::xmax(page, offset));
    if !xmax.is_valid() || mask & XMAX_ABORTED != 0 {
        return Verdict::Free;
    }
    let lock_only = mask & LOCK_ONLY != 0;
    if mask & XMAX_COMMITTED == 0 {
        if tx.is_mine(xmax) {
            return if lock_only { Verdict::Free } else { Verdict::SelfChanged };
        }
        match tx.manager().status(xmax) {
            XidStatus::Aborted => return Verdict::Free,
            XidStatus::Running if mode.conflicts(strength(mask)) => return Verdict::Wait(xmax),
            XidStatus::Running => return Verdict::Free,
            XidStatus::Committed(csn) if !lock_only => tx.note_seen(csn),
            XidStatus::Committed(_) => {}
        }
    }
    if lock_only {
        return Verdict::Free;
    }
    if mask & HAS_NEXT == 0 {
        return Verdict::Deleted;
    }
    Verdict::Updated(page::header(page, offset).next)
}

/// The line and byte offset of the version at `tid`: of the one that `xmin` made, or of any, through a
/// redirect if the chain's beginning was pruned. None when there is no such version.
fn version_at(page: &Page, tid: TupleId, xmin: Option<u64>) -> Option<(u16, usize)> {
    let Some(xmin) = xmin else {
        let (line, offset, _) = page::first_of_chain(page, tid.offset)?;
        return Some((line, offset));
    };
    match page::line(page, tid.offset) {
        Line::Normal(offset, _) if page::xmin(page, offset) == xmin => Some((tid.offset, offset)),
        _ => None,
    }
}

fn newest_of(claimed: &Claimed) -> Result<HeapTuple> {
    let mut newest = copy_version(claimed.guard.page(), claimed.tid)
        .ok_or_else(|| base::Error::internal("a claimed version is gone"))?;
    newest.root = claimed.root;
    Ok(newest)
}

/// `40001` for a row that another transaction moved to another partition.
fn refuse_moved(page: &Page, offset: usize) -> Result<()> {
    if page::mask(page, offset) & MOVED == 0 {
        return Ok(());
    }
    Err(err!(
        T_R_SERIALIZATION_FAILURE,
        "tuple to be locked was already moved to another partition due to concurrent update"
    ))
}

fn refuse_above_read_committed(tx: &Transaction, what: &str) -> Result<()> {
    if tx.isolation().is_by_statement() {
        return Ok(());
    }
    Err(err!(T_R_SERIALIZATION_FAILURE, "could not serialize access due to concurrent {what}"))
}
