//! The cumulative statistics: known work gives exact counts, visible as soon as the statement is
//! answered; the views have PostgreSQL's columns; the log says what was asked of it.

use std::time::{Duration, Instant};

use crate::support::client::Client;
use crate::support::{Oracle, Server, TempDir, psql};

/// Views that PostgreSQL 15 has, too.
const VIEWS: &[&str] = &[
    "pg_locks",
    "pg_stat_activity",
    "pg_stat_all_indexes",
    "pg_stat_all_tables",
    "pg_stat_archiver",
    "pg_stat_bgwriter",
    "pg_stat_database",
    "pg_stat_database_conflicts",
    "pg_stat_gssapi",
    "pg_stat_progress_analyze",
    "pg_stat_progress_basebackup",
    "pg_stat_progress_cluster",
    "pg_stat_progress_copy",
    "pg_stat_progress_create_index",
    "pg_stat_progress_vacuum",
    "pg_stat_recovery_prefetch",
    "pg_stat_replication",
    "pg_stat_replication_slots",
    "pg_stat_slru",
    "pg_stat_ssl",
    "pg_stat_subscription",
    "pg_stat_subscription_stats",
    "pg_stat_sys_indexes",
    "pg_stat_sys_tables",
    "pg_stat_user_functions",
    "pg_stat_user_indexes",
    "pg_stat_user_tables",
    "pg_stat_wal",
    "pg_stat_wal_receiver",
    "pg_stat_xact_all_tables",
    "pg_stat_xact_sys_tables",
    "pg_stat_xact_user_functions",
    "pg_stat_xact_user_tables",
    "pg_statio_all_indexes",
    "pg_statio_all_sequences",
    "pg_statio_all_tables",
    "pg_statio_sys_indexes",
    "pg_statio_sys_sequences",
    "pg_statio_sys_tables",
    "pg_statio_user_indexes",
    "pg_statio_user_sequences",
    "pg_statio_user_tables",
    "pg_stat_get_activity(NULL)",
    "pg_lock_status()",
    "pg_stat_get_archiver()",
    "pg_stat_get_slru()",
    "pg_stat_get_wal()",
    "pg_ls_waldir()",
];

/// A query's rows, each as its columns with a bar between them.
fn rows(client: &mut Client, sql: &str) -> Vec<String> {
    let answer = client.query(sql).expect("the connection stays");
    assert_eq!(answer.error, None, "{sql}");
    let text = |row: Vec<Option<String>>| {
        row.into_iter().map(Option::unwrap_or_default).collect::<Vec<_>>().join("|")
    };
    answer.rows.into_iter().map(text).collect()
}

fn one(client: &mut Client, sql: &str) -> String {
    rows(client, sql).join("\n")
}

fn fails(client: &mut Client, sql: &str, code: &str) {
    let answer = client.query(sql).expect("the connection stays");
    assert_eq!(answer.error.map(|e| e.0).as_deref(), Some(code), "{sql}");
}

const TRANSACTIONS: &str =
    "SELECT xact_commit, xact_rollback FROM pg_stat_database WHERE datname = 'postgres'";

fn transactions(client: &mut Client) -> (i64, i64) {
    let row = one(client, TRANSACTIONS);
    let (commits, rollbacks) = row.split_once('|').expect("two columns");
    (commits.parse().expect("a number"), rollbacks.parse().expect("a number"))
}

