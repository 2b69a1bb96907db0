//! Reads a computed table.

use base::Result;
use catalog::system::{SystemCx, rows as system_rows};
use sql::Plan;
use sql::plan::Node;
use types::{Batch, Datum};

use super::before_error::Postponed;
use crate::eval;
use crate::ops::before_error::filtered;
use crate::ops::operator::{Operator, types, wrong_node};
use crate::rows::{self, Row};
use crate::run::Run;

/// See the module's documentation: all rows in one batch.
#[derive(Default)]
pub struct SystemScan {
    done: bool,
    postponed: Postponed,
}

impl Operator for SystemScan {
    fn next(&mut self, plan: &Plan, run: &mut Run<'_, '_>) -> Result<Option<Batch>> {
        let Node::SystemScan { table, columns, equal, filter } = &plan.node else {
            return Err(wrong_node());
        };
        if std::mem::replace(&mut self.done, true) {
            self.postponed.raise()?;
            return Ok(None);
        }
        let mut known = Vec::with_capacity(equal.len());
        for (column, expr) in equal {
            known.push((*column, eval::eval(expr, Row::Empty, run)?));
        }
        let view = match system_rows::is_of_catalog(table) {
            true => run.cx.catalog_tx.view_of_all(),
            false => run.cx.catalog_tx.view(),
        };
        let mut own = crate::event_trigger::rows(table.name, run)?;
        if own.is_none() {
            own = crate::origins::rows(table.name, run)?;
        }
        let all = match own {
            Some(rows) => rows,
            None => system_rows::rows(
                table,
                &SystemCx {
                    catalog: &view,
                    settings: run.cx.settings,
                    server: run.cx.server,
                    database: run.cx.database.1,
                    role: run.cx.role,
                    equal: &known,
                },
            )?,
        };
        let mut batch = rows::empty(&types(plan, run.prepared));
        for mut row in all {
            crate::session::print_definition(table.name, &mut row, run);
            let values = columns.iter().map(|c| match row.get_mut(usize::from(*c)) {
                Some(value) => value.clone(),
                None => Datum::Null,
            });
            rows::push(&mut batch, values)?;
        }
        filtered(plan, filter.as_ref(), batch, &mut self.postponed, run).map(Some)
    }

    fn rescan(&mut self, _plan: &Plan, _run: &mut Run<'_, '_>) -> Result<()> {
        self.done = false;
        self.postponed = Postponed::default();
        Ok(())
    }
}
