//! Memory limits: a statement beyond its session's or the server's ends with an error that says what
//! used the memory; the session lives on, and others notice nothing.

use crate::support::raw::Raw;
use crate::support::{Server, TempDir};

/// Needs some 60 MB for its groups.
const HUNGRY: &str = "SELECT count(*) FROM (SELECT DISTINCT g || repeat('x', 200) \
                      FROM generate_series(1, 200000) g) s";

fn held(server: &Server) -> i64 {
    let sum = "SELECT sum(used_bytes) FROM pg_stat_session_memory WHERE pid <> pg_backend_pid()";
    server.query(sum).parse().expect("a number of bytes")
}

#[test]
fn a_statement_over_its_sessions_limit_ends_and_the_session_lives() {
    let dir = TempDir::new("memory");
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut other = Raw::connect(server.port);
    let mut session = Raw::connect(server.port);
    assert!(session.query(HUNGRY).contains(&"D 200000".to_owned()));
    session.query("SET session_memory_limit = '16MB'; CREATE TABLE kept AS SELECT 1 AS n");
    let before = held(&server);
    for _ in 0..3 {
        let answer = session.query(HUNGRY);
        assert!(answer.iter().any(|l| l == "E ERROR 53200 out of memory"), "{answer:?}");
        assert!(answer.contains(&"Z I".to_owned()), "{answer:?}");
        assert!(session.query("SELECT n FROM kept").contains(&"D 1".to_owned()));
        assert!(other.query("SELECT n FROM kept").contains(&"D 1".to_owned()));
    }
    let detail = server.psql(
        &["-v", "VERBOSITY=verbose"],
        &format!(
            "SET session_memory_limit = '16MB';\n{HUNGRY};\nSELECT used_bytes < peak_bytes AND \
         peak_bytes > limit_bytes FROM pg_stat_session_memory WHERE pid = pg_backend_pid();"
        ),
    );
    assert!(
        detail.contains("DETAIL:  The session holds") && detail.contains("hash tables"),
        "{detail}"
    );
    assert!(
        detail.contains("session_memory_limit is 16 MB") && detail.contains(" t\n"),
        "{detail}"
    );
    assert!(held(&server) < before + (1 << 20), "what the failed statements took is given back");
}

#[test]
fn an_indexs_keys_go_to_files_beyond_maintenance_work_mem() {
    let dir = TempDir::new("memory-index");
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut session = Raw::connect(server.port);
    let has = |answer: &[String], line: &str| answer.iter().any(|l| l.starts_with(line));
    let answer = session.query(
        "CREATE TABLE t AS SELECT g AS n, (g::bigint * 7919) % 300000 || ' of the keys, rather long ones' AS k \
         FROM generate_series(1, 300000) g; SET session_memory_limit = '16MB'",
    );
    assert!(!has(&answer, "E "), "{answer:?}");
    let answer = session.query("CREATE UNIQUE INDEX t_k ON t (k)");
    assert!(has(&answer, "E ERROR 53200"), "held in memory by default: {answer:?}");
    session.query("SET maintenance_work_mem = '4MB'");
    for definition in ["UNIQUE INDEX t_k ON t (k)", "INDEX t_n ON t (lower(k), n) WHERE n % 2 = 0"]
    {
        let answer = session.query(&format!("CREATE {definition}"));
        assert!(!has(&answer, "E "), "{definition}: {answer:?}");
    }
    session
        .query("RESET session_memory_limit; SET enable_seqscan = off; SET enable_bitmapscan = off");
    let count = "SELECT count(*), sum(n), count(DISTINCT k) FROM t WHERE k >= '0'";
    assert!(has(&session.query(count), "D 300000|45000150000|300000"));
    let count = "SELECT count(*), sum(n) FROM t WHERE lower(k) >= '0' AND n % 2 = 0";
    assert!(has(&session.query(count), "D 150000|22500150000"));
    let files = "SELECT temp_files >= 2 FROM pg_stat_database WHERE datname = 'postgres'";
    assert!(has(&session.query(files), "D t"));
    session.query("DROP INDEX t_k; INSERT INTO t VALUES (0, '7 of the keys, rather long ones')");
    let answer = session.query("CREATE UNIQUE INDEX t_twice ON t (k)");
    assert!(has(&answer, "E ERROR 23505"), "{answer:?}");
    assert!(server.stop());
}

