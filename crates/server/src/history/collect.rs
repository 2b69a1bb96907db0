//! A second of the server's life as a [`Slice`]: what was counted since the last.
//!
//! Nothing is counted for it on the way of a statement: it is the difference between two readings of what
//! sessions count in any case ([`crate::counters`], [`sched::observe`], [`base::usage`]).
//!
//! A statement that still runs is read from its task, and what it was given so is taken off when it ends
//! and is counted as a whole (running.rs).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use base::WaitEvent;
use base::usage::Usage;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use rustc_hash::FxHashMap;
use sched::observe::{ProfileKey, WaitRecord, is_idle, profile};
use sched::{TaskRef, WaitObject};

use super::clients::Client;
use super::disk::Disk;
use super::running::Running;
use super::sessions::Clients;
use super::slice::{Block, Count, Event, SessionNote, Slice, StatementSum, TableNote, WaitSum};
use super::tables::Relations;
use crate::counters::Relid;
use crate::profiler::blocking::Edge;
use crate::registry::{Entry, SessionActivity};
use crate::server::Server;
use crate::statements::StatementKey;
use crate::views::Names;

/// Tables are looked at every so many seconds.
const TABLES_EVERY: u64 = 5;
/// Names of objects are looked up anew after so many seconds.
const NAMES_KEPT: u64 = 60;
/// A session is noted when it is idle in its transaction, or runs a statement, for so long.
const NOTED_US: i64 = 1_000_000;
/// And when its transaction is so old.
const OLD_TRANSACTION_US: i64 = 5_000_000;

/// And when it holds so much memory, or a quarter of the limit.
const LARGE_BYTES: i64 = 64 << 20;

/// Longest text of an event that is made here.
const EVENT_BYTES_MAX: usize = 500;

/// Calls, milliseconds, nanoseconds waited, rows, and what was used.
type Reading = (u64, f64, u64, u64, Usage);

/// The readings that the next slice is compared with.
pub struct Collector {
    at: Instant,
    cpu_us: u64,
    machine_us: u64,
    storage: storage::Stats,
    plans: (u64, u64),
    databases: crate::counters::DatabaseCounts,
    statements: FxHashMap<StatementKey, Reading>,
    waits: FxHashMap<ProfileKey, (u64, u64)>,
    tables: HashMap<Relid, crate::counters::RelationStats>,
    names: HashMap<WaitObject, Arc<str>>,
    running: Running,
    clients: Clients,
    relations: Relations,
    disk: Disk,
    tick: u64,
}

/// Processor time of this process so far, microseconds.
fn process_us() -> u64 {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else { return 0 };
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    micros.max(0) as u64
}

