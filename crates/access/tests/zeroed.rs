//! A page that damage made one of zeros: whoever comes to it says so. Nobody takes it for one that was never used.

mod common;

use std::sync::Arc;

use access::brin::{BrinIndex, BrinSearch, SummaryOps};
use access::{AnyIndex, IndexMethod, Search, Unique};
use base::{AccessMethod, RelId, Result, TupleId};
use common::{Db, Rels, Table, commit, with_each_page_zeroed};

const NUMBERS: u64 = 6_000;

fn tid(number: u64) -> TupleId {
    TupleId { block: (number / 100) as u32, offset: (number % 100 + 1) as u16 }
}

fn key(number: u64) -> Vec<u8> {
    let mut key = number.to_be_bytes().to_vec();
    key.resize(40, 3);
    key
}

fn insert(db: &Db, index: &AnyIndex, numbers: std::ops::Range<u64>) -> Result<()> {
    let session = db.session();
    let tx = session.begin();
    for number in numbers {
        index.insert(&tx, &key(number), tid(number), Unique::No)?;
    }
    Ok(())
}

/// The first number that an index does not find without saying why.
fn missing(db: &Db, index: &AnyIndex, end: u64) -> Result<Option<u64>> {
    let session = db.session();
    let tx = session.begin();
    for number in 0..end {
        let mut hits = 0;
        let looked = match index.as_btree() {
            Some(tree) => tree.lookup(&tx, &key(number), |row| {
                hits += usize::from(row == tid(number));
                true
            }),
            None => index.collect(&tx, &Search::Equal(key(number)), &mut |found| {
                hits += usize::from(found.root == tid(number));
            }),
        };
        if looked.is_ok() && hits != 1 {
            return Ok(Some(number));
        }
    }
    let Some(tree) = index.as_btree() else { return Ok(None) };
    for backward in [false, true] {
        let mut cursor = tree.scan(access::KeyRange::default(), backward);
        let mut count = 0;
        while cursor.next(&tx)?.is_some() {
            count += 1;
        }
        if count != end {
            return Ok(Some(count));
        }
    }
    Ok(None)
}

fn use_it(db: &Db, method: AccessMethod, rel: RelId) -> Option<String> {
    let index = AnyIndex::open(method, &db.storage, rel);
    let wrong = |when: &str, found: Result<Option<u64>>| match found {
        Ok(Some(number)) => Some(format!("{number} is missing {when}")),
        _ => None,
    };
    if let Some(wrong) = wrong("at first", missing(db, &index, NUMBERS)) {
        return Some(wrong);
    }
    // Splits and vacuum look for pages that nobody uses.
    let cleaned = index.bulk_delete(&|_| false).and_then(|_| index.clean_up(&db.manager));
    let added = insert(db, &index, NUMBERS..NUMBERS + 3_000);
    let end = if added.is_ok() { NUMBERS + 3_000 } else { NUMBERS };
    if added.is_ok() && cleaned.is_ok() {
        return wrong("after inserts", missing(db, &index, end));
    }
    let session = db.session();
    let tx = session.begin();
    (0..NUMBERS).find_map(|number| {
        let mut hits = 0;
        let found = index.as_btree()?.lookup(&tx, &key(number), |_| {
            hits += 1;
            true
        });
        (found.is_ok() && hits != 1).then(|| format!("{number} is missing after an error"))
    })
}

fn each_page(method: AccessMethod) {
    let db = Db::new();
    let rel = db.rel();
    let index = AnyIndex::create(method, &db.storage, rel).unwrap();
    insert(&db, &index, 0..NUMBERS).unwrap();
    drop(index);
    with_each_page_zeroed(db, rel, &|db| use_it(db, method, rel));
}

#[test]
fn in_a_btree() {
    each_page(AccessMethod::BTree);
}

#[test]
fn in_a_hash_index() {
    each_page(AccessMethod::Hash);
}

/// Hash indexes keep rows with one value in chains of pages.
#[test]
fn in_the_chains_of_a_hash_index() {
    const ROWS: u64 = 5_000;
    let value = |number: u64| (number / 1_250).to_be_bytes();
    let add = |db: &Db, index: &AnyIndex, numbers: std::ops::Range<u64>| -> Result<()> {
        let session = db.session();
        let tx = session.begin();
        for number in numbers {
            index.insert(&tx, &value(number), tid(number), Unique::No)?;
        }
        commit(tx);
        Ok(())
    };
    let rows = |db: &Db, index: &AnyIndex, of: u64| -> Result<usize> {
        let session = db.session();
        let tx = session.begin();
        let mut rows = 0;
        index.collect(&tx, &Search::Equal(value(of).to_vec()), &mut |_| rows += 1)?;
        Ok(rows)
    };
    let db = Db::new();
    let rel = db.rel();
    let index = AnyIndex::create(AccessMethod::Hash, &db.storage, rel).unwrap();
    add(&db, &index, 0..ROWS).unwrap();
    drop(index);
    with_each_page_zeroed(db, rel, &|db| {
        let index = AnyIndex::open(AccessMethod::Hash, &db.storage, rel);
        let wrong = |of: u64, count: usize| (of < ROWS && count != 1_250).then_some((of, count));
        let look = || (0..ROWS).step_by(1_250).find_map(|of| wrong(of, rows(db, &index, of).ok()?));
        let sound = index.check().is_ok_and(|report| report.findings.is_empty());
        if let Some(wrong) = look() {
            return Some(format!("{wrong:?}, check finds nothing: {sound}"));
        }
        // Splits move entries along the chains, new pages come from the file's end.
        let added = add(db, &index, ROWS..ROWS + 2_500);
        look().map(|wrong| format!("{wrong:?} after inserts: {added:?}"))
    });
}

