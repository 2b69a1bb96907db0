//! Observation of the server under load: waits, stacks, commits, CPU and memory.
//!
//! A server that counts its waits (`pg_stat_wait_profile`) is asked at both ends of the measured time.
//! Others only show the present in `pg_stat_activity`; that is looked at ten times a second by one more
//! session, and each look stands for a tenth of a second.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::process::Processes;
use crate::driver::{Address, Connection, Edge, Failure};
use crate::results::{Point, Wait};
use crate::{Error, Result};

/// Time between two looks.
const INTERVAL: Duration = Duration::from_millis(100);
/// How long a server may take to add up the counts of sessions that have ended.
const SETTLE: Duration = Duration::from_secs(2);
/// How long until a server that has counted nothing is taken for one that doesn't count.
const FIRST: Duration = Duration::from_millis(200);

/// Waits for the client are the client's time, and those of type Activity mean that there is nothing to do.
const COUNTED: &str = "SELECT wait_event_type, wait_event, sum(count), sum(total_ms) \
    FROM pg_stat_wait_profile WHERE wait_event_type <> 'Activity' AND wait_event <> 'ClientRead' \
    GROUP BY 1, 2";
/// As above.
const SAMPLED: &str = "SELECT coalesce(wait_event_type, 'CPU'), coalesce(wait_event, 'running'), \
    count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND state <> 'idle' \
    AND wait_event IS DISTINCT FROM 'ClientRead' AND pid <> pg_backend_pid() GROUP BY 1, 2";
const COMMITS: &str = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()";

/// How a server tells of its waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// It counts them.
    Counted,
    /// They must be sampled.
    Sampled,
    /// Not at all.
    None,
}

/// A session that asks, and what it heard so far.
pub struct Observer {
    server: Option<Connection>,
    sampler: Option<(Arc<AtomicBool>, JoinHandle<Sampled>)>,
    profile: Profile,
    processes: Processes,
    waits: Vec<Wait>,
    before: BTreeMap<(String, String), (u64, f64)>,
    cpu: Option<f64>,
    memory: Option<u64>,
    commits: Option<(i64, u64)>,
}

struct Sampled {
    server: Connection,
    waits: BTreeMap<(String, String), u64>,
}

impl Observer {
    /// Logs in and sees what the server offers.
    ///
    /// # Errors
    /// It can't log in.
    pub fn new(address: &Address, more: Processes) -> Result<Observer, Failure> {
        let mut server = Connection::open(address)?;
        let profile = if server.query(COUNTED).is_ok_and(|rows| wide(&rows, 4)) {
            Profile::Counted
        } else if server.query(SAMPLED).is_ok_and(|rows| wide(&rows, 3)) {
            Profile::Sampled
        } else {
            Profile::None
        };
        Ok(Observer {
            server: Some(server),
            sampler: None,
            profile,
            processes: Processes::of(address).and(more),
            waits: Vec::new(),
            before: BTreeMap::new(),
            cpu: None,
            memory: None,
            commits: None,
        })
    }

    /// Notes the server's count of commits, before the load connects.
    pub fn before(&mut self) {
        self.commits = self.count_commits();
    }

    /// An end of the measured time.
    ///
    /// # Errors
    /// The session broke.
    pub fn edge(&mut self, edge: Edge) -> Result<()> {
        match edge {
            Edge::Begin => {
                self.cpu = self.processes.cpu();
                match self.profile {
                    Profile::Counted => self.before = self.counted()?,
                    Profile::Sampled => self.sample(),
                    Profile::None => {}
                }
            }
            Edge::End => {
                let now = self.processes.cpu();
                self.cpu = self.cpu.zip(now).map(|(before, now)| now - before);
                self.finish()?;
                self.memory = self.processes.memory();
            }
        }
        Ok(())
    }

    /// Adds what was seen to a point, after its load has gone.
    pub fn into_point(mut self, point: &mut Point) {
        point.server_cpu = self.cpu;
        point.server_memory = self.memory;
        point.waits = std::mem::take(&mut self.waits);
        let Some((before, asked)) = self.commits else { return };
        let started = Instant::now();
        loop {
            let Some((now, asked_now)) = self.count_commits() else { return };
            let grown = u64::try_from(now - before).unwrap_or(0);
            let commits = grown.saturating_sub(asked_now - asked);
            point.server_commits = (commits > 0).then_some(commits);
            let patience = if commits > 0 { SETTLE } else { FIRST };
            if commits >= point.all_transactions || started.elapsed() > patience {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The server's count, and how much this session had asked when it was taken.
    fn count_commits(&mut self) -> Option<(i64, u64)> {
        let server = self.server.as_mut()?;
        let asked = server.asked();
        let count = server.value(COMMITS).ok()??;
        Some((count.parse().ok()?, asked))
    }

    fn counted(&mut self) -> Result<BTreeMap<(String, String), (u64, f64)>> {
        let Some(server) = self.server.as_mut() else { return Ok(BTreeMap::new()) };
        let rows = server.query(COUNTED)?;
        let mut out = BTreeMap::new();
        for row in rows {
            let mut texts = row.into_iter().map(Option::unwrap_or_default);
            let mut text = || texts.next().unwrap_or_default();
            let key = (text(), text());
            let (count, ms) = (text().parse::<u64>(), text().parse::<f64>());
            let sum: &mut (u64, f64) = out.entry(key).or_default();
            sum.0 += count.unwrap_or(0);
            sum.1 += ms.unwrap_or(0.0) / 1000.0;
        }
        Ok(out)
    }

    /// Lets a thread look on with this session until [`Observer::finish`].
    fn sample(&mut self) {
        let Some(mut server) = self.server.take() else { return };
        let stop = Arc::new(AtomicBool::new(false));
        let flag = stop.clone();
        let thread = std::thread::spawn(move || {
            let mut waits = BTreeMap::new();
            while !flag.load(Ordering::Relaxed) {
                for row in server.query(SAMPLED).unwrap_or_default() {
                    if let [Some(kind), Some(event), Some(count)] = row.as_slice() {
                        let key = (kind.clone(), event.clone());
                        *waits.entry(key).or_default() += count.parse::<u64>().unwrap_or(0);
                    }
                }
                std::thread::sleep(INTERVAL);
            }
            Sampled { server, waits }
        });
        self.sampler = Some((stop, thread));
    }

    fn finish(&mut self) -> Result<()> {
        if let Some((stop, thread)) = self.sampler.take() {
            stop.store(true, Ordering::Relaxed);
            let seen = thread.join().map_err(|_| Error::new("the sampling thread panicked"))?;
            self.server = Some(seen.server);
            for ((kind, event), count) in seen.waits {
                let seconds = count as f64 * INTERVAL.as_secs_f64();
                self.waits.push(Wait { kind, event, count, seconds, sampled: true });
            }
        } else if self.profile == Profile::Counted {
            for (key, (count, seconds)) in self.counted()? {
                let (count_before, before) = self.before.get(&key).copied().unwrap_or_default();
                let (count, seconds) = (count.saturating_sub(count_before), seconds - before);
                if count > 0 || seconds > 0.0 {
                    let (kind, event) = key;
                    self.waits.push(Wait { kind, event, count, seconds, sampled: false });
                }
            }
        }
        self.waits.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        Ok(())
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        if let Some((stop, _)) = &self.sampler {
            stop.store(true, Ordering::Relaxed);
        }
    }
}

/// Whether all rows have so many columns, as far as the server understood the question.
fn wide(rows: &[Vec<Option<String>>], columns: usize) -> bool {
    rows.iter().all(|row| row.len() == columns)
}
