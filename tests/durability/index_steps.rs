//! CREATE INDEX, DROP INDEX and REINDEX CONCURRENTLY: writers go on meanwhile, only those that began
//! before are waited for, and afterwards index and table agree, as queries and the checker see them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::support::client::{Answer, Client};
use crate::support::raw::{Raw, bind, execute, parse, sync};
use crate::support::{BIN, Server, TempDir};

fn ok(client: &mut Client, sql: &str) -> Answer {
    let answer = client.query(sql).expect("the server runs");
    assert_eq!(answer.error, None, "{sql}");
    answer
}

fn code(client: &mut Client, sql: &str) -> String {
    let answer = client.query(sql).expect("the server runs");
    answer.error.unwrap_or_else(|| panic!("{sql} has worked")).0
}

/// Returns when so many sessions wait for a relation's lock.
fn until_waiting(client: &mut Client, count: u32) {
    let sql = "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'relation'";
    while client.one(sql) != count.to_string() {
        std::thread::yield_now();
    }
}

/// Says what the table holds by its index and without; they must be the same.
fn agree(client: &mut Client) {
    ok(client, "BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL enable_bitmapscan = off");
    let sum = "SELECT count(*) || ' ' || coalesce(sum(id + value), 0) FROM items WHERE value >= -5";
    ok(client, "SET LOCAL enable_seqscan = off");
    let plan = ok(client, &format!("EXPLAIN (COSTS off) {sum}")).rows;
    let plan: Vec<String> = plan.into_iter().filter_map(|r| r[0].clone()).collect();
    assert!(plan.join("\n").contains("Index"), "{plan:?}");
    let by_index = client.one(sum);
    ok(client, "SET LOCAL enable_seqscan = on; SET LOCAL enable_indexscan = off");
    ok(client, "SET LOCAL enable_indexonlyscan = off");
    assert_eq!(by_index, client.one(sum));
    ok(client, "COMMIT");
}

/// Changes random rows until told to end: keys of the new index move, rows come, go and come back, some
/// transactions roll back.
fn write(port: u16, seed: u64, stop: &AtomicBool, done: &AtomicU64) {
    let mut client = Client::connect(port).expect("the server takes connections");
    let mut state = seed;
    let mut random = |n: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % n
    };
    while !stop.load(Ordering::Relaxed) {
        let (id, value) = (random(3000), random(100));
        let end = if random(5) == 0 { "ROLLBACK" } else { "COMMIT" };
        let other = random(3000);
        let sql = match random(4) {
            0 => format!("DELETE FROM items WHERE id = {id}"),
            1 => format!("INSERT INTO items VALUES ({id}, {value}) ON CONFLICT DO NOTHING"),
            2 => format!("UPDATE items SET note = note || 'x' WHERE id = {id}"),
            _ => format!("UPDATE items SET value = {value} WHERE id IN ({id}, {other})"),
        };
        let answer = client.query(&format!("BEGIN; {sql}; {end}")).expect("the server runs");
        match answer.error {
            None => drop(done.fetch_add(1, Ordering::Relaxed)),
            Some((code, text)) => {
                assert_eq!(code, "40P01", "{sql}: {text}");
                ok(&mut client, "ROLLBACK");
            }
        }
    }
}

/// Tells the writers to end, whatever happens to the test.
struct Stop<'s>(&'s AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn indexes_come_and_go_while_others_write() {
    let dir = TempDir::new("index-steps");
    let data = dir.path().join("data");
    let server = Server::start(&data, &["workers=2"]);
    let mut client = Client::connect(server.port).expect("the server takes connections");
    ok(&mut client, "CREATE TABLE items (id int PRIMARY KEY, value int, note text DEFAULT '')");
    ok(&mut client, "INSERT INTO items SELECT n, n % 50 FROM generate_series(1, 3000) n");
    let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let _stop = Stop(&stop);
        for seed in 1..5 {
            let (port, stop, done) = (server.port, &stop, &done);
            scope.spawn(move || write(port, seed, stop, done));
        }
        for round in 0..6 {
            let before = done.load(Ordering::Relaxed);
            ok(&mut client, "CREATE INDEX CONCURRENTLY by_value ON items (value)");
            agree(&mut client);
            ok(&mut client, "CREATE UNIQUE INDEX CONCURRENTLY by_both ON items (abs(id), value)");
            match round % 3 {
                0 => drop(ok(&mut client, "REINDEX INDEX CONCURRENTLY by_value")),
                1 => drop(ok(&mut client, "REINDEX TABLE CONCURRENTLY items")),
                _ => drop(ok(&mut client, "REINDEX TABLE items")),
            }
            agree(&mut client);
            if round < 5 {
                ok(&mut client, "DROP INDEX CONCURRENTLY by_both");
                ok(&mut client, "DROP INDEX CONCURRENTLY by_value");
            }
            while done.load(Ordering::Relaxed) < before + 20 {
                std::thread::yield_now();
            }
        }
    });
    agree(&mut client);
    let left = "SELECT string_agg(indexname, ' ' ORDER BY indexname) FROM pg_indexes WHERE tablename = 'items'";
    assert_eq!(client.one(left), "by_both by_value items_pkey");
    assert_eq!(client.one("SELECT count(*) FROM pg_index WHERE NOT indisvalid"), "0");
    check(server, &data);
}

