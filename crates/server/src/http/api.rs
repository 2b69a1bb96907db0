//! The data behind the page: `/api/now.json`, `/api/waits.json`, and any statistics view as
//! `/api/views/NAME.json`.

use base::settings::{live_int, setting};
use base::waits::{WAITS, WaitInfo};
use sched::lwlock::tranche_counters;
use sched::observe::WaitSums;
use serde_json::{Map, Value, json};

use super::view::{self, time_ms};
use crate::profiler::timeline;
use crate::server::Server;
use crate::why;

/// Sessions that are listed; all are counted.
const SESSIONS_MAX: usize = 200;

type Object = Map<String, Value>;

/// Everything that the page and `threadgres top` show, but the timeline.
pub fn now(server: &Server) -> Value {
    let stats = server.engine.storage.stats();
    let (plan_hits, plan_misses) = server.engine.plans.counts();
    let mut sessions = view::rows(server, "pg_stat_activity").unwrap_or_default();
    let counts = count_states(&sessions);
    sort_sessions(&mut sessions);
    let all = sessions.len();
    sessions.truncate(SESSIONS_MAX);
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "now": time_ms(crate::server::now()),
        "started": time_ms(server.started),
        "max_connections": live_int(setting::MAX_CONNECTIONS),
        "sessions": { "all": all, "states": counts, "rows": sessions },
        "waits": waits_since_start(),
        "why": findings(server),
        "events": events(server),
        "blocking": view::rows(server, "pg_stat_blocking"),
        "blocking_history": blocking_history(server),
        "latches": latches(server),
        "pool": {
            "frames": server.engine.storage.pool.frames(),
            "hits": stats.hits, "reads": stats.reads, "writes": stats.writes,
            "foreground_writes": stats.foreground_writes, "evictions": stats.evictions,
            "extended": stats.extended,
        },
        "wal": {
            "records": stats.wal_records, "images": stats.wal_images, "bytes": stats.wal_bytes,
            "writes": stats.wal_writes, "syncs": stats.wal_syncs,
            "buffers_full": stats.wal_buffers_full,
            "checkpoints": stats.checkpoints_timed + stats.checkpoints_requested,
        },
        "plans": { "hits": plan_hits, "misses": plan_misses },
        "database": view::rows(server, "pg_stat_database"),
    })
}

/// The same without lists that grow with the number of sessions: for monitoring programs.
pub fn figures(server: &Server) -> Value {
    let mut figures = now(server);
    if let Some(all) = figures.as_object_mut() {
        all.remove("why");
        all.remove("events");
        all.remove("blocking");
        all.remove("blocking_history");
        if let Some(sessions) = all.get_mut("sessions").and_then(Value::as_object_mut) {
            sessions.remove("rows");
        }
    }
    figures
}

/// The findings of the last half minute.
fn findings(server: &Server) -> Vec<Value> {
    // A history that can't be read has none.
    let Ok((facts, found)) = why::lately(server) else { return Vec::new() };
    found.iter().map(|found| finding(found, &facts)).collect()
}

/// A finding as the page shows it.
pub(super) fn finding(finding: &why::Finding, facts: &why::facts::Facts) -> Value {
    json!({
        "finding": finding.kind, "seconds_lost": finding.lost_ns as f64 / 1e9,
        "share": finding.share(facts), "sentence": finding.sentence, "advice": finding.advice,
        "evidence": finding.evidence, "pid": finding.pid,
    })
}

/// The events of the chart's minutes.
fn events(server: &Server) -> Vec<Value> {
    let now = crate::server::now();
    let (recent, _) = server.history.recent(now - timeline::KEPT as i64 * 1_000_000, now);
    recent.iter().flat_map(|slice| &slice.events).map(super::past::event).collect()
}

fn count_states(sessions: &[Object]) -> Object {
    let mut counts = Object::new();
    for session in sessions {
        let state = session.get("state").and_then(Value::as_str);
        let client = session.get("backend_type").and_then(Value::as_str) == Some("client backend");
        let state = state.unwrap_or(if client { "starting" } else { "background" });
        let count = counts.get(state).and_then(Value::as_u64).unwrap_or(0);
        counts.insert(state.to_owned(), (count + 1).into());
    }
    counts
}

