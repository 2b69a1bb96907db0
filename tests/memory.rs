//! Memory limits: a statement beyond its session's or the server's ends with an error that says what
//! used the memory; the session lives on, and others notice nothing.

#[path = "support/mod.rs"]
mod support;

use support::raw::Raw;
use support::{Server, TempDir};

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
