//! The server's one transaction manager.
//!
//! # The order of commits
//!
//! A commit's CSN is its record's end position in the log. The steps:
//!
//! 1. The transaction and its subtransactions are marked `committing`.
//! 2. The record's place in the log is reserved; that fixes the CSN. The record is written.
//! 3. `before_publish` runs, if the upper layers have something to publish.
//! 4. Their words in the commit log become the CSN.
//! 5. `last_csn` is raised to the CSN. From now on new snapshots see the commit.
//!
//! Commits reach step 5 in any order. Say A (CSN 100) and B (200) commit, B is done first, and a
//! snapshot takes 200. It must see A, and always see A. It does: A was marked before its place was
//! reserved, A's place was reserved before B's, B's before 200 was published. So whoever holds a
//! snapshot of 200 finds A at least `committing`, and then waits for the outcome, which costs as long
//! as it takes to copy a record. Conversely, a transaction found *running* reserves its place later
//! and gets a CSN above every snapshot that exists; so it stays invisible for them all.
//!
//! Commits that publish something in step 3 (catalog changes) go one at a time, and a commit that
//! follows one in the log is not published before it: a session that sees the later one sees the new
//! catalog too.
//!
//! # The oldest running transaction
//!
//! `oldest` is found lazily: who ends a transaction moves it over all ids that have ended, as far as
//! their commits are already published in `last_csn`. So whatever is below `oldest` has ended, and if
//! it committed, then every later snapshot sees it. No list of sessions is consulted.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::sync::{Arc, OnceLock};

use base::faults::{self, Fault};
use base::{Csn, Lsn, Result, WaitEvent, Xid, err};
use crossbeam_utils::CachePadded;
use sched::{Mutex, TaskRef};
use storage::{Participant, Storage};

use crate::commit_log::{CHUNK, CommitLog, XID_LIMIT, XidState, XidStatus};
use crate::horizon::{Horizon, LiveSnapshots};
use crate::lock::{LockManager, LockOwner};
use crate::log::{self, Log};
use crate::prepared::{PREPARED_PID, Prepared, Table};
use crate::recovery::Recovery;
use crate::registry::Registry;
use crate::serial::Serial;
use crate::transaction::{Isolation, Transaction};
use crate::waiters::XidWaiters;

/// Transaction ids are logged in blocks of this many before any of them is handed out. A crash loses
/// what is left of the block.
const XID_BLOCK: u64 = 4096;
/// The same for oids.
const OID_BLOCK: u32 = 128;
/// How many steps `oldest` takes at the end of a transaction: more than one id a transaction, so that
/// it catches up after one that ran for long.
const OLDEST_STEPS: u64 = 64;
/// How often a reader looks at a committing transaction before it parks.
const COMMITTING_SPINS: u32 = 100;

/// The state that transactions, snapshots and locks share.
pub(crate) struct Core {
    pub(crate) commits: CommitLog,
    pub(crate) registry: Registry,
    pub(crate) horizon: Horizon,
    pub(crate) waiters: XidWaiters,
    pub(crate) next_xid: CachePadded<AtomicU64>,
    /// Ids below this are logged and have their words in the commit log.
    pub(crate) xid_limit: CachePadded<AtomicU64>,
    /// The bound in the record on its way, or in the last one.
    pub(crate) xid_announced: AtomicU64,
    xid_block: Mutex<()>,
    pub(crate) oldest: CachePadded<AtomicU64>,
    pub(crate) oids: Mutex<Oids>,
    /// As `xid_announced`.
    pub(crate) oid_announced: AtomicU32,
    /// 0, or the CSN of the publishing commit that is on its way; 1 until that is known.
    special: CachePadded<AtomicU64>,
    special_turn: Mutex<()>,
    /// Commits up to here may have lost their CSN in the commit log.
    reduced: AtomicU64,
    /// See [`crate::standby`].
    pub(crate) standby: crate::standby::State,
    /// See [`crate::prepared`].
    pub(crate) prepared: Mutex<Table>,
    log: OnceLock<Log>,
}

pub(crate) struct Oids {
    pub(crate) next: u32,
    pub(crate) limit: u32,
}