#[test]
fn known_work_gives_exact_counts() {
    let dir = TempDir::new("statistics");
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut work = Client::connect(server.port).expect("the server takes connections");
    let mut look = Client::connect(server.port).expect("the server takes connections");
    rows(&mut look, "SELECT 1");
    let before = transactions(&mut look);
    for sql in [
        "CREATE TABLE t (id int PRIMARY KEY, v int)",
        "INSERT INTO t SELECT g, 0 FROM generate_series(1, 100) g",
        "UPDATE t SET v = 1 WHERE id = 5",
        "DELETE FROM t WHERE id = 7",
        "SELECT v FROM t WHERE id = 9",
        "SELECT count(*) FROM t",
        "BEGIN",
        "INSERT INTO t VALUES (1000, 1)",
        "UPDATE t SET v = 2 WHERE id = 11",
        "ROLLBACK",
        "BEGIN",
        "INSERT INTO t VALUES (1001, 1)",
        "SAVEPOINT s",
        "INSERT INTO t VALUES (1002, 1)",
        "ROLLBACK TO s",
        "COMMIT",
    ] {
        rows(&mut work, sql);
    }
    fails(&mut work, "SELECT 1 / 0", "22012");
    fails(&mut work, "SELEC", "42601");
    let after = transactions(&mut look);
    // The first look is a transaction that the second one sees.
    assert_eq!((after.0 - before.0, after.1 - before.1), (7 + 1, 1 + 2));
    let table = "SELECT seq_scan, seq_tup_read, idx_scan, idx_tup_fetch, n_tup_ins, n_tup_upd, \
                 n_tup_del, n_tup_hot_upd, n_live_tup, n_dead_tup, n_mod_since_analyze \
                 FROM pg_stat_user_tables WHERE relname = 't'";
    assert_eq!(one(&mut look, table), "1|99|4|4|103|2|1|2|100|5|103");
    let index = "SELECT idx_scan, idx_tup_read, idx_tup_fetch FROM pg_stat_user_indexes \
                 WHERE indexrelname = 't_pkey'";
    assert_eq!(one(&mut look, index), "4|4|4");
    let pages = "SELECT heap_blks_hit > 5, heap_blks_read, idx_blks_hit > 100 \
                 FROM pg_statio_user_tables WHERE relname = 't'";
    assert_eq!(one(&mut look, pages), "t|0|t");
    let functions = "SELECT pg_stat_get_numscans('t_pkey'::regclass), \
                     pg_stat_get_tuples_inserted('t'::regclass), \
                     pg_stat_get_db_tuples_deleted(5), pg_stat_get_live_tuples('t'::regclass)";
    assert_eq!(one(&mut look, functions), "4|103|1|100");

    rows(&mut work, "ANALYZE t");
    rows(&mut work, "VACUUM t");
    let counts = "SELECT n_live_tup, n_dead_tup, n_mod_since_analyze, vacuum_count, \
                  analyze_count, last_vacuum IS NULL, last_analyze IS NULL \
                  FROM pg_stat_user_tables WHERE relname = 't'";
    assert_eq!(one(&mut look, counts), "100|0|0|1|1|f|f");
    rows(&mut work, "SELECT pg_stat_reset()");
    assert_eq!(one(&mut look, index), "0|0|0");
    assert!(server.stop());
}

#[test]
fn statements_are_known_without_their_constants() {
    let dir = TempDir::new("statistics-statements");
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut client = Client::connect(server.port).expect("the server takes connections");
    rows(&mut client, "CREATE TABLE t (id int PRIMARY KEY, v int)");
    rows(&mut client, "INSERT INTO t SELECT g, 0 FROM generate_series(1, 10) g");
    rows(&mut client, "SELECT pg_stat_statements_reset()");
    for n in 1..=20 {
        rows(&mut client, &format!("SELECT v FROM t WHERE id = {n}"));
    }
    rows(&mut client, "select v\nfrom t where id = 3 -- as before");
    rows(&mut client, "PREPARE p AS SELECT v FROM t WHERE id = $1");
    rows(&mut client, "EXECUTE p(4)");
    rows(&mut client, "UPDATE t SET v = v + 1");
    let find = |text: &str| {
        format!(
            "SELECT calls, rows, query FROM pg_stat_statements WHERE query LIKE '{text}%' \
             ORDER BY query"
        )
    };
    let select = one(&mut client, &find("SELECT v FROM"));
    assert_eq!(select, "22|12|SELECT v FROM t WHERE id = $1");
    assert_eq!(one(&mut client, &find("UPDATE")), "1|10|UPDATE t SET v = v + $1");
    assert_eq!(one(&mut client, &find("PREPARE")).split('|').next(), Some("1"));
    let sane = "SELECT bool_and(min_exec_time <= mean_exec_time AND mean_exec_time <= max_exec_time \
                AND total_exec_time > 0), bool_or(wal_records >= 10 AND wal_bytes > 100) \
                FROM pg_stat_statements WHERE query LIKE '%t SET%' OR query LIKE '%FROM t %'";
    assert_eq!(one(&mut client, sane), "t|t");
    let id = "SELECT query_id IS NOT NULL FROM pg_stat_activity WHERE pid = pg_backend_pid()";
    assert_eq!(one(&mut client, id), "t");
    rows(&mut client, "SET compute_query_id = off");
    assert_eq!(one(&mut client, id), "f");
    assert!(server.stop());
}

