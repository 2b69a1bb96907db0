//! The log as a stream, with PostgreSQL's own programs: backups that take it beside the files, a receiver that keeps it,
//! commits that wait for it, slots that hold it.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::support::client::Client;
use crate::support::{PG_BIN, Server, TempDir, text_of};

const SETTINGS: [&str; 3] = ["workers=2", "max_wal_size=2MB", "min_wal_size=2MB"];

/// A program of PostgreSQL's for this server.
fn program(name: &str, port: u16) -> Command {
    let mut command = Command::new(format!("{PG_BIN}/{name}"));
    command.args(["-h", "127.0.0.1", "-U", "postgres", "-p", &port.to_string()]);
    command.stdin(Stdio::null());
    command
}

fn run(command: &mut Command) -> String {
    let out = command.output().expect("PostgreSQL's programs are installed");
    let text = text_of(&out);
    assert!(out.status.success(), "{command:?}: {text}");
    text
}

/// A receiver that keeps the log in a folder until it is told to stop.
struct Receiver(Child);

impl Receiver {
    fn start(port: u16, into: &Path, more: &[&str]) -> Receiver {
        std::fs::create_dir_all(into).expect("writable");
        let mut command = program("pg_receivewal", port);
        command.arg("-D").arg(into).args(more).stderr(Stdio::null());
        Receiver(command.spawn().expect("pg_receivewal is installed"))
    }

    fn stop(self) {
        drop(self);
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-INT", &self.0.id().to_string()]).status();
        let _ = self.0.wait();
    }
}

/// A replication command, and what it answered.
fn command(port: u16, text: &str) -> String {
    let conninfo = format!("host=127.0.0.1 port={port} user=postgres replication=true");
    let out = Command::new(format!("{PG_BIN}/psql"))
        .args(["-X", "-At", "-d", &conninfo, "-c", text])
        .output()
        .expect("psql is installed");
    text_of(&out)
}

#[test]
fn a_backup_takes_the_log_by_a_stream_of_its_own() {
    let temp = TempDir::new("streamed_backup");
    let server = Server::start(&temp.path().join("data"), &SETTINGS);
    server.query("CREATE TABLE t (a int PRIMARY KEY, b text); INSERT INTO t SELECT i, 'z' FROM generate_series(0, 49) i");
    let stop = AtomicBool::new(false);
    let copy = temp.path().join("copy");
    let said = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut client = Client::connect(server.port).expect("it serves");
            let mut at = 50;
            while !stop.load(Ordering::Relaxed) {
                let rows =
                    format!("SELECT i, repeat('y', 900) FROM generate_series({at}, {}) i", at + 49);
                assert!(
                    client
                        .query(&format!("INSERT INTO t {rows}"))
                        .expect("it serves")
                        .error
                        .is_none()
                );
                at += 50;
            }
        });
        let mut command = program("pg_basebackup", server.port);
        let said = run(command.args(["-X", "stream", "-c", "fast", "-D"]).arg(&copy));
        stop.store(true, Ordering::Relaxed);
        said
    });
    assert!(!said.contains("could not"), "{said}");
    run(Command::new(format!("{PG_BIN}/pg_verifybackup")).arg("-n").arg(&copy));
    server.kill();
    let server = Server::start(&copy, &SETTINGS);
    let mut client = Client::connect(server.port).expect("the copy serves");
    // Whole statements, from the first one on.
    assert_eq!(
        client.one("SELECT count(*) % 50 || ' ' || (count(*) = max(a) + 1) FROM t"),
        "0 true"
    );
    assert!(!copy.join("pg_wal").exists(), "the log has been taken over");
    assert!(server.stop());
}

#[test]
fn nothing_acknowledged_is_lost_when_commits_wait_for_a_receiver() {
    let temp = TempDir::new("synchronous");
    let server = Server::start(&temp.path().join("data"), &SETTINGS);
    server.query("CREATE TABLE t (a bigint PRIMARY KEY)");
    let (copy, log) = (temp.path().join("copy"), temp.path().join("log"));
    run(program("pg_basebackup", server.port)
        .args(["-X", "stream", "-c", "fast", "-D"])
        .arg(&copy));
    let _receiver = Receiver::start(server.port, &log, &["--synchronous"]);
    let mut client = Client::connect(server.port).expect("it serves");
    client.await_one("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'", "1");
    client.one("ALTER SYSTEM SET synchronous_standby_names = 'pg_receivewal'");
    client.one("SELECT pg_reload_conf()");
    client.await_one("SELECT sync_state FROM pg_stat_replication", "sync");
    let (next, acknowledged) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut client = Client::connect(server.port).expect("it serves");
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    match client.query(&format!("INSERT INTO t VALUES ({n})")) {
                        Ok(answer) if answer.error.is_none() => {
                            acknowledged.lock().expect("nobody panics").push(n);
                        }
                        _ => return,
                    }
                }
            });
        }
        while next.load(Ordering::Relaxed) < 500 {
            std::thread::sleep(Duration::from_millis(10));
        }
        let pid = server.pid().to_string();
        run(Command::new("kill").args(["-KILL", &pid]));
    });
    drop(server);
    std::fs::create_dir_all(copy.join("pg_wal")).expect("writable");
    for file in std::fs::read_dir(&log).expect("it is there").flatten() {
        let to = copy.join("pg_wal").join(file.file_name());
        std::fs::copy(file.path(), to).expect("writable");
    }
    // The receiver's log begins with the files that the backup took.
    for file in std::fs::read_dir(&log).expect("it is there").flatten() {
        let name = file.file_name().to_string_lossy().into_owned();
        if let Some(whole) = name.strip_suffix(".partial") {
            let _ = std::fs::remove_file(copy.join("pg_wal").join(whole));
        }
    }
    let server = Server::start(&copy, &SETTINGS);
    let mut client = Client::connect(server.port).expect("the copy serves");
    let rows = client.query("SELECT a::text FROM t").expect("it answers").rows;
    let there: std::collections::HashSet<u64> =
        rows.iter().map(|row| row[0].as_deref().unwrap_or("").parse().expect("a number")).collect();
    let acknowledged = acknowledged.lock().expect("nobody panics");
    assert!(acknowledged.len() >= 400);
    for n in acknowledged.iter() {
        assert!(there.contains(n), "{n} was acknowledged and is lost");
    }
}

