//! Indexes of cells: HNSW, IVFFlat, bloom. They find what is near or has the bits, grow, are vacuumed and grow again, and
//! a crash at any time leaves them whole.

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use access::bloom::BloomIndex;
use access::index::BloomSearch;
use access::vector::{Iterative, VectorOps, VectorSearch};
use access::{AnyIndex, IndexMethod, Search, Unique};
use base::{AccessMethod, RelId, Result, TupleId};
use common::{Db, Random, commit, with_each_page_zeroed};

/// Vectors of these tests: four numbers, by the squares of their distances.
struct Plain;

fn numbers(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
}

fn bytes(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}

impl VectorOps for Plain {
    fn distance(&self, a: &[u8], b: &[u8]) -> f32 {
        numbers(a).iter().zip(numbers(b)).map(|(a, b)| (a - b) * (a - b)).sum()
    }

    fn check(&self, a: &[u8], b: &[u8]) -> Result<()> {
        assert_eq!(a.len(), b.len());
        Ok(())
    }

    fn sample(&self, vector: &[u8]) -> Vec<u8> {
        vector.to_vec()
    }

    fn mean(&self, samples: &[&[u8]]) -> Vec<u8> {
        let mut sums = vec![0.0; numbers(samples[0]).len()];
        for sample in samples {
            sums.iter_mut().zip(numbers(sample)).for_each(|(sum, n)| *sum += n);
        }
        bytes(&sums.iter().map(|sum| sum / samples.len() as f32).collect::<Vec<_>>())
    }
}

type Model = BTreeMap<TupleId, Vec<u8>>;

const METHODS: [AccessMethod; 2] = [AccessMethod::Hnsw, AccessMethod::IvfFlat];

fn row(n: u32) -> TupleId {
    TupleId { block: n / 100, offset: (n % 100 + 1) as u16 }
}

fn open(db: &Db, rel: RelId, method: AccessMethod) -> AnyIndex {
    let mut index = AnyIndex::open(method, &db.storage, rel);
    match &mut index {
        AnyIndex::Hnsw(graph) => {
            graph.ops = Some(Arc::new(Plain));
            (graph.m, graph.ef_construction) = (6, 40);
        }
        AnyIndex::IvfFlat(lists) => {
            lists.ops = Some(Arc::new(Plain));
            lists.lists = 20;
        }
        _ => {}
    }
    index
}

fn vector(random: &mut Random) -> Vec<u8> {
    // Some are the same.
    let most = if random.below(5) == 0 { 3 } else { 1_000 };
    bytes(&std::array::from_fn::<f32, 4, _>(|_| random.below(most) as f32))
}

fn search(query: &[u8], breadth: usize) -> VectorSearch {
    let most = u64::MAX;
    VectorSearch { query: Some(query.to_vec()), breadth, iterative: Iterative::Relaxed, most }
}

fn nearest(db: &Db, index: &AnyIndex, search: VectorSearch, most: usize) -> Vec<TupleId> {
    let session = db.session();
    let tx = session.begin();
    let mut scan = index.nearest_vectors(search).expect("an index of vectors");
    let mut out = Vec::new();
    while out.len() < most
        && let Some(near) = scan.next(&tx).expect("next")
    {
        out.push(near.found.root);
    }
    out
}

/// Whether the index is sound, has these rows, gives all of them, and most of the nearest first.
fn compare(db: &Db, index: &AnyIndex, model: &Model) {
    let mut report = index.check().expect("check");
    assert!(report.findings.is_empty(), "{:#?}", report.findings);
    report.entries.sort();
    let mut entries: Vec<_> = model.iter().map(|(row, v)| (v.clone(), *row)).collect();
    entries.sort();
    assert!(report.entries == entries, "{} {}", report.entries.len(), entries.len());
    if model.is_empty() {
        return;
    }
    let mut random = Random(11);
    let (mut hits, mut wanted) = (0, 0);
    for _ in 0..20 {
        let query = vector(&mut random);
        let mut by_distance: Vec<f32> = model.values().map(|v| Plain.distance(&query, v)).collect();
        by_distance.sort_by(f32::total_cmp);
        let farthest = by_distance[by_distance.len().min(10) - 1];
        let found = nearest(db, index, search(&query, 40), 10);
        wanted += by_distance.len().min(10);
        hits += found.iter().filter(|r| Plain.distance(&query, &model[r]) <= farthest).count();
    }
    assert!(hits * 10 >= wanted * 9, "{hits} of {wanted}");
    let all = nearest(db, index, search(&bytes(&[1.0; 4]), 40), usize::MAX);
    // A graph may have elements to which nothing leads: few.
    assert!(all.len() * 100 >= model.len() * 97, "{} of {}", all.len(), model.len());
    let mut once = all.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), all.len());
}

