//! Transactions: ids, the commit log and CSN, snapshots, heavyweight locks, deadlocks. Knows nothing
//! of tables. (Interface agreed first; bodies follow.)
//!
//! * A commit's CSN is the end position of its log record, so the order of visibility is the order
//!   of the log. States: `running -> committing -> committed(csn) | aborted`. A transaction (with
//!   its subtransactions) is marked committing before its record's position is known; a reader that
//!   meets `committing` waits for the outcome, a few nanoseconds.
//! * A snapshot is the highest published CSN. Commits are visible to others as soon as they are
//!   published, before they are durable; a commit is acknowledged only when durable, and a reader
//!   that saw a commit which is not durable yet waits for the flush before its result leaves the
//!   server ([`Transaction::durability_needed`]). So nobody is shown what a crash could take back,
//!   and waiters on a hot row go on before the flush.

pub mod commit_log;
pub mod lock;
pub mod manager;
pub mod snapshot;
pub mod transaction;

pub use commit_log::XidStatus;
pub use lock::{LockManager, LockMode, LockOwner, LockTag, LockWait, RowLockMode};
pub use manager::TxnManager;
pub use snapshot::Snapshot;
pub use transaction::{Isolation, Transaction};
