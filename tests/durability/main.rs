//! Crashes, power cuts, damage, backups: what must be there afterwards. Each module is a topic.

#[path = "../support/mod.rs"]
mod support;

mod archive;
mod backup;
mod crash;
mod damage;
mod faults;
mod formats;
mod index_steps;
mod power_cut;
