//! Standbys: what they show, whom they cancel, what a kill of either server leaves, and promotion. The checker of snapshots over
//! several servers is in `replicas.rs`.

use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::support::client::Client;
use crate::support::random::Random;
use crate::support::{BIN, Server, TempDir, text_of};

const SETTINGS: [&str; 3] = ["workers=2", "max_wal_size=4MB", "min_wal_size=2MB"];

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
fn a_standby_reads_everything_while_its_primary_frees_pages_and_cuts_files() {
    let temp = TempDir::new("standby-space");
    let primary = Server::start(&temp.path().join("primary"), &SETTINGS);
    let mut p = connect(&primary);
    each(
        &mut p,
        &[
            "CREATE TABLE q (id int PRIMARY KEY, v text, at point)",
            "CREATE INDEX ON q USING gist (at)",
            "INSERT INTO q SELECT i * 1000, 'stays', point(i, i) FROM generate_series(0, 29) i",
        ],
    );
    let standby =
        Server::start_standby(&temp.path().join("standby"), primary.port, "s1", &SETTINGS);
    let mut s = connect(&standby);
    catch_up(&mut p, &mut s);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for order in ["ASC", "DESC"] {
            let (stop, standby) = (&stop, &standby);
            scope.spawn(move || {
                let mut reader = connect(standby);
                each(&mut reader, &["SET enable_seqscan = off", "SET enable_bitmapscan = off"]);
                let by_key = format!(
                    "SELECT count(*) FROM (SELECT id FROM q ORDER BY id {order}) x WHERE id % 1000 = 0"
                );
                let by_place =
                    "SELECT count(*) FROM q WHERE at <@ box '((-1,-1),(40,40))' AND id % 1000 = 0";
                while !stop.load(Ordering::Relaxed) {
                    for sql in [&by_key[..], by_place] {
                        let answer = reader.query(sql).expect("the connection holds");
                        match &answer.error {
                            None => assert_eq!(answer.rows[0][0].as_deref(), Some("30"), "{sql}"),
                            // Rows that vacuum took away were in the way.
                            Some(error) => assert_eq!(error.0, "40001", "{sql}: {error:?}"),
                        }
                    }
                }
            });
        }
        for _ in 0..8 {
            each(
                &mut p,
                &[
                    "INSERT INTO q SELECT i, 'goes', point(i % 40, i % 40) FROM generate_series(1, 30000) i
                     WHERE i % 1000 <> 0",
                    "DELETE FROM q WHERE v = 'goes'",
                    "VACUUM q",
                ],
            );
        }
        catch_up(&mut p, &mut s);
        stop.store(true, Ordering::Relaxed);
    });
    // A cut is logged. Pages that the primary adds to an index ahead of need are not, until one is used.
    let heap = "SELECT pg_relation_size('q')";
    assert_eq!(p.one(heap), s.one(heap));
    let size = |client: &mut Client, index: &str| -> u64 {
        client.one(&format!("SELECT pg_relation_size('{index}')")).parse().expect("a number")
    };
    for index in ["q_pkey", "q_at_idx"] {
        assert!(size(&mut s, index) <= size(&mut p, index), "{index}");
    }
    assert_eq!(p.one("SELECT pg_relation_size('q_pkey') < 3000000"), "t");
    assert_eq!(s.one("SELECT count(*) FROM q"), "30");
    drop((p, s));
    assert!(standby.stop() && primary.stop());
    ["primary", "standby"].iter().for_each(|name| check(&temp.path().join(name)));
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

    // The session stays, and may write afterwards; what came from the old primary is read without a replica.
    alter(&mut s, "synchronous_standby_names = '*'");
    let out = Command::new(BIN).args(["promote", "-D"]).arg(&dir).output().expect("it runs");
    assert_eq!(text_of(&out), "promoted\n");
    assert_eq!(s.one("SELECT pg_is_in_recovery()"), "f");
    for (id, n) in acknowledged.iter().enumerate() {
        let n = n.load(Ordering::SeqCst);
        let has = s.one(&format!("SELECT n >= {n} FROM c WHERE id = {id}"));
        assert_eq!(has, "t", "client {id} was told of {n}");
        let whole = format!("SELECT count(*) = max(c.n) FROM h JOIN c USING (id) WHERE id = {id}");
        assert_eq!(s.one(&whole), "t");
    }
    alter(&mut s, "synchronous_standby_names = ''");
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
    let mut random = Random::new(crate::support::number("STANDBY_SEED", 5));
    for round in 0..crate::support::number("STANDBY_ROUNDS", 4) {
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

/// An authority and a certificate of localhost that it signed.
fn certificates(dir: &std::path::Path) {
    std::fs::create_dir_all(dir).expect("writable");
    std::fs::write(dir.join("names"), "subjectAltName=DNS:localhost").expect("writable");
    let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
    let authority =
        ["-x509", "-days", "30", "-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.crt"];
    let server = ["-subj", "/CN=localhost", "-keyout", "server.key", "-out", "server.csr"];
    let sign = [
        "-in",
        "server.csr",
        "-CA",
        "ca.crt",
        "-CAkey",
        "ca.key",
        "-CAcreateserial",
        "-days",
        "30",
    ];
    let signed = ["-extfile", "names", "-out", "server.crt"];
    for args in [
        [&["req"][..], &key, &authority].concat(),
        [&["req"][..], &key, &server].concat(),
        [&["x509", "-req"][..], &sign, &signed].concat(),
    ] {
        let out = Command::new("openssl").current_dir(dir).args(&args).output();
        let out = out.expect("openssl is installed");
        assert!(out.status.success(), "{args:?}: {}", text_of(&out));
    }
}

#[test]
fn the_way_to_the_primary_is_encrypted_and_both_sides_say_who_they_are() {
    let temp = TempDir::new("standby-tls");
    let certs = temp.path().join("certs");
    certificates(&certs);
    let path = |name: &str| certs.join(name).display().to_string();
    let data = temp.path().join("primary");
    let settings = ["workers=2", "authentication_failure_delay=1"];
    let primary = Server::start(&data, &settings);
    let mut p = connect(&primary);
    run(&mut p, "CREATE ROLE follower LOGIN REPLICATION PASSWORD 'secret'; CREATE TABLE t (n int)");
    for (file, setting) in [("server.crt", "ssl_cert_file"), ("server.key", "ssl_key_file")] {
        run(&mut p, &format!("ALTER SYSTEM SET {setting} = '{}'", path(file)));
    }
    let rules = "host all postgres 127.0.0.1/32 trust\nhostssl replication follower 127.0.0.1/32 scram-sha-256\n";
    std::fs::write(data.join("pg_hba.conf"), rules).expect("writable");
    alter(&mut p, "ssl = on");
    p.await_one("SHOW ssl", "on");

    let dir = temp.path().join("standby");
    let port = primary.port;
    let place =
        format!("host=localhost hostaddr=127.0.0.1 port={port} user=follower application_name=s1");
    let full = format!("{place} sslmode=verify-full sslrootcert={}", path("ca.crt"));
    let refused = |place: &str, word: &str| {
        let out = Command::new(BIN)
            .args(["serve", "--single-process", "--allow-root", "--standby-of", place, "-D"])
            .arg(temp.path().join("never"))
            .output()
            .expect("it runs");
        let text = text_of(&out);
        assert!(!out.status.success() && text.contains(word), "{place}: {text}");
        let _ = std::fs::remove_dir_all(temp.path().join("never"));
    };
    refused(&format!("{full} password=wrong"), "password authentication failed");
    refused(&format!("{place} sslmode=disable password=secret"), "no pg_hba.conf entry");
    refused(&format!("{place} sslmode=verify-full password=secret"), "sslrootcert");
    let other = full.replace("host=localhost", "host=other.example");
    refused(&format!("{other} password=secret"), "not valid for");

    let standby = Server::start_standby_of(&dir, &format!("{full} password=secret"), &settings);
    let mut s = connect(&standby);
    run(&mut p, "INSERT INTO t SELECT generate_series(1, 20000)");
    catch_up(&mut p, &mut s);
    assert_eq!(s.one("SELECT count(*) FROM t"), "20000");
    let encrypted =
        "SELECT ssl || ' ' || version FROM pg_stat_ssl JOIN pg_stat_replication USING (pid)";
    assert_eq!(p.one(encrypted), "true TLSv1.3");
    assert_eq!(s.one("SELECT conninfo LIKE '%secret%' FROM pg_stat_wal_receiver"), "f");
    assert!(standby.stop() && primary.stop());
}

/// Settings of servers that keep little log and share an archive, of which the folder is made.
fn archiving(temp: &TempDir) -> Vec<String> {
    let archive = temp.path().join("archive");
    std::fs::create_dir(&archive).expect("writable");
    let folder = archive.display();
    let commands = [
        format!("archive_command=cp %p {folder}/%f"),
        format!("restore_command=cp {folder}/%f %p"),
    ];
    let plain =
        ["workers=2", "max_wal_size=2MB", "min_wal_size=2MB", "autovacuum=off", "archive_mode=on"];
    plain.map(str::to_owned).into_iter().chain(commands).collect()
}

#[test]
fn a_standby_fetches_from_the_archive_what_its_primary_has_no_more() {
    let temp = TempDir::new("standby-archive");
    let settings = archiving(&temp);
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let primary = Server::start(&temp.path().join("primary"), &settings);
    let mut p = connect(&primary);
    run(&mut p, "CREATE TABLE t (n int, pad text)");
    let dir = temp.path().join("standby");
    let standby = Server::start_standby(&dir, primary.port, "s1", &settings);
    drop(connect(&standby));
    assert!(standby.stop());
    let begun = p.one("SELECT pg_walfile_name(pg_current_wal_lsn())");
    // Until the primary has let the segment go in which the standby is.
    let oldest = || {
        let names = std::fs::read_dir(temp.path().join("primary/wal")).expect("the log");
        names.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).min()
    };
    let first = oldest();
    let until = Instant::now() + Duration::from_secs(60);
    while oldest() == first {
        assert!(Instant::now() < until, "{begun} is never let go");
        each(
            &mut p,
            &[
                "INSERT INTO t SELECT i, repeat('x', 1000) FROM generate_series(1, 3000) i",
                "SELECT pg_switch_wal()",
                "CHECKPOINT",
            ],
        );
    }
    let rows = p.one("SELECT count(*) FROM t");
    let standby = Server::start(&dir, &settings);
    let mut s = connect(&standby);
    s.await_one("SELECT count(*) FROM t", &rows);
    let log = std::fs::read_to_string(dir.with_extension("log")).expect("it is there");
    assert!(log.contains("restored log from the archive"), "{log}");
    run(&mut p, "INSERT INTO t VALUES (0, '')");
    catch_up(&mut p, &mut s);

    // And what the archive has when the primary is away.
    s.await_one("SELECT status FROM pg_stat_wal_receiver", "streaming");
    assert!(standby.stop());
    run(&mut p, "INSERT INTO t VALUES (0, 'last')");
    let last = p.one("SELECT pg_walfile_name(pg_current_wal_lsn())");
    each(&mut p, &["SELECT pg_switch_wal()", "INSERT INTO t VALUES (0, 'lost')"]);
    let number = u64::from_str_radix(&last, 16).expect("a segment's number");
    let name = format!("00000001{:08X}{:08X}", number / 256, number % 256);
    p.await_one(&format!("SELECT last_archived_wal >= '{name}' FROM pg_stat_archiver"), "t");
    primary.kill();
    let standby = Server::start(&dir, &settings);
    let mut s = connect(&standby);
    s.await_one("SELECT count(*) FROM t WHERE pad = 'last'", "1");
    assert_eq!(s.one("SELECT count(*) FROM t WHERE pad = 'lost'"), "0");
    assert!(standby.stop());
    check(&dir);
}

