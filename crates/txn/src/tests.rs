//! Shared parts of this crate's tests, and the stories of whole transactions.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};

use base::{Csn, Lsn, Result, Xid};
use storage::Participant;

use crate::log::Log;
use crate::log::tests::MemoryLog;
use crate::{Isolation, LockOwner, Transaction, TxnManager, XidStatus};

/// A directory of its own that goes away with the value.
pub(crate) struct TestDir(PathBuf);

impl TestDir {
    pub(crate) fn new() -> TestDir {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("txn-test-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        TestDir(path)
    }
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TestDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A manager on a log in memory, as after the recovery of an empty directory.
pub(crate) fn manager() -> Arc<TxnManager> {
    manager_in(Path::new("/nonexistent"))
}

fn manager_in(dir: &Path) -> Arc<TxnManager> {
    let manager = TxnManager::new(dir);
    let start = Lsn(1000);
    manager.participant(None).recovered(start).unwrap();
    manager.attach_log(Log::Memory(MemoryLog::new(start)), start);
    manager
}

pub(crate) fn memory_log(manager: &TxnManager) -> &MemoryLog {
    match manager.core.log() {
        Log::Memory(log) => log,
        Log::Storage(_) => unreachable!("tests run on a log in memory"),
    }
}

/// A session for the calling thread.
pub(crate) fn session(manager: &Arc<TxnManager>) -> Arc<LockOwner> {
    static PID: AtomicU32 = AtomicU32::new(100);
    let pid = PID.fetch_add(1, Ordering::Relaxed) as i32;
    manager.new_owner(&sched::current(), pid)
}

pub(crate) fn begin(owner: &Arc<LockOwner>) -> Transaction {
    owner.manager().begin(owner, Isolation::ReadCommitted, false)
}

fn commit(tx: &Transaction) -> Lsn {
    tx.commit(&[], |_| ()).unwrap()
}

#[test]
fn a_transaction_that_only_reads_gets_no_id_and_writes_no_record() {
    let m = manager();
    let owner = session(&m);
    let tx = begin(&owner);
    tx.snapshot();
    assert_eq!(commit(&tx), Lsn::ZERO);
    assert_eq!(m.next_xid(), Xid::FIRST);
    assert!(memory_log(&m).records.lock().unwrap().is_empty());
}

#[test]
fn a_commit_is_seen_by_later_snapshots_only() {
    let m = manager();
    let (a, b) = (session(&m), session(&m));
    let (writer, reader) = (begin(&a), begin(&b));
    let xid = writer.xid().unwrap();
    let before = reader.snapshot();
    assert_eq!(m.status(xid), XidStatus::Running);
    commit(&writer);
    assert!(!reader.sees(xid, &before));
    reader.end_statement();
    assert!(reader.sees(xid, &reader.snapshot()));
}

#[test]
fn above_read_committed_one_snapshot_serves_the_transaction() {
    let m = manager();
    let (a, b) = (session(&m), session(&m));
    let reader = m.begin(&b, Isolation::RepeatableRead, false);
    let first = reader.snapshot();
    let writer = begin(&a);
    let xid = writer.xid().unwrap();
    commit(&writer);
    reader.end_statement();
    assert_eq!(reader.snapshot().csn, first.csn);
    assert!(!reader.sees(xid, &reader.snapshot()));
    assert!(reader.sees(xid, &reader.latest_snapshot()));
    assert!(m.horizon_now() <= first.csn);
    commit(&reader);
    assert!(m.horizon_now() > first.csn);
}

#[test]
fn who_sees_a_commit_that_is_not_durable_must_wait_for_it() {
    let m = manager();
    let (a, b) = (session(&m), session(&m));
    let writer = begin(&a);
    let xid = writer.xid().unwrap();
    let end = commit(&writer);
    let XidStatus::Committed(csn) = m.status(xid) else { panic!("it has committed") };
    assert!(!m.is_durable(csn));
    let reader = begin(&b);
    assert!(reader.sees(xid, &reader.snapshot()));
    assert_eq!(reader.durability_needed(), end);
    assert_eq!(commit(&reader), end, "a reader's commit waits for what it saw");
    memory_log(&m).flush(end).unwrap();
    assert!(m.is_durable(csn));
    let reader = begin(&b);
    assert!(reader.sees(xid, &reader.snapshot()));
    assert_eq!(commit(&reader), Lsn::ZERO);
}

#[test]
fn a_dropped_transaction_is_rolled_back() {
    let m = manager();
    let owner = session(&m);
    let tx = begin(&owner);
    let xid = tx.xid().unwrap();
    drop(tx);
    assert_eq!(m.status(xid), XidStatus::Aborted);
    assert!(begin(&owner).commit(b"x", |_| ()).is_ok());
}

#[test]
fn children_get_ids_above_their_parents_when_they_write() {
    let m = manager();
    let owner = session(&m);
    let tx = begin(&owner);
    let outer = tx.savepoint();
    tx.savepoint();
    let inner_xid = tx.xid().unwrap();
    let top = tx.top_xid().unwrap();
    assert_eq!((top, inner_xid), (Xid(3), Xid(5)));
    assert!([3, 4, 5].iter().all(|&x| tx.is_mine(Xid(x))) && !tx.is_mine(Xid(6)));
    tx.rollback_to(outer);
    assert!(!tx.is_mine(Xid(4)) && !tx.is_mine(Xid(5)) && tx.is_mine(top));
    assert_eq!(m.status(Xid(5)), XidStatus::Aborted);
    assert_eq!(tx.xid().unwrap(), Xid(6));
    commit(&tx);
    assert!(matches!(m.status(top), XidStatus::Committed(_)));
    assert_eq!(m.status(Xid(6)), m.status(top));
    assert_eq!(m.status(Xid(4)), XidStatus::Aborted);
}

#[test]
fn a_released_savepoint_shares_the_fate_of_the_level_around_it() {
    let m = manager();
    let owner = session(&m);
    let tx = begin(&owner);
    let a = tx.savepoint();
    let a_xid = tx.xid().unwrap();
    let b = tx.savepoint();
    let b_xid = tx.xid().unwrap();
    tx.release(b);
    assert_eq!(tx.xid().unwrap(), a_xid);
    assert!(tx.is_mine(b_xid));
    let c = tx.savepoint();
    let c_xid = tx.xid().unwrap();
    tx.rollback_to(c);
    assert!(tx.is_mine(b_xid) && !tx.is_mine(c_xid));
    tx.rollback_to(a);
    assert!(!tx.is_mine(b_xid) && !tx.is_mine(a_xid));
    tx.release(a);
    assert_eq!(Some(tx.xid().unwrap()), tx.top_xid());
}

#[test]
fn a_statement_inside_another_one_waits_with_the_outer_ones_snapshot() {
    let m = manager();
    let (a, b) = (session(&m), session(&m));
    let write = || {
        let writer = begin(&a);
        writer.xid().unwrap();
        commit(&writer);
    };
    let reader = begin(&b);
    let alone = reader.snapshot();
    write();
    reader.release_to_wait();
    assert!(m.horizon_now() > alone.csn);
    let outer = reader.snapshot();
    write();
    reader.latest_snapshot();
    reader.release_to_wait();
    assert_eq!(m.horizon_now(), outer.csn);
    reader.end_statement();
    assert!(m.horizon_now() > outer.csn);
}

#[test]
fn a_pinned_snapshot_holds_the_horizon_beyond_its_statement() {
    let m = manager();
    let (a, b) = (session(&m), session(&m));
    let reader = begin(&b);
    let old = reader.snapshot();
    let pin = reader.pin_snapshot(&old);
    reader.end_statement();
    let writer = begin(&a);
    writer.xid().unwrap();
    commit(&writer);
    reader.snapshot();
    reader.end_statement();
    assert_eq!(m.horizon_now(), old.csn);
    reader.unpin_snapshot(pin);
    reader.end_statement();
    assert!(m.horizon_now() > old.csn);
}

#[test]
fn what_is_published_before_a_commit_is_seen_with_it_and_with_every_later_one() {
    let m = manager();
    let version = AtomicU64::new(0);
    let done = AtomicBool::new(false);
    std::thread::scope(|s| {
        s.spawn(|| {
            let owner = session(&m);
            for _ in 0..300 {
                let tx = begin(&owner);
                tx.savepoint();
                tx.xid().unwrap();
                tx.set_publishes();
                tx.commit(&[], |csn| {
                    std::thread::yield_now();
                    version.store(csn.0, Ordering::SeqCst);
                })
                .unwrap();
            }
            done.store(true, Ordering::SeqCst);
        });
        for _ in 0..2 {
            s.spawn(|| {
                let owner = session(&m);
                while !done.load(Ordering::SeqCst) {
                    let tx = begin(&owner);
                    tx.xid().unwrap();
                    commit(&tx);
                }
            });
        }
        s.spawn(|| {
            let owner = session(&m);
            while !done.load(Ordering::SeqCst) {
                let tx = begin(&owner);
                let snapshot = tx.snapshot();
                let seen = version.load(Ordering::SeqCst);
                let records = memory_log(&m).records.lock().unwrap();
                let newest = records.iter().rev().find(|(end, code, _)| {
                    *code == crate::log::COMMIT_MORE && end.0 <= snapshot.csn.0
                });
                if let Some((end, ..)) = newest {
                    assert!(seen >= end.0, "the catalog lags behind the snapshot");
                }
            }
        });
    });
}

/// A row version in the tests' own little table: made by, ended by, value.
struct Version {
    made: Xid,
    ended: AtomicU64,
    value: i64,
}

/// Each transfer makes new versions of two accounts; each snapshot must see exactly one version of
/// each account and an unchanged sum. A snapshot that saw commits in another order than the log's, or
/// half of one, would see another sum; a horizon that missed a snapshot would take a version away.
#[test]
fn every_snapshot_sees_whole_transactions_in_the_order_of_the_log() {
    const ACCOUNTS: usize = 6;
    const TOTAL: i64 = 600;
    let m = manager();
    let setup = session(&m);
    let tx = begin(&setup);
    let made = tx.xid().unwrap();
    let table: Vec<std::sync::RwLock<Vec<Version>>> = (0..ACCOUNTS)
        .map(|_| vec![Version { made, ended: AtomicU64::new(0), value: 100 }].into())
        .collect();
    commit(&tx);
    let done = AtomicBool::new(false);
    let last_seen = AtomicI64::new(0);
    std::thread::scope(|s| {
        let (m, table, done, last_seen) = (&m, &table, &done, &last_seen);
        for thread in 0..3u64 {
            s.spawn(move || {
                let owner = session(m);
                let mut seed = thread + 1;
                for round in 0..1500 {
                    seed = seed.wrapping_mul(6364136223846793005).wrapping_add(99991);
                    let (a, b) = ((seed >> 33) as usize % 5, 1 + (seed >> 50) as usize % 5);
                    let (a, b) = (a.min(b), a.max(b));
                    if a != b {
                        transfer(&owner, table, a, b, (seed >> 20) as i64 % 10, round % 7 == 0);
                    }
                }
                done.store(true, Ordering::SeqCst);
            });
        }
        for _ in 0..2 {
            s.spawn(move || {
                let owner = session(m);
                while !done.load(Ordering::SeqCst) {
                    let tx = begin(&owner);
                    let snapshot = tx.snapshot();
                    let sum: i64 = table.iter().map(|rows| look(&tx, rows, &snapshot)).sum();
                    assert_eq!(sum, TOTAL);
                    last_seen.fetch_max(snapshot.csn.0 as i64, Ordering::SeqCst);
                }
            });
        }
    });
    assert!(last_seen.load(Ordering::SeqCst) > 0);
}

fn look(
    tx: &Transaction,
    rows: &std::sync::RwLock<Vec<Version>>,
    snapshot: &crate::Snapshot,
) -> i64 {
    let rows = rows.read().unwrap();
    let visible: Vec<i64> = rows
        .iter()
        .filter(|row| tx.sees(row.made, snapshot))
        .filter(|row| {
            let ended = row.ended.load(Ordering::SeqCst);
            ended == 0 || !tx.sees(Xid(ended), snapshot)
        })
        .map(|row| row.value)
        .collect();
    assert_eq!(visible.len(), 1, "one version is visible");
    visible[0]
}

/// Updates two accounts, the one with the lower number first; waits for a transaction that did so
/// before.
fn transfer(
    owner: &Arc<LockOwner>,
    table: &[std::sync::RwLock<Vec<Version>>],
    a: usize,
    b: usize,
    amount: i64,
    fail: bool,
) {
    let tx = begin(owner);
    let xid = tx.xid().unwrap();
    for (account, delta) in [(a, -amount), (b, amount)] {
        loop {
            let mut rows = table[account].write().unwrap();
            let m = tx.manager();
            let dead = |r: &Version| match m.status(Xid(r.ended.load(Ordering::SeqCst))) {
                XidStatus::Committed(csn) => csn <= m.horizon(),
                _ => false,
            };
            rows.retain(|r| m.status(r.made) != XidStatus::Aborted && !dead(r));
            let newest = rows.last().unwrap();
            let ended = Xid(newest.ended.load(Ordering::SeqCst));
            let running = [newest.made, ended]
                .into_iter()
                .find(|&x| x.is_valid() && x != xid && m.status(x) == XidStatus::Running);
            if let Some(other) = running {
                drop(rows);
                m.locks.wait_for_xid(tx.locks(), other, crate::LockWait::Block).unwrap();
                continue;
            }
            if m.status(newest.made) == XidStatus::Aborted {
                // It was running when the aborted versions were taken out.
                continue;
            }
            newest.ended.store(xid.0, Ordering::SeqCst);
            let value = newest.value + delta;
            rows.push(Version { made: xid, ended: AtomicU64::new(0), value });
            break;
        }
    }
    if fail {
        tx.abort()
    } else {
        let _ = commit(&tx);
    }
}

/// Remembers what it was told.
#[derive(Default)]
struct Upper {
    heard: std::sync::Mutex<Vec<(u8, Vec<u8>)>>,
    restored: std::sync::Mutex<Vec<u8>>,
}

impl Participant for Upper {
    fn restore(&self, state: &[u8]) -> Result<()> {
        *self.restored.lock().unwrap() = state.to_vec();
        Ok(())
    }
    fn redo(&self, code: u8, payload: &[u8], _lsn: Lsn) -> Result<()> {
        self.heard.lock().unwrap().push((code, payload.to_vec()));
        Ok(())
    }
    fn recovered(&self, _lsn: Lsn) -> Result<()> {
        Ok(())
    }
    fn checkpoint(&self, _redo: Lsn) -> Result<Vec<u8>> {
        Ok(b"upper state".to_vec())
    }
}

/// Crashes: a new manager on the same directory, from the checkpoint's state and the records after
/// its redo position. All records are taken to have reached the disk.
fn recover(dir: &Path, old: &TxnManager, state: &[u8], redo: Lsn) -> (Arc<TxnManager>, Arc<Upper>) {
    let upper = Arc::new(Upper::default());
    let manager = TxnManager::new(dir);
    let participant = manager.participant(Some(upper.clone()));
    participant.restore(state).unwrap();
    let log = memory_log(old);
    let mut records = log.records.lock().unwrap().clone();
    records.sort();
    for (end, code, payload) in records.iter().filter(|record| record.0 > redo) {
        participant.redo(*code, payload, *end).unwrap();
    }
    participant.recovered(log.position()).unwrap();
    manager.attach_log(Log::Memory(MemoryLog::new(log.position())), log.position());
    (manager, upper)
}

#[test]
fn after_a_crash_committed_is_committed_and_everything_else_aborted() {
    let dir = TestDir::new();
    let m = manager_in(dir.path());
    let participant = m.participant(None);
    let mut expected = Vec::new();
    let (mut state, mut redo) = (Vec::new(), Lsn::ZERO);
    let (a, b) = (session(&m), session(&m));
    let open = begin(&b);
    expected.push((open.xid().unwrap(), false));
    for i in 0..3000 {
        let tx = begin(&a);
        let xid = tx.xid().unwrap();
        if i % 5 == 0 {
            tx.savepoint();
            expected.push((tx.xid().unwrap(), i % 3 != 0));
        }
        expected.push((xid, i % 3 != 0));
        if i % 3 == 0 {
            tx.abort()
        } else {
            let _ = commit(&tx);
        }
        if i % 700 == 0 {
            redo = memory_log(&m).position();
            state = participant.checkpoint(redo).unwrap();
        }
    }
    let (after, _) = recover(dir.path(), &m, &state, redo);
    for (xid, committed) in expected {
        let outcome = if committed { XidStatus::Committed(Csn(0)) } else { XidStatus::Aborted };
        assert_eq!(after.status(xid), outcome, "{xid:?}");
    }
    assert!(after.next_xid() >= m.next_xid());
    let tx = begin(&session(&after));
    assert!(tx.xid().unwrap() >= m.next_xid(), "an id is never given out twice");
}

#[test]
fn ids_and_oids_handed_out_without_a_commit_are_not_handed_out_again() {
    let dir = TestDir::new();
    let m = manager_in(dir.path());
    let redo = memory_log(&m).position();
    let state = m.participant(None).checkpoint(redo).unwrap();
    let owner = session(&m);
    let mut last = Xid(0);
    for _ in 0..5000 {
        last = begin(&owner).xid().unwrap();
    }
    let oids: Vec<u32> = (0..300).map(|_| m.next_oid().unwrap()).collect();
    assert!(oids.is_sorted_by(|a, b| a < b) && oids[0] == 16384);
    let (after, _) = recover(dir.path(), &m, &state, redo);
    assert!(after.next_xid() > last);
    assert!(after.next_oid().unwrap() > *oids.last().unwrap());
    // And a second crash, straight from a checkpoint without any records after it.
    let redo = memory_log(&after).position();
    let state = after.participant(None).checkpoint(redo).unwrap();
    let (again, _) = recover(dir.path(), &after, &state, redo);
    assert!(again.next_xid() > last);
    assert!(again.next_oid().unwrap() > *oids.last().unwrap());
}

#[test]
fn the_upper_layers_get_their_part_of_commits_and_their_state_back() {
    let dir = TestDir::new();
    let m = manager_in(dir.path());
    let participant = m.participant(Some(Arc::new(Upper::default())));
    let owner = session(&m);
    begin(&owner).commit(b"before", |_| ()).unwrap();
    let redo = memory_log(&m).position();
    let state = participant.checkpoint(redo).unwrap();
    begin(&owner).commit(b"after", |_| ()).unwrap();
    memory_log(&m).append(40, b"own", |_| ());
    let (_, upper) = recover(dir.path(), &m, &state, redo);
    assert_eq!(*upper.restored.lock().unwrap(), b"upper state");
    let heard = upper.heard.lock().unwrap();
    assert_eq!(*heard, [(32, b"after".to_vec()), (40, b"own".to_vec())]);
}

#[test]
fn a_checkpoint_that_was_not_finished_does_no_harm() {
    let dir = TestDir::new();
    let m = manager_in(dir.path());
    let participant = m.participant(None);
    let owner = session(&m);
    let redo = memory_log(&m).position();
    let state = participant.checkpoint(redo).unwrap();
    let tx = begin(&owner);
    let xid = tx.xid().unwrap();
    commit(&tx);
    // The files are newer than the state from which recovery starts.
    participant.checkpoint(memory_log(&m).position()).unwrap();
    let (after, _) = recover(dir.path(), &m, &state, redo);
    assert_eq!(after.status(xid), XidStatus::Committed(Csn(0)));
}

/// A commit has its place before the redo position and is not published yet when the checkpoint comes.
#[test]
fn a_checkpoint_waits_for_commits_that_precede_it() {
    let dir = TestDir::new();
    let m = manager_in(dir.path());
    let participant = m.participant(None);
    let (reserved, wait_reserved) = std::sync::mpsc::channel();
    let (publish, wait_publish) = std::sync::mpsc::channel();
    std::thread::scope(|s| {
        let m = &m;
        s.spawn(move || {
            let tx = begin(&session(m));
            let xid = tx.xid().unwrap();
            tx.commit(b"payload", |_| {
                reserved.send(xid).unwrap();
                wait_publish.recv().unwrap();
            })
            .unwrap();
        });
        let xid = wait_reserved.recv().unwrap();
        let redo = memory_log(m).position();
        let checkpoint = s.spawn(move || participant.checkpoint(redo).unwrap());
        while m.core.waiters.count() == 0 && !checkpoint.is_finished() {
            std::thread::yield_now();
        }
        publish.send(()).unwrap();
        let state = checkpoint.join().unwrap();
        let (after, _) = recover(dir.path(), m, &state, redo);
        assert_eq!(after.status(xid), XidStatus::Committed(Csn(0)));
    });
}

#[test]
fn the_list_of_sessions_shows_ids_and_snapshots() {
    let m = manager();
    let owner = session(&m);
    assert_eq!(m.sessions(), [(owner.pid(), None, None)]);
    let tx = begin(&owner);
    let csn = tx.snapshot().csn;
    let xid = tx.xid().unwrap();
    assert_eq!(m.sessions(), [(owner.pid(), Some(xid), Some(csn))]);
    drop((tx, owner));
    assert!(m.sessions().is_empty());
}

#[test]
fn the_oldest_running_transaction_is_found_after_a_long_one() {
    let m = manager();
    let (a, b) = (session(&m), session(&m));
    let long = begin(&b);
    let oldest = long.xid().unwrap();
    for i in 0..3 * crate::commit_log::CHUNK {
        let tx = begin(&a);
        tx.xid().unwrap();
        if i % 2 == 0 {
            commit(&tx);
        }
    }
    assert_eq!(m.oldest_running(), oldest);
    assert_eq!(begin(&a).snapshot().xmin, oldest);
    commit(&long);
    assert_eq!(m.oldest_running(), m.next_xid());
    assert_eq!(begin(&a).snapshot().xmin, m.next_xid());
}

#[test]
fn old_transactions_are_reduced_but_not_before_every_snapshot_sees_them() {
    let m = manager();
    let (a, b) = (session(&m), session(&m));
    let tx = begin(&a);
    let early = tx.xid().unwrap();
    commit(&tx);
    let reader = m.begin(&b, Isolation::RepeatableRead, true);
    let snapshot = reader.snapshot();
    let tx = begin(&a);
    let late = tx.xid().unwrap();
    commit(&tx);
    let churn = || {
        for _ in 0..3 * crate::commit_log::CHUNK {
            begin(&a).xid().unwrap();
        }
        memory_log(&m).flush(memory_log(&m).position()).unwrap();
    };
    churn();
    assert!(reader.sees(early, &snapshot) && !reader.sees(late, &snapshot));
    assert!(matches!(m.status(late), XidStatus::Committed(csn) if csn > snapshot.csn));
    commit(&reader);
    churn();
    assert_eq!(m.status(late), XidStatus::Committed(Csn(0)), "one bit is left of it");
}

#[test]
fn an_idle_session_and_a_transaction_are_small() {
    assert!(size_of::<crate::registry::Slot>() <= 256);
    assert!(size_of::<Transaction>() <= 256);
}
