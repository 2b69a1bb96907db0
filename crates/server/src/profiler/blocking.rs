//! Blocking between sessions, now and in the past.
//!
//! Now: for a heavyweight lock everybody whose lock stands in the way, and who is next ahead in the
//! queue (those further ahead stand in that one's way; `pg_blocking_pids()` has them all); for every other
//! wait (latches too) the task that held the thing when the wait began.
//!
//! The past is a list of *episodes*: somebody waited behind somebody from then to then. It is fed
//! once a second: by looking at the waits that last, so that an hour's wait is one episode from its
//! first second on, and by the history of finished waits, for those that came and went between two
//! looks. (That history is bounded: when more waits than it holds end within a second, short
//! episodes may be missed.) Only waits of at least `blocking_history_threshold` count, and the
//! latest `blocking_history_size` episodes are kept.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use base::WaitEvent;
use base::settings::{live_int, setting};
use sched::clock::to_ns;
use sched::observe::{HistoryCursor, WaitRecord, history_since, is_idle, task_by_id};
use sched::{SpinLock, TaskRef, WaitObject};

use crate::profiler::object::object;
use crate::server::Server;

/// Somebody waits behind somebody.
pub struct Edge {
    /// The session that waits.
    pub waiting: TaskRef,
    /// The kind of wait.
    pub event: WaitEvent,
    /// For what.
    pub object: WaitObject,
    /// The session that blocks it.
    pub blocking: TaskRef,
    /// When the wait began.
    pub since: Instant,
    /// How many wait behind each other up to here: 1 where the one in the way does not wait. 0: not looked at
    /// ([`tree`] does).
    pub depth: i32,
}

/// All of them, now. Tasks are looked at one after the other, so the picture may be a little
/// blurred.
pub fn edges(server: &Server) -> Vec<Edge> {
    let tasks = sched::tasks();
    let by_pid: HashMap<i32, &TaskRef> =
        tasks.iter().filter(|t| t.pid() != 0).map(|t| (t.pid(), t)).collect();
    let mut edges = Vec::new();
    for task in &tasks {
        let Some((waiting, since)) = task.waiting() else { continue };
        if is_idle(waiting.event) {
            continue;
        }
        let mut blockers: Vec<TaskRef> = Vec::new();
        if waiting.event.info().kind == "Lock" {
            let pids = server.engine.txn.locks.next_blocking_pids(task.pid());
            blockers.extend(pids.iter().filter_map(|pid| by_pid.get(pid)).map(|t| (*t).clone()));
        }
        if blockers.is_empty() && waiting.blocker != 0 {
            blockers.extend(task_by_id(waiting.blocker));
        }
        blockers.retain(|b| b.id() != task.id());
        edges.extend(blockers.into_iter().map(|blocking| Edge {
            waiting: task.clone(),
            event: waiting.event,
            object: waiting.object,
            blocking,
            since,
            depth: 0,
        }));
    }
    edges
}

/// All of them with their depths, which takes longer the longer the queues are.
pub fn tree(server: &Server) -> Vec<Edge> {
    let mut edges = edges(server);
    let waits: Vec<(u64, u64)> = edges.iter().map(|e| (e.waiting.id(), e.blocking.id())).collect();
    for (edge, depth) in edges.iter_mut().zip(depths(&waits)) {
        edge.depth = depth;
    }
    edges
}

/// For each pair (who waits, behind whom): how long the longest chain below it is. A cycle, until its
/// deadlock is found, ends where it would come round.
fn depths(waits: &[(u64, u64)]) -> Vec<i32> {
    let mut behind: HashMap<u64, Vec<u64>> = HashMap::new();
    for (waiting, blocking) in waits {
        behind.entry(*waiting).or_default().push(*blocking);
    }
    let mut below: HashMap<u64, i32> = HashMap::new();
    waits.iter().map(|(_, blocking)| 1 + chain(*blocking, &behind, &mut below)).collect()
}

