//! Backups with PostgreSQL's own programs, while the server changes what they copy.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::support::client::Client;
use crate::support::raw::{Raw, startup};
use crate::support::{BIN, PG_BIN, Server, TempDir, text_of};

/// Runs pg_basebackup into a folder; what it wrote.
fn base_backup(server: &Server, into: &Path, more: &[&str]) -> String {
    let mut command = Command::new(format!("{PG_BIN}/pg_basebackup"));
    command.args(["-h", "127.0.0.1", "-U", "postgres", "-X", "fetch", "-c", "fast", "-D"]);
    command.arg(into).args(["-p", &server.port.to_string()]).args(more);
    let out = command.output().expect("pg_basebackup is installed");
    let text = text_of(&out);
    assert!(out.status.success(), "{text}");
    text
}

fn check(dir: &Path) -> String {
    let out = Command::new(BIN).args(["check", "-D"]).arg(dir).output().expect("the program runs");
    let text = text_of(&out);
    assert!(out.status.success(), "{text}");
    text
}

/// Whether a copy's manifest names a range of the log that is not empty.
fn needs_log(copy: &Path) -> bool {
    let manifest = std::fs::read_to_string(copy.join("backup_manifest")).expect("a manifest");
    let at = |name: &str| {
        let (_, rest) = manifest.split_once(name).expect("a range of the log");
        rest.split('"').nth(2).map(str::to_owned)
    };
    at("Start-LSN") != at("End-LSN")
}

/// Moves money between accounts, makes tables, cuts and drops them, until told to stop; how many transfers.
fn disturb(port: u16, number: u32, stop: &AtomicBool) -> u64 {
    let mut client = Client::connect(port).expect("a connection");
    let mut done = 0;
    let mut at = u64::from(number) * 7919;
    while !stop.load(Ordering::Relaxed) {
        at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (from, to) = ((at >> 20) % 5000, (at >> 40) % 5000);
        client
            .query(&format!(
                "BEGIN; UPDATE accounts SET n = n - 1 WHERE id = {from};
                 UPDATE accounts SET n = n + 1 WHERE id = {to}; COMMIT"
            ))
            .expect("a transfer");
        if done % 50 == 0 {
            client
                .query(&format!(
                    "DROP TABLE IF EXISTS passing{number};
                     CREATE TABLE passing{number} AS SELECT i, repeat('x', 500) AS s FROM generate_series(1, 500) i;
                     DELETE FROM passing{number} WHERE i > 20; TRUNCATE kept{number};
                     INSERT INTO kept{number} SELECT i, i FROM generate_series(1, 300) i"
                ))
                .expect("definitions");
        }
        done += 1;
    }
    done
}

#[test]
fn a_copy_that_was_taken_under_load_is_whole() {
    let dir = TempDir::new("backup");
    let settings = ["workers=2", "shared_buffers=8MB", "max_wal_size=2MB", "min_wal_size=2MB"];
    let server = Server::start(&dir.path().join("data"), &settings);
    server.query(
        "CREATE TABLE accounts (id int PRIMARY KEY, n int NOT NULL, pad text);
         INSERT INTO accounts SELECT i, 100, repeat('p', 1000) FROM generate_series(0, 4999) i;
         CREATE INDEX ON accounts (n);
         CREATE TABLE kept0 (a int PRIMARY KEY, b int); CREATE TABLE kept1 (a int PRIMARY KEY, b int)",
    );
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..2)
            .map(|n| {
                scope.spawn({
                    let (stop, port) = (&stop, server.port);
                    move || disturb(port, n, stop)
                })
            })
            .collect();
        for (name, more) in
            [("plain", &["-Fp"][..]), ("slow", &["-Fp", "--max-rate=16M", "-P"]), ("tar", &["-Ft"])]
        {
            let copy = dir.path().join(name);
            base_backup(&server, &copy, more);
            if name == "tar" {
                let out = Command::new("tar")
                    .args(["-xf", "base.tar"])
                    .current_dir(&copy)
                    .output()
                    .expect("tar is installed");
                assert!(out.status.success(), "{}", text_of(&out));
                for left in ["base.tar", "backup_manifest"] {
                    std::fs::remove_file(copy.join(left)).expect("it is there");
                }
            } else {
                let out = Command::new(format!("{PG_BIN}/pg_verifybackup"))
                    .arg("-n")
                    .arg(&copy)
                    .output()
                    .expect("pg_verifybackup is installed");
                assert!(out.status.success(), "{}", text_of(&out));
            }
            check(&copy);
            let restored = Server::start(&copy, &[]);
            assert_eq!(
                restored.query("SELECT count(*), sum(n), count(DISTINCT id) FROM accounts"),
                "5000|500000|5000",
                "{name}"
            );
            let indexed =
                "SET enable_seqscan = off; SELECT count(*) FROM accounts WHERE n >= -1000000";
            assert_eq!(restored.query(indexed), "5000");
            assert_eq!(restored.query("SELECT count(*) IN (0, 300) FROM kept0"), "t");
            restored.query("INSERT INTO accounts VALUES (5000, 0); DROP TABLE accounts");
            assert!(restored.stop());
        }
        stop.store(true, Ordering::Relaxed);
        for worker in workers {
            assert!(worker.join().expect("a client") > 0);
        }
    });
    assert!(server.stop());
}

