//! Sessions that wait for files leave their worker to others, and no more rows are read than an answer needs.

use std::io::Write;
use std::process::Command;

use crate::support::client::Client;
use crate::support::raw::{Raw, bind, execute, parse, sync};
use crate::support::{Server, TempDir};

#[test]
fn a_copy_from_a_pipe_keeps_no_worker() {
    let dir = TempDir::new("reading-pipe");
    let server = Server::start(dir.path(), &["workers=1"]);
    let fifo = dir.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().is_ok_and(|status| status.success()));
    let connect = || Client::connect(server.port).expect("the server takes connections");
    let (mut copier, mut other) = (connect(), connect());
    other.one("CREATE TABLE lines (line text)");
    let copy = format!("COPY lines FROM '{}'", fifo.display());
    let waiting = "SELECT count(*) FROM pg_stat_activity
                   WHERE query LIKE 'COPY%' AND wait_event = 'CopyFileRead' AND state = 'active'";
    std::thread::scope(|scope| {
        let copying = scope.spawn(|| copier.query(&copy).expect("the server answers"));
        other.await_one(waiting, "1");
        assert_eq!(other.one("INSERT INTO lines VALUES ('first') RETURNING line"), "first");
        let mut pipe =
            std::fs::OpenOptions::new().write(true).open(&fifo).expect("it has a reader");
        pipe.write_all(b"second\nthird\n").expect("the server reads");
        other.await_one(waiting, "1");
        drop(pipe);
        let answer = copying.join().expect("the session's thread ends");
        assert!(answer.error.is_none(), "{:?}", answer.error);
    });
    assert_eq!(
        other.one("SELECT string_agg(line, ' ' ORDER BY line) FROM lines"),
        "first second third"
    );
    assert!(server.stop());
}

/// More sessions than the pool has frames read and change a table that is much larger; under `debug_tiny` each read
/// of a page gives its worker away.
#[test]
fn reads_of_pages_are_waits_of_their_own_and_lose_nothing() {
    const SESSIONS: usize = 64;
    const ROUNDS: usize = 40;
    const FRAMES: usize = 16;
    let dir = TempDir::new("reading-pages");
    let settings = ["debug_tiny=on", "shared_buffers=16", "workers=2", "autovacuum=off"];
    let server = Server::start(dir.path(), &settings);
    server.query(
        "CREATE TABLE wide (id int PRIMARY KEY, n int, filler text) WITH (fillfactor = 50);
         INSERT INTO wide SELECT i, 0, repeat('x', 500) FROM generate_series(1, 3000) i;",
    );
    let mut watcher = Client::connect(server.port).expect("the server takes connections");
    std::thread::scope(|scope| {
        for session in 0..SESSIONS {
            let port = server.port;
            scope.spawn(move || {
                let mut client = Client::connect(port).expect("the server takes connections");
                for round in 0..ROUNDS {
                    let id = (session * 7919 + round * 104_729) % 3000 + 1;
                    let change = format!("UPDATE wide SET n = n + 1 WHERE id = {id}");
                    let answer = client.query(&change).expect("the server answers");
                    assert!(answer.error.is_none(), "{:?}", answer.error);
                }
            });
        }
    });
    let sum = watcher.one("SELECT sum(n) FROM wide");
    assert_eq!(sum, (SESSIONS * ROUNDS).to_string());
    let pages = watcher.one("SELECT pg_relation_size('wide') / 8192");
    let pages: usize = pages.parse().expect("a number");
    let explain = "EXPLAIN (ANALYZE, WAITS, COSTS OFF) SELECT sum(n) FROM wide";
    let plan = watcher.query(explain).expect("the server answers");
    let lines: Vec<_> = plan.rows.iter().filter_map(|row| row[0].as_deref()).collect();
    let reads = lines.iter().find_map(|line| line.split_once("IO:DataFileRead "));
    let reads = reads.and_then(|(_, rest)| rest.split_once(' ')?.0.parse::<usize>().ok());
    let expected = pages - FRAMES..=pages;
    assert!(reads.is_some_and(|reads| expected.contains(&reads)), "{expected:?} in {lines:?}");
    assert!(server.stop());
}

/// Of texts that differ in their literals alone, each is planned for its own ones where the plan does something else: few
/// customers are read and sorted, many are walked in the order that is asked for until there is a row.
#[test]
fn literals_choose_the_plan_that_a_limit_would_hide() {
    let dir = TempDir::new("literals");
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut client = Client::connect(server.port).expect("the server takes connections");
    for sql in [
        "CREATE TABLE customers (id int PRIMARY KEY, name text)",
        "CREATE TABLE orders (id int PRIMARY KEY, customer int)",
        "CREATE INDEX ON orders (customer)",
        "INSERT INTO customers SELECT i, 'n' || i FROM generate_series(1, 2000) i",
        "INSERT INTO orders SELECT i, 1 + i * 7919 % 2000 FROM generate_series(1, 40000) i",
        "VACUUM ANALYZE",
    ] {
        let answer = client.query(sql).expect("the server answers");
        assert!(answer.error.is_none(), "{:?}", answer.error);
    }
    let read =
        "SELECT idx_tup_fetch + seq_tup_read FROM pg_stat_user_tables WHERE relname = 'customers'";
    for most in [4, 1900, 4, 1900] {
        let before: i64 = client.one(read).parse().expect("a number");
        let rows = client.one(&format!(
            "SELECT c.name FROM customers c JOIN orders o ON o.customer = c.id
             WHERE c.id > 3 AND c.id <= {most} ORDER BY o.id DESC LIMIT 1"
        ));
        assert!(rows.starts_with('n'), "{rows}");
        let after: i64 = client.one(read).parse().expect("a number");
        assert!(after - before < 50, "up to {most}: {} customers", after - before);
    }
    assert!(server.stop());
}

