//! Sessions, the protocol and the command line: what clients, pools and operators see. Each module is a topic.

#[path = "../support/mod.rs"]
mod support;

mod accepting;
mod autonomous;
mod bystander;
mod changing;
mod command_line;
mod crowds;
mod databases;
mod docs;
mod eager;
mod headless;
mod held;
mod large_values;
mod memory;
mod notify;
mod pgbench;
mod progress;
mod protocol;
mod reading;
mod resize;
mod sessions;
mod storm;
mod supervisor;
mod timeouts;
