//! Helpers of a statement: the same answers as without them, and nothing of them stays behind.

#[path = "support/mod.rs"]
mod support;

use support::client::Client;
use support::{Server, TempDir};

const TABLE: &str = "CREATE TABLE t AS SELECT i, i % 97 AS k, i * 7 % 1000 AS v, i::int8 * 1000000007 AS wide, \
        (i % 977)::numeric AS n, CASE WHEN i % 5 > 0 THEN i::float8 / 8 END AS f, 'x' || i % 13 AS s \
    FROM generate_series(1, 60000) i";

/// Aggregates of all kinds that are merged, of whole tables and groups, and some that are not.
const QUERIES: [&str; 12] = [
    "SELECT count(*), count(f), sum(v), sum(wide), sum(n), avg(n), min(i), max(wide) FROM t",
    "SELECT count(*) FROM t WHERE v < 500 AND s <> 'x3'",
    "SELECT count(*), sum(i), min(s) FROM t WHERE i < 0",
    "SELECT k, count(*), sum(v), avg(v), sum(n), bool_or(v > 990), min(f) FROM t GROUP BY k ORDER BY k",
    "SELECT s, k % 3, sum(wide) FILTER (WHERE v > 10), bit_or(v) FROM t GROUP BY 1, 2 ORDER BY 1, 2",
    "SELECT i / 3, sum(v) FROM t GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 20",
    "SELECT sum(c) FROM (SELECT count(*) AS c FROM t GROUP BY i) q",
    "SELECT a.k, a.c, b.c FROM (SELECT k, count(*) AS c FROM t GROUP BY k) a \
        JOIN (SELECT v % 97 AS k, sum(i) AS c FROM t GROUP BY 1) b USING (k) ORDER BY 1",
    "SELECT (SELECT count(*) FROM t WHERE v = o.v) FROM t o WHERE i < 5 ORDER BY i",
    "SELECT count(DISTINCT k), string_agg(s, ',' ORDER BY i) FILTER (WHERE i < 9) FROM t",
    "SELECT upper(s), variance(v), stddev(n) FROM t GROUP BY 1 ORDER BY 1",
    "SELECT k, count(*) FROM t GROUP BY ROLLUP (k) ORDER BY k LIMIT 3",
];

fn start(name: &str) -> (TempDir, Server) {
    let dir = TempDir::new(name);
    let server = Server::start(dir.path(), &["autovacuum=off"]);
    server.query(TABLE);
    (dir, server)
}

fn rows(client: &mut Client, sql: &str) -> Vec<Vec<Option<String>>> {
    let answer = client.query(sql).expect("the connection holds");
    assert!(answer.error.is_none(), "{sql}: {:?}", answer.error);
    answer.rows
}

fn error(client: &mut Client, sql: &str) -> String {
    let answer = client.query(sql).expect("the connection holds");
    answer.error.map(|e| format!("{e:?}")).unwrap_or_default()
}

/// No helper runs any more.
fn assert_alone(client: &mut Client) {
    let helpers = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'parallel worker'";
    client.await_one(helpers, "0");
}

#[test]
fn helpers_change_no_answer() {
    let (_dir, server) = start("parallel-answers");
    let mut client = Client::connect(server.port).expect("the server takes connections");
    let alone: Vec<_> = QUERIES.iter().map(|sql| rows(&mut client, sql)).collect();
    client.one("SET force_parallel_mode = on");
    for work_mem in ["4MB", "64kB"] {
        client.one(&format!("SET work_mem = '{work_mem}'"));
        for (sql, alone) in QUERIES.iter().zip(&alone) {
            assert_eq!(rows(&mut client, sql), *alone, "{sql}");
        }
    }
    // Rows of one's own transaction, and none of others'.
    client.one("BEGIN");
    client.one("DELETE FROM t WHERE i <= 100");
    server.query("INSERT INTO t SELECT 0, 0, 0 FROM generate_series(1, 5000)");
    client.one("SAVEPOINT s");
    client.one("INSERT INTO t SELECT 0 FROM generate_series(1, 7)");
    let both = client.one("SELECT count(*) FROM t");
    assert_eq!(both, "64907", "60000 - 100 + 5000 + 7");
    client.one("COMMIT");
    client.one("PREPARE p (int) AS SELECT sum(v) FROM t WHERE i > $1");
    let first = client.one("EXECUTE p (50000)");
    assert_eq!(first, client.one("SELECT sum(v) FROM t WHERE i > 50000"));
    assert_alone(&mut client);
    assert!(server.stop());
}

