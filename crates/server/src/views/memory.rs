//! Memory: what all sessions share (`pg_shmem_allocations`), what each holds
//! (`pg_stat_session_memory`), and both together (`pg_stat_server_memory`).

use storage::PAGE_SIZE;
use types::Datum;

use crate::server::Server;
use crate::views::text::text;

/// The large parts; offsets mean nothing in one address space.
pub(super) fn allocations(server: &Server) -> Vec<Vec<Datum>> {
    let frames = server.engine.storage.pool.frames_held();
    let row = |name: &str, size: usize| {
        let size = Datum::Int8(size as i64);
        vec![text(name), Datum::Null, size.clone(), size]
    };
    let log = server.engine.storage.wal.buffers() as usize;
    vec![row("Buffer Blocks", frames * PAGE_SIZE), row("XLOG Buffers", log)]
}

/// One row a session and background thread.
pub(super) fn sessions() -> Vec<Vec<Datum>> {
    let row = |task: sched::TaskRef| {
        let usage = task.memory().usage();
        let pid = if task.pid() == 0 { Datum::Null } else { Datum::Int4(task.pid()) };
        let limit = if usage.limit == 0 { Datum::Null } else { Datum::Int8(usage.limit) };
        let mut row = vec![pid, text(task.kind()), Datum::Int8(usage.used)];
        row.extend([Datum::Int8(usage.peak), limit]);
        row.extend(usage.uses.map(Datum::Int8));
        row
    };
    sched::observe::tasks().into_iter().map(row).collect()
}

/// The one row.
pub(super) fn server(server: &Server) -> Vec<Vec<Datum>> {
    let (held, limit) = (sched::memory::server_bytes(), sched::memory::server_limit());
    let shared = server.engine.storage.pool.frames_held() * PAGE_SIZE;
    let limit = if limit == 0 { Datum::Null } else { Datum::Int8(limit) };
    vec![vec![Datum::Int8(shared as i64), Datum::Int8(held), limit]]
}