fn add(db: &Db, index: &AnyIndex, model: &mut Model, rows: impl Iterator<Item = u32>) {
    let mut random = Random(model.len() as u64 + 3);
    let session = db.session();
    let tx = session.begin();
    for n in rows {
        let value = vector(&mut random);
        index.insert(&tx, &value, row(n), Unique::No).expect("insert");
        model.insert(row(n), value);
    }
    commit(tx);
}

#[test]
fn an_index_grows_shrinks_and_grows_again() {
    for method in METHODS {
        let db = Db::new();
        let rel = db.rel();
        AnyIndex::create(method, &db.storage, rel).map(drop).expect("create");
        let index = open(&db, rel, method);
        let mut model = Model::new();
        compare(&db, &index, &model);
        add(&db, &index, &mut model, 0..1_500);
        compare(&db, &index, &model);
        let dead = |row: TupleId| u32::from(row.offset) % 3 != 1;
        let removed = index.bulk_delete(&dead).expect("delete");
        let before = model.len();
        model.retain(|row, _| !dead(*row));
        assert_eq!(removed as usize, before - model.len());
        compare(&db, &index, &model);
        add(&db, &index, &mut model, (0..1_500).filter(|n| dead(row(*n))));
        compare(&db, &index, &model);
        // An entry that is there already is not put in again.
        let session = db.session();
        let tx = session.begin();
        let (first, value) = model.iter().next().expect("rows");
        index.insert_entry(&tx, value, *first).expect("insert");
        commit(tx);
        drop(session);
        compare(&db, &index, &model);
        assert_eq!(index.bulk_delete(&|_| true).expect("delete") as usize, model.len());
        model.clear();
        compare(&db, &index, &model);
        add(&db, &index, &mut model, 0..300);
        compare(&db, &index, &model);
        db.destroy();
    }
}

#[test]
fn a_crash_loses_nothing() {
    for method in METHODS {
        let mut db = Db::new();
        let rel = db.rel();
        AnyIndex::create(method, &db.storage, rel).map(drop).expect("create");
        let mut model = Model::new();
        for round in 0..4 {
            let index = open(&db, rel, method);
            add(&db, &index, &mut model, round * 300..(round + 1) * 300);
            let dead = |row: TupleId| row.offset == 7;
            index.bulk_delete(&dead).expect("delete");
            model.retain(|row, _| !dead(*row));
            drop(index);
            db.storage.wal.flush(db.storage.wal.insert_position()).expect("flush");
            db = db.crash();
            compare(&db, &open(&db, rel, method), &model);
        }
        db.destroy();
    }
}

#[test]
fn an_index_built_at_once_is_one_that_grew() {
    let db = Db::new();
    for method in METHODS {
        let mut random = Random(5);
        for (rows, memory) in
            [(0, usize::MAX), (1, usize::MAX), (3_000, usize::MAX), (900, 100_000)]
        {
            let mut model = Model::new();
            let mut entries = Vec::new();
            for n in 0..rows {
                let value = vector(&mut random);
                entries.push((value.clone(), row(n)));
                model.insert(row(n), value);
            }
            let mut entries = entries.into_iter();
            let mut index = open(&db, db.rel(), method);
            match &mut index {
                AnyIndex::Hnsw(graph) => graph.build_with = (memory, 1),
                AnyIndex::IvfFlat(lists) => lists.build_with = (memory, 1),
                _ => {}
            }
            index
                .fill(u64::from(rows), &mut |out| {
                    Ok(entries.next().map(|(entry, row)| {
                        *out = entry;
                        row
                    }))
                })
                .expect("fill");
            compare(&db, &index, &model);
            add(&db, &index, &mut model, 50_000..50_300);
            compare(&db, &index, &model);
        }
    }
    db.destroy();
}

