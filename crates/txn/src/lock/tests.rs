//! Locks between sessions, each on a thread of its own. Threads wait for each other by looking at
//! who waits in the lock manager, never by time.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use base::{Oid, RelId, Result, TupleId, sqlstate};
use sched::Interrupt;

use super::LockMode::*;
use super::deadlock::Verdict;
use super::{LockMode, LockOwner, LockTag, LockWait, RowLockMode};
use crate::TxnManager;
use crate::tests::{begin, manager, session};

const TABLE: LockTag = LockTag::Relation(Oid(5), Oid(20000));
/// Long enough never to come in a test that passes.
const NEVER_MS: u64 = 3_600_000;

fn patient(m: &Arc<TxnManager>) -> Arc<LockOwner> {
    let owner = session(m);
    owner.deadlock_timeout_ms.store(NEVER_MS, Ordering::Relaxed);
    owner
}

/// Checks for deadlocks soon; tests in which there are some don't depend on when.
fn watchful(m: &Arc<TxnManager>) -> Arc<LockOwner> {
    let owner = session(m);
    owner.deadlock_timeout_ms.store(20, Ordering::Relaxed);
    owner
}

fn object(number: u64) -> LockTag {
    LockTag::Object(Oid(1), number)
}

fn lock(owner: &LockOwner, tag: LockTag, mode: LockMode) -> Result<bool> {
    owner.manager().locks.lock(owner, tag, mode, LockWait::Block)
}

fn try_lock(owner: &LockOwner, tag: LockTag, mode: LockMode) -> bool {
    owner.manager().locks.lock(owner, tag, mode, LockWait::Try).unwrap()
}

fn end(owner: &LockOwner) {
    owner.manager().locks.release_transaction(owner);
}

/// Returns when this many sessions wait.
fn until_waiting(m: &TxnManager, count: usize) {
    while m.locks.snapshot().iter().filter(|row| !row.granted).count() != count {
        std::thread::yield_now();
    }
}

#[test]
fn modes_conflict_as_in_the_manual() {
    // Table 13.2: row and column in the order of the modes' strength.
    let table = [
        "       X", "      XX", "    XXXX", "   XXXXX", "  XX XXX", "  XXXXXX", " XXXXXXX",
        "XXXXXXXX",
    ];
    for (row, a) in table.iter().zip(LockMode::ALL) {
        for (cell, b) in row.chars().zip(LockMode::ALL) {
            assert_eq!(a.conflicts(b), cell == 'X', "{a:?} {b:?}");
        }
    }
}

#[test]
fn row_locks_conflict_as_in_the_manual() {
    use RowLockMode::*;
    let table = ["   X", "  XX", " XXX", "XXXX"];
    let modes = [KeyShare, Share, NoKeyUpdate, Update];
    for (row, a) in table.iter().zip(modes) {
        for (cell, b) in row.chars().zip(modes) {
            assert_eq!(a.conflicts(b), cell == 'X', "{a:?} {b:?}");
        }
    }
}

#[test]
fn what_is_not_free_can_be_tried() {
    let m = manager();
    let (a, b) = (patient(&m), patient(&m));
    for tag in [TABLE, object(1), LockTag::Advisory(Oid(5), -7), LockTag::Extend(RelId(3))] {
        assert!(try_lock(&a, tag, Exclusive));
        assert!(!try_lock(&b, tag, RowExclusive));
        assert!(try_lock(&b, tag, AccessShare));
        end(&a);
        assert!(try_lock(&b, tag, RowExclusive));
        end(&b);
        assert!(try_lock(&a, tag, AccessExclusive));
        end(&a);
    }
}

