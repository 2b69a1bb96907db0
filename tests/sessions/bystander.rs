//! What a bystander feels of statements that work on much: for how much processor time each of
//! `tests/bystander/statements.sql` holds its worker at most before others get a turn, and how long the worst
//! `SELECT 1` takes beside 50 sessions that run it.
//!
//! Both are figures of a machine, so the long forms print a table and assert nothing (`make bench-bystander`):
//!
//! ```text
//! BYSTANDER=word           only statements with this word
//! BYSTANDER_SECONDS=n      how long 50 sessions run each statement (0: turns only)
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::support::client::Client;
use crate::support::{Server, TempDir};

/// Sessions that run a statement at a time.
const CROWD: usize = 50;

/// Milliseconds after which a statement of the table is cut off.
const LONGEST_MS: u32 = 20_000;

fn statements() -> Vec<&'static str> {
    let word = std::env::var("BYSTANDER").unwrap_or_default();
    include_str!("../bystander/statements.sql")
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("--"))
        .filter(|line| line.contains(&word))
        .collect()
}

fn start(dir: &TempDir) -> Server {
    Server::start(&dir.path().join("data"), &["log_worker_slice=0", "log_min_messages=log"])
}

/// The turns that the log has, in milliseconds, with their statements.
fn turns(server: &Server) -> Vec<(f64, String)> {
    let log = std::fs::read_to_string(server.dir.with_extension("log")).expect("there is a log");
    let turn = |line: &str| {
        let (_, rest) = line.split_once("slice: ")?;
        let (ms, text) = rest.split_once(" ms  statement: ")?;
        Some((ms.parse().ok()?, text.to_owned()))
    };
    log.lines().filter_map(turn).collect()
}

#[test]
fn the_log_says_for_how_long_a_worker_was_held() {
    let dir = TempDir::new("bystander-log");
    let server = Server::start(&dir.path().join("data"), &["log_min_messages=log"]);
    let mut client = Client::connect(server.port).expect("the server listens");
    client.one("SELECT 2");
    client.one("ALTER SYSTEM SET log_worker_slice = 0");
    client.one("SELECT pg_reload_conf()");
    client.await_one("SHOW log_worker_slice", "0");
    let loops = "SELECT sum(g) FROM generate_series(1, 100000) g";
    client.one(loops);
    client.one("SELECT 1");
    let turns = turns(&server);
    let of = |sql: &str| turns.iter().find(|(_, text)| text == sql).map(|(ms, _)| *ms);
    assert!(of(loops).is_some_and(|ms| ms > 0.0), "{turns:?}");
    assert!(of("SELECT 1").is_some() && of("SELECT 2").is_none(), "{turns:?}");
    assert!(server.stop());
}

#[test]
#[ignore = "minutes; prints a table"]
fn bench_bystander() {
    let seconds = std::env::var("BYSTANDER_SECONDS").ok().and_then(|s| s.parse().ok());
    let seconds: u64 = seconds.unwrap_or(0);
    let dir = TempDir::new("bystander");
    let server = start(&dir);
    let mut client = Client::connect(server.port).expect("the server listens");
    for extension in ["pg_trgm", "hstore"] {
        client.query(&format!("CREATE EXTENSION {extension}")).expect("the server goes on");
    }
    client.one(&format!("SET statement_timeout = {LONGEST_MS}"));
    let mut table = Vec::new();
    for sql in statements() {
        let known = turns(&server).len();
        let answer = client.query(sql).expect("the server goes on");
        let turn =
            turns(&server).split_off(known).into_iter().map(|(ms, _)| ms).fold(0.0, f64::max);
        let worst = match seconds {
            0 => None,
            _ => Some(beside_a_crowd(&server, sql, Duration::from_secs(seconds))),
        };
        table.push((turn, worst, sql, answer.error));
    }
    table.sort_by(|a, b| b.0.total_cmp(&a.0));
    println!("{:>12} {:>12}  statement", "turn (ms)", "SELECT 1");
    for (turn, worst, sql, error) in table {
        let worst =
            worst.map_or_else(String::new, |w: Duration| format!("{:.1}", w.as_secs_f64() * 1e3));
        let error = error.map_or_else(String::new, |(code, _)| format!("  ({code})"));
        println!("{turn:>12.1} {worst:>12}  {sql}{error}");
    }
    assert!(server.stop());
}

/// The longest `SELECT 1` while a crowd runs a statement again and again.
fn beside_a_crowd(server: &Server, sql: &'static str, time: Duration) -> Duration {
    let over = Arc::new(AtomicBool::new(false));
    let crowd: Vec<_> = (0..CROWD)
        .map(|_| {
            let (over, port) = (over.clone(), server.port);
            std::thread::spawn(move || {
                let mut client = Client::connect(port).expect("the server listens");
                client.one("SET statement_timeout = 2000");
                while !over.load(Ordering::Relaxed) {
                    client.query(sql).expect("the server goes on");
                }
            })
        })
        .collect();
    let mut client = Client::connect(server.port).expect("the server listens");
    let (until, mut worst) = (Instant::now() + time, Duration::ZERO);
    while Instant::now() < until {
        let began = Instant::now();
        client.one("SELECT 1");
        worst = worst.max(began.elapsed());
    }
    over.store(true, Ordering::Relaxed);
    crowd.into_iter().for_each(|session| session.join().expect("it ends"));
    worst
}