/// Processor time of all processes so far, microseconds; 0 where the system doesn't say.
fn machine_us() -> u64 {
    /// A tick of `/proc/stat`.
    const TICK_US: u64 = 10_000;
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let Some(line) = text.lines().next() else { return 0 };
    let ticks: Vec<u64> = line.split_whitespace().skip(1).map_while(|w| w.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal
    let busy = ticks.iter().take(8).enumerate().filter(|(at, _)| !matches!(at, 3 | 4));
    busy.map(|(_, n)| n).sum::<u64>() * TICK_US
}

impl Collector {
    /// Begins now.
    pub fn new(server: &Server) -> Collector {
        let mut new = Collector {
            at: Instant::now(),
            cpu_us: process_us(),
            machine_us: machine_us(),
            storage: server.engine.storage.stats(),
            plans: server.engine.plans.counts(),
            databases: server.counters.database_totals(),
            statements: FxHashMap::default(),
            waits: FxHashMap::default(),
            tables: server.counters.relations(),
            names: HashMap::new(),
            running: Running::default(),
            clients: Clients::default(),
            relations: Relations::default(),
            disk: Disk::of(server.engine.storage.dir()),
            tick: 0,
        };
        let mut first = Slice::new(0, 1);
        new.statements(server, &mut first);
        new.clients.look(server, &mut first);
        new.waits(server, &HashMap::new(), &mut first);
        new
    }

    /// The time since the last call. `edges`: who waits behind whom now; `finished`: waits that ended since.
    pub fn collect(&mut self, server: &Server, edges: &[Edge], finished: &[WaitRecord]) -> Slice {
        let now = Instant::now();
        let passed = now.duration_since(self.at).max(Duration::from_millis(1));
        self.at = now;
        self.tick += 1;
        if self.tick.is_multiple_of(NAMES_KEPT) {
            self.names.clear();
        }
        let mut slice = Slice::new(crate::server::now(), passed.as_micros() as u64);
        self.totals(server, &mut slice);
        self.disk.look(&mut slice);
        self.statements(server, &mut slice);
        let clients = self.clients.look(server, &mut slice);
        self.waits(server, &clients, &mut slice);
        self.blocks(server, edges, finished, passed, &mut slice);
        sessions(server, &mut slice);
        if self.tick.is_multiple_of(TABLES_EVERY) {
            self.tables(server, &mut slice);
        }
        slice.events.extend(server.history.take_events());
        slice.plans = server.history.plans.take();
        for plan in slice.plans.iter().filter(|plan| !plan.before.is_empty()) {
            let text = format!("another plan of {}", plan.query);
            let text = text[..text.floor_char_boundary(EVENT_BYTES_MAX)].into();
            slice.events.push(Event { at: plan.at, kind: "plan".into(), pid: 0, text });
        }
        slice.events.sort_by_key(|event| event.at);
        slice.trim();
        slice
    }

    fn totals(&mut self, server: &Server, slice: &mut Slice) {
        let mut grown = |count, mine: &mut u64, now: u64| {
            slice.set(count, now.saturating_sub(*mine));
            *mine = now;
        };
        grown(Count::CpuUs, &mut self.cpu_us, process_us());
        grown(Count::MachineCpuUs, &mut self.machine_us, machine_us());
        let (hits, misses) = server.engine.plans.counts();
        grown(Count::PlansFound, &mut self.plans.0, hits);
        grown(Count::PlansMade, &mut self.plans.1, misses);
        let counts = server.counters.database_totals();
        let then = &mut self.databases;
        grown(Count::Connections, &mut then.sessions, counts.sessions);
        grown(Count::Commits, &mut then.commits, counts.commits);
        grown(Count::Rollbacks, &mut then.rollbacks, counts.rollbacks);
        grown(Count::Deadlocks, &mut then.deadlocks, counts.deadlocks);
        let now = server.engine.storage.stats();
        let then = &mut self.storage;
        let checkpoint_ns = (now.checkpoint_write_ns + now.checkpoint_sync_ns)
            .saturating_sub(then.checkpoint_write_ns + then.checkpoint_sync_ns);
        grown(Count::WalBytes, &mut then.wal_bytes, now.wal_bytes);
        grown(Count::WalRecords, &mut then.wal_records, now.wal_records);
        grown(Count::WalImages, &mut then.wal_images, now.wal_images);
        grown(Count::WalWrites, &mut then.wal_writes, now.wal_writes);
        grown(Count::WalSyncs, &mut then.wal_syncs, now.wal_syncs);
        grown(Count::WalWriteNs, &mut then.wal_write_ns, now.wal_write_ns);
        grown(Count::WalSyncNs, &mut then.wal_sync_ns, now.wal_sync_ns);
        grown(Count::WalBuffersFull, &mut then.wal_buffers_full, now.wal_buffers_full);
        grown(Count::CheckpointsTimed, &mut then.checkpoints_timed, now.checkpoints_timed);
        let requested = (Count::CheckpointsRequested, now.checkpoints_requested);
        grown(requested.0, &mut then.checkpoints_requested, requested.1);
        grown(Count::CheckpointPages, &mut then.checkpoint_pages, now.checkpoint_pages);
        grown(Count::PagesHit, &mut then.hits, now.hits);
        grown(Count::PagesRead, &mut then.reads, now.reads);
        grown(Count::PagesWritten, &mut then.writes, now.writes);
        let foreground = (Count::PagesWrittenForeground, now.foreground_writes);
        grown(foreground.0, &mut then.foreground_writes, foreground.1);
        grown(Count::Evictions, &mut then.evictions, now.evictions);
        grown(Count::PagesExtended, &mut then.extended, now.extended);
        self.storage = now;
        checkpoint(slice, checkpoint_ns);
        slice.set(Count::MemoryBytes, sched::memory::server_bytes().max(0) as u64);
        slice.set(Count::MemoryLimit, sched::memory::server_limit().max(0) as u64);
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        slice.set(Count::Processors, processors as u64);
    }

    fn statements(&mut self, server: &Server, slice: &mut Slice) {
        let all = server.counters.statements();
        for (key, now) in &all {
            let reading =
                (now.executions.count, now.executions.total, now.waited_ns, now.rows, now.usage);
            let then = self.statements.insert(*key, reading).unwrap_or_default();
            // After a reset counting begins anew.
            let then = if then.0 > reading.0 { Reading::default() } else { then };
            if reading.0 == then.0 && reading.1 == then.1 {
                continue;
            }
            let database = now.work.database;
            let mut sum = StatementSum::new(key.id, key.user, database, now.text.clone());
            sum.application = now.work.application.clone();
            sum.calls = reading.0 - then.0;
            sum.ns = ((reading.1 - then.1).max(0.0) * 1e6) as u64;
            sum.waited_ns = reading.2.saturating_sub(then.2).min(sum.ns);
            sum.rows = reading.3.saturating_sub(then.3);
            sum.used = reading.4.since(&then.4);
            slice.statements.push(sum);
        }
        if self.statements.len() > all.len() {
            self.statements.retain(|key, _| all.contains_key(key));
        }
        let texts: FxHashMap<u64, &Arc<str>> =
            all.iter().map(|(key, statement)| (key.id, &statement.text)).collect();
        self.running.look(server, slice, |id| texts.get(&id).map(|text| (*text).clone()));
        let active: u64 = slice.statements.iter().map(|s| s.ns / 1000).sum();
        slice.set(Count::ActiveUs, active);
    }

    /// `clients`: the places of sessions' clients, by the session's number.
    fn waits(&mut self, server: &Server, clients: &HashMap<i32, usize>, slice: &mut Slice) {
        let mut sums: FxHashMap<(WaitEvent, u64, WaitObject, usize), WaitSum> =
            FxHashMap::default();
        let mut waited_ns = vec![0u64; slice.clients.len()];
        let rows = profile();
        let known = rows.len();
        let mut seen = HashSet::with_capacity(if self.waits.len() > known { known } else { 0 });
        let shrinks = self.waits.len() > known;
        for row in rows {
            // Sums without a session are those of rows that were evicted: counted before, then moved.
            let Some(key) = row.key else { continue };
            if shrinks {
                seen.insert((key.pid, key.statement, key.event as u8, key.object));
            }
            if is_idle(row.event) || row.event == WaitEvent::TimeoutProfileSampling {
                continue;
            }
            let reading = (row.sums.count, row.sums.total_ns);
            let then = self.waits.insert(key, reading).unwrap_or_default();
            // A row that was evicted and came again.
            let then = if then.1 > reading.1 { (0, 0) } else { then };
            let ns = reading.1 - then.1;
            if ns == 0 {
                continue;
            }
            let at = clients.get(&key.pid).copied();
            if key.statement != 0 {
                self.relations.wait(key.object, ns);
                if let Some(at) = at {
                    waited_ns[at] += ns;
                }
            }
            let of = (key.event, key.statement, key.object, at.unwrap_or(usize::MAX));
            let sum = sums.entry(of).or_insert_with(|| WaitSum {
                event: key.event,
                statement: key.statement,
                object: Arc::default(),
                count: 0,
                ns: 0,
                longest_ns: 0,
                client: at.map_or_else(Client::default, |at| slice.clients[at].client.clone()),
            });
            sum.count += reading.0.saturating_sub(then.0);
            sum.ns += ns;
            sum.longest_ns = sum.longest_ns.max(ns.min(row.sums.longest_ns));
        }
        if shrinks {
            let is_there = |key: &ProfileKey| (key.pid, key.statement, key.event as u8, key.object);
            self.waits.retain(|key, _| seen.contains(&is_there(key)));
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.ns));
        sums.truncate(200);
        for (sum, waited_ns) in slice.clients.iter_mut().zip(waited_ns) {
            sum.waited_ns = waited_ns.min(sum.active_ns);
        }
        let mut names = None;
        for ((.., object, _), mut sum) in sums {
            sum.object = self.name(server, object, &mut names);
            slice.waits.push(sum);
        }
    }

    /// The name of a wait's object; latches have none that says anything.
    fn name(&mut self, server: &Server, object: WaitObject, names: &mut Option<Names>) -> Arc<str> {
        if matches!(object, WaitObject::None | WaitObject::Latch(_) | WaitObject::Task(_)) {
            return Arc::default();
        }
        let known = self.names.entry(object).or_insert_with(|| {
            names.get_or_insert_with(|| Names::of(server)).describe(object).into()
        });
        known.clone()
    }

    fn blocks(
        &mut self,
        server: &Server,
        edges: &[Edge],
        finished: &[WaitRecord],
        passed: Duration,
        slice: &mut Slice,
    ) {
        let mut names = None;
        let mut of_waiter: HashMap<u64, &Edge> = HashMap::new();
        for edge in edges {
            of_waiter.entry(edge.waiting.id()).or_insert(edge);
        }
        let mut found: HashMap<u64, Block> = HashMap::new();
        for first in of_waiter.values() {
            let (last, depth) = end_of_chain(first, &of_waiter);
            let root = &last.blocking;
            let ns = first.since.elapsed().min(passed).as_nanos() as u64;
            let victim = query(server, &first.waiting);
            let object = self.name(server, last.object, &mut names);
            let block =
                found.entry(root.id()).or_insert_with(|| new_block(server, root, last, object));
            block.ns += ns;
            block.waiting += 1;
            if depth > 0 {
                block.indirect += 1;
                block.next = Some((last.waiting.pid(), query(server, &last.waiting)));
            }
            if block.victim.is_empty() {
                block.victim = victim;
            }
        }
        for block in found.values() {
            caused(slice, block.statement, block.ns, || block.query.clone());
        }
        slice.blocks.extend(found.into_values());
        let passed_ns = passed.as_nanos() as u64;
        for record in finished.iter().filter(|r| r.blocker_pid != 0) {
            let Some(entry) = server.sessions.get(record.blocker_pid) else { continue };
            let ns = record.duration_ns.min(passed_ns);
            caused(slice, entry.query_id(), ns, || entry.activity().query.text().into());
        }
    }

    fn tables(&mut self, server: &Server, slice: &mut Slice) {
        let now = server.counters.relations();
        self.relations.look(server, &self.tables, &now, slice);
        let catalogs: HashMap<u32, Arc<catalog::Snapshot>> =
            server.engine.catalog.databases().iter().map(|d| (d.oid(), d.current())).collect();
        for (id, stats) in &now {
            let then = self.tables.get(id).cloned().unwrap_or_default();
            let (counts, table) = (&stats.counts, &stats.table);
            let grown = |now: u64, then: u64| now.saturating_sub(then);
            let scans = grown(counts.scans, then.counts.scans);
            let changed =
                grown(counts.updated + counts.deleted, then.counts.updated + then.counts.deleted);
            let inserted = grown(counts.inserted, then.counts.inserted);
            let runs = |t: &crate::counters::Table, kind: usize| t.runs[kind] + t.runs[kind + 1];
            let vacuums = grown(
                runs(table, crate::counters::VACUUM),
                runs(&then.table, crate::counters::VACUUM),
            );
            let analyzes = grown(
                runs(table, crate::counters::ANALYZE),
                runs(&then.table, crate::counters::ANALYZE),
            );
            if scans + changed + inserted + vacuums + analyzes == 0 {
                continue;
            }
            let Some(known) = catalogs.get(&id.0).and_then(|c| c.table(id.1)) else { continue };
            let name: Arc<str> = (*known.name).into();
            let mut event = |kind: &str, runs: u64, at: i64| {
                if runs > 0 {
                    let text = format!("{kind} of {name}").into();
                    slice.events.push(Event { at, kind: kind.into(), pid: 0, text });
                }
            };
            let last = |kind: usize| table.last[kind].max(table.last[kind + 1]);
            event("vacuum", vacuums, last(crate::counters::VACUUM));
            event("analyze", analyzes, last(crate::counters::ANALYZE));
            slice.tables.push(TableNote {
                database: id.0,
                oid: id.1,
                name,
                scans,
                scanned: grown(counts.returned, then.counts.returned),
                inserted,
                changed,
                live: table.live.max(0) as u64,
                dead: table.dead,
                modified: table.modified,
                threshold: table.threshold,
                vacuums,
                analyzes,
            });
        }
        self.tables = now;
    }
}

