//! Hash indexes that grow by splits, with values that many rows have, vacuumed, crashed, built at once.

mod common;

use std::collections::BTreeMap;

use access::{AnyIndex, IndexMethod, Search, Unique, hash::HashIndex};
use base::{AccessMethod, RelId, TupleId};
use common::{Db, Random, commit};

fn row(n: u32) -> TupleId {
    TupleId { block: n / 100, offset: (n % 100 + 1) as u16 }
}

fn key(value: u64) -> Vec<u8> {
    value.to_be_bytes().to_vec()
}

fn found(db: &Db, index: &AnyIndex, value: u64) -> Vec<TupleId> {
    let session = db.session();
    let tx = session.begin();
    let mut rows = Vec::new();
    index.collect(&tx, &Search::Equal(key(value)), &mut |f| rows.push(f.root)).expect("collect");
    drop(tx);
    rows.sort_unstable();
    rows
}

/// Compares an index with the rows that it must lead to, by value.
fn compare(db: &Db, index: &AnyIndex, model: &BTreeMap<u64, Vec<TupleId>>) {
    let report = index.check().expect("check");
    assert!(report.findings.is_empty(), "{:#?}", report.findings);
    assert_eq!(report.entries.len(), model.values().map(Vec::len).sum::<usize>());
    for (value, rows) in model {
        let mut rows = rows.clone();
        rows.sort_unstable();
        assert_eq!(found(db, index, *value), rows, "value {value}");
    }
}

fn filled(db: &Db, rel: RelId, model: &mut BTreeMap<u64, Vec<TupleId>>, rows: u32) -> AnyIndex {
    let index = AnyIndex::create(AccessMethod::Hash, &db.storage, rel).expect("create");
    let mut random = Random(11);
    let session = db.session();
    let tx = session.begin();
    for n in 0..rows {
        // A third of the rows have one of two values.
        let value = match random.below(3) {
            0 => random.below(2),
            _ => random.below(1 << 40),
        };
        index.insert(&tx, &key(value), row(n), Unique::No).expect("insert");
        model.entry(value).or_default().push(row(n));
    }
    commit(tx);
    index
}

#[test]
fn an_index_grows_bucket_by_bucket_and_finds_everything() {
    let db = Db::new();
    let mut model = BTreeMap::new();
    let index = filled(&db, db.rel(), &mut model, 12_000);
    compare(&db, &index, &model);
    // Two thirds of the rows go; what is left moves together, and pages become free.
    let dead = |row: TupleId| !u32::from(row.offset).is_multiple_of(3);
    index.bulk_delete(&dead).expect("delete");
    model.values_mut().for_each(|rows| rows.retain(|row| !dead(*row)));
    compare(&db, &index, &model);
    let before = db.storage.block_count(index.rel(), base::Fork::Main).expect("blocks");
    let session = db.session();
    let tx = session.begin();
    for n in 20_000..24_000 {
        index.insert(&tx, &key(1), row(n), Unique::No).expect("insert");
        model.entry(1).or_default().push(row(n));
    }
    commit(tx);
    compare(&db, &index, &model);
    let after = db.storage.block_count(index.rel(), base::Fork::Main).expect("blocks");
    assert!(after <= before + 8, "{before} pages, then {after}");
    drop(session);
    db.destroy();
}

#[test]
fn a_crash_leaves_all_entries_in_place() {
    let mut db = Db::new();
    let mut model = BTreeMap::new();
    let rel = db.rel();
    let index = filled(&db, rel, &mut model, 6_000);
    drop(index);
    db.storage.wal.flush(db.storage.wal.insert_position()).expect("flush");
    db = db.crash();
    let index = AnyIndex::open(AccessMethod::Hash, &db.storage, rel);
    compare(&db, &index, &model);
    let session = db.session();
    let tx = session.begin();
    for n in 10_000..14_000 {
        index.insert(&tx, &key(u64::from(n)), row(n), Unique::No).expect("insert");
        model.entry(u64::from(n)).or_default().push(row(n));
    }
    commit(tx);
    drop(session);
    compare(&db, &index, &model);
    drop(index);
    db.destroy();
}

#[test]
fn an_index_built_at_once_is_one_that_grew() {
    let db = Db::new();
    let mut random = Random(5);
    for rows in [0, 1, 700, 5_000] {
        let mut model: BTreeMap<u64, Vec<TupleId>> = BTreeMap::new();
        let mut entries = Vec::new();
        for n in 0..rows {
            let value = random.below(u64::from(rows / 2 + 1));
            model.entry(value).or_default().push(row(n));
            HashIndex::entries(&key(value), &mut |entry| entries.push((entry.to_vec(), row(n))));
        }
        entries.sort();
        let mut entries = entries.into_iter();
        let (storage, rel) = (&db.storage, db.rel());
        let index =
            AnyIndex::build(AccessMethod::Hash, storage, rel, u64::from(rows), &mut |out| {
                Ok(entries.next().map(|(entry, row)| {
                    *out = entry;
                    row
                }))
            })
            .expect("build");
        compare(&db, &index, &model);
        let session = db.session();
        let tx = session.begin();
        for n in 50_000..51_000 {
            index.insert(&tx, &key(u64::from(n)), row(n), Unique::No).expect("insert");
            model.entry(u64::from(n)).or_default().push(row(n));
        }
        commit(tx);
        drop(session);
        compare(&db, &index, &model);
    }
    db.destroy();
}

#[test]
fn sessions_insert_and_look_up_at_once() {
    let db = Db::new();
    let index = AnyIndex::create(AccessMethod::Hash, &db.storage, db.rel()).expect("create");
    std::thread::scope(|scope| {
        for part in 0..4u32 {
            let (db, index) = (&db, &index);
            scope.spawn(move || {
                let session = db.session();
                let tx = session.begin();
                for n in part * 3_000..(part + 1) * 3_000 {
                    let value = u64::from(n % 5_000);
                    index.insert(&tx, &key(value), row(n), Unique::No).expect("insert");
                    let mut seen = false;
                    let search = Search::Equal(key(value));
                    index.collect(&tx, &search, &mut |f| seen |= f.root == row(n)).expect("look");
                    assert!(seen, "row {n} is not found");
                }
                commit(tx);
            });
        }
    });
    let mut model: BTreeMap<u64, Vec<TupleId>> = BTreeMap::new();
    for n in 0..12_000 {
        model.entry(u64::from(n % 5_000)).or_default().push(row(n));
    }
    compare(&db, &index, &model);
    db.destroy();
}
