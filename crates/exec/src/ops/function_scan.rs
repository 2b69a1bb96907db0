//! A function in FROM.

use base::Result;
use sql::plan::Node;
use sql::{Expr, Plan};
use types::batch::BATCH_ROWS;
use types::func::Body;
use types::{Batch, Datum};

use super::{Operator, types, wrong_node};
use crate::rows::{self, Row};
use crate::run::Run;
use crate::{eval, session, vector};

/// See the module's documentation.
#[derive(Default)]
pub struct FunctionScan {
    values: Option<std::vec::IntoIter<Datum>>,
    number: i64,
}

/// The rows of a set-returning call (or the one of any other expression).
///
/// # Errors
/// The function's.
pub fn call_set(call: &Expr, row: Row<'_>, run: &mut Run<'_, '_>) -> Result<Vec<Datum>> {
    match call {
        Expr::Call { function, args, .. } if function.returns_set => {
            let args = eval::eval_all(args, row, run)?;
            if function.strict && args.iter().any(Datum::is_null) {
                return Ok(vec![]);
            }
            match function.body {
                Body::Set(body) => body(&args, run.cx.format),
                _ => session::call_set(function, &args, run),
            }
        }
        _ => Ok(vec![eval::eval(call, row, run)?]),
    }
}

impl Operator for FunctionScan {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::FunctionScan { call, ordinality, filter } = &plan.node else {
            return Err(wrong_node());
        };
        if self.values.is_none() {
            self.values = Some(call_set(call, Row::Empty, run)?.into_iter());
        }
        let types = types(plan, run.prepared);
        let Some(values) = &mut self.values else {
            return Ok(None);
        };
        let mut batch = rows::empty(&types);
        for value in values.by_ref().take(BATCH_ROWS) {
            self.number += 1;
            if *ordinality {
                rows::push(&mut batch, [value, Datum::Int8(self.number)]);
            } else {
                rows::push(&mut batch, [value]);
            }
        }
        if batch.rows == 0 {
            return Ok(None);
        }
        vector::filter(filter.as_ref(), batch, run).map(Some)
    }

    fn rescan(&mut self, _plan: &Plan, _run: &mut Run<'_, '_>) -> Result<()> {
        *self = FunctionScan::default();
        Ok(())
    }
}
