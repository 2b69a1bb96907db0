//! Output columns with set-returning calls at the top: they run side by side, shorter ones padded
//! with NULL.

use base::Result;
use sql::plan::Node;
use sql::{Expr, Plan};
use types::{Batch, Datum};

use super::function_scan::call_set;
use super::{Operator, types, wrong_node};
use crate::eval;
use crate::rows::{self, Row};
use crate::run::Run;

/// See the module's documentation.
pub struct ProjectSet {
    /// Rows.
    pub input: Box<dyn Operator>,
}

/// One output column for one input row.
enum Cell {
    One(Datum),
    Set(Vec<Datum>),
}

fn expand(exprs: &[Expr], row: Row<'_>, run: &mut Run<'_, '_>, out: &mut Batch) -> Result<()> {
    let mut cells = Vec::with_capacity(exprs.len());
    let mut longest = 0;
    for expr in exprs {
        cells.push(match expr {
            Expr::Call { function, .. } if function.returns_set => {
                let set = call_set(expr, row, run)?;
                longest = longest.max(set.len());
                Cell::Set(set)
            }
            _ => Cell::One(eval::eval(expr, row, run)?),
        });
    }
    for n in 0..longest {
        let values = cells.iter().map(|cell| match cell {
            Cell::One(value) => value.clone(),
            Cell::Set(values) => values.get(n).cloned().unwrap_or_default(),
        });
        rows::push(out, values);
    }
    Ok(())
}

impl Operator for ProjectSet {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::ProjectSet { input, exprs } = &plan.node else {
            return Err(wrong_node());
        };
        let Some(batch) = self.input.next(input, run)? else {
            return Ok(None);
        };
        let mut out = rows::empty(&types(plan, run.prepared));
        for row in 0..batch.rows {
            expand(exprs, Row::Batch(&batch, row), run, &mut out)?;
        }
        Ok(Some(out))
    }

    fn rescan(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<()> {
        let Node::ProjectSet { input, .. } = &plan.node else {
            return Err(wrong_node());
        };
        self.input.rescan(input, run)
    }
}
