//! `pg_stat_progress_*`: long commands say how far they have come, in true numbers. What can be
//! held inside is: COPY by a client that sends half or reads nothing, VACUUM by its cost delay. An
//! index build and ANALYZE are begun again until somebody saw them run.

use std::time::{Duration, Instant};

use crate::support::client::Client;
use crate::support::raw::{Raw, message, query};
use crate::support::{Server, TempDir};

fn rows(client: &mut Client, sql: &str) -> Vec<String> {
    let answer = client.query(sql).expect("the connection stays");
    assert_eq!(answer.error, None, "{sql}");
    let text = |row: Vec<Option<String>>| {
        row.into_iter().map(Option::unwrap_or_default).collect::<Vec<_>>().join("|")
    };
    answer.rows.into_iter().map(text).collect()
}

/// Asks until the answer is as wanted.
fn wait_for(client: &mut Client, sql: &str, wanted: impl Fn(&[String]) -> bool) -> Vec<String> {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let answer = rows(client, sql);
        if wanted(&answer) {
            return answer;
        }
        assert!(Instant::now() < until, "{sql}: still {answer:?}");
    }
}

fn numbers(row: &str) -> Vec<i64> {
    row.split('|').map(|n| n.parse().expect("a number")).collect()
}

#[test]
fn a_copy_tells_what_has_come_and_what_has_gone() {
    let dir = TempDir::new("progress-copy");
    let server = Server::start(&dir.path().join("data"), &[]);
    let mut look = Client::connect(server.port).expect("the server takes connections");
    rows(&mut look, "CREATE TABLE t (v text)");
    let mut load = Raw::connect(server.port);
    load.send(&query("COPY t FROM STDIN"));
    load.until(|line| line.starts_with("G "));
    load.send(&message(b'd', b"one\ntwo\nthree\nfo"));
    let seen = "SELECT pid, datname, relid::regclass, command, type, bytes_processed, bytes_total,
                       tuples_processed, tuples_excluded FROM pg_stat_progress_copy";
    let expected = format!("{}|postgres|t|COPY FROM|PIPE|16|0|3|0", load.key.0);
    wait_for(&mut look, seen, |answer| answer == [expected.as_str()]);
    load.send(&message(b'd', b"ur\n"));
    let expected = format!("{}|postgres|t|COPY FROM|PIPE|19|0|4|0", load.key.0);
    wait_for(&mut look, seen, |answer| answer == [expected.as_str()]);
    load.talk(&message(b'c', b""));
    assert!(rows(&mut look, seen).is_empty());

    // A client that reads nothing: the server stops when nobody takes more.
    load.send(&query("COPY (SELECT repeat('x', 1999) FROM generate_series(1, 20000)) TO STDOUT"));
    let stuck = format!(
        "SELECT 1 FROM pg_stat_activity WHERE pid = {} AND wait_event = 'ClientWrite'",
        load.key.0
    );
    wait_for(&mut look, &stuck, |answer| answer == ["1"]);
    let columns = "SELECT bytes_processed, tuples_processed, relid FROM pg_stat_progress_copy
                   WHERE command = 'COPY TO'";
    let now = rows(&mut look, columns);
    let now = numbers(now.first().expect("it runs"));
    assert!(now[1] > 0 && now[1] < 20_000, "{now:?}");
    assert_eq!((now[0], now[2]), (now[1] * 2000, 0));
    load.until(|line| line.starts_with("Z "));
    assert!(rows(&mut look, seen).is_empty());
}

#[test]
fn a_vacuum_tells_which_page_it_has_come_to() {
    let dir = TempDir::new("progress-vacuum");
    let server = Server::start(&dir.path().join("data"), &["autovacuum=off"]);
    let mut look = Client::connect(server.port).expect("the server takes connections");
    rows(&mut look, "CREATE TABLE t (id int PRIMARY KEY, v text)");
    rows(&mut look, "INSERT INTO t SELECT g, repeat('x', 500) FROM generate_series(1, 1000) g");
    rows(&mut look, "DELETE FROM t WHERE id % 2 = 0");
    let mut vacuum = Raw::connect(server.port);
    vacuum.query("SET vacuum_cost_delay = 100");
    vacuum.query("SET vacuum_cost_limit = 1");
    vacuum.send(&query("VACUUM t"));
    let seen = "SELECT heap_blks_total, heap_blks_scanned, heap_blks_vacuumed, index_vacuum_count,
                       num_dead_tuples, max_dead_tuples FROM pg_stat_progress_vacuum
                WHERE relid = 't'::regclass AND phase = 'scanning heap' AND heap_blks_scanned > 1";
    let answer = wait_for(&mut look, seen, |answer| !answer.is_empty());
    let now = numbers(&answer[0]);
    let pages = numbers(&rows(&mut look, "SELECT pg_relation_size('t') / 8192")[0])[0];
    assert_eq!(now[0], pages);
    assert!(now[1] < pages, "{now:?}");
    assert_eq!(now[2..4], [0, 0]);
    // Some seven of fifteen rows of a page are dead.
    assert!(now[4] >= 6 * now[1] && now[4] <= 8 * (now[1] + 1) && now[4] < now[5], "{now:?}");
    let event = format!(
        "SELECT wait_event_type, wait_event FROM pg_stat_activity WHERE pid = {}",
        vacuum.key.0
    );
    wait_for(&mut look, &event, |answer| answer == ["Timeout|VacuumDelay"]);
    rows(&mut look, &format!("SELECT pg_cancel_backend({})", vacuum.key.0));
    let end = vacuum.until(|line| line.starts_with("Z "));
    assert!(end[0].starts_with("E ERROR 57014"), "{end:?}");
    assert!(rows(&mut look, "SELECT * FROM pg_stat_progress_vacuum").is_empty());
    vacuum.query("SET vacuum_cost_delay = 0");
    assert_eq!(vacuum.query("VACUUM t"), ["C VACUUM", "Z I"]);
}

