//! Nothing is held for ever: each time-out, and clients that die in the middle of a message, while
//! their statement runs, or that stop reading. Each of them holds a lock that another session gets.

use crate::support::raw::{Raw, bind, execute, parse, query, sync};
use crate::support::{Server, TempDir};

/// A session in a transaction that holds the lock on `t`.
fn holder(server: &Server, settings: &str) -> Raw {
    let mut holder = Raw::connect(server.port);
    holder.query(settings);
    let lines = holder.query("BEGIN; LOCK TABLE t");
    assert!(lines.contains(&"Z T".to_owned()), "{lines:?}");
    holder
}

/// Waits for the lock; the test's time limit is the only one.
fn lock_is_free(server: &Server) {
    assert_eq!(server.query("SELECT count(*) FROM t"), "0");
}

fn ends_with(mut client: Raw, code: &str) {
    let lines = client.until(|line| line == "EOF");
    assert!(lines.iter().any(|l| l.starts_with(&format!("E FATAL {code}"))), "{code}: {lines:?}");
}

fn start(name: &str) -> (TempDir, Server) {
    let dir = TempDir::new(name);
    let server = Server::start(&dir.path().join("data"), &["workers=2"]);
    server.query("CREATE TABLE t (a int)");
    (dir, server)
}

#[test]
fn nothing_is_held_for_ever() {
    each_timeout_ends_what_it_is_for();
    clients_that_die_or_stop_reading_hold_nothing();
}

fn each_timeout_ends_what_it_is_for() {
    let (_dir, server) = start("timeouts");
    // Of the transaction: idle, in a statement, in a statement of its own, waiting for a lock.
    ends_with(holder(&server, "SET transaction_timeout = '50ms'"), "25P04");
    lock_is_free(&server);
    let mut client = holder(&server, "SET transaction_timeout = '200ms'");
    client.send(&query("SELECT pg_sleep(60)"));
    ends_with(client, "25P04");
    lock_is_free(&server);
    let mut client = Raw::connect(server.port);
    client.query("SET transaction_timeout = '50ms'");
    client.send(&query("SELECT pg_sleep(60)"));
    ends_with(client, "25P04");
    let first = holder(&server, "");
    let mut waiting = Raw::connect(server.port);
    waiting.query("SET transaction_timeout = '50ms'; SET statement_timeout = '1h'");
    waiting.send(&query("SELECT * FROM t"));
    ends_with(waiting, "25P04");
    // Of a constant's computation, which is tried when the statement is planned, in vain.
    let mut client = Raw::connect(server.port);
    client.query("SET statement_timeout = '100ms'");
    let lines = client.query("SELECT repeat('ab', 50000) ~ '(a|ab)(c|bcd)*\\1x'");
    assert!(lines.iter().any(|l| l.starts_with("E ERROR 57014")), "{lines:?}");
    // Of the statement and of the lock: the session lives on, and may try again.
    let mut client = Raw::connect(server.port);
    let statement = "E ERROR 57014 canceling statement due to statement timeout";
    let lock = "E ERROR 55P03 canceling statement due to lock timeout";
    for (setting, error) in [("statement_timeout", statement), ("lock_timeout", lock)] {
        client.query(&format!("SET {setting} = '50ms'"));
        for _ in 0..2 {
            assert!(client.query("SELECT * FROM t").contains(&error.to_owned()), "{setting}");
        }
        client.query(&format!("RESET {setting}"));
    }
    // Statements that come together have their own time each.
    client.query("SET statement_timeout = '1s'");
    let statement =
        |sql: &str| [parse("", sql, &[]), bind("", "", &[], false), execute("", 0)].concat();
    let lines = client.talk(
        &[statement("SET statement_timeout = 0"), statement("SELECT pg_sleep(1.1)"), sync()]
            .concat(),
    );
    assert!(lines.contains(&"C SELECT 1".to_owned()), "{lines:?}");
    // A transaction that ends in time is not ended later.
    client.query("SET transaction_timeout = '1h'; SET statement_timeout = '1h'");
    drop(first);
    assert_eq!(client.query("BEGIN; SELECT count(*) FROM t; COMMIT")[2], "D 0");
    client.query("SET transaction_timeout = 0");
    // Idle, with half a message said.
    let mut client = holder(&server, "SET idle_in_transaction_session_timeout = '50ms'");
    client.send(&query("SELECT 1")[..7]);
    ends_with(client, "25P03");
    lock_is_free(&server);
    let mut client = Raw::connect(server.port);
    client.query("SET idle_session_timeout = '50ms'");
    client.send(&query("SELECT 1")[..7]);
    ends_with(client, "57P05");
    let taken = "SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 5; \
                 SET tcp_keepalives_count = 3; SET tcp_user_timeout = '20s'; \
                 SET client_connection_check_interval = '10s'; SHOW tcp_keepalives_idle";
    assert_eq!(server.query(taken), "30s");
    let log = std::fs::read_to_string(server.dir.with_extension("log")).expect("there is a log");
    assert!(!log.contains("TCP"), "{log}");
    assert!(server.stop());
}

fn clients_that_die_or_stop_reading_hold_nothing() {
    let (_dir, server) = start("dying");
    // In the middle of a message's head, and of its body.
    for part in [2, 9] {
        let mut client = holder(&server, "");
        client.send(&query("INSERT INTO t VALUES (1)")[..part]);
        drop(client);
        lock_is_free(&server);
    }
    // While its statement runs, and in the middle of a COPY.
    let mut client = holder(&server, "");
    client.send(&query("SELECT pg_sleep(600)"));
    let sleeps = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
    while server.query(sleeps) != "1" {}
    drop(client);
    lock_is_free(&server);
    let mut client = holder(&server, "");
    client.send(&query("COPY t FROM STDIN"));
    client.until(|line| line.starts_with("G "));
    client.send(&crate::support::raw::message(b'd', b"1\n2\n3"));
    drop(client);
    lock_is_free(&server);
    // It takes nothing of its result: the session waits without a thread, and can be ended.
    let mut client = holder(&server, "");
    client.send(&query("SELECT repeat('x', 1000) FROM generate_series(1, 100000)"));
    let stuck = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'ClientWrite'";
    let pid = loop {
        let pid = server.query(stuck);
        if !pid.is_empty() {
            break pid;
        }
    };
    assert_eq!(server.query(&format!("SELECT pg_terminate_backend({pid})")), "t");
    lock_is_free(&server);
    drop(client);
    let left = "SELECT count(*) FROM pg_locks WHERE pid <> pg_backend_pid()";
    assert_eq!(server.query(left), "0");
    assert!(server.stop());
}
