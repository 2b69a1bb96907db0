//! Functions in FROM, side by side; the shorter ones are padded with NULL.

use std::sync::Arc;

use base::Result;
use sql::plan::Node;
use sql::{Expr, Plan};
use types::batch::BATCH_ROWS;
use types::datum::Shape;
use types::func::Body;
use types::func::internal::{RECORDS_OF, check_fit};
use types::{Batch, Datum, oids};

use super::before_error::Postponed;
use crate::modify::row_store::StoredRows;
use crate::ops::operator::{Operator, types, wrong_node};
use crate::rows::{self, Row};
use crate::run::Run;
use crate::{eval, routine, session, vector};

/// See the module's documentation.
#[derive(Default)]
pub struct FunctionScan {
    sets: Option<Vec<Rows>>,
    /// Rows of calls that have nothing of the rows to the left, where others beside them do: they are made once.
    kept: Vec<Option<Vec<Datum>>>,
    number: i64,
    postponed: Postponed,
}

/// The rows of a call.
enum Rows {
    /// As a list.
    Listed(std::vec::IntoIter<Datum>),
    /// Those of a transition table that lie in a file: the value, the next piece, the rest of the one before.
    Stored(Datum, usize, std::vec::IntoIter<Datum>),
}

impl Rows {
    /// The rows of a transition table in a file, if the call is for one.
    fn stored(call: &Expr, run: &mut Run<'_, '_>) -> Result<Option<Rows>> {
        let Expr::Call { function, args, .. } = call else { return Ok(None) };
        if !std::ptr::eq(*function, &RECORDS_OF) {
            return Ok(None);
        }
        match args.first().map(|arg| eval::eval(arg, Row::Empty, run)).transpose()? {
            Some(value @ Datum::Open(_)) => {
                Ok(Some(Rows::Stored(value, 0, Vec::new().into_iter())))
            }
            _ => Ok(None),
        }
    }

    /// The next row; None at the end.
    fn next(&mut self) -> Result<Option<Datum>> {
        match self {
            Rows::Listed(rows) => Ok(rows.next()),
            Rows::Stored(Datum::Open(value), piece, rows) => loop {
                if let Some(row) = rows.next() {
                    return Ok(Some(row));
                }
                let Some(stored) = value.get::<StoredRows>() else { return Ok(None) };
                if *piece >= stored.pieces() {
                    return Ok(None);
                }
                sched::check_interrupts()?;
                *rows = stored.piece(*piece)?.into_iter();
                *piece += 1;
            },
            Rows::Stored(..) => Ok(None),
        }
    }

    /// Whether there is no more.
    fn is_at_end(&self) -> bool {
        match self {
            Rows::Listed(rows) => rows.len() == 0,
            Rows::Stored(Datum::Open(value), piece, rows) => {
                let pieces = value.get::<StoredRows>().map_or(0, StoredRows::pieces);
                rows.len() == 0 && *piece >= pieces
            }
            Rows::Stored(..) => true,
        }
    }
}

/// The rows of a set-returning call (or the one of any other expression).
///
/// # Errors
/// The function's.
pub fn call_set(call: &Expr, row: Row<'_>, run: &mut Run<'_, '_>) -> Result<Vec<Datum>> {
    match call {
        Expr::Call { function, args, ty, .. } if matches!(function.body, Body::User) => {
            let mut rows = routine::rows_of(function, args, *ty, row, run)?;
            if rows.is_empty() && !function.returns_set {
                rows.push(Datum::Null);
            }
            Ok(rows)
        }
        Expr::Call { function, args, .. } if function.returns_set => {
            let args = eval::eval_all(args, row, run)?;
            if function.strict && args.iter().any(Datum::is_null) {
                return Ok(vec![]);
            }
            ::types::bulk::ask_for_call(function, &args)?;
            match function.body {
                Body::Set(body) => body(&args, run.cx.format),
                Body::Session(number) => session::call_set(number, function, &args, run),
                _ => Err(base::Error::internal("a function without a body returns a set")),
            }
        }
        _ => Ok(vec![eval::eval(call, row, run)?]),
    }
}

