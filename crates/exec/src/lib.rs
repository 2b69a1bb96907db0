//! The executor: one file per operator, expression evaluation, COPY, EXPLAIN, SQL inside the server.
//! Never the protocol.
//!
//! ```text
//! run ── short (one row by key: no batch, no operator)
//!     └─ ops::build ── a tree of operator states beside the plan's tree; batches go up
//! run_utility ── the crate above (context::Utilities); copy and explain are here
//! ```
//!
//! * A plan is shared by all sessions and never changes; what changes while it runs is in an
//!   operator's state, which gets its plan node with each call. So an execution owns no borrow
//!   and can rest in a portal.
//! * Expressions and nested statements (the lower half) call operators, session functions and bodies of functions
//!   (the upper half) by the table [`calls::Calls`], and import none of them.
//! * No latch is held while an expression is evaluated or a row is given away.
//!
//! Left out for now:
//!
//! * Sorts, hash joins and hashed groups spill under `work_mem`; materialised inputs and the sort of an
//!   index build are held in memory whatever their size.
//! * An index has no entries for versions that only older snapshots see (see the index build).
//! * `ADD COLUMN` evaluates a volatile default once, not for each row.
//! * EXPLAIN shows tables by name, not by alias, and no buffers.
#![forbid(unsafe_code)]

pub mod absent_language;
pub mod apply;
mod auto_explain;
pub mod calls;
pub mod change_log;
pub mod compiled;
pub mod context;
pub mod copy;
pub mod covering;
mod domain;
pub mod eval;
pub mod event;
pub mod event_trigger;
pub mod execute;
pub mod execution;
pub mod explain;
pub mod foreign;
pub mod index_search;
pub mod inspect;
pub mod interval;
pub mod language;
pub mod logical_stream;
mod members;
pub mod modify;
pub mod native;
pub mod neighbors;
pub mod nested;
pub mod ops;
pub mod origins;
pub mod overflow;
pub mod parallel;
pub mod partition;
pub mod plan_slot;
pub mod prewarm;
pub mod publisher;
pub mod redistribute;
pub mod relation_lock;
pub mod rights;
pub mod routine;
pub mod rows;
pub mod run;
pub mod security;
pub mod server_file;
pub mod session;
pub mod session_origin;
mod short;
pub mod signatures;
pub mod spi;
pub mod stored_plans;
mod subquery;
pub mod summaries;
pub mod table;
pub mod tally;
mod vector;
pub mod wiring;

pub use context::{Engine, ExecContext, Outcome, RowSink, SessionHooks};
pub use execute::run;
pub use execution::{Execution, run_utility};
pub use modify::deferred::Deferred;
pub use modify::fire::fire_all;
pub use session::open_large_objects::LargeObjects;
pub use session::sequence_values::SessionSequences;
pub use session::split_name;
pub use wiring::CALLS;
