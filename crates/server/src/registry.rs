//! All sessions, by number: for cancel requests, `pg_stat_activity` and shutdown.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use base::usage::Usage;
use sched::{Interrupt, SpinLock, TaskRef, Workers};

use sql::secrets::without_secrets;
use subtle::ConstantTimeEq;

use crate::client_auth::tls::TlsInfo;
use crate::connection::Peer;
use crate::session::portal::PreparedStatement;
use crate::user_types::SessionTypes;

/// Longest text of a statement that is kept for `pg_stat_activity`.
const QUERY_BYTES: usize = 1024;
const SHARDS: usize = 64;

/// The activity of a session, as `pg_stat_activity.state` says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionActivity {
    /// The start-up packet hasn't come.
    Starting,
    /// Runs a statement.
    Active,
    /// Waits for a statement outside a transaction.
    Idle,
    /// The same inside one.
    IdleInTransaction,
    /// The same inside a failed one.
    IdleInFailed,
}

impl SessionActivity {
    /// The view's word.
    pub fn as_str(self) -> Option<&'static str> {
        match self {
            SessionActivity::Starting => None,
            SessionActivity::Active => Some("active"),
            SessionActivity::Idle => Some("idle"),
            SessionActivity::IdleInTransaction => Some("idle in transaction"),
            SessionActivity::IdleInFailed => Some("idle in transaction (aborted)"),
        }
    }
}

/// The statement that runs, or ran last, as others see it.
pub enum Query {
    /// Its text.
    Text(String),
    /// One that the session keeps: its text is looked at only when somebody asks.
    Prepared(Arc<PreparedStatement>),
}

impl Query {
    /// The text, or its beginning, without passwords.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Query::Text(text) => Cow::Borrowed(text),
            Query::Prepared(statement) => without_secrets(cut(&statement.text)),
        }
    }
}

/// A statement's text as far as it is shown.
fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(QUERY_BYTES)]
}

/// A copy has a text of its own: the session's statements stay the session's.
impl Clone for Query {
    fn clone(&self) -> Query {
        Query::Text(self.text().into_owned())
    }
}

impl std::fmt::Debug for Query {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.text().fmt(f)
    }
}

/// The part of a session that others may see. Times are microseconds since 2000-01-01 UTC; 0: none.
#[derive(Clone, Debug)]
pub struct Activity {
    /// The session's activity.
    pub state: SessionActivity,
    /// The user's name.
    pub user: Arc<str>,
    /// The database: name and oid.
    pub database: (Arc<str>, u32),
    /// `application_name`.
    pub application: String,
    /// The statement that runs, or ran last.
    pub query: Query,
    /// When the session began.
    pub session_start: i64,
    /// When the statement began.
    pub query_start: i64,
    /// When `state` changed.
    pub state_change: i64,
    /// The user's oid.
    pub user_oid: u32,
    /// Time of its statements that are over, microseconds.
    pub active_us: u64,
    /// The last statement that changed or locked something in a block, and the number of that transaction.
    writer: Option<(u64, Query)>,
}

/// Everything that a session has done so far.
#[derive(Clone, Debug)]
pub struct Reading {
    /// Its task, which no other session ever has.
    pub task: u64,
    /// Its number.
    pub pid: i32,
    /// The user's oid.
    pub user: u32,
    /// The database's.
    pub database: u32,
    /// `application_name`.
    pub application: String,
    /// Time of its statements, microseconds.
    pub active_us: u64,
    /// Transactions begun.
    pub transactions: u64,
    /// The resources that its statements used.
    pub used: Usage,
}

/// Readings of sessions that have ended that are kept until somebody takes them.
const DEPARTED_MAX: usize = 10_000;

/// Length of a long secret.
const LONG_SECRET_BYTES: usize = 32;

/// A session as the others see it.
pub struct Entry {
    /// Its number: `pg_backend_pid()`.
    pub pid: i32,
    /// The secret that a cancel request must know.
    short_secret: i32,
    /// The same, of a client that can repeat so much (protocol 3.2): then that one alone.
    pub long_secret: OnceLock<Box<[u8; LONG_SECRET_BYTES]>>,
    /// How the scheduler knows it.
    pub task: TaskRef,
    /// Where its client is.
    pub peer: Peer,
    /// Its encryption, once it is known.
    pub tls: OnceLock<TlsInfo>,
    /// Counted against `max_connections`.
    pub counted: AtomicBool,
    /// Identifier of the statement that runs, or ran last; 0: none.
    query_id: AtomicU64,
    /// Whether that statement changes or locks something.
    writes: AtomicBool,
    /// The oldest transaction that its last snapshot saw running.
    xmin: AtomicU64,
    activity: SpinLock<Activity>,
    /// When the running transaction began; 0: there is none.
    transaction_start: AtomicI64,
    /// How many transactions the session has begun.
    transactions: AtomicU64,
    /// The types that it knows of.
    pub types: Arc<SessionTypes>,
}

