//! Stops without warning: what was committed and flushed is there, the rest is not, heap and
//! indexes agree.

mod common;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use base::TupleId;
use common::{Db, Table, commit};

#[test]
fn committed_rows_survive_and_others_do_not() {
    let mut db = Db::new();
    let table = Table::create(&db, 100);
    let rels = table.rels();
    let mut expected = Vec::new();
    let mut table = Some(table);
    for round in 0..5 {
        let current = table.take().unwrap();
        let acknowledged = Mutex::new(Vec::new());
        let in_doubt = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for number in 0..4 {
                let (db, table, acknowledged, in_doubt) = (&db, &current, &acknowledged, &in_doubt);
                scope.spawn(move || {
                    let session = db.session();
                    for i in 0..60 {
                        let key = round * 100_000 + number * 1000 + i;
                        let tx = session.begin();
                        assert!(table.insert(&tx, key, i).unwrap());
                        if i % 7 == 0 {
                            continue;
                        }
                        let lsn = tx.commit(&[], |_| {}).unwrap();
                        if i % 3 == 0 {
                            db.storage.wal.flush(lsn).unwrap();
                            acknowledged.lock().unwrap().push((key, i));
                        } else {
                            in_doubt.lock().unwrap().push((key, i));
                        }
                    }
                });
            }
        });
        drop(current);
        db = db.crash();
        let current = Table::open(&db, rels, 100);
        current.check(&db);
        let session = db.session();
        let tx = session.begin();
        let rows = current.scan(&tx, &tx.snapshot()).unwrap();
        let maybe = in_doubt.into_inner().unwrap();
        for row in expected.iter().chain(&acknowledged.into_inner().unwrap()) {
            assert!(rows.binary_search(row).is_ok(), "{row:?} was acknowledged and is lost");
        }
        for row in &rows {
            let known = row.0 / 100_000 < round || row.1 % 7 != 0;
            assert!(known, "{row:?} was rolled back and is there");
            assert!(row.0 / 100_000 < round || row.1 % 3 == 0 || maybe.contains(row));
        }
        expected = rows;
        drop(tx);
        drop(session);
        table = Some(current);
    }
    drop(table);
    db.destroy();
}

#[test]
fn a_built_index_survives() {
    let db = Db::new();
    let rel = db.rel();
    let entries = |count: u32| {
        (0..count).map(|i| {
            let tid = TupleId { block: i / 50, offset: (i % 50 + 1) as u16 };
            ((u64::from(i) * 3).to_be_bytes().to_vec(), tid)
        })
    };
    let mut left = entries(30_000);
    let mut next = |key: &mut Vec<u8>| {
        Ok(left.next().map(|(next, tid)| {
            *key = next;
            tid
        }))
    };
    let tree = access::BTree::build(&db.storage, rel, &mut next).unwrap();
    drop(tree);
    db.storage.wal.flush(db.storage.wal.insert_position()).unwrap();
    let db = db.crash();
    let tree = access::BTree::open(&db.storage, rel);
    let report = tree.verify().unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let expected: Vec<_> = entries(30_000).collect();
    assert_eq!(report.entries, expected);
    drop(tree);
    db.destroy();
}

#[test]
fn aborted_work_of_a_crash_is_cleared_by_vacuum() {
    let db = Db::new();
    let table = Table::create(&db, 50);
    let rels = table.rels();
    let session = db.session();
    let tx = session.begin();
    for key in 0..100 {
        assert!(table.insert(&tx, key, key).unwrap());
    }
    commit(tx);
    let tx = session.begin();
    for key in 0..50 {
        assert!(table.update(&tx, key, |v| v + 1000).unwrap());
    }
    for key in 200..300 {
        assert!(table.insert(&tx, key, key).unwrap());
    }
    db.storage.wal.flush(db.storage.wal.insert_position()).unwrap();
    // The transaction is still running when the server stops.
    std::mem::forget(tx);
    drop((session, table));
    let db = db.crash();
    let table = Table::open(&db, rels, 50);
    table.check(&db);
    let stats = table.vacuum(&db);
    assert_eq!((stats.live, stats.removed), (100, 150));
    table.check(&db);
    drop(table);
    db.destroy();
}

