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