#[test]
fn vectors_as_long_as_a_page_have_their_links_elsewhere() {
    let db = Db::new();
    for method in METHODS {
        let mut random = Random(9);
        let mut wide =
            move || bytes(&(0..2_000).map(|_| random.below(100) as f32).collect::<Vec<_>>());
        let mut entries: Vec<_> = (0..60).map(|n| (wide(), row(n))).collect();
        let mut model: Model = entries.iter().map(|(v, row)| (*row, v.clone())).collect();
        let index = open(&db, db.rel(), method);
        index
            .fill(60, &mut |out| {
                Ok(entries.pop().map(|(entry, row)| {
                    *out = entry;
                    row
                }))
            })
            .expect("fill");
        let session = db.session();
        let tx = session.begin();
        for n in 60..120 {
            let value = wide();
            index.insert(&tx, &value, row(n), Unique::No).expect("insert");
            model.insert(row(n), value);
        }
        commit(tx);
        drop(session);
        let report = index.check().expect("check");
        assert!(report.findings.is_empty(), "{:#?}", report.findings);
        assert_eq!(report.entries.len(), 120);
        let found = |(row, value): &(&TupleId, &Vec<u8>)| {
            nearest(&db, &index, search(value, 40), 1) == [**row]
        };
        let hits = model.iter().filter(found).count();
        assert!(hits >= 110, "{hits} of 120");
    }
    db.destroy();
}

#[test]
fn sessions_insert_search_and_vacuum_at_once() {
    for method in METHODS {
        let db = Db::new();
        let rel = db.rel();
        AnyIndex::create(method, &db.storage, rel).map(drop).expect("create");
        std::thread::scope(|scope| {
            for part in 0..3u32 {
                let db = &db;
                scope.spawn(move || {
                    let index = open(db, rel, method);
                    let session = db.session();
                    let tx = session.begin();
                    for n in part * 300..(part + 1) * 300 {
                        let own = bytes(&[n as f32, (n % 17) as f32, 1.0, 0.0]);
                        index.insert(&tx, &own, row(n), Unique::No).expect("insert");
                        // Rows of the offset 9 go at once.
                        let found = nearest(db, &index, search(&own, 40), 3);
                        assert!(!found.is_empty());
                    }
                    commit(tx);
                });
            }
            let db = &db;
            scope.spawn(move || {
                let index = open(db, rel, method);
                for _ in 0..20 {
                    index.bulk_delete(&|row| row.offset == 9).expect("delete");
                }
            });
        });
        let index = open(&db, rel, method);
        index.bulk_delete(&|row| row.offset == 9).expect("delete");
        let report = index.check().expect("check");
        assert!(report.findings.is_empty(), "{:#?}", report.findings);
        let rows = (0..900).map(row).filter(|row| row.offset != 9).count();
        assert_eq!(report.entries.len(), rows);
        db.destroy();
    }
}

#[test]
fn a_search_that_does_not_go_on_gives_what_it_found_at_first() {
    let db = Db::new();
    let rel = db.rel();
    AnyIndex::create(AccessMethod::Hnsw, &db.storage, rel).map(drop).expect("create");
    let index = open(&db, rel, AccessMethod::Hnsw);
    let mut model = Model::new();
    add(&db, &index, &mut model, 0..500);
    let query = bytes(&[5.0; 4]);
    let once = VectorSearch { iterative: Iterative::Off, ..search(&query, 20) };
    let found = nearest(&db, &index, once, usize::MAX);
    assert!((20..=200).contains(&found.len()), "{}", found.len());
    let strict = VectorSearch { iterative: Iterative::Strict, ..search(&query, 20) };
    let distances: Vec<f32> = nearest(&db, &index, strict, usize::MAX)
        .iter()
        .map(|row| Plain.distance(&query, &model[row]))
        .collect();
    assert!(distances.len() > 100 && distances.is_sorted(), "{}", distances.len());
    db.destroy();
}

fn with_bits(db: &Db, rel: RelId, bits: &[u8]) -> Vec<TupleId> {
    let session = db.session();
    let tx = session.begin();
    let mut rows = Vec::new();
    let index = AnyIndex::Bloom(BloomIndex::open(&db.storage, rel));
    let search = Search::Signature(BloomSearch { bits: bits.to_vec() });
    index.collect(&tx, &search, &mut |f| rows.push(f.root)).expect("collect");
    rows.sort_unstable();
    rows
}

