//! The two crowds of a part: readers that look up one small table's rows by its index without
//! pause, and writers that add rows to another table at a steady pace.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::client::Client;
use super::server::Server;
use crate::Result;

/// Rows of the table that is read: an index of a root and some leaves.
const HOT_ROWS: u32 = 2000;
/// Look-ups in one statement of a reader: it lasts for several of the kernel's slices, so that readers
/// lose their core while they hold the partition.
const LOOKUPS: u32 = 300;
/// Bytes of a row that is added: two to a page, so that the table is extended all the time.
const ROW_BYTES: u32 = 3000;

/// What the crowds have done, and what they are at.
pub struct Load {
    began: Instant,
    stop: AtomicBool,
    /// Statements of readers that have ended.
    pub reads: AtomicU64,
    /// INSERTs that have ended.
    pub inserts: AtomicU64,
    /// The longest INSERT that has ended, in microseconds.
    longest_us: AtomicU64,
    /// For each writer: when its INSERT began, in microseconds plus 1; 0: it has none under way.
    under_way: Vec<AtomicU64>,
}

/// The tables.
///
/// # Errors
/// The server's.
pub fn prepare(server: &Server) -> Result<()> {
    let mut client = server.connect()?;
    client.query(&format!(
        "CREATE TABLE hot (id int PRIMARY KEY, value int);
         INSERT INTO hot SELECT i, i FROM generate_series(1, {HOT_ROWS}) AS i;
         CREATE TABLE grows (filler char({ROW_BYTES}))"
    ))?;
    client.query("VACUUM ANALYZE hot")?;
    Ok(())
}

impl Load {
    /// None yet, with so many writers.
    pub fn new(writers: u32) -> Load {
        Load {
            began: Instant::now(),
            stop: AtomicBool::new(false),
            reads: AtomicU64::new(0),
            inserts: AtomicU64::new(0),
            longest_us: AtomicU64::new(0),
            under_way: (0..writers).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// The crowds end after the statement that they are at.
    pub fn stop(&self) {
        self.stop.store(true, Relaxed);
    }

    /// A reader's life.
    pub fn read(&self, mut client: Client) -> Result<()> {
        client.query("SET enable_hashjoin = off; SET enable_mergejoin = off")?;
        let sql = format!(
            "SELECT sum(hot.value) FROM generate_series(1, {LOOKUPS}) AS i JOIN hot ON hot.id = i"
        );
        while !self.stop.load(Relaxed) {
            client.query(&sql)?;
            self.reads.fetch_add(1, Relaxed);
        }
        Ok(())
    }

    /// A writer's life: an INSERT every `pace`, or at once when the last one took longer.
    pub fn write(&self, number: usize, mut client: Client, pace: Duration) -> Result<()> {
        let mut next = Instant::now();
        while !self.stop.load(Relaxed) {
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
            next = (next + pace).max(Instant::now());
            let began = Instant::now();
            let place = &self.under_way[number];
            place.store((began - self.began).as_micros() as u64 + 1, Relaxed);
            client.query("INSERT INTO grows VALUES ('x')")?;
            place.store(0, Relaxed);
            self.longest_us.fetch_max(began.elapsed().as_micros() as u64, Relaxed);
            self.inserts.fetch_add(1, Relaxed);
        }
        Ok(())
    }

    /// How long the INSERTs under way have taken so far.
    pub fn ages(&self) -> Vec<Duration> {
        let now = self.began.elapsed();
        let age = |began: u64| now.saturating_sub(Duration::from_micros(began - 1));
        self.under_way.iter().map(|w| w.load(Relaxed)).filter(|b| *b > 0).map(age).collect()
    }

    /// The longest INSERT so far, ended or not.
    pub fn longest(&self) -> Duration {
        let ended = Duration::from_micros(self.longest_us.load(Relaxed));
        self.ages().into_iter().fold(ended, Duration::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_insert_under_way_counts_with_its_age() {
        let load = Load::new(2);
        assert_eq!(load.longest(), Duration::ZERO);
        load.longest_us.store(1, Relaxed);
        assert_eq!(load.longest(), Duration::from_micros(1));
        load.under_way[1].store(1, Relaxed);
        while load.longest() <= Duration::from_micros(1) {}
        assert_eq!(load.ages().len(), 1);
    }
}