#[test]
fn plans_are_counted_with_their_times_where_that_is_asked_for() {
    let dir = TempDir::new("statistics-planning");
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut client = Client::connect(server.port).expect("the server takes connections");
    rows(&mut client, "CREATE TABLE t AS SELECT g AS id, 0 AS v FROM generate_series(1, 10) g");
    rows(&mut client, "SELECT v FROM t WHERE id < 3");
    let plans = |what: &str| {
        format!(
            "SELECT plans, total_plan_time FROM pg_stat_statements WHERE query LIKE 'SELECT {what}'"
        )
    };
    assert_eq!(one(&mut client, &plans("v FROM%")), "0|0");
    rows(&mut client, "SET pg_stat_statements.track_planning = on");
    for n in 1..=20 {
        rows(&mut client, &format!("SELECT v + 1 FROM t WHERE id = {n}"));
    }
    // Twenty texts share a plan, beside a few that were made to see whether it is good for all.
    let sane = "SELECT plans BETWEEN 1 AND 10, calls, total_plan_time > 0, min_plan_time > 0, \
                min_plan_time <= mean_plan_time AND mean_plan_time <= max_plan_time, \
                abs(mean_plan_time * plans - total_plan_time) < 1e-6, stddev_plan_time >= 0 \
                FROM pg_stat_statements WHERE query LIKE 'SELECT v + $1%'";
    assert_eq!(one(&mut client, sane), "t|20|t|t|t|t|t");
    // A definition that changes has it planned anew.
    let plan = "SELECT plans FROM pg_stat_statements WHERE query LIKE 'SELECT v + $1%'";
    let before: u32 = one(&mut client, plan).parse().expect("a number");
    rows(&mut client, "CREATE INDEX ON t (id)");
    rows(&mut client, "SELECT v + 1 FROM t WHERE id = 1");
    let after: u32 = one(&mut client, plan).parse().expect("a number");
    assert!(after > before, "{after} after {before}");
    assert!(server.stop());
}

/// Workers count what has just run apart, and add it up when something else runs or somebody looks.
#[test]
fn a_look_misses_no_statement() {
    let dir = TempDir::new("statistics-noted");
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut client = Client::connect(server.port).expect("the server takes connections");
    rows(&mut client, "CREATE TABLE t AS SELECT 1 AS v");
    rows(&mut client, "SELECT pg_stat_statements_reset()");
    let calls = "SELECT calls, rows FROM pg_stat_statements WHERE query LIKE 'SELECT _1 AS many'";
    let hits = "SELECT blks_hit FROM pg_stat_database WHERE datname = 'postgres'";
    for (more, all) in [(1, 1), (2, 3), (500, 503), (20, 523)] {
        let many = "SELECT 1 AS many;".repeat(more);
        let text = format!("{many} {calls}; {hits}; SELECT v FROM t; {hits}");
        let answer = rows(&mut client, &text);
        let [counted, before, _, after] = &answer[more..] else { panic!("{answer:?}") };
        assert_eq!(*counted, format!("{all}|{all}"));
        let [before, after] = [before, after].map(|n| n.parse::<u64>().expect("a number"));
        assert!(after > before, "{after} after {before}");
    }
    // More statements than have a place.
    let one_to = |n: usize| format!("SELECT {};", vec!["1"; n].join(", "));
    let twice: String = (1..=300).chain(1..=300).map(one_to).collect();
    rows(&mut client, &twice);
    let calls = "SELECT count(*), min(calls), max(calls), sum(rows) FROM pg_stat_statements \
                 WHERE query ~ '^SELECT .1(, .[0-9]+)*$'";
    assert_eq!(one(&mut client, calls), "300|2|2|600");
    rows(&mut client, "SELECT pg_stat_statements_reset()");
    rows(&mut client, &twice);
    assert_eq!(one(&mut client, calls), "300|2|2|600");
    assert!(server.stop());
}

