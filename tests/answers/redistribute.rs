//! Rows that go into other partitions in the background: another number of hash partitions, the default partition's rows
//! of a table by interval, and pg_pathman's functions over both. Nothing is lost or seen twice, whoever writes meanwhile,
//! and whenever the server dies.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use crate::support::client::Client;
use crate::support::{Server, TempDir};

/// Rows of the tables.
const ROWS: i64 = 2_000;

fn parts(server: &Server, table: &str) -> String {
    server.query(&format!("SELECT count(*) FROM pg_inherits WHERE inhparent = '{table}'::regclass"))
}

#[test]
fn hash_partitions_change_their_number_while_sessions_write() {
    let dir = TempDir::new("redistribute-writers");
    let server = Server::start(dir.path(), &["partition_maintenance_interval=1"]);
    server.query(
        "CREATE TABLE t (n int8 PRIMARY KEY, v int) PARTITION BY HASH (n) WITH (partitions = 4)",
    );
    server.query(&format!("INSERT INTO t SELECT g, 0 FROM generate_series(1, {ROWS}) g"));
    let (stop, next) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicI64::new(ROWS)));
    let port = server.port;
    let writers: Vec<_> = (0..4)
        .map(|_| {
            let (stop, next) = (stop.clone(), next.clone());
            std::thread::spawn(move || {
                let mut client = Client::connect(port).expect("there is room");
                while !stop.load(Ordering::Relaxed) {
                    let n = next.fetch_add(1, Ordering::Relaxed) + 1;
                    let old = n % ROWS + 1;
                    for sql in [
                        format!("INSERT INTO t VALUES ({n}, 1)"),
                        format!("UPDATE t SET v = v + 1 WHERE n = {old}"),
                    ] {
                        let answer = client.query(&sql).expect("the server answers");
                        assert_eq!(answer.error, None, "{sql}");
                    }
                }
            })
        })
        .collect();
    let mut client = Client::connect(port).expect("there is room");
    for number in [6, 12, 3] {
        let answer = client.query(&format!("ALTER TABLE t SET (partitions = {number})"));
        assert_eq!(answer.expect("the server answers").error, None);
        client.await_one(
            "SELECT count(*) FROM pg_stat_progress_partition WHERE relid = 't'::regclass",
            "0",
        );
        assert_eq!(parts(&server, "t"), number.to_string());
    }
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.join().expect("no panic");
    }
    let wanted = next.load(Ordering::Relaxed).to_string();
    assert_eq!(server.query("SELECT count(DISTINCT n) FROM t"), wanted);
    assert_eq!(server.query("SELECT count(*) FROM t"), wanted);
    // The index finds each row where the key says that it is.
    assert_eq!(server.query("SELECT count(*) FROM t a JOIN t b USING (n)"), wanted);
}

#[test]
fn a_server_that_dies_between_steps_goes_on_with_them() {
    let dir = TempDir::new("redistribute-crash");
    let server = Server::start(dir.path(), &["partition_maintenance_interval=3600"]);
    server.query("CREATE TABLE t (n int PRIMARY KEY) PARTITION BY HASH (n) WITH (partitions = 4)");
    server.query(&format!("INSERT INTO t SELECT generate_series(1, {ROWS})"));
    server.query("ALTER TABLE t SET (partitions = 8)");
    assert_eq!(server.query("SELECT pg_step_partitions('t')"), "t");
    assert_eq!(parts(&server, "t"), "5");
    // A step that is under way when the server dies has not been.
    let mut client = Client::connect(server.port).expect("there is room");
    for sql in ["BEGIN", "SELECT pg_step_partitions('t')"] {
        assert_eq!(client.query(sql).expect("the server answers").error, None, "{sql}");
    }
    server.kill();
    let server = Server::start(dir.path(), &["partition_maintenance_interval=3600"]);
    assert_eq!(parts(&server, "t"), "5");
    assert_eq!(server.query("SELECT count(*), count(DISTINCT n) FROM t"), format!("{ROWS}|{ROWS}"));
    // It stops when it is told to, and goes on later.
    server.query("ALTER TABLE t RESET (partitions)");
    assert_eq!(server.query("SELECT pg_maintain_partitions('t')"), "0");
    server.query("ALTER TABLE t SET (partitions = 8)");
    assert_eq!(server.query("SELECT pg_maintain_partitions('t')"), "3");
    assert_eq!(parts(&server, "t"), "8");
    assert_eq!(server.query("SELECT count(*), count(DISTINCT n) FROM t"), format!("{ROWS}|{ROWS}"));
    assert_eq!(server.query("SELECT reloptions FROM pg_class WHERE relname = 't'"), "");
}

