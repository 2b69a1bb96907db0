//! `lab incident --locks`: 200,000 heavyweight locks held by 2,000 sessions at once, with no setting
//! changed; `pg_locks` is counted meanwhile, and others go on with their work.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::client::Client;
use super::machine::{BUSY, Machine};
use super::server::Server;
use crate::{Error, Result};

const SESSIONS: u32 = 2000;
/// Locks of one session: so many on relations, of a mode that goes the fast way, and so many advisory
/// ones, which are nobody else's.
const RELATIONS: u32 = 20;
const ADVISORY: u32 = 80;
/// Sessions that do other work.
const OTHERS: u32 = 4;
/// Times that `pg_locks` is counted, and how long the quickest may take: other work on the machine makes a count
/// slower, never quicker.
const COUNTS: usize = 7;
const COUNT_MOST: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_secs(3);

/// Runs it.
///
/// # Errors
/// A server that breaks down; locks that are missing; counting that takes too long on a machine that has nothing
/// else to do.
pub fn run() -> Result<()> {
    let server = Server::start(&[])?;
    let machine = Machine::look(server.pid());
    let mut first = server.connect()?;
    first.query("CREATE TABLE other (id int PRIMARY KEY, value int)")?;
    first.query("INSERT INTO other SELECT i, 0 FROM generate_series(1, 1000) AS i")?;
    for table in 0..RELATIONS {
        first.query(&format!("CREATE TABLE locked_{table} (id int)"))?;
    }
    let stop = AtomicBool::new(false);
    let done = AtomicU64::new(0);
    let found = std::thread::scope(|scope| {
        let others: Result<Vec<Client>> = (0..OTHERS).map(|_| server.connect()).collect();
        let others: Vec<_> = others?
            .into_iter()
            .enumerate()
            .map(|(number, client)| {
                let (stop, done) = (&stop, &done);
                scope.spawn(move || work(client, number, stop, done))
            })
            .collect();
        let outcome = hold(&server, &mut first, &done);
        stop.store(true, Relaxed);
        // Others that broke down make every rate above wrong.
        for other in others {
            other.join().map_err(|_| Error::new("a session that did other work panicked"))??;
        }
        outcome
    })?;
    let others = machine.others();
    if let Some(share) = others {
        let share = share * 100.0;
        println!("processors taken by others   {share:>8.0} % of their time");
    }
    judge(&found, others)
}

/// What was found.
struct Found {
    locks: f64,
    quickest: Duration,
}

/// Locks that are missing are wrong on any machine. A time is too long only where nothing else ran.
fn judge(found: &Found, others: Option<f64>) -> Result<()> {
    let wanted = f64::from(SESSIONS * (RELATIONS + ADVISORY));
    if found.locks < wanted {
        let text = format!("pg_locks showed {} locks; {wanted} are held", found.locks);
        return Err(Error::new(text));
    }
    let is_busy = others.is_some_and(|share| share >= BUSY);
    if is_busy {
        println!(
            "The machine was busy with other work: rates and times are worth little, and no verdict is given \
             on them."
        );
    }
    if found.quickest > COUNT_MOST && !is_busy {
        return Err(Error::new(format!(
            "counting pg_locks took {:.0} ms at least; less than {:.0} ms were wanted",
            ms(found.quickest),
            ms(COUNT_MOST)
        )));
    }
    Ok(())
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

fn hold(server: &Server, first: &mut Client, done: &AtomicU64) -> Result<Found> {
    let alone = rate(done);
    println!("others alone                 {alone:>8.0} transactions/s");
    let began = Instant::now();
    let sessions: Result<Vec<Client>> = (0..SESSIONS).map(|n| lock(server, n)).collect();
    let mut sessions = sessions?;
    let taken = began.elapsed();
    println!("2,000 sessions with their locks {:>5.1} s", taken.as_secs_f64());

    let (locks, times) = count(first)?;
    let (quickest, median, slowest) = (times[0], times[COUNTS / 2], times[COUNTS - 1]);
    println!(
        "pg_locks counted             {locks:>8.0} locks, {:.0} to {:.0} ms, median {:.0} ms",
        ms(quickest),
        ms(slowest),
        ms(median)
    );
    let beside = rate(done);
    let share = match alone > 0.0 {
        true => format!("{:.2} of before", beside / alone),
        false => "none before".to_owned(),
    };
    println!("others meanwhile             {beside:>8.0} transactions/s, {share}");

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
    Ok(Found { locks, quickest })
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

/// Counts `pg_locks` some times: the least count, and the times in order.
fn count(client: &mut Client) -> Result<(f64, [Duration; COUNTS])> {
    let mut least = f64::INFINITY;
    let mut times = [Duration::ZERO; COUNTS];
    for time in &mut times {
        let began = Instant::now();
        least = least.min(client.number("SELECT count(*) FROM pg_locks")?);
        *time = began.elapsed();
    }
    times.sort_unstable();
    Ok((least, times))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_machine_excuses_times_and_no_missing_locks() {
        let found = |locks, ms| Found { locks, quickest: Duration::from_millis(ms) };
        let (idle, busy) = (Some(0.02), Some(0.6));
        assert!(judge(&found(202_000.0, 300), idle).is_ok());
        let slow = judge(&found(202_000.0, 1300), idle).unwrap_err().to_string();
        assert!(slow.contains("1300 ms at least"), "{slow}");
        assert!(judge(&found(202_000.0, 1300), busy).is_ok());
        let missing = judge(&found(199_999.0, 300), busy).unwrap_err().to_string();
        assert!(missing.contains("199999 locks"), "{missing}");
    }
}
