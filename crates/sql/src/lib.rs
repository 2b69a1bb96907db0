//! From text to plan: the grammar adapter (the only user of libpg_query), the binder, the planner,
//! the shared plan cache.
//!
//! Pipeline: text → ([`cache`]: shape and literals → a plan that is there already) → [`parse`] →
//! [`bind`] (the tree of [`logical`]) → [`planner`] → [`Prepared`].
#![forbid(unsafe_code)]

mod bind;
pub use bind::coerce::is_binary_coercible;
pub mod cache;
mod chains;
pub mod collation_statement;
pub mod column_keeping;
pub mod comment_statement;
pub mod custom;
pub mod database;
pub mod define_statement;
pub mod embedded;
pub mod event_trigger;
mod every_node;
pub mod expr;
pub mod extension_statement;
pub mod foreign;
mod graft;
mod identity;
mod index_statement;
mod later_passes;
pub mod logical;
mod long_values;
mod name;
mod nesting;
pub mod nonstandard;
mod parse;
pub mod partition;
pub mod plan;
mod planner;
pub mod policy;
pub mod prepare;
pub mod print;
pub mod prune;
pub mod publication;
mod rewrite;
pub mod role;
pub mod routine;
pub mod rule;
mod scan;
pub mod secrets;
mod statement;
pub mod stored;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
pub mod tid;
pub mod trials;
pub mod trigger;
pub mod type_statement;
pub mod utility;
pub mod view;
pub mod walk;
pub mod window;

pub use bind::conflict::no_arbiter;
pub use bind::copy::options_of as copy_options_of;
pub use bind::current::CURRENT_OF;
pub use bind::from::record_columns;
pub use bind::stored_domain_condition;
pub use cache::PlanCache;
pub use expr::{AggCall, Expr};
pub use identity::Identity;
pub use nesting::stack_for;
pub use plan::{Plan, Prepared, Statement};
pub use prepare::{PrepareContext, environment, normalize, prepare, split_statements};
pub use utility::Utility;