#[test]
fn the_servers_limit_falls_on_those_who_hold_most() {
    let dir = TempDir::new("memory-server");
    let server = Server::start(&dir.path().join("data"), &["server_memory_limit=40MB"]);
    let mut small = Raw::connect(server.port);
    small.query("BEGIN; DECLARE c CURSOR WITH HOLD FOR SELECT g FROM generate_series(1, 1000) g");
    let mut large = Raw::connect(server.port);
    let answer = large.query(HUNGRY);
    assert!(answer.iter().any(|l| l == "E ERROR 53200 out of memory"), "{answer:?}");
    let committed = small.query("COMMIT");
    assert_eq!(committed, ["C COMMIT", "Z I"]);
    let fetched = small.query("FETCH ALL c");
    assert_eq!(fetched.len(), 1003, "{:?}", fetched.first());
    assert!(large.query("SELECT 1").contains(&"D 1".to_owned()));
    let view = "SELECT shared_buffers_bytes > 0, sessions_bytes < limit_bytes, limit_bytes \
                FROM pg_stat_server_memory";
    assert_eq!(server.query(view), "t|t|41943040");
}

/// Statements that take as much as they are given.
const HOGS: &[&str] = &[
    "SELECT count(*) FROM jsonb_path_query(('[' || repeat('[', 300) || repeat(']', 300) || ']')::jsonb, '$.**.**.**.**')",
    "SELECT array_agg(a) IS NULL FROM (SELECT array_fill(1, ARRAY[1000000]) a FROM generate_series(1, 1000)) s",
    "SELECT regexp_replace(repeat('a', 10000000), 'a', repeat('b', 1000), 'g') IS NULL",
    "SELECT array_length(array_fill(NULL::int, ARRAY[134217727]), 1)",
    "SELECT length(repeat('abc', 300000000))",
    "SELECT length(lpad('x', 260000000, 'ab') || repeat('x', 300000000))",
    "SELECT length(format('%1000000000s', 'a'))",
    "SELECT length(string_agg(repeat('x', 1000000), ',')) FROM generate_series(1, 1000)",
    "SELECT length(json_agg(repeat('x', 1000000))::text) FROM generate_series(1, 1000)",
    "SELECT jsonb_array_length(jsonb_agg(g)) FROM generate_series(1, 30000000) g",
    "SELECT length(to_json(array_fill(1, ARRAY[30000000]))::text)",
    "SELECT length(jsonb_build_array(VARIADIC array_fill(1, ARRAY[20000000]))::text)",
    "SELECT cardinality(string_to_array(repeat('a,', 50000000), ','))",
    "SELECT cardinality(regexp_split_to_array(repeat('a,', 30000000), ','))",
    "SELECT count(*) FROM regexp_matches(repeat('a', 10000000), 'a', 'g')",
    "SELECT count(*) FROM unnest(array_fill(1, ARRAY[50000000]))",
    "SELECT length(replace(repeat('a', 100000), 'a', repeat('b', 10000)))",
    "SELECT length(encode(repeat('x', 400000000)::bytea, 'base64'))",
    "SELECT length(upper(repeat('x', 600000000)))",
    "SELECT length(array_to_string(array_fill(12345678, ARRAY[100000000]), ','))",
    "SELECT cardinality(array_cat(array_fill(1, ARRAY[40000000]), array_fill(1, ARRAY[40000000])))",
    "SELECT jsonb_array_length(('[' || repeat('1,', 30000000) || '1]')::jsonb)",
    "SELECT count(*) FROM json_array_elements(('[' || repeat('1,', 20000000) || '1]')::json)",
    "SELECT length(string_agg(g::text, '')) FROM generate_series(1, 100000000) g",
    "SELECT array_length(array_agg(g), 1) FROM generate_series(1, 50000000) g",
    "SELECT count(*) FROM (SELECT DISTINCT g || repeat('x', 200) FROM generate_series(1, 5000000) g) s",
    "SELECT count(*) FROM generate_series(1, 10000000) a JOIN generate_series(1, 10000000) b ON a = b",
    "SELECT length(quote_literal(repeat('''', 500000000)))",
    "SELECT length(overlay(repeat('x', 500000000) PLACING repeat('y', 500000000) FROM 3))",
    "SELECT length(translate(repeat('abc', 200000000), 'ab', 'yz'))",
    "SELECT length(jsonb_pretty(('[' || repeat('[1],', 5000000) || '1]')::jsonb))",
    "SELECT length(reverse(repeat('ab', 400000000)))",
    "SELECT count(*) FROM (SELECT string_to_table(repeat('a,', 20000000), ',')) s",
    "SELECT range_agg(int4range(g * 2, g * 2 + 1)) IS NULL FROM generate_series(1, 20000000) g",
];

/// Peak of the server's resident memory since it was last reset, in MB.
fn peak_mb(pid: u32) -> i64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a running server");
    let line = status.lines().find(|l| l.starts_with("VmHWM")).expect("Linux says so");
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<i64>().ok()).expect("a number") / 1024
}