/// The segment that the primary's log is in: its file's name, and that in an archive.
fn segment_of(primary: &mut Client) -> (String, String) {
    let name = primary.one("SELECT pg_walfile_name(pg_current_wal_insert_lsn())");
    let number = u64::from_str_radix(&name, 16).expect("a segment's number");
    let archived = format!("00000001{:08X}{:08X}", number / 256, number % 256);
    (name, archived)
}

/// Waits until a server's log says this.
fn await_log(dir: &std::path::Path, word: &str) {
    let until = Instant::now() + Duration::from_secs(60);
    let log = dir.with_extension("log");
    while !std::fs::read_to_string(&log).unwrap_or_default().contains(word) {
        assert!(Instant::now() < until, "{word:?} is not in {}", log.display());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The archive has the segment in which the standby stopped, the primary does not, and what follows is in the primary
/// alone: whether the segment ends with a record's end or in the midst of one.
#[test]
fn a_standby_goes_on_behind_a_segment_that_only_the_archive_has() {
    let temp = TempDir::new("standby-switched");
    let settings = archiving(&temp);
    let archive = temp.path().join("archive");
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    let primary_dir = temp.path().join("primary");
    let primary = Server::start(&primary_dir, &settings);
    let mut p = connect(&primary);
    run(&mut p, "CREATE TABLE t (n int, pad text)");
    let dir = temp.path().join("standby");
    let mut standby = Server::start_standby(&dir, primary.port, "s1", &settings);
    for switched in [true, false] {
        let mut s = connect(&standby);
        catch_up(&mut p, &mut s);
        let (name, archived) = segment_of(&mut p);
        assert!(standby.stop());
        if switched {
            run(&mut p, "INSERT INTO t VALUES (0, 'before')");
            let end = p.one("SELECT pg_switch_wal()");
            assert!(end.ends_with("000000"), "the segment's last record ends with it: {end}");
        } else {
            while segment_of(&mut p).0 == name {
                run(
                    &mut p,
                    "INSERT INTO t SELECT i, repeat('x', 1000) FROM generate_series(1, 100) i",
                );
            }
        }
        run(&mut p, "INSERT INTO t VALUES (0, 'behind')");
        let until = Instant::now() + Duration::from_secs(60);
        while !archive.join(&archived).exists() || primary_dir.join("wal").join(&name).exists() {
            assert!(Instant::now() < until, "{name} stays, or {archived} is not archived");
            each(&mut p, &["INSERT INTO t VALUES (0, 'behind')", "CHECKPOINT"]);
        }
        let (rows, last) = (p.one("SELECT count(*) FROM t"), segment_of(&mut p).1);
        standby = Server::start(&dir, &settings);
        let mut s = connect(&standby);
        s.await_one("SELECT count(*) FROM t", &rows);
        s.await_one("SELECT status FROM pg_stat_wal_receiver", "streaming");
        assert!(!archive.join(&last).exists(), "{last} came from the primary");
    }
    assert!(standby.stop() && primary.stop());
    check(&dir);
}

#[test]
fn a_standby_says_what_its_primary_has_no_more_and_asks_again() {
    let temp = TempDir::new("standby-removed");
    let primary_dir = temp.path().join("primary");
    let primary = Server::start(&primary_dir, &SETTINGS);
    let mut p = connect(&primary);
    run(&mut p, "CREATE TABLE t (n int)");
    let dir = temp.path().join("standby");
    let standby = Server::start_standby(&dir, primary.port, "s1", &SETTINGS);
    let mut s = connect(&standby);
    catch_up(&mut p, &mut s);
    alter(&mut p, "wal_keep_size = '64MB'");
    p.await_one("SHOW wal_keep_size", "64MB");
    let (name, archived) = segment_of(&mut p);
    assert!(standby.stop());
    each(
        &mut p,
        &["INSERT INTO t VALUES (1)", "SELECT pg_switch_wal()", "INSERT INTO t VALUES (2)"],
    );
    let file = primary_dir.join("wal").join(&name);
    each(&mut p, &["CHECKPOINT", "CHECKPOINT"]);
    assert!(file.exists(), "wal_keep_size keeps it");
    let archive = temp.path().join("archive");
    std::fs::create_dir(&archive).expect("writable");
    std::fs::copy(&file, archive.join(&archived)).expect("it is there");
    alter(&mut p, "wal_keep_size = 0");
    p.await_one("SHOW wal_keep_size", "0");
    let until = Instant::now() + Duration::from_secs(60);
    while file.exists() {
        assert!(Instant::now() < until, "{name} stays");
        each(&mut p, &["INSERT INTO t VALUES (3)", "CHECKPOINT"]);
    }
    let rows = p.one("SELECT count(*) FROM t");
    let standby = Server::start(&dir, &SETTINGS);
    await_log(&dir, &format!("requested WAL segment {archived} has already been removed"));
    await_log(&dir, "Set restore_command if an archive has the segment");
    let mut s = connect(&standby);
    assert_eq!(s.one("SELECT count(*) FROM t"), "0");

    // An archive without it, then with it; what follows comes from the primary.
    let aside = archive.join("aside");
    std::fs::rename(archive.join(&archived), &aside).expect("it is there");
    alter(&mut s, &format!("restore_command = 'cp {}/%f %p'", archive.display()));
    await_log(&dir, "The archive does not have the segment yet");
    std::fs::rename(&aside, archive.join(&archived)).expect("it is there");
    s.await_one("SELECT count(*) FROM t", &rows);
    assert!(standby.stop() && primary.stop());
    check(&dir);
}

#[test]
fn an_old_primary_is_rewound_and_follows_the_new_one() {
    let temp = TempDir::new("standby-rewind");
    let (old_dir, new_dir) = (temp.path().join("old"), temp.path().join("new"));
    let old = Server::start(&old_dir, &SETTINGS);
    let mut o = connect(&old);
    run(
        &mut o,
        "CREATE TABLE t (id int PRIMARY KEY, v text); CREATE TABLE gone (i int); CREATE TABLE cut (i int);
         INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series(1, 20000) i; INSERT INTO cut SELECT generate_series(1, 5000)",
    );
    let new = Server::start_standby(&new_dir, old.port, "s1", &SETTINGS);
    let mut n = connect(&new);
    catch_up(&mut o, &mut n);
    assert_eq!(n.one("SELECT pg_promote()"), "t");
    // Each goes its own way: rows, definitions, files that come, go and are cut, a checkpoint behind the fork.
    run(
        &mut o,
        "UPDATE t SET v = 'old' WHERE id % 1000 = 0; DROP TABLE gone; CREATE TABLE only_old AS SELECT 1 AS i",
    );
    each(
        &mut o,
        &[
            "TRUNCATE cut",
            "INSERT INTO t VALUES (0, 'old')",
            "CHECKPOINT",
            "DELETE FROM t WHERE id = 1",
        ],
    );
    run(
        &mut n,
        "UPDATE t SET v = 'new' WHERE id % 900 = 0; CREATE TABLE only_new AS SELECT 2 AS i",
    );
    each(&mut n, &["INSERT INTO gone VALUES (7)", "DELETE FROM cut WHERE i > 2500"]);
    let rewind = |from: u16| {
        let place = format!("host=127.0.0.1 port={from} user=postgres application_name=s2");
        Command::new(BIN)
            .args(["rewind", "--from", &place, "-D"])
            .arg(&old_dir)
            .output()
            .expect("it runs")
    };
    assert!(text_of(&rewind(new.port)).contains("is in use"));
    old.kill();
    let out = rewind(new.port);
    let said = text_of(&out);
    assert!(
        out.status.success() && said.starts_with("given up: ") && !said.contains("given up: 0"),
        "{said}"
    );
    let numbers: Vec<u64> = said.split(' ').filter_map(|word| word.parse().ok()).collect();
    assert!(numbers[1] < numbers[2] / 2, "most pages are the same: {said}");
    let old = Server::start(&old_dir, &SETTINGS);
    let mut o = connect(&old);
    run(&mut n, "INSERT INTO t VALUES (-1, 'later')");
    catch_up(&mut n, &mut o);
    for sql in [
        "SELECT count(*) || ' ' || md5(string_agg(id || v, ',' ORDER BY id)) FROM t",
        "SELECT count(*) FROM gone",
        "SELECT count(*) FROM cut",
        "SELECT i FROM only_new",
        "SELECT count(*) FROM pg_class WHERE relname = 'only_old'",
    ] {
        assert_eq!(o.one(sql), n.one(sql), "{sql}");
    }
    // There is nothing to be done a second time, and back they go.
    assert!(old.stop());
    let out = rewind(new.port);
    assert!(text_of(&out).starts_with("no rewind required"), "{}", text_of(&out));
    assert!(new.stop());
    check(&old_dir);
    check(&new_dir);
}