#[test]
fn waiters_are_served_in_the_order_in_which_they_came() {
    let m = manager();
    let holder = patient(&m);
    lock(&holder, TABLE, AccessExclusive).unwrap();
    let order = Mutex::new(Vec::new());
    std::thread::scope(|s| {
        for i in 0..8 {
            let (m, order) = (&m, &order);
            s.spawn(move || {
                let owner = patient(m);
                lock(&owner, TABLE, if i % 2 == 0 { Exclusive } else { RowExclusive }).unwrap();
                order.lock().unwrap().push(i);
                end(&owner);
            });
            until_waiting(m, i + 1);
        }
        end(&holder);
    });
    assert_eq!(*order.lock().unwrap(), (0..8).collect::<Vec<_>>());
}

/// `count` sessions hold one lock each, then all want their neighbour's. One gives up, the others
/// come through, one after the other.
fn ring_of(count: usize) {
    let m = manager();
    let (tell, errors) = channel();
    let ready = std::sync::Barrier::new(count);
    std::thread::scope(|s| {
        for i in 0..count {
            let (m, ready, tell) = (&m, &ready, tell.clone());
            s.spawn(move || {
                let owner = watchful(m);
                lock(&owner, object(i as u64), Exclusive).unwrap();
                ready.wait();
                let next = object(((i + 1) % count) as u64);
                if let Err(error) = lock(&owner, next, Share) {
                    tell.send(error).unwrap();
                }
                end(&owner);
            });
        }
    });
    drop(tell);
    let errors: Vec<_> = errors.iter().collect();
    assert_eq!(errors.len(), 1, "exactly one gives up");
    let fields = errors[0].fields();
    assert_eq!(fields.code, sqlstate::T_R_DEADLOCK_DETECTED);
    assert_eq!(fields.message, "deadlock detected");
    assert_eq!(fields.hint.as_deref(), Some("See server log for query details."));
    let lines: Vec<&str> = fields.detail.as_deref().unwrap().lines().collect();
    assert_eq!(lines.len(), count);
    for line in lines {
        assert!(line.contains(" waits for ShareLock on object "), "{line}");
        assert!(line.contains("; blocked by process "), "{line}");
    }
    assert!(m.locks.snapshot().is_empty());
}

#[test]
fn two_sessions_in_a_ring_are_a_deadlock() {
    ring_of(2);
}

#[test]
fn three_sessions_in_a_ring_are_a_deadlock() {
    ring_of(3);
}

#[test]
fn ten_sessions_in_a_ring_are_a_deadlock() {
    ring_of(10);
}

/// Begins to wait in a thread of its own for what others hold.
fn wait_in<'s>(
    scope: &'s std::thread::Scope<'s, '_>,
    m: &Arc<TxnManager>,
    owner: &Arc<LockOwner>,
    tag: LockTag,
    waiting: usize,
) -> sched::TaskRef {
    let (mine, (tell, task)) = (owner.clone(), channel());
    scope.spawn(move || {
        tell.send(sched::current()).unwrap();
        let _ = lock(&mine, tag, Exclusive);
        end(&mine);
    });
    until_waiting(m, waiting);
    task.recv().unwrap()
}

#[test]
fn a_check_that_finds_no_cycle_speaks_for_all_who_wait() {
    let m = manager();
    let (holder, first, second) = (watchful(&m), patient(&m), patient(&m));
    lock(&holder, object(0), Exclusive).unwrap();
    lock(&first, object(1), Exclusive).unwrap();
    std::thread::scope(|s| {
        wait_in(s, &m, &first, object(0), 1);
        wait_in(s, &m, &second, object(0), 2);
        let begun = m.locks.checks.begun();
        assert!(!m.locks.is_cleared(begun));
        assert!(matches!(m.locks.check_deadlock(&second), Verdict::None));
        assert!(m.locks.is_cleared(begun));
        assert!(!m.locks.is_cleared(m.locks.checks.begun()), "who comes now is not cleared");
        // The holder closes a cycle with one that was cleared.
        let error = lock(&holder, object(1), Exclusive).unwrap_err();
        assert_eq!(error.code(), sqlstate::T_R_DEADLOCK_DETECTED);
        end(&holder);
    });
}