#[test]
fn views_have_postgresqls_columns() {
    let dir = TempDir::new("statistics-views");
    let server = Server::start(&dir.path().join("data"), &[]);
    let oracle = Oracle::start();
    let head = |port: u16, view: &str| {
        let text = psql(port, &["-Aq"], &format!("SELECT * FROM {view} LIMIT 0"));
        text.lines().next().unwrap_or_default().to_owned()
    };
    for view in VIEWS {
        let theirs = head(oracle.port, view);
        assert!(!theirs.contains("ERROR"), "{view}: {theirs}");
        assert_eq!(head(server.port, view), theirs, "{view}");
    }
    let ours = [
        "pg_stat_io",
        "pg_stat_statements",
        "pg_stat_statements_info",
        "pg_wait_sampling_get_current(pg_backend_pid())",
        "pg_wait_sampling_get_history()",
        "pg_wait_sampling_get_profile()",
    ];
    for view in VIEWS.iter().chain(&ours) {
        let text = server.psql(&["-Atq"], &format!("SELECT * FROM {view}"));
        assert!(!text.contains("ERROR"), "{view}: {text}");
    }
    assert!(server.stop());
}

#[test]
fn statistics_of_tables_outlive_the_server() {
    let dir = TempDir::new("outlive");
    let data = dir.path().join("data");
    let counts =
        "SELECT n_tup_ins, n_tup_upd, n_live_tup, n_dead_tup, n_mod_since_analyze, analyze_count,
                         last_analyze IS NULL FROM pg_stat_user_tables WHERE relname = 'kept'";
    let server = Server::start(&data, &["autovacuum=off"]);
    server.query(
        "CREATE TABLE nothing (a int); ANALYZE nothing;
         CREATE TABLE kept (a int); INSERT INTO kept SELECT generate_series(1, 100); ANALYZE kept;
         UPDATE kept SET a = 0 WHERE a <= 10",
    );
    assert_eq!(server.query(counts), "100|10|100|10|10|1|f");
    assert!(server.stop());
    let server = Server::start(&data, &["autovacuum=off"]);
    assert_eq!(server.query(counts), "100|10|100|10|10|1|f");
    server.kill();
    // The file of the last clean stop is still there after a crash.
    let server = Server::start(&data, &["autovacuum=off"]);
    assert_eq!(server.query(counts), "100|10|100|10|10|1|f");
    assert!(server.stop());
    std::fs::write(data.join("threadgres.stats"), "nonsense").expect("the directory is writable");
    let server = Server::start(&data, &["autovacuum=off"]);
    assert_eq!(server.query(counts), "0|0|0|0|0|0|t");
    let none = "SELECT reltuples, relpages FROM pg_class WHERE relname = 'nothing'";
    assert_eq!(server.query(none), "0|0");
}

#[test]
fn what_vacuum_found_outlives_the_server() {
    let dir = TempDir::new("maps");
    let data = dir.path().join("data");
    let settings = ["autovacuum=off"];
    let mut server = Server::start(&data, &settings);
    server.query(
        "CREATE TABLE seen (a int PRIMARY KEY, b text); INSERT INTO seen SELECT n, repeat('x', 200) FROM generate_series(1, 5000) n",
    );
    server.query("VACUUM ANALYZE seen");
    server.query("CHECKPOINT");
    let plan = "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT count(a) FROM seen";
    for ends_by_itself in [false, true, false] {
        match ends_by_itself {
            true => assert!(server.stop()),
            false => server.kill(),
        }
        server = Server::start(&data, &settings);
        let plan = server.query(plan);
        assert!(plan.contains("Index Only Scan") && plan.contains("Heap Fetches: 0"), "{plan}");
    }
    // Pages that change lose it, whatever the checkpoint before says.
    server.query("UPDATE seen SET b = 'y' WHERE a <= 20");
    server.kill();
    let server = Server::start(&data, &settings);
    let plan = server.query(plan);
    assert!(!plan.contains("Heap Fetches: 0"), "{plan}");
    assert_eq!(
        server.query("SELECT count(*), count(*) FILTER (WHERE b = 'y') FROM seen"),
        "5000|20"
    );
}

