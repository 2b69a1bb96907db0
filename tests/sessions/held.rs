//! Statements that hold their workers and hear nobody: the workers' other sessions go on meanwhile, and so do the
//! statements afterwards. The fault points `hold` and `slow` stand for loops that look for no interrupts.
//!
//! ```text
//! HELD_TRANSACTIONS=n      transactions of each session under load
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::support::client::Client;
use crate::support::{Server, TempDir};

/// Holds its worker for a second when the point `sort` is armed so.
const HOLDS: &str =
    "SELECT string_agg(g::text, '') FROM (SELECT g FROM generate_series(1, 5) g ORDER BY g DESC) s";
/// Whether a run holds a worker just now.
const IS_HELD: &str = "SELECT max(away) > 0 FROM pg_stat_workers";
const IS_REPLACED: &str = "SELECT sum(replacements) > 0 FROM pg_stat_workers";

fn connect(server: &Server) -> Client {
    Client::connect(server.port).expect("the server listens")
}

/// A session that holds workers one time after the other, until it is dropped.
struct Holder {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Holder {
    fn start(server: &Server) -> Holder {
        let over = Arc::new(AtomicBool::new(false));
        let (mut client, is_over) = (connect(server), over.clone());
        let thread = std::thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                assert_eq!(client.one(HOLDS), "54321");
            }
        });
        Holder { over, thread: Some(thread) }
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join)
            && !std::thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

fn start(dir: &TempDir, settings: &[&str]) -> Server {
    let faults = ["debug_faults=sort=hold", "worker_hold_limit=20", "log_min_messages=log"];
    Server::start(&dir.path().join("data"), &[&faults, settings].concat())
}

#[test]
fn others_of_a_held_worker_are_served() {
    let dir = TempDir::new("held");
    let server = start(&dir, &["workers=1"]);
    let mut client = connect(&server);
    client.one("CREATE TABLE t AS SELECT 1 AS a");
    let (mut first, mut second, mut waits) = (connect(&server), connect(&server), connect(&server));
    let waiting = waits.one("SELECT pg_backend_pid()");
    let holder = Holder::start(&server);
    // Each of these is answered while the only worker's first thread is held.
    client.await_one(IS_HELD, "t");
    connect(&server).await_one(IS_HELD, "t");
    // Runs that are suspended there go on: a lock is given up and had, a sleep is cancelled.
    first.one("BEGIN");
    first.one("UPDATE t SET a = a + 1");
    second.send("UPDATE t SET a = a * 10").expect("it is sent");
    waits.send("SELECT pg_sleep(600)").expect("it is sent");
    let blocked = "SELECT count(*) FROM pg_stat_activity \
        WHERE wait_event_type = 'Lock' OR wait_event = 'PgSleep'";
    client.await_one(blocked, "2");
    client.await_one(IS_HELD, "t");
    first.one("COMMIT");
    assert!(second.answer().expect("the server answers").error.is_none());
    client.await_one(IS_HELD, "t");
    client.one(&format!("SELECT pg_cancel_backend({waiting})"));
    let error = waits.answer().expect("the server answers").error.expect("it is cancelled");
    assert_eq!(error.0, "57014");
    assert_eq!(client.one("SELECT a FROM t"), "20");
    drop(holder);
    client.await_one(IS_HELD, "f");
    let log = std::fs::read_to_string(server.dir.with_extension("log")).expect("there is a log");
    let said = |line: &str| line.contains("held: worker 0 for ") && line.ends_with(HOLDS);
    assert!(log.lines().any(said), "{log}");
    assert!(server.stop());
}

