//! How tables grow, and what is in the buffer pool, as the server's own views tell it.

use crate::support::client::Client;
use crate::support::{Server, TempDir};

#[test]
fn a_table_tells_how_it_grew_and_which_pages_are_in_memory() {
    let dir = TempDir::new("extension");
    let server = Server::start(dir.path(), &["workers=4"]);
    server.query("CREATE TABLE grows (id int, filler char(1000)); CREATE INDEX ON grows (id)");
    let script = dir.path().join("insert.sql");
    let insert = "INSERT INTO grows SELECT i, 'x' FROM generate_series(1, 40) AS i;\n";
    std::fs::write(&script, insert).expect("the temporary folder is writable");
    let path = script.to_string_lossy();
    server.pgbench(&["-n", "-c", "8", "-j", "2", "-t", "50", "-f", &path]);

    let grown = "FROM pg_stat_relation_extension WHERE relname";
    let table = server.query(&format!(
        "SELECT blocks = pages_added, pages_added > 2000, extensions > 1, pages_max > 1,
                abs(pages_mean - pages_added / extensions::float8) < 0.01,
                extensions = (SELECT sum(n) FROM unnest(pages_histogram) AS n), io_time > 0,
                lock_time >= longest_wait, evict_time >= 0 {grown} = 'grows'"
    ));
    assert_eq!(table, "t|t|t|t|t|t|t|t|t");
    let index = format!("SELECT pages_added > 20, extensions > 0 {grown} = 'grows_id_idx'");
    assert_eq!(server.query(&index), "t|t");

    let cached = "SELECT count(*) = (SELECT pages_added FROM pg_stat_relation_extension
                                     WHERE relname = 'grows'),
                         count(DISTINCT relblocknumber) = count(*), max(usagecount) <= 5
                  FROM pg_buffercache
                  WHERE relforknumber = 0 AND relfilenode = (SELECT relfilenode FROM pg_class
                                                             WHERE relname = 'grows')";
    assert_eq!(server.query(cached), "f|t|t", "pages that were added and not used yet");
    server.query("SELECT count(*) FROM grows");
    assert_eq!(server.query(cached), "t|t|t");
    let all = "SELECT count(*) = (SELECT setting::int8 FROM pg_settings
                                  WHERE name = 'shared_buffers') FROM pg_buffercache";
    assert_eq!(server.query(all), "t");
    assert!(server.stop());
}

#[test]
fn a_new_start_has_the_pages_of_the_last_one() {
    let dir = TempDir::new("autoprewarm");
    let start = |on: &str| Server::start(&dir.path().join("data"), &[on]);
    let many = "SELECT count(*) > 50 FROM pg_buffercache
                WHERE relfilenode = (SELECT relfilenode FROM pg_class WHERE relname = 'warm')";
    let server = start("pg_prewarm.autoprewarm=on");
    let made = "CREATE EXTENSION pg_prewarm;
                CREATE TABLE warm AS SELECT n, repeat('x', 500) AS t FROM generate_series(1, 2000) n";
    server.query(made);
    assert_eq!(server.query(many), "t");
    assert!(server.stop());
    let server = start("pg_prewarm.autoprewarm=on");
    Client::connect(server.port).expect("a connection").await_one(many, "t");
    let running = server.psql(&["-Atq"], "SELECT autoprewarm_start_worker()");
    assert!(running.contains("already running"), "{running}");
    assert!(server.stop());
    let server = start("pg_prewarm.autoprewarm=off");
    assert_eq!(server.query(many), "f", "nobody has asked for the pages");
    assert_eq!(server.query("SELECT autoprewarm_dump_now() > 0"), "t");
    let off = server.psql(&["-Atq"], "SELECT autoprewarm_start_worker()");
    assert!(off.contains("is disabled"), "{off}");
    assert!(server.stop());
}
