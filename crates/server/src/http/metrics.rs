//! `/metrics`: Prometheus's text format (version 0.0.4), its rules for names: base units (seconds,
//! bytes), counters end in `_total`, labels instead of names that vary.

use std::fmt::{Display, Write as _};

use base::settings::{live_int, setting};
use base::waits::WAITS;
use base::{WaitEvent, waits::WaitInfo};
use sched::lwlock::tranche_counters;

use super::view;
use crate::server::Server;

/// The media type that Prometheus asks for.
pub const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

const PAGE_BYTES: usize = 8192;

/// A page of metrics under construction.
struct Page(String);

type Labels<'a> = &'a [(&'a str, &'a str)];

impl Page {
    /// The head of a family of samples; `kind` is gauge, counter or histogram.
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ =
            writeln!(self.0, "# HELP threadgres_{name} {help}\n# TYPE threadgres_{name} {kind}");
    }

    /// One sample of the family.
    fn sample(&mut self, name: &str, labels: Labels<'_>, value: impl Display) {
        let _ = write!(self.0, "threadgres_{name}");
        for (i, (label, text)) in labels.iter().enumerate() {
            let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.0, "{}{label}=\"{text}\"", if i == 0 { '{' } else { ',' });
        }
        let _ = writeln!(self.0, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }

    /// A family of one sample.
    fn single(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }
}

/// All metrics.
pub fn text(server: &Server) -> String {
    let mut page = Page(String::with_capacity(32 << 10));
    about(&mut page, server);
    sessions(&mut page, server);
    waits(&mut page, server);
    latches(&mut page);
    storage(&mut page, server);
    locks(&mut page, server);
    database(&mut page, server);
    page.0
}