/// Runs `sql`, and `again` to run it once more, until `look` answers something meanwhile.
fn seen_while(server: &Server, sql: &str, again: &str, look: &str) -> Vec<String> {
    let mut looker = Client::connect(server.port).expect("the server takes connections");
    let mut worker = Raw::connect(server.port);
    let busy =
        format!("SELECT 1 FROM pg_stat_activity WHERE pid = {} AND state = 'active'", worker.key.0);
    for _ in 0..20 {
        worker.send(&query(sql));
        loop {
            let answer = rows(&mut looker, look);
            if !answer.is_empty() {
                worker.until(|line| line.starts_with("Z "));
                return answer;
            }
            if rows(&mut looker, &busy).is_empty() {
                break;
            }
        }
        worker.until(|line| line.starts_with("Z "));
        worker.query(again);
    }
    panic!("{sql} was never seen running");
}

#[test]
fn index_builds_and_analyze_tell_what_they_do() {
    let dir = TempDir::new("progress-index");
    let server = Server::start(&dir.path().join("data"), &["autovacuum=off"]);
    server.query("CREATE TABLE t (id int, v text)");
    server.query("INSERT INTO t SELECT g, 'row ' || g FROM generate_series(1, 200000) g");
    let look = "SELECT relid::regclass, index_relid, command, phase, blocks_total, blocks_done,
                       tuples_total, tuples_done, lockers_total, partitions_total
                FROM pg_stat_progress_create_index WHERE phase <> 'initializing'";
    let answer = seen_while(&server, "CREATE INDEX i ON t (v)", "DROP INDEX i", look);
    let (words, counts) = answer[0].split_at(answer[0].match_indices('|').nth(3).expect("bars").0);
    let phase = words.strip_prefix("t|0|CREATE INDEX|building index: ").expect(words);
    let counts = numbers(&counts[1..]);
    let pages: i64 = server.query("SELECT pg_relation_size('t') / 8192").parse().expect("a number");
    assert!(counts[1] <= pages && counts[3] <= counts[2], "{answer:?}");
    match phase {
        "scanning table" => assert_eq!(counts[2..], [0, 0, 0, 0]),
        "sorting live tuples" => assert_eq!(counts[..4], [pages, pages, 200_000, 0]),
        "loading tuples in tree" => assert_eq!(counts[..3], [pages, pages, 200_000]),
        other => panic!("{other}"),
    }
    assert_eq!(server.query("SELECT count(*) FROM pg_stat_progress_create_index"), "0");

    let look = "SELECT phase, sample_blks_total, sample_blks_scanned, ext_stats_total
                FROM pg_stat_progress_analyze WHERE relid = 't'::regclass
                AND phase <> 'initializing'";
    let answer = seen_while(&server, "ANALYZE t", "SELECT 1", look);
    let (phase, counts) = answer[0].split_once('|').expect("bars");
    let counts = numbers(counts);
    assert_eq!((counts[0], counts[2]), (pages, 0), "{answer:?}");
    match phase {
        "acquiring sample rows" => assert!(counts[1] <= pages),
        "computing statistics" | "finalizing analyze" => assert_eq!(counts[1], pages),
        other => panic!("{other}"),
    }
}

#[test]
fn a_server_ends_in_the_middle_of_a_background_vacuum() {
    let dir = TempDir::new("progress-end");
    let slow = ["autovacuum_vacuum_threshold=1", "vacuum_cost_delay=100", "vacuum_cost_limit=1"];
    let server = Server::start(&dir.path().join("data"), &slow);
    let mut client = Client::connect(server.port).expect("the server takes connections");
    rows(&mut client, "CREATE TABLE t AS SELECT g AS id FROM generate_series(1, 50000) AS g");
    rows(&mut client, "UPDATE t SET id = -id");
    let running = "SELECT count(*) FROM pg_stat_progress_vacuum";
    wait_for(&mut client, running, |answer| answer == ["1"]);
    assert!(server.stop(), "the server ended by itself");
}
