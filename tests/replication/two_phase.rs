//! Two-phase commit: prepared transactions over stops, crashes and checkpoints, with their locks, definitions and
//! conflicts; and clients that keep a journal of what they were told.
//!
//! Rounds of kills: `TWO_PHASE_ROUNDS` (8 when not set), with the moments from `TWO_PHASE_SEED`.

use std::collections::HashMap;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::support::client::Client;
use crate::support::random::Random;
use crate::support::{BIN, Server, TempDir, text_of};

const SETTINGS: [&str; 2] = ["workers=2", "max_prepared_transactions=50"];

fn code(client: &mut Client, sql: &str) -> String {
    let answer = client.query(sql).expect("the connection holds");
    answer.error.map_or_else(|| "none".to_owned(), |error| error.0)
}

fn run(client: &mut Client, sql: &str) {
    assert_eq!(code(client, sql), "none", "{sql}");
}

fn names(client: &mut Client) -> String {
    client.one("SELECT coalesce(string_agg(gid, ' ' ORDER BY gid), 'none') FROM pg_prepared_xacts")
}

fn check(dir: &std::path::Path) {
    let out = Command::new(BIN).args(["check", "-D"]).arg(dir).output().expect("it runs");
    assert_eq!(text_of(&out), "no damage found\n");
}

/// All kinds of traces: rows, savepoints, locks on rows, advisory locks, definitions, files.
fn prepare_all(server: &Server) {
    let mut client = Client::connect(server.port).expect("it serves");
    run(&mut client, "CREATE TABLE kept (id int PRIMARY KEY, t text); CREATE TABLE gone (a int)");
    run(&mut client, "INSERT INTO kept SELECT i, 'old' FROM generate_series(1, 10) i");
    run(&mut client, "CREATE ROLE other LOGIN");
    run(&mut client, "BEGIN");
    run(&mut client, "UPDATE kept SET t = 'new' WHERE id = 1");
    run(&mut client, "SAVEPOINT a; INSERT INTO kept VALUES (100, 'undone'); ROLLBACK TO a");
    run(&mut client, "SAVEPOINT b; INSERT INTO kept VALUES (101, 'kept'); RELEASE b");
    run(&mut client, "SAVEPOINT c; INSERT INTO kept VALUES (102, 'kept')");
    run(&mut client, "SELECT * FROM kept WHERE id = 5 FOR SHARE");
    run(&mut client, "SELECT pg_advisory_xact_lock(77), pg_advisory_xact_lock_shared(-1, 2)");
    run(&mut client, "PREPARE TRANSACTION 'rows'");
    run(&mut client, "BEGIN; DROP TABLE gone; CREATE TABLE made (a int PRIMARY KEY, b text)");
    run(&mut client, "INSERT INTO made SELECT i, repeat('x', 9000) FROM generate_series(1, 5) i");
    run(&mut client, "CREATE FUNCTION three() RETURNS int LANGUAGE sql AS 'SELECT 3'");
    run(&mut client, "PREPARE TRANSACTION 'definitions'");
    run(&mut client, "BEGIN; CREATE TABLE never AS SELECT 1 AS a");
    run(&mut client, "PREPARE TRANSACTION 'undone'");
}

fn is_prepared(server: &Server) {
    let mut client = Client::connect(server.port).expect("it serves");
    assert_eq!(names(&mut client), "definitions rows undone");
    assert_eq!(client.one("SELECT string_agg(DISTINCT t, ' ') || count(*) FROM kept"), "old10");
    run(&mut client, "SET lock_timeout = '100ms'");
    for (sql, expected) in [
        ("UPDATE kept SET t = 'mine' WHERE id = 1", "55P03"),
        ("UPDATE kept SET t = 'mine' WHERE id = 5", "55P03"),
        ("SELECT 1 FROM kept WHERE id = 5 FOR SHARE", "none"),
        ("INSERT INTO kept VALUES (101, 'mine')", "55P03"),
        ("INSERT INTO kept VALUES (100, 'mine'); DELETE FROM kept WHERE id = 100", "none"),
        ("SELECT pg_advisory_lock(77)", "55P03"),
        ("SELECT pg_advisory_lock(-1, 2)", "55P03"),
        ("SELECT * FROM gone", "55P03"),
        ("DROP TABLE kept", "55P03"),
        ("SELECT * FROM made", "42P01"),
        ("SELECT three()", "42883"),
        ("BEGIN; SELECT 1; PREPARE TRANSACTION 'rows'", "42710"),
        ("SELECT 1; COMMIT PREPARED 'rows'", "25001"),
    ] {
        assert_eq!(code(&mut client, sql), expected, "{sql}");
    }
    let mut other = Client::connect_to(server.port, "other", "postgres").expect("it serves");
    assert_eq!(code(&mut other, "COMMIT PREPARED 'rows'"), "42501");
    let mut template = Client::connect_to(server.port, "postgres", "template1").expect("it serves");
    assert_eq!(code(&mut template, "COMMIT PREPARED 'rows'"), "0A000");
}