/// Stops the server and has its files checked.
fn check(server: Server, data: &std::path::Path) {
    assert!(server.stop());
    let check = std::process::Command::new(BIN).args(["check", "-D"]).arg(data).output();
    let check = check.expect("the binary was built");
    assert!(check.status.success(), "{}", crate::support::text_of(&check));
}

#[test]
fn rows_that_were_deleted_before_an_index_was_made_need_not_be_in_it() {
    let dir = TempDir::new("index-deleted");
    let data = dir.path().join("data");
    let server = Server::start(&data, &["autovacuum=off"]);
    let [mut reader, mut writer] =
        [(); 2].map(|()| Client::connect(server.port).expect("the server takes connections"));
    ok(&mut writer, "CREATE TABLE items (id int)");
    ok(&mut writer, "INSERT INTO items SELECT generate_series(1, 100)");
    // Its snapshot keeps the versions.
    ok(&mut reader, "BEGIN ISOLATION LEVEL REPEATABLE READ");
    assert_eq!(reader.one("SELECT count(*) FROM items"), "100");
    ok(&mut writer, "DELETE FROM items WHERE id <= 50");
    ok(&mut writer, "CREATE INDEX by_id ON items (id)");
    assert_eq!(reader.one("SELECT count(*) FROM items WHERE id > 0"), "100");
    ok(&mut reader, "COMMIT");
    check(server, &data);
}

#[test]
fn only_those_who_wrote_before_are_waited_for() {
    let dir = TempDir::new("index-waits");
    let server = Server::start(&dir.path().join("data"), &[]);
    let [mut early, mut late, mut watch] =
        [(); 3].map(|()| Client::connect(server.port).expect("the server takes connections"));
    ok(&mut early, "CREATE TABLE items (id int PRIMARY KEY, value int)");
    ok(&mut early, "INSERT INTO items VALUES (1, 1), (2, 2)");
    ok(&mut early, "BEGIN");
    ok(&mut early, "UPDATE items SET value = 10 WHERE id = 1");
    std::thread::scope(|scope| {
        let port = server.port;
        let build = scope.spawn(move || {
            let mut client = Client::connect(port).expect("the server takes connections");
            ok(&mut client, "CREATE INDEX CONCURRENTLY by_value ON items (value)");
        });
        until_waiting(&mut watch, 1);
        // A later writer is neither held up nor waited for.
        ok(&mut late, "BEGIN");
        ok(&mut late, "UPDATE items SET value = 20 WHERE id = 2");
        let invalid = "SELECT indisvalid FROM pg_index WHERE indexrelid = 'by_value'::regclass";
        assert_eq!(watch.one(invalid), "f");
        ok(&mut watch, "SET lock_timeout = 1");
        assert_eq!(code(&mut watch, "DROP TABLE items"), "55P03");
        ok(&mut early, "COMMIT");
        build.join().expect("the index is made");
        assert_eq!(watch.one(invalid), "t");
        ok(&mut late, "COMMIT");
    });
    agree(&mut watch);
    assert_eq!(
        watch.one("SELECT count(*) FROM pg_locks WHERE locktype = 'relation' AND mode = 'ShareUpdateExclusiveLock'"
        ),
        "0"
    );
}

