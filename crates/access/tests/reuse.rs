//! Pages that vacuum empties are used again: a file that takes as much as it loses does not grow, readers that were on
//! their way miss nothing, and a crash leaves a tree that is whole.

mod common;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use access::{AnyIndex, BTree, Cursor, KeyRange, Unique};
use base::{Fork, TupleId};
use common::{Db, Random};
use txn::Transaction;

/// Keys from which on they are taken for dead by [`vacuum`], and up to which.
type Dead = std::ops::Range<u64>;

fn tid(number: u64) -> TupleId {
    TupleId { block: (number / 100) as u32, offset: (number % 100 + 1) as u16 }
}

/// With `long` bytes behind the number, so that few fit a page and trees are high.
fn key(number: u64, long: usize) -> Vec<u8> {
    let mut key = number.to_be_bytes().to_vec();
    key.resize(8 + long, 7);
    key
}

fn number_of(key: &[u8]) -> u64 {
    u64::from_be_bytes(key[..8].try_into().unwrap())
}

fn insert(tx: &Transaction, tree: &BTree, number: u64, long: usize) {
    tree.insert(tx, &key(number, long), tid(number), Unique::No).unwrap();
}

/// Removes these keys' entries, and gives the pages back that have become empty.
fn vacuum(db: &Db, tree: &BTree, dead: &Dead, stays: &(dyn Fn(u64) -> bool + Sync)) {
    let index = AnyIndex::from(tree.clone());
    let is_dead = |row: TupleId| {
        let number = u64::from(row.block) * 100 + u64::from(row.offset) - 1;
        dead.contains(&number) && !stays(number)
    };
    index.bulk_delete(&is_dead).unwrap();
    index.clean_up(&db.manager).unwrap();
}

fn verify(tree: &BTree) -> Vec<u64> {
    let report = tree.verify().unwrap();
    assert!(report.findings.is_empty(), "{:#?}", report.findings);
    report.entries.iter().map(|(key, _)| number_of(key)).collect()
}

fn pages(db: &Db, tree: &BTree) -> u32 {
    db.storage.block_count(tree.rel, Fork::Main).unwrap()
}

/// Every page of the file is in the tree, or known to be of use.
fn nothing_is_lost(tree: &BTree) {
    let found = tree.occupancy().unwrap();
    let report = tree.verify().unwrap();
    assert_eq!(found.all, 1 + u64::from(report.pages) + found.unused, "{found:?}");
}

fn nobody(_: u64) -> bool {
    false
}

fn queue(long: usize, at_once: u64) {
    let db = Db::new();
    let tree = BTree::create(&db.storage, db.rel()).unwrap();
    let session = db.session();
    let tx = session.begin();
    let mut sizes = Vec::new();
    for round in 0..12 {
        let first = round * at_once;
        (first..first + at_once).for_each(|number| insert(&tx, &tree, number, long));
        vacuum(&db, &tree, &(0..first + at_once * 9 / 10), &nobody);
        assert!(verify(&tree).into_iter().eq(first + at_once * 9 / 10..first + at_once));
        nothing_is_lost(&tree);
        sizes.push(pages(&db, &tree));
    }
    assert!(sizes[11] <= sizes[1] + 16, "{sizes:?}");
    drop(tx);
    drop((session, tree));
    db.destroy();
}

#[test]
fn a_queue_does_not_grow() {
    queue(0, 10_000);
}

#[test]
fn a_queue_in_a_high_tree_does_not_grow() {
    queue(1000, 2_000);
}

#[test]
fn pages_of_the_middle_are_used_at_both_ends() {
    let db = Db::new();
    let tree = BTree::create(&db.storage, db.rel()).unwrap();
    let session = db.session();
    let tx = session.begin();
    let mut random = Random(7);
    let mut model = std::collections::BTreeSet::new();
    for round in 0..40 {
        let long = 300;
        for _ in 0..400 {
            let number = random.below(40) * 100_000 + random.below(200);
            if model.insert(number) {
                insert(&tx, &tree, number, long);
            }
        }
        let first = random.below(4_000_000);
        let dead = first..first + random.below(2_000_000);
        model.retain(|number| !dead.contains(number));
        vacuum(&db, &tree, &dead, &nobody);
        let expected: Vec<u64> = model.iter().copied().collect();
        assert_eq!(verify(&tree), expected, "round {round}");
        nothing_is_lost(&tree);
    }
    assert!(pages(&db, &tree) < 500, "{} pages", pages(&db, &tree));
    drop(tx);
    drop((session, tree));
    db.destroy();
}