/// How many wait one behind the other from this task on; `below` has what is known. With a stack of its
/// own: a queue may have thousands.
fn chain(task: u64, behind: &HashMap<u64, Vec<u64>>, below: &mut HashMap<u64, i32>) -> i32 {
    /// Being looked at.
    const OPEN: i32 = -1;
    let (mut path, mut seen, mut cycle) = (vec![task], Vec::new(), false);
    while let Some(&task) = path.last() {
        let blockers = behind.get(&task).map_or(&[][..], Vec::as_slice);
        match below.get(&task) {
            None => {
                below.insert(task, OPEN);
                seen.push(task);
                path.extend(blockers.iter().filter(|b| !below.contains_key(*b)));
                continue;
            }
            Some(&OPEN) => {
                let lengths = blockers.iter().filter_map(|b| below.get(b)).copied();
                cycle |= lengths.clone().any(|length| length == OPEN);
                let longest = lengths.filter(|length| *length != OPEN).max();
                below.insert(task, longest.map_or(0, |length| length + 1));
            }
            Some(_) => {}
        }
        path.pop();
    }
    let length = below[&task];
    if cycle {
        // Where a cycle ends depends on where the look at it began.
        below.retain(|task, _| !seen.contains(task));
    }
    length
}

/// One who takes part.
#[derive(Clone, Debug, PartialEq)]
pub struct Party {
    /// Its number.
    pub pid: i32,
    /// Its `backend_type`.
    pub kind: &'static str,
    /// The statement that it ran.
    pub query: Arc<str>,
}

/// Somebody waited behind somebody. Times are microseconds since 2000.
#[derive(Clone, Debug, PartialEq)]
pub struct Episode {
    /// The session that waited.
    pub waiting: Party,
    /// The kind of wait.
    pub event: WaitEvent,
    /// For what, in words.
    pub object: Arc<str>,
    /// The session that blocked it.
    pub blocking: Party,
    /// When it began.
    pub started: i64,
    /// When it ended, or was last seen.
    pub ended: i64,
    /// It goes on.
    pub open: bool,
}

/// The past; see the module's documentation.
#[derive(Default)]
pub struct History {
    closed: SpinLock<VecDeque<Arc<Episode>>>,
    open: SpinLock<Vec<Arc<Episode>>>,
}

impl History {
    /// The closed episodes, oldest first, then those that go on.
    pub fn episodes(&self) -> Vec<Arc<Episode>> {
        let mut all: Vec<Arc<Episode>> = self.closed.lock().iter().cloned().collect();
        all.extend(self.open.lock().iter().cloned());
        all
    }

    fn close(&self, episodes: Vec<Episode>) {
        let most = live_int(setting::BLOCKING_HISTORY_SIZE) as usize;
        for episode in episodes {
            let episode = Arc::new(Episode { open: false, ..episode });
            let mut closed = self.closed.lock();
            closed.push_back(episode);
            let gone = if closed.len() > most { closed.pop_front() } else { None };
            drop(closed);
            drop(gone);
        }
        // After the setting was lowered.
        while self.closed.lock().len() > most {
            let gone = self.closed.lock().pop_front();
            drop(gone);
        }
    }
}

/// An episode by who waits, since when (on the scheduler's clock), and behind whom.
type Key = (u64, u64, u64);

/// Feeds the history.
#[derive(Default)]
pub struct Watcher {
    cursor: HistoryCursor,
    open: HashMap<Key, Episode>,
    /// When it looked last, in microseconds since 2000.
    looked: i64,
}

impl Watcher {
    /// The waits that have ended since this was last asked.
    pub fn finished(&mut self) -> Vec<WaitRecord> {
        history_since(&mut self.cursor, false)
    }

    /// One look, at who waits behind whom now and at the waits that have ended since the last.
    pub fn look(&mut self, server: &Server, edges: Vec<Edge>, finished: &[WaitRecord]) {
        let threshold = live_int(setting::BLOCKING_HISTORY_THRESHOLD).max(0) as u64;
        let history = &server.profiler.blocking;
        if live_int(setting::BLOCKING_HISTORY_SIZE) == 0 {
            self.open.clear();
            history.open.lock().clear();
            return history.close(Vec::new());
        }
        let now = crate::server::now();
        let present: Vec<Edge> = edges
            .into_iter()
            .filter(|e| e.since.elapsed() >= Duration::from_millis(threshold))
            .collect();
        let keys: HashSet<Key> = present.iter().map(key).collect();
        let mut closed = self.close(&keys, finished, now);
        for edge in &present {
            let looked = self.looked;
            let episode =
                self.open.entry(key(edge)).or_insert_with(|| begin(server, edge, looked, now));
            episode.ended = now;
        }
        let long = |r: &&WaitRecord| r.duration_ns / 1_000_000 >= threshold;
        let mut known: HashMap<i32, Vec<i64>> = HashMap::new();
        for episode in &closed {
            known.entry(episode.waiting.pid).or_default().push(episode.started);
        }
        for record in finished.iter().filter(|r| r.blocker != 0).filter(long) {
            let started = crate::server::micros(record.began());
            let of_task = known.get(&record.pid).map_or(&[][..], Vec::as_slice);
            if !of_task.iter().any(|known| (known - started).abs() < 1000) {
                closed.push(of_record(server, record));
            }
        }
        self.looked = now;
        let open: Vec<_> = self.open.values().cloned().map(Arc::new).collect();
        let old = std::mem::replace(&mut *history.open.lock(), open);
        drop(old);
        history.close(closed);
    }

