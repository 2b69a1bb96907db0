//! A session's transaction.
//!
//! # Savepoint levels
//!
//! Level 0 is the transaction, a savepoint opens the next one. A level gets an id of its own when it
//! first writes, its parents before it; so a child's id is above its parent's, and in the list of
//! subtransaction ids, in order of allocation, levels never fall. ROLLBACK TO cuts the list's tail off;
//! RELEASE relabels it.
//!
//! # Durability
//!
//! A commit is visible before it is durable. Whoever sees one that isn't durable yet notes its CSN;
//! results that rest on it leave the server once the log is durable up to there. A transaction that
//! wrote is covered by its own commit record, which comes later in the log than all that it saw.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use base::{Csn, Error, Lsn, Result, WaitEvent, Xid};
use sched::Mutex;

use crate::commit_log::XidState;
use crate::lock::LockOwner;
use crate::manager::{Core, TxnManager};
use crate::prepared::{self, PREPARED_PID, Prepared, PreparedName};
use crate::serial::Sxact;
use crate::snapshot::Snapshot;

/// Isolation level. READ UNCOMMITTED is READ COMMITTED, as in PostgreSQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Isolation {
    /// A snapshot for each statement.
    ReadCommitted,
    /// One snapshot; `40001` on a write conflict.
    RepeatableRead,
    /// One snapshot, and `40001` when what it and others did fits no serial order: see
    /// [`crate::serial`].
    Serializable,
    /// Is [`Isolation::ReadCommitted`], under the name that it was asked for by.
    ReadUncommitted,
}

impl Isolation {
    /// Whether each statement has a snapshot of its own.
    pub fn is_by_statement(self) -> bool {
        matches!(self, Isolation::ReadCommitted | Isolation::ReadUncommitted)
    }
}

/// Names a savepoint's level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SavepointLevel(pub u32);

/// A transaction from BEGIN to COMMIT or ROLLBACK, with its savepoints. `Send + Sync`: methods take
/// `&self`. Dropping it without [`Transaction::commit`] rolls it back.
pub struct Transaction {
    owner: Arc<LockOwner>,
    isolation: AtomicU8,
    read_only: AtomicBool,
    deferrable: AtomicBool,
    ended: AtomicBool,
    /// See [`Transaction::set_publishes`].
    publishes: AtomicBool,
    /// The top id; 0: none yet.
    top: AtomicU64,
    /// The current level's id; 0: none yet.
    current: AtomicU64,
    /// Whether there are subtransaction ids.
    has_subs: AtomicBool,
    command: AtomicU32,
    /// The transaction's snapshot above READ COMMITTED: CSN (0: not taken yet) and xmin.
    csn: AtomicU64,
    xmin: AtomicU64,
    pinned: AtomicU32,
    durability: AtomicU64,
    /// While it is serializable and being watched; and whether that has come to its end.
    pub(crate) serial: OnceLock<Arc<Sxact>>,
    pub(crate) serial_released: AtomicBool,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// The id of each open savepoint's level.
    levels: Vec<Option<Xid>>,
    /// Live subtransactions and their levels, both ascending.
    subs: Vec<(Xid, u32)>,
    /// Snapshots kept beyond their statement.
    pins: Vec<(u64, Csn)>,
    last_pin: u64,
    /// Numbers that the layer above has announced to those who follow the log.
    announced: Vec<u64>,
}

impl Transaction {
    #[inline]
    pub(crate) fn new(owner: Arc<LockOwner>, isolation: Isolation, read_only: bool) -> Transaction {
        Transaction {
            owner,
            isolation: AtomicU8::new(isolation as u8),
            read_only: AtomicBool::new(read_only),
            deferrable: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            publishes: AtomicBool::new(false),
            top: AtomicU64::new(0),
            current: AtomicU64::new(0),
            has_subs: AtomicBool::new(false),
            command: AtomicU32::new(0),
            csn: AtomicU64::new(0),
            xmin: AtomicU64::new(0),
            pinned: AtomicU32::new(0),
            durability: AtomicU64::new(0),
            serial: OnceLock::new(),
            serial_released: AtomicBool::new(false),
            inner: Mutex::new(WaitEvent::LWLockOther, Inner::default()),
        }
    }

