//! Full text search: the types `tsvector` and `tsquery`, the parser, the dictionaries, ranking and headlines.
//!
//! ```text
//! text ─ parser ─► tokens ─ configuration ─► dictionaries ─► lexemes with places = tsvector
//! ```
//!
//! A package of `types`: functions are bodies by key, as those of `types` are, and see the catalog through the
//! running task's directory ([`types::user::text_search`]). Knows no plans, tables or sessions; functions that
//! read tables (`ts_stat`, `ts_rewrite` by a query) and triggers are the executor's.
//!
//! Source: chapters 8.11, 9.13 and 12 of PostgreSQL's manual.

#![forbid(unsafe_code)]

mod chars;
pub mod config;
pub mod dictionary;
pub mod document;
pub mod execute;
pub mod files;
mod functions;
pub mod gin;
pub mod gist;
pub mod headline;
mod ispell;
mod json;
mod lexer;
mod lower;
pub mod options;
pub mod parse;
pub mod parser;
pub mod query;
pub mod rank;
pub mod rewrite;
mod snowball;
mod thesaurus;
pub mod tree;
pub mod vector;

use types::open::Package;

/// The types with all that belongs to them.
pub static PACKAGE: Package = Package {
    name: "textsearch",
    types: include_str!("../table/types.txt"),
    functions: include_str!("../table/functions.txt"),
    operators: include_str!("../table/operators.txt"),
    casts: "",
    bodies: functions::bodies,
    open_types: &[(vector::TSVECTOR, &vector::TsVectorType), (query::TSQUERY, &query::TsQueryType)],
    ..Package::EMPTY
};