fn is_done(server: &Server) {
    let mut client = Client::connect(server.port).expect("it serves");
    assert_eq!(names(&mut client), "none");
    assert_eq!(
        client.one("SELECT string_agg(id || t, ' ' ORDER BY id) FROM kept WHERE t <> 'old'"),
        "1new 101kept 102kept"
    );
    assert_eq!(client.one("SELECT count(*) || ' ' || sum(length(b)) FROM made"), "5 45000");
    assert_eq!(client.one("SELECT three()"), "3");
    assert_eq!(code(&mut client, "SELECT * FROM gone"), "42P01");
    assert_eq!(code(&mut client, "SELECT * FROM never"), "42P01");
    run(&mut client, "INSERT INTO made VALUES (6, 'z'); CREATE TABLE never (a int)");
    run(&mut client, "DROP TABLE never; DELETE FROM made WHERE a = 6");
}

#[test]
fn prepared_transactions_outlive_crash_stop_and_checkpoints() {
    let temp = TempDir::new("two_phase");
    let dir = temp.path().join("data");
    let server = Server::start(&dir, &SETTINGS);
    prepare_all(&server);
    is_prepared(&server);
    // From the log alone.
    server.kill();
    check(&dir);
    let server = Server::start(&dir, &SETTINGS);
    is_prepared(&server);
    // From a checkpoint's state and no log; many ids later, so that they are in an old part of the commit log.
    server.query("CREATE TABLE many (a int)");
    let pgbench = temp.path().join("insert.sql");
    std::fs::write(&pgbench, "INSERT INTO many VALUES (1);\n".repeat(200)).expect("writable");
    let script = pgbench.to_string_lossy().into_owned();
    server.pgbench(&["-n", "-c", "4", "-t", "30", "-f", &script]);
    server.query("CHECKPOINT");
    server.kill();
    let server = Server::start(&dir, &SETTINGS);
    is_prepared(&server);
    assert!(server.stop());
    let server = Server::start(&dir, &SETTINGS);
    is_prepared(&server);
    server.query("VACUUM kept, many");
    let mut client = Client::connect(server.port).expect("it serves");
    for sql in
        ["COMMIT PREPARED 'definitions'", "COMMIT PREPARED 'rows'", "ROLLBACK PREPARED 'undone'"]
    {
        run(&mut client, sql);
        assert_eq!(code(&mut client, sql), "42704");
    }
    is_done(&server);
    server.kill();
    let server = Server::start(&dir, &SETTINGS);
    is_done(&server);
    server.query("CHECKPOINT");
    server.kill();
    check(&dir);
    let server = Server::start(&dir, &SETTINGS);
    is_done(&server);
    assert_eq!(server.query("SELECT count(*) FROM many").trim(), "24000");
}

#[test]
fn a_serializable_one_keeps_its_reads_over_a_crash() {
    let temp = TempDir::new("two_phase_serial");
    let dir = temp.path().join("data");
    let server = Server::start(&dir, &SETTINGS);
    let mut client = Client::connect(server.port).expect("it serves");
    run(&mut client, "CREATE TABLE duty (name text PRIMARY KEY, here bool)");
    run(&mut client, "INSERT INTO duty VALUES ('a', true), ('b', true)");
    run(&mut client, "BEGIN ISOLATION LEVEL SERIALIZABLE");
    assert_eq!(client.one("SELECT count(*) FROM duty WHERE here"), "2");
    run(&mut client, "UPDATE duty SET here = false WHERE name = 'a'");
    run(&mut client, "PREPARE TRANSACTION 'leaves'");
    server.kill();
    let server = Server::start(&dir, &SETTINGS);
    let mut client = Client::connect(server.port).expect("it serves");
    run(&mut client, "BEGIN ISOLATION LEVEL SERIALIZABLE");
    let read = code(&mut client, "SELECT count(*) FROM duty WHERE here");
    let wrote = code(&mut client, "UPDATE duty SET here = false WHERE name = 'b'");
    let ended = code(&mut client, "COMMIT");
    assert!([&read, &wrote, &ended].iter().any(|code| *code == "40001"), "{read} {wrote} {ended}");
    run(&mut client, "COMMIT PREPARED 'leaves'");
    assert_eq!(client.one("SELECT count(*) FROM duty WHERE here"), "1");
}

