//! `pg_stat_progress_*`: how far long commands have come.

use catalog::object::ids::PG_CATALOG;
use catalog::system::row::{Row, row};
use sched::observe::progress::{Count, Kind, Progress, running};
use types::Datum;

use crate::server::Server;

/// A row with what all these views have in common.
fn begin(server: &Server, view: &'static str, progress: &Progress) -> Row {
    let shared = server.engine.catalog.shared().current();
    let name = shared.database(progress.database).map_or("", |d| d.name.as_str());
    row(PG_CATALOG, view)
        .set("pid", progress.pid)
        .set("datid", Datum::Oid(progress.database))
        .set("datname", name)
        .set("relid", Datum::Oid(progress.relation))
}

fn counts(row: Row, progress: &Progress, columns: &[(&str, Count)]) -> Row {
    columns.iter().fold(row, |row, (column, count)| row.set(column, progress.get(*count)))
}

/// Rows of one kind of command.
fn rows(
    server: &Server,
    view: &'static str,
    kind: Kind,
    fill: impl Fn(Row, &Progress) -> Row,
) -> Vec<Vec<Datum>> {
    let one = |p: &std::sync::Arc<Progress>| fill(begin(server, view, p), p).done();
    running(kind).iter().map(one).collect()
}

/// `pg_stat_progress_vacuum`.
pub(super) fn vacuum(server: &Server) -> Vec<Vec<Datum>> {
    rows(server, "pg_stat_progress_vacuum", Kind::Vacuum, |row, p| {
        let columns = [
            ("heap_blks_total", Count::BlocksTotal),
            ("heap_blks_scanned", Count::BlocksDone),
            ("heap_blks_vacuumed", Count::BlocksVacuumed),
            ("index_vacuum_count", Count::IndexPasses),
            ("max_dead_tuples", Count::DeadMax),
            ("num_dead_tuples", Count::Dead),
        ];
        counts(row.set("phase", p.phase()), p, &columns)
    })
}

/// `pg_stat_progress_analyze`. There are no extended statistics, and no tables below others.
pub(super) fn analyze(server: &Server) -> Vec<Vec<Datum>> {
    let none = ["ext_stats_total", "ext_stats_computed", "child_tables_total", "child_tables_done"];
    rows(server, "pg_stat_progress_analyze", Kind::Analyze, |row, p| {
        let columns =
            [("sample_blks_total", Count::BlocksTotal), ("sample_blks_scanned", Count::BlocksDone)];
        counts(row.set("phase", p.phase()), p, &columns)
            .fill(&none, Datum::Int8(0))
            .set("current_child_table_relid", Datum::Oid(0))
    })
}

/// `pg_stat_progress_create_index`. Tables have no partitions.
pub(super) fn create_index(server: &Server) -> Vec<Vec<Datum>> {
    rows(server, "pg_stat_progress_create_index", Kind::CreateIndex, |row, p| {
        let columns = [
            ("lockers_total", Count::LockersTotal),
            ("lockers_done", Count::LockersDone),
            ("current_locker_pid", Count::Locker),
            ("blocks_total", Count::BlocksTotal),
            ("blocks_done", Count::BlocksDone),
            ("tuples_total", Count::RowsTotal),
            ("tuples_done", Count::RowsDone),
        ];
        let row = row.set("command", p.command).set("phase", p.phase());
        counts(row, p, &columns)
            .set("index_relid", Datum::Oid(p.get(Count::Index) as u32))
            .fill(&["partitions_total", "partitions_done"], Datum::Int8(0))
    })
}

/// `pg_stat_progress_copy`. All data come from the client or go there.
pub(super) fn copy(server: &Server) -> Vec<Vec<Datum>> {
    rows(server, "pg_stat_progress_copy", Kind::Copy, |row, p| {
        let columns = [
            ("bytes_processed", Count::BytesDone),
            ("tuples_processed", Count::RowsDone),
            ("tuples_excluded", Count::RowsExcluded),
        ];
        let row = row.set("command", p.command).set("type", "PIPE");
        counts(row, p, &columns).set("bytes_total", 0u64)
    })
}

/// `pg_stat_progress_partition`: tables of which rows go into other partitions, whether somebody is at it now or not.
pub(super) fn partition(server: &Server) -> Vec<Vec<Datum>> {
    let shared = server.engine.catalog.shared().current();
    let mut out = Vec::new();
    for database in server.engine.catalog.databases() {
        let catalog = database.current();
        let name = shared.database(database.oid()).map_or("", |d| d.name.as_str());
        for table in catalog.tables() {
            let progress = exec::redistribute::progress(&catalog, table);
            let Some((phase, total, done)) = progress else { continue };
            out.push(
                row(PG_CATALOG, "pg_stat_progress_partition")
                    .set("pid", Datum::Null)
                    .set("datid", Datum::Oid(database.oid()))
                    .set("datname", name)
                    .set("relid", Datum::Oid(table.oid))
                    .set("phase", phase)
                    .set("partitions_total", total)
                    .set("partitions_done", done)
                    .done(),
            );
        }
    }
    out
}
