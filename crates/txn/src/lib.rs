//! Transactions: ids, the commit log and CSN, snapshots, heavyweight locks, deadlocks. Knows nothing
//! of tables.
//!
//! * A commit's CSN is the end position of its log record, so the order of visibility is the order
//!   of the log. States: `running -> committing -> committed(csn) | aborted`. A transaction (with
//!   its subtransactions) is marked committing before its record's position is known; a reader that
//!   meets `committing` waits for the outcome, a few nanoseconds. See [`manager`].
//! * A snapshot is the highest published CSN. Commits are visible to others as soon as they are
//!   published, before they are durable; a commit is acknowledged only when durable, and a reader
//!   that saw a commit which is not durable yet waits for the flush before its result leaves the
//!   server ([`Transaction::durability_needed`]). So nobody is shown what a crash could take back,
//!   and waiters on a hot row go on before the flush. See decision 0003.
//!
//! | module | holds |
//! | --- | --- |
//! | [`manager`] | ids, the order of commits, the oldest running transaction |
//! | [`transaction`] | a session's transaction: snapshots, savepoints, commit, rollback |
//! | [`commit_log`] | transaction id to outcome, in memory; `commit_file`: on disk |
//! | `registry` | the sessions' slots |
//! | `horizon` | what is made of their snapshots: which row versions nobody needs |
//! | `waiters` | who waits for which transaction's end |
//! | [`serial`] | SERIALIZABLE: predicate locks, rw-conflicts, safe snapshots |
//! | [`lock`] | heavyweight locks, the deadlock detector, shared row locks |
//! | [`prepared`] | two-phase commit |
//! | [`standby`] | transactions of another server, whose log is followed |
//! | `log`, `recovery` | the log's records, checkpoints and recovery |

#![forbid(unsafe_code)]

mod commit_file;
pub mod commit_log;
mod horizon;
pub mod lock;
mod log;
pub mod manager;
pub mod prepared;
mod recovery;
mod registry;
pub mod serial;
pub mod snapshot;
pub mod standby;
pub mod transaction;
mod waiters;

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

pub use commit_log::XidStatus;
pub use horizon::LiveSnapshots;
pub use lock::{LockManager, LockMode, LockOwner, LockRow, LockTag, LockWait, RowLockMode};
pub use log::{PREPARED, REMOVED, ROLLED_BACK, describe, is_commit, name_of, time_of};
pub use manager::{SessionSnapshots, TxnManager};
pub use prepared::{PREPARED_PID, Prepared, PreparedName};
pub use recovery::counters_of;
pub use serial::Serial;
pub use snapshot::Snapshot;
pub use standby::Following;
pub use transaction::{Isolation, SavepointLevel, Transaction};