/// EXISTS reads to the first partner, a merge no further than the row that is handed up.
#[test]
fn semi_joins_read_to_the_first_partner() {
    let dir = TempDir::new("partners");
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut client = Client::connect(server.port).expect("the server takes connections");
    for sql in [
        "CREATE TABLE customers (id int PRIMARY KEY, name text)",
        "CREATE TABLE orders (customer int, placed int, weight int)",
        "CREATE INDEX ON orders (customer, placed)",
        "INSERT INTO customers SELECT i, 'n' || i FROM generate_series(1, 2000) i",
        "INSERT INTO orders SELECT 1 + i % 2000, i, i / 2000 FROM generate_series(0, 39999) i",
        "VACUUM ANALYZE",
        "SET enable_hashjoin = off",
    ] {
        let answer = client.query(sql).expect("the server answers");
        assert!(answer.error.is_none(), "{:?}", answer.error);
    }
    let read = "SELECT idx_tup_fetch FROM pg_stat_user_tables WHERE relname = 'orders'";
    for (off, limit, condition, most) in [
        ("mergejoin", 1000, "o.customer = c.id AND o.weight >= 0", 1300),
        ("nestloop", 1, "o.customer = c.id AND o.weight = 19", 40),
    ] {
        client.one(&format!("SET enable_{off} = off"));
        let before: i64 = client.one(read).parse().expect("a number");
        let rows = client.one(&format!(
            "SELECT count(*) FROM (SELECT c.id FROM customers c
             WHERE EXISTS (SELECT FROM orders o WHERE {condition}) ORDER BY c.id LIMIT {limit}) x"
        ));
        assert_eq!(rows, limit.to_string());
        let after: i64 = client.one(read).parse().expect("a number");
        assert!(after - before <= most, "without {off}: {} orders", after - before);
        client.one("RESET ALL");
        client.one("SET enable_hashjoin = off");
    }
    assert!(server.stop());
}

/// A scan of an index reads rows' places some time before it asks the visibility map about their pages. What vacuum removes
/// in between must not come back as a row.
#[test]
fn what_vacuum_removes_during_a_scan_stays_away() {
    let dir = TempDir::new("reading-vacuum");
    let server = Server::start(dir.path(), &["autovacuum=off"]);
    let connect = || Client::connect(server.port).expect("the server takes connections");
    let mut other = connect();
    let mut ok = |sql: &str| {
        let answer = other.query(sql).expect("the server answers");
        assert_eq!(answer.error, None, "{sql}");
    };
    // Not by a cursor of SQL, which asks each row for its place, too.
    let mut reader = Raw::connect(server.port);
    let rows = |lines: &[String]| lines.iter().filter(|line| line.starts_with("D ")).count();
    for (index, query, node) in [
        ("gist (place)", "SELECT place FROM spots ORDER BY place <-> '(0,0)'", "Index Only Scan"),
        ("btree (id)", "SELECT 1 FROM spots WHERE id >= 0", "Bitmap Heap Scan"),
        ("gin (words)", "SELECT 1 FROM spots WHERE words @@ 'a'", "Bitmap Heap Scan"),
    ] {
        ok("CREATE TABLE spots AS
            SELECT n AS id, point(n * 7919 % 4001, 0) AS place, 'a b'::tsvector AS words
            FROM generate_series(1, 4000) n");
        ok(&format!("CREATE INDEX ON spots USING {index}"));
        ok("DELETE FROM spots WHERE id % 2 = 0");
        let only = node.contains("Only");
        reader.query(&format!("SET enable_indexscan = {only}; SET enable_bitmapscan = {}", !only));
        reader.query("SET enable_seqscan = off; SET enable_sort = off");
        let plan = reader.query(&format!("EXPLAIN (COSTS off) {query}"));
        assert!(plan.iter().any(|line| line.contains(node)), "{plan:?}");
        reader.query("BEGIN");
        let first = [parse("", query, &[]), bind("p", "", &[], false), execute("p", 1), sync()];
        assert_eq!(rows(&reader.talk(&first.concat())), 1);
        ok("VACUUM spots");
        let rest = reader.talk(&[execute("p", 0), sync()].concat());
        assert_eq!(rows(&rest), 1999, "{query}: {:?}", rest.last());
        reader.query("COMMIT");
        // Another search trusts the map.
        assert_eq!(rows(&reader.query(query)), 2000);
        ok("DROP TABLE spots");
    }
    assert!(server.stop());
}
