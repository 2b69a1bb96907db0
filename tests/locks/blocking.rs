//! Who blocks whom: the tree now, and the past in one query.

use crate::support::client::Client;
use crate::support::{Server, TempDir};

/// A session that runs one statement on a thread of its own.
fn later(port: u16, sql: &'static str) -> std::thread::JoinHandle<Option<(String, String)>> {
    std::thread::spawn(move || {
        let mut client = Client::connect(port).unwrap();
        client.query(sql).unwrap().error
    })
}

fn wait_for(server: &Server, sql: &str, want: &str) {
    let mut last = String::new();
    for _ in 0..2000 {
        last = server.query(sql);
        if last == want {
            return;
        }
    }
    panic!("{sql}: {last} instead of {want}");
}

#[test]
fn the_tree_and_its_past() {
    let dir = TempDir::new("blocking");
    let settings = ["blocking_history_threshold=1ms"];
    let server = Server::start(&dir.path().join("data"), &settings);
    server.query(
        "CREATE TABLE shelf (id int PRIMARY KEY, n int); INSERT INTO shelf VALUES (1, 0), (2, 0)",
    );
    assert_eq!(server.query("SELECT count(*) FROM pg_stat_blocking"), "0");
    let mut holder = Client::connect(server.port).unwrap();
    let pid = holder.query("BEGIN; UPDATE shelf SET n = 1 WHERE id = 1; SELECT pg_backend_pid()");
    let pid = pid.unwrap().rows[0][0].clone().unwrap();
    let first = later(server.port, "UPDATE shelf SET n = 2 WHERE id = 1");
    wait_for(&server, "SELECT count(*) FROM pg_stat_blocking", "1");
    let second = later(server.port, "UPDATE shelf SET n = 3 WHERE id = 1");
    wait_for(&server, "SELECT count(DISTINCT waiting_pid) FROM pg_stat_blocking", "2");
    // The second one stands behind the first.
    wait_for(&server, "SELECT max(depth) FROM pg_stat_blocking", "2");
    let row = server.query(
        "SELECT wait_event_type, wait_event, blocking_pid, depth, waiting_query, blocking_state, \
         duration_ms > 0 AND wait_start < clock_timestamp() FROM pg_stat_blocking WHERE depth = 1",
    );
    let want = format!(
        "Lock|transactionid|{pid}|1|UPDATE shelf SET n = 2 WHERE id = 1|idle in transaction|t"
    );
    assert_eq!(row, want);
    // It is in the history while it lasts, once, and from its beginning.
    wait_for(&server, "SELECT count(*) > 1 FROM pg_stat_blocking_history WHERE ended IS NULL", "t");
    holder.query("COMMIT").unwrap();
    assert_eq!((first.join().unwrap(), second.join().unwrap()), (None, None));
    wait_for(&server, "SELECT count(*) FROM pg_stat_blocking_history WHERE ended IS NULL", "0");
    let past = server.query(&format!(
        "SELECT count(*), min(waiting_query) FROM pg_stat_blocking_history WHERE blocking_pid = {pid} \
         AND wait_event = 'transactionid' AND waiting_query LIKE '%n = 2%' \
         AND now() BETWEEN started AND ended + interval '1 minute'"
    ));
    assert_eq!(past, "1|UPDATE shelf SET n = 2 WHERE id = 1");
    // The wait's length is the wait's, not that of the looks at it.
    let exact = "SELECT bool_and(abs(extract(epoch FROM ended - started) * 1000 - duration_ms) < 1) \
                 FROM pg_stat_blocking_history";
    assert_eq!(server.query(exact), "t");
    // The setting bounds the memory.
    server.query("ALTER SYSTEM SET blocking_history_size = 0");
    server.query("SELECT pg_reload_conf()");
    wait_for(&server, "SELECT count(*) FROM pg_stat_blocking_history", "0");
    assert!(server.stop());
}

