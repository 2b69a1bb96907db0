//! The B-tree by itself, against a sorted map, and with concurrent inserters and readers.

mod common;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use access::{BTree, KeyRange, Unique};
use base::{TupleId, sqlstate};
use common::{Db, Random};
use txn::Transaction;

fn tid(number: u64) -> TupleId {
    TupleId { block: (number / 100) as u32, offset: (number % 100 + 1) as u16 }
}

fn verify(tree: &BTree) -> Vec<(Vec<u8>, TupleId)> {
    let report = tree.verify().unwrap();
    assert!(report.findings.is_empty(), "{:#?}", report.findings);
    report.entries
}

/// Keys of very different lengths, many with the same beginning.
fn key(random: &mut Random) -> Vec<u8> {
    let len = match random.below(20) {
        0 => random.below(2600),
        1..=4 => random.below(200),
        _ => random.below(12),
    };
    (0..len).map(|i| if i < 3 { b'x' } else { random.below(3) as u8 * 120 }).collect()
}

#[test]
fn random_entries_against_a_set() {
    let db = Db::new();
    let tree = BTree::create(&db.storage, db.rel()).unwrap();
    let session = db.session();
    let tx = session.begin();
    let mut random = Random(42);
    let mut model = BTreeSet::new();
    for round in 0..6 {
        for i in 0..1500 {
            let entry = (key(&mut random), tid(random.below(500)));
            tree.insert(&tx, &entry.0, entry.1, Unique::No).unwrap();
            model.insert(entry);
            if i % 500 == 0 {
                let expected: Vec<_> = model.iter().cloned().collect();
                assert_eq!(verify(&tree), expected);
            }
        }
        let cut = random.below(500);
        let dead = |t: TupleId| t > tid(cut) && t < tid(cut + 100);
        let before = model.len();
        model.retain(|e| !dead(e.1));
        let removed = tree.bulk_delete(&dead).unwrap();
        assert_eq!(removed as usize, before - model.len(), "round {round}");
        for _ in 0..50 {
            let (mut from, mut to) = (key(&mut random), key(&mut random));
            if from > to {
                std::mem::swap(&mut from, &mut to);
            }
            let to = (random.below(4) > 0).then_some(to);
            let in_range = |k: &Vec<u8>| *k >= from && to.as_ref().is_none_or(|to| k < to);
            let expected: Vec<_> = model.iter().filter(|e| in_range(&e.0)).cloned().collect();
            let range = KeyRange { from: from.clone(), to: to.clone() };
            assert_eq!(collect(&tx, &tree, range.clone(), false), expected);
            let mut backward = collect(&tx, &tree, range, true);
            backward.reverse();
            assert_eq!(backward, expected);
            let expected: Vec<TupleId> =
                model.iter().filter(|e| e.0 == from).map(|e| e.1).collect();
            let mut found = Vec::new();
            tree.lookup(&tx, &from, |t| {
                found.push(t);
                true
            })
            .unwrap();
            assert_eq!(found, expected);
        }
    }
    drop(tx);
    drop((session, tree));
    db.destroy();
}

fn collect(
    tx: &Transaction,
    tree: &BTree,
    range: KeyRange,
    backward: bool,
) -> Vec<(Vec<u8>, TupleId)> {
    let mut found = Vec::new();
    let mut cursor = tree.scan(range, backward);
    while let Some((key, tid)) = cursor.next(tx).unwrap() {
        found.push((key.to_vec(), tid));
    }
    found
}

#[test]
fn many_duplicates_of_one_key() {
    let db = Db::new();
    let tree = BTree::create(&db.storage, db.rel()).unwrap();
    let session = db.session();
    let tx = session.begin();
    for i in 0..5000 {
        tree.insert(&tx, b"same", tid(i * 37 % 5000), Unique::No).unwrap();
    }
    assert_eq!(verify(&tree).len(), 5000);
    let mut found = Vec::new();
    tree.lookup(&tx, b"same", |t| {
        found.push(t);
        true
    })
    .unwrap();
    assert_eq!(found.len(), 5000);
    assert!(found.is_sorted());
    drop(tx);
    drop((session, tree));
    db.destroy();
}

#[test]
fn ascending_keys_fill_their_pages() {
    let db = Db::new();
    let tree = BTree::create(&db.storage, db.rel()).unwrap();
    let session = db.session();
    let tx = session.begin();
    for i in 0..20_000u64 {
        tree.insert(&tx, &i.to_be_bytes(), tid(i), Unique::No).unwrap();
    }
    let report = tree.verify().unwrap();
    assert!(report.findings.is_empty());
    // 18 bytes each, nine tenths full.
    assert!(report.pages < 20_000 / 380 + 5, "{} pages", report.pages);
    drop(tx);
    drop((session, tree));
    db.destroy();
}

#[test]
fn too_long_keys_are_refused() {
    let db = Db::new();
    let tree = BTree::create(&db.storage, db.rel()).unwrap();
    let session = db.session();
    let tx = session.begin();
    let error = tree.insert(&tx, &[1; 3000], tid(1), Unique::No).unwrap_err();
    assert_eq!(error.code(), sqlstate::PROGRAM_LIMIT_EXCEEDED);
    drop(tx);
    drop((session, tree));
    db.destroy();
}

#[test]
fn readers_miss_nothing_while_pages_split() {
    let db = Db::new();
    let tree = BTree::create(&db.storage, db.rel()).unwrap();
    let session = db.session();
    let tx = session.begin();
    // Even numbers are there from the beginning, odd ones come while readers run.
    for i in 0..2000u64 {
        tree.insert(&tx, &(i * 2).to_be_bytes(), tid(i), Unique::No).unwrap();
    }
    let stop = AtomicBool::new(false);
    let rounds = AtomicU64::new(0);
    thread::scope(|scope| {
        for backward in [false, true] {
            let (db, tree, stop, rounds) = (&db, &tree, &stop, &rounds);
            scope.spawn(move || {
                let session = db.session();
                let tx = session.begin();
                while !stop.load(Ordering::Relaxed) || rounds.load(Ordering::Relaxed) < 4 {
                    let mut even = Vec::new();
                    let mut cursor = tree.scan(KeyRange::default(), backward);
                    while let Some((key, _)) = cursor.next(&tx).unwrap() {
                        let number = u64::from_be_bytes(key.try_into().unwrap());
                        if number % 2 == 0 {
                            even.push(number / 2);
                        }
                    }
                    if backward {
                        even.reverse();
                    }
                    assert!(even.iter().copied().eq(0..2000), "{} even keys", even.len());
                    rounds.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let writers: Vec<_> = (0..3u64)
            .map(|number| {
                let (db, tree) = (&db, &tree);
                scope.spawn(move || {
                    let session = db.session();
                    let tx = session.begin();
                    let mut random = Random(number + 5);
                    for _ in 0..4000 {
                        let key = random.below(2000) * 2 + 1;
                        let row = tid(100_000 + random.below(100_000));
                        tree.insert(&tx, &key.to_be_bytes(), row, Unique::No).unwrap();
                        let even = random.below(2000);
                        let mut hits = 0;
                        tree.lookup(&tx, &(even * 2).to_be_bytes(), |t| {
                            assert_eq!(t, tid(even));
                            hits += 1;
                            true
                        })
                        .unwrap();
                        assert_eq!(hits, 1);
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.join().unwrap();
        }
        stop.store(true, Ordering::Relaxed);
    });
    verify(&tree);
    drop(tx);
    drop((session, tree));
    db.destroy();
}
