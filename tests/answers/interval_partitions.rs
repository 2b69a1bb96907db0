//! Partitions by interval: made by the insert that needs them, once however many sessions ask; kept when that insert is
//! rolled back; made ahead of time and taken away by the server.

use std::sync::{Arc, Barrier};

use crate::support::client::Client;
use crate::support::{Server, TempDir};

/// Sessions that insert the first row of one interval.
const SESSIONS: usize = 100;

fn count(server: &Server, table: &str) -> String {
    server.query(&format!("SELECT count(*) FROM pg_inherits WHERE inhparent = '{table}'::regclass"))
}

#[test]
fn an_interval_has_one_partition_however_many_sessions_begin_it() {
    let dir = TempDir::new("interval-many");
    let server = Server::start(dir.path(), &["max_connections=200"]);
    server.query(
        "CREATE TABLE t (n int8 PRIMARY KEY) PARTITION BY RANGE (n) WITH (interval = '1000')",
    );
    let begin = Arc::new(Barrier::new(SESSIONS));
    let port = server.port;
    let sessions: Vec<_> = (0..SESSIONS)
        .map(|n| {
            let begin = begin.clone();
            std::thread::spawn(move || {
                let mut client = Client::connect(port).expect("there is room");
                begin.wait();
                let sql = format!("INSERT INTO t VALUES ({n})");
                client.query(&sql).expect("the server answers").error
            })
        })
        .collect();
    for session in sessions {
        assert_eq!(session.join().expect("no panic"), None);
    }
    assert_eq!(count(&server, "t"), "1");
    assert_eq!(server.query("SELECT count(*) FROM t"), SESSIONS.to_string());
}

#[test]
fn a_partition_stays_when_its_first_row_does_not() {
    let dir = TempDir::new("interval-rollback");
    let server = Server::start(dir.path(), &[]);
    server.query(
        "CREATE TABLE t (at timestamptz) PARTITION BY RANGE (at) WITH (interval = '1 month')",
    );
    server.psql(&[], "BEGIN; INSERT INTO t VALUES ('2024-02-29 12:00+00'); ROLLBACK;");
    let bound = "SELECT pg_get_expr(relpartbound, oid) FROM pg_class WHERE relname = 't_20240201'";
    let bound = server.query(&format!("SET timezone = 'UTC'; {bound}"));
    let wanted = "FOR VALUES FROM ('2024-02-01 00:00:00+00') TO ('2024-03-01 00:00:00+00')";
    assert_eq!(bound.lines().last(), Some(wanted));
}

#[test]
fn partitions_give_way_to_neighbours_made_by_hand() {
    let dir = TempDir::new("interval-neighbours");
    let server = Server::start(dir.path(), &[]);
    server.query("CREATE TABLE t (n int) PARTITION BY RANGE (n) WITH (interval = '10')");
    server.query("CREATE TABLE t_hand PARTITION OF t FOR VALUES FROM (3) TO (7)");
    server.query("INSERT INTO t VALUES (1), (5), (8), (-1)");
    let bounds = "SELECT string_agg(pg_get_expr(c.relpartbound, c.oid), '; ' ORDER BY c.relname)
                  FROM pg_class c WHERE relname IN ('t_0', 't_7', 't_m10')";
    assert_eq!(
        server.query(bounds),
        "FOR VALUES FROM (0) TO (3); FOR VALUES FROM (7) TO (10); FOR VALUES FROM ('-10') TO (0)"
    );
}

#[test]
fn what_cannot_be_an_interval_is_refused() {
    let dir = TempDir::new("interval-bound");
    let server = Server::start(dir.path(), &[]);
    let mut client = Client::connect(server.port).expect("there is room");
    for (sql, code) in [
        ("CREATE TABLE t (n text) PARTITION BY RANGE (n) WITH (interval = '1')", "22023"),
        ("CREATE TABLE t (n int) PARTITION BY LIST (n) WITH (interval = '1')", "22023"),
        ("CREATE TABLE t (n int) PARTITION BY RANGE (n) WITH (interval = '0')", "22023"),
        ("CREATE TABLE t (n int) PARTITION BY RANGE (n) WITH (interval = 'x')", "22P02"),
        ("CREATE TABLE t (n int) WITH (interval = '1')", "22023"),
        (
            "CREATE TABLE t (n int) PARTITION BY RANGE (n) WITH (interval = '1', retain = '1 day')",
            "22023",
        ),
    ] {
        let answer = client.query(sql).expect("the server answers");
        let (state, message) = answer.error.unwrap_or_default();
        assert_eq!(state, code, "{sql}: {message}");
    }
}

#[test]
fn partitions_are_made_ahead_of_time_and_taken_away() {
    let dir = TempDir::new("interval-maintained");
    let server = Server::start(dir.path(), &["partition_maintenance_interval=1"]);
    let mut client = Client::connect(server.port).expect("there is room");
    client
        .query(
            "CREATE TABLE t (at timestamptz) PARTITION BY RANGE (at)
             WITH (interval = '1 day', premake = 3, retain = '30 days', retain_by = 'detach')",
        )
        .expect("the server answers");
    client.query("INSERT INTO t VALUES (now() - interval '60 days')").expect("the server answers");
    // Today's and three more; the old one is a table of its own.
    let sql = "SELECT count(*) FILTER (WHERE relispartition) || ' ' || count(*) FILTER (WHERE NOT relispartition)
               FROM pg_class WHERE relname LIKE 't\\_%'";
    client.await_one(sql, "4 1");
}

#[test]
fn hash_partitions_are_made_by_number() {
    let dir = TempDir::new("hash-number");
    let server = Server::start(dir.path(), &[]);
    server.query("CREATE TABLE t (n int PRIMARY KEY) PARTITION BY HASH (n) WITH (partitions = 16)");
    server.query("INSERT INTO t SELECT generate_series(1, 1000)");
    assert_eq!(count(&server, "t"), "16");
    assert_eq!(server.query("SELECT count(DISTINCT tableoid) FROM t"), "16");
}
