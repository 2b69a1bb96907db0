//! Statements on a catalog and tables in memory, without a server: what they answer, which plans they get, and that every way
//! to their rows answers alike. Each module is a topic.

mod common;
mod plans;
#[path = "../../../../tests/support/random.rs"]
mod random;
mod sql;
mod ways;
