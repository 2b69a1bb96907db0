//! The archive of the log, and base backups brought to moments of it: random positions and times, the earliest.
//!
//! `ARCHIVE_POINTS`: how many random moments (5 when not set; `make soak`: 100).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::client::Client;
use crate::support::random::Random;
use crate::support::{BIN, PG_BIN, Server, TempDir, text_of};

fn run(command: &mut Command) -> String {
    let out = command.output().expect("the program is installed");
    let text = text_of(&out);
    assert!(out.status.success(), "{command:?}: {text}");
    text
}

fn restore(copy: &Path, more: &[&str]) -> (bool, String) {
    let out = Command::new(BIN).args(["restore", "-D"]).arg(copy).args(more).output();
    let out = out.expect("the program runs");
    (out.status.success(), text_of(&out))
}

/// A copy of the copy.
fn again(copy: &Path, to: &Path) -> PathBuf {
    let _ = std::fs::remove_dir_all(to);
    run(Command::new("cp").arg("-a").arg(copy).arg(to));
    to.to_owned()
}

/// A moment: what its client had been told by then.
#[derive(Clone, Debug)]
struct Moment {
    position: String,
    time: String,
    count: u64,
}

/// Balances that always agree, and a counter that only grows.
fn load(port: u16, number: u64, stop: &AtomicBool, seen: &Mutex<Vec<Moment>>) {
    let mut client = Client::connect(port).expect("it serves");
    let mut random = Random::new(number * 77 + 1);
    let mut count = 0;
    while !stop.load(Ordering::Relaxed) {
        let (from, to) = (random.below(100), random.below(100));
        count += 1;
        let answer = client
            .query(&format!(
                "BEGIN; UPDATE account SET n = n - 1 WHERE id = {from};
                 UPDATE account SET n = n + 1 WHERE id = {to};
                 UPDATE counter SET n = {count} WHERE id = {number}; COMMIT"
            ))
            .expect("it serves");
        if answer.error.is_some() {
            client.query("ROLLBACK").expect("it serves");
        } else if number == 0 && count % 10 == 0 {
            let both = client.one("SELECT pg_current_wal_insert_lsn() || ',' || clock_timestamp()");
            let (position, time) = both.split_once(',').expect("both");
            let (position, time) = (position.to_owned(), time.to_owned());
            seen.lock().expect("nobody panics").push(Moment { position, time, count });
        }
    }
}