#[test]
fn what_fails_leaves_an_index_that_is_not_read() {
    let dir = TempDir::new("index-fails");
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut client = Client::connect(server.port).expect("the server takes connections");
    ok(&mut client, "CREATE TABLE items (id int, value int)");
    ok(&mut client, "INSERT INTO items SELECT n % 100, n FROM generate_series(1, 101) n");
    let make = "CREATE UNIQUE INDEX CONCURRENTLY by_id ON items (id)";
    assert_eq!(code(&mut client, make), "23505");
    let valid = "SELECT indisvalid FROM pg_index WHERE indexrelid = 'by_id'::regclass";
    assert_eq!(client.one(valid), "f");
    ok(&mut client, "SET enable_seqscan = off");
    let plan = ok(&mut client, "EXPLAIN SELECT * FROM items WHERE id = 7").rows;
    assert!(!format!("{plan:?}").contains("by_id"), "{plan:?}");
    // It is kept up to date, and refuses what is there twice already.
    assert_eq!(code(&mut client, "INSERT INTO items VALUES (5, 0)"), "23505");
    assert_eq!(
        code(&mut client, "INSERT INTO items VALUES (5, 0) ON CONFLICT (id) DO NOTHING"),
        "42P10"
    );
    assert_eq!(code(&mut client, "REINDEX INDEX by_id"), "23505");
    ok(&mut client, "DELETE FROM items WHERE value = 101");
    ok(&mut client, "REINDEX INDEX by_id");
    assert_eq!(client.one(valid), "t");
    assert_eq!(client.one("SELECT value FROM items WHERE id = 7"), "7");
    for sql in [
        "BEGIN; DROP INDEX CONCURRENTLY by_id",
        "BEGIN; REINDEX TABLE CONCURRENTLY items",
        "BEGIN; CREATE INDEX CONCURRENTLY ON items (value)",
        "SELECT 1; REINDEX SCHEMA public",
    ] {
        assert_eq!(code(&mut client, sql), "25001", "{sql}");
        ok(&mut client, "ROLLBACK");
    }
    ok(&mut client, "REINDEX SCHEMA public");
    ok(&mut client, "REINDEX DATABASE CONCURRENTLY postgres");
    ok(&mut client, "DROP INDEX CONCURRENTLY by_id");
    assert_eq!(code(&mut client, valid), "42P01");
}

/// A statement by the extended protocol, without a Sync.
fn extended(sql: &str) -> Vec<u8> {
    [parse("", sql, &[]), bind("", "", &[], false), execute("", 0)].concat()
}

#[test]
fn the_extended_protocol_takes_the_same_steps() {
    let dir = TempDir::new("index-extended");
    let data = dir.path().join("data");
    let server = Server::start(&data, &[]);
    let [mut early, mut watch] =
        [(); 2].map(|()| Client::connect(server.port).expect("the server takes connections"));
    ok(&mut watch, "CREATE TABLE items (id int PRIMARY KEY, value int)");
    ok(&mut watch, "INSERT INTO items SELECT n, n % 50 FROM generate_series(1, 500) n");
    let mut raw = Raw::connect(server.port);
    ok(&mut early, "BEGIN; UPDATE items SET value = 10 WHERE id = 1");
    raw.send(&[extended("CREATE INDEX CONCURRENTLY by_value ON items (value)"), sync()].concat());
    until_waiting(&mut watch, 1);
    ok(&mut watch, "INSERT INTO items VALUES (501, 7)");
    ok(&mut early, "COMMIT");
    let end = |line: &str| line.starts_with("Z ");
    assert_eq!(raw.until(end), ["1", "2", "C CREATE INDEX", "Z I"]);
    agree(&mut watch);
    // Prepared once, run twice.
    raw.talk(&[parse("again", "REINDEX TABLE CONCURRENTLY items", &[]), sync()].concat());
    for _ in 0..2 {
        let lines = raw.talk(&[bind("", "again", &[], false), execute("", 0), sync()].concat());
        assert_eq!(lines, ["2", "C REINDEX", "Z I"]);
        agree(&mut watch);
    }
    // In a pipeline and in a block these have no place; nothing of the pipeline is done then.
    let drop = "DROP INDEX CONCURRENTLY by_value";
    let lines = raw.talk(&[extended("DELETE FROM items"), extended(drop), sync()].concat());
    let refused = "E ERROR 25001 DROP INDEX CONCURRENTLY cannot be executed within a pipeline";
    assert!(lines.contains(&refused.to_owned()), "{lines:?}");
    let lines = raw.talk(&[extended("BEGIN"), extended(drop), sync()].concat());
    let refused = "E ERROR 25001 DROP INDEX CONCURRENTLY cannot run inside a transaction block";
    assert!(lines.contains(&refused.to_owned()), "{lines:?}");
    raw.query("ROLLBACK");
    let lines = raw.talk(&[extended("VACUUM items"), extended("VACUUM items"), sync()].concat());
    assert!(lines.iter().any(|line| line.starts_with("E ERROR 25001 VACUUM")), "{lines:?}");
    assert_eq!(watch.one("SELECT count(*) FROM items"), "501");
    agree(&mut watch);
    // What fails after it in the pipeline undoes its last step: the index is there, and not valid.
    let make = "CREATE INDEX CONCURRENTLY by_id ON items (id, value)";
    let lines = raw.talk(&[extended(make), extended("SELECT 1 / 0"), sync()].concat());
    assert!(lines.iter().any(|line| line.starts_with("E ERROR 22012")), "{lines:?}");
    let valid = "SELECT indisvalid FROM pg_index WHERE indexrelid = 'by_id'::regclass";
    assert_eq!(watch.one(valid), "f");
    let lines = raw.talk(&[extended("DROP INDEX CONCURRENTLY by_id"), sync()].concat());
    assert_eq!(lines, ["1", "2", "C DROP INDEX", "Z I"]);
    assert_eq!(code(&mut watch, valid), "42P01");
    check(server, &data);
}

