//! Blocking between sessions, as functions tell it.

use types::Datum;

use crate::server::Server;

/// `pg_blocking_pids`: those for whose locks the session waits.
/// `pg_safe_snapshot_blocking_pids`: those for whose end its DEFERRABLE transaction waits.
pub(super) fn pids(function: &str, server: &Server, pid: i32) -> Vec<i32> {
    let txn = &server.engine.txn;
    match function {
        "pg_safe_snapshot_blocking_pids" => txn.serial.safe_snapshot_blocking_pids(pid),
        _ => txn.locks.blocking_pids(pid),
    }
}

/// `pg_isolation_test_session_is_blocked`: whether the session waits for one of these, or for a safe
/// snapshot.
pub(super) fn is_blocked(server: &Server, pid: i32, by: &[Datum]) -> bool {
    let txn = &server.engine.txn;
    let locked = txn.locks.blocking_pids(pid);
    locked.into_iter().any(|pid| by.contains(&Datum::Int4(pid)))
        || !txn.serial.safe_snapshot_blocking_pids(pid).is_empty()
}
