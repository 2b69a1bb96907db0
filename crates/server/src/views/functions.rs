//! Functions of the statistics system: `pg_stat_get_*`, which read one value of a view, the
//! resets, and names of log files.
//!
//! A session's number is its backend id, too.

use base::{Result, err};
use exec::tally::Tally;
use types::Datum;
use types::datum::Array;

use crate::counters::{ANALYZE, RelationStats, VACUUM};
use crate::server::{self, Server};
use crate::statements::{StatementKey, Work};
use crate::views::rows::rows;

/// Functions that read a column of a view's row with a given number.
const COLUMNS: &[(&str, &str, &str)] = &[
    ("pg_stat_get_db_", "pg_stat_database", "datid"),
    ("pg_stat_get_backend_", "pg_stat_activity", "pid"),
    ("pg_stat_get_bgwriter_", "pg_stat_bgwriter", ""),
];

/// Where a function's name says another word than the view's column.
const WORDS: &[(&str, &str)] = &[
    ("blocks_hit", "blks_hit"),
    ("conflict_all", "conflicts"),
    ("tuples_returned", "tup_returned"),
    ("tuples_fetched", "tup_fetched"),
    ("tuples_inserted", "tup_inserted"),
    ("tuples_updated", "tup_updated"),
    ("tuples_deleted", "tup_deleted"),
    ("stat_reset_time", "stats_reset"),
    ("activity", "query"),
    ("activity_start", "query_start"),
    ("dbid", "datid"),
    ("userid", "usesysid"),
    ("start", "backend_start"),
    ("buf_written_checkpoints", "buffers_checkpoint"),
    ("buf_written_clean", "buffers_clean"),
    ("requested_checkpoints", "checkpoints_req"),
    ("timed_checkpoints", "checkpoints_timed"),
];

/// Functions that read a column of a view with one row.
const SINGLE: &[(&str, &str, &str)] = &[
    ("pg_stat_get_buf_alloc", "pg_stat_bgwriter", "buffers_alloc"),
    ("pg_stat_get_buf_fsync_backend", "pg_stat_bgwriter", "buffers_backend_fsync"),
    ("pg_stat_get_buf_written_backend", "pg_stat_bgwriter", "buffers_backend"),
    ("pg_stat_get_checkpoint_sync_time", "pg_stat_bgwriter", "checkpoint_sync_time"),
    ("pg_stat_get_checkpoint_write_time", "pg_stat_bgwriter", "checkpoint_write_time"),
];

/// The function's value in a database; None if it isn't one of these. `done`: what the transaction did so far.
///
/// # Errors
/// A value that only a server that follows another one has.
fn followed(server: &Server, value: Datum) -> Datum {
    if server.standby.follows() { value } else { Datum::Null }
}

/// `pg_promote(wait, seconds)`.
fn promote(server: &Server, args: &[Datum]) -> Result<Datum> {
    let wait = !matches!(args.first(), Some(Datum::Bool(false)));
    let seconds = match args.get(1) {
        Some(Datum::Int4(seconds)) => *seconds,
        _ => 60,
    };
    if seconds <= 0 {
        return Err(base::err!(
            NUMERIC_VALUE_OUT_OF_RANGE,
            "\"wait_seconds\" must not be negative or zero"
        ));
    }
    server.standby.ask_promotion()?;
    if !wait {
        return Ok(Datum::Bool(true));
    }
    let patience = std::time::Duration::from_secs(seconds.unsigned_abs().into());
    server.standby.await_promotion(patience).map(Datum::Bool)
}

/// `pg_create_restore_point(name)`.
fn restore_point(server: &Server, args: &[Datum]) -> Result<Datum> {
    const LONGEST: usize = 63;
    let Some(Datum::Text(name)) = args.first() else { return Ok(Datum::Null) };
    if name.len() > LONGEST {
        return Err(base::err!(
            INVALID_PARAMETER_VALUE,
            "value too long for restore point (maximum {LONGEST} characters)"
        ));
    }
    let end = server.engine.txn.mark_name(name);
    server.engine.storage.wal.flush(end)?;
    Ok(Datum::Int8(end.0 as i64))
}

