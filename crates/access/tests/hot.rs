//! Many sessions at one row or one table: nothing is lost, chains stay short, pages are shared out.

mod common;

use std::thread;

use common::{Db, Session, Table, commit, value_of};

fn run(db: &Db, threads: u64, work: impl Fn(Session, u64) + Sync) {
    thread::scope(|scope| {
        for number in 0..threads {
            let work = &work;
            scope.spawn(move || work(db.session(), number));
        }
    });
}

#[test]
fn fifty_sessions_add_up_in_one_row() {
    let db = Db::new();
    let table = Table::create(&db, 30);
    let session = db.session();
    let tx = session.begin();
    for key in 0..3 {
        table.insert(&tx, key, 0).unwrap();
    }
    commit(tx);
    run(&db, 50, |session, number| {
        for _ in 0..40 {
            let tx = session.begin();
            // The second number counts; it is indexed, so give it a fixed value and count in rows
            // of its own: each round also touches the hot row without changing an indexed column.
            assert!(table.update(&tx, number % 3, |v| v).unwrap());
            tx.next_command();
            assert!(table.update(&tx, number % 3, |v| v + 1).unwrap());
            commit(tx);
        }
    });
    let tx = session.begin();
    let rows = table.scan(&tx, &tx.snapshot()).unwrap();
    assert_eq!(rows.iter().map(|r| r.1).sum::<u64>(), 50 * 40);
    drop(tx);
    table.check(&db);
    table.vacuum(&db);
    table.check(&db);
    drop((session, table));
    db.destroy();
}

#[test]
fn a_hot_row_stays_in_few_pages() {
    let db = Db::new();
    let table = Table::create(&db, 30);
    let session = db.session();
    let tx = session.begin();
    table.insert(&tx, 1, 0).unwrap();
    commit(tx);
    for _ in 0..5000 {
        let tx = session.begin();
        assert!(table.update(&tx, 1, |v| v).unwrap());
        commit(tx);
    }
    assert_eq!(table.heap.pages().unwrap(), 1, "pruning keeps up with one session");
    table.check(&db);
    drop((session, table));
    db.destroy();
}

#[test]
fn an_old_snapshot_keeps_what_it_sees_and_nothing_more() {
    let db = Db::new();
    let table = Table::create(&db, 30);
    let (old, new) = (db.session(), db.session());
    let tx = new.begin();
    table.insert(&tx, 1, 5).unwrap();
    commit(tx);
    let reader = old.begin_rr();
    let snapshot = reader.snapshot();
    for _ in 0..1000 {
        let tx = new.begin();
        assert!(table.update(&tx, 1, |v| v + 1).unwrap());
        commit(tx);
    }
    table.vacuum(&db);
    let seen = table.find(&reader, &snapshot, 1).unwrap().map(|f| f.value);
    assert_eq!(seen, Some(5), "the old snapshot still finds its version");
    assert_eq!(table.scan(&reader, &snapshot).unwrap(), [(1, 5)]);
    commit(reader);
    // The horizon moves with the next transactions.
    for _ in 0..3 {
        let tx = new.begin();
        assert!(table.update(&tx, 1, |v| v).unwrap());
        commit(tx);
    }
    let stats = table.vacuum(&db);
    assert_eq!((stats.live, stats.kept), (1, 0), "nothing holds the versions any more");
    table.check(&db);
    drop((old, new, table));
    db.destroy();
}

#[test]
fn a_long_snapshot_costs_one_version_of_a_hot_row() {
    let db = Db::new();
    let table = Table::create(&db, 30);
    let (old, new) = (db.session(), db.session());
    let tx = new.begin();
    table.insert(&tx, 1, 5).unwrap();
    commit(tx);
    let reader = old.begin_rr();
    let snapshot = reader.snapshot();
    for _ in 0..5000 {
        let tx = new.begin();
        assert!(table.update(&tx, 1, |v| v).unwrap());
        commit(tx);
    }
    assert_eq!(table.heap.pages().unwrap(), 1, "what nobody sees is pruned in passing");
    let stats = table.vacuum(&db);
    assert_eq!((stats.live, stats.kept), (1, 1));
    assert_eq!(table.scan(&reader, &snapshot).unwrap(), [(1, 5)]);
    table.check(&db);
    commit(reader);
    drop((old, new, table));
    db.destroy();
}

