//! The vocabulary of every other crate: identifiers, the error type, and the tables of SQLSTATEs, wait
//! events and settings. No I/O and no threads.

pub mod config_file;
pub mod error;
pub mod faults;
pub mod ids;
pub mod method;
pub mod percent;
pub mod settings;
pub mod ternary;
pub mod usage;
pub mod waits;

pub use error::{Error, Result, SqlState, sqlstate};
pub use ids::{Csn, Fork, Lsn, Oid, PageId, RelId, TupleId, Xid};
pub use method::AccessMethod;
pub use waits::WaitEvent;
