//! GiST and BRIN: trees that grow beside readers, are vacuumed, built at once and crashed at any record; summaries that
//! hide no row.

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use access::brin::{BrinIndex, BrinSearch, SummaryOps};
use access::gist::{Distances, GistIndex, TreeOps, TreeSearch};
use access::vector::ByDistance;
use access::{AnyIndex, IndexMethod, Search, Unique};
use base::ternary::Ternary;
use base::{AccessMethod, RelId, Result, TupleId};
use common::{Db, Random, commit};

/// Keys of these tests: the least and the greatest of some numbers.
struct Spans;

fn read(key: &[u8]) -> (u64, u64) {
    let at = |from: usize| key[from..from + 8].try_into().map_or(0, u64::from_be_bytes);
    (at(0), at(8))
}

fn span(from: u64, to: u64) -> Vec<u8> {
    [from.to_be_bytes(), to.to_be_bytes()].concat()
}

fn cover(keys: &[&[u8]]) -> Vec<u8> {
    let spans = keys.iter().map(|key| read(key));
    let (from, to) = spans.fold((u64::MAX, 0), |(a, b), (from, to)| (a.min(from), b.max(to)));
    span(from, to)
}

impl TreeOps for Spans {
    fn choose(&self, covers: &[&[u8]], new: &[u8]) -> Result<usize> {
        let growth = |key: &[u8]| {
            let ((from, to), (least, most)) = (read(key), read(&cover(&[key, new])));
            (most - least) - (to - from)
        };
        Ok((0..covers.len()).min_by_key(|n| growth(covers[*n])).unwrap_or_default())
    }

    fn union(&self, keys: &[&[u8]]) -> Result<Vec<u8>> {
        Ok(cover(keys))
    }

    fn split(&self, keys: &[&[u8]]) -> Result<Vec<bool>> {
        let mut order: Vec<usize> = (0..keys.len()).collect();
        order.sort_by_key(|n| read(keys[*n]));
        let mut right = vec![false; keys.len()];
        order[keys.len() / 2..].iter().for_each(|n| right[*n] = true);
        Ok(right)
    }

    fn is_sortable(&self) -> bool {
        true
    }
}

type Model = BTreeMap<TupleId, u64>;

fn row(n: u32) -> TupleId {
    TupleId { block: n / 100, offset: (n % 100 + 1) as u16 }
}

fn open(db: &Db, rel: RelId) -> AnyIndex {
    let mut tree = GistIndex::open(&db.storage, rel, AccessMethod::Gist);
    tree.ops = Some(Arc::new(Spans));
    AnyIndex::Gist(tree)
}

fn within(from: u64, to: u64) -> TreeSearch {
    let check = move |key: &[u8], _: bool| {
        let (least, most) = read(key);
        Ok(if least <= to && from <= most { Ternary::True } else { Ternary::False })
    };
    TreeSearch { check: Arc::new(check), distance: None }
}

fn nearest_to(at: u64) -> TreeSearch {
    let distance = move |key: &[u8], _: bool, all: &mut Distances| {
        let (least, most) = read(key);
        all.push(Some(least.saturating_sub(at).max(at.saturating_sub(most)) as f64));
        Ok(false)
    };
    TreeSearch { distance: Some(Arc::new(distance)), ..within(0, u64::MAX) }
}

fn found(db: &Db, index: &AnyIndex, search: &Search) -> Vec<TupleId> {
    let session = db.session();
    let tx = session.begin();
    let mut rows = Vec::new();
    index.collect(&tx, search, &mut |f| rows.push(f.root)).expect("collect");
    rows.sort_unstable();
    rows
}

fn compare(db: &Db, index: &AnyIndex, model: &Model) {
    let mut report = index.check().expect("check");
    assert!(report.findings.is_empty(), "{:#?}", report.findings);
    report.entries.sort();
    let mut entries: Vec<_> = model.iter().map(|(row, n)| (span(*n, *n), *row)).collect();
    entries.sort();
    assert!(report.entries == entries, "{} {}", report.entries.len(), entries.len());
    for (from, to) in [(0, u64::MAX), (10, 20), (0, 0), (5_000, 5_500), (1 << 40, 1 << 41)] {
        let rows = found(db, index, &Search::Tree(within(from, to)));
        let wanted = model.iter().filter(|(_, n)| (from..=to).contains(n));
        assert_eq!(rows, wanted.map(|(row, _)| *row).collect::<Vec<_>>(), "{from} to {to}");
    }
    let session = db.session();
    let tx = session.begin();
    let tree = index.as_covering().expect("a tree");
    let mut wanted: Vec<u64> = model.values().map(|n| n.abs_diff(5_000)).collect();
    wanted.sort_unstable();
    // However many rows are expected, all come, and in order.
    for expected in [0, 1, 10, 1000] {
        let mut nearest = tree.nearest(nearest_to(5_000));
        nearest.expect(expected);
        let mut offs = Vec::new();
        while let Some(near) = nearest.next(&tx).expect("next") {
            offs.push(near.distances[0].expect("a number") as u64);
        }
        assert_eq!(offs, wanted, "{expected} expected");
    }
}