impl Core {
    fn new() -> Core {
        Core {
            commits: CommitLog::new(),
            registry: Registry::new(),
            horizon: Horizon::new(),
            waiters: XidWaiters::new(),
            next_xid: CachePadded::new(AtomicU64::new(Xid::FIRST.0)),
            xid_limit: CachePadded::new(AtomicU64::new(Xid::FIRST.0)),
            xid_announced: AtomicU64::new(Xid::FIRST.0),
            xid_block: Mutex::new(WaitEvent::LWLockCommitLog, ()),
            oldest: CachePadded::new(AtomicU64::new(Xid::FIRST.0)),
            oids: Mutex::new(
                WaitEvent::LWLockOther,
                Oids { next: base::Oid::FIRST_USER.0, limit: base::Oid::FIRST_USER.0 },
            ),
            oid_announced: AtomicU32::new(base::Oid::FIRST_USER.0),
            special: CachePadded::new(AtomicU64::new(0)),
            special_turn: Mutex::new(WaitEvent::IPCCatalogPublish, ()),
            reduced: AtomicU64::new(0),
            standby: crate::standby::State::default(),
            prepared: Mutex::new(WaitEvent::LWLockTwoPhaseState, Table::default()),
            log: OnceLock::new(),
        }
    }

    /// The log; transactions begin after it was attached.
    #[inline]
    pub(crate) fn log(&self) -> &Log {
        self.log.get().expect("attach() comes before the first transaction")
    }

    /// The log, if it is there already.
    pub(crate) fn attached_log(&self) -> Option<&Log> {
        self.log.get()
    }

    /// Everything up to here is durable.
    #[inline]
    pub(crate) fn flushed(&self) -> Lsn {
        self.log.get().map_or(Lsn(u64::MAX), Log::flushed)
    }

    pub(crate) fn next_xid(&self) -> Xid {
        Xid(self.next_xid.load(Ordering::Acquire))
    }

    pub(crate) fn oldest(&self) -> Xid {
        Xid(self.oldest.load(Ordering::SeqCst))
    }

    /// Hands out a transaction id.
    pub(crate) fn allocate_xid(&self, owner: u32) -> Result<Xid> {
        if self.standby.follows() {
            return Err(err!(
                READ_ONLY_SQL_TRANSACTION,
                "cannot assign TransactionIds during recovery"
            ));
        }
        let xid = self.next_xid.fetch_add(1, Ordering::SeqCst);
        if xid >= self.xid_limit.load(Ordering::Acquire) {
            self.raise_xid_limit(xid)?;
        }
        self.commits.set(Xid(xid), XidState::Running(owner));
        Ok(Xid(xid))
    }

    #[cold]
    fn raise_xid_limit(&self, xid: u64) -> Result<()> {
        if xid >= XID_LIMIT - 2 * XID_BLOCK {
            return Err(err!(PROGRAM_LIMIT_EXCEEDED, "no transaction ids are left"));
        }
        let turn = self.xid_block.lock();
        while self.xid_limit.load(Ordering::Acquire) <= xid {
            let limit = self.xid_limit.load(Ordering::Acquire) + XID_BLOCK;
            self.commits.extend_to(limit);
            // A checkpoint reads this: it must not miss a record that precedes its redo position.
            self.xid_announced.store(limit, Ordering::SeqCst);
            // Page changes that carry the ids come later in the log; so no flush is needed.
            self.log().append(log::XIDS, &limit.to_le_bytes(), |_| ());
            self.xid_limit.store(limit, Ordering::Release);
        }
        drop(turn);
        self.reduce_commit_log();
        Ok(())
    }

    /// Reduces chunks of the commit log in which nothing can change and all is durable.
    pub(crate) fn reduce_commit_log(&self) {
        let durable = Csn(self.flushed().0);
        let seen_by_all = self.horizon.compute(&self.registry).min(durable);
        self.reduced.fetch_max(seen_by_all.0, Ordering::SeqCst);
        self.commits.reduce(seen_by_all);
    }

    /// Hands out an oid.
    fn allocate_oid(&self) -> Result<u32> {
        if self.standby.follows() {
            return Err(err!(
                READ_ONLY_SQL_TRANSACTION,
                "cannot assign object ids during recovery"
            ));
        }
        let mut oids = self.oids.lock();
        if oids.next >= oids.limit {
            let limit = oids.limit + OID_BLOCK;
            if limit >= base::ids::TEMPORARY {
                return Err(err!(PROGRAM_LIMIT_EXCEEDED, "no object ids are left"));
            }
            self.oid_announced.store(limit, Ordering::SeqCst);
            // Files are made under such a number before anything that names them is durable. So that
            // it is not given out again after a crash, the record must be durable first.
            let end = self.log().append(log::OIDS, &limit.to_le_bytes(), |_| ());
            self.log().flush(end)?;
            oids.limit = limit;
        }
        oids.next += 1;
        Ok(oids.next - 1)
    }