#[test]
fn background_threads_and_transactions_are_shown() {
    let dir = TempDir::new("statistics-activity");
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut client = Client::connect(server.port).expect("the server takes connections");
    let kinds = rows(&mut client, "SELECT backend_type FROM pg_stat_activity WHERE pid > 0");
    for kind in ["client backend", "checkpointer", "background writer", "walwriter"] {
        assert!(kinds.iter().any(|k| k == kind), "{kind} in {kinds:?}");
    }
    let numbers = "SELECT count(*) = count(DISTINCT pid) FROM pg_stat_activity";
    assert_eq!(one(&mut client, numbers), "t");
    rows(&mut client, "CREATE TABLE t (id int)");
    rows(&mut client, "BEGIN");
    rows(&mut client, "INSERT INTO t VALUES (1)");
    let locks = "SELECT locktype, mode, granted, fastpath FROM pg_locks \
                 WHERE pid = pg_backend_pid() AND relation IS DISTINCT FROM 12073 ORDER BY 1";
    assert_eq!(
        rows(&mut client, locks),
        [
            "relation|RowExclusiveLock|t|t",
            "transactionid|ExclusiveLock|t|f",
            "virtualxid|ExclusiveLock|t|t"
        ]
    );
    let ids = "SELECT backend_xid IS NULL, backend_xmin IS NULL, usename, leader_pid IS NULL \
               FROM pg_stat_activity WHERE pid = pg_backend_pid()";
    assert_eq!(one(&mut client, ids), "f|f|postgres|t");
    let address = "SELECT client_addr << '127.0.0.0/8', client_addr = inet_client_addr(), \
                   pg_stat_get_backend_client_addr(pid) <> '10.0.0.1' \
                   FROM pg_stat_activity WHERE pid = pg_backend_pid()";
    assert_eq!(one(&mut client, address), "t|t|t");
    let file = "SELECT count(*) FROM pg_ls_waldir() \
                WHERE name = pg_walfile_name(pg_current_wal_lsn())";
    assert_eq!(one(&mut client, file), "1");
    assert!(server.stop());
}

#[test]
fn the_log_says_what_was_asked_of_it() {
    let dir = TempDir::new("statistics-log");
    let data = dir.path().join("data");
    let server = Server::start(&data, &[]);
    let log = || std::fs::read_to_string(data.with_extension("log")).expect("the log is there");
    let mut a = Client::connect(server.port).expect("the server takes connections");
    let mut b = Client::connect(server.port).expect("the server takes connections");
    let mut look = Client::connect(server.port).expect("the server takes connections");
    rows(&mut a, "SET log_statement = 'mod'");
    rows(&mut a, "CREATE TABLE t (id int PRIMARY KEY, v int)");
    rows(&mut a, "INSERT INTO t VALUES (1, 0), (2, 0)");
    rows(&mut a, "SELECT 41 + 1");
    rows(&mut a, "SET log_min_duration_statement = 0");
    rows(&mut a, "SELECT 43 + 1");
    rows(&mut a, "RESET log_min_duration_statement");
    let text = log();
    assert!(text.contains("LOG:  statement: INSERT INTO t VALUES (1, 0), (2, 0)"), "{text}");
    assert!(!text.contains("41 + 1"), "{text}");
    assert!(text.contains(" ms  statement: SELECT 43 + 1"), "{text}");

    for client in [&mut a, &mut b] {
        rows(client, "SET log_lock_waits = on");
        rows(client, "SET deadlock_timeout = '20ms'");
        rows(client, "BEGIN");
    }
    rows(&mut a, "UPDATE t SET v = 1 WHERE id = 1");
    rows(&mut b, "UPDATE t SET v = 1 WHERE id = 2");
    let waiter = std::thread::spawn(move || {
        let answer = a.query("UPDATE t SET v = 2 WHERE id = 2").expect("the connection stays");
        answer.error.map(|e| e.0)
    });
    let until = Instant::now() + Duration::from_secs(60);
    let waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND waitstart IS NOT NULL";
    while one(&mut look, waiting) != "1" {
        assert!(Instant::now() < until, "nobody waits");
    }
    let answer = b.query("UPDATE t SET v = 2 WHERE id = 1").expect("the connection stays");
    let second = answer.error.map(|e| e.0);
    // Who failed is rolled back, which lets the other one go on.
    let first = waiter.join().expect("the waiter returns");
    assert_eq!([&first, &second].iter().filter(|e| e.as_deref() == Some("40P01")).count(), 1);
    let text = log();
    assert!(text.contains("ERROR:  deadlock detected\n\tDETAIL:  Process "), "{text}");
    assert!(text.contains(": UPDATE t SET v = 2 WHERE id = 1\n"), "{text}");
    assert!(text.contains(": UPDATE t SET v = 2 WHERE id = 2\n"), "{text}");
    assert!(
        text.contains(" detected deadlock while waiting for ShareLock on transaction"),
        "{text}"
    );
    assert!(text.contains("holding the lock: "), "{text}");
    let deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = 'postgres'";
    assert_eq!(one(&mut look, deadlocks), "1");
    assert!(server.stop());
}

