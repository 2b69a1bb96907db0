//! Waits: now, lately, and summed up; and the same in the shapes of the `pg_wait_sampling`
//! extension, for tools that know those.

use std::collections::HashMap;

use base::settings::{live_int, setting};
use base::waits::WAITS;
use base::{PageId, WaitEvent};
use sched::observe::{self, CLASSES, HistoryCursor, ProfileRow, WaitRecord, WaitSums};
use sched::{Task, WaitObject, Waiting};
use types::datum::Array;
use types::{Datum, oids};

use crate::server::{Server, micros};
use crate::views::text::text;

/// `pg_wait_events`.
pub(super) fn events() -> Vec<Vec<Datum>> {
    let row = |w: &base::waits::WaitInfo| vec![text(w.kind), text(w.name), text(w.description)];
    WAITS.iter().map(row).collect()
}

/// `pg_stat_wait_current`: who waits just now.
pub(super) fn current(server: &Server) -> Vec<Vec<Datum>> {
    let names = Names::of(server);
    let row = |task: &sched::TaskRef| {
        let (waiting, since) = task.waiting()?;
        let [kind, event] = event_of(waiting.event);
        Some(vec![
            pid(task.pid()),
            text(task.kind()),
            kind,
            event,
            names.object(waiting.object),
            pid(blocker(&waiting).map_or(0, |task| task.pid())),
            wall(sched::clock::to_ns(since)),
            ms(since.elapsed().as_nanos() as u64),
            query(statement(task, waiting.event)),
        ])
    };
    observe::tasks().iter().filter_map(row).collect()
}

/// The blocking session, if alive.
fn blocker(waiting: &Waiting) -> Option<sched::TaskRef> {
    if waiting.blocker == 0 { None } else { observe::task_by_id(waiting.blocker) }
}

/// A session that waits for its client's next statement waits for none.
fn statement(task: &Task, event: WaitEvent) -> u64 {
    if observe::is_idle(event) { 0 } else { task.statement() }
}

/// `pg_stat_wait_history`: the latest finished waits.
pub(super) fn history(server: &Server) -> Vec<Vec<Datum>> {
    let names = Names::of(server);
    let row = |r: WaitRecord| {
        let [kind, event] = event_of(r.event);
        vec![
            pid(r.pid),
            kind,
            event,
            names.object(r.object),
            pid(r.blocker_pid),
            wall(r.began_ns),
            ms(r.duration_ns),
            query(r.statement),
        ]
    };
    finished().into_iter().map(row).collect()
}

fn finished() -> Vec<WaitRecord> {
    observe::history_since(&mut HistoryCursor::default(), true)
}

/// `pg_stat_wait_profile`: all waits since the last reset, those under way with what they have lasted.
pub(super) fn profile(server: &Server) -> Vec<Vec<Datum>> {
    let names = Names::of(server);
    let row = |r: ProfileRow| {
        let [kind, event] = event_of(r.event);
        let (who, statement, object) = match r.key {
            Some(key) => (pid(key.pid), query(key.statement), names.object(key.object)),
            None => (Datum::Null, Datum::Null, text("(others)")),
        };
        vec![
            who,
            statement,
            kind,
            event,
            object,
            Datum::Int8(r.sums.count as i64),
            ms(r.sums.total_ns),
            ms(r.sums.total_ns / r.sums.count.max(1)),
            ms(r.sums.longest_ns),
            histogram(&r.sums),
        ]
    };
    observe::profile().into_iter().map(row).collect()
}

/// Element `i`, from 1, counts the waits of 2^(i-1) up to 2^i nanoseconds; trailing zeros are left
/// out.
fn histogram(sums: &WaitSums) -> Datum {
    let len = (0..CLASSES).rev().find(|i| sums.classes[*i] != 0).map_or(0, |last| last + 1);
    let items: Vec<Datum> = sums.classes[..len].iter().map(|n| Datum::Int8(*n as i64)).collect();
    let dims = if items.is_empty() { vec![] } else { vec![(len as i32, 1)] };
    Datum::Array(std::sync::Arc::new(Array { element: oids::INT8, dims, items }))
}

/// `pg_wait_sampling_current`.
pub(super) fn sampling_current() -> Vec<Vec<Datum>> {
    let row = |task: &sched::TaskRef| {
        let [kind, event] = match task.waiting() {
            Some((waiting, _)) => event_of(waiting.event),
            None => [Datum::Null, Datum::Null],
        };
        let statement = task.waiting().map_or(task.statement(), |w| statement(task, w.0.event));
        vec![pid(task.pid()), kind, event, Datum::Int8(statement as i64)]
    };
    observe::tasks().iter().filter(|task| task.pid() != 0).map(row).collect()
}