/// Were it otherwise, every version of the row made meanwhile would have to be kept.
#[test]
fn who_waits_for_a_hot_row_holds_no_snapshot() {
    const SESSIONS: usize = 60;
    const CHANGES: usize = 40;
    let dir = TempDir::new("hot");
    let server = Server::start(&dir.path().join("data"), &["fsync=off", "workers=2"]);
    server.query("CREATE TABLE shelf (id int PRIMARY KEY, n int); INSERT INTO shelf VALUES (1, 0)");
    let port = server.port;
    let change = move || {
        let mut client = Client::connect(port).unwrap();
        for _ in 0..CHANGES {
            for sql in ["BEGIN", "UPDATE shelf SET n = n + 1 WHERE id = 1", "COMMIT"] {
                assert_eq!(client.query(sql).unwrap().error, None);
            }
        }
    };
    let sessions: Vec<_> = (0..SESSIONS).map(|_| std::thread::spawn(change)).collect();
    let mut watcher = Client::connect(port).unwrap();
    let (mut waiting, mut holding) = (0, 0);
    while !sessions.iter().all(std::thread::JoinHandle::is_finished) {
        let answer = watcher.query(
            "SELECT count(*), count(backend_xmin) FROM pg_stat_activity \
             WHERE wait_event_type = 'Lock' AND wait_event = 'tuple'",
        );
        let counts = &answer.unwrap().rows[0];
        let number = |n: usize| counts[n].as_deref().and_then(|c| c.parse::<u64>().ok()).unwrap();
        waiting += number(0);
        holding += number(1);
    }
    sessions.into_iter().for_each(|s| s.join().unwrap());
    assert!(waiting > 0, "nobody waited");
    // A row of the view is not read at one moment: one who has just gone on may still seem to wait. (One
    // of the sixty who did wait with a snapshot would be there at every other look.)
    assert!(holding * 1000 <= waiting, "{holding} of {waiting} who were seen waiting");
    assert_eq!(server.query("SELECT n FROM shelf"), (SESSIONS * CHANGES).to_string());
    assert!(server.stop());
}

#[test]
fn the_statement_in_the_way_is_the_one_that_took_the_lock() {
    let dir = TempDir::new("blocking-query");
    let server = Server::start(&dir.path().join("data"), &["blocking_history_threshold=1ms"]);
    server.query("CREATE TABLE shelf (id int PRIMARY KEY, n int); INSERT INTO shelf VALUES (1, 0)");
    let took = [
        "UPDATE shelf SET n = 1 WHERE id = 1",
        "SELECT n FROM shelf WHERE id = 1 FOR UPDATE",
        "LOCK TABLE shelf",
    ];
    for (i, took) in took.iter().enumerate() {
        let mut holder = Client::connect(server.port).unwrap();
        for step in ["BEGIN", "SELECT 1", took, "SHOW work_mem", "SELECT 2"] {
            assert_eq!(holder.query(step).unwrap().error, None, "{step}");
        }
        let waiting = later(server.port, "UPDATE shelf SET n = 2 WHERE id = 1");
        wait_for(&server, "SELECT blocking_query FROM pg_stat_blocking", took);
        // What it does later is not in the way either.
        assert_eq!(holder.query("SELECT 3").unwrap().error, None);
        assert_eq!(server.query("SELECT blocking_query FROM pg_stat_blocking"), *took);
        let seen = format!(
            "SELECT count(*) FROM pg_stat_blocking_history WHERE blocking_query = '{took}'"
        );
        wait_for(&server, &seen, "1");
        assert_eq!(holder.query("COMMIT").unwrap().error, None, "{i}");
        assert_eq!(waiting.join().unwrap(), None);
    }
    // Another transaction's statement is none of this one's.
    let mut holder = Client::connect(server.port).unwrap();
    holder.query("SELECT pg_advisory_lock(7)").unwrap();
    let waiting = later(server.port, "SELECT pg_advisory_lock(7)");
    wait_for(&server, "SELECT blocking_query FROM pg_stat_blocking", "SELECT pg_advisory_lock(7)");
    holder.query("SELECT pg_advisory_unlock(7)").unwrap();
    assert_eq!(waiting.join().unwrap(), None);
    assert!(server.stop());
}
