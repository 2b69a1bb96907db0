//! The archive of the log, and base backups brought to moments of it: random positions, a time, the earliest.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use support::client::Client;
use support::random::Random;
use support::{BIN, PG_BIN, Server, TempDir, text_of};

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

/// Balances that always agree, and a counter that only grows.
fn load(port: u16, number: u64, stop: &AtomicBool, seen: &Mutex<Vec<(String, u64)>>) {
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
            let at = client.one("SELECT pg_current_wal_insert_lsn()");
            seen.lock().expect("nobody panics").push((at, count));
        }
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
         INSERT INTO account SELECT i, 10 FROM generate_series(0, 99) i; INSERT INTO counter VALUES (0, 0), (1, 0)",
    );
    let (stop, seen) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let mut time = String::new();
    std::thread::scope(|scope| {
        for number in 0..2 {
            let (stop, seen, port) = (&stop, &seen, server.port);
            scope.spawn(move || load(port, number, stop, seen));
        }
        let mut client = Client::connect(server.port).expect("it serves");
        let backup = format!("{PG_BIN}/pg_basebackup");
        let port = server.port.to_string();
        let base =
            ["-h", "127.0.0.1", "-U", "postgres", "-X", "fetch", "-c", "fast", "-p", &port, "-D"];
        run(Command::new(backup).args(base).arg(&copy));
        seen.lock().expect("nobody panics").clear();
        let have = |wanted: usize| {
            while seen.lock().expect("nobody panics").len() < wanted {
                std::thread::yield_now();
            }
        };
        have(30);
        client.one("CREATE TABLE dropped AS SELECT 1 AS a");
        // Marks of the time are a second apart.
        std::thread::sleep(std::time::Duration::from_millis(2500));
        time = client.one("SELECT clock_timestamp()");
        std::thread::sleep(std::time::Duration::from_millis(2500));
        client.one("DROP TABLE dropped");
        let more = seen.lock().expect("nobody panics").len() + 30;
        have(more);
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
    for _ in 0..8 {
        let (position, count) = &seen[random.below(seen.len() as u64) as usize];
        let dir = again(&copy, &scratch);
        let (done, said) = restore(&dir, &[&source[..], &["--target-lsn", position]].concat());
        assert!(done, "{position}: {said}");
        let server = Server::start(&dir, &["workers=2"]);
        let mut client = Client::connect(server.port).expect("it serves");
        assert_eq!(client.one("SELECT sum(n) FROM account"), "1000", "{position}");
        // The other client's statements may be in the log between; this one's next is not.
        assert_eq!(
            client.one("SELECT n FROM counter WHERE id = 0"),
            count.to_string(),
            "{position}"
        );
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
