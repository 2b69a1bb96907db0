//! Standbys, streams of changes and transactions in two phases. Each module is a topic.

#[path = "../support/mod.rs"]
mod support;

#[path = "../support/cluster.rs"]
mod cluster;
#[path = "../support/lists.rs"]
mod lists;
#[path = "../support/losses.rs"]
mod losses;

mod logical;
mod replicas;
mod standby;
mod streaming;
mod two_phase;
