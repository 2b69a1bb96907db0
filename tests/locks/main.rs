//! Sessions against each other: isolation, waits and who blocks whom. Each module is a topic.

#[path = "../support/mod.rs"]
mod support;

mod blocking;
mod isolation;
mod serializable;
mod waits;