fn reset_peak(pid: u32) -> i64 {
    std::fs::write(format!("/proc/{pid}/clear_refs"), "5").expect("our own child");
    peak_mb(pid)
}

#[test]
fn no_statement_takes_more_than_its_limit() {
    let dir = TempDir::new("memory-hogs");
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut session = Raw::connect(server.port);
    // Ten limits; each statement under some of them, so that each limit meets a good part of the statements.
    let limits = [12, 16, 20, 24, 28, 32, 40, 48, 56, 64];
    for (n, hog) in HOGS.iter().enumerate() {
        for limit in [limits[n % 10], limits[(n + 5) % 10]] {
            session.query(&format!("SET session_memory_limit = '{limit}MB'"));
            let before = reset_peak(server.pid());
            let answer = session.query(hog);
            let ended = answer.iter().any(|l| l.starts_with("E ERROR 53200"));
            assert!(ended, "{hog} under {limit} MB: {answer:?}");
            let taken = peak_mb(server.pid()) - before;
            assert!(taken <= limit + 64, "{hog} under {limit} MB took {taken} MB");
            assert_eq!(session.query("SELECT 1")[1], "D 1");
        }
    }
    assert!(server.stop());
}

#[test]
fn sessions_that_hog_are_ended_and_others_served() {
    let dir = TempDir::new("memory-crowd");
    let server = Server::start(&dir.path().join("data"), &["server_memory_limit=150MB"]);
    let before = reset_peak(server.pid());
    let hogs: Vec<_> = (0..50)
        .map(|n| {
            let mut session = Raw::connect(server.port);
            std::thread::spawn(move || {
                let answer = session.query(HOGS[[1, 3, 8, 24][n % 4]]);
                assert!(answer.iter().any(|l| l.starts_with("E ERROR 53200")), "{answer:?}");
                assert_eq!(session.query("SELECT 1")[1], "D 1");
            })
        })
        .collect();
    let mut other = Raw::connect(server.port);
    while hogs.iter().any(|hog| !hog.is_finished()) {
        let answer = other.query("SELECT count(*) FROM generate_series(1, 100)");
        assert!(answer.contains(&"D 100".to_owned()), "{answer:?}");
    }
    hogs.into_iter().for_each(|hog| hog.join().expect("each of them was told"));
    let taken = peak_mb(server.pid()) - before;
    assert!(taken < 150 + 200, "all together took {taken} MB");
    assert!(server.stop());
}

#[test]
fn a_cancel_ends_what_works_on_much() {
    let dir = TempDir::new("memory-cancel");
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut other = Raw::connect(server.port);
    let long = [
        "SELECT regexp_replace(repeat('a', 10000000), 'a', repeat('b', 100), 'g') IS NULL",
        "SELECT count(*) FROM regexp_matches(repeat('a', 30000000), 'a', 'g')",
        "SELECT cardinality(array_fill(NULL::int, ARRAY[100000000]))",
        "SELECT length(jsonb_build_array(VARIADIC array_fill(1, ARRAY[20000000]))::text)",
        "SELECT length(json_agg(g)::text) FROM generate_series(1, 30000000) g",
        "SELECT md5(repeat('x', 800000000))",
        "SELECT sha512(repeat('x', 800000000)::bytea)",
        "SELECT length(translate(repeat('abc', 200000000), 'ab', 'yz'))",
        "SELECT array_fill(1, ARRAY[30000]) <@ (array_fill(2, ARRAY[30000]) || array_fill(1, ARRAY[1]))",
        "SELECT count(*) FROM jsonb_path_query(('[' || repeat('[', 500) || repeat(']', 500) || ']')::jsonb, '$.**.**.**.** ? (@ == 1)')",
        "SELECT length(array_to_string(array_fill(1, ARRAY[40000000]), ','))",
        "SELECT position('b'::bytea IN repeat('a', 800000000)::bytea)",
    ];
    for sql in long {
        let mut session = Raw::connect(server.port);
        let pid = session.key.0;
        session.send(&crate::support::raw::query(sql));
        // Cancelled when it runs, not before it began.
        let begun =
            format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid} AND query <> ''");
        while !other.query(&begun).contains(&"D 1".to_owned()) {}
        other.query(&format!("SELECT pg_cancel_backend({pid})"));
        let answer = session.until(|l| l.starts_with("Z ") || l == "EOF");
        // A machine that is fast enough may have been done.
        let done = answer.iter().any(|l| l.starts_with("C SELECT"));
        assert!(done || answer.iter().any(|l| l.starts_with("E ERROR 57014")), "{sql}: {answer:?}");
        assert_eq!(answer.last().map(String::as_str), Some("Z I"), "{sql}");
    }
    assert!(server.stop());
}