#[test]
fn what_cannot_be_redistributed_is_refused() {
    let dir = TempDir::new("redistribute-refused");
    let server = Server::start(dir.path(), &[]);
    let mut client = Client::connect(server.port).expect("there is room");
    for (sql, code) in [
        ("CREATE TABLE h (n int PRIMARY KEY) PARTITION BY HASH (n) WITH (partitions = 7)", ""),
        ("ALTER TABLE h SET (partitions = 0)", "22023"),
        ("ALTER TABLE h SET (partitions = 9999)", "22023"),
        ("CREATE TABLE r (n int) PARTITION BY RANGE (n)", ""),
        ("ALTER TABLE r SET (partitions = 2)", "22023"),
        ("ALTER TABLE r SET (empty_default = true)", "22023"),
        ("CREATE TABLE plain (n int REFERENCES h)", ""),
        ("ALTER TABLE plain SET (partitions = 2)", "22023"),
        ("ALTER TABLE h SET (partitions = 14)", "0A000"),
        ("CREATE ROLE other", ""),
        ("SET ROLE other", ""),
        ("SELECT pg_step_partitions('h')", "42501"),
    ] {
        let answer = client.query(sql).expect("the server answers");
        let (state, message) = answer.error.unwrap_or_default();
        assert_eq!(state, code, "{sql}: {message}");
    }
}

#[test]
fn pg_pathmans_functions_work_over_declarative_partitions() {
    let dir = TempDir::new("pathman");
    let server = Server::start(dir.path(), &["partition_maintenance_interval=3600"]);
    server.query("CREATE EXTENSION pg_pathman");
    server.query("CREATE TABLE r (id serial, at date NOT NULL)");
    server.query("INSERT INTO r (at) SELECT date '2024-01-01' + g FROM generate_series(0, 99) g");
    let made = "SELECT create_range_partitions('r', 'at', date '2024-01-01', interval '1 month')";
    assert_eq!(server.query(made), "4");
    assert_eq!(server.query("SELECT append_range_partition('r')"), "r_5");
    assert_eq!(server.query("SELECT prepend_range_partition('r')"), "r_6");
    server.query("SELECT split_range_partition('r_1', date '2024-01-15', 'r_1b')");
    let list = "SELECT string_agg(partition || ' ' || range_min || ' ' || range_max, ', ' ORDER BY range_min)
                FROM pathman_partition_list WHERE parent = 'r'::regclass";
    assert_eq!(
        server.query(list),
        "r_6 2023-12-01 2024-01-01, r_1 2024-01-01 2024-01-15, r_1b 2024-01-15 2024-02-01, \
         r_2 2024-02-01 2024-03-01, r_3 2024-03-01 2024-04-01, r_4 2024-04-01 2024-05-01, \
         r_5 2024-05-01 2024-06-01"
    );
    assert_eq!(server.query("SELECT merge_range_partitions('r_1b', 'r_1')"), "r_1");
    assert_eq!(server.query("SELECT count(*) FROM r_1"), "31");
    server.query("SELECT add_range_partition('r', date '2022-01-01', date '2022-02-01', 'old')");
    server.query("SELECT detach_range_partition('old')");
    server.query("SELECT attach_range_partition('r', 'old', date '2022-01-01', date '2022-02-01')");
    assert_eq!(server.query("SELECT drop_range_partition('old')"), "old");
    // An insert makes the partition that it needs, unless it is told not to.
    server.query("INSERT INTO r (at) VALUES ('2025-01-05')");
    server.query("SELECT set_auto('r', false)");
    let mut client = Client::connect(server.port).expect("there is room");
    let refused = client.query("INSERT INTO r (at) VALUES ('2027-01-05')");
    let (state, _) = refused.expect("the server answers").error.expect("there is no partition");
    assert_eq!(state, "23514");
    assert_eq!(server.query("SELECT drop_partitions('r')"), "7");
    assert_eq!(server.query("SELECT count(*), max(id) FROM r"), "101|101");

    server.query("CREATE TABLE c (n int NOT NULL)");
    server.query(&format!("INSERT INTO c SELECT generate_series(1, {ROWS})"));
    server.query("SELECT create_range_partitions('c', 'n', 1, 500, NULL, false)");
    assert_eq!(server.query("SELECT count(*) FROM c"), ROWS.to_string());
    server.query("SELECT partition_table_concurrently('c')");
    let tasks = "SELECT relid, status FROM pathman_concurrent_part_tasks";
    assert_eq!(server.query(tasks), "c|working");
    assert_eq!(server.query("SELECT pg_step_partitions('c')"), "t");
    assert_eq!(server.query("SELECT stop_concurrent_part_task('c')"), "t");
    assert_eq!(
        server.query("SELECT count(*), count(DISTINCT tableoid) FROM c"),
        format!("{ROWS}|2")
    );
    server.query("SELECT partition_table_concurrently('c')");
    server.query("SELECT pg_maintain_partitions('c')");
    assert_eq!(
        server.query("SELECT count(*), count(DISTINCT tableoid) FROM c"),
        format!("{ROWS}|5")
    );
    assert_eq!(server.query(tasks), "");

    server.query("CREATE TABLE h (n int NOT NULL)");
    server.query(&format!("INSERT INTO h SELECT generate_series(1, {ROWS})"));
    server.query("SELECT create_hash_partitions('h', 'n', 4, false)");
    server.query("SELECT partition_table_concurrently('h')");
    server.query("SELECT pg_maintain_partitions('h')");
    assert_eq!(
        server.query("SELECT count(*), count(DISTINCT tableoid) FROM h"),
        format!("{ROWS}|4")
    );
    let config =
        "SELECT string_agg(partrel || ' ' || parttype || ' ' || expr, ', ' ORDER BY partrel::text)
                  FROM pathman_config";
    assert_eq!(server.query(config), "c 2 n, h 1 n");
}