    /// For a checkpoint: ids at and above these have never been handed out.
    pub(crate) fn announced(&self) -> (u64, u32) {
        (self.xid_announced.load(Ordering::SeqCst), self.oid_announced.load(Ordering::SeqCst))
    }

    /// The end of recovery: ids start here, and everything up to `lsn` is visible.
    pub(crate) fn start(&self, next_xid: u64, next_oid: u32, lsn: Lsn) {
        self.commits.restored(Xid(next_xid));
        for xid in [&self.next_xid, &self.xid_limit, &self.oldest] {
            xid.store(next_xid, Ordering::SeqCst);
        }
        self.xid_announced.store(next_xid, Ordering::SeqCst);
        *self.oids.lock() = Oids { next: next_oid, limit: next_oid };
        self.oid_announced.store(next_oid, Ordering::SeqCst);
        self.reduced.store(lsn.0, Ordering::SeqCst);
        self.horizon.publish(Csn(lsn.0));
    }

    /// A transaction's state; one that is committing is waited for.
    #[inline]
    pub(crate) fn state(&self, xid: Xid) -> XidState {
        match self.commits.get(xid) {
            XidState::Committing(_) => self.resolve(xid),
            state => state,
        }
    }

    #[cold]
    fn resolve(&self, xid: Xid) -> XidState {
        let outcome =
            || Some(self.commits.get(xid)).filter(|s| !matches!(s, XidState::Committing(_)));
        for _ in 0..COMMITTING_SPINS {
            if let Some(state) = outcome() {
                return state;
            }
            std::hint::spin_loop();
        }
        let task = sched::current();
        self.waiters.add(xid, &task);
        let state = loop {
            if let Some(state) = outcome() {
                break state;
            }
            let object = sched::WaitObject::Transaction(xid);
            let waiting = sched::Waiting::on(WaitEvent::IPCCommitResolve, object);
            sched::park_uninterruptible(waiting, None);
        };
        self.waiters.remove(xid, &task);
        state
    }

    /// Commits these transactions (the top one first). See the module's head.
    pub(crate) fn commit(
        &self,
        owner: u32,
        xids: &[Xid],
        payload: &[u8],
        publishes: bool,
        before_publish: impl FnOnce(Csn),
    ) -> Csn {
        let payload = if publishes && payload.is_empty() { log::PUBLISHES } else { payload };
        if !publishes {
            let before_publish = |csn| {
                self.await_special_before(csn);
                before_publish(csn);
            };
            return self.commit_in_order(owner, xids, payload, before_publish, |_| ());
        }
        let _turn = self.special_turn.lock();
        self.special.store(1, Ordering::SeqCst);
        let note = |csn: Csn| self.special.store(csn.0, Ordering::SeqCst);
        let csn = self.commit_in_order(owner, xids, payload, before_publish, note);
        self.special.store(0, Ordering::SeqCst);
        csn
    }

    fn commit_in_order(
        &self,
        owner: u32,
        xids: &[Xid],
        payload: &[u8],
        before_publish: impl FnOnce(Csn),
        on_reserved: impl FnOnce(Csn),
    ) -> Csn {
        let section = CriticalSection;
        for &xid in xids {
            self.commits.set(xid, XidState::Committing(owner));
        }
        // A committer that reserves a later place, and a reader of what it publishes, see the marks.
        fence(Ordering::SeqCst);
        faults::reach_critical(Fault::Commit);
        let reserved = |end: Lsn| on_reserved(Csn(end.0));
        let end = match (xids, payload) {
            ([top], []) => self.log().append(log::COMMIT, &top.0.to_le_bytes(), reserved),
            _ => {
                let record = log::Commit::encode(xids[0], &xids[1..], payload);
                self.log().append(log::COMMIT_MORE, &record, reserved)
            }
        };
        fence(Ordering::SeqCst);
        faults::reach_critical(Fault::CommitLogged);
        let csn = Csn(end.0);
        before_publish(csn);
        for &xid in xids.iter().rev() {
            self.commits.set(xid, XidState::Committed(csn));
        }
        self.horizon.publish(csn);
        std::mem::forget(section);
        self.ended(xids);
        csn
    }