fn add(db: &Db, index: &AnyIndex, model: &mut Model, rows: impl Iterator<Item = u32>) {
    let mut random = Random(u64::from(model.len() as u32) + 3);
    let session = db.session();
    let tx = session.begin();
    for n in rows {
        let value = if n % 5 == 0 { 7 } else { random.below(10_000) };
        index.insert(&tx, &span(value, value), row(n), Unique::No).expect("insert");
        model.insert(row(n), value);
    }
    commit(tx);
}

#[test]
fn a_tree_grows_shrinks_and_grows_again() {
    let db = Db::new();
    let rel = db.rel();
    AnyIndex::create(AccessMethod::Gist, &db.storage, rel).expect("create");
    let index = open(&db, rel);
    let mut model = Model::new();
    compare(&db, &index, &model);
    add(&db, &index, &mut model, 0..6_000);
    compare(&db, &index, &model);
    let dead = |row: TupleId| u32::from(row.offset) % 3 != 1;
    let removed = index.bulk_delete(&dead).expect("delete");
    let before = model.len();
    model.retain(|row, _| !dead(*row));
    assert_eq!(removed as usize, before - model.len());
    compare(&db, &index, &model);
    add(&db, &index, &mut model, (0..6_000).filter(|n| dead(row(*n))));
    compare(&db, &index, &model);
    // An entry that is there already is not put in again.
    let session = db.session();
    let tx = session.begin();
    let first = *model.iter().next().expect("rows").0;
    index.insert_entry(&tx, &span(model[&first], model[&first]), first).expect("insert");
    commit(tx);
    drop(session);
    compare(&db, &index, &model);
    db.destroy();
}

#[test]
fn a_page_of_zeros_is_an_error() {
    let db = Db::new();
    let rel = db.rel();
    AnyIndex::create(AccessMethod::Gist, &db.storage, rel).expect("create");
    let mut model = Model::new();
    add(&db, &open(&db, rel), &mut model, 0..3_000);
    let rows = model.len();
    common::with_each_page_zeroed(db, rel, &|db| {
        let index = open(db, rel);
        let session = db.session();
        let count = || {
            let (mut found, tx) = (0, session.begin());
            let all = Search::Tree(within(0, u64::MAX));
            index.collect(&tx, &all, &mut |_| found += 1).map(|()| found)
        };
        let first = count();
        let cleaned = index.bulk_delete(&|_| false).and_then(|_| index.clean_up(&db.manager));
        let tx = session.begin();
        let added = (0..1_000_u64).try_for_each(|n| {
            let value = n * 10;
            index.insert(&tx, &span(value, value), row(90_000 + n as u32), Unique::No).map(drop)
        });
        let whole = if added.is_ok() { rows + 1_000 } else { rows };
        let wrong = first.is_ok_and(|found| found != rows)
            || cleaned.is_ok() && count().is_ok_and(|found| found < whole);
        wrong.then(|| "rows are missing".to_owned())
    });
}

#[test]
fn a_crash_loses_nothing_and_leaves_no_half_of_a_split() {
    let mut db = Db::new();
    let rel = db.rel();
    AnyIndex::create(AccessMethod::Gist, &db.storage, rel).expect("create");
    let mut model = Model::new();
    for _ in 0..4 {
        let index = open(&db, rel);
        let base = model.len() as u32;
        add(&db, &index, &mut model, base..base + 1_500);
        drop(index);
        db.storage.wal.flush(db.storage.wal.insert_position()).expect("flush");
        db = db.crash();
        compare(&db, &open(&db, rel), &model);
    }
    db.destroy();
}

