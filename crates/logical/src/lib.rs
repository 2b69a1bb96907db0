//! Changes of rows as a stream.
//!
//! ```text
//! exec (writers) ── record ──► log ──► decode ──► output: text, pgoutput, wal2json ──► server (functions, senders)
//! ```
//! * [`record`]: what the log tells, when `wal_level` is `logical`.
//! * [`decode`]: transactions out of the log, in the order of their commits.
//! * [`output`]: what a plugin makes of them.
//! * [`slot`]: names and states of replication slots.
//! * [`conninfo`]: connection strings as libpq reads them.
//!
//! Never a socket, a task or a session: who sends and who applies is `server`.
#![forbid(unsafe_code)]

pub mod conninfo;
pub mod decode;
pub mod output;
pub mod record;
pub mod slot;