    #[inline]
    fn core(&self) -> &Core {
        &self.owner.manager().core
    }

    /// The manager.
    pub fn manager(&self) -> &TxnManager {
        self.owner.manager()
    }

    /// The isolation level.
    pub fn isolation(&self) -> Isolation {
        match self.isolation.load(Ordering::Relaxed) {
            0 => Isolation::ReadCommitted,
            1 => Isolation::RepeatableRead,
            3 => Isolation::ReadUncommitted,
            _ => Isolation::Serializable,
        }
    }

    /// Changes isolation or read-only before the first snapshot (SET TRANSACTION).
    pub fn set_modes(&self, isolation: Isolation, read_only: bool) {
        self.isolation.store(isolation as u8, Ordering::Relaxed);
        self.read_only.store(read_only, Ordering::Relaxed);
    }

    /// Whether writes are refused (`25006` is the caller's to raise).
    pub fn read_only(&self) -> bool {
        self.read_only.load(Ordering::Relaxed)
    }

    /// DEFERRABLE or not, before the first snapshot. Whoever takes that first calls
    /// [`Transaction::await_safe_snapshot`] when it is READ ONLY and SERIALIZABLE as well.
    pub fn set_deferrable(&self, deferrable: bool) {
        self.deferrable.store(deferrable, Ordering::Relaxed);
    }

    /// Whether it is DEFERRABLE.
    pub fn deferrable(&self) -> bool {
        self.deferrable.load(Ordering::Relaxed)
    }

    /// Whether it has been committed or rolled back.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// The current (sub)transaction's id, assigned at the first call.
    ///
    /// # Errors
    /// `54000` when no ids are left; `XX000` after the end.
    #[inline]
    pub fn xid(&self) -> Result<Xid> {
        match self.current.load(Ordering::Acquire) {
            0 => self.assign(),
            xid => Ok(Xid(xid)),
        }
    }

    /// Gives the current level an id, its parents first.
    #[cold]
    fn assign(&self) -> Result<Xid> {
        let mut inner = self.inner.lock();
        if self.has_ended() {
            return Err(Error::internal("a transaction that has ended writes"));
        }
        let core = self.core();
        let mut xid = Xid(self.top.load(Ordering::Acquire));
        if !xid.is_valid() {
            xid = core.allocate_xid(self.owner.number())?;
            self.serial_assigned(xid);
            self.owner.slot().xid.store(xid.0, Ordering::Release);
            self.top.store(xid.0, Ordering::Release);
        }
        for level in 0..inner.levels.len() {
            xid = match inner.levels[level] {
                Some(xid) => xid,
                None => {
                    let xid = core.allocate_xid(self.owner.number())?;
                    self.serial_assigned(xid);
                    inner.levels[level] = Some(xid);
                    inner.subs.push((xid, level as u32 + 1));
                    self.has_subs.store(true, Ordering::Release);
                    xid
                }
            };
        }
        self.current.store(xid.0, Ordering::Release);
        Ok(xid)
    }

    /// The top transaction's id if it has one.
    pub fn top_xid(&self) -> Option<Xid> {
        Some(Xid(self.top.load(Ordering::Acquire))).filter(|xid| xid.is_valid())
    }

    /// Whether this id is the transaction or one of its live subtransactions.
    #[inline]
    pub fn is_mine(&self, xid: Xid) -> bool {
        let top = self.top.load(Ordering::Relaxed);
        if top == 0 || xid.0 < top {
            return false;
        }
        xid.0 == top || (self.has_subs.load(Ordering::Relaxed) && self.is_my_sub(xid))
    }

    fn is_my_sub(&self, xid: Xid) -> bool {
        self.inner.lock().subs.binary_search_by_key(&xid, |sub| sub.0).is_ok()
    }

    /// The running command's number, from 0; rows carry it.
    pub fn command(&self) -> u32 {
        self.command.load(Ordering::Relaxed)
    }

    /// Makes the changes of commands so far visible to the following ones.
    pub fn next_command(&self) {
        self.command.fetch_add(1, Ordering::Relaxed);
    }