/// Whether a checkpoint is under way, and its event when it is over.
fn checkpoint(slice: &mut Slice, took_ns: u64) {
    let done = slice.count(Count::CheckpointsTimed) + slice.count(Count::CheckpointsRequested);
    let is_at_work = |task: &TaskRef| {
        task.kind() == "checkpointer"
            && task.wait().is_none_or(|(event, _)| event != WaitEvent::ActivityCheckpointerMain)
    };
    if done > 0
        || slice.count(Count::CheckpointPages) > 0
        || sched::background_tasks().iter().any(is_at_work)
    {
        slice.set(Count::CheckpointUs, slice.span_us);
    }
    if done > 0 {
        let why = match slice.count(Count::CheckpointsTimed) {
            0 => "because of the log's volume or by request",
            _ => "because of checkpoint_timeout",
        };
        let text = format!("checkpoint complete ({why}): {:.1} s", took_ns as f64 / 1e9);
        let at = slice.at;
        slice.events.push(Event { at, kind: "checkpoint".into(), pid: 0, text: text.into() });
    }
}

/// The last pair of the chain that begins here, and how many lie before it. A cycle ends where it comes
/// round.
fn end_of_chain<'e>(first: &'e Edge, of_waiter: &HashMap<u64, &'e Edge>) -> (&'e Edge, usize) {
    let (mut last, mut depth) = (first, 0);
    while let Some(next) = of_waiter.get(&last.blocking.id()) {
        depth += 1;
        if depth > of_waiter.len() {
            break;
        }
        last = next;
    }
    (last, depth)
}