    /// Waits while a publishing commit that precedes this one in the log is not visible.
    #[inline]
    fn await_special_before(&self, csn: Csn) {
        let mut tries = 0u32;
        loop {
            let special = self.special.load(Ordering::SeqCst);
            if special == 0 || special > csn.0 {
                return;
            }
            tries += 1;
            if tries < COMMITTING_SPINS {
                std::hint::spin_loop();
            } else {
                let soon = std::time::Instant::now() + std::time::Duration::from_micros(200);
                sched::park_uninterruptible(WaitEvent::IPCCatalogPublish, Some(soon));
            }
        }
    }

    /// Whether a prepared transaction has this id.
    pub(crate) fn is_prepared(&self, xid: Xid) -> bool {
        self.prepared.lock().all.values().any(|prepared| prepared.xids.contains(&xid))
    }

    /// Marks transactions as aborted (children before parents).
    pub(crate) fn abort(&self, xids: &[Xid]) {
        let section = CriticalSection;
        faults::reach_critical(Fault::Rollback);
        for &xid in xids.iter().rev() {
            self.commits.set(xid, XidState::Aborted);
        }
        std::mem::forget(section);
        self.ended(xids);
    }

    /// Logs that a transaction is prepared, and lists it; the record's end.
    pub(crate) fn prepare(&self, prepared: Prepared) -> Lsn {
        let record = prepared.encode();
        let mut table = self.prepared.lock();
        let section = CriticalSection;
        let end = self.log().append(log::PREPARED, &record, |_| ());
        table.all.insert(prepared.top(), Arc::new(prepared));
        std::mem::forget(section);
        end
    }

    /// Commits a prepared transaction.
    pub(crate) fn commit_prepared(
        &self,
        owner: u32,
        xids: &[Xid],
        publishes: bool,
        before_publish: impl FnOnce(Csn),
    ) -> Csn {
        let mut table = self.prepared.lock();
        let csn = self.commit(owner, xids, &[], publishes, before_publish);
        table.all.remove(&xids[0]);
        table.ended = table.ended.max(Lsn(csn.0));
        csn
    }

    /// Rolls a prepared transaction back; the end of the record that says so.
    pub(crate) fn rollback_prepared(&self, xids: &[Xid]) -> Lsn {
        let end = {
            let mut table = self.prepared.lock();
            let end = self.log().append(log::ROLLED_BACK, &xids[0].0.to_le_bytes(), |_| ());
            table.all.remove(&xids[0]);
            table.ended = table.ended.max(end);
            end
        };
        self.abort(xids);
        end
    }

    fn ended(&self, xids: &[Xid]) {
        self.waiters.wake(xids.iter().copied());
        self.advance_oldest(OLDEST_STEPS);
    }

    /// Moves `oldest` over at most so many transactions that have ended, and over whole chunks of the
    /// commit log that were reduced. Whether it got anywhere.
    pub(crate) fn advance_oldest(&self, steps: u64) -> bool {
        let from = self.oldest.load(Ordering::SeqCst);
        let published = self.horizon.last_csn();
        let end = self.xid_limit.load(Ordering::Acquire);
        let passable = |xid: u64| match self.commits.get(Xid(xid)) {
            XidState::Aborted => true,
            XidState::Committed(csn) => csn <= published,
            _ => false,
        };
        let mut to = from;
        for _ in 0..steps {
            if (to == from || to.is_multiple_of(CHUNK)) && self.commits.is_reduced(to / CHUNK) {
                to = (to / CHUNK + 1) * CHUNK;
            } else if to < end && passable(to) {
                to += 1;
            } else {
                break;
            }
        }
        to > from && self.oldest.fetch_max(to, Ordering::SeqCst) < to
    }
}

/// While it lives a panic would leave transactions neither running nor ended, for ever. So it is
/// forgotten in the end, and dropped only by unwinding.
struct CriticalSection;

impl Drop for CriticalSection {
    fn drop(&mut self) {
        eprintln!("PANIC:  a transaction's end failed half-way; the server stops for recovery");
        std::process::abort();
    }
}

/// The snapshots of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionSnapshots {
    /// Its process id.
    pub pid: i32,
    /// The oldest.
    pub oldest: Csn,
    /// The one that all statements of its transaction share.
    pub lasting: Option<Csn>,
    /// Those that cursors and exports keep, ascending.
    pub held: Vec<Csn>,
    /// Any number from here on.
    pub onwards: Option<Csn>,
}