    /// The snapshot for a new statement: a fresh one under READ COMMITTED, else the transaction's.
    /// It is registered (holds back pruning) until [`Transaction::end_statement`], or, above READ
    /// COMMITTED, until the end. A statement inside a statement pins its snapshot instead.
    #[inline]
    pub fn snapshot(&self) -> Snapshot {
        if self.isolation().is_by_statement() {
            return self.fresh_snapshot();
        }
        let csn = self.csn.load(Ordering::Acquire);
        if csn != 0 {
            let xmin = Xid(self.xmin.load(Ordering::Relaxed));
            return Snapshot { csn: Csn(csn), xmin, command: self.command() };
        }
        let snapshot = match self.isolation() {
            Isolation::Serializable => self.serializable_snapshot(),
            _ => self.register_snapshot(),
        };
        self.keep_snapshot(&snapshot);
        snapshot
    }

    /// The snapshot that all statements of the transaction share, once it is taken: above READ
    /// COMMITTED.
    #[inline]
    pub fn lasting_snapshot(&self) -> Option<Csn> {
        Some(Csn(self.csn.load(Ordering::Relaxed))).filter(|csn| csn.0 != 0)
    }

    /// Whether the transaction has its snapshot (above READ COMMITTED).
    pub(crate) fn has_snapshot(&self) -> bool {
        self.csn.load(Ordering::Acquire) != 0
    }

    pub(crate) fn register_snapshot(&self) -> Snapshot {
        self.fresh_snapshot()
    }

    /// As [`Transaction::register_snapshot`], for one that is watched: all versions from its snapshot on
    /// stay, so that its reads are settled with those who ended what it read.
    pub(crate) fn register_onwards(&self) -> Snapshot {
        let core = self.core();
        let xmin = core.oldest();
        let csn = core.horizon.register_onwards(self.owner.slot());
        Snapshot { csn, xmin, command: self.command() }
    }

    pub(crate) fn unregister_snapshot(&self) {
        self.owner.slot().release_snapshots();
    }

    pub(crate) fn keep_snapshot(&self, snapshot: &Snapshot) {
        self.xmin.store(snapshot.xmin.0, Ordering::Relaxed);
        self.csn.store(snapshot.csn.0, Ordering::Release);
        self.owner.slot().lasting.store(snapshot.csn.0, Ordering::Relaxed);
    }

    /// Takes a snapshot over that another session's transaction holds, as the one that all statements here
    /// share. The caller sees to it that the other one holds it until this returns.
    pub fn adopt_snapshot(&self, snapshot: &Snapshot) {
        let slot = self.owner.slot();
        let used = slot.snapshot.load(Ordering::Relaxed);
        if used != 0 {
            for csn in [Csn(used), snapshot.csn] {
                self.pin_snapshot(&Snapshot { csn, ..*snapshot });
            }
        }
        if used == 0 || used > snapshot.csn.0 {
            slot.snapshot.store(snapshot.csn.0, Ordering::SeqCst);
        }
        self.core().horizon.await_computations();
        self.keep_snapshot(snapshot);
    }

    /// Whether a savepoint is open.
    pub fn in_savepoint(&self) -> bool {
        !self.inner.lock().levels.is_empty()
    }

    #[inline]
    fn fresh_snapshot(&self) -> Snapshot {
        let core = self.core();
        // In this order: everything below `oldest` was published before.
        let xmin = core.oldest();
        let csn = core.horizon.register(self.owner.slot());
        Snapshot { csn, xmin, command: self.command() }
    }

    /// A fresh snapshot whatever the isolation level (constraint checks, statements inside a statement).
    /// It is registered until the statement ends.
    pub fn latest_snapshot(&self) -> Snapshot {
        self.fresh_snapshot()
    }

    /// Keeps `snapshot` registered beyond the statement (a portal's), until the returned guard's id
    /// is given to [`Transaction::unpin_snapshot`]. The snapshot is registered at the time of the call.
    pub fn pin_snapshot(&self, snapshot: &Snapshot) -> u64 {
        let mut inner = self.inner.lock();
        inner.last_pin += 1;
        let id = inner.last_pin;
        inner.pins.push((id, snapshot.csn));
        self.pinned.store(inner.pins.len() as u32, Ordering::Release);
        self.owner.slot().hold(snapshot.csn.0);
        id
    }

