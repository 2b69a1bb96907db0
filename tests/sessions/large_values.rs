//! Values of up to 100 MB: they come back as they were, through updates, deletes, rollbacks, vacuum
//! and a crash; and who doesn't ask for them doesn't read them.

use crate::support::client::Client;
use crate::support::{Server, TempDir};

/// The single value of a query.
fn value(client: &mut Client, sql: &str) -> String {
    let answer = client.query(sql).expect("the connection holds");
    assert!(answer.error.is_none(), "{sql}: {:?}", answer.error);
    answer.rows.first().and_then(|r| r.first().cloned().flatten()).unwrap_or_default()
}

fn run(client: &mut Client, sql: &str) {
    value(client, sql);
}

/// 6.4 MB that don't compress.
const NOISE: &str = "(SELECT string_agg(md5(i::text), '') FROM generate_series(1, 200000) i)";

#[test]
fn a_value_of_100_mb_lives_as_small_ones_do() {
    let dir = TempDir::new("large-values");
    let data = dir.path().join("data");
    let server = Server::start(&data, &[]);
    let mut client = Client::connect(server.port).expect("the server takes connections");
    run(
        &mut client,
        "CREATE TABLE noise AS SELECT 1 AS n, NOISE AS v".replace("NOISE", NOISE).as_str(),
    );
    run(&mut client, "CREATE TABLE large (id int PRIMARY KEY, note text, v text, b bytea)");
    let big = "(SELECT repeat(v, 16) FROM noise)";
    run(&mut client, &format!("INSERT INTO large SELECT 1, 'first', {big}, NULL"));
    let digest = value(&mut client, &format!("SELECT md5({big})"));
    assert_eq!(value(&mut client, "SELECT length(v) FROM large"), "102400000");
    assert_eq!(value(&mut client, "SELECT md5(v) FROM large WHERE id = 1"), digest);

    // A value that compresses stays in its row.
    run(&mut client, "INSERT INTO large VALUES (2, 'thin', repeat('x', 1000000), NULL)");
    assert_eq!(value(&mut client, "SELECT length(v) FROM large WHERE id = 2"), "1000000");

    // Rollback and replacement.
    run(&mut client, "BEGIN");
    run(&mut client, "UPDATE large SET v = 'short' WHERE id = 1");
    run(&mut client, "ROLLBACK");
    assert_eq!(value(&mut client, "SELECT md5(v) FROM large WHERE id = 1"), digest);
    run(&mut client, "UPDATE large SET note = 'second' WHERE id = 1");
    assert_eq!(
        value(&mut client, "SELECT note || md5(v) FROM large WHERE id = 1"),
        format!("second{digest}")
    );

    // An update that leaves it as it is copies the pointer.
    let before = value(&mut client, "SELECT pg_current_wal_lsn()");
    for _ in 0..3 {
        run(&mut client, "UPDATE large SET note = 'second' WHERE id = 1");
    }
    let small = format!("SELECT pg_current_wal_lsn() - '{before}' < 1000000");
    assert_eq!(value(&mut client, &small), "t");
    run(&mut client, "BEGIN");
    run(&mut client, "UPDATE large SET note = 'third' WHERE id = 1");
    run(&mut client, "ROLLBACK");
    run(&mut client, "VACUUM large");
    assert_eq!(value(&mut client, "SELECT md5(v) FROM large WHERE id = 1"), digest);

    // What is no longer needed is reused.
    run(&mut client, "INSERT INTO large SELECT 3, 'gone', v, v::bytea FROM noise");
    run(&mut client, "DELETE FROM large WHERE id = 3");
    run(&mut client, "VACUUM large");
    assert_eq!(value(&mut client, "SELECT md5(v) FROM large WHERE id = 1"), digest);

    // A crash forgets nothing.
    server.kill();
    let server = Server::start(&data, &[]);
    let mut client = Client::connect(server.port).expect("the server recovers");
    assert_eq!(value(&mut client, "SELECT md5(v) FROM large WHERE id = 1"), digest);
    assert_eq!(value(&mut client, "SELECT count(*) FROM large"), "2");
    run(&mut client, "TRUNCATE large");
    run(&mut client, "DROP TABLE large");
    assert!(server.stop());
}
