//! The executor: one file per operator, expression evaluation, statements that change definitions.
//! Never the protocol.
//!
//! ```text
//! run ── short (one row by key: no batch, no operator)
//!     └─ ops::build ── a tree of operator states beside the plan's tree; batches go up
//! run_utility ── define (CREATE, ALTER, DROP …), copy, maintain (VACUUM, ANALYZE), explain
//! ```
//!
//! * A plan is shared by all sessions and never changes; what changes while it runs is in an
//!   operator's state, which gets its plan node with each call. So an execution owns no borrow
//!   and can rest in a portal.
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

pub mod check;
pub mod context;
mod copy;
mod define;
mod domain;
mod eval;
mod explain;
mod maintain;
pub mod language;
mod modify;
mod ops;
mod overflow;
mod rights;
mod routine;
mod rows;
mod run;
mod session;
mod short;
mod subquery;
mod table;
pub mod tally;
mod vector;

pub use context::{Engine, ExecContext, Outcome, RowSink, SessionHooks};
pub use define::Job;
pub use modify::deferred::{Deferred, fire_all};
pub use run::{Execution, run, run_utility};
pub use session::sequence::SessionSequences;
pub use session::split_name;