#[test]
fn the_limit_and_the_workers_change_while_workers_are_held() {
    let dir = TempDir::new("held-changes");
    // What stands on the command line can't be changed.
    let server = Server::start(&dir.path().join("data"), &["debug_faults=sort=hold"]);
    let mut client = connect(&server);
    let change = |client: &mut Client, name: &str, value: &str| {
        client.one(&format!("ALTER SYSTEM SET {name} = {value}"));
        client.one("SELECT pg_reload_conf()");
        let shown = format!("SELECT setting FROM pg_settings WHERE name = '{name}'");
        client.await_one(&shown, value);
    };
    change(&mut client, "workers", "2");
    change(&mut client, "worker_hold_limit", "20");
    let holders: Vec<Holder> = (0..3).map(|_| Holder::start(&server)).collect();
    client.await_one(IS_HELD, "t");
    for workers in ["1", "3", "2"] {
        change(&mut client, "workers", workers);
        client.await_one("SELECT count(*) FROM pg_stat_workers", workers);
        client.await_one(IS_HELD, "t");
    }
    for affinity in ["off", "follow", "bound"] {
        change(&mut client, "worker_affinity", affinity);
        client.await_one(IS_HELD, "t");
    }
    change(&mut client, "worker_hold_limit", "0");
    drop(holders);
    client.await_one(IS_HELD, "f");
    let count = "SELECT sum(replacements) FROM pg_stat_workers";
    let before = client.one(count);
    assert_eq!(client.one(HOLDS), "54321");
    assert_eq!(client.one(count), before, "it is switched off");
    assert!(server.stop());
}

#[test]
fn sessions_with_threads_of_their_own_hold_nobody() {
    let dir = TempDir::new("held-threads");
    let server = start(&dir, &["session_model=thread"]);
    let holder = Holder::start(&server);
    let mut client = connect(&server);
    client.one(HOLDS);
    assert_eq!(client.one(IS_REPLACED), "f");
    drop(holder);
    assert!(server.stop());
}

/// Transfers between accounts, with points that hold workers within statements and under latches.
#[test]
fn nothing_is_lost_while_workers_are_replaced() {
    const SESSIONS: u64 = 12;
    const ACCOUNTS: u64 = 20;
    let transactions = std::env::var("HELD_TRANSACTIONS").ok().and_then(|n| n.parse().ok());
    let transactions: u64 = transactions.unwrap_or(60);
    let dir = TempDir::new("held-load");
    let faults = "debug_faults=execute=slow/7,heap_update=slow/11,lock_wait=slow/3,commit=slow/13";
    let settings = ["workers=2", "worker_hold_limit=2", faults];
    let server = Server::start(&dir.path().join("data"), &settings);
    let mut client = connect(&server);
    client.one("CREATE TABLE account (id int PRIMARY KEY, amount int)");
    client.one("CREATE TABLE done (session int, number int)");
    client.one(&format!("INSERT INTO account SELECT g, 0 FROM generate_series(1, {ACCOUNTS}) g"));
    let sessions: Vec<_> = (0..SESSIONS)
        .map(|session| {
            let mut client = connect(&server);
            std::thread::spawn(move || {
                for number in 0..transactions {
                    // In one order, so that nobody waits for ever.
                    let from = 1 + (session * 7 + number * 3) % (ACCOUNTS - 1);
                    let to = from + 1 + (number % (ACCOUNTS - from));
                    client.one("BEGIN");
                    client
                        .one(&format!("UPDATE account SET amount = amount - 1 WHERE id = {from}"));
                    client.one(&format!("UPDATE account SET amount = amount + 1 WHERE id = {to}"));
                    client.one(&format!("INSERT INTO done VALUES ({session}, {number})"));
                    client.one("COMMIT");
                }
            })
        })
        .collect();
    sessions.into_iter().for_each(|session| session.join().expect("all its statements succeed"));
    assert_eq!(client.one("SELECT sum(amount) FROM account"), "0");
    let done = client.one("SELECT count(DISTINCT (session, number)) FROM done");
    assert_eq!(done, (SESSIONS * transactions).to_string());
    assert_eq!(client.one(IS_REPLACED), "t");
    client.await_one(IS_HELD, "f");
    assert!(server.stop());
}