#[test]
fn in_a_queue_those_next_ahead_stand_for_the_others() {
    let m = manager();
    let owners: Vec<_> = (0..4).map(|_| patient(&m)).collect();
    lock(&owners[0], object(0), Exclusive).unwrap();
    std::thread::scope(|s| {
        for (at, owner) in owners.iter().enumerate().skip(1) {
            wait_in(s, &m, owner, object(0), at);
        }
        let pids: Vec<i32> = owners.iter().map(|o| o.pid()).collect();
        assert_eq!(m.locks.blocking_pids(pids[3]), pids[..3]);
        assert_eq!(m.locks.next_blocking_pids(pids[3]), [pids[0], pids[2]]);
        assert_eq!(m.locks.next_blocking_pids(pids[1]), [pids[0]]);
        end(&owners[0]);
    });
}

#[test]
fn a_check_beside_a_cycle_speaks_for_nobody() {
    let m = manager();
    let (a, b, holder, c) = (patient(&m), patient(&m), patient(&m), patient(&m));
    for (owner, number) in [(&a, 0), (&b, 1), (&holder, 2)] {
        lock(owner, object(number), Exclusive).unwrap();
    }
    std::thread::scope(|s| {
        let task = wait_in(s, &m, &a, object(1), 1);
        wait_in(s, &m, &b, object(0), 2);
        wait_in(s, &m, &c, object(2), 3);
        let begun = m.locks.checks.begun();
        assert!(matches!(m.locks.check_deadlock(&c), Verdict::None));
        assert!(!m.locks.is_cleared(begun));
        assert!(matches!(m.locks.check_deadlock(&a), Verdict::Deadlock(_)));
        task.interrupt(Interrupt::Cancel);
        end(&holder);
    });
}

#[test]
fn who_gives_up_is_no_part_of_the_cycle_any_more() {
    let m = manager();
    let (tell, tasks) = channel();
    let owners = [patient(&m), patient(&m)];
    for (i, owner) in owners.iter().enumerate() {
        lock(owner, object(i as u64), Exclusive).unwrap();
    }
    std::thread::scope(|s| {
        for (i, owner) in owners.iter().enumerate() {
            let tell = tell.clone();
            s.spawn(move || {
                tell.send(sched::current()).unwrap();
                lock(owner, object(1 - i as u64), Exclusive).unwrap_err()
            });
        }
        until_waiting(&m, 2);
        let found = |owner| matches!(m.locks.check_deadlock(owner), Verdict::Deadlock(_));
        assert!(found(&owners[0]));
        assert!(!found(&owners[1]), "one victim is enough");
        for task in tasks.iter().take(2) {
            task.interrupt(Interrupt::Cancel);
        }
    });
}

#[test]
fn two_upgrades_of_the_same_lock_fail_at_once() {
    let m = manager();
    let (a, b) = (patient(&m), patient(&m));
    lock(&a, TABLE, Share).unwrap();
    lock(&b, TABLE, Share).unwrap();
    std::thread::scope(|s| {
        let waiter = s.spawn(|| lock(&a, TABLE, Exclusive));
        until_waiting(&m, 1);
        let error = lock(&b, TABLE, Exclusive).unwrap_err();
        assert_eq!(error.code(), sqlstate::T_R_DEADLOCK_DETECTED);
        assert!(error.fields().detail.as_deref().unwrap().contains(
            "waits for ExclusiveLock on relation 20000 of database 5; blocked by process"
        ));
        end(&b);
        assert!(waiter.join().unwrap().unwrap());
    });
}

