//! Functions in languages, extensions and foreign data. Each module is a topic.

#[path = "../support/mod.rs"]
mod support;

mod code_in_server;
mod extension;
mod foreign;
mod java;
mod javascript;
mod nesting;
mod vector;
mod wasm;
