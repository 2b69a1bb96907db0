//! Heap and indexes against a map in memory, under random changes with rollbacks, savepoints,
//! vacuum and crashes.

mod common;

use std::collections::BTreeMap;

use access::KeyRange;
use common::{Db, Random, Table, commit};

/// One random history in one session; the model is compared after every transaction.
fn history(seed: u64, steps: usize, keys: u64, pad: usize) {
    let mut db = Db::new();
    let mut table = Table::create(&db, pad);
    let rels = table.rels();
    let mut random = Random(seed);
    let mut model: BTreeMap<u64, u64> = BTreeMap::new();
    let mut session = db.session();
    for step in 0..steps {
        let tx = session.begin();
        let mut copy = model.clone();
        for _ in 0..random.below(12) + 1 {
            let before = copy.clone();
            let savepoint = (random.below(4) == 0).then(|| tx.savepoint());
            change(&table, &tx, &mut copy, &mut random, keys);
            tx.next_command();
            if let Some(level) = savepoint {
                if random.below(2) == 0 {
                    tx.rollback_to(level);
                    copy = before;
                } else {
                    tx.release(level);
                }
            }
            tx.end_statement();
        }
        if random.below(4) == 0 {
            drop(tx);
        } else {
            commit(tx);
            model = copy;
        }
        match random.below(60) {
            0 => {
                table.vacuum(&db);
                table.check(&db);
            }
            1 if step > steps / 2 => {
                drop(session);
                drop(table);
                // An acknowledged commit is durable; the test's commits are not waited for.
                db.storage.wal.flush(db.storage.wal.insert_position()).expect("flush");
                db = db.crash();
                table = Table::open(&db, rels, pad);
                session = db.session();
                table.check(&db);
            }
            _ => {}
        }
        compare(&table, &session, &model);
    }
    table.check(&db);
    let stats = table.vacuum(&db);
    assert_eq!(stats.live, model.len() as u64);
    table.check(&db);
    compare(&table, &session, &model);
    drop((session, table));
    db.destroy();
}

fn change(
    table: &Table,
    tx: &txn::Transaction,
    model: &mut BTreeMap<u64, u64>,
    random: &mut Random,
    keys: u64,
) {
    let key = random.below(keys);
    match random.below(8) {
        0..=2 if !model.contains_key(&key) => {
            let value = random.below(20);
            assert!(table.insert(tx, key, value).expect("insert"));
            model.insert(key, value);
        }
        3 => {
            assert_eq!(table.delete(tx, key).expect("delete"), model.remove(&key).is_some());
        }
        4 => {
            let value = random.below(20);
            let there = table.update(tx, key, |_| value).expect("update");
            assert_eq!(there, model.get_mut(&key).map(|v| *v = value).is_some());
        }
        _ => {
            // Touches no indexed column: the new version stays in the chain if there is room.
            assert_eq!(table.update(tx, key, |v| v).expect("update"), model.contains_key(&key));
        }
    }
}

fn compare(table: &Table, session: &common::Session, model: &BTreeMap<u64, u64>) {
    let tx = session.begin();
    compare_in(table, &tx, &tx.snapshot(), model);
    tx.end_statement();
}

/// Whether a snapshot sees just what the model says, by all ways.
fn compare_in(
    table: &Table,
    tx: &txn::Transaction,
    snapshot: &txn::Snapshot,
    model: &BTreeMap<u64, u64>,
) {
    let expected: Vec<(u64, u64)> = model.iter().map(|(&k, &v)| (k, v)).collect();
    assert_eq!(table.scan(tx, snapshot).unwrap(), expected, "sequential scan");
    let all = KeyRange::default;
    let forward = table.index_scan(tx, snapshot, &table.by_key, all(), false).unwrap();
    assert_eq!(forward, expected, "index scan");
    let mut backward = table.index_scan(tx, snapshot, &table.by_key, all(), true).unwrap();
    backward.reverse();
    assert_eq!(backward, expected, "backward index scan");
    let mut by_value = table.index_scan(tx, snapshot, &table.by_value, all(), false).unwrap();
    by_value.sort_unstable();
    assert_eq!(by_value, expected, "scan of the other index");
    for value in expected.iter().map(|row| row.1) {
        let with: Vec<_> = expected.iter().copied().filter(|row| row.1 == value).collect();
        assert_eq!(table.with_value(&tx, &snapshot, value).unwrap(), with, "look-up by hash");
    }
    for (&key, &value) in model.iter().take(5) {
        let found = table.find(tx, snapshot, key).unwrap().map(|f| f.value);
        assert_eq!(found, Some(value));
    }
}

/// A snapshot that is held, with what it must see.
struct Held {
    session: common::Session,
    tx: txn::Transaction,
    snapshot: txn::Snapshot,
    model: BTreeMap<u64, u64>,
    until: usize,
}

/// As [`history`] with snapshots that are taken and given up at random, some after a few transactions,
/// some held to the end: each must see what was there when it was taken, whatever is pruned.
fn history_with_snapshots(seed: u64, steps: usize, keys: u64, pad: usize) {
    let db = Db::new();
    let table = Table::create(&db, pad);
    let mut random = Random(seed);
    let mut model: BTreeMap<u64, u64> = BTreeMap::new();
    let session = db.session();
    let mut held: Vec<Held> = Vec::new();
    for step in 0..steps {
        let tx = session.begin();
        let mut copy = model.clone();
        for _ in 0..random.below(6) + 1 {
            change(&table, &tx, &mut copy, &mut random, keys);
            tx.next_command();
            tx.end_statement();
        }
        if random.below(5) == 0 {
            drop(tx);
        } else {
            commit(tx);
            model = copy;
        }
        if random.below(8) == 0 && held.len() < 6 {
            let session = db.session();
            let tx = session.begin_rr();
            let snapshot = tx.snapshot();
            let far = [3, 30, steps as u64][random.below(3) as usize];
            let until = step + random.below(far) as usize;
            held.push(Held { session, tx, snapshot, model: model.clone(), until });
        }
        if random.below(12) == 0 {
            table.vacuum(&db);
            table.check(&db);
        }
        let some = random.below(6) as usize;
        if let Some(held) = held.get(some) {
            compare_in(&table, &held.tx, &held.snapshot, &held.model);
        }
        held.retain(|held| held.until > step);
        compare(&table, &session, &model);
    }
    for held in held {
        compare_in(&table, &held.tx, &held.snapshot, &held.model);
        drop((held.tx, held.session));
    }
    table.vacuum(&db);
    let stats = table.vacuum(&db);
    assert_eq!((stats.live, stats.kept), (model.len() as u64, 0));
    table.check(&db);
    compare(&table, &session, &model);
    drop((session, table));
    db.destroy();
}

#[test]
fn few_keys_with_large_rows() {
    history(0x9E37_79B9, 400, 12, 900);
}

#[test]
fn many_keys_with_small_rows() {
    history(0xDEAD_BEEF, 400, 300, 20);
}

#[test]
fn other_seeds() {
    for seed in 1..6 {
        history(seed * 7919, 120, 40, 200);
    }
}

#[test]
fn no_snapshot_ever_sees_another_set_of_rows() {
    for seed in 1..5 {
        history_with_snapshots(seed * 104_729, 250, 8, 300);
        history_with_snapshots(seed * 15_485_863, 250, 40, 900);
        history_with_snapshots(seed * 32_452_843, 250, 3, 20);
    }
}
