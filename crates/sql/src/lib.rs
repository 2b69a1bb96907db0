//! From text to plan: the grammar adapter (the only user of libpg_query), the binder, the planner,
//! the shared plan cache. (Interface agreed first; bodies follow.)
//!
//! Pipeline: text → (scanner: shape and literals → cache) → parse → bind → plan → [`Prepared`].
#![forbid(unsafe_code)]

pub mod cache;
pub mod expr;
pub mod plan;
pub mod prepare;
mod scan;
pub mod utility;

pub use cache::PlanCache;
pub use expr::{AggCall, Expr};
pub use plan::{Plan, Prepared, Statement};
pub use prepare::{PrepareContext, environment, normalize, prepare, split_statements};
pub use utility::Utility;