#[test]
fn log_that_a_backup_needs_is_kept_until_its_end() {
    let dir = TempDir::new("backup-held");
    let data = dir.path().join("data");
    let server = Server::start(&data, &["workers=2", "max_wal_size=2MB", "min_wal_size=2MB"]);
    server.query(
        "CREATE TABLE t AS SELECT i, repeat('x', 200) AS s FROM generate_series(1, 20000) i",
    );
    let segments = || {
        let names = std::fs::read_dir(data.join("wal")).expect("the log");
        let mut names: Vec<String> = names
            .map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    };
    let mut slow = Raw::open(server.port);
    slow.send(&startup(0x30000, &[("user", "postgres"), ("replication", "true")]));
    slow.until(|line| line.starts_with("Z "));
    slow.send(&crate::support::raw::query(
        "BASE_BACKUP (LABEL 'x', CHECKPOINT 'fast', WAL, MAX_RATE 32)",
    ));
    slow.until(|line| line.starts_with("H "));
    let first = segments()[0].clone();
    for _ in 0..4 {
        server.query("UPDATE t SET s = s || 'y'; CHECKPOINT");
    }
    assert_eq!(segments()[0], first, "the first segment is held");
    drop(slow);
    // The session ends with its connection, and the next checkpoint lets the log go.
    let end = Instant::now() + Duration::from_secs(60);
    while segments()[0] == first {
        assert!(Instant::now() < end, "the log was never let go");
        server.query("UPDATE t SET s = 'z' WHERE i < 100; CHECKPOINT");
    }
    assert!(server.stop());
}

#[test]
fn a_copy_without_the_end_of_its_log_is_refused() {
    let dir = TempDir::new("backup-cut");
    let server = Server::start(&dir.path().join("data"), &["workers=2"]);
    server.query("CREATE TABLE t (i int)");
    let copy = dir.path().join("copy");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut client = Client::connect(server.port).expect("a connection");
            while !stop.load(Ordering::Relaxed) {
                client.query("INSERT INTO t VALUES (1)").expect("a row");
            }
        });
        // A copy during which nothing was logged needs no log.
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            base_backup(&server, &copy, &[]);
            if needs_log(&copy) || Instant::now() > end {
                break;
            }
            std::fs::remove_dir_all(&copy).expect("the copy can go");
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(needs_log(&copy), "the writer wrote nothing");
    check(&copy);
    let segment = std::fs::read_dir(copy.join("wal")).expect("the log").last().expect("a segment");
    let segment = segment.expect("an entry").path();
    let length = std::fs::metadata(&segment).expect("its length").len();
    let file = std::fs::File::create(&segment).expect("it can be emptied");
    file.set_len(length).expect("zeros");
    let out =
        Command::new(BIN).args(["check", "-D"]).arg(&copy).output().expect("the program runs");
    assert!(!out.status.success(), "{}", text_of(&out));
    assert!(server.stop());
}

#[test]
fn only_those_who_may_replicate_do() {
    let dir = TempDir::new("backup-rights");
    let server = Server::start(&dir.path().join("data"), &["workers=2"]);
    server.query("CREATE ROLE plain LOGIN; CREATE ROLE copies LOGIN REPLICATION");
    let open = |user: &str, kind: &str| {
        let mut raw = Raw::open(server.port);
        raw.send(&startup(
            0x30000,
            &[("user", user), ("database", "postgres"), ("replication", kind)],
        ));
        let lines = raw.until(|line| line.starts_with("Z ") || line.starts_with("E "));
        (raw, lines)
    };
    for kind in ["true", "database"] {
        let (_, lines) = open("plain", kind);
        assert!(lines.iter().any(|l| l.starts_with("E FATAL 42501")), "{lines:?}");
    }
    let (_, lines) = open("copies", "nonsense");
    assert!(lines.iter().any(|l| l.starts_with("E FATAL 22023")), "{lines:?}");
    let (mut raw, _) = open("copies", "true");
    let identity = raw.query("IDENTIFY_SYSTEM");
    assert!(identity.iter().any(|l| l.starts_with("D ") && l.contains("|1|0/")), "{identity:?}");
    assert!(raw.query("SHOW wal_segment_size").iter().any(|l| l == "D 16MB"));
    for (command, code) in [
        ("SELECT 1", "42601"),
        ("START_REPLICATION 0/0", "58P01"),
        ("START_REPLICATION SLOT nosuch 0/0", "42704"),
        ("BASE_BACKUP (NOSUCH)", "42601"),
    ] {
        let lines = raw.query(command);
        assert!(lines.iter().any(|l| l.starts_with(&format!("E ERROR {code}"))), "{lines:?}");
    }
    let (mut raw, _) = open("copies", "database");
    assert!(raw.query("SELECT 1").iter().any(|l| l == "D 1"));
    assert!(raw.query("IDENTIFY_SYSTEM").iter().any(|l| l.ends_with("|postgres")));
    assert!(server.stop());
}