#[test]
fn commits_wait_until_the_receiver_is_there_and_no_longer_than_it_is_asked_for() {
    let temp = TempDir::new("quorum");
    let server = Server::start(&temp.path().join("data"), &SETTINGS);
    let mut client = Client::connect(server.port).expect("it serves");
    client.one("CREATE TABLE t (a int)");
    client.one("ALTER SYSTEM SET synchronous_standby_names = 'FIRST 1 (pg_receivewal)'");
    client.one("SELECT pg_reload_conf()");
    client.await_one("SHOW synchronous_standby_names", "FIRST 1 (pg_receivewal)");
    let port = server.port;
    let write = |n: i32| {
        std::thread::spawn(move || {
            let mut client = Client::connect(port).expect("it serves");
            client.query(&format!("INSERT INTO t VALUES ({n})")).expect("it answers").error
        })
    };
    let writer = write(1);
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    client.await_one(waits, "1");
    assert!(!writer.is_finished());
    let receiver = Receiver::start(port, &temp.path().join("log"), &["--synchronous"]);
    assert_eq!(writer.join().expect("no panic"), None);
    receiver.stop();
    let writer = write(2);
    client.await_one(waits, "1");
    client.one("ALTER SYSTEM RESET synchronous_standby_names");
    client.one("SELECT pg_reload_conf()");
    assert_eq!(writer.join().expect("no panic"), None);
    assert_eq!(client.one("SELECT count(*) FROM t"), "2");
}

#[test]
fn a_slot_keeps_the_log_over_checkpoints_and_restarts() {
    let temp = TempDir::new("slots");
    let dir = temp.path().join("data");
    let server = Server::start(&dir, &SETTINGS);
    run(program("pg_receivewal", server.port).args(["--create-slot", "-S", "kept"]));
    assert!(
        command(server.port, "CREATE_REPLICATION_SLOT kept PHYSICAL").contains("already exists")
    );
    assert!(
        command(server.port, "CREATE_REPLICATION_SLOT \"Big\" PHYSICAL")
            .contains("invalid character")
    );
    let restart = command(server.port, "READ_REPLICATION_SLOT kept");
    assert!(restart.starts_with("physical|0/"), "{restart}");
    assert!(
        command(server.port, "START_REPLICATION SLOT none 0/1000000").contains("does not exist")
    );
    assert!(
        command(server.port, "START_REPLICATION FF/0").contains("ahead of the WAL flush position")
    );
    server.query("CREATE TABLE t (a text)");
    for _ in 0..25 {
        server.query(
            "INSERT INTO t SELECT md5(i::text) || md5((-i)::text) || md5((7 * i)::text) FROM generate_series(1, 25000) i;
             CHECKPOINT",
        );
    }
    server.kill();
    let server = Server::start(&dir, &SETTINGS);
    server.query("CHECKPOINT");
    assert_eq!(command(server.port, "READ_REPLICATION_SLOT kept"), restart);
    let end = server.query("SELECT pg_current_wal_flush_lsn()").trim().to_owned();
    // The receiver ends with the first record behind the position.
    server.query("INSERT INTO t VALUES ('more')");
    let log = temp.path().join("log");
    std::fs::create_dir(&log).expect("writable");
    let mut receive = program("pg_receivewal", server.port);
    run(receive.args(["-S", "kept", "--no-loop", "-E", &end, "-D"]).arg(&log));
    let files = std::fs::read_dir(&log).expect("it is there").count();
    assert!(files >= 5, "{files} segments of all that there was");
    run(program("pg_receivewal", server.port).args(["--drop-slot", "-S", "kept"]));
    server.query("CHECKPOINT");
    let gone = command(server.port, "START_REPLICATION 0/1000000 TIMELINE 1");
    assert!(gone.contains("has already been removed"), "{gone}");
}
