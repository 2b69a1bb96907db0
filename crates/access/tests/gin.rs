//! GIN indexes: growth row by row and by the pending list, common and rare entries, searches of several entries,
//! vacuum, crashes, building at once.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use access::gin::{
    Category, EntrySearch, GinIndex, GinKey, GinSearch, Mode, Ternary, entry, put_beginning,
    put_entry,
};
use access::{AnyIndex, IndexMethod, KeyRange, Search, Unique};
use base::{AccessMethod, RelId, TupleId};
use common::{Db, Random, commit};

type Model = BTreeMap<TupleId, BTreeSet<u64>>;

fn row(n: u32) -> TupleId {
    TupleId { block: n / 60, offset: (n % 60 + 1) as u16 }
}

fn word(n: u64) -> Vec<u8> {
    // Some with zeros, one the beginning of another, some long.
    match n % 7 {
        0 => vec![0; n as usize % 5 + 1],
        1 => vec![b'x'; n as usize % 600 + 1],
        _ => n.to_string().into_bytes(),
    }
}

fn key(words: &BTreeSet<u64>) -> Vec<u8> {
    let entries: BTreeSet<Vec<u8>> =
        words.iter().map(|n| entry(0, Category::Key, &word(*n))).collect();
    let mut out = Vec::new();
    entries.iter().for_each(|e| put_entry(&mut out, e));
    out
}

fn words(random: &mut Random) -> BTreeSet<u64> {
    let count = random.below(6) + 1;
    (0..count)
        .map(|_| match random.below(3) {
            0 => random.below(4),
            1 => random.below(300),
            _ => random.below(100_000),
        })
        .collect()
}

/// Rows that have all, or any, of these words.
fn search(words: &[u64], all: bool) -> Search {
    let exact = |n: &u64| EntrySearch::Exact(entry(0, Category::Key, &word(*n)));
    let check = Arc::new(move |present: &[Ternary]| match all {
        true => present.iter().copied().min().unwrap_or(Ternary::True),
        false => present.iter().copied().max().unwrap_or(Ternary::False),
    });
    let entries = words.iter().map(exact).collect();
    let key = GinKey { column: 0, entries, mode: Mode::Default, check };
    Search::Entries(GinSearch { keys: vec![key] })
}

fn found(db: &Db, index: &AnyIndex, search: &Search) -> Vec<TupleId> {
    let session = db.session();
    let tx = session.begin();
    let mut rows = Vec::new();
    index.collect(&tx, search, &mut |f| rows.push(f.root)).expect("collect");
    rows.sort_unstable();
    rows.dedup();
    rows
}

fn expected(model: &Model, wanted: &[u64], all: bool) -> Vec<TupleId> {
    let has = |words: &BTreeSet<u64>, n: &u64| words.iter().any(|w| word(*w) == word(*n));
    let fits = |words: &BTreeSet<u64>| match all {
        true => wanted.iter().all(|n| has(words, n)),
        false => wanted.iter().any(|n| has(words, n)),
    };
    model.iter().filter(|(_, words)| fits(words)).map(|(row, _)| *row).collect()
}

fn compare(db: &Db, index: &AnyIndex, model: &Model) {
    let report = index.check().expect("check");
    assert!(report.findings.is_empty(), "{:#?}", report.findings);
    let mut entries = Vec::new();
    for (row, words) in model {
        index.entries(&key(words), &mut |e| entries.push((e.to_vec(), *row)));
    }
    entries.sort();
    assert!(report.entries == entries, "{} {}", report.entries.len(), entries.len());
    for wanted in [&[0][..], &[1, 2], &[0, 1, 2, 3], &[5, 5000], &[17], &[99_999, 3], &[8, 15]] {
        for all in [true, false] {
            let rows = found(db, index, &search(wanted, all));
            assert_eq!(rows, expected(model, wanted, all), "{wanted:?} {all}");
        }
    }
    let mut from = Vec::new();
    put_beginning(&mut from, 0, Category::Key, b"12");
    let check = Arc::new(|present: &[Ternary]| present[0]);
    let entries = vec![EntrySearch::Range(KeyRange::prefix(&from))];
    let begins = GinKey { column: 0, entries, mode: Mode::Default, check };
    let rows = found(db, index, &Search::Entries(GinSearch { keys: vec![begins] }));
    let fits = |words: &BTreeSet<u64>| words.iter().any(|w| word(*w).starts_with(b"12"));
    let model: Vec<TupleId> =
        model.iter().filter(|(_, words)| fits(words)).map(|(row, _)| *row).collect();
    assert_eq!(rows, model, "a range");
}

fn open(db: &Db, rel: RelId, limit: Option<u64>) -> AnyIndex {
    let mut index = GinIndex::open(&db.storage, rel);
    index.pending_limit = limit;
    AnyIndex::Gin(index)
}

