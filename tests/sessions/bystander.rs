//! What a bystander feels of statements that work on much: for how much processor time each of
//! `tests/bystander/statements.sql` holds its worker at most before others get a turn, how long the worst `SELECT 1` takes
//! beside one session that runs it and beside 50, on known and new connections, how often workers were given to
//! other threads for it meanwhile (`worker_hold_limit`), and how long after its time-out it ends.
//!
//! All are figures of a machine, so the long forms print a table and assert nothing (`make bench-bystander`):
//!
//! ```text
//! BYSTANDER=word           only statements with this word
//! BYSTANDER_SECONDS=n      how long 50 sessions run each statement (0: one session only)
//! BYSTANDER_TIMEOUT=ms     the statements' time-out
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::support::client::Client;
use crate::support::{Server, TempDir};

/// Sessions that run a statement at a time.
const CROWD: usize = 50;

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
    for extension in ["pg_trgm", "hstore"] {
        client.one(&format!("CREATE EXTENSION IF NOT EXISTS {extension}"));
    }
    let timeout = std::env::var("BYSTANDER_TIMEOUT").ok().and_then(|s| s.parse().ok());
    let timeout: u64 = timeout.unwrap_or(2_000);
    client.one(&format!("SET statement_timeout = {timeout}"));
    let replacements = "SELECT sum(replacements) FROM pg_stat_workers";
    let mut table = Vec::new();
    for sql in statements() {
        let known = turns(&server).len();
        let before: u64 = client.one(replacements).parse().expect("a number");
        let (beside_one, (time, answer)) = worst_select(&server, || {
            let began = Instant::now();
            let answer = client.query(sql);
            (began.elapsed(), answer)
        });
        let error = answer.expect("the server goes on").error;
        let late = time.saturating_sub(Duration::from_millis(timeout));
        let turn = turns(&server).split_off(known).into_iter().filter(|(_, text)| text == sql);
        let turn = turn.map(|(ms, _)| ms).fold(0.0, f64::max);
        let beside_crowd = match seconds {
            0 => None,
            _ => Some(beside_a_crowd(&server, sql, Duration::from_secs(seconds))),
        };
        let after: u64 = client.one(replacements).parse().expect("a number");
        table.push((beside_one, beside_crowd, turn, after - before, late, sql, error));
    }
    table.sort_by_key(|row| std::cmp::Reverse(row.0));
    let ms = |time: Duration| format!("{:.1}", time.as_secs_f64() * 1e3);
    println!(
        "{:>10} {:>10} {:>10} {:>8} {:>9}  statement",
        "beside one", "beside 50", "turn (ms)", "replaced", "late (ms)"
    );
    for (one, crowd, turn, replaced, late, sql, error) in table {
        let crowd = crowd.map_or_else(String::new, ms);
        let error = error.map_or_else(String::new, |(code, _)| format!("  ({code})"));
        let (one, late) = (ms(one), ms(late));
        println!("{one:>10} {crowd:>10} {turn:>10.1} {replaced:>8} {late:>9}  {sql}{error}");
    }
    assert!(server.stop());
}

/// The longest `SELECT 1` of others while `work` is done, on connections that were there and on new ones.
fn worst_select<R>(server: &Server, work: impl FnOnce() -> R) -> (Duration, R) {
    const OTHERS: usize = 4;
    let over = AtomicBool::new(false);
    let longest = |client: &mut Client| {
        let mut worst = Duration::ZERO;
        while !over.load(Ordering::Relaxed) {
            let began = Instant::now();
            client.one("SELECT 1");
            worst = worst.max(began.elapsed());
            let began = Instant::now();
            let mut new = Client::connect(server.port).expect("the server listens");
            new.one("SELECT 1");
            worst = worst.max(began.elapsed());
            // Beside it, not instead of it.
            std::thread::sleep(Duration::from_millis(2));
        }
        worst
    };
    let connect = |_| Client::connect(server.port).expect("the server listens");
    let mut others: Vec<Client> = (0..OTHERS).map(connect).collect();
    std::thread::scope(|scope| {
        let others: Vec<_> =
            others.iter_mut().map(|client| scope.spawn(|| longest(client))).collect();
        let result = work();
        over.store(true, Ordering::Relaxed);
        let worst = others.into_iter().map(|other| other.join().expect("it is answered")).max();
        (worst.unwrap_or_default(), result)
    })
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
    let (worst, ()) = worst_select(server, || std::thread::sleep(time));
    over.store(true, Ordering::Relaxed);
    crowd.into_iter().for_each(|session| session.join().expect("it ends"));
    worst
}
