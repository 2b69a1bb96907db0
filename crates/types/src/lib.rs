//! Datums, types, functions, operators, casts, text and binary I/O of values, row and key encodings,
//! batches. Pure: no I/O, no sessions. (Interface agreed first; bodies follow.)

pub mod batch;
pub mod datum;
pub mod func;
pub mod io;
pub mod key;
pub mod oids;
pub mod row;

pub use batch::{Batch, Column};
pub use datum::{Datum, Numeric, Text};
pub use func::{AggregateRow, CastRow, FunctionRow, OperatorRow};
pub use io::{FormatContext, TypeIo};
