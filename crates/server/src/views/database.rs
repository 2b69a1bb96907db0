//! `pg_stat_database`: what the sessions of the database did.

use std::collections::HashMap;

use base::usage::Use;
use catalog::Database;
use catalog::object::ids::PG_CATALOG;
use catalog::system::row::row;
use exec::tally::RelationCounts;
use types::Datum;

use super::time;
use crate::server::Server;

/// Milliseconds of so many nanoseconds.
pub(super) fn ms(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e6
}

/// Milliseconds of so many microseconds.
fn from_us(microseconds: u64) -> f64 {
    microseconds as f64 / 1e3
}

/// One row for each database, and PostgreSQL's row for what belongs to none.
pub(super) fn databases(server: &Server) -> Vec<Vec<Datum>> {
    let catalog = server.engine.catalog.shared().current();
    let relations = server.counters.relations();
    let mut sums: HashMap<u32, RelationCounts> = HashMap::new();
    for ((database, _), stats) in &relations {
        sums.entry(*database).or_default().add(&stats.counts);
    }
    let sum = |oid| sums.get(&oid).copied().unwrap_or_default();
    let of = catalog.databases().map(|d| database(server, d, &sum(d.oid)));
    std::iter::once(of_none()).chain(of).collect()
}

const COUNTS: [&str; 16] = [
    "xact_commit",
    "xact_rollback",
    "blks_read",
    "blks_hit",
    "tup_returned",
    "tup_fetched",
    "tup_inserted",
    "tup_updated",
    "tup_deleted",
    "conflicts",
    "temp_files",
    "temp_bytes",
    "deadlocks",
    "sessions_abandoned",
    "sessions_fatal",
    "sessions_killed",
];
const TIMES: [&str; 5] =
    ["blk_read_time", "blk_write_time", "session_time", "active_time", "idle_in_transaction_time"];

fn of_none() -> Vec<Datum> {
    row(PG_CATALOG, "pg_stat_database")
        .set("datid", Datum::Oid(catalog::SHARED))
        .fill(&COUNTS, Datum::Int8(0))
        .fill(&TIMES, Datum::Float8(0.0))
        .fill(&["checksum_failures", "sessions"], Datum::Int8(0))
        .done()
}

fn database(server: &Server, database: &Database, sum: &RelationCounts) -> Vec<Datum> {
    let (counts, usage) = server.counters.database(database.oid);
    let (base, reset) = server.counters.database_base(database.oid);
    let usage = usage.since(&base);
    row(PG_CATALOG, "pg_stat_database")
        .set("datid", Datum::Oid(database.oid))
        .set("datname", database.name.as_str())
        .set("numbackends", server.sessions.count_in(database.oid) as i32)
        .set("xact_commit", counts.commits)
        .set("xact_rollback", counts.rollbacks)
        .set("blks_read", usage.get(Use::BufferRead))
        .set("blks_hit", usage.get(Use::BufferHit))
        .set("tup_returned", sum.returned)
        .set("tup_fetched", sum.fetched)
        .set("tup_inserted", sum.inserted)
        .set("tup_updated", sum.updated)
        .set("tup_deleted", sum.deleted)
        .set("conflicts", 0u64)
        .set("temp_files", usage.get(Use::TempFiles))
        .set("temp_bytes", usage.get(Use::TempWritten))
        .set("deadlocks", counts.deadlocks)
        .set("checksum_failures", 0u64)
        .set("blk_read_time", ms(usage.get(Use::ReadNs)))
        .set("blk_write_time", ms(usage.get(Use::WriteNs)))
        .set("session_time", from_us(counts.session_time))
        .set("active_time", from_us(counts.active_time))
        .set("idle_in_transaction_time", from_us(counts.idle_in_transaction_time))
        .set("sessions", counts.sessions)
        .set("sessions_abandoned", counts.abandoned)
        .set("sessions_fatal", counts.fatal)
        .set("sessions_killed", counts.killed)
        .set("stats_reset", time(reset))
        .done()
}

/// `pg_stat_database_conflicts`: there is no standby.
pub(super) fn conflicts(server: &Server) -> Vec<Vec<Datum>> {
    let catalog = server.engine.catalog.shared().current();
    let one = |d: &std::sync::Arc<catalog::object::Database>| {
        let mut row = vec![Datum::Oid(d.oid), Datum::Text(d.name.as_str().into())];
        row.extend(vec![Datum::Int8(0); 5]);
        row
    };
    catalog.databases().map(one).collect()
}
