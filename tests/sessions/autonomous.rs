//! Autonomous transactions: they commit alone, wait for nobody who waits for them, and leave nothing.
//! `deadlock_timeout` is an hour here: whatever is found at once is found without it.

use crate::support::raw::Raw;
use crate::support::{Server, TempDir};

fn start(name: &str) -> (TempDir, Server) {
    let dir = TempDir::new(name);
    let server = Server::start(&dir.path().join("data"), &["workers=2", "deadlock_timeout=1h"]);
    server.query(
        "CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 0), (2, 0);
         CREATE TABLE audit (who text, what int)",
    );
    (dir, server)
}

fn rows(lines: &[String]) -> Vec<&str> {
    assert!(!lines.iter().any(|l| l.starts_with("E ")), "{lines:?}");
    lines.iter().filter_map(|l| l.strip_prefix("D ")).collect()
}

fn error(lines: &[String]) -> &str {
    lines.iter().find_map(|l| l.strip_prefix("E ERROR ")).unwrap_or("no error")
}

#[test]
fn what_it_did_stays_when_the_outer_transaction_is_rolled_back() {
    let (_dir, server) = start("autonomous");
    let mut client = Raw::connect(server.port);
    client.query("BEGIN; UPDATE t SET n = 1 WHERE id = 1");
    let call = "SELECT pg_autonomous('INSERT INTO audit VALUES ($1, $2)', 'me', '7')";
    assert_eq!(rows(&client.query(call)), ["INSERT 0 1"]);
    assert_eq!(server.query("SELECT * FROM audit"), "me|7", "others see it already");
    assert_eq!(rows(&client.query("SELECT what FROM audit")), ["7"], "and the outer one does");
    let inside = "SELECT pg_autonomous('SELECT n FROM t WHERE id = 1')";
    assert_eq!(rows(&client.query(inside)), ["0"], "it does not see the outer one's changes");
    client.query("ROLLBACK");
    assert_eq!(server.query("SELECT * FROM audit"), "me|7");
    assert_eq!(server.query("SELECT n FROM t WHERE id = 1"), "0");
    // A snapshot of before does not see it; a definition is one like any other session's.
    client.query("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM t");
    client.query("SELECT pg_autonomous('DELETE FROM audit')");
    assert_eq!(rows(&client.query("SELECT what FROM audit")), ["7"]);
    client.query("COMMIT");
    assert_eq!(rows(&client.query("SELECT count(*) FROM audit")), ["0"]);
    client.query("BEGIN");
    assert_eq!(
        rows(&client.query("SELECT pg_autonomous('CREATE TABLE made AS SELECT 5 AS five')")),
        ["SELECT 1"]
    );
    assert_eq!(rows(&client.query("SELECT five FROM made")), ["5"]);
    client.query("ROLLBACK");
    assert_eq!(server.query("SELECT five FROM made"), "5");
    assert!(server.stop());
}

#[test]
fn a_wait_for_the_outer_transaction_is_a_deadlock_at_once() {
    let (_dir, server) = start("autonomous-deadlock");
    let mut client = Raw::connect(server.port);
    let update = "SELECT pg_autonomous('UPDATE t SET n = n + 1 WHERE id = 1')";
    let alter = "SELECT pg_autonomous('ALTER TABLE t ADD COLUMN c int')";
    let advisory = "SELECT pg_autonomous('SELECT pg_advisory_xact_lock(5)')";
    let lock = "SELECT pg_autonomous('SELECT count(*) FROM t')";
    for (first, call) in [
        ("UPDATE t SET n = 1 WHERE id = 1", update),
        ("SELECT * FROM t WHERE id = 1 FOR SHARE", update),
        ("SELECT * FROM t", alter),
        ("SELECT pg_advisory_xact_lock(5)", advisory),
        ("LOCK TABLE t", lock),
    ] {
        client.query("BEGIN; SAVEPOINT s");
        client.query(first);
        let answer = client.query(call);
        assert_eq!(error(&answer), "40P01 deadlock detected", "{first}: {answer:?}");
        client.query("ROLLBACK TO s");
        assert!(rows(&client.query(call)).len() == 1, "{first}: without the lock it goes");
        client.query("ROLLBACK");
        server.query("ALTER TABLE t DROP COLUMN IF EXISTS c");
    }
    let detail = server.psql(
        &["-v", "VERBOSITY=verbose"],
        &format!("BEGIN; UPDATE t SET n = 1 WHERE id = 1; {update};"),
    );
    assert!(detail.contains("Autonomous transaction of process"), "{detail}");
    assert!(detail.contains("which waits for its autonomous transaction."), "{detail}");
    assert!(detail.contains("CONTEXT:  autonomous transaction \"UPDATE t"), "{detail}");
    // Over a third session, which waits for the outer one.
    let mut third = Raw::connect(server.port);
    third.query("BEGIN; UPDATE t SET n = 2 WHERE id = 2");
    client.query("BEGIN; UPDATE t SET n = 1 WHERE id = 1");
    third.send(&crate::support::raw::query("UPDATE t SET n = 2 WHERE id = 1"));
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    while server.query(waits) != "1" {}
    let answer = client.query("SELECT pg_autonomous('UPDATE t SET n = 3 WHERE id = 2')");
    assert_eq!(error(&answer), "40P01 deadlock detected", "{answer:?}");
    client.query("ROLLBACK");
    third.until(|line| line.starts_with("Z "));
    third.query("COMMIT");
    assert_eq!(server.query("SELECT n FROM t ORDER BY id"), "2\n2");
    assert!(server.stop());
}