/// Reads on, and returns the numbers.
fn rest(tx: &Transaction, cursor: &mut Cursor) -> Vec<u64> {
    let mut found = Vec::new();
    while let Some((key, _)) = cursor.next(tx).unwrap() {
        found.push(number_of(key));
    }
    found
}

#[test]
fn a_cursor_goes_on_when_the_pages_ahead_of_it_are_others() {
    for long in [0, 500] {
        for backward in [false, true] {
            for taken in [1, 350, 700] {
                let db = Db::new();
                let tree = BTree::create(&db.storage, db.rel()).unwrap();
                let session = db.session();
                let tx = session.begin();
                let stays = |number: u64| number.is_multiple_of(1500);
                (0..12_000).for_each(|number| insert(&tx, &tree, number, long));
                let mut cursor = tree.scan(KeyRange::default(), backward);
                let mut seen = Vec::new();
                for _ in 0..taken {
                    let (key, _) = cursor.next(&tx).unwrap().unwrap();
                    seen.push(number_of(key));
                }
                vacuum(&db, &tree, &(0..12_000), &stays);
                // The pages get other entries, beyond both ends of what was there.
                (20_000..28_000).for_each(|number| insert(&tx, &tree, number, long));
                seen.extend(rest(&tx, &mut cursor));
                if backward {
                    assert!(seen.is_sorted_by(|a, b| a > b), "{seen:?}");
                    seen.reverse();
                }
                assert!(seen.is_sorted_by(|a, b| a < b), "{seen:?}");
                let old: Vec<u64> = seen.into_iter().filter(|n| *n < 20_000 && stays(*n)).collect();
                let expected: Vec<u64> = (0..12_000).filter(|n| stays(*n)).collect();
                assert_eq!(old, expected, "{long} {backward} {taken}");
                verify(&tree);
                drop(tx);
                drop((session, tree));
                db.destroy();
            }
        }
    }
}

/// Numbers that are always there; the others come and go.
fn is_lasting(number: u64) -> bool {
    number % 3000 < 2
}

const NUMBERS: u64 = 60_000;

