//! `pg_stat_workers`: what each worker has to do, and how often it was given to another thread since a statement held it.

use types::Datum;

use crate::server::Server;

/// One row for each worker.
pub(super) fn rows(server: &Server) -> Vec<Vec<Datum>> {
    let number = |n: usize| Datum::Int4(n as i32);
    let row = |worker: sched::WorkerState| {
        vec![
            number(worker.index),
            number(worker.connections),
            number(worker.ready),
            Datum::Bool(worker.sleeps),
            number(worker.away),
            Datum::Int8(worker.replacements as i64),
            Datum::Float8(worker.longest.as_secs_f64() * 1e3),
        ]
    };
    server.workers.states().into_iter().map(row).collect()
}