/// Hands out ids and snapshots, keeps the commit log, and is storage's [`Participant`].
pub struct TxnManager {
    /// Heavyweight locks.
    pub locks: LockManager,
    /// Serializable transactions.
    pub serial: Serial,
    pub(crate) core: Arc<Core>,
    pub(crate) dir: PathBuf,
    /// Prepared transactions of before the start that nobody has taken yet.
    restored: Mutex<Vec<(Arc<Prepared>, Transaction)>>,
}

impl TxnManager {
    /// Before storage is opened: pass [`TxnManager::participant`] to [`Storage::open`], then call
    /// [`TxnManager::attach`]. `dir` is the data directory (the commit log has its own files there).
    pub fn new(dir: &Path) -> Arc<TxnManager> {
        let core = Arc::new(Core::new());
        let locks = LockManager::new(core.clone());
        let restored = Mutex::new(WaitEvent::LWLockTwoPhaseState, Vec::new());
        Arc::new(TxnManager { locks, serial: Serial::new(), core, dir: dir.to_owned(), restored })
    }

    /// The part of recovery that belongs to transactions. `upper` receives the codes >= 32 (the layers above; may be None); its
    /// part of each commit comes to it under code 32. The manager must outlive the storage's last
    /// checkpoint.
    pub fn participant(
        self: &Arc<Self>,
        upper: Option<Arc<dyn Participant>>,
    ) -> Arc<dyn Participant> {
        Arc::new(Recovery::new(self, upper))
    }

    /// Recovery is done. Transactions that were prepared before the start are so again, with their locks:
    /// [`TxnManager::take_restored`].
    pub fn attach(self: &Arc<Self>, storage: &Arc<Storage>) {
        self.attach_log(Log::Storage(storage.clone()), storage.wal.insert_position());
        self.revive_prepared();
    }

    pub(crate) fn revive_prepared(self: &Arc<Self>) {
        let all: Vec<Arc<Prepared>> = self.core.prepared.lock().all.values().cloned().collect();
        let Some(lowest) = self.core.prepared.lock().lowest() else { return };
        self.core.oldest.fetch_min(lowest.0, Ordering::SeqCst);
        for prepared in all {
            let owner = self.new_owner(&sched::current(), PREPARED_PID);
            let transaction = Transaction::revived(owner, &prepared);
            self.restored.lock().push((prepared, transaction));
        }
    }

    /// The transactions that were prepared before the server started, once.
    pub fn take_restored(&self) -> Vec<(Arc<Prepared>, Transaction)> {
        std::mem::take(&mut *self.restored.lock())
    }

    /// How many prepared transactions a database has.
    pub fn prepared_in(&self, database: base::Oid) -> usize {
        let table = self.core.prepared.lock();
        table.all.values().filter(|prepared| prepared.name.database == database).count()
    }

    pub(crate) fn attach_log(&self, log: Log, position: Lsn) {
        self.core.horizon.publish(Csn(position.0.max(1)));
        if self.core.log.set(log).is_err() {
            panic!("attach() is called once");
        }
    }

    /// A session's lock owner; lives as long as the session. Dropping it releases what is left.
    /// `pid` is the process id under which the session is known to clients; not 0.
    pub fn new_owner(self: &Arc<Self>, task: &TaskRef, pid: i32) -> Arc<LockOwner> {
        Arc::new(LockOwner::new(self, task, pid))
    }

    /// As [`TxnManager::new_owner`], for a session that does something for another one while that
    /// waits. If it comes to wait for the other one, that is a deadlock at once.
    pub fn new_inner_owner(self: &Arc<Self>, outer: &LockOwner) -> Arc<LockOwner> {
        Arc::new(LockOwner::new_inner(outer))
    }

    /// Starts a transaction for a session; costs next to nothing until it writes. A session runs one
    /// at a time.
    #[inline]
    pub fn begin(
        self: &Arc<Self>,
        owner: &Arc<LockOwner>,
        isolation: Isolation,
        read_only: bool,
    ) -> Transaction {
        Transaction::new(owner.clone(), isolation, read_only)
    }

    /// The fate of a transaction. Resolves `committing` first.
    pub fn status(&self, xid: Xid) -> XidStatus {
        match self.core.state(xid) {
            XidState::Committed(csn) => XidStatus::Committed(csn),
            XidState::Aborted => XidStatus::Aborted,
            // Only a damaged page can name it. It must not be waited for.
            XidState::Unassigned if xid >= self.core.next_xid() => XidStatus::Aborted,
            XidState::Running(_) | XidState::Committing(_) | XidState::Unassigned => {
                XidStatus::Running
            }
        }
    }