#[test]
fn errors_settings_cancel_nesting_and_memory() {
    let (_dir, server) = start("autonomous-rules");
    let mut client = Raw::connect(server.port);
    // An error rolls the inner one back, and a savepoint saves the outer one.
    client.query("BEGIN; INSERT INTO audit VALUES ('outer', 1); SAVEPOINT s");
    let twice =
        "SELECT pg_autonomous('INSERT INTO t SELECT 3, 1 / (2 - g) FROM generate_series(1, 2) g')";
    assert_eq!(error(&client.query(twice)), "22012 division by zero");
    client.query("ROLLBACK TO s; COMMIT");
    assert_eq!(
        server.query("SELECT (SELECT count(*) FROM t), (SELECT count(*) FROM audit)"),
        "2|1"
    );
    // Settings go in and do not come out.
    client.query("SET my.word = 'outside'; BEGIN; SET LOCAL my.word = 'local'");
    let show = "SELECT pg_autonomous('SELECT current_setting(''my.word'')')";
    assert_eq!(rows(&client.query(show)), ["local"]);
    client.query("SELECT pg_autonomous('SELECT set_config(''my.word'', ''inside'', false)')");
    assert_eq!(rows(&client.query("SHOW my.word")), ["local"]);
    client.query("COMMIT");
    assert_eq!(rows(&client.query("SHOW my.word")), ["outside"]);
    // Temporary tables are the outer session's alone.
    client.query("CREATE TEMP TABLE mine (a int)");
    let answer = client.query("SELECT pg_autonomous('SELECT * FROM mine')");
    assert_eq!(error(&answer), "42P01 relation \"mine\" does not exist");
    for refused in ["COMMIT", "SET work_mem = 64", "LISTEN a", "COPY t TO STDOUT", ""] {
        let answer = client.query(&format!("SELECT pg_autonomous('{refused}')"));
        assert!(error(&answer).starts_with("0A000 "), "{refused}: {answer:?}");
    }
    // A cancel reaches the inner one, and nothing is left of either.
    let mut holder = Raw::connect(server.port);
    holder.query("BEGIN; UPDATE t SET n = 9 WHERE id = 2");
    client.query("BEGIN; UPDATE t SET n = 8 WHERE id = 1");
    client.send(&crate::support::raw::query(
        "SELECT pg_autonomous('UPDATE t SET n = 7 WHERE id = 2')",
    ));
    let waits = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    let pid = loop {
        let pid = server.query(waits);
        if !pid.is_empty() {
            break pid;
        }
    };
    let blockers = server.query(&format!("SELECT array_length(pg_blocking_pids({pid}), 1)"));
    assert_eq!(blockers, "1");
    server.query(&format!("SELECT pg_cancel_backend({pid})"));
    let answer = client.until(|line| line.starts_with("Z "));
    assert_eq!(error(&answer), "57014 canceling statement due to user request");
    client.query("ROLLBACK");
    holder.query("ROLLBACK");
    let left = "SELECT count(*) FROM pg_locks WHERE pid <> pg_backend_pid()";
    assert_eq!(server.query(left), "0");
    assert_eq!(server.query("SELECT n FROM t ORDER BY id"), "0\n0");
    // Eight deep and no deeper.
    let nested = |depth: usize| {
        let mut text = "SELECT 'bottom'".to_owned();
        for level in 0..depth {
            text = format!("SELECT pg_autonomous($q{level}${text}$q{level}$)");
        }
        text
    };
    assert_eq!(rows(&client.query(&nested(8))), ["bottom"]);
    let answer = client.query(&nested(9));
    assert_eq!(error(&answer), "54001 autonomous transactions are nested too deeply");
    // Its memory is the session's.
    client.query("SET session_memory_limit = '16MB'");
    let hungry = "SELECT pg_autonomous('SELECT count(*) FROM (SELECT DISTINCT g || repeat(''x'', 200) \
                  FROM generate_series(1, 200000) g) s')";
    assert_eq!(error(&client.query(hungry)), "53200 out of memory");
    assert_eq!(rows(&client.query("SELECT 1")), ["1"]);
    assert!(server.stop());
}
