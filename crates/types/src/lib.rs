//! Datums, types, functions, operators, casts, text and binary I/O of values, row and key encodings,
//! batches. Pure: no I/O, no sessions, no threads.
//!
//! PostgreSQL 15 is the reference for every result and message; its oids and names stand in
//! `table/*.txt`, one row a type, function, operator and cast. A new function is a row there and a
//! body under `func/`. Crates above bring families of types of their own in the same form ([`open`]).

#![forbid(unsafe_code)]

pub mod batch;
pub mod bulk;
pub mod collation;
pub mod cross;
pub mod datetime;
pub mod datum;
pub mod encodings;
pub mod extension;
pub mod foreign;
pub mod func;
pub mod gin;
pub mod gist;
pub mod io;
pub mod json;
pub mod jsonb;
pub mod kernel;
pub mod key;
pub mod numeric;
pub mod oids;
pub mod opclass;
pub mod open;
pub mod order;
pub mod range;
pub mod regex;
pub mod row;
#[cfg(test)]
mod testing;
pub mod user;
pub mod vectors;

pub use batch::{Batch, Column};
pub use datum::{Datum, Numeric, Text};
pub use func::hash::{
    PARTITION_SEED, add_partition_hash, is_partition_hashable, partition_hash, partition_hash_of,
};
pub use func::{AggregateRow, CastRow, FunctionRow, OperatorRow};
pub use io::{FormatContext, TypeIo};