/// Rows of a page are all returned without a look at each when the visibility map says that everybody sees them: what
/// it says after a crash must hold, wherever the last checkpoint was.
#[test]
fn a_visibility_map_that_was_saved_says_no_more_than_the_pages() {
    let mut random = 7_u64;
    let mut below = move |n: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) % n
    };
    let mut db = Db::new();
    let mut table = Table::create(&db, 400);
    let rels = table.rels();
    let mut kept = 0;
    for round in 0..40 {
        let session = db.session();
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            if below(2) == 0 {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        db.storage.checkpoint().unwrap();
                    }
                });
            }
            for _ in 0..below(8) {
                match below(4) {
                    0 => assert!(table.vacuum(&db).live <= 660),
                    1 => db.storage.checkpoint().unwrap(),
                    _ => {
                        let tx = session.begin();
                        let first = below(600);
                        for key in first..first + below(60) {
                            let there = table.find(&tx, &tx.snapshot(), key).unwrap().is_some();
                            let done = match below(3) {
                                0 if there => table.delete(&tx, key),
                                _ if there => table.update(&tx, key, |v| v + round % 2),
                                _ => table.insert(&tx, key, round),
                            };
                            assert!(done.unwrap());
                        }
                        if below(4) > 0 {
                            commit(tx);
                        }
                    }
                }
            }
            over.store(true, Ordering::Relaxed);
        });
        if below(2) == 0 {
            db.storage.wal.flush(db.storage.wal.insert_position()).unwrap();
        }
        drop((session, table));
        db = match below(5) {
            0 => db.restart(),
            _ => db.crash(),
        };
        table = Table::open(&db, rels, 400);
        kept += table.heap.visible_pages();
        table.check(&db);
        let session = db.session();
        let tx = session.begin();
        let snapshot = tx.snapshot();
        let rows = table.scan(&tx, &snapshot).unwrap();
        assert_eq!(table.scan_by_map(&tx, &snapshot).unwrap(), rows, "round {round}");
        drop(tx);
        drop(session);
    }
    assert!(kept > 100, "{kept} pages were marked after starts");
    drop(table);
    db.destroy();
}

#[test]
fn a_deletion_that_failed_hides_no_row_with_hint_or_without() {
    let db = Db::new();
    let table = Table::create(&db, 50);
    let session = db.session();
    let tx = session.begin();
    for key in 0..10 {
        assert!(table.insert(&tx, key, key).unwrap());
    }
    commit(tx);
    let tx = session.begin();
    assert!(table.delete(&tx, 3).unwrap());
    drop(tx);
    db.storage.wal.flush(db.storage.wal.insert_position()).unwrap();
    // Nobody has read the row since, so the page doesn't say that its deletion failed.
    table.vacuum(&db);
    assert_eq!(table.heap.visible_pages(), 1);
    let tx = session.begin();
    assert_eq!(table.scan(&tx, &tx.snapshot()).unwrap().len(), 10);
    drop(tx);
    table.check(&db);
    drop((session, table));
    db.destroy();
}

#[test]
fn what_vacuum_found_of_pages_outlives_restart_and_crash() {
    let mut db = Db::new();
    let table = Table::create(&db, 400);
    let rels = table.rels();
    let session = db.session();
    let tx = session.begin();
    for key in 0..2000 {
        assert!(table.insert(&tx, key, key).unwrap());
    }
    commit(tx);
    let tx = session.begin();
    for key in 0..1000 {
        assert!(table.delete(&tx, key).unwrap());
    }
    commit(tx);
    db.storage.wal.flush(db.storage.wal.insert_position()).unwrap();
    table.vacuum(&db);
    let (pages, visible) = (table.heap.pages().unwrap(), table.heap.visible_pages());
    assert!(visible > pages / 3, "{visible} of {pages}");
    db.storage.checkpoint().unwrap();
    drop((session, table));
    for round in 0..3 {
        db = if round == 1 { db.restart() } else { db.crash() };
        let table = Table::open(&db, rels, 400);
        // Rows went to a few pages in the round before.
        assert!(table.heap.visible_pages() + 20 >= visible, "round {round}");
        let session = db.session();
        let tx = session.begin();
        for key in 0..200 {
            assert!(table.insert(&tx, 10_000 + 1000 * round + key, key).unwrap());
        }
        commit(tx);
        assert_eq!(table.heap.pages().unwrap(), pages, "round {round}: the file has grown");
        drop((session, table));
    }
    db.destroy();
}