#[test]
fn rows_and_transactions_make_deadlocks_too() {
    let m = manager();
    let (tell, errors) = channel();
    let ready = std::sync::Barrier::new(2);
    let xids = Mutex::new([base::Xid(0); 2]);
    std::thread::scope(|s| {
        for i in 0..2 {
            let (m, ready, tell, xids) = (&m, &ready, tell.clone(), &xids);
            s.spawn(move || {
                let owner = watchful(m);
                let tx = begin(&owner);
                tx.savepoint();
                xids.lock().unwrap()[i] = tx.xid().unwrap();
                ready.wait();
                let other = xids.lock().unwrap()[1 - i];
                match m.locks.wait_for_xid(&owner, other, LockWait::Block) {
                    Ok(_) => drop(tx.commit(&[], |_| ())),
                    Err(error) => tell.send(error).unwrap(),
                }
            });
        }
    });
    drop(tell);
    let errors: Vec<_> = errors.iter().collect();
    assert_eq!(errors.len(), 1);
    let detail = errors[0].fields().detail.clone().unwrap();
    assert_eq!(detail.matches("waits for ShareLock on transaction ").count(), 2, "{detail}");
}

/// A waits for B's lock 2; B waits for lock 1 behind C, whose request conflicts with B's; C waits for
/// A. B may go before C, and nobody has to give up.
#[test]
fn a_cycle_through_a_queue_is_undone_by_reordering() {
    let m = manager();
    let (a, b, c) = (watchful(&m), watchful(&m), patient(&m));
    lock(&a, object(1), AccessShare).unwrap();
    lock(&b, object(2), Exclusive).unwrap();
    std::thread::scope(|s| {
        let c_waits = s.spawn(|| {
            lock(&c, object(1), AccessExclusive).unwrap();
            end(&c);
        });
        until_waiting(&m, 1);
        let b_waits = s.spawn(|| {
            lock(&b, object(1), AccessShare).unwrap();
            end(&b);
        });
        until_waiting(&m, 2);
        lock(&a, object(2), Exclusive).unwrap();
        b_waits.join().unwrap();
        end(&a);
        c_waits.join().unwrap();
    });
}

#[test]
fn lock_timeout_ends_a_wait_and_leaves_no_trace() {
    let m = manager();
    let (a, b) = (patient(&m), patient(&m));
    lock(&a, TABLE, Exclusive).unwrap();
    b.lock_timeout_ms.store(1, Ordering::Relaxed);
    let error = lock(&b, TABLE, Share).unwrap_err();
    assert_eq!(error.code(), sqlstate::LOCK_NOT_AVAILABLE);
    assert_eq!(error.message(), "canceling statement due to lock timeout");
    assert!(m.locks.snapshot().iter().all(|row| row.pid == a.pid()));
    let tx = begin(&a);
    let xid = tx.xid().unwrap();
    let error = m.locks.wait_for_xid(&b, xid, LockWait::Block).unwrap_err();
    assert_eq!(error.code(), sqlstate::LOCK_NOT_AVAILABLE);
    drop(tx);
    assert!(try_lock(&b, TABLE, Share), "the strong lockers' counter was lowered");
    end(&b);
    assert!(try_lock(&b, TABLE, AccessShare));
    assert!(m.locks.snapshot().iter().any(|row| row.fastpath));
}

#[test]
fn a_cancelled_waiter_goes_and_those_behind_it_go_on() {
    let m = manager();
    let holder = patient(&m);
    lock(&holder, object(1), AccessShare).unwrap();
    let (tell, task) = channel();
    std::thread::scope(|s| {
        let cancelled = s.spawn(|| {
            tell.send(sched::current()).unwrap();
            let owner = patient(&m);
            lock(&owner, object(1), AccessExclusive).unwrap_err()
        });
        let task = task.recv().unwrap();
        until_waiting(&m, 1);
        let behind = s.spawn(|| {
            let owner = patient(&m);
            lock(&owner, object(1), AccessShare).unwrap()
        });
        until_waiting(&m, 2);
        task.interrupt(Interrupt::Cancel);
        assert_eq!(cancelled.join().unwrap().code(), sqlstate::QUERY_CANCELED);
        assert!(behind.join().unwrap());
    });
}