/// `22023` for a name of statistics that there are not.
pub fn call(
    server: &Server,
    database: u32,
    done: &Tally,
    name: &str,
    args: &[Datum],
) -> Result<Option<Datum>> {
    let number = match args.first() {
        Some(Datum::Oid(oid)) => i64::from(*oid),
        Some(Datum::Int4(n)) => i64::from(*n),
        Some(Datum::Int8(n)) => *n,
        _ => 0,
    };
    if let Some((_, view, column)) = SINGLE.iter().find(|(f, _, _)| *f == name) {
        return Ok(Some(cell(server, database, view, "", 0, column)));
    }
    Ok(Some(match name {
        // There are no multixacts.
        "mxid_age" => Datum::Int4(0),
        "pg_stat_get_backend_pid" => Datum::Int4(number as i32),
        "pg_stat_get_backend_idset" => pids(server),
        "pg_stat_get_snapshot_timestamp" => Datum::Timestamptz(server::now()),
        "pg_stat_get_db_blocks_fetched" => {
            let of = |column| cell(server, database, "pg_stat_database", "datid", number, column);
            sum(of("blks_hit"), of("blks_read"))
        }
        "pg_stat_clear_snapshot"
        | "pg_stat_force_next_flush"
        | "pg_stat_reset_slru"
        | "pg_stat_reset_replication_slot"
        | "pg_stat_reset_subscription_stats" => Datum::Text("".into()),
        "pg_stat_reset" => {
            server.counters.reset(database, server::now());
            Datum::Text("".into())
        }
        "pg_stat_reset_single_table_counters" | "pg_stat_reset_single_function_counters" => {
            server.counters.reset_relation((database, number as u32));
            Datum::Text("".into())
        }
        "pg_stat_reset_shared" => {
            reset_shared(server, args)?;
            Datum::Text("".into())
        }
        "pg_stat_statements_reset" => {
            reset_statements(server, args);
            Datum::Text("".into())
        }
        "pg_stat_have_stats" => Datum::Bool(true),
        "pg_switch_wal" | "pg_create_restore_point" if server.standby.follows() => {
            return Err(base::err!(OBJECT_NOT_IN_PREREQUISITE_STATE, "recovery is in progress")
                .hint("WAL control functions cannot be executed during recovery."));
        }
        "pg_create_restore_point" => restore_point(server, args)?,
        "pg_is_wal_replay_paused" => Datum::Bool(server.standby.is_paused()?),
        "pg_get_wal_replay_pause_state" => {
            let word = if server.standby.is_paused()? { "paused" } else { "not paused" };
            Datum::Text(word.into())
        }
        "pg_wal_replay_pause" | "pg_wal_replay_resume" => {
            server.standby.set_paused(name == "pg_wal_replay_pause")?;
            Datum::Text("".into())
        }
        "pg_last_wal_receive_lsn" => {
            let flushed = server.engine.storage.wal.flushed();
            followed(server, Datum::Int8(flushed.0 as i64))
        }
        "pg_last_wal_replay_lsn" => {
            followed(server, Datum::Int8(server.standby.applied().0 as i64))
        }
        "pg_last_xact_replay_timestamp" => {
            let time = server.standby.applied_time();
            followed(server, time.map_or(Datum::Null, Datum::Timestamptz))
        }
        "pg_promote" => promote(server, args)?,
        "pg_switch_wal" => {
            let end = crate::archiver::switch(server);
            server.engine.storage.wal.flush(end)?;
            Datum::Int8(end.0 as i64)
        }
        "pg_walfile_name" => log_file(server, number as u64),
        _ if name.starts_with("pg_stat_get_db_conflict_")
            && name != "pg_stat_get_db_conflict_all" =>
        {
            Datum::Int8(0)
        }
        _ => {
            for (prefix, view, key) in COLUMNS {
                if let Some(word) = name.strip_prefix(prefix) {
                    let known = WORDS.iter().find(|(w, _)| *w == word);
                    let column = known.map_or(word, |(_, column)| column);
                    return Ok(Some(cell(server, database, view, key, number, column)));
                }
            }
            let oid = number as u32;
            if let Some(word) = name.strip_prefix("pg_stat_get_xact_") {
                let mine = done.iter().find(|(known, _)| *known == oid);
                let counts = mine.map(|(_, counts)| *counts).unwrap_or_default();
                return Ok(of_relation(&RelationStats { counts, ..Default::default() }, word));
            }
            let Some(word) = name.strip_prefix("pg_stat_get_") else { return Ok(None) };
            if let Some(word) = word.strip_prefix("function_") {
                return Ok(Some(cell(
                    server,
                    database,
                    "pg_stat_user_functions",
                    "funcid",
                    number,
                    word,
                )));
            }
            let known = server.counters.relations().remove(&(database, oid)).unwrap_or_default();
            return Ok(of_relation(&known, word));
        }
    }))
}

/// The column of the view's row whose key has this value (without a key: of its only row); NULL
/// when there is none.
fn cell(
    server: &Server,
    database: u32,
    view: &'static str,
    key: &str,
    value: i64,
    column: &str,
) -> Datum {
    let Some(table) = catalog::system::find(Some("pg_catalog"), view) else { return Datum::Null };
    let place = |name: &str| table.columns.iter().position(|c| c.name == name);
    let Some(column) = place(column) else { return Datum::Null };
    let key = place(key);
    let fits = |row: &Vec<Datum>| match key.map(|key| &row[key]) {
        None => true,
        Some(Datum::Oid(oid)) => i64::from(*oid) == value,
        Some(Datum::Int4(n)) => i64::from(*n) == value,
        Some(_) => false,
    };
    let rows = rows(server, database, view);
    rows.into_iter().find(fits).map_or(Datum::Null, |mut row| row.swap_remove(column))
}