/// The session with this number, a client's or a background thread's.
fn session(server: &Server, pid: i32) -> Option<Arc<Entry>> {
    server.sessions.get(pid).or_else(|| server.sessions.session_of(pid))
}

/// The statement that a session runs, or ran last.
fn query(server: &Server, task: &TaskRef) -> Arc<str> {
    match session(server, task.pid()) {
        Some(entry) => entry.activity().query.text().into(),
        None => Arc::default(),
    }
}

fn new_block(server: &Server, root: &TaskRef, last: &Edge, object: Arc<str>) -> Block {
    let now = crate::server::now();
    let entry = session(server, root.pid());
    let mut transaction_us = 0;
    let (state, query, statement, since) = match &entry {
        Some(entry) => {
            let began = entry.transaction_start();
            transaction_us = if began == 0 { 0 } else { (now - began).max(0) as u64 };
            let activity = entry.activity();
            let state = activity.state.as_str().unwrap_or("starting");
            let query = activity.query.text().into();
            let active = activity.state == SessionActivity::Active;
            let since = if active { activity.query_start } else { activity.state_change };
            (state, query, entry.query_id(), since)
        }
        None => (root.kind(), Arc::default(), 0, now),
    };
    Block {
        pid: root.pid(),
        state: state.into(),
        query,
        statement,
        state_us: (now - since).max(0) as u64,
        transaction_us,
        event: last.event,
        object,
        waiting: 0,
        indirect: 0,
        ns: 0,
        next: None,
        victim: Arc::default(),
    }
}