#[test]
fn weak_and_strong_lockers_never_hold_a_table_together() {
    let m = manager();
    let inside = AtomicI64::new(0);
    let ends = AtomicBool::new(false);
    std::thread::scope(|s| {
        let (m, inside, ends) = (&m, &inside, &ends);
        for i in 0..4 {
            s.spawn(move || {
                let owner = patient(m);
                let mode = [AccessShare, RowShare, RowExclusive][i % 3];
                while !ends.load(Ordering::Relaxed) {
                    lock(&owner, TABLE, mode).unwrap();
                    assert!(inside.fetch_add(1, Ordering::SeqCst) >= 0, "beside a strong lock");
                    lock(&owner, TABLE, AccessShare).unwrap();
                    assert!(inside.fetch_sub(1, Ordering::SeqCst) > 0, "beside a strong lock");
                    end(&owner);
                }
            });
        }
        for _ in 0..2 {
            s.spawn(move || {
                let owner = patient(m);
                for round in 0..2000 {
                    // A relation with another hash, too, so that counters differ.
                    lock(&owner, LockTag::Relation(Oid(5), Oid(round)), Share).unwrap();
                    lock(&owner, TABLE, AccessExclusive).unwrap();
                    assert_eq!(inside.swap(-1000, Ordering::SeqCst), 0, "beside another lock");
                    assert_eq!(inside.swap(0, Ordering::SeqCst), -1000);
                    end(&owner);
                }
                ends.store(true, Ordering::Relaxed);
            });
        }
    });
    assert!(m.locks.snapshot().is_empty());
    let owner = patient(&m);
    lock(&owner, TABLE, AccessShare).unwrap();
    assert!(m.locks.snapshot()[0].fastpath, "no strong locker is counted any more");
}

#[test]
fn rolling_back_to_a_savepoint_gives_back_the_locks_taken_since() {
    let m = manager();
    let (a, b) = (patient(&m), patient(&m));
    let tx = begin(&a);
    lock(&a, object(1), Exclusive).unwrap();
    let level = tx.savepoint();
    lock(&a, object(2), Exclusive).unwrap();
    lock(&a, TABLE, AccessShare).unwrap();
    let inner = tx.savepoint();
    lock(&a, object(3), Exclusive).unwrap();
    tx.release(inner);
    assert!(!try_lock(&b, object(3), Share));
    tx.rollback_to(level);
    assert!(try_lock(&b, object(2), Share) && try_lock(&b, object(3), Share));
    assert!(try_lock(&b, TABLE, AccessExclusive));
    assert!(!try_lock(&b, object(1), Share));
    lock(&a, object(4), Exclusive).unwrap();
    tx.release(level);
    assert!(!try_lock(&b, object(4), Share));
    tx.commit(&[], |_| ()).unwrap();
    assert!(try_lock(&b, object(1), Share) && try_lock(&b, object(4), Share));
}

#[test]
fn session_locks_outlive_transactions_and_are_counted() {
    let m = manager();
    let (a, b) = (patient(&m), patient(&m));
    let key = LockTag::Advisory(Oid(5), 42);
    let tx = begin(&a);
    assert!(m.locks.lock_session(&a, key, Exclusive, LockWait::Block).unwrap());
    assert!(m.locks.lock_session(&a, key, Exclusive, LockWait::Block).unwrap());
    lock(&a, key, Exclusive).unwrap();
    tx.abort();
    assert!(!try_lock(&b, key, Share));
    assert!(m.locks.unlock_session(&a, key, Exclusive));
    assert!(!try_lock(&b, key, Share));
    assert!(m.locks.unlock_session(&a, key, Exclusive));
    assert!(!m.locks.unlock_session(&a, key, Exclusive));
    assert!(try_lock(&b, key, Share));
    end(&b);
    m.locks.lock_session(&a, key, Exclusive, LockWait::Block).unwrap();
    m.locks.unlock_session_all(&a);
    assert!(try_lock(&b, key, Share));
    end(&b);
    m.locks.lock_session(&a, key, Exclusive, LockWait::Block).unwrap();
    drop((tx, a));
    assert!(try_lock(&b, key, Share), "the end of the session gives it back");
}

