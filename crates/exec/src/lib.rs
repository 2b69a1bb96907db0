//! The executor: one file per operator, expression evaluation, statements that change definitions.
//! Never the protocol. (Interface agreed first; bodies follow.)
#![forbid(unsafe_code)]

pub mod context;

pub use context::{Engine, ExecContext, RowSink, SessionHooks};
