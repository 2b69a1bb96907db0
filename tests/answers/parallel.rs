//! Helpers of a statement: the same answers as without them, and nothing of them stays behind.

use crate::support::client::Client;
use crate::support::{Server, TempDir};

const TABLE: &str = "CREATE TABLE t AS SELECT i, i % 97 AS k, i * 7 % 1000 AS v, i::int8 * 1000000007 AS wide, \
        (i % 977)::numeric AS n, CASE WHEN i % 5 > 0 THEN i::float8 / 8 END AS f, 'x' || i % 13 AS s \
    FROM generate_series(1, 60000) i";

/// Aggregates of all kinds that are merged, of whole tables and groups, and some that are not.
const QUERIES: [&str; 35] = [
    "SELECT count(*), count(f), sum(v), sum(wide), sum(n), avg(n), min(i), max(wide) FROM t",
    "SELECT count(*) FROM t WHERE v < 500 AND s <> 'x3'",
    "SELECT count(*), sum(i), min(s) FROM t WHERE i < 0",
    "SELECT k, count(*), sum(v), avg(v), sum(n), bool_or(v > 990), min(f) FROM t GROUP BY k ORDER BY k",
    "SELECT s, k % 3, sum(wide) FILTER (WHERE v > 10), bit_or(v) FROM t GROUP BY 1, 2 ORDER BY 1, 2",
    "SELECT i / 3, sum(v) FROM t GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 20",
    "SELECT sum(c) FROM (SELECT count(*) AS c FROM t GROUP BY i) q",
    "SELECT i % 20011, count(*), sum(v), avg(n), min(s) FROM t GROUP BY 1 ORDER BY 1",
    "SELECT s, v, i % 19 AS r, count(*), sum(wide) FROM t GROUP BY 1, 2, 3 ORDER BY 1, 2, 3",
    "SELECT a.k, a.c, b.c FROM (SELECT k, count(*) AS c FROM t GROUP BY k) a \
        JOIN (SELECT v % 97 AS k, sum(i) AS c FROM t GROUP BY 1) b USING (k) ORDER BY 1",
    "SELECT (SELECT count(*) FROM t WHERE v = o.v) FROM t o WHERE i < 5 ORDER BY i",
    "SELECT count(DISTINCT k), string_agg(s, ',' ORDER BY i) FILTER (WHERE i < 9) FROM t",
    "SELECT upper(s), variance(v), stddev(n) FROM t GROUP BY 1 ORDER BY 1",
    "SELECT k, count(*) FROM t GROUP BY ROLLUP (k) ORDER BY k LIMIT 3",
    "SELECT i, v FROM t WHERE v < 40 ORDER BY v, i",
    "SELECT i, s FROM t ORDER BY s DESC, i",
    "SELECT i, v FROM t ORDER BY v DESC, i LIMIT 13",
    "SELECT DISTINCT k, v % 10 FROM t ORDER BY 1, 2",
    "SELECT count(*), sum(i) FROM (SELECT i FROM t WHERE v < 500 OFFSET 0) q",
    "SELECT count(*), sum(i) FROM (SELECT i FROM t UNION ALL SELECT uk FROM u UNION ALL SELECT wg FROM w) q",
    "SELECT count(*), sum(i) FROM (SELECT i FROM t WHERE v < 600 INTERSECT SELECT ti FROM u) q",
    "SELECT count(*), sum(g), min(us) FROM u WHERE uk BETWEEN 700 AND 9000 OR uk > 29000",
    "SELECT count(*), sum(v), max(k) FROM p WHERE i > 100",
    "SELECT DISTINCT k FROM p WHERE i > 50000 ORDER BY k",
    "SELECT DISTINCT g FROM u WHERE uk BETWEEN 100 AND 400 OR uk > 29900 ORDER BY g",
    "SELECT count(*), sum(v) FROM t WHERE v > (SELECT avg(g) FROM u) AND EXISTS (SELECT FROM w WHERE wg = 7)",
    "SELECT i, sum(n), count(s), max(f) FROM t GROUP BY i HAVING sum(n) > 970 ORDER BY i",
    "SELECT s, i / 2, count(*), avg(wide) FROM t GROUP BY 1, 2 ORDER BY 1, 2 DESC LIMIT 30",
    "SELECT i, k, row_number() OVER w, rank() OVER w, sum(v) OVER w, lag(s, 2, 'none') OVER w FROM t \
        WINDOW w AS (PARTITION BY k ORDER BY v, i) ORDER BY i LIMIT 500",
    "SELECT count(*), sum(a), sum(b), max(c) FROM (SELECT avg(v) OVER (PARTITION BY k ORDER BY i ROWS 5 PRECEDING) AS a, \
        count(*) OVER (PARTITION BY k ORDER BY v RANGE BETWEEN 10 PRECEDING AND CURRENT ROW) AS b, \
        first_value(i) OVER (PARTITION BY k ORDER BY i) AS c FROM t) q",
    "SELECT sum(n) FROM (SELECT row_number() OVER (PARTITION BY i / 2 ORDER BY v) AS n FROM t) q",
    "SELECT sum(n), max(m) FROM (SELECT ntile(4) OVER (PARTITION BY s ORDER BY i) AS n, \
        max(f) OVER (PARTITION BY s ORDER BY i ROWS BETWEEN 3 PRECEDING AND 3 FOLLOWING) AS m FROM t) q",
    "SELECT k, n FROM (SELECT k, row_number() OVER (PARTITION BY k ORDER BY i DESC) AS n FROM t) q WHERE n = 600 ORDER BY k",
    "SELECT sum(x) FROM (SELECT sum(v) OVER (ORDER BY i) AS x FROM t) q",
    "WITH q AS MATERIALIZED (SELECT k, sum(v) AS c FROM t GROUP BY k) \
        SELECT k, c FROM q WHERE c = (SELECT max(c) FROM q) ORDER BY k",
];

