//! `pg_stat_database`: what the sessions of the database did.

use base::usage::Use;
use catalog::object::ids::{PG_CATALOG, POSTGRES_DB};
use catalog::system::row::row;
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
    let catalog = server.engine.catalog.current();
    let mut rows = vec![empty(0, Datum::Null)];
    for database in catalog.databases() {
        let name = Datum::Text(database.name.as_str().into());
        rows.push(match database.oid {
            POSTGRES_DB => ours(server, name),
            oid => empty(oid, name),
        });
    }
    rows
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

fn empty(oid: u32, name: Datum) -> Vec<Datum> {
    row(PG_CATALOG, "pg_stat_database")
        .set("datid", Datum::Oid(oid))
        .set("datname", name)
        .set("numbackends", if oid == 0 { Datum::Null } else { Datum::Int4(0) })
        .fill(&COUNTS, Datum::Int8(0))
        .fill(&TIMES, Datum::Float8(0.0))
        .fill(&["checksum_failures", "sessions"], Datum::Int8(0))
        .done()
}

fn ours(server: &Server, name: Datum) -> Vec<Datum> {
    let (counts, usage) = server.counters.database();
    let bases = server.counters.bases();
    let usage = usage.since(&bases.database);
    let mut sum = exec::tally::RelationCounts::default();
    server.counters.relations().values().for_each(|r| sum.add(&r.counts));
    row(PG_CATALOG, "pg_stat_database")
        .set("datid", Datum::Oid(POSTGRES_DB))
        .set("datname", name)
        .set("numbackends", server.sessions.count() as i32)
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
        .set("stats_reset", time(bases.database_reset))
        .done()
}

/// `pg_stat_database_conflicts`: there is no standby.
pub(super) fn conflicts(server: &Server) -> Vec<Vec<Datum>> {
    let catalog = server.engine.catalog.current();
    let one = |d: &std::sync::Arc<catalog::object::Database>| {
        let mut row = vec![Datum::Oid(d.oid), Datum::Text(d.name.as_str().into())];
        row.extend(vec![Datum::Int8(0); 5]);
        row
    };
    catalog.databases().map(one).collect()
}
