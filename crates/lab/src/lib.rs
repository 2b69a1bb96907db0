//! The laboratory: measures how a server scales, fits models to it, and explains where the time goes.
//!
//! ```text
//!   sweep, compare, incident ──► results (JSON lines) ──► fit ──► report
//!                 locks ──► simulate (calibrated by it) ────────────┘
//! ```
//! It knows servers only by their protocol and views; of the server's own crates it uses `base` and
//! `sched`, whose locks it measures.
//!
//! Each command is a module of its own with `HELP` and `run`; [`command`] names them in one table.
#![forbid(unsafe_code)]

pub mod all;
pub mod arguments;
pub mod command;
pub mod compare;
pub mod driver;
pub mod environment;
pub mod error;
pub mod fit;
pub mod incident;
pub mod installed;
pub mod locks;
pub mod output;
pub mod report;
pub mod results;
pub mod script;
pub mod servers;
pub mod sessions;
pub mod simulate;
pub mod stop;
pub mod sweep;
pub mod table;
pub mod tpcc;
pub mod workload;

pub use error::{Error, Result};