/// Tables beside `t`: many rows for some keys, NULLs, one whose keys are few.
const MORE_TABLES: [&str; 8] = [
    "CREATE TABLE u AS SELECT i AS uk, i % 50 AS g, CASE WHEN i % 11 > 0 THEN i * 3 % 70000 END AS ti, \
        'u' || i % 7 AS us FROM generate_series(1, 30000) i",
    "CREATE TABLE w AS SELECT i % 40 AS wg, 'w' || i AS ws FROM generate_series(1, 60) i",
    "CREATE INDEX u_key ON u (uk)",
    "CREATE TABLE p (i int, k int, v int) PARTITION BY HASH (i)",
    "CREATE TABLE p0 PARTITION OF p FOR VALUES WITH (MODULUS 3, REMAINDER 0)",
    "CREATE TABLE p1 PARTITION OF p FOR VALUES WITH (MODULUS 3, REMAINDER 1)",
    "CREATE TABLE p2 PARTITION OF p FOR VALUES WITH (MODULUS 3, REMAINDER 2)",
    "INSERT INTO p SELECT i, k, v FROM t",
];

/// Joins beneath aggregates: of all kinds, in chains, with sides that are pieces, small, none, or too large.
const JOINS: [&str; 20] = [
    "SELECT count(*), sum(t.v), sum(u.g), min(us) FROM t JOIN u ON t.i = u.ti",
    "SELECT count(*), sum(v) FROM t JOIN u ON t.i = u.ti AND t.v > u.g",
    "SELECT count(*), count(uk), sum(uk) FROM t LEFT JOIN u ON t.i = u.ti",
    "SELECT count(*), count(t.i), sum(uk) FROM t RIGHT JOIN u ON t.i = u.ti",
    "SELECT count(*), count(t.i), count(uk) FROM t FULL JOIN u ON t.i = u.ti AND t.k = u.g",
    "SELECT count(*), sum(v) FROM t WHERE i IN (SELECT ti FROM u WHERE g < 30)",
    "SELECT count(*), sum(v) FROM t WHERE NOT EXISTS (SELECT FROM u WHERE u.ti = t.i)",
    "SELECT count(*), sum(uk) FROM u WHERE EXISTS (SELECT FROM t WHERE u.ti = t.i AND v > 500)",
    "SELECT count(*), sum(uk) FROM u WHERE NOT EXISTS (SELECT FROM t WHERE u.ti = t.i AND v > 500)",
    "SELECT ws, count(*), sum(v), max(n) FROM t JOIN u ON t.i = u.ti JOIN w ON w.wg = u.g GROUP BY ws ORDER BY ws",
    "SELECT us, sum(a.v * b.v) FROM t a JOIN u ON a.i = u.ti JOIN t b ON b.i = u.uk WHERE b.k < 50 GROUP BY us ORDER BY us",
    "SELECT count(*), sum(q.c) FROM t JOIN (SELECT g, count(*) AS c FROM u GROUP BY g) q ON t.k = q.g",
    "SELECT count(*) FROM t JOIN u ON t.i = u.ti WHERE u.g > 100",
    "SELECT count(*) FROM t WHERE v < 3 AND k = (SELECT max(g) FROM u WHERE uk = t.i)",
    "SELECT count(*), sum(uk) FROM t JOIN u ON u.uk = t.v WHERE t.i < 40",
    "SELECT g, count(*), sum(v) FROM u JOIN t ON t.i = u.ti WHERE uk BETWEEN 2000 AND 9000 GROUP BY g ORDER BY g",
    "SELECT count(*), sum(uk) FROM u WHERE uk > 17 AND uk % 3 = 0",
    "SELECT uk % 5 AS r, count(*) FROM u JOIN w ON w.wg = u.uk % 64 WHERE uk IN (5, 77, 78, 901) OR uk > 20000 GROUP BY 1 ORDER BY 1",
    "SELECT uk, us FROM u WHERE uk BETWEEN 400 AND 700 ORDER BY us, uk",
    "SELECT k, count(*), sum(ws.c) FROM t LEFT JOIN (SELECT wg, count(*) AS c FROM w GROUP BY 1) ws ON wg = k GROUP BY k ORDER BY k",
];

