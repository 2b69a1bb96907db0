//! Memory that all sessions share, as it is now: `pg_shmem_allocations`.

use storage::PAGE_SIZE;
use types::Datum;

use super::text;
use crate::server::Server;

/// The large parts; offsets mean nothing in one address space.
pub(super) fn allocations(server: &Server) -> Vec<Vec<Datum>> {
    let frames = server.engine.storage.pool.frames();
    let row = |name: &str, size: usize| {
        let size = Datum::Int8(size as i64);
        vec![text(name), Datum::Null, size.clone(), size]
    };
    vec![row("Buffer Blocks", frames * PAGE_SIZE)]
}
