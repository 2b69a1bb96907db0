//! Sessions, portals, listeners, background threads, settings: everything between the wire and the
//! statement. What a statement does is known below.
//!
//! ```text
//!   listener ──accept──▶ session::Session ──(sched: one run at a time)──▶ session::SessionState
//!                                                                          │ wire: decode
//!                                                                          │ sql: plan cache
//!                                                                          │ exec: run
//!                                                                          ▼
//!                                                        connection::Output ──one send──▶ client
//! ```
//!
//! * [`server::Server`] is the one object that all sessions share.
//! * A [`session::Session`] belongs to no thread; between statements it holds no stack and no
//!   buffers.
//! * [`config`] reads the settings' files, [`control`] is what the command line does to a data
//!   directory from outside, [`run`] is the life of the process, [`supervisor`] that of the small
//!   one above it, which starts it again after a crash.
//! * [`wait_sampler`] wakes up once a second; [`history`] keeps what has passed, [`why`] says in words where time
//!   was lost, [`alerts`] says so to others, [`telemetry`] posts metrics and spans, [`profiler`] has the timeline, who blocked whom, and stacks.
// The profiler alone has reasons, and says them.
#![deny(unsafe_code)]

pub mod alerts;
pub mod archive_recovery;
pub mod archived;
pub mod archiver;
pub mod autovacuum;
pub mod background;
pub mod client_auth;
pub mod config;
pub mod connection;
pub mod control;
pub mod counters;
pub mod directory;
pub mod exports;
mod held;
pub mod history;
pub mod http;
pub mod init;
pub mod listener;
pub mod log;
pub mod notify;
pub mod null_server;
pub mod packages;
mod partition_maintenance;
pub mod postmaster;
pub mod prepared;
mod prewarmer;
mod primary;
pub mod profiler;
pub mod registry;
pub mod resize;
pub mod run;
mod saved_statistics;
pub mod senders;
pub mod server;
pub mod session;
pub mod signals;
pub mod standby;
pub mod statements;
pub mod subscription;
pub mod supervisor;
pub mod telemetry;
pub mod user_types;
pub mod views;
pub mod wait_sampler;
pub mod why;

pub use config::Overrides;
pub use run::serve;
pub use supervisor::supervise;
