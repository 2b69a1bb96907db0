//! A process under load is killed again and again. Whatever it said to be done is there afterwards,
//! nothing is half there, and heap and indexes agree.
//!
//! The test runs its own binary as the victim: [`victim`] is that process's main function.

mod common;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;

use base::RelId;
use common::{Db, Random, Rels, Table, commit, tiny_options};
use storage::Storage;

const ACCOUNTS: u64 = 60;
const DIRECTORY: &str = "ACCESS_KILL_DIR";
const ROUND: &str = "ACCESS_KILL_ROUND";

/// The tables' files: the first eight relations of the directory.
fn tables(db: &Db, first: u32) -> (Table, Table) {
    let rel = |n| RelId(first + n);
    let rels = |n| Rels(rel(n), rel(n + 1), rel(n + 2), rel(n + 3));
    (Table::open(db, rels(0), 40), Table::open(db, rels(4), 40))
}

fn first_rel(db: &Db) -> u32 {
    db.storage.relations().unwrap().into_iter().map(|r| r.0).min().expect("there are relations")
}

/// Changes an account, writes the history of it, and says so once it is durable.
fn transfer(db: &Db, accounts: &Table, history: &Table, random: &mut Random, key: u64) {
    let session = db.session();
    let tx = session.begin();
    let delta = random.below(50);
    let account = random.below(ACCOUNTS);
    assert!(accounts.update(&tx, account, |v| v + delta).unwrap());
    tx.next_command();
    // A change that stays in the chain, in an account of this transaction's.
    assert!(accounts.update(&tx, account, |v| v).unwrap());
    tx.next_command();
    assert!(history.insert(&tx, key, delta).unwrap());
    if random.below(10) == 0 {
        return;
    }
    let lsn = tx.commit(&[], |_| {}).unwrap();
    db.storage.wal.flush(lsn).unwrap();
    static OUT: Mutex<()> = Mutex::new(());
    let _turn = OUT.lock().unwrap();
    let mut out = std::io::stdout().lock();
    writeln!(out, "done {key}").unwrap();
    out.flush().unwrap();
}

/// Holds snapshots, most for a while and one in eight for long; what one sees must not change. (A victim
/// that ends by itself fails the test.)
fn hold_snapshots(db: &Db, accounts: &Table, history: &Table, random: &mut Random) {
    let session = db.session();
    loop {
        let tx = session.begin_rr();
        let snapshot = tx.snapshot();
        let balances = accounts.scan(&tx, &snapshot).unwrap();
        let records = history.scan(&tx, &snapshot).unwrap();
        let sum = |rows: &[(u64, u64)]| rows.iter().map(|r| r.1).sum::<u64>();
        let rounds = if random.below(8) == 0 { 500 } else { random.below(20) };
        let again = |_| accounts.scan(&tx, &snapshot).unwrap() == balances;
        if sum(&balances) != sum(&records) || !(0..rounds).all(again) {
            println!("a snapshot has changed");
            std::process::abort();
        }
        commit(tx);
    }
}

#[test]
#[ignore = "runs as the process that is killed"]
fn victim() {
    let Ok(dir) = std::env::var(DIRECTORY) else { return };
    let round: u64 = std::env::var(ROUND).unwrap().parse().unwrap();
    let db = Db::open_with(PathBuf::from(dir), tiny_options());
    let (accounts, history) = tables(&db, first_rel(&db));
    println!("ready");
    thread::scope(|scope| {
        for number in 0..2u64 {
            let (db, accounts, history) = (&db, &accounts, &history);
            let mut random = Random(round * 17 + number + 1);
            scope.spawn(move || hold_snapshots(db, accounts, history, &mut random));
        }
        for number in 0..4u64 {
            let (db, accounts, history) = (&db, &accounts, &history);
            scope.spawn(move || {
                let mut random = Random(round * 31 + number + 1);
                for i in 0.. {
                    let key = (round * 10 + number) * 1_000_000 + i;
                    transfer(db, accounts, history, &mut random, key);
                    if number == 0 && i % 40 == 39 {
                        accounts.vacuum(db);
                    }
                }
            });
        }
    });
}

/// Starts a victim, kills it after so many acknowledgements; returns those that it got out.
fn run_and_kill(dir: &PathBuf, round: u64, acknowledgements: usize) -> Vec<u64> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["victim", "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, dir)
        .env(ROUND, round.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    let mut done = Vec::new();
    let mut killed = false;
    for line in out.lines() {
        let Ok(line) = line else { break };
        if let Some(key) = line.strip_prefix("done ") {
            done.extend(key.parse::<u64>());
        }
        if done.len() >= acknowledgements && !killed {
            child.kill().unwrap();
            killed = true;
        }
    }
    let status = child.wait().unwrap();
    assert!(killed, "the victim ended by itself: {status}");
    done
}

#[test]
fn a_killed_process_loses_nothing_that_it_acknowledged() {
    let dir = common::fresh_dir();
    Storage::create_with(&dir, &tiny_options()).unwrap();
    let db = Db::open_with(dir.clone(), tiny_options());
    let accounts = Table::create(&db, 40);
    let _history = Table::create(&db, 40);
    let session = db.session();
    let tx = session.begin();
    for key in 0..ACCOUNTS {
        assert!(accounts.insert(&tx, key, 0).unwrap());
    }
    commit(tx);
    drop((session, accounts, _history));
    db.storage.shutdown().unwrap();
    drop(db);

    let mut acknowledged = BTreeSet::new();
    let mut random = Random(99);
    for round in 1..=8 {
        acknowledged.extend(run_and_kill(&dir, round, 100 + random.below(1200) as usize));
        let db = Db::open_with(dir.clone(), tiny_options());
        let (accounts, history) = tables(&db, first_rel(&db));
        accounts.check(&db);
        history.check(&db);
        let session = db.session();
        let tx = session.begin();
        let snapshot = tx.snapshot();
        let balances = accounts.scan(&tx, &snapshot).unwrap();
        let records = history.scan(&tx, &snapshot).unwrap();
        assert_eq!(balances.len() as u64, ACCOUNTS);
        let sum = |rows: &[(u64, u64)]| rows.iter().map(|r| r.1).sum::<u64>();
        assert_eq!(sum(&balances), sum(&records), "round {round}: a transaction is half there");
        let keys: BTreeSet<u64> = records.iter().map(|r| r.0).collect();
        let lost: Vec<_> = acknowledged.difference(&keys).collect();
        assert!(lost.is_empty(), "round {round}: lost {lost:?}");
        drop(tx);
        drop((session, accounts, history));
        db.storage.shutdown().unwrap();
    }
    std::fs::remove_dir_all(dir).unwrap();
}
