//! The rows that come before an error. Expressions are evaluated for a whole batch at once, and an error in one row
//! must not hide the rows before it, which a client is to see, and which are enough for a LIMIT: a batch that
//! fails is gone through once more, row by row, up to the row that fails, and the error is raised when more is asked
//! for.
//!
//! Volatile expressions are not evaluated twice: for them the error comes at once.

use base::error::Severity;
use base::{Error, Result, sqlstate};
use sql::{Expr, Plan, walk};
use types::Batch;

use crate::ops::measure::{REMOVED_BY_FILTER, count};
use crate::rows::{self, Row};
use crate::run::Run;
use crate::{eval, vector};

/// The error of a row whose predecessors have been handed up.
#[derive(Default)]
pub struct Postponed(Option<Error>);

impl Postponed {
    /// Raises it.
    ///
    /// # Errors
    /// The postponed one.
    pub fn raise(&mut self) -> Result<()> {
        self.0.take().map_or(Ok(()), Err)
    }

    /// Keeps an error, unless there is nothing before it.
    ///
    /// # Errors
    /// The same error, when no rows come before it.
    pub fn keep(&mut self, error: Error, rows: usize) -> Result<()> {
        if rows == 0 || !is_of_row(&error) {
            return Err(error);
        }
        self.0 = Some(error);
        Ok(())
    }

    /// The output rows before the one to which evaluating the batch came with `error`.
    ///
    /// # Errors
    /// `error`, when it is the first row's, or not one of a row.
    #[cold]
    pub fn project(
        &mut self,
        exprs: &[Expr],
        batch: &Batch,
        error: Error,
        run: &mut Run<'_, '_>,
    ) -> Result<Batch> {
        if batch.rows < 2 || !is_of_row(&error) || exprs.iter().any(walk::is_volatile) {
            return Err(error);
        }
        let types: Vec<_> = exprs.iter().map(Expr::ty).collect();
        let mut out = rows::empty(&types);
        for row in 0..batch.rows {
            sched::check_interrupts()?;
            match eval::eval_all(exprs, Row::Batch(batch, row), run) {
                Ok(values) => rows::push(&mut out, values)?,
                Err(error) => {
                    self.keep(error, row)?;
                    break;
                }
            }
        }
        Ok(out)
    }

    /// The rows for which the condition holds before the one to which evaluating it came with `error`.
    ///
    /// # Errors
    /// As [`Postponed::project`].
    #[cold]
    pub fn filter(
        &mut self,
        condition: &Expr,
        batch: &Batch,
        error: Error,
        run: &mut Run<'_, '_>,
    ) -> Result<Batch> {
        Ok(rows::take(batch, &self.kept(condition, batch, error, run)?))
    }

    /// The places of those rows.
    ///
    /// # Errors
    /// As [`Postponed::project`].
    #[cold]
    pub fn kept(
        &mut self,
        condition: &Expr,
        batch: &Batch,
        error: Error,
        run: &mut Run<'_, '_>,
    ) -> Result<Vec<u32>> {
        let (kept, _) = self.before(condition, batch, error, run)?;
        if kept.is_empty() {
            self.raise()?;
        }
        Ok(kept)
    }

    /// The places of those rows, of which there may be none, and of the row that fails. The error is kept.
    ///
    /// # Errors
    /// As [`Postponed::project`].
    #[cold]
    pub fn before(
        &mut self,
        condition: &Expr,
        batch: &Batch,
        error: Error,
        run: &mut Run<'_, '_>,
    ) -> Result<(Vec<u32>, usize)> {
        if !is_of_row(&error) || walk::is_volatile(condition) {
            return Err(error);
        }
        let mut kept = Vec::new();
        for row in 0..batch.rows {
            sched::check_interrupts()?;
            match eval::holds(condition, Row::Batch(batch, row), run) {
                Ok(true) => kept.push(row as u32),
                Ok(false) => {}
                Err(error) => {
                    self.0 = Some(error);
                    return Ok((kept, row));
                }
            }
        }
        Ok((kept, batch.rows))
    }

    /// Whether there is one.
    pub fn is_some(&self) -> bool {
        self.0.is_some()
    }
}

/// Whether an error is what a row's values lead to, and not the statement's own end.
pub fn is_of_row(error: &Error) -> bool {
    let code = error.code();
    let ends = [
        sqlstate::QUERY_CANCELED,
        sqlstate::OUT_OF_MEMORY,
        sqlstate::STATEMENT_TOO_COMPLEX,
        sqlstate::INTERNAL_ERROR,
    ];
    error.severity() == Severity::Error && !ends.contains(&code)
}

/// The rows of a batch for which a node's condition holds, up to one for which it fails; counts the others.
///
/// # Errors
/// The condition's, when no row comes before it.
pub fn filtered(
    plan: &Plan,
    condition: Option<&Expr>,
    batch: Batch,
    postponed: &mut Postponed,
    run: &mut Run<'_, '_>,
) -> Result<Batch> {
    let before = batch.rows;
    let Some(condition) = condition else { return Ok(batch) };
    let batch = match vector::select(condition, &batch, run) {
        Ok(None) => batch,
        Ok(Some(kept)) => rows::take(&batch, &kept),
        Err(error) => postponed.filter(condition, &batch, error, run)?,
    };
    count(plan, REMOVED_BY_FILTER, (before - batch.rows) as u64, run);
    Ok(batch)
}