#[test]
fn what_cannot_be_prepared_is_refused_and_rolled_back() {
    let temp = TempDir::new("two_phase_refused");
    let server = Server::start(&temp.path().join("data"), &["workers=2"]);
    let mut client = Client::connect(server.port).expect("it serves");
    run(&mut client, "CREATE TABLE t (a int); CREATE TEMP TABLE mine (a int)");
    assert_eq!(
        code(&mut client, "BEGIN; INSERT INTO t VALUES (1); PREPARE TRANSACTION 'a'"),
        "55000"
    );
    assert_eq!(client.one("SELECT count(*) FROM t"), "0");
    run(&mut client, "ALTER SYSTEM SET max_prepared_transactions = 1");
    run(&mut client, "SELECT pg_reload_conf()");
    client.await_one("SHOW max_prepared_transactions", "1");
    for (work, expected) in [
        ("SELECT count(*) FROM mine", "0A000"),
        ("CREATE TEMP TABLE more (a int)", "0A000"),
        ("DECLARE c CURSOR WITH HOLD FOR SELECT 1", "0A000"),
        ("NOTIFY a", "0A000"),
        ("LISTEN a", "0A000"),
        ("SELECT pg_export_snapshot()", "0A000"),
    ] {
        let sql = format!("BEGIN; INSERT INTO t VALUES (1); {work}; PREPARE TRANSACTION 'a'");
        assert_eq!(code(&mut client, &sql), expected, "{work}");
        assert_eq!(client.one("SELECT count(*) FROM t"), "0");
    }
    let long = "x".repeat(200);
    assert_eq!(code(&mut client, &format!("BEGIN; PREPARE TRANSACTION '{long}'")), "22023");
    run(&mut client, "SELECT pg_advisory_lock(5)");
    run(&mut client, "BEGIN; INSERT INTO t VALUES (1); PREPARE TRANSACTION 'a'");
    assert_eq!(code(&mut client, "BEGIN; PREPARE TRANSACTION 'b'"), "53200");
    // Session-level locks are still the session's own.
    let mut second = Client::connect(server.port).expect("it serves");
    assert_eq!(second.one("SELECT pg_try_advisory_lock(5)"), "f");
    assert_eq!(client.one("SELECT pg_advisory_unlock(5)"), "t");
    assert_eq!(second.one("SELECT pg_try_advisory_lock(5)"), "t");
    run(&mut second, "COMMIT PREPARED 'a'");
    assert_eq!(client.one("SELECT count(*) FROM t"), "1");
    // A failed block is rolled back, and outside of one nothing is prepared.
    run(&mut client, "BEGIN");
    assert_eq!(code(&mut client, "SELECT 1 / 0"), "22012");
    run(&mut client, "PREPARE TRANSACTION 'c'");
    run(&mut client, "PREPARE TRANSACTION 'd'");
    assert_eq!(names(&mut client), "none");
    run(&mut client, "CREATE DATABASE held");
    let mut held = Client::connect_to(server.port, "postgres", "held").expect("it serves");
    run(&mut held, "BEGIN; CREATE TABLE x (a int); PREPARE TRANSACTION 'x'");
    drop(held);
    let answer = client.query("DROP DATABASE held").expect("it answers").error.expect("refused");
    assert_eq!(answer.0, "55006");
}

/// The word about a transaction in a client's journal.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Word {
    /// PREPARE was sent.
    Asked,
    /// It was acknowledged.
    Prepared,
    /// The end was decided and sent.
    Decided(bool),
    /// It was acknowledged.
    Done(bool),
}

/// The clients' knowledge: the last word of each transaction.
#[derive(Default)]
struct Journal {
    words: Mutex<HashMap<u64, Word>>,
    next: AtomicU64,
    stop: AtomicBool,
}

impl Journal {
    fn note(&self, id: u64, word: Word) {
        self.words.lock().expect("no client panics").insert(id, word);
    }
}