impl Entry {
    /// A session that has not said who it is, under its task's number.
    fn new(secret: i32, task: TaskRef, peer: Peer, now: i64) -> Entry {
        let activity = Activity {
            state: SessionActivity::Starting,
            user: Arc::default(),
            database: (Arc::default(), 0),
            application: String::new(),
            query: Query::Text(String::new()),
            session_start: now,
            query_start: 0,
            state_change: now,
            user_oid: 0,
            active_us: 0,
            writer: None,
        };
        Entry {
            pid: task.pid(),
            short_secret: secret,
            long_secret: OnceLock::new(),
            task,
            peer,
            tls: OnceLock::new(),
            counted: AtomicBool::new(false),
            query_id: AtomicU64::new(0),
            writes: AtomicBool::new(false),
            xmin: AtomicU64::new(0),
            activity: SpinLock::new(activity),
            transaction_start: AtomicI64::new(0),
            transactions: AtomicU64::new(0),
            types: Arc::default(),
        }
    }

    /// A copy of what it does now.
    pub fn activity(&self) -> Activity {
        self.activity.lock().clone()
    }

    /// Reads of what it does now, and when its transaction began (0: it has none): the two agree.
    pub fn look<R>(&self, read: impl Fn(&Activity) -> R) -> (R, i64) {
        loop {
            let start = self.transaction_start();
            let seen = read(&self.activity.lock());
            if self.transaction_start() == start {
                return (seen, start);
            }
        }
    }

    /// When its transaction began; 0: it has none.
    pub fn transaction_start(&self) -> i64 {
        self.transaction_start.load(Ordering::Acquire)
    }