/// The columns that a column definition list asks of a call: the row that is its last argument.
fn definition_list(call: &Expr) -> Option<&Arc<Shape>> {
    match call {
        Expr::Call { args, ty, .. } if *ty == oids::RECORD => match args.last() {
            Some(Expr::Const(Datum::Record(r), oids::RECORD)) => Some(&r.shape),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a call takes values of a row to the left.
fn is_lateral(call: &Expr) -> bool {
    sql::walk::any(call, &|e| matches!(e, Expr::Slot(..)))
}

#[cold]
fn mixed() -> base::Error {
    base::err!(DATATYPE_MISMATCH, "rows returned by function are not all of the same row type")
}

impl Operator for FunctionScan {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::FunctionScan { calls, ordinality, filter } = &plan.node else {
            return Err(wrong_node());
        };
        self.postponed.raise()?;
        if self.sets.is_none() {
            let mut sets = Vec::with_capacity(calls.len());
            let lateral = calls.len() > 1 && calls.iter().any(is_lateral);
            self.kept.resize(calls.len(), None);
            for (call, kept) in calls.iter().zip(&mut self.kept) {
                if let Some(rows) = kept {
                    sets.push(Rows::Listed(rows.clone().into_iter()));
                    continue;
                }
                if let Some(rows) = Rows::stored(call, run)? {
                    sets.push(rows);
                    continue;
                }
                let rows = call_set(call, Row::Empty, run)?;
                if lateral && !is_lateral(call) {
                    *kept = Some(rows.clone());
                }
                sets.push(Rows::Listed(rows.into_iter()));
            }
            self.sets = Some(sets);
        }
        let types = types(plan, run.prepared);
        let Some(sets) = &mut self.sets else {
            return Ok(None);
        };
        let width = |call: &Expr| {
            let columns = sql::record_columns(call).len();
            let row =
                call.ty() == ::types::oids::RECORD || ::types::user::shape(call.ty()).is_some();
            (columns.max(1), columns > 0 && row)
        };
        let widths: Vec<(usize, bool)> = calls.iter().map(width).collect();
        let expected: Vec<Option<&Arc<Shape>>> = calls.iter().map(definition_list).collect();
        let mut batch = rows::empty(&types);
        while batch.rows < BATCH_ROWS && sets.iter().any(|s| !s.is_at_end()) {
            self.number += 1;
            let number = ordinality.then_some(Datum::Int8(self.number));
            let mut row = Vec::with_capacity(types.len());
            for ((set, (width, spread)), expected) in sets.iter_mut().zip(&widths).zip(&expected) {
                match set.next()? {
                    Some(Datum::Record(r)) if *spread => {
                        if let Some(expected) = expected {
                            check_fit(&r.shape, expected)
                                .map_err(|e| if self.number > 1 { mixed() } else { e })?;
                        }
                        row.extend(r.fields.iter().cloned());
                    }
                    Some(value) if *width == 1 && !*spread => row.push(value),
                    // A row that is NULL, or is missing, has NULLs.
                    _ => row.extend(std::iter::repeat_n(Datum::Null, *width)),
                }
            }
            row.extend(number);
            rows::push(&mut batch, row)?;
        }
        if batch.rows == 0 {
            return Ok(None);
        }
        let Some(condition) = filter else { return Ok(Some(batch)) };
        match vector::select(condition, &batch, run) {
            Ok(None) => Ok(Some(batch)),
            Ok(Some(kept)) => Ok(Some(rows::take(&batch, &kept))),
            Err(error) => self.postponed.filter(condition, &batch, error, run).map(Some),
        }
    }

    fn rescan(&mut self, _plan: &Plan, _run: &mut Run<'_, '_>) -> Result<()> {
        let kept = std::mem::take(&mut self.kept);
        *self = FunctionScan { kept, ..FunctionScan::default() };
        Ok(())
    }
}
