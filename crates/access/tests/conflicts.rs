//! Concurrent writers of one row: who waits, who goes on with what, who gets an error.

mod common;

use std::sync::mpsc;
use std::thread;

use access::{LockResult, RowWait};
use base::sqlstate;
use common::{Db, Session, Table, commit};
use txn::RowLockMode;

fn one_row() -> (Db, Table) {
    let db = Db::new();
    let table = Table::create(&db, 10);
    let session = db.session();
    let tx = session.begin();
    assert!(table.insert(&tx, 1, 10).unwrap());
    commit(tx);
    (db, table)
}

fn value(table: &Table, session: &Session) -> Option<u64> {
    let tx = session.begin();
    table.find(&tx, &tx.snapshot(), 1).unwrap().map(|f| f.value)
}

/// Waits until `count` sessions wait for a lock or a transaction.
fn until_waiting(tasks: &[sched::TaskRef]) {
    while !tasks.iter().all(|t| t.wait().is_some()) {
        thread::yield_now();
    }
}

/// Runs `work` in a session of its own; returns its task once it has begun.
fn spawn<R: Send + 'static>(
    db: &Db,
    work: impl FnOnce(Session) -> R + Send + 'static,
) -> (sched::TaskRef, thread::JoinHandle<R>) {
    let manager = db.manager.clone();
    let (send, receive) = mpsc::channel();
    let handle = thread::spawn(move || {
        let task = sched::current();
        let owner = manager.new_owner(&task, 0);
        send.send(task).unwrap();
        work(Session { manager, owner })
    });
    (receive.recv().unwrap(), handle)
}

#[test]
fn read_committed_goes_on_with_the_newest_version() {
    let (db, table) = one_row();
    let session = db.session();
    let first = session.begin();
    assert!(table.update(&first, 1, |v| v + 1).unwrap());
    let other = table.clone();
    let (task, second) = spawn(&db, move |session| {
        let tx = session.begin();
        assert!(other.update(&tx, 1, |v| v * 2).unwrap());
        commit(tx);
    });
    until_waiting(&[task]);
    commit(first);
    second.join().unwrap();
    assert_eq!(value(&table, &session), Some(22));
    table.check(&db);
    drop((session, table));
    db.destroy();
}

#[test]
fn a_rollback_lets_the_waiter_change_what_it_found() {
    let (db, table) = one_row();
    let session = db.session();
    let first = session.begin();
    assert!(table.update(&first, 1, |v| v + 1).unwrap());
    let other = table.clone();
    let (task, second) = spawn(&db, move |session| {
        let tx = session.begin();
        assert!(other.update(&tx, 1, |v| v * 2).unwrap());
        commit(tx);
    });
    until_waiting(&[task]);
    drop(first);
    second.join().unwrap();
    assert_eq!(value(&table, &session), Some(20));
    drop((session, table));
    db.destroy();
}

#[test]
fn a_deleted_row_is_gone_for_the_waiter() {
    let (db, table) = one_row();
    let session = db.session();
    let first = session.begin();
    assert!(table.delete(&first, 1).unwrap());
    let other = table.clone();
    let (task, second) = spawn(&db, move |session| {
        let tx = session.begin();
        other.update(&tx, 1, |v| v * 2).unwrap()
    });
    until_waiting(&[task]);
    commit(first);
    assert!(!second.join().unwrap());
    drop((session, table));
    db.destroy();
}

#[test]
fn repeatable_read_fails_on_a_concurrent_change() {
    for delete in [false, true] {
        let (db, table) = one_row();
        let (early, late) = (db.session(), db.session());
        let reader = early.begin_rr();
        assert!(table.find(&reader, &reader.snapshot(), 1).unwrap().is_some());
        let writer = late.begin();
        if delete {
            assert!(table.delete(&writer, 1).unwrap());
        } else {
            assert!(table.update(&writer, 1, |v| v + 1).unwrap());
        }
        commit(writer);
        let error = table.update(&reader, 1, |v| v + 5).unwrap_err();
        assert_eq!(error.code(), sqlstate::T_R_SERIALIZATION_FAILURE);
        let what = if delete { "delete" } else { "update" };
        assert_eq!(error.message(), format!("could not serialize access due to concurrent {what}"));
        drop(reader);
        drop((early, late, table));
        db.destroy();
    }
}