    /// Whether a commit with this CSN is durable (so a hint may say so).
    #[inline]
    pub fn is_durable(&self, csn: Csn) -> bool {
        csn.0 <= self.core.flushed().0
    }

    /// Row versions deleted by a transaction with a CSN at or below this are dead for everyone.
    /// Cheap; may lag.
    pub fn horizon(&self) -> Csn {
        self.core.horizon.get(&self.core.registry)
    }

    /// As [`TxnManager::horizon`], as of now (for vacuum); visits every session.
    pub fn horizon_now(&self) -> Csn {
        self.core.horizon.compute(&self.core.registry)
    }

    /// The snapshots that were live when the horizon was last computed. What none of them sees, nobody
    /// ever will.
    pub fn live_snapshots(&self) -> Arc<LiveSnapshots> {
        self.core.horizon.live()
    }

    /// The bound of that list: it grows as long as no session keeps all that follows its snapshot.
    #[inline]
    pub fn live_bound(&self) -> Csn {
        self.core.horizon.live_bound()
    }

    /// The newest visible commit.
    pub fn last_csn(&self) -> Csn {
        self.core.horizon.last_csn()
    }

    /// Every transaction below this has ended.
    pub fn oldest_running(&self) -> Xid {
        while self.core.advance_oldest(CHUNK) {}
        self.core.oldest()
    }

    /// Commits up to here may have lost their CSN: where one has, this stands for it.
    pub fn reduced_upto(&self) -> Csn {
        Csn(self.core.reduced.load(Ordering::SeqCst))
    }

    /// Every session: process id, transaction id, and the oldest snapshot that it holds (for
    /// `pg_stat_activity`).
    pub fn sessions(&self) -> Vec<(i32, Option<Xid>, Option<Csn>)> {
        let seen = |slot: &crate::registry::Slot| {
            let snapshot = Csn(slot.snapshot.load(Ordering::Acquire));
            let pid = slot.pid.load(Ordering::Acquire);
            (pid, slot.top_xid(), Some(snapshot).filter(|csn| csn.0 != 0))
        };
        let slots = self.core.registry.slots();
        slots.map(|(_, slot)| seen(slot)).filter(|session| session.0 != 0).collect()
    }

    /// The snapshots that every session uses (for `pg_stat_snapshots`).
    pub fn snapshots(&self) -> Vec<SessionSnapshots> {
        let mut all = Vec::new();
        for (_, slot) in self.core.registry.slots() {
            let pid = slot.pid.load(Ordering::Acquire);
            let csn =
                |cell: &AtomicU64| Some(Csn(cell.load(Ordering::Acquire))).filter(|csn| csn.0 != 0);
            let Some(oldest) = csn(&slot.snapshot).filter(|_| pid != 0) else { continue };
            let mut held = Vec::new();
            slot.for_held(|csn| held.push(Csn(csn)));
            held.sort_unstable();
            held.dedup();
            let (onwards, lasting) = (csn(&slot.newer), csn(&slot.lasting));
            all.push(SessionSnapshots { pid, oldest, lasting, held, onwards });
        }
        all
    }

    /// Says in the log what time it is, in microseconds since 2000-01-01 UTC; the record's end.
    pub fn mark_time(&self, time: i64) -> Lsn {
        self.core.log().append(log::TIME, &time.to_le_bytes(), |_| ())
    }

    /// Names this point of the log, for restores; the record's end.
    pub fn mark_name(&self, name: &str) -> Lsn {
        self.core.log().append(log::NAMED, name.as_bytes(), |_| ())
    }

    /// Appends a record of so many bytes, a multiple of 8, that means nothing; its end. No record has less than 32.
    pub fn pad_log(&self, bytes: usize) -> Lsn {
        let payload = bytes.saturating_sub(storage::Wal::AROUND_PAYLOAD);
        self.core.log().append(log::PADDING, &vec![0; payload], |_| ())
    }

    /// The next transaction id (for statistics).
    pub fn next_xid(&self) -> Xid {
        self.core.next_xid()
    }

    /// A new number for a relation's files or a catalog object, logged so that it is never given
    /// out twice. (Oids and RelIds share one sequence, from 16384.)
    ///
    /// # Errors
    /// `54000` when none is left; I/O errors.
    pub fn next_oid(&self) -> Result<u32> {
        self.core.allocate_oid()
    }

    /// The event under which waits for a transaction's end are reported.
    pub const XID_WAIT: WaitEvent = WaitEvent::LockTransactionid;
}