#[test]
fn one_hold_can_be_given_back_early() {
    let m = manager();
    let (a, b) = (patient(&m), patient(&m));
    let row = LockTag::Tuple(RelId(7), TupleId { block: 1, offset: 2 });
    lock(&a, row, Exclusive).unwrap();
    lock(&a, row, Exclusive).unwrap();
    assert!(m.locks.unlock(&a, row, Exclusive));
    assert!(!try_lock(&b, row, Exclusive));
    assert!(m.locks.unlock(&a, row, Exclusive));
    assert!(try_lock(&b, row, Exclusive));
    assert!(!m.locks.unlock(&a, row, Exclusive));
}

#[test]
fn waiting_for_a_transaction_ends_with_it_or_with_its_savepoint() {
    let m = manager();
    let a = patient(&m);
    let tx = begin(&a);
    let top = tx.xid().unwrap();
    let level = tx.savepoint();
    let sub = tx.xid().unwrap();
    assert!(!m.locks.wait_for_xid(&patient(&m), sub, LockWait::Try).unwrap());
    std::thread::scope(|s| {
        let wait_for = |xid| {
            s.spawn({
                let m = &m;
                move || m.locks.lock(&patient(m), LockTag::Xid(xid), Share, LockWait::Block)
            })
        };
        let for_sub = wait_for(sub);
        until_waiting(&m, 1);
        let for_top = wait_for(top);
        until_waiting(&m, 2);
        tx.rollback_to(level);
        assert!(for_sub.join().unwrap().unwrap());
        until_waiting(&m, 1);
        tx.commit(&[], |_| ()).unwrap();
        assert!(for_top.join().unwrap().unwrap());
    });
    assert!(m.locks.wait_for_xid(&a, top, LockWait::Block).unwrap());
}

#[test]
fn many_waiters_for_many_short_transactions_lose_no_wake_up() {
    let m = manager();
    let newest = std::sync::atomic::AtomicU64::new(0);
    std::thread::scope(|s| {
        s.spawn(|| {
            let owner = patient(&m);
            for _ in 0..20_000 {
                let tx = begin(&owner);
                newest.store(tx.xid().unwrap().0, Ordering::SeqCst);
                tx.commit(&[], |_| ()).unwrap();
            }
            newest.store(u64::MAX, Ordering::SeqCst);
        });
        for _ in 0..3 {
            s.spawn(|| {
                let owner = patient(&m);
                loop {
                    let xid = newest.load(Ordering::SeqCst);
                    if xid == u64::MAX {
                        break;
                    }
                    m.locks.wait_for_xid(&owner, base::Xid(xid), LockWait::Block).unwrap();
                }
            });
        }
    });
}

const ROWS: RelId = RelId(30000);
const ROW: TupleId = TupleId { block: 4, offset: 7 };
const NEXT: TupleId = TupleId { block: 900, offset: 1 };

#[test]
fn shared_row_locks_last_as_long_as_their_transaction() {
    use RowLockMode::*;
    let m = manager();
    let (a, b) = (patient(&m), patient(&m));
    let tx = begin(&a);
    let xid = tx.xid().unwrap();
    m.locks.share_row(&a, xid, ROWS, ROW, KeyShare);
    assert_eq!(m.locks.row_sharers(ROWS, ROW, Update, &b), [xid]);
    assert!(m.locks.row_sharers(ROWS, ROW, NoKeyUpdate, &b).is_empty());
    assert!(m.locks.row_sharers(ROWS, ROW, Update, &a).is_empty(), "not against oneself");
    m.locks.share_row(&a, xid, ROWS, ROW, Share);
    m.locks.share_row(&a, xid, ROWS, ROW, KeyShare);
    assert_eq!(m.locks.row_sharers(ROWS, ROW, NoKeyUpdate, &b), [xid]);
    m.locks.copy_row_sharers(ROWS, ROW, NEXT);
    assert_eq!(m.locks.row_sharers(ROWS, NEXT, NoKeyUpdate, &b), [xid]);
    tx.commit(&[], |_| ()).unwrap();
    for row in [ROW, NEXT] {
        assert!(m.locks.row_sharers(ROWS, row, Update, &b).is_empty());
    }
    assert_eq!(m.locks.rows.left(), 0, "nothing stays behind");
}