/// Has the server fail at a point, at its passage with this number.
fn arm(client: &mut Client, faults: &str) {
    ok(client, &format!("ALTER SYSTEM SET debug_faults = '{faults}'"));
    ok(client, "SELECT pg_reload_conf()");
}

#[test]
fn a_crash_in_the_middle_leaves_an_index_that_is_not_read_or_none() {
    let dir = TempDir::new("index-crash");
    let data = dir.path().join("data");
    let server = Server::start_crashing(&data, &["autovacuum=off"]);
    let mut client = Client::connect(server.port).expect("the server takes connections");
    ok(&mut client, "CREATE TABLE items (id int PRIMARY KEY, value int)");
    ok(&mut client, "INSERT INTO items SELECT n, n % 50 FROM generate_series(1, 1000) n");
    let states = "SELECT string_agg(relname || CASE WHEN indisvalid THEN '' ELSE ' not valid' END, \
                  ', ' ORDER BY relname) FROM pg_index JOIN pg_class c ON c.oid = indexrelid \
                  WHERE relname <> 'items_pkey' AND indrelid = 'items'::regclass";
    let make = "CREATE INDEX CONCURRENTLY by_value ON items (value)";
    let again = "REINDEX INDEX CONCURRENTLY by_value";
    let drop = "DROP INDEX CONCURRENTLY by_value";
    for (sql, fault, left) in [
        // Pages are written, nothing is committed.
        ("CREATE INDEX by_value ON items (value)", "page_changed=panic/5", ""),
        ("CREATE INDEX by_value ON items (value)", "commit=panic", ""),
        // In the first transaction, among the rows, and with all of them in it.
        (make, "commit=panic", ""),
        (make, "page_changed=panic/500", "by_value not valid"),
        (make, "index_insert=error/500", "by_value not valid"),
        (make, "commit=panic/2", "by_value not valid"),
        (make, "", "by_value"),
        (again, "page_changed=panic/500", "by_value, by_value_ccnew not valid"),
        (again, "commit=panic/2", "by_value, by_value_ccnew not valid"),
        (again, "commit=panic/3", "by_value, by_value_ccnew not valid"),
        (again, "commit=panic/4", "by_value, by_value_ccnew not valid"),
        (drop, "commit=panic", "by_value"),
        (drop, "commit=panic/2", "by_value not valid"),
        (drop, "commit=panic/3", "by_value not valid"),
        (make, "page_logged=panic/700", "by_value not valid"),
    ] {
        if !sql.starts_with("CREATE") && client.one(states) != "by_value" {
            ok(&mut client, make);
        }
        if !fault.is_empty() {
            arm(&mut client, fault);
        }
        let ended = client.query(sql);
        client = Client::connect(server.port).expect("it is started again");
        arm(&mut client, "");
        let crashed = fault.contains("panic");
        assert_eq!(ended.is_err(), crashed, "{sql} with {fault}: {ended:?}");
        assert_eq!(client.one(states), left, "{sql} with {fault}");
        // It is kept up to date, or no longer; what it may lack is not read.
        for change in [
            "UPDATE items SET value = 49 - value WHERE id % 10 = 0",
            "DELETE FROM items WHERE id = 77; INSERT INTO items VALUES (77, 77)",
        ] {
            ok(&mut client, change);
        }
        let plan = ok(&mut client, "EXPLAIN SELECT * FROM items WHERE value = 77").rows;
        let valid = left.split(", ").any(|index| index == "by_value");
        assert!(valid || !format!("{plan:?}").contains("by_value"), "{plan:?}");
        if left.contains("ccnew") {
            ok(&mut client, "DROP INDEX by_value_ccnew");
        }
        match left.ends_with("by_value not valid") {
            // By turns what is to be done about it.
            true if fault.contains("page_changed") => drop_it(&mut client, "DROP INDEX by_value"),
            true if fault.contains("/2") => drop_it(&mut client, drop),
            true if fault.contains("page_logged") => {}
            true => {
                ok(&mut client, "REINDEX INDEX by_value");
                agree(&mut client);
                drop_it(&mut client, drop);
            }
            false if valid => agree(&mut client),
            false => {}
        }
    }
    check(server, &data);
}