fn sum(a: Datum, b: Datum) -> Datum {
    match (a, b) {
        (Datum::Int8(a), Datum::Int8(b)) => Datum::Int8(a + b),
        _ => Datum::Null,
    }
}

fn pids(server: &Server) -> Datum {
    let items: Vec<Datum> = server.sessions.all().iter().map(|e| Datum::Int4(e.pid)).collect();
    let dims = vec![(items.len() as i32, 1)];
    Datum::Array(std::sync::Arc::new(Array { element: types::oids::INT4, dims, items }))
}

/// A count of a table or index.
fn of_relation(known: &RelationStats, word: &str) -> Option<Datum> {
    let RelationStats { counts, table } = known;
    let runs = |kind: usize| table.runs[kind];
    let at = |kind: usize| Some(super::time(table.last[kind]));
    let count = match word {
        "numscans" => counts.scans,
        "tuples_returned" => counts.returned,
        "tuples_fetched" => counts.fetched,
        "tuples_inserted" => counts.inserted,
        "tuples_updated" => counts.updated,
        "tuples_hot_updated" => counts.hot_updated,
        "tuples_deleted" => counts.deleted,
        "live_tuples" => table.live as u64,
        "dead_tuples" => table.dead,
        "mod_since_analyze" => table.modified,
        "ins_since_vacuum" => table.fresh,
        "blocks_fetched" => counts.blocks_hit + counts.blocks_read,
        "blocks_hit" => counts.blocks_hit,
        "vacuum_count" => runs(VACUUM),
        "autovacuum_count" => runs(VACUUM + 1),
        "analyze_count" => runs(ANALYZE),
        "autoanalyze_count" => runs(ANALYZE + 1),
        "last_vacuum_time" => return at(VACUUM),
        "last_autovacuum_time" => return at(VACUUM + 1),
        "last_analyze_time" => return at(ANALYZE),
        "last_autoanalyze_time" => return at(ANALYZE + 1),
        // Nobody can define a function yet.
        "function_calls" | "function_total_time" | "function_self_time" => {
            return Some(Datum::Null);
        }
        _ => return None,
    };
    Some(Datum::Int8(count as i64))
}

fn reset_shared(server: &Server, args: &[Datum]) -> Result<()> {
    let now = server::now();
    let target = match args.first() {
        Some(Datum::Text(target)) => target.to_string(),
        _ => String::new(),
    };
    let stats = server.engine.storage.stats();
    match target.as_str() {
        "bgwriter" => {
            let sessions = server.counters.usage();
            let writer = super::storage::used_by("background writer");
            server.counters.change_bases(|b| {
                (b.bgwriter, b.bgwriter_reset) = ((stats, sessions, writer), now);
            });
        }
        "wal" => server.counters.change_bases(|b| (b.wal, b.wal_reset) = (stats, now)),
        "archiver" | "recovery_prefetch" => {}
        other => {
            return Err(err!(INVALID_PARAMETER_VALUE, "unrecognized reset target: \"{other}\"")
                .hint(
                    "Target must be \"archiver\", \"bgwriter\", \"recovery_prefetch\", or \"wal\".",
                ));
        }
    }
    Ok(())
}

/// Arguments: user, database, query identifier; 0: any.
fn reset_statements(server: &Server, args: &[Datum]) {
    let (user, database, id) = match args {
        [Datum::Oid(user), Datum::Oid(database), Datum::Int8(id)] => (*user, *database, *id as u64),
        _ => (0, 0, 0),
    };
    let which = |key: &StatementKey, work: &Work| {
        (user == 0 || key.user == user)
            && (database == 0 || work.database == database)
            && (id == 0 || key.id == id)
    };
    server.counters.reset_statements(which, server::now());
}

/// The log's file that holds the byte before a position. All files are of one size.
fn log_file(server: &Server, position: u64) -> Datum {
    let files = wal_files(server);
    let Some(Datum::Int8(size)) = files.first().map(|row| &row[1]) else { return Datum::Null };
    let number = position.saturating_sub(1) / (*size).max(1) as u64;
    Datum::Text(format!("{number:016X}").into())
}

/// Rows of `pg_ls_waldir()`: the log's files.
pub(super) fn wal_files(server: &Server) -> Vec<Vec<Datum>> {
    files(&server.engine.storage.dir().join("wal"))
}

/// Rows of `pg_ls_tmpdir()`.
pub(super) fn temporary_files(server: &Server) -> Vec<Vec<Datum>> {
    files(&server.engine.storage.dir().join("tmp"))
}

fn files(dir: &std::path::Path) -> Vec<Vec<Datum>> {
    let Ok(entries) = std::fs::read_dir(dir) else { return Vec::new() };
    let row = |entry: std::fs::DirEntry| {
        let meta = entry.metadata().ok().filter(std::fs::Metadata::is_file)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let changed =
            meta.modified().map_or(Datum::Null, |at| Datum::Timestamptz(server::micros(at)));
        Some(vec![Datum::Text(name.into()), Datum::Int8(meta.len() as i64), changed])
    };
    entries.flatten().filter_map(row).collect()
}
