//! `lab incident --locks`: 200,000 heavyweight locks held by 2,000 sessions at once, with no setting
//! changed; `pg_locks` is counted meanwhile, and others go on with their work.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::client::Client;
use super::server::Server;
use crate::{Error, Result};

const SESSIONS: u32 = 2000;
/// Locks of one session: so many on relations, of a mode that goes the fast way, and so many advisory
/// ones, which are nobody else's.
const RELATIONS: u32 = 20;
const ADVISORY: u32 = 80;
/// Sessions that do other work.
const OTHERS: u32 = 4;
/// How long it may take to count `pg_locks`.
const COUNT_MOST: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_secs(3);

/// Runs it.
///
/// # Errors
/// A server that breaks down; counting that takes too long.
pub fn run() -> Result<()> {
    let server = Server::start(&[])?;
    let mut first = server.connect()?;
    first.query("CREATE TABLE other (id int PRIMARY KEY, value int)")?;
    first.query("INSERT INTO other SELECT i, 0 FROM generate_series(1, 1000) AS i")?;
    for table in 0..RELATIONS {
        first.query(&format!("CREATE TABLE locked_{table} (id int)"))?;
    }
    let stop = AtomicBool::new(false);
    let done = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let others: Result<Vec<Client>> = (0..OTHERS).map(|_| server.connect()).collect();
        for (number, client) in others?.into_iter().enumerate() {
            let (stop, done) = (&stop, &done);
            scope.spawn(move || work(client, number, stop, done));
        }
        let outcome = hold(&server, &mut first, &done);
        stop.store(true, Relaxed);
        outcome
    })
}

/// Others' work: one row changed in each transaction.
fn work(mut client: Client, number: usize, stop: &AtomicBool, done: &AtomicU64) -> Result<()> {
    let sql = format!("UPDATE other SET value = value + 1 WHERE id = {}", number + 1);
    while !stop.load(Relaxed) {
        client.query(&sql)?;
        done.fetch_add(1, Relaxed);
    }
    Ok(())
}

/// Transactions of the others in a second.
fn rate(done: &AtomicU64) -> f64 {
    let (before, began) = (done.load(Relaxed), Instant::now());
    std::thread::sleep(LOOK);
    (done.load(Relaxed) - before) as f64 / began.elapsed().as_secs_f64()
}

fn hold(server: &Server, first: &mut Client, done: &AtomicU64) -> Result<()> {
    let alone = rate(done);
    println!("others alone                 {alone:>8.0} transactions/s");
    let began = Instant::now();
    let sessions: Result<Vec<Client>> = (0..SESSIONS).map(|n| lock(server, n)).collect();
    let mut sessions = sessions?;
    let taken = began.elapsed();
    println!("2,000 sessions with their locks {:>5.1} s", taken.as_secs_f64());

    let (count, slowest) = count(first)?;
    println!("pg_locks counted             {count:>8.0} locks, at most {:.0} ms", ms(slowest));
    let beside = rate(done);
    println!(
        "others meanwhile             {beside:>8.0} transactions/s, {:.2} of before",
        beside / alone
    );

    let began = Instant::now();
    let mut longest = Duration::ZERO;
    for session in &mut sessions {
        let one = Instant::now();
        session.query("COMMIT")?;
        longest = longest.max(one.elapsed());
    }
    println!(
        "100 locks released           {:>8.2} ms a session, at most {:.1} ms",
        ms(began.elapsed()) / f64::from(SESSIONS),
        ms(longest)
    );
    let wanted = f64::from(SESSIONS * (RELATIONS + ADVISORY));
    if count < wanted || slowest > COUNT_MOST {
        return Err(Error::new(format!("{wanted} locks in less than a second were wanted")));
    }
    Ok(())
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// One more session with a transaction that holds its locks.
fn lock(server: &Server, number: u32) -> Result<Client> {
    let mut client = server.connect()?;
    let tables: Vec<String> = (0..RELATIONS).map(|t| format!("locked_{t}")).collect();
    let from = number * ADVISORY;
    client.query(&format!(
        "BEGIN;
         LOCK TABLE {} IN ROW EXCLUSIVE MODE;
         SELECT count(pg_advisory_xact_lock(i)) FROM generate_series({}, {}) AS i",
        tables.join(", "),
        from + 1,
        from + ADVISORY
    ))?;
    Ok(client)
}

/// Counts `pg_locks` some times; the count and the longest time.
fn count(client: &mut Client) -> Result<(f64, Duration)> {
    let mut slowest = Duration::ZERO;
    let mut count = 0.0;
    for _ in 0..5 {
        let began = Instant::now();
        count = client.number("SELECT count(*) FROM pg_locks")?;
        slowest = slowest.max(began.elapsed());
    }
    Ok((count, slowest))
}