#[test]
fn shared_row_locks_of_a_savepoint_go_with_it() {
    use RowLockMode::*;
    let m = manager();
    let (a, b) = (patient(&m), patient(&m));
    let tx = begin(&a);
    m.locks.share_row(&a, tx.xid().unwrap(), ROWS, ROW, KeyShare);
    let level = tx.savepoint();
    m.locks.share_row(&a, tx.xid().unwrap(), ROWS, ROW, Share);
    m.locks.copy_row_sharers(ROWS, ROW, NEXT);
    tx.rollback_to(level);
    for row in [ROW, NEXT] {
        assert!(m.locks.row_sharers(ROWS, row, NoKeyUpdate, &b).is_empty());
        assert_eq!(m.locks.row_sharers(ROWS, row, Update, &b), [tx.top_xid().unwrap()]);
    }
    drop(tx);
    assert_eq!(m.locks.rows.left(), 0);
}

#[test]
fn shared_row_locks_carried_over_while_their_transaction_ends_leave_nothing_behind() {
    let m = manager();
    let ends = AtomicBool::new(false);
    std::thread::scope(|s| {
        s.spawn(|| {
            let owner = patient(&m);
            for _ in 0..5000 {
                let tx = begin(&owner);
                m.locks.share_row(&owner, tx.xid().unwrap(), ROWS, ROW, RowLockMode::Share);
                tx.commit(&[], |_| ()).unwrap();
            }
            ends.store(true, Ordering::SeqCst);
        });
        for offset in [1, 2] {
            let (m, ends) = (&m, &ends);
            s.spawn(move || {
                while !ends.load(Ordering::SeqCst) {
                    m.locks.copy_row_sharers(ROWS, ROW, TupleId { block: 5, offset });
                }
            });
        }
    });
    assert_eq!(m.locks.rows.left(), 0);
}

#[test]
fn the_list_of_locks_shows_who_holds_and_who_waits_for_whom() {
    let m = manager();
    let (a, b, c) = (patient(&m), patient(&m), patient(&m));
    let tx = begin(&a);
    let xid = tx.xid().unwrap();
    lock(&a, TABLE, AccessShare).unwrap();
    lock(&a, object(1), Share).unwrap();
    std::thread::scope(|s| {
        let first = s.spawn(|| lock(&b, object(1), Exclusive).unwrap());
        until_waiting(&m, 1);
        let last = s.spawn(|| {
            lock(&c, object(1), Exclusive).unwrap();
            end(&c);
        });
        until_waiting(&m, 2);
        let rows = m.locks.snapshot();
        let find = |pid, tag| rows.iter().find(|r| r.pid == pid && r.tag == tag).unwrap();
        assert!(find(a.pid(), TABLE).fastpath && find(a.pid(), TABLE).granted);
        assert_eq!(find(a.pid(), LockTag::Xid(xid)).mode, Exclusive);
        let wait = find(b.pid(), object(1));
        assert!(!wait.granted && wait.wait_start.is_some());
        assert_eq!(m.locks.blocking_pids(a.pid()), Vec::<i32>::new());
        assert_eq!(m.locks.blocking_pids(b.pid()), [a.pid()]);
        assert_eq!(m.locks.blocking_pids(c.pid()), [a.pid(), b.pid()]);
        tx.commit(&[], |_| ()).unwrap();
        assert!(first.join().unwrap());
        assert_eq!(m.locks.blocking_pids(c.pid()), [b.pid()]);
        end(&b);
        last.join().unwrap();
    });
}