fn about(page: &mut Page, server: &Server) {
    page.family("build_info", "gauge", "1; the version is its label.");
    page.sample("build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    let started = view::time_ms(server.started) / 1000.0;
    page.single("start_time_seconds", "gauge", "When the server started (Unix time).", started);
    let hold = server.alerts.all().iter().filter(|alert| alert.until == 0).count();
    page.single("alerts_active", "gauge", "Alerts that hold now, as in pg_alerts.", hold);
    let (hits, misses) = server.engine.plans.counts();
    page.single("plan_cache_hits_total", "counter", "Plans found in the plan cache.", hits);
    page.single("plan_cache_misses_total", "counter", "Plans that had to be made.", misses);
}

fn sessions(page: &mut Page, server: &Server) {
    use crate::registry::SessionActivity;
    const STATES: [SessionActivity; 5] = [
        SessionActivity::Starting,
        SessionActivity::Active,
        SessionActivity::Idle,
        SessionActivity::IdleInTransaction,
        SessionActivity::IdleInFailed,
    ];
    let mut counts = [0u32; STATES.len()];
    let mut oldest = 0;
    let now = crate::server::now();
    for entry in server.sessions.all() {
        let (state, transaction) = entry.look(|a| a.state);
        counts[STATES.iter().position(|s| *s == state).unwrap_or(0)] += 1;
        if transaction != 0 {
            oldest = oldest.max(now - transaction);
        }
    }
    page.family("sessions", "gauge", "Client sessions by state, as in pg_stat_activity.");
    for (state, count) in STATES.iter().zip(counts) {
        page.sample("sessions", &[("state", state.as_str().unwrap_or("starting"))], count);
    }
    let most = live_int(setting::MAX_CONNECTIONS);
    page.single("max_connections", "gauge", "The setting max_connections.", most);
    let help = "How long the oldest open transaction has lasted.";
    page.single("oldest_transaction_seconds", "gauge", help, oldest as f64 / 1e6);
}

/// Upper bounds of the histogram's buckets, as powers of two of a nanosecond: 4 µs to 69 s.
const BOUNDS: [usize; 7] = [12, 16, 20, 24, 28, 32, 36];

fn waits(page: &mut Page, server: &Server) {
    let mut now = [0u32; WAITS.len()];
    for entry in server.sessions.all() {
        if let Some((event, _)) = entry.task.wait() {
            now[event as usize] += 1;
        }
    }
    let labels = |w: &'static WaitInfo| [("type", w.kind), ("event", w.name)];
    page.family("waiting_sessions", "gauge", "Sessions that wait now, by wait event.");
    for wait in WAITS.iter().filter(|w| now[w.event as usize] > 0) {
        page.sample("waiting_sessions", &labels(wait), now[wait.event as usize]);
    }
    let name = "wait_duration_seconds";
    page.family(name, "histogram", "Finished waits of sessions and threads, by wait event.");
    // Finished ones alone: a histogram's counts never shrink.
    let sums = sched::observe::finished_by_event();
    let profiles =
        || WAITS.iter().map(|w| (w, &sums[w.event as usize])).filter(|(_, s)| s.count > 0);
    for (wait, profile) in profiles() {
        let [kind, event] = labels(wait);
        let all: u64 = profile.classes.iter().sum();
        for bound in BOUNDS {
            let count: u64 = profile.classes[..bound].iter().sum();
            let le = format!("{}", (1u64 << bound) as f64 / 1e9);
            page.sample("wait_duration_seconds_bucket", &[kind, event, ("le", &le)], count);
        }
        page.sample("wait_duration_seconds_bucket", &[kind, event, ("le", "+Inf")], all);
        let sum = profile.total_ns as f64 / 1e9;
        page.sample("wait_duration_seconds_sum", &[kind, event], sum);
        page.sample("wait_duration_seconds_count", &[kind, event], all);
    }
    page.family("wait_longest_seconds", "gauge", "The longest finished wait, by wait event.");
    for (wait, profile) in profiles() {
        page.sample("wait_longest_seconds", &labels(wait), profile.longest_ns as f64 / 1e9);
    }
}

fn latches(page: &mut Page) {
    let latches = || WAITS.iter().filter(|w| w.kind == "LWLock");
    let mut family = |name: &str, kind: &str, help: &str, value: &dyn Fn(WaitEvent) -> f64| {
        page.family(name, kind, help);
        for latch in latches() {
            page.sample(name, &[("tranche", latch.name)], value(latch.event));
        }
    };
    family("lwlock_acquisitions_total", "counter", "Times that a latch was taken.", &|e| {
        sched::observe::lwlock_acquisitions(e) as f64
    });
    family("lwlock_waits_total", "counter", "Times that somebody parked for a latch.", &|e| {
        tranche_counters(e).waits as f64
    });
    family("lwlock_wait_seconds_total", "counter", "Time waited for latches.", &|e| {
        tranche_counters(e).waited_ns as f64 / 1e9
    });
    family("lwlock_wait_longest_seconds", "gauge", "The longest wait for a latch.", &|e| {
        tranche_counters(e).longest_ns as f64 / 1e9
    });
    let help = "Acquisitions that passed somebody who queued.";
    family("lwlock_passes_total", "counter", help, &|e| tranche_counters(e).passes as f64);
}

fn storage(page: &mut Page, server: &Server) {
    let storage = &server.engine.storage;
    let stats = storage.stats();
    let bytes = storage.pool.frames() * PAGE_BYTES;
    page.single("buffer_pool_bytes", "gauge", "Size of the buffer pool.", bytes);
    for (name, help, value) in [
        ("buffer_hits_total", "Pages found in the buffer pool.", stats.hits),
        ("buffer_reads_total", "Pages read from files.", stats.reads),
        ("buffer_writes_total", "Pages written to files.", stats.writes),
        (
            "buffer_foreground_writes_total",
            "Pages written by somebody who needed the frame at once.",
            stats.foreground_writes,
        ),
        ("buffer_evictions_total", "Pages that had to leave their frame.", stats.evictions),
        ("relation_extended_pages_total", "Pages by which files were extended.", stats.extended),
        ("file_syncs_total", "Syncs of relation files.", stats.file_syncs),
        ("wal_records_total", "Records of the write-ahead log.", stats.wal_records),
        ("wal_images_total", "Full images of pages in the log.", stats.wal_images),
        ("wal_bytes_total", "Bytes of log.", stats.wal_bytes),
        ("wal_writes_total", "Write calls for the log.", stats.wal_writes),
        ("wal_syncs_total", "Sync calls for the log.", stats.wal_syncs),
        ("wal_buffers_full_total", "Waits for space in the log buffers.", stats.wal_buffers_full),
        ("checkpoint_pages_total", "Pages written by checkpoints.", stats.checkpoint_pages),
    ] {
        page.single(name, "counter", help, value);
    }
    page.family("checkpoints_total", "counter", "Checkpoints by their cause.");
    page.sample("checkpoints_total", &[("cause", "time")], stats.checkpoints_timed);
    page.sample("checkpoints_total", &[("cause", "request")], stats.checkpoints_requested);
}

fn locks(page: &mut Page, server: &Server) {
    let rows = server.engine.txn.locks.snapshot();
    let mut counts = std::collections::BTreeMap::new();
    let mut longest = 0.0f64;
    for row in &rows {
        *counts.entry((row.mode.name(), row.granted)).or_insert(0u64) += 1;
        let waited = row.wait_start.and_then(|t| t.elapsed().ok());
        longest = waited.map_or(longest, |w| longest.max(w.as_secs_f64()));
    }
    page.family("locks", "gauge", "Heavyweight locks held or waited for, by mode.");
    for ((mode, granted), count) in counts {
        let granted = if granted { "true" } else { "false" };
        page.sample("locks", &[("mode", mode), ("granted", granted)], count);
    }
    let help = "How long the one who waits longest for a heavyweight lock has waited.";
    page.single("lock_wait_oldest_seconds", "gauge", help, longest);
    let edges = crate::profiler::blocking::edges(server);
    let blocked: std::collections::HashSet<u64> = edges.iter().map(|e| e.waiting.id()).collect();
    let help = "Sessions and threads that wait for another one, latches included.";
    page.single("blocked_sessions", "gauge", help, blocked.len());
    let longest = edges.iter().map(|e| e.since.elapsed()).max().unwrap_or_default();
    let help = "How long the one who waits longest for another one has waited.";
    page.single("blocked_longest_seconds", "gauge", help, longest.as_secs_f64());
}

/// The columns of `pg_stat_database`, whichever of them are kept.
fn database(page: &mut Page, server: &Server) {
    const COLUMNS: &[(&str, &str, &str)] = &[
        ("xact_commit", "transactions_committed_total", "Transactions committed."),
        ("xact_rollback", "transactions_rolled_back_total", "Transactions rolled back."),
        ("tup_returned", "rows_returned_total", "Rows read by scans."),
        ("tup_fetched", "rows_fetched_total", "Rows fetched by index scans."),
        ("tup_inserted", "rows_inserted_total", "Rows inserted."),
        ("tup_updated", "rows_updated_total", "Rows updated."),
        ("tup_deleted", "rows_deleted_total", "Rows deleted."),
        ("deadlocks", "deadlocks_total", "Deadlocks found."),
        ("conflicts", "conflicts_total", "Statements cancelled by recovery."),
    ];
    let rows = view::rows(server, "pg_stat_database").unwrap_or_default();
    for (column, name, help) in COLUMNS {
        let samples = rows
            .iter()
            .filter_map(|row| Some((row.get("datname")?.as_str()?, row.get(*column)?.as_f64()?)));
        let samples: Vec<_> = samples.collect();
        if !samples.is_empty() {
            page.family(&format!("database_{name}"), "counter", help);
        }
        for (database, value) in samples {
            page.sample(&format!("database_{name}"), &[("database", database)], value);
        }
    }
}
