//! `pg_stat_statements` and `pg_stat_statements_info`, with the columns of version 1.10.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use base::usage::Use;
use catalog::object::ids::PG_CATALOG;
use catalog::system::row::{Row, row};
use storage::PAGE_SIZE;
use types::Datum;
use types::numeric::Numeric;

use super::database::ms;
use super::time;
use crate::server::Server;
use crate::statements::{Spread, Statement, StatementKey};

fn spread(row: Row, what: &str, times: &Spread) -> Row {
    row.set(&format!("total_{what}_time"), times.total)
        .set(&format!("min_{what}_time"), times.min)
        .set(&format!("max_{what}_time"), times.max)
        .set(&format!("mean_{what}_time"), times.mean())
        .set(&format!("stddev_{what}_time"), times.deviation())
}

fn one(key: &StatementKey, s: &Statement) -> Vec<Datum> {
    let used = |what| s.usage.get(what);
    let pages = |bytes: u64| bytes.div_ceil(PAGE_SIZE as u64);
    let new = row(PG_CATALOG, "pg_stat_statements")
        .set("userid", Datum::Oid(key.user))
        .set("dbid", Datum::Oid(s.work.database))
        .set("toplevel", true)
        .set("queryid", key.id)
        .set("query", &*s.text)
        .set("plans", s.plans.count)
        .set("calls", s.executions.count)
        .set("rows", s.rows)
        .set("shared_blks_hit", used(Use::BufferHit))
        .set("shared_blks_read", used(Use::BufferRead))
        .set("shared_blks_dirtied", used(Use::BufferDirtied))
        .set("shared_blks_written", used(Use::BufferWritten))
        .set("temp_blks_read", pages(used(Use::TempRead)))
        .set("temp_blks_written", pages(used(Use::TempWritten)))
        .set("blk_read_time", ms(used(Use::ReadNs)))
        .set("blk_write_time", ms(used(Use::WriteNs)))
        .set("wal_records", used(Use::WalRecords))
        .set("wal_fpi", used(Use::WalImages))
        .set("wal_bytes", Datum::Numeric(Numeric::from(used(Use::WalBytes) as i64)))
        .fill(
            &["local_blks_hit", "local_blks_read", "local_blks_dirtied", "local_blks_written"],
            Datum::Int8(0),
        )
        .set("temp_blk_read_time", ms(used(Use::TempReadNs)))
        .set("temp_blk_write_time", ms(used(Use::TempWriteNs)))
        .fill(&["jit_functions", "jit_inlining_count", "jit_optimization_count"], Datum::Int8(0))
        .set("jit_emission_count", 0u64)
        .fill(
            &["jit_generation_time", "jit_inlining_time", "jit_optimization_time"],
            Datum::Float8(0.0),
        )
        .set("jit_emission_time", 0.0);
    spread(spread(new, "plan", &s.plans), "exec", &s.executions).done()
}

/// `pg_stat_statements`.
pub(super) fn statements(server: &Server) -> Vec<Vec<Datum>> {
    // Whatever the application.
    let mut all: HashMap<(u32, u32, u64), (StatementKey, Statement)> = HashMap::new();
    for (key, statement) in server.counters.statements() {
        match all.entry((key.user, statement.work.database, key.id)) {
            Entry::Occupied(mut known) => known.get_mut().1.merge(&statement),
            Entry::Vacant(new) => drop(new.insert((key, statement))),
        }
    }
    all.values().map(|(key, statement)| one(key, statement)).collect()
}

/// `pg_stat_statements_info`.
pub(super) fn info(server: &Server) -> Vec<Vec<Datum>> {
    let at = match server.counters.statements_reset_at() {
        0 => server.started,
        at => at,
    };
    vec![vec![Datum::Int8(server.counters.forgotten()), time(at)]]
}
