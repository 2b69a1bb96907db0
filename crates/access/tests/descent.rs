//! Look-ups and the inner pages of a B-tree: they touch nothing there that others see, and find what
//! is there while pages split, leave their frames and frames leave the pool.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use access::{BTree, Unique};
use base::settings::{self, Settings};
use base::{PageId, TupleId};
use common::{Db, Random};
use storage::{Options, Storage};
use txn::Transaction;

const READERS: u64 = 6;

fn tid(number: u64) -> TupleId {
    TupleId { block: number as u32, offset: 1 }
}

/// Keys of 8 to 40 bytes that share their first seven.
fn key(number: u64) -> Vec<u8> {
    let mut key = b"key of ".to_vec();
    key.extend_from_slice(&number.to_be_bytes());
    key.resize(15 + (number % 26) as usize, 0);
    key
}

fn find(tx: &Transaction, tree: &BTree, number: u64) -> bool {
    let mut found = Vec::new();
    tree.lookup(tx, &key(number), |t| {
        found.push(t);
        true
    })
    .unwrap();
    assert!(found.iter().all(|t| *t == tid(number)), "{number}: {found:?}");
    !found.is_empty()
}

fn filled(db: &Db, count: u64) -> BTree {
    let tree = BTree::create(&db.storage, db.rel()).unwrap();
    let session = db.session();
    let tx = session.begin();
    for i in 0..count {
        let number = i.wrapping_mul(2_654_435_761) % count;
        tree.insert(&tx, &key(number), tid(number), Unique::No).unwrap();
    }
    common::commit(tx);
    tree
}

/// State, version and latch of each inner page's frame.
fn words(storage: &Storage, inner: &[PageId]) -> Vec<Option<[u64; 3]>> {
    inner.iter().map(|id| storage.pool.shared_words(*id)).collect()
}

#[test]
fn lookups_modify_no_shared_page_state_above_the_leaf() {
    let count = 60_011;
    let db = Db::new();
    let tree = filled(&db, count);
    let report = tree.verify().unwrap();
    assert!(report.levels >= 3, "root, inner pages, leaves; not {} levels", report.levels);
    let inner: Vec<PageId> =
        report.inner.iter().map(|block| PageId::main(tree.rel, *block)).collect();
    assert!(inner.len() > 2);

    let session = db.session();
    assert!(find(&session.begin(), &tree, 0));
    drop(session); // the root is known from now on
    let (before, counted) = (words(&db.storage, &inner), db.storage.stats());
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        // A pin or latch that comes and goes would be seen by who looks all the time.
        let watcher = scope.spawn(|| {
            let mut looks = 0_u64;
            while !done.load(Ordering::Relaxed) {
                assert_eq!(words(&db.storage, &inner), before);
                looks += 1;
            }
            looks
        });
        let readers: Vec<_> = (0..READERS)
            .map(|reader| {
                let (db, tree) = (&db, &tree);
                scope.spawn(move || {
                    let session = db.session();
                    let tx = session.begin();
                    let mut random = Random(reader + 1);
                    (0..5_000).for_each(|_| assert!(find(&tx, tree, random.below(count))));
                })
            })
            .collect();
        let ended: Vec<_> = readers.into_iter().map(|r| r.join()).collect();
        done.store(true, Ordering::Relaxed);
        assert!(ended.iter().all(Result::is_ok));
        assert!(watcher.join().unwrap() > 0);
    });
    assert_eq!(words(&db.storage, &inner), before);
    // Nothing can be latched without a pin, and there was one pin for each look-up: the leaf's.
    let after = db.storage.stats();
    let lookups = READERS * 5_000;
    let unseen = after.optimistic - counted.optimistic;
    assert_eq!(unseen, lookups * u64::from(report.levels - 1));
    assert_eq!(after.hits - counted.hits - unseen, lookups);
    drop(tree);
    db.destroy();
}