    /// See [`Transaction::pin_snapshot`]. Takes effect when the running statement ends.
    pub fn unpin_snapshot(&self, id: u64) {
        let mut inner = self.inner.lock();
        inner.pins.retain(|pin| pin.0 != id);
        self.pinned.store(inner.pins.len() as u32, Ordering::Release);
    }

    /// Unregisters the statement's snapshot.
    #[inline]
    pub fn end_statement(&self) {
        let slot = self.owner.slot();
        if self.csn.load(Ordering::Relaxed) != 0 {
            if slot.newer.load(Ordering::Relaxed) != 0 && !self.is_serializable() {
                slot.newer.store(0, Ordering::Release);
            }
            return;
        }
        if self.pinned.load(Ordering::Acquire) == 0 {
            return slot.release_snapshots();
        }
        let inner = self.inner.lock();
        let oldest = inner.pins.iter().map(|pin| pin.1.0).min().unwrap_or(0);
        slot.snapshot.store(oldest, Ordering::Release);
        slot.set_held(inner.pins.iter().map(|pin| pin.1.0));
        slot.newer.store(0, Ordering::Release);
    }

    fn is_serializable(&self) -> bool {
        self.isolation.load(Ordering::Relaxed) == Isolation::Serializable as u8
    }

    /// Before a READ COMMITTED statement waits that will begin anew with another snapshot: unregisters
    /// its snapshot. One that runs inside another statement keeps it, since the outer one's is
    /// registered along with it.
    pub fn release_to_wait(&self) {
        if self.owner.slot().newer.load(Ordering::Relaxed) == 0 {
            self.end_statement();
        }
    }

    /// Whether a row version made or ended by `xid` counts as (made/ended) for the snapshot. Notes
    /// what must be durable before results leave the server. Not for own ids: see
    /// [`Transaction::is_mine`].
    #[inline]
    pub fn sees(&self, xid: Xid, snapshot: &Snapshot) -> bool {
        match self.core().state(xid) {
            XidState::Committed(csn) if csn <= snapshot.csn => {
                self.note_seen(csn);
                true
            }
            _ => false,
        }
    }

    /// Notes that a result depends on this commit.
    #[inline]
    pub fn note_seen(&self, csn: Csn) {
        if csn.0 > self.durability.load(Ordering::Relaxed) && csn.0 > self.core().flushed().0 {
            self.durability.fetch_max(csn.0, Ordering::Relaxed);
        }
    }

    /// Results may leave the server once the log is durable up to here (`Lsn::ZERO`: at once).
    pub fn durability_needed(&self) -> Lsn {
        Lsn(self.durability.load(Ordering::Relaxed))
    }

    /// The owner of its heavyweight locks.
    pub fn locks(&self) -> &LockOwner {
        &self.owner
    }

    /// How many levels of savepoints are open.
    pub fn depth(&self) -> usize {
        self.inner.lock().levels.len()
    }

    /// Opens a savepoint's level.
    pub fn savepoint(&self) -> SavepointLevel {
        let mut inner = self.inner.lock();
        inner.levels.push(None);
        self.current.store(0, Ordering::Release);
        let level = inner.levels.len() as u32;
        self.manager().locks.enter_level(&self.owner, level);
        SavepointLevel(level)
    }

    /// Undoes everything since the level was opened, closes the levels inside it, and keeps it
    /// open (ROLLBACK TO). Locks taken since are released.
    pub fn rollback_to(&self, level: SavepointLevel) {
        let level = level.0;
        let aborted: Vec<Xid> = {
            let mut inner = self.inner.lock();
            if level == 0 || level as usize > inner.levels.len() {
                return;
            }
            inner.levels.truncate(level as usize - 1);
            inner.levels.push(None);
            self.current.store(0, Ordering::Release);
            let cut = inner.subs.partition_point(|sub| sub.1 < level);
            let aborted = inner.subs.drain(cut..).map(|sub| sub.0).collect();
            self.has_subs.store(cut > 0, Ordering::Release);
            aborted
        };
        if !aborted.is_empty() {
            self.core().abort(&aborted);
        }
        self.manager().locks.rollback_to(&self.owner, level, &aborted);
    }

