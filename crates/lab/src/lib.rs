//! The laboratory: measures how a server scales, fits models to it, and explains where the time goes.
//!
//! ```text
//!   sweep, compare, incident ──► results (JSON lines) ──► fit ──► report
//!                 locks ──► simulate (calibrated by it) ────────────┘
//! ```
//! It knows servers only by their protocol and views; of the server's own crates it uses `base` and
//! `sched`, whose locks it measures.
#![forbid(unsafe_code)]

pub mod command;
pub mod results;
