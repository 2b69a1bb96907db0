//! What happened to tables and indexes: `pg_stat_all_tables` and its kin.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use base::{Fork, RelId};
use types::Datum;

use super::{text, time};
use crate::counters::Slot;
use crate::server::Server;

/// Pages of a relation's main fork.
pub fn pages(server: &Server, rel: u32) -> u32 {
    server.engine.storage.block_count(RelId(rel), Fork::Main).unwrap_or(0)
}

/// What happened to each table, as `pg_stat_all_tables` shows it.
pub(super) fn tables(server: &Server, system: bool) -> Vec<Vec<Datum>> {
    let catalog = server.engine.catalog.current();
    let mut rows = Vec::new();
    for table in catalog.tables() {
        let schema = catalog.schema(table.schema).map_or("", |s| &s.name);
        if !system && matches!(schema, "pg_catalog" | "information_schema" | "pg_toast") {
            continue;
        }
        let slot = server.counters.find(table.oid);
        let count = |f: fn(&Slot) -> &AtomicU64| {
            Datum::Int8(slot.map_or(0, |s| f(s).load(Ordering::Relaxed) as i64))
        };
        let at = |f: fn(&Slot) -> &AtomicI64| {
            slot.map_or(Datum::Null, |s| time(f(s).load(Ordering::Relaxed)))
        };
        let (_, live) = crate::session::execute::table_size(&server.engine, &catalog, table);
        let mut row = vec![Datum::Oid(table.oid), text(schema), text(&table.name)];
        row.extend([const { Datum::Null }; 4]);
        row.extend([count(|s| &s.inserted), count(|s| &s.updated), count(|s| &s.deleted)]);
        row.extend([Datum::Null, Datum::Int8(live as i64), count(|s| &s.dead)]);
        row.extend([Datum::Null, Datum::Null]);
        row.extend([at(|s| &s.last_vacuum), at(|s| &s.last_autovacuum)]);
        row.extend([Datum::Null, Datum::Null]);
        row.extend([count(|s| &s.vacuums), count(|s| &s.autovacuums)]);
        row.extend([Datum::Null, Datum::Null]);
        rows.push(row);
    }
    rows
}