#[test]
fn verbose_says_what_was_done() {
    let dir = TempDir::new("verbose");
    let server = Server::start(dir.path(), &[]);
    server.query("CREATE TABLE rows (a int PRIMARY KEY, b text)");
    server.query("INSERT INTO rows SELECT g, repeat('x', 100) FROM generate_series(1, 1000) g");
    server.query("DELETE FROM rows WHERE a <= 500");
    let says = |statement: &str, lines: &[&str]| {
        let said = server.psql(&["-qAt"], statement);
        for line in lines {
            assert!(said.lines().any(|l| l.contains(line)), "{statement}: no {line:?} in\n{said}");
        }
    };
    let first = [
        "INFO:  vacuuming \"postgres.public.rows\"",
        "INFO:  finished vacuuming \"postgres.public.rows\": index scans: 1",
        "pages: 0 removed, 18 remain, 18 scanned (100.00% of total)",
        "tuples: 500 removed, 500 remain, 0 are dead but not yet removable",
        "removable cutoff: ",
        "index scan needed: 9 pages from table (50.00% of total) had 500 dead item identifiers",
        "index \"rows_pkey\": pages: ",
        "avg read rate: ",
        "buffer usage: ",
        "WAL usage: ",
        "system usage: CPU: user: ",
    ];
    says("VACUUM VERBOSE rows;", &first);
    let not_needed = "index scan not needed: 0 pages from table (0.00% of total) had 0 dead item";
    says("VACUUM VERBOSE rows;", &["index scans: 0", not_needed]);
    let sampled = "INFO:  \"rows\": scanned 18 of 18 pages";
    says("ANALYZE VERBOSE rows;", &["INFO:  analyzing \"public.rows\"", sampled]);
    let full = [
        "INFO:  vacuuming \"public.rows\"",
        "INFO:  \"public.rows\": found 0 removable, 500 nonremovable row versions in 18 pages",
        "DETAIL:  0 dead row versions cannot be removed yet.",
        "CPU: user: ",
    ];
    says("VACUUM (FULL, VERBOSE) rows;", &full);
    server.query("DELETE FROM rows WHERE a % 2 = 0");
    let clustered = [
        "INFO:  clustering \"public.rows\" using sequential scan and sort",
        "INFO:  \"public.rows\": found 250 removable, 250 nonremovable row versions in 9 pages",
    ];
    says("CLUSTER VERBOSE rows USING rows_pkey;", &clustered);
    let built = ["INFO:  index \"rows_pkey\" was reindexed", "DETAIL:  CPU: user: "];
    says("REINDEX (VERBOSE) TABLE rows;", &built);
    says("CLUSTER (nosuch) rows;", &["unrecognized CLUSTER option \"nosuch\""]);
}

#[test]
fn values_that_analyze_kept_tell_how_many_rows_a_condition_leaves() {
    let dir = TempDir::new("statistics-estimates");
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut client = Client::connect(server.port).expect("the server takes connections");
    rows(
        &mut client,
        "CREATE TABLE t AS
         SELECT ('k' || g % 4)::char(10) AS c, (g % 4)::numeric(10,2) AS n, 't' || g % 4 AS t, g % 4 AS i,
                CASE WHEN g % 10 < 5 THEN g % 10 = 0 END AS b
         FROM generate_series(1, 1000) g",
    );
    rows(&mut client, "ANALYZE t");
    for (condition, estimate) in [
        // Equal values whose texts differ.
        ("c = 'k1'", 250),
        ("c = 'k1  '", 250),
        ("n = 1", 250),
        ("n = 1.0", 250),
        ("c <> 'k1'", 750),
        ("n <> 1", 750),
        ("i <> 1", 750),
        ("1 <> i", 750),
        ("i <> 9", 1000),
        ("t LIKE 't1%'", 250),
        ("t LIKE 'u%'", 1),
        // Half of the rows have no answer.
        ("b", 100),
        ("NOT b", 400),
        ("b <> true", 400),
        ("NOT (b = true)", 400),
    ] {
        let plan = rows(&mut client, &format!("EXPLAIN SELECT * FROM t WHERE {condition}"));
        assert!(plan[0].contains(&format!("rows={estimate} ")), "{condition}: {plan:?}");
    }
    assert!(server.stop());
}
