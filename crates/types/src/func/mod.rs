//! Functions, operators, casts and aggregates: one table, from which `pg_proc`, `pg_operator`,
//! `pg_cast` and `pg_aggregate` come. A new function is one row and one body.
//!
//! The rows are PostgreSQL's, in `table/*.txt`; the bodies stand in this folder, one file a family,
//! each a list of `key => body` where the key is the third field of `table/functions.txt`. A row
//! whose key has no body is not there: `SELECT` says that the function does not exist. Functions
//! that need the session are named in `session.rs`.

pub mod aggregate;
mod array;
mod array_slice;
mod bits;
mod cast;
mod common_values;
mod compare;
pub mod convert;
mod datetime;
mod degrees;
mod encode;
mod enums;
mod float;
mod format;
pub(crate) mod hash;
mod int;
pub mod internal;
mod json;
mod jsonb;
mod keywords;
pub(crate) mod like;
mod lsn;
mod money;
mod more_text;
mod network;
mod numeric;
mod range;
mod regex;
pub mod series;
mod session;
mod statistics;
mod table;
mod template;
mod text;
mod timetz;
mod typmods;

pub use aggregate::is_ordered_set;
pub(crate) use int::{division_by_zero, out_of_range};
pub use like::like_beginning;
pub use more_text::validated;
pub(crate) use regex::xquery_regex;
pub use session::{Family, SessionFunction};
pub use statistics::stack_arrays;
pub use table::{
    aggregates, aggregates_named, cast, casts, function, functions, functions_named, operator,
    operators, operators_named,
};
pub use text::{quote_ident, quote_literal, quote_name};

use base::{Oid, Result};

use crate::batch::Column;
use crate::datum::Datum;
use crate::io::FormatContext;

/// The things that a function may depend on (PostgreSQL's letters in `pg_proc.provolatile`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Volatility {
    /// Arguments only.
    Immutable,
    /// The statement's snapshot and settings.
    Stable,
    /// Anything.
    Volatile,
}

/// The body of a scalar function. Strict functions never see NULL (the caller answers NULL).
pub type ScalarBody = fn(&[Datum], &FormatContext) -> Result<Datum>;

/// The types that a call is known to have been made with.
#[derive(Clone, Copy)]
pub struct CallTypes<'a> {
    /// The arguments' types.
    pub args: &'a [Oid],
    /// The result's.
    pub result: Oid,
}

/// The body of a function to which its arguments' types matter (`to_json`, `int4range`).
pub type TypedBody = fn(&[Datum], CallTypes<'_>, &FormatContext) -> Result<Datum>;

/// How a function runs.
#[derive(Clone, Copy)]
pub enum Body {
    /// Computed from its arguments (and the session's formatting settings).
    Scalar(ScalarBody),
    /// The same, with the types of its arguments.
    Typed(TypedBody),
    /// Returns a set: the executor asks for the rows.
    Set(fn(&[Datum], &FormatContext) -> Result<Vec<Datum>>),
    /// Needs the session, the transaction or the catalog: the executor or the session has the body, under
    /// this number.
    Session(SessionFunction),
    /// A user made it: the catalog has the body, under the row's oid.
    User,
}

/// A body and its key in `table/functions.txt`.
pub(crate) type NamedBody = (&'static str, Body);

pub(crate) use Body::Scalar as S;

impl Body {
    /// Runs a body that needs only values and their types; None for the other kinds.
    pub fn run(
        &self,
        args: &[Datum],
        types: CallTypes<'_>,
        cx: &FormatContext,
    ) -> Option<Result<Datum>> {
        match self {
            Body::Scalar(body) => Some(body(args, cx)),
            Body::Typed(body) => Some(body(args, types, cx)),
            Body::Set(_) | Body::Session(_) | Body::User => None,
        }
    }
}

/// One row of the function table.
#[derive(Clone, Copy)]
pub struct FunctionRow {
    /// PostgreSQL's oid.
    pub oid: Oid,
    /// Name.
    pub name: &'static str,
    /// Argument types (after them, if `variadic`, any number of the last).
    pub args: &'static [Oid],
    /// Arguments at the end that may be left out, as SQL literals.
    pub defaults: &'static [&'static str],
    /// The last argument repeats.
    pub variadic: bool,
    /// Result type.
    pub result: Oid,
    /// Names and types of the result's columns, where it has any.
    pub columns: &'static [(&'static str, Oid)],
    /// Whether it returns a set.
    pub returns_set: bool,
    /// NULL in, NULL out.
    pub strict: bool,
    /// The things that it depends on.
    pub volatility: Volatility,
    /// How it runs.
    pub body: Body,
    /// The user's operator by which it is called; `Oid::INVALID`: none.
    pub operator: Oid,
    /// Which threads of a statement may call it, of a user's function.
    pub helpers: InHelpers,
}