    /// Takes out the episodes that no longer go on. Those whose wait is over end when it did; the
    /// others (somebody else is in the way now) when they were last seen.
    fn close(&mut self, present: &HashSet<Key>, finished: &[WaitRecord], now: i64) -> Vec<Episode> {
        let gone: Vec<Key> = self.open.keys().filter(|k| !present.contains(k)).copied().collect();
        let ends: HashMap<(u64, u64), i64> = finished
            .iter()
            .map(|r| {
                (
                    (r.task, r.began_ns),
                    crate::server::micros(r.began()) + (r.duration_ns / 1000) as i64,
                )
            })
            .collect();
        let mut closed = Vec::new();
        for key in gone {
            if let Some(mut episode) = self.open.remove(&key) {
                if let Some(end) = ends.get(&(key.0, key.1)) {
                    episode.ended = (*end).clamp(episode.started, now);
                }
                closed.push(episode);
            }
        }
        closed.sort_by_key(|e| e.ended);
        closed
    }
}

fn key(edge: &Edge) -> Key {
    (edge.waiting.id(), to_ns(edge.since), edge.blocking.id())
}

/// The session or thread with this number, and what it runs or ran last.
fn party(server: &Server, pid: i32, kind: &'static str) -> Party {
    let query =
        server.sessions.get(pid).map_or_else(|| "".into(), |e| e.activity().query.text().into());
    Party { pid, kind, query }
}

/// The one for which others wait, and the statement of its transaction that is in their way.
fn blocker(server: &Server, pid: i32, kind: &'static str, since: i64) -> Party {
    let query =
        server.sessions.get(pid).map_or_else(|| "".into(), |e| e.blocking_text(since).into());
    Party { pid, kind, query }
}

/// A new episode. One with another blocker than the wait had before begins at the last look.
fn begin(server: &Server, edge: &Edge, looked: i64, now: i64) -> Episode {
    let began = now - edge.since.elapsed().as_micros() as i64;
    let threshold = live_int(setting::BLOCKING_HISTORY_THRESHOLD).max(0) * 1000;
    // It would have been seen at the last look, had it stood in the way then.
    let later = looked != 0 && began + threshold < looked;
    Episode {
        waiting: party(server, edge.waiting.pid(), edge.waiting.kind()),
        event: edge.event,
        object: object(server, edge.object).into(),
        blocking: blocker(server, edge.blocking.pid(), edge.blocking.kind(), began),
        started: if later { looked } else { began },
        ended: now,
        open: true,
    }
}

/// The episode of a wait that is over.
fn of_record(server: &Server, record: &WaitRecord) -> Episode {
    let kind = |task: u64| task_by_id(task).map_or("client backend", |t| t.kind());
    let started = crate::server::micros(record.began());
    Episode {
        waiting: party(server, record.pid, kind(record.task)),
        event: record.event,
        object: object(server, record.object).into(),
        blocking: blocker(server, record.blocker_pid, kind(record.blocker), started),
        started,
        ended: started + (record.duration_ns / 1000) as i64,
        open: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_counts_the_chain() {
        // 4 behind 3 and 9, 3 behind 2, 2 behind 1.
        assert_eq!(depths(&[(2, 1), (3, 2), (4, 3), (4, 9)]), [1, 2, 3, 1]);
        assert_eq!(depths(&[(1, 2), (2, 1)]), [2, 2], "a cycle ends");
    }

    #[test]
    fn the_oldest_episodes_go() {
        let episode = |n: i32| Episode {
            waiting: Party { pid: n, kind: "client backend", query: "q".into() },
            event: WaitEvent::LockTransactionid,
            object: "".into(),
            blocking: Party { pid: 0, kind: "client backend", query: "".into() },
            started: 0,
            ended: 1,
            open: true,
        };
        let history = History::default();
        let most = live_int(setting::BLOCKING_HISTORY_SIZE) as i32;
        history.close((0..most + 10).map(episode).collect());
        let kept = history.episodes();
        assert_eq!(kept.len(), most as usize);
        assert_eq!(kept[0].waiting.pid, 10);
        assert!(kept.iter().all(|e| !e.open));
    }
}