fn work(port: u16, journal: &Journal, mut random: Random) -> Option<()> {
    let mut client = Client::connect(port).ok()?;
    while !journal.stop.load(Ordering::Relaxed) {
        let id = journal.next.fetch_add(1, Ordering::Relaxed);
        let (from, to) = (random.below(200), random.below(200));
        let transfer = format!(
            "BEGIN; UPDATE account SET n = n - 1 WHERE id = {from}; SAVEPOINT a; UPDATE account SET n = n + 1 WHERE id = {to};
             INSERT INTO done VALUES ({id})"
        );
        if client.query(&transfer).ok()?.error.is_some() {
            client.query("ROLLBACK").ok()?;
            continue;
        }
        journal.note(id, Word::Asked);
        if client.query(&format!("PREPARE TRANSACTION 'g{id}'")).ok()?.error.is_some() {
            journal.note(id, Word::Done(false));
            continue;
        }
        journal.note(id, Word::Prepared);
        // Some are left to whoever comes after the crash, as a coordinator that failed would leave them.
        if random.below(200) == 0 {
            continue;
        }
        let commits = random.below(4) != 0;
        journal.note(id, Word::Decided(commits));
        let word = if commits { "COMMIT" } else { "ROLLBACK" };
        assert!(client.query(&format!("{word} PREPARED 'g{id}'")).ok()?.error.is_none());
        journal.note(id, Word::Done(commits));
    }
    Some(())
}

/// Whether a start has what the journal says; ends what is left.
fn settle(server: &Server, journal: &Journal) {
    let mut client = Client::connect(server.port).expect("it serves");
    let rows = client.query("SELECT gid FROM pg_prepared_xacts").expect("it answers").rows;
    let text = |row: &Vec<Option<String>>| row[0].clone().unwrap_or_default();
    let left: Vec<u64> = rows.iter().map(|row| text(row)[1..].parse().expect("a number")).collect();
    let rows = client.query("SELECT id::text FROM done").expect("it answers").rows;
    let done: Vec<u64> = rows.iter().map(|row| text(row).parse().expect("a number")).collect();
    let mut words = journal.words.lock().expect("no client panics");
    for (id, word) in words.iter_mut() {
        let (is_left, is_done) = (left.contains(id), done.contains(id));
        assert!(!(is_left && is_done), "{id} is both prepared and committed");
        match *word {
            Word::Asked => {}
            Word::Prepared => assert!(is_left, "{id} was prepared, and is not"),
            Word::Decided(true) => assert!(is_left || is_done, "{id} is lost"),
            Word::Decided(false) => assert!(!is_done, "{id} was not to be committed"),
            Word::Done(commits) => assert!(!is_left && is_done == commits, "{id} {commits}"),
        }
        *word = Word::Done(is_done);
        if is_left {
            let commits = id % 2 == 0;
            let verb = if commits { "COMMIT" } else { "ROLLBACK" };
            run(&mut client, &format!("{verb} PREPARED 'g{id}'"));
            *word = Word::Done(commits);
        }
    }
    assert_eq!(names(&mut client), "none");
    assert_eq!(client.one("SELECT sum(n) FROM account"), "20000");
}

#[test]
fn kills_lose_no_prepared_transaction_and_no_decision() {
    let temp = TempDir::new("two_phase_kills");
    let dir = temp.path().join("data");
    let settings = [SETTINGS[0], SETTINGS[1], "max_wal_size=2MB", "min_wal_size=2MB"];
    let seed = crate::support::number("TWO_PHASE_SEED", u64::from(std::process::id())) | 1;
    println!("TWO_PHASE_SEED={seed}");
    let mut random = Random::new(seed);
    let journal = Journal::default();
    let mut server = Server::start(&dir, &settings);
    server.query("CREATE TABLE account (id int PRIMARY KEY, n int); CREATE TABLE done (id bigint PRIMARY KEY);
                  INSERT INTO account SELECT i, 100 FROM generate_series(0, 199) i");
    for round in 0..crate::support::number("TWO_PHASE_ROUNDS", 8) {
        let port = server.port;
        std::thread::scope(|scope| {
            for client in 0..6 {
                let random = Random::new(seed.wrapping_mul(round * 6 + client + 3) | 1);
                let journal = &journal;
                scope.spawn(move || work(port, journal, random));
            }
            std::thread::sleep(Duration::from_millis(200 + random.below(900)));
            if round % 3 == 1 {
                server.query("CHECKPOINT");
            }
            server.kill();
        });
        server = Server::start(&dir, &settings);
        settle(&server, &journal);
    }
    let words = journal.words.lock().expect("no client panics");
    println!("{} transactions", words.len());
    drop(words);
    server.kill();
    check(&dir);
}