/// Others waited for a statement's session.
fn caused(slice: &mut Slice, statement: u64, ns: u64, text: impl FnOnce() -> Arc<str>) {
    if statement == 0 {
        return;
    }
    match slice.statements.iter_mut().find(|s| s.id == statement) {
        Some(sum) => sum.caused_ns += ns,
        None => {
            let mut sum = StatementSum::new(statement, 0, 0, text());
            sum.caused_ns = ns;
            slice.statements.push(sum);
        }
    }
}

/// Counts sessions by state and notes those that stay in one for long.
fn sessions(server: &Server, slice: &mut Slice) {
    let now = crate::server::now();
    let (mut all, mut active, mut in_transaction) = (0, 0, 0);
    let mut noted = Vec::new();
    let large = match slice.count(Count::MemoryLimit) {
        0 => LARGE_BYTES,
        limit => LARGE_BYTES.min(limit as i64 / 4),
    };
    for entry in server.sessions.all() {
        all += 1;
        let ((state, query_start, state_change), transaction) =
            entry.look(|a| (a.state, a.query_start, a.state_change));
        let since = match state {
            SessionActivity::Active => {
                active += 1;
                query_start
            }
            SessionActivity::IdleInTransaction | SessionActivity::IdleInFailed => {
                in_transaction += 1;
                state_change
            }
            SessionActivity::Starting | SessionActivity::Idle => continue,
        };
        let age = if transaction == 0 { 0 } else { now - transaction };
        let is_large = entry.task.memory().usage().used >= large;
        if now - since >= NOTED_US || age >= OLD_TRANSACTION_US || is_large {
            noted.push((entry, state, now - since, age));
        }
    }
    slice.set(Count::Sessions, all);
    slice.set(Count::SessionsActive, active);
    slice.set(Count::SessionsIdleInTransaction, in_transaction);
    if noted.is_empty() {
        return;
    }
    noted.sort_by_key(|(.., since, age)| std::cmp::Reverse(*since.max(age)));
    noted.truncate(32);
    let last = server.engine.txn.last_csn().0;
    let oldest: HashMap<i32, u64> = {
        let all = server.engine.txn.snapshots().into_iter();
        all.map(|s| (s.pid, last.saturating_sub(s.oldest.0))).collect()
    };
    for (entry, state, since, age) in noted {
        slice.sessions.push(SessionNote {
            pid: entry.pid,
            state: state.as_str().unwrap_or("starting").into(),
            query: entry.activity().query.text().into(),
            statement: entry.query_id(),
            state_us: since.max(0) as u64,
            transaction_us: age.max(0) as u64,
            snapshot_log: oldest.get(&entry.pid).copied().unwrap_or_default(),
            memory: entry.task.memory().usage().used.max(0) as u64,
        });
    }
}