#[test]
fn row_locks_stop_those_that_they_should() {
    use RowLockMode::{KeyShare, NoKeyUpdate, Share, Update};
    let modes = [KeyShare, Share, NoKeyUpdate, Update];
    let conflict = [[0, 0, 0, 1], [0, 0, 1, 1], [0, 1, 1, 1], [1, 1, 1, 1]];
    let (db, table) = one_row();
    let (a, b) = (db.session(), db.session());
    for (i, held) in modes.into_iter().enumerate() {
        for (j, wanted) in modes.into_iter().enumerate() {
            let (first, second) = (a.begin(), b.begin());
            let lock = |tx, mode| table.lock(tx, 1, mode, RowWait::Try).unwrap();
            assert!(matches!(lock(&first, held), LockResult::Locked));
            let refused = matches!(lock(&second, wanted), LockResult::WouldBlock);
            assert_eq!(refused, conflict[i][j] == 1, "{wanted:?} while {held:?} is held");
        }
    }
    drop((a, b, table));
    db.destroy();
}

#[test]
fn a_lock_of_a_rolled_back_savepoint_counts_no_more_and_the_outer_one_does() {
    let (db, table) = one_row();
    let (a, b) = (db.session(), db.session());
    let first = a.begin();
    let level = first.savepoint();
    table.lock(&first, 1, RowLockMode::Update, RowWait::Try).unwrap();
    first.rollback_to(level);
    let second = b.begin();
    let lock = |tx: &txn::Transaction, mode| table.lock(tx, 1, mode, RowWait::Try).unwrap();
    assert!(matches!(lock(&second, RowLockMode::Update), LockResult::Locked));
    drop(second);

    // An update inside a savepoint takes the place of the outer lock; its rollback gives it back.
    lock(&first, RowLockMode::Update);
    let level = first.savepoint();
    assert!(table.update(&first, 1, |v| v).unwrap());
    first.rollback_to(level);
    let second = b.begin();
    assert!(matches!(lock(&second, RowLockMode::KeyShare), LockResult::WouldBlock));
    drop((first, second));
    drop((a, b, table));
    db.destroy();
}

#[test]
fn a_key_share_lock_travels_to_the_new_version_and_stops_a_delete() {
    let (db, table) = one_row();
    let (a, b) = (db.session(), db.session());
    let sharer = a.begin();
    table.lock(&sharer, 1, RowLockMode::KeyShare, RowWait::Try).unwrap();
    let writer = b.begin();
    assert!(table.update(&writer, 1, |v| v).unwrap(), "an update of no key is allowed");
    commit(writer);
    let deleter = b.begin();
    let locked = table.lock(&deleter, 1, RowLockMode::Update, RowWait::Try).unwrap();
    assert!(matches!(locked, LockResult::WouldBlock));
    commit(sharer);
    let locked = table.lock(&deleter, 1, RowLockMode::Update, RowWait::Try).unwrap();
    assert!(matches!(locked, LockResult::Locked));
    drop(deleter);
    drop((a, b, table));
    db.destroy();
}

#[test]
fn a_key_share_lock_is_refused_when_a_running_update_went_on_to_delete() {
    let (db, table) = one_row();
    let (a, b) = (db.session(), db.session());
    let writer = a.begin();
    assert!(table.update(&writer, 1, |v| v).unwrap());
    writer.next_command();
    assert!(table.delete(&writer, 1).unwrap());
    let sharer = b.begin();
    let locked = table.lock(&sharer, 1, RowLockMode::KeyShare, RowWait::Try).unwrap();
    assert!(matches!(locked, LockResult::WouldBlock));
    drop((writer, sharer));
    drop((a, b, table));
    db.destroy();
}