/// Those who work first, the longest-running before the others; then those in transactions; the
/// idle and the background last.
fn sort_sessions(sessions: &mut [Object]) {
    let rank = |s: &Object| match s.get("state").and_then(Value::as_str) {
        Some("active") => 0,
        Some(state) if state.starts_with("idle in") => 1,
        Some(_) => 2,
        None => 3,
    };
    let since = |s: &Object| s.get("state_change").and_then(Value::as_f64).unwrap_or(f64::MAX);
    sessions.sort_by(|a, b| rank(a).cmp(&rank(b)).then(since(a).total_cmp(&since(b))));
}

fn waits_since_start() -> Vec<Value> {
    let counted = WAITS.iter().filter(|w| timeline::counts(w.event));
    let sums = sched::observe::sums_by_event();
    let sums = |w: &'static WaitInfo| (w, &sums[w.event as usize]);
    let mut waits: Vec<_> = counted.map(sums).filter(|(_, p)| p.count > 0).collect();
    waits.sort_by_key(|(_, p)| std::cmp::Reverse(p.total_ns));
    let one = |(w, p): (&WaitInfo, &WaitSums)| {
        json!({
            "type": w.kind, "event": w.name, "about": w.description, "count": p.count,
            "total_ns": p.total_ns, "longest_ns": p.longest_ns,
        })
    };
    waits.into_iter().map(one).collect()
}

/// `pg_stat_lwlock` when it is kept, else what the latches count themselves.
fn latches(server: &Server) -> Vec<Value> {
    let rows = view::rows(server, "pg_stat_lwlock").unwrap_or_default();
    if !rows.is_empty() {
        return rows.into_iter().map(Value::Object).collect();
    }
    let counters = WAITS.iter().filter(|w| w.kind == "LWLock").map(|w| tranche_counters(w.event));
    let one = |c: sched::lwlock::TrancheCounters| {
        json!({
            "tranche": c.event.info().name, "waits": c.waits, "wait_time_ns": c.waited_ns,
            "longest_ns": c.longest_ns, "passes": c.passes,
        })
    };
    counters.map(one).collect()
}

/// The longest of the last hour.
fn blocking_history(server: &Server) -> Vec<Object> {
    let mut rows = view::rows(server, "pg_stat_blocking_history").unwrap_or_default();
    rows.reverse();
    rows.truncate(50);
    rows
}

/// The last minutes, second by second: a list of times, and for each wait event as many numbers:
/// how many tasks waited for it.
pub fn waits(server: &Server) -> Value {
    let seconds = server.profiler.timeline.seconds();
    let times: Vec<f64> = seconds.iter().map(|s| time_ms(s.at).round()).collect();
    let cpu: Vec<f64> = seconds.iter().map(|s| round(s.cpu)).collect();
    let mut series = Vec::new();
    for wait in WAITS {
        let of = |s: &timeline::Second| {
            s.waiting.iter().find(|(e, _)| *e == wait.event).map_or(0.0, |(_, n)| round(*n))
        };
        let values: Vec<f64> = seconds.iter().map(of).collect();
        if values.iter().any(|v| *v > 0.0) {
            series.push(json!({ "type": wait.kind, "event": wait.name, "values": values }));
        }
    }
    json!({ "times": times, "cpu": cpu, "series": series, "kept": timeline::KEPT })
}

pub(super) fn round(value: f32) -> f64 {
    (f64::from(value) * 1000.0).round() / 1000.0
}

/// One statistics view, as a session in this database sees it (a name or an oid; None: `postgres`).
pub fn view(server: &Server, database: Option<&str>, name: &str) -> Option<Value> {
    let database = match database {
        None => catalog::object::ids::POSTGRES_DB,
        Some(wanted) => {
            let all = server.engine.catalog.databases();
            let mut known = all.iter().filter_map(|d| d.current().database(d.oid()).cloned());
            known.find(|d| d.name == wanted || d.oid.to_string() == wanted)?.oid
        }
    };
    let rows = view::rows_in(server, database, name)?;
    Some(rows.into_iter().map(Value::Object).collect())
}