    /// Says that the next transaction begins.
    pub fn begin_transaction(&self, now: i64) {
        // Only the session counts them. The number first: who sees it run sees which one runs.
        self.transactions.store(self.transactions.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.set_transaction_start(now);
    }

    /// The secret that a cancel request must know.
    pub fn secret(&self) -> Vec<u8> {
        match self.long_secret.get() {
            Some(long) => long.to_vec(),
            None => self.short_secret.to_be_bytes().to_vec(),
        }
    }

    /// Says when the transaction began; 0: it is over.
    pub fn set_transaction_start(&self, at: i64) {
        self.transaction_start.store(at, Ordering::Release);
    }

    /// Notes that a statement begins; whether the session had waited for it.
    pub fn begin_statement(&self, text: &str, now: i64) -> bool {
        let text = without_secrets(cut(text));
        let text = &*text;
        self.begin(now, |query| match query {
            Query::Text(known) if *known == text => None,
            Query::Text(known) => {
                known.clear();
                known.push_str(text);
                None
            }
            Query::Prepared(_) => Some(std::mem::replace(query, Query::Text(text.to_owned()))),
        })
    }

    /// The same for a prepared one.
    pub fn begin_prepared(&self, statement: &Arc<PreparedStatement>, now: i64) -> bool {
        self.begin(now, |query| match query {
            Query::Prepared(known) if Arc::ptr_eq(known, statement) => None,
            _ => Some(std::mem::replace(query, Query::Prepared(statement.clone()))),
        })
    }

    /// `change` gives what it took out, which ends outside of the lock.
    fn begin(&self, now: i64, change: impl FnOnce(&mut Query) -> Option<Query>) -> bool {
        self.identify(0);
        self.set_writes(false);
        let mut activity = self.activity.lock();
        let waited = std::mem::replace(&mut activity.state, SessionActivity::Active)
            != SessionActivity::Active;
        if !waited {
            activity.active_us += (now - activity.query_start).max(0) as u64;
        }
        activity.query_start = now;
        if waited {
            activity.state_change = now;
        }
        let before = change(&mut activity.query);
        drop(activity);
        drop(before);
        waited
    }

    /// Says which statement runs; waits are put down to it until [`Entry::end_statement`].
    pub fn identify(&self, query_id: u64) {
        self.task.set_statement(query_id);
        self.query_id.store(query_id, Ordering::Relaxed);
    }

    /// Says whether the statement that runs changes or locks something.
    pub fn set_writes(&self, writes: bool) {
        self.writes.store(writes, Ordering::Relaxed);
    }

    /// Notes that the statement that runs has changed or locked something in a block, which goes on.
    pub fn note_writer(&self) {
        let number = self.transactions.load(Ordering::Relaxed);
        let mut activity = self.activity.lock();
        let writer = match &activity.query {
            Query::Prepared(statement) => Query::Prepared(statement.clone()),
            Query::Text(text) => Query::Text(text.clone()),
        };
        let before = activity.writer.replace((number, writer));
        drop(activity);
        drop(before);
    }

    /// The statement for which others have waited since `since`: the one that runs, if it writes and the wait began after it; else the
    /// last one of the transaction that did; else the one that runs, or ran last.
    pub fn blocking_text(&self, since: i64) -> String {
        let (number, in_transaction) = self.transaction();
        let writes = self.writes.load(Ordering::Relaxed);
        let activity = self.activity.lock();
        let runs = activity.state == SessionActivity::Active;
        let writer = activity.writer.as_ref().filter(|(of, _)| in_transaction && *of == number);
        match writer {
            Some((_, writer)) if !(runs && writes && since >= activity.query_start) => {
                writer.text().into_owned()
            }
            _ => activity.query.text().into_owned(),
        }
    }

    /// Notes that a statement is over; `state` is what the session does now.
    pub fn end_statement(&self, state: SessionActivity, now: i64) {
        self.task.set_statement(0);
        let mut activity = self.activity.lock();
        if activity.state == SessionActivity::Active {
            activity.active_us += (now - activity.query_start).max(0) as u64;
        }
        (activity.state, activity.state_change) = (state, now);
    }

    /// Says which transactions its snapshot saw running: those from this one on.
    pub fn set_xmin(&self, xmin: u64) {
        self.xmin.store(xmin, Ordering::Relaxed);
    }

    /// The bound that [`Entry::set_xmin`] set last.
    pub fn xmin(&self) -> u64 {
        self.xmin.load(Ordering::Relaxed)
    }

    /// Identifier of the statement that runs, or ran last; 0: none.
    pub fn query_id(&self) -> u64 {
        self.query_id.load(Ordering::Relaxed)
    }

    /// The number of its last transaction, and whether that one is running.
    pub fn transaction(&self) -> (u64, bool) {
        let runs = self.transaction_start() != 0;
        (self.transactions.load(Ordering::Relaxed), runs)
    }

    /// Its work until now, the statement under way included; None: it has not said who it is.
    pub fn reading(&self, now: i64) -> Option<Reading> {
        let activity = self.activity.lock();
        if activity.user_oid == 0 || activity.state == SessionActivity::Starting {
            return None;
        }
        let under_way = match activity.state {
            SessionActivity::Active => (now - activity.query_start).max(0) as u64,
            _ => 0,
        };
        Some(Reading {
            task: self.task.id(),
            pid: self.pid,
            user: activity.user_oid,
            database: activity.database.1,
            application: activity.application.clone(),
            active_us: activity.active_us + under_way,
            transactions: self.transactions.load(Ordering::Relaxed),
            used: self.task.usage(),
        })
    }

    /// Changes what others see.
    pub fn update(&self, change: impl FnOnce(&mut Activity)) {
        change(&mut self.activity.lock());
    }
}

/// See the module's documentation.
pub struct Registry {
    shards: [SpinLock<HashMap<i32, Arc<Entry>>>; SHARDS],
    /// Those of background threads.
    background: SpinLock<Vec<Arc<Entry>>>,
    /// Sessions that count against `max_connections`.
    count: AtomicUsize,
    /// All connections, those that have not said who they are included.
    connections: AtomicUsize,
    /// The last readings of sessions that have ended.
    departed: SpinLock<Vec<Reading>>,
}

impl Default for Registry {
    fn default() -> Registry {
        Registry {
            shards: std::array::from_fn(|_| SpinLock::new(HashMap::new())),
            background: SpinLock::new(Vec::new()),
            count: AtomicUsize::new(0),
            connections: AtomicUsize::new(0),
            departed: SpinLock::new(Vec::new()),
        }
    }
}

impl Registry {
    fn shard(&self, pid: i32) -> &SpinLock<HashMap<i32, Arc<Entry>>> {
        &self.shards[pid as usize % SHARDS]
    }

    /// A number for a new session and its entry.
    pub fn add(&self, secret: i32, task: TaskRef, peer: Peer, now: i64) -> Arc<Entry> {
        self.connections.fetch_add(1, Ordering::AcqRel);
        loop {
            let pid = sched::next_pid();
            let mut shard = self.shard(pid).lock();
            if shard.contains_key(&pid) {
                continue;
            }
            task.set_pid(pid);
            let entry = Arc::new(Entry::new(secret, task, peer, now));
            shard.insert(pid, entry.clone());
            return entry;
        }
    }

    /// The entry of a background thread's sessions, one at a time, under the thread's number. Such sessions
    /// are in views alone: they can't be cancelled by number, and count against no limit.
    pub fn background(&self, task: &TaskRef, secret: i32, now: i64) -> Arc<Entry> {
        let mut background = self.background.lock();
        if let Some(known) = background.iter().find(|entry| Arc::ptr_eq(&entry.task, task)) {
            return known.clone();
        }
        // Those of threads that have ended.
        background.retain(|entry| Arc::strong_count(&entry.task) > 1);
        let peer = Peer { client: None, server: None };
        let entry = Arc::new(Entry::new(secret, task.clone(), peer, now));
        types::user::install(task, entry.types.clone());
        background.push(entry.clone());
        entry
    }