/// A table knows of the pages of which everybody sees all rows that they were in use.
#[test]
fn in_a_table() {
    const ROWS: u64 = 400;
    let db = Db::new();
    let table = Table::create(&db, 300);
    let session = db.session();
    let tx = session.begin();
    (0..ROWS).for_each(|key| assert!(table.insert(&tx, key, key).unwrap()));
    commit(tx);
    db.storage.wal.flush(db.storage.wal.insert_position()).unwrap();
    table.vacuum(&db);
    assert!(table.heap.visible_pages() > 3);
    let Rels(rel, ..) = table.rels();
    let rels = table.rels();
    drop((session, table));
    with_each_page_zeroed(db, rel, &|db| {
        let table = Table::open(db, rels, 300);
        // A file may be refused as a whole.
        let findings = access::check::check(&db.manager, &table.heap, &[]).ok()?;
        let session = db.session();
        let tx = session.begin();
        let snapshot = tx.snapshot();
        let lost = match table.scan(&tx, &snapshot) {
            Ok(rows) if rows.len() as u64 != ROWS => Some(format!("{} rows", rows.len())),
            Ok(_) => return None, // a page that was never in use
            Err(_) => None,
        };
        let lost = lost.or_else(|| findings.is_empty().then(|| "nothing is found".to_owned()));
        let by_map = table.scan_by_map(&tx, &snapshot);
        let lost = lost.or_else(|| by_map.is_ok().then(|| "read by the map".to_owned()));
        lost.or_else(|| {
            // The key of a row that is lost is not given again.
            let again = (0..ROWS).find(|key| matches!(table.insert(&tx, *key, 0), Ok(true)));
            again.map(|key| format!("{key} twice"))
        })
    });
}

/// The least and the greatest key of each page, in two halves with much behind them.
struct Extremes;

impl SummaryOps for Extremes {
    fn empty(&self) -> Vec<u8> {
        Vec::new()
    }

    fn add(&self, summary: &[u8], key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.union(summary, key).map(|wider| (wider != summary).then_some(wider))
    }

    fn union(&self, a: &[u8], b: &[u8]) -> Result<Vec<u8>> {
        Ok(if a >= b { a.to_vec() } else { b.to_vec() })
    }
}

/// The summaries of BRIN lie in a B-tree.
#[test]
fn in_a_brin_index() {
    const PAGES: u32 = 400;
    let db = Db::new();
    let rel = db.rel();
    let open = |db: &Db| {
        let mut index = BrinIndex::open(&db.storage, rel);
        index.pages_per_range = 1;
        index.ops = Some(Arc::new(Extremes));
        index
    };
    let wide = |block: u32| [&block.to_be_bytes()[..], &[7; 200]].concat();
    let mut block = 0;
    open(&db)
        .fill(&mut |key| {
            *key = wide(block);
            block += 1;
            Ok((block <= PAGES).then(|| TupleId { block: block - 1, offset: 1 }))
        })
        .unwrap();
    with_each_page_zeroed(db, rel, &|db| {
        let index = open(db);
        let sound = index.check().is_ok_and(|report| report.findings.is_empty());
        let session = db.session();
        let tx = session.begin();
        // Pages whose greatest key ends in an odd number.
        let odd = |summary: &[u8]| Ok(summary.get(3).is_some_and(|last| last % 2 == 1));
        let search = BrinSearch { check: Arc::new(odd), pages: PAGES };
        let mut found = Vec::new();
        let looked = index.collect(&tx, &Search::Summaries(search), &mut |f| {
            found.push(f.root.block);
        });
        let missing = (0..PAGES).filter(|page| page % 2 == 1 && !found.contains(page)).count();
        match looked {
            Ok(()) if missing > 0 => Some(format!("{missing} pages are missing")),
            Ok(()) if !sound => Some("is not sound, and finds all".to_owned()),
            Err(_) if sound => Some("check finds nothing".to_owned()),
            _ => None,
        }
    });
}