/// Which threads of a statement may call a user's function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InHelpers {
    /// The statement's own.
    Never,
    /// Any as the step of an aggregate that is PARALLEL SAFE: what the function itself says does not count there.
    AsStep,
    /// Any: it is PARALLEL SAFE.
    Safe,
}

/// One row of the operator table; `left` is `Oid::INVALID` for a prefix operator.
#[derive(Clone, Copy)]
pub struct OperatorRow {
    /// PostgreSQL's oid.
    pub oid: Oid,
    /// Its characters.
    pub name: &'static str,
    /// Left type.
    pub left: Oid,
    /// Right type.
    pub right: Oid,
    /// Result type.
    pub result: Oid,
    /// The function behind it.
    pub function: Oid,
    /// Operator with sides swapped, by oid (`Oid::INVALID`: none).
    pub commutator: Oid,
    /// Operator with the opposite result.
    pub negator: Oid,
}

/// When a cast applies by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CastContext {
    /// Only when written.
    Explicit,
    /// Also when assigning to a column.
    Assignment,
    /// Anywhere.
    Implicit,
}

/// How a cast is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CastMethod {
    /// A function of the table (1 to 3 arguments: value, typmod, is explicit).
    Function(Oid),
    /// The value as it is.
    Binary,
    /// Through text output and input.
    InOut,
}

/// One row of the cast table.
#[derive(Clone, Copy)]
pub struct CastRow {
    /// From.
    pub source: Oid,
    /// To.
    pub target: Oid,
    /// When.
    pub context: CastContext,
    /// How.
    pub method: CastMethod,
}

/// Running state of an aggregate.
pub trait Accumulator: Send {
    /// Adds one row's arguments (NULLs included unless the aggregate is strict).
    fn add(&mut self, args: &[Datum]) -> Result<()>;
    /// Adds many rows' arguments at once; `types` are the columns'. (No columns: `count(*)`.)
    ///
    /// # Errors
    /// As [`Accumulator::add`].
    fn add_columns(&mut self, columns: &[&Column], types: &[Oid], rows: usize) -> Result<()> {
        let mut args = vec![Datum::Null; columns.len()];
        for row in 0..rows {
            for ((arg, column), ty) in args.iter_mut().zip(columns).zip(types) {
                *arg = column.get(row, *ty);
            }
            self.add(&args)?;
        }
        Ok(())
    }
    /// Adds another partial state of the same aggregate (parallel pieces, spilled groups).
    fn merge(&mut self, other: Box<dyn Accumulator>) -> Result<()>;
    /// The result so far.
    fn finish(&self) -> Result<Datum>;
    /// Bytes held beyond the struct.
    fn memory(&self) -> usize {
        0
    }
    /// For `merge`.
    fn as_any(self: Box<Self>) -> Box<dyn std::any::Any>;
}

/// One row of the aggregate table. (Its `pg_proc` row is made from it.)
#[derive(Clone, Copy)]
pub struct AggregateRow {
    /// PostgreSQL's oid.
    pub oid: Oid,
    /// Name.
    pub name: &'static str,
    /// Argument types; empty for `count(*)`.
    pub args: &'static [Oid],
    /// Result type.
    pub result: Oid,
    /// Skips rows with a NULL argument.
    pub strict: bool,
    /// A fresh state.
    pub start: fn() -> Box<dyn Accumulator>,
}

/// Gives an array its declared element type: what polymorphic functions and `array_agg` build has
/// the natural type of its values (text for varchar, oid for regclass).
pub fn with_element(value: Datum, element: Oid) -> Datum {
    match value {
        Datum::Array(a) if a.element != element => {
            let mut a = std::sync::Arc::unwrap_or_clone(a);
            a.element = element;
            Datum::Array(a.into())
        }
        value => value,
    }
}