#[test]
fn a_tree_built_at_once_is_one_that_grew() {
    let db = Db::new();
    let mut random = Random(5);
    for rows in [0, 1, 40, 20_000] {
        let mut model = Model::new();
        let mut entries = Vec::new();
        for n in 0..rows {
            let value = random.below(10_000);
            entries.push((span(value, value), row(n)));
            model.insert(row(n), value);
        }
        entries.sort();
        let mut entries = entries.into_iter();
        let index = open(&db, db.rel());
        index
            .fill(u64::from(rows), &mut |out| {
                Ok(entries.next().map(|(entry, row)| {
                    *out = entry;
                    row
                }))
            })
            .expect("fill");
        compare(&db, &index, &model);
        add(&db, &index, &mut model, 50_000..51_000);
        compare(&db, &index, &model);
    }
    db.destroy();
}

#[test]
fn sessions_insert_search_and_vacuum_at_once() {
    let db = Db::new();
    let rel = db.rel();
    AnyIndex::create(AccessMethod::Gist, &db.storage, rel).expect("create");
    std::thread::scope(|scope| {
        for part in 0..3u64 {
            let db = &db;
            scope.spawn(move || {
                let index = open(db, rel);
                let session = db.session();
                let tx = session.begin();
                for n in part * 1_500..(part + 1) * 1_500 {
                    let own = row(n as u32);
                    index.insert(&tx, &span(n, n), own, Unique::No).expect("insert");
                    let mut seen = 0;
                    let search = Search::Tree(within(part * 1_500, n));
                    index.collect(&tx, &search, &mut |_| seen += 1).expect("look");
                    assert!(seen > n - part * 1_500, "{seen} rows up to {n}");
                }
                commit(tx);
            });
        }
        let db = &db;
        scope.spawn(move || {
            let index = open(db, rel);
            for _ in 0..20 {
                assert_eq!(index.bulk_delete(&|_| false).expect("delete"), 0);
            }
        });
    });
    let model = (0..4_500).map(|n| (row(n), u64::from(n))).collect();
    compare(&db, &open(&db, rel), &model);
    db.destroy();
}

fn size(db: &Db, rel: RelId) -> u32 {
    db.storage.block_count(rel, base::Fork::Main).expect("a file")
}

#[test]
fn a_tree_that_loses_what_it_gets_does_not_grow() {
    let mut db = Db::new();
    let rel = db.rel();
    AnyIndex::create(AccessMethod::Gist, &db.storage, rel).expect("create");
    let mut model = Model::new();
    let mut sizes = Vec::new();
    for round in 0..8 {
        let index = open(&db, rel);
        let session = db.session();
        let tx = session.begin();
        // Ascending, so that whole pages become empty; in the last rounds all of them.
        for n in round * 6_000..(round + 1) * 6_000 {
            let value = u64::from(n);
            index.insert(&tx, &span(value, value), row(n), Unique::No).expect("insert");
            model.insert(row(n), value);
        }
        commit(tx);
        drop(session);
        let first = if round < 6 { round * 6_000 + 5_000 } else { u32::MAX };
        let dead = |at: TupleId| at.block * 100 + u32::from(at.offset) - 1 < first;
        model.retain(|row, _| !dead(*row));
        index.bulk_delete(&dead).expect("delete");
        if round % 3 == 2 {
            // Whatever a crash leaves is found by the next vacuum.
            db.storage.wal.flush(db.storage.wal.insert_position()).expect("flush");
            drop(index);
            db = db.crash();
            compare(&db, &open(&db, rel), &model);
        } else {
            index.clean_up(&db.manager).expect("clean up");
            compare(&db, &index, &model);
        }
        sizes.push(size(&db, rel));
    }
    assert!(sizes[7] <= sizes[0] * 5 / 2, "{sizes:?}");
    db.destroy();
}