#[test]
fn vacuum_leads_an_old_version_past_the_chains_that_follow() {
    let db = Db::new();
    let table = Table::create(&db, 500);
    let (old, new) = (db.session(), db.session());
    let tx = new.begin();
    table.insert(&tx, 1, 5).unwrap();
    commit(tx);
    let reader = old.begin_rr();
    let snapshot = reader.snapshot();
    for _ in 0..300 {
        let tx = new.begin();
        assert!(table.update(&tx, 1, |v| v + 1).unwrap());
        commit(tx);
    }
    // A dead version loses its index entries by the next vacuum, if it was passed by already.
    table.vacuum(&db);
    let stats = table.vacuum(&db);
    assert_eq!((stats.live, stats.kept), (1, 1));
    table.check(&db);
    assert_eq!(table.scan(&reader, &snapshot).unwrap(), [(1, 5)]);
    let seen = table.find(&reader, &snapshot, 1).unwrap().expect("it is there");
    let tx = new.begin();
    let newest = table.heap.latest(&tx, &tx.snapshot(), seen.tid).unwrap();
    let version = table.heap.fetch_version(newest).unwrap().expect("it is there");
    assert_eq!(value_of(&version.data), 305, "the old version leads to the newest");
    drop(tx);
    commit(reader);
    drop((old, new, table));
    db.destroy();
}

#[test]
fn sixteen_threads_extend_one_table() {
    let db = Db::new();
    let table = Table::create(&db, 150);
    run(&db, 16, |session, number| {
        for i in 0..150 {
            let tx = session.begin();
            assert!(table.insert(&tx, number * 1000 + i, i).unwrap());
            commit(tx);
        }
    });
    let session = db.session();
    let tx = session.begin();
    let rows = table.scan(&tx, &tx.snapshot()).unwrap();
    assert_eq!(rows.len(), 16 * 150);
    assert!(rows.windows(2).all(|w| w[0].0 < w[1].0));
    drop(tx);
    table.check(&db);
    let per_page = 8192 / (150 + 16 + 36);
    let needed = 16 * 150 / per_page;
    let pages = table.heap.pages().unwrap();
    assert!(pages < needed + 16 + 200, "{pages} pages for rows that need {needed}");
    drop((session, table));
    db.destroy();
}

#[test]
fn readers_and_writers_agree_on_the_total() {
    let db = Db::new();
    let table = Table::create(&db, 60);
    let keys = 40;
    let session = db.session();
    let tx = session.begin();
    for key in 0..keys {
        table.insert(&tx, key, 100).unwrap();
    }
    commit(tx);
    run(&db, 8, |session, number| {
        let mut random = common::Random(number + 1);
        for round in 0..60 {
            let tx = session.begin();
            if number < 4 {
                let (a, b) = (random.below(keys), random.below(keys));
                // In key order, so that there are no deadlocks.
                let (a, b) = (a.min(b), a.max(b));
                if a != b {
                    assert!(table.update(&tx, a, |v| v + 3).unwrap());
                    tx.next_command();
                    assert!(table.update(&tx, b, |v| v.wrapping_sub(3)).unwrap());
                }
                if round % 5 == 0 {
                    drop(tx);
                } else {
                    commit(tx);
                }
            } else {
                let snapshot = tx.snapshot();
                let rows = table.scan(&tx, &snapshot).unwrap();
                assert_eq!(rows.len() as u64, keys);
                let total = rows.iter().fold(0u64, |sum, row| sum.wrapping_add(row.1));
                assert_eq!(total, keys * 100);
                let mut by_index = table
                    .index_scan(&tx, &snapshot, &table.by_value, access::KeyRange::default(), false)
                    .unwrap();
                by_index.sort_unstable();
                assert_eq!(by_index, rows);
                tx.end_statement();
            }
        }
    });
    table.check(&db);
    drop((session, table));
    db.destroy();
}

#[test]
fn a_tiny_pool_is_enough_for_many() {
    let db = Db::tiny();
    let table = Table::create(&db, 300);
    run(&db, 12, |session, number| {
        let mut random = common::Random(number + 77);
        let mut mine = std::collections::BTreeMap::new();
        for i in 0..250 {
            let tx = session.begin();
            let key = number * 10_000 + random.below(120);
            let value = random.below(50);
            match mine.contains_key(&key) {
                false => assert!(table.insert(&tx, key, value).unwrap()),
                true if i % 5 == 0 => assert!(table.delete(&tx, key).unwrap()),
                true => assert!(table.update(&tx, key, |_| value).unwrap()),
            }
            if i % 9 == 0 {
                continue;
            }
            commit(tx);
            if mine.contains_key(&key) && i % 5 == 0 {
                mine.remove(&key);
            } else {
                mine.insert(key, value);
            }
        }
        let tx = session.begin();
        let rows = table.scan(&tx, &tx.snapshot()).unwrap();
        let seen: Vec<_> = rows.into_iter().filter(|r| r.0 / 10_000 == number).collect();
        let expected: Vec<_> = mine.into_iter().collect();
        assert_eq!(seen, expected);
    });
    table.check(&db);
    table.vacuum(&db);
    table.check(&db);
    drop(table);
    db.destroy();
}

