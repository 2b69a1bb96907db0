//! Statements that are not queries: definitions, maintenance, the checker. One small file each.
//! Never a row of a query: what a statement reads or writes of a table goes through `exec`.
//!
//! ```text
//! server ── exec::run_utility ── context::Utilities ── utility::run ── one file's run
//! ```
//!
//! * A definition changes objects through the transaction's [`catalog::CatalogTx`]; nobody else sees
//!   them before it commits. Locks come first ([`exec::relation_lock`]), then the view is looked at
//!   (again), then the change.
//! * `exec` is below: bodies of functions run such statements through [`exec::context::Utilities`],
//!   which [`Statements`] is.
#![forbid(unsafe_code)]

mod adopt;
mod alter_table;
mod base_type;
pub mod check;
mod collation;
mod column;
mod column_type;
mod comment;
mod comment_builtin;
mod composite;
mod constraint;
mod create_index;
mod create_schema;
mod create_table;
mod create_table_as;
mod database;
mod defined;
mod depend;
mod describe;
mod domain;
mod drop;
mod event_trigger;
mod extension;
mod extension_files;
mod follow;
mod foreign;
mod forget;
mod function;
mod function_body;
mod identity;
mod index_build;
mod index_collect;
mod index_keys;
mod inherit;
mod item;
mod key_groups;
mod large_object;
pub mod maintain;
mod mentions;
mod merged_groups;
mod name;
mod partition;
mod policy;
mod publication;
mod relation;
mod remove;
mod rename;
mod replica_identity;
mod rewrite;
mod role;
mod rule;
mod run_bytes;
mod sequence;
mod set_constraints;
mod set_schema;
mod shape_users;
mod steps;
mod subscription;
mod trigger;
mod truncate;
mod type_statements;
mod type_usage;
mod user_types;
mod utility;
mod view;

use exec::relation_lock::{
    expect_checked, expect_plain, lock, new_oid, notice, open_if, open_owned, open_table, refresh,
};
use index_build::computed_by;
use rewrite::{rewrite, rewrite_with};

pub use steps::Job;
pub use utility::Statements;
