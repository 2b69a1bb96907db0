//! Changes of rows as a stream.
//!
//! * [`conninfo`]: connection strings as libpq reads them.
//! * [`slot`]: names of replication slots.
//!
//! Never a socket, a task or a session: who sends and who applies is `server`.
#![forbid(unsafe_code)]

pub mod conninfo;
pub mod slot;