#[test]
fn vacuum_runs_beside_writers_and_readers() {
    let db = Db::tiny();
    let table = Table::create(&db, 100);
    let keys = 400;
    let busy = std::sync::atomic::AtomicU32::new(6);
    run(&db, 8, |session, number| {
        use std::sync::atomic::Ordering::SeqCst;
        let mut random = common::Random(number * 77 + 1);
        if number >= 6 {
            while busy.load(SeqCst) > 0 {
                if number == 6 {
                    table.vacuum(&db);
                    continue;
                }
                // Each key is there at most once, by every way to it.
                let tx = session.begin();
                let snapshot = tx.snapshot();
                let rows = table.scan(&tx, &snapshot).unwrap();
                assert!(rows.windows(2).all(|w| w[0].0 < w[1].0), "a key is there twice");
                for index in [&table.by_key, &table.by_value] {
                    let all = access::KeyRange::default();
                    let mut found =
                        table.index_scan(&tx, &snapshot, index, all, number % 2 == 0).unwrap();
                    found.sort_unstable();
                    assert_eq!(found, rows);
                }
                tx.end_statement();
            }
            return;
        }
        for _ in 0..400 {
            let tx = session.begin();
            let key = random.below(keys / 6) * 6 + number;
            let value = random.below(1000);
            let snapshot = tx.snapshot();
            let there = table.find(&tx, &snapshot, key).unwrap().is_some();
            match random.below(3) {
                _ if !there => assert!(table.insert(&tx, key, value).unwrap()),
                0 => assert!(table.delete(&tx, key).unwrap()),
                1 => assert!(table.update(&tx, key, |_| value).unwrap()),
                _ => assert!(table.update(&tx, key, |v| v).unwrap()),
            }
            if random.below(5) > 0 {
                commit(tx);
            }
        }
        busy.fetch_sub(1, SeqCst);
    });
    table.check(&db);
    table.vacuum(&db);
    table.check(&db);
    drop(table);
    db.destroy();
}

#[test]
fn those_who_wait_without_a_snapshot_lose_nothing() {
    let db = Db::new();
    let table = Table::create(&db, 30);
    let session = db.session();
    let tx = session.begin();
    table.insert(&tx, 1, 0).unwrap();
    commit(tx);
    run(&db, 30, |session, _| {
        for _ in 0..40 {
            let tx = session.begin();
            loop {
                let at = table.find(&tx, &tx.snapshot(), 1).unwrap().unwrap();
                let mode = txn::RowLockMode::NoKeyUpdate;
                if table.heap.await_row(&tx, at.tid, at.root, mode).unwrap() {
                    break;
                }
            }
            assert!(table.update(&tx, 1, |v| v + 1).unwrap());
            commit(tx);
        }
    });
    let tx = session.begin();
    assert_eq!(table.scan(&tx, &tx.snapshot()).unwrap(), [(1, 30 * 40)]);
    drop(tx);
    table.check(&db);
    drop((session, table));
    db.destroy();
}

#[test]
fn old_snapshots_stay_as_they_are_while_all_between_them_goes() {
    let db = Db::new();
    let table = Table::create(&db, 120);
    let keys = 12;
    let session = db.session();
    let tx = session.begin();
    for key in 0..keys {
        table.insert(&tx, key, 1000).unwrap();
    }
    commit(tx);
    run(&db, 9, |session, number| {
        let mut random = common::Random(number * 31 + 5);
        for round in 0..80 {
            if number == 0 {
                table.vacuum(&db);
            } else if number < 4 {
                let reader = session.begin_rr();
                let snapshot = reader.snapshot();
                let rows = table.scan(&reader, &snapshot).unwrap();
                assert_eq!(rows.iter().map(|row| row.1).sum::<u64>(), keys * 1000);
                for _ in 0..1 + random.below(12) {
                    assert_eq!(table.scan(&reader, &snapshot).unwrap(), rows);
                    let (key, value) = rows[random.below(keys) as usize];
                    let found = table.find(&reader, &snapshot, key).unwrap();
                    assert_eq!(found.map(|f| f.value), Some(value));
                }
                commit(reader);
            } else {
                let tx = session.begin();
                let (a, b) = (random.below(keys), random.below(keys));
                let (a, b) = (a.min(b), a.max(b));
                // Half of the updates stay in their chains.
                let by = random.below(2);
                assert!(table.update(&tx, a, |v| v + by).unwrap());
                tx.next_command();
                if a != b {
                    assert!(table.update(&tx, b, |v| v - by).unwrap());
                } else {
                    assert!(table.update(&tx, a, |v| v - by).unwrap());
                }
                tx.end_statement();
                match round % 7 {
                    0 => drop(tx),
                    _ => commit(tx),
                }
            }
        }
    });
    table.vacuum(&db);
    table.vacuum(&db);
    let stats = table.vacuum(&db);
    assert_eq!((stats.live, stats.kept), (keys, 0));
    table.check(&db);
    drop((session, table));
    db.destroy();
}
