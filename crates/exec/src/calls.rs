//! Calls that lead upwards: evaluating an expression can run a query, a function's body or a whole statement, and all of
//! these evaluate expressions. The lower half calls the upper half by this table, which the engine holds, so that it is
//! understood, compiled and tested without knowing what stands on it.
//!
//! Nothing is called through the table for each row but what costs far more than an indirect call: functions that need the
//! session, and bodies of users' functions.

use std::sync::Arc;

use base::{Oid, Result};
use sql::{Expr, Plan, Prepared};
use types::func::SessionFunction;
use types::{Batch, Column, Datum, FormatContext, FunctionRow};

use crate::context::{ExecContext, Outcome, RowSink};
use crate::ops::measure::Measure;
use crate::ops::operator::Operator;
use crate::rows::Row;
use crate::run::Run;

/// The upper half of the executor, by function; [`crate::wiring::CALLS`] fills it in.
pub struct Calls {
    /// Makes the operator of a node and of those below it.
    pub build: fn(&Plan, &mut Run<'_, '_>) -> Result<Box<dyn Operator>>,
    /// Runs a query to its end, by the short path where there is one.
    pub run: fn(&Arc<Prepared>, &mut ExecContext<'_>, &mut dyn RowSink) -> Result<Outcome>,
    /// Calls a function that needs the session.
    pub session_function:
        fn(SessionFunction, &'static FunctionRow, &[Datum], &mut Run<'_, '_>) -> Result<Datum>,
    /// Gives a value of the session by its name (`current_user`).
    pub session_value: fn(&str, Oid, &mut Run<'_, '_>) -> Result<Datum>,
    /// Casts by way of text: value, its type, the type and modifier that it is to have.
    pub cast_through_text: fn(Datum, Oid, Oid, i32, &mut Run<'_, '_>) -> Result<Datum>,
    /// Calls a user's function with arguments still to be evaluated over a row.
    pub routine: fn(&'static FunctionRow, &[Expr], Oid, Row<'_>, &mut Run<'_, '_>) -> Result<Datum>,
    /// Calls a user's function for all rows of a batch; None when it takes no batches.
    pub routine_of_batch:
        fn(&'static FunctionRow, &[Expr], Oid, &Batch, &mut Run<'_, '_>) -> Result<Option<Column>>,
    /// Calls a user's function with values.
    pub routine_of_values: fn(&'static FunctionRow, &[Datum], &mut Run<'_, '_>) -> Result<Datum>,
    /// Writes a measured plan down, as EXPLAIN ANALYZE does, for whoever traces the session.
    pub describe: fn(&Prepared, &[Measure], &FormatContext) -> Vec<String>,
}
