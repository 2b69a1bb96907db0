//! Statistics of tables and indexes: `pg_stat_{all,user,sys,xact_all, …}_{tables,indexes}` and
//! `pg_statio_*`. The catalog's own tables are kept in memory and not counted.

use std::collections::HashMap;

use base::{Fork, RelId};
use catalog::object::ids::PG_CATALOG;
use catalog::system::row::{Row, row};
use catalog::{Index, Snapshot};
use exec::tally::{RelationCounts, Tally};
use types::Datum;

use super::time;
use crate::counters::{ANALYZE, RelationStats, VACUUM};
use crate::server::Server;

/// Pages of a relation's main fork.
pub fn pages(server: &Server, rel: u32) -> u32 {
    server.engine.storage.block_count(RelId(rel), Fork::Main).unwrap_or(0)
}

/// Which tables a view is about, by its name.
#[derive(Clone, Copy)]
struct Scope {
    user: bool,
    system: bool,
}

impl Scope {
    fn of(view: &str) -> Scope {
        let all = view.contains("_all_");
        Scope { user: all || view.contains("_user_"), system: all || view.contains("_sys_") }
    }
}

/// One line of a view about tables.
struct TableLine {
    oid: u32,
    schema: String,
    name: String,
    indexes: Vec<std::sync::Arc<Index>>,
}

fn table_lines(catalog: &Snapshot, scope: Scope) -> Vec<TableLine> {
    let schema = |id| catalog.schema(id).map_or(String::new(), |s| s.name.clone());
    let is_system = |name: &str| matches!(name, "pg_catalog" | "information_schema" | "pg_toast");
    let kept = catalog.tables().filter(|t| t.rel != 0).map(|t| TableLine {
        oid: t.oid,
        schema: schema(t.schema),
        name: t.name.clone(),
        indexes: catalog.indexes_of(t),
    });
    let computed = catalog::system::tables().iter().filter(|t| !t.is_view).map(|t| TableLine {
        oid: t.oid.0,
        schema: schema(t.schema),
        name: t.name.to_owned(),
        indexes: Vec::new(),
    });
    kept.chain(computed)
        .filter(|t| if is_system(&t.schema) { scope.system } else { scope.user })
        .collect()
}

/// Users' functions that were called while `track_functions` asked for their counts.
pub(super) fn functions(server: &Server, database: u32, view: &'static str) -> Vec<Vec<Datum>> {
    let stats = stats_of(server, database).into_iter().map(|(oid, known)| (oid, known.counts));
    function_rows(server, database, view, stats)
}

/// `pg_stat_xact_user_functions`: what a transaction has called so far.
pub fn called(server: &Server, database: u32, done: &Tally) -> Vec<Vec<Datum>> {
    function_rows(server, database, "pg_stat_xact_user_functions", done.iter().copied())
}

fn function_rows(
    server: &Server,
    database: u32,
    view: &'static str,
    counts: impl Iterator<Item = (u32, RelationCounts)>,
) -> Vec<Vec<Datum>> {
    let catalog = super::catalog_of(server, database);
    let of = |(oid, counts): (u32, RelationCounts)| {
        let function = catalog.function(oid).filter(|_| counts.scans > 0)?;
        Some(function_row(&catalog, view, function, &counts))
    };
    counts.filter_map(of).collect()
}

fn function_row(
    catalog: &Snapshot,
    view: &'static str,
    function: &catalog::Function,
    counts: &RelationCounts,
) -> Vec<Datum> {
    let schema = catalog.schema(function.schema).map_or("", |s| s.name.as_str());
    row(PG_CATALOG, view)
        .set("funcid", Datum::Oid(function.oid))
        .set("schemaname", schema)
        .set("funcname", function.name.as_str())
        .set("calls", counts.scans as i64)
        .set("total_time", Datum::Float8(counts.returned as f64 / 1000.0))
        .set("self_time", Datum::Float8(counts.fetched as f64 / 1000.0))
        .done()
}

type Stats = HashMap<u32, RelationStats>;

/// The counts of a database's tables and indexes.
fn stats_of(server: &Server, database: u32) -> Stats {
    let all = server.counters.relations().into_iter();
    all.filter(|((of, _), _)| *of == database).map(|((_, oid), stats)| (oid, stats)).collect()
}

fn counts(stats: &Stats, oid: u32) -> RelationCounts {
    stats.get(&oid).map(|s| s.counts).unwrap_or_default()
}

/// The sum over a table's indexes; None when it has none.
fn of_indexes(stats: &Stats, indexes: &[std::sync::Arc<Index>]) -> Option<RelationCounts> {
    let mut sum = RelationCounts::default();
    indexes.iter().for_each(|i| sum.add(&counts(stats, i.oid)));
    (!indexes.is_empty()).then_some(sum)
}

fn or_null(value: Option<u64>) -> Datum {
    value.map_or(Datum::Null, |v| Datum::Int8(v as i64))
}

fn table_row(view: &'static str, line: &TableLine) -> Row {
    row(PG_CATALOG, view)
        .set("relid", Datum::Oid(line.oid))
        .set("schemaname", line.schema.as_str())
        .set("relname", line.name.as_str())
}