/// `pg_wait_sampling_history`: `ts` is the end of the wait.
pub(super) fn sampling_history() -> Vec<Vec<Datum>> {
    let row = |r: WaitRecord| {
        let [kind, event] = event_of(r.event);
        let ended = wall(r.began_ns + r.duration_ns);
        vec![pid(r.pid), ended, kind, event, Datum::Int8(r.statement as i64)]
    };
    finished().into_iter().map(row).collect()
}

/// `pg_wait_sampling_profile`. Tools multiply `count` by `pg_wait_sampling.profile_period`, so it
/// says how many samples a sampler with that period would see on average: the exact time over the
/// period, at least 1.
pub(super) fn sampling_profile() -> Vec<Vec<Datum>> {
    let period_ns = live_int(setting::PG_WAIT_SAMPLING_PROFILE_PERIOD).max(1) as u64 * 1_000_000;
    let mut counts: HashMap<(i32, WaitEvent, u64), u64> = HashMap::new();
    for row in observe::profile() {
        let (pid, statement) = row.key.map_or((0, 0), |key| (key.pid, key.statement));
        *counts.entry((pid, row.event, statement)).or_default() += row.sums.total_ns;
    }
    let row = |((who, event, statement), ns): ((i32, WaitEvent, u64), u64)| {
        let [kind, event] = event_of(event);
        let count = Datum::Int8((ns / period_ns).max(1) as i64);
        vec![Datum::Int4(who), kind, event, Datum::Int8(statement as i64), count]
    };
    counts.into_iter().map(row).collect()
}

fn event_of(event: WaitEvent) -> [Datum; 2] {
    let info = event.info();
    [text(info.kind), text(info.name)]
}

fn pid(pid: i32) -> Datum {
    if pid == 0 { Datum::Null } else { Datum::Int4(pid) }
}

fn query(id: u64) -> Datum {
    if id == 0 { Datum::Null } else { Datum::Int8(id as i64) }
}

fn wall(ns: u64) -> Datum {
    Datum::Timestamptz(micros(observe::wall_time(ns)))
}

/// Milliseconds, as PostgreSQL's statistics show times.
pub(super) fn ms(ns: u64) -> Datum {
    Datum::Float8(ns as f64 / 1e6)
}

/// Names of relations by their files and by their oids.
pub(crate) struct Names {
    files: HashMap<u32, String>,
    /// By database and oid.
    oids: HashMap<(u32, u32), String>,
}

impl Names {
    /// Those that are committed now.
    pub(crate) fn of(server: &Server) -> Names {
        let (mut files, mut oids) = (HashMap::new(), HashMap::new());
        for database in server.engine.catalog.databases() {
            let catalog = database.current();
            let mut add = |rel: u32, oid: u32, name: &str| {
                files.insert(rel, name.to_owned());
                oids.insert((database.oid(), oid), name.to_owned());
            };
            catalog.tables().for_each(|table| add(table.rel, table.oid, &table.name));
            catalog.indexes().for_each(|index| add(index.rel, index.oid, &index.name));
        }
        Names { files, oids }
    }

    /// The object of a wait, with names where there are any; NULL for nothing in particular.
    pub(crate) fn object(&self, object: WaitObject) -> Datum {
        match self.describe(object) {
            words if words.is_empty() => Datum::Null,
            words => Datum::Text(words.into()),
        }
    }

    /// The same as words; empty for nothing in particular.
    pub(crate) fn describe(&self, object: WaitObject) -> String {
        let file = object.file().and_then(|rel| self.files.get(&rel.0));
        match (object, file) {
            (WaitObject::Relation(database, oid), _)
                if self.oids.contains_key(&(database.0, oid.0)) =>
            {
                format!("relation {}", self.oids[&(database.0, oid.0)])
            }
            (WaitObject::File(_), Some(name)) => format!("relation {name}"),
            (WaitObject::Extension(_), Some(name)) => format!("extension of {name}"),
            (WaitObject::Page(PageId { block, .. }), Some(name)) => {
                format!("page {block} of {name}")
            }
            (WaitObject::Tuple(_, tid), Some(name)) => format!("tuple {tid} of {name}"),
            (object, _) => object.to_string(),
        }
    }
}