#[test]
fn a_statement_does_not_change_a_row_twice() {
    let (db, table) = one_row();
    let session = db.session();
    let tx = session.begin();
    let snapshot = tx.snapshot();
    let at = table.find(&tx, &snapshot, 1).unwrap().unwrap();
    let data = common::row(1, 11, 10);
    let wait = RowWait::Block;
    let write = || table.heap.update(&tx, &snapshot, at.tid, at.root, &data, false, false, wait);
    assert!(matches!(write().unwrap(), access::WriteResult::Done { .. }));
    assert!(matches!(write().unwrap(), access::WriteResult::SelfChanged));
    drop(tx);
    drop((session, table));
    db.destroy();
}

#[test]
fn one_of_many_that_insert_the_same_key_wins() {
    let db = Db::new();
    let table = Table::create(&db, 10);
    for key in 0..20 {
        let handles: Vec<_> = (0..6)
            .map(|i| {
                let table = table.clone();
                spawn(&db, move |session| {
                    let tx = session.begin();
                    let won = table.insert(&tx, key, i).unwrap();
                    // Every other one of those that got in takes it back.
                    if won && (key + i) % 2 == 0 {
                        commit(tx);
                        return 1;
                    }
                    0
                })
                .1
            })
            .collect();
        let winners: u32 = handles.into_iter().map(|h| h.join().unwrap()).sum();
        assert!(winners <= 1, "key {key} was inserted {winners} times");
    }
    table.check(&db);
    drop(table);
    db.destroy();
}

#[test]
fn a_change_that_does_not_wait_says_that_the_row_is_taken() {
    let (db, table) = one_row();
    let (one, two) = (db.session(), db.session());
    let (holder, late) = (one.begin(), two.begin());
    assert!(table.update(&holder, 1, |v| v + 1).unwrap());
    let snapshot = late.snapshot();
    let at = table.find(&late, &snapshot, 1).unwrap().unwrap();
    let (wait, data) = (RowWait::Try, common::row(1, 11, 10));
    let change = || table.heap.update(&late, &snapshot, at.tid, at.root, &data, false, false, wait);
    assert!(matches!(change().unwrap(), access::WriteResult::Busy));
    let delete = || table.heap.delete(&late, &snapshot, at.tid, at.root, wait);
    assert!(matches!(delete().unwrap(), access::WriteResult::Busy));
    drop(holder);
    assert!(matches!(delete().unwrap(), access::WriteResult::Done { .. }));
    commit(late);
    drop((one, two, table));
    db.destroy();
}

/// Of a page's versions those go that are free: not those that others hold or have changed, and none twice.
#[test]
fn versions_of_a_page_are_deleted_together_where_they_are_free() {
    let db = Db::new();
    let table = Table::create(&db, 10);
    let session = db.session();
    let tx = session.begin();
    for key in 1..=6 {
        assert!(table.insert(&tx, key, key * 10).unwrap());
    }
    commit(tx);
    let rival_session = db.session();
    let rival = rival_session.begin();
    assert!(table.update(&rival, 2, |v| v + 1).unwrap());
    let lock = table.lock(&rival, 3, RowLockMode::KeyShare, RowWait::Try).unwrap();
    assert!(matches!(lock, LockResult::Locked));
    let tx = session.begin();
    let snapshot = tx.snapshot();
    let at = |key| table.find(&tx, &snapshot, key).unwrap().expect("it was inserted").tid;
    let places = [at(1), at(2), at(3), at(4), at(1)];
    let done = table.heap.delete_in_page(&tx, &places).unwrap();
    assert_eq!(done, [true, false, false, true, false]);
    commit(rival);
    commit(tx);
    let tx = session.begin();
    let left = table.scan(&tx, &tx.snapshot()).unwrap();
    assert_eq!(left, [(2, 21), (3, 30), (5, 50), (6, 60)]);
    commit(tx);
    table.check(&db);
    drop((session, rival_session, table));
    db.destroy();
}