    /// The session that a background thread has now.
    pub fn session_of(&self, pid: i32) -> Option<Arc<Entry>> {
        let background = self.background.lock();
        let entry = background.iter().find(|entry| entry.pid == pid)?.clone();
        drop(background);
        let runs = entry.activity.lock().state != SessionActivity::Starting;
        runs.then_some(entry)
    }

    /// Counts a session against a limit; false when the limit is reached.
    pub fn admit(&self, entry: &Entry, limit: usize) -> bool {
        let admitted = self
            .count
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| (n < limit).then_some(n + 1))
            .is_ok();
        entry.counted.store(admitted, Ordering::Release);
        admitted
    }

    /// Takes a session out.
    pub fn remove(&self, entry: &Entry) {
        let removed = self.shard(entry.pid).lock().remove(&entry.pid);
        if removed.is_some() {
            self.connections.fetch_sub(1, Ordering::AcqRel);
            if entry.counted.swap(false, Ordering::AcqRel) {
                self.count.fetch_sub(1, Ordering::AcqRel);
            }
            if let Some(reading) = entry.reading(0) {
                let mut departed = self.departed.lock();
                if departed.len() < DEPARTED_MAX {
                    departed.push(reading);
                }
            }
        }
    }

    /// Takes the last readings of sessions that have ended since this was last asked.
    pub fn departed(&self) -> Vec<Reading> {
        std::mem::take(&mut *self.departed.lock())
    }

    /// Readings of all sessions.
    pub fn readings(&self, now: i64) -> Vec<Reading> {
        self.all().iter().filter_map(|entry| entry.reading(now)).collect()
    }

    /// The session with this number.
    pub fn get(&self, pid: i32) -> Option<Arc<Entry>> {
        self.shard(pid).lock().get(&pid).cloned()
    }

    /// All sessions, by number.
    pub fn all(&self) -> Vec<Arc<Entry>> {
        let mut all: Vec<_> = self
            .shards
            .iter()
            .flat_map(|s| s.lock().values().cloned().collect::<Vec<_>>())
            .collect();
        all.sort_by_key(|e| e.pid);
        all
    }

    /// Sessions that have said who they are.
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    /// Sessions of a role.
    pub fn count_of(&self, role: u32) -> usize {
        let of = |s: &SpinLock<HashMap<i32, Arc<Entry>>>| {
            s.lock().values().filter(|e| e.activity.lock().user_oid == role).count()
        };
        self.shards.iter().map(of).sum()
    }

    /// Sessions in a database.
    pub fn count_in(&self, database: u32) -> usize {
        let of = |s: &SpinLock<HashMap<i32, Arc<Entry>>>| {
            s.lock().values().filter(|e| e.activity.lock().database.1 == database).count()
        };
        self.shards.iter().map(of).sum()
    }

    /// Connections there are, whatever their state.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Acquire)
    }

    /// Cancels what a session runs, if the secret is right.
    pub fn cancel(&self, pid: i32, secret: &[u8]) {
        let is_right = |e: &Arc<Entry>| bool::from(e.secret().ct_eq(secret));
        if let Some(entry) = self.get(pid).filter(is_right) {
            entry.task.interrupt(Interrupt::Cancel);
        }
    }

    /// Asks every session to end.
    pub fn terminate_all(&self, workers: &Workers) {
        for entry in self.all() {
            entry.task.interrupt(Interrupt::Terminate);
            workers.wake(&entry.task);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOWHERE: Peer = Peer { client: None, server: None };

    #[test]
    fn sessions_are_counted_and_found_by_number() {
        let registry = Registry::default();
        let add = || registry.add(7, sched::Task::new("client backend"), NOWHERE, 0);
        let (a, b) = (add(), add());
        assert_ne!(a.pid, b.pid);
        assert!(registry.admit(&a, 1));
        assert!(!registry.admit(&b, 1));
        registry.remove(&b);
        assert!(registry.get(b.pid).is_none());
        registry.remove(&a);
        registry.remove(&a);
        let c = add();
        assert!(registry.admit(&c, 1), "a's place is free");
        assert_eq!(registry.connections(), 1);
    }

    #[test]
    fn long_statements_are_cut_at_a_character() {
        let registry = Registry::default();
        let entry = registry.add(7, sched::Task::new("client backend"), NOWHERE, 0);
        assert!(entry.begin_statement(&"é".repeat(QUERY_BYTES), 1));
        assert!(!entry.begin_statement(&"é".repeat(QUERY_BYTES), 2), "it was busy");
        assert_eq!(entry.activity().query.text(), "é".repeat(QUERY_BYTES / 2));
    }
}
