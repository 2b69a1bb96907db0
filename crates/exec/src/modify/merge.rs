//! MERGE: for each source row the first WHEN that fits.
//!
//! A matching row that somebody else has changed meanwhile is looked at again in its newest version:
//! if it still matches, the WHEN MATCHED clauses are tried anew, else the WHEN NOT MATCHED ones.

use base::{Oid, Result, err};
use sql::plan::{MergeAction, MergeClause, Modify, ModifyAction, ScanColumn};
use types::{Batch, Datum};

use super::writer::Change;
use super::{ModifyOp, Reread, old_row, target};
use crate::eval;
use crate::rows::{self, Row};
use crate::run::Run;

impl ModifyOp {
    /// Merges a batch of source rows, each beside the table's row that matches it.
    pub(super) fn merge(
        &mut self,
        modify: &Modify,
        batch: &Batch,
        types: &[Oid],
        run: &mut Run<'_, '_>,
    ) -> Result<()> {
        let ModifyAction::Merge { columns, recheck, clauses, .. } = &modify.action else {
            return Ok(());
        };
        let reread = Reread::new(&modify.table, columns, recheck.as_ref());
        for n in 0..batch.rows {
            sched::check_interrupts()?;
            let mut input = rows::get(batch, n, types);
            if self.merge_row(modify, columns, clauses, &reread, &mut input, run)? {
                self.changed += 1;
            }
        }
        Ok(())
    }

    /// One source row; whether something was changed.
    fn merge_row(
        &mut self,
        modify: &Modify,
        columns: &[(u16, ScanColumn)],
        clauses: &[MergeClause],
        reread: &Reread<'_>,
        input: &mut [Datum],
        run: &mut Run<'_, '_>,
    ) -> Result<bool> {
        let snapshot = run.snapshot;
        loop {
            let found = target(input);
            let Some(clause) = first_fitting(clauses, found.is_some(), input, run)? else {
                return Ok(false);
            };
            let old = old_row(modify, columns, input);
            let change = match (&clause.action, found) {
                (MergeAction::Nothing, _) => return Ok(false),
                (MergeAction::Insert(row), _) => {
                    let mut row = eval::eval_all(row, Row::Values(input), run)?;
                    self.writer.check_row(&mut row, &modify.checks, run)?;
                    self.writer.insert(&row, run)?;
                    return Ok(true);
                }
                (_, None) => return Ok(false),
                (MergeAction::Delete, Some((tid, root))) => {
                    self.writer.delete(tid, root, &old, &snapshot, run)?
                }
                (MergeAction::Update(set), Some((tid, root))) => {
                    let mut new = old.clone();
                    for (column, expr) in set {
                        new[usize::from(*column) - 1] = eval::eval(expr, Row::Values(input), run)?;
                    }
                    self.writer.check_row(&mut new, &modify.checks, run)?;
                    self.writer.update(tid, root, &old, &new, &snapshot, run)?
                }
            };
            match change {
                Change::Done => return Ok(true),
                Change::SelfChanged => {
                    return Err(err!(
                        CARDINALITY_VIOLATION,
                        "MERGE command cannot affect row a second time"
                    )
                    .hint("Ensure that not more than one source row matches any one target row."));
                }
                Change::Newer(newest) => {
                    if !reread.apply(&self.writer, &newest, input, run)? {
                        unmatch(columns, input);
                    }
                }
                Change::Gone => unmatch(columns, input),
                // It waits for rows; so this one may just as well be looked at again.
                Change::Busy => {}
            }
        }
    }
}

/// No row of the table matches any more.
fn unmatch(columns: &[(u16, ScanColumn)], input: &mut [Datum]) {
    (input[0], input[1]) = (Datum::Null, Datum::Null);
    for (place, _) in columns {
        input[usize::from(*place)] = Datum::Null;
    }
}

fn first_fitting<'c>(
    clauses: &'c [MergeClause],
    matched: bool,
    input: &[Datum],
    run: &mut Run<'_, '_>,
) -> Result<Option<&'c MergeClause>> {
    for clause in clauses.iter().filter(|c| c.matched == matched) {
        let fits = match &clause.condition {
            Some(condition) => eval::holds(condition, Row::Values(input), run)?,
            None => true,
        };
        if fits {
            return Ok(Some(clause));
        }
    }
    Ok(None)
}