#[test]
fn searches_miss_nothing_while_pages_come_and_go() {
    let db = Db::new();
    let rel = db.rel();
    AnyIndex::create(AccessMethod::Gist, &db.storage, rel).expect("create");
    let lasting = |n: u32| n.is_multiple_of(2_000);
    let mut model = Model::new();
    {
        let index = open(&db, rel);
        let session = db.session();
        let tx = session.begin();
        for n in (0..40_000).filter(|n| lasting(*n)) {
            index.insert(&tx, &span(n.into(), n.into()), row(n), Unique::No).expect("insert");
            model.insert(row(n), n.into());
        }
        commit(tx);
    }
    let stop = std::sync::atomic::AtomicBool::new(false);
    let (db, stop, model) = (&db, &stop, &model);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(move || {
                let index = open(db, rel);
                let tree = index.as_covering().expect("a tree");
                let session = db.session();
                let tx = session.begin();
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let all = Search::Tree(within(0, u64::MAX));
                    let mut rows = found(db, &index, &all);
                    rows.dedup();
                    rows.retain(|row| model.contains_key(row));
                    assert_eq!(rows.len(), model.len());
                    let mut nearest = tree.nearest(nearest_to(5_000));
                    nearest.expect(10);
                    let mut seen = 0;
                    while let Some(near) = nearest.next(&tx).expect("next") {
                        seen += usize::from(model.contains_key(&near.found.root));
                    }
                    assert_eq!(seen, model.len());
                }
            });
        }
        let index = open(db, rel);
        let session = db.session();
        for round in 0..12 {
            let tx = session.begin();
            for n in (0..40_000).filter(|n| !lasting(*n) && n % 7 == round % 7) {
                index.insert(&tx, &span(n.into(), n.into()), row(n), Unique::No).expect("insert");
            }
            commit(tx);
            index.bulk_delete(&|row| !model.contains_key(&row)).expect("delete");
            index.clean_up(&db.manager).expect("clean up");
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    compare(db, &open(db, rel), model);
    assert!(size(db, rel) < 400, "{} pages", size(db, rel));
}

impl SummaryOps for Spans {
    fn empty(&self) -> Vec<u8> {
        span(u64::MAX, 0)
    }

    fn add(&self, summary: &[u8], key: &[u8]) -> Result<Option<Vec<u8>>> {
        let wider = cover(&[summary, key]);
        Ok((wider != summary).then_some(wider))
    }

    fn union(&self, a: &[u8], b: &[u8]) -> Result<Vec<u8>> {
        Ok(cover(&[a, b]))
    }
}

fn summaries(db: &Db, rel: RelId) -> BrinIndex {
    let mut index = BrinIndex::open(&db.storage, rel);
    index.pages_per_range = 4;
    index.ops = Some(Arc::new(Spans));
    index
}

/// The pages that a search gives.
fn pages(db: &Db, rel: RelId, from: u64, to: u64) -> Vec<u32> {
    let check = move |summary: &[u8]| {
        let (least, most) = read(summary);
        Ok(least <= to && from <= most)
    };
    let search = Search::Summaries(BrinSearch { check: Arc::new(check), pages: 19 });
    let rows = found(db, &AnyIndex::Brin(summaries(db, rel)), &search);
    rows.into_iter().map(|row| row.block).collect()
}

#[test]
fn summaries_widen_go_and_come_again_also_after_a_crash() {
    let mut db = Db::new();
    let rel = db.rel();
    let mut rows = (0..10u32).map(|block| (span(block.into(), block.into()), block));
    let built = AnyIndex::Brin(summaries(&db, rel)).fill(10, &mut |out| {
        Ok(rows.next().map(|(key, block)| {
            *out = key;
            TupleId { block, offset: 1 }
        }))
    });
    built.expect("fill");
    // The ranges of the pages 12 to 18 have no summary.
    assert_eq!(pages(&db, rel, 5, 6), [4, 5, 6, 7, 12, 13, 14, 15, 16, 17, 18]);
    let (index, session) = (summaries(&db, rel), db.session());
    let tx = session.begin();
    let insert = |key: u64, block: u32| {
        index
            .insert(&tx, &span(key, key), TupleId { block, offset: 2 }, Unique::No)
            .expect("insert");
    };
    insert(5, 9);
    insert(6, 13);
    assert!(index.begin_summary(&db.manager, 3).expect("begin"));
    assert!(!index.begin_summary(&db.manager, 1).expect("begin"));
    insert(100, 13);
    assert_eq!(pages(&db, rel, 5, 6), [4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18]);
    index.finish_summary(&db.manager, 3).expect("finish");
    assert!(index.desummarize(&db.manager, 0).expect("away"));
    assert!(!index.desummarize(&db.manager, 0).expect("away"));
    commit(tx);
    drop(session);
    drop(index);
    let expected = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 16, 17, 18];
    assert_eq!(pages(&db, rel, 5, 6), expected);
    db.storage.wal.flush(db.storage.wal.insert_position()).expect("flush");
    db = db.crash();
    assert_eq!(pages(&db, rel, 5, 6), expected);
    let report = summaries(&db, rel).check().expect("check");
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    db.destroy();
}