/// Tables that come and go.
fn define(port: u16, stop: &AtomicBool) {
    let mut client = Client::connect(port).expect("it serves");
    while !stop.load(Ordering::Relaxed) {
        for sql in [
            "CREATE TABLE passing AS SELECT i, repeat('x', 500) AS s FROM generate_series(1, 200) i",
            "CREATE INDEX ON passing (i); DELETE FROM passing WHERE i > 20",
            "TRUNCATE kept; INSERT INTO kept SELECT i FROM generate_series(1, 30) i",
            "DROP TABLE passing",
        ] {
            let answer = client.query(sql).expect("it serves");
            assert!(answer.error.is_none(), "{sql}: {:?}", answer.error);
        }
        // Each restore reads all of the log: a little is enough.
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn a_backup_is_brought_to_random_positions_a_time_and_the_earliest_moment() {
    let temp = TempDir::new("archive");
    let (archive, copy) = (temp.path().join("archive"), temp.path().join("copy"));
    std::fs::create_dir(&archive).expect("writable");
    let folder = archive.to_string_lossy().into_owned();
    let command = format!("archive_command=test ! -f {folder}/%f && cp %p {folder}/%f");
    let settings =
        ["workers=2", "max_wal_size=2MB", "min_wal_size=2MB", "archive_mode=on", &command];
    let server = Server::start(&temp.path().join("data"), &settings);
    server.query(
        "CREATE TABLE account (id int PRIMARY KEY, n int); CREATE TABLE counter (id int PRIMARY KEY, n int);
         INSERT INTO account SELECT i, 10 FROM generate_series(0, 99) i; INSERT INTO counter VALUES (0, 0), (1, 0);
         CREATE TABLE kept (i int)",
    );
    let points = std::env::var("ARCHIVE_POINTS").ok().and_then(|v| v.parse().ok()).unwrap_or(5);
    let (stop, seen) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let mut time = String::new();
    let mut middle = 0..0;
    std::thread::scope(|scope| {
        for number in 0..2 {
            let (stop, seen, port) = (&stop, &seen, server.port);
            scope.spawn(move || load(port, number, stop, seen));
        }
        scope.spawn(|| define(server.port, &stop));
        let mut client = Client::connect(server.port).expect("it serves");
        let backup = format!("{PG_BIN}/pg_basebackup");
        let port = server.port.to_string();
        let base =
            ["-h", "127.0.0.1", "-U", "postgres", "-X", "fetch", "-c", "fast", "-p", &port, "-D"];
        run(Command::new(backup).args(base).arg(&copy));
        seen.lock().expect("nobody panics").clear();
        let have = |wanted: usize| {
            let until = std::time::Instant::now() + std::time::Duration::from_secs(120);
            while seen.lock().expect("nobody panics").len() < wanted {
                assert!(std::time::Instant::now() < until, "nothing is committed any more");
                std::thread::yield_now();
            }
        };
        let length = || seen.lock().expect("nobody panics").len();
        have(30);
        client.one("CREATE TABLE dropped AS SELECT 1 AS a");
        // Marks of the time are a second apart: there is one before the middle, and one after it.
        std::thread::sleep(std::time::Duration::from_millis(2500));
        let from = length();
        have(from + 30 + points);
        time = client.one("SELECT clock_timestamp()");
        middle = from..length();
        std::thread::sleep(std::time::Duration::from_millis(2500));
        client.one("DROP TABLE dropped");
        have(length() + 30);
        stop.store(true, Ordering::Relaxed);
    });
    let mut client = Client::connect(server.port).expect("it serves");
    let last = client.one("SELECT pg_walfile_name(pg_current_wal_insert_lsn())");
    let number = u64::from_str_radix(&last, 16).expect("a segment's number");
    client.one("SELECT pg_switch_wal()");
    let last = format!("00000001{:08X}{:08X}", number / 256, number % 256);
    let archived = format!("SELECT last_archived_wal >= '{last}' FROM pg_stat_archiver");
    client.await_one(&archived, "t");
    assert_eq!(client.one("SELECT failed_count FROM pg_stat_archiver"), "0");
    server.kill();

    let scratch = temp.path().join("scratch");
    let source = ["--archive", &folder];
    let seen = seen.into_inner().expect("nobody panics");
    let mut random = Random::new(4711);
    for point in 0..points {
        let by_time = point % 2 == 1;
        let moment = match by_time {
            true => &seen[middle.start + random.index(middle.len())],
            false => &seen[random.index(seen.len())],
        };
        let target = match by_time {
            true => ["--target-time", &moment.time],
            false => ["--target-lsn", &moment.position],
        };
        let dir = again(&copy, &scratch);
        let (done, said) = restore(&dir, &[&source[..], &target].concat());
        assert!(done, "{moment:?}: {said}");
        let server = Server::start(&dir, &["workers=2"]);
        let mut client = Client::connect(server.port).expect("it serves");
        assert_eq!(client.one("SELECT sum(n) FROM account"), "1000", "{moment:?}");
        let kept = client.one("SELECT count(*) FROM kept");
        assert!(matches!(kept.as_str(), "0" | "30"), "{moment:?}: {kept}");
        let count: u64 =
            client.one("SELECT n FROM counter WHERE id = 0").parse().expect("a number");
        // The other clients' statements may be in the log between; this one's next is not. A time is that of a mark before.
        let right =
            if by_time { count <= moment.count && count > 0 } else { count == moment.count };
        assert!(right, "{moment:?}: {count}");
        server.kill();
        assert_eq!(run(Command::new(BIN).args(["check", "-D"]).arg(&dir)), "no damage found\n");
    }
    for (target, tables) in
        [(&["--target-immediate"][..], "0"), (&["--target-time", &time], "1"), (&[], "0")]
    {
        let dir = again(&copy, &scratch);
        let (done, said) = restore(&dir, &[&source[..], target].concat());
        assert!(done, "{target:?}: {said}");
        let server = Server::start(&dir, &["workers=2"]);
        let mut client = Client::connect(server.port).expect("it serves");
        assert_eq!(client.one("SELECT sum(n) FROM account"), "1000", "{target:?}");
        let there = client.one("SELECT count(*) FROM pg_class WHERE relname = 'dropped'");
        assert_eq!(there, tables, "{target:?}");
        server.kill();
    }
    for (target, word) in [
        (&["--target-lsn", "0/1000000"][..], "before consistent recovery point"),
        (&["--target-lsn", "FF/0"], "before configured recovery target"),
        (&["--target-time", "2001-01-01"], "before consistent recovery point"),
        (&["--target-time", "3001-01-01"], "before configured recovery target"),
    ] {
        let dir = again(&copy, &scratch);
        let (done, said) = restore(&dir, &[&source[..], target].concat());
        assert!(!done && said.contains(word), "{target:?}: {said}");
    }
}
