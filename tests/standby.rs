//! Standbys: what they show, whom they cancel, what a kill of either server leaves, promotion, and a checker of snapshots
//! over primary and standby at once.
//!
//! `STANDBY_SECONDS`: how long the checker runs (4 when not set); `STANDBY_KILLS`: kills of the standby meanwhile (2).

mod support;

use std::collections::HashMap;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use support::client::Client;
use support::random::Random;
use support::{BIN, Server, TempDir, text_of};

const SETTINGS: [&str; 3] = ["workers=2", "max_wal_size=4MB", "min_wal_size=2MB"];

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

/// A session of a standby that may not let anybody in yet.
fn connect(server: &Server) -> Client {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        match Client::connect(server.port) {
            Ok(client) => return client,
            Err(error) => assert!(Instant::now() < until, "nobody is let in: {error}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn run(client: &mut Client, sql: &str) {
    let answer = client.query(sql).expect("the connection holds");
    assert!(answer.error.is_none(), "{sql}: {:?}", answer.error);
}

/// Each by itself.
fn each(client: &mut Client, statements: &[&str]) {
    statements.iter().for_each(|sql| run(client, sql));
}

/// Changes a setting of the server.
fn alter(client: &mut Client, what: &str) {
    each(client, &[&format!("ALTER SYSTEM SET {what}"), "SELECT pg_reload_conf()"]);
}

fn code(client: &mut Client, sql: &str) -> String {
    let answer = client.query(sql).expect("the connection holds");
    answer.error.map_or_else(|| "none".to_owned(), |error| error.0)
}

fn check(dir: &std::path::Path) {
    let out = Command::new(BIN).args(["check", "-D"]).arg(dir).output().expect("it runs");
    assert_eq!(text_of(&out), "no damage found\n");
}

/// Waits until the standby has applied what the primary has logged.
fn catch_up(primary: &mut Client, standby: &mut Client) {
    run(primary, "SELECT pg_create_restore_point('here')");
    let at = primary.one("SELECT pg_current_wal_flush_lsn()");
    standby.await_one(&format!("SELECT pg_last_wal_replay_lsn() >= '{at}'"), "t");
}

#[test]
fn a_standby_shows_what_its_primary_has_committed_and_changes_nothing() {
    let temp = TempDir::new("standby");
    let primary = Server::start(&temp.path().join("primary"), &SETTINGS);
    let mut p = connect(&primary);
    run(
        &mut p,
        "CREATE TABLE t (id int PRIMARY KEY, v text); CREATE SEQUENCE s;
         INSERT INTO t SELECT i, repeat('x', i) FROM generate_series(1, 3000) i; SELECT nextval('s')",
    );
    let dir = temp.path().join("standby");
    let standby = Server::start_standby(&dir, primary.port, "s1", &SETTINGS);
    let mut s = connect(&standby);
    assert_eq!(s.one("SELECT pg_is_in_recovery()"), "t");
    assert_eq!(s.one("SHOW transaction_read_only"), "on");
    assert_eq!(s.one("SELECT count(*) || ' ' || sum(length(v)) FROM t"), "3000 4501500");

    // A plan that is kept sees definitions change; so do other databases.
    run(&mut s, "PREPARE q AS SELECT * FROM t WHERE id = 7");
    assert_eq!(s.one("EXECUTE q"), "7");
    run(
        &mut p,
        "ALTER TABLE t ADD COLUMN w int DEFAULT 5; CREATE INDEX ON t (length(v)); CREATE TABLE u AS SELECT 1 AS one;
         CREATE VIEW x AS SELECT w FROM t; CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 8'",
    );
    run(&mut p, "CREATE DATABASE other");
    catch_up(&mut p, &mut s);
    assert_eq!(s.one("SELECT w + f() FROM t WHERE id = 7"), "13");
    assert_eq!(s.one("SELECT count(*) FROM x"), "3000");
    let mut other = Client::connect_to(standby.port, "postgres", "other").expect("it is there");
    assert_eq!(other.one("SELECT 1"), "1");
    drop(other);

    // Rows that have not committed are not there, then are; those rolled back never are.
    let mut q = connect(&primary);
    run(&mut p, "BEGIN; INSERT INTO u VALUES (2); SAVEPOINT a; INSERT INTO u VALUES (3)");
    each(&mut q, &["BEGIN", "INSERT INTO u VALUES (4)", "ROLLBACK", "INSERT INTO u VALUES (5)"]);
    catch_up(&mut q, &mut s);
    assert_eq!(s.one("SELECT string_agg(one::text, ' ' ORDER BY one) FROM u"), "1 5");
    run(&mut p, "COMMIT");
    each(
        &mut p,
        &["DROP VIEW x", "TRUNCATE t; INSERT INTO t VALUES (1, 'a')", "DROP DATABASE other"],
    );
    catch_up(&mut p, &mut s);
    assert_eq!(s.one("SELECT string_agg(one::text, ' ' ORDER BY one) FROM u"), "1 2 3 5");
    assert_eq!(s.one("SELECT count(*) FROM t"), "1");
    assert_eq!(code(&mut s, "SELECT * FROM x"), "42P01");
    assert!(Client::connect_to(standby.port, "postgres", "other").is_err());

    // Nothing is written.
    for (sql, wanted) in [
        ("INSERT INTO t VALUES (2, 'b')", "25006"),
        ("CREATE TABLE n (i int)", "25006"),
        ("CREATE TEMP TABLE n (i int)", "25006"),
        ("SELECT nextval('s')", "25006"),
        ("SELECT * FROM t FOR UPDATE", "25006"),
        ("VACUUM t", "25006"),
        ("ANALYZE t", "25006"),
        ("SELECT txid_current()", "25006"),
        ("LISTEN a", "25006"),
        ("SELECT pg_current_wal_lsn()", "55000"),
        ("SELECT pg_switch_wal()", "55000"),
        ("BEGIN READ WRITE", "0A000"),
        ("ROLLBACK", "none"),
        ("BEGIN ISOLATION LEVEL SERIALIZABLE", "0A000"),
        ("ROLLBACK", "none"),
        ("DO $$ BEGIN COMMIT; INSERT INTO t VALUES (3); END $$", "25006"),
        ("SELECT last_value FROM s", "none"),
        ("CHECKPOINT", "none"),
    ] {
        assert_eq!(code(&mut s, sql), wanted, "{sql}");
    }
    assert_eq!(code(&mut p, "SELECT pg_wal_replay_pause()"), "55000");
    assert_eq!(
        s.one("SELECT status || ' ' || (written_lsn >= flushed_lsn) FROM pg_stat_wal_receiver"),
        "streaming true"
    );
    assert_eq!(
        p.one("SELECT application_name || ' ' || state FROM pg_stat_replication"),
        "s1 streaming"
    );

    // A pause holds what is applied, not what is received.
    run(&mut s, "SELECT pg_wal_replay_pause()");
    assert_eq!(s.one("SELECT pg_is_wal_replay_paused()"), "t");
    run(&mut p, "INSERT INTO u VALUES (6); SELECT pg_create_restore_point('paused')");
    let at = p.one("SELECT pg_current_wal_flush_lsn()");
    s.await_one(&format!("SELECT pg_last_wal_receive_lsn() >= '{at}'"), "t");
    assert_eq!(s.one("SELECT count(*) FROM u"), "4");
    run(&mut s, "SELECT pg_wal_replay_resume()");
    s.await_one("SELECT count(*) FROM u", "5");

    // Stops, kills and starts of either, without the other.
    assert!(standby.stop());
    run(&mut p, "INSERT INTO u VALUES (7)");
    let standby = Server::start(&dir, &SETTINGS);
    let mut s = connect(&standby);
    s.await_one("SELECT count(*) FROM u", "6");
    standby.kill();
    let port = primary.port;
    each(&mut p, &["INSERT INTO u VALUES (8)", "CHECKPOINT", "INSERT INTO u VALUES (9)"]);
    primary.kill();
    let standby = Server::start(&dir, &SETTINGS);
    let primary = Server::start_on(&temp.path().join("primary"), port, &SETTINGS);
    let mut s = connect(&standby);
    s.await_one("SELECT count(*) FROM u", "8");
    drop(primary);
    assert_eq!(s.one("SELECT count(*) FROM u"), "8");
    assert!(standby.stop());
    check(&dir);
}

#[test]
fn commits_that_wait_for_replay_are_read_at_once() {
    let temp = TempDir::new("standby-own");
    let primary = Server::start(&temp.path().join("primary"), &SETTINGS);
    let mut p = connect(&primary);
    run(&mut p, "CREATE TABLE t (n int); INSERT INTO t VALUES (0)");
    let dir = temp.path().join("standby");
    let standby = Server::start_standby(&dir, primary.port, "s1", &SETTINGS);
    let mut s = connect(&standby);
    alter(&mut p, "synchronous_standby_names = 's1'");
    run(&mut p, "SET synchronous_commit = remote_apply");
    for n in 1..=200 {
        run(&mut p, &format!("UPDATE t SET n = {n}"));
        assert_eq!(s.one("SELECT n FROM t"), n.to_string());
    }
    assert_eq!(p.one("SELECT sync_state FROM pg_stat_replication"), "sync");
}

#[test]
fn readers_in_the_way_are_cancelled_unless_the_primary_waits_for_them() {
    let temp = TempDir::new("standby-conflict");
    let primary = Server::start(&temp.path().join("primary"), &["workers=2", "autovacuum=off"]);
    let mut p = connect(&primary);
    run(&mut p, "CREATE TABLE t (n int); INSERT INTO t VALUES (0); CREATE TABLE d (n int)");
    let dir = temp.path().join("standby");
    let settings = ["workers=2", "max_standby_streaming_delay=100ms"];
    let standby = Server::start_standby(&dir, primary.port, "s1", &settings);
    let (mut s, mut other) = (connect(&standby), connect(&standby));

    // A snapshot that may see what goes.
    run(&mut s, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT n FROM t");
    each(&mut p, &["UPDATE t SET n = 1", "UPDATE t SET n = 2", "VACUUM t"]);
    catch_up(&mut p, &mut other);
    assert_eq!(other.one("SELECT n FROM t"), "2");
    let ended = s.query("SELECT n FROM t").ok().and_then(|answer| answer.error);
    assert!(ended.is_none_or(|error| error.0 == "40001"), "it reads what has gone");

    // A statement that uses what is dropped.
    let mut s = connect(&standby);
    s.send("SELECT pg_sleep(60) FROM d RIGHT JOIN t ON true").expect("it is sent");
    other.await_one("SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%sleep(60)%' AND wait_event = 'PgSleep'", "1");
    run(&mut p, "DROP TABLE d");
    catch_up(&mut p, &mut other);
    assert_eq!(code(&mut other, "SELECT * FROM d"), "42P01");
    drop(s);

    // With feedback the versions stay.
    alter(&mut other, "hot_standby_feedback = on");
    run(&mut p, "UPDATE t SET n = 10");
    catch_up(&mut p, &mut other);
    let mut s = connect(&standby);
    run(&mut s, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    assert_eq!(s.one("SELECT n FROM t"), "10");
    // The primary has heard of it when it keeps an older snapshot than its own newest.
    run(&mut p, "UPDATE t SET n = 11");
    catch_up(&mut p, &mut other);
    for n in 12..20 {
        each(&mut p, &[&format!("UPDATE t SET n = {n}"), "VACUUM t"]);
        catch_up(&mut p, &mut other);
        assert_eq!(s.one("SELECT n FROM t"), "10");
    }
}

/// A client that counts up its own row; the journal has what was acknowledged.
fn count_up(port: u16, id: u64, stop: &AtomicBool, acknowledged: &[AtomicU64]) {
    let Ok(mut client) = Client::connect(port) else { return };
    let mut n = 0;
    while !stop.load(Ordering::Relaxed) {
        n += 1;
        let sql = format!("UPDATE c SET n = {n} WHERE id = {id}; INSERT INTO h VALUES ({id}, {n})");
        match client.query(&sql) {
            Ok(answer) if answer.error.is_none() => {
                acknowledged[id as usize].store(n, Ordering::SeqCst);
            }
            _ => return,
        }
    }
}

#[test]
fn a_promoted_standby_has_what_was_acknowledged_and_the_old_primary_is_refused() {
    const CLIENTS: u64 = 4;
    let temp = TempDir::new("standby-promote");
    let primary_dir = temp.path().join("primary");
    let primary = Server::start(&primary_dir, &SETTINGS);
    let mut p = connect(&primary);
    run(
        &mut p,
        "CREATE TABLE c (id int PRIMARY KEY, n int); CREATE TABLE h (id int, n int);
         INSERT INTO c SELECT i, 0 FROM generate_series(0, 3) i; CREATE SEQUENCE s; SELECT nextval('s')",
    );
    let dir = temp.path().join("standby");
    let standby = Server::start_standby(&dir, primary.port, "s1", &SETTINGS);
    let mut s = connect(&standby);
    alter(&mut p, "synchronous_standby_names = 's1'");
    let acknowledged: Vec<AtomicU64> = (0..CLIENTS).map(|_| AtomicU64::new(0)).collect();
    let stop = AtomicBool::new(false);
    let port = primary.port;
    std::thread::scope(|scope| {
        for id in 0..CLIENTS {
            let (stop, acknowledged) = (&stop, &acknowledged);
            scope.spawn(move || count_up(port, id, stop, acknowledged));
        }
        while acknowledged.iter().map(|a| a.load(Ordering::SeqCst)).sum::<u64>() < 200 {
            std::thread::yield_now();
        }
        primary.kill();
        stop.store(true, Ordering::Relaxed);
    });

    // The session stays, and may write afterwards.
    let out = Command::new(BIN).args(["promote", "-D"]).arg(&dir).output().expect("it runs");
    assert_eq!(text_of(&out), "promoted\n");
    s.await_one("SELECT pg_is_in_recovery()", "f");
    for (id, n) in acknowledged.iter().enumerate() {
        let n = n.load(Ordering::SeqCst);
        let has = s.one(&format!("SELECT n >= {n} FROM c WHERE id = {id}"));
        assert_eq!(has, "t", "client {id} was told of {n}");
        let whole = format!("SELECT count(*) = max(c.n) FROM h JOIN c USING (id) WHERE id = {id}");
        assert_eq!(s.one(&whole), "t");
    }
    let written =
        "INSERT INTO h VALUES (9, 9); CREATE TABLE later (i int); INSERT INTO later VALUES (1)";
    each(&mut s, &[written, "VACUUM"]);
    assert_eq!(s.one("SELECT nextval('s') > 1"), "t");
    assert_eq!(code(&mut s, "SELECT pg_promote()"), "55000");

    // The old primary has written something that the new one lacks.
    let old = Server::start(&primary_dir, &SETTINGS);
    let mut o = connect(&old);
    alter(&mut o, "synchronous_standby_names = ''");
    run(&mut o, "INSERT INTO h VALUES (8, 8)");
    assert!(old.stop());
    std::fs::write(primary_dir.join("standby.signal"), "").expect("writable");
    let url = format!("primary_conninfo=host=127.0.0.1 port={} user=postgres", standby.port);
    let log = primary_dir.with_extension("log");
    let old = Server::start(&primary_dir, &[SETTINGS[0], SETTINGS[1], SETTINGS[2], &url]);
    let until = Instant::now() + Duration::from_secs(60);
    while !std::fs::read_to_string(&log).unwrap_or_default().contains("forked from timeline 1") {
        assert!(Instant::now() < until, "it is not refused");
        std::thread::sleep(Duration::from_millis(50));
    }
    drop(old);

    // A copy of the new one follows it, over a restart of that.
    let third_dir = temp.path().join("third");
    let third = Server::start_standby(&third_dir, standby.port, "s3", &SETTINGS);
    let mut t = connect(&third);
    run(&mut s, "INSERT INTO later VALUES (2)");
    t.await_one("SELECT count(*) FROM later", "2");
    let port = standby.port;
    standby.kill();
    let standby = Server::start_on(&dir, port, &SETTINGS);
    let mut s = connect(&standby);
    assert_eq!(s.one("SELECT pg_is_in_recovery()"), "f");
    run(&mut s, "INSERT INTO later VALUES (3)");
    t.await_one("SELECT count(*) FROM later", "3");
    assert!(third.stop());
    assert!(standby.stop());
    check(&dir);
    check(&third_dir);
}

#[test]
fn a_standby_of_a_standby_follows_it_over_its_promotion() {
    let temp = TempDir::new("standby-chain");
    let settings = ["workers=2", "max_prepared_transactions=5"];
    let first = Server::start(&temp.path().join("first"), &settings);
    let mut p = connect(&first);
    run(&mut p, "CREATE TABLE t (n int); INSERT INTO t VALUES (1)");
    let second_dir = temp.path().join("second");
    let second = Server::start_standby(&second_dir, first.port, "s2", &settings);
    let mut s = connect(&second);
    let third_dir = temp.path().join("third");
    let third = Server::start_standby(&third_dir, second.port, "s3", &settings);
    let mut t = connect(&third);
    each(
        &mut p,
        &[
            "BEGIN",
            "INSERT INTO t VALUES (9); CREATE TABLE made (n int)",
            "PREPARE TRANSACTION 'x'",
        ],
    );
    run(&mut p, "INSERT INTO t VALUES (2)");
    catch_up(&mut p, &mut t);
    assert_eq!(t.one("SELECT string_agg(n::text, ' ' ORDER BY n) FROM t"), "1 2");
    assert_eq!(s.one("SELECT application_name FROM pg_stat_replication"), "s3");
    first.kill();

    // The prepared transaction is in the new primary; the other one follows, also after a restart.
    assert_eq!(s.one("SELECT pg_promote()"), "t");
    assert_eq!(s.one("SELECT gid FROM pg_prepared_xacts"), "x");
    each(
        &mut s,
        &["INSERT INTO t VALUES (3)", "COMMIT PREPARED 'x'", "INSERT INTO made VALUES (4)"],
    );
    t.await_one("SELECT count(*) FROM t", "4");
    t.await_one("SELECT count(*) FROM made", "1");
    third.kill();
    run(&mut s, "INSERT INTO made VALUES (5)");
    let third = Server::start(&third_dir, &settings);
    let mut t = connect(&third);
    t.await_one("SELECT count(*) FROM made", "2");
    let history = |dir: &std::path::Path| {
        std::fs::read_to_string(dir.join("timeline.history")).expect("it is there")
    };
    assert_eq!(history(&third_dir), history(&second_dir));
    assert!(third.stop() && second.stop());
    check(&second_dir);
    check(&third_dir);
}

/// Either server is killed under load, again and again; the standby is asked by every commit. `STANDBY_ROUNDS`: 4.
#[test]
fn kills_of_either_server_lose_nothing_that_was_acknowledged() {
    const CLIENTS: u64 = 3;
    let temp = TempDir::new("standby-kills");
    let (primary_dir, dir) = (temp.path().join("primary"), temp.path().join("standby"));
    let mut primary = Server::start(&primary_dir, &SETTINGS);
    let mut p = connect(&primary);
    run(
        &mut p,
        "CREATE TABLE c (id int PRIMARY KEY, n int); CREATE TABLE h (id int, n int);
         INSERT INTO c SELECT i, 0 FROM generate_series(0, 2) i",
    );
    let mut standby = Server::start_standby(&dir, primary.port, "s1", &SETTINGS);
    drop(connect(&standby));
    alter(&mut p, "synchronous_standby_names = 's1'");
    let mut random = Random::new(number("STANDBY_SEED", 5));
    for round in 0..number("STANDBY_ROUNDS", 4) {
        let acknowledged: Vec<AtomicU64> = (0..CLIENTS).map(|_| AtomicU64::new(0)).collect();
        run(&mut p, "UPDATE c SET n = 0; DELETE FROM h");
        let (stop, port) = (AtomicBool::new(false), primary.port);
        let wanted = 20 + random.below(100);
        (primary, standby) = std::thread::scope(|scope| {
            for id in 0..CLIENTS {
                let (stop, acknowledged) = (&stop, &acknowledged);
                scope.spawn(move || count_up(port, id, stop, acknowledged));
            }
            let told = || acknowledged.iter().map(|a| a.load(Ordering::SeqCst)).sum::<u64>();
            while told() < wanted {
                std::thread::yield_now();
            }
            if round % 2 == 0 {
                standby.kill();
                let before = told();
                standby = Server::start(&dir, &SETTINGS);
                // Commits go on when it is back.
                while told() < before + 20 {
                    std::thread::yield_now();
                }
                stop.store(true, Ordering::Relaxed);
            } else {
                primary.kill();
                stop.store(true, Ordering::Relaxed);
                primary = Server::start_on(&primary_dir, port, &SETTINGS);
            }
            (primary, standby)
        });
        p = connect(&primary);
        let mut s = connect(&standby);
        catch_up(&mut p, &mut s);
        for (id, n) in acknowledged.iter().enumerate() {
            let n = n.load(Ordering::SeqCst);
            for client in [&mut p, &mut s] {
                let has = client.one(&format!("SELECT n >= {n} FROM c WHERE id = {id}"));
                assert_eq!(has, "t", "round {round}: client {id} was told of {n}");
            }
        }
        let sums = "SELECT sum(n) || ' ' || (SELECT count(*) FROM h) FROM c";
        let (here, there) = (p.one(sums), s.one(sums));
        assert_eq!(here, there, "round {round}");
        let (sum, count) = here.split_once(' ').expect("two numbers");
        assert_eq!(sum, count, "round {round}: each count has its row");
    }
    assert!(standby.stop() && primary.stop());
    check(&dir);
    check(&primary_dir);
}

/// A snapshot of all lists, as texts; `server` for messages.
struct Seen {
    server: &'static str,
    lists: Vec<Vec<u64>>,
}

const KEYS: usize = 8;

fn read_lists(client: &mut Client) -> Option<Vec<Vec<u64>>> {
    // Several statements, so that the snapshot has to hold.
    let mut lists = Vec::with_capacity(KEYS);
    let begun = client.query("BEGIN ISOLATION LEVEL REPEATABLE READ").ok()?;
    if begun.error.is_some() {
        return None;
    }
    for key in 0..KEYS {
        let answer = client
            .query(&format!("SELECT array_to_string(v, ' ') FROM l WHERE id = {key}"))
            .ok()?;
        if answer.error.is_some() {
            client.query("ROLLBACK").ok()?;
            return None;
        }
        let text = answer.rows.first()?.first()?.clone().unwrap_or_default();
        lists.push(text.split_whitespace().filter_map(|n| n.parse().ok()).collect());
    }
    client.query("COMMIT").ok()?;
    Some(lists)
}

/// Appends to two or three lists in one transaction until it is told to stop; what each appended.
fn append(
    port: u16,
    number: u64,
    stop: &AtomicBool,
    next: &AtomicU64,
    done: &Mutex<Vec<Vec<(usize, u64)>>>,
) {
    let mut random = Random::new(number * 131 + 7);
    let mut client = Client::connect(port).expect("it serves");
    while !stop.load(Ordering::Relaxed) {
        let mut keys: Vec<usize> = (0..2 + random.index(2)).map(|_| random.index(KEYS)).collect();
        keys.sort_unstable();
        keys.dedup();
        let values: Vec<(usize, u64)> =
            keys.iter().map(|key| (*key, next.fetch_add(1, Ordering::Relaxed))).collect();
        let mut sql = "BEGIN;".to_owned();
        for (key, value) in &values {
            sql += &format!("UPDATE l SET v = v || {value} WHERE id = {key};");
        }
        sql += "COMMIT";
        let answer = client.query(&sql).expect("the primary is there");
        assert!(answer.error.is_none(), "{:?}", answer.error);
        done.lock().expect("nobody panics").push(values);
    }
}

/// All snapshots lie in one history: one contains the other, in every list, and has all of a transaction or nothing.
fn judge(seen: &[Seen], last: &[Vec<u64>], done: &[Vec<(usize, u64)>]) {
    // Lists only grow, so a snapshot has a value if its list is long enough.
    let mut places: HashMap<u64, usize> = HashMap::new();
    for list in last {
        list.iter().enumerate().for_each(|(place, value)| {
            places.insert(*value, place);
        });
    }
    let mut sizes: Vec<(usize, Vec<usize>, &str)> = Vec::new();
    for snapshot in seen {
        for (list, all) in snapshot.lists.iter().zip(last) {
            assert!(all.starts_with(list), "a list of the {} is no beginning", snapshot.server);
        }
        let lengths: Vec<usize> = snapshot.lists.iter().map(Vec::len).collect();
        for transaction in done {
            let has = |(key, value): &(usize, u64)| places[value] < lengths[*key];
            let count = transaction.iter().filter(|one| has(one)).count();
            let whole = count == 0 || count == transaction.len();
            assert!(whole, "the {} shows half of a transaction: {transaction:?}", snapshot.server);
        }
        sizes.push((lengths.iter().sum(), lengths, snapshot.server));
    }
    sizes.sort();
    for pair in sizes.windows(2) {
        let in_order = pair[0].1.iter().zip(&pair[1].1).all(|(a, b)| a <= b);
        assert!(in_order, "snapshots of {} and {} fit no order", pair[0].2, pair[1].2);
    }
}

#[test]
fn snapshots_of_primary_and_standby_fit_one_history() {
    let temp = TempDir::new("standby-lists");
    let primary = Server::start(&temp.path().join("primary"), &SETTINGS);
    let mut p = connect(&primary);
    run(
        &mut p,
        "CREATE TABLE l (id int PRIMARY KEY, v int[]); INSERT INTO l SELECT i, '{}' FROM generate_series(0, 7) i",
    );
    let dir = temp.path().join("standby");
    // Readers in the way of hot rows hold up what is applied no longer than that.
    let settings = [SETTINGS[0], SETTINGS[1], SETTINGS[2], "max_standby_streaming_delay=1s"];
    let standby = Server::start_standby(&dir, primary.port, "s1", &settings);
    drop(connect(&standby));
    let (seconds, kills) = (number("STANDBY_SECONDS", 4), number("STANDBY_KILLS", 2));
    let stop = AtomicBool::new(false);
    let next = AtomicU64::new(1);
    let (done, seen) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    let port = primary.port;
    let replica = AtomicU64::new(u64::from(standby.port));
    let standby = std::thread::scope(|scope| {
        for number in 0..3 {
            let (stop, next, done) = (&stop, &next, &done);
            scope.spawn(move || append(port, number, stop, next, done));
        }
        for number in 0..4 {
            let (stop, seen, replica) = (&stop, &seen, &replica);
            scope.spawn(move || {
                let name = if number == 0 { "primary" } else { "standby" };
                let mut client: Option<Client> = None;
                while !stop.load(Ordering::Relaxed) {
                    let at =
                        if number == 0 { port } else { replica.load(Ordering::Relaxed) as u16 };
                    let Some(open) = client.as_mut() else {
                        client = Client::connect(at).ok();
                        continue;
                    };
                    match read_lists(open) {
                        Some(lists) => {
                            seen.lock().expect("nobody panics").push(Seen { server: name, lists })
                        }
                        None => client = None,
                    }
                }
            });
        }
        let mut standby = standby;
        for _ in 0..=kills {
            std::thread::sleep(Duration::from_millis(seconds * 1000 / (kills + 1)));
            standby.kill();
            standby = Server::start(&dir, &settings);
            replica.store(standby.port.into(), Ordering::Relaxed);
        }
        drop(connect(&standby));
        stop.store(true, Ordering::Relaxed);
        standby
    });
    let last = read_lists(&mut p).expect("the primary is there");
    let mut s = connect(&standby);
    catch_up(&mut p, &mut s);
    assert_eq!(read_lists(&mut s).expect("the standby is there"), last);
    let (seen, done) = (seen.into_inner().expect("whole"), done.into_inner().expect("whole"));
    let of_standby = seen.iter().filter(|seen| seen.server == "standby").count();
    assert!(
        of_standby > 20 && done.len() > 20,
        "{of_standby} snapshots, {} transactions",
        done.len()
    );
    judge(&seen, &last, &done);
    println!(
        "{} transactions, {of_standby} snapshots of the standby of {}",
        done.len(),
        seen.len()
    );
    assert!(standby.stop());
    check(&dir);
}
