//! Who may log in and what a role may do. Each module is a topic.

#[path = "../support/mod.rs"]
mod support;

mod attacks;
mod auth;
mod secrets;
