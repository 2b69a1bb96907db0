//! Reads and writes of files: `pg_stat_bgwriter`, `pg_stat_wal`, `pg_stat_io`,
//! `pg_stat_archiver`.

use base::usage::{Usage, Use};
use catalog::object::ids::PG_CATALOG;
use catalog::system::row::row;
use storage::PAGE_SIZE;
use types::Datum;
use types::numeric::Numeric;

use super::database::ms;
use super::time;
use crate::server::Server;

/// The resources that background threads of a kind have used.
pub(crate) fn used_by(kind: &str) -> Usage {
    let mut sum = Usage::default();
    sched::background_tasks().iter().filter(|t| t.kind() == kind).for_each(|t| sum.add(&t.usage()));
    sum
}

fn reset_at(server: &Server, at: i64) -> Datum {
    time(if at == 0 { server.started } else { at })
}

/// `pg_stat_bgwriter`.
pub(super) fn bgwriter(server: &Server) -> Vec<Vec<Datum>> {
    let now = server.engine.storage.stats();
    let bases = server.counters.bases();
    let (then, sessions_then, writer_then) = &bases.bgwriter;
    let sessions = server.counters.usage().since(sessions_then);
    let writer = used_by("background writer").since(writer_then);
    let backend = sessions.get(Use::BufferWritten) + sessions.get(Use::Extended);
    let allocated = now.reads - then.reads + now.extended - then.extended;
    let one = row(PG_CATALOG, "pg_stat_bgwriter")
        .set("checkpoints_timed", now.checkpoints_timed - then.checkpoints_timed)
        .set("checkpoints_req", now.checkpoints_requested - then.checkpoints_requested)
        .set("checkpoint_write_time", ms(now.checkpoint_write_ns - then.checkpoint_write_ns))
        .set("checkpoint_sync_time", ms(now.checkpoint_sync_ns - then.checkpoint_sync_ns))
        .set("buffers_checkpoint", now.checkpoint_pages - then.checkpoint_pages)
        .set("buffers_clean", writer.get(Use::BufferWritten))
        .set("maxwritten_clean", now.rounds_cut - then.rounds_cut)
        .set("buffers_backend", backend)
        .set("buffers_backend_fsync", sessions.get(Use::Synced))
        .set("buffers_alloc", allocated)
        .set("stats_reset", reset_at(server, bases.bgwriter_reset));
    vec![one.done()]
}

/// `pg_stat_wal`.
pub(super) fn wal(server: &Server) -> Vec<Vec<Datum>> {
    let now = server.engine.storage.stats();
    let bases = server.counters.bases();
    let then = &bases.wal;
    let bytes = now.wal_bytes - then.wal_bytes;
    let one = row(PG_CATALOG, "pg_stat_wal")
        .set("wal_records", now.wal_records - then.wal_records)
        .set("wal_fpi", now.wal_images - then.wal_images)
        .set("wal_bytes", Datum::Numeric(Numeric::from(bytes as i64)))
        .set("wal_buffers_full", now.wal_buffers_full - then.wal_buffers_full)
        .set("wal_write", now.wal_writes - then.wal_writes)
        .set("wal_sync", now.wal_syncs - then.wal_syncs)
        .set("wal_write_time", ms(now.wal_write_ns - then.wal_write_ns))
        .set("wal_sync_time", ms(now.wal_sync_ns - then.wal_sync_ns))
        .set("stats_reset", reset_at(server, bases.wal_reset));
    vec![one.done()]
}

/// `pg_stat_io`, in the form of PostgreSQL 16: one row for each kind of thread that touches pages.
pub(super) fn io(server: &Server) -> Vec<Vec<Datum>> {
    let mut kinds: Vec<(&str, Usage)> = vec![("client backend", server.counters.usage())];
    for task in sched::background_tasks() {
        match kinds.iter_mut().find(|(kind, _)| *kind == task.kind()) {
            Some((_, sum)) => sum.add(&task.usage()),
            None => kinds.push((task.kind(), task.usage())),
        }
    }
    let one = |(kind, used): &(&str, Usage)| {
        row(PG_CATALOG, "pg_stat_io")
            .set("backend_type", *kind)
            .set("object", "relation")
            .set("context", "normal")
            .set("reads", used.get(Use::BufferRead))
            .set("read_time", ms(used.get(Use::ReadNs)))
            .set("writes", used.get(Use::BufferWritten))
            .set("write_time", ms(used.get(Use::WriteNs)))
            .set("extends", used.get(Use::Extended))
            .set("extend_time", ms(used.get(Use::ExtendNs)))
            .set("op_bytes", PAGE_SIZE as i64)
            .set("hits", used.get(Use::BufferHit))
            .set("evictions", used.get(Use::Evicted))
            .set("fsyncs", used.get(Use::Synced))
            .set("fsync_time", ms(used.get(Use::SyncNs)))
            .set("stats_reset", time(server.started))
            .done()
    };
    let touches =
        |(kind, used): &&(&str, Usage)| *kind == "client backend" || Usage::default() != *used;
    kinds.iter().filter(touches).map(one).collect()
}

/// `pg_stat_archiver`: nothing is archived.
pub(super) fn archiver(server: &Server) -> Vec<Vec<Datum>> {
    let counts = server.archived.0.lock().clone();
    let mut one = row(PG_CATALOG, "pg_stat_archiver")
        .set("archived_count", Datum::Int8(counts.count as i64))
        .set("failed_count", Datum::Int8(counts.failed as i64))
        .set("stats_reset", time(server.started));
    for (last, name, at) in [
        (&counts.last, "last_archived_wal", "last_archived_time"),
        (&counts.last_failed, "last_failed_wal", "last_failed_time"),
    ] {
        if let Some((segment, when)) = last {
            one = one.set(name, segment.as_str()).set(at, time(*when));
        }
    }
    vec![one.done()]
}

/// `pg_stat_slru`: the caches that PostgreSQL has are not here; what they cache is in memory.
pub(super) fn slru(server: &Server) -> Vec<Vec<Datum>> {
    let names = [
        "CommitTs",
        "MultiXactMember",
        "MultiXactOffset",
        "Notify",
        "Serial",
        "Subtrans",
        "Xact",
        "other",
    ];
    let one = |name: &&str| {
        let mut row = vec![Datum::Text((*name).into())];
        row.extend(vec![Datum::Int8(0); 7]);
        row.push(time(server.started));
        row
    };
    names.iter().map(one).collect()
}
