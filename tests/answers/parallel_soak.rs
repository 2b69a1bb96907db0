//! A thousand sessions that ask for parallel plans at once, again and again: reports, joins, sorts, cursors that stop in
//! the middle, errors, time-outs, statements that need more memory than they may have, clients that go away. Helpers never
//! are more than there may be, memory stays below its limit, no statement is stuck, and nothing is left in the end.
//!
//! ```sh
//! cargo test -p threadgres --test answers parallel_soak::      # a few statements of each session
//! make soak SOAK_SECONDS=600                         # until the time is over
//! ```

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::support::client::{Answer, Client};
use crate::support::{Server, TempDir, footprint};

const SESSIONS: u64 = 1000;
const MOST_HELPERS: u64 = 4;
/// For all sessions together.
const MEMORY_LIMIT_MB: u64 = 2048;
/// Far beyond what any statement needs: one that takes so long is stuck.
const STUCK: &str = "statement_timeout=240s";
/// Kinds of statements.
const KINDS: u64 = 10;

/// Statements by outcome.
#[derive(Default)]
struct Counts {
    done: AtomicU64,
    failed: AtomicU64,
    left: AtomicU64,
}

fn expect(answer: &Answer, sql: &str, wanted: &str) {
    assert!(answer.error.is_none(), "{sql}: {:?}", answer.error);
    let got = answer.rows.first().and_then(|row| row[0].as_deref()).unwrap_or_default();
    assert_eq!(got, wanted, "{sql}");
}

/// An error with one of these codes, or none at all if the statement was quick enough.
fn expect_error(answer: &Answer, sql: &str, codes: &[&str]) -> bool {
    match &answer.error {
        Some((code, text)) => assert!(codes.contains(&code.as_str()), "{sql}: {code} {text}"),
        None => return false,
    }
    true
}