    /// Merges the level into the one around it (RELEASE).
    pub fn release(&self, level: SavepointLevel) {
        let level = level.0;
        let mut inner = self.inner.lock();
        if level == 0 || level as usize > inner.levels.len() {
            return;
        }
        inner.levels.truncate(level as usize - 1);
        let around = match inner.levels.last() {
            Some(xid) => xid.unwrap_or_default(),
            None => Xid(self.top.load(Ordering::Acquire)),
        };
        self.current.store(around.0, Ordering::Release);
        for sub in inner.subs.iter_mut().rev().take_while(|sub| sub.1 >= level) {
            sub.1 = level - 1;
        }
        self.manager().locks.release_level(&self.owner, level);
    }

    /// Says that this transaction's commit publishes something in `before_publish`: then no commit that
    /// follows it in the log becomes visible before it. Implied by a payload.
    pub fn set_publishes(&self) {
        self.publishes.store(true, Ordering::Relaxed);
    }

    /// Commits. `payload` (catalog changes, files to drop) goes into the record for the upper
    /// participant. `before_publish` runs when the order in the log is fixed and before any other
    /// session can see the commit (the catalog's new version is published there); it does not run when
    /// nothing was written and the payload is empty. Returns the position that must be durable before
    /// the client is told; the caller waits with `wal.flush` (or not, with `synchronous_commit =
    /// off`). Locks are released before the flush.
    ///
    /// # Errors
    /// `40001` when that would break serializability, `54000` when no ids are left; then it is still
    /// to be rolled back. `XX000` when it has ended already.
    pub fn commit(&self, payload: &[u8], before_publish: impl FnOnce(Csn)) -> Result<Lsn> {
        if !payload.is_empty() && self.top.load(Ordering::Acquire) == 0 {
            self.xid()?;
        }
        self.prepare_commit()?;
        if self.ended.swap(true, Ordering::AcqRel) {
            return Err(Error::internal("a transaction commits that has ended"));
        }
        let Some(top) = self.top_xid() else {
            self.finish(true);
            return Ok(self.durability_needed());
        };
        let (core, owner) = (self.core(), self.owner.number());
        let publishes = !payload.is_empty() || self.publishes.load(Ordering::Relaxed);
        let csn = if self.has_subs.load(Ordering::Acquire) {
            let xids = self.all_xids(top);
            core.commit(owner, &xids, payload, publishes, before_publish)
        } else {
            core.commit(owner, &[top], payload, publishes, before_publish)
        };
        self.finish(true);
        Ok(Lsn(csn.0.max(self.durability_needed().0)))
    }

    /// PREPARE TRANSACTION: from now on the transaction is nobody's, until [`Transaction::commit_prepared`] or
    /// [`Transaction::rollback_prepared`]. It keeps its lock owner; its session takes a new one
    /// ([`crate::LockManager::move_session_locks`]). Returns the position that must be durable before the client is told.
    ///
    /// # Errors
    /// As [`Transaction::commit`], and it is then still to be rolled back.
    pub fn prepare(&self, name: PreparedName, upper: Vec<u8>) -> Result<Lsn> {
        let top = match self.top_xid() {
            Some(top) => top,
            None => {
                // Savepoints get no ids: nothing was written in them.
                self.inner.lock().levels.clear();
                self.xid()?
            }
        };
        self.prepare_commit()?;
        let reads = self.serial_reads();
        let (locks, rows) = self.manager().locks.kept_by(&self.owner);
        let locks = prepared::kept(locks.into_iter());
        let prepared = Prepared { name, xids: self.all_xids(top), upper, locks, rows, reads };
        let lsn = self.core().prepare(prepared);
        let slot = self.owner.slot();
        slot.pid.store(PREPARED_PID, Ordering::Release);
        slot.task.store(0, Ordering::Relaxed);
        if self.serial_prepared() {
            slot.set_held(std::iter::empty());
        } else {
            slot.release_snapshots();
        }
        Ok(Lsn(lsn.0.max(self.durability_needed().0)))
    }

