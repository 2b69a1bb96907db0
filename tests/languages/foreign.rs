//! Foreign tables over a PostgreSQL 15 and over a second server like this one: what both answer, how transactions
//! end together, what a lost or slow server does to a session and to its worker.

use crate::support::client::Client;
use crate::support::{Oracle, Server, TempDir};

/// The far side's tables.
const FAR: &str = "CREATE TABLE item (id int PRIMARY KEY, name text, price numeric(10,2), made date);
     INSERT INTO item SELECT n, 'item ' || n, n * 1.25, '2024-01-01'::date + n FROM generate_series(1, 500) n;
     CREATE TABLE sold (id int PRIMARY KEY, item int, count int);
     INSERT INTO sold SELECT n, 1 + n % 500, n % 7 FROM generate_series(1, 1500) n";

/// Questions whose answers are known from the far side's own.
const QUESTIONS: &[&str] = &[
    "SELECT count(*), sum(price), min(made), max(made) FROM item",
    "SELECT name, price FROM item WHERE id IN (3, 77, 499) ORDER BY id",
    "SELECT i.name, sum(s.count) FROM item i JOIN sold s ON s.item = i.id WHERE i.id < 20
     GROUP BY i.name ORDER BY 2 DESC, 1 LIMIT 5",
    "SELECT count(*) FROM item i LEFT JOIN sold s ON s.item = i.id AND s.count > 5 WHERE s.id IS NULL",
    "SELECT id FROM item WHERE price > 600 AND name LIKE 'item 4%' ORDER BY price DESC LIMIT 4",
    "SELECT s.count, count(*) FROM sold s GROUP BY 1 HAVING count(*) > 10 ORDER BY 1",
    "SELECT id FROM item WHERE EXISTS (SELECT 1 FROM sold WHERE item = item.id AND count = 6) ORDER BY 1 LIMIT 3",
];

fn ok(client: &mut Client, sql: &str) {
    let answer = client.query(sql).expect("the server answers");
    assert!(answer.error.is_none(), "{sql}: {:?}", answer.error);
}

fn code(client: &mut Client, sql: &str) -> String {
    let answer = client.query(sql).expect("the server answers");
    answer.error.map_or_else(String::new, |(code, _)| code)
}

/// A server `far` behind the port, and its tables.
fn attach(client: &mut Client, port: u16) {
    ok(
        client,
        &format!(
            "CREATE EXTENSION postgres_fdw;
             CREATE SERVER far FOREIGN DATA WRAPPER postgres_fdw
                 OPTIONS (host '127.0.0.1', port '{port}', dbname 'postgres', fetch_size '50');
             CREATE USER MAPPING FOR postgres SERVER far OPTIONS (user 'postgres');
             IMPORT FOREIGN SCHEMA public LIMIT TO (item, sold) FROM SERVER far INTO public"
        ),
    );
}

fn answers_agree(near: &mut Client, far: &mut Client) {
    for question in QUESTIONS {
        let (ours, theirs) = (near.query(question), far.query(question));
        let (ours, theirs) = (ours.expect("it answers"), theirs.expect("it answers"));
        assert!(ours.error.is_none(), "{question}: {:?}", ours.error);
        assert_eq!(ours.rows, theirs.rows, "{question}");
    }
}

fn transactions_end_together(near: &mut Client, far: &mut Client) {
    ok(near, "BEGIN; UPDATE item SET price = 0 WHERE id = 1");
    assert_eq!(far.one("SELECT price FROM item WHERE id = 1"), "1.25");
    ok(near, "ROLLBACK");
    assert_eq!(far.one("SELECT price FROM item WHERE id = 1"), "1.25");
    ok(near, "BEGIN; DELETE FROM item WHERE id = 2; SAVEPOINT s; DELETE FROM item WHERE id = 3");
    assert_eq!(code(near, "INSERT INTO item (id) VALUES (4)"), "23505");
    ok(near, "ROLLBACK TO s; INSERT INTO item (id, name) VALUES (1000, 'new'); COMMIT");
    assert_eq!(far.one("SELECT count(*) FROM item WHERE id IN (2, 3, 1000)"), "2");
    assert_eq!(far.one("SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in%'"), "0");
}

#[test]
fn a_postgresql_behind_foreign_tables() {
    let oracle = Oracle::start();
    let dir = TempDir::new("foreign");
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut far = Client::connect(oracle.port).expect("it serves");
    ok(&mut far, FAR);
    let mut near = Client::connect(server.port).expect("it serves");
    attach(&mut near, oracle.port);
    answers_agree(&mut near, &mut far);
    transactions_end_together(&mut near, &mut far);
    // The connection is lost inside of a transaction, which can only be rolled back; the next one is a new one.
    ok(&mut near, "BEGIN; SELECT count(*) FROM item");
    let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'postgres_fdw'";
    assert_eq!(far.one(kill), "t");
    assert_ne!(code(&mut near, "SELECT count(*) FROM item WHERE id < 9"), "");
    ok(&mut near, "ROLLBACK");
    assert_eq!(near.one("SELECT count(*) FROM item WHERE id = 9"), "1");
    assert!(server.stop());
}

#[test]
fn a_server_like_this_one_behind_foreign_tables() {
    let dir = TempDir::new("foreign_two");
    let (one, two) = (dir.path().join("one"), dir.path().join("two"));
    let (behind, server) = (Server::start(&two, &[]), Server::start(&one, &[]));
    let mut far = Client::connect(behind.port).expect("it serves");
    ok(&mut far, FAR);
    let mut near = Client::connect(server.port).expect("it serves");
    attach(&mut near, behind.port);
    answers_agree(&mut near, &mut far);
    transactions_end_together(&mut near, &mut far);
    assert!(server.stop() && behind.stop());
}

#[test]
fn a_slow_server_holds_no_worker_and_can_be_cancelled() {
    let oracle = Oracle::start();
    let dir = TempDir::new("foreign_slow");
    let server = Server::start(&dir.path().join("data"), &["workers=1"]);
    let mut far = Client::connect(oracle.port).expect("it serves");
    ok(&mut far, FAR);
    ok(&mut far, "CREATE VIEW slow AS SELECT id, pg_sleep(1000) IS NULL AS done FROM item");
    let mut near = Client::connect(server.port).expect("it serves");
    attach(&mut near, oracle.port);
    ok(&mut near, "CREATE FOREIGN TABLE slow (id int, done bool) SERVER far");
    let pid = near.one("SELECT pg_backend_pid()");
    near.send("SELECT done FROM slow").expect("it is sent");
    // The only worker serves others, who see what the session waits for.
    let mut other = Client::connect(server.port).expect("the only worker serves");
    let waits = format!("SELECT wait_event FROM pg_stat_activity WHERE pid = {pid}");
    other.await_one(&waits, "ForeignServer");
    let there =
        "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'FETCH%' AND state = 'active'";
    far.await_one(there, "1");
    assert_eq!(other.one(&format!("SELECT pg_cancel_backend({pid})")), "t");
    let answer = near.answer().expect("the session goes on");
    assert_eq!(answer.error.expect("it was cancelled").0, "57014");
    // The statement ends on the other server, too.
    far.await_one(there, "0");
    assert_eq!(near.one("SELECT count(*) FROM item WHERE id = 5"), "1");
    assert!(server.stop());
}