#[test]
fn lookups_find_everything_among_splits_evictions_and_a_pool_that_changes_its_size() {
    const OLD: u64 = 4_000;
    const FRAMES: [usize; 3] = [96, 40, 160];
    let options = Options { frames: FRAMES[0], ..common::tiny_options() };
    let dir = common::fresh_dir();
    Storage::create_with(&dir, &options).unwrap();
    let db = Db::open_with(dir, options);
    let tree = filled(&db, OLD);
    // Other pages, to push out those of the tree.
    let other = filled(&db, OLD);
    let (inserted, done) = (AtomicU64::new(OLD), AtomicBool::new(false));
    let db = Arc::new(db);
    thread::scope(|scope| {
        let (tree, other, inserted, done, db) = (&tree, &other, &inserted, &done, &db);
        let readers: Vec<_> = (0..READERS)
            .map(|reader| {
                scope.spawn(move || {
                    let session = db.session();
                    let tx = session.begin();
                    let mut random = Random(reader + 1);
                    while !done.load(Ordering::Relaxed) {
                        let there = inserted.load(Ordering::Acquire);
                        let number = random.below(there);
                        assert!(find(&tx, tree, number), "{number} of {there}");
                        assert!(!find(&tx, tree, there + 1_000_000));
                        if random.below(4) == 0 {
                            assert!(find(&tx, other, random.below(OLD)));
                        }
                    }
                })
            })
            .collect();
        scope.spawn(move || {
            let mut rounds = FRAMES.iter().cycle();
            while !done.load(Ordering::Relaxed) {
                let frames = *rounds.next().expect("a cycle");
                // All frames at the end may be pinned just now: then the pool stays as it is.
                let _ = db.storage.pool.resize(frames, Duration::from_millis(20));
            }
        });
        let writer = scope.spawn(move || {
            let session = db.session();
            for number in OLD..OLD + 12_000 {
                let tx = session.begin();
                tree.insert(&tx, &key(number), tid(number), Unique::No).unwrap();
                common::commit(tx);
                inserted.store(number + 1, Ordering::Release);
            }
            // On a busy machine the others may have done little meanwhile.
            while db.storage.stats().evictions <= 1000 {
                thread::yield_now();
            }
        });
        let written = writer.join();
        done.store(true, Ordering::Relaxed);
        assert!(written.is_ok());
        readers.into_iter().for_each(|r| assert!(r.join().is_ok()));
    });
    assert!(tree.verify().unwrap().findings.is_empty());
    let stats = db.storage.stats();
    assert!(stats.evictions > 1000 && stats.optimistic > 0, "{stats:?}");
    drop((tree, other));
    Arc::into_inner(db).expect("all threads have ended").destroy();
}

/// `cargo test --release -p access --test descent -- --ignored --nocapture`
#[test]
#[ignore = "a measurement"]
fn lookup_speed() {
    settings::publish_live(&Settings::default());
    let count = 200_000_u64;
    let db = Db::new();
    let tree = BTree::create(&db.storage, db.rel()).unwrap();
    let session = db.session();
    let tx = session.begin();
    for i in 0..count {
        tree.insert(&tx, &i.to_be_bytes(), tid(i), Unique::No).unwrap();
    }
    common::commit(tx);
    for threads in [1, 2] {
        let began = std::time::Instant::now();
        thread::scope(|scope| {
            for t in 0..threads {
                let (db, tree) = (&db, &tree);
                scope.spawn(move || {
                    let session = db.session();
                    let tx = session.begin();
                    let mut random = Random(t + 1);
                    (0..1_000_000).for_each(|_| {
                        let key = random.below(count).to_be_bytes();
                        tree.lookup(&tx, &key, |t| std::hint::black_box(t) == TupleId::INVALID)
                            .unwrap();
                    });
                });
            }
        });
        println!("{threads} threads: {:.0} ns a look-up", began.elapsed().as_nanos() as f64 / 1e6);
    }
    drop(tree);
    db.destroy();
}