/// Looks at everything that lasts, until told to stop.
fn read(db: &Db, tree: &BTree, backward: bool, (stop, rounds): (&AtomicBool, &AtomicU64)) {
    let session = db.session();
    let tx = session.begin();
    let expected: Vec<u64> = (0..NUMBERS).filter(|n| is_lasting(*n)).collect();
    while !stop.load(Ordering::Relaxed) || rounds.load(Ordering::Relaxed) < 6 {
        let mut cursor = tree.scan(KeyRange::default(), backward);
        let mut found = Vec::new();
        let mut last = None;
        while let Some((key, _)) = cursor.next(&tx).unwrap() {
            let number = number_of(key);
            let in_order = last.is_none_or(|l| if backward { l > number } else { l < number });
            assert!(in_order, "{number} after {last:?}, backward: {backward}");
            last = Some(number);
            if is_lasting(number) {
                found.push(number);
                let mut hits = 0;
                let hit = |_| {
                    hits += 1;
                    true
                };
                tree.lookup(&tx, key, hit).unwrap();
                assert_eq!(hits, 1, "number {number}");
            }
        }
        if backward {
            found.reverse();
        }
        assert_eq!(found, expected);
        rounds.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn readers_and_writers_miss_nothing_while_pages_come_and_go() {
    for (db, long) in [(Db::new(), 40), (Db::tiny(), 200)] {
        let tree = BTree::create(&db.storage, db.rel()).unwrap();
        let session = db.session();
        let tx = session.begin();
        (0..NUMBERS).filter(|n| is_lasting(*n)).for_each(|n| insert(&tx, &tree, n, long));
        drop(tx);
        let (stop, rounds) = (AtomicBool::new(false), AtomicU64::new(0));
        let (stop, rounds, db, tree) = (&stop, &rounds, &db, &tree);
        thread::scope(|scope| {
            for backward in [false, true] {
                scope.spawn(move || read(db, tree, backward, (stop, rounds)));
            }
            let writers: Vec<_> = (0..2u64)
                .map(|writer| {
                    scope.spawn(move || {
                        let session = db.session();
                        let tx = session.begin();
                        let mut random = Random(writer + 3);
                        for _ in 0..25 {
                            let first = random.below(NUMBERS / 1000) * 1000 + writer;
                            (first..first + 1000).step_by(2).for_each(|n| {
                                if !is_lasting(n) && n < NUMBERS {
                                    insert(&tx, tree, n, long);
                                }
                            });
                        }
                    })
                })
                .collect();
            let mut random = Random(11);
            while writers.iter().any(|writer| !writer.is_finished()) {
                let first = random.below(NUMBERS);
                vacuum(db, tree, &(first..first + NUMBERS / 2), &is_lasting);
                thread::yield_now();
            }
            for writer in writers {
                writer.join().unwrap();
            }
            stop.store(true, Ordering::Relaxed);
        });
        verify(tree);
        nothing_is_lost(tree);
    }
}

/// The directory as it is when the power goes and the log had reached the disk up to here: the files of `base`, which were
/// copied behind a checkpoint, and so much of the log.
fn cut(base: &Path, running: &Path, at: u64, segment: u64) -> PathBuf {
    let dir = common::fresh_dir();
    common::copy(base, &dir);
    std::fs::remove_dir_all(dir.join("wal")).unwrap();
    common::copy(&running.join("wal"), &dir.join("wal"));
    for entry in std::fs::read_dir(dir.join("wal")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let begin = u64::from_str_radix(&name, 16).unwrap() * segment;
        let keep = at.saturating_sub(begin).min(segment) as usize;
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[keep..].fill(0);
        std::fs::write(&path, bytes).unwrap();
    }
    dir
}

#[test]
fn a_power_cut_anywhere_in_the_log_leaves_a_whole_tree() {
    let options = storage::Options { fsync: Some(false), ..common::tiny_options() };
    let segment = options.wal_segment_size;
    let dir = common::fresh_dir();
    storage::Storage::create_with(&dir, &options).unwrap();
    let db = Db::open_with(dir, storage::Options { frames: 2_000, ..options.clone() });
    let tree = BTree::create(&db.storage, db.rel()).unwrap();
    let rel = tree.rel;
    let stays = |number: u64| number.is_multiple_of(1_500);
    let session = db.session();
    let tx = session.begin();
    (0..6_000).for_each(|number| insert(&tx, &tree, number, 500));
    db.storage.checkpoint().unwrap();
    let base = common::fresh_dir();
    common::copy(&db.dir, &base);
    let begin = db.storage.wal.insert_position().0;
    for round in 0..3 {
        vacuum(&db, &tree, &(0..6_000 + round * 500), &stays);
        (6_000 + round * 500..6_500 + round * 500).for_each(|n| insert(&tx, &tree, n, 500));
    }
    let end = db.storage.wal.insert_position();
    db.storage.wal.flush(end).unwrap();
    let mut random = Random(21);
    for _ in 0..60 {
        let at = begin + random.below(end.0 - begin);
        let dir = cut(&base, &db.dir, at, segment);
        let again = Db::open_with(dir, options.clone());
        let tree = BTree::open(&again.storage, rel);
        let numbers = verify(&tree);
        assert!((0..6_000).filter(|n| stays(*n)).all(|n| numbers.binary_search(&n).is_ok()));
        vacuum(&again, &tree, &(0..0), &nobody);
        nothing_is_lost(&tree);
        drop(tree);
        again.destroy();
    }
    std::fs::remove_dir_all(&base).unwrap();
    drop(tx);
    drop((session, tree));
    db.destroy();
}

#[test]
fn a_crash_at_any_time_leaves_a_whole_tree_and_no_page_is_lost() {
    let mut db = Db::new();
    let rel = BTree::create(&db.storage, db.rel()).unwrap().rel;
    let mut random = Random(5);
    let (mut first, mut next) = (0, 0);
    let mut sizes = Vec::new();
    for round in 0..12 {
        let tree = BTree::open(&db.storage, rel);
        let session = db.session();
        let tx = session.begin();
        for _ in 0..2_500 {
            insert(&tx, &tree, next, 100);
            next += 1;
        }
        first = first.max(next - 300);
        vacuum(&db, &tree, &(0..first), &nobody);
        if round % 3 == 0 {
            db.storage.checkpoint().unwrap();
        }
        // Unlinked and not freed, among others: whatever of this has reached the log.
        for _ in 0..random.below(2_500) {
            insert(&tx, &tree, next, 100);
            next += 1;
        }
        db.storage.wal.flush(db.storage.wal.insert_position()).unwrap();
        let index = AnyIndex::from(tree.clone());
        let half = first + random.below(next - first);
        index
            .bulk_delete(&|row| u64::from(row.block) * 100 + u64::from(row.offset) - 1 < half)
            .unwrap();
        db.storage.wal.flush(db.storage.wal.insert_position()).unwrap();
        first = half;
        drop(tx);
        drop((session, tree, index));
        db = db.crash();
        let tree = BTree::open(&db.storage, rel);
        assert!(verify(&tree).into_iter().eq(first..next), "round {round}");
        vacuum(&db, &tree, &(0..0), &nobody);
        nothing_is_lost(&tree);
        sizes.push(pages(&db, &tree));
    }
    assert!(sizes[11] <= sizes[2] + 32, "{sizes:?}");
    db.destroy();
}