#[test]
fn plans_have_helpers_where_the_work_is_worth_it() {
    let (_dir, server) = start("parallel-plans");
    let mut client = Client::connect(server.port).expect("the server takes connections");
    let mut plan = |sql: &str| {
        let rows = rows(&mut client, &format!("EXPLAIN (COSTS OFF) {sql}"));
        let lines = rows.into_iter().filter_map(|row| row.into_iter().next().flatten());
        lines.collect::<Vec<String>>().join("\n")
    };
    let count = "SELECT count(*) FROM t WHERE v < 5";
    assert!(!plan(count).contains("Gather"), "the table is small");
    plan("SELECT 1");
    server.query("ALTER SYSTEM SET min_parallel_table_scan_size = '64kB'");
    server.query("ALTER SYSTEM SET parallel_setup_cost = 10");
    server.query("SELECT pg_reload_conf()");
    let mut client = Client::connect(server.port).expect("the server takes connections");
    let mut plan = |sql: &str| {
        let rows = rows(&mut client, &format!("EXPLAIN (COSTS OFF) {sql}"));
        let lines = rows.into_iter().filter_map(|row| row.into_iter().next().flatten());
        lines.collect::<Vec<String>>().join("\n")
    };
    assert_eq!(
        plan(count),
        "Finalize Aggregate\n  ->  Gather\n        Workers Planned: 2\n        ->  Partial Aggregate\n              \
         ->  Parallel Seq Scan on t\n                    Filter: (v < 5)"
    );
    for sql in [
        "SELECT count(DISTINCT k) FROM t",
        "SELECT string_agg(s, ',') FROM t",
        "SELECT count(*) FROM t WHERE v < random()",
        "SELECT count(*) FROM t WHERE v = (SELECT max(k) FROM (VALUES (1)) x (k))",
        "SELECT * FROM t",
    ] {
        assert!(!plan(sql).contains("Gather"), "{sql}\n{}", plan(sql));
    }
    assert!(server.stop());
}

#[test]
fn errors_and_cancels_end_the_helpers() {
    let (_dir, server) = start("parallel-errors");
    let mut client = Client::connect(server.port).expect("the server takes connections");
    client.one("SET force_parallel_mode = on");
    for round in 0..20 {
        let divisor = format!("SELECT sum(1 / (i - {})) FROM t", round * 2999 + 1);
        assert!(error(&mut client, &divisor).contains("22012"), "{divisor}");
    }
    client.one("SET statement_timeout = '40ms'");
    for _ in 0..10 {
        let slow = "SELECT count(*) FROM t WHERE length(repeat(s, 100000)) < 0";
        assert!(error(&mut client, slow).contains("57014"));
    }
    client.one("SET statement_timeout = 0");
    assert_eq!(client.one("SELECT count(*) FROM t"), "60000");
    assert_alone(&mut client);
    assert!(server.stop());
}

#[test]
fn many_sessions_share_the_helpers_that_there_may_be() {
    let (_dir, server) = start("parallel-many");
    std::thread::scope(|scope| {
        for _ in 0..40 {
            scope.spawn(|| {
                let mut client =
                    Client::connect(server.port).expect("the server takes connections");
                client.one("SET force_parallel_mode = on");
                client.one("SET max_parallel_workers = 3");
                for _ in 0..3 {
                    assert_eq!(
                        client.one("SELECT sum(c) FROM (SELECT count(*) c FROM t GROUP BY k) q"),
                        "60000"
                    );
                }
            });
        }
    });
    let mut client = Client::connect(server.port).expect("the server takes connections");
    assert_alone(&mut client);
    assert!(server.stop());
}