fn drop_it(client: &mut Client, sql: &str) {
    ok(client, sql);
    assert_eq!(code(client, "SELECT 'by_value'::regclass"), "42P01", "{sql}");
}

#[test]
fn the_checker_computes_what_an_index_computes() {
    let dir = TempDir::new("index-computed");
    let data = dir.path().join("data");
    let server = Server::start(&data, &[]);
    let mut client = Client::connect(server.port).expect("the server takes connections");
    let twice = "CREATE OR REPLACE FUNCTION twice(x int) RETURNS int IMMUTABLE LANGUAGE sql AS ";
    for sql in [
        "CREATE TYPE mood AS ENUM ('low', 'high')",
        "CREATE TABLE items (id int, name text, mood mood)",
        &format!("{twice} 'SELECT x * 2'"),
        "INSERT INTO items SELECT n, 'Name ' || n, CASE n % 2 WHEN 0 THEN 'low' ELSE 'high' END::mood \
         FROM generate_series(1, 300) n",
        "CREATE INDEX by_twice ON items (twice(id))",
        "CREATE INDEX by_name ON items (lower(name)) WHERE id % 3 = 0",
        "CREATE UNIQUE INDEX by_mood ON items (mood, id) WHERE mood > 'low'",
        "UPDATE items SET name = upper(name), mood = 'low' WHERE id % 5 = 0",
        "UPDATE items SET id = id + 1000 WHERE id % 7 = 0",
        "DELETE FROM items WHERE id % 11 = 0",
    ] {
        ok(&mut client, sql);
    }
    check(server, &data);
    let server = Server::start(&data, &[]);
    let mut client = Client::connect(server.port).expect("the server takes connections");
    ok(&mut client, &format!("{twice} 'SELECT x * 3'"));
    assert!(server.stop());
    let found = std::process::Command::new(BIN).args(["check", "-D"]).arg(&data).output();
    let found = crate::support::text_of(&found.expect("the binary was built"));
    assert!(found.contains("table items: index") && found.contains("is not its row's"), "{found}");
}

/// SHARE locks let several transactions make indexes of one table; each has to see those of the others.
#[test]
fn indexes_of_one_table_are_made_at_the_same_time() {
    let dir = TempDir::new("index-together");
    let server = Server::start(&dir.path().join("data"), &["workers=2"]);
    let mut one = Client::connect(server.port).expect("the server takes connections");
    let mut other = Client::connect(server.port).expect("the server takes connections");
    let mut watcher = Client::connect(server.port).expect("the server takes connections");
    ok(&mut one, "CREATE TABLE items (id int, value int)");
    ok(&mut one, "BEGIN; CREATE INDEX ON items (id)");
    std::thread::scope(|scope| {
        let made = scope.spawn(|| ok(&mut other, "CREATE INDEX ON items (value)"));
        while watcher.one("SELECT count(*) FROM pg_locks WHERE NOT granted") != "1" {
            std::thread::yield_now();
        }
        ok(&mut one, "COMMIT");
        made.join().expect("the second index is made");
    });
    let listed = "SELECT count(*) FROM pg_index WHERE indrelid = 'items'::regclass";
    assert_eq!(watcher.one(listed), "2");
    assert!(server.stop());
}