    /// A transaction that was prepared before the server started, with its locks.
    pub(crate) fn revived(owner: Arc<LockOwner>, prepared: &Prepared) -> Transaction {
        let isolation = match prepared.reads {
            Some(_) => Isolation::Serializable,
            None => Isolation::ReadCommitted,
        };
        owner.set_database(prepared.name.database);
        let tx = Transaction::new(owner, isolation, false);
        let (core, number) = (tx.core(), tx.owner.number());
        for &xid in &prepared.xids {
            core.commits.revive(xid, number);
        }
        tx.top.store(prepared.top().0, Ordering::Release);
        tx.inner.lock().subs.extend(prepared.xids[1..].iter().map(|xid| (*xid, 0)));
        tx.has_subs.store(prepared.xids.len() > 1, Ordering::Release);
        // All that it did is seen.
        tx.command.store(u32::MAX >> 1, Ordering::Relaxed);
        tx.owner.slot().xid.store(prepared.top().0, Ordering::Release);
        tx.manager().locks.take_again(&tx.owner, &prepared.locks, &prepared.rows);
        if let Some(reads) = &prepared.reads {
            tx.serial_revived(&prepared.xids, reads);
        }
        tx
    }

    /// COMMIT PREPARED, as [`Transaction::commit`].
    ///
    /// # Errors
    /// `XX000` when it has ended already.
    pub fn commit_prepared(
        &self,
        publishes: bool,
        before_publish: impl FnOnce(Csn),
    ) -> Result<Lsn> {
        let xids = self.end_prepared()?;
        let number = self.owner.number();
        let csn = self.core().commit_prepared(number, &xids, publishes, before_publish);
        self.finish(true);
        Ok(Lsn(csn.0))
    }

    /// ROLLBACK PREPARED. Returns the position that must be durable before the client is told.
    ///
    /// # Errors
    /// `XX000` when it has ended already.
    pub fn rollback_prepared(&self) -> Result<Lsn> {
        let xids = self.end_prepared()?;
        let lsn = self.core().rollback_prepared(&xids);
        self.finish(false);
        Ok(lsn)
    }

    fn end_prepared(&self) -> Result<Vec<Xid>> {
        match self.top_xid() {
            Some(top) if !self.ended.swap(true, Ordering::AcqRel) => Ok(self.all_xids(top)),
            _ => Err(Error::internal("a prepared transaction ends that is none")),
        }
    }

    /// The top id, then those of live subtransactions.
    fn all_xids(&self, top: Xid) -> Vec<Xid> {
        let inner = self.inner.lock();
        [top].into_iter().chain(inner.subs.iter().map(|sub| sub.0)).collect()
    }

    /// Notes that the log tells those who follow it of something with this number; false: it has been noted
    /// before in this transaction.
    pub fn announce(&self, number: u64) -> bool {
        let mut inner = self.inner.lock();
        if inner.announced.contains(&number) {
            return false;
        }
        inner.announced.push(number);
        true
    }

    /// Whether the log tells those who follow it of anything in this transaction.
    pub fn has_announced(&self) -> bool {
        !self.inner.lock().announced.is_empty()
    }

    /// Begins the next transaction in the place of this one, which has ended: for a procedure that
    /// commits, around which everything holds this one.
    pub fn restart(&self, isolation: Isolation, read_only: bool, deferrable: bool) {
        {
            let mut inner = self.inner.lock();
            let last_pin = inner.last_pin;
            *inner = Inner { last_pin, ..Inner::default() };
        }
        for counter in [&self.top, &self.current, &self.csn, &self.xmin] {
            counter.store(0, Ordering::Release);
        }
        self.has_subs.store(false, Ordering::Release);
        self.publishes.store(false, Ordering::Relaxed);
        self.command.store(0, Ordering::Relaxed);
        self.pinned.store(0, Ordering::Release);
        self.set_modes(isolation, read_only);
        self.set_deferrable(deferrable);
        self.ended.store(false, Ordering::Release);
    }

    /// Rolls back. Never waits.
    pub fn abort(&self) {
        if self.ended.swap(true, Ordering::AcqRel) {
            return;
        }
        if let Some(top) = self.top_xid() {
            self.core().abort(&self.all_xids(top));
        }
        self.finish(false);
    }

    /// Gives back what others can see of the transaction, after its outcome was published.
    fn finish(&self, committed: bool) {
        self.serial_ended(committed);
        let slot = self.owner.slot();
        slot.xid.store(0, Ordering::Release);
        self.manager().locks.release_transaction(&self.owner);
        slot.release_snapshots();
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.abort();
    }
}
