//! A page that damage made one of zeros: whoever comes to it says so. Nobody takes it for one that was never used.

mod common;

use access::{AnyIndex, Search, Unique};
use base::{AccessMethod, RelId, Result, TupleId};
use common::{Db, with_each_page_zeroed};

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