#[test]
fn bits_are_found_after_vacuum_and_crashes() {
    let mut db = Db::new();
    let rel = db.rel();
    let mut built = (0..2_000u32).map(|n| (vec![n as u8, (n >> 8) as u8], row(n)));
    AnyIndex::open(AccessMethod::Bloom, &db.storage, rel)
        .fill(2_000, &mut |out| {
            Ok(built.next().map(|(bits, row)| {
                *out = bits;
                row
            }))
        })
        .expect("fill");
    let with = |n: &u32, bits: u32| n & bits == bits;
    for round in 0..3 {
        let index = BloomIndex::open(&db.storage, rel);
        let session = db.session();
        let tx = session.begin();
        for n in 2_000 + round * 500..2_500 + round * 500 {
            let bits = [n as u8, (n >> 8) as u8];
            index.insert(&tx, &bits, row(n), Unique::No).expect("insert");
        }
        commit(tx);
        drop(session);
        let gone = index.bulk_delete(&|row| u32::from(row.offset) == 1 + round).expect("delete");
        assert!(gone > 0);
        drop(index);
        db.storage.wal.flush(db.storage.wal.insert_position()).expect("flush");
        db = db.crash();
        let wanted: Vec<TupleId> = (0..2_500 + round * 500)
            .filter(|n| with(n, 0x105))
            .filter(|n| (0..=round).all(|r| n % 100 != r || *n >= 2_500 + r * 500))
            .map(row)
            .collect();
        assert_eq!(with_bits(&db, rel, &[5, 1]), wanted);
        let report = BloomIndex::open(&db.storage, rel).check().expect("check");
        assert!(report.findings.is_empty(), "{:?}", report.findings);
    }
    db.destroy();
}

/// How many rows an index finds.
fn count(db: &Db, index: &AnyIndex) -> Result<usize> {
    let session = db.session();
    let tx = session.begin();
    let mut rows = 0;
    if let AnyIndex::Bloom(_) = index {
        let search = Search::Signature(BloomSearch { bits: vec![0, 0] });
        index.collect(&tx, &search, &mut |_| rows += 1)?;
        return Ok(rows);
    }
    let mut scan = index.nearest_vectors(search(&bytes(&[1.0; 4]), 40)).expect("vectors");
    while scan.next(&tx)?.is_some() {
        rows += 1;
    }
    Ok(rows)
}

#[test]
fn a_page_of_zeros_is_an_error() {
    let value = |method, n: u32| match method {
        AccessMethod::Bloom => (n as u16).to_le_bytes().to_vec(),
        _ => bytes(&[n as f32, (n % 17) as f32, 1.0, 0.0]),
    };
    for method in [AccessMethod::Hnsw, AccessMethod::IvfFlat, AccessMethod::Bloom] {
        let db = Db::new();
        let rel = db.rel();
        AnyIndex::create(method, &db.storage, rel).map(drop).expect("create");
        let index = open(&db, rel, method);
        let add = |db: &Db, index: &AnyIndex, rows: std::ops::Range<u32>| -> Result<()> {
            let session = db.session();
            let tx = session.begin();
            for n in rows {
                index.insert(&tx, &value(method, n), row(n), Unique::No)?;
            }
            commit(tx);
            Ok(())
        };
        add(&db, &index, 0..3_000).expect("insert");
        let all = count(&db, &index).expect("count");
        drop(index);
        with_each_page_zeroed(db, rel, &|db| {
            let index = open(db, rel, method);
            let sound = index.check().is_ok_and(|report| report.findings.is_empty());
            match count(db, &index) {
                Ok(rows) if rows != all => return Some(format!("{method:?}: {rows} of {all}")),
                Ok(_) if !sound => return Some(format!("{method:?} is not sound, and finds all")),
                Err(_) if sound => return Some(format!("{method:?}: check finds nothing")),
                _ => {}
            }
            let cleaned = index.bulk_delete(&|_| false);
            let added = add(db, &index, 3_000..4_000);
            if cleaned.is_err() || added.is_err() {
                return None;
            }
            match count(db, &index) {
                Ok(rows) if rows < all + 990 => Some(format!("{method:?}: {rows} in the end")),
                _ => None,
            }
        });
    }
}
