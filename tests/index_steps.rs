//! CREATE INDEX, DROP INDEX and REINDEX CONCURRENTLY: writers go on meanwhile, only those that began
//! before are waited for, and afterwards index and table agree, as queries and the checker see them.

mod support;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use support::client::{Answer, Client};
use support::{BIN, Server, TempDir};

fn ok(client: &mut Client, sql: &str) -> Answer {
    let answer = client.query(sql).expect("the server runs");
    assert_eq!(answer.error, None, "{sql}");
    answer
}

fn code(client: &mut Client, sql: &str) -> String {
    let answer = client.query(sql).expect("the server runs");
    answer.error.unwrap_or_else(|| panic!("{sql} has worked")).0
}

fn one(client: &mut Client, sql: &str) -> String {
    let answer = ok(client, sql);
    answer.rows.first().and_then(|r| r[0].clone()).unwrap_or_default()
}

/// Returns when so many sessions wait for a relation's lock.
fn until_waiting(client: &mut Client, count: u32) {
    let sql = "SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'relation'";
    while one(client, sql) != count.to_string() {
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
    let by_index = one(client, sum);
    ok(client, "SET LOCAL enable_seqscan = on; SET LOCAL enable_indexscan = off");
    ok(client, "SET LOCAL enable_indexonlyscan = off");
    assert_eq!(by_index, one(client, sum));
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
    assert_eq!(one(&mut client, left), "by_both by_value items_pkey");
    assert_eq!(one(&mut client, "SELECT count(*) FROM pg_index WHERE NOT indisvalid"), "0");
    check(server, &data);
}

/// Stops the server and has its files checked.
fn check(server: Server, data: &std::path::Path) {
    assert!(server.stop());
    let check = std::process::Command::new(BIN).args(["check", "-D"]).arg(data).output();
    let check = check.expect("the binary was built");
    assert!(check.status.success(), "{}", support::text_of(&check));
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
    assert_eq!(one(&mut reader, "SELECT count(*) FROM items"), "100");
    ok(&mut writer, "DELETE FROM items WHERE id <= 50");
    ok(&mut writer, "CREATE INDEX by_id ON items (id)");
    assert_eq!(one(&mut reader, "SELECT count(*) FROM items WHERE id > 0"), "100");
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
        assert_eq!(one(&mut watch, invalid), "f");
        ok(&mut watch, "SET lock_timeout = 1");
        assert_eq!(code(&mut watch, "DROP TABLE items"), "55P03");
        ok(&mut early, "COMMIT");
        build.join().expect("the index is made");
        assert_eq!(one(&mut watch, invalid), "t");
        ok(&mut late, "COMMIT");
    });
    agree(&mut watch);
    assert_eq!(
        one(
            &mut watch,
            "SELECT count(*) FROM pg_locks WHERE locktype = 'relation' AND mode = 'ShareUpdateExclusiveLock'"
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
    assert_eq!(one(&mut client, valid), "f");
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
    assert_eq!(one(&mut client, valid), "t");
    assert_eq!(one(&mut client, "SELECT value FROM items WHERE id = 7"), "7");
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