fn add(db: &Db, index: &AnyIndex, model: &mut Model, rows: impl Iterator<Item = u32>) {
    let mut random = Random(u64::from(model.len() as u32) + 3);
    let session = db.session();
    let tx = session.begin();
    for n in rows {
        let words = words(&mut random);
        index.insert(&tx, &key(&words), row(n), Unique::No).expect("insert");
        model.insert(row(n), words);
    }
    commit(tx);
}

#[test]
fn an_index_grows_shrinks_and_grows_again() {
    let db = Db::new();
    let rel = db.rel();
    AnyIndex::create(AccessMethod::Gin, &db.storage, rel).expect("create");
    let mut model = Model::new();
    for limit in [None, Some(20_000)] {
        let index = open(&db, rel, limit);
        let base = model.len() as u32 * 2;
        add(&db, &index, &mut model, (base..base + 2_500).rev());
        compare(&db, &index, &model);
        add(&db, &index, &mut model, base + 2_500..base + 5_000);
        compare(&db, &index, &model);
        let dead = |row: TupleId| u32::from(row.offset) % 3 != 1;
        index.bulk_delete(&dead).expect("delete");
        model.retain(|row, _| !dead(*row));
        compare(&db, &index, &model);
        index.clean_up(&db.manager).expect("clean up");
        compare(&db, &index, &model);
        // The places of rows that went are taken again.
        let free = (base..base + 5_000).filter(|n| dead(row(*n)) && n % 2 == 0);
        add(&db, &index, &mut model, free);
        compare(&db, &index, &model);
    }
    db.destroy();
}

#[test]
fn a_crash_loses_nothing_wherever_rows_are() {
    let mut db = Db::new();
    let rel = db.rel();
    AnyIndex::create(AccessMethod::Gin, &db.storage, rel).expect("create");
    let mut model = Model::new();
    for limit in [Some(u64::MAX), None, Some(5_000)] {
        let index = open(&db, rel, limit);
        let base = model.len() as u32;
        add(&db, &index, &mut model, base..base + 1_500);
        drop(index);
        db.storage.wal.flush(db.storage.wal.insert_position()).expect("flush");
        db = db.crash();
        compare(&db, &open(&db, rel, limit), &model);
    }
    db.destroy();
}

#[test]
fn an_index_built_at_once_is_one_that_grew() {
    let db = Db::new();
    let mut random = Random(5);
    for rows in [0, 1, 40, 4_000] {
        let mut model = Model::new();
        let mut entries = Vec::new();
        for n in 0..rows {
            let words = words(&mut random);
            GinIndex::entries(&key(&words), &mut |e| entries.push((e.to_vec(), row(n))));
            model.insert(row(n), words);
        }
        entries.sort();
        let mut entries = entries.into_iter();
        let (storage, rel) = (&db.storage, db.rel());
        let index = AnyIndex::build(AccessMethod::Gin, storage, rel, u64::from(rows), &mut |out| {
            Ok(entries.next().map(|(entry, row)| {
                *out = entry;
                row
            }))
        })
        .expect("build");
        compare(&db, &index, &model);
        add(&db, &index, &mut model, 10_000..11_000);
        compare(&db, &index, &model);
    }
    db.destroy();
}

#[test]
fn sessions_insert_search_and_flush_at_once() {
    let db = Db::new();
    let rel = db.rel();
    AnyIndex::create(AccessMethod::Gin, &db.storage, rel).expect("create");
    let models: Vec<Model> = std::thread::scope(|scope| {
        let work = |part: u32| {
            let db = &db;
            move || {
                let index = open(db, rel, (part % 2 == 0).then_some(3_000));
                let mut model = Model::new();
                let session = db.session();
                let tx = session.begin();
                let mut random = Random(u64::from(part) + 1);
                for n in part * 1_000..(part + 1) * 1_000 {
                    let words = words(&mut random);
                    index.insert(&tx, &key(&words), row(n), Unique::No).expect("insert");
                    let wanted = search(&words.iter().copied().collect::<Vec<_>>(), true);
                    let mut seen = false;
                    index.collect(&tx, &wanted, &mut |f| seen |= f.root == row(n)).expect("look");
                    assert!(seen, "row {n} is not found");
                    model.insert(row(n), words);
                }
                commit(tx);
                model
            }
        };
        let parts: Vec<_> = (0..4).map(|part| scope.spawn(work(part))).collect();
        parts.into_iter().map(|part| part.join().expect("no panic")).collect()
    });
    let model = models.into_iter().flatten().collect();
    compare(&db, &open(&db, rel, None), &model);
    db.destroy();
}