/// The columns that `pg_stat_xact_*` have, too. Rows that bitmap scans found are the table's own count.
fn activity(row: Row, own: &RelationCounts, indexes: Option<&RelationCounts>) -> Row {
    row.set("seq_scan", own.scans)
        .set("seq_tup_read", own.returned)
        .set("idx_scan", or_null(indexes.map(|i| i.scans)))
        .set("idx_tup_fetch", or_null(indexes.map(|i| i.fetched + own.fetched)))
        .set("n_tup_ins", own.inserted)
        .set("n_tup_upd", own.updated)
        .set("n_tup_del", own.deleted)
        .set("n_tup_hot_upd", own.hot_updated)
}

/// `pg_stat_*_tables`.
pub(super) fn tables(server: &Server, database: u32, view: &'static str) -> Vec<Vec<Datum>> {
    let stats = stats_of(server, database);
    let line = |line: &TableLine| {
        let known = stats.get(&line.oid).cloned().unwrap_or_default();
        let indexes = of_indexes(&stats, &line.indexes);
        let table = &known.table;
        let runs = |kind: usize| Datum::Int8(table.runs[kind] as i64);
        activity(table_row(view, line), &known.counts, indexes.as_ref())
            .set("n_live_tup", table.live)
            .set("n_dead_tup", table.dead)
            .set("n_mod_since_analyze", table.modified)
            .set("n_ins_since_vacuum", table.fresh)
            .set("last_vacuum", time(table.last[VACUUM]))
            .set("last_autovacuum", time(table.last[VACUUM + 1]))
            .set("last_analyze", time(table.last[ANALYZE]))
            .set("last_autoanalyze", time(table.last[ANALYZE + 1]))
            .set("vacuum_count", runs(VACUUM))
            .set("autovacuum_count", runs(VACUUM + 1))
            .set("analyze_count", runs(ANALYZE))
            .set("autoanalyze_count", runs(ANALYZE + 1))
            .done()
    };
    let catalog = super::catalog_of(server, database);
    table_lines(&catalog, Scope::of(view)).iter().map(line).collect()
}

/// `pg_stat_xact_*_tables`: what a transaction has done so far.
pub fn transaction(
    server: &Server,
    database: u32,
    view: &'static str,
    done: &Tally,
) -> Vec<Vec<Datum>> {
    let counted = |(oid, counts): &(u32, RelationCounts)| {
        (*oid, RelationStats { counts: *counts, ..RelationStats::default() })
    };
    let stats: Stats = done.iter().map(counted).collect();
    let line = |line: &TableLine| {
        let indexes = of_indexes(&stats, &line.indexes);
        activity(table_row(view, line), &counts(&stats, line.oid), indexes.as_ref()).done()
    };
    let catalog = super::catalog_of(server, database);
    table_lines(&catalog, Scope::of(view)).iter().map(line).collect()
}

/// `pg_statio_*_tables`.
pub(super) fn table_pages(server: &Server, database: u32, view: &'static str) -> Vec<Vec<Datum>> {
    let stats = stats_of(server, database);
    let line = |line: &TableLine| {
        let own = counts(&stats, line.oid);
        let indexes = of_indexes(&stats, &line.indexes);
        table_row(view, line)
            .set("heap_blks_read", own.blocks_read)
            .set("heap_blks_hit", own.blocks_hit)
            .set("idx_blks_read", or_null(indexes.map(|i| i.blocks_read)))
            .set("idx_blks_hit", or_null(indexes.map(|i| i.blocks_hit)))
            .done()
    };
    let catalog = super::catalog_of(server, database);
    table_lines(&catalog, Scope::of(view)).iter().map(line).collect()
}

/// `pg_statio_*_sequences`.
pub(super) fn sequences(server: &Server, database: u32, view: &'static str) -> Vec<Vec<Datum>> {
    if !Scope::of(view).user {
        return Vec::new();
    }
    let stats = stats_of(server, database);
    let catalog = super::catalog_of(server, database);
    let line = |s: &std::sync::Arc<catalog::object::Sequence>| {
        let own = counts(&stats, s.oid);
        row(PG_CATALOG, view)
            .set("relid", Datum::Oid(s.oid))
            .set("schemaname", catalog.schema(s.schema).map_or("", |schema| schema.name.as_str()))
            .set("relname", s.name.as_str())
            .set("blks_read", own.blocks_read)
            .set("blks_hit", own.blocks_hit)
            .done()
    };
    catalog.sequences().map(line).collect()
}

/// `pg_stat_*_indexes` and `pg_statio_*_indexes`.
pub(super) fn indexes(server: &Server, database: u32, view: &'static str) -> Vec<Vec<Datum>> {
    let stats = stats_of(server, database);
    let catalog = super::catalog_of(server, database);
    let mut rows = Vec::new();
    for line in table_lines(&catalog, Scope::of(view)) {
        for index in &line.indexes {
            let own = counts(&stats, index.oid);
            let row = table_row(view, &line)
                .set("indexrelid", Datum::Oid(index.oid))
                .set("indexrelname", index.name.as_str());
            let row = if view.starts_with("pg_statio") {
                row.set("idx_blks_read", own.blocks_read).set("idx_blks_hit", own.blocks_hit)
            } else {
                row.set("idx_scan", own.scans)
                    .set("idx_tup_read", own.returned)
                    .set("idx_tup_fetch", own.fetched)
            };
            rows.push(row.done());
        }
    }
    rows
}