/// Sessions do everything at once, in any order, with deadlocks, timeouts, cancels and savepoints. In
/// the end nothing may be left of any lock, and everyone must have come to an end.
#[test]
fn nothing_is_left_of_sessions_that_did_everything_at_once() {
    let m = manager();
    let tasks = Mutex::new(Vec::new());
    let running = AtomicI64::new(5);
    let start = std::sync::Barrier::new(5);
    std::thread::scope(|s| {
        for thread in 0..5u64 {
            let (m, tasks, running, start) = (&m, &tasks, &running, &start);
            s.spawn(move || {
                tasks.lock().unwrap().push(sched::current());
                let owner = session(m);
                owner.deadlock_timeout_ms.store(1, Ordering::Relaxed);
                start.wait();
                let mut seed = thread;
                let mut random = move |n: u64| {
                    seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    (seed >> 33) % n
                };
                for _ in 0..400 {
                    owner.lock_timeout_ms.store(random(4) * 10, Ordering::Relaxed);
                    do_something(&owner, &mut random);
                    m.locks.unlock_session_all(&owner);
                    sched::current().clear_interrupt(Interrupt::Cancel);
                }
                running.fetch_sub(1, Ordering::SeqCst);
            });
        }
        let mut turn = 0;
        while running.load(Ordering::SeqCst) > 0 {
            std::thread::yield_now();
            let tasks = tasks.lock().unwrap();
            if let Some(task) = tasks.get(turn / 5000).filter(|_| turn % 5000 == 0) {
                task.interrupt(Interrupt::Cancel);
            }
            turn = (turn + 1) % 25_000;
        }
    });
    m.locks.assert_empty();
}

/// One transaction with random steps; errors roll it back, or a savepoint of it.
fn do_something(owner: &Arc<LockOwner>, random: &mut impl FnMut(u64) -> u64) {
    let m = owner.manager();
    let tx = begin(owner);
    let mut levels = Vec::new();
    for _ in 0..random(12) {
        std::thread::yield_now();
        let mode = LockMode::ALL[random(8) as usize];
        let result = match random(8) {
            0 => lock(owner, LockTag::Relation(Oid(5), Oid(random(3) as u32)), mode),
            1 => lock(owner, object(random(3)), mode),
            2 => m.locks.lock(owner, object(random(3)), mode, LockWait::Try),
            3 => {
                let key = LockTag::Advisory(Oid(5), random(2) as i64);
                m.locks.lock_session(owner, key, mode, LockWait::Block)
            }
            4 => {
                let xid = base::Xid(m.next_xid().0 - 1 - random(3).min(m.next_xid().0 - 1));
                match tx.is_mine(xid) {
                    true => Ok(true),
                    false => m.locks.wait_for_xid(owner, xid, LockWait::Block),
                }
            }
            5 => {
                let row = TupleId { block: random(2) as u32, offset: 1 };
                m.locks.share_row(owner, tx.xid().unwrap(), ROWS, row, RowLockMode::Share);
                m.locks.copy_row_sharers(ROWS, row, TupleId { block: 1, offset: 2 });
                Ok(true)
            }
            6 => {
                levels.push(tx.savepoint());
                Ok(true)
            }
            _ => {
                if let Some(level) = levels.pop() {
                    tx.release(level);
                }
                Ok(true)
            }
        };
        if result.is_err() {
            sched::current().clear_interrupt(Interrupt::Cancel);
            match levels.last() {
                Some(&level) => tx.rollback_to(level),
                None => return,
            }
        }
    }
    if random(3) > 0 {
        tx.commit(&[], |_| ()).unwrap();
    }
}