/// Connects, as soon as the server has noticed that enough of those who went away are gone.
fn connect(port: u16) -> Client {
    let deadline = Instant::now() + Duration::from_secs(120);
    let mut client = loop {
        match Client::connect(port) {
            Ok(client) => break client,
            Err(error) => {
                let full = error.to_string().contains("53300");
                assert!(full && Instant::now() < deadline, "{error}");
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    };
    client.one("SET force_parallel_mode = on");
    client
}

/// Does something of a kind. False: the client has gone away.
fn act(client: &mut Client, kind: u64, counts: &Counts) -> bool {
    let ask = |client: &mut Client, sql: &str| client.query(sql).expect("the connection holds");
    let simple = match kind {
        0 => Some("SELECT sum(c) FROM (SELECT k, count(*) AS c FROM few GROUP BY k) q"),
        1 => Some("SELECT count(*) FROM few a JOIN few b ON a.i = b.i"),
        2 => Some("SELECT count(*) FROM (SELECT i FROM few ORDER BY k, i OFFSET 0) q"),
        3 => Some("SELECT count(*) FROM (SELECT DISTINCT i FROM few WHERE i > 0) q"),
        _ => None,
    };
    if let Some(sql) = simple {
        expect(&ask(client, sql), sql, "2000");
        counts.done.fetch_add(1, Ordering::Relaxed);
        return true;
    }
    match kind {
        4 => {
            // A round of its helpers ends with each FETCH; nobody asks for the rest.
            client.one("BEGIN");
            client.one("DECLARE c CURSOR FOR SELECT i, repeat('x', 100) FROM few WHERE k < 9");
            let rows = ask(client, "FETCH 100 FROM c").rows.len();
            assert_eq!(rows, 100);
            let sql = "SELECT count(*) FROM few";
            expect(&ask(client, sql), sql, "2000");
            assert_eq!(ask(client, "FETCH 100 FROM c").rows.len(), 100);
            client.one("COMMIT");
        }
        5 => {
            let sql = "SELECT sum(1 / (i - 1234)) FROM few";
            assert!(expect_error(&ask(client, sql), sql, &["22012"]), "it divides by zero");
            counts.failed.fetch_add(1, Ordering::Relaxed);
            return true;
        }
        6 => {
            client.one("SET statement_timeout = '5ms'");
            let sql = "SELECT count(*) FROM few WHERE length(repeat('x', 20000)) > i";
            let failed = expect_error(&ask(client, sql), sql, &["57014"]);
            counts.failed.fetch_add(u64::from(failed), Ordering::Relaxed);
            ask(client, "RESET statement_timeout");
        }
        7 => {
            client.one("SET session_memory_limit = '3MB'");
            let sql =
                "SELECT count(DISTINCT r) FROM (SELECT repeat('x', 9000) || i AS r FROM few) q";
            let answer = ask(client, sql);
            assert!(expect_error(&answer, sql, &["53200"]), "18 MB in 3: {answer:?}");
            ask(client, "RESET session_memory_limit");
            counts.failed.fetch_add(1, Ordering::Relaxed);
            return true;
        }
        8 => {
            let sql = "SELECT sum(n) FROM (SELECT i, k, row_number() OVER (PARTITION BY k ORDER BY i) n FROM few) q \
                WHERE n = 1";
            expect(&ask(client, sql), sql, "10");
        }
        _ => {
            client
                .send("SELECT a.i, repeat('y', 500) FROM few a JOIN few b ON a.k = b.k")
                .expect("it is sent");
            counts.left.fetch_add(1, Ordering::Relaxed);
            return false;
        }
    }
    counts.done.fetch_add(1, Ordering::Relaxed);
    true
}

/// Looks at the server until the sessions have ended: the most helpers and bytes that it has seen.
fn watch(port: u16, over: &AtomicBool) -> (u64, u64) {
    let mut client = Client::connect(port).expect("the server takes connections");
    let (mut helpers, mut bytes) = (0, 0);
    let number = |client: &mut Client, sql: &str| client.one(sql).parse::<u64>().expect("a number");
    while !over.load(Ordering::Acquire) {
        let running =
            "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'parallel worker'";
        helpers = helpers.max(number(&mut client, running));
        let held = "SELECT greatest(sum(used_bytes), 0)::int8 FROM pg_stat_session_memory";
        bytes = bytes.max(number(&mut client, held));
        std::thread::sleep(Duration::from_millis(20));
    }
    (helpers, bytes)
}

/// All sessions, each for so many statements or until the time is over.
fn soak(name: &str, statements: u64, time: Duration) {
    let dir = TempDir::new(name);
    let helpers = format!("max_parallel_workers={MOST_HELPERS}");
    let memory = format!("server_memory_limit={MEMORY_LIMIT_MB}MB");
    let settings = ["autovacuum=off", "max_connections=2000", &helpers, &memory, STUCK];
    let server = Server::start(dir.path(), &settings);
    server.query("CREATE TABLE few AS SELECT i, i % 10 AS k FROM generate_series(1, 2000) i");
    let port = server.port;
    let mut last = Client::connect(port).expect("the server takes connections");
    let before = footprint::await_quiet(&server, &mut last, 0);
    let (counts, over) = (Counts::default(), AtomicBool::new(false));
    let barrier = Barrier::new(SESSIONS as usize);
    let began = Instant::now();
    let (most_helpers, most_bytes) = std::thread::scope(|scope| {
        let session = |n: u64, mut client: Client| {
            let (counts, barrier) = (&counts, &barrier);
            move || {
                barrier.wait();
                for turn in 0..statements {
                    if turn > 0 && began.elapsed() > time {
                        break;
                    }
                    if !act(&mut client, (n + turn * 7) % KINDS, counts) {
                        client = connect(port);
                    }
                }
            }
        };
        let clients: Vec<Client> = (0..SESSIONS).map(|_| connect(port)).collect();
        let sessions: Vec<_> = (0..SESSIONS)
            .zip(clients)
            .map(|(n, client)| {
                let thread = std::thread::Builder::new().stack_size(256 << 10);
                thread.spawn_scoped(scope, session(n, client)).expect("there are threads enough")
            })
            .collect();
        let watcher = scope.spawn(|| watch(port, &over));
        let ended: Vec<_> = sessions.into_iter().map(|session| session.join()).collect();
        over.store(true, Ordering::Release);
        let seen = watcher.join().expect("the watching session goes on");
        assert!(ended.iter().all(Result::is_ok), "a session has failed");
        seen
    });
    let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
    println!(
        "{} statements done, {} failed as they should, {} left behind in {:.1} s; at most {most_helpers} helpers, \
         {} MB",
        count(&counts.done),
        count(&counts.failed),
        count(&counts.left),
        began.elapsed().as_secs_f64(),
        most_bytes >> 20
    );
    assert!(most_helpers <= MOST_HELPERS, "{most_helpers} helpers at a time");
    assert!(most_bytes <= MEMORY_LIMIT_MB << 20, "{most_bytes} bytes");
    last.await_one(
        "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'parallel worker'",
        "0",
    );
    footprint::await_same(&server, &mut last, before);
    assert_eq!(last.one("SELECT count(*) FROM few"), "2000");
    drop(last);
    assert!(server.stop());
}

#[test]
fn a_thousand_sessions_with_helpers_end_within_their_limits() {
    soak("parallel-soak-short", 3, Duration::from_secs(100));
}

#[test]
#[ignore = "make soak"]
fn a_thousand_sessions_with_helpers_for_long() {
    let seconds = std::env::var("SOAK_SECONDS").ok().and_then(|n| n.parse().ok()).unwrap_or(600);
    soak("parallel-soak", u64::MAX, Duration::from_secs(seconds));
}