fn start(name: &str) -> (TempDir, Server) {
    let dir = TempDir::new(name);
    let server = Server::start(dir.path(), &["autovacuum=off"]);
    server.query(TABLE);
    MORE_TABLES.iter().for_each(|sql| drop(server.query(sql)));
    server.query("ANALYZE");
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
    let all = || QUERIES.iter().chain(&JOINS);
    let alone: Vec<_> = all().map(|sql| rows(&mut client, sql)).collect();
    client.one("SET force_parallel_mode = on");
    for (work_mem, workers) in [("4MB", 2), ("64kB", 2), ("4MB", 5), ("1MB", 1)] {
        client.one(&format!("SET work_mem = '{work_mem}'"));
        client.one(&format!("SET max_parallel_workers_per_gather = {workers}"));
        for (sql, alone) in all().zip(&alone) {
            assert_eq!(rows(&mut client, sql), *alone, "{sql} ({work_mem}, {workers} helpers)");
        }
    }
    client.one("SET enable_hashjoin = off");
    for (sql, alone) in all().zip(&alone).filter(|(sql, _)| sql.contains("i < 40")) {
        assert_eq!(rows(&mut client, sql), *alone, "{sql} by nested loops");
    }
    client.one("RESET enable_hashjoin");
    // Groups that outgrow the memory of each thread.
    client.one("SET enable_sort = off");
    for (work_mem, workers) in [("64kB", 2), ("256kB", 1), ("1MB", 3)] {
        client.one(&format!("SET work_mem = '{work_mem}'"));
        client.one(&format!("SET max_parallel_workers_per_gather = {workers}"));
        for (sql, alone) in all().zip(&alone).filter(|(sql, _)| sql.contains("GROUP BY")) {
            assert_eq!(rows(&mut client, sql), *alone, "{sql} (files, {work_mem}, {workers})");
        }
    }
    client.one("RESET enable_sort");
    for sql in
        ["INSERT INTO kept SELECT i, v FROM t WHERE v < 500", "INSERT INTO kept SELECT * FROM kept"]
    {
        client.one("CREATE TABLE IF NOT EXISTS kept (i int, v int)");
        client.one(sql);
    }
    let kept = client.one("SELECT (count(*), sum(i), sum(v))::text FROM kept");
    assert_eq!(
        kept,
        client.one("SELECT (2 * count(*), 2 * sum(i), 2 * sum(v))::text FROM t WHERE v < 500")
    );
    client.one("CREATE TABLE made AS SELECT t.i, u.g FROM t JOIN u ON t.i = u.ti");
    assert_eq!(
        client.one("SELECT count(*) FROM made"),
        alone[QUERIES.len()][0][0].clone().unwrap()
    );
    client.one("BEGIN");
    client.one("DECLARE c CURSOR FOR SELECT i FROM t WHERE v < 900");
    let mut seen = 0;
    while seen < 53_000 {
        let fetched = rows(&mut client, "FETCH 1000 FROM c").len();
        client.one("INSERT INTO t SELECT -1, 0, 0");
        assert_eq!(fetched, 1000);
        seen += fetched;
    }
    assert_eq!(rows(&mut client, "FETCH ALL FROM c").len(), 1000);
    client.one("ROLLBACK");
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
    assert_eq!(
        plan("SELECT count(*) FROM t JOIN u ON t.i = u.ti"),
        "Finalize Aggregate\n  ->  Gather\n        Workers Planned: 2\n        ->  Partial Aggregate\n              \
         ->  Parallel Hash Join\n                    Hash Cond: (t.i = u.ti)\n                    \
         ->  Parallel Seq Scan on t\n                    ->  Parallel Hash\n                          \
         ->  Parallel Seq Scan on u"
    );
    let by_index = plan(
        "SELECT g, count(*) FROM u JOIN t ON t.i = u.ti WHERE uk BETWEEN 2000 AND 9000 GROUP BY g",
    );
    assert!(by_index.contains("Parallel Index Scan using u_key on u"), "{by_index}");
    let in_order = plan("SELECT uk, us FROM u WHERE uk BETWEEN 2000 AND 9000 ORDER BY uk");
    assert!(!in_order.contains("Parallel Index"), "pieces of an index are in no order: {in_order}");
    let window = plan("SELECT k, row_number() OVER (PARTITION BY k ORDER BY i) FROM t");
    assert!(window.starts_with("WindowAgg\n  Workers Planned: 2"), "{window}");
    let whole = plan("SELECT k, row_number() OVER (ORDER BY i) FROM t");
    assert!(!whole.starts_with("WindowAgg\n  Workers Planned"), "one partition: {whole}");
    assert_eq!(
        plan("SELECT count(*) FROM t JOIN w ON t.k = w.wg"),
        "Finalize Aggregate\n  ->  Gather\n        Workers Planned: 2\n        ->  Partial Aggregate\n              \
         ->  Hash Join\n                    Hash Cond: (t.k = w.wg)\n                    \
         ->  Parallel Seq Scan on t\n                    ->  Hash\n                          \
         ->  Seq Scan on w"
    );
    for sql in [
        "SELECT count(DISTINCT k) FROM t",
        "SELECT string_agg(s, ',') FROM t",
        "SELECT count(*) FROM t WHERE v < random()",
        "SELECT count(*) FROM t WHERE v = (SELECT max(g) FROM u WHERE u.uk = t.i)",
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
    for round in 0..20 {
        let on = format!("u.ti = t.i AND 1 / (u.uk - {}) >= 0", round * 1499 + 1);
        let built = format!(
            "SELECT count(*) FROM t JOIN (SELECT 1 / (uk - {round}) AS x, ti FROM u) u ON u.ti = t.i"
        );
        let probed = format!("SELECT count(*) FROM t JOIN u ON {on}");
        assert!(error(&mut client, &probed).contains("22012"), "{probed}");
        let failed = error(&mut client, &built);
        assert!(failed.is_empty() || failed.contains("22012"), "{built}: {failed}");
    }
    client.one("SET statement_timeout = '40ms'");
    for _ in 0..10 {
        let slow = "SELECT count(*) FROM t JOIN (SELECT * FROM u WHERE length(repeat(us, 300000)) > 0) u ON u.ti = t.i";
        assert!(error(&mut client, slow).contains("57014"));
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

#[test]
fn explain_says_what_each_helper_did() {
    let (_dir, server) = start("parallel-explain");
    let mut client = Client::connect(server.port).expect("the server takes connections");
    client.one("SET force_parallel_mode = on");
    let sql = "SELECT count(*) FROM t JOIN u ON t.i = u.ti";
    let explain = format!("EXPLAIN (ANALYZE, VERBOSE, COSTS OFF, TIMING OFF, SUMMARY OFF) {sql}");
    let lines: Vec<String> = rows(&mut client, &explain).into_iter().flatten().flatten().collect();
    let text = lines.join("\n");
    for part in ["Workers Planned: 2", "Workers Launched: 2", "Parallel Hash Join", "loops=3"] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    // What the threads read of a table is all of it.
    let of_scan = |name: &str| {
        let at = lines.iter().position(|l| l.contains(&format!("Parallel Seq Scan on {name} ")));
        let own = lines[at.expect("the scan is shown") + 1..].iter();
        let rows = |line: &String| {
            let (_, rows) = line.trim().strip_prefix("Worker ")?.split_once("rows=")?;
            rows.split(' ').next()?.parse::<u64>().ok()
        };
        own.take_while(|l| !l.contains("->")).filter_map(rows).collect::<Vec<u64>>()
    };
    for (name, all) in [("public.t", 60_000), ("public.u", 30_000)] {
        let by_worker = of_scan(name);
        assert_eq!(by_worker.len(), 2, "{name} in\n{text}");
        assert!(by_worker.iter().sum::<u64>() <= all, "{by_worker:?}");
    }
    let explain = format!("EXPLAIN (ANALYZE, VERBOSE, FORMAT JSON) {sql}");
    let json: Vec<String> = rows(&mut client, &explain).into_iter().flatten().flatten().collect();
    let json = json.join("\n");
    for part in ["\"Parallel Aware\": true", "\"Workers\"", "\"Worker Number\": 1"] {
        assert!(json.contains(part), "{part} in\n{json}");
    }
    assert!(server.stop());
}

#[test]
fn limits_of_memory_are_those_of_the_statement() {
    let (_dir, server) = start("parallel-memory");
    let mut client = Client::connect(server.port).expect("the server takes connections");
    client.one("SET force_parallel_mode = on");
    client.one("SET work_mem = '1GB'");
    client.one("SET session_memory_limit = '24MB'");
    for large in [
        "SELECT count(r) FROM t JOIN (SELECT ti, repeat(us, 5000) || uk AS r FROM u OFFSET 0) u ON t.i = u.ti",
        "SELECT count(DISTINCT r) FROM (SELECT repeat(s, 3000) || i AS r FROM t) q",
        "SELECT i, repeat(s, 3000) AS r FROM t ORDER BY r, i",
    ] {
        let failed = error(&mut client, large);
        assert!(failed.contains("53200"), "{large}: {failed}");
        assert_alone(&mut client);
    }
    // What was given over from helpers is given back.
    client.one("SET session_memory_limit = '200MB'");
    for _ in 0..20 {
        client.one("SELECT count(*) FROM (SELECT i, s FROM t WHERE v < 900 OFFSET 0) q");
    }
    let used = "SELECT coalesce(sum(used_bytes), 0) < 100000000 AND min(used_bytes) > -1000000 \
        FROM pg_stat_session_memory";
    assert_eq!(client.one(used), "t");
    assert!(server.stop());
}

#[test]
fn a_thousand_sessions_that_ask_for_helpers_at_once() {
    let dir = TempDir::new("parallel-thousand");
    let settings = ["autovacuum=off", "max_connections=1100", "max_parallel_workers=4"];
    let server = Server::start(dir.path(), &settings);
    server.query("CREATE TABLE few AS SELECT i, i % 10 AS k FROM generate_series(1, 2000) i");
    let port = server.port;
    let most = std::thread::scope(|scope| {
        let sessions: Vec<_> = (0..1000)
            .map(|n| {
                let session = move || {
                    let mut client = Client::connect(port).expect("the server takes connections");
                    client.one("SET force_parallel_mode = on");
                    let sql = match n % 3 {
                        0 => "SELECT sum(c) FROM (SELECT k, count(*) AS c FROM few GROUP BY k) q",
                        1 => "SELECT count(*) FROM few a JOIN few b ON a.i = b.i",
                        _ => "SELECT count(*) FROM (SELECT i FROM few ORDER BY k, i OFFSET 0) q",
                    };
                    assert_eq!(client.one(sql), "2000");
                };
                let thread = std::thread::Builder::new().stack_size(256 << 10);
                thread.spawn_scoped(scope, session).expect("there are threads enough")
            })
            .collect();
        let mut watcher = Client::connect(port).expect("the server takes connections");
        let mut most = 0;
        while sessions.iter().any(|session| !session.is_finished()) {
            let helpers =
                "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'parallel worker'";
            most = most.max(watcher.one(helpers).parse::<u32>().expect("a number"));
        }
        most
    });
    assert!(most <= 4, "{most} helpers at a time");
    let mut client = Client::connect(port).expect("the server takes connections");
    assert_alone(&mut client);
    assert!(server.stop());
}

#[test]
fn indexes_that_several_threads_sort_hold_all_rows_in_order() {
    let (_dir, server) = start("parallel-index");
    let mut client = Client::connect(server.port).expect("the server takes connections");
    client.one("SET min_parallel_table_scan_size = 0");
    client.one("SET force_parallel_mode = on");
    for memory in ["128MB", "1MB"] {
        client.one(&format!("SET maintenance_work_mem = '{memory}'"));
        client.one("CREATE INDEX t_v_s ON t (v DESC, s)");
        client.one("CREATE UNIQUE INDEX t_i ON t (i)");
        let twice = error(&mut client, "CREATE UNIQUE INDEX t_k ON t (k)");
        assert!(twice.contains("23505"), "{twice}");
        client.one("SET enable_seqscan = off");
        let ordered = "SELECT count(*) FROM (SELECT v, lag(v) OVER (ORDER BY v DESC, s) AS before FROM t) q \
            WHERE before < v";
        assert_eq!(client.one(ordered), "0");
        assert_eq!(client.one("SELECT count(*) FROM t WHERE v >= 0"), "60000");
        assert_eq!(client.one("SELECT count(*) FROM t WHERE i BETWEEN 101 AND 50100"), "50000");
        assert_eq!(client.one("SELECT v FROM t WHERE i = 4711"), "977");
        client.one("RESET enable_seqscan");
        client.one("DROP INDEX t_v_s, t_i");
    }
    assert_alone(&mut client);
    assert!(server.stop());
}

/// Lines for `loaded`: numbers, texts with what has to be escaped, dates, some NULLs.
fn lines(csv: bool, rows: i32) -> Vec<u8> {
    let mut out = String::new();
    for n in 0..rows {
        let (date, nothing) = (n % 28 + 1, if csv { "" } else { "\\N" });
        let number =
            if n % 7 == 0 { nothing.to_owned() } else { format!("{}.{:02}", n * 3, n % 100) };
        let text = match (csv, n % 5) {
            (true, 0) => format!("\"a, \"\"{n}\"\"\nb\""),
            (false, 0) => format!("a\\t{n}\\\\\\\nb"),
            _ => format!("text {n}"),
        };
        let delimiter = if csv { "," } else { "\t" };
        let fields = [n.to_string(), number, text, format!("2024-02-{date:02}")];
        out.push_str(&fields.join(delimiter));
        out.push('\n');
    }
    out.into_bytes()
}

const SUMS: &str = "SELECT concat_ws(' ', count(*), sum(a), sum(b), count(b), md5(string_agg(c, ',' ORDER BY a)), \
    sum(d - date '2024-01-01'), min(e), max(e)) FROM loaded";

#[test]
fn lines_that_helpers_parse_are_loaded_in_order() {
    let dir = TempDir::new("parallel-copy");
    let server = Server::start(dir.path(), &["autovacuum=off"]);
    let mut client = Client::connect(server.port).expect("the server takes connections");
    client.one("CREATE SEQUENCE numbers");
    client.one(
        "CREATE TABLE loaded (a int PRIMARY KEY, b numeric(12, 2), c text, d date, e int8 DEFAULT nextval('numbers'))",
    );
    client
        .one("CREATE TABLE parts (a int, b numeric, c text, d date, e int8) PARTITION BY HASH (a)");
    for n in 0..3 {
        client.one(&format!(
            "CREATE TABLE part{n} PARTITION OF parts FOR VALUES WITH (MODULUS 3, REMAINDER {n})"
        ));
    }
    for csv in [false, true] {
        let (data, format) = (lines(csv, 60_000), if csv { "csv" } else { "text" });
        let mut sums = Vec::new();
        for (mode, helpers) in [("off", 0), ("on", 2), ("on", 1)] {
            client.one(&format!("SET force_parallel_mode = {mode}"));
            client.one(&format!("SET max_parallel_workers_per_gather = {helpers}"));
            client.one("TRUNCATE loaded, parts");
            client.one("ALTER SEQUENCE numbers RESTART");
            let copy = format!("COPY loaded (a, b, c, d) FROM STDIN (FORMAT {format})");
            let answer = client.query_with(&copy, |_| data.clone()).expect("the connection holds");
            assert!(answer.error.is_none(), "{:?}", answer.error);
            assert_eq!(answer.tags, ["COPY 60000"]);
            // Defaults are computed in the order of the lines.
            assert_eq!(client.one("SELECT count(*) FROM loaded WHERE e <> a + 1"), "0");
            sums.push(client.one(SUMS));
            let copy =
                format!("COPY parts (a, b, c, d) FROM STDIN (FORMAT {format}) WHERE a % 3 = 0");
            let answer = client.query_with(&copy, |_| data.clone()).expect("the connection holds");
            assert_eq!(answer.tags, ["COPY 20000"], "{:?}", answer.error);
            let same = "SELECT count(*) FROM parts p JOIN loaded l ON l.a = p.a AND l.c = p.c AND l.d = p.d";
            assert_eq!(client.one(same), "20000");
        }
        assert!(sums.iter().all(|sum| *sum == sums[0]), "{sums:#?}");
    }
    assert_alone(&mut client);
    assert!(server.stop());
}

#[test]
fn errors_of_lines_are_those_of_a_load_without_helpers() {
    let dir = TempDir::new("parallel-copy-errors");
    let server = Server::start(dir.path(), &["autovacuum=off"]);
    let mut client = Client::connect(server.port).expect("the server takes connections");
    client.one("CREATE TABLE loaded (a int PRIMARY KEY, b numeric(12, 2), c text, d date, e int8)");
    client.one("ALTER TABLE loaded ADD CHECK (a <> 41000)");
    let good = lines(false, 40_000);
    let later: [&[u8]; 9] = [
        b"x\t1\tc\t2024-01-01\tmore\n",
        b"40000\t1\tc\t2024-01-01\r\n",
        b"x\t1\tc\t2024-01-01\n",
        b"40000\t1\tc\t2024-13-01\n",
        b"40000\t1\tc\n",
        b"40000\t1\tc\t2024-01-01\tmore\n",
        b"39999\t1\tc\t2024-01-01\n",
        b"41000\t1\tc\t2024-01-01\nx\t1\tc\t2024-01-01\n",
        b"40000\t1\t\xff\t2024-01-01\n",
    ];
    for line in later {
        let mut seen = Vec::new();
        for helpers in [0, 2] {
            client.one("SET force_parallel_mode = on");
            client.one(&format!("SET max_parallel_workers_per_gather = {helpers}"));
            let data = || [&good[..], line, &lines(false, 100)].concat();
            let copy = "COPY loaded (a, b, c, d) FROM STDIN";
            let answer = client.query_with(copy, |_| data()).expect("the connection holds");
            seen.push((answer.error.expect("the line is wrong"), answer.context));
            assert_eq!(client.one("SELECT count(*) FROM loaded"), "0");
        }
        assert_eq!(seen[0], seen[1]);
    }
    client.one("SET max_parallel_workers_per_gather = 2");
    let copy = "COPY loaded (a, b, c, d) FROM STDIN";
    let until_the_end = [&good[..], b"\\.\nand so on\n"].concat();
    let answer = client.query_with(copy, |_| until_the_end.clone()).expect("the connection holds");
    assert_eq!(answer.tags, ["COPY 40000"], "{:?}", answer.error);
    assert_alone(&mut client);
    assert!(server.stop());
}

#[test]
fn vacuum_and_analyze_with_helpers_do_the_same() {
    let (_dir, server) = start("parallel-maintenance");
    let mut client = Client::connect(server.port).expect("the server takes connections");
    client.one("CREATE EXTENSION amcheck");
    client.one("CREATE INDEX t_i ON t (i)");
    client.one("CREATE INDEX t_v ON t (v, s)");
    client.one("CREATE INDEX t_k ON t USING hash (k)");
    client.one("CREATE INDEX t_w ON t (wide)");
    client.one("SET force_parallel_mode = on");
    client.one("SET min_parallel_index_scan_size = 0");
    client.one("SET min_parallel_table_scan_size = 0");
    for (helpers, rest) in [(2, 0), (0, 1), (3, 2)] {
        client.one(&format!("SET max_parallel_maintenance_workers = {helpers}"));
        client.one(&format!("DELETE FROM t WHERE i % 5 = {rest}"));
        client.one("VACUUM t");
        for condition in ["i > 0", "v >= 0", "wide > 0"] {
            client.one("SET enable_seqscan = off");
            let by_index = client.one(&format!("SELECT count(*) FROM t WHERE {condition}"));
            client.one("RESET enable_seqscan");
            assert_eq!(by_index, client.one("SELECT count(*) FROM t"), "{condition}");
        }
        assert_eq!(client.one("SELECT count(*) FROM bt_index_check('t_i'::regclass)"), "1");
        // The sample holds all rows of a small table, whoever draws.
        client.one("SET default_statistics_target = 1000");
        client.one("ANALYZE t");
        let statistics = "SELECT string_agg(concat_ws(' ', attname, null_frac, n_distinct, correlation, \
                length(most_common_vals::text)), ';' ORDER BY attname) FROM pg_stats WHERE tablename = 't'";
        let with = client.one(statistics);
        client.one("SET max_parallel_maintenance_workers = 0");
        client.one("ANALYZE t");
        assert_eq!(client.one(statistics), with);
    }
    for wrong in ["VACUUM (PARALLEL) t", "VACUUM (PARALLEL -1) t", "VACUUM (PARALLEL 1025) t"] {
        assert!(error(&mut client, wrong).contains("42601"), "{wrong}");
    }
    assert!(error(&mut client, "VACUUM (PARALLEL 2, FULL) t").contains("0A000"));
    client.one("VACUUM (PARALLEL 0, FULL) t");
    client.one("VACUUM (PARALLEL 2) t");
    assert_alone(&mut client);
    assert!(server.stop());
}

#[test]
fn a_table_is_created_as_what_helpers_compute() {
    let (_dir, server) = start("parallel-create-as");
    let mut client = Client::connect(server.port).expect("the server takes connections");
    client.one("SET force_parallel_mode = on");
    let query = "SELECT t.i, t.v, u.us FROM t JOIN u ON t.i = u.ti WHERE t.v < 900";
    client.one(&format!("CREATE TABLE made AS {query}"));
    client.one(&format!("CREATE MATERIALIZED VIEW viewed AS {query}"));
    client.one("SET max_parallel_workers_per_gather = 0");
    for name in ["made", "viewed"] {
        let missing = format!("SELECT count(*) FROM ({query} EXCEPT ALL SELECT * FROM {name}) q");
        assert_eq!(client.one(&missing), "0");
        let count =
            format!("SELECT (SELECT count(*) FROM {name}) = (SELECT count(*) FROM ({query}) q)");
        assert_eq!(client.one(&count), "t");
    }
    client.one("SET max_parallel_workers_per_gather = 2");
    let explain =
        format!("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) CREATE TABLE explained AS {query}");
    let lines = rows(&mut client, &explain);
    let launched =
        lines.iter().flatten().flatten().any(|line| line.contains("Workers Launched: 2"));
    assert!(launched, "{lines:?}");
    assert_alone(&mut client);
    assert!(server.stop());
}

#[test]
fn a_foreign_partition_is_read_once() {
    let dir = TempDir::new("parallel-foreign");
    let server = Server::start(dir.path(), &["autovacuum=off"]);
    let mut client = Client::connect(server.port).expect("the server takes connections");
    for sql in [
        "CREATE EXTENSION file_fdw",
        "CREATE SERVER files FOREIGN DATA WRAPPER file_fdw",
        "CREATE TABLE parted (n int) PARTITION BY RANGE (n)",
        "CREATE FOREIGN TABLE low PARTITION OF parted FOR VALUES FROM (0) TO (100) SERVER files OPTIONS (program 'seq 1 9')",
        "CREATE TABLE high PARTITION OF parted FOR VALUES FROM (100) TO (20000)",
        "INSERT INTO high SELECT generate_series(101, 10000)",
        "SET force_parallel_mode = on",
    ] {
        client.one(sql);
    }
    for _ in 0..10 {
        assert_eq!(client.one("SELECT count(*) FROM parted"), "9909");
        let sorted = "SELECT count(*) FROM (SELECT n FROM parted ORDER BY n DESC OFFSET 0) q";
        assert_eq!(client.one(sorted), "9909");
    }
    assert!(server.stop());
}
